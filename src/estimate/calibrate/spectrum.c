#include "estimate/calibrate/spectrum.h"

#include <float.h>
#include <math.h>

enum { SWEEPS = 60 };

/* Turns columns p and q so that nothing is left of what they share (Jacobi). */
static void rotate(double m[][DESIGN_COLUMNS_MOST], struct spectrum *s, size_t p, size_t q)
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

void spectrum_take(const struct design *design, struct spectrum *out)
{
    double m[DESIGN_COLUMNS_MOST][DESIGN_COLUMNS_MOST] = {{0}};
    size_t columns = design->columns;
    *out = (struct spectrum){.columns = columns};
    for (size_t i = 0; i < design->rows; i++)
        for (size_t p = 0; p < columns; p++)
            for (size_t q = 0; q < columns; q++)
                m[p][q] += design->a[i * columns + p] * design->a[i * columns + q];
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

double spectrum_condition(const struct spectrum *spectrum)
{
    double most = spectrum->values[spectrum->largest];
    double least = spectrum->values[spectrum->smallest];
    return least > most * (double)spectrum->columns * DBL_EPSILON ? sqrt(most / least) : INFINITY;
}

void spectrum_worst_pair(const struct spectrum *spectrum, size_t *a, size_t *b)
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

double spectrum_leverage(const struct spectrum *spectrum, const double *line)
{
    double sum = 0;
    for (size_t v = 0; v < spectrum->columns; v++) {
        double along = 0;
        for (size_t k = 0; k < spectrum->columns; k++)
            along += line[k] * spectrum->vectors[k][v];
        sum += along * along / spectrum->values[v];
    }
    return sum;
}
