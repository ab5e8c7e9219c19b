#include "runner/host_report.h"

#include <stdlib.h>
#include <string.h>

#include "attribute/ledger.h"
#include "rundir/run_path.h"
#include "rundir/summary.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "catalog/device_peak.h"
#include "catalog/hardware.h"
#include "sensors/registry.h"
#include "sensors/sensor.h"

/* "<name> xN" for N identical cards, "<vendor> (N GPUs)" for different ones; the same names as in runs of the Python
 * IPW. */
static void name_gpus(const struct sensor_findings *findings, char *to, size_t size)
{
    const char *first = NULL;
    unsigned count = 0;
    bool equal = true;
    to[0] = '\0';
    for (size_t i = 0; i < findings->count; i++) {
        const struct sensor_finding *finding = &findings->items[i];
        if (finding->kind != SENSOR_GPU || finding->status != SENSOR_OK || !finding->name[0])
            continue;
        equal = equal && (!first || str_equal(first, finding->name));
        first = first ? first : finding->name;
        count++;
    }
    if (count && equal)
        str_format(to, size, "%s x%u", first, count);
    else if (count)
        str_format(to, size, "%.*s (%u GPUs)", (int)strcspn(first, " "), first, count);
}

static void list_uuids(const struct sensor_findings *findings, char *to, size_t size)
{
    size_t length = 0;
    bool known = true;
    to[0] = '\0';
    for (size_t i = 0; i < findings->count; i++) {
        const struct sensor_finding *finding = &findings->items[i];
        if (finding->kind != SENSOR_GPU || finding->status != SENSOR_OK)
            continue;
        known = known && finding->uuid[0] &&
                str_format(to + length, size - length, "%s%s", length ? "," : "", finding->uuid);
        length = strlen(to);
    }
    if (!known)
        to[0] = '\0';
}

/* NVML does not report a Jetson's GPU: the board's name is used instead, as in the Python IPW. */
static const char *jetson_name(const struct sensor_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        if (str_equal(findings->items[i].id, "jetson") && findings->items[i].status == SENSOR_OK)
            return findings->items[i].name;
    return NULL;
}

static void describe_gpus(const struct sensor_findings *findings, struct host_report *out)
{
    name_gpus(findings, out->gpu, sizeof out->gpu);
    const char *jetson = out->gpu[0] ? NULL : jetson_name(findings);
    bool amd = str_starts(out->gpu, "AMD");
    out->gpu_vendor = out->gpu_type = out->gpu_backend = NULL;
    if (jetson)
        chars_copy(out->gpu, jetson);
    if (!out->gpu[0])
        return;
    out->gpu_vendor = amd ? "AMD" : "NVIDIA";
    out->gpu_type = jetson ? "SoC" : "GPU";
    out->gpu_backend = jetson ? "sysfs/ina3221" : amd ? "AMDSMI" : "NVML";
}

void host_report_fill(const struct sensor_findings *findings, struct host_report *out)
{
    host_info_read(&out->info);
    describe_gpus(findings, out);
    list_uuids(findings, out->gpu_uuids, sizeof out->gpu_uuids);
    hardware_label(out->gpu, out->info.cpu_brand, out->label, sizeof out->label);
}

static enum err find_named(const char *name, struct hardware *out, struct error *why)
{
    if (name[0] && hardware_find_device(name, out))
        return ERR_OK;
    return err_set(why, ERR_NOT_FOUND, "%.80s", name[0] ? name : "unknown device");
}

enum err host_find_processor(struct hardware *out, struct error *why)
{
    struct host_info info;
    host_info_read(&info);
    return find_named(info.cpu_brand, out, why);
}

enum err host_find_hardware(struct hardware *out, struct error *why)
{
    struct sensor_findings findings = {0};
    struct host_info info;
    const char *name = NULL;
    sensors_probe(&(struct sensor_config){0}, NULL, &findings);
    host_info_read(&info);
    for (size_t i = 0; i < findings.count && !name; i++)
        if (findings.items[i].kind == SENSOR_GPU && findings.items[i].status == SENSOR_OK)
            name = findings.items[i].name;
    enum err err = find_named(name && name[0] ? name : info.cpu_brand, out, why);
    sensor_findings_release(&findings);
    return err;
}

void host_to_json(struct json *json, const char *key, const struct host_report *host)
{
    const struct host_info *info = &host->info;
    json_object(json, key);
    json_string(json, "hardware_label", host->label);
    json_string(json, "os_name", str_or_null(info->os_name));
    json_string(json, "os_version", str_or_null(info->os_version));
    json_string(json, "kernel_version", str_or_null(info->kernel));
    json_string(json, "host_name", str_or_null(info->host_name));
    json_string(json, "machine", str_or_null(info->machine));
    json_string(json, "cpu_brand", str_or_null(info->cpu_brand));
    json_string(json, "cpu_product", str_or_null(info->cpu_product));
    json_number(json, "cpu_count", info->cpu_count ? (double)info->cpu_count : UNKNOWN);
    json_number(json, "sockets", info->sockets ? (double)info->sockets : UNKNOWN);
    json_number(json, "memory_mb",
                info->memory_bytes ? (double)info->memory_bytes / (1 << 20) : UNKNOWN);
    json_string(json, "board", str_or_null(info->board));
    json_string(json, "gpu", str_or_null(host->gpu));
    json_bool(json, "virtualised", info->virtualized);
    json_object_end(json);
}

/* ---- summaries ---- */

void run_summary_host(const struct host_report *host, struct summary *out)
{
    const struct host_info *info = &host->info;
    out->hardware_label = host->label;
    out->gpu_uuids = str_or_null(host->gpu_uuids);
    out->os_name = str_or_null(info->os_name);
    out->os_version = str_or_null(info->os_version);
    out->kernel_version = str_or_null(info->kernel);
    out->host_name = str_or_null(info->host_name);
    out->cpu_brand = str_or_null(info->cpu_brand);
    out->cpu_count = info->cpu_count ? (int64_t)info->cpu_count : INTEGER_UNKNOWN;
    if (!host->gpu[0])
        return;
    out->gpu_name = host->gpu;
    out->gpu_vendor = host->gpu_vendor;
    out->gpu_device_id = 0;
    out->gpu_device_type = host->gpu_type;
    out->gpu_backend = host->gpu_backend;
}

double run_devices(const struct ledger *ledger)
{
    double gpus = 0;
    for (size_t i = 0; ledger && i < ledger->count; i++)
        gpus += ledger->devices[i].has_energy && ledger->devices[i].sensor->kind == SENSOR_GPU;
    return gpus ? gpus : 1;
}

void run_summary_devices(const struct baseline *idle, const struct ledger *ledger,
                         struct summary *out)
{
    size_t rows = idle ? idle->count : 0;
    size_t count = ledger ? ledger->count : 0;
    out->idle = (struct summary_idle){.known = idle != NULL, .seconds = idle ? idle->seconds : 0};
    out->idle.devices = xcalloc(rows + 1, sizeof *out->idle.devices);
    out->devices = xcalloc(count + 1, sizeof *out->devices);
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
    out->device_seconds = out->seconds * run_devices(ledger);
}
