/* Selection among several settings (clocks, batches, precisions ...): the minimum of E T^n within limits, the
 * Pareto-optimal ones, and how flat the objective is around the minimum.  Pure; power/clock_choice.h provides the
 * figures.  Unknown figures are UNKNOWN; a point without a figure that a limit needs does not satisfy it. */
#ifndef IPW_POWER_OPTIMIZE_H
#define IPW_POWER_OPTIMIZE_H

#include <stdbool.h>
#include <stddef.h>

#include "metrics/efficiency.h"
#include "power/freq_model.h"

/* Latencies that an SLO can refer to, in seconds per query. */
enum optimize_latency {
    LATENCY_TTFT, /* time to first token */
    LATENCY_ITL, /* inter-token latency: the same percentile over a query's tokens as over the queries */
    LATENCY_TPOT,  /* time per output token after the first */
    LATENCY_QUERY, /* end-to-end latency */
    OPTIMIZE_LATENCIES
};
const char *optimize_latency_name(enum optimize_latency latency); /* "ttft" */

struct optimize_point {
    char setting[200]; /* "": the clock alone identifies the setting */
    size_t point;      /* of a sweep */
    double freq_mhz;   /* UNKNOWN: not a clock */
    struct freq_value figures[FREQ_FIGURES];
    double quality; /* in any unit */
    double temperature_c;
    struct freq_value latency[OPTIMIZE_LATENCIES]; /* for the SLOs of the goal only */
    double queries;                                /* queries per run, for these latencies */
    unsigned runs;                                 /* measurements; 0: a fit */
    double scatter
        [FREQ_FIGURES]; /* relative scatter of one run: / sqrt(runs) is the standard error; UNKNOWN */
    double saving_error; /* of its energy relative to the baseline's, a share; UNKNOWN */
    bool has_change;     /* of a fit: as in struct freq_prediction */
    double change[FREQ_FIGURES];
    bool is_extrapolated;
    bool is_predicted; /* a clock of a fit that was not measured itself */
    bool
        is_contradicted; /* what was measured there contradicts the fit, or a limit: not an optimum */
    bool is_front;       /* set by optimize_front */
};
static inline struct optimize_point optimize_point_unknown(void)
{
    struct optimize_point point = {.freq_mhz = UNKNOWN,
                                   .quality = UNKNOWN,
                                   .temperature_c = UNKNOWN,
                                   .queries = UNKNOWN,
                                   .saving_error = UNKNOWN};
    for (size_t k = 0; k < OPTIMIZE_LATENCIES; k++)
        point.latency[k] = (struct freq_value){UNKNOWN, UNKNOWN, UNKNOWN};
    for (size_t k = 0; k < FREQ_FIGURES; k++) {
        point.figures[k] = (struct freq_value){UNKNOWN, UNKNOWN, UNKNOWN};
        point.scatter[k] = UNKNOWN;
    }
    return point;
}

enum optimize_limit {
    LIMIT_SLOWDOWN = 0,    /* T / T(baseline) - 1 at most */
    LIMIT_TIME = 1,        /* seconds at most */
    LIMIT_POWER = 2,       /* watts at most */
    LIMIT_TEMPERATURE = 3, /* degrees Celsius at most */
    LIMIT_LATENCY = 4,     /* seconds at most: the first of OPTIMIZE_LATENCIES limits */
    LIMIT_QUALITY = LIMIT_LATENCY + OPTIMIZE_LATENCIES, /* share of the baseline's at least */
    LIMIT_CLOCK = LIMIT_QUALITY + 1,                    /* share of the baseline's at least */
    OPTIMIZE_LIMITS = LIMIT_CLOCK + 1
};
const char *optimize_limit_name(enum optimize_limit limit); /* "max_slowdown" */
static inline bool optimize_limit_is_latency(unsigned limit)
{
    return limit >= LIMIT_LATENCY && limit < LIMIT_QUALITY;
}

struct optimize_goal {
    double time_exponent;           /* n of E T^n: 0 energy, 1 EDP, 2 ED2P */
    bool is_time_only;              /* minimize T instead */
    double limits[OPTIMIZE_LIMITS]; /* UNKNOWN: none */
    double slo_quantile;            /* quantile of the queries for latency SLOs; 0: their mean */
    bool is_quality_falling;        /* lower is better: perplexity, FID, LPIPS */
};
/* EDP without limits. */
static inline struct optimize_goal optimize_goal_edp(void)
{
    struct optimize_goal goal = {.time_exponent = 1};
    for (size_t i = 0; i < OPTIMIZE_LIMITS; i++)
        goal.limits[i] = UNKNOWN;
    return goal;
}

static inline bool optimize_has_slo(const struct optimize_goal *goal)
{
    for (unsigned i = LIMIT_LATENCY; i < LIMIT_QUALITY; i++)
        if (is_known(goal->limits[i]))
            return true;
    return false;
}

static inline double optimize_objective(const struct optimize_goal *goal,
                                        const struct optimize_point *point)
{
    double seconds = point->figures[FREQ_TIME_S].value;
    return goal->is_time_only ? seconds
                              : energy_delay_product(point->figures[FREQ_ENERGY_J].value, seconds,
                                                     goal->time_exponent);
}
/* Bit mask (1 << limit) of the limits that a point violates. */
unsigned optimize_violations(const struct optimize_goal *goal,
                             const struct optimize_point *baseline,
                             const struct optimize_point *point);

/* Settings whose objective is this close to the optimum count as equivalent. */
#define OPTIMIZE_FLAT 0.01

struct optimum {
    unsigned binding; /* bits of the limits that exclude better settings; 0: none */
    bool is_found;
    size_t best; /* the first of equals */
    double objective;
    double low_mhz, high_mhz; /* range of the settings within OPTIMIZE_FLAT */
    size_t usable;            /* points with energy and time */
    size_t within;            /* of these, satisfying the limits */
    unsigned limits;          /* bits: if not found, the limits that exclude every usable point */
};
struct optimum optimize_pick(const struct optimize_goal *goal,
                             const struct optimize_point *baseline,
                             const struct optimize_point *points, size_t count);

/* Marks the Pareto-optimal points in energy, time and, where every point has one, quality.  Returns their number. */
size_t optimize_front(const struct optimize_goal *goal, struct optimize_point *points,
                      size_t count);

/* ---- settings other than clocks ---- */

struct params;

/* Measurements of settings (batch, precision, model file ...) from a CSV file: one point per setting, the median of
 * its rows, with its quality if there is a column for it. */
struct setting_source {
    const char *path;
    const char *settings;                 /* comma-separated columns that identify a setting */
    const char *quality;                  /* column; NULL: none */
    const struct params *columns, *where; /* as in struct freq_source */
};

struct setting_points {
    struct optimize_point *items; /* in the order of the file; the caller frees them */
    size_t count;
    size_t left_out; /* rows without a positive energy and time */
};

/* The index of a setting by its name; the count if there is none. */
size_t setting_points_find(const struct setting_points *points, const char *name);

/* ERR_BAD_VALUE names file, line and column; ERR_NO_DATA where no row is usable. */
enum err setting_points_read(const struct setting_source *source, struct setting_points *out,
                             struct error *why) MUST_USE;

/* Adds the quality of the points from a CSV file with the columns setting (as in the points) and value: FID, CLIP
 * score, LPIPS ... computed elsewhere.  Rows of one setting are averaged; a setting that is not in the file is
 * unknown, one that was not measured is an error. */
enum err setting_points_add_quality(const char *path, struct setting_points *points,
                                    struct error *why) MUST_USE;

#endif
