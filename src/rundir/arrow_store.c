/* The records of a run as a dataset of Hugging Face, with the schema of record.def. */
#include <string.h>

#include "core/units.h"
#include "port/json_read.h"
#include "rundir/hf_dataset.h"
#include "rundir/record.h"
#include "rundir/store.h"

/* ---- the schema: a struct for each object that the paths of record.def lead through ---- */

/* Every number is a double: the next item's may have a fraction. */
static enum arrow_type type_of(const struct jv *example)
{
    if (jv_is_bool(example))
        return ARROW_BOOL;
    return is_known(jv_number(example)) ? ARROW_DOUBLE : ARROW_TEXT;
}

static bool add_metadata(struct arrow_field *parent, const char *name, const struct jv *metadata)
{
    struct arrow_field *field = arrow_field_add(parent, name, ARROW_STRUCT);
    if (!field || !jv_is_object(metadata))
        return field;
    for (const struct jv *child = jv_first(metadata); child; child = jv_next(child))
        if (!arrow_field_add(field, jv_key(child), type_of(child)))
            return false;
    return true;
}

/* The struct of that name below `parent`, added when it is not the last one. */
static struct arrow_field *enter(struct arrow_field *parent, const struct json_field_name *name)
{
    char key[512];
    struct arrow_field *last = parent->first;
    while (last && last->next)
        last = last->next;
    if (last && strlen(last->name) == name->length &&
        memcmp(last->name, name->bytes, name->length) == 0)
        return last;
    if (name->bytes[name->length] == '\0')
        return arrow_field_add(parent, name->bytes, ARROW_STRUCT);
    if (name->length >= sizeof key)
        return NULL;
    memcpy(key, name->bytes, name->length);
    key[name->length] = '\0';
    return arrow_field_add(parent, key, ARROW_STRUCT);
}

static bool add_leaf(struct arrow_field *parent, const struct record_field *field, const char *name,
                     const struct jv *metadata)
{
    static const enum arrow_type TYPES[] = {
        [FIELD_TEXT] = ARROW_TEXT,   [FIELD_NUMBER] = ARROW_DOUBLE, [FIELD_INTEGER] = ARROW_INT64,
        [FIELD_WHOLE] = ARROW_INT64, [FIELD_TRUTH] = ARROW_BOOL,    [FIELD_JSON] = ARROW_TEXT,
    };
    struct arrow_field *added;
    switch (field->role) {
    case ROLE_NULLABLE:
    case ROLE_EMPTY:
        added = arrow_field_add(parent, name, ARROW_STRUCT);
        if (added)
            added->may_be_null = field->role == ROLE_NULLABLE;
        return added;
    case ROLE_FIELD:
    case ROLE_PART:
        if (field->at.type == FIELD_METADATA)
            return add_metadata(parent, name, metadata);
        return arrow_field_add(parent, name, TYPES[field->at.type]);
    case ROLE_GROUP: /* its parts make it */
    case ROLE_EXTRA:
    case ROLE_DERIVED:
        break;
    }
    return true;
}

static enum err schema_new(const char *model, const struct jv *metadata, struct arrow_field **out,
                           struct error *why)
{
    struct arrow_field *root = arrow_field_add(NULL, "", ARROW_STRUCT);
    bool fine = root;
    for (const struct record_field *field = RECORD_FIELDS; fine && field->at.path; field++) {
        struct json_field_name names[FIELD_DEPTH_MAX];
        struct arrow_field *parent = root;
        if (field->role == ROLE_DERIVED || field->role == ROLE_EXTRA)
            continue;
        size_t count = json_field_split(field->at.path, model, names);
        for (size_t i = 0; parent && i + 1 < count; i++)
            parent = enter(parent, &names[i]);
        fine = parent && add_leaf(parent, field, names[count - 1].bytes, metadata);
    }
    *out = fine ? root : NULL;
    if (fine)
        return ERR_OK;
    arrow_field_free(root);
    return err_no_memory(why);
}

/* ---- the store ---- */

static enum err arrow_open(const struct store_run *run, struct store *out, struct error *why)
{
    struct arrow_field *root;
    struct hf_dataset *dataset;
    enum err err = schema_new(run->model, run->metadata, &root, why);
    if (!err)
        err = hf_dataset_open(run->directory, root, &dataset, why);
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
    .available = hf_dataset_available,
    .open = arrow_open,
    .put = arrow_put,
    .finish = arrow_finish,
    .close = arrow_close,
};
