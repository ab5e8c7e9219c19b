/* An ONNX file as it lies on disk: nodes, names and tensors of its graph and of the graphs inside its nodes
 * (branches, bodies of loops, functions of the file that are called), in lists.  Nothing is computed here.
 *
 * Every name of every graph is one value; a name inside a branch that the branch does not make means the
 * value of the graph around it.  A function sees its own names alone, and has a graph for every call.  A struct onnx_file owns its lists; names and weights are slices of the
 * mapped file, which must stay as long. */
#ifndef IPW_GRAPH_ONNX_FILE_H
#define IPW_GRAPH_ONNX_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/graph.h"
#include "graph/onnx/functions.h"
#include "graph/onnx/wire.h"

enum { ONNX_NONE = -1 };

/* Types of elements, by their numbers in the format. */
enum onnx_type {
    ONNX_FLOAT = 1,
    ONNX_UINT8 = 2,
    ONNX_INT8 = 3,
    ONNX_UINT16 = 4,
    ONNX_INT16 = 5,
    ONNX_INT32 = 6,
    ONNX_INT64 = 7,
    ONNX_STRING = 8,
    ONNX_BOOL = 9,
    ONNX_FLOAT16 = 10,
    ONNX_DOUBLE = 11,
    ONNX_UINT32 = 12,
    ONNX_UINT64 = 13,
    ONNX_BFLOAT16 = 16,
    ONNX_FLOAT8_FIRST = 17, /* four kinds of one byte */
    ONNX_FLOAT8_LAST = 20,
    ONNX_UINT4 = 21,
    ONNX_INT4 = 22,
    ONNX_FLOAT4 = 23,
};

struct onnx_tensor {
    struct slice name;
    int32_t type;
    uint8_t rank;
    int64_t dims[GRAPH_MOST_DIMENSIONS];
    int64_t elements;
    struct slice raw;     /* little-endian numbers; empty: elsewhere */
    struct slice body;    /* the whole message: numbers of another form are in it */
    struct slice outside; /* the file that has the numbers; empty: this one */
};

struct onnx_attribute {
    struct slice name, body;
    struct slice tensor; /* empty bytes: it is none */
    int32_t graph;       /* ONNX_NONE: it is none */
};

struct onnx_node {
    struct slice op, domain, name;
    uint32_t first_input, input_count, first_output, output_count; /* in links */
    uint32_t first_attribute, attribute_count;
    int32_t
        called; /* the graph of this call, where it is one of a function of the file; ONNX_NONE */
};

struct onnx_value {
    struct slice name;
    struct slice info; /* what the file says of its type; no bytes: nothing */
    int32_t graph;     /* whose name it is */
    int32_t tensor;    /* its numbers; ONNX_NONE: computed or given */
    int32_t maker;     /* node; ONNX_NONE: none */
    bool is_input, is_output;
    bool is_left_out; /* what a function takes and this call does not give */
};

struct onnx_graph {
    struct slice body, name;
    int32_t parent, depth;
    int32_t function, caller; /* of a call: whose, and by which node; ONNX_NONE */
    uint32_t first_node, node_count;
    uint32_t first_input, input_count, first_output, output_count; /* in links: of the graph */
};

struct onnx_file {
    char *path;
    void *mapping; /* NULL: the bytes are the caller's */
    struct slice bytes;
    struct onnx_graph *graphs; /* the first is the model's */
    struct onnx_function *functions;
    struct onnx_node *nodes;
    struct onnx_attribute *attributes;
    struct onnx_value *values;
    struct onnx_tensor *tensors;
    int32_t *links; /* values; ONNX_NONE: an input that is left out */
    int32_t *table; /* of names: open addressing, ONNX_NONE is free */
    size_t function_count, function_room, called_bytes;
    size_t graph_count, node_count, attribute_count, value_count, tensor_count, link_count;
    size_t graph_room, node_room, attribute_room, value_room, tensor_room, link_room;
    size_t table_room; /* a power of two */
};

enum err onnx_open(const char *path, struct onnx_file *out, struct error *why) MUST_USE;
/* The same of bytes in memory, which must stay. */
enum err onnx_read(const char *path, struct slice bytes, struct onnx_file *out, struct error *why)
    MUST_USE;
void onnx_close(struct onnx_file *file);

/* A name for messages: one line, not too long. */
struct onnx_words {
    char text[64];
};
struct onnx_words onnx_words(struct slice name);

#endif
