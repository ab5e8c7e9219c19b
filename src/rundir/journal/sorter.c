#include "rundir/journal/sorter.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/grow.h"
#include "port/file.h"

enum { LEAST_WINDOW = 64 }; /* places of a run that are read at once */

struct sorter_run {
    uint64_t begin, end;        /* in the file */
    uint64_t next;              /* what was not read yet */
    size_t window, count, used; /* what was read of it: sorter->places[window ...] */
};

static int compare(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    for (size_t i = 0; i < sizeof left->order / sizeof *left->order; i++)
        if (left->order[i] != right->order[i])
            return left->order[i] < right->order[i] ? -1 : 1;
    return 0;
}

static enum err no_memory(struct error *why)
{
    return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
}

enum err sorter_init(struct sorter *sorter, size_t capacity, struct error *why)
{
    *sorter = (struct sorter){.capacity = capacity, .fd = -1};
    sorter->places = malloc(capacity * sizeof *sorter->places);
    return sorter->places ? ERR_OK : no_memory(why);
}

void sorter_release(struct sorter *sorter)
{
    free(sorter->places);
    free(sorter->runs);
    free(sorter->heap);
    if (sorter->fd >= 0)
        close(sorter->fd);
    *sorter = (struct sorter){.fd = -1};
}

/* Where a place stands in the scratch file. */
static long long offset_of(uint64_t place)
{
    return (long long)place * (long long)sizeof(struct place);
}

/* Sorts what is in memory and moves it to the scratch file, as one run. */
static enum err spill(struct sorter *sorter, struct error *why)
{
    enum err err = ERR_OK;
    qsort(sorter->places, sorter->count, sizeof *sorter->places, compare);
    if (sorter->fd < 0 && (err = file_open_scratch(&sorter->fd, why)))
        return err;
    struct sorter_run *runs =
        grow(sorter->runs, &sorter->run_capacity, sorter->run_count, sizeof *runs);
    if (!runs)
        return no_memory(why);
    sorter->runs = runs;
    err = file_write_at(sorter->fd, sorter->places, sorter->count * sizeof *sorter->places,
                        offset_of(sorter->written));
    if (err)
        return err_set(why, err, "cannot sort in a temporary file: %s", err_text(err));
    runs[sorter->run_count++] = (struct sorter_run){
        .begin = sorter->written,
        .end = sorter->written + sorter->count,
    };
    sorter->written += sorter->count;
    sorter->count = 0;
    return ERR_OK;
}

enum err sorter_add(struct sorter *sorter, const struct place *place, struct error *why)
{
    if (sorter->count == sorter->capacity) {
        enum err err = spill(sorter, why);
        if (err)
            return err;
    }
    sorter->places[sorter->count++] = *place;
    return ERR_OK;
}

/* ---- merging ---- */

static const struct place *head(const struct sorter *sorter, size_t run)
{
    return &sorter->places[sorter->runs[run].window + sorter->runs[run].used];
}

/* Reads the next window of a run; an exhausted run has count 0. */
static enum err refill(struct sorter *sorter, struct sorter_run *run, struct error *why)
{
    size_t window = sorter->capacity / sorter->run_count;
    uint64_t left = run->end - run->next;
    run->used = 0;
    run->count = left < window ? (size_t)left : window;
    if (run->count == 0)
        return ERR_OK;
    enum err err = file_read_at(sorter->fd, &sorter->places[run->window],
                                run->count * sizeof(struct place), offset_of(run->next));
    if (err)
        return err_set(why, err, "cannot sort in a temporary file: %s", err_text(err));
    run->next += run->count;
    return ERR_OK;
}

static bool is_before(const struct sorter *sorter, size_t a, size_t b)
{
    return compare(head(sorter, sorter->heap[a]), head(sorter, sorter->heap[b])) < 0;
}

static void sift_down(struct sorter *sorter, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < sorter->heap_count && is_before(sorter, child, least))
                least = child;
        if (least == at)
            return;
        size_t moved = sorter->heap[at];
        sorter->heap[at] = sorter->heap[least];
        sorter->heap[least] = moved;
        at = least;
    }
}

/* Every run gets an equal window of the memory that the places had, or more memory when there are so
 * many runs that a window would be a few places. */
static enum err make_windows(struct sorter *sorter, struct error *why)
{
    if (sorter->capacity / sorter->run_count < LEAST_WINDOW) {
        size_t capacity = sorter->run_count * LEAST_WINDOW;
        struct place *places = realloc(sorter->places, capacity * sizeof *places);
        if (!places)
            return no_memory(why);
        sorter->places = places;
        sorter->capacity = capacity;
    }
    if (!sorter->heap)
        sorter->heap = malloc(sorter->run_count * sizeof *sorter->heap);
    if (!sorter->heap)
        return no_memory(why);
    sorter->heap_count = 0;
    for (size_t i = 0; i < sorter->run_count; i++) {
        sorter->runs[i].next = sorter->runs[i].begin;
        sorter->runs[i].window = i * (sorter->capacity / sorter->run_count);
        enum err err = refill(sorter, &sorter->runs[i], why);
        if (err)
            return err;
        sorter->heap[sorter->heap_count++] = i;
    }
    return ERR_OK;
}

enum err sorter_finish(struct sorter *sorter, struct error *why)
{
    if (sorter->run_count == 0) {
        qsort(sorter->places, sorter->count, sizeof *sorter->places, compare);
        return ERR_OK;
    }
    enum err err = sorter->count ? spill(sorter, why) : ERR_OK;
    return err ? err : sorter_rewind(sorter, why);
}

enum err sorter_rewind(struct sorter *sorter, struct error *why)
{
    sorter->at = 0;
    if (sorter->run_count == 0)
        return ERR_OK;
    enum err err = make_windows(sorter, why);
    for (size_t i = sorter->heap_count; !err && i-- > 0;)
        sift_down(sorter, i);
    return err;
}

enum err sorter_next(struct sorter *sorter, struct place *out, bool *end, struct error *why)
{
    if (sorter->run_count == 0) {
        *end = sorter->at == sorter->count;
        if (!*end)
            *out = sorter->places[sorter->at++];
        return ERR_OK;
    }
    *end = sorter->heap_count == 0;
    if (*end)
        return ERR_OK;
    struct sorter_run *run = &sorter->runs[sorter->heap[0]];
    *out = *head(sorter, sorter->heap[0]);
    if (++run->used == run->count) {
        enum err err = refill(sorter, run, why);
        if (err)
            return err;
        if (run->count == 0)
            sorter->heap[0] = sorter->heap[--sorter->heap_count];
    }
    sift_down(sorter, 0);
    return ERR_OK;
}
