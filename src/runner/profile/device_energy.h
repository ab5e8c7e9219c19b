/* A share summed by kind of device, as a profiling record wants it: GPUs, CPUs (with their memory), and
 * boards whose one meter covers all.  Nothing is unknown as 0: a kind without a figure is UNKNOWN. */
#ifndef IPW_RUNNER_PROFILE_DEVICE_ENERGY_H
#define IPW_RUNNER_PROFILE_DEVICE_ENERGY_H

#include "attribute/share.h"

struct device_sum {
    double joules;            /* the request's */
    double window_joules;     /* the whole devices' in its window */
    struct value_stats watts; /* the whole devices'; of several devices only the average is known */
    unsigned devices;
};

struct device_energy {
    struct device_sum gpu, cpu, soc;
    double window_joules;                                       /* of all counted devices */
    struct value_stats gpu_memory, host_memory, temperature;    /* B, B, C */
    double gpu_memory_total;                                    /* B */
    double utilisation, memory_utilisation, tensor_utilisation; /* %, mean over the GPUs */
};

void device_energy_of(const struct share *share, struct device_energy *out);

/* Which kind stands for the whole: "gpu", "soc" or "cpu"; NULL when nothing is known. */
const char *device_energy_basis(const struct device_energy *kinds);

#endif
