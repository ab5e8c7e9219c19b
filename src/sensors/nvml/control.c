/* Clock and power-limit control of NVIDIA cards.
 *
 * A clock is locked to a range of one value: the older application clocks are a request that the driver may exceed,
 * and are removed in CUDA 14.  A locked range cannot be read back, so the caller must know that there was none
 * (runner/gpu_control.h). */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/text.h"
#include "sensors/nvml/api.h"
#include "sensors/nvml/card.h"

/* An H100 has 97 clocks; a longer list is requested again. */
enum { CLOCKS_GUESS = 128, CLOCKS_MAX = 1 << 16 };

/* ---- messages ---- */

/* Requirements of a rejected request; "" if unknown. */
static const char *needs(int code)
{
    switch (code) {
    case NVML_NO_PERMISSION:
        return ": needs root (sudo); many rented containers deny it even to root";
    case NVML_OPERATING_SYSTEM:
        return ": the kernel or the container's device cgroup blocks it; run it on the host as "
               "root";
    case NVML_FUNCTION_NOT_FOUND:
        return ": this driver is too old";
    case NVML_NOT_SUPPORTED:
        return ": not supported by this GPU or driver";
    case NVML_FREQ_NOT_SUPPORTED:
        return ": not one of the supported clocks";
    case NVML_INVALID_ARGUMENT:
        return ": outside the range that this GPU accepts";
    default:
        return "";
    }
}

static enum err error_of(int code)
{
    switch (code) {
    case NVML_OPERATING_SYSTEM:
        return ERR_DENIED;
    case NVML_FREQ_NOT_SUPPORTED:
    case NVML_INVALID_ARGUMENT:
        return ERR_BAD_VALUE;
    case NVML_DEPRECATED:
        return ERR_UNSUPPORTED;
    default:
        return nvml_err(code);
    }
}

static enum err refused(struct error *why, const struct sensor *sensor, const char *what, int code)
{
    enum err err = error_of(code);
    return err_set(why, err, "%s: cannot %s: %s (code %d)%s", sensor->id, what,
                   nvml_code_text(code), code, needs(code));
}

/* ---- queries ---- */

static int list_clocks(const struct nvml_api *api, nvml_device card, enum gpu_knob knob,
                       unsigned memory_mhz, unsigned *count, unsigned *mhz)
{
    return knob == KNOB_MEMORY_CLOCK
               ? NVML_CALL(api, memory_clocks, card, count, mhz)
               : NVML_CALL(api, graphics_clocks, card, memory_mhz, count, mhz);
}

/* The complete list, in a buffer that grows as the driver requests; the caller frees *out. */
static int read_clocks(const struct sensor *sensor, enum gpu_knob knob, unsigned memory_mhz,
                       unsigned **out, unsigned *count)
{
    nvml_device card;
    const struct nvml_api *api = nvml_card_api(sensor, &card);
    int code = NVML_INSUFFICIENT_SIZE;
    *out = NULL;
    for (unsigned capacity = CLOCKS_GUESS; code == NVML_INSUFFICIENT_SIZE && capacity <= CLOCKS_MAX;
         capacity = *count > capacity ? *count : capacity * 2) {
        unsigned *larger = memory_resize(*out, capacity * sizeof *larger);
        if (!larger)
            return NVML_MEMORY;
        *out = larger;
        *count = capacity;
        code = list_clocks(api, card, knob, memory_mhz, count, *out);
    }
    return code;
}

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

static enum err control_clocks(struct sensor *sensor, enum gpu_knob knob, double memory_mhz,
                               double **out, size_t *count, struct error *why)
{
    unsigned *listed, length = 0;
    *out = NULL;
    *count = 0;
    int code = read_clocks(sensor, knob, (unsigned)memory_mhz, &listed, &length);
    enum err err = ERR_OK;
    if (code != NVML_OK)
        err = refused(why, sensor,
                      knob == KNOB_MEMORY_CLOCK ? "list the supported memory clocks"
                                                : "list the supported graphics clocks",
                      code);
    else if (length == 0)
        err = err_set(why, ERR_UNSUPPORTED, "%s: the driver lists no supported clocks", sensor->id);
    else if (!(*out = memory_zeroed(length, sizeof **out)))
        err = err_no_memory(why);
    if (*out) {
        for (unsigned i = 0; i < length; i++)
            (*out)[i] = listed[i];
        qsort(*out, length, sizeof **out, descending);
        *count = length;
    }
    free(listed);
    return err;
}

static double known(int code, unsigned number, double unit)
{
    return code == NVML_OK && number != UINT_MAX ? number * unit : UNKNOWN;
}

/* Clocks and limits; a card that lacks one reports the others. */
static void read_numbers(const struct nvml_api *api, nvml_device card, struct sensor_limits *out)
{
    unsigned number = 0, max = 0;
    int code = NVML_CALL(api, clock, card, NVML_CLOCK_SM, &number);
    out->graphics_mhz = known(code, number, 1);
    code = NVML_CALL(api, clock, card, NVML_CLOCK_MEMORY, &number);
    out->memory_mhz = known(code, number, 1);
    code = NVML_CALL(api, clock_max, card, NVML_CLOCK_SM, &number);
    out->graphics_max_mhz = known(code, number, 1);
    code = NVML_CALL(api, clock_max, card, NVML_CLOCK_MEMORY, &number);
    out->memory_max_mhz = known(code, number, 1);
    code = NVML_CALL(api, limit_set, card, &number);
    out->limit_w = known(code, number, 1e-3);
    code = NVML_CALL(api, limit_default, card, &number);
    out->limit_default_w = known(code, number, 1e-3);
    code = NVML_CALL(api, limit, card, &number);
    out->limit_enforced_w = known(code, number, 1e-3);
    code = NVML_CALL(api, temperature, card, 0, &number);
    out->temperature_c = known(code, number, 1);
    code = NVML_CALL(api, limit_range, card, &number, &max);
    out->limit_min_w = known(code, number, 1e-3);
    out->limit_max_w = known(code, max, 1e-3);
}

static enum err control_limits(struct sensor *sensor, struct sensor_limits *out, struct error *why)
{
    nvml_device card;
    const struct nvml_api *api = nvml_card_api(sensor, &card);
    *out = (struct sensor_limits){.throttle = UNKNOWN};
    read_numbers(api, card, out);
    unsigned bits = 0, now = 0, after_reset = 0;
    int code = nvml_card_throttle(api, card, &bits, &out->idle);
    if (code == NVML_OK)
        out->throttle = bits;
    else if (nvml_err(code) == ERR_LOST)
        return refused(why, sensor, "read its clock event reasons", code);
    /* A card that cannot be partitioned reports no mode. */
    out->partitioned =
        NVML_CALL(api, mig_mode, card, &now, &after_reset) == NVML_OK && (now || after_reset);
    return ERR_OK;
}

/* ---- requests ---- */

static enum err set_limit(const struct sensor *sensor, double watts, struct error *why)
{
    nvml_device card;
    const struct nvml_api *api = nvml_card_api(sensor, &card);
    char what[64];
    chars_format(what, "set the power limit to %g W", watts);
    int code = NVML_CALL(api, set_limit, card, (unsigned)llround(watts * 1e3));
    return code == NVML_OK ? ERR_OK : refused(why, sensor, what, code);
}

static enum err control_set(struct sensor *sensor, enum gpu_knob knob, double value,
                            struct error *why)
{
    nvml_device card;
    const struct nvml_api *api = nvml_card_api(sensor, &card);
    if (!(value > 0 && value < 1e6)) /* NaN too */
        return err_set(why, ERR_BAD_VALUE, "%s: %g is not a clock or power limit", sensor->id,
                       value);
    if (knob == KNOB_POWER_LIMIT)
        return set_limit(sensor, value, why);
    unsigned mhz = (unsigned)lround(value);
    bool memory = knob == KNOB_MEMORY_CLOCK;
    int code = memory ? NVML_CALL(api, lock_memory, card, mhz, mhz)
                      : NVML_CALL(api, lock_graphics, card, mhz, mhz);
    if (code == NVML_OK)
        return ERR_OK;
    char what[64];
    chars_format(what, "lock the %s clock to %u MHz", memory ? "memory" : "graphics", mhz);
    return refused(why, sensor, what, code);
}

static enum err control_reset(struct sensor *sensor, enum gpu_knob knob, struct error *why)
{
    nvml_device card;
    const struct nvml_api *api = nvml_card_api(sensor, &card);
    unsigned mw = 0;
    int code;
    switch (knob) {
    case KNOB_GRAPHICS_CLOCK:
        code = NVML_CALL(api, unlock_graphics, card);
        return code == NVML_OK ? ERR_OK : refused(why, sensor, "unlock the graphics clock", code);
    case KNOB_MEMORY_CLOCK:
        code = NVML_CALL(api, unlock_memory, card);
        return code == NVML_OK ? ERR_OK : refused(why, sensor, "unlock the memory clock", code);
    default:
        code = NVML_CALL(api, limit_default, card, &mw);
        return code == NVML_OK ? set_limit(sensor, mw * 1e-3, why)
                               : refused(why, sensor, "read the default power limit", code);
    }
}

const struct sensor_control nvml_control = {
    .clocks = control_clocks,
    .limits = control_limits,
    .set = control_set,
    .reset = control_reset,
};
