#include "catalog/hardware_entry.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/registry.h"
#include "core/text.h"
#include "port/json_read.h"

enum { PATH_MAX_BYTES = 120, PROBLEM_MAX = 200, UNITS_MAX = 5, SOURCE_MAX = 240 };

#define NUMBER_MAX 1e5 /* watts and ratios of a point */

struct unit {
    const char *name;
    double factor; /* to SI */
};

static const struct {
    struct unit units[UNITS_MAX];
    bool may_be_zero;
    double at_most; /* in SI: beyond any device; catches a wrong unit */
} QUANTITIES[] = {
    [ENTRY_RATE] = {{{"tflops", 1e12}, {"tops", 1e12}, {"gflops", 1e9}}, false, 1e19},
    [ENTRY_BANDWIDTH] = {{{"gb_per_s", 1e9}, {"tb_per_s", 1e12}, {"mb_per_s", 1e6}}, false, 1e16},
    [ENTRY_CAPACITY] = {{{"gib", 1024.0 * 1024 * 1024},
                         {"mib", 1024.0 * 1024},
                         {"kib", 1024},
                         {"gb", 1e9},
                         {"mb", 1e6}},
                        false,
                        1e15},
    [ENTRY_ENERGY] = {{{"pj", 1e-12}, {"nj", 1e-9}}, false, 1e-6},
    [ENTRY_POWER] = {{{"w", 1}, {"mw", 1e-3}}, false, 1e5},
    [ENTRY_TIME] = {{{"us", 1e-6}, {"ns", 1e-9}, {"ms", 1e-3}}, true, 10},
    [ENTRY_COUNT] = {{{0}}, false, 1e7},
    [ENTRY_SHARE] = {{{0}}, false, 1},
};

struct entry entry_inside(const struct entry *outer, const char *key)
{
    return (struct entry){outer->file, outer, key, outer->why};
}

/* "matrix.bf16.": the keys from the top down to here. */
static void add_path(const struct entry *at, char *to, size_t size)
{
    if (!at->outer)
        return;
    add_path(at->outer, to, size);
    size_t length = strlen(to);
    if (length < size)
        str_format(to + length, size - length, "%s.", at->key);
}

enum err entry_refuse(const struct entry *at, const char *key, const char *format, ...)
{
    char path[PATH_MAX_BYTES] = "", problem[PROBLEM_MAX];
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

enum err entry_keys(const struct entry *at, const struct jv *object, const char *const *known,
                    size_t count)
{
    if (!jv_is_object(object))
        return entry_refuse(at, "", "must be an object");
    for (const struct jv *child = jv_first(object); child; child = jv_next(child)) {
        const char *key = jv_key(child);
        bool found = false;
        for (size_t i = 0; i < count && !found; i++)
            found = !strcmp(key, known[i]);
        if (!found) {
            const char *near = nearest_name(key, known, count);
            return near ? entry_refuse(at, key, "no such key: did you mean '%s'?", near)
                        : entry_refuse(at, key, "no such key: see docs/formats.md");
        }
        if (jv_get(object, key) != child)
            return entry_refuse(at, key, "stands twice");
    }
    return ERR_OK;
}

static bool is_line(const char *text)
{
    return text[0] && strlen(text) <= SOURCE_MAX && str_is_plain(text);
}

enum err entry_line(const struct entry *at, const struct jv *object, const char *key,
                    const char **out)
{
    const struct jv *value = jv_get(object, key);
    *out = jv_text(value);
    if (jv_is_null(value))
        return entry_refuse(at, key, "is missing");
    if (!*out || !is_line(*out))
        return entry_refuse(at, key,
                            "must be one line of text without control characters, 1 to %d bytes",
                            SOURCE_MAX);
    return ERR_OK;
}

enum err entry_word(const struct entry *at, const struct jv *object, const char *key,
                    const char *const *names, size_t count, size_t *out)
{
    const char *word;
    struct text all = {0};
    enum err err = entry_line(at, object, key, &word);
    if (err)
        return err;
    for (*out = 0; *out < count; ++*out) {
        if (!strcmp(word, names[*out])) {
            text_release(&all);
            return ERR_OK;
        }
        text_addf(&all, "%s%s", *out ? ", " : "", names[*out]);
    }
    const char *near = nearest_name(word, names, count);
    err = near ? entry_refuse(at, key, "no '%s': did you mean '%s'?", word, near)
               : entry_refuse(at, key, "no '%s': must be one of %s", word, text_get(&all));
    text_release(&all);
    return err;
}

static enum err read_unit(const struct entry *at, const struct jv *object,
                          enum entry_quantity quantity, double *factor)
{
    const struct unit *units = QUANTITIES[quantity].units;
    const char *names[UNITS_MAX];
    size_t count = 0, place;
    for (; count < UNITS_MAX && units[count].name; count++)
        names[count] = units[count].name;
    *factor = 1;
    if (!count)
        return jv_get(object, "unit") ? entry_refuse(at, "unit", "this figure has no unit")
                                      : ERR_OK;
    enum err err = entry_word(at, object, "unit", names, count, &place);
    if (!err)
        *factor = units[place].factor;
    return err;
}

static enum err read_value(const struct entry *at, const struct jv *object, double factor,
                           enum entry_quantity quantity, struct hardware_figure *out)
{
    const struct jv *value = jv_get(object, "value"), *error = jv_get(object, "plus_minus");
    double number = jv_number(value), at_most = QUANTITIES[quantity].at_most;
    if (jv_is_null(value))
        return entry_refuse(at, "value", "is missing: leave out the figure that nobody knows");
    if (!is_known(number))
        return entry_refuse(at, "value", "must be a finite number");
    if (number < 0 || (number == 0 && !QUANTITIES[quantity].may_be_zero))
        return entry_refuse(at, "value", "must be above 0, not %g", number);
    if (number * factor > at_most)
        return entry_refuse(at, "value", "%g is above %g: a wrong unit?", number, at_most / factor);
    if (quantity == ENTRY_COUNT && number < 1)
        return entry_refuse(at, "value", "must be 1 or more, not %g", number);
    out->value = number * factor;
    out->plus_minus = UNKNOWN;
    if (jv_is_null(error))
        return ERR_OK;
    out->plus_minus = jv_number(error) * factor;
    if (!is_known(out->plus_minus) || out->plus_minus < 0)
        return entry_refuse(at, "plus_minus", "must be a number, 0 or more");
    return ERR_OK;
}

enum err entry_figure(const struct entry *outer, const struct jv *object, const char *key,
                      enum entry_quantity quantity, struct hardware_figure *out)
{
    static const char *const KEYS[] = {"value", "unit", "evidence", "plus_minus", "source"};
    const struct jv *figure = jv_get(object, key);
    const char *names[EVIDENCE_COUNT];
    double factor;
    size_t evidence = 0;
    *out = (struct hardware_figure){.value = UNKNOWN, .plus_minus = UNKNOWN};
    if (jv_is_null(figure))
        return ERR_OK;
    struct entry at = entry_inside(outer, key);
    for (size_t i = 0; i < EVIDENCE_COUNT; i++)
        names[i] = evidence_name((enum evidence)i);
    enum err err = entry_keys(&at, figure, KEYS, sizeof KEYS / sizeof *KEYS);
    if (!err)
        err = read_unit(&at, figure, quantity, &factor);
    if (!err)
        err = read_value(&at, figure, factor, quantity, out);
    if (!err)
        err = entry_word(&at, figure, "evidence", names, EVIDENCE_COUNT, &evidence);
    if (!err)
        err = entry_line(&at, figure, "source", &out->source);
    out->evidence = (enum evidence)evidence;
    return err;
}

enum err entry_number(const struct entry *at, const struct jv *object, const char *key,
                      double otherwise, double *out)
{
    const struct jv *value = jv_get(object, key);
    *out = otherwise;
    if (jv_is_null(value))
        return ERR_OK;
    *out = jv_number(value);
    if (!is_known(*out) || *out <= 0 || *out > NUMBER_MAX)
        return entry_refuse(at, key, "must be a number above 0, at most %g", NUMBER_MAX);
    return ERR_OK;
}
