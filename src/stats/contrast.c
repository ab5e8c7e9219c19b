#include "stats/contrast.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/random.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "stats/bootstrap.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"

enum { EXACT_PAIRS = 13 }; /* 8192 permutations: fewer than are sampled at random */

struct units {
    double *rows; /* CONTRAST_SUMS each */
    size_t count;
    double totals[CONTRAST_SUMS];
};

/* Sums of squares and products of the units' influences on the two statistics: standard errors of any function of
 * both follow from these. */
struct influences {
    double aa, bb, ab;
};

struct comparison {
    const struct contrast_question *question;
    struct units a, b;
    double *drawn_a, *drawn_b;  /* CONTRAST_DRAWS each */
    struct influences *scatter; /* of each draw */
    struct bootstrap_draws draws;
    size_t *picked;
    size_t drawn;
};

double contrast_statistic(const double *sums, bool product)
{
    double value = sums[1] > 0 ? sums[0] / sums[1] : UNKNOWN;
    if (product)
        value *= sums[3] > 0 ? sums[2] / sums[3] : UNKNOWN;
    return value;
}

static double statistic_of(const struct comparison *work, const double *sums)
{
    return contrast_statistic(sums, work->question->product);
}

/* UNKNOWN where the reference is close to 0. */
static double relative_of(double a, double b)
{
    return fabs(a) > 1e-6 * fabs(b) ? (b - a) / fabs(a) : UNKNOWN;
}

/* 0 where the difference is within rounding error. */
static double difference_of(double a, double b)
{
    return fabs(b - a) > 1e-9 * fmax(fabs(a), fabs(b)) ? b - a : 0;
}

static void add_row(double *sums, const double *row)
{
    for (size_t s = 0; s < CONTRAST_SUMS; s++)
        sums[s] += row[s];
}

/* `size` queries per unit, the same on both sides, so that units are exchangeable. */
static void fill_units(const struct contrast_side *side, size_t size, struct units *out)
{
    out->count = (side->count + size - 1) / size;
    out->rows = xcalloc((out->count + 1) * CONTRAST_SUMS, sizeof *out->rows);
    for (size_t i = 0; i < side->count; i++) {
        add_row(out->rows + i % out->count * CONTRAST_SUMS, side->terms + i * CONTRAST_SUMS);
        add_row(out->totals, side->terms + i * CONTRAST_SUMS);
    }
}

static const double *unit(const struct units *units, size_t i)
{
    return units->rows + i * CONTRAST_SUMS;
}

/* ---- intervals ---- */

/* Partial derivatives of the statistic with respect to its sums. */
struct slopes {
    double of[CONTRAST_SUMS];
};

static struct slopes slopes_of(const struct comparison *work, const double *sums)
{
    double first = sums[0] / sums[1];
    if (!work->question->product)
        return (struct slopes){{1 / sums[1], -first / sums[1], 0, 0}};
    double second = sums[2] / sums[3];
    return (struct slopes){
        {second / sums[1], -first * second / sums[1], first / sums[3], -first * second / sums[3]}};
}

/* Influence of a unit on the statistic, to first order. */
static double influence(const struct slopes *slopes, const double *row)
{
    return slopes->of[0] * row[0] + slopes->of[1] * row[1] + slopes->of[2] * row[2] +
           slopes->of[3] * row[3];
}

static struct influences influences_of(const struct comparison *work, const double *a,
                                       const double *b, const size_t *picked)
{
    struct influences found = {0};
    const struct slopes on_a = slopes_of(work, a), on_b = slopes_of(work, b);
    double n_a = (double)work->a.count, n_b = (double)work->b.count;
    bool paired = work->question->paired;
    const size_t *of_b = paired ? picked : picked + work->a.count;
    for (size_t i = 0; i < work->a.count; i++) {
        double in_a = influence(&on_a, unit(&work->a, picked[i]));
        found.aa += in_a * in_a;
        if (paired)
            found.ab += in_a * influence(&on_b, unit(&work->b, picked[i]));
    }
    for (size_t i = 0; i < work->b.count; i++) {
        double in_b = influence(&on_b, unit(&work->b, of_b[i]));
        found.bb += in_b * in_b;
    }
    found.aa *= n_a / (n_a - 1);
    found.ab *= n_a / (n_a - 1);
    found.bb *= n_b / (n_b - 1);
    return found;
}

static double error_of(const struct influences *scatter, double of_a, double of_b)
{
    double square =
        of_a * of_a * scatter->aa + of_b * of_b * scatter->bb + 2 * of_a * of_b * scatter->ab;
    return sqrt(fmax(0, square));
}

/* Adds up the resampled units of both sides. */
static void pick_sums(const struct comparison *work, const size_t *picked, double *a, double *b)
{
    bool paired = work->question->paired;
    const size_t *of_b = paired ? picked : picked + work->a.count;
    for (size_t i = 0; i < work->a.count; i++)
        add_row(a, unit(&work->a, picked[i]));
    for (size_t i = 0; i < work->b.count; i++)
        add_row(b, unit(&work->b, of_b[i]));
}

static void draw_all(struct comparison *work)
{
    struct random random = random_seeded(work->question->seed);
    size_t b_count = work->question->paired ? 0 : work->b.count;
    for (size_t d = 0; d < CONTRAST_DRAWS; d++) {
        double a[CONTRAST_SUMS] = {0}, b[CONTRAST_SUMS] = {0};
        for (size_t i = 0; i < work->a.count; i++)
            work->picked[i] = random_index(&random, work->a.count);
        for (size_t i = 0; i < b_count; i++)
            work->picked[work->a.count + i] = random_index(&random, work->b.count);
        pick_sums(work, work->picked, a, b);
        double value_a = statistic_of(work, a), value_b = statistic_of(work, b);
        if (!is_known(value_a) || !is_known(value_b))
            continue;
        work->scatter[work->drawn] = influences_of(work, a, b, work->picked);
        work->drawn_a[work->drawn] = value_a;
        work->drawn_b[work->drawn++] = value_b;
    }
}

/* The standard error of a contrast of these values; 0 within rounding error. */
static double contrast_error(bool relative, double a, double b, const struct influences *scatter)
{
    double error = error_of(scatter, -1, 1);
    if (error <= 1e-12 * fmax(fabs(a), fabs(b)))
        return 0;
    return relative ? error_of(scatter, -b / (a * a), 1 / a) : error;
}

/* Welch-Satterthwaite for independent sides. */
static double freedom_of(const struct comparison *work, const struct influences *scatter)
{
    double n_a = (double)work->a.count, n_b = (double)work->b.count,
           both = scatter->aa + scatter->bb;
    if (work->question->paired || !(both > 0))
        return fmin(n_a, n_b) - 1;
    return both * both /
           (scatter->aa * scatter->aa / (n_a - 1) + scatter->bb * scatter->bb / (n_b - 1));
}

/* The relative difference is evaluated as b / a, on a log scale. */
static void find_interval(struct comparison *work, bool relative, const struct influences *scatter,
                          const struct contrast *found, struct contrast_figure *out)
{
    struct bootstrap_draws *draws = &work->draws;
    double shift = relative;
    if (!is_known(out->value))
        return;
    struct bootstrap_draw all = {out->value + shift,
                                 contrast_error(relative, found->a, found->b, scatter)};
    draws->count = 0;
    for (size_t i = 0; i < work->drawn; i++) {
        double a = work->drawn_a[i], b = work->drawn_b[i];
        double value = relative ? relative_of(a, b) : difference_of(a, b);
        if (!is_known(value))
            continue;
        draws->values[draws->count] = value + shift;
        draws->errors[draws->count++] = contrast_error(relative, a, b, &work->scatter[i]);
    }
    if (draws->count < 2)
        return;
    bootstrap_ends(draws, &all, freedom_of(work, scatter),
                   relative && found->a > 0 && found->b >= 0, &out->low, &out->high);
    out->low -= shift;
    out->high -= shift;
}

static double stddev_of(const double *values, size_t count)
{
    struct online moments = online_of(values, count);
    return online_stddev(&moments);
}

static void find_intervals(struct comparison *work, struct contrast *out)
{
    if (work->a.count < 2 || work->b.count < 2)
        return;
    for (size_t i = 0; i < work->a.count + work->b.count; i++)
        work->picked[i] = i < work->a.count ? i : i - work->a.count;
    struct influences scatter = influences_of(work, work->a.totals, work->b.totals, work->picked);
    draw_all(work);
    out->a_error = stddev_of(work->drawn_a, work->drawn);
    out->b_error = stddev_of(work->drawn_b, work->drawn);
    find_interval(work, false, &scatter, out, &out->difference);
    find_interval(work, true, &scatter, out, &out->relative);
}

/* ---- permutation test ---- */

static bool is_as_large(double value, double seen)
{
    return fabs(value) >= fabs(seen) * (1 - 1e-12);
}

/* The difference after exchanging units that sum to `moved`. */
static double swapped(const struct comparison *work, const double *moved)
{
    double a[CONTRAST_SUMS], b[CONTRAST_SUMS];
    for (size_t s = 0; s < CONTRAST_SUMS; s++) {
        a[s] = work->a.totals[s] + moved[s];
        b[s] = work->b.totals[s] - moved[s];
    }
    return difference_of(statistic_of(work, a), statistic_of(work, b));
}

static void move(const struct comparison *work, size_t i, double *moved)
{
    const double *a = unit(&work->a, i), *b = unit(&work->b, i);
    for (size_t s = 0; s < CONTRAST_SUMS; s++)
        moved[s] += b[s] - a[s];
}

/* Exchanges pairs.  A permutation without a defined statistic counts as at least as extreme. */
static void try_pairs(const struct comparison *work, struct contrast *out)
{
    struct random random = random_seeded(work->question->seed ^ UINT64_C(0x5bd1e995));
    size_t count = work->a.count;
    out->exact = count <= EXACT_PAIRS;
    uint64_t tries = out->exact ? UINT64_C(1) << count : CONTRAST_TRIES, large = 0;
    for (uint64_t t = 0; t < tries; t++) {
        double moved[CONTRAST_SUMS] = {0};
        uint64_t bits = t;
        for (size_t i = 0; i < count; i++) {
            if (!out->exact && i % 32 == 0)
                bits = random_index(&random, (size_t)1 << 32);
            if (bits >> i % 32 & 1)
                move(work, i, moved);
        }
        double value = swapped(work, moved);
        large += !is_known(value) || is_as_large(value, out->difference.value);
    }
    out->p_value =
        out->exact ? (double)large / (double)tries : (double)(large + 1) / (double)(tries + 1);
}

/* Reassigns units to sides: the first steps of a Fisher-Yates shuffle fill the smaller one. */
static void try_sides(const struct comparison *work, struct contrast *out)
{
    struct random random = random_seeded(work->question->seed ^ UINT64_C(0x5bd1e995));
    bool a_smaller = work->a.count <= work->b.count;
    const struct units *small = a_smaller ? &work->a : &work->b;
    size_t all = work->a.count + work->b.count, large = 0;
    const double **rows = xreallocarray(NULL, all, sizeof *rows);
    for (size_t i = 0; i < all; i++)
        rows[i] = i < work->a.count ? unit(&work->a, i) : unit(&work->b, i - work->a.count);
    for (size_t t = 0; t < CONTRAST_TRIES; t++) {
        double chosen[CONTRAST_SUMS] = {0}, rest[CONTRAST_SUMS];
        for (size_t i = 0; i < small->count; i++) {
            size_t other = i + random_index(&random, all - i);
            const double *kept = rows[i];
            rows[i] = rows[other];
            rows[other] = kept;
            add_row(chosen, rows[i]);
        }
        for (size_t s = 0; s < CONTRAST_SUMS; s++)
            rest[s] = work->a.totals[s] + work->b.totals[s] - chosen[s];
        double value = difference_of(statistic_of(work, chosen), statistic_of(work, rest));
        large += !is_known(value) || is_as_large(value, out->difference.value);
    }
    out->p_value = (double)(large + 1) / (double)(CONTRAST_TRIES + 1);
    free((void *)rows);
}

/* ---- the comparison ---- */

static void prepare(struct comparison *work)
{
    const struct contrast_question *question = work->question;
    size_t longer = question->a.count > question->b.count ? question->a.count : question->b.count;
    size_t size = (longer + CONTRAST_UNITS - 1) / CONTRAST_UNITS;
    fill_units(&question->a, size ? size : 1, &work->a);
    fill_units(&question->b, size ? size : 1, &work->b);
    work->drawn_a = xreallocarray(NULL, 4 * CONTRAST_DRAWS, sizeof *work->drawn_a);
    work->scatter = xreallocarray(NULL, CONTRAST_DRAWS, sizeof *work->scatter);
    work->picked = xcalloc(work->a.count + work->b.count + 1, sizeof *work->picked);
    work->drawn_b = work->drawn_a + CONTRAST_DRAWS;
    work->draws.values = work->drawn_b + CONTRAST_DRAWS;
    work->draws.errors = work->draws.values + CONTRAST_DRAWS;
}

static const struct contrast UNKNOWN_CONTRAST = {.a = UNKNOWN,
                                                 .b = UNKNOWN,
                                                 .a_error = UNKNOWN,
                                                 .b_error = UNKNOWN,
                                                 .difference = {UNKNOWN, UNKNOWN, UNKNOWN},
                                                 .relative = {UNKNOWN, UNKNOWN, UNKNOWN},
                                                 .p_value = UNKNOWN,
                                                 .freedom = UNKNOWN,
                                                 .level = {UNKNOWN, UNKNOWN, UNKNOWN},
                                                 .trend = {UNKNOWN, UNKNOWN, UNKNOWN},
                                                 .level_weight = 1,
                                                 .look = 1};

void contrast(const struct contrast_question *question, struct contrast *out)
{
    struct comparison work = {.question = question};
    *out = UNKNOWN_CONTRAST;
    prepare(&work);
    out->a = statistic_of(&work, work.a.totals);
    out->b = statistic_of(&work, work.b.totals);
    if (is_known(out->a) && is_known(out->b)) {
        out->difference.value = difference_of(out->a, out->b);
        out->relative.value = relative_of(out->a, out->b);
        find_intervals(&work, out);
        if (question->paired)
            try_pairs(&work, out);
        else
            try_sides(&work, out);
    }
    free(work.a.rows);
    free(work.b.rows);
    free(work.drawn_a);
    free(work.scatter);
    free(work.picked);
}

/* ---- runs in the order of their measurement ---- */

/* The probability, before the data, that the machine does not drift while runs are measured. */
#define LEVEL_PRIOR 0.9

static double model_p(const struct contrast_model *model, double null)
{
    return student_two_sided((model->difference - null) / model->error, model->freedom);
}

/* Averaged over the models. */
static double average_p(const struct contrast *found, double null)
{
    double p = found->level_weight * model_p(&found->level, null);
    if (found->level_weight < 1)
        p += (1 - found->level_weight) * model_p(&found->trend, null);
    return p;
}

double contrast_p(const struct contrast *found, double low, double high)
{
    if (!is_known(found->level.error))
        return UNKNOWN;
    double p = fmax(average_p(found, low), average_p(found, high));
    p = fmax(p, average_p(found, fmin(fmax(found->level.difference, low), high)));
    if (found->level_weight < 1)
        p = fmax(p, average_p(found, fmin(fmax(found->trend.difference, low), high)));
    return fmin(1, p / found->look);
}

/* The farthest difference in that direction whose p is not below 5 %, from that of one of the models on. */
static double interval_end(const struct contrast *found, double direction)
{
    const struct contrast_model *level = &found->level, *trend = &found->trend;
    bool is_level_farther = direction * level->difference > direction * trend->difference;
    double farther = is_level_farther ? level->difference : trend->difference;
    double nearer = is_level_farther ? trend->difference : level->difference;
    double inside = average_p(found, farther) >= 0.05 ? farther : nearer;
    double step = direction * fmax(level->error, trend->error), outside = inside + step;
    for (int i = 0; i < 60 && average_p(found, outside) >= 0.05; i++)
        outside += step *= 2;
    for (int i = 0; i < 100; i++) {
        double middle = (inside + outside) / 2;
        if (average_p(found, middle) >= 0.05)
            inside = middle;
        else
            outside = middle;
    }
    return inside;
}

/* Sums of a regression of the values on a level for each side and their positions. */
struct trend_sums {
    double positions[2], values[2], counts[2]; /* of each side */
    double xx, xy, yy;                         /* within sides */
};

static void trend_add(struct trend_sums *sums, const double *values, const double *at, size_t count,
                      int side)
{
    struct online y = {0}, x = {0};
    for (size_t i = 0; i < count; i++)
        if (is_known(values[i])) {
            online_add(&y, values[i]);
            online_add(&x, at[i]);
        }
    sums->counts[side] = (double)x.count;
    sums->values[side] = y.mean;
    sums->positions[side] = x.mean;
    for (size_t i = 0; i < count; i++) {
        if (!is_known(values[i]))
            continue;
        double dx = at[i] - x.mean, dy = values[i] - y.mean;
        sums->xx += dx * dx;
        sums->xy += dx * dy;
        sums->yy += dy * dy;
    }
}

/* The odds of no trend by the Bayesian information criterion. */
static double level_weight(double slope_t, double freedom, double count)
{
    double odds = sqrt(count) * pow(1 + slope_t * slope_t / freedom, -count / 2);
    return LEVEL_PRIOR * odds / (LEVEL_PRIOR * odds + 1 - LEVEL_PRIOR);
}

static void scale_ends(struct contrast_figure *figure, double below, double above)
{
    figure->low = figure->value - below * (figure->value - figure->low);
    figure->high = figure->value + above * (figure->high - figure->value);
}

/* Averages with the model of a trend, if the data allow one. */
static void add_trend(const struct trend_sums *sums, struct contrast *inout)
{
    struct contrast_figure *difference = &inout->difference;
    double count = sums->counts[0] + sums->counts[1], freedom = count - 3;
    if (!is_known(inout->level.error) || freedom < 1 || !(sums->xx > 0))
        return;
    double slope = sums->xy / sums->xx, apart = sums->positions[1] - sums->positions[0];
    double left = fmax(sums->yy - slope * sums->xy, 1e-12 * sums->yy) / freedom;
    double spread = 1 / sums->counts[0] + 1 / sums->counts[1] + apart * apart / sums->xx;
    inout->trend =
        (struct contrast_model){difference->value - slope * apart, sqrt(left * spread), freedom};
    inout->level_weight = level_weight(slope / sqrt(left / sums->xx), freedom, count);
    double below = difference->value - difference->low;
    double above = difference->high - difference->value;
    difference->low = interval_end(inout, -1);
    difference->high = interval_end(inout, 1);
    scale_ends(&inout->relative, (difference->value - difference->low) / below,
               (difference->high - difference->value) / above);
    inout->p_value = contrast_p(inout, 0, 0);
}

/* The position of each time in their order; false if one is unknown or two are equal. */
static bool find_positions(const double *times, size_t count, double *out)
{
    double *ascending = xmalloc((count + 1) * sizeof *ascending);
    bool is_ordered = true;
    for (size_t i = 0; i < count; i++) {
        ascending[i] = times[i];
        is_ordered = is_ordered && is_known(times[i]);
    }
    if (is_ordered)
        sort_ascending(ascending, count);
    for (size_t i = 1; i < count && is_ordered; i++)
        is_ordered = ascending[i] > ascending[i - 1];
    for (size_t i = 0; i < count && is_ordered; i++) {
        size_t low = 0, high = count;
        while (high - low > 1) {
            size_t middle = (low + high) / 2;
            if (ascending[middle] <= times[i])
                low = middle;
            else
                high = middle;
        }
        out[i] = (double)low;
    }
    free(ascending);
    return is_ordered;
}

void contrast_allow_trend(const double *a, const double *a_times, size_t a_count, const double *b,
                          const double *b_times, size_t b_count, struct contrast *inout)
{
    struct trend_sums sums = {0};
    double *times = xmalloc((a_count + b_count + 1) * sizeof *times);
    double *at = xmalloc((a_count + b_count + 1) * sizeof *at);
    for (size_t i = 0; i < a_count + b_count; i++)
        times[i] = i < a_count ? a_times[i] : b_times[i - a_count];
    if (find_positions(times, a_count + b_count, at)) {
        trend_add(&sums, a, at, a_count, 0);
        trend_add(&sums, b, at + a_count, b_count, 1);
        add_trend(&sums, inout);
    }
    free(times);
    free(at);
}

/* ---- several runs per side ---- */

/* Fieller's interval: the values of b / a within t standard errors.  covariance: of both means. */
static void fieller(struct contrast *out, double t, double covariance)
{
    double of_a = t * out->a_error, of_b = t * out->b_error;
    double square = out->a * out->a - of_a * of_a;
    double middle = out->a * out->b - t * t * covariance;
    double root = sqrt(fmax(0, middle * middle - square * (out->b * out->b - of_b * of_b)));
    if (!(square > 0) || !is_known(out->relative.value))
        return; /* a is not significantly different from 0: the ratio is unbounded */
    bool exact = of_a == 0 && of_b == 0;
    out->relative.low = exact ? out->relative.value : (middle - root) / square - 1;
    out->relative.high = exact ? out->relative.value : (middle + root) / square - 1;
}

/* Means, their errors and differences; false if a side has no value. */
static bool set_means(const struct online *a, const struct online *b, struct contrast *out)
{
    out->a = online_mean(a);
    out->b = online_mean(b);
    out->a_error = online_standard_error(a);
    out->b_error = online_standard_error(b);
    if (!is_known(out->a) || !is_known(out->b))
        return false;
    out->difference.value = difference_of(out->a, out->b);
    out->relative.value = relative_of(out->a, out->b);
    return true;
}

void contrast_runs(const double *a, size_t a_count, const double *b, size_t b_count,
                   struct contrast *out)
{
    struct online in_a = online_of(a, a_count), in_b = online_of(b, b_count);
    double n_a = (double)in_a.count, n_b = (double)in_b.count;
    *out = UNKNOWN_CONTRAST;
    if (!set_means(&in_a, &in_b, out) || n_a < 2 || n_b < 2)
        return;
    double error = hypot(out->a_error, out->b_error), t = 0;
    if (error <= 1e-12 * fmax(fabs(out->a), fabs(out->b))) { /* all runs of a side are equal */
        out->a_error = out->b_error = 0;
        out->p_value = out->difference.value == 0;
    } else {
        double of_a = out->a_error * out->a_error, of_b = out->b_error * out->b_error;
        out->freedom =
            (of_a + of_b) * (of_a + of_b) / (of_a * of_a / (n_a - 1) + of_b * of_b / (n_b - 1));
        out->level = (struct contrast_model){out->difference.value, error, out->freedom};
        out->p_value = contrast_p(out, 0, 0);
        t = student_quantile(0.05, out->freedom);
    }
    out->difference.low = out->difference.value - t * error;
    out->difference.high = out->difference.value + t * error;
    fieller(out, t, 0);
}

void contrast_pairs(const double *a, const double *b, size_t count, double look,
                    struct contrast *out)
{
    struct online in_a = {0}, in_b = {0}, between = {0};
    for (size_t i = 0; i < count; i++) {
        if (!is_known(a[i]) || !is_known(b[i]))
            continue;
        online_add(&in_a, a[i]);
        online_add(&in_b, b[i]);
        online_add(&between, b[i] - a[i]);
    }
    *out = UNKNOWN_CONTRAST;
    out->look = look;
    if (!set_means(&in_a, &in_b, out) || between.count < 2)
        return;
    double error = online_standard_error(&between), t = 0, of_a = out->a_error, of_b = out->b_error;
    out->freedom = (double)between.count - 1;
    if (error <= 1e-12 * fmax(fabs(out->a), fabs(out->b))) { /* all pairs differ alike */
        error = 0;
        out->p_value = out->difference.value == 0;
    } else {
        out->level = (struct contrast_model){out->difference.value, error, out->freedom};
        out->p_value = contrast_p(out, 0, 0);
        t = student_quantile(0.05 * look, out->freedom);
    }
    out->difference.low = out->difference.value - t * error;
    out->difference.high = out->difference.value + t * error;
    fieller(out, t, (of_a * of_a + of_b * of_b - error * error) / 2);
}

/* ---- tests of counts and of several p values ---- */

double sign_test(uint64_t wins, uint64_t losses)
{
    uint64_t fewer = wins < losses ? wins : losses;
    double all = (double)(wins + losses), p = 0;
    if (2 * fewer + 1 >= wins + losses)
        return 1; /* balanced: the sum is one half up to rounding */
    double log_ways = lgamma(all + 1) - all * log(2);
    for (uint64_t k = 0; k <= fewer; k++)
        p += exp(log_ways - lgamma((double)k + 1) - lgamma(all - (double)k + 1));
    return 2 * p < 1 ? 2 * p : 1;
}

/* The smallest p value that is not adjusted yet; count when there is none. */
static size_t smallest_left(const double *p_values, const bool *adjusted, size_t count)
{
    size_t found = count;
    for (size_t i = 0; i < count; i++)
        if (!adjusted[i] && is_known(p_values[i]) &&
            (found == count || p_values[i] < p_values[found]))
            found = i;
    return found;
}

void holm_adjust(double *p_values, size_t count)
{
    bool *adjusted = xcalloc(count + 1, sizeof *adjusted);
    size_t left = 0, next;
    double before = 0;
    for (size_t i = 0; i < count; i++)
        left += is_known(p_values[i]);
    for (; left; left--) {
        next = smallest_left(p_values, adjusted, count);
        before = fmax(before, fmin(1, p_values[next] * (double)left));
        p_values[next] = before;
        adjusted[next] = true;
    }
    free(adjusted);
}
