#define _GNU_SOURCE
#include "support/sensing.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sensors/registry.h"
#include "support/unit.h"

void sensing_probe(struct sensing *sensing, const char *driver)
{
    sensor_findings_release(&sensing->findings);
    sensors_probe(&(struct sensor_config){.devices = sensing->devices}, driver, &sensing->findings);
}

const struct sensor_finding *sensing_find(const struct sensing *sensing, const char *id)
{
    for (size_t i = 0; i < sensing->findings.count; i++)
        if (!strcmp(sensing->findings.items[i].id, id))
            return &sensing->findings.items[i];
    return NULL;
}

const struct sensor_finding *sensing_only(struct sensing *sensing, const char *driver)
{
    sensing_probe(sensing, driver);
    assert_int_equal(sensing->findings.count, 1);
    return &sensing->findings.items[0];
}

static void close_sensor(struct sensing *sensing)
{
    if (sensing->is_open)
        sensor_close(&sensing->sensor);
    sensing->is_open = false;
}

enum err sensing_open(struct sensing *sensing, const char *id)
{
    const struct sensor_finding *finding = sensing_find(sensing, id);
    close_sensor(sensing);
    if (!finding)
        return ERR_NOT_FOUND;
    enum err err = sensor_open(finding, &sensing->sensor, &sensing->why);
    sensing->is_open = err == ERR_OK;
    return err;
}

enum err sensing_start(struct sensing *sensing, const char *driver, const char *id)
{
    close_sensor(sensing);
    sensing_probe(sensing, driver);
    return sensing_open(sensing, id);
}

static enum err read_group(struct sensing *sensing, unsigned group)
{
    sensing->seen = (struct observations){
        .items = sensing->items,
        .capacity = sizeof sensing->items / sizeof *sensing->items,
    };
    sensing->answer = sensing->sensor.driver->read(&sensing->sensor, group, &sensing->seen);
    return sensing->answer;
}

enum err sensing_read(struct sensing *sensing)
{
    return read_group(sensing, 0);
}

struct observation sensing_observe(struct sensing *sensing, const char *channel)
{
    const struct sensor_channel *wanted = sensing_channel(sensing, channel);
    const struct observation *seen = NULL;
    if (wanted) {
        read_group(sensing, wanted->group);
        seen = sensing_observation(sensing, channel);
    }
    return seen ? *seen : (struct observation){.missing = ERR_COUNT};
}

double sensing_value(struct sensing *sensing, const char *channel)
{
    struct observation o = sensing_observe(sensing, channel);
    assert_int_equal(o.missing, ERR_OK);
    return o.value;
}

const struct sensor_channel *channel_named(const struct sensor *sensor, const char *name)
{
    for (size_t i = 0; i < sensor->channel_count; i++)
        if (!strcmp(sensor->channels[i].name, name))
            return &sensor->channels[i];
    return NULL;
}

const char *fact_named(const struct sensor *sensor, const char *key)
{
    for (size_t i = 0; i < sensor->fact_count; i++)
        if (!strcmp(sensor->facts[i].key, key))
            return sensor->facts[i].text;
    return NULL;
}

const struct sensor_channel *sensing_channel(const struct sensing *sensing, const char *name)
{
    return channel_named(&sensing->sensor, name);
}

const char *sensing_fact(const struct sensing *sensing, const char *key)
{
    return fact_named(&sensing->sensor, key);
}

const struct observation *sensing_observation(const struct sensing *sensing, const char *name)
{
    const struct sensor_channel *channel = sensing_channel(sensing, name);
    for (size_t i = 0; channel && i < sensing->seen.count; i++)
        if (&sensing->sensor.channels[sensing->items[i].channel] == channel)
            return &sensing->items[i];
    return NULL;
}

double sensing_joules(const struct sensing *sensing, const char *name)
{
    const struct observation *seen = sensing_observation(sensing, name);
    if (!seen || seen->missing)
        return UNKNOWN;
    return (double)seen->count * sensing_channel(sensing, name)->joules_per_count;
}

void sensing_release(struct sensing *sensing)
{
    close_sensor(sensing);
    sensor_findings_release(&sensing->findings);
}

int fixture_setup(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    tree_new(&fixture.tree);
    *state = &fixture;
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    sensing_release(&f->s);
    tree_free(&f->tree);
    return 0;
}

int as_nobody(int (*body)(void *), void *argument)
{
    enum { NOBODY = 65534 };
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 &&
            (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0))
            _exit(NOT_NOBODY);
        _exit(body(argument) & 0x7f);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}
