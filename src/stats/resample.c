#include "stats/resample.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/random.h"
#include "core/units.h"
#include "stats/distribution.h"
#include "stats/online.h"
#include "stats/quantile.h"
#include "stats/select.h"

/* Sums in another order, or ten times as large, are the same figure. */
#define ROUNDING 1e-12

/* What is drawn: queries, or groups of them; row-major. */
struct bag {
    double *rows;
    size_t count, sums;
    double totals[RESAMPLE_SUMS_MOST];
};

static enum err fill_bag(const struct resample *what, struct bag *bag)
{
    size_t most = what->groups ? what->groups : RESAMPLE_GROUPS;
    *bag = (struct bag){.sums = what->sums, .count = what->count < most ? what->count : most};
    bag->rows = calloc(bag->count * bag->sums + 1, sizeof *bag->rows);
    if (!bag->rows)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < what->count; i++)
        for (size_t s = 0; s < what->sums; s++) {
            bag->rows[i % bag->count * bag->sums + s] += what->terms[s][i];
            bag->totals[s] += what->terms[s][i];
        }
    return ERR_OK;
}

static double draw_figure(const struct resample *what, const struct bag *bag, struct random *draws)
{
    double sums[RESAMPLE_SUMS_MOST] = {0};
    for (size_t i = 0; i < bag->count; i++) {
        const double *row = bag->rows + random_index(draws, bag->count) * bag->sums;
        for (size_t s = 0; s < bag->sums; s++)
            sums[s] += row[s];
    }
    return what->figure(sums);
}

/* How the figure's spread changes with the figure: from what it is without each in turn. */
static double acceleration(const struct resample *what, const struct bag *bag)
{
    struct online without = {0};
    double squares = 0, cubes = 0, sums[RESAMPLE_SUMS_MOST];
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < bag->count; i++) {
            for (size_t s = 0; s < bag->sums; s++)
                sums[s] = bag->totals[s] - bag->rows[i * bag->sums + s];
            double figure = what->figure(sums);
            if (!is_known(figure))
                continue;
            if (pass == 0)
                online_add(&without, figure);
            double distance = online_mean(&without) - figure;
            squares += pass ? distance * distance : 0;
            cubes += pass ? distance * distance * distance : 0;
        }
    return squares > 0 ? cubes / (6 * pow(squares, 1.5)) : 0;
}

/* Which quantile of what was drawn stands at an end of the interval. */
static double corrected(double p, double bias, double acceleration)
{
    double z = bias + normal_quantile(p);
    return normal_below(bias + z / (1 - acceleration * z));
}

static void ends_of(const struct resample *what, const struct bag *bag, double *drawn, size_t count,
                    struct resample_interval *out)
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
    double bias = normal_quantile(below / (double)count);
    if (!is_known(bias)) { /* all on one side: there is nothing to correct by */
        out->low = quantile_sorted(drawn, count, 0.025);
        out->high = quantile_sorted(drawn, count, 0.975);
        return;
    }
    double skew = acceleration(what, bag);
    out->low = quantile_sorted(drawn, count, corrected(0.025, bias, skew));
    out->high = quantile_sorted(drawn, count, corrected(0.975, bias, skew));
}

enum err resample_interval(const struct resample *what, struct resample_interval *out)
{
    struct bag bag;
    struct random draws = random_seeded(what->seed);
    *out = (struct resample_interval){UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    enum err err = fill_bag(what, &bag);
    double *drawn = malloc((what->draws + 1) * sizeof *drawn);
    size_t count = 0;
    if (!err && !drawn)
        err = ERR_NO_MEMORY;
    if (!err && what->count)
        out->figure = what->figure(bag.totals);
    for (unsigned i = 0; !err && bag.count > 1 && i < what->draws; i++) {
        double figure = draw_figure(what, &bag, &draws);
        if (is_known(figure))
            drawn[count++] = figure;
    }
    if (count > 1 && is_known(out->figure))
        ends_of(what, &bag, drawn, count, out);
    free(drawn);
    free(bag.rows);
    return err;
}
