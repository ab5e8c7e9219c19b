#include "attribute/slice.h"

#include <stdlib.h>

struct sharer *sharer_new(size_t devices)
{
    return calloc(1, sizeof(struct sharer) + devices * sizeof(struct portion));
}

void sharer_free(struct sharer *sharer)
{
    if (!sharer)
        return;
    request_trace_release(&sharer->trace);
    free(sharer);
}

/* Each one's part of the active energy, as parts that add up to the sum that is returned. */
static double weigh(const struct slice *slice, struct sharer *const *alive, size_t count,
                    double *weights)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const struct request_trace *trace = &alive[i]->trace;
        weights[i] = request_prefill_tokens(trace, slice->from, slice->to) +
                     slice->decode_weight * request_decode_tokens(trace, slice->from, slice->to);
        sum += weights[i];
    }
    if (is_known(sum) && sum > 0)
        return sum;
    /* Tokens of one of them are not known, or nobody processed any: all alike. */
    for (size_t i = 0; i < count; i++)
        weights[i] = 1;
    return (double)count;
}

static void note_channel(struct portion *portion, const struct slice_device *device)
{
    portion->counted = portion->counted || device->counted;
    if (portion->key == device->key)
        return;
    portion->earlier_key = portion->key;
    portion->key = device->key;
}

static void give(const struct slice *slice, struct sharer *sharer, double active, double idle)
{
    nanos change = request_phase_change(&sharer->trace);
    enum phase phase = slice->from < change ? PHASE_PREFILL : PHASE_DECODE;
    for (size_t d = 0; d < slice->device_count; d++) {
        const struct slice_device *device = &slice->devices[d];
        struct portion *portion = &sharer->portions[d];
        if (device->covered_s <= 0)
            continue;
        portion->active[phase] += active * device->active;
        portion->idle[phase] += idle * device->idle;
        portion->covered_s[phase] += device->covered_s;
        portion->window_joules += device->joules;
        note_channel(portion, device);
        if (!device->counted)
            continue;
        sharer->counted_active[phase] += active * device->active;
        sharer->counted_idle[phase] += idle * device->idle;
    }
}

struct slice_given slice_share(const struct slice *slice, struct sharer *const *alive, size_t count,
                               double *weights)
{
    struct slice_given given = {0};
    double length = seconds(slice->to - slice->from), equal = 1 / (double)count;
    double sum = weigh(slice, alive, count, weights);
    for (size_t i = 0; i < count; i++) {
        struct sharer *sharer = alive[i];
        double part = weights[i] / sum;
        give(slice, sharer, part, equal);
        given.active += part;
        given.idle += equal;
        sharer->shared_s += length;
        sharer->company_s += length * (double)count;
        if (count == 1)
            sharer->alone_s += length;
    }
    return given;
}
