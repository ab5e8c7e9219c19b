/* The mean of several ledgers: which errors repeats reduce, which they do not, and runs with unknown energy. */
#include "attribute/ledger.h"

#include <math.h>
#include "core/text.h"
#include "support/unit.h"

/* A run with one device that has this energy. */
struct run {
    struct ledger ledger;
    struct ledger_device device;
};

static void make_run(struct run *run, double joules, double statistical, double calibration)
{
    *run = (struct run){0};
    run->device.energy = (struct energy){
        .joules = joules,
        .statistical = statistical,
        .plus_minus = hypot(statistical, calibration),
        .coverage = 1,
        .idle_joules = 10,
        .active_joules = joules - 10,
        .method = METHOD_COUNTER,
        .updates = 20,
    };
    str_copy(run->device.id, sizeof run->device.id, "gpu0");
    run->device.has_energy = run->device.counted = true;
    run->device.cross_check = energy_unknown("");
    run->device.residual = UNKNOWN;
    run->device.power_mean = joules / 2;
    run->device.power_max = joules;
    run->ledger.total = run->device.energy;
    run->ledger.devices = &run->device;
    run->ledger.count = 1;
}

static void make_unknown(struct run *run, const char *why)
{
    make_run(run, 1, 1, 1);
    run->device.energy = run->ledger.total = energy_unknown(why);
    run->device.counted = false;
    run->device.power_mean = run->device.power_max = UNKNOWN;
}

static struct ledger mean_of(struct run *runs, size_t count)
{
    const struct ledger *ledgers[8];
    struct ledger out;
    for (size_t i = 0; i < count; i++) {
        runs[i].ledger.devices = &runs[i].device;
        ledgers[i] = &runs[i].ledger;
    }
    ledger_mean(ledgers, count, &out);
    return out;
}

static void test_mean_of_one_run_is_that_run(void **state)
{
    (void)state;
    struct run run;
    make_run(&run, 100, 2, 5);
    struct ledger mean = mean_of(&run, 1);
    assert_near(mean.total.joules, 100, 1e-12);
    assert_near(mean.total.statistical, 2, 1e-12);
    assert_near(mean.total.plus_minus, hypot(2, 5), 1e-12);
    assert_near(mean.total.idle_joules + mean.total.active_joules, 100, 1e-12);
    assert_string_equal(mean.total.note, "");
    ledger_release(&mean);
}

static void test_repeats_reduce_statistical_error_but_not_calibration_error(void **state)
{
    (void)state;
    struct run runs[4];
    static const double JOULES[] = {90, 110, 90, 110};
    for (int i = 0; i < 4; i++)
        make_run(&runs[i], JOULES[i], 0.1, 5);
    struct ledger mean = mean_of(runs, 4);
    double stddev = sqrt(4 * 100.0 / 3);
    assert_near(mean.total.joules, 100, 1e-9);
    assert_near(mean.total.statistical, stddev / 2, 1e-9);
    assert_near(mean.total.plus_minus, hypot(stddev / 2, 5), 1e-9);
    assert_near(mean.devices[0].power_mean, 50, 1e-9);
    assert_near(mean.devices[0].power_max, 110, 1e-9);
    assert_near(mean.total.idle_joules, 10, 1e-9);
    assert_near(mean.total.active_joules, 90, 1e-9);
    ledger_release(&mean);
}

static void test_equal_runs_keep_the_sensor_uncertainty(void **state)
{
    (void)state;
    struct run runs[4];
    for (int i = 0; i < 4; i++)
        make_run(&runs[i], 100, 2, 0);
    struct ledger mean = mean_of(runs, 4);
    /* Zero spread does not make the sensor exact. */
    assert_near(mean.total.statistical, 1, 1e-9);
    ledger_release(&mean);
}

static void test_runs_with_unknown_energy_are_noted(void **state)
{
    (void)state;
    struct run runs[3];
    make_unknown(&runs[0], "it was away");
    make_run(&runs[1], 100, 1, 1);
    make_run(&runs[2], 110, 1, 1);
    struct ledger mean = mean_of(runs, 3);
    assert_near(mean.total.joules, 105, 1e-9);
    assert_string_equal(mean.total.note, "measured in 2 of 3 runs");
    assert_near(mean.devices[0].power_mean, 52.5, 1e-9);
    assert_true(mean.devices[0].counted);
    assert_true(energy_is_measured(&mean.total));
    ledger_release(&mean);
}

/* Two devices; in the second run the large one has no reading, so that its total is the small one's. */
static void test_totals_over_different_devices_are_not_averaged(void **state)
{
    (void)state;
    struct run parts[2];
    struct ledger_device devices[3][2];
    struct ledger ledgers[3];
    const struct ledger *all[3];
    for (int i = 0; i < 3; i++) {
        make_run(&parts[0], 1000, 1, 1);
        make_run(&parts[1], 10, 1, 1);
        if (i == 1)
            make_unknown(&parts[0], "it was away");
        devices[i][0] = parts[0].device;
        devices[i][1] = parts[1].device;
        ledgers[i] = (struct ledger){.devices = devices[i], .count = 2};
        ledgers[i].total = parts[1].device.energy;
        if (i != 1)
            ledgers[i].total.joules += parts[0].device.energy.joules;
        all[i] = &ledgers[i];
    }
    struct ledger mean;
    ledger_mean(all, 3, &mean);
    assert_near(mean.total.joules, 1010, 1e-9);
    assert_string_equal(mean.total.note, "measured in 2 of 3 runs");
    assert_true(mean.devices[0].counted && mean.devices[1].counted);
    assert_near(mean.devices[0].energy.joules + mean.devices[1].energy.joules, 1010, 1e-9);
    ledger_release(&mean);
}

static void test_mean_of_unknown_runs_is_unknown(void **state)
{
    (void)state;
    struct run runs[2];
    make_unknown(&runs[0], "dead");
    make_unknown(&runs[1], "dead");
    struct ledger mean = mean_of(runs, 2);
    assert_int_equal(mean.total.method, METHOD_NONE);
    assert_true(isnan(mean.total.joules));
    assert_string_equal(mean.total.note, "dead");
    assert_true(isnan(mean.devices[0].power_mean));
    ledger_release(&mean);
}

static void test_estimates_are_not_averaged_with_measurements(void **state)
{
    (void)state;
    struct run runs[2];
    make_run(&runs[0], 500, 1, 1);
    runs[0].device.energy.method = runs[0].ledger.total.method = METHOD_ESTIMATED;
    make_run(&runs[1], 100, 1, 1);
    struct ledger mean = mean_of(runs, 2);
    assert_int_equal(mean.total.method, METHOD_COUNTER);
    assert_near(mean.total.joules, 100, 1e-9);
    assert_string_equal(mean.total.note, "measured in 1 of 2 runs");
    ledger_release(&mean);
}

static void test_mean_has_the_weakest_method(void **state)
{
    (void)state;
    struct run runs[2];
    make_run(&runs[0], 100, 1, 1);
    make_run(&runs[1], 102, 1, 1);
    runs[1].ledger.total.method = METHOD_INTEGRAL;
    struct ledger mean = mean_of(runs, 2);
    assert_int_equal(mean.total.method, METHOD_INTEGRAL);
    ledger_release(&mean);
}

static void test_a_later_runs_note_is_kept(void **state)
{
    (void)state;
    struct run runs[2];
    make_run(&runs[0], 100, 1, 1);
    make_run(&runs[1], 50, 1, 1);
    str_copy(runs[1].ledger.total.note, sizeof runs[1].ledger.total.note,
             "without gpu1: device lost");
    runs[1].ledger.total.coverage = 0.5;
    runs[1].ledger.total.low_confidence = true;
    struct ledger mean = mean_of(runs, 2);
    assert_string_equal(mean.total.note, "without gpu1: device lost");
    assert_near(mean.total.coverage, 0.75, 1e-9);
    assert_true(mean.total.low_confidence);
    ledger_release(&mean);
}

static void test_devices_are_matched_by_id(void **state)
{
    (void)state;
    struct run runs[2];
    for (int i = 0; i < 2; i++) {
        make_run(&runs[i], 100, 1, 1);
        struct ledger_device *device = &runs[i].device;
        device->part_count = 2;
        for (int p = 0; p < 2; p++) {
            bool first = (p == 0) == (i == 0); /* in reverse order in the second run */
            str_copy(device->parts[p].name, sizeof device->parts[p].name,
                     first ? "core" : "uncore");
            device->parts[p].energy = device->energy;
            device->parts[p].energy.joules = first ? 30 : 5;
        }
        device->cross_check = device->energy;
        device->residual = i ? 0.01 : 0.03;
    }
    struct ledger mean = mean_of(runs, 2);
    assert_string_equal(mean.devices[0].parts[0].name, "core");
    assert_near(mean.devices[0].parts[0].energy.joules, 30, 1e-9);
    assert_near(mean.devices[0].parts[1].energy.joules, 5, 1e-9);
    assert_near(mean.devices[0].residual, 0.02, 1e-9);
    ledger_release(&mean);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_of_one_run_is_that_run),
        cmocka_unit_test(test_repeats_reduce_statistical_error_but_not_calibration_error),
        cmocka_unit_test(test_equal_runs_keep_the_sensor_uncertainty),
        cmocka_unit_test(test_runs_with_unknown_energy_are_noted),
        cmocka_unit_test(test_mean_of_unknown_runs_is_unknown),
        cmocka_unit_test(test_totals_over_different_devices_are_not_averaged),
        cmocka_unit_test(test_estimates_are_not_averaged_with_measurements),
        cmocka_unit_test(test_mean_has_the_weakest_method),
        cmocka_unit_test(test_a_later_runs_note_is_kept),
        cmocka_unit_test(test_devices_are_matched_by_id),
    };
    return RUN_TESTS(tests);
}
