/* The run index over one table of rows: which table, what an update has to write, and the rows that commands write into
 * catalog.db.  As a store (`ipw list stores`) it uses no records, only the summary. */
#define _GNU_SOURCE
#include "rundir/run_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/sqlite.h"
#include "rundir/run_index_table.h"
#include "rundir/run_list.h"
#include "rundir/run_rows.h"
#include "rundir/store.h"

#define INDEX_FILE "catalog.db"

enum {
    BATCH = 256
}; /* rows of a transaction: it is short, and takes few megabytes with their summaries */

struct run_index {
    char *path; /* of catalog.db */
    struct row_table *table;
    bool is_shared;              /* of a command: never in memory */
    bool is_file, was_set_aside; /* whether the table is that file; and whether it is a new one */
    unsigned opened;             /* how many tables there were */
};

/* ---- opening ---- */

static void close_table(struct run_index *index)
{
    if (index->table)
        index->table->ops->close(index->table);
    index->table = NULL;
    index->opened++;
}

static enum err open_file(struct run_index *index, struct error *why)
{
    enum row_access mode = index->is_shared ? ROW_SHARED : ROW_CONFINED;
    close_table(index);
    index->is_file = true;
    return row_table_open_file(index->path, mode, &index->table, why);
}

static void copy_row(void *context, const struct run_row *row)
{
    run_update_put(context, row, NULL);
}

/* Rows that catalog.db has need not be read from the directories again. */
static void copy_file(struct run_index *index)
{
    const struct run_query all = {.with_attempts = true};
    struct row_table *file = NULL;
    struct run_update *update;
    size_t running;
    if (index->path && !row_table_open_file(index->path, ROW_READ_ONLY, &file, NULL) &&
        !run_update_begin(index, &update, NULL)) {
        (void)!file->ops->select(file, &all, copy_row, update, NULL);
        (void)!run_update_end(update, true, &running, NULL);
    }
    if (file)
        file->ops->close(file);
}

static void open_memory(struct run_index *index)
{
    close_table(index);
    index->is_file = false;
    if (!sqlite_load(NULL) && (index->table = row_table_open_memory()))
        copy_file(index);
    if (!index->table)
        index->table = row_table_open_array();
}

/* The path is without links, which the dashboard does not follow. */
static char *path_in(const char *parent)
{
    char *real = parent ? realpath(parent, NULL) : NULL;
    char *path = real ? path_join(real, INDEX_FILE) : NULL;
    free(real);
    return path;
}

struct run_index *run_index_open(const char *parent)
{
    struct run_index *index = XNEW(index);
    index->path = path_in(parent);
    if (!index->path || access(parent, W_OK) || sqlite_load(NULL) ||
        sqlite_check_path(index->path, NULL)) {
        open_memory(index);
        return index;
    }
    enum err err = open_file(index, NULL);
    if (err)
        (void)!run_index_recover(index, err);
    return index;
}

void run_index_close(struct run_index *index)
{
    if (!index)
        return;
    close_table(index);
    free(index->path);
    free(index);
}

/* It may be a file of the user, so it is kept.  SQLite would roll its journal back into the new one. */
static bool set_aside(struct run_index *index)
{
    char *journal = xformat("%s-journal", index->path), *aside = xformat("%s.damaged", index->path);
    close_table(index);
    bool is_aside = (!unlink(journal) || errno == ENOENT) && !rename(index->path, aside);
    free(journal);
    free(aside);
    index->was_set_aside = is_aside;
    return is_aside && !open_file(index, NULL);
}

bool run_index_recover(struct run_index *index, enum err err)
{
    if (!index->is_file)
        return false;
    if (err == ERR_BAD_VALUE && !index->was_set_aside && set_aside(index))
        return true;
    if (index->is_shared)
        return false;
    log_warn("%s: %s: the table of runs continues in memory", index->path, err_text(err));
    open_memory(index);
    return true;
}

uint64_t run_index_stamp(struct run_index *index)
{
    return (uint64_t)index->opened << 56 ^ index->table->ops->stamp(index->table);
}

/* ---- updating ---- */

/* A row that the table has. */
struct known {
    char *id;
    int64_t written_at;
    double created_at;
    bool is_running, is_seen;
};

struct run_update {
    struct row_table *table;
    struct known *known; /* sorted by id */
    size_t known_count, capacity;
    struct run_change changes[BATCH];
    size_t count, running;
    enum err err; /* the first */
    struct error why;
};

static void take_known(void *context, const struct run_row *row)
{
    struct run_update *update = context;
    *XADD(update->known, update->known_count, update->capacity) =
        (struct known){.id = xstrdup(row->id),
                       .written_at = row->written_at,
                       .created_at = run_row_number(row, ROW_CREATED),
                       .is_running = run_row_is_running(row)};
}

static int by_id(const void *left, const void *right)
{
    const struct known *a = left, *b = right;
    return strcmp(a->id, b->id);
}

static struct known *find_known(const struct run_update *update, const char *id)
{
    const struct known wanted = {.id = (char *)id};
    return update->known_count
               ? bsearch(&wanted, update->known, update->known_count, sizeof *update->known, by_id)
               : NULL;
}

enum err run_update_begin(struct run_index *index, struct run_update **out, struct error *why)
{
    struct run_update *update = XNEW(update);
    size_t ignored;
    update->table = index->table;
    *out = update;
    enum err err = index->table->ops->known(index->table, take_known, update, why);
    if (update->known_count)
        qsort(update->known, update->known_count, sizeof *update->known, by_id);
    if (err) {
        (void)!run_update_end(update, false, &ignored, NULL);
        *out = NULL;
    }
    return err;
}

bool run_update_keep(struct run_update *update, const char *id, int64_t written_at)
{
    struct known *known = find_known(update, id);
    bool is_same = known && written_at != INTEGER_UNKNOWN && known->written_at == written_at;
    if (is_same)
        known->is_seen = true;
    return is_same;
}

/* Nothing is known after an error: the caller begins again. */
static void write_changes(struct run_update *update)
{
    if (!update->err && update->count)
        update->err =
            update->table->ops->write(update->table, update->changes, update->count, &update->why);
    for (size_t i = 0; i < update->count; i++) {
        free(update->changes[i].row);
        free(update->changes[i].summary);
    }
    update->count = 0;
}

static void add_change(struct run_update *update, struct run_change change)
{
    if (update->count == BATCH)
        write_changes(update);
    update->changes[update->count++] = change;
}

/* A run that has not ended has no time to tell whether its row changed. */
static bool is_unchanged(const struct known *known, const struct run_row *row)
{
    return known && known->written_at == INTEGER_UNKNOWN && row->written_at == INTEGER_UNKNOWN &&
           known->is_running == run_row_is_running(row) &&
           is_same_number(known->created_at, run_row_number(row, ROW_CREATED));
}

void run_update_put(struct run_update *update, const struct run_row *row,
                    const struct summary *summary)
{
    struct known *known = find_known(update, row->id);
    if (known)
        known->is_seen = true;
    update->running += run_row_is_running(row);
    if (is_unchanged(known, row))
        return;
    bool keeps = summary && update->table->keeps_summaries;
    add_change(update, (struct run_change){.row = run_row_copy(row),
                                           .summary = keeps ? run_rows_summary(summary) : NULL,
                                           .before = known ? known->written_at : INTEGER_UNKNOWN});
}

static void delete_unseen(struct run_update *update)
{
    struct run_row row;
    for (size_t i = 0; i < update->known_count; i++) {
        const struct known *known = &update->known[i];
        if (known->is_seen)
            continue;
        run_row_init(&row, known->id);
        add_change(update, (struct run_change){.row = run_row_copy(&row),
                                               .is_deleted = true,
                                               .before = known->written_at});
    }
}

enum err run_update_end(struct run_update *update, bool is_complete, size_t *running,
                        struct error *why)
{
    if (is_complete)
        delete_unseen(update);
    write_changes(update);
    enum err err = update->err;
    *running = update->running;
    if (err)
        err_set(why, err, "%s", update->why.text);
    for (size_t i = 0; i < update->known_count; i++)
        free(update->known[i].id);
    free(update->known);
    free(update);
    return err;
}

/* ---- asking ---- */

enum err run_index_select(struct run_index *index, const struct run_query *query,
                          run_take_row *take, void *context, struct error *why)
{
    return index->table->ops->select(index->table, query, take, context, why);
}

enum err run_index_count(struct run_index *index, const struct run_query *query, size_t *out,
                         struct error *why)
{
    return index->table->ops->count(index->table, query, out, why);
}

enum err run_index_texts(struct run_index *index, enum run_column column, size_t limit,
                         void (*take)(void *context, const char *text), void *context,
                         struct error *why)
{
    return index->table->ops->texts(index->table, column, limit, take, context, why);
}

/* ---- catalog.db of a folder, for commands ---- */

/* A damaged index is made again, since all of it comes from the directories, and `write` is called a second time. */
static enum err with_file(struct run_index *index,
                          enum err (*write)(struct run_index *index, const void *context,
                                            struct error *why),
                          const void *context, struct error *why)
{
    enum err err = sqlite_load(why);
    if (!err)
        err = sqlite_check_path(index->path, why);
    if (err)
        return err;
    index->is_shared = true;
    do {
        err = open_file(index, why);
        if (!err)
            err = write(index, context, why);
    } while (err && run_index_recover(index, err));
    close_table(index);
    return err;
}

struct ended {
    const char *directory, *name;
    const struct summary *summary;
};

static enum err write_run(struct run_index *index, const void *context, struct error *why)
{
    const struct ended *run = context;
    struct run_row row;
    if (run->summary)
        run_row_of_summary(run->name, run->summary, &row);
    else
        run_row_init(&row, run->name);
    row.written_at = summary_written_at(run->directory);
    struct run_change change = {.row = run_row_copy(&row),
                                .summary = run->summary ? run_rows_summary(run->summary) : NULL,
                                .is_forced = true};
    enum err err = index->table->ops->write(index->table, &change, 1, why);
    free(change.row);
    free(change.summary);
    return err;
}

/* Of the index of the run in an absolute directory. */
static char *path_beside(const char *directory)
{
    const char *name = str_last_part(directory);
    return xformat("%.*s%s", (int)(name - directory), directory, INDEX_FILE);
}

enum err run_index_put(const char *directory, const struct summary *summary, struct error *why)
{
    char *real = realpath(directory, NULL);
    if (!real)
        return err_errno(why, errno, "no run directory %s", directory);
    const struct ended run = {real, str_last_part(real), summary};
    struct run_index index = {.path = path_beside(real)};
    enum err err = run.name[0]
                       ? with_file(&index, write_run, &run, why)
                       : err_set(why, ERR_BAD_VALUE, "not the name of a run directory: %s", real);
    free(index.path);
    free(real);
    return err;
}

struct listed {
    const char *parent;
    const struct run_list *list;
};

static enum err write_list(struct run_index *index, const void *context, struct error *why)
{
    const struct listed *listed = context;
    struct run_update *update;
    size_t running;
    enum err err = run_update_begin(index, &update, why);
    if (err)
        return err;
    for (size_t i = 0; i < listed->list->count; i++) {
        const struct run_list_entry *entry = &listed->list->entries[i];
        struct run_row row;
        if (entry->has_summary && run_update_keep(update, entry->name, entry->written_at))
            continue;
        char *directory = path_join(listed->parent, entry->name);
        run_row_of_entry(entry->name, directory, entry, &row);
        run_update_put(update, &row, entry->has_summary ? &entry->summary : NULL);
        free(directory);
    }
    return run_update_end(update, true, &running, why);
}

enum err run_index_refresh(const char *parent, const struct run_list *list, struct error *why)
{
    struct run_index index = {.path = path_join(parent, INDEX_FILE)};
    enum err err = with_file(&index, write_list, &(struct listed){parent, list}, why);
    free(index.path);
    return err;
}

/* ---- the store ---- */

static enum err sqlite_open_store(const struct store_run *run, struct store *out, struct error *why)
{
    char *real = realpath(run->directory, NULL);
    if (!real)
        return err_errno(why, errno, "no run directory %s", run->directory);
    char *path = path_beside(real);
    enum err err = sqlite_check_path(path, why);
    free(path);
    if (err)
        free(real);
    else
        out->state = real;
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
