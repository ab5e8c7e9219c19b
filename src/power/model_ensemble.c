/* ensemble: the mean of roofline, poly2 and fgcs, each weighted by the inverse square of its error on applications that
 * it was not fitted to.  A member that cannot be fitted (no activities) or does not predict the figure is skipped. */
#include <math.h>
#include <stdlib.h>

#include "core/json.h"
#include "core/json_bind.h"
#include "core/jv.h"
#include "core/registry.h"
#include "core/xalloc.h"
#include "power/freq_model.h"

extern const struct freq_model_kind freq_model_roofline, freq_model_poly2, freq_model_fgcs;

enum { COUNT = 3 };
static const struct freq_model_kind *const KINDS[COUNT + 1] = {
    &freq_model_roofline, &freq_model_poly2, &freq_model_fgcs, NULL};

struct member {
    struct freq_model model; /* `error`: half-widths of its intervals, while fitting */
    double weight;
};

struct ensemble {
    struct member members[COUNT]; /* those that could be fitted */
    size_t count;
};

/* ---- files ---- */

static void write_kind(struct json *json, const char *key, const struct json_field *field,
                       const void *object)
{
    (void)field;
    json_string(json, key, ((const struct member *)object)->model.kind->name);
}

static enum err read_kind(const struct json_place *at, const struct json_field *field,
                          const struct jv *value, void *object)
{
    struct error reason = {0};
    struct freq_model *model = &((struct member *)object)->model;
    model->kind =
        registry_find("model", KINDS, text_or_empty(jv_text(value)), ERR_BAD_VALUE, &reason);
    return model->kind ? ERR_OK : json_refuse(at, field->path, "%s", reason.text);
}

static void clear_kind(const struct json_field *field, void *object)
{
    (void)field;
    ((struct member *)object)->model.kind = NULL;
}

static const struct json_custom KIND = {
    .write = write_kind, .read = read_kind, .clear = clear_kind};

static const struct json_field MEMBER_FIELDS[] = {
    BIND_CUSTOM(member, model, KIND, "model", .flags = FIELD_REQUIRED),
    BIND_NUMBER(member, weight, "weight", .flags = FIELD_REQUIRED | FIELD_ABOVE, .max = INFINITY),
    BIND_CUSTOM(member, model, FREQ_STATE, "state", .flags = FIELD_REQUIRED),
    {0},
};

static const struct json_field ENSEMBLE_FIELDS[] = {
    BIND_ARRAY(ensemble, members, count, MEMBER_FIELDS, "members", .flags = FIELD_REQUIRED,
               .least = 1),
    {0},
};

static enum err ensemble_check(const struct json_place *at, void *state)
{
    const struct ensemble *ensemble = state;
    for (size_t i = 0; i < ensemble->count; i++)
        for (size_t k = 0; k < i; k++)
            if (ensemble->members[i].model.kind == ensemble->members[k].model.kind)
                return json_refuse(at, "members", "'%s' given more than once",
                                   ensemble->members[i].model.kind->name);
    return ERR_OK;
}

/* ---- fitting ---- */

/* From the half-widths of the member's own intervals; 1 if they are unknown. */
static enum err set_weight(struct member *member, const struct freq_curves *curves,
                           const struct freq_model_options *options, struct error *why)
{
    double *error = member->model.error;
    enum err err =
        freq_calibrate(member->model.kind, member->model.state, curves, options, error, why);
    member->weight = error[FREQ_POWER_W] > 0 ? 1 / square(error[FREQ_POWER_W]) : 1;
    return err;
}

static enum err ensemble_fit(const struct freq_curves *curves,
                             const struct freq_model_options *options, void **state,
                             struct error *why)
{
    struct ensemble *ensemble = XNEW(ensemble);
    *state = NULL;
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < COUNT; i++) {
        struct member *member = &ensemble->members[ensemble->count];
        if (KINDS[i]->fit(curves, options, &member->model.state, why))
            continue;
        member->model.kind = KINDS[i];
        ensemble->count++;
        err = set_weight(member, curves, options, why);
    }
    if (!err && !ensemble->count)
        err = ERR_NO_DATA; /* *why is the last member's */
    if (err)
        freq_state_free(ENSEMBLE_FIELDS, ensemble);
    else
        *state = ensemble;
    return err;
}

/* The error of a weighted mean is at most the weighted mean of the errors. */
static void ensemble_errors(const void *state, double *error)
{
    const struct ensemble *ensemble = state;
    for (size_t k = 0; k < FREQ_FIGURES; k++) {
        double sum = 0, weights = 0;
        for (size_t i = 0; i < ensemble->count; i++) {
            const struct member *member = &ensemble->members[i];
            if (is_known(member->model.error[k])) {
                sum += member->weight * member->model.error[k];
                weights += member->weight;
            }
        }
        error[k] = weights > 0 ? sum / weights : UNKNOWN;
    }
}

/* ---- predicting ---- */

static void add_member(const struct freq_prediction *of, double weight, size_t count,
                       struct freq_prediction *out, double (*sums)[FREQ_FIGURES])
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < FREQ_FIGURES; k++)
            if (is_known(of[i].figures[k].value)) {
                out[i].figures[k].value += weight * of[i].figures[k].value;
                out[i].is_extrapolated |= of[i].is_extrapolated;
                sums[i][k] += weight;
            }
}

static enum err ensemble_predict(const void *state, const struct freq_target *target,
                                 const double *mhz, size_t count, struct freq_prediction *out,
                                 struct error *why)
{
    const struct ensemble *ensemble = state;
    struct freq_prediction *one = xcalloc(count + 1, sizeof *one);
    double(*sums)[FREQ_FIGURES] = xcalloc(count + 1, sizeof *sums);
    enum err err = ERR_NO_DATA;
    for (size_t i = 0; i < count; i++)
        out[i] = (struct freq_prediction){.freq_mhz = mhz[i]};
    for (size_t m = 0; m < ensemble->count; m++) {
        const struct member *member = &ensemble->members[m];
        if (member->model.kind->predict(member->model.state, target, mhz, count, one, why))
            continue;
        add_member(one, member->weight, count, out, sums);
        err = ERR_OK;
    }
    for (size_t i = 0; !err && i < count; i++)
        for (size_t k = 0; k < FREQ_FIGURES; k++)
            out[i].figures[k] = freq_value_within(
                sums[i][k] > 0 ? out[i].figures[k].value / sums[i][k] : UNKNOWN, UNKNOWN);
    free(one);
    free(sums);
    return err;
}

const struct freq_model_kind freq_model_ensemble = {
    .name = "ensemble",
    .summary = "mean of roofline, poly2 and fgcs, weighted by their errors",
    .has_probes = true,
    .is_slow = true,
    .fit = ensemble_fit,
    .predict = ensemble_predict,
    .errors = ensemble_errors,
    .fields = ENSEMBLE_FIELDS,
    .size = sizeof(struct ensemble),
    .check = ensemble_check,
};
