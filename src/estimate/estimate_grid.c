/* Builds each workload once, estimates every candidate on it, drops its graphs, and sorts. */
#include "estimate/estimate_grid.h"

#include <stdlib.h>

#include "core/text.h"
#include "stats/pareto.h"

/* ---- points ---- */

/* A device that cannot run the workload says why in its point; the others go on. */
static enum err make_point(const struct grid_spec *spec, const struct workload *work,
                           const struct grid_candidate *candidate, struct grid_point *out,
                           struct error *why)
{
    struct error lacks = {0};
    *out = (struct grid_point){.work = work, .device = candidate->device};
    enum err err = workload_estimate_make(work, &spec->hardware[candidate->device],
                                          &candidate->config, false, &out->estimate, &lacks);
    if (err == ERR_NO_MEMORY)
        return err_set(why, err, "%s", lacks.text);
    if (err) {
        out->estimate.config = candidate->config;
        str_copy(out->missing, sizeof out->missing, lacks.text);
    }
    return ERR_OK;
}

/* One workload with every candidate.  Its graphs are dropped then: thousands of them would not fit in memory. */
static enum err estimate_workload(const struct grid_spec *spec, size_t number,
                                  struct estimate_grid *out, struct error *why)
{
    struct workload *work = &out->works[number];
    enum err err = workload_make(&spec->works[number], work, why);
    if (err)
        return err;
    out->work_count++;
    for (size_t c = 0; !err && c < spec->candidate_count; c++) {
        struct grid_point *point = &out->items[out->count];
        err = make_point(spec, work, &spec->candidates[c], point, why);
        if (!err) {
            out->count++;
            out->able += !point->missing[0];
        }
    }
    workload_drop_graphs(work);
    return err;
}

static enum err make_items(const struct grid_spec *spec, struct estimate_grid *out,
                           struct error *why)
{
    enum err err = ERR_OK;
    out->works = calloc(spec->work_count, sizeof *out->works);
    out->items = calloc(spec->work_count * spec->candidate_count, sizeof *out->items);
    if (!out->works || !out->items)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    for (size_t w = 0; !err && w < spec->work_count; w++)
        err = estimate_workload(spec, w, out, why);
    return err;
}

/* ---- order ---- */

static int order(const struct grid_point *point)
{
    return point->missing[0] ? 2 : !workload_estimate_fits(&point->estimate);
}

static int compare(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

/* Ascending, unknown last. */
static int compare_joules(double a, double b)
{
    if (is_known(a) && is_known(b))
        return (a > b) - (a < b);
    return is_known(b) - is_known(a);
}

static int by_demand_and_joules(const void *left, const void *right)
{
    const struct grid_point *a = left, *b = right;
    if ((order(a) == 2) != (order(b) == 2))
        return order(a) - order(b);
    int by_demand = workload_demand_compare(a->work, b->work);
    if (by_demand || order(a) != order(b))
        return by_demand ? by_demand : order(a) - order(b);
    if (order(a) < 2) {
        int by_joules = compare_joules(workload_estimate_joules_per_unit(&a->estimate),
                                       workload_estimate_joules_per_unit(&b->estimate));
        if (by_joules)
            return by_joules;
    }
    int by_device = compare(a->device, b->device);
    return by_device
               ? by_device
               : compare((size_t)a->work->spec.setting.batch, (size_t)b->work->spec.setting.batch);
}

/* Numbers the demands, and the points of each. */
static void number_demands(struct estimate_grid *grid)
{
    for (size_t i = 0; i < grid->count; i++) {
        struct grid_point *point = &grid->items[i];
        const struct grid_point *before = i ? point - 1 : NULL;
        bool is_next = before && (before->missing[0] != '\0') == (point->missing[0] != '\0') &&
                       workload_demand_compare(before->work, point->work) == 0;
        point->demand = !before ? 0 : before->demand + !is_next;
        point->rank = is_next ? before->rank + 1 : 0;
        if (!point->missing[0])
            grid->demand_count = point->demand + 1;
    }
}

/* ---- Pareto frontier ---- */

static bool is_eligible(const struct grid_point *point)
{
    return !point->missing[0] && workload_estimate_fits(&point->estimate);
}

/* Of the points first..end-1, which have one demand. */
static enum err mark_frontier(struct estimate_grid *grid, size_t first, size_t end)
{
    size_t count = end - first;
    double *cost = calloc(count, sizeof *cost), *worth = calloc(count, sizeof *worth);
    bool *on = calloc(count, sizeof *on);
    enum err err = cost && worth && on ? ERR_OK : ERR_NO_MEMORY;
    for (size_t i = 0; !err && i < count; i++) {
        const struct grid_point *point = &grid->items[first + i];
        cost[i] =
            is_eligible(point) ? workload_estimate_joules_per_unit(&point->estimate) : UNKNOWN;
        worth[i] = is_eligible(point) ? -point->estimate.total.latency_s : UNKNOWN;
    }
    if (!err)
        err = pareto_mark(cost, worth, count, on);
    for (size_t i = 0; !err && i < count; i++)
        grid->items[first + i].on_frontier = on[i];
    free(cost);
    free(worth);
    free(on);
    return err;
}

static enum err mark_frontiers(struct estimate_grid *grid, struct error *why)
{
    enum err err = ERR_OK;
    for (size_t first = 0, end; !err && first < grid->able; first = end) {
        for (end = first + 1; end < grid->able && grid->items[end].rank > 0;)
            end++;
        err = mark_frontier(grid, first, end);
    }
    return err ? err_set(why, err, "out of memory") : ERR_OK;
}

/* ---- public ---- */

enum err estimate_grid_make(const struct grid_spec *spec, struct estimate_grid *out,
                            struct error *why)
{
    *out = (struct estimate_grid){0};
    enum err err = make_items(spec, out, why);
    if (!err) {
        qsort(out->items, out->count, sizeof *out->items, by_demand_and_joules);
        number_demands(out);
        err = mark_frontiers(out, why);
    }
    if (err)
        estimate_grid_release(out);
    return err;
}

void estimate_grid_release(struct estimate_grid *grid)
{
    for (size_t i = 0; i < grid->work_count; i++)
        workload_release(&grid->works[i]);
    free(grid->works);
    free(grid->items);
    *grid = (struct estimate_grid){0};
}
