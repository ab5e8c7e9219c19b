#include "support/unit.h"

#include <math.h>

#include "core/random.h"
#include "core/units.h"
#include "stats/contrast.h"
#include "stats/sequential.h"

enum { LOOKS = 5, MOST = 20, SERIES = 2000 };
#define LEVEL 0.035 /* of the energy in `ipw compare` */

/* ---- bounds ---- */

static void bounds_with(const double *spent, double *bounds)
{
    static const double INFORMATION[LOOKS] = {1, 2, 3, 4, 5};
    sequential_bounds(spent, INFORMATION, LOOKS, bounds);
}

static double normal_above(double z)
{
    return erfc(z / sqrt(2)) / 2;
}

/* Lan and DeMets, five equally spaced looks, 5 % two-sided. */
static void bounds_are_those_of_published_tables(void **state)
{
    static const double POCOCK[LOOKS] = {2.438, 2.427, 2.410, 2.397, 2.386};
    static const double O_BRIEN[LOOKS] = {4.877, 3.357, 2.680, 2.290, 2.031};
    double spent[LOOKS], bounds[LOOKS];
    (void)state;
    for (size_t i = 0; i < LOOKS; i++)
        spent[i] = 0.05 * log(1 + (exp(1) - 1) * (double)(i + 1) / LOOKS);
    bounds_with(spent, bounds);
    for (size_t i = 0; i < LOOKS; i++)
        assert_near(bounds[i], POCOCK[i], 0.0011);
    for (size_t i = 0; i < LOOKS; i++)
        spent[i] = 4 * normal_above(2.241402727604947 / sqrt((double)(i + 1) / LOOKS));
    bounds_with(spent, bounds);
    for (size_t i = 0; i < LOOKS; i++)
        assert_near(bounds[i], O_BRIEN[i], 0.0011);
}

static void a_single_look_has_the_whole_error(void **state)
{
    (void)state;
    assert_near(sequential_share(SEQUENTIAL_FIRST, SEQUENTIAL_FIRST, LEVEL), 1, 1e-12);
    assert_near(sequential_share(2, 2, LEVEL), 1, 1e-12);
    assert_near(sequential_share(SEQUENTIAL_FIRST, MOST, LEVEL),
                SEQUENTIAL_SPENT * SEQUENTIAL_FIRST / MOST, 1e-9);
}

static void shares_are_below_one_and_more_looks_leave_less(void **state)
{
    (void)state;
    for (size_t most = 4; most <= SEQUENTIAL_MAX; most += 49)
        for (size_t pairs = 1; pairs <= most; pairs += 7) {
            double share = sequential_share(pairs, most, LEVEL);
            assert_true(share > 0 && share < 1);
        }
    assert_true(sequential_share(20, 20, LEVEL) < sequential_share(5, 5, LEVEL));
    assert_near(sequential_share(400, 300, LEVEL),
                sequential_share(SEQUENTIAL_MAX, SEQUENTIAL_MAX, LEVEL), 1e-12);
}

/* ---- series of pairs on a machine that drifts ---- */

struct machine {
    const char *name;
    double noise; /* of a run, relative */
    double drift; /* growth from run to run */
    double walk;  /* standard deviation of the steps of a random walk */
    double cold;  /* what the first run lacks; it decays by half each run */
    bool heavy_tails;
};

static double noise_of(const struct machine *machine, struct random *random)
{
    double normal = machine->noise * random_normal(random), square = 0;
    for (int i = 0; machine->heavy_tails && i < 3; i++) {
        double other = random_normal(random);
        square += other * other;
    }
    return machine->heavy_tails ? normal / sqrt(square) : normal; /* t with three degrees */
}

/* Pairs in the order A B, B A, A B ...; effect: of B. */
static void measure_pair(const struct machine *machine, size_t pair, double effect, double *walk,
                         struct random *random, double *a, double *b)
{
    for (size_t k = 0; k < 2; k++) {
        double at = (double)(2 * pair + k);
        bool is_b = (pair % 2 == 0) == (k == 1);
        *walk += machine->walk * random_normal(random);
        double energy = 100 * (1 + noise_of(machine, random) + *walk + machine->drift * at -
                               machine->cold * pow(0.5, at) + (is_b ? effect : 0));
        *(is_b ? b : a) = energy;
    }
}

struct rates {
    double decided, wrong, covered, pairs; /* shares of the series; mean number of pairs */
};

static struct rates run_series(const struct machine *machine, double effect, size_t most,
                               bool is_corrected)
{
    struct random random = random_seeded(20 + most);
    double shares[MOST + 1];
    struct rates rates = {0};
    for (size_t pairs = SEQUENTIAL_FIRST; pairs <= most; pairs++)
        shares[pairs] = is_corrected ? sequential_share(pairs, most, LEVEL) : 1;
    for (size_t i = 0; i < SERIES; i++) {
        double a[MOST], b[MOST], walk = 0;
        struct contrast found = {.p_value = 1};
        size_t pairs = 0;
        while (pairs < most && found.p_value >= LEVEL) {
            measure_pair(machine, pairs, effect, &walk, &random, &a[pairs], &b[pairs]);
            pairs++;
            if (pairs >= SEQUENTIAL_FIRST)
                contrast_pairs(a, b, pairs, shares[pairs], &found);
        }
        bool is_decided = found.p_value < LEVEL;
        rates.decided += is_decided;
        rates.wrong += is_decided && !(effect > 0 && found.difference.value > 0);
        rates.covered +=
            found.difference.low <= 100 * effect && found.difference.high >= 100 * effect;
        rates.pairs += (double)pairs;
    }
    return (struct rates){rates.decided / SERIES, rates.wrong / SERIES, rates.covered / SERIES,
                          rates.pairs / SERIES};
}

static void skip_if_slow(void)
{
    if (test_is_instrumented())
        SKIP("rates over thousands of series take minutes");
}

/* Three standard deviations above a rate. */
static double limit(double rate)
{
    return rate + 3 * sqrt(rate * (1 - rate) / SERIES);
}

static const struct machine MACHINES[] = {
    {.name = "steady", .noise = 0.01},
    {.name = "heavy tails", .noise = 0.01, .heavy_tails = true},
    {.name = "drifting", .noise = 0.01, .drift = 0.005},
    {.name = "wandering", .noise = 0.01, .walk = 0.005},
    {.name = "cold at first", .noise = 0.01, .cold = 0.03},
};

static void equal_settings_are_decided_at_most_as_often_as_stated(void **state)
{
    (void)state;
    skip_if_slow();
    for (size_t i = 0; i < COUNT_OF(MACHINES); i++)
        for (size_t most = 5; most <= MOST; most += 15) {
            struct rates rates = run_series(&MACHINES[i], 0, most, true);
            if (rates.decided > limit(LEVEL) || rates.covered < 1 - limit(0.05))
                fail_msg("%s, at most %zu pairs: %.2f %% decided, %.1f %% covered",
                         MACHINES[i].name, most, 100 * rates.decided, 100 * rates.covered);
        }
}

/* What the correction is for: the test above would not hold without it. */
static void looking_without_correction_decides_too_often(void **state)
{
    (void)state;
    skip_if_slow();
    assert_true(run_series(&MACHINES[0], 0, MOST, false).decided > 3 * LEVEL);
}

static void a_difference_of_three_percent_takes_seven_pairs(void **state)
{
    (void)state;
    skip_if_slow();
    for (size_t i = 0; i < COUNT_OF(MACHINES); i++) {
        struct rates rates = run_series(&MACHINES[i], 0.03, MOST, true);
        if (rates.decided < 0.98 || rates.wrong > 0.002 || rates.pairs > 7)
            fail_msg("%s: %.2f %% decided, %.2f %% wrong, after %.1f pairs", MACHINES[i].name,
                     100 * rates.decided, 100 * rates.wrong, rates.pairs);
    }
}

/* Pairs cancel what both of their runs share, which is scatter without them. */
static void pairs_are_decided_on_a_machine_that_drifts(void **state)
{
    static const struct machine DRIFTING = {.noise = 0.002, .drift = 0.01, .walk = 0.002};
    struct random random = random_seeded(4);
    double a[6], b[6], walk = 0;
    struct contrast in_pairs, apart;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(a); i++)
        measure_pair(&DRIFTING, i, 0.03, &walk, &random, &a[i], &b[i]);
    contrast_pairs(a, b, COUNT_OF(a), 1, &in_pairs);
    contrast_runs(a, COUNT_OF(a), b, COUNT_OF(b), &apart);
    assert_true(in_pairs.p_value < 0.01);
    assert_true(apart.p_value > 0.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_those_of_published_tables),
        cmocka_unit_test(a_single_look_has_the_whole_error),
        cmocka_unit_test(shares_are_below_one_and_more_looks_leave_less),
        cmocka_unit_test(equal_settings_are_decided_at_most_as_often_as_stated),
        cmocka_unit_test(looking_without_correction_decides_too_often),
        cmocka_unit_test(a_difference_of_three_percent_takes_seven_pairs),
        cmocka_unit_test(pairs_are_decided_on_a_machine_that_drifts),
    };
    return RUN_TESTS(tests);
}
