/* A call is a POST whose response is a sequence of messages, each after five bytes: the compression flag and the length.
 * How it ended is in the trailers grpc-status and grpc-message; where there are none, the reason is found by asking the
 * server in other protocols. */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/params.h"
#include "core/memory.h"
#include "core/text.h"
#include "port/http.h"
#include "port/thread.h"

/* A connection on a busy machine takes seconds. */
#define CONNECT_TIMEOUT (5 * NS_PER_S)
/* Limit of a request that only finds out which protocol a server speaks. */
#define ASK_TIMEOUT (2 * NS_PER_S)
/* Between calls that fail: doubled from the first to the last. */
#define RETRY_FIRST  (100 * NS_PER_MS)
#define RETRY_LAST   (2 * NS_PER_S)
#define JOIN_TIMEOUT (3 * NS_PER_S)
/* Waits end by the wall clock, which may be set meanwhile. */
#define WAIT_MAX (200 * NS_PER_MS)

/* The oldest messages are dropped when nobody takes them. */
enum { QUEUE_MAX = 256, MESSAGE_MAX = 1 << 20, HEAD_SIZE = 5 };

enum { STATUS_OK = 0, STATUS_UNIMPLEMENTED = 12, STATUS_COUNT = 17 };

struct grpc_stream {
    char server[280]; /* "HOST:PORT" */
    char url[400];
    unsigned attempts;
    pthread_t thread;
    atomic_bool stopping;
    struct deadline retry;

    pthread_mutex_t lock; /* guards the following */
    pthread_cond_t arrived;
    struct grpc_message queue[QUEUE_MAX]; /* a ring */
    size_t first, count;
    enum err failed;  /* the thread has given up */
    struct error why; /* of the last call that failed; "" after a message */

    /* of the thread */
    struct params headers;
    struct text body; /* received, and not a complete message yet */
    struct error call_why;
    nanos sent;
    unsigned received; /* messages of this call */
    bool has_received; /* of any */
};

void grpc_message_release(struct grpc_message *message)
{
    free(message->bytes);
    *message = (struct grpc_message){0};
}

/* ---- messages ---- */

static enum err queue_message(struct grpc_stream *stream, const unsigned char *bytes, size_t length,
                              nanos t)
{
    struct grpc_message message = {.bytes = memory_resize(NULL, length + 1),
                                   .length = length,
                                   .sent = stream->sent,
                                   .t = t,
                                   .is_first = stream->received == 0};
    if (!message.bytes)
        return err_no_memory(&stream->call_why);
    memcpy(message.bytes, bytes, length);
    pthread_mutex_lock(&stream->lock);
    if (stream->count == QUEUE_MAX) {
        grpc_message_release(&stream->queue[stream->first]);
        stream->first = (stream->first + 1) % QUEUE_MAX;
        stream->count--;
    }
    stream->queue[(stream->first + stream->count++) % QUEUE_MAX] = message;
    stream->why = (struct error){0};
    thread_wake(&stream->arrived);
    pthread_mutex_unlock(&stream->lock);
    stream->received++;
    stream->has_received = true;
    return ERR_OK;
}

static enum err take_bytes(void *context, const char *bytes, size_t length, nanos t)
{
    struct grpc_stream *stream = context;
    struct text *body = &stream->body;
    enum err err = ERR_OK;
    text_add_bytes(body, bytes, length);
    while (!err && !body->failed && body->length >= HEAD_SIZE) {
        const unsigned char *head = (const unsigned char *)body->bytes;
        size_t size =
            (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
        if (head[0] != 0 || size > MESSAGE_MAX)
            return err_set(&stream->call_why, ERR_UNSUPPORTED,
                           "%s sent a compressed or too long message", stream->server);
        if (body->length < HEAD_SIZE + size)
            break;
        err = queue_message(stream, head + HEAD_SIZE, size, t);
        text_drop(body, HEAD_SIZE + size);
    }
    if (body->failed)
        return err_no_memory(&stream->call_why);
    return err;
}

/* ---- why a call failed ---- */

static const char *status_name(int status)
{
    static const char *const NAMES[STATUS_COUNT] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };
    return status >= 0 && status < STATUS_COUNT ? NAMES[status] : "unknown status";
}

/* A complete response: the call ended by itself, or it is not the response to a call. */
static enum err explain_response(const struct grpc_stream *stream,
                                 const struct http_response *response, struct error *why)
{
    const char *server = stream->server;
    if (response->grpc_status == STATUS_UNIMPLEMENTED)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s is a gRPC server without this service (UNIMPLEMENTED): check the port",
                       server);
    if (response->grpc_status > STATUS_OK)
        return err_set(why, ERR_LOST, "%s ended the call: %s%s%s", server,
                       status_name(response->grpc_status), response->grpc_message[0] ? ": " : "",
                       response->grpc_message);
    if (response->grpc_status == STATUS_OK)
        return err_set(why, ERR_LOST, "%s ended the stream", server);
    return err_set(why, ERR_UNSUPPORTED, "%s is not a gRPC server (HTTP status %d): check the port",
                   server, response->status);
}

/* Asks a server that closed the connection whether it speaks TLS, HTTP/1, or gRPC without this method: a server that
 * answers before it has read the request may reset the stream, and libcurl then has no response.  *why says which; ERR_OK:
 * none of them. */
static enum err ask_protocol(const struct grpc_stream *stream, struct http *http, struct error *why)
{
    enum { TLS, HTTP1, GRPC, QUESTIONS };
    static const char *const TEXTS[] = {
        [TLS] = "requires TLS, which is not supported: use a port without TLS",
        [HTTP1] = "is an HTTP/1 server, not a gRPC server: check the port"};
    enum err found = ERR_OK;
    for (int question = TLS; question < QUESTIONS && !found; question++) {
        char url[sizeof stream->server + 16];
        struct http_response response;
        chars_format(url, "%s://%s/", question == TLS ? "https" : "http", stream->server);
        const struct http_request request = {.method = question == GRPC ? "POST" : "GET",
                                             .url = question == GRPC ? stream->url : url,
                                             .headers = question == GRPC ? &stream->headers : NULL,
                                             .is_http2 = question == GRPC,
                                             .timeout = ASK_TIMEOUT,
                                             .cancel = &stream->stopping};
        enum err err = http_perform(http, &request, &response, NULL);
        (void)err; /* also for an untrusted certificate */
        if (question == GRPC && response.grpc_status == STATUS_UNIMPLEMENTED)
            found = explain_response(stream, &response, why);
        else if (question == TLS ? response.is_tls : question == HTTP1 && response.status > 0)
            found = err_set(why, ERR_UNSUPPORTED, "%s %s", stream->server, TEXTS[question]);
        http_response_release(&response);
    }
    return found;
}

/* Why a call ended; ERR_INTERRUPTED: by grpc_stream_free. */
static enum err explain_call(const struct grpc_stream *stream, struct http *http, enum err err,
                             const struct http_response *response, struct error *why)
{
    /* A server may reset the stream after its status. */
    if (!err || response->grpc_status >= 0)
        return explain_response(stream, response, why);
    bool is_silent = err == ERR_LOST && response->connected && !response->status;
    enum err found = is_silent && !stream->has_received ? ask_protocol(stream, http, why) : ERR_OK;
    return found ? found : err;
}

/* ---- calls ---- */

static enum err make_call(struct grpc_stream *stream, struct http *http)
{
    static const char EMPTY[HEAD_SIZE] = {0};
    struct http_response response;
    const struct http_request request = {.method = "POST",
                                         .url = stream->url,
                                         .headers = &stream->headers,
                                         .body = EMPTY,
                                         .body_length = sizeof EMPTY,
                                         .is_http2 = true,
                                         .connect_timeout = CONNECT_TIMEOUT,
                                         .cancel = &stream->stopping,
                                         .take = take_bytes,
                                         .context = stream};
    text_clear(&stream->body);
    stream->received = 0;
    stream->call_why = (struct error){0};
    stream->sent = clock_now();
    enum err err = http_perform(http, &request, &response, &stream->call_why);
    err = explain_call(stream, http, err, &response, &stream->call_why);
    http_response_release(&response);
    return err;
}

static bool is_permanent(enum err err)
{
    return err == ERR_UNSUPPORTED || err == ERR_USAGE || err == ERR_NO_MEMORY;
}

static void note_failure(struct grpc_stream *stream, enum err err, bool gives_up)
{
    pthread_mutex_lock(&stream->lock);
    stream->why = stream->call_why;
    stream->failed = gives_up ? err : ERR_OK;
    thread_wake(&stream->arrived);
    pthread_mutex_unlock(&stream->lock);
}

static void *stream_main(void *argument)
{
    struct grpc_stream *stream = argument;
    struct http *http = NULL;
    nanos pause = RETRY_FIRST;
    thread_name("ipw-grpc", -1);
    enum err err = http_open(&http, &stream->call_why);
    if (err)
        note_failure(stream, err, true);
    for (unsigned failures = 0; !err && !atomic_load(&stream->stopping);) {
        enum err ended = make_call(stream, http);
        failures = stream->received ? 0 : failures + 1;
        pause = stream->received ? RETRY_FIRST : pause;
        if (atomic_load(&stream->stopping))
            break;
        bool gives_up =
            is_permanent(ended) || (!stream->has_received && failures >= stream->attempts);
        note_failure(stream, ended, gives_up);
        if (gives_up)
            break;
        deadline_wait(&stream->retry, clock_now() + pause);
        pause = min_nanos(2 * pause, RETRY_LAST);
    }
    http_close(http);
    return NULL;
}

/* ---- the stream ---- */

static void release(struct grpc_stream *stream)
{
    for (; stream->count > 0; stream->count--) {
        grpc_message_release(&stream->queue[stream->first]);
        stream->first = (stream->first + 1) % QUEUE_MAX;
    }
    params_release(&stream->headers);
    text_release(&stream->body);
    pthread_cond_destroy(&stream->arrived);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

enum err grpc_stream_new(const struct grpc_stream_options *options, struct grpc_stream **out,
                         struct error *why)
{
    *out = NULL;
    struct grpc_stream *stream = memory_zeroed(1, sizeof *stream);
    if (!stream)
        return err_no_memory(why);
    stream->attempts = options->attempts;
    chars_copy(stream->server, options->server);
    chars_format(stream->url, "http://%s%s", options->server, options->method);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->arrived, NULL);
    deadline_init(&stream->retry);
    enum err err = params_set(&stream->headers, "Content-Type", "application/grpc");
    if (!err)
        err = params_set(&stream->headers, "TE", "trailers");
    if (!err)
        err = thread_start(&stream->thread, stream_main, stream);
    if (err)
        release(stream);
    else
        *out = stream;
    return err_explain(why, err);
}

void grpc_stream_free(struct grpc_stream *stream)
{
    if (!stream)
        return;
    atomic_store(&stream->stopping, true);
    deadline_wake(&stream->retry);
    if (thread_join(stream->thread, clock_now() + JOIN_TIMEOUT))
        release(stream);
}

enum err grpc_stream_next(struct grpc_stream *stream, nanos until, struct grpc_message *out,
                          struct error *why)
{
    enum err err = ERR_OK;
    pthread_mutex_lock(&stream->lock);
    for (nanos now = clock_now(); !stream->count && !stream->failed && now < until;
         now = clock_now())
        thread_wait(&stream->arrived, &stream->lock, min_nanos(until - now, WAIT_MAX));
    if (stream->count) {
        *out = stream->queue[stream->first];
        stream->queue[stream->first] = (struct grpc_message){0};
        stream->first = (stream->first + 1) % QUEUE_MAX;
        stream->count--;
    } else {
        err = stream->failed ? stream->failed : ERR_NO_DATA;
        if (why)
            *why = stream->why;
    }
    pthread_mutex_unlock(&stream->lock);
    return err;
}
