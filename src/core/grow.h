/* Arrays that grow by doubling, in modules that are linked into libipw; others use xgrow.  The caller owns the array. */
#ifndef IPW_CORE_GROW_H
#define IPW_CORE_GROW_H

#include <stddef.h>

#include "core/memory.h"

/* Ensures capacity for one more element after `count`.  Returns the array, perhaps moved, with *capacity updated, or
 * NULL when libipw is out of memory, and the old array is then still valid:
 *
 *     struct thing *items = grow(list->items, &list->capacity, list->count, sizeof *items);
 *     if (!items)
 *         return ERR_NO_MEMORY;
 *     list->items = items;
 */
static inline void *grow(void *items, size_t *capacity, size_t count, size_t item_size)
{
    if (count < *capacity)
        return items;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    void *moved = memory_resize(items, wanted * item_size);
    if (moved)
        *capacity = wanted;
    return moved;
}

#endif
