#include "power/optimize.h"

#include <math.h>
#include <string.h>

/* Limits hold for a figure that rounding put beside them. */
#define SLACK 1e-9

static const char *const NAMES[OPTIMIZE_LIMITS] = {
    [LIMIT_SLOWDOWN] = "max_slowdown",
    [LIMIT_TIME] = "max_time",
    [LIMIT_POWER] = "max_power",
    [LIMIT_TEMPERATURE] = "max_temperature",
    [LIMIT_LATENCY + LATENCY_TTFT] = "slo_ttft",
    [LIMIT_LATENCY + LATENCY_ITL] = "slo_itl",
    [LIMIT_LATENCY + LATENCY_TPOT] = "slo_tpot",
    [LIMIT_LATENCY + LATENCY_QUERY] = "slo_latency",
    [LIMIT_QUALITY] = "min_quality",
    [LIMIT_CLOCK] = "min_clock",
};

const char *optimize_limit_name(enum optimize_limit limit)
{
    return NAMES[limit];
}

const char *optimize_latency_name(enum optimize_latency latency)
{
    return NAMES[LIMIT_LATENCY + latency] + strlen("slo_");
}

/* ---- limits ---- */

/* As a share of the baseline's; more is better. */
static double relative_quality(const struct optimize_goal *goal,
                               const struct optimize_point *baseline,
                               const struct optimize_point *point)
{
    double of = goal->is_quality_falling ? baseline->quality : point->quality,
           by = goal->is_quality_falling ? point->quality : baseline->quality;
    return by > 0 ? of / by : UNKNOWN;
}

unsigned optimize_broken(const struct optimize_goal *goal, const struct optimize_point *baseline,
                         const struct optimize_point *point)
{
    const double most[] = {
        [LIMIT_SLOWDOWN] =
            point->figures[FREQ_TIME_S].value / baseline->figures[FREQ_TIME_S].value - 1,
        [LIMIT_TIME] = point->figures[FREQ_TIME_S].value,
        [LIMIT_POWER] = point->figures[FREQ_POWER_W].value,
        [LIMIT_TEMPERATURE] = point->temperature_c,
    };
    const double least[] = {relative_quality(goal, baseline, point),
                            point->freq_mhz / baseline->freq_mhz};
    unsigned broken = 0;
    for (unsigned i = 0; i < OPTIMIZE_LIMITS; i++) {
        double limit = goal->limits[i];
        if (!is_known(limit))
            continue;
        double figure = optimize_limit_is_latency(i) ? point->latency[i - LIMIT_LATENCY].value
                        : i < LIMIT_LATENCY          ? most[i]
                                                     : least[i - LIMIT_QUALITY];
        bool is_within = i < LIMIT_QUALITY ? figure <= limit + SLACK * (1 + fabs(limit))
                                           : figure >= limit - SLACK;
        broken |= is_within ? 0 : 1u << i;
    }
    return broken;
}

/* ---- the best ---- */

static void find_range(const struct optimize_goal *goal, const struct optimize_point *baseline,
                       const struct optimize_point *points, size_t count, struct optimum *out)
{
    for (size_t i = 0; i < count; i++)
        if (optimize_objective(goal, &points[i]) <= (1 + OPTIMIZE_FLAT) * out->objective &&
            !optimize_broken(goal, baseline, &points[i])) {
            out->low_mhz = fmin(out->low_mhz, points[i].freq_mhz); /* of a NaN: the number */
            out->high_mhz = fmax(out->high_mhz, points[i].freq_mhz);
        }
}

/* A limit binds where a setting that it alone, or with others, keeps out has a better objective. */
static unsigned binding_limits(const struct optimize_goal *goal,
                               const struct optimize_point *baseline,
                               const struct optimize_point *points, size_t count, double objective)
{
    unsigned binding = 0;
    for (size_t i = 0; i < count; i++)
        if (optimize_objective(goal, &points[i]) < objective)
            binding |= optimize_broken(goal, baseline, &points[i]);
    return binding;
}

struct optimum optimize_pick(const struct optimize_goal *goal,
                             const struct optimize_point *baseline,
                             const struct optimize_point *points, size_t count)
{
    struct optimum out = {.objective = UNKNOWN, .low_mhz = UNKNOWN, .high_mhz = UNKNOWN};
    unsigned any = 0, every = ~0u;
    for (size_t i = 0; i < count; i++) {
        double objective = optimize_objective(goal, &points[i]);
        if (!is_known(objective))
            continue;
        unsigned broken = optimize_broken(goal, baseline, &points[i]);
        any |= broken;
        every &= broken;
        out.usable++;
        out.within += !broken;
        if (!broken && !(out.is_found && objective >= out.objective)) {
            out.is_found = true;
            out.best = i;
            out.objective = objective;
        }
    }
    if (out.is_found) {
        find_range(goal, baseline, points, count, &out);
        out.binding = binding_limits(goal, baseline, points, count, out.objective);
    } else if (out.usable)
        out.limits = every ? every : any;
    return out;
}

/* ---- the front ---- */

/* Figures of which less is better. */
struct costs {
    double items[3];
    size_t count;
};

static bool is_beaten(const struct costs *one, const struct costs *by)
{
    bool is_less = false;
    for (size_t k = 0; k < one->count; k++) {
        if (by->items[k] > one->items[k])
            return false;
        is_less |= by->items[k] < one->items[k];
    }
    return is_less;
}

static struct costs costs_of(const struct optimize_goal *goal, const struct optimize_point *point,
                             bool has_quality)
{
    return (struct costs){{point->figures[FREQ_ENERGY_J].value, point->figures[FREQ_TIME_S].value,
                           goal->is_quality_falling ? point->quality : -point->quality},
                          has_quality ? 3 : 2};
}

static bool is_usable(const struct optimize_point *point)
{
    return point->figures[FREQ_ENERGY_J].value > 0 && point->figures[FREQ_TIME_S].value > 0;
}

size_t optimize_front(const struct optimize_goal *goal, struct optimize_point *points, size_t count)
{
    size_t found = 0;
    bool has_quality = true;
    for (size_t i = 0; i < count; i++)
        has_quality &= is_known(points[i].quality) || !is_usable(&points[i]);
    for (size_t i = 0; i < count; i++) {
        struct costs one = costs_of(goal, &points[i], has_quality);
        bool is_front = is_usable(&points[i]);
        for (size_t j = 0; is_front && j < count; j++) {
            struct costs other = costs_of(goal, &points[j], has_quality);
            is_front = !is_usable(&points[j]) || !is_beaten(&one, &other);
        }
        points[i].is_front = is_front;
        found += is_front;
    }
    return found;
}
