/* An agent: a model that calls tools, turn by turn, until it answers.  The whole of a query is recorded as one completion
 * (its answer, the sum of its tokens, from the first request to the last byte) and, event by event, in a trace.
 *
 * A struct agent may be used by several threads, each with a client of its own.  It borrows its options. */
#ifndef IPW_RUNNER_AGENT_AGENT_H
#define IPW_RUNNER_AGENT_AGENT_H

#include <stdatomic.h>

#include "core/err.h"
#include "core/units.h"

struct client;
struct client_request;
struct completion;
struct toolset;
struct trace_recorder;

/* How a model is told of its tools and makes its calls: by the service's own interface, or in text (wire/chat.h).  By
 * default the interface, and ReAct where the service or the model has none. */
enum agent_protocol { AGENT_AUTO, AGENT_NATIVE, AGENT_HERMES, AGENT_REACT };

struct agent_options {
    const struct toolset *tools;
    enum agent_protocol protocol;
    unsigned max_turns;  /* requests to the model, at most */
    unsigned retries;    /* of one request, after a transient error */
    nanos query_timeout; /* 0: none */
};

struct agent {
    const struct agent_options *options;
    atomic_bool in_text; /* the service rejected tools: all further requests have them in text */
};

struct agent_query {
    struct client *client;
    const struct client_request *request; /* the question; timeout is of one request */
    const char *key;                      /* of the query in the trace */
    const char *workspace;                /* a directory */
    struct trace_recorder *recorder;
};

/* On failure *out holds what had come, and another attempt is of no use: requests were retried here.  A query that ends
 * without an answer, because its turns are used up, has the finish reason "max_turns".  The caller releases *out. */
enum err agent_answer(struct agent *agent, const struct agent_query *query, struct completion *out,
                      struct error *why) MUST_USE;

#endif
