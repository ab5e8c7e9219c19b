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
    THREADS_MAX = 65536,
    TIMINGS_MAX = 4096
};

#define NUMBER_MAX 1e5 /* watts and ratios of an operating point */

/* What a parsed struct hardware points into. */
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
        double factor; /* to the SI */
    } units[UNITS_MAX];
    bool may_be_zero;
    double at_most; /* in SI units: beyond any device; catches a wrong unit */
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

/* The figures of a device in the order of its file: of an object of its own, or at the top. */
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

/* The numbers of a class of kernels. */
static const struct {
    const char *key;
    double factor, at_most; /* to the SI; in the unit of the key */
    size_t offset;
} KERNEL_NUMBERS[] = {
    {"fixed_us", 1e-6, 1e6, offsetof(struct kernel_figures, fixed_s)},
    {"compute_share", 1, 1, offsetof(struct kernel_figures, compute_share)},
    {"memory_share", 1, 1, offsetof(struct kernel_figures, memory_share)},
    {"depth_ns", 1e-9, 1e9, offsetof(struct kernel_figures, depth_s)},
    {"row_ns", 1e-9, 1e9, offsetof(struct kernel_figures, row_s)},
    {"active_w", 1, 1e5, offsetof(struct kernel_figures, active_w)},
};

/* The numbers of an operating point: watts, or ratios to the device. */
static const struct {
    const char *key;
    double otherwise;
    size_t offset;
} POINT_NUMBERS[] = {
    {"limit_w", UNKNOWN, offsetof(struct hardware_point, limit_w)},
    {"clock_ratio", 1, offsetof(struct hardware_point, clock_ratio)},
    {"memory_ratio", 1, offsetof(struct hardware_point, memory_ratio)},
    {"energy_ratio", 1, offsetof(struct hardware_point, energy_ratio)},
    {"idle_w", UNKNOWN, offsetof(struct hardware_point, idle_w)},
};

/* ---- an object of the file ---- */

/* The first error stays, and the rest of the file is then read for nothing: only hardware_parse looks at it. */
struct object {
    const struct jv *json;
    const struct object *outer; /* NULL at the top */
    const char *key;            /* of this object in the outer one; "" at the top */
    const char *file;
    enum err *err;
    struct error *why;
};

static struct object inside(const struct object *outer, const char *key, const struct jv *json)
{
    return (struct object){json, outer, key, outer->file, outer->err, outer->why};
}

/* "matrix.bf16.": the keys from the top down to here. */
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

/* Refuses a key that is none of these, or given more than once. */
static void check_keys(const struct object *at, const char *const *known, size_t count)
{
    if (!jv_is_object(at->json))
        refuse(at, "", "must be an object");
    for (const struct jv *child = jv_first(at->json); child; child = jv_next(child)) {
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

/* One line of text that must be there. */
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

static int64_t read_integer(const struct object *at, const char *key, int64_t least, int64_t most,
                            const char *rule)
{
    int64_t number = least;
    if (!jv_integer(jv_get(at->json, key), &number) || number < least || number > most)
        refuse(at, key, "must be a %s, %lld to %lld", rule, (long long)least, (long long)most);
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

/* ---- figures ---- */

/* Returns the factor to the SI. */
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
    double number = jv_number(value), at_most = QUANTITIES[quantity].at_most;
    if (jv_is_null(value))
        refuse(at, "value", "is missing: leave out a figure that is unknown");
    else if (!is_known(number))
        refuse(at, "value", "must be a finite number");
    else if (number < 0 || (number == 0 && !QUANTITIES[quantity].may_be_zero))
        refuse(at, "value", "must be above 0, not %g", number);
    else if (number * factor > at_most)
        refuse(at, "value", "%g is above %g: a wrong unit?", number, at_most / factor);
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
    struct object at = inside(outer, key, jv_get(outer->json, key));
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
    struct object at = inside(top, "processor", jv_get(top->json, "processor"));
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
    struct object at = inside(top, key, jv_get(top->json, key));
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        names[i] = precision_name((enum precision)i);
        flops[i] = joules[i] = NO_FIGURE;
    }
    if (jv_is_null(at.json))
        return;
    check_keys(&at, names, PRECISION_COUNT);
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        struct object unit = inside(&at, names[i], jv_get(at.json, names[i]));
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
    static const char *const KEYS[] = {"name", "bandwidth", "capacity", "energy"};
    const struct jv *list = jv_get(top->json, "memories");
    if (!jv_is_array(list) || jv_count(list) < 1 || jv_count(list) > HARDWARE_MEMORIES_MAX) {
        refuse(top, "memories", "must be an array of 1 to %d, the nearest first",
               HARDWARE_MEMORIES_MAX);
        return;
    }
    for (const struct jv *item = jv_first(list); item; item = jv_next(item)) {
        char key[24];
        struct hardware_memory *memory = &out->memories[out->memory_count];
        str_format(key, sizeof key, "memories.%zu", out->memory_count++);
        struct object at = inside(top, key, item);
        check_keys(&at, KEYS, COUNT_OF(KEYS));
        memory->name = read_line(&at, "name");
        read_figure(&at, "bandwidth", BANDWIDTH, &memory->bytes_per_s);
        read_figure(&at, "capacity", CAPACITY, &memory->capacity_bytes);
        read_figure(&at, "energy", ENERGY, &memory->joules_per_byte);
    }
    if (!is_known(hardware_main_memory(out)->bytes_per_s.value))
        refuse(top, "memories", "the last one must have its bandwidth");
}

/* Figures and the objects that hold them. */
static void read_figures(const struct object *top, struct hardware *out)
{
    static const char *const OBJECTS[] = {"power", "link", "host"};
    for (size_t k = 0; k < COUNT_OF(OBJECTS); k++) {
        const char *keys[COUNT_OF(FIELDS)];
        size_t count = 0;
        struct object at = inside(top, OBJECTS[k], jv_get(top->json, OBJECTS[k]));
        for (size_t i = 0; i < COUNT_OF(FIELDS); i++)
            if (FIELDS[i].object && !strcmp(FIELDS[i].object, OBJECTS[k]))
                keys[count++] = FIELDS[i].key;
        if (!jv_is_null(at.json))
            check_keys(&at, keys, count);
    }
    for (size_t i = 0; i < COUNT_OF(FIELDS); i++) {
        const struct field *field = &FIELDS[i];
        struct object at = inside(top, field->object, jv_get(top->json, field->object));
        read_figure(field->object ? &at : top, field->key, field->quantity,
                    (struct hardware_figure *)((char *)out + field->offset));
    }
}

/* ---- kernels ---- */

static void read_kernel(const struct object *at, struct kernel_figures *out)
{
    const char *keys[COUNT_OF(KERNEL_NUMBERS)];
    for (size_t i = 0; i < COUNT_OF(KERNEL_NUMBERS); i++)
        keys[i] = KERNEL_NUMBERS[i].key;
    check_keys(at, keys, COUNT_OF(keys));
    for (size_t i = 0; i < COUNT_OF(KERNEL_NUMBERS); i++) {
        double most = KERNEL_NUMBERS[i].at_most, number = jv_number(jv_get(at->json, keys[i]));
        bool is_share = most == 1; /* which nothing can be divided by if it is 0 */
        if (!(number >= 0 && number <= most) || (is_share && !(number > 0)))
            refuse(at, keys[i], "must be a number %s 0, at most %g", is_share ? "above" : "from",
                   most);
        number *= KERNEL_NUMBERS[i].factor;
        memcpy((char *)out + KERNEL_NUMBERS[i].offset, &number, sizeof number);
    }
}

static void read_kernels(const struct object *top, struct storage *storage, struct hardware *out)
{
    const char *names[KERNEL_COUNT];
    struct object at = inside(top, "kernel_classes", jv_get(top->json, "kernel_classes"));
    if (jv_is_null(at.json))
        return;
    for (size_t i = 0; i < KERNEL_COUNT; i++)
        names[i] = kernel_class_name((enum kernel_class)i);
    check_keys(&at, names, KERNEL_COUNT);
    for (size_t i = 0; i < KERNEL_COUNT; i++) {
        struct object kernel = inside(&at, names[i], jv_get(at.json, names[i]));
        if (jv_is_null(kernel.json))
            refuse(&at, names[i], "is missing: all classes are needed");
        else
            read_kernel(&kernel, &storage->kernels[i]);
    }
    if (!is_known(out->kernels.value))
        refuse(top, "kernels", "is missing: what kernel_classes were fitted to");
    out->kernel_classes = storage->kernels;
}

/* ---- operating points ---- */

static void read_point(const struct object *at, struct hardware_point *out)
{
    static const char *const KEYS[] = {"name",         "limit_w", "clock_ratio", "memory_ratio",
                                       "energy_ratio", "idle_w",  "source"};
    check_keys(at, KEYS, COUNT_OF(KEYS));
    out->name = read_line(at, "name");
    if (strchr(out->name, '@'))
        refuse(at, "name", "must not contain '@'");
    for (size_t i = 0; i < COUNT_OF(POINT_NUMBERS); i++) {
        const struct jv *value = jv_get(at->json, POINT_NUMBERS[i].key);
        double number = jv_is_null(value) ? POINT_NUMBERS[i].otherwise : jv_number(value);
        if (!jv_is_null(value) && !(number > 0 && number <= NUMBER_MAX))
            refuse(at, POINT_NUMBERS[i].key, "must be a number above 0, at most %g", NUMBER_MAX);
        memcpy((char *)out + POINT_NUMBERS[i].offset, &number, sizeof number);
    }
    out->source = read_line(at, "source");
}

static void read_points(const struct object *top, struct storage *storage, struct hardware *out)
{
    const struct jv *list = jv_get(top->json, "points");
    if (jv_is_null(list))
        return;
    if (!jv_is_array(list) || jv_count(list) < 1 || jv_count(list) > POINTS_MAX) {
        refuse(top, "points", "must be an array of 1 to %d", POINTS_MAX);
        return;
    }
    out->points = storage->points;
    for (const struct jv *item = jv_first(list); item; item = jv_next(item)) {
        char key[24];
        str_format(key, sizeof key, "points.%zu", out->point_count);
        struct object at = inside(top, key, item);
        struct hardware_point *point = &storage->points[out->point_count];
        read_point(&at, point);
        for (size_t i = 0; i < out->point_count; i++)
            if (str_equal_nocase(storage->points[i].name, point->name))
                refuse(&at, "name", "'%s' given more than once", point->name);
        out->point_count++;
    }
}

/* ---- timed operations ---- */

static const char *const TIMING_OPS[TIMING_OP_COUNT] = {
    "pass",       "step",           "product", "conv",      "conv_1x1",
    "conv_image", "conv_depthwise", "lstm",    "attention", "norm",
    "add",        "scale",          "sigmoid", "rotation",  "gate"};

const char *timing_op_name(enum timing_op op)
{
    return TIMING_OPS[op];
}

static const struct {
    const char *key;
    double factor; /* to the SI */
    size_t offset;
} TIMING_NUMBERS[] = {
    {"rows", 1, offsetof(struct hardware_timing, rows)},
    {"depth", 1, offsetof(struct hardware_timing, depth)},
    {"columns", 1, offsetof(struct hardware_timing, columns)},
    {"context", 1, offsetof(struct hardware_timing, context)},
    {"held", 1, offsetof(struct hardware_timing, held)},
    {"us", 1e-6, offsetof(struct hardware_timing, seconds)},
};

static void read_timing(const struct object *at, struct hardware_timing *out)
{
    static const char *const KEYS[] = {"op",      "format",  "rows", "depth",
                                       "columns", "context", "held", "us"};
    check_keys(at, KEYS, COUNT_OF(KEYS));
    out->op = (enum timing_op)read_word(at, "op", TIMING_OPS, TIMING_OP_COUNT);
    if (jv_get(at->json, "format"))
        out->format = read_line(at, "format");
    else if (out->op == TIMING_PRODUCT)
        refuse(at, "format", "is missing");
    for (size_t i = 0; i < COUNT_OF(TIMING_NUMBERS); i++) {
        const struct jv *value = jv_get(at->json, TIMING_NUMBERS[i].key);
        double number = jv_is_null(value) ? 0 : jv_number(value) * TIMING_NUMBERS[i].factor;
        if (!jv_is_null(value) && !(number > 0 && number < 1e15))
            refuse(at, TIMING_NUMBERS[i].key, "must be a number above 0");
        memcpy((char *)out + TIMING_NUMBERS[i].offset, &number, sizeof number);
    }
    if (!(out->seconds > 0))
        refuse(at, "us", "is missing");
}

static void read_table(const struct object *given, struct hardware_timing **owned,
                       struct hardware_timings *out)
{
    static const char *const KEYS[] = {"runtime", "threads", "source", "operations"};
    struct object at = *given;
    check_keys(&at, KEYS, COUNT_OF(KEYS));
    const struct jv *list = jv_get(at.json, "operations");
    size_t count = 0;
    if (!jv_is_array(list) || jv_count(list) < 1 || jv_count(list) > TIMINGS_MAX) {
        refuse(&at, "operations", "must be an array of 1 to %d", TIMINGS_MAX);
        return;
    }
    out->runtime = read_line(&at, "runtime");
    out->source = read_line(&at, "source");
    out->threads = (unsigned)read_integer(&at, "threads", 1, THREADS_MAX, "whole number");
    struct hardware_timing *items = *owned = calloc(jv_count(list), sizeof *items);
    if (!items) {
        refuse(&at, "operations", "out of memory");
        return;
    }
    for (const struct jv *item = jv_first(list); item; item = jv_next(item)) {
        char key[32];
        str_format(key, sizeof key, "operations.%zu", count);
        struct object one = inside(&at, key, item);
        read_timing(&one, &items[count++]);
    }
    out->items = items;
    out->count = count;
}

/* One table, or a list of them. */
static void read_timings(const struct object *top, struct storage *storage, struct hardware *out)
{
    struct object at = inside(top, "timings", jv_get(top->json, "timings"));
    size_t count = 0;
    if (jv_is_null(at.json))
        return;
    if (!jv_is_array(at.json)) {
        read_table(&at, &storage->timings[0], &out->timings[0]);
        return;
    }
    if (jv_count(at.json) > TIMINGS_RUNTIMES) {
        refuse(top, "timings", "must be an array of at most %d", TIMINGS_RUNTIMES);
        return;
    }
    for (const struct jv *item = jv_first(at.json); item; item = jv_next(item), count++) {
        char key[32];
        str_format(key, sizeof key, "timings.%zu", count);
        struct object one = inside(top, key, item);
        read_table(&one, &storage->timings[count], &out->timings[count]);
    }
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
        for (size_t k = 0; k < COUNT_OF(TIMING_NUMBERS); k++) {
            double number;
            memcpy(&number, (const char *)timing + TIMING_NUMBERS[k].offset, sizeof number);
            if (number > 0)
                text_addf(&line, ", \"%s\": %.9g", TIMING_NUMBERS[k].key,
                          number / TIMING_NUMBERS[k].factor);
        }
        text_add(&line, "}");
        json_raw(json, NULL, text_get(&line)); /* a line each */
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
        refuse(at, "kind", "such a list is compiled into the program, not read");
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

/* Takes the tree over. */
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

/* The fewest digits, from 15 on, that give the value back when they are read in this unit: 15 are more than a
 * file has, and drop the error of the division. */
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
    if (hardware->note)
        json_string(json, "note", hardware->note);
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
        const struct hardware_memory *memory = &hardware->memories[i];
        json_object(json, NULL);
        json_string(json, "name", memory->name);
        write_figure(json, "bandwidth", BANDWIDTH, &memory->bytes_per_s);
        write_figure(json, "capacity", CAPACITY, &memory->capacity_bytes);
        write_figure(json, "energy", ENERGY, &memory->joules_per_byte);
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
        for (size_t k = 0; k < COUNT_OF(KERNEL_NUMBERS); k++) {
            double number;
            memcpy(&number, (const char *)&hardware->kernel_classes[i] + KERNEL_NUMBERS[k].offset,
                   sizeof number);
            write_value(json, KERNEL_NUMBERS[k].key, number, KERNEL_NUMBERS[k].factor);
        }
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
        const struct hardware_point *point = &hardware->points[i];
        json_object(json, NULL);
        json_string(json, "name", point->name);
        for (size_t k = 0; k < COUNT_OF(POINT_NUMBERS); k++) {
            double number;
            memcpy(&number, (const char *)point + POINT_NUMBERS[k].offset, sizeof number);
            if (number != POINT_NUMBERS[k].otherwise)
                write_value(json, POINT_NUMBERS[k].key, number, 1);
        }
        json_string(json, "source", point->source);
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
