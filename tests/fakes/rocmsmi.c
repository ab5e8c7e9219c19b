/* A fake ROCm SMI; amd_script.h documents its script. Version 6 and above has a working
 * rsmi_dev_power_get and the longer frequency struct; below, the average power call and the shorter
 * one. */
#include "amd_script.h"

enum { INVALID_ARGS = 1, NOT_SUPPORTED = 2, INSUFFICIENT_SIZE = 11 };

#pragma GCC visibility push(default)
int rsmi_init(uint64_t flags);
int rsmi_shut_down(void);
int rsmi_num_monitor_devices(uint32_t *count);
int rsmi_version_get(uint32_t *version);
int rsmi_dev_name_get(uint32_t device, char *name, size_t size);
int rsmi_dev_unique_id_get(uint32_t device, uint64_t *id);
int rsmi_dev_pci_id_get(uint32_t device, uint64_t *bdf);
int rsmi_dev_energy_count_get(uint32_t device, uint64_t *count, float *uj, uint64_t *timestamp);
int rsmi_dev_power_get(uint32_t device, uint64_t *microwatts, unsigned *type);
int rsmi_dev_power_ave_get(uint32_t device, uint32_t sensor, uint64_t *microwatts);
int rsmi_dev_power_cap_get(uint32_t device, uint32_t sensor, uint64_t *microwatts);
int rsmi_dev_temp_metric_get(uint32_t device, uint32_t sensor, unsigned metric, int64_t *to);
int rsmi_dev_memory_usage_get(uint32_t device, unsigned type, uint64_t *bytes);
int rsmi_dev_memory_total_get(uint32_t device, unsigned type, uint64_t *bytes);
int rsmi_dev_busy_percent_get(uint32_t device, uint32_t *percent);
int rsmi_dev_memory_busy_percent_get(uint32_t device, uint32_t *percent);
int rsmi_dev_gpu_clk_freq_get(uint32_t device, unsigned type, void *frequencies);
#pragma GCC visibility pop

static unsigned enter_gpu(const char *function, uint32_t device, struct gpu **gpu)
{
    unsigned status = enter(function, (int)device);
    *gpu = &script.gpus[device % GPUS_MAX];
    if (!status && device >= script.devices)
        status = INVALID_ARGS;
    return status;
}

int rsmi_init(uint64_t flags)
{
    (void)flags;
    unsigned status = enter("init", -1);
    if (!status)
        start();
    return leave(status);
}

int rsmi_shut_down(void)
{
    unsigned status = enter("shut_down", -1);
    atomic_fetch_sub(&live, 1);
    return leave(status);
}

int rsmi_num_monitor_devices(uint32_t *count)
{
    unsigned status = enter("num_monitor_devices", -1);
    *count = script.devices;
    return leave(status);
}

int rsmi_version_get(uint32_t *version)
{
    unsigned status = enter("version_get", -1);
    version[0] = script.version;
    version[1] = 0;
    version[2] = 1;
    return leave(status);
}

int rsmi_dev_name_get(uint32_t device, char *name, size_t size)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("dev_name_get", device, &gpu);
    if (!status && snprintf(name, size, "%s", gpu->name) >= (int)size)
        status = INSUFFICIENT_SIZE;
    return leave(status);
}

int rsmi_dev_unique_id_get(uint32_t device, uint64_t *id)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("dev_unique_id_get", device, &gpu);
    *id = gpu->unique;
    if (!status && !gpu->unique)
        status = NOT_SUPPORTED;
    return leave(status);
}

int rsmi_dev_pci_id_get(uint32_t device, uint64_t *bdf)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("dev_pci_id_get", device, &gpu);
    *bdf = (uint64_t)gpu->pci[0] << 32 | gpu->pci[1] << 8 | gpu->pci[2] << 3 | gpu->pci[3];
    return leave(status);
}

int rsmi_dev_energy_count_get(uint32_t device, uint64_t *count, float *uj, uint64_t *timestamp)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("dev_energy_count_get", device, &gpu);
    if (!status) {
        *count = read_energy(device);
        *uj = (float)script.resolution;
        *timestamp = 12345;
    }
    return leave(status);
}

int rsmi_dev_power_get(uint32_t device, uint64_t *microwatts, unsigned *type)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("dev_power_get", device, &gpu);
    if (!status && (script.version < 6 || gpu->watts < 0))
        status = NOT_SUPPORTED;
    if (!status) {
        *microwatts = (uint64_t)(gpu->watts * 1e6);
        *type = 1;
    }
    return leave(status);
}

int rsmi_dev_power_ave_get(uint32_t device, uint32_t sensor, uint64_t *microwatts)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("dev_power_ave_get", device, &gpu);
    if (!status && (sensor != 0 || gpu->average < 0))
        status = NOT_SUPPORTED;
    if (!status)
        *microwatts = (uint64_t)(gpu->average * 1e6);
    return leave(status);
}

int rsmi_dev_power_cap_get(uint32_t device, uint32_t sensor, uint64_t *microwatts)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("dev_power_cap_get", device, &gpu);
    *microwatts = gpu->cap;
    if (!status && (sensor != 0 || !gpu->cap))
        status = NOT_SUPPORTED;
    return leave(status);
}

int rsmi_dev_temp_metric_get(uint32_t device, uint32_t sensor, unsigned metric, int64_t *to)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("dev_temp_metric_get", device, &gpu);
    if (!status) {
        *to = sensor == 0 ? gpu->edge : sensor == 1 ? gpu->junction : NOT_SET;
        if (*to == NOT_SET || metric != 0)
            status = NOT_SUPPORTED;
    }
    return leave(status);
}

int rsmi_dev_memory_usage_get(uint32_t device, unsigned type, uint64_t *bytes)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("dev_memory_usage_get", device, &gpu);
    *bytes = type == 0 ? gpu->used : 1;
    return leave(status);
}

int rsmi_dev_memory_total_get(uint32_t device, unsigned type, uint64_t *bytes)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("dev_memory_total_get", device, &gpu);
    *bytes = type == 0 ? gpu->total : 1;
    return leave(status);
}

int rsmi_dev_busy_percent_get(uint32_t device, uint32_t *percent)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("dev_busy_percent_get", device, &gpu);
    *percent = gpu->busy;
    return leave(status);
}

int rsmi_dev_memory_busy_percent_get(uint32_t device, uint32_t *percent)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("dev_memory_busy_percent_get", device, &gpu);
    *percent = gpu->memory_busy;
    return leave(status);
}

int rsmi_dev_gpu_clk_freq_get(uint32_t device, unsigned type, void *frequencies)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("dev_gpu_clk_freq_get", device, &gpu);
    if (!status && type != 0 && type != 4)
        status = NOT_SUPPORTED;
    if (status)
        return leave(status);
    uint64_t hertz = (type == 0 ? gpu->clock : gpu->memory_clock) * 1000000ull;
    if (script.version < 6) {
        struct {
            uint32_t count, current;
            uint64_t table[32];
        } out = {3, 2, {1, 2, hertz}};
        memcpy(frequencies, &out, sizeof out);
    } else {
        struct {
            bool deep_sleep;
            uint32_t count, current;
            uint64_t table[33];
        } out;
        memset(&out, 0, sizeof out);
        out.deep_sleep = true;
        out.count = 3;
        out.current = 1;
        out.table[0] = 1;
        out.table[1] = hertz;
        memcpy(frequencies, &out, sizeof out);
    }
    return leave(0);
}
