/* An SQLite database with two tables: `runs`, one row a run, and `queries`, one flat row a query.  All in
 * one transaction; a database that has other runs keeps them, and one of the same name too unless it is to be replaced. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/units.h"
#include "port/json_read.h"
#include "report/export/export.h"
#include "report/export/flat.h"
#include "rundir/summary.h"

enum { PATIENCE_MS = 30000 };

struct database {
    sqlite3 *db;
    sqlite3_stmt *insert;
    bool existed, committed;
};

static const char *type_of(enum flat_kind kind)
{
    return kind == FLAT_TEXT ? "TEXT" : kind == FLAT_NUMBER ? "REAL" : "INTEGER";
}

static const char *run_type(size_t column)
{
    enum json_field_type type = summary_index(column)->at.type;
    return type == FIELD_TEXT ? "TEXT" : type == FIELD_INTEGER ? "INTEGER" : "REAL";
}

static enum err told(const struct export *export, const struct database *database, int code,
                     struct error *why)
{
    code &= 0xFF;
    enum err err = code == SQLITE_FULL                               ? ERR_NO_SPACE
                   : code == SQLITE_BUSY || code == SQLITE_LOCKED    ? ERR_BUSY
                   : code == SQLITE_NOTADB || code == SQLITE_CORRUPT ? ERR_BAD_VALUE
                                                                     : ERR_IO;
    return err_set(why, err, "cannot write %s: %s", export->run->output,
                   database->db ? sqlite3_errmsg(database->db) : sqlite3_errstr(code));
}

/* ---- tables ---- */

static void add_tables(struct text *sql)
{
    text_add(sql, "CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY");
    for (size_t i = 0; i < SUMMARY_INDEXES; i++)
        text_addf(sql, ", %s %s", summary_index(i)->index_name, run_type(i));
    text_add(sql, ", summary TEXT); CREATE TABLE IF NOT EXISTS queries (");
    for (size_t i = 0; i < FLAT_COLUMNS; i++)
        text_addf(sql, "%s\"%s\" %s", i ? ", " : "", flat_name(i), type_of(flat_kind(i)));
    text_add(sql, "); CREATE INDEX IF NOT EXISTS queries_of_run ON queries (run)");
}

static void add_insert(struct text *sql)
{
    text_add(sql, "INSERT INTO queries (");
    for (size_t i = 0; i < FLAT_COLUMNS; i++)
        text_addf(sql, "%s\"%s\"", i ? ", " : "", flat_name(i));
    text_add(sql, ") VALUES (?");
    for (size_t i = 1; i < FLAT_COLUMNS; i++)
        text_add(sql, ", ?");
    text_add(sql, ")");
}

/* Another run of that name is lost only to who said so. */
static int has_run(sqlite3 *db, const char *name, bool *out)
{
    sqlite3_stmt *statement;
    int code =
        sqlite3_prepare_v2(db, "SELECT 1 FROM runs WHERE run = ? LIMIT 1", -1, &statement, NULL);
    if (!code)
        code = sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    if (!code)
        code = sqlite3_step(statement);
    *out = code == SQLITE_ROW;
    sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* One statement with the run's name; gives a code of SQLite. */
static int forget(sqlite3 *db, const char *sql, const char *name)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (!code)
        code = sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    if (!code)
        code = sqlite3_step(statement);
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int prepare(struct database *database, const struct export_run *run, bool *taken)
{
    struct text tables = {0}, insert = {0};
    const char *name = run->name;
    add_tables(&tables);
    add_insert(&insert);
    int code = tables.failed || insert.failed ? SQLITE_NOMEM : SQLITE_OK;
    if (!code)
        code = sqlite3_exec(database->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (!code)
        code = sqlite3_exec(database->db, text_get(&tables), NULL, NULL, NULL);
    if (!code)
        code = has_run(database->db, name, taken);
    *taken = *taken && !run->replace;
    if (!code && !*taken)
        code = forget(database->db, "DELETE FROM queries WHERE run = ?", name);
    if (!code && !*taken)
        code = forget(database->db, "DELETE FROM runs WHERE run = ?", name);
    if (!code)
        code = sqlite3_prepare_v2(database->db, text_get(&insert), -1, &database->insert, NULL);
    text_release(&tables);
    text_release(&insert);
    return code;
}

static enum err sqlite_begin(struct export *export, struct error *why)
{
    const char *path = export->run->output;
    bool taken = false;
    struct database *database = calloc(1, sizeof *database);
    if (!database)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    export->state = database;
    database->existed = access(path, F_OK) == 0;
    int code =
        sqlite3_open_v2(path, &database->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (!code)
        code = sqlite3_busy_timeout(database->db, PATIENCE_MS);
    if (!code)
        code = prepare(database, export->run, &taken);
    if (!code && taken)
        return err_set(why, ERR_BUSY,
                       "%s has a run '%s' already: --replace puts this one in its place, --name "
                       "NAME adds it under another",
                       path, export->run->name);
    return code ? told(export, database, code, why) : ERR_OK;
}

/* ---- rows ---- */

static int bind_flat(sqlite3_stmt *statement, int at, const struct flat_value *value)
{
    switch (value->kind) {
    case FLAT_TEXT:
        return sqlite3_bind_text(statement, at, value->text, -1, SQLITE_STATIC);
    case FLAT_NUMBER:
        return sqlite3_bind_double(statement, at, value->number);
    case FLAT_INTEGER:
        return sqlite3_bind_int64(statement, at, value->integer);
    case FLAT_TRUTH:
        return sqlite3_bind_int(statement, at, value->truth);
    case FLAT_NULL:
        break;
    }
    return sqlite3_bind_null(statement, at);
}

static enum err sqlite_record(struct export *export, const struct jv *record, struct error *why)
{
    struct database *database = export->state;
    struct flat_value row[FLAT_COLUMNS];
    int code = SQLITE_OK;
    flat_row(export->run, record, row);
    for (size_t i = 0; !code && i < FLAT_COLUMNS; i++)
        code = bind_flat(database->insert, (int)i + 1, &row[i]);
    if (!code && (code = sqlite3_step(database->insert)) == SQLITE_DONE)
        code = sqlite3_reset(database->insert);
    return code ? told(export, database, code, why) : ERR_OK;
}

static int bind_run(sqlite3_stmt *statement, int at, const struct summary_field *column,
                    const struct summary *summary)
{
    const char *text = summary_index_text(column, summary);
    double number = summary ? json_field_number(&column->at, summary) : UNKNOWN;
    if (text)
        return sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
    if (is_known(number) && column->at.type == FIELD_INTEGER)
        return sqlite3_bind_int64(statement, at, (int64_t)number);
    if (is_known(number))
        return sqlite3_bind_double(statement, at, number);
    return sqlite3_bind_null(statement, at);
}

static int put_run(const struct export *export, sqlite3 *db)
{
    struct text sql = {0}, summary = {0};
    sqlite3_stmt *statement = NULL;
    const struct export_run *run = export->run;
    int at = 1;
    text_add(&sql, "INSERT INTO runs (run");
    for (size_t i = 0; i < SUMMARY_INDEXES; i++)
        text_addf(&sql, ", %s", summary_index(i)->index_name);
    text_add(&sql, ", summary) VALUES (?");
    for (size_t i = 0; i <= SUMMARY_INDEXES; i++)
        text_add(&sql, ", ?");
    text_add(&sql, ")");
    bool failed = sql.failed || (run->summary && jv_print(run->summary->tree, &summary));
    int code = failed ? SQLITE_NOMEM : sqlite3_prepare_v2(db, text_get(&sql), -1, &statement, NULL);
    if (!code)
        code = sqlite3_bind_text(statement, at++, run->name, -1, SQLITE_STATIC);
    for (size_t i = 0; !code && i < SUMMARY_INDEXES; i++)
        code = bind_run(statement, at++, summary_index(i), run->summary);
    if (!code && run->summary)
        code = sqlite3_bind_text(statement, at, text_get(&summary), -1, SQLITE_STATIC);
    if (!code)
        code = sqlite3_step(statement);
    sqlite3_finalize(statement);
    text_release(&sql);
    text_release(&summary);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static enum err sqlite_end(struct export *export, struct error *why)
{
    struct database *database = export->state;
    int code = put_run(export, database->db);
    if (!code)
        code = sqlite3_exec(database->db, "COMMIT", NULL, NULL, NULL);
    database->committed = !code;
    return code ? told(export, database, code, why) : ERR_OK;
}

/* What was not committed is undone; a database that was made for nothing goes. */
static void sqlite_release(struct export *export)
{
    struct database *database = export->state;
    if (!database)
        return;
    sqlite3_finalize(database->insert);
    sqlite3_close(database->db);
    if (!database->existed && !database->committed)
        unlink(export->run->output);
    free(database);
}

const struct export_driver export_sqlite = {
    .name = "sqlite",
    .summary = "an SQLite database with the tables runs and queries; adds to one that is there",
    .makes_files = true,
    .begin = sqlite_begin,
    .record = sqlite_record,
    .end = sqlite_end,
    .release = sqlite_release,
};
