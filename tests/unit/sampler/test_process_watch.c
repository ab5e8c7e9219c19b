/* Which processes used a device: with a fake driver, clock and /proc. */
#include "sampler/process_watch.h"

#include <stdio.h>

#include "core/clock.h"
#include "support/tree.h"
#include "support/unit.h"

static struct tree tree;
static nanos now, asked_since;
static struct sensor_process shown[4];
static size_t shown_count;
static enum err answer;

static nanos fake_now(void)
{
    return now;
}

static enum err list_processes(struct sensor *sensor, nanos since,
                               struct sensor_process out[SENSOR_PROCESSES_MAX], size_t *count)
{
    (void)sensor;
    asked_since = since;
    *count = shown_count;
    for (size_t i = 0; i < shown_count; i++)
        out[i] = shown[i];
    return answer;
}

static const struct sensor_driver DRIVER = {.name = "ours", .processes = list_processes};
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
    static const struct clock_source OURS = {fake_now, fake_now, fake_now};
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

/* What the source's thread does in each iteration; returns whether it read. */
static bool advance(nanos passed)
{
    now += passed;
    bool due = process_watch_due(&watch, &sensor);
    if (due)
        process_watch_read(&watch, &sensor);
    return due;
}

static size_t copy_use(struct process_use *out, double *watched_s)
{
    size_t count;
    assert_int_equal(process_watch_copy(&watch, out, &count, watched_s), ERR_OK);
    return count;
}

static void processes_are_read_at_both_ends_and_every_five_seconds(void **state)
{
    (void)state;
    assert_false(advance(NS_PER_S)); /* no window yet */
    process_watch_begin(&watch);
    assert_false(process_watch_is_current(&watch));
    assert_true(advance(0));
    nanos first = now;
    assert_int_equal(asked_since, 0); /* earlier utilization does not count, and is not read */
    assert_true(process_watch_is_current(&watch));
    assert_false(advance(4999 * NS_PER_MS));
    assert_true(advance(NS_PER_MS));
    assert_int_equal(asked_since, first);
    assert_false(advance(NS_PER_S));
    process_watch_end(&watch);
    assert_true(advance(0));
    assert_false(advance(60 * NS_PER_S));
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
    advance(NS_PER_S); /* earlier use does not count */
    shown[0] = (struct sensor_process){11, true, 3e9, 40};
    advance(5 * NS_PER_S);
    /* It exits; another process is listed for a while and was never seen in /proc. */
    tree_remove(&tree, "/proc/11/stat");
    shown[0] = (struct sensor_process){11, false, UNKNOWN, 10};
    shown[1] = (struct sensor_process){12, false, UNKNOWN, 100};
    shown_count = 2;
    process_watch_end(&watch);
    advance(2 * NS_PER_S);
    assert_int_equal(copy_use(use, &watched_s), 2);
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

static void a_new_window_starts_at_zero(void **state)
{
    (void)state;
    struct process_use use[SENSOR_PROCESSES_MAX];
    double watched_s;
    size_t count;
    shown[0] = (struct sensor_process){11, true, 1e9, UNKNOWN};
    shown_count = 1;
    process_watch_begin(&watch);
    advance(0);
    advance(5 * NS_PER_S);
    assert_int_equal(copy_use(use, &watched_s), 1);
    assert_false(is_known(use[0].busy_s));
    shown_count = 0;
    process_watch_begin(&watch);
    assert_int_equal(process_watch_copy(&watch, use, &count, &watched_s), ERR_NO_DATA);
    advance(0);
    assert_int_equal(copy_use(use, &watched_s), 0);
    answer = ERR_UNSUPPORTED;
    advance(5 * NS_PER_S);
    assert_int_equal(process_watch_copy(&watch, use, &count, &watched_s), ERR_UNSUPPORTED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(processes_are_read_at_both_ends_and_every_five_seconds),
        TEST(utilization_adds_up_over_time),
        TEST(a_new_window_starts_at_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
