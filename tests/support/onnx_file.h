/* Writing ONNX files in memory, for the tests of their reader. Bytes are added to the caller's
 * struct text; no test library is needed, so that fuzzers can use it too. */
#ifndef TESTS_SUPPORT_ONNX_FILE_H
#define TESTS_SUPPORT_ONNX_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "core/text.h"
#include "support/onnx_wire.h"

/* A small complete model: an image, a convolution, a norm, a reshape with a computed shape, a
 * branch, a matmul with a Constant node, an LSTM, and a function call; one dimension is symbolic. */
void onnx_file_model(struct text *to);

/* Parses the bytes as a file, builds its graph, counts and draws it. Returns what is wrong with our
 * reader, NULL when nothing is; rejecting a file is not wrong. */
const char *onnx_file_exercise(const void *bytes, size_t length);

#endif
