/* OpenAI-compatible servers: vLLM, SGLang, TGI, llama.cpp, LM Studio and OpenAI itself. */
#include <string.h>

#include "clients/client.h"
#include "clients/endpoint.h"
#include "core/clock.h"
#include "core/json.h"
#include "wire/completion.h"
#include "wire/responses.h"

struct openai {
    struct model_server server;
    bool is_completions;
    /* Detected from this server's errors. */
    bool rejects_usage_option;        /* does not accept stream_options */
    bool wants_max_completion_tokens; /* requires max_completion_tokens instead of max_tokens */
};

static const struct param_spec PARAMS[] = {
    {"endpoint", "chat|completions", "API endpoint (chat)"},
    {"api_key_env", "NAME",
     "environment variable that holds the API key (IPW_API_KEY, then OPENAI_API_KEY)"},
    {"header.*", "VALUE|@FILE|env:VARIABLE", "extra HTTP header: header.X-Name=value"},
    {NULL, NULL, NULL},
};

/* ---- opening ---- */

static enum err make_url(char *url, size_t size, const char *given, struct error *why)
{
    static const char *const TAILS[] = {"/chat/completions", "/completions", NULL};
    return model_server_url(url, size, given, TAILS, why);
}

static enum err configure(void *state, const struct client_config *config, struct error *why)
{
    static const char *const KINDS[] = {"chat", "completions", NULL};
    struct params_reader read = {config->params, why, ERR_OK};
    struct openai *openai = state;
    struct endpoint *endpoint = &openai->server.endpoint;
    openai->server.list_path = "/models";
    endpoint->start_hint = "start a server (llama-server -m FILE, vllm serve MODEL), or set its "
                           "address";
    endpoint->auth_hint = "set IPW_API_KEY, or name another variable with api_key_env";
    openai->is_completions = params_word(&read, "endpoint", KINDS, 0);
    if (read.err)
        return read.err;
    static const struct endpoint_key KEY = {"OPENAI_API_KEY", "Authorization", "Bearer "};
    enum err err = endpoint_add_key(endpoint, &KEY, config->params, why);
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
        (stream && !str_equal(stream, "true")))
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
        if (openai->wants_max_completion_tokens && str_equal(key, "max_tokens"))
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
    struct text body = {0};
    struct http_response http;
    write_body(&body, openai, request);
    enum err err = endpoint_ask(&openai->server.endpoint,
                                openai->is_completions ? "/completions" : "/chat/completions",
                                &body, request, RESPONSE_OPENAI, out, &http, why);
    *again = err && adapt(openai, &http, request->params);
    if (out->rejects_tools && !*again)
        openai->server.tools = CLIENT_TOOLS_NO;
    else if (out->calls.count > 0)
        openai->server.tools = CLIENT_TOOLS_YES;
    http_response_release(&http);
    text_release(&body);
    return err;
}

static enum err openai_ask(struct client *client, const struct client_request *request,
                           struct completion *out, struct error *why)
{
    static const char *const RESERVED[] = {"tools", "model", "messages", "prompt", NULL};
    const struct openai *openai = client->state;
    enum err err = endpoint_begin(request, RESERVED, out, why);
    if (!err && request->tool_count > 0 && openai->is_completions) {
        out->rejects_tools = true;
        err = err_set(why, ERR_UNSUPPORTED, "no tools: endpoint=completions takes none");
    }
    const char *n = params_get(request->params, "n");
    if (!err && n && !str_equal(n, "1"))
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
static void score_params(const struct params *given, struct params *out)
{
    static const char *const WORDS[][2] = {{"echo", "true"},
                                           {"logprobs", "1"},
                                           {"max_tokens", "1"},
                                           {"temperature", "0"},
                                           {"stream", "false"}};
    *out = (struct params){0};
    params_copy(out, given);
    for (size_t i = 0; i < COUNT_OF(WORDS); i++)
        params_set(out, WORDS[i][0], WORDS[i][1]);
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
    score_params(request->params, &params);
    scoring.params = &params;
    scoring.wants_score = openai->is_completions = true;
    enum err err = openai_ask(client, &scoring, out, &cause);
    openai->is_completions = is_completions;
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
                    openai->server.endpoint.shown);
    text_clear(&out->content); /* the echo */
    out->arrivals.count = 0;
    out->first_token = out->last_token = 0;
    out->finish_reason[0] = '\0'; /* that of the single generated token */
    return err;
}

/* ---- the server ---- */

static enum err openai_prepare(struct client *client, const char *model, nanos timeout,
                               struct error *why)
{
    nanos began = clock_now();
    enum err err = model_server_check(client->state, model, client_probe_timeout(timeout), why);
    return err ? err : client_warm_up(client, model, "max_tokens", began, timeout, why);
}

static enum client_tools openai_tools(struct client *client, const char *model)
{
    const struct openai *openai = client->state;
    return openai->is_completions ? CLIENT_TOOLS_NO : model_server_tools(client, model);
}

static void openai_describe(struct client *client, const char *model, struct json *json)
{
    struct openai *openai = client->state;
    json_string(json, "endpoint", openai->is_completions ? "completions" : "chat");
    model_server_describe(&openai->server, model, json);
}

const struct client_driver client_openai = {
    .name = "openai",
    .summary = "OpenAI-compatible servers: vLLM, SGLang, TGI, llama.cpp, LM Studio, OpenAI",
    .params = PARAMS,
    .default_url = "http://127.0.0.1:8000/v1",
    .available = endpoint_available,
    .open = openai_open,
    .close = endpoint_client_close,
    .health = model_server_health,
    .models = model_server_models,
    .prepare = openai_prepare,
    .describe = openai_describe,
    .tools = openai_tools,
    .ask = openai_ask,
    .score = openai_score,
};
