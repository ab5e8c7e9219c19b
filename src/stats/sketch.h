/* Moments and quantiles of a stream in bounded memory: exact for the first few thousand values, by a
 * histogram of one-per-cent bins after that.  For values of 0 and more (times, tokens, joules).
 * A struct sketch owns its memory: zero-initialise, sketch_release. */
#ifndef IPW_STATS_SKETCH_H
#define IPW_STATS_SKETCH_H

#include <stdint.h>

#include "core/err.h"
#include "stats/online.h"

struct sketch {
    struct online moments;
    double *exact;  /* the first values, until they are too many */
    uint64_t *bins; /* NULL until then */
};

/* UNKNOWN is not a value: it is left out. */
enum err sketch_add(struct sketch *sketch, double value) MUST_USE;

/* As stats/quantile.h while exact; within half a per cent after that.  UNKNOWN without a value. */
double sketch_quantile(const struct sketch *sketch, double p);
void sketch_release(struct sketch *sketch);

#endif
