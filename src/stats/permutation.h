/* Permutation tests of a difference of means: how often chance alone makes one as large.  Where there
 * are no more arrangements than `most`, each is tried and p is exact; else `most` are drawn by the seed
 * and p = (as large + 1) / (drawn + 1).  Two-sided.  Pure but for memory of their own. */
#ifndef IPW_STATS_PERMUTATION_H
#define IPW_STATS_PERMUTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct permutation {
    double difference; /* mean(a) - mean(b), or the mean of a - b */
    double p_value;
    uint64_t tried; /* arrangements */
    bool exact;
};

/* The same queries twice: the signs of the differences are exchanged.  All values must be finite. */
enum err permutation_paired(const double *a, const double *b, size_t count, uint64_t most,
                            uint64_t seed, struct permutation *out) MUST_USE;

/* Two sets of queries: who belongs to which is exchanged.  ERR_NO_DATA when one is empty. */
enum err permutation_unpaired(const double *a, size_t a_count, const double *b, size_t b_count,
                              uint64_t most, uint64_t seed, struct permutation *out) MUST_USE;

#endif
