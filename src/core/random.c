#include "core/random.h"

#include <math.h>

#include "core/hash.h"

static uint64_t next(struct random *random)
{
    return hash_mix(random->state += UINT64_C(0x9E3779B97F4A7C15));
}

struct random random_from(uint64_t seed, uint64_t stream)
{
    return (struct random){.state = hash_mix(hash_mix(seed) + stream)};
}

struct random random_seeded(uint64_t seed)
{
    struct random random = {.state = seed};
    random.state = next(&random);
    return random;
}

double random_unit(struct random *random)
{
    /* 52 bits and a half, so that the sum is exact and cannot round up to 1. */
    return ((double)(next(random) >> 12) + 0.5) * 0x1p-52;
}

uint64_t random_below(struct random *random, uint64_t limit)
{
    if (limit == 0)
        return 0;
    /* 2^64 is rarely a multiple of limit: values of the incomplete remainder are drawn again. */
    uint64_t surplus = (UINT64_MAX - limit + 1) % limit;
    uint64_t value;
    do
        value = next(random);
    while (value < surplus);
    return value % limit;
}

size_t random_index(struct random *random, size_t limit)
{
    return (size_t)(random_unit(random) * (double)limit);
}

/* Box and Muller's method. */
double random_normal(struct random *random)
{
    double radius = sqrt(-2 * log(random_unit(random)));
    return radius * cos(6.283185307179586 * random_unit(random));
}

int64_t random_between(struct random *random, int64_t low, int64_t high)
{
    return low + (int64_t)random_below(random, (uint64_t)(high - low) + 1);
}

static void swap(char *a, char *b, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        char kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

void random_shuffle(struct random *random, void *items, size_t count, size_t size)
{
    char *bytes = items;
    for (size_t i = count; i > 1; i--) {
        size_t other = (size_t)random_below(random, i);
        if (other != i - 1)
            swap(bytes + other * size, bytes + (i - 1) * size, size);
    }
}
