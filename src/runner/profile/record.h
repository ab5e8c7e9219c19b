/* The lines of the journal.  Only what is known is written: a key that is missing is null. */
#ifndef IPW_RUNNER_PROFILE_RECORD_H
#define IPW_RUNNER_PROFILE_RECORD_H

#include <stdbool.h>

#include "clients/client.h"
#include "core/energy.h"
#include "core/err.h"
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
    SPAN_REQUEST,        /* a query's last attempt has ended */
    SPAN_FAILED_ATTEMPT, /* one before it */
    SPAN_JUDGE,          /* a judgement */
    SPAN_COUNT
};

/* A judgement, until its energy is settled. */
struct judgement {
    char key[40];
    double gpu_joules, cpu_joules; /* of the query, for the task's total */
    /* Of judgements before it that came to no verdict; unknown without. */
    struct energy earlier;
    double earlier_gpu_joules, earlier_cpu_joules;
};

/* It has ended: prefill and decode, and when each piece arrived.  attempt counts from 1. */
void record_span(const struct profile_context *context, enum span_kind kind, const char *key,
                 unsigned attempt, const struct completion *reply, struct text *line);

/* A judge's finding, and what it cost with the judgements before it. */
void record_grade(const struct profile_context *context, const char *key, const char *grader,
                  const struct grade *grade, struct text *line);
void record_judge_energy(const struct profile_context *context, const struct judgement *judgement,
                         const struct share *share, struct text *line);

/* Of a query whose energy stays unknown, why. */
void record_no_energy(const char *key, const char *field, const char *why, struct text *line);

#endif
