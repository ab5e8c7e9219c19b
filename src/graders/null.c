/* The null grader: every answer is null.  For runs whose answers nobody wants judged, for the tests,
 * and as the smallest example of a grader. */
#include "graders/grader.h"
#include "graders/words/reply.h"

static enum err null_open(const struct grader_config *config, struct grader *out, struct error *why)
{
    (void)config;
    (void)out;
    (void)why;
    return ERR_OK;
}

static enum err null_grade(struct grader *grader, const struct grading *what, struct grade *out,
                           struct error *why)
{
    (void)grader;
    (void)what;
    (void)why;
    grade_say(out, VERDICT_NULL, "%s", "not graded");
    return ERR_OK;
}

const struct grader_driver grader_null = {
    .name = "null",
    .summary = "grades nothing: every answer is null",
    .open = null_open,
    .grade = null_grade,
};
