/* Workers: each asks one query after another, grades the answer and writes it down.
 * workers_start gives workers that workers_join ends. */
#ifndef IPW_RUNNER_PROFILE_WORKER_H
#define IPW_RUNNER_PROFILE_WORKER_H

#include <stddef.h>

#include "core/err.h"

struct profile_run;
struct workers;

/* Opens a client for each and starts them.  On failure none is left running. */
enum err workers_start(struct profile_run *run, unsigned count, struct workers **out,
                       struct error *why) MUST_USE;
void workers_join(struct workers *workers);

/* Asks `wanted` queries of the dataset's beginning, one after another, and forgets the answers.
 * Nothing is taken from the run's own supply.  *asked tells how many were answered. */
enum err warm_up_queries(struct profile_run *run, unsigned wanted,
                         void (*each)(void *context, unsigned done), void *context, unsigned *asked,
                         struct error *why) MUST_USE;

#endif
