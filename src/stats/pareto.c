#include "core/xalloc.h"
#include "stats/pareto.h"

#include <math.h>
#include <stdlib.h>

struct choice {
    double cost, benefit;
    size_t index;
};

/* By ascending cost, then by descending benefit. */
static int by_cost(const void *left, const void *right)
{
    const struct choice *a = left, *b = right;
    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    return (a->benefit < b->benefit) - (a->benefit > b->benefit);
}

static size_t known_choices(const double *cost, const double *benefit, size_t count,
                            struct choice *out)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(cost[i]) && !isnan(benefit[i]))
            out[known++] = (struct choice){cost[i], benefit[i], i};
    return known;
}

void pareto_mark(const double *cost, const double *benefit, size_t count, bool *optimal)
{
    struct choice *choices = xreallocarray(NULL, count, sizeof *choices);
    size_t known = known_choices(cost, benefit, count, choices);
    for (size_t i = 0; i < count; i++)
        optimal[i] = false;
    qsort(choices, known, sizeof *choices, by_cost);
    const struct choice *best = NULL; /* highest benefit among those that cost no more */
    for (size_t i = 0; i < known; i++) {
        const struct choice *choice = &choices[i];
        if (best && choice->benefit <= best->benefit &&
            (choice->benefit != best->benefit || choice->cost != best->cost))
            continue;
        optimal[choice->index] = true;
        best = choice;
    }
    free(choices);
}
