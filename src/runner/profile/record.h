/* The lines of the journal.  Only what is known is written: a key that is missing is null. */
#ifndef IPW_RUNNER_PROFILE_RECORD_H
#define IPW_RUNNER_PROFILE_RECORD_H

#include <stdbool.h>

#include "clients/client.h"
#include "core/err.h"
#include "core/record.h"
#include "graders/grader.h"

struct profile_context;
struct query;
struct share;
struct text;

/* How one query went. */
struct answered {
    const struct query *query;
    const struct completion *reply; /* of the last attempt */
    enum err err;                     /* of the last attempt */
    const char *why;                  /* one line; "" when it went well */
    unsigned attempts;
    nanos first_sent;   /* of the first attempt */
    const char *grader; /* NULL when it was not graded */
    struct grade grade;
};

/* What attribution needs to know of a request until its energy is settled; freed by who takes it from
 * the trace's id. */
struct pending {
    char key[40];
    unsigned attempt;                            /* from 1 */
    bool last;                                   /* the attempt that the query's record is about */
    double input_tokens, output_tokens, seconds; /* UNKNOWN when unknown */
    double prefill_s, decode_s;
    bool completed;
    bool restored;       /* by a later start, from what a kill left */
    unsigned cut_off_in; /* the start in which a kill cut it off; 0: it ended */
};

/* Where the prefill ends and the decode begins is seen only in an answer that comes in pieces, one
 * after another; an answer of one token has no more than one. */
bool reply_has_phases(const struct completion *reply);

void record_query(const struct profile_context *context, const struct answered *outcome,
                  struct text *line);

/* What the request spent; of an attempt that was tried again only that. */
void record_energy(const struct profile_context *context, const struct pending *pending,
                   const struct share *given, struct text *line);

/* Lines of spans.jsonl, times in seconds from the start's zero. */
enum span_kind {
    SPAN_SENT,           /* a request is about to be sent: if nothing follows, a kill cut it off */
    SPAN_REQUEST,        /* a query's last attempt has ended */
    SPAN_FAILED_ATTEMPT, /* one before it */
    SPAN_BROKEN_OFF,     /* a request was broken off by the user: as if never sent */
    SPAN_JUDGE_SENT,     /* the same of a judgement */
    SPAN_JUDGE,
    SPAN_JUDGE_BROKEN_OFF,
    SPAN_COUNT
};
const char *span_name(enum span_kind kind);

/* A judgement, until its energy is settled. */
struct judgement {
    char key[40];
    double gpu_joules, cpu_joules; /* of the query, for the task's total */
    /* Of judgements before it that came to no verdict; unknown without. */
    struct energy earlier;
    double earlier_gpu_joules, earlier_cpu_joules;
    bool restored; /* as in struct pending */
};

struct span_id {
    const char *key;
    unsigned attempt;                  /* from 1 */
    const struct judgement *judgement; /* NULL unless it is one */
};

/* It was sent, or broken off, at t. */
void record_moment(const struct profile_context *context, enum span_kind kind,
                   const struct span_id *id, nanos t, struct text *line);

/* It has ended: prefill and decode, and when each piece arrived. */
void record_span(const struct profile_context *context, enum span_kind kind,
                 const struct span_id *id, const struct completion *reply, struct text *line);

/* A judge's finding, and what it cost with the judgements before it. */
void record_grade(const struct profile_context *context, const char *key, const char *grader,
                  const struct grade *grade, struct text *line);
void record_judge_energy(const struct profile_context *context, const struct judgement *judgement,
                         const struct share *share, struct text *line);

/* Of a query whose energy stays unknown, why. */
void record_no_energy(const char *key, const char *field, const char *why, struct text *line);

#endif
