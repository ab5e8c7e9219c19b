#include "analysis/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/json.h"
#include "core/units.h"

void result_release(struct result *result)
{
    free(result->items);
    text_release(&result->notes);
    text_release(&result->warnings);
    text_release(&result->strings);
    *result = (struct result){0};
}

/* ---- adding: no-ops once out of memory ---- */

static size_t keep_string(struct result *result, const char *string)
{
    if (!string)
        return 0;
    if (!result->strings.length)
        text_add_bytes(&result->strings, "", 1); /* offset 0 means none */
    size_t at = result->strings.length;
    text_add_bytes(&result->strings, string, strlen(string) + 1);
    result->failed = result->failed || result->strings.failed;
    return at;
}

static void add(struct result *result, enum result_kind kind, const char *key, double number,
                const char *unit)
{
    struct result_item *items = NULL;
    if (!result->failed)
        items = grow(result->items, &result->capacity, result->count, sizeof *items);
    if (!items) {
        result->failed = true;
        return;
    }
    result->items = items;
    items[result->count] = (struct result_item){.kind = kind,
                                                .key = keep_string(result, key),
                                                .number = number,
                                                .error = UNKNOWN,
                                                .low = UNKNOWN,
                                                .high = UNKNOWN,
                                                .queries = UNKNOWN,
                                                .unit = unit,
                                                .end = result->count + 1};
    result->count++;
    for (size_t i = 0; i < result->depth; i++) /* consistent while it grows */
        items[result->open[i]].end = result->count;
}

static void open_item(struct result *result, enum result_kind kind, const char *key)
{
    add(result, kind, key, UNKNOWN, "");
    if (result->depth == RESULT_DEPTH)
        result->failed = true; /* nesting is fixed by our own code: no result is deeper */
    if (!result->failed)
        result->open[result->depth++] = result->count - 1;
}

void result_group(struct result *result, const char *key)
{
    open_item(result, RESULT_GROUP, key);
}

void result_list(struct result *result, const char *key)
{
    open_item(result, RESULT_LIST, key);
}

void result_end(struct result *result)
{
    if (!result->failed)
        result->depth--;
}

void result_number(struct result *result, const char *key, double value, const char *unit)
{
    add(result, RESULT_NUMBER, key, value, unit);
}

void result_count(struct result *result, const char *key, size_t count)
{
    add(result, RESULT_COUNT, key, (double)count, "");
}

void result_count_one(struct result *result, const char *path)
{
    const struct result_item *found = result_find(result, path);
    if (found)
        result->items[found - result->items].number++;
}

void result_text(struct result *result, const char *key, const char *text)
{
    add(result, RESULT_TEXT, key, UNKNOWN, "");
    size_t at = keep_string(result, text);
    if (!result->failed)
        result->items[result->count - 1].text = at;
}

void result_flag(struct result *result, const char *key, bool value)
{
    add(result, RESULT_FLAG, key, value, "");
}

/* The figure with this key in the open group; NULL if out of memory. */
static struct result_item *figure(struct result *result, const char *key)
{
    if (result->failed)
        return NULL;
    const struct result_item *group = &result->items[result->open[result->depth - 1]],
                             *found = result_get(result, group, key);
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

void result_interval(struct result *result, const char *key, double low, double high)
{
    add(result, RESULT_INTERVAL, key, UNKNOWN, "");
    struct result_item *of = figure(result, key);
    if (of) {
        of->low = low;
        of->high = high;
    }
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

const struct result_item *result_first(const struct result *result, const struct result_item *of)
{
    return of && result->items + of->end > of + 1 ? of + 1 : NULL;
}

const struct result_item *result_next(const struct result *result, const struct result_item *of,
                                      const struct result_item *item)
{
    return item->end < of->end ? result->items + item->end : NULL;
}

const struct result_item *result_get(const struct result *result, const struct result_item *group,
                                     const char *key)
{
    RESULT_EACH (item, result, group)
        if (item->key && item->kind < RESULT_ERROR && strcmp(result_key(result, item), key) == 0)
            return item;
    return NULL;
}

const struct result_item *result_find(const struct result *result, const char *path)
{
    const struct result_item *item = result->items;
    char key[64];
    for (size_t length; item && *path; path += length + (path[length] == '.')) {
        length = strcspn(path, ".");
        str_format(key, sizeof key, "%.*s", (int)length, path);
        item =
            item->kind == RESULT_LIST ? result_first(result, item) : result_get(result, item, key);
    }
    return item;
}

bool result_is_known(const struct result_item *item)
{
    return item && (is_known(item->number) || item->text);
}

const char *result_key(const struct result *result, const struct result_item *item)
{
    return item->key ? result->strings.bytes + item->key : NULL;
}

const char *result_string(const struct result *result, const struct result_item *item)
{
    return item && item->text ? result->strings.bytes + item->text : NULL;
}

double result_value(const struct result_item *item)
{
    return item ? item->number : UNKNOWN;
}

double result_value_at(const struct result *result, const char *path)
{
    return result_value(result_find(result, path));
}

const char *result_line(const struct text *lines, const char *line)
{
    const char *next = line ? line + strlen(line) + 1 : lines->bytes;
    return lines->length && next < lines->bytes + lines->length ? next : NULL;
}

/* ---- JSON ---- */

static void put_interval(struct json *json, const char *key, const struct result_item *of)
{
    if (!is_known(of->low) || !is_known(of->high)) {
        json_null(json, key);
        return;
    }
    json_array(json, key);
    json_number(json, NULL, of->low);
    json_number(json, NULL, of->high);
    json_array_end(json);
}

/* A property of the figure, beside it in its group. */
static void put_property(const struct result *result, const struct result_item *group,
                         const struct result_item *item, struct json *json)
{
    const char *of = result_key(result, item);
    char key[160];
    str_format(key, sizeof key, "%s%s", of,
               item->kind == RESULT_ERROR      ? "_error"
               : item->kind == RESULT_INTERVAL ? "_interval_95"
                                               : "_queries");
    if (item->kind == RESULT_INTERVAL)
        put_interval(json, key, result_get(result, group, of));
    else if (item->kind == RESULT_QUERIES)
        json_integer(json, key, (int64_t)item->number);
    else
        json_number(json, key, item->number);
}

static void put_items(const struct result *result, const struct result_item *group,
                      struct json *json)
{
    RESULT_EACH (item, result, group) {
        const char *key = result_key(result, item);
        switch (item->kind) {
        case RESULT_GROUP:
            json_object(json, key);
            put_items(result, item, json);
            json_object_end(json);
            break;
        case RESULT_LIST:
            json_array(json, key);
            put_items(result, item, json);
            json_array_end(json);
            break;
        case RESULT_NUMBER:
            json_number(json, key, item->number);
            break;
        case RESULT_COUNT:
            json_integer(json, key, (int64_t)item->number);
            break;
        case RESULT_TEXT:
            json_string(json, key, result_string(result, item));
            break;
        case RESULT_FLAG:
            json_bool(json, key, item->number != 0);
            break;
        default:
            put_property(result, group, item, json);
        }
    }
}

void result_to_json(const struct result *result, const char *key, struct json *json)
{
    json_object(json, key);
    json_string(json, "analysis", result->name);
    put_items(result, result->items, json);
    json_array(json, "warnings");
    for (const char *line = NULL; (line = result_line(&result->warnings, line));)
        json_string(json, NULL, line);
    json_array_end(json);
    json_object_end(json);
}
