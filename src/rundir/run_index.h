/* The run index: catalog.db in the folder of the run directories, an SQLite database with one row per run for
 * queries across runs.  Everything in it comes from the directories: it is updated when it is missing
 * or stale.  A build without SQLite has none (ERR_UNSUPPORTED).  Nothing here keeps state. */
#ifndef IPW_RUNDIR_RUN_INDEX_H
#define IPW_RUNDIR_RUN_INDEX_H

#include <stdbool.h>

#include "core/err.h"

struct run_index; /* that of a folder, for reading */
struct run_list;
struct summary;

/* The row of one run, in place of what was there; `summary` may be NULL. */
enum err run_index_put(const char *directory, const struct summary *summary, struct error *why)
    MUST_USE;

/* Rows of runs whose directory is gone are deleted, those that are missing or older than the summary are written
 * again; an index that is up to date is not touched. */
enum err run_index_refresh(const char *parent, const struct run_list *list, struct error *why)
    MUST_USE;

/* Looks rows up, which costs far less than the directories' own summaries.  Opening fails where there is no index, or one of
 * another version. */
enum err run_index_open(const char *parent, struct run_index **out, struct error *why) MUST_USE;
void run_index_close(struct run_index *index); /* NULL is allowed */

/* The figures of the row of a run whose summary was written at that time: *out has those that the index has, and its
 * texts belong to the index until the next call.  False without a row, and for one that may be older than the summary. */
bool run_index_find(struct run_index *index, const char *name, double written_at,
                    struct summary *out);

/* ---- a table `runs` in any database: the columns of the index, under a key of the caller's ----
 *
 * Only where SQLite is.  These return its codes; run_rows_failed says what one means. */

struct sqlite3;
struct sqlite3_stmt;

/* Opens or makes a database and begins a transaction; the caller closes what is in *db, also after a failure. */
int run_rows_open(const char *path, struct sqlite3 **db);
int run_rows_create(struct sqlite3 *db, const char *key);
int run_rows_put(struct sqlite3 *db, const char *key, const char *name,
                 const struct summary *summary);
enum err run_rows_failed(struct sqlite3 *db, const char *path, int code, struct error *why);

/* ---- one value ---- */

struct json_field;
const char *run_rows_type(const struct json_field *field); /* "TEXT" ... */
/* The text where there is one, else the number if it is known. */
int run_rows_bind(struct sqlite3_stmt *statement, int at, const struct json_field *field,
                  const char *text, double number);

#endif
