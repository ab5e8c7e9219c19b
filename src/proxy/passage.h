/* The parts of the proxy: headers (headers.c), reading what passes (passage.c), totals and recent requests (status.c).
 * Internal to this folder; all of it runs in the proxy's thread.  Whatever has an init has a release. */
#ifndef IPW_PROXY_PASSAGE_H
#define IPW_PROXY_PASSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/energy.h"
#include "core/slice.h"
#include "core/text.h"
#include "core/units.h"
#include "proxy/proxy.h"
#include "wire/responses.h"

/* ---- headers.c: lines "Name: value", each with a NUL after it ---- */

void header_add(struct text *lines, const char *name, const char *value);
const char *header_find(const struct text *lines, const char *name); /* its value; NULL without */

/* As RFC 9110 and 9112 have them: a token, no control characters, a path without spaces. */
bool header_is_name(const char *name);
bool header_is_value(const char *value);
bool header_is_target(const char *target);

/* Of one connection, not of the message; `connection` is the value of that header, NULL without. */
bool header_is_hop_by_hop(const char *name, const char *connection);

/* ---- passage.c ---- */

/* By the end of the path, whatever precedes it ("/v1", "/openai/v1"). */
enum proxy_kind observe_kind(const char *method, const char *path);

/* A request is there: its times, its path, and of its body the model and whether it asks for a stream. */
void observe_request(struct proxy_request *request, const char *path, const char *body,
                     size_t length);
/* A label that a client gave; NULL: none. */
void observe_label(char *to, size_t size, const char *value);

/* Reads a response as it passes.  What cannot be read leaves counts unknown, with the reason in the completion's
 * count_problem: the client has its answer all the same. */
struct observer {
    struct proxy_request *request;
    struct error why;
    union {
        struct openai_response openai;
        struct ollama_response ollama;
    } reader;
    struct text document; /* of embeddings */
    bool is_read;         /* the reader is initialized */
    enum err err;         /* the first that it gave */
};
void observer_init(struct observer *observer, struct proxy_request *request);
/* The status and headers are known; `encoding` is the value of Content-Encoding, NULL without. */
void observer_begin(struct observer *observer, int status, const char *encoding);
void observer_take(struct observer *observer, const char *bytes, size_t length, nanos t);
/* Whether all of an answer has come, with the end that its format has: what may follow is of the transport. */
bool observer_is_whole(const struct observer *observer);
/* Fills the request's err and why, by how its transport ended. */
void observer_end(struct observer *observer, enum err transport, const char *why);
void observer_release(struct observer *observer);

/* The request with "stream_options":{"include_usage":true}; false when it is no stream or asks for usage itself, and
 * passes as it is. */
bool usage_inject(const char *body, size_t length, struct text *out);

/* Takes the event that usage_inject caused out of a stream. */
struct usage_filter {
    struct text held; /* an event that is not complete */
    size_t scanned;   /* bytes of it in which its end is not */
    bool is_long;     /* its beginning has passed: longer than any event with counts */
};
/* Appends to *out what may pass. */
void usage_filter_feed(struct usage_filter *filter, const char *bytes, size_t length,
                       struct text *out);
void usage_filter_end(struct usage_filter *filter, struct text *out);

/* ---- status.c ---- */

struct status;
struct status *status_new(void);
void status_free(struct status *status);

void status_begin(struct status *status, const struct proxy_request *request);
void status_count_other(struct status *status);
void status_end(struct status *status, const struct proxy_request *request);
void status_settle(struct status *status, uint64_t id, const struct energy *energy);

void status_metrics(const struct status *status, uint64_t unrecorded, struct text *out);
/* The newest `most` requests, newest first. */
void status_requests(const struct status *status, size_t most, struct text *out);

#endif
