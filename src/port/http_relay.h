/* Concurrent requests to an HTTP server on an event loop, with libcurl: bodies, also compressed ones, are passed
 * through unchanged, and connections are reused.  Everything runs in the loop's thread.  http_relay_free frees what
 * http_relay_new allocates; a call belongs to the relay until `done` has returned or it was canceled. */
#ifndef IPW_PORT_HTTP_RELAY_H
#define IPW_PORT_HTTP_RELAY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

struct event_loop;
struct http_relay;
struct relay_call;

struct relay_request {
    const char *method, *url;
    const struct text *headers; /* lines "Name: value", each with a NUL after it */
    const char *body;           /* borrowed until the call is over; NULL without one */
    size_t body_length;
    nanos connect_limit;
    bool is_local; /* the URL's host is this machine: no proxy is used */
    /* Status and headers, in the format above; then the body as it arrives, with the time of arrival.  take returns
     * false to pause until relay_call_resume; the same bytes are then passed again. */
    void (*head)(void *context, int status, const struct text *headers);
    bool (*take)(void *context, const char *bytes, size_t length, nanos t);
    /* Completion: ERR_OK, or the error with a one-line message that contains no secret. */
    void (*done)(void *context, enum err err, const char *why);
    void *context;
};

/* The value of a header in lines of that format; NULL if absent. */
const char *http_header_find(const struct text *lines, const char *name);

enum err http_relay_new(struct event_loop *loop, struct http_relay **out, struct error *why)
    MUST_USE;
void http_relay_free(struct http_relay *relay);

/* Processes pending work; and the time of the next call if nothing becomes ready before. */
void http_relay_process(struct http_relay *relay);
nanos http_relay_due(const struct http_relay *relay);

/* On failure no callback is called. */
enum err http_relay_start(struct http_relay *relay, const struct relay_request *request,
                          struct relay_call **out, struct error *why) MUST_USE;
void relay_call_resume(struct relay_call *call);
/* Cancels the call immediately, without `done`.  Must not be called from its own callbacks. */
void relay_call_cancel(struct relay_call *call);

#endif
