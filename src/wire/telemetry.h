/* Messages of the Python ipw's gRPC service (energy_monitor/energy.proto) as readings. */
#ifndef IPW_WIRE_TELEMETRY_H
#define IPW_WIRE_TELEMETRY_H

#include <stddef.h>

#include "core/err.h"

struct readings;

/* A message covers all GPUs together.  Its only clock is the wall clock, used in place of the monotonic one.  Negative
 * or missing values are unknown.  readings_release frees the readings. */
enum err readings_from_telemetry(const unsigned char *bytes, size_t length, struct readings *out,
                                 struct error *why) MUST_USE;

#endif
