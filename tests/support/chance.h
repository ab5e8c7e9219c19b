/* Random numbers of a property test: one stream, which each case seeds again. */
#ifndef TESTS_SUPPORT_CHANCE_H
#define TESTS_SUPPORT_CHANCE_H

#include <stdint.h>

void chance_seed(uint64_t seed);
double chance(void); /* from 0, below 1 */
double between(double low, double high);

#endif
