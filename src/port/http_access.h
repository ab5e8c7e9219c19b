/* Who may use an HTTP server of ours: which addresses it may listen on without a token, whether a request has the token,
 * and for which host a browser believes to ask.  Nothing here keeps state. */
#ifndef IPW_PORT_HTTP_ACCESS_H
#define IPW_PORT_HTTP_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct http_exchange;

/* ERR_USAGE for a token that is too short, for what is no address, and, unless is_open, for one that other machines
 * reach while there is no token; `advice` says what to do then. */
enum err http_access_check(const char *address, const char *token, bool is_open, const char *advice,
                           struct error *why) MUST_USE;

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
