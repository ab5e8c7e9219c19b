/* Driving a sensor driver in a test: find, open, read one channel; and running a body as a user
 * whom file modes bind (they do not bind root). */
#ifndef TESTS_SUPPORT_DRIVE_H
#define TESTS_SUPPORT_DRIVE_H

#include "sensors/registry.h"

/* What one driver finds; release with sensor_findings_release. */
struct sensor_findings drive_probe(const struct sensor_driver *driver);

/* The finding with this id, or NULL. */
const struct sensor_finding *drive_find(const struct sensor_findings *findings, const char *id);

/* Probes, opens the finding with this id and returns whether that went well. */
bool drive_open(const struct sensor_driver *driver, const char *id, struct sensor *out);

/* The channel's number, or -1. */
int drive_channel(const struct sensor *sensor, const char *name);

/* Reads the channel's group and returns its observation; missing is ERR_COUNT when the driver
 * observed nothing at all for it.  *err (may be NULL) gets what read returned. */
struct observation drive_read(struct sensor *sensor, const char *channel, enum err *err);

/* Runs body in a child as an unprivileged user; what it returns is the result, -1 a crash.
 * The tree's root directory must let others in. */
int drive_as_nobody(int (*body)(void *), void *argument);

#endif
