/* Building a graph in code, an operation a call: shapes of what comes out, and the parameters that an
 * operation needs, follow from its inputs.
 *
 *     struct build b = {.graph = &graph, .why = why};
 *     tensor_id x = build_input(&b, "image", GRAPH_NUMBERS, 4, (int64_t[]){batch, 3, 224, 224});
 *     x = build_conv(&b, "conv1", x, (struct build_conv){.channels = 64, .kernel = 7, .stride = 2, .pad = 3});
 *     x = build_op(&b, GRAPH_RELU, "relu", x);
 *     build_output(&b, x);
 *     return build_end(&b);
 *
 * The first failure stays in b.err and the rest does nothing (GRAPH_NONE goes in and out), so only
 * build_end is looked at.  Names get b.prefix before them: set it while inside a block of a model. */
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
    int32_t layer;                    /* that nodes belong to: set GRAPH_NONE at first */
    enum decoder_component component; /* DECODER_COMPONENT_COUNT: none */
};

/* A builder of an empty graph. */
struct build build_begin(struct graph *graph, const char *model_name, struct error *why);
/* Finishes the graph; on failure it is released, and why says what it was. */
enum err build_end(struct build *build) MUST_USE;

/* Sets the prefix, printf-like: build_inside(&b, "layer%d.%d.", i, k); "" for none. */
void build_inside(struct build *build, const char *format, ...) PRINTF_LIKE(2, 3);

tensor_id build_input(struct build *build, const char *name, enum graph_numbers numbers, int rank,
                      const int64_t *dims);
/* A parameter, buffer, constant or cache of its own, for operations that take one as an input. */
tensor_id build_tensor(struct build *build, enum graph_role role, const char *name, int rank,
                       const int64_t *dims);
void build_output(struct build *build, tensor_id tensor);

/* "MODEL: PREFIX NAME WHAT", for what the shapes do not allow; gives GRAPH_NONE. */
tensor_id build_fail(struct build *build, const char *name, const char *what);

int64_t build_dim(const struct build *build, tensor_id id,
                  int index); /* -1: the last; 0 after a failure */
int build_rank(const struct build *build, tensor_id id);

/* ---- products ---- */

struct build_conv {
    int64_t channels;                      /* that come out */
    int32_t kernel, stride, pad, dilation; /* of both dimensions; stride and dilation 0: 1 */
    int32_t kernel_w, stride_w,
        pad_w;      /* of the second where it differs; pad_w: only with kernel_w */
    int64_t groups; /* 0: 1; -1: one a channel */
    bool has_bias;
    bool is_transposed;
    int32_t output_pad; /* of a transposed one */
};
/* Over one, two or three dimensions: batch, channels, then as many as the input has. */
tensor_id build_conv(struct build *build, const char *name, tensor_id x, struct build_conv conv);

/* The last dimension times a matrix: parameter NAME.weight (out x in), and NAME.bias. */
tensor_id build_linear(struct build *build, const char *name, tensor_id x, int64_t out,
                       bool has_bias);
/* The same with a weight that is there already (a tied head: out x in), and a bias or GRAPH_NONE. */
tensor_id build_linear_with(struct build *build, const char *name, tensor_id x, tensor_id weight,
                            tensor_id bias, int64_t out);
/* (..., m, k) times (..., k, n). */
tensor_id build_matmul(struct build *build, const char *name, tensor_id a, tensor_id b);

/* Queries, keys and values as they lie: (batch, tokens, heads x size); what comes out is
 * (batch, tokens, heads x value size).  k and v may be caches; extra_k, extra_v those of earlier tokens
 * beside the new ones, or GRAPH_NONE. */
tensor_id build_attention(struct build *build, const char *name, tensor_id q, tensor_id k,
                          tensor_id v, tensor_id extra_k, tensor_id extra_v,
                          struct graph_attention attention);

/* ---- the rest ---- */

/* One tensor in, the same shape out: activations, softmax, unary. */
tensor_id build_op(struct build *build, enum graph_op op, const char *name, tensor_id x);
/* Two tensors, the smaller repeated where a dimension is 1. */
tensor_id build_binary(struct build *build, enum graph_op op, const char *name, tensor_id a,
                       tensor_id b);
/* Batch norm has running means (buffers) beside weight and bias; over channels (dimension 1). */
tensor_id build_batch_norm(struct build *build, const char *name, tensor_id x);
/* Layer, RMS and group norm: a weight, and with has_bias a bias, over `features`: the last dimension, or
 * channels of a group norm. */
tensor_id build_norm(struct build *build, enum graph_op op, const char *name, tensor_id x,
                     bool has_bias);

struct build_pool {
    enum graph_op op; /* GRAPH_MAX_POOL, GRAPH_AVG_POOL */
    int32_t kernel, stride, pad;
    bool rounds_up;
};
tensor_id build_pool(struct build *build, const char *name, tensor_id x, struct build_pool pool);
/* Averages over all but batch and channels, leaving size 1 (adaptive pooling to 1 x 1). */
tensor_id build_global_pool(struct build *build, const char *name, tensor_id x);

/* Another shape of the same numbers; one dimension may be -1. */
tensor_id build_view(struct build *build, const char *name, tensor_id x, int rank,
                     const int64_t *dims);
/* Batch first, everything else in one dimension. */
tensor_id build_flatten(struct build *build, const char *name, tensor_id x);
/* Transposes and slices: what reads them can do so where they lie. */
tensor_id build_rearrange(struct build *build, const char *name, tensor_id x, int rank,
                          const int64_t *dims);
/* Numbers that are copied: padding, resizing, gathering. */
tensor_id build_move(struct build *build, const char *name, tensor_id x, int rank,
                     const int64_t *dims);
tensor_id build_concat(struct build *build, const char *name, int axis, const tensor_id *parts,
                       int count);

/* Rows of a table (parameter NAME.weight), one for each integer of `ids`. */
tensor_id build_embedding(struct build *build, const char *name, tensor_id ids, int64_t rows,
                          int64_t features);
/* With a table that is there already. */
tensor_id build_embedding_with(struct build *build, const char *name, tensor_id ids,
                               tensor_id table);

/* One recurrent layer (GRAPH_LSTM, GRAPH_GRU, GRAPH_RNN) over (batch, steps, features). */
tensor_id build_recurrent(struct build *build, enum graph_op op, const char *name, tensor_id x,
                          int64_t hidden, bool both_ways);

/* Any node: for operations that none of the above is. */
tensor_id build_node(struct build *build, const struct graph_node *node, const tensor_id *inputs,
                     int input_count, int rank, const int64_t *dims);

#endif
