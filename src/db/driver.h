/* The contract of a database driver: statements, rows and bulk load; and the tables, which all drivers share.  A driver
 * is one module that exports one `const struct db_driver`; db.c lists them.
 *
 * SQL is written once: parameters are $1, $2 ... with text values, identifiers are quoted, and drivers supply only what
 * differs (types, locks, roles).
 *
 * Ownership: a driver owns only what db->state points to, from open until close; values of a row live until its callback returns. */
#ifndef IPW_DB_DRIVER_H
#define IPW_DB_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct text;

enum db_type { DB_TEXT, DB_INTEGER, DB_REAL, DB_BOOLEAN, DB_BYTES, DB_TYPES };

struct db_value {
    enum db_type type;
    bool is_null;
    const char *bytes; /* text, NUL-terminated, or bytes */
    size_t length;
    int64_t integer; /* integer or boolean */
    double real;
};

static inline const char *db_text(const struct db_value *value)
{
    return value->is_null ? NULL : value->bytes;
}

struct db {
    const struct db_driver *driver;
    char *shown; /* the address for messages, without user name, password and options */
    void *state;
};

/* Called for each row of a result; an error ends it. */
typedef enum err db_take(void *context, const struct db_value *values, size_t count);

struct db_driver {
    const char *name;
    const char *types[DB_TYPES]; /* type names for CREATE TABLE */
    const char *begin;           /* starts a transaction that writes */
    const char *begin_snapshot;  /* starts one with a consistent snapshot of all tables */
    const char *lock;        /* serializes writers of run $1; NULL: `begin` locks the database */
    const char *lock_schema; /* serializes writers of the schema */
    const char *has_tables;  /* returns one row if the tables exist */
    const char *has_column;  /* returns one row if table $1 has column $2 */
    const char *before_create, *after_create; /* run around table creation; NULL: none */
    const char *set_owner_role; /* assumes the tables' owner role, to alter them; NULL: none */
    const char *roles;          /* creates the reader and writer roles; NULL: not supported */
    enum err (*open)(struct db *db, const char *address, bool create, struct error *why);
    enum err (*query)(struct db *db, const char *sql, const char *const *values, size_t count,
                      db_take *take, void *context, struct error *why);
    /* Rows of `width` values for "table (\"a\", \"b\")". */
    enum err (*copy_begin)(struct db *db, const char *table, size_t width, struct error *why);
    enum err (*copy_row)(struct db *db, const struct db_value *values, struct error *why);
    enum err (*copy_end)(struct db *db, struct error *why);
    void (*close)(struct db *db); /* rolls back what was not committed */
};

extern const struct db_driver db_postgres, db_sqlite;

/* One statement; values and take may be NULL. */
enum err db_query(struct db *db, const char *sql, const char *const *values, size_t count,
                  db_take *take, void *context, struct error *why) MUST_USE;
enum err db_run(struct db *db, const char *sql, struct error *why) MUST_USE;
/* A lost connection has already been rolled back. */
void db_roll_back(struct db *db);
/* Whether the query returns a row. */
enum err db_exists(struct db *db, const char *sql, const char *const *values, size_t count,
                   bool *found, struct error *why) MUST_USE;

/* ---- the tables (db.c): one list, from which the statements for every database are generated ---- */

enum db_table { DB_RUNS, DB_QUERIES, DB_FILES, DB_MIGRATIONS, DB_TABLES };

struct db_column {
    const char *name;
    enum db_type type;
};

const char *db_table_name(enum db_table table);
size_t db_column_count(enum db_table table);
struct db_column db_column(enum db_table table, size_t i);

/* Index of the first column of the run index in DB_RUNS, and of the first export column in DB_QUERIES. */
enum { DB_RUNS_FIGURES = 9, DB_QUERIES_EXPORTS = 1 };

/* "a", "b" ... */
void db_add_columns(enum db_table table, struct text *sql);

#endif
