/* A ring of samples between one producer (a source's thread) and one consumer (the holder of the sampler's lock).
 * Preallocated; pushing never blocks, allocates or calls the kernel.  ring_init allocates what ring_release frees. */
#ifndef IPW_SAMPLER_RING_H
#define IPW_SAMPLER_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/err.h"
#include "core/memory.h"
#include "core/units.h"

enum sample_kind {
    SAMPLE_GOOD,
    SAMPLE_MISSING, /* the channel had no reading at t */
    SAMPLE_GAP,     /* the channel's past before t is unknown: lost, reset, suspend */
};

struct channel_sample {
    nanos t;
    union {
        uint64_t count; /* energy counters: raw */
        double value;
    };
    uint32_t sigma_us; /* standard uncertainty of t */
    uint16_t channel;
    uint8_t kind;
    uint8_t why; /* enum err of a missing sample or a gap */
};

struct ring {
    struct channel_sample *items;
    size_t mask;         /* capacity - 1, capacity a power of two */
    _Atomic size_t head; /* next to write; owned by the producer */
    _Atomic size_t tail; /* next to read; owned by the consumer */
    _Atomic size_t dropped;
};

/* capacity is rounded up to a power of two. */
static inline MUST_USE enum err ring_init(struct ring *ring, size_t capacity)
{
    size_t size = 1;
    while (size < capacity)
        size *= 2;
    ring->items = memory_zeroed(size, sizeof *ring->items);
    if (!ring->items)
        return ERR_NO_MEMORY;
    ring->mask = size - 1;
    atomic_init(&ring->head, 0);
    atomic_init(&ring->tail, 0);
    atomic_init(&ring->dropped, 0);
    return ERR_OK;
}

static inline void ring_release(struct ring *ring)
{
    free(ring->items);
    ring->items = NULL;
}

/* False, and counted, when the ring is full. */
static inline bool ring_push(struct ring *ring, const struct channel_sample *sample)
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

static inline bool ring_pop(struct ring *ring, struct channel_sample *out)
{
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    size_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    if (tail == head)
        return false;
    *out = ring->items[tail & ring->mask];
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
    return true;
}

#endif
