/* Entry points: runs the phases of a run (setup, queries, judge, summary), by profile_repeats_run once or several
 * times. */
#include "runner/profile/profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/jv.h"
#include "core/xalloc.h"
#include "metrics/prices.h"
#include "port/file.h"
#include "port/proc.h"
#include "runner/profile/phases.h"
#include "runner/profile/state.h"
#include "runner/profile/worker.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

/* ---- one run ---- */

static enum err run_queries(struct profile *profile, struct error *why)
{
    struct workers *workers = NULL;
    const bool is_proxied = profile->options->proxy != NULL;
    profile_begin_phase(profile, is_proxied ? "requests" : "queries",
                        is_proxied ? -1 : profile->shared.supply.total);
    profile_write_samples(profile); /* those of the setup, so that few are left to write later */
    conditions_begin(&profile->conditions);
    sampler_mark(profile->session->sampler);
    nanos from = clock_now();
    enum err err = settle_open_account(profile, from, why);
    if (!err) {
        settle_begin(profile, from, request_take_share);
        err = is_proxied ? proxied_start(profile, why)
                         : workers_start(profile, profile->options->concurrency, &workers, why);
    }
    if (err)
        return err;
    err = profile_loop(profile);
    profile->abandoned = err == ERR_INTERRUPTED;
    if (err == ERR_INTERRUPTED)
        return err_set(why, err,
                       profile->loop.stuck_since
                           ? "interrupted while the dataset was being read"
                           : "interrupted three times: the queries in flight are lost");
    if (is_proxied)
        proxied_join(profile);
    else
        workers_join(workers);
    conditions_stop(&profile->conditions);
    err = settle_rest(profile, why);
    if (!err && is_proxied)
        err = proxied_measure_idle_last(profile, why);
    profile_write_samples(profile);
    if (!err)
        err = settle_close_account(profile, from, why);
    if (!err && profile->settling.has_ledger)
        conditions_take(&profile->conditions, &profile->settling.ledger);
    return err;
}

static void warn_of_rows(const struct profile *profile)
{
    const struct supply *supply = &profile->shared.supply;
    char line[sizeof supply->first_bad.text + 64];
    if (supply->bad_rows == 0)
        return;
    chars_format(line, "%" PRIu64 " row%s of the dataset skipped: %s", supply->bad_rows,
                 supply->bad_rows == 1 ? "" : "s", supply->first_bad.text);
    profile_warn(profile, line);
}

static void warn_of_costs(const struct profile *profile)
{
    char line[160];
    if (!atomic_load(&profile->shared.has_other_currency))
        return;
    chars_format(line,
                 "costs that the agent's events report, in USD, are not included: prices are in "
                 "%.16s",
                 prices_currency(profile->setup.prices));
    profile_warn(profile, line);
}

static void warn_of_samples(const struct profile *profile)
{
    if (!profile->files.samples_err)
        return;
    char *line = xformat("%s is incomplete: %s", profile->files.samples_path,
                         err_text(profile->files.samples_err));
    profile_warn(profile, line);
    free(line);
}

static void note_unrecorded(struct profile *profile)
{
    struct conditions *conditions = &profile->conditions;
    const struct resume *resume = &profile->files.resume;
    double requests = profile->settling.spent.busy.joules;
    double joules = profile->settling.unknown_joules;
    conditions->unrecorded = resume->unknown + atomic_load(&profile->shared.unknown);
    add_known(&requests, resume->spent.busy.joules);
    conditions->unrecorded_share = ratio(joules + resume->unknown_joules, requests);
    if (!is_known(conditions->unrecorded_share)) /* nothing was measured */
        conditions->unrecorded_share =
            ratio((double)conditions->unrecorded, (double)atomic_load(&profile->shared.sent));
    chars_copy(conditions->unrecorded_path,
               resume->unknown_path[0] ? resume->unknown_path : profile->shared.unknown_path);
}

static enum err summarize(struct profile *profile, struct error *why)
{
    note_unrecorded(profile);
    if (!profile->result->signal)
        conditions_idle_after(&profile->conditions, profile->options->idle_s);
    conditions_conclude(&profile->conditions);
    atomic_store(&profile->shared.done, 0); /* this phase counts nothing */
    atomic_store(&profile->shared.failed, 0);
    atomic_store(&profile->shared.unread, 0);
    profile_begin_phase(profile, "writing", -1);
    return profile_summarize(profile, why);
}

/* From here on, whatever was measured is written even after an error. */
static enum err run_phases(struct profile *profile, struct error *why)
{
    struct committer committer;
    struct error late = {0};
    enum err err = committer_start(&committer, profile);
    if (err)
        return err;
    err = run_queries(profile, why);
    if (!err)
        err = profile_judge(profile, why);
    enum err late_err = committer_stop(&committer, &late);
    if (err == ERR_INTERRUPTED) { /* threads still write: --resume can make the summary */
        if (late_err)
            profile_warn(profile, late.text);
        return err;
    }
    if (!err && profile->shared.err)
        err = err_set(why, profile->shared.err,
                      profile->shared.err == ERR_NO_SPACE
                          ? "%s; the run was interrupted, and --resume continues it"
                          : "%s",
                      profile->shared.why.text);
    if (!late_err)
        late_err = summarize(profile, &late);
    if (late_err && !file_is_directory(profile->files.directory))
        late_err =
            err_set(&late, ERR_LOST, "%s was deleted or moved while the run was writing to it",
                    profile->files.directory);
    if (!err && late_err) {
        *why = late;
        err = late_err;
    }
    warn_of_samples(profile);
    warn_of_rows(profile);
    warn_of_costs(profile);
    return err;
}

/* Closes everything except data that the summary points to. */
static void close_run(struct profile *profile)
{
    profile_close_files(profile);
    proxied_free(profile->proxied);
    if (profile->shared.has_supply)
        supply_close(&profile->shared.supply);
    profile_close_directory(profile);
    client_close(&profile->setup.keeper);
    resume_release(&profile->files.resume);
    pthread_mutex_destroy(&profile->shared.lock);
}

enum err profile_run(struct session *session, const struct host_report *host,
                     const struct profile_options *options, struct profile_result *out,
                     struct error *why)
{
    struct own_cost before;
    struct profile *profile = XNEW(profile);
    *out = (struct profile_result){
        .directory = "", .energy = energy_unknown("no query was sent"), .state = profile};
    summary_init(&out->summary);
    profile->options = options;
    profile->repeat = options->of_series;
    profile->host = host;
    profile->session = session;
    profile->result = out;
    profile->files.lock_fd = -1;
    profile->files.resume = resume_nothing();
    profile->settling.spent = run_energy_unknown("no query was sent");
    pthread_mutex_init(&profile->shared.lock, NULL);
    proc_limit_heaps();
    proc_own_cost(&before);
    profile->cpu_s_before = before.cpu_s;
    sampler_ready(session->sampler);
    profile->began = clock_now();
    if (options->agent)
        agents_init(profile);
    enum err err = profile_setup(profile, why);
    out->repeat = profile->repeat;
    if (!err && !out->was_done)
        err = run_phases(profile, why);
    if (profile->abandoned) { /* its threads still use it; the process exits next */
        out->state = NULL;
        return err;
    }
    if (!profile->files.has_files && !out->was_done)
        out->directory = "";
    close_run(profile);
    return err;
}

void profile_result_release(struct profile_result *result)
{
    struct profile *profile = result->state;
    summary_release(&result->summary);
    if (!profile)
        return;
    if (profile->settling.has_ledger)
        ledger_release(&profile->settling.ledger);
    baseline_release(&profile->idle);
    profile_release_facts(&profile->setup);
    text_release(&profile->setup.client_info);
    client_windows_release(&profile->setup.windows);
    agents_release(profile);
    jv_free(profile->report.dataset_params);
    jv_free(profile->report.client_params);
    jv_free(profile->report.request_params);
    profile_release_paths(&profile->files);
    free(profile);
    result->state = NULL;
    result->directory = "";
}

/* ---- several times ---- */

struct series {
    struct session *session;
    const struct host_report *host;
    const struct profile_repeats *repeats;
    struct profile_options *options[2]; /* of each side, with its position */
    size_t sides;                       /* 2 with other options to alternate with */
    int signal;
};

/* Options stay allocated after ERR_INTERRUPTED: threads still use them. */
static void series_init(struct series *series)
{
    const struct profile_repeats *repeats = series->repeats;
    const struct run_repeat both = run_repeat_new();
    series->sides = repeats->against ? 2 : 1;
    for (size_t side = 0; side < series->sides; side++) {
        struct profile_options *options =
            xmemdup(side ? repeats->against : repeats->profile, sizeof *options);
        series->options[side] = options;
        if (repeats->runs == 1 && series->sides == 1)
            return;
        options->of_series = both;
        options->may_overwrite = NULL; /* not in the middle of a series */
        if (series->sides == 1)
            return;
        options->of_series.side = side ? 'b' : 'a';
        options->of_series.until_decided = repeats->is_decided ? repeats->runs : 0;
        chars_copy(options->of_series.series, both.group);
        chars_format(options->of_series.group, "%s%c", both.group, options->of_series.side);
    }
}

/* Resumed runs keep their series. */
static enum err take_position(struct series *series, size_t side, const struct run_repeat *repeat,
                              struct error *why)
{
    struct run_repeat *next = &series->options[side]->of_series;
    if (!repeat->group[0])
        return ERR_OK;
    if (repeat->until_decided != next->until_decided)
        return err_set(why, ERR_USAGE,
                       "the series was begun %s: continue it in the same way, or give it another "
                       "--name",
                       repeat->until_decided ? "with --until-decided and another number of pairs"
                                             : "without --until-decided");
    *next = *repeat;
    next->number++;
    for (size_t i = 0; i < series->sides; i++)
        chars_copy(series->options[i]->of_series.series, repeat->series);
    return ERR_OK;
}

static enum err run_side(struct series *series, size_t side, struct error *why)
{
    const struct profile_repeats *repeats = series->repeats;
    const struct profile_options *options = series->options[side];
    struct profile_result result;
    if (repeats->begins && options->of_series.number)
        repeats->begins(&options->of_series, repeats->runs);
    enum err err = profile_run(series->session, series->host, options, &result, why);
    series->signal = result.signal;
    repeats->ended(&result, err, why);
    if (!err)
        err = take_position(series, side, &result.repeat, why);
    if (err != ERR_INTERRUPTED)
        profile_result_release(&result);
    return err;
}

enum err profile_repeats_run(struct session *session, const struct host_report *host,
                             const struct profile_repeats *repeats, struct error *why)
{
    struct series series = {.session = session, .host = host, .repeats = repeats};
    enum err err = ERR_OK;
    bool is_decided = false;
    series_init(&series);
    for (unsigned i = 0; i < repeats->runs && !err && !series.signal && !is_decided; i++) {
        for (size_t s = 0; s < series.sides && !err && !series.signal; s++)
            err = run_side(&series, series.sides > 1 && i % 2 ? 1 - s : s, why);
        is_decided = !err && !series.signal && repeats->is_decided && repeats->is_decided();
    }
    for (size_t side = 0; side < series.sides && err != ERR_INTERRUPTED; side++)
        free(series.options[side]);
    return err;
}

/* ---- datasets without files ---- */

const char *profile_dataset_at(size_t i)
{
    static const char *const GENERATED[] = {"builtin", "fixed_length", "null"};
    enum { GENERATED_COUNT = COUNT_OF(GENERATED) };
    if (i < GENERATED_COUNT)
        return GENERATED[i];
    i -= GENERATED_COUNT;
    for (const struct dataset_preset *preset = DATASET_PRESETS; preset->name; preset++)
        if (str_equal(preset->driver, "hub") && !strstr(preset->summary, "path=") && i-- == 0)
            return preset->name;
    return NULL;
}
