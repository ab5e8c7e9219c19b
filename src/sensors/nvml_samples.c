/* The driver stamps samples with the wall clock, which may be set; everything here is monotonic.
 *
 * While the two clocks keep their distance, a sample's time is its stamp less that distance.  When
 * they do not (the clock was set, the machine slept, the driver's idea of time is off), stamps from
 * before and after cannot be compared: then the newest sample is placed by the new distance, or at
 * now if that is not credible, and the others are counted back from it by their differences. */
#include "sensors/nvml_samples.h"

#include <stdlib.h>

#include "core/clock.h"

enum { LEAST_CAPACITY = 256 };

static const nanos STEP = 5 * NS_PER_MS;       /* slewing moves a clock 0.25 ms between drains */
static const nanos TYPICAL = 20 * NS_PER_MS;   /* spacing on every card measured so far */
static const nanos LATE = NS_PER_S;            /* a sample may reach the buffer this late */
static const nanos LONGEST_GAP = NS_PER_S / 2; /* wider gaps teach nothing about the spacing */

/* Fills the buffer with what is newer than a stamp.  Some drivers pad their answer with empty or
 * repeated entries; these are dropped here. */
static int fetch(struct nvml_samples *samples, const struct nvml_api *api, nvml_device card,
                 unsigned long long after_us, unsigned *type, unsigned *count)
{
    unsigned given = samples->capacity;
    *count = 0;
    int code =
        NVML_CALL(api, samples, card, samples->type, after_us, type, &given, samples->buffer);
    if (code == NVML_NOT_FOUND)
        return NVML_OK; /* nothing new is no failure */
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
    samples->capacity = count > LEAST_CAPACITY ? count : LEAST_CAPACITY;
    samples->buffer = calloc(samples->capacity, sizeof *samples->buffer);
    samples->times = calloc(samples->capacity, sizeof *samples->times);
    code = NVML_MEMORY;
    if (samples->buffer && samples->times)
        code = fetch(samples, api, card, 0, &value_type, &count);
    if (code != NVML_OK) {
        nvml_samples_release(samples);
        return code;
    }
    samples->drained_at = clock_now();
    samples->wall_offset = clock_wall() - samples->drained_at;
    samples->last_t = samples->drained_at;
    samples->empty = count == 0;
    if (count) {
        samples->last_us = samples->buffer[count - 1].time_us;
        nanos newest = (nanos)samples->last_us * NS_PER_US - samples->wall_offset;
        if (newest < samples->last_t && newest > samples->last_t - LATE)
            samples->last_t = newest;
    }
    return NVML_OK;
}

static nanos difference(const struct nvml_sample *later, const struct nvml_sample *earlier)
{
    return ((nanos)later->time_us - (nanos)earlier->time_us) * NS_PER_US;
}

/* Times of samples whose stamps are to be trusted; learns their spacing on the way. */
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
 * set; the usual spacing stands in for it. */
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

static void hand_on(struct nvml_samples *samples, unsigned count, unsigned type, bool stepped,
                    unsigned channel, double watts_limit, struct observations *out)
{
    for (unsigned i = 0; i < count && out->count < out->capacity; i++) {
        const struct nvml_sample *sample = &samples->buffer[i];
        bool fresh = stepped ? samples->times[i] > samples->last_t + samples->spacing / 2
                             : sample->time_us > samples->last_us;
        if (!fresh)
            continue;
        /* The distance of the clocks is itself read with a jitter of microseconds. */
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

int nvml_samples_drain(struct nvml_samples *samples, const struct nvml_api *api, nvml_device card,
                       unsigned channel, double watts_limit, struct observations *out)
{
    nanos offset = clock_wall() - clock_now();
    nanos moved = offset - samples->wall_offset;
    bool stepped = moved > STEP || moved < -STEP;
    unsigned type = NVML_UINT, count = 0;
    int code = fetch(samples, api, card, stepped ? 0 : samples->last_us, &type, &count);
    if (code == NVML_OK && count == 0 && !stepped) {
        /* Nothing new, or the driver's clock was set back and its stamps now come before the last:
         * asking for everything tells the two apart. */
        code = fetch(samples, api, card, 0, &type, &count);
        stepped = count && samples->buffer[count - 1].time_us < samples->last_us;
    }
    if (code != NVML_OK)
        return code;
    nanos now = clock_now();
    if (count) {
        nanos newest = (nanos)samples->buffer[count - 1].time_us * NS_PER_US - offset;
        bool credible = newest <= now && newest >= samples->drained_at - LATE;
        if (credible && !stepped)
            times_by_stamp(samples, count, offset);
        else
            times_by_counting(samples, count, credible ? newest : now);
        hand_on(samples, count, type, stepped, channel, watts_limit, out);
    }
    samples->wall_offset = offset;
    samples->drained_at = now;
    return NVML_OK;
}

void nvml_samples_release(struct nvml_samples *samples)
{
    free(samples->buffer);
    free(samples->times);
    *samples = (struct nvml_samples){0};
}
