/* An HTTP/1.1 server on an event loop, based on libmicrohttpd, which only this module uses.  In a build without it
 * http_server_available returns an error.
 *
 * A request is passed to the handler when its body is complete; the response is sent at once or incrementally.  An
 * exchange ends when the client disconnects, whatever was still to be sent.  Everything runs in the loop's thread,
 * which repeats event_loop_run_once(loop, http_server_due(server)) and http_server_process(server).
 * http_server_close frees what http_server_open allocates; an exchange belongs to the server until `ended` has
 * returned. */
#ifndef IPW_PORT_HTTP_SERVER_H
#define IPW_PORT_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"

struct event_loop;
struct http_exchange;
struct http_server;

struct http_server_options {
    const char *address;            /* numeric or a name: "127.0.0.1", "::1" */
    unsigned port;                  /* 0: any free port */
    const char *tls_cert, *tls_key; /* PEM, both or neither; NULL: plain HTTP */
    size_t body_max;                /* bytes of a request's body; more is answered with 413 */
    unsigned connections_max;
    /* 0: the default. */
    nanos
        request_limit; /* for headers and body to arrive, and as much more as 16 KiB/s take; 10 s */
    nanos idle_limit;  /* of a connection without a request; 120 s */
    nanos write_limit; /* how long a client may accept no data; 30 s */
    void (*request)(void *context, struct http_exchange *exchange);
    /* All output was sent; may be NULL. */
    void (*drained)(void *context, struct http_exchange *exchange);
    /* Called for every request that was passed to the handler; complete: the client received all of it.  May be
     * NULL. */
    void (*ended)(void *context, struct http_exchange *exchange, bool complete);
    void *context;
};

/* Request line and headers longer than 16 KiB are answered with 431. */
enum err http_server_available(struct error *why) MUST_USE;
enum err http_server_open(struct event_loop *loop, const struct http_server_options *options,
                          struct http_server **out, struct error *why) MUST_USE;
void http_server_close(struct http_server *server);
unsigned http_server_port(const struct http_server *server);

/* Processes ready connections; and the time of the next call if nothing becomes ready before. */
void http_server_process(struct http_server *server);
nanos http_server_due(const struct http_server *server);

/* Stops accepting connections; open ones continue.  The port is free afterwards. */
void http_server_refuse(struct http_server *server);

/* ---- an exchange ---- */

const char *http_exchange_method(const struct http_exchange *exchange);
const char *http_exchange_target(const struct http_exchange *exchange); /* "/v1/models?x=%20" */
/* NULL if absent; valid until the exchange ends, as are the other results. */
const char *http_exchange_header(struct http_exchange *exchange, const char *name);
void http_exchange_headers(struct http_exchange *exchange,
                           void (*take)(void *context, const char *name, const char *value),
                           void *context);
/* The address of the client, without its port; "" where it is not known. */
enum { HTTP_PEER_MAX = 64 };
void http_exchange_peer(const struct http_exchange *exchange, char to[HTTP_PEER_MAX]);
const char *http_exchange_body(const struct http_exchange *exchange, size_t *length);

/* Data of the caller. */
void http_exchange_set_data(struct http_exchange *exchange, void *data);
void *http_exchange_data(const struct http_exchange *exchange);

/* A response: headers, begin, any number of sends, end.  length is that of the body, or HTTP_LENGTH_UNKNOWN; the
 * bytes sent must add up to it.  send copies.  With `whole` false the connection is closed early, so that the
 * client detects an incomplete response.  After http_exchange_end only `ended` may use the exchange. */
#define HTTP_LENGTH_UNKNOWN UINT64_MAX
void http_exchange_add_header(struct http_exchange *exchange, const char *name, const char *value);
void http_exchange_begin(struct http_exchange *exchange, int status, uint64_t length);
void http_exchange_send(struct http_exchange *exchange, const char *bytes, size_t length);
void http_exchange_end(struct http_exchange *exchange, bool whole);
size_t http_exchange_unsent(const struct http_exchange *exchange);

/* Sends a complete response. */
void http_exchange_reply(struct http_exchange *exchange, int status, const char *content_type,
                         const char *body, size_t length);

/* ---- access: http_access.c ---- */

/* Access control: which addresses may be listened on without a token, whether a request has the token, and which
 * Host and Origin headers are accepted.  Stateless. */

/* ERR_USAGE for a token that is too short, for an address that is not one of this machine and, unless is_open, for
 * one that can be reached from other machines without a token; `advice` is part of that message. */
enum err http_access_check(const char *address, const char *token, bool is_open, const char *advice,
                           struct error *why) MUST_USE;

/* Whether a connection to that URL reaches a listener on an address and port, after name resolution. */
struct url;
bool http_access_reaches(const char *address, unsigned port, const struct url *url);

/* Accepts Authorization: Bearer TOKEN and x-ipw-token; always true without a token. */
bool http_access_has_token(struct http_exchange *exchange, const char *token);

/* Whether a Host header names this server: the address it listens on, a loopback name or address, or one of
 * `allowed`, with any port.  With DNS rebinding a page of a foreign site sends that site's name. */
bool http_access_is_host(const char *host, const char *address, const char *const *allowed,
                         size_t count);

/* Whether an Origin header, where a browser sends one, matches this Host header; without TLS also with https, for a
 * TLS proxy in front. */
bool http_access_is_origin(const char *origin, const char *host, bool is_tls);

#endif
