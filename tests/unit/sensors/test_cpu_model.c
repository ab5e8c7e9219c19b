#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "support/boards.h"
#include "support/sensing.h"

static int setup(void **state)
{
    fixture_setup(state);
    struct fixture *f = *state;
    board_host(&f->tree);
    return 0;
}

/* ---- the figures ---- */

struct figure {
    char name[64];
    double watts_per_thread, relative_accuracy;
};

/* As the driver reports it: watts to three decimals. */
static struct figure figure_of_host(struct fixture *f)
{
    struct figure figure = {0};
    assert_int_equal(sensing_start(&f->s, "cpu_model", "cpu_model"), ERR_OK);
    str_copy(figure.name, sizeof figure.name, sensing_fact(&f->s, "figure"));
    figure.watts_per_thread = strtod(sensing_fact(&f->s, "watts_per_thread"), NULL);
    figure.relative_accuracy = f->s.sensor.channels[0].relative_accuracy;
    return figure;
}

static void brands_match_their_part_only(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *brand, *name;
        double watts_per_thread;
    } CASES[] = {
        {"AMD EPYC 9654 96-Core Processor", "EPYC 9654", 360.0 / 192},
        {"AMD EPYC 9654P 96-Core Processor", "EPYC 9654P", 360.0 / 192},
        {"AMD EPYC 7763 64-Core Processor", "EPYC 7763", 280.0 / 128},
        {"AMD Ryzen 9 7950X 16-Core Processor", "Ryzen 9 7950X", 230.0 / 32},
        {"AMD Ryzen 9 7950X3D 16-Core Processor", "Ryzen 9 7950X3D", 162.0 / 32},
        {"AMD Ryzen 7 PRO 7840U w/ Radeon 780M Graphics", "Ryzen 7 PRO 7840U", 28.0 / 16},
        {"AMD Ryzen Threadripper PRO 7995WX 96-Cores", "Ryzen Threadripper PRO 7995WX",
         350.0 / 192},
        {"AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", "Ryzen AI MAX+ 395", 55.0 / 32},
        {"Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", "Xeon E5-2680 v4", 120.0 / 28},
        {"Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz", "Xeon Gold 6248R", 205.0 / 48},
        {"Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz", "Xeon Gold 6248", 150.0 / 40},
        {"Intel(R) Xeon(R) Platinum 8480+", "Xeon Platinum 8480+", 350.0 / 112},
        {"Intel(R) Xeon(R) CPU Max 9480", "Xeon Max 9480", 350.0 / 112},
        {"Intel(R) Xeon(R) 6980P", "Xeon 6980P", 500.0 / 256},
        {"13th Gen Intel(R) Core(TM) i9-13900K", "Core i9-13900K", 253.0 / 32},
        {"Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz", "Core i7-8700", 65.0 / 12},
        {"Intel(R) Core(TM) Ultra 7 155H", "Core Ultra 7 155H", 28.0 / 22},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        board_x86(&f->tree, "GenuineIntel", 6, 999, CASES[i].brand, 2, 1, "");
        struct figure figure = figure_of_host(f);
        assert_string_equal(figure.name, CASES[i].name);
        assert_near(figure.watts_per_thread, CASES[i].watts_per_thread, 5.1e-4);
        assert_near(figure.relative_accuracy, 0.4, 1e-9);
    }
}

static void masked_brands_fall_back_to_family_and_core(void **state)
{
    struct fixture *f = *state;
    board_x86(&f->tree, "GenuineIntel", 6, 207, "Intel(R) Xeon(R) Processor", 2, 1, "hypervisor");
    struct figure figure = figure_of_host(f);
    assert_string_equal(figure.name, "Emerald Rapids");
    assert_near(figure.relative_accuracy, 0.6, 1e-9);
    board_x86(&f->tree, "AuthenticAMD", 25, 1, "AMD EPYC Processor", 2, 1, "hypervisor");
    assert_string_equal(figure_of_host(f).name, "EPYC Milan");
    /* The same numbers of another vendor are a different processor. */
    board_x86(&f->tree, "HygonGenuine", 25, 1, "Hygon C86", 2, 1, "");
    assert_near(figure_of_host(f).relative_accuracy, 0.8, 1e-9);
    board_arm(&f->tree, 0x41, 0xd0c, 2);
    assert_string_equal(figure_of_host(f).name, "Neoverse-N1");
    tree_write(&f->tree, "/sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
    figure = figure_of_host(f);
    assert_string_equal(figure.name, "AWS Graviton2");
    assert_near(figure.relative_accuracy, 0.6, 1e-9); /* no published figure */
    board_arm(&f->tree, 0x41, 0xd0b, 4);
    tree_write_bytes(&f->tree, "/proc/device-tree/model", 0, "Raspberry Pi 5 Model B Rev 1.0", 31);
    assert_string_equal(figure_of_host(f).name, "Raspberry Pi 5");
    tree_remove(&f->tree, "/proc/cpuinfo");
    tree_remove(&f->tree, "/proc/device-tree");
    figure = figure_of_host(f);
    assert_near(figure.relative_accuracy, 0.8, 1e-9);
    assert_true(figure.watts_per_thread > 0);
}

/* ---- the driver ---- */

static void power_follows_utilization_between_idle_and_full_load(void **state)
{
    struct fixture *f = *state;
    board_x86(&f->tree, "AuthenticAMD", 25, 17, "AMD EPYC 9654 96-Core Processor", 4, 1, "");
    const struct sensor_finding *finding = sensing_only(&f->s, "cpu_model");
    assert_int_equal(finding->status, SENSOR_ESTIMATED);
    assert_non_null(strstr(finding->reason, "model"));

    assert_int_equal(sensing_start(&f->s, "cpu_model", "cpu_model"), ERR_OK);
    const struct sensor_channel *power = &f->s.sensor.channels[0];
    assert_true(power->estimated);
    assert_int_equal(power->scope, SCOPE_PACKAGE);
    assert_int_equal(power->location, -1);
    assert_string_equal(power->device, "cpu");

    const double FULL = 4 * 360.0 / 192;
    assert_int_equal(sensing_observe(&f->s, "power").missing, ERR_NO_DATA);
    board_cpu_times(&f->tree, 0, 1100, 0);
    assert_near(sensing_value(&f->s, "power"), FULL * 0.25, 1e-9);
    board_cpu_times(&f->tree, 50, 1150, 0);
    assert_near(sensing_value(&f->s, "power"), FULL * 0.625, 1e-9);
    board_cpu_times(&f->tree, 150, 1150, 0);
    assert_near(sensing_value(&f->s, "power"), FULL, 1e-9);
    assert_true(FULL <= power->watts_max);
    board_cpu_times(&f->tree, 150, 1150, 100); /* all of it stolen: idle for this guest */
    assert_near(sensing_value(&f->s, "power"), FULL * 0.25, 1e-9);
}

static void decreasing_counters_give_no_power(void **state)
{
    struct fixture *f = *state;
    board_cpu_times(&f->tree, 100, 1000, 10);
    assert_int_equal(sensing_start(&f->s, "cpu_model", "cpu_model"), ERR_OK);
    sensing_observe(&f->s, "power");
    static const unsigned BACKWARDS[][3] = {{90, 1100, 10}, {200, 900, 10}, {300, 1200, 0}};
    for (size_t i = 0; i < sizeof BACKWARDS / sizeof *BACKWARDS; i++) {
        board_cpu_times(&f->tree, 100 + (unsigned)i * 100, 1000 + (unsigned)i * 100, 10);
        sensing_observe(&f->s, "power");
        board_cpu_times(&f->tree, BACKWARDS[i][0], BACKWARDS[i][1], BACKWARDS[i][2]);
        assert_int_equal(sensing_observe(&f->s, "power").missing, ERR_NO_DATA);
    }
    tree_write(&f->tree, "/proc/stat", "%s", "");
    assert_int_equal(sensing_observe(&f->s, "power").missing, ERR_BAD_VALUE);
}

static void a_guest_is_charged_for_its_threads_only(void **state)
{
    struct fixture *f = *state;
    board_x86(&f->tree, "GenuineIntel", 6, 207, "Intel(R) Xeon(R) Processor", 2, 1, "hypervisor");
    tree_write(&f->tree, "/sys/devices/system/cpu/smt/active", "0\n");
    assert_int_equal(sensing_start(&f->s, "cpu_model", "cpu_model"), ERR_OK);
    sensing_observe(&f->s, "power");
    board_cpu_times(&f->tree, 100, 1000, 0);
    assert_near(sensing_value(&f->s, "power"), 2 * 2.9, 1e-9);
}

static void without_smt_the_watts_are_shared_by_the_cores(void **state)
{
    struct fixture *f = *state;
    board_x86(&f->tree, "AuthenticAMD", 25, 17, "AMD EPYC 9654 96-Core Processor", 4, 1, "");
    tree_write(&f->tree, "/sys/devices/system/cpu/smt/active", "0\n");
    assert_near(figure_of_host(f).watts_per_thread, 360.0 / 96, 5.1e-4);
    /* A guest cannot know: its CPUs are threads of the host. */
    board_x86(&f->tree, "AuthenticAMD", 25, 17, "AMD EPYC 9654 96-Core Processor", 4, 1,
              "hypervisor");
    assert_near(figure_of_host(f).watts_per_thread, 360.0 / 192, 5.1e-4);
}

static void without_proc_stat_there_is_no_model(void **state)
{
    struct fixture *f = *state;
    tree_remove(&f->tree, "/proc/stat");
    const struct sensor_finding *finding = sensing_only(&f->s, "cpu_model");
    assert_int_equal(finding->status, SENSOR_ABSENT);
    assert_true(finding->reason[0]);
    assert_int_equal(sensing_open(&f->s, finding->id), ERR_NOT_FOUND);
    assert_true(f->s.why.text[0]);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(brands_match_their_part_only),
        CASE(masked_brands_fall_back_to_family_and_core),
        CASE(power_follows_utilization_between_idle_and_full_load),
        CASE(decreasing_counters_give_no_power),
        CASE(a_guest_is_charged_for_its_threads_only),
        CASE(without_smt_the_watts_are_shared_by_the_cores),
        CASE(without_proc_stat_there_is_no_model),
    };
    return RUN_TESTS(tests);
}
