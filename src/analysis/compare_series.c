/* Two settings whose runs alternated: which runs are a pair, and how sure a look at a series must be that ends when it is
 * decided. */
#include <stdlib.h>

#include "analysis/compare.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "rundir/run_table.h"
#include "stats/sequential.h"

static bool is_of_series(const struct compare_side *side, const struct summary *first)
{
    for (size_t i = 0; i < side->count; i++) {
        const struct summary *run = &side->runs[i].summary;
        if (!str_equal(text_or_empty(run->series), text_or_empty(first->series)) ||
            !str_equal(text_or_empty(run->series_side), text_or_empty(first->series_side)))
            return false;
    }
    return first->series != NULL;
}

bool compare_is_interleaved(const struct compare_side *a, const struct compare_side *b)
{
    const struct summary *in_a = &a->runs[0].summary, *in_b = &b->runs[0].summary;
    return is_of_series(a, in_a) && is_of_series(b, in_b) &&
           str_equal(in_a->series, in_b->series) &&
           !str_equal(text_or_empty(in_a->series_side), text_or_empty(in_b->series_side));
}

void compare_series_of(const struct compare_side *a, const struct compare_side *b,
                       struct compare_series *out)
{
    *out = (struct compare_series){.is_interleaved = compare_is_interleaved(a, b), .look = 1};
    if (out->is_interleaved)
        out->until_decided =
            (size_t)known_or(known_count(a->runs[0].summary.series_until_decided), 0);
}

/* The looks are those at the metric with the most pairs. */
static void set_look(struct compare_series *series, size_t pairs)
{
    if (pairs <= series->pairs)
        return;
    series->pairs = pairs;
    series->look = sequential_share(pairs, series->until_decided, COMPARE_PRIMARY * COMPARE_ALPHA);
}

void compare_pairs(struct compare_series *series, const double *values, const double *numbers,
                   size_t a_count, size_t count, struct contrast *out)
{
    double *a = xmalloc((a_count + 1) * sizeof *a), *b = xmalloc((a_count + 1) * sizeof *b);
    size_t pairs = 0;
    for (size_t i = 0; i < a_count; i++)
        for (size_t j = a_count; j < count; j++)
            if (numbers[i] == numbers[j] && is_known(values[i]) && is_known(values[j])) {
                a[pairs] = values[i];
                b[pairs++] = values[j];
                break;
            }
    set_look(series, pairs);
    contrast_pairs(a, b, pairs, series->look, out);
    free(a);
    free(b);
}
