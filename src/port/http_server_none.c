/* A build without libmicrohttpd's header: nothing can be served, and every call returns an error. */
#include "core/units.h"
#include "port/http_server.h"

enum err http_server_available(struct error *why)
{
    return err_set(
        why, ERR_UNSUPPORTED,
        "built without libmicrohttpd's header: install libmicrohttpd-dev and build again");
}

enum err http_server_open(struct event_loop *loop, const struct http_server_options *options,
                          struct http_server **out, struct error *why)
{
    *out = NULL;
    return http_server_available(why);
}

void http_server_close(struct http_server *server)
{
}

unsigned http_server_port(const struct http_server *server)
{
    return 0;
}

void http_server_process(struct http_server *server)
{
}

nanos http_server_due(const struct http_server *server)
{
    return INT64_MAX;
}

void http_server_refuse(struct http_server *server)
{
}

const char *http_exchange_method(const struct http_exchange *exchange)
{
    return "";
}

const char *http_exchange_target(const struct http_exchange *exchange)
{
    return "";
}

const char *http_exchange_header(struct http_exchange *exchange, const char *name)
{
    return NULL;
}

void http_exchange_headers(struct http_exchange *exchange,
                           void (*take)(void *context, const char *name, const char *value),
                           void *context)
{
}

void http_exchange_peer(const struct http_exchange *exchange, char to[HTTP_PEER_MAX])
{
    to[0] = '\0';
}

void http_exchange_trust(struct http_exchange *exchange)
{
}

bool http_exchange_is_trusted(const struct http_exchange *exchange)
{
    return false;
}

const char *http_exchange_body(const struct http_exchange *exchange, size_t *length)
{
    *length = 0;
    return "";
}

void http_exchange_set_data(struct http_exchange *exchange, void *data)
{
}

void *http_exchange_data(const struct http_exchange *exchange)
{
    return NULL;
}

void http_exchange_add_header(struct http_exchange *exchange, const char *name, const char *value)
{
}

void http_exchange_begin(struct http_exchange *exchange, int status, uint64_t length)
{
}

void http_exchange_send(struct http_exchange *exchange, const char *bytes, size_t length)
{
}

void http_exchange_end(struct http_exchange *exchange, bool whole)
{
}

size_t http_exchange_unsent(const struct http_exchange *exchange)
{
    return 0;
}

void http_exchange_reply(struct http_exchange *exchange, int status, const char *content_type,
                         const char *body, size_t length)
{
}
