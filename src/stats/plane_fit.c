#include "stats/plane_fit.h"

#include "core/units.h"

/* How nearly x and z may be the same, squared sine of their angle, before there is no telling them
 * apart. */
#define ANGLE_LEAST 1e-10

struct sums {
    double count, mean_x, mean_z, mean_y, xx, xz, zz, xy, zy, yy;
};

static bool is_whole(double x, double z, double y)
{
    return is_known(x) && is_known(z) && is_known(y);
}

static struct sums sum_up(const double *x, const double *z, const double *y, size_t count)
{
    struct sums s = {0};
    for (size_t i = 0; i < count; i++)
        if (is_whole(x[i], z[i], y[i])) {
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
        if (is_whole(x[i], z[i], y[i])) {
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

static double residual_squares(const double *x, const double *z, const double *y, size_t count,
                               const struct sums *s, const struct plane_fit *fit)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        if (is_whole(x[i], z[i], y[i])) {
            double distance =
                y[i] - s->mean_y - fit->a * (x[i] - s->mean_x) - fit->b * (z[i] - s->mean_z);
            sum += distance * distance;
        }
    return sum;
}

static void add_errors(const struct sums *s, double determinant, double squares,
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
    struct sums s = sum_up(x, z, y, count);
    *out = (struct plane_fit){(size_t)s.count, UNKNOWN, UNKNOWN, UNKNOWN,
                              UNKNOWN,         UNKNOWN, UNKNOWN, UNKNOWN};
    double determinant = s.xx * s.zz - s.xz * s.xz;
    if (s.count < 3 || !(determinant > ANGLE_LEAST * s.xx * s.zz))
        return false;
    out->a = (s.xy * s.zz - s.zy * s.xz) / determinant;
    out->b = (s.zy * s.xx - s.xy * s.xz) / determinant;
    out->intercept = s.mean_y - out->a * s.mean_x - out->b * s.mean_z;
    double squares = residual_squares(x, z, y, count, &s, out);
    out->r2 = s.yy > 0 ? 1 - squares / s.yy : 1;
    add_errors(&s, determinant, squares, out);
    return true;
}
