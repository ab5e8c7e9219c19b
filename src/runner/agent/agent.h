/* An agent: a model that calls tools, turn by turn, until it answers, each query in its own workspace.  A query is
 * recorded as one completion (its answer, the sum of its tokens, from the first request to the last byte) and, event by
 * event, in a trace.
 *
 * agent_open fills an agent that agent_close frees, and that must not move; the options must outlive it.  Several threads may use it, each with
 * its own client. */
#ifndef IPW_RUNNER_AGENT_AGENT_H
#define IPW_RUNNER_AGENT_AGENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "agent_tools/tool.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"
#include "port/out_of_memory.h"

struct client;
struct client_request;
struct completion;
struct jv;
struct trace_recorder;

/* How tools are described to a model and called: through the service's API, or in text (wire/chat.h).  Auto: the API,
 * or ReAct if the service or the model does not support it. */
enum agent_protocol { AGENT_AUTO, AGENT_NATIVE, AGENT_HERMES, AGENT_REACT };
extern const char *const AGENT_PROTOCOLS[]; /* "auto", "native" ...; ends with NULL */
extern const char *const AGENT_SUMMARIES[]; /* one line about each */

struct agent_options {
    struct toolset_options tools;
    enum agent_protocol protocol;
    unsigned max_turns;     /* maximum number of requests to the model */
    unsigned retries;       /* per request, after a transient error */
    nanos query_timeout;    /* 0: none */
    const char *command;    /* of an external agent, with {problem}; NULL: the built-in loop */
    bool no_inject_usage;   /* forward its requests unchanged, without requesting token counts */
    const char *workspaces; /* where the workspaces are kept; NULL: they are removed */
};

struct agent {
    const struct agent_options *options;
    struct toolset tools;
    atomic_bool in_text; /* the service rejected tools: further requests describe them in text */
    char *workspaces;    /* the folder of workspaces; NULL: not made */
    bool is_temporary;   /* of that folder */
    struct last_action remove; /* of that folder */
    struct jv *settings;       /* the configuration, an object */
};

enum err agent_open(struct agent *agent, const struct agent_options *options, struct error *why)
    MUST_USE;
void agent_close(struct agent *agent);

struct agent_query {
    struct client *client;
    const struct client_request *request; /* the question; timeout is per request */
    const char *key;                      /* of the query; also names its workspace */
    struct trace_recorder *recorder;
};

/* On failure *out holds the partial response, and the query should not be retried: requests were retried here.  A
 * query that ran out of turns has the finish reason "max_turns".  The caller releases *out. */
enum err agent_answer(struct agent *agent, const struct agent_query *query, struct completion *out,
                      struct error *why) MUST_USE;

/* external.c: an external program answers, with a recording proxy in place of the client's service. */
enum err agent_external(const struct agent *agent, const struct agent_query *query,
                        const char *workspace, struct completion *out, struct error *why) MUST_USE;

/* loop.c: the built-in loop, in an existing workspace. */
enum err agent_loop(struct agent *agent, const struct agent_query *query, const char *workspace,
                    struct completion *out, struct error *why) MUST_USE;

#endif
