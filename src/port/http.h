/* An HTTP client based on libcurl, which only this module and port/http_relay.h use.  Where it is not installed,
 * http_available returns an error.
 *
 * A struct http keeps its connection between requests and is used by one thread at a time; open one per thread.
 * Times are clock_now when bytes arrive: libcurl's own timings are those of headers, not of content. */
#ifndef IPW_PORT_HTTP_H
#define IPW_PORT_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/params.h"
#include "core/text.h"
#include "core/units.h"

struct http;
struct url;

enum { HTTP_ERROR_BODY_MAX = 64 * 1024 };

struct http_request {
    const char *method; /* "GET", "POST" or "DELETE" */
    const char *url;
    const char *kept_header;      /* name of a response header to keep; NULL: none */
    const struct params *headers; /* may be NULL */
    const char *body;             /* may be NULL */
    size_t body_length;
    bool is_http2;             /* prior knowledge, as gRPC without TLS requires */
    nanos connect_timeout;     /* 0: 10 s */
    nanos timeout;             /* for the whole exchange; 0: none */
    const atomic_bool *cancel; /* may be NULL; set by any thread: ERR_INTERRUPTED soon after */
    /* Receives the decoded body of a 2xx response as it arrives; status and headers are set by then.  Any result
     * but ERR_OK ends the request and is returned by http_perform; the callback sets its own *why.  NULL discards
     * the body. */
    enum err (*take)(void *context, const char *bytes, size_t length, nanos t);
    /* Whether a redirect may be followed.  Any result but ERR_OK, with its own *why, ends the request.  NULL:
     * always. */
    enum err (*may_follow)(void *context, const struct url *next, struct error *why);
    void *context;
};

struct http_response {
    int status;       /* 0 without a response */
    nanos sent;       /* when the request was started */
    nanos first_byte; /* of the body; 0 without one */
    nanos done;
    char content_type[96];  /* lower case, without parameters */
    char server[96];        /* the header of that name; "" without */
    double retry_after_s;   /* from the header; UNKNOWN without */
    struct text kept;       /* value of the request's kept_header; "" without */
    int grpc_status;        /* the header or trailer of that name; -1 without */
    char grpc_message[128]; /* its text; "" without */
    struct text error_body; /* of a response that is not 2xx, at most HTTP_ERROR_BODY_MAX */
    bool connected;         /* false: the server was never reached */
    bool is_tls; /* the server answered a TLS handshake, with a trusted certificate or not */
};

enum err http_available(struct error *why) MUST_USE;
enum err http_open(struct http **out, struct error *why) MUST_USE;
void http_close(struct http *http);

/* ERR_OK when a complete response arrived, whatever its status; otherwise ERR_TIMEOUT, ERR_INTERRUPTED, ERR_NOT_FOUND
 * (no such host), ERR_LOST (the connection broke or was refused), ERR_USAGE (invalid URL or header), ERR_IO or what the
 * callback returned, with one line in *why that names the server and never a password.  A GET follows redirects, others
 * do not; `headers` are not sent to another origin than that of `url`.  Proxies come from the environment, as for curl, but never for localhost.  Release the response in any
 * case. */
enum err http_perform(struct http *http, const struct http_request *request,
                      struct http_response *out, struct error *why) MUST_USE;
static inline void http_response_release(struct http_response *response)
{
    text_release(&response->error_body);
    text_release(&response->kept);
}

/* A GET whose whole body replaces *body; more than `limit` bytes are ERR_BAD_VALUE.  Check the status: the body of a
 * response that is not 2xx is in out->error_body. */
enum err http_fetch(struct http *http, const char *url, const struct params *headers, nanos timeout,
                    size_t limit, struct text *body, struct http_response *out, struct error *why)
    MUST_USE;

/* ---- gRPC (grpc_stream.c) ---- */

/* The messages of a server-streaming gRPC call, over HTTP/2 without TLS and without a gRPC library.  A thread keeps the
 * call open, starts it again with increasing delays when it ends, and queues its messages with the times of their
 * arrival. */
struct grpc_stream;

struct grpc_stream_options {
    const char *server; /* "HOST:PORT" */
    const char *method; /* "/package.Service/Method"; its request is the empty message */
    unsigned attempts;  /* calls before the first message; later ones are always repeated */
};

struct grpc_message {
    unsigned char *bytes; /* owned: grpc_message_release */
    size_t length;
    nanos sent;    /* when its call was started: the server got the request after this */
    nanos t;       /* when it arrived */
    bool is_first; /* of its call */
};

enum err grpc_stream_new(const struct grpc_stream_options *options, struct grpc_stream **out,
                         struct error *why) MUST_USE;
void grpc_stream_free(struct grpc_stream *stream);

/* Takes the oldest message, waiting for one until a monotonic time (0: does not wait).  ERR_NO_DATA: there is none yet,
 * and *why is the reason if the last call failed; any other error: there will be none, because the server does not
 * have the method or could not be reached. */
enum err grpc_stream_next(struct grpc_stream *stream, nanos until, struct grpc_message *out,
                          struct error *why) MUST_USE;
void grpc_message_release(struct grpc_message *message);

#endif
