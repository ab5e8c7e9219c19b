/* The null test: the rounds of even and of odd number did the same work, so their joules may differ by
 * chance alone.  A difference beyond that says that the measurement is not to be trusted. */
#ifndef IPW_RUNNER_LAYERS_NULL_TEST_H
#define IPW_RUNNER_LAYERS_NULL_TEST_H

#include "runner/layers.h"

/* Fills null_difference, null_sigma and null_holds; UNKNOWN under two rounds. */
void null_test(struct layers_model *model);

#endif
