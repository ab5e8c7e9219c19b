/* Journal lines of a query: struct record (rundir/record.h) is filled with what is known at that time, and the journal
 * merges the lines.  The caller owns the text of a line. */
#ifndef IPW_RUNNER_PROFILE_RECORDS_H
#define IPW_RUNNER_PROFILE_RECORDS_H

#include <stdbool.h>

#include "attribute/span_cost.h"
#include "clients/client.h"
#include "core/energy.h"
#include "core/err.h"
#include "graders/grader.h"
#include "rundir/run_path.h"
#include "rundir/spans.h"

struct profile;
struct query;
struct share;
struct text;

/* The outcome of one query. */
struct answer {
    const struct query *query;
    const struct completion *reply; /* of the last attempt */
    enum err err;                   /* of the last attempt */
    const char *why;                /* one line; "" on success */
    unsigned attempts;
    nanos first_sent;     /* of the first attempt */
    bool canceled;        /* by its client, which is not a failure */
    bool paused;          /* the process or the machine was suspended during the last attempt */
    const char *metadata; /* JSON; NULL: that of the query's item */
    const char *grader;   /* NULL: not graded */
    struct grade grade;
    struct span_cost cost; /* of an agent's query; others cost what their tokens cost */
};

/* A request until its energy is settled: the context of its trace, freed when its share is taken. */
struct pending {
    uint64_t id; /* id for attribution */
    char key[QUERY_KEY_MAX];
    unsigned attempt;                            /* from 1 */
    bool last;                                   /* the attempt that the query's record describes */
    double input_tokens, output_tokens, seconds; /* or UNKNOWN */
    double prefill_s, decode_s;
    bool is_dropped; /* not in any journal */
    bool is_unknown; /* and not of a recorded endpoint: proxied.c */
    bool is_written; /* its energy is in the journal, and another share replaces it */
};

/* A judgment until its energy is settled, likewise. */
struct judgment {
    uint64_t id;
    char key[QUERY_KEY_MAX];
    double gpu_joules, cpu_joules; /* of the query, for the task's total */
    struct energy earlier;         /* of earlier judgments without a verdict */
    double earlier_gpu_joules, earlier_cpu_joules;
};

/* The boundary between prefill and decode is known only for an answer streamed in several chunks; an answer of one
 * token has one chunk. */
bool reply_has_phases(const struct completion *reply);

/* A query line, at the end of a query. */
void records_query(const struct profile *profile, const struct answer *answer, struct text *line);

/* An energy line, or one that replaces it: the share of a request; for an attempt that was retried, of that attempt
 * alone. */
void records_energy(const struct profile *profile, const struct pending *pending,
                    const struct share *share, struct text *line);

/* A grade line: the verdict of a judge; and its energy, including earlier judgments. */
struct graded_by {
    const char *grader;
    const char *judge; /* NULL; or the model whose verdict replaces the grader's "unread" */
};
void records_grade(const char *model, const char *key, const struct graded_by *by,
                   const struct grade *grade, struct text *line);
void records_judge_energy(const char *model, const struct judgment *judgment,
                          const struct share *share, struct text *line);

/* An energy line for a query whose energy, or whose judge's energy, stays unknown. */
void records_no_energy(const char *key, bool judge, const char *why, struct text *line);

/* A line of spans.jsonl, at the end of a request.  attempt counts from 1. */
void records_span(const struct profile *profile, enum span_kind kind, const char *key,
                  unsigned attempt, const struct completion *reply, struct text *line);

#endif
