/* Probing, opening and reading sensors in a test without the sampler; on a fake machine, with the
 * fixture below.  A struct sensing owns what it found and the sensor it opened: zero it, release
 * it. */
#ifndef TESTS_SUPPORT_SENSING_H
#define TESTS_SUPPORT_SENSING_H

#include "sensors/sensor.h"
#include "support/tree.h"

struct sensing {
    const char *devices; /* what the next probes are asked for (--devices), or NULL */
    struct sensor_findings findings;
    struct sensor sensor;
    bool is_open;
    struct observation items[64];
    struct observations seen; /* of the last read */
    enum err answer;          /* what the last read returned */
    struct error why;         /* of the last open */
};

void sensing_probe(struct sensing *sensing, const char *driver);
const struct sensor_finding *sensing_find(const struct sensing *sensing, const char *id);

/* Probes, asserts that there is one finding and returns it; valid until the next probe. */
const struct sensor_finding *sensing_only(struct sensing *sensing, const char *driver);

/* Opens a finding by id, closing what was open; ERR_NOT_FOUND when there is no such finding. */
enum err sensing_open(struct sensing *sensing, const char *id);

/* Closes what was open, probes and opens. */
enum err sensing_start(struct sensing *sensing, const char *driver, const char *id);

/* Reads group 0 once; what was seen before is forgotten. */
enum err sensing_read(struct sensing *sensing);

/* Reads the group of a channel and returns what it gave; missing is ERR_COUNT when the driver
 * observed nothing at all for it. */
struct observation sensing_observe(struct sensing *sensing, const char *channel);

/* The same, asserting that it is there; its value. */
double sensing_value(struct sensing *sensing, const char *channel);

/* By name; NULL when there is none. */
const struct sensor_channel *channel_named(const struct sensor *sensor, const char *name);
const char *fact_named(const struct sensor *sensor, const char *key);
const struct sensor_channel *sensing_channel(const struct sensing *sensing, const char *name);
const char *sensing_fact(const struct sensing *sensing, const char *key);
const struct observation *sensing_seen(const struct sensing *sensing, const char *name);

/* The raw count times its resolution; NaN when the channel gave no count in the last read. */
double sensing_joules(const struct sensing *sensing, const char *name);

void sensing_release(struct sensing *sensing);

/* ---- a fake machine and what is sensed on it, fresh for every test ---- */

struct fixture {
    struct tree tree;
    struct sensing s;
};

/* *state becomes the fixture. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

#define FIXTURE_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

/* ---- as a user whom file modes bind: they do not bind root ---- */

enum { NOT_NOBODY = 125 };

/* Runs body in a child as an unprivileged user; what it returns is the result, NOT_NOBODY that
 * root may not become one here, -1 a crash.  The tree's root must let others in. */
int as_nobody(int (*body)(void *), void *argument);

#endif
