/* How sure figures are where questions were asked several times: the unit of chance is the question, and
 * its repeats are no new ones.  Pure; nothing is owned. */
#ifndef IPW_METRICS_REPEATS_H
#define IPW_METRICS_REPEATS_H

#include <stddef.h>

/* One question: sums over its answered repeats. */
struct question {
    double index; /* which */
    double right, graded;
    double joules, known; /* of those whose energy is known, and how many they are */
};

struct repeats {
    size_t questions; /* 0: each was asked once, and there is nothing to heed */
    /* As many independent answers would make the accuracy as uncertain: the graded ones over their design
     * effect.  The number of questions where all or none are right. */
    double effective;
    double accuracy_error, joules_error,
        ipj_error; /* standard errors; UNKNOWN under two questions */
};

/* Answers, each as a question of its own, become questions, in the order of their indices; returns how many
 * there are, at the front. */
size_t questions_merge(struct question *answers, size_t count);

struct repeats repeats_of(const struct question *questions, size_t count);

#endif
