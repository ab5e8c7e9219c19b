/* A session with an MCP server: JSON-RPC requests and their responses over a transport.  Several threads may send
 * requests concurrently.
 *
 * mcp_session_open returns an initialized session, which mcp_session_close frees. */
#ifndef IPW_AGENT_TOOLS_MCP_MCP_SESSION_H
#define IPW_AGENT_TOOLS_MCP_MCP_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/err.h"
#include "core/units.h"

struct jv;
struct mcp_session;
struct text;
struct workspace;

/* When to give up waiting for a server. */
struct mcp_patience {
    nanos deadline;
    const atomic_bool *cancel; /* may be NULL */
};

static inline struct mcp_patience mcp_patience_of(nanos timeout, const atomic_bool *cancel)
{
    return (struct mcp_patience){clock_now() + timeout, cancel};
}

static inline bool mcp_is_canceled(const struct mcp_patience *patience)
{
    return patience->cancel && atomic_load(patience->cancel);
}

enum { MCP_ID_MAX = 2048 };

/* How an HTTP server recognizes the session.  Empty over stdio. */
struct mcp_identity {
    char id[MCP_ID_MAX]; /* "" if the server has none */
    char version[32];    /* of the protocol, chosen by the server */
    unsigned number;     /* of this initialization; 0: not initialized yet */
};

/* A request that waits for its response. */
struct mcp_pending {
    int64_t id;
    struct jv *answer; /* NULL: not received yet */
    bool is_sent;      /* set by the transport: the server may be processing it */
    bool is_expired;   /* set by the transport: rejected, the session is unknown */
    char *new_id;      /* set by the transport: ID of the session that the request created */
    struct mcp_pending *next;
};

struct mcp_message {
    const struct text *json;
    struct mcp_pending *pending; /* of a request; NULL: there is no response */
    const struct mcp_identity *identity;
    struct mcp_patience patience;
};

struct mcp_target {
    const char *address;               /* a command, or a URL; outlives the session */
    const char *shown;                 /* the same for messages, without a password */
    const char *token;                 /* for the Authorization header; NULL: none */
    const struct workspace *workspace; /* of the query; its path is "" for a shared server */
};

/* How messages get to a server and back. */
struct mcp_transport {
    const char *to_open; /* for messages: "cannot start" */
    /* Starts the server, or prepares requests to it; sets session->state, which close frees. */
    enum err (*open)(struct mcp_session *session, const struct mcp_target *target,
                     struct error *why);
    /* Sends a message and, if it is a request, waits until its response was passed to mcp_session_take. */
    enum err (*exchange)(struct mcp_session *session, const struct mcp_message *message,
                         struct error *why);
    void (*close)(struct mcp_session *session);
};

extern const struct mcp_transport mcp_stdio, mcp_http;

struct mcp_session {
    const struct mcp_transport *transport;
    void *state;            /* of the transport */
    pthread_mutex_t lock;   /* guards the following fields */
    pthread_cond_t changed; /* a response arrived, or the server ended */
    struct mcp_pending *first;
    int64_t next_id;
    bool has_ended; /* set by the transport: no further request can succeed */

    pthread_mutex_t initializing; /* guards the identity; held until it is complete */
    struct mcp_identity identity;
};

/* The timeout is for starting the server and its first response. */
enum err mcp_session_open(const struct mcp_transport *transport, const struct mcp_target *target,
                          nanos timeout, const atomic_bool *cancel, struct mcp_session **out,
                          struct error *why) MUST_USE;
void mcp_session_close(struct mcp_session *session);
bool mcp_session_has_ended(struct mcp_session *session);

struct mcp_request {
    const char *method;
    const char *params; /* JSON */
    nanos timeout;
    const atomic_bool *cancel; /* may be NULL */
};

/* The caller frees *answer, which has a "result" or an "error". */
enum err mcp_session_request(struct mcp_session *session, const struct mcp_request *request,
                             struct jv **answer, struct error *why) MUST_USE;

/* The same; an error reported by the server is returned as ours. */
enum err mcp_session_result(struct mcp_session *session, const struct mcp_request *request,
                            struct jv **answer, struct error *why) MUST_USE;

/* ---- for transports ---- */

/* Handles a message of the server: a response, a request, or a notification, which is ignored.  Bytes that are not JSON
 * are ignored as well: some servers print log lines to their standard output.  A request is answered with this identity
 * and patience. */
void mcp_session_take(struct mcp_session *session, const char *bytes, size_t length,
                      const struct mcp_identity *identity, const struct mcp_patience *patience);

/* The error of a message beyond the limit (LINE_LIMIT of wire/sse.h). */
enum err mcp_too_long(struct error *why);

#endif
