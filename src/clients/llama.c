/* In-process inference with llama.cpp: no server, no network, and every token counted and timed where it
 * is generated.
 *
 * Each client has its own context; the weights are shared by all clients of the process.  The KV cache is cleared
 * between requests, so that no request benefits from an earlier one. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/client.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/xalloc.h"
#include "engine/engine.h"
#include "engine/shipped.h"
#include "port/json_read.h"

enum { DEFAULT_CONTEXT = 4096, DEFAULT_MAX_TOKENS = 512 };

enum chat_template { TEMPLATE_AUTO, TEMPLATE_ON, TEMPLATE_OFF };
enum tools { TOOLS_AUTO, TOOLS_ON, TOOLS_OFF };

struct llama_options {
    struct engine_model_options model;
    struct engine_context_options context;
    enum chat_template chat;
    enum tools tools;
};

struct llama {
    struct llama_options options;
    const struct engine_library *library;
    struct engine_model *model; /* NULL before the first request, like the context */
    struct engine_context *context;
};

/* ---- --client-param ---- */

static const struct param_spec PARAMS[] = {
    {"context", "TOKENS", "context length, prompt and completion (as trained, at most 4096)"},
    {"batch", "TOKENS", "prompt tokens per call (2048)"},
    {"ubatch", "TOKENS", "prompt tokens per graph (512)"},
    {"threads", "COUNT", "threads for decode (the cores available to ipw)"},
    {"threads_batch", "COUNT", "threads for prefill (as threads)"},
    {"gpu_layers", "COUNT|all", "layers to offload to a GPU (0)"},
    {"flash_attention", "auto|on|off", "flash attention (auto)"},
    {"chat", "auto|on|off", "apply the model's chat template; auto: if there is one (auto)"},
    {"tools", "auto|on|off",
     "tool calls as <tool_call>{...}</tool_call>; auto: if the chat template has them so (auto)"},
    {"library", "PATH",
     "libllama or its directory (IPW_LLAMA_LIB, then the one installed with ipw, then the "
     "system's)"},
    {NULL, NULL, NULL},
};

static enum err read_options(const struct params *params, struct llama_options *out,
                             struct error *why)
{
    enum { TOKENS_MAX = 1 << 30, THREADS_MAX = 512, LAYERS_MAX = 100000 };
    static const char *const FLASH[] = {"auto", "off", "on", NULL}; /* -1, 0, 1 */
    static const char *const SWITCH[] = {"auto", "on", "off", NULL};
    struct params_reader read = {params, why, ERR_OK};
    const char *layers = params_get(params, "gpu_layers");
    bool is_all = layers && str_equal(layers, "all");
    out->context = (struct engine_context_options){
        .context = (uint32_t)params_count(&read, "context", 0, 16, TOKENS_MAX),
        .batch = (uint32_t)params_count(&read, "batch", 0, 1, TOKENS_MAX),
        .ubatch = (uint32_t)params_count(&read, "ubatch", 0, 1, TOKENS_MAX),
        .threads = (int)params_count(&read, "threads", 0, 1, THREADS_MAX),
        .threads_batch = (int)params_count(&read, "threads_batch", 0, 1, THREADS_MAX),
        .flash_attention = params_word(&read, "flash_attention", FLASH, 0) - 1,
    };
    out->chat = (enum chat_template)params_word(&read, "chat", SWITCH, TEMPLATE_AUTO);
    out->tools = (enum tools)params_word(&read, "tools", SWITCH, TOOLS_AUTO);
    out->model.gpu_layers = is_all ? -1 : (int)params_count(&read, "gpu_layers", 0, 0, LAYERS_MAX);
    return read.err;
}

/* ---- request parameters ---- */

static const struct param_spec REQUEST_PARAMS[] = {
    {"max_tokens", "COUNT", ""}, {"temperature", "T", ""}, {"top_k", "COUNT", ""},
    {"top_p", "P", ""},          {"min_p", "P", ""},       {"repeat_penalty", "P", ""},
    {"seed", "NUMBER", ""},      {"stop", "TEXT", ""},     {NULL, NULL, NULL},
};

/* Owns its stop strings. */
struct request_params {
    uint64_t max_tokens; /* 0: the default */
    struct engine_sampling sampling;
    char **stops; /* ends with NULL */
    size_t stop_count, stop_capacity;
};

static enum err add_stop(struct request_params *request, const char *text, struct error *why)
{
    if (!*text)
        return err_set(why, ERR_USAGE, "stop: the string is empty");
    if (request->stop_capacity < request->stop_count + 2) { /* this one and the terminating NULL */
        request->stop_capacity = request->stop_count + 2;
        request->stops =
            xreallocarray(request->stops, request->stop_capacity, sizeof *request->stops);
    }
    request->stops[request->stop_count++] = xstrdup(text);
    request->stops[request->stop_count] = NULL;
    return ERR_OK;
}

/* A string, or a JSON array of strings, in which "\n" is a newline. */
static enum err read_stops(struct request_params *request, const char *given, struct error *why)
{
    if (given[0] != '[')
        return add_stop(request, given, why);
    struct jv *list;
    enum err err = jv_parse(given, strlen(given), &list, why);
    if (err)
        return err == ERR_BAD_VALUE
                   ? err_set(why, ERR_USAGE,
                             "stop=%s: expected a string or a JSON array of strings", given)
                   : err;
    for (const struct jv *item = jv_first(list); item && !err; item = jv_next(item))
        err = jv_text(item) ? add_stop(request, jv_text(item), why)
                            : err_set(why, ERR_USAGE, "stop: expected an array of strings");
    jv_free(list);
    return err;
}

static double read_number(struct params_reader *read, const char *key, double otherwise)
{
    return params_number(read, key, otherwise, -INFINITY, INFINITY);
}

static enum err read_sampling(const struct params *params, struct request_params *out,
                              struct error *why)
{
    struct params_reader read = {params, why, ERR_OK};
    out->max_tokens = params_count(&read, "max_tokens", 0, 1, INT_MAX);
    out->sampling = (struct engine_sampling){
        .temperature = read_number(&read, "temperature", 0),
        .top_p = read_number(&read, "top_p", 1),
        .min_p = read_number(&read, "min_p", 0),
        .top_k = (int)params_count(&read, "top_k", 0, 0, INT_MAX),
        .repeat_penalty = read_number(&read, "repeat_penalty", 1),
        .seed = (uint32_t)params_count(&read, "seed", 0, 0, UINT32_MAX),
    };
    return read.err;
}

static void release_request(struct request_params *request)
{
    memory_free_strings(request->stops, request->stop_count);
    *request = (struct request_params){0};
}

static enum err read_request(const struct client_request *request, struct request_params *out,
                             struct error *why)
{
    const struct params *params = request->params;
    *out = (struct request_params){0};
    enum err err = params_check(params, REQUEST_PARAMS, "client llama", why);
    if (!err)
        err = read_sampling(params, out, why);
    const char *stop = params_get(params, "stop");
    if (!err && stop)
        err = read_stops(out, stop, why);
    if (!err && request->tool_count > 0)
        err = add_stop(out, tool_text_stop(TOOL_TEXT_HERMES), why);
    if (err)
        release_request(out);
    return err;
}

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

static void unload(struct llama *llama)
{
    engine_context_close(llama->context);
    llama->context = NULL;
    engine_model_release(llama->model);
    llama->model = NULL;
}

static void llama_close(struct client *client)
{
    struct llama *llama = client->state;
    unload(llama);
    free(llama);
}

static enum err open_context(struct llama *llama, struct error *why)
{
    struct engine_model *model = llama->model;
    struct engine_context_options options = llama->options.context;
    int trained = engine_model_facts(model)->trained_context;
    if (options.context == 0 && trained > DEFAULT_CONTEXT)
        options.context = DEFAULT_CONTEXT;
    return engine_context_open(model, &options, &llama->context, why);
}

/* A model that is already loaded is most likely the one that will be used: creating its context here keeps that out of
 * the first request.  A failure is reported by that request. */
static void preload(struct llama *llama)
{
    llama->model = engine_model_acquire_last(&llama->options.model);
    if (llama->model && open_context(llama, NULL))
        unload(llama);
}

static enum err llama_open(const struct client_config *config, struct client *out,
                           struct error *why)
{
    if (config->base_url)
        return err_set(why, ERR_USAGE, "client llama takes no address: it runs in this process");
    struct llama *llama = XNEW(llama);
    enum err err = read_options(config->params, &llama->options, why);
    if (!err)
        err = open_library(config->params, &llama->library, why);
    if (!err && llama->options.model.gpu_layers != 0 && !llama->library->has_gpu)
        err = err_set(why, ERR_UNSUPPORTED, "gpu_layers: %s cannot use a GPU here",
                      llama->library->path);
    if (err) {
        free(llama);
        return err;
    }
    preload(llama);
    out->state = llama;
    return ERR_OK;
}

static enum err llama_health(struct client *client, struct error *why)
{
    (void)client;
    (void)why;
    return ERR_OK; /* always healthy once opened */
}

static enum err llama_models(struct client *client, struct client_models *out, struct error *why)
{
    (void)client;
    struct shipped_names names;
    (void)why;
    shipped_list(&names);
    for (size_t i = 0; i < names.count; i++)
        client_models_add(out, names.items[i]);
    shipped_names_release(&names);
    return ERR_OK;
}

/* Loads the named model and creates a context, unless this was done already. */
static enum err use_model(struct llama *llama, const char *name, double *load_s, struct error *why)
{
    char *path;
    *load_s = 0;
    enum err err = shipped_find(name, &path, why);
    if (err)
        return err;
    if (llama->context && str_equal(engine_model_path(llama->model), path)) {
        free(path);
        return ERR_OK;
    }
    unload(llama);
    err = engine_model_acquire(path, &llama->options.model, &llama->model, load_s, why);
    free(path);
    if (!err)
        err = open_context(llama, why);
    if (err)
        unload(llama);
    return err;
}

static enum err llama_prepare(struct client *client, const char *model, nanos timeout,
                              struct error *why)
{
    return client_warm_up(client, model, "max_tokens", clock_now(), timeout, why);
}

/* ---- describe ---- */

static void describe_model(const struct llama *llama, struct json *json)
{
    const struct engine_model_facts *facts = engine_model_facts(llama->model);
    json_string(json, "model_file", engine_model_path(llama->model));
    if (facts->description[0])
        json_string(json, "model_description", facts->description);
    json_integer(json, "parameters", (int64_t)facts->parameters);
    json_integer(json, "tensor_bytes", (int64_t)facts->tensor_bytes);
    json_integer(json, "trained_context", facts->trained_context);
    bool is_chat = llama->options.chat != TEMPLATE_OFF && facts->has_chat_template;
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

/* ---- requests ---- */

/* One request in progress. */
struct generation {
    struct llama *llama;
    const struct client_request *request;
    struct completion *out;
    struct request_params params;
    struct engine_tokens prompt;
    struct text piece;
    struct stop_filter filter;
};

static bool takes_tools(const struct llama *llama)
{
    return llama->options.tools == TOOLS_ON ||
           (llama->options.tools == TOOLS_AUTO && llama->options.chat != TEMPLATE_OFF &&
            engine_model_facts(llama->model)->has_tool_call_tag);
}

static enum err apply_template(const struct engine_model *model, const struct chat *chat,
                               struct text *out, struct error *why)
{
    struct engine_message *messages = xcalloc(chat->count + 1, sizeof *messages);
    for (size_t i = 0; i < chat->count; i++)
        messages[i] =
            (struct engine_message){chat_role_name(chat->messages[i].role), chat->messages[i].text};
    enum err err = engine_apply_chat_template(model, messages, chat->count, out, why);
    free(messages);
    return err;
}

/* Applies the chat template to the conversation.  A template that the library cannot apply is skipped, unless it was
 * requested. */
static enum err format_chat(const struct llama *llama, const struct chat *chat, struct text *out,
                            struct error *why)
{
    const struct engine_model *model = llama->model;
    enum chat_template use = llama->options.chat;
    bool has_template = engine_model_facts(model)->has_chat_template;
    if (use == TEMPLATE_ON || (use == TEMPLATE_AUTO && has_template)) {
        enum err err = apply_template(model, chat, out, why);
        if (err != ERR_UNSUPPORTED || use == TEMPLATE_ON)
            return err;
        log_debug("client llama: prompt sent without chat template: %s", why ? why->text : "");
        text_clear(out);
    }
    chat_write_plain(chat, out);
    return ERR_OK;
}

/* llama.cpp's library applies templates without tools: tool definitions are written into the messages. */
static enum err format_prompt(const struct llama *llama, const struct client_request *request,
                              struct text *out, struct error *why)
{
    struct client_chat space;
    struct chat written = {0};
    const struct chat *chat = client_chat(request, &space);
    tool_text_render(TOOL_TEXT_HERMES, chat, request->tools, request->tool_count, &written);
    enum err err = format_chat(llama, &written, out, why);
    chat_release(&written);
    return err;
}

static enum err tokenize(struct generation *g, struct error *why)
{
    struct text prompt = {0};
    enum err err = format_prompt(g->llama, g->request, &prompt, why);
    if (!err)
        err = engine_tokenize(g->llama->model, text_get(&prompt), prompt.length, true, true,
                              &g->prompt, why);
    text_release(&prompt);
    if (err)
        return err;
    uint32_t context = engine_context_facts(g->llama->context)->context;
    if (g->prompt.count == 0)
        return err_set(why, ERR_BAD_VALUE, "the prompt is empty");
    if (g->prompt.count >= context)
        return err_set(why, ERR_BAD_VALUE,
                       "the prompt has %zu tokens but the context only %u: enlarge it with "
                       "--client-param context=TOKENS",
                       g->prompt.count, context);
    return ERR_OK;
}

/* max_tokens, limited by the context. */
static uint64_t token_limit(const struct generation *g)
{
    uint64_t left = engine_context_facts(g->llama->context)->context - g->prompt.count;
    uint64_t limit = g->params.max_tokens ? g->params.max_tokens : DEFAULT_MAX_TOKENS;
    return limit < left ? limit : left;
}

/* Moves text that passed the filter to the completion and the observer. */
static void emit(struct generation *g, nanos t)
{
    struct text *text = &g->filter.text;
    const struct client_request *request = g->request;
    completion_append(g->out, &g->out->content, text_get(text), text->length, t);
    if (request->observer && text->length > 0)
        request->observer(request->context, text_get(text), text->length, t);
    text_clear(text);
}

/* Adds a token to the completion. */
static enum err emit_token(struct generation *g, engine_token token, nanos t)
{
    text_clear(&g->piece);
    enum err err = engine_detokenize(g->llama->model, token, &g->piece);
    if (err)
        return err;
    stop_filter_add(&g->filter, text_get(&g->piece), g->piece.length);
    emit(g, t);
    return ERR_OK;
}

/* Generates token by token until a stop or the limit.  The last token is not decoded: its logits would
 * not be used. */
static enum err decode(struct generation *g, const char **reason, struct error *why)
{
    uint64_t limit = token_limit(g);
    *reason = "length";
    for (uint64_t n = 1;; n++) {
        engine_token token = engine_sample(g->llama->context);
        nanos t = clock_now();
        g->out->output_tokens = (int64_t)n;
        if (engine_is_end(g->llama->model, token)) {
            *reason = "stop";
            break;
        }
        enum err err = emit_token(g, token, t);
        if (err)
            return err_set(why, err, "llama.cpp has no text for token %d", (int)token);
        if (g->filter.has_stopped) {
            *reason = "stop";
            break;
        }
        if (n >= limit)
            break;
        err = engine_decode(g->llama->context, &token, 1, 1, why);
        if (err)
            return err;
    }
    stop_filter_end(&g->filter);
    emit(g, clock_now());
    return ERR_OK;
}

static enum err generate(struct generation *g, struct error *why)
{
    struct engine_context *context = g->llama->context;
    struct completion *out = g->out;
    g->filter.stops = g->params.stops;
    engine_clear(context);
    engine_set_abort(context, g->request->cancel,
                     g->request->timeout > 0 ? out->sent + g->request->timeout : 0);
    enum err err = engine_set_sampling(context, &g->params.sampling, why);
    if (!err)
        err = tokenize(g, why);
    if (err)
        return err;
    out->prompt_tokens = (int64_t)g->prompt.count;
    out->output_tokens = 0;
    out->cached_tokens = 0;
    nanos began = clock_now();
    err = engine_decode(context, g->prompt.ids, g->prompt.count, 1, why);
    nanos prefilled = clock_now();
    if (err)
        return err;
    out->server_prefill_s = seconds(prefilled - began);
    const char *reason;
    err = decode(g, &reason, why);
    out->server_decode_s = seconds(clock_now() - prefilled);
    if (!err)
        chars_copy(out->finish_reason, reason);
    return err;
}

/* Parses tool calls in the text; the remaining text is the content. */
static enum err find_calls(const struct client_request *request, struct completion *out,
                           struct error *why)
{
    struct text rest = {0};
    if (request->tool_count == 0)
        return ERR_OK;
    enum err err = tool_text_parse(text_get(&out->content), request->tools, request->tool_count,
                                   &rest, &out->calls);
    if (!err)
        tool_calls_identify(&out->calls, (uint64_t)out->sent);
    if (!err && out->calls.count > 0) {
        text_release(&out->content);
        out->content = rest;
        rest = (struct text){0};
        if (str_equal(out->finish_reason, "stop")) /* keep "length" if it was truncated */
            chars_copy(out->finish_reason, "tool_calls");
    }
    text_release(&rest);
    return err_explain(why, err);
}

static enum client_tools llama_tools(struct client *client, const char *model)
{
    struct llama *llama = client->state;
    double load_s;
    if (use_model(llama, model, &load_s, NULL))
        return CLIENT_TOOLS_UNKNOWN;
    return takes_tools(llama) ? CLIENT_TOOLS_YES : CLIENT_TOOLS_NO;
}

static enum err llama_ask(struct client *client, const struct client_request *request,
                          struct completion *out, struct error *why)
{
    struct generation g = {.llama = client->state, .request = request, .out = out};
    completion_init(out);
    out->sent = clock_now();
    enum err err = read_request(request, &g.params, why);
    if (!err && request->cancel && atomic_load(request->cancel))
        err = err_set(why, ERR_INTERRUPTED, "llama: the request was canceled");
    if (!err)
        err = use_model(g.llama, request->model, &out->server_load_s, why);
    if (!err && request->tool_count > 0 && !takes_tools(g.llama)) {
        out->rejects_tools = true;
        err =
            err_set(why, ERR_UNSUPPORTED,
                    "no tools: the chat template of %.100s has none; set tools=on if the model was "
                    "trained for <tool_call>{...}</tool_call>",
                    request->model);
    }
    if (!err)
        err = generate(&g, why);
    if (!err)
        err = find_calls(request, out, why);
    out->retryable = err == ERR_TIMEOUT;
    stop_filter_release(&g.filter);
    text_release(&g.piece);
    engine_tokens_release(&g.prompt);
    release_request(&g.params);
    out->done = clock_now();
    return err;
}

/* ---- scoring ---- */

/* Appends the text of a window's tokens, before its first token is replaced. */
static enum err add_window(const struct engine_model *model, const int32_t *tokens, size_t length,
                           struct client_windows *out)
{
    enum err err = ERR_OK;
    out->text_at[out->count++] = out->text.length;
    for (size_t i = 0; i < length && !err; i++)
        err = engine_detokenize(model, tokens[i], &out->text);
    out->text_at[out->count] = out->text.length;
    return err;
}

/* Same as llama.cpp's perplexity program: the whole text is tokenized once and split without overlap, the first token
 * of each window is replaced by BOS if the model uses it, and an incomplete last window is dropped. */
static enum err llama_split(struct client *client, const char *name, const struct text *text,
                            size_t length, struct client_windows *out, struct error *why)
{
    struct llama *llama = client->state;
    struct engine_tokens tokens = {0};
    double load_s;
    *out = (struct client_windows){.length = length};
    enum err err = use_model(llama, name, &load_s, why);
    if (!err && length > engine_context_facts(llama->context)->context)
        err = err_set(why, ERR_USAGE,
                      "a window of %zu tokens exceeds the context of %u: reduce it with "
                      "--dataset-param window=TOKENS or enlarge the context with --client-param "
                      "context=TOKENS",
                      length, engine_context_facts(llama->context)->context);
    if (!err)
        err =
            engine_tokenize(llama->model, text_get(text), text->length, true, false, &tokens, why);
    out->tokens = tokens.ids;
    if (!err && tokens.count < length)
        err = err_set(why, ERR_NO_DATA,
                      "the text has %zu tokens, fewer than one window of %zu: reduce it with "
                      "--dataset-param window=TOKENS",
                      tokens.count, length);
    size_t windows = tokens.count / length;
    out->text_at = xcalloc(windows + 1, sizeof *out->text_at);
    int32_t begin = err ? -1 : engine_model_facts(llama->model)->begin;
    for (size_t i = 0; i < windows && !err; i++) {
        int32_t *window = tokens.ids + i * length;
        err = err_explain(why, add_window(llama->model, window, length, out));
        if (begin >= 0)
            window[0] = begin;
    }
    if (err)
        client_windows_release(out);
    return err;
}

static enum err count_bytes(const struct engine_model *model, const int32_t *tokens, size_t count,
                            int64_t *out)
{
    struct text bytes = {0};
    enum err err = ERR_OK;
    for (size_t i = 0; i < count && !err; i++)
        err = engine_detokenize(model, tokens[i], &bytes);
    *out = (int64_t)bytes.length;
    text_release(&bytes);
    return err;
}

static enum err llama_score(struct client *client, const struct client_request *request,
                            const int32_t *tokens, size_t count, struct completion *out,
                            struct error *why)
{
    struct llama *llama = client->state;
    size_t first = count / 2 + 1;
    completion_init(out);
    out->sent = clock_now();
    enum err err = use_model(llama, request->model, &out->server_load_s, why);
    if (!err && (!tokens || count < 4))
        err = err_set(why, ERR_USAGE, "llama: no window of tokens to score");
    if (!err) {
        engine_clear(llama->context);
        engine_set_abort(llama->context, request->cancel,
                         request->timeout > 0 ? out->sent + request->timeout : 0);
        nanos began = clock_now();
        err =
            engine_score(llama->context, tokens, count, first, &out->negative_log_likelihood, why);
        out->server_prefill_s = seconds(clock_now() - began);
    }
    if (!err)
        err = err_explain(
            why, count_bytes(llama->model, tokens + first, count - first, &out->scored_bytes));
    if (!err) {
        out->prompt_tokens = (int64_t)count;
        out->scored_tokens = (int64_t)(count - first);
        out->output_tokens = out->cached_tokens = 0;
    }
    out->retryable = err == ERR_TIMEOUT;
    out->done = clock_now();
    return err;
}

const struct client_driver client_llama = {
    .name = "llama",
    .summary = "in-process inference of a GGUF model with llama.cpp; --model is the file or a name",
    .params = PARAMS,
    .is_in_process = true,
    .available = llama_available,
    .open = llama_open,
    .close = llama_close,
    .health = llama_health,
    .models = llama_models,
    .prepare = llama_prepare,
    .describe = llama_describe,
    .tools = llama_tools,
    .ask = llama_ask,
    .score = llama_score,
    .split = llama_split,
};
