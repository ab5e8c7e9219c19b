/* Tokens of an answer, for graders that search prose for statements ("the answer is B", "so 12").  A token points into
 * the text.  Nothing is allocated: a struct tokens is a position, and a copy of it can look ahead. */
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

/* The same word or mark, case-insensitive. */
bool token_same(const struct token *a, const struct token *b);

/* Index in a list of words, each between two spaces, " is are "; -1 if it is not in it. */
int token_index(const struct token *token, const char *words);

static inline bool token_in(const struct token *token, const char *words)
{
    return token_index(token, words) >= 0;
}

/* A mark of one of these characters. */
bool token_is_mark(const struct token *token, const char *characters);

/* A mark that ends a sentence: . ! ? and those of Chinese; not the point in "ans." or "e.g.". */
bool token_ends_sentence(const struct token *token, const struct token *before);

/* "Answer" in several languages; in Chinese, Japanese and Korean within a run of characters. */
bool token_is_answer(const struct token *token);

/* Whether it contains this text, as a run of characters without spaces may. */
bool token_has(const struct token *token, const char *part);

/* A run of Chinese, Japanese or Korean characters. */
bool token_is_cjk(const struct token *token);

/* "is" in several languages: what links a statement with its value. */
bool token_is_link(const struct token *token);

bool token_is_negation(const struct token *token);

/* Whether the run of Chinese, Japanese or Korean characters makes the number after it a bound: "at least", "over". */
bool token_is_cjk_bound(const struct token *token);

/* A bracket, quote or mark of Markdown that may open a word. */
bool token_is_opening(const struct token *token);

/* ---- sentences ---- */

/* Takes one sentence from the front of *rest, trimmed; false if nothing is left.  A sentence also ends with its
 * line. */
bool sentence_next(struct slice *rest, struct slice *sentence);

/* The main clause: "42" of "42, because ...", "is 4" of "is 4 when x = 2", "1/3" of "1/3, about 0.33". */
struct slice sentence_without_reason(struct slice sentence);

/* "So it is 12.", "Yes, so it is 12." */
bool sentence_concludes(struct slice sentence);

/* Takes the next text in bold, **x**; false if there is none. */
bool bold_next(struct slice *rest, struct slice *bold);

/* Whether the text is truncated in the middle of a sentence. */
bool text_is_truncated(struct slice text);

/* Whether the sentence declines to answer, "I cannot determine ...", without an answer after that. */
bool text_declines(struct slice sentence);

/* The text without what only follows an answer: a verification of the result, an explanation, an offer of more help.
 * The whole text if it begins with that. */
struct slice text_without_asides(struct slice text);

/* The last sentence before such asides. */
struct slice text_last_sentence(struct slice text);

/* The text before the line where a model that has answered continues with another question, under a heading or as a
 * paragraph with options or a word problem; the whole text if there is none, or if it begins with a question: later
 * ones may be steps to its answer. */
struct slice text_before_question(struct slice text);

#endif
