/* A graph as text that graphviz or Mermaid draw: a box a node with the shapes of its weights, an arrow a
 * tensor with its shape.  What has too many nodes to be looked at is drawn in runs of nodes that follow each
 * other, and says so; since nodes stand in order, arrows between runs still go one way.
 *
 * Names are any bytes that a file holds: they end up inside of labels and nowhere else. */
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/utf8.h"
#include "graph/graph.h"

enum {
    MOST_BOXES_DOT = 1000,
    MOST_BOXES_MERMAID = 250, /* its own limits are 500 arrows and 50,000 letters */
    MOST_ARROWS = 10,         /* a box, on average */
    MOST_ENDS = 128,          /* inputs, caches and outputs of the model, and arrows of each kind */
    LONGEST_NAME = 80,
};

struct drawing {
    const struct graph *graph;
    struct text *out;
    bool is_mermaid;
    size_t run; /* nodes in a box */
    node_id
        *joined; /* of each box, the last one that it has an arrow to; only where boxes are runs */
};

/* ---- labels ---- */

/* One letter, as it may stand between quotes. */
static void add_letter(struct drawing *draw, const char *letter, size_t length)
{
    static const struct {
        char letter;
        const char *dot, *mermaid;
    } SPECIAL[] = {{'"', "\\\"", "#quot;"}, {'\\', "\\\\", "\\"}, {'#', "#", "#35;"},
                   {'<', "<", "#lt;"},      {'>', ">", "#gt;"},   {'`', "`", "#96;"},
                   {'&', "&amp;", "#amp;"}, {';', ";", "#59;"}};
    for (size_t i = 0; i < sizeof SPECIAL / sizeof SPECIAL[0] && length == 1; i++)
        if (*letter == SPECIAL[i].letter) {
            text_add(draw->out, draw->is_mermaid ? SPECIAL[i].mermaid : SPECIAL[i].dot);
            return;
        }
    bool is_control = length == 1 && ((unsigned char)*letter < ' ' || *letter == 0x7f);
    text_add_bytes(draw->out, is_control ? " " : letter, is_control ? 1 : length);
}

static void add_name(struct drawing *draw, const char *name)
{
    size_t left = strlen(name), shown = 0;
    while (left > 0 && shown < LONGEST_NAME) {
        size_t length = utf8_length(name, left);
        if (length)
            add_letter(draw, name, length);
        else
            text_add(draw->out, "?");
        length = length ? length : 1;
        name += length;
        left -= length;
        shown++;
    }
    if (left > 0)
        text_add(draw->out, "...");
}

static void add_line(struct drawing *draw)
{
    text_add(draw->out, draw->is_mermaid ? "<br/>" : "\\n");
}

static void add_shape(struct drawing *draw, const struct graph_tensor *tensor)
{
    for (unsigned i = 0; i < tensor->rank; i++)
        text_addf(draw->out, "%s%lld", i ? "x" : "", (long long)tensor->dims[i]);
    if (tensor->rank == 0)
        text_add(draw->out, "1");
}

/* ---- boxes ---- */

enum box { BOX_NODE, BOX_INPUT, BOX_OUTPUT };

static void begin_box(struct drawing *draw, enum box box, long long number)
{
    static const char LETTERS[] = {'n', 'i', 'o'};
    text_addf(draw->out, draw->is_mermaid ? "  %c%lld%s\"" : "  %c%lld%s [label=\"", LETTERS[box],
              number, draw->is_mermaid ? (box == BOX_NODE ? "[" : "([") : "");
}

static void end_box(struct drawing *draw, enum box box)
{
    if (draw->is_mermaid)
        text_add(draw->out, box == BOX_NODE ? "\"]\n" : "\"])\n");
    else
        text_add(draw->out, box == BOX_NODE ? "\"];\n" : "\", shape=ellipse];\n");
}

static bool is_of_model(const struct graph_tensor *tensor)
{
    return tensor->role == GRAPH_PARAMETER || tensor->role == GRAPH_BUFFER;
}

/* Its name, then what it is and the first of its weights: "conv1", "Conv 64x3x7x7". */
static void add_node(struct drawing *draw, const struct graph_node *node)
{
    add_name(draw, node->name);
    add_line(draw);
    add_name(draw, node->label);
    for (size_t i = 0; i < node->input_count; i++) {
        const struct graph_tensor *tensor = graph_input(draw->graph, node, i);
        if (!tensor || !is_of_model(tensor))
            continue;
        text_add(draw->out, " ");
        add_shape(draw, tensor);
        break;
    }
}

static bool is_from_outside(const struct graph_tensor *tensor)
{
    return tensor->maker == GRAPH_NONE &&
           (tensor->role == GRAPH_INPUT || tensor->role == GRAPH_CACHE);
}

static void draw_boxes(struct drawing *draw)
{
    const struct graph *graph = draw->graph;
    for (size_t i = 0; i < graph->node_count; i += draw->run) {
        size_t last = i + draw->run < graph->node_count ? i + draw->run - 1 : graph->node_count - 1;
        begin_box(draw, BOX_NODE, (long long)(i / draw->run));
        if (draw->run == 1) {
            add_node(draw, &graph->nodes[i]);
        } else {
            text_addf(draw->out, "%zu nodes", last - i + 1);
            add_line(draw);
            add_name(draw, graph->nodes[i].name);
            text_add(draw->out, " ... ");
            add_name(draw, graph->nodes[last].name);
        }
        end_box(draw, BOX_NODE);
    }
}

static void draw_ends(struct drawing *draw)
{
    size_t inputs = 0, outputs = 0;
    for (size_t i = 0; i < draw->graph->tensor_count; i++) {
        const struct graph_tensor *tensor = &draw->graph->tensors[i];
        if (is_from_outside(tensor) && inputs++ < MOST_ENDS) {
            begin_box(draw, BOX_INPUT, (long long)i);
            add_name(draw, tensor->name);
            end_box(draw, BOX_INPUT);
        }
        if (tensor->is_output && outputs++ < MOST_ENDS) {
            begin_box(draw, BOX_OUTPUT, (long long)i);
            add_name(draw, tensor->name);
            end_box(draw, BOX_OUTPUT);
        }
    }
}

/* ---- arrows ---- */

static void draw_arrow(struct drawing *draw, char from, long long from_number, char to,
                       long long to_number, const struct graph_tensor *tensor)
{
    text_addf(draw->out, "  %c%lld %s", from, from_number, draw->is_mermaid ? "-- \"" : "-> ");
    if (draw->is_mermaid) {
        add_shape(draw, tensor);
        text_addf(draw->out, "\" --> %c%lld\n", to, to_number);
    } else {
        text_addf(draw->out, "%c%lld [label=\"", to, to_number);
        add_shape(draw, tensor);
        text_add(draw->out, "\"];\n");
    }
}

/* Between runs one arrow is enough, with the shape of the first tensor. */
static bool is_drawn(struct drawing *draw, node_id from, node_id to)
{
    if (draw->run == 1)
        return false;
    if (from == to || draw->joined[from] == to)
        return true;
    draw->joined[from] = to;
    return false;
}

static void draw_arrows(struct drawing *draw, size_t most)
{
    const struct graph *graph = draw->graph;
    size_t drawn = 0, left_out = 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        const tensor_id *ids = graph_inputs(graph, &graph->nodes[i]);
        node_id to = (node_id)(i / draw->run);
        for (size_t k = 0; k < graph->nodes[i].input_count; k++) {
            const struct graph_tensor *tensor = graph_input(graph, &graph->nodes[i], k);
            if (!tensor || tensor->maker == GRAPH_NONE || (k > 0 && ids[k] == ids[k - 1]))
                continue;
            node_id from = (node_id)((size_t)tensor->maker / draw->run);
            if (is_drawn(draw, from, to))
                continue;
            if (drawn++ < most)
                draw_arrow(draw, 'n', from, 'n', to, tensor);
            else
                left_out++;
        }
    }
    if (left_out)
        text_addf(draw->out, "%s%zu arrows are left out\n", draw->is_mermaid ? "  %% " : "  // ",
                  left_out);
}

/* From what has a box alone; where there are very many, the first. */
static void draw_end_arrows(struct drawing *draw)
{
    const struct graph *graph = draw->graph;
    size_t outputs = 0, arrows = 0;
    tensor_id last_drawn = GRAPH_NONE; /* the most inputs that have a box stand first */
    size_t inputs = 0;
    for (size_t i = 0; i < graph->tensor_count && inputs < MOST_ENDS; i++)
        if (is_from_outside(&graph->tensors[i])) {
            last_drawn = (tensor_id)i;
            inputs++;
        }
    for (size_t i = 0; i < graph->node_count && arrows < MOST_ENDS; i++)
        for (size_t k = 0; k < graph->nodes[i].input_count && arrows < MOST_ENDS; k++) {
            tensor_id id = graph_inputs(graph, &graph->nodes[i])[k];
            if (id < 0 || id > last_drawn || !is_from_outside(&graph->tensors[id]))
                continue;
            draw_arrow(draw, 'i', id, 'n', (long long)(i / draw->run), &graph->tensors[id]);
            arrows++;
        }
    for (size_t i = 0; i < graph->tensor_count && outputs < MOST_ENDS; i++) {
        const struct graph_tensor *tensor = &graph->tensors[i];
        if (!tensor->is_output)
            continue;
        outputs++;
        if (tensor->maker != GRAPH_NONE)
            draw_arrow(draw, 'n', (long long)((size_t)tensor->maker / draw->run), 'o', (long long)i,
                       tensor);
    }
}

/* ---- the whole ---- */

static void draw_graph(struct drawing *draw, size_t most)
{
    size_t count = draw->graph->node_count;
    draw->run = count > most ? (count + most - 1) / most : 1;
    size_t boxes = count / draw->run + 1;
    draw->joined = malloc(boxes * sizeof *draw->joined);
    if (!draw->joined) {
        draw->out->failed = true;
        return;
    }
    for (size_t i = 0; i < boxes; i++)
        draw->joined[i] = GRAPH_NONE;
    if (draw->run > 1)
        text_addf(draw->out, "%s%zu nodes, in runs of %zu\n", draw->is_mermaid ? "  %% " : "  // ",
                  count, draw->run);
    draw_boxes(draw);
    draw_ends(draw);
    draw_arrows(draw, MOST_ARROWS * most);
    draw_end_arrows(draw);
    free(draw->joined);
}

void graph_write_dot(const struct graph *graph, struct text *out)
{
    struct drawing draw = {.graph = graph, .out = out};
    text_add(out, "digraph \"");
    add_name(&draw, graph->name);
    text_add(out, "\" {\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontsize=10];\n");
    draw_graph(&draw, MOST_BOXES_DOT);
    text_add(out, "}\n");
}

void graph_write_mermaid(const struct graph *graph, struct text *out)
{
    struct drawing draw = {.graph = graph, .out = out, .is_mermaid = true};
    text_add(out, "flowchart TD\n");
    draw_graph(&draw, MOST_BOXES_MERMAID);
}
