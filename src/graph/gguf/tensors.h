/* The list of tensors in a GGUF header: reading one entry, and the checks on all of them.  Entries
 * point into the file's bytes; nothing is allocated. */
#ifndef IPW_GRAPH_GGUF_TENSORS_H
#define IPW_GRAPH_GGUF_TENSORS_H

#include "graph/gguf/cursor.h"

/* The fewest bytes that an entry takes: a name of one byte, no dimensions. */
enum { TENSOR_ENTRY_BYTES = 8 + 1 + 4 + 4 + 8 };

/* offset is from the beginning of the data until tensors_place. */
enum err tensors_read_entry(struct cursor *cursor, struct gguf_tensor *out) MUST_USE;

/* Turns offsets into places in the file.  No tensor may reach beyond it or into another: `sorted` has
 * room for one pointer each. */
enum err tensors_place(struct cursor *cursor, struct gguf *gguf, const struct gguf_text **sorted)
    MUST_USE;

#endif
