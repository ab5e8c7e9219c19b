/* linear, ridge, poly2, poly3: least squares (poly3: with a small ridge penalty) of power and of relative time on the
 * activities and the clock, and on their products up to a degree.  Columns are standardized, as the ridge penalty
 * requires; it also keeps cubes of shares well conditioned. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json_bind.h"
#include "core/xalloc.h"
#include "power/activity.h"
#include "stats/least_squares.h"

enum { TERMS_MAX = 20, DEGREE_MAX = 3 }; /* (3 + 3 over 3) */
#define RIDGE_DEFAULT 1.0
/* Penalty of poly3, per row.  The activities of a few applications determine ten cubic terms poorly: without it, the
 * surface is far off at activities between theirs. */
#define CUBIC_RIDGE 0.01

/* A number for each column. */
struct row {
    double items[TERMS_MAX];
    size_t count;
};

struct regression {
    unsigned degree;
    double ridge; /* 0: none */
    size_t terms;
    struct row mean, scale; /* of the columns */
    /* Coefficients of standardized columns, the first being the mean; none: the figure is unknown. */
    struct row power, time;
};

/* Products of the features up to a degree; returns how many. */
static size_t terms_of(const double *x, unsigned degree, double *row)
{
    size_t count = 0;
    row[count++] = 1;
    for (size_t i = 0; degree >= 1 && i < ACTIVITY_FEATURES; i++)
        row[count++] = x[i];
    for (size_t i = 0; degree >= 2 && i < ACTIVITY_FEATURES; i++)
        for (size_t j = i; j < ACTIVITY_FEATURES; j++)
            row[count++] = x[i] * x[j];
    for (size_t i = 0; degree >= 3 && i < ACTIVITY_FEATURES; i++)
        for (size_t j = i; j < ACTIVITY_FEATURES; j++)
            for (size_t k = j; k < ACTIVITY_FEATURES; k++)
                row[count++] = x[i] * x[j] * x[k];
    return count;
}

static void standardized(const struct regression *r, const double *features, double *row)
{
    (void)terms_of(features, r->degree, row);
    for (size_t j = 1; j < r->terms; j++)
        row[j] = (row[j] - r->mean.items[j]) / r->scale.items[j];
}

static void standardize(struct regression *r, const struct activity_rows *rows)
{
    static const double NONE[ACTIVITY_FEATURES];
    double row[TERMS_MAX], n = (double)rows->count;
    r->terms = r->mean.count = r->scale.count = terms_of(NONE, r->degree, row);
    for (size_t i = 0; i < rows->count; i++) {
        (void)terms_of(rows->items[i].features, r->degree, row);
        for (size_t j = 0; j < r->terms; j++)
            r->mean.items[j] += row[j] / n;
    }
    for (size_t i = 0; i < rows->count; i++) {
        (void)terms_of(rows->items[i].features, r->degree, row);
        for (size_t j = 0; j < r->terms; j++)
            r->scale.items[j] += square(row[j] - r->mean.items[j]) / n;
    }
    for (size_t j = 0; j < r->terms; j++)
        r->scale.items[j] = r->scale.items[j] > 0 ? sqrt(r->scale.items[j]) : 1; /* 1: constant */
}

/* The penalty is added as rows: sqrt(ridge) on the diagonal, except for the mean.  Without ridge a tiny penalty
 * resolves linearly dependent columns, as when all activities are equal. */
static enum err fit_surface(const struct regression *r, const double *x, const double *y,
                            size_t count, struct row *out)
{
    size_t rows = count + r->terms - 1;
    double *a = xcalloc((rows + 1) * r->terms, sizeof *a), *b = xcalloc(rows + 1, sizeof *b);
    double penalty = r->ridge > 0 ? r->ridge : 1e-9 * (double)count;
    enum err err = ERR_OK;
    out->count = count > 0 ? r->terms : 0;
    if (out->count) {
        memcpy(a, x, count * r->terms * sizeof *a);
        memcpy(b, y, count * sizeof *b);
        for (size_t j = 1; j < r->terms; j++)
            a[(count + j - 1) * r->terms + j] = sqrt(penalty);
        err = least_squares(a, b, rows, r->terms, out->items);
    }
    free(a);
    free(b);
    return err;
}

static enum err fit_surfaces(struct regression *r, const struct activity_rows *rows)
{
    double *x = xcalloc((rows->count + 1) * r->terms, sizeof *x);
    double *y = xcalloc(rows->count + 1, sizeof *y);
    size_t timed = 0;
    for (size_t i = 0; i < rows->count; i++) {
        standardized(r, rows->items[i].features, x + i * r->terms);
        y[i] = rows->items[i].power_w;
    }
    enum err err = fit_surface(r, x, y, rows->count, &r->power);
    for (size_t i = 0; !err && i < rows->count; i++) {
        double relative = rows->items[i].time_s / rows->items[i].fmax_time_s;
        if (!is_known(relative))
            continue;
        standardized(r, rows->items[i].features, x + timed * r->terms);
        y[timed++] = relative;
    }
    if (!err)
        err = fit_surface(r, x, y, timed, &r->time);
    free(x);
    free(y);
    return err;
}

static enum err regression_fit(const struct freq_curves *curves, unsigned degree, double ridge,
                               void **state, struct error *why)
{
    struct activity_rows rows = {0};
    struct regression *r = XNEW(r);
    *state = NULL;
    r->degree = degree;
    r->ridge = ridge;
    enum err err = activity_rows_of(curves, &rows, why);
    if (!err) {
        standardize(r, &rows);
        err = err_explain(why, fit_surfaces(r, &rows));
    }
    activity_rows_release(&rows);
    if (err)
        free(r);
    else
        *state = r;
    return err;
}

static enum err linear_fit_model(const struct freq_curves *curves,
                                 const struct freq_model_options *options, void **state,
                                 struct error *why)
{
    (void)options;
    return regression_fit(curves, 1, 0, state, why);
}

static enum err ridge_fit_model(const struct freq_curves *curves,
                                const struct freq_model_options *options, void **state,
                                struct error *why)
{
    return regression_fit(curves, 1, options->ridge > 0 ? options->ridge : RIDGE_DEFAULT, state,
                          why);
}

static enum err poly2_fit_model(const struct freq_curves *curves,
                                const struct freq_model_options *options, void **state,
                                struct error *why)
{
    (void)options;
    return regression_fit(curves, 2, 0, state, why);
}

static enum err poly3_fit_model(const struct freq_curves *curves,
                                const struct freq_model_options *options, void **state,
                                struct error *why)
{
    size_t rows = 0;
    (void)options;
    for (size_t i = 0; i < curves->count; i++)
        rows += curves->items[i].count;
    return regression_fit(curves, 3, CUBIC_RIDGE * (double)rows, state, why);
}

/* ---- predicting ---- */

static double value_at(const struct row *coefficients, const double *row)
{
    double sum = 0;
    for (size_t j = 0; j < coefficients->count; j++)
        sum += coefficients->items[j] * row[j];
    return coefficients->count ? sum : UNKNOWN;
}

static enum err regression_values(const void *state, const struct freq_target *target,
                                  const double (*features)[ACTIVITY_FEATURES], size_t count,
                                  double *watts, double *relative, struct error *why)
{
    const struct regression *r = state;
    (void)target, (void)why;
    for (size_t i = 0; i < count; i++) {
        double row[TERMS_MAX];
        standardized(r, features[i], row);
        watts[i] = value_at(&r->power, row);
        relative[i] = value_at(&r->time, row);
    }
    return ERR_OK;
}

static enum err regression_predict(const void *state, const struct freq_target *target,
                                   const double *mhz, size_t count, struct freq_prediction *out,
                                   struct error *why)
{
    return activity_predict(regression_values, state, target, mhz, count, out, why);
}

/* ---- files ---- */

#define BIND_TERMS(member_, ...) BIND_SERIES(regression, member_.items, member_.count, __VA_ARGS__)

static const struct json_field REGRESSION_FIELDS[] = {
    BIND_UNSIGNED(regression, degree, "degree", .flags = FIELD_REQUIRED, .min = 1,
                  .max = DEGREE_MAX),
    BIND_NUMBER(regression, ridge, "ridge"),
    BIND_TERMS(mean, "mean", .flags = FIELD_REQUIRED),
    BIND_TERMS(scale, "scale", .flags = FIELD_REQUIRED),
    BIND_TERMS(power, "power_w", .flags = FIELD_REQUIRED),
    BIND_TERMS(time, "relative_time"),
    {0},
};

static enum err regression_check(const struct json_place *at, void *state)
{
    struct regression *r = state;
    const double none[ACTIVITY_FEATURES] = {0};
    double row[TERMS_MAX];
    r->terms = terms_of(none, r->degree, row);
    if (r->mean.count != r->terms || r->scale.count != r->terms || r->power.count != r->terms ||
        (r->time.count && r->time.count != r->terms))
        return json_refuse(at, "degree", "%u needs %zu numbers of each kind", r->degree, r->terms);
    for (size_t j = 0; j < r->terms; j++)
        if (!(r->scale.items[j] > 0))
            return json_refuse(at, "scale", "must be numbers above 0");
    return ERR_OK;
}

#define REGRESSION(id, text)                                                                       \
    const struct freq_model_kind freq_model_##id = {                                               \
        .name = #id,                                                                               \
        .summary = text,                                                                           \
        .fit = id##_fit_model,                                                                     \
        .predict = regression_predict,                                                             \
        .fields = REGRESSION_FIELDS,                                                               \
        .size = sizeof(struct regression),                                                         \
        .check = regression_check,                                                                 \
    }

REGRESSION(linear, "least squares on activities and clock");
REGRESSION(ridge, "ridge regression on activities and clock");
REGRESSION(poly2, "least squares on polynomial features of degree 2");
REGRESSION(poly3, "ridge regression on polynomial features of degree 3");
