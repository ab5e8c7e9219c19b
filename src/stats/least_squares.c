#include "stats/least_squares.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "core/xalloc.h"
#include "stats/descriptive.h"

/* A column is linearly dependent if the norm of its part orthogonal to the columns before it is below this share of
 * its own norm. */
#define RANK_TOLERANCE 1e-10

/* ---- reflections ---- */

struct qr {
    double *r;    /* rows x columns: its upper triangle is R */
    double *b;    /* transformed together with a */
    double *norm; /* of each column of the matrix */
    size_t rows, columns;
};

static void qr_release(struct qr *it)
{
    free(it->r);
    free(it->b);
    free(it->norm);
}

static double column_norm(const struct qr *it, size_t column, size_t from)
{
    double sum = 0;
    for (size_t i = from; i < it->rows; i++)
        sum += it->r[i * it->columns + column] * it->r[i * it->columns + column];
    return sqrt(sum);
}

/* Zeroes column k below its diagonal; false when the column is dependent. */
static bool reflect(struct qr *it, size_t k, double *mirror)
{
    size_t n = it->columns;
    double left = column_norm(it, k, k);
    if (!(left > RANK_TOLERANCE * it->norm[k]))
        return false;
    double *diagonal = &it->r[k * n + k], squares = 0;
    for (size_t i = k; i < it->rows; i++)
        mirror[i] = it->r[i * n + k];
    mirror[k] += *diagonal > 0 ? left : -left;
    for (size_t i = k; i < it->rows; i++)
        squares += mirror[i] * mirror[i];
    for (size_t j = k; j <= n; j++) { /* column n is b */
        double dot = 0;
        for (size_t i = k; i < it->rows; i++)
            dot += mirror[i] * (j < n ? it->r[i * n + j] : it->b[i]);
        for (size_t i = k; i < it->rows; i++)
            *(j < n ? &it->r[i * n + j] : &it->b[i]) -= 2 * dot / squares * mirror[i];
    }
    return true;
}

static enum err qr_init(struct qr *it, const double *a, const double *b, size_t rows,
                        size_t columns)
{
    *it = (struct qr){.rows = rows, .columns = columns};
    if (rows == 0 || columns == 0 || rows < columns)
        return ERR_BAD_VALUE;
    it->r = xmemdup(a, rows * columns * sizeof *a);
    it->b = xcalloc(rows, sizeof *it->b);
    it->norm = xreallocarray(NULL, columns, sizeof *it->norm);
    double *mirror = xreallocarray(NULL, rows, sizeof *mirror);
    enum err err = ERR_OK;
    if (b)
        memcpy(it->b, b, rows * sizeof *b);
    for (size_t j = 0; j < columns; j++)
        it->norm[j] = column_norm(it, j, 0);
    for (size_t k = 0; k < columns && !err; k++)
        err = reflect(it, k, mirror) ? ERR_OK : ERR_BAD_VALUE;
    free(mirror);
    return err;
}

enum err least_squares(const double *a, const double *b, size_t rows, size_t columns, double *x)
{
    struct qr it;
    enum err err = qr_init(&it, a, b, rows, columns);
    for (size_t k = columns; !err && k-- > 0;) {
        x[k] = it.b[k];
        for (size_t j = k + 1; j < columns; j++)
            x[k] -= it.r[k * columns + j] * x[j];
        x[k] /= it.r[k * columns + k];
    }
    qr_release(&it);
    return err;
}

/* Iteratively reweighted least squares: weights of 1 / |residual|; residuals below this share of the largest are
 * clamped to it. */
#define LAD_FLOOR 1e-6
enum { LAD_ROUNDS = 40 };

static double largest_residual(const double *a, const double *b, size_t rows, size_t columns,
                               const double *x, double *residuals)
{
    double largest = 0;
    for (size_t i = 0; i < rows; i++) {
        double sum = -b[i];
        for (size_t j = 0; j < columns; j++)
            sum += a[i * columns + j] * x[j];
        residuals[i] = fabs(sum);
        largest = fmax(largest, residuals[i]);
    }
    return largest;
}

static void weigh(const double *a, const double *b, size_t rows, size_t columns, double floor,
                  double *weighted, double *residuals)
{
    for (size_t i = 0; i < rows; i++) {
        double root = sqrt(1 / fmax(residuals[i], floor));
        for (size_t j = 0; j < columns; j++)
            weighted[i * columns + j] = root * a[i * columns + j];
        residuals[i] = root * b[i];
    }
}

enum err least_absolute(const double *a, const double *b, size_t rows, size_t columns, double *x)
{
    double *weighted = xreallocarray(NULL, rows * columns + 1, sizeof *weighted);
    double *residuals = xreallocarray(NULL, rows + 1, sizeof *residuals);
    double *next = xreallocarray(NULL, columns + 1, sizeof *next);
    enum err err = least_squares(a, b, rows, columns, x);
    for (size_t round = 0; !err && round < LAD_ROUNDS; round++) {
        double largest = largest_residual(a, b, rows, columns, x, residuals), moved = 0, size = 0;
        if (!(largest > 0))
            break;
        weigh(a, b, rows, columns, LAD_FLOOR * largest, weighted, residuals);
        if (least_squares(weighted, residuals, rows, columns, next) != ERR_OK)
            break; /* the last solution is as accurate as the arithmetic allows */
        for (size_t j = 0; j < columns; j++) {
            moved = fmax(moved, fabs(next[j] - x[j]));
            size = fmax(size, fabs(next[j]));
            x[j] = next[j];
        }
        if (moved <= 1e-9 * size)
            break;
    }
    free(weighted);
    free(residuals);
    free(next);
    return err;
}

/* sigmas[j] is the norm of row j of R^-1, since (a'a)^-1 = R^-1 R^-1'. */
enum err least_squares_sigmas(const double *a, size_t rows, size_t columns, double *sigmas)
{
    struct qr it;
    enum err err = qr_init(&it, a, NULL, rows, columns);
    double *inverse = xcalloc(columns * columns, sizeof *inverse);
    for (size_t c = 0; !err && c < columns; c++)
        for (size_t k = c + 1; k-- > 0;) {
            double value = k == c ? 1 : 0;
            for (size_t j = k + 1; j <= c; j++)
                value -= it.r[k * columns + j] * inverse[j * columns + c];
            inverse[k * columns + c] = value / it.r[k * columns + k];
        }
    for (size_t j = 0; !err && j < columns; j++) {
        double sum = 0;
        for (size_t c = j; c < columns; c++)
            sum += inverse[j * columns + c] * inverse[j * columns + c];
        sigmas[j] = sqrt(sum);
    }
    free(inverse);
    qr_release(&it);
    return err;
}

/* ---- non-negative ---- */

struct active_set {
    const double *a, *b;
    size_t rows, columns;
    double *x, *z, *gradient; /* the current and the unconstrained solution */
    double *part, *found;     /* the free columns, and their solution */
    bool *is_free, *refused;
};

/* The unconstrained solution over the free columns; the others are 0. */
static enum err solve_free(struct active_set *s)
{
    size_t width = 0, at = 0;
    for (size_t j = 0; j < s->columns; j++)
        width += s->is_free[j];
    for (size_t i = 0; i < s->rows; i++)
        for (size_t j = 0; j < s->columns; j++)
            if (s->is_free[j])
                s->part[at++] = s->a[i * s->columns + j];
    enum err err = width ? least_squares(s->part, s->b, s->rows, width, s->found) : ERR_OK;
    at = 0;
    for (size_t j = 0; !err && j < s->columns; j++)
        s->z[j] = s->is_free[j] ? s->found[at++] : 0;
    return err;
}

/* How much each column would reduce the residual. */
static void compute_gradient(struct active_set *s)
{
    memset(s->gradient, 0, s->columns * sizeof *s->gradient);
    for (size_t i = 0; i < s->rows; i++) {
        double rest = s->b[i];
        for (size_t j = 0; j < s->columns; j++)
            rest -= s->a[i * s->columns + j] * s->x[j];
        for (size_t j = 0; j < s->columns; j++)
            s->gradient[j] += s->a[i * s->columns + j] * rest;
    }
}

/* The bound column with the largest gradient; -1 when all are within rounding. */
static long next_column(const struct active_set *s, const double *scale)
{
    long best = -1;
    for (size_t j = 0; j < s->columns; j++)
        if (!s->is_free[j] && !s->refused[j] && s->gradient[j] > 1e-12 * scale[j] &&
            (best < 0 || s->gradient[j] / scale[j] > s->gradient[best] / scale[best]))
            best = (long)j;
    return best;
}

/* Moves from x towards z until a column reaches 0, which becomes bound again. */
static void step(struct active_set *s)
{
    double max = 1;
    size_t blocking = s->columns;
    for (size_t j = 0; j < s->columns; j++)
        if (s->is_free[j] && s->z[j] <= 0 && s->x[j] / (s->x[j] - s->z[j]) <= max) {
            max = s->x[j] / (s->x[j] - s->z[j]);
            blocking = j;
        }
    for (size_t j = 0; j < s->columns; j++) {
        s->x[j] += max * (s->z[j] - s->x[j]);
        if (s->is_free[j] && (j == blocking || s->x[j] <= 0)) {
            s->x[j] = 0;
            s->is_free[j] = false;
        }
    }
}

static bool any_negative(const struct active_set *s)
{
    for (size_t j = 0; j < s->columns; j++)
        if (s->is_free[j] && s->z[j] <= 0)
            return true;
    return false;
}

/* Frees one column and solves with it. */
static enum err admit(struct active_set *s, size_t column)
{
    s->is_free[column] = true;
    enum err err = solve_free(s);
    if (err == ERR_BAD_VALUE || (!err && s->z[column] <= 0)) {
        s->is_free[column] = false; /* linearly dependent, or its gradient was rounding error */
        s->refused[column] = true;
        return ERR_OK;
    }
    while (!err && any_negative(s)) {
        step(s);
        err = solve_free(s);
    }
    if (err)
        return err;
    memcpy(s->x, s->z, s->columns * sizeof *s->x);
    memset(s->refused, 0, s->columns * sizeof *s->refused);
    return ERR_OK;
}

static enum err run_active_set(struct active_set *s, double *scale)
{
    double size = 0;
    for (size_t i = 0; i < s->rows; i++)
        size += s->b[i] * s->b[i];
    for (size_t j = 0; j < s->columns; j++) {
        double squares = 0;
        for (size_t i = 0; i < s->rows; i++)
            squares += s->a[i * s->columns + j] * s->a[i * s->columns + j];
        scale[j] = fmax(sqrt(squares * size), DBL_MIN);
    }
    for (size_t round = 0; round < 30 * s->columns; round++) {
        compute_gradient(s);
        long column = next_column(s, scale);
        if (column < 0)
            return ERR_OK;
        enum err err = admit(s, (size_t)column);
        if (err)
            return err;
    }
    return ERR_BAD_VALUE; /* cycling, which only rounding can cause */
}

enum err least_squares_nonnegative(const double *a, const double *b, size_t rows, size_t columns,
                                   double *x)
{
    if (rows == 0 || columns == 0)
        return ERR_BAD_VALUE;
    double *numbers = xcalloc(rows * columns + 4 * columns, sizeof *numbers);
    bool *flags = xcalloc(2 * columns, sizeof *flags);
    double *rest = numbers + rows * columns;
    memset(x, 0, columns * sizeof *x);
    struct active_set set = {
        .a = a,
        .b = b,
        .rows = rows,
        .columns = columns,
        .x = x,
        .z = rest,
        .gradient = rest + columns,
        .part = numbers,
        .found = rest + 2 * columns,
        .is_free = flags,
        .refused = flags + columns,
    };
    enum err err = run_active_set(&set, rest + 3 * columns);
    free(numbers);
    free(flags);
    return err;
}

/* ---- conditioning of a system ---- */

/* The normal matrix has at most a dozen columns, so Jacobi rotations give its eigenvalues, and the bootstrap refits
 * the system for every draw. */
enum { SWEEPS = 60, DRAWS_MAX = 2000, DRAWS_MIN = 200, ROWS_DRAWN_MAX = 4000000 };

/* A Jacobi rotation of columns p and q that zeroes m[p][q]. */
static void rotate(double m[][LEAST_SQUARES_COLUMNS_MAX], struct least_squares_spectrum *s,
                   size_t p, size_t q)
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

void least_squares_spectrum_of(const struct least_squares_system *system,
                               struct least_squares_spectrum *out)
{
    double m[LEAST_SQUARES_COLUMNS_MAX][LEAST_SQUARES_COLUMNS_MAX] = {{0}};
    size_t columns = system->columns;
    *out = (struct least_squares_spectrum){.columns = columns};
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

double least_squares_spectrum_condition(const struct least_squares_spectrum *spectrum)
{
    double max = spectrum->values[spectrum->largest];
    double min = spectrum->values[spectrum->smallest];
    return min > max * (double)spectrum->columns * DBL_EPSILON ? sqrt(max / min) : INFINITY;
}

void least_squares_spectrum_worst_pair(const struct least_squares_spectrum *spectrum, size_t *a,
                                       size_t *b)
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

double least_squares_spectrum_leverage(const struct least_squares_spectrum *spectrum,
                                       const double *row)
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
    const struct least_squares_system *system;
    double *a, *b; /* of one draw */
    struct random random;
};

/* Draws as many rows of each group as it has, with replacement, and solves. */
static enum err draw_once(struct resampling *r, double *x)
{
    const struct least_squares_system *system = r->system;
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

static void draw_all(struct resampling *r, unsigned draws, double *found,
                     struct least_squares_intervals *out)
{
    const double ps[] = {0.025, 0.975};
    size_t width = r->system->columns, count = 0;
    double x[LEAST_SQUARES_COLUMNS_MAX], ends[2];
    for (unsigned k = 0; k < draws; k++) {
        if (draw_once(r, x))
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
}

/* Fewer draws for a larger system, since each costs more. */
static unsigned default_draws(const struct least_squares_system *system)
{
    size_t affordable = ROWS_DRAWN_MAX / system->rows;
    return affordable > DRAWS_MAX   ? DRAWS_MAX
           : affordable < DRAWS_MIN ? DRAWS_MIN
                                    : (unsigned)affordable;
}

void least_squares_bootstrap(const struct least_squares_system *system, unsigned draws,
                             uint64_t seed, struct least_squares_intervals *out)
{
    draws = draws ? draws : default_draws(system);
    struct resampling r = {.system = system,
                           .a = xreallocarray(NULL, system->rows * system->columns, sizeof *r.a),
                           .b = xreallocarray(NULL, system->rows, sizeof *r.b),
                           .random = random_seeded(seed)};
    double *found = xreallocarray(NULL, draws * system->columns, sizeof *found);
    draw_all(&r, draws, found, out);
    free(r.a);
    free(r.b);
    free(found);
}
