/* The question that an answer belongs to: its options, what it asks, and where an answer repeats that.  Slices point
 * into the texts that were read. */
#ifndef IPW_GRADERS_QUESTION_H
#define IPW_GRADERS_QUESTION_H

#include <stdbool.h>

#include "core/slice.h"
#include "graders/markers.h"
#include "graders/tokens.h"

enum { OPTIONS_MAX = 26, OPTION_LENGTH = 200 };

struct asked_question {
    struct slice stem;  /* all before the options */
    struct slice asked; /* its last sentence that has a question mark, else the last one */
    struct slice options[OPTIONS_MAX]; /* empty if longer than OPTION_LENGTH */
    unsigned count;
};

/* Options are the last list from A: "A) ", "(A) ", "A. " or "A: ". */
void question_read(struct asked_question *out, struct slice text);

/* Makes words of the answer that would be a doubt (prose.h) unknown ones if the question has them, too: "4 play
 * neither" is definite if that is what is asked.  Negations remain. */
void mask_asked_words(const struct asked_question *question, char *answer);

/* Whether it asks with this word: "by how much", "in which year". */
bool asks_with(const struct asked_question *question, const struct token *word);

/* ---- options named by their text: each is a letter ---- */

enum { NO_LETTER = '\0', SEVERAL_LETTERS = '/' };

/* The combined result of two places. */
char combine(char one, char other);

/* The option that begins the text, before an explanation: "Turkey - it stayed neutral", "The liver, which ...". */
char option_beginning(const struct asked_question *question, struct slice text);

/* The only option that is the same, or else that is equal as an expression. */
char option_equal(const struct asked_question *question, struct slice text);

/* The only option whose text occurs; one that is part of a longer one that occurs does not count. */
char option_within(const struct asked_question *question, struct slice text);

/* The only option of which the text has words of its own: "Kant" for "Immanuel Kant". */
char option_worded(const struct asked_question *question, struct slice text);

/* The only option of which the text has most words, and at most half that share of another one's. */
char option_akin(const struct asked_question *question, struct slice text);

/* ---- restatements ---- */

/* Whether the sentence has none of the words of a question that has several. */
bool is_off_topic(const struct asked_question *question, struct slice sentence);

/* Takes the next part of a sentence, up to a comma, a bracket or a conjunction. */
bool clause_next(struct slice *rest, struct slice *clause);

/* The clauses of the text that repeat the most words of what is asked; none unless these are half of its words. */
void find_restatement(const struct asked_question *question, struct slice text, struct places *out);

#endif
