/* A steady CPU load: threads that compute until they are stopped.  For checking that sensors respond,
 * and for demonstrations.  load_start allocates a load that load_stop ends and frees. */
#ifndef IPW_RUNNER_LOAD_H
#define IPW_RUNNER_LOAD_H

#include "core/err.h"

struct load;

/* threads 0 means one per CPU. */
struct load *load_start(unsigned threads);

/* Ends it; returns the number of billions of multiply-adds done. */
double load_stop(struct load *load);

#endif
