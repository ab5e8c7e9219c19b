/* The normal matrix has at most a dozen columns, so its eigenvalues come from plain Jacobi rotations, and the
 * bootstrap refits the system from scratch for every draw. */
#include "estimate/linear_system.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "stats/least_squares.h"
#include "stats/quantile.h"

enum { SWEEPS = 60, DRAWS_MAX = 2000, DRAWS_MIN = 200, ROWS_DRAWN_MAX = 4000000 };

/* ---- spectrum ---- */

/* A Jacobi rotation of columns p and q that zeroes m[p][q]. */
static void rotate(double m[][LINEAR_COLUMNS_MAX], struct linear_spectrum *s, size_t p, size_t q)
{
    if (m[p][q] == 0)
        return;
    double theta = (m[q][q] - m[p][p]) / (2 * m[p][q]);
    double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1), n = t * c;
    for (size_t k = 0; k < s->columns; k++) {
        double kp = m[k][p], kq = m[k][q];
        m[k][p] = c * kp - n * kq;
        m[k][q] = n * kp + c * kq;
    }
    for (size_t k = 0; k < s->columns; k++) {
        double pk = m[p][k], qk = m[q][k];
        m[p][k] = c * pk - n * qk;
        m[q][k] = n * pk + c * qk;
        double vp = s->vectors[k][p], vq = s->vectors[k][q];
        s->vectors[k][p] = c * vp - n * vq;
        s->vectors[k][q] = n * vp + c * vq;
    }
}

void linear_spectrum_of(const struct linear_system *system, struct linear_spectrum *out)
{
    double m[LINEAR_COLUMNS_MAX][LINEAR_COLUMNS_MAX] = {{0}};
    size_t columns = system->columns;
    *out = (struct linear_spectrum){.columns = columns};
    for (size_t i = 0; i < system->rows; i++)
        for (size_t p = 0; p < columns; p++)
            for (size_t q = 0; q < columns; q++)
                m[p][q] += system->a[i * columns + p] * system->a[i * columns + q];
    for (size_t p = 0; p < columns; p++)
        out->vectors[p][p] = 1;
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (size_t p = 0; p < columns; p++)
            for (size_t q = p + 1; q < columns; q++)
                rotate(m, out, p, q);
    for (size_t p = 0; p < columns; p++) {
        out->values[p] = m[p][p];
        if (m[p][p] > out->values[out->largest])
            out->largest = p;
        if (m[p][p] < out->values[out->smallest])
            out->smallest = p;
    }
}

double linear_spectrum_condition(const struct linear_spectrum *spectrum)
{
    double most = spectrum->values[spectrum->largest];
    double least = spectrum->values[spectrum->smallest];
    return least > most * (double)spectrum->columns * DBL_EPSILON ? sqrt(most / least) : INFINITY;
}

void linear_spectrum_worst_pair(const struct linear_spectrum *spectrum, size_t *a, size_t *b)
{
    size_t first = 0, second = 1;
    for (size_t k = 1; k < spectrum->columns; k++) {
        double weight = fabs(spectrum->vectors[k][spectrum->smallest]);
        if (weight > fabs(spectrum->vectors[first][spectrum->smallest])) {
            second = first;
            first = k;
        } else if (k == 1 || weight > fabs(spectrum->vectors[second][spectrum->smallest])) {
            second = k;
        }
    }
    *a = first < second ? first : second;
    *b = first < second ? second : first;
}

double linear_spectrum_leverage(const struct linear_spectrum *spectrum, const double *row)
{
    double sum = 0;
    for (size_t v = 0; v < spectrum->columns; v++) {
        double along = 0;
        for (size_t k = 0; k < spectrum->columns; k++)
            along += row[k] * spectrum->vectors[k][v];
        sum += along * along / spectrum->values[v];
    }
    return sum;
}

/* ---- bootstrap ---- */

struct resampling {
    const struct linear_system *system;
    double *a, *b; /* of one draw */
    struct random random;
};

/* Draws as many rows of each group as it has, with replacement, and solves. */
static enum err draw_once(struct resampling *r, double *x)
{
    const struct linear_system *system = r->system;
    size_t width = system->columns;
    for (size_t group = 0; group < system->groups; group++) {
        size_t from = system->first[group], to = system->first[group + 1];
        for (size_t i = from; i < to; i++) {
            size_t row = from + random_index(&r->random, to - from);
            memcpy(&r->a[i * width], &system->a[row * width], width * sizeof *r->a);
            r->b[i] = system->b[row];
        }
    }
    return least_squares(r->a, r->b, system->rows, width, x);
}

static enum err draw_all(struct resampling *r, unsigned draws, double *found,
                         struct linear_intervals *out)
{
    const double ps[] = {0.025, 0.975};
    size_t width = r->system->columns, count = 0;
    double x[LINEAR_COLUMNS_MAX], ends[2];
    for (unsigned k = 0; k < draws; k++) {
        enum err err = draw_once(r, x);
        if (err == ERR_NO_MEMORY)
            return err;
        if (err)
            continue;
        for (size_t j = 0; j < width; j++)
            found[j * draws + count] = x[j];
        count++;
    }
    out->singular = 1 - (double)count / draws;
    for (size_t j = 0; j < width; j++) {
        quantiles(&found[j * draws], count, ps, 2, ends);
        out->low[j] = ends[0];
        out->high[j] = ends[1];
    }
    return ERR_OK;
}

/* A larger system gets fewer draws, since each costs more. */
static unsigned default_draws(const struct linear_system *system)
{
    size_t affordable = ROWS_DRAWN_MAX / system->rows;
    return affordable > DRAWS_MAX   ? DRAWS_MAX
           : affordable < DRAWS_MIN ? DRAWS_MIN
                                    : (unsigned)affordable;
}

enum err linear_bootstrap(const struct linear_system *system, unsigned draws, uint64_t seed,
                          struct linear_intervals *out)
{
    draws = draws ? draws : default_draws(system);
    struct resampling r = {.system = system,
                           .a = malloc(system->rows * system->columns * sizeof *r.a),
                           .b = malloc(system->rows * sizeof *r.b),
                           .random = random_seeded(seed)};
    double *found = malloc(draws * system->columns * sizeof *found);
    enum err err = r.a && r.b && found ? draw_all(&r, draws, found, out) : ERR_NO_MEMORY;
    free(r.a);
    free(r.b);
    free(found);
    return err;
}
