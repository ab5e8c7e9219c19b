/* Writing ONNX files in memory, for the tests of what reads them.  A struct text of the caller's takes the
 * bytes; no test library is needed, so that fuzzers may use it too. */
#ifndef TESTS_SUPPORT_ONNX_FILE_H
#define TESTS_SUPPORT_ONNX_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "core/text.h"

/* One field of a message. */
void onnx_put_number(struct text *to, unsigned field, uint64_t value);
void onnx_put_bytes(struct text *to, unsigned field, const void *bytes, size_t length);
void onnx_put_string(struct text *to, unsigned field, const char *string);
void onnx_put_message(struct text *to, unsigned field, struct text *message); /* and releases it */

/* A small model as a whole: a picture, a convolution, a norm, a reshape whose shape is computed, a branch, a
 * product with a tensor of a Constant node, recurrence, and a call of a function; one dimension is open. */
void onnx_file_model(struct text *to);

/* Reads the bytes as a file, makes a graph of it, counts and draws it.  Gives what is wrong with our
 * reading, NULL when nothing is; a file that is refused is nothing wrong. */
const char *onnx_file_exercise(const void *bytes, size_t length);

#endif
