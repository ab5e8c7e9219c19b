/* A fake AMD SMI with the ABI of the versions we support; amd_script.h documents its script.
 * Versions 23 to 25 and 26 differ in the version struct, 23, 24 and 25 in the power struct: each is
 * laid out as in the real library of that version. */
#include "amd_script.h"

enum { INVAL = 1, NOT_SUPPORTED = 2, WORDS = 16 };

typedef void *handle;

static char sockets[GPUS_MAX];
static char processors[GPUS_MAX];

#pragma GCC visibility push(default)
int amdsmi_init(uint64_t flags);
int amdsmi_shut_down(void);
int amdsmi_get_lib_version(uint32_t *version);
int amdsmi_get_socket_handles(uint32_t *count, handle *to);
int amdsmi_get_processor_handles(handle socket, uint32_t *count, handle *to);
int amdsmi_get_processor_type(handle processor, unsigned *type);
int amdsmi_get_gpu_asic_info(handle processor, char *info);
int amdsmi_get_gpu_device_bdf(handle processor, uint64_t *bdf);
int amdsmi_get_gpu_enumeration_info(handle processor, void *info);
int amdsmi_get_energy_count(handle processor, uint64_t *count, float *uj, uint64_t *timestamp);
int amdsmi_get_power_info(handle processor, uint32_t *info);
int amdsmi_get_power_cap_info(handle processor, uint32_t sensor, uint64_t *info);
int amdsmi_get_temp_metric(handle processor, unsigned sensor, unsigned metric, int64_t *to);
int amdsmi_get_gpu_memory_total(handle processor, unsigned type, uint64_t *bytes);
int amdsmi_get_gpu_memory_usage(handle processor, unsigned type, uint64_t *bytes);
int amdsmi_get_gpu_activity(handle processor, uint32_t *info);
int amdsmi_get_clock_info(handle processor, unsigned type, uint32_t *info);
#pragma GCC visibility pop

static int index_of(handle processor)
{
    long index = (char *)processor - processors;
    return index >= 0 && index < GPUS_MAX ? (int)index : -2;
}

/* Begins a call on a device and returns its script. */
static unsigned enter_gpu(const char *function, handle processor, struct gpu **gpu)
{
    int index = index_of(processor);
    unsigned status = enter(function, index);
    *gpu = index >= 0 ? &script.gpus[index] : NULL;
    if (!status && index < 0)
        status = INVAL;
    return status;
}

int amdsmi_init(uint64_t flags)
{
    unsigned status = enter("init", -1);
    if (!status && flags != 2)
        status = INVAL; /* more than GPUs requested */
    if (!status)
        start();
    return leave(status);
}

int amdsmi_shut_down(void)
{
    unsigned status = enter("shut_down", -1);
    atomic_fetch_sub(&live, 1);
    return leave(status);
}

int amdsmi_get_lib_version(uint32_t *version)
{
    unsigned status = enter("get_lib_version", -1);
    if (!status) {
        const char *build = "fake";
        version[0] = script.version; /* the year up to 25, then the major version */
        version[1] = 3;
        version[2] = 0;
        if (script.version < 26)
            version[3] = 0;
        memcpy(version + 4, &build, sizeof build);
    }
    return leave(status);
}

/* One socket per device, as in the real library for GPUs. */
int amdsmi_get_socket_handles(uint32_t *count, handle *to)
{
    unsigned status = enter("get_socket_handles", -1);
    if (!to)
        *count = script.devices;
    for (uint32_t i = 0; to && i < *count; i++)
        to[i] = &sockets[i];
    return leave(status);
}

int amdsmi_get_processor_handles(handle socket, uint32_t *count, handle *to)
{
    unsigned status = enter("get_processor_handles", -1);
    if (to && *count)
        to[0] = &processors[(char *)socket - sockets];
    *count = 1;
    return leave(status);
}

int amdsmi_get_processor_type(handle processor, unsigned *type)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("get_processor_type", processor, &gpu);
    if (!status)
        *type = gpu->type;
    return leave(status);
}

int amdsmi_get_gpu_asic_info(handle processor, char *info)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("get_gpu_asic_info", processor, &gpu);
    size_t size = script.version < 24 ? 64 : 256;
    if (!status) {
        snprintf(info, size, "%s", gpu->name);
        memset(info + size, 'x', 600); /* bytes after the name */
    }
    return leave(status);
}

int amdsmi_get_gpu_device_bdf(handle processor, uint64_t *bdf)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("get_gpu_device_bdf", processor, &gpu);
    if (!status)
        *bdf = (uint64_t)gpu->pci[0] << 16 | gpu->pci[1] << 8 | gpu->pci[2] << 3 | gpu->pci[3];
    return leave(status);
}

int amdsmi_get_gpu_enumeration_info(handle processor, void *info)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("get_gpu_enumeration_info", processor, &gpu);
    struct {
        uint32_t drm_render, drm_card, hsa_id, hip_id;
        char hip_uuid[256];
    } out = {128, 0, 1, 0, ""};
    if (!status && script.version < 25)
        status = NOT_SUPPORTED;
    if (!status) {
        out.hip_id = gpu->hip == NOT_SET ? (uint32_t)index_of(processor) : (uint32_t)gpu->hip;
        if (gpu->unique)
            snprintf(out.hip_uuid, sizeof out.hip_uuid, "GPU-%016llx",
                     (unsigned long long)gpu->unique);
        memcpy(info, &out, sizeof out);
    }
    return leave(status);
}

int amdsmi_get_energy_count(handle processor, uint64_t *count, float *uj, uint64_t *timestamp)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("get_energy_count", processor, &gpu);
    if (!status) {
        *count = read_energy((unsigned)index_of(processor));
        *uj = (float)script.resolution;
        *timestamp = 12345; /* of another clock */
    }
    return leave(status);
}

int amdsmi_get_power_info(handle processor, uint32_t *info)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("get_power_info", processor, &gpu);
    if (status)
        return leave(status);
    uint32_t current = gpu->watts < 0 ? 0xFFFF : (uint32_t)gpu->watts;
    uint32_t average = gpu->average < 0 ? 0xFFFF : (uint32_t)gpu->average;
    if (script.version < 24) {
        uint32_t out[WORDS] = {average, 800, 900, 1000};
        memcpy(info, out, sizeof out);
    } else if (script.version == 24) {
        uint32_t out[WORDS] = {current, average, 800, 900, 1000};
        memcpy(info, out, sizeof out);
    } else {
        uint32_t out[48] = {0, 0, current, average, 800, 0, 900, 0, 1000};
        if (script.version == 25)
            out[0] = out[1] = UINT32_MAX; /* present, but not filled yet */
        else
            out[0] = current != 0xFFFF ? current : average;
        memcpy(info, out, sizeof out);
    }
    return leave(0);
}

int amdsmi_get_power_cap_info(handle processor, uint32_t sensor, uint64_t *info)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("get_power_cap_info", processor, &gpu);
    if (!status && (sensor != 0 || !gpu->cap))
        status = NOT_SUPPORTED;
    if (!status) {
        info[0] = gpu->cap;
        info[1] = info[4] = 2 * gpu->cap;
    }
    return leave(status);
}

int amdsmi_get_temp_metric(handle processor, unsigned sensor, unsigned metric, int64_t *to)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("get_temp_metric", processor, &gpu);
    if (!status) {
        *to = sensor == 0 ? gpu->edge : sensor == 1 ? gpu->junction : NOT_SET;
        if (*to == NOT_SET || metric != 0)
            status = NOT_SUPPORTED;
    }
    return leave(status);
}

int amdsmi_get_gpu_memory_total(handle processor, unsigned type, uint64_t *bytes)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("get_gpu_memory_total", processor, &gpu);
    if (!status)
        *bytes = type == 0 ? gpu->total : 1;
    return leave(status);
}

int amdsmi_get_gpu_memory_usage(handle processor, unsigned type, uint64_t *bytes)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("get_gpu_memory_usage", processor, &gpu);
    if (!status)
        *bytes = type == 0 ? gpu->used : 1;
    return leave(status);
}

int amdsmi_get_gpu_activity(handle processor, uint32_t *info)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("get_gpu_activity", processor, &gpu);
    if (!status) {
        info[0] = gpu->busy;
        info[1] = gpu->memory_busy;
        info[2] = UINT32_MAX;
    }
    return leave(status);
}

int amdsmi_get_clock_info(handle processor, unsigned type, uint32_t *info)
{
    struct gpu *gpu;
    unsigned status = enter_gpu("get_clock_info", processor, &gpu);
    if (!status && type != 0 && type != 4)
        status = NOT_SUPPORTED;
    if (!status) {
        info[0] = type == 0 ? gpu->clock : gpu->memory_clock;
        info[1] = 500;
        info[2] = 3000;
    }
    return leave(status);
}
