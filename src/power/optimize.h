/* Which of several settings (clocks, batches, precisions ...) is best: the least E T^n within limits, the
 * Pareto-optimal ones, and how flat the objective is around the best.  Pure: figures in, an answer out; where they come
 * from is power/clock_choice.h.  Unknown figures are UNKNOWN; a point with one that a limit needs is not within it. */
#ifndef IPW_POWER_OPTIMIZE_H
#define IPW_POWER_OPTIMIZE_H

#include <stdbool.h>
#include <stddef.h>

#include "metrics/efficiency.h"
#include "power/freq_model.h"

/* What a latency SLO may be of: seconds of a query. */
enum optimize_latency {
    LATENCY_TTFT, /* time to first token */
    LATENCY_ITL, /* inter-token latency: of a query's tokens the same percentile as of the queries */
    LATENCY_TPOT,  /* time per output token after the first */
    LATENCY_QUERY, /* from sending to the end of the answer */
    OPTIMIZE_LATENCIES
};
const char *optimize_latency_name(enum optimize_latency latency); /* "ttft" */

struct optimize_point {
    char setting[200]; /* "": the clock is all there is to say */
    double freq_mhz;   /* UNKNOWN: not a clock */
    struct freq_value figures[FREQ_FIGURES];
    double quality; /* in any unit */
    double temperature_c;
    struct freq_value latency[OPTIMIZE_LATENCIES]; /* of the SLOs alone, as the goal has them */
    double queries;                                /* of a run, of which these are */
    unsigned runs;                                 /* measurements; 0: a fit */
    double scatter
        [FREQ_FIGURES];  /* relative, of one run: / sqrt(runs) is the standard error; UNKNOWN */
    double saving_error; /* of its energy against the baseline's, a share; UNKNOWN */
    bool is_extrapolated;
    bool is_front; /* set by optimize_front */
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
    double limits[OPTIMIZE_LIMITS]; /* UNKNOWN: none */
    double slo_quantile;            /* of the queries that latency SLOs are for; 0: their mean */
    bool is_quality_falling;        /* a lower figure is better: perplexity, FID, LPIPS */
};
/* Without limits. */
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
    return energy_delay_product(point->figures[FREQ_ENERGY_J].value,
                                point->figures[FREQ_TIME_S].value, goal->time_exponent);
}
/* The bits (1 << limit) of the limits that a point is not within. */
unsigned optimize_broken(const struct optimize_goal *goal, const struct optimize_point *baseline,
                         const struct optimize_point *point);

/* Of settings whose objective is this close to the best one. */
#define OPTIMIZE_FLAT 0.01

struct optimum {
    unsigned binding; /* bits of the limits that keep better settings out; 0: none does */
    bool is_found;
    size_t best; /* the first of equals */
    double objective;
    double low_mhz, high_mhz; /* range of the settings within OPTIMIZE_FLAT */
    size_t usable;            /* points with energy and time */
    size_t within;            /* of these, within the limits */
    unsigned limits; /* bits: not found, and these limits exclude every usable point, or, where none
                                 does alone, exclude all together */
};
struct optimum optimize_pick(const struct optimize_goal *goal,
                             const struct optimize_point *baseline,
                             const struct optimize_point *points, size_t count);

/* Marks the points that no other beats in energy, time and, where every point has one, quality.  Returns how many. */
size_t optimize_front(const struct optimize_goal *goal, struct optimize_point *points,
                      size_t count);

/* ---- settings other than clocks alone ---- */

struct params;

/* Measurements of settings (batch, precision, model file ...) from a CSV file: one point per setting, the median of its
 * rows, with its quality where a column has one. */
struct setting_source {
    const char *path;
    const char *settings;                 /* columns that name a setting, with commas */
    const char *quality;                  /* column; NULL: none */
    const struct params *columns, *where; /* as of struct freq_source */
};

struct setting_points {
    struct optimize_point *items; /* in the order of the file; the caller frees them */
    size_t count;
    size_t left_out; /* rows without a positive energy and time */
};

/* ERR_BAD_VALUE names file, line and column; ERR_NO_DATA where no row is usable. */
enum err setting_points_read(const struct setting_source *source, struct setting_points *out,
                             struct error *why) MUST_USE;

/* Takes the quality of the points from a CSV file with the columns setting (as points have it) and value: FID, CLIP
 * score, LPIPS ... computed elsewhere.  Rows of one setting are averaged; a setting that is not in the file is unknown, one
 * that nobody measured an error. */
enum err setting_points_add_quality(const char *path, struct setting_points *points,
                                    struct error *why) MUST_USE;

#endif
