/* What /proc/cpuinfo says of the processors.  Plain data owned by the caller. */
#ifndef IPW_SENSORS_CPUINFO_H
#define IPW_SENSORS_CPUINFO_H

#include <stdbool.h>

#include "core/err.h"

struct cpu_identity {
    char brand[96];  /* "AMD EPYC 9654 96-Core Processor"; "" where the kernel has none (Arm) */
    char vendor[24]; /* x86: "GenuineIntel"; "" elsewhere */
    unsigned family; /* x86 */
    unsigned model;  /* x86 */
    unsigned implementer; /* Arm; 0 elsewhere */
    unsigned part;        /* Arm, of the first processor listed */
    unsigned processors;  /* hardware threads listed: the online ones */
    unsigned sockets;     /* distinct "physical id"; 0 when the file has none */
    double mhz;           /* mean "cpu MHz"; UNKNOWN when the file has none */
    bool hypervisor;      /* x86: the CPU says that it is a virtual one */
};

enum err cpuinfo_read(struct cpu_identity *out) MUST_USE;

#endif
