/* Building a graph in code, one operation per call: output shapes, and the parameters that an operation needs, follow
 * from its inputs.
 *
 *     struct build b = build_begin(&graph, "name", why);
 *     tensor_id x = build_input(&b, "image", GRAPH_FLOAT, DIMS(batch, 3, 224, 224));
 *     x = build_conv(&b, "conv1", x, (struct build_conv){.channels = 64, .kernel = 7, .stride = 2, .pad = 3});
 *     x = build_op(&b, GRAPH_RELU, "relu", x);
 *     build_output(&b, x);
 *     return build_end(&b);
 *
 * The first failure stays in b.err and later calls do nothing (GRAPH_NONE goes in and out), so only build_end is
 * checked.  Names are prefixed with b.prefix (build_scope).  The graph is the caller's. */
#ifndef IPW_GRAPH_BUILD_H
#define IPW_GRAPH_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/graph.h"

struct build {
    struct graph *graph;
    struct error *why;
    enum err err;
    char prefix[96];                  /* "layer1.0." */
    int32_t layer;                    /* for the next nodes; GRAPH_NONE: none */
    enum decoder_component component; /* for the next nodes; DECODER_COMPONENT_COUNT: none */
};

/* Rank and dimensions, as the last two arguments of the functions below. */
#define DIMS(...)                                                                                  \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[])                                \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

struct build build_begin(struct graph *graph, const char *model_name, struct error *why);
/* Finishes the graph; on failure it is released. */
enum err build_end(struct build *build) MUST_USE;

/* Sets the prefix: build_scope(&b, "layer%d.%d.", i, k); or resets it. */
void build_scope(struct build *build, const char *format, ...) PRINTF_LIKE(2, 3);
void build_root(struct build *build);

tensor_id build_input(struct build *build, const char *name, enum graph_dtype dtype, int rank,
                      const int64_t *dims);
/* A separate parameter, buffer, constant or cache, for operations that take one as an input. */
tensor_id build_tensor(struct build *build, enum graph_role role, const char *name, int rank,
                       const int64_t *dims);
void build_output(struct build *build, tensor_id tensor);

/* "MODEL: PREFIX NAME WHAT"; returns GRAPH_NONE. */
tensor_id build_fail(struct build *build, const char *name, const char *what);

/* -1 is the last dimension; 0 after a failure. */
int64_t build_dim(const struct build *build, tensor_id id, int index);

/* ---- products ---- */

struct build_conv {
    int64_t channels;                      /* output channels */
    int32_t kernel, stride, pad, dilation; /* stride and dilation 0: 1 */
    int32_t kernel_w, pad_w;               /* along the width if it differs; only with kernel_w */
    int64_t groups;                        /* 0: 1; -1: depthwise */
    bool has_bias;
};
/* (batch, channels, one to three spatial dimensions). */
tensor_id build_conv(struct build *build, const char *name, tensor_id x, struct build_conv conv);

/* The last dimension times a matrix: parameters NAME.weight (out x in) and NAME.bias. */
tensor_id build_linear(struct build *build, const char *name, tensor_id x, int64_t out,
                       bool has_bias);
/* Uses an existing weight (out x in: tied embeddings), and a bias or GRAPH_NONE. */
tensor_id build_linear_with(struct build *build, const char *name, tensor_id x, tensor_id weight,
                            tensor_id bias, int64_t out);
/* (..., m, k) times (..., k, n). */
tensor_id build_matmul(struct build *build, const char *name, tensor_id a, tensor_id b);

/* Self-attention with equal heads, over (batch, tokens, ...). */
struct graph_attention build_heads(const struct build *build, tensor_id x, int64_t heads,
                                   int64_t features);
/* Q, K and V are (batch, tokens, heads x size), the output is (batch, tokens, heads x value size).  cache_k and
 * cache_v are the KV cache of earlier tokens, or GRAPH_NONE. */
tensor_id build_attention(struct build *build, const char *name, tensor_id q, tensor_id k,
                          tensor_id v, tensor_id cache_k, tensor_id cache_v,
                          struct graph_attention attention);
/* Adds a parameter or activation to the scores: attention sinks, relative position biases. */
tensor_id build_attention_biased(struct build *build, const char *name, tensor_id q, tensor_id k,
                                 tensor_id v, tensor_id cache_k, tensor_id cache_v, tensor_id bias,
                                 struct graph_attention attention);

/* ---- elementwise operations, norms, pooling ---- */

/* An operation that keeps the shape: activations, softmax, unary. */
tensor_id build_op(struct build *build, enum graph_op op, const char *name, tensor_id x);
/* A binary operation with broadcasting. */
tensor_id build_binary(struct build *build, enum graph_op op, const char *name, tensor_id a,
                       tensor_id b);
/* Batch norm over channels (dimension 1): weight and bias, running mean and variance as buffers. */
tensor_id build_batch_norm(struct build *build, const char *name, tensor_id x);
/* Layer and RMS norm over the last dimension, group norm over channels; an RMS norm has no bias. */
tensor_id build_norm(struct build *build, enum graph_op op, const char *name, tensor_id x);

struct build_pool {
    enum graph_op op; /* GRAPH_MAX_POOL, GRAPH_AVG_POOL */
    int32_t kernel, stride, pad;
    bool rounds_up; /* ceil_mode */
};
tensor_id build_pool(struct build *build, const char *name, tensor_id x, struct build_pool pool);
/* Averages over all spatial dimensions, leaving size 1. */
tensor_id build_global_pool(struct build *build, const char *name, tensor_id x);

/* ---- shapes ---- */

/* Another shape of the same elements; one dimension may be -1. */
tensor_id build_view(struct build *build, const char *name, tensor_id x, int rank,
                     const int64_t *dims);
/* (batch, everything else). */
tensor_id build_flatten(struct build *build, const char *name, tensor_id x);
/* Transposes and slices: consumers can read the original in place. */
tensor_id build_rearrange(struct build *build, const char *name, tensor_id x, int rank,
                          const int64_t *dims);
/* Copies elements: padding, resizing, gathering. */
tensor_id build_move(struct build *build, const char *name, tensor_id x, int rank,
                     const int64_t *dims);
tensor_id build_concat(struct build *build, const char *name, int axis, const tensor_id *parts,
                       int count);

/* ---- embeddings, recurrence, other operations ---- */

/* Rows of a table (parameter NAME.weight), one per integer of `ids`. */
tensor_id build_embedding(struct build *build, const char *name, tensor_id ids, int64_t rows,
                          int64_t features);
/* Uses an existing table. */
tensor_id build_embedding_with(struct build *build, const char *name, tensor_id ids,
                               tensor_id table);

/* One recurrent layer (GRAPH_LSTM, GRAPH_GRU, GRAPH_RNN) over (batch, steps, features). */
tensor_id build_recurrent(struct build *build, enum graph_op op, const char *name, tensor_id x,
                          int64_t hidden, bool is_bidirectional);

/* Adds any node, for operations without their own function. */
tensor_id build_node(struct build *build, const struct graph_node *node, const tensor_id *inputs,
                     int input_count, int rank, const int64_t *dims);
/* The same with the shape of `like`. */
tensor_id build_like(struct build *build, const struct graph_node *node, const tensor_id *inputs,
                     int input_count, tensor_id like);

#endif
