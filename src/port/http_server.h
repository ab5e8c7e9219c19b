/* An HTTP/1.1 server on an event loop, with libmicrohttpd, which only this module knows.  In a build without it
 * http_server_available says so.
 *
 * A request is handed over when its body is complete; the answer is sent at once or in pieces, as they come.  A client
 * that goes away ends its exchange, whatever was still to be sent.  Everything runs in the thread that turns the loop:
 * event_loop_turn(loop, http_server_due(server)), http_server_turn(server), again and again.  http_server_open gives what http_server_close
 * frees; an exchange is the server's, until `ended` has returned. */
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
    unsigned port;                  /* 0: any that is free */
    const char *tls_cert, *tls_key; /* PEM, both or neither; NULL: plain HTTP */
    size_t body_max;                /* bytes of a request's body; more is answered with 413 */
    unsigned connections_max;
    /* 0: the usual limit. */
    nanos
        request_limit; /* for headers and body to arrive, and as much more as 16 KiB/s take; 10 s */
    nanos idle_limit;  /* of a connection without a request; 120 s */
    nanos write_limit; /* in which a client must take some of what is sent; 30 s */
    void (*request)(void *context, struct http_exchange *exchange);
    /* Nothing is left to send; NULL: not asked for. */
    void (*drained)(void *context, struct http_exchange *exchange);
    /* For every request that was handed over; complete: the client has got all of it.  NULL: not asked for. */
    void (*ended)(void *context, struct http_exchange *exchange, bool complete);
    void *context;
};

/* Request line and headers longer than 16 KiB are answered with 431. */
enum err http_server_available(struct error *why) MUST_USE;
enum err http_server_open(struct event_loop *loop, const struct http_server_options *options,
                          struct http_server **out, struct error *why) MUST_USE;
void http_server_close(struct http_server *server);
unsigned http_server_port(const struct http_server *server);

/* Handles what has become ready; and when it must be called next, if nothing becomes ready before. */
void http_server_turn(struct http_server *server);
nanos http_server_due(const struct http_server *server);

/* Takes no more connections; those that are open go on.  The port is free afterwards. */
void http_server_refuse(struct http_server *server);

/* ---- an exchange ---- */

const char *http_exchange_method(const struct http_exchange *exchange);
const char *http_exchange_target(const struct http_exchange *exchange); /* "/v1/models?x=%20" */
/* NULL without one; valid until the exchange ends, as is what the others give. */
const char *http_exchange_header(struct http_exchange *exchange, const char *name);
void http_exchange_headers(struct http_exchange *exchange,
                           void (*take)(void *context, const char *name, const char *value),
                           void *context);
/* The address of the client, without its port; "" where it is not known. */
enum { HTTP_PEER_MAX = 64 };
void http_exchange_peer(const struct http_exchange *exchange, char to[HTTP_PEER_MAX]);
const char *http_exchange_body(const struct http_exchange *exchange, size_t *length);

/* The caller's own. */
void http_exchange_set_data(struct http_exchange *exchange, void *data);
void *http_exchange_data(const struct http_exchange *exchange);

/* An answer: headers, begin, any number of sends, end.  length is that of the body, or HTTP_LENGTH_UNKNOWN; what is sent
 * must be of that length.  send copies.  With `whole` false the connection is cut, so that the client sees that
 * something is missing.  After http_exchange_end nothing may be called but in `ended`. */
#define HTTP_LENGTH_UNKNOWN UINT64_MAX
void http_exchange_add_header(struct http_exchange *exchange, const char *name, const char *value);
void http_exchange_begin(struct http_exchange *exchange, int status, uint64_t length);
void http_exchange_send(struct http_exchange *exchange, const char *bytes, size_t length);
void http_exchange_end(struct http_exchange *exchange, bool whole);
size_t http_exchange_unsent(const struct http_exchange *exchange);

/* A whole answer. */
void http_exchange_reply(struct http_exchange *exchange, int status, const char *content_type,
                         const char *body, size_t length);

/* ---- access: http_access.c ---- */

/* Who may use a server: which addresses it may listen on without a token, whether a request has the token,
 * and for which host a browser believes to ask.  Nothing here keeps state. */

/* ERR_USAGE for a token that is too short, for what is no address of this machine, and, unless is_open, for one that others
 * reach while there is no token; `advice` says what to do then. */
enum err http_access_check(const char *address, const char *token, bool is_open, const char *advice,
                           struct error *why) MUST_USE;

/* Whether a connection to that URL arrives at what listens on an address and a port, by what their names lead to. */
struct url;
bool http_access_reaches(const char *address, unsigned port, const struct url *url);

/* As Authorization: Bearer TOKEN or x-ipw-token; always without a token. */
bool http_access_has_token(struct http_exchange *exchange, const char *token);

/* Whether a Host header names this server: the address that it listens on, a name or address of loopback, or one of
 * `allowed`, with any port.  A page of a foreign site whose name is made to lead here (DNS rebinding) sends its own. */
bool http_access_is_host(const char *host, const char *address, const char *const *allowed,
                         size_t count);

/* Whether an Origin header, where a browser sends one, is that of the pages under this Host header; without TLS also by
 * https, of a proxy in front. */
bool http_access_is_origin(const char *origin, const char *host, bool is_tls);

#endif
