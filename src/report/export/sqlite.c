/* An SQLite database with two tables: `runs`, one row per run, and `queries`, one flat row per query.  All in one
 * transaction; other runs in the database are kept, also one of the same name unless it is to be replaced. */
#include <unistd.h>

#include "port/file.h"
#include "port/sqlite.h"
#include "report/export/export.h"
#include "rundir/run_rows.h"

struct database {
    sqlite3 *db;
    sqlite3_stmt *insert;
    bool existed, committed;
};

static enum err result(const struct export *export, int code, struct error *why)
{
    const struct database *database = export->state;
    return code ? run_rows_failed(database->db, export->run->output, code, why) : ERR_OK;
}

/* ---- tables ---- */

static void add_table(struct text *sql)
{
    text_add(sql, "CREATE TABLE IF NOT EXISTS queries (");
    for (size_t i = 0; i < RECORD_EXPORTS; i++)
        text_addf(sql, "%s\"%s\" %s", i ? ", " : "", record_export(i)->export_name,
                  run_rows_type(&record_export(i)->at));
    text_add(sql, "); CREATE INDEX IF NOT EXISTS queries_of_run ON queries (run)");
}

static void add_insert(struct text *sql)
{
    text_add(sql, "INSERT INTO queries (");
    for (size_t i = 0; i < RECORD_EXPORTS; i++)
        text_addf(sql, "%s\"%s\"", i ? ", " : "", record_export(i)->export_name);
    text_add(sql, ") VALUES (?");
    for (size_t i = 1; i < RECORD_EXPORTS; i++)
        text_add(sql, ", ?");
    text_add(sql, ")");
}

/* One statement with the run's name as parameter; returns an SQLite code, and whether it found a row. */
static int with_name(sqlite3 *db, const char *sql, const char *name, bool *found)
{
    sqlite3_stmt *statement;
    int code = sqlite.prepare_v2(db, sql, -1, &statement, NULL);
    if (!code)
        code = sqlite.bind_text(statement, 1, name, -1, SQLITE_STATIC);
    if (!code)
        code = sqlite.step(statement);
    *found = code == SQLITE_ROW;
    sqlite.finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Columns that an earlier version created under another name. */
static int rename_columns(sqlite3 *db)
{
    int code = SQLITE_OK;
    for (size_t i = 0; !code && i < RECORD_EXPORTS; i++) {
        const struct record_field *field = record_export(i);
        struct text sql = {0};
        bool found = false;
        if (!field->former_export_name)
            continue;
        code = with_name(db, "SELECT 1 FROM pragma_table_info('queries') WHERE name = ?",
                         field->former_export_name, &found);
        text_addf(&sql, "ALTER TABLE queries RENAME COLUMN \"%s\" TO \"%s\"",
                  field->former_export_name, field->export_name);
        if (!code && found)
            code = sql.failed ? SQLITE_NOMEM : sqlite.exec(db, text_get(&sql), NULL, NULL, NULL);
        text_release(&sql);
    }
    return code;
}

/* A run of that name is replaced only with --replace. */
static int prepare(struct database *database, const struct export_run *run, bool *taken)
{
    struct text table = {0}, insert = {0};
    bool ignored;
    add_table(&table);
    add_insert(&insert);
    int code = run_rows_create(database->db, "run");
    if (!code)
        code = sqlite.exec(database->db, text_get(&table), NULL, NULL, NULL);
    if (!code)
        code = rename_columns(database->db);
    if (!code)
        code =
            with_name(database->db, "SELECT 1 FROM runs WHERE run = ? LIMIT 1", run->name, taken);
    *taken = *taken && !run->replace;
    if (!code && !*taken)
        code = with_name(database->db, "DELETE FROM queries WHERE run = ?", run->name, &ignored);
    if (!code)
        code = sqlite.prepare_v2(database->db, text_get(&insert), -1, &database->insert, NULL);
    text_release(&table);
    text_release(&insert);
    return code;
}

static enum err sqlite_begin(struct export *export, struct error *why)
{
    const char *path = export->run->output;
    bool taken = false;
    struct database *database = export->state;
    database->existed = file_exists(path);
    enum err err = sqlite_load(why);
    if (!err)
        err = sqlite_check_path(path, why);
    if (err)
        return err;
    if (database->existed && !file_is_regular(path))
        return err_set(why, ERR_BAD_VALUE, "%s is not a regular file: name one for the database",
                       path);
    int code = run_rows_open(path, &database->db);
    if (!code)
        code = prepare(database, export->run, &taken);
    if (!code && taken)
        return err_set(why, ERR_BUSY,
                       "%s already has a run '%s': --replace replaces it, --name NAME adds this "
                       "one under another name",
                       path, export->run->name);
    return result(export, code, why);
}

/* ---- rows ---- */

static enum err sqlite_record(struct export *export, const struct export_record *record,
                              struct error *why)
{
    struct database *database = export->state;
    int code = SQLITE_OK;
    for (size_t i = 0; !code && i < RECORD_EXPORTS; i++) {
        const struct record_field *field = record_export(i);
        code = run_rows_bind(database->insert, (int)i + 1, &field->at,
                             export_text(export->run, &record->fields, field),
                             json_field_number(&field->at, &record->fields));
    }
    if (!code && (code = sqlite.step(database->insert)) == SQLITE_DONE)
        code = sqlite.reset(database->insert);
    return result(export, code, why);
}

static enum err sqlite_end(struct export *export, struct error *why)
{
    struct database *database = export->state;
    int code = run_rows_put(database->db, "run", export->run->name, export->run->summary);
    if (!code)
        code = sqlite.exec(database->db, "COMMIT", NULL, NULL, NULL);
    database->committed = !code;
    return result(export, code, why);
}

/* Rolls back uncommitted changes; removes a database created for nothing. */
static void sqlite_release(struct export *export)
{
    struct database *database = export->state;
    if (!database->db)
        return;
    sqlite.finalize(database->insert);
    sqlite.close(database->db);
    if (!database->existed && !database->committed)
        unlink(export->run->output);
}

const struct export_driver export_sqlite = {
    .name = "sqlite",
    .summary = "an SQLite database with the tables runs and queries; appends to an existing one",
    .makes_files = true,
    .available = sqlite_load,
    .state_size = sizeof(struct database),
    .begin = sqlite_begin,
    .record = sqlite_record,
    .end = sqlite_end,
    .release = sqlite_release,
};
