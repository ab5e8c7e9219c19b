/* What every protocol shares while an answer comes in: pieces into the reply, within limits, and the
 * words for what goes wrong.  A struct intake borrows all that it points to. */
#ifndef IPW_CLIENTS_WIRE_INTAKE_H
#define IPW_CLIENTS_WIRE_INTAKE_H

#include "clients/client.h"

struct jv;

enum { CONTENT_LIMIT = 64 * 1024 * 1024 }; /* content and reasoning together */

struct intake {
    const struct client_request *request;
    struct client_reply *reply;
    const char *server; /* for messages */
    struct error *why;
};

/* A piece; NULL and "" are none. */
enum err intake_content(struct intake *intake, const char *piece, nanos t) MUST_USE;
enum err intake_reasoning(struct intake *intake, const char *piece, nanos t) MUST_USE;

/* A count of the server into *count, when it is a whole number that can be one. */
void intake_count(int64_t *count, const struct jv *value);

/* Seconds from a number in a unit (1e-9 for nanoseconds), when it is one. */
void intake_seconds(double *s, const struct jv *value, double unit);

/* ERR_BAD_VALUE that shows the beginning of what could not be read. */
enum err intake_malformed(struct intake *intake, const char *bytes, size_t length);

/* ERR_LOST, retryable: the answer ended before the server had said that it was done. */
enum err intake_cut_off(struct intake *intake);

#endif
