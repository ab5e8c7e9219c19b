/* The list of sensor drivers.  Drivers never call this; layers above do. */
#ifndef IPW_SENSORS_REGISTRY_H
#define IPW_SENSORS_REGISTRY_H

#include "sensors/sensor.h"

/* NULL-terminated, in the order of sensors.def. */
extern const struct sensor_driver *const SENSOR_DRIVERS[];

/* NULL for an unknown name; *why (which may be NULL) then says so, with the nearest known name. */
const struct sensor_driver *sensor_driver_find(const char *name, struct error *why);

/* Probes every driver (or the one named by `only`). */
void sensors_probe(const struct sensor_config *config, const char *only,
                   struct sensor_findings *out);
void sensor_findings_release(struct sensor_findings *findings);

/* Opens a finding. */
enum err sensor_open(const struct sensor_finding *finding, struct sensor *out, struct error *why)
    MUST_USE;
void sensor_close(struct sensor *sensor);

#endif
