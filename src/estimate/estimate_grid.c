/* Candidates are devices of the catalog or of files, each in every requested precision.  The grid builds each workload
 * once, estimates every candidate on it, frees its graphs, and sorts. */
#include "estimate/estimate_grid.h"

#include <stdlib.h>
#include <string.h>

#include "catalog/hardware_json.h"
#include "core/log.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "stats/pareto.h"

enum { HARDWARE_MAX = 512 };

/* ---- candidates: devices ---- */

static enum err check_capacity(const struct candidates *out, struct error *why)
{
    if (out->hardware_count < HARDWARE_MAX)
        return ERR_OK;
    return err_set(why, ERR_USAGE, "at most %d devices", HARDWARE_MAX);
}

static enum err add_named(const char *id, struct candidates *out, struct error *why)
{
    struct hardware found;
    enum err err = check_capacity(out, why);
    if (!err)
        err = hardware_find(id, &found, why);
    if (err)
        return err;
    for (size_t i = 0; i < out->hardware_count; i++)
        if (str_equal(out->hardware[i].id, found.id)) {
            log_warn("--hardware: %s given more than once: it is estimated once", found.id);
            hardware_release(&found);
            return ERR_OK;
        }
    candidates_add(out, &found);
    return ERR_OK;
}

static enum err add_all(struct candidates *out, struct error *why)
{
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < hardware_count(); i++)
        err = add_named(hardware_id(i), out, why);
    return err;
}

static enum err add_list(const char *list, struct candidates *out, struct error *why)
{
    enum err err = ERR_OK;
    for (const char *rest = list; !err && rest;) {
        char id[128];
        if (!str_next_item(&rest, id, sizeof id))
            return err_set(why, ERR_USAGE, "--hardware takes ids separated by commas, not '%.80s'",
                           list);
        err = str_equal(id, "all") ? add_all(out, why) : add_named(id, out, why);
    }
    return err;
}

static enum err add_file(const char *path, struct candidates *out, struct error *why)
{
    enum err err = check_capacity(out, why);
    if (!err)
        err = hardware_read(path, &out->hardware[out->hardware_count], why);
    out->hardware_count += !err;
    return err;
}

void candidates_add(struct candidates *candidates, const struct hardware *hardware)
{
    candidates->hardware[candidates->hardware_count] = *hardware;
    candidates->is_in_catalog[candidates->hardware_count++] = true;
}

static enum err find_hardware(const struct candidate_options *options, struct candidates *out,
                              struct error *why)
{
    enum err err = ERR_OK;
    out->hardware = xcalloc(HARDWARE_MAX, sizeof *out->hardware);
    out->is_in_catalog = xcalloc(HARDWARE_MAX, sizeof *out->is_in_catalog);
    for (size_t i = 0; !err && i < options->hardware_count; i++)
        err = add_list(options->hardware[i], out, why);
    for (size_t i = 0; !err && i < options->file_count; i++)
        err = add_file(options->files[i], out, why);
    if (!err && !out->hardware_count && options->compare)
        err = add_all(out, why);
    return err;
}

/* ---- candidates: precisions ---- */

static enum err add_precision(const char *name, struct candidates *out, struct error *why)
{
    bool is_stored = str_equal(name, "stored");
    enum precision precision = PRECISION_FP16;
    struct error unknown = {0};
    if (!is_stored && precision_find(name, &precision, &unknown))
        return err_set(why, ERR_USAGE, "--precision: %s", unknown.text);
    for (size_t i = 0; i < out->precision_count; i++)
        if (out->precisions[i].is_stored == is_stored && out->precisions[i].precision == precision)
            return err_set(why, ERR_USAGE, "--precision: %s given more than once", name);
    out->precisions[out->precision_count].precision = precision;
    out->precisions[out->precision_count++].is_stored = is_stored;
    return ERR_OK;
}

static enum err find_precisions(const char *list, struct candidates *out, struct error *why)
{
    enum err err = ERR_OK;
    for (const char *rest = list; !err && rest;) {
        char name[32];
        if (!str_next_item(&rest, name, sizeof name))
            return err_set(why, ERR_USAGE,
                           "--precision takes names like fp32,fp16,int8; not '%.80s'", list);
        err = add_precision(name, out, why);
    }
    return err;
}

/* ---- candidates: both ---- */

enum err candidates_find(const struct candidate_options *options, struct candidates *out,
                         struct error *why)
{
    *out = (struct candidates){0};
    enum err err = find_hardware(options, out, why);
    if (!err)
        err = find_precisions(options->precision, out, why);
    if (err)
        candidates_release(out);
    return err;
}

static void add_item(struct candidates *candidates, const struct candidate_options *options,
                     size_t device, enum precision precision, bool keeps_stored)
{
    candidates->items[candidates->count++] =
        (struct grid_candidate){.device = device,
                                .config = {.precision = precision,
                                           .keeps_stored = keeps_stored,
                                           .devices = options->devices ? (int)options->devices : 1,
                                           .host_launch_s = 1e-6 * options->host_launch_us}};
}

enum err candidates_make(const struct candidate_options *options,
                         const struct estimate_workload *work, struct candidates *candidates,
                         struct error *why)
{
    candidates->items =
        xcalloc(candidates->hardware_count * (PRECISION_COUNT + 1), sizeof *candidates->items);
    for (size_t d = 0; d < candidates->hardware_count; d++) {
        const struct hardware *hardware = &candidates->hardware[d];
        enum precision usual = workload_default_precision(work, hardware);
        for (size_t i = 0; i < candidates->precision_count; i++) {
            bool is_stored = candidates->precisions[i].is_stored;
            if (is_stored && !work->has_stored && !work->file.is_known)
                return err_set(why, ERR_USAGE,
                               "--precision stored: the weights of this model have no stored "
                               "precision");
            add_item(candidates, options, d,
                     is_stored ? usual : candidates->precisions[i].precision,
                     is_stored && work->has_stored);
        }
        if (candidates->precision_count)
            continue;
        if (work->has_stored || !options->sweep)
            add_item(candidates, options, d, usual, work->has_stored);
        for (enum precision p = 0; options->sweep && p < PRECISION_COUNT; p++)
            if (estimate_offers(hardware, p))
                add_item(candidates, options, d, p, false);
    }
    return ERR_OK;
}

void candidates_release(struct candidates *candidates)
{
    for (size_t i = 0; i < candidates->hardware_count; i++)
        hardware_release(&candidates->hardware[i]);
    free(candidates->hardware);
    free(candidates->is_in_catalog);
    free(candidates->items);
    *candidates = (struct candidates){0};
}

/* ---- points of the grid ---- */

/* A device that cannot run the workload records the reason in its point; the others continue. */
static void make_point(const struct hardware *hardware, const struct estimate_workload *work,
                       const struct grid_candidate *candidate, struct workload_bounds *bounds,
                       struct grid_point *out)
{
    struct error lacks = {0};
    *out = (struct grid_point){.work = work, .device = candidate->device};
    enum err err = workload_estimate_next(work, hardware, &candidate->config, bounds, false,
                                          &out->estimate, &lacks);
    if (err) {
        out->estimate.hardware = hardware;
        out->estimate.config = candidate->config;
        chars_copy(out->missing, lacks.text);
    }
}

/* A runtime and its fusion, as one number. */
enum { VARIANTS = 2 * RUNTIME_COUNT };
_Static_assert(PARTITION_PLAIN < 2 && VARIANTS <= 32, "one bit per variant");

/* The runtime and fusion of a workload on the device of a candidate. */
static unsigned variant_on(const struct workload_spec *spec, const struct candidates *candidates,
                           size_t candidate)
{
    struct workload_spec there = *spec;
    workload_spec_run_on(&there, &candidates->hardware[candidates->items[candidate].device]);
    return 2 * (unsigned)there.runtime + (unsigned)there.fusion;
}

/* Returns the number of variants, and sets their bits. */
static size_t count_variants(const struct workload_spec *spec, const struct candidates *candidates,
                             unsigned *found)
{
    size_t count = 0;
    *found = 0;
    for (size_t c = 0; c < candidates->count; c++) {
        unsigned bit = 1U << variant_on(spec, candidates, c);
        count += !(*found & bit);
        *found |= bit;
    }
    return count;
}

/* One workload with every candidate of a variant.  Its graphs are then freed: thousands of them would not fit in
 * memory. */
static enum err estimate_workload(const struct workload_spec *spec, unsigned variant,
                                  const struct candidates *candidates, struct estimate_grid *out,
                                  struct error *why)
{
    struct estimate_workload *work = &out->works[out->work_count];
    struct workload_spec run = *spec;
    run.runtime = (enum runtime_id)(variant / 2);
    run.fusion = (enum partition_fusion)(variant % 2);
    enum err err = workload_make(&run, work, why);
    if (err)
        return err;
    out->work_count++;
    struct workload_bounds bounds = {0};
    for (size_t c = 0; !err && c < candidates->count; c++) {
        const struct grid_candidate *candidate = &candidates->items[c];
        struct grid_point *point = &out->items[out->count];
        if (variant_on(spec, candidates, c) != variant)
            continue;
        if (c > 0 && candidate->device != candidate[-1].device)
            bounds = (struct workload_bounds){0};
        make_point(&candidates->hardware[candidate->device], work, candidate, &bounds, point);
        if (!err) {
            out->count++;
            out->able += !point->missing[0];
        }
    }
    workload_drop_graphs(work);
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
    if (by_demand)
        return by_demand;
    if (a->limit_order != b->limit_order)
        return a->limit_order - b->limit_order;
    if (order(a) != order(b))
        return order(a) - order(b);
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

void estimate_grid_sort(struct estimate_grid *grid)
{
    qsort(grid->items, grid->count, sizeof *grid->items, by_demand_and_joules);
    number_demands(grid);
}

/* ---- Pareto frontier ---- */

static bool is_eligible(const struct grid_point *point)
{
    return !point->missing[0] && workload_estimate_fits(&point->estimate);
}

/* Marks the frontier of the points first..end-1, which have the same demand. */
static void mark_frontier(struct estimate_grid *grid, size_t first, size_t end)
{
    size_t count = end - first;
    double *cost = xcalloc(count, sizeof *cost), *benefit = xcalloc(count, sizeof *benefit);
    bool *on = xcalloc(count, sizeof *on);
    for (size_t i = 0; i < count; i++) {
        const struct grid_point *point = &grid->items[first + i];
        cost[i] =
            is_eligible(point) ? workload_estimate_joules_per_unit(&point->estimate) : UNKNOWN;
        /* Host-bound passes take the same time on all devices, except for rounding. */
        benefit[i] = is_eligible(point) ? -(float)point->estimate.total.latency_s : UNKNOWN;
    }
    pareto_mark(cost, benefit, count, on);
    for (size_t i = 0; i < count; i++)
        grid->items[first + i].on_frontier = on[i];
    free(cost);
    free(benefit);
    free(on);
}

static void mark_frontiers(struct estimate_grid *grid)
{
    for (size_t first = 0, end; first < grid->able; first = end) {
        for (end = first + 1; end < grid->able && grid->items[end].rank > 0;)
            end++;
        mark_frontier(grid, first, end);
    }
}

/* ---- the grid ---- */

enum err estimate_grid_make(const struct workload_list *list, const struct candidates *candidates,
                            struct estimate_grid *out, struct error *why)
{
    enum err err = ERR_OK;
    unsigned ways;
    size_t runs = count_variants(&list->items[0], candidates, &ways);
    *out = (struct estimate_grid){
        .works = xcalloc(list->count * runs + 1, sizeof *out->works),
        .items = xcalloc(list->count * candidates->count + 1, sizeof *out->items)};
    for (size_t i = 0; !err && i < list->count; i++)
        for (unsigned variant = 0; !err && variant < VARIANTS; variant++)
            if (ways & 1U << variant)
                err = estimate_workload(&list->items[i], variant, candidates, out, why);
    if (!err) {
        estimate_grid_sort(out);
        mark_frontiers(out);
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

struct grid_differences estimate_grid_differences(const struct estimate_grid *grid)
{
    const struct estimate_workload *first = &grid->works[0];
    struct workload_demand demand = workload_demand(&first->spec);
    struct grid_differences found = {0};
    for (size_t i = 1; i < grid->work_count; i++) {
        const struct estimate_workload *work = &grid->works[i];
        struct workload_demand other = workload_demand(&work->spec);
        found.batches |= work->batch != first->batch;
        found.units |= work->units != first->units;
        found.prompts |= other.prompt != demand.prompt;
        found.outputs |= other.context - other.prompt != demand.context - demand.prompt;
        found.contexts |= other.context != demand.context;
    }
    found.contexts = found.contexts && (found.outputs || !found.prompts);
    return found;
}
