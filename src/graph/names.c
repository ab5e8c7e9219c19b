#include "graph/names.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 14 };

struct names_block {
    struct names_block *before;
    size_t used, room;
    char bytes[];
};

static struct names_block *block_with(struct names *names, size_t length)
{
    if (names->last && names->last->room - names->last->used >= length)
        return names->last;
    size_t room = length > BLOCK_BYTES ? length : BLOCK_BYTES;
    struct names_block *block = malloc(sizeof *block + room);
    if (!block)
        return NULL;
    *block = (struct names_block){.before = names->last, .room = room};
    names->last = block;
    return block;
}

char *names_keep(struct names *names, const char *bytes, size_t length)
{
    struct names_block *block = block_with(names, length + 1);
    if (!block)
        return NULL;
    char *kept = block->bytes + block->used;
    memcpy(kept, bytes, length);
    kept[length] = '\0';
    block->used += length + 1;
    return kept;
}

void names_release(struct names *names)
{
    while (names->last) {
        struct names_block *before = names->last->before;
        free(names->last);
        names->last = before;
    }
}
