#include "rundir/record_schema.h"

#include <stdlib.h>

#include "core/json.h"
#include "core/units.h"
#include "port/arrow_write.h"
#include "port/json_read.h"

enum step_kind {
    STEP_TEXT,
    STEP_NUMBER,
    STEP_INTEGER,
    STEP_TRUTH,
    STEP_STATS,
    STEP_ENERGY,
    STEP_STRUCT,
    STEP_MAYBE,
    STEP_METADATA,
    STEP_END,
};

static const struct step {
    enum step_kind kind;
    const char *name; /* NULL: the model's */
} STEPS[] = {
#define TEXT(name)     {STEP_TEXT, #name},
#define NUMBER(name)   {STEP_NUMBER, #name},
#define INTEGER(name)  {STEP_INTEGER, #name},
#define TRUTH(name)    {STEP_TRUTH, #name},
#define STATS(name)    {STEP_STATS, #name},
#define ENERGY(name)   {STEP_ENERGY, #name},
#define STRUCT(name)   {STEP_STRUCT, #name},
#define MAYBE(name)    {STEP_MAYBE, #name},
#define METADATA(name) {STEP_METADATA, #name},
#define MODEL_TEXT     {STEP_TEXT, NULL},
#define MODEL_STRUCT   {STEP_STRUCT, NULL},
#define END            {STEP_END, NULL},
#include "rundir/record_schema.def"
};

enum { DEEPEST = 8 };

/* A struct of fields that are always the same. */
static bool add_group(struct arrow_field *parent, const char *name,
                      const struct arrow_field *fields, size_t count)
{
    struct arrow_field *group = arrow_field_add(parent, name, ARROW_STRUCT);
    for (size_t i = 0; group && i < count; i++)
        if (!arrow_field_add(group, fields[i].name, fields[i].type))
            return false;
    return group;
}

static bool add_stats(struct arrow_field *parent, const char *name)
{
    static const struct arrow_field FIELDS[] = {
        {.name = "avg", .type = ARROW_DOUBLE},
        {.name = "max", .type = ARROW_DOUBLE},
        {.name = "median", .type = ARROW_DOUBLE},
        {.name = "min", .type = ARROW_DOUBLE},
    };
    return add_group(parent, name, FIELDS, sizeof FIELDS / sizeof *FIELDS);
}

static bool add_energy(struct arrow_field *parent, const char *name)
{
    static const struct arrow_field FIELDS[] = {
        {.name = "joules", .type = ARROW_DOUBLE},
        {.name = "plus_minus", .type = ARROW_DOUBLE},
        {.name = "plus_minus_statistical", .type = ARROW_DOUBLE},
        {.name = "coverage", .type = ARROW_DOUBLE},
        {.name = "idle_joules", .type = ARROW_DOUBLE},
        {.name = "active_joules", .type = ARROW_DOUBLE},
        {.name = "method", .type = ARROW_TEXT},
        {.name = "source", .type = ARROW_TEXT},
        {.name = "updates", .type = ARROW_INT64},
        {.name = "low_confidence", .type = ARROW_BOOL},
        {.name = "note", .type = ARROW_TEXT},
    };
    return add_group(parent, name, FIELDS, sizeof FIELDS / sizeof *FIELDS);
}

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

/* One row of the list below `parent`; *opened is the struct that it begins, if any. */
static bool add_step(const struct step *step, const char *model, const struct jv *metadata,
                     struct arrow_field *parent, struct arrow_field **opened)
{
    const char *name = step->name ? step->name : model;
    switch (step->kind) {
    case STEP_TEXT:
        return arrow_field_add(parent, name, ARROW_TEXT);
    case STEP_NUMBER:
        return arrow_field_add(parent, name, ARROW_DOUBLE);
    case STEP_INTEGER:
        return arrow_field_add(parent, name, ARROW_INT64);
    case STEP_TRUTH:
        return arrow_field_add(parent, name, ARROW_BOOL);
    case STEP_STATS:
        return add_stats(parent, name);
    case STEP_ENERGY:
        return add_energy(parent, name);
    case STEP_METADATA:
        return add_metadata(parent, name, metadata);
    case STEP_STRUCT:
    case STEP_MAYBE:
        *opened = arrow_field_add(parent, name, ARROW_STRUCT);
        if (*opened)
            (*opened)->may_be_null = step->kind == STEP_MAYBE;
        return *opened;
    case STEP_END:
        break;
    }
    return true;
}

enum err record_schema_new(const char *model, const struct jv *metadata, struct arrow_field **out,
                           struct error *why)
{
    struct arrow_field *open[DEEPEST] = {arrow_field_add(NULL, "", ARROW_STRUCT)};
    unsigned depth = 0;
    bool fine = open[0];
    for (size_t i = 0; fine && i < sizeof STEPS / sizeof *STEPS; i++) {
        struct arrow_field *opened = NULL;
        fine = add_step(&STEPS[i], model, metadata, open[depth], &opened);
        if (STEPS[i].kind == STEP_END)
            depth--;
        else if (opened)
            open[++depth] = opened;
    }
    *out = fine ? open[0] : NULL;
    if (fine)
        return ERR_OK;
    arrow_field_free(open[0]);
    return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
}

void record_schema_features(const struct arrow_field *root, const char *key, struct json *json)
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
            record_schema_features(child, child->name, json);
    } else {
        json_string(json, "dtype", TYPES[root->type]);
        json_string(json, "_type", "Value");
    }
    json_object_end(json);
}
