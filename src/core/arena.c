/* A list of blocks; allocations come from the last one. */
#include "core/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/xalloc.h"

enum { BLOCK_SIZE = 1 << 14 };

struct arena_block {
    struct arena_block *previous;
    size_t used, capacity;
    alignas(max_align_t) char bytes[];
};

/* `alignment` is a power of two; strings need none. */
static void *alloc(struct arena *arena, size_t size, size_t alignment)
{
    struct arena_block *block = arena->last;
    size_t at = block ? (block->used + alignment - 1) & ~(alignment - 1) : 0;
    if (!block || at > block->capacity || block->capacity - at < size) {
        size_t capacity = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        block = xmalloc(capacity < PTRDIFF_MAX - sizeof *block ? sizeof *block + capacity
                                                               : PTRDIFF_MAX);
        *block = (struct arena_block){.previous = arena->last, .capacity = capacity};
        arena->last = block;
        at = 0;
    }
    block->used = at + size;
    return block->bytes + at;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    return alloc(arena, size, alignof(max_align_t));
}

char *arena_string(struct arena *arena, const char *bytes, size_t length)
{
    char *copy = alloc(arena, length < PTRDIFF_MAX ? length + 1 : length, 1);
    if (length)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}

static void free_after(struct arena *arena, const struct arena_block *kept)
{
    while (arena->last != kept) {
        struct arena_block *previous = arena->last->previous;
        free(arena->last);
        arena->last = previous;
    }
}

void arena_clear(struct arena *arena)
{
    struct arena_block *first = arena->last;
    while (first && first->previous)
        first = first->previous;
    free_after(arena, first && first->capacity == BLOCK_SIZE ? first : NULL);
    if (arena->last)
        arena->last->used = 0;
}

void arena_release(struct arena *arena)
{
    free_after(arena, NULL);
}
