/* Joins rows of a trace with subgraphs of an estimate. */
#include "runner/layers/campaign.h"
#include "runner/layers/node_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/params.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "estimate/estimate_grid.h"
#include "estimate/workload_estimate.h"
#include "graph/reader.h"

enum { NO_ROW = -1 };

/* The graph, its kernels and, where a device is known, their estimates. */
struct estimated {
    struct workload_options options; /* which the work borrows */
    struct estimate_workload work;
    struct workload_estimate estimate;
    struct candidates candidates;
    bool has_estimate;
    const struct graph *graph;
    const struct partition *partition;
    uint32_t *kernel_of; /* by node: its subgraph; partition->count: none */
};

void layers_nodes_release(struct layers_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        free(nodes->items[i].name);
        free(nodes->items[i].op);
        free(nodes->items[i].kernel);
    }
    free(nodes->items);
    *nodes = (struct layers_nodes){0};
}

/* ---- the graph ---- */

size_t nodes_in_file(const char *path, const struct params *dims)
{
    struct model model;
    struct graph_options options = {.dims = dims};
    struct graph graph;
    size_t count = 0;
    if (model_open(path, &model, NULL))
        return 0;
    if (!model_graph(&model, &options, &graph, NULL)) {
        count = graph.node_count;
        graph_release(&graph);
    }
    model_close(&model);
    return count;
}

/* The shapes that were run, for inputs with free dimensions. */
static void take_shapes(const struct node_question *question, struct params *dims)
{
    for (size_t i = 0; i < question->inputs->count; i++) {
        const struct onnx_port *port = &question->facts->inputs[i];
        const struct onnx_tensor *tensor = &question->inputs->tensors[i];
        struct text shape = {0};
        bool is_free = false;
        for (size_t k = 0; k < port->rank; k++) {
            is_free |= port->shape[k] < 0;
            text_addf(&shape, "%s%lld", k ? "x" : "", (long long)tensor->shape[k]);
        }
        if (is_free)
            params_set(dims, port->name, text_get(&shape));
        text_release(&shape);
    }
}

static enum err find_device(const struct node_question *question, struct candidates *out,
                            struct error *why)
{
    enum err err = candidates_find(question->device, out, why);
    if (err || out->hardware_count)
        return err;
    return err_set(why, ERR_NOT_FOUND,
                   "this machine's processor is not in the catalog: give --hardware ID, or "
                   "--hardware-file with the result of `ipw estimate calibrate`");
}

static enum err make_estimate(const struct node_question *question, struct estimated *out,
                              struct error *why)
{
    enum err err = find_device(question, &out->candidates, why);
    if (!err)
        err = candidates_make(question->device, &out->work, &out->candidates, why);
    if (!err)
        err = workload_estimate_make(&out->work, &out->candidates.hardware[0],
                                     &out->candidates.items[0].config, true, &out->estimate, why);
    out->has_estimate = !err;
    return err;
}

static void index_kernels(struct estimated *out)
{
    const struct partition *partition = out->partition;
    out->kernel_of = xcalloc(out->graph->node_count + 1, sizeof *out->kernel_of);
    for (size_t i = 0; i < out->graph->node_count; i++)
        out->kernel_of[i] = (uint32_t)partition->count;
    for (uint32_t s = 0; s < partition->count; s++)
        for (uint32_t k = 0; k < partition->subgraphs[s].node_count; k++)
            out->kernel_of[partition->nodes[partition->subgraphs[s].first_node + k]] = s;
}

static enum err make_work(const struct model *model, const struct params *dims,
                          struct estimated *out, struct error *why)
{
    struct workload_list list;
    out->options = (struct workload_options){.dims = *dims, .runtime = "onnxruntime"};
    enum err err = workload_list_make(&out->options, model, &list, why);
    if (err)
        return err;
    err = workload_make(&list.items[0], &out->work, why);
    workload_list_release(&list);
    if (err)
        return err;
    out->graph = &out->work.passes[0].graph;
    out->partition = &out->work.passes[0].partition;
    index_kernels(out);
    return ERR_OK;
}

static void release(struct estimated *estimated)
{
    if (estimated->has_estimate)
        workload_estimate_release(&estimated->estimate);
    if (estimated->graph)
        workload_release(&estimated->work);
    candidates_release(&estimated->candidates);
    free(estimated->kernel_of);
}

/* ---- names ---- */

/* "act/Mul/QuickGeluFusion/" -> "act/Mul". */
static void drop_fusion(char *name)
{
    size_t length = strlen(name);
    if (length && name[length - 1] == '/')
        name[length - 1] = '\0';
    char *slash = strrchr(name, '/');
    if (slash && str_ends(slash, "Fusion"))
        *slash = '\0';
}

/* Without what the runtime adds to the names of nodes and results: "fused Conv_0", "relu_0.tmp_0_nchwc", "Conv_3_token_12"
 * and "act/Mul/QuickGeluFusion/". */
static char *plain_name(const char *name)
{
    static const char FUSED[] = "fused ", LAYOUT[] = "_nchwc", TOKEN[] = "_token_";
    while (str_starts(name, FUSED))
        name += sizeof FUSED - 1;
    char *copy = xstrdup(name), *token = strstr(copy, TOKEN);
    if (token)
        *token = '\0';
    if (str_ends(copy, LAYOUT))
        copy[strlen(copy) - sizeof LAYOUT + 1] = '\0';
    drop_fusion(copy);
    return copy;
}

static node_id find_by_name(const struct graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->node_count; i++)
        if (str_equal(graph->nodes[i].name, name))
            return (node_id)i;
    for (size_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].producer != GRAPH_NONE && str_equal(graph->tensors[i].name, name))
            return graph->tensors[i].producer;
    return GRAPH_NONE;
}

/* An exact name comes first: a model may have names like those that the runtime makes. */
static node_id find_node(const struct graph *graph, const char *name)
{
    node_id found = find_by_name(graph, name);
    char *plain = plain_name(name);
    if (found == GRAPH_NONE && *plain)
        found = find_by_name(graph, plain);
    free(plain);
    return found;
}

/* ---- rows ---- */

struct join {
    const struct estimated *estimated;
    struct layers_nodes *nodes;
    size_t capacity;
    int32_t *row_of; /* by kernel: the row that has it; NO_ROW: none */
    bool *is_added;  /* by kernel: its estimate is in that row */
};

static struct layers_node *add_row(struct join *join, const char *name, const char *op)
{
    struct layers_node *row = XADD(join->nodes->items, join->nodes->count, join->capacity);
    *row = (struct layers_node){.name = xstrdup(name),
                                .op = op ? xstrdup(op) : NULL,
                                .calls = UNKNOWN,
                                .share = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN},
                                .estimated_s = UNKNOWN,
                                .estimated_j = UNKNOWN};
    return row;
}

static void add_estimate(struct join *join, struct layers_node *row, uint32_t kernel)
{
    const struct estimated *estimated = join->estimated;
    const struct subgraph *subgraph = &estimated->partition->subgraphs[kernel];
    join->is_added[kernel] = true;
    char *pattern = row->kernel ? xformat("%s, %s", row->kernel, subgraph->pattern)
                                : xstrdup(subgraph->pattern);
    free(row->kernel);
    row->kernel = pattern;
    if (!estimated->has_estimate)
        return;
    const struct subgraph_estimate *estimate = &estimated->estimate.passes[0].rows[kernel];
    add_known(&row->estimated_s, estimate->latency_s);
    add_known(&row->estimated_j, estimate->joules.total);
}

static void add_time(const struct node_trace *trace, const struct trace_node *node,
                     struct layers_node *row)
{
    double sigma, time_s = trace_node_seconds(trace, node, &sigma);
    add_known(&row->calls, (double)node->calls / (double)trace->runs);
    add_known(&row->share.time_s, time_s);
    row->share.time_sigma = hypot(known_or(row->share.time_sigma, 0), sigma);
}

/* "Conv+Add" where nodes of several operators are one row. */
static void add_op(struct layers_node *row, const char *op)
{
    size_t length = strlen(op);
    for (const char *at = strstr(row->op, op); at; at = strstr(at + 1, op))
        if ((at == row->op || at[-1] == '+') && (at[length] == '\0' || at[length] == '+'))
            return;
    char *both = xformat("%s+%s", row->op, op);
    free(row->op);
    row->op = both;
}

/* From a node's last operator back to the one that it is named after: a fused convolution has the name of its result. */
static node_id find_main(const struct graph *graph, node_id last, const char *op)
{
    enum { FUSED_MAX = 6 };
    static const char FUSED[] = "Fused";
    const char *wanted = str_starts(op, FUSED) ? op + sizeof FUSED - 1 : op;
    node_id at = last;
    for (int i = 0; i < FUSED_MAX && at != GRAPH_NONE; i++) {
        const struct graph_node *node = &graph->nodes[at];
        if (str_equal(text_or_empty(node->label), wanted))
            return at;
        const struct graph_tensor *input = graph_input(graph, node, 0);
        at = input ? input->producer : GRAPH_NONE;
    }
    return last;
}

/* The row of a node that ran: that of its kernel, or a new one. */
static struct layers_node *row_of_node(struct join *join, const struct trace_node *node)
{
    const struct estimated *estimated = join->estimated;
    const struct graph *graph = estimated->graph;
    node_id found = graph ? find_node(graph, node->name) : GRAPH_NONE;
    if (found == GRAPH_NONE)
        return add_row(join, node->name, node->op);
    uint32_t kernel = estimated->kernel_of[find_main(graph, found, node->op)];
    if (kernel == estimated->partition->count)
        return add_row(join, node->name, node->op);
    if (join->row_of[kernel] != NO_ROW) {
        struct layers_node *row = &join->nodes->items[join->row_of[kernel]];
        add_op(row, node->op);
        return row;
    }
    const char *name = estimated->partition->subgraphs[kernel].name;
    struct layers_node *row = add_row(join, name[0] ? name : node->name, node->op);
    join->row_of[kernel] = (int32_t)(row - join->nodes->items);
    add_estimate(join, row, kernel);
    return row;
}

/* Kernels between a fused node's last operator and its main one, which have no time of their own, are part of it. */
static void add_fused(struct join *join, const struct trace_node *node)
{
    const struct estimated *estimated = join->estimated;
    const struct graph *graph = estimated->graph;
    node_id at = find_node(graph, node->name);
    if (at == GRAPH_NONE)
        return;
    node_id main = find_main(graph, at, node->op);
    uint32_t kernel = estimated->kernel_of[main];
    if (kernel == estimated->partition->count || join->row_of[kernel] == NO_ROW)
        return;
    struct layers_node *row = &join->nodes->items[join->row_of[kernel]];
    while (at != main && at != GRAPH_NONE) {
        uint32_t other = estimated->kernel_of[at];
        if (other < estimated->partition->count && !join->is_added[other])
            add_estimate(join, row, other);
        const struct graph_tensor *input = graph_input(graph, &graph->nodes[at], 0);
        at = input ? input->producer : GRAPH_NONE;
    }
}

/* Kernels that did not run under any of their names. */
static void add_others(struct join *join)
{
    const struct estimated *estimated = join->estimated;
    for (uint32_t k = 0; k < estimated->partition->count; k++) {
        if (join->is_added[k])
            continue;
        struct layers_node *row = add_row(join, estimated->partition->subgraphs[k].name, NULL);
        add_estimate(join, row, k);
    }
}

static void join_rows(const struct estimated *estimated, const struct node_trace *trace,
                      struct layers_nodes *nodes)
{
    size_t kernels = estimated->graph ? estimated->partition->count : 0;
    struct join join = {.estimated = estimated,
                        .nodes = nodes,
                        .row_of = xcalloc(kernels + 1, sizeof *join.row_of),
                        .is_added = xcalloc(kernels + 1, sizeof *join.is_added)};
    for (size_t k = 0; k < kernels; k++)
        join.row_of[k] = NO_ROW;
    for (size_t i = 0; i < trace->count; i++)
        if (trace->nodes[i].calls)
            add_time(trace, &trace->nodes[i], row_of_node(&join, &trace->nodes[i]));
    for (size_t i = 0; estimated->graph && i < trace->count; i++)
        add_fused(&join, &trace->nodes[i]);
    if (estimated->graph)
        add_others(&join);
    free(join.row_of);
    free(join.is_added);
}

static void take_totals(const struct estimated *estimated, struct layers_nodes *nodes)
{
    const struct estimate_totals *total = &estimated->estimate.total;
    chars_copy(nodes->device, estimated->candidates.hardware[0].name);
    nodes->estimated_s = total->latency_s;
    nodes->estimated_s_error = workload_estimate_interval(&estimated->estimate, total->latency_s,
                                                          total->latency_plus_minus)
                                   .plus_minus;
    nodes->estimated_j = total->joules.total;
    nodes->estimated_j_error = workload_estimate_interval(&estimated->estimate, total->joules.total,
                                                          total->joules_plus_minus)
                                   .plus_minus;
}

void nodes_join(const struct node_question *question, const struct node_trace *trace,
                struct layers_model *model)
{
    struct layers_nodes *nodes = &model->nodes;
    struct estimated estimated = {0};
    struct params dims = {0};
    struct model source;
    struct error why = {0};
    nodes->estimated_s = nodes->estimated_j = UNKNOWN;
    nodes->estimated_s_error = nodes->estimated_j_error = UNKNOWN;
    take_shapes(question, &dims);
    enum err err = model_open(question->path, &source, &why);
    bool is_open = !err;
    if (!err)
        err = make_work(&source, &dims, &estimated, &why);
    if (!err) {
        model->facts.parameters = (uint64_t)graph_parameters(estimated.graph);
        err = make_estimate(question, &estimated, &why);
    }
    if (err)
        chars_copy(nodes->estimate_unknown, why.text);
    else
        take_totals(&estimated, nodes);
    join_rows(&estimated, trace, nodes);
    release(&estimated);
    if (is_open)
        model_close(&source);
    params_release(&dims);
}
