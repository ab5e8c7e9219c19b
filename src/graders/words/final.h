/* Where in a reply the final answer stands.
 *
 * The last of these marks wins, wherever the others are:
 *   \boxed{X}, \fbox{X}        braces balanced
 *   #### X                     a line of its own, X a number and nothing else
 *   answer: X, answer = X      also "Final Answer: X", "**Answer**: X", and a heading "## Answer"
 *   answer is X                also "would be", "should be", "must be", "will be", and
 *                              "the answer to/for/of ... is X"; not "answer is not X"
 * X is the rest of the line; where that is blank, the next line that is not.
 *
 * Nothing is allocated; the slices point into the text that was searched. */
#ifndef IPW_GRADERS_WORDS_FINAL_H
#define IPW_GRADERS_WORDS_FINAL_H

#include <stdbool.h>

#include "core/err.h"
#include "core/slice.h"

struct params;

/* The parameter "final". */
enum final_rule {
    FINAL_AUTO,   /* the mark; without one the grader's own rule */
    FINAL_MARKED, /* the mark, or there is no answer */
    FINAL_LINE,   /* the last line that is not blank */
    FINAL_WHOLE,  /* everything */
};

enum final_kind { FINAL_NONE, FINAL_BOXED, FINAL_HASHES, FINAL_STATEMENT };

struct final {
    enum final_kind kind; /* FINAL_NONE: `line` and `block` are what the rule leaves */
    struct slice line;    /* trimmed */
    struct slice block;   /* of a statement: up to the next blank line, where X began a new line */
};

#define FINAL_PARAM {"final", "RULE", "where the answer stands: auto, marked, line or whole (auto)"}

enum err final_read(const struct params *params, enum final_rule *rule, struct error *why) MUST_USE;

/* False when FINAL_MARKED finds no mark; *out is then the whole text. */
bool final_find(struct slice text, enum final_rule rule, struct final *out);

/* The same for an expected answer: \boxed{} and #### only, else the whole. */
struct slice final_expected(struct slice expected);

/* The first sentence: up to a full stop, ! or ? before white space. */
struct slice final_sentence(struct slice line);

struct slice final_last_line(struct slice text);

#endif
