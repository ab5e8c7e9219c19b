/* Sums the estimates of passes, each times its count: extensive figures directly, ratios weighted by time or energy.
 * Also the precisions that a device supports, which determine how a model is run on it. */
#include "estimate/workload_estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"

/* ---- totals ---- */

/* UNKNOWN if one of the two is. */
static double larger(double a, double b)
{
    return is_known(a) && is_known(b) ? fmax(a, b) : UNKNOWN;
}

/* Ratios are summed with their weights here, and divided by finish_totals. */
static void add_to_totals(struct estimate_totals *sums, const struct estimate_totals *pass,
                          double times)
{
    double latency = times * pass->latency_s, joules = times * pass->joules.total;
    estimate_totals_add(sums, pass, times);
    /* Errors of passes are fully correlated: they come from the same figures of the device. */
    sums->latency_plus_minus += times * pass->latency_plus_minus;
    sums->joules_plus_minus += times * pass->joules_plus_minus;
    sums->host_plus_minus += times * pass->host_plus_minus;
    sums->host_joules_plus_minus += times * pass->host_joules_plus_minus;
    sums->power_plus_minus += latency * pass->power_plus_minus;
    sums->peak_w = larger(sums->peak_w, pass->peak_w);
    sums->utilization += joules * pass->utilization;
    sums->mfu += latency * pass->mfu;
    sums->mbu += latency * pass->mbu;
}

static void finish_totals(struct estimate_totals *sums)
{
    sums->average_w = sums->joules.total / sums->latency_s;
    sums->power_plus_minus /= sums->latency_s;
    sums->mfu /= sums->latency_s;
    sums->mbu /= sums->latency_s;
    sums->utilization /= sums->joules.total;
    sums->efficiency = (sums->joules.total - sums->joules.idle) / sums->joules.total;
}

/* Decode steps have the same subgraphs: only those of the last step are counted. */
static bool counts_bounds(const struct estimate_workload *work, size_t pass, size_t end)
{
    return pass + 1 == end ||
           work->passes[pass].setting.phase != work->passes[pass + 1].setting.phase;
}

static void add_bounds(struct estimate_totals *sums, const struct estimate_totals *pass)
{
    for (size_t b = 0; b < BOUND_COUNT; b++)
        sums->bound_counts[b] += pass->bound_counts[b];
}

/* Sums the passes first..end-1. */
static void sum_passes(const struct workload_estimate *estimate, size_t first, size_t end,
                       struct estimate_totals *out)
{
    for (size_t i = first; i < end; i++) {
        add_to_totals(out, &estimate->passes[i].total, estimate->work->passes[i].times);
        if (counts_bounds(estimate->work, i, end))
            add_bounds(out, &estimate->passes[i].total);
    }
    if (end > first)
        finish_totals(out);
}

/* ---- measured models ---- */

/* By runtime assumption, from the sets of measurements in docs/measurements.md, "Measured models".  For the set with
 * the largest deviation, at least 68 % of the rows lie below estimate + above and 90 % below estimate + 2 above. */
static const struct estimate_shipped SHIPPED[] = {
    [PARTITION_FUSED] = {.above = 2.6, .min = 1.2, .max = 1 / (1 - 0.66)},
    [PARTITION_PLAIN] = {.above = 1.8, .min = 0.9, .max = 1 / (1 - 0.52)},
};
/* Encoders of transformers in a CUDA graph: the kernels are those of a pass with a mask.  Without one, their attention
 * was captured with other kernels, and models took 1.7 to 2.8 times as long as the same layers written out. */
static const struct estimate_shipped UNMASKED = {.above = 0.9, .min = UNKNOWN, .max = UNKNOWN};

static bool may_be_unmasked(const struct estimate_workload *work)
{
    const struct workload_spec *spec = &work->spec;
    const struct partition *partition = &work->passes[0].partition;
    bool is_of_transformers =
        spec->setting.tokens > 0 || !str_equal(spec->model->reader->name, "zoo");
    return spec->runtime == RUNTIME_PYTORCH_GRAPH && partition->heads > 0 &&
           !partition->is_causal && is_of_transformers;
}

/* For decoders the ± needs no correction: 72 and 94 % of 71 published figures lie within one and two of it. */
static struct estimate_shipped shipped_of(const struct estimate_workload *work)
{
    if (!work->spec.model->has_phases && may_be_unmasked(work))
        return UNMASKED;
    if (work->spec.model->has_phases || work->spec.runtime != RUNTIME_IDEAL)
        return (struct estimate_shipped){.min = UNKNOWN, .max = UNKNOWN};
    return SHIPPED[work->spec.fusion];
}

struct estimate_interval workload_estimate_interval(const struct workload_estimate *estimate,
                                                    double value, double plus_minus)
{
    const struct estimate_shipped *shipped = &estimate->shipped;
    double above = hypot(plus_minus, shipped->above * value);
    return (struct estimate_interval){.low = plus_minus > value ? 0 : value - plus_minus,
                                      .high = value + above,
                                      .plus_minus = above};
}

/* ---- the bound ---- */

/* ONNX Runtime converts precisions without CPU kernels when it loads a model: both take the same time. */
static enum precision converted_precision(const struct hardware *hardware, enum precision precision)
{
    return hardware->class == HARDWARE_CPU
               ? number_format(precision, RUNTIME_ONNXRUNTIME, hardware).products
               : precision;
}

/* The runtimes that may be faster than the roofline and than all other runtimes, which add kernels or host time.  Fused
 * kernels in a CUDA graph are the fastest where supported; but static engines have 8-bit activations, and llama.cpp has
 * a narrower head.  TensorRT's decoders need more host time than ONNX Runtime's, unless the host is slow. */
static bool may_be_fastest(enum runtime_id runtime, const struct hardware *hardware,
                           const struct partition *partition, const struct estimate_config *config)
{
    bool is_gpu = hardware->class == HARDWARE_GPU, is_int8 = config->precision == PRECISION_INT8;
    bool has_graphs = is_gpu && !runtime_check_device(RUNTIME_TORCH_COMPILE, hardware, NULL);
    bool is_host_stated = config->host_launch_s > 0 || is_known(hardware->host_launch_s.value);
    switch (runtime) {
    case RUNTIME_TORCH_COMPILE:
        return has_graphs;
    case RUNTIME_TENSORRT:
        return is_gpu && is_int8 && (!partition->is_causal || is_host_stated);
    case RUNTIME_ONNXRUNTIME:
        return (!has_graphs || is_int8) &&
               converted_precision(hardware, config->precision) == config->precision;
    case RUNTIME_LLAMA_CPP:
        return !has_graphs ||
               (precision_widths(config->precision).weight < 2 && partition->is_decoder);
    default:
        return false;
    }
}

/* On a CPU unfused operators read their operands from nearer caches; on a GPU fused kernels are never slower.  On a CPU
 * llama.cpp has the roofline with and without fusion, unless its operations were timed. */
static void lower_passes(const struct estimate_workload *work, const struct hardware *hardware,
                         const struct estimate_config *config, struct pass_bound *out)
{
    bool is_plain = runtime_fusion(config->runtime, hardware) == PARTITION_PLAIN;
    struct pass_rows *rows = NULL, *plain_rows = NULL;
    for (size_t i = 0; i < work->count; i++) {
        const struct workload_pass *pass = &work->passes[i];
        if (!may_be_fastest(config->runtime, hardware, &pass->partition, config))
            continue;
        pass_estimate_lower(&pass->partition, hardware, config, &rows, &out[i]);
        if (is_plain)
            pass_estimate_lower(&pass->unfused, hardware, config, &plain_rows, &out[i]);
    }
    free(rows);
    free(plain_rows);
}

static void find_fastest(const struct estimate_workload *work, const struct hardware *hardware,
                         const struct estimate_config *config, enum precision precision,
                         struct pass_bound *out)
{
    struct estimate_config other = *config;
    other.is_bound = false;
    other.precision = precision;
    for (size_t i = 0; i < work->count; i++)
        out[i] = (struct pass_bound){INFINITY, INFINITY};
    for (other.runtime = 0; other.runtime < RUNTIME_COUNT; other.runtime++)
        lower_passes(work, hardware, &other, out);
}

/* Kernels attain at most this multiple of a device's shares: a peak higher by this factor is faster. */
#define ATTAINED_MAX 1.5

static void lower_to(const struct workload_estimate *estimate, struct workload_bounds *known,
                     enum precision precision, struct pass_bound *max)
{
    const struct estimate_config *config = &estimate->config;
    struct pass_bound stored[WORKLOAD_PASSES_MAX] = {0};
    struct pass_bound *found = config->keeps_stored ? stored : known->passes[precision];
    if (!(found[0].latency_s > 0))
        find_fastest(estimate->work, estimate->hardware, config, precision, found);
    for (size_t i = 0; i < estimate->work->count; i++) {
        max[i].latency_s = fmin(max[i].latency_s, found[i].latency_s);
        max[i].joules = fmin(max[i].joules, found[i].joules);
    }
}

/* The bound of the precision and of wider ones whose kernels may be faster: a narrower precision is never slower. */
static void find_bound(const struct workload_estimate *estimate, struct workload_bounds *known,
                       struct pass_bound *max)
{
    const struct hardware *hardware = estimate->hardware;
    const struct estimate_config *config = &estimate->config;
    double width = precision_widths(config->precision).weight;
    double peak = hardware->matrix_flops[config->precision].value;
    for (size_t i = 0; i < estimate->work->count; i++)
        max[i] = (struct pass_bound){INFINITY, INFINITY};
    for (enum precision p = 0; p < PRECISION_COUNT; p++) {
        bool is_wider = !config->keeps_stored && precision_widths(p).weight > width &&
                        !(ATTAINED_MAX * hardware->matrix_flops[p].value <= peak);
        if (p != config->precision && !is_wider)
            continue;
        lower_to(estimate, known, p, max);
        if (converted_precision(hardware, p) != p)
            lower_to(estimate, known, converted_precision(hardware, p), max);
    }
}

static enum err estimate_passes(struct workload_estimate *estimate, struct workload_bounds *bounds,
                                bool has_detail, struct error *why)
{
    struct pass_bound max[WORKLOAD_PASSES_MAX];
    struct pass_rows *rows = NULL;
    enum err err = ERR_OK;
    if (estimate->config.is_bound)
        find_bound(estimate, bounds, max);
    for (size_t i = 0; !err && i < estimate->work->count; i++) {
        if (estimate->config.is_bound)
            estimate->config.max = max[i];
        err = pass_estimate_make(&estimate->work->passes[i].partition, estimate->hardware,
                                 &estimate->config, &rows, has_detail, &estimate->passes[i], why);
        estimate->pass_count = i + 1;
    }
    free(rows);
    return err;
}

/* ---- the workload ---- */

static void add_pass(struct workload_estimate *out, const struct pass_estimate *pass, size_t index)
{
    if (index == 0 || pass->memory.total_peak > out->memory.total_peak)
        out->memory = pass->memory;
    if (index == 0 || pass->confidence > out->confidence) {
        out->confidence = pass->confidence;
        chars_copy(out->confidence_reason, pass->confidence_reason);
    }
    out->used = pass->used;
    out->params = pass->params;
}

/* The KV cache grows until the last pass, and is reserved before.  Stages of a pipeline have that of the pass with the
 * highest peak. */
static void reserve_cache(struct workload_estimate *out)
{
    const struct estimate_workload *work = out->work;
    size_t largest = 0;
    if (out->config.stages > 1)
        return;
    for (size_t i = 1; i < work->count; i++)
        if (out->passes[i].memory.kv_cache > out->passes[largest].memory.kv_cache)
            largest = i;
    const struct graph_options *setting = &work->passes[largest].setting;
    const struct partition *partition = &work->passes[largest].partition;
    if (partition->heads_kv > 0 && !partition->has_cross) /* otherwise a part has a fixed size */
        out->cache_tokens = setting->phase == GRAPH_DECODE ? setting->context : setting->tokens;
    estimate_memory_reserve(&out->memory, out->passes[largest].memory.kv_cache, work->batch);
}

static void add_totals(struct workload_estimate *out)
{
    const struct estimate_workload *work = out->work;
    sum_passes(out, 0, work->count, &out->total);
    if (!work->spec.is_request)
        return;
    sum_passes(out, 0, work->prefill_count, &out->prefill);
    sum_passes(out, work->prefill_count, work->count, &out->decode);
}

/* ---- pipelines ---- */

struct stage_times {
    double busy_s[PIPELINE_STAGES_MAX], send_s[PIPELINE_STAGES_MAX], host_s;
};

/* Interpolates between two passes of a step: they are linear in the preceding tokens. */
static void lerp_stages(const struct pass_estimate *a, const struct pass_estimate *b, double share,
                        struct stage_times *out)
{
    out->host_s = a->host_s + share * (b->host_s - a->host_s);
    for (int s = 0; s < a->config.stages; s++) {
        const struct estimate_stage *from = &a->stages[s], *to = &b->stages[s];
        out->busy_s[s] = from->busy_s + share * (to->busy_s - from->busy_s);
        out->send_s[s] = from->send_s + share * (to->send_s - from->send_s);
    }
}

/* The micro-batches of a step, in order: the passes first..end-1 as often as each of them runs, or the chunks between
 * them. */
static void fill_jobs(const struct workload_estimate *estimate, size_t first, size_t end,
                      struct stage_times *times, size_t count)
{
    const struct workload_pass *passes = estimate->work->passes;
    bool has_chunks = passes[end - 1].chunk > 0;
    size_t p = first, left = 0;
    for (size_t i = 0; i < count; i++) {
        if (has_chunks) {
            while (p + 2 < end && passes[p + 1].chunk <= (int64_t)i)
                p++;
            double gap = (double)(passes[p + 1].chunk - passes[p].chunk);
            lerp_stages(&estimate->passes[p], &estimate->passes[p + 1],
                        ((double)i - (double)passes[p].chunk) / gap, &times[i]);
            continue;
        }
        if (i && !--left)
            p++;
        if (!left)
            left = (size_t)round(passes[p].times / passes[p].steps);
        lerp_stages(&estimate->passes[p], &estimate->passes[p], 0, &times[i]);
    }
}

/* Seconds of one step, and its micro-batches. */
static double schedule(const struct workload_estimate *estimate, size_t first, size_t end,
                       size_t *count)
{
    const struct workload_pass *passes = estimate->work->passes;
    double number = 0;
    for (size_t i = first; i < end; i++)
        number += passes[i].times / passes[i].steps;
    *count = (size_t)round(number);
    struct stage_times *times = xcalloc(*count, sizeof *times);
    struct pipeline_job *jobs = xcalloc(*count, sizeof *jobs);
    fill_jobs(estimate, first, end, times, *count);
    for (size_t i = 0; i < *count; i++)
        jobs[i] = (struct pipeline_job){times[i].host_s, times[i].busy_s, times[i].send_s};
    bool repeats = passes[first].setting.phase == GRAPH_DECODE;
    double step_s =
        (repeats ? pipeline_round_s : pipeline_once_s)(jobs, *count, estimate->config.stages);
    free(times);
    free(jobs);
    return step_s;
}

static void add_to_pipeline(const struct pass_estimate *pass, double times,
                            struct workload_pipeline *out)
{
    for (int s = 0; s < pass->config.stages; s++) {
        const struct estimate_stage *stage = &pass->stages[s];
        out->stages[s].layers = stage->layers;
        out->stages[s].busy_s += times * stage->busy_s;
        out->stages[s].joules += times * stage->active_j;
        out->stages[s].memory_peak = fmax(out->stages[s].memory_peak, stage->memory_peak);
    }
}

/* Updates joules for a different duration, in which all devices draw idle power. */
static void spread_joules(struct estimate_joules *joules, double idle_j)
{
    joules->total += idle_j - joules->idle;
    joules->idle = idle_j;
}

/* Sets the share of the time of a pipeline's micro-batches: all devices draw idle power for that time, including those
 * of waiting stages.  At most `at_once` stages work concurrently. */
static void spread_pass(struct pass_estimate *estimate, double share_s, int at_once)
{
    struct estimate_totals *total = &estimate->total;
    int stages = estimate->config.stages, all = estimate_devices(&estimate->config);
    double idle_w = estimate->hardware->idle_w.value * all, before_s = total->latency_s;
    double factor = share_s / before_s;
    double idle_j = idle_w * share_s;
    double more_j = idle_j - total->joules.idle;
    double relative = total->latency_plus_minus / before_s, busy = before_s / (stages * share_s);
    total->wasted_j += more_j;
    spread_joules(&total->joules, idle_j);
    total->latency_s = share_s;
    total->latency_plus_minus *= factor;
    total->joules_plus_minus = hypot(total->joules_plus_minus, more_j * relative);
    total->power_plus_minus *= total->joules.total / share_s / total->average_w;
    total->average_w = total->joules.total / share_s;
    total->peak_w = at_once * total->peak_w + idle_w * (stages - at_once) / stages;
    total->utilization *= busy;
    total->mfu *= busy;
    total->mbu *= busy;
    total->efficiency = (total->joules.total - idle_j) / total->joules.total;
    for (size_t i = 0; estimate->rows && i < estimate->partition->count; i++) {
        struct subgraph_estimate *row = &estimate->rows[i];
        row->latency_s *= factor;
        row->utilization *= busy;
        spread_joules(&row->joules, idle_w * row->latency_s);
    }
}

/* Micro-batches overlap: the time of a step is divided among its passes in proportion to their separate times. */
static void spread_steps(struct workload_estimate *out)
{
    const struct estimate_workload *work = out->work;
    for (size_t first = 0, end; first < work->count; first = end) {
        double alone_s = 0;
        size_t jobs = 0;
        for (end = first; end < work->count && work->passes[end].step == first; end++)
            alone_s += work->passes[end].times / work->passes[end].steps *
                       out->passes[end].total.latency_s;
        double step_s = schedule(out, first, end, &jobs);
        int at_once = jobs < (size_t)out->config.stages ? (int)jobs : out->config.stages;
        for (size_t i = first; i < end; i++) {
            add_to_pipeline(&out->passes[i], work->passes[i].times, &out->pipeline);
            spread_pass(&out->passes[i], out->passes[i].total.latency_s * step_s / alone_s,
                        at_once);
        }
        out->pipeline.micro_batches = (double)jobs;
    }
}

/* Every stage draws idle power for the whole time. */
static void finish_pipeline(struct workload_estimate *out)
{
    int stages = out->config.stages;
    double busy_s = 0, took_s = out->total.latency_s;
    for (int s = 0; s < stages; s++) {
        busy_s += out->pipeline.stages[s].busy_s;
        out->pipeline.stages[s].joules +=
            out->hardware->idle_w.value * out->config.devices * took_s;
    }
    out->pipeline.bubble = 1 - busy_s / (stages * took_s);
}

/* Share of the MACs of all passes that tensor parallelism divides. */
static double divided_share(const struct estimate_workload *work, int devices)
{
    double sharded = 0, all = 0;
    for (size_t i = 0; i < work->count; i++) {
        sharded += work->passes[i].times * work->passes[i].partition.sharded_macs;
        all += work->passes[i].times * work->passes[i].partition.total.macs;
    }
    return devices > 1 && all > 0 ? sharded / all : UNKNOWN;
}

enum err workload_estimate_make(const struct estimate_workload *work,
                                const struct hardware *hardware,
                                const struct estimate_config *config, bool has_detail,
                                struct workload_estimate *out, struct error *why)
{
    struct workload_bounds bounds = {0};
    return workload_estimate_next(work, hardware, config, &bounds, has_detail, out, why);
}

enum err workload_estimate_next(const struct estimate_workload *work,
                                const struct hardware *hardware,
                                const struct estimate_config *config,
                                struct workload_bounds *bounds, bool has_detail,
                                struct workload_estimate *out, struct error *why)
{
    *out = (struct workload_estimate){.work = work, .hardware = hardware, .config = *config};
    out->config.runtime = work->spec.runtime;
    out->config.has_default_runtime = work->spec.has_default_runtime;
    out->config.stages = work->spec.stages > 1 ? work->spec.stages : 1;
    out->config.sequences = work->batch;
    out->config.is_bound = workload_is_bound(&work->spec);
    out->divided = divided_share(work, config->devices);
    out->limit_w = hardware->limit_w.value * estimate_devices(&out->config);
    out->shipped = shipped_of(work);
    out->passes = xmalloc(work->count * sizeof *out->passes);
    enum err err = estimate_passes(out, bounds, has_detail, why);
    if (!err && out->config.stages > 1)
        spread_steps(out);
    for (size_t i = 0; !err && i < work->count; i++)
        add_pass(out, &out->passes[i], i);
    if (!err) {
        reserve_cache(out);
        add_totals(out);
    }
    if (!err && !(out->total.latency_s > 0))
        err =
            err_set(why, ERR_NO_DATA, "%.100s: no operations to estimate", work->spec.model->name);
    if (err)
        workload_estimate_release(out);
    if (err)
        return err;
    if (out->config.stages > 1)
        finish_pipeline(out);
    if (!has_detail) {
        free(out->passes);
        out->passes = NULL;
    }
    return ERR_OK;
}

void workload_estimate_release(struct workload_estimate *estimate)
{
    for (size_t i = 0; estimate->passes && i < estimate->pass_count; i++)
        pass_estimate_release(&estimate->passes[i]);
    free(estimate->passes);
    *estimate = (struct workload_estimate){0};
}

/* ---- precisions ---- */

/* Whether the device has units for this precision. */
static bool is_native(const struct hardware *hardware, enum precision precision)
{
    return is_known(hardware->matrix_flops[precision].value) ||
           is_known(hardware->vector_flops[precision].value);
}

bool estimate_offers(const struct hardware *hardware, enum precision precision)
{
    return is_native(hardware, precision) ||
           (precision == PRECISION_INT4 && hardware_matmul_path(hardware, precision).flops);
}

/* A precision must cost less than this share to be preferred: smaller differences are within the ± of measured
 * joules. */
#define CLEARLY_LESS 0.9

static bool is_clearly_cheaper(struct hardware_path a, struct hardware_path b)
{
    if (is_known(a.joules->value) && is_known(b.joules->value))
        return a.joules->value < CLEARLY_LESS * b.joules->value;
    return b.flops->value < CLEARLY_LESS * a.flops->value;
}

static enum precision default_precision(const struct hardware *hardware)
{
    static const enum precision BY_USE[] = {PRECISION_FP16, PRECISION_BF16, PRECISION_FP32,
                                            PRECISION_FP8, PRECISION_INT8};
    if (is_native(hardware, PRECISION_FP16) && is_native(hardware, PRECISION_BF16) &&
        is_clearly_cheaper(hardware_matmul_path(hardware, PRECISION_BF16),
                           hardware_matmul_path(hardware, PRECISION_FP16)))
        return PRECISION_BF16;
    for (size_t i = 0; i < COUNT_OF(BY_USE); i++)
        if (is_native(hardware, BY_USE[i]))
            return BY_USE[i];
    return PRECISION_FP32;
}

enum precision workload_default_precision(const struct estimate_workload *work,
                                          const struct hardware *hardware)
{
    const struct graph_precision *file = &work->file;
    struct workload_spec there = work->spec;
    /* Runtimes of decoders run a 32-bit checkpoint in 16 bits. */
    bool is_wide = work->spec.model->has_phases && precision_widths(file->products).weight > 2;
    if (file->is_known && !is_wide && hardware_matmul_path(hardware, file->products).flops)
        return file->products;
    enum precision usual = default_precision(hardware);
    workload_spec_run_on(&there, hardware);
    return hardware->class == HARDWARE_CPU ? number_format(usual, there.runtime, hardware).products
                                           : usual;
}

bool workload_estimate_fits(const struct workload_estimate *estimate)
{
    const struct estimate_memory *memory = &estimate->memory;
    return memory->fits &&
           (is_known(memory->capacity) || estimate->hardware->class == HARDWARE_CPU);
}

const struct partition *
workload_estimate_timeline_partition(const struct workload_estimate *estimate)
{
    for (size_t i = 0; estimate->passes && i < estimate->work->count; i++)
        if (estimate->passes[i].memory.timeline == estimate->memory.timeline)
            return &estimate->work->passes[i].partition;
    return NULL;
}

double workload_estimate_joules_per_unit(const struct workload_estimate *estimate)
{
    return estimate->total.joules.total / estimate->work->units;
}

double workload_estimate_units_per_s(const struct workload_estimate *estimate)
{
    return estimate->work->units / estimate->total.latency_s;
}

double workload_estimate_ttft_s(const struct workload_estimate *estimate)
{
    return estimate->work->spec.is_request ? estimate->prefill.latency_s : UNKNOWN;
}

double workload_estimate_tpot_s(const struct workload_estimate *estimate)
{
    const struct workload_spec *spec = &estimate->work->spec;
    return spec->is_request && spec->output_tokens > 1
               ? estimate->decode.latency_s / (double)(spec->output_tokens - 1)
               : UNKNOWN;
}

/* ---- subgraphs ---- */

static void add_row(struct subgraph_total *sum, const struct subgraph_estimate *row, double times)
{
    sum->flops += times * row->flops;
    sum->bytes += times * row->bytes;
    sum->latency_s += times * row->latency_s;
    sum->utilization += times * row->latency_s * row->utilization;
    estimate_joules_add(&sum->joules, &row->joules, times);
    sum->bound = row->bound; /* that of the longest context, which comes last */
}

/* Whether these are passes of the same graph, so that their subgraphs correspond. */
static bool continues(const struct workload_pass *before, const struct workload_pass *pass)
{
    return before && pass->setting.phase == before->setting.phase &&
           pass->partition.count == before->partition.count;
}

void workload_estimate_subgraphs(const struct workload_estimate *estimate,
                                 struct subgraph_total **rows, size_t *count)
{
    const struct estimate_workload *work = estimate->work;
    size_t total = 0, first = 0;
    const struct workload_pass *before = NULL;
    for (size_t i = 0; i < work->count; before = &work->passes[i++])
        total += continues(before, &work->passes[i]) ? 0 : work->passes[i].partition.count;
    struct subgraph_total *all = xcalloc(total ? total : 1, sizeof *all);
    before = NULL;
    for (size_t i = 0; i < work->count; before = &work->passes[i++]) {
        const struct workload_pass *pass = &work->passes[i];
        if (before && !continues(before, pass))
            first += before->partition.count;
        for (size_t s = 0; s < pass->partition.count; s++) {
            all[first + s].subgraph = &pass->partition.subgraphs[s];
            all[first + s].phase = pass->setting.phase;
            add_row(&all[first + s], &estimate->passes[i].rows[s], pass->times);
        }
    }
    for (size_t i = 0; i < total; i++)
        all[i].utilization = all[i].latency_s > 0 ? all[i].utilization / all[i].latency_s : UNKNOWN;
    *rows = all;
    *count = total;
}
