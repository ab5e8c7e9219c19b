/* test: valgrind */
/* Every sensor driver in the registry against the contract of sensors/sensor.h in three
 * environments: an empty machine, one with everything that files can fake, and the one the tests
 * run on. A driver added to sensors.def is tested automatically. */
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

/* Everything at once: no such machine exists, but every driver finds its own hardware. */
static void build_everything(void)
{
    board_grace(&tree, 2);
    tree_remove(&tree, "/sys/class/hwmon/hwmon1"); /* replaced by the Jetson's monitors */
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

/* How unplugging looks to both kinds of reader: an open descriptor has nothing more to read, and
 * the path does not exist. */
static void unplug_everything(void)
{
    nftw(tree.root, empty_entry, 16, FTW_PHYS);
}

/* ---- checks of a driver, a finding, a channel ---- */

static void check_driver(const struct sensor_driver *driver)
{
    CHECK(driver->name && driver->name[0], "a driver");
    CHECK(driver->summary && driver->summary[0], driver->name);
    CHECK(driver->probe && driver->open && driver->read && driver->close, driver->name);
    CHECK(sensor_driver_find(driver->name, NULL) == driver, driver->name); /* names are unique */
}

static bool is_quantity(const char *word, size_t length)
{
    for (int q = 0; q < QTY_COUNT; q++)
        if (strlen(quantity_name((enum quantity)q)) == length &&
            !strncmp(quantity_name((enum quantity)q), word, length))
            return true;
    return false;
}

static void check_measures(const struct sensor_finding *finding)
{
    for (const char *word = finding->measures; *word;) {
        size_t length = strcspn(word, ",");
        CHECK(is_quantity(word, length), finding->id);
        word += length + (word[length] == ',');
    }
}

static bool may_open(const struct sensor_finding *finding)
{
    return finding->status == SENSOR_OK || finding->status == SENSOR_ESTIMATED ||
           finding->kind == SENSOR_TEST;
}

static void check_finding(const struct sensor_finding *finding)
{
    CHECK(finding->id[0], finding->driver->name);
    CHECK(finding->kind <= SENSOR_TEST && finding->status <= SENSOR_ABSENT, finding->id);
    CHECK((finding->status == SENSOR_OK) == !finding->reason[0], finding->id);
    CHECK(finding->status != SENSOR_DENIED || finding->fix[0], finding->id);
    CHECK(finding->status != SENSOR_ABSENT || !strcmp(finding->id, finding->driver->name),
          finding->id);
    CHECK(finding->kind == SENSOR_TEST || !may_open(finding) || finding->measures[0], finding->id);
    check_measures(finding);
}

static void check_channel(const struct sensor *sensor, size_t index, bool estimated)
{
    const struct sensor_channel *channel = &sensor->channels[index];
    CHECK(channel->name[0] && channel->device[0], sensor->id);
    for (size_t i = 0; i < index; i++)
        CHECK(strcmp(sensor->channels[i].name, channel->name) != 0, sensor->id);
    CHECK((unsigned)channel->quantity < QTY_COUNT, sensor->id);
    CHECK((unsigned)channel->scope < SCOPE_COUNT, sensor->id);
    CHECK(channel->group < sensor->group_count, sensor->id);
    CHECK(channel->location >= -1, sensor->id);
    CHECK(channel->period >= 0, sensor->id);
    CHECK(channel->relative_accuracy >= 0 && channel->relative_accuracy <= 1, sensor->id);
    bool is_energy = channel->quantity == QTY_ENERGY;
    bool is_joules = is_energy || channel->quantity == QTY_POWER;
    CHECK(!is_energy || channel->joules_per_count > 0, sensor->id);
    CHECK(!is_joules || channel->watts_max > 0, sensor->id);
    CHECK(is_joules || channel->scope == SCOPE_NONE, sensor->id);
    CHECK(!is_joules || channel->estimated == estimated, sensor->id);
}

static void check_sensor(const struct sensor *sensor, const struct sensor_finding *finding)
{
    CHECK(sensor->driver == finding->driver, finding->id);
    CHECK(!strcmp(sensor->id, finding->id), finding->id);
    CHECK(sensor->pin_cpu >= -1, finding->id);
    CHECK(sensor->channel_count >= 1 && sensor->channel_count <= SENSOR_CHANNELS_MAX, finding->id);
    CHECK(sensor->group_count >= 1 && sensor->group_count <= SENSOR_GROUPS_MAX, finding->id);
    for (size_t i = 0; i < sensor->channel_count; i++)
        check_channel(sensor, i, finding->status == SENSOR_ESTIMATED);
    for (size_t g = 0; g < sensor->group_count; g++) {
        size_t members = 0;
        for (size_t i = 0; i < sensor->channel_count; i++)
            members += sensor->channels[i].group == g;
        CHECK(members > 0, finding->id);
        CHECK(sensor->groups[g].period_min > 0, finding->id);
        CHECK(sensor->groups[g].period_min <= sensor->groups[g].period_default, finding->id);
    }
    for (size_t i = 0; i < sensor->fact_count; i++)
        CHECK(sensor->facts[i].key[0] && sensor->facts[i].text[0], finding->id);
}

/* ---- reading ---- */

static void check_observations(const struct sensor *sensor, unsigned group,
                               const struct observations *got, nanos *latest)
{
    nanos now = clock_now();
    for (size_t i = 0; i < got->count; i++) {
        const struct observation *o = &got->items[i];
        CHECK(o->channel < sensor->channel_count, sensor->id);
        const struct sensor_channel *channel = &sensor->channels[o->channel];
        CHECK(channel->group == group, sensor->id);
        CHECK(o->missing < ERR_COUNT, sensor->id);
        CHECK(o->t <= now, sensor->id);
        CHECK(o->t >= latest[o->channel], sensor->id);
        latest[o->channel] = o->t;
        if (o->missing || channel->quantity == QTY_ENERGY)
            continue;
        CHECK(isfinite(o->value), sensor->id);
        CHECK(channel->quantity != QTY_POWER || o->value <= channel->watts_max, sensor->id);
    }
}

/* With enough capacity: each channel has an observation or is missing, in chronological order. */
static void read_with_capacity(struct sensor *sensor, bool from_files)
{
    nanos latest[SENSOR_CHANNELS_MAX] = {0};
    for (int i = 0; i < READS; i++)
        for (unsigned g = 0; g < sensor->group_count; g++) {
            struct observations out = {.items = room, .capacity = ROOM};
            enum err err = sensor->driver->read(sensor, g, &out);
            CHECK((unsigned)err < ERR_COUNT, sensor->id);
            CHECK(out.dropped == 0, sensor->id);
            check_observations(sensor, g, &out, latest);
            size_t members = 0;
            for (size_t c = 0; c < sensor->channel_count; c++)
                members += sensor->channels[c].group == g;
            CHECK(!from_files || err || out.count >= members, sensor->id);
        }
}

/* With capacity for one, and for none: nothing is written beyond it and the rest is counted. */
static void read_beyond_capacity(struct sensor *sensor)
{
    static const struct observation CANARY = {.t = -77, .count = 77, .channel = 7777};
    for (int i = 0; i < READS; i++)
        for (unsigned g = 0; g < sensor->group_count; g++)
            for (size_t capacity = 0; capacity <= 1; capacity++) {
                struct observation items[3] = {CANARY, CANARY, CANARY};
                struct observations out = {.items = items, .capacity = capacity};
                enum err err = sensor->driver->read(sensor, g, &out);
                CHECK((unsigned)err < ERR_COUNT, sensor->id);
                CHECK(out.count <= capacity, sensor->id);
                CHECK(out.dropped == 0 || out.count == capacity, sensor->id);
                for (size_t k = capacity; k < 3; k++)
                    CHECK(items[k].t == CANARY.t && items[k].channel == CANARY.channel, sensor->id);
            }
}

/* After the files are gone no channel may still report a reading, and opening again must fail with
 * an error message (or find its device gone). */
static void check_unplugged(struct sensor *sensor, const struct sensor_finding *finding)
{
    for (unsigned g = 0; g < sensor->group_count; g++) {
        struct observations out = {.items = room, .capacity = ROOM};
        enum err err = sensor->driver->read(sensor, g, &out);
        CHECK((unsigned)err < ERR_COUNT, sensor->id);
        for (size_t i = 0; i < out.count; i++)
            CHECK(out.items[i].missing, sensor->id);
    }
    sensor_close(sensor);
    struct error why = {0};
    enum err err = sensor_open(finding, sensor, &why);
    CHECK(err != ERR_OK, finding->id);
    CHECK(why.text[0], finding->id);
}

static bool try_open(const struct sensor_finding *finding, struct sensor *sensor)
{
    struct error why = {0};
    enum err err = sensor_open(finding, sensor, &why);
    CHECK(!err || why.text[0], finding->id);
    if (!err)
        check_sensor(sensor, finding);
    return !err;
}

/* Open, read, close, three times: the first may load a library that stays loaded, after that no
 * descriptor may leak. (Memory leaks are left to the sanitizers.) */
static void exercise(const struct sensor_finding *finding, bool from_files)
{
    int descriptors = 0;
    for (int cycle = 0; cycle < 3; cycle++) {
        struct sensor sensor;
        if (!try_open(finding, &sensor))
            return;
        read_with_capacity(&sensor, from_files);
        read_beyond_capacity(&sensor);
        sensor_close(&sensor);
        int now = open_descriptors();
        CHECK(cycle == 0 || now == descriptors, finding->id);
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
        CHECK(all.count > before, (*d)->name);
    }
    for (size_t i = 0; i < all.count; i++) {
        check_finding(&all.items[i]);
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(all.items[i].id, all.items[j].id) != 0, all.items[i].id);
    }
    return all;
}

/* Whether a driver reads files: it has nothing to open where there are none. */
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
        check_driver(*d);
}

static void drivers_find_nothing_on_an_empty_machine(void **state)
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

static void drivers_report_missing_after_the_files_are_gone(void **state)
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
            check_unplugged(&sensors[i], &findings.items[i]);
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
        cmocka_unit_test(drivers_find_nothing_on_an_empty_machine),
        cmocka_unit_test(drivers_read_a_full_machine),
        cmocka_unit_test(drivers_report_missing_after_the_files_are_gone),
        cmocka_unit_test(drivers_read_the_real_machine),
    };
    return RUN_TESTS(tests);
}
