/* The driver stamps samples with the wall clock, which may be set; everything here is monotonic.
 *
 * While the offset between the two clocks is constant, a sample's time is its stamp minus that
 * offset, and what is newer than the last stamp is new.  When it changes (the clock was set, the
 * machine slept), stamps from before and after lie side by side in the buffer and cannot be
 * compared: until the old ones have left it the whole buffer is read, the newest sample is placed
 * by the new offset, and the others are counted back from it by their differences.  If the
 * driver uses another clock, the newest sample is assumed to be current. */
#include "sensors/nvml/card.h"

#include <stdlib.h>

#include "core/clock.h"
#include "core/memory.h"
#include "sensors/nvml/api.h"

enum { CAPACITY_MIN = 256 };

static const nanos STEP = 5 * NS_PER_MS;     /* slewing moves a clock 0.25 ms between drains */
static const nanos TYPICAL = 20 * NS_PER_MS; /* spacing on every card measured so far */
static const nanos OLDEST = 3 * NS_PER_S;    /* no buffer seen so far reaches farther back */
static const nanos LONGEST_GAP =
    NS_PER_S / 2; /* wider gaps are ignored when learning the spacing */
static const nanos DELAY_MAX =
    200 * NS_PER_MS; /* older samples show that something else is wrong */

/* Fetches samples newer than a timestamp.  Some drivers pad the result with empty or repeated entries, which are
 * dropped. */
static int fetch(struct nvml_samples *samples, const struct nvml_api *api, nvml_device card,
                 unsigned long long after_us, unsigned *type, unsigned *count)
{
    unsigned given = samples->capacity;
    *count = 0;
    int code =
        NVML_CALL(api, samples, card, samples->type, after_us, type, &given, samples->buffer);
    if (code == NVML_NOT_FOUND)
        return NVML_OK; /* no new samples is not an error */
    if (code != NVML_OK)
        return code;
    for (unsigned i = 0; i < given && i < samples->capacity; i++) {
        const struct nvml_sample *sample = &samples->buffer[i];
        bool repeated = *count && samples->buffer[*count - 1].time_us == sample->time_us;
        if (sample->time_us && !repeated)
            samples->buffer[(*count)++] = *sample;
    }
    return NVML_OK;
}

int nvml_samples_start(struct nvml_samples *samples, const struct nvml_api *api, nvml_device card,
                       int type)
{
    *samples = (struct nvml_samples){.type = type, .spacing = TYPICAL};
    unsigned value_type, count = 0;
    int code = NVML_CALL(api, samples, card, type, 0, &value_type, &count, NULL);
    if (code != NVML_OK && code != NVML_NOT_FOUND)
        return code;
    samples->capacity = count > CAPACITY_MIN ? count : CAPACITY_MIN;
    samples->buffer = memory_zeroed(samples->capacity, sizeof *samples->buffer);
    samples->times = memory_zeroed(samples->capacity, sizeof *samples->times);
    code = NVML_MEMORY;
    if (samples->buffer && samples->times)
        code = fetch(samples, api, card, 0, &value_type, &count);
    if (code != NVML_OK) {
        nvml_samples_release(samples);
        return code;
    }
    samples->last_t = clock_now();
    samples->wall_offset = clock_wall_offset();
    samples->empty = count == 0;
    if (count) {
        samples->last_us = samples->buffer[count - 1].time_us;
        nanos newest = (nanos)samples->last_us * NS_PER_US - samples->wall_offset;
        if (newest < samples->last_t && newest > samples->last_t - OLDEST)
            samples->last_t = newest;
    }
    return NVML_OK;
}

static nanos difference(const struct nvml_sample *later, const struct nvml_sample *earlier)
{
    return ((nanos)later->time_us - (nanos)earlier->time_us) * NS_PER_US;
}

/* Times of samples whose stamps can be trusted; learns their spacing on the way. */
static void times_by_stamp(struct nvml_samples *samples, unsigned count, nanos offset)
{
    for (unsigned i = 0; i < count; i++) {
        samples->times[i] = (nanos)samples->buffer[i].time_us * NS_PER_US - offset;
        nanos gap = i ? difference(&samples->buffer[i], &samples->buffer[i - 1]) : 0;
        if (gap > 0 && gap < LONGEST_GAP)
            samples->spacing = gap;
    }
}

/* Times counted back from the newest.  A gap far from the usual spacing is where the clock was
 * set; the usual spacing replaces it. */
static void times_by_counting(struct nvml_samples *samples, unsigned count, nanos newest)
{
    samples->times[count - 1] = newest;
    for (unsigned i = count - 1; i > 0; i--) {
        nanos gap = difference(&samples->buffer[i], &samples->buffer[i - 1]);
        if (gap < samples->spacing / 2 || gap > samples->spacing + samples->spacing / 2)
            gap = samples->spacing;
        samples->times[i - 1] = samples->times[i] - gap;
    }
}

/* The first sample that was not passed on yet. */
static unsigned first_fresh(const struct nvml_samples *samples, unsigned count, bool mixed,
                            bool credible)
{
    unsigned i = 0;
    if (mixed && !credible) { /* timestamps can only be compared for equality */
        for (i = count; i > 0; i--)
            if (samples->buffer[i - 1].time_us == samples->last_us)
                return i;
    } else if (!mixed) {
        while (i < count && samples->buffer[i].time_us <= samples->last_us)
            i++;
        return i;
    }
    while (i < count && samples->times[i] <= samples->last_t + samples->spacing / 2)
        i++;
    return i;
}

static void pass_on(struct nvml_samples *samples, unsigned first, unsigned count, unsigned type,
                    unsigned channel, double watts_limit, struct observations *out)
{
    for (unsigned i = first; i < count && out->count < out->capacity; i++) {
        const struct nvml_sample *sample = &samples->buffer[i];
        /* The offset between the clocks is itself read with a jitter of microseconds. */
        nanos t = samples->times[i] > samples->last_t ? samples->times[i] : samples->last_t + 1;
        double watts = nvml_number(type, &sample->value) * 1e-3;
        if (watts >= 0 && watts <= watts_limit)
            observe_value(out, channel, t, watts);
        else
            observe_missing(out, channel, t, ERR_BAD_VALUE);
        samples->last_t = t;
        samples->last_us = sample->time_us;
    }
}

static bool goes_back(const struct nvml_samples *samples, unsigned count)
{
    for (unsigned i = 1; i < count; i++)
        if (samples->buffer[i].time_us < samples->buffer[i - 1].time_us)
            return true;
    return false;
}

/* Fetches new samples, and detects timestamps of two clock settings.  If the driver's clock was set back, a request
 * for samples newer than the last one returns too few or none: only the whole buffer reveals that.  Where it shows that
 * the driver's samples are merely that late, it is not fetched for this delay again. */
static int fetch_new(struct nvml_samples *samples, const struct nvml_api *api, nvml_device card,
                     bool *mixed, unsigned *type, unsigned *count)
{
    int code = fetch(samples, api, card, *mixed ? 0 : samples->last_us, type, count);
    if (code != NVML_OK || *mixed)
        return code;
    nanos age =
        clock_now() - samples->last_t - (nanos)*count * samples->spacing; /* of the newest */
    bool enough = age <= 2 * samples->spacing + samples->delay;
    if (enough && !goes_back(samples, *count))
        return NVML_OK;
    code = fetch(samples, api, card, 0, type, count);
    if (goes_back(samples, *count) ||
        (*count && samples->buffer[*count - 1].time_us < samples->last_us)) {
        *mixed = true;
        samples->foreign_clock = true; /* ours was not set: that would have been detected */
    } else {
        samples->delay = min_nanos(age, DELAY_MAX);
    }
    return code;
}

int nvml_samples_drain(struct nvml_samples *samples, const struct nvml_api *api, nvml_device card,
                       unsigned channel, double watts_limit, struct observations *out)
{
    nanos now = clock_now();
    nanos offset = clock_wall_offset();
    nanos moved = offset - samples->wall_offset;
    bool stepped = moved > STEP || moved < -STEP;
    bool mixed = stepped || now < samples->mixed_until;
    bool was_mixed = mixed;
    unsigned type = NVML_UINT, count = 0;
    int code = fetch_new(samples, api, card, &mixed, &type, &count);
    if (code != NVML_OK)
        return code;
    now = clock_now();
    if (stepped || mixed != was_mixed)
        samples->mixed_until = now + (nanos)(count + 1) * samples->spacing;
    if (stepped) { /* decided again */
        samples->foreign_clock = false;
        samples->delay = 0;
    }
    samples->wall_offset = offset;
    if (count == 0)
        return NVML_OK;
    nanos newest = (nanos)samples->buffer[count - 1].time_us * NS_PER_US - offset;
    if (!mixed && newest <= now && newest > now - 2 * samples->spacing)
        samples->foreign_clock = false; /* the clocks agree again */
    bool credible = !samples->foreign_clock && newest <= now && newest > samples->last_t;
    if (credible && !mixed)
        times_by_stamp(samples, count, offset);
    else
        times_by_counting(samples, count, credible ? newest : now);
    unsigned first = first_fresh(samples, count, mixed, credible);
    pass_on(samples, first, count, type, channel, watts_limit, out);
    return NVML_OK;
}

void nvml_samples_release(struct nvml_samples *samples)
{
    free(samples->buffer);
    free(samples->times);
    *samples = (struct nvml_samples){0};
}
