/* Hardware files: tables bind a struct hardware to its JSON, for reading with checks and for writing.  Every value is
 * checked where it is read, and an error names the file, the key and the rule.  Strings point into the JSON tree, which
 * the struct hardware keeps in its storage with the lists that it points to. */
#include "catalog/hardware_json.h"

#include <stdlib.h>
#include <string.h>

#include "catalog/hardware_units.h"
#include "core/json.h"
#include "core/json_bind.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/registry.h"
#include "core/text.h"
#include "port/json_read.h"
#include "port/file.h"

#define MANUAL "docs/formats.md"

enum {
    POINTS_MAX = 16,
    NAMES_MAX = 32,
    LINE_MAX_BYTES = 240,
    UNITS_MAX = 5,
    THREADS_MAX = 65536,
    TIMINGS_MAX = 4096
};

/* Memory that a parsed struct hardware points into, which may change the members that point there. */
struct storage {
    struct jv *tree;
    struct hardware parsed;
};

enum { RATE, BANDWIDTH, CAPACITY, ENERGY, POWER, TIME, COUNT, SHARE }; /* quantities */

#define UNIT(name) {#name, UNIT_##name}

static const struct quantity {
    struct unit {
        const char *name;
        double factor; /* to SI units */
    } units[UNITS_MAX];
    bool may_be_zero;
    double max; /* in SI units: above any device; detects a wrong unit */
} QUANTITIES[] = {
    [RATE] = {{UNIT(tflops), UNIT(tops), UNIT(gflops)}, false, 1e19},
    [BANDWIDTH] = {{UNIT(gb_per_s), UNIT(tb_per_s), UNIT(mb_per_s)}, false, 1e16},
    [CAPACITY] = {{UNIT(gib), UNIT(mib), UNIT(kib), UNIT(gb), UNIT(mb)}, false, 1e15},
    [ENERGY] = {{UNIT(pj), UNIT(nj)}, false, 1e-6},
    [POWER] = {{UNIT(w), UNIT(mw)}, false, 1e5},
    [TIME] = {{UNIT(us), UNIT(ns), UNIT(ms)}, true, 10},
    [COUNT] = {{{0}}, false, 1e7}, /* 1 or more */
    [SHARE] = {{{0}}, false, 1},
};

static const struct hardware_figure NO_FIGURE = {.value = UNKNOWN, .plus_minus = UNKNOWN};

/* One line of text; the flags may be FIELD_REQUIRED. */
#define BIND_LINE(of, member_, path_, flags_)                                                      \
    BIND_TEXT(of, member_, path_, .flags = (flags_), .least = 1, .most = LINE_MAX_BYTES)
#define BIND_NAME(of, member_, path_)                                                              \
    BIND_CHARS(of, member_, path_, .flags = FIELD_REQUIRED, .least = 1, .most = LINE_MAX_BYTES)
#define BIND_NAMES(of, member_, ...)                                                               \
    BIND_STRINGS(of, member_.items, member_.count, __VA_ARGS__, .most = NAMES_MAX)
#define BIND_WORD(of, member_, name_, values_, path_)                                              \
    BIND_ENUM(of, member_, name_, 0, values_, path_, .flags = FIELD_REQUIRED, .least = 1,          \
              .most = LINE_MAX_BYTES)

/* ---- figures ---- */

/* {"value", "unit", "evidence", "plus_minus", "source"}. */
struct figure {
    struct hardware_figure own; /* while it is read, in the unit of the file */
    double factor;              /* of that unit */
    const struct quantity *quantity;
};

static const struct unit *find_unit(const struct quantity *quantity, const char *name)
{
    for (size_t i = 0; i < UNITS_MAX && quantity->units[i].name; i++)
        if (str_equal(quantity->units[i].name, name))
            return &quantity->units[i];
    return NULL;
}

static void write_value(struct json *json, const char *key, const struct json_field *field,
                        const void *object)
{
    json_number_in(json, key, *(const double *)json_field_member(field, object),
                   ((const struct figure *)object)->factor);
}

static enum err read_value(const struct json_place *at, const struct json_field *field,
                           const struct jv *value, void *object)
{
    double number = jv_number(value);
    if (!is_known(number) || (field->variant && number < 0))
        return json_refuse(at, field->path, "must be %s", field->what);
    *(double *)(void *)((char *)object + field->offset) = number;
    return ERR_OK;
}

static void clear_value(const struct json_field *field, void *object)
{
    *(double *)(void *)((char *)object + field->offset) = UNKNOWN;
}

static bool is_value_known(const struct json_field *field, const void *object)
{
    return is_known(*(const double *)json_field_member(field, object));
}

static const struct json_custom VALUE = {
    .write = write_value, .read = read_value, .clear = clear_value, .is_known = is_value_known};

static void write_unit(struct json *json, const char *key, const struct json_field *field,
                       const void *object)
{
    (void)field;
    json_string(json, key, ((const struct figure *)object)->own.unit);
}

static enum err read_unit(const struct json_place *at, const struct json_field *field,
                          const struct jv *value, void *object)
{
    struct figure *figure = object;
    const char *names[UNITS_MAX], *word = text_or_empty(jv_text(value));
    const struct unit *unit = find_unit(figure->quantity, word);
    struct error reason = {0};
    size_t count = 0;
    if (unit) {
        figure->own.unit = unit->name;
        figure->factor = unit->factor;
        return ERR_OK;
    }
    for (; count < UNITS_MAX && figure->quantity->units[count].name; count++)
        names[count] = figure->quantity->units[count].name;
    if (!count)
        return json_refuse(at, field->path, "this figure has no unit");
    if (!word[0] || !str_is_plain(word))
        return json_refuse(at, field->path, "must be the name of a unit, such as \"%s\"", names[0]);
    registry_unknown(field->path, word, names, count, ERR_BAD_VALUE, &reason);
    return json_refuse(at, field->path, "%s", reason.text);
}

static bool has_unit(const struct json_field *field, const void *object)
{
    (void)field;
    return ((const struct figure *)object)->own.unit;
}

static const struct json_custom UNIT_NAME = {
    .write = write_unit, .read = read_unit, .is_known = has_unit};

static const struct json_field FIGURE_FIELDS[] = {
    BIND_CUSTOM(figure, own.value, VALUE, "value", .what = "a finite number"),
    BIND_CUSTOM(figure, own.unit, UNIT_NAME, "unit", .flags = FIELD_OMIT),
    BIND_WORD(figure, own.evidence, evidence_at, EVIDENCE_COUNT, "evidence"),
    BIND_CUSTOM(figure, own.plus_minus, VALUE, "plus_minus", .flags = FIELD_OMIT,
                .what = "a number, 0 or more", .variant = true),
    BIND_LINE(figure, own.source, "source", FIELD_REQUIRED),
    {0},
};

/* The rules of its quantity. */
static enum err check_figure(const struct json_place *at, const struct figure *figure)
{
    const struct quantity *quantity = figure->quantity;
    double value = figure->own.value, max = quantity->max;
    if (quantity->units[0].name && !figure->own.unit)
        return json_refuse(at, "unit", "is missing");
    if (!is_known(value))
        return json_refuse(at, "value", "is missing: omit an unknown figure");
    if (value < 0 || (value == 0 && !quantity->may_be_zero))
        return json_refuse(at, "value", "must be above 0, not %g", value);
    if (value * figure->factor > max)
        return json_refuse(at, "value", "%g is above %g: a wrong unit?", value,
                           max / figure->factor);
    if (quantity == &QUANTITIES[COUNT] && value < 1)
        return json_refuse(at, "value", "must be 1 or more, not %g", value);
    return ERR_OK;
}

static enum err read_figure(const struct json_place *at, const struct json_field *field,
                            const struct jv *value, void *object)
{
    struct json_place place = json_place_in(at, field->path);
    struct hardware_figure *out = (void *)((char *)object + field->offset);
    struct figure figure = {.quantity = &QUANTITIES[field->variant], .factor = 1};
    json_fields_clear(FIGURE_FIELDS, &figure);
    enum err err = json_fields_read_at(&place, value, FIGURE_FIELDS, &figure);
    if (!err)
        err = check_figure(&place, &figure);
    *out = figure.own;
    out->value *= figure.factor;
    out->plus_minus *= figure.factor;
    return err;
}

static void write_figure(struct json *json, const char *key, const struct json_field *field,
                         const void *object)
{
    const struct quantity *quantity = &QUANTITIES[field->variant];
    struct figure figure = {.own =
                                *(const struct hardware_figure *)json_field_member(field, object)};
    const struct unit *unit = figure.own.unit ? find_unit(quantity, figure.own.unit) : NULL;
    unit = unit ? unit : quantity->units;
    figure.own.unit = unit->name;
    figure.factor = unit->name ? unit->factor : 1;
    json_fields_write_object(json, key, FIGURE_FIELDS, &figure);
}

static void clear_figure(const struct json_field *field, void *object)
{
    *(struct hardware_figure *)(void *)((char *)object + field->offset) = NO_FIGURE;
}

static bool is_figure_known(const struct json_field *field, const void *object)
{
    return is_known(((const struct hardware_figure *)json_field_member(field, object))->value);
}

static const struct json_custom FIGURE = {
    .write = write_figure, .read = read_figure, .clear = clear_figure, .is_known = is_figure_known};

/* Missing or null is UNKNOWN. */
#define BIND_FIGURE(of, member_, quantity_, path_)                                                 \
    BIND_CUSTOM(of, member_, FIGURE, path_, .variant = (quantity_), .flags = FIELD_OMIT)

/* ---- parts of a device ---- */

static bool has_brands(const struct json_field *field, const void *object)
{
    return ((const struct hardware_processor *)json_field_member(field, object))->brands.count > 0;
}

static const struct json_custom IF_BRANDED = {.is_known = has_brands};

static const struct json_field PROCESSOR_FIELDS[] = {
    BIND_NAMES(hardware_processor, brands, "match", .flags = FIELD_REQUIRED, .least = 1),
    BIND_UNSIGNED(hardware_processor, threads, "threads", .flags = FIELD_REQUIRED, .min = 1,
                  .max = THREADS_MAX),
    BIND_LINE(hardware_processor, source, "source", FIELD_REQUIRED),
    {0},
};

static const struct json_field MEMORY_FIELDS[] = {
    BIND_LINE(hardware_memory, name, "name", FIELD_REQUIRED),
    BIND_FIGURE(hardware_memory, bytes_per_s, BANDWIDTH, "bandwidth"),
    BIND_FIGURE(hardware_memory, capacity_bytes, CAPACITY, "capacity"),
    BIND_FIGURE(hardware_memory, joules_per_byte, ENERGY, "energy"),
    {0},
};

enum {
    SHARE_RULE = FIELD_REQUIRED | FIELD_ABOVE,
    RATIO_RULE = FIELD_DEFAULT | FIELD_OMIT | FIELD_ABOVE
};

static const struct json_field KERNEL_FIELDS[] = {
    BIND_NUMBER(kernel_figures, fixed_s, "fixed_us", .flags = FIELD_REQUIRED, .factor = 1e-6,
                .max = 1e6),
    BIND_NUMBER(kernel_figures, compute_share, "compute_share", .flags = SHARE_RULE, .max = 1),
    BIND_NUMBER(kernel_figures, memory_share, "memory_share", .flags = SHARE_RULE, .max = 1),
    BIND_NUMBER(kernel_figures, depth_s, "depth_ns", .flags = FIELD_REQUIRED, .factor = 1e-9,
                .max = 1e9),
    BIND_NUMBER(kernel_figures, row_s, "row_ns", .flags = FIELD_REQUIRED, .factor = 1e-9,
                .max = 1e9),
    BIND_NUMBER(kernel_figures, active_w, "active_w", .flags = FIELD_REQUIRED, .max = 1e5),
    {0},
};

/* Watts, or ratios to the device. */
static const struct json_field POINT_FIELDS[] = {
    BIND_LINE(hardware_point, name, "name", FIELD_REQUIRED),
    BIND_NUMBER(hardware_point, limit_w, "limit_w", .flags = FIELD_OMIT | FIELD_ABOVE, .max = 1e5),
    BIND_NUMBER(hardware_point, clock_ratio, "clock_ratio", .flags = RATIO_RULE, .max = 1e5,
                .otherwise = 1),
    BIND_NUMBER(hardware_point, memory_ratio, "memory_ratio", .flags = RATIO_RULE, .max = 1e5,
                .otherwise = 1),
    BIND_NUMBER(hardware_point, energy_ratio, "energy_ratio", .flags = RATIO_RULE, .max = 1e5,
                .otherwise = 1),
    BIND_NUMBER(hardware_point, idle_w, "idle_w", .flags = FIELD_OMIT | FIELD_ABOVE, .max = 1e5),
    BIND_LINE(hardware_point, source, "source", FIELD_REQUIRED),
    {0},
};

/* Peak rate and energy for each precision, which the object has as keys.  The fields are those of the first one. */
static void *figures_of(void *object, size_t precision)
{
    return (char *)object + precision * sizeof(struct hardware_figure);
}

static enum err read_units(const struct json_place *at, const struct json_field *field,
                           const struct jv *value, void *object)
{
    const char *names[PRECISION_COUNT];
    struct json_place place = json_place_in(at, field->path);
    for (size_t i = 0; i < PRECISION_COUNT; i++)
        names[i] = precision_name((enum precision)i);
    enum err err = json_check_keys(&place, value, names, PRECISION_COUNT);
    for (size_t i = 0; !err && i < PRECISION_COUNT; i++) {
        struct json_place unit = json_place_in(&place, names[i]);
        const struct jv *json = jv_get(value, names[i]);
        if (json)
            err = json_fields_read_at(&unit, json, field->fields, figures_of(object, i));
    }
    return err;
}

static bool has_units(const struct json_field *field, const void *object)
{
    const struct hardware_figure *flops = json_field_member(field, object);
    for (size_t i = 0; i < PRECISION_COUNT; i++)
        if (is_known(flops[i].value))
            return true;
    return false;
}

static void write_units(struct json *json, const char *key, const struct json_field *field,
                        const void *object)
{
    const struct hardware_figure *flops = json_field_member(field, object);
    json_object(json, key);
    for (size_t i = 0; i < PRECISION_COUNT; i++)
        if (is_known(flops[i].value))
            json_fields_write_object(json, precision_name((enum precision)i), field->fields,
                                     (const char *)object + i * sizeof *flops);
    json_object_end(json);
}

static void clear_units(const struct json_field *field, void *object)
{
    for (size_t i = 0; i < PRECISION_COUNT; i++)
        json_fields_clear(field->fields, figures_of(object, i));
}

static const struct json_custom UNITS = {
    .write = write_units, .read = read_units, .is_known = has_units, .clear = clear_units};

/* A unit without its peak rate is refused. */
#define BIND_PEAK(member_)                                                                         \
    BIND_CUSTOM(hardware, member_, FIGURE, "peak", .variant = RATE,                                \
                .flags = FIELD_REQUIRED | FIELD_OMIT)

static const struct json_field MATRIX_FIELDS[] = {
    BIND_PEAK(matrix_flops), BIND_FIGURE(hardware, matrix_joules, ENERGY, "energy"), {0}};
static const struct json_field VECTOR_FIELDS[] = {
    BIND_PEAK(vector_flops), BIND_FIGURE(hardware, vector_joules, ENERGY, "energy"), {0}};

/* ---- kernels ---- */

static enum err read_kernels(const struct json_place *at, const struct json_field *field,
                             const struct jv *value, void *object)
{
    const char *names[KERNEL_COUNT];
    struct json_place place = json_place_in(at, field->path);
    struct kernel_figures *kernels = memory_zeroed(KERNEL_COUNT, sizeof *kernels);
    ((struct hardware *)object)->kernel_classes = kernels;
    if (!kernels)
        return err_no_memory(json_place_why(at));
    for (size_t i = 0; i < KERNEL_COUNT; i++)
        names[i] = kernel_class_name((enum kernel_class)i);
    enum err err = json_check_keys(&place, value, names, KERNEL_COUNT);
    for (size_t i = 0; !err && i < KERNEL_COUNT; i++) {
        struct json_place kernel = json_place_in(&place, names[i]);
        const struct jv *json = jv_get(value, names[i]);
        err = jv_is_null(json) ? json_refuse(&kernel, "", "is missing: all classes are needed")
                               : json_fields_read_at(&kernel, json, KERNEL_FIELDS, &kernels[i]);
    }
    return err;
}

static void write_kernels(struct json *json, const char *key, const struct json_field *field,
                          const void *object)
{
    (void)field;
    json_object(json, key);
    for (size_t i = 0; i < KERNEL_COUNT; i++)
        json_fields_write_object(json, kernel_class_name((enum kernel_class)i), KERNEL_FIELDS,
                                 &((const struct hardware *)object)->kernel_classes[i]);
    json_object_end(json);
}

static bool has_kernels(const struct json_field *field, const void *object)
{
    (void)field;
    return ((const struct hardware *)object)->kernel_classes;
}

static void clear_kernels(const struct json_field *field, void *object)
{
    (void)field;
    ((struct hardware *)object)->kernel_classes = NULL;
}

static void release_kernels(const struct json_field *field, void *object)
{
    (void)field;
    free((void *)((struct hardware *)object)->kernel_classes);
}

static const struct json_custom KERNELS = {.write = write_kernels,
                                           .read = read_kernels,
                                           .is_known = has_kernels,
                                           .clear = clear_kernels,
                                           .release = release_kernels};

/* ---- timed operations ---- */

static const char *const TIMING_OPS[TIMING_OP_COUNT] = {
    "pass",    "step",           "product", "conv",      "conv_1x1", "conv_image",
    "conv_1d", "conv_depthwise", "lstm",    "attention", "norm",     "add",
    "scale",   "sigmoid",        "lrn",     "reorder",   "rotation", "gate"};

const char *timing_op_name(enum timing_op op)
{
    return TIMING_OPS[op];
}

static const char *timing_op_at(int value)
{
    return TIMING_OPS[value];
}

#define BIND_EXTENT(member_, path_)                                                                \
    BIND_NUMBER(hardware_timing, member_, path_, .flags = RATIO_RULE, .max = 1e15)

static const struct json_field TIMING_FIELDS[] = {
    BIND_WORD(hardware_timing, op, timing_op_at, TIMING_OP_COUNT, "op"),
    BIND_LINE(hardware_timing, format, "format", 0),
    BIND_EXTENT(rows, "rows"),
    BIND_EXTENT(depth, "depth"),
    BIND_EXTENT(columns, "columns"),
    BIND_EXTENT(context, "context"),
    BIND_EXTENT(held, "held"),
    BIND_NUMBER(hardware_timing, seconds, "us", .flags = SHARE_RULE, .factor = 1e-6, .max = 1e15),
    {0},
};

/* One operation per line; what is 0 or NULL is left out. */
static void write_operation(struct json *json, const struct hardware_timing *timing)
{
    struct text line = {0};
    for (const struct json_field *field = TIMING_FIELDS; field->path; field++) {
        double value = json_field_number(field, timing);
        const char *word =
            field->type == FIELD_ENUM ? TIMING_OPS[timing->op] : json_field_text(field, timing);
        const char *before = line.length ? ", " : "{";
        if (word)
            text_addf(&line, "%s\"%s\": \"%s\"", before, field->path, word);
        else if (value > 0)
            text_addf(&line, "%s\"%s\": %.9g", before, field->path,
                      value / (field->factor ? field->factor : 1));
    }
    text_add(&line, "}");
    json_raw(json, NULL, text_get(&line));
    text_release(&line);
}

static void write_operations(struct json *json, const char *key, const struct json_field *field,
                             const void *object)
{
    const struct hardware_timings *timings = object;
    (void)field;
    json_array(json, key);
    for (size_t i = 0; i < timings->count; i++)
        write_operation(json, &timings->items[i]);
    json_array_end(json);
}

static const struct json_custom ONE_PER_LINE = {.write = write_operations};

static const struct json_field TABLE_FIELDS[] = {
    BIND_LINE(hardware_timings, runtime, "runtime", FIELD_REQUIRED),
    BIND_UNSIGNED(hardware_timings, threads, "threads", .flags = FIELD_REQUIRED, .min = 1,
                  .max = THREADS_MAX),
    BIND_LINE(hardware_timings, source, "source", FIELD_REQUIRED),
    BIND_LIST(hardware_timings, items, count, TIMING_FIELDS, "operations", .flags = FIELD_REQUIRED,
              .least = 1, .most = TIMINGS_MAX, .custom = &ONE_PER_LINE),
    {0},
};

/* ---- a device ---- */

static const char *class_at(int value)
{
    return hardware_class_name((enum hardware_class)value);
}

static enum err refuse_kind(const struct json_place *at, const struct json_field *field,
                            const struct jv *value, void *object)
{
    (void)value, (void)object;
    return json_refuse(at, field->path,
                       "lists are part of the program and cannot be read from a file");
}

static bool is_never_known(const struct json_field *field, const void *object)
{
    (void)field, (void)object;
    return false;
}

static const struct json_custom REFUSED = {.read = refuse_kind, .is_known = is_never_known};

static const struct json_field HARDWARE_FIELDS[] = {
    BIND_NAME(hardware, id, "id"),
    BIND_NAME(hardware, name, "name"),
    BIND_NAME(hardware, vendor, "vendor"),
    BIND_WORD(hardware, class, class_at, HARDWARE_CLASS_COUNT, "class"),
    BIND_INT(hardware, year, "year", .flags = FIELD_OMIT, .min = 1990, .max = 2100, .what = "year"),
    BIND_LINE(hardware, note, "note", FIELD_OMIT),
    BIND_NAMES(hardware, aliases, "aliases", .flags = FIELD_OMIT),
    BIND_NAMES(hardware, matches, "match", .flags = FIELD_OMIT),
    BIND_OBJECT(hardware, processor, PROCESSOR_FIELDS, "processor", .flags = FIELD_OMIT,
                .custom = &IF_BRANDED),
    BIND_CUSTOM(hardware, matrix_flops, UNITS, "matrix", .flags = FIELD_OMIT,
                .fields = MATRIX_FIELDS),
    BIND_CUSTOM(hardware, vector_flops, UNITS, "vector", .flags = FIELD_OMIT,
                .fields = VECTOR_FIELDS),
    BIND_ARRAY(hardware, memories, memory_count, MEMORY_FIELDS, "memories", .flags = FIELD_REQUIRED,
               .least = 1),
    BIND_FIGURE(hardware, limit_w, POWER, "power.limit"),
    BIND_FIGURE(hardware, idle_w, POWER, "power.idle"),
    BIND_FIGURE(hardware, launch_s, TIME, "launch"),
    BIND_FIGURE(hardware, units, COUNT, "units"),
    BIND_FIGURE(hardware, compute_share, SHARE, "compute_share"),
    BIND_FIGURE(hardware, memory_share, SHARE, "memory_share"),
    BIND_FIGURE(hardware, kernels, COUNT, "kernels"),
    BIND_FIGURE(hardware, host_launch_s, TIME, "host.launch"),
    BIND_FIGURE(hardware, link_bytes_per_s, BANDWIDTH, "link.bandwidth"),
    BIND_FIGURE(hardware, link_latency_s, TIME, "link.latency"),
    BIND_FIGURE(hardware, link_peers, COUNT, "link.peers"),
    BIND_FIGURE(hardware, link_count, COUNT, "link.links"),
    BIND_CUSTOM(hardware, kernel_classes, KERNELS, "kernel_classes", .flags = FIELD_OMIT),
    BIND_LIST(hardware, points, point_count, POINT_FIELDS, "points", .flags = FIELD_OMIT,
              .least = 1, .most = POINTS_MAX),
    BIND_ARRAY(hardware, timings, timing_count, TABLE_FIELDS, "timings",
               .flags = FIELD_OMIT | FIELD_SINGLE),
    BIND_FLAG(hardware, is_calibrated, "calibrated", .flags = FIELD_OMIT),
    BIND_CUSTOM(hardware, doubt, REFUSED, "kind", .flags = FIELD_OMIT),
    {0},
};

void hardware_write(const struct hardware *hardware, struct json *json)
{
    json_fields_write_object(json, NULL, HARDWARE_FIELDS, hardware);
}

/* ---- reading a file ---- */

static enum err check_points(const struct hardware *hardware, struct error *why)
{
    for (size_t i = 0; i < hardware->point_count; i++) {
        const char *name = hardware->points[i].name;
        if (strchr(name, '@'))
            return err_set(why, ERR_BAD_VALUE, "points.%zu.name: must not contain '@'", i);
        for (size_t k = 0; k < i; k++)
            if (str_equal_nocase(hardware->points[k].name, name))
                return err_set(why, ERR_BAD_VALUE, "points.%zu.name: '%s' given more than once", i,
                               name);
    }
    return ERR_OK;
}

/* Those that catalog/catalog_file.c finds without parsing the file. */
static enum err check_names(const char *path, const struct hardware_names *names, struct error *why)
{
    for (size_t i = 0; i < names->count; i++)
        if (!names->items[i][0] || strpbrk(names->items[i], "\"\\]"))
            return err_set(why, ERR_BAD_VALUE, "%s: must be names, without \", \\ and ]", path);
    return ERR_OK;
}

static enum err check_timings(const struct hardware_timings *timings, struct error *why)
{
    for (size_t i = 0; i < timings->count; i++)
        if (timings->items[i].op == TIMING_PRODUCT && !timings->items[i].format)
            return err_set(why, ERR_BAD_VALUE, "timings.operations.%zu.format: is missing", i);
    return ERR_OK;
}

/* The rules for more than one value. */
static enum err check_parts(const struct hardware *hardware, struct error *why)
{
    static const char ID[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    if (hardware->id[strspn(hardware->id, ID)])
        return err_set(why, ERR_BAD_VALUE, "id: must be lowercase letters, digits and dashes");
    if (!is_known(hardware_main_memory(hardware)->bytes_per_s.value))
        return err_set(why, ERR_BAD_VALUE, "memories: the last one must have its bandwidth");
    if (hardware->kernel_classes && !is_known(hardware->kernels.value))
        return err_set(why, ERR_BAD_VALUE,
                       "kernels: is missing: the operators that kernel_classes were fitted to");
    enum err err = check_names("aliases", &hardware->aliases, why);
    if (!err)
        err = check_names("match", &hardware->matches, why);
    if (!err)
        err = check_names("processor.match", &hardware->processor.brands, why);
    for (size_t i = 0; !err && i < hardware->timing_count; i++)
        err = check_timings(&hardware->timings[i], why);
    return err ? err : check_points(hardware, why);
}

/* Takes ownership of the tree. */
static enum err from_tree(const char *name, struct jv *tree, struct hardware *out,
                          struct error *why)
{
    struct error reason = {0};
    struct storage *storage = memory_zeroed(1, sizeof *storage);
    *out = (struct hardware){.storage = storage};
    if (!storage) {
        jv_free(tree);
        return err_set(why, ERR_NO_MEMORY, "%s: out of memory", name);
    }
    storage->tree = tree;
    enum err err = json_fields_read_strict(tree, HARDWARE_FIELDS, out, MANUAL, &reason);
    storage->parsed = *out;
    if (!err)
        err = check_parts(out, &reason);
    if (err) {
        hardware_release(out);
        return err_set(why, err, "%s: %s", name, reason.text);
    }
    return ERR_OK;
}

enum err hardware_parse(const char *name, const char *bytes, size_t length, struct hardware *out,
                        struct error *why)
{
    struct error reason = {0};
    struct jv *tree;
    *out = (struct hardware){0};
    enum err err = jv_parse(bytes, length, &tree, &reason);
    return err ? err_set(why, err, "%s: %s", name, reason.text) : from_tree(name, tree, out, why);
}

enum err hardware_read(const char *path, struct hardware *out, struct error *why)
{
    struct error doubt = {0};
    struct jv *tree;
    *out = (struct hardware){0};
    enum err err = jv_read(path, FILE_SMALL, &tree, why);
    if (!err)
        err = from_tree(path, tree, out, why);
    if (!err && hardware_check(out, &doubt) != ERR_OK) {
        (void)chars_copy(out->doubt, doubt.text);
        log_warn("%s contradicts itself: %s", path, doubt.text);
    }
    return err;
}

void hardware_release(struct hardware *hardware)
{
    struct storage *storage = hardware->storage;
    if (storage) {
        json_fields_release(HARDWARE_FIELDS, &storage->parsed);
        jv_free(storage->tree);
    }
    free(storage);
    *hardware = (struct hardware){0};
}
