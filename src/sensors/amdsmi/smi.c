/* AMD SMI behind struct amd_api, with declarations of our own.
 *
 * Checked against amdsmi.h of 23.1, 23.2, 24.6, 24.7, 25.3 (reference pages), 26.1 and 26.5.  The
 * functions below have kept their signatures since 23.2.  Structs have not kept their layouts,
 * so a struct is passed as a buffer larger than any of them, filled with ones (the library's own
 * mark for "not supported"), and only fields whose offset is known for the library's version are
 * read:
 *   amdsmi_asic_info_t        market_name at 0, all versions
 *   amdsmi_engine_usage_t     gfx at 0, umc at 4, all versions
 *   amdsmi_clk_info_t         current clock in MHz at 0, all versions
 *   amdsmi_power_cap_info_t   current cap at 0, all versions (its unit changed: amd_cap_watts)
 *   amdsmi_enumeration_info_t hip_id at 12, hip_uuid at 16, since it exists (25)
 *   amdsmi_power_info_t       current and average watts at 0 and 4 in 24, at 8 and 12 from 25 on;
 *                             23 has another order again and gets no power channel
 *   amdsmi_version_t          first word: the year up to 25, the major version from 26 on, which
 *                             continue one another */
#include "sensors/amdsmi/api.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "port/dl.h"
#include "port/fs.h"

typedef void *handle;

enum { INIT_GPUS = 2, TYPE_GPU = 1, STRUCT_MAX = 2048, WORD_UNSUPPORTED = 0xFFFF };

/* Status codes, the same in all versions. */
enum {
    STATUS_NOT_SUPPORTED = 2,
    STATUS_NOT_YET_IMPLEMENTED = 3,
    STATUS_TIMEOUT = 8,
    STATUS_RETRY = 9,
    STATUS_NO_PERM = 10,
    STATUS_INTERRUPT = 11,
    STATUS_OUT_OF_RESOURCES = 15,
    STATUS_BUSY = 30,
    STATUS_NOT_FOUND = 31,
    STATUS_NOT_INIT = 32,
    STATUS_DRIVER_NOT_LOADED = 34,
    STATUS_NO_DATA = 40,
    STATUS_UNEXPECTED_SIZE = 42,
    STATUS_UNEXPECTED_DATA = 43,
    STATUS_NO_DRIVER = 51,
};

/* Functions: required or optional, name, parameters. */
#define FUNCTIONS(F)                                                                               \
    F(true, init, (uint64_t))                                                                      \
    F(true, shut_down, (void))                                                                     \
    F(false, get_lib_version, (void *))                                                            \
    F(true, get_socket_handles, (uint32_t *, handle *))                                            \
    F(true, get_processor_handles, (handle, uint32_t *, handle *))                                 \
    F(true, get_processor_type, (handle, unsigned *))                                              \
    F(false, get_gpu_asic_info, (handle, void *))                                                  \
    F(false, get_gpu_device_bdf, (handle, uint64_t *))                                             \
    F(false, get_gpu_enumeration_info, (handle, void *))                                           \
    F(false, get_energy_count, (handle, uint64_t *, float *, uint64_t *))                          \
    F(false, get_power_info, (handle, void *))                                                     \
    F(false, get_power_cap_info, (handle, uint32_t, void *))                                       \
    F(false, get_temp_metric, (handle, unsigned, unsigned, int64_t *))                             \
    F(false, get_gpu_memory_total, (handle, unsigned, uint64_t *))                                 \
    F(false, get_gpu_memory_usage, (handle, unsigned, uint64_t *))                                 \
    F(false, get_gpu_activity, (handle, void *))                                                   \
    F(false, get_clock_info, (handle, unsigned, void *))

static struct {
    struct dl dl;
    unsigned version; /* 23, 24, 25 ...; 0 unknown */
    char version_text[32];
    unsigned count;
    handle devices[AMD_DEVICES_MAX];
#define MEMBER(is_required, name, parameters) int(*name) parameters;
    FUNCTIONS(MEMBER)
#undef MEMBER
} smi;

static const struct dl_symbol SYMBOLS[] = {
#define SYMBOL(is_required, name, parameters) {"amdsmi_" #name, &smi.name, is_required},
    FUNCTIONS(SYMBOL)
#undef SYMBOL
};

static enum err from_status(int status)
{
    switch ((unsigned)status) {
    case 0:
        return ERR_OK;
    case STATUS_NOT_SUPPORTED:
    case STATUS_NOT_YET_IMPLEMENTED:
        return ERR_UNSUPPORTED;
    case STATUS_TIMEOUT:
        return ERR_TIMEOUT;
    case STATUS_RETRY:
    case STATUS_BUSY:
        return ERR_BUSY;
    case STATUS_NO_PERM:
        return ERR_DENIED;
    case STATUS_INTERRUPT:
        return ERR_INTERRUPTED;
    case STATUS_OUT_OF_RESOURCES:
        return ERR_NO_MEMORY;
    case STATUS_NOT_FOUND:
    case STATUS_NOT_INIT:
    case STATUS_DRIVER_NOT_LOADED:
    case STATUS_NO_DRIVER:
        return ERR_LOST;
    case STATUS_NO_DATA:
    case STATUS_UNEXPECTED_SIZE:
    case STATUS_UNEXPECTED_DATA:
        return ERR_BAD_VALUE;
    default:
        return ERR_IO;
    }
}

/* ---- opening ---- */

static void add_processors(handle socket)
{
    handle found[AMD_DEVICES_MAX];
    uint32_t count = 0;
    if (smi.get_processor_handles(socket, &count, NULL) || !count)
        return;
    if (count > AMD_DEVICES_MAX)
        count = AMD_DEVICES_MAX;
    if (smi.get_processor_handles(socket, &count, found))
        return;
    for (uint32_t i = 0; i < count && smi.count < AMD_DEVICES_MAX; i++) {
        unsigned type = 0; /* a socket may hold CPUs and network cards too */
        if (!smi.get_processor_type(found[i], &type) && type == TYPE_GPU)
            smi.devices[smi.count++] = found[i];
    }
}

static int find_devices(void)
{
    handle sockets[AMD_DEVICES_MAX];
    uint32_t count = 0;
    smi.count = 0;
    int status = smi.get_socket_handles(&count, NULL);
    if (status || !count)
        return status;
    if (count > AMD_DEVICES_MAX)
        count = AMD_DEVICES_MAX;
    status = smi.get_socket_handles(&count, sockets);
    for (uint32_t i = 0; !status && i < count; i++)
        add_processors(sockets[i]);
    return status;
}

static void find_version(void)
{
    uint32_t words[16] = {0};
    smi.version = 0;
    chars_copy(smi.version_text, "");
    if (!smi.get_lib_version || smi.get_lib_version(words))
        return;
    smi.version = words[0];
    chars_format(smi.version_text, " %u.%u.%u", words[0], words[1], words[2]);
}

static void smi_close(void)
{
    smi.shut_down();
    dl_close(&smi.dl);
}

static enum err initialize(struct error *why)
{
    int status = smi.init(INIT_GPUS);
    if (!status && (status = find_devices()))
        smi.shut_down();
    return status ? err_set(why, from_status(status), "AMD SMI initialization failed (status %d)",
                            status)
                  : ERR_OK;
}

static enum err smi_open(struct error *why)
{
    static const char *const NAMES[] = {"libamd_smi.so",
                                        "libamd_smi.so.26",
                                        "libamd_smi.so.25",
                                        "libamd_smi.so.24",
                                        "libamd_smi.so.23",
                                        "/opt/rocm/lib/libamd_smi.so",
                                        NULL};
    enum err err = dl_open(&smi.dl, "IPW_AMDSMI", NAMES, why);
    if (!err)
        err = dl_load(&smi.dl, SYMBOLS, COUNT_OF(SYMBOLS), why);
    if (!err)
        err = initialize(why);
    if (err)
        dl_close(&smi.dl);
    else
        find_version();
    return err;
}

/* ---- operations ---- */

/* Calls an optional function on a device. */
#define CALL(function, device, ...)                                                                \
    (smi.function ? from_status(smi.function(smi.devices[device], __VA_ARGS__)) : ERR_UNSUPPORTED)

/* A buffer for any version of any of the library's structs; fields the library does not set read as
 * its own "not supported". */
struct any {
    _Alignas(16) unsigned char bytes[STRUCT_MAX];
};

static void any_init(struct any *any)
{
    memset(any->bytes, 0xFF, sizeof any->bytes);
}

static uint32_t word_at(const struct any *any, size_t offset)
{
    uint32_t word;
    memcpy(&word, any->bytes + offset, sizeof word);
    return word;
}

/* All ones mean "not supported": in 16 bits for fields of the hardware's table, in 32 bits for those of the library. */
static bool is_set(uint32_t word)
{
    return word != UINT32_MAX && word != WORD_UNSUPPORTED;
}

static enum err word_value(enum err err, const struct any *any, size_t offset, double *value)
{
    if (err)
        return err;
    uint32_t word = word_at(any, offset);
    if (!is_set(word))
        return ERR_UNSUPPORTED;
    *value = word;
    return ERR_OK;
}

static void smi_describe(char *to, size_t size)
{
    str_format(to, size, "AMD SMI%s", smi.version_text);
}

static unsigned smi_count(void)
{
    return smi.count;
}

static enum err smi_name(unsigned device, char *to, size_t size)
{
    struct any info = {{0}}; /* zeros: the name must end */
    enum err err = CALL(get_gpu_asic_info, device, &info);
    info.bytes[255] = '\0'; /* as long as the longest known */
    if (!err && !info.bytes[0])
        return ERR_UNSUPPORTED;
    if (!err)
        str_copy(to, size, (const char *)info.bytes);
    return err;
}

static enum err smi_pci(unsigned device, struct amd_pci *address)
{
    uint64_t bdf = 0;
    enum err err = CALL(get_gpu_device_bdf, device, &bdf);
    if (!err)
        *address = (struct amd_pci){
            .domain = (unsigned)(bdf >> 16),
            .bus = bdf >> 8 & 0xFF,
            .device = bdf >> 3 & 0x1F,
            .function = bdf & 7,
        };
    return err;
}

static enum err parse_id(const char *digits, uint64_t *id)
{
    char *end;
    *id = strtoull(digits, &end, 16);
    return end == digits || *end ? ERR_UNSUPPORTED : ERR_OK;
}

/* The library reports it from version 25 on; the kernel always did (Vega and newer). */
static enum err smi_unique_id(unsigned device, uint64_t *id)
{
    struct any info = {{0}};
    if (!CALL(get_gpu_enumeration_info, device, &info)) {
        info.bytes[16 + 255] = '\0';
        const char *uuid = (const char *)info.bytes + 16;
        if (str_starts(uuid, "GPU-") && !parse_id(uuid + 4, id))
            return ERR_OK;
    }
    struct amd_pci at;
    char path[96], digits[40];
    enum err err = smi_pci(device, &at);
    if (err)
        return err;
    chars_format(path, "/sys/bus/pci/devices/%04x:%02x:%02x.%u/unique_id", at.domain, at.bus,
                 at.device, at.function);
    return fs_read_text(path, digits, sizeof digits) ? ERR_UNSUPPORTED : parse_id(digits, id);
}

static enum err smi_hip_index(unsigned device, unsigned *index)
{
    struct any info;
    any_init(&info);
    enum err err = CALL(get_gpu_enumeration_info, device, &info);
    if (!err && word_at(&info, 12) == UINT32_MAX)
        return ERR_UNSUPPORTED;
    if (!err)
        *index = word_at(&info, 12);
    return err;
}

static enum err smi_energy(unsigned device, uint64_t *count, double *joules_per_count)
{
    float microjoules = 0;
    uint64_t timestamp = 0; /* of the library's own clock; we keep ours */
    enum err err = CALL(get_energy_count, device, count, &microjoules, &timestamp);
    if (!err && (*count == UINT64_MAX || !(microjoules > 0)))
        return ERR_UNSUPPORTED;
    if (!err)
        *joules_per_count = (double)microjoules * 1e-6;
    return err;
}

/* MI300 and newer fill the current value, older cards the average. */
static enum err smi_power(unsigned device, double *watts)
{
    if (smi.version < 24)
        return ERR_UNSUPPORTED;
    struct any info;
    any_init(&info);
    enum err err = CALL(get_power_info, device, &info);
    if (err)
        return err;
    size_t at = smi.version == 24 ? 0 : 8;
    /* From 25 on a 64-bit field comes first: watts, or unset.  Anything else in its upper half means an unknown
     * layout. */
    uint32_t upper = word_at(&info, 4);
    if (at == 8 && upper != 0 && upper != UINT32_MAX)
        return ERR_UNSUPPORTED;
    return word_value(ERR_OK, &info, is_set(word_at(&info, at)) ? at : at + 4, watts);
}

static enum err smi_power_cap(unsigned device, double *watts)
{
    struct any info;
    any_init(&info);
    enum err err = CALL(get_power_cap_info, device, 0, &info);
    if (err)
        return err;
    uint64_t cap;
    memcpy(&cap, info.bytes, sizeof cap);
    if (cap == 0 || cap == UINT64_MAX || cap == UINT32_MAX)
        return ERR_UNSUPPORTED;
    *watts = amd_cap_watts(cap);
    return ERR_OK;
}

static enum err smi_temperature(unsigned device, unsigned where, double *celsius)
{
    int64_t raw = 0;
    enum err err = CALL(get_temp_metric, device, where, 0, &raw);
    /* °C, but m°C in the first versions: no running GPU is at 1000 °C or 1 °C. */
    if (!err)
        *celsius = raw >= 1000 || raw <= -1000 ? (double)raw * 1e-3 : (double)raw;
    return err;
}

static enum err smi_read(unsigned device, enum amd_value what, double *value)
{
    enum { GRAPHICS = 0, MEMORY = 4 };
    enum err err = ERR_OK;
    uint64_t bytes = 0;
    struct any info;
    any_init(&info);
    switch (what) {
    case AMD_POWER:
        return smi_power(device, value);
    case AMD_POWER_CAP:
        return smi_power_cap(device, value);
    case AMD_JUNCTION:
    case AMD_EDGE:
        return smi_temperature(device, what == AMD_JUNCTION, value);
    case AMD_MEMORY_USED:
        err = CALL(get_gpu_memory_usage, device, 0, &bytes);
        *value = (double)bytes;
        return err;
    case AMD_MEMORY_TOTAL:
        err = CALL(get_gpu_memory_total, device, 0, &bytes);
        *value = (double)bytes;
        return err;
    case AMD_BUSY:
        return word_value(CALL(get_gpu_activity, device, &info), &info, 0, value);
    case AMD_MEMORY_BUSY:
        return word_value(CALL(get_gpu_activity, device, &info), &info, 4, value);
    case AMD_CLOCK:
        return word_value(CALL(get_clock_info, device, GRAPHICS, &info), &info, 0, value);
    case AMD_MEMORY_CLOCK:
        return word_value(CALL(get_clock_info, device, MEMORY, &info), &info, 0, value);
    }
    return ERR_UNSUPPORTED;
}

const struct amd_api amd_smi_api = {
    .open = smi_open,
    .close = smi_close,
    .describe = smi_describe,
    .count = smi_count,
    .name = smi_name,
    .unique_id = smi_unique_id,
    .pci = smi_pci,
    .hip_index = smi_hip_index,
    .energy = smi_energy,
    .read = smi_read,
};
