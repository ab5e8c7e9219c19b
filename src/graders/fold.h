/* Characters and folding: the properties of Unicode code points that graders need, and folding of texts that differ
 * only in what a grader ignores.  An invalid UTF-8 byte is one character (core/text.h), so any bytes can be graded.
 * Results are appended to the caller's struct text. */
#ifndef IPW_GRADERS_FOLD_H
#define IPW_GRADERS_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/slice.h"
#include "core/text.h"

struct params;
struct text;

/* ---- characters ---- */

/* The first character of a nonempty slice, and its length in bytes. */
static inline uint32_t char_at(struct slice text, size_t *length)
{
    if (text.length && (unsigned char)text.start[0] < 0x80) { /* fast path for most text */
        *length = 1;
        return (unsigned char)text.start[0];
    }
    return utf8_decode(text.start, text.length, length);
}

/* The lower-case letter of an upper-case one: Latin, Greek, Cyrillic, Armenian.  Others are unchanged.  That
 * of the Turkish I with a dot is an i, followed by CHAR_LOWER_MARK. */
uint32_t char_lower(uint32_t c);

enum { CHAR_DOTTED_I = 0x130 };
#define CHAR_LOWER_MARK "\xCC\x87"

bool char_is_space(uint32_t c);
bool char_is_punctuation(uint32_t c); /* ASCII, and the general and CJK marks */
bool char_is_word(uint32_t c);        /* part of a word: not space, punctuation or control */
bool char_is_cjk(uint32_t c);         /* in a script without spaces between words, or Hangul */

/* The number in superscript at the start, "²³" is 23; returns its length in bytes, 0 if there is none. */
size_t char_superscript(struct slice text, double *value);

/* The letter or digit of a character in subscript, "2" of ₂; NULL for any other. */
const char *char_subscript(uint32_t c);

/* Copies as one line of valid UTF-8, truncated at a whole character. */
void char_one_line(char *to, size_t size, struct slice from);

/* ---- folding ---- */

enum fold_strip {
    FOLD_NOTHING,     /* nothing else: white space is always trimmed and collapsed to one space */
    FOLD_EDGES,       /* also punctuation at both ends: . , ; : ! ? quotes, and Markdown's * _ ` */
    FOLD_PUNCTUATION, /* all punctuation */
    FOLD_ALL,         /* all punctuation and all white space */
};

struct fold {
    bool keep_case;
    enum fold_strip strip;
};

/* The parameters "case" (ignore or keep) and "strip" (none, edges, punctuation, all); those not given
 * leave *fold unchanged. */
enum err fold_read(const struct params *params, struct fold *fold, struct error *why) MUST_USE;

/* Appends the folded text.  Typographic quotes and dashes become ASCII. */
void fold_add(struct text *out, const struct fold *fold, struct slice from);

/* The text without the punctuation that FOLD_EDGES removes. */
struct slice fold_edges(struct slice from);

/* Compares both folded.  A text that consists only of punctuation is compared unfolded. */
bool fold_equal(const struct fold *fold, struct slice a, struct slice b);

/* ---- searching ---- */

/* Whether the text occurs, perhaps only as whole words. */
bool text_occurs(struct slice text, struct slice wanted, bool whole_words);

/* Whether it occurs as whole words, both folded. */
bool fold_occurs(const struct fold *fold, struct slice text, struct slice wanted);

#endif
