/* A fake of NVIDIA's management library: the ABI of every function we load, with scripted results
 * (see nvml_script.h). It declares the ABI independently of the program's own declarations, so that
 * an error in one shows up against the other. It also checks its caller: calls outside init and
 * shutdown, foreign handles, wrong versions and misordered GPM samples get the error of the real
 * library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>

#include "nvml_script.h"

enum {
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    OUT_OF_MEMORY = 20,
    ARGUMENT_VERSION_MISMATCH = 25,
};

typedef union {
    double d;
    unsigned int ui;
    unsigned long ul;
    unsigned long long ull;
    long long sll;
    int si;
    unsigned short us;
} value_t;

typedef struct {
    unsigned int field_id, scope_id;
    long long timestamp, latency_usec;
    int value_type, nvml_return;
    value_t value;
} field_t;

typedef struct {
    unsigned long long timestamp;
    value_t value;
} sample_t;

typedef struct {
    char legacy[16];
    unsigned int domain, bus, device, pci_device_id, subsystem_id;
    char bus_id[32];
} pci_t;

typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} memory_v2_t;

typedef struct {
    unsigned int pid;
    unsigned long long used_gpu_memory;
    unsigned int gpu_instance_id, compute_instance_id;
} process_t;

typedef struct {
    unsigned int pid;
    unsigned long long timestamp;
    unsigned int sm_util, mem_util, enc_util, dec_util;
} process_sample_t;

typedef struct {
    unsigned int id;
    int nvml_return;
    double value;
    struct {
        const char *short_name, *long_name, *unit;
    } info;
} gpm_metric_t;

typedef struct {
    double t;
    int device, instance;
} gpm_sample_t;

typedef struct {
    unsigned int version, num_metrics;
    gpm_sample_t *sample1, *sample2;
    gpm_metric_t metrics[210];
} gpm_get_t;

_Static_assert(sizeof(field_t) == 40 && sizeof(sample_t) == 16 && sizeof(pci_t) == 68 &&
                   sizeof(memory_v2_t) == 40 && sizeof(process_t) == 24 &&
                   sizeof(process_sample_t) == 32 && sizeof(gpm_metric_t) == 40 &&
                   sizeof(gpm_get_t) == 8424,
               "layouts of driver 580 on a 64-bit machine");

/* Handles are addresses: [d][0] a card, [d][1..] its MIG instances. */
static char handles[DEVICES_MAX][1 + MIG_MAX];
static int init_count;

static int handle_index(const void *handle, int *instance)
{
    const char *at = handle, *first = &handles[0][0];
    if (!at || at < first || at >= first + sizeof handles)
        return -1;
    *instance = (int)((at - first) % (1 + MIG_MAX));
    return (int)((at - first) / (1 + MIG_MAX));
}

/* Begins a call: takes the lock, reads the script, applies its rules. On 0 the lock is held until
 * `end`. device -1: the call takes none. */
static int begin(const char *function, int device)
{
    pthread_mutex_lock(&script_lock);
    count_call(function);
    script_refresh();
    double block_ms = 0;
    int code = init_count ? apply_rules(function, device, &block_ms) : UNINITIALIZED;
    if (!code && device >= script.devices)
        code = INVALID_ARGUMENT;
    if (block_ms > 0) {
        pthread_mutex_unlock(&script_lock);
        struct timespec t = {(time_t)(block_ms / 1e3), (long)(fmod(block_ms, 1e3) * 1e6)};
        nanosleep(&t, NULL);
        pthread_mutex_lock(&script_lock);
    }
    if (code)
        pthread_mutex_unlock(&script_lock);
    return code;
}

static int end(int code)
{
    if (current.function)
        spend();
    current.function = NULL;
    pthread_mutex_unlock(&script_lock);
    return code;
}

/* The same for a call on a card's handle; *gpu is the card. */
static int begin_on(const char *function, const void *handle, struct gpu **gpu)
{
    int instance, device = handle_index(handle, &instance);
    if (device < 0 || instance != 0)
        return INVALID_ARGUMENT;
    *gpu = &script.gpus[device];
    return begin(function, device);
}

static unsigned as_uint(double number)
{
    return number >= 0 && number < UINT_MAX ? (unsigned)llround(number) : UINT_MAX;
}

static value_t as_value(int type, double number)
{
    value_t value = {.ull = 0};
    double whole = isfinite(number) ? number : -1;
    switch (type) {
    case 0:
        value.d = number;
        break;
    case 1:
        value.ui = as_uint(number);
        break;
    case 2:
        value.ul = (unsigned long)llround(whole);
        break;
    case 3:
        value.ull = (unsigned long long)llround(whole);
        break;
    case 4:
        value.sll = llround(whole);
        break;
    case 5:
        value.si = (int)lround(whole);
        break;
    default:
        value.us = (unsigned short)lround(whole);
        break;
    }
    return value;
}

static int copy_value(const char *function, const void *handle, enum key key, unsigned *out)
{
    struct gpu *gpu;
    int code = begin_on(function, handle, &gpu);
    if (code)
        return code;
    *out = as_uint(gpu->value[key]);
    return end(0);
}

static int copy_text(char *to, unsigned length, const char *text)
{
    if (strlen(text) >= length)
        return end(INSUFFICIENT_SIZE);
    memcpy(to, text, strlen(text) + 1);
    return end(0);
}

/* ---- the library ---- */

/* The following functions are called through dlsym only: they need no prototypes, but must be exported. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC visibility push(default)

int nvmlInit_v2(void)
{
    pthread_mutex_lock(&script_lock);
    script_refresh();
    time_zero();
    /* Counters and rules persist, as a kernel driver outlives its clients. */
    static void *self;
    Dl_info info;
    if (!self && dladdr(&init_count, &info))
        self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NODELETE);
    double block_ms = 0;
    int code = script.init ? script.init : apply_rules("nvmlInit_v2", -1, &block_ms);
    if (!code)
        init_count++;
    return end(code);
}

int nvmlShutdown(void)
{
    int code = begin("nvmlShutdown", -1);
    if (code)
        return code;
    init_count--;
    return end(0);
}

int nvmlSystemGetDriverVersion(char *to, unsigned length)
{
    int code = begin("nvmlSystemGetDriverVersion", -1);
    return code ? code : copy_text(to, length, script.driver);
}

/* ---- cards ---- */

int nvmlDeviceGetCount_v2(unsigned *count)
{
    int code = begin("nvmlDeviceGetCount_v2", -1);
    if (code)
        return code;
    *count = (unsigned)script.devices;
    return end(0);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{
    int code = begin("nvmlDeviceGetHandleByIndex_v2", (int)index);
    if (code)
        return code;
    *handle = handles[index];
    return end(0);
}

int nvmlDeviceGetName(void *handle, char *to, unsigned length)
{
    int instance, device = handle_index(handle, &instance);
    int code = device < 0 ? INVALID_ARGUMENT : begin("nvmlDeviceGetName", device);
    if (code)
        return code;
    const struct gpu *gpu = &script.gpus[device];
    char text[160];
    const char *profile = instance ? gpu->instances[instance - 1].profile : "";
    snprintf(text, sizeof text, instance ? "%s MIG %s" : "%s%s", gpu->name,
             instance && !profile[0] ? "1g.18gb" : profile);
    return copy_text(to, length, text);
}

int nvmlDeviceGetUUID(void *handle, char *to, unsigned length)
{
    int instance, device = handle_index(handle, &instance);
    int code = device < 0 ? INVALID_ARGUMENT : begin("nvmlDeviceGetUUID", device);
    if (code)
        return code;
    char text[96];
    if (instance == 0)
        snprintf(text, sizeof text, "%s", script.gpus[device].uuid);
    else
        snprintf(text, sizeof text, "MIG-%d%d000000-5555-6666-7777-888888888888", device, instance);
    return copy_text(to, length, text);
}

int nvmlDeviceGetPciInfo_v3(void *handle, pci_t *pci)
{
    struct gpu *gpu;
    int code = begin_on("nvmlDeviceGetPciInfo_v3", handle, &gpu);
    if (code)
        return code;
    *pci = (pci_t){.bus = 0x18 + (unsigned)(gpu - script.gpus), .pci_device_id = 0x233510de};
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
    return end(0);
}

int nvmlDeviceGetArchitecture(void *handle, unsigned *architecture)
{
    return copy_value("nvmlDeviceGetArchitecture", handle, KEY_ARCHITECTURE, architecture);
}

int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor)
{
    struct gpu *gpu;
    int code = begin_on("nvmlDeviceGetCudaComputeCapability", handle, &gpu);
    if (code)
        return code;
    *major = (int)gpu->value[KEY_COMPUTE];
    *minor = (int)lround((gpu->value[KEY_COMPUTE] - *major) * 10);
    return end(0);
}

int nvmlDeviceGetPersistenceMode(void *handle, unsigned *mode)
{
    return copy_value("nvmlDeviceGetPersistenceMode", handle, KEY_PERSISTENCE, mode);
}

int nvmlDeviceGetPowerManagementLimitConstraints(void *handle, unsigned *min, unsigned *max)
{
    struct gpu *gpu;
    int code = begin_on("nvmlDeviceGetPowerManagementLimitConstraints", handle, &gpu);
    if (code)
        return code;
    *min = as_uint(gpu->value[KEY_LIMIT_MIN_MW]);
    *max = as_uint(gpu->value[KEY_LIMIT_MAX_MW]);
    return end(0);
}

/* ---- MIG ---- */

int nvmlDeviceGetMigMode(void *handle, unsigned *now, unsigned *pending)
{
    struct gpu *gpu;
    int code = begin_on("nvmlDeviceGetMigMode", handle, &gpu);
    if (code)
        return code;
    *now = *pending = gpu->mig >= 0;
    return end(0);
}

int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *count)
{
    struct gpu *gpu;
    int code = begin_on("nvmlDeviceGetMaxMigDeviceCount", handle, &gpu);
    if (code)
        return code;
    *count = gpu->mig >= 0 ? MIG_MAX : 0;
    return end(0);
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **instance)
{
    struct gpu *gpu;
    int code = begin_on("nvmlDeviceGetMigDeviceHandleByIndex", handle, &gpu);
    if (code)
        return code;
    if ((int)index >= gpu->mig)
        return end(NOT_FOUND);
    *instance = (char *)handle + 1 + index;
    return end(0);
}

/* On the handle of an instance, whose number is *instance. */
static int begin_on_mig(const char *function, const void *handle, struct gpu **gpu, int *instance)
{
    int device = handle_index(handle, instance);
    if (device < 0 || *instance == 0)
        return INVALID_ARGUMENT;
    *gpu = &script.gpus[device];
    return begin(function, device);
}

int nvmlDeviceGetGpuInstanceId(void *handle, unsigned *id)
{
    struct gpu *gpu;
    int instance, code = begin_on_mig("nvmlDeviceGetGpuInstanceId", handle, &gpu, &instance);
    if (code)
        return code;
    *id = (unsigned)instance;
    return end(0);
}

typedef struct {
    unsigned multiprocessors, shared[5], gpu_slices, compute_slices;
    unsigned long long memory_mb;
} attributes_t;
_Static_assert(sizeof(attributes_t) == 40, "layout of driver 580");

int nvmlDeviceGetAttributes_v2(void *handle, attributes_t *out)
{
    struct gpu *gpu;
    int instance, code = begin_on_mig("nvmlDeviceGetAttributes_v2", handle, &gpu, &instance);
    if (code)
        return code;
    unsigned slices = gpu->instances[instance - 1].slices;
    slices = slices ? slices : 1;
    *out = (attributes_t){.multiprocessors = 18 * slices,
                          .gpu_slices = slices,
                          .compute_slices = slices,
                          .memory_mb = 18432ULL * slices};
    return end(0);
}

/* ---- energy and power ---- */

int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *mj)
{
    struct gpu *gpu;
    int code = begin_on("nvmlDeviceGetTotalEnergyConsumption", handle, &gpu);
    if (code)
        return code;
    double t = now_s(), counted = counter_mj(gpu, t), update = 1 + floor(t / gpu->tick_s + 1e-9);
    calls.repeated += calls.counted[gpu - script.gpus] == update && t > LEARNED_S;
    calls.counted[gpu - script.gpus] = update;
    *mj = counted >= 0 && counted < 1.8e19 ? (unsigned long long)counted : ULLONG_MAX;
    return end(0);
}

int nvmlDeviceGetPowerUsage(void *handle, unsigned *mw)
{
    struct gpu *gpu;
    int code = begin_on("nvmlDeviceGetPowerUsage", handle, &gpu);
    if (code)
        return code;
    *mw = as_uint(field_mw(gpu, now_s(), 1));
    return end(0);
}

static void fill_field(const struct gpu *gpu, field_t *field)
{
    double t = now_s(), mw = 0;
    char by_id[40], by_scope[40];
    double block_ms = 0;
    int device = (int)(gpu - script.gpus);
    snprintf(by_id, sizeof by_id, "field:%u", field->field_id);
    snprintf(by_scope, sizeof by_scope, "field:%u:%u", field->field_id, field->scope_id);
    field->nvml_return = apply_rules(by_id, device, &block_ms);
    if (!field->nvml_return)
        field->nvml_return = apply_rules(by_scope, device, &block_ms);
    if (field->nvml_return)
        return;
    double window_s = field->field_id == 185 ? 1 : 0.025;
    if ((field->field_id != 185 && field->field_id != 186) || field->scope_id > 2 ||
        (field->scope_id == 1 && !gpu->module)) {
        field->nvml_return = NOT_SUPPORTED;
        return;
    }
    mw = field_mw(gpu, t, window_s);
    if (field->scope_id == 2)
        mw = gpu->is_set[KEY_MEMORY_POWER_MW] ? gpu->value[KEY_MEMORY_POWER_MW]
                                              : mw * gpu->memory_share;
    field->timestamp = (long long)wall_us(t);
    field->latency_usec = 1;
    field->value_type = script.fields_type;
    field->value = as_value(script.fields_type, mw);
}

int nvmlDeviceGetFieldValues(void *handle, int count, field_t *fields)
{
    struct gpu *gpu;
    int code = begin_on("nvmlDeviceGetFieldValues", handle, &gpu);
    if (code)
        return code;
    current.fields = count;
    for (int i = 0; i < count; i++)
        fill_field(gpu, &fields[i]);
    return end(0);
}

/* Samples sit at whole multiples of the spacing; the buffer keeps the last `depth` of them. */
static int fill_samples(const struct gpu *gpu, unsigned long long last, unsigned *count,
                        sample_t *samples)
{
    unsigned filled = 0;
    long newest = (long)floor(now_s() / gpu->spacing_s + 1e-6);
    long oldest = newest - gpu->depth + 1 > 0 ? newest - gpu->depth + 1 : 0;
    for (long k = oldest; k <= newest; k++) {
        double t = (double)k * gpu->spacing_s;
        if (wall_us(t) <= last)
            continue;
        if (filled == *count)
            return INSUFFICIENT_SIZE;
        samples[filled++] =
            (sample_t){wall_us(t), as_value(script.samples_type, sample_mw(gpu, t))};
    }
    if (!filled)
        return NOT_FOUND;
    for (int i = 0; i < gpu->pad && filled < *count; i++)
        samples[filled++] = (sample_t){0};
    *count = filled;
    return 0;
}

int nvmlDeviceGetSamples(void *handle, int type, unsigned long long last, int *value_type,
                         unsigned *count, sample_t *samples)
{
    struct gpu *gpu;
    int code = begin_on("nvmlDeviceGetSamples", handle, &gpu);
    if (code)
        return code;
    char by_type[24];
    double block_ms = 0;
    snprintf(by_type, sizeof by_type, "samples:%d", type);
    code = apply_rules(by_type, (int)(gpu - script.gpus), &block_ms);
    if (!code && type != 0 && !(type == 7 && gpu->module))
        code = NOT_SUPPORTED;
    if (code)
        return end(code);
    *value_type = script.samples_type;
    if (samples)
        return end(fill_samples(gpu, last, count, samples));
    *count = (unsigned)(gpu->depth + gpu->pad);
    return end(0);
}

/* ---- clocks and power limit: queries and settings ---- */

static int copy_limit(const char *function, void *handle, unsigned *mw)
{
    struct gpu *gpu;
    int code = begin_on(function, handle, &gpu);
    if (code)
        return code;
    settings_load();
    unsigned set = settings[gpu - script.gpus].limit_mw;
    *mw = set ? set : as_uint(gpu->value[KEY_LIMIT_MW]);
    return end(0);
}

int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *mw)
{
    return copy_limit("nvmlDeviceGetEnforcedPowerLimit", handle, mw);
}

int nvmlDeviceGetPowerManagementLimit(void *handle, unsigned *mw)
{
    return copy_limit("nvmlDeviceGetPowerManagementLimit", handle, mw);
}

int nvmlDeviceGetPowerManagementDefaultLimit(void *handle, unsigned *mw)
{
    return copy_value("nvmlDeviceGetPowerManagementDefaultLimit", handle, KEY_LIMIT_DEFAULT_MW, mw);
}

int nvmlDeviceGetClockInfo(void *handle, int type, unsigned *mhz)
{
    struct gpu *gpu;
    int code = begin_on("nvmlDeviceGetClockInfo", handle, &gpu);
    if (code)
        return code;
    settings_load();
    const struct settings *set = &settings[gpu - script.gpus];
    const unsigned *range = type == 2 ? set->memory : set->graphics;
    *mhz = as_uint(gpu->value[type == 2 ? KEY_CLOCK_MEMORY : KEY_CLOCK_SM]);
    if (range[1] && *mhz > range[1])
        *mhz = range[1];
    if (range[0] && *mhz < range[0])
        *mhz = range[0];
    return end(0);
}

int nvmlDeviceGetMaxClockInfo(void *handle, int type, unsigned *mhz)
{
    return copy_value("nvmlDeviceGetMaxClockInfo", handle,
                      type == 2 ? KEY_CLOCK_MEMORY_MAX : KEY_CLOCK_SM_MAX, mhz);
}

/* Fills what fits; for too small a buffer returns the required count. */
static int copy_clocks(const unsigned *clocks, unsigned there, unsigned *count, unsigned *out)
{
    unsigned room = *count;
    *count = there;
    if (!there)
        return end(NOT_SUPPORTED);
    if (room < there)
        return end(INSUFFICIENT_SIZE);
    memcpy(out, clocks, there * sizeof *out);
    return end(0);
}

int nvmlDeviceGetSupportedMemoryClocks(void *handle, unsigned *count, unsigned *out)
{
    struct gpu *gpu;
    unsigned clocks[CLOCK_SETS_MAX];
    int code = begin_on("nvmlDeviceGetSupportedMemoryClocks", handle, &gpu);
    if (code)
        return code;
    for (unsigned i = 0; i < gpu->clock_sets; i++)
        clocks[i] = gpu->clocks[i].memory_mhz;
    return copy_clocks(clocks, gpu->clock_sets, count, out);
}

int nvmlDeviceGetSupportedGraphicsClocks(void *handle, unsigned memory_mhz, unsigned *count,
                                         unsigned *out)
{
    struct gpu *gpu;
    static unsigned clocks[4096]; /* under the script's lock */
    unsigned there = 0;
    int code = begin_on("nvmlDeviceGetSupportedGraphicsClocks", handle, &gpu);
    if (code)
        return code;
    const struct clock_set *set = gpu->clocks;
    while (set < gpu->clocks + gpu->clock_sets && set->memory_mhz != memory_mhz)
        set++;
    if (set == gpu->clocks + gpu->clock_sets)
        return end(gpu->clock_sets ? NOT_FOUND : NOT_SUPPORTED);
    if (set->count)
        return copy_clocks(set->list, set->count, count, out);
    long steps = (long)floor((set->high - set->low) / set->step + 1e-6);
    for (long k = steps; k >= 0 && there < 4096; k--)
        clocks[there++] = (unsigned)floor(set->low + (double)k * set->step + 1e-6);
    return copy_clocks(clocks, there, count, out);
}

/* Begins a call that changes a setting, with the earlier settings loaded; `finish` saves them. */
static int begin_set(const char *function, void *handle, struct gpu **gpu, struct settings **set)
{
    int code = begin_on(function, handle, gpu);
    if (code)
        return code;
    settings_load();
    *set = &settings[*gpu - script.gpus];
    return 0;
}

static int finish(const struct gpu *gpu)
{
    settings_save();
    record_change(gpu, now_s());
    return end(0);
}

static int lock_range(const char *function, void *handle, bool memory, unsigned low, unsigned high)
{
    struct gpu *gpu;
    struct settings *set;
    int code = begin_set(function, handle, &gpu, &set);
    if (code)
        return code;
    if (low > high)
        return end(INVALID_ARGUMENT);
    unsigned *range = memory ? set->memory : set->graphics;
    range[0] = low;
    range[1] = high;
    return finish(gpu);
}

int nvmlDeviceSetGpuLockedClocks(void *handle, unsigned low, unsigned high)
{
    return lock_range("nvmlDeviceSetGpuLockedClocks", handle, false, low, high);
}

int nvmlDeviceResetGpuLockedClocks(void *handle)
{
    return lock_range("nvmlDeviceResetGpuLockedClocks", handle, false, 0, 0);
}

int nvmlDeviceSetMemoryLockedClocks(void *handle, unsigned low, unsigned high)
{
    return lock_range("nvmlDeviceSetMemoryLockedClocks", handle, true, low, high);
}

int nvmlDeviceResetMemoryLockedClocks(void *handle)
{
    return lock_range("nvmlDeviceResetMemoryLockedClocks", handle, true, 0, 0);
}

int nvmlDeviceSetPowerManagementLimit(void *handle, unsigned mw)
{
    struct gpu *gpu;
    struct settings *set;
    int code = begin_set("nvmlDeviceSetPowerManagementLimit", handle, &gpu, &set);
    if (code)
        return code;
    if (mw < gpu->value[KEY_LIMIT_MIN_MW] || mw > gpu->value[KEY_LIMIT_MAX_MW])
        return end(INVALID_ARGUMENT);
    set->limit_mw = mw;
    return finish(gpu);
}

/* ---- other readings ---- */

int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *celsius)
{
    return sensor ? INVALID_ARGUMENT
                  : copy_value("nvmlDeviceGetTemperature", handle, KEY_TEMPERATURE, celsius);
}

int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *total_free_used)
{
    int instance, device = handle_index(handle, &instance);
    int code = device < 0 ? INVALID_ARGUMENT : begin("nvmlDeviceGetMemoryInfo", device);
    if (code)
        return code;
    const struct gpu *gpu = &script.gpus[device];
    if (instance) {
        unsigned slices = gpu->instances[instance - 1].slices;
        total_free_used[0] = (slices ? slices : 1) * (18432ULL << 20);
        total_free_used[2] = 1ULL << 30;
        total_free_used[1] = total_free_used[0] - total_free_used[2];
        return end(0);
    }
    double used = gpu->value[KEY_MEMORY_USED] + gpu->value[KEY_MEMORY_RESERVED];
    total_free_used[0] = (unsigned long long)gpu->value[KEY_MEMORY_TOTAL];
    total_free_used[1] = (unsigned long long)(gpu->value[KEY_MEMORY_TOTAL] - used);
    total_free_used[2] = (unsigned long long)used;
    return end(0);
}

int nvmlDeviceGetMemoryInfo_v2(void *handle, memory_v2_t *memory)
{
    struct gpu *gpu;
    int code = begin_on("nvmlDeviceGetMemoryInfo_v2", handle, &gpu);
    if (code)
        return code;
    if (memory->version != 0x2000028)
        return end(ARGUMENT_VERSION_MISMATCH);
    const double *value = gpu->value;
    memory->total = (unsigned long long)value[KEY_MEMORY_TOTAL];
    memory->reserved = (unsigned long long)value[KEY_MEMORY_RESERVED];
    memory->used = (unsigned long long)value[KEY_MEMORY_USED];
    memory->free = memory->total - memory->reserved - memory->used;
    return end(0);
}

int nvmlDeviceGetUtilizationRates(void *handle, unsigned *gpu_memory)
{
    struct gpu *gpu;
    int code = begin_on("nvmlDeviceGetUtilizationRates", handle, &gpu);
    if (code)
        return code;
    gpu_memory[0] = as_uint(gpu->value[KEY_UTILIZATION]);
    gpu_memory[1] = as_uint(gpu->value[KEY_UTILIZATION_MEMORY]);
    return end(0);
}

static int copy_reasons(const char *function, void *handle, unsigned long long *reasons)
{
    unsigned bits;
    int code = copy_value(function, handle, KEY_THROTTLE, &bits);
    if (!code)
        *reasons = bits;
    return code;
}

int nvmlDeviceGetCurrentClocksEventReasons(void *handle, unsigned long long *reasons)
{
    return copy_reasons("nvmlDeviceGetCurrentClocksEventReasons", handle, reasons);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *reasons)
{
    return copy_reasons("nvmlDeviceGetCurrentClocksThrottleReasons", handle, reasons);
}

/* ---- processes ---- */

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, process_t *out)
{
    struct gpu *gpu;
    int code = begin_on("nvmlDeviceGetComputeRunningProcesses_v3", handle, &gpu);
    if (code)
        return code;
    unsigned capacity = *count;
    *count = gpu->process_count;
    if (capacity < gpu->process_count)
        return end(INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < gpu->process_count; i++) {
        double memory = gpu->processes[i].memory;
        out[i] =
            (process_t){gpu->processes[i].pid,
                        memory >= 0 ? (unsigned long long)memory : ULLONG_MAX, UINT_MAX, UINT_MAX};
    }
    return end(0);
}

/* A sample of each busy process, taken now. Like the driver's (580 on an H200), it requires
 * capacity for its whole history, however little there is to report. */
enum { PROCESS_HISTORY = 72 };

int nvmlDeviceGetProcessUtilization(void *handle, process_sample_t *out, unsigned *count,
                                    unsigned long long last)
{
    struct gpu *gpu;
    int code = begin_on("nvmlDeviceGetProcessUtilization", handle, &gpu);
    if (code)
        return code;
    unsigned filled = 0;
    unsigned long long t = wall_us(now_s());
    if (!out || *count < PROCESS_HISTORY) {
        *count = PROCESS_HISTORY;
        return end(INSUFFICIENT_SIZE);
    }
    for (unsigned i = 0; i < gpu->process_count; i++) {
        const struct fake_process *process = &gpu->processes[i];
        if (process->pct < 0 || t <= last)
            continue;
        out[filled++] = (process_sample_t){process->pid, t, as_uint(process->pct), 0, 0, 0};
    }
    *count = filled;
    return end(filled ? 0 : NOT_FOUND);
}

/* ---- GPM ---- */

int nvmlGpmQueryDeviceSupport(void *handle, unsigned *version_supported)
{
    struct gpu *gpu;
    int code = begin_on("nvmlGpmQueryDeviceSupport", handle, &gpu);
    if (code)
        return code;
    if (version_supported[0] != 1)
        return end(ARGUMENT_VERSION_MISMATCH);
    version_supported[1] = gpu->gpm;
    return end(0);
}

int nvmlGpmSampleAlloc(gpm_sample_t **sample)
{
    int code = begin("nvmlGpmSampleAlloc", -1);
    if (code)
        return code;
    *sample = calloc(1, sizeof **sample);
    return end(*sample ? 0 : OUT_OF_MEMORY);
}

int nvmlGpmSampleFree(gpm_sample_t *sample)
{
    free(sample);
    return 0;
}

int nvmlGpmSampleGet(void *handle, gpm_sample_t *sample)
{
    struct gpu *gpu;
    int code = begin_on("nvmlGpmSampleGet", handle, &gpu);
    if (code)
        return code;
    if (!gpu->gpm || gpu->mig >= 0)
        return end(NOT_SUPPORTED);
    *sample = (gpm_sample_t){now_s(), (int)(gpu - script.gpus) + 1, 0};
    return end(0);
}

int nvmlGpmMigSampleGet(void *handle, unsigned id, gpm_sample_t *sample)
{
    struct gpu *gpu;
    int code = begin_on("nvmlGpmMigSampleGet", handle, &gpu);
    if (code)
        return code;
    if (!gpu->gpm || (int)id > gpu->mig || id < 1)
        return end(NOT_SUPPORTED);
    *sample = (gpm_sample_t){now_s(), (int)(gpu - script.gpus) + 1, (int)id};
    return end(isnan(gpu->instances[id - 1].sm) ? NOT_SUPPORTED : 0);
}

int nvmlGpmMetricsGet(gpm_get_t *get)
{
    int code = begin("nvmlGpmMetricsGet", -1);
    if (code)
        return code;
    const gpm_sample_t *first = get->sample1, *second = get->sample2;
    if (get->version != 1)
        return end(ARGUMENT_VERSION_MISMATCH);
    if (!first->device || first->device != second->device || first->instance != second->instance ||
        first->t > second->t)
        return end(INVALID_ARGUMENT);
    for (unsigned i = 0; i < get->num_metrics; i++) {
        gpm_metric_t *metric = &get->metrics[i];
        static const enum key METRICS[16] = {
            [2] = KEY_SM_UTIL,         [3] = KEY_SM_OCCUPANCY, [5] = KEY_TENSOR,
            [10] = KEY_DRAM_BANDWIDTH, [11] = KEY_FP64_UTIL,   [12] = KEY_FP32_UTIL,
            [13] = KEY_FP16_UTIL};
        bool known = metric->id < 16 && METRICS[metric->id];
        metric->nvml_return = known ? 0 : NOT_SUPPORTED;
        /* For samples that are too close together the library's result is arbitrary. */
        metric->value = !known                       ? 0
                        : second->t - first->t < 0.1 ? NAN
                        : first->instance
                            ? script.gpus[first->device - 1].instances[first->instance - 1].sm
                            : script.gpus[first->device - 1].value[METRICS[metric->id]];
    }
    return end(0);
}
