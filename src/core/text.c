#include "core/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/memory.h"

/* ---- UTF-8 ---- */

/* Number of bytes that a lead byte implies; 0 for a byte that cannot begin a character. */
static size_t lead_byte_length(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead < 0xC2 || lead > 0xF4)
        return 0;
    if (lead < 0xE0)
        return 2;
    return lead < 0xF0 ? 3 : 4;
}

size_t utf8_length(const char *bytes, size_t left)
{
    const unsigned char *s = (const unsigned char *)bytes;
    size_t length = left ? lead_byte_length(s[0]) : 0;
    if (length < 2 || length > left)
        return length > left ? 0 : length;
    for (size_t i = 1; i < length; i++)
        if (!utf8_is_continuation(bytes[i]))
            return 0;
    bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xED && s[1] >= 0xA0;
    bool beyond = s[0] == 0xF4 && s[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : length;
}

size_t utf8_valid_prefix(const char *bytes, size_t length)
{
    size_t at = 0, step;
    while (at < length && (step = utf8_length(bytes + at, length - at)) > 0)
        at += step;
    return at;
}

uint32_t utf8_decode(const char *bytes, size_t left, size_t *length)
{
    const unsigned char *s = (const unsigned char *)bytes;
    size_t count = utf8_length(bytes, left);
    *length = count ? count : 1;
    if (count == 0)
        return UTF8_INVALID + s[0];
    uint32_t code = count == 1 ? s[0] : s[0] & (0x7Fu >> count);
    for (size_t i = 1; i < count; i++)
        code = code << 6 | (s[i] & 0x3Fu);
    return code;
}

size_t utf8_encode(uint32_t code, char to[UTF8_BYTES_MAX])
{
    static const unsigned char LEADS[] = {0, 0, 0xC0, 0xE0, 0xF0};
    if (code < 0x80 || code >= UTF8_INVALID) {
        to[0] = (char)(code < 0x80 ? code : code - UTF8_INVALID);
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)(LEADS[length] | code);
    return length;
}

size_t utf8_width(const char *string)
{
    size_t width = 0;
    for (; *string; string++)
        width += !utf8_is_continuation(*string); /* continuation bytes take no column */
    return width;
}

/* ---- the buffer ---- */

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

void text_drop(struct text *text, size_t length)
{
    if (!length)
        return;
    text->length -= length;
    memmove(text->bytes, text->bytes + length, text->length + 1);
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
    char *bytes = memory_resize(text->bytes, capacity);
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

char *text_space(struct text *text, size_t length)
{
    return text_reserve(text, length) ? text->bytes + text->length : NULL;
}

void text_extend(struct text *text, const char *end)
{
    text->length = (size_t)(end - text->bytes);
    text->bytes[text->length] = '\0';
}

void text_add(struct text *text, const char *string)
{
    text_add_bytes(text, string, strlen(string));
}

void text_add_integer(struct text *text, int64_t value)
{
    char digits[24], *end = digits + sizeof digits, *at = end;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        *--at = '-';
    text_add_bytes(text, at, (size_t)(end - at));
}

void text_addf(struct text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    /* Format into the free capacity first: it usually fits. */
    bool has_buffer = text_reserve(text, 1);
    size_t space = has_buffer ? text->capacity - text->length : 0;
    int length = has_buffer ? vsnprintf(text->bytes + text->length, space, format, args) : -1;
    va_end(args);
    if (length >= 0 && (size_t)length >= space) {
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

int compare_strings(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

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
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
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
    /* Non-ASCII letters may occur in a path; quotes and brackets mean that it is not one. */
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

bool str_next_item(const char **list, char *item, size_t size)
{
    size_t length = strcspn(*list, ",");
    if (length == 0 || length >= size)
        return false;
    memcpy(item, *list, length);
    item[length] = '\0';
    *list = (*list)[length] ? *list + length + 1 : NULL;
    return true;
}

bool str_list_has(const char *list, const char *item)
{
    size_t length = strlen(item);
    for (const char *at = list; at && *at; at = strchr(at, ',')) {
        at += strspn(at, ", \t");
        if (strncasecmp(at, item, length) == 0 && (!at[length] || strchr(", \t", at[length])))
            return true;
    }
    return false;
}

bool str_starts(const char *string, const char *prefix)
{
    return strncmp(string, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *string, const char *ending)
{
    size_t length = strlen(string), tail = strlen(ending);
    return length >= tail && str_equal(string + length - tail, ending);
}

bool str_equal_nocase(const char *a, const char *b)
{
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
        a++;
        b++;
    }
    return *a == '\0' && *b == '\0';
}

const void *str_find(const char *name, const void *items, size_t count, size_t item_size)
{
    const char *item = items;
    for (size_t i = 0; name && i < count; i++, item += item_size) {
        const char *own = *(const char *const *)(const void *)item;
        if (own && str_equal(own, name))
            return item;
    }
    return NULL;
}

bool str_is_listed(const char *name, const char *const *names, size_t count)
{
    return str_find(name, names, count, sizeof *names);
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

int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void str_percent_decode(char *string)
{
    char *to = string;
    for (const char *from = string; *from; from++) {
        int high = *from == '%' ? hex_digit(from[1]) : -1;
        int low = high >= 0 ? hex_digit(from[2]) : -1;
        *to++ = (char)(low >= 0 ? high << 4 | low : *from);
        from += low >= 0 ? 2 : 0;
    }
    *to = '\0';
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
    bool is_hexadecimal =
        strpbrk(start, "xX"); /* strtod accepts hexadecimal, which users do not mean */
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

bool str_is_plain(const char *string)
{
    for (size_t left = strlen(string), length; left; string += length, left -= length) {
        uint32_t code = utf8_decode(string, left, &length);
        if (code >= UTF8_INVALID || !is_plain(code))
            return false;
    }
    return true;
}

size_t plain_character(const char *at, size_t left, char to[PLAIN_MAX], size_t *taken)
{
    static const char SHORT[][2] = {{'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}};
    char escape[PLAIN_MAX + 1];
    uint32_t code = utf8_decode(at, left, taken);
    if (code < UTF8_INVALID && is_plain(code)) {
        memcpy(to, at, *taken);
        return *taken;
    }
    if (code >= UTF8_INVALID || code < ' ')
        chars_format(escape, "\\x%02x", (unsigned)(unsigned char)*at);
    else /* also valid in JSON, which has no other character here */
        chars_format(escape, "\\u%04x", (unsigned)code);
    for (size_t i = 0; i < COUNT_OF(SHORT); i++)
        if (*at == SHORT[i][0])
            chars_format(escape, "\\%c", SHORT[i][1]);
    size_t length = 0;
    for (; escape[length]; length++)
        to[length] = escape[length];
    return length;
}

/* Whether the bytes are the truncated start of one character. */
static bool is_truncated(const char *at, size_t left)
{
    unsigned char first = (unsigned char)*at;
    size_t full = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
    for (size_t i = 1; i < left; i++)
        if (!utf8_is_continuation(at[i]))
            return false;
    return first < 0xf5 && left < full;
}

char *str_plain(char *string, size_t size)
{
    size_t length = strlen(string), at = 0;
    if (str_is_plain(string))
        return string;
    while (at < length && !is_truncated(string + at, length - at)) {
        char shown[PLAIN_MAX];
        size_t taken, put = plain_character(string + at, length - at, shown, &taken);
        if (at + put >= size)
            break;
        size_t rest = length - at - taken, space = size - 1 - at - put;
        rest = rest < space ? rest : space;
        memmove(string + at + put, string + at + taken, rest);
        memcpy(string + at, shown, put);
        at += put;
        length = at + rest;
    }
    string[at] = '\0';
    return string;
}

struct plain_text plain_text(const char *string)
{
    struct plain_text plain = {.text = ""};
    chars_copy(plain.text, string ? string : "");
    str_plain(plain.text, sizeof plain.text);
    return plain;
}

/* Length of one of our color sequences at the start, or 0: sequences that hide text or move the cursor are not
 * accepted. */
static size_t style_length(const char *at, size_t left)
{
    static const char *const STYLES[] = {"\033[0m",  "\033[1m",  "\033[2m",  "\033[31m",
                                         "\033[32m", "\033[33m", "\033[36m", "\033[1;31m"};
    for (size_t i = 0; *at == '\033' && i < COUNT_OF(STYLES); i++)
        if (left >= strlen(STYLES[i]) && !memcmp(at, STYLES[i], strlen(STYLES[i])))
            return strlen(STYLES[i]);
    return 0;
}

/* Runs of bytes that need no escape are appended at once. */
static void add_shown(struct text *text, const char *bytes, size_t length, bool lines, bool styled)
{
    const char *end = bytes + length, *kept = bytes;
    for (const char *at = bytes; at < end;) {
        char shown[PLAIN_MAX];
        size_t put, taken = lines && *at == '\n';
        if (!taken && styled)
            taken = style_length(at, (size_t)(end - at));
        if (!taken) {
            put = plain_character(at, (size_t)(end - at), shown, &taken);
            if (put != taken || memcmp(shown, at, put) != 0) {
                text_add_bytes(text, kept, (size_t)(at - kept));
                text_add_bytes(text, shown, put);
                kept = at + taken;
            }
        }
        at += taken;
    }
    text_add_bytes(text, kept, (size_t)(end - kept));
}

void text_add_plain(struct text *text, const char *string)
{
    add_shown(text, string, strlen(string), false, false);
}

void text_add_shell(struct text *text, const char *word)
{
    static const char PLAIN[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/:=+@%,";
    if (word[0] && strspn(word, PLAIN) == strlen(word)) {
        text_add(text, word);
        return;
    }
    text_add(text, "'");
    for (; *word; word++)
        if (*word == '\'')
            text_add(text, "'\\''");
        else
            text_add_bytes(text, word, 1);
    text_add(text, "'");
}

void text_add_lines(struct text *text, const char *bytes, size_t length, bool styled)
{
    add_shown(text, bytes, length, true, styled);
}
