/* The part of NVIDIA's management library that we call: declarations of our own for a library
 * that is opened at run time, so that the program builds and starts where there is none.
 *
 * The library is a shared, counted resource: every successful nvml_acquire is matched by one
 * nvml_release, from any thread; the last one shuts it down and unloads it, so that the next user
 * sees a driver that was reloaded in between. */
#ifndef IPW_SENSORS_NVML_API_H
#define IPW_SENSORS_NVML_API_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

typedef struct nvml_opaque_device *nvml_device;
typedef struct nvml_opaque_gpm_sample *nvml_gpm_sample;

/* Return codes. */
enum nvml_code {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_TIMEOUT = 10,
    NVML_LIBRARY_NOT_FOUND = 12,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_OPERATING_SYSTEM = 17, /* denied by the kernel or a cgroup */
    NVML_VERSION_MISMATCH = 18,
    NVML_IN_USE = 19,
    NVML_MEMORY = 20,
    NVML_FREQ_NOT_SUPPORTED = 24,
    NVML_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_DEPRECATED = 26,
    NVML_GPU_NOT_FOUND = 28,
    NVML_UNKNOWN = 999,
};

enum { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 };
enum { NVML_SAMPLES_TOTAL_POWER = 0, NVML_SAMPLES_MODULE_POWER = 7 };
enum { NVML_FIELD_POWER_AVERAGE = 185, NVML_FIELD_POWER_INSTANT = 186 };
enum { NVML_POWER_OF_GPU = 0, NVML_POWER_OF_MODULE = 1, NVML_POWER_OF_MEMORY = 2 };
enum { NVML_GPM_VERSION = 1 };

enum nvml_value_type {
    NVML_DOUBLE,
    NVML_UINT,
    NVML_ULONG,
    NVML_ULONGLONG,
    NVML_LONGLONG,
    NVML_INT,
    NVML_USHORT,
};

union nvml_value {
    double as_double;
    unsigned int as_uint;
    unsigned long as_ulong;
    unsigned long long as_ulonglong;
    long long as_longlong;
    int as_int;
    unsigned short as_ushort;
};

struct nvml_field {
    unsigned int id;
    unsigned int scope; /* of power fields: NVML_POWER_OF_... */
    long long time_us;  /* wall clock */
    long long latency_us;
    unsigned int type; /* enum nvml_value_type */
    int code;          /* enum nvml_code, of this field alone */
    union nvml_value value;
};

struct nvml_sample {
    unsigned long long time_us; /* wall clock */
    union nvml_value value;
};

struct nvml_pci {
    char bus_id_short[16];
    unsigned int domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

struct nvml_memory {
    unsigned long long total, free, used; /* bytes; used includes memory reserved by the driver */
};

struct nvml_memory_v2 {
    unsigned int version;
    unsigned long long total, reserved, free, used; /* bytes */
};
#define NVML_MEMORY_V2_VERSION ((unsigned)sizeof(struct nvml_memory_v2) | 2U << 24)

/* Of a MIG device. */
struct nvml_attributes {
    unsigned int multiprocessors, copy_engines, decoders, encoders, jpeg, ofa;
    unsigned int gpu_slices, compute_slices;
    unsigned long long memory_mb;
};

struct nvml_utilization {
    unsigned int gpu, memory; /* percent of the driver's last period */
};

struct nvml_process {
    unsigned int pid;
    unsigned long long memory; /* bytes; all ones where it is not available */
    unsigned int gpu_instance, compute_instance;
};

struct nvml_process_use {
    unsigned int pid;
    unsigned long long time_us;        /* wall clock */
    unsigned int sm, memory, enc, dec; /* percent */
};

struct nvml_gpm_support {
    unsigned int version;
    unsigned int supported;
};

struct nvml_gpm_metric {
    unsigned int id;
    int code;
    double value;
    const char *names[3]; /* short, long, unit: the library's own strings */
};

/* Libraries differ in the length of the array (98 to 333 so far) and fill only `count` of it; ours
 * is longer than any, in case one clears all of it. */
struct nvml_gpm_metrics {
    unsigned int version;
    unsigned int count;
    nvml_gpm_sample first, second;
    struct nvml_gpm_metric metrics[512];
};

struct nvml_api {
#define NVML(need, member, symbol, parameters) int(*member) parameters;
#include "sensors/nvml/api.def"
#undef NVML
};

/* Calls an optional function; one that the library lacks returns what an old driver would. */
#define NVML_CALL(api, member, ...)                                                                \
    ((api)->member ? (api)->member(__VA_ARGS__) : (int)NVML_FUNCTION_NOT_FOUND)

/* Opens, loads and initializes on first use.  ERR_ABSENT: no library, or no driver under it;
 * ERR_DENIED, ERR_UNSUPPORTED, ERR_LOST ... by what initialization returned, in *code too (NVML_OK
 * when it was not reached).  why->text describes it. */
enum err nvml_acquire(const struct nvml_api **out, int *code, struct error *why) MUST_USE;
void nvml_release(void);

/* Like nvml_release, but keeps the library initialized for the next user if this was the last:
 * starting it costs tens of milliseconds, and a probe is followed by an open.  nvml_release_kept
 * ends that, so that a probe always starts afresh. */
void nvml_release_keep(void);
void nvml_release_kept(void);

/* Our error for a return code.  ERR_LOST: the device or the whole driver went away, and only a new
 * start can show whether it came back. */
enum err nvml_err(int code);

/* Whether a call that returned this will never work here.  A busy or slow driver, on the other hand, recovers. */
bool nvml_is_final(int code);

/* "GPU is lost" ...: for messages. */
const char *nvml_code_text(int code);

/* A value of any type as a number; NaN for a type we do not know. */
double nvml_number(unsigned type, const union nvml_value *value);

#endif
