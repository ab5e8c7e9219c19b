#include "stats/sketch.h"

#include <math.h>
#include <stdlib.h>

#include "core/units.h"
#include "stats/quantile.h"

enum { EXACT_MOST = 4096, BINS = 4200 };

/* Bins are a per cent wide, from a billionth upwards: 4200 of them reach a billion. */
#define BIN_RATIO 1.01
#define BIN_LEAST 1e-9

static size_t bin_of(double value)
{
    if (value <= BIN_LEAST)
        return 0;
    double bin = 1 + floor(log(value / BIN_LEAST) / log(BIN_RATIO));
    return bin < BINS - 1 ? (size_t)bin : BINS - 1;
}

/* The middle of a bin, by ratio: at most half a per cent from anything in it. */
static double bin_middle(size_t bin)
{
    return bin == 0 ? 0 : BIN_LEAST * pow(BIN_RATIO, (double)bin - 0.5);
}

static enum err become_coarse(struct sketch *sketch)
{
    sketch->bins = calloc(BINS, sizeof *sketch->bins);
    if (!sketch->bins)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < EXACT_MOST; i++)
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
        sketch->exact = malloc(EXACT_MOST * sizeof *sketch->exact);
        if (!sketch->exact)
            return ERR_NO_MEMORY;
    }
    if (count == EXACT_MOST && !sketch->bins) {
        enum err err = become_coarse(sketch);
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
