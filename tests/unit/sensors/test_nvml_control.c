/* Clock lists, limits and settings of NVIDIA cards through the driver's control operations. */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "power/clock_list.h"
#include "sensors/registry.h"
#include "support/nvml_fake.h"

static const char UNSET[] = "0 graphics 0 0 memory 0 0 limit 0";

static const struct sensor_control *open_card(struct sensor *sensor)
{
    assert_int_equal(nvml_fake_open("nvml:0", sensor), ERR_OK);
    assert_non_null(sensor->driver->control);
    return sensor->driver->control;
}

/* All clocks that the driver lists, in the form of the power models. */
static void list_clocks(struct clock_list *list, size_t *per_memory_clock)
{
    struct sensor sensor;
    struct error why = {0};
    double *memory, *graphics;
    size_t memories, count = 0;
    const struct sensor_control *control = open_card(&sensor);
    assert_int_equal(control->clocks(&sensor, KNOB_MEMORY_CLOCK, 0, &memory, &memories, &why),
                     ERR_OK);
    for (size_t m = 0; m < memories; m++) {
        assert_int_equal(
            control->clocks(&sensor, KNOB_GRAPHICS_CLOCK, memory[m], &graphics, &count, &why),
            ERR_OK);
        for (size_t i = 0; i < count; i++) {
            assert_true(i == 0 || graphics[i] < graphics[i - 1]);
            clock_list_add(list, "card", memory[m], graphics[i]);
        }
        free(graphics);
    }
    *per_memory_clock = count;
    free(memory);
    sensor_close(&sensor);
}

/* The lists that nvidia-smi -q -d SUPPORTED_CLOCKS prints on these cards. */
static void clock_lists_of_known_cards_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        size_t all, usable;
        double highest, second;
    } CARDS[] = {
        {"clocks 0 877 1380:135:7.5\n", 167, 117, 1380, 1372},
        {"clocks 0 1215 1410:210:15\n", 81, 61, 1410, 1395},
        {"clocks 0 1593 1785:345:15\nclocks 0 2619 1785:345:15\n", 97, 86, 1785, 1770},
    };
    for (size_t i = 0; i < sizeof CARDS / sizeof *CARDS; i++) {
        struct clock_list list = {0};
        size_t all;
        double usable[200];
        nvml_fake_script("%s", CARDS[i].script);
        list_clocks(&list, &all);
        assert_int_equal(all, CARDS[i].all);
        assert_int_equal(clock_list_usable(&list, "card", 510, usable, 200), CARDS[i].usable);
        assert_near(usable[0], 510, 1e-9);
        assert_near(usable[CARDS[i].usable - 1], CARDS[i].highest, 1e-9);
        assert_near(usable[CARDS[i].usable - 2], CARDS[i].second, 1e-9);
        clock_list_release(&list);
    }
}

static void unsupported_lists_are_errors(void **state)
{
    (void)state;
    struct sensor sensor;
    struct error why = {0};
    double *clocks;
    size_t count;
    const struct sensor_control *control = open_card(&sensor);
    assert_int_equal(control->clocks(&sensor, KNOB_MEMORY_CLOCK, 0, &clocks, &count, &why),
                     ERR_UNSUPPORTED);
    assert_null(clocks);
    assert_int_equal(count, 0);
    /* A list that never fits ends in an error, not in an endless loop. */
    nvml_fake_script("fail nvmlDeviceGetSupportedMemoryClocks 0 7\n");
    assert_int_not_equal(control->clocks(&sensor, KNOB_MEMORY_CLOCK, 0, &clocks, &count, &why),
                         ERR_OK);
    sensor_close(&sensor);
}

static void limits_are_those_the_card_reports(void **state)
{
    (void)state;
    struct sensor sensor;
    struct sensor_limits limits;
    struct error why = {0};
    nvml_fake_script("value clock_sm 0 1410\nvalue clock_sm_max 0 1980\nvalue limit_mw 0 250000\n"
                     "value limit_min_mw 0 100000\nvalue limit_max_mw 0 300000\n"
                     "value limit_default_mw 0 250000\nvalue throttle 0 4\n");
    const struct sensor_control *control = open_card(&sensor);
    assert_int_equal(control->limits(&sensor, &limits, &why), ERR_OK);
    assert_near(limits.graphics_mhz, 1410, 1e-9);
    assert_near(limits.graphics_max_mhz, 1980, 1e-9);
    assert_near(limits.limit_w, 250, 1e-9);
    assert_near(limits.limit_default_w, 250, 1e-9);
    assert_near(limits.limit_enforced_w, 250, 1e-9);
    assert_near(limits.limit_min_w, 100, 1e-9);
    assert_near(limits.limit_max_w, 300, 1e-9);
    assert_near(limits.throttle, THROTTLE_POWER, 1e-9);
    assert_false(limits.idle);
    assert_false(limits.partitioned);
    nvml_fake_script("value throttle 0 1\nfail nvmlDeviceGetPowerManagementDefaultLimit 0 3\n"
                     "mig 0 2\n");
    assert_int_equal(control->limits(&sensor, &limits, &why), ERR_OK);
    assert_false(is_known(limits.limit_default_w));
    assert_near(limits.throttle, 0, 1e-9);
    assert_true(limits.idle);
    assert_true(limits.partitioned);
    sensor_close(&sensor);
}

static void settings_reach_the_card_and_are_reset(void **state)
{
    (void)state;
    struct sensor sensor;
    struct sensor_limits limits;
    struct error why = {0};
    const struct sensor_control *control = open_card(&sensor);
    assert_int_equal(control->set(&sensor, KNOB_GRAPHICS_CLOCK, 1005, &why), ERR_OK);
    assert_int_equal(control->set(&sensor, KNOB_MEMORY_CLOCK, 2619, &why), ERR_OK);
    assert_int_equal(control->set(&sensor, KNOB_POWER_LIMIT, 350.5, &why), ERR_OK);
    assert_string_equal(nvml_fake_settings(), "0 graphics 1005 1005 memory 2619 2619 limit 350500");
    assert_int_equal(control->limits(&sensor, &limits, &why), ERR_OK);
    assert_near(limits.graphics_mhz, 1005, 1e-9);
    assert_near(limits.memory_mhz, 2619, 1e-9);
    assert_near(limits.limit_w, 350.5, 1e-9);
    assert_int_equal(control->reset(&sensor, KNOB_GRAPHICS_CLOCK, &why), ERR_OK);
    assert_int_equal(control->reset(&sensor, KNOB_MEMORY_CLOCK, &why), ERR_OK);
    assert_int_equal(control->reset(&sensor, KNOB_POWER_LIMIT, &why), ERR_OK);
    assert_string_equal(nvml_fake_settings(), "0 graphics 0 0 memory 0 0 limit 700000");
    sensor_close(&sensor);
}

static void denied_settings_say_what_is_required(void **state)
{
    (void)state;
    static const struct {
        int code;
        enum err err;
        const char *text;
    } CASES[] = {
        {4, ERR_DENIED, "needs root"},
        {17, ERR_DENIED, "cgroup"},
        {3, ERR_UNSUPPORTED, "this GPU or driver"},
        {13, ERR_UNSUPPORTED, "too old"},
        {24, ERR_BAD_VALUE, "supported clocks"},
        {2, ERR_BAD_VALUE, "range"},
        {15, ERR_LOST, "fell off the bus"},
        {26, ERR_UNSUPPORTED, "code 26"},
    };
    static const struct {
        enum gpu_knob knob;
        const char *set, *reset;
    } KNOBS[] = {
        {KNOB_GRAPHICS_CLOCK, "nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"},
        {KNOB_MEMORY_CLOCK, "nvmlDeviceSetMemoryLockedClocks", "nvmlDeviceResetMemoryLockedClocks"},
        {KNOB_POWER_LIMIT, "nvmlDeviceSetPowerManagementLimit",
         "nvmlDeviceSetPowerManagementLimit"},
    };
    struct sensor sensor;
    const struct sensor_control *control = open_card(&sensor);
    for (size_t k = 0; k < sizeof KNOBS / sizeof *KNOBS; k++) {
        for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
            struct error why = {0};
            nvml_fake_script("fail %s 0 %d\nfail %s 0 %d\n", KNOBS[k].set, CASES[i].code,
                             KNOBS[k].reset, CASES[i].code);
            assert_int_equal(control->set(&sensor, KNOBS[k].knob, 500, &why), CASES[i].err);
            assert_contains(why.text, CASES[i].text);
            assert_contains(why.text, "nvml:0");
            assert_contains(why.text, "500");
            assert_int_equal(control->reset(&sensor, KNOBS[k].knob, &why), CASES[i].err);
            assert_contains(why.text, CASES[i].text);
        }
    }
    assert_string_equal(nvml_fake_settings(), "");
    sensor_close(&sensor);
}

static void invalid_settings_do_not_reach_the_card(void **state)
{
    (void)state;
    struct sensor sensor;
    struct error why = {0};
    const struct sensor_control *control = open_card(&sensor);
    static const double VALUES[] = {0, -5, 1e9, UNKNOWN};
    for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++)
        for (enum gpu_knob knob = 0; knob < KNOB_COUNT; knob++)
            assert_int_equal(control->set(&sensor, knob, VALUES[i], &why), ERR_BAD_VALUE);
    /* The fake's card accepts 200 to 700 W. */
    assert_int_equal(control->set(&sensor, KNOB_POWER_LIMIT, 100, &why), ERR_BAD_VALUE);
    assert_string_equal(nvml_fake_settings(), "");
    assert_int_equal(control->reset(&sensor, KNOB_GRAPHICS_CLOCK, &why), ERR_OK);
    assert_string_equal(nvml_fake_settings(), UNSET);
    sensor_close(&sensor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NVML_TEST(clock_lists_of_known_cards_are_read),
        NVML_TEST(unsupported_lists_are_errors),
        NVML_TEST(limits_are_those_the_card_reports),
        NVML_TEST(settings_reach_the_card_and_are_reset),
        NVML_TEST(denied_settings_say_what_is_required),
        NVML_TEST(invalid_settings_do_not_reach_the_card),
    };
    return RUN_TESTS(tests);
}
