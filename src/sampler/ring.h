/* A ring of samples between one producer (a source's thread) and one consumer (the holder of the
 * sampler's lock).  Preallocated; pushing never blocks, allocates or calls the kernel.  ring_init
 * allocates what ring_release frees. */
#ifndef IPW_SAMPLER_RING_H
#define IPW_SAMPLER_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"

enum sample_kind {
    SAMPLE_GOOD,
    SAMPLE_MISSING, /* the channel had no reading at t */
    SAMPLE_GAP,     /* what happened on this channel before t is unknown: lost, reset, suspend */
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
enum err ring_init(struct ring *ring, size_t capacity) MUST_USE;
void ring_release(struct ring *ring);

/* False, and counted, when the ring is full. */
bool ring_push(struct ring *ring, const struct channel_sample *sample);
bool ring_pop(struct ring *ring, struct channel_sample *out);

#endif
