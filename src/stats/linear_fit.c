#include "stats/linear_fit.h"

#include "core/units.h"
#include "stats/distribution.h"

#define OUTSIDE_95 0.05

/* Sums of squares about the means, in two passes: one pass over x in the millions would cancel. */
struct sums {
    double count, mean_x, mean_y, xx, xy, yy;
};

static bool pair_of(double x, double y, enum linear_logs logs, double *u, double *v)
{
    if ((logs != LINEAR_PLAIN && x <= 0) || (logs == LINEAR_LOG_LOG && y <= 0))
        return false;
    *u = logs == LINEAR_PLAIN ? x : log(x);
    *v = logs == LINEAR_LOG_LOG ? log(y) : y;
    return is_known(*u) && is_known(*v);
}

static struct sums sum_up(const double *x, const double *y, size_t count, enum linear_logs logs)
{
    struct sums sums = {0};
    double u, v, first_u = UNKNOWN, first_v = UNKNOWN;
    bool u_varies = false, v_varies = false;
    for (size_t i = 0; i < count; i++)
        if (pair_of(x[i], y[i], logs, &u, &v)) {
            u_varies = u_varies || (sums.count > 0 && u != first_u);
            v_varies = v_varies || (sums.count > 0 && v != first_v);
            first_u = u;
            first_v = v;
            sums.count++;
            sums.mean_x += u;
            sums.mean_y += v;
        }
    sums.mean_x /= sums.count > 0 ? sums.count : 1;
    sums.mean_y /= sums.count > 0 ? sums.count : 1;
    for (size_t i = 0; i < count; i++)
        if (pair_of(x[i], y[i], logs, &u, &v)) {
            sums.xx += (u - sums.mean_x) * (u - sums.mean_x);
            sums.xy += (u - sums.mean_x) * (v - sums.mean_y);
            sums.yy += (v - sums.mean_y) * (v - sums.mean_y);
        }
    /* A mean of equal values may differ from them in its last digit: that is no spread. */
    if (!u_varies)
        sums.xx = sums.xy = 0;
    if (!v_varies)
        sums.yy = sums.xy = 0;
    return sums;
}

/* Of the residuals themselves, about the means: the difference of two sums would be rounding where the
 * fit is good, and so would distances from an intercept that lies far off. */
static double residual_squares(const double *x, const double *y, size_t count,
                               enum linear_logs logs, const struct sums *sums, double slope)
{
    double sum = 0, u, v;
    for (size_t i = 0; i < count; i++)
        if (pair_of(x[i], y[i], logs, &u, &v)) {
            double distance = v - sums->mean_y - slope * (u - sums->mean_x);
            sum += distance * distance;
        }
    return sum;
}

static void add_errors(const struct sums *sums, double squares, struct linear_fit *fit)
{
    double freedom = sums->count - 2;
    if (freedom < 1)
        return;
    double t = student_quantile(OUTSIDE_95, freedom);
    fit->residual = sqrt(squares / freedom);
    fit->slope_error = fit->residual / sqrt(sums->xx);
    fit->intercept_error =
        fit->residual * sqrt(1 / sums->count + sums->mean_x * sums->mean_x / sums->xx);
    fit->slope_low = fit->slope - t * fit->slope_error;
    fit->slope_high = fit->slope + t * fit->slope_error;
    fit->intercept_low = fit->intercept - t * fit->intercept_error;
    fit->intercept_high = fit->intercept + t * fit->intercept_error;
    if (fit->slope_error > 0)
        fit->p_value = student_outside(fit->slope / fit->slope_error, freedom);
    else
        fit->p_value = fit->slope == 0 ? 1 : 0;
}

bool linear_fit_logs(const double *x, const double *y, size_t count, enum linear_logs logs,
                     struct linear_fit *out)
{
    struct sums sums = sum_up(x, y, count, logs);
    *out = (struct linear_fit){
        .count = (size_t)sums.count,
        .slope = UNKNOWN,
        .intercept = UNKNOWN,
        .r2 = UNKNOWN,
        .slope_error = UNKNOWN,
        .intercept_error = UNKNOWN,
        .residual = UNKNOWN,
        .slope_low = UNKNOWN,
        .slope_high = UNKNOWN,
        .intercept_low = UNKNOWN,
        .intercept_high = UNKNOWN,
        .p_value = UNKNOWN,
    };
    if (sums.count < 2 || !(sums.xx > 0))
        return false;
    out->slope = sums.xy / sums.xx;
    out->intercept = sums.mean_y - out->slope * sums.mean_x;
    double squares = residual_squares(x, y, count, logs, &sums, out->slope);
    out->r2 = sums.yy > 0 ? 1 - squares / sums.yy : 1;
    add_errors(&sums, squares, out);
    return true;
}

bool linear_fit(const double *x, const double *y, size_t count, struct linear_fit *out)
{
    return linear_fit_logs(x, y, count, LINEAR_PLAIN, out);
}
