#include "sensors/sysfs_channels.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "port/fs.h"

struct sysfs_file {
    int fd;
    int fd_times; /* -1: no second file */
    struct sysfs_rule rule;
};

struct sysfs_channels {
    struct sysfs_file of[SENSOR_CHANNELS_MAX];
};

struct sysfs_channels *sysfs_channels_new(void)
{
    struct sysfs_channels *set = memory_resize(NULL, sizeof *set);
    if (!set)
        return NULL;
    for (size_t i = 0; i < SENSOR_CHANNELS_MAX; i++)
        set->of[i] = (struct sysfs_file){.fd = -1, .fd_times = -1};
    return set;
}

void sysfs_channels_free(struct sysfs_channels *set)
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

enum err sysfs_channels_bind(struct sysfs_channels *set, size_t channel, const char *path,
                             struct sysfs_rule rule)
{
    set->of[channel].rule = rule;
    return fs_open(path, &set->of[channel].fd);
}

enum err sysfs_channels_bind_times(struct sysfs_channels *set, size_t channel, const char *path)
{
    return fs_open(path, &set->of[channel].fd_times);
}

struct sensor_channel *sysfs_channels_add(struct sysfs_channels *set, struct sensor *sensor,
                                          const char *name, const char *device,
                                          enum quantity quantity, const char *path,
                                          struct sysfs_rule rule)
{
    if (sensor->channel_count == SENSOR_CHANNELS_MAX ||
        sysfs_channels_bind(set, sensor->channel_count, path, rule))
        return NULL;
    return sensor_add_channel(sensor, name, device, quantity);
}

static enum err read_value(const struct sysfs_file *file, double *out)
{
    int64_t raw;
    uint64_t times = 1;
    enum err err = fs_pread_i64(file->fd, &raw);
    if (!err && file->fd_times >= 0)
        err = fs_pread_u64(file->fd_times, &times);
    if (err)
        return err;
    if (raw < file->rule.min)
        return ERR_BAD_VALUE;
    if (raw < file->rule.floor)
        raw = file->rule.floor;
    *out = (double)raw * (double)times * file->rule.factor;
    return ERR_OK;
}

static enum err read_channel(const struct sysfs_file *file, const struct sensor *sensor,
                             unsigned channel, struct observations *out)
{
    uint64_t count;
    double value;
    bool is_counter = sensor->channels[channel].quantity == QTY_ENERGY;
    enum err err = is_counter ? fs_pread_u64(file->fd, &count) : read_value(file, &value);
    nanos t = clock_now();
    if (err)
        observe_missing(out, channel, t, err);
    else if (is_counter)
        observe_count(out, channel, t, count);
    else
        observe_value(out, channel, t, value);
    return err;
}

enum err sysfs_channels_read(const struct sysfs_channels *set, const struct sensor *sensor,
                             unsigned group, struct observations *out)
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
