#include "analysis/compare/match.h"

#include <stdlib.h>

#include "rundir/run_table.h"

struct entry {
    double index, repeat, question;
    uint32_t row;
};

static int by_key(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    if (a->repeat != b->repeat)
        return a->repeat < b->repeat ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static struct entry *entries_of(const struct run_table *table)
{
    struct entry *entries = malloc((table->rows + 1) * sizeof *entries);
    for (size_t i = 0; entries && i < table->rows; i++) {
        double index = run_number(table, RUN_INDEX, i), repeat = run_number(table, RUN_REPEAT, i);
        entries[i] =
            (struct entry){is_known(index) ? index : (double)i, is_known(repeat) ? repeat : 0,
                           run_number(table, RUN_QUESTION, i), (uint32_t)i};
    }
    if (entries)
        qsort(entries, table->rows, sizeof *entries, by_key);
    return entries;
}

/* -1, 0, 1 as the keys compare, whatever the rows. */
static int compare_keys(const struct entry *a, const struct entry *b)
{
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    return a->repeat < b->repeat ? -1 : a->repeat > b->repeat;
}

static void pair_up(const struct run_table *a, const struct entry *in_a, const struct run_table *b,
                    const struct entry *in_b, struct match *out)
{
    size_t i = 0, j = 0;
    while (i < a->rows && j < b->rows) {
        int order = compare_keys(&in_a[i], &in_b[j]);
        if (order == 0 && in_a[i].question == in_b[j].question) {
            out->same++;
            if (run_completed(a, in_a[i].row) && run_completed(b, in_b[j].row)) {
                out->a[out->a_count++] = in_a[i].row;
                out->b[out->b_count++] = in_b[j].row;
            }
        } else if (order == 0)
            out->changed++;
        i += order <= 0;
        j += order >= 0;
    }
    out->a_only = a->rows - out->same - out->changed;
    out->b_only = b->rows - out->same - out->changed;
}

static size_t take_all(const struct run_table *table, const struct entry *entries, uint32_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < table->rows; i++)
        if (run_completed(table, entries[i].row))
            out[count++] = entries[i].row;
    return count;
}

enum err match_runs(const struct run_table *a, const struct run_table *b, struct match *out)
{
    struct entry *in_a = entries_of(a), *in_b = entries_of(b);
    *out = (struct match){.a = malloc((a->rows + 1) * sizeof *out->a),
                          .b = malloc((b->rows + 1) * sizeof *out->b)};
    enum err err = in_a && in_b && out->a && out->b ? ERR_OK : ERR_NO_MEMORY;
    if (!err) {
        pair_up(a, in_a, b, in_b, out);
        out->paired = out->same && 2 * out->same >= (a->rows < b->rows ? a->rows : b->rows);
        if (!out->paired) {
            out->a_count = take_all(a, in_a, out->a);
            out->b_count = take_all(b, in_b, out->b);
        }
    }
    free(in_a);
    free(in_b);
    if (err)
        match_release(out);
    return err;
}

void match_release(struct match *match)
{
    free(match->a);
    free(match->b);
    *match = (struct match){0};
}
