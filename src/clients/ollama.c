/* Ollama through its native API, which reports durations that its OpenAI-compatible one omits. */
#include <string.h>

#include "clients/client.h"
#include "clients/endpoint.h"
#include "core/clock.h"
#include "core/json.h"
#include "port/json_read.h"
#include "wire/completion.h"
#include "wire/responses.h"

struct ollama {
    struct endpoint endpoint;
    bool is_chat;
};

static const struct param_spec PARAMS[] = {
    {"endpoint", "generate|chat", "API endpoint (generate)"},
    {"header.*", "VALUE|@FILE|env:VARIABLE", "extra HTTP header: header.X-Name=value"},
    {NULL, NULL, NULL},
};

/* ---- opening ---- */

/* The address without "/api", which is part of every path below. */
static enum err make_url(char *url, size_t size, const char *given, struct error *why)
{
    enum err err = endpoint_url(url, size, given, why);
    size_t length = err ? 0 : strlen(url);
    if (length > 4 && str_equal(url + length - 4, "/api"))
        url[length - 4] = '\0';
    return err;
}

static enum err configure(void *state, const struct client_config *config, struct error *why)
{
    static const char *const KINDS[] = {"generate", "chat", NULL};
    struct params_reader read = {config->params, why, ERR_OK};
    struct ollama *ollama = state;
    struct endpoint *endpoint = &ollama->endpoint;
    endpoint->start_hint = "start it with: ollama serve";
    endpoint->auth_hint = "set the API key with header.Authorization";
    ollama->is_chat = params_word(&read, "endpoint", KINDS, 0);
    if (read.err)
        return read.err;
    return endpoint_headers(endpoint, config->params, why);
}

static enum err ollama_open(const struct client_config *config, struct client *out,
                            struct error *why)
{
    static const struct endpoint_client KIND = {sizeof(struct ollama), make_url, configure};
    return endpoint_client_open(&KIND, config, out, why);
}

/* ---- requests ---- */

/* Parameters outside "options". */
static bool is_top_level(const char *key)
{
    static const char *const KEYS[] = {"keep_alive", "format",   "think",        "stream",
                                       "raw",        "template", "suffix",       "images",
                                       "context",    "tools",    "top_logprobs", "logprobs"};
    return STR_FIND(key, KEYS);
}

/* /api/generate accepts only a system message and a prompt; anything else needs /api/chat. */
static bool needs_chat(const struct ollama *ollama, const struct client_request *request)
{
    struct client_chat space;
    const struct chat *chat = client_chat(request, &space);
    const struct chat_message *last = chat->count ? &chat->messages[chat->count - 1] : NULL;
    bool is_prompt =
        last && last->role == CHAT_USER &&
        (chat->count == 1 || (chat->count == 2 && chat->messages[0].role == CHAT_SYSTEM));
    return ollama->is_chat || !is_prompt || request->tool_count > 0;
}

static void write_prompt(struct json *json, const struct ollama *ollama,
                         const struct client_request *request)
{
    struct client_chat space;
    const struct chat *chat = client_chat(request, &space);
    if (needs_chat(ollama, request)) {
        chat_write(json, CHAT_OLLAMA, chat);
        chat_write_tools(json, CHAT_OLLAMA, request->tools, request->tool_count);
        return;
    }
    if (chat->count > 1)
        json_string(json, "system", chat->messages[0].text);
    json_string(json, "prompt", chat->messages[chat->count - 1].text);
}

static void write_params(struct json *json, const struct params *params)
{
    if (!params_get(params, "stream"))
        json_bool(json, "stream", true);
    size_t options = 0;
    for (size_t i = 0; params && i < params->count; i++) {
        const struct param *p = &params->items[i];
        if (is_top_level(p->key))
            message_write_param(json, p->key, p->value);
        else
            options++;
    }
    if (options == 0)
        return;
    json_object(json, "options");
    for (size_t i = 0; i < params->count; i++) {
        const struct param *p = &params->items[i];
        bool is_limit = str_equal(p->key, "max_tokens");
        if (is_limit && params_get(params, "num_predict"))
            continue; /* the native name takes precedence */
        if (!is_top_level(p->key))
            message_write_param(json, is_limit ? "num_predict" : p->key, p->value);
    }
    json_object_end(json);
}

static void write_body(struct text *body, const struct ollama *ollama,
                       const struct client_request *request)
{
    struct json json;
    json_init(&json, body, false);
    json_object(&json, NULL);
    json_string(&json, "model", request->model);
    write_prompt(&json, ollama, request);
    write_params(&json, request->params);
    json_object_end(&json);
}

static enum err ollama_ask(struct client *client, const struct client_request *request,
                           struct completion *out, struct error *why)
{
    static const char *const RESERVED[] = {"tools",  "model",   "prompt", "messages",
                                           "system", "options", NULL};
    struct ollama *ollama = client->state;
    enum err err = endpoint_begin(request, RESERVED, out, why);
    if (err)
        return err;
    struct text body = {0};
    write_body(&body, ollama, request);
    err =
        endpoint_ask(&ollama->endpoint, needs_chat(ollama, request) ? "/api/chat" : "/api/generate",
                     &body, request, RESPONSE_OLLAMA, out, NULL, why);
    text_release(&body);
    completion_check_counts(out, client_prompt_bytes(request));
    if (!err)
        out->retryable = false;
    return err;
}

/* ---- health and models ---- */

static enum err get(struct ollama *ollama, const char *path, nanos timeout, struct jv **out,
                    struct error *why)
{
    char url[640];
    chars_format(url, "%s%s", ollama->endpoint.url, path);
    return endpoint_get(&ollama->endpoint, url, timeout, out, NULL, why);
}

static enum err ollama_health(struct client *client, struct error *why)
{
    struct jv *root;
    enum err err =
        get(client->state, "/api/version", client_probe_timeout(client->probe_timeout), &root, why);
    jv_free(root);
    return err;
}

static const char *entry_name(const struct jv *entry)
{
    const char *name = jv_get_text(entry, "name");
    return name ? name : jv_get_text(entry, "model");
}

static enum err list_models(struct ollama *ollama, nanos timeout, struct client_models *out,
                            struct error *why)
{
    struct jv *root;
    enum err err = get(ollama, "/api/tags", timeout, &root, why);
    for (const struct jv *e = jv_first(jv_get(root, "models")); e && !err; e = jv_next(e)) {
        const char *name = entry_name(e);
        if (name)
            client_models_add(out, name);
    }
    jv_free(root);
    return err;
}

static enum err ollama_models(struct client *client, struct client_models *out, struct error *why)
{
    return list_models(client->state, CLIENT_PROBE_TIMEOUT, out, why);
}

/* A name without a tag means the tag "latest"; case is ignored, as Ollama does. */
static bool is_same_model(const char *listed, const char *asked)
{
    if (str_equal_nocase(listed, asked))
        return true;
    char full[256];
    const char *slash = strrchr(asked, '/');
    return !strchr(slash ? slash : asked, ':') && chars_format(full, "%s:latest", asked) &&
           str_equal_nocase(listed, full);
}

static enum err check_model(struct ollama *ollama, const char *model, nanos timeout,
                            struct error *why)
{
    struct client_models models = {0};
    bool is_listed = false;
    enum err err = list_models(ollama, timeout, &models, why);
    for (size_t i = 0; i < models.count; i++)
        is_listed = is_listed || is_same_model(models.names[i], model);
    if (!err && !is_listed) {
        char advice[128];
        chars_format(advice, "(download it with: ollama pull %.80s)", model);
        err = endpoint_missing_model(&ollama->endpoint, model, &models, advice, why);
    }
    client_models_release(&models);
    return err;
}

static enum err ollama_prepare(struct client *client, const char *model, nanos timeout,
                               struct error *why)
{
    nanos began = clock_now();
    enum err err = check_model(client->state, model, client_probe_timeout(timeout), why);
    return err ? err : client_warm_up(client, model, "num_predict", began, timeout, why);
}

/* ---- describe ---- */

static enum err append_document(void *context, const char *bytes, size_t length, nanos t)
{
    (void)t;
    enum { LIMIT = 32 * 1024 * 1024 }; /* it may include a vocabulary */
    struct text *document = context;
    if (length > LIMIT - document->length)
        return ERR_BAD_VALUE;
    text_add_bytes(document, bytes, length);
    return ERR_OK;
}

/* POST /api/show; NULL on failure. */
static struct jv *show(struct ollama *ollama, const char *model)
{
    struct text body = {0}, document = {0};
    struct json json;
    json_init(&json, &body, false);
    json_object(&json, NULL);
    json_string(&json, "model", model);
    json_object_end(&json);
    const struct client_request request = {.model = model, .timeout = CLIENT_PROBE_TIMEOUT};
    struct completion completion;
    struct http_response response;
    struct jv *root = NULL;
    completion_init(&completion);
    enum err err = endpoint_post(&ollama->endpoint, "/api/show", &body, &request, append_document,
                                 &document, &completion, &response, NULL);
    if (!err)
        err = jv_parse(text_get(&document), document.length, &root, NULL);
    http_response_release(&response);
    completion_release(&completion);
    text_release(&document);
    text_release(&body);
    return err ? NULL : root;
}

static void describe_model(struct ollama *ollama, const char *model, struct json *json)
{
    struct jv *root = show(ollama, model);
    const struct jv *details = jv_get(root, "details");
    const struct jv *info = jv_get(root, "model_info");
    message_copy_value(json, "model_format", jv_get(details, "format"));
    message_copy_value(json, "family", jv_get(details, "family"));
    message_copy_value(json, "parameter_size", jv_get(details, "parameter_size"));
    message_copy_value(json, "quantization", jv_get(details, "quantization_level"));
    /* These keys contain dots, so jv_path does not apply. */
    message_copy_value(json, "parameters", jv_get(info, "general.parameter_count"));
    const char *architecture = jv_get_text(info, "general.architecture");
    char key[128];
    if (architecture && chars_format(key, "%s.context_length", architecture))
        message_copy_value(json, "context_length", jv_get(info, key));
    jv_free(root);
}

/* Uses the server's list of capabilities; older servers have none. */
static enum client_tools ollama_tools(struct client *client, const char *model)
{
    struct jv *root = show(client->state, model);
    const struct jv *list = jv_get(root, "capabilities");
    enum client_tools found = jv_count(list) ? CLIENT_TOOLS_NO : CLIENT_TOOLS_UNKNOWN;
    JV_EACH (c, jv_first(list))
        if (jv_text(c) && str_equal(jv_text(c), "tools"))
            found = CLIENT_TOOLS_YES;
    jv_free(root);
    return found;
}

/* Share of the loaded model in GPU memory, which determines where energy is spent. */
static void describe_memory(struct ollama *ollama, const char *model, struct json *json)
{
    struct jv *root;
    if (get(ollama, "/api/ps", CLIENT_PROBE_TIMEOUT, &root, NULL))
        return;
    JV_EACH (e, jv_first(jv_get(root, "models"))) {
        const char *name = entry_name(e);
        if (!name || !is_same_model(name, model))
            continue;
        message_copy_value(json, "model_bytes", jv_get(e, "size"));
        message_copy_value(json, "gpu_bytes", jv_get(e, "size_vram"));
        message_copy_value(json, "context_used", jv_get(e, "context_length"));
        message_copy_value(json, "digest", jv_get(e, "digest"));
        break;
    }
    jv_free(root);
}

static void ollama_describe(struct client *client, const char *model, struct json *json)
{
    struct ollama *ollama = client->state;
    struct jv *root;
    json_string(json, "server", "ollama");
    json_string(json, "endpoint", ollama->is_chat ? "chat" : "generate");
    if (!get(ollama, "/api/version", CLIENT_PROBE_TIMEOUT, &root, NULL))
        message_copy_value(json, "server_version", jv_get(root, "version"));
    jv_free(root);
    describe_model(ollama, model, json);
    describe_memory(ollama, model, json);
}

const struct client_driver client_ollama = {
    .name = "ollama",
    .summary = "Ollama, native API",
    .params = PARAMS,
    .default_url = "http://127.0.0.1:11434",
    .available = endpoint_available,
    .open = ollama_open,
    .close = endpoint_client_close,
    .health = ollama_health,
    .models = ollama_models,
    .prepare = ollama_prepare,
    .describe = ollama_describe,
    .tools = ollama_tools,
    .ask = ollama_ask,
};
