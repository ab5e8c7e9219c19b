#include "estimate/calibrate/overheads.h"

#include <math.h>
#include <stdlib.h>

#include "core/units.h"
#include "estimate/calibrate/design.h"
#include "stats/quantile.h"

enum {
    LAUNCH_ROWS_LEAST = 3,
    SHORT_LOAD = 20, /* times as long as it takes to hand a kernel over, at most */
};

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

/* Time of a load that its arithmetic or its memory explains, at the rates that were attained. */
static double explained(const struct calibration *c, const struct calibrate_row *row)
{
    size_t class = design_class(c, row);
    if (row->kind != CALIBRATE_LOAD || class == c->class_count)
        return UNKNOWN;
    return fmax(row->flops / c->classes[class].flops_per_s, row->bytes / c->bytes_per_s);
}

/* What loads take beyond that, of those for which it is between two shares of `unit`: of their own latency
 * where that is UNKNOWN. */
static double left_over(const struct calibrate_rows *rows, const struct calibration *c, double unit,
                        double least, double most, double p, size_t *count)
{
    double *rests = malloc((rows->count + 1) * sizeof *rests), found = UNKNOWN;
    size_t n = 0;
    for (size_t i = 0; rests && i < rows->count; i++) {
        const struct calibrate_row *row = &rows->items[i];
        double time = explained(c, row), scale = is_known(unit) ? unit : row->latency_s;
        if (time >= least * scale && time < most * scale)
            rests[n++] = row->latency_s - time;
    }
    if (n >= LAUNCH_ROWS_LEAST)
        found = quantile(rests, n, p);
    *count = is_known(found) ? n : 0;
    free(rests);
    return found;
}

/* With rows that only launch it is known how often a kernel can be handed over.  That is no time between
 * kernels, for they are handed over while others run; loads that take longer show it: what the better ones
 * need beyond arithmetic and memory to begin and to end.  Without such rows, loads too small for either show
 * what each takes. */
void overheads_take(const struct calibrate_rows *rows, struct calibration *out)
{
    size_t dispatches = 0, graphs = 0;
    take_rates(rows, out);
    out->graph_launch_s = quickest(rows, CALIBRATE_GRAPH, &graphs);
    out->dispatch_s = quickest(rows, CALIBRATE_LAUNCH, &dispatches);
    if (!dispatches) {
        out->launch_s =
            left_over(rows, out, UNKNOWN, 0, CALIBRATE_LAUNCH_SHARE, 0.5, &out->launch_rows);
        return;
    }
    out->launch_s = left_over(rows, out, out->dispatch_s, 1, SHORT_LOAD, 0.25, &out->launch_rows);
    if (!is_known(out->launch_s)) {
        out->launch_s = out->dispatch_s;
        out->launch_rows = dispatches;
    }
}
