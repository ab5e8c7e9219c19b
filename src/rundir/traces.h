/* traces.jsonl: the turns of each query of an agent, in the format of the Python IPW (docs/formats.md), with our spans
 * and energies in an object "ipw" of each query.  Files of the Python IPW, old and new, can be read as well; missing
 * values are unknown.
 *
 * Ownership: loaded traces own their lists and the trees that their strings point into: traces_release.  A trace to be
 * written borrows its strings; query_trace_release frees its lists. */
#ifndef IPW_RUNDIR_TRACES_H
#define IPW_RUNDIR_TRACES_H

#include <stddef.h>

#include "core/err.h"
#include "core/json_field.h"

struct json;
struct text;

#include "rundir/traces.def"
#define TRACE_MEMBER(type, member) FIELD_C_##type member;

struct turn_trace {
    TRACE_TURN_FIELDS(TRACE_MEMBER)
    size_t tool_count; /* of tools_called */
};

struct span_trace {
    TRACE_SPAN_FIELDS(TRACE_MEMBER)
};

struct query_trace {
    TRACE_QUERY_HEAD(TRACE_MEMBER)
    TRACE_QUERY_FIELDS(TRACE_MEMBER)
    struct query_trace_ours {
        TRACE_OURS(TRACE_MEMBER)
    } ipw;
    struct turn_trace *turns;
    size_t turn_count;
    struct span_trace *spans; /* none in files of the Python IPW */
    size_t span_count;
    struct jv *tree; /* of a trace that was read */
};

struct traces {
    struct query_trace *items;
    size_t count, capacity;
    uint64_t damaged;        /* lines that are not traces */
    uint64_t missing;        /* for the summary: queries with a record but no trace */
    const struct jv *config; /* for the summary: the agent's configuration; may be NULL */
    size_t *slots;           /* hash table by key of indexes plus one; 0 is free */
    size_t slot_count;
};

/* The defaults of the Python IPW: mostly unknown. */
void turn_trace_init(struct turn_trace *turn);
void query_trace_init(struct query_trace *trace);
void query_trace_release(struct query_trace *trace);

/* Of a trace that was read: `evaluation` of its record, as text; NULL: none. */
void query_trace_put_score_metadata(struct query_trace *trace, const char *evaluation);

/* Computes sums from the turns.  If the query's energy is known but no turn's, it is divided among the turns by wall
 * clock, and ipw.energy_split says so. */
void query_trace_compute(struct query_trace *trace);

/* GPU and CPU energy: of the query, else the sum of its turns. */
double query_trace_gpu_joules(const struct query_trace *trace);
double query_trace_cpu_joules(const struct query_trace *trace);
double
query_trace_gpu_watts(const struct query_trace *trace); /* mean over turns, else the query's */
double query_trace_cpu_watts(const struct query_trace *trace);

/* A line, without its newline. */
void query_trace_to_json(const struct query_trace *trace, struct text *line);
/* The row of a key of that line; NULL: there is none. */
const struct json_field *query_trace_field(const char *key);

/* Loads and computes the traces of a run directory, in the order of the file; for a key that occurs twice, the last.
 * ERR_NOT_FOUND: no such file. */
bool traces_exist(const char *directory);
enum err traces_load(const char *directory, struct traces *out, struct error *why) MUST_USE;
void traces_release(struct traces *traces);

/* By the query's key; NULL: none. */
struct query_trace *traces_find(const struct traces *traces, const char *key);

/* The figures of the Python IPW's exporter for summary.json: totals, efficiency, averages, statistics, and those
 * without outliers, as members of an open object. */
void traces_summary_to_json(const struct traces *traces, struct json *json);

/* Rewrites traces.jsonl with one line per query, as other programs expect it: a run in progress has several. */
enum err traces_save(const char *directory, const struct traces *traces, struct error *why)
    MUST_USE;

/* Writes hf_dataset/ in a run directory: one row per query, as in the Python IPW. */
enum err traces_save_dataset(const char *directory, const struct traces *traces, struct error *why)
    MUST_USE;

#endif
