#include "sampler/series.h"

/* A meter that averages over W shows power later than it was, by W/2 and by its own delay: between 0 and W, uniformly
 * distributed, until it is characterized. */
#define AVERAGING_LAG 0.5774

void series_init(struct series *series, const struct sensor_channel *channel, struct spill *spill,
                 nanos gap_limit)
{
    *series = (struct series){.channel = channel, .gap_limit = gap_limit};
    bool means = channel->quantity == QTY_ENERGY || channel->interval_mean;
    timeline_init(&series->timeline, spill, means ? SHAPE_MEANS : SHAPE_POINTS);
    if (channel->quantity == QTY_ENERGY)
        series->timeline.resolution = channel->joules_per_count;
    else if (channel->quantity == QTY_POWER)
        series->timeline.lag_sigma = AVERAGING_LAG * seconds(channel->averaging);
}

void series_release(struct series *series)
{
    timeline_release(&series->timeline);
}

/* The next interval starts here; the one that ends here is not covered. */
static enum err begin_after_gap(struct series *series, const struct channel_sample *sample,
                                double value)
{
    const struct timeline_point *last = timeline_last(&series->timeline);
    struct timeline_point point = {
        .t = sample->t, .value = value, .t_sigma = (double)sample->sigma_us * 1e-6};
    if (last) {
        if (sample->t <= last->t)
            return ERR_OK; /* a gap before any new reading: the last point remains */
        point.covered = last->covered;
        point.sum = last->sum;
        point.variance = last->variance;
    }
    return timeline_append(&series->timeline, &point);
}

static void note_gap(struct series *series, enum err why)
{
    if (series->has_last)
        series->gaps++;
    series->has_last = false;
    series->last_error = why;
}

static enum err append_covered(struct series *series, const struct channel_sample *sample,
                               double added, double variance, double value)
{
    nanos t = sample->t;
    const struct timeline_point *last = timeline_last(&series->timeline);
    struct timeline_point point = {
        .t = t,
        .covered = last->covered + (t - last->t),
        .sum = last->sum + added,
        .variance = last->variance + variance,
        .value = value,
        .t_sigma = (double)sample->sigma_us * 1e-6,
    };
    series->updates++;
    return timeline_append(&series->timeline, &point);
}

/* ---- counters ---- */

/* Increment of a counter, in J; UNKNOWN after a reset or where that is unclear.
 *
 * A counter with a modulus that decreases has wrapped or was reset; one without has been reset.  The device's
 * maximum power decides: an increment that needs more power was a reset.  The period is added to the elapsed time
 * because a read just before a tick and one just after it are close together and yet see a whole tick's energy. */
static double advance(const struct series *series, uint64_t count, nanos elapsed)
{
    const struct sensor_channel *channel = series->channel;
    uint64_t steps = count - series->last_count;
    if (count < series->last_count) {
        if (channel->wraps_at == 0 || series->last_count >= channel->wraps_at)
            return UNKNOWN;
        steps = channel->wraps_at - series->last_count + count;
    }
    double joules = (double)steps * channel->joules_per_count;
    double max = channel->watts_max * (seconds(elapsed) + 0.1);
    if (channel->watts_max > 0 && joules > max)
        return UNKNOWN;
    double full_wrap = (double)channel->wraps_at * channel->joules_per_count;
    if (channel->wraps_at && channel->watts_max > 0 &&
        channel->watts_max * seconds(elapsed) > full_wrap)
        return UNKNOWN; /* not read for so long that a wrap may have been missed */
    return joules;
}

static enum err take_count(struct series *series, const struct channel_sample *sample)
{
    const struct timeline_point *last = timeline_last(&series->timeline);
    if (!series->has_last || !last) {
        series->has_last = true;
        series->last_count = sample->count;
        return begin_after_gap(series, sample, UNKNOWN);
    }
    if (sample->count == series->last_count || sample->t <= last->t)
        return ERR_OK;
    nanos elapsed = sample->t - last->t;
    double joules = advance(series, sample->count, elapsed);
    if (!is_known(joules)) {
        note_gap(series, ERR_BAD_VALUE);
        series->has_last = true;
        series->last_count = sample->count;
        return begin_after_gap(series, sample, UNKNOWN);
    }
    enum err err = append_covered(series, sample, joules, 0, joules / seconds(elapsed));
    if (!err)
        series->last_count =
            sample->count; /* otherwise the next increment includes these joules too */
    return err;
}

/* ---- sampled values ---- */

/* The meter of a whole device never reads exactly 0 W while it works; that of a rail or a part may. */
static bool may_be_zero(const struct sensor_channel *channel)
{
    switch (channel->scope) {
    case SCOPE_NODE:
    case SCOPE_BOARD:
    case SCOPE_MODULE:
    case SCOPE_GRACE:
    case SCOPE_PLATFORM:
    case SCOPE_PACKAGE:
    case SCOPE_GPU:
        return channel->estimated;
    default:
        return true;
    }
}

static bool is_plausible(const struct sensor_channel *channel, double value)
{
    if (!is_known(value))
        return false;
    if (channel->quantity != QTY_POWER)
        return true;
    if (value == 0 && !may_be_zero(channel))
        return false;
    return value >= 0 && (channel->watts_max <= 0 || value <= channel->watts_max);
}

static enum err refuse(struct series *series, const struct channel_sample *sample)
{
    series->refused++;
    series->zeros += sample->value == 0;
    if (!series->channel->interval_mean) {
        series->last_error = ERR_BAD_VALUE;
        return ERR_OK; /* the readings before and after it still cover the time */
    }
    /* The next mean begins here, so nothing covers the time of this one. */
    note_gap(series, ERR_BAD_VALUE);
    series->has_last = true;
    return begin_after_gap(series, sample, UNKNOWN);
}

static enum err take_value(struct series *series, const struct channel_sample *sample)
{
    double value = sample->value;
    if (!is_plausible(series->channel, value))
        return refuse(series, sample);
    const struct timeline_point *last = timeline_last(&series->timeline);
    if (last && sample->t <= last->t)
        return ERR_OK;
    bool covers = series->has_last && last && sample->t - last->t <= series->gap_limit;
    double before = series->last_value;
    if (series->has_last && !covers)
        series->gaps++;
    series->has_last = true;
    series->last_value = value;
    if (!covers)
        return begin_after_gap(series, sample, value);
    double dt = seconds(sample->t - last->t);
    if (series->timeline.shape == SHAPE_MEANS)
        return append_covered(series, sample, value * dt, 0, value);
    /* Between two readings the value was anywhere between the two; the straight line is the mean, and the variance
     * of a uniform distribution of that width is a twelfth of its square. */
    double spread = (value - before) * dt;
    return append_covered(series, sample, (before + value) / 2 * dt, spread * spread / 12, value);
}

static enum err take_missing(struct series *series, const struct channel_sample *sample)
{
    series->missing++;
    series->last_error = sample->why;
    /* The first read of a mean-since-last-read channel has no value, but its time is where the first mean begins;
     * likewise after a gap. */
    const struct timeline_point *last = timeline_last(&series->timeline);
    bool none_yet = !series->has_last || !last || !is_known(last->value);
    if (!series->channel->interval_mean || (!none_yet && sample->why != ERR_NO_DATA))
        return ERR_OK;
    if (!none_yet)
        note_gap(series, ERR_NO_DATA); /* the driver restarts: this interval stays uncovered */
    series->has_last = true;
    return begin_after_gap(series, sample, UNKNOWN);
}

enum err series_take(struct series *series, const struct channel_sample *sample)
{
    switch (sample->kind) {
    case SAMPLE_GAP:
        note_gap(series, sample->why);
        return ERR_OK;
    case SAMPLE_MISSING:
        return take_missing(series, sample);
    default:
        break;
    }
    if (series->channel->quantity == QTY_ENERGY)
        return take_count(series, sample);
    return take_value(series, sample);
}
