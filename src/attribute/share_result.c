#include "attribute/share_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/channel_energy.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "sampler/sampler.h"

/* ---- keys ---- */

unsigned share_key(size_t source, size_t channel)
{
    return (unsigned)(source * SENSOR_CHANNELS_MAX + channel + 1);
}

static void key_parts(unsigned key, size_t *source, size_t *channel)
{
    *source = (key - 1) / SENSOR_CHANNELS_MAX;
    *channel = (key - 1) % SENSOR_CHANNELS_MAX;
}

double share_idle_part(double joules, double baseline)
{
    return joules - baseline > SHARE_ROUNDING * joules ? baseline : joules;
}

/* ---- setup ---- */

static size_t device_named(const struct ledger *ledger, const char *id)
{
    size_t i = 0;
    while (i < ledger->count && !str_equal(ledger->devices[i].id, id))
        i++;
    return i;
}

static void find_gauges(struct share_result *result, const struct ledger *ledger)
{
    for (size_t s = 0; s < sampler_count(result->sampler); s++) {
        const struct sensor *sensor = sampler_sensor(result->sampler, s);
        for (size_t c = 0; c < sensor->channel_count; c++) {
            const struct sensor_channel *row = &sensor->channels[c];
            size_t device = device_named(ledger, row->device);
            if (!quantity_gives_joules(row->quantity) && device < ledger->count)
                result->gauges[result->gauge_count++] =
                    (struct gauge_channel){device, s, c, row->quantity};
        }
    }
}

void share_result_init(struct share_result *result, struct sampler *sampler,
                       const struct ledger *ledger, const struct baseline *idle)
{
    size_t count = ledger->count + 1;
    *result = (struct share_result){
        .sampler = sampler,
        .device_count = ledger->count,
        .has_idle = xcalloc(count, sizeof *result->has_idle),
        .gauges = xcalloc(sampler_channel_count(sampler) + 1, sizeof *result->gauges),
        .shares = xcalloc(count, sizeof *result->shares),
        .phase_energies = {xcalloc(count, sizeof *result->phase_energies[0]),
                           xcalloc(count, sizeof *result->phase_energies[0])},
        .terms = xcalloc(count, sizeof *result->terms),
    };
    find_gauges(result, ledger);
    for (size_t i = 0; idle && i < idle->count; i++)
        result->has_idle[device_named(ledger, idle->rows[i].device)] = true;
}

void share_result_release(struct share_result *result)
{
    free(result->has_idle);
    free(result->gauges);
    free(result->shares);
    free(result->phase_energies[0]);
    free(result->phase_energies[1]);
    free(result->terms);
    *result = (struct share_result){0};
}

/* ---- uncertainty of a share ---- */

struct evidence {
    double calibration; /* standard uncertainty, relative to the joules */
    unsigned long updates;
    enum method method;
};

static void add_evidence(const struct share_result *result, unsigned key, nanos from, nanos to,
                         struct evidence *out)
{
    size_t source, channel;
    struct window window;
    key_parts(key, &source, &channel);
    const struct sensor *sensor = sampler_sensor(result->sampler, source);
    const struct sensor_channel *row = &sensor->channels[channel];
    long shape = sensor_shape_channel(sensor, channel);
    if (channel_energy_method(row) > out->method)
        out->method = channel_energy_method(row);
    if (channel_energy_window(result->sampler, source, channel, shape, from, to, &window) != ERR_OK)
        return;
    out->updates += window.updates;
    out->calibration = fmax(out->calibration, row->relative_accuracy);
}

/* The evidence of the device over a window.  If two channels measured it one after the other, the worse one counts. */
static struct evidence find_evidence(const struct share_result *result,
                                     const struct portion *portion, nanos from, nanos to)
{
    struct evidence evidence = {.calibration = UNKNOWN};
    add_evidence(result, portion->key, from, to, &evidence);
    if (portion->earlier_key)
        add_evidence(result, portion->earlier_key, from, to, &evidence);
    return evidence;
}

/* ---- one device ---- */

static void name_source(const struct share_result *result, const struct portion *portion,
                        struct energy *energy)
{
    const unsigned keys[] = {portion->earlier_key, portion->key};
    energy->source[0] = '\0';
    for (size_t i = 0; i < 2; i++) {
        size_t source, channel, used = strlen(energy->source);
        if (!keys[i])
            continue;
        key_parts(keys[i], &source, &channel);
        const struct sensor *sensor = sampler_sensor(result->sampler, source);
        str_format(energy->source + used, sizeof energy->source - used, "%s%s %s",
                   used ? " + " : "", sensor->id, sensor->channels[channel].name);
    }
}

/* Of a phase, or of both. */
static double sum_part(const double of[PHASE_COUNT], size_t part)
{
    return part == SPLIT_WHOLE ? of[PHASE_PREFILL] + of[PHASE_DECODE] : of[part];
}

/* What the decode weight may have moved between the phases of this and other requests.  The whole request is by the rule
 * as it is: its ± is that of the measurement. */
static double weight_error(const struct portion *portion, size_t part)
{
    if (part == SPLIT_WHOLE)
        return 0;
    return fabs(portion->by_weight[part][0] - portion->by_weight[part][1]) / 2;
}

/* The energy of a share over [from, to] with the evidence of the device over that time. */
static void set_energy(const struct share_result *result, size_t d, const struct portion *portion,
                       size_t part, nanos from, nanos to, struct energy *out)
{
    struct evidence evidence = find_evidence(result, portion, from, to);
    double joules = sum_part(portion->joules, part), baseline = sum_part(portion->baseline, part);
    double statistical = sqrt(split_error_variance(&portion->error, part));
    bool split = result->has_idle[d];
    double idle = share_idle_part(joules, baseline);
    *out = (struct energy){
        .joules = joules,
        .plus_minus =
            hypot(hypot(statistical, evidence.calibration * joules), weight_error(portion, part)),
        .statistical = is_known(evidence.calibration) ? statistical : UNKNOWN,
        .coverage = fmin(1, sum_part(portion->covered_s, part) / seconds(to - from)),
        .idle_joules = split ? idle : UNKNOWN,
        .active_joules = split ? joules - idle : UNKNOWN,
        .method = evidence.method,
        .updates = evidence.updates,
        .low_confidence = evidence.updates < ENERGY_CONFIDENT_UPDATES,
    };
    name_source(result, portion, out);
    if (out->coverage < 1) {
        struct channel_state state;
        size_t source, channel;
        key_parts(portion->key, &source, &channel);
        sampler_channel(result->sampler, source, channel, &state);
        energy_note_coverage(out, &state);
    }
}

/* Why a device has no energy for a request. */
static struct energy unknown_share(const struct share_result *result, size_t d,
                                   const struct request_trace *trace)
{
    const struct ledger_device *row = &result->ledger->devices[d];
    if (!row->has_energy)
        return row->energy;
    if (trace->to <= trace->from)
        return energy_unknown("the request took no time");
    struct channel_energy channel;
    channel_energy_take(result->sampler, row->source, row->channel, trace->from, trace->to,
                        &channel);
    if (channel_energy_is_known(&channel))
        return energy_unknown("known only after the request's time was settled");
    return channel.energy;
}

static void set_watts(const struct share_result *result, const struct portion *portion,
                      const struct request_trace *trace, double covered_s,
                      struct value_stats *watts)
{
    size_t source, channel;
    struct value_stats stats;
    key_parts(portion->key, &source, &channel);
    long shape = sensor_shape_channel(sampler_sensor(result->sampler, source), channel);
    double mean = portion->window_joules / covered_s;
    *watts = (struct value_stats){mean, mean, mean, mean};
    if (sampler_values(result->sampler, source, shape < 0 ? channel : (size_t)shape, trace->from,
                       trace->to, &stats) != ERR_OK)
        return;
    /* In a window shorter than a sample the mean is the better peak. */
    *watts = (struct value_stats){mean, fmax(stats.max, mean), stats.median, fmin(stats.min, mean)};
}

static const struct value_stats NO_STATS = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};

/* Then the energy of the prefill phase, with its evidence, is that of the request. */
static bool is_one_phase(const struct request_trace *trace)
{
    return request_phase_change(trace) == trace->to;
}

static void fill_device(const struct share_result *result, const struct sharer *sharer, size_t d,
                        struct device_share *out)
{
    const struct portion *portion = &sharer->portions[d];
    const struct request_trace *trace = &sharer->trace;
    double covered_s = portion->covered_s[PHASE_PREFILL] + portion->covered_s[PHASE_DECODE];
    nanos edges[] = {trace->from, request_phase_change(trace), trace->to};
    *out = (struct device_share){
        .device = &result->ledger->devices[d],
        .counted = covered_s > 0 ? portion->counted : result->ledger->devices[d].counted,
        .prefill_joules = UNKNOWN,
        .decode_joules = UNKNOWN,
        .window_joules = UNKNOWN,
        .group_joules = UNKNOWN,
        .watts = NO_STATS,
    };
    for (size_t q = 0; q < QTY_COUNT; q++)
        out->gauges[q] = NO_STATS;
    if (covered_s <= 0) {
        out->energy = unknown_share(result, d, trace);
        return;
    }
    for (size_t phase = 0; phase < PHASE_COUNT; phase++)
        if (portion->covered_s[phase] > 0)
            set_energy(result, d, portion, phase, edges[phase], edges[phase + 1],
                       &result->phase_energies[phase][d]);
    out->prefill_joules = portion->joules[PHASE_PREFILL];
    out->decode_joules = portion->joules[PHASE_DECODE];
    out->window_joules = portion->window_joules;
    out->group_joules = portion->group_joules;
    set_energy(result, d, portion, SPLIT_WHOLE, trace->from, trace->to, &out->energy);
    set_watts(result, portion, trace, covered_s, &out->watts);
}

static void fill_gauges(const struct share_result *result, const struct request_trace *trace)
{
    for (size_t i = 0; i < result->gauge_count; i++) {
        const struct gauge_channel *gauge = &result->gauges[i];
        struct value_stats *out = &result->shares[gauge->device].gauges[gauge->quantity];
        struct value_stats stats;
        if (is_known(out->avg)) /* set by an earlier channel */
            continue;
        if (sampler_values(result->sampler, gauge->source, gauge->channel, trace->from, trace->to,
                           &stats) == ERR_OK)
            *out = (struct value_stats){stats.avg, stats.max, stats.median, stats.min};
    }
}

/* ---- the total ---- */

enum { WHOLE = PHASE_COUNT }; /* in addition to the phases */

static double covered_in(const struct portion *portion, size_t part)
{
    return part == WHOLE ? portion->covered_s[PHASE_PREFILL] + portion->covered_s[PHASE_DECODE]
                         : portion->covered_s[part];
}

static size_t collect_terms(const struct share_result *result, const struct sharer *sharer,
                            size_t part)
{
    size_t count = 0;
    for (size_t d = 0; d < result->device_count; d++) {
        const struct portion *portion = &sharer->portions[d];
        size_t source, channel;
        if (!portion->counted || covered_in(portion, part) <= 0)
            continue;
        key_parts(portion->key, &source, &channel);
        const struct sensor *sensor = sampler_sensor(result->sampler, source);
        result->terms[count++] = (struct energy_term){
            part == WHOLE ? &result->shares[d].energy : &result->phase_energies[part][d],
            sensor->driver, sensor->channels[channel].scope};
    }
    return count;
}

/* A device may have been counted for part of the time only (another replaced it): the joules are those that were
 * counted, and the ± is scaled accordingly. */
static void scale_to_counted(const struct sharer *sharer, size_t part, struct energy *total)
{
    double joules = 0, baseline = 0;
    for (size_t phase = 0; phase < PHASE_COUNT; phase++)
        if (part == WHOLE || part == phase) {
            joules += sharer->counted_joules[phase];
            baseline += sharer->counted_baseline[phase];
        }
    double ratio = total->joules > 0 ? joules / total->joules : 1;
    double idle = share_idle_part(joules, baseline);
    total->joules = joules;
    total->plus_minus *= ratio;
    total->statistical *= ratio;
    if (is_known(total->idle_joules)) {
        total->idle_joules = idle;
        total->active_joules = joules - idle;
    }
}

static const char *why_no_total(const struct share_result *result)
{
    for (size_t d = 0; d < result->device_count; d++)
        if (result->ledger->devices[d].has_energy && result->shares[d].energy.note[0])
            return result->shares[d].energy.note;
    return "no sensor measures energy here";
}

static struct energy add_up(const struct share_result *result, const struct sharer *sharer,
                            size_t part)
{
    struct energy total = energy_unknown("");
    size_t count = collect_terms(result, sharer, part);
    if (count == 0) {
        bool occurred =
            part != PHASE_DECODE || request_phase_change(&sharer->trace) < sharer->trace.to;
        chars_copy(total.note, occurred ? why_no_total(result) : "the request had no decode phase");
        return total;
    }
    energy_sum(result->terms, count, &total);
    scale_to_counted(sharer, part, &total);
    chars_copy(total.note, result->ledger->total.note);
    energy_note_coverage(&total, NULL);
    for (size_t i = 0; i < count && total.coverage < 1; i++)
        if (result->terms[i].energy->coverage == total.coverage && result->terms[i].energy->note[0])
            chars_copy(total.note, result->terms[i].energy->note);
    return total;
}

/* ---- the share ---- */

/* Removes the devices that have neither energy nor gauges. */
static size_t pack_shares(const struct share_result *result)
{
    size_t kept = 0;
    for (size_t d = 0; d < result->device_count; d++) {
        const struct device_share *share = &result->shares[d];
        bool has_data = share->device->has_energy;
        for (size_t q = 0; q < QTY_COUNT; q++)
            has_data = has_data || share->device->gauges[q].present;
        if (has_data && kept != d)
            result->shares[kept] = *share;
        kept += has_data;
    }
    return kept;
}

void share_result_make(struct share_result *result, const struct ledger *ledger,
                       const struct sharer *sharer, sharing_take *take, void *context)
{
    result->ledger = ledger;
    for (size_t d = 0; d < result->device_count; d++)
        fill_device(result, sharer, d, &result->shares[d]);
    fill_gauges(result, &sharer->trace);
    struct share share = {
        .trace = &sharer->trace,
        .total = add_up(result, sharer, WHOLE),
        .decode = add_up(result, sharer, PHASE_DECODE),
        .prefill_joules = UNKNOWN,
        .decode_joules = UNKNOWN,
        .alone_s = sharer->alone_s,
        .concurrency = sharer->shared_s > 0 ? sharer->concurrent_s / sharer->shared_s : 1,
        .devices = result->shares,
        .is_provisional = result->is_provisional,
    };
    share.prefill =
        is_one_phase(&sharer->trace) ? share.total : add_up(result, sharer, PHASE_PREFILL);
    if (is_known(share.total.joules)) {
        share.prefill_joules = sharer->counted_joules[PHASE_PREFILL];
        share.decode_joules = sharer->counted_joules[PHASE_DECODE];
    }
    share.count = pack_shares(result);
    take(context, &share);
}
