/* Figures of the units that a format runs on, UNKNOWN where a device has none. */
#ifndef IPW_TESTS_SUPPORT_WAYS_H
#define IPW_TESTS_SUPPORT_WAYS_H

#include "catalog/hardware.h"

static inline double product_joules(const struct hardware *hardware, enum precision precision)
{
    struct hardware_path way = hardware_matmul_path(hardware, precision);
    return way.joules ? way.joules->value : UNKNOWN;
}

static inline double other_flops(const struct hardware *hardware, enum precision precision)
{
    struct hardware_path way = hardware_elementwise_path(hardware, precision);
    return way.flops ? way.flops->value : UNKNOWN;
}

static inline double other_joules(const struct hardware *hardware, enum precision precision)
{
    struct hardware_path way = hardware_elementwise_path(hardware, precision);
    return way.joules ? way.joules->value : UNKNOWN;
}

#endif
