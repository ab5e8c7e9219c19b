/* Channels that are small number files (sysfs attributes), for drivers that only read, parse
 * and scale them.  A struct sysfs_channels is the driver's state: sysfs_channels_new before the
 * first channel, sysfs_channels_free in close; it owns the file descriptors. */
#ifndef IPW_SENSORS_SYSFS_CHANNELS_H
#define IPW_SENSORS_SYSFS_CHANNELS_H

#include "sensors/sensor.h"

/* Interpretation of the numbers in a file. */
struct sysfs_rule {
    double factor; /* raw value to base unit; unused for energy counters */
    int64_t min;   /* a lower raw value is invalid */
    int64_t floor; /* values from min up to this are clamped to it: noise around zero */
};

struct sysfs_channels;

struct sysfs_channels *sysfs_channels_new(void); /* NULL when out of memory */
void sysfs_channels_free(struct sysfs_channels *set);

/* Opens the file behind channel number `channel`. */
enum err sysfs_channels_bind(struct sysfs_channels *set, size_t channel, const char *path,
                             struct sysfs_rule rule) MUST_USE;

/* A second file whose value (never negative) multiplies the first: volts times amperes. */
enum err sysfs_channels_bind_times(struct sysfs_channels *set, size_t channel, const char *path)
    MUST_USE;

/* The driver's read: observes every channel of the group, a failed one as missing.
 * ERR_LOST when the device behind all of them is gone. */
enum err sysfs_channels_read(const struct sysfs_channels *set, const struct sensor *sensor,
                             unsigned group, struct observations *out) MUST_USE;

/* Adds a channel bound to a file; does nothing when the file cannot be opened. */
struct sensor_channel *sysfs_channels_add(struct sysfs_channels *set, struct sensor *sensor,
                                          const char *name, const char *device,
                                          enum quantity quantity, const char *path,
                                          struct sysfs_rule rule);

#endif
