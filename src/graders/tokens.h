/* Tokens and sentences of an answer, for the rules that read prose.  A token points into the text.  Nothing is
 * allocated: a struct tokens is a position, and a copy of it can look ahead. */
#ifndef IPW_GRADERS_TOKENS_H
#define IPW_GRADERS_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/slice.h"

enum token_kind {
    TOKEN_WORD, /* letters and digits, with an apostrophe inside: "isn't"; Chinese is separate */
    TOKEN_MARK, /* one character that is not part of a word; "\text" and other commands of LaTeX */
    TOKEN_LINE, /* the end of a line */
};

struct token {
    enum token_kind kind;
    bool spaced; /* white space before it, or the start of the text */
    struct slice text;
};

struct tokens {
    const char *at, *end;
};

static inline struct tokens tokens_of(struct slice text)
{
    return (struct tokens){text.start, slice_end(text)};
}

/* False at the end of the text. */
bool token_next(struct tokens *tokens, struct token *out);

/* Case-insensitive; a typographic apostrophe equals an ASCII one. */
bool token_is(const struct token *token, const char *wanted);

/* Index in a list of words, each between two spaces, " is are "; -1 if it is not in it. */
int token_index(const struct token *token, const char *words);

static inline bool token_in(const struct token *token, const char *words)
{
    return token_index(token, words) >= 0;
}

/* Whether the text has one of the words of such a list. */
bool has_token(struct slice text, const char *words);

/* A run of Chinese, Japanese or Korean characters. */
bool token_is_cjk(const struct token *token);

unsigned count_words(struct slice text);

/* ---- sentences ---- */

/* Takes one sentence from the front of *rest, trimmed; false if nothing is left.  A sentence also ends with its
 * line. */
bool sentence_next(struct slice *rest, struct slice *sentence);

/* Takes the next text in bold, **x**; false if there is none. */
bool bold_next(struct slice *rest, struct slice *bold);

#endif
