/* The lines of the journal and of spans.jsonl.  Only what is known is written: a missing key is null.  The
 * caller owns the text. */
#ifndef IPW_RUNNER_PROFILE_RECORD_H
#define IPW_RUNNER_PROFILE_RECORD_H

#include <stdbool.h>

#include "clients/client.h"
#include "core/err.h"
#include "core/energy.h"
#include "graders/grader.h"

struct profile;
struct query;
struct share;
struct text;

/* How one query went. */
struct answered {
    const struct query *query;
    const struct completion *reply; /* of the last attempt */
    enum err err;                   /* of the last attempt */
    const char *why;                /* one line; "" when it went well */
    unsigned attempts;
    nanos first_sent;   /* of the first attempt */
    const char *grader; /* NULL when it was not graded */
    struct grade grade;
};

/* A request until its energy is settled: the context of its trace, freed when its share is taken. */
struct pending {
    uint64_t id; /* for attribution */
    char key[40];
    unsigned attempt;                            /* from 1 */
    bool last;                                   /* the attempt that the query's record is about */
    double input_tokens, output_tokens, seconds; /* UNKNOWN when unknown */
    double prefill_s, decode_s;
    bool completed;
};

/* Where prefill ends and decode begins is seen only in an answer that is streamed in several pieces; an
 * answer of one token has one piece. */
bool reply_has_phases(const struct completion *reply);

void record_query(const struct profile *profile, const struct answered *outcome, struct text *line);

/* What the request spent; of an attempt that was tried again only that. */
void record_energy(const struct profile *profile, const struct pending *pending,
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
    uint64_t id; /* for attribution */
    char key[40];
    double gpu_joules, cpu_joules; /* of the query, for the task's total */
    /* Of judgements before it that came to no verdict; unknown without. */
    struct energy earlier;
    double earlier_gpu_joules, earlier_cpu_joules;
};

/* It has ended: prefill and decode, and when each piece arrived.  attempt counts from 1. */
void record_span(const struct profile *profile, enum span_kind kind, const char *key,
                 unsigned attempt, const struct completion *reply, struct text *line);

/* A judge's finding, and what it cost with the judgements before it. */
void record_grade(const struct profile *profile, const char *key, const char *grader,
                  const struct grade *grade, struct text *line);
void record_judge_energy(const struct profile *profile, const struct judgement *judgement,
                         const struct share *share, struct text *line);

/* Of a query whose energy stays unknown, why. */
void record_no_energy(const char *key, const char *field, const char *why, struct text *line);

#endif
