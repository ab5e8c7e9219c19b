/* Probing, opening and reading sensors in a test without the sampler.
 * A struct sensing owns what it found and the sensor it opened: zero it, release it. */
#ifndef TESTS_SUPPORT_SENSING_H
#define TESTS_SUPPORT_SENSING_H

#include "sensors/sensor.h"

struct sensing {
    struct sensor_findings findings;
    struct sensor sensor;
    bool is_open;
    struct observation items[64];
    struct observations seen; /* of the last read */
    struct error why;         /* of the last open */
};

void sensing_probe(struct sensing *sensing, const char *driver);
const struct sensor_finding *sensing_find(const struct sensing *sensing, const char *id);

/* Opens a finding by id, closing what was open; ERR_NOT_FOUND when there is no such finding. */
enum err sensing_open(struct sensing *sensing, const char *id);

/* Reads group 0 once; what was seen before is forgotten. */
enum err sensing_read(struct sensing *sensing);

/* By channel name; NULL when there is none. */
const struct sensor_channel *sensing_channel(const struct sensing *sensing, const char *name);
const struct observation *sensing_seen(const struct sensing *sensing, const char *name);
const char *sensing_fact(const struct sensing *sensing, const char *key);

/* The raw count times its resolution; NaN when the channel gave no count in the last read. */
double sensing_joules(const struct sensing *sensing, const char *name);

void sensing_release(struct sensing *sensing);

#endif
