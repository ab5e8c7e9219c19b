/* Shared by the benches: the median of the rounds and the line that tools/bench reads. A figure
 * that misses its bound has fail in its line, which tools/bench counts; a bench itself fails only
 * when it could not measure. Compare two ways in the same run, interleaved, so that a busy machine
 * slows both equally. */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include <stdio.h>
#include <stdlib.h>

static inline int bench_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts values. */
static inline double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, bench_by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Prints a figure without a bound, for comparison: not a check, and not shown as one. */
static inline void bench_report(const char *name, double value, const char *unit)
{
    printf("for comparison: %s %.4g %s\n", name, value, unit);
}

/* Reports a figure that must not exceed its bound. */
static inline void bench_at_most(const char *name, double value, const char *unit, double bound)
{
    printf("%s\t%.4g\t%s\t<= %g\t%s\n", name, value, unit, bound, value <= bound ? "pass" : "fail");
}

/* Reports a figure that must reach its bound. */
static inline void bench_at_least(const char *name, double value, const char *unit, double bound)
{
    printf("%s\t%.4g\t%s\t>= %g\t%s\n", name, value, unit, bound, value >= bound ? "pass" : "fail");
}

#endif
