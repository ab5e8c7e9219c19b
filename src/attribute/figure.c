#include "attribute/figure.h"

#include <math.h>
#include <string.h>

#include "core/text.h"
#include "sampler/sampler.h"

/* Coverages are told apart in steps of a twentieth of the window. */
#define COVERAGE_STEPS 20

enum method figure_method(const struct sensor_channel *channel)
{
    if (channel->estimated)
        return METHOD_ESTIMATED;
    return channel->quantity == QTY_ENERGY ? METHOD_COUNTER : METHOD_INTEGRAL;
}

static void name_source(const struct sensor *sensor, const struct sensor_channel *channel,
                        struct energy *energy)
{
    str_format(energy->source, sizeof energy->source, "%s %s", sensor->id, channel->name);
}

/* Why a channel that is open says nothing about a window. */
static struct energy silent(const struct sensor *sensor, const struct sensor_channel *channel,
                            const struct channel_state *state)
{
    char note[160];
    if (channel->quantity == QTY_ENERGY && state->updates == 0 && state->missing == 0)
        str_format(note, sizeof note, "%s %s did not move: a dead sensor, or a window too short",
                   sensor->id, channel->name);
    else if (state->last_error)
        str_format(note, sizeof note, "%s %s gave no reading: %s", sensor->id, channel->name,
                   err_text(state->last_error));
    else
        str_format(note, sizeof note, "%s %s has no reading in this window", sensor->id,
                   channel->name);
    struct energy energy = energy_unknown(note);
    name_source(sensor, channel, &energy);
    return energy;
}

/* The finest power channel of the same thing.  Drivers list their channels in order of preference. */
long figure_shape(const struct sensor *sensor, size_t channel)
{
    const struct sensor_channel *row = &sensor->channels[channel];
    if (row->quantity != QTY_ENERGY)
        return -1;
    for (size_t i = 0; i < sensor->channel_count; i++) {
        const struct sensor_channel *other = &sensor->channels[i];
        if (other->quantity == QTY_POWER && other->secondary && other->scope == row->scope &&
            other->location == row->location && !strcmp(other->device, row->device))
            return (long)i;
    }
    return -1;
}

enum err figure_window(struct sampler *sampler, size_t source, size_t channel, long shape,
                       nanos from, nanos to, struct window *out)
{
    return shape < 0
               ? sampler_window(sampler, source, channel, from, to, out)
               : sampler_window_shaped(sampler, source, channel, (size_t)shape, from, to, out);
}

static enum err take_window(struct sampler *sampler, size_t source, size_t channel, nanos from,
                            nanos to, struct window *window, double *power_max)
{
    double low;
    long shape = figure_shape(sampler_sensor(sampler, source), channel);
    enum err err = figure_window(sampler, source, channel, shape, from, to, window);
    if (err)
        return err;
    if (shape >= 0 &&
        sampler_extremes(sampler, source, (size_t)shape, from, to, &low, power_max) == ERR_OK)
        return ERR_OK;
    return sampler_extremes(sampler, source, channel, from, to, &low, power_max);
}

void figure_note_coverage(struct energy *energy)
{
    if (energy->coverage < 0.995)
        str_format(energy->note, sizeof energy->note,
                   "%.1f %% of the window was not covered; its joules are not in the figure",
                   100 * (1 - energy->coverage));
}

static void add_notes(const struct channel_state *state, struct energy *energy)
{
    figure_note_coverage(energy);
    if (energy->note[0] == '\0' && state->thinned)
        str_copy(energy->note, sizeof energy->note,
                 "older samples were thinned for want of scratch space");
}

void figure_take(struct sampler *sampler, size_t source, size_t channel, nanos from, nanos to,
                 struct figure *out)
{
    const struct sensor *sensor = sampler_sensor(sampler, source);
    const struct sensor_channel *row = &sensor->channels[channel];
    struct channel_state state;
    struct window window;
    *out = (struct figure){.source = source, .channel = channel, .power_max = UNKNOWN};
    sampler_channel(sampler, source, channel, &state);
    enum err err = take_window(sampler, source, channel, from, to, &window, &out->power_max);
    /* A power sensor that reads nothing but 0 W is as dead as a counter that stands still. */
    bool flat_zero = !err && row->quantity == QTY_POWER && out->power_max <= 0;
    if (err || flat_zero) {
        out->energy = silent(sensor, row, &state);
        if (flat_zero)
            str_format(out->energy.note, sizeof out->energy.note,
                       "%s %s reads 0 W throughout: a dead sensor", sensor->id, row->name);
        out->power_max = UNKNOWN;
        return;
    }
    double statistical = sqrt(window.variance);
    double calibration = row->relative_accuracy * window.sum;
    out->covered_s = window.covered_s;
    out->energy = (struct energy){
        .joules = window.sum,
        .plus_minus = hypot(statistical, calibration),
        .statistical = statistical,
        .coverage = window.coverage,
        .idle_joules = UNKNOWN,
        .active_joules = UNKNOWN,
        .method = figure_method(row),
        .updates = window.updates,
        .low_confidence = window.updates < FIGURE_CONFIDENT_UPDATES,
    };
    name_source(sensor, row, &out->energy);
    add_notes(&state, &out->energy);
}

/* A guess comes after every measurement, secondary or not. */
const struct sensor_channel *figure_row(const struct sampler *sampler, const struct figure *figure)
{
    return &sampler_sensor(sampler, figure->source)->channels[figure->channel];
}

bool figure_lives(const struct figure *figure)
{
    return figure && figure->energy.method != METHOD_NONE;
}

bool figure_is_measured(const struct figure *figure)
{
    return figure && energy_is_measured(&figure->energy);
}

static int rank(const struct sampler *sampler, const struct figure *figure)
{
    const struct sensor_channel *row = figure_row(sampler, figure);
    if (!figure_lives(figure))
        return row->secondary ? 100 : 50;
    return (row->secondary ? 10 : 0) + (row->estimated ? 20 : 0) + (int)figure->energy.method;
}

/* In steps, so that the order below has no circles: of three views of one thing that each gave way
 * to another none would be counted.  All but a twentieth of the window counts as all of it. */
static int coverage_step(const struct energy *energy)
{
    int step = (int)(energy->coverage * COVERAGE_STEPS);
    return step < COVERAGE_STEPS - 1 ? step : COVERAGE_STEPS - 1;
}

/* Of two measurements the one that covers plainly more of the window serves better: a counter that
 * was reset in the middle knows less than the samples that ran through. */
bool figure_better(const struct sampler *sampler, const struct figure *a, const struct figure *b)
{
    if (figure_is_measured(a) && figure_is_measured(b) &&
        coverage_step(&a->energy) != coverage_step(&b->energy))
        return coverage_step(&a->energy) > coverage_step(&b->energy);
    return rank(sampler, a) < rank(sampler, b);
}
