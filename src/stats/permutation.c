#include "stats/permutation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"

/* As large as what was seen, but for rounding: sums in another order differ in the last digits. */
static bool is_as_large(double value, double seen)
{
    return fabs(value) >= fabs(seen) - 1e-13 * fabs(seen);
}

static void count_p(struct permutation *out, uint64_t as_large)
{
    out->p_value = out->exact ? (double)as_large / (double)out->tried
                              : (double)(as_large + 1) / (double)(out->tried + 1);
}

/* ---- pairs ---- */

static double signed_sum(const double *differences, size_t count, uint64_t signs)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += signs >> i & 1 ? -differences[i] : differences[i];
    return sum;
}

static double drawn_sum(const double *differences, size_t count, struct random *draws)
{
    double sum = 0;
    uint64_t bits = 0;
    for (size_t i = 0; i < count; i++) {
        if (i % 32 == 0)
            bits = random_index(draws, (size_t)1 << 32);
        sum += bits >> i % 32 & 1 ? -differences[i] : differences[i];
    }
    return sum;
}

enum err permutation_paired(const double *a, const double *b, size_t count, uint64_t most,
                            uint64_t seed, struct permutation *out)
{
    if (!count)
        return ERR_NO_DATA;
    double *differences = malloc(count * sizeof *differences);
    if (!differences)
        return ERR_NO_MEMORY;
    struct random draws = random_seeded(seed);
    uint64_t as_large = 0;
    for (size_t i = 0; i < count; i++)
        differences[i] = a[i] - b[i];
    double seen = signed_sum(differences, count < 64 ? count : 0, 0);
    for (size_t i = 0; count >= 64 && i < count; i++)
        seen += differences[i];
    out->exact = count < 63 && UINT64_C(1) << count <= most;
    out->tried = out->exact ? UINT64_C(1) << count : most;
    out->difference = seen / (double)count;
    for (uint64_t i = 0; i < out->tried; i++)
        as_large += is_as_large(out->exact ? signed_sum(differences, count, i)
                                           : drawn_sum(differences, count, &draws),
                                seen);
    count_p(out, as_large);
    free(differences);
    return ERR_OK;
}

/* ---- two sets ---- */

/* How many ways there are to choose, or `most` + 1 when more. */
static uint64_t ways(size_t all, size_t chosen, uint64_t most)
{
    double count = 1;
    for (size_t i = 0; i < chosen && count <= (double)most; i++)
        count = count * (double)(all - i) / (double)(i + 1);
    return count > (double)most ? most + 1 : (uint64_t)(count + 0.5);
}

/* The next choice in lexicographic order; false after the last. */
static bool next_choice(size_t *chosen, size_t count, size_t all)
{
    size_t i = count;
    while (i > 0 && chosen[i - 1] == all - count + i - 1)
        i--;
    if (i == 0)
        return false;
    chosen[i - 1]++;
    for (; i < count; i++)
        chosen[i] = chosen[i - 1] + 1;
    return true;
}

/* `count` of all at random, at the front: the first steps of a shuffle. */
static void draw_front(double *values, size_t count, size_t all, struct random *draws)
{
    for (size_t i = 0; i < count; i++) {
        size_t other = i + random_index(draws, all - i);
        double kept = values[i];
        values[i] = values[other];
        values[other] = kept;
    }
}

struct two_sets {
    double *values; /* of both, about their common mean */
    size_t *chosen;
    size_t a_count, all;
    double total;
};

/* The difference of means, given the sum of the first set. */
static double difference_of(const struct two_sets *sets, double sum)
{
    return sum / (double)sets->a_count - (sets->total - sum) / (double)(sets->all - sets->a_count);
}

static uint64_t try_all(struct two_sets *sets, double seen)
{
    uint64_t as_large = 0;
    do {
        double sum = 0;
        for (size_t i = 0; i < sets->a_count; i++)
            sum += sets->values[sets->chosen[i]];
        as_large += is_as_large(difference_of(sets, sum), seen);
    } while (next_choice(sets->chosen, sets->a_count, sets->all));
    return as_large;
}

static uint64_t try_drawn(struct two_sets *sets, double seen, uint64_t tries, uint64_t seed)
{
    struct random draws = random_seeded(seed);
    uint64_t as_large = 0;
    for (uint64_t t = 0; t < tries; t++) {
        double sum = 0;
        draw_front(sets->values, sets->a_count, sets->all, &draws);
        for (size_t i = 0; i < sets->a_count; i++)
            sum += sets->values[i];
        as_large += is_as_large(difference_of(sets, sum), seen);
    }
    return as_large;
}

enum err permutation_unpaired(const double *a, size_t a_count, const double *b, size_t b_count,
                              uint64_t most, uint64_t seed, struct permutation *out)
{
    if (!a_count || !b_count)
        return ERR_NO_DATA;
    if (b_count < a_count) { /* the smaller set is chosen: fewer values to add up each time */
        enum err err = permutation_unpaired(b, b_count, a, a_count, most, seed, out);
        out->difference = -out->difference;
        return err;
    }
    struct two_sets sets = {.a_count = a_count, .all = a_count + b_count};
    sets.values = malloc(sets.all * sizeof *sets.values);
    sets.chosen = malloc(sets.all * sizeof *sets.chosen);
    if (!sets.values || !sets.chosen) {
        free(sets.values);
        free(sets.chosen);
        return ERR_NO_MEMORY;
    }
    memcpy(sets.values, a, a_count * sizeof *a);
    memcpy(sets.values + a_count, b, b_count * sizeof *b);
    double sum = 0;
    for (size_t i = 0; i < sets.all; i++) {
        sets.chosen[i] = i;
        sets.total += sets.values[i];
        sum += i < a_count ? sets.values[i] : 0;
    }
    out->difference = difference_of(&sets, sum);
    uint64_t arrangements = ways(sets.all, a_count, most);
    out->exact = arrangements <= most;
    out->tried = out->exact ? arrangements : most;
    count_p(out, out->exact ? try_all(&sets, out->difference)
                            : try_drawn(&sets, out->difference, most, seed));
    free(sets.values);
    free(sets.chosen);
    return ERR_OK;
}
