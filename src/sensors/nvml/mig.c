/* The GPU instances of a card partitioned by MIG, each a device of its own: its memory and SM activity (GPM).
 *
 * Hardware measures power and energy of the whole card only.  The share of an instance's SM activity is its slices
 * over those of the card, by which the ledger attributes the card's energy.  Compute instances of one GPU instance
 * are one device: GPM does not distinguish them. */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/text.h"
#include "sensors/nvml/api.h"
#include "sensors/nvml/card.h"

#define GPM_PERIOD_MIN (100 * NS_PER_MS)

enum { INSTANCES_MAX = 7, GPM_SM_ACTIVE = 2 };

struct instance {
    nvml_device handle;
    unsigned id; /* of the GPU instance */
    nvml_gpm_sample samples[2];
    unsigned last;
    nanos taken;
    bool has_gpm, has_begun;
    unsigned first; /* channels: SM activity, memory used, memory in total */
};

struct nvml_mig {
    const struct nvml_api *api;
    nvml_device card;
    struct instance items[INSTANCES_MAX];
    unsigned count;
    struct nvml_gpm_metrics metrics;
};

/* "1g.18gb", from "NVIDIA H200 MIG 1g.18gb". */
static void describe(const struct nvml_api *api, const struct instance *instance,
                     struct sensor *sensor)
{
    char key[24], text[72], name[96] = "", uuid[NVML_UUID_SIZE] = "";
    if (api->name(instance->handle, name, sizeof name) != NVML_OK)
        name[0] = '\0';
    if (api->uuid(instance->handle, uuid, sizeof uuid) != NVML_OK)
        uuid[0] = '\0';
    const char *profile = strstr(name, "MIG ");
    chars_format(key, "mig_gi%u", instance->id);
    chars_format(text, "%.20s %.48s", profile ? profile + strlen("MIG ") : "?", uuid);
    sensor_add_fact(sensor, key, text);
}

static void add_channels(struct instance *instance, double share, struct sensor *sensor,
                         unsigned group)
{
    static const struct {
        const char *name;
        enum quantity quantity;
    } ROWS[] = {{"sm", QTY_SM_ACTIVE},
                {"memory.used", QTY_MEMORY_USED},
                {"memory.total", QTY_MEMORY_TOTAL}};
    char device[DEVICE_NAME_SIZE], name[32];
    int location = sensor->channels[0].location;
    chars_format(device, "gpu%d:gi%u", location, instance->id);
    instance->first = (unsigned)sensor->channel_count;
    for (size_t i = 0; i < COUNT_OF(ROWS); i++) {
        chars_format(name, "%sgi%u.%s", i == 0 ? "gpm." : "", instance->id, ROWS[i].name);
        struct sensor_channel *channel = sensor_add_channel(sensor, name, device, ROWS[i].quantity);
        channel->location = location;
        channel->group = group;
        channel->interval_mean = i == 0;
        channel->share = i == 0 ? share : 0;
    }
}

static bool has_instance(const struct nvml_mig *mig, unsigned id)
{
    for (unsigned i = 0; i < mig->count; i++)
        if (mig->items[i].id == id)
            return true;
    return false;
}

static void open_instance(struct nvml_mig *mig, nvml_device handle, unsigned slots,
                          struct sensor *sensor, unsigned group)
{
    const struct nvml_api *api = mig->api;
    struct instance *instance = &mig->items[mig->count];
    struct nvml_attributes attributes = {0};
    *instance = (struct instance){.handle = handle};
    if (mig->count == INSTANCES_MAX ||
        NVML_CALL(api, gpu_instance, handle, &instance->id) != NVML_OK ||
        has_instance(mig, instance->id))
        return;
    int code = NVML_CALL(api, attributes, handle, &attributes);
    double share = code == NVML_OK && slots ? (double)attributes.gpu_slices / slots : 0;
    instance->has_gpm = api->gpm_alloc && api->gpm_free && api->gpm_metrics && api->gpm_mig &&
                        api->gpm_alloc(&instance->samples[0]) == NVML_OK &&
                        api->gpm_alloc(&instance->samples[1]) == NVML_OK &&
                        api->gpm_mig(mig->card, instance->id, instance->samples[0]) == NVML_OK;
    instance->taken = clock_now();
    add_channels(instance, share < 1 ? share : 1, sensor, group);
    describe(api, instance, sensor);
    mig->count++;
}

struct nvml_mig *nvml_mig_open(const struct nvml_api *api, nvml_device card, struct sensor *sensor,
                               unsigned group)
{
    unsigned now = 0, after_reset = 0, slots = 0;
    if (NVML_CALL(api, mig_mode, card, &now, &after_reset) != NVML_OK || now != 1 ||
        NVML_CALL(api, mig_max, card, &slots) != NVML_OK)
        return NULL;
    struct nvml_mig *mig = memory_zeroed(1, sizeof *mig);
    if (!mig)
        return NULL;
    mig->api = api;
    mig->card = card;
    for (unsigned i = 0; i < slots; i++) {
        nvml_device handle;
        if (NVML_CALL(api, mig_device, card, i, &handle) == NVML_OK)
            open_instance(mig, handle, slots, sensor, group);
    }
    if (mig->count)
        return mig;
    free(mig);
    return NULL;
}

void nvml_mig_close(struct nvml_mig *mig)
{
    for (unsigned i = 0; mig && i < mig->count; i++)
        for (int k = 0; k < 2; k++)
            if (mig->items[i].samples[k])
                mig->api->gpm_free(mig->items[i].samples[k]);
    free(mig);
}

static enum err read_activity(struct nvml_mig *mig, struct instance *instance,
                              struct observations *out)
{
    struct nvml_gpm_metrics *metrics = &mig->metrics;
    unsigned next = 1 - instance->last;
    nanos now = clock_now();
    if (!instance->has_gpm || !instance->has_begun)
        observe_missing(out, instance->first, instance->has_gpm ? instance->taken : now,
                        instance->has_gpm ? ERR_NO_DATA : ERR_UNSUPPORTED);
    instance->has_begun = true;
    if (!instance->has_gpm || now - instance->taken < GPM_PERIOD_MIN)
        return ERR_OK;
    int code = mig->api->gpm_mig(mig->card, instance->id, instance->samples[next]);
    if (code == NVML_OK) {
        *metrics = (struct nvml_gpm_metrics){.version = NVML_GPM_VERSION,
                                             .count = 1,
                                             .first = instance->samples[instance->last],
                                             .second = instance->samples[next]};
        metrics->metrics[0].id = GPM_SM_ACTIVE;
        instance->last = next;
        instance->taken = now;
        code = mig->api->gpm_metrics(metrics);
    }
    enum err err = nvml_err(code == NVML_OK ? metrics->metrics[0].code : code);
    double percent = metrics->metrics[0].value;
    if (err == ERR_OK && !(percent >= 0 && percent <= 101))
        err = ERR_BAD_VALUE;
    if (err == ERR_OK)
        observe_value(out, instance->first, now, percent < 100 ? percent : 100);
    else if (err != ERR_LOST)
        observe_missing(out, instance->first, now, err);
    return err == ERR_LOST ? ERR_LOST : ERR_OK;
}

enum err nvml_mig_read(struct nvml_mig *mig, struct observations *out)
{
    for (unsigned i = 0; i < mig->count; i++) {
        struct instance *instance = &mig->items[i];
        struct nvml_memory memory = {0};
        enum err err = read_activity(mig, instance, out);
        if (err)
            return err;
        err = nvml_err(NVML_CALL(mig->api, memory, instance->handle, &memory));
        if (err == ERR_LOST)
            return err;
        const double values[2] = {(double)memory.used, (double)memory.total};
        for (unsigned k = 0; k < 2; k++)
            if (err)
                observe_missing(out, instance->first + 1 + k, clock_now(), err);
            else
                observe_value(out, instance->first + 1 + k, clock_now(), values[k]);
    }
    return ERR_OK;
}
