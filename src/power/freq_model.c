/* What every model has in common: its name, the interval of its predictions, its file.
 *
 * Intervals are conformal: the model is fitted again without each application (or, with one application, without each
 * group of frequencies), and the interval is as wide as FREQ_LEVEL of the errors that this shows.  It assumes nothing of
 * the model, and `ipw power validate` reports how many measurements it really covers. */
#include "power/freq_model.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/registry.h"
#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"
#include "stats/quantile.h"

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

static const char *name_at(size_t index)
{
    return FREQ_MODELS[index] ? FREQ_MODELS[index]->name : NULL;
}

const struct freq_model_kind *freq_model_find(const char *name, struct error *why)
{
    long at = registry_find("model", name_at, name, ERR_USAGE, why);
    return at < 0 ? NULL : FREQ_MODELS[at];
}

const char *freq_figure_name(enum freq_figure figure)
{
    static const char *const NAMES[FREQ_FIGURES] = {"power_w", "time_s", "energy_j"};
    return NAMES[figure];
}

struct freq_target freq_target_of(const struct freq_curve *curve, const struct freq_sample *probes,
                                  size_t probe_count)
{
    struct freq_target target = {.gpu = curve->gpu,
                                 .fmax_mhz = curve->fmax_mhz,
                                 .idle_w = curve->idle_w,
                                 .probes = probes,
                                 .probe_count = probe_count};
    for (size_t i = 0; i < FREQ_ACTIVITIES; i++)
        target.activity[i] = freq_curve_activity(curve, (enum freq_activity)i);
    return target;
}

/* ---- intervals ---- */

/* Relative errors of predictions, by figure. */
struct errors {
    double *items[FREQ_FIGURES];
    size_t count[FREQ_FIGURES];
};

static double measured(const struct freq_sample *sample, size_t figure)
{
    return figure == FREQ_POWER_W  ? sample->power_w
           : figure == FREQ_TIME_S ? sample->time_s
                                   : sample->energy_j;
}

enum { PROBES = 3, PROBE_NEAR = 5 };

static enum err collect(const struct freq_model *model, const struct freq_curve *curve,
                        struct errors *errors, struct error *why)
{
    struct freq_sample probes[PROBES];
    size_t count = freq_curve_probes(curve, PROBES, PROBE_NEAR, probes);
    struct freq_target target = freq_target_of(curve, probes, count);
    struct freq_prediction *out = calloc(curve->count + 1, sizeof *out);
    double *mhz = calloc(curve->count + 1, sizeof *mhz);
    for (size_t i = 0; mhz && i < curve->count; i++)
        mhz[i] = curve->samples[i].freq_mhz;
    enum err err = out && mhz
                       ? model->kind->predict(model->state, &target, mhz, curve->count, out, why)
                       : err_no_memory(why);
    for (size_t i = 0; !err && i < curve->count; i++)
        for (size_t k = 0; k < FREQ_FIGURES; k++) {
            double error = fabs(measured(&curve->samples[i], k) / out[i].figures[k].value - 1);
            if (is_known(error))
                errors->items[k][errors->count[k]++] = error;
        }
    free(out);
    free(mhz);
    return err;
}

/* The curves without those of one fold; the samples are shared. */
static struct freq_curves without(const struct freq_curves *curves, size_t fold, size_t folds,
                                  struct freq_curve *room)
{
    struct freq_curves rest = {.items = room};
    for (size_t i = 0; i < curves->count; i++)
        if (i % folds != fold)
            room[rest.count++] = curves->items[i];
    return rest;
}

static enum err calibrate(struct freq_model *model, const struct freq_curves *curves,
                          const struct freq_model_options *options, struct error *why)
{
    enum { SLOW_FOLDS = 4 };
    size_t folds = model->kind->is_slow && curves->count > SLOW_FOLDS ? SLOW_FOLDS : curves->count;
    size_t samples = 0;
    struct errors errors = {0};
    struct freq_curve *room = calloc(curves->count + 1, sizeof *room);
    for (size_t i = 0; i < curves->count; i++)
        samples += curves->items[i].count;
    enum err err = room ? ERR_OK : err_no_memory(why);
    for (size_t k = 0; k < FREQ_FIGURES; k++) {
        errors.items[k] = calloc(samples + 1, sizeof(double));
        err = errors.items[k] ? err : err_no_memory(why);
    }
    for (size_t fold = 0; !err && fold < folds; fold++) {
        struct freq_curves rest = without(curves, fold, folds, room);
        struct freq_model other = {.kind = model->kind};
        struct error unable = {0};
        /* Too few applications are left: the interval stays unknown. */
        if (model->kind->fit(&rest, options, &other.state, &unable))
            continue;
        for (size_t i = fold; !err && i < curves->count; i += folds)
            err = collect(&other, &curves->items[i], &errors, why);
        freq_model_release(&other);
    }
    for (size_t k = 0; k < FREQ_FIGURES; k++) {
        model->error[k] =
            err ? UNKNOWN : conformal_quantile(errors.items[k], errors.count[k], FREQ_LEVEL);
        free(errors.items[k]);
    }
    free(room);
    return err;
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
    if (!err && !options->without_interval && curves->count > 1)
        err = calibrate(model, curves, options, why);
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
                 {"findings", out->findings, sizeof out->findings}};
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
        return err_set(why, ERR_BAD_VALUE, "a model of another version of ipw");
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
    struct text bytes = {0};
    struct jv *object = NULL;
    struct error inner = {0};
    *model = (struct freq_model){0};
    enum err err = file_read(path, FILE_LARGEST, &bytes, why);
    if (err)
        return err;
    err = jv_parse(text_get(&bytes), bytes.length, &object, &inner);
    if (!err)
        err = model_from_json(model, object, &inner);
    if (err) {
        err_set(why, err, "%.160s: %s", path, inner.text);
        freq_model_release(model);
    }
    jv_free(object);
    text_release(&bytes);
    return err;
}
