#include "attribute/handover.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/figure.h"
#include "core/text.h"
#include "sampler/sampler.h"

/* ---- room ---- */

static size_t device_named(const struct ledger *ledger, const char *id)
{
    size_t i = 0;
    while (i < ledger->count && strcmp(ledger->devices[i].id, id) != 0)
        i++;
    return i;
}

static size_t channels_in_all(const struct sampler *sampler)
{
    size_t count = 0;
    for (size_t s = 0; s < sampler_count(sampler); s++)
        count += sampler_sensor(sampler, s)->channel_count;
    return count;
}

static void find_gauges(struct handover *handover, const struct ledger *ledger)
{
    for (size_t s = 0; s < sampler_count(handover->sampler); s++) {
        const struct sensor *sensor = sampler_sensor(handover->sampler, s);
        for (size_t c = 0; c < sensor->channel_count; c++) {
            const struct sensor_channel *row = &sensor->channels[c];
            size_t device = device_named(ledger, row->device);
            if (!quantity_gives_joules(row->quantity) && device < ledger->count)
                handover->gauges[handover->gauge_count++] =
                    (struct gauge_channel){device, s, c, row->quantity};
        }
    }
}

enum err handover_init(struct handover *handover, struct sampler *sampler,
                       const struct ledger *ledger, const struct share_device *devices)
{
    size_t count = ledger->count + 1;
    *handover = (struct handover){
        .sampler = sampler,
        .devices = devices,
        .device_count = ledger->count,
        .gauges = calloc(channels_in_all(sampler) + 1, sizeof *handover->gauges),
        .shares = calloc(count, sizeof *handover->shares),
        .phase_energies = {calloc(count, sizeof *handover->phase_energies[0]),
                           calloc(count, sizeof *handover->phase_energies[0])},
        .parts = calloc(count, sizeof *handover->parts),
    };
    if (!handover->gauges || !handover->shares || !handover->phase_energies[0] ||
        !handover->phase_energies[1] || !handover->parts) {
        handover_release(handover);
        return ERR_NO_MEMORY;
    }
    find_gauges(handover, ledger);
    return ERR_OK;
}

void handover_release(struct handover *handover)
{
    free(handover->gauges);
    free(handover->shares);
    free(handover->phase_energies[0]);
    free(handover->phase_energies[1]);
    free(handover->parts);
    *handover = (struct handover){0};
}

/* ---- how well a share is known ---- */

struct evidence {
    double relative, statistical; /* standard uncertainties, as parts of the joules */
    unsigned long updates;
    enum method method;
};

static long shape_of(const struct handover *handover, size_t d, size_t source, size_t channel)
{
    const struct share_device *device = &handover->devices[d];
    if (device->lives && device->source == source && device->channel == channel)
        return device->shape;
    return figure_shape(sampler_sensor(handover->sampler, source), channel);
}

static void look_at(const struct handover *handover, size_t d, unsigned key, nanos from, nanos to,
                    struct evidence *out)
{
    size_t source, channel;
    struct window window;
    share_key_parts(key, &source, &channel);
    const struct sensor_channel *row =
        &sampler_sensor(handover->sampler, source)->channels[channel];
    long shape = shape_of(handover, d, source, channel);
    if (figure_method(row) > out->method)
        out->method = figure_method(row);
    if (figure_window(handover->sampler, source, channel, shape, from, to, &window) != ERR_OK)
        return;
    out->updates += window.updates;
    if (window.sum <= 0)
        return;
    double statistical = sqrt(window.variance) / window.sum;
    out->statistical = fmax(out->statistical, statistical);
    out->relative = fmax(out->relative, hypot(statistical, row->relative_accuracy));
}

/* Of the device's figure over a window.  Where two channels measured it one after the other, the
 * worse one tells. */
static struct evidence find_evidence(const struct handover *handover, size_t d,
                                     const struct portion *portion, nanos from, nanos to)
{
    struct evidence evidence = {.relative = UNKNOWN, .statistical = UNKNOWN};
    look_at(handover, d, portion->key, from, to, &evidence);
    if (portion->earlier_key)
        look_at(handover, d, portion->earlier_key, from, to, &evidence);
    return evidence;
}

/* ---- one device ---- */

static void name_source(const struct handover *handover, const struct portion *portion,
                        struct energy *energy)
{
    const unsigned keys[] = {portion->earlier_key, portion->key};
    energy->source[0] = '\0';
    for (size_t i = 0; i < 2; i++) {
        size_t source, channel, used = strlen(energy->source);
        if (!keys[i])
            continue;
        share_key_parts(keys[i], &source, &channel);
        const struct sensor *sensor = sampler_sensor(handover->sampler, source);
        str_format(energy->source + used, sizeof energy->source - used, "%s%s %s",
                   used ? " + " : "", sensor->id, sensor->channels[channel].name);
    }
}

/* The energy of a share over [from, to] with the evidence of the device's figure over it. */
static void set_energy(const struct handover *handover, size_t d, const struct portion *portion,
                       nanos from, nanos to, double active, double idle, double covered_s,
                       struct energy *out)
{
    struct evidence evidence = find_evidence(handover, d, portion, from, to);
    bool split = is_known(handover->devices[d].idle_w);
    double joules = active + idle;
    *out = (struct energy){
        .joules = joules,
        .plus_minus = evidence.relative * joules,
        .statistical = evidence.statistical * joules,
        .coverage = fmin(1, covered_s / seconds(to - from)),
        .idle_joules = split ? idle : UNKNOWN,
        .active_joules = split ? active : UNKNOWN,
        .method = evidence.method,
        .updates = evidence.updates,
        .low_confidence = evidence.updates < FIGURE_CONFIDENT_UPDATES,
    };
    name_source(handover, portion, out);
    figure_note_coverage(out);
}

/* Why a device gave a request nothing. */
static struct energy unknown_share(const struct handover *handover, size_t d,
                                   const struct request_trace *trace)
{
    const struct ledger_device *row = &handover->ledger->devices[d];
    if (!row->has_energy)
        return row->energy;
    if (trace->to <= trace->from)
        return energy_unknown("the request took no time");
    struct figure figure;
    figure_take(handover->sampler, row->source, row->channel, trace->from, trace->to, &figure);
    if (figure_lives(&figure))
        return energy_unknown("it became known only after the request's time was settled");
    return figure.energy;
}

static void set_watts(const struct handover *handover, size_t d, const struct portion *portion,
                      const struct request_trace *trace, double covered_s,
                      struct gauge_stats *watts)
{
    size_t source, channel;
    struct value_stats stats;
    share_key_parts(portion->key, &source, &channel);
    long shape = shape_of(handover, d, source, channel);
    double mean = portion->window_joules / covered_s;
    *watts = (struct gauge_stats){mean, mean, mean, mean};
    if (sampler_values(handover->sampler, source, shape < 0 ? channel : (size_t)shape, trace->from,
                       trace->to, &stats) != ERR_OK)
        return;
    /* In a window shorter than a sample the mean is the better peak. */
    *watts = (struct gauge_stats){mean, fmax(stats.max, mean), stats.median, fmin(stats.min, mean)};
}

static const struct gauge_stats NO_STATS = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};

static void fill_device(const struct handover *handover, const struct sharer *sharer, size_t d,
                        struct device_share *out)
{
    const struct portion *portion = &sharer->portions[d];
    const struct request_trace *trace = &sharer->trace;
    double covered_s = portion->covered_s[PHASE_PREFILL] + portion->covered_s[PHASE_DECODE];
    nanos edges[] = {trace->from, request_phase_change(trace), trace->to};
    *out = (struct device_share){
        .device = &handover->ledger->devices[d],
        .counted = covered_s > 0 ? portion->counted : handover->ledger->devices[d].counted,
        .prefill_joules = UNKNOWN,
        .decode_joules = UNKNOWN,
        .window_joules = UNKNOWN,
        .watts = NO_STATS,
    };
    for (size_t q = 0; q < QTY_COUNT; q++)
        out->gauges[q] = NO_STATS;
    if (covered_s <= 0) {
        out->energy = unknown_share(handover, d, trace);
        return;
    }
    for (size_t phase = 0; phase < PHASE_COUNT; phase++)
        if (portion->covered_s[phase] > 0)
            set_energy(handover, d, portion, edges[phase], edges[phase + 1], portion->active[phase],
                       portion->idle[phase], portion->covered_s[phase],
                       &handover->phase_energies[phase][d]);
    out->prefill_joules = portion->active[PHASE_PREFILL] + portion->idle[PHASE_PREFILL];
    out->decode_joules = portion->active[PHASE_DECODE] + portion->idle[PHASE_DECODE];
    out->window_joules = portion->window_joules;
    set_energy(handover, d, portion, trace->from, trace->to,
               portion->active[PHASE_PREFILL] + portion->active[PHASE_DECODE],
               portion->idle[PHASE_PREFILL] + portion->idle[PHASE_DECODE], covered_s, &out->energy);
    set_watts(handover, d, portion, trace, covered_s, &out->watts);
}

static void fill_gauges(const struct handover *handover, const struct request_trace *trace)
{
    for (size_t i = 0; i < handover->gauge_count; i++) {
        const struct gauge_channel *gauge = &handover->gauges[i];
        struct gauge_stats *out = &handover->shares[gauge->device].gauges[gauge->quantity];
        struct value_stats stats;
        if (is_known(out->avg)) /* an earlier channel tells */
            continue;
        if (sampler_values(handover->sampler, gauge->source, gauge->channel, trace->from, trace->to,
                           &stats) == ERR_OK)
            *out = (struct gauge_stats){stats.avg, stats.max, stats.median, stats.min};
    }
}

/* ---- the total ---- */

enum { WHOLE = PHASE_COUNT }; /* beside the phases */

static double covered_in(const struct portion *portion, size_t part)
{
    return part == WHOLE ? portion->covered_s[PHASE_PREFILL] + portion->covered_s[PHASE_DECODE]
                         : portion->covered_s[part];
}

static size_t collect_parts(const struct handover *handover, const struct sharer *sharer,
                            size_t part)
{
    size_t count = 0;
    for (size_t d = 0; d < handover->device_count; d++) {
        const struct portion *portion = &sharer->portions[d];
        size_t source, channel;
        if (!portion->counted || covered_in(portion, part) <= 0)
            continue;
        share_key_parts(portion->key, &source, &channel);
        const struct sensor *sensor = sampler_sensor(handover->sampler, source);
        handover->parts[count++] = (struct total_part){
            part == WHOLE ? &handover->shares[d].energy : &handover->phase_energies[part][d],
            sensor->driver, sensor->channels[channel].scope};
    }
    return count;
}

/* A device may have been counted for a part of the time only (another took its place): the joules
 * are those that were counted, and the ± goes with them. */
static void scale_to_counted(const struct sharer *sharer, size_t part, struct energy *total)
{
    double active = 0, idle = 0;
    for (size_t phase = 0; phase < PHASE_COUNT; phase++)
        if (part == WHOLE || part == phase) {
            active += sharer->counted_active[phase];
            idle += sharer->counted_idle[phase];
        }
    double ratio = total->joules > 0 ? (active + idle) / total->joules : 1;
    total->joules = active + idle;
    total->plus_minus *= ratio;
    total->statistical *= ratio;
    if (is_known(total->idle_joules)) {
        total->idle_joules = idle;
        total->active_joules = active;
    }
}

static const char *why_no_total(const struct handover *handover)
{
    for (size_t d = 0; d < handover->device_count; d++)
        if (handover->ledger->devices[d].has_energy && handover->shares[d].energy.note[0])
            return handover->shares[d].energy.note;
    return "no sensor measures energy here";
}

static struct energy add_up(const struct handover *handover, const struct sharer *sharer,
                            size_t part)
{
    struct energy total = energy_unknown("");
    size_t count = collect_parts(handover, sharer, part);
    if (count == 0) {
        double length = part == PHASE_DECODE
                            ? request_decode_s(&sharer->trace, sharer->trace.from, sharer->trace.to)
                            : 1;
        str_copy(total.note, sizeof total.note,
                 length > 0 ? why_no_total(handover) : "it had no decode");
        return total;
    }
    total_add_up(handover->parts, count, &total);
    scale_to_counted(sharer, part, &total);
    str_copy(total.note, sizeof total.note, handover->ledger->total.note);
    figure_note_coverage(&total);
    return total;
}

/* ---- all of it ---- */

/* Leaves out the devices that have neither energy nor gauges. */
static size_t pack_shares(const struct handover *handover)
{
    size_t kept = 0;
    for (size_t d = 0; d < handover->device_count; d++) {
        const struct device_share *share = &handover->shares[d];
        bool shows = share->device->has_energy;
        for (size_t q = 0; q < QTY_COUNT; q++)
            shows = shows || share->device->gauges[q].present;
        if (shows && kept != d)
            handover->shares[kept] = *share;
        kept += shows;
    }
    return kept;
}

void handover_give(struct handover *handover, const struct ledger *ledger,
                   const struct sharer *sharer, sharing_take *take, void *context)
{
    handover->ledger = ledger;
    for (size_t d = 0; d < handover->device_count; d++)
        fill_device(handover, sharer, d, &handover->shares[d]);
    fill_gauges(handover, &sharer->trace);
    struct share share = {
        .trace = &sharer->trace,
        .total = add_up(handover, sharer, WHOLE),
        .prefill = add_up(handover, sharer, PHASE_PREFILL),
        .decode = add_up(handover, sharer, PHASE_DECODE),
        .prefill_joules = UNKNOWN,
        .decode_joules = UNKNOWN,
        .alone_s = sharer->alone_s,
        .company = sharer->shared_s > 0 ? sharer->company_s / sharer->shared_s : 1,
        .devices = handover->shares,
    };
    if (is_known(share.total.joules)) {
        share.prefill_joules =
            sharer->counted_active[PHASE_PREFILL] + sharer->counted_idle[PHASE_PREFILL];
        share.decode_joules =
            sharer->counted_active[PHASE_DECODE] + sharer->counted_idle[PHASE_DECODE];
    }
    share.count = pack_shares(handover);
    take(context, &share);
}
