/* The run index: catalog.db in the folder of the run directories, an SQLite database with one row per run for queries
 * across runs.  It is derived from the directories, updated if it is missing or stale, and rebuilt if it is damaged.  A
 * machine without SQLite has none (ERR_UNSUPPORTED).  No state. */
#ifndef IPW_RUNDIR_RUN_INDEX_H
#define IPW_RUNDIR_RUN_INDEX_H

#include <stdbool.h>

#include "core/err.h"

struct run_index; /* an index opened for reading */
struct run_list;
struct summary;

/* Writes the row of one run, replacing an existing one; `summary` may be NULL. */
enum err run_index_put(const char *directory, const struct summary *summary, struct error *why)
    MUST_USE;

/* Deletes rows of runs whose directory no longer exists, and rewrites rows that are missing or older than the summary;
 * an up-to-date index is not written. */
enum err run_index_refresh(const char *parent, const struct run_list *list, struct error *why)
    MUST_USE;

/* Looks up rows, which is much cheaper than reading the directories' summaries.  Opening fails if there is no index, or
 * one of another version. */
enum err run_index_open(const char *parent, struct run_index **out, struct error *why) MUST_USE;
void run_index_close(struct run_index *index); /* NULL is allowed */

/* The row of a run whose summary was written at that time: *out has the columns of the index, and its strings belong to
 * the index until the next call.  False if there is no row, or if it may be older than the summary. */
bool run_index_find(struct run_index *index, const char *name, double written_at,
                    struct summary *out);

/* ---- a table `runs` in any database: the columns of the index, with the caller's key ----
 *
 * After sqlite_load.  These functions return SQLite's codes; run_rows_failed converts one to an error. */

struct sqlite3;
struct sqlite3_stmt;

/* Opens or creates a database and begins a transaction; the caller closes *db, also after a failure. */
int run_rows_open(const char *path, struct sqlite3 **db);
/* Waits for a locked database for at most 30 s, or until a signal is pending (port/proc.h). */
int run_rows_wait(struct sqlite3 *db);
int run_rows_create(struct sqlite3 *db, const char *key);
int run_rows_put(struct sqlite3 *db, const char *key, const char *name,
                 const struct summary *summary);
enum err run_rows_failed(struct sqlite3 *db, const char *path, int code, struct error *why);

/* ---- one value ---- */

struct json_field;
const char *run_rows_type(const struct json_field *field); /* "TEXT" ... */
/* Binds the text if there is one, else the number if it is known. */
int run_rows_bind(struct sqlite3_stmt *statement, int at, const struct json_field *field,
                  const char *text, double number);

#endif
