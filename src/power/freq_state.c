/* The state of a model as a member of a file, by the table of its kind. */
#include <stdlib.h>

#include "core/json_bind.h"
#include "core/xalloc.h"
#include "power/freq_model.h"

void freq_state_free(const struct json_field *fields, void *state)
{
    if (state)
        json_fields_release(fields, state);
    free(state);
}

static struct freq_model *model_of(const struct json_field *field, void *object)
{
    return (struct freq_model *)(void *)((char *)object + field->offset);
}

static void write_state(struct json *json, const char *key, const struct json_field *field,
                        const void *object)
{
    const struct freq_model *model = json_field_member(field, object);
    json_fields_write_object(json, key, model->kind->fields, model->state);
}

static enum err read_state(const struct json_place *at, const struct json_field *field,
                           const struct jv *value, void *object)
{
    struct freq_model *model = model_of(field, object);
    struct json_place place = json_place_in(at, field->path);
    void *state = xcalloc(1, model->kind->size);
    json_fields_clear(model->kind->fields, state);
    enum err err = json_fields_read_at(&place, value, model->kind->fields, state);
    if (!err && model->kind->check)
        err = model->kind->check(&place, state);
    model->state = state;
    return err;
}

static void clear_state(const struct json_field *field, void *object)
{
    model_of(field, object)->state = NULL;
}

static void release_state(const struct json_field *field, void *object)
{
    struct freq_model *model = model_of(field, object);
    if (model->kind)
        freq_state_free(model->kind->fields, model->state);
}

const struct json_custom FREQ_STATE = {
    .write = write_state, .read = read_state, .clear = clear_state, .release = release_state};
