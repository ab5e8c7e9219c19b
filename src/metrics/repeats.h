/* Standard errors when questions were asked several times: the sampling unit is the question, and its
 * repeats are not independent samples.  Pure functions; nothing is owned. */
#ifndef IPW_METRICS_REPEATS_H
#define IPW_METRICS_REPEATS_H

#include <stddef.h>

/* One question: sums over its answered repeats. */
struct question {
    double index;         /* which question */
    double right, graded; /* correct and graded answers */
    double joules, known; /* energy of the answers whose energy is known, and their number */
};

struct repeats {
    size_t questions; /* 0: each was asked once, so repeats need no correction */
    /* Effective sample size of the accuracy: the graded answers over their design effect, or the number
     * of questions when all or none are correct. */
    double effective;
    /* Standard errors; UNKNOWN below two questions. */
    double accuracy_error, joules_error, ipj_error;
};

/* Merges answers, each given as a question of its own, into questions sorted by index at the front of the
 * array; returns the number of questions. */
size_t questions_merge(struct question *answers, size_t count);

struct repeats repeats_of(const struct question *questions, size_t count);

#endif
