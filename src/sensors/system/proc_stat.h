/* CPU time from /proc/stat, for the drivers that need utilization.
 * A struct proc_stat is the caller's; it owns one file descriptor between open and close. */
#ifndef IPW_SENSORS_PROC_STAT_H
#define IPW_SENSORS_PROC_STAT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

/* Ticks of all CPUs since boot. */
struct cpu_times {
    uint64_t busy;   /* user (guests are inside it), nice, system, irq, softirq */
    uint64_t idle;   /* idle and waiting for I/O */
    uint64_t stolen; /* the hypervisor ran another guest on the CPU */
};

struct proc_stat {
    int fd;
    struct cpu_times last;
    bool has_last;
};

/* How to fix it where it may not be read. */
#define PROC_STAT_FIX "run as root, or outside the sandbox that hides /proc/stat"

enum err proc_stat_open(struct proc_stat *stat) MUST_USE;
void proc_stat_close(struct proc_stat *stat);

/* Since boot. */
enum err proc_stat_times(const struct proc_stat *stat, struct cpu_times *out) MUST_USE;

/* Of all CPUs together, in seconds since boot; UNKNOWN where it cannot be read. */
double proc_stat_busy_s(void);

/* The share (0..1) of the CPUs' time since the previous call that was busy.  Stolen time
 * passed but was not ours, so it lowers the share.  ERR_NO_DATA on the first call and
 * when a counter went backwards, as after a CPU went offline (the next interval starts here);
 * ERR_BUSY when no tick has passed yet, ERR_BAD_VALUE when the file makes no sense (the interval
 * goes on). */
enum err proc_stat_utilization(struct proc_stat *stat, double *out) MUST_USE;

#endif
