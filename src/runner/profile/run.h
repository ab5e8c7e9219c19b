/* A profile while it runs: what its threads share.  Owned by profile.c. */
#ifndef IPW_RUNNER_PROFILE_RUN_H
#define IPW_RUNNER_PROFILE_RUN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clients/client.h"
#include "core/err.h"
#include "runner/profile/context.h"
#include "runner/profile/supply.h"
#include "runner/samples_csv.h"
#include "rundir/journal.h"

struct session;
struct sharing;

struct profile_run {
    struct profile_context context;
    struct session *session;
    const struct client_driver *client_driver;
    struct client_config client_config;
    struct supply supply;
    struct journal journal; /* records.jsonl */
    struct journal spans;   /* spans.jsonl */
    struct sharing *sharing;
    double requests_joules; /* of those whose energy is in the journal; the main thread's */

    atomic_bool stop;   /* take no new query */
    atomic_bool cancel; /* break off those in flight */
    atomic_uint_fast64_t done, failed, output_tokens;
    atomic_uint_fast64_t asked;        /* attempts, those that were broken off included */
    atomic_uint_fast64_t next_request; /* id of the next request that attribution learns of */
    atomic_uint working;               /* workers that have not ended */

    pthread_mutex_t lock; /* guards what follows */
    enum err err;         /* the first that ends the run: the disk is full, the dataset broke */
    struct error why;
};

/* The first error that ends the run is kept; the workers take no new query after it. */
void run_fail(struct profile_run *run, enum err err, const struct error *why);

#endif
