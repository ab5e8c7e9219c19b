#include "support/rng.h"

static uint64_t state;

uint64_t rng_bits(uint64_t *stream)
{
    uint64_t value = *stream += UINT64_C(0x9E3779B97F4A7C15);
    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

double rng_uniform_of(uint64_t *stream)
{
    *stream = *stream * 6364136223846793005u + 1442695040888963407u;
    return (double)(*stream >> 11) / 9007199254740992.0;
}

void rng_seed(uint64_t seed)
{
    state = seed;
}

double rng_uniform(void)
{
    return rng_uniform_of(&state);
}

double rng_between(double low, double high)
{
    return low + (high - low) * rng_uniform();
}
