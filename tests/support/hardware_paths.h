/* Figures of the units that an operation runs on, UNKNOWN where a device has none. */
#ifndef IPW_TESTS_SUPPORT_HARDWARE_PATHS_H
#define IPW_TESTS_SUPPORT_HARDWARE_PATHS_H

#include "catalog/hardware.h"

static inline double matmul_joules(const struct hardware *hardware, enum precision precision)
{
    struct hardware_path path = hardware_matmul_path(hardware, precision);
    return path.joules ? path.joules->value : UNKNOWN;
}

static inline double elementwise_flops(const struct hardware *hardware, enum precision precision)
{
    struct hardware_path path = hardware_elementwise_path(hardware, precision);
    return path.flops ? path.flops->value : UNKNOWN;
}

static inline double elementwise_joules(const struct hardware *hardware, enum precision precision)
{
    struct hardware_path path = hardware_elementwise_path(hardware, precision);
    return path.joules ? path.joules->value : UNKNOWN;
}

#endif
