/* Everything before the first query, in the order in which mistakes are cheapest to report: facts about the
 * model, dataset, graders, service, run directory; then idle power, warm-up and the files. */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/json_read.h"
#include "port/proc.h"
#include "port/thread.h"
#include "runner/profile/phases.h"
#include "runner/profile/state.h"
#include "runner/profile/worker.h"
#include "sampler/session.h"
#include "workloads/workload.h"

#define TICK (20 * NS_PER_MS)

static enum err open_supply(struct profile *profile, struct error *why)
{
    const struct profile_options *options = profile->options;
    struct supply_options supply = {
        .dataset = options->dataset,
        .params = &options->dataset_params,
        .windows = profile_windows(&profile->setup),
        .done = &profile->files.resume.done,
        .max_items = options->max_queries ? options->max_queries : UINT64_MAX,
        .shard = options->shard,
        .shards = options->shards,
        .repeats = options->repeat,
        .rate = options->rate,
        .seed = options->seed,
    };
    /* A FIFO without a writer or an unresponsive hub may block; nothing is written yet. */
    proc_end_by_signals();
    enum err err = supply_open(&profile->shared.supply, &supply, why);
    proc_defer_signals();
    profile->shared.has_supply = !err;
    return err;
}

/* The first question must have the fields named by the template: a misspelled name would affect all. */
static enum err check_template(struct profile *profile, struct error *why)
{
    struct query query;
    struct text prompt = {0};
    bool end;
    if (!profile->options->template_text || profile->options->is_perplexity)
        return ERR_OK;
    proc_end_by_signals();
    enum err err = supply_next(&profile->shared.supply, &query, &end, why);
    proc_defer_signals();
    if (err || end)
        return err;
    const struct prompt_form form = profile_prompts(profile->options);
    err = prompt_render(&form, &query.item, &prompt, why);
    text_release(&prompt);
    query_release(&query);
    return err;
}

/* ---- the service: does it respond, does it have the model, what does it report?  In a separate thread, so that an
 * interruption need not wait for a slow server ---- */

/* Loading a large model from disk takes minutes. */
#define PREPARE_MAX_S 1800.0

struct preparation {
    const struct client_driver *driver;
    struct client_config config;
    const char *model;
    double timeout_s;
    char base_url[512];
    struct client keeper; /* of a model that is shared; else empty */
    struct text info;
    struct client_windows windows;
    struct text passage;         /* passage to score first; empty: the model generates */
    struct text text;            /* text to be split into windows of this many tokens */
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

/* Scores the first window, to reject a service without log-probabilities before anything is written. */
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
        chars_copy(work->base_url, client.base_url);
        if (!work->err && work->driver->shares_model)
            work->keeper = client;
        else
            client_close(&client);
    }
    atomic_store(&work->done, true);
    return NULL;
}

/* After ERR_INTERRUPTED the thread and its memory are abandoned: the process exits. */
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
    chars_copy(profile->setup.base_url, work->base_url);
    profile->setup.keeper = work->keeper;
    profile->setup.client_info = work->info;
    profile->setup.windows = work->windows;
    text_release(&work->passage);
    text_release(&work->text);
    free(work);
    return err;
}

/* ---- perplexity ---- */

static enum err check_perplexity(const struct profile *profile, struct error *why)
{
    const struct profile_options *options = profile->options;
    const struct dataset_driver *dataset = profile->shared.supply.dataset.driver;
    if (!str_equal(dataset->name, "text"))
        return err_set(
            why, ERR_USAGE,
            "--task perplexity scores a text: give --dataset FILE.txt, or --dataset text "
            "--dataset-param path=FILE");
    if (options->system || options->template_text || options->grader || options->judge_model)
        return err_set(why, ERR_USAGE,
                       "--task perplexity: --system, --template, --grader and --eval-model do not "
                       "apply, since no question is asked");
    if (!profile->setup.client_driver->score)
        return err_set(why, ERR_USAGE,
                       "client %s returns no log-probabilities: --task perplexity needs llama or "
                       "openai",
                       profile->setup.client_driver->name);
    return ERR_OK;
}

/* The first passage, and for a client that splits the text itself the whole text. */
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
        err = supply_next(&profile->shared.supply, &query, &end, why);
    if (!err && end)
        err = err_set(why, ERR_NO_DATA, "the text has no passage");
    if (err)
        return err;
    text_add(&work->passage, query.item.problem);
    query_release(&query);
    work->params = &options->request_params;
    work->window = (size_t)window;
    if (profile->setup.client_driver->split)
        err = file_read(path && *path ? path : options->dataset, TEXT_LIMIT, &work->text, why);
    return err;
}

/* What no query of a workload could use. */
static enum err check_workload(const struct profile *profile, struct error *why)
{
    const struct profile_options *options = profile->options;
    const struct workload_driver *driver = options->workload;
    const struct dataset *dataset = &profile->shared.supply.dataset;
    if (!driver)
        return ERR_OK;
    if (driver->takes_text && dataset->driver->has_media)
        return err_set(why, ERR_USAGE, "dataset %s has files, but a query of --workload %s is %s",
                       dataset->name, driver->name, driver->inputs);
    if (options->base_url)
        return err_set(why, ERR_USAGE,
                       "--client-base-url does not apply: --workload %s runs in this process",
                       driver->name);
    if (options->system)
        return err_set(why, ERR_USAGE, "--system does not apply: a query of --workload %s is %s",
                       driver->name, driver->inputs);
    return workload_check_query(driver, &options->request_params, why);
}

static enum err prepare_service(struct profile *profile, struct error *why)
{
    const struct profile_options *options = profile->options;
    enum err err = check_workload(profile, why);
    if (err)
        return err;
    profile->setup.client_driver =
        options->workload ? &workload_client : client_driver_find(options->client, why);
    if (!profile->setup.client_driver)
        return ERR_USAGE;
    profile->setup.client_config =
        (struct client_config){.base_url = options->base_url,
                               .params = &options->client_params,
                               .probe_timeout = from_seconds(options->timeout_s),
                               .workload = options->workload,
                               .model = options->model};
    profile_begin_phase(profile, "preparing", -1);
    struct preparation *work = XNEW(work);
    work->driver = profile->setup.client_driver;
    work->config = profile->setup.client_config;
    work->model = options->model;
    work->timeout_s = options->timeout_s > PREPARE_MAX_S ? options->timeout_s : PREPARE_MAX_S;
    err = options->is_perplexity ? read_text(profile, work, why) : ERR_OK;
    if (!err)
        return wait_for_service(profile, work, why);
    text_release(&work->passage);
    text_release(&work->text);
    free(work);
    return err;
}

/* ---- idle power and warm-up ---- */

static void init_conditions(struct profile *profile)
{
    conditions_init(&profile->conditions, profile->session);
    if (!profile->setup.client_driver || !profile->setup.client_driver->is_in_process)
        conditions_serve(&profile->conditions, profile->setup.base_url);
}

static enum err measure_idle(struct profile *profile, struct error *why)
{
    double idle_s = profile->options->idle_s;
    init_conditions(profile);
    if (idle_s <= 0)
        return ERR_OK;
    profile_begin_phase(profile, "idle", -1);
    enum err err =
        conditions_idle(&profile->conditions, idle_s, &profile->idle, &profile->result->signal);
    profile->has_idle = profile->conditions.has_idle;
    return err ? err_set(why, err, "while measuring idle power: %s", err_text(err)) : ERR_OK;
}

/* In a separate thread, so that signals are handled meanwhile. */
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
    atomic_fetch_sub(&work->profile->shared.working, 1);
    return NULL;
}

/* Returns false if it was interrupted and did not end. */
static bool await_warm_up(struct profile *profile)
{
    while (atomic_load(&profile->shared.working) > 0) {
        int signal = proc_poll_signal(TICK);
        if (signal) {
            profile->result->signal = signal;
            atomic_store(&profile->shared.stop, true);
            atomic_store(&profile->shared.cancel,
                         true); /* a warm-up is aborted at the first signal */
        }
        if (profile_awaits_dataset(profile))
            return false;
        profile_show_progress(profile);
    }
    return true;
}

static enum err take_warm_up(const struct warm_up *work, int signal, struct error *why)
{
    if (signal)
        return err_set(why, ERR_INTERRUPTED, "interrupted during the warm-up");
    if (!work->err && work->answered == 0 && work->why.code == ERR_USAGE)
        return err_set(why, ERR_USAGE, "%s", work->why.text);
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
    struct warm_up *work = XNEW(work);
    work->profile = profile;
    profile_begin_phase(profile, "warm-up", wanted);
    atomic_store(&profile->shared.working, 1);
    enum err err = thread_start(&thread, warm_up_main, work);
    if (err) {
        free(work);
        return err_set(why, err, "cannot start a thread: %s", err_text(err));
    }
    if (!await_warm_up(profile)) {
        pthread_detach(thread);
        profile->abandoned = true; /* together with the warm-up's memory */
        return err_set(why, ERR_INTERRUPTED, "interrupted while the dataset was being read");
    }
    pthread_join(thread, NULL);
    atomic_store(&profile->shared.done, 0);
    err = take_warm_up(work, profile->result->signal, why);
    free(work);
    return err;
}

/* ---- setup ---- */

static enum err check_dedicated(struct profile *profile, struct error *why)
{
    static const double LENGTH_S = 3;
    struct conditions conditions;
    if (!profile->options->require_dedicated)
        return ERR_OK;
    profile_begin_phase(profile, "preflight", -1);
    conditions_init(&conditions, profile->session);
    if (!profile->setup.client_driver->is_in_process)
        conditions_serve(&conditions, profile->setup.base_url);
    return conditions_dedicated(&conditions, LENGTH_S, why);
}

/* Requests come from clients: there is no dataset to read, and no service to prepare.  Idle power is measured while the
 * proxy runs, so that it listens at once. */
static enum err setup_proxied(struct profile *profile, struct error *why)
{
    enum err err = profile_find_facts(profile, why);
    if (!err)
        err = proxied_check(profile, why);
    chars_copy(profile->setup.dataset_name, profile->options->dataset);
    if (!err)
        err = profile_open_directory(profile, why);
    if (!err)
        err = profile_close_unsettled(profile, why);
    init_conditions(profile);
    profile->zero = clock_now();
    profile->zero_wall = clock_wall();
    return err ? err : profile_open_files(profile, why);
}

enum err profile_setup(struct profile *profile, struct error *why)
{
    if (profile->options->proxy)
        return setup_proxied(profile, why);
    enum err err = profile_find_facts(profile, why);
    if (!err)
        err = open_supply(profile, why);
    if (!err)
        dataset_hash(profile->options->dataset, &profile->options->dataset_params,
                     profile->setup.dataset_hash, sizeof profile->setup.dataset_hash);
    if (!err)
        chars_copy(profile->setup.dataset_name, profile->shared.supply.dataset.name);
    if (!err)
        err = graders_check(profile->options, &profile->shared.supply.dataset, why);
    if (!err)
        err = check_template(profile, why);
    if (!err)
        err = prepare_service(profile, why);
    if (!err)
        err = profile_open_directory(profile, why);
    if (!err && profile->result->was_done)
        return ERR_OK;
    if (!err)
        err = profile_close_unsettled(profile, why);
    if (err)
        return err;
    supply_close(&profile->shared.supply); /* reopened, now that the completed queries are known */
    profile->shared.has_supply = false;
    err = open_supply(profile, why);
    if (!err)
        err = check_dedicated(profile, why);
    if (!err)
        err = measure_idle(profile, why);
    if (!err)
        err = warm_up(profile, why);
    profile->zero = clock_now();
    profile->zero_wall = clock_wall();
    return err ? err : profile_open_files(profile, why);
}
