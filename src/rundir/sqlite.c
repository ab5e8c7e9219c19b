/* The catalogue: catalog.db beside the run directories, with one row a run.  Nothing is kept of the
 * records but what the summary says of them.  The file is touched at the end only, in one
 * transaction, so that several ipw at a time neither wait long nor see half a row. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "rundir/store.h"
#include "rundir/summary.h"

enum { VERSION = 1, PATIENCE_MS = 30000 };

struct catalogue {
    char path[1024];
    char run[256]; /* the directory's name: the row's key, which stays true when all are moved */
};

/* ---- where ---- */

static enum err locate(const char *directory, struct catalogue *out, struct error *why)
{
    char real[PATH_MAX];
    if (!realpath(directory, real))
        return err_set(why, err_from_errno(errno), "no run directory %s: %s", directory,
                       strerror(errno));
    char *name = strrchr(real, '/') + 1;
    if (!*name || !str_copy(out->run, sizeof out->run, name))
        return err_set(why, ERR_BAD_VALUE, "no name for a run directory: %.200s", real);
    *name = '\0';
    if (!str_format(out->path, sizeof out->path, "%scatalog.db", real))
        return err_set(why, ERR_BAD_VALUE, "too long a path: %.200s", real);
    return ERR_OK;
}

static enum err sqlite_open_store(const struct store_run *run, struct store *out, struct error *why)
{
    struct catalogue *catalogue = calloc(1, sizeof *catalogue);
    if (!catalogue)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    enum err err = locate(run->directory, catalogue, why);
    if (err)
        free(catalogue);
    else
        out->state = catalogue;
    return err;
}

static enum err sqlite_put(struct store *store, const struct jv *record, struct error *why)
{
    (void)store, (void)record, (void)why;
    return ERR_OK;
}

static void sqlite_close_store(struct store *store)
{
    free(store->state);
}

/* ---- the database ---- */

static enum err told(const struct catalogue *catalogue, sqlite3 *db, int code, struct error *why)
{
    enum err err;
    switch (code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        err = ERR_BUSY;
        break;
    case SQLITE_FULL:
        err = ERR_NO_SPACE;
        break;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        err = ERR_DENIED;
        break;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        err = ERR_BAD_VALUE;
        break;
    case SQLITE_NOMEM:
        err = ERR_NO_MEMORY;
        break;
    default:
        err = ERR_IO;
    }
    return err_set(why, err, "cannot write %s: %s", catalogue->path,
                   db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
}

static int read_version(sqlite3 *db, int *version)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL);
    if (code)
        return code;
    code = sqlite3_step(statement);
    *version = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? SQLITE_OK : code;
}

/* The table of an empty database.  A later version of it would be brought up to date here. */
static int make_table(sqlite3 *db)
{
    struct text sql = {0};
    text_add(&sql, "CREATE TABLE IF NOT EXISTS runs (directory TEXT PRIMARY KEY");
    for (size_t i = 0; i < SUMMARY_INDEXES; i++) {
        enum json_field_type type = summary_index(i)->at.type;
        text_addf(&sql, ", %s %s", summary_index(i)->index_name,
                  type == FIELD_TEXT      ? "TEXT"
                  : type == FIELD_INTEGER ? "INTEGER"
                                          : "REAL");
    }
    text_addf(&sql, ", summary TEXT); PRAGMA user_version = %d", VERSION);
    int code = sql.failed ? SQLITE_NOMEM : sqlite3_exec(db, text_get(&sql), NULL, NULL, NULL);
    text_release(&sql);
    return code;
}

static int bind(sqlite3_stmt *statement, int at, const struct summary_field *column,
                const struct summary *summary)
{
    const char *text = summary_index_text(column, summary);
    double number = summary ? json_field_number(&column->at, summary) : UNKNOWN;
    if (text)
        return sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
    if (is_known(number) && column->at.type == FIELD_INTEGER)
        return sqlite3_bind_int64(statement, at, (int64_t)number);
    if (is_known(number))
        return sqlite3_bind_double(statement, at, number);
    return sqlite3_bind_null(statement, at);
}

static int bind_row(sqlite3_stmt *statement, const struct catalogue *catalogue,
                    const struct summary *summary)
{
    int at = 1;
    int code = sqlite3_bind_text(statement, at++, catalogue->run, -1, SQLITE_STATIC);
    for (size_t i = 0; !code && i < SUMMARY_INDEXES; i++)
        code = bind(statement, at++, summary_index(i), summary);
    if (code || !summary)
        return code;
    struct text whole = {0};
    enum err err = summary->tree ? jv_print(summary->tree, &whole) : ERR_OK;
    if (!summary->tree)
        summary_to_json(summary, false, &whole);
    if (err || whole.failed)
        code = SQLITE_NOMEM;
    else
        code = sqlite3_bind_text(statement, at, text_get(&whole), -1, SQLITE_TRANSIENT);
    text_release(&whole);
    return code;
}

static int put_row(sqlite3 *db, const struct catalogue *catalogue, const struct summary *summary)
{
    struct text sql = {0};
    text_add(&sql, "INSERT OR REPLACE INTO runs (directory");
    for (size_t i = 0; i < SUMMARY_INDEXES; i++)
        text_addf(&sql, ", %s", summary_index(i)->index_name);
    text_add(&sql, ", summary) VALUES (?");
    for (size_t i = 0; i <= SUMMARY_INDEXES; i++)
        text_add(&sql, ", ?");
    text_add(&sql, ")");
    sqlite3_stmt *statement = NULL;
    int code =
        sql.failed ? SQLITE_NOMEM : sqlite3_prepare_v2(db, text_get(&sql), -1, &statement, NULL);
    text_release(&sql);
    if (!code)
        code = bind_row(statement, catalogue, summary);
    if (!code) {
        code = sqlite3_step(statement);
        code = code == SQLITE_DONE ? SQLITE_OK : code;
    }
    sqlite3_finalize(statement);
    return code;
}

static enum err write_row(const struct catalogue *catalogue, sqlite3 *db,
                          const struct summary *summary, struct error *why)
{
    int version = 0;
    /* IMMEDIATE: who waits, waits here, and not in the middle. */
    int code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (!code)
        code = read_version(db, &version);
    if (!code && version > VERSION)
        return err_set(why, ERR_UNSUPPORTED, "%s was made by a later ipw (its version is %d)",
                       catalogue->path, version);
    if (!code && version < VERSION)
        code = make_table(db);
    if (!code)
        code = put_row(db, catalogue, summary);
    if (!code)
        code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    return code ? told(catalogue, db, code, why) : ERR_OK;
}

static enum err sqlite_finish(struct store *store, const struct summary *summary, struct error *why)
{
    const struct catalogue *catalogue = store->state;
    sqlite3 *db = NULL;
    int code =
        sqlite3_open_v2(catalogue->path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    enum err err = ERR_OK;
    if (code || (code = sqlite3_busy_timeout(db, PATIENCE_MS)))
        err = told(catalogue, db, code, why);
    else
        err = write_row(catalogue, db, summary, why);
    sqlite3_close(db); /* what was not committed is undone */
    return err;
}

const struct store_driver store_sqlite = {
    .name = "sqlite",
    .summary = "catalog.db beside the run directories: one row a run",
    .available = jv_available,
    .open = sqlite_open_store,
    .put = sqlite_put,
    .finish = sqlite_finish,
    .close = sqlite_close_store,
};
