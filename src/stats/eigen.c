/* All loops run along rows of the matrices, so that they are fast for the thousands of columns that features have. */
#include "stats/eigen.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "core/xalloc.h"

/* ---- products ---- */

static double dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* to += factor * from */
static void add_scaled(double *to, double factor, const double *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += factor * from[i];
}

/* out = a b */
static void multiply(const double *a, const double *b, size_t size, double *out)
{
    memset(out, 0, size * size * sizeof *out);
    for (size_t i = 0; i < size; i++)
        for (size_t k = 0; k < size; k++)
            add_scaled(&out[i * size], a[i * size + k], &b[k * size], size);
}

static double *new_matrix(size_t size)
{
    return xcalloc(size * size, sizeof(double));
}

/* ---- tridiagonal form ---- */

/* a = Q T Q', with Q the product of the reflections 1 - v v', one per step. */
struct tridiagonal {
    size_t size;
    double *diagonal, *beside; /* beside[i] is between i and i + 1 */
    double *reflections;       /* row k: the v of step k, of length sqrt(2) or 0 */
};

static void tridiagonal_release(struct tridiagonal *t)
{
    free(t->diagonal);
    free(t->beside);
    free(t->reflections);
}

/* The vector v of a reflection that maps x to a multiple of its first element's axis, which is returned. */
static double reflect(const double *x, size_t count, double *v)
{
    double scale = 0, length;
    for (size_t i = 1; i < count; i++)
        scale = fmax(scale, fabs(x[i]));
    memset(v, 0, count * sizeof *v);
    if (scale == 0)
        return x[0];
    scale = fmax(scale, fabs(x[0]));
    for (size_t i = 0; i < count; i++)
        v[i] = x[i] / scale;
    length = copysign(sqrt(dot(v, v, count)), v[0]);
    v[0] += length;
    double factor = sqrt(2 / dot(v, v, count));
    for (size_t i = 0; i < count; i++)
        v[i] *= factor;
    return -length * scale;
}

/* Overwrites a, of which the lower right part of step k remains to be reduced. */
static void tridiagonal_init(struct tridiagonal *t, double *a, size_t size)
{
    *t = (struct tridiagonal){size, xcalloc(size, sizeof(double)), xcalloc(size, sizeof(double)),
                              new_matrix(size)};
    double *w = xcalloc(size, sizeof *w);
    for (size_t k = 0; k + 1 < size; k++) {
        size_t from = k + 1, count = size - from;
        double *v = &t->reflections[k * size + from];
        t->diagonal[k] = a[k * size + k];
        t->beside[k] = reflect(&a[k * size + from], count, v);
        /* The rest becomes (1 - v v') a (1 - v v') = a - v w' - w v', with w = a v - v (v'a v) / 2. */
        for (size_t i = 0; i < count; i++)
            w[i] = dot(&a[(from + i) * size + from], v, count);
        add_scaled(w, -dot(v, w, count) / 2, v, count);
        for (size_t i = 0; i < count; i++) {
            add_scaled(&a[(from + i) * size + from], -v[i], w, count);
            add_scaled(&a[(from + i) * size + from], -w[i], v, count);
        }
    }
    if (size)
        t->diagonal[size - 1] = a[size * size - 1];
    free(w);
}

/* Row i becomes column i of Q. */
static void write_reflections(const struct tridiagonal *t, double *vectors)
{
    size_t size = t->size;
    memset(vectors, 0, size * size * sizeof *vectors);
    for (size_t i = 0; i < size; i++) {
        double *row = &vectors[i * size];
        row[i] = 1;
        for (size_t k = i; k-- > 0;) /* the steps from i on leave it as it is */
            add_scaled(&row[k + 1],
                       -dot(&t->reflections[k * size + k + 1], &row[k + 1], size - k - 1),
                       &t->reflections[k * size + k + 1], size - k - 1);
    }
}

/* ---- QL ---- */

enum { ITERATIONS_MAX = 60 };

/* The first row from `from` after which the matrix is split, because the element beside the diagonal is negligible. */
static size_t find_split(const struct tridiagonal *t, size_t from)
{
    size_t at = from;
    for (; at + 1 < t->size; at++) {
        double near = fabs(t->diagonal[at]) + fabs(t->diagonal[at + 1]);
        if (fabs(t->beside[at]) <= DBL_EPSILON * near || t->beside[at] == 0)
            break;
    }
    return at;
}

/* Rotates rows i and i + 1 of the vectors. */
static void rotate(double *vectors, size_t size, size_t i, double cosine, double sine)
{
    double *low = &vectors[i * size], *high = low + size;
    for (size_t k = 0; k < size; k++) {
        double x = high[k];
        high[k] = sine * low[k] + cosine * x;
        low[k] = cosine * low[k] - sine * x;
    }
}

/* One implicit QL step with Wilkinson's shift on the rows from `from` to `end`. */
static void step(struct tridiagonal *t, size_t from, size_t end, double *vectors)
{
    double *d = t->diagonal, *e = t->beside;
    double g = (d[from + 1] - d[from]) / (2 * e[from]), r = hypot(g, 1);
    double sine = 1, cosine = 1, shifted = 0;
    g = d[end] - d[from] + e[from] / (g + copysign(r, g));
    for (size_t i = end; i-- > from;) {
        double f = sine * e[i], b = cosine * e[i];
        r = hypot(f, g);
        e[i + 1] = r;
        if (r == 0) { /* the matrix is split here */
            d[i + 1] -= shifted;
            e[end] = 0;
            return;
        }
        sine = f / r;
        cosine = g / r;
        g = d[i + 1] - shifted;
        r = (d[i] - g) * sine + 2 * cosine * b;
        shifted = sine * r;
        d[i + 1] = g + shifted;
        g = cosine * r - b;
        if (vectors)
            rotate(vectors, t->size, i, cosine, sine);
    }
    d[from] -= shifted;
    e[from] = g;
    e[end] = 0;
}

static enum err diagonalize(struct tridiagonal *t, double *vectors)
{
    for (size_t from = 0; from < t->size; from++) {
        unsigned iterations = 0;
        for (size_t end; (end = find_split(t, from)) != from;) {
            if (iterations++ == ITERATIONS_MAX)
                return ERR_BAD_VALUE;
            step(t, from, end, vectors);
        }
    }
    return ERR_OK;
}

/* ---- results ---- */

struct rank {
    double value;
    size_t at;
};

static int by_value(const void *left, const void *right)
{
    return compare_numbers(((const struct rank *)left)->value, ((const struct rank *)right)->value);
}

static void write_ascending(const struct tridiagonal *t, const double *rows, double *values,
                            double *vectors)
{
    struct rank *ranks = xreallocarray(NULL, t->size, sizeof *ranks);
    for (size_t i = 0; i < t->size; i++)
        ranks[i] = (struct rank){t->diagonal[i], i};
    qsort(ranks, t->size, sizeof *ranks, by_value);
    for (size_t i = 0; i < t->size; i++) {
        values[i] = ranks[i].value;
        if (vectors)
            memcpy(&vectors[i * t->size], &rows[ranks[i].at * t->size], t->size * sizeof *rows);
    }
    free(ranks);
}

enum err eigen_symmetric(const double *a, size_t size, double *values, double *vectors)
{
    struct tridiagonal t;
    for (size_t i = 0; i < size * size; i++)
        if (!is_known(a[i]))
            return ERR_BAD_VALUE;
    double *work = xmemdup(a, size * size * sizeof *a);
    tridiagonal_init(&t, work, size);
    if (vectors)
        write_reflections(&t, work);
    enum err err = diagonalize(&t, vectors ? work : NULL);
    if (!err)
        write_ascending(&t, work, values, vectors);
    tridiagonal_release(&t);
    free(work);
    return err;
}

/* out = the sum of power(value) v v' over the eigenvectors v. */
static void compose(const double *values, const double *vectors, size_t size,
                    double (*power)(double value, double largest), double *out)
{
    memset(out, 0, size * size * sizeof *out);
    for (size_t k = 0; k < size; k++) {
        const double *v = &vectors[k * size];
        double factor = power(values[k], values[size - 1]);
        for (size_t i = 0; i < size && factor != 0; i++)
            add_scaled(&out[i * size], factor * v[i], v, size);
    }
}

static double root_of(double value, double largest)
{
    (void)largest;
    return value > 0 ? sqrt(value) : 0;
}

/* Of a pseudo-inverse: 0 for eigenvalues that are rounding errors. */
static double inverse_root_of(double value, double largest)
{
    return value > 1e-12 * largest ? 1 / sqrt(value) : 0;
}

enum err eigen_square_root(const double *a, size_t size, double *root)
{
    double *values = xcalloc(size, sizeof *values), *vectors = new_matrix(size);
    enum err err = eigen_symmetric(a, size, values, vectors);
    if (!err)
        compose(values, vectors, size, root_of, root);
    free(values);
    free(vectors);
    return err;
}

void covariance_of(const double *rows, size_t count, size_t size, double *mean, double *covariance)
{
    double *centered = xcalloc(size, sizeof *centered);
    memset(mean, 0, size * sizeof *mean);
    memset(covariance, 0, size * size * sizeof *covariance);
    for (size_t n = 0; n < count; n++)
        add_scaled(mean, 1 / (double)count, &rows[n * size], size);
    for (size_t n = 0; n < count; n++) {
        for (size_t i = 0; i < size; i++)
            centered[i] = rows[n * size + i] - mean[i];
        for (size_t i = 0; i < size; i++)
            add_scaled(&covariance[i * size], centered[i] / ((double)count - 1), centered, size);
    }
    free(centered);
}

/* ---- the Fréchet distance ---- */

/* root a root, symmetric. */
static void enclose(const double *root, const double *a, size_t size, double *out)
{
    double *half = new_matrix(size);
    multiply(root, a, size, half);
    multiply(half, root, size, out);
    free(half);
    for (size_t i = 0; i < size; i++)
        for (size_t k = 0; k < i; k++)
            out[i * size + k] = out[k * size + i] = (out[i * size + k] + out[k * size + i]) / 2;
}

/* The sum of the roots of the eigenvalues of root a root, and the transport root (root a root)^(-1/2) root. */
static enum err trace_of_root(const double *root, const double *a, size_t size, double *trace,
                              double *transport)
{
    double *inner = new_matrix(size), *values = xcalloc(size, sizeof *values);
    double *vectors = transport ? new_matrix(size) : NULL;
    enclose(root, a, size, inner);
    enum err err = eigen_symmetric(inner, size, values, vectors);
    *trace = 0;
    for (size_t i = 0; i < size && !err; i++)
        *trace += root_of(values[i], 0);
    if (!err && transport) {
        compose(values, vectors, size, inverse_root_of, inner);
        enclose(root, inner, size, transport);
    }
    free(inner);
    free(values);
    free(vectors);
    return err;
}

enum err frechet_distance(const struct normal_distribution *a, const struct normal_distribution *b,
                          size_t size, double *distance, double *transport)
{
    double *root = new_matrix(size);
    double trace = 0, sum = 0;
    enum err err = eigen_square_root(b->covariance, size, root);
    if (!err)
        err = trace_of_root(root, a->covariance, size, &trace, transport);
    for (size_t i = 0; i < size; i++)
        sum += square(a->mean[i] - b->mean[i]) + a->covariance[i * size + i] +
               b->covariance[i * size + i];
    *distance = sum - 2 * trace;
    free(root);
    return err;
}
