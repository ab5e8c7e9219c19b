/* Statistics of a channel's values in a window. */
#include "sampler/window.h"

#include <math.h>

#include "support/unit.h"

#define MS NS_PER_MS

enum { READINGS = 10 };

/* Readings every 100 ms: 0, 10, 20 ...; for means, the value of the interval that ends there. */
static void build(struct timeline *timeline, struct spill *spill, enum timeline_shape shape)
{
    spill_init(spill);
    timeline_init(timeline, spill, shape);
    struct timeline_point last = {0};
    for (int i = 0; i < READINGS; i++) {
        struct timeline_point p = {.t = (nanos)(i + 1) * 100 * MS, .value = 10.0 * i};
        if (i) {
            double mean = shape == SHAPE_MEANS ? p.value : (p.value + last.value) / 2;
            p.covered = last.covered + 100 * MS;
            p.sum = last.sum + mean * 0.1;
        } else if (shape == SHAPE_MEANS) {
            p.value = UNKNOWN;
        }
        assert_int_equal(timeline_append(timeline, &p), ERR_OK);
        last = p;
    }
}

struct row {
    const char *name;
    enum timeline_shape shape;
    nanos from, to;
    double avg, max, median, min; /* UNKNOWN: no data */
};

static const struct row ROWS[] = {
    {"readings inside", SHAPE_POINTS, 250 * MS, 550 * MS, 30, 40, 30, 20},
    {"an even number", SHAPE_POINTS, 250 * MS, 450 * MS, 25, 30, 25, 20},
    {"on the edges", SHAPE_POINTS, 300 * MS, 500 * MS, 30, 40, 30, 20},
    {"none inside: what stood", SHAPE_POINTS, 320 * MS, 340 * MS, 23, 20, 20, 20},
    {"just after the last", SHAPE_POINTS, 1020 * MS, 1040 * MS, 90, 90, 90, 90},
    {"long after the last", SHAPE_POINTS, 3000 * MS, 3100 * MS, UNKNOWN, 0, 0, 0},
    {"before the first", SHAPE_POINTS, 10 * MS, 50 * MS, UNKNOWN, 0, 0, 0},
    {"no time", SHAPE_POINTS, 300 * MS, 300 * MS, UNKNOWN, 0, 0, 0},
    {"means that reach into it", SHAPE_MEANS, 250 * MS, 450 * MS, 30, 40, 30, 20},
    {"means on their edges", SHAPE_MEANS, 300 * MS, 500 * MS, 35, 40, 35, 30},
    {"inside one mean", SHAPE_MEANS, 320 * MS, 340 * MS, 30, 30, 30, 30},
    {"after the last mean", SHAPE_MEANS, 3000 * MS, 3100 * MS, UNKNOWN, 0, 0, 0},
};

static bool is_row(const struct value_stats *stats, const struct row *row)
{
    return fabs(stats->avg - row->avg) < 1e-9 && fabs(stats->max - row->max) < 1e-9 &&
           fabs(stats->median - row->median) < 1e-9 && fabs(stats->min - row->min) < 1e-9;
}

static void statistics_of_a_window(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const struct row *row = &ROWS[i];
        struct timeline timeline;
        struct spill spill;
        struct value_stats stats;
        build(&timeline, &spill, row->shape);
        enum err err = window_values(&timeline, row->from, row->to, 500 * MS, &stats);
        bool right = isnan(row->avg) ? err == ERR_NO_DATA && isnan(stats.avg) && isnan(stats.max)
                                     : err == ERR_OK && is_row(&stats, row);
        if (!right) {
            print_error("%s: %g %g %g %g\n", row->name, stats.avg, stats.max, stats.median,
                        stats.min);
            fail();
        }
        timeline_release(&timeline);
        spill_release(&spill);
    }
}

/* A long window: the median of a sample, the extremes of all. */
static void statistics_of_a_long_window(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    struct timeline timeline;
    struct spill spill;
    struct value_stats stats;
    spill_init(&spill);
    timeline_init(&timeline, &spill, SHAPE_POINTS);
    for (int i = 0; i < MANY; i++) {
        double value = i == 3333 ? 1e6 : i == 4001 ? -1e6 : i;
        struct timeline_point p = {
            .t = (i + 1) * MS, .covered = i * MS, .value = value, .sum = i * 0.001};
        assert_int_equal(timeline_append(&timeline, &p), ERR_OK);
    }
    assert_int_equal(window_values(&timeline, 0, (MANY + 1) * MS, MS, &stats), ERR_OK);
    assert_near(stats.max, 1e6, 1e-9);
    assert_near(stats.min, -1e6, 1e-9);
    assert_near(stats.median, MANY / 2.0, MANY / 100.0);
    timeline_release(&timeline);
    spill_release(&spill);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_of_a_window),
        cmocka_unit_test(statistics_of_a_long_window),
    };
    return RUN_TESTS(tests);
}
