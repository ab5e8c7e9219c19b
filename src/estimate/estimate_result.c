/* One estimate in full: the head that points of a grid have too, a request with its phases, subgraphs, recommendations,
 * limits and the evidence. */
#include "estimate/estimate_result.h"
#include "estimate/model_compare.h"

#include <stdlib.h>
#include <string.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "estimate/cost.h"
#include "estimate/words.h"

/* ---- a request ---- */

static void phase_to_result(struct result *result, const char *name,
                            const struct workload_estimate *estimate,
                            const struct estimate_totals *sums, double tokens,
                            const struct tariff *tariff)
{
    double made = tokens * estimate->work->batch;
    result_group(result, NULL);
    result_text(result, "phase", name);
    result_number(result, "tokens", tokens, "");
    sums_to_result(result, estimate, sums);
    result_number(result, "energy_per_token_j", sums->joules.total / made, "J");
    result_number(result, "tokens_per_s", made / sums->latency_s, "1/s");
    if (tariff && tariff_given(tariff)) {
        struct charge charge = estimate_charge(estimate, sums, tariff, made / 1e6);
        charge_to_result(result, "million_tokens", &charge);
    }
    power_to_result(result, estimate, sums);
    shares_to_result(result, sums);
    result_aside(result, "view");
    result_number(result, "plus_minus_j", sums->joules_plus_minus, "J");
    result_end(result);
    result_end(result);
}

static void request_to_result(struct result *result, const struct workload_estimate *estimate,
                              const struct tariff *tariff)
{
    const struct estimate_workload *work = estimate->work;
    const struct estimate_totals *all = &estimate->total;
    if (!work->spec.is_request) {
        result_null(result, "request");
        return;
    }
    double output = (double)work->spec.output_tokens, batch = work->batch;
    double tpot_s = workload_estimate_tpot_s(estimate);
    result_group(result, "request");
    energy_to_result(result, estimate, batch);
    result_number(result, "energy_per_token_j", all->joules.total / (batch * output), "J");
    result_number(result, "tokens_per_s", batch * output / all->latency_s, "1/s");
    result_number(result, "latency_s", all->latency_s, "s");
    result_number(result, "first_token_s", workload_estimate_ttft_s(estimate), "s");
    result_number(result, "tpot_s", tpot_s, "s");
    result_number(result, "tokens_per_s_per_user", 1 / tpot_s, "1/s");
    result_list(result, "phases");
    phase_to_result(result, "prefill", estimate, &estimate->prefill,
                    (double)work->spec.setting.tokens, tariff);
    if (work->count > work->prefill_count)
        phase_to_result(result, "decode", estimate, &estimate->decode, output - 1, tariff);
    result_end(result);
    result_end(result);
}

/* ---- subgraphs ---- */

static const struct result_column SUBGRAPH_COLUMNS[] = {
    {"name", "name", 0},          {"ops", "view.ops", 0},
    {"phase", "view.phase", 0},   {"layer", "layer", 0},
    {"level", "level", 0},        {"flops", "flops", 0},
    {"bytes", "bytes", 0},        {"latency_s", "latency_s", 0},
    {"energy_j", "energy_j", 0},  {"compute_j", "compute_j", 0},
    {"memory_j", "memory_j", 0},  {"static_j", "static_j", 0},
    {"link_j", "view.link_j", 0}, {"utilisation", "utilisation", 0},
    {"bound", "bound", 0},        {0},
};

/* The partition of the subgraph. */
static const struct partition *partition_of(const struct workload_estimate *estimate,
                                            const struct subgraph *subgraph)
{
    for (size_t i = 0; i < estimate->work->count; i++) {
        const struct partition *partition = &estimate->work->passes[i].partition;
        if (subgraph >= partition->subgraphs && subgraph < partition->subgraphs + partition->count)
            return partition;
    }
    return NULL;
}

static void operations_to_result(struct result *result, const struct subgraph *subgraph,
                                 const struct partition *partition)
{
    result_list(result, "ops");
    for (uint32_t i = 0; i < subgraph->node_count; i++) {
        node_id node = partition->nodes[subgraph->first_node + i];
        result_text(result, NULL, graph_op_name(partition->graph->nodes[node].op));
    }
    result_end(result);
}

static void subgraph_to_result(struct result *result, const struct workload_estimate *estimate,
                               const struct subgraph_total *row)
{
    static const struct result_member FIGURES[] = {
        {"flops", offsetof(struct subgraph_total, flops), "FLOP"},
        {"bytes", offsetof(struct subgraph_total, bytes), "B"},
        {"latency_s", offsetof(struct subgraph_total, latency_s), "s"},
        {"energy_j", offsetof(struct subgraph_total, joules.total), "J"},
        {"compute_j", offsetof(struct subgraph_total, joules.compute), "J"},
        {"memory_j", offsetof(struct subgraph_total, joules.memory), "J"},
        {"static_j", offsetof(struct subgraph_total, joules.idle), "J"},
        {"utilisation", offsetof(struct subgraph_total, utilization), "%"},
        {0},
    };
    const struct subgraph *subgraph = row->subgraph;
    const struct workload_spec *spec = &estimate->work->spec;
    const char *phase = row->phase == GRAPH_DECODE ? "decode" : "prefill";
    result_group(result, NULL);
    result_text(result, "name", subgraph->name);
    if (spec->is_request)
        result_text(result, "phase", phase);
    operations_to_result(result, subgraph, partition_of(estimate, subgraph));
    result_number(result, "layer",
                  subgraph->layer == GRAPH_NONE ? UNKNOWN : (double)subgraph->layer, "");
    result_integer(result, "level", subgraph->level);
    result_members(result, FIGURES, row);
    result_text(result, "bound", estimate_bound_name(row->bound));
    result_aside(result, "view");
    result_text(result, "ops", subgraph->pattern);
    result_text(result, "phase", spec->model->has_phases ? phase : "whole");
    result_number(result, "link_j", row->joules.link, "J");
    result_end(result);
    result_end(result);
}

static void concurrency_to_result(struct result *result,
                                  const struct partition_concurrency *concurrency)
{
    result_group(result, "concurrency");
    result_count(result, "levels", concurrency->levels);
    result_number(result, "critical_path_flops", concurrency->critical_path_flops, "FLOP");
    result_count(result, "max_width", concurrency->max_width);
    result_number(result, "parallelism", concurrency->parallelism, "");
    result_count(result, "wide_levels", concurrency->wide_levels);
    result_number(result, "stage_parallelism", concurrency->stage_parallelism, "");
    result_number(result, "batch_parallelism", concurrency->batch_parallelism, "");
    result_end(result);
}

/* ---- recommendations ---- */

static void proposals_to_result(struct result *result, const struct recommendations *proposals,
                                const struct budget *budget)
{
    static const char *const KINDS[RECOMMEND_KINDS] = {"batch",   "precision", "hardware", "point",
                                                       "devices", "fusion",    "runtime"};
    result_list(result, "recommendations");
    for (size_t i = 0; i < proposals->count; i++) {
        const struct recommendation *row = &proposals->items[i];
        result_group(result, NULL);
        result_text(result, "kind", KINDS[row->kind]);
        result_text(result, "options", row->options);
        result_measured(result, "saving", row->saving, "saving_plus_minus", row->saving_plus_minus,
                        "%");
        result_number(result, "saved_j", row->joules_saved_each, "J");
        result_number(result, "energy_j", row->joules_each, "J");
        result_number(result, "latency_s", row->latency_s, "s");
        result_number(result, "per_s", row->units_per_s, "1/s");
        result_number(result, "memory_bytes", row->memory_bytes, "B");
        result_text(result, "limits",
                    budget_has_any(budget) ? budget_verdict_name(row->verdict) : NULL);
        result_text(result, "note", str_or_null(row->note));
        result_end(result);
    }
    result_end(result);
    result_count(result, "recommendations_unsure", proposals->unsure);
}

/* The distinct names of unknown operators; returns their number, at most `max`. */
static size_t find_unknown(const struct graph *graph, const char **labels, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < graph->node_count && graph->unknown_count && count < max; i++) {
        const struct graph_node *node = &graph->nodes[i];
        bool is_new = node->op == GRAPH_UNKNOWN && node->label;
        for (size_t k = 0; is_new && k < count; k++)
            is_new = !str_equal(labels[k], node->label);
        if (is_new)
            labels[count++] = node->label;
    }
    return count;
}

static void unknown_to_result(struct result *result, const struct graph *graph)
{
    const char *labels[64];
    size_t count = find_unknown(graph, labels, COUNT_OF(labels));
    result_list(result, "unknown_ops");
    for (size_t i = 0; i < count; i++)
        result_text(result, NULL, labels[i]);
    result_end(result);
}

/* ---- the document ---- */

/* What an estimate consists of besides its struct. */
struct parts {
    const struct recommend_question *question;
    struct subgraph_total *rows;
    size_t row_count;
    struct recommendations proposals;
    int devices_to_fit; /* devices needed if it exceeds device memory; 0: unknown */
};

static void make_parts(struct parts *parts)
{
    const struct workload_estimate *estimate = parts->question->now;
    workload_estimate_subgraphs(estimate, &parts->rows, &parts->row_count);
    recommend_make(parts->question, &parts->proposals);
    if (!estimate->memory.fits)
        parts->devices_to_fit = recommend_devices_to_fit(estimate);
}

static void view_to_result(struct result *result, const struct parts *parts,
                           const struct estimate_shown *shown)
{
    const struct workload_estimate *estimate = parts->question->now;
    const struct workload_spec *spec = &estimate->work->spec;
    const struct grid_point point = {.estimate = *estimate,
                                     .work = estimate->work,
                                     .on_frontier = workload_estimate_fits(estimate)};
    char words[ESTIMATE_WORDS_MAX];
    result_aside(result, "view");
    estimate_row_to_result(result, &point);
    result_text(result, "unit", words_unit(estimate->work));
    result_text(result, "device", words_device(words, estimate->hardware));
    result_text(result, "runtime",
                words_runtime(words, spec, estimate->hardware, estimate->config.precision));
    result_text(result, "basis", words_basis(words, estimate));
    result_text(result, "host", words_host(words, estimate) ? words : NULL);
    result_text(result, "setting", words_setting(words, estimate));
    result_integer(result, "devices_to_fit", parts->devices_to_fit);
    result_count(result, "unknown_nodes", estimate->work->passes[0].graph.unknown_count);
    result_text(result, "energy_limit_unit", budget_energy_unit(estimate));
    result_flag(result, "meets_limits", budget_holds(parts->question->budget, estimate));
    result_number(result, "least_saving", RECOMMEND_GAIN_MIN, "%");
    result_count(result, "top", shown->top);
    result_flag(result, "in_full", shown->in_full);
    consumers_to_result(result, parts->rows, parts->row_count, shown->in_full);
    result_end(result);
}

static void fill(struct result *result, const struct parts *parts,
                 const struct estimate_shown *shown)
{
    const struct workload_estimate *estimate = parts->question->now;
    result_begin(result, "estimate");
    estimate_head_to_result(result, estimate, shown->tariff);
    request_to_result(result, estimate, shown->tariff);
    result_list(result, "subgraphs");
    for (size_t i = 0; i < parts->row_count; i++)
        subgraph_to_result(result, estimate, &parts->rows[i]);
    result_end(result);
    concurrency_to_result(result, &estimate->passes[0].concurrency);
    proposals_to_result(result, &parts->proposals, parts->question->budget);
    estimate_limits_to_result(result, parts->question->budget, estimate);
    estimate_tail_to_result(result, estimate);
    accuracies_to_result(result, estimate->work->spec.model);
    device_figures_to_result(result, estimate);
    unknown_to_result(result, &estimate->work->passes[0].graph);
    result_text(result, "version", IPW_VERSION);
    view_to_result(result, parts, shown);
    result_end(result);
    if (shown->in_full)
        result_table(result, "subgraphs", SUBGRAPH_COLUMNS);
    else
        result_table(result, "", estimate_columns(shown->tariff));
}

void estimate_result_make(const struct recommend_question *question,
                          const struct estimate_shown *shown, struct result *out)
{
    struct parts parts = {.question = question};
    make_parts(&parts);
    fill(out, &parts, shown);
    free(parts.rows);
}
