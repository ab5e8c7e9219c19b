/* One subgraph per node, with the legacy model's own counts; the result is put into the structs of the current
 * model, with everything that the legacy model did not estimate left unknown. */
#include "estimate/legacy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"

/* Constants of the legacy model.  It had no figure of idle power and used 30 % of a power limit, which it assumed
 * to be twice the power of all units; elements have four bytes in every precision. */
enum { ELEMENT_BYTES = 4, BATCH_NORM_OPERATIONS = 5 };
#define LIMIT_OVER_PEAK 2.0
#define IDLE_OVER_LIMIT 0.3

/* ---- the device ---- */

struct position {
    const char *file;
    struct error *why;
};

static enum err refuse(const struct position *at, const char *key, const char *problem)
{
    return err_set(at->why, ERR_BAD_VALUE, "%s: legacy.%s: %s", at->file, key, problem);
}

static enum err read_number(const struct position *at, const struct jv *object, const char *key,
                            double *out)
{
    *out = jv_number(jv_get(object, key));
    return is_known(*out) && *out > 0 ? ERR_OK : refuse(at, key, "must be a number above 0");
}

/* {"fp32": 1, ...}: at least one entry, and every key a precision. */
static enum err read_by_precision(const struct position *at, const struct jv *object,
                                  const char *key, double *out)
{
    const struct jv *values = jv_get(object, key);
    for (size_t i = 0; i < PRECISION_COUNT; i++)
        out[i] = UNKNOWN;
    if (!jv_is_object(values) || jv_count(values) == 0)
        return refuse(at, key, "must be an object with a number for each precision");
    for (const struct jv *child = jv_first(values); child; child = jv_next(child)) {
        enum precision precision;
        struct error reason = {0};
        if (precision_find(jv_key(child), &precision, &reason))
            return refuse(at, key, reason.text);
        out[precision] = jv_number(child);
        if (!is_known(out[precision]) || out[precision] <= 0)
            return refuse(at, key, "its values must be numbers above 0");
    }
    return ERR_OK;
}

static enum err read_legacy(const struct position *at, const struct jv *top,
                            struct legacy_hardware *out)
{
    const struct jv *legacy = jv_get(top, "legacy");
    const char *id = jv_text(jv_get(top, "id")), *name = jv_text(jv_get(top, "name"));
    if (!id || !id[0])
        return err_set(at->why, ERR_BAD_VALUE, "%s: id: missing", at->file);
    if (!jv_is_object(legacy))
        return err_set(at->why, ERR_BAD_VALUE,
                       "%s: missing object \"legacy\", which --model-compat needs", at->file);
    str_copy(out->id, sizeof out->id, id);
    str_copy(out->name, sizeof out->name, name ? name : id);
    str_plain(out->id);
    str_plain(out->name);
    enum err err = read_by_precision(at, legacy, "flops", out->flops);
    if (!err)
        err = read_by_precision(at, legacy, "joules_per_flop", out->joules_per_flop);
    if (!err)
        err = read_number(at, legacy, "bytes_per_s", &out->bytes_per_s);
    if (!err)
        err = read_number(at, legacy, "joules_per_byte", &out->joules_per_byte);
    if (!err)
        err = read_number(at, legacy, "threads", &out->threads);
    if (!err)
        err = read_number(at, legacy, "launch_s", &out->launch_s);
    return err;
}

enum err legacy_hardware_read(const char *path, struct legacy_hardware *out, struct error *why)
{
    struct position at = {path, why};
    struct text bytes = {0};
    struct error reason = {0};
    struct jv *tree = NULL;
    *out = (struct legacy_hardware){0};
    enum err err = file_read(path, FILE_SMALL, &bytes, why);
    if (!err) {
        err = jv_parse(text_get(&bytes), bytes.length, &tree, &reason);
        err = err ? err_set(why, err, "%s: %s", path, reason.text) : read_legacy(&at, tree, out);
    }
    jv_free(tree);
    text_release(&bytes);
    return err;
}

/* ---- subgraphs ---- */

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* The legacy model saw modules, additions and products: not pooling called as a function, but dropout modules. */
static bool is_seen(const struct graph_node *node)
{
    if (node->op == GRAPH_VIEW)
        return strcmp(node->label, "dropout") == 0;
    return !ends_in(node->name, "adaptive_avg_pool2d");
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

/* One thread per output element; for a convolution it mistook the output for the input, and so applied the
 * stride twice. */
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

static void add_subgraph(struct legacy_estimate *out, node_id id)
{
    struct partition *partition = &out->partition;
    const struct graph *graph = partition->graph;
    const struct graph_node *node = &graph->nodes[id];
    const struct graph_tensor *result = graph_output(graph, node, 0);
    if (!is_seen(node) || !result)
        return;
    struct subgraph *subgraph = &partition->subgraphs[partition->count];
    struct graph_cost cost = graph_node_cost(graph, node);
    *subgraph = (struct subgraph){.name = node->name,
                                  .op = node->op,
                                  .layer = node->layer,
                                  .component = node->component,
                                  .first_node = (uint32_t)partition->count,
                                  .node_count = 1,
                                  .steps = 1,
                                  .rows = threads_of(node, result),
                                  .outputs = graph_elements(result)};
    str_copy(subgraph->pattern, sizeof subgraph->pattern, node->label);
    subgraph->cost.macs = cost.macs;
    subgraph->cost.elementwise = operations(node, &cost, subgraph->outputs) - 2 * cost.macs;
    subgraph->cost.out.activations = subgraph->outputs;
    for (size_t i = 0; i < node->input_count; i++) {
        const struct graph_tensor *input = graph_input(graph, node, i);
        if (input && graph_is_static(input))
            subgraph->cost.weights.weights += graph_elements(input);
        else if (input)
            subgraph->cost.in.activations += graph_elements(input);
    }
    partition->nodes[partition->count++] = id;
    graph_cost_add(&partition->total, &subgraph->cost);
}

/* ---- the estimate ---- */

static double bytes_of(const struct graph_cost *cost)
{
    return ELEMENT_BYTES * (cost->in.activations + cost->out.activations + cost->weights.weights);
}

struct legacy_rates {
    double flops, joules_per_flop, idle_w;
    const struct legacy_hardware *hardware;
};

static void estimate_row(const struct subgraph *subgraph, const struct legacy_rates *rates,
                         struct subgraph_estimate *row)
{
    const struct legacy_hardware *hardware = rates->hardware;
    row->flops = graph_flops(&subgraph->cost);
    row->bytes = bytes_of(&subgraph->cost);
    row->compute_s = row->flops / rates->flops;
    row->memory_s = row->bytes / hardware->bytes_per_s;
    row->launch_s = hardware->launch_s;
    row->latency_s = fmax(row->compute_s, row->memory_s) + row->launch_s;
    row->stretch = row->wave_share = 1;
    row->utilization = fmin(1, subgraph->rows / hardware->threads);
    row->joules.compute = row->flops * rates->joules_per_flop;
    row->joules.memory = row->bytes * hardware->joules_per_byte;
    row->joules.idle = rates->idle_w * row->latency_s;
    row->joules.total = row->joules.compute + row->joules.memory + row->joules.idle;
    row->bound = row->compute_s > 1.1 * row->memory_s   ? BOUND_COMPUTE
                 : row->memory_s > 1.1 * row->compute_s ? BOUND_MEMORY
                                                        : BOUND_BALANCED;
}

static void add_row(const struct subgraph_estimate *row, struct pass_estimate *sum)
{
    sum->flops += row->flops;
    sum->bytes += row->bytes;
    sum->latency_s += row->latency_s;
    sum->joules.compute += row->joules.compute;
    sum->joules.memory += row->joules.memory;
    sum->joules.idle += row->joules.idle;
    sum->joules.total += row->joules.total;
    sum->peak_w = fmax(sum->peak_w, row->joules.total / row->latency_s);
    sum->utilization += row->utilization;
    sum->efficiency += (row->joules.total - row->joules.idle) / row->joules.total;
    sum->wasted_j += row->joules.idle * (1 - row->utilization);
    sum->bound_counts[row->bound]++;
}

/* What the legacy model did not estimate is unknown. */
static void leave_unknown(struct pass_estimate *estimate)
{
    estimate->latency_plus_minus = estimate->joules_plus_minus = UNKNOWN;
    estimate->power_plus_minus = estimate->mfu = estimate->mbu = UNKNOWN;
    estimate->memory = (struct estimate_memory){.weights = UNKNOWN,
                                                .activations_peak = UNKNOWN,
                                                .workspace_peak = UNKNOWN,
                                                .kv_cache = UNKNOWN,
                                                .total_peak = UNKNOWN,
                                                .capacity = UNKNOWN,
                                                .largest_batch = UNKNOWN,
                                                .fits = true};
    estimate->concurrency = (struct estimate_concurrency){.critical_path_flops = UNKNOWN,
                                                          .parallelism = UNKNOWN,
                                                          .stage_parallelism = UNKNOWN,
                                                          .batch_parallelism = UNKNOWN};
    estimate->confidence = CONFIDENCE_THEORETICAL;
    str_copy(estimate->confidence_reason, sizeof estimate->confidence_reason,
             "the legacy model, for comparison with old reports: its idle power is an artifact");
}

static void estimate_all(const struct legacy_rates *rates, struct legacy_estimate *out)
{
    struct pass_estimate *estimate = &out->estimate;
    size_t count = out->partition.count;
    for (size_t i = 0; i < count; i++) {
        estimate_row(&out->partition.subgraphs[i], rates, &estimate->rows[i]);
        add_row(&estimate->rows[i], estimate);
    }
    estimate->macs = out->partition.total.macs;
    estimate->params = graph_parameters(out->partition.graph);
    estimate->average_w = count ? estimate->joules.total / estimate->latency_s : UNKNOWN;
    estimate->utilization = count ? estimate->utilization / (double)count : UNKNOWN;
    estimate->efficiency = count ? estimate->efficiency / (double)count : UNKNOWN;
}

/* ---- public ---- */

static struct hardware_figure assumed(double value)
{
    return (struct hardware_figure){
        .value = value, .evidence = EVIDENCE_ASSUMED, .plus_minus = UNKNOWN, .source = "legacy"};
}

static void describe_device(const struct legacy_rates *rates, struct legacy_estimate *out)
{
    const struct legacy_hardware *hardware = rates->hardware;
    struct hardware_figure none = assumed(UNKNOWN);
    out->memory = (struct hardware_memory){.name = "memory",
                                           .bytes_per_s = assumed(hardware->bytes_per_s),
                                           .capacity_bytes = none,
                                           .joules_per_byte = assumed(hardware->joules_per_byte)};
    out->device = (struct hardware){.class = HARDWARE_GPU,
                                    .memories = {out->memory},
                                    .memory_count = 1,
                                    .limit_w = none,
                                    .idle_w = assumed(rates->idle_w),
                                    .launch_s = assumed(hardware->launch_s),
                                    .units = none,
                                    .compute_share = assumed(1),
                                    .memory_share = assumed(1),
                                    .link_bytes_per_s = none,
                                    .link_latency_s = none};
    str_copy(out->device.id, sizeof out->device.id, hardware->id);
    str_copy(out->device.name, sizeof out->device.name, hardware->name);
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        out->device.matrix_flops[i] = assumed(hardware->flops[i]);
        out->device.vector_flops[i] = none;
        out->device.matrix_joules[i] = assumed(hardware->joules_per_flop[i]);
        out->device.vector_joules[i] = none;
    }
}

enum err legacy_estimate_make(const struct graph *graph, const struct legacy_hardware *hardware,
                              enum precision precision, struct legacy_estimate *out,
                              struct error *why)
{
    struct legacy_rates rates = {.flops = hardware->flops[precision],
                                 .joules_per_flop = hardware->joules_per_flop[precision],
                                 .hardware = hardware};
    *out = (struct legacy_estimate){.partition = {.graph = graph}};
    if (!is_known(rates.flops) || !is_known(rates.joules_per_flop))
        return err_set(why, ERR_BAD_VALUE, "%s: no legacy figures in %s", hardware->id,
                       precision_name(precision));
    rates.idle_w = IDLE_OVER_LIMIT * LIMIT_OVER_PEAK * rates.flops * rates.joules_per_flop;
    describe_device(&rates, out);
    out->partition.subgraphs = malloc((graph->node_count + 1) * sizeof(struct subgraph));
    out->partition.nodes = malloc((graph->node_count + 1) * sizeof(node_id));
    out->estimate = (struct pass_estimate){
        .partition = &out->partition,
        .hardware = &out->device,
        .config = {.precision = precision, .devices = 1},
        .used = precision,
        .rows = calloc(graph->node_count + 1, sizeof(struct subgraph_estimate))};
    if (!out->partition.subgraphs || !out->partition.nodes || !out->estimate.rows) {
        legacy_estimate_release(out);
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    }
    for (size_t i = 0; i < graph->node_count; i++)
        add_subgraph(out, (node_id)i);
    leave_unknown(&out->estimate);
    estimate_all(&rates, out);
    return ERR_OK;
}

void legacy_estimate_release(struct legacy_estimate *compat)
{
    pass_estimate_release(&compat->estimate);
    partition_release(&compat->partition);
    *compat = (struct legacy_estimate){0};
}
