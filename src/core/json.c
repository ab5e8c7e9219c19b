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

/* Adds the leading bytes that need no escape, usually all of them, and returns the first one that does. */
static const unsigned char *add_unescaped(struct text *out, const unsigned char *s,
                                          const unsigned char *end)
{
    char *to = text_space(out, (size_t)(end - s));
    if (!to)
        return end;
    while (s < end && is_plain(*s))
        *to++ = (char)*s++;
    text_extend(out, to);
    return s;
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
    const unsigned char *end = (const unsigned char *)bytes + length;
    for (const unsigned char *s = (const unsigned char *)bytes;
         (s = add_unescaped(out, s, end)) < end;) {
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

/* Journals have a hundred keys per request, which are plain: one pass over each, without checks in between. */
static bool add_plain_key(struct json *json, const char *key, bool has_comma)
{
    size_t length = strlen(key);
    char *to = text_space(json->out, length + 4);
    if (!to)
        return false;
    if (has_comma)
        *to++ = ',';
    *to++ = '"';
    for (; is_plain((unsigned char)*key); key++)
        *to++ = *key;
    if (*key)
        return false;
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

/* ---- numbers ----
 *
 * Numbers are written with the fewest digits, at least 15, that round-trip: sums must still be exact for readers, and
 * 231.6 must not become 231.59999999999999.  Journals have dozens of numbers per request, and formatting each with 15,
 * 16 and 17 digits and checking by strtod dominated the cost of a record.  So the 17 digits, which always round-trip,
 * are produced once and shortened where that may suffice; common values need neither printf nor strtod. */

enum { DIGITS = 17, NUMBER_MAX = 40 };

/* Lays digits out as "%.*g" does: the first digit counts 10^exponent. */
static void write_digits(char *out, const char *digits, int precision, int exponent)
{
    int count = precision;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    bool is_scientific = exponent < -4 || exponent >= precision;
    if (!is_scientific && exponent < 0) {
        memcpy(out, "0.000", 5);
        out += 1 - exponent;
    }
    int point = is_scientific ? 1 : exponent + 1;
    for (int i = 0; i < count || (!is_scientific && i < point); i++) {
        if (i == point && i > 0)
            *out++ = '.';
        *out++ = (char)(i < count ? digits[i] : '0');
    }
    *out = '\0';
    if (is_scientific)
        snprintf(out, 8, "e%+03d", exponent % 1000);
}

/* Rounds to the first `precision` digits; *exponent is incremented where 9.99 becomes 10. */
static void round_digits(const char *all, int precision, char *out, int *exponent)
{
    int i = precision - 1;
    memcpy(out, all, (size_t)precision);
    if (all[precision] < '5')
        return;
    for (; i >= 0 && out[i] == '9'; i--)
        out[i] = '0';
    if (i >= 0) {
        out[i]++;
    } else {
        out[0] = '1';
        ++*exponent;
    }
}

/* Whether `precision` digits may round-trip: half the distance to the next double, in units of the 17th digit, follows
 * from the first digit.  False when the dropped digits are a tie, which would be rounded twice. */
static bool may_round_trip(const char *all, int precision)
{
    int unit = precision == DIGITS - 1 ? 10 : 100;
    int rest = all[16] - '0' + (unit == 100 ? 10 * (all[15] - '0') : 0);
    int away = rest < unit / 2 ? rest : unit - rest;
    return away <= 0.5 + 1.12 * (all[0] - '0' + 1);
}

/* 10^0 to 10^22 have no rounding error as doubles. */
static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { TENS_MAX = 22 };

/* value x 10^tens, rounded as printf does: half to even.  For 1e-6 <= value < 1e17 and a result of at most 18 digits. */
static uint64_t scale_by_tens(double value, int tens)
{
    __extension__ typedef unsigned __int128 wide;
    int exponent;
    wide product = (wide)(uint64_t)ldexp(frexp(value, &exponent), 53) * (uint64_t)TENS[tens / 2] *
                   (uint64_t)TENS[tens - tens / 2];
    exponent -= 53;
    if (exponent >= 0)
        return (uint64_t)(product << exponent);
    wide whole = product >> -exponent, rest = product - (whole << -exponent);
    wide half = (wide)1 << (-exponent - 1);
    return (uint64_t)(whole + (rest > half || (rest == half && (whole & 1))));
}

/* The 17 digits of a value that is not negative, and the exponent of the first of them. */
static int find_digits(double value, char *all)
{
    if (value < 1e-5 || value >= 1e16) {
        char text[NUMBER_MAX];
        snprintf(text, sizeof text, "%.*e", DIGITS - 1, value); /* "d.dddde+xx" */
        all[0] = text[0];
        memcpy(all + 1, text + 2, DIGITS - 1);
        return (int)strtol(text + DIGITS + 2, NULL, 10);
    }
    int exponent = (int)floor(log10(value));
    uint64_t digits = scale_by_tens(value, DIGITS - 1 - exponent);
    if (digits < (uint64_t)1e16 ||
        digits >= (uint64_t)1e17) { /* log10 or the digits were rounded */
        exponent += digits < (uint64_t)1e16 ? -1 : 1;
        digits = scale_by_tens(value, DIGITS - 1 - exponent);
    }
    for (int i = DIGITS - 1; i >= 0; i--, digits /= 10)
        all[i] = (char)('0' + digits % 10);
    return exponent;
}

/* strtod(number) == value, where `digits` are those of the number.  Integers below 2^53 and powers of ten up to
 * 10^22 are exact, so their product or quotient is rounded only once. */
static bool round_trips(const char *digits, int precision, int exponent, const char *number,
                        double value)
{
    uint64_t integer = 0;
    int tens = exponent - precision + 1;
    for (int i = 0; i < precision; i++)
        integer = 10 * integer + (uint64_t)(digits[i] - '0');
    if (integer > (uint64_t)1 << 53 || tens < -TENS_MAX || tens > 0)
        return strtod(number, NULL) == value;
    return (double)integer / TENS[-tens] == fabs(value);
}

static void format_number(double value, char number[NUMBER_MAX])
{
    char all[DIGITS], digits[DIGITS], *out = number;
    int exponent = find_digits(fabs(value), all);
    if (signbit(value))
        *out++ = '-';
    for (int precision = 15; precision < DIGITS; precision++) {
        int shown = exponent;
        if (!may_round_trip(all, precision))
            continue;
        if (precision == DIGITS - 1 && all[16] == '5') {
            snprintf(number, NUMBER_MAX, "%.*g", precision, value);
            if (strtod(number, NULL) == value)
                return;
            continue;
        }
        round_digits(all, precision, digits, &shown);
        write_digits(out, digits, precision, shown);
        if (round_trips(digits, precision, shown, number, value))
            return;
    }
    write_digits(out, all, DIGITS, exponent);
}

void json_number(struct json *json, const char *key, double value)
{
    char number[NUMBER_MAX];
    if (json->target) {
        json->target->number(json->to, key, value);
        return;
    }
    begin_item(json, key);
    if (!isfinite(value))
        text_add(json->out, "null");
    else if (fabs(value) < 1e9 && value == (double)(int)value && (value != 0 || !signbit(value)))
        text_add_integer(json->out, (int64_t)value);
    else {
        format_number(value, number);
        text_add(json->out, number);
    }
}

void json_number_in(struct json *json, const char *key, double value, double factor)
{
    char digits[NUMBER_MAX];
    int precision = 15; /* more than a file has: removes the rounding error of the division */
    if (!isfinite(value)) {
        json_null(json, key);
        return;
    }
    do
        snprintf(digits, sizeof digits, "%.*g", precision, value / factor);
    while (strtod(digits, NULL) * factor != value && precision++ < DIGITS);
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
