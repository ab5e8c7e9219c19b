#include "stats/bootstrap.h"

#include <math.h>

/* Two multiplications mix the steps of an odd constant until every bit of one depends on all of the
 * other (splitmix64). */
static uint64_t next(struct draws *draws)
{
    uint64_t value = draws->state += UINT64_C(0x9E3779B97F4A7C15);
    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

struct draws draws_from(uint64_t seed)
{
    struct draws draws = {.state = seed};
    draws.state = next(&draws);
    return draws;
}

/* In (0, 1). */
static double draw_unit(struct draws *draws)
{
    return ((double)(next(draws) >> 12) + 0.5) / 4503599627370496.0;
}

size_t draw_below(struct draws *draws, size_t limit)
{
    return (size_t)(draw_unit(draws) * (double)limit);
}

double draw_normal(struct draws *draws)
{
    double radius = sqrt(-2 * log(draw_unit(draws)));
    return radius * cos(6.283185307179586 * draw_unit(draws));
}

void bootstrap_pick(struct draws *draws, const unsigned *strata, size_t count, size_t *picked)
{
    for (size_t i = 0; i < count; i++) {
        size_t alike = 0;
        for (size_t j = 0; j < count; j++)
            alike += strata[j] == strata[i];
        size_t wanted = draw_below(draws, alike);
        for (size_t j = 0; j < count; j++)
            if (strata[j] == strata[i] && wanted-- == 0)
                picked[i] = j;
    }
}
