/* A steady CPU load: threads that compute until told to stop.  For checking that sensors move, and
 * for a demonstration that needs nothing else.  load_start gives a load that load_stop ends. */
#ifndef IPW_RUNNER_LOAD_H
#define IPW_RUNNER_LOAD_H

#include "core/err.h"

struct load;

/* threads 0 means one a CPU. */
struct load *load_start(unsigned threads);

/* Ends it; returns the number of billions of multiply-adds done. */
double load_stop(struct load *load);

#endif
