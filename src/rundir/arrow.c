/* A dataset as Hugging Face saves it to disk, and as the Python IPW reads it: an Arrow stream, with
 * dataset_info.json for its columns and state.json for its files. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/json.h"
#include "core/text.h"
#include "port/arrow_write.h"
#include "port/json_read.h"
#include "rundir/record_schema.h"
#include "rundir/run_dir.h"
#include "rundir/store.h"

#define DATA_FILE "data-00000-of-00001.arrow"

struct arrow_store {
    char directory[512];
    char temporary[640]; /* "" once it has its name */
    struct arrow_field *root;
    struct arrow_writer *writer;
};

static enum err arrow_available(struct error *why)
{
    enum err err = jv_available(why);
    return err ? err : arrow_write_available(why);
}

static void free_store(struct arrow_store *arrow)
{
    arrow_writer_close(arrow->writer);
    arrow_field_free(arrow->root);
    if (arrow->temporary[0])
        unlink(arrow->temporary);
    free(arrow);
}

/* The schema's own copy of the features, without which `datasets` would guess them. */
static enum err open_writer(struct arrow_store *arrow, struct error *why)
{
    struct text text = {0};
    struct json json;
    json_init(&json, &text, false);
    json_object(&json, NULL);
    json_object(&json, "info");
    record_schema_features(arrow->root, "features", &json);
    json_object_end(&json);
    json_object_end(&json);
    enum err err = text.failed ? err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY))
                               : arrow_writer_open(arrow->temporary, arrow->root, "huggingface",
                                                   text_get(&text), &arrow->writer, why);
    text_release(&text);
    return err;
}

static enum err arrow_open(const struct store_run *run, struct store *out, struct error *why)
{
    struct arrow_store *arrow = calloc(1, sizeof *arrow);
    if (!arrow)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    enum err err = ERR_OK;
    if (!str_copy(arrow->directory, sizeof arrow->directory, run->directory) ||
        !str_format(arrow->temporary, sizeof arrow->temporary, "%s/.%s.%ld.tmp", run->directory,
                    DATA_FILE, (long)getpid()))
        err = err_set(why, ERR_BAD_VALUE, "too long a path: %.200s", run->directory);
    if (!err)
        err = record_schema_new(run->model, run->metadata, &arrow->root, why);
    if (!err)
        err = open_writer(arrow, why);
    if (err)
        free_store(arrow);
    else
        out->state = arrow;
    return err;
}

static enum err arrow_put(struct store *store, const struct jv *record, struct error *why)
{
    const struct arrow_store *arrow = store->state;
    return arrow_writer_add(arrow->writer, record, why);
}

static enum err put_info(const struct arrow_store *arrow, struct error *why)
{
    struct text text = {0};
    struct json json;
    json_init(&json, &text, true);
    json_object(&json, NULL);
    json_string(&json, "citation", "");
    json_string(&json, "description", "");
    record_schema_features(arrow->root, "features", &json);
    json_string(&json, "homepage", "");
    json_string(&json, "license", "");
    json_object_end(&json);
    enum err err = run_dir_put(arrow->directory, "dataset_info.json", &text, why);
    text_release(&text);
    return err;
}

static enum err put_state(const struct arrow_store *arrow, uint64_t fingerprint, struct error *why)
{
    struct text text = {0};
    struct json json;
    char digits[17];
    str_format(digits, sizeof digits, "%016" PRIx64, fingerprint);
    json_init(&json, &text, true);
    json_object(&json, NULL);
    json_array(&json, "_data_files");
    json_object(&json, NULL);
    json_string(&json, "filename", DATA_FILE);
    json_object_end(&json);
    json_array_end(&json);
    json_string(&json, "_fingerprint", digits);
    json_null(&json, "_format_columns");
    json_object(&json, "_format_kwargs");
    json_object_end(&json);
    json_null(&json, "_format_type");
    json_bool(&json, "_output_all_columns", false);
    json_null(&json, "_split");
    json_object_end(&json);
    enum err err = run_dir_put(arrow->directory, "state.json", &text, why);
    text_release(&text);
    return err;
}

/* state.json is last: it is what names the others. */
static enum err arrow_finish(struct store *store, const struct summary *summary, struct error *why)
{
    (void)summary;
    struct arrow_store *arrow = store->state;
    char path[640];
    uint64_t fingerprint;
    enum err err = arrow_writer_finish(arrow->writer, &fingerprint, why);
    if (err)
        return err;
    if (!str_format(path, sizeof path, "%s/%s", arrow->directory, DATA_FILE) ||
        rename(arrow->temporary, path))
        return err_set(why, err_from_errno(errno), "cannot write %s: %s", path, strerror(errno));
    arrow->temporary[0] = '\0';
    err = put_info(arrow, why);
    return err ? err : put_state(arrow, fingerprint, why);
}

static void arrow_close(struct store *store)
{
    free_store(store->state);
}

const struct store_driver store_arrow = {
    .name = "arrow",
    .summary = "a Hugging Face dataset on disk, readable by datasets and by the Python IPW",
    .available = arrow_available,
    .open = arrow_open,
    .put = arrow_put,
    .finish = arrow_finish,
    .close = arrow_close,
};
