/* The letter chosen by an answer to a multiple-choice question: mentions.c parses, statements.c and
 * claims.c weigh, letters.c decides. */
#ifndef IPW_GRADERS_LETTERS_H
#define IPW_GRADERS_LETTERS_H

#include "core/err.h"
#include "graders/tokens.h"

/* Plain data; nothing to release. */
struct letters {
    char first;  /* 'A'..'Z'; '\0': none was found */
    char second; /* another one that is claimed as strongly; '\0': none */
    bool listed; /* they only begin lines, as where the answer repeats the options */
};

enum { OPTIONS_MAX = 26 };

/* Information from the question, if it is known. */
struct options {
    struct slice texts[OPTIONS_MAX]; /* trimmed, without punctuation at the ends */
    unsigned count;
    struct slice stem; /* the question before them */
    bool asks_false;   /* "which is not true", "all are correct except" */
};

/* `count` is the number of letters from A on; `options` may be NULL. */
struct letters letters_find(struct slice answer, unsigned count, const struct options *options);

/* The letter of an expected answer: "B", "(b)", "B. text"; '\0' if it is not one. */
char letters_expected(struct slice expected, unsigned options);

/* ---- the letters of an answer that may name an option: mentions.c ---- */

/* A token of the answer, and the option that it may name. */
struct mention {
    struct token token;
    char letter;   /* 'A'..'Z'; '\0' for anything else */
    bool enclosed; /* in brackets, bold or quotes */
    bool bare_lower;
    bool ends;           /* a sentence */
    size_t sentence;     /* the first token of its sentence or line */
    size_t text_end;     /* end of the option's own text after its label, "C. Not found"; 0: none */
    bool judged, denied; /* cached result of mention_is_denied */
};

struct mentions {
    struct mention *at;
    size_t count, capacity;
    size_t first_word, last_word; /* outside is only punctuation, such as that of a code block */
    struct slice text;
    bool asks_false;
};

/* How far the words around a letter are read, in tokens, and those of its sentence; the marks around it. */
enum { MENTIONS_REACH = 24, MENTIONS_SENTENCE = 48 };
#define MENTION_OPENING "([{*_\"'`$<"
#define MENTION_CLOSING ")]}*_\"'`$"

/* Arguments as in letters_find. */
void mentions_read(struct mentions *mentions, struct slice text, unsigned count,
                   const struct options *options);
void mentions_release(struct mentions *mentions);

/* ---- the tokens around a letter ---- */

/* A TOKEN_LINE before the first and after the last. */
const struct token *mentions_token(const struct mentions *mentions, size_t i);

static inline const struct token *mentions_before(const struct mentions *mentions, size_t i)
{
    return mentions_token(mentions, i ? i - 1 : mentions->count);
}

static inline bool mentions_letter(const struct mentions *mentions, size_t i)
{
    return i < mentions->count && mentions->at[i].letter;
}

bool mentions_mark(const struct mentions *mentions, size_t i, const char *set);

/* Skips the punctuation that closes a letter. */
size_t mentions_skip_closing(const struct mentions *mentions, size_t i);

/* Skips the letter at `i`, the text of its option, and the punctuation that closes them. */
size_t mentions_skip_option(const struct mentions *mentions, size_t i);

/* The first token of the sentence or line that contains `i`, within a bounded distance. */
size_t mentions_sentence_first(const struct mentions *mentions, size_t i);

/* "option", "choice", "ending". */
bool mention_is_noun(const struct token *token);

/* "fits", "makes sense": said of an option that is right. */
bool mentions_praise(const struct mentions *mentions, size_t i);

/* "and", "or", a comma: between letters that stand together. */
bool mention_is_link(const struct token *token);

/* ---- statements about a letter: statements.c ---- */

enum verdict { SAID_NOTHING, SAID_RIGHT, SAID_WRONG };

/* "A) Incorrect", "B: yes", "| C | right |", "✅ C", "Is it D? No." */
enum verdict mention_verdict(const struct mentions *mentions, size_t i);

/* "not B", "B is wrong", "B is a common mistake", "at first B", "second best: B". */
bool mention_is_denied(const struct mentions *mentions, size_t i);

/* Whether what begins at `i` follows "all are true except", "everything but". */
bool mention_is_exception(const struct mentions *mentions, size_t i);

/* "B isn't perfect, but it's the best". */
bool mention_is_redeemed(const struct mentions *mentions, size_t i);

/* Neither denied nor doubted: "is it B?", "although B", "if x were 0, it would be B". */
bool mention_is_affirmed(const struct mentions *mentions, size_t i);

/* "Note that B ...": a remark besides the answer. */
bool mention_is_aside(const struct mentions *mentions, size_t i);

/* ---- how strongly an answer claims a letter: claims.c ---- */

enum claim { CLAIM_NONE, CLAIM_TRUE, CLAIM_CHOSEN, CLAIM_STATED };

enum claim mention_claim(const struct mentions *mentions, size_t i);

/* Whether the option is presented as an equal alternative: "C is just as likely", "so does C", "it could also be C",
 * "or is it C". */
bool mention_is_equal(const struct mentions *mentions, size_t i);

/* Whether one of the words is among the tokens [from, to). */
bool mentions_have(const struct mentions *mentions, size_t from, size_t to, const char *words);

#endif
