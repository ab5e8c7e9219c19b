/* Common code of all models: registry, fitting and prediction, and the file format. */
#include "power/freq_model.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
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
    (void)str_format(model->provenance.program, sizeof model->provenance.program, "ipw %s",
                     IPW_VERSION);
    model->provenance.curves = curves->count;
    model->provenance.seed = options->seed;
    if (err)
        freq_model_release(model);
    return err;
}

void freq_model_release(struct freq_model *model)
{
    if (model->kind && model->state)
        model->kind->release(model->state);
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

static void provenance_to_json(const struct freq_provenance *p, struct json *json)
{
    char hash[24];
    (void)str_format(hash, sizeof hash, "%016" PRIx64, p->data_hash);
    json_object(json, "provenance");
    json_string(json, "program", str_or_null(p->program));
    json_string(json, "data", str_or_null(p->data));
    json_string(json, "data_fnv1a", p->data_hash ? hash : NULL);
    json_number(json, "created_unix_s", p->created ? seconds(p->created) : UNKNOWN);
    json_integer(json, "rows", (int64_t)p->rows);
    json_integer(json, "rows_used", (int64_t)p->rows_used);
    json_integer(json, "curves", (int64_t)p->curves);
    json_integer(json, "seed", (int64_t)p->seed);
    json_string(json, "findings", str_or_null(p->findings));
    json_string(json, "void", str_or_null(p->voids));
    json_object_end(json);
}

static size_t count_of(const struct jv *value)
{
    int64_t count = 0;
    return jv_integer(value, &count) && count > 0 ? (size_t)count : 0;
}

static void provenance_from_json(const struct jv *object, struct freq_provenance *out)
{
    struct {
        const char *key;
        char *to;
        size_t size;
    } texts[] = {{"program", out->program, sizeof out->program},
                 {"data", out->data, sizeof out->data},
                 {"findings", out->findings, sizeof out->findings},
                 {"void", out->voids, sizeof out->voids}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = jv_text(jv_get(object, texts[i].key));
        (void)str_copy(texts[i].to, texts[i].size, text ? text : "");
        str_plain(texts[i].to, texts[i].size);
    }
    const char *hash = jv_text(jv_get(object, "data_fnv1a"));
    double created = jv_number(jv_get(object, "created_unix_s"));
    out->data_hash = hash ? strtoull(hash, NULL, 16) : 0;
    out->created = created > 0 && created < 1e10 ? from_seconds(created) : 0;
    out->rows = count_of(jv_get(object, "rows"));
    out->rows_used = count_of(jv_get(object, "rows_used"));
    out->curves = count_of(jv_get(object, "curves"));
    out->seed = count_of(jv_get(object, "seed"));
}

static void model_to_json(const struct freq_model *model, struct json *json)
{
    json_string(json, "format", FORMAT);
    json_integer(json, "version", 1);
    json_string(json, "model", model->kind->name);
    json_object(json, "relative_error_90");
    for (size_t k = 0; k < FREQ_FIGURES; k++)
        json_number(json, freq_figure_name((enum freq_figure)k), model->error[k]);
    json_object_end(json);
    provenance_to_json(&model->provenance, json);
    json_object(json, "state");
    model->kind->save(model->state, json);
    json_object_end(json);
}

void freq_model_save(const struct freq_model *model, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    model_to_json(model, &json);
    json_object_end(&json);
    text_add(out, "\n");
}

static enum err model_from_json(struct freq_model *model, const struct jv *object,
                                struct error *why)
{
    const char *format = jv_text(jv_get(object, "format")),
               *name = jv_text(jv_get(object, "model"));
    *model = (struct freq_model){0};
    if (!format || strcmp(format, FORMAT) != 0 || !name)
        return err_set(why, ERR_BAD_VALUE, "not a model of `ipw power fit`");
    if (jv_number(jv_get(object, "version")) != 1)
        return err_set(why, ERR_BAD_VALUE,
                       "the model was written by an incompatible version of ipw");
    model->kind = freq_model_find(name, why);
    if (!model->kind)
        return ERR_BAD_VALUE;
    for (size_t k = 0; k < FREQ_FIGURES; k++)
        model->error[k] = jv_number(
            jv_get(jv_get(object, "relative_error_90"), freq_figure_name((enum freq_figure)k)));
    provenance_from_json(jv_get(object, "provenance"), &model->provenance);
    return model->kind->load(jv_get(object, "state"), &model->state, why);
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
