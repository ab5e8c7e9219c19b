/* The time of an operator of ONNX Runtime on a CPU, as shares of what the processor attains: its multiply-adds, and the
 * bandwidth of the cache or memory that the operands fit in.  It computes nearly every operator by itself, so that small
 * models are moved through the caches again and again.  The shares were measured with single operators on one processor
 * (docs/measurements.md, "Models on a CPU"). */
#include <math.h>

#include "estimate/roofline.h"

enum { FEW_CHANNELS = 4, FEW_ROWS = 16 };
#define OPERATOR_S    1.2e-6 /* of an operator, whatever its work */
#define MEETING_SHARE 0.5    /* of what a meeting of all threads takes */
#define CONV_SHARE    0.80   /* of the peak of multiply-adds */
#define IMAGE_SHARE   0.40
#define GROUPED_SHARE 0.45 /* depthwise too */
#define PRODUCT_SHARE 0.68
#define FEW_SHARE     0.34 /* of products of few rows */
#define STEP_SHARE    0.20 /* of recurrent layers */
#define OTHER_SHARE   0.07 /* of everything else: exponentials, divisions, sums */
#define CACHE_SHARE   0.60 /* of the bandwidth of a cache; memory is attained */

/* ---- memory ---- */

/* Of the nearest memory that holds so many bytes. */
static double bandwidth_of(const struct rates *rates, double bytes)
{
    const struct hardware *hardware = rates->hardware;
    for (size_t i = 0; i + 1 < hardware->memory_count; i++) {
        const struct hardware_memory *cache = &hardware->memories[i];
        if (is_known(cache->bytes_per_s.value) && bytes <= cache->capacity_bytes.value)
            return CACHE_SHARE * cache->bytes_per_s.value;
    }
    return rates->bytes_per_s.value * rates->memory_share.value;
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
    return shape->channels <= FEW_CHANNELS ? IMAGE_SHARE : CONV_SHARE;
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

/* Threads divide an operator and meet at its end; a file for one thread states no launch. */
static double operator_s(const struct rates *rates)
{
    const struct hardware_figure *launch = &rates->hardware->launch_s;
    return OPERATOR_S + (is_known(launch->value) ? MEETING_SHARE * launch->value : 0);
}

struct kernel_estimate cpu_kernel_estimate(const struct subgraph *subgraph,
                                           const struct roofline_work *work,
                                           const struct rates *rates)
{
    struct kernel_estimate out = {.class = KERNEL_ELEMENTWISE, .padding = 1};
    if (subgraph->op == GRAPH_BATCH_NORM)
        return out; /* folded into the convolution before it */
    out.compute_s = compute_s(subgraph, work, rates);
    out.memory_s = work->bytes / bandwidth_of(rates, work->bytes);
    out.latency_s =
        fmax(out.compute_s, out.memory_s) + operator_s(rates) * fmax(1, subgraph->steps);
    return out;
}
