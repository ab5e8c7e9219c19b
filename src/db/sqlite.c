/* SQLite: the same tables in a file.  A writing transaction locks the whole database from its start, so that concurrent
 * writers wait there. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "db/driver.h"
#include "port/file.h"
#include "port/sqlite.h"
#include "rundir/run_rows.h"

enum { COLUMNS_MAX = 160 };

struct session {
    sqlite3 *db;
    sqlite3_stmt *insert;
    size_t width;
};

static enum err result(const struct db *db, int code, struct error *why)
{
    const struct session *session = db->state;
    return code ? run_rows_failed(session->db, db->shown, code, why) : ERR_OK;
}

/* sqlite:///absolute and sqlite://relative: the path follows the two slashes. */
static enum err sqlite_connect(struct db *db, const char *address, bool create, struct error *why)
{
    const char *path = strstr(address, "://") + 3;
    struct session *session = XNEW(session);
    db->state = session;
    enum err err = sqlite_load(why);
    if (!err)
        err = sqlite_check_path(path, why);
    if (err)
        return err;
    if (!*path)
        return err_set(why, ERR_USAGE, "missing path in '%s': use sqlite:///PATH", address);
    if (!create && access(path, F_OK))
        return err_set(why, ERR_NOT_FOUND, "no database %s: `ipw db init` creates it%s", path,
                       path[0] == '/' ? " (sqlite://PATH is a relative path)" : "");
    if (create)
        file_create(path);
    int code = sqlite.open_v2(path, &session->db,
                              SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0), NULL);
    if (!code)
        code = run_rows_wait(session->db, false);
    return result(db, code, why);
}

static void sqlite_disconnect(struct db *db)
{
    struct session *session = db->state;
    if (session->db) {
        sqlite.finalize(session->insert);
        sqlite.close(session->db);
    }
    free(session);
    db->state = NULL;
}

/* ---- results ---- */

static struct db_value read_value(sqlite3_stmt *statement, int column)
{
    struct db_value value = {.bytes = ""};
    switch (sqlite.column_type(statement, column)) {
    case SQLITE_NULL:
        value.is_null = true;
        break;
    case SQLITE_INTEGER:
        value.type = DB_INTEGER;
        value.integer = sqlite.column_int64(statement, column);
        break;
    case SQLITE_FLOAT:
        value.type = DB_REAL;
        value.real = sqlite.column_double(statement, column);
        break;
    case SQLITE_BLOB:
        value.type = DB_BYTES;
        value.bytes = sqlite.column_blob(statement, column);
        value.length = (size_t)sqlite.column_bytes(statement, column);
        break;
    default:
        value.type = DB_TEXT;
        value.bytes = (const char *)sqlite.column_text(statement, column);
        value.length = (size_t)sqlite.column_bytes(statement, column);
    }
    return value;
}

static int bind_values(sqlite3_stmt *statement, const char *const *values, size_t count)
{
    int code = SQLITE_OK;
    for (size_t i = 0; !code && i < count; i++) {
        char name[16];
        chars_format(name, "$%zu", i + 1);
        int at = sqlite.bind_parameter_index(statement, name);
        if (at)
            code = values[i] ? sqlite.bind_text(statement, at, values[i], -1, SQLITE_STATIC)
                             : sqlite.bind_null(statement, at);
    }
    return code;
}

static enum err sqlite_query(struct db *db, const char *sql, const char *const *values,
                             size_t count, db_take *take, void *context, struct error *why)
{
    const struct session *session = db->state;
    sqlite3_stmt *statement = NULL;
    struct db_value row[COLUMNS_MAX];
    enum err err = ERR_OK;
    if (!take && !count)
        return result(db, sqlite.exec(session->db, sql, NULL, NULL, NULL), why);
    int code = sqlite.prepare_v2(session->db, sql, -1, &statement, NULL);
    if (!code)
        code = bind_values(statement, values, count);
    while (!code && !err && (code = sqlite.step(statement)) == SQLITE_ROW) {
        int width = sqlite.column_count(statement);
        for (int i = 0; i < width && i < COLUMNS_MAX; i++)
            row[i] = read_value(statement, i);
        err = take ? err_explain(why, take(context, row, (size_t)width)) : ERR_OK;
        code = SQLITE_OK;
    }
    if (!err)
        err = result(db, code == SQLITE_DONE ? SQLITE_OK : code, why);
    sqlite.finalize(statement);
    return err;
}

/* ---- bulk load ---- */

static enum err sqlite_copy_begin(struct db *db, const char *table, size_t width, struct error *why)
{
    struct session *session = db->state;
    struct text sql = {0};
    text_addf(&sql, "INSERT INTO %s VALUES (?", table);
    for (size_t i = 1; i < width; i++)
        text_add(&sql, ", ?");
    text_add(&sql, ")");
    session->width = width;
    sqlite.finalize(session->insert);
    session->insert = NULL;
    int code = sql.failed
                   ? SQLITE_NOMEM
                   : sqlite.prepare_v2(session->db, text_get(&sql), -1, &session->insert, NULL);
    text_release(&sql);
    return result(db, code, why);
}

static int bind_value(sqlite3_stmt *statement, int at, const struct db_value *value)
{
    if (value->is_null)
        return sqlite.bind_null(statement, at);
    if (value->type == DB_REAL)
        return sqlite.bind_double(statement, at, value->real);
    if (value->type == DB_BYTES)
        return sqlite.bind_blob64(statement, at, value->bytes, value->length, SQLITE_STATIC);
    if (value->type == DB_TEXT)
        return sqlite.bind_text64(statement, at, value->bytes, value->length, SQLITE_STATIC,
                                  SQLITE_UTF8);
    return sqlite.bind_int64(statement, at, value->integer);
}

static enum err sqlite_copy_row(struct db *db, const struct db_value *values, struct error *why)
{
    struct session *session = db->state;
    int code = SQLITE_OK;
    for (size_t i = 0; !code && i < session->width; i++)
        code = bind_value(session->insert, (int)i + 1, &values[i]);
    if (!code && (code = sqlite.step(session->insert)) == SQLITE_DONE)
        code = sqlite.reset(session->insert);
    return result(db, code, why);
}

static enum err sqlite_copy_end(struct db *db, struct error *why)
{
    (void)db, (void)why;
    return ERR_OK;
}

const struct db_driver db_sqlite = {
    .name = "SQLite",
    .types = {"TEXT", "INTEGER", "REAL", "INTEGER", "BLOB"},
    .begin = "BEGIN IMMEDIATE",
    .begin_snapshot = "BEGIN",
    .has_tables = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations'",
    .has_column = "SELECT 1 FROM pragma_table_info($1) WHERE name = $2",
    .open = sqlite_connect,
    .query = sqlite_query,
    .copy_begin = sqlite_copy_begin,
    .copy_row = sqlite_copy_row,
    .copy_end = sqlite_copy_end,
    .close = sqlite_disconnect,
};
