/* Models compared on one device, and published accuracies in results. */
#include "estimate/model_compare.h"

#include <stdlib.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"

/* A model that was given by a name of the catalog, and not as a file: its weights could be anyone's. */
static bool is_listed(const struct model *model)
{
    return model->reader == &graph_reader_assumed || model->reader == &graph_reader_zoo;
}

static size_t accuracies_of(const struct model *model, struct accuracy out[ACCURACIES_MAX])
{
    return is_listed(model) ? model_accuracies(model->source, out) : 0;
}

/* ---- collecting ---- */

void model_comparison_add(struct model_comparison *comparison,
                          const struct workload_estimate *estimate)
{
    const struct model *model = estimate->work->spec.model;
    double joules = workload_estimate_joules_per_unit(estimate);
    double units = estimate->total.joules.total / joules;
    struct compared_model added = {
        .unit = estimate->work->unit,
        .params = estimate->params,
        .memory_bytes = estimate->memory.total_peak,
        .latency_s = estimate->total.latency_s,
        .joules_each = joules,
        .joules_plus_minus = workload_estimate_interval(estimate, estimate->total.joules.total,
                                                        estimate->total.joules_plus_minus)
                                 .plus_minus /
                             units,
        .fits = workload_estimate_fits(estimate),
        .precision = estimate->used,
    };
    /* models of one architecture differ in their name alone */
    chars_copy(added.name, is_listed(model) ? model->source : model->name);
    chars_copy(comparison->device, estimate->hardware->id);
    comparison->has_phases = model->has_phases;
    added.accuracy_count = accuracies_of(model, added.accuracies);
    comparison->items =
        xreallocarray(comparison->items, comparison->count + 1, sizeof *comparison->items);
    comparison->items[comparison->count++] = added;
}

/* UNKNOWN: it has no published figure. */
static double compared_accuracy(const struct compared_model *model,
                                const struct benchmark *benchmark)
{
    for (size_t i = 0; i < model->accuracy_count; i++)
        if (model->accuracies[i].benchmark == benchmark)
            return model->accuracies[i].percent;
    return UNKNOWN;
}

static size_t models_with(const struct model_comparison *comparison,
                          const struct benchmark *benchmark)
{
    size_t count = 0;
    for (size_t i = 0; i < comparison->count; i++)
        count += is_known(compared_accuracy(&comparison->items[i], benchmark));
    return count;
}

/* ---- the frontier ---- */

static int by_energy(const void *a, const void *b)
{
    const struct compared_model *first = a, *second = b;
    return (first->joules_each > second->joules_each) - (first->joules_each < second->joules_each);
}

/* At least as good on each axis, and better on one. */
static bool is_superior(const struct compared_model *a, const struct compared_model *b,
                        const struct benchmark *axis)
{
    double gain = axis->sign * (compared_accuracy(a, axis) - compared_accuracy(b, axis));
    return a->fits && a->joules_each <= b->joules_each && a->latency_s <= b->latency_s &&
           gain >= 0 &&
           (a->joules_each < b->joules_each || a->latency_s < b->latency_s || gain > 0);
}

void model_comparison_finish(struct model_comparison *comparison, const struct benchmark *axis)
{
    size_t most = 0;
    for (size_t i = 0; !axis && i < BENCHMARK_COUNT; i++)
        if (models_with(comparison, &BENCHMARKS[i]) > most) {
            most = models_with(comparison, &BENCHMARKS[i]);
            comparison->axis = &BENCHMARKS[i];
        }
    if (axis)
        comparison->axis = axis;
    qsort(comparison->items, comparison->count, sizeof *comparison->items, by_energy);
    for (size_t i = 0; comparison->axis && i < comparison->count; i++) {
        struct compared_model *model = &comparison->items[i];
        model->on_frontier = model->fits && is_known(model->joules_each) &&
                             is_known(compared_accuracy(model, comparison->axis));
        for (size_t n = 0; n < comparison->count; n++)
            if (is_superior(&comparison->items[n], model, comparison->axis))
                model->on_frontier = false;
    }
}

void model_comparison_release(struct model_comparison *comparison)
{
    free(comparison->items);
    *comparison = (struct model_comparison){0};
}

/* ---- results ---- */

static void accuracy_list(struct result *result, const struct accuracy *items, size_t count)
{
    result_list(result, "accuracies");
    for (size_t i = 0; i < count; i++)
        accuracy_to_result(result, &items[i]);
    result_end(result);
}

void accuracies_to_result(struct result *result, const struct model *model)
{
    struct accuracy items[ACCURACIES_MAX];
    size_t count = accuracies_of(model, items);
    if (count)
        accuracy_list(result, items, count);
}

static void model_to_result(struct result *result, const struct compared_model *model,
                            const struct benchmark *axis)
{
    result_group(result, NULL);
    result_text(result, "model", model->name);
    result_number(result, "params", model->params, "");
    result_text(result, "precision", precision_name(model->precision));
    result_text(result, "unit", model->unit);
    result_number(result, "energy_j", model->joules_each, "J");
    result_uncertain(result, "energy_j", model->joules_plus_minus);
    result_number(result, "plus_minus", model->joules_plus_minus, "J");
    result_number(result, "latency_s", model->latency_s, "s");
    result_number(result, "memory_bytes", model->memory_bytes, "B");
    result_flag(result, "fits", model->fits);
    result_number(result, "accuracy_percent", axis ? compared_accuracy(model, axis) : UNKNOWN, "");
    result_flag(result, "frontier", model->on_frontier);
    accuracy_list(result, model->accuracies, model->accuracy_count);
    result_end(result);
}

/* The benchmarks of any of the models, each of which is a column. */
static void benchmarks_to_result(struct result *result, const struct model_comparison *comparison)
{
    result_list(result, "benchmarks");
    for (size_t i = 0; i < BENCHMARK_COUNT; i++) {
        size_t models = models_with(comparison, &BENCHMARKS[i]);
        if (!models)
            continue;
        result_group(result, NULL);
        result_text(result, "name", BENCHMARKS[i].name);
        result_text(result, "title", BENCHMARKS[i].title);
        result_flag(result, "higher_is_better", BENCHMARKS[i].sign > 0);
        result_count(result, "models", models);
        result_end(result);
    }
    result_end(result);
}

void model_comparison_result(const struct model_comparison *comparison, struct result *out)
{
    static const struct result_column COLUMNS[] = {
        {"model", "model", 0},         {"params", "params", 0},
        {"precision", "precision", 0}, {"unit", "unit", 0},
        {"energy_j", "energy_j", 0},   {"plus_minus", "plus_minus", 0},
        {"latency_s", "latency_s", 0}, {"memory_bytes", "memory_bytes", 0},
        {"fits", "fits", 0},           {"accuracy_percent", "accuracy_percent", 0},
        {"frontier", "frontier", 0},   {0},
    };
    result_begin(out, "models");
    result_text(out, "hardware", comparison->device);
    result_text(out, "accuracy_axis", comparison->axis ? comparison->axis->name : NULL);
    benchmarks_to_result(out, comparison);
    result_list(out, "models");
    for (size_t i = 0; i < comparison->count; i++)
        model_to_result(out, &comparison->items[i], comparison->axis);
    result_end(out);
    result_text(out, "version", IPW_VERSION);
    result_aside(out, "view");
    result_flag(out, "has_phases", comparison->has_phases);
    result_end(out);
    result_end(out);
    result_table(out, "models", COLUMNS);
}
