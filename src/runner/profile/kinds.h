/* A share summed by kind of device, as a profiling record wants it: GPUs, CPUs (with their memory), and
 * boards whose one meter covers all.  Nothing is unknown as 0: a kind without a figure is UNKNOWN. */
#ifndef IPW_RUNNER_PROFILE_KINDS_H
#define IPW_RUNNER_PROFILE_KINDS_H

#include "attribute/share.h"

struct kind_sum {
    double joules;            /* the request's */
    double window_joules;     /* the whole devices' in its window */
    struct value_stats watts; /* the whole devices'; of several devices only the average is known */
    unsigned devices;
};

struct kinds {
    struct kind_sum gpu, cpu, soc;
    double window_joules;                                       /* of all counted devices */
    struct value_stats gpu_memory, host_memory, temperature;    /* B, B, C */
    double gpu_memory_total;                                    /* B */
    double utilisation, memory_utilisation, tensor_utilisation; /* %, mean over the GPUs */
};

void kinds_of(const struct share *share, struct kinds *out);

/* Which kind stands for the whole: "gpu", "soc" or "cpu"; NULL when nothing is known. */
const char *kinds_basis(const struct kinds *kinds);

#endif
