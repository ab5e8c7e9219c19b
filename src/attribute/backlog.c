#include "attribute/share_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/xalloc.h"
#include "port/thread.h"

/* ---- sharers ---- */

struct sharer *sharer_new(size_t devices)
{
    return xcalloc(1, sizeof(struct sharer) + devices * sizeof(struct portion));
}

void sharer_free(struct sharer *sharer)
{
    if (!sharer)
        return;
    request_trace_release(&sharer->trace);
    free(sharer);
}

void sharer_reset(struct sharer *sharer, size_t devices)
{
    struct request_trace trace = sharer->trace;
    memset(sharer, 0, sizeof *sharer + devices * sizeof(struct portion));
    sharer->trace = trace;
}

size_t sharer_bytes(const struct sharer *sharer, size_t devices)
{
    return sizeof *sharer + devices * sizeof(struct portion) +
           sharer->trace.arrival_count * sizeof *sharer->trace.arrivals;
}

void sharers_add(struct sharers *list, struct sharer *sharer)
{
    XGROW(list->items, list->count, list->capacity);
    list->items[list->count++] = sharer;
}

void sharers_release(struct sharers *list)
{
    for (size_t i = 0; i < list->count; i++)
        sharer_free(list->items[i]);
    free(list->items);
    *list = (struct sharers){0};
}

static int compare(nanos a, nanos b)
{
    return (a > b) - (a < b);
}

int backlog_by_start(const void *left, const void *right)
{
    const struct sharer *a = *(struct sharer *const *)left, *b = *(struct sharer *const *)right;
    int order = compare(a->trace.from, b->trace.from);
    if (!order)
        order = compare(a->trace.to, b->trace.to);
    return order ? order : (a->trace.id > b->trace.id) - (a->trace.id < b->trace.id);
}

int backlog_by_end(const void *left, const void *right)
{
    const struct sharer *a = *(struct sharer *const *)left, *b = *(struct sharer *const *)right;
    int order = compare(a->trace.to, b->trace.to);
    return order ? order : backlog_by_start(left, right);
}

/* ---- in flight ---- */

void backlog_init(struct backlog *backlog)
{
    *backlog = (struct backlog){0};
    pthread_mutex_init(&backlog->lock, NULL);
    pthread_cond_init(&backlog->collected, NULL);
}

void backlog_release(struct backlog *backlog)
{
    free(backlog->flights);
    sharers_release(&backlog->ended);
    sharers_release(&backlog->waiting);
    pthread_cond_destroy(&backlog->collected);
    pthread_mutex_destroy(&backlog->lock);
}

/* Index of the request in flight, or flight_end when it is not there.  Most requests end roughly in the order of
 * their starts, so a linear search from the first is short.  Call with the lock held. */
static size_t find_flight(const struct backlog *backlog, uint64_t id)
{
    size_t i = backlog->flight_first;
    while (i < backlog->flight_end && backlog->flights[i].id != id)
        i++;
    return i;
}

static void remove_flight(struct backlog *backlog, size_t place)
{
    struct flight *first = backlog->flights + backlog->flight_first;
    memmove(first + 1, first, (place - backlog->flight_first) * sizeof *first);
    backlog->flight_first++;
}

/* Moves them to the front when half of the capacity is free there. */
static void compact_flights(struct backlog *backlog)
{
    size_t count = backlog->flight_end - backlog->flight_first;
    if (backlog->flight_end < backlog->flight_capacity || backlog->flight_first < count)
        return;
    if (count)
        memmove(backlog->flights, backlog->flights + backlog->flight_first,
                count * sizeof *backlog->flights);
    backlog->flight_first = 0;
    backlog->flight_end = count;
}

enum err backlog_begin(struct backlog *backlog, uint64_t id, nanos from)
{
    enum err err = ERR_OK;
    pthread_mutex_lock(&backlog->lock);
    compact_flights(backlog);
    XGROW(backlog->flights, backlog->flight_end, backlog->flight_capacity);
    if (id <= backlog->highest && find_flight(backlog, id) < backlog->flight_end)
        err = ERR_BAD_VALUE;
    else
        backlog->flights[backlog->flight_end++] = (struct flight){id, from};
    backlog->highest = id > backlog->highest ? id : backlog->highest;
    pthread_mutex_unlock(&backlog->lock);
    return err;
}

enum err backlog_end(struct backlog *backlog, struct sharer *sharer)
{
    pthread_mutex_lock(&backlog->lock);
    size_t at = find_flight(backlog, sharer->trace.id);
    enum err err = at < backlog->flight_end ? ERR_OK : ERR_NOT_FOUND;
    if (!err) {
        sharers_add(&backlog->ended, sharer);
        remove_flight(backlog, at);
    }
    pthread_mutex_unlock(&backlog->lock);
    return err;
}

void backlog_forget(struct backlog *backlog, uint64_t id)
{
    pthread_mutex_lock(&backlog->lock);
    size_t at = find_flight(backlog, id);
    if (at < backlog->flight_end)
        remove_flight(backlog, at);
    pthread_mutex_unlock(&backlog->lock);
}

size_t backlog_ended(struct backlog *backlog)
{
    pthread_mutex_lock(&backlog->lock);
    size_t count = backlog->ended.count;
    pthread_mutex_unlock(&backlog->lock);
    return count;
}

bool backlog_has_capacity(struct backlog *backlog, size_t max, nanos timeout)
{
    pthread_mutex_lock(&backlog->lock);
    if (backlog->ended.count >= max)
        thread_wait(&backlog->collected, &backlog->lock, timeout);
    bool below = backlog->ended.count < max;
    pthread_mutex_unlock(&backlog->lock);
    return below;
}

/* ---- ended and waiting: a heap, so that thousands of short requests waiting for a long one are not scanned every
 * time ---- */

static void swap(struct sharer **items, size_t a, size_t b)
{
    struct sharer *kept = items[a];
    items[a] = items[b];
    items[b] = kept;
}

static void push(struct sharers *heap, struct sharer *sharer)
{
    size_t at = heap->count;
    sharers_add(heap, sharer);
    while (at > 0 && backlog_by_start(&heap->items[at], &heap->items[(at - 1) / 2]) < 0) {
        swap(heap->items, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

static struct sharer *pop(struct sharers *heap)
{
    struct sharer *top = heap->items[0];
    heap->items[0] = heap->items[--heap->count];
    for (size_t at = 0;;) {
        size_t min = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < heap->count; child++)
            if (backlog_by_start(&heap->items[child], &heap->items[min]) < 0)
                min = child;
        if (min == at)
            return top;
        swap(heap->items, at, min);
        at = min;
    }
}

void backlog_collect(struct backlog *backlog, nanos *earliest)
{
    *earliest = INT64_MAX;
    pthread_mutex_lock(&backlog->lock);
    for (size_t i = 0; i < backlog->ended.count; i++)
        push(&backlog->waiting, backlog->ended.items[i]);
    backlog->ended.count = 0;
    for (size_t i = backlog->flight_first; i < backlog->flight_end; i++)
        if (backlog->flights[i].from < *earliest)
            *earliest = backlog->flights[i].from;
    thread_wake(&backlog->collected);
    pthread_mutex_unlock(&backlog->lock);
}

void backlog_return(struct backlog *backlog, struct sharers *list)
{
    while (list->count)
        push(&backlog->waiting, list->items[--list->count]);
}

struct sharer *backlog_pop(struct backlog *backlog, nanos limit)
{
    struct sharers *heap = &backlog->waiting;
    if (!heap->count)
        return NULL;
    /* A request of zero length at the limit is finished by it. */
    const struct request_trace *top = &heap->items[0]->trace;
    return top->from < limit || top->to <= limit ? pop(heap) : NULL;
}
