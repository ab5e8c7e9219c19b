#include "support/sensing.h"

#include <string.h>

#include "sensors/registry.h"

void sensing_probe(struct sensing *sensing, const char *driver)
{
    sensor_findings_release(&sensing->findings);
    sensors_probe(&(struct sensor_config){0}, driver, &sensing->findings);
}

const struct sensor_finding *sensing_find(const struct sensing *sensing, const char *id)
{
    for (size_t i = 0; i < sensing->findings.count; i++)
        if (!strcmp(sensing->findings.items[i].id, id))
            return &sensing->findings.items[i];
    return NULL;
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

enum err sensing_read(struct sensing *sensing)
{
    sensing->seen = (struct observations){
        .items = sensing->items,
        .capacity = sizeof sensing->items / sizeof *sensing->items,
    };
    return sensing->sensor.driver->read(&sensing->sensor, 0, &sensing->seen);
}

const struct sensor_channel *sensing_channel(const struct sensing *sensing, const char *name)
{
    for (size_t i = 0; i < sensing->sensor.channel_count; i++)
        if (!strcmp(sensing->sensor.channels[i].name, name))
            return &sensing->sensor.channels[i];
    return NULL;
}

const struct observation *sensing_seen(const struct sensing *sensing, const char *name)
{
    const struct sensor_channel *channel = sensing_channel(sensing, name);
    for (size_t i = 0; channel && i < sensing->seen.count; i++)
        if (&sensing->sensor.channels[sensing->items[i].channel] == channel)
            return &sensing->items[i];
    return NULL;
}

double sensing_joules(const struct sensing *sensing, const char *name)
{
    const struct observation *seen = sensing_seen(sensing, name);
    if (!seen || seen->missing)
        return UNKNOWN;
    return (double)seen->count * sensing_channel(sensing, name)->joules_per_count;
}

const char *sensing_fact(const struct sensing *sensing, const char *key)
{
    for (size_t i = 0; i < sensing->sensor.fact_count; i++)
        if (!strcmp(sensing->sensor.facts[i].key, key))
            return sensing->sensor.facts[i].text;
    return NULL;
}

void sensing_release(struct sensing *sensing)
{
    close_sensor(sensing);
    sensor_findings_release(&sensing->findings);
}
