#include "support/unit.h"

#include <string.h>

#include "support/boards.h"
#include "support/drive.h"

extern const struct sensor_driver sensor_jetson;

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

static struct sensor_finding only_finding(void)
{
    struct sensor_findings findings = drive_probe(&sensor_jetson);
    assert_int_equal(findings.count, 1);
    struct sensor_finding finding = findings.items[0];
    sensor_findings_release(&findings);
    return finding;
}

static double value_of(struct sensor *sensor, const char *channel)
{
    struct observation o = drive_read(sensor, channel, NULL);
    assert_int_equal(o.missing, ERR_OK);
    return o.value;
}

static void the_input_rail_is_the_board(void **state)
{
    (void)state;
    board_jetson_orin_nano(&tree);
    struct sensor_finding finding = only_finding();
    assert_int_equal(finding.status, SENSOR_OK);
    assert_string_equal(finding.name, "NVIDIA Jetson Orin Nano Developer Kit");
    assert_string_equal(finding.measures, "power,temperature,utilisation,clock");

    struct sensor sensor;
    assert_true(drive_open(&sensor_jetson, "jetson", &sensor));
    const struct sensor_channel *total = &sensor.channels[drive_channel(&sensor, "VDD_IN")];
    assert_int_equal(total->scope, SCOPE_BOARD);
    assert_int_equal(total->location, -1);
    assert_string_equal(total->device, "board");
    assert_int_equal(total->period, 7 * NS_PER_MS);
    const struct sensor_channel *soc = &sensor.channels[drive_channel(&sensor, "VDD_SOC")];
    assert_int_equal(soc->scope, SCOPE_RAIL);
    assert_string_equal(soc->device, "rail:VDD_SOC");

    assert_near(value_of(&sensor, "VDD_IN"), 6.0, 1e-9);
    assert_near(value_of(&sensor, "VDD_CPU_GPU_CV"), 2.0, 1e-9);
    assert_near(value_of(&sensor, "VDD_SOC"), 1.5, 1e-9);
    assert_near(value_of(&sensor, "temperature"), 45.5, 1e-9);
    assert_near(value_of(&sensor, "gpu.utilisation"), 37.5, 1e-9);
    assert_near(value_of(&sensor, "gpu.clock"), 624.75, 1e-9);
    assert_string_equal(sensor.facts[0].key, "model");
    assert_string_equal(sensor.facts[0].text, "NVIDIA Jetson Orin Nano Developer Kit");
    sensor_close(&sensor);
}

static void without_an_input_rail_the_rails_are_summed(void **state)
{
    (void)state;
    board_jetson_agx_orin(&tree);
    struct sensor sensor;
    assert_true(drive_open(&sensor_jetson, "jetson", &sensor));
    double sum = 0;
    unsigned rails = 0, locations = 0;
    for (size_t i = 0; i < sensor.channel_count; i++) {
        const struct sensor_channel *channel = &sensor.channels[i];
        assert_string_not_equal(channel->name, "NC");
        if (channel->quantity != QTY_POWER)
            continue;
        assert_int_equal(channel->scope, SCOPE_BOARD);
        assert_in_range(channel->location, 0, 31);
        assert_false(locations & 1u << channel->location);
        locations |= 1u << channel->location;
        sum += value_of(&sensor, channel->name);
        rails++;
    }
    assert_int_equal(rails, 4);
    assert_near(sum, 20.0, 1e-9);
    assert_near(value_of(&sensor, "temperature"), 45.5, 1e-9);
    sensor_close(&sensor);
}

static void the_monitor_of_older_kernels_is_read_too(void **state)
{
    (void)state;
    static const char DIR[] = "/sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0";
    char path[128];
    tree_write(&tree, "/etc/nv_tegra_release", "# R32\n");
    static const struct {
        const char *file, *text;
    } FILES[] = {{"rail_name_0", "POM_5V_IN"},  {"in_voltage0_input", "5000"},
                 {"in_current0_input", "600"},  {"rail_name_1", "POM_5V_GPU"},
                 {"in_voltage1_input", "5000"}, {"in_current1_input", "100"}};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", DIR, FILES[i].file);
        tree_write(&tree, path, "%s\n", FILES[i].text);
    }
    struct sensor sensor;
    assert_true(drive_open(&sensor_jetson, "jetson", &sensor));
    assert_int_equal(sensor.channels[drive_channel(&sensor, "POM_5V_IN")].scope, SCOPE_BOARD);
    assert_int_equal(sensor.channels[drive_channel(&sensor, "POM_5V_GPU")].scope, SCOPE_RAIL);
    assert_near(value_of(&sensor, "POM_5V_IN"), 3.0, 1e-9);
    assert_near(value_of(&sensor, "POM_5V_GPU"), 0.5, 1e-9);
    sensor_close(&sensor);
}

static void bad_files_are_missing_and_the_rest_goes_on(void **state)
{
    (void)state;
    static const char CURRENT[] = "/sys/class/hwmon/hwmon1/curr1_input";
    board_jetson_orin_nano(&tree);
    struct sensor sensor;
    assert_true(drive_open(&sensor_jetson, "jetson", &sensor));
    static const char *const BAD[] = {"", "\n", "abc\n", "12x\n", "-\n", "-500\n"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        tree_write(&tree, CURRENT, "%s", BAD[i]);
        enum err err;
        assert_int_equal(drive_read(&sensor, "VDD_IN", &err).missing, ERR_BAD_VALUE);
        assert_int_equal(err, ERR_OK);
        assert_near(value_of(&sensor, "VDD_SOC"), 1.5, 1e-9);
    }
    /* Just below zero is the monitor's offset on an idle rail: no power. */
    tree_write(&tree, CURRENT, "-16\n");
    assert_near(value_of(&sensor, "VDD_IN"), 0, 0);
    tree_write(&tree, "/sys/class/hwmon/hwmon1/in1_input", "-8\n");
    assert_int_equal(drive_read(&sensor, "VDD_IN", NULL).missing, ERR_BAD_VALUE);
    sensor_close(&sensor);
}

static void a_rail_that_vanished_is_not_left_out_of_the_sum_in_silence(void **state)
{
    (void)state;
    board_jetson_agx_orin(&tree);
    struct sensor_finding finding = only_finding();
    tree_remove(&tree, "/sys/class/hwmon");
    struct sensor sensor;
    struct error why;
    assert_int_equal(sensor_open(&finding, &sensor, &why), ERR_NOT_FOUND);
    assert_true(why.text[0]);
}

static void other_machines_have_no_jetson(void **state)
{
    (void)state;
    struct sensor_finding finding = only_finding();
    assert_int_equal(finding.status, SENSOR_ABSENT);
    assert_true(finding.reason[0]);
    /* Recognised by the device tree alone, whose strings end in a NUL. */
    tree_write_bytes(&tree, "/proc/device-tree/model", 0, "NVIDIA Jetson Xavier NX", 24);
    finding = only_finding();
    assert_int_equal(finding.status, SENSOR_UNSUPPORTED);
    assert_string_equal(finding.name, "NVIDIA Jetson Xavier NX");
    assert_true(finding.reason[0] && finding.fix[0]);
}

static int denied_as_nobody(void *argument)
{
    (void)argument;
    struct sensor_findings findings = drive_probe(&sensor_jetson);
    const struct sensor_finding *finding = drive_find(&findings, "jetson");
    return finding && finding->status == SENSOR_DENIED && finding->reason[0] && finding->fix[0] ? 0
                                                                                                : 1;
}

static void denied_files_are_said_to_be_so(void **state)
{
    (void)state;
    board_jetson_orin_nano(&tree);
    tree_mode(&tree, "", 0755);
    /* One is enough: the others would not be the board. */
    tree_mode(&tree, "/sys/class/hwmon/hwmon1/curr2_input", 0);
    assert_int_equal(drive_as_nobody(denied_as_nobody, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_input_rail_is_the_board, setup, teardown),
        cmocka_unit_test_setup_teardown(without_an_input_rail_the_rails_are_summed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_monitor_of_older_kernels_is_read_too, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_files_are_missing_and_the_rest_goes_on, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_rail_that_vanished_is_not_left_out_of_the_sum_in_silence,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(other_machines_have_no_jetson, setup, teardown),
        cmocka_unit_test_setup_teardown(denied_files_are_said_to_be_so, setup, teardown),
    };
    return RUN_TESTS(tests);
}
