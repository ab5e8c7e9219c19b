/* Findings of RAPL on machines of every kind, and its sensors. */
#include "support/unit.h"

#include <string.h>

#include "support/machines.h"
#include "support/sensing.h"
#include "support/stepped_clock.h"
#include "support/tree.h"

static void assert_status(const struct sensing *s, const char *id, enum sensor_status status)
{
    const struct sensor_finding *finding = sensing_find(s, id);
    if (!finding)
        fail_msg("no finding %s", id);
    assert_string_equal(sensor_status_name(finding->status), sensor_status_name(status));
}

/* ---- two sockets, by every path ---- */

static void assert_socket(struct sensing *s, int socket, const char *path, double package,
                          double dram)
{
    char id[16], cpu[16], memory[16];
    snprintf(id, sizeof id, "rapl:%d", socket);
    snprintf(cpu, sizeof cpu, "cpu%d", socket);
    snprintf(memory, sizeof memory, "dram%d", socket);
    assert_status(s, id, SENSOR_OK);
    assert_int_equal(sensing_find(s, id)->kind, SENSOR_CPU);
    assert_string_equal(sensing_find(s, id)->name, "Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz");
    assert_string_equal(sensing_find(s, id)->measures, "energy");
    assert_string_equal(sensing_find(s, id)->reason, "");

    assert_int_equal(sensing_open(s, id), ERR_OK);
    assert_string_equal(sensing_fact(s, "path"), path);
    assert_int_equal(s->sensor.pin_cpu, socket ? 28 : 0);
    assert_int_equal(s->sensor.channel_count, 2);
    const struct sensor_channel *p = sensing_channel(s, "package");
    assert_string_equal(p->device, cpu);
    assert_int_equal(p->scope, SCOPE_PACKAGE);
    assert_int_equal(p->location, socket);
    assert_int_equal(p->quantity, QTY_ENERGY);
    assert_false(p->secondary || p->estimated);
    assert_true(p->relative_accuracy > 0 && p->relative_accuracy < 0.2 && p->watts_max >= 500);
    const struct sensor_channel *d = sensing_channel(s, "dram");
    assert_string_equal(d->device, memory);
    assert_int_equal(d->scope, SCOPE_DRAM);
    assert_int_equal(d->location, socket);

    assert_int_equal(s->sensor.group_count, 1);
    assert_int_equal(s->sensor.groups[0].period_default, 20 * NS_PER_MS);
    assert_int_equal(s->sensor.groups[0].period_min, NS_PER_MS);
    assert_false(s->sensor.groups[0].follow_ticks);

    assert_int_equal(sensing_read(s), ERR_OK);
    assert_int_equal(s->seen.count, 2);
    assert_near(sensing_joules(s, "package"), package, 1e-3);
    assert_near(sensing_joules(s, "dram"), dram, 1e-3);
}

static void two_sockets_are_measured_by_every_path(void **state)
{
    static const struct {
        unsigned paths;
        const char *name;
        uint64_t wraps_at;
    } CASES[] = {
        {MACHINE_PERF, "perf_event", 0},
        {MACHINE_POWERCAP, "powercap", MACHINE_RANGE_UJ + 1},
        {MACHINE_MSR, "msr", UINT64_C(1) << 32},
        {MACHINE_MSR | MACHINE_POWERCAP, "powercap", MACHINE_RANGE_UJ + 1},
        {MACHINE_MSR | MACHINE_POWERCAP | MACHINE_PERF, "perf_event", 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        fixture_setup(state);
        struct fixture *f = *state;
        machine_intel_two_socket(&f->tree, CASES[i].paths);
        sensing_probe(&f->s, "rapl");
        assert_int_equal(f->s.findings.count, 2);
        assert_socket(&f->s, 0, CASES[i].name, 5000, 900);
        assert_socket(&f->s, 1, CASES[i].name, 5731, 953);
        assert_int_equal(sensing_channel(&f->s, "package")->wraps_at, CASES[i].wraps_at);
        fixture_teardown(state);
    }
}

static void sparse_sockets_and_cpu_ranges_are_parsed(void **state)
{
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, MACHINE_PERF);
    tree_write(&f->tree, "/sys/bus/event_source/devices/power/cpumask", "0-1,28\n");
    machine_cpu(&f->tree, 0, 3, 0);
    machine_cpu(&f->tree, 1, 7, 0);
    machine_cpu(&f->tree, 28, 12, 0);
    machine_set_perf(&f->tree, PERF_PACKAGE, 1, 77);
    machine_set_perf(&f->tree, PERF_RAM, 1, 78);
    sensing_probe(&f->s, "rapl");
    assert_int_equal(f->s.findings.count, 3);
    assert_int_equal(sensing_open(&f->s, "rapl:7"), ERR_OK);
    assert_int_equal(f->s.sensor.pin_cpu, 1);
    assert_int_equal(sensing_channel(&f->s, "package")->location, 7);
    assert_int_equal(sensing_read(&f->s), ERR_OK);
    assert_int_equal(sensing_observation(&f->s, "package")->count, 77);
    assert_int_equal(sensing_open(&f->s, "rapl:12"), ERR_OK);
    assert_int_equal(f->s.sensor.pin_cpu, 28);
}

static void the_die_replaces_a_missing_package_number(void **state)
{
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, MACHINE_PERF);
    machine_cpu(&f->tree, 0, -1, 0);
    machine_cpu(&f->tree, 28, -1, 5);
    sensing_probe(&f->s, "rapl");
    assert_status(&f->s, "rapl:0", SENSOR_OK);
    assert_status(&f->s, "rapl:5", SENSOR_OK);
}

static void dies_with_separate_counters_are_all_kept(void **state)
{
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, 0);
    machine_zone(&f->tree, "intel-rapl:0", "package-0-die-0", 111);
    machine_zone(&f->tree, "intel-rapl:1", "package-0-die-1", 222);
    machine_zone(&f->tree, "intel-rapl:1:0", "dram", 333);
    sensing_probe(&f->s, "rapl");
    assert_int_equal(f->s.findings.count, 2);
    assert_int_equal(sensing_open(&f->s, "rapl:0"), ERR_OK);
    int location = sensing_channel(&f->s, "package")->location;
    assert_int_equal(sensing_open(&f->s, "rapl:0.1"), ERR_OK);
    assert_int_not_equal(sensing_channel(&f->s, "package")->location, location);
    assert_string_equal(sensing_channel(&f->s, "package")->device, "cpu0.1");
    assert_int_equal(sensing_read(&f->s), ERR_OK);
    assert_int_equal(sensing_observation(&f->s, "package")->count, 222);
    assert_int_equal(sensing_observation(&f->s, "dram")->count, 333);
}

/* ---- AMD ---- */

static void amd_has_a_package_on_every_path(void **state)
{
    static const unsigned PATHS[] = {MACHINE_PERF, MACHINE_POWERCAP, MACHINE_MSR};
    for (size_t i = 0; i < 3; i++) {
        fixture_setup(state);
        struct fixture *f = *state;
        machine_amd(&f->tree, PATHS[i]);
        sensing_probe(&f->s, "rapl");
        assert_int_equal(f->s.findings.count, 1);
        assert_int_equal(sensing_open(&f->s, "rapl:0"), ERR_OK);
        assert_string_equal(f->s.sensor.name, "AMD Ryzen 9 5950X 16-Core Processor");
        assert_int_equal(sensing_read(&f->s), ERR_OK);
        assert_near(sensing_joules(&f->s, "package"), 4321, 1e-3);
        assert_int_equal(f->s.sensor.channel_count, PATHS[i] == MACHINE_POWERCAP ? 2 : 1);
        fixture_teardown(state);
    }
}

/* ---- psys and overlapping zones ---- */

static void a_laptop_counts_its_package_once_and_psys_separately(void **state)
{
    struct fixture *f = *state;
    machine_intel_client(&f->tree);
    sensing_probe(&f->s, "rapl");
    assert_int_equal(f->s.findings.count, 2);
    assert_int_equal(sensing_open(&f->s, "rapl:0"), ERR_OK);
    assert_int_equal(f->s.sensor.channel_count, 3);
    assert_string_equal(sensing_fact(&f->s, "source"), "/sys/class/powercap/intel-rapl:0");
    assert_int_equal(sensing_channel(&f->s, "core")->scope, SCOPE_CORE);
    assert_int_equal(sensing_channel(&f->s, "uncore")->scope, SCOPE_UNCORE);
    assert_string_equal(sensing_channel(&f->s, "uncore")->device, "cpu0");
    assert_int_equal(sensing_read(&f->s), ERR_OK);
    assert_near(sensing_joules(&f->s, "package"), 3000, 1e-6);

    assert_int_equal(sensing_open(&f->s, "rapl:psys"), ERR_OK);
    assert_int_equal(f->s.sensor.channel_count, 1);
    assert_string_equal(sensing_channel(&f->s, "psys")->device, "psys");
    assert_int_equal(sensing_channel(&f->s, "psys")->scope, SCOPE_PLATFORM);
    assert_int_equal(sensing_channel(&f->s, "psys")->location, -1);
    assert_null(sensing_fact(&f->s, "resolution"));
}

static void an_mmio_zone_is_used_if_it_is_the_only_one(void **state)
{
    struct fixture *f = *state;
    machine_intel_client(&f->tree);
    tree_remove(&f->tree, "/sys/class/powercap/intel-rapl:0");
    sensing_probe(&f->s, "rapl");
    assert_int_equal(sensing_open(&f->s, "rapl:0"), ERR_OK);
    assert_string_equal(sensing_fact(&f->s, "source"), "/sys/class/powercap/intel-rapl-mmio:0");
    assert_int_equal(sensing_read(&f->s), ERR_OK);
    assert_near(sensing_joules(&f->s, "package"), 3001, 1e-6);
}

static void each_package_may_have_its_own_psys(void **state)
{
    struct fixture *f = *state;
    machine_intel_two_socket(&f->tree, MACHINE_POWERCAP);
    machine_zone(&f->tree, "intel-rapl:2", "psys", 1000);
    machine_zone(&f->tree, "intel-rapl:3", "psys-1", 2000);
    sensing_probe(&f->s, "rapl");
    assert_int_equal(f->s.findings.count, 4);
    assert_status(&f->s, "rapl:psys0", SENSOR_OK);
    assert_int_equal(sensing_open(&f->s, "rapl:psys1"), ERR_OK);
    assert_int_equal(sensing_channel(&f->s, "psys")->location, 1);
    assert_int_equal(f->s.sensor.pin_cpu, 28);
    assert_int_equal(sensing_read(&f->s), ERR_OK);
    assert_int_equal(sensing_observation(&f->s, "psys")->count, 2000);
}

static void psys_without_a_package_is_found_with_an_explanation(void **state)
{
    struct fixture *f = *state;
    machine_psys_only(&f->tree);
    sensing_probe(&f->s, "rapl");
    assert_int_equal(f->s.findings.count, 2);
    assert_status(&f->s, "rapl", SENSOR_ABSENT);
    assert_contains(sensing_find(&f->s, "rapl")->reason, "virtual machine");
    assert_contains(sensing_find(&f->s, "rapl")->reason, "perf_event has psys only");
    /* Whether it advances is judged above the driver: here it is a normal counter. */
    assert_status(&f->s, "rapl:psys", SENSOR_OK);
    assert_int_equal(sensing_open(&f->s, "rapl:psys"), ERR_OK);
    assert_string_equal(sensing_fact(&f->s, "path"), "perf_event");
    assert_contains(sensing_fact(&f->s, "source"), "energy-psys");
    assert_contains(sensing_fact(&f->s, "resolution"), "whole joules");
    assert_int_equal(sensing_channel(&f->s, "psys")->location, -1);
    assert_int_equal(sensing_read(&f->s), ERR_OK);
    assert_int_equal(sensing_observation(&f->s, "psys")->missing, 0);
    assert_int_equal(sensing_observation(&f->s, "psys")->count, 0);
}

/* ---- absence ---- */

static void an_empty_machine_is_absent_for_three_reasons(void **state)
{
    struct fixture *f = *state;
    machine_none(&f->tree);
    sensing_probe(&f->s, "rapl");
    assert_int_equal(f->s.findings.count, 1);
    assert_status(&f->s, "rapl", SENSOR_ABSENT);
    const struct sensor_finding *finding = sensing_find(&f->s, "rapl");
    assert_contains(finding->reason, "perf PMU power");
    assert_contains(finding->reason, "powercap");
    assert_contains(finding->reason, "/dev/cpu/0/msr");
    assert_string_equal(finding->fix, "sudo modprobe intel_rapl_msr");
}

static void an_empty_root_is_absent(void **state)
{
    struct fixture *f = *state;
    sensing_probe(&f->s, "rapl");
    assert_int_equal(f->s.findings.count, 1);
    assert_status(&f->s, "rapl", SENSOR_ABSENT);
    assert_string_equal(sensing_find(&f->s, "rapl")->fix, "");
}

static void a_virtual_machine_is_recognized(void **state)
{
    struct fixture *f = *state;
    machine_guest(&f->tree);
    sensing_probe(&f->s, "rapl");
    assert_status(&f->s, "rapl", SENSOR_ABSENT);
    assert_contains(sensing_find(&f->s, "rapl")->reason, "virtual machine");
    assert_contains(sensing_find(&f->s, "rapl")->reason, "/dev/cpu/0/msr");
    assert_string_equal(sensing_find(&f->s, "rapl")->fix, "");
}

static void arm_has_no_rapl(void **state)
{
    struct fixture *f = *state;
    tree_write(&f->tree, "/proc/cpuinfo",
               "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\n");
    sensing_probe(&f->s, "rapl");
    assert_int_equal(f->s.findings.count, 1);
    assert_status(&f->s, "rapl", SENSOR_ABSENT);
    assert_string_equal(sensing_find(&f->s, "rapl")->reason, "RAPL is an x86 facility");
}

static void unknown_events_are_unsupported(void **state)
{
    struct fixture *f = *state;
    machine_none(&f->tree);
    tree_write(&f->tree, "/sys/bus/event_source/devices/power/type", "9\n");
    tree_write(&f->tree, "/sys/bus/event_source/devices/power/events/energy-moon", "event=0x1f\n");
    sensing_probe(&f->s, "rapl");
    assert_status(&f->s, "rapl", SENSOR_UNSUPPORTED);
    assert_contains(sensing_find(&f->s, "rapl")->reason, "no known energy event");
}

static void an_event_without_a_known_unit_is_unsupported(void **state)
{
    struct fixture *f = *state;
    machine_amd(&f->tree, MACHINE_PERF | MACHINE_POWERCAP);
    static const char *const SCALES[] = {"", "2,3e-10\n", "abc\n", "-1\n", "0\n", "inf\n"};
    for (size_t i = 0; i < sizeof SCALES / sizeof *SCALES; i++) {
        tree_write(&f->tree, "/sys/bus/event_source/devices/power/events/energy-pkg.scale", "%s",
                   SCALES[i]);
        sensing_probe(&f->s, "rapl");
        assert_int_equal(sensing_open(&f->s, "rapl:0"), ERR_OK);
        assert_string_equal(sensing_fact(&f->s, "path"), "powercap");
    }
}

static void zones_hidden_by_a_container_are_reported(void **state)
{
    struct fixture *f = *state;
    machine_none(&f->tree);
    tree_link(&f->tree, "/sys/class/powercap/intel-rapl:0", "../../devices/virtual/gone");
    sensing_probe(&f->s, "rapl");
    assert_status(&f->s, "rapl", SENSOR_UNSUPPORTED);
    assert_contains(sensing_find(&f->s, "rapl")->reason, "container");
}

static void registers_that_read_zero_are_absent(void **state)
{
    struct fixture *f = *state;
    machine_none(&f->tree);
    machine_set_msr(&f->tree, 0, MSR_UNIT, 0xa0e03);
    machine_set_msr(&f->tree, 0, 0x700, 1); /* the file reaches past every register */
    sensing_probe(&f->s, "rapl");
    assert_status(&f->s, "rapl", SENSOR_UNSUPPORTED);
    assert_contains(sensing_find(&f->s, "rapl")->reason, "no energy MSR responds");
    machine_set_msr(&f->tree, 0, MSR_PACKAGE, 123);
    sensing_probe(&f->s, "rapl");
    assert_int_equal(sensing_open(&f->s, "rapl:0"), ERR_OK);
    assert_int_equal(f->s.sensor.channel_count, 1);
    assert_near(sensing_channel(&f->s, "package")->joules_per_count, 1.0 / 16384, 1e-15);
}

int main(void)
{
    stepped_clock_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_sockets_are_measured_by_every_path),
        FIXTURE_TEST(sparse_sockets_and_cpu_ranges_are_parsed),
        FIXTURE_TEST(the_die_replaces_a_missing_package_number),
        FIXTURE_TEST(dies_with_separate_counters_are_all_kept),
        cmocka_unit_test(amd_has_a_package_on_every_path),
        FIXTURE_TEST(a_laptop_counts_its_package_once_and_psys_separately),
        FIXTURE_TEST(an_mmio_zone_is_used_if_it_is_the_only_one),
        FIXTURE_TEST(each_package_may_have_its_own_psys),
        FIXTURE_TEST(psys_without_a_package_is_found_with_an_explanation),
        FIXTURE_TEST(an_empty_machine_is_absent_for_three_reasons),
        FIXTURE_TEST(an_empty_root_is_absent),
        FIXTURE_TEST(a_virtual_machine_is_recognized),
        FIXTURE_TEST(arm_has_no_rapl),
        FIXTURE_TEST(unknown_events_are_unsupported),
        FIXTURE_TEST(an_event_without_a_known_unit_is_unsupported),
        FIXTURE_TEST(zones_hidden_by_a_container_are_reported),
        FIXTURE_TEST(registers_that_read_zero_are_absent),
    };
    return RUN_TESTS(tests);
}
