/* Which processes used the machine lately, and what of a device's power their share of its time attributes to them: of
 * the processors by CPU time, of a GPU whose driver tells by utilization.  Idle power is attributed to no process.
 * Zero-initialize a struct top; top_release frees it. */
#ifndef IPW_REPORT_TOP_H
#define IPW_REPORT_TOP_H

#include <stdbool.h>
#include <stddef.h>

#include "core/quantity.h"
#include "core/units.h"
#include "sensors/system/proc_stat.h"

struct proc_time;
struct reading;
struct sampler;

enum { TOP_MAX = 24 };

struct top_row {
    int pid;
    char device[DEVICE_NAME_SIZE]; /* "cpu", "gpu0" */
    char name[16];
    double share;         /* of the device's time */
    double watts, joules; /* attributed, lately and in all; UNKNOWN where the device's are */
    bool is_estimated;
};

struct top {
    struct top_row rows[TOP_MAX]; /* most watts first */
    size_t count;
    double
        cpu_watts; /* of the processors, which idle time shares with their rows; UNKNOWN where it is */
    nanos taken; /* when the rows were made; the rest is for the next ones */
    struct cpu_times cpus;
    struct proc_time *times;
    double *joules; /* of each of them */
    size_t time_count;
};

/* Makes the rows anew, from what happened since the last call; a reading has the power of that time. */
void top_take(struct top *top, struct sampler *sampler, const struct reading *reading, nanos now);
void top_release(struct top *top);

#endif
