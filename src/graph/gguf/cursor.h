/* Reading a GGUF header from front to back, never past its end, with the place of a failure in the
 * message.  A cursor is the caller's, points into bytes of the caller's, and is plain data. */
#ifndef IPW_GRAPH_GGUF_CURSOR_H
#define IPW_GRAPH_GGUF_CURSOR_H

#include <stdint.h>

#include "core/err.h"
#include "graph/gguf.h"

struct cursor {
    const char *file; /* its name, for messages */
    const unsigned char *bytes;
    uint64_t size, at;
    const char *kind; /* what is being read: "key", "tensor"; NULL: the header itself */
    struct gguf_text item;
    uint64_t number; /* the item's, from 0: its name until it has one */
    struct error *why;
};

static inline uint64_t cursor_left(const struct cursor *cursor)
{
    return cursor->size - cursor->at;
}

/* From here on it is about this item, whose name is not known yet. */
void cursor_item(struct cursor *cursor, const char *kind, uint64_t number);

/* "FILE: byte N, key 'NAME': ...", on one line whatever bytes the name holds. */
enum err cursor_fail(const struct cursor *cursor, enum err code, const char *format, ...)
    PRINTF_LIKE(3, 4);

enum err cursor_u32(struct cursor *cursor, uint32_t *out) MUST_USE;
enum err cursor_u64(struct cursor *cursor, uint64_t *out) MUST_USE;
enum err cursor_skip(struct cursor *cursor, uint64_t bytes) MUST_USE;
enum err cursor_text(struct cursor *cursor, struct gguf_text *out) MUST_USE; /* behind its length */
/* The text that names the item; it may be neither empty nor absurdly long. */
enum err cursor_name(struct cursor *cursor, struct gguf_text *out) MUST_USE;

/* Little-endian, wherever they lie. */
uint64_t cursor_little(const unsigned char *bytes, unsigned count);

#endif
