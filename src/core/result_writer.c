/* A result filled through a JSON writer: every function that writes a struct as JSON also adds it to a result, under the
 * same keys. */
#include <string.h>

#include "core/json.h"
#include "core/result.h"
#include "core/text.h"

static const struct {
    const char *end, *unit;
} UNITS[] = {
    {"_per_s", ""},    {"joules", "J"},
    {"_j", "J"},       {"watts", "W"},
    {"_w", "W"},       {"_ms", "ms"},
    {"_s", "s"},       {"seconds", "s"},
    {"coverage", "%"}, {"plus_minus_statistical", "J"},
};

static const char *find_unit(const char *key)
{
    for (size_t i = 0; key && i < COUNT_OF(UNITS); i++)
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
    if (!unit)
        unit = find_unit((open_group(result))->key);
    return unit ? unit : "";
}

/* The number whose error has this key: "plus_minus" follows it, "X_plus_minus" is that of X. */
static const struct result_item *number_of(const struct result *result, const char *key)
{
    static const char ERROR[] = "plus_minus";
    const struct result_item *group = open_group(result), *last = &result->items[result->count - 1];
    char of[RESULT_KEY_MAX];
    if (!key || !str_ends(key, ERROR))
        return NULL;
    size_t length = strlen(key) - strlen(ERROR);
    if (!length)
        return last > group && last->kind == RESULT_NUMBER && last->key ? last : NULL;
    chars_format(of, "%.*s", (int)length - 1, key);
    return result_get(group, of);
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
    struct result *result = to;
    const struct result_item *of = number_of(result, key);
    if (of)
        result_uncertain(result, of->key, value);
    result_number(result, key, value, of ? of->unit : unit_of(result, key));
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
