#include "core/grow.h"

#include <stdlib.h>

enum { FIRST = 16 };

void *grow(void *items, size_t *capacity, size_t count, size_t item_size)
{
    if (count < *capacity)
        return items;
    size_t wanted = *capacity ? *capacity * 2 : FIRST;
    void *moved = realloc(items, wanted * item_size);
    if (moved)
        *capacity = wanted;
    return moved;
}
