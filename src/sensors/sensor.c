#include "sensors/sensor.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/text.h"

struct sensor_finding *sensor_found(struct sensor_findings *findings, const char *id,
                                    enum sensor_kind kind, enum sensor_status status)
{
    struct sensor_finding *items =
        grow(findings->items, &findings->capacity, findings->count, sizeof *items);
    if (!items)
        return NULL;
    findings->items = items;
    struct sensor_finding *finding = &findings->items[findings->count++];
    *finding = (struct sensor_finding){.kind = kind, .status = status};
    chars_copy(finding->id, id);
    return finding;
}

static struct observation *next_observation(struct observations *to, unsigned channel, nanos t)
{
    if (to->count == to->capacity) {
        to->dropped++;
        return NULL;
    }
    struct observation *o = &to->items[to->count++];
    *o = (struct observation){.t = t, .channel = (uint16_t)channel};
    return o;
}

void observe_count(struct observations *to, unsigned channel, nanos t, uint64_t count)
{
    struct observation *o = next_observation(to, channel, t);
    if (o)
        o->count = count;
}

void observe_timed(struct observations *to, unsigned channel, nanos t, nanos sigma, uint64_t count)
{
    struct observation *o = next_observation(to, channel, t);
    nanos sigma_us = sigma / NS_PER_US + 1;
    if (!o)
        return;
    o->count = count;
    o->sigma_us = sigma_us < UINT32_MAX ? (uint32_t)sigma_us : UINT32_MAX;
}

void observe_value(struct observations *to, unsigned channel, nanos t, double value)
{
    struct observation *o = next_observation(to, channel, t);
    if (!o)
        return;
    if (isfinite(value))
        o->value = value;
    else
        o->missing = ERR_BAD_VALUE;
}

void observe_missing(struct observations *to, unsigned channel, nanos t, enum err why)
{
    struct observation *o = next_observation(to, channel, t);
    if (o)
        o->missing = (uint16_t)why;
}

struct sensor_channel *sensor_add_channel(struct sensor *sensor, const char *name,
                                          const char *device, enum quantity quantity)
{
    if (sensor->channel_count == SENSOR_CHANNELS_MAX)
        return NULL;
    struct sensor_channel *channel = &sensor->channels[sensor->channel_count++];
    *channel = (struct sensor_channel){.quantity = quantity, .location = -1};
    chars_copy(channel->name, name);
    chars_copy(channel->device, device);
    return channel;
}

void sensor_add_fact(struct sensor *sensor, const char *key, const char *text)
{
    if (sensor->fact_count == SENSOR_FACTS_MAX)
        return;
    struct sensor_fact *fact = &sensor->facts[sensor->fact_count++];
    chars_copy(fact->key, key);
    chars_copy(fact->text, text);
}

const char *sensor_fact(const struct sensor *sensor, const char *key)
{
    for (size_t i = 0; i < sensor->fact_count; i++)
        if (str_equal(sensor->facts[i].key, key))
            return sensor->facts[i].text;
    return "";
}

long sensor_shape_channel(const struct sensor *sensor, size_t counter)
{
    const struct sensor_channel *row = &sensor->channels[counter];
    if (row->quantity != QTY_ENERGY)
        return -1;
    for (size_t i = 0; i < sensor->channel_count; i++) {
        const struct sensor_channel *other = &sensor->channels[i];
        if (other->quantity == QTY_POWER && other->secondary && other->scope == row->scope &&
            other->location == row->location && str_equal(other->device, row->device))
            return (long)i;
    }
    return -1;
}

void sensor_measures(const struct sensor *sensor, char *to, size_t size)
{
    bool listed[QTY_COUNT] = {false};
    to[0] = '\0';
    for (size_t i = 0; i < sensor->channel_count; i++) {
        enum quantity quantity = sensor->channels[i].quantity;
        size_t used = strlen(to);
        if (!listed[quantity])
            str_format(to + used, size - used, "%s%s", used ? "," : "", quantity_name(quantity));
        listed[quantity] = true;
    }
}

const char *sensor_kind_name(enum sensor_kind kind)
{
    static const char *const NAMES[] = {"cpu", "gpu", "board", "host", "test"};
    return NAMES[kind];
}

enum sensor_status sensor_status_of(enum err err, enum sensor_status otherwise)
{
    if (!err)
        return SENSOR_OK;
    return err == ERR_DENIED ? SENSOR_DENIED : otherwise;
}

const char *sensor_status_name(enum sensor_status status)
{
    static const char *const NAMES[] = {"ok",     "estimated",   "dead",
                                        "denied", "unsupported", "absent"};
    return NAMES[status];
}
