/* test: tsan, valgrind */
/* The amdsmi driver through its real loading path, against the fake AMD SMI and ROCm SMI. */
#include "support/unit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "port/fs.h"
#include "sensors/registry.h"
#include "support/tree.h"

#define AMDSMI  IPW_FAKES "/libfake_amdsmi.so"
#define ROCMSMI IPW_FAKES "/libfake_rocmsmi.so"

#define MI300                                                                                      \
    "energy 0 1000000000\nwatts 0 420\ncap 0 750000000\njunction 0 61\nedge 0 50\n"                \
    "memory 0 4000000000 206141652992\nbusy 0 97 33\nclock 0 2100 1300\n"                          \
    "unique 0 7f3a9c0000000001\npci 0 0000:0c:00.0\n"

static struct tree machine;

/* Rewrites the script of the fake libraries. */
static void script(const char *text)
{
    tree_write(&machine, "/script", "%s", text);
}

static int set_up(void **state)
{
    (void)state;
    char path[200];
    tree_new(&machine);
    snprintf(path, sizeof path, "%s/script", machine.root);
    setenv("IPW_FAKE_AMD", path, 1);
    setenv("IPW_AMDSMI", AMDSMI, 1);
    setenv("IPW_ROCMSMI", "/nonexistent/librocm_smi64.so", 1);
    unsetenv("HIP_VISIBLE_DEVICES");
    unsetenv("ROCR_VISIBLE_DEVICES");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tree_free(&machine);
    return 0;
}

static struct sensor_findings probe(const char *devices)
{
    struct sensor_config config = {.devices = devices};
    struct sensor_findings found = {0};
    sensors_probe(&config, "amdsmi", &found);
    assert_true(found.count > 0);
    return found;
}

/* The ids of all usable findings of a probe, joined by spaces. */
static const char *usable(const char *devices)
{
    static char ids[200];
    struct sensor_findings found = probe(devices);
    ids[0] = '\0';
    for (size_t i = 0; i < found.count; i++)
        if (found.items[i].status == SENSOR_OK)
            snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%s%s", ids[0] ? " " : "",
                     found.items[i].id);
    sensor_findings_release(&found);
    return ids;
}

static struct sensor_finding only_finding(void)
{
    struct sensor_findings found = probe(NULL);
    assert_int_equal(found.count, 1);
    struct sensor_finding finding = found.items[0];
    sensor_findings_release(&found);
    return finding;
}

static void open_index(unsigned index, struct sensor *out)
{
    struct sensor_findings found = probe(NULL);
    assert_true(index < found.count);
    assert_int_equal(found.items[index].status, SENSOR_OK);
    struct error why = {0};
    assert_int_equal(sensor_open(&found.items[index], out, &why), ERR_OK);
    sensor_findings_release(&found);
}

static int channel_named(const struct sensor *sensor, const char *name)
{
    for (size_t i = 0; i < sensor->channel_count; i++)
        if (!strcmp(sensor->channels[i].name, name))
            return (int)i;
    return -1;
}

/* Reads the channel's group and returns its observation. */
static struct observation observe(struct sensor *sensor, const char *name, enum err *result)
{
    struct observation items[SENSOR_CHANNELS_MAX];
    struct observations out = {.items = items, .capacity = SENSOR_CHANNELS_MAX};
    int channel = channel_named(sensor, name);
    assert_true(channel >= 0);
    enum err err = sensor->driver->read(sensor, sensor->channels[channel].group, &out);
    if (result)
        *result = err;
    for (size_t i = 0; i < out.count; i++)
        if (items[i].channel == channel)
            return items[i];
    fail_msg("no observation of %s", name);
    return items[0];
}

static double value(struct sensor *sensor, const char *name)
{
    struct observation o = observe(sensor, name, NULL);
    assert_int_equal(o.missing, 0);
    return o.value;
}

static const char *fact(const struct sensor *sensor, const char *key)
{
    for (size_t i = 0; i < sensor->fact_count; i++)
        if (!strcmp(sensor->facts[i].key, key))
            return sensor->facts[i].text;
    return "";
}

static void quantities_are_in_base_units(void **state)
{
    (void)state;
    script("devices 1\n" MI300);
    struct sensor_finding finding = only_finding();
    assert_string_equal(finding.id, "amdsmi:0");
    assert_string_equal(finding.name, "AMD Instinct MI300X");
    assert_int_equal(finding.kind, SENSOR_GPU);
    assert_string_equal(finding.measures,
                        "energy,power,temperature,memory_used,memory_total,utilisation,"
                        "memory_utilisation,clock,memory_clock,power_limit");
    struct sensor gpu;
    open_index(0, &gpu);
    assert_int_equal(observe(&gpu, "energy", NULL).count, 1000000000);
    assert_near(value(&gpu, "power"), 420, 0);
    assert_near(value(&gpu, "temperature"), 61, 0); /* the junction, not the edge */
    assert_near(value(&gpu, "memory.used"), 4e9, 0);
    assert_near(value(&gpu, "memory.total"), 206141652992.0, 0);
    assert_near(value(&gpu, "utilisation"), 97, 0);
    assert_near(value(&gpu, "utilisation.memory"), 33, 0);
    assert_near(value(&gpu, "clock"), 2100, 0);
    assert_near(value(&gpu, "clock.memory"), 1300, 0);
    assert_near(value(&gpu, "power_limit"), 750, 1e-9);
    assert_string_equal(fact(&gpu, "uuid"), "GPU-7f3a9c0000000001");
    assert_string_equal(fact(&gpu, "pci_bus_id"), "0000:0c:00.0");
    assert_string_equal(fact(&gpu, "library"), "AMD SMI 26.3.0");
    sensor_close(&gpu);
}

static void the_counter_is_primary_and_power_is_the_cross_check(void **state)
{
    (void)state;
    script("devices 1\n" MI300);
    struct sensor gpu;
    open_index(0, &gpu);
    const struct sensor_channel *energy = &gpu.channels[channel_named(&gpu, "energy")];
    const struct sensor_channel *power = &gpu.channels[channel_named(&gpu, "power")];
    assert_near(energy->joules_per_count, 15.3e-6, 1e-12);
    assert_int_equal(energy->wraps_at, 0);
    assert_int_equal(energy->scope, SCOPE_GPU);
    assert_int_equal(energy->location, 0);
    assert_string_equal(energy->device, "gpu0");
    assert_false(energy->secondary);
    assert_true(power->secondary);
    assert_near(energy->watts_max, 2000, 0); /* not the cap, 750 W, which can be raised */
    assert_near(energy->relative_accuracy, 0.0288675, 1e-6);
    assert_int_equal(gpu.group_count, 2);
    assert_true(gpu.groups[0].follow_ticks);
    assert_int_equal(gpu.groups[0].period_default, 100 * NS_PER_MS);
    assert_int_equal(gpu.groups[1].period_default, 500 * NS_PER_MS);
    sensor_close(&gpu);
}

static void a_reading_is_dated_within_the_call(void **state)
{
    (void)state;
    script("devices 1\n" MI300);
    struct sensor gpu;
    open_index(0, &gpu);
    nanos before = clock_now();
    struct observation o = observe(&gpu, "energy", NULL);
    nanos after = clock_now();
    assert_true(before < o.t && o.t < after); /* and not the library's own timestamp */
    sensor_close(&gpu);
}

static void power_is_read_from_each_version_of_the_struct(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        double watts; /* 0: no power channel */
    } CASES[] = {
        {"version 26\ndevices 1\nenergy 0 5\nwatts 0 420\n", 420},
        {"version 26\ndevices 1\nenergy 0 5\naverage 0 90\n", 90},
        {"version 25\ndevices 1\nenergy 0 5\nwatts 0 421\n", 421},
        {"version 25\ndevices 1\nenergy 0 5\naverage 0 91\n", 91},
        {"version 24\ndevices 1\nenergy 0 5\nwatts 0 422\naverage 0 7\n", 422},
        {"version 24\ndevices 1\nenergy 0 5\naverage 0 92\n", 92},
        {"version 23\ndevices 1\nenergy 0 5\nwatts 0 423\naverage 0 93\n", 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        script(CASES[i].script);
        struct sensor gpu;
        open_index(0, &gpu);
        if (CASES[i].watts > 0)
            assert_near(value(&gpu, "power"), CASES[i].watts, 0);
        else
            assert_int_equal(channel_named(&gpu, "power"), -1);
        assert_int_equal(observe(&gpu, "energy", NULL).count, 5);
        sensor_close(&gpu);
    }
}

/* Integrated graphics report package power: the same joules as RAPL's. */
static void integrated_graphics_are_the_package(void **state)
{
    (void)state;
    tree_write(&machine, "/sys/devices/pci0000:00/0000:c5:00.0/vendor", "0x1002\n");
    tree_write(&machine, "/sys/class/hwmon/hwmon3/name", "amdgpu\n");
    tree_write(&machine, "/sys/class/hwmon/hwmon3/in1_label", "vddnb\n");
    tree_link(&machine, "/sys/class/hwmon/hwmon3/device",
              "../../../devices/pci0000:00/0000:c5:00.0");
    script("devices 2\nenergy * 900\nwatts * 20\npci 0 0000:c5:00.0\npci 1 0000:03:00.0\n");
    struct sensor gpu;
    open_index(0, &gpu);
    assert_int_equal(gpu.channels[0].scope, SCOPE_PACKAGE);
    assert_int_equal(gpu.channels[0].location, -1);
    sensor_close(&gpu);
    open_index(1, &gpu);
    assert_int_equal(gpu.channels[0].scope, SCOPE_GPU);
    assert_int_equal(gpu.channels[0].location, 1);
    sensor_close(&gpu);
}

static void older_units_and_missing_gauges_are_handled(void **state)
{
    (void)state;
    /* A cap in watts, a temperature in m°C at the edge only, no clocks. */
    script("version 24\ndevices 1\nenergy 0 5\nwatts 0 100\ncap 0 560\nedge 0 48500\n"
           "error get_clock_info * 2\n");
    struct sensor gpu;
    open_index(0, &gpu);
    assert_near(value(&gpu, "power_limit"), 560, 0);
    assert_near(value(&gpu, "temperature"), 48.5, 1e-9);
    assert_int_equal(channel_named(&gpu, "clock"), -1);
    assert_int_equal(channel_named(&gpu, "clock.memory"), -1);
    assert_near(gpu.channels[0].watts_max, 2000, 0);
    sensor_close(&gpu);
    script("devices 1\nenergy 0 5\nwatts 0 100\n");
    open_index(0, &gpu);
    assert_int_equal(channel_named(&gpu, "power_limit"), -1);
    assert_int_equal(channel_named(&gpu, "temperature"), -1);
    assert_near(gpu.channels[0].watts_max, 2000, 0);
    sensor_close(&gpu);
}

static void a_guest_without_a_counter_integrates_power(void **state)
{
    (void)state;
    script("devices 1\nwatts 0 300\nerror get_energy_count 0 2\n");
    struct sensor gpu;
    open_index(0, &gpu);
    assert_int_equal(channel_named(&gpu, "energy"), -1);
    assert_false(gpu.channels[channel_named(&gpu, "power")].secondary);
    assert_near(value(&gpu, "power"), 300, 0);
    sensor_close(&gpu);
}

/* A counter at 0 has never counted. */
static void a_counter_at_zero_is_not_zero_joules(void **state)
{
    (void)state;
    script("devices 1\nenergy 0 0\nwatts 0 300\n");
    struct sensor gpu;
    open_index(0, &gpu);
    assert_int_equal(channel_named(&gpu, "energy"), -1);
    assert_false(gpu.channels[channel_named(&gpu, "power")].secondary);
    sensor_close(&gpu);
    script("devices 1\nenergy 0 0\nwatts 0 0\n");
    assert_int_equal(only_finding().status, SENSOR_UNSUPPORTED);
}

static void the_second_die_refers_to_the_first(void **state)
{
    (void)state;
    script("devices 4\nname * AMD Instinct MI250X\nenergy * 7000\nwatts * 89\nmi250\n");
    struct sensor_findings found = probe(NULL);
    assert_int_equal(found.count, 4);
    for (unsigned i = 0; i < 4; i += 2) {
        char reason[64];
        snprintf(reason, sizeof reason, "energy is reported on amdsmi:%u", i);
        assert_int_equal(found.items[i].status, SENSOR_OK);
        assert_int_equal(found.items[i + 1].status, SENSOR_UNSUPPORTED);
        assert_string_equal(found.items[i + 1].reason, reason);
        assert_string_equal(found.items[i + 1].measures, "");
    }
    sensor_findings_release(&found);
    struct sensor gpu;
    open_index(2, &gpu);
    assert_string_equal(fact(&gpu, "covers"), "amdsmi:2 to amdsmi:3");
    sensor_close(&gpu);
    /* The same where counter and power of the odd die are "not supported" rather than 0. */
    script("devices 2\nname * AMD Instinct MI250X\nenergy 0 7000\nwatts 0 89\n"
           "error get_energy_count 1 2\nerror get_power_info 1 2\n");
    assert_string_equal(usable(NULL), "amdsmi:0");
    /* Two different cards are not a pair: the second is unsupported by itself. */
    script("devices 2\nname 1 AMD Radeon\nenergy 0 7000\nwatts 0 89\nwatts 1 0\n");
    found = probe(NULL);
    assert_int_equal(found.items[1].status, SENSOR_UNSUPPORTED);
    assert_null(strstr(found.items[1].reason, "amdsmi:0"));
    sensor_findings_release(&found);
}

static void partitions_of_a_card_are_counted_once(void **state)
{
    (void)state;
    script("devices 3\nenergy * 900\nwatts * 500\npci 0 0000:0c:00.0\npci 1 0000:0c:00.1\n"
           "pci 2 0000:22:00.0\n");
    struct sensor_findings found = probe(NULL);
    assert_string_equal(found.items[1].reason, "energy is reported on amdsmi:0");
    sensor_findings_release(&found);
    assert_string_equal(usable(NULL), "amdsmi:0 amdsmi:2");
}

static void visible_devices_are_respected(void **state)
{
    (void)state;
    script("devices 4\nenergy * 900\nwatts * 500\nunique 0 a0\nunique 1 a1\nunique 2 a2\n"
           "unique 3 a3\n");
    static const struct {
        const char *devices, *rocr, *hip, *usable;
    } CASES[] = {
        {NULL, NULL, NULL, "amdsmi:0 amdsmi:1 amdsmi:2 amdsmi:3"},
        {NULL, NULL, "2", "amdsmi:2"},
        {NULL, NULL, " 3 , 0 ", "amdsmi:0 amdsmi:3"},
        {NULL, NULL, "1,-1,2", "amdsmi:1"},
        {NULL, NULL, "", ""},
        {NULL, "GPU-00000000000000a3,1", NULL, "amdsmi:1 amdsmi:3"},
        {NULL, "GPU-00000000000000a3,1", "0",
         "amdsmi:3"}, /* HIP indices are relative to ROCr's selection */
        {NULL, "3", "1", ""},
        {NULL, "", NULL, ""},
        {"1,2", "3", "0", "amdsmi:1 amdsmi:2"}, /* the user's option overrides it */
        {"GPU-a2", NULL, NULL, "amdsmi:2"},
        {"GPU-7777,GPU-a0,9", NULL, NULL, "amdsmi:0"}, /* other ids may belong to another driver */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        unsetenv("ROCR_VISIBLE_DEVICES");
        unsetenv("HIP_VISIBLE_DEVICES");
        if (CASES[i].rocr)
            setenv("ROCR_VISIBLE_DEVICES", CASES[i].rocr, 1);
        if (CASES[i].hip)
            setenv("HIP_VISIBLE_DEVICES", CASES[i].hip, 1);
        assert_string_equal(usable(CASES[i].devices), CASES[i].usable);
    }
    assert_int_equal(setenv("HIP_VISIBLE_DEVICES", "7", 1), 0);
    struct sensor_finding none = only_finding();
    assert_int_equal(none.status, SENSOR_ABSENT);
    assert_non_null(strstr(none.reason, "HIP_VISIBLE_DEVICES"));
}

static void hip_indices_may_be_in_another_order(void **state)
{
    (void)state;
    script("devices 2\nenergy * 900\nwatts * 500\nhip 0 1\nhip 1 0\n");
    setenv("HIP_VISIBLE_DEVICES", "0", 1);
    assert_string_equal(usable(NULL), "amdsmi:1");
    assert_string_equal(usable("0"), "amdsmi:0");
}

static void old_libraries_get_the_unique_id_from_the_kernel(void **state)
{
    (void)state;
    script("version 24\ndevices 1\n" MI300);
    tree_write(&machine, "/sys/bus/pci/devices/0000:0c:00.0/unique_id", "00000000000beef1\n");
    struct sensor gpu;
    open_index(0, &gpu);
    assert_string_equal(fact(&gpu, "uuid"), "GPU-00000000000beef1");
    sensor_close(&gpu);
}

static void only_gpus_are_devices(void **state)
{
    (void)state;
    script("devices 2\nenergy * 900\nwatts * 500\ntype 0 2\n");
    assert_string_equal(usable(NULL), "amdsmi:0"); /* the second processor is the first GPU */
    script("devices 0\n");
    struct sensor_finding none = only_finding();
    assert_int_equal(none.status, SENSOR_ABSENT);
    assert_string_equal(none.id, "amdsmi");
    assert_string_equal(none.reason, "no AMD GPU");
}

static void absence_and_denial_say_how_to_fix_them(void **state)
{
    (void)state;
    setenv("IPW_AMDSMI", "/nonexistent/libamd_smi.so", 1);
    struct sensor_finding none = only_finding();
    assert_int_equal(none.status, SENSOR_ABSENT);
    assert_non_null(strstr(none.reason, "neither AMD SMI nor ROCm SMI"));
    assert_non_null(strstr(none.reason, "/nonexistent/libamd_smi.so"));

    assert_string_equal(none.fix, ""); /* no AMD GPU according to the kernel */
    tree_write(&machine, "/sys/module/amdgpu/version", "6.12\n");
    none = only_finding();
    assert_int_equal(none.status, SENSOR_ABSENT);
    assert_non_null(strstr(none.fix, "librocm-smi64"));

    setenv("IPW_AMDSMI", AMDSMI, 1);
    script("devices 1\nerror init * 10\n" MI300);
    none = only_finding();
    assert_int_equal(none.status, SENSOR_DENIED);
    assert_non_null(strstr(none.fix, "usermod -aG render,video"));

    script("devices 1\n" MI300 "error get_energy_count 0 10\nerror get_power_info 0 10\n");
    none = only_finding();
    assert_string_equal(none.id, "amdsmi:0");
    assert_int_equal(none.status, SENSOR_DENIED);
    assert_non_null(strstr(none.fix, "usermod -aG render,video"));

    script("devices 1\nerror init * 34\n"); /* the driver is not loaded */
    assert_int_equal(only_finding().status, SENSOR_ABSENT);
    script("devices 1\nerror init * 16\n"); /* a C++ exception inside */
    assert_int_equal(only_finding().status, SENSOR_UNSUPPORTED);
}

static void without_the_kernel_driver_no_library_is_loaded(void **state)
{
    (void)state;
    unsetenv("IPW_AMDSMI");
    unsetenv("IPW_ROCMSMI");
    struct sensor_finding none = only_finding();
    assert_int_equal(none.status, SENSOR_ABSENT);
    assert_non_null(strstr(none.reason, "amdgpu"));
}

static void rocm_smi_is_the_fallback(void **state)
{
    (void)state;
    static const char *const SCRIPTS[] = {
        "version 5\ndevices 1\n" MI300 "average 0 420\njunction 0 61000\n",
        "version 7\ndevices 1\n" MI300 "junction 0 61000\n",
    };
    setenv("IPW_AMDSMI", "/nonexistent/libamd_smi.so", 1);
    setenv("IPW_ROCMSMI", ROCMSMI, 1);
    for (size_t i = 0; i < 2; i++) {
        script(SCRIPTS[i]);
        struct sensor gpu;
        open_index(0, &gpu);
        assert_string_equal(gpu.name, "AMD Instinct MI300X");
        assert_int_equal(observe(&gpu, "energy", NULL).count, 1000000000);
        assert_near(gpu.channels[0].joules_per_count, 15.3e-6, 1e-12);
        assert_near(value(&gpu, "power"), 420, 1e-9);
        assert_near(value(&gpu, "power_limit"), 750, 1e-9);
        assert_near(value(&gpu, "temperature"), 61, 1e-9);
        assert_near(value(&gpu, "memory.used"), 4e9, 0);
        assert_near(value(&gpu, "utilisation"), 97, 0);
        assert_near(value(&gpu, "utilisation.memory"), 33, 0);
        assert_near(value(&gpu, "clock"), 2100, 1e-9);
        assert_near(value(&gpu, "clock.memory"), 1300, 1e-9);
        assert_string_equal(fact(&gpu, "uuid"), "GPU-7f3a9c0000000001");
        assert_string_equal(fact(&gpu, "pci_bus_id"), "0000:0c:00.0");
        assert_string_equal(fact(&gpu, "library"), i ? "ROCm SMI 7.0.1" : "ROCm SMI 5.0.1");
        sensor_close(&gpu);
    }
}

static void rocm_smi_replaces_an_amd_smi_that_fails(void **state)
{
    (void)state;
    /* init fails in both with one script, so this AMD SMI lacks a required symbol. */
    setenv("IPW_AMDSMI", ROCMSMI, 1);
    setenv("IPW_ROCMSMI", ROCMSMI, 1);
    script("version 7\ndevices 2\nname * AMD Instinct MI250X\nenergy * 7000\nwatts * 89\nmi250\n");
    assert_string_equal(usable(NULL), "amdsmi:0");
    script("version 7\ndevices 1\n" MI300 "error dev_energy_count_get 0 4\n"
           "error dev_power_get 0 4\n");
    assert_int_equal(only_finding().status, SENSOR_DENIED);
}

static void a_failing_call_is_missing_and_the_rest_is_read(void **state)
{
    (void)state;
    static const struct {
        unsigned status;
        enum err err;
    } CASES[] = {{2, ERR_UNSUPPORTED}, {3, ERR_UNSUPPORTED},  {8, ERR_TIMEOUT}, {9, ERR_BUSY},
                 {10, ERR_DENIED},     {11, ERR_INTERRUPTED}, {12, ERR_IO},     {15, ERR_NO_MEMORY},
                 {30, ERR_BUSY},       {31, ERR_LOST},        {34, ERR_LOST},   {40, ERR_BAD_VALUE},
                 {4294967295u, ERR_IO}};
    script("devices 1\n" MI300);
    struct sensor gpu;
    open_index(0, &gpu);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char text[600];
        snprintf(text, sizeof text, "devices 1\n" MI300 "error get_energy_count 0 %u\n",
                 CASES[i].status);
        script(text);
        enum err result;
        struct observation o = observe(&gpu, "energy", &result);
        assert_int_equal(o.missing, CASES[i].err);
        assert_int_equal(result, ERR_OK); /* power still came */
        assert_near(value(&gpu, "power"), 420, 0);
    }
    sensor_close(&gpu);
}

static void a_lost_card_becomes_available_again(void **state)
{
    (void)state;
    static const unsigned STATUSES[] = {
        31, 2}; /* not found; or what a read of vanished sysfs files gives */
    for (size_t i = 0; i < 2; i++) {
        script("devices 1\n" MI300);
        struct sensor_finding finding = only_finding();
        struct sensor gpu;
        struct error why;
        enum err result;
        char text[600];
        open_index(0, &gpu);
        snprintf(text, sizeof text,
                 "devices 1\n" MI300 "error get_energy_count 0 %u\nerror get_power_info 0 %u\n",
                 STATUSES[i], STATUSES[i]);
        script(text);
        observe(&gpu, "energy", &result);
        assert_int_equal(result, ERR_LOST);
        sensor_close(&gpu);
        script("devices 0\n");
        assert_int_equal(sensor_open(&finding, &gpu, &why), ERR_LOST);
        assert_int_equal(why.code, ERR_LOST);
        script("devices 1\n" MI300 "energy 0 77\n");
        assert_int_equal(sensor_open(&finding, &gpu, &why), ERR_OK);
        struct observation o = observe(&gpu, "energy", &result);
        assert_int_equal(result, ERR_OK);
        assert_int_equal(o.count, 77);
        sensor_close(&gpu);
    }
}

/* A busy counter at open must not make power the primary channel for the whole run. */
static void a_busy_counter_delays_the_opening(void **state)
{
    (void)state;
    script("devices 1\n" MI300);
    struct sensor_finding finding = only_finding();
    struct sensor gpu;
    struct error why = {0};
    script("devices 1\n" MI300 "error get_energy_count 0 30\n");
    assert_int_equal(sensor_open(&finding, &gpu, &why), ERR_BUSY);
    assert_non_null(strstr(why.text, "amdsmi:0"));
}

/* Passed on unchanged: the timeline detects a reset. */
static void a_decreasing_count_is_passed_on(void **state)
{
    (void)state;
    script("devices 1\n" MI300 "backwards 0 1000\n");
    struct sensor gpu;
    open_index(0, &gpu);
    uint64_t first = observe(&gpu, "energy", NULL).count;
    assert_int_equal(observe(&gpu, "energy", NULL).count, first - 1000);
    sensor_close(&gpu);
}

static void the_library_is_opened_once_and_closed(void **state)
{
    (void)state;
    void *library = dlopen(AMDSMI, RTLD_NOW | RTLD_LOCAL); /* keeps the library loaded */
    assert_non_null(library);
    int (*live)(void);
    void *address = dlsym(library, "fake_live");
    memcpy(&live, &address, sizeof live);
    script("devices 2\n" MI300 "energy 1 5\nwatts 1 9\n");
    struct sensor a, b;
    open_index(0, &a);
    open_index(1, &b);
    assert_int_equal(live(), 1);
    sensor_close(&a);
    assert_int_equal(live(), 1);
    sensor_close(&b);
    sensor_close(&b); /* closed already: nothing to free */
    assert_int_equal(live(), 0);
    script("devices 1\nerror get_socket_handles * 16\n");
    assert_int_equal(only_finding().status, SENSOR_UNSUPPORTED);
    assert_int_equal(live(), 0);
    dlclose(library);
}

static void *reopen_and_read(void *argument)
{
    const struct sensor_finding *finding = argument;
    struct error why;
    uint64_t backwards = 0;
    for (int round = 0; round < 20; round++) {
        struct sensor gpu;
        uint64_t last = 0;
        if (sensor_open(finding, &gpu, &why))
            return "open failed";
        for (int i = 0; i < 20; i++) {
            struct observation items[SENSOR_CHANNELS_MAX];
            struct observations out = {.items = items, .capacity = SENSOR_CHANNELS_MAX};
            if (gpu.driver->read(&gpu, 0, &out) || out.count != 2)
                return "read failed";
            backwards += items[0].count < last;
            last = items[0].count;
        }
        sensor_close(&gpu);
    }
    return backwards ? "a count went back" : NULL;
}

static void library_calls_of_threads_are_serialized(void **state)
{
    (void)state;
    void *library = dlopen(AMDSMI, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    int (*races)(void);
    void *address = dlsym(library, "fake_races");
    memcpy(&races, &address, sizeof races);
    script("devices 2\nenergy * 1000000\nwatts * 300\nmoving *\n");
    struct sensor_findings found = probe(NULL);
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reopen_and_read, &found.items[i]), 0);
    for (size_t i = 0; i < 2; i++) {
        void *complaint;
        pthread_join(threads[i], &complaint);
        assert_null(complaint);
    }
    assert_int_equal(races(), 0);
    sensor_findings_release(&found);
    dlclose(library);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(quantities_are_in_base_units),
        TEST(the_counter_is_primary_and_power_is_the_cross_check),
        TEST(a_reading_is_dated_within_the_call),
        TEST(power_is_read_from_each_version_of_the_struct),
        TEST(older_units_and_missing_gauges_are_handled),
        TEST(integrated_graphics_are_the_package),
        TEST(a_guest_without_a_counter_integrates_power),
        TEST(a_counter_at_zero_is_not_zero_joules),
        TEST(the_second_die_refers_to_the_first),
        TEST(partitions_of_a_card_are_counted_once),
        TEST(visible_devices_are_respected),
        TEST(hip_indices_may_be_in_another_order),
        TEST(old_libraries_get_the_unique_id_from_the_kernel),
        TEST(only_gpus_are_devices),
        TEST(absence_and_denial_say_how_to_fix_them),
        TEST(without_the_kernel_driver_no_library_is_loaded),
        TEST(rocm_smi_is_the_fallback),
        TEST(rocm_smi_replaces_an_amd_smi_that_fails),
        TEST(a_failing_call_is_missing_and_the_rest_is_read),
        TEST(a_lost_card_becomes_available_again),
        TEST(a_busy_counter_delays_the_opening),
        TEST(a_decreasing_count_is_passed_on),
        TEST(the_library_is_opened_once_and_closed),
        TEST(library_calls_of_threads_are_serialized),
    };
    return RUN_TESTS(tests);
}
