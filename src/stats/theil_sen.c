#include "stats/theil_sen.h"

#include <stdlib.h>

#include "core/random.h"
#include "core/units.h"
#include "stats/select.h"

struct points {
    double *x, *y; /* of which both are finite */
    size_t count;
};

static enum err points_of(const double *x, const double *y, size_t count, struct points *out)
{
    *out = (struct points){malloc((count + 1) * sizeof *x), malloc((count + 1) * sizeof *y), 0};
    if (!out->x || !out->y)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        if (is_known(x[i]) && is_known(y[i])) {
            out->x[out->count] = x[i];
            out->y[out->count++] = y[i];
        }
    return ERR_OK;
}

static void add_slope(const struct points *points, size_t i, size_t j, double *slopes,
                      size_t *count)
{
    double across = points->x[j] - points->x[i];
    if (across != 0)
        slopes[(*count)++] = (points->y[j] - points->y[i]) / across;
}

static size_t all_slopes(const struct points *points, double *slopes)
{
    size_t count = 0;
    for (size_t i = 0; i < points->count; i++)
        for (size_t j = i + 1; j < points->count; j++)
            add_slope(points, i, j, slopes, &count);
    return count;
}

static size_t drawn_slopes(const struct points *points, double *slopes)
{
    struct random draws = random_seeded(points->count);
    size_t count = 0;
    for (size_t i = 0; i < THEIL_SEN_DRAWN; i++) {
        size_t a = random_index(&draws, points->count), b = random_index(&draws, points->count);
        add_slope(points, a, b, slopes, &count);
    }
    return count;
}

/* Every so-many-th of very many, at the front; their median is as good. */
static size_t thin(double *values, size_t count)
{
    size_t step = count / THEIL_SEN_DRAWN + 1, kept = 0;
    for (size_t i = 0; i < count; i += step)
        values[kept++] = values[i];
    return kept;
}

enum err theil_sen(const double *x, const double *y, size_t count, struct theil_sen *out)
{
    struct points points;
    *out = (struct theil_sen){.slope = UNKNOWN, .intercept = UNKNOWN};
    enum err err = points_of(x, y, count, &points);
    size_t most = points.count * points.count / 2;
    out->drawn = points.count > THEIL_SEN_EXACT;
    double *slopes =
        err ? NULL : malloc(((out->drawn ? THEIL_SEN_DRAWN : most) + 1) * sizeof *slopes);
    if (!slopes)
        err = ERR_NO_MEMORY;
    if (!err) {
        out->count = points.count;
        out->pairs = out->drawn ? drawn_slopes(&points, slopes) : all_slopes(&points, slopes);
        out->slope = select_median(slopes, out->pairs);
        double middle_y = select_median(points.y, thin(points.y, points.count));
        double middle_x = select_median(points.x, thin(points.x, points.count));
        out->intercept = middle_y - out->slope * middle_x;
    }
    free(slopes);
    free(points.x);
    free(points.y);
    return err;
}
