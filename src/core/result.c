#include "core/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/secret.h"
#include "core/units.h"
#include "core/xalloc.h"

void result_release(struct result *result)
{
    free(result->items);
    free(result->open);
    text_release(&result->notes);
    text_release(&result->warnings);
    arena_release(&result->strings);
    *result = (struct result){0};
}

/* ---- adding ---- */

static char *keep_string(struct result *result, const char *string)
{
    return string ? arena_string(&result->strings, string, strlen(string)) : NULL;
}

static void add(struct result *result, enum result_kind kind, const char *key, double number,
                const char *unit)
{
    struct result_item *items =
        xgrow(result->items, &result->capacity, result->count, sizeof *items);
    result->items = items;
    items[result->count] = (struct result_item){.kind = kind,
                                                .key = keep_string(result, key),
                                                .number = number,
                                                .error = UNKNOWN,
                                                .low = UNKNOWN,
                                                .high = UNKNOWN,
                                                .queries = UNKNOWN,
                                                .unit = unit,
                                                .length = 1};
    result->count++;
    for (size_t i = 0; i < result->depth; i++) /* consistent while it grows */
        items[result->open[i]].length++;
}

static void open_item(struct result *result, enum result_kind kind, const char *key)
{
    add(result, kind, key, UNKNOWN, "");
    *XADD(result->open, result->depth, result->open_capacity) = result->count - 1;
}

void result_begin(struct result *result, const char *name)
{
    result->name = name;
    open_item(result, RESULT_GROUP, NULL);
}

void result_begin_list(struct result *result, const char *name)
{
    result->name = name;
    open_item(result, RESULT_LIST, NULL);
}

void result_group(struct result *result, const char *key)
{
    open_item(result, RESULT_GROUP, key);
}

void result_list(struct result *result, const char *key)
{
    open_item(result, RESULT_LIST, key);
}

void result_aside(struct result *result, const char *key)
{
    open_item(result, RESULT_ASIDE, key);
}

void result_end(struct result *result)
{
    result->depth--;
}

void result_number(struct result *result, const char *key, double value, const char *unit)
{
    add(result, RESULT_NUMBER, key, value, unit);
}

void result_integer(struct result *result, const char *key, int64_t value)
{
    add(result, RESULT_COUNT, key, (double)value, "");
    result->items[result->count - 1].integer = value;
}

void result_count(struct result *result, const char *key, size_t count)
{
    result_integer(result, key, (int64_t)count);
}

void result_count_one(struct result *result, const char *path)
{
    const struct result_item *found = result_find(result, path);
    if (!found)
        return;
    struct result_item *count = &result->items[found - result->items];
    count->integer++;
    count->number = (double)count->integer;
}

static void add_text(struct result *result, enum result_kind kind, const char *key,
                     const char *text)
{
    add(result, kind, key, UNKNOWN, "");
    result->items[result->count - 1].text = keep_string(result, text);
}

void result_text(struct result *result, const char *key, const char *text)
{
    add_text(result, RESULT_TEXT, key, text);
}

void result_json(struct result *result, const char *key, const char *json)
{
    add_text(result, json ? RESULT_JSON : RESULT_NULL, key, json);
}

void result_null(struct result *result, const char *key)
{
    add(result, RESULT_NULL, key, UNKNOWN, "");
}

void result_numbers(struct result *result, const char *key, const double *values, size_t count,
                    const char *unit)
{
    result_list(result, key);
    for (size_t i = 0; i < count; i++)
        result_number(result, NULL, values[i], unit);
    result_end(result);
}

void result_optional_number(struct result *result, const char *key, double value, const char *unit)
{
    if (is_known(value))
        result_number(result, key, value, unit);
}

void result_optional_text(struct result *result, const char *key, const char *text)
{
    if (text)
        result_text(result, key, text);
}

void result_flag(struct result *result, const char *key, bool value)
{
    add(result, RESULT_FLAG, key, value, "");
}

/* The figure with this key in the open group; NULL if there is none. */
static struct result_item *figure(struct result *result, const char *key)
{
    const struct result_item *group = &result->items[result->open[result->depth - 1]];
    const struct result_item *found = result_get(group, key);
    return found ? &result->items[found - result->items] : NULL;
}

void result_error(struct result *result, const char *key, double error)
{
    result_uncertain(result, key, error);
    add(result, RESULT_ERROR, key, error, "");
}

void result_uncertain(struct result *result, const char *key, double error)
{
    struct result_item *of = figure(result, key);
    if (of)
        of->error = error;
}

void result_measured(struct result *result, const char *key, double value, const char *error_key,
                     double error, const char *unit)
{
    result_number(result, key, value, unit);
    result_uncertain(result, key, error);
    result_number(result, error_key, error, unit);
}

void result_between(struct result *result, const char *key, double low, double high)
{
    struct result_item *of = figure(result, key);
    if (of) {
        of->low = low;
        of->high = high;
    }
}

void result_interval(struct result *result, const char *key, double low, double high)
{
    add(result, RESULT_INTERVAL, key, UNKNOWN, "");
    result_between(result, key, low, high);
}

void result_queries(struct result *result, const char *key, size_t count)
{
    struct result_item *of = figure(result, key);
    if (of)
        of->queries = (double)count;
    add(result, RESULT_QUERIES, key, (double)count, "");
}

void result_figure(struct result *result, const char *key, double value, double error,
                   const char *unit)
{
    result_number(result, key, value, unit);
    result_error(result, key, error);
}

void result_table(struct result *result, const char *path, const struct result_column *columns)
{
    result->rows = path;
    result->columns = columns;
}

/* ---- members of structs ---- */

void result_members(struct result *result, const struct result_member *members, const void *object)
{
    for (; members->key; members++)
        result_number(result, members->key,
                      *(const double *)(const void *)((const char *)object + members->offset),
                      members->unit);
}

/* ---- secrets ---- */

/* In place: a mark is shorter than any secret. */
void result_hide_secrets(struct result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        const struct result_item *item = &result->items[i];
        struct text json = {0};
        if (!item->text)
            continue;
        if (item->kind == RESULT_TEXT) {
            secret_hide_value(item->text);
        } else {
            text_add(&json, item->text);
            secret_hide_json(&json);
            str_copy(item->text, strlen(item->text) + 1, text_get(&json));
        }
        text_release(&json);
    }
}

/* ---- lines ---- */

void result_add_line(struct text *lines, const char *format, ...)
{
    char line[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_add_bytes(lines, line, strlen(line) + 1);
}

/* ---- reading ---- */

const struct result_item *result_first(const struct result_item *of)
{
    return of && of->length > 1 ? of + 1 : NULL;
}

const struct result_item *result_next(const struct result_item *of, const struct result_item *item)
{
    item += item->length;
    return item < of + of->length ? item : NULL;
}

const struct result_item *result_get(const struct result_item *group, const char *key)
{
    RESULT_EACH (item, group)
        if (item->key && result_is_figure(item) && str_equal(item->key, key))
            return item;
    return NULL;
}

size_t result_length(const struct result_item *of)
{
    size_t length = 0;
    RESULT_EACH (item, of)
        length++;
    return length;
}

/* "12" in a list is its item 12. */
static const struct result_item *item_at(const struct result_item *list, const char *index)
{
    size_t left = 0;
    for (const char *digit = index; *digit; digit++) {
        if (*digit < '0' || *digit > '9')
            return NULL;
        left = 10 * left + (size_t)(*digit - '0');
    }
    const struct result_item *item = result_first(list);
    for (; item && left; left--)
        item = result_next(list, item);
    return item;
}

const struct result_item *result_at(const struct result_item *from, const char *path)
{
    char name[RESULT_KEY_MAX];
    for (size_t length; from && *path; path += length + (path[length] == '.')) {
        length = strcspn(path, ".");
        chars_format(name, "%.*s", (int)length, path);
        from = from->kind == RESULT_LIST ? item_at(from, name) : result_get(from, name);
    }
    return from;
}

const struct result_item *result_find(const struct result *result, const char *path)
{
    return result_at(result->items, path);
}

bool result_is_known(const struct result_item *item)
{
    return item && (is_known(item->number) || item->text);
}

bool result_is_figure(const struct result_item *item)
{
    return item->kind < RESULT_ERROR;
}

const char *result_string(const struct result_item *item)
{
    return item ? item->text : NULL;
}

double result_value(const struct result_item *item)
{
    return item ? item->number : UNKNOWN;
}

double result_number_at(const struct result_item *from, const char *path)
{
    return result_value(result_at(from, path));
}

const char *result_text_at(const struct result_item *from, const char *path)
{
    return text_or_empty(result_string(result_at(from, path)));
}

bool result_flag_at(const struct result_item *from, const char *path)
{
    return result_number_at(from, path) == 1;
}

const char *result_line(const struct text *lines, const char *line)
{
    const char *next = line ? line + strlen(line) + 1 : lines->bytes;
    return lines->length && next < lines->bytes + lines->length ? next : NULL;
}
