#include "runner/run_summary.h"

#include <stdlib.h>

#include "attribute/ledger.h"
#include "core/text.h"
#include "rundir/summary.h"
#include "runner/host_report.h"

/* Summaries and records have the same members for the machine. */
#define FILL_HOST(host, out)                                                                       \
    do {                                                                                           \
        const struct host_info *info = &(host)->info;                                              \
        (out)->os_name = str_or_null(info->os_name);                                               \
        (out)->os_version = str_or_null(info->os_version);                                         \
        (out)->kernel_version = str_or_null(info->kernel);                                         \
        (out)->host_name = str_or_null(info->host_name);                                           \
        (out)->cpu_brand = str_or_null(info->cpu_brand);                                           \
        (out)->cpu_count = info->cpu_count ? (int64_t)info->cpu_count : INTEGER_UNKNOWN;           \
        if ((host)->gpu[0]) {                                                                      \
            (out)->gpu_name = (host)->gpu;                                                         \
            (out)->gpu_vendor = (host)->gpu_vendor;                                                \
            (out)->gpu_device_id = 0;                                                              \
            (out)->gpu_device_type = (host)->gpu_type;                                             \
            (out)->gpu_backend = (host)->gpu_backend;                                              \
        }                                                                                          \
    } while (0)

void run_summary_host(const struct host_report *host, struct summary *out)
{
    out->hardware_label = host->label;
    out->gpu_uuids = str_or_null(host->gpu_uuids);
    FILL_HOST(host, out);
}

void run_record_host(const struct host_report *host, struct record *out)
{
    FILL_HOST(host, out);
}

enum err run_summary_devices(const struct baseline *idle, const struct ledger *ledger,
                             struct summary *out)
{
    size_t rows = idle ? idle->count : 0, count = ledger ? ledger->count : 0;
    out->idle = (struct summary_idle){.known = idle != NULL, .seconds = idle ? idle->seconds : 0};
    out->idle.devices = calloc(rows + 1, sizeof *out->idle.devices);
    out->devices = calloc(count + 1, sizeof *out->devices);
    if (!out->idle.devices || !out->devices)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < rows; i++)
        out->idle.devices[out->idle.count++] = (struct summary_idle_device){
            idle->rows[i].device, idle->rows[i].watts, idle->rows[i].sigma};
    for (size_t i = 0; i < count; i++) {
        const struct ledger_device *device = &ledger->devices[i];
        if (device->has_energy)
            out->devices[out->device_count++] = (struct summary_device){
                .id = device->id,
                .in_total = device->counted,
                .energy = record_energy_of(&device->energy),
                .power_mean_w = device->power_mean,
                .power_max_w = device->power_max,
                .residual = device->residual,
            };
    }
    return ERR_OK;
}
