/* What the amdsmi driver needs from a vendor library, whichever of the two is installed.
 *
 * AMD SMI (smi.c) and ROCm SMI (rocm.c) each fill one table of operations in our units;
 * amdsmi.c opens the first that works, counts its users and, since both libraries keep global
 * state and at least AMD SMI returns wrong energy counts when two threads are inside it, makes one
 * call at a time.
 *
 * Ownership: everything belongs to the caller.  Devices are indices below count(); they stay valid
 * until close. */
#ifndef IPW_SENSORS_AMDSMI_API_H
#define IPW_SENSORS_AMDSMI_API_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "sensors/system/hwmon_chips.h"

/* What is a plain number, in watts, degrees Celsius, bytes, percent and MHz. */
enum amd_value {
    AMD_POWER,
    AMD_POWER_CAP,
    AMD_JUNCTION, /* temperatures */
    AMD_EDGE,
    AMD_MEMORY_USED,
    AMD_MEMORY_TOTAL,
    AMD_BUSY,
    AMD_MEMORY_BUSY,
    AMD_CLOCK,
    AMD_MEMORY_CLOCK,
};

/* A PCI address as both libraries give it, in parts. */
struct amd_pci {
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned function;
};

struct amd_api {
    /* Opens the library, looks up its functions, initializes it and counts the devices. */
    enum err (*open)(struct error *why);
    void (*close)(void);

    void (*describe)(char *to, size_t size); /* "AMD SMI 26.1.0" */
    unsigned (*count)(void);

    /* Of one device.  ERR_UNSUPPORTED when the library or the device does not report it. */
    enum err (*name)(unsigned device, char *to, size_t size);
    enum err (*unique_id)(unsigned device, uint64_t *id); /* the digits of ROCr's GPU-... */
    enum err (*pci)(unsigned device, struct amd_pci *address);
    enum err (*hip_index)(unsigned device, unsigned *index); /* with nothing hidden from HIP */
    enum err (*energy)(unsigned device, uint64_t *count, double *joules_per_count);
    enum err (*read)(unsigned device, enum amd_value what, double *value);
};

extern const struct amd_api amd_smi_api;
extern const struct amd_api amd_rocm_api;

/* A power limit in watts: µW in newer libraries, W in older ones.  No GPU is limited to 0.1 W or to 100 kW, so the
 * value determines the unit. */
static inline double amd_cap_watts(uint64_t raw)
{
    return raw < 100000 ? (double)raw : (double)raw * 1e-6;
}

#endif
