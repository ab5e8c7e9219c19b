/* A directory written by save_to_disk of the Python library `datasets`: Arrow files (shards) and JSON files
 * that describe them.  The number of rows is known only after reading: the count in dataset_info.json is
 * not updated when a dataset is filtered before it is saved. */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "datasets/dataset.h"
#include "datasets/row_feed.h"
#include "port/arrow.h"
#include "port/file.h"
#include "port/json_read.h"

struct shards {
    char **paths; /* in order */
    size_t count, capacity;
};

/* Thousands of columns make these files long. */
#define DESCRIPTION_MAX ((size_t)16 * 1024 * 1024)

static enum err read_json(const char *directory, const char *name, struct jv **out,
                          struct error *why)
{
    char *path = path_join(directory, name);
    enum err err = jv_read(path, DESCRIPTION_MAX, out, why);
    free(path);
    return err;
}

static bool has_file(const char *directory, const char *name)
{
    char *path = path_join(directory, name);
    bool exists = file_exists(path);
    free(path);
    return exists;
}

bool dataset_is_saved(const char *directory)
{
    return has_file(directory, "state.json") || has_file(directory, "dataset_dict.json");
}

/* ---- splits ---- */

static void list_splits(const struct jv *splits, struct text *out)
{
    JV_EACH (split, jv_first(splits))
        text_addf(out, "%s%s", out->length ? ", " : "", jv_text(split) ? jv_text(split) : "?");
}

static const char *choose_split(const struct jv *splits, const char *wanted)
{
    if (!wanted)
        return jv_count(splits) == 1 ? jv_text(jv_first(splits)) : NULL;
    JV_EACH (split, jv_first(splits))
        if (jv_text(split) && str_equal(jv_text(split), wanted))
            return wanted;
    return NULL;
}

/* The directory of one of several splits, which the caller frees. */
static enum err enter_split(const char *directory, const char *wanted, char **path,
                            struct error *why)
{
    struct jv *dict;
    enum err err = read_json(directory, "dataset_dict.json", &dict, why);
    if (err)
        return err;
    const struct jv *splits = jv_get(dict, "splits");
    const char *split = choose_split(splits, wanted);
    struct text known = {0};
    list_splits(splits, &known);
    if (split && !strchr(split, '/'))
        *path = path_join(directory, split);
    else if (wanted)
        err = err_set(why, ERR_NOT_FOUND, "%s has no split '%s' (splits: %.120s)", directory,
                      wanted, text_get(&known));
    else
        err = err_set(why, ERR_USAGE, "%s has several splits: choose with split= (%.120s)",
                      directory, text_get(&known));
    text_release(&known);
    jv_free(dict);
    return err;
}

/* ---- files ---- */

static enum err add_shard(struct shards *shards, const char *directory, const char *name,
                          struct error *why)
{
    /* A name must not lead to another directory. */
    if (!name || !*name || strchr(name, '/'))
        return err_set(why, ERR_BAD_VALUE, "%s/state.json: '%s' is not the name of a data file",
                       directory, name ? name : "");
    *XADD(shards->paths, shards->count, shards->capacity) = path_join(directory, name);
    return ERR_OK;
}

static enum err read_state(const char *directory, const char *wanted, struct shards *out,
                           struct error *why)
{
    struct jv *state;
    enum err err = read_json(directory, "state.json", &state, why);
    if (err)
        return err;
    const char *split = jv_get_text(state, "_split");
    if (wanted && split && !str_equal(wanted, split))
        err = err_set(why, ERR_NOT_FOUND, "%s holds the split '%s', not '%s'", directory, split,
                      wanted);
    const struct jv *files = jv_get(state, "_data_files");
    for (const struct jv *file = jv_first(files); file && !err; file = jv_next(file))
        err = add_shard(out, directory, jv_get_text(file, "filename"), why);
    if (!err && out->count == 0)
        err = err_set(why, ERR_BAD_VALUE, "%s/state.json names no data files", directory);
    jv_free(state);
    return err;
}

static void shards_release(struct shards *shards)
{
    memory_free_strings(shards->paths, shards->count);
    *shards = (struct shards){0};
}

/* The Arrow files of a directory written by save_to_disk: of one dataset (state.json), or of one of several
 * splits (dataset_dict.json); `split` may be NULL when there is only one. */
static enum err shards_find(const char *directory, const char *split, struct shards *out,
                            struct error *why)
{
    char *path = NULL;
    *out = (struct shards){0};
    if (!file_is_directory(directory))
        return err_set(why, ERR_NOT_FOUND, "%s is not a directory", directory);
    enum err err = ERR_OK;
    if (has_file(directory, "dataset_dict.json"))
        err = enter_split(directory, split, &path, why);
    else
        path = xstrdup(directory);
    if (!err && !has_file(path, "state.json"))
        err = err_set(why, ERR_NOT_FOUND,
                      "%s has no state.json: it is not a dataset saved by save_to_disk", path);
    if (!err)
        err = read_state(path, split, out, why);
    if (err)
        shards_release(out);
    free(path);
    return err;
}

/* ---- rows ---- */

struct hf_rows {
    struct shards shards;
    size_t next_shard;
    struct arrow_reader *reader; /* reader of the current shard; NULL between shards */
    uint64_t next_row;
};

static enum err next_row(void *state, struct jv **row, uint64_t *number, struct error *why)
{
    struct hf_rows *rows = state;
    *row = NULL;
    for (;;) {
        if (!rows->reader && rows->next_shard == rows->shards.count)
            return ERR_OK;
        if (!rows->reader) {
            const char *path = rows->shards.paths[rows->next_shard];
            enum err err = arrow_reader_open(path, &rows->reader, why);
            if (err)
                return err;
            rows->next_shard++;
        }
        enum err err = arrow_reader_next(rows->reader, row, why);
        if (err || *row) {
            *number = rows->next_row++;
            /* A corrupt Arrow file has no next row: the error is not about this row alone. */
            return err == ERR_BAD_VALUE ? ERR_IO : err;
        }
        arrow_reader_close(rows->reader);
        rows->reader = NULL;
    }
}

static void close_rows(void *state)
{
    struct hf_rows *rows = state;
    if (rows->reader)
        arrow_reader_close(rows->reader);
    shards_release(&rows->shards);
    free(rows);
}

static enum err open_rows(const struct dataset *dataset, const struct params *params,
                          const char *path, void *state, struct error *why)
{
    (void)dataset;
    struct hf_rows *rows = state;
    return shards_find(path, params_get(params, "split"), &rows->shards, why);
}

static enum err hf_open(const struct dataset_config *config, struct dataset *out, struct error *why)
{
    static const struct row_file DIRECTORY = {
        .placeholder = "DIR",
        .state_size = sizeof(struct hf_rows),
        .open = open_rows,
        .source = {.next = next_row, .close = close_rows, .unit = "row", .count = -1},
    };
    return row_feed_open_file(config->params, &DIRECTORY, out, why);
}

static const struct param_spec PARAMS[] = {
    {"path", "DIR", "the directory written by save_to_disk"},
    {"split", "NAME", "the split, if the directory has several"},
    ROW_FEED_PARAMS,
    {NULL, NULL, NULL},
};

const struct dataset_driver dataset_hf = {
    .name = "hf",
    .summary = "a directory written by save_to_disk (Arrow)",
    .params = PARAMS,
    .open = hf_open,
    .next = row_feed_next,
    .close = row_feed_close,
};
