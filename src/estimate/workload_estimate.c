#include "estimate/workload_estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

/* ---- sums ---- */

static void add_joules(struct estimate_joules *sum, const struct estimate_joules *more,
                       double times)
{
    sum->compute += times * more->compute;
    sum->memory += times * more->memory;
    sum->idle += times * more->idle;
    sum->link += times * more->link;
    sum->total += times * more->total;
}

static void add_traffic(struct estimate_traffic *sum, const struct estimate_traffic *more,
                        double times)
{
    sum->weights += times * more->weights;
    sum->activations += times * more->activations;
    sum->cache_read += times * more->cache_read;
    sum->cache_written += times * more->cache_written;
    sum->link += times * more->link;
}

/* The most of all; of one that is not known, neither is that. */
static double larger(double a, double b)
{
    return is_known(a) && is_known(b) ? fmax(a, b) : UNKNOWN;
}

/* Shares of time and of energy are summed with their weights here, and divided by finish_sums. */
static void add_estimate(struct estimate_totals *sums, const struct pass_estimate *estimate,
                         double times)
{
    double latency = times * estimate->latency_s, joules = times * estimate->joules.total;
    sums->macs += times * estimate->macs;
    sums->flops += times * estimate->flops;
    sums->bytes += times * estimate->bytes;
    sums->latency_s += latency;
    /* Passes err together: the figures of the device that they rest on are the same. */
    sums->latency_plus_minus += times * estimate->latency_plus_minus;
    sums->joules_plus_minus += times * estimate->joules_plus_minus;
    sums->power_plus_minus += latency * estimate->power_plus_minus;
    add_joules(&sums->joules, &estimate->joules, times);
    add_traffic(&sums->traffic, &estimate->traffic, times);
    sums->peak_w = larger(sums->peak_w, estimate->peak_w);
    sums->utilisation += joules * estimate->utilisation;
    sums->mfu += latency * estimate->mfu;
    sums->mbu += latency * estimate->mbu;
    sums->wasted_j += times * estimate->wasted_j;
}

static void finish_sums(struct estimate_totals *sums)
{
    sums->average_w = sums->joules.total / sums->latency_s;
    sums->power_plus_minus /= sums->latency_s;
    sums->mfu /= sums->latency_s;
    sums->mbu /= sums->latency_s;
    sums->utilisation /= sums->joules.total;
    sums->efficiency = (sums->joules.total - sums->joules.idle) / sums->joules.total;
}

/* Steps of decoding have the same subgraphs: those of the last one are counted. */
static bool counts_bounds(const struct workload *work, size_t pass, size_t end)
{
    return pass + 1 == end ||
           work->passes[pass].setting.phase != work->passes[pass + 1].setting.phase;
}

static void add_bounds(struct estimate_totals *sums, const struct pass_estimate *estimate)
{
    for (size_t b = 0; b < BOUND_COUNT; b++)
        sums->bound_counts[b] += (double)estimate->bound_counts[b];
}

void workload_estimate_total(const struct workload_estimate *outcome, size_t first, size_t end,
                             struct estimate_totals *out)
{
    *out = (struct estimate_totals){0};
    for (size_t i = first; i < end; i++) {
        add_estimate(out, &outcome->passes[i], outcome->work->passes[i].times);
        if (counts_bounds(outcome->work, i, end))
            add_bounds(out, &outcome->passes[i]);
    }
    finish_sums(out);
}

/* ---- all passes ---- */

static enum err estimate_pass(const struct workload_pass *pass,
                              const struct workload_estimate *outcome, bool keep,
                              struct pass_estimate *out, struct error *why)
{
    struct pass_options setting = {
        .precision = outcome->choice.precision,
        .devices = outcome->choice.devices,
        .keeps_stored = outcome->choice.keeps_stored,
        .batch = pass->graph.batch,
        .tokens = pass->graph.tokens,
        .sums_only = !keep,
    };
    return pass_estimate_make(&pass->partition, outcome->hardware, &setting, out, why);
}

static void take_pass(struct workload_estimate *outcome, const struct pass_estimate *estimate,
                      size_t pass)
{
    const struct workload *work = outcome->work;
    if (pass == 0 || estimate->memory.total_peak > outcome->memory.total_peak)
        outcome->memory = estimate->memory;
    if (pass == 0 || estimate->confidence > outcome->confidence) {
        outcome->confidence = estimate->confidence;
        str_copy(outcome->confidence_reason, sizeof outcome->confidence_reason,
                 estimate->confidence_reason);
    }
    outcome->used = estimate->used;
    outcome->params = estimate->params;
    add_estimate(&outcome->all, estimate, work->passes[pass].times);
    if (counts_bounds(work, pass, work->count))
        add_bounds(&outcome->all, estimate);
}

/* Of the MACs of all passes. */
static double divided_share(const struct workload *work, int devices)
{
    double shared = 0, all = 0;
    for (size_t i = 0; i < work->count; i++) {
        shared += work->passes[i].times * work->passes[i].partition.sharded_macs;
        all += work->passes[i].times * work->passes[i].partition.total.macs;
    }
    return devices > 1 && all > 0 ? shared / all : UNKNOWN;
}

enum err workload_estimate_make(const struct workload *work, const struct hardware *hardware,
                                const struct estimate_config *choice, bool keep,
                                struct workload_estimate *out, struct error *why)
{
    *out = (struct workload_estimate){.work = work, .hardware = hardware, .choice = *choice};
    out->divided = divided_share(work, choice->devices);
    out->limit_w = hardware->limit_w.value * choice->devices;
    if (keep) {
        out->passes = calloc(work->count, sizeof *out->passes);
        if (!out->passes)
            return err_set(why, ERR_NO_MEMORY, "out of memory");
    }
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < work->count; i++) {
        struct pass_estimate one = {0}, *estimate = keep ? &out->passes[i] : &one;
        err = estimate_pass(&work->passes[i], out, keep, estimate, why);
        if (err)
            break;
        take_pass(out, estimate, i);
        if (!keep)
            pass_estimate_release(&one);
    }
    if (!keep)
        out->memory.timeline = NULL;
    if (!err && !(out->all.latency_s > 0))
        err = err_set(why, ERR_NO_DATA, "%.100s computes nothing: there is nothing to estimate",
                      work->spec.model->name);
    if (err)
        workload_estimate_release(out);
    else
        finish_sums(&out->all);
    return err;
}

void workload_estimate_release(struct workload_estimate *outcome)
{
    for (size_t i = 0; outcome->passes && i < outcome->work->count; i++)
        pass_estimate_release(&outcome->passes[i]);
    free(outcome->passes);
    *outcome = (struct workload_estimate){0};
}

bool estimate_is_native(const struct hardware *hardware, enum precision precision)
{
    return is_known(hardware->matrix_flops[precision].value) ||
           is_known(hardware->vector_flops[precision].value);
}

bool estimate_offers(const struct hardware *hardware, enum precision precision)
{
    return estimate_is_native(hardware, precision) ||
           (precision == PRECISION_INT4 && hardware_product_way(hardware, precision).flops);
}

/* How much less a format must cost to be taken for it: less lies within the ± of measured joules. */
#define CLEARLY_LESS 0.9

static bool is_clearly_cheaper(struct hardware_way a, struct hardware_way b)
{
    if (is_known(a.joules->value) && is_known(b.joules->value))
        return a.joules->value < CLEARLY_LESS * b.joules->value;
    return b.flops->value < CLEARLY_LESS * a.flops->value;
}

enum precision estimate_default_precision(const struct hardware *hardware)
{
    static const enum precision BY_USE[] = {PRECISION_FP16, PRECISION_BF16, PRECISION_FP32,
                                            PRECISION_FP8, PRECISION_INT8};
    if (estimate_is_native(hardware, PRECISION_FP16) &&
        estimate_is_native(hardware, PRECISION_BF16) &&
        is_clearly_cheaper(hardware_product_way(hardware, PRECISION_BF16),
                           hardware_product_way(hardware, PRECISION_FP16)))
        return PRECISION_BF16;
    for (size_t i = 0; i < sizeof BY_USE / sizeof *BY_USE; i++)
        if (estimate_is_native(hardware, BY_USE[i]))
            return BY_USE[i];
    return PRECISION_FP32;
}

bool workload_estimate_fits(const struct workload_estimate *outcome)
{
    const struct estimate_memory *memory = &outcome->memory;
    return memory->fits && (is_known(memory->capacity) || outcome->hardware->class == HARDWARE_CPU);
}

const struct partition *
workload_estimate_timeline_partition(const struct workload_estimate *outcome)
{
    for (size_t i = 0; outcome->passes && i < outcome->work->count; i++)
        if (outcome->passes[i].memory.timeline == outcome->memory.timeline)
            return &outcome->work->passes[i].partition;
    return NULL;
}

double workload_estimate_joules_per_unit(const struct workload_estimate *outcome)
{
    return outcome->all.joules.total / outcome->work->units;
}

double workload_estimate_units_per_s(const struct workload_estimate *outcome)
{
    return outcome->work->units / outcome->all.latency_s;
}

/* ---- subgraphs ---- */

static void add_row(struct subgraph_total *sum, const struct subgraph_estimate *row, double times)
{
    sum->flops += times * row->flops;
    sum->bytes += times * row->bytes;
    sum->latency_s += times * row->latency_s;
    sum->utilisation += times * row->latency_s * row->utilisation;
    add_joules(&sum->joules, &row->joules, times);
    sum->bound = row->bound; /* of the last one: that with the longest cache */
}

/* Are these steps of the same graph, so that their subgraphs are the same? */
static bool continues(const struct workload_pass *before, const struct workload_pass *pass)
{
    return before && pass->setting.phase == before->setting.phase &&
           pass->partition.count == before->partition.count;
}

enum err workload_estimate_subgraphs(const struct workload_estimate *outcome,
                                     struct subgraph_total **rows, size_t *count, struct error *why)
{
    const struct workload *work = outcome->work;
    size_t room = 0, first = 0;
    const struct workload_pass *before = NULL;
    for (size_t i = 0; i < work->count; before = &work->passes[i++])
        room += continues(before, &work->passes[i]) ? 0 : work->passes[i].partition.count;
    struct subgraph_total *all = calloc(room ? room : 1, sizeof *all);
    if (!all)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    before = NULL;
    for (size_t i = 0; i < work->count; before = &work->passes[i++]) {
        const struct workload_pass *pass = &work->passes[i];
        if (before && !continues(before, pass))
            first += before->partition.count;
        for (size_t s = 0; s < pass->partition.count; s++) {
            all[first + s].subgraph = &pass->partition.subgraphs[s];
            all[first + s].phase = pass->setting.phase;
            add_row(&all[first + s], &outcome->passes[i].rows[s], pass->times);
        }
    }
    for (size_t i = 0; i < room; i++)
        all[i].utilisation = all[i].latency_s > 0 ? all[i].utilisation / all[i].latency_s : UNKNOWN;
    *rows = all;
    *count = room;
    return ERR_OK;
}
