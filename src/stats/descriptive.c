#include "stats/descriptive.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/units.h"

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

double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / (double)count : UNKNOWN;
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

/* ---- sorting ---- */

static void swap(double *a, double *b)
{
    double kept = *a;
    *a = *b;
    *b = kept;
}

/* Median of three: avoids the worst case for sorted input. */
static double pivot_of(const double *values, size_t low, size_t high)
{
    double a = values[low], b = values[low + (high - low) / 2], c = values[high];
    if ((a <= b) == (b <= c))
        return b;
    return (b <= a) == (a <= c) ? a : c;
}

/* Hoare's partition: everything up to *left is at most the pivot, from *right on at least. */
static void split(double *values, size_t low, size_t high, size_t *left, size_t *right)
{
    double pivot = pivot_of(values, low, high);
    size_t i = low, j = high;
    for (;;) {
        while (values[i] < pivot)
            i++;
        while (values[j] > pivot)
            j--;
        if (i >= j)
            break;
        swap(&values[i], &values[j]);
        i++;
        j--;
    }
    *left = j;
    *right = i == j ? i + 1 : i;
}

/* Specialized for doubles: several times faster than qsort, which calls a comparison function. */
void sort_ascending(double *values, size_t count)
{
    while (count > 1) {
        size_t left, right;
        if (count <= 16) {
            for (size_t i = 1; i < count; i++)
                for (size_t j = i; j > 0 && values[j - 1] > values[j]; j--)
                    swap(&values[j - 1], &values[j]);
            return;
        }
        split(values, 0, count - 1, &left, &right);
        if (left + 1 < count - right) { /* recurse into the shorter side: bounds the stack */
            sort_ascending(values, left + 1);
            values += right;
            count -= right;
        } else {
            sort_ascending(values + right, count - right);
            count = left + 1;
        }
    }
}

/* ---- of sorted values ---- */

/* A weighted mean rather than low + share * (high - low), whose difference may overflow.  Equal neighbors are
 * returned unchanged, so that rounding never leaves their range. */
static double between(double low, double high, double share)
{
    return low == high || share == 0 ? low : low * (1 - share) + high * share;
}

double quantile_sorted(const double *ascending, size_t count, double p)
{
    if (!count || !(p >= 0 && p <= 1))
        return UNKNOWN;
    double position = p * (double)(count - 1);
    size_t below = (size_t)position;
    if (below >= count - 1)
        return ascending[count - 1];
    return between(ascending[below], ascending[below + 1], position - (double)below);
}

/* A sorted copy of the finite values, freed by the caller; NULL when there is none or out of memory. */
static double *sorted_copy(const double *values, size_t count, size_t *kept)
{
    *kept = 0;
    if (!count || count > SIZE_MAX / sizeof(double))
        return NULL;
    double *copy = memory_resize(NULL, count * sizeof *copy);
    if (!copy)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (is_known(values[i]))
            copy[(*kept)++] = values[i];
    sort_ascending(copy, *kept);
    return copy;
}

void quantiles(const double *values, size_t count, const double *ps, size_t p_count, double *out)
{
    size_t kept;
    double *copy = sorted_copy(values, count, &kept);
    for (size_t i = 0; i < p_count; i++)
        out[i] = copy ? quantile_sorted(copy, kept, ps[i]) : UNKNOWN;
    free(copy);
}

double quantile(const double *values, size_t count, double p)
{
    double out;
    quantiles(values, count, &p, 1, &out);
    return out;
}

/* ---- by selection ---- */

/* Partitions low .. high-1: moves values below the pivot (or equal to it, with or_equal) to the front and returns
 * where the others begin.  Branchless: the comparison is unpredictable, and a misprediction costs more than ten
 * moves. */
static size_t move_below(double *values, size_t low, size_t high, double pivot, bool or_equal)
{
    size_t end = low;
    for (size_t i = low; i < high; i++) {
        double value = values[i];
        values[i] = values[end];
        values[end] = value;
        end += or_equal ? value <= pivot : value < pivot;
    }
    return end;
}

/* Quickselect: the value of a rank (from 0); afterwards smaller values are before it, larger ones after it.  Values
 * before `low` are known to be smaller. */
static double select_rank(double *values, size_t low, size_t count, size_t rank)
{
    size_t high = count;
    while (high - low > 1) {
        double pivot = pivot_of(values, low, high - 1);
        size_t below = move_below(values, low, high, pivot, false);
        if (rank < below) {
            high = below;
            continue;
        }
        low = move_below(values, below, high, pivot, true);
        if (rank < low)
            break;
    }
    return values[rank];
}

/* Searches values from `from` on only; *below is where the search for a larger quantile may start. */
static double select_from(double *values, size_t from, size_t count, double p, size_t *below)
{
    double position = p * (double)(count - 1);
    *below = (size_t)position;
    double share = position - (double)*below, low = select_rank(values, from, count, *below);
    if (share == 0 || *below + 1 >= count)
        return low;
    double high = values[*below + 1]; /* the smallest of the following values */
    for (size_t i = *below + 2; i < count; i++)
        high = values[i] < high ? values[i] : high;
    return between(low, high, share);
}

void select_quantiles(double *values, size_t count, const double *ps, size_t p_count, double *out)
{
    size_t from = 0;
    for (size_t i = 0; i < p_count; i++)
        out[i] = count && ps[i] >= 0 && ps[i] <= 1 ? select_from(values, from, count, ps[i], &from)
                                                   : UNKNOWN;
}

double select_median(double *values, size_t count)
{
    const double half = 0.5;
    double out;
    select_quantiles(values, count, &half, 1, &out);
    return out;
}

double conformal_quantile(double *values, size_t count, double level)
{
    if (count == 0)
        return UNKNOWN;
    sort_ascending(values, count);
    double rank = ceil(level * (double)(count + 1));
    return values[rank > (double)count ? count - 1 : rank < 1 ? 0 : (size_t)rank - 1];
}

/* ---- uncertainty ---- */

#define MEDIAN_ERROR 1.2533 /* standard error of a median over that of a mean */

double relative_scatter(const double *values, size_t count)
{
    double sum = 0, squares = 0;
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (is_known(values[i])) {
            sum += values[i];
            known++;
        }
    double mean = ratio(sum, (double)known);
    for (size_t i = 0; i < count; i++)
        if (is_known(values[i]))
            squares += (values[i] - mean) * (values[i] - mean);
    if (known < 2 || !(mean > 0))
        return UNKNOWN;
    double scatter = sqrt(squares / (double)(known - 1)) / mean;
    return known > 2 ? MEDIAN_ERROR * scatter : scatter; /* the median of two is their mean */
}

/* By the binomial distribution of the number of draws below the quantile; each end excludes (1 - level) / 2. */
void quantile_interval(const double *ascending, size_t count, double p, double level, double *low,
                       double *high)
{
    double tail = (1 - level) / 2, n = (double)count, below = 0;
    *low = *high = UNKNOWN;
    if (!(p > 0) || !(p < 1) || !(tail > 0))
        return;
    for (size_t k = 0; k < count; k++) {
        double i = (double)k;
        below += exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) + i * log(p) +
                     (n - i) * log1p(-p));
        if (below <= tail)
            *low = ascending[k];
        if (below >= 1 - tail) {
            *high = ascending[k];
            return;
        }
    }
}

size_t quantile_min_count(double p, double level)
{
    double count_min = p > 0 && p < 1 && level < 1 ? log((1 - level) / 2) / log(p) : 0;
    return (size_t)ceil(count_min);
}

/* ---- sketch ---- */

enum { EXACT_MAX = 4096, BINS = 4200 };

/* Bins are one percent wide and start at 1e-9: 4200 of them reach 1e9. */
#define BIN_RATIO 1.01
#define BIN_MIN   1e-9

static size_t bin_of(double value)
{
    if (value <= BIN_MIN)
        return 0;
    double bin = 1 + floor(log(value / BIN_MIN) / log(BIN_RATIO));
    return bin < BINS - 1 ? (size_t)bin : BINS - 1;
}

/* The geometric middle of a bin: at most half a percent from any value in it. */
static double bin_middle(size_t bin)
{
    return bin == 0 ? 0 : BIN_MIN * pow(BIN_RATIO, (double)bin - 0.5);
}

static enum err switch_to_bins(struct sketch *sketch)
{
    sketch->bins = memory_zeroed(BINS, sizeof *sketch->bins);
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
        sketch->exact = memory_resize(NULL, EXACT_MAX * sizeof *sketch->exact);
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

/* ---- kernel density ---- */

struct online online_of(const double *values, size_t count)
{
    struct online moments = {0};
    for (size_t i = 0; i < count; i++)
        online_add(&moments, values[i]);
    return moments;
}

static double width_of(const struct online *moments)
{
    double spread = online_stddev(moments);
    return spread > 0 ? 0.9 * spread * pow((double)moments->count, -0.2) : UNKNOWN;
}

double kde_bandwidth(const double *values, size_t count)
{
    struct online moments = online_of(values, count);
    return width_of(&moments);
}

/* Bins the values on a grid from the smallest to the largest: each point gets a kernel with its weight. */
static void bin_values(const double *values, size_t count, const struct online *moments,
                       double *weights, double *centers)
{
    double step = (moments->max - moments->min) / (KDE_GRID - 1);
    for (size_t i = 0; i < KDE_GRID; i++) {
        weights[i] = 0;
        centers[i] = moments->min + (double)i * step;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_known(values[i]))
            continue;
        double position = (values[i] - moments->min) / step;
        size_t below = position < KDE_GRID - 1 ? (size_t)position : KDE_GRID - 2;
        double share = position - (double)below;
        weights[below] += 1 - share;
        weights[below + 1] += share;
    }
}

static double density_at(double at, const double *centers, const double *weights, size_t count,
                         double width)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        double z = (at - centers[i]) / width;
        if (is_known(centers[i]) && (!weights || weights[i] > 0))
            sum += (weights ? weights[i] : 1) * exp(-z * z / 2);
    }
    return sum;
}

enum err kde(const double *values, size_t count, const double *at, size_t points, double *density)
{
    struct online moments = online_of(values, count);
    double width = width_of(&moments), *grid = NULL;
    if (!is_known(width))
        return ERR_NO_DATA;
    if (moments.count > KDE_EXACT) {
        grid = memory_resize(NULL, 2 * KDE_GRID * sizeof *grid);
        if (!grid)
            return ERR_NO_MEMORY;
        bin_values(values, count, &moments, grid, grid + KDE_GRID);
    }
    double scale = 1 / ((double)moments.count * width * 2.5066282746310002);
    for (size_t i = 0; i < points; i++)
        density[i] = scale * (grid ? density_at(at[i], grid + KDE_GRID, grid, KDE_GRID, width)
                                   : density_at(at[i], values, NULL, count, width));
    free(grid);
    return ERR_OK;
}
