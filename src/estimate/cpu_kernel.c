/* Times of operations on a CPU.
 *
 * llama.cpp: interpolated between timed operations of the nearest sizes, in the logarithm of each size and of the time
 * per unit of work; outside the timed range the time per unit is constant.  Products with weights depend on their
 * format, on the tokens that share a weight, on the size of the matrix and, since weights come from the memory that
 * holds them all, on the size of the model.
 *
 * ONNX Runtime: in the same way from timed operators, if there are any, else as shares of the processor's attained
 * multiply-add rate and of the bandwidth of the cache or memory that the operands fit in.  It executes nearly every
 * operator separately, so activations pass through the caches repeatedly.  The shares were measured with single
 * operators on one processor (docs/measurements.md, "Models on a CPU"). */
#include <math.h>
#include <string.h>

#include "estimate/dataflow.h"
#include "core/text.h"
#include "estimate/roofline.h"
#include "graph/gguf.h"

enum {
    AXES = 3,
    FEW_TOKENS = 8, /* with fewer, reading the weights dominates */
    TYPES_MAX = 64,
};

#define HOST_S 0.6e-6 /* time of llama.cpp to prepare an operation: measured on one machine */

/* A lookup; unused axes are 0. */
struct lookup {
    const struct hardware_timings *timings;
    enum timing_op op;
    const char *format;
    double at[AXES];
};

/* ---- llama.cpp: timed operations ---- */

static double axis_of(const struct hardware_timing *timing, int axis)
{
    if (axis == 0)
        return timing->rows;
    switch (timing->op) {
    case TIMING_ATTENTION:
        return axis == 1 ? timing->context : timing->depth;
    case TIMING_DEPTHWISE_CONV:
        return axis == 1 ? timing->context : 0;
    case TIMING_PRODUCT:
    case TIMING_CONV:
    case TIMING_POINT_CONV:
    case TIMING_IMAGE_CONV:
    case TIMING_LINE_CONV:
    case TIMING_LSTM:
        return axis == 1 ? sqrt(timing->depth * timing->columns) : timing->held;
    default:
        return 0;
    }
}

/* Pairs of queries and keys in causal attention, including the query's own token. */
static double pairs_of(double rows, double context)
{
    return rows * (context - (rows - 1) / 2);
}

static double work_of(const struct hardware_timing *timing)
{
    if (timing->op >= TIMING_PRODUCT && timing->op <= TIMING_DEPTHWISE_CONV)
        return timing->rows * timing->depth * timing->columns * fmax(1, timing->context);
    if (timing->op == TIMING_LSTM) /* four gates, each with input and state matrices */
        return 8 * timing->rows * timing->depth * timing->columns;
    if (timing->op == TIMING_ATTENTION)
        return pairs_of(timing->rows, timing->context) * timing->columns;
    return fmax(1, timing->rows * timing->depth);
}

static bool is_candidate(const struct lookup *lookup, const struct hardware_timing *timing,
                         int axis, const double *fixed)
{
    if (timing->op != lookup->op ||
        (lookup->format && (!timing->format || !str_equal(timing->format, lookup->format))))
        return false;
    for (int i = 0; i < axis; i++)
        if (axis_of(timing, i) != fixed[i])
            return false;
    return true;
}

/* Seconds per unit of work; the axes before `axis` are fixed at timed sizes.  UNKNOWN without any. */
static double interpolate(const struct lookup *lookup, int axis, double *fixed)
{
    double below = -INFINITY;
    double above = INFINITY;
    double at = lookup->at[axis < AXES ? axis : 0];
    for (size_t i = 0; i < lookup->timings->count; i++) {
        const struct hardware_timing *timing = &lookup->timings->items[i];
        if (!is_candidate(lookup, timing, axis, fixed))
            continue;
        if (axis == AXES)
            return timing->seconds / work_of(timing);
        double key = axis_of(timing, axis);
        if (key <= at)
            below = fmax(below, key);
        if (key >= at)
            above = fmin(above, key);
    }
    if (isinf(below) && isinf(above))
        return UNKNOWN;
    fixed[axis] = isinf(below) ? above : below;
    double low = interpolate(lookup, axis + 1, fixed);
    if (isinf(below) || isinf(above) || above == below)
        return low;
    fixed[axis] = above;
    double high = interpolate(lookup, axis + 1, fixed);
    return low * pow(high / low, log(at / below) / log(above / below));
}

static double per_unit_s(const struct lookup *lookup)
{
    double fixed[AXES + 1] = {0};
    return interpolate(lookup, 0, fixed);
}

static double single_s(const struct hardware_timings *timings, enum timing_op op)
{
    for (size_t i = 0; i < timings->count; i++)
        if (timings->items[i].op == op)
            return timings->items[i].seconds;
    return 0;
}

double timed_pass_s(const struct hardware_timings *timings)
{
    return single_s(timings, TIMING_PASS);
}

/* ---- formats ---- */

static double bits_of(const char *format)
{
    for (uint32_t i = 0; i < TYPES_MAX; i++) {
        const struct tensor_type *type = tensor_type_numbered(i);
        if (type && str_equal(type->name, format))
            return 8.0 * type->block_bytes / type->block_elements;
    }
    return UNKNOWN;
}

/* The timed format of these weights, else the one with the nearest number of bits. */
static const char *format_of(const struct subgraph *subgraph, const struct rates *rates,
                             double bits)
{
    const struct hardware_timings *timings = rates->timings;
    const struct tensor_type *stored =
        rates->widths.keeps_stored && subgraph->shape.stored_type > 0
            ? tensor_type_numbered((uint32_t)subgraph->shape.stored_type - 1)
            : NULL;
    const char *nearest = NULL;
    double min = INFINITY;
    if (stored)
        bits = 8.0 * stored->block_bytes / stored->block_elements;
    for (size_t i = 0; i < timings->count; i++) {
        const char *format = timings->items[i].format;
        if (!format)
            continue;
        if (stored && str_equal(stored->name, format))
            return format;
        double off = fabs(log(bits_of(format) / bits));
        if (off < min) {
            min = off;
            nearest = format;
        }
    }
    return nearest;
}

/* ---- subgraphs ---- */

static double product_s(const struct subgraph *subgraph, const struct roofline_work *work,
                        const struct rates *rates)
{
    double rows = fmax(1, work->rows), outputs = fmax(1, work->outputs);
    double depth = work->macs / outputs, columns = outputs / rows;
    double stored = work->traffic.weights > 0 ? work->traffic.weights : 4 * depth * columns;
    struct lookup lookup = {
        .timings = rates->timings,
        .op = TIMING_PRODUCT,
        .format = format_of(subgraph, rates, 8 * stored / fmax(1, depth * columns)),
        .at = {rows, sqrt(fmax(1, depth * columns)), fmax(rates->held, stored)},
    };
    return work->macs * per_unit_s(&lookup);
}

static double attention_s(const struct subgraph *subgraph, const struct roofline_work *work,
                          const struct rates *rates)
{
    const struct subgraph_shape *shape = &subgraph->shape;
    double rows = fmax(1, shape->tokens), queries = rows * fmax(1, shape->sequences);
    double heads = fmax(1, shape->heads), size = fmax(1, work->outputs / (queries * heads));
    double pairs = work->macs / (2 * size * heads);
    struct lookup lookup = {
        .timings = rates->timings,
        .op = TIMING_ATTENTION,
        .at = {rows, pairs / queries + (rows - 1) / 2, size},
    };
    return pairs * heads * per_unit_s(&lookup);
}

static enum timing_op chain_op(enum graph_op op)
{
    switch (graph_op_kind(op)) {
    case GRAPH_KIND_NORM:
    case GRAPH_KIND_SOFTMAX:
        return TIMING_NORM;
    case GRAPH_KIND_ACTIVATION:
        return TIMING_GATE;
    default:
        return op == GRAPH_ROTATION ? TIMING_ROTATION : TIMING_ADD;
    }
}

/* The fixed time of an operation is in each; the remainder scales with the elements of a row. */
static double chain_s(const struct subgraph *subgraph, const struct roofline_work *work,
                      const struct rates *rates)
{
    double rows = fmax(1, work->rows), step = single_s(rates->timings, TIMING_STEP);
    struct lookup lookup = {
        .timings = rates->timings, .op = chain_op(subgraph->op), .at = {rows, 0, 0}};
    double took = work->outputs * per_unit_s(&lookup);
    return fmax(step, took);
}

struct kernel_estimate timed_kernel_estimate(const struct subgraph *subgraph,
                                             const struct roofline_work *work,
                                             const struct rates *rates)
{
    enum graph_kind kind = graph_op_kind(subgraph->op);
    bool is_product =
        (kind == GRAPH_KIND_PRODUCT && subgraph->op != GRAPH_SCAN) || kind == GRAPH_KIND_RECURRENT;
    double took = 0;
    if (subgraph->op == GRAPH_ATTENTION)
        took = attention_s(subgraph, work, rates);
    else
        took = is_product ? product_s(subgraph, work, rates) : chain_s(subgraph, work, rates);
    double moved = fmin(took, work->bytes / rates->bytes_per_s.value);
    bool is_moving = !is_product || work->rows < FEW_TOKENS;
    return (struct kernel_estimate){
        .class = is_product ? KERNEL_GEMM : KERNEL_ELEMENTWISE,
        .launches = 1,
        .compute_s = is_moving ? 0 : took,
        .memory_s = is_moving ? took : moved,
        .latency_s = took + HOST_S,
        .padding = 1,
    };
}

enum { FEW_CHANNELS = 4, FEW_ROWS = 16 };
#define OPERATOR_S 1.8e-6 /* fixed time of an operator */
#define DIVIDED_S                                                                                  \
    40e-6 /* on one thread: shorter operators other than products are not parallelized */
#define PARALLEL_SHARE  0.80 /* parallel efficiency of operators other than products */
#define BARRIER_SHARE   0.5  /* relative to a barrier of all threads */
#define CONV_SHARE      0.72 /* share of the peak multiply-add rate */
#define POINT_SHARE     0.64 /* for 1 x 1 convolutions */
#define IMAGE_SHARE     0.27
#define NARROW_SHARE    0.14 /* for convolutions with fewer channels than a block of the layout */
#define GROUPED_SHARE   0.35 /* also depthwise */
#define PRODUCT_SHARE   0.65
#define FEW_SHARE       0.34 /* for products with few rows */
#define STEP_SHARE      0.27 /* for recurrent layers */
#define OTHER_SHARE     0.07 /* for everything else: exponentials, divisions, sums */
#define NEAR_SHARE      0.47 /* share of the bandwidth of the first cache */
#define CACHE_SHARE     0.88 /* share of the bandwidth of other caches; memory bandwidth is attained */
#define RESIDENT_FACTOR 1.5 /* times the measured working set of the first cache: still resident */
#define EVICTED_FACTOR  4.0 /* nothing is resident when read again */
#define LEAVING                                                                                    \
    1.3 /* bytes of an operator with a constant, which converts from the blocked layout of convolutions */

/* ---- ONNX Runtime: memory ---- */

/* Memory traffic of an operator. */
struct moved {
    double seconds, from_memory; /* bytes not in any cache */
};

/* Bytes that are reused after `held` other bytes: read from the nearest cache after the first that is large enough for
 * them, else from memory; a working set larger than the first cache is partly read from it. */
static struct moved move(const struct rates *rates, double bytes, double held)
{
    const struct hardware *hardware = rates->hardware;
    const struct hardware_memory *near = &hardware->memories[0];
    double far_bytes_per_s = rates->bytes_per_s.value * rates->memory_share.value, beyond = 1;
    bool is_cached = false;
    for (size_t i = 1; !is_cached && i + 1 < hardware->memory_count; i++) {
        const struct hardware_memory *cache = &hardware->memories[i];
        is_cached = is_known(cache->bytes_per_s.value) && held <= cache->capacity_bytes.value;
        far_bytes_per_s = is_cached ? CACHE_SHARE * cache->bytes_per_s.value : far_bytes_per_s;
    }
    struct moved out = {.seconds = bytes / far_bytes_per_s};
    if (hardware->memory_count > 1 && near->bytes_per_s.value > 0 &&
        near->capacity_bytes.value > 0) {
        double times = fmax(held / near->capacity_bytes.value, RESIDENT_FACTOR);
        beyond = fmin(log(times / RESIDENT_FACTOR) / log(EVICTED_FACTOR / RESIDENT_FACTOR), 1);
        out.seconds =
            (1 - beyond) * bytes / (NEAR_SHARE * near->bytes_per_s.value) + beyond * out.seconds;
    }
    out.from_memory = is_cached ? 0 : beyond * bytes;
    return out;
}

/* Weights are reused after all others of the model, activations by the next operator. */
static struct moved move_operands(const struct rates *rates, const struct roofline_work *work)
{
    double weights = work->traffic.weights;
    struct moved out = move(rates, work->bytes - weights, work->bytes);
    struct moved of_weights = move(rates, weights, fmax(rates->held, work->bytes));
    out.seconds += of_weights.seconds;
    out.from_memory += of_weights.from_memory;
    return out;
}

/* ---- arithmetic ---- */

static double product_share(const struct subgraph *subgraph, const struct roofline_work *work)
{
    const struct subgraph_shape *shape = &subgraph->shape;
    bool is_conv = subgraph->op == GRAPH_CONV || subgraph->op == GRAPH_CONV_TRANSPOSE;
    if (graph_op_kind(subgraph->op) == GRAPH_KIND_RECURRENT)
        return STEP_SHARE;
    if (!is_conv)
        return work->rows < FEW_ROWS ? FEW_SHARE : PRODUCT_SHARE;
    if (shape->groups > 1)
        return GROUPED_SHARE;
    if (shape->channels <= FEW_CHANNELS)
        return IMAGE_SHARE;
    if (shape->channels < BLOCK_CHANNELS)
        return NARROW_SHARE;
    return shape->taps > 1 ? CONV_SHARE : POINT_SHARE;
}

static double compute_s(const struct subgraph *subgraph, const struct roofline_work *work,
                        const struct rates *rates)
{
    double peak = rates->product_flops.value * rates->compute_share.value;
    double others = rates->other_flops.value * rates->compute_share.value;
    double took = work->macs > 0 ? 2 * work->macs / (product_share(subgraph, work) * peak) : 0;
    if (work->elementwise > 0 && is_known(others))
        took += work->elementwise / (OTHER_SHARE * others);
    return took;
}

static double threads_of(const struct rates *rates)
{
    const struct hardware_timings *timings = &rates->hardware->timings[0];
    return rates->hardware->timing_count && timings->threads > 1 ? timings->threads : 1;
}

/* Rates are those of all threads.  Products are always parallelized, with a barrier at the end of an operator; a file
 * for one thread has no launch time. */
static double divided_s(const struct rates *rates, double all_s, bool is_product)
{
    double threads = threads_of(rates), alone_s = all_s * threads;
    const struct hardware_figure *launch = &rates->hardware->launch_s;
    double barrier_s = is_known(launch->value) ? BARRIER_SHARE * launch->value : 0;
    if (threads > 1 && !is_product && alone_s < DIVIDED_S)
        return alone_s;
    return alone_s / (1 + PARALLEL_SHARE * (threads - 1)) + barrier_s;
}

/* ---- ONNX Runtime: timed operators ---- */

enum { ADD_BYTES = 12, SCALE_BYTES = 8 }; /* bytes moved per element */
#define COLD_STEPS 4.0 /* fixed time of an operator among others, in those timed back to back */

static double timed_s(const struct rates *rates, enum timing_op op, double rows, double size)
{
    struct lookup lookup = {.timings = rates->timings, .op = op, .at = {rows, size, 0}};
    return per_unit_s(&lookup);
}

/* The blocked layout of convolutions pads channels. */
static double padded(double channels)
{
    return BLOCK_CHANNELS * ceil(channels / BLOCK_CHANNELS);
}

static double conv_s(const struct subgraph *subgraph, const struct roofline_work *work,
                     const struct rates *rates)
{
    const struct subgraph_shape *shape = &subgraph->shape;
    double rows = fmax(1, work->rows);
    double outputs = fmax(1, work->outputs);
    double taps = fmax(1, shape->taps);
    double columns = outputs / rows, depth = work->macs / (outputs * taps);
    double along = timed_s(rates, TIMING_LINE_CONV, shape->positions, sqrt(depth * columns));
    if (shape->window_rank == 1 && shape->groups <= 1 && is_known(along))
        return work->macs * along; /* sample by sample */
    if (shape->groups > 1 && depth <= 1)
        return work->macs * timed_s(rates, TIMING_DEPTHWISE_CONV, rows, taps);
    if (shape->groups > 1) {
        columns /= shape->groups;
        double each = timed_s(rates, taps > 1 ? TIMING_CONV : TIMING_POINT_CONV, rows,
                              sqrt(padded(depth) * padded(columns)));
        return work->macs * padded(depth) / depth * padded(columns) / columns * each;
    }
    double more = padded(columns) / columns;
    if (depth < BLOCK_CHANNELS)
        return work->macs * more *
               timed_s(rates, TIMING_IMAGE_CONV, rows, sqrt(depth * padded(columns)));
    return work->macs * more * padded(depth) / depth *
           timed_s(rates, taps > 1 ? TIMING_CONV : TIMING_POINT_CONV, rows,
                   sqrt(padded(depth) * padded(columns)));
}

/* A recurrent layer reads the weights of its state, half of all weights, in every step. */
static double state_s(const struct subgraph *subgraph, const struct roofline_work *work,
                      const struct rates *rates)
{
    return fmax(1, subgraph->steps) *
           move(rates, work->traffic.weights / 2, work->traffic.weights / 2).seconds;
}

static double timed_product_s(const struct subgraph *subgraph, const struct roofline_work *work,
                              const struct rates *rates)
{
    double rows = fmax(1, work->rows), outputs = fmax(1, work->outputs);
    if (subgraph->op == GRAPH_CONV || subgraph->op == GRAPH_CONV_TRANSPOSE)
        return conv_s(subgraph, work, rates);
    if (graph_op_kind(subgraph->op) == GRAPH_KIND_RECURRENT) {
        double each = timed_s(rates, TIMING_LSTM, rows, sqrt(work->traffic.weights / 32));
        return fmax(work->macs * each, state_s(subgraph, work, rates));
    }
    double depth = work->macs / outputs, columns = outputs / rows;
    return work->macs * timed_s(rates, TIMING_PRODUCT, rows, sqrt(fmax(1, depth * columns)));
}

/* One operand, and arithmetic that takes no longer than reading it. */
static bool is_plain(enum graph_op op)
{
    return op == GRAPH_CLIP || op == GRAPH_RELU || op == GRAPH_LEAKY_RELU || op == GRAPH_BATCH_NORM;
}

static double timed_move_s(const struct subgraph *subgraph, const struct roofline_work *work,
                           const struct rates *rates)
{
    enum graph_kind kind = graph_op_kind(subgraph->op);
    if ((kind == GRAPH_KIND_ACTIVATION && !is_plain(subgraph->op)) || kind == GRAPH_KIND_SOFTMAX) {
        double elements = fmax(1, work->outputs);
        return elements * timed_s(rates, TIMING_SIGMOID, elements, 0);
    }
    if (subgraph->op == GRAPH_LRN && is_known(timed_s(rates, TIMING_LRN, work->outputs, 0)))
        return work->outputs * timed_s(rates, TIMING_LRN, work->outputs, 0);
    bool is_one = kind == GRAPH_KIND_ELEMENTWISE &&
                  work->bytes < (ADD_BYTES + SCALE_BYTES) / 2.0 * work->outputs;
    bool is_scaling = is_plain(subgraph->op) || is_one;
    double elements = fmax(1, work->bytes / (is_scaling ? SCALE_BYTES : ADD_BYTES));
    return elements * timed_s(rates, is_scaling ? TIMING_SCALE : TIMING_ADD, elements, 0);
}

/* Conversion of its operands from or to the blocked layout of convolutions. */
static double reorder_s(const struct subgraph *subgraph, const struct rates *rates)
{
    double elements = subgraph->shape.reordered;
    double each = elements > 0 ? timed_s(rates, TIMING_REORDER, elements, 0) : 0;
    return is_known(each) ? elements * each : 0; /* not timed by older versions */
}

static struct kernel_estimate timed_operator_estimate(const struct subgraph *subgraph,
                                                      const struct roofline_work *work,
                                                      const struct rates *rates)
{
    bool is_product = work->macs > 0;
    double took =
        is_product ? timed_product_s(subgraph, work, rates) : timed_move_s(subgraph, work, rates);
    struct moved moved = move_operands(rates, work);
    /* Operators were timed with weights resident in caches. */
    took = fmax(took, fmin(moved.from_memory, work->traffic.weights) / rates->bytes_per_s.value);
    took += COLD_STEPS * single_s(rates->timings, TIMING_STEP) + reorder_s(subgraph, rates);
    return (struct kernel_estimate){
        .class = is_product ? KERNEL_GEMM : KERNEL_ELEMENTWISE,
        .launches = 1,
        .compute_s = is_product ? took : 0,
        .memory_s = is_product ? fmin(took, work->bytes / rates->bytes_per_s.value) : took,
        .latency_s = took,
        .padding = 1,
        .cached_bytes = work->bytes - moved.from_memory,
    };
}

struct kernel_estimate cpu_kernel_estimate(const struct subgraph *subgraph,
                                           const struct roofline_work *work,
                                           const struct rates *rates)
{
    struct kernel_estimate out = {
        .class = KERNEL_ELEMENTWISE, .padding = 1, .cached_bytes = work->bytes};
    if (subgraph->shape.is_folded)
        return out;
    if (rates->timings)
        return timed_operator_estimate(subgraph, work, rates);
    bool is_leaving =
        graph_op_kind(subgraph->op) == GRAPH_KIND_ELEMENTWISE && subgraph->shape.is_broadcast;
    out.compute_s = compute_s(subgraph, work, rates);
    struct moved moved = move_operands(rates, work);
    out.cached_bytes -= moved.from_memory;
    out.memory_s = moved.seconds * (is_leaving ? LEAVING : 1);
    if (graph_op_kind(subgraph->op) == GRAPH_KIND_RECURRENT)
        out.memory_s = fmax(out.memory_s, state_s(subgraph, work, rates));
    out.latency_s = divided_s(rates, fmax(out.compute_s, out.memory_s), work->macs > 0) +
                    OPERATOR_S * fmax(1, subgraph->steps);
    return out;
}
