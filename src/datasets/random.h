/* Repeatable random numbers: the same seed gives the same items on every machine and in every later
 * version, so the generator is written down here and not taken from a library.
 * A struct random is the caller's, and plain data. */
#ifndef IPW_DATASETS_RANDOM_H
#define IPW_DATASETS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

/* Two numbers make one seed: a user's, and what sets this stream apart from its neighbours. */
struct random random_from(uint64_t seed, uint64_t stream);

/* 0 .. limit-1, each equally likely; 0 when limit is 0. */
uint64_t random_below(struct random *random, uint64_t limit);

/* low .. high, both included. */
int64_t random_between(struct random *random, int64_t low, int64_t high);

/* Puts count things of a size into a random order. */
void random_shuffle(struct random *random, void *items, size_t count, size_t size);

/* A fingerprint of a string, the same everywhere. */
uint64_t random_hash(const char *string);

#endif
