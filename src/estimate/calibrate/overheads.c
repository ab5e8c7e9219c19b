#include "estimate/calibrate/overheads.h"

#include <math.h>
#include <stdlib.h>

#include "core/units.h"
#include "estimate/calibrate/design.h"
#include "stats/quantile.h"

enum { LAUNCH_ROWS_LEAST = 3 };

/* The most FLOPs a second of any row; the most bytes a second of those long enough to come from memory and
 * not from a cache. */
static void take_rates(const struct calibrate_rows *rows, struct calibration *out)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct calibrate_row *row = &rows->items[i];
        size_t class = design_class(out, row);
        if (row->kind == CALIBRATE_LOAD && class < out->class_count)
            out->classes[class].flops_per_s =
                fmax(out->classes[class].flops_per_s, row->flops / row->latency_s);
    }
    for (size_t i = 0; i < out->point_count; i++) {
        const struct calibrate_row *row = out->points[i].row;
        out->bytes_per_s = fmax(out->bytes_per_s, row->bytes / row->latency_s);
    }
}

/* The quickest of the rows of a kind, for one kernel. */
static double quickest(const struct calibrate_rows *rows, enum calibrate_kind kind, size_t *count)
{
    double least = UNKNOWN;
    for (size_t i = 0; i < rows->count; i++)
        if (rows->items[i].kind == kind) {
            least = fmin(least, rows->items[i].latency_s / rows->items[i].kernels);
            ++*count;
        }
    return least;
}

/* Where no row launches alone: what small loads take beyond arithmetic and memory, which together explain
 * next to nothing of them. */
static double left_over(const struct calibrate_rows *rows, const struct calibration *c,
                        size_t *count)
{
    double *rests = malloc((rows->count + 1) * sizeof *rests), found = UNKNOWN;
    size_t n = 0;
    for (size_t i = 0; rests && i < rows->count; i++) {
        const struct calibrate_row *row = &rows->items[i];
        size_t class = design_class(c, row);
        if (row->kind != CALIBRATE_LOAD || class == c->class_count)
            continue;
        double explained =
            fmax(row->flops / c->classes[class].flops_per_s, row->bytes / c->bytes_per_s);
        if (explained < CALIBRATE_LAUNCH_SHARE * row->latency_s)
            rests[n++] = row->latency_s - explained;
    }
    if (n >= LAUNCH_ROWS_LEAST)
        found = median(rests, n);
    *count = is_known(found) ? n : 0;
    free(rests);
    return found;
}

void overheads_take(const struct calibrate_rows *rows, struct calibration *out)
{
    size_t graphs = 0;
    take_rates(rows, out);
    out->graph_launch_s = quickest(rows, CALIBRATE_GRAPH, &graphs);
    out->launch_s = quickest(rows, CALIBRATE_LAUNCH, &out->launch_rows);
    if (!is_known(out->launch_s))
        out->launch_s = left_over(rows, out, &out->launch_rows);
}
