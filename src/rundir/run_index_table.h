/* Internal to the run index: what holds its rows.  That is an SQLite database, catalog.db or one in memory
 * (run_index_sqlite.c), or, without SQLite, an array (run_index_array.c). */
#ifndef IPW_RUNDIR_RUN_INDEX_TABLE_H
#define IPW_RUNDIR_RUN_INDEX_TABLE_H

#include "rundir/run_index.h"

/* A row to be written or deleted; owns its row and its summary. */
struct run_change {
    struct run_row *row; /* a table may take it, and leaves NULL */
    char *summary;       /* its JSON; or NULL */
    bool is_deleted;
    bool is_forced; /* also over a row of another time than: */
    int64_t before; /* written_at of the former row; INTEGER_UNKNOWN: none, or unknown */
};

struct row_table;

struct row_table_ops {
    /* Of each row id, written_at, state and created_at. */
    enum err (*known)(struct row_table *table, run_take_row *take, void *context,
                      struct error *why);
    enum err (*write)(struct row_table *table, struct run_change *changes, size_t count,
                      struct error *why);
    enum err (*select)(struct row_table *table, const struct run_query *query, run_take_row *take,
                       void *context, struct error *why);
    enum err (*count)(struct row_table *table, const struct run_query *query, size_t *out,
                      struct error *why);
    enum err (*texts)(struct row_table *table, enum run_column column, size_t limit,
                      void (*take)(void *context, const char *text), void *context,
                      struct error *why);
    uint64_t (*stamp)(struct row_table *table);
    void (*close)(struct row_table *table);
};

struct row_table {
    const struct row_table_ops *ops;
    bool keeps_summaries;
};

/* After sqlite_load, for one thread at a time.  A file that does not exist is created by the first write. */
enum row_access {
    ROW_SHARED,   /* of commands, which wait long for its lock */
    ROW_CONFINED, /* of the dashboard: short waits, and no links */
    ROW_READ_ONLY /* the same, for reading */
};
enum err row_table_open_file(const char *path, enum row_access mode, struct row_table **out,
                             struct error *why) MUST_USE;
struct row_table *row_table_open_memory(void);
struct row_table *row_table_open_array(void);

#endif
