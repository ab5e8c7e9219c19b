/* An agent: a model that calls tools, turn by turn, until it answers, each query in a workspace of its own.  The whole of
 * a query is recorded as one completion (its answer, the sum of its tokens, from the first request to the last byte)
 * and, event by event, in a trace.
 *
 * agent_open fills an agent that agent_close frees; the options must outlive it.  In between it may be used by several
 * threads, each with a client of its own. */
#ifndef IPW_RUNNER_AGENT_AGENT_H
#define IPW_RUNNER_AGENT_AGENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "agent_tools/tool.h"
#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

struct client;
struct client_request;
struct completion;
struct trace_recorder;

/* How tools are described to a model and how it calls them: by the service's own interface, or in text (wire/chat.h).  By
 * default the interface, and ReAct where the service or the model has none. */
enum agent_protocol { AGENT_AUTO, AGENT_NATIVE, AGENT_HERMES, AGENT_REACT };
extern const char *const AGENT_PROTOCOLS[]; /* "auto", "native" ...; ends with NULL */
extern const char *const AGENT_SUMMARIES[]; /* of each, a line */

struct agent_options {
    struct toolset_options tools;
    enum agent_protocol protocol;
    unsigned max_turns;  /* requests to the model, at most */
    unsigned retries;    /* of one request, after a transient error */
    nanos query_timeout; /* 0: none */
    const char *command; /* of an agent that another program is, with {problem} in it; NULL: ours */
    bool
        no_inject_usage; /* its requests pass as they are: no token counts are requested in streams */
    const char *workspaces; /* where the workspaces of queries stay; NULL: they are removed */
};

struct agent {
    const struct agent_options *options;
    struct toolset tools;
    atomic_bool in_text; /* the service rejected tools: all further requests have them in text */
    char workspaces[512];
    bool is_temporary;    /* the folder of workspaces */
    struct text settings; /* how it is configured: one JSON object */
};

enum err agent_open(struct agent *agent, const struct agent_options *options, struct error *why)
    MUST_USE;
void agent_close(struct agent *agent);

struct agent_query {
    struct client *client;
    const struct client_request *request; /* the question; timeout is of one request */
    const char *key;                      /* of the query, in the trace and of its workspace */
    struct trace_recorder *recorder;
};

/* On failure *out holds what had come, and another attempt is of no use: requests were retried here.  A query that ends
 * without an answer, because its turns are used up, has the finish reason "max_turns".  The caller releases *out. */
enum err agent_answer(struct agent *agent, const struct agent_query *query, struct completion *out,
                      struct error *why) MUST_USE;

/* external.c: another program answers, with a recording proxy instead of the client's service. */
enum err agent_external(const struct agent *agent, const struct agent_query *query,
                        const char *workspace, struct completion *out, struct error *why) MUST_USE;

/* loop.c: the same in a workspace that is there. */
enum err agent_loop(struct agent *agent, const struct agent_query *query, const char *workspace,
                    struct completion *out, struct error *why) MUST_USE;

#endif
