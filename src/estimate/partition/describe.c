#include "estimate/partition/describe.h"

#include <string.h>

#include "core/text.h"

static const struct graph_node *node_of(const struct partition *partition,
                                        const struct subgraph *subgraph, uint32_t index)
{
    return &partition->graph->nodes[partition->nodes[subgraph->first_node + index]];
}

/* "linear x3", "conv+batch_norm+relu"; what does not fit is counted. */
static void write_pattern(const struct partition *partition, struct subgraph *subgraph)
{
    size_t used = 0, room = sizeof subgraph->pattern - sizeof "+15 more";
    for (uint32_t i = 0, run; i < subgraph->node_count; i += run) {
        enum graph_op op = node_of(partition, subgraph, i)->op;
        char part[48], times[16] = "";
        for (run = 1; i + run < subgraph->node_count; run++)
            if (node_of(partition, subgraph, i + run)->op != op)
                break;
        if (run > 1)
            str_format(times, sizeof times, " x%u", run);
        str_join(part, sizeof part, used ? "+" : "", graph_op_name(op), times);
        if (used + strlen(part) > room) {
            str_format(subgraph->pattern + used, sizeof subgraph->pattern - used, "+%u more",
                       subgraph->node_count - i);
            return;
        }
        str_copy(subgraph->pattern + used, sizeof subgraph->pattern - used, part);
        used += strlen(part);
    }
}

/* Numbers of the columns of what a product makes: filters of a convolution, the last dimension else. */
static double columns_of(const struct graph_tensor *out, enum graph_op op)
{
    bool is_conv = op == GRAPH_CONV || op == GRAPH_CONV_TRANSPOSE;
    if (out->rank == 0)
        return 1;
    return (double)(is_conv && out->rank > 1 ? out->dims[1] : out->dims[out->rank - 1]);
}

static void measure_outputs(const struct partition *partition, struct subgraph *subgraph,
                            const struct graph_node *deciding)
{
    bool has_linears = deciding->op == GRAPH_LINEAR;
    for (uint32_t i = 0; i < subgraph->node_count; i++) {
        const struct graph_node *node = node_of(partition, subgraph, i);
        const struct graph_tensor *out = graph_output(partition->graph, node, 0);
        if (!out || !(node == deciding || (has_linears && node->op == GRAPH_LINEAR)))
            continue;
        double elements = graph_elements(out), columns = columns_of(out, node->op);
        subgraph->outputs += elements;
        if (columns > 0 && elements / columns > subgraph->rows)
            subgraph->rows = elements / columns;
    }
}

/* What devices may share: products, and whatever else is done to some heads, or to some columns of the
 * first matrix of a block.  Second matrices of blocks are added up: two sums a layer.  Logits are gathered; so is every product of a
 * model that does not say which of the two its matrices are. */
static void describe_sharing(const struct partition *partition, const struct sharing *sharing,
                             const struct graph_node *deciding, struct subgraph *subgraph)
{
    bool is_gathered = subgraph->op == GRAPH_LINEAR &&
                       (subgraph->component == DECODER_HEAD || !sharing->is_decoder);
    subgraph->is_shared = sharing_is_shared_matrix(sharing, deciding) ||
                          deciding->op == GRAPH_ATTENTION || deciding->op == GRAPH_MATMUL ||
                          sharing_is_divided(sharing, deciding);
    subgraph->link_gathered = is_gathered ? subgraph->outputs : 0;
    for (uint32_t i = 0; i < subgraph->node_count; i++) {
        const struct graph_node *node = node_of(partition, subgraph, i);
        subgraph->is_summed |= sharing_is_summed(node);
        subgraph->link_summed += sharing_summed(sharing, node);
    }
}

void describe_subgraph(const struct partition *partition, const struct sharing *sharing,
                       struct subgraph *subgraph)
{
    const struct graph_node *deciding = node_of(partition, subgraph, 0);
    double most = 0;
    for (uint32_t i = 0; i < subgraph->node_count; i++) {
        const struct graph_node *node = node_of(partition, subgraph, i);
        double macs = graph_node_cost(partition->graph, node).macs;
        if (macs > most) {
            most = macs;
            deciding = node;
        }
    }
    subgraph->name = deciding->name;
    subgraph->op = deciding->op;
    subgraph->layer = deciding->layer;
    subgraph->component = deciding->component;
    bool is_recurrent = graph_op_kind(deciding->op) == GRAPH_KIND_RECURRENT;
    int64_t steps = is_recurrent ? deciding->as.recurrent.steps : 1;
    subgraph->steps = steps > 1 ? (double)steps : 1;
    write_pattern(partition, subgraph);
    measure_outputs(partition, subgraph, deciding);
    describe_sharing(partition, sharing, deciding, subgraph);
}
