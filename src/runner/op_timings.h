/* Operations of llama.cpp timed on this machine, over the sizes, formats and memories that models have: the part of a
 * calibration that times are estimated from.
 *
 * Ownership: timings_measure fills a struct that timings_release frees. */
#ifndef IPW_RUNNER_OP_TIMINGS_H
#define IPW_RUNNER_OP_TIMINGS_H

#include "catalog/timings.h"
#include "core/err.h"

struct timings_options {
    unsigned threads;                                                /* at least 1 */
    double budget_s;                                                 /* for each operation */
    void (*progress)(const char *load, unsigned done, unsigned all); /* may be NULL */
};

struct timings {
    struct hardware_timings table; /* runtime NULL: the library is not installed */
    char source[160];
    char missing[240]; /* why there are none; "" */
    struct hardware_timing *items;
    size_t capacity;
    int signal; /* that ended it; 0 */
};

/* ERR_INTERRUPTED with out->signal; without the library it is no error, and `missing` says why. */
enum err timings_measure(const struct timings_options *options, struct timings *out,
                         struct error *why) MUST_USE;
void timings_release(struct timings *timings);

#endif
