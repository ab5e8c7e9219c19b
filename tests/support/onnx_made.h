/* Small ONNX models that ONNX Runtime can run, written by tests. */
#ifndef TESTS_SUPPORT_ONNX_MADE_H
#define TESTS_SUPPORT_ONNX_MADE_H

#include <stdint.h>

#include "core/text.h"
#include "engine/onnx.h"

struct onnx_made {
    struct text graph, rest; /* `rest`: metadata and opsets of other domains */
    int opset;               /* 0: 13 */
};

/* A dimension that is free has the value -1, and the symbol of the argument ("" none). */
void onnx_made_input(struct onnx_made *made, const char *name, enum onnx_type type,
                     const int64_t *shape, size_t rank, const char *symbol);
void onnx_made_output(struct onnx_made *made, const char *name, enum onnx_type type,
                      const int64_t *shape, size_t rank, const char *symbol);

/* inputs: names separated by commas.  The node is named like its output. */
void onnx_made_node(struct onnx_made *made, const char *op, const char *inputs, const char *output);
/* The same with an integer attribute. */
void onnx_made_node_with(struct onnx_made *made, const char *op, const char *inputs,
                         const char *output, const char *attribute, int64_t value);
void onnx_made_floats(struct onnx_made *made, const char *name, const float *values,
                      const int64_t *shape, size_t rank);
void onnx_made_metadata(struct onnx_made *made, const char *key, const char *value);

/* Writes the model to a new file and releases it; returns the path, to be freed.  Or to a file of that name. */
char *onnx_made_file(struct onnx_made *made);
void onnx_made_file_at(struct onnx_made *made, const char *path);

/* y = relu(x) + x for rows of three numbers, and any number of rows: "batch". */
struct onnx_made onnx_made_sum(void);

#endif
