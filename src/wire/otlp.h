/* OTLP over HTTP in JSON: the common parts of OpenTelemetry traces and metrics, and the receiver of them.
 *
 * Batches are written into a struct json of the caller.  otlp_receiver_release frees what otlp_receiver_open allocates;
 * a receiver is used by one thread at a time. */
#ifndef IPW_WIRE_OTLP_H
#define IPW_WIRE_OTLP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/params.h"

struct http;
struct json;

/* ---- writing batches ---- */

/* OTLP/JSON encodes 64-bit integers as strings. */
void otlp_digits(struct json *json, const char *key, int64_t value);

/* Elements of "attributes"; unknown values (NULL and "", not finite) are omitted. */
void otlp_text(struct json *json, const char *key, const char *value);
void otlp_number(struct json *json, const char *key, double value);
void otlp_integer(struct json *json, const char *key, int64_t value);
void otlp_bool(struct json *json, const char *key, bool value);
/* For a value of another type, written between these two. */
void otlp_open_value(struct json *json, const char *key);
void otlp_close_value(struct json *json);

/* A batch: of_resources "resourceSpans" and of_scopes "scopeSpans", or those of metrics.  otlp_open leaves the
 * attributes of the resource open, otlp_scope closes them; then the content of the scope; otlp_close ends the batch. */
void otlp_open(struct json *json, const char *of_resources, const char *instance, const char *host);
void otlp_scope(struct json *json, const char *of_scopes);
void otlp_close(struct json *json);

/* A metric of a kind ("gauge", "sum", "histogram"; the latter two are cumulative); its points in between.  description
 * may be NULL. */
void otlp_open_metric(struct json *json, const char *name, const char *description,
                      const char *unit, const char *kind);
void otlp_close_metric(struct json *json);

/* ---- sending them ---- */

enum otlp_signal { OTLP_TRACES, OTLP_METRICS };

struct otlp_receiver {
    enum otlp_signal signal;
    char url[640];   /* to which batches are posted */
    char shown[640]; /* the same without a password */
    struct params headers;
    struct http *http;
};

/* `url` is the base URL of the receiver, or that of the signal (".../v1/traces").  Headers come from
 * OTEL_EXPORTER_OTLP_HEADERS or the signal's own variable, and are secrets. */
enum err otlp_receiver_open(struct otlp_receiver *receiver, enum otlp_signal signal,
                            const char *url, struct error *why) MUST_USE;
void otlp_receiver_release(struct otlp_receiver *receiver);

enum otlp_outcome {
    OTLP_SENT,
    OTLP_REFUSED, /* the receiver will not accept this batch */
    OTLP_REPEAT,  /* it may accept the batch later */
};

struct otlp_reply {
    double retry_after_s; /* delay requested by the receiver; UNKNOWN without */
    int64_t rejected;     /* spans or data points of an accepted batch that it dropped */
    struct error why;     /* unless the batch was sent, and for `rejected` */
};

/* `cancel` may be NULL. */
enum otlp_outcome otlp_receiver_send(struct otlp_receiver *receiver, const char *batch,
                                     size_t length, const atomic_bool *cancel,
                                     struct otlp_reply *reply);

#endif
