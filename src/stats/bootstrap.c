#include "stats/bootstrap.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/random.h"
#include "core/units.h"
#include "stats/distribution.h"
#include "stats/online.h"
#include "stats/quantile.h"

/* Sums in another order, or ten times as large, are the same statistic. */
#define ROUNDING 1e-12

void bootstrap_pick(struct random *random, const unsigned *strata, size_t count, size_t *picked)
{
    for (size_t i = 0; i < count; i++) {
        size_t alike = 0;
        for (size_t j = 0; j < count; j++)
            alike += strata[j] == strata[i];
        size_t wanted = random_index(random, alike);
        for (size_t j = 0; j < count; j++)
            if (strata[j] == strata[i] && wanted-- == 0)
                picked[i] = j;
    }
}

/* Which quantile of the draws is the end of the interval that p would be without correction. */
static double corrected(double p, double bias, double acceleration)
{
    double z = bias + normal_quantile(p);
    return normal_below(bias + z / (1 - acceleration * z));
}

void bootstrap_ends(const double *ascending, size_t count, double share_below, double acceleration,
                    double *low, double *high)
{
    double bias = normal_quantile(share_below);
    bool can_correct = is_known(bias); /* false: all draws are on one side */
    double from = can_correct ? corrected(0.025, bias, acceleration) : 0.025;
    double to = can_correct ? corrected(0.975, bias, acceleration) : 0.975;
    *low = quantile_sorted(ascending, count, from);
    *high = quantile_sorted(ascending, count, to);
}

/* What is drawn: queries, or groups of them; row-major. */
struct pool {
    double *rows;
    size_t count, sums;
    double totals[BOOTSTRAP_SUMS_MAX];
};

static enum err pool_fill(const struct bootstrap *what, struct pool *pool)
{
    size_t groups = what->groups ? what->groups : BOOTSTRAP_GROUPS;
    *pool = (struct pool){.sums = what->sums, .count = what->count < groups ? what->count : groups};
    pool->rows = calloc(pool->count * pool->sums + 1, sizeof *pool->rows);
    if (!pool->rows)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < what->count; i++)
        for (size_t s = 0; s < what->sums; s++) {
            pool->rows[i % pool->count * pool->sums + s] += what->terms[s][i];
            pool->totals[s] += what->terms[s][i];
        }
    return ERR_OK;
}

static double draw(const struct bootstrap *what, const struct pool *pool, struct random *random)
{
    double sums[BOOTSTRAP_SUMS_MAX] = {0};
    for (size_t i = 0; i < pool->count; i++) {
        const double *row = pool->rows + random_index(random, pool->count) * pool->sums;
        for (size_t s = 0; s < pool->sums; s++)
            sums[s] += row[s];
    }
    return what->figure(sums);
}

/* How the spread changes with the statistic, from its values without each row in turn. */
static double acceleration_of(const struct bootstrap *what, const struct pool *pool)
{
    struct online without = {0};
    double squares = 0, cubes = 0, sums[BOOTSTRAP_SUMS_MAX];
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < pool->count; i++) {
            for (size_t s = 0; s < pool->sums; s++)
                sums[s] = pool->totals[s] - pool->rows[i * pool->sums + s];
            double value = what->figure(sums);
            if (!is_known(value))
                continue;
            if (pass == 0)
                online_add(&without, value);
            double distance = online_mean(&without) - value;
            squares += pass ? distance * distance : 0;
            cubes += pass ? distance * distance * distance : 0;
        }
    return squares > 0 ? cubes / (6 * pow(squares, 1.5)) : 0;
}

static void find_ends(const struct bootstrap *what, const struct pool *pool, double *drawn,
                      size_t count, struct bootstrap_interval *out)
{
    struct online moments = {0};
    double below = 0;
    for (size_t i = 0; i < count; i++) {
        online_add(&moments, drawn[i]);
        double distance = drawn[i] - out->figure;
        bool same = fabs(distance) <= ROUNDING * fabs(out->figure);
        below += same ? 0.5 : distance < 0;
    }
    out->error = online_stddev(&moments);
    sort_ascending(drawn, count);
    bootstrap_ends(drawn, count, below / (double)count, acceleration_of(what, pool), &out->low,
                   &out->high);
}

enum err bootstrap_interval(const struct bootstrap *what, struct bootstrap_interval *out)
{
    struct pool pool;
    struct random random = random_seeded(what->seed);
    *out = (struct bootstrap_interval){UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    enum err err = pool_fill(what, &pool);
    double *drawn = malloc((what->draws + 1) * sizeof *drawn);
    size_t count = 0;
    if (!err && !drawn)
        err = ERR_NO_MEMORY;
    if (!err && what->count)
        out->figure = what->figure(pool.totals);
    for (unsigned i = 0; !err && pool.count > 1 && i < what->draws; i++) {
        double value = draw(what, &pool, &random);
        if (is_known(value))
            drawn[count++] = value;
    }
    if (count > 1 && is_known(out->figure))
        find_ends(what, &pool, drawn, count, out);
    free(drawn);
    free(pool.rows);
    return err;
}
