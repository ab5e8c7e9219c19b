/* Arrays that grow.  The caller owns the array; growing doubles it. */
#ifndef IPW_CORE_GROW_H
#define IPW_CORE_GROW_H

#include <stddef.h>

/* Room for one more element after `count`: returns the array, perhaps moved, with *capacity told, or
 * NULL when out of memory, the old array then still standing:
 *
 *     struct thing *items = grow(list->items, &list->capacity, list->count, sizeof *items);
 *     if (!items)
 *         return ERR_NO_MEMORY;
 *     list->items = items;
 */
void *grow(void *items, size_t *capacity, size_t count, size_t item_size);

#endif
