#include "rundir/power.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/quantity.h"
#include "core/text.h"
#include "core/units.h"
#include "rundir/samples.h"
#include "rundir/summary.h"

/* ---- which channels there are ---- */

static struct power_channel *find_channel(struct power *power, const struct sample *sample)
{
    for (size_t i = 0; i < power->count; i++) {
        struct power_channel *channel = &power->channels[i];
        if (!strcmp(channel->name, sample->channel) && !strcmp(channel->device, sample->device) &&
            !strcmp(channel->sensor, sample->sensor))
            return channel;
    }
    return NULL;
}

enum { CHANNELS_MOST = 256 };

static enum err note_channel(void *context, const struct sample *sample)
{
    struct power *power = context;
    struct power_channel *channel = find_channel(power, sample);
    double t = sample->t_s;
    if (!channel && power->count < CHANNELS_MOST) {
        channel = &power->channels[power->count++];
        *channel = (struct power_channel){.first_t = t, .last_t = t};
        str_copy(channel->sensor, sizeof channel->sensor, sample->sensor);
        str_copy(channel->device, sizeof channel->device, sample->device);
        str_copy(channel->name, sizeof channel->name, sample->channel);
        str_copy(channel->scope, sizeof channel->scope, sample->scope);
        channel->is_counter = strcmp(sample->quantity, "energy") == 0;
    }
    if (!channel)
        return ERR_OK;
    channel->rows++;
    channel->first_t = fmin(channel->first_t, t);
    channel->last_t = fmax(channel->last_t, t);
    return ERR_OK;
}

/* ---- which of them are drawn ---- */

/* Is "SENSOR CHANNEL" one of the parts of a source, which " + " joins? */
static bool source_names(const char *source, const struct power_channel *channel)
{
    char words[200];
    str_format(words, sizeof words, "%s %s", channel->sensor, channel->name);
    size_t length = strlen(words);
    for (const char *at = source; (at = strstr(at, words)); at += length)
        if ((at == source || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return true;
    return false;
}

static bool is_source(const struct power_channel *channel, const struct summary *summary)
{
    for (size_t i = 0; i < summary->device_count; i++) {
        const char *source = summary->devices[i].energy.source;
        if (source && source_names(source, channel))
            return true;
    }
    return false;
}

/* A power meter of the same thing that was read more often shows more of its course than the counter. */
static struct power_channel *finest_like(struct power *power, struct power_channel *chosen)
{
    struct power_channel *finest = chosen;
    for (size_t i = 0; i < power->count; i++) {
        struct power_channel *other = &power->channels[i];
        if (!strcmp(other->device, chosen->device) && !strcmp(other->scope, chosen->scope) &&
            !strcmp(other->sensor, chosen->sensor) && other->rows > finest->rows)
            finest = other;
    }
    return finest;
}

static enum scope scope_named(const char *name)
{
    for (int scope = 0; scope < SCOPE_COUNT; scope++)
        if (strcmp(scope_name((enum scope)scope), name) == 0)
            return (enum scope)scope;
    return SCOPE_NONE;
}

/* Its joules are in another of the same device; or it is the same part, with fewer samples. */
static bool is_covered(const struct power *power, const struct power_channel *channel)
{
    enum scope scope = scope_named(channel->scope);
    for (const struct power_channel *other = power->channels;
         other < power->channels + power->count; other++) {
        if (other == channel || strcmp(other->device, channel->device) != 0)
            continue;
        bool same = strcmp(other->scope, channel->scope) == 0;
        if (same ? other->rows > channel->rows || (other->rows == channel->rows && other < channel)
                 : scope_contains(scope_named(other->scope), scope))
            return true;
    }
    return scope == SCOPE_NONE;
}

static bool choose(struct power *power, const struct summary *summary)
{
    bool any = false;
    for (size_t i = 0; i < power->count; i++)
        if (is_source(&power->channels[i], summary))
            finest_like(power, &power->channels[i])->shown = any = true;
    for (size_t i = 0; i < power->count && !any; i++)
        power->channels[i].shown = !is_covered(power, &power->channels[i]);
    for (size_t i = 0; i < power->count && !any; i++)
        any = power->channels[i].shown;
    return any;
}

/* ---- buckets ---- */

static enum err lay_grid(struct power *power, size_t buckets_most)
{
    double from = INFINITY, to = -INFINITY;
    uint64_t rows = 1;
    for (size_t i = 0; i < power->count; i++) {
        if (!power->channels[i].shown)
            continue;
        from = fmin(from, power->channels[i].first_t);
        to = fmax(to, power->channels[i].last_t);
        rows = power->channels[i].rows > rows ? power->channels[i].rows : rows;
    }
    size_t count = rows < buckets_most ? (size_t)rows : buckets_most;
    double length = fmax(to - from, 1e-3);
    power->grid = (struct time_grid){from, length / (double)count, count};
    for (size_t i = 0; i < power->count; i++) {
        struct power_channel *channel = &power->channels[i];
        if (!channel->shown)
            continue;
        double *all = calloc(4 * count, sizeof *all);
        if (!all)
            return ERR_NO_MEMORY;
        channel->joules = all;
        channel->covered_s = all + count;
        channel->least = all + 2 * count;
        channel->largest = all + 3 * count;
        for (size_t b = 0; b < count; b++)
            channel->least[b] = channel->largest[b] = UNKNOWN;
        channel->first_t = UNKNOWN; /* until its first row is read again */
    }
    return ERR_OK;
}

static size_t bucket_at(const struct time_grid *grid, double t)
{
    double place = floor((t - grid->from) / grid->step);
    return (size_t)fmin(fmax(place, 0), (double)grid->count - 1);
}

/* Joules between two readings, laid evenly over the buckets between them. */
static void spread_joules(const struct time_grid *grid, struct power_channel *channel, double t,
                          double joules)
{
    double begin = channel->last_t, length = t - begin;
    for (size_t b = bucket_at(grid, begin); length > 0 && b <= bucket_at(grid, t); b++) {
        double from = grid->from + (double)b * grid->step, to = from + grid->step;
        if (b + 1 == grid->count)
            to = fmax(to, t);
        double part = fmin(to, t) - fmax(from, begin);
        if (part <= 0)
            continue;
        channel->joules[b] += joules * part / length;
        channel->covered_s[b] += part;
        channel->least[b] = fmin(channel->least[b], joules / length);
        channel->largest[b] = fmax(channel->largest[b], joules / length);
    }
}

static enum err add_row(void *context, const struct sample *sample)
{
    struct power *power = context;
    struct power_channel *channel = find_channel(power, sample);
    if (!channel || !channel->shown)
        return ERR_OK;
    double t = sample->t_s, value = sample->value;
    size_t b = bucket_at(&power->grid, t);
    if (is_known(channel->first_t) && sample->covered > 0)
        spread_joules(&power->grid, channel, t, sample->sum - channel->last_sum);
    if (!channel->is_counter && is_known(value)) {
        channel->least[b] = fmin(channel->least[b], value);
        channel->largest[b] = fmax(channel->largest[b], value);
    }
    channel->first_t = is_known(channel->first_t) ? channel->first_t : t;
    channel->last_t = t;
    channel->last_sum = sample->sum;
    return ERR_OK;
}

double power_mean(const struct power_channel *channel, size_t bucket)
{
    double covered = channel->covered_s[bucket];
    return covered > 0 ? channel->joules[bucket] / covered : UNKNOWN;
}

enum err power_read(const char *directory, unsigned start, const struct summary *summary,
                    size_t buckets_most, struct power *out, struct error *why)
{
    const struct samples_query query = {.kind = SAMPLES_ENERGY};
    struct samples_found found = {0};
    *out = (struct power){.channels = calloc(CHANNELS_MOST, sizeof *out->channels)};
    if (!out->channels)
        return err_no_memory(why);
    enum err err = samples_read(directory, start, &query, note_channel, out, &found, why);
    if (!err && !choose(out, summary))
        err = err_set(why, ERR_NO_DATA, "no reading of energy or power in the samples of start %u",
                      start);
    if (!err && lay_grid(out, buckets_most))
        err = err_no_memory(why);
    if (!err)
        err = samples_read(directory, start, &query, add_row, out, &found, why);
    out->damaged = found.damaged;
    if (err)
        power_release(out);
    return err;
}

void power_release(struct power *power)
{
    for (size_t i = 0; i < power->count; i++)
        free(power->channels[i].joules);
    free(power->channels);
    *power = (struct power){0};
}
