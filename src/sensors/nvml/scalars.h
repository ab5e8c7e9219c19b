/* Quantities of a card that one call gives as one number.  A struct nvml_gpu is zeroed but for api
 * and handle by its owner, who ends it with nvml_gpu_release. */
#ifndef IPW_SENSORS_NVML_SCALARS_H
#define IPW_SENSORS_NVML_SCALARS_H

#include <stddef.h>

#include "core/quantity.h"
#include "sensors/nvml/api.h"

/* Above this a reading is no power but a fault, or a marker for "not available". */
#define NVML_WATTS_ABSURD 10e3

struct nvml_gpu {
    const struct nvml_api *api;
    nvml_device handle;
    nvml_gpm_sample gpm[2]; /* taken in turn; [gpm_last] is the newer */
    unsigned gpm_last;
    struct nvml_gpm_metrics gpm_metrics;
};

struct nvml_scalar {
    const char *name;
    enum quantity quantity;
    double max; /* in the base unit; above it the value is absurd */
    int (*read)(struct nvml_gpu *gpu, double *value);
};

/* The slow ones.  The first read of each, at open, tells whether the card has it and does what
 * set-up it needs; later reads allocate nothing. */
extern const struct nvml_scalar NVML_SCALARS[];
extern const size_t NVML_SCALAR_COUNT;

/* For drivers that know neither power field.  What it averages over depends on card and driver. */
extern const struct nvml_scalar NVML_POWER_USAGE;

void nvml_gpu_release(struct nvml_gpu *gpu);

#endif
