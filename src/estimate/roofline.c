/* Three steps: the figures of a device in one precision (rates), the work of one device in a subgraph under tensor
 * parallelism, and from both its time by the roofline and its energy. */
#include "estimate/roofline.h"

#include <math.h>
#include <string.h>

enum {
    TILE_SIDE = 64,        /* side of a product's tile, per unit: 64 x 64 */
    PIECE_ELEMENTS = 1024, /* per unit, for other operations */
};
#define BALANCED_BAND 1.1 /* ratio within which the two largest times count as balanced */

const char *const ESTIMATE_BOUNDS[BOUND_COUNT] = {"compute", "memory", "launch", "link",
                                                  "balanced"};

void estimate_traffic_add(struct estimate_traffic *sum, const struct estimate_traffic *more,
                          double times)
{
    sum->weights += times * more->weights;
    sum->activations += times * more->activations;
    sum->cache_read += times * more->cache_read;
    sum->cache_written += times * more->cache_written;
    sum->link += times * more->link;
}

/* ---- rates ---- */

/* Relative uncertainty of a figure without a stated one, by evidence. */
static const double BY_EVIDENCE[EVIDENCE_COUNT] = {
    [EVIDENCE_MEASURED] = 0.05, [EVIDENCE_FITTED] = 0.10,  [EVIDENCE_PUBLISHED] = 0.10,
    [EVIDENCE_DERIVED] = 0.25,  [EVIDENCE_ASSUMED] = 0.50,
};

/* Defaults by class: attainable shares of optimized code, and the cost of a launch. */
static const struct {
    double compute_share, memory_share, launch_s;
    const char *source;
} OF_CLASS[HARDWARE_CLASS_COUNT] = {
    [HARDWARE_GPU] = {0.70, 0.80, 4e-6, "not stated: assumed for GPUs"},
    [HARDWARE_CPU] = {0.70, 0.75, 2e-6, "not stated: assumed for CPUs"},
    [HARDWARE_TPU] = {0.60, 0.80, 2e-6, "not stated: assumed for TPUs"},
    [HARDWARE_NPU] = {0.50, 0.70, 5e-6, "not stated: assumed for NPUs"},
};

static struct rate rate_of(const struct hardware_figure *figure)
{
    bool is_stated = is_known(figure->plus_minus) && figure->value > 0;
    return (struct rate){figure->value, is_stated ? figure->plus_minus / figure->value
                                                  : BY_EVIDENCE[figure->evidence]};
}

static struct hardware_figure figure_or(const struct hardware_figure *figure, double assumed,
                                        const char *source)
{
    if (is_known(figure->value))
        return *figure;
    return (struct hardware_figure){.value = assumed,
                                    .evidence = EVIDENCE_ASSUMED,
                                    .plus_minus = BY_EVIDENCE[EVIDENCE_ASSUMED] * assumed,
                                    .source = source};
}

struct rates_stated rates_stated_or_assumed(const struct hardware *hardware)
{
    enum hardware_class class = hardware->class;
    const char *source = OF_CLASS[class].source;
    return (struct rates_stated){
        .compute_share = figure_or(&hardware->compute_share, OF_CLASS[class].compute_share, source),
        .memory_share = figure_or(&hardware->memory_share, OF_CLASS[class].memory_share, source),
        .launch_s = figure_or(&hardware->launch_s, OF_CLASS[class].launch_s, source),
    };
}

static struct rate rate_at(const struct hardware_figure *figure)
{
    return figure ? rate_of(figure) : (struct rate){UNKNOWN, BY_EVIDENCE[EVIDENCE_ASSUMED]};
}

static void look_up_others(const struct hardware *hardware, enum precision precision,
                           struct rates *out)
{
    struct hardware_path others = hardware_elementwise_path(hardware, precision);
    out->other_flops = rate_at(others.flops);
    out->other_joules = rate_at(others.joules);
}

static void look_up_products(const struct hardware *hardware, enum precision precision,
                             struct rates *out)
{
    struct hardware_path products = hardware_matmul_path(hardware, precision);
    struct hardware_path attention = hardware_matmul_path(hardware, out->format.attention);
    struct hardware_path converted = hardware_elementwise_path(hardware, PRECISION_FP32);
    out->used = products.flops ? products.used : precision;
    out->attention_flops = attention.flops ? attention.flops->value : UNKNOWN;
    out->dequant_flops = converted.flops ? converted.flops->value : UNKNOWN;
    out->product_flops = rate_at(products.flops);
    out->product_joules = rate_at(products.joules);
    out->is_matrix = products.is_matrix;
    bool is_tf32 = precision == PRECISION_FP32 && runtime_at(out->runtime)->has_tf32_conv &&
                   is_known(hardware->matrix_flops[PRECISION_TF32].value);
    out->conv_flops =
        is_tf32 ? rate_of(&hardware->matrix_flops[PRECISION_TF32]) : out->product_flops;
    out->conv_joules =
        is_tf32 ? rate_of(&hardware->matrix_joules[PRECISION_TF32]) : out->product_joules;
}

/* The cache in which a result may stay until the next kernel reads it. */
static void look_up_cache(const struct hardware *hardware, struct rates *out)
{
    if (hardware->memory_count < 2)
        return;
    const struct hardware_memory *cache = &hardware->memories[hardware->memory_count - 2];
    if (!is_known(cache->capacity_bytes.value) || !is_known(cache->joules_per_byte.value))
        return;
    out->cache_bytes = cache->capacity_bytes.value;
    out->cache_joules = cache->joules_per_byte.value;
}

static bool is_positive(double value)
{
    return is_known(value) && value > 0;
}

enum err rates_of(const struct hardware *hardware, enum precision precision,
                  enum runtime_id runtime, struct rates *out, struct error *why)
{
    *out = (struct rates){.hardware = hardware, .runtime = runtime};
    out->timings = hardware_timings(hardware, runtime_at(runtime)->name);
    bool is_gpu = hardware->class == HARDWARE_GPU;
    bool is_onnx = runtime == RUNTIME_ONNXRUNTIME && hardware->class == HARDWARE_CPU;
    out->has_kernels = runtime != RUNTIME_IDEAL && (is_gpu || out->timings || is_onnx);
    out->format = number_format(precision, runtime, hardware);
    out->widths = out->format.widths;
    if (out->has_kernels && is_gpu && !kernel_basis_of(hardware, &out->basis))
        return err_set(why, ERR_BAD_VALUE, "%s: no kernel_classes in its hardware file",
                       hardware->id);
    bool is_of_cpus = runtime == RUNTIME_LLAMA_CPP || runtime == RUNTIME_ONNXRUNTIME;
    if (runtime != RUNTIME_IDEAL && !out->has_kernels &&
        !(is_of_cpus && hardware->class == HARDWARE_CPU))
        return err_set(why, ERR_BAD_VALUE, "%s: kernels of %s are known of GPUs%s only",
                       hardware->id, runtime_at(runtime)->name, is_of_cpus ? " and CPUs" : "");
    if (runtime_check_device(runtime, hardware, why) ||
        runtime_check_precision(runtime, precision, why))
        return ERR_BAD_VALUE;
    if (hardware->memory_count == 0)
        return err_set(why, ERR_BAD_VALUE, "%s: no memory stated in its hardware file",
                       hardware->id);
    const struct hardware_memory *memory = hardware_main_memory(hardware);
    struct rates_stated stated = rates_stated_or_assumed(hardware);
    look_up_products(hardware, out->format.products, out);
    look_up_others(hardware, is_gpu ? precision : out->format.products, out);
    out->bytes_per_s = rate_of(&memory->bytes_per_s);
    out->joules_per_byte = rate_of(&memory->joules_per_byte);
    out->capacity = memory->capacity_bytes.value;
    look_up_cache(hardware, out);
    out->compute_share = rate_of(&stated.compute_share);
    out->memory_share = rate_of(&stated.memory_share);
    out->launch_s = rate_of(&stated.launch_s);
    out->limit_w = rate_of(&hardware->limit_w);
    out->idle_w = rate_of(&hardware->idle_w);
    out->link_bytes_per_s = rate_of(&hardware->link_bytes_per_s);
    out->link_latency_s = rate_of(&hardware->link_latency_s);
    out->link =
        (struct collective_link){hardware->link_bytes_per_s.value, hardware->link_latency_s.value,
                                 hardware->link_peers.value, hardware->link_count.value};
    out->units = hardware->units.value;
    if (!is_positive(out->product_flops.value))
        return err_set(why, ERR_BAD_VALUE, "%s: no FLOP/s stated in %s or a wider precision",
                       hardware->id, precision_name(precision));
    if (!is_positive(out->bytes_per_s.value))
        return err_set(why, ERR_BAD_VALUE, "%s: no bandwidth stated for its memory %s",
                       hardware->id, memory->name);
    if (out->limit_w.value <= out->idle_w.value)
        return err_set(why, ERR_BAD_VALUE,
                       "%s: idle power of %g W is not below the power limit of %g W", hardware->id,
                       out->idle_w.value, out->limit_w.value);
    return ERR_OK;
}

void rates_quantize_activations(struct rates *rates)
{
    bool is_static = rates->runtime == RUNTIME_TENSORRT || rates->runtime == RUNTIME_ONNXRUNTIME;
    if (is_static && rates->format.products == PRECISION_INT8)
        rates->widths.activation = precision_widths(PRECISION_INT8).activation;
}

void rates_keep_stored(struct rates *rates, const struct graph_precision *file)
{
    const struct hardware *hardware = rates->hardware;
    bool is_gpu = hardware->class == HARDWARE_GPU;
    if (file->is_known) {
        enum precision floats =
            is_gpu ? file->floats : number_format(file->floats, rates->runtime, hardware).products;
        rates->widths = precision_widths(floats);
        look_up_others(rates->hardware, floats, rates);
    }
    if (is_gpu && file->is_known && file->products != file->floats) { /* not weight-only */
        look_up_products(rates->hardware, file->products, rates);
        rates->format.weight_ops = 0;
    }
    rates->widths.keeps_stored = true;
    if (is_gpu && rates->runtime == RUNTIME_LLAMA_CPP) /* its files are quantized */
        rates->format.weight_ops =
            number_format(PRECISION_INT4, rates->runtime, hardware).weight_ops;
}

/* Rates on the units for which the file quantizes this product: *own, or the unchanged rates. */
static const struct rates *rates_in_file(const struct rates *rates, const struct subgraph *subgraph,
                                         struct rates *own)
{
    if (!rates->widths.keeps_stored || !subgraph->has_precision)
        return rates;
    enum precision used = subgraph->precision;
    if (rates->hardware->class != HARDWARE_GPU)
        used = number_format(used, rates->runtime, rates->hardware).products;
    *own = *rates;
    look_up_products(rates->hardware, used, own);
    if (subgraph->component == DECODER_COMPONENT_COUNT) /* otherwise quantized within the kernel */
        own->widths.activation = precision_widths(used).activation;
    return is_positive(own->product_flops.value) ? own : rates;
}

/* ---- work of one device ---- */

/* Each device has either the complete input or the complete output of a sharded matrix, and a shard of the other.
 * Everything else is sharded by heads; there may be fewer KV heads than devices. */
static void shard(const struct subgraph *subgraph, const struct partition *partition, double in,
                  double out, double devices, struct roofline_work *work)
{
    struct estimate_traffic *traffic = &work->traffic;
    double heads = partition->heads_kv > 0 ? (double)partition->heads_kv : devices;
    work->macs /= devices;
    work->elementwise /= devices;
    work->weights /= devices;
    traffic->weights /= devices;
    traffic->cache_read /= fmin(devices, heads);
    traffic->cache_written /= fmin(devices, heads);
    if (!subgraph->is_row_parallel)
        work->outputs /= devices; /* heads or columns; of a partial sum each has all */
    if (subgraph->op != GRAPH_LINEAR || subgraph->is_by_head) {
        work->rows /= devices;
        traffic->activations /= devices;
        return;
    }
    traffic->activations = subgraph->is_row_parallel ? in / devices + out : in + out / devices;
}

struct roofline_work roofline_work(const struct subgraph *subgraph,
                                   const struct partition *partition, const struct rates *rates,
                                   int devices)
{
    const struct graph_cost *cost = &subgraph->cost;
    const struct precision_widths *widths = &rates->widths;
    struct precision_widths own = *widths;
    if (subgraph->component == DECODER_HEAD)
        own.weight = rates->format.head;
    double read = cost->in.cached * widths->cache, written = cost->out.cached * widths->cache;
    double in = graph_bytes(&cost->in, widths) - read;
    double out = graph_bytes(&cost->out, widths) - written;
    struct roofline_work work = {.macs = cost->macs,
                                 .elementwise = cost->elementwise,
                                 .outputs = subgraph->outputs,
                                 .rows = subgraph->rows,
                                 .weights = cost->weights.weights + cost->weights.stored_weights,
                                 .traffic = {.weights = graph_bytes(&cost->weights, &own),
                                             .activations = in + out,
                                             .cache_read = read,
                                             .cache_written = written}};
    if (devices > 1 && subgraph->is_sharded)
        shard(subgraph, partition, in, out, devices, &work);
    if (devices > 1) { /* an all-reduce is a reduce-scatter and an all-gather */
        work.all_reduced = subgraph->all_reduced * widths->activation;
        work.all_gathered = subgraph->all_gathered * widths->activation;
        work.traffic.link = (2 * work.all_reduced + work.all_gathered) * (devices - 1) / devices;
    }
    work.bytes = work.traffic.weights + work.traffic.activations + work.traffic.cache_read +
                 work.traffic.cache_written;
    return work;
}

/* ---- time ---- */

static bool is_conv(const struct subgraph *subgraph)
{
    return subgraph->op == GRAPH_CONV || subgraph->op == GRAPH_CONV_TRANSPOSE;
}

/* Wave quantization: work is distributed in tiles, as many at a time as there are units; in the last wave, and
 * for small work, units stay idle. */
static double wave_share(const struct subgraph *subgraph, const struct roofline_work *work,
                         double units)
{
    if (!is_known(units) || units <= 1 || work->outputs <= 0)
        return 1;
    double tiles = ceil(work->outputs / fmax(1, subgraph->steps) / PIECE_ELEMENTS);
    if (graph_op_kind(subgraph->op) == GRAPH_KIND_PRODUCT && work->rows > 0)
        tiles = ceil(work->rows / TILE_SIDE) * ceil(work->outputs / work->rows / TILE_SIDE);
    double waves = ceil(tiles / units);
    return tiles / (waves * units);
}

static enum estimate_bound bound_of(const struct subgraph_estimate *row)
{
    const double times[BOUND_BALANCED] = {[BOUND_COMPUTE] = row->compute_s,
                                          [BOUND_MEMORY] = row->memory_s,
                                          [BOUND_LAUNCH] = row->launch_s,
                                          [BOUND_LINK] = row->link_s};
    int largest = 0;
    double second = 0;
    for (int i = 1; i < BOUND_BALANCED; i++)
        if (times[i] > times[largest])
            largest = i;
    for (int i = 0; i < BOUND_BALANCED; i++)
        if (i != largest && times[i] > second)
            second = times[i];
    return times[largest] > BALANCED_BAND * second ? (enum estimate_bound)largest : BOUND_BALANCED;
}

double roofline_product_flops(const struct subgraph *subgraph, const struct rates *rates)
{
    return is_conv(subgraph) ? rates->conv_flops.value : rates->product_flops.value;
}

static double utilization_of(const struct subgraph *subgraph, const struct roofline_work *work,
                             const struct rates *rates, double latency_s)
{
    double busy = 2 * work->macs / roofline_product_flops(subgraph, rates) +
                  work->elementwise / rates->other_flops.value;
    return latency_s > 0 ? busy / latency_s : 0;
}

/* Ignores the power limit; row->wave_share and row->link_s must be set. */
static void estimate_time(const struct subgraph *subgraph, const struct roofline_work *work,
                          const struct rates *rates, struct subgraph_estimate *row)
{
    double reached = rates->compute_share.value * row->wave_share;
    row->compute_s = utilization_of(subgraph, work, rates, 1) / reached;
    row->memory_s = work->bytes / (rates->bytes_per_s.value * rates->memory_share.value);
    row->launch_s = fmax(1, subgraph->steps) * rates->launch_s.value;
    row->latency_s = fmax(row->compute_s, row->memory_s) + row->launch_s + row->link_s;
    row->launches = 1;
    row->utilization = utilization_of(subgraph, work, rates, row->latency_s);
    row->bound = bound_of(row);
}

static struct kernel_estimate kernels_of(const struct subgraph *subgraph,
                                         const struct roofline_work *work,
                                         const struct rates *rates)
{
    if (rates->runtime == RUNTIME_ONNXRUNTIME && rates->hardware->class == HARDWARE_CPU)
        return cpu_kernel_estimate(subgraph, work, rates);
    if (rates->timings)
        return timed_kernel_estimate(subgraph, work, rates);
    return kernel_estimate(subgraph, work, rates);
}

/* The same with the kernels of a runtime; the launch time is the remainder beyond the larger of the two. */
static struct kernel_estimate estimate_kernels(const struct subgraph *subgraph,
                                               const struct roofline_work *work,
                                               const struct rates *rates,
                                               struct subgraph_estimate *row)
{
    struct kernel_estimate kernels = kernels_of(subgraph, work, rates);
    double busy_s = fmin(fmax(kernels.compute_s, kernels.memory_s), kernels.latency_s);
    row->compute_s = fmin(kernels.compute_s, kernels.latency_s);
    row->memory_s = fmin(kernels.memory_s, kernels.latency_s);
    row->launch_s = kernels.latency_s - busy_s;
    row->latency_s = kernels.latency_s + row->link_s;
    row->launches = kernels.launches;
    row->utilization = utilization_of(subgraph, work, rates, row->latency_s);
    row->bound = bound_of(row);
    return kernels;
}

static struct estimate_joules joules_of(const struct subgraph *subgraph,
                                        const struct roofline_work *work, const struct rates *rates)
{
    double per_byte = rates->joules_per_byte.value;
    double per_operation = rates->product_joules.value;
    if (subgraph->op == GRAPH_SCAN && !subgraph->shape.is_chunked)
        per_operation = rates->other_joules.value;
    else if (is_conv(subgraph))
        per_operation = rates->conv_joules.value;
    struct estimate_joules one = {
        .compute = 2 * work->macs * per_operation,
        .memory = work->bytes * per_byte,
        .link = work->traffic.link > 0 ? ROOFLINE_LINK_ENDS * work->traffic.link * per_byte : 0,
    };
    if (work->elementwise > 0)
        one.compute += work->elementwise * rates->other_joules.value;
    return one;
}

/* If all tensors of a kernel fit into the usable share of the cache, activations are read from it, since the previous
 * kernel wrote them.  Weights are not: the rest of the model was read since.  Results are written back. */
#define CACHE_SHARE 0.25
#define READ_SHARE  0.5 /* of activations, approximately; the others are results */

static double saved_by_cache(const struct roofline_work *work, const struct rates *rates)
{
    double less = rates->joules_per_byte.value - rates->cache_joules;
    bool fits = work->bytes <= CACHE_SHARE * rates->cache_bytes && less > 0;
    return fits ? READ_SHARE * work->traffic.activations * less : 0;
}

/* Power available above idle; UNKNOWN: no limit stated. */
static double max_w(const struct rates *rates)
{
    return rates->limit_w.value - rates->idle_w.value;
}

static void set_joules(struct estimate_joules one, const struct rates *rates, int devices,
                       struct subgraph_estimate *row)
{
    one.idle = rates->idle_w.value * row->latency_s;
    row->joules = (struct estimate_joules){
        .compute = devices * one.compute,
        .memory = devices * one.memory,
        .link = devices * one.link,
        .idle = devices * one.idle,
        .total = devices * (one.compute + one.memory + one.link + one.idle)};
}

/* Stretches the time to the power limit.  Comparisons with an unknown limit or unknown joules are false, and nothing is
 * stretched. */
static void stretch(const struct subgraph *subgraph, const struct estimate_joules *one,
                    const struct roofline_work *work, const struct rates *rates,
                    struct subgraph_estimate *row)
{
    double min_s = (one->compute + one->memory + one->link) / max_w(rates);
    if (!(min_s > row->latency_s))
        return;
    row->stretch = min_s / row->latency_s;
    row->latency_s = min_s;
    row->utilization = utilization_of(subgraph, work, rates, min_s);
}

/* Where the limit binds, clocks and voltage decrease: an operation then costs less energy, down to this share, and
 * kernels were timed under these conditions.  Below it they take longer. */
#define JOULES_SHARE_MIN 0.6

struct roofline_limit roofline_limit(const struct rates *rates, double active_j, double latency_s)
{
    struct roofline_limit limit = {1, 1};
    double share = max_w(rates) * latency_s / active_j;
    if (!rates->has_kernels || !(share < 1))
        return limit;
    limit.joules = fmax(share, JOULES_SHARE_MIN);
    limit.time = limit.joules / share;
    return limit;
}

void roofline_apply_limit(const struct rates *rates, const struct roofline_limit *limit,
                          int devices, struct subgraph_estimate *row)
{
    struct estimate_joules one = {.compute = row->joules.compute * limit->joules / devices,
                                  .memory = row->joules.memory * limit->joules / devices,
                                  .link = row->joules.link * limit->joules / devices};
    row->stretch *= fmax(1, limit->time);
    row->latency_s *= limit->time;
    row->utilization /= limit->time;
    if (limit->time < 1) { /* none of its parts takes longer than it */
        row->utilization = fmin(1, row->utilization);
        row->compute_s *= limit->time;
        row->memory_s *= limit->time;
        row->launch_s *= limit->time;
        row->link_s *= limit->time;
    }
    set_joules(one, rates, devices, row);
}

/* Logits of every token of a prompt, where the model needs only those of the last. */
static void widen_head(const struct subgraph *subgraph, const struct rates *rates,
                       struct roofline_work *work)
{
    double times = subgraph->shape.tokens / fmax(1, work->rows);
    if (!runtime_at(rates->runtime)->has_all_logits || subgraph->op != GRAPH_LINEAR || !(times > 1))
        return;
    work->macs *= times;
    work->rows *= times;
    work->outputs *= times;
    work->bytes += work->traffic.activations * (times - 1);
}

void roofline_wait(const struct rates *rates, double wait_s, int devices,
                   struct subgraph_estimate *row)
{
    double idle_j = devices * rates->idle_w.value * wait_s;
    row->launch_s += wait_s;
    row->utilization *= row->latency_s / (row->latency_s + wait_s);
    row->latency_s += wait_s;
    row->joules.idle += idle_j;
    row->joules.total += idle_j;
    row->bound = bound_of(row);
}

void roofline_estimate(const struct subgraph *subgraph, const struct roofline_work *work,
                       const struct rates *given, int devices, struct subgraph_estimate *out)
{
    struct rates own;
    const struct rates *rates = rates_in_file(given, subgraph, &own);
    struct roofline_work all = *work;
    struct estimate_joules joules;
    double cached_bytes = 0;
    widen_head(subgraph, rates, &all);
    out->stretch = 1;
    out->wave_share = wave_share(subgraph, work, rates->units);
    out->link_s = collective_all_reduce_s(&rates->link, work->all_reduced, devices) +
                  collective_all_gather_s(&rates->link, work->all_gathered, devices);
    if (!rates->has_kernels) {
        estimate_time(subgraph, work, rates, out);
        joules = joules_of(subgraph, work, rates);
        stretch(subgraph, &joules, work, rates, out);
    } else {
        struct kernel_estimate kernels = estimate_kernels(subgraph, &all, rates, out);
        all.bytes += kernels.more_bytes;
        cached_bytes = kernels.cached_bytes;
        all.macs *= kernels.padding;
        joules = joules_of(subgraph, &all, rates);
        joules.memory -= saved_by_cache(work, rates);
        joules.compute += kernels.active_j;
    }
    set_joules(joules, rates, devices, out);
    out->flops = devices * (2 * work->macs + work->elementwise);
    out->bytes = devices * all.bytes;
    out->cached_bytes = devices * cached_bytes;
}
