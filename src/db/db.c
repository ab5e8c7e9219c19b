/* Connections, statements, and the schema.
 *
 * `runs` and `queries` have the columns of the run index and of flat exports, which record.def lists, and `files` the
 * bytes of each run.  A new column of record.def is added to tables that lack it, without a new schema version: writers
 * name the columns that they fill.  Any other change is a numbered migration; a schema newer than this ipw is refused.
 *
 * No foreign keys: a run is written and deleted in one transaction, and checking each of a million rows would cost as
 * much as loading it. */
#include "db/db.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "db/driver.h"
#include "rundir/record.h"
#include "rundir/summary.h"

/* ---- connections ---- */

static void disconnect(struct db *db)
{
    if (db->driver && db->state)
        db->driver->close(db);
    free(db->shown);
    *db = (struct db){0};
}

static enum err connect_to(struct db *db, const char *address, bool create, struct error *why)
{
    static const struct db_driver *const DRIVERS[] = {
        [DB_IS_NONE] = NULL, [DB_IS_POSTGRES] = &db_postgres, [DB_IS_SQLITE] = &db_sqlite};
    *db = (struct db){.driver = DRIVERS[db_address_kind(address)]};
    db_address_add_secret(address);
    enum err err = db_address_check(address, why);
    if (err)
        return err;
    db->shown = db_address_display(address);
    err = db->driver->open(db, address, create, why);
    if (err)
        disconnect(db);
    return err;
}

/* ---- statements ---- */

enum err db_query(struct db *db, const char *sql, const char *const *values, size_t count,
                  db_take *take, void *context, struct error *why)
{
    return db->driver->query(db, sql, values, count, take, context, why);
}

enum err db_run(struct db *db, const char *sql, struct error *why)
{
    return db_query(db, sql, NULL, 0, NULL, NULL, why);
}

void db_roll_back(struct db *db)
{
    struct error ignored;
    (void)!db_run(db, "ROLLBACK", &ignored);
}

struct first {
    bool found;
    double number;
};

static double number_in(const struct db_value *value)
{
    if (value->type == DB_REAL)
        return value->real;
    return value->type == DB_TEXT ? strtod(value->bytes, NULL) : (double)value->integer;
}

static enum err take_first(void *context, const struct db_value *values, size_t count)
{
    struct first *first = context;
    if (!first->found && count && !values->is_null)
        first->number = number_in(values);
    first->found = true;
    return ERR_OK;
}

enum err db_exists(struct db *db, const char *sql, const char *const *values, size_t count,
                   bool *found, struct error *why)
{
    struct first first = {.number = UNKNOWN};
    enum err err = db_query(db, sql, values, count, take_first, &first, why);
    *found = first.found;
    return err;
}

static enum err read_number(struct db *db, const char *sql, const char *const *values, size_t count,
                            double *out, struct error *why)
{
    struct first first = {.number = UNKNOWN};
    enum err err = db_query(db, sql, values, count, take_first, &first, why);
    *out = first.number;
    return err;
}

/* ---- the tables ---- */

static const struct db_column RUNS[] = {
    {"id", DB_TEXT},     {"name", DB_TEXT},     {"kind", DB_TEXT},      {"host", DB_TEXT},
    {"digest", DB_TEXT}, {"bytes", DB_INTEGER}, {"format", DB_INTEGER}, {"pushed", DB_REAL},
    {"began", DB_REAL}, /* NOT NULL, unlike the index's `started`: lists are ordered by it */
    /* then the columns of the run index */
};
static const struct db_column RUNS_LAST[] = {
    {"header", DB_TEXT}, {"summary", DB_TEXT}, {"sweep", DB_TEXT}, {"path", DB_TEXT}};
static const struct db_column QUERIES[] = {{"run_id", DB_TEXT} /* then those of exports */};
static const struct db_column FILES[] = {
    {"run_id", DB_TEXT},  {"file", DB_INTEGER},       {"piece", DB_INTEGER}, {"name", DB_TEXT},
    {"size", DB_INTEGER}, {"changed_ns", DB_INTEGER}, {"content", DB_BYTES},
};
static const struct db_column MIGRATIONS[] = {
    {"version", DB_INTEGER}, {"about", DB_TEXT}, {"applied", DB_REAL}, {"ipw", DB_TEXT}};

static const struct {
    const char *name;
    const struct db_column *first;
    size_t first_count, derived;
    const struct db_column *last;
    size_t last_count;
    const char *key;
} TABLES[DB_TABLES] = {
#define LIST(columns) columns, sizeof columns / sizeof *(columns)
    [DB_RUNS] = {"runs", LIST(RUNS), SUMMARY_INDEXES, LIST(RUNS_LAST), "id"},
    [DB_QUERIES] = {"queries", LIST(QUERIES), RECORD_EXPORTS, NULL, 0, NULL},
    [DB_FILES] = {"files", LIST(FILES), 0, NULL, 0, "run_id, file, piece"},
    [DB_MIGRATIONS] = {"migrations", LIST(MIGRATIONS), 0, NULL, 0, "version"},
#undef LIST
};
_Static_assert(COUNT_OF(RUNS) == DB_RUNS_FIGURES, "the figures follow");
_Static_assert(COUNT_OF(QUERIES) == DB_QUERIES_EXPORTS, "the exports follow");

/* The migrations, in SQL that all databases support.  Columns of older tables are renamed, and missing ones added, before
 * any statement. */
static const struct {
    const char *about, *sql; /* NULL: a column is renamed */
    const char *table, *from, *to;
} MIGRATION_STEPS[] = {
    {"tables",
     "CREATE INDEX runs_by_time ON runs (began, id); CREATE INDEX runs_by_name ON runs (name); "
     "CREATE INDEX runs_by_model ON runs (model, began, id); "
     "CREATE INDEX runs_by_host ON runs (host, began, id); "
     "CREATE INDEX runs_by_kind ON runs (kind, began, id); "
     "CREATE INDEX queries_of_run ON queries (run_id)",
     NULL, NULL, NULL},
    {"runs of sweeps", "CREATE INDEX runs_of_sweep ON runs (sweep)", NULL, NULL, NULL},
    {"company is concurrency", NULL, "queries", "company", "concurrency"},
};
enum { SCHEMA_VERSION = COUNT_OF(MIGRATION_STEPS) };

const char *db_table_name(enum db_table table)
{
    return TABLES[table].name;
}

size_t db_column_count(enum db_table table)
{
    return TABLES[table].first_count + TABLES[table].derived + TABLES[table].last_count;
}

static enum db_type type_of(const struct json_field *field)
{
    switch (field->type) {
    case FIELD_NUMBER:
        return DB_REAL;
    case FIELD_INTEGER:
    case FIELD_INTEGRAL:
        return DB_INTEGER;
    case FIELD_BOOL:
        return DB_BOOLEAN;
    default:
        return DB_TEXT;
    }
}

struct db_column db_column(enum db_table table, size_t i)
{
    if (i < TABLES[table].first_count)
        return TABLES[table].first[i];
    i -= TABLES[table].first_count;
    if (i >= TABLES[table].derived)
        return TABLES[table].last[i - TABLES[table].derived];
    if (table == DB_RUNS)
        return (struct db_column){summary_index(i)->index_name, type_of(&summary_index(i)->at)};
    return (struct db_column){record_export(i)->export_name, type_of(&record_export(i)->at)};
}

void db_add_columns(enum db_table table, struct text *sql)
{
    for (size_t i = 0; i < db_column_count(table); i++)
        text_addf(sql, "%s\"%s\"", i ? ", " : "", db_column(table, i).name);
}

/* ---- creating and migrating ---- */

static enum err run_text(struct db *db, struct text *sql, struct error *why)
{
    enum err err = db_run(db, text_get(sql), why);
    text_release(sql);
    return err;
}

static enum err create_table(struct db *db, enum db_table table, struct error *why)
{
    struct text sql = {0};
    text_addf(&sql, "CREATE TABLE IF NOT EXISTS %s (", db_table_name(table));
    for (size_t i = 0; i < db_column_count(table); i++) {
        const struct db_column column = db_column(table, i);
        text_addf(&sql, "%s\"%s\" %s", i ? ", " : "", column.name, db->driver->types[column.type]);
    }
    if (TABLES[table].key)
        text_addf(&sql, ", PRIMARY KEY (%s)", TABLES[table].key);
    text_add(&sql, ")");
    return run_text(db, &sql, why);
}

static enum err rename_column(struct db *db, int version, struct error *why)
{
    const char *table = MIGRATION_STEPS[version - 1].table;
    const char *from = MIGRATION_STEPS[version - 1].from;
    struct text sql = {0};
    if (!table)
        return ERR_OK;
    text_addf(&sql, "ALTER TABLE %s RENAME COLUMN \"%s\" TO \"%s\"", table, from,
              MIGRATION_STEPS[version - 1].to);
    return run_text(db, &sql, why);
}

static enum err add_missing_columns(struct db *db, enum db_table table, struct error *why)
{
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < db_column_count(table); i++) {
        const struct db_column column = db_column(table, i);
        const char *values[] = {db_table_name(table), column.name};
        bool found;
        struct text sql = {0};
        err = db_exists(db, db->driver->has_column, values, 2, &found, why);
        if (err || found)
            continue;
        text_addf(&sql, "ALTER TABLE %s ADD COLUMN \"%s\" %s", values[0], column.name,
                  db->driver->types[column.type]);
        err = run_text(db, &sql, why);
    }
    return err;
}

static enum err apply_migration(struct db *db, int version, struct error *why)
{
    char number[16], now[32];
    chars_format(number, "%d", version);
    chars_format(now, "%.6f", (double)clock_wall() * 1e-9);
    const char *values[] = {number, MIGRATION_STEPS[version - 1].about, now, IPW_VERSION};
    const char *sql = MIGRATION_STEPS[version - 1].sql;
    enum err err = sql ? db_run(db, sql, why) : ERR_OK;
    return err ? err
               : db_query(db,
                          "INSERT INTO migrations (version, about, applied, ipw) "
                          "VALUES ($1, $2, $3, $4)",
                          values, 4, NULL, NULL, why);
}

/* 0 if there are no tables. */
static enum err read_version(struct db *db, int *version, struct error *why)
{
    bool found;
    double number = 0;
    enum err err = db_exists(db, db->driver->has_tables, NULL, 0, &found, why);
    if (!err && found)
        err = read_number(db, "SELECT max(version) FROM migrations", NULL, 0, &number, why);
    *version = number > 0 ? (int)number : 0;
    if (!err && *version > SCHEMA_VERSION)
        err = err_set(why, ERR_UNSUPPORTED,
                      "%s has schema version %d, this ipw supports up to %d: install a newer one",
                      db->shown, *version, SCHEMA_VERSION);
    return err;
}

static enum err change_schema(struct db *db, int from, struct error *why)
{
    enum err err = ERR_OK;
    if (!from && db->driver->before_create)
        err = db_run(db, db->driver->before_create, why);
    else if (from && db->driver->set_owner_role)
        err = db_query(db, db->driver->set_owner_role, NULL, 0, NULL, NULL, why);
    for (int version = from + 1; !err && from && version <= SCHEMA_VERSION; version++)
        err = rename_column(db, version, why);
    for (int table = 0; !err && table < DB_TABLES; table++)
        err = create_table(db, (enum db_table)table, why);
    for (int table = 0; !err && from && table < DB_TABLES; table++)
        err = add_missing_columns(db, (enum db_table)table, why);
    for (int version = from + 1; !err && version <= SCHEMA_VERSION; version++)
        err = apply_migration(db, version, why);
    if (!err && !from && db->driver->after_create)
        err = db_run(db, db->driver->after_create, why);
    return err;
}

static enum err migrate(struct db *db, int *from, int *to, struct error *why)
{
    *to = SCHEMA_VERSION;
    enum err err = db_run(db, db->driver->begin, why);
    if (!err && db->driver->lock_schema)
        err = db_run(db, db->driver->lock_schema, why);
    if (!err)
        err = read_version(db, from, why);
    if (!err)
        err = change_schema(db, *from, why);
    return err ? err : db_run(db, "COMMIT", why);
}

/* Whether the table has all columns. */
static bool is_complete(struct db *db, enum db_table table)
{
    struct text sql = {0};
    text_add(&sql, "SELECT ");
    db_add_columns(table, &sql);
    text_addf(&sql, " FROM %s LIMIT 0", db_table_name(table));
    return run_text(db, &sql, NULL) == ERR_OK;
}

static enum err check_schema(struct db *db, bool *is_older, struct error *why)
{
    int version = 0;
    enum err err = read_version(db, &version, why);
    if (!err && !version)
        err = err_set(why, ERR_NOT_FOUND, "%s has no tables of ipw: run `ipw db init` first",
                      db->shown);
    *is_older = !err && (version < SCHEMA_VERSION || !is_complete(db, DB_RUNS) ||
                         !is_complete(db, DB_QUERIES) || !is_complete(db, DB_FILES));
    return err;
}

/* ---- opening ---- */

enum err db_init(const char *address, bool roles, int *from, int *to, struct error *why)
{
    struct db db;
    enum err err = connect_to(&db, address, true, why);
    if (err)
        return err;
    if (roles && !db.driver->roles)
        err = err_set(why, ERR_USAGE, "%s has no roles: omit --roles", db.driver->name);
    if (!err)
        err = migrate(&db, from, to, why);
    if (!err && roles)
        err = db_run(&db, db.driver->roles, why);
    disconnect(&db);
    return err;
}

enum err db_open(struct db **out, const char *address, bool writing, struct error *why)
{
    bool is_older = false;
    int from, to;
    struct db *db = XNEW(db);
    enum err err = connect_to(db, address, false, why);
    if (!err)
        err = check_schema(db, &is_older, why);
    if (!err && is_older && writing)
        err = migrate(db, &from, &to, why);
    else if (!err && is_older)
        err = err_set(why, ERR_UNSUPPORTED,
                      "%s has an earlier schema: a writer must run `ipw db init` once", db->shown);
    *out = err ? NULL : db;
    if (err)
        db_free(db);
    return err;
}

void db_free(struct db *db)
{
    if (db)
        disconnect(db);
    free(db);
}

const char *db_shown(const struct db *db)
{
    return db->shown;
}
