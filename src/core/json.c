#include "core/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/utf8.h"

void json_init(struct json *json, struct text *out, bool pretty)
{
    *json = (struct json){.out = out, .pretty = pretty};
}

static void new_line(struct json *json)
{
    if (!json->pretty)
        return;
    text_add(json->out, "\n");
    for (unsigned i = 0; i < json->depth; i++)
        text_add(json->out, "  ");
}

/* How many leading bytes need no escape: most texts are one such run. */
static size_t unescaped_length(const unsigned char *s, const unsigned char *end)
{
    const unsigned char *at = s;
    while (at < end && *at >= 0x20 && *at < 0x7F && *at != '"' && *at != '\\')
        at++;
    return (size_t)(at - s);
}

/* Of a control character; formatting it is slow where an answer is made of them. */
static void add_escape(struct text *out, unsigned char c)
{
    static const char DIGITS[] = "0123456789abcdef";
    text_add_bytes(out, (const char[]){'\\', 'u', '0', '0', DIGITS[c >> 4], DIGITS[c & 15]}, 6);
}

static void add_quoted_bytes(struct text *out, const char *bytes, size_t length)
{
    text_add_bytes(out, "\"", 1);
    const unsigned char *end = (const unsigned char *)bytes + length;
    for (const unsigned char *s = (const unsigned char *)bytes; s < end;) {
        size_t plain = unescaped_length(s, end);
        if (plain > 0) {
            text_add_bytes(out, (const char *)s, plain);
            s += plain;
            continue;
        }
        size_t n = utf8_length((const char *)s, (size_t)(end - s));
        if (n == 0) {                      /* JSON must stay UTF-8 */
            text_add(out, "\xEF\xBF\xBD"); /* the replacement character */
            s++;
            continue;
        }
        if (*s == '"' || *s == '\\')
            text_add_bytes(out, (const char[]){'\\', (char)*s}, 2);
        else if (*s == '\n')
            text_add(out, "\\n");
        else if (*s == '\t')
            text_add(out, "\\t");
        else if (*s < 0x20 || *s == 0x7F)
            add_escape(out, *s);
        else if (*s == 0xC2 && s[1] < 0xA0) /* C1 controls, such as CSI */
            add_escape(out, s[1]);
        else
            text_add_bytes(out, (const char *)s, n);
        s += n;
    }
    text_add_bytes(out, "\"", 1);
}

static void add_quoted(struct text *out, const char *string)
{
    add_quoted_bytes(out, string, strlen(string));
}

static void begin_item(struct json *json, const char *key)
{
    if (json->has_items[json->depth])
        text_add(json->out, ",");
    json->has_items[json->depth] = true;
    if (json->depth > 0)
        new_line(json);
    if (key) {
        add_quoted(json->out, key);
        text_add(json->out, json->pretty ? ": " : ":");
    }
}

static void open_nest(struct json *json, const char *key, const char *bracket)
{
    begin_item(json, key);
    text_add(json->out, bracket);
    if (json->depth + 1 >= sizeof json->has_items)
        abort(); /* nesting is fixed by our own code: deeper is a programming error */
    json->depth++;
    json->has_items[json->depth] = false;
}

static void close_nest(struct json *json, const char *bracket)
{
    bool had_items = json->has_items[json->depth];
    json->depth--;
    if (had_items)
        new_line(json);
    text_add(json->out, bracket);
    if (json->depth == 0 && json->pretty)
        text_add(json->out, "\n");
}

void json_object(struct json *json, const char *key)
{
    open_nest(json, key, "{");
}

void json_object_end(struct json *json)
{
    close_nest(json, "}");
}

void json_array(struct json *json, const char *key)
{
    open_nest(json, key, "[");
}

void json_array_end(struct json *json)
{
    close_nest(json, "]");
}

void json_string(struct json *json, const char *key, const char *value)
{
    begin_item(json, key);
    if (value)
        add_quoted(json->out, value);
    else
        text_add(json->out, "null");
}

void json_string_bytes(struct json *json, const char *key, const char *bytes, size_t length)
{
    begin_item(json, key);
    add_quoted_bytes(json->out, bytes, length);
}

void json_number(struct json *json, const char *key, double value)
{
    begin_item(json, key);
    if (!isfinite(value)) {
        text_add(json->out, "null");
        return;
    }
    /* The fewest digits, from 15 on, that parse back to the same value: sums must still hold for the reader, and
     * 231.6 must not become 231.59999999999999. */
    char digits[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (precision < 17 && strtod(digits, NULL) == value) /* 17 digits always do */
            break;
    }
    text_add(json->out, digits);
}

void json_numbers(struct json *json, const char *key, const double *values, size_t count)
{
    json_array(json, key);
    for (size_t i = 0; i < count; i++)
        json_number(json, NULL, values[i]);
    json_array_end(json);
}

void json_integer(struct json *json, const char *key, int64_t value)
{
    begin_item(json, key);
    text_addf(json->out, "%" PRId64, value);
}

void json_bool(struct json *json, const char *key, bool value)
{
    begin_item(json, key);
    text_add(json->out, value ? "true" : "false");
}

void json_null(struct json *json, const char *key)
{
    begin_item(json, key);
    text_add(json->out, "null");
}

void json_raw(struct json *json, const char *key, const char *value)
{
    begin_item(json, key);
    text_add(json->out, value);
}

/* One past the end of a quoted string. */
static const char *skip_string(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1])
            at++;
    return *at ? at + 1 : at;
}

void json_raw_indented(struct json *json, const char *key, const char *value)
{
    begin_item(json, key);
    for (const char *at = value; *at;) {
        const char *end = *at == '"' ? skip_string(at) : at + 1;
        bool opens = (*at == '{' || *at == '[') && *end != '}' && *end != ']';
        if ((*at == '}' || *at == ']') && at > value && at[-1] != '{' && at[-1] != '[') {
            json->depth--;
            new_line(json);
        }
        text_add_bytes(json->out, at, (size_t)(end - at));
        json->depth += opens;
        if (opens || *at == ',')
            new_line(json);
        else if (*at == ':' && json->pretty)
            text_add(json->out, " ");
        at = end;
    }
}
