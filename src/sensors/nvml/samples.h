/* The driver's buffer of power samples: five times finer than any polling, at two calls per second.
 * A struct nvml_samples owns its buffers from a successful start until release. */
#ifndef IPW_SENSORS_NVML_SAMPLES_H
#define IPW_SENSORS_NVML_SAMPLES_H

#include <stdbool.h>

#include "core/units.h"
#include "sensors/nvml/api.h"
#include "sensors/sensor.h"

struct nvml_samples {
    int type;                   /* NVML_SAMPLES_... */
    struct nvml_sample *buffer; /* as the driver gave them */
    nanos *times;               /* monotonic time of each */
    unsigned capacity;
    unsigned long long last_us; /* driver's time of the newest sample passed on */
    nanos last_t;               /* its time as we passed it on */
    nanos wall_offset;          /* wall - monotonic at the last drain */
    nanos spacing;              /* of samples, as last seen */
    nanos mixed_until;  /* until then the buffer may hold stamps from before a clock was set */
    bool foreign_clock; /* the driver's clock is not ours */
    bool empty;         /* there was no sample yet at the start */
};

/* Finds out whether the card has such a buffer and skips what it holds already: that is the
 * past, and after a re-open it has been passed on before.  Returns the driver's code; anything but
 * NVML_OK leaves nothing to release. */
int nvml_samples_start(struct nvml_samples *samples, const struct nvml_api *api, nvml_device card,
                       int type);

/* Appends every sample since the last drain, once, oldest first, as watts.  Samples that do
 * not fit into *out are left for the next drain.  No allocation. */
int nvml_samples_drain(struct nvml_samples *samples, const struct nvml_api *api, nvml_device card,
                       unsigned channel, double watts_limit, struct observations *out);

void nvml_samples_release(struct nvml_samples *samples);

#endif
