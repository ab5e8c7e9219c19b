#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

#include "core/units.h"
#include "stats/quantile.h"
#include "stats/sketch.h"

static double next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static double even(uint64_t *state)
{
    return 3 + 5 * next_random(state);
}

/* Times between arrivals: from almost nothing to ten times the mean. */
static double exponential(uint64_t *state)
{
    return -0.02 * log(next_random(state));
}

/* Over ten powers of ten. */
static double wide(uint64_t *state)
{
    return pow(10, 10 * next_random(state) - 5);
}

static double whole(uint64_t *state)
{
    return 1 + floor(40 * next_random(state));
}

static double constant(uint64_t *state)
{
    (void)state;
    return 11;
}

static double (*const SHAPES[])(uint64_t *state) = {even, exponential, wide, whole, constant};
static const double PS[] = {0, 0.01, 0.1, 0.25, 0.5, 0.9, 0.95, 0.99, 1};

static void check(double (*draw)(uint64_t *state), size_t count, double tolerance)
{
    struct sketch sketch = {0};
    double *values = malloc(count * sizeof *values);
    uint64_t state = 42;
    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        values[i] = draw(&state);
        assert_int_equal(sketch_add(&sketch, values[i]), ERR_OK);
    }
    for (size_t i = 0; i < sizeof PS / sizeof *PS; i++) {
        double exact = quantile(values, count, PS[i]);
        assert_near(sketch_quantile(&sketch, PS[i]), exact, tolerance * exact);
    }
    assert_int_equal(sketch.moments.count, count);
    sketch_release(&sketch);
    free(values);
}

static void few_values_are_exact(void **state)
{
    (void)state;
    static const size_t COUNTS[] = {1, 2, 3, 100, 4095, 4096};
    for (size_t shape = 0; shape < sizeof SHAPES / sizeof *SHAPES; shape++)
        for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++)
            check(SHAPES[shape], COUNTS[i], 1e-15);
}

static void many_are_within_a_bin(void **state)
{
    (void)state;
    /* Half a per cent, and what two neighbours in the order are apart. */
    check(even, 4097, 0.006);
    check(even, 100000, 0.0051);
    check(exponential, 100000, 0.007);
    check(wide, 200000, 0.006);
    check(whole, 50000, 0.0051);
    check(constant, 5000, 1e-12);
}

static void what_is_unknown_is_left_out(void **state)
{
    (void)state;
    struct sketch sketch = {0};
    assert_false(is_known(sketch_quantile(&sketch, 0.5)));
    assert_int_equal(sketch_add(&sketch, UNKNOWN), ERR_OK);
    assert_false(is_known(sketch_quantile(&sketch, 0.5)));
    assert_int_equal(sketch_add(&sketch, 7), ERR_OK);
    assert_int_equal(sketch_add(&sketch, UNKNOWN), ERR_OK);
    assert_int_equal(sketch.moments.count, 1);
    assert_near(sketch_quantile(&sketch, 0.95), 7, 0);
    assert_false(is_known(sketch_quantile(&sketch, -0.1)));
    assert_false(is_known(sketch_quantile(&sketch, 1.1)));
    assert_false(is_known(sketch_quantile(&sketch, UNKNOWN)));
    sketch_release(&sketch);
}

static void the_ends_of_the_scale_are_kept_to(void **state)
{
    (void)state;
    struct sketch sketch = {0};
    for (unsigned i = 0; i < 6000; i++)
        assert_int_equal(sketch_add(&sketch, i % 3 == 0 ? 0 : i % 3 == 1 ? 1e-12 : 1e15), ERR_OK);
    assert_near(sketch_quantile(&sketch, 0), 0, 0);
    assert_near(sketch_quantile(&sketch, 0.5), 0, 1e-9);
    assert_near(sketch_quantile(&sketch, 1), 1e15, 0);
    assert_true(sketch_quantile(&sketch, 0.9) <= 1e15);
    sketch_release(&sketch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_values_are_exact),
        cmocka_unit_test(many_are_within_a_bin),
        cmocka_unit_test(what_is_unknown_is_left_out),
        cmocka_unit_test(the_ends_of_the_scale_are_kept_to),
    };
    return RUN_TESTS(tests);
}
