/* Workers: threads that each send one query after another, grade the answer and journal it.
 * workers_start gives workers that workers_join ends and frees. */
#ifndef IPW_RUNNER_PROFILE_WORKER_H
#define IPW_RUNNER_PROFILE_WORKER_H

#include "core/err.h"

struct profile;
struct workers;

/* So many queries may end while those before them are settled; then workers wait, so that a client that
 * answers at once cannot fill the memory with unsettled queries.  No service is so fast: it takes more
 * than this many answers between two settlings. */
enum { WORKERS_PENDING_MAX = 4096 };

/* Opens a client for each and starts them.  On failure none is left running. */
enum err workers_start(struct profile *profile, unsigned count, struct workers **out,
                       struct error *why) MUST_USE;
void workers_join(struct workers *workers);

/* Sends `wanted` queries from the front of the dataset, one after another, and discards the answers.
 * Nothing is taken from the run's own supply; profile->done counts them.  *answered is how many were
 * answered. */
enum err warm_up_queries(struct profile *profile, unsigned wanted, unsigned *answered,
                         struct error *why) MUST_USE;

#endif
