/* A run out of the database: its files, piece by piece in constant memory, into a directory that appears whole.  All of
 * it in one transaction, so that a push of the same run meanwhile does not mix two states. */
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/text.h"
#include "core/units.h"
#include "db/db.h"
#include "db/driver.h"
#include "rundir/run_copy.h"

struct stored_file {
    struct run_copy_file file;
    int64_t number, pieces;
};

struct pulling {
    struct db *db;
    char id[RUN_ID_MAX], digest[RUN_ID_MAX], name[256];
    bool found;
    struct stored_file *files;
    size_t count, capacity;
    struct run_arrival arrival;
    struct error why;
};

static enum err take_run(void *context, const struct db_run *run)
{
    struct pulling *pull = context;
    if (strcmp(run->id, pull->id) != 0)
        return ERR_OK;
    pull->found = str_copy(pull->digest, sizeof pull->digest, run->digest) &&
                  str_copy(pull->name, sizeof pull->name, run->name);
    return pull->found ? ERR_OK : ERR_BAD_VALUE;
}

static enum err take_file(void *context, const struct db_value *values, size_t count)
{
    struct pulling *pull = context;
    struct stored_file *files = grow(pull->files, &pull->capacity, pull->count, sizeof *files);
    if (!files)
        return ERR_NO_MEMORY;
    pull->files = files;
    struct stored_file *stored = &files[pull->count];
    *stored = (struct stored_file){.number = values[0].integer, .pieces = values[4].integer};
    if (count != 5 || !db_text(&values[1]) ||
        !str_copy(stored->file.name, sizeof stored->file.name, values[1].bytes))
        return ERR_BAD_VALUE;
    stored->file.size = (uint64_t)values[2].integer;
    stored->file.changed_ns = values[3].integer;
    pull->count++;
    return ERR_OK;
}

static enum err take_piece(void *context, const struct db_value *values, size_t count)
{
    struct pulling *pull = context;
    return count == 1 && !values->is_null
               ? run_arrival_put(&pull->arrival, values->bytes, values->length, &pull->why)
               : ERR_BAD_VALUE;
}

static enum err pull_file(struct pulling *pull, const struct stored_file *stored, struct error *why)
{
    char number[24], piece[24];
    const char *values[] = {pull->id, number, piece};
    enum err err = run_arrival_file(&pull->arrival, &stored->file, why);
    str_format(number, sizeof number, "%lld", (long long)stored->number);
    for (long long i = 0; !err && i < stored->pieces; i++) {
        str_format(piece, sizeof piece, "%lld", i);
        err = db_query(pull->db,
                       "SELECT content FROM files WHERE run_id = $1 AND file = $2 AND piece = $3",
                       values, 3, take_piece, pull, why);
    }
    if (err && pull->why.text[0])
        *why = pull->why;
    return err;
}

static enum err pull_files(struct pulling *pull, struct error *why)
{
    const char *values[] = {pull->id};
    enum err err = db_query(pull->db,
                            "SELECT file, name, size, changed_ns, count(*) FROM files "
                            "WHERE run_id = $1 GROUP BY file, name, size, changed_ns ORDER BY file",
                            values, 1, take_file, pull, why);
    for (size_t i = 0; !err && i < pull->count; i++)
        err = pull_file(pull, &pull->files[i], why);
    return run_arrival_end(&pull->arrival, err, why);
}

static enum err pull_run(struct db *db, const char *id, const char *parent, struct db_pulled *out,
                         struct error *why)
{
    struct pulling pull = {.db = db};
    struct db_filter filter = DB_ANY_RUN;
    filter.run = id;
    if (!str_copy(pull.id, sizeof pull.id, id))
        return err_explain(why, ERR_NOT_FOUND);
    enum err err = db_list(db, &filter, take_run, &pull, why);
    if (!err && !pull.found)
        err = err_set(why, ERR_NOT_FOUND, "%s has no run %s", db->shown, pull.id);
    if (!err)
        err = run_arrival_begin(&pull.arrival, parent, pull.name, pull.id, pull.digest, why);
    if (!err && !pull.arrival.was_there)
        err = pull_files(&pull, why);
    str_copy(out->directory, sizeof out->directory, pull.arrival.directory);
    out->was_there = pull.arrival.was_there;
    free(pull.files);
    return err;
}

/* ---- sweeps ---- */

struct attempts {
    struct attempt {
        char id[RUN_ID_MAX], path[512];
    } *items;
    size_t count, capacity;
};

static enum err take_attempt(void *context, const struct db_run *run)
{
    struct attempts *attempts = context;
    struct attempt *items =
        grow(attempts->items, &attempts->capacity, attempts->count, sizeof *items);
    if (!items)
        return ERR_NO_MEMORY;
    attempts->items = items;
    struct attempt *item = &items[attempts->count++];
    return run->path && str_copy(item->id, sizeof item->id, run->id) &&
                   str_copy(item->path, sizeof item->path, run->path)
               ? ERR_OK
               : ERR_BAD_VALUE;
}

static enum err pull_attempts(struct db *db, const char *sweep, const char *directory,
                              struct error *why)
{
    struct attempts attempts = {0};
    struct db_filter filter = DB_ANY_RUN;
    filter.sweep = sweep;
    enum err err = db_list(db, &filter, take_attempt, &attempts, why);
    for (size_t i = 0; !err && i < attempts.count; i++) {
        char parent[FILE_PATH_MAX];
        struct db_pulled pulled;
        err = run_copy_place(directory, attempts.items[i].path, parent, sizeof parent, why);
        if (!err)
            err = pull_run(db, attempts.items[i].id, parent, &pulled, why);
    }
    free(attempts.items);
    return err;
}

enum err db_pull(struct db *db, const char *id, const char *parent, struct db_pulled *out,
                 struct error *why)
{
    *out = (struct db_pulled){0};
    enum err err = db_run(db, db->driver->begin_reading, why);
    if (err)
        return err;
    err = pull_run(db, id, parent, out, why);
    if (!err)
        err = pull_attempts(db, id, out->directory, why);
    if (!err)
        return db_run(db, "COMMIT", why);
    db_roll_back(db);
    return err;
}
