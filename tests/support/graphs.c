#include "support/graphs.h"

#include <stdio.h>
#include <stdlib.h>

uint32_t rng_below(struct rng *rng, uint32_t limit)
{
    uint64_t z = (rng->state += 0x9E3779B97F4A7C15u); /* SplitMix64 */
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ (z >> 31)) >> 32) % limit;
}

static void must(enum err err, const struct error *why)
{
    if (err) {
        fprintf(stderr, "graphs: %s\n", why->text);
        abort();
    }
}

struct growing {
    struct graph *graph;
    struct rng *rng;
    tensor_id *made; /* tensors that nodes may read */
    uint32_t count;
    tensor_id shared; /* a weight with several readers */
};

static tensor_id add_tensor(struct growing *growing, enum graph_role role, enum graph_dtype dtype,
                            int64_t rows, int64_t columns)
{
    struct graph_tensor tensor = {
        .name = "t", .role = role, .dtype = dtype, .rank = 2, .dims = {rows, columns}};
    return graph_add_tensor(growing->graph, &tensor);
}

/* Mostly one of the latest: chains are the most common. */
static tensor_id pick(struct growing *growing)
{
    uint32_t back = rng_below(growing->rng, 4) ? 1 + rng_below(growing->rng, 3)
                                               : 1 + rng_below(growing->rng, 12);
    return growing->made[back > growing->count ? 0 : growing->count - back];
}

static enum graph_op pick_op(struct rng *rng)
{
    static const enum graph_op OPS[] = {
        GRAPH_CONV,      GRAPH_LINEAR,     GRAPH_LINEAR,   GRAPH_LINEAR,    GRAPH_MATMUL,
        GRAPH_MATMUL,    GRAPH_BATCH_NORM, GRAPH_RMS_NORM, GRAPH_RELU,      GRAPH_SIGMOID,
        GRAPH_SILU,      GRAPH_ADD,        GRAPH_ADD,      GRAPH_MUL,       GRAPH_MUL,
        GRAPH_SOFTMAX,   GRAPH_MOVE,       GRAPH_VIEW,     GRAPH_VIEW,      GRAPH_REDUCE,
        GRAPH_EMBEDDING, GRAPH_UNKNOWN,    GRAPH_ROTATION, GRAPH_REARRANGE, GRAPH_REARRANGE,
    };
    return OPS[rng_below(rng, sizeof OPS / sizeof *OPS)];
}

static void add_node(struct growing *growing, uint32_t index)
{
    struct rng *rng = growing->rng;
    enum graph_op op = pick_op(rng);
    enum graph_kind kind = graph_op_kind(op);
    tensor_id in[3] = {pick(growing), GRAPH_NONE, GRAPH_NONE};
    size_t count = 1;
    int64_t rows = 8, columns = 16;
    bool is_binary = op == GRAPH_ADD || op == GRAPH_MUL || op == GRAPH_MATMUL;
    if (is_binary)
        in[count++] = rng_below(rng, 8) ? pick(growing) : growing->shared;
    else if (kind == GRAPH_KIND_PRODUCT || kind == GRAPH_KIND_NORM || kind == GRAPH_KIND_LOOKUP)
        in[count++] = rng_below(rng, 6) ? add_tensor(growing, GRAPH_PARAMETER, GRAPH_FLOAT, 16, 16)
                                        : growing->shared;
    if (rng_below(rng, 10) == 0)
        rows = 4;
    if (op == GRAPH_VIEW) { /* the same elements in another shape */
        rows = growing->graph->tensors[in[0]].dims[1];
        columns = growing->graph->tensors[in[0]].dims[0];
    }
    char name[24];
    snprintf(name, sizeof name, "n%u", index);
    struct graph_node node = {
        .op = op, .name = name, .layer = GRAPH_NONE, .component = DECODER_COMPONENT_COUNT};
    if (op == GRAPH_LINEAR && rng_below(rng, 5) == 0)
        node.weight_fraction = 0.25;
    enum graph_dtype dtype =
        op == GRAPH_REARRANGE ? growing->graph->tensors[in[0]].dtype : GRAPH_FLOAT;
    tensor_id out[2] = {add_tensor(growing, GRAPH_ACTIVATION, dtype, rows, columns)};
    size_t outputs = 1;
    if (op != GRAPH_VIEW && rng_below(rng, 20) == 0)
        out[outputs++] = add_tensor(growing, GRAPH_ACTIVATION, GRAPH_FLOAT, 2, 3);
    graph_add_node(growing->graph, &node, in, count, out, outputs);
    for (size_t i = 0; i < outputs; i++) {
        growing->made[growing->count++] = out[i];
        growing->graph->tensors[out[i]].is_output = rng_below(rng, 15) == 0;
    }
}

void graphs_random(struct rng *rng, uint32_t nodes, struct graph *out)
{
    struct error why = {0};
    struct growing growing = {
        .graph = out, .rng = rng, .made = malloc((2 * (size_t)nodes + 8) * sizeof(tensor_id))};
    *out = (struct graph){.batch = 1};
    if (!growing.made)
        abort();
    growing.made[growing.count++] = add_tensor(&growing, GRAPH_INPUT, GRAPH_FLOAT, 8, 16);
    growing.made[growing.count++] = add_tensor(&growing, GRAPH_INPUT, GRAPH_INT64, 8, 16);
    growing.made[growing.count++] = add_tensor(&growing, GRAPH_CACHE, GRAPH_FLOAT, 64, 16);
    growing.shared = add_tensor(&growing, GRAPH_PARAMETER, GRAPH_FLOAT, 16, 16);
    for (uint32_t i = 0; i < nodes; i++)
        add_node(&growing, i);
    out->tensors[growing.made[growing.count - 1]].is_output = true;
    must(graph_finish(out, &why), &why);
    free(growing.made);
}

bool graphs_is_view(const struct graph *graph, const struct graph_node *node, bool in_place)
{
    if (node->op != GRAPH_REARRANGE || !in_place)
        return node->op == GRAPH_VIEW;
    for (size_t i = 0; i < node->output_count; i++)
        if (graph_output(graph, node, i)->is_output)
            return false;
    return true;
}

tensor_id graphs_view_base(const struct graph *graph, bool in_place, tensor_id id)
{
    node_id producer = graph->tensors[id].producer;
    if (producer < 0 || !graphs_is_view(graph, &graph->nodes[producer], in_place))
        return id;
    return graphs_view_base(graph, in_place, graph_inputs(graph, &graph->nodes[producer])[0]);
}
