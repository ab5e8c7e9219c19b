#include "support/rng.h"
#include "support/unit.h"

#include <math.h>
#include <stdbool.h>

#include "stats/least_squares.h"

enum { ROWS = 9, COLUMNS = 5, TRIALS = 400 };

static double distance(const double *a, const double *b, const double *x, size_t rows,
                       size_t columns)
{
    double sum = 0;
    for (size_t i = 0; i < rows; i++) {
        double rest = b[i];
        for (size_t j = 0; j < columns; j++)
            rest -= a[i * columns + j] * x[j];
        sum += rest * rest;
    }
    return sum;
}

/* python3 -c "import numpy as np; a=np.array([[1,2,0],[1,1,1],[0,3,1],[2,0,5],[1,1,4]],float);
 * b=np.array([3,1,4,1,5],float); print(np.linalg.lstsq(a,b,rcond=None)[0],
 * np.sqrt(np.diag(np.linalg.inv(a.T@a))))"  (NumPy 2.4.6) */
static const double SMALL[] = {1, 2, 0, 1, 1, 1, 0, 3, 1, 2, 0, 5, 1, 1, 4};
static const double SMALL_B[] = {3, 1, 4, 1, 5};

static void least_squares_match_numpy(void **state)
{
    (void)state;
    double x[3], sigmas[3];
    assert_int_equal(least_squares(SMALL, SMALL_B, 5, 3, x), ERR_OK);
    assert_near(x[0], -0.6711618257261396, 1e-12);
    assert_near(x[1], 1.4232365145228216, 1e-12);
    assert_near(x[2], 0.6670124481327798, 1e-12);
    assert_int_equal(least_squares_sigmas(SMALL, 5, 3, sigmas), ERR_OK);
    assert_near(sigmas[0], 0.776335684762516, 1e-12);
    assert_near(sigmas[1], 0.2807813638293306, 1e-12);
    assert_near(sigmas[2], 0.30384807297773364, 1e-12);
}

static void linearly_dependent_columns_are_rejected(void **state)
{
    (void)state;
    static const double TWICE[] = {1, 2, 2, 4, 3, 6}, B[] = {1, 2, 4};
    double x[3];
    assert_int_equal(least_squares(TWICE, B, 3, 2, x), ERR_BAD_VALUE);
    assert_int_equal(least_squares_sigmas(TWICE, 3, 2, x), ERR_BAD_VALUE);
    assert_int_equal(least_squares(TWICE, B, 2, 3, x), ERR_BAD_VALUE); /* more columns than rows */
    static const double EMPTY[] = {1, 0, 2, 0, 3, 0};
    assert_int_equal(least_squares(EMPTY, B, 3, 2, x), ERR_BAD_VALUE);
    assert_int_equal(least_squares(SMALL, SMALL_B, 0, 0, x), ERR_BAD_VALUE);
}

/* Brute force: the best nonnegative solution over all subsets of free columns. */
static double best_of_all_subsets(const double *a, const double *b)
{
    static const double NOTHING[COLUMNS] = {0};
    double best = distance(a, b, NOTHING, ROWS, COLUMNS);
    for (unsigned set = 1; set < 1u << COLUMNS; set++) {
        double part[ROWS * COLUMNS], x[COLUMNS];
        size_t width = 0, at = 0;
        for (size_t j = 0; j < COLUMNS; j++)
            width += (set >> j) & 1;
        for (size_t i = 0; i < ROWS; i++)
            for (size_t j = 0; j < COLUMNS; j++)
                if ((set >> j) & 1)
                    part[at++] = a[i * COLUMNS + j];
        if (least_squares(part, b, ROWS, width, x))
            continue;
        bool allowed = true;
        for (size_t j = 0; j < width; j++)
            allowed = allowed && x[j] >= 0;
        if (allowed)
            best = fmin(best, distance(part, b, x, ROWS, width));
    }
    return best;
}

static void nonnegative_solution_is_optimal(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int trial = 0; trial < TRIALS; trial++) {
        double a[ROWS * COLUMNS], b[ROWS], x[COLUMNS];
        for (size_t i = 0; i < ROWS * COLUMNS; i++)
            a[i] = rng_uniform_of(&seed) - (trial % 3 ? 0.5 : 0); /* every third: all positive */
        for (size_t i = 0; i < ROWS; i++)
            b[i] = rng_uniform_of(&seed) - 0.4;
        assert_int_equal(least_squares_nonnegative(a, b, ROWS, COLUMNS, x), ERR_OK);
        for (size_t j = 0; j < COLUMNS; j++)
            assert_true(x[j] >= 0);
        assert_near(distance(a, b, x, ROWS, COLUMNS), best_of_all_subsets(a, b), 1e-9);
    }
}

static void known_powers_are_recovered_from_energy(void **state)
{
    (void)state;
    static const double WATTS[COLUMNS] = {12, 0, 30, 7.5, 0};
    uint64_t seed = 11;
    for (int trial = 0; trial < TRIALS; trial++) {
        double a[ROWS * COLUMNS], b[ROWS] = {0}, x[COLUMNS];
        for (size_t i = 0; i < ROWS * COLUMNS; i++) {
            a[i] = rng_uniform_of(&seed);
            b[i / COLUMNS] += a[i] * WATTS[i % COLUMNS];
        }
        assert_int_equal(least_squares_nonnegative(a, b, ROWS, COLUMNS, x), ERR_OK);
        for (size_t j = 0; j < COLUMNS; j++)
            assert_near(x[j], WATTS[j], 1e-7);
    }
}

static void duplicate_and_zero_columns_are_handled(void **state)
{
    (void)state;
    static const double A[] = {1, 1, 0, 2, 2, 0, 3, 3, 0}, B[] = {2, 4, 6};
    double x[3];
    assert_int_equal(least_squares_nonnegative(A, B, 3, 3, x), ERR_OK);
    assert_near(x[0] + x[1], 2, 1e-12);
    assert_near(x[2], 0, 0);
    static const double AGAINST[] = {-1, -2, -3};
    assert_int_equal(least_squares_nonnegative(A, AGAINST, 3, 3, x), ERR_OK);
    assert_near(x[0] + x[1] + x[2], 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(least_squares_match_numpy),
        cmocka_unit_test(linearly_dependent_columns_are_rejected),
        cmocka_unit_test(nonnegative_solution_is_optimal),
        cmocka_unit_test(known_powers_are_recovered_from_energy),
        cmocka_unit_test(duplicate_and_zero_columns_are_handled),
    };
    return RUN_TESTS(tests);
}
