/* Memory that is allocated piece by piece and freed at once: names of a graph (a hundred thousand are a few
 * allocations), scratch space of a reader.  A zeroed struct arena is empty; allocations last until
 * arena_clear or arena_release. */
#ifndef IPW_CORE_ARENA_H
#define IPW_CORE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *last;
};

void *arena_alloc(struct arena *arena, size_t size); /* aligned for any type */
/* A NUL-terminated copy. */
char *arena_string(struct arena *arena, const char *bytes, size_t length);
void arena_clear(struct arena *arena); /* frees everything but one block, which is reused */
void arena_release(struct arena *arena);

#endif
