#include "stats/distribution.h"

#include <float.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/units.h"
#include "stats/descriptive.h"

/* ---- the incomplete beta function ---- */

/* Its continued fraction, by Lentz's method: fast for x < (a+1)/(a+b+2). */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double value = d;
    for (int m = 1; m < 100000; m++) {
        for (int odd = 0; odd < 2; odd++) {
            double term = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                              : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
            d = 1 + term * d;
            c = 1 + term / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            value *= c * d;
        }
        if (fabs(c * d - 1) < 2 * DBL_EPSILON)
            break;
    }
    return value;
}

/* log(Gamma(a + 1/2) / Gamma(a)): for large a both would overflow.  Not by lgamma, which writes to a variable that
 * threads share. */
static double log_gamma_step(double a)
{
    if (a < 100)
        return log(tgamma(a + 0.5) / tgamma(a));
    double r = 1 / a;
    return 0.5 * log(a) +
           r * (-1.0 / 8 + r * r * (1.0 / 192 + r * r * (-1.0 / 640 + r * r * 17.0 / 14336)));
}

/* The regularized incomplete beta function with b = 1/2 (or, mirrored, a = 1/2), which is all that Student's
 * distribution needs.  y = 1 - x is passed, because for x near 1 it cannot be computed from x. */
static double beta_half(double a, double x, double y)
{
    if (x <= 0 || y <= 0)
        return x <= 0 ? 0 : 1;
    double front = exp(a * (x > 0.5 ? log1p(-y) : log(x)) + 0.5 * (y > 0.5 ? log1p(-x) : log(y)) +
                       log_gamma_step(a)) /
                   1.7724538509055160; /* Gamma(1/2), the square root of pi */
    if (x < (a + 1) / (a + 2.5))
        return front * beta_fraction(a, 0.5, x) / a;
    return 1 - front * beta_fraction(0.5, a, y) / 0.5;
}

double student_outside(double t, double freedom)
{
    if (isnan(t) || !(freedom > 0))
        return UNKNOWN;
    double square = t * t;
    if (isinf(square))
        return 0;
    return beta_half(freedom / 2, freedom / (freedom + square), square / (freedom + square));
}

double student_quantile(double outside, double freedom)
{
    if (!(outside > 0 && outside <= 1) || !(freedom > 0))
        return UNKNOWN;
    double low = 0, high = 1;
    while (student_outside(high, freedom) > outside && high < 1e300)
        high *= 2;
    for (int i = 0; i < 200; i++) { /* bisection needs no derivative and always converges */
        double middle = low + (high - low) / 2;
        if (middle == low || middle == high)
            break;
        if (student_outside(middle, freedom) > outside)
            low = middle;
        else
            high = middle;
    }
    return low + (high - low) / 2;
}

/* ---- kernel density ---- */

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
