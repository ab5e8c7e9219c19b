/* A table `runs` in any SQLite database: the columns of the run index, with the caller's key; and what everyone needs
 * who writes one.  After sqlite_load.  Functions that return int return SQLite's codes; run_rows_failed converts one to
 * an error.  No state. */
#ifndef IPW_RUNDIR_RUN_ROWS_H
#define IPW_RUNDIR_RUN_ROWS_H

#include <stdbool.h>

#include "core/err.h"

struct json_field;
struct sqlite3;
struct sqlite3_stmt;
struct summary;

/* Opens or creates a database and begins a transaction; the caller closes *db, also after a failure. */
int run_rows_open(const char *path, struct sqlite3 **db);
/* Waits for a locked database for at most 30 s (3 s), or until a signal is pending (port/proc.h). */
int run_rows_wait(struct sqlite3 *db, bool briefly);
int run_rows_create(struct sqlite3 *db, const char *key);
int run_rows_put(struct sqlite3 *db, const char *key, const char *name,
                 const struct summary *summary);
enum err run_rows_failed(struct sqlite3 *db, const char *path, int code, struct error *why);

/* ---- one value ---- */

const char *run_rows_type(const struct json_field *field); /* "TEXT" ... */
/* Binds the text if there is one, else the number if it is known. */
int run_rows_bind(struct sqlite3_stmt *statement, int at, const struct json_field *field,
                  const char *text, double number);
/* The JSON of a summary, as its file has it; the caller frees it. */
char *run_rows_summary(const struct summary *summary);

#endif
