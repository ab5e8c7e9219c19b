/* test: real time, tsan, valgrind */
/* Faults of NVIDIA cards and drivers, and how they are reported. */
#include "support/unit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "sensors/registry.h"
#include "support/nvml_fake.h"

static const struct {
    int code;
    enum err expected; /* ERR_LOST is the result of the read, the others of the channel */
} CODES[] = {
    {1, ERR_LOST},     {2, ERR_IO},     {3, ERR_UNSUPPORTED}, {4, ERR_DENIED},
    {5, ERR_IO},       {7, ERR_IO},     {8, ERR_IO},          {9, ERR_LOST},
    {10, ERR_TIMEOUT}, {11, ERR_IO},    {12, ERR_IO},         {13, ERR_UNSUPPORTED},
    {14, ERR_IO},      {15, ERR_LOST},  {16, ERR_LOST},       {17, ERR_IO},
    {18, ERR_LOST},    {19, ERR_BUSY},  {20, ERR_NO_MEMORY},  {21, ERR_IO},
    {22, ERR_IO},      {23, ERR_IO},    {24, ERR_IO},         {25, ERR_IO},
    {26, ERR_IO},      {27, ERR_IO},    {28, ERR_LOST},       {29, ERR_IO},
    {30, ERR_IO},      {999, ERR_LOST},
};

static void every_error_code_is_mapped(void **state)
{
    (void)state;
    static const struct {
        const char *function, *channel;
    } CALLS[] = {
        {"nvmlDeviceGetTotalEnergyConsumption", "energy"},
        {"nvmlDeviceGetFieldValues", "power.instant"},
        {"field:186:0", "power.instant"},
        {"nvmlDeviceGetSamples", "power.samples"},
        {"nvmlDeviceGetTemperature", "temperature"},
        {"nvmlDeviceGetEnforcedPowerLimit", "power_limit"},
        {"nvmlGpmSampleGet", "utilisation.tensor"},
    };
    struct sensor sensor;
    assert_int_equal(nvml_fake_open("nvml:0", &sensor), ERR_OK);
    for (size_t c = 0; c < sizeof CALLS / sizeof *CALLS; c++) {
        for (size_t i = 0; i < sizeof CODES / sizeof *CODES; i++) {
            const char *channel = CALLS[c].channel;
            nvml_fake_script("fail %s 0 %d\n", CALLS[c].function, CODES[i].code);
            nvml_fake_time(20 + 100 * (double)c + (double)i); /* activities are means over time */
            enum err err = nvml_fake_read(&sensor, channel);
            if (CODES[i].expected == ERR_LOST) {
                assert_int_equal(err, ERR_LOST);
                continue;
            }
            assert_int_equal(err, ERR_OK);
            assert_int_equal(nvml_fake_count(&sensor, channel), 1);
            assert_int_equal(nvml_fake_get(&sensor, channel, 0)->missing, CODES[i].expected);
        }
    }
    /* An error of one channel does not affect others. */
    nvml_fake_script("fail nvmlDeviceGetTemperature 0 10\n");
    assert_int_equal(nvml_fake_read(&sensor, "clock"), ERR_OK);
    assert_int_equal(nvml_fake_get(&sensor, "temperature", 0)->missing, ERR_TIMEOUT);
    assert_int_equal(nvml_fake_get(&sensor, "clock", 0)->missing, ERR_OK);
    nvml_fake_script("fail field:186:0 0 10\n");
    assert_int_equal(nvml_fake_read(&sensor, "power.average"), ERR_OK);
    assert_int_equal(nvml_fake_get(&sensor, "power.instant", 0)->missing, ERR_TIMEOUT);
    assert_int_equal(nvml_fake_get(&sensor, "power.average", 0)->missing, ERR_OK);
    sensor_close(&sensor);
}

static void a_failed_init_reports_the_reason(void **state)
{
    (void)state;
    static const struct {
        int code;
        enum sensor_status status;
        const char *reason, *fix;
    } CASES[] = {
        {9, SENSOR_ABSENT, "kernel driver is not loaded", "modprobe nvidia"},
        {12, SENSOR_ABSENT, "kernel driver is not loaded", ""},
        {18, SENSOR_UNSUPPORTED, "different versions", "reboot"},
        {4, SENSOR_DENIED, "device nodes", "/dev/nvidia"},
        {15, SENSOR_UNSUPPORTED, "fell off the bus", "nvidia-smi --gpu-reset"},
        {999, SENSOR_UNSUPPORTED, "code 999", "reboot"},
        {17, SENSOR_UNSUPPORTED, "code 17", ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        nvml_fake_script("init %d\n", CASES[i].code);
        assert_int_equal(nvml_fake_probe(NULL)->count, 1);
        const struct sensor_finding *finding = nvml_fake_finding("nvml");
        assert_non_null(finding);
        assert_int_equal(finding->status, CASES[i].status);
        assert_non_null(strstr(finding->reason, CASES[i].reason));
        assert_non_null(strstr(finding->fix, CASES[i].fix));
    }
}

static void a_missing_library_is_absence(void **state)
{
    (void)state;
    setenv("IPW_NVML", "/nowhere/libnvidia-ml.so.1", 1);
    assert_int_equal(nvml_fake_probe(NULL)->count, 1);
    assert_int_equal(nvml_fake_finding("nvml")->status, SENSOR_ABSENT);
    assert_non_null(strstr(nvml_fake_finding("nvml")->reason, "/nowhere/libnvidia-ml.so.1"));
    /* A library that is not NVML, or NVML before version 2. */
    setenv("IPW_NVML", "libm.so.6", 1);
    nvml_fake_probe(NULL);
    assert_int_equal(nvml_fake_finding("nvml")->status, SENSOR_UNSUPPORTED);
    assert_non_null(strstr(nvml_fake_finding("nvml")->reason, "libm.so.6 has no nvmlInit_v2"));
}

static void a_driver_without_cards_is_absence(void **state)
{
    (void)state;
    nvml_fake_script("devices 0\n");
    assert_int_equal(nvml_fake_probe(NULL)->count, 1);
    assert_int_equal(nvml_fake_finding("nvml")->status, SENSOR_ABSENT);
    assert_non_null(strstr(nvml_fake_finding("nvml")->reason, "no GPU"));
    nvml_fake_script("fail nvmlDeviceGetCount_v2 * 999\n");
    nvml_fake_probe(NULL);
    assert_int_equal(nvml_fake_finding("nvml")->status, SENSOR_UNSUPPORTED);
}

static void a_forbidden_card_is_denied_and_the_other_read(void **state)
{
    (void)state;
    static const char *const SCRIPTS[] = {
        "devices 2\nfail nvmlDeviceGetHandleByIndex_v2 1 4\n",
        "devices 2\nfail nvmlDeviceGetTotalEnergyConsumption 1 4\nfail nvmlDeviceGetSamples 1 4\n"
        "fail nvmlDeviceGetFieldValues 1 4\nfail nvmlDeviceGetPowerUsage 1 4\n",
    };
    for (size_t i = 0; i < sizeof SCRIPTS / sizeof *SCRIPTS; i++) {
        nvml_fake_script("%s", SCRIPTS[i]);
        assert_int_equal(nvml_fake_probe(NULL)->count, 2);
        assert_int_equal(nvml_fake_finding("nvml:0")->status, SENSOR_OK);
        const struct sensor_finding *denied = nvml_fake_finding("nvml:1");
        assert_int_equal(denied->status, SENSOR_DENIED);
        assert_non_null(strstr(denied->fix, "/dev/nvidia"));
        assert_non_null(strstr(denied->fix, "usermod -aG video"));
        assert_non_null(strstr(denied->fix, "--gpus all"));
    }
}

static void a_jetson_is_left_to_its_own_driver(void **state)
{
    (void)state;
    nvml_fake_script("name 0 Orin (nvgpu)\nfail nvmlDeviceGetTotalEnergyConsumption 0 3\n"
                     "fail nvmlDeviceGetSamples 0 3\nfail field:185 0 3\nfail field:186 0 3\n"
                     "fail nvmlDeviceGetPowerUsage 0 3\n");
    assert_int_equal(nvml_fake_probe(NULL)->count, 1);
    const struct sensor_finding *finding = nvml_fake_finding("nvml:0");
    assert_int_equal(finding->status, SENSOR_UNSUPPORTED);
    assert_string_equal(finding->name, "Orin (nvgpu)");
    assert_non_null(strstr(finding->reason, "jetson driver reads the INA3221"));
}

static void implausible_values_are_missing(void **state)
{
    (void)state;
    static const struct {
        const char *script, *channel;
    } CASES[] = {
        {"value energy_mj 0 nan\n", "energy"},
        {"value power_mw 0 11000000\n", "power.instant"},
        {"value power_mw 0 4294967295\n", "power.average"},
        {"type fields double\nvalue power_mw 0 nan\n", "power.instant"},
        {"type fields double\nvalue power_mw 0 -1\n", "power.instant"},
        {"type fields double\nvalue memory_power_mw 0 inf\n", "power.memory"},
        {"value temperature 0 255\n", "temperature"},
        {"value utilisation 0 101\n", "utilisation"},
        {"value utilisation_memory 0 4294967295\n", "utilisation.memory"},
        {"value tensor 0 nan\n", "utilisation.tensor"},
        {"value clock_sm 0 4294967295\n", "clock"},
        {"value limit_mw 0 4294967295\n", "power_limit"},
    };
    struct sensor sensor;
    assert_int_equal(nvml_fake_open("nvml:0", &sensor), ERR_OK);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        nvml_fake_script("%s", CASES[i].script);
        nvml_fake_time(20 + (double)i);
        assert_int_equal(nvml_fake_read(&sensor, CASES[i].channel), ERR_OK);
        const struct observation *o = nvml_fake_get(&sensor, CASES[i].channel, 0);
        assert_non_null(o);
        assert_int_equal(o->missing, ERR_BAD_VALUE);
    }
    sensor_close(&sensor);
}

static void a_blocking_call_is_dated_within_the_call(void **state)
{
    (void)state;
    nvml_fake_script("block nvmlDeviceGetTotalEnergyConsumption 0 15\n");
    nvml_fake_run_free();
    struct sensor sensor;
    assert_int_equal(nvml_fake_open("nvml:0", &sensor), ERR_OK);
    nanos before = clock_now();
    assert_int_equal(nvml_fake_read(&sensor, "energy"), ERR_OK);
    nanos after = clock_now();
    assert_true(after - before >= 15 * NS_PER_MS);
    const struct observation *o = nvml_fake_get(&sensor, "energy", 0);
    assert_int_equal(o->missing, ERR_OK);
    /* The middle of a call of 15 ms or more is 7 ms or more from both its ends. */
    assert_true(o->t - before >= 7 * NS_PER_MS);
    assert_true(after - o->t >= 7 * NS_PER_MS);
    sensor_close(&sensor);
}

static void a_driver_that_was_busy_at_open_keeps_its_channels(void **state)
{
    (void)state;
    nvml_fake_script("fail nvmlDeviceGetTotalEnergyConsumption 0 10 for 1\n"
                     "fail nvmlDeviceGetTemperature 0 19 for 2\n");
    struct sensor sensor; /* busy when probed and, but for the counter, when opened */
    assert_int_equal(nvml_fake_open("nvml:0", &sensor), ERR_OK);
    assert_int_equal(nvml_fake_read(&sensor, "energy"), ERR_OK);
    assert_int_equal(nvml_fake_get(&sensor, "energy", 0)->missing, ERR_OK);
    assert_int_equal(nvml_fake_read(&sensor, "temperature"), ERR_OK);
    assert_int_equal(nvml_fake_get(&sensor, "temperature", 0)->missing, ERR_OK);
    sensor_close(&sensor);
}

static void an_unknown_error_disables_only_its_channel(void **state)
{
    (void)state;
    nvml_fake_script("fail nvmlDeviceGetTotalEnergyConsumption 0 999\n");
    struct sensor sensor;
    assert_int_equal(nvml_fake_open("nvml:0", &sensor), ERR_OK);
    assert_null(channel_named(&sensor, "energy"));
    assert_false(channel_named(&sensor, "power.samples")->secondary);
    sensor_close(&sensor);
}

/* Opens a finding of an earlier probe, as the sampler does after a loss. */
static enum err open_again(const struct sensor_finding *finding, struct sensor *out)
{
    struct error why = {0};
    enum err err = sensor_open(finding, out, &why);
    assert_true(err == ERR_OK || why.text[0]);
    return err;
}

static void a_lost_card_becomes_available_again(void **state)
{
    (void)state;
    nvml_fake_script("devices 2\npower * constant 100\nfail * 0 15 from 12 to 14\n");
    nvml_fake_probe(NULL);
    struct sensor_finding finding = *nvml_fake_finding("nvml:0");
    struct sensor lost, other;
    assert_int_equal(open_again(&finding, &lost), ERR_OK);
    assert_int_equal(open_again(nvml_fake_finding("nvml:1"), &other), ERR_OK);
    nvml_fake_time(12.5);
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            nvml_fake_read(&lost, (const char *[]){"energy", "power.instant", "clock"}[i]),
            ERR_LOST);
    sensor_close(&lost);
    assert_int_equal(open_again(&finding, &lost), ERR_LOST);
    /* A probe at that time reports it, and the other card continues. */
    nvml_fake_probe(NULL);
    assert_int_equal(nvml_fake_finding("nvml:0")->status, SENSOR_UNSUPPORTED);
    assert_non_null(strstr(nvml_fake_finding("nvml:0")->reason, "fell off the bus"));
    assert_int_equal(nvml_fake_read(&other, "energy"), ERR_OK);
    assert_int_equal(nvml_fake_get(&other, "energy", 0)->count, 1250000);
    nvml_fake_time(14.5);
    assert_int_equal(open_again(&finding, &lost), ERR_OK);
    assert_int_equal(nvml_fake_read(&lost, "energy"), ERR_OK);
    assert_int_equal(nvml_fake_get(&lost, "energy", 0)->count, 1450000);
    sensor_close(&lost);
    sensor_close(&other);
}

static void a_reloaded_driver_is_restarted(void **state)
{
    (void)state;
    nvml_fake_script("devices 2\n");
    nvml_fake_probe(NULL);
    struct sensor_finding findings[] = {*nvml_fake_finding("nvml:0"), *nvml_fake_finding("nvml:1")};
    struct sensor sensors[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(open_again(&findings[i], &sensors[i]), ERR_OK);
    nvml_fake_script("devices 2\nfail * * 999\n");
    assert_int_equal(nvml_fake_read(&sensors[0], "energy"), ERR_LOST);
    sensor_close(&sensors[0]);
    assert_int_equal(open_again(&findings[0], &sensors[0]), ERR_LOST);
    assert_int_equal(nvml_fake_read(&sensors[1], "energy"), ERR_LOST);
    sensor_close(&sensors[1]);
    nvml_fake_script("devices 2\ninit 9\n"); /* between unloading and loading */
    assert_int_equal(open_again(&findings[0], &sensors[0]), ERR_ABSENT);
    nvml_fake_script("devices 2\n");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(open_again(&findings[i], &sensors[i]), ERR_OK);
        assert_int_equal(nvml_fake_read(&sensors[i], "energy"), ERR_OK);
        sensor_close(&sensors[i]);
    }
}

/* When another card vanishes, a card's index changes; its joules must keep its name. */
static void a_card_is_identified_by_its_uuid(void **state)
{
    (void)state;
    nvml_fake_script("devices 2\nuuid 0 GPU-first\nuuid 1 GPU-second\n");
    nvml_fake_probe(NULL);
    struct sensor_finding first = *nvml_fake_finding("nvml:0");
    struct sensor_finding second = *nvml_fake_finding("nvml:1");
    nvml_fake_script("devices 1\nuuid 0 GPU-second\npower 0 constant 77\n");
    struct sensor sensor;
    assert_int_equal(open_again(&first, &sensor), ERR_LOST);
    assert_int_equal(open_again(&second, &sensor), ERR_OK);
    assert_string_equal(sensor.channels[0].device, "gpu1");
    assert_int_equal(sensor.channels[0].location, 1);
    assert_int_equal(nvml_fake_read(&sensor, "power.instant"), ERR_OK);
    assert_near(nvml_fake_get(&sensor, "power.instant", 0)->value, 77, 1e-3);
    sensor_close(&sensor);
}

/* Queries whether the fake is initialized. */
static int device_count_code(void)
{
    void *library = dlopen(IPW_FAKES "/libfake_nvml.so", RTLD_NOW);
    assert_non_null(library);
    int (*count)(unsigned *);
    void *address = dlsym(library, "nvmlDeviceGetCount_v2");
    memcpy(&count, &address, sizeof count);
    unsigned devices;
    int code = count(&devices);
    dlclose(library);
    return code;
}

static void the_library_is_shut_down_with_its_last_user(void **state)
{
    (void)state;
    struct sensor first, second;
    nvml_fake_script("devices 2\n");
    assert_int_equal(nvml_fake_open("nvml:0", &first), ERR_OK);
    assert_int_equal(nvml_fake_open("nvml:1", &second), ERR_OK);
    sensor_close(&first);
    assert_int_equal(device_count_code(), 0);
    sensor_close(&second);
    assert_int_equal(device_count_code(), 1);
    /* Failures free what they allocated. */
    nvml_fake_script("fail nvmlDeviceGetPowerUsage 0 15 after 1\n");
    assert_int_equal(nvml_fake_open("nvml:0", &first), ERR_LOST);
    assert_int_equal(device_count_code(), 1);
}

/* ---- threads ---- */

struct worker {
    pthread_t thread;
    struct sensor_finding finding;
    int rounds, failures;
};

static void *open_read_close(void *argument)
{
    struct worker *worker = argument;
    struct observation items[512];
    for (int i = 0; i < worker->rounds; i++) {
        struct sensor sensor;
        struct error why;
        if (sensor_open(&worker->finding, &sensor, &why) != ERR_OK) {
            worker->failures++;
            continue;
        }
        for (unsigned group = 0; group < sensor.group_count; group++) {
            struct observations out = {.items = items, .capacity = 512};
            worker->failures += sensor.driver->read(&sensor, group, &out) != ERR_OK;
            worker->failures += group < 2 && out.count == 0;
            for (size_t k = 0; k < out.count; k++)
                worker->failures += /* ERR_NO_DATA: the start of a mean */
                    items[k].missing != (group == 4 ? ERR_NO_DATA : ERR_OK);
        }
        sensor_close(&sensor);
    }
    return NULL;
}

static void sensors_are_used_by_several_threads(void **state)
{
    (void)state;
    nvml_fake_script("devices 2\n");
    nvml_fake_probe(NULL);
    struct worker workers[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (struct worker){.rounds = 25};
        workers[i].finding = *nvml_fake_finding(i % 2 ? "nvml:1" : "nvml:0");
        assert_int_equal(pthread_create(&workers[i].thread, NULL, open_read_close, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].failures, 0);
    }
    assert_int_equal(device_count_code(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NVML_TEST(every_error_code_is_mapped),
        NVML_TEST(a_failed_init_reports_the_reason),
        NVML_TEST(a_missing_library_is_absence),
        NVML_TEST(a_driver_without_cards_is_absence),
        NVML_TEST(a_forbidden_card_is_denied_and_the_other_read),
        NVML_TEST(a_jetson_is_left_to_its_own_driver),
        NVML_TEST(implausible_values_are_missing),
        NVML_TEST(a_blocking_call_is_dated_within_the_call),
        NVML_TEST(a_driver_that_was_busy_at_open_keeps_its_channels),
        NVML_TEST(an_unknown_error_disables_only_its_channel),
        NVML_TEST(a_lost_card_becomes_available_again),
        NVML_TEST(a_reloaded_driver_is_restarted),
        NVML_TEST(a_card_is_identified_by_its_uuid),
        NVML_TEST(the_library_is_shut_down_with_its_last_user),
        NVML_TEST(sensors_are_used_by_several_threads),
    };
    return RUN_TESTS(tests);
}
