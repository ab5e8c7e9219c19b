/* A model as a graph: tensors, and nodes that compute some from others.  A single intermediate representation for all
 * sources (ONNX, GGUF, config.json, safetensors, architectures built in code), so that counting, partitioning and
 * analysis are written once.
 *
 * A graph has concrete shapes, which include batch, tokens and phase.  A node reads the output of another one, a
 * parameter, a constant, or an input; after graph_finish every node comes after the producers of its inputs.
 *
 * Ownership: a zeroed struct graph is empty; graph_release frees everything, including names. */
#ifndef IPW_GRAPH_GRAPH_H
#define IPW_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/precision.h"
#include "core/arena.h"
#include "core/err.h"

struct params;
struct text;

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
double graph_op_elementwise(enum graph_op op); /* operations per output element */
int graph_op_gates(enum graph_op op);          /* of a recurrent layer: products per step */

/* The components of a decoder, by which work, bytes and energy are broken down, in the order of a pass. */
enum decoder_component {
#define DECODER_COMPONENT(constant, name, label) DECODER_##constant,
#include "graph/decoder_components.def"
#undef DECODER_COMPONENT
    DECODER_COMPONENT_COUNT /* not one of them */
};

const char *decoder_component_name(enum decoder_component component);  /* "attn_qkv" */
const char *decoder_component_label(enum decoder_component component); /* "attention: qkv" */

enum { GRAPH_MAX_RANK = 8 };
typedef int32_t tensor_id; /* GRAPH_NONE: an omitted input */
typedef int32_t node_id;
#define GRAPH_NONE (-1)

/* Only what determines the size of an element. */
enum graph_dtype {
    GRAPH_FLOAT, /* in the requested precision */
    GRAPH_INT64, /* tokens, indices, shapes: fixed size */
    GRAPH_INT32,
    GRAPH_INT8,      /* bool, bytes of an image */
    GRAPH_QUANTIZED, /* 8-bit codes of floats, while a file keeps its stored precision */
};

enum graph_role {
    GRAPH_ACTIVATION,
    GRAPH_INPUT,
    GRAPH_PARAMETER, /* trained: counted in the model's parameters */
    GRAPH_BUFFER,    /* part of the model, not trained: running means, position tables */
    GRAPH_CONSTANT,  /* shapes, scales, indices */
    GRAPH_CACHE,     /* KV cache */
};

struct graph_tensor {
    const char *name;
    enum graph_role role;
    enum graph_dtype dtype;
    node_id producer;     /* GRAPH_NONE: no node */
    uint32_t stored_type; /* 1 + GGUF type number; 0: none, or unknown */
    double stored_bytes;  /* in the file, if its dtype is fixed (quantized); 0: by precision */
    bool is_output;       /* an output of the model */
    uint8_t rank;
    int64_t dims[GRAPH_MAX_RANK]; /* last: few tensors have more than three */
};

/* The window of a convolution or pooling over one to three dimensions. */
struct graph_window {
    uint8_t rank;
    int32_t kernel[3], stride[3], dilation[3], pad_before[3], pad_after[3];
    int64_t groups; /* channel groups */
};

struct graph_attention {
    int64_t heads, heads_kv, key_size, value_size; /* sizes of one head */
    int64_t tokens, cached; /* per sequence: new tokens, and those in the KV cache */
    int64_t cross_tokens;   /* cross-attention: tokens of the other sequence; 0: self-attention */
    int64_t window;         /* sliding window in tokens, including the token itself; 0: none */
    int64_t sequences;
    bool is_causal, is_chunked;  /* chunked: the window restarts instead of sliding */
    bool is_unfused, is_in_fp32; /* in PyTorch, with a bias or one KV head for all */
};

struct graph_recurrent {
    int64_t steps, hidden, directions;
    int64_t chunk; /* a scan: tokens that it computes at once, as products of matrices; 0: one */
};

/* How tensor parallelism divides a node, if its component and operation do not determine it. */
enum graph_split {
    GRAPH_SPLIT_BY_COMPONENT,
    GRAPH_SPLIT_ROWS,  /* row-parallel: by columns of its input */
    GRAPH_SPLIT_HEADS, /* a matrix per head: input and output are divided by heads */
    GRAPH_SPLIT_NONE,  /* replicated: a router, the latents shared by all heads */
};

struct graph_node {
    enum graph_op op;
    const char *name;                    /* its path in the model: "layer1.0.conv1" */
    const char *label;                   /* the operator in its source: "Conv" */
    uint32_t first_input, input_count;   /* in graph.links */
    uint32_t first_output, output_count; /* in graph.links */
    int32_t layer;                       /* GRAPH_NONE outside the layers */
    enum decoder_component component;    /* DECODER_COMPONENT_COUNT: none */
    enum graph_split split;
    double weight_fraction; /* share of its parameters read by one pass (active experts); 1: all */
    bool is_clamped;        /* T5: in fp16 the result is checked for infinities and clamped */
    bool has_precision;     /* product: the file states its compute precision, ... */
    enum precision precision; /* ... while the file keeps its stored precision */
    union {
        struct graph_window window;
        struct graph_attention attention;
        struct graph_recurrent recurrent;
    } as;
};

/* The stored precision of a model file. */
struct graph_precision {
    bool is_known;
    enum precision products; /* compute precision of most MACs */
    double share;            /* share of the MACs computed in it */
    enum precision floats;   /* dtype of floating-point tensors */
};

/* Assumptions about the model: one sentence each. */
struct graph_notes {
    char text[4][160];
    size_t count;
};

struct graph {
    char name[128]; /* name of the model */
    struct graph_tensor *tensors;
    struct graph_node *nodes;
    tensor_id *links;
    size_t tensor_count, node_count, link_count, tensor_capacity, node_capacity, link_capacity;
    size_t unknown_count; /* nodes with an unknown operator */
    bool is_guessed;      /* some shapes are assumed: low confidence */
    double tokens;        /* total of all sequences in one pass; 0 for models without tokens */
    double batch;         /* sequences or samples */
    struct graph_precision file;
    struct graph_notes notes;
    struct arena names; /* owns the strings */
};

void graph_release(struct graph *graph);

/* ---- building ---- */

tensor_id graph_add_tensor(struct graph *graph, const struct graph_tensor *tensor);

/* Copies names and links; sets `producer` of the outputs.  A weight_fraction of 0 means 1. */
void graph_add_node(struct graph *graph, const struct graph_node *node, const tensor_id *inputs,
                    size_t input_count, const tensor_id *outputs, size_t output_count);

/* Removes the last nodes or some before them; their tensors stay, without a producer. */
void graph_remove_nodes(struct graph *graph, size_t first, size_t count);

/* Duplicates, and notes above the limit, are dropped. */
void graph_note(struct graph *graph, const char *format, ...) PRINTF_LIKE(2, 3);

/* Sorts the nodes topologically, as close to the given order as possible.  ERR_BAD_VALUE names a node of a cycle. */
enum err graph_finish(struct graph *graph, struct error *why) MUST_USE;

/* ---- reading ---- */

const tensor_id *graph_inputs(const struct graph *graph, const struct graph_node *node);
const tensor_id *graph_outputs(const struct graph *graph, const struct graph_node *node);
/* NULL when it has none. */
const struct graph_tensor *graph_input(const struct graph *graph, const struct graph_node *node,
                                       size_t index);
const struct graph_tensor *graph_output(const struct graph *graph, const struct graph_node *node,
                                        size_t index);
double graph_elements(const struct graph_tensor *tensor);
double graph_parameters(const struct graph *graph); /* elements of all GRAPH_PARAMETER tensors */

/* Appends the graph in the language of graphviz or Mermaid (draw.c). */
void graph_write_dot(const struct graph *graph, struct text *out);
void graph_write_mermaid(const struct graph *graph, struct text *out);

/* ---- topological order of any graph ---- */

enum { ORDER_NO_NODE = -1, ORDER_NO_MORE = -2 };

/* The node that produces input `index` of `node`: ORDER_NO_NODE if none does, ORDER_NO_MORE past the last input. */
typedef int64_t order_producer(const void *graph, uint32_t node, uint32_t index);

/* Puts the nodes 0..count-1 into order[0..count), each after the producers of its inputs; an order that is already
 * topological is unchanged.  ERR_BAD_VALUE: *in_cycle depends on itself. */
enum err order_nodes(size_t count, order_producer *producer, const void *graph, uint32_t *order,
                     uint32_t *in_cycle) MUST_USE;

/* ---- the options of a pass: batch, lengths, image size, phase ---- */

enum graph_phase {
    GRAPH_FORWARD, /* one pass over the input; for a decoder: prefill */
    GRAPH_PREFILL, /* `tokens` of a prompt in one pass, logits of the last token */
    GRAPH_DECODE,  /* one token that attends to `context` tokens, including itself */
};

/* Tokens that a decoder computes after its last attention: all, the last of each sequence (llama.cpp), or none. */
enum graph_pruning { GRAPH_PRUNE_NOTHING, GRAPH_PRUNE_TO_LAST, GRAPH_PRUNE_ALL };

/* 0 means the model's default, which model_graph writes back. */
struct graph_options {
    enum graph_phase phase;
    enum graph_pruning pruning;
    int64_t batch;              /* samples or sequences */
    int64_t tokens;             /* length of a prompt, or of an encoded text */
    int64_t context;            /* tokens that a decoded token attends to, including itself */
    int64_t cached;             /* for a prompt: preceding tokens computed by earlier passes */
    int64_t image, image_width; /* height and width in pixels; width 0: as the height */
    const struct params *dims;  /* "batch=8": dynamic dimensions of an ONNX file; NULL: none */
};

/* Replaces 0 by the model's defaults (a batch of 1), and rejects sizes that no model supports, and the decode phase of
 * a model without phases. */
enum err graph_options_complete(struct graph_options *options, const char *model_name,
                                bool has_phases, const struct graph_options *defaults,
                                struct error *why) MUST_USE;

#endif
