/* A database of runs that a team shares: PostgreSQL, or SQLite in a file.  It has a row per run and per query with the
 * columns of record.def, for queries across runs; and the files of each run as they are, so that a run that is pulled
 * is the one that was pushed, to the last bit.  A run is pushed in one transaction, and only when it is new or has
 * changed.
 *
 * Ownership: db_open allocates what db_free frees; texts of a struct db_run live until the callback returns. */
#ifndef IPW_DB_DB_H
#define IPW_DB_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "rundir/run_copy.h"

struct db;
struct db_value;
struct json;

/* ---- addresses ---- */

/* postgres://[USER[:PASSWORD]@]HOST[:PORT]/NAME[?OPTIONS], postgresql://..., sqlite:///PATH. */
enum db_kind { DB_IS_NONE, DB_IS_POSTGRES, DB_IS_SQLITE };
enum db_kind db_address_kind(const char *address);
bool db_address_hide(const char *address); /* its password becomes a secret; false without one */
/* For messages: without user name, password and options; and to be kept: without password. */
void db_address_shown(const char *address, char *to, size_t size);
void db_address_kept(const char *address, char *to, size_t size);

/* ---- the schema ---- */

/* Creates the tables, or migrates those of an earlier version.  `roles`: creates the roles ipw_reader and ipw_writer,
 * too.  *from and *to are the versions of the schema before (0: none) and after.  ERR_UNSUPPORTED: a later version. */
enum err db_init(const char *address, bool roles, int *from, int *to, struct error *why) MUST_USE;

/* For writing, an earlier version of the schema is migrated; for reading it must be this one. */
enum err db_open(struct db **out, const char *address, bool writing, struct error *why) MUST_USE;
void db_free(struct db *db);
const char *db_shown(const struct db *db); /* the address */

/* ---- push ---- */

struct db_pushed {
    enum { DB_NEW, DB_SAME, DB_REPLACED } outcome;
    char id[RUN_ID_MAX];
    uint64_t queries, bytes;
};

/* All of it or nothing, of a sweep each of its runs; the run is not pending any more.  Any number of processes may push at once, the same run too. */
enum err db_push(struct db *db, const char *directory, struct db_pushed *out, struct error *why)
    MUST_USE;
/* The same of a run that was just measured: from before the first attempt until it succeeds, the run is pending. */
enum err db_push_measured(const char *address, const char *directory, struct db_pushed *out,
                          struct error *why) MUST_USE;

/* All runs of a folder that are pending, each to `address` or, if it is NULL, to the database of its marker.  *why is
 * NULL for one that succeeded. */
typedef void db_take_pushed(void *context, const char *directory, const struct db_pushed *pushed,
                            const struct error *why);
enum err db_push_pending(const char *folder, const char *address, db_take_pushed *take,
                         void *context, struct error *why) MUST_USE;

/* ---- reading ---- */

struct db_filter {
    const char *run; /* an id, its beginning (4 digits at least) or a name */
    const char *kind, *model, *host, *hardware, *dataset;
    const char *sweep;    /* its attempts */
    double since, before; /* of the start; UNKNOWN: any */
    unsigned limit;       /* the newest; 0: all */
};
#define DB_ANY_RUN ((struct db_filter){.since = UNKNOWN, .before = UNKNOWN})

struct db_run {
    const char *id, *name, *kind, *host, *digest;
    const char *sweep, *path; /* the sweep that it is an attempt of, and its place there; or NULL */
    double began_at, pushed_at, bytes;
    const struct db_value *figures; /* of the columns of the run index: summary_index(i) */
};

typedef enum err db_take_run(void *context, const struct db_run *run);

/* The newest first. */
enum err db_list(struct db *db, const struct db_filter *filter, db_take_run *take, void *context,
                 struct error *why) MUST_USE;

/* How many there are and when the last one was pushed: another answer, and the list is another. */
enum err db_stamp(struct db *db, double *count, double *pushed_at, struct error *why) MUST_USE;

/* Figure i: a text, or NULL; a number, or UNKNOWN. */
const char *db_run_text(const struct db_run *run, size_t i);
double db_run_number(const struct db_run *run, size_t i);
size_t db_figure(const char *name); /* by the name of its column */
/* All of it, as an object of what is being written. */
void db_run_to_json(const struct db_run *run, struct json *json);

/* ---- pull and prune ---- */

struct db_pulled {
    char directory[FILE_PATH_MAX];
    bool was_there; /* the same run, as it is in the database */
};

/* The run `id` into PARENT/NAME or, where another run has that name, PARENT/NAME_<id>; a sweep with its runs.
 * ERR_NOT_FOUND without it. */
enum err db_pull(struct db *db, const char *id, const char *parent, struct db_pulled *out,
                 struct error *why) MUST_USE;

/* Deletes a run, a sweep with its runs; ERR_NOT_FOUND without it. */
enum err db_delete(struct db *db, const char *id, struct error *why) MUST_USE;

#endif
