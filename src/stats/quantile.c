#include "stats/quantile.h"

#include <stdint.h>
#include <stdlib.h>

#include "core/units.h"

static int ascending_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double quantile_sorted(const double *ascending, size_t count, double p)
{
    if (!count || !(p >= 0 && p <= 1))
        return UNKNOWN;
    double position = p * (double)(count - 1);
    size_t below = (size_t)position;
    if (below >= count - 1)
        return ascending[count - 1];
    double share = position - (double)below;
    double low = ascending[below], high = ascending[below + 1];
    /* Weighted rather than low + share * (high - low): the difference may overflow.  Equal
     * neighbours are returned as they are, so rounding never leaves their range. */
    if (low == high || share == 0)
        return low;
    return low * (1 - share) + high * share;
}

/* A sorted copy of the finite values, to be freed; NULL when there is none or no memory. */
static double *sorted_copy(const double *values, size_t count, size_t *kept)
{
    *kept = 0;
    if (!count || count > SIZE_MAX / sizeof(double))
        return NULL;
    double *copy = malloc(count * sizeof *copy);
    if (!copy)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (is_known(values[i]))
            copy[(*kept)++] = values[i];
    qsort(copy, *kept, sizeof *copy, ascending_order);
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

double median(const double *values, size_t count)
{
    return quantile(values, count, 0.5);
}
