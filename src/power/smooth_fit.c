/* A candidate is a cubic spline with a penalty on its second differences (a power law of the clock has none), of one of
 * several smoothnesses, alone or with a column for a kink or a step at one clock.  Leaving one sample out of a penalized
 * fit has a closed form, and so has adding a column to it, so that a thousand candidates are scored by as many passes
 * over the samples.  A candidate's weight is its likelihood with the left-out variance, times a prior that favors no
 * kink and no step.
 *
 * Outliers lose their weight, by Tukey's biweight: first those far from a robust line through their neighbors, which
 * keeps both sides of a step, then those far from the curve. */
#include "power/smooth_fit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "core/xalloc.h"
#include "stats/descriptive.h"
#include "stats/fit.h"

enum { TERMS_MIN = 6, TERMS_MAX = 14, ORDER = 4 }; /* cubic: four terms at every clock */
enum { SMOOTHNESSES = 9, PLACES = 24, ROUNDS = 2, NEIGHBORS = 7 };
#define SMOOTHEST       1e5
#define SMOOTHNESS_STEP 10.0

/* Shares of the prior for all kinks and for all steps. */
#define KINK_PRIOR 0.50
#define STEP_PRIOR 0.10
/* Left-out errors share samples: they are worth fewer independent ones. */
#define INDEPENDENT 0.7
/* Candidates with a smaller share of the weight are not averaged. */
#define WEIGHT_MIN 1e-3
#define BIWEIGHT   6.0  /* standard deviations at which a sample loses all weight */
#define SPREAD_MIN 1e-3 /* the least of these: smaller misfits of exact figures are no outliers */
#define NOISE_MIN  1e-6 /* rounding of the figures */

enum shape { SMOOTH, KINK, STEP };

struct candidate {
    enum shape shape;
    double place; /* of the kink or step, ln(clock) */
    size_t smoothness;
    double log_weight; /* later the share of the weight */
    double variance;   /* of one sample */
    double freedom;
    double coefficient; /* of the column */
    double length;      /* of the column, of what the spline cannot follow */
};

/* The spline of one smoothness. */
struct spline_fit {
    double inverse[TERMS_MAX][TERMS_MAX];
    double c[TERMS_MAX];
    double *residual, *leverage; /* of each sample */
    double *
        change; /* variance of the change from the last wanted clock, for a sample's variance of 1 */
    bool has_change;
};

/* A kink or a step. */
struct column {
    double *raw;             /* of all */
    double right[TERMS_MAX]; /* products with the spline's terms over the samples */
    double total;            /* square */
};

struct work {
    const struct smooth_question *q;
    size_t count, all; /* samples; samples and wanted clocks, which follow them */
    double *x;         /* ln(clock), of all */
    double *y, *weight;
    double low, width; /* of the spline's intervals */
    size_t terms;
    size_t *first;          /* of the terms that are not 0, of all */
    double (*basis)[ORDER]; /* of all */
    struct spline_fit splines[SMOOTHNESSES];
    struct candidate *candidates;
    size_t candidate_count;
    size_t best_kink; /* sample; 0: none yet */
    struct column column;
    double *rest;            /* what the spline does not follow of the column, of all */
    double *mean;            /* of all */
    double *change, *square; /* mean of the differences from the last, and of their squares */
};

/* ---- the spline ---- */

/* The four cubic B-splines at t in [0, 1] of an interval. */
static void b_splines(double t, double *out)
{
    double s = 1 - t;
    out[0] = s * s * s / 6;
    out[1] = (3 * t * t * t - 6 * t * t + 4) / 6;
    out[2] = (3 * s * s * s - 6 * s * s + 4) / 6;
    out[3] = t * t * t / 6;
}

static void set_basis(struct work *w)
{
    size_t intervals = w->terms - ORDER + 1;
    double high = fmax(w->x[w->count - 1], w->x[w->all - 1]);
    w->low = fmin(w->x[0], w->x[w->count]);
    w->width = (high - w->low) / (double)intervals;
    for (size_t i = 0; i < w->all; i++) {
        double at = (w->x[i] - w->low) / w->width;
        size_t interval = at > 0 ? (size_t)at : 0;
        interval = interval < intervals ? interval : intervals - 1;
        w->first[i] = interval;
        b_splines(fmin(at - (double)interval, 1), w->basis[i]);
    }
}

static double spline_at(const struct work *w, size_t i, const double *c)
{
    double sum = 0;
    for (size_t k = 0; k < ORDER; k++)
        sum += w->basis[i][k] * c[w->first[i] + k];
    return sum;
}

/* Adds strength times the squares of the second differences, whose coefficients are 1, -2, 1. */
static void add_penalty(const struct work *w, double strength, double (*a)[TERMS_MAX])
{
    static const double DIFFERENCE[3] = {1, -2, 1};
    for (size_t first = 0; first + 2 < w->terms; first++)
        for (size_t i = 0; i < 3; i++)
            for (size_t j = 0; j < 3; j++)
                a[first + i][first + j] += strength * DIFFERENCE[i] * DIFFERENCE[j];
}

static void set_normal(const struct work *w, double (*a)[TERMS_MAX])
{
    memset(a, 0, TERMS_MAX * sizeof *a);
    for (size_t i = 0; i < w->count; i++)
        for (size_t j = 0; j < ORDER; j++)
            for (size_t k = 0; k < ORDER; k++)
                a[w->first[i] + j][w->first[i] + k] +=
                    w->weight[i] * w->basis[i][j] * w->basis[i][k];
}

/* Inverts a symmetric positive definite matrix in place, by Gauss-Jordan elimination. */
static void invert(double (*a)[TERMS_MAX], size_t n)
{
    for (size_t p = 0; p < n; p++) {
        double pivot = a[p][p];
        a[p][p] = 1;
        for (size_t j = 0; j < n; j++)
            a[p][j] /= pivot;
        for (size_t i = 0; i < n; i++) {
            double factor = a[i][p];
            if (i == p || factor == 0)
                continue;
            a[i][p] = 0;
            for (size_t j = 0; j < n; j++)
                a[i][j] -= factor * a[p][j];
        }
    }
}

/* The products of values[] of the samples with the spline's terms. */
static void project(const struct work *w, const double *values, double *right)
{
    memset(right, 0, TERMS_MAX * sizeof *right);
    for (size_t i = 0; i < w->count; i++)
        for (size_t k = 0; k < ORDER; k++)
            right[w->first[i] + k] += w->weight[i] * w->basis[i][k] * values[i];
}

/* The coefficients of the spline that follows what was projected. */
static void follow(const struct work *w, const struct spline_fit *fit, const double *right,
                   double *c)
{
    for (size_t j = 0; j < w->terms; j++) {
        c[j] = 0;
        for (size_t k = 0; k < w->terms; k++)
            c[j] += fit->inverse[j][k] * right[k];
    }
}

/* b' inverse b, b being the basis at i, less that at `from` unless it is the same. */
static double form(const struct work *w, const struct spline_fit *fit, size_t i, size_t from)
{
    double b[TERMS_MAX] = {0}, sum = 0;
    for (size_t k = 0; k < ORDER; k++) {
        b[w->first[i] + k] += w->basis[i][k];
        if (from != i)
            b[w->first[from] + k] -= w->basis[from][k];
    }
    for (size_t j = 0; j < w->terms; j++)
        for (size_t k = 0; b[j] != 0 && k < w->terms; k++)
            sum += b[j] * fit->inverse[j][k] * b[k];
    return sum;
}

static void fit_splines(struct work *w)
{
    const double JITTER = 1e-10; /* intervals without samples */
    double normal[TERMS_MAX][TERMS_MAX], right[TERMS_MAX], strength = SMOOTHEST;
    set_normal(w, normal);
    project(w, w->y, right);
    for (size_t s = 0; s < SMOOTHNESSES; s++, strength /= SMOOTHNESS_STEP) {
        struct spline_fit *fit = &w->splines[s];
        memcpy(fit->inverse, normal, sizeof normal);
        add_penalty(w, strength, fit->inverse);
        for (size_t j = 0; j < w->terms; j++)
            fit->inverse[j][j] += JITTER * (1 + strength);
        invert(fit->inverse, w->terms);
        follow(w, fit, right, fit->c);
        fit->has_change = false;
        for (size_t i = 0; i < w->count; i++) {
            fit->residual[i] = w->y[i] - spline_at(w, i, fit->c);
            fit->leverage[i] = w->weight[i] * form(w, fit, i, i);
        }
    }
}

/* ---- candidates ---- */

static double column_at(enum shape shape, double beyond)
{
    if (shape == SMOOTH)
        return 0;
    return shape == KINK ? fmax(0, beyond) : beyond > 0;
}

static void set_column(struct work *w, enum shape shape, double place)
{
    struct column *column = &w->column;
    column->total = 0;
    for (size_t i = 0; i < w->all; i++) {
        column->raw[i] = column_at(shape, w->x[i] - place);
        if (i < w->count)
            column->total += w->weight[i] * square(column->raw[i]);
    }
    project(w, column->raw, column->right);
}

/* Sets what the spline does not follow of the column, at the first positions. */
static void set_rest(struct work *w, const struct candidate *candidate, size_t count)
{
    double c[TERMS_MAX];
    if (candidate->shape == SMOOTH) {
        memset(w->rest, 0, count * sizeof *w->rest);
        return;
    }
    follow(w, &w->splines[candidate->smoothness], w->column.right, c);
    for (size_t i = 0; i < count; i++)
        w->rest[i] = w->column.raw[i] - spline_at(w, i, c);
}

/* Scores a candidate with the current column; false if the samples do not determine its coefficient. */
static bool score(struct work *w, double prior, struct candidate *candidate)
{
    const double COLLINEAR = 1e-6, LEVERAGE_MAX = 0.98;
    const struct spline_fit *fit = &w->splines[candidate->smoothness];
    bool has_column = candidate->shape != SMOOTH;
    double length = 0, along = 0, left_out = 0, within = 0, used = 0, parameters = 0;
    set_rest(w, candidate, w->count);
    for (size_t i = 0; has_column && i < w->count; i++) {
        length += w->weight[i] * w->column.raw[i] * w->rest[i];
        along += w->weight[i] * w->column.raw[i] * fit->residual[i];
    }
    if (has_column && !(length > COLLINEAR * w->column.total))
        return false;
    candidate->coefficient = has_column ? along / length : 0;
    candidate->length = has_column ? length : 1;
    for (size_t i = 0; i < w->count; i++) {
        double off = fit->residual[i] - candidate->coefficient * w->rest[i];
        double leverage = fit->leverage[i] + w->weight[i] * square(w->rest[i]) / candidate->length;
        left_out += w->weight[i] * square(off / (1 - fmin(leverage, LEVERAGE_MAX)));
        within += w->weight[i] * off * off;
        parameters += leverage;
        used += w->weight[i];
    }
    candidate->freedom = fmax(1, used - parameters - has_column);
    candidate->variance = within / candidate->freedom + square(NOISE_MIN);
    candidate->log_weight = log(prior) - has_column - /* its place was chosen, too */
                            INDEPENDENT * 0.5 * used * log(left_out / used + square(NOISE_MIN));
    return true;
}

static void try_candidates(struct work *w, enum shape shape, double place, double prior)
{
    set_column(w, shape, place);
    for (size_t s = 0; s < SMOOTHNESSES; s++) {
        struct candidate *candidate = &w->candidates[w->candidate_count];
        *candidate = (struct candidate){.shape = shape, .place = place, .smoothness = s};
        w->candidate_count += score(w, prior, candidate);
    }
}

/* Makes the logarithms shares, and drops negligible candidates. */
static void normalize(struct work *w)
{
    double most = -INFINITY, sum = 0;
    size_t kept = 0;
    for (size_t i = 0; i < w->candidate_count; i++)
        most = fmax(most, w->candidates[i].log_weight);
    for (size_t i = 0; i < w->candidate_count; i++) {
        struct candidate candidate = w->candidates[i];
        candidate.log_weight = exp(candidate.log_weight - most);
        if (candidate.log_weight < WEIGHT_MIN)
            continue;
        sum += candidate.log_weight;
        w->candidates[kept++] = candidate;
    }
    w->candidate_count = kept;
    for (size_t i = 0; i < kept; i++)
        w->candidates[i].log_weight /= sum;
}

/* The difference of two neighboring samples that PLACES of the inner ones exceed: a step is a large one. */
static double step_threshold(const struct work *w)
{
    double *jumps = xcalloc(w->count, sizeof *jumps);
    size_t known = 0;
    for (size_t i = 2; i + 1 < w->count; i++)
        jumps[known++] = fabs(w->y[i] - w->y[i - 1]);
    sort_ascending(jumps, known);
    double threshold = jumps[known > PLACES ? known - PLACES : 0];
    free(jumps);
    return threshold;
}

static void try_steps(struct work *w)
{
    double threshold = step_threshold(w);
    for (size_t i = 2, places = 0; i + 1 < w->count && places < PLACES; i++) {
        if (fabs(w->y[i] - w->y[i - 1]) < threshold)
            continue;
        try_candidates(w, STEP, (w->x[i] + w->x[i - 1]) / 2, STEP_PRIOR / PLACES);
        places++;
    }
}

/* Kinks at evenly spaced samples, and at every sample near the best one of the last round. */
static void try_kinks(struct work *w)
{
    size_t inner = w->count - 4; /* two samples on either side */
    size_t stride = (inner + PLACES - 1) / PLACES;
    size_t first = w->best_kink > stride + 2 ? w->best_kink - stride : 2;
    size_t end = w->best_kink ? w->best_kink + stride : 0;
    double prior = KINK_PRIOR * (double)stride / (double)inner;
    for (size_t i = 2; i < 2 + inner; i++)
        if ((i - 2) % stride == 0 || (i >= first && i < end))
            try_candidates(w, KINK, w->x[i], i >= first && i < end ? prior / 2 : prior);
}

/* The sample of the best kink, by which the next round is finer; 0: none. */
static size_t best_kink(const struct work *w)
{
    const struct candidate *best = NULL;
    for (size_t i = 0; i < w->candidate_count; i++) {
        const struct candidate *candidate = &w->candidates[i];
        if (candidate->shape == KINK && !(best && best->log_weight >= candidate->log_weight))
            best = candidate;
    }
    for (size_t i = 0; best && i < w->count; i++)
        if (w->x[i] == best->place)
            return i;
    return 0;
}

static void find_candidates(struct work *w)
{
    w->candidate_count = 0;
    try_candidates(w, SMOOTH, 0, 1 - KINK_PRIOR - STEP_PRIOR);
    try_kinks(w);
    if (w->q->has_steps)
        try_steps(w);
    normalize(w);
    w->best_kink = best_kink(w);
}

/* ---- the average ---- */

static void set_change(const struct work *w, struct spline_fit *fit)
{
    size_t last = w->all - 1;
    for (size_t i = w->count; !fit->has_change && i < last; i++)
        fit->change[i - w->count] = form(w, fit, i, last);
    fit->has_change = true;
}

/* Adds a candidate to the averages: its curve, and the changes from the last clock with their variance. */
static void add_candidate(struct work *w, const struct candidate *candidate)
{
    struct spline_fit *fit = &w->splines[candidate->smoothness];
    double share = candidate->log_weight;
    size_t last = w->all - 1;
    set_column(w, candidate->shape, candidate->place);
    set_rest(w, candidate, w->all);
    set_change(w, fit);
    double at_last = spline_at(w, last, fit->c) + candidate->coefficient * w->rest[last];
    for (size_t i = 0; i < w->all; i++) {
        double value = spline_at(w, i, fit->c) + candidate->coefficient * w->rest[i];
        w->mean[i] += share * value;
        if (i < w->count)
            continue;
        double variance =
            fit->change[i - w->count] + square(w->rest[i] - w->rest[last]) / candidate->length;
        w->change[i] += share * (value - at_last);
        w->square[i] += share * (square(value - at_last) + candidate->variance * variance);
    }
}

static void average(struct work *w, struct smooth_curve *out)
{
    double variance = 0;
    memset(w->mean, 0, w->all * sizeof *w->mean);
    memset(w->change, 0, w->all * sizeof *w->change);
    memset(w->square, 0, w->all * sizeof *w->square);
    out->freedom = 0;
    for (size_t i = 0; i < w->candidate_count; i++) {
        add_candidate(w, &w->candidates[i]);
        variance += w->candidates[i].log_weight * w->candidates[i].variance;
        out->freedom += w->candidates[i].log_weight * w->candidates[i].freedom;
    }
    out->noise = sqrt(variance);
    for (size_t i = 0; i < w->count; i++)
        out->residual[i] = w->y[i] - w->mean[i];
}

/* ---- outliers ---- */

static double spread_of(const double *residual, size_t count)
{
    double *sizes = xmalloc(count * sizeof *sizes);
    for (size_t i = 0; i < count; i++)
        sizes[i] = fabs(residual[i]);
    double spread = fmax(1.4826 * select_median(sizes, count), SPREAD_MIN);
    free(sizes);
    return spread;
}

static void set_weights(struct work *w, const double *residual, double spread)
{
    for (size_t i = 0; i < w->count; i++) {
        double far = residual[i] / (BIWEIGHT * spread);
        w->weight[i] = fabs(far) < 1 ? square(1 - far * far) : 0;
    }
}

/* The distance of a sample from the robust line through the others in a range; UNKNOWN for fewer than three. */
static double distance(const struct work *w, size_t i, size_t from, size_t end)
{
    double x[NEIGHBORS], y[NEIGHBORS];
    struct theil_sen line;
    size_t known = 0;
    for (size_t k = from; k < end; k++) {
        x[known] = w->x[k];
        y[known] = w->y[k];
        known += k != i;
    }
    if (known < 3)
        return UNKNOWN;
    theil_sen(x, y, known, &line);
    return w->y[i] - line.intercept - line.slope * w->x[i];
}

/* First weights, by the distance from the neighbors: next to a step or a kink, from those on one side. */
static void set_first_weights(struct work *w)
{
    size_t near = w->count < NEIGHBORS ? w->count : NEIGHBORS, side = near / 2 + 1;
    double *both = xcalloc(2 * w->count, sizeof *both), *least = both + w->count;
    for (size_t i = 0; i < w->count; i++) {
        size_t from = i > near / 2 ? i - near / 2 : 0;
        from = from + near > w->count ? w->count - near : from;
        both[i] = distance(w, i, from, from + near);
        double left = distance(w, i, i + 1 > side ? i + 1 - side : 0, i + 1);
        double right = distance(w, i, i, i + side < w->count ? i + side : w->count);
        least[i] = fmin(fabs(both[i]), fmin(fabs(left), fabs(right))); /* of a NaN: the number */
    }
    set_weights(w, least, spread_of(both, w->count));
    free(both);
}

/* ---- monotony ---- */

/* The nearest values that do not decrease: neighbors in the wrong order are averaged. */
static void make_rising(double *values, size_t count)
{
    size_t *lengths = xmalloc((count + 1) * sizeof *lengths), blocks = 0;
    double *means = xmalloc((count + 1) * sizeof *means);
    for (size_t i = 0; i < count; i++) {
        means[blocks] = values[i];
        lengths[blocks++] = 1;
        for (; blocks > 1 && means[blocks - 2] > means[blocks - 1]; blocks--) {
            double one = (double)lengths[blocks - 2], other = (double)lengths[blocks - 1];
            means[blocks - 2] =
                (one * means[blocks - 2] + other * means[blocks - 1]) / (one + other);
            lengths[blocks - 2] += lengths[blocks - 1];
        }
    }
    for (size_t i = 0, at = 0; i < blocks; i++)
        for (size_t k = 0; k < lengths[i]; k++)
            values[at++] = means[i];
    free(lengths);
    free(means);
}

static void set_curve(const struct work *w, struct smooth_curve *out)
{
    size_t count = w->q->at_count;
    double sign = w->q->is_falling ? -1 : 1;
    for (size_t i = 0; i < count; i++)
        out->value[i] = sign * w->mean[w->count + i];
    make_rising(out->value, count);
    for (size_t i = 0; i < count; i++)
        out->value[i] *= sign;
    for (size_t i = 0; i < count; i++) {
        double change = w->change[w->count + i], variance = w->square[w->count + i];
        out->change[i] = sqrt(fmax(0, variance - change * change));
        out->moved[i] = out->value[i] - out->value[count - 1] - change;
    }
}

/* ---- the fit ---- */

static void allocate(struct work *w)
{
    size_t stride = w->count / PLACES + 1; /* or less */
    size_t most = SMOOTHNESSES * (1 + 2 * PLACES + 2 * stride);
    w->x = xcalloc(w->all, sizeof *w->x);
    w->y = xcalloc(w->count, sizeof *w->y);
    w->weight = xcalloc(w->count, sizeof *w->weight);
    w->first = xcalloc(w->all, sizeof *w->first);
    w->basis = xcalloc(w->all, sizeof *w->basis);
    w->column.raw = xcalloc(2 * w->all, sizeof *w->column.raw);
    w->rest = w->column.raw + w->all;
    w->mean = xcalloc(3 * w->all, sizeof *w->mean);
    w->change = w->mean + w->all;
    w->square = w->change + w->all;
    w->candidates = xcalloc(most + 1, sizeof *w->candidates);
    for (size_t s = 0; s < SMOOTHNESSES; s++) {
        w->splines[s].residual = xcalloc(w->count + w->all, sizeof *w->splines[s].residual);
        w->splines[s].leverage = w->splines[s].residual + w->count;
        w->splines[s].change = w->splines[s].leverage + w->count;
    }
}

static void release(struct work *w)
{
    for (size_t s = 0; s < SMOOTHNESSES; s++)
        free(w->splines[s].residual);
    free(w->x);
    free(w->y);
    free(w->weight);
    free(w->first);
    free(w->basis);
    free(w->column.raw);
    free(w->mean);
    free(w->candidates);
}

static size_t terms_for(size_t samples)
{
    size_t terms = samples / 2;
    if (terms < TERMS_MIN)
        return TERMS_MIN;
    return terms < TERMS_MAX ? terms : TERMS_MAX;
}

void smooth_fit(const struct smooth_question *q, struct smooth_curve *out)
{
    struct work *w = XNEW(w);
    w->q = q;
    w->count = q->count;
    w->all = q->count + q->at_count;
    w->terms = terms_for(q->count);
    allocate(w);
    out->value = xcalloc(3 * q->at_count, sizeof *out->value);
    out->change = out->value + q->at_count;
    out->moved = out->change + q->at_count;
    out->residual = xcalloc(q->count, sizeof *out->residual);
    for (size_t i = 0; i < w->all; i++)
        w->x[i] = log(i < w->count ? q->mhz[i] : q->at_mhz[i - w->count]);
    for (size_t i = 0; i < w->count; i++)
        w->y[i] = log(q->figure[i]);
    set_basis(w);
    for (size_t round = 0; round < ROUNDS; round++) {
        if (round == 0)
            set_first_weights(w);
        else
            set_weights(w, out->residual, spread_of(out->residual, w->count));
        fit_splines(w);
        find_candidates(w);
        average(w, out);
    }
    set_curve(w, out);
    release(w);
    free(w);
}

void smooth_curve_release(struct smooth_curve *curve)
{
    free(curve->value);
    free(curve->residual);
    *curve = (struct smooth_curve){0};
}
