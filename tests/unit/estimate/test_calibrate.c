/* The fit of energy to measured windows: known coefficients are recovered, and unidentifiable ones
 * are rejected with the reason. */
#include "core/random.h"
#include "estimate/calibrate.h"

#include "core/units.h"
#include "support/unit.h"

/* A device that attains PEAK FLOP/s and WIDE bytes/s and draws the power of the model. */
#define PEAK     2e12
#define WIDE     1e11
#define PER_FLOP 20e-12
#define PER_BYTE 150e-12
#define CONSTANT 30.0

struct truth {
    double per_flop, per_byte, constant;
    double noise; /* relative standard deviation of power */
};

static const struct truth USUAL = {PER_FLOP, PER_BYTE, CONSTANT, 0.01};

static struct calibrate_row load_row(double flops, double bytes, const struct truth *truth,
                                     struct random *draws)
{
    double latency = fmax(flops / PEAK, bytes / WIDE) + 5e-6;
    double joules = truth->per_flop * flops + truth->per_byte * bytes + truth->constant * latency;
    struct calibrate_row row = {
        .precision = PRECISION_FP32,
        .flops = flops,
        .bytes = bytes,
        .latency_s = latency,
        .energy_j = joules * (1 + truth->noise * random_normal(draws)),
        .window_s = UNKNOWN,
        .updates = UNKNOWN,
        .kernels = 1,
    };
    snprintf(row.label, sizeof row.label, "load of %.0f FLOPs a byte", flops / bytes);
    return row;
}

static void add_row(struct calibrate_rows *rows, const struct calibrate_row *row)
{
    calibrate_rows_add(rows, row);
}

/* Loads of 1/4 to 512 FLOPs per byte, twice each. */
static struct calibrate_rows many_loads(const struct truth *truth)
{
    struct calibrate_rows rows = {0};
    struct random draws = random_seeded(7);
    for (int repeat = 0; repeat < 2; repeat++)
        for (int power = -2; power <= 9; power++) {
            struct calibrate_row row = load_row(ldexp(4e9, power), 4e9, truth, &draws);
            add_row(&rows, &row);
        }
    return rows;
}

static const struct calibrate_options OPTIONS = {.seed = 1};

static void assert_rejected(struct calibrate_rows *rows, const struct calibrate_options *options,
                            const char *says)
{
    struct calibration c;
    struct error why = {0};
    assert_int_equal(calibrate_fit(rows, options, &c, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "refused");
    assert_contains(why.text, says);
    calibrate_rows_release(rows);
}

static void test_known_coefficients_are_recovered(void **state)
{
    (void)state;
    struct calibrate_rows rows = many_loads(&USUAL);
    struct calibration c;
    struct error why = {0};
    assert_int_equal(calibrate_fit(&rows, &OPTIONS, &c, &why), ERR_OK);
    assert_int_equal(c.class_count, 1);
    assert_string_equal(c.classes[0].name, "fp32");
    assert_int_equal(c.point_count, rows.count);
    const struct calibrate_figure *figures[] = {&c.classes[0].joules_per_flop, &c.joules_per_byte,
                                                &c.constant_w};
    const double truth[] = {PER_FLOP, PER_BYTE, CONSTANT};
    for (size_t i = 0; i < 3; i++) {
        assert_near(figures[i]->value, truth[i], 4 * figures[i]->error);
        assert_near(figures[i]->value, truth[i], 0.1 * truth[i]);
        assert_true(figures[i]->low < figures[i]->value && figures[i]->value < figures[i]->high);
        assert_false(figures[i]->is_weak);
    }
    assert_true(c.r2 > 0.95);
    assert_true(c.mape < 0.03);
    assert_true(c.mape_held_out >= c.mape);
    assert_near(c.classes[0].flops_per_s, PEAK, 0.01 * PEAK);
    assert_near(c.bytes_per_s, WIDE, 0.01 * WIDE);
    calibration_release(&c);
    calibrate_rows_release(&rows);
}

static void test_noise_free_fit_is_exact(void **state)
{
    (void)state;
    const struct truth exact = {PER_FLOP, PER_BYTE, CONSTANT, 0};
    struct calibrate_rows rows = many_loads(&exact);
    struct calibration c;
    struct error why = {0};
    assert_int_equal(calibrate_fit(&rows, &OPTIONS, &c, &why), ERR_OK);
    assert_near(c.classes[0].joules_per_flop.value / PER_FLOP, 1, 1e-9);
    assert_near(c.joules_per_byte.value / PER_BYTE, 1, 1e-9);
    assert_near(c.constant_w.value / CONSTANT, 1, 1e-9);
    assert_near(c.r2, 1, 1e-12);
    assert_near(c.mape_held_out, 0, 1e-9);
    calibration_release(&c);
    calibrate_rows_release(&rows);
}

/* Two precisions on two kinds of units, each with its own joules. */
static void test_each_precision_has_its_own_joules(void **state)
{
    (void)state;
    struct calibrate_rows rows = many_loads(&USUAL);
    const struct truth narrow = {PER_FLOP / 4, PER_BYTE, CONSTANT, 0.01};
    struct random draws = random_seeded(3);
    for (int power = 0; power <= 9; power++) {
        struct calibrate_row row = load_row(ldexp(4e9, power), 4e9, &narrow, &draws);
        row.precision = PRECISION_FP16;
        row.unit = CALIBRATE_MATRIX;
        add_row(&rows, &row);
    }
    struct calibration c;
    struct error why = {0};
    assert_int_equal(calibrate_fit(&rows, &OPTIONS, &c, &why), ERR_OK);
    assert_int_equal(c.class_count, 2);
    assert_string_equal(c.classes[1].name, "fp16 matrix");
    assert_near(c.classes[0].joules_per_flop.value, PER_FLOP, 0.1 * PER_FLOP);
    assert_near(c.classes[1].joules_per_flop.value, PER_FLOP / 4, 0.1 * PER_FLOP);
    calibration_release(&c);
    calibrate_rows_release(&rows);
}

static void test_idle_and_launch_rows_are_not_part_of_the_fit(void **state)
{
    (void)state;
    struct calibrate_rows rows = many_loads(&USUAL);
    struct calibrate_row idle = {
        .kind = CALIBRATE_IDLE, .latency_s = 2, .energy_j = 20, .window_s = UNKNOWN, .updates = 20};
    struct calibrate_row launch = {.kind = CALIBRATE_LAUNCH,
                                   .precision = PRECISION_FP32,
                                   .flops = 1,
                                   .bytes = 8,
                                   .latency_s = 4e-6,
                                   .energy_j = 4e-6 * CONSTANT,
                                   .window_s = 1,
                                   .updates = 10,
                                   .kernels = 1};
    struct calibrate_row graph = launch;
    graph.kind = CALIBRATE_GRAPH;
    graph.kernels = 100;
    graph.latency_s = 150e-6;
    graph.energy_j = 150e-6 * CONSTANT;
    add_row(&rows, &idle);
    add_row(&rows, &launch);
    add_row(&rows, &graph);
    struct calibration c;
    struct error why = {0};
    assert_int_equal(calibrate_fit(&rows, &OPTIONS, &c, &why), ERR_OK);
    assert_near(c.idle_w, 10, 1e-9);
    assert_int_equal(c.idle_rows, 1);
    assert_near(c.constant_w.value, CONSTANT, 0.1 * CONSTANT); /* not pulled toward 10 W */
    assert_near(c.dispatch_s, 4e-6, 1e-12);
    assert_near(c.launch_s, 4e-6, 1e-12); /* no load is short enough to determine more */
    assert_near(c.graph_launch_s, 1.5e-6, 1e-12);
    calibration_release(&c);
    calibrate_rows_release(&rows);
}

/* Without launch rows, small loads determine the launch overhead; they are too short for joules. */
static void test_small_loads_determine_the_launch_overhead(void **state)
{
    (void)state;
    struct calibrate_rows rows = many_loads(&USUAL);
    struct random draws = random_seeded(3);
    for (int i = 0; i < 5; i++) {
        struct calibrate_row row = load_row(1000, 1000, &USUAL, &draws);
        row.energy_j = 0;
        add_row(&rows, &row);
    }
    struct calibration c;
    struct error why = {0};
    assert_int_equal(calibrate_fit(&rows, &OPTIONS, &c, &why), ERR_OK);
    assert_int_equal(c.short_rows, 5);
    assert_near(c.launch_s, 5e-6, 1e-8);
    assert_int_equal(c.launch_rows, 5);
    assert_false(is_known(c.graph_launch_s));
    assert_false(is_known(c.idle_w));
    calibration_release(&c);
    calibrate_rows_release(&rows);
}

/* Short kernels take 5 us beyond their work, though one can be launched every 3 us. */
static void test_short_kernels_give_a_larger_overhead_than_empty_ones(void **state)
{
    (void)state;
    struct calibrate_rows rows = many_loads(&USUAL);
    struct random draws = random_seeded(3);
    struct calibrate_row launch = {.kind = CALIBRATE_LAUNCH,
                                   .latency_s = 3e-6,
                                   .energy_j = UNKNOWN,
                                   .window_s = 1,
                                   .updates = 10,
                                   .kernels = 1};
    add_row(&rows, &launch);
    for (int i = 1; i < 6; i++) {
        struct calibrate_row row = load_row(i * 1e7, i * 1e6, &USUAL, &draws);
        row.window_s = 1;
        add_row(&rows, &row);
    }
    struct calibration c;
    struct error why = {0};
    assert_int_equal(calibrate_fit(&rows, &OPTIONS, &c, &why), ERR_OK);
    assert_near(c.dispatch_s, 3e-6, 1e-12);
    assert_near(c.launch_s, 5e-6, 2e-7);
    assert_int_equal(c.launch_rows, 5);
    calibration_release(&c);
    calibrate_rows_release(&rows);
}

static void test_too_few_rows_are_rejected(void **state)
{
    (void)state;
    struct calibrate_rows rows = many_loads(&USUAL);
    rows.count = 8;
    assert_rejected(&rows, &OPTIONS, "too few rows: 8 can be used");
    struct calibrate_rows none = {0};
    assert_rejected(&none, &OPTIONS, "too few rows: 0 can be used");
}

static void test_a_precision_with_two_rows_is_rejected_by_name(void **state)
{
    (void)state;
    struct calibrate_rows rows = many_loads(&USUAL);
    rows.items[3].precision = rows.items[9].precision = PRECISION_INT8;
    assert_rejected(&rows, &OPTIONS, "2 of int8");
}

static void test_short_windows_are_ignored(void **state)
{
    (void)state;
    struct calibrate_rows rows = many_loads(&USUAL);
    for (size_t i = 0; i < rows.count; i++)
        rows.items[i].updates = 9;
    assert_rejected(&rows, &OPTIONS, "24 too short for the sensor");
    rows = many_loads(&USUAL);
    for (size_t i = 0; i < rows.count; i++) {
        rows.items[i].latency_s /= 1e5;
        rows.items[i].energy_j /= 1e5;
    }
    assert_rejected(&rows, &OPTIONS, "too short");
}

static void test_rows_without_joules_are_ignored(void **state)
{
    (void)state;
    struct calibrate_rows rows = many_loads(&USUAL);
    for (size_t i = 0; i < rows.count; i++)
        rows.items[i].energy_j = i % 2 ? 0 : UNKNOWN;
    assert_rejected(&rows, &OPTIONS, "24 without energy");
}

static void test_one_intensity_cannot_separate_flops_and_bytes(void **state)
{
    (void)state;
    struct calibrate_rows rows = {0};
    struct random draws = random_seeded(5);
    for (int i = 1; i <= 24; i++) { /* launch overhead makes the power of small ones differ */
        struct calibrate_row row = load_row(i * 3e8, i * 1e8, &USUAL, &draws);
        row.latency_s *= 1 + 0.05 * i;
        row.energy_j *= 1 + 0.02 * i;
        add_row(&rows, &row);
    }
    assert_rejected(&rows, &OPTIONS, "cannot be separated");
}

static void test_energy_that_does_not_depend_on_load_is_rejected(void **state)
{
    (void)state;
    const struct truth flat = {0, 0, 65, 0.001};
    struct calibrate_rows rows = many_loads(&flat);
    assert_rejected(&rows, &OPTIONS, "does not depend on the load");
}

static void test_noise_alone_is_rejected(void **state)
{
    (void)state;
    const struct truth noise = {1e-15, 1e-15, 65, 0.2};
    struct calibrate_rows rows = many_loads(&noise);
    struct calibration c;
    struct error why = {0};
    assert_int_equal(calibrate_fit(&rows, &OPTIONS, &c, &why), ERR_BAD_VALUE);
    assert_true(strstr(why.text, "not identified") || strstr(why.text, "negative"));
    calibrate_rows_release(&rows);
}

static void test_joules_that_fall_with_work_are_rejected(void **state)
{
    (void)state;
    const struct truth backward = {-10e-12, PER_BYTE, 60, 0.01};
    struct calibrate_rows rows = many_loads(&backward);
    assert_rejected(&rows, &OPTIONS, "negative: pJ/FLOP of fp32 is -");
    const struct truth hungry = {PER_FLOP, -PER_BYTE, 60, 0.01};
    rows = many_loads(&hungry);
    assert_rejected(&rows, &OPTIONS, "negative: pJ/byte is -");
}

static void test_estimated_joules_are_rejected_unless_allowed(void **state)
{
    (void)state;
    struct calibrate_rows rows = many_loads(&USUAL);
    for (size_t i = 0; i < rows.count; i++)
        rows.items[i].is_estimated = true;
    struct calibrate_options allowed = {.seed = 1, .allow_estimated = true};
    struct calibration c;
    struct error why = {0};
    assert_int_equal(calibrate_fit(&rows, &allowed, &c, &why), ERR_OK);
    assert_true(c.is_estimated);
    calibration_release(&c);
    assert_rejected(&rows, &OPTIONS, "estimated by a model");
}

static void test_the_same_seed_gives_the_same_interval(void **state)
{
    (void)state;
    struct calibrate_rows rows = many_loads(&USUAL);
    struct calibration a, b;
    struct error why = {0};
    assert_int_equal(calibrate_fit(&rows, &OPTIONS, &a, &why), ERR_OK);
    assert_int_equal(calibrate_fit(&rows, &OPTIONS, &b, &why), ERR_OK);
    assert_true(a.constant_w.low == b.constant_w.low && a.constant_w.high == b.constant_w.high);
    calibration_release(&a);
    calibration_release(&b);
    calibrate_rows_release(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_coefficients_are_recovered),
        cmocka_unit_test(test_noise_free_fit_is_exact),
        cmocka_unit_test(test_each_precision_has_its_own_joules),
        cmocka_unit_test(test_idle_and_launch_rows_are_not_part_of_the_fit),
        cmocka_unit_test(test_small_loads_determine_the_launch_overhead),
        cmocka_unit_test(test_short_kernels_give_a_larger_overhead_than_empty_ones),
        cmocka_unit_test(test_too_few_rows_are_rejected),
        cmocka_unit_test(test_a_precision_with_two_rows_is_rejected_by_name),
        cmocka_unit_test(test_short_windows_are_ignored),
        cmocka_unit_test(test_rows_without_joules_are_ignored),
        cmocka_unit_test(test_one_intensity_cannot_separate_flops_and_bytes),
        cmocka_unit_test(test_energy_that_does_not_depend_on_load_is_rejected),
        cmocka_unit_test(test_noise_alone_is_rejected),
        cmocka_unit_test(test_joules_that_fall_with_work_are_rejected),
        cmocka_unit_test(test_estimated_joules_are_rejected_unless_allowed),
        cmocka_unit_test(test_the_same_seed_gives_the_same_interval),
    };
    return RUN_TESTS(tests);
}
