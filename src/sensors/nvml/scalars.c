#include "sensors/nvml/scalars.h"

static int read_temperature(struct nvml_gpu *gpu, double *value)
{
    unsigned celsius = 0;
    int code = NVML_CALL(gpu->api, temperature, gpu->handle, 0, &celsius);
    *value = celsius;
    return code;
}

/* Version 2 keeps apart what the driver reserves for itself, as nvidia-smi does. */
static int read_memory(struct nvml_gpu *gpu, double *used, double *total)
{
    struct nvml_memory_v2 v2 = {.version = NVML_MEMORY_V2_VERSION};
    int code = NVML_CALL(gpu->api, memory_v2, gpu->handle, &v2);
    *used = (double)v2.used;
    *total = (double)v2.total;
    if (code != NVML_FUNCTION_NOT_FOUND && code != NVML_ARGUMENT_VERSION_MISMATCH)
        return code;
    struct nvml_memory v1 = {0};
    code = NVML_CALL(gpu->api, memory, gpu->handle, &v1);
    *used = (double)v1.used;
    *total = (double)v1.total;
    return code;
}

static int read_memory_used(struct nvml_gpu *gpu, double *value)
{
    double total;
    return read_memory(gpu, value, &total);
}

static int read_memory_total(struct nvml_gpu *gpu, double *value)
{
    double used;
    return read_memory(gpu, &used, value);
}

static int read_utilisation(struct nvml_gpu *gpu, double *value)
{
    struct nvml_utilisation percent = {0};
    int code = NVML_CALL(gpu->api, utilisation, gpu->handle, &percent);
    *value = percent.gpu;
    return code;
}

static int read_memory_utilisation(struct nvml_gpu *gpu, double *value)
{
    struct nvml_utilisation percent = {0};
    int code = NVML_CALL(gpu->api, utilisation, gpu->handle, &percent);
    *value = percent.memory;
    return code;
}

/* The first call, at open, allocates and takes the sample that the next is compared with. */
static int start_tensor(struct nvml_gpu *gpu)
{
    const struct nvml_api *api = gpu->api;
    struct nvml_gpm_support support = {.version = NVML_GPM_VERSION};
    int code = NVML_CALL(api, gpm_support, gpu->handle, &support);
    if (code != NVML_OK)
        return code;
    if (!support.supported || !api->gpm_free || !api->gpm_get || !api->gpm_metrics)
        return NVML_NOT_SUPPORTED;
    for (int i = 0; i < 2 && code == NVML_OK; i++)
        code = NVML_CALL(api, gpm_alloc, &gpu->gpm[i]);
    if (code == NVML_OK)
        code = api->gpm_get(gpu->handle, gpu->gpm[0]);
    return code;
}

static int read_tensor(struct nvml_gpu *gpu, double *value)
{
    *value = 0;
    if (!gpu->gpm[1])
        return start_tensor(gpu);
    unsigned next = 1 - gpu->gpm_last;
    int code = gpu->api->gpm_get(gpu->handle, gpu->gpm[next]);
    if (code != NVML_OK)
        return code;
    struct nvml_gpm_metrics *metrics = &gpu->gpm_metrics;
    metrics->version = NVML_GPM_VERSION;
    metrics->count = 1;
    metrics->first = gpu->gpm[gpu->gpm_last];
    metrics->second = gpu->gpm[next];
    metrics->metrics[0].id = NVML_GPM_TENSOR_ACTIVE;
    gpu->gpm_last = next;
    code = gpu->api->gpm_metrics(metrics);
    *value = metrics->metrics[0].value;
    return code == NVML_OK ? metrics->metrics[0].code : code;
}

static int read_clock(struct nvml_gpu *gpu, double *value)
{
    unsigned mhz = 0;
    int code = NVML_CALL(gpu->api, clock, gpu->handle, NVML_CLOCK_SM, &mhz);
    if (code == NVML_NOT_SUPPORTED)
        code = NVML_CALL(gpu->api, clock, gpu->handle, NVML_CLOCK_GRAPHICS, &mhz);
    *value = mhz;
    return code;
}

static int read_memory_clock(struct nvml_gpu *gpu, double *value)
{
    unsigned mhz = 0;
    int code = NVML_CALL(gpu->api, clock, gpu->handle, NVML_CLOCK_MEMORY, &mhz);
    *value = mhz;
    return code;
}

static int read_limit(struct nvml_gpu *gpu, double *value)
{
    unsigned mw = 0;
    int code = NVML_CALL(gpu->api, limit, gpu->handle, &mw);
    *value = mw * 1e-3;
    return code;
}

static int read_throttle(struct nvml_gpu *gpu, double *value)
{
    static const struct {
        unsigned long long theirs;
        unsigned ours;
    } MAP[] = {
        {1U << 0, 0}, /* idle: clocks are low for want of work, nothing holds them back */
        {1U << 1, THROTTLE_LIMIT},
        {1U << 2, THROTTLE_POWER},
        {1U << 3, THROTTLE_OTHER}, /* hardware slowdown, cause not told */
        {1U << 4, THROTTLE_SYNC},
        {1U << 5, THROTTLE_THERMAL},
        {1U << 6, THROTTLE_THERMAL},
        {1U << 7, THROTTLE_BRAKE},
        {1U << 8, THROTTLE_LIMIT}, /* the display's clock setting */
    };
    unsigned long long reasons = 0;
    int code = NVML_CALL(gpu->api, clock_events, gpu->handle, &reasons);
    if (code == NVML_FUNCTION_NOT_FOUND)
        code = NVML_CALL(gpu->api, clock_throttle, gpu->handle, &reasons);
    unsigned bits = 0;
    for (size_t i = 0; i < sizeof MAP / sizeof *MAP; i++) {
        if (reasons & MAP[i].theirs)
            bits |= MAP[i].ours;
        reasons &= ~MAP[i].theirs;
    }
    /* The general slowdown bit accompanies the thermal and brake bits; alone it says nothing. */
    if (bits & (THROTTLE_THERMAL | THROTTLE_BRAKE))
        bits &= ~(unsigned)THROTTLE_OTHER;
    *value = reasons ? bits | THROTTLE_OTHER : bits;
    return code;
}

static int read_usage(struct nvml_gpu *gpu, double *value)
{
    unsigned mw = 0;
    int code = NVML_CALL(gpu->api, power, gpu->handle, &mw);
    *value = mw * 1e-3;
    return code;
}

const struct nvml_scalar NVML_SCALARS[] = {
    {"temperature", QTY_TEMPERATURE, 200, read_temperature},
    {"memory.used", QTY_MEMORY_USED, 1e15, read_memory_used},
    {"memory.total", QTY_MEMORY_TOTAL, 1e15, read_memory_total},
    {"utilisation", QTY_UTILISATION, 100, read_utilisation},
    {"utilisation.memory", QTY_MEMORY_UTILISATION, 100, read_memory_utilisation},
    {"utilisation.tensor", QTY_TENSOR_UTILISATION, 100, read_tensor},
    {"clock", QTY_CLOCK, 20e3, read_clock},
    {"clock.memory", QTY_MEMORY_CLOCK, 100e3, read_memory_clock},
    {"power_limit", QTY_POWER_LIMIT, NVML_WATTS_ABSURD, read_limit},
    {"throttle", QTY_THROTTLE, 1e9, read_throttle},
};
const size_t NVML_SCALAR_COUNT = sizeof NVML_SCALARS / sizeof *NVML_SCALARS;

const struct nvml_scalar NVML_POWER_USAGE = {"power.average", QTY_POWER, NVML_WATTS_ABSURD,
                                             read_usage};

void nvml_gpu_release(struct nvml_gpu *gpu)
{
    for (int i = 0; i < 2; i++)
        if (gpu->gpm[i])
            gpu->api->gpm_free(gpu->gpm[i]);
    gpu->gpm[0] = gpu->gpm[1] = NULL;
}
