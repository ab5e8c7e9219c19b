#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/hardware.h"
#include "catalog/hardware_entry.h"
#include "core/log.h"
#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum { MEMORIES_MAX = 8, POINTS_MAX = 16, ALIASES_MAX = 32 };

static const struct hardware_figure NO_FIGURE = {.value = UNKNOWN, .plus_minus = UNKNOWN};

/* ---- who it is ---- */

static bool is_id(const char *id, size_t room)
{
    size_t length = strlen(id);
    for (size_t i = 0; i < length; i++)
        if (!islower((unsigned char)id[i]) && !isdigit((unsigned char)id[i]) && id[i] != '-')
            return false;
    return length > 0 && length < room;
}

static enum err copy_line(const struct entry *at, const struct jv *object, const char *key,
                          char *to, size_t size)
{
    const char *line;
    enum err err = entry_line(at, object, key, &line);
    if (!err && !str_copy(to, size, line))
        return entry_refuse(at, key, "must be shorter than %zu bytes", size);
    return err;
}

static enum err read_year(const struct entry *at, const struct jv *top, int *out)
{
    int64_t year;
    *out = 0;
    if (jv_is_null(jv_get(top, "year")))
        return ERR_OK;
    if (!jv_integer(jv_get(top, "year"), &year) || year < 1990 || year > 2100)
        return entry_refuse(at, "year", "must be a year, 1990 to 2100");
    *out = (int)year;
    return ERR_OK;
}

static enum err read_names(const struct entry *at, const struct jv *top, struct hardware *out)
{
    const char *classes[HARDWARE_CLASS_COUNT];
    size_t class = 0;
    const struct jv *calibrated = jv_get(top, "calibrated");
    for (size_t i = 0; i < HARDWARE_CLASS_COUNT; i++)
        classes[i] = hardware_class_name((enum hardware_class)i);
    enum err err = copy_line(at, top, "id", out->id, sizeof out->id);
    if (!err && !is_id(out->id, sizeof out->id))
        return entry_refuse(at, "id", "must be small letters, digits and dashes");
    if (!err)
        err = copy_line(at, top, "name", out->name, sizeof out->name);
    if (!err)
        err = copy_line(at, top, "vendor", out->vendor, sizeof out->vendor);
    if (!err)
        err = entry_word(at, top, "class", classes, HARDWARE_CLASS_COUNT, &class);
    if (!err)
        err = read_year(at, top, &out->year);
    if (!err && calibrated && !jv_is_bool(calibrated))
        return entry_refuse(at, "calibrated", "must be true or false");
    out->class = (enum hardware_class) class;
    out->is_calibrated = jv_truth(calibrated, false);
    return err;
}

static enum err read_aliases(const struct entry *at, const struct jv *top, struct hardware *out)
{
    const struct jv *aliases = jv_get(top, "aliases");
    size_t count = 0;
    if (!jv_is_null(aliases) && (!jv_is_array(aliases) || jv_count(aliases) > ALIASES_MAX))
        return entry_refuse(at, "aliases", "must be an array of at most %d names", ALIASES_MAX);
    out->aliases = calloc(jv_count(aliases) + 1, sizeof *out->aliases);
    if (!out->aliases)
        return err_set(at->why, ERR_NO_MEMORY, "%s: out of memory", at->file);
    for (const struct jv *alias = jv_first(aliases); alias; alias = jv_next(alias)) {
        out->aliases[count] = jv_text(alias);
        /* What the catalogue looks for in the text of the file stands there as it is. */
        if (!out->aliases[count] || !out->aliases[count][0] || !str_is_plain(out->aliases[count]) ||
            strpbrk(out->aliases[count], "\"\\]"))
            return entry_refuse(at, "aliases", "must be names, without \", \\ and ]");
        count++;
    }
    return ERR_OK;
}

/* ---- what it can do ---- */

static enum err read_unit_formats(const struct entry *top_at, const struct jv *top, const char *key,
                                  struct hardware_figure *flops, struct hardware_figure *joules)
{
    static const char *const KEYS[] = {"peak", "energy"};
    const char *names[PRECISION_COUNT];
    const struct jv *formats = jv_get(top, key);
    struct entry at = entry_inside(top_at, key);
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        names[i] = precision_name((enum precision)i);
        flops[i] = joules[i] = NO_FIGURE;
    }
    if (jv_is_null(formats))
        return ERR_OK;
    enum err err = entry_keys(&at, formats, names, PRECISION_COUNT);
    for (size_t i = 0; i < PRECISION_COUNT && !err; i++) {
        const struct jv *format = jv_get(formats, names[i]);
        if (!format)
            continue;
        struct entry inner = entry_inside(&at, names[i]);
        err = entry_keys(&inner, format, KEYS, COUNT_OF(KEYS));
        if (!err)
            err = entry_figure(&inner, format, "peak", ENTRY_RATE, &flops[i]);
        if (!err)
            err = entry_figure(&inner, format, "energy", ENTRY_ENERGY, &joules[i]);
        if (!err && !is_known(flops[i].value))
            return entry_refuse(&inner, "peak", "is missing");
    }
    return err;
}

static enum err read_memory(const struct entry *at, const struct jv *object,
                            struct hardware_memory *out)
{
    static const char *const KEYS[] = {"name", "bandwidth", "capacity", "energy"};
    enum err err = entry_keys(at, object, KEYS, COUNT_OF(KEYS));
    if (!err)
        err = entry_line(at, object, "name", &out->name);
    if (!err)
        err = entry_figure(at, object, "bandwidth", ENTRY_BANDWIDTH, &out->bytes_per_s);
    if (!err)
        err = entry_figure(at, object, "capacity", ENTRY_CAPACITY, &out->capacity_bytes);
    if (!err)
        err = entry_figure(at, object, "energy", ENTRY_ENERGY, &out->joules_per_byte);
    return err;
}

static enum err read_memories(const struct entry *at, const struct jv *top, struct hardware *out)
{
    const struct jv *list = jv_get(top, "memories");
    if (!jv_is_array(list) || jv_count(list) < 1 || jv_count(list) > MEMORIES_MAX)
        return entry_refuse(at, "memories", "must be an array of 1 to %d, the nearest first",
                            MEMORIES_MAX);
    out->memories = calloc(jv_count(list), sizeof *out->memories);
    if (!out->memories)
        return err_set(at->why, ERR_NO_MEMORY, "%s: out of memory", at->file);
    for (const struct jv *memory = jv_first(list); memory; memory = jv_next(memory)) {
        char key[24];
        str_format(key, sizeof key, "memories.%zu", out->memory_count);
        struct entry inner = entry_inside(at, key);
        enum err err = read_memory(&inner, memory, &out->memories[out->memory_count++]);
        if (err)
            return err;
    }
    if (!is_known(hardware_main_memory(out)->bytes_per_s.value))
        return entry_refuse(at, "memories", "the last one must have its bandwidth");
    return ERR_OK;
}

/* The figures of an object of its own, such as power: {"limit", "idle"}. */
static enum err read_pair(const struct entry *top_at, const struct jv *top, const char *key,
                          const char *const *names, const enum entry_quantity *quantities,
                          struct hardware_figure *const *out)
{
    const struct jv *object = jv_get(top, key);
    struct entry at = entry_inside(top_at, key);
    *out[0] = *out[1] = NO_FIGURE;
    if (jv_is_null(object))
        return ERR_OK;
    enum err err = entry_keys(&at, object, names, 2);
    for (size_t i = 0; i < 2 && !err; i++)
        err = entry_figure(&at, object, names[i], quantities[i], out[i]);
    return err;
}

static enum err read_pairs(const struct entry *at, const struct jv *top, struct hardware *out)
{
    static const char *const POWER[] = {"limit", "idle"}, *const LINK[] = {"bandwidth", "latency"};
    enum err err =
        read_pair(at, top, "power", POWER, (enum entry_quantity[]){ENTRY_POWER, ENTRY_POWER},
                  (struct hardware_figure *[]){&out->limit_w, &out->idle_w});
    if (!err)
        err = read_pair(at, top, "link", LINK, (enum entry_quantity[]){ENTRY_BANDWIDTH, ENTRY_TIME},
                        (struct hardware_figure *[]){&out->link_bytes_per_s, &out->link_latency_s});
    return err;
}

static enum err read_figures(const struct entry *at, const struct jv *top, struct hardware *out)
{
    const struct {
        const char *key;
        enum entry_quantity quantity;
        struct hardware_figure *figure;
    } FIGURES[] = {
        {"launch", ENTRY_TIME, &out->launch_s},
        {"units", ENTRY_COUNT, &out->units},
        {"compute_share", ENTRY_SHARE, &out->compute_share},
        {"memory_share", ENTRY_SHARE, &out->memory_share},
    };
    enum err err = read_unit_formats(at, top, "matrix", out->matrix_flops, out->matrix_joules);
    if (!err)
        err = read_unit_formats(at, top, "vector", out->vector_flops, out->vector_joules);
    if (!err)
        err = read_memories(at, top, out);
    if (!err)
        err = read_pairs(at, top, out);
    for (size_t i = 0; i < COUNT_OF(FIGURES) && !err; i++)
        err = entry_figure(at, top, FIGURES[i].key, FIGURES[i].quantity, FIGURES[i].figure);
    return err;
}

/* ---- how it may be run ---- */

static enum err read_point(const struct entry *at, const struct jv *object,
                           struct hardware_point *out)
{
    static const char *const KEYS[] = {"name",         "limit_w", "clock_ratio", "memory_ratio",
                                       "energy_ratio", "idle_w",  "source"};
    enum err err = entry_keys(at, object, KEYS, COUNT_OF(KEYS));
    if (!err)
        err = entry_line(at, object, "name", &out->name);
    if (!err && strchr(out->name, '@'))
        return entry_refuse(at, "name", "must not hold '@'");
    if (!err)
        err = entry_number(at, object, "limit_w", UNKNOWN, &out->limit_w);
    if (!err)
        err = entry_number(at, object, "clock_ratio", 1, &out->clock_ratio);
    if (!err)
        err = entry_number(at, object, "memory_ratio", 1, &out->memory_ratio);
    if (!err)
        err = entry_number(at, object, "energy_ratio", 1, &out->energy_ratio);
    if (!err)
        err = entry_number(at, object, "idle_w", UNKNOWN, &out->idle_w);
    if (!err)
        err = entry_line(at, object, "source", &out->source);
    return err;
}

static enum err read_points(const struct entry *at, const struct jv *top, struct hardware *out)
{
    const struct jv *list = jv_get(top, "points");
    if (jv_is_null(list))
        return ERR_OK;
    if (!jv_is_array(list) || jv_count(list) < 1 || jv_count(list) > POINTS_MAX)
        return entry_refuse(at, "points", "must be an array of 1 to %d", POINTS_MAX);
    out->points = calloc(jv_count(list), sizeof *out->points);
    if (!out->points)
        return err_set(at->why, ERR_NO_MEMORY, "%s: out of memory", at->file);
    for (const struct jv *point = jv_first(list); point; point = jv_next(point)) {
        char key[24];
        str_format(key, sizeof key, "points.%zu", out->point_count);
        struct entry inner = entry_inside(at, key);
        struct hardware_point *place = &out->points[out->point_count];
        enum err err = read_point(&inner, point, place);
        if (err)
            return err;
        for (size_t i = 0; i < out->point_count; i++)
            if (str_equal_nocase(out->points[i].name, place->name))
                return entry_refuse(&inner, "name", "'%s' stands twice", place->name);
        out->point_count++;
    }
    return ERR_OK;
}

/* ---- a file ---- */

static enum err read_top(const struct entry *at, const struct jv *top, struct hardware *out)
{
    static const char *const KEYS[] = {
        "id",      "name",          "vendor",       "class",    "year",   "note",
        "aliases", "matrix",        "vector",       "memories", "power",  "launch",
        "units",   "compute_share", "memory_share", "link",     "points", "calibrated"};
    const char *note;
    enum err err = entry_keys(at, top, KEYS, COUNT_OF(KEYS));
    if (!err && jv_get(top, "note"))
        err = entry_line(at, top, "note", &note);
    if (!err)
        err = read_names(at, top, out);
    if (!err)
        err = read_aliases(at, top, out);
    if (!err)
        err = read_figures(at, top, out);
    if (!err)
        err = read_points(at, top, out);
    return err;
}

enum err hardware_parse(const char *name, const char *bytes, size_t length, struct hardware *out,
                        struct error *why)
{
    struct entry at = {name, NULL, "", why};
    struct error reason = {0};
    struct jv *tree = NULL;
    *out = (struct hardware){0};
    enum err err = jv_parse(bytes, length, &tree, &reason);
    if (err)
        return err_set(why, err, "%s: %s", name, reason.text);
    out->text = tree;
    err = read_top(&at, tree, out);
    if (err)
        hardware_release(out);
    return err;
}

enum err hardware_read(const char *path, struct hardware *out, struct error *why)
{
    struct text bytes = {0};
    *out = (struct hardware){0};
    enum err err = file_read(path, FILE_SMALL, &bytes, why);
    if (!err)
        err = hardware_parse(path, text_get(&bytes), bytes.length, out, why);
    text_release(&bytes);
    struct error doubt = {0};
    if (!err && hardware_check(out, &doubt) != ERR_OK) {
        (void)str_copy(out->doubt, sizeof out->doubt, doubt.text);
        log_warn("%.100s contradicts itself: %s", path, doubt.text);
    }
    return err;
}

void hardware_release(struct hardware *hardware)
{
    jv_free(hardware->text);
    free(hardware->memories);
    free(hardware->points);
    free(hardware->aliases);
    *hardware = (struct hardware){0};
}
