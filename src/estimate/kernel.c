/* Products run in tiles: the best of a few tile sizes and split-K factors, as a library would choose, each limited by
 * the arithmetic of a unit or by the latency of its steps; in the last wave units stay idle.  Everything else is
 * limited by bytes, after a fixed time and a time per row. */
#include "estimate/roofline.h"

#include <math.h>
#include <string.h>

enum {
    FEW_CHANNELS = 4, /* images: padded to PAD_CHANNELS */
    PAD_CHANNELS = 8,
    STEP_BYTES = 128,  /* bytes of channels per step of a convolution with several taps */
    NARROW_GROUP = 16, /* channels: a wider group is a separate kernel */
    FULL_GROUP = 56,   /* has a faster kernel than narrower and wider ones */
    WIDE_GROUP = 180,  /* equally fast; those between attain less in proportion */
    NEAR_DILATION = 8,
    SPLIT_DEPTH_MIN = 256,     /* per part of a split-K product, ... */
    SPLIT_DEPTH_VECTOR = 3000, /* ... and in fp32 on vector units */
    LATENCIES_HIDDEN = 4,      /* small tiles in flight per unit */
    COPIES = 11,               /* tensors copied by unfused attention, ... */
    SCORE_KERNELS = 6,         /* ... in addition to the kernels on its scores */
    TILE_QUERIES = 128,        /* query rows per attention tile */
    TILE_ROWS = 256,           /* rows that share dequantized weights */
    FEW_ROWS = 16,             /* rows for which the vector units are as fast */
    FEW_VECTORS = 4,           /* rows in fp32 for which libraries have vector kernels */
    NORM_MEASURED = 1204224, /* maximum elements of an image: the time grew with them up to there */
};
#define NEAR_INPUT        0.25 /* share of the last cache: a smaller input is still resident */
#define NEAR_LATENCY      0.5  /* latency of an element in that cache, relative to memory */
#define AMONG_OTHERS      1.1 /* fixed times in the graph of a model, relative to a single operator */
#define ODD_SHARE         0.14 /* rate relative to an even product */
#define GROUP_LAUNCH      0.5  /* host time of a kernel of a group, in operators */
#define REPEAT_LAUNCH     1.5  /* for K and V, including views */
#define GROUP_S           2e-6 /* fixed time of such a group */
#define GROUP_KERNELS     2.0  /* launched per group, from FULL_GROUP channels on */
#define GROUP_SHARED      0.6  /* for a narrower group, or in 32 bits, where some share a kernel */
#define EXPERT_LAUNCH     0.53 /* host time in operators: two of three products are merged */
#define NARROW_SHARE      0.0051 /* share of the peak, per channel of a narrow group */
#define ATROUS_SHARE      0.6    /* rate relative to a convolution without dilation */
#define ATROUS_SHARE_TF32 0.45   /* in 32 bits, including conversions */
#define TILE_SHARE        0.001  /* share of the peak, per channel of a group as wide as a tile */
#define TILE_SHARE_TF32   0.0022
#define REDUCTION_POWER   1.29
#define SCORE_READS       10.0   /* reads and writes per score */
#define SCORE_SHARE       0.4    /* of the fp32 vector units, by QK' and the product with V */
#define SCORE_LAUNCH      9.0    /* host time of all score kernels, in operators */
#define SPLIT_S           5.4e-6 /* summing the parts of a split-K product */
/* Relative to the share of 16-bit products: power, 32-bit accumulation, and scales; fp4 by published throughput of
 * Llama 3.1 70B on a B200 (docs/measurements.md). */
#define FP8_SHARE   0.75
#define FP4_SHARE   0.6
#define WHOLE_BYTES 1.9  /* bytes per weight: 16-bit weights need no conversion */
#define NEAR_BYTES  45e9 /* per second and unit, from the L2 cache: 32 bytes per clock */
#define SCAN_SHARE                                                                                 \
    0.25 /* assumed: of the vector units in fp32, with an exponential per state element */

/* ---- classes ---- */

static enum kernel_class conv_class(const struct subgraph_shape *shape)
{
    if (shape->groups > 1 && shape->groups == shape->channels)
        return shape->dilation > 1 ? KERNEL_CONV_ATROUS : KERNEL_CONV_DEPTHWISE;
    if (shape->groups > 1)
        return KERNEL_CONV_GROUPED;
    return shape->channels <= FEW_CHANNELS ? KERNEL_CONV_IMAGE : KERNEL_CONV;
}

static enum kernel_class attention_class(const struct subgraph *subgraph, const struct rates *rates)
{
    if (subgraph->shape.tokens != 1)
        return rates->is_matrix ? KERNEL_ATTENTION : KERNEL_ATTENTION_VECTOR;
    return runtime_at(rates->runtime)->rules == RUNTIME_RULES_PYTORCH ? KERNEL_ATTENTION_MASKED
                                                                      : KERNEL_ATTENTION_DECODE;
}

static enum kernel_class product_class(const struct subgraph *subgraph, const struct rates *rates)
{
    switch (subgraph->op) {
    case GRAPH_CONV:
    case GRAPH_CONV_TRANSPOSE:
        return conv_class(&subgraph->shape);
    case GRAPH_ATTENTION:
        return attention_class(subgraph, rates);
    case GRAPH_SCAN: /* in chunks, like attention to the tokens of the chunk */
        if (!subgraph->shape.is_chunked)
            return KERNEL_ELEMENTWISE;
        return rates->is_matrix ? KERNEL_ATTENTION : KERNEL_ATTENTION_VECTOR;
    default:
        return rates->is_matrix ? KERNEL_GEMM : KERNEL_GEMM_VECTOR;
    }
}

static enum kernel_class class_of(const struct subgraph *subgraph, const struct rates *rates)
{
    switch (graph_op_kind(subgraph->op)) {
    case GRAPH_KIND_PRODUCT:
        return product_class(subgraph, rates);
    case GRAPH_KIND_NORM:
        if (subgraph->op != GRAPH_BATCH_NORM)
            return KERNEL_NORM;
        return rates->widths.activation > 2 ? KERNEL_BATCH_NORM_FP32 : KERNEL_BATCH_NORM;
    case GRAPH_KIND_SOFTMAX:
        return KERNEL_SOFTMAX;
    case GRAPH_KIND_POOL:
        return subgraph->op == GRAPH_REDUCE ? KERNEL_REDUCTION : KERNEL_POOL;
    case GRAPH_KIND_LOOKUP:
        return KERNEL_GATHER;
    case GRAPH_KIND_MOVE:
        if (subgraph->shape.is_resized)
            return KERNEL_RESIZE;
        if (subgraph->op == GRAPH_REARRANGE)
            return KERNEL_REARRANGE;
        return subgraph->op == GRAPH_MOVE ? KERNEL_CONCATENATE : KERNEL_ELEMENTWISE;
    case GRAPH_KIND_RECURRENT:
        return KERNEL_GEMM;
    case GRAPH_KIND_ACTIVATION:
    case GRAPH_KIND_ELEMENTWISE:
    case GRAPH_KIND_VIEW:
    case GRAPH_KIND_UNKNOWN:
    default:
        return subgraph->shape.is_broadcast ? KERNEL_BROADCAST : KERNEL_ELEMENTWISE;
    }
}

/* ---- the device ---- */

#define REFERENCE "h200" /* its kernel figures are scaled to other devices */

static double byte_flops(const struct hardware_figure *flops)
{
    double wide = flops[PRECISION_FP32].value, narrow = flops[PRECISION_FP16].value;
    return is_known(narrow) ? 2 * narrow : 4 * wide;
}

bool kernel_basis_of(const struct hardware *hardware, struct kernel_basis *out)
{
    const struct hardware *fitted = hardware->kernel_classes ? hardware : hardware_named(REFERENCE);
    *out = (struct kernel_basis){0};
    if (!fitted || !fitted->kernel_classes)
        return false;
    *out = (struct kernel_basis){.classes = fitted->kernel_classes,
                                 .units = fitted->units.value,
                                 .launch_s = fitted->launch_s.value,
                                 .bytes_per_s = hardware_main_memory(fitted)->bytes_per_s.value,
                                 .matrix_flops = byte_flops(fitted->matrix_flops),
                                 .vector_flops = byte_flops(fitted->vector_flops),
                                 .active_w = fitted->limit_w.value - fitted->idle_w.value};
    return true;
}

struct scale {
    double units;
    double more;  /* units relative to the device that the classes were fitted on */
    double fixed; /* factor of times independent of the work */
    double power; /* factor of the power of busy units */
};

static double ratio_or_one(double value, double fitted)
{
    return is_known(value) && is_known(fitted) && fitted > 0 ? value / fitted : 1;
}

static struct scale scale_of(const struct rates *rates)
{
    const struct kernel_basis *basis = &rates->basis;
    double more = ratio_or_one(rates->units, basis->units);
    return (struct scale){
        .units = is_known(rates->units) ? rates->units : basis->units,
        .more = more,
        .fixed = AMONG_OTHERS * ratio_or_one(rates->launch_s.value, basis->launch_s),
        .power = ratio_or_one(rates->limit_w.value - rates->idle_w.value, basis->active_w)};
}

/* A kernel that attains most of a peak is limited by it on any device; one that attains less, by the throughput of its
 * units, of which another device may have more per byte or operation of its peak. */
#define PEAK_BOUND_SHARE 0.6

static double attained(double share, double peak, double fitted, const struct scale *scale)
{
    if (share >= PEAK_BOUND_SHARE || !is_known(peak))
        return share * peak;
    return fmin(0.8 * peak, share * fitted * scale->more);
}

/* Some kernels process elements one by one, whatever their width. */
static double memory_share(enum kernel_class class, const struct rates *rates)
{
    double width = rates->widths.activation;
    bool is_by_element = class == KERNEL_CONV_IMAGE || class == KERNEL_BROADCAST ||
                         class == KERNEL_REARRANGE || class == KERNEL_CONCATENATE ||
                         class == KERNEL_REPEAT || class == KERNEL_RESIZE || class == KERNEL_POOL;
    double share = rates->basis.classes[class].memory_share;
    return is_by_element
               ? fmin(rates->basis.classes[KERNEL_ELEMENTWISE].memory_share, share * width / 2)
               : share;
}

static double transfer_s(double bytes, enum kernel_class class, const struct rates *rates,
                         const struct scale *scale)
{
    double share = memory_share(class, rates);
    return bytes / attained(share, rates->bytes_per_s.value, rates->basis.bytes_per_s, scale);
}

/* ---- products ---- */

struct product {
    double rows, columns, depth; /* dimensions of the product */
    double flops;                /* per second of the units, in full tiles */
    bool is_narrow;              /* in 16 bits */
    double part_min;             /* minimum depth of a part, if libraries split the sum */
};

struct tiling {
    double area, tiles;
    double flops;   /* rate of a unit with tiles of this size */
    double at_once; /* per unit, where the latency of a tile is longer than its arithmetic */
};

static struct tiling tiling_of(const struct product *p, double units, double height, double width)
{
    const double full = 128.0 * 128.0;
    double area = height * width;
    return (struct tiling){.area = area,
                           .tiles = ceil(p->rows / height) * ceil(p->columns / width),
                           .flops = p->flops / units * fmin(1, sqrt(area / full)),
                           .at_once = fmax(1, fmin(LATENCIES_HIDDEN, full / area))};
}

/* Seconds of the units for one tile size and split-K factor. */
static double tiled_s(const struct tiling *t, double depth, double depth_s, double units,
                      double parts)
{
    double busy_s = 2 * t->area * depth / t->flops, wait_s = depth * depth_s;
    double at_once = wait_s > busy_s ? units * t->at_once : units;
    return ceil(t->tiles * parts / at_once) * fmax(busy_s, wait_s);
}

/* Rows with an odd number of elements are misaligned for the matrix units: GPT-2 has 50257 tokens. */
static bool is_odd(const struct product *p)
{
    return p->columns > 1 && fmod(p->columns, 2) == 1;
}

static double product_s(const struct product *p, const struct kernel_figures *class,
                        const struct scale *scale, double bytes_per_s)
{
    /* The last two are for products in 16 bits only. */
    static const double TILES[][2] = {{256, 128}, {128, 128}, {64, 128},  {64, 64},
                                      {32, 64},   {16, 64},   {192, 128}, {96, 128}};
    double best = INFINITY;
    for (size_t i = 0; i < COUNT_OF(TILES) - (p->is_narrow ? 0 : 2); i++) {
        struct tiling tiling = tiling_of(p, scale->units, TILES[i][0], TILES[i][1]);
        for (unsigned parts = 1; parts <= 8; parts *= 2) {
            if (parts > 1 && p->depth / parts < p->part_min)
                break;
            double took = tiled_s(&tiling, p->depth / parts, class->depth_s, scale->units, parts);
            if (parts > 1) /* parts are written in 32 bits, and summed by another kernel */
                took += SPLIT_S * scale->fixed + 4 * parts * p->rows * p->columns / bytes_per_s;
            best = fmin(best, took);
        }
    }
    return best;
}

/* Quantized weights are dequantized by the vector units, once per block of rows. */
static double dequantized_s(const struct roofline_work *work, const struct rates *rates)
{
    double blocks = ceil(fmax(1, work->rows) / TILE_ROWS);
    return work->weights * rates->format.weight_ops * blocks / rates->dequant_flops;
}

/* For few rows the vector units also multiply, without tiles. */
static double few_rows_s(const struct roofline_work *work, const struct rates *rates)
{
    double sums = 2 * (fmax(1, work->rows) - 1);
    return work->rows <= FEW_ROWS
               ? work->weights * (rates->format.weight_ops + sums) / rates->dequant_flops
               : INFINITY;
}

/* Overlapping times, with a penalty when both are long. */
static double overlapped(double a, double b)
{
    return pow(pow(a, 4) + pow(b, 4), 0.25);
}

static double attention_s(const struct subgraph_shape *shape, const struct roofline_work *work,
                          double flops, const struct scale *scale)
{
    if (shape->is_chunked)
        return 2 * work->macs / flops;
    double tiles = shape->sequences * shape->heads * ceil(shape->tokens / TILE_QUERIES);
    double padding = ceil(shape->tokens / TILE_QUERIES) * TILE_QUERIES / fmax(1, shape->tokens);
    double busy = tiles > 0 ? fmin(1, tiles / scale->units) : 1;
    if (shape->tokens == 1) /* one query: the units divide the keys */
        padding = busy = 1;
    return 2 * work->macs * padding / (flops * busy);
}

/* Groups as wide as a tile share one kernel. */
static bool has_tile_groups(double group)
{
    return group == 64 || group == 128 || group == 256;
}

/* Narrow groups share a kernel, and each wide one is a separate product; both attain more the wider they are. */
static double grouped_share(const struct kernel_figures *class, double group, double width)
{
    if (has_tile_groups(group))
        return group * (width > 2 ? TILE_SHARE_TF32 : TILE_SHARE);
    if (group <= NARROW_GROUP || group == 2 * NARROW_GROUP)
        return NARROW_SHARE * group;
    return class->compute_share * (group == FULL_GROUP ? 1 : fmin(1, group / WIDE_GROUP));
}

/* For large dilations libraries use kernels of an older generation. */
static double atrous_share(const struct subgraph_shape *shape, double width)
{
    return shape->dilation <= NEAR_DILATION ? 1 : width > 2 ? ATROUS_SHARE_TF32 : ATROUS_SHARE;
}

/* In 32 bits the elements of an image are processed sequentially, so each waits for the cache or the memory. */
static double batch_norm_s(const struct kernel_figures *class, double elements,
                           const struct roofline_work *work, const struct rates *rates)
{
    bool is_near =
        work->bytes / 2 <= NEAR_INPUT * rates->cache_bytes; /* the other half is written */
    return fmin(elements, NORM_MEASURED) * class->depth_s * (is_near ? NEAR_LATENCY : 1);
}

static double compute_s(enum kernel_class class, const struct subgraph *subgraph,
                        const struct roofline_work *work, const struct rates *rates,
                        const struct scale *scale, double padding)
{
    const struct kernel_figures *of = &rates->basis.classes[class];
    const struct subgraph_shape *shape = &subgraph->shape;
    double width = rates->widths.activation, share = of->compute_share;
    const struct kernel_basis *basis = &rates->basis;
    double matrix = basis->matrix_flops / width, vector = basis->vector_flops / width;
    double rows = fmax(1, work->rows), outputs = fmax(1, work->outputs);
    double group = shape->channels / fmax(1, shape->groups);
    double products = rates->product_flops.value, convs = rates->conv_flops.value;
    struct product product = {.rows = rows,
                              .columns = outputs / rows,
                              .depth = padding * work->macs / outputs,
                              .is_narrow = class == KERNEL_GEMM,
                              .part_min = class == KERNEL_GEMM_VECTOR ? SPLIT_DEPTH_VECTOR
                                                                      : SPLIT_DEPTH_MIN};
    bool is_quantized =
        rates->format.weight_ops > 0 && work->traffic.weights < WHOLE_BYTES * work->weights;
    double tiled;
    switch (class) {
    case KERNEL_CONV_IMAGE: /* as fast in tf32 as in 16 bits */
        product.flops = attained(share, convs, basis->matrix_flops / 2, scale);
        product.part_min = INFINITY;
        return product_s(&product, of, scale, rates->bytes_per_s.value);
    case KERNEL_CONV:
        product.flops = share * convs * atrous_share(shape, width);
        return product_s(&product, of, scale, rates->bytes_per_s.value);
    case KERNEL_GEMM:
    case KERNEL_GEMM_VECTOR:
        if (class == KERNEL_GEMM_VECTOR && rows <= (is_quantized ? 1 : FEW_VECTORS))
            return is_quantized ? few_rows_s(work, rates) : 0; /* memory-bound */
        product.flops = share * products * (is_odd(&product) ? ODD_SHARE : 1);
        if (rates->used == PRECISION_FP8)
            product.flops *= FP8_SHARE;
        if (rates->used == PRECISION_FP4)
            product.flops *= FP4_SHARE;
        tiled = product_s(&product, of, scale, rates->bytes_per_s.value);
        if (is_quantized && !rates->format.is_native)
            tiled = overlapped(tiled, dequantized_s(work, rates));
        return is_quantized ? fmin(few_rows_s(work, rates), tiled) : tiled;
    case KERNEL_CONV_GROUPED:
        return 2 * work->macs / attained(grouped_share(of, group, width), convs, matrix, scale);
    case KERNEL_CONV_ATROUS: /* as fast in 16 bits as in 32 */
        return 2 * work->macs /
               attained(share, rates->other_flops.value * width / 4, basis->vector_flops / 4,
                        scale);
    case KERNEL_CONV_DEPTHWISE:
        return 2 * work->macs / attained(share, rates->other_flops.value, vector, scale);
    case KERNEL_BATCH_NORM_FP32:
        return batch_norm_s(of, shape->inner, work, rates) / scale->more;
    case KERNEL_ATTENTION:
    case KERNEL_ATTENTION_DECODE:
    case KERNEL_ATTENTION_MASKED:
        return attention_s(shape, work, attained(share, rates->attention_flops, matrix, scale),
                           scale);
    case KERNEL_ATTENTION_VECTOR:
        return attention_s(shape, work, attained(share, rates->attention_flops, vector, scale),
                           scale);
    default:                            /* as fast in 32 bits as in 16 */
        if (subgraph->op == GRAPH_SCAN) /* its state stays in registers, in 32 bits */
            return (2 * work->macs + work->elementwise) / (SCAN_SHARE * rates->dequant_flops);
        return is_known(rates->other_flops.value)
                   ? work->elementwise / attained(share, rates->other_flops.value * width / 2,
                                                  basis->vector_flops / 2, scale)
                   : 0;
    }
}

/* Channels are processed in steps, the last of which is padded. */
static double padding_of(enum kernel_class class, const struct subgraph_shape *shape, double width)
{
    double step = class == KERNEL_CONV_IMAGE ? PAD_CHANNELS : STEP_BYTES / width;
    bool is_padded = class == KERNEL_CONV_IMAGE || (class == KERNEL_CONV && shape->taps > 1);
    return is_padded && shape->channels > 0 ? ceil(shape->channels / step) * step / shape->channels
                                            : 1;
}

/* ---- fixed and memory times ---- */

static bool has_lone_groups(const struct subgraph_shape *shape)
{
    double width = shape->channels / fmax(1, shape->groups);
    return width > NARROW_GROUP && width != 2 * NARROW_GROUP && !has_tile_groups(width);
}

static double group_kernels(const struct subgraph_shape *shape, double width)
{
    bool is_full = shape->channels / fmax(1, shape->groups) >= FULL_GROUP && width < 4;
    return shape->groups * (is_full ? GROUP_KERNELS : GROUP_SHARED);
}

static double fixed_s(enum kernel_class class, const struct subgraph *subgraph,
                      const struct rates *rates, const struct scale *scale)
{
    const struct kernel_figures *of = &rates->basis.classes[class];
    const struct subgraph_shape *shape = &subgraph->shape;
    double fixed = of->fixed_s * scale->fixed;
    double rows = shape->inner > 0 ? subgraph->outputs / shape->inner : 0;
    switch (class) {
    case KERNEL_CONV_DEPTHWISE:
        return fixed + shape->taps * of->depth_s;
    case KERNEL_CONV_GROUPED:
        return fixed + (has_lone_groups(shape) ? GROUP_S * shape->groups : 0);
    case KERNEL_NORM:
    case KERNEL_SOFTMAX:
        return fixed + shape->inner * of->depth_s + rows * of->row_s * 1 / scale->more;
    case KERNEL_REDUCTION:
        return fixed * pow(log2(fmax(2, shape->inner)), REDUCTION_POWER);
    default:
        return fixed;
    }
}

/* ---- additional kernels of a runtime ---- */

static void add_kernels(enum kernel_class class, double kernels, double bytes,
                        const struct rates *rates, const struct scale *scale,
                        struct kernel_estimate *out)
{
    const struct kernel_figures *of = &rates->basis.classes[class];
    double took_s = transfer_s(bytes, class, rates, scale);
    out->more_bytes += bytes;
    out->latency_s += kernels * of->fixed_s * scale->fixed + took_s;
    out->memory_s += took_s;
    out->active_j += of->active_w * scale->power * took_s;
}

/* A static cache is read with its K and V repeated for each head: copied, unless one KV head serves all of them, which
 * is a view. */
static void repeat_cache(double cache, const struct subgraph_shape *shape,
                         const struct rates *rates, const struct scale *scale,
                         struct kernel_estimate *out)
{
    double more = cache * (shape->repeats - 1);
    add_kernels(out->class, 0, more, rates, scale, out);
    if (shape->repeats >= shape->heads)
        return;
    add_kernels(KERNEL_REPEAT, 2, more + 2 * cache, rates, scale, out);
    out->launches += REPEAT_LAUNCH;
}

/* Queries, keys and values are copied and scaled; then the scores are written, their bias is added, rows without a key
 * are searched, and the scores are read again for the softmax and for the values. */
static void add_scores(const struct subgraph *subgraph, double outputs, double macs,
                       const struct rates *rates, const struct scale *scale,
                       struct kernel_estimate *out)
{
    double width = rates->widths.activation;
    const struct subgraph_shape *shape = &subgraph->shape;
    double share = outputs / subgraph->outputs; /* share of its heads, if devices divide them */
    double scores = share * shape->sequences * shape->heads * shape->tokens * shape->keys;
    add_kernels(KERNEL_ELEMENTWISE, COPIES, 2 * COPIES * outputs * width, rates, scale, out);
    add_kernels(KERNEL_BROADCAST, SCORE_KERNELS, SCORE_READS * scores * width, rates, scale, out);
    out->launches += SCORE_LAUNCH;
    if (shape->is_in_fp32) {
        double took_s = 2 * macs / (SCORE_SHARE * rates->dequant_flops);
        out->latency_s += took_s;
        out->compute_s += took_s;
        out->active_j +=
            rates->basis.classes[KERNEL_ATTENTION_VECTOR].active_w * scale->power * took_s;
    }
}

/* Only bf16 has a grouped kernel for the matrices of all experts; otherwise each is multiplied separately. */
static void add_experts(const struct subgraph *subgraph, const struct rates *rates,
                        const struct scale *scale, struct kernel_estimate *out)
{
    double experts = fmax(0, subgraph->shape.experts - 1);
    if (rates->used == PRECISION_BF16)
        return;
    out->latency_s += experts * rates->basis.classes[out->class].fixed_s * scale->fixed;
    out->launches += EXPERT_LAUNCH * experts;
}

struct kernel_estimate kernel_estimate(const struct subgraph *subgraph,
                                       const struct roofline_work *work, const struct rates *rates)
{
    struct scale scale = scale_of(rates);
    const struct runtime *runtime = runtime_at(rates->runtime);
    struct kernel_estimate out = {.class = class_of(subgraph, rates),
                                  .launches = runtime_host_operators(runtime, subgraph->op),
                                  .padding = 1};
    const struct kernel_figures *of = &rates->basis.classes[out.class];
    if (out.class == KERNEL_BATCH_NORM_FP32)
        out.launches = 1; /* one kernel; three in 16 bits */
    bool is_pytorch = runtime->rules == RUNTIME_RULES_PYTORCH;
    if (is_pytorch && subgraph->op == GRAPH_REARRANGE && !subgraph->shape.is_copied)
        return (struct kernel_estimate){.class = out.class, .padding = 1}; /* another view */
    out.padding = padding_of(out.class, &subgraph->shape, rates->widths.activation);
    out.compute_s = compute_s(out.class, subgraph, work, rates, &scale, out.padding);
    out.memory_s = transfer_s(work->bytes, out.class, rates, &scale);
    if (out.class == KERNEL_ATTENTION_DECODE && runtime_steps(rates->runtime)->reads_per_head)
        out.memory_s = fmax(out.memory_s, work->traffic.cache_read * subgraph->shape.repeats /
                                              (scale.units * NEAR_BYTES));
    double work_s = overlapped(out.compute_s, out.memory_s);
    out.latency_s = fixed_s(out.class, subgraph, rates, &scale) * fmax(1, subgraph->steps) + work_s;
    /* Drawn by units that work, not by those that wait for the previous element. */
    out.active_j =
        of->active_w * scale.power * (out.class == KERNEL_BATCH_NORM_FP32 ? out.memory_s : work_s);
    if (out.class == KERNEL_ATTENTION_MASKED && subgraph->shape.repeats > 1)
        repeat_cache(work->traffic.cache_read, &subgraph->shape, rates, &scale, &out);
    if (is_pytorch && subgraph->shape.is_unfused)
        add_scores(subgraph, work->outputs, work->macs, rates, &scale, &out);
    if (is_pytorch)
        add_experts(subgraph, rates, &scale, &out);
    size_t count;
    const struct runtime_rule *rules = runtime_rules(runtime, &count);
    for (size_t i = 0; i < count; i++)
        if (rules[i].rules == runtime->rules &&
            runtime_rule_applies(&rules[i], subgraph, rates->used)) {
            add_kernels(rules[i].class, rules[i].kernels,
                        rules[i].elements * work->outputs * rates->widths.activation, rates, &scale,
                        &out);
            out.launches += rules[i].host;
        }
    if (out.class == KERNEL_CONV_GROUPED && has_lone_groups(&subgraph->shape))
        out.launches += GROUP_LAUNCH * group_kernels(&subgraph->shape, rates->widths.activation);
    return out;
}
