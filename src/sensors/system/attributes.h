/* Channels that are small number files (sysfs attributes), for the drivers whose whole reading is
 * "pread, parse, scale".  A struct attributes is the driver's state: attributes_new before the
 * first channel, attributes_free in close; it owns the file descriptors. */
#ifndef IPW_SENSORS_ATTRIBUTES_H
#define IPW_SENSORS_ATTRIBUTES_H

#include "sensors/sensor.h"

/* What the numbers in a file mean. */
struct attribute_rule {
    double factor; /* raw value to base unit; unused for energy counters */
    int64_t least; /* a raw value below this is not sensible */
    int64_t floor; /* one from least up to this counts as this: noise around zero */
};

struct attributes;

struct attributes *attributes_new(void); /* NULL when out of memory */
void attributes_free(struct attributes *set);

/* Opens the file behind channel number `channel`. */
enum err attributes_bind(struct attributes *set, size_t channel, const char *path,
                         struct attribute_rule rule) MUST_USE;

/* A second file whose value (never negative) multiplies the first: volts times amperes. */
enum err attributes_bind_times(struct attributes *set, size_t channel, const char *path) MUST_USE;

/* The driver's read: observes every channel of the group, a failed one as missing.
 * ERR_LOST when the device behind all of them is gone. */
enum err attributes_read(const struct attributes *set, const struct sensor *sensor, unsigned group,
                         struct observations *out) MUST_USE;

/* Adds a channel bound to a file, or nothing at all when the file cannot be opened. */
struct sensor_channel *attributes_add(struct attributes *set, struct sensor *sensor,
                                      const char *name, const char *device, enum quantity quantity,
                                      const char *path, struct attribute_rule rule);

#endif
