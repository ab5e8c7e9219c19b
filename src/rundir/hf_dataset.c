/* A dataset as Hugging Face saves it to disk: an Arrow stream, dataset_info.json for its columns and state.json for its
 * files. */
#include "rundir/hf_dataset.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/json.h"
#include "core/text.h"
#include "port/json_read.h"
#include "rundir/run_dir.h"

#define DATA_FILE "data-00000-of-00001.arrow"

struct hf_dataset {
    char directory[512];
    struct arrow_field *root;
    struct arrow_writer *writer;
};

static void schema_features(const struct arrow_field *root, const char *key, struct json *json)
{
    static const char *const TYPES[] = {
        [ARROW_TEXT] = "string",
        [ARROW_DOUBLE] = "float64",
        [ARROW_INT64] = "int64",
        [ARROW_BOOL] = "bool",
    };
    json_object(json, key);
    if (root->type == ARROW_STRUCT) {
        for (const struct arrow_field *child = root->first; child; child = child->next)
            schema_features(child, child->name, json);
    } else {
        json_string(json, "dtype", TYPES[root->type]);
        json_string(json, "_type", "Value");
    }
    json_object_end(json);
}

/* The schema's own copy of the features, without which `datasets` would guess them. */
static enum err open_writer(struct hf_dataset *dataset, struct error *why)
{
    struct text text = {0};
    struct json json;
    json_init(&json, &text, false);
    json_object(&json, NULL);
    json_object(&json, "info");
    schema_features(dataset->root, "features", &json);
    json_object_end(&json);
    json_object_end(&json);
    enum err err = text.failed
                       ? err_no_memory(why)
                       : arrow_writer_open(dataset->directory, DATA_FILE, dataset->root,
                                           "huggingface", text_get(&text), &dataset->writer, why);
    text_release(&text);
    return err;
}

enum err hf_dataset_available(struct error *why)
{
    enum err err = jv_available(why);
    return err ? err : arrow_write_available(why);
}

enum err hf_dataset_open(const char *directory, struct arrow_field *root, struct hf_dataset **out,
                         struct error *why)
{
    struct hf_dataset *dataset = root ? calloc(1, sizeof *dataset) : NULL;
    enum err err = dataset ? ERR_OK : err_no_memory(why);
    if (!dataset)
        arrow_field_free(root);
    else
        dataset->root = root;
    if (!err && !str_copy(dataset->directory, sizeof dataset->directory, directory))
        err = err_set(why, ERR_BAD_VALUE, "too long a path: %.200s", directory);
    if (!err)
        err = open_writer(dataset, why);
    if (err)
        hf_dataset_close(dataset);
    *out = err ? NULL : dataset;
    return err;
}

enum err hf_dataset_add(struct hf_dataset *dataset, const struct jv *row, struct error *why)
{
    return arrow_writer_add(dataset->writer, row, why);
}

static enum err put_info(const struct hf_dataset *dataset, struct error *why)
{
    struct text text = {0};
    struct json json;
    json_init(&json, &text, true);
    json_object(&json, NULL);
    json_string(&json, "citation", "");
    json_string(&json, "description", "");
    schema_features(dataset->root, "features", &json);
    json_string(&json, "homepage", "");
    json_string(&json, "license", "");
    json_object_end(&json);
    enum err err = run_dir_put(dataset->directory, "dataset_info.json", &text, why);
    text_release(&text);
    return err;
}

static enum err put_state(const struct hf_dataset *dataset, uint64_t fingerprint, struct error *why)
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
    enum err err = run_dir_put(dataset->directory, "state.json", &text, why);
    text_release(&text);
    return err;
}

/* state.json is last: it is what names the others. */
enum err hf_dataset_finish(struct hf_dataset *dataset, struct error *why)
{
    uint64_t fingerprint;
    enum err err = arrow_writer_finish(dataset->writer, &fingerprint, why);
    if (!err)
        err = put_info(dataset, why);
    return err ? err : put_state(dataset, fingerprint, why);
}

void hf_dataset_close(struct hf_dataset *dataset)
{
    if (!dataset)
        return;
    arrow_writer_close(dataset->writer);
    arrow_field_free(dataset->root);
    free(dataset);
}
