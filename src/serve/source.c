/* Where the table of runs comes from: a folder of run directories, or a database.
 *
 * A folder has changed when its mtime has: runs are added and removed, and the run index is written at the end of
 * each.  A run that is being copied into it changes the mtime only at the start, so the folder counts as changed for
 * some seconds more.  A summary is read only if it is not the one that the index has.  Of a database, the table `runs`
 * is read; the files of a run are copied to a scratch folder when they are requested. */
#define _GNU_SOURCE
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/clock.h"
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
    char *folder; /* folder of runs; for a database, of the copies; NULL: not opened */
    char *shown;
    struct timespec changed; /* mtime when it was read */
    bool is_settled;         /* that mtime was already old */
    const char *address;     /* database; NULL: a folder */
    struct db *db;           /* used by the thread that reads rows */
    double count, pushed_at; /* state when it was read */
    pthread_mutex_t lock;    /* guards the following fields */
    struct db *pulling;
    char copies[COPIES_MAX][RUN_ID_MAX]; /* most recently used first */
};

/* ---- a folder ---- */

struct folder_scan {
    const struct row_source *source;
    const struct row_handler *handler;
};

static bool wants_entry(void *context, const char *name, int64_t written_at)
{
    const struct folder_scan *reading = context;
    return !reading->handler->keep(reading->handler->context, name, written_at);
}

static enum err take_entry(void *context, const struct run_list_entry *entry)
{
    const struct folder_scan *reading = context;
    char *directory = path_join(reading->source->folder, entry->name);
    struct run_row row;
    run_row_of_entry(entry->name, directory, entry, &row);
    reading->handler->take(reading->handler->context, &row,
                           entry->has_summary ? &entry->summary : NULL);
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
        found = sweep.attempts[i].path && str_equal(sweep.attempts[i].path, path);
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
static enum err find_directory(const struct row_source *source, const char *id, char **to,
                               struct error *why)
{
    const char *slash = strchr(id, '/');
    size_t length = slash ? (size_t)(slash - id) : strlen(id);
    char *first = xformat("%s/%.*s", source->folder, (int)length, id);
    char *whole = path_join(source->folder, id);
    bool is_there = length && id[0] != '.';
    if (is_there && slash)
        is_there = is_attempt(first, slash + 1) && run_has_directory(whole);
    else if (is_there)
        is_there = is_run(whole);
    free(first);
    if (is_there) {
        *to = whole;
        return ERR_OK;
    }
    free(whole);
    return err_set(why, ERR_NOT_FOUND, "no run '%.100s'", plain_text(id).text);
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

static void row_of_db(const struct db_run *run, struct run_row *out)
{
    run_row_init(out, run->id);
    out->written_at = (int64_t)(run->pushed_at * (double)NS_PER_S);
    out->is_attempt = run->sweep;
    for (size_t i = 0; i < SUMMARY_INDEXES; i++)
        if (run_row_is_text(ROW_OWN + i))
            out->values[ROW_OWN + i].text = db_run_text(run, i);
        else
            out->values[ROW_OWN + i].number = db_run_number(run, i);
    bool has_ended = is_known(db_run_number(run, summary_index_place(SUMMARY_INDEX_finished)));
    bool was_stopped = db_run_number(run, summary_index_place(SUMMARY_INDEX_interrupted)) == 1;
    out->values[ROW_NAME].text = run->name;
    out->values[ROW_KIND].text = run->kind;
    out->values[ROW_STATE].text = has_ended && !was_stopped ? "done" : "interrupted";
    out->values[ROW_CREATED].number = run->began_at;
    out->values[ROW_PRECISION].text = run_row_precision(out);
}

static enum err take_db_run(void *context, const struct db_run *run)
{
    const struct row_handler *handler = context;
    struct run_row row;
    row_of_db(run, &row);
    if (!handler->keep(handler->context, row.id, row.written_at))
        handler->take(handler->context, &row, NULL);
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
    char *path = path_join(source->folder, id);
    if (id[0])
        remove_all(path);
    free(path);
}

/* Moves an id to the front of the recently used copies; the last copy is evicted. */
static void use_copy(struct row_source *source, const char *id)
{
    size_t i = 0;
    while (i + 1 < COPIES_MAX && !str_equal(source->copies[i], id))
        i++;
    if (!str_equal(source->copies[i], id))
        remove_copy(source, source->copies[i]);
    memmove(source->copies[1], source->copies[0], i * sizeof source->copies[0]);
    chars_copy(source->copies[0], id);
}

static enum err copy_run(struct row_source *source, const char *id, char **to, struct error *why)
{
    struct db_pulled pulled;
    if (strlen(id) != RUN_ID_MAX - 1 || id[strspn(id, "0123456789abcdef")])
        return err_set(why, ERR_NOT_FOUND, "no run '%.100s'", plain_text(id).text);
    char *parent = path_join(source->folder, id);
    enum err err = connect_to(source, &source->pulling, why);
    if (!err)
        err = drop_failed(&source->pulling, db_pull(source->pulling, id, parent, &pulled, why));
    free(parent);
    if (err)
        return err;
    use_copy(source, id);
    *to = pulled.directory;
    return ERR_OK;
}

enum err scratch_folder(char **to, struct error *why)
{
    const char *given = str_or_null(getenv("TMPDIR"));
    const char *parent = given ? given : "/tmp";
    char *path = path_join(parent, "ipw-copies-XXXXXX");
    *to = mkdtemp(path);
    if (*to)
        return ERR_OK;
    free(path);
    return err_set(why, ERR_IO, "cannot create a folder in %s", parent);
}

static enum err open_database(struct row_source *source, struct error *why)
{
    source->shown = db_address_display(source->address);
    enum err err = scratch_folder(&source->folder, why);
    if (!err)
        run_open_confine(source->folder);
    return err ? err : connect_to(source, &source->db, why);
}

/* ---- either source ---- */

enum err row_source_open(const struct serve_options *options, struct row_source **out,
                         struct error *why)
{
    struct row_source *source = *out = XNEW(source);
    pthread_mutex_init(&source->lock, NULL);
    source->address = options->db;
    if (source->address)
        return open_database(source, why);
    source->folder = xstrdup(options->runs);
    source->shown = xstrdup(options->runs);
    run_open_confine(source->folder);
    return ERR_OK;
}

void row_source_close(struct row_source *source)
{
    if (!source)
        return;
    run_open_confine(NULL);
    db_free(source->db);
    db_free(source->pulling);
    if (source->address && source->folder)
        remove_all(source->folder);
    free(source->folder);
    free(source->shown);
    pthread_mutex_destroy(&source->lock);
    free(source);
}

const char *row_source_display(const struct row_source *source)
{
    return source->shown;
}

const char *row_source_folder(const struct row_source *source)
{
    return source->address ? NULL : source->folder;
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

enum err row_source_directory(struct row_source *source, const char *id, char **to,
                              struct error *why)
{
    *to = NULL;
    if (!source->address)
        return find_directory(source, id, to, why);
    pthread_mutex_lock(&source->lock);
    enum err err = copy_run(source, id, to, why);
    pthread_mutex_unlock(&source->lock);
    return err;
}
