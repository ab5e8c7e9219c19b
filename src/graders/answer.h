/* What graders have in common: writing a grade, the reference answers of an item, and finding the final
 * answer in a completion.
 *
 * The last of these markers wins:
 *   \boxed{X}, \fbox{X}        braces balanced
 *   #### X                     on a line of its own, X a number and nothing else
 *   answer: X, answer = X      also "Final Answer: X", "**Answer**: X", and a heading "## Answer"
 *   answer is X                also "would be", "should be", "must be", "will be", and
 *                              "the answer to/for/of ... is X"; not "answer is not X"
 * X is the rest of the line, or the next line that is not blank.
 *
 * Slices point into the text that was searched.  A struct references owns the parsed metadata:
 * references_release. */
#ifndef IPW_GRADERS_ANSWER_H
#define IPW_GRADERS_ANSWER_H

#include "core/slice.h"
#include "graders/grader.h"

struct jv;

/* ---- grades ---- */

/* The reason is printed on one line and truncated at a whole character; that of true is empty. */
void grade_true(struct grade *grade);
void grade_false(struct grade *grade, const char *reason, ...) PRINTF_LIKE(2, 3);
void grade_null(struct grade *grade, const char *reason, ...) PRINTF_LIKE(2, 3);
void grade_extracted(struct grade *grade, struct slice what);

enum err grade_no_memory(struct error *why);

/* ---- references ---- */

enum { REFERENCES_MAX = 64, REFERENCES_PATH = 64 };

/* All answers that count as correct. */
struct references {
    const char *items[REFERENCES_MAX]; /* the expected answer first */
    unsigned count;
    struct jv *metadata;
};

#define REFERENCES_PARAM                                                                           \
    {"references", "PATH", "path of further correct answers in the metadata (references)"}

/* The parameter "references", for references_open. */
enum err references_read(const struct params *params, char path[REFERENCES_PATH], struct error *why)
    MUST_USE;

/* `path` is that of an array of strings in the metadata, "answers.text".  Without metadata or array
 * there is only the expected answer; entries beyond REFERENCES_MAX are ignored. */
void references_open(struct references *references, const struct grading *what, const char *path);
void references_release(struct references *references);

/* ---- the final answer ---- */

/* Appends the completion without <think>...</think> (also thinking, reasoning, [THINK]).  A closing tag
 * alone ends reasoning that began before the completion; an opening tag alone never ended. */
void answer_without_reasoning(struct text *out, const char *completion);

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
    enum final_marker marker; /* FINAL_NONE: `line` and `block` are what the rule leaves */
    struct slice line;        /* trimmed */
    struct slice block;       /* of a statement whose X starts a line: up to the next blank line */
};

/* False when FINAL_MARKED finds no marker; *out is then the whole text. */
bool final_find(struct slice text, enum final_rule rule, struct final_answer *out);

/* The same for an expected answer: \boxed{} and #### only, else all of it. */
struct slice final_expected(struct slice expected);

/* The first sentence: up to a full stop, ! or ? before white space. */
struct slice final_sentence(struct slice line);

struct slice final_last_line(struct slice text);

#endif
