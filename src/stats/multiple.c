/* p values of counts, and of several questions at once. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/units.h"
#include "stats/contrast.h"

double sign_test(uint64_t wins, uint64_t losses)
{
    uint64_t fewer = wins < losses ? wins : losses;
    double all = (double)(wins + losses), p = 0;
    if (2 * fewer + 1 >= wins + losses)
        return 1; /* as even as can be: the sum is a half, but for rounding */
    double log_ways = lgamma(all + 1) - all * log(2);
    for (uint64_t k = 0; k <= fewer; k++)
        p += exp(log_ways - lgamma((double)k + 1) - lgamma(all - (double)k + 1));
    return 2 * p < 1 ? 2 * p : 1;
}

/* The smallest that was not settled yet; count when there is none. */
static size_t smallest_left(const double *p_values, const bool *settled, size_t count)
{
    size_t found = count;
    for (size_t i = 0; i < count; i++)
        if (!settled[i] && is_known(p_values[i]) &&
            (found == count || p_values[i] < p_values[found]))
            found = i;
    return found;
}

void holm_adjust(double *p_values, size_t count)
{
    bool *settled = calloc(count + 1, sizeof *settled);
    size_t left = 0, next;
    double before = 0;
    for (size_t i = 0; i < count; i++)
        left += is_known(p_values[i]);
    if (!settled) { /* no memory: the cruder correction is on the safe side */
        for (size_t i = 0; i < count; i++)
            p_values[i] = fmin(1, p_values[i] * (double)left);
        return;
    }
    for (; left; left--) {
        next = smallest_left(p_values, settled, count);
        before = fmax(before, fmin(1, p_values[next] * (double)left));
        p_values[next] = before;
        settled[next] = true;
    }
    free(settled);
}
