#include "estimate/estimate_grid.h"

#include <stdlib.h>

#include "core/text.h"
#include "stats/pareto.h"

/* ---- points ---- */

/* What one device lacks is said of it; the others go on. */
static enum err make_point(const struct grid_spec *question, const struct workload *work,
                           const struct grid_candidate *candidate, struct grid_point *out,
                           struct error *why)
{
    struct error lacks = {0};
    *out = (struct grid_point){.work = work, .device = candidate->device};
    enum err err = workload_estimate_make(work, &question->hardware[candidate->device],
                                          &candidate->choice, false, &out->outcome, &lacks);
    if (err == ERR_NO_MEMORY)
        return err_set(why, err, "%s", lacks.text);
    if (err) {
        out->outcome.choice = candidate->choice;
        str_copy(out->missing, sizeof out->missing, lacks.text);
    }
    return ERR_OK;
}

/* One work with every candidate.  Its graphs are not needed after that, and of thousands of works there is no
 * room for them. */
static enum err make_work(const struct grid_spec *question, size_t number,
                          struct estimate_grid *out, struct error *why)
{
    struct workload *work = &out->works[number];
    enum err err = workload_make(&question->works[number], work, why);
    if (err)
        return err;
    out->work_count++;
    for (size_t c = 0; !err && c < question->candidate_count; c++) {
        struct grid_point *point = &out->items[out->count];
        err = make_point(question, work, &question->candidates[c], point, why);
        if (!err) {
            out->count++;
            out->able += !point->missing[0];
        }
    }
    workload_drop_graphs(work);
    return err;
}

static enum err make_items(const struct grid_spec *question, struct estimate_grid *out,
                           struct error *why)
{
    enum err err = ERR_OK;
    out->works = calloc(question->work_count, sizeof *out->works);
    out->items = calloc(question->work_count * question->candidate_count, sizeof *out->items);
    if (!out->works || !out->items)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    for (size_t w = 0; !err && w < question->work_count; w++)
        err = make_work(question, w, out, why);
    return err;
}

/* ---- order ---- */

static int rank(const struct grid_point *point)
{
    return point->missing[0] ? 2 : !workload_estimate_fits(&point->outcome);
}

static int compare(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

/* Fewest first; what is not known, behind all. */
static int compare_joules(double a, double b)
{
    if (is_known(a) && is_known(b))
        return (a > b) - (a < b);
    return is_known(b) - is_known(a);
}

static int by_demand_and_joules(const void *left, const void *right)
{
    const struct grid_point *a = left, *b = right;
    if ((rank(a) == 2) != (rank(b) == 2))
        return rank(a) - rank(b);
    int by_demand = workload_demand_compare(a->work, b->work);
    if (by_demand || rank(a) != rank(b))
        return by_demand ? by_demand : rank(a) - rank(b);
    if (rank(a) < 2) {
        int by_joules = compare_joules(workload_estimate_joules_per_unit(&a->outcome),
                                       workload_estimate_joules_per_unit(&b->outcome));
        if (by_joules)
            return by_joules;
    }
    int by_device = compare(a->device, b->device);
    return by_device
               ? by_device
               : compare((size_t)a->work->spec.setting.batch, (size_t)b->work->spec.setting.batch);
}

/* Which demand each is of, and its place there. */
static void number_demands(struct estimate_grid *points)
{
    for (size_t i = 0; i < points->count; i++) {
        struct grid_point *point = &points->items[i];
        const struct grid_point *before = i ? point - 1 : NULL;
        bool is_next = before && (before->missing[0] != '\0') == (point->missing[0] != '\0') &&
                       workload_demand_compare(before->work, point->work) == 0;
        point->demand = !before ? 0 : before->demand + !is_next;
        point->place = is_next ? before->place + 1 : 0;
        if (!point->missing[0])
            points->demand_count = point->demand + 1;
    }
}

/* ---- the frontier ---- */

static bool is_choice(const struct grid_point *point)
{
    return !point->missing[0] && workload_estimate_fits(&point->outcome);
}

/* The points first..end-1 are of one demand. */
static enum err mark_frontier(struct estimate_grid *points, size_t first, size_t end)
{
    size_t count = end - first;
    double *cost = calloc(count, sizeof *cost), *worth = calloc(count, sizeof *worth);
    bool *on = calloc(count, sizeof *on);
    enum err err = cost && worth && on ? ERR_OK : ERR_NO_MEMORY;
    for (size_t i = 0; !err && i < count; i++) {
        const struct grid_point *point = &points->items[first + i];
        cost[i] = is_choice(point) ? workload_estimate_joules_per_unit(&point->outcome) : UNKNOWN;
        worth[i] = is_choice(point) ? -point->outcome.all.latency_s : UNKNOWN;
    }
    if (!err)
        err = pareto_mark(cost, worth, count, on);
    for (size_t i = 0; !err && i < count; i++)
        points->items[first + i].on_frontier = on[i];
    free(cost);
    free(worth);
    free(on);
    return err;
}

static enum err mark_frontiers(struct estimate_grid *points, struct error *why)
{
    enum err err = ERR_OK;
    for (size_t first = 0, end; !err && first < points->able; first = end) {
        for (end = first + 1; end < points->able && points->items[end].place > 0;)
            end++;
        err = mark_frontier(points, first, end);
    }
    return err ? err_set(why, err, "out of memory") : ERR_OK;
}

/* ---- all ---- */

enum err estimate_grid_make(const struct grid_spec *question, struct estimate_grid *out,
                            struct error *why)
{
    *out = (struct estimate_grid){0};
    enum err err = make_items(question, out, why);
    if (!err) {
        qsort(out->items, out->count, sizeof *out->items, by_demand_and_joules);
        number_demands(out);
        err = mark_frontiers(out, why);
    }
    if (err)
        estimate_grid_release(out);
    return err;
}

void estimate_grid_release(struct estimate_grid *points)
{
    for (size_t i = 0; i < points->work_count; i++)
        workload_release(&points->works[i]);
    free(points->works);
    free(points->items);
    *points = (struct estimate_grid){0};
}
