#include "stats/select.h"

#include <stdbool.h>
#include <stdlib.h>

#include "core/units.h"

static void swap(double *a, double *b)
{
    double kept = *a;
    *a = *b;
    *b = kept;
}

/* The middle of three: an array that is sorted already is the most common bad case otherwise. */
static double pivot_of(const double *values, size_t low, size_t high)
{
    double a = values[low], b = values[low + (high - low) / 2], c = values[high];
    if ((a <= b) == (b <= c))
        return b;
    return (b <= a) == (a <= c) ? a : c;
}

/* Hoare's partition: everything up to *left is at most the pivot, from *right on at least. */
static void split(double *values, size_t low, size_t high, size_t *left, size_t *right)
{
    double pivot = pivot_of(values, low, high);
    size_t i = low, j = high;
    for (;;) {
        while (values[i] < pivot)
            i++;
        while (values[j] > pivot)
            j--;
        if (i >= j)
            break;
        swap(&values[i], &values[j]);
        i++;
        j--;
    }
    *left = j;
    *right = i == j ? i + 1 : i;
}

/* Moves what is below the pivot (or at it, too) to the front of low .. high-1 and returns where the
 * rest begins.  Without a branch: what comes next cannot be guessed, and a wrong guess costs more than
 * ten moves. */
static size_t move_below(double *values, size_t low, size_t high, double pivot, bool or_at)
{
    size_t end = low;
    for (size_t i = low; i < high; i++) {
        double value = values[i];
        values[i] = values[end];
        values[end] = value;
        end += or_at ? value <= pivot : value < pivot;
    }
    return end;
}

/* Values before `low` are known to be the smaller ones already. */
static double rank_from(double *values, size_t low, size_t count, size_t rank)
{
    size_t high = count;
    while (high - low > 1) {
        double pivot = pivot_of(values, low, high - 1);
        size_t below = move_below(values, low, high, pivot, false);
        if (rank < below) {
            high = below;
            continue;
        }
        low = move_below(values, below, high, pivot, true); /* equal ones, however many */
        if (rank < low)
            break;
    }
    return values[rank];
}

double select_rank(double *values, size_t count, size_t rank)
{
    return rank_from(values, 0, count, rank);
}

static double quantile_from(double *values, size_t from, size_t count, double p, size_t *below)
{
    double position = p * (double)(count - 1);
    *below = (size_t)position;
    double share = position - (double)*below, low = rank_from(values, from, count, *below);
    if (share == 0 || *below + 1 >= count)
        return low;
    double high = values[*below + 1]; /* the least of those behind */
    for (size_t i = *below + 2; i < count; i++)
        high = values[i] < high ? values[i] : high;
    return low == high ? low : low * (1 - share) + high * share;
}

void select_quantiles(double *values, size_t count, const double *ps, size_t p_count, double *out)
{
    size_t from = 0;
    for (size_t i = 0; i < p_count; i++)
        out[i] = count && ps[i] >= 0 && ps[i] <= 1
                     ? quantile_from(values, from, count, ps[i], &from)
                     : UNKNOWN;
}

double select_quantile(double *values, size_t count, double p)
{
    double out;
    select_quantiles(values, count, &p, 1, &out);
    return out;
}

double select_median(double *values, size_t count)
{
    return select_quantile(values, count, 0.5);
}

/* Quicksort on doubles alone is several times as quick as qsort, which calls back for each pair. */
void sort_ascending(double *values, size_t count)
{
    while (count > 1) {
        size_t left, right;
        if (count <= 16) {
            for (size_t i = 1; i < count; i++)
                for (size_t j = i; j > 0 && values[j - 1] > values[j]; j--)
                    swap(&values[j - 1], &values[j]);
            return;
        }
        split(values, 0, count - 1, &left, &right);
        if (left + 1 < count - right) { /* the shorter side first: the stack stays short */
            sort_ascending(values, left + 1);
            values += right;
            count -= right;
        } else {
            sort_ascending(values + right, count - right);
            count = left + 1;
        }
    }
}
