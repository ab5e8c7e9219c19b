/* The ± of a pass, and the confidence in it.  With kernels measured on the device, or published figures of the runtime,
 * it is the spread of models about their estimates; otherwise it is propagated from the uncertainty of the device's
 * figures, by what the time depends on, with errors of the model and of the graph. */
#include "estimate/pass_estimate.h"

#include <math.h>

#include "core/text.h"

/* Relative errors in addition to those of the device's figures: of the model if it was fitted to this device and if it
 * was not, of a node with an unknown operator, of a graph with assumed shapes. */
#define MODEL_CALIBRATED 0.10
#define MODEL_THEORETIC  0.25
#define MODEL_TIMED      0.20 /* composed of operations timed on the device */
#define NODE_UNKNOWN     1.0
#define SCAN_ASSUMED     0.5 /* selective scan: its kernel was not measured on any device */
#define GRAPH_GUESSED    0.3

const char *const ESTIMATE_CONFIDENCES[] = {"calibrated", "interpolated", "theoretical"};

double pass_uncertainty_model_error(const struct hardware *hardware)
{
    return hardware->is_calibrated ? MODEL_CALIBRATED : MODEL_THEORETIC;
}

/* With measured kernels, relative standard deviations by the bound of most of the time: of 719 rows of
 * measured models, each corrected by the mean ratio of measured to estimated of the other families (docs/estimate.md;
 * recomputed by a test).  None for BOUND_BALANCED and BOUND_LINK. */
struct spread {
    double time, energy;
};
static const struct spread SPREADS[RUNTIME_COUNT][BOUND_COUNT] = {
    [RUNTIME_PYTORCH_GRAPH] = {[BOUND_COMPUTE] = {0.08, 0.08},
                               [BOUND_MEMORY] = {0.095, 0.105},
                               [BOUND_LAUNCH] = {0.11, 0.13},
                               [BOUND_LINK] = {0.11, 0.13},
                               [BOUND_BALANCED] = {0.1, 0.12}},
    [RUNTIME_PYTORCH_EAGER] = {[BOUND_COMPUTE] = {0.13, 0.08},
                               [BOUND_MEMORY] = {0.16, 0.095},
                               [BOUND_LAUNCH] = {0.2, 0.145},
                               [BOUND_LINK] = {0.2, 0.145},
                               [BOUND_BALANCED] = {0.2, 0.145}},
};

/* For decoders on GPUs, relative standard deviations of time: twice this contains 95 % of 157 published figures
 * (docs/estimate.md; checked by a test on others).  They include the uncertainty of the device's figures. */
static const double PUBLISHED[RUNTIME_COUNT] = {[RUNTIME_VLLM] = 0.18,
                                                [RUNTIME_LLAMA_CPP] = 0.28,
                                                [RUNTIME_TENSORRT] = 0.18,
                                                [RUNTIME_TENSORRT_07] = 0.20,
                                                [RUNTIME_TORCH_COMPILE] = 0.17};
/* In addition: */
#define PIPELINE_SPREAD 0.16 /* from three published speedups of pipelines */
#define DEFAULT_SPREAD                                                                             \
    0.10 /* of those figures about the default runtime of their model and device */

/* Devices of those figures; on any other the error of the model counts, too. */
static const char *const PUBLISHED_DEVICES[] = {"a100-",  "h100-", "h200",   "b200",
                                                "mi300x", "rtx-",  "apple-", "jetson-orin-"};

/* In a CUDA graph a prompt is measured with a static cache and its mask: without them it takes fewer kernels. */
#define CAPTURED_PREFILL 0.14

struct pass_uncertainty pass_uncertainty_of(enum graph_op op, const struct subgraph_estimate *row)
{
    struct pass_uncertainty out = {0};
    if (row->stretch > 1) {
        out.limit_s = row->latency_s;
    } else {
        *(row->compute_s > row->memory_s ? &out.compute_s : &out.memory_s) =
            fmax(row->compute_s, row->memory_s);
        out.launch_s = row->launch_s;
        out.link_s = row->link_s;
    }
    out.bound_s[row->bound] = row->latency_s;
    double unknown = 0;
    if (op == GRAPH_UNKNOWN)
        unknown = NODE_UNKNOWN;
    else if (op == GRAPH_SCAN)
        unknown = SCAN_ASSUMED;
    out.unknown_s = unknown * row->latency_s;
    out.unknown_j = unknown > 0 ? unknown * row->joules.total : 0;
    return out;
}

/* Relative uncertainty of a product of two rates. */
static double product_error(struct rate a, struct rate b)
{
    return sqrt(square(a.relative) + square(b.relative));
}

/* Variance that the graph and the model add to that of the device's figures. */
static double graph_variance(const struct pass_estimate *estimate, double all, double of_unknown)
{
    double model = hypot(pass_uncertainty_model_error(estimate->hardware),
                         runtime_at(estimate->config.runtime)->error);
    double guessed = estimate->partition->graph->is_guessed ? GRAPH_GUESSED : 0;
    return square(model * all) + square(guessed * all) + square(of_unknown);
}

static bool is_timed(const struct pass_estimate *estimate)
{
    return hardware_timings(estimate->hardware, runtime_at(estimate->config.runtime)->name);
}

/* Kernels measured on this device: uses the spread of models measured on it, independent of the device's figures. */
static bool has_measured_kernels(const struct pass_estimate *estimate)
{
    return estimate->config.runtime != RUNTIME_IDEAL && estimate_devices(&estimate->config) == 1 &&
           (is_known(estimate->hardware->kernels.value) || is_timed(estimate));
}

static bool is_published_device(const struct hardware *hardware)
{
    for (size_t i = 0; i < COUNT_OF(PUBLISHED_DEVICES); i++)
        if (str_starts(hardware->id, PUBLISHED_DEVICES[i]))
            return true;
    return false;
}

/* 0: no published figures. */
static double published_spread(const struct pass_estimate *estimate)
{
    bool is_gpu = estimate->hardware->class == HARDWARE_GPU;
    const struct partition *partition = estimate->partition;
    bool is_transformer = partition->is_causal && partition->heads > 0;
    bool is_published = is_gpu && is_transformer && !is_timed(estimate);
    double spread = is_published ? PUBLISHED[estimate->config.runtime] : 0;
    if (spread > 0 && estimate->config.stages > 1)
        spread = hypot(spread, PIPELINE_SPREAD);
    if (spread > 0 && estimate->config.has_default_runtime)
        spread = hypot(spread, DEFAULT_SPREAD);
    if (spread > 0 && !is_published_device(estimate->hardware))
        spread = hypot(spread, MODEL_THEORETIC);
    return spread;
}

static bool is_captured_prefill(const struct pass_estimate *estimate)
{
    const struct graph *graph = estimate->partition->graph;
    return estimate->config.runtime == RUNTIME_PYTORCH_GRAPH && estimate->partition->is_causal &&
           graph->tokens > graph->batch;
}

static struct spread measured_spread(const struct pass_uncertainty *from, enum runtime_id runtime)
{
    double all_s = 0, usual = runtime_at(runtime)->error;
    struct spread sum = {0};
    for (int b = 0; b < BOUND_COUNT; b++) {
        double took_s = from->bound_s[b];
        struct spread one = SPREADS[runtime][b];
        all_s += took_s;
        sum.time += took_s * (one.time > 0 ? one.time : usual);
        sum.energy += took_s * (one.energy > 0 ? one.energy : usual);
    }
    return all_s > 0 ? (struct spread){sum.time / all_s, sum.energy / all_s}
                     : (struct spread){usual, usual};
}

static void set_measured_plus_minus(const struct pass_uncertainty *from,
                                    struct pass_estimate *estimate)
{
    struct estimate_totals *total = &estimate->total;
    struct spread error = is_timed(estimate) ? (struct spread){MODEL_TIMED, MODEL_TIMED}
                                             : measured_spread(from, estimate->config.runtime);
    double guessed = estimate->partition->graph->is_guessed ? GRAPH_GUESSED : 0;
    if (is_captured_prefill(estimate))
        error = (struct spread){hypot(error.time, CAPTURED_PREFILL),
                                hypot(error.energy, CAPTURED_PREFILL)};
    if (published_spread(estimate) > 0)
        error.time = published_spread(estimate);
    total->latency_plus_minus =
        hypot(hypot(error.time, guessed) * total->latency_s, from->unknown_s);
    total->joules_plus_minus =
        hypot(hypot(error.energy, guessed) * total->joules.total, from->unknown_j);
    total->power_plus_minus = error.energy * total->average_w;
}

static void set_derived_plus_minus(const struct rates *rates, const struct pass_uncertainty *from,
                                   struct pass_estimate *estimate)
{
    struct estimate_totals *total = &estimate->total;
    const struct estimate_joules *joules = &total->joules;
    double active = joules->compute + joules->memory + joules->link;
    double active_variance =
        square(joules->compute * rates->product_joules.relative) +
        square((joules->memory + joules->link) * rates->joules_per_byte.relative) +
        graph_variance(estimate, active, from->unknown_j);
    double time_variance =
        square(from->compute_s * product_error(rates->product_flops, rates->compute_share)) +
        square(from->memory_s * product_error(rates->bytes_per_s, rates->memory_share)) +
        square(from->launch_s * rates->launch_s.relative) +
        square(from->link_s * product_error(rates->link_bytes_per_s, rates->link_latency_s)) +
        graph_variance(estimate, total->latency_s, from->unknown_s);
    double published = published_spread(estimate);
    if (published > 0)
        time_variance =
            square(published * total->latency_s) + square(from->unknown_s) +
            square(estimate->partition->graph->is_guessed ? GRAPH_GUESSED * total->latency_s : 0);
    else if (from->limit_s > 0 &&
             active > 0) /* then time is energy over the power available below the limit */
        time_variance += square(from->limit_s) * active_variance / square(active);
    double time = total->latency_s;
    double relative_time = time > 0 ? time_variance / square(time) : 0;
    double idle_variance = square(joules->idle) * (square(rates->idle_w.relative) + relative_time);
    total->latency_plus_minus = sqrt(time_variance);
    total->joules_plus_minus = sqrt(active_variance + idle_variance);
    /* Where the power limit binds, power has the uncertainty of the limit. */
    double limited = time > 0 ? from->limit_s / time : 0;
    double power_variance = square(joules->idle * rates->idle_w.relative) + active_variance +
                            square(active) * relative_time;
    double limit_variance =
        limited > 0 ? square(limited * joules->total * rates->limit_w.relative) : 0;
    total->power_plus_minus =
        time > 0 ? sqrt(square(1 - limited) * power_variance + limit_variance) / time : UNKNOWN;
}

/* Devices that wait longer for a slower host draw idle power meanwhile, so mean power decreases. */
static void add_host_error(const struct rates *rates, double host_s, struct pass_estimate *estimate)
{
    struct estimate_totals *total = &estimate->total;
    double idle_w = rates->idle_w.value * estimate->config.devices;
    total->host_plus_minus = host_s;
    total->host_joules_plus_minus = idle_w * host_s;
    total->latency_plus_minus = hypot(total->latency_plus_minus, total->host_plus_minus);
    total->joules_plus_minus = hypot(total->joules_plus_minus, total->host_joules_plus_minus);
    total->power_plus_minus =
        hypot(total->power_plus_minus, (total->average_w - idle_w) * host_s / total->latency_s);
}

/* Confidence in the device's figures, and the limiting factor. */
static enum estimate_confidence device_confidence(const struct pass_estimate *estimate,
                                                  char *reason, size_t size)
{
    const struct hardware *hardware = estimate->hardware;
    struct hardware_weakest weakest = hardware_weakest(hardware, estimate->config.precision);
    enum precision wanted = estimate->config.precision, used;
    (void)hardware_matmul_flops(hardware, wanted, &used);
    /* Peaks are published figures even if everything measurable was measured. */
    bool is_measured = weakest.evidence <= EVIDENCE_PUBLISHED && used == wanted;
    if (hardware->is_calibrated && is_measured)
        str_format(reason, size, "%s was calibrated by measurement%s", hardware->id,
                   is_known(hardware->limit_w.value) ? "" : "; no power limit stated");
    else if (hardware->is_calibrated && used != wanted)
        str_format(reason, size, "%s was calibrated, but not in %s", hardware->id,
                   precision_name(wanted));
    else if (hardware->is_calibrated)
        str_format(reason, size, "%s was calibrated, but not %s: %s", hardware->id, weakest.figure,
                   weakest.is_stated ? evidence_name(weakest.evidence) : "not stated");
    else
        str_format(reason, size, "%s was not calibrated; its weakest figure is %s", hardware->id,
                   evidence_name(weakest.evidence));
    if (hardware->is_calibrated)
        return is_measured ? CONFIDENCE_CALIBRATED : CONFIDENCE_INTERPOLATED;
    return is_measured ? CONFIDENCE_INTERPOLATED : CONFIDENCE_THEORETICAL;
}

static void set_confidence(struct pass_estimate *estimate)
{
    const struct graph *graph = estimate->partition->graph;
    const struct hardware *hardware = estimate->hardware;
    char *reason = estimate->confidence_reason;
    size_t size = sizeof estimate->confidence_reason;
    estimate->confidence = device_confidence(estimate, reason, size);
    if (!graph->is_guessed && graph->unknown_count == 0 && !hardware->doubt[0])
        return;
    if (estimate->confidence < CONFIDENCE_THEORETICAL)
        estimate->confidence++;
    if (graph->is_guessed && graph->notes.count)
        str_copy(reason, size, "sizes or control flow are assumed: see the notes");
    else if (graph->is_guessed)
        str_copy(reason, size, "the file does not state all shapes: some are assumed");
    else if (graph->unknown_count)
        str_format(reason, size, "%zu node%s an unknown operator", graph->unknown_count,
                   graph->unknown_count == 1 ? " has" : "s have");
    else
        str_format(reason, size, "contradictory figures of the device: %s", hardware->doubt);
}

void pass_uncertainty_set(const struct pass_uncertainty *from, const struct rates *rates,
                          struct pass_estimate *estimate)
{
    if (has_measured_kernels(estimate))
        set_measured_plus_minus(from, estimate);
    else
        set_derived_plus_minus(rates, from, estimate);
    if (from->host_s > 0)
        add_host_error(rates, from->host_s, estimate);
    set_confidence(estimate);
}
