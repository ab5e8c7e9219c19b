#include "stats/distribution.h"

#include <float.h>

#include "core/units.h"

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

/* log(Gamma(a + 1/2) / Gamma(a)), which overflow individually for large a.  Not by lgamma, which writes to a global
 * variable. */
static double log_gamma_step(double a)
{
    if (a < 100)
        return log(tgamma(a + 0.5) / tgamma(a));
    double r = 1 / a;
    return 0.5 * log(a) +
           r * (-1.0 / 8 + r * r * (1.0 / 192 + r * r * (-1.0 / 640 + r * r * 17.0 / 14336)));
}

/* The regularized incomplete beta function with b = 1/2 (or, mirrored, a = 1/2), as Student's distribution needs it.
 * y = 1 - x is passed, because for x near 1 computing it from x cancels. */
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

double student_two_sided(double t, double freedom)
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
    while (student_two_sided(high, freedom) > outside && high < 1e300)
        high *= 2;
    for (int i = 0; i < 200; i++) { /* bisection needs no derivative and always converges */
        double middle = low + (high - low) / 2;
        if (middle == low || middle == high)
            break;
        if (student_two_sided(middle, freedom) > outside)
            low = middle;
        else
            high = middle;
    }
    return low + (high - low) / 2;
}
