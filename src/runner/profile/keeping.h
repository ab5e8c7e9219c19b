/* Keeping house while others work: signals, attribution, samples, progress; and a thread that brings
 * what was written to the disk. */
#ifndef IPW_RUNNER_PROFILE_KEEPING_H
#define IPW_RUNNER_PROFILE_KEEPING_H

#include <pthread.h>
#include <stdatomic.h>

#include "attribute/share.h"
#include "core/err.h"
#include "core/units.h"
#include "runner/samples_csv.h"

struct profile_run;

struct keeping {
    struct profile_run *run;
    sharing_take *take; /* what to do with a share */
    const char *phase;
    int64_t total;
    nanos began;
    struct samples_log *samples; /* NULL: none */
    int signal;                  /* the first that came */
    unsigned signals;
    nanos settled_at;               /* when attribution last went on */
    nanos settle_cost;              /* how long that took */
    nanos kept_at;                  /* when the samples were last written */
    double watts, joules_per_token; /* when attribution last went on; UNKNOWN before */
    double tokens_before;           /* output tokens when this phase began */
};

/* As many queries may end while attribution settles those before them; then the workers wait for it, so
 * that a client that answers at once cannot fill the memory with queries whose energy is not known yet.
 * No service is so fast: it takes more than this many answers a second. */
enum { PENDING_MOST = 4096 };

/* Returns when every worker has ended, or at the third signal (ERR_INTERRUPTED).  The first signal lets
 * the queries in flight end, the second breaks them off. */
enum err keep_house(struct keeping *keeping) MUST_USE;

/* Settles everything up to now. */
enum err settle_all(struct keeping *keeping, nanos now) MUST_USE;

/* Writes the samples that are new.  They are for later: when they cannot be written, the run goes on
 * without them. */
void keep_samples(struct keeping *keeping);

/* Tells how far it is. */
void show_progress(const struct keeping *keeping);

/* Syncs the journals every few hundredths of a second until stopped. */
struct committer {
    struct profile_run *run;
    pthread_t thread;
    atomic_bool stop;
};
enum err committer_start(struct committer *committer, struct profile_run *run) MUST_USE;
void committer_stop(struct committer *committer);

#endif
