#include "datasets/random.h"

#include <string.h>

/* The splitmix64 step: one addition and a mix whose every output bit depends on every input bit. */
static uint64_t mix(uint64_t value)
{
    value ^= value >> 30;
    value *= UINT64_C(0xBF58476D1CE4E5B9);
    value ^= value >> 27;
    value *= UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

static uint64_t next(struct random *random)
{
    random->state += UINT64_C(0x9E3779B97F4A7C15);
    return mix(random->state);
}

struct random random_from(uint64_t seed, uint64_t stream)
{
    return (struct random){.state = mix(mix(seed) + stream)};
}

uint64_t random_below(struct random *random, uint64_t limit)
{
    if (limit == 0)
        return 0;
    /* The lowest values would be a little likelier: draw again when one of the surplus comes. */
    uint64_t surplus = (UINT64_MAX - limit + 1) % limit;
    uint64_t value;
    do
        value = next(random);
    while (value < surplus);
    return value % limit;
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

uint64_t random_hash(const char *string)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325); /* FNV-1a, then mixed: its low bits are weak */
    for (const unsigned char *s = (const unsigned char *)string; *s; s++)
        hash = (hash ^ *s) * UINT64_C(0x100000001B3);
    return mix(hash);
}
