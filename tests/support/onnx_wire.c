#include "support/onnx_wire.h"

#include <string.h>

void onnx_put_varint(struct text *to, uint64_t value)
{
    char bytes[10];
    size_t length = 0;
    for (; value > 0x7f; value >>= 7)
        bytes[length++] = (char)(value | 0x80);
    bytes[length++] = (char)value;
    text_add_bytes(to, bytes, length);
}

void onnx_put_number(struct text *to, unsigned field, uint64_t value)
{
    onnx_put_varint(to, (uint64_t)field << 3);
    onnx_put_varint(to, value);
}

void onnx_put_bytes(struct text *to, unsigned field, const void *bytes, size_t length)
{
    onnx_put_varint(to, (uint64_t)field << 3 | 2);
    onnx_put_varint(to, length);
    text_add_bytes(to, bytes, length);
}

void onnx_put_string(struct text *to, unsigned field, const char *string)
{
    onnx_put_bytes(to, field, string, strlen(string));
}

void onnx_put_message(struct text *to, unsigned field, struct text *message)
{
    onnx_put_bytes(to, field, text_get(message), message->length);
    text_release(message);
}
