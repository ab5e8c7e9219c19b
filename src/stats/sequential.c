/* The statistic after each look is a sum of independent normal increments.  `density` is that of the sums that have not
 * crossed a bound, on a grid between the bounds; from one look to the next it is convolved with the increment. */
#include "stats/sequential.h"

#include <math.h>
#include <stdlib.h>

#include "core/xalloc.h"

enum { GRID = 200 }; /* intervals; even, for Simpson's rule */

/* Densities, times the weights of the integration, at the points of a grid from -end to end. */
struct grid {
    double end;
    double weighted[GRID + 1];
};

static double point(const struct grid *grid, size_t i)
{
    return grid->end * (2 * (double)i / GRID - 1);
}

static double weight(const struct grid *grid, size_t i)
{
    double step = 2 * grid->end / GRID;
    double simpson = i == 0 || i == GRID ? 1 : 2 + 2 * (double)(i % 2);
    return step / 3 * simpson;
}

static double density(double x, double sigma)
{
    static const double ROOT_2_PI = 2.5066282746310002;
    return exp(-x * x / (2 * sigma * sigma)) / (sigma * ROOT_2_PI);
}

static double above(double x, double sigma)
{
    return erfc(x / (sigma * sqrt(2))) / 2;
}

/* The probability of going on so far, and of ending now beyond +-end.  last: NULL for the first look. */
static double end_probability(const struct grid *last, double sigma, double end)
{
    double sum = 0;
    if (!last)
        return 2 * above(end, sigma);
    for (size_t i = 0; i <= GRID; i++)
        sum += last->weighted[i] *
               (above(end - point(last, i), sigma) + above(end + point(last, i), sigma));
    return sum;
}

/* The bound of the sum at which that probability is `wanted`. */
static double find_end(const struct grid *last, double sigma, double scale, double wanted)
{
    double low = 0, high = 40 * scale;
    for (int i = 0; i < 80; i++) {
        double middle = (low + high) / 2;
        if (end_probability(last, sigma, middle) > wanted)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

static void go_on(const struct grid *last, double sigma, struct grid *out)
{
    for (size_t i = 0; i <= GRID; i++) {
        double x = point(out, i), sum = 0;
        for (size_t j = 0; last && j <= GRID; j++)
            sum += last->weighted[j] * density(x - point(last, j), sigma);
        out->weighted[i] = weight(out, i) * (last ? sum : density(x, sigma));
    }
}

void sequential_bounds(const double *spent, const double *information, size_t looks, double *bounds)
{
    struct grid *grids = xmalloc(2 * sizeof *grids);
    const struct grid *last = NULL;
    for (size_t k = 0; k < looks; k++) {
        struct grid *now = &grids[k % 2];
        double scale = sqrt(information[k]);
        double sigma = sqrt(information[k] - (k ? information[k - 1] : 0));
        now->end = find_end(last, sigma, scale, spent[k] - (k ? spent[k - 1] : 0));
        bounds[k] = now->end / scale;
        if (k + 1 < looks)
            go_on(last, sigma, now);
        last = now;
    }
    free(grids);
}

double sequential_share(size_t pairs, size_t most, double alpha)
{
    double spent[SEQUENTIAL_MAX], information[SEQUENTIAL_MAX], bounds[SEQUENTIAL_MAX];
    if (most <= SEQUENTIAL_FIRST)
        return 1;
    most = most < SEQUENTIAL_MAX ? most : SEQUENTIAL_MAX;
    pairs = pairs < most ? pairs : most;
    size_t looks = pairs < SEQUENTIAL_FIRST ? 1 : pairs - SEQUENTIAL_FIRST + 1;
    for (size_t i = 0; i < looks; i++) {
        information[i] = (double)(SEQUENTIAL_FIRST + i);
        spent[i] = SEQUENTIAL_SPENT * alpha * information[i] / (double)most;
    }
    sequential_bounds(spent, information, looks, bounds);
    return 2 * above(bounds[looks - 1], 1) / alpha;
}
