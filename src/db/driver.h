/* The contract of a database: statements, rows and bulk load, and the tables, the same for all.  A driver is one module
 * that exports one `const struct db_driver`; db.c lists them.
 *
 * SQL is written once: parameters are $1, $2 ... with text values, identifiers are quoted, and only what the drivers
 * differ in (types, locks, roles) is asked of them.
 *
 * Ownership: a driver owns only what db->state points to, from open until close; values of a row live until its callback returns. */
#ifndef IPW_DB_DRIVER_H
#define IPW_DB_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct text;

enum db_type { DB_TEXT, DB_INTEGER, DB_REAL, DB_TRUTH, DB_BYTES, DB_TYPES };

struct db_value {
    enum db_type type;
    bool is_null;
    const char *bytes; /* of a text, with a NUL behind it, or of bytes */
    size_t length;
    int64_t integer; /* of an integer or a truth */
    double real;
};

static inline const char *db_text(const struct db_value *value)
{
    return value->is_null ? NULL : value->bytes;
}

struct db {
    const struct db_driver *driver;
    char shown[512]; /* the address for messages, without user name, password and options */
    void *state;
};

/* One row of a result; anything but ERR_OK ends it. */
typedef enum err db_take(void *context, const struct db_value *values, size_t count);

struct db_driver {
    const char *name;
    const char *types[DB_TYPES]; /* in CREATE TABLE */
    const char *begin;           /* of a transaction that writes */
    const char *begin_reading;   /* of one that sees one state of all tables */
    const char
        *lock; /* so that one process at a time writes the run $1; NULL: `begin` locked all */
    const char *lock_schema;       /* the same for the schema */
    const char *has_tables;        /* one row when the tables were made */
    const char *has_column;        /* one row when table $1 has the column $2 */
    const char *prepare, *publish; /* statements before and after tables are made; NULL: none */
    const char *become_owner; /* of the tables, for a transaction that changes them; NULL: none */
    const char *roles;        /* creates those of readers and writers; NULL: it has none */
    enum err (*open)(struct db *db, const char *address, bool create, struct error *why);
    enum err (*query)(struct db *db, const char *sql, const char *const *values, size_t count,
                      db_take *take, void *context, struct error *why);
    /* Rows of `width` values for table (columns), "table (\"a\", \"b\")". */
    enum err (*copy_begin)(struct db *db, const char *table, size_t width, struct error *why);
    enum err (*copy_row)(struct db *db, const struct db_value *values, struct error *why);
    enum err (*copy_end)(struct db *db, struct error *why);
    void (*close)(struct db *db); /* undoes what was not committed */
};

extern const struct db_driver db_postgres, db_sqlite;

/* One statement; values may be NULL, take too. */
enum err db_query(struct db *db, const char *sql, const char *const *values, size_t count,
                  db_take *take, void *context, struct error *why) MUST_USE;
enum err db_run(struct db *db, const char *sql, struct error *why) MUST_USE;
/* A lost connection has undone everything already. */
void db_roll_back(struct db *db);
/* Whether it gives a row. */
enum err db_exists(struct db *db, const char *sql, const char *const *values, size_t count,
                   bool *found, struct error *why) MUST_USE;

/* ---- the tables (db.c): one list, from which the statements of every database are made ---- */

enum db_table { DB_RUNS, DB_QUERIES, DB_FILES, DB_MIGRATIONS, DB_TABLES };

struct db_column {
    const char *name;
    enum db_type type;
};

const char *db_table_name(enum db_table table);
size_t db_column_count(enum db_table table);
struct db_column db_column(enum db_table table, size_t i);

/* The position of the first column of the run index in DB_RUNS, and of that of exports in DB_QUERIES. */
enum { DB_RUNS_FIGURES = 9, DB_QUERIES_EXPORTS = 1 };

/* "a", "b" ... */
void db_add_columns(enum db_table table, struct text *sql);

#endif
