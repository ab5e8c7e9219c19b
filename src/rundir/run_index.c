/* catalog.db.  All access is in one transaction, so that concurrent processes neither wait long nor see partial rows.
 * As a store (`ipw list stores`) it uses no records, only the summary. */
#define _GNU_SOURCE
#include "rundir/run_index.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/json_read.h"
#include "port/proc.h"
#include "port/sqlite.h"
#include "port/thread.h"
#include "rundir/run_list.h"
#include "rundir/store.h"
#include "rundir/summary.h"

#define INDEX_FILE "catalog.db"

enum { VERSION = 3, LOCK_TIMEOUT_MS = 30000, LOCK_PERIOD_MS = 10 };

struct index {
    char *path;
    sqlite3 *db;
};

/* ---- a table of runs ---- */

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
    (void)context;
    if (waited >= LOCK_TIMEOUT_MS / LOCK_PERIOD_MS || proc_signal_is_pending())
        return 0;
    thread_sleep(LOCK_PERIOD_MS * NS_PER_MS);
    return 1;
}

int run_rows_wait(sqlite3 *db)
{
    return sqlite.busy_handler(db, wait_for_lock, NULL);
}

int run_rows_open(const char *path, sqlite3 **db)
{
    file_create(path);
    int code = sqlite.open_v2(path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (!code)
        code = run_rows_wait(*db);
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

static int bind_summary(sqlite3_stmt *statement, int at, const struct summary *summary)
{
    struct text json = {0};
    if (!summary)
        return sqlite.bind_null(statement, at);
    if (!summary->tree)
        summary_to_json(summary, false, &json);
    else
        jv_print(summary->tree, &json);
    int code = sqlite.bind_text(statement, at, text_get(&json), -1, SQLITE_TRANSIENT);
    text_release(&json);
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

/* ---- the index ---- */

/* The key is the directory's name, which stays valid if all runs are moved together. */
#define KEY "directory"

static int read_version(sqlite3 *db, int *version)
{
    sqlite3_stmt *statement;
    int code = sqlite.prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL);
    if (code)
        return code;
    code = sqlite.step(statement);
    *version = sqlite.column_int(statement, 0);
    sqlite.finalize(statement);
    return code == SQLITE_ROW ? SQLITE_OK : code;
}

/* Opens the index and begins a transaction in which the table exists.  A table of an earlier version lacks columns: it
 * is recreated, and filled from the directories by the next refresh. */
static enum err begin(struct index *index, struct error *why)
{
    int version = 0;
    int code = run_rows_open(index->path, &index->db);
    if (!code)
        code = read_version(index->db, &version);
    if (!code && version > VERSION)
        return err_set(why, ERR_UNSUPPORTED, "%s was written by a later version of ipw (format %d)",
                       index->path, version);
    if (!code && version && version < VERSION)
        code = sqlite.exec(index->db, "DROP TABLE IF EXISTS runs", NULL, NULL, NULL);
    if (!code && version < VERSION)
        code = run_rows_create(index->db, KEY);
    if (!code && version < VERSION)
        code = sqlite.exec(index->db, "PRAGMA user_version = 3", NULL, NULL, NULL);
    return code ? run_rows_failed(index->db, index->path, code, why) : ERR_OK;
}

static enum err commit(struct index *index, int code, struct error *why)
{
    if (!code)
        code = sqlite.exec(index->db, "COMMIT", NULL, NULL, NULL);
    return code ? run_rows_failed(index->db, index->path, code, why) : ERR_OK;
}

/* ERR_UNSUPPORTED: there is no index.  `parent`: the folder of runs; the caller frees the path in any case. */
static enum err choose_path(struct index *index, const char *parent, struct error *why)
{
    index->path = path_join(parent, INDEX_FILE);
    return sqlite_check_path(index->path, why);
}

/* Rolls back uncommitted changes. */
static void end(struct index *index)
{
    sqlite.close(index->db);
    index->db = NULL;
}

/* It may be a file of the user, so it is kept.  SQLite would roll its journal back into the new one. */
static bool set_damaged_aside(const struct index *index)
{
    char *journal = xformat("%s-journal", index->path);
    char *aside = xformat("%s.damaged", index->path);
    bool is_aside = (!unlink(journal) || errno == ENOENT) && !rename(index->path, aside);
    free(journal);
    free(aside);
    return is_aside;
}

/* Writes in one transaction.  A damaged index is made again, since all of it comes from the directories, and `write` is
 * called a second time. */
static enum err update(struct index *index, int (*write)(sqlite3 *db, void *context), void *context,
                       struct error *why)
{
    for (bool again = false;; again = true) {
        enum err err = begin(index, why);
        if (!err)
            err = commit(index, write(index->db, context), why);
        end(index);
        if (err != ERR_BAD_VALUE || again || !set_damaged_aside(index))
            return err;
    }
}

/* ---- one run ---- */

static enum err locate(const char *directory, struct index *out, char name[static 256],
                       struct error *why)
{
    char *real = realpath(directory, NULL);
    if (!real)
        return err_set(why, err_from_errno(errno), "no run directory %s: %s", directory,
                       strerror(errno));
    char *last = strrchr(real, '/') + 1;
    enum err err = ERR_OK;
    if (!*last || !str_copy(name, 256, last))
        err = err_set(why, ERR_BAD_VALUE, "not the name of a run directory: %s", real);
    *last = '\0';
    if (!err)
        err = choose_path(out, real, why);
    free(real);
    return err;
}

struct row {
    const char *name;
    const struct summary *summary;
};

static int write_row(sqlite3 *db, void *context)
{
    const struct row *row = context;
    return run_rows_put(db, KEY, row->name, row->summary);
}

enum err run_index_put(const char *directory, const struct summary *summary, struct error *why)
{
    struct index index = {0};
    char name[256];
    enum err err = sqlite_load(why);
    if (!err)
        err = locate(directory, &index, name, why);
    if (!err)
        err = update(&index, write_row, &(struct row){name, summary}, why);
    free(index.path);
    return err;
}

/* ---- refreshing ---- */

static const struct run_list_entry *find_entry(const struct run_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].has_summary && strcmp(list->entries[i].name, name) == 0)
            return &list->entries[i];
    return NULL;
}

/* Deletes rows without a run, and marks the others. */
static int delete_missing(sqlite3 *db, const struct run_list *list, bool *indexed)
{
    sqlite3_stmt *names = NULL, *delete = NULL;
    int code = sqlite.prepare_v2(db, "SELECT directory FROM runs", -1, &names, NULL);
    if (!code)
        code = sqlite.prepare_v2(db, "DELETE FROM runs WHERE directory = ?", -1, &delete, NULL);
    while (!code && (code = sqlite.step(names)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite.column_text(names, 0);
        const struct run_list_entry *entry = find_entry(list, name ? name : "");
        if (entry)
            indexed[entry - list->entries] = true;
        code = entry ? SQLITE_OK : sqlite.bind_value(delete, 1, sqlite.column_value(names, 0));
        if (!entry && !code && (code = sqlite.step(delete)) == SQLITE_DONE)
            code = sqlite.reset(delete);
    }
    sqlite.finalize(names);
    sqlite.finalize(delete);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static bool is_current(const struct index *index, const struct run_list *list, double *changed_at)
{
    struct stat status;
    sqlite3 *db = NULL;
    sqlite3_stmt *names = NULL;
    size_t rows = 0, known = 0, runs = 0;
    int version = 0;
    *changed_at = UNKNOWN;
    if (stat(index->path, &status))
        return false;
    *changed_at = (double)status.st_mtim.tv_sec + 1e-9 * (double)status.st_mtim.tv_nsec;
    bool newer = false;
    for (size_t i = 0; i < list->count; i++) {
        runs += list->entries[i].has_summary;
        newer = newer || list->entries[i].written_at > *changed_at;
    }
    if (!sqlite.open_v2(index->path, &db, SQLITE_OPEN_READONLY, NULL) && !run_rows_wait(db) &&
        !read_version(db, &version) && version == VERSION &&
        !sqlite.prepare_v2(db, "SELECT directory FROM runs", -1, &names, NULL))
        while (sqlite.step(names) == SQLITE_ROW) {
            const char *name = (const char *)sqlite.column_text(names, 0);
            rows++;
            known += find_entry(list, name ? name : "") != NULL;
        }
    sqlite.finalize(names);
    sqlite.close(db);
    return version == VERSION && !newer && rows == runs && known == runs;
}

struct refresh {
    const struct run_list *list;
    double changed_at; /* the index, before */
    bool *indexed;     /* per entry */
};

static int write_missing(sqlite3 *db, void *context)
{
    const struct refresh *refresh = context;
    const struct run_list *list = refresh->list;
    memset(refresh->indexed, 0, list->count * sizeof *refresh->indexed);
    int code = delete_missing(db, list, refresh->indexed);
    for (size_t i = 0; !code && i < list->count; i++) {
        const struct run_list_entry *entry = &list->entries[i];
        if (entry->has_summary &&
            (!refresh->indexed[i] || !(entry->written_at <= refresh->changed_at)))
            code = run_rows_put(db, KEY, entry->name, &entry->summary);
    }
    return code;
}

enum err run_index_refresh(const char *parent, const struct run_list *list, struct error *why)
{
    struct index index = {0};
    struct refresh refresh = {.list = list,
                              .indexed = xcalloc(list->count + 1, sizeof *refresh.indexed)};
    enum err err = sqlite_load(why);
    if (!err)
        err = choose_path(&index, parent, why);
    if (!err && !is_current(&index, list, &refresh.changed_at))
        err = update(&index, write_missing, &refresh, why);
    free(refresh.indexed);
    free(index.path);
    return err;
}

/* ---- reading ---- */

/* A summary is written immediately after it was made: a row made at another time belongs to another summary, whatever
 * the mtime of the index, which other runs change. */
#define MADE_BEFORE_S 2.0

struct run_index {
    sqlite3 *db;
    sqlite3_stmt *find;
    double changed_at;
};

static int prepare_find(struct run_index *index)
{
    struct text sql = {0};
    for (size_t i = 0; i < SUMMARY_INDEXES; i++)
        text_addf(&sql, "%s%s", i ? ", " : "SELECT ", summary_index(i)->index_name);
    text_add(&sql, " FROM runs WHERE " KEY " = ?");
    int code = sqlite.prepare_v2(index->db, text_get(&sql), -1, &index->find, NULL);
    text_release(&sql);
    return code;
}

enum err run_index_open(const char *parent, struct run_index **out, struct error *why)
{
    struct stat status;
    int version = 0;
    *out = NULL;
    enum err err = sqlite_load(why);
    if (err)
        return err;
    char *path = path_join(parent, INDEX_FILE);
    if (!run_stat(path, &status)) {
        free(path);
        return err_set(why, ERR_NOT_FOUND, "no run index in %s", parent);
    }
    struct run_index *index = xcalloc(1, sizeof *index);
    index->changed_at = (double)status.st_mtim.tv_sec + 1e-9 * (double)status.st_mtim.tv_nsec;
    int code = sqlite.open_v2(path, &index->db, SQLITE_OPEN_READONLY, NULL);
    if (!code)
        code = read_version(index->db, &version);
    if (!code && version == VERSION)
        code = prepare_find(index);
    if (code || version != VERSION) {
        run_index_close(index);
        err = err_set(why, ERR_UNSUPPORTED, "cannot use %s", path);
    } else {
        *out = index;
    }
    free(path);
    return err;
}

void run_index_close(struct run_index *index)
{
    if (!index)
        return;
    sqlite.finalize(index->find);
    sqlite.close(index->db);
    free(index);
}

static void take_value(sqlite3_stmt *row, int at, const struct json_field *field,
                       struct summary *out)
{
    void *member = (char *)out + field->offset;
    if (sqlite.column_type(row, at) == SQLITE_NULL)
        return;
    if (field->type == FIELD_TEXT)
        *(const char **)member = (const char *)sqlite.column_text(row, at);
    else if (field->type == FIELD_INTEGER)
        *(int64_t *)member = sqlite.column_int64(row, at);
    else if (field->type == FIELD_BOOL)
        *(int8_t *)member = (int8_t)sqlite.column_int(row, at);
    else
        *(double *)member = sqlite.column_double(row, at);
}

bool run_index_find(struct run_index *index, const char *name, double written_at,
                    struct summary *out)
{
    summary_init(out);
    sqlite.reset(index->find);
    if (!(written_at <= index->changed_at) ||
        sqlite.bind_text(index->find, 1, name, -1, SQLITE_TRANSIENT) ||
        sqlite.step(index->find) != SQLITE_ROW)
        return false;
    for (size_t i = 0; i < SUMMARY_INDEXES; i++)
        take_value(index->find, (int)i, &summary_index(i)->at, out);
    return fabs(written_at - out->generated_at) <= MADE_BEFORE_S;
}

/* ---- the store ---- */

static enum err sqlite_open_store(const struct store_run *run, struct store *out, struct error *why)
{
    struct index index = {0};
    char name[256];
    enum err err = locate(run->directory, &index, name, why); /* also checks the path of the index */
    free(index.path);
    if (!err)
        out->state = xstrdup(run->directory);
    return err;
}

static enum err sqlite_finish(struct store *store, const struct summary *summary, struct error *why)
{
    return run_index_put(store->state, summary, why);
}

const struct store_driver store_sqlite = {
    .name = "sqlite",
    .summary = "the run index: catalog.db next to the run directories, one row per run",
    .available = sqlite_load,
    .open = sqlite_open_store,
    .finish = sqlite_finish,
};
