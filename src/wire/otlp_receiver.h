/* A receiver of OTLP over HTTP in JSON: its address and headers by the conventions of OpenTelemetry's exporters, one
 * batch per request.  otlp_receiver_release frees what otlp_receiver_open allocates; used by one thread at a time. */
#ifndef IPW_WIRE_OTLP_RECEIVER_H
#define IPW_WIRE_OTLP_RECEIVER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/params.h"

struct http;

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
