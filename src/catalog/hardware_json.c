/* Hardware files: reading with checks, and writing.  Every value is checked where it is read, and an error names
 * the file, the key and the rule.  Strings point into the JSON tree, which the struct hardware keeps in its
 * storage with the lists that it points to. */
#include "catalog/hardware_json.h"

#include <ctype.h>
#include <stdarg.h>
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

enum { POINTS_MAX = 16, NAMES_MAX = 32, LINE_MAX_BYTES = 240, UNITS_MAX = 5, THREADS_MAX = 65536 };

#define NUMBER_MAX 1e5 /* watts and ratios of an operating point */

/* What a parsed struct hardware points into. */
struct storage {
    struct jv *tree;
    struct hardware_point points[POINTS_MAX];
    const char *aliases[NAMES_MAX + 1], *matches[NAMES_MAX + 1], *brands[NAMES_MAX + 1];
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

/* ---- where we are, for errors ---- */

struct location {
    const char *file;
    const struct location *outer; /* NULL at the top */
    const char *key;              /* of this object in the outer one; "" at the top */
    struct error *why;
};

static struct location inside(const struct location *outer, const char *key)
{
    return (struct location){outer->file, outer, key, outer->why};
}

/* "matrix.bf16.": the keys from the top down to here. */
static void add_path(const struct location *at, char *to, size_t size)
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
static enum err refuse(const struct location *at, const char *key, const char *format, ...)
{
    char path[120] = "", problem[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, sizeof problem, format, arguments);
    va_end(arguments);
    add_path(at, path, sizeof path);
    size_t length = strlen(path);
    if (!key[0] && length)
        path[length - 1] = '\0'; /* the dot */
    if (!key[0] && !length)
        return err_set(at->why, ERR_BAD_VALUE, "%s: %s", at->file, problem);
    return err_set(at->why, ERR_BAD_VALUE, "%s: %s%s: %s", at->file, path, key, problem);
}

/* ---- values ---- */

/* Refuses a key that is none of these, or given more than once. */
static enum err check_keys(const struct location *at, const struct jv *object,
                           const char *const *known, size_t count)
{
    if (!jv_is_object(object))
        return refuse(at, "", "must be an object");
    for (const struct jv *child = jv_first(object); child; child = jv_next(child)) {
        const char *key = jv_key(child);
        bool found = false;
        for (size_t i = 0; i < count && !found; i++)
            found = !strcmp(key, known[i]);
        if (!found) {
            const char *near = nearest_name(key, known, count);
            return near ? refuse(at, key, "unknown key: did you mean '%s'?", near)
                        : refuse(at, key, "unknown key: see docs/formats.md");
        }
        if (jv_get(object, key) != child)
            return refuse(at, key, "given more than once");
    }
    return ERR_OK;
}

/* One line of text that must be there. */
static enum err read_line(const struct location *at, const struct jv *object, const char *key,
                          const char **out)
{
    const struct jv *value = jv_get(object, key);
    const char *line = jv_text(value);
    *out = line;
    if (jv_is_null(value))
        return refuse(at, key, "is missing");
    if (!line || !line[0] || strlen(line) > LINE_MAX_BYTES || !str_is_plain(line))
        return refuse(at, key, "must be one line of text without control characters, 1 to %d bytes",
                      LINE_MAX_BYTES);
    return ERR_OK;
}

static enum err copy_line(const struct location *at, const struct jv *object, const char *key,
                          char *to, size_t size)
{
    const char *line;
    enum err err = read_line(at, object, key, &line);
    if (!err && !str_copy(to, size, line))
        return refuse(at, key, "must be shorter than %zu bytes", size);
    return err;
}

/* Its index in `names`; the error suggests the nearest. */
static enum err read_word(const struct location *at, const struct jv *object, const char *key,
                          const char *const *names, size_t count, size_t *out)
{
    const char *word;
    struct error reason = {0};
    enum err err = read_line(at, object, key, &word);
    if (err)
        return err;
    for (*out = 0; *out < count; ++*out)
        if (!strcmp(word, names[*out]))
            return ERR_OK;
    registry_unknown(key, word, names, count, ERR_BAD_VALUE, &reason);
    return refuse(at, key, "%s", reason.text);
}

/* A plain number above 0, watts or a ratio. */
static enum err read_number(const struct location *at, const struct jv *object, const char *key,
                            double otherwise, double *out)
{
    const struct jv *value = jv_get(object, key);
    *out = otherwise;
    if (jv_is_null(value))
        return ERR_OK;
    *out = jv_number(value);
    if (!is_known(*out) || *out <= 0 || *out > NUMBER_MAX)
        return refuse(at, key, "must be a number above 0, at most %g", NUMBER_MAX);
    return ERR_OK;
}

/* Names into a list of NAMES_MAX + 1, which ends in NULL. */
static enum err read_list(const struct location *at, const struct jv *object, const char *key,
                          const char **out)
{
    const struct jv *list = jv_get(object, key);
    size_t count = 0;
    if (!jv_is_null(list) && (!jv_is_array(list) || jv_count(list) > NAMES_MAX))
        return refuse(at, key, "must be an array of at most %d names", NAMES_MAX);
    for (const struct jv *item = jv_first(list); item; item = jv_next(item)) {
        const char *name = jv_text(item);
        if (!name || !name[0] || !str_is_plain(name) || strpbrk(name, "\"\\]"))
            return refuse(at, key, "must be names, without \", \\ and ]");
        out[count++] = name;
    }
    return ERR_OK;
}

/* ---- figures ---- */

static enum err read_unit(const struct location *at, const struct jv *object,
                          enum quantity quantity, const char **unit, double *factor)
{
    const char *names[UNITS_MAX];
    size_t count = 0, index;
    for (; count < UNITS_MAX && QUANTITIES[quantity].units[count].name; count++)
        names[count] = QUANTITIES[quantity].units[count].name;
    *unit = NULL;
    *factor = 1;
    if (!count)
        return jv_get(object, "unit") ? refuse(at, "unit", "this figure has no unit") : ERR_OK;
    enum err err = read_word(at, object, "unit", names, count, &index);
    if (!err) {
        *unit = names[index];
        *factor = QUANTITIES[quantity].units[index].factor;
    }
    return err;
}

static enum err read_value(const struct location *at, const struct jv *object, double factor,
                           enum quantity quantity, struct hardware_figure *out)
{
    const struct jv *value = jv_get(object, "value"), *error = jv_get(object, "plus_minus");
    double number = jv_number(value), at_most = QUANTITIES[quantity].at_most;
    if (jv_is_null(value))
        return refuse(at, "value", "is missing: leave out a figure that is unknown");
    if (!is_known(number))
        return refuse(at, "value", "must be a finite number");
    if (number < 0 || (number == 0 && !QUANTITIES[quantity].may_be_zero))
        return refuse(at, "value", "must be above 0, not %g", number);
    if (number * factor > at_most)
        return refuse(at, "value", "%g is above %g: a wrong unit?", number, at_most / factor);
    if (quantity == COUNT && number < 1)
        return refuse(at, "value", "must be 1 or more, not %g", number);
    out->value = number * factor;
    if (jv_is_null(error))
        return ERR_OK;
    out->plus_minus = jv_number(error) * factor;
    if (!is_known(out->plus_minus) || out->plus_minus < 0)
        return refuse(at, "plus_minus", "must be a number, 0 or more");
    return ERR_OK;
}

/* {"value", "unit", "evidence", "plus_minus", "source"}; missing or null is UNKNOWN. */
static enum err read_figure(const struct location *outer, const struct jv *object, const char *key,
                            enum quantity quantity, struct hardware_figure *out)
{
    static const char *const KEYS[] = {"value", "unit", "evidence", "plus_minus", "source"};
    const struct jv *figure = jv_get(object, key);
    const char *names[EVIDENCE_COUNT];
    double factor;
    size_t evidence = 0;
    *out = NO_FIGURE;
    if (jv_is_null(figure))
        return ERR_OK;
    struct location at = inside(outer, key);
    for (size_t i = 0; i < EVIDENCE_COUNT; i++)
        names[i] = evidence_name((enum evidence)i);
    enum err err = check_keys(&at, figure, KEYS, COUNT_OF(KEYS));
    if (!err)
        err = read_unit(&at, figure, quantity, &out->unit, &factor);
    if (!err)
        err = read_value(&at, figure, factor, quantity, out);
    if (!err)
        err = read_word(&at, figure, "evidence", names, EVIDENCE_COUNT, &evidence);
    if (!err)
        err = read_line(&at, figure, "source", &out->source);
    out->evidence = (enum evidence)evidence;
    return err;
}

/* ---- identity ---- */

static bool is_id(const char *id)
{
    for (; *id; id++)
        if (!islower((unsigned char)*id) && !isdigit((unsigned char)*id) && *id != '-')
            return false;
    return true;
}

static enum err read_year(const struct location *at, const struct jv *top, int *out)
{
    int64_t year;
    *out = 0;
    if (jv_is_null(jv_get(top, "year")))
        return ERR_OK;
    if (!jv_integer(jv_get(top, "year"), &year) || year < 1990 || year > 2100)
        return refuse(at, "year", "must be a year, 1990 to 2100");
    *out = (int)year;
    return ERR_OK;
}

static enum err read_identity(const struct location *at, const struct jv *top, struct hardware *out)
{
    const char *classes[HARDWARE_CLASS_COUNT];
    size_t class = 0;
    const struct jv *calibrated = jv_get(top, "calibrated");
    for (size_t i = 0; i < HARDWARE_CLASS_COUNT; i++)
        classes[i] = hardware_class_name((enum hardware_class)i);
    enum err err = copy_line(at, top, "id", out->id, sizeof out->id);
    if (!err && !is_id(out->id))
        return refuse(at, "id", "must be lowercase letters, digits and dashes");
    if (!err)
        err = copy_line(at, top, "name", out->name, sizeof out->name);
    if (!err)
        err = copy_line(at, top, "vendor", out->vendor, sizeof out->vendor);
    if (!err)
        err = read_word(at, top, "class", classes, HARDWARE_CLASS_COUNT, &class);
    if (!err)
        err = read_year(at, top, &out->year);
    if (!err && jv_get(top, "note"))
        err = read_line(at, top, "note", &out->note);
    if (!err && calibrated && !jv_is_bool(calibrated))
        return refuse(at, "calibrated", "must be true or false");
    out->class = (enum hardware_class) class;
    out->is_calibrated = jv_bool(calibrated, false);
    return err;
}

static enum err read_processor(const struct location *top_at, const struct jv *top,
                               struct storage *storage, struct hardware_processor *out)
{
    static const char *const KEYS[] = {"match", "threads", "source"};
    const struct jv *object = jv_get(top, "processor");
    struct location at = inside(top_at, "processor");
    int64_t threads = 0;
    if (jv_is_null(object))
        return ERR_OK;
    enum err err = check_keys(&at, object, KEYS, COUNT_OF(KEYS));
    if (!err)
        err = read_list(&at, object, "match", storage->brands);
    if (!err && !storage->brands[0])
        return refuse(&at, "match", "is missing");
    if (!err &&
        (!jv_integer(jv_get(object, "threads"), &threads) || threads < 1 || threads > THREADS_MAX))
        return refuse(&at, "threads", "must be a whole number, 1 to %d", THREADS_MAX);
    if (!err)
        err = read_line(&at, object, "source", &out->source);
    out->brands = storage->brands;
    out->threads = (unsigned)threads;
    return err;
}

static enum err read_names(const struct location *at, const struct jv *top, struct storage *storage,
                           struct hardware *out)
{
    enum err err = read_list(at, top, "aliases", storage->aliases);
    if (!err)
        err = read_list(at, top, "match", storage->matches);
    if (!err)
        err = read_processor(at, top, storage, &out->processor);
    out->aliases = storage->aliases;
    out->matches = storage->matches;
    return err;
}

/* ---- capabilities ---- */

static enum err read_units(const struct location *top_at, const struct jv *top, const char *key,
                           struct hardware_figure *flops, struct hardware_figure *joules)
{
    static const char *const KEYS[] = {"peak", "energy"};
    const char *names[PRECISION_COUNT];
    const struct jv *units = jv_get(top, key);
    struct location at = inside(top_at, key);
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        names[i] = precision_name((enum precision)i);
        flops[i] = joules[i] = NO_FIGURE;
    }
    if (jv_is_null(units))
        return ERR_OK;
    enum err err = check_keys(&at, units, names, PRECISION_COUNT);
    for (size_t i = 0; i < PRECISION_COUNT && !err; i++) {
        const struct jv *object = jv_get(units, names[i]);
        if (!object)
            continue;
        struct location inner = inside(&at, names[i]);
        err = check_keys(&inner, object, KEYS, COUNT_OF(KEYS));
        if (!err)
            err = read_figure(&inner, object, "peak", RATE, &flops[i]);
        if (!err)
            err = read_figure(&inner, object, "energy", ENERGY, &joules[i]);
        if (!err && !is_known(flops[i].value))
            return refuse(&inner, "peak", "is missing");
    }
    return err;
}

static enum err read_memory(const struct location *at, const struct jv *object,
                            struct hardware_memory *out)
{
    static const char *const KEYS[] = {"name", "bandwidth", "capacity", "energy"};
    enum err err = check_keys(at, object, KEYS, COUNT_OF(KEYS));
    if (!err)
        err = read_line(at, object, "name", &out->name);
    if (!err)
        err = read_figure(at, object, "bandwidth", BANDWIDTH, &out->bytes_per_s);
    if (!err)
        err = read_figure(at, object, "capacity", CAPACITY, &out->capacity_bytes);
    if (!err)
        err = read_figure(at, object, "energy", ENERGY, &out->joules_per_byte);
    return err;
}

static enum err read_memories(const struct location *at, const struct jv *top, struct hardware *out)
{
    const struct jv *list = jv_get(top, "memories");
    if (!jv_is_array(list) || jv_count(list) < 1 || jv_count(list) > HARDWARE_MEMORIES_MAX)
        return refuse(at, "memories", "must be an array of 1 to %d, the nearest first",
                      HARDWARE_MEMORIES_MAX);
    for (const struct jv *memory = jv_first(list); memory; memory = jv_next(memory)) {
        char key[24];
        str_format(key, sizeof key, "memories.%zu", out->memory_count);
        struct location inner = inside(at, key);
        enum err err = read_memory(&inner, memory, &out->memories[out->memory_count++]);
        if (err)
            return err;
    }
    if (!is_known(hardware_main_memory(out)->bytes_per_s.value))
        return refuse(at, "memories", "the last one must have its bandwidth");
    return ERR_OK;
}

/* The figures of an object of its own, such as power: {"limit", "idle"}. */
static enum err read_pair(const struct location *top_at, const struct jv *top, const char *key,
                          const char *const *names, const enum quantity *quantities,
                          struct hardware_figure *const *out)
{
    const struct jv *object = jv_get(top, key);
    struct location at = inside(top_at, key);
    *out[0] = *out[1] = NO_FIGURE;
    if (jv_is_null(object))
        return ERR_OK;
    enum err err = check_keys(&at, object, names, 2);
    for (size_t i = 0; i < 2 && !err; i++)
        err = read_figure(&at, object, names[i], quantities[i], out[i]);
    return err;
}

static enum err read_figures(const struct location *at, const struct jv *top, struct hardware *out)
{
    static const char *const POWER_KEYS[] = {"limit", "idle"};
    static const char *const LINK_KEYS[] = {"bandwidth", "latency"};
    enum err err = read_pair(at, top, "power", POWER_KEYS, (enum quantity[]){POWER, POWER},
                             (struct hardware_figure *[]){&out->limit_w, &out->idle_w});
    if (!err)
        err = read_pair(at, top, "link", LINK_KEYS, (enum quantity[]){BANDWIDTH, TIME},
                        (struct hardware_figure *[]){&out->link_bytes_per_s, &out->link_latency_s});
    if (!err)
        err = read_figure(at, top, "launch", TIME, &out->launch_s);
    if (!err)
        err = read_figure(at, top, "units", COUNT, &out->units);
    if (!err)
        err = read_figure(at, top, "compute_share", SHARE, &out->compute_share);
    if (!err)
        err = read_figure(at, top, "memory_share", SHARE, &out->memory_share);
    return err;
}

/* ---- operating points ---- */

static enum err read_point(const struct location *at, const struct jv *object,
                           struct hardware_point *out)
{
    static const char *const KEYS[] = {"name",         "limit_w", "clock_ratio", "memory_ratio",
                                       "energy_ratio", "idle_w",  "source"};
    enum err err = check_keys(at, object, KEYS, COUNT_OF(KEYS));
    if (!err)
        err = read_line(at, object, "name", &out->name);
    if (!err && strchr(out->name, '@'))
        return refuse(at, "name", "must not contain '@'");
    if (!err)
        err = read_number(at, object, "limit_w", UNKNOWN, &out->limit_w);
    if (!err)
        err = read_number(at, object, "clock_ratio", 1, &out->clock_ratio);
    if (!err)
        err = read_number(at, object, "memory_ratio", 1, &out->memory_ratio);
    if (!err)
        err = read_number(at, object, "energy_ratio", 1, &out->energy_ratio);
    if (!err)
        err = read_number(at, object, "idle_w", UNKNOWN, &out->idle_w);
    if (!err)
        err = read_line(at, object, "source", &out->source);
    return err;
}

static enum err read_points(const struct location *at, const struct jv *top,
                            struct storage *storage, struct hardware *out)
{
    const struct jv *list = jv_get(top, "points");
    if (jv_is_null(list))
        return ERR_OK;
    if (!jv_is_array(list) || jv_count(list) < 1 || jv_count(list) > POINTS_MAX)
        return refuse(at, "points", "must be an array of 1 to %d", POINTS_MAX);
    out->points = storage->points;
    for (const struct jv *object = jv_first(list); object; object = jv_next(object)) {
        char key[24];
        str_format(key, sizeof key, "points.%zu", out->point_count);
        struct location inner = inside(at, key);
        struct hardware_point *point = &storage->points[out->point_count];
        enum err err = read_point(&inner, object, point);
        if (err)
            return err;
        for (size_t i = 0; i < out->point_count; i++)
            if (str_equal_nocase(storage->points[i].name, point->name))
                return refuse(&inner, "name", "'%s' given more than once", point->name);
        out->point_count++;
    }
    return ERR_OK;
}

/* ---- a file ---- */

static enum err read_top(const struct location *at, struct storage *storage, struct hardware *out)
{
    static const char *const KEYS[] = {
        "id",    "name",      "vendor", "class",      "year",     "note",          "aliases",
        "match", "processor", "matrix", "vector",     "memories", "power",         "launch",
        "units", "link",      "points", "calibrated", "kind",     "compute_share", "memory_share",
    };
    const struct jv *top = storage->tree;
    enum err err = check_keys(at, top, KEYS, COUNT_OF(KEYS));
    if (!err && jv_get(top, "kind"))
        return refuse(at, "kind", "such a list is compiled into the program, not read");
    if (!err)
        err = read_identity(at, top, out);
    if (!err)
        err = read_names(at, top, storage, out);
    if (!err)
        err = read_units(at, top, "matrix", out->matrix_flops, out->matrix_joules);
    if (!err)
        err = read_units(at, top, "vector", out->vector_flops, out->vector_joules);
    if (!err)
        err = read_memories(at, top, out);
    if (!err)
        err = read_figures(at, top, out);
    if (!err)
        err = read_points(at, top, storage, out);
    return err;
}

enum err hardware_parse(const char *name, const char *bytes, size_t length, struct hardware *out,
                        struct error *why)
{
    struct location at = {name, NULL, "", why};
    struct error reason = {0};
    struct storage *storage = calloc(1, sizeof *storage);
    *out = (struct hardware){.storage = storage};
    if (!storage)
        return err_set(why, ERR_NO_MEMORY, "%s: out of memory", name);
    enum err err = jv_parse(bytes, length, &storage->tree, &reason);
    if (err)
        err_set(why, err, "%s: %s", name, reason.text);
    else
        err = read_top(&at, storage, out);
    if (err)
        hardware_release(out);
    return err;
}

enum err hardware_read(const char *path, struct hardware *out, struct error *why)
{
    struct text bytes = {0};
    struct error doubt = {0};
    *out = (struct hardware){0};
    enum err err = file_read(path, FILE_SMALL, &bytes, why);
    if (!err)
        err = hardware_parse(path, text_get(&bytes), bytes.length, out, why);
    text_release(&bytes);
    if (!err && hardware_check(out, &doubt) != ERR_OK) {
        (void)str_copy(out->doubt, sizeof out->doubt, doubt.text);
        log_warn("%.100s contradicts itself: %s", path, doubt.text);
    }
    return err;
}

void hardware_release(struct hardware *hardware)
{
    struct storage *storage = hardware->storage;
    if (storage)
        jv_free(storage->tree);
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

static void write_points(struct json *json, const struct hardware *hardware)
{
    if (!hardware->point_count)
        return;
    json_array(json, "points");
    for (size_t i = 0; i < hardware->point_count; i++) {
        const struct hardware_point *point = &hardware->points[i];
        json_object(json, NULL);
        json_string(json, "name", point->name);
        write_value(json, "limit_w", point->limit_w, 1);
        if (point->clock_ratio != 1)
            json_number(json, "clock_ratio", point->clock_ratio);
        if (point->memory_ratio != 1)
            json_number(json, "memory_ratio", point->memory_ratio);
        if (point->energy_ratio != 1)
            json_number(json, "energy_ratio", point->energy_ratio);
        write_value(json, "idle_w", point->idle_w, 1);
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
    if (is_known(hardware->limit_w.value) || is_known(hardware->idle_w.value)) {
        json_object(json, "power");
        write_figure(json, "limit", POWER, &hardware->limit_w);
        write_figure(json, "idle", POWER, &hardware->idle_w);
        json_object_end(json);
    }
    write_figure(json, "launch", TIME, &hardware->launch_s);
    write_figure(json, "units", COUNT, &hardware->units);
    write_figure(json, "compute_share", SHARE, &hardware->compute_share);
    write_figure(json, "memory_share", SHARE, &hardware->memory_share);
    if (is_known(hardware->link_bytes_per_s.value) || is_known(hardware->link_latency_s.value)) {
        json_object(json, "link");
        write_figure(json, "bandwidth", BANDWIDTH, &hardware->link_bytes_per_s);
        write_figure(json, "latency", TIME, &hardware->link_latency_s);
        json_object_end(json);
    }
    write_points(json, hardware);
    if (hardware->is_calibrated)
        json_bool(json, "calibrated", true);
    json_object_end(json);
}
