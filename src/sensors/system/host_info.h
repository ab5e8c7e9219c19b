/* What machine this is: operating system, processors, memory.  Read once at start, through the
 * root prefix.  Unknown text is "", unknown numbers are 0: reports print null for both.
 * Plain data owned by the caller. */
#ifndef IPW_SENSORS_HOST_INFO_H
#define IPW_SENSORS_HOST_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sensors/system/cpuinfo.h"

struct host_info {
    char os_name[64];    /* "Debian GNU/Linux" */
    char os_version[64]; /* "12 (bookworm)" */
    char kernel[96];     /* "6.1.0-18-amd64" */
    char host_name[64];
    char machine[24];     /* "x86_64", "aarch64" */
    char cpu_brand[96];   /* as the kernel has it; the core's name on Arm ("Neoverse-V2") */
    char cpu_product[48]; /* Arm: "AWS Graviton4", "NVIDIA Grace" */
    char board[96];       /* device tree model or firmware product name */
    unsigned cpu_count;   /* hardware threads online */
    unsigned sockets;
    uint64_t memory_bytes;
    bool virtualised;
    bool smt_off; /* one thread a core is running */
    struct cpu_identity cpu;
};

void host_info_read(struct host_info *out);

/* An NVIDIA Jetson board; model (may be NULL) gets its name, "" when only the release file tells.*/
bool host_is_jetson(char *model, size_t size);

/* An NVIDIA Grace processor, by its SoC identity or product name. */
bool host_is_grace(const struct host_info *host);

#endif
