/* What the readings of a channel leave open about an interval. */
#include "sampler/resolution.h"

#include <math.h>

#include "sampler/timeline.h"
#include "support/unit.h"

#define MS NS_PER_MS

enum { POINTS = 12 };

/* Means or readings every 100 ms, the first at 0; a gap before the ninth. */
static void build(struct timeline *timeline, struct spill *spill, enum timeline_shape shape,
                  const double *watts, double t_sigma)
{
    struct timeline_point last = {0};
    spill_init(spill);
    timeline_init(timeline, spill, shape);
    for (int i = 0; i < POINTS; i++) {
        bool is_covered = i > 0 && i != 8;
        struct timeline_point p = last;
        p.t = i * 100 * MS;
        p.t_sigma = t_sigma;
        p.value = is_covered || shape == SHAPE_POINTS ? watts[i] : UNKNOWN;
        p.covered += is_covered ? 100 * MS : 0;
        p.sum += is_covered ? 0.1 * watts[i] : 0;
        p.variance += is_covered && shape == SHAPE_POINTS ? 4 : 0;
        assert_int_equal(timeline_append(timeline, &p), ERR_OK);
        last = p;
    }
}

static const double RAMP[POINTS] = {0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110},
                    ALTERNATING[POINTS] = {10, 50, 10, 50, 10, 50, 10, 50, 10, 50, 10, 50},
                    STEP[POINTS] = {10, 10, 10, 10, 50, 50, 50, 50, 50, 50, 50, 50};

static struct resolution at(const double *watts, enum timeline_shape shape, double t_sigma, nanos t)
{
    struct spill spill;
    struct timeline timeline;
    struct resolution found;
    build(&timeline, &spill, shape, watts, t_sigma);
    assert_int_equal(window_resolution(&timeline, t, &found), ERR_OK);
    timeline_release(&timeline);
    spill_release(&spill);
    return found;
}

static void a_drift_shows_no_bursts_but_alternation_does(void **state)
{
    (void)state;
    struct resolution found = at(RAMP, SHAPE_MEANS, 0, 450 * MS);
    assert_int_equal(found.interval.from, 400 * MS);
    assert_int_equal(found.interval.to, 500 * MS);
    assert_near(found.watts, 50, 1e-9);
    assert_near(found.interval.burst, 0, 1e-12);
    assert_near(found.interval.lag, 0, 1e-12);
    /* differences of 80 W, in intervals of 0.1 s */
    assert_near(at(ALTERNATING, SHAPE_MEANS, 0, 450 * MS).interval.burst, 0.75 * 8 * 8, 1e-9);
    assert_true(at(STEP, SHAPE_MEANS, 0, 350 * MS).interval.burst > 0);
    assert_near(at(STEP, SHAPE_MEANS, 0, 650 * MS).interval.burst, 0, 1e-12);
}

/* Uncertain ticks scatter the means of constant power, which is no burst, but moves energy over the edges. */
static void uncertain_ticks_move_energy_over_edges(void **state)
{
    (void)state;
    struct resolution found = at(ALTERNATING, SHAPE_MEANS, 0.1, 450 * MS);
    assert_near(found.interval.burst, 0, 1e-12);
    assert_near(found.interval.edges[0], 5 * 5, 1e-9);
    assert_near(found.interval.edges[1], 5 * 5, 1e-9);
}

static void readings_have_a_variance_and_a_lag(void **state)
{
    (void)state;
    struct resolution found = at(RAMP, SHAPE_POINTS, 0, 450 * MS);
    assert_near(found.interval.own, 4, 1e-9);
    /* half a spacing, uniformly distributed */
    assert_near(found.interval.lag, 0.05 / sqrt(3), 1e-4);
    assert_near(found.watts, 45, 1e-9);
    assert_near(found.interval.edges[0], 0, 1e-12);
}

static void time_without_readings_has_no_interval(void **state)
{
    (void)state;
    static const nanos UNCOVERED[] = {-50 * MS, 750 * MS, 1150 * MS};
    for (size_t i = 0; i < sizeof UNCOVERED / sizeof *UNCOVERED; i++)
        assert_int_equal(at(RAMP, SHAPE_MEANS, 0, UNCOVERED[i]).interval.to, 0);
    /* Next to a gap, the steps on the other side count. */
    assert_true(at(ALTERNATING, SHAPE_MEANS, 0, 650 * MS).interval.burst > 0);
    assert_true(at(ALTERNATING, SHAPE_MEANS, 0, 850 * MS).interval.burst > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_drift_shows_no_bursts_but_alternation_does),
        cmocka_unit_test(uncertain_ticks_move_energy_over_edges),
        cmocka_unit_test(readings_have_a_variance_and_a_lag),
        cmocka_unit_test(time_without_readings_has_no_interval),
    };
    return RUN_TESTS(tests);
}
