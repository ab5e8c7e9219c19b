/* The status of a response says whether a batch is sent again; the body of a successful one may say that a part of the
 * batch was dropped ("partialSuccess"). */
#include "wire/otlp_receiver.h"

#include <stdlib.h>
#include <string.h>

#include "core/jv.h"
#include "core/secret.h"
#include "core/text.h"
#include "core/units.h"
#include "port/http.h"
#include "port/url.h"

#define SEND_LIMIT (10 * NS_PER_S)

enum { REPLY_MAX = 64 * 1024 };

static const struct {
    const char *path, *headers; /* headers: the environment variable of this signal */
    const char *rejected;       /* the member of a partial success */
    const char *items;
} SIGNALS[] = {
    [OTLP_TRACES] = {"/v1/traces", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "rejectedSpans", "spans"},
    [OTLP_METRICS] = {"/v1/metrics", "OTEL_EXPORTER_OTLP_METRICS_HEADERS", "rejectedDataPoints",
                      "data points"},
};

/* ---- the address ---- */

static enum err add_headers(struct params *headers, enum otlp_signal signal, struct error *why)
{
    const char *given = getenv(SIGNALS[signal].headers);
    if (!given || !*given)
        given = getenv("OTEL_EXPORTER_OTLP_HEADERS");
    enum err err = given && *given ? params_add(headers, given) : ERR_OK;
    for (size_t i = 0; i < headers->count; i++) {
        str_percent_decode(headers->items[i].value);
        secret_add_header(headers->items[i].value);
    }
    if (!err)
        err = params_set(headers, "Content-Type", "application/json");
    return err_explain(why, err);
}

/* Appends the path of the signal to a base URL, as in OTEL_EXPORTER_OTLP_ENDPOINT. */
static enum err read_url(struct otlp_receiver *receiver, enum otlp_signal signal, const char *given,
                         struct error *why)
{
    const char *path = SIGNALS[signal].path;
    struct url url;
    size_t length = strlen(given);
    enum err err = url_read(given, &url, why);
    if (err)
        return err;
    while (length && given[length - 1] == '/')
        length--;
    bool is_whole =
        length >= strlen(path) && !strncmp(given + length - strlen(path), path, strlen(path));
    if (!str_format(receiver->url, sizeof receiver->url, "%.*s%s", (int)length, given,
                    is_whole ? "" : path))
        return err_set(why, ERR_USAGE, "the URL of the OTLP receiver is too long");
    err = url_read(receiver->url, &url, why);
    str_copy(receiver->shown, sizeof receiver->shown, url.shown);
    return err;
}

enum err otlp_receiver_open(struct otlp_receiver *receiver, enum otlp_signal signal,
                            const char *url, struct error *why)
{
    *receiver = (struct otlp_receiver){.signal = signal};
    enum err err = http_available(why);
    if (!err)
        err = read_url(receiver, signal, url, why);
    if (!err)
        err = add_headers(&receiver->headers, signal, why);
    if (!err)
        err = http_open(&receiver->http, why);
    if (err)
        otlp_receiver_release(receiver);
    return err;
}

void otlp_receiver_release(struct otlp_receiver *receiver)
{
    if (receiver->http)
        http_close(receiver->http);
    receiver->http = NULL;
    params_release(&receiver->headers);
}

/* ---- a batch ---- */

static enum err take_reply(void *context, const char *bytes, size_t length, nanos t)
{
    struct text *body = context;
    (void)t;
    if (body->length + length <= REPLY_MAX) /* a longer one is not a reply of OTLP: it is ignored */
        text_add_bytes(body, bytes, length);
    return ERR_OK;
}

static void read_partial_success(enum otlp_signal signal, const struct text *body,
                                 struct otlp_reply *reply)
{
    struct jv *tree = NULL;
    int64_t rejected = 0;
    if (!body->length || jv_parse(text_get(body), body->length, &tree, NULL))
        return;
    const struct jv *partial = jv_get(tree, "partialSuccess");
    const struct jv *count = jv_get(partial, SIGNALS[signal].rejected);
    const char *digits = jv_text(count), *message = jv_text(jv_get(partial, "errorMessage"));
    bool is_read = digits ? parse_i64(digits, &rejected) == ERR_OK : jv_integer(count, &rejected);
    if (is_read && rejected > 0) {
        reply->rejected = rejected;
        err_set(&reply->why, ERR_BAD_VALUE, "the OTLP receiver dropped %lld %s%s%.160s",
                (long long)rejected, SIGNALS[signal].items, message && *message ? ": " : "",
                message ? message : "");
    }
    jv_free(tree);
}

static enum otlp_outcome outcome_of(enum err err, int status)
{
    if (err)
        return OTLP_REPEAT;
    if (status >= 200 && status <= 299)
        return OTLP_SENT;
    return status == 429 || status == 502 || status == 503 || status == 504 ? OTLP_REPEAT
                                                                            : OTLP_REFUSED;
}

enum otlp_outcome otlp_receiver_send(struct otlp_receiver *receiver, const char *batch,
                                     size_t length, const atomic_bool *cancel,
                                     struct otlp_reply *reply)
{
    struct text body = {0};
    const struct http_request request = {
        .method = "POST",
        .url = receiver->url,
        .headers = &receiver->headers,
        .body = batch,
        .body_length = length,
        .timeout = SEND_LIMIT,
        .cancel = cancel,
        .take = take_reply,
        .context = &body,
    };
    struct http_response response;
    *reply = (struct otlp_reply){.retry_after_s = UNKNOWN};
    enum err err = http_perform(receiver->http, &request, &response, &reply->why);
    enum otlp_outcome outcome = outcome_of(err, response.status);
    reply->retry_after_s = response.retry_after_s;
    if (outcome == OTLP_SENT)
        read_partial_success(receiver->signal, &body, reply);
    else if (!err)
        err_set(&reply->why, ERR_IO, "the OTLP receiver %s: HTTP status %d",
                outcome == OTLP_REFUSED ? "refuses the data" : "is not ready", response.status);
    http_response_release(&response);
    text_release(&body);
    return outcome;
}
