/* Times of operations on a CPU.
 *
 * llama.cpp: from operations that were timed there, interpolated between the nearest sizes, in the logarithm of each size
 * and of the time per unit of work; beyond the sizes timed it is the time per unit of the last.  Products by weights depend
 * on their format, on the tokens that share a weight, on the size of the matrix and, since weights come from whichever
 * memory holds them all, on the bytes of the model.
 *
 * ONNX Runtime: in the same way from its operators where they were timed, else as shares of what the processor attains, its multiply-adds and the bandwidth of the cache or memory that
 * the operands fit in.  It computes nearly every operator by itself, so that activations are moved through the caches
 * again and again.  The shares were measured with single operators on one processor (docs/measurements.md, "Models on a
 * CPU"). */
#include <math.h>
#include <string.h>

#include "estimate/roofline.h"
#include "graph/gguf.h"

enum {
    AXES = 3,
    FEW_TOKENS = 8, /* with fewer, weights are the work */
    TYPES_MOST = 64,
};

#define HOST_S 0.6e-6 /* of llama.cpp, to prepare an operation: measured on one machine */

/* What is looked up; axes beyond those of its operation are 0. */
struct lookup {
    const struct hardware_timings *timings;
    enum timing_op op;
    const char *format;
    double at[AXES];
};

/* ---- llama.cpp: operations that were timed ---- */

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
    case TIMING_LSTM:
        return axis == 1 ? sqrt(timing->depth * timing->columns) : timing->held;
    default:
        return 0;
    }
}

/* Pairs of queries and earlier tokens, themselves included. */
static double pairs_of(double rows, double context)
{
    return rows * (context - (rows - 1) / 2);
}

static double work_of(const struct hardware_timing *timing)
{
    if (timing->op >= TIMING_PRODUCT && timing->op <= TIMING_DEPTHWISE_CONV)
        return timing->rows * timing->depth * timing->columns * fmax(1, timing->context);
    if (timing->op == TIMING_LSTM) /* four gates of the input and of the state */
        return 8 * timing->rows * timing->depth * timing->columns;
    if (timing->op == TIMING_ATTENTION)
        return pairs_of(timing->rows, timing->context) * timing->columns;
    return fmax(1, timing->rows * timing->depth);
}

static bool is_candidate(const struct lookup *lookup, const struct hardware_timing *timing,
                         int axis, const double *fixed)
{
    if (timing->op != lookup->op ||
        (lookup->format && (!timing->format || strcmp(timing->format, lookup->format) != 0)))
        return false;
    for (int i = 0; i < axis; i++)
        if (axis_of(timing, i) != fixed[i])
            return false;
    return true;
}

/* Seconds per unit of work; the axes before `axis` are fixed at sizes that were timed.  UNKNOWN without any. */
static double interpolate(const struct lookup *lookup, int axis, double *fixed)
{
    double below = -INFINITY, above = INFINITY, at = lookup->at[axis < AXES ? axis : 0];
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
    for (uint32_t i = 0; i < TYPES_MOST; i++) {
        const struct tensor_type *type = tensor_type_numbered(i);
        if (type && !strcmp(type->name, format))
            return 8.0 * type->block_bytes / type->block_elements;
    }
    return UNKNOWN;
}

/* The timed format that these weights are in, else the one with the nearest number of bits. */
static const char *format_of(const struct subgraph *subgraph, const struct rates *rates,
                             double bits)
{
    const struct hardware_timings *timings = rates->timings;
    const struct tensor_type *stored =
        rates->widths.keeps_stored && subgraph->shape.stored_type > 0
            ? tensor_type_numbered((uint32_t)subgraph->shape.stored_type - 1)
            : NULL;
    const char *nearest = NULL;
    double least = INFINITY;
    if (stored)
        bits = 8.0 * stored->block_bytes / stored->block_elements;
    for (size_t i = 0; i < timings->count; i++) {
        const char *format = timings->items[i].format;
        if (!format)
            continue;
        if (stored && !strcmp(stored->name, format))
            return format;
        double off = fabs(log(bits_of(format) / bits));
        if (off < least) {
            least = off;
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

/* What an operation takes without any work is in each; the rest follows the elements of a row. */
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
    double took = subgraph->op == GRAPH_ATTENTION ? attention_s(subgraph, work, rates)
                  : is_product                    ? product_s(subgraph, work, rates)
                                                  : chain_s(subgraph, work, rates);
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

enum { FEW_CHANNELS = 4, BLOCK_CHANNELS = 16, FEW_ROWS = 16 };
#define OPERATOR_S 1.8e-6 /* of an operator, whatever its work */
#define DIVIDED_S                                                                                  \
    40e-6 /* on one thread: a shorter operator that is no product is not divided among threads */
#define DIVIDED_SHARE 0.80 /* that threads gain of what they could, where they divide one */
#define MEETING_SHARE 0.5  /* of what a meeting of all threads takes */
#define CONV_SHARE    0.72 /* of the peak of multiply-adds */
#define POINT_SHARE   0.64 /* of convolutions of 1 x 1 */
#define IMAGE_SHARE   0.27
#define NARROW_SHARE  0.14 /* of convolutions of fewer channels than a block of the layout */
#define GROUPED_SHARE 0.35 /* depthwise too */
#define PRODUCT_SHARE 0.65
#define FEW_SHARE     0.34 /* of products of few rows */
#define STEP_SHARE    0.27 /* of recurrent layers */
#define OTHER_SHARE   0.07 /* of everything else: exponentials, divisions, sums */
#define NEAR_SHARE    0.47 /* of the bandwidth of the first cache */
#define CACHE_SHARE   0.88 /* of that of the others; memory is attained */
#define NEAR_WHOLE    1.5  /* times what the first cache was measured with: it still holds them */
#define NEAR_NONE     4.0  /* it holds nothing of them when they are read again */
#define LEAVING                                                                                    \
    1.3 /* bytes of an operator by a constant, which leaves the blocked layout of convolutions */

/* ---- ONNX Runtime: memory ---- */

/* Of the nearest memory beyond the first cache that holds so many bytes. */
static double far_bandwidth(const struct rates *rates, double bytes)
{
    const struct hardware *hardware = rates->hardware;
    for (size_t i = 1; i + 1 < hardware->memory_count; i++) {
        const struct hardware_memory *cache = &hardware->memories[i];
        if (is_known(cache->bytes_per_s.value) && bytes <= cache->capacity_bytes.value)
            return CACHE_SHARE * cache->bytes_per_s.value;
    }
    return rates->bytes_per_s.value * rates->memory_share.value;
}

/* What is more than the first cache holds comes in part out of it. */
static double move_s(const struct rates *rates, double bytes)
{
    const struct hardware_memory *near = &rates->hardware->memories[0];
    double far_s = bytes / far_bandwidth(rates, bytes);
    if (rates->hardware->memory_count < 2 || !(near->bytes_per_s.value > 0) ||
        !(near->capacity_bytes.value > 0))
        return far_s;
    double times = fmax(bytes / near->capacity_bytes.value, NEAR_WHOLE);
    double beyond = fmin(log(times / NEAR_WHOLE) / log(NEAR_NONE / NEAR_WHOLE), 1);
    return (1 - beyond) * bytes / (NEAR_SHARE * near->bytes_per_s.value) + beyond * far_s;
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
    return shape->channels < BLOCK_CHANNELS ? NARROW_SHARE
           : shape->taps > 1                ? CONV_SHARE
                                            : POINT_SHARE;
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
    return timings->count && timings->threads > 1 ? timings->threads : 1;
}

/* Rates are those of all threads.  Products are always divided among them, and all meet at the end of an operator; a file
 * for one thread states no launch. */
static double divided_s(const struct rates *rates, double all_s, bool is_product)
{
    double threads = threads_of(rates), alone_s = all_s * threads;
    const struct hardware_figure *launch = &rates->hardware->launch_s;
    double meeting_s = is_known(launch->value) ? MEETING_SHARE * launch->value : 0;
    if (threads > 1 && !is_product && alone_s < DIVIDED_S)
        return alone_s;
    return alone_s / (1 + DIVIDED_SHARE * (threads - 1)) + meeting_s;
}

/* ---- ONNX Runtime: operators that were timed ---- */

enum { ADD_BYTES = 12, SCALE_BYTES = 8 }; /* moved by an element of each */
#define COLD_STEPS 4.0 /* an operator among others costs as many of those timed in a row */
#define REORDERING                                                                                 \
    2.0 /* an operator by a constant leaves the layout of convolutions or, after others, returns */

static double timed_s(const struct rates *rates, enum timing_op op, double rows, double size)
{
    struct lookup lookup = {.timings = rates->timings, .op = op, .at = {rows, size, 0}};
    return per_unit_s(&lookup);
}

/* The layout of convolutions has blocks of channels. */
static double padded(double channels)
{
    return BLOCK_CHANNELS * ceil(channels / BLOCK_CHANNELS);
}

static double conv_s(const struct subgraph *subgraph, const struct roofline_work *work,
                     const struct rates *rates)
{
    const struct subgraph_shape *shape = &subgraph->shape;
    double rows = fmax(1, work->rows), outputs = fmax(1, work->outputs),
           taps = fmax(1, shape->taps);
    double columns = outputs / rows, depth = work->macs / (outputs * taps);
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

/* A recurrent layer reads the weights of its state, one half of all, in every step. */
static double state_s(const struct subgraph *subgraph, const struct roofline_work *work,
                      const struct rates *rates)
{
    return fmax(1, subgraph->steps) * move_s(rates, work->traffic.weights / 2);
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

static double timed_move_s(const struct subgraph *subgraph, const struct roofline_work *work,
                           const struct rates *rates)
{
    enum graph_kind kind = graph_op_kind(subgraph->op);
    if ((kind == GRAPH_KIND_ACTIVATION && subgraph->op != GRAPH_CLIP) ||
        kind == GRAPH_KIND_SOFTMAX) {
        double elements = fmax(1, work->outputs);
        return elements * timed_s(rates, TIMING_SIGMOID, elements, 0);
    }
    bool is_one = kind == GRAPH_KIND_ELEMENTWISE &&
                  work->bytes < (ADD_BYTES + SCALE_BYTES) / 2.0 * work->outputs;
    bool is_scaling = subgraph->op == GRAPH_CLIP || is_one;
    double elements = fmax(1, work->bytes / (is_scaling ? SCALE_BYTES : ADD_BYTES));
    return elements * timed_s(rates, is_scaling ? TIMING_SCALE : TIMING_ADD, elements, 0) *
           (is_one ? REORDERING : 1);
}

static struct kernel_estimate timed_operator_estimate(const struct subgraph *subgraph,
                                                      const struct roofline_work *work,
                                                      const struct rates *rates)
{
    bool is_product = work->macs > 0;
    double took =
        is_product ? timed_product_s(subgraph, work, rates) : timed_move_s(subgraph, work, rates);
    took += COLD_STEPS * single_s(rates->timings, TIMING_STEP);
    return (struct kernel_estimate){
        .class = is_product ? KERNEL_GEMM : KERNEL_ELEMENTWISE,
        .launches = 1,
        .compute_s = is_product ? took : 0,
        .memory_s = is_product ? fmin(took, work->bytes / rates->bytes_per_s.value) : took,
        .latency_s = took,
        .padding = 1,
    };
}

struct kernel_estimate cpu_kernel_estimate(const struct subgraph *subgraph,
                                           const struct roofline_work *work,
                                           const struct rates *rates)
{
    struct kernel_estimate out = {.class = KERNEL_ELEMENTWISE, .padding = 1};
    if (subgraph->op == GRAPH_BATCH_NORM || subgraph->op == GRAPH_RELU ||
        subgraph->op == GRAPH_LEAKY_RELU)
        return out; /* folded into the convolution before it */
    if (rates->timings)
        return timed_operator_estimate(subgraph, work, rates);
    bool is_leaving =
        graph_op_kind(subgraph->op) == GRAPH_KIND_ELEMENTWISE && subgraph->shape.is_broadcast;
    out.compute_s = compute_s(subgraph, work, rates);
    out.memory_s = move_s(rates, work->bytes) * (is_leaving ? LEAVING : 1);
    if (graph_op_kind(subgraph->op) == GRAPH_KIND_RECURRENT)
        out.memory_s = fmax(out.memory_s, state_s(subgraph, work, rates));
    out.latency_s = divided_s(rates, fmax(out.compute_s, out.memory_s), work->macs > 0) +
                    OPERATOR_S * fmax(1, subgraph->steps);
    return out;
}
