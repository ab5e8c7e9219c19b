/* One NVIDIA card as an open sensor: which channels it has, and reading them.
 *
 * Cadences, by what a call costs and how often its value changes.  The energy counter's
 * call uses milliseconds of CPU (5 ms on an H200), so it is read just after one of its updates
 * (every 100 ms on Hopper): each of them without anything finer, one per second when the driver
 * keeps a buffer of 20 ms power samples, which then show how the counter's joules are distributed
 * in between.
 * Power fields are cached by the driver and cost tens of microseconds each.  That buffer, which holds
 * over two seconds, and everything else is read twice a second; activities of the card's units once.
 *
 * Of the channels that measure the same scope one is primary and the others are cross-checks, in
 * this order: energy counter, sample buffer, instant power, average power. */
#include "sensors/nvml/card.h"

#include <limits.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/text.h"

/* Kinds of read group; an open sensor has those that have channels, numbered from 0. */
enum cadence { COUNTER, POWER, SAMPLES, GAUGES, ACTIVITY, CADENCES };

static const struct sensor_group PACE[CADENCES] = {
    [COUNTER] = {.period_default = 100 * NS_PER_MS,
                 .period_min = 50 * NS_PER_MS,
                 .slow_period = 30 * NS_PER_S,
                 .slow_period_min = 30 * NS_PER_S,
                 .follow_ticks = true},
    [POWER] = {.period_default = 100 * NS_PER_MS, .period_min = NS_PER_MS},
    [SAMPLES] = {.period_default = 500 * NS_PER_MS,
                 .period_min = 40 * NS_PER_MS,
                 .slow_period = 1500 * NS_PER_MS, /* the buffer holds more than two seconds */
                 .slow_period_min = 500 * NS_PER_MS},
    [GAUGES] = {.period_default = 500 * NS_PER_MS,
                .period_min = 40 * NS_PER_MS,
                .slow_period = 2 * NS_PER_S,
                .slow_period_min = NS_PER_S},
};

enum { FIELDS_MAX = 3 };

/* Between reads of the counter when the sample buffer gives the shape of power. */
static const nanos COUNTER_WITH_SAMPLES = NS_PER_S;

/* Between reads of power fields that are means over a second, or only compared with the samples. */
static const nanos FIELDS_WITH_SAMPLES = NS_PER_S / 2;

/* Samples are 20 ms apart, and the newest is up to 10 ms old when it can be fetched. */
static const nanos SAMPLES_LAG = 35 * NS_PER_MS;

/* What NVIDIA calls an average is one over a second, from driver 530 on. */
static const nanos AVERAGE_TIME = NS_PER_S;

static const double WATTS_MAX_UNKNOWN = 3000; /* above any current card or module */
static const double ACCURACY = 0.028867513;   /* NVIDIA's +-5 %, taken as uniform: 0.05 / sqrt 3 */

/* A reading above this is an error, or a marker for "not available". */
#define WATTS_ABSURD 10e3

/* Two channels filled by one call: the second uses the result that the first got in the same pass. */
struct answer {
    unsigned long pass;
    int code;
    double values[2];
};

struct gpu {
    const struct nvml_api *api;
    nvml_device handle;
    unsigned long pass; /* over all channels; 0 while opening: each channel makes its own call */
    struct answer memory, utilization;
};

/* Whether the result is of this pass; otherwise it must be fetched now. */
static bool is_cached(const struct gpu *gpu, struct answer *answer)
{
    bool is = gpu->pass > 0 && answer->pass == gpu->pass;
    answer->pass = gpu->pass;
    return is;
}

/* ---- quantities that one call returns as one number ---- */

/* The first read of each, at open, shows whether the card has it and does the setup it needs; later
 * reads allocate nothing. */
struct scalar {
    const char *name;
    enum quantity quantity;
    double max; /* in the base unit; above it the value is implausible */
    int (*read)(struct gpu *gpu, double *value);
};

static int read_temperature(struct gpu *gpu, double *value)
{
    unsigned celsius = 0;
    int code = NVML_CALL(gpu->api, temperature, gpu->handle, 0, &celsius);
    *value = celsius;
    return code;
}

/* Version 2 reports the driver's reserved memory separately, as nvidia-smi does. */
static int query_memory(struct gpu *gpu, double *used, double *total)
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

static const struct answer *read_memory(struct gpu *gpu)
{
    struct answer *answer = &gpu->memory;
    if (!is_cached(gpu, answer))
        answer->code = query_memory(gpu, &answer->values[0], &answer->values[1]);
    return answer;
}

static int read_memory_used(struct gpu *gpu, double *value)
{
    *value = read_memory(gpu)->values[0];
    return gpu->memory.code;
}

static int read_memory_total(struct gpu *gpu, double *value)
{
    *value = read_memory(gpu)->values[1];
    return gpu->memory.code;
}

static const struct answer *read_utilizations(struct gpu *gpu)
{
    struct answer *answer = &gpu->utilization;
    struct nvml_utilization percent = {0};
    if (is_cached(gpu, answer))
        return answer;
    answer->code = NVML_CALL(gpu->api, utilization, gpu->handle, &percent);
    answer->values[0] = percent.gpu;
    answer->values[1] = percent.memory;
    return answer;
}

static int read_utilization(struct gpu *gpu, double *value)
{
    *value = read_utilizations(gpu)->values[0];
    return gpu->utilization.code;
}

static int read_memory_utilization(struct gpu *gpu, double *value)
{
    *value = read_utilizations(gpu)->values[1];
    return gpu->utilization.code;
}

static int read_clock(struct gpu *gpu, double *value)
{
    unsigned mhz = 0;
    int code = NVML_CALL(gpu->api, clock, gpu->handle, NVML_CLOCK_SM, &mhz);
    if (code == NVML_NOT_SUPPORTED)
        code = NVML_CALL(gpu->api, clock, gpu->handle, NVML_CLOCK_GRAPHICS, &mhz);
    *value = mhz;
    return code;
}

static int read_memory_clock(struct gpu *gpu, double *value)
{
    unsigned mhz = 0;
    int code = NVML_CALL(gpu->api, clock, gpu->handle, NVML_CLOCK_MEMORY, &mhz);
    *value = mhz;
    return code;
}

static int read_limit(struct gpu *gpu, double *value)
{
    unsigned mw = 0;
    int code = NVML_CALL(gpu->api, limit, gpu->handle, &mw);
    *value = mw * 1e-3;
    return code;
}

int nvml_card_throttle(const struct nvml_api *api, nvml_device handle, unsigned *out, bool *idle)
{
    static const struct {
        unsigned long long theirs;
        unsigned ours;
    } MAP[] = {
        {1U << 0, 0}, /* idle: clocks are low for lack of work, not throttled */
        {1U << 1, THROTTLE_LIMIT},
        {1U << 2, THROTTLE_POWER},
        {1U << 3, THROTTLE_OTHER}, /* hardware slowdown, cause not reported */
        {1U << 4, THROTTLE_SYNC},
        {1U << 5, THROTTLE_THERMAL},
        {1U << 6, THROTTLE_THERMAL},
        {1U << 7, THROTTLE_BRAKE},
        {1U << 8, THROTTLE_LIMIT}, /* the display's clock setting */
    };
    unsigned long long reasons = 0;
    int code = NVML_CALL(api, clock_events, handle, &reasons);
    if (code == NVML_FUNCTION_NOT_FOUND)
        code = NVML_CALL(api, clock_throttle, handle, &reasons);
    unsigned bits = 0;
    *idle = reasons & 1U;
    for (size_t i = 0; i < COUNT_OF(MAP); i++) {
        if (reasons & MAP[i].theirs)
            bits |= MAP[i].ours;
        reasons &= ~MAP[i].theirs;
    }
    /* The general slowdown bit accompanies the thermal and brake bits; alone it is not significant. */
    if (bits & (THROTTLE_THERMAL | THROTTLE_BRAKE))
        bits &= ~(unsigned)THROTTLE_OTHER;
    *out = reasons ? bits | THROTTLE_OTHER : bits;
    return code;
}

static int read_throttle(struct gpu *gpu, double *value)
{
    unsigned bits;
    bool idle;
    int code = nvml_card_throttle(gpu->api, gpu->handle, &bits, &idle);
    *value = bits;
    return code;
}

static int read_usage(struct gpu *gpu, double *value)
{
    unsigned mw = 0;
    int code = NVML_CALL(gpu->api, power, gpu->handle, &mw);
    *value = mw * 1e-3;
    return code;
}

static const struct scalar SCALARS[] = {
    {"temperature", QTY_TEMPERATURE, 200, read_temperature},
    {"memory.used", QTY_MEMORY_USED, 1e15, read_memory_used},
    {"memory.total", QTY_MEMORY_TOTAL, 1e15, read_memory_total},
    {"utilisation", QTY_UTILIZATION, 100, read_utilization},
    {"utilisation.memory", QTY_MEMORY_UTILIZATION, 100, read_memory_utilization},
    {"clock", QTY_CLOCK, 20e3, read_clock},
    {"clock.memory", QTY_MEMORY_CLOCK, 100e3, read_memory_clock},
    {"power_limit", QTY_POWER_LIMIT, WATTS_ABSURD, read_limit},
    {"throttle", QTY_THROTTLE, 1e9, read_throttle},
};
enum { SCALAR_COUNT = COUNT_OF(SCALARS) };

/* For drivers without either power field.  The averaging time depends on card and driver. */
static const struct scalar POWER_USAGE = {"power.average", QTY_POWER, WATTS_ABSURD, read_usage};

/* ---- an open card ---- */

struct state {
    struct gpu gpu;
    int location;
    char device[24];
    double watts_max;
    enum cadence cadences[SENSOR_GROUPS_MAX]; /* of each group */
    int energy_channel, samples_channel;      /* -1: none */
    struct nvml_samples samples;
    struct nvml_activity *activity;       /* NULL: none */
    struct nvml_mig *mig;                 /* NULL: not partitioned */
    struct nvml_field fields[FIELDS_MAX]; /* read in one call */
    unsigned field_channels[FIELDS_MAX];
    int field_count;
    bool instant_memory; /* memory power is instantaneous */
    struct {
        const struct scalar *what;
        enum cadence cadence;
        unsigned channel;
    } scalars[SCALAR_COUNT + 1]; /* those of SCALARS, and POWER_USAGE */
    size_t scalar_count;
    struct nvml_process_use *uses; /* size that the driver requested last time */
    unsigned use_capacity;
};

/* ---- opening ---- */

static struct sensor_channel *add_channel(struct sensor *sensor, const char *name,
                                          enum quantity quantity, enum cadence cadence)
{
    const struct state *state = sensor->state;
    struct sensor_channel *channel = sensor_add_channel(sensor, name, state->device, quantity);
    channel->location = state->location;
    channel->group = cadence; /* until number_groups */
    return channel;
}

/* Channels come in the order of preference: one is secondary when its scope is covered already. */
static unsigned add_power(struct sensor *sensor, const char *name, enum quantity quantity,
                          enum scope scope, enum cadence cadence)
{
    const struct state *state = sensor->state;
    bool covered = false;
    for (size_t i = 0; i < sensor->channel_count; i++)
        covered |= sensor->channels[i].scope == scope;
    struct sensor_channel *channel = add_channel(sensor, name, quantity, cadence);
    channel->scope = scope;
    channel->secondary = covered;
    channel->watts_max = state->watts_max;
    channel->relative_accuracy = ACCURACY;
    return (unsigned)(sensor->channel_count - 1);
}

static void add_scalar(struct sensor *sensor, const struct scalar *what, enum cadence cadence)
{
    struct state *state = sensor->state;
    if (what->quantity == QTY_POWER) /* an average */
        sensor->channels[add_power(sensor, what->name, QTY_POWER, SCOPE_GPU, cadence)].averaging =
            AVERAGE_TIME;
    else
        add_channel(sensor, what->name, what->quantity, cadence);
    state->scalars[state->scalar_count].what = what;
    state->scalars[state->scalar_count].cadence = cadence;
    state->scalars[state->scalar_count++].channel = (unsigned)(sensor->channel_count - 1);
}

/* Reading the counter takes 4 ms, and the probe has read it. */
static int open_energy(struct sensor *sensor, bool is_probed)
{
    struct state *state = sensor->state;
    unsigned long long mj;
    int code = is_probed ? NVML_OK : NVML_CALL(state->gpu.api, energy, state->gpu.handle, &mj);
    if (nvml_is_final(code))
        return code;
    state->energy_channel = (int)add_power(sensor, "energy", QTY_ENERGY, SCOPE_GPU, COUNTER);
    sensor->channels[state->energy_channel].joules_per_count = 1e-3;
    return code;
}

/* Starts the sample buffer; the scope it measures, or SCOPE_NONE when there is no buffer. */
static enum scope start_samples(struct state *state)
{
    const struct gpu *gpu = &state->gpu;
    struct nvml_samples *samples = &state->samples;
    if (nvml_samples_start(samples, gpu->api, gpu->handle, NVML_SAMPLES_TOTAL_POWER) == NVML_OK)
        return SCOPE_GPU;
    if (nvml_samples_start(samples, gpu->api, gpu->handle, NVML_SAMPLES_MODULE_POWER) == NVML_OK)
        return SCOPE_MODULE;
    return SCOPE_NONE;
}

static void add_samples(struct sensor *sensor, enum scope scope)
{
    struct state *state = sensor->state;
    state->samples_channel = (int)add_power(sensor, "power.samples", QTY_POWER, scope, SAMPLES);
    /* Cards average over about the sample spacing and timestamp the end of that. */
    sensor->channels[state->samples_channel].interval_mean = true;
    sensor->channels[state->samples_channel].lag = SAMPLES_LAG;
}

static int read_field(struct state *state, struct nvml_field *field)
{
    int code = NVML_CALL(state->gpu.api, fields, state->gpu.handle, 1, field);
    return code == NVML_OK ? field->code : code;
}

static void add_field(struct sensor *sensor, const char *name, const struct nvml_field *field,
                      enum scope scope)
{
    struct state *state = sensor->state;
    unsigned channel = add_power(sensor, name, QTY_POWER, scope, POWER);
    if (field->id == NVML_FIELD_POWER_AVERAGE)
        sensor->channels[channel].averaging = AVERAGE_TIME;
    state->field_channels[state->field_count] = channel;
    state->fields[state->field_count++] = *field;
}

/* A power field of the GPU or, where only that is measured (Grace Hopper), of the whole module. */
static int open_field(struct sensor *sensor, const char *name, unsigned id)
{
    struct nvml_field field = {.id = id, .scope = NVML_POWER_OF_GPU};
    int code = read_field(sensor->state, &field);
    if (!nvml_is_final(code)) {
        add_field(sensor, name, &field, SCOPE_GPU);
        return code;
    }
    field = (struct nvml_field){.id = id, .scope = NVML_POWER_OF_MODULE};
    int module_code = read_field(sensor->state, &field);
    if (nvml_is_final(module_code))
        return code;
    add_field(sensor, name, &field, SCOPE_MODULE);
    return module_code;
}

/* Drivers without scopes return the power of the whole card, or 0: valid memory power is above 0 and below that of
 * the card. */
static bool try_memory_power(struct sensor *sensor, unsigned id)
{
    struct nvml_field card = {.id = id, .scope = NVML_POWER_OF_GPU};
    struct nvml_field memory = {.id = id, .scope = NVML_POWER_OF_MEMORY};
    if (read_field(sensor->state, &card) != NVML_OK ||
        read_field(sensor->state, &memory) != NVML_OK)
        return false;
    double memory_mw = nvml_number(memory.type, &memory.value);
    if (!(memory_mw > 0 && memory_mw < nvml_number(card.type, &card.value)))
        return false;
    struct state *state = sensor->state;
    add_field(sensor, "power.memory", &memory, SCOPE_GPU_MEMORY);
    state->instant_memory = id == NVML_FIELD_POWER_INSTANT;
    return true;
}

/* An H200 reports its memory's power as an average only. */
static void open_memory_power(struct sensor *sensor)
{
    if (!try_memory_power(sensor, NVML_FIELD_POWER_INSTANT))
        try_memory_power(sensor, NVML_FIELD_POWER_AVERAGE);
}

/* Why a card whose calls returned these codes cannot be opened, if it cannot. */
static enum err check_opened(const struct sensor *sensor, const int *codes, size_t count,
                             struct error *why)
{
    const struct state *state = sensor->state;
    bool denied = false;
    for (size_t i = 0; i < count; i++) {
        denied |= codes[i] == NVML_NO_PERMISSION;
        /* "Unknown" may be the failure of one call; it means loss only if all other calls fail, too. */
        bool lost = nvml_err(codes[i]) == ERR_LOST;
        if (lost && (codes[i] != NVML_UNKNOWN || sensor->channel_count == 0))
            return err_set(why, ERR_LOST, "GPU %d: %s", state->location, nvml_code_text(codes[i]));
    }
    if (sensor->channel_count)
        return ERR_OK;
    if (denied)
        return err_set(why, ERR_DENIED, "GPU %d: no permission to read its power", state->location);
    return err_set(why, ERR_UNSUPPORTED,
                   "NVML reports neither energy nor power of this GPU, as on Jetson boards: "
                   "there the jetson driver reads the INA3221 power monitor instead");
}

/* Opens every channel that measures energy or power; at least one must open. */
static enum err open_power(struct sensor *sensor, bool has_counter, struct error *why)
{
    struct state *state = sensor->state;
    int codes[4];
    double watts;
    codes[3] = POWER_USAGE.read(&state->gpu, &watts);
    codes[0] = open_energy(sensor, has_counter && codes[3] == NVML_OK);
    /* A buffer without a single sample may stay empty: it must not rank before a field. */
    enum scope samples_scope = start_samples(state);
    if (samples_scope != SCOPE_NONE && !state->samples.empty)
        add_samples(sensor, samples_scope);
    codes[1] = open_field(sensor, "power.instant", NVML_FIELD_POWER_INSTANT);
    codes[2] = open_field(sensor, "power.average", NVML_FIELD_POWER_AVERAGE);
    if (state->field_count == 0 && !nvml_is_final(codes[3]))
        add_scalar(sensor, &POWER_USAGE, POWER);
    if (samples_scope != SCOPE_NONE && state->samples.empty)
        add_samples(sensor, samples_scope);
    open_memory_power(sensor);
    return check_opened(sensor, codes, COUNT_OF(codes), why);
}

/* Numbers the groups that have channels and points the channels at them. */
static void number_groups(struct sensor *sensor)
{
    struct state *state = sensor->state;
    unsigned number_of[CADENCES] = {0};
    for (enum cadence cadence = COUNTER; cadence < CADENCES; cadence++) {
        bool used = false, is_figure = false, has_memory = false;
        for (size_t i = 0; i < sensor->channel_count; i++) {
            const struct sensor_channel *channel = &sensor->channels[i];
            bool here = channel->group == (unsigned)cadence;
            used |= here;
            has_memory |= here && channel->scope == SCOPE_GPU_MEMORY;
            is_figure |= here && channel->quantity == QTY_POWER && !channel->secondary &&
                         channel->scope != SCOPE_GPU_MEMORY;
        }
        if (!used)
            continue;
        number_of[cadence] = (unsigned)sensor->group_count;
        state->cadences[sensor->group_count] = cadence;
        sensor->groups[sensor->group_count] =
            cadence == ACTIVITY ? nvml_activity_pace(state->activity) : PACE[cadence];
        if (cadence == POWER && is_figure)
            sensor->groups[sensor->group_count].follow_ticks = true;
        bool has_samples = state->samples_channel >= 0 && !state->samples.empty;
        if (cadence == COUNTER && has_samples)
            sensor->groups[sensor->group_count].period_default = COUNTER_WITH_SAMPLES;
        if (cadence == POWER && has_samples && !is_figure) { /* cross-checks of the samples */
            if (!state->instant_memory)
                sensor->groups[sensor->group_count].period_default = FIELDS_WITH_SAMPLES;
            sensor->groups[sensor->group_count].slow_period = 2 * NS_PER_S;
            sensor->groups[sensor->group_count].slow_period_min =
                has_memory ? NS_PER_S / 2 : 2 * NS_PER_S;
        }
        sensor->group_count++;
    }
    for (size_t i = 0; i < sensor->channel_count; i++)
        sensor->channels[i].group = number_of[sensor->channels[i].group];
}

void nvml_card_close(struct sensor *sensor)
{
    struct state *state = sensor->state;
    nvml_samples_release(&state->samples);
    nvml_activity_close(state->activity);
    nvml_mig_close(state->mig);
    free(state->uses);
    free(state);
    sensor->state = NULL;
}

const struct nvml_api *nvml_card_api(const struct sensor *sensor, nvml_device *handle)
{
    const struct state *state = sensor->state;
    *handle = state->gpu.handle;
    return state->gpu.api;
}

enum err nvml_card_open(const struct nvml_api *api, const struct nvml_card *card, unsigned number,
                        struct sensor *out, struct error *why)
{
    if (card->code != NVML_OK)
        return err_set(why, nvml_err(card->code), "GPU %u: %s (code %d)", number,
                       nvml_code_text(card->code), card->code);
    struct state *state = memory_zeroed(1, sizeof *state);
    if (!state)
        return err_set(why, ERR_NO_MEMORY, "GPU %u: out of memory", number);
    state->gpu.api = api;
    state->gpu.handle = card->handle;
    state->location = (int)number;
    state->energy_channel = state->samples_channel = -1;
    chars_format(state->device, "gpu%u", number);
    unsigned min_mw, max_mw;
    state->watts_max = WATTS_MAX_UNKNOWN;
    if (NVML_CALL(api, limit_range, card->handle, &min_mw, &max_mw) == NVML_OK && max_mw > 0 &&
        max_mw * 1e-3 < WATTS_ABSURD)
        state->watts_max = max_mw * 1e-3 * 1.5;
    out->state = state;
    enum err err = open_power(out, card->has_counter, why);
    if (err != ERR_OK) {
        nvml_card_close(out);
        return err;
    }
    for (size_t i = 0; i < SCALAR_COUNT; i++) {
        double value;
        if (!nvml_is_final(SCALARS[i].read(&state->gpu, &value)))
            add_scalar(out, &SCALARS[i], GAUGES);
    }
    state->activity = nvml_activity_open(api, card->handle, card->index, out, ACTIVITY);
    state->mig = nvml_mig_open(api, card->handle, out, ACTIVITY);
    number_groups(out);
    return ERR_OK;
}

/* ---- reading ---- */

static enum err read_energy(struct state *state, struct observations *out)
{
    unsigned channel = (unsigned)state->energy_channel;
    unsigned long long mj = 0;
    nanos before = clock_now();
    int code = NVML_CALL(state->gpu.api, energy, state->gpu.handle, &mj);
    nanos after = clock_now();
    /* The call waits for the driver's lock and for the GPU; how its time is divided between the two is unknown.  The
     * middle of the call is off by at most half of its duration, without bias over many calls. */
    nanos t = before + (after - before) / 2;
    enum err err = nvml_err(code);
    if (err == ERR_LOST)
        return ERR_LOST;
    if (err == ERR_OK && mj == ULLONG_MAX)
        err = ERR_BAD_VALUE; /* a value that firmware uses for "not available" */
    if (err == ERR_OK)
        observe_count(out, channel, t, mj);
    else
        observe_missing(out, channel, t, err);
    return ERR_OK;
}

/* Observes a value; a negative, implausible or NaN value is missing. */
static void observe(struct observations *out, unsigned channel, nanos t, enum err err, double value,
                    double max)
{
    if (err == ERR_OK && !(value >= 0 && value <= max))
        err = ERR_BAD_VALUE;
    if (err == ERR_OK)
        observe_value(out, channel, t, value);
    else
        observe_missing(out, channel, t, err);
}

static enum err read_fields(struct state *state, struct observations *out)
{
    if (state->field_count == 0)
        return ERR_OK;
    nanos before = clock_now();
    int code =
        NVML_CALL(state->gpu.api, fields, state->gpu.handle, state->field_count, state->fields);
    nanos t = before + (clock_now() - before) / 2;
    for (int i = 0; i < state->field_count; i++) {
        const struct nvml_field *field = &state->fields[i];
        enum err err = nvml_err(code == NVML_OK ? field->code : code);
        if (err == ERR_LOST)
            return ERR_LOST;
        double watts = err == ERR_OK ? nvml_number(field->type, &field->value) * 1e-3 : 0;
        observe(out, state->field_channels[i], t, err, watts, WATTS_ABSURD);
    }
    return ERR_OK;
}

static enum err read_scalars(struct state *state, enum cadence cadence, struct observations *out)
{
    state->gpu.pass++;
    for (size_t i = 0; i < state->scalar_count; i++) {
        if (state->scalars[i].cadence != cadence)
            continue;
        const struct scalar *what = state->scalars[i].what;
        double value = 0;
        nanos before = clock_now();
        enum err err = nvml_err(what->read(&state->gpu, &value));
        nanos t = before + (clock_now() - before) / 2;
        if (err == ERR_LOST)
            return ERR_LOST;
        observe(out, state->scalars[i].channel, t, err, value, what->max);
    }
    return ERR_OK;
}

static enum err read_samples(struct state *state, struct observations *out)
{
    unsigned channel = (unsigned)state->samples_channel;
    enum err err = nvml_err(nvml_samples_drain(&state->samples, state->gpu.api, state->gpu.handle,
                                               channel, WATTS_ABSURD, out));
    if (err == ERR_LOST)
        return ERR_LOST;
    if (err != ERR_OK)
        observe_missing(out, channel, clock_now(), err);
    return ERR_OK;
}

enum err nvml_card_read(struct sensor *sensor, unsigned group, struct observations *out)
{
    struct state *state = sensor->state;
    enum err err;
    if (group >= sensor->group_count)
        return ERR_USAGE;
    switch (state->cadences[group]) {
    case COUNTER:
        return read_energy(state, out);
    case POWER:
        err = read_fields(state, out);
        return err == ERR_OK ? read_scalars(state, POWER, out) : err;
    case ACTIVITY:
        err = state->activity ? nvml_activity_read(state->activity, out) : ERR_OK;
        return err == ERR_OK && state->mig ? nvml_mig_read(state->mig, out) : err;
    case SAMPLES:
        return read_samples(state, out);
    default:
        return read_scalars(state, GAUGES, out);
    }
}

/* ---- processes ---- */

/* Process samples that an H200's driver (580) reports, with some margin. */
enum { USES_FIRST = 128 };

/* The driver's figures of a process are up to a second apart: those of the last second count. */
#define PROCESS_USE_PERIOD NS_PER_S

static struct sensor_process *process_of(struct sensor_process *list, size_t *count, unsigned pid)
{
    for (size_t i = 0; i < *count; i++)
        if (list[i].pid == (int)pid)
            return &list[i];
    if (*count == SENSOR_PROCESSES_MAX)
        return NULL;
    list[*count] =
        (struct sensor_process){.pid = (int)pid, .memory_bytes = UNKNOWN, .busy_pct = UNKNOWN};
    return &list[(*count)++];
}

static int read_open(const struct gpu *gpu, struct sensor_process *out, size_t *count)
{
    struct nvml_process listed[SENSOR_PROCESSES_MAX];
    unsigned length = SENSOR_PROCESSES_MAX;
    int code = NVML_CALL(gpu->api, processes, gpu->handle, &length, listed);
    for (unsigned i = 0; code == NVML_OK && i < length; i++) {
        struct sensor_process *process = process_of(out, count, listed[i].pid);
        process->is_open = true;
        if (listed[i].memory != ULLONG_MAX) /* a process may be in several MIG instances */
            add_known(&process->memory_bytes, (double)listed[i].memory);
    }
    return code;
}

/* Sums of a process's values and their number; some libraries fill unused entries with garbage. */
static void add_use(struct sensor_process *out, size_t *count, const struct nvml_process_use *use,
                    unsigned length)
{
    unsigned values[SENSOR_PROCESSES_MAX] = {0};
    for (unsigned i = 0; i < length; i++) {
        struct sensor_process *process =
            use[i].pid && use[i].sm <= 100 ? process_of(out, count, use[i].pid) : NULL;
        if (!process)
            continue;
        add_known(&process->busy_pct, use[i].sm);
        values[process - out]++;
    }
    for (size_t i = 0; i < *count; i++)
        if (values[i])
            out[i].busy_pct /= values[i];
}

/* The driver returns its complete history of samples and rejects a smaller buffer: the number depends on the driver
 * and on the processes.  A call costs milliseconds, so the size that sufficed last time is tried first. */
static int read_use(struct state *state, nanos since, struct sensor_process *out, size_t *count)
{
    unsigned long long since_us = (unsigned long long)(since / NS_PER_US);
    int code = NVML_INSUFFICIENT_SIZE;
    unsigned length = USES_FIRST;
    for (int attempt = 0; attempt < 3 && code == NVML_INSUFFICIENT_SIZE; attempt++) {
        if (length > state->use_capacity) {
            length += attempt ? SENSOR_PROCESSES_MAX : 0; /* processes may appear between calls */
            struct nvml_process_use *uses = memory_resize(state->uses, length * sizeof *uses);
            if (!uses)
                return NVML_MEMORY;
            state->uses = uses;
            state->use_capacity = length;
        }
        length = state->use_capacity;
        code = NVML_CALL(state->gpu.api, process_use, state->gpu.handle, state->uses, &length,
                         since_us);
    }
    if (code == NVML_OK)
        add_use(out, count, state->uses, length);
    return code;
}

enum err nvml_card_processes(struct sensor *sensor, nanos since,
                             struct sensor_process out[SENSOR_PROCESSES_MAX], size_t *count)
{
    struct state *state = sensor->state;
    *count = 0;
    int code = read_open(&state->gpu, out, count);
    if (code != NVML_OK)
        return code == NVML_INSUFFICIENT_SIZE ? ERR_NO_SPACE : nvml_err(code);
    if (!since) /* the list takes 0.01 ms, utilization 3 ms */
        return ERR_OK;
    since = min_nanos(since, clock_now() - PROCESS_USE_PERIOD);
    code = read_use(state, since + clock_wall_offset(), out, count);
    if (code == NVML_NOT_FOUND || code == NVML_OK) /* idle, or only those with samples */
        for (size_t i = 0; i < *count; i++)
            if (!is_known(out[i].busy_pct))
                out[i].busy_pct = 0;
    return ERR_OK;
}
