#include "rundir/measured_layers.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"

#define FILE_MOST ((size_t)256 << 20)

static bool is_model(const struct jv *value)
{
    return jv_is_array(jv_get(value, "layers")) && jv_is_array(jv_get(value, "components"));
}

static enum err add_model(struct measured_layers *into, const struct jv *figures,
                          const struct jv *host, const char *file)
{
    struct measured_model *models = realloc(into->models, (into->count + 1) * sizeof *models);
    if (!models)
        return ERR_NO_MEMORY;
    into->models = models;
    models[into->count++] = (struct measured_model){figures, host, file};
    return ERR_OK;
}

static enum err add_models(struct measured_layers *into, const struct measured_file *file,
                           struct error *why)
{
    const struct jv *several = jv_get(file->tree, "models"), *host = jv_get(file->tree, "host");
    enum err err = ERR_OK;
    size_t before = into->count;
    if (is_model(file->tree))
        err = add_model(into, file->tree, host, file->path);
    for (const struct jv *one = jv_first(several); one && !err; one = jv_next(one))
        if (is_model(one))
            err = add_model(into, one, host, file->path);
    if (err)
        return err_set(why, err, "%s", err_text(err));
    if (into->count == before)
        return err_set(why, ERR_BAD_VALUE, "%s is no result of ipw layers -o: it has no layers",
                       file->path);
    return ERR_OK;
}

static enum err parse(const char *path, struct jv **tree, struct error *why)
{
    struct text bytes = {0};
    struct error where = {0};
    enum err err = file_read(path, FILE_MOST, &bytes, why);
    if (!err && (err = jv_parse(text_get(&bytes), bytes.length, tree, &where)))
        err_set(why, err, "%s is neither a run directory nor a result of ipw layers -o: %.120s",
                path, where.text);
    text_release(&bytes);
    return err;
}

static enum err add_file(struct measured_layers *into, const char *path, struct error *why)
{
    struct measured_file *files = realloc(into->files, (into->file_count + 1) * sizeof *files);
    char *copy = files ? strdup(path) : NULL;
    if (files)
        into->files = files;
    if (!copy)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    struct measured_file *file = &files[into->file_count++];
    *file = (struct measured_file){.path = copy};
    enum err err = parse(path, &file->tree, why);
    return err ? err : add_models(into, file, why);
}

/* The directory's name may hold what a pattern would take for its own. */
static enum err pattern_of(const char *directory, struct text *out)
{
    for (const char *at = directory; *at; at++)
        text_addf(out, strchr("*?[\\", *at) ? "\\%c" : "%c", *at);
    text_add(out, "/layers*.json");
    return out->failed ? ERR_NO_MEMORY : ERR_OK;
}

static enum err add_directory(struct measured_layers *into, const char *path, struct error *why)
{
    struct text pattern = {0};
    glob_t found = {0};
    enum err err = pattern_of(path, &pattern);
    int code = err ? GLOB_NOSPACE : glob(text_get(&pattern), 0, NULL, &found);
    text_release(&pattern);
    if (code == GLOB_NOSPACE)
        err = err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    for (size_t i = 0; !code && !err && i < found.gl_pathc; i++)
        if (file_is_regular(found.gl_pathv[i])) /* else who reads the run tells */
            err = add_file(into, found.gl_pathv[i], why);
    globfree(&found);
    return err;
}

enum err measured_layers_load(const char *path, struct measured_layers *into, struct error *why)
{
    enum err err = jv_available(why);
    if (err)
        return err;
    return file_is_directory(path) ? add_directory(into, path, why) : add_file(into, path, why);
}

void measured_layers_release(struct measured_layers *layers)
{
    for (size_t i = 0; i < layers->file_count; i++) {
        jv_free(layers->files[i].tree);
        free(layers->files[i].path);
    }
    free(layers->files);
    free(layers->models);
    *layers = (struct measured_layers){0};
}
