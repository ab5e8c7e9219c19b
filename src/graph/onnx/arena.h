/* Memory that is taken bit by bit and given back all at once.  A zeroed struct arena is empty; what was
 * taken lasts until arena_clear or arena_release. */
#ifndef IPW_GRAPH_ONNX_ARENA_H
#define IPW_GRAPH_ONNX_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *last;
};

void *arena_take(struct arena *arena, size_t bytes); /* aligned for anything; NULL: no memory */
void arena_clear(struct arena *arena);               /* keeps a block to begin with again */
void arena_release(struct arena *arena);

#endif
