#include "support/unit.h"

#include <string.h>

#include "support/boards.h"
#include "support/sensing.h"

static void the_input_rail_is_the_board(void **state)
{
    struct fixture *f = *state;
    board_jetson_orin_nano(&f->tree);
    const struct sensor_finding *finding = sensing_only(&f->s, "jetson");
    assert_int_equal(finding->status, SENSOR_OK);
    assert_string_equal(finding->name, "NVIDIA Jetson Orin Nano Developer Kit");
    assert_string_equal(finding->measures, "power,temperature,utilisation,clock");

    assert_int_equal(sensing_start(&f->s, "jetson", "jetson"), ERR_OK);
    const struct sensor_channel *total = sensing_channel(&f->s, "VDD_IN");
    assert_int_equal(total->scope, SCOPE_BOARD);
    assert_int_equal(total->location, -1);
    assert_string_equal(total->device, "board");
    assert_int_equal(total->period, 7 * NS_PER_MS);
    const struct sensor_channel *soc = sensing_channel(&f->s, "VDD_SOC");
    assert_int_equal(soc->scope, SCOPE_RAIL);
    assert_string_equal(soc->device, "rail:VDD_SOC");

    assert_near(sensing_value(&f->s, "VDD_IN"), 6.0, 1e-9);
    assert_near(sensing_value(&f->s, "VDD_CPU_GPU_CV"), 2.0, 1e-9);
    assert_near(sensing_value(&f->s, "VDD_SOC"), 1.5, 1e-9);
    assert_near(sensing_value(&f->s, "temperature"), 45.5, 1e-9);
    assert_near(sensing_value(&f->s, "gpu.utilisation"), 37.5, 1e-9);
    assert_near(sensing_value(&f->s, "gpu.clock"), 624.75, 1e-9);
    assert_string_equal(f->s.sensor.facts[0].key, "model");
    assert_string_equal(f->s.sensor.facts[0].text, "NVIDIA Jetson Orin Nano Developer Kit");
}

static void without_an_input_rail_the_rails_are_summed(void **state)
{
    struct fixture *f = *state;
    board_jetson_agx_orin(&f->tree);
    assert_int_equal(sensing_start(&f->s, "jetson", "jetson"), ERR_OK);
    double sum = 0;
    unsigned rails = 0, locations = 0;
    for (size_t i = 0; i < f->s.sensor.channel_count; i++) {
        const struct sensor_channel *channel = &f->s.sensor.channels[i];
        assert_string_not_equal(channel->name, "NC");
        if (channel->quantity != QTY_POWER)
            continue;
        assert_int_equal(channel->scope, SCOPE_BOARD);
        assert_in_range(channel->location, 0, 31);
        assert_false(locations & 1u << channel->location);
        locations |= 1u << channel->location;
        sum += sensing_value(&f->s, channel->name);
        rails++;
    }
    assert_int_equal(rails, 4);
    assert_near(sum, 20.0, 1e-9);
    assert_near(sensing_value(&f->s, "temperature"), 45.5, 1e-9);
}

static void the_monitor_of_older_kernels_is_read(void **state)
{
    struct fixture *f = *state;
    static const char DIR[] = "/sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0";
    char path[128];
    tree_write(&f->tree, "/etc/nv_tegra_release", "# R32\n");
    static const struct {
        const char *file, *text;
    } FILES[] = {{"rail_name_0", "POM_5V_IN"},  {"in_voltage0_input", "5000"},
                 {"in_current0_input", "600"},  {"rail_name_1", "POM_5V_GPU"},
                 {"in_voltage1_input", "5000"}, {"in_current1_input", "100"}};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", DIR, FILES[i].file);
        tree_write(&f->tree, path, "%s\n", FILES[i].text);
    }
    assert_int_equal(sensing_start(&f->s, "jetson", "jetson"), ERR_OK);
    assert_int_equal(sensing_channel(&f->s, "POM_5V_IN")->scope, SCOPE_BOARD);
    assert_int_equal(sensing_channel(&f->s, "POM_5V_GPU")->scope, SCOPE_RAIL);
    assert_near(sensing_value(&f->s, "POM_5V_IN"), 3.0, 1e-9);
    assert_near(sensing_value(&f->s, "POM_5V_GPU"), 0.5, 1e-9);
}

static void invalid_files_are_missing_and_the_rest_is_read(void **state)
{
    struct fixture *f = *state;
    static const char CURRENT[] = "/sys/class/hwmon/hwmon1/curr1_input";
    board_jetson_orin_nano(&f->tree);
    assert_int_equal(sensing_start(&f->s, "jetson", "jetson"), ERR_OK);
    static const char *const BAD[] = {"", "\n", "abc\n", "12x\n", "-\n", "-500\n"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        tree_write(&f->tree, CURRENT, "%s", BAD[i]);
        assert_int_equal(sensing_observe(&f->s, "VDD_IN").missing, ERR_BAD_VALUE);
        assert_int_equal(f->s.answer, ERR_OK);
        assert_near(sensing_value(&f->s, "VDD_SOC"), 1.5, 1e-9);
    }
    /* Slightly below zero is the monitor's offset on an idle rail: 0 W. */
    tree_write(&f->tree, CURRENT, "-16\n");
    assert_near(sensing_value(&f->s, "VDD_IN"), 0, 0);
    tree_write(&f->tree, "/sys/class/hwmon/hwmon1/in1_input", "-8\n");
    assert_int_equal(sensing_observe(&f->s, "VDD_IN").missing, ERR_BAD_VALUE);
}

static void a_vanished_rail_makes_the_sum_missing(void **state)
{
    struct fixture *f = *state;
    board_jetson_agx_orin(&f->tree);
    assert_string_equal(sensing_only(&f->s, "jetson")->id, "jetson");
    tree_remove(&f->tree, "/sys/class/hwmon");
    assert_int_equal(sensing_open(&f->s, "jetson"), ERR_NOT_FOUND);
    assert_true(f->s.why.text[0]);
}

static void other_machines_have_no_jetson(void **state)
{
    struct fixture *f = *state;
    const struct sensor_finding *finding = sensing_only(&f->s, "jetson");
    assert_int_equal(finding->status, SENSOR_ABSENT);
    assert_true(finding->reason[0]);
    /* Recognized by the device tree alone, whose strings end in a NUL. */
    tree_write_bytes(&f->tree, "/proc/device-tree/model", 0, "NVIDIA Jetson Xavier NX", 24);
    finding = sensing_only(&f->s, "jetson");
    assert_int_equal(finding->status, SENSOR_UNSUPPORTED);
    assert_string_equal(finding->name, "NVIDIA Jetson Xavier NX");
    assert_true(finding->reason[0] && finding->fix[0]);
}

static int denied_as_nobody(void *argument)
{
    struct sensing *s = argument;
    sensing_probe(s, "jetson");
    const struct sensor_finding *finding = sensing_find(s, "jetson");
    return finding && finding->status == SENSOR_DENIED && finding->reason[0] && finding->fix[0] ? 0
                                                                                                : 1;
}

static void denied_files_are_reported(void **state)
{
    struct fixture *f = *state;
    board_jetson_orin_nano(&f->tree);
    tree_mode(&f->tree, "", 0755);
    /* One is enough: the sum of the others would not be the board. */
    tree_mode(&f->tree, "/sys/class/hwmon/hwmon1/curr2_input", 0);
    assert_int_equal(as_nobody(denied_as_nobody, &f->s), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(the_input_rail_is_the_board),
        FIXTURE_TEST(without_an_input_rail_the_rails_are_summed),
        FIXTURE_TEST(the_monitor_of_older_kernels_is_read),
        FIXTURE_TEST(invalid_files_are_missing_and_the_rest_is_read),
        FIXTURE_TEST(a_vanished_rail_makes_the_sum_missing),
        FIXTURE_TEST(other_machines_have_no_jetson),
        FIXTURE_TEST(denied_files_are_reported),
    };
    return RUN_TESTS(tests);
}
