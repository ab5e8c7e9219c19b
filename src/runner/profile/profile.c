/* Entry points: runs the phases of a run (setup, queries, judge, summary), by profile_repeats_run once or several
 * times, by profile_family_run for several models; profile_merge merges the shards of a run. */
#include "runner/profile/profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/result.h"
#include "port/file.h"
#include "port/json_read.h"
#include "port/proc.h"
#include "rundir/run_dir.h"
#include "rundir/run_writer.h"
#include "runner/profile/state.h"
#include "runner/profile/worker.h"
#include "sampler/sampler.h"
#include "sampler/session.h"
#include "stats/pareto.h"

/* ---- one run ---- */

static enum err run_queries(struct profile *profile, struct error *why)
{
    struct workers *workers = NULL;
    const bool is_proxied = profile->options->proxy != NULL;
    profile_begin_phase(profile, is_proxied ? "requests" : "queries",
                        is_proxied ? -1 : profile->supply.total);
    profile_write_samples(profile); /* those of the setup, so that few are left to write later */
    conditions_begin(&profile->conditions);
    sampler_mark(profile->session->sampler);
    nanos from = clock_now();
    enum err err = settle_open_account(profile, from, why);
    if (!err)
        err = settle_begin(profile, from, request_take_share, why);
    if (!err)
        err = is_proxied ? proxied_start(profile, why)
                         : workers_start(profile, profile->options->concurrency, &workers, why);
    if (err)
        return err;
    err = profile_loop(profile);
    profile->abandoned = err == ERR_INTERRUPTED;
    if (err == ERR_INTERRUPTED)
        return err_set(why, err,
                       profile->stuck_since
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
    if (!err && profile->has_ledger)
        conditions_take(&profile->conditions, &profile->ledger);
    return err;
}

static void warn_of_rows(const struct profile *profile)
{
    const struct supply *supply = &profile->supply;
    char line[sizeof supply->first_bad.text + 64];
    if (supply->bad_rows == 0)
        return;
    str_format(line, sizeof line, "%" PRIu64 " row%s of the dataset skipped: %s", supply->bad_rows,
               supply->bad_rows == 1 ? "" : "s", supply->first_bad.text);
    profile_warn(profile, line);
}

static void warn_of_samples(const struct profile *profile)
{
    char line[700];
    if (!profile->samples_err)
        return;
    str_format(line, sizeof line, "%s is incomplete: %s", profile->samples_path,
               err_text(profile->samples_err));
    profile_warn(profile, line);
}

static void note_unrecorded(struct profile *profile)
{
    struct conditions *conditions = &profile->conditions;
    const struct resume *resume = &profile->resume;
    double requests = profile->spent.busy.joules, joules = profile->unknown_joules;
    conditions->unrecorded = resume->unknown + atomic_load(&profile->unknown);
    add_known(&requests, resume->spent.busy.joules);
    conditions->unrecorded_share = ratio(joules + resume->unknown_joules, requests);
    if (!is_known(conditions->unrecorded_share)) /* nothing was measured */
        conditions->unrecorded_share =
            ratio((double)conditions->unrecorded, (double)atomic_load(&profile->sent));
    str_copy(conditions->unrecorded_path, sizeof conditions->unrecorded_path,
             resume->unknown_path[0] ? resume->unknown_path : profile->unknown_path);
}

static enum err summarize(struct profile *profile, struct error *why)
{
    note_unrecorded(profile);
    if (!profile->result->signal)
        conditions_idle_after(&profile->conditions, profile->options->idle_s);
    conditions_conclude(&profile->conditions);
    atomic_store(&profile->done, 0); /* this phase counts nothing */
    atomic_store(&profile->failed, 0);
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
    if (!err && profile->err)
        err = err_set(why, profile->err,
                      profile->err == ERR_NO_SPACE
                          ? "%s; the run was interrupted, and --resume continues it"
                          : "%s",
                      profile->why.text);
    if (!late_err)
        late_err = summarize(profile, &late);
    if (late_err && !file_is_directory(profile->directory))
        late_err =
            err_set(&late, ERR_LOST, "%s was deleted or moved while the run was writing to it",
                    profile->directory);
    if (!err && late_err) {
        *why = late;
        err = late_err;
    }
    warn_of_samples(profile);
    warn_of_rows(profile);
    return err;
}

/* Closes everything except data that the summary points to. */
static void close_run(struct profile *profile)
{
    profile_close_files(profile);
    proxied_free(profile->proxied);
    if (profile->has_supply)
        supply_close(&profile->supply);
    profile_close_directory(profile);
    resume_release(&profile->resume);
    pthread_mutex_destroy(&profile->lock);
}

static enum err run_one(struct session *session, const struct host_report *host,
                        const struct profile_options *options, struct profile_result *out,
                        struct error *why)
{
    struct own_cost before;
    struct profile *profile = calloc(1, sizeof *profile);
    *out = (struct profile_result){.energy = energy_unknown("no query was sent"), .state = profile};
    summary_init(&out->summary);
    if (!profile)
        return err_no_memory(why);
    profile->options = options;
    profile->repeat = options->of_series;
    profile->host = host;
    profile->session = session;
    profile->result = out;
    profile->lock_fd = -1;
    profile->resume = resume_nothing();
    profile->spent = run_energy_unknown("no query was sent");
    pthread_mutex_init(&profile->lock, NULL);
    proc_limit_heaps();
    proc_own_cost(&before);
    profile->cpu_s_before = before.cpu_s;
    sampler_ready(session->sampler);
    profile->began = clock_now();
    enum err err = options->agent ? agents_init(profile, why) : ERR_OK;
    if (!err)
        err = profile_setup(profile, why);
    out->repeat = profile->repeat;
    if (!err && !out->was_done)
        err = run_phases(profile, why);
    if (profile->abandoned) { /* its threads still use it; the process exits next */
        out->state = NULL;
        return err;
    }
    if (!profile->has_files && !out->was_done)
        out->directory[0] = '\0';
    close_run(profile);
    return err;
}

static void release_result(struct profile_result *result)
{
    struct profile *profile = result->state;
    summary_release(&result->summary);
    if (!profile)
        return;
    if (profile->has_ledger)
        ledger_release(&profile->ledger);
    baseline_release(&profile->idle);
    profile_release_facts(profile);
    text_release(&profile->client_info);
    client_windows_release(&profile->windows);
    agents_release(profile);
    jv_free(profile->dataset_params);
    jv_free(profile->client_params);
    jv_free(profile->request_params);
    free(profile);
    result->state = NULL;
}

/* ---- several times ---- */

/* Options stay allocated after ERR_INTERRUPTED: threads still use them. */
enum err profile_repeats_run(struct session *session, const struct host_report *host,
                             const struct profile_repeats *repeats, struct error *why)
{
    struct profile_options *options = malloc(sizeof *options);
    enum err err = options ? ERR_OK : err_no_memory(why);
    int signal = 0;
    if (!err)
        *options = *repeats->profile;
    if (!err && repeats->runs > 1) {
        options->of_series = run_repeat_new();
        options->may_overwrite = NULL; /* not in the middle of a series */
    }
    for (unsigned i = 0; !err && !signal && i < repeats->runs; i++) {
        struct profile_result result;
        if (repeats->begins && repeats->runs > 1)
            repeats->begins(i + 1, repeats->runs);
        err = run_one(session, host, options, &result, why);
        signal = result.signal;
        repeats->ended(&result, err, why);
        if (result.repeat.group[0]) {
            options->of_series = result.repeat;
            options->of_series.number = i + 2;
        }
        if (err != ERR_INTERRUPTED)
            release_result(&result);
    }
    if (err != ERR_INTERRUPTED)
        free(options);
    return err;
}

/* ---- shards ----
 *
 * rundir merges the files of the shards, and each start of a shard becomes one of the run; figures are summed as for a
 * resumed run, and other fields must be equal in all shards. */

struct merge {
    struct profile profile; /* first member: describe casts to it */
    struct profile_options options;
    struct profile_result result;
    struct summary *parts;
    size_t count;
    struct text uuids; /* of all GPUs */
};

/* A condition found in any shard applies to the run. */
static void add_findings(const struct merge *merge, struct summary_conditions *out)
{
    for (size_t i = 0; i < merge->count; i++) {
        const struct summary_conditions *from = &merge->parts[i].conditions;
        for (size_t j = 0; j < from->finding_count; j++) {
            size_t k = 0;
            while (k < out->finding_count &&
                   strcmp(out->findings[k].code, from->findings[j].code) != 0)
                k++;
            if (k == out->finding_count && k < SUMMARY_FINDINGS_MAX)
                out->findings[out->finding_count++] = from->findings[j];
        }
    }
}

static void add_uuids(struct merge *merge)
{
    for (size_t i = 0; i < merge->count; i++) {
        const char *mine = merge->parts[i].gpu_uuids;
        if (mine && !strstr(text_get(&merge->uuids), mine))
            text_addf(&merge->uuids, "%s%s", merge->uuids.length ? "," : "", mine);
    }
}

/* Utilization relative to the peak of the shards' hardware over their time. */
static double utilization(const struct merge *merge)
{
    double done = 0, possible = 0;
    for (size_t i = 0; i < merge->count; i++) {
        done += merge->parts[i].flops;
        possible += merge->parts[i].flops / merge->parts[i].mfu;
    }
    return ratio(done, possible);
}

/* Adds figures that are not in the journal. */
static void add_known_figures(const struct merge *merge, struct summary *out)
{
    out->flops_per_token = merge->parts[0].flops_per_token;
    out->flops = UNKNOWN;
    out->mfu = utilization(merge);
    out->currency = merge->parts[0].currency;
    out->tariff = merge->parts[0].tariff;
    out->own_reads = 0;
    for (size_t i = 0; i < merge->count; i++) {
        const struct summary *part = &merge->parts[i];
        add_known(&out->flops, part->flops);
        add_known(&out->device_seconds, summary_device_seconds(part));
        add_known(&out->own_cpu_s, part->own_cpu_s);
        if (!(part->own_rss_mb <= out->own_rss_mb))
            out->own_rss_mb = part->own_rss_mb;
        out->own_reads += part->own_reads;
    }
}

static enum err describe_parts(struct profile *profile, struct summary *out)
{
    struct merge *merge = (struct merge *)profile;
    const struct summary *first = &merge->parts[0];
    summary_common(merge->parts, merge->count, out);
    out->hardware_label = out->hardware_label ? out->hardware_label : "mixed";
    summary_conditions_init(&out->conditions);
    add_findings(merge, &out->conditions);
    add_uuids(merge);
    out->gpu_uuids = str_or_null(text_get(&merge->uuids));
    out->generated_at = seconds(clock_wall());
    out->output_dir = out->directory = profile->directory;
    out->version = IPW_VERSION;
    out->total_queries = out->queries;
    out->started_at = profile->resume.started_at;
    out->starts = profile->resume.starts;
    out->interrupted = 0;
    out->rows_left_out = first->rows_left_out; /* every shard reads all rows */
    out->first_row_left_out = first->first_row_left_out;
    add_known_figures(merge, out);
    return merge->uuids.failed ? ERR_NO_MEMORY : ERR_OK;
}

static enum err load_parts(struct merge *merge, const char *const *directories, struct error *why)
{
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < merge->count; i++) {
        err = summary_load(directories[i], &merge->parts[i], why);
        if (err == ERR_NOT_FOUND || (!err && merge->parts[i].interrupted != 0))
            err =
                err_set(why, ERR_USAGE, "%s has not ended: --resume continues it", directories[i]);
    }
    return err;
}

static enum err make_merged(struct merge *merge, const char *const *directories,
                            const char *output_dir, const char *name, bool overwrite,
                            struct error *why)
{
    struct profile *profile = &merge->profile;
    char stem[256];
    const char *last = str_last_part(directories[0]);
    enum run_dir_state state;
    str_format(stem, sizeof stem, "%.*s", (int)run_part_stem(last), last);
    if (!str_format(profile->directory, sizeof profile->directory, "%s/%s",
                    output_dir ? output_dir : "runs", name ? name : stem) ||
        !run_path_file(profile->directory, RUN_FILE_RECORDS, profile->journal_path,
                       sizeof profile->journal_path))
        return err_set(why, ERR_USAGE, "the path of the run directory is too long");
    enum err err = run_dir_inspect(profile->directory, &state, why);
    if (!err && state == RUN_DIR_HAS_RUN && overwrite)
        err = run_dir_clear(profile->directory, why);
    else if (!err && state != RUN_DIR_NEW && state != RUN_DIR_EMPTY)
        err = err_set(
            why, ERR_USAGE,
            "%s already holds %s: --overwrite replaces a run, and --name NAME uses another name",
            profile->directory, state == RUN_DIR_HAS_RUN ? "a run" : "other files");
    if (!err)
        err = run_dir_make(profile->directory, why);
    return err ? err : run_dir_lock(profile->directory, &profile->lock_fd, why);
}

static enum err summarize_parts(struct merge *merge, struct error *why)
{
    struct profile *profile = &merge->profile;
    int64_t repeats = merge->parts[0].config_repeat;
    merge->options.model = merge->parts[0].model;
    merge->options.repeat = repeats > 0 && repeats < 100000 ? (unsigned)repeats : 1;
    enum err err =
        resume_read_any(profile->journal_path, merge->options.repeat, &profile->resume, why);
    profile->start = profile->resume.starts + 1;
    return err ? err : profile_summarize_as(profile, describe_parts, why);
}

enum err profile_merge(const char *const *directories, size_t count, const char *output_dir,
                       const char *name, bool overwrite, char directory[static 512],
                       struct error *why)
{
    struct merge *merge = calloc(1, sizeof *merge);
    struct summary *parts = calloc(count + 1, sizeof *parts);
    if (!merge || !parts) {
        free(merge);
        free(parts);
        return err_no_memory(why);
    }
    merge->parts = parts;
    merge->count = count;
    merge->profile = (struct profile){.options = &merge->options,
                                      .result = &merge->result,
                                      .lock_fd = -1,
                                      .resume = resume_nothing(),
                                      .spent = run_energy_unknown("no query was sent")};
    for (size_t i = 0; i < count; i++)
        summary_init(&parts[i]);
    summary_init(&merge->result.summary);
    enum err err = load_parts(merge, directories, why);
    if (!err)
        err = make_merged(merge, directories, output_dir, name, overwrite, why);
    bool made = !err;
    if (!err)
        err = run_parts_merge(directories, count, merge->profile.directory, why);
    if (!err)
        err = summarize_parts(merge, why);
    if (err && made) {
        struct error ignored;
        (void)!run_dir_clear(merge->profile.directory, &ignored);
        run_dir_remove_empty(merge->profile.directory); /* if it contains only the lock */
    }
    str_copy(directory, 512, merge->profile.directory);
    if (merge->profile.lock_fd >= 0)
        close(merge->profile.lock_fd);
    resume_release(&merge->profile.resume);
    summary_release(&merge->result.summary);
    for (size_t i = 0; i < count; i++)
        summary_release(&parts[i]);
    text_release(&merge->uuids);
    free(parts);
    free(merge);
    return err;
}

bool profile_parse_shard(struct profile_options *options, const char *text)
{
    struct run_part part;
    bool taken = run_part_parse(text, &part);
    options->shard = part.number;
    options->shards = part.of;
    return taken;
}

bool profile_shards_folder(const struct profile_options *options, char *to, size_t size)
{
    char name[256];
    run_dir_name("shards", options->model, options->dataset, name, sizeof name);
    return str_format(to, size, "%s/%s%s", options->output_dir ? options->output_dir : "runs",
                      options->name ? options->name : name, options->name ? "_shards" : "");
}

bool profile_shard_is_complete(const char *folder, const char *name, unsigned shard, unsigned of)
{
    char path[600];
    return run_part_path(folder, name, &(struct run_part){shard, of}, path, sizeof path) &&
           summary_is_complete(path);
}

size_t profile_shards_left(const char *folder, const char *name, unsigned of, size_t *parts)
{
    size_t left = 0;
    for (unsigned shard = 1; shard <= of; shard++) {
        if (profile_shard_is_complete(folder, name, shard, of))
            continue;
        if (parts)
            parts[left] = shard;
        left++;
    }
    return left;
}

enum err profile_merge_shards(const struct profile_options *options, const char *folder,
                              const char *name, unsigned of, bool overwrite,
                              char directory[static 512], struct error *why)
{
    struct summary summary;
    char whole[256], (*paths)[600] = calloc(of, sizeof *paths);
    const char **runs = calloc(of, sizeof *runs);
    enum err err = paths && runs ? ERR_OK : err_no_memory(why);
    for (unsigned i = 0; !err && i < of; i++) {
        run_part_path(folder, name, &(struct run_part){i + 1, of}, paths[i], sizeof *paths);
        runs[i] = paths[i];
    }
    if (!err)
        err = summary_load(runs[0], &summary, why);
    if (!err) {
        run_dir_name(text_or_empty(summary.hardware_label), options->model,
                     text_or_empty(summary.dataset_name), whole, sizeof whole);
        summary_release(&summary);
        err = profile_merge(runs, of, options->output_dir, options->name ? options->name : whole,
                            overwrite, directory, why);
    }
    free(runs);
    free(paths);
    return err;
}

/* ---- several models ---- */

static void clear_figures(struct profile_member *member)
{
    member->accuracy = member->accuracy_low = member->accuracy_high = UNKNOWN;
    member->joules_per_query = member->joules_per_query_plus_minus = UNKNOWN;
    member->joules_per_output_token = member->output_tokens_per_s = UNKNOWN;
    member->ipj = member->ipj_plus_minus = member->ipw = member->ipw_plus_minus = UNKNOWN;
    member->energy = energy_unknown("no query was sent");
    summary_conditions_init(&member->conditions);
}

static void take_figures(struct profile_member *member, const struct summary *summary)
{
    member->conditions = summary->conditions;
    member->accuracy = summary->accuracy;
    member->accuracy_low = summary->accuracy_interval.low;
    member->accuracy_high = summary->accuracy_interval.high;
    member->joules_per_query = summary->joules_per_query;
    member->joules_per_output_token = summary->joules_per_output_token;
    member->output_tokens_per_s = summary->output_tokens_per_s;
    member->ipj = summary->ipj;
    member->ipj_plus_minus = summary->ipj_plus_minus;
    member->ipw = summary->ipw;
    member->ipw_plus_minus = summary->ipw_plus_minus;
    /* The queries' joules are part of the machine's and have the same relative uncertainty. */
    double relative = member->energy.plus_minus / member->energy.joules;
    member->joules_per_query_plus_minus = member->joules_per_query * relative;
}

static enum err run_member(struct session *session, const struct host_report *host,
                           const struct profile_options *profile, struct profile_member *member,
                           int *signal, struct error *why)
{
    struct profile_options options = *profile;
    struct profile_result result;
    options.model = member->model;
    enum err err = run_one(session, host, &options, &result, why);
    str_copy(member->directory, sizeof member->directory, result.directory);
    *signal = result.signal;
    if (err == ERR_INTERRUPTED)
        return err; /* threads still use the options */
    if (result.has_summary) {
        member->queries = result.summary.queries;
        member->completed = result.summary.completed;
        member->failed = result.summary.failed;
    }
    if (!err) {
        member->energy = result.energy;
        take_figures(member, &result.summary);
    }
    release_result(&result);
    return err;
}

static enum err mark_frontier(struct profile_family *family)
{
    size_t count = family->count;
    double *figures = malloc(2 * (count + 1) * sizeof *figures);
    bool *on = malloc((count + 1) * sizeof *on);
    enum err err = figures && on ? ERR_OK : ERR_NO_MEMORY;
    for (size_t i = 0; i < count && !err; i++) {
        figures[i] = family->members[i].joules_per_query;
        figures[count + i] = family->members[i].accuracy;
    }
    if (!err)
        err = pareto_mark(figures, figures + count, count, on);
    for (size_t i = 0; i < count && !err; i++)
        family->members[i].on_frontier = on[i];
    free(figures);
    free(on);
    return err;
}

enum err profile_family_run(struct session *session, const struct host_report *host,
                            const struct profile_family_options *options,
                            struct profile_family *out, struct error *why)
{
    struct error first = {0};
    size_t profiled = 0;
    *out = (struct profile_family){.members = calloc(options->count + 1, sizeof *out->members)};
    if (!out->members)
        return err_no_memory(why);
    while (out->count < options->count && !out->signal) {
        struct profile_member *member = &out->members[out->count];
        struct error failed = {0};
        member->model = options->models[out->count];
        clear_figures(member);
        if (options->begins)
            options->begins(member->model, out->count, options->count);
        out->count++;
        enum err err = run_member(session, host, options->profile, member, &out->signal, &failed);
        if (err == ERR_INTERRUPTED)
            return err_set(why, err, "%s", failed.text);
        profiled += !err;
        if (err)
            str_format(member->why, sizeof member->why, "%s",
                       failed.text[0] ? failed.text : err_text(err));
        if (err && !first.code)
            err_set(&first, err, "%s: %s", member->model, member->why);
    }
    if (mark_frontier(out) != ERR_OK)
        return err_no_memory(why);
    if (profiled == 0 && first.code) {
        *why = first;
        return first.code;
    }
    return ERR_OK;
}

void profile_family_release(struct profile_family *family)
{
    free(family->members);
}

/* ---- datasets without files ---- */

const char *profile_dataset_at(size_t i)
{
    static const char *const GENERATED[] = {"builtin", "fixed_length", "null"};
    enum { GENERATED_COUNT = sizeof GENERATED / sizeof *GENERATED };
    if (i < GENERATED_COUNT)
        return GENERATED[i];
    i -= GENERATED_COUNT;
    for (const struct dataset_preset *preset = DATASET_PRESETS; preset->name; preset++)
        if (!strcmp(preset->driver, "hub") && !strstr(preset->summary, "path=") && i-- == 0)
            return preset->name;
    return NULL;
}

/* ---- the result of several models ---- */

/* A figure, and its ± under a key of its own. */
struct figure {
    const char *key, *error_key; /* NULL: without a ± */
    size_t value, error;
    const char *unit;
};

#define FIGURE(member, unit)                                                                       \
    {#member, #member "_plus_minus", offsetof(struct profile_member, member),                      \
     offsetof(struct profile_member, member##_plus_minus), unit}
#define BARE_FIGURE(member, unit) {#member, NULL, offsetof(struct profile_member, member), 0, unit}

static const struct figure FIGURES[] = {
    FIGURE(joules_per_query, "J"),
    BARE_FIGURE(joules_per_output_token, "J"),
    BARE_FIGURE(output_tokens_per_s, "1/s"),
    FIGURE(ipj, "1/J"),
    FIGURE(ipw, "1/W"),
};

static void put_figure(struct result *out, const struct figure *figure,
                       const struct profile_member *member)
{
    const char *at = (const char *)member;
    result_number(out, figure->key, *(const double *)(at + figure->value), figure->unit);
    if (!figure->error_key)
        return;
    double error = *(const double *)(at + figure->error);
    result_uncertain(out, figure->key, error);
    result_number(out, figure->error_key, error, figure->unit);
}

static void put_member(struct result *out, const struct profile_member *member)
{
    const double interval[] = {member->accuracy_low, member->accuracy_high};
    struct json json;
    result_writer(out, &json);
    result_group(out, NULL);
    result_text(out, "model", member->model);
    result_text(out, "output_dir", member->directory[0] ? member->directory : NULL);
    result_text(out, "error", member->why[0] ? member->why : NULL);
    summary_conditions_to_json(&json, "conditions", &member->conditions);
    result_integer(out, "queries", member->queries);
    result_integer(out, "completed", member->completed);
    result_number(out, "accuracy", member->accuracy, "%");
    result_between(out, "accuracy", interval[0], interval[1]);
    result_numbers(out, "accuracy_interval_95", interval, 2, "%");
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++)
        put_figure(out, &FIGURES[i], member);
    energy_to_json(&json, "energy", &member->energy);
    result_flag(out, "on_frontier", member->on_frontier);
    result_end(out);
}

void profile_family_fill(const struct profile_family *family, struct result *out)
{
    result_begin(out, "demo");
    result_list(out, "models");
    for (size_t i = 0; i < family->count; i++)
        put_member(out, &family->members[i]);
    result_end(out);
    result_flag(out, "interrupted", family->signal != 0);
    result_end(out);
    result_table(out, "models", NULL);
}
