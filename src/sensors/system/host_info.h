/* Properties of the machine: operating system, processors, memory.  Read once at start, through the root prefix.
 * Unknown text is "", unknown numbers are 0: reports print null for both.  Plain data owned by the caller. */
#ifndef IPW_SENSORS_HOST_INFO_H
#define IPW_SENSORS_HOST_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

/* The processors according to /proc/cpuinfo. */
struct cpu_identity {
    char brand[96];  /* "AMD EPYC 9654 96-Core Processor"; "" where the kernel has none (Arm) */
    char vendor[24]; /* x86: "GenuineIntel"; "" elsewhere */
    unsigned family; /* x86 */
    unsigned model;  /* x86 */
    unsigned implementer; /* Arm; 0 elsewhere */
    unsigned part;        /* Arm, of the first processor listed */
    unsigned processors;  /* hardware threads listed: the online ones */
    unsigned sockets;     /* distinct "physical id"; 0 when the file has none */
    bool hypervisor;      /* x86: the CPU reports a hypervisor */
};

struct host_info {
    char os_name[64];    /* "Debian GNU/Linux" */
    char os_version[64]; /* "12 (bookworm)" */
    char kernel[96];     /* "6.1.0-18-amd64" */
    char host_name[64];
    char machine[24];     /* "x86_64", "aarch64" */
    char cpu_brand[96];   /* as the kernel reports it; the core's name on Arm ("Neoverse-V2") */
    char cpu_product[48]; /* Arm: "AWS Graviton4", "NVIDIA Grace" */
    char board[96];       /* device tree model or firmware product name */
    unsigned cpu_count;   /* hardware threads online */
    unsigned sockets;
    uint64_t memory_bytes;
    bool virtualized;
    bool smt_off; /* one thread per core is running */
    struct cpu_identity cpu;
};

void host_info_read(struct host_info *out);

/* The first processor only, which is enough for everything except counts; zeroed when unreadable. */
void cpu_identity_read(struct cpu_identity *out);

/* An NVIDIA Jetson board; model (may be NULL) gets its name, "" when only the release file identifies it. */
bool host_is_jetson(char *model, size_t size);

/* An NVIDIA Grace processor, by its SoC identity or product name. */
bool host_is_grace(const struct host_info *host);

/* ---- CPU time ---- */

/* CPU time from /proc/stat, for the drivers that need utilization.
 * A struct proc_stat is the caller's; it owns one file descriptor between open and close. */

/* Ticks of all CPUs since boot. */
struct cpu_times {
    uint64_t busy;   /* user (guests are inside it), nice, system, irq, softirq */
    uint64_t idle;   /* idle and waiting for I/O */
    uint64_t stolen; /* the hypervisor ran another guest on the CPU */
};

/* Between two readings, over all CPUs. */
static inline double cpu_ticks_between(const struct cpu_times *from, const struct cpu_times *to)
{
    return (double)(to->busy + to->idle + to->stolen) -
           (double)(from->busy + from->idle + from->stolen);
}

struct proc_stat {
    int fd;
    struct cpu_times last;
    bool has_last;
};

/* How to fix it where it may not be read. */
#define PROC_STAT_FIX "run as root, or outside the sandbox that hides /proc/stat"

enum err proc_stat_open(struct proc_stat *stat) MUST_USE;
void proc_stat_close(struct proc_stat *stat);

/* Since boot; false where it cannot be read. */
bool proc_stat_now(struct cpu_times *out);

/* Of all CPUs together, in seconds since boot; UNKNOWN where it cannot be read. */
double proc_stat_busy_s(void);

/* The share (0..1) of the CPUs' time since the previous call that was busy.  Stolen time passed but was not ours, so
 * it lowers the share.  ERR_NO_DATA on the first call and when a counter went backwards, as after a CPU went offline
 * (the next interval starts here); ERR_BUSY when no tick has passed yet, ERR_BAD_VALUE when the file is invalid (the
 * interval goes on). */
enum err proc_stat_utilization(struct proc_stat *stat, double *out) MUST_USE;

#endif
