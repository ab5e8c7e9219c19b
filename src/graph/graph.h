/* A model as a graph: tensors, and nodes that make some out of others.  One small form for every source
 * (ONNX, GGUF, config.json, safetensors, architectures built in code), so that counting, partition and
 * analysis are written once.
 *
 * A graph is of one setting: batch, tokens and phase are in its shapes.  Edges are real: what a node
 * reads was made by another, is a parameter, a constant, or comes in from outside; nodes stand in an
 * order in which every one comes after what it reads (graph_finish sees to that).
 *
 * Ownership: a zeroed struct graph is empty; graph_release takes everything back.  Names are the graph's. */
#ifndef IPW_GRAPH_GRAPH_H
#define IPW_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/arena.h"

enum graph_op {
#define OP(constant, name, kind, elementwise) GRAPH_##constant,
#include "graph/ops.def"
#undef OP
    GRAPH_OP_COUNT
};

enum graph_kind {
    GRAPH_KIND_PRODUCT,
    GRAPH_KIND_NORM,
    GRAPH_KIND_SOFTMAX,
    GRAPH_KIND_ACTIVATION,
    GRAPH_KIND_ELEMENTWISE,
    GRAPH_KIND_POOL,
    GRAPH_KIND_LOOKUP,
    GRAPH_KIND_RECURRENT,
    GRAPH_KIND_MOVE,
    GRAPH_KIND_VIEW,
    GRAPH_KIND_UNKNOWN
};

const char *graph_op_name(enum graph_op op); /* "conv_transpose" */
enum graph_kind graph_op_kind(enum graph_op op);
double graph_op_elementwise(enum graph_op op); /* operations for each number that comes out */

/* The components of a decoder by which work, bytes and energy are told apart, in the order of a pass. */
enum decoder_component {
#define DECODER_COMPONENT(constant, name, label) DECODER_##constant,
#include "graph/decoder_components.def"
#undef DECODER_COMPONENT
    DECODER_COMPONENT_COUNT /* of a node: none of them */
};

const char *decoder_component_name(enum decoder_component component);  /* "attn_qkv" */
const char *decoder_component_label(enum decoder_component component); /* "attention: qkv" */

enum { GRAPH_MOST_DIMENSIONS = 8 };
typedef int32_t tensor_id; /* GRAPH_NONE: an input that is left out */
typedef int32_t node_id;
#define GRAPH_NONE (-1)

/* What kind of numbers, as far as it decides their bytes. */
enum graph_numbers {
    GRAPH_NUMBERS,     /* in the precision that is asked for */
    GRAPH_INTEGERS_64, /* tokens, indices, shapes: their own size whatever the precision */
    GRAPH_INTEGERS_32,
    GRAPH_BYTES, /* bool, int8 of a file that is quantised already */
};

enum graph_role {
    GRAPH_ACTIVATION,
    GRAPH_INPUT,     /* from outside */
    GRAPH_PARAMETER, /* trained: counted in the model's parameters */
    GRAPH_BUFFER,    /* of the model, not trained: running means, tables of positions */
    GRAPH_CONSTANT,  /* shapes, scales, indices */
    GRAPH_CACHE,     /* keys and values of earlier tokens */
};

struct graph_tensor {
    const char *name;
    enum graph_role role;
    enum graph_numbers numbers;
    uint8_t rank;
    int64_t dims[GRAPH_MOST_DIMENSIONS];
    double
        stored_bytes; /* in the file, where its own format decides (quantised); 0: by precision */
    node_id maker;    /* GRAPH_NONE: no node made it */
    bool is_output;   /* of the model */
};

/* A window that slides over one to three dimensions: convolution and pooling. */
struct graph_window {
    uint8_t rank;
    int32_t kernel[3], stride[3], dilation[3], pad_before[3], pad_after[3];
    int64_t groups; /* of channels */
};

struct graph_attention {
    int64_t heads, heads_kv, key_size, value_size; /* of one head */
    int64_t tokens, before; /* of one sequence: new ones, and those in the cache */
    int64_t
        others; /* keys come from so many tokens of another sequence (cross attention); 0: own */
    int64_t window; /* tokens that one sees, itself included; 0: all */
    int64_t sequences;
    bool is_causal;
};

struct graph_recurrent {
    int64_t steps, hidden, directions;
};

struct graph_node {
    enum graph_op op;
    const char *name;                  /* where it stands in the model: "layer1.0.conv1" */
    const char *label;                 /* what its source calls it: "Conv", "BatchNormalization" */
    uint32_t first_input, input_count; /* in graph.links */
    uint32_t first_output, output_count; /* in graph.links */
    int32_t layer;                       /* GRAPH_NONE outside of layers */
    enum decoder_component component;    /* DECODER_COMPONENT_COUNT: none of those */
    double
        weight_share; /* of its parameters, what one pass reads (experts that are woken); 1: all */
    union {
        struct graph_window window;
        struct graph_attention attention;
        struct graph_recurrent recurrent;
    } as;
};

struct graph {
    char name[128]; /* of the model */
    struct graph_tensor *tensors;
    struct graph_node *nodes;
    tensor_id *links;
    size_t tensor_count, node_count, link_count;
    size_t tensor_room, node_room, link_room;
    size_t unknown_count; /* nodes whose operator is not known */
    bool
        is_guessed; /* some shapes were assumed (a safetensors header says no more): low confidence */
    double tokens; /* that one pass computes, of all sequences: 0 for what has none (an image) */
    double batch;  /* sequences or samples */
    struct arena names; /* owns the strings */
};

void graph_release(struct graph *graph);

/* ---- making one; out of memory leaves *why and ERR_NO_MEMORY ---- */

const char *graph_keep(struct graph *graph,
                       const char *string); /* a copy that lasts; NULL: no memory */

enum err graph_add_tensor(struct graph *graph, const struct graph_tensor *tensor, tensor_id *out,
                          struct error *why) MUST_USE;

/* Copies the names and links; sets `maker` of the outputs.  A weight_share of 0 means 1. */
enum err graph_add_node(struct graph *graph, const struct graph_node *node, const tensor_id *inputs,
                        size_t input_count, const tensor_id *outputs, size_t output_count,
                        node_id *out, struct error *why) MUST_USE;

/* Brings the nodes into an order in which each comes after what it reads, as near to the given one as can
 * be.  ERR_BAD_VALUE names a node of a cycle. */
enum err graph_finish(struct graph *graph, struct error *why) MUST_USE;

/* ---- reading ---- */

const tensor_id *graph_inputs(const struct graph *graph, const struct graph_node *node);
const tensor_id *graph_outputs(const struct graph *graph, const struct graph_node *node);
const struct graph_tensor *graph_input(const struct graph *graph, const struct graph_node *node,
                                       size_t index); /* NULL when it has none */
const struct graph_tensor *graph_output(const struct graph *graph, const struct graph_node *node,
                                        size_t index);
double graph_elements(const struct graph_tensor *tensor);
double graph_parameters(const struct graph *graph); /* of all GRAPH_PARAMETER, each once */

/* "conv1: Conv 64x3x7x7 ..." in the languages of graphviz and Mermaid, added to *out. */
struct text;
void graph_write_dot(const struct graph *graph, struct text *out);
void graph_write_mermaid(const struct graph *graph, struct text *out);

#endif
