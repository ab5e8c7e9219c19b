/* Attribution lags behind the queries (attribute/share.h).  The sender of a request begins and ends it in
 * profile->shared.sharing; the main thread settles requests and passes each share to profile->settling.take_share, which
 * journals it.  A start's account consists of its run line and, if it finished, its end line; a killed start has no end
 * line, and only its requests' energies are known. */
#include "runner/profile/phases.h"
#include "runner/profile/state.h"

#include <stdlib.h>

#include "core/clock.h"
#include "core/energy.h"
#include "port/json_read.h"
#include "port/proc.h"
#include "port/thread.h"
#include "runner/profile/resume.h"
#include "runner/profile/worker.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

enum {
    DEVICES_MAX = 64,
    END_SPACE = 4096,   /* maximum bytes of an end line */
    KEEP_MAX = 64 << 20 /* of requests until idle power is known: some ten thousand answers */
};

/* The weight of a decode token depends on model, batch and device: measured and published ratios are within a factor of
 * ten on either side of 64, two standard uncertainties of this factor. */
#define WEIGHT_FACTOR 3

/* Attribution settles whole slices of a millisecond: this wait after the last answer ensures that its end is within a
 * settled slice. */
#define SLICE_LAG (3 * NS_PER_MS)

/* ---- sharing ---- */

void settle_begin(struct profile *profile, nanos from, sharing_take *take)
{
    struct sharing_options options = {
        .from = from,
        .idle = profile->has_idle ? &profile->idle : NULL,
        .decode_weight = profile->options->decode_weight,
        .weight_factor = WEIGHT_FACTOR,
        .keep_max = profile->options->proxy && profile->options->idle_s > 0 ? KEEP_MAX : 0,
        .release = free,
    };
    sharing_free(profile->shared.sharing);
    profile->settling.take_share = take;
    profile->shared.sharing = sharing_new(profile->session->sampler, &options);
}

/* Energy of the requests and of the machine, over the counted devices. */
static void sum_devices(const struct sharing *sharing, double *requests, double *all)
{
    struct sharing_device_sum sums[DEVICES_MAX];
    size_t count = sharing_sums(sharing, sums, DEVICES_MAX);
    *requests = *all = UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        if (!sums[i].counted || !is_known(sums[i].settled_joules))
            continue;
        add_known(requests, sums[i].requests_joules);
        add_known(all, sums[i].settled_joules);
    }
}

static void end_batch(struct profile *profile)
{
    struct error why = {0};
    enum err err = journal_batch_end(&profile->files.journal, &why);
    profile->files.unsettled = profile->files.unsettled || err;
    if (err)
        profile_fail(profile, err, &why);
}

/* Reads the sensors and settles all requests that are covered. */
static enum err settle_now(struct profile *profile)
{
    double requests, before, after;
    nanos now = clock_now();
    nanos settled = sharing_settled(profile->shared.sharing);
    sum_devices(profile->shared.sharing, &requests, &before);
    sampler_settle(profile->session->sampler, now);
    journal_batch_begin(&profile->files.journal);
    enum err err =
        sharing_advance(profile->shared.sharing, now, profile->settling.take_share, profile);
    end_batch(profile);
    sum_devices(profile->shared.sharing, &requests, &after);
    double span = seconds(sharing_settled(profile->shared.sharing) - settled);
    if (span > 0)
        profile->settling.watts = (after - (is_known(before) ? before : 0)) / span;
    /* Tokens at the same time as the joules: read later, they would be ahead. */
    double tokens =
        (double)atomic_load(&profile->shared.output_tokens) - profile->loop.phase_tokens;
    profile->settling.joules_per_token = tokens > 0 ? requests / tokens : UNKNOWN;
    profile->settling.settled_at = clock_now();
    profile->settling.settle_cost = profile->settling.settled_at - now;
    return err;
}

enum err settle_rest(struct profile *profile, struct error *why)
{
    thread_sleep(SLICE_LAG);
    enum err err = settle_now(profile);
    return err ? err_set(why, err, "cannot attribute the energy: %s", err_text(err)) : ERR_OK;
}

/* ---- the account of this start ---- */

enum err settle_open_account(struct profile *profile, nanos from, struct error *why)
{
    const struct jv_member MEASURING[] = {
        {"from_s", jv_new_number(seconds(from - profile->zero))},
        {"decode_weight", jv_new_number(profile->options->decode_weight)},
        {"queries",
         jv_new_number(profile->shared.supply.total >= 0 ? (double)profile->shared.supply.total
                                                         : UNKNOWN)},
    };
    struct jv *measuring = jv_new_members(MEASURING, COUNT_OF(MEASURING));
    struct jv *settings = resume_settings(profile->options, profile->setup.dataset_hash);
    struct text line = {0};
    struct journal_header header = {
        .kind = profile_kind(profile->options),
        .start = profile->start,
        .started_at = seconds(profile->zero_wall),
        .hardware_label = profile->host->label,
        .settings = settings,
        .measuring = measuring,
        .repeat = profile->repeat,
    };
    journal_header_line(&header, &line);
    enum err err = journal_append(&profile->files.journal, &line, why);
    if (!err)
        err = journal_reserve(&profile->files.journal, END_SPACE, why);
    text_release(&line);
    jv_free(settings);
    jv_free(measuring);
    return err;
}

/* Warns about a device that was measured only part of the time: its sensor was lost. */
static void warn_of_coverage(const struct ledger *ledger, struct energy *total)
{
    const struct ledger_device *worst = NULL;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct ledger_device *device = &ledger->devices[i];
        if (device->counted && device->energy.coverage < 0.995 &&
            (!worst || device->energy.coverage < worst->energy.coverage))
            worst = device;
    }
    if (worst && !total->note[0])
        chars_format(total->note,
                     "%s (%s) was not measured for %.1f %% of the time; that energy is missing",
                     worst->id, worst->sensor->id, 100 * (1 - worst->energy.coverage));
}

/* Sums the settled energy since `from`. */
static enum err sum_start(struct profile *profile, nanos from, struct error *why)
{
    const struct sharing *sharing = profile->shared.sharing;
    struct run_energy *spent = &profile->settling.spent;
    struct sharing_device_sum sums[DEVICES_MAX];
    enum err err =
        ledger_take(profile->session->sampler, from, sharing_settled(sharing),
                    profile->has_idle ? &profile->idle : NULL, &profile->settling.ledger);
    if (err)
        return err_set(why, err, "cannot sum the energy: %s", err_text(err));
    profile->settling.has_ledger = true;
    spent->busy_s = spent->busy.seconds = sharing_busy_s(sharing);
    spent->energy = profile->settling.ledger.total;
    warn_of_coverage(&profile->settling.ledger, &spent->energy);
    size_t count = sharing_sums(sharing, sums, DEVICES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!sums[i].counted)
            continue;
        add_known(&spent->busy.joules, sums[i].requests_joules);
        add_known(&spent->accounted_joules, sums[i].settled_joules);
        add_known(&spent->idle_joules, sums[i].idle_joules);
        add_known(&spent->unattributed_joules, sums[i].unattributed_joules);
    }
    /* Joules that no request got, because their sensor reported them late, belong to uncovered time, which is removed
     * with them. */
    double watts = sharing_busy_w(sharing);
    if (watts > 0 && spent->busy.joules > 0)
        spent->busy.seconds = spent->busy.joules / watts;
    spent->busy.plus_minus = spent->energy.plus_minus / spent->energy.joules * spent->busy.joules;
    return ERR_OK;
}

static void write_end_line(const struct profile *profile, struct text *line)
{
    const struct run_energy *spent = &profile->settling.spent;
    bool is_proxy = profile->options->proxy != NULL;
    const struct journal_end end = {
        .start = profile->start,
        /* In the clock of started_at: the wall clock may have stepped meanwhile. */
        .ended_at = seconds(profile->zero_wall + (clock_now() - profile->zero)),
        .energy = spent->energy,
        .accounted_joules = spent->accounted_joules,
        .idle_joules = spent->idle_joules,
        .unattributed_joules = spent->unattributed_joules,
        .busy_joules = spent->busy.joules,
        .busy_s = spent->busy_s,
        .busy_covered_s = spent->busy.seconds,
        .unrecorded_requests = is_proxy ? (int64_t)atomic_load(&profile->shared.unrecorded) : -1,
        .unknown_inference = is_proxy ? (int64_t)atomic_load(&profile->shared.unknown) : -1,
        .unknown_joules = profile->settling.unknown_joules,
        .unknown_path = str_or_null(profile->shared.unknown_path),
    };
    journal_end_line(&end, line);
}

enum err settle_close_account(struct profile *profile, nanos from, struct error *why)
{
    struct text line = {0};
    enum err err = ERR_OK;
    if (atomic_load(&profile->shared.sent) >
        0) /* otherwise the machine's energy belongs to no query */
        err = sum_start(profile, from, why);
    /* The end line marks a complete start: one without it is closed by the next start. */
    if (!err)
        err = journal_sync(&profile->files.journal, why);
    if (!err)
        err = journal_sync(&profile->files.spans, why);
    if (err || profile->files.unsettled)
        return err;
    write_end_line(profile, &line);
    err = journal_append_reserved(&profile->files.journal, &line, END_SPACE, why);
    text_release(&line);
    return err;
}

/* ---- all starts ---- */

static struct energy total_energy(const struct resume *resume,
                                  const struct profile_settling *settling)
{
    struct energy total = settling->spent.energy;
    unsigned killed = resume->starts - resume->ended;
    unsigned unmeasured = resume->unmeasured;
    unmeasured += settling->has_ledger && total.method == METHOD_NONE;
    energy_add(&total, &resume->spent.energy);
    if (killed)
        chars_format(
            total.note,
            "%u earlier start%s did not finish: only the energy of its queries is included", killed,
            killed == 1 ? "" : "s");
    else if (unmeasured && total.method != METHOD_NONE)
        chars_format(total.note, "%u of the starts measured nothing: the energy of %s is missing",
                     unmeasured, unmeasured == 1 ? "that one" : "those");
    return total;
}

static struct busy_energy total_busy(const struct busy_energy *earlier, struct busy_energy busy)
{
    if (!is_known(busy.joules))
        return *earlier;
    if (is_known(earlier->joules)) {
        busy.plus_minus += earlier->plus_minus; /* the same sensors: errors are fully correlated */
        busy.joules += earlier->joules;
        busy.seconds += earlier->seconds;
    }
    return busy;
}

struct run_energy settle_totals(const struct resume *resume,
                                const struct profile_settling *settling)
{
    struct run_energy total = settling->spent;
    total.energy = total_energy(resume, settling);
    total.busy = total_busy(&resume->spent.busy, settling->spent.busy);
    /* The busy time of a killed start is unknown. */
    total.busy_s = resume->ended == resume->starts ? total.busy_s + resume->spent.busy_s : UNKNOWN;
    add_known(&total.idle_joules, resume->spent.idle_joules);
    add_known(&total.unattributed_joules, resume->spent.unattributed_joules);
    return total;
}

/* ---- the main thread ---- */

/* Tasks of the main thread while workers send requests: signals, settling energies, writing samples, progress; the
 * committer thread syncs the journals to disk. */

#define TICK (50 * NS_PER_MS)

/* A kill loses the energies that are not settled yet.  Settling reads the sensors: some respond within a millisecond,
 * others, whose reads cost CPU time, only at their next update.  So at most a tenth of the time is spent on it, but it
 * is done at least once per second, and when many requests have ended. */
#define SETTLE_MIN  (250 * NS_PER_MS)
#define SETTLE_MAX  NS_PER_S
#define SETTLE_COST 10
#define SETTLE_MANY (WORKERS_PENDING_MAX / 2)

/* A row that takes longer to read does not delay an interruption. */
#define DATASET_MAX    NS_PER_S

#define SAMPLES_PERIOD (100 * NS_PER_MS)
#define COMMIT_PERIOD  (50 * NS_PER_MS)

void profile_fail(struct profile *profile, enum err err, const struct error *why)
{
    pthread_mutex_lock(&profile->shared.lock);
    if (!profile->shared.err) {
        profile->shared.err = err;
        if (why && why->text[0])
            profile->shared.why = *why;
        else
            err_set(&profile->shared.why, err, "%s", err_text(err));
    }
    pthread_mutex_unlock(&profile->shared.lock);
    atomic_store(&profile->shared.stop, true);
}

void profile_warn(const struct profile *profile, const char *line)
{
    if (profile->options->warn)
        profile->options->warn(line);
}

void profile_begin_phase(struct profile *profile, const char *phase, int64_t total)
{
    profile->loop.phase = phase;
    profile->loop.phase_total = total;
    profile->loop.phase_began = profile->settling.settled_at = clock_now();
    profile->loop.phase_tokens = (double)atomic_load(&profile->shared.output_tokens);
    profile->settling.watts = profile->settling.joules_per_token = UNKNOWN;
    profile_show_progress(profile);
}

void profile_show_progress(const struct profile *profile)
{
    if (!profile->options->progress)
        return;
    double elapsed_s = seconds(clock_now() - profile->loop.phase_began);
    double tokens =
        (double)atomic_load(&profile->shared.output_tokens) - profile->loop.phase_tokens;
    struct profile_progress progress = {
        .phase = profile->loop.phase,
        .done = atomic_load(&profile->shared.done),
        .failed = atomic_load(&profile->shared.failed),
        .unread = atomic_load(&profile->shared.unread),
        .total = profile->loop.phase_total,
        .elapsed_s = elapsed_s,
        .watts = profile->settling.watts,
        .joules_per_token = profile->settling.joules_per_token,
        .output_tokens_per_s = tokens > 0 && elapsed_s > 0 ? tokens / elapsed_s : UNKNOWN,
        .stopping = profile->loop.signals > 0,
    };
    profile->options->progress(&progress);
}

/* ---- the loop ---- */

void profile_write_samples(struct profile *profile)
{
    /* A full disk must not end the run because of samples: they are reported as missing. */
    if (profile->loop.writes_samples &&
        (profile->files.samples_err = samples_log_append(&profile->files.samples)))
        profile->loop.writes_samples = false;
    profile->loop.samples_at = clock_now();
}

static enum err take_signal(struct profile *profile, int number)
{
    if (profile->loop.signals++ == 0)
        profile->result->signal = number;
    atomic_store(&profile->shared.stop, true);
    if (profile->loop.signals >= 2)
        atomic_store(&profile->shared.cancel, true);
    return profile->loop.signals >= 3 ? ERR_INTERRUPTED : ERR_OK;
}

static bool is_time_to_settle(const struct profile_settling *settling, struct sharing *sharing)
{
    nanos since = clock_now() - settling->settled_at;
    size_t ended = sharing_ended(sharing);
    return since >= SETTLE_MAX || ended >= SETTLE_MANY ||
           (ended > 0 && since >= SETTLE_MIN && since >= SETTLE_COST * settling->settle_cost);
}

bool profile_awaits_dataset(struct profile *profile)
{
    unsigned working = atomic_load(&profile->shared.working);
    if (!atomic_load(&profile->shared.stop) || working == 0 ||
        atomic_load(&profile->shared.reading) < working)
        profile->loop.stuck_since = 0;
    else if (profile->loop.stuck_since == 0)
        profile->loop.stuck_since = clock_now();
    return profile->loop.stuck_since > 0 && clock_now() - profile->loop.stuck_since > DATASET_MAX;
}

enum err profile_loop(struct profile *profile)
{
    enum err err = ERR_OK;
    while (atomic_load(&profile->shared.working) > 0 && err != ERR_INTERRUPTED) {
        int number = proc_poll_signal(TICK);
        if (number)
            err = take_signal(profile, number);
        if (!err && profile_awaits_dataset(profile))
            err = ERR_INTERRUPTED;
        if (!err && profile->loop.tick)
            profile->loop.tick(profile);
        if (!err && is_time_to_settle(&profile->settling, profile->shared.sharing)) {
            err = settle_now(profile);
            if (err)
                profile_fail(profile, err, NULL);
        }
        if (clock_now() - profile->loop.samples_at >= SAMPLES_PERIOD)
            profile_write_samples(profile);
        profile_show_progress(profile);
    }
    return err;
}

/* ---- files ---- */

enum err profile_open_files(struct profile *profile, struct error *why)
{
    enum err err = journal_open(&profile->files.journal, profile->files.journal_path, why);
    if (err)
        return err;
    err = journal_open(&profile->files.spans, profile->files.spans_path, why);
    if (!err && profile->options->agent) {
        err = journal_open(&profile->files.traces, profile->files.traces_path, why);
        if (err)
            journal_close(&profile->files.spans);
    }
    if (err) {
        journal_close(&profile->files.journal);
        return err;
    }
    profile->files.has_files = true;
    profile->files.energy_space = 4096 + 1024 * sampler_count(profile->session->sampler);
    err = samples_log_open(&profile->files.samples, profile->session->sampler, profile->zero,
                           profile->began - SAMPLES_LEAD, profile->files.samples_path, true, why);
    profile->loop.writes_samples = !err;
    return err;
}

void profile_close_files(struct profile *profile)
{
    sharing_free(profile->shared.sharing);
    text_release(&profile->files.energy_line);
    if (!profile->files.has_files)
        return;
    journal_close(&profile->files.journal);
    journal_close(&profile->files.spans);
    if (profile->options->agent)
        journal_close(&profile->files.traces);
    (void)samples_log_close(&profile->files.samples); /* write errors were already reported */
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
        enum err err = journal_sync(&profile->files.journal, &why);
        if (!err)
            err = journal_sync(&profile->files.spans, &why);
        if (!err && profile->options->agent)
            err = journal_sync(&profile->files.traces, &why);
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

enum err committer_stop(struct committer *committer, struct error *why)
{
    atomic_store(&committer->stop, true);
    pthread_join(committer->thread, NULL);
    return journal_sync(&committer->profile->files.journal, why);
}
