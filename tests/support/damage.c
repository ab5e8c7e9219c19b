#define _GNU_SOURCE
#include "support/damage.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/rng.h"
#include "support/unit.h"

enum { ROUNDS = 20000, ROUNDS_WATCHED = 1500, SPARE_BYTES = 64 << 20 };

static void put(char *bytes, size_t length, size_t at, uint64_t value, unsigned count)
{
    for (unsigned i = 0; i < count && at + i < length; i++)
        bytes[at + i] = (char)(value >> (8 * i));
}

/* A number that a careless parser mishandles. */
static uint64_t boundary_value(uint64_t *seed)
{
    static const uint64_t NUMBERS[] = {
        0,
        1,
        2,
        31,
        64,
        255,
        UINT64_C(1) << 16,
        UINT64_C(1) << 31,
        UINT64_C(1) << 32,
        INT64_MAX,
        UINT64_C(1) << 63,
        UINT64_MAX,
        UINT64_MAX - 7,
        UINT64_MAX / 8,
        UINT64_MAX / 13,
    };
    return NUMBERS[rng_bits(seed) % (sizeof NUMBERS / sizeof *NUMBERS)];
}

/* Damages a copy; returns its length, which may be less. */
static size_t damage(char *bytes, size_t length, size_t header, uint64_t *seed)
{
    for (uint64_t count = 1 + rng_bits(seed) % 3; count; count--) {
        size_t at = rng_bits(seed) % header;
        size_t other = rng_bits(seed) % header;
        switch (rng_bits(seed) % 6) {
        case 0:
            bytes[at] = (char)rng_bits(seed);
            break;
        case 1:
            bytes[at] ^= (char)(1 << rng_bits(seed) % 8);
            break;
        case 2:
            put(bytes, length, at, boundary_value(seed), 8);
            break;
        case 3:
            put(bytes, length, at, boundary_value(seed), 4);
            break;
        case 4: /* a piece of it moved somewhere else */
            memmove(bytes + at, bytes + other, (header - (at > other ? at : other)) % 64);
            break;
        default:
            length = rng_bits(seed) % 4 ? length : at;
            header = header < length ? header : length;
            break;
        }
        if (header == 0)
            break;
    }
    return length;
}

static void limit_memory(void)
{
    unsigned long pages;
    char line[64] = "";
    int statm = open("/proc/self/statm", O_RDONLY);
    assert_true(read(statm, line, sizeof line - 1) > 0);
    close(statm);
    pages = strtoul(line, NULL, 10);
    assert_true(pages > 0);
    rlim_t limit = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + SPARE_BYTES;
    assert_int_equal(setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit}), 0);
}

void damage_test(const char *bytes, size_t length, size_t header, uint64_t seed,
                 damage_exercise *exercise)
{
    assert_null(exercise(bytes, length));
    if (!test_is_instrumented())
        limit_memory();
    for (int round = 0; round < (test_is_instrumented() ? ROUNDS_WATCHED : ROUNDS); round++) {
        uint64_t began = seed;
        char *copy = malloc(length);
        assert_non_null(copy);
        memcpy(copy, bytes, length);
        size_t left = damage(copy, length, header, &seed);
        char *exact = malloc(left ? left : 1); /* so that a read past the end is detected */
        assert_non_null(exact);
        memcpy(exact, copy, left);
        const char *wrong = exercise(exact, left);
        if (wrong)
            fail_msg("seed %llu, %zu bytes: %s", (unsigned long long)began, left, wrong);
        free(exact);
        free(copy);
    }
}
