/* Decoding of ONNX files: the protobuf wire format, field by field and in place, and single messages: a tensor, an
 * attribute of a node, the type of a value.  Nothing is copied or allocated, and nothing is read past the end of a
 * message, so that gigabytes of weights are skipped at the cost of one addition.
 *
 * Ownership: everything is plain data that points into the caller's bytes. */
#ifndef IPW_GRAPH_ONNX_PROTO_H
#define IPW_GRAPH_ONNX_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/slice.h"
#include "graph/graph.h"

/* ---- wire format ---- */

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2, /* a string, an embedded message, or packed scalars */
    WIRE_FIXED32 = 5,
};

/* A message, and the field that was read last. */
struct wire {
    const char *at, *end;
    bool is_damaged; /* ends within a field, or has an invalid one */
    uint32_t number;
    enum wire_type type;
    uint64_t value;     /* a scalar */
    struct slice bytes; /* for WIRE_BYTES */
};

struct wire wire_of(struct slice message);

/* The next field; false at the end, or if the message is corrupt. */
bool wire_next(struct wire *wire);
/* The next WIRE_BYTES field with that number. */
bool wire_next_bytes(struct wire *wire, uint32_t number);

/* The last WIRE_BYTES field with that number; a slice of length 0 if there is none. */
struct slice wire_bytes(struct slice message, uint32_t number);

enum { ONNX_NONE = -1 };

/* ---- dtypes ---- */

enum onnx_dtype { /* 0: not known */
#define DTYPE(constant, number, ...) ONNX_##constant = (number),
#include "graph/onnx/dtypes.def"
#undef DTYPE
};

bool onnx_dtype_is_float(int32_t dtype);
/* For weights whose precision is determined by the file, the bytes per element; else 0. */
double onnx_dtype_stored_width(int32_t dtype);
enum graph_dtype onnx_dtype_in_graph(int32_t dtype);

/* ---- tensors ---- */

struct proto_tensor {
    struct slice name;
    int32_t dtype; /* enum onnx_dtype */
    uint8_t rank;
    int64_t dims[GRAPH_MAX_RANK];
    int64_t elements;
    struct slice raw;      /* raw_data; empty: the elements are elsewhere */
    struct slice message;  /* the TensorProto: typed data is in it */
    struct slice external; /* the file that has the elements; empty: this one */
};

/* NULL, or the error. */
const char *onnx_tensor_decode(struct slice message, struct proto_tensor *out) MUST_USE;
const char *onnx_tensor_decode_sparse(struct slice message, struct proto_tensor *out) MUST_USE;

/* The first `count` elements; false if they are not in the file, or of a dtype that is never a shape. */
bool onnx_tensor_data(const struct proto_tensor *tensor, double *out, size_t count);

/* NULL, or the error: a negative dimension, a rank or an element count above the limits. */
const char *onnx_check_shape(size_t rank, const int64_t *dims, int64_t *elements) MUST_USE;

/* ---- attributes ---- */

struct onnx_attribute {
    struct slice name, message;
    struct slice tensor; /* a TensorProto; start is NULL: it has none */
    int64_t int_value;
    float float_value;
    uint32_t int_count, float_count; /* lengths of the lists */
    int32_t graph;                   /* set by the reader of the file; ONNX_NONE: it has none */
    bool has_int, has_float;
};

/* False if it is corrupt.  *graph is the body of a graph; start is NULL: it has none. */
bool onnx_attribute_decode(struct slice message, struct onnx_attribute *out, struct slice *graph);

/* Copies up to `capacity` entries of the list; returns their number. */
size_t onnx_attribute_ints(const struct onnx_attribute *attribute, int64_t *out, size_t capacity);
size_t onnx_attribute_floats(const struct onnx_attribute *attribute, double *out, size_t capacity);

struct slice onnx_attribute_string(const struct onnx_attribute *attribute);
struct slice onnx_attribute_name(struct slice message);

/* ---- types of values ---- */

struct onnx_dim {
    int64_t size;      /* -1: dynamic */
    struct slice name; /* name of a dynamic one; empty: it has none */
};

struct proto_type {
    int32_t dtype; /* 0: not declared */
    bool is_other; /* not a tensor: a sequence, a map */
    bool has_shape;
    size_t rank; /* may exceed the number of stored dims */
    struct onnx_dim dims[GRAPH_MAX_RANK];
};

/* Decodes a ValueInfoProto; false if it is corrupt. */
bool onnx_type_decode(struct slice message, struct proto_type *out);

#endif
