/* Units and the time type.  Inside the program time is monotonic nanoseconds, energy is in joules and power in watts;
 * any other unit is part of the name (_ms, _uj, _mw). */
#ifndef IPW_CORE_UNITS_H
#define IPW_CORE_UNITS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef int64_t nanos;

#define NS_PER_US ((nanos)1000)
#define NS_PER_MS ((nanos)1000000)
#define NS_PER_S  ((nanos)1000000000)

static inline nanos max_nanos(nanos a, nanos b)
{
    return a > b ? a : b;
}

static inline nanos min_nanos(nanos a, nanos b)
{
    return a < b ? a : b;
}

/* Unknown is not zero: a value that was not measured is UNKNOWN, and prints as null or "-". */
#define UNKNOWN NAN

static inline bool is_known(double value)
{
    return isfinite(value);
}

static inline double known_or(double value, double otherwise)
{
    return is_known(value) ? value : otherwise;
}

/* A count that is negative when unknown. */
static inline double known_count(int64_t count)
{
    return count >= 0 ? (double)count : UNKNOWN;
}

/* An unknown sum becomes its first known part. */
static inline void add_known(double *sum, double part)
{
    if (is_known(part))
        *sum = (is_known(*sum) ? *sum : 0) + part;
}

/* UNKNOWN if the divisor is not above 0, and for a quotient that overflows. */
static inline double ratio(double over, double under)
{
    bool is_defined = is_known(over) && is_known(under) && under > 0;
    return is_defined && is_known(over / under) ? over / under : UNKNOWN;
}

/* Whether they are equal, or both unknown. */
static inline bool is_same_number(double a, double b)
{
    return a == b || (!is_known(a) && !is_known(b));
}

static inline double square(double x)
{
    return x * x;
}

/* -1, 0 or 1, for an ascending order. */
static inline int compare_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

/* Ascending, for qsort and bsearch. */
static inline int compare_doubles(const void *left, const void *right)
{
    return compare_numbers(*(const double *)left, *(const double *)right);
}

static inline double seconds(nanos t)
{
    return (double)t * 1e-9;
}

static inline nanos from_seconds(double s)
{
    return (nanos)llround(s * 1e9);
}

#endif
