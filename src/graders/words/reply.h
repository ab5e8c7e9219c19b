/* What every grader begins and ends with: the answer without its reasoning, and the grade itself.
 * A struct reply owns the copy that it made: reply_release. */
#ifndef IPW_GRADERS_WORDS_REPLY_H
#define IPW_GRADERS_WORDS_REPLY_H

#include "core/slice.h"
#include "core/text.h"
#include "graders/grader.h"

struct reply {
    struct text text; /* NUL-terminated, without reasoning blocks, trimmed at both ends */
};

/* Takes <think>...</think> (also thinking, reasoning, [THINK]) out of `answer`.  A closing tag alone
 * ends reasoning that began before the answer; an opening tag alone is reasoning that never ended.
 * *empty is true when nothing is left, and *out then says so. */
enum err reply_open(struct reply *reply, const char *answer, bool *empty, struct grade *out,
                    struct error *why) MUST_USE;
void reply_release(struct reply *reply);
struct slice reply_slice(const struct reply *reply);

/* The words of a grade.  The reason is cut to fit at a whole character. */
void grade_say(struct grade *grade, enum verdict verdict, const char *reason, ...)
    PRINTF_LIKE(3, 4);
void grade_extracted(struct grade *grade, struct slice what);

/* True or false by a score and the least one that passes; the reason gives both when false. */
void grade_by_score(struct grade *grade, double score, double threshold);

/* The parameter "threshold": 0 to 1. */
enum err threshold_read(const struct params *params, double otherwise, double *out,
                        struct error *why) MUST_USE;

enum err out_of_memory(struct error *why);

#endif
