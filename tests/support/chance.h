/* Random numbers of tests: of streams, which are their callers' states, and of one that each case of a property test
 * seeds again. */
#ifndef TESTS_SUPPORT_CHANCE_H
#define TESTS_SUPPORT_CHANCE_H

#include <stdint.h>

uint64_t chance_bits(uint64_t *stream);
double chance_of(uint64_t *stream); /* from 0, below 1 */

void chance_seed(uint64_t seed);
double chance(void); /* from 0, below 1 */
double between(double low, double high);

#endif
