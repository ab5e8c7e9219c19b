/* Finding the final answer in a completion.  The last of these markers wins:
 *   \boxed{X}, \fbox{X}        braces balanced
 *   #### X                     on a line of its own, X a number and nothing else
 *   answer: X, answer is X     in several languages and spellings; of "not X but Y" it is Y
 * X is the rest of the line, or the next line that is not blank.  A statement in a check or explanation at the end
 * counts only when there is no other.  Slices point into the text that was searched. */
#ifndef IPW_GRADERS_FINAL_H
#define IPW_GRADERS_FINAL_H

#include "core/err.h"
#include "core/slice.h"

struct params;

/* The parameter "final". */
enum final_rule {
    FINAL_AUTO,   /* the marker; without one the grader's own rule */
    FINAL_MARKED, /* the marker, or there is no answer */
    FINAL_LINE,   /* the last line that is not blank */
    FINAL_WHOLE,  /* everything */
};

#define FINAL_PARAM {"final", "RULE", "where the answer is: auto, marked, line or whole (auto)"}

enum err final_read(const struct params *params, enum final_rule *rule, struct error *why) MUST_USE;

enum final_marker { FINAL_NONE, FINAL_BOXED, FINAL_HASHES, FINAL_STATEMENT };

struct final_answer {
    enum final_marker marker; /* FINAL_NONE: `line` and `block` are by the rule */
    struct slice line;        /* trimmed */
    struct slice block;       /* for a statement whose X starts a line: up to the next blank line */
};

/* False if FINAL_MARKED finds no marker; *out is then the whole text. */
bool final_find(struct slice text, enum final_rule rule, struct final_answer *out);

/* The text up to where the model continues with another question, if there is a marker before it; the whole text for
 * FINAL_LINE and FINAL_WHOLE. */
struct slice final_first_question(struct slice text, enum final_rule rule);

/* The same for an expected answer: only \boxed{} and ####, else the whole text. */
struct slice final_expected(struct slice expected);

/* The first sentence: up to a full stop, ! or ? before white space. */
struct slice final_sentence(struct slice line);

struct slice final_last_line(struct slice text);

#endif
