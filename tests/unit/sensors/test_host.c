#include "support/unit.h"

#include <string.h>

#include "sensors/system/host_info.h"
#include "support/boards.h"
#include "support/sensing.h"

static void utilization_is_that_of_the_interval(void **state)
{
    struct fixture *f = *state;
    board_host(&f->tree);
    assert_int_equal(sensing_start(&f->s, "host", "host"), ERR_OK);
    assert_int_equal(sensing_observe(&f->s, "utilisation").missing, ERR_NO_DATA);
    board_cpu_times(&f->tree, 25, 1075, 0);
    assert_near(sensing_value(&f->s, "utilisation"), 25, 1e-9);
    /* Stolen time passed, but this guest did not run. */
    board_cpu_times(&f->tree, 75, 1100, 25);
    assert_near(sensing_value(&f->s, "utilisation"), 50, 1e-9);
    /* No tick yet: no value, and the interval continues. */
    assert_int_equal(sensing_observe(&f->s, "utilisation").missing, ERR_BUSY);
    /* A decrease (a CPU went offline): no value, then a fresh start. */
    board_cpu_times(&f->tree, 50, 900, 25);
    assert_int_equal(sensing_observe(&f->s, "utilisation").missing, ERR_NO_DATA);
    board_cpu_times(&f->tree, 60, 900, 25);
    assert_near(sensing_value(&f->s, "utilisation"), 100, 1e-9);
}

static void iowait_is_idle_and_interrupts_are_busy(void **state)
{
    struct fixture *f = *state;
    board_host(&f->tree);
    tree_write(&f->tree, "/proc/stat", "cpu  0 0 0 0 0 0 0 0 0 0\n");
    assert_int_equal(sensing_start(&f->s, "host", "host"), ERR_OK);
    sensing_observe(&f->s, "utilisation");
    /* user nice system idle iowait irq softirq steal guest guest_nice; guest is inside user */
    tree_write(&f->tree, "/proc/stat", "cpu  10 10 10 20 30 10 10 0 10 0\n");
    assert_near(sensing_value(&f->s, "utilisation"), 50, 1e-9);
    static const char *const BAD[] = {"", "cpu", "cpu  1 2 3", "cpu0 1 2 3 4\n", "cpu  a b c d\n"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        tree_write(&f->tree, "/proc/stat", "%s", BAD[i]);
        assert_int_equal(sensing_observe(&f->s, "utilisation").missing, ERR_BAD_VALUE);
    }
    tree_write(&f->tree, "/proc/stat", "cpu  10 10 10 120 30 10 10 0 10 0\n");
    assert_near(sensing_value(&f->s, "utilisation"), 0, 1e-9);
}

static void memory_in_use_is_total_minus_available(void **state)
{
    struct fixture *f = *state;
    board_host(&f->tree);
    assert_int_equal(sensing_start(&f->s, "host", "host"), ERR_OK);
    assert_near(sensing_value(&f->s, "memory.total"), 16384000.0 * 1024, 0);
    assert_near(sensing_value(&f->s, "memory.used"), 4096000.0 * 1024, 0);
    tree_write(&f->tree, "/proc/meminfo", "MemTotal:       16384000 kB\n");
    assert_near(sensing_value(&f->s, "memory.total"), 16384000.0 * 1024, 0);
    assert_int_equal(sensing_observe(&f->s, "memory.used").missing, ERR_BAD_VALUE);
    tree_write(&f->tree, "/proc/meminfo", "MemTot");
    assert_int_equal(sensing_observe(&f->s, "memory.total").missing, ERR_BAD_VALUE);
    tree_remove(&f->tree, "/proc/meminfo");
    assert_int_equal(sensing_start(&f->s, "host", "host"), ERR_OK);
    assert_int_not_equal(sensing_observe(&f->s, "memory.used").missing, ERR_OK);
}

static void temperature_is_that_of_the_hottest_package(void **state)
{
    struct fixture *f = *state;
    board_host(&f->tree);
    for (unsigned n = 0; n < 2; n++) {
        board_chip(&f->tree, n, "coretemp");
        board_attribute(&f->tree, n, "temp1_label", n ? "Package id 1" : "Package id 0");
        board_attribute(&f->tree, n, "temp1_input", n ? "71000" : "64000");
        board_attribute(&f->tree, n, "temp2_label", "Core 0");
        board_attribute(&f->tree, n, "temp2_input", "99000");
    }
    assert_int_equal(sensing_start(&f->s, "host", "host"), ERR_OK);
    assert_near(sensing_value(&f->s, "temperature"), 71, 1e-9);
    tree_write(&f->tree, "/sys/class/hwmon/hwmon1/temp1_input", "%s", "");
    assert_near(sensing_value(&f->s, "temperature"), 64, 1e-9);
    tree_write(&f->tree, "/sys/class/hwmon/hwmon0/temp1_input", "%s", "x");
    assert_int_equal(sensing_observe(&f->s, "temperature").missing, ERR_BAD_VALUE);
}

static void other_temperature_sensors_and_clocks(void **state)
{
    struct fixture *f = *state;
    board_host(&f->tree);
    board_x86(&f->tree, "AuthenticAMD", 25, 97, "AMD Ryzen 9 7950X 16-Core Processor", 4, 1, "");
    /* Tdie is the die temperature, Tctl may have an offset for fan control. */
    board_chip(&f->tree, 0, "k10temp");
    board_attribute(&f->tree, 0, "temp1_label", "Tctl");
    board_attribute(&f->tree, 0, "temp1_input", "80000");
    board_attribute(&f->tree, 0, "temp2_label", "Tdie");
    board_attribute(&f->tree, 0, "temp2_input", "53000");
    tree_write(&f->tree, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3000000\n");
    tree_write(&f->tree, "/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "5000000\n");
    assert_int_equal(sensing_start(&f->s, "host", "host"), ERR_OK);
    assert_near(sensing_value(&f->s, "temperature"), 53, 1e-9);
    sensing_probe(&f->s, "host");
    assert_string_equal(f->s.findings.items[0].measures,
                        "utilisation,memory_used,memory_total,temperature,clock");
    assert_near(sensing_value(&f->s, "clock"), 4000, 1e-9);
    tree_write(&f->tree, "/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "%s", "");
    assert_near(sensing_value(&f->s, "clock"), 3000, 1e-9);

    tree_remove(&f->tree, "/sys/class/hwmon");
    tree_write(&f->tree, "/sys/class/thermal/thermal_zone0/type", "acpitz\n");
    tree_write(&f->tree, "/sys/class/thermal/thermal_zone0/temp", "27800\n");
    tree_write(&f->tree, "/sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
    tree_write(&f->tree, "/sys/class/thermal/thermal_zone1/temp", "58000\n");
    assert_int_equal(sensing_start(&f->s, "host", "host"), ERR_OK);
    assert_near(sensing_value(&f->s, "temperature"), 58, 1e-9);
}

static void without_proc_the_host_is_absent(void **state)
{
    struct fixture *f = *state;
    const struct sensor_finding *finding = sensing_only(&f->s, "host");
    assert_int_equal(finding->status, SENSOR_ABSENT);
    assert_true(finding->reason[0]);
    /* Only what this host has is listed as measured. */
    board_host(&f->tree);
    sensing_probe(&f->s, "host");
    assert_string_equal(f->s.findings.items[0].measures, "utilisation,memory_used,memory_total");
}

/* ---- host description ---- */

static void an_x86_host_is_described(void **state)
{
    struct fixture *f = *state;
    struct host_info host;
    board_host(&f->tree);
    board_x86(&f->tree, "AuthenticAMD", 25, 17, "AMD EPYC 9654 96-Core Processor", 8, 2, "");
    host_info_read(&host);
    assert_string_equal(host.os_name, "Debian GNU/Linux");
    assert_string_equal(host.os_version, "12 (bookworm)");
    assert_string_equal(host.kernel, "6.1.0-18-test");
    assert_string_equal(host.host_name, "testhost");
    assert_string_equal(host.machine, "x86_64");
    assert_string_equal(host.cpu_brand, "AMD EPYC 9654 96-Core Processor");
    assert_int_equal(host.cpu_count, 8);
    assert_int_equal(host.sockets, 2);
    assert_true(host.memory_bytes == 16384000ull * 1024);
    assert_false(host.virtualized);
    /* CPUs that are offline do not count. */
    tree_write(&f->tree, "/sys/devices/system/cpu/online", "0-2,5,7\n");
    host_info_read(&host);
    assert_int_equal(host.cpu_count, 5);
    tree_write(&f->tree, "/sys/devices/system/cpu/online",
               "3-1\n"); /* invalid: count cpuinfo instead */
    host_info_read(&host);
    assert_int_equal(host.cpu_count, 8);
}

static void a_virtual_machine_is_recognized(void **state)
{
    struct fixture *f = *state;
    struct host_info host;
    board_host(&f->tree);
    board_x86(&f->tree, "GenuineIntel", 6, 207, "Intel(R) Xeon(R) Processor", 2, 1,
              "hypervisor lahf_lm");
    host_info_read(&host);
    assert_true(host.virtualized);
    board_x86(&f->tree, "GenuineIntel", 6, 207, "Intel(R) Xeon(R) Processor", 2, 1, "hypervisors");
    host_info_read(&host);
    assert_false(host.virtualized); /* only the whole word */
    board_arm(&f->tree, 0x41, 0xd40, 2);
    tree_write(&f->tree, "/sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
    tree_write(&f->tree, "/sys/class/dmi/id/product_name", "c7g.large\n");
    host_info_read(&host);
    assert_true(host.virtualized);
    assert_string_equal(host.cpu_product, "AWS Graviton3");
    tree_write(&f->tree, "/sys/class/dmi/id/product_name", "c7g.metal\n");
    host_info_read(&host);
    assert_false(host.virtualized);
}

static void an_arm_host_has_a_brand(void **state)
{
    struct fixture *f = *state;
    struct host_info host;
    board_grace(&f->tree, 1);
    host_info_read(&host);
    assert_string_equal(host.cpu_brand, "Neoverse-V2");
    assert_string_equal(host.cpu_product, "NVIDIA Grace");
    assert_string_equal(host.machine, "aarch64");
    assert_int_equal(host.cpu_count, 4);
    assert_int_equal(host.sockets, 1);
    assert_true(host_is_grace(&host));
    /* Sockets from sysfs where cpuinfo has none; package numbers may be any. */
    for (unsigned i = 0; i < 4; i++) {
        char path[96];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/physical_package_id",
                 i);
        tree_write(&f->tree, path, "%u\n", i < 2 ? 36 : 3180);
    }
    host_info_read(&host);
    assert_int_equal(host.sockets, 2);
    /* An unnamed core: the board's name, with a trailing NUL. */
    board_arm(&f->tree, 0x77, 0x123, 2);
    tree_write_bytes(&f->tree, "/proc/device-tree/model", 0, "Acme Board 7", 13);
    host_info_read(&host);
    assert_string_equal(host.cpu_brand, "Acme Board 7");
}

static void unknown_facts_are_empty_strings(void **state)
{
    (void)state;
    struct host_info host;
    host_info_read(&host);
    assert_string_equal(host.cpu_brand, "");
    assert_string_equal(host.os_name, "");
    assert_string_equal(host.kernel, "");
    assert_string_equal(host.machine, "");
    assert_int_equal(host.cpu_count, 0);
    assert_int_equal(host.sockets, 0);
    assert_true(host.memory_bytes == 0);
}

static void the_real_machine_is_described(void **state)
{
    struct fixture *f = *state;
    struct tree none = f->tree;
    tree_free(&none); /* back to the real root */
    struct host_info host;
    host_info_read(&host);
    tree_new(&f->tree);
    assert_true(host.kernel[0] && host.machine[0]);
    assert_true(host.cpu_count > 0);
    assert_true(host.memory_bytes > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(utilization_is_that_of_the_interval),
        FIXTURE_TEST(iowait_is_idle_and_interrupts_are_busy),
        FIXTURE_TEST(memory_in_use_is_total_minus_available),
        FIXTURE_TEST(temperature_is_that_of_the_hottest_package),
        FIXTURE_TEST(other_temperature_sensors_and_clocks),
        FIXTURE_TEST(without_proc_the_host_is_absent),
        FIXTURE_TEST(an_x86_host_is_described),
        FIXTURE_TEST(a_virtual_machine_is_recognized),
        FIXTURE_TEST(an_arm_host_has_a_brand),
        FIXTURE_TEST(unknown_facts_are_empty_strings),
        FIXTURE_TEST(the_real_machine_is_described),
    };
    return RUN_TESTS(tests);
}
