/* Places of lines, sorted in bounded memory: what does not fit waits, sorted, in a scratch file.
 * The caller owns the struct: sorter_init, any number of sorter_add, sorter_finish, then sorter_next
 * until it gives no more, and after sorter_rewind all of them again; sorter_release in any case. */
#ifndef IPW_RUNDIR_JOURNAL_SORTER_H
#define IPW_RUNDIR_JOURNAL_SORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct place {
    uint64_t order[3]; /* sorted by these, the first counting most */
    uint64_t length;   /* carried along */
};

struct sorter_run; /* places in the scratch file that are in order */

struct sorter {
    struct place *places; /* being collected; while merging, the window of each run */
    size_t count, capacity;
    size_t at; /* the next to give when everything fits */
    struct sorter_run *runs;
    size_t run_count, run_capacity;
    size_t *heap; /* runs, the one with the least place first */
    size_t heap_count;
    uint64_t written; /* places in the scratch file */
    int fd;           /* of the scratch file; -1 while none is needed */
};

/* `capacity` places are held in memory at once. */
enum err sorter_init(struct sorter *sorter, size_t capacity, struct error *why) MUST_USE;
enum err sorter_add(struct sorter *sorter, const struct place *place, struct error *why) MUST_USE;
enum err sorter_finish(struct sorter *sorter, struct error *why) MUST_USE;
enum err sorter_next(struct sorter *sorter, struct place *out, bool *end, struct error *why)
    MUST_USE;
enum err sorter_rewind(struct sorter *sorter, struct error *why) MUST_USE;
void sorter_release(struct sorter *sorter);

#endif
