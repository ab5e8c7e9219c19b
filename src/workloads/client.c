/* A workload as a client, so that `ipw profile` sends each item of a dataset to it.  The measured window of a request is
 * that of its inference: preparing its input and decoding its output come before and after. */
#include <stdlib.h>

#include "clients/client.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/params.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "workloads/batch.h"
#include "workloads/workload.h"

struct state {
    struct workload workload;
    struct batcher *batcher; /* NULL: queries run one by one */
};

/* ---- parameters of the client, besides those of the workload ---- */

struct batch_options {
    uint64_t size;
    nanos delay;
};

static enum err read_batch(const struct client_config *config, struct batch_options *out,
                           struct error *why)
{
    enum { DELAY_MS = 50, DELAY_MAX_MS = 60000 };
    struct params_reader read = {config->params, why, ERR_OK};
    out->size = params_count(&read, WORKLOAD_BATCH, 1, 1, BATCH_MAX);
    out->delay =
        from_seconds(1e-3 * params_number(&read, WORKLOAD_BATCH_DELAY, DELAY_MS, 0, DELAY_MAX_MS));
    if (!read.err && out->size > 1 && !config->workload->run_batch)
        return err_set(why, ERR_USAGE, "workload %s runs one query at a time: it has no %s",
                       config->workload->name, WORKLOAD_BATCH);
    return read.err;
}

/* Those of the workload, and the key that distinguishes a batch from those of other models and options. */
static void split_params(const struct client_config *config, struct params *own, struct text *key)
{
    text_addf(key, "%s\n%s", config->workload->name, text_or_empty(config->model));
    for (size_t i = 0; config->params && i < config->params->count; i++) {
        const char *name = config->params->items[i].key, *value = config->params->items[i].value;
        if (str_equal(name, WORKLOAD_BATCH) || str_equal(name, WORKLOAD_BATCH_DELAY))
            continue;
        params_set(own, name, value);
        text_addf(key, "\n%s=%s", name, value);
    }
}

/* ---- the client ---- */

static enum err open_client(const struct client_config *config, struct client *out,
                            struct error *why)
{
    struct state *state = XNEW(state);
    struct batch_options batch;
    struct params own = {0};
    struct text key = {0};
    split_params(config, &own, &key);
    const struct workload_config given = {config->model, &own};
    enum err err = read_batch(config, &batch, why);
    if (!err)
        err = workload_open(config->workload, &given, &state->workload, why);
    if (!err && batch.size > 1)
        state->batcher = batcher_join(text_get(&key), (size_t)batch.size, batch.delay);
    params_release(&own);
    text_release(&key);
    if (err)
        free(state);
    else
        out->state = state;
    return err;
}

static void close_client(struct client *client)
{
    struct state *state = client->state;
    batcher_leave(state->batcher);
    workload_close(&state->workload);
    free(state);
}

static enum err always(struct client *client, struct error *why)
{
    (void)client;
    (void)why;
    return ERR_OK;
}

static enum err list_models(struct client *client, struct client_models *out, struct error *why)
{
    const struct workload *workload = &((const struct state *)client->state)->workload;
    (void)why;
    if (workload->driver->default_model)
        client_models_add(out, workload->driver->default_model);
    return ERR_OK;
}

/* The model was loaded when the client was opened; the first inference is a warm-up query's. */
static enum err prepare_client(struct client *client, const char *model, nanos timeout,
                               struct error *why)
{
    (void)model;
    (void)timeout;
    return always(client, why);
}

static void describe_client(struct client *client, const char *model, struct json *json)
{
    const struct workload *workload = &((const struct state *)client->state)->workload;
    (void)model;
    json_string(json, "workload", workload->driver->name);
    if (workload->driver->describe)
        workload->driver->describe(workload, json);
}

static enum client_tools no_tools(struct client *client, const char *model)
{
    (void)client;
    (void)model;
    return CLIENT_TOOLS_NO;
}

static enum err run_query(struct state *state, struct workload_query *query, struct completion *out,
                          struct error *why)
{
    struct workload *workload = &state->workload;
    if (state->batcher)
        return batcher_run(state->batcher, workload, query, &out->sent, &out->done, why);
    out->sent = clock_now();
    enum err err = workload->driver->run(workload, query, why);
    out->done = clock_now();
    return err;
}

static enum err ask(struct client *client, const struct client_request *request,
                    struct completion *out, struct error *why)
{
    struct state *state = client->state;
    struct workload *workload = &state->workload;
    const struct workload_driver *driver = workload->driver;
    struct workload_query query = {
        .input = request->prompt, .params = request->params, .cancel = request->cancel};
    completion_init(out);
    workload_query_begin(&query);
    out->sent = out->done = clock_now();
    enum err err = workload_check_query(driver, request->params, why);
    if (!err)
        err = driver->prepare(workload, &query, why);
    if (!err)
        err = run_query(state, &query, out, why);
    if (!err)
        err = workload_query_end(workload, &query, out, why);
    driver->discard(workload, &query);
    if (!err && !out->finish_reason[0])
        completion_set_reason(out, "stop");
    return err;
}

const struct client_driver workload_client = {
    .name = "onnx",
    .summary = "in-process inference of a workload's ONNX models",
    .is_in_process = true,
    .shares_model = true,
    .open = open_client,
    .close = close_client,
    .health = always,
    .models = list_models,
    .prepare = prepare_client,
    .describe = describe_client,
    .tools = no_tools,
    .ask = ask,
};
