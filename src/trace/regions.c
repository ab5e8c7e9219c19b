#include "trace/regions.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/memory.h"

void regions_release(struct regions *regions)
{
    for (size_t i = 0; i < regions->count; i++) {
        free(regions->items[i].name);
        free(regions->items[i].path);
    }
    free(regions->items);
    free(regions->threads);
    free(regions->slots);
    *regions = (struct regions){0};
}

/* ---- threads ---- */

/* The slot of this thread, or the free slot for it.  The C library's thread ids are addresses a page or more apart:
 * multiplicative hashing spreads them. */
static size_t *find_slot(const struct regions *regions, pthread_t thread)
{
    size_t mask = regions->slot_count - 1;
    size_t at = (size_t)(((uint64_t)(uintptr_t)thread * 0x9e3779b97f4a7c15u) >> 32) & mask;
    while (regions->slots[at] &&
           !pthread_equal(regions->threads[regions->slots[at] - 1].id, thread))
        at = (at + 1) & mask;
    return &regions->slots[at];
}

/* Keeps the table at most half full. */
static enum err reserve_slot(struct regions *regions)
{
    if (2 * (regions->thread_count + 1) <= regions->slot_count)
        return ERR_OK;
    size_t wanted = regions->slot_count ? 2 * regions->slot_count : 32;
    size_t *slots = memory_zeroed(wanted, sizeof *slots);
    if (!slots)
        return ERR_NO_MEMORY;
    free(regions->slots);
    regions->slots = slots;
    regions->slot_count = wanted;
    for (size_t i = 0; i < regions->thread_count; i++)
        *find_slot(regions, regions->threads[i].id) = i + 1;
    return ERR_OK;
}

/* A thread's number; a new thread is added. */
static enum err find_thread(struct regions *regions, pthread_t thread, unsigned *number)
{
    enum err err = reserve_slot(regions);
    if (err)
        return err;
    size_t *slot = find_slot(regions, thread);
    if (*slot == 0) {
        struct region_thread *threads = grow(regions->threads, &regions->thread_capacity,
                                             regions->thread_count, sizeof *threads);
        if (!threads)
            return ERR_NO_MEMORY;
        regions->threads = threads;
        threads[regions->thread_count++] = (struct region_thread){thread, REGION_NONE};
        *slot = regions->thread_count;
    }
    *number = (unsigned)(*slot - 1);
    return ERR_OK;
}

/* ---- regions ---- */

enum err regions_begin(struct regions *regions, pthread_t thread, const char *name, int *number)
{
    unsigned in;
    enum err err = regions->count < INT_MAX ? find_thread(regions, thread, &in) : ERR_NO_MEMORY;
    if (err)
        return err;
    struct region *items = grow(regions->items, &regions->capacity, regions->count, sizeof *items);
    if (!items)
        return ERR_NO_MEMORY;
    regions->items = items;
    char *copy = memory_string(name);
    if (!copy)
        return ERR_NO_MEMORY;
    int outer = regions->threads[in].innermost;
    *number = (int)regions->count++;
    items[*number] = (struct region){
        .name = copy, .parent = outer, .outer = outer, .inner = REGION_NONE, .thread = in};
    if (outer != REGION_NONE)
        items[outer].inner = *number;
    regions->threads[in].innermost = *number;
    return ERR_OK;
}

const struct region *regions_find(const struct regions *regions, int number)
{
    return number >= 0 && (size_t)number < regions->count ? &regions->items[number] : NULL;
}

enum err regions_end(struct regions *regions, int number, nanos now)
{
    const struct region *known = regions_find(regions, number);
    if (!known || known->to)
        return ERR_NOT_FOUND;
    struct region *region = &regions->items[number];
    region->to = now;
    if (region->outer != REGION_NONE)
        regions->items[region->outer].inner = region->inner;
    if (region->inner != REGION_NONE)
        regions->items[region->inner].outer = region->outer;
    else
        regions->threads[region->thread].innermost = region->outer;
    return ERR_OK;
}

/* Built from the end, because parents are known innermost first. */
const char *regions_path(struct regions *regions, int number)
{
    struct region *region = &regions->items[number];
    if (region->parent == REGION_NONE)
        return region->name;
    if (region->path)
        return region->path;
    size_t length = strlen(region->name) + 1;
    for (int at = region->parent; at != REGION_NONE; at = regions->items[at].parent)
        length += strlen(regions->items[at].name) + 1;
    char *end = memory_resize(NULL, length);
    if (!end)
        return NULL;
    region->path = end;
    end += length;
    *--end = '\0';
    for (int at = number; at != REGION_NONE; at = regions->items[at].parent) {
        size_t part = strlen(regions->items[at].name);
        end -= part;
        memcpy(end, regions->items[at].name, part);
        if (end > region->path)
            *--end = '/';
    }
    return region->path;
}
