/* A model in this process, through llama.cpp's library: no server, no network, and every token counted
 * and timed where it is made.
 *
 * A client has a context of its own; the weights are shared by all clients of the process.  Nothing is
 * kept from one question to the next, so that each costs what it costs alone. */
#include <stdlib.h>
#include <string.h>

#include "clients/client.h"
#include "clients/llama/options.h"
#include "clients/llama/shared.h"
#include "clients/llama/speech.h"
#include "clients/wire/warm.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "engine/shipped.h"

enum { DEFAULT_CONTEXT = 4096, DEFAULT_ANSWER = 512 };

struct llama {
    struct llama_options options;
    const struct engine_library *library;
    struct shared_model *model; /* NULL before the first question, as the context */
    struct engine_context *context;
};

/* ---- opening ---- */

static enum err open_library(const struct params *params, const struct engine_library **out,
                             struct error *why)
{
    const char *path = params_get(params, "library");
    enum err err = path ? engine_library_use(path, why) : ERR_OK;
    return err ? err : engine_library_open(out, why);
}

static enum err llama_available(const struct params *params, struct error *why)
{
    const struct engine_library *library;
    return open_library(params, &library, why);
}

static void leave_model(struct llama *llama)
{
    engine_context_close(llama->context);
    llama->context = NULL;
    shared_give(llama->model);
    llama->model = NULL;
}

static void llama_close(struct client *client)
{
    struct llama *llama = client->state;
    leave_model(llama);
    free(llama);
}

static enum err open_context(struct llama *llama, struct error *why)
{
    struct engine_model *model = shared_engine(llama->model);
    struct engine_context_options options = llama->options.context;
    int trained = engine_model_facts(model)->trained_context;
    if (options.context == 0 && trained > DEFAULT_CONTEXT)
        options.context = DEFAULT_CONTEXT;
    return engine_context_open(model, &options, &llama->context, why);
}

/* The model that is loaded already is most likely the one that will be asked: a context made now is
 * none of a question's time.  Where it fails, the question says why. */
static void expect_model(struct llama *llama)
{
    llama->model = shared_take_last(&llama->options.model);
    if (llama->model && open_context(llama, NULL))
        leave_model(llama);
}

static enum err llama_open(const struct client_config *config, struct client *out,
                           struct error *why)
{
    if (config->base_url)
        return err_set(why, ERR_USAGE, "client llama has no address: its model is in this process");
    struct llama *llama = calloc(1, sizeof *llama);
    if (!llama)
        return err_set(why, ERR_NO_MEMORY, "out of memory for a client");
    enum err err = llama_options_read(config->params, &llama->options, why);
    if (!err)
        err = open_library(config->params, &llama->library, why);
    if (!err && llama->options.model.gpu_layers != 0 && !llama->library->has_gpu)
        err = err_set(why, ERR_UNSUPPORTED, "gpu_layers: %s can use no GPU here",
                      llama->library->path);
    if (err) {
        free(llama);
        return err;
    }
    expect_model(llama);
    out->state = llama;
    return ERR_OK;
}

static enum err llama_health(struct client *client, struct error *why)
{
    (void)client;
    (void)why;
    return ERR_OK; /* it would not be open */
}

static enum err llama_models(struct client *client, struct client_models *out, struct error *why)
{
    (void)client;
    struct shipped_names names;
    enum err err = shipped_list(&names, why);
    for (size_t i = 0; i < names.count && !err; i++)
        if (client_models_add(out, names.items[i]))
            err = err_set(why, ERR_NO_MEMORY, "out of memory for the list of models");
    shipped_names_release(&names);
    return err;
}

/* Makes the named model this client's, with a context. */
static enum err use_model(struct llama *llama, const char *name, double *load_s, struct error *why)
{
    char path[512];
    *load_s = 0;
    enum err err = shipped_find(name, path, sizeof path, why);
    if (err)
        return err;
    if (llama->context && strcmp(shared_path(llama->model), path) == 0)
        return ERR_OK;
    leave_model(llama);
    err = shared_take(path, &llama->options.model, &llama->model, load_s, why);
    if (!err)
        err = open_context(llama, why);
    if (err)
        leave_model(llama);
    return err;
}

static enum err llama_prepare(struct client *client, const char *model, nanos timeout,
                              struct error *why)
{
    return warm_up(client, model, "max_tokens", clock_now(), timeout, why);
}

/* ---- what it is ---- */

static void describe_model(const struct llama *llama, struct json *json)
{
    const struct engine_model_facts *facts = engine_model_facts(shared_engine(llama->model));
    json_string(json, "model_file", shared_path(llama->model));
    if (facts->description[0])
        json_string(json, "model_description", facts->description);
    json_integer(json, "parameters", (int64_t)facts->parameters);
    json_integer(json, "tensor_bytes", (int64_t)facts->tensor_bytes);
    json_integer(json, "trained_context", facts->trained_context);
    bool is_chat = llama->options.chat != CHAT_OFF && facts->has_chat_template;
    json_string(json, "endpoint", is_chat ? "chat" : "completions");
    if (!llama->context)
        return;
    const struct engine_context_options *context = engine_context_facts(llama->context);
    json_integer(json, "context", context->context);
    json_integer(json, "batch", context->batch);
    json_integer(json, "ubatch", context->ubatch);
    json_integer(json, "threads", context->threads);
    json_integer(json, "threads_batch", context->threads_batch);
    json_integer(json, "gpu_layers", llama->options.model.gpu_layers);
}

static void llama_describe(struct client *client, const char *model, struct json *json)
{
    const struct llama *llama = client->state;
    (void)model;
    json_string(json, "server", "llama.cpp, in this process");
    json_string(json, "version", llama->library->version);
    json_string(json, "library", llama->library->path);
    if (llama->library->cpu[0])
        json_string(json, "cpu_code", llama->library->cpu);
    if (llama->model)
        describe_model(llama, json);
}

/* ---- asking ---- */

struct answering {
    struct llama *llama;
    struct engine_model *model;
    struct wishes wishes;
    struct engine_tokens prompt;
    struct text piece;
    struct speech speech;
};

/* The prompt as the model is to see it.  A template that the library cannot apply is no reason to
 * refuse, unless it was asked for. */
static enum err write_prompt(const struct llama *llama, const struct client_request *request,
                             struct text *out, struct error *why)
{
    const struct engine_model *model = shared_engine(llama->model);
    enum chat chat = llama->options.chat;
    bool has_template = engine_model_facts(model)->has_chat_template;
    if (chat == CHAT_ON || (chat == CHAT_AUTO && has_template)) {
        enum err err = engine_chat_text(model, request->system, request->prompt, out, why);
        if (err != ERR_UNSUPPORTED || chat == CHAT_ON)
            return err;
        log_debug("client llama: the prompt goes as it is: %s", why ? why->text : "");
        text_clear(out);
    }
    if (request->system)
        text_addf(out, "%s\n\n", request->system);
    text_add(out, request->prompt);
    return out->failed ? err_set(why, ERR_NO_MEMORY, "out of memory for a prompt") : ERR_OK;
}

static enum err tokenise(struct answering *a, const struct client_request *request,
                         struct error *why)
{
    struct text prompt = {0};
    enum err err = write_prompt(a->llama, request, &prompt, why);
    if (!err)
        err = engine_tokenise(a->model, text_get(&prompt), prompt.length, true, true, &a->prompt,
                              why);
    text_release(&prompt);
    if (err)
        return err;
    uint32_t room = engine_context_facts(a->llama->context)->context;
    if (a->prompt.count == 0)
        return err_set(why, ERR_BAD_VALUE, "the prompt is empty");
    if (a->prompt.count >= room)
        return err_set(why, ERR_BAD_VALUE,
                       "the prompt has %zu tokens and the context %u: ask for more with "
                       "--client-param context=TOKENS",
                       a->prompt.count, room);
    return ERR_OK;
}

/* How many tokens the answer may have: what was asked for, as far as the context goes. */
static uint64_t most_tokens(const struct answering *a)
{
    uint64_t room = engine_context_facts(a->llama->context)->context - a->prompt.count;
    uint64_t most = a->wishes.max_tokens ? a->wishes.max_tokens : DEFAULT_ANSWER;
    return most < room ? most : room;
}

/* A token at a time, until it ends or there is no more room.  The last one is not computed: nothing
 * would be read from it. */
static enum err speak(struct answering *a, struct client_reply *out, const char **reason,
                      struct error *why)
{
    uint64_t most = most_tokens(a);
    *reason = "length";
    for (uint64_t n = 1;; n++) {
        engine_token token = engine_choose(a->llama->context);
        nanos t = clock_now();
        out->output_tokens = (int64_t)n;
        if (engine_ends(a->model, token)) {
            *reason = "stop";
            break;
        }
        text_clear(&a->piece);
        if (engine_piece(a->model, token, &a->piece) || speech_take(&a->speech, &a->piece, t))
            return err_set(why, ERR_NO_MEMORY, "out of memory for the answer");
        if (a->speech.has_stopped) {
            *reason = "stop";
            break;
        }
        if (n >= most)
            break;
        enum err err = engine_compute(a->llama->context, &token, 1, 1, why);
        if (err)
            return err;
    }
    return speech_end(&a->speech, clock_now())
               ? err_set(why, ERR_NO_MEMORY, "out of memory for the answer")
               : ERR_OK;
}

static enum err answer(struct answering *a, const struct client_request *request,
                       struct client_reply *out, struct error *why)
{
    struct engine_context *context = a->llama->context;
    a->model = shared_engine(a->llama->model);
    a->speech.stops = a->wishes.stops;
    engine_forget(context);
    engine_end_by(context, request->cancel,
                  request->timeout > 0 ? out->sent + request->timeout : 0);
    enum err err = engine_choose_by(context, &a->wishes.choice, why);
    if (!err)
        err = tokenise(a, request, why);
    if (err)
        return err;
    out->prompt_tokens = (int64_t)a->prompt.count;
    out->output_tokens = 0;
    out->cached_tokens = 0;
    nanos began = clock_now();
    err = engine_compute(context, a->prompt.ids, a->prompt.count, 1, why);
    nanos read = clock_now();
    if (err)
        return err;
    out->server_prefill_s = seconds(read - began);
    const char *reason;
    err = speak(a, out, &reason, why);
    out->server_decode_s = seconds(clock_now() - read);
    if (!err)
        str_copy(out->finish_reason, sizeof out->finish_reason, reason);
    return err;
}

static enum err llama_ask(struct client *client, const struct client_request *request,
                          struct client_reply *out, struct error *why)
{
    struct answering a = {.llama = client->state, .speech = {.request = request, .reply = out}};
    client_reply_init(out);
    out->sent = clock_now();
    enum err err = wishes_read(request->params, &a.wishes, why);
    if (!err && request->cancel && atomic_load(request->cancel))
        err = err_set(why, ERR_INTERRUPTED, "llama: the request was cancelled");
    if (!err)
        err = use_model(a.llama, request->model, &out->server_load_s, why);
    if (!err)
        err = answer(&a, request, out, why);
    out->retryable = err == ERR_TIMEOUT;
    speech_release(&a.speech);
    text_release(&a.piece);
    engine_tokens_release(&a.prompt);
    wishes_release(&a.wishes);
    out->done = clock_now();
    return err;
}

const struct client_driver client_llama = {
    .name = "llama",
    .summary = "a GGUF model in this process, through llama.cpp's library; --model is the file",
    .params = LLAMA_PARAMS,
    .is_in_process = true,
    .available = llama_available,
    .open = llama_open,
    .close = llama_close,
    .health = llama_health,
    .models = llama_models,
    .prepare = llama_prepare,
    .describe = llama_describe,
    .ask = llama_ask,
};
