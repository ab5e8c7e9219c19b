/* HTTP for the clients that use a server: URLs, status codes as errors, GET and POST. */
#include "clients/endpoint.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/registry.h"
#include "core/secret.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/json_read.h"
#include "port/url.h"
#include "wire/completion.h"

enum {
    DOCUMENT_LIMIT = 16 * 1024 * 1024, /* ample for a list of hundreds of models */
    HEADER_LIMIT = 64 * 1024,
};

enum err endpoint_available(const struct params *params, struct error *why)
{
    (void)params;
    return http_available(why);
}

/* ---- the address ---- */

enum err endpoint_url(char *url, size_t size, const char *given, struct error *why)
{
    char copy[512];
    if (!chars_copy(copy, given))
        return err_set(why, ERR_USAGE, "the address is longer than %zu bytes", sizeof copy - 1);
    char *trimmed = str_trim(copy);
    for (size_t length = strlen(trimmed); length > 0 && trimmed[length - 1] == '/';)
        trimmed[--length] = '\0';
    const char *scheme = strstr(trimmed, "://");
    bool fits = str_format(url, size, "%s%s", scheme ? "" : "http://", trimmed);
    struct url parsed;
    if (!*trimmed || strpbrk(trimmed, " \t\r\n?#") || !fits)
        return err_set(why, ERR_USAGE, "'%.80s' is not an address: expected http://HOST:PORT",
                       strchr(given, '@') ? "it" : given);
    return url_read(url, &parsed, why);
}

static enum err endpoint_open(struct endpoint *endpoint, const char *url, struct error *why)
{
    *endpoint =
        (struct endpoint){.start_hint = "is the server running?", .auth_hint = "set the API key"};
    chars_copy(endpoint->url, url);
    url_hide_login(url, endpoint->shown, sizeof endpoint->shown);
    return http_open(&endpoint->http, why);
}

static void endpoint_close(struct endpoint *endpoint)
{
    http_close(endpoint->http);
    params_release(&endpoint->headers);
    *endpoint = (struct endpoint){0};
}

void endpoint_client_close(struct client *client)
{
    endpoint_close(client->state);
    free(client->state);
}

enum err endpoint_client_open(const struct endpoint_client *kind,
                              const struct client_config *config, struct client *out,
                              struct error *why)
{
    char url[sizeof((struct endpoint *)0)->url];
    const char *given = config->base_url ? config->base_url : out->driver->default_url;
    enum err err = kind->make_url(url, sizeof url, given, why);
    if (err)
        return err;
    struct endpoint *endpoint = out->state = xcalloc(1, kind->state_size);
    out->headers = &endpoint->headers;
    err = endpoint_open(endpoint, url, why);
    if (!err)
        err = kind->configure(endpoint, config, why);
    if (err)
        endpoint_client_close(out);
    else
        chars_copy(out->base_url, endpoint->shown);
    return err;
}

/* "@FILE" reads a file and "env:NAME" an environment variable, so that a secret need not be an argument, which every
 * user of the machine can read; any other value is used as is. */
static enum err find_value(const char *key, const char *given, struct text *out, struct error *why)
{
    const char *value = given;
    if (given[0] == '@') {
        enum err err = file_read(given + 1, HEADER_LIMIT, out, why);
        if (err)
            return err;
    } else {
        if (str_starts(given, "env:"))
            value = getenv(given + strlen("env:"));
        if (!value)
            return err_set(why, ERR_USAGE, "%.60s: the environment variable %.60s is not set", key,
                           given + strlen("env:"));
        text_add(out, value);
    }
    char *trimmed = out->length ? str_trim(out->bytes) : "";
    if (!*trimmed && *given)
        return err_set(why, ERR_USAGE, "%.60s: %.80s is empty", key, given);
    struct text value_alone = {0};
    text_add(&value_alone, trimmed);
    text_release(out);
    *out = value_alone;
    return ERR_OK;
}

enum err endpoint_headers(struct endpoint *endpoint, const struct params *params, struct error *why)
{
    static const char PREFIX[] = "header.";
    params_set(&endpoint->headers, "Content-Type", "application/json");
    for (size_t i = 0; params && i < params->count; i++) {
        const struct param *p = &params->items[i];
        struct text value = {0};
        if (!str_starts(p->key, PREFIX))
            continue;
        enum err err = find_value(p->key, p->value, &value, why);
        if (!err) {
            params_set(&endpoint->headers, p->key + strlen(PREFIX), text_get(&value));
            secret_add_header(text_get(&value));
        }
        text_release(&value);
        if (err)
            return err;
    }
    return ERR_OK;
}

enum err endpoint_add_key(struct endpoint *endpoint, const struct endpoint_key *key,
                          const struct params *params, struct error *why)
{
    const char *name = params_get(params, "api_key_env");
    const char *value = name ? getenv(name) : getenv("IPW_API_KEY");
    if (name && (!value || !*value))
        return err_set(why, ERR_USAGE, "the environment variable %s (api_key_env) is not set",
                       name);
    if (!value || !*value)
        value = getenv(key->variable);
    if (!value || !*value)
        return ERR_OK;
    struct text line = {0};
    secret_add(value);
    text_addf(&line, "%s%s", key->prefix, value);
    str_trim(line.bytes); /* a key read from a file often ends with a newline */
    params_set(&endpoint->headers, key->header, line.bytes);
    text_release(&line);
    return ERR_OK;
}

/* ---- status codes ---- */

static enum err error_of_status(int status)
{
    switch (status) {
    case 401:
    case 403:
        return ERR_DENIED;
    case 404:
    case 410:
        return ERR_NOT_FOUND;
    case 408:
    case 504:
        return ERR_TIMEOUT;
    case 429:
    case 503:
    case 529: /* "overloaded", used by several services */
        return ERR_BUSY;
    case 405:
    case 501:
        return ERR_UNSUPPORTED;
    default:
        return status >= 500 ? ERR_IO : ERR_BAD_VALUE;
    }
}

static bool is_retryable(int status)
{
    return status == 408 || status == 425 || status == 429 ||
           (status >= 500 && status != 501 && status != 505);
}

/* The error message in a response body, as one line; "" for an HTML page. */
static void read_message(char *message, size_t size, const struct text *body)
{
    struct jv *tree = NULL;
    const char *text = text_get(body);
    size_t length = body->length;
    message[0] = '\0';
    if (length > 0 && !jv_parse(text, length, &tree, NULL)) {
        text = message_error(tree);
        length = text ? strlen(text) : 0;
    }
    if (length > 0 && *text != '<')
        secret_one_line(message, size, text, length);
    jv_free(tree);
}

/* `out` may be NULL. */
static enum err status_error(const struct endpoint *endpoint, const struct http_response *response,
                             struct completion *out, struct error *why)
{
    int status = response->status;
    char message[180];
    read_message(message, sizeof message, &response->error_body);
    if (out) {
        out->retryable = is_retryable(status);
        out->retry_after_s = response->retry_after_s;
    }
    const char *advice = "";
    if (status == 401 || status == 403)
        advice = endpoint->auth_hint;
    else if (status >= 300 && status < 400)
        advice = "the server redirects: use its new address";
    return err_set(why, error_of_status(status), "%.100s returned status %d%s%s%s%s",
                   endpoint->shown, status, *message ? ": " : "", message, *advice ? ": " : "",
                   advice);
}

/* Whether an error says that tools are not supported, rather than that one call of the conversation was invalid.
 * Ollama: "does not support tools"; llama.cpp: "tools param requires --jinja flag"; vLLM: "tool choice requires
 * --enable-auto-tool-choice"; strict servers: an unknown, extra or unexpected field "tools". */
static bool is_tool_refusal(int status, const char *body)
{
    static const char *const SIGNS[] = {"support", "requires",   "jinja",         "enable",
                                        "unknown", "unexpected", "not permitted", "unrecognized"};
    bool is_refusal = status == 400 || status == 422 || status == 500 || status == 501;
    if (!is_refusal || !str_contains_nocase(body, "tool"))
        return false;
    for (size_t i = 0; i < COUNT_OF(SIGNS); i++)
        if (str_contains_nocase(body, SIGNS[i]))
            return true;
    return false;
}

/* Maps a status other than 2xx to an error, with the server's message if there is one; sets retryable and retry_after_s
 * of *out.  If the request has tools and the message says that they are not supported: ERR_UNSUPPORTED with
 * out->rejects_tools. */
static enum err reply_error(const struct endpoint *endpoint, const struct client_request *request,
                            const struct http_response *response, struct completion *out,
                            struct error *why)
{
    struct error cause = {0};
    enum err err = status_error(endpoint, response, out, &cause);
    if (request->tool_count > 0 &&
        is_tool_refusal(response->status, text_get(&response->error_body))) {
        out->rejects_tools = true;
        out->retryable = false;
        return err_set(why, ERR_UNSUPPORTED, "no tools: %s", cause.text);
    }
    return err_set(why, err, "%s", cause.text);
}

/* A transport error; if no connection was made, with a hint how to start the service. */
static enum err transport_error(const struct endpoint *endpoint, enum err err,
                                const struct http_response *response, const struct error *cause,
                                struct error *why)
{
    if (err == ERR_LOST && !response->connected)
        return err_set(why, err, "cannot reach %.120s: %s", endpoint->shown, endpoint->start_hint);
    return err_set(why, err, "%s", cause->text);
}

/* ---- requests ---- */

static enum err parse_document(const struct endpoint *endpoint, const char *url,
                               const struct text *body, struct jv **out, struct error *why)
{
    struct error cause;
    if (!jv_parse(text_get(body), body->length, out, &cause))
        return ERR_OK;
    return err_set(why, ERR_BAD_VALUE, "%.100s: the response to GET %.100s is not JSON (%.60s)",
                   endpoint->shown, strrchr(url, '/'), cause.text);
}

enum err endpoint_get(struct endpoint *endpoint, const char *url, nanos timeout, struct jv **out,
                      struct http_response *response, struct error *why)
{
    struct text body = {0};
    struct http_response own = {0};
    struct http_response *answer = response ? response : &own;
    struct error cause;
    *out = NULL;
    enum err err = http_fetch(endpoint->http, url, &endpoint->headers, timeout, DOCUMENT_LIMIT,
                              &body, answer, &cause);
    if (err)
        err = transport_error(endpoint, err, answer, &cause, why);
    else if (answer->status < 200 || answer->status > 299)
        err = status_error(endpoint, answer, NULL, why);
    else
        err = parse_document(endpoint, url, &body, out, why);
    text_release(&body);
    http_response_release(answer);
    return err;
}

enum err endpoint_post(struct endpoint *endpoint, const char *path, const struct text *body,
                       const struct client_request *request,
                       enum err (*feed)(void *context, const char *bytes, size_t length, nanos t),
                       void *context, struct completion *out, struct http_response *response,
                       struct error *why)
{
    char url[640];
    chars_format(url, "%s%s", endpoint->url, path);
    const struct http_request post = {
        .method = "POST",
        .url = url,
        .headers = &endpoint->headers,
        .body = text_get(body),
        .body_length = body->length,
        .timeout = request->timeout,
        .cancel = request->cancel,
        .take = feed,
        .context = context,
    };
    struct error cause = {0};
    enum err err = http_perform(endpoint->http, &post, response, &cause);
    out->sent = response->sent;
    out->done = response->done;
    out->status = response->status;
    if (err && cause.text[0]) { /* otherwise feed has set *why */
        transport_error(endpoint, err, response, &cause, why);
        out->retryable = err == ERR_LOST || err == ERR_TIMEOUT || err == ERR_TOO_MANY_FILES;
    }
    return err;
}

enum err endpoint_begin(const struct client_request *request, const char *const *reserved,
                        struct completion *out, struct error *why)
{
    completion_init(out);
    out->sent = out->done = clock_now();
    return message_check_reserved(request->params, reserved + (request->tool_count == 0), why);
}

enum err endpoint_ask(struct endpoint *endpoint, const char *path, const struct text *body,
                      const struct client_request *request, enum response_kind kind,
                      struct completion *out, struct http_response *response, struct error *why)
{
    const struct response_format *format = &RESPONSE_FORMATS[kind];
    const struct completion_sink sink = {.completion = out,
                                         .server = endpoint->shown,
                                         .observer = request->observer,
                                         .context = request->context,
                                         .wants_score = request->wants_score,
                                         .why = why};
    union response_state state;
    struct http_response own = {0}, *answer = response ? response : &own;
    *answer = own;
    format->init(&state, &sink);
    enum err err =
        endpoint_post(endpoint, path, body, request, format->feed, &state, out, answer, why);
    if (!err && (answer->status < 200 || answer->status > 299))
        err = reply_error(endpoint, request, answer, out, why);
    else
        err = format->end(&state, err);
    format->release(&state);
    if (!response)
        http_response_release(&own);
    return err;
}

/* ---- models ---- */

/* Whether one name contains the other, ignoring tags: "tiny" and "tiny-1b:q8". */
static bool is_related(const char *name, const char *model)
{
    char stem[128];
    chars_format(stem, "%.*s", (int)strcspn(model, ":"), model);
    return (*stem && str_contains_nocase(name, stem)) || str_contains_nocase(model, name);
}

/* Appends up to three names, excluding `near` and limited to those related to `related_to` (either may be NULL);
 * returns their number. */
static size_t list_names(struct text *list, size_t listed, const struct client_models *models,
                         const char *near, const char *related_to)
{
    enum { SHOWN = 3 };
    for (size_t i = 0; i < models->count && listed < SHOWN; i++) {
        const char *name = models->names[i];
        if ((near && str_equal(name, near)) || (related_to && !is_related(name, related_to)))
            continue;
        text_addf(list, "%s%s", listed++ ? ", " : "", name);
    }
    return listed;
}

enum err endpoint_missing_model(const struct endpoint *endpoint, const char *model,
                                const struct client_models *models, const char *advice,
                                struct error *why)
{
    struct text list = {0};
    const char *near = nearest_name(model, (const char *const *)models->names, models->count);
    if (near)
        text_add(&list, near);
    size_t listed = list_names(&list, near ? 1 : 0, models, near, model);
    const char *lead = models->count ? "; available: " : "";
    if (listed)
        lead = ": did you mean ";
    if (!listed)
        list_names(&list, 0, models, NULL, NULL);
    enum err err =
        err_set(why, ERR_NOT_FOUND, "%.100s has no model '%.60s'%s%.90s%s%s%s", endpoint->shown,
                model, lead, text_get(&list), listed ? "?" : "", *advice ? " " : "", advice);
    text_release(&list);
    return err;
}
