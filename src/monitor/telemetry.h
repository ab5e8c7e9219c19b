/* One reading of the whole machine, with the fields of the telemetry service that the Python program `ipw` reads.
 *
 * `ipw monitor` writes it to a pipe (telemetry_feed.c) and energy-monitor serves it over gRPC: two programs of one
 * build, so the struct is written as it is.  It fits into PIPE_BUF, so that writes are atomic. */
#ifndef IPW_MONITOR_TELEMETRY_H
#define IPW_MONITOR_TELEMETRY_H

#include <stdint.h>

enum { TELEMETRY_VERSION = 1, TELEMETRY_TEXT = 96 };

/* NAN: unknown.  Strings are NUL-terminated and may be empty. */
struct telemetry {
    uint32_t size;    /* sizeof, to check that the reader is of the same build */
    uint32_t version; /* TELEMETRY_VERSION */
    int64_t unix_ns;
    /* All accelerators together; energy since the monitor started. */
    double power_w, energy_j, temperature_c;
    double gpu_memory_mib, gpu_memory_total_mib;
    double gpu_utilization_pct, gpu_memory_utilization_pct, gpu_tensor_pct;
    /* CPU packages and their memory. */
    double cpu_power_w, cpu_energy_j, cpu_memory_mib;
    double ane_power_w, ane_energy_j; /* Apple's neural engine */
    uint64_t gpu_id;
    uint32_t cpu_count;
    uint32_t healthy; /* at least one sensor is read */
    char platform[TELEMETRY_TEXT];
    char os_name[TELEMETRY_TEXT], os_version[TELEMETRY_TEXT], kernel_version[TELEMETRY_TEXT];
    char host_name[TELEMETRY_TEXT], cpu_brand[TELEMETRY_TEXT];
    char gpu_name[TELEMETRY_TEXT], gpu_vendor[TELEMETRY_TEXT], gpu_type[TELEMETRY_TEXT];
    char gpu_backend[TELEMETRY_TEXT];
};

#endif
