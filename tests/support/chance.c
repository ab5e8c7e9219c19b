#include "support/chance.h"

static uint64_t state;

void chance_seed(uint64_t seed)
{
    state = seed;
}

double chance(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

double between(double low, double high)
{
    return low + (high - low) * chance();
}
