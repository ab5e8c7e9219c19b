/* How busy the units of a card are: SMs, their occupancy, DRAM, tensor cores and FP pipes, as means between two reads.
 * From the card's own counters (GPM) where it has them, else from a running `dcgmi dmon`; a card with neither has only
 * utilization.  $IPW_DCGMI names another program than the one in PATH; "" stands for none.
 *
 * Ownership: a struct nvml_activity that was opened is released by nvml_activity_close. */
#ifndef IPW_SENSORS_NVML_ACTIVITY_H
#define IPW_SENSORS_NVML_ACTIVITY_H

#include <stdbool.h>

#include "core/units.h"
#include "port/proc.h"
#include "sensors/nvml/api.h"
#include "sensors/sensor.h"
#include "wire/gpu_log.h"

enum { NVML_ACTIVITIES = 7 };
enum nvml_activity_source { ACTIVITY_NONE, ACTIVITY_GPM, ACTIVITY_DCGMI };

struct nvml_activity {
    enum nvml_activity_source source;
    unsigned channel; /* the first of NVML_ACTIVITIES, in order; set by who adds them */
    const struct nvml_api *api;
    nvml_device card;
    nvml_gpm_sample samples[2]; /* taken in turn; [last] is the newer */
    unsigned last;
    nanos taken;             /* when it was */
    bool has_begun, has_row; /* was read; dcgmi: has written a row */
    struct nvml_gpm_metrics metrics;
    char program[512]; /* dcgmi; started by the first read */
    unsigned index;
    struct helper dcgmi;
    struct gpu_log log;
    char line[1024];
    size_t length;
};

/* The name and quantity of the i-th channel. */
const char *nvml_activity_name(const struct nvml_activity *activity, unsigned i, char *to,
                               size_t size);
enum quantity nvml_activity_quantity(unsigned i);

/* Finds out where the activities of a card come from; starts no program.  index: the driver's. */
void nvml_activity_open(struct nvml_activity *activity, const struct nvml_api *api,
                        nvml_device card, unsigned index);
void nvml_activity_close(struct nvml_activity *activity);

/* How often to read. */
struct sensor_group nvml_activity_pace(const struct nvml_activity *activity);

/* Appends what is new; never waits for dcgmi.  ERR_LOST: the card is gone. */
enum err nvml_activity_read(struct nvml_activity *activity, struct observations *out);

#endif
