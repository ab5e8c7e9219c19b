#include "graph/onnx/arena.h"

#include <stdalign.h>
#include <stdlib.h>

enum { BLOCK_BYTES = 1 << 14 };

struct arena_block {
    struct arena_block *before;
    size_t used, room;
    alignas(max_align_t) char bytes[];
};

void *arena_take(struct arena *arena, size_t bytes)
{
    size_t step = alignof(max_align_t), wanted = (bytes + step - 1) / step * step;
    struct arena_block *block = arena->last;
    if (wanted < bytes)
        return NULL;
    if (!block || block->room - block->used < wanted) {
        size_t room = wanted > BLOCK_BYTES ? wanted : BLOCK_BYTES;
        block = malloc(sizeof *block + room);
        if (!block)
            return NULL;
        *block = (struct arena_block){.before = arena->last, .room = room};
        arena->last = block;
    }
    void *taken = block->bytes + block->used;
    block->used += wanted;
    return taken;
}

static void release_after(struct arena *arena, struct arena_block *kept)
{
    while (arena->last != kept) {
        struct arena_block *before = arena->last->before;
        free(arena->last);
        arena->last = before;
    }
}

void arena_clear(struct arena *arena)
{
    struct arena_block *first = arena->last;
    while (first && first->before)
        first = first->before;
    release_after(arena, first && first->room == BLOCK_BYTES ? first : NULL);
    if (arena->last)
        arena->last->used = 0;
}

void arena_release(struct arena *arena)
{
    release_after(arena, NULL);
}
