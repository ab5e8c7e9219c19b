/* Levels are logarithms of latency / SLO, so that noise, bounds and steps add up.  A step down targets MARGIN below the
 * SLO, a step up is triggered at RAISE below it; both are widened by the noise. */
#include "power/governor.h"

#include <math.h>

#include "core/units.h"

enum {
    FIRST_READINGS = 2,   /* readings before the first step */
    SETTLED = 6,          /* readings before a step once settled */
    SKIPPED_READINGS = 1, /* readings after a change that mix two settings */
    BACKOFF = 3,          /* readings at the default after a violation, doubled each time ... */
    BACKOFF_MAX = 48,     /* ... up to this */
    BLOCKED = 30,         /* readings for which a setting is blocked, doubled each time ... */
    BLOCKED_MAX = 960,    /* ... up to this */
    COST_BLOCKED = 120,   /* the same for its energy: a property of card and model */
    MISSING_MAX = 2,      /* consecutive readings that may be missing */
    MEAN_OVER = 8,        /* readings */
    CONFIRMATIONS = 3,    /* readings that confirm that a setting is cheaper */
};
static const double MARGIN = 0.06, MARGIN_NOISE = 2.6; /* below the SLO, in ln; minimum / noise */
static const double RAISE = 0.02, RAISE_NOISE = 1.0;   /* the same for a step up */
static const double STEP_MIN = 0.03, STEP_SETTLED = 0.06; /* smaller steps are not worth a change */
static const double STEP_MAX = 0.29;                      /* ln(4/3): at most a quarter lower */
static const double NOISE_FIRST = 0.02, NOISE_MIN = 0.005;
static const double ELASTICITY_MAX = 4, DECAY = 0.998; /* per reading */
/* With a queue, each step costs more than the previous one. */
static const double ELASTICITY_GROWTH = 1.25;
static const double ELASTICITY_MIN = 0.3; /* a smaller elasticity may be a delayed response */
/* ln of energy per token, whose noise is that of the requests. */
static const double COST_INCREASE = 0.04, COST_NOISE = 3, COST_NOISE_FIRST = 0.05;
static const double POWER_MARGIN = 0.03, POWER_EXPONENT = 3, POWER_UP_MAX = 0.14;

const char *governor_action_name(enum governor_action action)
{
    static const char *const NAMES[] = {
        [GOVERNOR_LEARN] = "learn",       [GOVERNOR_HOLD] = "hold",
        [GOVERNOR_LOWER] = "lower",       [GOVERNOR_RAISE] = "raise",
        [GOVERNOR_CAP] = "cap",           [GOVERNOR_COSTLY] = "costly",
        [GOVERNOR_VIOLATED] = "violated", [GOVERNOR_OVERLOAD] = "overload",
        [GOVERNOR_STALE] = "stale",
    };
    return NAMES[action];
}

/* ---- state ---- */

static const struct governor_level NO_LEVEL = {.mean = UNKNOWN, .cost = UNKNOWN, .watts = UNKNOWN};

static size_t highest(const struct governor *g)
{
    return g->options.count - 1;
}

static double value(const struct governor *g, size_t index)
{
    return g->options.settings[index];
}

static size_t lowest(const struct governor *g)
{
    size_t index = 0;
    while (index < highest(g) && value(g, index) < g->options.lowest - 1e-9)
        index++;
    return index;
}

void governor_init(struct governor *governor, const struct governor_options *options)
{
    *governor = (struct governor){
        .options = *options,
        .now = NO_LEVEL,
        .before = NO_LEVEL,
        .last = UNKNOWN,
        .best_cost = UNKNOWN,
        .left_cost = UNKNOWN,
        .noise = NOISE_FIRST,
        .cost_noise = COST_NOISE_FIRST,
        .cost_last = UNKNOWN,
        .elasticity = options->elasticity > 0 ? options->elasticity : 1,
        .model_factor = options->slowdown ? 1 : UNKNOWN,
        .floor_span = BLOCKED,
        .over_span = BLOCKED,
        .rest_span = BACKOFF,
        .t_s = -INFINITY,
    };
    governor->options.elasticity = governor->elasticity;
    governor->at = governor->ceiling = highest(governor);
    governor->over = options->count;
    governor->from = value(governor, governor->at);
}

static unsigned doubled(unsigned span, unsigned max)
{
    return span * 2 < max ? span * 2 : max;
}

static struct governor_decision keep_setting(const struct governor *g, enum governor_action action)
{
    return (struct governor_decision){action, g->at, g->at == highest(g), false};
}

static struct governor_decision change_setting(struct governor *g, size_t to,
                                               enum governor_action action)
{
    if (to == g->at)
        return keep_setting(g, action);
    struct governor_decision decision = {action, to, to == highest(g), true};
    if (g->options.is_advice)
        return decision;
    g->before = g->now;
    g->from = value(g, g->at);
    g->now = NO_LEVEL;
    g->last = g->cost_last = UNKNOWN;
    g->at = to;
    g->skip = SKIPPED_READINGS;
    g->is_learned = false;
    if (action != GOVERNOR_LOWER)
        g->best_cost = UNKNOWN;
    g->left_cost = action == GOVERNOR_COSTLY ? g->before.cost : UNKNOWN;
    return decision;
}

/* Blocks the settings below this one for a number of readings. */
static void block_below(struct governor *g, size_t floor)
{
    if (g->options.is_advice)
        return;
    g->floor = floor;
    g->floor_left = g->floor_span;
    g->floor_span = doubled(g->floor_span, BLOCKED_MAX);
    g->since_blocked = 0;
}

static void count_down(struct governor *g)
{
    if (g->floor_left == 1)
        g->floor = 0;
    if (g->over_left == 1)
        g->over = g->options.count;
    g->floor_left -= g->floor_left > 0;
    g->over_left -= g->over_left > 0;
    if (g->rest)
        g->rest--;
    /* A block this old no longer applies: the workload may have changed. */
    if (++g->since_blocked > 4 * g->floor_span) {
        g->floor_span = g->floor_span / 2 > BLOCKED ? g->floor_span / 2 : BLOCKED;
        g->rest_span = BACKOFF;
        g->since_blocked = 0;
    }
    g->elasticity = fmax(g->options.elasticity, g->elasticity * DECAY);
}

/* ---- levels ---- */

/* The mean of the first MEAN_OVER values, then an exponential moving average. */
static void add_to(double *mean, unsigned count, double found)
{
    double weight = 1.0 / (count < MEAN_OVER ? count : MEAN_OVER);
    if (is_known(found))
        *mean = is_known(*mean) ? *mean + weight * (found - *mean) : found;
}

/* Updates the standard deviation of readings from two consecutive ones.  A change of the load is not noise, so the
 * contribution of one difference is limited; the estimate grows quickly and decays slowly, and is about a quarter
 * too large. */
static void update_noise(double *noise, double *last, double reading)
{
    double variance = *noise * *noise;
    if (is_known(*last) && is_known(reading)) {
        double found = fmin((reading - *last) * (reading - *last) / 2, 9 * variance);
        double weight = found > variance ? 0.1 : 0.03;
        *noise = fmax(NOISE_MIN, sqrt(variance * (1 - weight) + weight * found));
    }
    *last = reading;
}

/* Latency rose some readings after a step down: from now on, wait longer when it appears unchanged. */
static void note_delayed_response(struct governor *g)
{
    if (value(g, g->at) < g->from && g->now.count >= 1 && g->now.count <= SETTLED) {
        g->is_late = true;
        g->is_flat = false;
    }
}

static void update_level(struct governor *g, const struct governor_reading *reading)
{
    struct governor_level *now = &g->now;
    double level = log(reading->latency), cost = ratio(reading->power_w, reading->work_per_s);
    now->count++;
    add_to(&now->watts, now->count, reading->power_w);
    add_to(&now->cost, now->count, cost);
    update_noise(&g->cost_noise, &g->cost_last, log(cost));
    if (!g->options.has_slo)
        return;
    update_noise(&g->noise, &g->last, level);
    if (level > now->mean + 3 * g->noise + 0.02) { /* a delayed response, or more load */
        note_delayed_response(g);
        *now = (struct governor_level){1, level, now->cost, now->watts};
    } else {
        add_to(&now->mean, now->count, level);
    }
}

/* Standard error of the difference of the two levels. */
static double difference_error(const struct governor *g)
{
    double counts = 1.0 / fmax(1, g->now.count) + 1.0 / fmax(1, g->before.count);
    return g->noise * sqrt(counts);
}

static double target_level(const struct governor *g)
{
    return -fmax(MARGIN, MARGIN_NOISE * g->noise);
}

static double raise_at(const struct governor *g)
{
    return -fmax(RAISE, RAISE_NOISE * g->noise);
}

/* Effect of the last step on latency, per ln of the setting; UNKNOWN without two levels. */
static double observed_elasticity(const struct governor *g)
{
    double step = log(g->from / value(g, g->at));
    return fabs(step) > 1e-9 ? (g->now.mean - g->before.mean) / step : UNKNOWN;
}

static double model_step(const struct governor *g, double from, size_t to)
{
    size_t at = g->at;
    for (size_t i = 0; i < g->options.count; i++)
        if (value(g, i) == from)
            at = i;
    return log(g->options.slowdown[to] / g->options.slowdown[at]);
}

/* Compares the last step with the bound and with the model. */
static void evaluate_step(struct governor *g)
{
    double seen = observed_elasticity(g), error = difference_error(g);
    double step = log(g->from / value(g, g->at));
    if (!is_known(seen) || !(step > 0))
        return;
    double certain = seen - error / step;
    g->is_flat = seen + error / step < ELASTICITY_MIN;
    if (certain > g->elasticity)
        g->elasticity = fmin(certain * ELASTICITY_GROWTH, ELASTICITY_MAX);
    if (!is_known(g->model_factor))
        return;
    double expected = model_step(g, g->from, g->at) * g->model_factor;
    double found = g->now.mean - g->before.mean;
    g->is_model_proven = found <= expected + error + 0.02;
    if (g->is_model_proven)
        return;
    if (expected > 0.05 && found / expected < 2)
        g->model_factor *= found / expected;
    else
        g->model_factor = UNKNOWN;
}

/* ---- choosing a setting ---- */

/* Worst-case ln of the latency at a setting relative to now. */
static double worst_change(const struct governor *g, double now, size_t to)
{
    double bound = g->elasticity * log(now / value(g, to));
    double still_held = bound + target_level(g) + g->noise; /* reaches the SLO by the bound */
    if (!is_known(g->model_factor) || !is_known(g->options.slowdown[to]))
        return g->is_flat ? still_held : bound;
    double model = model_step(g, value(g, g->at), to) * g->model_factor;
    /* Until the model has been confirmed by a step, the SLO must hold even if the model is wrong. */
    return g->is_model_proven ? model : fmax(model, still_held);
}

/* The setting of minimum energy by the model: lower ones save nothing. */
static size_t model_floor(const struct governor *g)
{
    size_t best = 0;
    double min = INFINITY;
    for (size_t i = 0; g->options.energy && i < g->options.count; i++)
        if (g->options.energy[i] < min) {
            min = g->options.energy[i];
            best = i;
        }
    return best;
}

static size_t floor_of(const struct governor *g)
{
    size_t floor = lowest(g);
    size_t model = is_known(g->model_factor) ? model_floor(g) : 0;
    floor = g->floor > floor ? g->floor : floor;
    floor = model > floor ? model : floor;
    return floor < g->ceiling ? floor : g->ceiling;
}

/* The actual clock of the readings: the default is a range, and power or thermal limits may keep the card below it. */
static double running_at(const struct governor *g, const struct governor_reading *reading)
{
    double set = value(g, g->at);
    bool lower = is_known(reading->setting) && reading->setting > 0 && reading->setting < set &&
                 !(reading->utilization < 0.05);
    return lower ? reading->setting : set;
}

/* A setting is left for a lower one after a few readings that happened to be low: adds their standard error. */
static double level_upper_bound(const struct governor *g)
{
    return g->now.mean + g->noise / sqrt(g->now.count < MEAN_OVER ? g->now.count : MEAN_OVER);
}

/* The lowest setting that meets the SLO in the worst case; the current one when none is worth the change. */
static size_t lower_by_latency(const struct governor *g, const struct governor_reading *reading,
                               double min)
{
    double now = running_at(g, reading), slack = target_level(g) - level_upper_bound(g);
    size_t best = g->at;
    for (size_t to = g->at; to-- > floor_of(g);) {
        double step = log(now / value(g, to));
        if (step > STEP_MAX || worst_change(g, now, to) > slack)
            break;
        if (step >= min)
            best = to;
    }
    return best;
}

/* A latency that hardly depends on the clock needs a larger step: assume half of the bound. */
static size_t raise_by_latency(const struct governor *g)
{
    double wanted = log(value(g, g->at)) + 2 * fmax(g->now.mean - target_level(g), STEP_MIN);
    size_t to = g->at;
    while (to < g->ceiling && log(value(g, to)) < wanted)
        to++;
    return to;
}

/* ---- objectives ---- */

/* The next setting that is worth a step up. */
static size_t step_up(const struct governor *g)
{
    size_t to = g->at;
    while (to < highest(g) && log(value(g, to) / value(g, g->at)) < STEP_MIN)
        to++;
    return to;
}

static struct governor_decision violated(struct governor *g, double latency)
{
    if (g->at >= g->ceiling) {
        g->now = NO_LEVEL;
        return keep_setting(g, GOVERNOR_OVERLOAD);
    }
    note_delayed_response(g);
    double step = log(g->from / value(g, g->at));
    double seen = (log(latency) - g->before.mean) / step;
    if (step > 0 && !g->is_learned && seen > g->elasticity) /* not UNKNOWN */
        g->elasticity = fmin(seen, ELASTICITY_MAX);
    block_below(g, step_up(g));
    g->rest = g->rest_span;
    g->rest_span = doubled(g->rest_span, BACKOFF_MAX);
    return change_setting(g, g->ceiling, GOVERNOR_VIOLATED);
}

/* Whether the steps down have passed the minimum energy per token; records the cheapest setting. */
static bool is_costlier(struct governor *g)
{
    if (!is_known(g->now.cost))
        return false;
    if (g->now.count > SETTLED || g->best == g->at || !(g->best_cost < g->now.cost)) {
        g->best_cost = g->now.cost;
        g->best_count = g->now.count;
        g->best = g->at;
    }
    double error = g->cost_noise * sqrt(1.0 / g->now.count + 1.0 / g->best_count);
    return g->best > g->at && log(g->now.cost / g->best_cost) > COST_INCREASE + COST_NOISE * error;
}

/* Whether this reading and the previous one were both costlier: a server that stalls does less work for a moment,
 * and more after it. */
static bool is_costlier_again(struct governor *g)
{
    bool was_costlier = g->was_costlier;
    g->was_costlier = g->best > g->at && g->cost_last - log(g->best_cost) > COST_INCREASE;
    return was_costlier && g->was_costlier;
}

/* Back at the cheaper setting, a few readings confirm that it is: a single low one may have been noise. */
static void confirm_cheaper(struct governor *g)
{
    if (!is_known(g->left_cost) || g->now.count < CONFIRMATIONS)
        return;
    if (!(log(g->left_cost / g->now.cost) > COST_INCREASE / 2)) {
        g->floor = 0;
        g->floor_left = 0;
        g->floor_span = BLOCKED;
    }
    g->left_cost = UNKNOWN;
}

static struct governor_decision hold_latency(struct governor *g,
                                             const struct governor_reading *reading)
{
    /* An unchanged latency may be a delayed response. */
    unsigned wait = FIRST_READINGS + g->is_late;
    if ((g->is_flat && !g->is_late) || fabs(observed_elasticity(g)) >= ELASTICITY_MIN)
        wait = 1;
    bool is_fresh = !g->is_learned;
    if (is_fresh && g->now.count < wait)
        return keep_setting(g, GOVERNOR_LEARN);
    if (is_fresh)
        evaluate_step(g);
    g->is_learned = true;
    confirm_cheaper(g);
    bool is_costly = is_costlier(g), is_confirmed = is_costlier_again(g);
    if (is_costly && is_confirmed) {
        size_t back = g->best < g->ceiling ? g->best : g->ceiling;
        g->floor_span = g->floor_span > COST_BLOCKED ? g->floor_span : COST_BLOCKED;
        block_below(g, back);
        return change_setting(g, back, GOVERNOR_COSTLY);
    }
    if (g->now.mean > raise_at(g) && g->now.count >= 3 && g->at < g->ceiling) {
        block_below(g, step_up(g));
        return change_setting(g, raise_by_latency(g), GOVERNOR_RAISE);
    }
    if (g->rest || is_costly || (!is_fresh && g->now.count < SETTLED))
        return keep_setting(g, GOVERNOR_HOLD);
    size_t to = lower_by_latency(g, reading, is_fresh ? STEP_MIN : STEP_SETTLED);
    return to < g->at ? change_setting(g, to, GOVERNOR_LOWER) : keep_setting(g, GOVERNOR_HOLD);
}

/* Moves the ceiling below the power cap.  The share of idle power is unknown: several steps may be needed. */
static struct governor_decision lower_ceiling(struct governor *g, double watts)
{
    double over = log(watts / g->options.max_power_w) + POWER_MARGIN;
    double wanted = log(value(g, g->at)) - fmin(2 * STEP_MAX, fmax(over, STEP_MIN));
    size_t to = g->at;
    while (to > lowest(g) && log(value(g, to)) > wanted)
        to--;
    if (!g->options.is_advice && to < g->at) {
        g->over = g->at;
        g->over_left = g->over_span;
        g->over_span = doubled(g->over_span, BLOCKED_MAX);
        g->ceiling = to;
    }
    return change_setting(g, to, GOVERNOR_CAP);
}

/* Worst case: power grows with the cube of the clock. */
static void raise_ceiling(struct governor *g)
{
    double headroom = log(g->options.max_power_w / g->now.watts) - POWER_MARGIN;
    double max = log(value(g, g->at)) + fmin(POWER_UP_MAX, headroom / POWER_EXPONENT);
    size_t to = g->at;
    if (g->ceiling == highest(g) || g->at < g->ceiling || g->now.count < FIRST_READINGS)
        return;
    while (to < highest(g) && to + 1 < g->over && log(value(g, to + 1)) <= max)
        to++;
    if (log(value(g, to) / value(g, g->at)) >= STEP_MIN || to == highest(g))
        g->ceiling = to;
}

/* Without an SLO: the ceiling, or the setting of minimum energy by the model. */
static struct governor_decision follow_ceiling(struct governor *g)
{
    size_t to = g->ceiling, best = model_floor(g);
    if (g->options.energy && best < to)
        to = best > lowest(g) ? best : lowest(g);
    if (to == g->at || g->now.count < FIRST_READINGS)
        return keep_setting(g, to == g->at ? GOVERNOR_HOLD : GOVERNOR_LEARN);
    return change_setting(g, to, to > g->at ? GOVERNOR_RAISE : GOVERNOR_LOWER);
}

/* ---- processing a reading ---- */

static bool is_usable(const struct governor *g, const struct governor_reading *reading)
{
    bool has_latency = is_known(reading->latency) && reading->latency > 0;
    bool has_power = is_known(reading->power_w) && reading->power_w > 0;
    return reading->t_s > g->t_s && (has_latency || !g->options.has_slo) &&
           (has_power || !is_known(g->options.max_power_w));
}

static struct governor_decision without_reading(struct governor *g)
{
    g->last = UNKNOWN;
    g->unknown += g->unknown < MISSING_MAX;
    if (g->unknown < MISSING_MAX)
        return keep_setting(g, GOVERNOR_HOLD);
    struct governor_decision decision = change_setting(g, highest(g), GOVERNOR_STALE);
    g->ceiling = highest(g);
    g->now = g->before = NO_LEVEL;
    return decision;
}

struct governor_decision governor_step(struct governor *governor,
                                       const struct governor_reading *reading)
{
    struct governor *g = governor;
    if (reading->is_waiting)
        return keep_setting(g, g->unknown ? GOVERNOR_STALE : GOVERNOR_LEARN);
    if (!is_usable(g, reading))
        return without_reading(g);
    g->unknown = 0;
    g->t_s = reading->t_s;
    count_down(g);
    bool is_above = value(g, g->at) > g->from; /* a delayed reading may be of the lower setting */
    if (g->options.has_slo && reading->latency > 1 && !(g->skip && is_above))
        return violated(g, reading->latency);
    if (g->skip) {
        g->skip--;
        return keep_setting(g, GOVERNOR_LEARN);
    }
    update_level(g, reading);
    if (reading->power_w > g->options.max_power_w)
        return lower_ceiling(g, reading->power_w);
    if (is_known(g->options.max_power_w))
        raise_ceiling(g);
    return g->options.has_slo ? hold_latency(g, reading) : follow_ceiling(g);
}
