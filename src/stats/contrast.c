#include "stats/contrast.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/random.h"
#include "core/units.h"
#include "stats/bootstrap.h"
#include "stats/online.h"
#include "stats/quantile.h"

enum { EXACT_PAIRS = 13 }; /* 8192 arrangements: fewer than are drawn at random */

struct units {
    double *rows; /* CONTRAST_SUMS each */
    size_t count;
    double totals[CONTRAST_SUMS];
};

struct comparison {
    const struct contrast_question *question;
    struct units a, b;
    double *drawn_a, *drawn_b, *values; /* CONTRAST_DRAWS each */
    size_t drawn;
};

static double statistic_of(const struct comparison *work, const double *sums)
{
    double value = sums[1] > 0 ? sums[0] / sums[1] : UNKNOWN;
    if (work->question->product)
        value *= sums[3] > 0 ? sums[2] / sums[3] : UNKNOWN;
    return value;
}

/* Relative to next to nothing, a change means nothing. */
static double relative_of(double a, double b)
{
    return fabs(a) > 1e-6 * fabs(b) ? (b - a) / fabs(a) : UNKNOWN;
}

/* A difference within rounding is none. */
static double difference_of(double a, double b)
{
    return fabs(b - a) > 1e-9 * fmax(fabs(a), fabs(b)) ? b - a : 0;
}

static void add_row(double *sums, const double *row)
{
    for (size_t s = 0; s < CONTRAST_SUMS; s++)
        sums[s] += row[s];
}

/* `size` queries per unit, the same on both sides, so that units can be exchanged. */
static enum err fill_units(const struct contrast_side *side, size_t size, struct units *out)
{
    out->count = (side->count + size - 1) / size;
    out->rows = calloc((out->count + 1) * CONTRAST_SUMS, sizeof *out->rows);
    if (!out->rows)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < side->count; i++) {
        add_row(out->rows + i % out->count * CONTRAST_SUMS, side->terms + i * CONTRAST_SUMS);
        add_row(out->totals, side->terms + i * CONTRAST_SUMS);
    }
    return ERR_OK;
}

static const double *unit(const struct units *units, size_t i)
{
    return units->rows + i * CONTRAST_SUMS;
}

/* ---- intervals ---- */

static void draw_all(struct comparison *work)
{
    struct random random = random_seeded(work->question->seed);
    for (size_t d = 0; d < CONTRAST_DRAWS; d++) {
        double a[CONTRAST_SUMS] = {0}, b[CONTRAST_SUMS] = {0};
        for (size_t i = 0; i < work->a.count; i++) {
            size_t picked = random_index(&random, work->a.count);
            add_row(a, unit(&work->a, picked));
            if (work->question->paired)
                add_row(b, unit(&work->b, picked));
        }
        for (size_t i = 0; !work->question->paired && i < work->b.count; i++)
            add_row(b, unit(&work->b, random_index(&random, work->b.count)));
        double value_a = statistic_of(work, a), value_b = statistic_of(work, b);
        if (!is_known(value_a) || !is_known(value_b))
            continue;
        work->drawn_a[work->drawn] = value_a;
        work->drawn_b[work->drawn++] = value_b;
    }
}

typedef double compare_fn(double a, double b);

/* The contrast without unit `i` of one side, or of both when paired. */
static double without(const struct comparison *work, compare_fn *compare, bool of_a, size_t i)
{
    double a[CONTRAST_SUMS], b[CONTRAST_SUMS];
    bool both = work->question->paired;
    for (size_t s = 0; s < CONTRAST_SUMS; s++) {
        a[s] = work->a.totals[s] - (of_a || both ? unit(&work->a, i)[s] : 0);
        b[s] = work->b.totals[s] - (!of_a || both ? unit(&work->b, i)[s] : 0);
    }
    return compare(statistic_of(work, a), statistic_of(work, b));
}

/* Adds one side's leave-one-out influences, squared and cubed. */
static void add_influences(const struct comparison *work, compare_fn *compare, bool of_a,
                           double *squares, double *cubes)
{
    size_t count = of_a ? work->a.count : work->b.count;
    struct online mean = {0};
    for (size_t i = 0; i < count; i++)
        online_add(&mean, without(work, compare, of_a, i));
    for (size_t i = 0; i < count; i++) {
        double influence = online_mean(&mean) - without(work, compare, of_a, i);
        influence *= (double)(count - 1) / (double)count;
        if (!is_known(influence))
            continue;
        *squares += influence * influence;
        *cubes += influence * influence * influence;
    }
}

static double acceleration(const struct comparison *work, compare_fn *compare)
{
    double squares = 0, cubes = 0;
    add_influences(work, compare, true, &squares, &cubes);
    if (!work->question->paired)
        add_influences(work, compare, false, &squares, &cubes);
    return squares > 0 ? cubes / (6 * pow(squares, 1.5)) : 0;
}

static void find_interval(struct comparison *work, compare_fn *compare, struct contrast_figure *out)
{
    double below = 0;
    size_t count = 0;
    for (size_t i = 0; i < work->drawn; i++) {
        double value = compare(work->drawn_a[i], work->drawn_b[i]);
        if (!is_known(value))
            continue;
        work->values[count++] = value;
        below += value < out->value ? 1 : value == out->value ? 0.5 : 0;
    }
    if (count < 2 || !is_known(out->value))
        return;
    sort_ascending(work->values, count);
    bootstrap_ends(work->values, count, below / (double)count, acceleration(work, compare),
                   &out->low, &out->high);
}

static double stddev_of(const double *values, size_t count)
{
    struct online moments = {0};
    for (size_t i = 0; i < count; i++)
        online_add(&moments, values[i]);
    return online_stddev(&moments);
}

static void find_intervals(struct comparison *work, struct contrast *out)
{
    if (work->a.count < 2 || work->b.count < 2)
        return;
    draw_all(work);
    out->a_error = stddev_of(work->drawn_a, work->drawn);
    out->b_error = stddev_of(work->drawn_b, work->drawn);
    find_interval(work, difference_of, &out->difference);
    find_interval(work, relative_of, &out->relative);
}

/* ---- permutation test ---- */

static bool is_as_large(double value, double seen)
{
    return fabs(value) >= fabs(seen) * (1 - 1e-12);
}

/* The difference after units that sum to `moved` changed sides. */
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

/* Pairs change sides.  An arrangement that makes no statistic counts as one that is as large. */
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

/* The sides are drawn anew: the first steps of a shuffle fill the smaller one. */
static enum err try_sides(const struct comparison *work, struct contrast *out)
{
    struct random random = random_seeded(work->question->seed ^ UINT64_C(0x5bd1e995));
    bool a_smaller = work->a.count <= work->b.count;
    const struct units *small = a_smaller ? &work->a : &work->b;
    size_t all = work->a.count + work->b.count, large = 0;
    const double **rows = malloc((all ? all : 1) * sizeof *rows);
    if (!rows)
        return ERR_NO_MEMORY;
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
    return ERR_OK;
}

/* ---- the comparison ---- */

static enum err prepare(struct comparison *work)
{
    const struct contrast_question *question = work->question;
    size_t longer = question->a.count > question->b.count ? question->a.count : question->b.count;
    size_t size = (longer + CONTRAST_UNITS - 1) / CONTRAST_UNITS;
    enum err err = fill_units(&question->a, size ? size : 1, &work->a);
    if (!err)
        err = fill_units(&question->b, size ? size : 1, &work->b);
    work->drawn_a = malloc(3 * CONTRAST_DRAWS * sizeof *work->drawn_a);
    if (!work->drawn_a)
        return ERR_NO_MEMORY;
    work->drawn_b = work->drawn_a + CONTRAST_DRAWS;
    work->values = work->drawn_b + CONTRAST_DRAWS;
    return err;
}

enum err contrast(const struct contrast_question *question, struct contrast *out)
{
    struct comparison work = {.question = question};
    const struct contrast_figure unknown = {UNKNOWN, UNKNOWN, UNKNOWN};
    *out = (struct contrast){.a_error = UNKNOWN, .b_error = UNKNOWN, .p_value = UNKNOWN};
    out->difference = out->relative = unknown;
    enum err err = prepare(&work);
    out->a = err ? UNKNOWN : statistic_of(&work, work.a.totals);
    out->b = err ? UNKNOWN : statistic_of(&work, work.b.totals);
    if (!err && is_known(out->a) && is_known(out->b)) {
        out->difference.value = difference_of(out->a, out->b);
        out->relative.value = relative_of(out->a, out->b);
        find_intervals(&work, out);
        if (question->paired)
            try_pairs(&work, out);
        else
            err = try_sides(&work, out);
    }
    free(work.a.rows);
    free(work.b.rows);
    free(work.drawn_a);
    return err;
}

/* ---- tests of counts and of several p values ---- */

double sign_test(uint64_t wins, uint64_t losses)
{
    uint64_t fewer = wins < losses ? wins : losses;
    double all = (double)(wins + losses), p = 0;
    if (2 * fewer + 1 >= wins + losses)
        return 1; /* as even as possible: the sum is one half up to rounding */
    double log_ways = lgamma(all + 1) - all * log(2);
    for (uint64_t k = 0; k <= fewer; k++)
        p += exp(log_ways - lgamma((double)k + 1) - lgamma(all - (double)k + 1));
    return 2 * p < 1 ? 2 * p : 1;
}

/* The smallest that is not adjusted yet; count when there is none. */
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
    bool *adjusted = calloc(count + 1, sizeof *adjusted);
    size_t left = 0, next;
    double before = 0;
    for (size_t i = 0; i < count; i++)
        left += is_known(p_values[i]);
    if (!adjusted) { /* no memory: Bonferroni's correction is on the safe side */
        for (size_t i = 0; i < count; i++)
            p_values[i] = fmin(1, p_values[i] * (double)left);
        return;
    }
    for (; left; left--) {
        next = smallest_left(p_values, adjusted, count);
        before = fmax(before, fmin(1, p_values[next] * (double)left));
        p_values[next] = before;
        adjusted[next] = true;
    }
    free(adjusted);
}
