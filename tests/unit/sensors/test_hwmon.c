#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "support/boards.h"
#include "support/drive.h"

extern const struct sensor_driver sensor_hwmon;

static struct tree tree;

static int setup(void **state)
{
    (void)state;
    tree_new(&tree);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tree_free(&tree);
    return 0;
}

static double value_of(struct sensor *sensor, const char *channel)
{
    struct observation o = drive_read(sensor, channel, NULL);
    assert_int_equal(o.missing, ERR_OK);
    return o.value;
}

static const struct sensor_channel *channel_of(const struct sensor *sensor, const char *name)
{
    int index = drive_channel(sensor, name);
    assert_true(index >= 0);
    return &sensor->channels[index];
}

static struct sensor_finding only_finding(void)
{
    struct sensor_findings findings = drive_probe(&sensor_hwmon);
    assert_int_equal(findings.count, 1);
    struct sensor_finding finding = findings.items[0];
    sensor_findings_release(&findings);
    return finding;
}

static void grace_meters_know_their_part_and_socket(void **state)
{
    (void)state;
    static const struct {
        const char *id, *device;
        enum scope scope;
        int socket;
        double watts;
    } CASES[] = {
        {"hwmon:power_meter0", "module0", SCOPE_MODULE, 0, 500},
        {"hwmon:power_meter1", "grace0", SCOPE_GRACE, 0, 200},
        {"hwmon:power_meter2", "cpu0", SCOPE_GRACE_CPU, 0, 150},
        {"hwmon:power_meter3", "sysio0", SCOPE_SYSIO, 0, 50},
        {"hwmon:power_meter4", "module1", SCOPE_MODULE, 1, 501},
        {"hwmon:power_meter7", "sysio1", SCOPE_SYSIO, 1, 51},
    };
    board_grace(&tree, 2);
    struct sensor_findings findings = drive_probe(&sensor_hwmon);
    assert_int_equal(findings.count, 8);
    sensor_findings_release(&findings);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct sensor sensor;
        assert_true(drive_open(&sensor_hwmon, CASES[i].id, &sensor));
        const struct sensor_channel *power = channel_of(&sensor, "power");
        assert_string_equal(power->device, CASES[i].device);
        assert_int_equal(power->scope, CASES[i].scope);
        assert_int_equal(power->location, CASES[i].socket);
        assert_int_equal(power->period, 50 * NS_PER_MS);
        assert_int_equal(sensor.groups[0].period_default, 50 * NS_PER_MS);
        assert_near(value_of(&sensor, "power"), CASES[i].watts, 1e-9);
        sensor_close(&sensor);
    }
}

static void grace_without_its_meters_is_told_what_to_do(void **state)
{
    (void)state;
    board_grace_without_meters(&tree);
    struct sensor_finding finding = only_finding();
    assert_int_equal(finding.status, SENSOR_ABSENT);
    assert_non_null(strstr(finding.reason, "Grace"));
    assert_non_null(strstr(finding.fix, "acpi_power_meter.force_cap_on=y"));
}

static void an_unlabelled_acpi_meter_is_the_node(void **state)
{
    (void)state;
    board_chip(&tree, 0, "power_meter");
    board_attribute(&tree, 0, "power1_average", "412000000");
    board_attribute(&tree, 0, "power1_average_interval", "1000");
    board_attribute(&tree, 0, "power1_oem_info", "");
    /* A second one covers who knows what: shown, but in no sum. */
    board_chip(&tree, 1, "power_meter");
    board_attribute(&tree, 1, "power1_average", "100000000");
    struct sensor sensor;
    assert_true(drive_open(&sensor_hwmon, "hwmon:power_meter0", &sensor));
    const struct sensor_channel *power = channel_of(&sensor, "power");
    assert_int_equal(power->scope, SCOPE_NODE);
    assert_string_equal(power->device, "node");
    assert_int_equal(power->location, -1);
    assert_near(value_of(&sensor, "power"), 412, 1e-9);
    sensor_close(&sensor);
    assert_true(drive_open(&sensor_hwmon, "hwmon:power_meter1", &sensor));
    assert_int_equal(channel_of(&sensor, "power")->scope, SCOPE_NONE);
    sensor_close(&sensor);
}

static void an_amd_gpu_has_its_number_and_bus(void **state)
{
    (void)state;
    tree_write(&tree, "/sys/devices/pci0000:00/0000:03:00.0/gpu_busy_percent", "93\n");
    tree_write(&tree, "/sys/devices/pci0000:00/0000:03:00.0/mem_info_vram_used", "1048576\n");
    board_chip(&tree, 4, "amdgpu");
    board_attribute(&tree, 4, "power1_average", "31000000");
    tree_write(&tree, "/sys/class/hwmon/hwmon2/name", "amdgpu\n");
    board_attribute(&tree, 2, "power1_average", "217500000");
    board_attribute(&tree, 2, "power1_input", "300000000");
    board_attribute(&tree, 2, "power1_label", "PPT");
    board_attribute(&tree, 2, "power1_cap", "303000000");
    board_attribute(&tree, 2, "temp1_input", "61000");
    board_attribute(&tree, 2, "freq1_input", "2400000000");
    tree_link(&tree, "/sys/class/hwmon/hwmon2/device", "../../../devices/pci0000:00/0000:03:00.0");
    struct sensor sensor;
    assert_true(drive_open(&sensor_hwmon, "hwmon:amdgpu0", &sensor));
    assert_int_equal(sensor.kind, SENSOR_GPU);
    const struct sensor_channel *power = channel_of(&sensor, "power");
    assert_int_equal(power->scope, SCOPE_GPU);
    assert_int_equal(power->location, 0);
    assert_string_equal(power->device, "gpu0");
    assert_false(power->secondary);
    assert_near(value_of(&sensor, "power"), 217.5, 1e-9); /* the average, not the instant */
    assert_near(value_of(&sensor, "temperature"), 61, 1e-9);
    assert_near(value_of(&sensor, "clock"), 2400, 1e-9);
    assert_near(value_of(&sensor, "power.limit"), 303, 1e-9);
    assert_near(value_of(&sensor, "utilisation"), 93, 0);
    assert_near(value_of(&sensor, "memory.used"), 1048576, 0);
    bool has_bus = false;
    for (size_t i = 0; i < sensor.fact_count; i++)
        has_bus |= !strcmp(sensor.facts[i].key, "pci_bus_id") &&
                   !strcmp(sensor.facts[i].text, "0000:03:00.0");
    assert_true(has_bus);
    sensor_close(&sensor);
    assert_true(drive_open(&sensor_hwmon, "hwmon:amdgpu1", &sensor));
    assert_string_equal(channel_of(&sensor, "power")->device, "gpu1");
    sensor_close(&sensor);
}

/* The driver shows the north bridge on a processor's own graphics alone; its power is then the
 * whole package's, which RAPL counts too. */
static void integrated_graphics_are_the_package(void **state)
{
    (void)state;
    board_chip(&tree, 0, "amdgpu");
    board_attribute(&tree, 0, "power1_input", "28000000");
    board_attribute(&tree, 0, "in1_label", "vddnb");
    struct sensor sensor;
    assert_true(drive_open(&sensor_hwmon, "hwmon:amdgpu0", &sensor));
    const struct sensor_channel *power = channel_of(&sensor, "power");
    assert_int_equal(power->scope, SCOPE_PACKAGE);
    assert_int_equal(power->location, -1);
    sensor_close(&sensor);
}

static void assert_found(const char *devices, const char *ids)
{
    struct sensor_config config = {.devices = devices};
    struct sensor_findings findings = {0};
    char found[160] = "";
    sensors_probe(&config, "hwmon", &findings);
    for (size_t i = 0; i < findings.count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s ", findings.items[i].id);
    sensor_findings_release(&findings);
    assert_string_equal(found, ids);
}

/* Numbers go along the bus, whatever order the kernel found the cards in. */
static void only_the_wanted_gpus_are_read(void **state)
{
    (void)state;
    static const char *const BUS[] = {"0000:83:00.0", "0000:03:00.0", "0000:43:00.0"};
    for (unsigned n = 0; n < 3; n++) {
        char path[96], target[96];
        board_chip(&tree, n, "amdgpu");
        board_attribute(&tree, n, "power1_average", "31000000");
        snprintf(path, sizeof path, "/sys/devices/pci0000:00/%s/unique_id", BUS[n]);
        tree_write(&tree, path, n == 0 ? "00c0ffee00c0ffee\n" : "1\n");
        snprintf(path, sizeof path, "/sys/class/hwmon/hwmon%u/device", n);
        snprintf(target, sizeof target, "../../../devices/pci0000:00/%s", BUS[n]);
        tree_link(&tree, path, target);
    }
    board_chip(&tree, 3, "power_meter");
    board_attribute(&tree, 3, "power1_average", "412000000");
    board_chip(&tree, 4, "xe");
    board_attribute(&tree, 4, "energy1_input", "5000000");
    assert_found(NULL, "hwmon:amdgpu0 hwmon:amdgpu1 hwmon:amdgpu2 hwmon:power_meter0 hwmon:xe0 ");
    assert_found("", "hwmon:amdgpu0 hwmon:amdgpu1 hwmon:amdgpu2 hwmon:power_meter0 hwmon:xe0 ");
    assert_found("0", "hwmon:amdgpu1 hwmon:power_meter0 hwmon:xe0 ");
    assert_found("1,GPU-c0ffee00c0ffee", "hwmon:amdgpu0 hwmon:amdgpu2 hwmon:power_meter0 ");
    setenv("ROCR_VISIBLE_DEVICES", "2,0", 1);
    assert_found(NULL, "hwmon:amdgpu0 hwmon:amdgpu1 hwmon:power_meter0 hwmon:xe0 ");
    setenv("HIP_VISIBLE_DEVICES", "0", 1);
    assert_found(NULL, "hwmon:amdgpu0 hwmon:power_meter0 hwmon:xe0 ");
    unsetenv("ROCR_VISIBLE_DEVICES");
    unsetenv("HIP_VISIBLE_DEVICES");
}

static void energy_counters_are_counted_not_scaled(void **state)
{
    (void)state;
    board_chip(&tree, 0, "i915");
    board_attribute(&tree, 0, "energy1_input", "18446744073709551615");
    board_chip(&tree, 1, "xe");
    board_attribute(&tree, 1, "energy1_input", "5000000");
    board_attribute(&tree, 1, "energy1_label", "card");
    board_attribute(&tree, 1, "energy2_input", "3000000");
    board_attribute(&tree, 1, "energy2_label", "pkg");
    board_attribute(&tree, 1, "power1_input", "90000000");
    struct sensor sensor;
    assert_true(drive_open(&sensor_hwmon, "hwmon:i915.0", &sensor));
    const struct sensor_channel *energy = channel_of(&sensor, "energy");
    assert_int_equal(energy->quantity, QTY_ENERGY);
    assert_int_equal(energy->scope, SCOPE_GPU);
    assert_near(energy->joules_per_count, 1e-6, 0);
    struct observation o = drive_read(&sensor, "energy", NULL);
    assert_int_equal(o.missing, ERR_OK);
    assert_true(o.count == UINT64_MAX);
    sensor_close(&sensor);

    /* A second card; its package is a part of it, its power a check of its counter. */
    assert_true(drive_open(&sensor_hwmon, "hwmon:xe0", &sensor));
    assert_string_equal(channel_of(&sensor, "card")->device, "gpu1");
    assert_int_equal(channel_of(&sensor, "card")->scope, SCOPE_GPU);
    assert_false(channel_of(&sensor, "card")->secondary);
    assert_int_equal(channel_of(&sensor, "pkg")->scope, SCOPE_NONE);
    assert_int_equal(channel_of(&sensor, "power1")->scope, SCOPE_GPU);
    assert_true(channel_of(&sensor, "power1")->secondary);
    sensor_close(&sensor);
}

static void amd_sockets_are_packages_and_cores_are_left_out(void **state)
{
    (void)state;
    board_chip(&tree, 0, "amd_energy");
    for (unsigned i = 1; i <= 34; i++) {
        char file[32], text[32];
        snprintf(file, sizeof file, "energy%u_input", i);
        snprintf(text, sizeof text, "%u000", i);
        board_attribute(&tree, 0, file, text);
        snprintf(file, sizeof file, "energy%u_label", i);
        if (i <= 32)
            snprintf(text, sizeof text, "Ecore%03u", i - 1);
        else
            snprintf(text, sizeof text, "Esocket%u", i - 33);
        board_attribute(&tree, 0, file, text);
    }
    struct sensor sensor;
    assert_true(drive_open(&sensor_hwmon, "hwmon:amd_energy0", &sensor));
    assert_int_equal(sensor.channel_count, 2);
    assert_int_equal(channel_of(&sensor, "Esocket1")->scope, SCOPE_PACKAGE);
    assert_int_equal(channel_of(&sensor, "Esocket1")->location, 1);
    assert_string_equal(channel_of(&sensor, "Esocket0")->device, "cpu0");
    assert_true(drive_read(&sensor, "Esocket1", NULL).count == 34000);
    sensor_close(&sensor);
}

static void a_power_supply_is_the_node_and_its_rails_are_not_added(void **state)
{
    (void)state;
    board_chip(&tree, 0, "corsairpsu");
    board_attribute(&tree, 0, "power1_input", "354000000");
    board_attribute(&tree, 0, "power1_label", "power total");
    board_attribute(&tree, 0, "power2_input", "320000000");
    board_attribute(&tree, 0, "power2_label", "power +12v");
    board_chip(&tree, 1, "nvme"); /* no meter: no finding */
    board_attribute(&tree, 1, "temp1_input", "40000");
    struct sensor_finding finding = only_finding();
    assert_string_equal(finding.id, "hwmon:corsairpsu0");
    assert_string_equal(finding.measures, "power");
    struct sensor sensor;
    assert_true(drive_open(&sensor_hwmon, finding.id, &sensor));
    assert_int_equal(channel_of(&sensor, "power total")->scope, SCOPE_NODE);
    assert_int_equal(channel_of(&sensor, "power +12v")->scope, SCOPE_NONE);
    assert_near(value_of(&sensor, "power total"), 354, 1e-9);
    sensor_close(&sensor);
}

static void an_unknown_meter_is_shown_and_never_summed(void **state)
{
    (void)state;
    board_chip(&tree, 0, "BAT0");
    board_attribute(&tree, 0, "power1_input", "9500000");
    struct sensor sensor;
    assert_true(drive_open(&sensor_hwmon, "hwmon:BAT0.0", &sensor));
    assert_int_equal(channel_of(&sensor, "power")->scope, SCOPE_NONE);
    assert_near(value_of(&sensor, "power"), 9.5, 1e-9);
    sensor_close(&sensor);
}

static void a_jetsons_monitors_are_left_to_its_driver(void **state)
{
    (void)state;
    board_jetson_orin_nano(&tree);
    board_attribute(&tree, 1, "power1_input", "6000000");
    assert_int_equal(only_finding().status, SENSOR_ABSENT);
}

static void nothing_there_is_absent_with_a_reason(void **state)
{
    (void)state;
    assert_int_equal(only_finding().status, SENSOR_ABSENT);
    assert_true(only_finding().reason[0]);
    board_chip(&tree, 0, "nvme");
    board_attribute(&tree, 0, "temp1_input", "40000");
    assert_int_equal(only_finding().status, SENSOR_ABSENT);
    assert_true(only_finding().reason[0]);
    /* A meter that says nothing sensible is there, but no use. */
    board_chip(&tree, 1, "power_meter");
    board_attribute(&tree, 1, "power1_average", "n/a");
    assert_int_equal(only_finding().status, SENSOR_UNSUPPORTED);
    assert_non_null(strstr(only_finding().reason, "power1_average"));
}

static void bad_files_are_missing_never_zero(void **state)
{
    (void)state;
    static const char *const BAD[] = {"", "\n", "abc\n", "-5\n", "1 2\n", "99999999999999999999\n"};
    board_chip(&tree, 0, "power_meter");
    board_attribute(&tree, 0, "power1_average", "412000000");
    board_chip(&tree, 1, "i915");
    board_attribute(&tree, 1, "energy1_input", "1");
    struct sensor power, energy;
    assert_true(drive_open(&sensor_hwmon, "hwmon:power_meter0", &power));
    assert_true(drive_open(&sensor_hwmon, "hwmon:i915.0", &energy));
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        tree_write(&tree, "/sys/class/hwmon/hwmon0/power1_average", "%s", BAD[i]);
        tree_write(&tree, "/sys/class/hwmon/hwmon1/energy1_input", "%s", BAD[i]);
        assert_int_equal(drive_read(&power, "power", NULL).missing, ERR_BAD_VALUE);
        assert_int_equal(drive_read(&energy, "energy", NULL).missing, ERR_BAD_VALUE);
    }
    board_attribute(&tree, 0, "power1_average", "1000000");
    assert_near(value_of(&power, "power"), 1, 1e-9); /* and it recovers */
    sensor_close(&power);
    sensor_close(&energy);
}

static void a_chip_that_moved_is_found_again_by_its_name(void **state)
{
    (void)state;
    board_chip(&tree, 3, "i915");
    board_attribute(&tree, 3, "energy1_input", "1");
    struct sensor_finding finding = only_finding();
    tree_remove(&tree, "/sys/class/hwmon/hwmon3");
    struct sensor sensor;
    struct error why;
    assert_int_equal(sensor_open(&finding, &sensor, &why), ERR_NOT_FOUND);
    assert_non_null(strstr(why.text, "hwmon:i915.0"));
    board_chip(&tree, 9, "i915");
    board_attribute(&tree, 9, "energy1_input", "2");
    assert_int_equal(sensor_open(&finding, &sensor, &why), ERR_OK);
    assert_true(drive_read(&sensor, "energy", NULL).count == 2);
    sensor_close(&sensor);
}

static int denied_as_nobody(void *argument)
{
    (void)argument;
    struct sensor_findings findings = drive_probe(&sensor_hwmon);
    const struct sensor_finding *finding = drive_find(&findings, "hwmon:power_meter0");
    bool ok = finding && finding->status == SENSOR_DENIED && finding->reason[0] &&
              strstr(finding->fix, "chmod a+r /sys/class/hwmon/hwmon0/power1_average");
    struct sensor sensor;
    struct error why = {0};
    ok = ok && sensor_open(finding, &sensor, &why) == ERR_DENIED && why.text[0];
    return ok ? 0 : 1;
}

static void denied_files_come_with_the_fix(void **state)
{
    (void)state;
    board_chip(&tree, 0, "power_meter");
    board_attribute(&tree, 0, "power1_average", "412000000");
    tree_mode(&tree, "", 0755);
    tree_mode(&tree, "/sys/class/hwmon/hwmon0/power1_average", 0);
    assert_int_equal(drive_as_nobody(denied_as_nobody, NULL), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(grace_meters_know_their_part_and_socket),
        CASE(grace_without_its_meters_is_told_what_to_do),
        CASE(an_unlabelled_acpi_meter_is_the_node),
        CASE(an_amd_gpu_has_its_number_and_bus),
        CASE(integrated_graphics_are_the_package),
        CASE(only_the_wanted_gpus_are_read),
        CASE(energy_counters_are_counted_not_scaled),
        CASE(amd_sockets_are_packages_and_cores_are_left_out),
        CASE(a_power_supply_is_the_node_and_its_rails_are_not_added),
        CASE(an_unknown_meter_is_shown_and_never_summed),
        CASE(a_jetsons_monitors_are_left_to_its_driver),
        CASE(nothing_there_is_absent_with_a_reason),
        CASE(bad_files_are_missing_never_zero),
        CASE(a_chip_that_moved_is_found_again_by_its_name),
        CASE(denied_files_come_with_the_fix),
    };
    return RUN_TESTS(tests);
}
