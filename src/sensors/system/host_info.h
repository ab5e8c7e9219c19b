/* What machine this is: operating system, processors, memory.  Read once at start, through the
 * root prefix.  Unknown text is "", unknown numbers are 0: reports print null for both.
 * Plain data owned by the caller. */
#ifndef IPW_SENSORS_HOST_INFO_H
#define IPW_SENSORS_HOST_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What /proc/cpuinfo says about the processors. */
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

/* An NVIDIA Jetson board; model (may be NULL) gets its name, "" when only the release file
 * identifies it. */
bool host_is_jetson(char *model, size_t size);

/* An NVIDIA Grace processor, by its SoC identity or product name. */
bool host_is_grace(const struct host_info *host);

#endif
