#include "stats/bootstrap.h"

#include "core/random.h"

void bootstrap_pick(struct random *draws, const unsigned *strata, size_t count, size_t *picked)
{
    for (size_t i = 0; i < count; i++) {
        size_t alike = 0;
        for (size_t j = 0; j < count; j++)
            alike += strata[j] == strata[i];
        size_t wanted = random_index(draws, alike);
        for (size_t j = 0; j < count; j++)
            if (strata[j] == strata[i] && wanted-- == 0)
                picked[i] = j;
    }
}
