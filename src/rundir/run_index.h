/* The run index: one row per run of a folder, to be filtered, sorted and paged without reading the directories, which
 * it is derived from.  It is catalog.db in that folder, an SQLite database; where SQLite or a writable folder is
 * missing, the dashboard has the same table in memory.  Every open has a close. */
#ifndef IPW_RUNDIR_RUN_INDEX_H
#define IPW_RUNDIR_RUN_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "rundir/run_row.h"

struct run_index;
struct run_list;
struct summary;

/* ---- catalog.db, as written by commands; ERR_UNSUPPORTED without SQLite ---- */

/* Writes the row of one run, replacing an existing one; `summary` may be NULL. */
enum err run_index_put(const char *directory, const struct summary *summary, struct error *why)
    MUST_USE;

/* Deletes rows of runs whose directory no longer exists, and writes rows that are missing or differ from the summary;
 * an up-to-date index is not written, and none is created for no runs. */
enum err run_index_refresh(const char *parent, const struct run_list *list, struct error *why)
    MUST_USE;

/* ---- an index to ask ---- */

/* catalog.db in the folder `parent`, if it can be written; else, and for NULL, a table in memory, which begins with the
 * rows that catalog.db has.  catalog.db is created by the first row, and not through a link. */
struct run_index *run_index_open(const char *parent);
void run_index_close(struct run_index *index); /* NULL is allowed */

/* After an error of the functions below: whether another update may succeed.  A damaged catalog.db is set aside and
 * made again; with one that cannot be used otherwise, the index continues in memory. */
bool run_index_recover(struct run_index *index, enum err err);

/* Differs once rows may have changed, here or by another process. */
uint64_t run_index_stamp(struct run_index *index);

/* ---- updating it from all runs of its source, by one thread ----
 *
 * Rows are written in batches between reading directories, so that commands never wait long for the lock.  A row that
 * another process wrote since the update began is not replaced: it is newer. */

struct run_update;

/* *out is NULL after an error. */
enum err run_update_begin(struct run_index *index, struct run_update **out, struct error *why)
    MUST_USE;
/* Whether the row of this run has this time; the run then stays.  Otherwise the caller puts its row. */
bool run_update_keep(struct run_update *update, const char *id, int64_t written_at);
/* Copies what it keeps; `summary` may be NULL. */
void run_update_put(struct run_update *update, const struct run_row *row,
                    const struct summary *summary);
/* is_complete: deletes the rows of runs that were neither kept nor put.  Frees the update; *running: runs in progress.
 * Returns the first error of the index. */
enum err run_update_end(struct run_update *update, bool is_complete, size_t *running,
                        struct error *why) MUST_USE;

/* ---- asking ---- */

/* Which runs, in which order.  Zeroed: all that are listed, by name. */
struct run_query {
    const char *id;                 /* only this run, also an attempt of a sweep */
    const char *equal[ROW_COLUMNS]; /* of columns of text */
    const char *search;             /* part of one of RUN_SEARCHED, in upper or lower case */
    enum run_column sort;
    bool is_descending;
    const struct run_row *after; /* its id and its value of the column: only rows behind it */
    size_t limit;                /* 0: none */
    bool with_attempts;
    const enum run_column *columns; /* the only ones that the caller reads; NULL: all */
    size_t column_count;
};

/* The row is valid during the call, which must not use the index and should be quick: commands may wait for it. */
typedef void run_take_row(void *context, const struct run_row *row);

/* Unknown values come last in both directions; equal ones are ordered by id. */
enum err run_index_select(struct run_index *index, const struct run_query *query,
                          run_take_row *take, void *context, struct error *why) MUST_USE;
/* Of all pages: without regard to `after` and `limit`. */
enum err run_index_count(struct run_index *index, const struct run_query *query, size_t *out,
                         struct error *why) MUST_USE;
/* The different texts of a column of listed runs, sorted, at most `limit`. */
enum err run_index_texts(struct run_index *index, enum run_column column, size_t limit,
                         void (*take)(void *context, const char *text), void *context,
                         struct error *why) MUST_USE;

#endif
