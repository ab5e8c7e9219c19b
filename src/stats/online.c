#include "stats/online.h"

#include <math.h>
#include <stdlib.h>

#include "core/units.h"
#include "stats/quantile.h"

/* ---- moments ---- */

void online_add(struct online *stats, double value)
{
    if (!is_known(value))
        return;
    if (!stats->count || value < stats->min)
        stats->min = value;
    if (!stats->count || value > stats->max)
        stats->max = value;
    stats->count++;
    double before = value - stats->mean;
    stats->mean += before / (double)stats->count;
    stats->squares += before * (value - stats->mean);
}

double online_mean(const struct online *stats)
{
    return stats->count ? stats->mean : UNKNOWN;
}

double online_min(const struct online *stats)
{
    return stats->count ? stats->min : UNKNOWN;
}

double online_max(const struct online *stats)
{
    return stats->count ? stats->max : UNKNOWN;
}

double online_stddev(const struct online *stats)
{
    return stats->count < 2 ? UNKNOWN : sqrt(stats->squares / (double)(stats->count - 1));
}

double online_standard_error(const struct online *stats)
{
    return stats->count < 2 ? UNKNOWN : online_stddev(stats) / sqrt((double)stats->count);
}

/* ---- sketch ---- */

enum { EXACT_MAX = 4096, BINS = 4200 };

/* Bins are one per cent wide and start at 1e-9: 4200 of them reach 1e9. */
#define BIN_RATIO 1.01
#define BIN_MIN   1e-9

static size_t bin_of(double value)
{
    if (value <= BIN_MIN)
        return 0;
    double bin = 1 + floor(log(value / BIN_MIN) / log(BIN_RATIO));
    return bin < BINS - 1 ? (size_t)bin : BINS - 1;
}

/* The geometric middle of a bin: at most half a per cent from anything in it. */
static double bin_middle(size_t bin)
{
    return bin == 0 ? 0 : BIN_MIN * pow(BIN_RATIO, (double)bin - 0.5);
}

static enum err switch_to_bins(struct sketch *sketch)
{
    sketch->bins = calloc(BINS, sizeof *sketch->bins);
    if (!sketch->bins)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < EXACT_MAX; i++)
        sketch->bins[bin_of(sketch->exact[i])]++;
    free(sketch->exact);
    sketch->exact = NULL;
    return ERR_OK;
}

enum err sketch_add(struct sketch *sketch, double value)
{
    if (!is_known(value))
        return ERR_OK;
    uint64_t count = sketch->moments.count;
    if (count == 0 && !sketch->exact) {
        sketch->exact = malloc(EXACT_MAX * sizeof *sketch->exact);
        if (!sketch->exact)
            return ERR_NO_MEMORY;
    }
    if (count == EXACT_MAX && !sketch->bins) {
        enum err err = switch_to_bins(sketch);
        if (err)
            return err;
    }
    if (sketch->bins)
        sketch->bins[bin_of(value)]++;
    else
        sketch->exact[count] = value;
    online_add(&sketch->moments, value);
    return ERR_OK;
}

static double value_at(const struct sketch *sketch, double rank)
{
    uint64_t below = 0;
    for (size_t bin = 0; bin < BINS; bin++) {
        below += sketch->bins[bin];
        if ((double)below > rank)
            return fmin(fmax(bin_middle(bin), sketch->moments.min), sketch->moments.max);
    }
    return sketch->moments.max;
}

double sketch_quantile(const struct sketch *sketch, double p)
{
    uint64_t count = sketch->moments.count;
    if (count == 0 || !(p >= 0 && p <= 1))
        return UNKNOWN;
    if (!sketch->bins)
        return quantile(sketch->exact, count, p);
    if (p == 0 || p == 1)
        return p == 0 ? sketch->moments.min : sketch->moments.max;
    return value_at(sketch, p * (double)(count - 1));
}

void sketch_release(struct sketch *sketch)
{
    free(sketch->exact);
    free(sketch->bins);
    *sketch = (struct sketch){0};
}
