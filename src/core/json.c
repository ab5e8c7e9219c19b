#include "core/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

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

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

/* The highest bit of a byte is set in the result if that byte is not plain; above the lowest such byte, by a carry,
 * perhaps for plain ones too.  Zero: all eight are plain. */
static uint64_t special_bits(const char *bytes)
{
    const uint64_t ones = UINT64_MAX / 255, tops = ones << 7;
    uint64_t eight;
    memcpy(&eight, bytes, sizeof eight);
    uint64_t quote = eight ^ (ones * '"'), backslash = eight ^ (ones * '\\');
    uint64_t control = (eight - ones * 0x20) & ~eight, beyond = (eight + ones) | eight;
    return (control | beyond | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash)) &
           tops;
}

/* The number of leading bytes that need no escape, usually all of them. */
static size_t plain_length(const char *bytes, size_t length)
{
    size_t plain = 0, step = sizeof(uint64_t);
    for (; plain + step <= length; plain += step) {
        uint64_t special = special_bits(bytes + plain);
        if (special) /* the first byte is the lowest: our processors are little-endian */
            return plain + (size_t)__builtin_ctzll(special) / 8;
    }
    if (length >= step && !special_bits(bytes + length - step))
        return length;
    while (plain < length && is_plain((unsigned char)bytes[plain]))
        plain++;
    return plain;
}

/* Escapes a control character without printf, which would be slow for text with many of them. */
static void add_escape(struct text *out, unsigned char c)
{
    static const char DIGITS[] = "0123456789abcdef";
    text_add_bytes(out, (const char[]){'\\', 'u', '0', '0', DIGITS[c >> 4], DIGITS[c & 15]}, 6);
}

static void add_quoted_bytes(struct text *out, const char *bytes, size_t length)
{
    text_add_bytes(out, "\"", 1);
    const unsigned char *s = (const unsigned char *)bytes, *end = s + length;
    while (s < end) {
        size_t plain = plain_length((const char *)s, (size_t)(end - s));
        text_add_bytes(out, (const char *)s, plain);
        s += plain;
        if (s == end)
            break;
        if (*s == '"' || *s == '\\') { /* often, in JSON as a string */
            text_add_bytes(out, (const char[]){'\\', (char)*s++}, 2);
            continue;
        }
        size_t n = utf8_length((const char *)s, (size_t)(end - s));
        if (n == 0) {                      /* JSON must stay UTF-8 */
            text_add(out, "\xEF\xBF\xBD"); /* the replacement character */
            s++;
            continue;
        }
        if (*s == '\n')
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

/* Journals have a hundred keys per request, which are plain: one pass over each, without checks in between. */
static bool add_plain_key(struct json *json, const char *key, bool has_comma)
{
    size_t length = strlen(key);
    char *to = plain_length(key, length) == length ? text_space(json->out, length + 4) : NULL;
    if (!to)
        return false;
    if (has_comma)
        *to++ = ',';
    *to++ = '"';
    memcpy(to, key, length);
    to += length;
    *to++ = '"';
    *to++ = ':';
    text_extend(json->out, to);
    return true;
}

static void begin_item(struct json *json, const char *key)
{
    bool has_comma = json->has_items[json->depth];
    json->has_items[json->depth] = true;
    if (key && !json->pretty && add_plain_key(json, key, has_comma))
        return;
    if (has_comma)
        text_add(json->out, ",");
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
        abort(); /* nesting depth is fixed by our own code: exceeding it is a programming error */
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
    if (json->target)
        json->target->open(json->to, key, false);
    else
        open_nest(json, key, "{");
}

void json_object_end(struct json *json)
{
    if (json->target)
        json->target->close(json->to);
    else
        close_nest(json, "}");
}

void json_array(struct json *json, const char *key)
{
    if (json->target)
        json->target->open(json->to, key, true);
    else
        open_nest(json, key, "[");
}

void json_array_end(struct json *json)
{
    if (json->target)
        json->target->close(json->to);
    else
        close_nest(json, "]");
}

void json_string(struct json *json, const char *key, const char *value)
{
    if (json->target) {
        json->target->string(json->to, key, value);
        return;
    }
    begin_item(json, key);
    if (value)
        add_quoted(json->out, value);
    else
        text_add(json->out, "null");
}

void json_string_bytes(struct json *json, const char *key, const char *bytes, size_t length)
{
    if (json->target) {
        struct text copy = {0};
        text_add_bytes(&copy, bytes, length);
        json->target->string(json->to, key, text_get(&copy));
        text_release(&copy);
        return;
    }
    begin_item(json, key);
    add_quoted_bytes(json->out, bytes, length);
}

/* ---- numbers ---- */

#define INTEGER_MAX 1e15 /* smaller integers are written with all digits, as by decimal_write */

void json_number(struct json *json, const char *key, double value)
{
    if (json->target) {
        json->target->number(json->to, key, value);
        return;
    }
    begin_item(json, key);
    if (!isfinite(value))
        text_add(json->out, "null");
    else if (fabs(value) < INTEGER_MAX && value == (double)(int64_t)value &&
             (value != 0 || !signbit(value)))
        text_add_integer(json->out, (int64_t)value);
    else
        text_add_number(json->out, value);
}

void json_number_in(struct json *json, const char *key, double value, double factor)
{
    char digits[40];
    int precision = 15; /* more than a file has: removes the rounding error of the division */
    if (!isfinite(value)) {
        json_null(json, key);
        return;
    }
    do
        snprintf(digits, sizeof digits, "%.*g", precision, value / factor);
    while (strtod(digits, NULL) * factor != value && precision++ < 17);
    json_raw(json, key, digits);
}

void json_optional_number(struct json *json, const char *key, double value)
{
    if (isfinite(value))
        json_number(json, key, value);
}

void json_optional_string(struct json *json, const char *key, const char *value)
{
    if (value)
        json_string(json, key, value);
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
    if (json->target) {
        json->target->integer(json->to, key, value);
        return;
    }
    begin_item(json, key);
    text_add_integer(json->out, value);
}

void json_bool(struct json *json, const char *key, bool value)
{
    if (json->target) {
        json->target->flag(json->to, key, value);
        return;
    }
    begin_item(json, key);
    text_add(json->out, value ? "true" : "false");
}

void json_null(struct json *json, const char *key)
{
    if (json->target) {
        json->target->null(json->to, key);
        return;
    }
    begin_item(json, key);
    text_add(json->out, "null");
}

void json_raw(struct json *json, const char *key, const char *value)
{
    if (json->target) {
        json->target->raw(json->to, key, value);
        return;
    }
    begin_item(json, key);
    text_add(json->out, value);
}

void json_raw_indented(struct json *json, const char *key, const char *value)
{
    const char *last = value + strlen(value);
    if (json->target) {
        json->target->raw(json->to, key, value);
        return;
    }
    begin_item(json, key);
    for (const char *at = value; *at;) {
        const char *end = *at == '"' ? json_skip_string(at, last) : at + 1;
        end = end ? end : last;
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

/* ---- finding the end of JSON ---- */

const char *json_skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at < end ? at + 1 : NULL;
}

const char *json_skip_value(const char *at, const char *end)
{
    size_t depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = json_skip_string(at, end);
            if (!at)
                return NULL;
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (depth && (*at == '}' || *at == ']')) {
            depth--;
            at++;
        } else if (depth || !strchr(",}]", *at)) {
            at++;
            continue;
        }
        if (depth == 0)
            return at;
    }
    return depth ? NULL : at;
}

long json_escaped_unit(const char *at, const char *end)
{
    char digits[5] = "";
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    memcpy(digits, at + 2, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? strtol(digits, NULL, 16) : -1;
}
