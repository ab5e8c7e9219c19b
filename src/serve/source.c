/* Where the table of runs comes from: a folder of run directories, or a database.
 *
 * A folder has changed when its mtime has: runs are added and removed, and the run index is written at the end of
 * each.  A run that is being copied into it changes the mtime only at the start, so the folder counts as changed for
 * some seconds more.  A summary is read again only if its file was replaced.  Of a database, the table `runs` is read;
 * the files of a run are copied to a scratch folder when they are requested. */
#define _GNU_SOURCE
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "catalog/precision.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "db/db.h"
#include "rundir/run_dir.h"
#include "rundir/run_list.h"
#include "rundir/sweep.h"
#include "serve/runs.h"
#include "serve/serve.h"

enum { COPIES_MAX = 64, SETTLED_S = 10 };

struct row_source {
    char folder[FILE_PATH_MAX]; /* folder of runs; for a database, of the copies */
    char shown[FILE_PATH_MAX];
    struct timespec changed; /* mtime when it was read */
    bool is_settled;         /* that mtime was already old */
    const char *address;     /* database; NULL: a folder */
    struct db *db;           /* used by the thread that reads rows */
    double count, pushed_at; /* state when it was read */
    pthread_mutex_t lock;    /* guards the following fields */
    struct db *pulling;
    char copies[COPIES_MAX][RUN_ID_MAX]; /* most recently used first */
};

const struct run_row_column ROW_COLUMN[ROW_COLUMNS] = {
#define TEXT(constant, name, index)   {name, SUMMARY_INDEX_##index, true},
#define NUMBER(constant, name, index) {name, SUMMARY_INDEX_##index, false},
    ROWS_OWN(TEXT, NUMBER)
#undef TEXT
#undef NUMBER
#define ROW_TEXT(constant, name, index)   ({name, SUMMARY_INDEX_##index, true}, )
#define ROW_NUMBER(constant, name, index) ({name, SUMMARY_INDEX_##index, false}, )
#include "rundir/record.def"
};

const struct summary_field *run_row_figure(enum run_column column)
{
    enum summary_index index = (enum summary_index)ROW_COLUMN[column].index;
    const struct summary_field *field =
        index == SUMMARY_INDEX_none ? NULL : summary_index(summary_index_place(index));
    return field && field->label ? field : NULL;
}

/* ---- rows ---- */

void run_row_release(struct run_row *row)
{
    free(row->id);
    for (size_t i = 0; i < ROW_COLUMNS; i++)
        if (ROW_COLUMN[i].is_text)
            free(row->values[i].text);
    if (row->best) {
        free(row->best->conclusion);
        free(row->best->setting);
    }
    free(row->best);
}

void run_row_to_json(const struct run_row *row, struct json *json)
{
    char when[CLOCK_TEXT_MAX];
    json_string(json, "id", row->id);
    for (size_t i = 0; i < ROW_COLUMNS; i++)
        if (ROW_COLUMN[i].is_text)
            json_string(json, ROW_COLUMN[i].name, row->values[i].text);
        else if (i != ROW_CREATED)
            json_number(json, ROW_COLUMN[i].name, row->values[i].number);
        else
            json_string(json, ROW_COLUMN[i].name,
                        is_known(row->values[i].number)
                            ? clock_text(when, from_seconds(row->values[i].number))
                            : NULL);
}

static void set_text(struct run_row *row, enum run_column column, const char *text)
{
    free(row->values[column].text);
    row->values[column].text = text ? xstrdup(text) : NULL;
}

static void begin_row(struct run_row *row)
{
    *row = (struct run_row){.written_at = UNKNOWN};
    for (size_t i = 0; i < ROW_COLUMNS; i++)
        if (!ROW_COLUMN[i].is_text)
            row->values[i].number = UNKNOWN;
}

/* By the model's name. */
static void set_precision(struct run_row *row)
{
    char text[24] = "";
    double bits = row->values[ROW_MODEL].text ? bits_in_name(row->values[ROW_MODEL].text) : UNKNOWN;
    if (is_known(bits))
        str_format(text, sizeof text, "%g-bit", bits);
    set_text(row, ROW_PRECISION, str_or_null(text));
}

static void fill_row(struct run_row *row, const struct summary *summary)
{
    for (size_t i = 0; i < ROW_COLUMNS; i++) {
        if (ROW_COLUMN[i].index == SUMMARY_INDEX_none)
            continue;
        enum summary_index index = (enum summary_index)ROW_COLUMN[i].index;
        const struct summary_field *field = summary_index(summary_index_place(index));
        if (ROW_COLUMN[i].is_text)
            set_text(row, (enum run_column)i, summary_index_text(field, summary));
        else
            row->values[i].number = json_field_number(&field->at, summary);
    }
    set_precision(row);
}

/* ---- a folder ---- */

static const char *state_of(const char *directory, const struct run_list_entry *entry)
{
    if (entry->has_summary)
        return entry->summary.interrupted == 1 ? "interrupted" : "done";
    return run_dir_check_idle(directory, NULL) == ERR_BUSY ? "running" : "interrupted";
}

static void fill_from(const char *directory, const char *id, const struct run_list_entry *entry,
                      struct run_row *row)
{
    begin_row(row);
    row->id = xstrdup(id);
    row->written_at = entry->written_at;
    row->is_final = entry->has_summary;
    row->values[ROW_CREATED].number = !entry->has_summary ? entry->began_at
                                      : is_known(entry->summary.started_at)
                                          ? entry->summary.started_at
                                          : entry->summary.generated_at;
    set_text(row, ROW_NAME, str_last_part(id));
    set_text(row, ROW_KIND, run_kind_name(entry->kind));
    set_text(row, ROW_STATE, state_of(directory, entry));
    if (entry->has_summary)
        fill_row(row, &entry->summary);
}

enum err run_row_of(const char *directory, const char *id, struct run_row *out)
{
    struct run_list_entry entry;
    bool found;
    run_list_read(directory, &entry, &found);
    if (!found)
        return ERR_NOT_FOUND;
    fill_from(directory, id, &entry, out);
    run_list_entry_release(&entry);
    return ERR_OK;
}

struct folder_scan {
    const struct row_source *source;
    const struct row_handler *handler;
};

static bool wants_entry(void *context, const char *name, double written_at)
{
    const struct folder_scan *reading = context;
    return !is_known(written_at) ||
           !reading->handler->keep(reading->handler->context, name, written_at);
}

static enum err take_entry(void *context, const struct run_list_entry *entry)
{
    const struct folder_scan *reading = context;
    char *directory = path_join(reading->source->folder, entry->name);
    struct run_row row;
    fill_from(directory, entry->name, entry, &row);
    reading->handler->take(reading->handler->context, &row);
    free(directory);
    return ERR_OK;
}

static bool folder_time(const struct row_source *source, struct timespec *out)
{
    struct stat status;
    *out = (struct timespec){0};
    if (stat(source->folder, &status))
        return false;
    *out = status.st_mtim;
    return true;
}

static enum err read_folder(struct row_source *source, const struct row_handler *handler,
                            struct error *why)
{
    struct folder_scan reading = {source, handler};
    struct timespec before;
    (void)folder_time(source, &before);
    enum err err = run_list_visit(source->folder, wants_entry, take_entry, &reading, why);
    if (!err) {
        source->changed = before;
        source->is_settled = clock_wall() / NS_PER_S - before.tv_sec > SETTLED_S;
    }
    return err;
}

/* An attempt of a sweep by its path there: no other subdirectory is a run. */
static bool is_attempt(const char *sweep_directory, const char *path)
{
    struct sweep sweep;
    bool found = false;
    if (sweep_load(sweep_directory, &sweep, NULL))
        return false;
    for (size_t i = 0; i < sweep.count && !found; i++)
        found = sweep.attempts[i].path && !strcmp(sweep.attempts[i].path, path);
    sweep_release(&sweep);
    return found;
}

static bool is_run(const char *directory)
{
    enum run_dir_state state;
    return run_has_directory(directory) && !run_dir_inspect(directory, &state, NULL) &&
           state == RUN_DIR_HAS_RUN;
}

/* A run in the folder, even if the table does not have it yet: a plain name, or one and the path of an attempt.  Files
 * are opened below the folder only, and never through a link (run_open_confine). */
static enum err find_directory(const struct row_source *source, const char *id,
                               char to[static FILE_PATH_MAX], struct error *why)
{
    const char *slash = strchr(id, '/');
    size_t length = slash ? (size_t)(slash - id) : strlen(id);
    bool fits = id[0] && id[0] != '.' && length &&
                str_format(to, FILE_PATH_MAX, "%s/%.*s", source->folder, (int)length, id) &&
                (slash ? is_attempt(to, slash + 1) : is_run(to));
    if (fits && slash)
        fits = str_format(to, FILE_PATH_MAX, "%s/%s", source->folder, id) && run_has_directory(to);
    return fits ? ERR_OK : err_set(why, ERR_NOT_FOUND, "no run '%.100s'", plain_text(id).text);
}

/* ---- a database ---- */

/* Reconnects after a lost connection. */
static enum err connect_to(const struct row_source *source, struct db **db, struct error *why)
{
    return *db ? ERR_OK : db_open(db, source->address, false, why);
}

static enum err drop_failed(struct db **db, enum err err)
{
    if (err && err != ERR_NOT_FOUND) {
        db_free(*db);
        *db = NULL;
    }
    return err;
}

static void fill_from_db(struct run_row *row, const struct db_run *run)
{
    row->id = xstrdup(run->id);
    set_text(row, ROW_NAME, run->name);
    set_text(row, ROW_KIND, run->kind);
    bool has_ended = is_known(db_run_number(run, summary_index_place(SUMMARY_INDEX_finished)));
    bool was_stopped = db_run_number(run, summary_index_place(SUMMARY_INDEX_interrupted)) == 1;
    set_text(row, ROW_STATE, has_ended && !was_stopped ? "done" : "interrupted");
    row->values[ROW_CREATED].number = run->began_at;
    for (size_t i = 0; i < ROW_COLUMNS; i++) {
        if (ROW_COLUMN[i].index == SUMMARY_INDEX_none)
            continue;
        size_t figure = summary_index_place((enum summary_index)ROW_COLUMN[i].index);
        if (ROW_COLUMN[i].is_text)
            set_text(row, (enum run_column)i, db_run_text(run, figure));
        else
            row->values[i].number = db_run_number(run, figure);
    }
    set_precision(row);
}

static enum err take_db_run(void *context, const struct db_run *run)
{
    const struct row_handler *handler = context;
    struct run_row row;
    if (handler->keep(handler->context, run->id, run->pushed_at))
        return ERR_OK;
    begin_row(&row);
    row.written_at = run->pushed_at;
    row.is_final = true;
    row.is_attempt = run->sweep;
    fill_from_db(&row, run);
    handler->take(handler->context, &row);
    return ERR_OK;
}

static enum err read_database(struct row_source *source, const struct row_handler *handler,
                              struct error *why)
{
    const struct db_filter all = DB_ANY_RUN;
    enum err err = connect_to(source, &source->db, why);
    if (!err)
        err = db_stamp(source->db, &source->count, &source->pushed_at, why);
    if (!err)
        err = db_list(source->db, &all, take_db_run, (void *)handler, why);
    return drop_failed(&source->db, err);
}

static bool database_changed(struct row_source *source)
{
    double count, pushed_at;
    if (connect_to(source, &source->db, NULL) ||
        drop_failed(&source->db, db_stamp(source->db, &count, &pushed_at, NULL)))
        return true; /* reading reports the error */
    return count != source->count || pushed_at != source->pushed_at;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

static void remove_all(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void remove_copy(const struct row_source *source, const char *id)
{
    char path[FILE_PATH_MAX];
    if (id[0] && str_format(path, sizeof path, "%s/%s", source->folder, id))
        remove_all(path);
}

/* Moves an id to the front of the recently used copies; the last copy is evicted. */
static void use_copy(struct row_source *source, const char *id)
{
    size_t i = 0;
    while (i + 1 < COPIES_MAX && strcmp(source->copies[i], id) != 0)
        i++;
    if (strcmp(source->copies[i], id) != 0)
        remove_copy(source, source->copies[i]);
    memmove(source->copies[1], source->copies[0], i * sizeof source->copies[0]);
    str_copy(source->copies[0], sizeof source->copies[0], id);
}

static enum err copy_run(struct row_source *source, const char *id, char to[static FILE_PATH_MAX],
                         struct error *why)
{
    char parent[FILE_PATH_MAX];
    struct db_pulled pulled;
    if (strlen(id) != RUN_ID_MAX - 1 || id[strspn(id, "0123456789abcdef")] ||
        !str_format(parent, sizeof parent, "%s/%s", source->folder, id))
        return err_set(why, ERR_NOT_FOUND, "no run '%.100s'", plain_text(id).text);
    enum err err = connect_to(source, &source->pulling, why);
    if (!err)
        err = drop_failed(&source->pulling, db_pull(source->pulling, id, parent, &pulled, why));
    if (err)
        return err;
    use_copy(source, id);
    str_copy(to, FILE_PATH_MAX, pulled.directory);
    return ERR_OK;
}

enum err scratch_folder(char to[static FILE_PATH_MAX], struct error *why)
{
    const char *parent = str_or_null(getenv("TMPDIR"));
    if (str_format(to, FILE_PATH_MAX, "%s/ipw-copies-XXXXXX", parent ? parent : "/tmp") &&
        mkdtemp(to))
        return ERR_OK;
    to[0] = '\0';
    return err_set(why, ERR_IO, "cannot create a folder in %s", parent ? parent : "/tmp");
}

static enum err open_database(struct row_source *source, struct error *why)
{
    db_address_display(source->address, source->shown, sizeof source->shown);
    enum err err = scratch_folder(source->folder, why);
    if (!err)
        err = run_open_confine(source->folder, why);
    return err ? err : connect_to(source, &source->db, why);
}

/* ---- either source ---- */

enum err row_source_open(const struct serve_options *options, struct row_source **out,
                         struct error *why)
{
    struct row_source *source = *out = xcalloc(1, sizeof *source);
    pthread_mutex_init(&source->lock, NULL);
    source->address = options->db;
    if (source->address)
        return open_database(source, why);
    if (!str_copy(source->folder, sizeof source->folder, options->runs))
        return err_set(why, ERR_USAGE, "path too long: %.200s", options->runs);
    str_copy(source->shown, sizeof source->shown, options->runs);
    return run_open_confine(source->folder, why);
}

void row_source_close(struct row_source *source)
{
    if (!source)
        return;
    (void)!run_open_confine(NULL, NULL);
    db_free(source->db);
    db_free(source->pulling);
    if (source->address && source->folder[0])
        remove_all(source->folder);
    pthread_mutex_destroy(&source->lock);
    free(source);
}

const char *row_source_display(const struct row_source *source)
{
    return source->shown;
}

bool row_source_changed(struct row_source *source)
{
    struct timespec now;
    if (source->address)
        return database_changed(source);
    return !source->is_settled || !folder_time(source, &now) ||
           now.tv_sec != source->changed.tv_sec || now.tv_nsec != source->changed.tv_nsec;
}

enum err row_source_read(struct row_source *source, const struct row_handler *handler,
                         struct error *why)
{
    return source->address ? read_database(source, handler, why)
                           : read_folder(source, handler, why);
}

enum err row_source_directory(struct row_source *source, const char *id,
                              char to[static FILE_PATH_MAX], struct error *why)
{
    if (!source->address)
        return find_directory(source, id, to, why);
    pthread_mutex_lock(&source->lock);
    enum err err = copy_run(source, id, to, why);
    pthread_mutex_unlock(&source->lock);
    return err;
}
