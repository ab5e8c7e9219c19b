#include "datasets/hub/server.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "port/http.h"
#include "port/json_read.h"
#include "port/thread.h"

#define PUBLIC_SERVER "https://datasets-server.huggingface.co"

/* A page is at most some megabytes; a row at most what a row may be. */
#define BODY_MAX       ((size_t)256 * 1024 * 1024)

#define DELAY_MAX_S    60.0
#define TIMEOUT        (120 * NS_PER_S)
#define TRIES_MOST     20
#define TOKEN_VARIABLE "HF_TOKEN"

/* A token is sent over https, or within this machine; nobody else is to read it. */
static bool may_have_token(const char *base)
{
    return str_starts(base, "https://") || str_starts(base, "http://127.0.0.1") ||
           str_starts(base, "http://localhost") || str_starts(base, "http://[::1]");
}

static enum err add_token(struct hub_server *server)
{
    const char *token = getenv(TOKEN_VARIABLE);
    struct text value = {0};
    if (!token || !*token || !may_have_token(server->base))
        return ERR_OK;
    text_addf(&value, "Bearer %s", token);
    enum err err = params_set(&server->headers, "Authorization", text_get(&value));
    text_release(&value);
    server->has_token = !err;
    return err;
}

enum err hub_server_init(struct hub_server *out, const struct params *params, struct error *why)
{
    const char *base = params_get(params, "base_url");
    *out = (struct hub_server){0};
    if (!base || !*base)
        base = PUBLIC_SERVER;
    if (!str_starts(base, "http://") && !str_starts(base, "https://"))
        return err_set(why, ERR_USAGE, "base_url=%.100s: expected http:// or https://", base);
    if (!str_copy(out->base, sizeof out->base, base))
        return err_set(why, ERR_USAGE, "base_url: longer than %zu bytes", sizeof out->base - 1);
    while (strlen(out->base) > 0 && out->base[strlen(out->base) - 1] == '/')
        out->base[strlen(out->base) - 1] = '\0';
    enum err err = params_count(params, "tries", 4, &out->tries, why);
    if (!err)
        err = params_number(params, "retry_delay", 1, &out->delay_s, why);
    if (!err && (out->tries < 1 || out->tries > TRIES_MOST || out->delay_s < 0))
        err = err_set(why, ERR_USAGE, "expected tries from 1 to %d and retry_delay from 0",
                      TRIES_MOST);
    if (!err && add_token(out) != ERR_OK)
        err = err_set(why, ERR_NO_MEMORY, "out of memory");
    if (err)
        hub_server_release(out);
    return err;
}

void hub_server_release(struct hub_server *server)
{
    if (server->http)
        http_close(server->http);
    params_release(&server->headers);
    *server = (struct hub_server){0};
}

void hub_add_encoded(struct text *out, const char *value)
{
    for (const unsigned char *s = (const unsigned char *)value; *s; s++) {
        bool inner_dot = *s == '.' && s != (const unsigned char *)value;
        char plain[2] = {(char)*s, '\0'};
        if (isalnum(*s) || *s == '-' || *s == '_' || inner_dot)
            text_add(out, plain);
        else
            text_addf(out, "%%%02X", *s);
    }
}

/* What the server says is wrong: {"error": "..."}, or nothing. */
static void add_complaint(const struct text *body, struct text *out)
{
    struct jv *reply;
    if (jv_parse(text_get(body), body->length, &reply, NULL) != ERR_OK)
        return;
    const char *error = jv_text(jv_get(reply, "error"));
    if (error)
        text_addf(out, ": %.140s", error);
    jv_free(reply);
}

static bool is_worth_another_try(int status)
{
    return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

static enum err tell(const struct hub_server *server, const struct http_response *response,
                     struct error *why)
{
    int status = response->status;
    struct text complaint = {0};
    add_complaint(&response->error_body, &complaint);
    enum err err;
    if (status == 401 || status == 403)
        err =
            err_set(why, ERR_DENIED, "%.60s: %s (status %d%s)", server->base,
                    server->has_token ? "the token in " TOKEN_VARIABLE " does not open it"
                                      : "it needs a login: accept the dataset's terms on its page "
                                        "and set " TOKEN_VARIABLE,
                    status, text_get(&complaint));
    else if (is_worth_another_try(status))
        err = err_set(why, ERR_BUSY, "%.60s: status %d, %llu times%s", server->base, status,
                      (unsigned long long)server->tries, text_get(&complaint));
    else
        err = err_set(why, ERR_NOT_FOUND, "%.60s: status %d%s", server->base, status,
                      text_get(&complaint));
    text_release(&complaint);
    return err;
}

/* How long to wait before the try with this number, from 1. */
static double pause_before(const struct hub_server *server, uint64_t number, double asked_s)
{
    double pause_s = server->delay_s;
    for (uint64_t i = 1; i < number; i++)
        pause_s *= 2;
    if (is_known(asked_s) && asked_s > pause_s)
        pause_s = asked_s;
    return pause_s < DELAY_MAX_S ? pause_s : DELAY_MAX_S;
}

static enum err try_once(struct hub_server *server, const char *url, struct text *body,
                         double *asked_s, bool *again, struct error *why)
{
    struct http_response response = {0};
    text_clear(body);
    enum err err =
        http_fetch(server->http, url, &server->headers, TIMEOUT, BODY_MAX, body, &response, why);
    *asked_s = response.retry_after_s;
    *again = err == ERR_LOST || err == ERR_TIMEOUT;
    if (!err && (response.status < 200 || response.status > 299)) {
        *again = is_worth_another_try(response.status);
        err = tell(server, &response, why);
    }
    http_response_release(&response);
    return err;
}

enum err hub_server_get(struct hub_server *server, const char *path, struct text *body,
                        struct error *why)
{
    struct text url = {0};
    double asked_s = UNKNOWN;
    bool again = true;
    enum err err = server->http ? ERR_OK : http_open(&server->http, why);
    if (err)
        return err;
    text_addf(&url, "%s%s", server->base, path);
    if (url.failed)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    for (uint64_t i = 0; i < server->tries && again; i++) {
        if (i > 0)
            thread_sleep(from_seconds(pause_before(server, i, asked_s)));
        err = try_once(server, text_get(&url), body, &asked_s, &again, why);
        again = again && err;
    }
    text_release(&url);
    return err;
}
