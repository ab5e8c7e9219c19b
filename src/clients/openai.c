/* OpenAI-compatible servers: vLLM, SGLang, TGI, llama.cpp, LM Studio and OpenAI itself.
 *
 * The model must be one of those that the server lists, unless it lists exactly one: llama.cpp lists
 * its only model by file name and serves it under any name.  A warning then names the listed model, and
 * describe records it as served_model. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "clients/client.h"
#include "clients/endpoint.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "core/secret.h"
#include "port/json_read.h"
#include "wire/completion.h"
#include "wire/responses.h"

struct openai {
    struct endpoint endpoint;
    bool is_completions;
    bool is_scoring; /* in the current request */
    /* Detected from this server's errors. */
    bool rejects_usage_option;        /* does not accept stream_options */
    bool wants_max_completion_tokens; /* requires max_completion_tokens instead of max_tokens */
    enum client_tools tools;          /* from its responses to requests with tools */
};

static const struct param_spec PARAMS[] = {
    {"endpoint", "chat|completions", "API endpoint (chat)"},
    {"api_key_env", "NAME",
     "environment variable that holds the API key (IPW_API_KEY, then OPENAI_API_KEY)"},
    {"header.*", "VALUE|@FILE|env:VARIABLE", "extra HTTP header: header.X-Name=value"},
    {NULL, NULL, NULL},
};

/* ---- opening ---- */

/* Whether the path has a component such as "v1" or "v1beta". */
static bool has_version(const char *path)
{
    for (const char *c = path; (c = strchr(c, '/')); c++)
        if (c[1] == 'v' && isdigit((unsigned char)c[2]))
            return true;
    return false;
}

/* The base URL including the version, whether or not the user gave it. */
static enum err make_url(char *url, size_t size, const char *given, struct error *why)
{
    static const char *const TAILS[] = {"/chat/completions", "/completions"};
    enum err err = endpoint_url(url, size, given, why);
    if (err)
        return err;
    for (size_t i = 0; i < sizeof TAILS / sizeof *TAILS; i++) {
        size_t length = strlen(url), tail = strlen(TAILS[i]);
        if (length > tail && strcmp(url + length - tail, TAILS[i]) == 0)
            url[length - tail] = '\0';
    }
    const char *path = strchr(strstr(url, "://") + 3, '/');
    if (path && has_version(path))
        return ERR_OK;
    size_t length = strlen(url);
    return str_copy(url + length, size - length, "/v1")
               ? ERR_OK
               : err_set(why, ERR_USAGE, "the address is too long");
}

static enum err add_key(struct endpoint *endpoint, const struct params *params, struct error *why)
{
    const char *name = params_get(params, "api_key_env");
    const char *key = name ? getenv(name) : getenv("IPW_API_KEY");
    if (name && (!key || !*key))
        return err_set(why, ERR_USAGE, "the environment variable %s (api_key_env) is not set",
                       name);
    if (!key || !*key)
        key = getenv("OPENAI_API_KEY");
    if (!key || !*key)
        return ERR_OK;
    struct text line = {0};
    secret_add(key);
    text_addf(&line, "Bearer %s", key);
    if (!line.failed)
        str_trim(line.bytes); /* a key read from a file often ends with a newline */
    enum err err =
        line.failed ? ERR_NO_MEMORY : params_set(&endpoint->headers, "Authorization", line.bytes);
    text_release(&line);
    return err ? err_set(why, err, "out of memory for a header") : ERR_OK;
}

static enum err configure(void *state, const struct client_config *config, struct error *why)
{
    struct openai *openai = state;
    struct endpoint *endpoint = &openai->endpoint;
    endpoint->start_hint = "start a server (llama-server -m FILE, vllm serve MODEL), or set its "
                           "address";
    endpoint->auth_hint = "set IPW_API_KEY, or name another variable with api_key_env";
    const char *kind = params_get(config->params, "endpoint");
    openai->is_completions = kind && strcmp(kind, "completions") == 0;
    if (kind && !openai->is_completions && strcmp(kind, "chat") != 0)
        return err_set(why, ERR_USAGE, "endpoint=%s: expected chat or completions", kind);
    enum err err = add_key(endpoint, config->params, why);
    return err ? err : endpoint_headers(endpoint, config->params, why);
}

static enum err openai_open(const struct client_config *config, struct client *out,
                            struct error *why)
{
    static const struct endpoint_client KIND = {sizeof(struct openai), make_url, configure};
    return endpoint_client_open(&KIND, config, out, why);
}

/* ---- requests ---- */

/* /completions has no roles: only the texts are sent. */
static void write_prompt(struct json *json, const struct chat *chat)
{
    struct text prompt = {0};
    chat_write_plain(chat, &prompt);
    json_string(json, "prompt", text_get(&prompt));
    json->out->failed = json->out->failed || prompt.failed;
    text_release(&prompt);
}

/* Streams, with usage at the end, unless parameters override that. */
static void write_stream(struct json *json, const struct openai *openai,
                         const struct params *params)
{
    const char *stream = params_get(params, "stream");
    if (!stream)
        json_bool(json, "stream", true);
    if (openai->rejects_usage_option || params_get(params, "stream_options") ||
        (stream && strcmp(stream, "true") != 0))
        return;
    json_object(json, "stream_options");
    json_bool(json, "include_usage", true);
    json_object_end(json);
}

static void write_body(struct text *body, const struct openai *openai,
                       const struct client_request *request)
{
    struct json json;
    struct client_chat space;
    const struct chat *chat = client_chat(request, &space);
    const struct params *params = request->params;
    json_init(&json, body, false);
    json_object(&json, NULL);
    json_string(&json, "model", request->model);
    if (openai->is_completions)
        write_prompt(&json, chat);
    else
        chat_write(&json, CHAT_OPENAI, chat);
    chat_write_tools(&json, CHAT_OPENAI, request->tools, request->tool_count);
    write_stream(&json, openai, params);
    for (size_t i = 0; params && i < params->count; i++) {
        const char *key = params->items[i].key;
        if (openai->wants_max_completion_tokens && strcmp(key, "max_tokens") == 0)
            key = "max_completion_tokens";
        message_write_param(&json, key, params->items[i].value);
    }
    json_object_end(&json);
}

/* Adapts to a 400 or 422; returns true if the request should be sent again in another form. */
static bool adapt(struct openai *openai, const struct http_response *response,
                  const struct params *params)
{
    if (response->status != 400 && response->status != 422)
        return false;
    const char *message = text_get(&response->error_body);
    if (!openai->rejects_usage_option && !params_get(params, "stream_options") &&
        (str_contains_nocase(message, "stream_options") ||
         str_contains_nocase(message, "include_usage"))) {
        openai->rejects_usage_option = true;
        return true;
    }
    if (!openai->wants_max_completion_tokens && params_get(params, "max_tokens") &&
        str_contains_nocase(message, "max_completion_tokens")) {
        openai->wants_max_completion_tokens = true;
        return true;
    }
    return false;
}

/* One exchange; *again is set when the request should be sent in another form. */
static enum err ask_once(struct openai *openai, const struct client_request *request,
                         struct completion *out, bool *again, struct error *why)
{
    struct endpoint *endpoint = &openai->endpoint;
    struct text body = {0};
    *again = false;
    write_body(&body, openai, request);
    if (body.failed) {
        text_release(&body);
        return err_set(why, ERR_NO_MEMORY, "out of memory for the request");
    }
    struct event_response response;
    struct http_response http;
    struct completion_sink sink = endpoint_sink(endpoint, request, out, why);
    sink.wants_score = openai->is_scoring;
    openai_response_init(&response, &sink);
    enum err err =
        endpoint_post(endpoint, openai->is_completions ? "/completions" : "/chat/completions",
                      &body, request, event_response_feed, &response, out, &http, why);
    if (!err && (http.status < 200 || http.status > 299)) {
        err = endpoint_reply_error(endpoint, request, &http, out, why);
        *again = adapt(openai, &http, request->params);
        if (out->rejects_tools && !*again)
            openai->tools = CLIENT_TOOLS_NO;
    } else {
        err = event_response_end(&response, err);
        if (out->calls.count > 0)
            openai->tools = CLIENT_TOOLS_YES;
    }
    event_response_release(&response);
    http_response_release(&http);
    text_release(&body);
    return err;
}

static enum err openai_ask(struct client *client, const struct client_request *request,
                           struct completion *out, struct error *why)
{
    static const char *const RESERVED[] = {"tools", "model", "messages", "prompt", NULL};
    const struct openai *openai = client->state;
    completion_init(out);
    out->sent = out->done = clock_now();
    enum err err =
        message_check_reserved(request->params, RESERVED + (request->tool_count == 0), why);
    if (!err && request->tool_count > 0 && openai->is_completions) {
        out->rejects_tools = true;
        err = err_set(why, ERR_UNSUPPORTED, "no tools: endpoint=completions takes none");
    }
    const char *n = params_get(request->params, "n");
    if (!err && n && strcmp(n, "1") != 0)
        err = err_set(why, ERR_USAGE,
                      "n=%.20s: only one completion per request is supported; use --repeat", n);
    for (bool again = !err; again;)
        err = ask_once(client->state, request, out, &again, why);
    completion_check_counts(out, client_prompt_bytes(request));
    if (!err) { /* a first attempt in another form may have set these */
        out->retryable = out->rejects_tools = false;
        out->retry_after_s = UNKNOWN;
    }
    return err;
}

/* Parameters that make a server return the log-probabilities of the prompt.  One token is generated: for some servers,
 * 0 means no limit. */
static enum err score_params(const struct params *given, struct params *out, struct error *why)
{
    static const char *const WORDS[][2] = {{"echo", "true"},
                                           {"logprobs", "1"},
                                           {"max_tokens", "1"},
                                           {"temperature", "0"},
                                           {"stream", "false"}};
    *out = (struct params){0};
    enum err err = params_copy(out, given);
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS && !err; i++)
        err = params_set(out, WORDS[i][0], WORDS[i][1]);
    return err_explain(why, err);
}

static enum err openai_score(struct client *client, const struct client_request *request,
                             const int32_t *tokens, size_t count, struct completion *out,
                             struct error *why)
{
    struct openai *openai = client->state;
    bool is_completions = openai->is_completions;
    struct params params;
    struct client_request scoring = *request;
    struct error cause = {0};
    (void)tokens, (void)count;
    completion_init(out);
    out->sent = out->done = clock_now();
    enum err err = score_params(request->params, &params, why);
    scoring.params = &params;
    openai->is_completions = openai->is_scoring = true;
    if (!err)
        err = openai_ask(client, &scoring, out, &cause);
    openai->is_completions = is_completions;
    openai->is_scoring = false;
    params_release(&params);
    bool is_refused = strstr(cause.text, "echo") || strstr(cause.text, "logprobs");
    if (err == ERR_BAD_VALUE && out->status >= 400 && is_refused)
        err = err_set(why, ERR_UNSUPPORTED,
                      "perplexity needs /completions with echo and logprobs: %.200s", cause.text);
    else if (err && why && cause.text[0])
        *why = cause;
    if (!err && out->scored_tokens < 0)
        err =
            err_set(why, ERR_UNSUPPORTED,
                    "%.100s returned no log-probabilities of the prompt: it ignores echo, as "
                    "llama.cpp's server does. Perplexity needs a server whose /completions support "
                    "echo and logprobs, such as vLLM, or the model's file: --client llama",
                    openai->endpoint.shown);
    text_clear(&out->content); /* the echo */
    out->arrivals.count = 0;
    out->first_token = out->last_token = 0;
    out->finish_reason[0] = '\0'; /* that of the single generated token */
    return err;
}

/* ---- health and models ---- */

/* The list of models: {"data":[...]}, {"models":[...]} or the document itself. */
static const struct jv *find_list(const struct jv *root)
{
    const struct jv *list = jv_get(root, "data");
    if (!list)
        list = jv_get(root, "models");
    return list ? list : root;
}

static const char *entry_name(const struct jv *entry)
{
    const char *name = jv_text(jv_get(entry, "id"));
    return name ? name : jv_text(jv_get(entry, "name"));
}

static enum err get_models(struct openai *openai, nanos timeout, struct jv **out,
                           struct http_response *response, struct error *why)
{
    char url[640];
    str_format(url, sizeof url, "%s/models", openai->endpoint.url);
    return endpoint_get(&openai->endpoint, url, timeout, out, response, why);
}

/* A document outside the versioned path: llama.cpp's /health, vLLM's /version. */
static enum err get_unversioned(struct openai *openai, const char *path, nanos timeout,
                                struct jv **out, struct http_response *response, struct error *why)
{
    char url[640];
    size_t root = strlen(openai->endpoint.url);
    if (root > 3 && strcmp(openai->endpoint.url + root - 3, "/v1") == 0)
        root -= 3;
    str_format(url, sizeof url, "%.*s%s", (int)root, openai->endpoint.url, path);
    return endpoint_get(&openai->endpoint, url, timeout, out, response, why);
}

static bool lacks_endpoint(int status)
{
    return status == 404 || status == 405 || status == 501;
}

static enum err openai_health(struct client *client, struct error *why)
{
    struct openai *openai = client->state;
    struct jv *root;
    struct http_response response;
    nanos timeout = client_probe_timeout(client->probe_timeout);
    enum err err = get_models(openai, timeout, &root, &response, why);
    jv_free(root);
    if (!lacks_endpoint(response.status))
        return err;
    err = get_unversioned(openai, "/health", timeout, &root, &response, why);
    jv_free(root);
    return response.status >= 200 && response.status < 300 ? ERR_OK : err;
}

static enum err list_models(const struct jv *root, struct client_models *out, struct error *why)
{
    for (const struct jv *e = jv_first(find_list(root)); e; e = jv_next(e)) {
        const char *name = entry_name(e);
        if (name && client_models_add(out, name))
            return err_set(why, ERR_NO_MEMORY, "out of memory for the list of models");
    }
    return ERR_OK;
}

static enum err openai_models(struct client *client, struct client_models *out, struct error *why)
{
    struct jv *root;
    enum err err = get_models(client->state, CLIENT_PROBE_TIMEOUT, &root, NULL, why);
    if (!err)
        err = list_models(root, out, why);
    jv_free(root);
    return err;
}

static bool is_listed(const struct client_models *models, const char *model)
{
    for (size_t i = 0; i < models->count; i++)
        if (strcmp(models->names[i], model) == 0)
            return true;
    return false;
}

/* A server without a list of models is accepted. */
static enum err check_model(struct openai *openai, const char *model, nanos timeout,
                            struct error *why)
{
    struct jv *root;
    struct http_response response;
    struct client_models models = {0};
    enum err err = get_models(openai, timeout, &root, &response, why);
    if (err && lacks_endpoint(response.status))
        return ERR_OK;
    if (!err)
        err = list_models(root, &models, why);
    if (!err && models.count == 1 && !is_listed(&models, model))
        log_warn("%s lists only '%s'; requesting '%s' anyway", openai->endpoint.shown,
                 models.names[0], model);
    else if (!err && models.count > 1 && !is_listed(&models, model))
        err = endpoint_missing_model(&openai->endpoint, model, &models, "", why);
    client_models_release(&models);
    jv_free(root);
    return err;
}

static enum err openai_prepare(struct client *client, const char *model, nanos timeout,
                               struct error *why)
{
    nanos began = clock_now();
    enum err err = check_model(client->state, model, client_probe_timeout(timeout), why);
    return err ? err : client_warm_up(client, model, "max_tokens", began, timeout, why);
}

/* ---- describe ---- */

/* The entry of the model, or the only entry. */
static const struct jv *find_entry(const struct jv *root, const char *model)
{
    const struct jv *list = find_list(root);
    for (const struct jv *e = jv_first(list); e; e = jv_next(e)) {
        const char *name = entry_name(e);
        if (name && strcmp(name, model) == 0)
            return e;
    }
    return jv_count(list) == 1 ? jv_first(list) : NULL;
}

/* Writes the value at the first path that exists; servers differ in where they put it. */
static void write_first(struct json *json, const char *key, const struct jv *root,
                        const char *const *paths)
{
    for (; *paths; paths++) {
        const struct jv *value = jv_path(root, *paths);
        if (!jv_is_null(value)) {
            message_copy_value(json, key, value);
            return;
        }
    }
}

static void describe_server(struct openai *openai, const char *owner, struct json *json)
{
    bool is_llama = owner && strcmp(owner, "llamacpp") == 0;
    bool is_vllm = owner && strcmp(owner, "vllm") == 0;
    struct jv *root = NULL;
    if (!is_llama && !is_vllm)
        return;
    if (!get_unversioned(openai, is_llama ? "/props" : "/version", CLIENT_PROBE_TIMEOUT, &root,
                         NULL, NULL)) {
        message_copy_value(json, "server_version",
                           jv_get(root, is_llama ? "build_info" : "version"));
        message_copy_value(json, "model_file", jv_get(root, "model_path"));
        message_copy_value(json, "context_used",
                           jv_path(root, "default_generation_settings.n_ctx"));
        message_copy_value(json, "slots", jv_get(root, "total_slots"));
    }
    jv_free(root);
}

/* llama.cpp reports the capabilities of the chat template; for others, only their responses show it. */
static enum client_tools openai_tools(struct client *client, const char *model)
{
    struct openai *openai = client->state;
    struct jv *root = NULL;
    (void)model;
    if (openai->is_completions)
        return CLIENT_TOOLS_NO;
    if (openai->tools == CLIENT_TOOLS_UNKNOWN &&
        !get_unversioned(openai, "/props", client_probe_timeout(client->probe_timeout), &root, NULL,
                         NULL)) {
        const struct jv *supports = jv_path(root, "chat_template_caps.supports_tools");
        if (jv_is_bool(supports))
            openai->tools = jv_bool(supports, false) ? CLIENT_TOOLS_YES : CLIENT_TOOLS_NO;
    }
    jv_free(root);
    return openai->tools;
}

static void openai_describe(struct client *client, const char *model, struct json *json)
{
    static const char *const CONTEXT[] = {"max_model_len",  "meta.n_ctx_train",
                                          "context_length", "max_context_length",
                                          "context_window", NULL};
    static const char *const SIZE[] = {"meta.n_params", NULL};
    static const char *const BYTES[] = {"meta.size", NULL};
    static const char *const QUANTIZATION[] = {"quantization", NULL};
    struct openai *openai = client->state;
    struct jv *root;
    struct http_response response;
    json_string(json, "endpoint", openai->is_completions ? "completions" : "chat");
    if (!get_models(openai, CLIENT_PROBE_TIMEOUT, &root, &response, NULL)) {
        const struct jv *entry = find_entry(root, model);
        const char *owner = jv_text(jv_get(entry, "owned_by"));
        const char *name = entry_name(entry);
        if (response.server[0])
            json_string(json, "server", response.server);
        json_optional_string(json, "owned_by", owner);
        json_optional_string(json, "served_model", name);
        write_first(json, "context_length", entry, CONTEXT);
        write_first(json, "parameters", entry, SIZE);
        write_first(json, "model_bytes", entry, BYTES);
        write_first(json, "quantization", entry, QUANTIZATION);
        message_copy_value(json, "root", jv_get(entry, "root"));
        describe_server(openai, owner, json);
    }
    jv_free(root);
}

const struct client_driver client_openai = {
    .name = "openai",
    .summary = "OpenAI-compatible servers: vLLM, SGLang, TGI, llama.cpp, LM Studio, OpenAI",
    .params = PARAMS,
    .default_url = "http://127.0.0.1:8000/v1",
    .available = endpoint_available,
    .open = openai_open,
    .close = endpoint_client_close,
    .health = openai_health,
    .models = openai_models,
    .prepare = openai_prepare,
    .describe = openai_describe,
    .tools = openai_tools,
    .ask = openai_ask,
    .score = openai_score,
};
