#include "stats/correlation.h"

#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "core/xalloc.h"
#include "stats/distribution.h"

struct pair {
    double x, y;
};

static struct pair *pairs_of(const double *x, const double *y, size_t count, size_t *kept)
{
    struct pair *pairs = xreallocarray(NULL, count + 1, sizeof *pairs);
    *kept = 0;
    for (size_t i = 0; i < count; i++)
        if (is_known(x[i]) && is_known(y[i]))
            pairs[(*kept)++] = (struct pair){x[i], y[i]};
    return pairs;
}

static int by_x(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;
    int order = compare_numbers(a->x, b->x);
    return order ? order : compare_numbers(a->y, b->y);
}

/* ---- Spearman: Pearson's correlation of ranks ---- */

static struct correlation pearson(const struct pair *pairs, size_t count)
{
    struct correlation out = {count, UNKNOWN, UNKNOWN};
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0, yy = 0;
    for (size_t i = 0; i < count; i++) {
        mean_x += (pairs[i].x - mean_x) / (double)(i + 1);
        mean_y += (pairs[i].y - mean_y) / (double)(i + 1);
    }
    for (size_t i = 0; i < count; i++) {
        double x = pairs[i].x - mean_x, y = pairs[i].y - mean_y;
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    if (count < 2 || !(xx > 0) || !(yy > 0))
        return out;
    out.value = fmax(-1, fmin(1, xy / sqrt(xx) / sqrt(yy)));
    if (count > 2) {
        double freedom = (double)count - 2, rest = (1 - out.value) * (1 + out.value);
        out.p_value = rest > 0 ? student_two_sided(out.value * sqrt(freedom / rest), freedom) : 0;
    }
    return out;
}

static void rank_x(struct pair *pairs, size_t count)
{
    qsort(pairs, count, sizeof *pairs, by_x);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && pairs[to].x == pairs[from].x; to++)
            ;
        double rank = (double)(from + to + 1) / 2;
        for (size_t i = from; i < to; i++)
            pairs[i].x = rank;
    }
}

static void swap(struct pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pairs[i] = (struct pair){pairs[i].y, pairs[i].x};
}

void spearman(const double *x, const double *y, size_t count, struct correlation *out)
{
    size_t kept;
    struct pair *pairs = pairs_of(x, y, count, &kept);
    rank_x(pairs, kept);
    swap(pairs, kept);
    rank_x(pairs, kept);
    swap(pairs, kept);
    *out = pearson(pairs, kept);
    free(pairs);
}

/* ---- Kendall, by Knight's merge sort ---- */

/* The number of inversions of y; sorts by y, using `scratch` for as many pairs. */
static double inversions(struct pair *pairs, struct pair *scratch, size_t count)
{
    double swaps = 0;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t low = 0; low + width < count; low += 2 * width) {
            size_t middle = low + width, high = middle + width < count ? middle + width : count;
            size_t a = low, b = middle, to = low;
            while (a < middle && b < high) {
                if (pairs[b].y < pairs[a].y) {
                    swaps += (double)(middle - a);
                    scratch[to++] = pairs[b++];
                } else {
                    scratch[to++] = pairs[a++];
                }
            }
            while (a < middle)
                scratch[to++] = pairs[a++];
            while (b < high)
                scratch[to++] = pairs[b++];
            memcpy(pairs + low, scratch + low, (high - low) * sizeof *pairs);
        }
    }
    return swaps;
}

/* Sums over groups of equal values: of t(t-1)/2, t(t-1)(t-2) and t(t-1)(2t+5). */
struct ties {
    double pairs, triples, spread;
};

static void add_ties(struct ties *ties, size_t size)
{
    double t = (double)size;
    ties->pairs += t * (t - 1) / 2;
    ties->triples += t * (t - 1) * (t - 2);
    ties->spread += t * (t - 1) * (2 * t + 5);
}

static struct ties ties_in(const struct pair *sorted, size_t count,
                           bool (*same)(const struct pair *a, const struct pair *b))
{
    struct ties ties = {0};
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && same(&sorted[from], &sorted[to]); to++)
            ;
        add_ties(&ties, to - from);
    }
    return ties;
}

static bool same_x(const struct pair *a, const struct pair *b)
{
    return a->x == b->x;
}

static bool same_y(const struct pair *a, const struct pair *b)
{
    return a->y == b->y;
}

static bool same_both(const struct pair *a, const struct pair *b)
{
    return a->x == b->x && a->y == b->y;
}

static struct correlation kendall_of(struct pair *pairs, struct pair *scratch, size_t count)
{
    struct correlation out = {count, UNKNOWN, UNKNOWN};
    double n = (double)count, all = n * (n - 1) / 2;
    qsort(pairs, count, sizeof *pairs, by_x);
    struct ties x = ties_in(pairs, count, same_x), both = ties_in(pairs, count, same_both);
    double discordant = inversions(pairs, scratch, count);
    struct ties y = ties_in(pairs, count, same_y);
    double score = all - x.pairs - y.pairs + both.pairs - 2 * discordant;
    if (!(all > x.pairs) || !(all > y.pairs))
        return out;
    out.value = fmax(-1, fmin(1, score / sqrt(all - x.pairs) / sqrt(all - y.pairs)));
    if (count > 2) {
        double m = n * (n - 1);
        double variance = (m * (2 * n + 5) - x.spread - y.spread) / 18 + 2 * x.pairs * y.pairs / m +
                          x.triples * y.triples / (9 * m * (n - 2));
        out.p_value = erfc(fabs(score) / sqrt(variance) / sqrt(2));
    }
    return out;
}

void kendall(const double *x, const double *y, size_t count, struct correlation *out)
{
    struct pair *scratch = xreallocarray(NULL, count + 1, sizeof *scratch);
    size_t kept;
    struct pair *pairs = pairs_of(x, y, count, &kept);
    *out = kendall_of(pairs, scratch, kept);
    free(pairs);
    free(scratch);
}
