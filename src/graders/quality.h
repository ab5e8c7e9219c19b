/* Shared by graders with metrics of all answers: writing a metric, and a ratio of sums over items with its standard
 * uncertainty.  Plain data; a struct quality_sums owns nothing. */
#ifndef IPW_GRADERS_QUALITY_H
#define IPW_GRADERS_QUALITY_H

#include "graders/grader.h"

/* Unknown, with the reason, which is one line. */
void quality_unknown(struct grader_quality *out, const char *name, const char *reason, ...)
    PRINTF_LIKE(3, 4);

/* Sums of x and y over items, and of their squares and products over questions: the answers to one question, which are
 * added one after another, are not independent. */
struct quality_sums {
    double x, y, xx, xy, yy;
    double of_question_x, of_question_y;
    int64_t question;
    size_t count, questions;
};
void quality_add(struct quality_sums *sums, int64_t question, double x, double y);

/* The ratio x / y.  Its standard uncertainty is that of a ratio estimator over the questions; of a share, which is at
 * most 1, at least the half width of Wilson's interval of as many questions, since a share of 0 or 1 has no scatter.
 * Unknown, with `reason`, if y is 0. */
void quality_ratio(struct grader_quality *out, const char *name, struct quality_sums *sums,
                   bool is_share, const char *reason);

#endif
