/* A recording proxy for inference services: it passes OpenAI-compatible and Ollama requests on to one upstream server,
 * bodies unchanged in both directions, and observes what each of them asked for, when its tokens came and how many
 * there were.  It measures no energy: its owner does, from `begins` and `ended`, and reports it with proxy_settle.
 *
 * The proxy runs in a thread of its own.  proxy_start gives what proxy_stop frees; a proxy_request belongs to whoever
 * `ended` handed it to: proxy_request_free. */
#ifndef IPW_PROXY_PROXY_H
#define IPW_PROXY_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/energy.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "wire/completion.h"

struct params;
struct proxy;

enum proxy_kind {
    PROXY_OTHER, /* no inference: models, tags ...; passed on and counted, without `begins` and `ended` */
    PROXY_OPENAI,     /* /chat/completions, /completions, /responses */
    PROXY_OLLAMA,     /* /api/chat, /api/generate */
    PROXY_EMBEDDINGS, /* /embeddings, /api/embed, /api/embeddings */
};

/* One request, as it was observed; texts are "" where they are not known. */
struct proxy_request {
    uint64_t id; /* from proxy_options.first_id on */
    enum proxy_kind kind;
    char path[96];  /* without the query string */
    char model[96]; /* as the client named it */
    char query[64]; /* label of the header x-ipw-query */
    char turn[32];  /* of x-ipw-turn */
    char key[64];   /* of the API key: its configured name, or "key-" and 8 digits of a hash */
    bool is_stream; /* the client asked for a stream */
    nanos began_wall;
    struct completion
        reply;    /* sent: when the request was complete here; status of the upstream's answer */
    enum err err; /* how it failed */
    char why[200];
    bool canceled;    /* the client disconnected first */
    struct text body; /* of the request; empty without proxy_options.keep_content */
};
void proxy_request_free(struct proxy_request *request);
/* What its body asks, "" where that is not known. */
void proxy_request_question(const struct proxy_request *request, struct text *out);

struct proxy_options {
    const char *upstream;     /* its URL; a path in it precedes those of requests */
    const char *address;      /* to listen on; NULL: 127.0.0.1 */
    unsigned port;            /* 0: any that is free */
    const char *token;        /* asked of every client; NULL: none, for loopback addresses only */
    const char *upstream_key; /* sent upstream for clients without an API key; NULL: none */
    const struct params
        *upstream_headers;          /* go upstream in the place of the clients'; may be NULL */
    const struct params *key_names; /* names of API keys, by their labels; may be NULL */
    bool inject_usage;              /* asks for token counts in streams, and removes them again */
    bool energy_header;             /* tells clients the energy, for which answers wait */
    bool keep_content;
    size_t body_max;     /* bytes of a request; 0: 64 MiB */
    nanos request_limit; /* in which a client must send a request; 0: 30 s */
    uint64_t first_id;
    /* Called by the proxy's thread, and not to take long: an inference request goes upstream; it has ended. */
    void (*begins)(void *context, uint64_t id, nanos at);
    void (*ended)(void *context, struct proxy_request *request);
    void *context;
};

/* ERR_USAGE for an invalid upstream or address, and for one that others can reach without a token; ERR_BUSY when the port
 * is taken; ERR_UNSUPPORTED in a build without libmicrohttpd or libcurl. */
enum err proxy_start(const struct proxy_options *options, struct proxy **out, struct error *why)
    MUST_USE;
/* Whether it could be started; the upstream's address for display. */
enum err proxy_check(const struct proxy_options *options, char *shown, size_t size,
                     struct error *why) MUST_USE;
unsigned proxy_port(const struct proxy *proxy);

/* The owner could not record a request that `ended` gave it: for /ipw/metrics.  Any thread. */
void proxy_count_unrecorded(struct proxy *proxy);

/* What an ended request spent: for /ipw/requests, /ipw/metrics and the energy header.  Any thread. */
void proxy_settle(struct proxy *proxy, uint64_t id, const struct energy *energy);

/* Takes no more requests, and waits for those in flight: true when none is left after `patience` at most.  May be called
 * again and again. */
bool proxy_drain(struct proxy *proxy, nanos patience);

/* Cancels what is in flight; every begun request has had its `ended` afterwards. */
void proxy_stop(struct proxy *proxy);

#endif
