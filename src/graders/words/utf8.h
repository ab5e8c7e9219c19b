/* Code points: reading and writing UTF-8, and what the graders ask about a character.
 * A byte that is no UTF-8 is read as one character of its own, UTF8_INVALID + the byte, so that any
 * bytes can be graded and broken ones equal only themselves.  Nothing here allocates or owns. */
#ifndef IPW_GRADERS_WORDS_UTF8_H
#define IPW_GRADERS_WORDS_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/slice.h"
#include "core/utf8.h"

/* The first character of a slice that is not empty; *length is how many bytes it took. */
uint32_t utf8_read(struct slice text, size_t *length);

/* The small letter of a capital: Latin, Greek, Cyrillic, Armenian.  Others have none or stay. */
uint32_t utf8_lower(uint32_t c);

bool utf8_is_space(uint32_t c);
bool utf8_is_punctuation(uint32_t c); /* ASCII's, and the general and CJK marks */
bool utf8_is_word(uint32_t c);        /* part of a word: neither space, mark nor control */

/* Typographic quotes, dashes and minus signs become their ASCII kin; all else stays. */
uint32_t utf8_plain(uint32_t c);

/* Copies for showing: on one line, whole characters, always valid UTF-8, cut to fit. */
void utf8_show(char *to, size_t size, struct slice from);

#endif
