#include "estimate/outcome.h"

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
static void add_estimate(struct outcome_sums *sums, const struct estimate *estimate, double times)
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

static void finish_sums(struct outcome_sums *sums)
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

static void add_bounds(struct outcome_sums *sums, const struct estimate *estimate)
{
    for (size_t b = 0; b < BOUND_COUNT; b++)
        sums->bound_counts[b] += (double)estimate->bound_counts[b];
}

void outcome_sum(const struct outcome *outcome, size_t first, size_t end, struct outcome_sums *out)
{
    *out = (struct outcome_sums){0};
    for (size_t i = first; i < end; i++) {
        add_estimate(out, &outcome->passes[i], outcome->work->passes[i].times);
        if (counts_bounds(outcome->work, i, end))
            add_bounds(out, &outcome->passes[i]);
    }
    finish_sums(out);
}

/* ---- all passes ---- */

static enum err estimate_pass(const struct workload_pass *pass, const struct outcome *outcome,
                              bool keep, struct estimate *out, struct error *why)
{
    struct estimate_setting setting = {
        .precision = outcome->choice.precision,
        .devices = outcome->choice.devices,
        .keeps_stored = outcome->choice.keeps_stored,
        .batch = pass->graph.batch,
        .tokens = pass->graph.tokens,
        .sums_only = !keep,
    };
    return estimate_make(&pass->partition, outcome->hardware, &setting, out, why);
}

static void take_pass(struct outcome *outcome, const struct estimate *estimate, size_t pass)
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
        shared += work->passes[i].times * work->passes[i].partition.shared_macs;
        all += work->passes[i].times * work->passes[i].partition.total.macs;
    }
    return devices > 1 && all > 0 ? shared / all : UNKNOWN;
}

enum err outcome_make(const struct workload *work, const struct hardware *hardware,
                      const struct outcome_choice *choice, bool keep, struct outcome *out,
                      struct error *why)
{
    *out = (struct outcome){.work = work, .hardware = hardware, .choice = *choice};
    out->divided = divided_share(work, choice->devices);
    out->limit_w = hardware->limit_w.value * choice->devices;
    if (keep) {
        out->passes = calloc(work->count, sizeof *out->passes);
        if (!out->passes)
            return err_set(why, ERR_NO_MEMORY, "out of memory");
    }
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < work->count; i++) {
        struct estimate one = {0}, *estimate = keep ? &out->passes[i] : &one;
        err = estimate_pass(&work->passes[i], out, keep, estimate, why);
        if (err)
            break;
        take_pass(out, estimate, i);
        if (!keep)
            estimate_release(&one);
    }
    if (!keep)
        out->memory.timeline = NULL;
    if (!err && !(out->all.latency_s > 0))
        err = err_set(why, ERR_NO_DATA, "%.100s computes nothing: there is nothing to estimate",
                      work->question.model->name);
    if (err)
        outcome_release(out);
    else
        finish_sums(&out->all);
    return err;
}

void outcome_release(struct outcome *outcome)
{
    for (size_t i = 0; outcome->passes && i < outcome->work->count; i++)
        estimate_release(&outcome->passes[i]);
    free(outcome->passes);
    *outcome = (struct outcome){0};
}

bool outcome_is_native(const struct hardware *hardware, enum precision precision)
{
    return is_known(hardware->matrix_flops[precision].value) ||
           is_known(hardware->vector_flops[precision].value);
}

bool outcome_is_choice(const struct hardware *hardware, enum precision precision)
{
    return outcome_is_native(hardware, precision) ||
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

enum precision outcome_usual_precision(const struct hardware *hardware)
{
    static const enum precision BY_USE[] = {PRECISION_FP16, PRECISION_BF16, PRECISION_FP32,
                                            PRECISION_FP8, PRECISION_INT8};
    if (outcome_is_native(hardware, PRECISION_FP16) &&
        outcome_is_native(hardware, PRECISION_BF16) &&
        is_clearly_cheaper(hardware_product_way(hardware, PRECISION_BF16),
                           hardware_product_way(hardware, PRECISION_FP16)))
        return PRECISION_BF16;
    for (size_t i = 0; i < sizeof BY_USE / sizeof *BY_USE; i++)
        if (outcome_is_native(hardware, BY_USE[i]))
            return BY_USE[i];
    return PRECISION_FP32;
}

bool outcome_fits(const struct outcome *outcome)
{
    const struct estimate_memory *memory = &outcome->memory;
    return memory->fits && (is_known(memory->capacity) || outcome->hardware->class == HARDWARE_CPU);
}

const struct partition *outcome_timeline_partition(const struct outcome *outcome)
{
    for (size_t i = 0; outcome->passes && i < outcome->work->count; i++)
        if (outcome->passes[i].memory.timeline == outcome->memory.timeline)
            return &outcome->work->passes[i].partition;
    return NULL;
}

double outcome_joules_each(const struct outcome *outcome)
{
    return outcome->all.joules.total / outcome->work->units;
}

double outcome_units_per_s(const struct outcome *outcome)
{
    return outcome->work->units / outcome->all.latency_s;
}

/* ---- subgraphs ---- */

static void add_row(struct outcome_row *sum, const struct estimate_row *row, double times)
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

enum err outcome_rows(const struct outcome *outcome, struct outcome_row **rows, size_t *count,
                      struct error *why)
{
    const struct workload *work = outcome->work;
    size_t room = 0, first = 0;
    const struct workload_pass *before = NULL;
    for (size_t i = 0; i < work->count; before = &work->passes[i++])
        room += continues(before, &work->passes[i]) ? 0 : work->passes[i].partition.count;
    struct outcome_row *all = calloc(room ? room : 1, sizeof *all);
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
