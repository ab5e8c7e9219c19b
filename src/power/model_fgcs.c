/* fgcs: the model of G. Ali, M. Side, S. Bhalachandra, N. J. Wright and Y. Chen, "An automated and portable method for
 * selecting an optimal GPU frequency", Future Generation Computer Systems 149, 2023, doi 10.1016/j.future.2023.07.011:
 *
 *   ln(1 + P) = b0 + b1 fp + b2 dram + b3 ln(1 + f)
 *   ln(1 + T) = ln(1 + T(fmax)) + a1 fp + a2 d + a3 fp^2 + a4 fp d + a5 d^2,   d = ln(1 + fmax) - ln(1 + f)
 *
 * with its published coefficients, or refitted.  The published ones are of two kernels on one V100, whose fmax is part of
 * them, and do not give T(fmax) at fmax. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json_bind.h"
#include "core/xalloc.h"
#include "power/activity.h"
#include "stats/least_squares.h"

enum { POWER_TERMS = 4, TIME_TERMS = 5 };

struct fgcs {
    double power[POWER_TERMS], time[TIME_TERMS];
    size_t time_terms; /* 0: time is unknown */
    double log_fmax;   /* ln(1 + fmax); UNKNOWN: that of the target */
};

static const struct fgcs PUBLISHED = {
    .power = {-1.0318354343254663, 0.84864, 0.09749, 0.77006},
    .time = {1.43847511, -0.16736726, -0.90400864, 0.48241361, 0.78898516},
    .time_terms = TIME_TERMS,
    .log_fmax = 7.230563,
};

static void power_terms(double fp, double dram, double mhz, double *row)
{
    const double terms[POWER_TERMS] = {1, fp, dram, log1p(mhz)};
    memcpy(row, terms, sizeof terms);
}

static void time_terms(double fp, double d, double *row)
{
    const double terms[TIME_TERMS] = {fp, d, fp * fp, fp * d, d * d};
    memcpy(row, terms, sizeof terms);
}

/* ---- fitting ---- */

static enum err refit_power(const struct activity_rows *rows, struct fgcs *out)
{
    double *a = xmalloc((rows->count + 1) * POWER_TERMS * sizeof *a);
    double *b = xmalloc((rows->count + 1) * sizeof *b);
    for (size_t i = 0; i < rows->count; i++) {
        const struct activity_row *row = &rows->items[i];
        power_terms(row->features[ACTIVITY_FP], row->features[ACTIVITY_DRAM],
                    row->features[ACTIVITY_CLOCK] * row->fmax_mhz, a + i * POWER_TERMS);
        b[i] = log1p(row->power_w);
    }
    enum err err = least_squares(a, b, rows->count, POWER_TERMS, out->power);
    free(a);
    free(b);
    return err;
}

static enum err refit_time(const struct activity_rows *rows, struct fgcs *out)
{
    double *a = xmalloc((rows->count + 1) * TIME_TERMS * sizeof *a);
    double *b = xmalloc((rows->count + 1) * sizeof *b);
    size_t count = 0;
    enum err err = ERR_OK;
    for (size_t i = 0; i < rows->count; i++) {
        const struct activity_row *row = &rows->items[i];
        double mhz = row->features[ACTIVITY_CLOCK] * row->fmax_mhz;
        double longer = log1p(row->time_s) - log1p(row->fmax_time_s);
        if (!is_known(longer))
            continue;
        time_terms(row->features[ACTIVITY_FP], log1p(row->fmax_mhz) - log1p(mhz),
                   a + count * TIME_TERMS);
        b[count++] = longer;
    }
    out->time_terms = count ? TIME_TERMS : 0;
    if (count)
        err = least_squares(a, b, count, TIME_TERMS, out->time);
    free(a);
    free(b);
    return err;
}

static enum err fgcs_fit(const struct freq_curves *curves, const struct freq_model_options *options,
                         void **state, struct error *why)
{
    struct activity_rows rows = {0};
    struct fgcs fitted = {.log_fmax = UNKNOWN};
    enum err err = ERR_OK;
    if (options->is_published) {
        fitted = PUBLISHED;
    } else {
        err = activity_rows_of(curves, &rows, why);
        if (!err)
            err = refit_power(&rows, &fitted);
        if (!err)
            err = refit_time(&rows, &fitted);
        if (err == ERR_BAD_VALUE)
            err_set(why, err, "the measurements do not determine the coefficients of fgcs");
        activity_rows_release(&rows);
    }
    *state = err ? NULL : xmemdup(&fitted, sizeof fitted);
    return err;
}

/* ---- predicting ---- */

static double sum_of(const double *terms, const double *coefficients, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += terms[i] * coefficients[i];
    return sum;
}

static enum err fgcs_values(const void *state, const struct freq_target *target,
                            const double (*features)[ACTIVITY_FEATURES], size_t count,
                            double *watts, double *relative, struct error *why)
{
    const struct fgcs *fgcs = state;
    double fmax_mhz = target->fmax_mhz > 0 ? target->fmax_mhz : target->probes[0].freq_mhz;
    double time = UNKNOWN;
    if (target->fmax_time_s > 0)
        time = target->fmax_time_s;
    else if (target->probe_count)
        time = target->probes[0].time_s;
    double log_fmax = is_known(fgcs->log_fmax) ? fgcs->log_fmax : log1p(fmax_mhz);
    (void)why;
    for (size_t i = 0; i < count; i++) {
        double mhz = features[i][ACTIVITY_CLOCK] * fmax_mhz, power[POWER_TERMS], terms[TIME_TERMS];
        power_terms(features[i][ACTIVITY_FP], features[i][ACTIVITY_DRAM], mhz, power);
        time_terms(features[i][ACTIVITY_FP], log_fmax - log1p(mhz), terms);
        watts[i] = expm1(sum_of(power, fgcs->power, POWER_TERMS));
        relative[i] = fgcs->time_terms
                          ? expm1(log1p(time) + sum_of(terms, fgcs->time, TIME_TERMS)) / time
                          : UNKNOWN;
    }
    return ERR_OK;
}

static enum err fgcs_predict(const void *state, const struct freq_target *target, const double *mhz,
                             size_t count, struct freq_prediction *out, struct error *why)
{
    return activity_predict(fgcs_values, state, target, mhz, count, out, why);
}

/* ---- files ---- */

static const struct json_field FGCS_FIELDS[] = {
    BIND_VECTOR(fgcs, power, "power", .flags = FIELD_REQUIRED),
    BIND_SERIES(fgcs, time, time_terms, "time"),
    BIND_NUMBER(fgcs, log_fmax, "log_fmax"),
    {0},
};

static enum err fgcs_check(const struct json_place *at, void *state)
{
    const struct fgcs *fgcs = state;
    return fgcs->time_terms == 0 || fgcs->time_terms == TIME_TERMS
               ? ERR_OK
               : json_refuse(at, "time", "must be an array of 0 or %d numbers", TIME_TERMS);
}

const struct freq_model_kind freq_model_fgcs = {
    .name = "fgcs",
    .summary = "log-linear in activities and clock, refitted or as published",
    .fit = fgcs_fit,
    .predict = fgcs_predict,
    .fields = FGCS_FIELDS,
    .size = sizeof(struct fgcs),
    .check = fgcs_check,
};
