/* A graph as text that others draw: graphviz's dot, and Mermaid.  One node an operation, one arrow a
 * tensor that one makes and another reads; parameters are left out. */
#include <inttypes.h>

#include "core/text.h"
#include "graph/graph.h"

/* Names come from files and may hold anything.  In dot a quote and a backslash are escaped; Mermaid knows
 * no escapes but entities. */
static void add_name(struct text *out, const char *name, bool mermaid)
{
    for (; name && *name; name++) {
        unsigned char c = (unsigned char)*name;
        if (c < ' ' || c == 0x7f)
            text_add(out, " ");
        else if (mermaid && (c == '"' || c == '#' || c == ';' || c == '<' || c == '>' || c == '&'))
            text_addf(out, "#%d;", c);
        else if (!mermaid && (c == '"' || c == '\\'))
            text_addf(out, "\\%c", c);
        else
            text_add_bytes(out, name, 1);
    }
}

static void add_shape(struct text *out, const struct graph_tensor *tensor)
{
    for (uint8_t i = 0; tensor && i < tensor->rank; i++)
        text_addf(out, "%s%" PRId64, i ? "x" : " ", tensor->dims[i]);
}

/* "conv1", and in a second line what it does and the shape that comes out. */
static void add_label(struct text *out, const struct graph *graph, const struct graph_node *node,
                      bool mermaid)
{
    add_name(out, node->name, mermaid);
    text_add(out, mermaid ? "<br/>" : "\\n");
    if (node->op == GRAPH_UNKNOWN && node->label)
        add_name(out, node->label, mermaid);
    else
        text_add(out, graph_op_name(node->op));
    add_shape(out, graph_output(graph, node, 0));
}

static void add_edges(struct text *out, const struct graph *graph, size_t index, bool mermaid)
{
    const struct graph_node *node = &graph->nodes[index];
    const tensor_id *inputs = graph_inputs(graph, node);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (inputs[i] == GRAPH_NONE)
            continue;
        const struct graph_tensor *tensor = &graph->tensors[inputs[i]];
        if (tensor->maker != GRAPH_NONE)
            text_addf(out, "  n%" PRId32 " %s n%zu%s\n", tensor->maker, mermaid ? "-->" : "->",
                      index, mermaid ? "" : ";");
        else if (tensor->role == GRAPH_INPUT || tensor->role == GRAPH_CACHE)
            text_addf(out, "  t%" PRId32 " %s n%zu%s\n", inputs[i], mermaid ? "-->" : "->", index,
                      mermaid ? "" : ";");
    }
}

static void add_sources(struct text *out, const struct graph *graph, bool mermaid)
{
    for (size_t i = 0; i < graph->tensor_count; i++) {
        const struct graph_tensor *tensor = &graph->tensors[i];
        if (tensor->maker != GRAPH_NONE ||
            (tensor->role != GRAPH_INPUT && tensor->role != GRAPH_CACHE))
            continue;
        text_addf(out, mermaid ? "  t%zu([\"" : "  t%zu [shape=ellipse, label=\"", i);
        add_name(out, tensor->name, mermaid);
        add_shape(out, tensor);
        text_add(out, mermaid ? "\"])\n" : "\"];\n");
    }
}

static void write_nodes(const struct graph *graph, struct text *out, bool mermaid)
{
    add_sources(out, graph, mermaid);
    for (size_t i = 0; i < graph->node_count; i++) {
        text_addf(out, mermaid ? "  n%zu[\"" : "  n%zu [label=\"", i);
        add_label(out, graph, &graph->nodes[i], mermaid);
        text_add(out, mermaid ? "\"]\n" : "\"];\n");
    }
    for (size_t i = 0; i < graph->node_count; i++)
        add_edges(out, graph, i, mermaid);
}

void graph_write_dot(const struct graph *graph, struct text *out)
{
    text_add(out, "digraph \"");
    add_name(out, graph->name, false);
    text_add(out, "\" {\n  node [shape=box, fontname=\"sans-serif\"];\n");
    write_nodes(graph, out, false);
    text_add(out, "}\n");
}

void graph_write_mermaid(const struct graph *graph, struct text *out)
{
    text_add(out, "flowchart TD\n");
    write_nodes(graph, out, true);
}
