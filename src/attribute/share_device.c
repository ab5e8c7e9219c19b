#include "attribute/share_device.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "attribute/figure.h"
#include "attribute/ledger.h"
#include "core/text.h"
#include "sampler/sampler.h"

/* A part above idle that is smaller than this share of a slice's energy is rounding. */
#define RESIDUE 1e-9

static unsigned key_of(size_t source, size_t channel)
{
    return (unsigned)(source * SENSOR_CHANNELS_MAX + channel + 1);
}

void share_key_parts(unsigned key, size_t *source, size_t *channel)
{
    *source = (key - 1) / SENSOR_CHANNELS_MAX;
    *channel = (key - 1) % SENSOR_CHANNELS_MAX;
}

void share_device_init(struct share_device *device, const struct ledger_device *row,
                       const struct baseline *idle)
{
    memset(device, 0, sizeof *device);
    str_copy(device->id, sizeof device->id, row->id);
    device->has_energy = row->has_energy;
    device->idle_w = UNKNOWN;
    for (size_t i = 0; idle && i < idle->count; i++)
        if (!strcmp(idle->rows[i].device, row->id))
            device->idle_w = fmax(0, idle->rows[i].watts);
}

void share_device_choose(struct share_device *device, struct sampler *sampler,
                         const struct ledger_device *row)
{
    device->lives = row->has_energy && row->energy.method != METHOD_NONE;
    device->counted = row->counted;
    if (!device->lives)
        return;
    device->was_counted = row->counted;
    device->source = row->source;
    device->channel = row->channel;
    device->shape = figure_shape(sampler_sensor(sampler, row->source), row->channel);
    device->key = key_of(row->source, row->channel);
}

enum err share_device_load(struct share_device *device, struct sampler *sampler, nanos begin,
                           const nanos *times, size_t count)
{
    if (!device->lives)
        return ERR_OK;
    enum err err = sampler_running(sampler, device->source, device->channel, device->shape, times,
                                   count, device->sums, device->covered);
    if (err)
        return err;
    /* Another channel measured what was settled last: the sums of the two have nothing in common. */
    double stood = device->sums[0];
    nanos covered;
    if (device->stood_key == device->key)
        stood = device->stood_joules;
    else if (device->stood_key == 0)
        err = sampler_running(sampler, device->source, device->channel, device->shape, &begin, 1,
                              &stood, &covered);
    if (err)
        return err;
    device->unattributed += device->sums[0] - stood;
    device->stood_key = device->key;
    device->stood_joules = device->sums[0];
    return ERR_OK;
}

void share_device_slice(const struct share_device *device, size_t k, struct slice_device *out)
{
    *out = (struct slice_device){.key = device->key, .counted = device->counted};
    if (!device->lives || device->covered[k + 1] <= device->covered[k])
        return;
    out->covered_s = seconds(device->covered[k + 1] - device->covered[k]);
    out->joules = fmax(0, device->sums[k + 1] - device->sums[k]);
    if (is_known(device->idle_w))
        out->idle = fmin(out->joules, device->idle_w * out->covered_s);
    out->active = out->joules - out->idle;
    /* Running sums are rounded, the more the longer the run: what is left of two that are the same is no
     * energy.  Its joules are idle, so that nothing is lost. */
    if (is_known(device->idle_w) &&
        out->active <= fmax(RESIDUE * out->joules, 8 * DBL_EPSILON * fabs(device->sums[k + 1]))) {
        out->idle = out->joules;
        out->active = 0;
    }
}

void share_device_settle(struct share_device *device, size_t k, const struct slice_device *slice,
                         const struct slice_given *given)
{
    if (!device->lives)
        return;
    device->stood_joules = device->sums[k + 1];
    device->covered_s += slice->covered_s;
    if (given && slice->counted) {
        device->busy_joules += slice->joules;
        device->busy_covered_s += slice->covered_s;
    }
    if (given) {
        device->requests += given->active * slice->active + given->idle * slice->idle;
    } else {
        device->idle += slice->idle;
        device->unattributed += slice->active;
    }
}
