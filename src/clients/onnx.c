/* In-process load with an ONNX model: every request runs the model once, on the same random inputs.  The answer is the
 * shapes of its outputs; there is nothing to grade.  Applications with real inputs are workloads/. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clients/client.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/xalloc.h"
#include "engine/onnx_inputs.h"
#include "engine/ort_library.h"
#include "engine/shipped.h"

struct onnx {
    struct onnx_options options;
    char *library;
    struct onnx_input_options inputs_wanted;
    struct params dims, values;

    char *model; /* as named by requests; NULL: none loaded */
    struct onnx_session *session;
    struct onnx_inputs inputs;
    bool is_checked; /* its outputs are numbers */
};

static const char DIM[] = "dim.", VALUE[] = "value.";

static const struct param_spec PARAMS[] = {
    {"threads", "THREADS", "threads of an operator (one per core)"},
    {"provider", "cpu|cuda", "where it runs (cpu); cuda needs a library with CUDA"},
    {"library", "PATH", "libonnxruntime to use, a file or its directory"},
    {"batch", "COUNT", "size of free batch dimensions (1)"},
    {"seed", "NUMBER", "of the random inputs (0)"},
    {"dim.*", "SIZE", "of a free dimension: dim.seq=128, dim.x.2=640, dim.x=1x3x640x640"},
    {"value.*", "LOW:HIGH", "range of an input's values (-1:1, integers 0:1)"},
    {NULL, NULL, NULL},
};

static const struct param_spec REQUEST_PARAMS[] = {{NULL, NULL, NULL}};

/* ---- --client-param ---- */

/* Those with a prefix, without it. */
static void take_prefixed(const struct params *params, const char *prefix, struct params *out)
{
    for (size_t i = 0; params && i < params->count; i++)
        if (str_starts(params->items[i].key, prefix))
            params_set(out, params->items[i].key + strlen(prefix), params->items[i].value);
}

static enum err read_params(struct onnx *onnx, const struct params *params, struct error *why)
{
    enum { THREADS_MAX = 512, BATCH_MAX = 1 << 20 };
    static const char *const PROVIDERS[] = {"cpu", "cuda", NULL};
    struct params_reader read = {params, why, ERR_OK};
    const char *library = params_get(params, "library");
    onnx->library = library ? xstrdup(library) : NULL;
    onnx->options = (struct onnx_options){
        .threads = (unsigned)params_count(&read, "threads", 0, 1, THREADS_MAX),
        .provider = PROVIDERS[params_word(&read, "provider", PROVIDERS, 0)],
        .library = onnx->library,
    };
    take_prefixed(params, DIM, &onnx->dims);
    take_prefixed(params, VALUE, &onnx->values);
    onnx->inputs_wanted = (struct onnx_input_options){
        .batch = params_count(&read, "batch", 0, 1, BATCH_MAX),
        .seed = params_count(&read, "seed", 0, 0, UINT64_MAX),
        .dims = &onnx->dims,
        .values = &onnx->values,
        .dim_option = "--client-param dim.",
        .value_option = "--client-param value.",
    };
    return read.err;
}

/* ---- the model ---- */

static void unload(struct onnx *onnx)
{
    onnx_session_close(onnx->session);
    onnx_inputs_release(&onnx->inputs);
    free(onnx->model);
    onnx->session = NULL;
    onnx->model = NULL;
    onnx->is_checked = false;
}

/* Loads the named model and makes its inputs, unless this was done already. */
static enum err use_model(struct onnx *onnx, const char *name, double *load_s, struct error *why)
{
    char *path;
    *load_s = 0;
    if (onnx->model && str_equal(onnx->model, name))
        return ERR_OK;
    unload(onnx);
    nanos began = clock_now();
    enum err err = shipped_find_onnx(name, &path, why);
    if (err)
        return err;
    err = onnx_session_open(path, &onnx->options, &onnx->session, why);
    free(path);
    if (!err)
        err = onnx_inputs_make(onnx->session, &onnx->inputs_wanted, &onnx->inputs, why);
    if (err) {
        unload(onnx);
        return err;
    }
    onnx->model = xstrdup(name);
    *load_s = seconds(clock_now() - began);
    return ERR_OK;
}

static void list_outputs(const struct onnx *onnx, const struct onnx_tensor *outputs,
                         struct text *to)
{
    const struct onnx_facts *facts = onnx_session_facts(onnx->session);
    for (size_t i = 0; i < facts->output_count; i++) {
        text_add(to, i ? ", " : "");
        onnx_tensor_describe(&facts->outputs[i], &outputs[i], to);
    }
}

/* Once per model: its inputs stay the same. */
static enum err check_outputs(struct onnx *onnx, const struct onnx_tensor *outputs,
                              struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(onnx->session);
    for (size_t i = 0; !onnx->is_checked && i < facts->output_count; i++) {
        size_t at = onnx_tensor_nan(&outputs[i]);
        if (at != SIZE_MAX)
            return err_set(why, ERR_BAD_VALUE,
                           "%s: output %s has NaN at element %zu with random inputs: give inputs "
                           "that it can compute with --client-param value.INPUT=LOW:HIGH",
                           facts->path, facts->outputs[i].name, at);
    }
    onnx->is_checked = true;
    return ERR_OK;
}

/* One inference; *from and *to are its times, and *answer gets the shapes of its outputs. */
static enum err infer(struct onnx *onnx, const atomic_bool *cancel, nanos *from, nanos *to,
                      struct text *answer, struct error *why)
{
    struct onnx_tensor outputs[ONNX_PORTS_MAX];
    *from = clock_now();
    enum err err = onnx_run(onnx->session, onnx->inputs.tensors, outputs, NULL, cancel, why);
    *to = clock_now();
    if (err)
        return err;
    err = check_outputs(onnx, outputs, why);
    if (!err)
        list_outputs(onnx, outputs, answer);
    for (size_t i = 0; i < onnx_session_facts(onnx->session)->output_count; i++)
        onnx_tensor_release(&outputs[i]);
    return err;
}

/* ---- the driver ---- */

static enum err onnx_is_available(const struct params *params, struct error *why)
{
    const struct ort_library *library;
    return ort_library_open(params_get(params, "library"), &library, why);
}

static void onnx_close(struct client *client)
{
    struct onnx *onnx = client->state;
    unload(onnx);
    params_release(&onnx->dims);
    params_release(&onnx->values);
    free(onnx->library);
    free(onnx);
}

static enum err onnx_open(const struct client_config *config, struct client *out, struct error *why)
{
    if (config->base_url)
        return err_set(why, ERR_USAGE, "client onnx takes no address: it runs in this process");
    struct onnx *onnx = XNEW(onnx);
    out->state = onnx;
    enum err err = read_params(onnx, config->params, why);
    if (err)
        onnx_close(out);
    return err;
}

static enum err onnx_health(struct client *client, struct error *why)
{
    (void)client;
    (void)why;
    return ERR_OK; /* always healthy once opened */
}

static enum err onnx_models(struct client *client, struct client_models *out, struct error *why)
{
    struct shipped_names names;
    (void)client;
    (void)why;
    shipped_list_onnx(&names);
    for (size_t i = 0; i < names.count; i++)
        client_models_add(out, names.items[i]);
    shipped_names_release(&names);
    return ERR_OK;
}

static enum err onnx_prepare(struct client *client, const char *model, nanos timeout,
                             struct error *why)
{
    struct onnx *onnx = client->state;
    struct text answer = {0};
    nanos from, to;
    double load_s;
    (void)timeout;
    enum err err = use_model(onnx, model, &load_s, why);
    if (!err)
        err = infer(onnx, NULL, &from, &to, &answer, why);
    text_release(&answer);
    return err;
}

static void describe_inputs(const struct onnx *onnx, struct json *json)
{
    const struct onnx_facts *facts = onnx_session_facts(onnx->session);
    struct text one = {0};
    json_array(json, "inputs");
    for (size_t i = 0; i < facts->input_count; i++) {
        text_clear(&one);
        onnx_tensor_describe(&facts->inputs[i], &onnx->inputs.tensors[i], &one);
        json_string(json, NULL, text_get(&one));
    }
    json_array_end(json);
    text_release(&one);
}

static void onnx_describe(struct client *client, const char *model, struct json *json)
{
    const struct onnx *onnx = client->state;
    (void)model;
    json_string(json, "server", "ONNX Runtime, in this process");
    json_string(json, "version", ort_library()->version);
    json_string(json, "library", ort_library()->path);
    json_string(json, "provider", onnx->options.provider);
    if (!onnx->session)
        return;
    const struct onnx_facts *facts = onnx_session_facts(onnx->session);
    json_string(json, "model_file", facts->path);
    json_integer(json, "threads", facts->threads);
    json_integer(json, "batch", onnx->inputs_wanted.batch ? (int64_t)onnx->inputs_wanted.batch : 1);
    describe_inputs(onnx, json);
}

static enum client_tools onnx_tools(struct client *client, const char *model)
{
    (void)client;
    (void)model;
    return CLIENT_TOOLS_NO;
}

static enum err check_request(const struct client_request *request, struct completion *out,
                              struct error *why)
{
    enum err err = params_check(request->params, REQUEST_PARAMS, "client onnx", why);
    if (err || request->tool_count == 0)
        return err;
    out->rejects_tools = true;
    return err_set(why, ERR_UNSUPPORTED, "no tools: client onnx runs a model on random inputs");
}

static enum err answer_request(struct onnx *onnx, const struct client_request *request,
                               struct completion *out, struct error *why)
{
    struct text answer = {0};
    enum err err = infer(onnx, request->cancel, &out->sent, &out->done, &answer, why);
    bool is_late = request->timeout > 0 && out->done - out->sent > request->timeout;
    if (!err && is_late)
        err = err_set(why, ERR_TIMEOUT, "onnx: the inference took longer than %.3g s",
                      seconds(request->timeout));
    if (!err) {
        text_add(&out->content, text_get(&answer));
        completion_set_reason(out, "stop");
        if (request->observer)
            request->observer(request->context, text_get(&answer), answer.length, out->done);
    }
    text_release(&answer);
    return err;
}

static enum err onnx_ask(struct client *client, const struct client_request *request,
                         struct completion *out, struct error *why)
{
    struct onnx *onnx = client->state;
    completion_init(out);
    out->sent = out->done = clock_now();
    enum err err = check_request(request, out, why);
    if (!err && request->cancel && atomic_load(request->cancel))
        err = err_set(why, ERR_INTERRUPTED, "onnx: the request was canceled");
    if (!err)
        err = use_model(onnx, request->model, &out->server_load_s, why);
    if (!err)
        err = answer_request(onnx, request, out, why);
    return err;
}

const struct client_driver client_onnx = {
    .name = "onnx",
    .summary = "in-process load of an ONNX model on random inputs with ONNX Runtime",
    .params = PARAMS,
    .is_in_process = true,
    .shares_model = true,
    .only_dataset = "null",
    .available = onnx_is_available,
    .open = onnx_open,
    .close = onnx_close,
    .health = onnx_health,
    .models = onnx_models,
    .prepare = onnx_prepare,
    .describe = onnx_describe,
    .tools = onnx_tools,
    .ask = onnx_ask,
};
