#include "core/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"

void text_release(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

void text_clear(struct text *text)
{
    text->length = 0;
    if (text->bytes)
        text->bytes[0] = '\0';
}

static bool text_reserve(struct text *text, size_t extra)
{
    if (text->failed)
        return false;
    size_t need = text->length + extra + 1;
    if (need <= text->capacity)
        return true;
    size_t capacity = text->capacity ? text->capacity : 128;
    while (capacity < need)
        capacity *= 2;
    char *bytes = realloc(text->bytes, capacity);
    if (!bytes) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void text_add_bytes(struct text *text, const char *bytes, size_t length)
{
    if (!text_reserve(text, length))
        return;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void text_add(struct text *text, const char *string)
{
    text_add_bytes(text, string, strlen(string));
}

void text_addf(struct text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    /* Into the free capacity first: mostly it fits and is formatted once. */
    bool has_buffer = text_reserve(text, 1);
    size_t room = has_buffer ? text->capacity - text->length : 0;
    int length = has_buffer ? vsnprintf(text->bytes + text->length, room, format, args) : -1;
    va_end(args);
    if (length >= 0 && (size_t)length >= room) {
        text->bytes[text->length] = '\0';
        if (text_reserve(text, (size_t)length))
            vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
        else
            length = -1;
    }
    if (length >= 0)
        text->length += (size_t)length;
    va_end(again);
}

void text_add_repaired(struct text *text, const char *bytes, size_t length)
{
    while (length > 0) {
        size_t valid = utf8_valid_prefix(bytes, length);
        text_add_bytes(text, bytes, valid);
        if (valid < length) {
            text_add(text, "\xEF\xBF\xBD");
            valid++;
        }
        bytes += valid;
        length -= valid;
    }
}

const char *text_get(const struct text *text)
{
    return text->bytes ? text->bytes : "";
}

/* ---- strings ---- */

bool str_copy(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);
    size_t kept = length < size ? length : size - 1;
    memcpy(to, from, kept);
    to[kept] = '\0';
    return kept == length;
}

bool str_join(char *to, size_t size, const char *first, const char *second, const char *third)
{
    const char *const parts[] = {first, second, third};
    size_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!str_copy(to + used, size - used, parts[i]))
            return false;
        used += strlen(parts[i]);
    }
    return true;
}

bool str_format(char *to, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(to, size, format, args);
    va_end(args);
    return length >= 0 && (size_t)length < size;
}

const char *str_last_part(const char *name)
{
    /* Letters beyond ASCII may stand in a path, too; quotes and brackets say that it is something else. */
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < 0x80 && !isalnum((unsigned char)*at) && !strchr("/._-+:@~ ", *at))
            return name;
    const char *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

char *str_trim(char *string)
{
    while (isspace((unsigned char)*string))
        string++;
    char *end = string + strlen(string);
    while (end > string && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return string;
}

bool str_starts(const char *string, const char *prefix)
{
    return strncmp(string, prefix, strlen(prefix)) == 0;
}

bool str_equal_nocase(const char *a, const char *b)
{
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
        a++;
        b++;
    }
    return *a == '\0' && *b == '\0';
}

bool str_contains_nocase(const char *haystack, const char *needle)
{
    size_t length = strlen(needle);
    for (; *haystack; haystack++) {
        size_t i = 0;
        while (i < length && haystack[i] &&
               tolower((unsigned char)haystack[i]) == tolower((unsigned char)needle[i]))
            i++;
        if (i == length)
            return true;
    }
    return length == 0;
}

/* ---- numbers ---- */

/* Skips leading space; NULL when nothing is left. */
static const char *number_start(const char *string)
{
    while (isspace((unsigned char)*string))
        string++;
    return *string ? string : NULL;
}

static bool only_space(const char *rest)
{
    while (isspace((unsigned char)*rest))
        rest++;
    return *rest == '\0';
}

enum err parse_u64(const char *string, uint64_t *out)
{
    const char *start = number_start(string);
    if (!start || !isdigit((unsigned char)*start))
        return ERR_BAD_VALUE;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(start, &end, 10);
    if (errno || !only_space(end))
        return ERR_BAD_VALUE;
    *out = value;
    return ERR_OK;
}

enum err parse_i64(const char *string, int64_t *out)
{
    const char *start = number_start(string);
    if (!start || (!isdigit((unsigned char)*start) && *start != '-'))
        return ERR_BAD_VALUE;
    char *end;
    errno = 0;
    long long value = strtoll(start, &end, 10);
    if (errno || end == start || !only_space(end))
        return ERR_BAD_VALUE;
    *out = value;
    return ERR_OK;
}

enum err parse_double(const char *string, double *out)
{
    const char *start = number_start(string);
    if (!start)
        return ERR_BAD_VALUE;
    char *end;
    errno = 0;
    double value = strtod(start, &end);
    bool is_hexadecimal = strpbrk(start, "xX"); /* which strtod accepts and people do not mean */
    if (end == start || is_hexadecimal || !only_space(end) || !isfinite(value))
        return ERR_BAD_VALUE;
    *out = value;
    return ERR_OK;
}

/* ---- plain text ---- */

static bool is_plain(uint32_t code)
{
    bool is_control = code < ' ' || (code >= 0x7f && code < 0xa0);
    bool is_line_end = code == 0x2028 || code == 0x2029;
    bool is_direction = code == 0x061c || code == 0x200e || code == 0x200f ||
                        (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return !is_control && !is_line_end && !is_direction;
}

/* Length in bytes of the plain character at the start; 0 when there is none. */
static size_t plain_length(const char *at, size_t left)
{
    size_t length;
    uint32_t code = utf8_decode(at, left, &length);
    return code < UTF8_INVALID && is_plain(code) ? length : 0;
}

bool str_is_plain(const char *string)
{
    size_t left = strlen(string);
    while (left) {
        size_t length = plain_length(string, left);
        if (length == 0)
            return false;
        string += length;
        left -= length;
    }
    return true;
}

/* Are the bytes the truncated start of one character? */
static bool is_truncated(const char *at, size_t left)
{
    unsigned char first = (unsigned char)*at;
    size_t full = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
    for (size_t i = 1; i < left; i++)
        if (!utf8_is_continuation(at[i]))
            return false;
    return first < 0xf5 && left < full;
}

char *str_plain(char *string)
{
    size_t left = strlen(string);
    char *to = string, *const start = string;
    while (left && !is_truncated(string, left)) {
        size_t kept = plain_length(string, left), taken = kept ? kept : utf8_length(string, left);
        taken = taken ? taken : 1;
        if (kept)
            memmove(to, string, kept);
        else
            *to = '?';
        to += kept ? kept : 1;
        string += taken;
        left -= taken;
    }
    *to = '\0';
    return start;
}

struct plain_text plain_text(const char *string)
{
    struct plain_text plain = {.text = ""};
    str_copy(plain.text, sizeof plain.text, string);
    str_plain(plain.text);
    return plain;
}
