/* Anthropic's Messages API: Anthropic itself, and vLLM, llama.cpp, Ollama, LM Studio and LiteLLM, which also serve it.
 *
 * Parameters are sent as they are, except for those that have another name here.  A limit of the output is required:
 * without max_tokens, a default is sent. */
#include <string.h>

#include "clients/client.h"
#include "clients/endpoint.h"
#include "core/clock.h"
#include "core/json.h"
#include "port/json_read.h"
#include "wire/completion.h"

enum { MAX_TOKENS_DEFAULT = 4096 };

static const struct param_spec PARAMS[] = {
    {"api_key_env", "NAME",
     "environment variable that holds the API key (IPW_API_KEY, then ANTHROPIC_API_KEY)"},
    {"header.*", "VALUE|@FILE|env:VARIABLE", "extra HTTP header: header.X-Name=value"},
    {NULL, NULL, NULL},
};

/* ---- opening ---- */

static enum err make_url(char *url, size_t size, const char *given, struct error *why)
{
    static const char *const TAILS[] = {"/messages", NULL};
    return model_server_url(url, size, given, TAILS, why);
}

static enum err configure(void *state, const struct client_config *config, struct error *why)
{
    static const struct endpoint_key KEY = {"ANTHROPIC_API_KEY", "x-api-key", ""};
    struct model_server *server = state;
    struct endpoint *endpoint = &server->endpoint;
    server->list_path = "/models?limit=1000"; /* a page has 20 without it */
    endpoint->start_hint = "start a server (llama-server -m FILE, vllm serve MODEL), or set its "
                           "address, such as https://api.anthropic.com";
    endpoint->auth_hint =
        "set IPW_API_KEY or ANTHROPIC_API_KEY, or name another variable with api_key_env";
    /* Later versions reject temperature and other sampling parameters; other servers ignore it. */
    params_set(&endpoint->headers, "anthropic-version", "2023-06-01");
    enum err err = endpoint_add_key(endpoint, &KEY, config->params, why);
    return err ? err : endpoint_headers(endpoint, config->params, why);
}

static enum err anthropic_open(const struct client_config *config, struct client *out,
                               struct error *why)
{
    static const struct endpoint_client KIND = {sizeof(struct model_server), make_url, configure};
    return endpoint_client_open(&KIND, config, out, why);
}

/* ---- requests ---- */

/* "stop" of the other APIs, one string or an array of them. */
static void write_stop(struct json *json, const char *value)
{
    if (*value == '[') {
        message_write_param(json, "stop_sequences", value);
        return;
    }
    json_array(json, "stop_sequences");
    if (*value == '"')
        message_write_param(json, NULL, value);
    else
        json_string(json, NULL, value);
    json_array_end(json);
}

static void write_body(struct text *body, const struct client_request *request)
{
    struct json json;
    struct client_chat space;
    const struct params *params = request->params;
    json_init(&json, body, false);
    json_object(&json, NULL);
    json_string(&json, "model", request->model);
    if (!params_get(params, "max_tokens"))
        json_integer(&json, "max_tokens", MAX_TOKENS_DEFAULT);
    chat_write(&json, CHAT_ANTHROPIC, client_chat(request, &space));
    chat_write_tools(&json, CHAT_ANTHROPIC, request->tools, request->tool_count);
    if (!params_get(params, "stream"))
        json_bool(&json, "stream", true);
    for (size_t i = 0; params && i < params->count; i++) {
        const struct param *p = &params->items[i];
        if (str_equal(p->key, "stop"))
            write_stop(&json, p->value);
        else
            message_write_param(&json, p->key, p->value);
    }
    json_object_end(&json);
}

static enum err anthropic_ask(struct client *client, const struct client_request *request,
                              struct completion *out, struct error *why)
{
    static const char *const RESERVED[] = {"tools", "model", "messages", "system", NULL};
    struct model_server *server = client->state;
    enum err err = endpoint_begin(request, RESERVED, out, why);
    if (err)
        return err;
    struct text body = {0};
    write_body(&body, request);
    err = endpoint_ask(&server->endpoint, "/messages", &body, request, RESPONSE_ANTHROPIC, out,
                       NULL, why);
    text_release(&body);
    completion_check_counts(out, client_prompt_bytes(request));
    if (out->rejects_tools)
        server->tools = CLIENT_TOOLS_NO;
    else if (out->calls.count > 0)
        server->tools = CLIENT_TOOLS_YES;
    if (!err)
        out->retryable = false;
    return err;
}

/* ---- the server ---- */

/* An alias, such as a name without its date, is not listed, but the server resolves it. */
static bool is_alias(struct model_server *server, const char *model, nanos timeout)
{
    static const char SAFE[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:@";
    char url[1024];
    struct jv *root = NULL;
    if (!*model || model[strspn(model, SAFE)] ||
        !chars_format(url, "%s/models/%s", server->endpoint.url, model))
        return false;
    bool is_one = endpoint_get(&server->endpoint, url, timeout, &root, NULL, NULL) == ERR_OK &&
                  jv_get_text(root, "id");
    jv_free(root);
    return is_one;
}

static enum err anthropic_prepare(struct client *client, const char *model, nanos timeout,
                                  struct error *why)
{
    nanos began = clock_now(), probe = client_probe_timeout(timeout);
    enum err err = model_server_check(client->state, model, probe, why);
    if (err == ERR_NOT_FOUND && is_alias(client->state, model, probe))
        err = ERR_OK;
    return err ? err : client_warm_up(client, model, "max_tokens", began, timeout, why);
}

static void anthropic_describe(struct client *client, const char *model, struct json *json)
{
    json_string(json, "endpoint", "messages");
    model_server_describe(client->state, model, json);
}

const struct client_driver client_anthropic = {
    .name = "anthropic",
    .summary = "Anthropic's Messages API: vLLM, llama.cpp, Ollama, LM Studio, Anthropic",
    .params = PARAMS,
    .default_url = "http://127.0.0.1:8000/v1",
    .available = endpoint_available,
    .open = anthropic_open,
    .close = endpoint_client_close,
    .health = model_server_health,
    .models = model_server_models,
    .prepare = anthropic_prepare,
    .describe = anthropic_describe,
    .tools = model_server_tools,
    .ask = anthropic_ask,
};
