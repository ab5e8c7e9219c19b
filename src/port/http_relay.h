/* Requests to an HTTP server, many at once, on an event loop, with libcurl: bodies pass through as they are, compressed
 * ones too, and connections are kept and reused.  Everything runs in the thread that turns the loop.  http_relay_new
 * gives what http_relay_free frees; a call is the relay's, until `done` has returned or it was canceled. */
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
    bool is_local; /* the URL's host is this machine: no proxy of the environment is used */
    /* Status and headers, as above; then the body as it comes, with the time of its arrival.  take returns false to be
     * given nothing more until relay_call_resume; those bytes come again then. */
    void (*head)(void *context, int status, const struct text *headers);
    bool (*take)(void *context, const char *bytes, size_t length, nanos t);
    /* The end: ERR_OK, or how it failed, with one line that names no secret. */
    void (*done)(void *context, enum err err, const char *why);
    void *context;
};

enum err http_relay_new(struct event_loop *loop, struct http_relay **out, struct error *why)
    MUST_USE;
void http_relay_free(struct http_relay *relay);

/* Handles what is due; and when it must be called next, if nothing becomes ready before. */
void http_relay_turn(struct http_relay *relay);
nanos http_relay_due(const struct http_relay *relay);

/* On failure nothing is called. */
enum err http_relay_start(struct http_relay *relay, const struct relay_request *request,
                          struct relay_call **out, struct error *why) MUST_USE;
void relay_call_resume(struct relay_call *call);
/* Ends it at once, without `done`.  Not to be called by its own callbacks. */
void relay_call_cancel(struct relay_call *call);

#endif
