/* UTF-8: lengths, validation, and code points in and out.  Any bytes may be passed: a byte that is not part
 * of a valid character decodes to a value of its own, UTF8_INVALID + byte, so that broken text can be
 * compared and written back unchanged.  Nothing here allocates or owns. */
#ifndef IPW_CORE_UTF8_H
#define IPW_CORE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_INVALID = 0x110000, UTF8_REPLACEMENT = 0xFFFD, UTF8_BYTES_MAX = 4 };

/* Is it not the first byte of a character? */
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
