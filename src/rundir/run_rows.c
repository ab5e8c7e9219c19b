/* Statements for the columns of the run index, as record.def lists them, in the order of the index.  The index of a
 * folder (run_index_sqlite.c) has columns of its own besides: it uses the functions for single values and locks. */
#include "rundir/run_rows.h"

#include <stdlib.h>

#include "core/json_field.h"
#include "core/memory.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/json_read.h"
#include "port/proc.h"
#include "port/sqlite.h"
#include "port/thread.h"
#include "rundir/summary.h"

enum { LOCK_PERIOD_MS = 10 };

enum err run_rows_failed(sqlite3 *db, const char *path, int code, struct error *why)
{
    enum err err;
    if (code == SQLITE_NOMEM)
        memory_need(NULL);
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
    default:
        err = ERR_IO;
    }
    return err_set(why, err, "cannot write %s: %s", path,
                   db ? sqlite.errmsg(db) : sqlite.errstr(code));
}

/* Called with the number of earlier calls for the same lock; 0 gives up. */
static int wait_for_lock(void *context, int waited)
{
    const int *timeout_ms = context;
    if (waited >= *timeout_ms / LOCK_PERIOD_MS || proc_signal_is_pending())
        return 0;
    thread_sleep(LOCK_PERIOD_MS * NS_PER_MS);
    return 1;
}

int run_rows_wait(sqlite3 *db, bool briefly)
{
    static const int TIMEOUT_MS = 30000, BRIEF_MS = 3000;
    return sqlite.busy_handler(db, wait_for_lock, (void *)(briefly ? &BRIEF_MS : &TIMEOUT_MS));
}

int run_rows_open(const char *path, sqlite3 **db)
{
    file_create(path);
    int code = sqlite.open_v2(path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (!code)
        code = run_rows_wait(*db, false);
    /* IMMEDIATE: a process that must wait for another waits here, not in the middle. */
    return code ? code : sqlite.exec(*db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
}

const char *run_rows_type(const struct json_field *field)
{
    return field->type == FIELD_TEXT                                       ? "TEXT"
           : field->type == FIELD_INTEGER || field->type == FIELD_INTEGRAL ? "INTEGER"
           : field->type == FIELD_BOOL                                     ? "INTEGER"
                                                                           : "REAL";
}

int run_rows_create(sqlite3 *db, const char *key)
{
    struct text sql = {0};
    text_addf(&sql, "CREATE TABLE IF NOT EXISTS runs (%s TEXT PRIMARY KEY", key);
    for (size_t i = 0; i < SUMMARY_INDEXES; i++)
        text_addf(&sql, ", %s %s", summary_index(i)->index_name,
                  run_rows_type(&summary_index(i)->at));
    text_add(&sql, ", summary TEXT)");
    int code = sqlite.exec(db, text_get(&sql), NULL, NULL, NULL);
    text_release(&sql);
    return code;
}

int run_rows_bind(sqlite3_stmt *statement, int at, const struct json_field *field, const char *text,
                  double number)
{
    if (text)
        return sqlite.bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
    if (!is_known(number))
        return sqlite.bind_null(statement, at);
    if (field->type == FIELD_NUMBER)
        return sqlite.bind_double(statement, at, number);
    return sqlite.bind_int64(statement, at, (int64_t)number);
}

char *run_rows_summary(const struct summary *summary)
{
    struct text json = {0};
    if (!summary->tree)
        summary_to_json(summary, false, &json);
    else
        jv_print(summary->tree, &json);
    char *copy = xstrdup(text_get(&json));
    text_release(&json);
    return copy;
}

static int bind_summary(sqlite3_stmt *statement, int at, const struct summary *summary)
{
    if (!summary)
        return sqlite.bind_null(statement, at);
    char *json = run_rows_summary(summary);
    int code = sqlite.bind_text(statement, at, json, -1, SQLITE_TRANSIENT);
    free(json);
    return code;
}

int run_rows_put(sqlite3 *db, const char *key, const char *name, const struct summary *summary)
{
    struct text sql = {0};
    sqlite3_stmt *statement = NULL;
    int at = 1;
    text_addf(&sql, "INSERT OR REPLACE INTO runs (%s", key);
    for (size_t i = 0; i < SUMMARY_INDEXES; i++)
        text_addf(&sql, ", %s", summary_index(i)->index_name);
    text_add(&sql, ", summary) VALUES (?");
    for (size_t i = 0; i <= SUMMARY_INDEXES; i++)
        text_add(&sql, ", ?");
    text_add(&sql, ")");
    int code = sqlite.prepare_v2(db, text_get(&sql), -1, &statement, NULL);
    text_release(&sql);
    if (!code)
        code = sqlite.bind_text(statement, at++, name, -1, SQLITE_STATIC);
    for (size_t i = 0; !code && i < SUMMARY_INDEXES; i++) {
        const struct summary_field *column = summary_index(i);
        code = run_rows_bind(statement, at++, &column->at, summary_index_text(column, summary),
                             summary ? json_field_number(&column->at, summary) : UNKNOWN);
    }
    if (!code)
        code = bind_summary(statement, at, summary);
    if (!code)
        code = sqlite.step(statement);
    sqlite.finalize(statement);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}
