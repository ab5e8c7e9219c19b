/* test: valgrind */
/* The channels of an NVIDIA card and their values, through the fake library. */
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "sensors/registry.h"
#include "support/nvml_fake.h"

#define NO_ENERGY  "fail nvmlDeviceGetTotalEnergyConsumption * 3\n"
#define NO_SAMPLES "fail nvmlDeviceGetSamples * 3\n"

static void open_card(struct sensor *sensor)
{
    assert_int_equal(nvml_fake_open("nvml:0", sensor), ERR_OK);
}

/* Reads a channel's group and returns its only value. */
static double value_of(struct sensor *sensor, const char *name)
{
    assert_int_equal(nvml_fake_read(sensor, name), ERR_OK);
    const struct observation *o = nvml_fake_get(sensor, name, 0);
    assert_non_null(o);
    assert_int_equal(o->missing, ERR_OK);
    return o->value;
}

static void each_gpu_is_a_finding(void **state)
{
    (void)state;
    nvml_fake_script("devices 2\nname 1 NVIDIA L4\n");
    assert_int_equal(nvml_fake_probe(NULL)->count, 2);
    const struct sensor_finding *first = nvml_fake_finding("nvml:0");
    assert_string_equal(first->name, "NVIDIA H200");
    assert_int_equal(first->status, SENSOR_OK);
    assert_int_equal(first->kind, SENSOR_GPU);
    assert_string_equal(first->reason, "");
    assert_string_equal(first->measures,
                        "energy,power,temperature,memory_used,memory_total,utilisation,"
                        "memory_utilisation,clock,memory_clock,power_limit,throttle,"
                        "tensor_utilisation,sm_active,sm_occupancy,dram_active,fp64_active,"
                        "fp32_active,fp16_active");
    assert_string_equal(nvml_fake_finding("nvml:1")->name, "NVIDIA L4");
    assert_int_not_equal(first->key, nvml_fake_finding("nvml:1")->key);
}

static void a_full_card_has_every_channel(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum quantity quantity;
        enum scope scope;
        unsigned group;
        bool secondary;
    } EXPECTED[] = {
        {"energy", QTY_ENERGY, SCOPE_GPU, 0, false},
        {"power.samples", QTY_POWER, SCOPE_GPU, 2, true},
        {"power.instant", QTY_POWER, SCOPE_GPU, 1, true},
        {"power.average", QTY_POWER, SCOPE_GPU, 1, true},
        {"power.memory", QTY_POWER, SCOPE_GPU_MEMORY, 1, false},
        {"temperature", QTY_TEMPERATURE, SCOPE_NONE, 3, false},
        {"memory.used", QTY_MEMORY_USED, SCOPE_NONE, 3, false},
        {"memory.total", QTY_MEMORY_TOTAL, SCOPE_NONE, 3, false},
        {"utilisation", QTY_UTILIZATION, SCOPE_NONE, 3, false},
        {"utilisation.memory", QTY_MEMORY_UTILIZATION, SCOPE_NONE, 3, false},
        {"utilisation.tensor", QTY_TENSOR_UTILIZATION, SCOPE_NONE, 4, false},
        {"gpm.sm", QTY_SM_ACTIVE, SCOPE_NONE, 4, false},
        {"gpm.occupancy", QTY_SM_OCCUPANCY, SCOPE_NONE, 4, false},
        {"gpm.dram", QTY_DRAM_ACTIVE, SCOPE_NONE, 4, false},
        {"gpm.fp64", QTY_FP64_ACTIVE, SCOPE_NONE, 4, false},
        {"gpm.fp32", QTY_FP32_ACTIVE, SCOPE_NONE, 4, false},
        {"gpm.fp16", QTY_FP16_ACTIVE, SCOPE_NONE, 4, false},
        {"clock", QTY_CLOCK, SCOPE_NONE, 3, false},
        {"clock.memory", QTY_MEMORY_CLOCK, SCOPE_NONE, 3, false},
        {"power_limit", QTY_POWER_LIMIT, SCOPE_NONE, 3, false},
        {"throttle", QTY_THROTTLE, SCOPE_NONE, 3, false},
    };
    nvml_fake_script("devices 2\nvalue limit_max_mw 1 700000\n");
    struct sensor sensor;
    assert_int_equal(nvml_fake_open("nvml:1", &sensor), ERR_OK);
    assert_int_equal(sensor.channel_count, sizeof EXPECTED / sizeof *EXPECTED);
    for (size_t i = 0; i < sizeof EXPECTED / sizeof *EXPECTED; i++) {
        const struct sensor_channel *c = channel_named(&sensor, EXPECTED[i].name);
        assert_non_null(c);
        assert_string_equal(c->device, "gpu1");
        assert_int_equal(c->location, 1);
        assert_int_equal(c->quantity, EXPECTED[i].quantity);
        assert_int_equal(c->scope, EXPECTED[i].scope);
        assert_int_equal(c->group, EXPECTED[i].group);
        assert_int_equal(c->secondary, EXPECTED[i].secondary);
        if (c->scope != SCOPE_NONE) {
            assert_near(c->watts_max, 1050, 1e-9);
            assert_near(c->relative_accuracy, 0.05 / sqrt(3), 1e-6);
        }
    }
    assert_near(channel_named(&sensor, "energy")->joules_per_count, 1e-3, 0);
    assert_int_equal(channel_named(&sensor, "energy")->wraps_at, 0);
    sensor_close(&sensor);
}

static void channels_are_grouped_by_the_cost_of_their_calls(void **state)
{
    (void)state;
    struct sensor sensor;
    open_card(&sensor);
    assert_int_equal(sensor.group_count, 5);
    /* The sample buffer gives the shape, so the expensive counter is read once per second. */
    assert_int_equal(sensor.groups[0].period_default, NS_PER_S);
    assert_int_equal(sensor.groups[0].period_min, 50 * NS_PER_MS);
    assert_true(sensor.groups[0].follow_ticks);
    assert_int_equal(sensor.groups[1].period_default, 100 * NS_PER_MS);
    assert_int_equal(sensor.groups[1].period_min, NS_PER_MS);
    assert_false(sensor.groups[1].follow_ticks);
    assert_int_equal(sensor.groups[2].period_default, 500 * NS_PER_MS);
    assert_int_equal(sensor.groups[2].period_min, 40 * NS_PER_MS);
    assert_int_equal(sensor.groups[3].period_default, 500 * NS_PER_MS);
    struct observation items[4];
    struct observations out = {.items = items, .capacity = 4};
    assert_int_equal(sensor.driver->read(&sensor, 5, &out), ERR_USAGE);
    assert_int_equal(out.count, 0);
    sensor_close(&sensor);
}

static void the_counter_counts_millijoules(void **state)
{
    (void)state;
    nvml_fake_script("power 0 constant 250\nenergy_start 0 5000000\n");
    struct sensor sensor;
    open_card(&sensor);
    static const struct {
        double t;
        uint64_t mj;
    } EXPECTED[] = {{12.05, 8000000}, {12.09, 8000000}, {12.1, 8025000}, {20, 10000000}};
    for (size_t i = 0; i < sizeof EXPECTED / sizeof *EXPECTED; i++) {
        nvml_fake_time(EXPECTED[i].t);
        assert_int_equal(nvml_fake_read(&sensor, "energy"), ERR_OK);
        assert_int_equal(nvml_fake_count(&sensor, "energy"), 1);
        const struct observation *o = nvml_fake_get(&sensor, "energy", 0);
        assert_int_equal(o->missing, ERR_OK);
        assert_int_equal(o->count, EXPECTED[i].mj);
        assert_int_equal(o->t, nvml_fake_nanos(EXPECTED[i].t));
    }
    sensor_close(&sensor);
}

static void a_counter_that_restarts_is_passed_on_unchanged(void **state)
{
    (void)state;
    nvml_fake_script("power 0 constant 100\nenergy_start 0 9000000\nenergy_reset 0 15\n");
    struct sensor sensor;
    open_card(&sensor);
    nvml_fake_time(16);
    assert_int_equal(nvml_fake_read(&sensor, "energy"), ERR_OK);
    assert_int_equal(nvml_fake_get(&sensor, "energy", 0)->count, 100000);
    sensor_close(&sensor);
}

static void power_fields_are_distinguished(void **state)
{
    (void)state;
    nvml_fake_script("power 0 steps 0:100 20:300\nmemory_share 0 0.2\n");
    struct sensor sensor;
    open_card(&sensor);
    nvml_fake_time(20.15); /* published at 20.1: 25 ms of 300 W; a second with 0.1 s of 300 W */
    assert_near(value_of(&sensor, "power.instant"), 300, 1e-3);
    assert_near(nvml_fake_get(&sensor, "power.average", 0)->value, 120, 1e-3);
    assert_near(nvml_fake_get(&sensor, "power.memory", 0)->value, 60, 1e-3);
    assert_int_equal(nvml_fake_get(&sensor, "power.instant", 0)->t, nvml_fake_nanos(20.15));
    sensor_close(&sensor);
}

static void values_of_every_type_are_converted(void **state)
{
    (void)state;
    static const char *const TYPES[] = {"double",   "uint", "ulong", "ulonglong",
                                        "longlong", "int",  "ushort"};
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        nvml_fake_script("power 0 constant 50\ntype fields %s\ntype samples %s\n", TYPES[i],
                         TYPES[i]);
        struct sensor sensor;
        open_card(&sensor);
        assert_near(value_of(&sensor, "power.instant"), 50, 1e-9);
        nvml_fake_time(10.5 + (double)i);
        assert_near(value_of(&sensor, "power.samples"), 50, 1e-9);
        sensor_close(&sensor);
    }
}

static void slow_readings_are_in_base_units(void **state)
{
    (void)state;
    nvml_fake_script("value temperature 0 61\nvalue memory_used 0 123456789\n"
                     "value memory_total 0 150000000000\nvalue utilisation 0 97\n"
                     "value utilisation_memory 0 33\nvalue clock_sm 0 1785\n"
                     "value clock_memory 0 3201\nvalue limit_mw 0 600000\nvalue throttle 0 4\n");
    static const struct {
        const char *name;
        double value;
    } EXPECTED[] = {
        {"temperature", 61},    {"memory.used", 123456789}, {"memory.total", 150e9},
        {"utilisation", 97},    {"utilisation.memory", 33}, {"clock", 1785},
        {"clock.memory", 3201}, {"power_limit", 600},       {"throttle", THROTTLE_POWER},
    };
    struct sensor sensor;
    open_card(&sensor);
    for (int round = 1; round <= 3; round++) {
        nvml_fake_time(10 + round);
        assert_int_equal(nvml_fake_read(&sensor, "temperature"), ERR_OK);
        for (size_t i = 0; i < sizeof EXPECTED / sizeof *EXPECTED; i++) {
            assert_int_equal(nvml_fake_count(&sensor, EXPECTED[i].name), 1);
            const struct observation *o = nvml_fake_get(&sensor, EXPECTED[i].name, 0);
            assert_int_equal(o->missing, ERR_OK);
            assert_near(o->value, EXPECTED[i].value, 1e-6);
            assert_int_equal(o->t, nvml_fake_nanos(10 + round));
        }
    }
    sensor_close(&sensor);
}

static void activities_are_means_between_samples(void **state)
{
    (void)state;
    nvml_fake_script("value tensor 0 41.5\nvalue sm_util 0 80\nvalue sm_occupancy 0 33\n"
                     "value dram_bandwidth 0 27.5\nvalue fp64_util 0 1\nvalue fp32_util 0 12\n"
                     "value fp16_util 0 100.5\n");
    static const struct {
        const char *name;
        double value;
    } EXPECTED[] = {
        {"utilisation.tensor", 41.5},
        {"gpm.sm", 80},
        {"gpm.occupancy", 33},
        {"gpm.dram", 27.5},
        {"gpm.fp64", 1},
        {"gpm.fp32", 12},
        {"gpm.fp16", 100},
    };
    struct sensor sensor;
    open_card(&sensor);
    /* Too early: only the start of the first mean, once. */
    for (int again = 0; again < 2; again++) {
        nvml_fake_time(0.05);
        assert_int_equal(nvml_fake_read(&sensor, "gpm.sm"), ERR_OK);
        assert_int_equal(nvml_fake_count(&sensor, "gpm.sm"), again == 0);
        if (!again)
            assert_int_equal(nvml_fake_get(&sensor, "gpm.sm", 0)->missing, ERR_NO_DATA);
    }
    for (int round = 1; round <= 3; round++) { /* samples are swapped each time */
        nvml_fake_time(10 + round);
        assert_int_equal(nvml_fake_read(&sensor, "gpm.sm"), ERR_OK);
        for (size_t i = 0; i < sizeof EXPECTED / sizeof *EXPECTED; i++) {
            assert_int_equal(nvml_fake_count(&sensor, EXPECTED[i].name), 1);
            const struct observation *o = nvml_fake_get(&sensor, EXPECTED[i].name, 0);
            assert_int_equal(o->missing, ERR_OK);
            assert_near(o->value, EXPECTED[i].value, 1e-6);
            assert_int_equal(o->t, nvml_fake_nanos(10 + round));
            assert_true(channel_named(&sensor, EXPECTED[i].name)->interval_mean);
        }
    }
    /* Once per second, whatever is requested; windows may request one in between. */
    const struct sensor_group *group = &sensor.groups[channel_named(&sensor, "gpm.sm")->group];
    assert_true(group->fixed_period);
    assert_int_equal(group->period_default, NS_PER_S);
    assert_int_equal(group->period_min, 100 * NS_PER_MS);
    sensor_close(&sensor);
}

static void throttle_reasons_are_mapped(void **state)
{
    (void)state;
    static const struct {
        unsigned theirs, ours;
    } EXPECTED[] = {
        {0x0, 0},
        {0x1, 0}, /* idle is not throttling */
        {0x2, THROTTLE_LIMIT},
        {0x4, THROTTLE_POWER},
        {0x8, THROTTLE_OTHER},
        {0x10, THROTTLE_SYNC},
        {0x20, THROTTLE_THERMAL},
        {0x40 | 0x8, THROTTLE_THERMAL},
        {0x80 | 0x8, THROTTLE_BRAKE},
        {0x100, THROTTLE_LIMIT},
        {0x4 | 0x20, THROTTLE_POWER | THROTTLE_THERMAL},
        {0x1000, THROTTLE_OTHER}, /* a reason of a later driver */
    };
    /* The second iteration is an older driver, which has the older name only. */
    static const char *const OLDER[] = {"", "fail nvmlDeviceGetCurrentClocksEventReasons 0 13\n"};
    for (int older = 0; older < 2; older++) {
        for (size_t i = 0; i < sizeof EXPECTED / sizeof *EXPECTED; i++) {
            nvml_fake_script("%svalue throttle 0 %u\n", OLDER[older], EXPECTED[i].theirs);
            struct sensor sensor;
            open_card(&sensor);
            assert_near(value_of(&sensor, "throttle"), EXPECTED[i].ours, 0);
            sensor_close(&sensor);
        }
    }
}

static void exactly_one_channel_is_primary(void **state)
{
    (void)state;
    static const struct {
        const char *script, *figure;
        size_t groups;
        unsigned group;
    } CASES[] = {
        {"", "energy", 5, 0},
        {NO_ENERGY, "power.samples", 4, 1},
        {NO_ENERGY NO_SAMPLES, "power.instant", 3, 0},
        {NO_ENERGY NO_SAMPLES "fail field:186 * 3\n", "power.average", 3, 0},
        {NO_ENERGY NO_SAMPLES "fail nvmlDeviceGetFieldValues * 13\n", "power.average", 3, 0},
        {NO_ENERGY "fail nvmlDeviceGetSamples * 6\n", "power.instant", 4, 0}, /* an empty buffer */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        nvml_fake_script("power 0 constant 80\n%s", CASES[i].script);
        struct sensor sensor;
        open_card(&sensor);
        int figures = 0;
        for (size_t k = 0; k < sensor.channel_count; k++)
            figures += sensor.channels[k].scope == SCOPE_GPU && !sensor.channels[k].secondary;
        assert_int_equal(figures, 1);
        const struct sensor_channel *figure = channel_named(&sensor, CASES[i].figure);
        assert_non_null(figure);
        assert_false(figure->secondary);
        assert_int_equal(sensor.group_count, CASES[i].groups);
        assert_int_equal(figure->group, CASES[i].group);
        /* A polled value is best read just after it changes. */
        assert_int_equal(sensor.groups[0].follow_ticks, CASES[i].group == 0);
        nvml_fake_time(11 + (double)i);
        if (figure->quantity == QTY_POWER)
            assert_near(value_of(&sensor, CASES[i].figure), 80, 1e-3);
        sensor_close(&sensor);
    }
}

static void module_power_has_module_scope(void **state)
{
    (void)state;
    nvml_fake_script("module 0 yes\npower 0 constant 900\n" NO_ENERGY
                     "fail samples:0 0 3\nfail field:186:0 0 3\nfail field:185:0 0 3\n");
    struct sensor sensor;
    open_card(&sensor);
    assert_int_equal(channel_named(&sensor, "power.samples")->scope, SCOPE_MODULE);
    assert_false(channel_named(&sensor, "power.samples")->secondary);
    assert_int_equal(channel_named(&sensor, "power.instant")->scope, SCOPE_MODULE);
    assert_true(channel_named(&sensor, "power.instant")->secondary);
    assert_int_equal(channel_named(&sensor, "power.average")->scope, SCOPE_MODULE);
    assert_int_equal(channel_named(&sensor, "power.average")->averaging, NS_PER_S);
    assert_int_equal(channel_named(&sensor, "power.instant")->averaging, 0);
    assert_null(channel_named(&sensor, "power.memory"));
    assert_near(value_of(&sensor, "power.instant"), 900, 1e-3);
    nvml_fake_time(10.1);
    assert_near(value_of(&sensor, "power.samples"), 900, 1e-3);
    sensor_close(&sensor);
}

/* A driver that ignores the scope returns the card's power; a card that cannot measure it returns 0. */
static void implausible_memory_power_is_ignored(void **state)
{
    (void)state;
    static const char *const SCRIPTS[] = {"memory_share 0 1\n", "memory_share 0 0\n",
                                          "fail field:186:2 0 3\nfail field:185:2 0 3\n"};
    for (size_t i = 0; i < sizeof SCRIPTS / sizeof *SCRIPTS; i++) {
        nvml_fake_script("%s", SCRIPTS[i]);
        struct sensor sensor;
        open_card(&sensor);
        assert_null(channel_named(&sensor, "power.memory"));
        assert_non_null(channel_named(&sensor, "power.instant"));
        sensor_close(&sensor);
    }
}

/* As on an H200. */
static void memory_power_may_be_only_an_average(void **state)
{
    (void)state;
    nvml_fake_script("power 0 constant 500\nmemory_share 0 0.2\nfail field:186:2 0 3\n");
    struct sensor sensor;
    open_card(&sensor);
    assert_non_null(channel_named(&sensor, "power.memory"));
    assert_int_equal(channel_named(&sensor, "power.memory")->scope, SCOPE_GPU_MEMORY);
    assert_near(value_of(&sensor, "power.memory"), 100, 1e-3);
    sensor_close(&sensor);
}

static void without_samples_every_tick_of_the_counter_is_read(void **state)
{
    (void)state;
    nvml_fake_script("fail nvmlDeviceGetSamples 0 3\n");
    struct sensor sensor;
    open_card(&sensor);
    assert_null(channel_named(&sensor, "power.samples"));
    assert_int_equal(sensor.groups[0].period_default, 100 * NS_PER_MS);
    sensor_close(&sensor);
}

static void unsupported_quantities_have_no_channel(void **state)
{
    (void)state;
    static const struct {
        const char *script, *channel;
    } CASES[] = {
        {"gpm 0 no\n", "utilisation.tensor"},
        {"gpm 0 no\n", "gpm.sm"},
        {"fail nvmlGpmQueryDeviceSupport 0 13\n", "utilisation.tensor"},
        {"fail nvmlGpmSampleGet 0 4\n", "utilisation.tensor"},
        {"fail nvmlDeviceGetTemperature 0 3\n", "temperature"},
        {"fail nvmlDeviceGetMemoryInfo_v2 0 3\n", "memory.used"},
        {"fail nvmlDeviceGetUtilizationRates 0 3\n", "utilisation.memory"},
        {"fail nvmlDeviceGetClockInfo 0 3\n", "clock"},
        {"fail nvmlDeviceGetEnforcedPowerLimit 0 3\n", "power_limit"},
        {"fail nvmlDeviceGetCurrentClocksEventReasons 0 3\n", "throttle"},
        {"fail field:185 0 3\n", "power.average"},
        {NO_SAMPLES, "power.samples"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        nvml_fake_script("%s", CASES[i].script);
        struct sensor sensor;
        open_card(&sensor);
        assert_null(channel_named(&sensor, CASES[i].channel));
        assert_non_null(channel_named(&sensor, "energy"));
        sensor_close(&sensor);
    }
}

static void an_old_driver_counts_reserved_memory_as_used(void **state)
{
    (void)state;
    nvml_fake_script("fail nvmlDeviceGetMemoryInfo_v2 0 13\nvalue memory_used 0 1000\n"
                     "value memory_reserved 0 24\n");
    struct sensor sensor;
    open_card(&sensor);
    assert_near(value_of(&sensor, "memory.used"), 1024, 0);
    sensor_close(&sensor);
}

static void an_unknown_power_limit_gives_a_wide_bound(void **state)
{
    (void)state;
    nvml_fake_script("fail nvmlDeviceGetPowerManagementLimitConstraints 0 3\n");
    struct sensor sensor;
    open_card(&sensor);
    assert_near(channel_named(&sensor, "energy")->watts_max, 3000, 0);
    assert_null(fact_named(&sensor, "power_limit_range"));
    sensor_close(&sensor);
}

static void facts_identify_the_card(void **state)
{
    (void)state;
    nvml_fake_script("devices 1\nuuid 0 GPU-8932f937-d72c-4106-c12f-20bd9faed9f6\n");
    struct sensor sensor;
    open_card(&sensor);
    assert_string_equal(fact_named(&sensor, "uuid"), "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6");
    assert_string_equal(fact_named(&sensor, "pci_bus_id"), "00000000:18:00.0");
    assert_string_equal(fact_named(&sensor, "driver_version"), "580.95.05");
    assert_string_equal(fact_named(&sensor, "architecture"), "Hopper");
    assert_string_equal(fact_named(&sensor, "compute_capability"), "9.0");
    assert_string_equal(fact_named(&sensor, "power_limit_range"), "200 to 700 W");
    assert_string_equal(fact_named(&sensor, "persistence_mode"), "enabled");
    assert_string_equal(fact_named(&sensor, "mig"), "disabled");
    assert_null(fact_named(&sensor, "mig_energy"));
    assert_null(fact_named(&sensor, "index_order"));
    sensor_close(&sensor);
}

static void mixed_gpus_warn_about_cuda_device_order(void **state)
{
    (void)state;
    nvml_fake_script("devices 2\nname 1 NVIDIA L4\n");
    struct sensor sensor;
    open_card(&sensor);
    assert_non_null(strstr(fact_named(&sensor, "index_order"), "CUDA_DEVICE_ORDER=PCI_BUS_ID"));
    sensor_close(&sensor);
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    open_card(&sensor);
    assert_null(fact_named(&sensor, "index_order"));
    sensor_close(&sensor);
}

static void a_partitioned_card_is_measured_as_a_whole(void **state)
{
    (void)state;
    nvml_fake_script("mig 0 3\n");
    assert_int_equal(nvml_fake_probe(NULL)->count, 1);
    struct sensor sensor;
    open_card(&sensor);
    assert_string_equal(fact_named(&sensor, "mig"), "enabled, 3 instances");
    assert_non_null(strstr(fact_named(&sensor, "mig_energy"), "no energy per MIG instance"));
    assert_non_null(channel_named(&sensor, "energy"));
    assert_null(
        channel_named(&sensor, "utilisation.tensor")); /* GPM is not available for the whole card */
    sensor_close(&sensor);
}

static void processes_on_the_card_are_listed(void **state)
{
    (void)state;
    struct sensor sensor;
    struct sensor_process seen[SENSOR_PROCESSES_MAX];
    size_t count;
    nvml_fake_script("process 0 101 3e9 40\nprocess 0 102 nan\n"
                     "process 0 103 1e9 90\nprocess 0 103 2e9 70\n" /* two MIG instances */
                     "process 0 104 5e8 4000000000\n");             /* not a valid percentage */
    open_card(&sensor);
    assert_int_equal(sensor.driver->processes(&sensor, clock_now(), seen, &count), ERR_OK);
    static const struct sensor_process EXPECTED[] = {
        {101, true, 3e9, 40}, {102, true, UNKNOWN, 0}, {103, true, 3e9, 80}, {104, true, 5e8, 0}};
    assert_int_equal(count, sizeof EXPECTED / sizeof *EXPECTED);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(seen[i].pid, EXPECTED[i].pid);
        assert_int_equal(seen[i].is_open, EXPECTED[i].is_open);
        assert_int_equal(is_known(seen[i].memory_bytes), is_known(EXPECTED[i].memory_bytes));
        if (is_known(seen[i].memory_bytes))
            assert_near(seen[i].memory_bytes, EXPECTED[i].memory_bytes, 0);
        assert_near(seen[i].busy_pct, EXPECTED[i].busy_pct, 0);
    }
    nvml_fake_script("process 0 101 3e9 40\nfail nvmlDeviceGetProcessUtilization 0 3\n");
    assert_int_equal(sensor.driver->processes(&sensor, clock_now(), seen, &count), ERR_OK);
    assert_int_equal(count, 1);
    assert_false(is_known(seen[0].busy_pct));
    nvml_fake_script("process 0 101 3e9 40\n");
    assert_int_equal(sensor.driver->processes(&sensor, 0, seen, &count), ERR_OK);
    assert_int_equal(count, 1);
    assert_near(seen[0].memory_bytes, 3e9, 0);
    assert_false(is_known(seen[0].busy_pct));
    sensor_close(&sensor);
}

static void errors_of_listing_processes(void **state)
{
    (void)state;
    struct sensor sensor;
    struct sensor_process seen[SENSOR_PROCESSES_MAX];
    char script[4096] = "";
    size_t count;
    open_card(&sensor);
    for (int i = 0; i <= SENSOR_PROCESSES_MAX; i++)
        snprintf(script + strlen(script), sizeof script - strlen(script), "process 0 %d 1e9\n",
                 1000 + i);
    nvml_fake_script("%s", script);
    assert_int_equal(sensor.driver->processes(&sensor, 0, seen, &count), ERR_NO_SPACE);
    nvml_fake_script("fail nvmlDeviceGetComputeRunningProcesses_v3 0 3\n");
    assert_int_equal(sensor.driver->processes(&sensor, 0, seen, &count), ERR_UNSUPPORTED);
    sensor_close(&sensor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NVML_TEST(each_gpu_is_a_finding),
        NVML_TEST(a_full_card_has_every_channel),
        NVML_TEST(channels_are_grouped_by_the_cost_of_their_calls),
        NVML_TEST(the_counter_counts_millijoules),
        NVML_TEST(a_counter_that_restarts_is_passed_on_unchanged),
        NVML_TEST(power_fields_are_distinguished),
        NVML_TEST(values_of_every_type_are_converted),
        NVML_TEST(slow_readings_are_in_base_units),
        NVML_TEST(activities_are_means_between_samples),
        NVML_TEST(throttle_reasons_are_mapped),
        NVML_TEST(exactly_one_channel_is_primary),
        NVML_TEST(module_power_has_module_scope),
        NVML_TEST(implausible_memory_power_is_ignored),
        NVML_TEST(processes_on_the_card_are_listed),
        NVML_TEST(errors_of_listing_processes),
        NVML_TEST(memory_power_may_be_only_an_average),
        NVML_TEST(without_samples_every_tick_of_the_counter_is_read),
        NVML_TEST(unsupported_quantities_have_no_channel),
        NVML_TEST(an_old_driver_counts_reserved_memory_as_used),
        NVML_TEST(an_unknown_power_limit_gives_a_wide_bound),
        NVML_TEST(facts_identify_the_card),
        NVML_TEST(mixed_gpus_warn_about_cuda_device_order),
        NVML_TEST(a_partitioned_card_is_measured_as_a_whole),
    };
    return RUN_TESTS(tests);
}
