/* Probing, opening and reading sensors in a test without the sampler; on a fake machine, with the
 * fixture below. A struct sensing owns its findings and the opened sensor: zero it, release it. */
#ifndef TESTS_SUPPORT_SENSING_H
#define TESTS_SUPPORT_SENSING_H

#include "sensors/sensor.h"
#include "support/tree.h"

struct sensing {
    const char *devices; /* the --devices of the next probes, or NULL */
    struct sensor_findings findings;
    struct sensor sensor;
    bool is_open;
    struct observation items[64];
    struct observations seen; /* of the last read */
    enum err answer;          /* the result of the last read */
    struct error why;         /* of the last open */
};

void sensing_probe(struct sensing *sensing, const char *driver);
const struct sensor_finding *sensing_find(const struct sensing *sensing, const char *id);

/* Probes, asserts that there is one finding and returns it; valid until the next probe. */
const struct sensor_finding *sensing_only(struct sensing *sensing, const char *driver);

/* Opens a finding by id after closing the open sensor; ERR_NOT_FOUND when there is no such finding. */
enum err sensing_open(struct sensing *sensing, const char *id);

/* Closes the open sensor, probes and opens. */
enum err sensing_start(struct sensing *sensing, const char *driver, const char *id);

/* Reads group 0 once; earlier observations are discarded. */
enum err sensing_read(struct sensing *sensing);

/* Reads the group of a channel and returns its observation; missing is ERR_COUNT when the driver
 * returned none for it. */
struct observation sensing_observe(struct sensing *sensing, const char *channel);

/* The same, asserting that it is not missing; returns its value. */
double sensing_value(struct sensing *sensing, const char *channel);

/* By name; NULL when there is none. */
const struct sensor_channel *channel_named(const struct sensor *sensor, const char *name);
const char *fact_named(const struct sensor *sensor, const char *key);
const struct sensor_channel *sensing_channel(const struct sensing *sensing, const char *name);
const char *sensing_fact(const struct sensing *sensing, const char *key);
const struct observation *sensing_observation(const struct sensing *sensing, const char *name);

/* The raw count times its resolution; NaN when the last read had no count of the channel. */
double sensing_joules(const struct sensing *sensing, const char *name);

void sensing_release(struct sensing *sensing);

/* ---- a fake machine and its sensors, new for each test ---- */

struct fixture {
    struct tree tree;
    struct sensing s;
};

/* *state becomes the fixture. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

#define FIXTURE_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

/* ---- as an unprivileged user: file modes do not stop root ---- */

enum { NOT_NOBODY = 125 };

/* Runs body in a child as an unprivileged user; returns its result, NOT_NOBODY where root may not
 * drop privileges, -1 after a crash. The tree's root must be accessible to others. */
int as_nobody(int (*body)(void *), void *argument);

#endif
