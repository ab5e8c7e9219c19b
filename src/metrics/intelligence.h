/* Intelligence per joule and per watt of a run, computed from its queries; docs/metrics.md has the
 * definitions.  Zero-initialize a tally, add every query, then call intelligence_of.  Pure functions over
 * plain data: nothing is allocated but a finding.
 *
 * There is one `ipj` and one `ipw`.  The Python IPW computes two and three variants of them, which
 * disagree; the upstream_* figures reproduce those, for comparison with its reports. */
#ifndef IPW_METRICS_INTELLIGENCE_H
#define IPW_METRICS_INTELLIGENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/descriptive.h"

struct findings;

/* ---- repeats ---- */

/* Standard errors when questions were asked several times: the sampling unit is the question, and its
 * repeats are not independent samples.  Pure functions; nothing is owned. */

/* One question: sums over its answered repeats. */
struct question {
    double index;         /* index of the question */
    double right, graded; /* correct and graded answers */
    double joules, known; /* energy of the answers whose energy is known, and their number */
};

struct repeats {
    size_t questions; /* 0: each was asked once, so repeats need no correction */
    /* Effective sample size of the accuracy: the graded answers over their design effect, or the number
     * of questions when all or none are correct. */
    double effective;
    /* Standard errors; UNKNOWN below two questions. */
    double accuracy_error, joules_error, ipj_error;
};

/* Merges answers, each given as a question of its own, into questions sorted by index at the front of the
 * array; returns the number of questions. */
size_t questions_merge(struct question *answers, size_t count);

struct repeats repeats_of(const struct question *questions, size_t count);

enum query_outcome {
    OUTCOME_CORRECT,
    OUTCOME_INCORRECT,
    OUTCOME_UNGRADED, /* answered, but not graded */
    OUTCOME_FAILED,   /* no complete answer */
    OUTCOME_UNREAD,   /* the grader could not read the answer: graded, and not correct */
};

/* correct: 1, 0 or, without a verdict, negative; unread as in grading_is_unread. */
enum query_outcome query_outcome_of(bool completed, int correct, int unread);

/* One query; unknown figures are UNKNOWN. */
struct intelligence_query {
    enum query_outcome outcome;
    double joules;        /* energy attributed to it on all counted devices, idle power included */
    double active_joules; /* energy above the idle baseline */
    double seconds;       /* from request to completion */
    double gpu_joules;    /* GPUs only, as the Python IPW counts */
    double gpu_watts;     /* mean power of the GPUs */
    bool hides_unread;    /* graded by a version that did not distinguish unread answers */
};

struct intelligence_tally {
    uint64_t correct, incorrect, unread, ungraded, failed;
    bool hides_unread;                   /* of a query: the number of unread answers is unknown */
    struct online joules, active_joules; /* over answered queries */
    /* Graded queries with known energy: the covariance of correctness and energy. */
    struct online graded_right, graded_joules;
    double right_by_joules;        /* sum of the products of both deviations from their means */
    struct online upstream_joules; /* over all answered queries */
    double upstream_seconds;
    struct online upstream_graded_joules, upstream_graded_watts;
    struct repeats repeats; /* filled in by the caller when questions were repeated */
};

void intelligence_add(struct intelligence_tally *tally, const struct intelligence_query *query);

/* Energy of the counted devices while at least one query was in flight. */
struct busy_energy {
    double joules;
    double plus_minus; /* standard uncertainty of joules */
    double seconds;    /* time covered; overlapping queries count once */
};

struct intelligence {
    uint64_t energy_queries;     /* answered queries with known energy, which the means are over */
    uint64_t graded;             /* correct, incorrect and unread */
    double accuracy;             /* correct / graded */
    double unread, unread_share; /* number of unread answers, and of the graded; may be UNKNOWN */
    double accuracy_at_most;     /* if all unread answers were correct; UNKNOWN as these */
    double accuracy_low, accuracy_high; /* 95 % interval (Wilson), over questions */
    double accuracy_error; /* standard error; from Wilson's interval when all or none are correct */
    double joules_per_query, active_joules_per_query;
    double ipj;             /* accuracy / joules_per_query */
    double ipj_statistical; /* standard error of ipj over queries (sampling error) */
    double ipj_plus_minus;  /* with the calibration uncertainty of the sensors added */
    double ipj_active;      /* accuracy / active_joules_per_query */
    double busy_watts;      /* busy.joules / busy.seconds */
    double ipw;             /* accuracy / busy_watts */
    double ipw_plus_minus;

    double upstream_ipj_mean_query; /* accuracy / mean GPU joules per query: its analysis */
    double upstream_ipj_total;      /* accuracy / GPU joules of all queries: exporter, panel */
    double upstream_ipw_mean_query; /* accuracy / mean of the queries' GPU powers: analysis */
    double upstream_ipw_total;      /* accuracy / (all GPU joules / all seconds): panel */
};

/* calibration: relative standard uncertainty of the sensors, common to all runs; when it is UNKNOWN,
 * ipj_plus_minus is too. */
void intelligence_of(const struct intelligence_tally *tally, const struct busy_energy *busy,
                     double calibration, struct intelligence *out);

/* How many answers are unread, and the bound that they put on the accuracy, in a sentence; "" if none is. */
void intelligence_unread(const struct intelligence *figures, char *to, size_t size);

/* Raises unread_answers, with that sentence, if more than this share of the graded answers is unread. */
#define INTELLIGENCE_UNREAD_MAX 0.1
bool intelligence_check(const struct intelligence *figures, struct findings *out);

#endif
