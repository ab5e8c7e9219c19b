/* The estimates of a grid as points, and what their table needs to know of all of them: in what they differ, and what
 * they have in common. */
#include "core/energy.h"
#include "core/result.h"
#include "estimate/estimate_result.h"
#include "estimate/words.h"

static void point_view(struct result *result, const struct grid_point *point)
{
    result_aside(result, "view");
    estimate_row_to_result(result, point);
    result_text(result, "runtime", runtime_at(point->work->spec.runtime)->name);
    result_count(result, "device", point->device);
    result_count(result, "rank", point->rank);
    if (!point->missing[0])
        result_flag(result, "is_known_to_fit", workload_estimate_fits(&point->estimate));
    result_end(result);
}

static void point_to_result(struct result *result, const struct grid_point *point,
                            const struct budget *budget, const struct tariff *tariff)
{
    const struct workload_estimate *estimate = &point->estimate;
    result_group(result, NULL);
    if (point->missing[0]) {
        result_text(result, "hardware", estimate->hardware->id);
        result_text(result, "precision", precision_name(estimate->config.precision));
        result_integer(result, "batch", point->work->spec.setting.batch);
        result_group(result, "setting");
        lengths_to_result(result, &point->work->spec);
        result_end(result);
        result_text(result, "missing", point->missing);
    } else {
        estimate_head_to_result(result, estimate, tariff);
        estimate_limits_to_result(result, budget, estimate);
        estimate_tail_to_result(result, estimate);
        result_null(result, "missing");
    }
    result_flag(result, "frontier", point->on_frontier);
    point_view(result, point);
    result_end(result);
}

/* In what the workloads differ; parameters common to all are in the title. */
static void differences_to_result(struct result *result, const struct estimate_grid *grid)
{
    struct grid_differences differ = estimate_grid_differences(grid);
    result_group(result, "differ");
    result_flag(result, "batches", differ.batches);
    result_flag(result, "units", differ.units);
    result_flag(result, "prompts", differ.prompts);
    result_flag(result, "outputs", differ.outputs);
    result_flag(result, "contexts", differ.contexts);
    result_end(result);
}

/* One host launches all of them: NULL without an assumption about it. */
static const char *find_host(const struct estimate_grid *grid, char *words)
{
    for (size_t i = 0; i < grid->able; i++)
        if (words_host(words, &grid->items[i].estimate))
            return words;
    return NULL;
}

static void grid_view(struct result *result, const struct estimate_grid *grid,
                      const struct budget *budget, const struct estimate_shown *shown)
{
    const struct estimate_workload *work = &grid->works[0];
    const struct workload_spec *spec = &work->spec;
    const struct workload_estimate *first = &grid->items[0].estimate;
    struct budget_count within = budget_count_within(budget, grid);
    char words[ESTIMATE_WORDS_MAX];
    result_aside(result, "view");
    result_count(result, "top", shown->top);
    result_count(result, "able", grid->able);
    result_count(result, "demands", grid->demand_count);
    result_flag(result, "has_phases", spec->model->has_phases);
    result_flag(result, "has_limits", budget_has_any(budget));
    result_count(result, "within_limits", within.points);
    result_count(result, "demands_within_limits", within.demands);
    result_text(result, "unit", words_unit(work));
    result_text(result, "phase", words_phase(spec));
    result_number(result, "batch", work->batch, "");
    result_integer(result, "prompt_tokens", spec->setting.tokens);
    result_integer(result, "output_tokens", spec->output_tokens);
    result_text(result, "runtime",
                words_runtime(words, spec, first->hardware, first->config.precision));
    result_text(result, "kernels", words_kernels(spec));
    result_text(result, "basis", words_basis(words, first));
    result_text(result, "host", find_host(grid, words));
    differences_to_result(result, grid);
    result_end(result);
}

void grid_result_make(const struct estimate_grid *grid, const struct budget *budget,
                      const struct estimate_shown *shown, struct result *out)
{
    const struct estimate_workload *work = &grid->works[0];
    result_begin(out, "estimates");
    result_text(out, "model", work->spec.model->name);
    result_text(out, "unit", work->unit);
    file_precision_to_result(out, &work->file);
    notes_to_result(out, &work->notes);
    result_list(out, "points");
    for (size_t i = 0; i < grid->count; i++)
        point_to_result(out, &grid->items[i], budget, shown->tariff);
    result_end(out);
    result_text(out, "version", IPW_VERSION);
    grid_view(out, grid, budget, shown);
    result_end(out);
    result_table(out, "points", estimate_columns(shown->tariff));
}
