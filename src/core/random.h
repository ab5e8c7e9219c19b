/* Reproducible random numbers (splitmix64): one seed gives the same numbers on every machine and in every
 * version, so the generator is defined here rather than taken from a library.
 * A struct random is plain data owned by the caller. */
#ifndef IPW_CORE_RANDOM_H
#define IPW_CORE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

/* Seeded by the user's seed and a stream number, so that streams of the same seed are independent. */
struct random random_from(uint64_t seed, uint64_t stream);

/* Seeded by one number, for resampling. */
struct random random_seeded(uint64_t seed);

/* Uniform in (0, 1): neither end is ever returned. */
double random_unit(struct random *random);

/* 0 .. limit-1, exactly uniform (it may draw more than once); 0 when limit is 0. */
uint64_t random_below(struct random *random, uint64_t limit);

/* The same from exactly one draw, uniform except for a bias of 2^-52: sufficient for resampling. */
size_t random_index(struct random *random, size_t limit);

/* Standard normal: mean 0, standard deviation 1. */
double random_normal(struct random *random);

/* Uniform in low .. high, both inclusive. */
int64_t random_between(struct random *random, int64_t low, int64_t high);

/* Puts count items of a size into a random order. */
void random_shuffle(struct random *random, void *items, size_t count, size_t size);

#endif
