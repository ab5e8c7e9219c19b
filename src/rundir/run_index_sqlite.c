/* Rows of the run index in SQLite.  A query is one statement over an SQL index of the column that it sorts by, which
 * the first such query creates; values are bound, never part of the SQL.
 *
 * Unknown values, NULL, come last in both directions.  No order of an SQL index does that, so a query has two parts,
 * the known values and then the unknown ones; each begins right behind the row `after` and costs what it returns. */
#include "rundir/run_index_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/sqlite.h"
#include "rundir/run_rows.h"

enum { VERSION = 4, BOUND_MAX = ROW_COLUMNS + RUN_SEARCHED_COUNT + 8 };

/* The directory's name, which stays valid if all runs are moved together. */
#define KEY "directory"

struct sqlite_table {
    struct row_table table;
    char *path; /* NULL: in memory */
    enum row_access mode;
    sqlite3 *db;     /* NULL: there is no file yet */
    bool is_current; /* it has the table of this version */
    bool is_indexed[ROW_VALUES];
    uint64_t writes;
};

static struct sqlite_table *sqlite_table(struct row_table *table)
{
    return (struct sqlite_table *)table;
}

static enum err result(const struct sqlite_table *table, int code, struct error *why)
{
    bool is_done = code == SQLITE_OK || code == SQLITE_DONE;
    return is_done ? ERR_OK
                   : run_rows_failed(table->db, table->path ? table->path : "the table of runs",
                                     code, why);
}

/* ---- opening ---- */

static int read_pragma(sqlite3 *db, const char *pragma, int *out)
{
    sqlite3_stmt *statement;
    int code = sqlite.prepare_v2(db, pragma, -1, &statement, NULL);
    if (code)
        return code;
    code = sqlite.step(statement);
    *out = sqlite.column_int(statement, 0);
    sqlite.finalize(statement);
    return code == SQLITE_ROW ? SQLITE_OK : code;
}

/* Also checks the version. */
static enum err check_version(struct sqlite_table *table, struct error *why)
{
    int version = 0;
    int code = read_pragma(table->db, "PRAGMA user_version", &version);
    table->is_current = !code && version == VERSION;
    if (!code && version > VERSION)
        return err_set(why, ERR_UNSUPPORTED, "%s was written by a later version of ipw (format %d)",
                       table->path, version);
    return result(table, code, why);
}

static enum err connect_to(struct sqlite_table *table, bool create, struct error *why)
{
    static const int FLAGS[] = {
        [ROW_SHARED] = SQLITE_OPEN_READWRITE,
        [ROW_CONFINED] = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX,
        [ROW_READ_ONLY] = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW,
    };
    if (table->db || (!create && access(table->path, F_OK)))
        return ERR_OK;
    if (create)
        file_create(table->path);
    int flags = FLAGS[table->mode] | (create ? SQLITE_OPEN_CREATE : 0);
    int code = sqlite.open_v2(table->path, &table->db, flags, NULL);
    if (!code)
        code = run_rows_wait(table->db, table->mode != ROW_SHARED);
    return result(table, code, why);
}

static int create_rows(sqlite3 *db)
{
    struct text sql = {0};
    text_add(&sql, "DROP TABLE IF EXISTS runs; CREATE TABLE runs (" KEY " TEXT PRIMARY KEY");
    for (size_t i = ROW_OWN; i < ROW_VALUES; i++)
        text_addf(&sql, ", %s %s", run_row_name(i), run_rows_type(&summary_index(i - ROW_OWN)->at));
    for (size_t i = 0; i < ROW_OWN; i++)
        text_addf(&sql, ", %s %s", run_row_name(i), run_row_is_text(i) ? "TEXT" : "REAL");
    text_add(&sql, ", written_at INTEGER, is_attempt INTEGER, summary TEXT)");
    text_addf(&sql, "; PRAGMA user_version = %d", VERSION);
    int code = sqlite.exec(db, text_get(&sql), NULL, NULL, NULL);
    text_release(&sql);
    return code;
}

/* Begins a transaction in which the table exists.  A table of an earlier version lacks columns: it is created again,
 * and filled from the directories by the next update. */
static enum err begin(struct sqlite_table *table, struct error *why)
{
    enum err err = connect_to(table, true, why);
    if (!err)
        /* IMMEDIATE: a process that must wait for another waits here, not in the middle. */
        err = result(table, sqlite.exec(table->db, "BEGIN IMMEDIATE", NULL, NULL, NULL), why);
    if (!err)
        err = check_version(table, why);
    if (!err && !table->is_current)
        err = result(table, create_rows(table->db), why);
    return err;
}

static void sqlite_close(struct row_table *base)
{
    struct sqlite_table *table = sqlite_table(base);
    sqlite.close(table->db);
    free(table->path);
    free(table);
}

/* ---- statements ---- */

/* A statement while it is composed, with the values of its parameters. */
struct statement {
    struct text sql;
    struct text pattern; /* of a search */
    struct {
        const char *text; /* NULL: the number */
        double number;
    } bound[BOUND_MAX];
    size_t count;
};

static void statement_release(struct statement *statement)
{
    text_release(&statement->sql);
    text_release(&statement->pattern);
}

static void add_text(struct statement *to, const char *value)
{
    to->bound[to->count++].text = value;
}

static void add_number(struct statement *to, double value)
{
    to->bound[to->count].text = NULL;
    to->bound[to->count++].number = value;
}

static int prepare(sqlite3 *db, const struct statement *from, sqlite3_stmt **out)
{
    int code = sqlite.prepare_v2(db, text_get(&from->sql), -1, out, NULL);
    for (size_t i = 0; !code && i < from->count; i++) {
        int at = (int)i + 1;
        code = from->bound[i].text
                   ? sqlite.bind_text(*out, at, from->bound[i].text, -1, SQLITE_STATIC)
                   : sqlite.bind_double(*out, at, from->bound[i].number);
    }
    return code;
}

/* Runs it, and frees what it was composed of. */
static int run_statement(struct sqlite_table *table, struct statement *composed,
                         void (*take)(void *context, sqlite3_stmt *row), void *context)
{
    sqlite3_stmt *statement = NULL;
    int code = prepare(table->db, composed, &statement);
    while (!code && (code = sqlite.step(statement)) == SQLITE_ROW) {
        take(context, statement);
        code = SQLITE_OK;
    }
    sqlite.finalize(statement);
    statement_release(composed);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* LIKE knows the letters of ASCII alone, as str_contains_nocase does. */
static void add_search(struct statement *to, const char *search)
{
    text_add(&to->pattern, "%");
    for (const char *at = search; *at; at++) {
        if (strchr("%_\\", *at))
            text_add(&to->pattern, "\\");
        text_add_bytes(&to->pattern, at, 1);
    }
    text_add(&to->pattern, "%");
    for (size_t i = 0; i < RUN_SEARCHED_COUNT; i++) {
        text_addf(&to->sql, "%s %s LIKE ? ESCAPE '\\'", i ? " OR" : " AND (",
                  run_row_name(run_row_place(RUN_SEARCHED[i])));
        add_text(to, text_get(&to->pattern));
    }
    text_add(&to->sql, ")");
}

static void add_conditions(struct statement *to, const struct run_query *query)
{
    text_add(&to->sql, query->with_attempts || query->id ? " WHERE 1" : " WHERE is_attempt = 0");
    if (query->id) {
        text_add(&to->sql, " AND " KEY " = ?");
        add_text(to, query->id);
    }
    for (size_t i = 0; i < ROW_COLUMNS; i++)
        if (query->equal[i]) {
            text_addf(&to->sql, " AND %s = ?", run_row_name(run_row_place((enum run_column)i)));
            add_text(to, query->equal[i]);
        }
    if (query->search)
        add_search(to, query->search);
}

/* ---- selecting ---- */

/* For the dashboard alone: commands read all rows or one.  If it fails, say because another process holds the lock, the
 * query works without. */
static bool create_index(const struct sqlite_table *table, const char *sql)
{
    bool is_asked = !table->path || table->mode == ROW_CONFINED;
    return is_asked && !sqlite.exec(table->db, sql, NULL, NULL, NULL);
}

/* An SQL index has the columns of filters and updates, too, so that only rows of the page are read: a row is long. */
static const char *const LISTED[] = {
    "is_attempt", "kind",      "state", "model",      "hardware",   "client",
    "dataset",    "precision", "name",  "created_at", "written_at",
};

static bool ensure_index(struct sqlite_table *table, size_t place)
{
    const char *name = run_row_name(place);
    struct text sql = {0};
    if (table->is_indexed[place])
        return true;
    text_addf(&sql, "CREATE INDEX IF NOT EXISTS runs_by_%s ON runs (%s, " KEY, name, name);
    for (size_t i = 0; i < COUNT_OF(LISTED); i++)
        if (!str_equal(LISTED[i], name))
            text_addf(&sql, ", %s", LISTED[i]);
    text_add(&sql, ")");
    table->is_indexed[place] = create_index(table, text_get(&sql));
    text_release(&sql);
    return table->is_indexed[place];
}

static void read_value(sqlite3_stmt *statement, int at, size_t place, struct run_row *row)
{
    int type = sqlite.column_type(statement, at);
    if (run_row_is_text(place))
        row->values[place].text =
            type == SQLITE_TEXT ? (const char *)sqlite.column_text(statement, at) : NULL;
    else if (type == SQLITE_INTEGER || type == SQLITE_FLOAT)
        row->values[place].number = sqlite.column_double(statement, at);
}

static void read_key(sqlite3_stmt *statement, struct run_row *row)
{
    const char *id = (const char *)sqlite.column_text(statement, 0);
    run_row_init(row, id ? id : "");
    if (sqlite.column_type(statement, 1) == SQLITE_INTEGER)
        row->written_at = sqlite.column_int64(statement, 1);
}

static void add_rows(struct statement *to, struct sqlite_table *table, enum run_column column)
{
    size_t place = run_row_place(column);
    text_add(&to->sql, " FROM runs");
    if (ensure_index(table, place))
        text_addf(&to->sql, " INDEXED BY runs_by_%s", run_row_name(place));
}

struct selection {
    struct sqlite_table *table;
    const struct run_query *query;
    run_take_row *take;
    void *context;
    size_t taken;
};

static void add_value(struct statement *to, const struct run_row *row, size_t place)
{
    if (run_row_is_text(place))
        add_text(to, row->values[place].text);
    else
        add_number(to, row->values[place].number);
}

/* The known values: all are at least "" or minus infinity.  One bound on each side, so that SQLite begins there. */
static void add_known_part(struct statement *to, const struct run_query *query, size_t place)
{
    struct run_row lowest = {.id = ""};
    const struct run_row *after = query->after;
    if (run_row_is_text(place))
        lowest.values[place].text = "";
    else
        lowest.values[place].number = -INFINITY;
    if (query->is_descending) {
        text_addf(&to->sql, " AND %s >= ?", run_row_name(place));
        add_value(to, &lowest, place);
    } else if (!after) {
        after = &lowest;
    }
    if (after) {
        text_addf(&to->sql, " AND (%s, " KEY ") %s (?, ?)", run_row_name(place),
                  query->is_descending ? "<" : ">");
        add_value(to, after, place);
        add_text(to, after->id);
    }
}

static void add_unknown_part(struct statement *to, const struct run_query *query, size_t place)
{
    text_addf(&to->sql, " AND %s IS NULL", run_row_name(place));
    if (query->after && !run_row_has(query->after, place)) {
        text_addf(&to->sql, " AND " KEY " %s ?", query->is_descending ? "<" : ">");
        add_text(to, query->after->id);
    }
}

static size_t column_count(const struct run_query *query)
{
    return query->columns ? query->column_count : ROW_VALUES;
}

static size_t column_place(const struct run_query *query, size_t i)
{
    return query->columns ? run_row_place(query->columns[i]) : i;
}

static void add_columns(struct statement *to, const struct run_query *query)
{
    text_add(&to->sql, "SELECT " KEY ", written_at, is_attempt");
    for (size_t i = 0; i < column_count(query); i++)
        text_addf(&to->sql, ", %s", run_row_name(column_place(query, i)));
}

static void add_part(struct statement *to, const struct selection *selection, bool is_known)
{
    const struct run_query *query = selection->query;
    size_t place = run_row_place(query->sort);
    const char *name = run_row_name(place), *order = query->is_descending ? "DESC" : "ASC";
    if (is_known)
        add_known_part(to, query, place);
    else
        add_unknown_part(to, query, place);
    text_addf(&to->sql, " ORDER BY %s %s, " KEY " %s", name, order, order);
    if (query->limit)
        text_addf(&to->sql, " LIMIT %zu", query->limit - selection->taken);
}

static void take_selected(void *context, sqlite3_stmt *statement)
{
    struct selection *selection = context;
    struct run_row row;
    read_key(statement, &row);
    row.is_attempt = sqlite.column_int(statement, 2);
    for (size_t i = 0; i < column_count(selection->query); i++)
        read_value(statement, (int)i + 3, column_place(selection->query, i), &row);
    selection->take(selection->context, &row);
    selection->taken++;
}

static int select_part(struct selection *selection, bool is_known)
{
    const struct run_query *query = selection->query;
    struct statement composed = {0};
    add_columns(&composed, query);
    if (query->id)
        text_add(&composed.sql, " FROM runs");
    else
        add_rows(&composed, selection->table, query->sort);
    add_conditions(&composed, query);
    if (!query->id)
        add_part(&composed, selection, is_known);
    return run_statement(selection->table, &composed, take_selected, selection);
}

static enum err sqlite_select(struct row_table *base, const struct run_query *query,
                              run_take_row *take, void *context, struct error *why)
{
    struct sqlite_table *table = sqlite_table(base);
    struct selection selection = {table, query, take, context, 0};
    int code = SQLITE_OK;
    if (!table->is_current)
        return ERR_OK;
    if (query->id || !query->after || run_row_has(query->after, run_row_place(query->sort)))
        code = select_part(&selection, true);
    if (!code && !query->id && (!query->limit || selection.taken < query->limit))
        code = select_part(&selection, false);
    return result(table, code, why);
}

/* ---- other questions ---- */

static void take_count(void *context, sqlite3_stmt *statement)
{
    *(size_t *)context = (size_t)sqlite.column_int64(statement, 0);
}

static enum err sqlite_count(struct row_table *base, const struct run_query *query, size_t *out,
                             struct error *why)
{
    struct sqlite_table *table = sqlite_table(base);
    struct statement composed = {0};
    *out = 0;
    if (!table->is_current)
        return ERR_OK;
    text_add(&composed.sql, "SELECT count(*)");
    add_rows(&composed, table, ROW_CREATED);
    add_conditions(&composed, query);
    return result(table, run_statement(table, &composed, take_count, out), why);
}

struct text_taker {
    void (*take)(void *context, const char *text);
    void *context;
};

static void take_text(void *context, sqlite3_stmt *statement)
{
    const struct text_taker *taker = context;
    if (sqlite.column_type(statement, 0) == SQLITE_TEXT)
        taker->take(taker->context, (const char *)sqlite.column_text(statement, 0));
}

static enum err sqlite_texts(struct row_table *base, enum run_column column, size_t limit,
                             void (*take)(void *context, const char *text), void *context,
                             struct error *why)
{
    struct sqlite_table *table = sqlite_table(base);
    const char *name = run_row_name(run_row_place(column));
    struct text_taker taker = {take, context};
    struct statement composed = {0};
    if (!table->is_current)
        return ERR_OK;
    text_addf(&composed.sql, "SELECT DISTINCT %s", name);
    add_rows(&composed, table, column);
    text_addf(&composed.sql, " WHERE is_attempt = 0 AND %s >= '' ORDER BY %s LIMIT %zu", name, name,
              limit);
    return result(table, run_statement(table, &composed, take_text, &taker), why);
}

static uint64_t sqlite_stamp(struct row_table *base)
{
    struct sqlite_table *table = sqlite_table(base);
    int version = 0;
    if (table->db && table->path)
        (void)!read_pragma(table->db, "PRAGMA data_version", &version);
    return table->writes << 32 | (uint32_t)version;
}

/* ---- updating ---- */

struct row_taker {
    run_take_row *take;
    void *context;
};

static void take_known(void *context, sqlite3_stmt *statement)
{
    const struct row_taker *taker = context;
    struct run_row row;
    read_key(statement, &row);
    read_value(statement, 2, ROW_STATE, &row);
    read_value(statement, 3, ROW_CREATED, &row);
    taker->take(taker->context, &row);
}

static enum err sqlite_known(struct row_table *base, run_take_row *take, void *context,
                             struct error *why)
{
    struct sqlite_table *table = sqlite_table(base);
    struct row_taker taker = {take, context};
    struct statement composed = {0};
    enum err err = table->path ? connect_to(table, false, why) : ERR_OK;
    if (!err && table->db)
        err = check_version(table, why);
    if (err || !table->is_current)
        return err;
    text_add(&composed.sql, "SELECT " KEY ", written_at, state, created_at");
    add_rows(&composed, table, ROW_CREATED);
    return result(table, run_statement(table, &composed, take_known, &taker), why);
}

/* Parameters: the key, the values, written_at, is_attempt, the summary; whether it replaces any row, and else what
 * written_at of the row must be. */
enum {
    AT_KEY = 1,
    AT_VALUES,
    AT_WRITTEN = AT_VALUES + ROW_VALUES,
    AT_ATTEMPT,
    AT_SUMMARY,
    AT_FORCED,
    AT_BEFORE
};

static int prepare_insert(sqlite3 *db, sqlite3_stmt **out)
{
    struct text sql = {0};
    text_add(&sql, "INSERT OR REPLACE INTO runs (" KEY);
    for (size_t i = 0; i < ROW_VALUES; i++)
        text_addf(&sql, ", %s", run_row_name(i));
    text_add(&sql, ", written_at, is_attempt, summary) SELECT ?1");
    for (int i = AT_VALUES; i <= AT_SUMMARY; i++)
        text_addf(&sql, ", ?%d", i);
    text_addf(&sql, " WHERE ?%d OR (SELECT written_at FROM runs WHERE " KEY " = ?1) IS ?%d",
              AT_FORCED, AT_BEFORE);
    int code = sqlite.prepare_v2(db, text_get(&sql), -1, out, NULL);
    text_release(&sql);
    return code;
}

static int bind_time(sqlite3_stmt *statement, int at, int64_t time)
{
    return time == INTEGER_UNKNOWN ? sqlite.bind_null(statement, at)
                                   : sqlite.bind_int64(statement, at, time);
}

static int bind_own(sqlite3_stmt *statement, int at, const struct run_row *row, size_t place)
{
    if (!run_row_has(row, place))
        return sqlite.bind_null(statement, at);
    if (run_row_is_text(place))
        return sqlite.bind_text(statement, at, row->values[place].text, -1, SQLITE_STATIC);
    return sqlite.bind_double(statement, at, row->values[place].number);
}

static int bind_row(sqlite3_stmt *statement, const struct run_row *row)
{
    int code = sqlite.bind_text(statement, AT_KEY, row->id, -1, SQLITE_STATIC);
    for (size_t i = 0; !code && i < ROW_VALUES; i++) {
        int at = AT_VALUES + (int)i;
        bool is_text = run_row_is_text(i);
        code = i < ROW_OWN ? bind_own(statement, at, row, i)
                           : run_rows_bind(statement, at, &summary_index(i - ROW_OWN)->at,
                                           is_text ? row->values[i].text : NULL,
                                           is_text ? UNKNOWN : row->values[i].number);
    }
    if (!code)
        code = bind_time(statement, AT_WRITTEN, row->written_at);
    return code ? code : sqlite.bind_int64(statement, AT_ATTEMPT, row->is_attempt);
}

static int insert_row(sqlite3_stmt *statement, const struct run_change *change)
{
    int code = bind_row(statement, change->row);
    if (!code)
        code = change->summary
                   ? sqlite.bind_text(statement, AT_SUMMARY, change->summary, -1, SQLITE_STATIC)
                   : sqlite.bind_null(statement, AT_SUMMARY);
    if (!code)
        code = sqlite.bind_int64(statement, AT_FORCED, change->is_forced);
    if (!code)
        code = bind_time(statement, AT_BEFORE, change->before);
    return code;
}

static int delete_row(sqlite3_stmt *statement, const struct run_change *change)
{
    int code = sqlite.bind_text(statement, 1, change->row->id, -1, SQLITE_STATIC);
    return code ? code : bind_time(statement, 2, change->before);
}

static int write_changes(struct sqlite_table *table, const struct run_change *changes, size_t count)
{
    static const char DELETE[] = "DELETE FROM runs WHERE " KEY " = ? AND written_at IS ?";
    sqlite3_stmt *insert = NULL, *delete = NULL;
    int code = prepare_insert(table->db, &insert);
    if (!code)
        code = sqlite.prepare_v2(table->db, DELETE, -1, &delete, NULL);
    for (size_t i = 0; !code && i < count; i++) {
        sqlite3_stmt *statement = changes[i].is_deleted ? delete : insert;
        code = changes[i].is_deleted ? delete_row(delete, &changes[i])
                                     : insert_row(insert, &changes[i]);
        if (!code && (code = sqlite.step(statement)) == SQLITE_DONE)
            code = sqlite.reset(statement);
    }
    sqlite.finalize(insert);
    sqlite.finalize(delete);
    return code;
}

static enum err sqlite_write(struct row_table *base, struct run_change *changes, size_t count,
                             struct error *why)
{
    struct sqlite_table *table = sqlite_table(base);
    enum err err = begin(table, why);
    if (!err)
        err = result(table, write_changes(table, changes, count), why);
    if (!err)
        err = result(table, sqlite.exec(table->db, "COMMIT", NULL, NULL, NULL), why);
    if (err && table->db)
        (void)sqlite.exec(table->db, "ROLLBACK", NULL, NULL, NULL);
    table->is_current = table->is_current || !err;
    table->writes++;
    return err;
}

/* ---- the table ---- */

static const struct row_table_ops OPS = {
    .known = sqlite_known,
    .write = sqlite_write,
    .select = sqlite_select,
    .count = sqlite_count,
    .texts = sqlite_texts,
    .stamp = sqlite_stamp,
    .close = sqlite_close,
};

enum err row_table_open_file(const char *path, enum row_access mode, struct row_table **out,
                             struct error *why)
{
    struct sqlite_table *table = XNEW(table);
    *table = (struct sqlite_table){.table = {&OPS, true}, .path = xstrdup(path), .mode = mode};
    *out = &table->table;
    enum err err = connect_to(table, false, why);
    return err || !table->db ? err : check_version(table, why);
}

struct row_table *row_table_open_memory(void)
{
    struct sqlite_table *table = XNEW(table);
    table->table.ops = &OPS;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int code = sqlite.open_v2(":memory:", &table->db, flags, NULL);
    if (!code)
        code = create_rows(table->db);
    table->is_current = !code;
    if (!code)
        return &table->table;
    sqlite_close(&table->table);
    return NULL;
}
