/* test: real time, tsan */
/* The threads of samplers at their real pace, without a lock or a clock of the test between them, for the thread
 * sanitizer: every query while sensors are read, fail, and are lost and available again.  What the figures are is
 * test_sampler's. */
#include "support/unit.h"

#include <stdatomic.h>
#include <string.h>

#include "core/clock.h"
#include "port/thread.h"
#include "sampler/sampler.h"

#define MS    NS_PER_MS
#define WATTS 100.0

static atomic_bool is_gone;
static atomic_uint reads;

static enum err counting_open(const struct sensor_finding *finding, struct sensor *out,
                              struct error *why)
{
    (void)finding;
    if (atomic_load(&is_gone))
        return err_set(why, ERR_ABSENT, "gone");
    struct sensor_channel *channel = sensor_add_channel(out, "counter", "test", QTY_ENERGY);
    channel->joules_per_count = 1e-6;
    channel->watts_max = 1000;
    out->groups[0] = (struct sensor_group){.period_default = MS, .period_min = MS};
    out->group_count = 1;
    return ERR_OK;
}

static enum err counting_read(struct sensor *sensor, unsigned group, struct observations *out)
{
    (void)sensor, (void)group;
    nanos t = clock_now();
    if (atomic_load(&is_gone))
        return ERR_LOST;
    if (atomic_fetch_add(&reads, 1) % 10 == 0)
        return ERR_BUSY;
    observe_count(out, 0, t, (uint64_t)(seconds(t / MS * MS) * WATTS * 1e6));
    return ERR_OK;
}

static void counting_close(struct sensor *sensor)
{
    (void)sensor;
}

static struct sampler *start(void)
{
    static const struct sensor_driver COUNTING = {
        .name = "counting", .open = counting_open, .read = counting_read, .close = counting_close};
    struct sensor_finding finding = {.driver = &COUNTING, .kind = SENSOR_TEST, .id = "counting:0"};
    struct error why = {0};
    struct sampler *sampler = sampler_new(0);
    assert_non_null(sampler);
    assert_int_equal(sampler_add(sampler, &finding, &why), ERR_OK);
    assert_int_equal(sampler_start(sampler, &why), ERR_OK);
    sampler_ready(sampler);
    return sampler;
}

static bool count_points(const struct timeline_point *points, size_t count, void *context)
{
    (void)points;
    *(size_t *)context += count;
    return true;
}

static void query_all(struct sampler *sampler, nanos from)
{
    struct channel_state channel;
    struct source_state source;
    struct window w;
    double low, high;
    size_t points = 0;
    nanos now = clock_now();
    sampler_channel(sampler, 0, 0, &channel);
    sampler_source(sampler, 0, &source);
    sampler_mark(sampler);
    sampler_settle(sampler, now);
    (void)!sampler_window(sampler, 0, 0, from, now, &w);
    (void)!sampler_extremes(sampler, 0, 0, from, now, &low, &high);
    assert_int_equal(sampler_points(sampler, 0, 0, from, count_points, &points), ERR_OK);
}

static void two_samplers_are_queried_while_they_read(void **state)
{
    (void)state;
    struct sampler *const samplers[] = {start(), start()};
    nanos from = clock_now();
    while (clock_now() < from + 150 * MS)
        for (int i = 0; i < 2; i++)
            query_all(samplers[i], from);
    atomic_store(&is_gone, true);
    struct source_state source = {0};
    while (!source.is_lost) {
        query_all(samplers[0], from);
        sampler_source(samplers[0], 0, &source);
    }
    atomic_store(&is_gone, false);
    while (source.is_lost) {
        query_all(samplers[0], from);
        sampler_source(samplers[0], 0, &source);
    }
    struct window w;
    sampler_free(samplers[1]);
    sampler_stop(samplers[0]);
    assert_int_equal(sampler_window(samplers[0], 0, 0, from, clock_now(), &w), ERR_OK);
    assert_true(w.covered_s > 0 && w.coverage < 1);
    sampler_free(samplers[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_samplers_are_queried_while_they_read),
    };
    return RUN_TESTS(tests);
}
