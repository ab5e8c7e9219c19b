/* Random numbers for tests: of streams, whose state is the caller's, and of a global one that each case of a property
 * test seeds. */
#ifndef TESTS_SUPPORT_RNG_H
#define TESTS_SUPPORT_RNG_H

#include <stdint.h>

uint64_t rng_bits(uint64_t *stream);
double rng_uniform_of(uint64_t *stream); /* from 0, below 1 */

void rng_seed(uint64_t seed);
double rng_uniform(void); /* from 0, below 1 */
double rng_between(double low, double high);

#endif
