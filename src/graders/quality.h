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

/* Draws of items (resample_open): the contribution of each item to x and y of each metric; 0 if it does not count. */
struct quality_terms;
struct quality_terms *quality_terms_new(size_t items, size_t metrics);
void quality_terms_set(struct quality_terms *terms, size_t item, size_t metric, double x, double y);
/* For the driver: resample and resample_close. */
void quality_terms_resample(void *terms, const unsigned *weights,
                            double values[GRADER_QUALITIES_MAX]);
void quality_terms_free(void *terms);

#endif
