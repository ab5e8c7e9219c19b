/* Every sensor driver in the registry, held to the contract of sensors/sensor.h in three
 * environments: a machine with nothing on it, one with everything that files can fake, and the
 * one the tests run on.  A driver added to sensors.def is under test the same day. */
#define _GNU_SOURCE
#include "support/conform.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "sensors/registry.h"
#include "support/boards.h"

enum { READS = 20, ROOM = 4096 };

static struct tree tree;
static struct observation room[ROOM];

/* ---- environments ---- */

static void build_powercap(void)
{
    static const struct {
        const char *dir, *name, *energy;
    } ZONES[] = {
        {"intel-rapl:0", "package-0", "1000000"},
        {"intel-rapl:0:0", "dram", "2000000"},
    };
    for (size_t i = 0; i < sizeof ZONES / sizeof *ZONES; i++) {
        char path[128];
        snprintf(path, sizeof path, "/sys/class/powercap/%s/name", ZONES[i].dir);
        tree_write(&tree, path, "%s\n", ZONES[i].name);
        snprintf(path, sizeof path, "/sys/class/powercap/%s/energy_uj", ZONES[i].dir);
        tree_write(&tree, path, "%s\n", ZONES[i].energy);
        snprintf(path, sizeof path, "/sys/class/powercap/%s/max_energy_range_uj", ZONES[i].dir);
        tree_write(&tree, path, "262143328850\n");
    }
}

/* Everything at once: no such machine exists, but every driver finds its part of it. */
static void build_everything(void)
{
    board_grace(&tree, 2);
    tree_remove(&tree, "/sys/class/hwmon/hwmon1"); /* the Jetson's monitors take their places */
    tree_remove(&tree, "/sys/class/hwmon/hwmon2");
    board_jetson_agx_orin(&tree);
    board_chip(&tree, 10, "amdgpu");
    board_attribute(&tree, 10, "power1_average", "217500000");
    board_attribute(&tree, 10, "temp1_input", "61000");
    board_chip(&tree, 11, "i915");
    board_attribute(&tree, 11, "energy1_input", "123456789");
    board_chip(&tree, 12, "amd_energy");
    board_attribute(&tree, 12, "energy1_input", "42000000");
    board_attribute(&tree, 12, "energy1_label", "Esocket0");
    board_chip(&tree, 13, "corsairpsu");
    board_attribute(&tree, 13, "power1_input", "354000000");
    board_chip(&tree, 14, "coretemp");
    board_attribute(&tree, 14, "temp1_input", "55000");
    board_chip(&tree, 15, "BAT0");
    board_attribute(&tree, 15, "power1_input", "9500000");
    tree_write(&tree, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3000000\n");
    build_powercap();
}

static int empty_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    return type == FTW_F ? truncate(path, 0) || unlink(path) : 0;
}

/* What unplugging looks like to both kinds of reader: an open descriptor finds nothing more to
 * read, and a path is not there. */
static void unplug_everything(void)
{
    nftw(tree.root, empty_entry, 16, FTW_PHYS);
}

/* ---- what holds for a driver, a finding, a channel ---- */

static void hold_driver(const struct sensor_driver *driver)
{
    HOLD(driver->name && driver->name[0], "a driver");
    HOLD(driver->summary && driver->summary[0], driver->name);
    HOLD(driver->probe && driver->open && driver->read && driver->close, driver->name);
    HOLD(sensor_driver_find(driver->name, NULL) == driver,
         driver->name); /* no other has the name */
}

static bool is_quantity(const char *word, size_t length)
{
    for (int q = 0; q < QTY_COUNT; q++)
        if (strlen(quantity_name((enum quantity)q)) == length &&
            !strncmp(quantity_name((enum quantity)q), word, length))
            return true;
    return false;
}

static void hold_measures(const struct sensor_finding *finding)
{
    for (const char *word = finding->measures; *word;) {
        size_t length = strcspn(word, ",");
        HOLD(is_quantity(word, length), finding->id);
        word += length + (word[length] == ',');
    }
}

static bool may_open(const struct sensor_finding *finding)
{
    return finding->status == SENSOR_OK || finding->status == SENSOR_ESTIMATED ||
           finding->kind == SENSOR_TEST;
}

static void hold_finding(const struct sensor_finding *finding)
{
    HOLD(finding->id[0], finding->driver->name);
    HOLD(finding->kind <= SENSOR_TEST && finding->status <= SENSOR_ABSENT, finding->id);
    HOLD((finding->status == SENSOR_OK) == !finding->reason[0], finding->id);
    HOLD(finding->status != SENSOR_DENIED || finding->fix[0], finding->id);
    HOLD(finding->status != SENSOR_ABSENT || !strcmp(finding->id, finding->driver->name),
         finding->id);
    HOLD(finding->kind == SENSOR_TEST || !may_open(finding) || finding->measures[0], finding->id);
    hold_measures(finding);
}

static void hold_channel(const struct sensor *sensor, size_t index, bool estimated)
{
    const struct sensor_channel *channel = &sensor->channels[index];
    HOLD(channel->name[0] && channel->device[0], sensor->id);
    for (size_t i = 0; i < index; i++)
        HOLD(strcmp(sensor->channels[i].name, channel->name) != 0, sensor->id);
    HOLD((unsigned)channel->quantity < QTY_COUNT, sensor->id);
    HOLD((unsigned)channel->scope < SCOPE_COUNT, sensor->id);
    HOLD(channel->group < sensor->group_count, sensor->id);
    HOLD(channel->location >= -1, sensor->id);
    HOLD(channel->period >= 0, sensor->id);
    HOLD(channel->relative_accuracy >= 0 && channel->relative_accuracy <= 1, sensor->id);
    bool is_energy = channel->quantity == QTY_ENERGY;
    bool is_joules = is_energy || channel->quantity == QTY_POWER;
    HOLD(!is_energy || channel->joules_per_count > 0, sensor->id);
    HOLD(!is_joules || channel->watts_max > 0, sensor->id);
    HOLD(is_joules || channel->scope == SCOPE_NONE, sensor->id);
    HOLD(!is_joules || channel->estimated == estimated, sensor->id);
}

static void hold_sensor(const struct sensor *sensor, const struct sensor_finding *finding)
{
    HOLD(sensor->driver == finding->driver, finding->id);
    HOLD(!strcmp(sensor->id, finding->id), finding->id);
    HOLD(sensor->pin_cpu >= -1, finding->id);
    HOLD(sensor->channel_count >= 1 && sensor->channel_count <= SENSOR_CHANNELS_MAX, finding->id);
    HOLD(sensor->group_count >= 1 && sensor->group_count <= SENSOR_GROUPS_MAX, finding->id);
    for (size_t i = 0; i < sensor->channel_count; i++)
        hold_channel(sensor, i, finding->status == SENSOR_ESTIMATED);
    for (size_t g = 0; g < sensor->group_count; g++) {
        size_t members = 0;
        for (size_t i = 0; i < sensor->channel_count; i++)
            members += sensor->channels[i].group == g;
        HOLD(members > 0, finding->id);
        HOLD(sensor->groups[g].period_min > 0, finding->id);
        HOLD(sensor->groups[g].period_min <= sensor->groups[g].period_default, finding->id);
    }
    for (size_t i = 0; i < sensor->fact_count; i++)
        HOLD(sensor->facts[i].key[0] && sensor->facts[i].text[0], finding->id);
}

/* ---- reading ---- */

static void hold_observations(const struct sensor *sensor, unsigned group,
                              const struct observations *got, nanos *latest)
{
    nanos now = clock_now();
    for (size_t i = 0; i < got->count; i++) {
        const struct observation *o = &got->items[i];
        HOLD(o->channel < sensor->channel_count, sensor->id);
        const struct sensor_channel *channel = &sensor->channels[o->channel];
        HOLD(channel->group == group, sensor->id);
        HOLD(o->missing < ERR_COUNT, sensor->id);
        HOLD(o->t <= now, sensor->id);
        HOLD(o->t >= latest[o->channel], sensor->id);
        latest[o->channel] = o->t;
        if (o->missing || channel->quantity == QTY_ENERGY)
            continue;
        HOLD(isfinite(o->value), sensor->id);
        HOLD(channel->quantity != QTY_POWER || o->value <= channel->watts_max, sensor->id);
    }
}

/* With room for everything: each channel speaks or is missing, in the order of time. */
static void read_with_room(struct sensor *sensor, bool from_files)
{
    nanos latest[SENSOR_CHANNELS_MAX] = {0};
    for (int i = 0; i < READS; i++)
        for (unsigned g = 0; g < sensor->group_count; g++) {
            struct observations out = {.items = room, .capacity = ROOM};
            enum err err = sensor->driver->read(sensor, g, &out);
            HOLD((unsigned)err < ERR_COUNT, sensor->id);
            HOLD(out.dropped == 0, sensor->id);
            hold_observations(sensor, g, &out, latest);
            size_t members = 0;
            for (size_t c = 0; c < sensor->channel_count; c++)
                members += sensor->channels[c].group == g;
            HOLD(!from_files || err || out.count >= members, sensor->id);
        }
}

/* With room for one, and for none: nothing is written beyond it and the rest is counted. */
static void read_without_room(struct sensor *sensor)
{
    static const struct observation CANARY = {.t = -77, .count = 77, .channel = 7777};
    for (int i = 0; i < READS; i++)
        for (unsigned g = 0; g < sensor->group_count; g++)
            for (size_t capacity = 0; capacity <= 1; capacity++) {
                struct observation items[3] = {CANARY, CANARY, CANARY};
                struct observations out = {.items = items, .capacity = capacity};
                enum err err = sensor->driver->read(sensor, g, &out);
                HOLD((unsigned)err < ERR_COUNT, sensor->id);
                HOLD(out.count <= capacity, sensor->id);
                HOLD(out.dropped == 0 || out.count == capacity, sensor->id);
                for (size_t k = capacity; k < 3; k++)
                    HOLD(items[k].t == CANARY.t && items[k].channel == CANARY.channel, sensor->id);
            }
}

/* After the files are gone no channel may still claim a reading, and opening again must fail with
 * words (or find its device gone). */
static void hold_when_gone(struct sensor *sensor, const struct sensor_finding *finding)
{
    for (unsigned g = 0; g < sensor->group_count; g++) {
        struct observations out = {.items = room, .capacity = ROOM};
        enum err err = sensor->driver->read(sensor, g, &out);
        HOLD((unsigned)err < ERR_COUNT, sensor->id);
        for (size_t i = 0; i < out.count; i++)
            HOLD(out.items[i].missing, sensor->id);
    }
    sensor_close(sensor);
    struct error why = {0};
    enum err err = sensor_open(finding, sensor, &why);
    HOLD(err != ERR_OK, finding->id);
    HOLD(why.text[0], finding->id);
}

static bool try_open(const struct sensor_finding *finding, struct sensor *sensor)
{
    struct error why = {0};
    enum err err = sensor_open(finding, sensor, &why);
    HOLD(!err || why.text[0], finding->id);
    if (!err)
        hold_sensor(sensor, finding);
    return !err;
}

/* Open, read, close, three times over: the first may load a library that stays, after that
 * nothing may be left behind.  (Memory is the sanitizers' business.) */
static void exercise(const struct sensor_finding *finding, bool from_files)
{
    int descriptors = 0;
    for (int cycle = 0; cycle < 3; cycle++) {
        struct sensor sensor;
        if (!try_open(finding, &sensor))
            return;
        read_with_room(&sensor, from_files);
        read_without_room(&sensor);
        sensor_close(&sensor);
        int now = open_descriptors();
        HOLD(cycle == 0 || now == descriptors, finding->id);
        descriptors = now;
    }
}

/* ---- the three environments ---- */

static struct sensor_findings probe_all(void)
{
    struct sensor_findings all = {0};
    const struct sensor_config config = {0};
    for (const struct sensor_driver *const *d = SENSOR_DRIVERS; *d; d++) {
        size_t before = all.count;
        sensors_probe(&config, (*d)->name, &all);
        HOLD(all.count > before, (*d)->name);
    }
    for (size_t i = 0; i < all.count; i++) {
        hold_finding(&all.items[i]);
        for (size_t j = 0; j < i; j++)
            HOLD(strcmp(all.items[i].id, all.items[j].id) != 0, all.items[i].id);
    }
    return all;
}

/* Which drivers live on files: those that have nothing to open where there are none. */
static bool has_openable(const struct sensor_findings *findings, const struct sensor_driver *driver)
{
    for (size_t i = 0; i < findings->count; i++)
        if (findings->items[i].driver == driver && may_open(&findings->items[i]))
            return true;
    return false;
}

static void drivers_are_well_formed(void **state)
{
    (void)state;
    assert_non_null(SENSOR_DRIVERS[0]);
    for (const struct sensor_driver *const *d = SENSOR_DRIVERS; *d; d++)
        hold_driver(*d);
}

static void drivers_cope_with_an_empty_machine(void **state)
{
    (void)state;
    tree_new(&tree);
    struct sensor_findings findings = probe_all();
    for (size_t i = 0; i < findings.count; i++)
        if (may_open(&findings.items[i]))
            exercise(&findings.items[i], false);
    sensor_findings_release(&findings);
    tree_free(&tree);
}

static void drivers_read_a_full_machine(void **state)
{
    (void)state;
    tree_new(&tree);
    struct sensor_findings nothing = probe_all();
    build_everything();
    struct sensor_findings findings = probe_all();
    for (size_t i = 0; i < findings.count; i++)
        if (may_open(&findings.items[i]))
            exercise(&findings.items[i], !has_openable(&nothing, findings.items[i].driver));
    assert_true(has_openable(&findings, sensor_driver_find("hwmon", NULL)));
    assert_true(has_openable(&findings, sensor_driver_find("jetson", NULL)));
    assert_true(has_openable(&findings, sensor_driver_find("host", NULL)));
    assert_true(has_openable(&findings, sensor_driver_find("cpu_model", NULL)));
    sensor_findings_release(&findings);
    sensor_findings_release(&nothing);
    tree_free(&tree);
}

static void drivers_report_that_the_files_are_gone(void **state)
{
    (void)state;
    tree_new(&tree);
    struct sensor_findings nothing = probe_all();
    build_everything();
    struct sensor_findings findings = probe_all();
    struct sensor *sensors = calloc(findings.count, sizeof *sensors);
    assert_non_null(sensors);
    for (size_t i = 0; i < findings.count; i++) {
        const struct sensor_finding *finding = &findings.items[i];
        if (!may_open(finding) || has_openable(&nothing, finding->driver) ||
            !try_open(finding, &sensors[i]))
            sensors[i].driver = NULL;
    }
    unplug_everything();
    for (size_t i = 0; i < findings.count; i++)
        if (sensors[i].driver)
            hold_when_gone(&sensors[i], &findings.items[i]);
    free(sensors);
    sensor_findings_release(&findings);
    sensor_findings_release(&nothing);
    tree_free(&tree);
}

static void drivers_read_the_real_machine(void **state)
{
    (void)state;
    struct sensor_findings findings = probe_all();
    for (size_t i = 0; i < findings.count; i++)
        if (may_open(&findings.items[i]))
            exercise(&findings.items[i], false);
    sensor_findings_release(&findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drivers_are_well_formed),
        cmocka_unit_test(drivers_cope_with_an_empty_machine),
        cmocka_unit_test(drivers_read_a_full_machine),
        cmocka_unit_test(drivers_report_that_the_files_are_gone),
        cmocka_unit_test(drivers_read_the_real_machine),
    };
    return RUN_TESTS(tests);
}
