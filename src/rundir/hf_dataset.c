/* A dataset on disk in the format of Hugging Face's save_to_disk: an Arrow stream, dataset_info.json for its columns
 * and state.json for its files; and the store that writes a run's records so, with record.def's schema. */
#include "rundir/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/json_read.h"
#include "rundir/record.h"
#include "rundir/run_dir.h"

#define DATA_FILE "data-00000-of-00001.arrow"

struct hf_dataset {
    char *directory;
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

/* The features as schema metadata, without which `datasets` would infer them. */
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
    enum err err = arrow_writer_open(dataset->directory, DATA_FILE, dataset->root, "huggingface",
                                     text_get(&text), &dataset->writer, why);
    text_release(&text);
    return err;
}

enum err hf_dataset_open(const char *directory, struct arrow_field *root, struct hf_dataset **out,
                         struct error *why)
{
    struct hf_dataset *dataset = XNEW(dataset);
    dataset->directory = xstrdup(directory);
    dataset->root = root;
    arrow_field_drop_empty(root);
    enum err err = open_writer(dataset, why);
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
    chars_format(digits, "%016" PRIx64, fingerprint);
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

/* state.json is written last: it names the other files. */
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
    free(dataset->directory);
    free(dataset);
}

/* ---- the schema: a struct for each object that the paths of record.def lead through ---- */

/* Every number is a double: a later item may have a fraction. */
static enum arrow_type type_of(const struct jv *example)
{
    if (jv_is_bool(example))
        return ARROW_BOOL;
    return is_known(jv_number(example)) ? ARROW_DOUBLE : ARROW_TEXT;
}

static void add_metadata(struct arrow_field *parent, const char *name, const struct jv *metadata)
{
    struct arrow_field *field = arrow_field_add(parent, name, ARROW_STRUCT);
    JV_EACH (child, jv_first_member(metadata))
        arrow_field_add(field, jv_key(child), type_of(child));
}

/* The struct of that name in `parent`, added unless it is the last one. */
static struct arrow_field *enter(struct arrow_field *parent, const struct json_field_name *name)
{
    char key[FIELD_NAME_MAX];
    struct arrow_field *last = parent->first;
    while (last && last->next)
        last = last->next;
    if (last && strlen(last->name) == name->length &&
        memcmp(last->name, name->bytes, name->length) == 0)
        return last;
    return arrow_field_add(parent, json_field_key(name, key), ARROW_STRUCT);
}

static void add_leaf(struct arrow_field *parent, const struct record_field *field, const char *name,
                     const struct jv *metadata)
{
    static const enum arrow_type TYPES[] = {
        [FIELD_TEXT] = ARROW_TEXT,     [FIELD_NUMBER] = ARROW_DOUBLE,
        [FIELD_INTEGER] = ARROW_INT64, [FIELD_INTEGRAL] = ARROW_INT64,
        [FIELD_BOOL] = ARROW_BOOL,     [FIELD_JSON] = ARROW_TEXT,
    };
    struct arrow_field *added;
    switch (field->role) {
    case ROLE_NULLABLE:
    case ROLE_EMPTY:
        added = arrow_field_add(parent, name, ARROW_STRUCT);
        added->may_be_null = field->role == ROLE_NULLABLE;
        break;
    case ROLE_FIELD:
    case ROLE_PART:
        if (field->at.type == FIELD_METADATA) {
            add_metadata(parent, name, metadata);
            break;
        }
        added = arrow_field_add(parent, name, TYPES[field->at.type]);
        if (field->at.former)
            added->former = strrchr(field->at.former, '.') + 1;
        break;
    case ROLE_GROUP: /* its parts are the fields */
    case ROLE_EXTRA:
    case ROLE_DERIVED:
        break;
    }
}

static struct arrow_field *schema_new(const char *model, const struct jv *metadata)
{
    struct arrow_field *root = arrow_field_add(NULL, "", ARROW_STRUCT);
    for (const struct record_field *field = RECORD_FIELDS; field->at.path; field++) {
        struct json_field_name names[FIELD_DEPTH_MAX];
        struct arrow_field *parent = root;
        if (field->role == ROLE_DERIVED || field->role == ROLE_EXTRA)
            continue;
        size_t count = json_field_split(field->at.path, record_base(model), names);
        for (size_t i = 0; i + 1 < count; i++)
            parent = enter(parent, &names[i]);
        add_leaf(parent, field, names[count - 1].bytes, metadata);
    }
    return root;
}

/* ---- the store ---- */

static enum err arrow_open(const struct store_run *run, struct store *out, struct error *why)
{
    struct hf_dataset *dataset;
    enum err err =
        hf_dataset_open(run->directory, schema_new(run->model, run->metadata), &dataset, why);
    if (!err)
        out->state = dataset;
    return err;
}

static enum err arrow_put(struct store *store, const struct jv *record, struct error *why)
{
    return hf_dataset_add(store->state, record, why);
}

static enum err arrow_finish(struct store *store, const struct summary *summary, struct error *why)
{
    (void)summary;
    return hf_dataset_finish(store->state, why);
}

static void arrow_close(struct store *store)
{
    hf_dataset_close(store->state);
}

const struct store_driver store_arrow = {
    .name = "arrow",
    .summary = "a Hugging Face dataset on disk, readable by datasets and by the Python IPW",
    .open = arrow_open,
    .put = arrow_put,
    .finish = arrow_finish,
    .close = arrow_close,
};
