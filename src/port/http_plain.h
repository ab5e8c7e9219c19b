/* The path of http_relay to a server without TLS: HTTP/1.1 on our own keep-alive connections.  Private to port/.
 * libcurl takes several times as long for a short request, and three times the memory per open stream.  Ownership
 * is as in port/http_relay.h. */
#ifndef IPW_PORT_HTTP_PLAIN_H
#define IPW_PORT_HTTP_PLAIN_H

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

#endif
