/* Internal to the proxy: headers and API keys (headers.c), observing requests and responses (observer.c), totals and
 * recent requests (status.c).  All functions run in the proxy's thread.  Everything with an init function has a release
 * function. */
#ifndef IPW_PROXY_OBSERVER_H
#define IPW_PROXY_OBSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/energy.h"
#include "core/slice.h"
#include "core/text.h"
#include "core/units.h"
#include "proxy/proxy.h"
#include "wire/responses.h"

/* ---- headers.c: to be sent as lines "Name: value", each with a NUL after it ---- */

/* Validation by RFC 9110 and 9112: a token, no control characters, a path without spaces. */
bool header_is_name(const char *name);
bool header_is_value(const char *value);
bool header_is_target(const char *target);

/* Keys and tokens of a client, from its request's headers; NULL if absent. */
enum { KEY_HEADERS = 3 };
struct client_keys {
    const char *token;               /* x-ipw-token */
    const char *values[KEY_HEADERS]; /* Authorization, x-api-key, api-key */
    bool is_anthropic;               /* a client of Anthropic's API, which takes x-api-key */
};
/* A visitor of http_exchange_headers; the context is a client_keys. */
void keys_take(void *context, const char *name, const char *value);
/* A hash of all of them; 0: there are none. */
uint64_t keys_hash(const struct client_keys *keys);
/* Whether one of them is the proxy's token; NULL: the proxy requires none. */
bool keys_are_authorized(const struct client_keys *keys, const char *token);

/* Registers the client's keys as secrets, and writes the label of its API key; nothing if it has none. */
void keys_label(const struct client_keys *keys, const struct proxy_options *options, char *to,
                size_t size);

/* Adds the names in a Connection header to a list, which is for the functions below; there may be several.  The second
 * function does so for lines. */
void header_list_connection(struct text *list, const char *name, const char *value);
void header_lines_connection(const struct text *lines, struct text *list);
bool header_is_hop_by_hop(const char *name, const char *connection);
/* Whether a client's header is sent upstream: not labels, hop-by-hop headers, the proxy's own token, and those that the
 * options replace. */
bool header_is_forwarded(const struct proxy_options *options, const char *name, const char *value,
                         const char *connection);
void header_add(struct text *lines, const char *name, const char *value);
/* Adds those of the options, and our API key for a client without one. */
void header_add_ours(struct text *lines, const struct proxy_options *options,
                     const struct client_keys *keys);

/* ---- observer.c ---- */

/* An inference endpoint: one row of the table in observer.c. */
struct proxy_endpoint;
/* By the suffix of the path, whatever the prefix ("/v1", "/openai/v1"); NULL: not a known inference endpoint. */
const struct proxy_endpoint *observe_endpoint(const char *method, const char *path,
                                              const char *body, size_t length);
/* Whether a request to another path is known not to be inference: by its method, or by the known or the options'
 * patterns. */
bool observe_is_other(const char *method, const char *path, const struct proxy_options *options);
/* Whether --inject-usage applies to it. */
bool endpoint_has_usage_option(const struct proxy_endpoint *endpoint);

/* Fills in the path, and from the body the model and whether a stream is requested. */
void observe_request(struct proxy_request *request, const char *path, const char *body,
                     size_t length);
/* Copies a label from a request header; NULL: none. */
void observe_label(char *to, size_t size, const char *value);

/* Parses a response while it is forwarded.  If it cannot be parsed, token counts stay unknown, with the reason in the
 * completion's count_problem; the client still gets the whole response. */
struct observer {
    struct proxy_request *request;
    struct error why;
    const struct response_format *format; /* of the reader; NULL: the response is not read */
    union response_state reader;
    enum err err; /* first error of the reader */
};
/* Fills in the request's endpoint and its times: now. */
void observer_init(struct observer *observer, struct proxy_request *request,
                   const struct proxy_endpoint *endpoint);
/* Call when status and headers are known. */
void observer_begin(struct observer *observer, int status, const struct text *headers);
void observer_take(struct observer *observer, const char *bytes, size_t length, nanos t);
/* Whether the response is complete by the end marker of its format, even if the transport has not ended. */
bool observer_is_complete(const struct observer *observer);
/* Fills the request's err and why from the result of the transfer. */
void observer_end(struct observer *observer, enum err transport, const char *why);
void observer_release(struct observer *observer);

/* Writes the body with "stream_options":{"include_usage":true} added.  False if it is not a stream, or already
 * requests usage: it is then forwarded unchanged. */
bool usage_inject(const char *body, size_t length, struct text *out);

/* Removes the event that usage_inject requested from a stream. */
struct usage_filter {
    struct text held; /* an incomplete event */
    size_t scanned;   /* bytes of it already searched for the separator */
    bool is_long;     /* its start has been forwarded: it is longer than any usage event */
};
/* Appends to *out the bytes to forward. */
void usage_filter_feed(struct usage_filter *filter, const char *bytes, size_t length,
                       struct text *out);
void usage_filter_end(struct usage_filter *filter, struct text *out);

/* ---- status.c ---- */

struct status;
struct status *status_new(void);
void status_free(struct status *status);

void status_begin(struct status *status, const struct proxy_request *request);
void status_count_other(struct status *status);
void status_count_unknown(struct status *status); /* inference without a record */
void status_end(struct status *status, const struct proxy_request *request);
void status_settle(struct status *status, uint64_t id, const struct energy *energy, bool again);

void status_metrics(const struct status *status, uint64_t unrecorded, struct text *out);
/* The `max` newest requests, newest first. */
void status_requests(const struct status *status, size_t max, struct text *out);

#endif
