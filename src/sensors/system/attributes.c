#include "sensors/system/attributes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"
#include "port/fs.h"

struct attribute {
    int fd;
    int fd_times; /* -1: no second file */
    struct attribute_rule rule;
};

struct attributes {
    struct attribute of[SENSOR_CHANNELS_MAX];
};

struct attributes *attributes_new(void)
{
    struct attributes *set = malloc(sizeof *set);
    if (!set)
        return NULL;
    for (size_t i = 0; i < SENSOR_CHANNELS_MAX; i++)
        set->of[i] = (struct attribute){.fd = -1, .fd_times = -1};
    return set;
}

void attributes_free(struct attributes *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < SENSOR_CHANNELS_MAX; i++) {
        if (set->of[i].fd >= 0)
            close(set->of[i].fd);
        if (set->of[i].fd_times >= 0)
            close(set->of[i].fd_times);
    }
    free(set);
}

enum err attributes_bind(struct attributes *set, size_t channel, const char *path,
                         struct attribute_rule rule)
{
    set->of[channel].rule = rule;
    return fs_open(path, &set->of[channel].fd);
}

enum err attributes_bind_times(struct attributes *set, size_t channel, const char *path)
{
    return fs_open(path, &set->of[channel].fd_times);
}

struct sensor_channel *attributes_add(struct attributes *set, struct sensor *sensor,
                                      const char *name, const char *device, enum quantity quantity,
                                      const char *path, struct attribute_rule rule)
{
    if (sensor->channel_count == SENSOR_CHANNELS_MAX ||
        attributes_bind(set, sensor->channel_count, path, rule))
        return NULL;
    return sensor_add_channel(sensor, name, device, quantity);
}

static enum err read_value(const struct attribute *attribute, double *out)
{
    int64_t raw;
    uint64_t times = 1;
    enum err err = fs_pread_i64(attribute->fd, &raw);
    if (!err && attribute->fd_times >= 0)
        err = fs_pread_u64(attribute->fd_times, &times);
    if (err)
        return err;
    if (raw < attribute->rule.least)
        return ERR_BAD_VALUE;
    if (raw < attribute->rule.floor)
        raw = attribute->rule.floor;
    *out = (double)raw * (double)times * attribute->rule.factor;
    return ERR_OK;
}

static enum err read_channel(const struct attribute *attribute, const struct sensor *sensor,
                             unsigned channel, struct observations *out)
{
    uint64_t count;
    double value;
    bool is_counter = sensor->channels[channel].quantity == QTY_ENERGY;
    enum err err = is_counter ? fs_pread_u64(attribute->fd, &count) : read_value(attribute, &value);
    nanos t = clock_now();
    if (err)
        observe_missing(out, channel, t, err);
    else if (is_counter)
        observe_count(out, channel, t, count);
    else
        observe_value(out, channel, t, value);
    return err;
}

enum err attributes_read(const struct attributes *set, const struct sensor *sensor, unsigned group,
                         struct observations *out)
{
    unsigned tried = 0, lost = 0;
    for (unsigned i = 0; i < sensor->channel_count; i++) {
        if (sensor->channels[i].group != group)
            continue;
        tried++;
        lost += read_channel(&set->of[i], sensor, i, out) == ERR_LOST;
    }
    return tried && lost == tried ? ERR_LOST : ERR_OK;
}
