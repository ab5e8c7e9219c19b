/* The list of models of a server, and what else it reports outside of completions: its health, version and the
 * capabilities of the model. */
#include <ctype.h>
#include <string.h>

#include "clients/endpoint.h"
#include "core/json.h"
#include "core/log.h"
#include "port/json_read.h"
#include "wire/completion.h"

/* ---- the address ---- */

/* Whether the path has a component such as "v1" or "v1beta". */
static bool has_version(const char *path)
{
    for (const char *c = path; (c = strchr(c, '/')); c++)
        if (c[1] == 'v' && isdigit((unsigned char)c[2]))
            return true;
    return false;
}

enum err model_server_url(char *url, size_t size, const char *given, const char *const *tails,
                          struct error *why)
{
    enum err err = endpoint_url(url, size, given, why);
    if (err)
        return err;
    for (; *tails; tails++) {
        size_t length = strlen(url), tail = strlen(*tails);
        if (length > tail && str_equal(url + length - tail, *tails))
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
    const char *name = jv_get_text(entry, "id");
    return name ? name : jv_get_text(entry, "name");
}

static enum err get_models(struct model_server *server, nanos timeout, struct jv **out,
                           struct http_response *response, struct error *why)
{
    char url[640];
    chars_format(url, "%s%s", server->endpoint.url, server->list_path);
    return endpoint_get(&server->endpoint, url, timeout, out, response, why);
}

/* A document outside the versioned path: llama.cpp's /health, vLLM's /version. */
static enum err get_unversioned(struct model_server *server, const char *path, nanos timeout,
                                struct jv **out, struct http_response *response, struct error *why)
{
    char url[640];
    size_t root = strlen(server->endpoint.url);
    if (root > 3 && str_equal(server->endpoint.url + root - 3, "/v1"))
        root -= 3;
    chars_format(url, "%.*s%s", (int)root, server->endpoint.url, path);
    return endpoint_get(&server->endpoint, url, timeout, out, response, why);
}

static bool lacks_endpoint(int status)
{
    return status == 404 || status == 405 || status == 501;
}

enum err model_server_health(struct client *client, struct error *why)
{
    struct model_server *server = client->state;
    struct jv *root;
    struct http_response response;
    nanos timeout = client_probe_timeout(client->probe_timeout);
    enum err err = get_models(server, timeout, &root, &response, why);
    jv_free(root);
    if (!lacks_endpoint(response.status))
        return err;
    err = get_unversioned(server, "/health", timeout, &root, &response, why);
    jv_free(root);
    return response.status >= 200 && response.status < 300 ? ERR_OK : err;
}

static void list_models(const struct jv *root, struct client_models *out)
{
    JV_EACH (e, jv_first(find_list(root))) {
        const char *name = entry_name(e);
        if (name)
            client_models_add(out, name);
    }
}

enum err model_server_models(struct client *client, struct client_models *out, struct error *why)
{
    struct jv *root;
    enum err err = get_models(client->state, CLIENT_PROBE_TIMEOUT, &root, NULL, why);
    if (!err)
        list_models(root, out);
    jv_free(root);
    return err;
}

enum err model_server_check(struct model_server *server, const char *model, nanos timeout,
                            struct error *why)
{
    struct jv *root;
    struct http_response response;
    struct client_models models = {0};
    enum err err = get_models(server, timeout, &root, &response, why);
    if (err && lacks_endpoint(response.status))
        return ERR_OK;
    if (!err)
        list_models(root, &models);
    bool is_served = !err && str_is_listed(model, (const char *const *)models.names, models.count);
    if (!err && models.count == 1 && !is_served)
        log_warn("%s lists only '%s'; requesting '%s' anyway", server->endpoint.shown,
                 models.names[0], model);
    else if (!err && models.count > 1 && !is_served)
        err = endpoint_missing_model(&server->endpoint, model, &models, "", why);
    client_models_release(&models);
    jv_free(root);
    return err;
}

enum client_tools model_server_tools(struct client *client, const char *model)
{
    struct model_server *server = client->state;
    struct jv *root = NULL;
    (void)model;
    if (server->tools == CLIENT_TOOLS_UNKNOWN &&
        !get_unversioned(server, "/props", client_probe_timeout(client->probe_timeout), &root, NULL,
                         NULL)) {
        const struct jv *supports = jv_path(root, "chat_template_caps.supports_tools");
        if (jv_is_bool(supports))
            server->tools = jv_bool(supports, false) ? CLIENT_TOOLS_YES : CLIENT_TOOLS_NO;
    }
    jv_free(root);
    return server->tools;
}

/* ---- describe ---- */

/* The entry of the model, or the only entry. */
static const struct jv *find_entry(const struct jv *root, const char *model)
{
    const struct jv *list = find_list(root);
    JV_EACH (e, jv_first(list)) {
        const char *name = entry_name(e);
        if (name && str_equal(name, model))
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

static void describe_server(struct model_server *server, const char *owner, struct json *json)
{
    bool is_llama = owner && str_equal(owner, "llamacpp");
    bool is_vllm = owner && str_equal(owner, "vllm");
    struct jv *root = NULL;
    if (!is_llama && !is_vllm)
        return;
    if (!get_unversioned(server, is_llama ? "/props" : "/version", CLIENT_PROBE_TIMEOUT, &root,
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

void model_server_describe(struct model_server *server, const char *model, struct json *json)
{
    static const char *const CONTEXT[] = {"max_model_len",
                                          "meta.n_ctx_train",
                                          "context_length",
                                          "max_context_length",
                                          "context_window",
                                          "max_input_tokens",
                                          NULL};
    static const char *const SIZE[] = {"meta.n_params", NULL};
    static const char *const BYTES[] = {"meta.size", NULL};
    static const char *const QUANTIZATION[] = {"quantization", NULL};
    struct jv *root;
    struct http_response response;
    if (!get_models(server, CLIENT_PROBE_TIMEOUT, &root, &response, NULL)) {
        const struct jv *entry = find_entry(root, model);
        const char *owner = jv_get_text(entry, "owned_by");
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
        describe_server(server, owner, json);
    }
    jv_free(root);
}
