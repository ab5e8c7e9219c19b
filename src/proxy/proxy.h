/* A recording proxy for inference services: it forwards all requests to one upstream server, bodies unchanged in both
 * directions, and records the model, the token counts and the arrival times of tokens of those to known inference
 * endpoints (observer.c).  It measures no energy: the owner does, using the callbacks `begins` and `ended`, and
 * reports it with proxy_settle.
 *
 * The proxy runs in its own thread.  proxy_stop frees what proxy_start allocates; `ended` passes ownership of a
 * proxy_request, to be freed with proxy_request_free. */
#ifndef IPW_PROXY_PROXY_H
#define IPW_PROXY_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/energy.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "port/http_server.h"
#include "wire/completion.h"

struct params;
struct proxy;

struct proxy_endpoint;

/* One observed request; strings are "" if unknown. */
struct proxy_request {
    uint64_t id; /* starts at proxy_options.first_id */
    const struct proxy_endpoint *endpoint;
    char path[96];  /* without the query string */
    char model[96]; /* as in the request */
    char query[64]; /* value of the header x-ipw-query */
    char turn[32];  /* value of x-ipw-turn */
    char key[64]; /* label of the API key: its configured name, or "key-" and 8 digits of a hash */
    bool is_stream; /* the client asked for a stream */
    nanos began_wall;
    struct completion
        reply;    /* sent: when the whole request was received; status: of the upstream response */
    enum err err; /* why it failed */
    char why[200];
    bool canceled;    /* the client disconnected first */
    struct text body; /* request body; empty unless proxy_options.keep_content */
};
void proxy_request_free(struct proxy_request *request);
/* Whether the answer has output tokens: not those to embeddings and rerank requests. */
bool proxy_request_generates(const struct proxy_request *request);
/* The question in the request body, "" if unknown. */
void proxy_request_question(const struct proxy_request *request, struct text *out);

/* A POST to a path that is neither a known inference endpoint nor known not to be one.  It is inference if its response
 * is a stream, or took at least PROXY_INFERENCE_MIN. */
struct proxy_unknown {
    uint64_t id;
    const char *path;
    nanos from, to;
    bool is_inference; /* false: as if it had never begun */
};
#define PROXY_INFERENCE_MIN (100 * NS_PER_MS)

struct proxy_options {
    const char *upstream;              /* base URL; its path is prepended to those of requests */
    struct http_access_options access; /* address NULL: 127.0.0.1 */
    const char *upstream_key; /* sent upstream for clients without an API key; NULL: none */
    const struct params
        *upstream_headers;          /* replace the clients' headers of these names; may be NULL */
    const struct params *key_names; /* names of API keys by their labels; may be NULL */
    bool inject_usage;  /* request token counts in streams, and remove them from responses */
    bool energy_header; /* return the energy to clients, which delays responses */
    bool keep_content;
    size_t body_max;     /* maximum bytes of a request; 0: 64 MiB */
    nanos request_limit; /* time limit for receiving a request; 0: 30 s */
    uint64_t first_id;
    const char *const *not_inference; /* patterns of paths, in addition to known ones (fnmatch) */
    size_t not_inference_count;
    /* Called in the proxy's thread, and must not block: when an inference request is forwarded, and when it has
     * ended. */
    void (*begins)(void *context, uint64_t id, nanos at);
    void (*ended)(void *context, struct proxy_request *request);
    /* Another request that may be inference has ended; it began with `begins`.  NULL: such requests are not
     * announced. */
    void (*unknown_ended)(void *context, const struct proxy_unknown *request);
    void *context;
};

/* ERR_USAGE: invalid upstream or address, or a non-loopback address without a token; ERR_BUSY: the port is in use;
 * ERR_UNSUPPORTED: libcurl is not installed. */
enum err proxy_start(const struct proxy_options *options, struct proxy **out, struct error *why)
    MUST_USE;
/* Checks the options without starting; `shown` is the upstream's address for display. */
enum err proxy_check(const struct proxy_options *options, char *shown, size_t size,
                     struct error *why) MUST_USE;
unsigned proxy_port(const struct proxy *proxy);

/* Counts a request that the owner could not record, for /ipw/metrics.  Thread-safe. */
void proxy_count_unrecorded(struct proxy *proxy);

/* Sets the energy of an ended request, for /ipw/requests, /ipw/metrics and the energy header.  `again`: it replaces an
 * earlier one, which the counters of /ipw/metrics keep.  Thread-safe. */
void proxy_settle(struct proxy *proxy, uint64_t id, const struct energy *energy, bool again);

/* Number of requests forwarded so far, and of those in flight.  If it is the same at two times, and none is in flight,
 * there was no request in between.  Thread-safe. */
uint64_t proxy_forwarded(const struct proxy *proxy, unsigned *in_flight);

/* Refuses new requests and waits for those in flight, at most `timeout`: true if none is left.  May be called
 * repeatedly. */
bool proxy_drain(struct proxy *proxy, nanos timeout);

/* Cancels requests in flight; `ended` has been called for every begun request when this returns. */
void proxy_stop(struct proxy *proxy);

#endif
