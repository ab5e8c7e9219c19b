/* Which processes used a device: a driver, a clock and a /proc of our own. */
#include "sampler/process_watch.h"

#include <stdio.h>

#include "core/clock.h"
#include "support/tree.h"
#include "support/unit.h"

static struct tree tree;
static nanos now;
static struct sensor_process shown[4];
static size_t shown_count;
static enum err answer;

static nanos clock_ours(void)
{
    return now;
}

static enum err show(struct sensor *sensor, struct sensor_process out[SENSOR_PROCESSES_MAX],
                     size_t *count)
{
    (void)sensor;
    *count = shown_count;
    for (size_t i = 0; i < shown_count; i++)
        out[i] = shown[i];
    return answer;
}

static const struct sensor_driver DRIVER = {.name = "ours", .processes = show};
static struct sensor sensor = {.driver = &DRIVER};
static struct process_watch watch;

static void put_process(int pid, int parent)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    tree_write(&tree, path, "%d (p) S %d 1 1 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 5 6 7\n", pid, parent);
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    tree_write(&tree, path, "p%d\n", pid);
}

static int set_up(void **state)
{
    static const struct clock_source OURS = {clock_ours, clock_ours, clock_ours};
    (void)state;
    tree_new(&tree);
    clock_replace(&OURS);
    now = NS_PER_S;
    answer = ERR_OK;
    shown_count = 0;
    process_watch_init(&watch);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    process_watch_release(&watch);
    clock_replace(NULL);
    tree_free(&tree);
    return 0;
}

/* What the source's thread does at every turn; whether it read. */
static bool turn(nanos passed)
{
    now += passed;
    bool due = process_watch_due(&watch, &sensor);
    if (due)
        process_watch_read(&watch, &sensor);
    return due;
}

static size_t copy(struct process_use *out, double *watched_s)
{
    size_t count;
    assert_int_equal(process_watch_copy(&watch, out, &count, watched_s), ERR_OK);
    return count;
}

static void it_is_read_at_both_ends_and_every_five_seconds(void **state)
{
    (void)state;
    assert_false(turn(NS_PER_S)); /* nobody asked */
    process_watch_begin(&watch);
    assert_false(process_watch_is_current(&watch));
    assert_true(turn(0));
    assert_true(process_watch_is_current(&watch));
    assert_false(turn(4999 * NS_PER_MS));
    assert_true(turn(NS_PER_MS));
    assert_false(turn(NS_PER_S));
    process_watch_end(&watch);
    assert_true(turn(0));
    assert_false(turn(60 * NS_PER_S));
}

static void utilization_adds_up_over_time(void **state)
{
    (void)state;
    struct process_use use[SENSOR_PROCESSES_MAX];
    double watched_s;
    put_process(10, 1);
    put_process(11, 10);
    shown[0] = (struct sensor_process){11, true, 1e9, 90};
    shown_count = 1;
    process_watch_begin(&watch);
    turn(NS_PER_S); /* what it did before does not count */
    shown[0] = (struct sensor_process){11, true, 3e9, 40};
    turn(5 * NS_PER_S);
    /* It ends; another one is there for a while and was never seen alive. */
    tree_remove(&tree, "/proc/11/stat");
    shown[0] = (struct sensor_process){11, false, UNKNOWN, 10};
    shown[1] = (struct sensor_process){12, false, UNKNOWN, 100};
    shown_count = 2;
    process_watch_end(&watch);
    turn(2 * NS_PER_S);
    assert_int_equal(copy(use, &watched_s), 2);
    assert_near(watched_s, 7, 1e-9);
    assert_int_equal(use[0].pid, 11);
    assert_near(use[0].busy_s, 0.4 * 5 + 0.1 * 2, 1e-9);
    assert_near(use[0].memory_bytes, 3e9, 0);
    assert_string_equal(use[0].name, "p11");
    assert_int_equal(use[0].depth, 2);
    assert_int_equal(use[0].ancestry[1], 10);
    assert_true(use[0].was_open);
    assert_near(use[1].busy_s, 2, 1e-9);
    assert_int_equal(use[1].depth, 0);
    assert_false(use[1].was_open);
}

static void a_window_begins_with_nothing(void **state)
{
    (void)state;
    struct process_use use[SENSOR_PROCESSES_MAX];
    double watched_s;
    size_t count;
    shown[0] = (struct sensor_process){11, true, 1e9, UNKNOWN};
    shown_count = 1;
    process_watch_begin(&watch);
    turn(0);
    turn(5 * NS_PER_S);
    assert_int_equal(copy(use, &watched_s), 1);
    assert_false(is_known(use[0].busy_s));
    shown_count = 0;
    process_watch_begin(&watch);
    assert_int_equal(process_watch_copy(&watch, use, &count, &watched_s), ERR_NO_DATA);
    turn(0);
    assert_int_equal(copy(use, &watched_s), 0);
    answer = ERR_UNSUPPORTED;
    turn(5 * NS_PER_S);
    assert_int_equal(process_watch_copy(&watch, use, &count, &watched_s), ERR_UNSUPPORTED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_read_at_both_ends_and_every_five_seconds),
        TEST(utilization_adds_up_over_time),
        TEST(a_window_begins_with_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
