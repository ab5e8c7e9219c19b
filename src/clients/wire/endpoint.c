#include "clients/wire/endpoint.h"

#include <string.h>

#include "clients/wire/words.h"
#include "core/registry.h"
#include "port/json_read.h"

enum { DOCUMENT_LIMIT = 16 * 1024 * 1024 }; /* lists of hundreds of models fit many times over */

/* ---- the address ---- */

enum err endpoint_url(char *url, size_t size, const char *given, struct error *why)
{
    char kept[512];
    if (!str_copy(kept, sizeof kept, given))
        return err_set(why, ERR_USAGE, "the address is longer than %zu bytes", sizeof kept - 1);
    char *trimmed = str_trim(kept);
    for (size_t length = strlen(trimmed); length > 0 && trimmed[length - 1] == '/';)
        trimmed[--length] = '\0';
    const char *scheme = strstr(trimmed, "://");
    bool fits = str_format(url, size, "%s%s", scheme ? "" : "http://", trimmed);
    if (!*trimmed || strpbrk(trimmed, " \t\r\n?#") || !fits)
        return err_set(why, ERR_USAGE, "'%.80s' is not an address: expected http://HOST:PORT",
                       strchr(given, '@') ? "it" : given);
    if (!str_starts(url, "http://") && !str_starts(url, "https://"))
        return err_set(why, ERR_USAGE, "'%.*s' addresses cannot be used: only http and https",
                       scheme ? (int)(scheme - trimmed) : 0, trimmed);
    return ERR_OK;
}

enum err endpoint_open(struct endpoint *endpoint, const char *url, struct error *why)
{
    *endpoint = (struct endpoint){.start_it = "is the server running?", .let_in = "give its key"};
    str_copy(endpoint->url, sizeof endpoint->url, url);
    client_url_shown(url, endpoint->shown, sizeof endpoint->shown);
    return http_open(&endpoint->http, why);
}

void endpoint_close(struct endpoint *endpoint)
{
    http_close(endpoint->http);
    params_release(&endpoint->headers);
    *endpoint = (struct endpoint){0};
}

enum err endpoint_headers(struct endpoint *endpoint, const struct params *params, struct error *why)
{
    static const char PREFIX[] = "header.";
    for (size_t i = 0; params && i < params->count; i++) {
        const struct param *p = &params->items[i];
        if (str_starts(p->key, PREFIX) &&
            params_set(&endpoint->headers, p->key + strlen(PREFIX), p->value))
            return err_set(why, ERR_NO_MEMORY, "out of memory for headers");
    }
    return ERR_OK;
}

/* ---- refusals ---- */

/* The status's own meaning. */
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
    case 529: /* "overloaded", of several services */
        return ERR_BUSY;
    case 405:
    case 501:
        return ERR_UNSUPPORTED;
    default:
        return status >= 500 ? ERR_IO : ERR_BAD_VALUE;
    }
}

static bool is_worth_another_try(int status)
{
    return status == 408 || status == 425 || status == 429 ||
           (status >= 500 && status != 501 && status != 505);
}

/* What the body says, in one line; "" when it says nothing for people (a page of HTML). */
static void read_words(char *words, size_t size, const struct text *body)
{
    struct jv *tree = NULL;
    const char *said = text_get(body);
    size_t length = body->length;
    words[0] = '\0';
    if (length > 0 && !jv_parse(said, length, &tree, NULL)) {
        said = words_of_error(tree);
        length = said ? strlen(said) : 0;
    }
    if (length > 0 && *said != '<')
        words_shown(words, size, said, length);
    jv_free(tree);
}

enum err endpoint_refusal(const struct endpoint *endpoint, const struct http_response *response,
                          struct client_reply *reply, struct error *why)
{
    int status = response->status;
    char words[180];
    read_words(words, sizeof words, &response->error_body);
    if (reply) {
        reply->retryable = is_worth_another_try(status);
        reply->retry_after_s = response->retry_after_s;
    }
    const char *advice = status == 401 || status == 403 ? endpoint->let_in
                         : status >= 300 && status < 400
                             ? "it has moved: give the address where it is now"
                             : "";
    return err_set(why, error_of_status(status), "%.100s answered %d%s%s%s%s", endpoint->shown,
                   status, *words ? ": " : "", words, *advice ? ": " : "", advice);
}

/* A server that is not there: what http says of it, and how to start one. */
static enum err add_start(const struct endpoint *endpoint, enum err err,
                          const struct http_response *response, const struct error *cause,
                          struct error *why)
{
    if (err == ERR_LOST && !response->connected)
        return err_set(why, err, "cannot reach %.120s: %s", endpoint->shown, endpoint->start_it);
    return err_set(why, err, "%s", cause->text);
}

/* ---- requests ---- */

static enum err parse_document(const struct endpoint *endpoint, const char *url,
                               const struct text *body, struct jv **out, struct error *why)
{
    struct error cause;
    if (!jv_parse(text_get(body), body->length, out, &cause))
        return ERR_OK;
    return err_set(why, ERR_BAD_VALUE, "%.100s: the answer to GET %.100s is not JSON (%.60s)",
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
        err = add_start(endpoint, err, answer, &cause, why);
    else if (answer->status < 200 || answer->status > 299)
        err = endpoint_refusal(endpoint, answer, NULL, why);
    else
        err = parse_document(endpoint, url, &body, out, why);
    text_release(&body);
    http_response_release(answer);
    return err;
}

enum err endpoint_post(struct endpoint *endpoint, const char *path, const struct text *body,
                       const struct client_request *request,
                       enum err (*take)(void *context, const char *bytes, size_t length, nanos t),
                       void *context, struct client_reply *reply, struct http_response *response,
                       struct error *why)
{
    char url[640];
    str_format(url, sizeof url, "%s%s", endpoint->url, path);
    const struct http_request post = {
        .method = "POST",
        .url = url,
        .headers = &endpoint->headers,
        .body = text_get(body),
        .body_length = body->length,
        .timeout = request->timeout,
        .cancel = request->cancel,
        .take = take,
        .context = context,
    };
    struct error cause = {0};
    enum err err = http_perform(endpoint->http, &post, response, &cause);
    reply->sent = response->sent;
    reply->done = response->done;
    reply->status = response->status;
    if (err && cause.text[0]) { /* otherwise take has said it */
        add_start(endpoint, err, response, &cause, why);
        reply->retryable = err == ERR_LOST || err == ERR_TIMEOUT;
    }
    return err;
}

/* ---- models ---- */

/* Does one name hold the other, tags aside: "tiny" and "tiny-1b:q8"? */
static bool is_related(const char *name, const char *model)
{
    char stem[128];
    str_format(stem, sizeof stem, "%.*s", (int)strcspn(model, ":"), model);
    return (*stem && str_contains_nocase(name, stem)) || str_contains_nocase(model, name);
}

/* Adds names that pass (NULL test: all) until three are listed; returns how many are. */
static size_t list_names(struct text *list, size_t listed, const struct client_models *models,
                         const char *near, const char *related_to)
{
    enum { SHOWN = 3 };
    for (size_t i = 0; i < models->count && listed < SHOWN; i++) {
        const char *name = models->names[i];
        if ((near && strcmp(name, near) == 0) || (related_to && !is_related(name, related_to)))
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
    const char *lead = listed ? ": did you mean " : models->count ? ": it has " : "";
    if (!listed)
        list_names(&list, 0, models, NULL, NULL);
    enum err err =
        err_set(why, ERR_NOT_FOUND, "%.100s has no model '%.60s'%s%.90s%s%s%s", endpoint->shown,
                model, lead, text_get(&list), listed ? "?" : "", *advice ? " " : "", advice);
    text_release(&list);
    return err;
}
