/* Shared by the graders: writing a grade, the reference answers of an item, and removing reasoning from a completion.
 * A struct references owns nothing: it points into the graded item. */
#ifndef IPW_GRADERS_ANSWER_H
#define IPW_GRADERS_ANSWER_H

#include "core/slice.h"
#include "graders/grader.h"

/* ---- grades ---- */

/* The reason is one line, truncated at a character boundary; that of true is empty. */
void grade_true(struct grade *grade);
void grade_false(struct grade *grade, const char *reason, ...) PRINTF_LIKE(2, 3);
void grade_null(struct grade *grade, const char *reason, ...) PRINTF_LIKE(2, 3);
void grade_unread(struct grade *grade, const char *reason, ...) PRINTF_LIKE(2, 3);
void grade_extracted(struct grade *grade, struct slice what);

/* ---- references ---- */

enum { REFERENCES_MAX = 64, REFERENCES_PATH = 64 };

/* All answers that count as correct. */
struct references {
    const char *items[REFERENCES_MAX]; /* the expected answer first */
    unsigned count;
};

#define REFERENCES_PARAM                                                                           \
    {"references", "PATH", "path of further correct answers in the metadata (references)"}

/* The parameter "references", for references_find. */
enum err references_read(const struct params *params, char path[REFERENCES_PATH], struct error *why)
    MUST_USE;

/* `path` is that of an array of strings in the metadata, "answers.text".  Without it, there is only the expected
 * answer; entries beyond REFERENCES_MAX are ignored. */
void references_find(struct references *references, const struct grading *what, const char *path);

/* ---- reasoning ---- */

/* Appends the completion without <think>...</think> (also thinking, reasoning, [THINK]).  A closing tag
 * alone ends reasoning that began before the completion; an opening tag alone never ended. */
void answer_without_reasoning(struct text *out, const char *completion);

/* ---- JSON ---- */

/* Parses an answer that is JSON, or an expected one; `which` begins the reason of ERR_BAD_VALUE: "the answer".  jv_free
 * frees the tree. */
enum err answer_json(const char *text, const char *which, struct jv **out, struct error *why)
    MUST_USE;

/* ---- notation ---- */

/* Appends the text with full-width characters and Arabic-Indic digits as ASCII, and with the backslashes of LaTeX that
 * was escaped for JSON ("\\\\frac") as they were. */
void answer_plain(struct text *out, const char *answer);

#endif
