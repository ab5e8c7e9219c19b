/* Writing protocol buffers, of which ONNX files consist, in memory: bytes are added to the caller's struct text. */
#ifndef TESTS_SUPPORT_ONNX_WIRE_H
#define TESTS_SUPPORT_ONNX_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "core/text.h"

void onnx_put_varint(struct text *to, uint64_t value);
/* One field of a message. */
void onnx_put_number(struct text *to, unsigned field, uint64_t value);
void onnx_put_bytes(struct text *to, unsigned field, const void *bytes, size_t length);
void onnx_put_string(struct text *to, unsigned field, const char *string);
void onnx_put_message(struct text *to, unsigned field, struct text *message); /* and releases it */

#endif
