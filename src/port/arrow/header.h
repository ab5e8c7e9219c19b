/* A check of Arrow message headers (flatbuffers), for arrow_read.c alone.  Nothing is owned. */
#ifndef IPW_PORT_ARROW_HEADER_H
#define IPW_PORT_ARROW_HEADER_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a header has the parts that nanoarrow follows without looking: the message's content, the
 * type of each field of a schema, the key and value of each pair of metadata.  The header must have been verified, so that every offset in
 * it is known to lie inside. */
bool arrow_header_is_complete(const uint8_t *header);

#endif
