/* Intelligence per joule and per watt of a run, from its queries.  Plain data, pure; zero-initialise
 * a tally, add every query, ask.  docs/metrics.md has the definitions.
 *
 * There is one `ipj` and one `ipw`.  The Python IPW has two and three of them, which disagree; they
 * are here under names of their own, to compare with its reports. */
#ifndef IPW_METRICS_INTELLIGENCE_H
#define IPW_METRICS_INTELLIGENCE_H

#include <stdint.h>

#include "metrics/repeats.h"
#include "stats/online.h"

enum query_outcome {
    OUTCOME_CORRECT,
    OUTCOME_INCORRECT,
    OUTCOME_UNGRADED, /* answered, but nobody could say whether right */
    OUTCOME_FAILED,   /* no whole answer came */
};

/* One query; UNKNOWN where a figure is not known. */
struct intelligence_query {
    enum query_outcome outcome;
    double joules;        /* its share of all counted devices, idle included */
    double active_joules; /* the same above the idle baseline */
    double seconds;       /* from the request to its end */
    double gpu_joules;    /* of the GPUs alone, and their mean power: what the Python IPW counts */
    double gpu_watts;
};

struct intelligence_tally {
    uint64_t correct, incorrect, ungraded, failed;
    struct online joules, active_joules; /* of queries that were answered */
    struct online failed_joules;         /* of those that were not: told, and in no mean */
    /* Graded queries of known energy: how being right goes along with energy. */
    struct online graded_right, graded_joules;
    double right_by_joules;        /* sum of products of both distances from their means */
    struct online upstream_joules; /* of all answered queries */
    double upstream_seconds;
    struct online upstream_graded_joules, upstream_graded_watts;
    struct repeats repeats; /* the caller's to fill in where questions were asked several times */
};

void intelligence_add(struct intelligence_tally *tally, const struct intelligence_query *query);

/* The counted devices while at least one query was under way. */
struct busy_energy {
    double joules;
    double plus_minus; /* standard uncertainty of joules */
    double seconds;    /* the time covered; overlapping queries count once */
};

struct intelligence {
    uint64_t answered;       /* correct + incorrect + ungraded */
    uint64_t energy_queries; /* answered queries of known energy: what the means are over */
    double accuracy;         /* correct / (correct + incorrect) */
    double accuracy_low, accuracy_high; /* 95 % interval (Wilson), over questions */
    double accuracy_error; /* standard error; of all or none right, by Wilson's interval */
    double joules_per_query, active_joules_per_query;
    double ipj;             /* accuracy / joules_per_query */
    double ipj_statistical; /* standard error of ipj: other queries would give another figure */
    double ipj_plus_minus;  /* the same with the calibration of the sensors */
    double ipj_active;      /* accuracy / active_joules_per_query */
    double busy_watts;      /* busy.joules / busy.seconds */
    double ipw;             /* accuracy / busy_watts */
    double ipw_plus_minus;
    double failed_joules; /* spent on queries that failed; UNKNOWN when none is known */

    double upstream_ipj_mean_query; /* accuracy / mean GPU joules of a query: its analysis */
    double upstream_ipj_total;      /* accuracy / GPU joules of all queries: exporter, panel */
    double upstream_ipw_mean_query; /* accuracy / mean of the queries' GPU powers: analysis */
    double upstream_ipw_total;      /* accuracy / (all GPU joules / all seconds): panel */
};

/* calibration: the relative standard uncertainty that the sensors have in every run; UNKNOWN when it
 * is not known, and then ipj_plus_minus is too. */
void intelligence_of(const struct intelligence_tally *tally, const struct busy_energy *busy,
                     double calibration, struct intelligence *out);

#endif
