/* One row per node, with the counting rules of the legacy model. */
#include "estimate/legacy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "graph/count.h"
#include "port/file.h"
#include "port/json_read.h"

/* Constants of the legacy model.  It had no idle power and used 30 % of a power limit, which it assumed to be twice the
 * power of all units; elements have four bytes in every precision. */
enum { ELEMENT_BYTES = 4, BATCH_NORM_OPERATIONS = 5 };
#define LIMIT_OVER_PEAK 2.0
#define IDLE_OVER_LIMIT 0.3

/* ---- the device ---- */

/* The first error is kept. */
struct position {
    const char *file;
    const struct jv *legacy;
    enum err err;
    struct error *why;
};

static void refuse(struct position *at, const char *key, const char *problem)
{
    if (!at->err)
        at->err = err_set(at->why, ERR_BAD_VALUE, "%s: legacy.%s: %s", at->file, key, problem);
}

static void read_number(struct position *at, const char *key, double *out)
{
    *out = jv_get_number(at->legacy, key);
    if (!(*out > 0))
        refuse(at, key, "must be a number above 0");
}

/* {"fp32": 1, ...}: at least one entry, and every key a precision. */
static void read_by_precision(struct position *at, const char *key, double *out)
{
    const struct jv *values = jv_get(at->legacy, key);
    for (size_t i = 0; i < PRECISION_COUNT; i++)
        out[i] = UNKNOWN;
    if (!jv_is_object(values) || jv_count(values) == 0)
        refuse(at, key, "must be an object with a number for each precision");
    for (const struct jv *child = jv_first_member(values); child; child = jv_next(child)) {
        enum precision precision = PRECISION_FP32;
        struct error reason = {0};
        if (precision_find(jv_key(child), &precision, &reason))
            refuse(at, key, reason.text);
        out[precision] = jv_number(child);
        if (!(out[precision] > 0))
            refuse(at, key, "its values must be numbers above 0");
    }
}

static enum err read_legacy(const char *file, const struct jv *top, struct legacy_hardware *out,
                            struct error *why)
{
    struct position at = {file, jv_get(top, "legacy"), ERR_OK, why};
    const char *id = jv_get_text(top, "id"), *name = jv_get_text(top, "name");
    if (!id || !id[0])
        return err_set(why, ERR_BAD_VALUE, "%s: id: missing", file);
    if (!jv_is_object(at.legacy))
        return err_set(why, ERR_BAD_VALUE,
                       "%s: missing object \"legacy\", which --model-compat needs", file);
    chars_copy(out->id, id);
    chars_copy(out->name, name ? name : id);
    str_plain(out->id, sizeof out->id);
    str_plain(out->name, sizeof out->name);
    read_by_precision(&at, "flops", out->flops);
    read_by_precision(&at, "joules_per_flop", out->joules_per_flop);
    read_number(&at, "bytes_per_s", &out->bytes_per_s);
    read_number(&at, "joules_per_byte", &out->joules_per_byte);
    read_number(&at, "threads", &out->threads);
    read_number(&at, "launch_s", &out->launch_s);
    return at.err;
}

enum err legacy_hardware_read(const char *path, struct legacy_hardware *out, struct error *why)
{
    struct jv *tree;
    *out = (struct legacy_hardware){0};
    enum err err = jv_read(path, FILE_SMALL, &tree, why);
    if (!err)
        err = read_legacy(path, tree, out, why);
    jv_free(tree);
    return err;
}

/* ---- nodes ---- */

/* The legacy model counted modules, additions and products: not functional pooling, but dropout modules. */
static bool is_seen(const struct graph_node *node)
{
    if (node->op == GRAPH_VIEW)
        return str_equal(node->label, "dropout");
    return !str_ends(node->name, "adaptive_avg_pool2d");
}

static double operations(const struct graph_node *node, const struct graph_cost *cost, double out)
{
    switch (graph_op_kind(node->op)) {
    case GRAPH_KIND_PRODUCT:
        return 2 * cost->macs;
    case GRAPH_KIND_ACTIVATION:
    case GRAPH_KIND_ELEMENTWISE:
        return out;
    case GRAPH_KIND_NORM:
        return node->op == GRAPH_BATCH_NORM ? BATCH_NORM_OPERATIONS * out : 0;
    default:
        return 0;
    }
}

/* One thread per output element; for a convolution it confused output and input, and so applied the stride twice. */
static double threads_of(const struct graph_node *node, const struct graph_tensor *out)
{
    const struct graph_window *window = &node->as.window;
    double threads = 1;
    for (int i = 0; i < out->rank; i++) {
        int64_t size = out->dims[i];
        int k = i - 2; /* after batch and channels */
        if (node->op == GRAPH_CONV && k >= 0 && k < window->rank && window->stride[k] > 0)
            size = (size + 2 * (int64_t)window->pad_before[k] - window->kernel[k]) /
                       window->stride[k] +
                   1;
        threads *= size > 0 ? (double)size : 0;
    }
    return threads;
}

/* Elements of four bytes, whatever the precision: activations that are read, the result, weights. */
static double bytes_of(const struct graph *graph, const struct graph_node *node, double out)
{
    double in = 0, weights = 0;
    for (size_t i = 0; i < node->input_count; i++) {
        const struct graph_tensor *input = graph_input(graph, node, i);
        if (input)
            *(graph_is_static(input) ? &weights : &in) += graph_elements(input);
    }
    return ELEMENT_BYTES * (in + out + weights);
}

/* ---- the estimate ---- */

static void add_row(struct legacy_estimate *sum, const struct graph_node *node,
                    const struct graph_tensor *result, double idle_w)
{
    const struct legacy_hardware *hardware = &sum->hardware;
    double out = graph_elements(result);
    struct graph_cost cost = graph_node_cost(sum->graph, node);
    struct legacy_row *row = &sum->rows[sum->count++];
    *row = (struct legacy_row){.name = node->name,
                               .op = node->label,
                               .flops = operations(node, &cost, out),
                               .bytes = bytes_of(sum->graph, node, out)};
    double compute_s = row->flops / hardware->flops[sum->precision];
    double memory_s = row->bytes / hardware->bytes_per_s;
    row->latency_s = fmax(compute_s, memory_s) + hardware->launch_s;
    row->joules.compute = row->flops * hardware->joules_per_flop[sum->precision];
    row->joules.memory = row->bytes * hardware->joules_per_byte;
    row->joules.idle = idle_w * row->latency_s;
    row->joules.total = row->joules.compute + row->joules.memory + row->joules.idle;
    row->bound = BOUND_BALANCED;
    if (compute_s > 1.1 * memory_s)
        row->bound = BOUND_COMPUTE;
    else if (memory_s > 1.1 * compute_s)
        row->bound = BOUND_MEMORY;
    double utilization = fmin(1, threads_of(node, result) / hardware->threads);
    sum->macs += cost.macs;
    sum->flops += row->flops;
    sum->bytes += row->bytes;
    sum->latency_s += row->latency_s;
    estimate_joules_add(&sum->joules, &row->joules, 1);
    sum->peak_w = fmax(sum->peak_w, row->joules.total / row->latency_s);
    sum->utilization += utilization;
    sum->efficiency += (row->joules.total - row->joules.idle) / row->joules.total;
    sum->wasted_j += row->joules.idle * (1 - utilization);
    sum->bound_counts[row->bound]++;
}

enum err legacy_estimate_make(const struct graph *graph, const struct legacy_hardware *hardware,
                              enum precision precision, struct legacy_estimate *out,
                              struct error *why)
{
    double idle_w = IDLE_OVER_LIMIT * LIMIT_OVER_PEAK * hardware->flops[precision] *
                    hardware->joules_per_flop[precision];
    *out = (struct legacy_estimate){.graph = graph,
                                    .hardware = *hardware,
                                    .precision = precision,
                                    .params = graph_parameters(graph)};
    if (!is_known(idle_w))
        return err_set(why, ERR_BAD_VALUE, "%s: no legacy figures in %s", hardware->id,
                       precision_name(precision));
    out->rows = xmalloc((graph->node_count + 1) * sizeof *out->rows);
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct graph_tensor *result = graph_output(graph, &graph->nodes[i], 0);
        if (is_seen(&graph->nodes[i]) && result)
            add_row(out, &graph->nodes[i], result, idle_w);
    }
    double count = (double)out->count;
    out->average_w = count > 0 ? out->joules.total / out->latency_s : UNKNOWN;
    out->utilization = count > 0 ? out->utilization / count : UNKNOWN;
    out->efficiency = count > 0 ? out->efficiency / count : UNKNOWN;
    return ERR_OK;
}

void legacy_estimate_release(struct legacy_estimate *compat)
{
    free(compat->rows);
    *compat = (struct legacy_estimate){0};
}
