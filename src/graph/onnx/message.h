/* The small messages of an ONNX file, unpacked by protobuf-c: settings of nodes, and types of tensors.
 * What comes out lies in the caller's arena. */
#ifndef IPW_GRAPH_ONNX_MESSAGE_H
#define IPW_GRAPH_ONNX_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/onnx/arena.h"
#include "graph/onnx/wire.h"

struct message_setting {
    bool has_integer, has_real;
    int64_t integer;
    double real;
    struct slice text;
    const int64_t *integers;
    size_t integer_count;
    const float *reals;
    size_t real_count;
};

struct message_dim {
    int64_t size;     /* -1: not told */
    const char *name; /* of one that is told later; NULL: none */
};

struct message_type {
    int32_t element; /* 0: not told */
    bool is_other;   /* no tensor: a sequence, a map */
    bool has_shape;
    size_t rank;
    const struct message_dim *dims;
};

/* ERR_UNSUPPORTED, and what brings it, in a build without protobuf-c. */
enum err message_available(struct error *why) MUST_USE;

/* ERR_BAD_VALUE: it is damaged.  ERR_NO_MEMORY. */
enum err message_setting(struct arena *arena, struct slice body, struct message_setting *out)
    MUST_USE;
enum err message_type(struct arena *arena, struct slice body, struct message_type *out) MUST_USE;

#endif
