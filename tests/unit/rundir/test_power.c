#include "support/unit.h"

#include <math.h>
#include <string.h>

#include "rundir/samples.h"
#include "rundir/summary.h"
#include "support/tree_fixture.h"

static void write_samples(const char *rows)
{
    tree_write(&tree, "/samples.csv",
               "t_s,sensor,device,channel,scope,quantity,unit,value,sum,covered,t_plus_minus_s\n%s",
               rows);
}

static double total(const struct power *power, const double *of)
{
    double sum = 0;

    for (size_t i = 0; i < power->grid.count; i++)
        sum += of[i];
    return sum;
}

static void buckets_add_up_to_the_counter(void **state)
{
    (void)state;
    struct power power;
    write_samples("-1.0,r:0,cpu0,package,package,energy,J,,0,0,\n"
                  "0.5,r:0,cpu0,package,package,energy,J,40,60,1,\n"
                  "0.7,r:0,cpu0,package,package,energy,J,100,80,1,\n"
                  "3.7,r:0,cpu0,package,package,energy,J,,80,0,\n"
                  "4.0,r:0,cpu0,package,package,energy,J,10,83,1,\n"
                  "0.5,r:0,cpu0,temp,none,temperature,C,40,60,1,\n");
    assert_int_equal(power_read(tree.root, 1, &(struct summary){0}, 6000, &power, NULL), ERR_OK);
    assert_int_equal(power.count, 1);
    const struct power_channel *channel = power.channels;
    assert_true(fabs(total(&power, channel->joules) - 83) < 1e-9);
    /* 1.5 + 0.2 + 0.3 s: the gap is not covered. */
    assert_true(fabs(total(&power, channel->covered_s) - 2) < 1e-9);
    double largest = 0;
    for (size_t i = 0; i < power.grid.count; i++)
        largest = fmax(largest, channel->max[i]);
    assert_true(fabs(largest - 100) < 1e-9);
    power_release(&power);
}

static void the_finest_channel_of_each_counted_device_is_drawn(void **state)
{
    (void)state;
    struct summary_device gpu = {.id = "gpu0", .energy.source = "nvml:0 energy + rapl:0 package"};
    struct summary summary = {.devices = &gpu, .device_count = 1};
    struct power power;
    write_samples("0.0,nvml:0,gpu0,energy,gpu,energy,J,,0,0,\n"
                  "1.0,nvml:0,gpu0,energy,gpu,energy,J,100,100,1,\n"
                  "0.0,nvml:0,gpu0,power.samples,gpu,power,W,90,0,0,\n"
                  "0.5,nvml:0,gpu0,power.samples,gpu,power,W,130,55,1,\n"
                  "1.0,nvml:0,gpu0,power.samples,gpu,power,W,70,105,1,\n"
                  "0.0,nvml:0,gpu0,power.memory,gpu_memory,power,W,20,0,0,\n"
                  "0.2,nvml:0,gpu0,power.memory,gpu_memory,power,W,20,4,1,\n"
                  "0.4,nvml:0,gpu0,power.memory,gpu_memory,power,W,20,8,1,\n"
                  "0.6,nvml:0,gpu0,power.memory,gpu_memory,power,W,20,12,1,\n"
                  "0.0,\"odd, \"\"x\"\"\",cpu1,package,package,energy,J,,0,0,\n"
                  "not a time,rapl:0,cpu0,package,package,energy,J,,0,0,\n"
                  "1.0,rapl:0,cpu0,package,package,energy,J,5");
    assert_int_equal(power_read(tree.root, 1, &summary, 6000, &power, NULL), ERR_OK);
    size_t shown = 0;
    for (size_t i = 0; i < power.count; i++) {
        shown += power.channels[i].shown;
        if (power.channels[i].shown)
            assert_string_equal(power.channels[i].name, "power.samples");
    }
    assert_int_equal(shown, 1);
    assert_string_equal(power.channels[power.count - 1].sensor, "odd, \"x\"");
    assert_int_equal(power.damaged, 1);
    power_release(&power);
}

static void files_with_wrong_columns_or_no_energy_are_reported(void **state)
{
    (void)state;
    struct power power;
    struct error why = {0};
    write_samples("0.5,r:0,cpu0,temp,none,temperature,C,40,60,1,\n");
    assert_int_equal(power_read(tree.root, 1, &(struct summary){0}, 6000, &power, &why),
                     ERR_NO_DATA);
    assert_non_null(strstr(why.text, "start 1"));
    assert_int_equal(power_read(tree.root, 2, NULL, 6000, &power, &why), ERR_NOT_FOUND);
    tree_write(&tree, "/samples.csv", "a,b\n");
    assert_int_equal(power_read(tree.root, 1, &(struct summary){0}, 6000, &power, &why),
                     ERR_BAD_VALUE);
}

/* The package's joules include the core's: without a summary that names sources, the core is not drawn next to it. */
static void without_sources_the_outermost_scope_is_drawn(void **state)
{
    (void)state;
    struct power power;
    write_samples("0.0,r:0,cpu0,core,core,energy,J,,0,0,\n"
                  "0.5,r:0,cpu0,core,core,energy,J,20,10,1,\n"
                  "1.0,r:0,cpu0,core,core,energy,J,20,20,1,\n"
                  "0.0,r:0,cpu0,package,package,energy,J,,0,0,\n"
                  "1.0,r:0,cpu0,package,package,energy,J,40,40,1,\n");
    assert_int_equal(power_read(tree.root, 1, &(struct summary){0}, 2, &power, NULL), ERR_OK);
    assert_int_equal(power.count, 2);
    assert_false(power.channels[0].shown);
    assert_true(power.channels[1].shown);
    for (size_t i = 0; i < power.grid.count; i++)
        assert_true(fabs(power_mean(&power.channels[1], i) - 40) < 1e-9);
    power_release(&power);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_add_up_to_the_counter),
        cmocka_unit_test(the_finest_channel_of_each_counted_device_is_drawn),
        cmocka_unit_test(files_with_wrong_columns_or_no_energy_are_reported),
        cmocka_unit_test(without_sources_the_outermost_scope_is_drawn),
    };
    return cmocka_run_group_tests(tests, tree_set_up, tree_tear_down);
}
