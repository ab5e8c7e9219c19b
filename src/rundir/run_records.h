/* The records of a run directory, one after the other: from its journal, or from the Arrow files of one that has
 * none.  run_records_open opens what run_records_close frees. */
#ifndef IPW_RUNDIR_RUN_RECORDS_H
#define IPW_RUNDIR_RUN_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "rundir/journal.h"
#include "rundir/run_path.h"

struct run_records {
    const char *directory;
    struct journal_index *index; /* NULL: Arrow files */
    struct run_shards shards;
    uint64_t damaged;       /* lines of the journal that the last pass left out */
    uint64_t first_damaged; /* the first of them, from 1 */
    double format;          /* of the journal; UNKNOWN without one */
};

/* ERR_NOT_FOUND: no such directory, or no run in it. */
enum err run_records_open(const char *directory, struct run_records *out, struct error *why)
    MUST_USE;
void run_records_close(struct run_records *records);

/* May be called several times.  Stops when take returns anything but ERR_OK, and returns that. */
enum err run_records_give(struct run_records *records, journal_take *take, void *context,
                          struct error *why) MUST_USE;

#endif
