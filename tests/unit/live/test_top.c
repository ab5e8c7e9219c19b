/* Processes by CPU use, in a fake /proc. */

#include <string.h>

#include "core/text.h"
#include "live/reading.h"
#include "sensors/sensor.h"
#include "support/tree.h"
#include "support/unit.h"

static struct tree tree;
static struct sensor sensor = {.kind = SENSOR_CPU};
static struct ledger_device device;
static bool lost;
static struct reading reading;

static void put_process(int pid, const char *name, int ticks, int started)
{
    char path[64];
    str_format(path, sizeof path, "/proc/%d/stat", pid);
    tree_write(&tree, path, "%d (%s) S 1 1 1 0 -1 4194560 10 20 30 40 %d 0 999 0 20 0 1 0 %d 6 7\n",
               pid, name, ticks, started);
    str_format(path, sizeof path, "/proc/%d/comm", pid);
    tree_write(&tree, path, "%s\n", name);
}

static void put_cpus(int busy, int idle)
{
    tree_write(&tree, "/proc/stat", "cpu  %d 0 0 %d 0 0 0 0 0 0\n", busy, idle);
}

static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    put_cpus(1000, 1000);
    put_process(10, "old", 500, 1);
    put_process(20, "idle", 300, 1);
    put_process(30, "reused", 400, 1);
    device = (struct ledger_device){.id = "cpu0", .sensor = &sensor, .has_energy = true};
    device.energy.method = METHOD_COUNTER;
    device.energy.joules = 80; /* in 2 s */
    device.counted = true;
    reading = (struct reading){.interval_s = 2, .lost = &lost};
    reading.now = reading.since = (struct ledger){.devices = &device, .count = 1};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tree_free(&tree);
    return 0;
}

static void cpu_power_is_shared_by_cpu_time(void **state)
{
    (void)state;
    struct top top = {0};
    top_take(&top, NULL, &reading, NS_PER_S);
    assert_int_equal(top.count, 0); /* nothing is known of the time before the first read */
    put_cpus(1150, 1050);
    put_process(10, "old", 600, 1);
    put_process(30, "reused", 30, 900); /* a reused pid, with fewer ticks than before */
    put_process(40, "new", 20, 950);
    top_take(&top, NULL, &reading, 3 * NS_PER_S);
    static const struct {
        const char *name;
        double share;
    } EXPECTED[] = {{"old", 0.5}, {"reused", 0.15}, {"new", 0.1}};
    assert_int_equal(top.count, 3); /* idle processes are not shown */
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(top.rows[i].name, EXPECTED[i].name);
        assert_near(top.rows[i].share, EXPECTED[i].share, 1e-12);
        assert_near(top.rows[i].watts, 40 * EXPECTED[i].share, 1e-9);
        assert_near(top.rows[i].joules, 80 * EXPECTED[i].share, 1e-9);
    }
    assert_near(top.cpu_watts, 40, 1e-12);
    put_cpus(1250, 1050);
    put_process(10, "old", 650, 1);
    top_take(&top, NULL, &reading, 4 * NS_PER_S);
    assert_int_equal(top.count, 1);
    assert_near(top.rows[0].watts, 20, 1e-9);
    assert_near(top.rows[0].joules, 40 + 20, 1e-9); /* adds up */
    top_release(&top);
}

static void without_energy_or_cpu_time_rows_are_unknown(void **state)
{
    (void)state;
    struct top top = {0};
    device.energy = energy_unknown("dead");
    top_take(&top, NULL, &reading, NS_PER_S);
    put_cpus(1100, 1100);
    put_process(10, "old", 600, 1);
    top_take(&top, NULL, &reading, 2 * NS_PER_S);
    assert_int_equal(top.count, 1);
    assert_near(top.rows[0].share, 0.5, 1e-12);
    assert_false(is_known(top.rows[0].watts));
    tree_remove(&tree, "/proc/stat");
    top_take(&top, NULL, &reading, 3 * NS_PER_S);
    assert_int_equal(top.count, 0);
    top_release(&top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cpu_power_is_shared_by_cpu_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_energy_or_cpu_time_rows_are_unknown, set_up,
                                        tear_down),
    };
    return RUN_TESTS(tests);
}
