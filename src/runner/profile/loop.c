/* What happens beside the requests: while worker threads send them, the main thread handles signals, settles
 * energies, writes samples and shows progress; the committer thread brings the journals to disk. */
#include "core/clock.h"
#include "port/proc.h"
#include "port/thread.h"
#include "runner/profile/settle.h"
#include "runner/profile/state.h"
#include "runner/profile/worker.h"

#define TICK (50 * NS_PER_MS)

/* A kill costs the energies that are not settled yet.  Settling reads the sensors: some answer within a
 * millisecond, others, whose reads cost CPU time, only at their next update.  So at most a tenth of the
 * time goes into it, but it is done once a second at least, and when many requests have ended. */
#define SETTLE_MIN  (250 * NS_PER_MS)
#define SETTLE_MAX  NS_PER_S
#define SETTLE_COST 10
#define SETTLE_MANY (WORKERS_PENDING_MAX / 2)

/* A row that takes longer than this to read does not hold up an interruption. */
#define DATASET_MOST   NS_PER_S

#define SAMPLES_PERIOD (100 * NS_PER_MS)
#define COMMIT_PERIOD  (50 * NS_PER_MS)

void profile_fail(struct profile *profile, enum err err, const struct error *why)
{
    pthread_mutex_lock(&profile->lock);
    if (!profile->err) {
        profile->err = err;
        if (why && why->text[0])
            profile->why = *why;
        else
            err_set(&profile->why, err, "%s", err_text(err));
    }
    pthread_mutex_unlock(&profile->lock);
    atomic_store(&profile->stop, true);
}

void profile_warn(const struct profile *profile, const char *line)
{
    if (profile->options->warn)
        profile->options->warn(line);
}

void profile_begin_phase(struct profile *profile, const char *phase, int64_t total)
{
    profile->phase = phase;
    profile->phase_total = total;
    profile->phase_began = profile->settled_at = clock_now();
    profile->phase_tokens = (double)atomic_load(&profile->output_tokens);
    profile->watts = profile->joules_per_token = UNKNOWN;
    profile_show_progress(profile);
}

void profile_show_progress(const struct profile *profile)
{
    if (!profile->options->progress)
        return;
    double elapsed_s = seconds(clock_now() - profile->phase_began);
    double tokens = (double)atomic_load(&profile->output_tokens) - profile->phase_tokens;
    struct profile_progress progress = {
        .phase = profile->phase,
        .done = atomic_load(&profile->done),
        .failed = atomic_load(&profile->failed),
        .total = profile->phase_total,
        .elapsed_s = elapsed_s,
        .watts = profile->watts,
        .joules_per_token = profile->joules_per_token,
        .output_tokens_per_s = tokens > 0 && elapsed_s > 0 ? tokens / elapsed_s : UNKNOWN,
        .stopping = profile->signals > 0,
    };
    profile->options->progress(&progress);
}

/* ---- the loop ---- */

void profile_write_samples(struct profile *profile)
{
    /* A full disk must not end the run for its samples: they are reported as missing. */
    if (profile->writes_samples && (profile->samples_err = samples_log_append(&profile->samples)))
        profile->writes_samples = false;
    profile->samples_at = clock_now();
}

static enum err take_signal(struct profile *profile, int number)
{
    if (profile->signals++ == 0)
        profile->result->signal = number;
    atomic_store(&profile->stop, true);
    if (profile->signals >= 2)
        atomic_store(&profile->cancel, true);
    return profile->signals >= 3 ? ERR_INTERRUPTED : ERR_OK;
}

static bool is_time_to_settle(const struct profile *profile)
{
    nanos since = clock_now() - profile->settled_at;
    size_t ended = sharing_ended(profile->sharing);
    return since >= SETTLE_MAX || ended >= SETTLE_MANY ||
           (ended > 0 && since >= SETTLE_MIN && since >= SETTLE_COST * profile->settle_cost);
}

bool profile_awaits_dataset(struct profile *profile)
{
    unsigned working = atomic_load(&profile->working);
    if (!atomic_load(&profile->stop) || working == 0 || atomic_load(&profile->reading) < working)
        profile->stuck_since = 0;
    else if (profile->stuck_since == 0)
        profile->stuck_since = clock_now();
    return profile->stuck_since > 0 && clock_now() - profile->stuck_since > DATASET_MOST;
}

enum err profile_loop(struct profile *profile)
{
    enum err err = ERR_OK;
    while (atomic_load(&profile->working) > 0 && err != ERR_INTERRUPTED) {
        int number = proc_poll_signal(TICK);
        if (number)
            err = take_signal(profile, number);
        if (!err && profile_awaits_dataset(profile))
            err = ERR_INTERRUPTED;
        if (!err && is_time_to_settle(profile)) {
            err = settle_now(profile);
            if (err)
                profile_fail(profile, err, NULL);
        }
        if (clock_now() - profile->samples_at >= SAMPLES_PERIOD)
            profile_write_samples(profile);
        profile_show_progress(profile);
    }
    return err;
}

/* ---- to disk ---- */

static void *committer_main(void *argument)
{
    struct committer *committer = argument;
    struct profile *profile = committer->profile;
    struct error why = {0};
    thread_name("ipw-commit", -1);
    while (!atomic_load(&committer->stop)) {
        thread_sleep(COMMIT_PERIOD);
        enum err err = journal_sync(&profile->journal, &why);
        if (!err)
            err = journal_sync(&profile->spans, &why);
        if (!err && profile->options->agent)
            err = journal_sync(&profile->traces, &why);
        if (err)
            profile_fail(profile, err, &why);
    }
    return NULL;
}

enum err committer_start(struct committer *committer, struct profile *profile)
{
    committer->profile = profile;
    atomic_store(&committer->stop, false);
    return thread_start(&committer->thread, committer_main, committer);
}

void committer_stop(struct committer *committer)
{
    atomic_store(&committer->stop, true);
    pthread_join(committer->thread, NULL);
}
