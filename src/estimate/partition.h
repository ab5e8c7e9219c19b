/* A graph partitioned into subgraphs, each of which runs as one kernel, with the data it reads and writes at its
 * boundary.  Subgraphs are in topological order, and the edges between them are those of the graph, also through views:
 * residual additions do not cut anything.
 *
 * Ownership: partition_make fills a struct that partition_release frees; it points into the graph, which must outlive
 * it. */
#ifndef IPW_ESTIMATE_PARTITION_H
#define IPW_ESTIMATE_PARTITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/count.h"
#include "graph/graph.h"

/* Properties of the main node, besides work and bytes, that its speed depends on; 0 if not applicable. */
struct subgraph_shape {
    double groups, channels, taps; /* convolution: input channels, elements of its window */
    double window_rank;            /* 1 of one over time */
    double positions;              /* in the result of one sample */
    double dilation;               /* 1 unless it is an atrous convolution */
    double inner;                  /* elements of a normalized or reduced row */
    double heads, repeats;         /* attention: query heads, and those per KV head */
    double tokens, sequences; /* new tokens of one sequence; for the head: all, of all sequences */
    bool has_bias, has_windows;  /* attention within windows of an image */
    bool is_copied;              /* a rearranged tensor read by a convolution */
    bool is_resized;             /* an interpolated image */
    bool is_broadcast;           /* an operand is smaller than the result */
    bool is_unfused, is_in_fp32; /* unfused attention, see struct graph_attention */
    double keys;                 /* keys per query in that case */
    double reordered;            /* elements converted for it, see dataflow_find_layout */
    double stored_type;          /* dtype of the weights of a product, as in struct graph_tensor */
    double experts;  /* experts whose matrices a product reads, each for some of the tokens */
    bool is_clamped; /* as in struct graph_node */
    bool is_folded;  /* see dataflow_find_layout */
    bool is_causal;  /* in a causal model */
    bool is_chunked; /* a scan that is computed as products of matrices */
};

/* What passes over all subgraphs read comes first, on one cache line: a large graph has megabytes of them. */
struct subgraph {
    uint32_t first_node, node_count;     /* in partition.nodes */
    uint32_t first_before, before_count; /* in partition.before: subgraphs that must run first */
    uint32_t level;                      /* longest path from the start, in subgraphs */
    int32_t layer;                       /* GRAPH_NONE: outside of the layers */
    enum decoder_component component;
    enum graph_op op;           /* its main node: the one with the most MACs, else the first */
    struct graph_cost cost;     /* sum over nodes; traffic at the boundary only, each tensor once */
    struct graph_amount inside; /* traffic saved by fusion: otherwise written and read again */
    const char *name;           /* name of its main node: "layer1.0.conv1" */
    char pattern[48];           /* "conv+batch_norm+relu" */
    double outputs;     /* elements produced by its main nodes: the work to distribute over units */
    double rows;        /* rows of their matrix; its columns are the last dimension, or channels */
    double steps;       /* sequential steps of a recurrent layer; otherwise 1 */
    double all_reduced; /* elements all-reduced between devices that share it; 0: none */
    double all_gathered; /* elements all-gathered; 0: none */
    struct subgraph_shape shape;
    enum precision precision; /* that of its main node, ... */
    bool has_precision;       /* ... if the file states it, see struct graph_node */
    bool is_sharded;          /* divided by tensor parallelism: products with weights, attention */
    bool is_row_parallel;     /* each device has a partial sum of every result */
    bool is_by_head; /* a matrix per head: its input and output are divided in the same way */
};

/* A tensor held in memory between subgraphs, or an input or output: once, whatever views it has. */
struct partition_tensor {
    uint32_t from, to; /* subgraphs that produce it and use it last; count - 1 for an output */
    struct graph_amount amount;
    double columns, heads_kv; /* shares of it that devices divide, see partition_live */
};

/* Activations in memory while one subgraph runs. */
struct partition_live {
    double activations; /* elements replicated on each device */
    double columns;     /* elements divided by the number of devices */
    double heads_kv;    /* elements divided by at most the number of KV heads */
    double quantized;   /* elements of 8 bits in a quantized file, replicated */
    double fixed_bytes; /* integers */
};

/* Memory of one layer. */
struct partition_layer {
    struct graph_amount model, model_sharded, cache; /* as in struct partition */
};

struct partition {
    const struct graph *graph;
    struct subgraph *subgraphs;
    size_t count;
    node_id *nodes;
    uint32_t *before;
    size_t before_count;
    struct graph_cost total; /* the sum over subgraphs */
    double sharded_macs;     /* MACs that tensor parallelism divides */
    struct partition_tensor *tensors;
    size_t tensor_count;
    struct partition_live *live;       /* by subgraph */
    struct graph_amount model;         /* parameters, buffers and constants, each once */
    struct graph_amount model_sharded; /* the part that tensor parallelism divides */
    struct graph_amount cache;         /* KV cache of earlier tokens and of this pass */
    /* The same by layer: the first entry for the part before the layers, the last for the part after them.  A tensor
     * used by both (tied embeddings) is in both.  0 layers: the graph is not a sequence of numbered layers. */
    struct partition_layer *by_layer;
    int layers;
    size_t first_layered; /* the first subgraph of a layer */
    int64_t heads;        /* greatest common divisor over all attentions; 0: none */
    int64_t features;     /* the same for the inner sizes of all scans (Mamba) */
    int64_t heads_kv; /* minimum over all attentions: limits how many devices divide the KV cache */
    bool is_decoder;  /* its nodes have a component */
    bool is_causal;   /* a token depends on earlier ones only */
    bool has_cross;   /* some attend to another sequence */
    double parameters; /* parameters of the graph */
    /* Subgraphs that are equal in everything that time and energy depend on: unique has the first of each set,
     * unique_of the index of its set for every subgraph. */
    uint32_t *unique, *unique_of;
    size_t unique_count;
    bool *repeats; /* by unique subgraph, see partition_continue; NULL: none */
};

enum partition_fusion {
    PARTITION_FUSED, /* convolution + norm + activation, linear + activation, attention, QKV, ... */
    PARTITION_PLAIN, /* every computing node is a separate kernel */
    PARTITION_BY_COMPONENT, /* each component of a decoder's layer, for which `ipw layers` measures energy */
};

void partition_make(const struct graph *graph, enum partition_fusion mode, struct partition *out);
void partition_release(struct partition *partition);

/* partition_unique.c: fills `unique` and `unique_of` for partition_make, which adds each subgraph when it is complete.
 *
 * A direct-mapped hash table: a collision evicts the earlier entry, and its subgraph is then listed as unique once
 * more, which costs time but does not change the result. */
enum { UNIQUE_SLOTS = 1024 };
struct unique_table {
    struct partition *out;
    uint32_t slots[UNIQUE_SLOTS]; /* index in unique + 1; 0: empty */
};
void unique_table_add(struct unique_table *table, uint32_t subgraph);

/* If this is another pass of the same model: finds the unique subgraphs that are equal to those with the same index in
 * the preceding pass, whose time and energy they reuse.  Decode steps differ in attention only. */
void partition_continue(struct partition *partition, const struct partition *before);

/* How much of a pass could run concurrently. */
struct partition_concurrency {
    size_t levels, max_width;
    double critical_path_flops;
    double parallelism;       /* all FLOPs over those of the critical path */
    size_t wide_levels;       /* with more than one subgraph */
    double stage_parallelism; /* all FLOPs over those of the largest subgraph of each level */
    double batch_parallelism; /* all FLOPs over those of the critical path of one sample */
};
/* Samples of a batch are independent, so the critical path of a batch is that of one sample. */
struct partition_concurrency partition_concurrency(const struct partition *partition, double batch);

#endif
