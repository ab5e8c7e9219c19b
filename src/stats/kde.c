#include "stats/kde.h"

#include <stdlib.h>

#include "core/units.h"
#include "stats/online.h"

static struct online moments_of(const double *values, size_t count)
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
    struct online moments = moments_of(values, count);
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
    struct online moments = moments_of(values, count);
    double width = width_of(&moments), *grid = NULL;
    if (!is_known(width))
        return ERR_NO_DATA;
    if (moments.count > KDE_EXACT) {
        grid = malloc(2 * KDE_GRID * sizeof *grid);
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
