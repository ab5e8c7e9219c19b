#include "runner/profile.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attribute/share.h"
#include "core/clock.h"
#include "core/energy_json.h"
#include "core/json.h"
#include "estimate/device_peak.h"
#include "estimate/model_size.h"
#include "estimate/price.h"
#include "port/json_read.h"
#include "port/thread.h"
#include "runner/idle.h"
#include "runner/profile/energy_read.h"
#include "runner/profile/finish.h"
#include "runner/profile/grading.h"
#include "runner/profile/judging.h"
#include "runner/profile/keeping.h"
#include "runner/profile/place.h"
#include "runner/profile/record.h"
#include "runner/profile/run.h"
#include "runner/profile/service.h"
#include "runner/profile/worker.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

/* Attribution settles whole slices of a millisecond. */
#define SHARING_LAG (3 * NS_PER_MS)

/* All that one profile owns, so that one release gives it back. */
struct profile {
    struct profile_run run;
    struct place place;
    struct service_facts service;
    struct baseline idle;
    bool has_idle, has_supply, has_files;
    struct prices *prices;
    struct samples_log samples;
    int samples_fd;
    enum err samples_err;
    struct ledger ledger; /* while the queries ran */
    bool has_ledger;
    double accounted_joules, idle_joules, unattributed_joules;
    struct busy_energy busy; /* while at least one request was alive */
    struct keeping keeping;
    double cpu_s_before;
    bool abandoned; /* an impatient user left workers behind that still use all of this */
};

static void warn(const struct profile *profile, const char *line)
{
    if (profile->run.context.options->warn)
        profile->run.context.options->warn(line);
}

static void begin_phase(struct profile *profile, const char *phase, int64_t total)
{
    struct profile_run *run = &profile->run;
    profile->keeping.run = run;
    profile->keeping.phase = phase;
    profile->keeping.total = total;
    profile->keeping.began = profile->keeping.settled_at = clock_now();
    profile->keeping.watts = profile->keeping.joules_per_token = UNKNOWN;
    profile->keeping.tokens_before = (double)atomic_load(&run->output_tokens);
    show_progress(&profile->keeping);
}

/* ---- before the queries ---- */

static enum err find_model_size(const struct profile_options *options, struct model_size *out,
                                struct error *why)
{
    char total[64];
    if (!options->parameters) {
        model_size_find(options->model, out); /* unknown stays unknown */
        return ERR_OK;
    }
    const char *comma = strchr(options->parameters, ',');
    str_format(total, sizeof total, "%.*s", comma ? (int)(comma - options->parameters) : 60,
               options->parameters);
    /* Whatever is wrong with it, the user wrote it. */
    return model_size_given(total, comma ? comma + 1 : NULL, out, why) ? ERR_USAGE : ERR_OK;
}

/* The GPUs' peak, where a table knows them and all are of one kind. */
static void find_peak(const struct sensor_findings *findings, struct query_facts *facts)
{
    const char *name = NULL;
    unsigned count = 0;
    bool equal = true;
    for (size_t i = 0; i < findings->count; i++) {
        const struct sensor_finding *finding = &findings->items[i];
        if (finding->kind != SENSOR_GPU || finding->status != SENSOR_OK)
            continue;
        equal = equal && (!name || strcmp(name, finding->name) == 0);
        name = finding->name;
        count++;
    }
    if (name && equal && device_peak_find(name, &facts->peak))
        facts->devices = count;
}

static enum err learn_facts(struct profile *profile, struct error *why)
{
    struct profile_context *context = &profile->run.context;
    const struct profile_options *options = context->options;
    struct query_facts *facts = &context->facts;
    *facts = query_facts_unknown();
    find_peak(&profile->run.session->findings, facts);
    enum err err = find_model_size(options, &facts->model, why);
    if (!err && options->weight_bits > 0) {
        facts->weight_bytes = facts->model.active * options->weight_bits / 8;
        facts->kv_bytes_per_token = options->kv_bytes;
    }
    if (err || !options->price_file)
        return err;
    err = prices_load(options->price_file, &profile->prices, why);
    context->prices = profile->prices;
    return err;
}

static void tick(void *context)
{
    show_progress(&((struct profile *)context)->keeping);
}

static enum err find_service(struct profile *profile, struct profile_result *out, struct error *why)
{
    struct profile_run *run = &profile->run;
    const struct profile_options *options = run->context.options;
    run->client_driver = client_driver_find(options->client, why);
    if (!run->client_driver)
        return ERR_USAGE;
    run->client_config =
        (struct client_config){.base_url = options->base_url, .params = &options->client_params};
    begin_phase(profile, "preparing", -1);
    return service_prepare(run->client_driver, &run->client_config, options->model,
                           options->timeout_s, &profile->service, &out->signal, tick, profile, why);
}

static enum err open_supply(struct profile *profile, struct error *why)
{
    struct profile_run *run = &profile->run;
    const struct profile_options *options = run->context.options;
    struct supply_options supply = {
        .dataset = options->dataset,
        .params = &options->dataset_params,
        .done = &profile->place.resume.done,
        .most = options->max_queries ? options->max_queries : UINT64_MAX,
        .repeats = options->repeat,
        .rate = options->rate,
        .seed = options->seed,
    };
    enum err err = supply_open(&run->supply, &supply, why);
    profile->has_supply = !err;
    return err;
}

static enum err put_samples(const char *bytes, void *context)
{
    struct profile *profile = context;
    size_t length = strlen(bytes);
    while (length > 0) {
        ssize_t wrote = write(profile->samples_fd, bytes, length);
        if (wrote <= 0) /* samples are for later; a full disk must not end the run for them */
            return profile->samples_err = ERR_NO_SPACE;
        bytes += wrote;
        length -= (size_t)wrote;
    }
    return ERR_OK;
}

static enum err open_files(struct profile *profile, struct error *why)
{
    struct profile_run *run = &profile->run;
    enum err err = journal_open(&run->journal, profile->place.journal, why);
    if (err)
        return err;
    err = journal_open(&run->spans, profile->place.spans, why);
    if (err) {
        journal_close(&run->journal);
        return err;
    }
    profile->has_files = true;
    profile->samples_fd =
        open(profile->place.samples, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (profile->samples_fd < 0)
        return err_set(why, ERR_IO, "cannot write %s: %m", profile->place.samples);
    err = samples_log_init(&profile->samples, run->session->sampler, run->context.zero, put_samples,
                           profile);
    return err ? err_set(why, err, "cannot write %s: %s", profile->place.samples, err_text(err))
               : ERR_OK;
}

static enum err watch_idle(struct profile *profile, struct profile_result *out, struct error *why)
{
    const struct profile_options *options = profile->run.context.options;
    if (options->idle_s <= 0)
        return ERR_OK;
    begin_phase(profile, "idle", -1);
    enum err err =
        idle_measure(profile->run.session, options->idle_s, &profile->idle, &out->signal);
    profile->has_idle = !err;
    return err ? err_set(why, err, "while watching the machine at rest: %s", err_text(err))
               : ERR_OK;
}

/* ---- warming up, in a thread of its own so that signals are heard ---- */

struct warming {
    struct profile *profile;
    unsigned asked;
    enum err err;
    struct error why;
};

static void warmed_one(void *context, unsigned done)
{
    struct profile *profile = context;
    atomic_store(&profile->run.done, done);
}

static void *warm_main(void *argument)
{
    struct warming *warming = argument;
    struct profile_run *run = &warming->profile->run;
    warming->err = warm_up_queries(run, run->context.options->warmup_queries, warmed_one,
                                   warming->profile, &warming->asked, &warming->why);
    atomic_fetch_sub(&run->working, 1);
    return NULL;
}

static enum err warm(struct profile *profile, struct profile_result *out, struct error *why)
{
    struct profile_run *run = &profile->run;
    unsigned wanted = run->context.options->warmup_queries;
    struct warming warming = {.profile = profile};
    pthread_t thread;
    if (wanted == 0)
        return ERR_OK;
    begin_phase(profile, "warm-up", wanted);
    atomic_store(&run->working, 1);
    enum err err = thread_start(&thread, warm_main, &warming);
    if (err)
        return err_set(why, err, "cannot start a thread: %s", err_text(err));
    while (atomic_load(&run->working) > 0) {
        int number = proc_poll_signal(20 * NS_PER_MS);
        if (number) {
            out->signal = number;
            atomic_store(&run->stop, true);
            atomic_store(&run->cancel, true); /* nothing of a warm-up is worth waiting for */
        }
        show_progress(&profile->keeping);
    }
    pthread_join(thread, NULL);
    atomic_store(&run->done, 0);
    if (out->signal)
        return err_set(why, ERR_INTERRUPTED, "interrupted while warming up");
    if (!warming.err && warming.asked == 0)
        return err_set(why, ERR_LOST, "no warm-up query was answered: %s", warming.why.text);
    *why = warming.why;
    return warming.err;
}

/* ---- the queries ---- */

static void take_share(void *context, const struct share *share)
{
    struct profile_run *run = context;
    struct pending *pending =
        (struct pending *)(uintptr_t)share->trace->id; /* NOLINT(performance-no-int-to-ptr) */
    struct text line = {0};
    struct error why = {0};
    record_energy(&run->context, pending, share, &line);
    enum err err = line.failed ? ERR_NO_MEMORY : journal_append(&run->journal, &line, &why);
    if (err)
        run_fail(run, err, &why);
    else if (is_known(share->total.joules))
        run->requests_joules += share->total.joules;
    text_release(&line);
    free(pending);
}

static enum err write_run_line(struct profile *profile, struct error *why)
{
    struct profile_run *run = &profile->run;
    struct text line = {0}, settings = {0};
    struct json json;
    resume_settings(run->context.options, &settings);
    json_init(&json, &line, false);
    json_object(&json, NULL);
    json_string(&json, "kind", "run");
    json_integer(&json, "format", 1);
    json_string(&json, "ipw", IPW_VERSION);
    json_integer(&json, "start", run->context.start);
    json_number(&json, "started_at", seconds(run->context.zero_wall));
    json_string(&json, "hardware_label", run->context.host->label);
    json_raw(&json, "settings", text_get(&settings));
    json_object_end(&json);
    enum err err = line.failed || settings.failed ? err_set(why, ERR_NO_MEMORY, "out of memory")
                                                  : journal_append(&run->journal, &line, why);
    text_release(&line);
    text_release(&settings);
    return err;
}

static enum err write_end_line(struct profile *profile, const struct energy *energy,
                               struct error *why)
{
    struct profile_run *run = &profile->run;
    struct text line = {0};
    struct json json;
    json_init(&json, &line, false);
    json_object(&json, NULL);
    json_string(&json, "kind", "end");
    json_integer(&json, "start", run->context.start);
    json_number(&json, "ended_at", seconds(clock_wall()));
    energy_to_json(&json, "energy", energy);
    json_number(&json, "accounted_joules", profile->accounted_joules);
    json_number(&json, "idle_joules", profile->idle_joules);
    json_number(&json, "unattributed_joules", profile->unattributed_joules);
    json_number(&json, "busy_joules", profile->busy.joules);
    json_number(&json, "busy_s", profile->busy.seconds);
    json_object_end(&json);
    enum err err = journal_append(&run->journal, &line, why);
    text_release(&line);
    return err;
}

static enum err new_sharing(struct profile *profile, nanos from, struct error *why)
{
    struct profile_run *run = &profile->run;
    struct sharing_options options = {
        .from = from,
        .idle = profile->has_idle ? &profile->idle : NULL,
        .decode_weight = run->context.options->decode_weight,
    };
    run->sharing = sharing_new(run->session->sampler, &options);
    return run->sharing ? ERR_OK : err_set(why, ERR_NO_MEMORY, "out of memory");
}

/* An unknown sum becomes its first known part. */
static void add_known(double *sum, double part)
{
    if (is_known(part))
        *sum = (is_known(*sum) ? *sum : 0) + part;
}

/* What the machine spent while the queries ran, by the ledger; and what attribution made of it. */
static enum err close_account(struct profile *profile, nanos from, struct error *why)
{
    enum { DEVICES_MOST = 64 };
    struct sharing_device_sum sums[DEVICES_MOST];
    struct profile_run *run = &profile->run;
    profile->busy =
        (struct busy_energy){.joules = UNKNOWN, .seconds = sharing_busy_s(run->sharing)};
    if (profile->busy.seconds <= 0)
        return ERR_OK; /* nothing was asked: what the machine did meanwhile is no query's */
    enum err err = ledger_take(run->session->sampler, from, sharing_settled(run->sharing),
                               profile->has_idle ? &profile->idle : NULL, &profile->ledger);
    if (err)
        return err_set(why, err, "cannot add up the energy: %s", err_text(err));
    profile->has_ledger = true;
    size_t count = sharing_sums(run->sharing, sums, DEVICES_MOST);
    double relative = profile->ledger.total.plus_minus / profile->ledger.total.joules;
    for (size_t i = 0; i < count; i++) {
        if (!sums[i].counted)
            continue;
        add_known(&profile->busy.joules, sums[i].requests_joules);
        add_known(&profile->accounted_joules, sums[i].settled_joules);
        add_known(&profile->idle_joules, sums[i].idle_joules);
        add_known(&profile->unattributed_joules, sums[i].unattributed_joules);
    }
    profile->busy.plus_minus = relative * profile->busy.joules;
    return ERR_OK;
}

static enum err run_queries(struct profile *profile, struct profile_result *out, struct error *why)
{
    struct profile_run *run = &profile->run;
    struct workers *workers;
    begin_phase(profile, "queries", run->supply.total);
    sampler_mark(run->session->sampler);
    nanos from = clock_now();
    enum err err = new_sharing(profile, from, why);
    if (!err)
        err = workers_start(run, run->context.options->concurrency, &workers, why);
    if (err)
        return err;
    profile->keeping.take = take_share;
    profile->keeping.samples = &profile->samples;
    err = keep_house(&profile->keeping);
    out->signal = profile->keeping.signal;
    profile->abandoned = err == ERR_INTERRUPTED;
    if (err == ERR_INTERRUPTED)
        return err_set(why, err, "interrupted three times: what was in flight is lost");
    workers_join(workers);
    thread_sleep(SHARING_LAG); /* so that the last answer's end is well before what is settled */
    err = settle_all(&profile->keeping, clock_now());
    if (!err)
        err = close_account(profile, from, why);
    if (err)
        return err_set(why, err, "cannot attribute the energy: %s", err_text(err));
    const struct energy nothing = energy_unknown("no query was asked");
    return write_end_line(profile, profile->has_ledger ? &profile->ledger.total : &nothing, why);
}

/* ---- the judge ---- */

static bool wants_judge(const struct profile *profile)
{
    const struct profile_options *options = profile->run.context.options;
    const char *grader = options->grader ? options->grader : profile->run.supply.dataset.grader;
    const struct grader_driver *driver = grader[0] ? grader_driver_find(grader, NULL) : NULL;
    return driver && driver->needs_judge;
}

static enum err run_judge(struct profile *profile, struct profile_result *out, struct error *why)
{
    struct profile_run *run = &profile->run;
    struct judging *judging;
    uint64_t waiting;
    if (!wants_judge(profile) || out->signal || run->err)
        return ERR_OK;
    if (!run->context.options->judge_model) {
        warn(profile, "the answers wait for a judge: name one with --eval-model and --resume");
        return ERR_OK;
    }
    enum err err = judging_count(run, profile->place.journal, &waiting, why);
    if (err || waiting == 0)
        return err;
    begin_phase(profile, "judge", (int64_t)waiting);
    sharing_free(run->sharing);
    run->sharing = NULL;
    err = new_sharing(profile, clock_now(), why);
    if (!err)
        err = judging_start(run, profile->place.journal, &judging, why);
    if (err)
        return err;
    profile->keeping.take = judging_take_share;
    err = keep_house(&profile->keeping);
    out->signal = profile->keeping.signal;
    profile->abandoned = err == ERR_INTERRUPTED;
    if (err == ERR_INTERRUPTED)
        return err_set(why, err, "interrupted three times");
    judging_join(judging);
    thread_sleep(SHARING_LAG);
    err = settle_all(&profile->keeping, clock_now());
    return err ? err_set(why, err, "cannot attribute the judge's energy: %s", err_text(err))
               : ERR_OK;
}

/* ---- the end ---- */

static void energy_of_all_starts(struct profile *profile, struct energy *out)
{
    const struct resume *resume = &profile->place.resume;
    unsigned killed = resume->starts - resume->ended, unmeasured = resume->unmeasured;
    *out = profile->has_ledger ? profile->ledger.total : energy_unknown("no query was asked");
    unmeasured += profile->has_ledger && out->method == METHOD_NONE;
    energy_add(out, &resume->energy);
    if (killed)
        str_format(
            out->note, sizeof out->note,
            "%u earlier start%s did not come to an end: only what its queries spent is in it",
            killed, killed == 1 ? "" : "s");
    else if (unmeasured && out->method != METHOD_NONE)
        str_format(out->note, sizeof out->note,
                   "%u of the starts measured nothing: what %s spent is not in it", unmeasured,
                   unmeasured == 1 ? "it" : "they");
}

static struct busy_energy busy_of_all_starts(const struct profile *profile)
{
    struct busy_energy busy = profile->busy;
    const struct resume *resume = &profile->place.resume;
    if (!is_known(busy.joules) || !profile->has_ledger)
        return resume->busy;
    busy.plus_minus += resume->busy.plus_minus; /* the same sensors: wrong alike */
    busy.joules += resume->busy.joules;
    busy.seconds += resume->busy.seconds;
    return busy;
}

/* How long queries were under way; UNKNOWN when a start was killed and cannot tell. */
static double busy_s_of_all_starts(const struct profile *profile)
{
    const struct resume *resume = &profile->place.resume;
    return resume->ended == resume->starts ? resume->busy_s + profile->busy.seconds : UNKNOWN;
}

/* Of what is known of them. */
static double of_all_starts(double this_start, double earlier)
{
    add_known(&this_start, earlier);
    return this_start;
}

static enum err finish(struct profile *profile, struct profile_result *out, struct error *why)
{
    struct profile_run *run = &profile->run;
    const struct resume *resume = &profile->place.resume;
    double accounted = of_all_starts(profile->accounted_joules, resume->accounted_joules);
    struct finish_facts facts = {
        .directory = profile->place.directory,
        .dataset_name = run->supply.dataset.name,
        .client_info = text_get(&profile->service.info),
        .base_url = profile->service.base_url,
        .ledger = profile->has_ledger ? &profile->ledger : NULL,
        .idle = profile->has_idle ? &profile->idle : NULL,
        .starts = run->context.start,
        .busy = busy_of_all_starts(profile),
        .started_at = resume->starts ? resume->started_at : seconds(run->context.zero_wall),
        .busy_s = busy_s_of_all_starts(profile),
        .requests_joules = of_all_starts(run->requests_joules, resume->requests_joules),
        .idle_joules = of_all_starts(profile->idle_joules, resume->idle_joules),
        .unattributed_joules =
            of_all_starts(profile->unattributed_joules, resume->unattributed_joules),
        .bad_rows = run->supply.bad_rows,
        .first_bad = run->supply.first_bad.text,
        .interrupted = out->signal != 0,
        .reads = sampler_reads(run->session->sampler),
    };
    energy_of_all_starts(profile, &facts.energy);
    facts.conservation_error = fabs(accounted - facts.energy.joules) / facts.energy.joules;
    proc_own_cost(&facts.own);
    facts.own.cpu_s -= profile->cpu_s_before;
    atomic_store(&run->done, 0); /* this phase counts nothing */
    atomic_store(&run->failed, 0);
    begin_phase(profile, "writing", -1);
    return finish_run(&run->context, &facts, out, why);
}

static void release(struct profile *profile)
{
    struct profile_run *run = &profile->run;
    sharing_free(run->sharing);
    if (profile->has_supply)
        supply_close(&run->supply);
    if (profile->has_files) {
        journal_close(&run->journal);
        journal_close(&run->spans);
        samples_log_release(&profile->samples);
        if (profile->samples_fd >= 0)
            close(profile->samples_fd);
    }
    if (profile->has_ledger)
        ledger_release(&profile->ledger);
    baseline_release(&profile->idle);
    text_release(&profile->service.info);
    prices_free(profile->prices);
    place_release(&profile->place);
    pthread_mutex_destroy(&run->lock);
}

static void warn_of_rows(const struct profile *profile)
{
    const struct supply *supply = &profile->run.supply;
    char line[sizeof supply->first_bad.text + 64];
    if (supply->bad_rows == 0)
        return;
    str_format(line, sizeof line, "%" PRIu64 " row%s of the dataset left out: %s", supply->bad_rows,
               supply->bad_rows == 1 ? "" : "s", supply->first_bad.text);
    warn(profile, line);
}

/* From the directory on: whatever happens now, what was measured is written. */
static enum err run_in_place(struct profile *profile, struct profile_result *out, struct error *why)
{
    struct profile_run *run = &profile->run;
    struct committer committer;
    enum err err = write_run_line(profile, why);
    if (!err)
        err = committer_start(&committer, run);
    if (err)
        return err;
    err = run_queries(profile, out, why);
    if (!err)
        err = run_judge(profile, out, why);
    committer_stop(&committer);
    if (err == ERR_INTERRUPTED) { /* workers still write: what is made of the journal can wait */
        struct error unsynced = {0};
        if (journal_sync(&run->journal, &unsynced) != ERR_OK)
            warn(profile, unsynced.text);
        return err;
    }
    if (!err && run->err) {
        *why = run->why;
        err = run->err;
    }
    struct error finish_why = {0};
    enum err finish_err = journal_sync(&run->journal, &finish_why);
    if (!finish_err)
        finish_err = finish(profile, out, &finish_why);
    if (!err && finish_err) {
        *why = finish_why;
        err = finish_err;
    }
    if (profile->samples_err)
        warn(profile, "the disk is full: samples.csv is incomplete");
    warn_of_rows(profile);
    return err;
}

static enum err set_up(struct profile *profile, struct profile_result *out, struct error *why)
{
    struct profile_run *run = &profile->run;
    const struct profile_options *options = run->context.options;
    enum err err = jv_available(why);
    if (!err)
        err = learn_facts(profile, why);
    if (!err)
        err = open_supply(profile, why); /* refuses early what cannot work */
    if (!err)
        err = graders_check(options, &run->supply.dataset, why);
    if (!err)
        err = find_service(profile, out, why);
    if (!err)
        err = place_take(&profile->place, options, run->context.host->label,
                         run->supply.dataset.name, why);
    if (err)
        return err;
    str_copy(out->directory, sizeof out->directory, profile->place.directory);
    run->context.start = profile->place.resume.starts + 1;
    supply_close(&run->supply); /* opened again, now that it is known what is done already */
    profile->has_supply = false;
    err = open_supply(profile, why);
    if (!err)
        err = watch_idle(profile, out, why);
    if (!err)
        err = warm(profile, out, why);
    run->context.zero = clock_now();
    run->context.zero_wall = clock_wall();
    return err ? err : open_files(profile, why);
}

enum err profile_run(struct session *session, const struct host_report *host,
                     const struct profile_options *options, struct profile_result *out,
                     struct error *why)
{
    struct own_cost before;
    struct profile *profile = calloc(1, sizeof *profile);
    *out = (struct profile_result){.energy = energy_unknown("no query was asked")};
    if (!profile)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    profile->run.context.options = options;
    profile->run.context.host = host;
    profile->run.session = session;
    profile->place.lock = profile->samples_fd = -1;
    profile->accounted_joules = profile->idle_joules = profile->unattributed_joules = UNKNOWN;
    pthread_mutex_init(&profile->run.lock, NULL);
    proc_limit_heaps();
    proc_own_cost(&before);
    profile->cpu_s_before = before.cpu_s;
    profile->keeping.run = &profile->run;
    sampler_ready(session->sampler);
    enum err err = set_up(profile, out, why);
    if (!err)
        err = run_in_place(profile, out, why);
    if (profile->abandoned) /* the program ends next */
        return err;
    release(profile);
    free(profile);
    return err;
}

void profile_result_release(struct profile_result *result)
{
    text_release(&result->summary);
    text_release(&result->report);
}
