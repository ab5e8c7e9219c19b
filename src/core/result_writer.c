/* A result filled through a JSON writer: every function that writes a struct as JSON also adds it to a result, under the
 * same keys. */
#include <string.h>

#include "core/json.h"
#include "core/result.h"
#include "core/text.h"

static const struct {
    const char *end, *unit;
} UNITS[] = {
    {"_per_s", ""}, {"joules", "J"}, {"_j", "J"}, {"watts", "W"},
    {"_w", "W"},    {"_ms", "ms"},   {"_s", "s"}, {"seconds", "s"},
};

static const char *find_unit(const char *key)
{
    for (size_t i = 0; key && i < sizeof UNITS / sizeof *UNITS; i++)
        if (str_ends(key, UNITS[i].end))
            return UNITS[i].unit;
    return NULL;
}

static const struct result_item *open_group(const struct result *result)
{
    return &result->items[result->open[result->depth - 1]];
}

/* By its key, else by that of its group. */
static const char *unit_of(const struct result *result, const char *key)
{
    const char *unit = find_unit(key);
    if (!unit && !result->failed)
        unit = find_unit(result_key(result, open_group(result)));
    return unit ? unit : "";
}

/* Key of the number that was added last, if it is in the open group. */
static const char *key_before(const struct result *result)
{
    const struct result_item *last = &result->items[result->count - 1];
    bool is_inside = last > open_group(result) && last->kind == RESULT_NUMBER;
    return is_inside ? result_key(result, last) : NULL;
}

static void set_error(struct result *result, const char *key, double error)
{
    static const char ERROR[] = "plus_minus";
    char of[RESULT_KEY_MAX];
    if (result->failed || !key || !str_ends(key, ERROR))
        return;
    size_t length = strlen(key) - strlen(ERROR);
    const char *before = length ? NULL : key_before(result);
    str_format(of, sizeof of, "%.*s", (int)(length ? length - 1 : 0), key);
    if (before)
        str_copy(of, sizeof of, before);
    if (of[0])
        result_uncertain(result, of, error);
}

/* ---- the target ---- */

static void open_nest(void *to, const char *key, bool is_array)
{
    if (is_array)
        result_list(to, key);
    else
        result_group(to, key);
}

static void close_nest(void *to)
{
    result_end(to);
}

static void put_string(void *to, const char *key, const char *value)
{
    result_text(to, key, value);
}

static void put_number(void *to, const char *key, double value)
{
    set_error(to, key, value);
    result_number(to, key, value, unit_of(to, key));
}

static void put_integer(void *to, const char *key, int64_t value)
{
    result_integer(to, key, value);
}

static void put_flag(void *to, const char *key, bool value)
{
    result_flag(to, key, value);
}

static void put_null(void *to, const char *key)
{
    result_null(to, key);
}

static void put_raw(void *to, const char *key, const char *value)
{
    result_json(to, key, value);
}

static const struct json_target TARGET = {
    .open = open_nest,
    .close = close_nest,
    .string = put_string,
    .number = put_number,
    .integer = put_integer,
    .flag = put_flag,
    .null = put_null,
    .raw = put_raw,
};

void result_writer(struct result *result, struct json *json)
{
    *json = (struct json){.target = &TARGET, .to = result};
}
