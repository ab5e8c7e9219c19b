/* Energy of a partitioned GPU by MIG instance: slices times SM activity, as in the ledger.  The remainder (idle, or of
 * an instance that reports no activity) has its own series, so that all series add up to the GPU. */
#include <stdlib.h>
#include <string.h>

#include "core/xalloc.h"
#include "monitor/parts.h"
#include "sampler/sampler.h"

/* Older activity readings are ignored. */
#define ACTIVITY_STALE (10 * NS_PER_S)

struct instance {
    struct text labels; /* identify the instance, also after a reload */
    size_t channel;     /* channel of the GPU's source */
    double share, joules;
    bool is_present;
    struct instance *next;
};

struct partitioned {
    struct text brief; /* label of the GPU */
    struct instance *first;
    double taken;        /* joules of the GPU already accounted for */
    double unattributed; /* part of these that no instance got */
    bool is_present;
};

struct instances {
    struct partitioned *gpus;
    size_t count, capacity;
};

struct instances *instances_new(void)
{
    return xcalloc(1, sizeof(struct instances));
}

void instances_free(struct instances *instances)
{
    for (size_t i = 0; instances && i < instances->count; i++) {
        struct instance *next;
        for (struct instance *at = instances->gpus[i].first; at; at = next) {
            next = at->next;
            text_release(&at->labels);
            free(at);
        }
        text_release(&instances->gpus[i].brief);
    }
    if (instances)
        free(instances->gpus);
    free(instances);
}

static struct partitioned *find_gpu(struct instances *instances, const struct domain *domain)
{
    for (size_t i = 0; i < instances->count; i++)
        if (str_equal(text_get(&instances->gpus[i].brief), text_get(&domain->brief)))
            return &instances->gpus[i];
    struct partitioned *added = XADD(instances->gpus, instances->count, instances->capacity);
    *added = (struct partitioned){.taken = domain->joules};
    text_add(&added->brief, text_get(&domain->brief));
    return added;
}

static void add_instance(struct partitioned *gpu, const struct sensor *sensor, size_t channel)
{
    struct text labels = {0};
    const struct sensor_channel *row = &sensor->channels[channel];
    add_instance_labels(&labels, sensor, row->device);
    struct instance *at = gpu->first;
    while (at && !str_equal(text_get(&at->labels), text_get(&labels)))
        at = at->next;
    if (at) {
        text_release(&labels);
    } else {
        at = XNEW(at);
        at->labels = labels;
        at->next = gpu->first;
        gpu->first = at;
    }
    at->channel = channel;
    at->share = row->share;
    at->is_present = true;
}

void instances_attach(struct instances *instances, struct state *state)
{
    size_t count;
    const struct domain *domains = state_domains(state, &count);
    struct sampler *sampler = state_sampler(state);
    for (size_t i = 0; i < instances->count; i++) {
        instances->gpus[i].is_present = false;
        for (struct instance *at = instances->gpus[i].first; at; at = at->next)
            at->is_present = false;
    }
    for (size_t d = 0; sampler && d < count; d++) {
        if (!domains[d].is_present || domains[d].scope != SCOPE_GPU)
            continue;
        const struct sensor *sensor = sampler_sensor(sampler, domains[d].source);
        for (size_t c = 0; c < sensor->channel_count; c++) {
            if (sensor->channels[c].share <= 0)
                continue;
            struct partitioned *gpu = find_gpu(instances, &domains[d]);
            gpu->is_present = true;
            add_instance(gpu, sensor, c);
        }
    }
}

static double activity(struct sampler *sampler, size_t source, size_t channel, nanos now)
{
    struct channel_state read;
    sampler_channel(sampler, source, channel, &read);
    return read.has_value && now - read.t <= ACTIVITY_STALE ? read.value / 100 : 0;
}

void instances_update(struct instances *instances, struct state *state, nanos now)
{
    size_t count;
    const struct domain *domains = state_domains(state, &count);
    for (size_t d = 0; instances->count && d < count; d++) {
        if (!domains[d].is_present || domains[d].scope != SCOPE_GPU || !domains[d].brief.length)
            continue;
        struct partitioned *gpu = NULL;
        for (size_t i = 0; i < instances->count; i++)
            if (instances->gpus[i].is_present &&
                str_equal(text_get(&instances->gpus[i].brief), text_get(&domains[d].brief)))
                gpu = &instances->gpus[i];
        if (!gpu)
            continue;
        double gained = domains[d].joules - gpu->taken, left = gained;
        for (struct instance *at = gpu->first; at; at = at->next) {
            double part = at->is_present ? gained * at->share *
                                               activity(state_sampler(state), domains[d].source,
                                                        at->channel, now)
                                         : 0;
            part = part < left ? part : left;
            at->joules += part;
            left -= part;
        }
        gpu->unattributed += left;
        gpu->taken = domains[d].joules;
    }
}

void instances_render(const struct instances *instances, struct exposition *to)
{
    family_begin(to, FAMILY_GPU_INSTANCE);
    for (size_t i = 0; i < instances->count; i++)
        for (const struct instance *at = instances->gpus[i].first; at; at = at->next)
            if (at->is_present)
                exposition_sample(to, text_get(&at->labels), text_get(&instances->gpus[i].brief),
                                  at->joules);
    family_begin(to, FAMILY_GPU_INSTANCE_UNATTRIBUTED);
    for (size_t i = 0; i < instances->count; i++)
        if (instances->gpus[i].is_present)
            exposition_sample(to, text_get(&instances->gpus[i].brief), "",
                              instances->gpus[i].unattributed);
}
