#include "runner/profile/beginning.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"
#include "catalog/device_peak.h"
#include "catalog/model.h"
#include "metrics/prices.h"
#include "port/file.h"
#include "port/json_read.h"
#include "port/proc.h"
#include "port/thread.h"
#include "runner/idle.h"
#include "runner/profile/grading.h"
#include "runner/profile/whole.h"
#include "runner/profile/worker.h"
#include "sampler/session.h"

/* ---- what is known of the model and the machine ---- */

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
static void find_peak(const struct sensor_findings *findings, struct efficiency_inputs *facts)
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
    struct efficiency_inputs *facts = &context->facts;
    *facts = efficiency_inputs_unknown();
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
    return err == ERR_BAD_VALUE ? ERR_USAGE : err; /* as anything else that the user wrote */
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
    run->client_config = (struct client_config){.base_url = options->base_url,
                                                .params = &options->client_params,
                                                .probe_timeout = from_seconds(options->timeout_s)};
    profile_phase(profile, "preparing", -1);
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
    /* Samples are for later analysis; a full disk must not end the run because of them. */
    enum err err = file_write_all(profile->samples_fd, bytes, strlen(bytes));
    if (err)
        profile->samples_err = err;
    return err;
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
    profile_phase(profile, "idle", -1);
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
    profile_phase(profile, "warm-up", wanted);
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

/* ---- after a kill ---- */

/* Before this start writes anything: these lines belong to the one before. */
static enum err close_unsettled(struct profile *profile, struct error *why)
{
    struct place *place = &profile->place;
    uint64_t unsettled;
    enum err err = resume_close_unsettled(&place->resume, place->journal, &unsettled, why);
    if (!err && unsettled) {
        char line[120];
        str_format(line, sizeof line,
                   "the energy of %" PRIu64
                   " quer%s stays unknown: the run was killed before it was settled",
                   unsettled, unsettled == 1 ? "y" : "ies");
        profile_warn(profile, line);
    }
    return err;
}

/* ---- all of it ---- */

enum err profile_begin(struct profile *profile, struct profile_result *out, struct error *why)
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
    err = close_unsettled(profile, why);
    if (err)
        return err;
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
