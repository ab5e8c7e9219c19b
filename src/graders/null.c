/* The null grader: every answer is null.  For runs without grading, for tests, and as the smallest example
 * of a grader. */
#include "graders/answer.h"

static enum err null_grade(const void *state, const struct grading *what, struct grade *out,
                           struct error *why)
{
    (void)state;
    (void)what;
    (void)why;
    grade_null(out, "not graded");
    return ERR_OK;
}

const struct grader_driver grader_null = {
    .name = "null",
    .summary = "grades nothing: every answer is null",
    .grades_empty = true,
    .grade = null_grade,
};
