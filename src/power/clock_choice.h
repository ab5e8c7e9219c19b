/* The best clock of an application (power/optimize.h), from a fitted model or from measured medians, with the
 * information needed before setting it: savings relative to the fitted highest clock with their interval, regret, and
 * when there is no meaningful result.  Also one clock for several applications of a GPU.
 *
 * Ownership: clock_choice_release frees a choice. */
#ifndef IPW_POWER_CLOCK_CHOICE_H
#define IPW_POWER_CLOCK_CHOICE_H

#include "power/data_checks.h"
#include "power/optimize.h"

enum choice_flag {
    CHOICE_NO_OPTIMUM = 1,    /* no meaningful optimum: see the reason */
    CHOICE_NO_SETTING = 2,    /* none satisfies the limits */
    CHOICE_MEASURED = 4,      /* measured medians, including the baseline: nothing was fitted */
    CHOICE_NO_INTERVAL = 8,   /* the saving has no ± */
    CHOICE_LOWEST = 16,       /* the best is the lowest known setting: a lower one may be better */
    CHOICE_STAY = 32,         /* the baseline is the best: the highest clock, or its setting */
    CHOICE_FAR_BASELINE = 64, /* fmax itself was not usable: the fit is extrapolated to it */
    CHOICE_SLOW_BASELINE = 128, /* slower than a lower clock: cold, or another workload */
    CHOICE_UNCHECKED = 256,     /* a model loaded from a file: its measurements are not available */
    CHOICE_NO_REPEATS = 512,    /* single runs as measured: differences may be noise */
    CHOICE_BELOW_MAX = 1024,    /* the GPU has higher clocks than were measured */
    CHOICE_NEAR_SLO = 2048,     /* the interval of a latency includes its SLO */
    CHOICE_PREDICTED = 4096,    /* the best clock was not measured */
};
/* Calls back with the name of every flag and data check of a choice. */
struct clock_choice;
void clock_choice_flags(const struct clock_choice *choice,
                        void (*take)(void *context, const char *name), void *context);

struct clock_question {
    const struct freq_curve
        *curve; /* names and fmax; its samples unless the model is from a file */
    const struct freq_model *model;
    bool is_always_fitted;        /* fit even a few clocks, which are otherwise used as measured */
    const struct freq_data *data; /* NULL: the model is from a file */
    const struct clock_list
        *clocks;              /* supported clocks; NULL or without this GPU: the measured ones */
    double lowest_mhz;        /* lowest clock that the model was fitted to */
    const char *void_because; /* why no optimum is meaningful; NULL: unknown */
    struct optimize_goal goal;
};

/* Steady state: temperature = ambient_c + resistance x power, fitted to the measurements of the GPU. */
struct thermal_fit {
    double ambient_c,
        resistance_c_per_w; /* UNKNOWN: too few temperatures, or they do not rise with power */
    size_t count;           /* measurements */
};

struct clock_choice {
    struct thermal_fit thermal;
    char gpu[40], application[64];
    const char *model;             /* its kind; NULL: as measured */
    size_t measured;               /* clocks */
    struct optimize_point *points; /* ascending in clock; their fronts marked */
    size_t count;
    struct optimize_point baseline; /* the fit at fmax */
    struct optimum optimum;
    bool is_recommended;         /* points[optimum.best] */
    char reason[240];            /* "": recommended */
    double saving, saving_error; /* relative to the baseline's energy; error: 90 % */
    const char *error_method;    /* NULL: none */
    double slowdown;             /* share */
    double regret_mean,
        regret_max; /* of the clocks that refits choose; relative to the best objective */
    size_t refits;
    unsigned flags;            /* enum choice_flag */
    bool found[FINDING_CODES]; /* in the data */
};

enum err clock_choice_of(const struct clock_question *question, struct clock_choice *out,
                         struct error *why) MUST_USE;
/* For settings other than clocks: measured points (owned by the choice afterwards), including the baseline.
 * void_because: why no optimum is meaningful; NULL: unknown.  Repeats give the ±; a best setting whose objective
 * does not differ significantly from the baseline's is not recommended. */
enum err clock_choice_of_settings(struct optimize_point *points, size_t count, size_t baseline,
                                  const struct optimize_goal *goal, const char *void_because,
                                  struct clock_choice *out, struct error *why) MUST_USE;
/* The percentile of latencies (sorted in place) for an SLO, with an interval by order statistics at FREQ_LEVEL;
 * UNKNOWN if they are too few for its upper end.  p 0: the mean, by Student's t. */
struct freq_value clock_choice_latency(double *seconds, size_t count, double p);
void clock_choice_release(struct clock_choice *choice);

/* The effect of a clock according to a choice's points. */
struct clock_effect {
    bool is_known; /* the clock is one of them and satisfies the limits */
    double regret, saving, saving_error, slowdown;
};
struct clock_effect clock_choice_at(const struct clock_choice *choice,
                                    const struct optimize_goal *goal, double mhz);

/* One clock for all applications of a GPU: minimizes the mean, or the maximum, of their regrets. */
enum policy_rule { POLICY_MEAN, POLICY_MINIMAX };
struct clock_policy {
    char gpu[40];
    double freq_mhz;     /* UNKNOWN: no clock satisfies all limits */
    size_t applications; /* with a recommendation */
    double regret_mean, regret_max;
    double saving_mean, saving_error; /* error: 90 %, assuming independent applications; UNKNOWN */
};
/* For GPUs with at least two such applications, into out[count]; returns their number. */
size_t clock_policies_of(const struct clock_choice *choices, size_t count,
                         const struct optimize_goal *goal, enum policy_rule rule,
                         struct clock_policy *out);

#endif
