#include "stats/bootstrap.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/random.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"

/* A standard error below this share of the value is rounding error: of sums in another order, and of numerical
 * derivatives. */
#define ROUNDING 1e-9

void bootstrap_pick(struct random *random, const unsigned *strata, size_t count, size_t *picked)
{
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        for (size_t j = 0; j < count; j++)
            same += strata[j] == strata[i];
        size_t wanted = random_index(random, same);
        for (size_t j = 0; j < count; j++)
            if (strata[j] == strata[i] && wanted-- == 0)
                picked[i] = j;
    }
}

/* ---- interval ends ---- */

enum {
    LOG_DEGREES_MIN = 4
}; /* with fewer degrees of freedom the ends would be orders of magnitude apart */

/* Correction for small samples, which understate the spread of their population: makes 95 % intervals of the mean of
 * lognormal data (sigma 1) cover 94 % at n = 10 and 30. */
static double widening(double freedom)
{
    return 1 + 1.5 / (freedom + 1);
}

static bool can_take_logs(const struct bootstrap_draws *draws, double value, double freedom)
{
    bool positive = value > 0 && freedom >= LOG_DEGREES_MIN;
    for (size_t i = 0; positive && i < draws->count; i++)
        positive = draws->values[i] > 0;
    return positive;
}

/* Replaces each value by its distance from the statistic in units of its own standard error; draws without spread
 * are dropped. */
static size_t studentize(struct bootstrap_draws *draws, double value, bool logs)
{
    size_t count = 0;
    for (size_t i = 0; i < draws->count; i++) {
        double drawn = draws->values[i], error = draws->errors[i];
        if (!(error > ROUNDING * fabs(drawn)))
            continue;
        draws->values[count++] =
            logs ? log(drawn / value) * drawn / error : (drawn - value) / error;
    }
    return count;
}

void bootstrap_ends(struct bootstrap_draws *draws, const struct bootstrap_draw *found,
                    double freedom, bool of_ratio, double *low, double *high)
{
    double value = found->value, error = found->error;
    double farthest = student_quantile(0.05, freedom), nearest = -farthest;
    bool logs = of_ratio && can_take_logs(draws, value, freedom);
    *low = *high = value;
    if (!(error > ROUNDING * fabs(value)))
        return; /* all draws are equal */
    size_t count = studentize(draws, value, logs);
    sort_ascending(draws->values, count);
    if (count) {
        nearest = fmin(nearest, quantile_sorted(draws->values, count, 0.025));
        farthest = fmax(farthest, quantile_sorted(draws->values, count, 0.975));
    }
    error *= widening(freedom);
    *low = logs ? value * exp(-farthest * error / value) : value - farthest * error;
    *high = logs ? value * exp(-nearest * error / value) : value - nearest * error;
    if (of_ratio && value >= 0)
        *low = fmax(0, *low);
}

/* ---- a statistic of sums ---- */

/* The sampling units: queries, or groups of them; row-major. */
struct pool {
    double *rows;
    size_t count, sums;
    double totals[BOOTSTRAP_SUMS_MAX];
};

static void pool_fill(const struct bootstrap *what, struct pool *pool)
{
    size_t groups = what->groups ? what->groups : BOOTSTRAP_GROUPS;
    *pool = (struct pool){.sums = what->sums, .count = what->count < groups ? what->count : groups};
    pool->rows = xcalloc(pool->count * pool->sums + 1, sizeof *pool->rows);
    for (size_t i = 0; i < what->count; i++)
        for (size_t s = 0; s < what->sums; s++) {
            pool->rows[i % pool->count * pool->sums + s] += what->terms[s][i];
            pool->totals[s] += what->terms[s][i];
        }
}

/* Partial derivative of the statistic with respect to one of its sums. */
static double slope(const struct bootstrap *what, double *sums, size_t s)
{
    double at = sums[s], step = at != 0 ? 1e-5 * fabs(at) : 1;
    sums[s] = at + step;
    double above = what->figure(sums);
    sums[s] = at - step;
    double below = what->figure(sums);
    sums[s] = at;
    return (above - below) / (2 * step);
}

/* The statistic of the picked rows, and its standard error from the influence of each.  The statistic is
 * scale-invariant in its sums, so the influences add up to 0. */
static struct bootstrap_draw of_rows(const struct bootstrap *what, const struct pool *pool,
                                     const size_t *picked)
{
    double sums[BOOTSTRAP_SUMS_MAX] = {0}, slopes[BOOTSTRAP_SUMS_MAX], squares = 0;
    for (size_t i = 0; i < pool->count; i++)
        for (size_t s = 0; s < pool->sums; s++)
            sums[s] += pool->rows[picked[i] * pool->sums + s];
    for (size_t s = 0; s < pool->sums; s++)
        slopes[s] = slope(what, sums, s);
    for (size_t i = 0; i < pool->count; i++) {
        double influence = 0;
        for (size_t s = 0; s < pool->sums; s++)
            influence += slopes[s] * pool->rows[picked[i] * pool->sums + s];
        squares += influence * influence;
    }
    double n = (double)pool->count;
    return (struct bootstrap_draw){what->figure(sums), sqrt(squares * n / (n - 1))};
}

static bool is_positive(const struct pool *pool)
{
    for (size_t i = 0; i < pool->count * pool->sums; i++)
        if (pool->rows[i] < 0)
            return false;
    return true;
}

static void find_interval(const struct bootstrap *what, const struct pool *pool, size_t *picked,
                          struct bootstrap_draws *draws, struct bootstrap_interval *out)
{
    struct random random = random_seeded(what->seed);
    struct online moments = {0};
    for (size_t i = 0; i < pool->count; i++)
        picked[i] = i;
    struct bootstrap_draw found = of_rows(what, pool, picked);
    for (unsigned d = 0; d < what->draws; d++) {
        for (size_t i = 0; i < pool->count; i++)
            picked[i] = random_index(&random, pool->count);
        struct bootstrap_draw drawn = of_rows(what, pool, picked);
        if (!is_known(drawn.value))
            continue;
        online_add(&moments, drawn.value);
        draws->values[draws->count] = drawn.value;
        draws->errors[draws->count++] = drawn.error;
    }
    if (draws->count < 2 || !is_known(found.error))
        return;
    out->error = online_stddev(&moments);
    bootstrap_ends(draws, &found, (double)pool->count - 1, is_positive(pool), &out->low,
                   &out->high);
}

void bootstrap_interval(const struct bootstrap *what, struct bootstrap_interval *out)
{
    struct pool pool;
    *out = (struct bootstrap_interval){UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    pool_fill(what, &pool);
    struct bootstrap_draws draws = {
        .values = xreallocarray(NULL, (size_t)what->draws + 1, 2 * sizeof(double))};
    size_t *picked = xreallocarray(NULL, pool.count + 1, sizeof *picked);
    if (what->count)
        out->figure = what->figure(pool.totals);
    if (pool.count > 1 && is_known(out->figure)) {
        draws.errors = draws.values + what->draws;
        find_interval(what, &pool, picked, &draws, out);
    }
    free(draws.values);
    free(picked);
    free(pool.rows);
}
