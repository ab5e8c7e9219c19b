/* A database of runs that a team shares: PostgreSQL, or SQLite in a file.  It has a row per run and per query with the
 * columns of record.def, for queries across runs; and the files of each run, so that a pulled run is byte for byte the
 * one that was pushed.  A run is pushed in one transaction, and only when it is new or has changed.
 *
 * Ownership: db_open allocates what db_free frees; strings of a struct db_run are valid until the callback returns. */
#ifndef IPW_DB_DB_H
#define IPW_DB_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "rundir/run_copy.h"

struct db;
struct db_value;
struct result;

/* ---- addresses ---- */

/* postgres://[USER[:PASSWORD]@]HOST[:PORT]/NAME[?OPTIONS], postgresql://..., sqlite:///PATH. */
enum db_kind { DB_IS_NONE, DB_IS_POSTGRES, DB_IS_SQLITE };
enum db_kind db_address_kind(const char *address);
bool db_address_add_secret(const char *address); /* its password becomes a secret; false: none */
/* ERR_USAGE, without any part of a password, for an address that is neither, or that libpq would misread. */
enum err db_address_check(const char *address, struct error *why) MUST_USE;
/* For messages: without user name, password and options; for storage: without the password.  The caller frees them. */
char *db_address_display(const char *address);
char *db_address_without_password(const char *address);

/* ---- the schema ---- */

/* Creates the tables, or migrates those of an earlier version.  `roles`: also creates the roles ipw_reader and
 * ipw_writer.  *from, *to: schema versions before (0: none) and after.  ERR_UNSUPPORTED: it is newer. */
enum err db_init(const char *address, bool roles, int *from, int *to, struct error *why) MUST_USE;

/* For writing, an older schema is migrated; for reading, it must be current. */
enum err db_open(struct db **out, const char *address, bool writing, struct error *why) MUST_USE;
void db_free(struct db *db);
const char *db_shown(const struct db *db); /* the address for messages */

/* ---- push ---- */

struct db_pushed {
    enum { DB_NEW, DB_SAME, DB_REPLACED } outcome;
    char id[RUN_ID_MAX];
    uint64_t queries, bytes;
};

/* Pushes in one transaction, for a sweep one per run; clears the pending mark.  Processes may push concurrently. */
enum err db_push(struct db *db, const char *directory, struct db_pushed *out, struct error *why)
    MUST_USE;
/* Pushes a run that was just measured: it is marked as pending from before the first attempt until one succeeds. */
enum err db_push_measured(const char *address, const char *directory, struct db_pushed *out,
                          struct error *why) MUST_USE;

/* Pushes all pending runs of a folder, each to `address` or, if that is NULL, to the database recorded in its marker.
 * *why is NULL for each that succeeded. */
typedef void db_take_pushed(void *context, const char *directory, const struct db_pushed *pushed,
                            const struct error *why);
void db_push_pending(const char *folder, const char *address, db_take_pushed *take, void *context);

/* ---- reading ---- */

struct db_filter {
    const char *run; /* an id, the prefix of an id (at least 4 digits) or a name */
    const char *kind, *model, *host, *hardware, *dataset;
    const char *sweep;    /* attempts of this sweep */
    double since, before; /* bounds of the start time; UNKNOWN: none */
    unsigned limit;       /* only the newest; 0: all */
};
#define DB_ANY_RUN ((struct db_filter){.since = UNKNOWN, .before = UNKNOWN})

struct db_run {
    const char *id, *name, *kind, *host, *digest;
    const char *sweep, *path; /* the sweep that it is an attempt of, and its path there; or NULL */
    double began_at, pushed_at, bytes;
    const struct db_value *figures; /* columns of the run index: summary_index(i) */
};

typedef enum err db_take_run(void *context, const struct db_run *run);

/* Newest first. */
enum err db_list(struct db *db, const struct db_filter *filter, db_take_run *take, void *context,
                 struct error *why) MUST_USE;

/* Number of runs and time of the last push: if they have changed, so has the list. */
enum err db_stamp(struct db *db, double *count, double *pushed_at, struct error *why) MUST_USE;

/* A figure (enum summary_index) as text, or NULL; as a number, or UNKNOWN. */
const char *db_run_text(const struct db_run *run, size_t i);
double db_run_number(const struct db_run *run, size_t i);
/* Adds the whole run to the open list. */
void db_run_put(const struct db_run *run, struct result *result);

/* ---- pull and prune ---- */

struct db_pulled {
    char *directory; /* freed by the caller; NULL after an error */
    bool was_there;  /* the run directory already had the same content */
};

/* Writes run `id` to PARENT/NAME or, if another run has that name, to PARENT/NAME_<id>; a sweep with its runs.
 * ERR_NOT_FOUND: no such run. */
enum err db_pull(struct db *db, const char *id, const char *parent, struct db_pulled *out,
                 struct error *why) MUST_USE;

/* Deletes a run, or a sweep with its runs; ERR_NOT_FOUND: no such run. */
enum err db_delete(struct db *db, const char *id, struct error *why) MUST_USE;

#endif
