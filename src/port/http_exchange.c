/* An exchange as its handler uses it: the request, and the response, which is encoded here and sent by http_server.c
 * once the handlers of this round have returned, so that a short response is one segment. */
#define _GNU_SOURCE
#include "port/http_exchange.h"

#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

void connection_set_ready(struct connection *connection)
{
    struct ready_list *ready = &connection->server->ready;
    if (connection->is_ready)
        return;
    connection->is_ready = true;
    connection->next_ready = NULL;
    *ready->last = connection;
    ready->last = &connection->next_ready;
}

/* ---- the request ---- */

const char *http_exchange_method(const struct http_exchange *exchange)
{
    return exchange->request.method;
}

const char *http_exchange_target(const struct http_exchange *exchange)
{
    return exchange->request.target;
}

const char *http_exchange_header(struct http_exchange *exchange, const char *name)
{
    return request_head_get(&exchange->request, name);
}

void http_exchange_headers(struct http_exchange *exchange,
                           void (*take)(void *context, const char *name, const char *value),
                           void *context)
{
    const char *at = exchange->request.headers, *end = exchange->request.headers_end;
    while (at < end) {
        const char *value = at + strlen(at) + 1;
        take(context, at, value);
        at = value + strlen(value) + 1;
    }
}

void http_exchange_peer(const struct http_exchange *exchange, char to[HTTP_PEER_MAX])
{
    const struct sockaddr_storage *peer = &exchange->connection->peer;
    socklen_t size =
        peer->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (getnameinfo((const struct sockaddr *)peer, size, to, HTTP_PEER_MAX, NULL, 0,
                    NI_NUMERICHOST))
        to[0] = '\0';
}

void http_exchange_trust(struct http_exchange *exchange)
{
    exchange->connection->is_known = true;
}

bool http_exchange_is_trusted(const struct http_exchange *exchange)
{
    return exchange->connection->is_known;
}

const char *http_exchange_body(const struct http_exchange *exchange, size_t *length)
{
    *length = exchange->body.length;
    return text_get(&exchange->body);
}

void http_exchange_set_data(struct http_exchange *exchange, void *data)
{
    exchange->data = data;
}

void *http_exchange_data(const struct http_exchange *exchange)
{
    return exchange->data;
}

/* ---- the response ---- */

/* RFC 9110, 15; a status of an upstream server that is not listed has no reason. */
static void add_status_line(struct text *out, int status)
{
    static const struct {
        int status;
        const char *reason;
    } ROWS[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {203, "Non-Authoritative Information"},
        {204, "No Content"},
        {205, "Reset Content"},
        {206, "Partial Content"},
        {300, "Multiple Choices"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {402, "Payment Required"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {407, "Proxy Authentication Required"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {426, "Upgrade Required"},
        {428, "Precondition Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {451, "Unavailable For Legal Reasons"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    const char *reason = "";
    for (size_t i = 0; i < COUNT_OF(ROWS) && ROWS[i].status <= status; i++)
        if (ROWS[i].status == status)
            reason = ROWS[i].reason;
    text_add(out, "HTTP/1.1 ");
    text_add_integer(out, status);
    text_add_bytes(out, " ", 1);
    text_add(out, reason);
    text_add_bytes(out, "\r\n", 2);
}

void http_exchange_add_header(struct http_exchange *exchange, const char *name, const char *value)
{
    struct text *lines = &exchange->headers;
    if (strpbrk(name, "\r\n:") || strpbrk(value, "\r\n"))
        return; /* an upstream server's, which would be another header or response here */
    if (str_equal_nocase(name, "Connection")) {
        exchange->closes = exchange->closes || str_list_has(value, "close");
        return;
    }
    text_add(lines, name);
    text_add_bytes(lines, ": ", 2);
    text_add(lines, value);
    text_add_bytes(lines, "\r\n", 2);
}

/* A number and the end of its line, without printf: each token of a stream has one. */
static void add_number_line(struct text *out, uint64_t number, unsigned base)
{
    char line[24], *end = line + sizeof line, *at = end - 2;
    memcpy(at, "\r\n", 2);
    do
        *--at = "0123456789ABCDEF"[number % base];
    while (number /= base);
    text_add_bytes(out, at, (size_t)(end - at));
}

void http_exchange_begin(struct http_exchange *exchange, int status, uint64_t length)
{
    const struct request_head *request = &exchange->request;
    struct text *out = &exchange->out;
    bool is_head = request->method && str_equal(request->method, "HEAD");
    bool is_empty = status == 204 || status == 304; /* and have no length */
    bool is_unknown = length == HTTP_LENGTH_UNKNOWN && !is_empty;
    exchange->answer = ANSWER_BEGUN;
    exchange->head_waits = true;
    exchange->has_body = !is_head && !is_empty;
    exchange->is_chunked = is_unknown && !request->is_http_1_0;
    exchange->left = length;
    /* Without chunks, the end of the connection ends the body. */
    exchange->closes = exchange->closes || !request->keeps || (is_unknown && request->is_http_1_0);
    add_status_line(out, status);
    text_add_bytes(out, text_get(&exchange->headers), exchange->headers.length);
    if (exchange->is_chunked)
        text_add(out, "Transfer-Encoding: chunked\r\n");
    else if (!is_unknown && !is_empty) {
        text_add(out, "Content-Length: ");
        add_number_line(out, length, 10);
    }
    if (exchange->closes)
        text_add(out, "Connection: close\r\n");
    else if (request->is_http_1_0)
        text_add(out, "Connection: keep-alive\r\n");
    text_add_bytes(out, "\r\n", 2);
    connection_set_ready(exchange->connection);
}

void http_exchange_send(struct http_exchange *exchange, const char *bytes, size_t length)
{
    struct text *out = &exchange->out;
    if (exchange->left != HTTP_LENGTH_UNKNOWN) {
        length = length < exchange->left ? length : (size_t)exchange->left;
        exchange->left -= length;
    }
    if (!length || !exchange->has_body)
        return;
    if (exchange->sent > out->length / 2) { /* moves unsent bytes to the front */
        text_drop(out, exchange->sent);
        exchange->sent = 0;
    }
    exchange->head_waits = false;
    if (exchange->is_chunked)
        add_number_line(out, length, 16);
    text_add_bytes(out, bytes, length);
    if (exchange->is_chunked)
        text_add_bytes(out, "\r\n", 2);
    connection_set_ready(exchange->connection);
}

void http_exchange_end(struct http_exchange *exchange, bool whole)
{
    bool is_short = exchange->has_body && exchange->left && exchange->left != HTTP_LENGTH_UNKNOWN;
    bool is_whole = whole && exchange->answer == ANSWER_BEGUN && !is_short;
    exchange->answer = is_whole ? ANSWER_WHOLE : ANSWER_CUT;
    exchange->head_waits = false;
    if (is_whole && exchange->has_body && exchange->is_chunked)
        text_add(&exchange->out, "0\r\n\r\n");
    connection_set_ready(exchange->connection);
}

size_t http_exchange_unsent(const struct http_exchange *exchange)
{
    return exchange->out.length - exchange->sent;
}

void http_exchange_reply(struct http_exchange *exchange, int status, const char *content_type,
                         const char *body, size_t length)
{
    http_exchange_add_header(exchange, "Content-Type", content_type);
    http_exchange_begin(exchange, status, length);
    http_exchange_send(exchange, body, length);
    http_exchange_end(exchange, true);
}
