/* The control law of `ipw govern`: selects the next clock or power limit.
 *
 * Pure: one reading in, one decision out.  Among the settings that meet the objectives (a latency below its SLO, a
 * power below its cap) it searches for the one with minimum energy: the lowest that the latency allows, unless a model
 * or the measured energy per token shows that a higher one costs less.  It relies on two bounds: in the worst case
 * latency is inversely proportional to the clock, and power proportional to its cube.  A step that meets the objective
 * by the bound meets it whatever part of the work is memory-bound.  If a step shows that the bound was too optimistic,
 * as with a queue, it is tightened.
 *
 * It does not oscillate: a setting that was too slow is blocked with exponential backoff, a step down is taken
 * only if it lands below the level at which a step up would be taken, and both levels follow the measured noise.  A
 * violated SLO, and missing readings, restore the default immediately.
 *
 * Ownership: governor_init copies the options but not their arrays, which must remain valid. */
#ifndef IPW_POWER_GOVERNOR_H
#define IPW_POWER_GOVERNOR_H

#include <stdbool.h>
#include <stddef.h>

struct governor_options {
    const double *settings; /* MHz or W, ascending; the last is the default */
    size_t count;
    double lowest;      /* lowest allowed setting */
    bool has_slo;       /* readings have a latency */
    double max_power_w; /* UNKNOWN: no cap */
    double elasticity; /* worst case: latency ~ setting^-elasticity: 1 for a clock, 2 for a limit */
    const double *slowdown; /* by a model, of each setting, relative to the default; NULL: none */
    const double *energy;   /* the same for energy */
    bool is_advice;         /* nothing is set: reports the next step from the default */
};

/* Means over the time since the last reading; UNKNOWN if there is none. */
struct governor_reading {
    double t_s;         /* from an arbitrary start; ascending */
    double latency;     /* relative to its SLO, the largest of several */
    double power_w;     /* of the device */
    double setting;     /* actual clock, MHz; may be below the one that was set */
    double utilization; /* 0..1 */
    double work_per_s;  /* tokens */
    bool is_waiting;    /* too few observations yet: not a reading, but not missing either */
};

enum governor_action {
    GOVERNOR_LEARN,    /* the first readings, or those right after a change */
    GOVERNOR_HOLD,     /* within the dead band, or no better setting is known */
    GOVERNOR_LOWER,    /* there is slack */
    GOVERNOR_RAISE,    /* close to the SLO, or below the power cap */
    GOVERNOR_CAP,      /* above the power cap */
    GOVERNOR_COSTLY,   /* the lower setting used more energy per token: revert */
    GOVERNOR_VIOLATED, /* SLO violated: default */
    GOVERNOR_OVERLOAD, /* SLO violated at the default: no remedy */
    GOVERNOR_STALE,    /* no more readings: default */
};
const char *governor_action_name(enum governor_action action); /* "learn" */

struct governor_decision {
    enum governor_action action;
    size_t index;    /* of the setting */
    bool is_default; /* the last one: nothing needs to be set */
    bool is_change;
};

/* One setting's readings since it was set. */
struct governor_level {
    unsigned count;
    double mean;  /* of ln latency; exponential moving average */
    double cost;  /* mean energy per unit of work; UNKNOWN */
    double watts; /* mean power; UNKNOWN */
};

struct governor {
    struct governor_options options;
    size_t at;
    struct governor_level now, before; /* before: at the setting `from` */
    double from;
    double last;                  /* ln latency of the last reading; UNKNOWN */
    double noise;                 /* standard deviation of ln latency */
    double cost_last, cost_noise; /* the same for ln energy per unit of work */
    double elasticity;            /* worst-case elasticity of latency, as measured */
    double model_factor;   /* by how much the model was too optimistic; UNKNOWN: it was wrong */
    bool is_model_proven;  /* a step had the predicted effect */
    bool is_flat;          /* latency did not respond to the last step */
    bool is_late;          /* it once responded several readings after a step */
    bool is_learned;       /* the last step has been compared with bound and model */
    size_t floor, ceiling; /* current lowest and highest setting */
    size_t over;           /* settings from this one on exceeded the power cap */
    unsigned floor_left, floor_span, over_left, over_span; /* readings for which these hold */
    double best_cost;         /* minimum energy per unit of work of these steps down ... */
    unsigned best_count;      /* its number of readings */
    size_t best;              /* ... and its setting */
    bool was_costlier;        /* the last reading was costlier than that */
    double left_cost;         /* of a setting that was left as costlier; UNKNOWN: confirmed */
    unsigned since_blocked;   /* readings since a setting was blocked */
    unsigned rest, rest_span; /* readings at the default after a violation */
    unsigned skip;            /* readings that still belong to the previous setting */
    unsigned unknown;         /* consecutive missing readings */
    double t_s;               /* time of the last reading */
};

/* settings: at least one. */
void governor_init(struct governor *governor, const struct governor_options *options);

struct governor_decision governor_step(struct governor *governor,
                                       const struct governor_reading *reading);

#endif
