/* A graph in the language of graphviz or Mermaid: a box per node with the shapes of its weights, an arrow per tensor
 * with its shape.  A graph with too many nodes is drawn in runs of consecutive nodes, with a note; since nodes are in
 * topological order, arrows between runs are acyclic.
 *
 * Names may be any bytes of a file: they are only used in labels. */
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "graph/graph.h"

enum {
    MAX_BOXES_DOT = 1000,
    MAX_BOXES_MERMAID = 250, /* its own limits are 500 arrows and 50,000 characters */
    MAX_ARROWS = 10,         /* per box, on average */
    MAX_ENDS = 128,          /* inputs, caches and outputs of the model, and arrows of each kind */
    LONGEST_NAME = 80,
};

/* The syntax around a label in both languages: of a node, of an input or output. */
static const struct language {
    const char *begin[2], *end[2];
    const char *new_line, *comment;
} DOT = {{" [label=\"", " [label=\""}, {"\"];\n", "\", shape=ellipse];\n"}, "\\n", "  // "},
  MERMAID = {{"[\"", "([\""}, {"\"]\n", "\"])\n"}, "<br/>", "  %% "};

struct drawing {
    const struct graph *graph;
    struct text *out;
    const struct language *language;
    size_t run;      /* nodes per box */
    node_id *joined; /* per run: the last run that it has an arrow to */
};

static bool is_mermaid(const struct drawing *draw)
{
    return draw->language == &MERMAID;
}

/* ---- labels ---- */

/* One character, escaped for a quoted label. */
static void add_character(struct drawing *draw, const char *character, size_t length)
{
    static const struct {
        char character;
        const char *dot, *mermaid;
    } SPECIAL[] = {{'"', "\\\"", "#quot;"}, {'\\', "\\\\", "\\"}, {'#', "#", "#35;"},
                   {'<', "<", "#lt;"},      {'>', ">", "#gt;"},   {'`', "`", "#96;"},
                   {'&', "&amp;", "#amp;"}, {';', ";", "#59;"}};
    for (size_t i = 0; i < COUNT_OF(SPECIAL) && length == 1; i++)
        if (*character == SPECIAL[i].character) {
            text_add(draw->out, is_mermaid(draw) ? SPECIAL[i].mermaid : SPECIAL[i].dot);
            return;
        }
    bool is_control = length == 1 && ((unsigned char)*character < ' ' || *character == 0x7f);
    text_add_bytes(draw->out, is_control ? " " : character, is_control ? 1 : length);
}

static void add_name(struct drawing *draw, const char *name)
{
    size_t left = strlen(name), shown = 0;
    while (left > 0 && shown < LONGEST_NAME) {
        size_t length = utf8_length(name, left);
        if (length)
            add_character(draw, name, length);
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

static void add_shape(struct drawing *draw, const struct graph_tensor *tensor)
{
    for (unsigned i = 0; i < tensor->rank; i++)
        text_addf(draw->out, "%s%lld", i ? "x" : "", (long long)tensor->dims[i]);
    if (tensor->rank == 0)
        text_add(draw->out, "1");
}

/* ---- boxes ---- */

static void begin_box(struct drawing *draw, char letter, long long number)
{
    text_addf(draw->out, "  %c%lld%s", letter, number, draw->language->begin[letter != 'n']);
}

static void end_box(struct drawing *draw, char letter)
{
    text_add(draw->out, draw->language->end[letter != 'n']);
}

static bool is_weight(const struct graph_tensor *tensor)
{
    return tensor->role == GRAPH_PARAMETER || tensor->role == GRAPH_BUFFER;
}

/* Labels a node with its name, its operator and the shape of its first weight: "conv1", "Conv 64x3x7x7". */
static void add_node(struct drawing *draw, const struct graph_node *node)
{
    add_name(draw, node->name);
    text_add(draw->out, draw->language->new_line);
    add_name(draw, node->label);
    for (size_t i = 0; i < node->input_count; i++) {
        const struct graph_tensor *tensor = graph_input(draw->graph, node, i);
        if (!tensor || !is_weight(tensor))
            continue;
        text_add(draw->out, " ");
        add_shape(draw, tensor);
        break;
    }
}

static bool is_model_input(const struct graph_tensor *tensor)
{
    return tensor->producer == GRAPH_NONE &&
           (tensor->role == GRAPH_INPUT || tensor->role == GRAPH_CACHE);
}

static void draw_boxes(struct drawing *draw)
{
    const struct graph *graph = draw->graph;
    for (size_t i = 0; i < graph->node_count; i += draw->run) {
        size_t last = i + draw->run < graph->node_count ? i + draw->run - 1 : graph->node_count - 1;
        begin_box(draw, 'n', (long long)(i / draw->run));
        if (draw->run == 1) {
            add_node(draw, &graph->nodes[i]);
        } else {
            text_addf(draw->out, "%zu nodes", last - i + 1);
            text_add(draw->out, draw->language->new_line);
            add_name(draw, graph->nodes[i].name);
            text_add(draw->out, " ... ");
            add_name(draw, graph->nodes[last].name);
        }
        end_box(draw, 'n');
    }
}

static void draw_end(struct drawing *draw, char letter, size_t tensor)
{
    begin_box(draw, letter, (long long)tensor);
    add_name(draw, draw->graph->tensors[tensor].name);
    end_box(draw, letter);
}

static void draw_ends(struct drawing *draw)
{
    size_t inputs = 0, outputs = 0;
    for (size_t i = 0; i < draw->graph->tensor_count; i++) {
        if (is_model_input(&draw->graph->tensors[i]) && inputs++ < MAX_ENDS)
            draw_end(draw, 'i', i);
        if (draw->graph->tensors[i].is_output && outputs++ < MAX_ENDS)
            draw_end(draw, 'o', i);
    }
}

/* ---- arrows ---- */

static void draw_arrow(struct drawing *draw, char from, long long from_number, char to,
                       long long to_number, const struct graph_tensor *tensor)
{
    if (is_mermaid(draw))
        text_addf(draw->out, "  %c%lld -- \"", from, from_number);
    else
        text_addf(draw->out, "  %c%lld -> %c%lld [label=\"", from, from_number, to, to_number);
    add_shape(draw, tensor);
    if (is_mermaid(draw))
        text_addf(draw->out, "\" --> %c%lld\n", to, to_number);
    else
        text_add(draw->out, "\"];\n");
}

/* One arrow between two runs, with the shape of the first tensor. */
static bool is_drawn(struct drawing *draw, node_id from, node_id to)
{
    if (draw->run == 1)
        return false;
    if (from == to || draw->joined[from] == to)
        return true;
    draw->joined[from] = to;
    return false;
}

static void draw_arrows(struct drawing *draw, size_t limit)
{
    const struct graph *graph = draw->graph;
    size_t drawn = 0, omitted = 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        const tensor_id *ids = graph_inputs(graph, &graph->nodes[i]);
        node_id to = (node_id)(i / draw->run);
        for (size_t k = 0; k < graph->nodes[i].input_count; k++) {
            const struct graph_tensor *tensor = graph_input(graph, &graph->nodes[i], k);
            if (!tensor || tensor->producer == GRAPH_NONE || (k > 0 && ids[k] == ids[k - 1]))
                continue;
            node_id from = (node_id)((size_t)tensor->producer / draw->run);
            if (is_drawn(draw, from, to))
                continue;
            if (drawn++ < limit)
                draw_arrow(draw, 'n', from, 'n', to, tensor);
            else
                omitted++;
        }
    }
    if (omitted)
        text_addf(draw->out, "%s%zu arrows omitted\n", draw->language->comment, omitted);
}

/* Draws arrows only for inputs and outputs that have a box. */
static void draw_end_arrows(struct drawing *draw)
{
    const struct graph *graph = draw->graph;
    size_t outputs = 0, arrows = 0;
    tensor_id last_drawn = GRAPH_NONE; /* inputs up to this one have a box */
    size_t inputs = 0;
    for (size_t i = 0; i < graph->tensor_count && inputs < MAX_ENDS; i++)
        if (is_model_input(&graph->tensors[i])) {
            last_drawn = (tensor_id)i;
            inputs++;
        }
    for (size_t i = 0; i < graph->node_count && arrows < MAX_ENDS; i++)
        for (size_t k = 0; k < graph->nodes[i].input_count && arrows < MAX_ENDS; k++) {
            tensor_id id = graph_inputs(graph, &graph->nodes[i])[k];
            if (id < 0 || id > last_drawn || !is_model_input(&graph->tensors[id]))
                continue;
            draw_arrow(draw, 'i', id, 'n', (long long)(i / draw->run), &graph->tensors[id]);
            arrows++;
        }
    for (size_t i = 0; i < graph->tensor_count && outputs < MAX_ENDS; i++) {
        const struct graph_tensor *tensor = &graph->tensors[i];
        if (!tensor->is_output)
            continue;
        outputs++;
        if (tensor->producer != GRAPH_NONE)
            draw_arrow(draw, 'n', (long long)((size_t)tensor->producer / draw->run), 'o',
                       (long long)i, tensor);
    }
}

/* ---- the graph ---- */

static void draw_graph(struct drawing *draw, size_t limit)
{
    size_t count = draw->graph->node_count;
    draw->run = count > limit ? (count + limit - 1) / limit : 1;
    size_t boxes = count / draw->run + 1;
    draw->joined = xreallocarray(NULL, boxes, sizeof *draw->joined);
    for (size_t i = 0; i < boxes; i++)
        draw->joined[i] = GRAPH_NONE;
    if (draw->run > 1)
        text_addf(draw->out, "%s%zu nodes, in runs of %zu\n", draw->language->comment, count,
                  draw->run);
    draw_boxes(draw);
    draw_ends(draw);
    draw_arrows(draw, MAX_ARROWS * limit);
    draw_end_arrows(draw);
    free(draw->joined);
}

void graph_write_dot(const struct graph *graph, struct text *out)
{
    struct drawing draw = {.graph = graph, .out = out, .language = &DOT};
    text_add(out, "digraph \"");
    add_name(&draw, graph->name);
    text_add(out, "\" {\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontsize=10];\n");
    draw_graph(&draw, MAX_BOXES_DOT);
    text_add(out, "}\n");
}

void graph_write_mermaid(const struct graph *graph, struct text *out)
{
    struct drawing draw = {.graph = graph, .out = out, .language = &MERMAID};
    text_add(out, "flowchart TD\n");
    draw_graph(&draw, MAX_BOXES_MERMAID);
}
