#include "sampler/ring.h"

#include <stdlib.h>

enum err ring_init(struct ring *ring, size_t capacity)
{
    size_t size = 1;
    while (size < capacity)
        size *= 2;
    ring->items = calloc(size, sizeof *ring->items);
    if (!ring->items)
        return ERR_NO_MEMORY;
    ring->mask = size - 1;
    atomic_init(&ring->head, 0);
    atomic_init(&ring->tail, 0);
    atomic_init(&ring->dropped, 0);
    return ERR_OK;
}

void ring_release(struct ring *ring)
{
    free(ring->items);
    ring->items = NULL;
}

bool ring_push(struct ring *ring, const struct channel_sample *sample)
{
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    if (head - tail > ring->mask) {
        atomic_fetch_add_explicit(&ring->dropped, 1, memory_order_relaxed);
        return false;
    }
    ring->items[head & ring->mask] = *sample;
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
    return true;
}

bool ring_pop(struct ring *ring, struct channel_sample *out)
{
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    size_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    if (tail == head)
        return false;
    *out = ring->items[tail & ring->mask];
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
    return true;
}
