/* Common code of all models: registry, fitting and prediction, and the file format. */
#include "power/freq_model.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/json.h"
#include "core/json_bind.h"
#include "core/registry.h"
#include "core/text.h"
#include "port/json_read.h"

#define FORMAT           "ipw-power-model"
#define FILE_LARGEST     ((size_t)256 << 20)

#define FREQ_MODEL(name) extern const struct freq_model_kind freq_model_##name;
#include "power/freq_models.def"
#undef FREQ_MODEL

const struct freq_model_kind *const FREQ_MODELS[] = {
#define FREQ_MODEL(name) &freq_model_##name,
#include "power/freq_models.def"
#undef FREQ_MODEL
    NULL,
};

const struct freq_model_kind *freq_model_find(const char *name, struct error *why)
{
    return registry_find("model", FREQ_MODELS, name, ERR_USAGE, why);
}

/* ---- fitting, predicting ---- */

enum err freq_model_fit(struct freq_model *model, const char *name,
                        const struct freq_curves *curves, const struct freq_model_options *options,
                        struct error *why)
{
    *model = (struct freq_model){.kind = freq_model_find(name, why),
                                 .error = {UNKNOWN, UNKNOWN, UNKNOWN}};
    size_t samples = 0;
    for (size_t i = 0; i < curves->count; i++)
        samples += curves->items[i].count;
    if (!model->kind)
        return ERR_USAGE;
    if (samples == 0)
        return err_set(why, ERR_NO_DATA, "no usable measurements");
    enum err err = model->kind->fit(curves, options, &model->state, why);
    if (!err && !options->without_interval)
        err = freq_calibrate(model->kind, model->state, curves, options, model->error, why);
    chars_format(model->provenance.program, "ipw %s", IPW_VERSION);
    model->provenance.curves = curves->count;
    model->provenance.seed = options->seed;
    if (err)
        freq_model_release(model);
    return err;
}

void freq_model_release(struct freq_model *model)
{
    if (model->kind)
        freq_state_free(model->kind->fields, model->state);
    *model = (struct freq_model){0};
}

enum err freq_model_predict(const struct freq_model *model, const struct freq_target *target,
                            const double *mhz, size_t count, struct freq_prediction *out,
                            struct error *why)
{
    for (size_t i = 0; i < count; i++)
        if (!(mhz[i] > 0) || !isfinite(mhz[i]))
            return err_set(why, ERR_BAD_VALUE, "frequency %g: not above 0", mhz[i]);
    enum err err = model->kind->predict(model->state, target, mhz, count, out, why);
    for (size_t i = 0; !err && i < count; i++)
        for (size_t k = 0; k < FREQ_FIGURES; k++) {
            struct freq_value *value = &out[i].figures[k];
            if (!is_known(value->low))
                *value = freq_value_within(value->value, model->error[k]);
        }
    return err;
}

/* ---- files ---- */

static void write_hash(struct json *json, const char *key, const struct json_field *field,
                       const void *object)
{
    char hash[24];
    uint64_t bits = *(const uint64_t *)json_field_member(field, object);
    chars_format(hash, "%016" PRIx64, bits);
    json_string(json, key, bits ? hash : NULL);
}

static enum err read_hash(const struct json_place *at, const struct json_field *field,
                          const struct jv *value, void *object)
{
    const char *hash = jv_text(value);
    (void)at, (void)field;
    ((struct freq_provenance *)object)->data_hash = hash ? strtoull(hash, NULL, 16) : 0;
    return ERR_OK;
}

static const struct json_custom HASH = {.write = write_hash, .read = read_hash};

/* Text is as the user gave it: too long or not plain, it is shortened and escaped, not refused. */
static const struct json_field PROVENANCE_FIELDS[] = {
    BIND_CHARS(freq_provenance, program, "program", .flags = FIELD_NULL),
    BIND_CHARS(freq_provenance, data, "data", .flags = FIELD_NULL),
    BIND_CUSTOM(freq_provenance, data_hash, HASH, "data_fnv1a"),
    BIND_SECONDS(freq_provenance, created, "created_unix_s", .flags = FIELD_NULL, .max = 9e9),
    BIND_SIZE(freq_provenance, rows, "rows"),
    BIND_SIZE(freq_provenance, rows_used, "rows_used"),
    BIND_SIZE(freq_provenance, curves, "curves"),
    BIND_SIZE(freq_provenance, seed, "seed"),
    BIND_CHARS(freq_provenance, findings, "findings", .flags = FIELD_NULL),
    BIND_CHARS(freq_provenance, invalid, "invalid", .flags = FIELD_NULL, .former = "void"),
    {0},
};

static void write_version(struct json *json, const char *key, const struct json_field *field,
                          const void *object)
{
    (void)object;
    json_integer(json, key, field->variant);
}

static enum err read_version(const struct json_place *at, const struct json_field *field,
                             const struct jv *value, void *object)
{
    (void)object;
    return jv_number(value) == field->variant
               ? ERR_OK
               : json_refuse(at, field->path,
                             "the model was written by an incompatible version of ipw");
}

static const struct json_custom VERSION = {.write = write_version, .read = read_version};

static void write_kind(struct json *json, const char *key, const struct json_field *field,
                       const void *object)
{
    (void)field;
    json_string(json, key, ((const struct freq_model *)object)->kind->name);
}

static enum err read_kind(const struct json_place *at, const struct json_field *field,
                          const struct jv *value, void *object)
{
    struct error reason = {0};
    struct freq_model *model = object;
    model->kind = freq_model_find(text_or_empty(jv_text(value)), &reason);
    return model->kind ? ERR_OK : json_refuse(at, field->path, "%s", reason.text);
}

static const struct json_custom KIND = {.write = write_kind, .read = read_kind};

static const struct json_field FORMAT_FIELDS[] = {
    BIND_CONSTANT(FORMAT, "format", .flags = FIELD_REQUIRED),
    {0},
};
static const struct json_field HEAD_FIELDS[] = {
    BIND_CUSTOM(freq_model, kind, VERSION, "version", .flags = FIELD_REQUIRED, .variant = 1),
    BIND_CUSTOM(freq_model, kind, KIND, "model", .flags = FIELD_REQUIRED),
    {0},
};
static const struct json_field MODEL_FIELDS[] = {
    BIND_NUMBER(freq_model, error[FREQ_POWER_W], "relative_error_90.power_w"),
    BIND_NUMBER(freq_model, error[FREQ_TIME_S], "relative_error_90.time_s"),
    BIND_NUMBER(freq_model, error[FREQ_ENERGY_J], "relative_error_90.energy_j"),
    BIND_OBJECT(freq_model, provenance, PROVENANCE_FIELDS, "provenance", .flags = FIELD_LENIENT),
    BIND_CUSTOM(freq_model, kind, FREQ_STATE, "state", .flags = FIELD_REQUIRED),
    {0},
};

void freq_model_save(const struct freq_model *model, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_fields_write(&json, FORMAT_FIELDS, model);
    json_fields_write(&json, HEAD_FIELDS, model);
    json_fields_write(&json, MODEL_FIELDS, model);
    json_object_end(&json);
    text_add(out, "\n");
}

static enum err model_from_json(struct freq_model *model, const struct jv *object,
                                struct error *why)
{
    struct error reason = {0};
    if (json_fields_read_strict(object, FORMAT_FIELDS, model, NULL, NULL))
        return err_set(why, ERR_BAD_VALUE, "not a model of `ipw power fit`");
    enum err err = json_fields_read_strict(object, HEAD_FIELDS, model, NULL, why);
    if (err)
        return err;
    err = json_fields_read_strict(object, MODEL_FIELDS, model, NULL, &reason);
    const char *damaged = err == ERR_BAD_VALUE ? "damaged model: " : "";
    return err ? err_set(why, err, "%s%s", damaged, reason.text) : ERR_OK;
}

enum err freq_model_load(struct freq_model *model, const char *path, struct error *why)
{
    struct jv *object;
    struct error inner = {0};
    *model = (struct freq_model){0};
    enum err err = jv_read(path, FILE_LARGEST, &object, why);
    if (!err && (err = model_from_json(model, object, &inner))) {
        err_set(why, err, "%.160s: %s", path, inner.text);
        freq_model_release(model);
    }
    jv_free(object);
    return err;
}
