/* Estimates as JSON: one in full, or many as an array of points (docs/formats.md). */
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/estimate_report.h"
#include "report/text/estimate_words.h"

/* ---- shared by estimates and points ---- */

/* Keys of the ± of a figure for a model as shipped: its larger side, and the interval. */
static const char *const OF_ENERGY[] = {"plus_minus", "low", "high"};
static const char *const OF_LATENCY[] = {"latency_plus_minus", "latency_low_s", "latency_high_s"};

static void interval_to_json(struct json *json, const struct workload_estimate *estimate,
                             const char *const keys[3], double value, double plus_minus)
{
    struct estimate_interval interval = workload_estimate_interval(estimate, value, plus_minus);
    json_number(json, keys[0], interval.plus_minus);
    json_number(json, keys[1], interval.low);
    json_number(json, keys[2], interval.high);
}

static void joules_to_json(struct json *json, const struct workload_estimate *estimate,
                           const struct estimate_totals *sums)
{
    const struct estimate_joules *joules = &sums->joules;
    json_object(json, "energy_j");
    json_number(json, "total", joules->total);
    json_number(json, "compute", joules->compute);
    json_number(json, "memory", joules->memory);
    json_number(json, "static", joules->idle);
    json_number(json, "link", joules->link);
    interval_to_json(json, estimate, OF_ENERGY, joules->total, sums->joules_plus_minus);
    json_object_end(json);
}

static void power_to_json(struct json *json, const struct estimate_totals *sums, double limit_w,
                          double idle_w)
{
    json_object(json, "power_w");
    json_number(json, "average", sums->average_w);
    json_number(json, "peak", sums->peak_w);
    json_number(json, "plus_minus", sums->power_plus_minus);
    json_number(json, "limit", limit_w);
    json_number(json, "idle", idle_w);
    json_object_end(json);
}

/* Live activations while each subgraph runs, for the pass that needs most. */
static void timeline_to_json(struct json *json, const struct workload_estimate *estimate)
{
    const struct partition *partition = workload_estimate_timeline_partition(estimate);
    if (!partition) {
        json_null(json, "timeline");
        return;
    }
    json_array(json, "timeline");
    for (size_t i = 0; i < partition->count; i++) {
        json_object(json, NULL);
        json_integer(json, "step", (int64_t)i);
        json_string(json, "name", partition->subgraphs[i].name);
        json_number(json, "bytes", estimate->memory.timeline[i]);
        json_object_end(json);
    }
    json_array_end(json);
}

static void memory_to_json(struct json *json, const struct workload_estimate *estimate)
{
    const struct estimate_memory *memory = &estimate->memory;
    json_object(json, "memory_bytes");
    json_number(json, "weights", memory->weights);
    json_number(json, "activations_peak", memory->activations_peak);
    json_number(json, "workspace_peak", memory->workspace_peak);
    json_number(json, "kv_cache", memory->kv_cache);
    if (estimate->cache_tokens > 0)
        json_integer(json, "kv_cache_tokens", estimate->cache_tokens);
    else
        json_null(json, "kv_cache_tokens");
    json_number(json, "total_peak", memory->total_peak);
    json_number(json, "capacity", memory->capacity);
    timeline_to_json(json, estimate);
    json_object_end(json);
    if (is_known(memory->capacity))
        json_bool(json, "fits", memory->fits);
    else
        json_null(json, "fits");
    json_number(json, "largest_batch", memory->largest_batch);
}

static void bounds_to_json(struct json *json, const double counts[BOUND_COUNT])
{
    json_object(json, "bound_counts");
    for (size_t b = 0; b < BOUND_COUNT; b++)
        json_number(json, estimate_bound_name((enum estimate_bound)b), counts[b]);
    json_object_end(json);
}

static void each_to_json(struct json *json, const struct workload_estimate *estimate)
{
    double units = estimate->work->units;
    json_object(json, "each");
    json_string(json, "unit", estimate->work->unit);
    json_number(json, "count", units);
    json_number(json, "energy_j", estimate->total.joules.total / units);
    interval_to_json(json, estimate, OF_ENERGY, estimate->total.joules.total / units,
                     estimate->total.joules_plus_minus / units);
    json_number(json, "per_s", workload_estimate_units_per_s(estimate));
    json_object_end(json);
}

static void count_or_null(struct json *json, const char *key, int64_t count)
{
    if (count > 0)
        json_integer(json, key, count);
    else
        json_null(json, key);
}

static void lengths_to_json(struct json *json, const struct workload_spec *question)
{
    struct workload_demand demand = workload_demand(question);
    json_string(json, "phase", words_phase(question));
    count_or_null(json, "prompt_tokens", demand.prompt);
    count_or_null(json, "output_tokens", question->is_request ? question->output_tokens : 0);
    count_or_null(json, "context", demand.context);
    count_or_null(json, "image", question->setting.image);
    count_or_null(json, "image_width",
                  question->setting.image_width > 0 ? question->setting.image_width
                                                    : question->setting.image);
}

static void file_precision_to_json(struct json *json, const struct graph_precision *file)
{
    if (file->is_known)
        json_string(json, "file_precision", precision_name(file->products));
    else
        json_null(json, "file_precision");
}

static void notes_to_json(struct json *json, const struct graph_notes *notes)
{
    json_array(json, "notes");
    for (size_t i = 0; i < notes->count; i++)
        json_string(json, NULL, notes->text[i]);
    json_array_end(json);
}

static void setting_to_json(struct json *json, const struct workload_estimate *estimate)
{
    const struct workload_spec *question = &estimate->work->spec;
    const struct runtime_host host = words_runtime_host(estimate);
    json_object(json, "setting");
    lengths_to_json(json, question);
    json_integer(json, "devices", estimate_devices(&estimate->config));
    json_integer(json, "tensor_parallel", estimate->config.devices);
    json_integer(json, "pipeline_parallel", estimate->config.stages);
    json_number(json, "divided", estimate->divided);
    json_bool(json, "fused", question->fusion == PARTITION_FUSED);
    json_string(json, "runtime", runtime_at(question->runtime)->name);
    json_string(
        json, "runtime_evidence",
        evidence_name(words_evidence(question, estimate->hardware, estimate->config.precision)));
    json_bool(json, "runtime_is_default", question->has_default_runtime);
    json_number(json, "host_launch_us", 1e6 * host.launch_s);
    json_bool(json, "host_launch_is_assumed", host.spread > 0);
    json_bool(json, "keeps_stored", estimate->config.keeps_stored);
    json_string(json, "computed_in", precision_name(estimate->used));
    file_precision_to_json(json, &estimate->work->file);
    json_object_end(json);
}

static void traffic_to_json(struct json *json, const struct estimate_traffic *traffic)
{
    json_object(json, "traffic_bytes");
    json_number(json, "weights", traffic->weights);
    json_number(json, "activations", traffic->activations);
    json_number(json, "kv_read", traffic->cache_read);
    json_number(json, "kv_written", traffic->cache_written);
    json_number(json, "link", traffic->link);
    json_object_end(json);
}

static void sums_to_json(struct json *json, const struct workload_estimate *estimate,
                         const struct estimate_totals *sums)
{
    json_number(json, "macs", sums->macs);
    json_number(json, "flops", sums->flops);
    json_number(json, "bytes", sums->bytes);
    traffic_to_json(json, &sums->traffic);
    json_number(json, "latency_s", sums->latency_s);
    interval_to_json(json, estimate, OF_LATENCY, sums->latency_s, sums->latency_plus_minus);
    joules_to_json(json, estimate, sums);
}

static void shares_to_json(struct json *json, const struct estimate_totals *sums)
{
    json_number(json, "utilisation", sums->utilization);
    json_number(json, "mfu", sums->mfu);
    json_number(json, "mbu", sums->mbu);
    json_number(json, "efficiency", sums->efficiency);
    json_number(json, "wasted_j", sums->wasted_j);
}

static void checks_to_json(struct json *json, const struct budget *budget,
                           const struct workload_estimate *estimate)
{
    struct budget_check checks[BUDGET_KINDS];
    size_t count = budget_evaluate(budget, estimate, checks);
    if (!count) {
        json_null(json, "budget");
        return;
    }
    json_object(json, "budget");
    json_string(json, "verdict", budget_verdict_name(budget_verdict(budget, estimate)));
    json_array(json, "checks");
    for (size_t i = 0; i < count; i++) {
        json_object(json, NULL);
        json_string(json, "limit", budget_name(checks[i].kind));
        json_string(json, "unit", budget_unit(checks[i].kind));
        json_number(json, "value", checks[i].value);
        json_number(json, "plus_minus", checks[i].plus_minus);
        json_number(json, "most", checks[i].max);
        json_number(json, "left", checks[i].left);
        json_number(json, "margin", checks[i].margin);
        json_bool(json, "sure", checks[i].is_sure);
        json_string(json, "verdict", budget_verdict_name(checks[i].verdict));
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

static void pipeline_to_json(struct json *json, const struct workload_estimate *estimate)
{
    const struct workload_pipeline *pipeline = &estimate->pipeline;
    if (estimate->config.stages < 2) {
        json_null(json, "pipeline");
        return;
    }
    json_object(json, "pipeline");
    json_number(json, "micro_batches", pipeline->micro_batches);
    json_number(json, "bubble", pipeline->bubble);
    json_array(json, "stages");
    for (int s = 0; s < estimate->config.stages; s++) {
        json_object(json, NULL);
        json_integer(json, "layers", pipeline->stages[s].layers);
        json_number(json, "busy_s", pipeline->stages[s].busy_s);
        json_number(json, "energy_j", pipeline->stages[s].joules);
        json_number(json, "memory_peak_bytes", pipeline->stages[s].memory_peak);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

static void head_to_json(struct json *json, const struct workload_estimate *estimate,
                         const struct tariff *tariff)
{
    json_string(json, "model", estimate->work->spec.model->name);
    json_string(json, "hardware", estimate->hardware->id);
    json_string(json, "hardware_name", estimate->hardware->name);
    json_string(json, "precision", precision_name(estimate->config.precision));
    json_number(json, "batch", estimate->work->batch);
    setting_to_json(json, estimate);
    json_number(json, "params", estimate->params);
    sums_to_json(json, estimate, &estimate->total);
    each_to_json(json, estimate);
    estimate_cost_to_json(json, estimate, tariff);
    power_to_json(json, &estimate->total, estimate->limit_w,
                  estimate->hardware->idle_w.value * estimate_devices(&estimate->config));
    memory_to_json(json, estimate);
    pipeline_to_json(json, estimate);
    shares_to_json(json, &estimate->total);
    bounds_to_json(json, estimate->total.bound_counts);
}

static void tail_to_json(struct json *json, const struct workload_estimate *estimate)
{
    json_string(json, "confidence", estimate_confidence_name(estimate->confidence));
    json_string(json, "confidence_reason",
                estimate->confidence_reason[0] ? estimate->confidence_reason : NULL);
    notes_to_json(json, &estimate->work->notes);
    json_string(json, "method", "estimated");
    json_string(json, "basis", words_kernels(&estimate->work->spec));
    if (!is_known(estimate->shipped.max)) {
        json_null(json, "as_shipped_over_estimate");
        return;
    }
    json_array(json, "as_shipped_over_estimate");
    json_number(json, NULL, estimate->shipped.min);
    json_number(json, NULL, estimate->shipped.max);
    json_array_end(json);
}

/* ---- a request ---- */

static void phase_to_json(struct json *json, const char *name,
                          const struct workload_estimate *estimate,
                          const struct estimate_totals *sums, double tokens,
                          const struct tariff *tariff)
{
    double made = tokens * estimate->work->batch;
    json_object(json, NULL);
    json_string(json, "phase", name);
    json_number(json, "tokens", tokens);
    sums_to_json(json, estimate, sums);
    json_number(json, "energy_per_token_j", sums->joules.total / made);
    json_number(json, "tokens_per_s", made / sums->latency_s);
    if (tariff && tariff_given(tariff)) {
        struct charge charge = estimate_charge(estimate, sums, tariff, made / 1e6);
        charge_to_json(json, "million_tokens", &charge);
    }
    power_to_json(json, sums, estimate->limit_w,
                  estimate->hardware->idle_w.value * estimate_devices(&estimate->config));
    shares_to_json(json, sums);
    bounds_to_json(json, sums->bound_counts);
    json_object_end(json);
}

static void request_to_json(struct json *json, const struct workload_estimate *estimate,
                            const struct tariff *tariff)
{
    const struct workload *work = estimate->work;
    if (!work->spec.is_request) {
        json_null(json, "request");
        return;
    }
    double output = (double)work->spec.output_tokens, batch = work->batch;
    json_object(json, "request");
    json_number(json, "energy_j", estimate->total.joules.total / batch);
    interval_to_json(json, estimate, OF_ENERGY, estimate->total.joules.total / batch,
                     estimate->total.joules_plus_minus / batch);
    json_number(json, "energy_per_token_j", estimate->total.joules.total / (batch * output));
    json_number(json, "tokens_per_s", batch * output / estimate->total.latency_s);
    json_number(json, "latency_s", estimate->total.latency_s);
    json_number(json, "first_token_s", workload_estimate_ttft_s(estimate));
    json_number(json, "tpot_s", workload_estimate_tpot_s(estimate));
    json_number(json, "tokens_per_s_per_user", 1 / workload_estimate_tpot_s(estimate));
    json_array(json, "phases");
    phase_to_json(json, "prefill", estimate, &estimate->prefill, (double)work->spec.setting.tokens,
                  tariff);
    if (work->count > work->prefill_count)
        phase_to_json(json, "decode", estimate, &estimate->decode, output - 1, tariff);
    json_array_end(json);
    json_object_end(json);
}

/* ---- subgraphs ---- */

static void operations_to_json(struct json *json, const struct subgraph_total *row,
                               const struct partition *partition)
{
    const struct subgraph *subgraph = row->subgraph;
    json_array(json, "ops");
    for (uint32_t i = 0; i < subgraph->node_count; i++) {
        node_id node = partition->nodes[subgraph->first_node + i];
        json_string(json, NULL, graph_op_name(partition->graph->nodes[node].op));
    }
    json_array_end(json);
}

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

static void row_to_json(struct json *json, const struct workload_estimate *estimate,
                        const struct subgraph_total *row)
{
    const struct subgraph *subgraph = row->subgraph;
    json_object(json, NULL);
    json_string(json, "name", subgraph->name);
    if (estimate->work->spec.is_request)
        json_string(json, "phase", row->phase == GRAPH_DECODE ? "decode" : "prefill");
    operations_to_json(json, row, partition_of(estimate, subgraph));
    json_number(json, "layer", subgraph->layer == GRAPH_NONE ? UNKNOWN : (double)subgraph->layer);
    json_integer(json, "level", subgraph->level);
    json_number(json, "flops", row->flops);
    json_number(json, "bytes", row->bytes);
    json_number(json, "latency_s", row->latency_s);
    json_number(json, "energy_j", row->joules.total);
    json_number(json, "compute_j", row->joules.compute);
    json_number(json, "memory_j", row->joules.memory);
    json_number(json, "static_j", row->joules.idle);
    json_number(json, "utilisation", row->utilization);
    json_string(json, "bound", estimate_bound_name(row->bound));
    json_object_end(json);
}

/* ---- evidence ---- */

static void figures_to_json(struct json *json, const struct workload_estimate *estimate)
{
    struct words_figure figures[WORDS_FIGURES_MAX];
    size_t count = words_figures(estimate, figures);
    json_array(json, "hardware_figures");
    for (size_t i = 0; i < count; i++) {
        const struct hardware_figure *figure = &figures[i].figure;
        bool known = is_known(figure->value);
        json_object(json, NULL);
        json_string(json, "name", figures[i].name);
        json_string(json, "unit", figures[i].unit);
        json_string(json, "format", figures[i].format);
        json_number(json, "value", figure->value);
        json_number(json, "plus_minus", known ? figure->plus_minus : UNKNOWN);
        json_string(json, "evidence", known ? evidence_name(figure->evidence) : NULL);
        json_string(json, "source", known ? figure->source : NULL);
        json_object_end(json);
    }
    json_array_end(json);
}

static void unknown_to_json(struct json *json, const struct graph *graph)
{
    const char *labels[64];
    size_t count = words_unknown(graph, labels, sizeof labels / sizeof *labels);
    json_array(json, "unknown_ops");
    for (size_t i = 0; i < count; i++)
        json_string(json, NULL, labels[i]);
    json_array_end(json);
}

static void concurrency_to_json(struct json *json, const struct partition_concurrency *concurrency)
{
    json_object(json, "concurrency");
    json_integer(json, "levels", (int64_t)concurrency->levels);
    json_number(json, "critical_path_flops", concurrency->critical_path_flops);
    json_integer(json, "max_width", (int64_t)concurrency->max_width);
    json_number(json, "parallelism", concurrency->parallelism);
    json_integer(json, "wide_levels", (int64_t)concurrency->wide_levels);
    json_number(json, "stage_parallelism", concurrency->stage_parallelism);
    json_number(json, "batch_parallelism", concurrency->batch_parallelism);
    json_object_end(json);
}

static void proposals_to_json(struct json *json, const struct estimate_report *report)
{
    static const char *const KINDS[RECOMMEND_KINDS] = {"batch",   "precision", "hardware", "point",
                                                       "devices", "fusion",    "runtime"};
    json_array(json, "recommendations");
    for (size_t i = 0; i < report->recommendations->count; i++) {
        const struct recommendation *row = &report->recommendations->items[i];
        json_object(json, NULL);
        json_string(json, "kind", KINDS[row->kind]);
        json_string(json, "options", row->options);
        json_number(json, "saving", row->saving);
        json_number(json, "saving_plus_minus", row->saving_plus_minus);
        json_number(json, "saved_j", row->joules_saved_each);
        json_number(json, "energy_j", row->joules_each);
        json_number(json, "latency_s", row->latency_s);
        json_number(json, "per_s", row->units_per_s);
        json_number(json, "memory_bytes", row->memory_bytes);
        json_string(json, "limits",
                    budget_has_any(report->budget) ? budget_verdict_name(row->verdict) : NULL);
        json_string(json, "note", row->note[0] ? row->note : NULL);
        json_object_end(json);
    }
    json_array_end(json);
    json_integer(json, "recommendations_unsure", (int64_t)report->recommendations->unsure);
}

/* ---- documents ---- */

void estimate_json(const struct estimate_report *report, struct text *out)
{
    const struct workload_estimate *estimate = report->estimate;
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    head_to_json(&json, estimate, report->tariff);
    request_to_json(&json, estimate, report->tariff);
    json_array(&json, "subgraphs");
    for (size_t i = 0; i < report->row_count; i++)
        row_to_json(&json, estimate, &report->rows[i]);
    json_array_end(&json);
    concurrency_to_json(&json, &estimate->passes[0].concurrency);
    proposals_to_json(&json, report);
    checks_to_json(&json, report->budget, estimate);
    tail_to_json(&json, estimate);
    figures_to_json(&json, estimate);
    unknown_to_json(&json, &estimate->work->passes[0].graph);
    json_string(&json, "version", IPW_VERSION);
    json_object_end(&json);
}

static void point_to_json(struct json *json, const struct points_report *report,
                          const struct grid_point *point)
{
    json_object(json, NULL);
    if (point->missing[0]) {
        json_string(json, "hardware", point->estimate.hardware->id);
        json_string(json, "precision", precision_name(point->estimate.config.precision));
        json_integer(json, "batch", point->work->spec.setting.batch);
        json_object(json, "setting");
        lengths_to_json(json, &point->work->spec);
        json_object_end(json);
        json_string(json, "missing", point->missing);
    } else {
        head_to_json(json, &point->estimate, report->tariff);
        checks_to_json(json, report->budget, &point->estimate);
        tail_to_json(json, &point->estimate);
        json_null(json, "missing");
    }
    json_bool(json, "frontier", point->on_frontier);
    json_object_end(json);
}

void points_json(const struct points_report *report, struct text *out)
{
    const struct estimate_grid *points = report->points;
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_string(&json, "model", points->works[0].spec.model->name);
    json_string(&json, "unit", points->works[0].unit);
    file_precision_to_json(&json, &points->works[0].file);
    notes_to_json(&json, &points->works[0].notes);
    json_array(&json, "points");
    for (size_t i = 0; i < points->count; i++)
        point_to_json(&json, report, &points->items[i]);
    json_array_end(&json);
    json_string(&json, "version", IPW_VERSION);
    json_object_end(&json);
}
