#include "estimate/partition/region.h"

enum { MOST_TENSORS = PIECE_MOST_NODES + 1 };

struct search {
    const struct pieces *pieces;
    const struct flow *flow;
    tensor_id tensors[MOST_TENSORS]; /* the start, then what each node makes */
    uint32_t read[MOST_TENSORS];     /* readers that were looked at */
    uint32_t count;
    uint32_t starts; /* nodes of the region that read the start */
    struct region *region;
};

static bool has_tensor(const struct search *search, tensor_id root)
{
    for (uint32_t i = 0; i < search->count; i++)
        if (search->tensors[i] == root)
            return true;
    return false;
}

/* Parts of what the region has, put together: halves that a rotation of positions swaps. */
static bool is_joining(const struct graph_node *node)
{
    return node->op == GRAPH_MOVE && node->input_count >= 2;
}

static bool is_step(const struct search *search, node_id id)
{
    const struct graph_node *node = &search->flow->graph->nodes[id];
    enum graph_kind kind = graph_op_kind(node->op);
    bool is_pointwise = (kind == GRAPH_KIND_ELEMENTWISE && node->op != GRAPH_ROTATION) ||
                        kind == GRAPH_KIND_ACTIVATION || node->op == GRAPH_REDUCE;
    if (!(is_pointwise || is_joining(node)) || search->pieces->of[id] >= 0 ||
        node->output_count != 1 || node->input_count > PIECE_MOST_NODES)
        return false;
    for (size_t i = 0; i < node->input_count; i++) {
        tensor_id root = flow_input(search->flow, node, i);
        if (flow_is_computed(search->flow, root) && !has_tensor(search, root))
            return false;
    }
    return true;
}

/* The earliest reader, in the order of the graph, that was not looked at; *of is what it reads. */
static node_id next_reader(const struct search *search, uint32_t *of)
{
    node_id first = GRAPH_NONE;
    for (uint32_t i = 0; i < search->count; i++) {
        tensor_id root = search->tensors[i];
        if (search->read[i] == flow_reader_count(search->flow, root))
            continue;
        node_id reader = search->flow->readers[search->flow->first_reader[root] + search->read[i]];
        if (first < 0 || reader < first || (reader == first && *of == 0)) {
            first = reader;
            *of = i;
        }
    }
    return first;
}

/* Passes a reader at every tensor that it reads. */
static void pass(struct search *search, node_id reader)
{
    for (uint32_t i = 0; i < search->count; i++) {
        tensor_id root = search->tensors[i];
        if (search->read[i] < flow_reader_count(search->flow, root) &&
            search->flow->readers[search->flow->first_reader[root] + search->read[i]] == reader)
            search->read[i]++;
    }
}

/* Is what every node but the last makes read, and only inside? */
static bool is_closed(const struct search *search)
{
    for (uint32_t i = 1; i + 1 < search->count; i++)
        if (search->read[i] != flow_reader_count(search->flow, search->tensors[i]) ||
            search->flow->goes_out[search->tensors[i]])
            return false;
    return true;
}

static void grow_region(struct search *search)
{
    struct region *region = search->region;
    uint32_t nodes = 0;
    while (nodes < PIECE_MOST_NODES) {
        uint32_t of = 0;
        node_id reader = next_reader(search, &of);
        if (reader < 0)
            return;
        bool is_one = is_step(search, reader);
        if (!is_one && of != 0)
            return; /* something of it is read outside: it ends here */
        uint32_t before = search->read[0];
        pass(search, reader);
        if (!is_one)
            continue; /* another reader of the start */
        search->starts += search->read[0] - before;
        const struct graph_node *node = &search->flow->graph->nodes[reader];
        region->nodes[nodes++] = reader;
        search->tensors[search->count++] =
            search->flow->root[graph_outputs(search->flow->graph, node)[0]];
        if (is_closed(search)) {
            region->count = nodes;
            region->takes_all =
                search->starts == flow_reader_count(search->flow, search->tensors[0]) &&
                !search->flow->goes_out[search->tensors[0]];
        }
    }
}

bool region_find(const struct pieces *pieces, tensor_id start, node_id first, struct region *out)
{
    struct search search = {
        .pieces = pieces, .flow = pieces->flow, .tensors = {start}, .count = 1, .region = out};
    uint32_t readers = flow_reader_count(pieces->flow, start);
    *out = (struct region){0};
    if (readers < 2 || readers > PIECE_MOST_NODES)
        return false;
    grow_region(&search);
    if (out->count < 2 || out->nodes[0] != first)
        return false;
    for (uint32_t i = 0; i < out->count; i++)
        out->has_means |= pieces->flow->graph->nodes[out->nodes[i]].op == GRAPH_REDUCE;
    for (uint32_t i = 0; i < out->count; i++)
        out->has_parts |= is_joining(&pieces->flow->graph->nodes[out->nodes[i]]);
    return true;
}
