/* test: tsan */
/* The ledger over scripted sensors: which channel a device's energy is from, what is summed, and the notes. */
#include "attribute/ledger.h"

#include <math.h>
#include <string.h>

#include "sampler/sampler.h"
#include "support/scripted.h"
#include "support/unit.h"

#define FROM 1.0
#define TO   3.0

/* ---- a machine, its ledger over [FROM, TO], and accessors ---- */

struct fixture {
    struct sampler *sampler;
    struct ledger ledger;
};

static void setup(struct fixture *f, const struct scripted_channel *channels)
{
    const struct scripted_channel *sensors[] = {channels, NULL};
    f->sampler = scripted_start(sensors);
    assert_int_equal(
        ledger_take(f->sampler, scripted_time(FROM), scripted_time(TO), NULL, &f->ledger), ERR_OK);
}

static void release(struct fixture *f)
{
    ledger_release(&f->ledger);
    scripted_stop(f->sampler);
}

static const struct ledger_device *device(const struct fixture *f, const char *id)
{
    for (size_t i = 0; i < f->ledger.count; i++)
        if (!strcmp(f->ledger.devices[i].id, id))
            return &f->ledger.devices[i];
    print_error("no device %s\n", id);
    fail();
    return f->ledger.devices; /* not reached */
}

static void assert_unknown(const struct energy *energy)
{
    assert_int_equal(energy->method, METHOD_NONE);
    assert_true(isnan(energy->joules));
    assert_true(isnan(energy->plus_minus));
    assert_true(isnan(energy->coverage));
    assert_true(energy->note[0] != '\0');
}

static void assert_note(const char *note, const char *words)
{
    if (!strstr(note, words)) {
        print_error("'%s' does not contain '%s'\n", note, words);
        fail();
    }
}

/* Scripted channels: a counter, a power sensor. */
#define COUNTER(n, d, s, l, w)                                                                     \
    .name = (n), .device = (d), .quantity = QTY_ENERGY, .scope = SCOPE_##s, .location = (l),       \
    .value = (w)
#define POWER(n, d, s, l, w)                                                                       \
    .name = (n), .device = (d), .quantity = QTY_POWER, .scope = SCOPE_##s, .location = (l),        \
    .value = (w)

/* ---- one device ---- */

static void test_counter_is_preferred_to_integral(void **state)
{
    (void)state;
    struct fixture f;
    /* The integral comes first: the order must not matter. */
    setup(&f, (const struct scripted_channel[]){
                  {POWER("power", "gpu0", GPU, 0, 103), .secondary = true},
                  {COUNTER("energy", "gpu0", GPU, 0, 100), .relative_accuracy = 0.05},
                  {0}});
    const struct ledger_device *gpu = device(&f, "gpu0");
    assert_int_equal(gpu->energy.method, METHOD_COUNTER);
    assert_string_equal(gpu->energy.source, "test:0 energy");
    assert_near(gpu->energy.joules, 200, 0.01);
    assert_near(gpu->energy.coverage, 1, 1e-9);
    assert_near(gpu->power_mean, 100, 0.01);
    /* The peak is from the finer of the two. */
    assert_near(gpu->power_max, 103, 0.5);
    assert_near(gpu->energy.plus_minus, hypot(gpu->energy.statistical, 0.05 * 200), 0.01);
    assert_false(gpu->energy.low_confidence);
    assert_true(isnan(gpu->energy.idle_joules) && isnan(gpu->energy.active_joules));
    assert_string_equal(gpu->energy.note, "");

    assert_int_equal(gpu->cross_check.method, METHOD_INTEGRAL);
    assert_near(gpu->cross_check.joules, 206, 0.01);
    assert_near(gpu->residual, 0.03, 0.001);
    assert_int_equal(gpu->part_count, 0);

    assert_int_equal(f.ledger.total.method, METHOD_COUNTER);
    assert_near(f.ledger.total.joules, 200, 0.01);
    assert_true(energy_is_measured(&f.ledger.total));
    release(&f);
}

static void test_secondary_channel_is_used_when_the_counter_is_dead(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f,
          (const struct scripted_channel[]){{COUNTER("energy", "gpu0", GPU, 0, 100), .dead = true},
                                            {POWER("power", "gpu0", GPU, 0, 50), .secondary = true},
                                            {0}});
    assert_int_equal(device(&f, "gpu0")->energy.method, METHOD_INTEGRAL);
    assert_near(f.ledger.total.joules, 100, 0.01);
    assert_int_equal(device(&f, "gpu0")->cross_check.method, METHOD_NONE);
    assert_true(isnan(device(&f, "gpu0")->residual));
    release(&f);
}

/* The counter ended half-way: the samples, which continued, give the energy; the counter still
 * checks their power. */
static void test_residual_compares_mean_power_not_energy(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, (const struct scripted_channel[]){
                  {COUNTER("energy", "gpu0", GPU, 0, 100), .ends_s = 2},
                  {POWER("power", "gpu0", GPU, 0, 102), .secondary = true},
                  {0}});
    const struct ledger_device *gpu = device(&f, "gpu0");
    assert_int_equal(gpu->energy.method, METHOD_INTEGRAL);
    assert_near(gpu->energy.coverage, 1, 0.02);
    assert_near(gpu->energy.joules, 204, 3);
    assert_near(gpu->cross_check.coverage, 0.5, 0.02);
    assert_near(gpu->residual, 100.0 / 102 - 1, 0.005);
    release(&f);
}

static void test_dead_counter_is_unknown(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, (const struct scripted_channel[]){
                  {COUNTER("psys", "psys", PLATFORM, -1, 1), .dead = true}, {0}});
    assert_unknown(&device(&f, "psys")->energy);
    assert_note(device(&f, "psys")->energy.note, "counter did not change");
    assert_true(device(&f, "psys")->has_energy);
    assert_false(device(&f, "psys")->counted);
    assert_true(isnan(device(&f, "psys")->power_mean) && isnan(device(&f, "psys")->power_max));
    assert_unknown(&f.ledger.total);
    assert_note(f.ledger.total.note, "counter did not change");
    assert_false(energy_is_measured(&f.ledger.total));
    release(&f);
}

static void test_constant_zero_power_is_unknown(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, (const struct scripted_channel[]){{POWER("power", "gpu0", GPU, 0, 0)}, {0}});
    assert_unknown(&device(&f, "gpu0")->energy);
    assert_note(device(&f, "gpu0")->energy.note, "0 W");
    assert_unknown(&f.ledger.total);
    release(&f);
}

static void test_failing_reads_are_unknown(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, (const struct scripted_channel[]){
                  {COUNTER("package", "cpu0", PACKAGE, 0, 80), .missing = true}, {0}});
    assert_unknown(&f.ledger.total);
    assert_note(device(&f, "cpu0")->energy.note, "input or output failed");
    release(&f);
}

static void test_without_sensors_energy_is_unknown(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, (const struct scripted_channel[]){
                  {"utilisation", "host", QTY_UTILIZATION, .location = -1, .value = 40}, {0}});
    assert_unknown(&f.ledger.total);
    assert_false(device(&f, "host")->has_energy);
    assert_near(device(&f, "host")->gauges[QTY_UTILIZATION].mean, 40, 1e-6);
    assert_near(device(&f, "host")->gauges[QTY_UTILIZATION].max, 40, 1e-3);
    assert_false(device(&f, "host")->gauges[QTY_CLOCK].present);
    release(&f);
}

static void test_lost_device_reduces_coverage(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, (const struct scripted_channel[]){
                  {COUNTER("energy", "gpu0", GPU, 0, 100), .ends_s = 2.5}, {0}});
    const struct energy *energy = &device(&f, "gpu0")->energy;
    assert_near(energy->coverage, 0.75, 0.02);
    assert_near(energy->joules, 150, 3);
    assert_near(device(&f, "gpu0")->power_mean, 100, 0.5);
    assert_note(energy->note, "not covered");
    assert_near(f.ledger.total.coverage, energy->coverage, 1e-12);
    release(&f);
}

static void test_counter_reset_gives_no_negative_or_zero_energy(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, (const struct scripted_channel[]){
                  {COUNTER("energy", "gpu0", GPU, 0, 100), .reset_s = 2}, {0}});
    const struct energy *energy = &device(&f, "gpu0")->energy;
    assert_true(energy->coverage < 1 && energy->coverage > 0.98);
    assert_near(energy->joules, 200, 3);
    release(&f);
}

static void test_short_window_has_low_confidence(void **state)
{
    (void)state;
    struct fixture f;
    struct ledger brief;
    setup(&f, (const struct scripted_channel[]){{COUNTER("package", "cpu0", PACKAGE, 0, 80)}, {0}});
    assert_int_equal(
        ledger_take(f.sampler, scripted_time(1.001), scripted_time(1.052), NULL, &brief), ERR_OK);
    assert_true(brief.total.updates < 10);
    assert_true(brief.total.low_confidence);
    assert_near(brief.total.joules, 80 * 0.051, 0.05);
    ledger_release(&brief);
    release(&f);
}

static void test_note_names_the_only_measured_part(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, (const struct scripted_channel[]){
                  {COUNTER("package", "cpu0", PACKAGE, 0, 1), .dead = true},
                  {COUNTER("core", "cpu0", CORE, 0, 30)},
                  {0}});
    assert_near(device(&f, "cpu0")->energy.joules, 60, 0.01);
    assert_note(device(&f, "cpu0")->energy.note, "core only");
    release(&f);
}

static void test_channel_without_scope_is_not_summed(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, (const struct scripted_channel[]){
                  {POWER("power1", "nvme0", NONE, -1, 7)},
                  {POWER("power", "cpu", PACKAGE, -1, 20), .estimated = true},
                  {0}});
    assert_near(device(&f, "nvme0")->energy.joules, 14, 0.01);
    assert_false(device(&f, "nvme0")->counted);
    /* ... and does not exclude the only energy figure of the machine either. */
    assert_int_equal(f.ledger.total.method, METHOD_ESTIMATED);
    assert_near(f.ledger.total.joules, 40, 0.01);
    release(&f);
}

/* ---- estimates ---- */

static void test_estimates_are_not_added_to_measurements(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, (const struct scripted_channel[]){
                  {POWER("power", "cpu", PACKAGE, -1, 55), .estimated = true},
                  {COUNTER("energy", "gpu0", GPU, 0, 100)},
                  {0}});
    assert_int_equal(device(&f, "cpu")->energy.method, METHOD_ESTIMATED);
    assert_near(device(&f, "cpu")->energy.joules, 110, 0.01);
    assert_false(device(&f, "cpu")->counted);
    assert_int_equal(f.ledger.total.method, METHOD_COUNTER);
    assert_near(f.ledger.total.joules, 200, 0.01);
    assert_note(f.ledger.total.note, "without cpu: only estimated");
    release(&f);
}

static void test_total_of_an_estimate_is_an_estimate(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, (const struct scripted_channel[]){
                  {POWER("power", "cpu", PACKAGE, -1, 55), .estimated = true},
                  {COUNTER("psys", "psys", PLATFORM, -1, 1), .dead = true},
                  {0}});
    assert_int_equal(f.ledger.total.method, METHOD_ESTIMATED);
    assert_near(f.ledger.total.joules, 110, 0.01);
    assert_false(energy_is_measured(&f.ledger.total));
    assert_string_equal(f.ledger.total.note, "");
    release(&f);
}

static void test_estimate_of_the_whole_does_not_replace_a_measured_part(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, (const struct scripted_channel[]){
                  {COUNTER("core", "cpu0", CORE, 0, 30), .secondary = true},
                  {POWER("model", "cpu0", PACKAGE, 0, 90), .estimated = true},
                  {POWER("guess", "node", NODE, -1, 500), .estimated = true},
                  {0}});
    assert_int_equal(device(&f, "cpu0")->energy.method, METHOD_COUNTER);
    assert_int_equal(f.ledger.total.method, METHOD_COUNTER);
    assert_near(f.ledger.total.joules, 60, 0.01);
    release(&f);
}

/* ---- sums without double counting ---- */

enum { ROWS = 8 };

static const struct {
    const char *name;
    struct scripted_channel channels[ROWS];
    const char *counted; /* ids, in the ledger's order */
    double watts;        /* mean power of the total; 0: unknown */
    const char *note;    /* substring of the total's note; "" for none */
} SUMS[] = {
    {"psys contains packages, memory and cores",
     {{COUNTER("package", "cpu0", PACKAGE, 0, 50)},
      {COUNTER("core", "cpu0", CORE, 0, 30)},
      {COUNTER("dram", "dram0", DRAM, 0, 10)},
      {COUNTER("psys", "psys", PLATFORM, -1, 90)}},
     "psys",
     90,
     ""},
    {"two sockets with their memory",
     {{COUNTER("package", "cpu0", PACKAGE, 0, 50)},
      {COUNTER("dram", "dram0", DRAM, 0, 10)},
      {COUNTER("package", "cpu1", PACKAGE, 1, 45)},
      {COUNTER("dram", "dram1", DRAM, 1, 9)}},
     "cpu0 dram0 cpu1 dram1",
     114,
     ""},
    {"a dead psys leaves the packages",
     {{COUNTER("psys", "psys", PLATFORM, -1, 1), .dead = true},
      {COUNTER("package", "cpu0", PACKAGE, 0, 50)},
      {COUNTER("package", "cpu1", PACKAGE, 1, 45)}},
     "cpu0 cpu1",
     95,
     ""},
    {"a psys for the whole machine of two sockets",
     {{COUNTER("package", "cpu0", PACKAGE, 0, 50)},
      {COUNTER("package", "cpu1", PACKAGE, 1, 45)},
      {COUNTER("psys", "psys", PLATFORM, -1, 150)}},
     "psys",
     150,
     ""},
    {"a psys for each of two sockets",
     {{COUNTER("package", "cpu0", PACKAGE, 0, 50)},
      {COUNTER("package", "cpu1", PACKAGE, 1, 45)},
      {COUNTER("psys", "psys0", PLATFORM, 0, 80)},
      {COUNTER("psys", "psys1", PLATFORM, 1, 75)}},
     "psys0 psys1",
     155,
     ""},
    {"one psys of two is alive: what it spans is unknown, the packages are not",
     {{COUNTER("package", "cpu0", PACKAGE, 0, 50)},
      {COUNTER("package", "cpu1", PACKAGE, 1, 45)},
      {COUNTER("psys", "psys0", PLATFORM, 0, 150)},
      {COUNTER("psys", "psys1", PLATFORM, 1, 1), .dead = true}},
     "cpu0 cpu1",
     95,
     ""},
    {"the same, where the dead one is not even listed and a package is dead too",
     {{COUNTER("package", "cpu0", PACKAGE, 0, 50), .dead = true},
      {COUNTER("package", "cpu1", PACKAGE, 1, 45)},
      {COUNTER("psys", "psys0", PLATFORM, 0, 150)}},
     "cpu1",
     45,
     "without cpu0"},
    {"one psys of two is alive and nothing else measures",
     {{COUNTER("psys", "psys0", PLATFORM, 0, 150)},
      {COUNTER("psys", "psys1", PLATFORM, 1, 1), .dead = true}},
     "psys0",
     150,
     "without psys1"},
    {"a node's meter contains everything",
     {{POWER("power1", "node", NODE, -1, 400)},
      {COUNTER("package", "cpu0", PACKAGE, 0, 50)},
      {COUNTER("psys", "psys", PLATFORM, -1, 90)},
      {COUNTER("energy", "gpu0", GPU, 0, 100)},
      {POWER("module", "module0", MODULE, 0, 150)}},
     "node",
     400,
     ""},
    {"a module contains its GPU and its CPU",
     {{POWER("module", "module0", MODULE, 0, 300)},
      {POWER("cpu", "cpu0", GRACE_CPU, 0, 80)},
      {COUNTER("energy", "gpu0", GPU, 0, 200)}},
     "module0",
     300,
     ""},
    {"two modules contain a GPU each",
     {{POWER("module", "module0", MODULE, 0, 300)},
      {POWER("module", "module1", MODULE, 1, 310)},
      {COUNTER("energy", "gpu0", GPU, 0, 200)},
      {COUNTER("energy", "gpu1", GPU, 1, 210)}},
     "module0 module1",
     610,
     ""},
    {"of two GPUs and one module nobody knows which it contains",
     {{POWER("module", "module0", MODULE, 0, 300)},
      {POWER("cpu", "cpu0", GRACE_CPU, 0, 80)},
      {COUNTER("energy", "gpu0", GPU, 0, 200)},
      {COUNTER("energy", "gpu1", GPU, 1, 210)}},
     "cpu0 gpu0 gpu1",
     490,
     ""},
    {"a board contains its rails",
     {{POWER("VDD_IN", "board", BOARD, -1, 12)},
      {POWER("VDD_CPU", "rail:cpu", RAIL, 1, 5)},
      {POWER("VDD_SOC", "rail:soc", RAIL, 2, 4)}},
     "board",
     12,
     ""},
    {"rails without a board's input add up",
     {{POWER("VDD_IN", "board", BOARD, -1, 0)},
      {POWER("VDD_CPU", "rail:cpu", RAIL, 1, 5)},
      {POWER("VDD_SOC", "rail:soc", RAIL, 2, 4)}},
     "rail:cpu rail:soc",
     9,
     ""},
    {"two meters of one place: the better counts, once",
     {{POWER("power", "node", NODE, -1, 400)}, {COUNTER("energy", "psu", NODE, -1, 410)}},
     "psu",
     410,
     ""},
    {"GPUs beside psys",
     {{COUNTER("psys", "psys", PLATFORM, -1, 90)},
      {COUNTER("energy", "gpu0", GPU, 0, 100)},
      {COUNTER("energy", "gpu1", GPU, 1, 110)}},
     "psys gpu0 gpu1",
     300,
     ""},
    {"a missing GPU is named",
     {{COUNTER("package", "cpu0", PACKAGE, 0, 50)},
      {COUNTER("energy", "gpu0", GPU, 0, 1), .dead = true}},
     "cpu0",
     50,
     "without gpu0: test:0 energy: counter did not change"},
    {"several missing ones are counted",
     {{COUNTER("package", "cpu0", PACKAGE, 0, 50)},
      {COUNTER("energy", "gpu0", GPU, 0, 1), .missing = true},
      {COUNTER("energy", "gpu1", GPU, 1, 1), .missing = true}},
     "cpu0",
     50,
     "without gpu0 and 1 more"},
};

static void test_total_counts_each_joule_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SUMS / sizeof *SUMS; i++) {
        struct fixture f;
        char counted[256] = "";
        double sum = 0;
        print_message("  %s\n", SUMS[i].name);
        setup(&f, SUMS[i].channels);
        for (size_t d = 0; d < f.ledger.count; d++) {
            const struct ledger_device *device = &f.ledger.devices[d];
            if (!device->counted)
                continue;
            size_t used = strlen(counted);
            snprintf(counted + used, sizeof counted - used, "%s%s", used ? " " : "", device->id);
            sum += device->energy.joules;
        }
        assert_string_equal(counted, SUMS[i].counted);
        assert_near(f.ledger.total.joules, SUMS[i].watts * (TO - FROM), 0.1);
        assert_near(f.ledger.total.joules, sum, 1e-9);
        assert_near(f.ledger.total.coverage, 1, 1e-9);
        if (SUMS[i].note[0])
            assert_note(f.ledger.total.note, SUMS[i].note);
        else
            assert_string_equal(f.ledger.total.note, "");
        release(&f);
    }
}

static void test_parts_are_listed_with_the_whole(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, SUMS[0].channels);
    const struct ledger_device *cpu = device(&f, "cpu0");
    assert_int_equal(cpu->part_count, 1);
    assert_string_equal(cpu->parts[0].name, "core");
    assert_near(cpu->parts[0].energy.joules, 60, 0.01);
    assert_near(cpu->energy.joules, 100, 0.01);
    assert_false(cpu->counted);
    release(&f);
}

static void test_note_says_why_uncertain_psys_is_excluded(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, SUMS[5].channels);
    assert_note(device(&f, "psys0")->energy.note, "not in the total");
    assert_near(device(&f, "psys0")->energy.joules, 300, 0.1);
    release(&f);
}

static void test_total_names_its_sources_and_weakest_method(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, (const struct scripted_channel[]){
                  {COUNTER("package", "cpu0", PACKAGE, 0, 50), .relative_accuracy = 0.03},
                  {POWER("power", "gpu0", GPU, 0, 100), .relative_accuracy = 0.05},
                  {0}});
    const struct energy *total = &f.ledger.total;
    assert_int_equal(total->method, METHOD_INTEGRAL);
    assert_string_equal(total->source, "test:0 package + test:0 power");
    assert_near(total->plus_minus, hypot(3, 10), 0.1);
    release(&f);
}

/* Three overlapping channels, each of which would yield to the next: one of them counts. */
static void test_overlapping_channels_count_once_at_any_coverage(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, (const struct scripted_channel[]){
                  {COUNTER("a", "cpu0", PACKAGE, -1, 100), .secondary = true},
                  {POWER("b", "cpu1", PACKAGE, -1, 100), .ends_s = 2.92},
                  {COUNTER("c", "cpu2", PACKAGE, -1, 100), .ends_s = 2.84},
                  {0}});
    size_t counted = 0;
    for (size_t i = 0; i < f.ledger.count; i++)
        counted += f.ledger.devices[i].counted;
    assert_int_equal(counted, 1);
    assert_true(f.ledger.total.joules > 180 && f.ledger.total.joules < 201);
    release(&f);
}

/* Eight cards of a model that reads low have the same relative uncertainty as one. */
static void test_calibration_errors_of_one_sensor_model_are_correlated(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, (const struct scripted_channel[]){
                  {COUNTER("energy", "gpu0", GPU, 0, 50), .relative_accuracy = 0.03},
                  {COUNTER("energy2", "gpu1", GPU, 1, 50), .relative_accuracy = 0.03},
                  {COUNTER("dram", "dram0", DRAM, 0, 50), .relative_accuracy = 0.03},
                  {0}});
    assert_near(f.ledger.total.joules, 300, 0.1);
    assert_near(f.ledger.total.plus_minus, hypot(6, 3), 0.1);
    release(&f);
}

/* ---- windows and idle ---- */

static void test_adjacent_windows_add_up(void **state)
{
    (void)state;
    struct fixture f;
    static const double EDGES[] = {FROM, 1.0037, 1.2, 2.03333, 2.6, TO};
    double sum = 0;
    setup(&f, (const struct scripted_channel[]){
                  {COUNTER("package", "cpu0", PACKAGE, 0, 50), .step_s = 2.1, .step_value = 150},
                  {POWER("power", "gpu0", GPU, 0, 100), .step_s = 1.4, .step_value = 20},
                  {0}});
    for (size_t i = 0; i + 1 < sizeof EDGES / sizeof *EDGES; i++) {
        struct ledger part;
        assert_int_equal(ledger_take(f.sampler, scripted_time(EDGES[i]),
                                     scripted_time(EDGES[i + 1]), NULL, &part),
                         ERR_OK);
        sum += part.total.joules;
        ledger_release(&part);
    }
    assert_near(sum, f.ledger.total.joules, 1e-6);
    release(&f);
}

static void test_idle_and_active_energy_add_up(void **state)
{
    (void)state;
    struct fixture f;
    struct ledger rest, work;
    struct baseline idle;
    setup(&f, (const struct scripted_channel[]){
                  {COUNTER("package", "cpu0", PACKAGE, 0, 20.3), .step_s = 2, .step_value = 77.7},
                  {POWER("power", "gpu0", GPU, 0, 81), .step_s = 2, .step_value = 333},
                  {0}});
    assert_int_equal(ledger_take(f.sampler, scripted_time(0.5), scripted_time(1.5), NULL, &rest),
                     ERR_OK);
    assert_int_equal(baseline_from(&rest, &idle), ERR_OK);
    assert_int_equal(idle.count, 2);
    assert_near(idle.seconds, 1, 1e-9);
    assert_near(idle.rows[0].watts, 20.3, 0.01);
    assert_true(idle.rows[0].sigma >= 0 && idle.rows[0].sigma < 1);

    assert_int_equal(ledger_take(f.sampler, scripted_time(2.5), scripted_time(3.5), &idle, &work),
                     ERR_OK);
    for (size_t i = 0; i < work.count; i++) {
        const struct energy *energy = &work.devices[i].energy;
        assert_near(energy->idle_joules, idle.rows[i].watts, 1e-6);
        assert_near(energy->idle_joules + energy->active_joules, energy->joules,
                    1e-12 * energy->joules);
    }
    assert_near(work.total.idle_joules, 101.3, 0.1);
    assert_near(work.total.idle_joules + work.total.active_joules, work.total.joules, 1e-9);
    ledger_release(&rest);
    ledger_release(&work);
    baseline_release(&idle);
    release(&f);
}

static void test_idle_energy_without_baseline_is_unknown(void **state)
{
    (void)state;
    struct fixture f;
    struct ledger work;
    struct baseline_row row = {.device = "cpu0", .watts = 20};
    struct baseline idle = {.rows = &row, .count = 1, .seconds = 1};
    setup(&f, (const struct scripted_channel[]){{COUNTER("package", "cpu0", PACKAGE, 0, 50)},
                                                {COUNTER("energy", "gpu0", GPU, 0, 100)},
                                                {0}});
    assert_int_equal(ledger_take(f.sampler, scripted_time(1), scripted_time(2), &idle, &work),
                     ERR_OK);
    assert_near(work.devices[0].energy.idle_joules, 20, 1e-6);
    assert_true(isnan(work.devices[1].energy.idle_joules));
    assert_true(isnan(work.total.idle_joules) && isnan(work.total.active_joules));
    assert_near(work.total.joules, 150, 0.1);
    ledger_release(&work);
    release(&f);
}

static void test_window_outside_the_history_is_unknown(void **state)
{
    (void)state;
    struct fixture f;
    struct ledger before;
    setup(&f, (const struct scripted_channel[]){{COUNTER("package", "cpu0", PACKAGE, 0, 50)}, {0}});
    assert_int_equal(ledger_take(f.sampler, scripted_time(-2), scripted_time(-1), NULL, &before),
                     ERR_OK);
    assert_unknown(&before.total);
    ledger_release(&before);
    release(&f);
}

/* ---- selections ---- */

static struct ledger_device measured_device(const char *id, double joules, enum method method)
{
    struct ledger_device it = {.has_energy = true,
                               .energy = {.joules = joules, .method = method, .updates = 100}};
    snprintf(it.id, sizeof it.id, "%s", id);
    snprintf(it.energy.source, sizeof it.energy.source, "meter of %s", id);
    return it;
}

static void test_default_selection_is_cpu_and_dram(void **state)
{
    (void)state;
    struct ledger_device devices[] = {
        measured_device("gpu0", 1000, METHOD_COUNTER), measured_device("cpu0", 30, METHOD_COUNTER),
        measured_device("dram0", 5, METHOD_COUNTER), measured_device("psys", UNKNOWN, METHOD_NONE)};
    struct ledger ledger = {.devices = devices, .count = 4};
    struct ledger_selection found;
    struct error why = {0};
    devices[2].energy.updates = 40;
    assert_int_equal(ledger_select(&ledger, NULL, &found, &why), ERR_OK);
    assert_near(found.joules, 35, 1e-9);
    assert_near(found.updates, 40, 1e-9);
    assert_false(found.is_estimated);
    assert_string_equal(found.devices, "cpu0 + dram0");
    assert_int_equal(ledger_select(&ledger, "gpu0", &found, &why), ERR_OK);
    assert_near(found.joules, 1000, 1e-9);
    assert_int_equal(ledger_select(&ledger, "psys", &found, &why), ERR_NO_DATA);
    assert_contains(why.text, "gpu0 + cpu0 + dram0");
    devices[1].energy.method = METHOD_ESTIMATED;
    assert_int_equal(ledger_select(&ledger, NULL, &found, &why), ERR_OK);
    assert_true(found.is_estimated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counter_is_preferred_to_integral),
        cmocka_unit_test(test_secondary_channel_is_used_when_the_counter_is_dead),
        cmocka_unit_test(test_residual_compares_mean_power_not_energy),
        cmocka_unit_test(test_dead_counter_is_unknown),
        cmocka_unit_test(test_constant_zero_power_is_unknown),
        cmocka_unit_test(test_failing_reads_are_unknown),
        cmocka_unit_test(test_without_sensors_energy_is_unknown),
        cmocka_unit_test(test_lost_device_reduces_coverage),
        cmocka_unit_test(test_counter_reset_gives_no_negative_or_zero_energy),
        cmocka_unit_test(test_short_window_has_low_confidence),
        cmocka_unit_test(test_note_names_the_only_measured_part),
        cmocka_unit_test(test_channel_without_scope_is_not_summed),
        cmocka_unit_test(test_estimates_are_not_added_to_measurements),
        cmocka_unit_test(test_total_of_an_estimate_is_an_estimate),
        cmocka_unit_test(test_estimate_of_the_whole_does_not_replace_a_measured_part),
        cmocka_unit_test(test_total_counts_each_joule_once),
        cmocka_unit_test(test_parts_are_listed_with_the_whole),
        cmocka_unit_test(test_note_says_why_uncertain_psys_is_excluded),
        cmocka_unit_test(test_total_names_its_sources_and_weakest_method),
        cmocka_unit_test(test_calibration_errors_of_one_sensor_model_are_correlated),
        cmocka_unit_test(test_overlapping_channels_count_once_at_any_coverage),
        cmocka_unit_test(test_adjacent_windows_add_up),
        cmocka_unit_test(test_idle_and_active_energy_add_up),
        cmocka_unit_test(test_idle_energy_without_baseline_is_unknown),
        cmocka_unit_test(test_window_outside_the_history_is_unknown),
        cmocka_unit_test(test_default_selection_is_cpu_and_dram),
    };
    return RUN_TESTS(tests);
}
