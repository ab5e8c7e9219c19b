/* The regions of a session: when each began and ended, and its parent in the same thread.
 *
 * Beginning and ending take constant time and memory, however many regions there are and however deeply they nest: the
 * open regions of a thread are a linked list with its innermost one in a table, and a path is built only on request.
 * Not locked; the caller owns the struct, zeroed before use, and regions_release frees its content. */
#ifndef IPW_TRACE_REGIONS_H
#define IPW_TRACE_REGIONS_H

#include <pthread.h>
#include <stddef.h>

#include "core/err.h"
#include "core/units.h"

enum { REGION_NONE = -1 };

struct region {
    char *name;
    char *path; /* NULL until it is requested */
    nanos from, to;
    int parent;
    int outer, inner; /* its neighbors among the open regions of its thread */
    unsigned thread;  /* index in the table of threads */
};

/* A thread that has begun a region, and its innermost open one. */
struct region_thread {
    pthread_t id;
    int innermost;
};

struct regions {
    struct region *items;
    size_t count, capacity;
    struct region_thread *threads;
    size_t thread_count, thread_capacity;
    size_t *slots; /* a hash table of thread numbers plus one; 0 is free */
    size_t slot_count;
};

void regions_release(struct regions *regions);

/* Begins a region inside the innermost open one of `thread`; its number in *number.  It starts when items[*number].from
 * is set. */
enum err regions_begin(struct regions *regions, pthread_t thread, const char *name, int *number)
    MUST_USE;

/* Ends an open region at `now`, in any thread and in any order.  ERR_NOT_FOUND for one that is not open. */
enum err regions_end(struct regions *regions, int number, nanos now) MUST_USE;

/* NULL if the number is invalid. */
const struct region *regions_find(const struct regions *regions, int number);

/* "outer/inner", owned by the regions; NULL when out of memory. */
const char *regions_path(struct regions *regions, int number);

#endif
