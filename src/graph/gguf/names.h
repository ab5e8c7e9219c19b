/* The names of keys and tensors, sorted, so that one is found without looking at all.  The list is
 * the caller's and points to names of the caller's. */
#ifndef IPW_GRAPH_GGUF_NAMES_H
#define IPW_GRAPH_GGUF_NAMES_H

#include "graph/gguf/cursor.h"

/* Two of the same name are an error. */
enum err names_sort(struct cursor *cursor, const char *kind, const struct gguf_text **names,
                    size_t count) MUST_USE;

const struct gguf_text *names_find(const struct gguf_text **names, size_t count, const char *name);

#endif
