/* Pushes a run to the database in one transaction: its old rows are deleted, its files and queries are bulk-loaded, and
 * its row in `runs` is written last.  If the process is killed, the previous state remains. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "db/db.h"
#include "db/driver.h"
#include "port/json_read.h"
#include "rundir/journal.h"
#include "rundir/record.h"
#include "rundir/run_copy.h"
#include "rundir/run_list.h"
#include "rundir/summary.h"

enum { COLUMNS_MAX = 160 };
_Static_assert(DB_QUERIES_EXPORTS + RECORD_EXPORTS <= COLUMNS_MAX, "a row of `queries` fits");
_Static_assert(DB_RUNS_FIGURES + SUMMARY_INDEXES + 4 <= COLUMNS_MAX, "a row of `runs` fits");

struct push_state {
    struct db *db;
    struct run_copy copy;
    struct run_records records;
    struct summary summary;
    bool has_summary;
    enum db_type types[RECORD_EXPORTS]; /* types of the columns of `queries` */
    uint64_t queries;
    struct error why;
};

/* ---- values ---- */

static struct db_value text_value(const char *text)
{
    return (struct db_value){.type = DB_TEXT,
                             .is_null = !text,
                             .bytes = text ? text : "",
                             .length = text ? strlen(text) : 0};
}

static struct db_value integer_value(int64_t integer)
{
    return (struct db_value){.type = DB_INTEGER, .integer = integer};
}

/* A count outside the range of int64_t becomes NULL rather than another number. */
static struct db_value number_value(enum db_type type, double number)
{
    struct db_value value = {.type = type, .is_null = !is_known(number), .real = number};
    if (type != DB_REAL && !value.is_null) {
        value.is_null = fabs(number) >= 9.2e18;
        value.integer = value.is_null ? 0 : (int64_t)number;
    }
    return value;
}

static enum err copy_begin(struct db *db, enum db_table table, struct error *why)
{
    struct text columns = {0};
    text_addf(&columns, "%s (", db_table_name(table));
    db_add_columns(table, &columns);
    text_add(&columns, ")");
    enum err err = db->driver->copy_begin(db, text_get(&columns), db_column_count(table), why);
    text_release(&columns);
    return err;
}

/* ---- rows ---- */

static enum err copy_piece(void *context, size_t index, unsigned piece, const char *bytes,
                           size_t length, struct error *why)
{
    const struct push_state *push = context;
    const struct run_copy_file *file = &push->copy.files[index];
    const struct db_value values[] = {
        text_value(push->copy.id),
        integer_value((int64_t)index),
        integer_value(piece),
        text_value(file->name),
        integer_value((int64_t)file->size),
        integer_value(file->changed_ns),
        {.type = DB_BYTES, .bytes = bytes, .length = length},
    };
    return push->db->driver->copy_row(push->db, values, why);
}

static enum err copy_query(struct push_state *push, const struct jv *tree, const char *model)
{
    struct db_value values[COLUMNS_MAX];
    struct record record;
    record_from_json(tree, model, &record);
    values[0] = text_value(push->copy.id);
    for (size_t i = 0; i < RECORD_EXPORTS; i++) {
        const struct record_field *field = record_export(i);
        enum db_type type = push->types[i];
        bool is_run = field->role == ROLE_DERIVED && str_equal(field->export_name, "run");
        struct db_value *value = &values[DB_QUERIES_EXPORTS + i];
        if (type != DB_TEXT)
            *value = number_value(type, json_field_number(&field->at, &record));
        else if (field->role == ROLE_DERIVED)
            *value = text_value(is_run ? push->copy.name : model);
        else
            *value = text_value(json_field_text(&field->at, &record));
    }
    push->queries++;
    return push->db->driver->copy_row(push->db, values, &push->why);
}

/* A record may contain several models. */
static enum err take_record(void *context, const struct jv *record)
{
    enum err err = ERR_OK;
    for (const struct jv *model = jv_first_member(record_models(record)); model && !err;
         model = jv_next(model))
        err = copy_query(context, record, jv_key(model));
    return err;
}

static enum err copy_run_row(struct push_state *push, struct error *why)
{
    const struct summary *summary = push->has_summary ? &push->summary : NULL;
    double now = (double)clock_wall() * 1e-9;
    struct db_value values[COLUMNS_MAX] = {
        text_value(push->copy.id),
        text_value(push->copy.name),
        text_value(push->copy.kind),
        text_value(summary ? summary->host_name : NULL),
        text_value(push->copy.digest),
        integer_value((int64_t)push->copy.bytes),
        number_value(DB_INTEGER, push->records.format),
        number_value(DB_REAL, now),
        number_value(DB_REAL, is_known(push->copy.began_at) ? push->copy.began_at : now),
    };
    struct text whole = {0};
    if (summary)
        jv_print(summary->tree, &whole);
    for (size_t i = 0; i < SUMMARY_INDEXES; i++) {
        const struct db_column column = db_column(DB_RUNS, DB_RUNS_FIGURES + i);
        const struct summary_field *field = summary_index(i);
        values[DB_RUNS_FIGURES + i] =
            column.type == DB_TEXT
                ? text_value(summary_index_text(field, summary))
                : number_value(column.type, json_field_number(&field->at, &push->summary));
    }
    values[DB_RUNS_FIGURES + SUMMARY_INDEXES] = text_value(push->copy.header);
    values[DB_RUNS_FIGURES + SUMMARY_INDEXES + 1] = text_value(summary ? text_get(&whole) : NULL);
    values[DB_RUNS_FIGURES + SUMMARY_INDEXES + 2] = text_value(str_or_null(push->copy.sweep));
    values[DB_RUNS_FIGURES + SUMMARY_INDEXES + 3] = text_value(push->copy.path);
    enum err err = copy_begin(push->db, DB_RUNS, why);
    if (!err)
        err = push->db->driver->copy_row(push->db, values, why);
    if (!err)
        err = push->db->driver->copy_end(push->db, why);
    text_release(&whole);
    return err;
}

static enum err copy_files(struct push_state *push, struct error *why)
{
    enum err err = copy_begin(push->db, DB_FILES, why);
    if (!err)
        err = run_copy_read(&push->copy, copy_piece, push, why);
    return err ? err : push->db->driver->copy_end(push->db, why);
}

static enum err copy_queries(struct push_state *push, struct error *why)
{
    for (size_t i = 0; i < RECORD_EXPORTS; i++)
        push->types[i] = db_column(DB_QUERIES, DB_QUERIES_EXPORTS + i).type;
    enum err err = copy_begin(push->db, DB_QUERIES, why);
    if (!err)
        err = run_records_read(&push->records, take_record, push, why);
    if (err && push->why.text[0])
        *why = push->why;
    return err ? err : push->db->driver->copy_end(push->db, why);
}

/* ---- the transaction ---- */

static enum err delete_rows(struct db *db, const char *id, struct error *why)
{
    const char *values[] = {id};
    enum err err = db_query(db, "DELETE FROM files WHERE run_id = $1", values, 1, NULL, NULL, why);
    if (!err)
        err = db_query(db, "DELETE FROM queries WHERE run_id = $1", values, 1, NULL, NULL, why);
    return err ? err : db_query(db, "DELETE FROM runs WHERE id = $1", values, 1, NULL, NULL, why);
}

static enum err begin(struct db *db, const char *id, struct error *why)
{
    enum err err = db_run(db, db->driver->begin, why);
    return err || !db->driver->lock ? err : db_query(db, db->driver->lock, &id, 1, NULL, NULL, why);
}

static enum err replace_rows(struct push_state *push, struct db_pushed *out, struct error *why)
{
    const char *values[] = {push->copy.id, push->copy.digest};
    bool known = false, same = false;
    enum err err = db_exists(push->db, "SELECT 1 FROM runs WHERE id = $1", values, 1, &known, why);
    if (!err && known)
        err = db_exists(push->db, "SELECT 1 FROM runs WHERE id = $1 AND digest = $2", values, 2,
                        &same, why);
    out->outcome = same ? DB_SAME : known ? DB_REPLACED : DB_NEW;
    if (err || same)
        return err;
    err = run_records_open(push->copy.directory, &push->records, why);
    if (!err && known)
        err = delete_rows(push->db, push->copy.id, why);
    if (!err)
        err = copy_files(push, why);
    if (!err)
        err = copy_queries(push, why);
    return err ? err : copy_run_row(push, why);
}

static enum err prepare(struct push_state *push, const char *directory, struct error *why)
{
    struct error absence;
    enum err err = run_copy_open(directory, &push->copy, why);
    if (!err)
        push->has_summary = summary_load(directory, &push->summary, &absence) == ERR_OK;
    return err;
}

static enum err push_run(struct db *db, const char *directory, struct db_pushed *out,
                         struct error *why)
{
    struct push_state push = {.db = db};
    *out = (struct db_pushed){0};
    summary_init(&push.summary);
    enum err err = prepare(&push, directory, why);
    bool begun = !err;
    if (!err)
        err = begin(db, push.copy.id, why);
    if (!err)
        err = replace_rows(&push, out, why);
    if (!err)
        err = db_run(db, "COMMIT", why);
    else if (begun)
        db_roll_back(db);
    if (!err)
        run_pending_clear(push.copy.directory);
    chars_copy(out->id, push.copy.id);
    out->queries = err ? 0 : push.queries;
    out->bytes = err ? 0 : push.copy.bytes;
    summary_release(&push.summary);
    run_records_close(&push.records);
    run_copy_release(&push.copy);
    return err;
}

/* The runs of a sweep are pushed first: a sweep in the database has all its runs. */
enum err db_push(struct db *db, const char *directory, struct db_pushed *out, struct error *why)
{
    struct run_inputs runs = {0};
    struct db_pushed sum = {0}, one;
    enum err err = ERR_OK;
    run_inputs_find(&directory, 1, false, &runs);
    for (size_t i = 0; !err && i < runs.count; i++) {
        bool is_itself = str_equal(runs.paths[i], directory); /* also for a sweep without runs */
        err = is_itself ? ERR_OK : push_run(db, runs.paths[i], &one, why);
        sum.queries += err || is_itself ? 0 : one.queries;
        sum.bytes += err || is_itself ? 0 : one.bytes;
    }
    run_inputs_release(&runs);
    if (!err)
        err = push_run(db, directory, out, why);
    out->queries += err ? 0 : sum.queries;
    out->bytes += err ? 0 : sum.bytes;
    return err;
}

/* Includes the runs of a sweep. */
static enum err delete_all(struct db *db, const char *id, struct error *why)
{
    enum err err =
        db_query(db, "DELETE FROM files WHERE run_id IN (SELECT id FROM runs WHERE sweep = $1)",
                 &id, 1, NULL, NULL, why);
    if (!err)
        err = db_query(db,
                       "DELETE FROM queries WHERE run_id IN (SELECT id FROM runs WHERE sweep = $1)",
                       &id, 1, NULL, NULL, why);
    if (!err)
        err = db_query(db, "DELETE FROM runs WHERE sweep = $1", &id, 1, NULL, NULL, why);
    return err ? err : delete_rows(db, id, why);
}

enum err db_delete(struct db *db, const char *id, struct error *why)
{
    bool known = false;
    enum err err = begin(db, id, why);
    if (!err)
        err = db_exists(db, "SELECT 1 FROM runs WHERE id = $1", &id, 1, &known, why);
    if (!err && !known)
        err = err_set(why, ERR_NOT_FOUND, "%s has no run %s", db->shown, id);
    if (!err)
        err = delete_all(db, id, why);
    if (!err)
        return db_run(db, "COMMIT", why);
    db_roll_back(db);
    return err;
}

enum err db_push_measured(const char *address, const char *directory, struct db_pushed *out,
                          struct error *why)
{
    struct db *db = NULL;
    char *kept = db_address_without_password(address);
    /* The push may succeed even if no marker can be written. */
    (void)!run_pending_set(directory, kept, why);
    free(kept);
    enum err err = db_open(&db, address, true, why);
    if (!err)
        err = db_push(db, directory, out, why);
    db_free(db);
    return err;
}

void db_push_pending(const char *folder, const char *address, db_take_pushed *take, void *context)
{
    struct run_inputs runs;
    run_inputs_find(&folder, 1, true, &runs);
    for (size_t i = 0; i < runs.count; i++) {
        struct error reason = {0};
        struct db_pushed pushed = {0};
        struct db *db = NULL;
        char *kept = run_pending_get(runs.paths[i]);
        if (!kept)
            continue;
        enum err failed = db_open(&db, address ? address : kept, true, &reason);
        if (!failed)
            failed = db_push(db, runs.paths[i], &pushed, &reason);
        db_free(db);
        free(kept);
        take(context, runs.paths[i], &pushed, failed ? &reason : NULL);
    }
    run_inputs_release(&runs);
}

/* ---- from a database ---- */

/* Pulls a run from the database: its files are copied piece by piece in constant memory into a temporary directory,
 * which is then renamed.  One transaction, so that a concurrent push of the same run cannot mix two states. */

struct stored_file {
    struct run_copy_file file;
    int64_t number, pieces;
};

struct pull_state {
    struct db *db;
    char id[RUN_ID_MAX], digest[RUN_ID_MAX], name[256];
    bool found;
    struct stored_file *files;
    size_t count, capacity;
    struct run_import import;
    struct error why;
};

static enum err take_run(void *context, const struct db_run *run)
{
    struct pull_state *pull = context;
    if (!str_equal(run->id, pull->id))
        return ERR_OK;
    pull->found = chars_copy(pull->digest, run->digest) && chars_copy(pull->name, run->name);
    return pull->found ? ERR_OK : ERR_BAD_VALUE;
}

static enum err take_file(void *context, const struct db_value *values, size_t count)
{
    struct pull_state *pull = context;
    XGROW(pull->files, pull->count, pull->capacity);
    struct stored_file *stored = &pull->files[pull->count];
    *stored = (struct stored_file){.number = values[0].integer, .pieces = values[4].integer};
    if (count != 5 || !db_text(&values[1]) || !chars_copy(stored->file.name, values[1].bytes))
        return ERR_BAD_VALUE;
    stored->file.size = (uint64_t)values[2].integer;
    stored->file.changed_ns = values[3].integer;
    pull->count++;
    return ERR_OK;
}

static enum err take_piece(void *context, const struct db_value *values, size_t count)
{
    struct pull_state *pull = context;
    return count == 1 && !values->is_null
               ? run_import_put(&pull->import, values->bytes, values->length, &pull->why)
               : ERR_BAD_VALUE;
}

static enum err pull_file(struct pull_state *pull, const struct stored_file *stored,
                          struct error *why)
{
    char number[24], piece[24];
    const char *values[] = {pull->id, number, piece};
    enum err err = run_import_file(&pull->import, &stored->file, why);
    chars_format(number, "%lld", (long long)stored->number);
    for (long long i = 0; !err && i < stored->pieces; i++) {
        chars_format(piece, "%lld", i);
        err = db_query(pull->db,
                       "SELECT content FROM files WHERE run_id = $1 AND file = $2 AND piece = $3",
                       values, 3, take_piece, pull, why);
    }
    if (err && pull->why.text[0])
        *why = pull->why;
    return err;
}

static enum err pull_files(struct pull_state *pull, struct error *why)
{
    const char *values[] = {pull->id};
    enum err err = db_query(pull->db,
                            "SELECT file, name, size, changed_ns, count(*) FROM files "
                            "WHERE run_id = $1 GROUP BY file, name, size, changed_ns ORDER BY file",
                            values, 1, take_file, pull, why);
    for (size_t i = 0; !err && i < pull->count; i++)
        err = pull_file(pull, &pull->files[i], why);
    return run_import_end(&pull->import, err, why);
}

static enum err pull_run(struct db *db, const char *id, const char *parent, struct db_pulled *out,
                         struct error *why)
{
    struct pull_state pull = {.db = db};
    struct db_filter filter = DB_ANY_RUN;
    filter.run = id;
    if (!chars_copy(pull.id, id))
        return err_explain(why, ERR_NOT_FOUND);
    enum err err = db_list(db, &filter, take_run, &pull, why);
    if (!err && !pull.found)
        err = err_set(why, ERR_NOT_FOUND, "%s has no run %s", db->shown, pull.id);
    if (!err)
        err = run_import_begin(&pull.import, parent, pull.name, pull.id, pull.digest, why);
    if (!err && !pull.import.was_there)
        err = pull_files(&pull, why);
    if (!err)
        out->directory = xstrdup(pull.import.directory);
    out->was_there = pull.import.was_there;
    run_import_release(&pull.import);
    free(pull.files);
    return err;
}

/* ---- sweeps ---- */

struct attempts {
    struct attempt {
        char id[RUN_ID_MAX];
        char *path;
    } *items;
    size_t count, capacity;
};

static enum err take_attempt(void *context, const struct db_run *run)
{
    struct attempts *attempts = context;
    struct attempt *item = XADD(attempts->items, attempts->count, attempts->capacity);
    *item = (struct attempt){.path = run->path ? xstrdup(run->path) : NULL};
    return item->path && chars_copy(item->id, run->id) ? ERR_OK : ERR_BAD_VALUE;
}

static enum err pull_attempts(struct db *db, const char *sweep, const char *directory,
                              struct error *why)
{
    struct attempts attempts = {0};
    struct db_filter filter = DB_ANY_RUN;
    filter.sweep = sweep;
    enum err err = db_list(db, &filter, take_attempt, &attempts, why);
    for (size_t i = 0; !err && i < attempts.count; i++) {
        char *parent;
        struct db_pulled pulled = {0};
        err = run_copy_parent(directory, attempts.items[i].path, &parent, why);
        if (!err)
            err = pull_run(db, attempts.items[i].id, parent, &pulled, why);
        free(pulled.directory);
        free(parent);
    }
    for (size_t i = 0; i < attempts.count; i++)
        free(attempts.items[i].path);
    free(attempts.items);
    return err;
}

enum err db_pull(struct db *db, const char *id, const char *parent, struct db_pulled *out,
                 struct error *why)
{
    *out = (struct db_pulled){0};
    enum err err = db_run(db, db->driver->begin_snapshot, why);
    if (err)
        return err;
    err = pull_run(db, id, parent, out, why);
    if (!err)
        err = pull_attempts(db, id, out->directory, why);
    if (!err)
        err = db_run(db, "COMMIT", why);
    else
        db_roll_back(db);
    if (err) {
        free(out->directory);
        out->directory = NULL;
    }
    return err;
}
