/* The path of http_relay to a server without TLS: HTTP/1.1 on our own keep-alive connections.  Private to port/.
 * libcurl takes several times as long for a short request, and three times the memory per open stream.  Ownership
 * is as in port/http_relay.h. */
#ifndef IPW_PORT_HTTP_PLAIN_H
#define IPW_PORT_HTTP_PLAIN_H

#include <stdint.h>
#include <sys/types.h>

#include "port/http_relay.h"

struct plain_pool;
struct plain_call;

/* Common initial members of a call of either kind. */
struct relay_call {
    bool is_plain;
};

struct plain_pool *plain_pool_new(struct event_loop *loop); /* NULL: out of memory */
void plain_pool_free(struct plain_pool *pool);

/* "http://" and a loopback address: needs neither name resolution nor a proxy. */
bool plain_pool_serves(const struct plain_pool *pool, const struct relay_request *request);

enum err plain_call_start(struct plain_pool *pool, const struct relay_request *request,
                          struct plain_call **out, struct error *why) MUST_USE;
void plain_call_resume(struct plain_call *call);
void plain_call_cancel(struct plain_call *call);

/* Handles connection timeouts and resumed calls; and the time of the next such call. */
void plain_pool_process(struct plain_pool *pool);
nanos plain_pool_due(const struct plain_pool *pool);

/* ---- a response as it arrives: plain_response.c ---- */

enum plain_part {
    PLAIN_HEAD,
    PLAIN_LENGTH,      /* a body of known length; complete once nothing is left of it */
    PLAIN_CHUNK_SIZE,  /* the line before a chunk */
    PLAIN_CHUNK,       /* its bytes */
    PLAIN_CHUNK_END,   /* the line end after it */
    PLAIN_TRAILERS,    /* lines up to an empty one */
    PLAIN_UNTIL_CLOSE, /* a body that ends with the connection */
};

/* Starts zeroed; the caller releases `lines`. */
struct plain_response {
    enum plain_part part; /* the next one */
    bool is_of_head;      /* responds to HEAD: has no body */
    int status;
    struct text lines;     /* headers, as in struct relay_request */
    bool keeps, is_stream; /* the connection stays open; server-sent events */
    uint64_t left;         /* of the body or chunk */
};

/* Parses a head, or a line of the chunked coding, that begins here: the bytes consumed, 0: incomplete, -1: not HTTP.
 * The byte after the last one is NUL. */
ssize_t plain_response_parse(struct plain_response *response, const char *bytes, size_t length);
/* How many of the next bytes are body, to be passed to plain_response_take once delivered; 0: they are to be parsed. */
size_t plain_response_body(const struct plain_response *response, size_t length);
void plain_response_take(struct plain_response *response, size_t length);
bool plain_response_is_complete(const struct plain_response *response);

#endif
