#include "support/chance.h"

#include "core/random.h"

static struct random stream;

void chance_seed(uint64_t seed)
{
    stream = random_seeded(seed);
}

double chance(void)
{
    return random_unit(&stream);
}

double between(double low, double high)
{
    return low + (high - low) * chance();
}
