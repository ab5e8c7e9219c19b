/* Hardware files: reading with checks, and writing.  Every value is checked where it is read, and an error names
 * the file, the key and the rule.  Strings point into the JSON tree, which the struct hardware keeps in its
 * storage with the lists that it points to. */
#include "catalog/hardware_json.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/hardware_units.h"
#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "core/registry.h"
#include "port/json_read.h"
#include "port/file.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum {
    POINTS_MAX = 16,
    NAMES_MAX = 32,
    LINE_MAX_BYTES = 240,
    UNITS_MAX = 5,
    MEMBERS_MAX = 8, /* per kind of object */
    THREADS_MAX = 65536,
    TIMINGS_MAX = 4096
};

/* Memory that a parsed struct hardware points into. */
struct storage {
    struct jv *tree;
    struct hardware_point points[POINTS_MAX];
    struct kernel_figures kernels[KERNEL_COUNT];
    const char *aliases[NAMES_MAX + 1], *matches[NAMES_MAX + 1], *brands[NAMES_MAX + 1];
    struct hardware_timing *timings[TIMINGS_RUNTIMES]; /* owned */
};

enum quantity { RATE, BANDWIDTH, CAPACITY, ENERGY, POWER, TIME, COUNT, SHARE };

#define UNIT(name) {#name, UNIT_##name}

static const struct {
    struct {
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

/* The figures of a device in the order of its file: in a nested object, or at the top level. */
static const struct field {
    const char *object, *key;
    enum quantity quantity;
    size_t offset;
} FIELDS[] = {
    {"power", "limit", POWER, offsetof(struct hardware, limit_w)},
    {"power", "idle", POWER, offsetof(struct hardware, idle_w)},
    {NULL, "launch", TIME, offsetof(struct hardware, launch_s)},
    {NULL, "units", COUNT, offsetof(struct hardware, units)},
    {NULL, "compute_share", SHARE, offsetof(struct hardware, compute_share)},
    {NULL, "memory_share", SHARE, offsetof(struct hardware, memory_share)},
    {NULL, "kernels", COUNT, offsetof(struct hardware, kernels)},
    {"host", "launch", TIME, offsetof(struct hardware, host_launch_s)},
    {"link", "bandwidth", BANDWIDTH, offsetof(struct hardware, link_bytes_per_s)},
    {"link", "latency", TIME, offsetof(struct hardware, link_latency_s)},
    {"link", "peers", COUNT, offsetof(struct hardware, link_peers)},
    {"link", "links", COUNT, offsetof(struct hardware, link_count)},
};

/* A member of an object of the file, and its field in the struct.  One table per kind of object is used to check keys,
 * to read and to write. */
struct member {
    const char *key;
    enum { FIGURE, LINE, NUMBER, NUMBER_OR_0, OPTIONAL_NUMBER, OTHER } kind; /* OTHER: in code */
    size_t offset;
    enum quantity quantity; /* quantity of a figure */
    double factor, max;     /* positive number: to SI units; in the unit of the key */
    double otherwise;       /* default of an optional number */
};

#define MEMORY(field) offsetof(struct hardware_memory, field)
#define KERNEL(field) offsetof(struct kernel_figures, field)
#define POINT(field)  offsetof(struct hardware_point, field)
#define TIMING(field) offsetof(struct hardware_timing, field)

static const struct member MEMORY_MEMBERS[] = {
    {"name", LINE, MEMORY(name), 0, 0, 0, 0},
    {"bandwidth", FIGURE, MEMORY(bytes_per_s), BANDWIDTH, 0, 0, 0},
    {"capacity", FIGURE, MEMORY(capacity_bytes), CAPACITY, 0, 0, 0},
    {"energy", FIGURE, MEMORY(joules_per_byte), ENERGY, 0, 0, 0},
};

static const struct member KERNEL_MEMBERS[] = {
    {"fixed_us", NUMBER_OR_0, KERNEL(fixed_s), 0, 1e-6, 1e6, 0},
    {"compute_share", NUMBER, KERNEL(compute_share), 0, 1, 1, 0},
    {"memory_share", NUMBER, KERNEL(memory_share), 0, 1, 1, 0},
    {"depth_ns", NUMBER_OR_0, KERNEL(depth_s), 0, 1e-9, 1e9, 0},
    {"row_ns", NUMBER_OR_0, KERNEL(row_s), 0, 1e-9, 1e9, 0},
    {"active_w", NUMBER_OR_0, KERNEL(active_w), 0, 1, 1e5, 0},
};

/* Watts, or ratios to the device. */
static const struct member POINT_MEMBERS[] = {
    {"name", LINE, POINT(name), 0, 0, 0, 0},
    {"limit_w", OPTIONAL_NUMBER, POINT(limit_w), 0, 1, 1e5, UNKNOWN},
    {"clock_ratio", OPTIONAL_NUMBER, POINT(clock_ratio), 0, 1, 1e5, 1},
    {"memory_ratio", OPTIONAL_NUMBER, POINT(memory_ratio), 0, 1, 1e5, 1},
    {"energy_ratio", OPTIONAL_NUMBER, POINT(energy_ratio), 0, 1, 1e5, 1},
    {"idle_w", OPTIONAL_NUMBER, POINT(idle_w), 0, 1, 1e5, UNKNOWN},
    {"source", LINE, POINT(source), 0, 0, 0, 0},
};

static const struct member TIMING_MEMBERS[] = {
    {"op", OTHER, 0, 0, 0, 0, 0},
    {"format", OTHER, 0, 0, 0, 0, 0},
    {"rows", OPTIONAL_NUMBER, TIMING(rows), 0, 1, 1e15, 0},
    {"depth", OPTIONAL_NUMBER, TIMING(depth), 0, 1, 1e15, 0},
    {"columns", OPTIONAL_NUMBER, TIMING(columns), 0, 1, 1e15, 0},
    {"context", OPTIONAL_NUMBER, TIMING(context), 0, 1, 1e15, 0},
    {"held", OPTIONAL_NUMBER, TIMING(held), 0, 1, 1e15, 0},
    {"us", NUMBER, TIMING(seconds), 0, 1e-6, 1e15, 0},
};

/* ---- an object of the file ---- */

/* The first error is kept, and the rest of the file is read without effect: only from_tree checks it. */
struct object {
    const struct jv *json;
    const struct object *outer; /* NULL at the top */
    const char *key;            /* key of this object in the outer one; "" at the top */
    const char *file;
    enum err *err;
    struct error *why;
};

static struct object child(const struct object *outer, const char *key, const struct jv *json)
{
    return (struct object){json, outer, key, outer->file, outer->err, outer->why};
}

/* "matrix.bf16.": the keys from the top level to this object. */
static void add_path(const struct object *at, char *to, size_t size)
{
    if (!at->outer)
        return;
    add_path(at->outer, to, size);
    size_t length = strlen(to);
    if (length < size)
        str_format(to + length, size - length, "%s.", at->key);
}

/* "FILE: matrix.bf16.peak: PROBLEM"; key may be "" for the object itself. */
PRINTF_LIKE(3, 4)
static void refuse(const struct object *at, const char *key, const char *format, ...)
{
    char path[120] = "", problem[200];
    va_list arguments;
    if (*at->err)
        return;
    va_start(arguments, format);
    vsnprintf(problem, sizeof problem, format, arguments);
    va_end(arguments);
    add_path(at, path, sizeof path);
    if (!key[0] && path[0])
        path[strlen(path) - 1] = '\0'; /* the dot */
    *at->err = err_set(at->why, ERR_BAD_VALUE, "%s: %s%s%s%s", at->file, path, key,
                       path[0] || key[0] ? ": " : "", problem);
}

/* Rejects an unknown or duplicate key. */
static void check_keys(const struct object *at, const char *const *known, size_t count)
{
    if (!jv_is_object(at->json))
        refuse(at, "", "must be an object");
    for (const struct jv *child = jv_first_member(at->json); child; child = jv_next(child)) {
        const char *key = jv_key(child), *near = NULL;
        bool found = false;
        for (size_t i = 0; i < count && !found; i++)
            found = !strcmp(key, known[i]);
        if (!found && (near = nearest_name(key, known, count)))
            refuse(at, key, "unknown key: did you mean '%s'?", near);
        else if (!found)
            refuse(at, key, "unknown key: see docs/formats.md");
        else if (jv_get(at->json, key) != child)
            refuse(at, key, "given more than once");
    }
}

/* ---- values ---- */

/* One line of required text. */
static const char *read_line(const struct object *at, const char *key)
{
    const struct jv *value = jv_get(at->json, key);
    const char *line = jv_text(value);
    if (jv_is_null(value))
        refuse(at, key, "is missing");
    else if (!line || !line[0] || strlen(line) > LINE_MAX_BYTES || !str_is_plain(line))
        refuse(at, key, "must be one line of text without control characters, 1 to %d bytes",
               LINE_MAX_BYTES);
    return line ? line : "";
}

static void copy_line(const struct object *at, const char *key, char *to, size_t size)
{
    if (!str_copy(to, size, read_line(at, key)))
        refuse(at, key, "must be shorter than %zu bytes", size);
}

/* Its index in `names`; the error suggests the nearest. */
static size_t read_word(const struct object *at, const char *key, const char *const *names,
                        size_t count)
{
    const char *word = read_line(at, key);
    struct error reason = {0};
    for (size_t i = 0; i < count; i++)
        if (!strcmp(word, names[i]))
            return i;
    registry_unknown(key, word, names, count, ERR_BAD_VALUE, &reason);
    refuse(at, key, "%s", reason.text);
    return 0;
}

static int64_t read_integer(const struct object *at, const char *key, int64_t min, int64_t max,
                            const char *rule)
{
    int64_t number = min;
    if (!jv_integer(jv_get(at->json, key), &number) || number < min || number > max)
        refuse(at, key, "must be a %s, %lld to %lld", rule, (long long)min, (long long)max);
    return number;
}

/* Names into a list of NAMES_MAX + 1, which ends in NULL. */
static void read_list(const struct object *at, const char *key, const char **out)
{
    const struct jv *list = jv_get(at->json, key);
    size_t count = 0;
    if (!jv_is_null(list) && (!jv_is_array(list) || jv_count(list) > NAMES_MAX)) {
        refuse(at, key, "must be an array of at most %d names", NAMES_MAX);
        return;
    }
    for (const struct jv *item = jv_first(list); item; item = jv_next(item)) {
        const char *name = jv_text(item);
        if (!name || !name[0] || !str_is_plain(name) || strpbrk(name, "\"\\]"))
            refuse(at, key, "must be names, without \", \\ and ]");
        out[count++] = name;
    }
}

static double read_number(const struct object *at, const struct member *member)
{
    const struct jv *json = jv_get(at->json, member->key);
    double value = jv_number(json);
    if (jv_is_null(json) && member->kind == OPTIONAL_NUMBER)
        return member->otherwise;
    if (jv_is_null(json))
        refuse(at, member->key, "is missing");
    else if (!(value >= 0 && value <= member->max) || (value == 0 && member->kind != NUMBER_OR_0))
        refuse(at, member->key, "must be a number %s 0, at most %g",
               member->kind == NUMBER_OR_0 ? "from" : "above", member->max);
    return value * member->factor;
}

/* An array of the file, element by element: `at` is the current one, with its index as its key. */
struct elements {
    struct object at;
    const struct object *outer;
    const char *key;
    const struct jv *list;
    size_t count; /* read before this one */
    char name[32];
};

static struct elements elements_of(const struct object *outer, const char *key, size_t min,
                                   size_t max)
{
    const struct jv *list = jv_get(outer->json, key);
    if (!jv_is_array(list) || jv_count(list) < min || jv_count(list) > max) {
        refuse(outer, key, "must be an array of %zu to %zu", min, max);
        list = NULL;
    }
    return (struct elements){.outer = outer, .key = key, .list = list};
}

static bool next_element(struct elements *all)
{
    const struct jv *json = all->at.json ? jv_next(all->at.json) : jv_first(all->list);
    all->count += all->at.json != NULL;
    str_format(all->name, sizeof all->name, "%s.%zu", all->key, all->count);
    all->at = child(all->outer, all->name, json);
    return json != NULL;
}

/* ---- figures ---- */

/* Returns the factor to SI units. */
static double read_unit(const struct object *at, enum quantity quantity, const char **unit)
{
    const char *names[UNITS_MAX];
    size_t count = 0;
    for (; count < UNITS_MAX && QUANTITIES[quantity].units[count].name; count++)
        names[count] = QUANTITIES[quantity].units[count].name;
    if (!count) {
        if (jv_get(at->json, "unit"))
            refuse(at, "unit", "this figure has no unit");
        return 1;
    }
    size_t index = read_word(at, "unit", names, count);
    *unit = names[index];
    return QUANTITIES[quantity].units[index].factor;
}

static void read_value(const struct object *at, double factor, enum quantity quantity,
                       struct hardware_figure *out)
{
    const struct jv *value = jv_get(at->json, "value"), *error = jv_get(at->json, "plus_minus");
    double number = jv_number(value), max = QUANTITIES[quantity].max;
    if (jv_is_null(value))
        refuse(at, "value", "is missing: omit an unknown figure");
    else if (!is_known(number))
        refuse(at, "value", "must be a finite number");
    else if (number < 0 || (number == 0 && !QUANTITIES[quantity].may_be_zero))
        refuse(at, "value", "must be above 0, not %g", number);
    else if (number * factor > max)
        refuse(at, "value", "%g is above %g: a wrong unit?", number, max / factor);
    else if (quantity == COUNT && number < 1)
        refuse(at, "value", "must be 1 or more, not %g", number);
    out->value = number * factor;
    out->plus_minus = jv_number(error) * factor;
    if (!jv_is_null(error) && !(out->plus_minus >= 0))
        refuse(at, "plus_minus", "must be a number, 0 or more");
}

/* {"value", "unit", "evidence", "plus_minus", "source"}; missing or null is UNKNOWN. */
static void read_figure(const struct object *outer, const char *key, enum quantity quantity,
                        struct hardware_figure *out)
{
    static const char *const KEYS[] = {"value", "unit", "evidence", "plus_minus", "source"};
    struct object at = child(outer, key, jv_get(outer->json, key));
    const char *names[EVIDENCE_COUNT];
    *out = NO_FIGURE;
    if (jv_is_null(at.json))
        return;
    for (size_t i = 0; i < EVIDENCE_COUNT; i++)
        names[i] = evidence_name((enum evidence)i);
    check_keys(&at, KEYS, COUNT_OF(KEYS));
    read_value(&at, read_unit(&at, quantity, &out->unit), quantity, out);
    out->evidence = (enum evidence)read_word(&at, "evidence", names, EVIDENCE_COUNT);
    out->source = read_line(&at, "source");
}

static void read_members(const struct object *at, const struct member *members, size_t count,
                         void *out)
{
    const char *keys[MEMBERS_MAX] = {0};
    for (size_t i = 0; i < count; i++)
        keys[i] = members[i].key;
    check_keys(at, keys, count);
    for (size_t i = 0; i < count; i++) {
        const struct member *member = &members[i];
        void *to = (char *)out + member->offset;
        if (member->kind == FIGURE)
            read_figure(at, member->key, member->quantity, to);
        else if (member->kind == LINE)
            *(const char **)to = read_line(at, member->key);
        else if (member->kind != OTHER)
            *(double *)to = read_number(at, member);
    }
}

/* ---- identity ---- */

static void read_identity(const struct object *at, struct hardware *out)
{
    static const char ID[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    const char *classes[HARDWARE_CLASS_COUNT];
    const struct jv *calibrated = jv_get(at->json, "calibrated");
    for (size_t i = 0; i < HARDWARE_CLASS_COUNT; i++)
        classes[i] = hardware_class_name((enum hardware_class)i);
    copy_line(at, "id", out->id, sizeof out->id);
    if (out->id[strspn(out->id, ID)])
        refuse(at, "id", "must be lowercase letters, digits and dashes");
    copy_line(at, "name", out->name, sizeof out->name);
    copy_line(at, "vendor", out->vendor, sizeof out->vendor);
    out->class = (enum hardware_class)read_word(at, "class", classes, HARDWARE_CLASS_COUNT);
    if (!jv_is_null(jv_get(at->json, "year")))
        out->year = (int)read_integer(at, "year", 1990, 2100, "year");
    if (jv_get(at->json, "note"))
        out->note = read_line(at, "note");
    if (calibrated && !jv_is_bool(calibrated))
        refuse(at, "calibrated", "must be true or false");
    out->is_calibrated = jv_bool(calibrated, false);
}

static void read_processor(const struct object *top, struct storage *storage,
                           struct hardware_processor *out)
{
    static const char *const KEYS[] = {"match", "threads", "source"};
    struct object at = child(top, "processor", jv_get(top->json, "processor"));
    if (jv_is_null(at.json))
        return;
    check_keys(&at, KEYS, COUNT_OF(KEYS));
    read_list(&at, "match", storage->brands);
    if (!storage->brands[0])
        refuse(&at, "match", "is missing");
    out->threads = (unsigned)read_integer(&at, "threads", 1, THREADS_MAX, "whole number");
    out->source = read_line(&at, "source");
    out->brands = storage->brands;
}

/* ---- capabilities ---- */

static void read_units(const struct object *top, const char *key, struct hardware_figure *flops,
                       struct hardware_figure *joules)
{
    static const char *const KEYS[] = {"peak", "energy"};
    const char *names[PRECISION_COUNT];
    struct object at = child(top, key, jv_get(top->json, key));
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        names[i] = precision_name((enum precision)i);
        flops[i] = joules[i] = NO_FIGURE;
    }
    if (jv_is_null(at.json))
        return;
    check_keys(&at, names, PRECISION_COUNT);
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        struct object unit = child(&at, names[i], jv_get(at.json, names[i]));
        if (!unit.json)
            continue;
        check_keys(&unit, KEYS, COUNT_OF(KEYS));
        read_figure(&unit, "peak", RATE, &flops[i]);
        read_figure(&unit, "energy", ENERGY, &joules[i]);
        if (!is_known(flops[i].value))
            refuse(&unit, "peak", "is missing");
    }
}

static void read_memories(const struct object *top, struct hardware *out)
{
    struct elements all = elements_of(top, "memories", 1, HARDWARE_MEMORIES_MAX);
    while (next_element(&all))
        read_members(&all.at, MEMORY_MEMBERS, COUNT_OF(MEMORY_MEMBERS),
                     &out->memories[out->memory_count++]);
    if (out->memory_count && !is_known(hardware_main_memory(out)->bytes_per_s.value))
        refuse(top, "memories", "the last one must have its bandwidth");
}

/* Figures and the objects that hold them. */
static void read_figures(const struct object *top, struct hardware *out)
{
    static const char *const OBJECTS[] = {"power", "link", "host"};
    for (size_t k = 0; k < COUNT_OF(OBJECTS); k++) {
        const char *keys[COUNT_OF(FIELDS)];
        size_t count = 0;
        struct object at = child(top, OBJECTS[k], jv_get(top->json, OBJECTS[k]));
        for (size_t i = 0; i < COUNT_OF(FIELDS); i++)
            if (FIELDS[i].object && !strcmp(FIELDS[i].object, OBJECTS[k]))
                keys[count++] = FIELDS[i].key;
        if (!jv_is_null(at.json))
            check_keys(&at, keys, count);
    }
    for (size_t i = 0; i < COUNT_OF(FIELDS); i++) {
        const struct field *field = &FIELDS[i];
        struct object at = child(top, field->object, jv_get(top->json, field->object));
        read_figure(field->object ? &at : top, field->key, field->quantity,
                    (struct hardware_figure *)((char *)out + field->offset));
    }
}

/* ---- kernels ---- */

static void read_kernels(const struct object *top, struct storage *storage, struct hardware *out)
{
    const char *names[KERNEL_COUNT];
    struct object at = child(top, "kernel_classes", jv_get(top->json, "kernel_classes"));
    if (jv_is_null(at.json))
        return;
    for (size_t i = 0; i < KERNEL_COUNT; i++)
        names[i] = kernel_class_name((enum kernel_class)i);
    check_keys(&at, names, KERNEL_COUNT);
    for (size_t i = 0; i < KERNEL_COUNT; i++) {
        struct object kernel = child(&at, names[i], jv_get(at.json, names[i]));
        if (jv_is_null(kernel.json))
            refuse(&at, names[i], "is missing: all classes are needed");
        else
            read_members(&kernel, KERNEL_MEMBERS, COUNT_OF(KERNEL_MEMBERS), &storage->kernels[i]);
    }
    if (!is_known(out->kernels.value))
        refuse(top, "kernels", "is missing: the operators that kernel_classes were fitted to");
    out->kernel_classes = storage->kernels;
}

/* ---- operating points ---- */

static void read_points(const struct object *top, struct storage *storage, struct hardware *out)
{
    if (jv_is_null(jv_get(top->json, "points")))
        return;
    struct elements all = elements_of(top, "points", 1, POINTS_MAX);
    out->points = storage->points;
    for (; next_element(&all); out->point_count++) {
        struct hardware_point *point = &storage->points[out->point_count];
        read_members(&all.at, POINT_MEMBERS, COUNT_OF(POINT_MEMBERS), point);
        if (strchr(point->name, '@'))
            refuse(&all.at, "name", "must not contain '@'");
        for (size_t i = 0; i < out->point_count; i++)
            if (str_equal_nocase(storage->points[i].name, point->name))
                refuse(&all.at, "name", "'%s' given more than once", point->name);
    }
}

/* ---- timed operations ---- */

static const char *const TIMING_OPS[TIMING_OP_COUNT] = {
    "pass",    "step",           "product", "conv",      "conv_1x1", "conv_image",
    "conv_1d", "conv_depthwise", "lstm",    "attention", "norm",     "add",
    "scale",   "sigmoid",        "lrn",     "reorder",   "rotation", "gate"};

const char *timing_op_name(enum timing_op op)
{
    return TIMING_OPS[op];
}

static void read_timing(const struct object *at, struct hardware_timing *out)
{
    read_members(at, TIMING_MEMBERS, COUNT_OF(TIMING_MEMBERS), out);
    out->op = (enum timing_op)read_word(at, "op", TIMING_OPS, TIMING_OP_COUNT);
    if (jv_get(at->json, "format"))
        out->format = read_line(at, "format");
    else if (out->op == TIMING_PRODUCT)
        refuse(at, "format", "is missing");
}

static void read_table(const struct object *at, struct hardware_timing **owned,
                       struct hardware_timings *out)
{
    static const char *const KEYS[] = {"runtime", "threads", "source", "operations"};
    check_keys(at, KEYS, COUNT_OF(KEYS));
    struct elements all = elements_of(at, "operations", 1, TIMINGS_MAX);
    out->runtime = read_line(at, "runtime");
    out->source = read_line(at, "source");
    out->threads = (unsigned)read_integer(at, "threads", 1, THREADS_MAX, "whole number");
    *owned = calloc(jv_count(all.list) + 1, sizeof **owned);
    if (!*owned)
        refuse(at, "operations", "out of memory");
    for (out->items = *owned; *owned && next_element(&all); out->count++)
        read_timing(&all.at, &(*owned)[out->count]);
}

/* One table, or a list of them. */
static void read_timings(const struct object *top, struct storage *storage, struct hardware *out)
{
    struct object at = child(top, "timings", jv_get(top->json, "timings"));
    if (jv_is_null(at.json))
        return;
    if (!jv_is_array(at.json)) {
        read_table(&at, &storage->timings[0], &out->timings[0]);
        return;
    }
    struct elements all = elements_of(top, "timings", 0, TIMINGS_RUNTIMES);
    while (next_element(&all))
        read_table(&all.at, &storage->timings[all.count], &out->timings[all.count]);
}

static void write_table(struct json *json, const char *key, const struct hardware_timings *timings)
{
    json_object(json, key);
    json_string(json, "runtime", timings->runtime);
    json_integer(json, "threads", timings->threads);
    json_string(json, "source", timings->source);
    json_array(json, "operations");
    for (size_t i = 0; i < timings->count; i++) {
        const struct hardware_timing *timing = &timings->items[i];
        struct text line = {0};
        text_addf(&line, "{\"op\": \"%s\"", TIMING_OPS[timing->op]);
        if (timing->format)
            text_addf(&line, ", \"format\": \"%s\"", timing->format);
        for (size_t k = 0; k < COUNT_OF(TIMING_MEMBERS); k++) {
            const struct member *member = &TIMING_MEMBERS[k];
            double value;
            memcpy(&value, (const char *)timing + member->offset, sizeof value);
            if (member->kind != OTHER && value > 0)
                text_addf(&line, ", \"%s\": %.9g", member->key, value / member->factor);
        }
        text_add(&line, "}");
        json_raw(json, NULL, text_get(&line)); /* one per line */
        text_release(&line);
    }
    json_array_end(json);
    json_object_end(json);
}

static void write_timings(struct json *json, const struct hardware_timings *tables)
{
    if (!tables[0].count)
        return;
    if (!tables[1].count) {
        write_table(json, "timings", &tables[0]);
        return;
    }
    json_array(json, "timings");
    for (size_t i = 0; i < TIMINGS_RUNTIMES; i++)
        write_table(json, NULL, &tables[i]);
    json_array_end(json);
}

/* ---- a file ---- */

static void read_top(const struct object *at, struct storage *storage, struct hardware *out)
{
    static const char *const KEYS[] = {
        "id",           "name",     "vendor",         "class",     "year",
        "note",         "aliases",  "match",          "processor", "matrix",
        "vector",       "memories", "power",          "launch",    "units",
        "link",         "points",   "calibrated",     "kind",      "compute_share",
        "memory_share", "kernels",  "kernel_classes", "host",      "timings",
    };
    check_keys(at, KEYS, COUNT_OF(KEYS));
    if (jv_get(at->json, "kind"))
        refuse(at, "kind", "lists are compiled into the program and cannot be read from a file");
    read_identity(at, out);
    read_list(at, "aliases", storage->aliases);
    read_list(at, "match", storage->matches);
    out->aliases = storage->aliases;
    out->matches = storage->matches;
    read_processor(at, storage, &out->processor);
    read_units(at, "matrix", out->matrix_flops, out->matrix_joules);
    read_units(at, "vector", out->vector_flops, out->vector_joules);
    read_memories(at, out);
    read_figures(at, out);
    read_kernels(at, storage, out);
    read_points(at, storage, out);
    read_timings(at, storage, out);
}

/* Takes ownership of the tree. */
static enum err from_tree(const char *name, struct jv *tree, struct hardware *out,
                          struct error *why)
{
    enum err err = ERR_OK;
    struct storage *storage = calloc(1, sizeof *storage);
    *out = (struct hardware){.storage = storage};
    if (!storage) {
        jv_free(tree);
        return err_set(why, ERR_NO_MEMORY, "%s: out of memory", name);
    }
    storage->tree = tree;
    read_top(&(struct object){tree, NULL, "", name, &err, why}, storage, out);
    if (err)
        hardware_release(out);
    return err;
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
        (void)str_copy(out->doubt, sizeof out->doubt, doubt.text);
        log_warn("%.100s contradicts itself: %s", path, doubt.text);
    }
    return err;
}

void hardware_release(struct hardware *hardware)
{
    struct storage *storage = hardware->storage;
    if (storage) {
        jv_free(storage->tree);
        for (size_t i = 0; i < TIMINGS_RUNTIMES; i++)
            free(storage->timings[i]);
    }
    free(storage);
    *hardware = (struct hardware){0};
}

/* ---- writing ---- */

/* The fewest digits, at least 15, that round-trip in this unit: 15 are more than a file has, and remove the rounding
 * error of the division. */
static void write_value(struct json *json, const char *key, double value, double factor)
{
    char digits[40];
    int precision = 15;
    if (!is_known(value))
        return;
    do
        snprintf(digits, sizeof digits, "%.*g", precision, value / factor);
    while (strtod(digits, NULL) * factor != value && precision++ < 17);
    json_raw(json, key, digits);
}

static void write_figure(struct json *json, const char *key, enum quantity quantity,
                         const struct hardware_figure *figure)
{
    size_t unit = 0;
    if (!is_known(figure->value))
        return;
    for (size_t i = 0; figure->unit && i < UNITS_MAX && QUANTITIES[quantity].units[i].name; i++)
        if (!strcmp(QUANTITIES[quantity].units[i].name, figure->unit))
            unit = i;
    const char *name = QUANTITIES[quantity].units[unit].name;
    double factor = name ? QUANTITIES[quantity].units[unit].factor : 1;
    json_object(json, key);
    write_value(json, "value", figure->value, factor);
    if (name)
        json_string(json, "unit", name);
    json_string(json, "evidence", evidence_name(figure->evidence));
    write_value(json, "plus_minus", figure->plus_minus, factor);
    json_string(json, "source", figure->source);
    json_object_end(json);
}

static void write_members(struct json *json, const struct member *members, size_t count,
                          const void *from)
{
    for (size_t i = 0; i < count; i++) {
        const struct member *member = &members[i];
        const void *value = (const char *)from + member->offset;
        if (member->kind == FIGURE)
            write_figure(json, member->key, member->quantity, value);
        else if (member->kind == LINE)
            json_string(json, member->key, *(const char *const *)value);
        else if (member->kind != OPTIONAL_NUMBER || *(const double *)value != member->otherwise)
            write_value(json, member->key, *(const double *)value, member->factor);
    }
}

static void write_list(struct json *json, const char *key, const char *const *names)
{
    if (!names || !*names)
        return;
    json_array(json, key);
    for (; *names; names++)
        json_string(json, NULL, *names);
    json_array_end(json);
}

static void write_identity(struct json *json, const struct hardware *hardware)
{
    const struct hardware_processor *processor = &hardware->processor;
    json_string(json, "id", hardware->id);
    json_string(json, "name", hardware->name);
    json_string(json, "vendor", hardware->vendor);
    json_string(json, "class", hardware_class_name(hardware->class));
    if (hardware->year)
        json_integer(json, "year", hardware->year);
    json_optional_string(json, "note", hardware->note);
    write_list(json, "aliases", hardware->aliases);
    write_list(json, "match", hardware->matches);
    if (processor->brands) {
        json_object(json, "processor");
        write_list(json, "match", processor->brands);
        json_integer(json, "threads", processor->threads);
        json_string(json, "source", processor->source);
        json_object_end(json);
    }
}

static void write_units(struct json *json, const char *key, const struct hardware_figure *flops,
                        const struct hardware_figure *joules)
{
    bool is_open = false;
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        if (!is_known(flops[i].value))
            continue;
        if (!is_open)
            json_object(json, key);
        is_open = true;
        json_object(json, precision_name((enum precision)i));
        write_figure(json, "peak", RATE, &flops[i]);
        write_figure(json, "energy", ENERGY, &joules[i]);
        json_object_end(json);
    }
    if (is_open)
        json_object_end(json);
}

static void write_memories(struct json *json, const struct hardware *hardware)
{
    json_array(json, "memories");
    for (size_t i = 0; i < hardware->memory_count; i++) {
        json_object(json, NULL);
        write_members(json, MEMORY_MEMBERS, COUNT_OF(MEMORY_MEMBERS), &hardware->memories[i]);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_figures(struct json *json, const struct hardware *hardware)
{
    const char *open = NULL;
    for (size_t i = 0; i < COUNT_OF(FIELDS); i++) {
        const struct hardware_figure *figure =
            (const struct hardware_figure *)((const char *)hardware + FIELDS[i].offset);
        const char *object = FIELDS[i].object;
        if (!is_known(figure->value))
            continue;
        if (open && open != object)
            json_object_end(json);
        if (object && open != object)
            json_object(json, object);
        open = object;
        write_figure(json, FIELDS[i].key, FIELDS[i].quantity, figure);
    }
    if (open)
        json_object_end(json);
}

static void write_kernels(struct json *json, const struct hardware *hardware)
{
    if (!hardware->kernel_classes)
        return;
    json_object(json, "kernel_classes");
    for (size_t i = 0; i < KERNEL_COUNT; i++) {
        json_object(json, kernel_class_name((enum kernel_class)i));
        write_members(json, KERNEL_MEMBERS, COUNT_OF(KERNEL_MEMBERS), &hardware->kernel_classes[i]);
        json_object_end(json);
    }
    json_object_end(json);
}

static void write_points(struct json *json, const struct hardware *hardware)
{
    if (!hardware->point_count)
        return;
    json_array(json, "points");
    for (size_t i = 0; i < hardware->point_count; i++) {
        json_object(json, NULL);
        write_members(json, POINT_MEMBERS, COUNT_OF(POINT_MEMBERS), &hardware->points[i]);
        json_object_end(json);
    }
    json_array_end(json);
}

void hardware_write(const struct hardware *hardware, struct json *json)
{
    json_object(json, NULL);
    write_identity(json, hardware);
    write_units(json, "matrix", hardware->matrix_flops, hardware->matrix_joules);
    write_units(json, "vector", hardware->vector_flops, hardware->vector_joules);
    write_memories(json, hardware);
    write_figures(json, hardware);
    write_kernels(json, hardware);
    write_points(json, hardware);
    write_timings(json, hardware->timings);
    if (hardware->is_calibrated)
        json_bool(json, "calibrated", true);
    json_object_end(json);
}
