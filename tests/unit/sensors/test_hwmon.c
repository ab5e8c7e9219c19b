#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "support/boards.h"
#include "support/sensing.h"

static const struct sensor_channel *channel_of(const struct sensing *s, const char *name)
{
    const struct sensor_channel *channel = sensing_channel(s, name);
    assert_non_null(channel);
    return channel;
}

static void grace_meters_have_their_scope_and_socket(void **state)
{
    struct fixture *f = *state;
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
    board_grace(&f->tree, 2);
    sensing_probe(&f->s, "hwmon");
    assert_int_equal(f->s.findings.count, 8);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        assert_int_equal(sensing_start(&f->s, "hwmon", CASES[i].id), ERR_OK);
        const struct sensor_channel *power = channel_of(&f->s, "power");
        assert_string_equal(power->device, CASES[i].device);
        assert_int_equal(power->scope, CASES[i].scope);
        assert_int_equal(power->location, CASES[i].socket);
        assert_int_equal(power->period, 50 * NS_PER_MS);
        assert_int_equal(power->averaging, 50 * NS_PER_MS); /* as its driver documents */
        assert_int_equal(f->s.sensor.groups[0].period_default, 50 * NS_PER_MS);
        assert_near(sensing_value(&f->s, "power"), CASES[i].watts, 1e-9);
    }
}

static void grace_without_its_meters_says_how_to_fix_it(void **state)
{
    struct fixture *f = *state;
    board_grace_without_meters(&f->tree);
    const struct sensor_finding *finding = sensing_only(&f->s, "hwmon");
    assert_int_equal(finding->status, SENSOR_ABSENT);
    assert_non_null(strstr(finding->reason, "Grace"));
    assert_non_null(strstr(finding->fix, "acpi_power_meter.force_cap_on=y"));
}

static void an_unlabeled_acpi_meter_is_the_node(void **state)
{
    struct fixture *f = *state;
    board_chip(&f->tree, 0, "power_meter");
    board_attribute(&f->tree, 0, "power1_average", "412000000");
    board_attribute(&f->tree, 0, "power1_average_interval", "1000");
    board_attribute(&f->tree, 0, "power1_oem_info", "");
    /* What a second one covers is unknown: shown, but never summed. */
    board_chip(&f->tree, 1, "power_meter");
    board_attribute(&f->tree, 1, "power1_average", "100000000");
    assert_int_equal(sensing_start(&f->s, "hwmon", "hwmon:power_meter0"), ERR_OK);
    const struct sensor_channel *power = channel_of(&f->s, "power");
    assert_int_equal(power->scope, SCOPE_NODE);
    assert_string_equal(power->device, "node");
    assert_int_equal(power->location, -1);
    assert_near(sensing_value(&f->s, "power"), 412, 1e-9);
    assert_int_equal(power->averaging, NS_PER_S);
    assert_int_equal(sensing_start(&f->s, "hwmon", "hwmon:power_meter1"), ERR_OK);
    assert_int_equal(channel_of(&f->s, "power")->scope, SCOPE_NONE);
    assert_int_equal(channel_of(&f->s, "power")->averaging, NS_PER_S); /* assumed */
}

static void an_amd_gpu_has_its_index_and_bus(void **state)
{
    struct fixture *f = *state;
    tree_write(&f->tree, "/sys/devices/pci0000:00/0000:03:00.0/gpu_busy_percent", "93\n");
    tree_write(&f->tree, "/sys/devices/pci0000:00/0000:03:00.0/mem_info_vram_used", "1048576\n");
    board_chip(&f->tree, 4, "amdgpu");
    board_attribute(&f->tree, 4, "power1_average", "31000000");
    tree_write(&f->tree, "/sys/class/hwmon/hwmon2/name", "amdgpu\n");
    board_attribute(&f->tree, 2, "power1_average", "217500000");
    board_attribute(&f->tree, 2, "power1_input", "300000000");
    board_attribute(&f->tree, 2, "power1_label", "PPT");
    board_attribute(&f->tree, 2, "power1_cap", "303000000");
    board_attribute(&f->tree, 2, "temp1_input", "61000");
    board_attribute(&f->tree, 2, "freq1_input", "2400000000");
    tree_link(&f->tree, "/sys/class/hwmon/hwmon2/device",
              "../../../devices/pci0000:00/0000:03:00.0");
    assert_int_equal(sensing_start(&f->s, "hwmon", "hwmon:amdgpu0"), ERR_OK);
    assert_int_equal(f->s.sensor.kind, SENSOR_GPU);
    const struct sensor_channel *power = channel_of(&f->s, "power");
    assert_int_equal(power->scope, SCOPE_GPU);
    assert_int_equal(power->location, 0);
    assert_string_equal(power->device, "gpu0");
    assert_false(power->secondary);
    assert_near(sensing_value(&f->s, "power"), 217.5,
                1e-9); /* the average, not the instantaneous value */
    assert_near(sensing_value(&f->s, "temperature"), 61, 1e-9);
    assert_near(sensing_value(&f->s, "clock"), 2400, 1e-9);
    assert_near(sensing_value(&f->s, "power.limit"), 303, 1e-9);
    assert_near(sensing_value(&f->s, "utilisation"), 93, 0);
    assert_near(sensing_value(&f->s, "memory.used"), 1048576, 0);
    assert_string_equal(sensing_fact(&f->s, "pci_bus_id"), "0000:03:00.0");
    assert_int_equal(sensing_start(&f->s, "hwmon", "hwmon:amdgpu1"), ERR_OK);
    assert_string_equal(channel_of(&f->s, "power")->device, "gpu1");
}

/* The driver has a north bridge voltage for integrated graphics only; its power is then the
 * package's, which RAPL also counts. */
static void integrated_graphics_are_the_package(void **state)
{
    struct fixture *f = *state;
    board_chip(&f->tree, 0, "amdgpu");
    board_attribute(&f->tree, 0, "power1_input", "28000000");
    board_attribute(&f->tree, 0, "in1_label", "vddnb");
    assert_int_equal(sensing_start(&f->s, "hwmon", "hwmon:amdgpu0"), ERR_OK);
    const struct sensor_channel *power = channel_of(&f->s, "power");
    assert_int_equal(power->scope, SCOPE_PACKAGE);
    assert_int_equal(power->location, -1);
}

static void assert_found(struct sensing *s, const char *devices, const char *ids)
{
    char found[160] = "";
    s->devices = devices;
    sensing_probe(s, "hwmon");
    for (size_t i = 0; i < s->findings.count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s ",
                 s->findings.items[i].id);
    assert_string_equal(found, ids);
}

/* Indices follow the bus order, in whatever order the kernel found the cards. */
static void only_the_selected_gpus_are_read(void **state)
{
    struct fixture *f = *state;
    static const char *const BUS[] = {"0000:83:00.0", "0000:03:00.0", "0000:43:00.0"};
    for (unsigned n = 0; n < 3; n++) {
        char path[96], target[96];
        board_chip(&f->tree, n, "amdgpu");
        board_attribute(&f->tree, n, "power1_average", "31000000");
        snprintf(path, sizeof path, "/sys/devices/pci0000:00/%s/unique_id", BUS[n]);
        tree_write(&f->tree, path, n == 0 ? "00c0ffee00c0ffee\n" : "1\n");
        snprintf(path, sizeof path, "/sys/class/hwmon/hwmon%u/device", n);
        snprintf(target, sizeof target, "../../../devices/pci0000:00/%s", BUS[n]);
        tree_link(&f->tree, path, target);
    }
    board_chip(&f->tree, 3, "power_meter");
    board_attribute(&f->tree, 3, "power1_average", "412000000");
    board_chip(&f->tree, 4, "xe");
    board_attribute(&f->tree, 4, "energy1_input", "5000000");
    assert_found(&f->s, NULL,
                 "hwmon:amdgpu0 hwmon:amdgpu1 hwmon:amdgpu2 hwmon:power_meter0 hwmon:xe0 ");
    assert_found(&f->s, "",
                 "hwmon:amdgpu0 hwmon:amdgpu1 hwmon:amdgpu2 hwmon:power_meter0 hwmon:xe0 ");
    assert_found(&f->s, "0", "hwmon:amdgpu1 hwmon:power_meter0 hwmon:xe0 ");
    assert_found(&f->s, "1,GPU-c0ffee00c0ffee", "hwmon:amdgpu0 hwmon:amdgpu2 hwmon:power_meter0 ");
    setenv("ROCR_VISIBLE_DEVICES", "2,0", 1);
    assert_found(&f->s, NULL, "hwmon:amdgpu0 hwmon:amdgpu1 hwmon:power_meter0 hwmon:xe0 ");
    setenv("HIP_VISIBLE_DEVICES", "0", 1);
    assert_found(&f->s, NULL, "hwmon:amdgpu0 hwmon:power_meter0 hwmon:xe0 ");
    unsetenv("ROCR_VISIBLE_DEVICES");
    unsetenv("HIP_VISIBLE_DEVICES");
}

static void energy_counters_are_passed_on_unscaled(void **state)
{
    struct fixture *f = *state;
    board_chip(&f->tree, 0, "i915");
    board_attribute(&f->tree, 0, "energy1_input", "18446744073709551615");
    board_chip(&f->tree, 1, "xe");
    board_attribute(&f->tree, 1, "energy1_input", "5000000");
    board_attribute(&f->tree, 1, "energy1_label", "card");
    board_attribute(&f->tree, 1, "energy2_input", "3000000");
    board_attribute(&f->tree, 1, "energy2_label", "pkg");
    board_attribute(&f->tree, 1, "power1_input", "90000000");
    assert_int_equal(sensing_start(&f->s, "hwmon", "hwmon:i915.0"), ERR_OK);
    const struct sensor_channel *energy = channel_of(&f->s, "energy");
    assert_int_equal(energy->quantity, QTY_ENERGY);
    assert_int_equal(energy->scope, SCOPE_GPU);
    assert_near(energy->joules_per_count, 1e-6, 0);
    struct observation o = sensing_observe(&f->s, "energy");
    assert_int_equal(o.missing, ERR_OK);
    assert_true(o.count == UINT64_MAX);

    /* A second card; its package is part of it, its power a cross-check of its counter. */
    assert_int_equal(sensing_start(&f->s, "hwmon", "hwmon:xe0"), ERR_OK);
    assert_string_equal(channel_of(&f->s, "card")->device, "gpu1");
    assert_int_equal(channel_of(&f->s, "card")->scope, SCOPE_GPU);
    assert_false(channel_of(&f->s, "card")->secondary);
    assert_int_equal(channel_of(&f->s, "pkg")->scope, SCOPE_NONE);
    assert_int_equal(channel_of(&f->s, "power1")->scope, SCOPE_GPU);
    assert_true(channel_of(&f->s, "power1")->secondary);
}

static void amd_sockets_are_packages_and_cores_are_ignored(void **state)
{
    struct fixture *f = *state;
    board_chip(&f->tree, 0, "amd_energy");
    for (unsigned i = 1; i <= 34; i++) {
        char file[32], text[32];
        snprintf(file, sizeof file, "energy%u_input", i);
        snprintf(text, sizeof text, "%u000", i);
        board_attribute(&f->tree, 0, file, text);
        snprintf(file, sizeof file, "energy%u_label", i);
        if (i <= 32)
            snprintf(text, sizeof text, "Ecore%03u", i - 1);
        else
            snprintf(text, sizeof text, "Esocket%u", i - 33);
        board_attribute(&f->tree, 0, file, text);
    }
    assert_int_equal(sensing_start(&f->s, "hwmon", "hwmon:amd_energy0"), ERR_OK);
    assert_int_equal(f->s.sensor.channel_count, 2);
    assert_int_equal(channel_of(&f->s, "Esocket1")->scope, SCOPE_PACKAGE);
    assert_int_equal(channel_of(&f->s, "Esocket1")->location, 1);
    assert_string_equal(channel_of(&f->s, "Esocket0")->device, "cpu0");
    assert_true(sensing_observe(&f->s, "Esocket1").count == 34000);
}

static void a_power_supply_is_the_node_and_its_rails_are_not_added(void **state)
{
    struct fixture *f = *state;
    board_chip(&f->tree, 0, "corsairpsu");
    board_attribute(&f->tree, 0, "power1_input", "354000000");
    board_attribute(&f->tree, 0, "power1_label", "power total");
    board_attribute(&f->tree, 0, "power2_input", "320000000");
    board_attribute(&f->tree, 0, "power2_label", "power +12v");
    board_chip(&f->tree, 1, "nvme"); /* no meter: no finding */
    board_attribute(&f->tree, 1, "temp1_input", "40000");
    const struct sensor_finding *finding = sensing_only(&f->s, "hwmon");
    assert_string_equal(finding->id, "hwmon:corsairpsu0");
    assert_string_equal(finding->measures, "power");
    assert_int_equal(sensing_open(&f->s, "hwmon:corsairpsu0"), ERR_OK);
    assert_int_equal(channel_of(&f->s, "power total")->scope, SCOPE_NODE);
    assert_int_equal(channel_of(&f->s, "power +12v")->scope, SCOPE_NONE);
    assert_near(sensing_value(&f->s, "power total"), 354, 1e-9);
}

static void an_unknown_meter_is_shown_and_never_summed(void **state)
{
    struct fixture *f = *state;
    board_chip(&f->tree, 0, "BAT0");
    board_attribute(&f->tree, 0, "power1_input", "9500000");
    assert_int_equal(sensing_start(&f->s, "hwmon", "hwmon:BAT0.0"), ERR_OK);
    assert_int_equal(channel_of(&f->s, "power")->scope, SCOPE_NONE);
    assert_near(sensing_value(&f->s, "power"), 9.5, 1e-9);
}

static void a_jetsons_monitors_are_left_to_its_driver(void **state)
{
    struct fixture *f = *state;
    board_jetson_orin_nano(&f->tree);
    board_attribute(&f->tree, 1, "power1_input", "6000000");
    assert_int_equal(sensing_only(&f->s, "hwmon")->status, SENSOR_ABSENT);
}

static void an_empty_machine_is_absent_with_a_reason(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(sensing_only(&f->s, "hwmon")->status, SENSOR_ABSENT);
    assert_true(sensing_only(&f->s, "hwmon")->reason[0]);
    board_chip(&f->tree, 0, "nvme");
    board_attribute(&f->tree, 0, "temp1_input", "40000");
    assert_int_equal(sensing_only(&f->s, "hwmon")->status, SENSOR_ABSENT);
    assert_true(sensing_only(&f->s, "hwmon")->reason[0]);
    /* A meter with an invalid value is found, but unusable. */
    board_chip(&f->tree, 1, "power_meter");
    board_attribute(&f->tree, 1, "power1_average", "n/a");
    assert_int_equal(sensing_only(&f->s, "hwmon")->status, SENSOR_UNSUPPORTED);
    assert_non_null(strstr(sensing_only(&f->s, "hwmon")->reason, "power1_average"));
}

static void invalid_files_are_missing_never_zero(void **state)
{
    struct fixture *f = *state;
    static const char *const BAD[] = {"", "\n", "abc\n", "-5\n", "1 2\n", "99999999999999999999\n"};
    board_chip(&f->tree, 0, "power_meter");
    board_attribute(&f->tree, 0, "power1_average", "412000000");
    board_chip(&f->tree, 1, "i915");
    board_attribute(&f->tree, 1, "energy1_input", "1");
    struct sensing energy = {0};
    assert_int_equal(sensing_start(&f->s, "hwmon", "hwmon:power_meter0"), ERR_OK);
    assert_int_equal(sensing_start(&energy, "hwmon", "hwmon:i915.0"), ERR_OK);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        tree_write(&f->tree, "/sys/class/hwmon/hwmon0/power1_average", "%s", BAD[i]);
        tree_write(&f->tree, "/sys/class/hwmon/hwmon1/energy1_input", "%s", BAD[i]);
        assert_int_equal(sensing_observe(&f->s, "power").missing, ERR_BAD_VALUE);
        assert_int_equal(sensing_observe(&energy, "energy").missing, ERR_BAD_VALUE);
    }
    board_attribute(&f->tree, 0, "power1_average", "1000000");
    assert_near(sensing_value(&f->s, "power"), 1, 1e-9); /* and it recovers */
    sensing_release(&energy);
}

static void a_renumbered_chip_is_found_again_by_its_name(void **state)
{
    struct fixture *f = *state;
    board_chip(&f->tree, 3, "i915");
    board_attribute(&f->tree, 3, "energy1_input", "1");
    assert_string_equal(sensing_only(&f->s, "hwmon")->id, "hwmon:i915.0");
    tree_remove(&f->tree, "/sys/class/hwmon/hwmon3");
    assert_int_equal(sensing_open(&f->s, "hwmon:i915.0"), ERR_NOT_FOUND);
    assert_non_null(strstr(f->s.why.text, "hwmon:i915.0"));
    board_chip(&f->tree, 9, "i915");
    board_attribute(&f->tree, 9, "energy1_input", "2");
    assert_int_equal(sensing_open(&f->s, "hwmon:i915.0"), ERR_OK);
    assert_true(sensing_observe(&f->s, "energy").count == 2);
}

static int denied_as_nobody(void *argument)
{
    struct sensing *s = argument;
    sensing_probe(s, "hwmon");
    const struct sensor_finding *finding = sensing_find(s, "hwmon:power_meter0");
    bool ok = finding && finding->status == SENSOR_DENIED && finding->reason[0] &&
              strstr(finding->fix, "chmod a+r /sys/class/hwmon/hwmon0/power1_average");
    ok = ok && sensing_open(s, "hwmon:power_meter0") == ERR_DENIED && s->why.text[0];
    return ok ? 0 : 1;
}

static void denied_files_are_reported_with_the_fix(void **state)
{
    struct fixture *f = *state;
    board_chip(&f->tree, 0, "power_meter");
    board_attribute(&f->tree, 0, "power1_average", "412000000");
    tree_mode(&f->tree, "", 0755);
    tree_mode(&f->tree, "/sys/class/hwmon/hwmon0/power1_average", 0);
    assert_int_equal(as_nobody(denied_as_nobody, &f->s), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(grace_meters_have_their_scope_and_socket),
        FIXTURE_TEST(grace_without_its_meters_says_how_to_fix_it),
        FIXTURE_TEST(an_unlabeled_acpi_meter_is_the_node),
        FIXTURE_TEST(an_amd_gpu_has_its_index_and_bus),
        FIXTURE_TEST(integrated_graphics_are_the_package),
        FIXTURE_TEST(only_the_selected_gpus_are_read),
        FIXTURE_TEST(energy_counters_are_passed_on_unscaled),
        FIXTURE_TEST(amd_sockets_are_packages_and_cores_are_ignored),
        FIXTURE_TEST(a_power_supply_is_the_node_and_its_rails_are_not_added),
        FIXTURE_TEST(an_unknown_meter_is_shown_and_never_summed),
        FIXTURE_TEST(a_jetsons_monitors_are_left_to_its_driver),
        FIXTURE_TEST(an_empty_machine_is_absent_with_a_reason),
        FIXTURE_TEST(invalid_files_are_missing_never_zero),
        FIXTURE_TEST(a_renumbered_chip_is_found_again_by_its_name),
        FIXTURE_TEST(denied_files_are_reported_with_the_fix),
    };
    return RUN_TESTS(tests);
}
