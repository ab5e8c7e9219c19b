#include "attribute/channel_energy.h"

#include <math.h>
#include <string.h>

#include "core/text.h"
#include "sampler/sampler.h"

/* Coverage is compared in steps of a twentieth of the window. */
#define COVERAGE_STEPS 20

enum method channel_energy_method(const struct sensor_channel *channel)
{
    if (channel->estimated)
        return METHOD_ESTIMATED;
    return channel->quantity == QTY_ENERGY && !channel->integrated ? METHOD_COUNTER
                                                                   : METHOD_INTEGRAL;
}

static void name_source(const struct sensor *sensor, const struct sensor_channel *channel,
                        struct energy *energy)
{
    chars_format(energy->source, "%s %s", sensor->id, channel->name);
}

/* Current problem of a channel; "" if none is known. */
static void describe_problem(const struct channel_state *state, char *why, size_t size)
{
    *why = '\0';
    if (state->blocked_s > 0)
        str_format(why, size, "the driver has not returned from a call for %.0f s",
                   state->blocked_s);
    else if (state->zeros > 0)
        str_copy(why, size, "reads 0 W: a dead sensor");
}

/* Why an open channel has no energy for a window. */
static struct energy no_energy(const struct sensor *sensor, const struct sensor_channel *channel,
                               const struct channel_state *state)
{
    char note[160], why[96];
    describe_problem(state, why, sizeof why);
    if (channel->quantity == QTY_ENERGY && state->updates == 0 && state->missing == 0 && !why[0])
        chars_copy(why, "counter did not change (a dead sensor, or too short a window)");
    else if (!why[0] && state->last_error)
        chars_format(why, "no reading: %s", err_text(state->last_error));
    else if (!why[0])
        chars_copy(why, "no reading in this window");
    chars_format(note, "%s %s: %s", sensor->id, channel->name, why);
    struct energy energy = energy_unknown(note);
    name_source(sensor, channel, &energy);
    return energy;
}

enum err channel_energy_window(struct sampler *sampler, size_t source, size_t channel, long shape,
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
    long shape = sensor_shape_channel(sampler_sensor(sampler, source), channel);
    enum err err = channel_energy_window(sampler, source, channel, shape, from, to, window);
    if (err)
        return err;
    if (shape >= 0 &&
        sampler_extremes(sampler, source, (size_t)shape, from, to, &low, power_max) == ERR_OK)
        return ERR_OK;
    return sampler_extremes(sampler, source, channel, from, to, &low, power_max);
}

void energy_note_coverage(struct energy *energy, const struct channel_state *state)
{
    char why[96] = "";
    if (energy->coverage >= 0.995)
        return;
    if (state)
        describe_problem(state, why, sizeof why);
    chars_format(energy->note,
                 "%.1f %% of the window was not covered%s%s; its joules are not included",
                 100 * (1 - energy->coverage), why[0] ? ": " : "", why);
}

static void add_notes(const struct channel_state *state, struct energy *energy)
{
    energy_note_coverage(energy, state);
    if (energy->note[0] == '\0' && state->thinned)
        chars_copy(energy->note, "older samples were downsampled for lack of scratch space");
}

void channel_energy_take(struct sampler *sampler, size_t source, size_t channel, nanos from,
                         nanos to, struct channel_energy *out)
{
    const struct sensor *sensor = sampler_sensor(sampler, source);
    const struct sensor_channel *row = &sensor->channels[channel];
    struct channel_state state;
    struct window window;
    *out = (struct channel_energy){
        .source = source, .channel = channel, .row = row, .power_max = UNKNOWN};
    sampler_channel(sampler, source, channel, &state);
    enum err err = take_window(sampler, source, channel, from, to, &window, &out->power_max);
    /* A power sensor that reads only 0 W is dead, as is a counter that never changes. */
    bool flat_zero = !err && row->quantity == QTY_POWER && out->power_max <= 0;
    if (err || flat_zero) {
        out->energy = no_energy(sensor, row, &state);
        if (flat_zero)
            chars_format(out->energy.note, "%s %s: reads 0 W: a dead sensor", sensor->id,
                         row->name);
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
        .method = channel_energy_method(row),
        .updates = window.updates,
        .low_confidence = window.updates < ENERGY_CONFIDENT_UPDATES,
    };
    name_source(sensor, row, &out->energy);
    add_notes(&state, &out->energy);
}

/* ---- comparing ---- */

bool channel_energy_is_known(const struct channel_energy *of)
{
    return of && of->energy.method != METHOD_NONE;
}

bool channel_energy_is_measured(const struct channel_energy *of)
{
    return of && energy_is_measured(&of->energy);
}

/* An estimate comes after every measurement, secondary or not. */
static int rank(const struct channel_energy *of)
{
    const struct sensor_channel *row = of->row;
    if (!channel_energy_is_known(of))
        return row->secondary ? 100 : 50;
    return (row->secondary ? 10 : 0) + (row->estimated ? 20 : 0) + (int)of->energy.method;
}

/* Quantized, so that the order below is transitive: otherwise three channels of one device could outrank each other in
 * a cycle, and none would be counted.  Coverage of at least 95 % counts as complete. */
static int coverage_step(const struct energy *energy)
{
    int step = (int)(energy->coverage * COVERAGE_STEPS);
    return step < COVERAGE_STEPS - 1 ? step : COVERAGE_STEPS - 1;
}

/* The measurement that covers clearly more of the window is better: a counter that was reset in the window covers less
 * than samples of the whole window. */
bool channel_energy_is_better(const struct channel_energy *a, const struct channel_energy *b)
{
    if (channel_energy_is_measured(a) && channel_energy_is_measured(b) &&
        coverage_step(&a->energy) != coverage_step(&b->energy))
        return coverage_step(&a->energy) > coverage_step(&b->energy);
    return rank(a) < rank(b);
}

/* ---- sums ---- */

static void add_term(struct energy *total, const struct energy *part)
{
    if (total->method == METHOD_NONE) {
        *total = *part;
        total->note[0] = '\0';
        return;
    }
    size_t used = strlen(total->source);
    str_format(total->source + used, sizeof total->source - used, " + %s", part->source);
    total->joules += part->joules;
    total->statistical = hypot(total->statistical, part->statistical);
    total->coverage = fmin(total->coverage, part->coverage);
    total->idle_joules += part->idle_joules;
    total->active_joules += part->active_joules;
    total->updates = part->updates < total->updates ? part->updates : total->updates;
    total->low_confidence = total->low_confidence || part->low_confidence;
    if (part->method > total->method)
        total->method = part->method;
}

static double calibration_of(const struct energy *energy)
{
    double squared = energy->plus_minus * energy->plus_minus;
    return sqrt(fmax(0, squared - energy->statistical * energy->statistical));
}

/* Sensors of one kind have the same error (every card of a model reads a few percent low), so their calibration
 * errors add up linearly; those of different kinds are independent. */
static double sum_calibration(const struct energy_term *terms, size_t count)
{
    double squared = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            if (terms[i].driver == terms[j].driver && terms[i].scope == terms[j].scope)
                squared += calibration_of(terms[i].energy) * calibration_of(terms[j].energy);
    return sqrt(squared);
}

void energy_sum(const struct energy_term *terms, size_t count, struct energy *out)
{
    if (count == 0)
        return;
    out->method = METHOD_NONE;
    for (size_t i = 0; i < count; i++)
        add_term(out, terms[i].energy);
    out->plus_minus = hypot(out->statistical, sum_calibration(terms, count));
}
