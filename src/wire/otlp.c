/* A batch is a nest of resources and scopes around spans or points; the status of the response to it says whether it
 * is sent again, and the body of a successful one may say that a part of it was dropped ("partialSuccess"). */
#include "wire/otlp.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
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

/* ---- writing ---- */

void otlp_digits(struct json *json, const char *key, int64_t value)
{
    char digits[24];
    chars_format(digits, "%" PRId64, value);
    json_string(json, key, digits);
}

void otlp_open_value(struct json *json, const char *key)
{
    json_object(json, NULL);
    json_string(json, "key", key);
    json_object(json, "value");
}

void otlp_close_value(struct json *json)
{
    json_object_end(json);
    json_object_end(json);
}

void otlp_text(struct json *json, const char *key, const char *value)
{
    if (!value || !value[0])
        return;
    otlp_open_value(json, key);
    json_string(json, "stringValue", value);
    otlp_close_value(json);
}

void otlp_number(struct json *json, const char *key, double value)
{
    if (!is_known(value))
        return;
    otlp_open_value(json, key);
    json_number(json, "doubleValue", value);
    otlp_close_value(json);
}

void otlp_integer(struct json *json, const char *key, int64_t value)
{
    otlp_open_value(json, key);
    otlp_digits(json, "intValue", value);
    otlp_close_value(json);
}

void otlp_bool(struct json *json, const char *key, bool value)
{
    otlp_open_value(json, key);
    json_bool(json, "boolValue", value);
    otlp_close_value(json);
}

void otlp_open(struct json *json, const char *of_resources, const char *instance, const char *host)
{
    json_object(json, NULL);
    json_array(json, of_resources);
    json_object(json, NULL);
    json_object(json, "resource");
    json_array(json, "attributes");
    otlp_text(json, "service.name", "ipw");
    otlp_text(json, "service.version", IPW_VERSION);
    otlp_text(json, "service.instance.id", instance);
    otlp_text(json, "host.name", host);
}

void otlp_scope(struct json *json, const char *of_scopes)
{
    json_array_end(json);
    json_object_end(json);
    json_array(json, of_scopes);
    json_object(json, NULL);
    json_object(json, "scope");
    json_string(json, "name", "ipw");
    json_string(json, "version", IPW_VERSION);
    json_object_end(json);
}

void otlp_close(struct json *json)
{
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
}

void otlp_open_metric(struct json *json, const char *name, const char *description,
                      const char *unit, const char *kind)
{
    enum { CUMULATIVE = 2 };
    json_object(json, NULL);
    json_string(json, "name", name);
    json_optional_string(json, "description", description);
    json_string(json, "unit", unit);
    json_object(json, kind);
    if (!str_equal(kind, "gauge"))
        json_integer(json, "aggregationTemporality", CUMULATIVE);
    if (str_equal(kind, "sum"))
        json_bool(json, "isMonotonic", true);
    json_array(json, "dataPoints");
}

void otlp_close_metric(struct json *json)
{
    json_array_end(json);
    json_object_end(json);
    json_object_end(json);
}

/* ---- the receiver ---- */

static void add_headers(struct params *headers, enum otlp_signal signal)
{
    const char *given = getenv(SIGNALS[signal].headers);
    if (!given || !*given)
        given = getenv("OTEL_EXPORTER_OTLP_HEADERS");
    if (given && *given)
        params_add(headers, given);
    for (size_t i = 0; i < headers->count; i++) {
        str_percent_decode(headers->items[i].value);
        secret_add_header(headers->items[i].value);
    }
    params_set(headers, "Content-Type", "application/json");
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
    if (!chars_format(receiver->url, "%.*s%s", (int)length, given, is_whole ? "" : path))
        return err_set(why, ERR_USAGE, "the URL of the OTLP receiver is too long");
    err = url_read(receiver->url, &url, why);
    chars_copy(receiver->shown, url.shown);
    return err;
}

enum err otlp_receiver_open(struct otlp_receiver *receiver, enum otlp_signal signal,
                            const char *url, struct error *why)
{
    *receiver = (struct otlp_receiver){.signal = signal};
    enum err err = http_available(why);
    if (!err)
        err = read_url(receiver, signal, url, why);
    if (!err) {
        add_headers(&receiver->headers, signal);
        err = http_open(&receiver->http, why);
    }
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

/* ---- sending a batch ---- */

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
    const char *digits = jv_text(count), *message = jv_get_text(partial, "errorMessage");
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
