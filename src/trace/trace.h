/* Agent traces: events recorded as they happen, and the tree of spans built from them (query, turns, inferences with
 * prefill and decode, tools, sub-agents).
 *
 * A recorder may be used by any thread.  Its events are taken one query at a time, when that query has ended.
 * Inconsistent events (an end without a start, a duplicate, clock skew) never fail: they are repaired, and counted in
 * struct trace_problems.
 *
 * Ownership: strings passed to a recorder are copied.  trace_recorder_free, trace_events_release and trace_tree_release
 * free what trace_recorder_new, trace_recorder_take and trace_tree_build allocate. */
#ifndef IPW_TRACE_TRACE_H
#define IPW_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/units.h"

enum trace_type {
#define TYPE(constant, name)  TRACE_##constant,
#define POINT(constant, name) TRACE_##constant,
#include "trace/types.def"
    TRACE_TYPES
};
enum trace_edge { TRACE_START, TRACE_END, TRACE_POINT };

const char *trace_type_name(enum trace_type type); /* "lm_inference" */
bool trace_type_is_span(enum trace_type type);

/* Attributes of a span in an event; UNKNOWN, NULL or 0 if not given.  Of two events of a span, the later one with a
 * value counts. */
struct trace_facts {
    double input_tokens, output_tokens, reasoning_tokens, cached_tokens;
    double result_tokens; /* of a tool's result */
    double cost_usd;
    double cpu_s;         /* CPU time of a tool's processes in its span */
    nanos first_token;    /* of an inference: where prefill ends and decode begins */
    nanos last_token;     /* not after the first: the reply came in one chunk and shows no phases */
    const char *error;    /* why it failed */
    const char *metadata; /* a JSON object, kept unchanged */
};

struct trace_event {
    enum trace_type type;
    enum trace_edge edge;
    nanos at; /* monotonic; 0: now */
    const char
        *query; /* the query's key; NULL if only one query is in flight, or the id identifies it */
    const char *id;     /* correlation id that pairs start and end; NULL: paired by type and name */
    const char *parent; /* id of the span that contains it; NULL: by time */
    const char *name;   /* of the tool, model or agent */
    double
        cpu_busy_s; /* busy time of all CPUs so far; read by the recorder for current tool calls */
    struct trace_facts facts;
};

/* An event with only these fields known. */
static inline struct trace_event trace_event_new(enum trace_type type, enum trace_edge edge,
                                                 const char *query, const char *id)
{
    return (struct trace_event){
        .type = type,
        .edge = edge,
        .query = query,
        .id = id,
        .cpu_busy_s = UNKNOWN,
        .facts = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 0, 0, NULL, NULL},
    };
}

/* ---- recording ---- */

struct trace_recorder;
struct trace_recorder *trace_recorder_new(void);
void trace_recorder_free(struct trace_recorder *recorder);

void trace_event(struct trace_recorder *recorder, const struct trace_event *event);

/* An event as a line of JSON (docs/agents.md), as sent by other programs: {"type": "tool_call_start", "correlation_id":
 * ..., "timestamp": epoch seconds or "timestamp_ns": monotonic, "query_id": ..., "metadata": {...}}.  `query` is the
 * query known to send it, whatever the line says; NULL: taken from the line.  ERR_BAD_VALUE if it is not such an
 * object. */
enum err trace_event_line(struct trace_recorder *recorder, const char *query, const char *line,
                          size_t length, struct error *why) MUST_USE;

/* Further events of a query are dropped, and counted. */
enum { TRACE_EVENTS_MAX = 20000 };

/* The events of one query, in the order of recording; removed from the recorder. */
struct trace_events {
    struct trace_event *items;
    size_t count, capacity;
};
void trace_recorder_take(struct trace_recorder *recorder, const char *query,
                         struct trace_events *out);
void trace_events_release(struct trace_events *events);

/* Drops the events of a query except those that `revise` records again. */
typedef void trace_revise(void *context, const struct trace_events *events);
void trace_recorder_revise(struct trace_recorder *recorder, const char *query, trace_revise *revise,
                           void *context);

/* ---- spans ---- */

/* Inconsistencies of events, and how they were repaired. */
struct trace_problems {
    size_t events;
    size_t no_end;       /* starts without an end: closed at the end of their parent */
    size_t no_start;     /* ends without a start: dropped */
    size_t duplicates;   /* dropped */
    size_t out_of_order; /* an end recorded before its start: paired */
    size_t skewed;       /* spans that would end before they start, or outside their parent */
    size_t ambiguous;    /* concurrent spans of the same name without ids: paired in order */
    size_t unknown_type; /* dropped */
    size_t too_many;     /* above TRACE_EVENTS_MAX: dropped */
};
/* "2 events without an end (closed with their turn), ..."; "" without any. */
void trace_problems_text(const struct trace_problems *problems, char *to, size_t size);

struct trace_span {
    enum trace_type type;
    const char *id, *name; /* "" without */
    nanos from, to;
    int parent;  /* index in the tree; -1: of the query */
    int turn;    /* index of its turn among those of the query, from 0; -1 outside of turns */
    bool no_end; /* closed by the builder */
    bool
        made_up; /* without an event: a turn inferred from inferences, a phase inferred from a first token */
    double cpu_share; /* of the CPU time of the machine in its span; UNKNOWN */
    struct trace_facts facts;
};

struct trace_tree {
    struct trace_span *spans; /* the query first; parents before children, siblings by start */
    size_t count;
    size_t retries, errors; /* events */
    struct trace_problems problems;
    struct trace_events events; /* storage of the strings */
};

/* Takes ownership of the events, also on failure.  The query lasts from `from` to `to`; 0: as long as its events. */
void trace_tree_build(struct trace_events *events, nanos from, nanos to, struct trace_tree *out);
void trace_tree_release(struct trace_tree *tree);

#endif
