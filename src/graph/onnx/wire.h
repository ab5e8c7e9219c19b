/* The wire format of protocol buffers, field by field and in place: nothing is copied, and nothing is read
 * past the end of the message.  What can hold weights (the model, its graphs, nodes and tensors) is walked
 * with this, since protobuf-c copies every byte of what it unpacks.  All is plain data that points into
 * bytes of the caller's. */
#ifndef IPW_GRAPH_ONNX_WIRE_H
#define IPW_GRAPH_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slice {
    const char *bytes;
    size_t length;
};

bool slice_is(struct slice slice, const char *string);

enum wire_type {
    WIRE_NUMBER = 0, /* a varint */
    WIRE_8_BYTES = 1,
    WIRE_BYTES = 2, /* text, a message, packed numbers */
    WIRE_4_BYTES = 5,
};

struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;     /* of all but WIRE_BYTES */
    struct slice bytes; /* of WIRE_BYTES */
};

struct wire {
    const char *at, *end;
    bool is_damaged; /* it ended in the middle of a field, or no field looks like that */
};

struct wire wire_of(struct slice message);

/* The next field; false at the end, or where the rest makes no sense (is_damaged then). */
bool wire_next(struct wire *wire, struct wire_field *out);

/* The next of packed varints; false when there is none. */
bool wire_packed(struct slice *rest, uint64_t *out);

#endif
