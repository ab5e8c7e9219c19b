#include "stats/contrast.h"

#include <math.h>
#include <stdlib.h>

#include "core/random.h"
#include "core/units.h"
#include "stats/distribution.h"
#include "stats/online.h"
#include "stats/quantile.h"
#include "stats/select.h"

enum { EXACT_PAIRS = 13 }; /* 8192 arrangements: fewer than would be drawn */

struct units {
    double *rows; /* CONTRAST_SUMS each */
    size_t count;
    double totals[CONTRAST_SUMS];
};

struct contrasting {
    const struct contrast_question *question;
    struct units a, b;
    double *drawn_a, *drawn_b, *work; /* CONTRAST_DRAWS each */
    size_t drawn;
};

static double figure_of(const struct contrasting *work, const double *sums)
{
    double value = sums[1] > 0 ? sums[0] / sums[1] : UNKNOWN;
    if (work->question->product)
        value *= sums[3] > 0 ? sums[2] / sums[3] : UNKNOWN;
    return value;
}

/* Of next to nothing there is no share worth telling. */
static double relative_of(double a, double b)
{
    return fabs(a) > 1e-6 * fabs(b) ? (b - a) / fabs(a) : UNKNOWN;
}

/* Rounding makes no difference. */
static double difference_of(double a, double b)
{
    return fabs(b - a) > 1e-9 * fmax(fabs(a), fabs(b)) ? b - a : 0;
}

static void add_row(double *sums, const double *row)
{
    for (size_t s = 0; s < CONTRAST_SUMS; s++)
        sums[s] += row[s];
}

/* `size` queries a unit, the same on both sides, so that units can be exchanged. */
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

static void draw_all(struct contrasting *work)
{
    struct random draws = random_seeded(work->question->seed);
    for (size_t d = 0; d < CONTRAST_DRAWS; d++) {
        double a[CONTRAST_SUMS] = {0}, b[CONTRAST_SUMS] = {0};
        for (size_t i = 0; i < work->a.count; i++) {
            size_t picked = random_index(&draws, work->a.count);
            add_row(a, unit(&work->a, picked));
            if (work->question->paired)
                add_row(b, unit(&work->b, picked));
        }
        for (size_t i = 0; !work->question->paired && i < work->b.count; i++)
            add_row(b, unit(&work->b, random_index(&draws, work->b.count)));
        double value_a = figure_of(work, a), value_b = figure_of(work, b);
        if (!is_known(value_a) || !is_known(value_b))
            continue;
        work->drawn_a[work->drawn] = value_a;
        work->drawn_b[work->drawn++] = value_b;
    }
}

typedef double contrast_fn(double a, double b);

/* The figure without unit `i` of one side, or of both when paired. */
static double without(const struct contrasting *work, contrast_fn *compare, bool of_a, size_t i)
{
    double a[CONTRAST_SUMS], b[CONTRAST_SUMS];
    bool both = work->question->paired;
    for (size_t s = 0; s < CONTRAST_SUMS; s++) {
        a[s] = work->a.totals[s] - (of_a || both ? unit(&work->a, i)[s] : 0);
        b[s] = work->b.totals[s] - (!of_a || both ? unit(&work->b, i)[s] : 0);
    }
    return compare(figure_of(work, a), figure_of(work, b));
}

/* Adds one side's influences, squared and cubed, each by its weight. */
static void add_influences(const struct contrasting *work, contrast_fn *compare, bool of_a,
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

static double acceleration(const struct contrasting *work, contrast_fn *compare)
{
    double squares = 0, cubes = 0;
    add_influences(work, compare, true, &squares, &cubes);
    if (!work->question->paired)
        add_influences(work, compare, false, &squares, &cubes);
    return squares > 0 ? cubes / (6 * pow(squares, 1.5)) : 0;
}

static double corrected(double p, double bias, double skew)
{
    double z = bias + normal_quantile(p);
    return normal_below(bias + z / (1 - skew * z));
}

static void find_interval(struct contrasting *work, contrast_fn *compare,
                          struct contrast_figure *out)
{
    double below = 0;
    size_t count = 0;
    for (size_t i = 0; i < work->drawn; i++) {
        double value = compare(work->drawn_a[i], work->drawn_b[i]);
        if (!is_known(value))
            continue;
        work->work[count++] = value;
        below += value < out->value ? 1 : value == out->value ? 0.5 : 0;
    }
    if (count < 2 || !is_known(out->value))
        return;
    sort_ascending(work->work, count);
    double low = 0.025, high = 0.975, bias = normal_quantile(below / (double)count);
    if (is_known(bias)) { /* else all are on one side, and there is nothing to correct by */
        double skew = acceleration(work, compare);
        low = corrected(0.025, bias, skew);
        high = corrected(0.975, bias, skew);
    }
    out->low = quantile_sorted(work->work, count, low);
    out->high = quantile_sorted(work->work, count, high);
}

static double scatter(const double *values, size_t count)
{
    struct online moments = {0};
    for (size_t i = 0; i < count; i++)
        online_add(&moments, values[i]);
    return online_stddev(&moments);
}

static void find_intervals(struct contrasting *work, struct contrast *out)
{
    if (work->a.count < 2 || work->b.count < 2)
        return;
    draw_all(work);
    out->a_error = scatter(work->drawn_a, work->drawn);
    out->b_error = scatter(work->drawn_b, work->drawn);
    find_interval(work, difference_of, &out->difference);
    find_interval(work, relative_of, &out->relative);
}

/* ---- chance ---- */

static bool is_as_large(double value, double seen)
{
    return fabs(value) >= fabs(seen) * (1 - 1e-12);
}

/* The difference after the units of set bits changed sides. */
static double swapped(const struct contrasting *work, const double *moved)
{
    double a[CONTRAST_SUMS], b[CONTRAST_SUMS];
    for (size_t s = 0; s < CONTRAST_SUMS; s++) {
        a[s] = work->a.totals[s] + moved[s];
        b[s] = work->b.totals[s] - moved[s];
    }
    return difference_of(figure_of(work, a), figure_of(work, b));
}

static void move(const struct contrasting *work, size_t i, double *moved)
{
    const double *a = unit(&work->a, i), *b = unit(&work->b, i);
    for (size_t s = 0; s < CONTRAST_SUMS; s++)
        moved[s] += b[s] - a[s];
}

/* Counts arrangements as large; an arrangement that makes no figure counts as one. */
static void try_pairs(const struct contrasting *work, struct contrast *out)
{
    struct random draws = random_seeded(work->question->seed ^ UINT64_C(0x5bd1e995));
    size_t count = work->a.count;
    out->exact = count <= EXACT_PAIRS;
    uint64_t tries = out->exact ? UINT64_C(1) << count : CONTRAST_TRIES, large = 0;
    for (uint64_t t = 0; t < tries; t++) {
        double moved[CONTRAST_SUMS] = {0};
        uint64_t bits = t;
        for (size_t i = 0; i < count; i++) {
            if (!out->exact && i % 32 == 0)
                bits = random_index(&draws, (size_t)1 << 32);
            if (bits >> i % 32 & 1)
                move(work, i, moved);
        }
        double value = swapped(work, moved);
        large += !is_known(value) || is_as_large(value, out->difference.value);
    }
    out->p_value =
        out->exact ? (double)large / (double)tries : (double)(large + 1) / (double)(tries + 1);
}

/* Who belongs to which side is drawn anew: the first steps of a shuffle, of the smaller side. */
static enum err try_sides(const struct contrasting *work, struct contrast *out)
{
    struct random draws = random_seeded(work->question->seed ^ UINT64_C(0x5bd1e995));
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
            size_t other = i + random_index(&draws, all - i);
            const double *kept = rows[i];
            rows[i] = rows[other];
            rows[other] = kept;
            add_row(chosen, rows[i]);
        }
        for (size_t s = 0; s < CONTRAST_SUMS; s++)
            rest[s] = work->a.totals[s] + work->b.totals[s] - chosen[s];
        double value = difference_of(figure_of(work, chosen), figure_of(work, rest));
        large += !is_known(value) || is_as_large(value, out->difference.value);
    }
    out->p_value = (double)(large + 1) / (double)(CONTRAST_TRIES + 1);
    free((void *)rows);
    return ERR_OK;
}

/* ---- both ---- */

static enum err prepare(struct contrasting *work)
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
    work->work = work->drawn_b + CONTRAST_DRAWS;
    return err;
}

enum err contrast(const struct contrast_question *question, struct contrast *out)
{
    struct contrasting work = {.question = question};
    const struct contrast_figure unknown = {UNKNOWN, UNKNOWN, UNKNOWN};
    *out = (struct contrast){.a_error = UNKNOWN, .b_error = UNKNOWN, .p_value = UNKNOWN};
    out->difference = out->relative = unknown;
    enum err err = prepare(&work);
    out->a = err ? UNKNOWN : figure_of(&work, work.a.totals);
    out->b = err ? UNKNOWN : figure_of(&work, work.b.totals);
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
