/* Everything before the first query, in the order in which mistakes are cheapest to report: facts about the
 * model, dataset, graders, service, run directory; then idle power, warm-up and the files. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/device_peak.h"
#include "catalog/model.h"
#include "core/clock.h"
#include "core/energy.h"
#include "core/json.h"
#include "metrics/prices.h"
#include "port/file.h"
#include "port/json_read.h"
#include "port/proc.h"
#include "port/thread.h"
#include "rundir/run_dir.h"
#include "rundir/run_list.h"
#include "rundir/run_path.h"
#include "runner/profile/resume.h"
#include "runner/profile/state.h"
#include "runner/profile/worker.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

#define TICK (20 * NS_PER_MS)

/* ---- facts about the model and the machine ---- */

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

/* The peak of the GPUs, where the catalog has them and all are of one kind. */
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

/* Of the price file; options override it. */
static enum err find_tariff(struct profile *profile, struct error *why)
{
    const struct profile_options *options = profile->options;
    profile->tariff = (struct tariff)TARIFF_NONE;
    if (options->price_file) {
        proc_end_by_signals();
        enum err err = prices_load(options->price_file, &profile->prices, why);
        proc_defer_signals();
        if (err)
            return err == ERR_BAD_VALUE ? ERR_USAGE
                                        : err; /* as anything else that the user wrote */
        profile->tariff = *prices_tariff(profile->prices);
    }
    if (options->tariff)
        tariff_override(&profile->tariff, options->tariff);
    return ERR_OK;
}

static enum err find_facts(struct profile *profile, struct error *why)
{
    const struct profile_options *options = profile->options;
    struct efficiency_inputs *facts = &profile->facts;
    *facts = efficiency_inputs_unknown();
    find_peak(&profile->session->findings, facts);
    struct model_size size = {.total = UNKNOWN, .active = UNKNOWN};
    enum err err = find_model_size(options, &size, why);
    if (err)
        return err;
    facts->flops_per_token = model_flops_per_token(&size);
    if (options->weight_bits > 0) {
        facts->weight_bytes = size.active * options->weight_bits / 8;
        facts->kv_bytes_per_token = options->kv_bytes;
    }
    return find_tariff(profile, why);
}

static enum err open_supply(struct profile *profile, struct error *why)
{
    const struct profile_options *options = profile->options;
    struct supply_options supply = {
        .dataset = options->dataset,
        .params = &options->dataset_params,
        .windows = profile_windows(profile),
        .done = &profile->resume.done,
        .max_items = options->max_queries ? options->max_queries : UINT64_MAX,
        .shard = options->shard,
        .shards = options->shards,
        .repeats = options->repeat,
        .rate = options->rate,
        .seed = options->seed,
    };
    /* A FIFO without a writer, a hub that does not answer: nothing is written yet. */
    proc_end_by_signals();
    enum err err = supply_open(&profile->supply, &supply, why);
    proc_defer_signals();
    profile->has_supply = !err;
    return err;
}

/* The first question must have what the template names: a misspelled name would be asked of all of them. */
static enum err check_template(struct profile *profile, struct error *why)
{
    struct query query;
    struct text prompt = {0};
    bool end;
    if (!profile->options->template_text || profile->options->is_perplexity)
        return ERR_OK;
    proc_end_by_signals();
    enum err err = supply_next(&profile->supply, &query, &end, why);
    proc_defer_signals();
    if (err || end)
        return err;
    err = prompt_render(profile->options->template_text, &query.item, &prompt, why);
    text_release(&prompt);
    query_release(&query);
    return err;
}

/* ---- the service: is it there, does it have the model, what does it say of itself?  Asked in a thread of
 * its own, so that an interruption need not wait for a slow server ---- */

/* Loading a large model from a disk takes minutes. */
#define PREPARE_MAX_S 1800.0

struct preparation {
    const struct client_driver *driver;
    struct client_config config;
    const char *model;
    double timeout_s;
    char base_url[512];
    struct text info;
    struct client_windows windows;
    struct text passage;         /* to score first; empty: the model answers */
    struct text text;            /* to be cut into windows of so many tokens */
    const struct params *params; /* of requests */
    size_t window;
    enum err err;
    struct error why;
    atomic_bool done;
};

static void describe_service(struct preparation *work, struct client *client)
{
    struct json json;
    json_init(&json, &work->info, false);
    json_object(&json, NULL);
    json_string(&json, "client", work->driver->name);
    json_string(&json, "base_url", client->base_url[0] ? client->base_url : NULL);
    if (work->driver->describe)
        work->driver->describe(client, work->model, &json);
    json_object_end(&json);
}

/* Scores the first window, so that a service without log-probabilities is refused before anything is written. */
static enum err prepare_scoring(struct preparation *work, struct client *client)
{
    enum err err = ERR_OK;
    struct completion reply;
    const struct client_request request = {.model = work->model,
                                           .prompt = text_get(&work->passage),
                                           .params = work->params,
                                           .timeout = from_seconds(work->timeout_s)};
    if (work->text.length)
        err = work->driver->split(client, work->model, &work->text, work->window, &work->windows,
                                  &work->why);
    if (err)
        return err;
    err = work->driver->score(client, &request, work->windows.tokens, work->windows.length, &reply,
                              &work->why);
    completion_release(&reply);
    return err;
}

static void *prepare_main(void *argument)
{
    struct preparation *work = argument;
    struct client client;
    work->err = client_open(work->driver, &work->config, &client, &work->why);
    if (!work->err) {
        work->err = work->driver->health(&client, &work->why);
        if (!work->err && work->passage.length)
            work->err = prepare_scoring(work, &client);
        else if (!work->err)
            work->err = work->driver->prepare(&client, work->model, from_seconds(work->timeout_s),
                                              &work->why);
        if (!work->err)
            describe_service(work, &client);
        str_copy(work->base_url, sizeof work->base_url, client.base_url);
        client_close(&client);
    }
    atomic_store(&work->done, true);
    return NULL;
}

/* After ERR_INTERRUPTED the thread is left behind, with its memory: the program ends. */
static enum err wait_for_service(struct profile *profile, struct preparation *work,
                                 struct error *why)
{
    pthread_t thread;
    enum err err = thread_start(&thread, prepare_main, work);
    if (err) {
        free(work);
        return err_set(why, err, "cannot start a thread: %s", err_text(err));
    }
    while (!atomic_load(&work->done)) {
        profile->result->signal = proc_poll_signal(TICK);
        if (profile->result->signal) {
            pthread_detach(thread);
            return err_set(why, ERR_INTERRUPTED, "interrupted while the service was preparing");
        }
        profile_show_progress(profile);
    }
    pthread_join(thread, NULL);
    err = work->err;
    *why = work->why;
    str_copy(profile->base_url, sizeof profile->base_url, work->base_url);
    profile->client_info = work->info;
    profile->windows = work->windows;
    text_release(&work->passage);
    text_release(&work->text);
    free(work);
    return err;
}

/* ---- perplexity ---- */

static enum err check_perplexity(const struct profile *profile, struct error *why)
{
    const struct profile_options *options = profile->options;
    const struct dataset_driver *dataset = profile->supply.dataset.driver;
    if (strcmp(dataset->name, "text") != 0)
        return err_set(
            why, ERR_USAGE,
            "--task perplexity scores a text: give --dataset FILE.txt, or --dataset text "
            "--dataset-param path=FILE");
    if (options->system || options->template_text || options->grader || options->judge_model)
        return err_set(why, ERR_USAGE,
                       "--task perplexity: --system, --template, --grader and --eval-model do not "
                       "apply, since no question is asked");
    if (!profile->client_driver->score)
        return err_set(why, ERR_USAGE,
                       "client %s gives no log-probabilities: --task perplexity needs llama or "
                       "openai",
                       profile->client_driver->name);
    return ERR_OK;
}

/* The first passage, and for a client that cuts windows itself the whole text. */
static enum err read_text(struct profile *profile, struct preparation *work, struct error *why)
{
    enum { TEXT_LIMIT = 512 << 20 };
    const struct profile_options *options = profile->options;
    const char *path = params_get(&options->dataset_params, "path");
    uint64_t window;
    struct query query;
    bool end;
    enum err err = check_perplexity(profile, why);
    if (!err)
        err = dataset_text_window(&options->dataset_params, &window, why);
    if (!err)
        err = supply_next(&profile->supply, &query, &end, why);
    if (!err && end)
        err = err_set(why, ERR_NO_DATA, "the text has no passage");
    if (err)
        return err;
    text_add(&work->passage, query.item.problem);
    query_release(&query);
    work->params = &options->request_params;
    work->window = (size_t)window;
    if (profile->client_driver->split)
        err = file_read(path && *path ? path : options->dataset, TEXT_LIMIT, &work->text, why);
    return err;
}

static enum err prepare_service(struct profile *profile, struct error *why)
{
    const struct profile_options *options = profile->options;
    profile->client_driver = client_driver_find(options->client, why);
    if (!profile->client_driver)
        return ERR_USAGE;
    profile->client_config =
        (struct client_config){.base_url = options->base_url,
                               .params = &options->client_params,
                               .probe_timeout = from_seconds(options->timeout_s)};
    profile_begin_phase(profile, "preparing", -1);
    struct preparation *work = calloc(1, sizeof *work);
    if (!work)
        return err_no_memory(why);
    work->driver = profile->client_driver;
    work->config = profile->client_config;
    work->model = options->model;
    work->timeout_s = options->timeout_s > PREPARE_MAX_S ? options->timeout_s : PREPARE_MAX_S;
    enum err err = options->is_perplexity ? read_text(profile, work, why) : ERR_OK;
    if (!err)
        return wait_for_service(profile, work, why);
    text_release(&work->passage);
    text_release(&work->text);
    free(work);
    return err;
}

/* ---- the run directory: made or continued, and locked while the run writes ---- */

/* A run may be continued at another load: the one that differs in nothing else, if there is only one. */
static void find_to_resume(const char *parent, const char *base, char *to, size_t size)
{
    struct run_list list;
    const char *found = NULL;
    bool is_there = false;
    size_t length = strlen(base), count = 0;
    if (run_list_load(parent, &list, NULL))
        return;
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.entries[i].name;
        const char *load = str_starts(name, base) && !list.entries[i].summary.repeat_group
                               ? name + length
                               : "other";
        is_there = is_there || strcmp(name, to) == 0;
        if (!*load || str_starts(load, "_c") || str_starts(load, "_rate")) {
            found = name;
            count++;
        }
    }
    if (count == 1 && !is_there)
        str_copy(to, size, found);
    run_list_release(&list);
}

/* A proxy's runs differ in the time at the end of their names: this one, or the latest that is there. */
static void proxy_name(const struct profile *profile, const char *parent, char *to, size_t size)
{
    struct run_list list;
    const char *latest = "";
    run_path_name(RUN_KIND_PROXY, profile->host->label, profile->options->model,
                  seconds(clock_wall()), to, size);
    size_t length = strlen(to), stem = (size_t)(strrchr(to, '_') + 1 - to);
    if (profile->options->existing != EXISTING_RESUME || run_list_load(parent, &list, NULL))
        return;
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.entries[i].name;
        if (strlen(name) == length && strncmp(name, to, stem) == 0 && strcmp(name, latest) > 0)
            latest = name;
    }
    if (*latest)
        str_copy(to, size, latest);
    run_list_release(&list);
}

/* profile_<hardware>_<model>_<dataset>, with the load where it is not one request after the other: runs that differ
 * in it would be in each other's way. */
static void default_name(const struct profile *profile, const char *parent, char *to, size_t size)
{
    const struct profile_options *options = profile->options;
    char base[256];
    run_dir_name(profile->host->label, options->model, profile->dataset_name, base, sizeof base);
    if (options->agent) { /* both may be measured of one model */
        char of_profile[sizeof base];
        str_copy(of_profile, sizeof of_profile, base);
        str_format(base, sizeof base, "agent%s", of_profile + strcspn(of_profile, "_"));
    }
    if (options->rate > 0)
        str_format(to, size, "%s_rate%g", base, options->rate);
    else if (options->concurrency > 1)
        str_format(to, size, "%s_c%u", base, options->concurrency);
    else
        str_copy(to, size, base);
    if (options->existing == EXISTING_RESUME && !options->of_series.number && !options->shards)
        find_to_resume(parent, base, to, size);
}

static enum err choose_name(const struct profile *profile, const char *parent, char *to,
                            size_t size, struct error *why)
{
    const char *name = profile->options->name;
    if (!name && profile->options->proxy) /* as often as it is started */
        proxy_name(profile, parent, to, size);
    else if (!name)
        default_name(profile, parent, to, size);
    else if (!name[0] || name[0] == '.' || strchr(name, '/') || !str_copy(to, size, name))
        return err_set(why, ERR_USAGE,
                       "--name %.80s: a name of a directory in --output-dir, without '/' and not "
                       "beginning with '.'",
                       name);
    const struct run_part part = {profile->options->shard, profile->options->shards};
    if (part.of && !run_part_suffix(&part, to, size))
        return err_set(why, ERR_USAGE, "the name of the run directory is too long: %s", to);
    if (profile->repeat.number && !run_repeat_name(&profile->repeat, to, size))
        return err_set(why, ERR_USAGE, "the name of the run directory is too long: %s", to);
    return ERR_OK;
}

static enum err name_directory(struct profile *profile, struct error *why)
{
    char name[256];
    const char *parent = profile->options->output_dir ? profile->options->output_dir : "runs";
    if (!parent[0]) /* else the run would be in / */
        return err_set(why, ERR_USAGE, "--output-dir is empty");
    enum err err = choose_name(profile, parent, name, sizeof name, why);
    if (err)
        return err;
    if (!str_format(profile->directory, sizeof profile->directory, "%s/%s", parent, name))
        return err_set(why, ERR_USAGE, "the path of the run directory is too long: %s/%s", parent,
                       name);
    run_path_file(profile->directory, RUN_FILE_RECORDS, profile->journal_path,
                  sizeof profile->journal_path);
    run_path_file(profile->directory, RUN_FILE_SPANS, profile->spans_path,
                  sizeof profile->spans_path);
    return ERR_OK;
}

/* Other files are left as they are, without even a lock beside them. */
static enum err refuse_foreign(const struct profile *profile, enum run_dir_state *state,
                               struct error *why)
{
    *state = RUN_DIR_NEW;
    enum err err = run_dir_inspect(profile->directory, state, why);
    if (!err && *state == RUN_DIR_FOREIGN)
        err = err_set(why, ERR_USAGE,
                      "%s contains files that do not belong to a run: move them, or choose another "
                      "--output-dir",
                      profile->directory);
    return err;
}

/* What to do with the run that is there; *resume is set when it is to be continued. */
static enum err decide(const struct profile *profile, bool *resume, struct error *why)
{
    const struct profile_options *options = profile->options;
    enum run_dir_state state;
    *resume = false;
    enum err err = refuse_foreign(profile, &state, why);
    if (err || state == RUN_DIR_NEW || state == RUN_DIR_EMPTY)
        return err;
    if (options->existing == EXISTING_RESUME) {
        *resume = true;
        return run_dir_check_links(profile->directory, why);
    }
    if (options->existing == EXISTING_OVERWRITE ||
        (options->may_overwrite && options->may_overwrite(profile->directory)))
        return run_dir_clear(profile->directory, why);
    return err_set(why, ERR_USAGE,
                   "%s already holds a run: --resume continues it, --overwrite replaces it, and "
                   "--name NAME uses another name",
                   profile->directory);
}

static bool asks_as_many(const struct profile_options *options, const struct summary *then)
{
    double most = integer_number(then->config_max_queries);
    return options->max_queries ? most == options->max_queries : !is_known(most);
}

/* A repeat that is finished is not run again; its summary is the result. */
static void find_done(struct profile *profile)
{
    struct profile_result *result = profile->result;
    struct summary *summary = &result->summary;
    struct run_repeat there = journal_repeat(profile->journal_path);
    if (!profile->repeat.number || !there.group[0])
        return;
    str_copy(profile->repeat.group, sizeof profile->repeat.group, there.group);
    if (summary_load(profile->directory, summary, NULL) == ERR_OK && summary->interrupted == 0 &&
        summary->failed == 0 && summary->queries > 0 && asks_as_many(profile->options, summary)) {
        result->was_done = result->has_summary = true;
        record_energy_get(&summary->energy, &result->energy);
        return;
    }
    summary_release(summary);
    summary_init(summary);
}

static enum err take_directory(struct profile *profile, struct error *why)
{
    bool resume = false;
    enum run_dir_state state;
    enum err err = name_directory(profile, why);
    if (!err)
        err = run_dir_make(profile->directory, why);
    if (!err)
        err = refuse_foreign(profile, &state, why);
    /* Locked before anything is read or deleted: another process may be writing there. */
    if (!err)
        err = run_dir_lock(profile->directory, &profile->lock_fd, why);
    if (!err)
        err = decide(profile, &resume, why);
    if (!err && !resume)
        err = run_dir_make(profile->directory, why);
    if (!err && resume)
        err = resume_read(profile->journal_path, profile->options, profile->dataset_hash,
                          &profile->resume, why);
    if (err)
        return err;
    if (resume)
        find_done(profile);
    profile->start = profile->resume.starts + 1;
    run_path_samples(profile->directory, profile->start, profile->samples_path,
                     sizeof profile->samples_path);
    str_copy(profile->result->directory, sizeof profile->result->directory, profile->directory);
    return ERR_OK;
}

/* Before this start writes anything: these lines belong to the one before. */
static enum err close_unsettled(struct profile *profile, struct error *why)
{
    uint64_t unsettled;
    enum err err = resume_close_unsettled(&profile->resume, profile->journal_path, &unsettled, why);
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

static enum err open_files(struct profile *profile, struct error *why)
{
    enum err err = journal_open(&profile->journal, profile->journal_path, why);
    if (err)
        return err;
    err = journal_open(&profile->spans, profile->spans_path, why);
    if (err) {
        journal_close(&profile->journal);
        return err;
    }
    char traces[sizeof profile->spans_path];
    run_path_file(profile->directory, RUN_FILE_TRACES, traces, sizeof traces);
    if (profile->options->agent && (err = journal_open(&profile->traces, traces, why))) {
        journal_close(&profile->journal);
        journal_close(&profile->spans);
        return err;
    }
    profile->has_files = true;
    profile->energy_space = 4096 + 1024 * sampler_count(profile->session->sampler);
    err = samples_create(&profile->samples_file, profile->samples_path, true, why);
    if (!err && (err = samples_log_init(&profile->samples, profile->session->sampler, profile->zero,
                                        profile->began - SAMPLES_LEAD, &profile->samples_file)))
        err_explain(why, err);
    profile->writes_samples = !err;
    return err;
}

/* ---- idle power and warm-up ---- */

static enum err measure_idle(struct profile *profile, struct error *why)
{
    double idle_s = profile->options->idle_s;
    conditions_init(&profile->conditions, profile->session);
    if (!profile->client_driver || !profile->client_driver->is_in_process)
        conditions_serve(&profile->conditions, profile->base_url);
    if (idle_s <= 0)
        return ERR_OK;
    profile_begin_phase(profile, "idle", -1);
    enum err err =
        conditions_idle(&profile->conditions, idle_s, &profile->idle, &profile->result->signal);
    profile->has_idle = profile->conditions.has_idle;
    return err ? err_set(why, err, "while measuring idle power: %s", err_text(err)) : ERR_OK;
}

/* In a thread of its own, so that signals are handled meanwhile. */
struct warm_up {
    struct profile *profile;
    unsigned answered;
    enum err err;
    struct error why;
};

static void *warm_up_main(void *argument)
{
    struct warm_up *work = argument;
    work->err = warm_up_queries(work->profile, work->profile->options->warmup_queries,
                                &work->answered, &work->why);
    atomic_fetch_sub(&work->profile->working, 1);
    return NULL;
}

/* False when it was interrupted and does not end. */
static bool await_warm_up(struct profile *profile)
{
    while (atomic_load(&profile->working) > 0) {
        int signal = proc_poll_signal(TICK);
        if (signal) {
            profile->result->signal = signal;
            atomic_store(&profile->stop, true);
            atomic_store(&profile->cancel, true); /* nothing of a warm-up is worth waiting for */
        }
        if (profile_awaits_dataset(profile))
            return false;
        profile_show_progress(profile);
    }
    return true;
}

static enum err take_warm_up(const struct profile *profile, const struct warm_up *work,
                             struct error *why)
{
    if (profile->result->signal)
        return err_set(why, ERR_INTERRUPTED, "interrupted during the warm-up");
    if (!work->err && work->answered == 0)
        return err_set(why, ERR_LOST, "no warm-up query was answered: %s", work->why.text);
    *why = work->why;
    return work->err;
}

static enum err warm_up(struct profile *profile, struct error *why)
{
    unsigned wanted = profile->options->warmup_queries;
    pthread_t thread;
    if (wanted == 0)
        return ERR_OK;
    struct warm_up *work = calloc(1, sizeof *work);
    if (!work)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    work->profile = profile;
    profile_begin_phase(profile, "warm-up", wanted);
    atomic_store(&profile->working, 1);
    enum err err = thread_start(&thread, warm_up_main, work);
    if (err) {
        free(work);
        return err_set(why, err, "cannot start a thread: %s", err_text(err));
    }
    if (!await_warm_up(profile)) {
        pthread_detach(thread);
        profile->abandoned = true; /* with the work */
        return err_set(why, ERR_INTERRUPTED, "interrupted while the dataset was being read");
    }
    pthread_join(thread, NULL);
    atomic_store(&profile->done, 0);
    err = take_warm_up(profile, work, why);
    free(work);
    return err;
}

/* ---- all of it ---- */

static enum err check_dedicated(struct profile *profile, struct error *why)
{
    static const double LENGTH_S = 3;
    struct conditions conditions;
    if (!profile->options->require_dedicated)
        return ERR_OK;
    profile_begin_phase(profile, "preflight", -1);
    conditions_init(&conditions, profile->session);
    if (!profile->client_driver->is_in_process)
        conditions_serve(&conditions, profile->base_url);
    return conditions_dedicated(&conditions, LENGTH_S, why);
}

/* Requests come from elsewhere: there is nothing to ask, and nobody to ask whether it is ready. */
static enum err setup_proxied(struct profile *profile, struct error *why)
{
    enum err err = find_facts(profile, why);
    if (!err)
        err = proxied_check(profile, why);
    str_copy(profile->dataset_name, sizeof profile->dataset_name, profile->options->dataset);
    if (!err)
        err = take_directory(profile, why);
    if (!err)
        err = close_unsettled(profile, why);
    if (!err)
        err = measure_idle(profile, why);
    profile->zero = clock_now();
    profile->zero_wall = clock_wall();
    return err ? err : open_files(profile, why);
}

enum err profile_setup(struct profile *profile, struct error *why)
{
    enum err err = jv_available(why);
    if (!err && profile->options->proxy)
        return setup_proxied(profile, why);
    if (!err)
        err = find_facts(profile, why);
    if (!err)
        err = open_supply(profile, why);
    if (!err)
        dataset_hash(profile->options->dataset, &profile->options->dataset_params,
                     profile->dataset_hash, sizeof profile->dataset_hash);
    if (!err)
        str_copy(profile->dataset_name, sizeof profile->dataset_name, profile->supply.dataset.name);
    if (!err)
        err = graders_check(profile->options, &profile->supply.dataset, why);
    if (!err)
        err = check_template(profile, why);
    if (!err)
        err = prepare_service(profile, why);
    if (!err)
        err = take_directory(profile, why);
    if (!err && profile->result->was_done)
        return ERR_OK;
    if (!err)
        err = close_unsettled(profile, why);
    if (err)
        return err;
    supply_close(&profile->supply); /* opened again, now that it is known what is done already */
    profile->has_supply = false;
    err = open_supply(profile, why);
    if (!err)
        err = check_dedicated(profile, why);
    if (!err)
        err = measure_idle(profile, why);
    if (!err)
        err = warm_up(profile, why);
    profile->zero = clock_now();
    profile->zero_wall = clock_wall();
    return err ? err : open_files(profile, why);
}
