/* The contents of an ONNX file in flat arrays: nodes, attributes, tensors and names of the model's graph, of subgraphs
 * (branches, loop bodies), and of every call of a function defined in the file.  Nothing is inferred here.
 *
 * Each name of each graph is one value.  A name that a subgraph uses and does not define belongs to an enclosing graph;
 * a function sees only its own names.
 *
 * Ownership: onnx_close frees a struct onnx_file.  Names and weights are slices of the mapped file. */
#ifndef IPW_GRAPH_ONNX_FILE_H
#define IPW_GRAPH_ONNX_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/onnx/proto.h"

struct onnx_function {
    struct slice domain, name, overload, body;
};

struct onnx_node {
    struct slice op, domain, name;
    uint32_t first_input, input_count, first_output, output_count; /* in links */
    uint32_t first_attribute, attribute_count;
    int32_t call; /* the graph of this call of a function of the file; ONNX_NONE: not a call */
};

struct onnx_value {
    struct slice name;
    struct slice info; /* its ValueInfoProto; start is NULL: none */
    int32_t graph;     /* graph that has the name */
    int32_t tensor;    /* ONNX_NONE: computed, or an input */
    int32_t producer;  /* node; ONNX_NONE: none */
    bool is_omitted;   /* a function parameter without an argument in this call */
};

struct onnx_graph {
    struct slice body;
    int32_t parent, depth;
    int32_t function, caller; /* for a call: the function, and the calling node; ONNX_NONE */
    uint32_t first_node, node_count;
    uint32_t first_input, input_count, first_output, output_count; /* in links */
};

struct onnx_file {
    char *path;
    void *mapping; /* NULL: the bytes belong to the caller */
    struct slice bytes;
    struct onnx_graph *graphs; /* the first is the model's */
    struct onnx_function *functions;
    struct onnx_node *nodes;
    struct onnx_attribute *attributes;
    struct onnx_value *values;
    struct proto_tensor *tensors;
    int32_t *links; /* values; ONNX_NONE: an omitted input */
    int32_t *table; /* hash table of values by name: open addressing, ONNX_NONE is free */
    size_t function_count, graph_count, node_count, attribute_count, value_count, tensor_count,
        link_count;
    size_t function_capacity, graph_capacity, node_capacity, attribute_capacity, value_capacity,
        tensor_capacity, link_capacity;
    size_t table_capacity; /* a power of two */
    size_t called_bytes;   /* bytes of function bodies, once per call */
    enum err err;          /* while parsing: the first failure, after which nothing is added */
    struct error *why;
};

enum err onnx_open(const char *path, struct onnx_file *out, struct error *why) MUST_USE;
/* The same for bytes in memory, which must outlive the file. */
enum err onnx_read(const char *path, struct slice bytes, struct onnx_file *out, struct error *why)
    MUST_USE;
void onnx_close(struct onnx_file *file);

/* The node's name, or that of its first output. */
struct slice onnx_node_name(const struct onnx_file *file, const struct onnx_node *node);

#endif
