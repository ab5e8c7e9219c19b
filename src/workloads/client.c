/* A workload as a client, so that `ipw profile` sends each item of a dataset to it.  The measured window of a request is
 * that of its inference: preparing its input and decoding its output come before and after. */
#include <stdlib.h>

#include "clients/client.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "workloads/workload.h"

static enum err open_client(const struct client_config *config, struct client *out,
                            struct error *why)
{
    struct workload *workload = XNEW(workload);
    const struct workload_config given = {config->model, config->params};
    enum err err = workload_open(config->workload, &given, workload, why);
    if (err)
        free(workload);
    else
        out->state = workload;
    return err;
}

static void close_client(struct client *client)
{
    workload_close(client->state);
    free(client->state);
}

static enum err always(struct client *client, struct error *why)
{
    (void)client;
    (void)why;
    return ERR_OK;
}

static enum err list_models(struct client *client, struct client_models *out, struct error *why)
{
    const struct workload *workload = client->state;
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
    const struct workload *workload = client->state;
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

static enum err run_query(struct workload *workload, struct workload_query *query,
                          struct completion *out, struct error *why)
{
    out->sent = clock_now();
    enum err err = workload->driver->run(workload, query, why);
    out->done = clock_now();
    return err;
}

static enum err ask(struct client *client, const struct client_request *request,
                    struct completion *out, struct error *why)
{
    struct workload *workload = client->state;
    const struct workload_driver *driver = workload->driver;
    struct workload_query query = {
        .input = request->prompt, .params = request->params, .cancel = request->cancel};
    char owner[64];
    chars_format(owner, "workload %s", driver->name);
    completion_init(out);
    workload_query_begin(&query);
    out->sent = out->done = clock_now();
    enum err err = params_check(request->params, driver->query_params, owner, why);
    if (!err)
        err = driver->prepare(workload, &query, why);
    if (!err)
        err = run_query(workload, &query, out, why);
    if (!err)
        err = workload_query_end(workload, &query, out, why);
    driver->discard(workload, &query);
    if (!err)
        completion_set_reason(out, "stop");
    return err;
}

const struct client_driver workload_client = {
    .name = "onnx",
    .summary = "in-process inference of a workload's ONNX models",
    .is_in_process = true,
    .open = open_client,
    .close = close_client,
    .health = always,
    .models = list_models,
    .prepare = prepare_client,
    .describe = describe_client,
    .tools = no_tools,
    .ask = ask,
};
