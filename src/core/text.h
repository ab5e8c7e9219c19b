/* Text: a growable buffer, small string helpers, strict parsing of numbers, strings made safe to display, and UTF-8.
 * A struct text owns its bytes: zero-initialize it, text_release when done. */
#ifndef IPW_CORE_TEXT_H
#define IPW_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/err.h"

struct text {
    char *bytes; /* always NUL-terminated once anything was added; NULL when empty and fresh */
    size_t length;
    size_t capacity;
    bool
        failed; /* in libipw: an allocation failed, the content is incomplete and must not be used */
};

void text_release(struct text *text);
void text_clear(struct text *text);
void text_drop(struct text *text, size_t length); /* the first bytes */
void text_add(struct text *text, const char *string);
void text_add_bytes(struct text *text, const char *bytes, size_t length);
void text_add_integer(struct text *text, int64_t value); /* decimal, faster than text_addf */
/* A finite number as printf writes it with %.15g, %.16g or %.17g: the first of them that strtod reads as the same
 * number, so that sums are still exact for readers, and 231.6 does not become 231.59999999999999 (number_text.c). */
void text_add_number(struct text *text, double value);
void text_addf(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);
/* Space for `length` more bytes, for a writer that knows its maximum: it fills the space up to `end`, which
 * text_extend then adds.  NULL, in libipw: out of memory. */
char *text_space(struct text *text, size_t length);
void text_extend(struct text *text, const char *end);
/* Appends as valid UTF-8: every invalid byte becomes U+FFFD. */
void text_add_repaired(struct text *text, const char *bytes, size_t length);
const char *text_get(const struct text *text); /* "" when empty */

/* NULL for "": unknown text is null in JSON. */
static inline const char *str_or_null(const char *string)
{
    return string && string[0] ? string : NULL;
}

/* The reverse: "" for NULL. */
static inline const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

static inline bool str_equal(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* The ending of a noun in English. */
static inline const char *str_plural(double count)
{
    return count == 1 ? "" : "s";
}

/* Compares by strcmp, for qsort of an array of strings. */
int compare_strings(const void *left, const void *right);

/* Copies with truncation; always terminates.  Returns false when it truncated. */
bool str_copy(char *to, size_t size, const char *from);

/* Formats into a fixed buffer; returns false when it truncated. */
bool str_format(char *to, size_t size, const char *format, ...) PRINTF_LIKE(3, 4);

/* The same for an array of chars, whose size is known; a pointer does not compile. */
#define CHARS_SIZE(array)        _Generic(&(array), char(*)[sizeof(array)]: sizeof(array))
#define chars_copy(array, from)  str_copy(array, CHARS_SIZE(array), from)
#define chars_format(array, ...) str_format(array, CHARS_SIZE(array), __VA_ARGS__)

/* Concatenates three strings with truncation, as str_copy: faster than str_format, for names built by the million. */
bool str_join(char *to, size_t size, const char *first, const char *second, const char *third);

/* Removes white space at both ends, in place; returns the first byte kept. */
char *str_trim(char *string);

/* The last part of a path or of "organization/name"; any other text is returned whole. */
const char *str_last_part(const char *name);

/* Copies the next item of a comma-separated list into `item`; *list is NULL after the last.  False for an empty or
 * too long item. */
bool str_next_item(const char **list, char *item, size_t size);

/* Whether a comma-separated list has this item, in upper or lower case. */
bool str_list_has(const char *list, const char *item);

bool str_starts(const char *string, const char *prefix);
bool str_ends(const char *string, const char *ending);
bool str_equal_nocase(const char *a, const char *b);
bool str_is_listed(const char *name, const char *const *names, size_t count);

/* The first item of an array of strings, or of structs whose first member is a string, which equals `name`; NULL if
 * there is none, and for a name of NULL.  STR_FIND is for an array whose length is known. */
const void *str_find(const char *name, const void *items, size_t count, size_t item_size);
#define STR_FIND(name, array) str_find(name, array, COUNT_OF(array), sizeof *(array))
bool str_contains_nocase(const char *haystack, const char *needle);

/* Strict parsing: surrounding white space is allowed, anything else left over, an empty string,
 * overflow or (for the unsigned form) a sign is ERR_BAD_VALUE and *out is untouched. */
enum err parse_u64(const char *string, uint64_t *out) MUST_USE;
enum err parse_i64(const char *string, int64_t *out) MUST_USE;
enum err parse_double(const char *string, double *out) MUST_USE; /* refuses nan and inf */

int hex_digit(char c); /* its value; -1: none */

/* Replaces %41 by "A" and so on, in place; what is no escape stays. */
void str_percent_decode(char *string);

/* Text from outside (a file, a server, firmware, a path) is plain when it is safe on a terminal, in a table and in a
 * message: valid UTF-8, without control characters (escapes, line ends, tabs) and without bidirectional controls,
 * which could make a line display as another.  Other text is shown escaped: "\\x1b", "\
 * ", "\\u202e". */
bool str_is_plain(const char *string);

/* Display form of the first character of `left` bytes (at least 1): itself or its escape, without a NUL.  Returns
 * its length, and how many bytes it represents. */
enum { PLAIN_MAX = 6 };
size_t plain_character(const char *at, size_t left, char to[PLAIN_MAX], size_t *taken);

/* Makes a string plain in place, truncated to fit; drops a truncated character at the end.  Returns its argument. */
char *str_plain(char *string, size_t size);

/* The same for a copy: plain_text(name).text is valid until the end of the full expression. */
struct plain_text {
    char text[1024];
};
struct plain_text plain_text(const char *string);
void text_add_plain(struct text *text, const char *string);

/* Appends a word quoted for a POSIX shell, in single quotes if necessary. */
void text_add_shell(struct text *text, const char *word);

/* Appends text for a terminal, escaped where it is not plain, except line ends and, with `styled`, the colors that
 * the program uses. */
void text_add_lines(struct text *text, const char *bytes, size_t length, bool styled);

/* ---- UTF-8: lengths, validation, and code points in and out ---- */

/* Any bytes may be passed: a byte that is not part of a valid character decodes to a value of its own, UTF8_INVALID +
 * byte, so that broken text can be compared and written back unchanged. */
enum { UTF8_INVALID = 0x110000, UTF8_REPLACEMENT = 0xFFFD, UTF8_BYTES_MAX = 4 };

/* Whether a byte is not the first of a character. */
static inline bool utf8_is_continuation(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* Length in bytes of the valid character at the start of `left` bytes, or 0: overlong forms, surrogates,
 * values beyond U+10FFFF and truncated characters are invalid. */
size_t utf8_length(const char *bytes, size_t left);

/* How many of the leading bytes are valid UTF-8: `length` when all are. */
size_t utf8_valid_prefix(const char *bytes, size_t length);

/* The code point at the start of `left` bytes (at least one), and its length in bytes: 1 for an invalid byte. */
uint32_t utf8_decode(const char *bytes, size_t left, size_t *length);

/* Columns of a text on a terminal: one for each character. */
size_t utf8_width(const char *string);

/* Writes one code point (or the byte of an invalid one); returns the number of bytes. */
size_t utf8_encode(uint32_t code, char to[UTF8_BYTES_MAX]);

#endif
