#include "runner/profile/keeping.h"

#include "core/clock.h"
#include "port/proc.h"
#include "port/thread.h"
#include "runner/profile/run.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

#define TICK         (50 * NS_PER_MS)
#define SETTLE_EARLY (PENDING_MOST / 2)
/* A kill costs the energies that are not settled yet.  Settling reads the sensors, which some of them
 * answer within a millisecond and others, whose reads cost CPU time, only at their next update: at most
 * a tenth of the time is spent on it, and at least one settling a second is done. */
#define SETTLE_LEAST  (250 * NS_PER_MS)
#define SETTLE_MOST   NS_PER_S
#define SETTLE_SHARE  10
#define KEEP_PERIOD   (100 * NS_PER_MS)
#define COMMIT_PERIOD (50 * NS_PER_MS)

enum { DEVICES_MOST = 64 };

/* ---- how far ---- */

/* What the requests and the machine have spent, over the devices that count. */
static void sum_devices(const struct sharing *sharing, double *requests, double *all)
{
    struct sharing_device_sum sums[DEVICES_MOST];
    size_t count = sharing_sums(sharing, sums, DEVICES_MOST);
    *requests = *all = UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        if (!sums[i].counted || !is_known(sums[i].settled_joules))
            continue;
        *requests = (is_known(*requests) ? *requests : 0) + sums[i].requests_joules;
        *all = (is_known(*all) ? *all : 0) + sums[i].settled_joules;
    }
}

static double tokens_so_far(const struct keeping *keeping)
{
    return (double)atomic_load(&keeping->run->output_tokens) - keeping->tokens_before;
}

void show_progress(const struct keeping *keeping)
{
    struct profile_run *run = keeping->run;
    if (!run->context.options->progress)
        return;
    double elapsed = seconds(clock_now() - keeping->began);
    double tokens = tokens_so_far(keeping);
    struct profile_progress progress = {
        .phase = keeping->phase,
        .done = atomic_load(&run->done),
        .failed = atomic_load(&run->failed),
        .total = keeping->total,
        .elapsed_s = elapsed,
        .watts = keeping->watts,
        .joules_per_token = keeping->joules_per_token,
        .output_tokens_per_s = tokens > 0 && elapsed > 0 ? tokens / elapsed : UNKNOWN,
        .stopping = keeping->signals > 0,
    };
    run->context.options->progress(&progress);
}

/* ---- attribution behind the run ---- */

void keep_samples(struct keeping *keeping)
{
    if (keeping->samples && samples_log_append(keeping->samples) != ERR_OK)
        keeping->samples = NULL;
    keeping->kept_at = clock_now();
}

enum err settle_all(struct keeping *keeping, nanos now)
{
    struct profile_run *run = keeping->run;
    double requests, before, after;
    nanos settled = sharing_settled(run->sharing);
    nanos began = clock_now();
    sum_devices(run->sharing, &requests, &before);
    sampler_settle(run->session->sampler, now);
    enum err err = sharing_advance(run->sharing, now, keeping->take, run);
    if (!err)
        keep_samples(keeping);
    sum_devices(run->sharing, &requests, &after);
    double span = seconds(sharing_settled(run->sharing) - settled);
    if (span > 0)
        keeping->watts = (after - (is_known(before) ? before : 0)) / span;
    /* Here both are of the same moment; a little later the tokens would be ahead. */
    double tokens = tokens_so_far(keeping);
    keeping->joules_per_token = tokens > 0 ? requests / tokens : UNKNOWN;
    keeping->settled_at = clock_now();
    keeping->settle_cost = keeping->settled_at - began;
    return err;
}

/* ---- the loop ---- */

static enum err take_signal(struct keeping *keeping, int number)
{
    if (keeping->signals++ == 0)
        keeping->signal = number;
    atomic_store(&keeping->run->stop, true);
    if (keeping->signals >= 2)
        atomic_store(&keeping->run->cancel, true);
    return keeping->signals >= 3 ? ERR_INTERRUPTED : ERR_OK;
}

static bool is_time_to_settle(const struct keeping *keeping)
{
    nanos since = clock_now() - keeping->settled_at;
    nanos often = SETTLE_SHARE * keeping->settle_cost;
    size_t ended = sharing_ended(keeping->run->sharing);
    return since >= SETTLE_MOST || ended >= SETTLE_EARLY ||
           (ended > 0 && since >= SETTLE_LEAST && since >= often);
}

enum err keep_house(struct keeping *keeping)
{
    struct profile_run *run = keeping->run;
    enum err err = ERR_OK;
    while (atomic_load(&run->working) > 0 && err != ERR_INTERRUPTED) {
        int number = proc_poll_signal(TICK);
        if (number)
            err = take_signal(keeping, number);
        if (!err && is_time_to_settle(keeping)) {
            err = settle_all(keeping, clock_now());
            if (err)
                run_fail(run, err, NULL);
        }
        if (clock_now() - keeping->kept_at >= KEEP_PERIOD)
            keep_samples(keeping);
        show_progress(keeping);
    }
    return err;
}

/* ---- to the disk ---- */

static void *committer_main(void *argument)
{
    struct committer *committer = argument;
    struct error why = {0};
    thread_settle("ipw-commit", -1);
    while (!atomic_load(&committer->stop)) {
        thread_sleep(COMMIT_PERIOD);
        enum err err = journal_sync(&committer->run->journal, &why);
        if (!err)
            err = journal_sync(&committer->run->spans, &why);
        if (err)
            run_fail(committer->run, err, &why);
    }
    return NULL;
}

enum err committer_start(struct committer *committer, struct profile_run *run)
{
    committer->run = run;
    atomic_store(&committer->stop, false);
    return thread_start(&committer->thread, committer_main, committer);
}

void committer_stop(struct committer *committer)
{
    atomic_store(&committer->stop, true);
    pthread_join(committer->thread, NULL);
}
