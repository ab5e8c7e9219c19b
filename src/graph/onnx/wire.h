/* The protobuf wire format, decoded field by field in place: nothing is copied or allocated, and nothing is
 * read past the end of a message, so that gigabytes of weights are skipped at the cost of one addition.
 * Everything is plain data that points into the caller's bytes. */
#ifndef IPW_GRAPH_ONNX_WIRE_H
#define IPW_GRAPH_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/slice.h"

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2, /* a string, an embedded message, or packed scalars */
    WIRE_FIXED32 = 5,
};

struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;     /* of a scalar */
    struct slice bytes; /* of WIRE_BYTES */
};

struct wire {
    const char *at, *end;
    bool is_damaged; /* it ends within a field, or has one that no message has */
};

struct wire wire_of(struct slice message);

/* The next field; false at the end, or where the message is damaged. */
bool wire_next(struct wire *wire, struct wire_field *out);

/* Takes the next scalar out of a repeated field, packed or not; false when none is left.  `type` is that of
 * one scalar.  Bytes that are left in a packed field then do not make up a scalar: it is damaged. */
bool wire_scalar(struct wire_field *field, enum wire_type type, uint64_t *out);

/* The last WIRE_BYTES field of that number; a slice of length 0 when there is none. */
struct slice wire_bytes(struct slice message, uint32_t number);

/* An unsigned little-endian integer of 1 to 8 bytes. */
uint64_t wire_little_endian(const char *bytes, size_t size);

#endif
