#include "datasets/hf/shards.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"

/* Features of thousands of columns make these files long, but not longer. */
#define DESCRIPTION_MAX ((size_t)16 * 1024 * 1024)

static enum err join(const char *directory, const char *name, char path[static FILE_PATH_MAX],
                     struct error *why)
{
    if (str_format(path, FILE_PATH_MAX, "%s/%s", directory, name))
        return ERR_OK;
    return err_set(why, ERR_BAD_VALUE, "the path is too long: %.100s...", directory);
}

static enum err read_json(const char *directory, const char *name, struct jv **out,
                          struct error *why)
{
    char path[FILE_PATH_MAX];
    struct text text = {0};
    struct error reason = {0};
    *out = NULL;
    enum err err = join(directory, name, path, why);
    if (!err)
        err = file_read(path, DESCRIPTION_MAX, &text, why);
    if (!err) {
        err = jv_parse(text_get(&text), text.length, out, &reason);
        if (err)
            err_set(why, err, "%s: %s", path, reason.text);
    }
    text_release(&text);
    return err;
}

static bool has(const char *directory, const char *name)
{
    char path[FILE_PATH_MAX];
    return join(directory, name, path, NULL) == ERR_OK && file_exists(path);
}

/* ---- splits ---- */

static void list_splits(const struct jv *splits, struct text *out)
{
    for (const struct jv *split = jv_first(splits); split; split = jv_next(split))
        text_addf(out, "%s%s", out->length ? ", " : "", jv_text(split) ? jv_text(split) : "?");
}

static const char *choose_split(const struct jv *splits, const char *wanted)
{
    if (!wanted)
        return jv_count(splits) == 1 ? jv_text(jv_first(splits)) : NULL;
    for (const struct jv *split = jv_first(splits); split; split = jv_next(split))
        if (jv_text(split) && strcmp(jv_text(split), wanted) == 0)
            return wanted;
    return NULL;
}

/* The directory of one split of several. */
static enum err enter_split(const char *directory, const char *wanted,
                            char path[static FILE_PATH_MAX], struct error *why)
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
        err = join(directory, split, path, why);
    else if (wanted)
        err = err_set(why, ERR_NOT_FOUND, "%s has no split '%s': it has %.120s", directory, wanted,
                      text_get(&known));
    else
        err = err_set(why, ERR_USAGE, "%s has the splits %.120s: choose with split=", directory,
                      text_get(&known));
    text_release(&known);
    jv_free(dict);
    return err;
}

/* ---- files ---- */

static enum err add_shard(struct shards *shards, const char *directory, const char *name,
                          struct error *why)
{
    char path[FILE_PATH_MAX];
    /* A name from a file that came from elsewhere leads nowhere else. */
    if (!name || !*name || strchr(name, '/'))
        return err_set(why, ERR_BAD_VALUE, "%s/state.json: '%s' is no name of a data file",
                       directory, name ? name : "");
    enum err err = join(directory, name, path, why);
    if (err)
        return err;
    char **paths = grow(shards->paths, &shards->capacity, shards->count, sizeof *paths);
    if (paths)
        shards->paths = paths;
    char *copy = paths ? strdup(path) : NULL;
    if (!copy)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    shards->paths[shards->count++] = copy;
    return ERR_OK;
}

static enum err read_state(const char *directory, const char *wanted, struct shards *out,
                           struct error *why)
{
    struct jv *state;
    enum err err = read_json(directory, "state.json", &state, why);
    if (err)
        return err;
    const char *split = jv_text(jv_get(state, "_split"));
    if (wanted && split && strcmp(wanted, split) != 0)
        err = err_set(why, ERR_NOT_FOUND, "%s holds the split '%s', not '%s'", directory, split,
                      wanted);
    const struct jv *files = jv_get(state, "_data_files");
    for (const struct jv *file = jv_first(files); file && !err; file = jv_next(file))
        err = add_shard(out, directory, jv_text(jv_get(file, "filename")), why);
    if (!err && out->count == 0)
        err = err_set(why, ERR_BAD_VALUE, "%s/state.json names no data files", directory);
    jv_free(state);
    return err;
}

enum err shards_find(const char *directory, const char *split, struct shards *out,
                     struct error *why)
{
    char path[FILE_PATH_MAX];
    *out = (struct shards){0};
    if (!file_is_directory(directory))
        return err_set(why, ERR_NOT_FOUND, "%s is not a directory", directory);
    enum err err = join(directory, "", path, why);
    if (!err && has(directory, "dataset_dict.json"))
        err = enter_split(directory, split, path, why);
    else if (!err)
        str_copy(path, sizeof path, directory);
    if (!err && !has(path, "state.json"))
        err = err_set(why, ERR_NOT_FOUND,
                      "%s has no state.json: it is not a dataset saved by save_to_disk", path);
    if (!err)
        err = read_state(path, split, out, why);
    if (err)
        shards_release(out);
    return err;
}

void shards_release(struct shards *shards)
{
    for (size_t i = 0; i < shards->count; i++)
        free(shards->paths[i]);
    free(shards->paths);
    *shards = (struct shards){0};
}
