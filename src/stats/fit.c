#include "stats/fit.h"

#include <math.h>
#include <stdlib.h>

#include "core/random.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"

/* ---- a line by least squares ---- */

#define OUTSIDE_95 0.05

/* Sums of squares about the means, in two passes: a single pass would cancel for x in the millions. */
struct line_sums {
    double count, mean_x, mean_y, xx, xy, yy;
};

static bool transform(double x, double y, enum linear_logs logs, double *u, double *v)
{
    if ((logs != LINEAR_PLAIN && x <= 0) || (logs == LINEAR_LOG_LOG && y <= 0))
        return false;
    *u = logs == LINEAR_PLAIN ? x : log(x);
    *v = logs == LINEAR_LOG_LOG ? log(y) : y;
    return is_known(*u) && is_known(*v);
}

static struct line_sums sum_line(const double *x, const double *y, size_t count,
                                 enum linear_logs logs)
{
    struct line_sums sums = {0};
    double u, v, first_u = UNKNOWN, first_v = UNKNOWN;
    bool u_varies = false, v_varies = false;
    for (size_t i = 0; i < count; i++)
        if (transform(x[i], y[i], logs, &u, &v)) {
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
        if (transform(x[i], y[i], logs, &u, &v)) {
            sums.xx += (u - sums.mean_x) * (u - sums.mean_x);
            sums.xy += (u - sums.mean_x) * (v - sums.mean_y);
            sums.yy += (v - sums.mean_y) * (v - sums.mean_y);
        }
    /* Rounding of the mean must not make equal values appear to vary. */
    if (!u_varies)
        sums.xx = sums.xy = 0;
    if (!v_varies)
        sums.yy = sums.xy = 0;
    return sums;
}

/* Computed from the residuals, about the means: for a good fit the difference of two sums would be rounding error,
 * and so would distances from a remote intercept. */
static double line_residuals(const double *x, const double *y, size_t count, enum linear_logs logs,
                             const struct line_sums *sums, double slope)
{
    double sum = 0, u, v;
    for (size_t i = 0; i < count; i++)
        if (transform(x[i], y[i], logs, &u, &v)) {
            double distance = v - sums->mean_y - slope * (u - sums->mean_x);
            sum += distance * distance;
        }
    return sum;
}

static void add_line_errors(const struct line_sums *sums, double squares, struct linear_fit *fit)
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
        fit->p_value = student_two_sided(fit->slope / fit->slope_error, freedom);
    else
        fit->p_value = fit->slope == 0 ? 1 : 0;
}

bool linear_fit_logs(const double *x, const double *y, size_t count, enum linear_logs logs,
                     struct linear_fit *out)
{
    struct line_sums sums = sum_line(x, y, count, logs);
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
    double squares = line_residuals(x, y, count, logs, &sums, out->slope);
    out->r2 = sums.yy > 0 ? 1 - squares / sums.yy : 1;
    add_line_errors(&sums, squares, out);
    return true;
}

bool linear_fit(const double *x, const double *y, size_t count, struct linear_fit *out)
{
    return linear_fit_logs(x, y, count, LINEAR_PLAIN, out);
}

double linear_fit_band(const struct linear_fit *fit, double x, double x_mean)
{
    double t = (fit->slope_high - fit->slope) / fit->slope_error;
    double at_mean = fit->residual / sqrt((double)fit->count);
    return t * hypot(at_mean, fit->slope_error * (x - x_mean));
}

/* ---- a plane by least squares ---- */

/* Squared sine of the angle between x and z: collinear below this. */
#define SINE_SQUARED_MIN 1e-10

struct plane_sums {
    double count, mean_x, mean_z, mean_y, xx, xz, zz, xy, zy, yy;
};

static bool is_point(double x, double z, double y)
{
    return is_known(x) && is_known(z) && is_known(y);
}

static struct plane_sums sum_plane(const double *x, const double *z, const double *y, size_t count)
{
    struct plane_sums s = {0};
    for (size_t i = 0; i < count; i++)
        if (is_point(x[i], z[i], y[i])) {
            s.count++;
            s.mean_x += x[i];
            s.mean_z += z[i];
            s.mean_y += y[i];
        }
    double over = s.count > 0 ? s.count : 1;
    s.mean_x /= over;
    s.mean_z /= over;
    s.mean_y /= over;
    for (size_t i = 0; i < count; i++)
        if (is_point(x[i], z[i], y[i])) {
            double dx = x[i] - s.mean_x, dz = z[i] - s.mean_z, dy = y[i] - s.mean_y;
            s.xx += dx * dx;
            s.xz += dx * dz;
            s.zz += dz * dz;
            s.xy += dx * dy;
            s.zy += dz * dy;
            s.yy += dy * dy;
        }
    return s;
}

static double plane_residuals(const double *x, const double *z, const double *y, size_t count,
                              const struct plane_sums *s, const struct plane_fit *fit)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        if (is_point(x[i], z[i], y[i])) {
            double distance =
                y[i] - s->mean_y - fit->a * (x[i] - s->mean_x) - fit->b * (z[i] - s->mean_z);
            sum += distance * distance;
        }
    return sum;
}

static void add_plane_errors(const struct plane_sums *s, double determinant, double squares,
                             struct plane_fit *fit)
{
    if (s->count < 4)
        return;
    double variance = squares / (s->count - 3);
    double about_mean = (s->mean_x * s->mean_x * s->zz - 2 * s->mean_x * s->mean_z * s->xz +
                         s->mean_z * s->mean_z * s->xx) /
                        determinant;
    fit->a_error = sqrt(variance * s->zz / determinant);
    fit->b_error = sqrt(variance * s->xx / determinant);
    fit->intercept_error = sqrt(variance * (1 / s->count + about_mean));
}

bool plane_fit(const double *x, const double *z, const double *y, size_t count,
               struct plane_fit *out)
{
    struct plane_sums s = sum_plane(x, z, y, count);
    *out = (struct plane_fit){(size_t)s.count, UNKNOWN, UNKNOWN, UNKNOWN,
                              UNKNOWN,         UNKNOWN, UNKNOWN, UNKNOWN};
    double determinant = s.xx * s.zz - s.xz * s.xz;
    if (s.count < 3 || !(determinant > SINE_SQUARED_MIN * s.xx * s.zz))
        return false;
    out->a = (s.xy * s.zz - s.zy * s.xz) / determinant;
    out->b = (s.zy * s.xx - s.xy * s.xz) / determinant;
    out->intercept = s.mean_y - out->a * s.mean_x - out->b * s.mean_z;
    double squares = plane_residuals(x, z, y, count, &s, out);
    out->r2 = s.yy > 0 ? 1 - squares / s.yy : 1;
    add_plane_errors(&s, determinant, squares, out);
    return true;
}

/* ---- Theil-Sen estimator ---- */

struct points {
    double *x, *y; /* finite */
    size_t count;
};

static struct points finite_points(const double *x, const double *y, size_t count)
{
    struct points points = {.x = xreallocarray(NULL, count + 1, sizeof *x),
                            .y = xreallocarray(NULL, count + 1, sizeof *y)};
    for (size_t i = 0; i < count; i++)
        if (is_known(x[i]) && is_known(y[i])) {
            points.x[points.count] = x[i];
            points.y[points.count++] = y[i];
        }
    return points;
}

static void add_slope(const struct points *points, size_t i, size_t j, double *slopes,
                      size_t *count)
{
    double across = points->x[j] - points->x[i], slope = (points->y[j] - points->y[i]) / across;
    if (across != 0 &&
        is_known(slope)) /* differences may overflow: selection does not terminate on a NaN */
        slopes[(*count)++] = slope;
}

static size_t all_slopes(const struct points *points, double *slopes)
{
    size_t count = 0;
    for (size_t i = 0; i < points->count; i++)
        for (size_t j = i + 1; j < points->count; j++)
            add_slope(points, i, j, slopes, &count);
    return count;
}

static size_t sampled_slopes(const struct points *points, double *slopes)
{
    struct random random = random_seeded(points->count);
    size_t count = 0;
    for (size_t i = 0; i < THEIL_SEN_SAMPLED; i++) {
        size_t a = random_index(&random, points->count), b = random_index(&random, points->count);
        add_slope(points, a, b, slopes, &count);
    }
    return count;
}

/* Keeps every n-th value, at the front: the median of a large sample is as good. */
static size_t downsample(double *values, size_t count)
{
    size_t step = count / THEIL_SEN_SAMPLED + 1, kept = 0;
    for (size_t i = 0; i < count; i += step)
        values[kept++] = values[i];
    return kept;
}

void theil_sen(const double *x, const double *y, size_t count, struct theil_sen *out)
{
    struct points points = finite_points(x, y, count);
    *out = (struct theil_sen){.slope = UNKNOWN, .intercept = UNKNOWN};
    size_t pairs_max = points.count * points.count / 2;
    out->sampled = points.count > THEIL_SEN_EXACT;
    double *slopes =
        xreallocarray(NULL, (out->sampled ? THEIL_SEN_SAMPLED : pairs_max) + 1, sizeof *slopes);
    out->pairs = out->sampled ? sampled_slopes(&points, slopes) : all_slopes(&points, slopes);
    out->slope = select_median(slopes, out->pairs);
    double middle_y = select_median(points.y, downsample(points.y, points.count));
    double middle_x = select_median(points.x, downsample(points.x, points.count));
    out->intercept = middle_y - out->slope * middle_x;
    free(slopes);
    free(points.x);
    free(points.y);
}
