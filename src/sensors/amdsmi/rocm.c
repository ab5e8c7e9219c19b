/* ROCm SMI behind struct amd_api, for machines that have no AMD SMI (ROCm up to 5.6, Debian).
 *
 * Checked against rocm_smi.h 5.2.3 (Debian): all functions below take and give scalars.  The one
 * struct, rsmi_frequencies_t, is taken to have grown as AMD SMI's own did, by a leading bool and a
 * longer table; clock_in distinguishes the two layouts by their content. */
#include "sensors/amdsmi/api.h"

#include <string.h>

#include "core/text.h"
#include "port/dl.h"

enum {
    STATUS_INVALID_ARGS = 1,
    STATUS_NOT_SUPPORTED = 2,
    STATUS_PERMISSION = 4,
    STATUS_OUT_OF_RESOURCES = 5,
    STATUS_INIT_ERROR = 8,
    STATUS_NOT_YET_IMPLEMENTED = 9,
    STATUS_NOT_FOUND = 10,
    STATUS_INTERRUPT = 12,
    STATUS_UNEXPECTED_SIZE = 13,
    STATUS_NO_DATA = 14,
    STATUS_UNEXPECTED_DATA = 15,
    STATUS_BUSY = 16,
};

enum { CLOCK_GRAPHICS = 0, CLOCK_MEMORY = 4, FREQUENCIES_MAX = 33 };

/* Functions: required or optional, name, parameters. */
#define FUNCTIONS(F)                                                                               \
    F(true, init, (uint64_t))                                                                      \
    F(true, shut_down, (void))                                                                     \
    F(true, num_monitor_devices, (uint32_t *))                                                     \
    F(false, version_get, (void *))                                                                \
    F(false, dev_name_get, (uint32_t, char *, size_t))                                             \
    F(false, dev_unique_id_get, (uint32_t, uint64_t *))                                            \
    F(false, dev_pci_id_get, (uint32_t, uint64_t *))                                               \
    F(false, dev_energy_count_get, (uint32_t, uint64_t *, float *, uint64_t *))                    \
    F(false, dev_power_get, (uint32_t, uint64_t *, unsigned *))                                    \
    F(false, dev_power_ave_get, (uint32_t, uint32_t, uint64_t *))                                  \
    F(false, dev_power_cap_get, (uint32_t, uint32_t, uint64_t *))                                  \
    F(false, dev_temp_metric_get, (uint32_t, uint32_t, unsigned, int64_t *))                       \
    F(false, dev_memory_usage_get, (uint32_t, unsigned, uint64_t *))                               \
    F(false, dev_memory_total_get, (uint32_t, unsigned, uint64_t *))                               \
    F(false, dev_busy_percent_get, (uint32_t, uint32_t *))                                         \
    F(false, dev_memory_busy_percent_get, (uint32_t, uint32_t *))                                  \
    F(false, dev_gpu_clk_freq_get, (uint32_t, unsigned, void *))

static struct {
    struct dl dl;
    uint32_t count;
    char version_text[32];
#define MEMBER(is_required, name, parameters) int(*name) parameters;
    FUNCTIONS(MEMBER)
#undef MEMBER
} rsmi;

static const struct dl_symbol SYMBOLS[] = {
#define SYMBOL(is_required, name, parameters) {"rsmi_" #name, &rsmi.name, is_required},
    FUNCTIONS(SYMBOL)
#undef SYMBOL
};

static enum err from_status(int status)
{
    switch (status) {
    case 0:
        return ERR_OK;
    case STATUS_NOT_SUPPORTED:
    case STATUS_NOT_YET_IMPLEMENTED:
        return ERR_UNSUPPORTED;
    case STATUS_PERMISSION:
        return ERR_DENIED;
    case STATUS_OUT_OF_RESOURCES:
        return ERR_NO_MEMORY;
    case STATUS_INTERRUPT:
        return ERR_INTERRUPTED;
    case STATUS_BUSY:
        return ERR_BUSY;
    case STATUS_INVALID_ARGS: /* an index that was valid once: the device is gone */
    case STATUS_INIT_ERROR:
    case STATUS_NOT_FOUND:
        return ERR_LOST;
    case STATUS_UNEXPECTED_SIZE:
    case STATUS_NO_DATA:
    case STATUS_UNEXPECTED_DATA:
        return ERR_BAD_VALUE;
    default:
        return ERR_IO;
    }
}

/* ---- opening ---- */

static void rocm_close(void)
{
    rsmi.shut_down();
    dl_close(&rsmi.dl);
}

static void find_version(void)
{
    uint32_t words[16] = {0}; /* major, minor, patch, then a pointer */
    chars_copy(rsmi.version_text, "");
    if (rsmi.version_get && !rsmi.version_get(words))
        chars_format(rsmi.version_text, " %u.%u.%u", words[0], words[1], words[2]);
}

static enum err initialize(struct error *why)
{
    int status = rsmi.init(0);
    if (!status && (status = rsmi.num_monitor_devices(&rsmi.count)))
        rsmi.shut_down();
    return status ? err_set(why, from_status(status), "ROCm SMI initialization failed (status %d)",
                            status)
                  : ERR_OK;
}

static enum err rocm_open(struct error *why)
{
    static const char *const NAMES[] = {"librocm_smi64.so",
                                        "librocm_smi64.so.7",
                                        "librocm_smi64.so.6",
                                        "librocm_smi64.so.5",
                                        "librocm_smi64.so.1",
                                        "/opt/rocm/lib/librocm_smi64.so",
                                        NULL};
    enum err err = dl_open(&rsmi.dl, "IPW_ROCMSMI", NAMES, why);
    if (!err)
        err = dl_load(&rsmi.dl, SYMBOLS, COUNT_OF(SYMBOLS), why);
    if (!err)
        err = initialize(why);
    if (err) {
        dl_close(&rsmi.dl);
        return err;
    }
    if (rsmi.count > AMD_DEVICES_MAX)
        rsmi.count = AMD_DEVICES_MAX;
    find_version();
    return ERR_OK;
}

/* ---- operations ---- */

#define CALL(function, ...)                                                                        \
    (rsmi.function ? from_status(rsmi.function(__VA_ARGS__)) : ERR_UNSUPPORTED)

static void rocm_describe(char *to, size_t size)
{
    str_format(to, size, "ROCm SMI%s", rsmi.version_text);
}

static unsigned rocm_count(void)
{
    return rsmi.count;
}

static enum err rocm_name(unsigned device, char *to, size_t size)
{
    char name[256] = "";
    enum err err = CALL(dev_name_get, device, name, sizeof name - 1);
    if (!err && !name[0])
        return ERR_UNSUPPORTED;
    if (!err)
        str_copy(to, size, name);
    return err;
}

static enum err rocm_unique_id(unsigned device, uint64_t *id)
{
    return CALL(dev_unique_id_get, device, id);
}

static enum err rocm_pci(unsigned device, struct amd_pci *address)
{
    uint64_t bdf = 0;
    enum err err = CALL(dev_pci_id_get, device, &bdf);
    if (!err)
        *address = (struct amd_pci){
            .domain = (unsigned)(bdf >> 32),
            .bus = bdf >> 8 & 0xFF,
            .device = bdf >> 3 & 0x1F,
            .function = bdf & 7,
        };
    return err;
}

static enum err rocm_hip_index(unsigned device, unsigned *index)
{
    (void)device;
    (void)index;
    return ERR_UNSUPPORTED;
}

static enum err rocm_energy(unsigned device, uint64_t *count, double *joules_per_count)
{
    float microjoules = 0;
    uint64_t timestamp = 0; /* of the library's own clock; we keep ours */
    enum err err = CALL(dev_energy_count_get, device, count, &microjoules, &timestamp);
    if (!err && (*count == UINT64_MAX || !(microjoules > 0)))
        return ERR_UNSUPPORTED;
    if (!err)
        *joules_per_count = (double)microjoules * 1e-6;
    return err;
}

/* The newer function selects the current or the average value, depending on the card. */
static enum err rocm_power(unsigned device, double *watts)
{
    uint64_t microwatts = 0;
    unsigned type = 0;
    enum err err = CALL(dev_power_get, device, &microwatts, &type);
    if (err == ERR_UNSUPPORTED)
        err = CALL(dev_power_ave_get, device, 0, &microwatts);
    *watts = (double)microwatts * 1e-6;
    return err;
}

static enum err rocm_power_cap(unsigned device, double *watts)
{
    uint64_t cap = 0;
    enum err err = CALL(dev_power_cap_get, device, 0, &cap);
    if (!err && !cap)
        return ERR_UNSUPPORTED;
    *watts = amd_cap_watts(cap);
    return err;
}

/* Hertz of the current step out of either layout:
 *   old: count, current, then the table at byte 8
 *   new: bool and padding, count, current, padding, then the table at byte 16
 * In the old one the second word is below the first.  In the new one the first is 0 or 1, or has
 * the ones of our buffer in its padding, and the second is at least 1: it cannot be mistaken for the old one. */
static enum err clock_in(const uint32_t *words, uint64_t *hertz)
{
    size_t at;
    if (words[0] <= FREQUENCIES_MAX && words[1] < words[0])
        at = 8 + 8 * (size_t)words[1];
    else if (words[1] <= FREQUENCIES_MAX && words[2] < words[1])
        at = 16 + 8 * (size_t)words[2];
    else
        return ERR_UNSUPPORTED;
    memcpy(hertz, (const char *)words + at, sizeof *hertz);
    return ERR_OK;
}

static enum err rocm_clock(unsigned device, unsigned type, double *mhz)
{
    uint32_t words[256];
    uint64_t hertz = 0;
    memset(words, 0xFF, sizeof words);
    enum err err = CALL(dev_gpu_clk_freq_get, device, type, words);
    if (!err)
        err = clock_in(words, &hertz);
    *mhz = (double)hertz * 1e-6;
    return err;
}

static enum err rocm_read(unsigned device, enum amd_value what, double *value)
{
    enum err err = ERR_OK;
    int64_t millidegrees = 0;
    uint64_t bytes = 0;
    uint32_t percent = 0;
    switch (what) {
    case AMD_POWER:
        return rocm_power(device, value);
    case AMD_POWER_CAP:
        return rocm_power_cap(device, value);
    case AMD_JUNCTION:
    case AMD_EDGE:
        err = CALL(dev_temp_metric_get, device, what == AMD_JUNCTION, 0, &millidegrees);
        *value = (double)millidegrees * 1e-3;
        return err;
    case AMD_MEMORY_USED:
        err = CALL(dev_memory_usage_get, device, 0, &bytes);
        *value = (double)bytes;
        return err;
    case AMD_MEMORY_TOTAL:
        err = CALL(dev_memory_total_get, device, 0, &bytes);
        *value = (double)bytes;
        return err;
    case AMD_BUSY:
        err = CALL(dev_busy_percent_get, device, &percent);
        *value = percent;
        return err;
    case AMD_MEMORY_BUSY:
        err = CALL(dev_memory_busy_percent_get, device, &percent);
        *value = percent;
        return err;
    case AMD_CLOCK:
        return rocm_clock(device, CLOCK_GRAPHICS, value);
    case AMD_MEMORY_CLOCK:
        return rocm_clock(device, CLOCK_MEMORY, value);
    }
    return ERR_UNSUPPORTED;
}

const struct amd_api amd_rocm_api = {
    .open = rocm_open,
    .close = rocm_close,
    .describe = rocm_describe,
    .count = rocm_count,
    .name = rocm_name,
    .unique_id = rocm_unique_id,
    .pci = rocm_pci,
    .hip_index = rocm_hip_index,
    .energy = rocm_energy,
    .read = rocm_read,
};
