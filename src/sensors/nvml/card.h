/* One NVIDIA card as an open sensor.  The card borrows the caller's hold on the library: release
 * that after nvml_card_close, not before. */
#ifndef IPW_SENSORS_NVML_CARD_H
#define IPW_SENSORS_NVML_CARD_H

#include <stdbool.h>

#include "core/units.h"
#include "sensors/nvml/api.h"
#include "sensors/sensor.h"

enum { NVML_UUID_SIZE = 96 };

/* A card as the driver lists it; its handle is valid while the library is held. */
struct nvml_card {
    unsigned index; /* NVML's, in PCI bus order */
    int code;       /* why there is no handle; NVML_OK when there is one */
    nvml_device handle;
    char name[96];
    char uuid[NVML_UUID_SIZE]; /* "" when the driver does not report it */
    unsigned key;              /* of the card itself: an index may pass to another card */
    bool selected;
    bool has_counter; /* of energy, as an earlier probe found */
};

/* Fills *out (zeroed, or as open gets it) under the number the card was found with: its index may
 * have changed since.  On failure nothing is left open. */
enum err nvml_card_open(const struct nvml_api *api, const struct nvml_card *card, unsigned number,
                        struct sensor *out, struct error *why) MUST_USE;

/* The read operation of the sensor contract. */
enum err nvml_card_read(struct sensor *sensor, unsigned group, struct observations *out);

/* The processes operation of the sensor contract. */
enum err nvml_card_processes(struct sensor *sensor, nanos since,
                             struct sensor_process out[SENSOR_PROCESSES_MAX], size_t *count);

void nvml_card_close(struct sensor *sensor);

/* ---- unit activity (activity.c) ---- */

/* SMs, their occupancy, DRAM, tensor cores and FP pipes, as means between two reads: from the card's own counters (GPM)
 * where it has them, else from a running `dcgmi dmon`; a card with neither has only utilization.  $IPW_DCGMI names
 * another program than the one in PATH; "" stands for none. */
struct nvml_activity;

/* Adds the channels, all in `group`; starts no program.  index: the driver's.  NULL where the card has neither. */
struct nvml_activity *nvml_activity_open(const struct nvml_api *api, nvml_device card,
                                         unsigned index, struct sensor *sensor, unsigned group);
void nvml_activity_close(struct nvml_activity *activity); /* NULL is allowed */

/* How often to read; NULL: instances only. */
struct sensor_group nvml_activity_pace(const struct nvml_activity *activity);

/* Appends new values; never waits for dcgmi.  ERR_LOST: the card is gone. */
enum err nvml_activity_read(struct nvml_activity *activity, struct observations *out);

/* ---- power samples (samples.c) ---- */

/* The driver's buffer of power samples: five times finer than any polling, at two calls per second.  It owns its buffers
 * from a successful start until release. */
struct nvml_samples {
    int type;                   /* NVML_SAMPLES_... */
    struct nvml_sample *buffer; /* as the driver gave them */
    nanos *times;               /* monotonic time of each */
    unsigned capacity;
    unsigned long long last_us; /* driver's time of the newest sample passed on */
    nanos last_t;               /* its time as we passed it on */
    nanos wall_offset;          /* wall - monotonic at the last drain */
    nanos spacing;              /* of samples, as last seen */
    nanos delay;        /* until a sample appears in the buffer, where it exceeds the spacing */
    nanos mixed_until;  /* until then the buffer may hold stamps from before a clock was set */
    bool foreign_clock; /* the driver uses another clock */
    bool empty;         /* there was no sample yet at the start */
};

/* Checks whether the card has such a buffer, and skips its present contents, which are from before the start or,
 * after a reopen, were passed on already.  Returns the driver's code; unless it is NVML_OK, there is nothing to
 * release. */
int nvml_samples_start(struct nvml_samples *samples, const struct nvml_api *api, nvml_device card,
                       int type);

/* Appends every sample since the last drain, once, oldest first, as watts.  Samples that do
 * not fit into *out are left for the next drain.  No allocation. */
int nvml_samples_drain(struct nvml_samples *samples, const struct nvml_api *api, nvml_device card,
                       unsigned channel, double watts_limit, struct observations *out);

void nvml_samples_release(struct nvml_samples *samples);

/* ---- MIG instances (mig.c) ---- */

struct nvml_mig;

/* Adds devices "gpu0:gi1" ... with channels in `group`, and a fact per instance; NULL without MIG. */
struct nvml_mig *nvml_mig_open(const struct nvml_api *api, nvml_device card, struct sensor *sensor,
                               unsigned group);
void nvml_mig_close(struct nvml_mig *mig); /* NULL is allowed */
enum err nvml_mig_read(struct nvml_mig *mig, struct observations *out);

/* The library and the handle of an open card. */
const struct nvml_api *nvml_card_api(const struct sensor *sensor, nvml_device *handle);

/* Throttle reasons as enum throttle_bit; *idle: clocks are low because there is no work.  Returns the driver's code. */
int nvml_card_throttle(const struct nvml_api *api, nvml_device handle, unsigned *out, bool *idle);

/* The control operations of the sensor contract. */
extern const struct sensor_control nvml_control;

#endif
