/* The measured machine, included in every report.  Plain data owned by the caller. */
#ifndef IPW_RUNNER_HOST_REPORT_H
#define IPW_RUNNER_HOST_REPORT_H

#include "sensors/system/host_info.h"
#include "sensors/sensor.h"

struct baseline;
struct hardware;
struct json;
struct ledger;
struct summary;

struct host_report {
    struct host_info info;
    char gpu[128];       /* "NVIDIA H200 x8"; on a Jetson the board; "" if none */
    char gpu_uuids[512]; /* comma-separated, in order; "" if one is unknown or they do not fit */
    const char *gpu_vendor, *gpu_type, *gpu_backend; /* names in the Python IPW; or NULL */
    char label[64]; /* short hardware name for the names of run directories */
};

/* The catalog entry of this machine: of its first GPU, else of its CPU.  Probes the sensors.  ERR_NOT_FOUND names the
 * device missing from the catalog.  The caller releases *out. */
enum err host_find_hardware(struct hardware *out, struct error *why) MUST_USE;

/* The same for its CPU, whatever GPUs it has. */
enum err host_find_processor(struct hardware *out, struct error *why) MUST_USE;

void host_report_fill(const struct sensor_findings *findings, struct host_report *out);
void host_to_json(struct json *json, const char *key, const struct host_report *host);

/* Fills the machine's part of a summary.  The strings are borrowed from the host, the baseline and the
 * ledger, which must outlive the summary. */
void run_summary_host(const struct host_report *host, struct summary *out);

/* Number of devices with an hourly price: the GPUs, or 1 for a machine without any. */
double run_devices(const struct ledger *ledger); /* NULL is allowed */

/* Idle power, energy of each device, and device time; either argument may be NULL. */
void run_summary_devices(const struct baseline *idle, const struct ledger *ledger,
                         struct summary *out);

#endif
