/* What one estimate and a point of a grid have in common: the setting, the figures with their ±, memory, limits,
 * confidence, and the columns of a row of CSV. */
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "estimate/cost.h"
#include "estimate/estimate_result.h"
#include "estimate/words.h"

/* ---- figures ---- */

/* Keys of the ± of a figure of measured models: its larger side, and the interval of one standard deviation. */
struct interval_keys {
    const char *plus_minus, *low, *high, *unit;
};
static const struct interval_keys OF_ENERGY = {"plus_minus", "low", "high", "J"};
static const struct interval_keys OF_LATENCY = {"latency_plus_minus", "latency_low_s",
                                                "latency_high_s", "s"};

/* Of the figure `key` of the open group.  Printers would show an interval of the item as one of 95 %. */
static void interval_to_result(struct result *result, const struct workload_estimate *estimate,
                               const struct interval_keys *keys, const char *key, double value,
                               double plus_minus)
{
    struct estimate_interval interval = workload_estimate_interval(estimate, value, plus_minus);
    result_uncertain(result, key, interval.plus_minus);
    result_number(result, keys->plus_minus, interval.plus_minus, keys->unit);
    result_number(result, keys->low, interval.low, keys->unit);
    result_number(result, keys->high, interval.high, keys->unit);
}

static void count_or_null(struct result *result, const char *key, int64_t count)
{
    if (count > 0)
        result_integer(result, key, count);
    else
        result_null(result, key);
}

#define JOULES(key, member)      {key, offsetof(struct estimate_joules, member), "J"}
#define TOTAL(key, member, unit) {key, offsetof(struct estimate_totals, member), unit}

static void joules_to_result(struct result *result, const struct workload_estimate *estimate,
                             const struct estimate_totals *sums)
{
    static const struct result_member PARTS[] = {
        JOULES("total", total), JOULES("compute", compute), JOULES("memory", memory),
        JOULES("static", idle), JOULES("link", link),       {0},
    };
    result_group(result, "energy_j");
    result_members(result, PARTS, &sums->joules);
    interval_to_result(result, estimate, &OF_ENERGY, "total", sums->joules.total,
                       sums->joules_plus_minus);
    result_end(result);
}

void power_to_result(struct result *result, const struct workload_estimate *estimate,
                     const struct estimate_totals *sums)
{
    static const struct result_member POWER[] = {
        TOTAL("average", average_w, "W"),
        TOTAL("peak", peak_w, "W"),
        TOTAL("plus_minus", power_plus_minus, "W"),
        {0},
    };
    result_group(result, "power_w");
    result_members(result, POWER, sums);
    result_uncertain(result, "average", sums->power_plus_minus);
    result_number(result, "limit", estimate->limit_w, "W");
    result_number(result, "idle",
                  estimate->hardware->idle_w.value * estimate_devices(&estimate->config), "W");
    result_end(result);
}

void sums_to_result(struct result *result, const struct workload_estimate *estimate,
                    const struct estimate_totals *sums)
{
    static const struct result_member WORK[] = {
        TOTAL("macs", macs, "MAC"),
        TOTAL("flops", flops, "FLOP"),
        TOTAL("bytes", bytes, "B"),
        {0},
    };
    static const struct result_member TRAFFIC[] = {
        TOTAL("weights", traffic.weights, "B"),    TOTAL("activations", traffic.activations, "B"),
        TOTAL("kv_read", traffic.cache_read, "B"), TOTAL("kv_written", traffic.cache_written, "B"),
        TOTAL("link", traffic.link, "B"),          {0},
    };
    result_members(result, WORK, sums);
    result_group(result, "traffic_bytes");
    result_members(result, TRAFFIC, sums);
    result_end(result);
    result_number(result, "latency_s", sums->latency_s, "s");
    interval_to_result(result, estimate, &OF_LATENCY, "latency_s", sums->latency_s,
                       sums->latency_plus_minus);
    joules_to_result(result, estimate, sums);
}

void shares_to_result(struct result *result, const struct estimate_totals *sums)
{
    static const struct result_member SHARES[] = {
        TOTAL("utilisation", utilization, "%"),
        TOTAL("mfu", mfu, "%"),
        TOTAL("mbu", mbu, "%"),
        TOTAL("efficiency", efficiency, "%"),
        TOTAL("wasted_j", wasted_j, "J"),
        {0},
    };
    result_members(result, SHARES, sums);
    result_group(result, "bound_counts");
    for (size_t b = 0; b < BOUND_COUNT; b++)
        result_number(result, estimate_bound_name((enum estimate_bound)b), sums->bound_counts[b],
                      "");
    result_end(result);
}

void energy_to_result(struct result *result, const struct workload_estimate *estimate, double parts)
{
    double joules = estimate->total.joules.total / parts;
    result_number(result, "energy_j", joules, "J");
    interval_to_result(result, estimate, &OF_ENERGY, "energy_j", joules,
                       estimate->total.joules_plus_minus / parts);
}

static void each_to_result(struct result *result, const struct workload_estimate *estimate)
{
    double units = estimate->work->units;
    result_group(result, "each");
    result_text(result, "unit", estimate->work->unit);
    result_number(result, "count", units, "");
    energy_to_result(result, estimate, units);
    result_number(result, "per_s", workload_estimate_units_per_s(estimate), "1/s");
    result_end(result);
}

/* ---- memory ---- */

/* Live activations while each subgraph runs, for the pass that needs most. */
static void timeline_to_result(struct result *result, const struct workload_estimate *estimate)
{
    const struct partition *partition = workload_estimate_timeline_partition(estimate);
    if (!partition) {
        result_null(result, "timeline");
        return;
    }
    result_list(result, "timeline");
    for (size_t i = 0; i < partition->count; i++) {
        result_group(result, NULL);
        result_count(result, "step", i);
        result_text(result, "name", partition->subgraphs[i].name);
        result_number(result, "bytes", estimate->memory.timeline[i], "B");
        result_end(result);
    }
    result_end(result);
}

static void memory_to_result(struct result *result, const struct workload_estimate *estimate)
{
    const struct estimate_memory *memory = &estimate->memory;
    result_group(result, "memory_bytes");
    result_number(result, "weights", memory->weights, "B");
    result_number(result, "activations_peak", memory->activations_peak, "B");
    result_number(result, "workspace_peak", memory->workspace_peak, "B");
    result_number(result, "kv_cache", memory->kv_cache, "B");
    count_or_null(result, "kv_cache_tokens", estimate->cache_tokens);
    result_number(result, "total_peak", memory->total_peak, "B");
    result_number(result, "capacity", memory->capacity, "B");
    timeline_to_result(result, estimate);
    result_end(result);
    if (is_known(memory->capacity))
        result_flag(result, "fits", memory->fits);
    else
        result_null(result, "fits");
    result_number(result, "largest_batch", memory->largest_batch, "");
}

static void pipeline_to_result(struct result *result, const struct workload_estimate *estimate)
{
    const struct workload_pipeline *pipeline = &estimate->pipeline;
    if (estimate->config.stages < 2) {
        result_null(result, "pipeline");
        return;
    }
    result_group(result, "pipeline");
    result_number(result, "micro_batches", pipeline->micro_batches, "");
    result_number(result, "bubble", pipeline->bubble, "%");
    result_list(result, "stages");
    for (int s = 0; s < estimate->config.stages; s++) {
        result_group(result, NULL);
        result_integer(result, "layers", pipeline->stages[s].layers);
        result_number(result, "busy_s", pipeline->stages[s].busy_s, "s");
        result_number(result, "energy_j", pipeline->stages[s].joules, "J");
        result_number(result, "memory_peak_bytes", pipeline->stages[s].memory_peak, "B");
        result_end(result);
    }
    result_end(result);
    result_end(result);
}

/* ---- the setting ---- */

void lengths_to_result(struct result *result, const struct workload_spec *spec)
{
    struct workload_demand demand = workload_demand(spec);
    const struct graph_options *setting = &spec->setting;
    result_text(result, "phase", words_phase(spec));
    count_or_null(result, "prompt_tokens", demand.prompt);
    count_or_null(result, "output_tokens", spec->is_request ? spec->output_tokens : 0);
    count_or_null(result, "context", demand.context);
    count_or_null(result, "image", setting->image);
    count_or_null(result, "image_width",
                  setting->image_width > 0 ? setting->image_width : setting->image);
}

void file_precision_to_result(struct result *result, const struct graph_precision *file)
{
    result_text(result, "file_precision", file->is_known ? precision_name(file->products) : NULL);
}

void notes_to_result(struct result *result, const struct graph_notes *notes)
{
    result_list(result, "notes");
    for (size_t i = 0; i < notes->count; i++)
        result_text(result, NULL, notes->text[i]);
    result_end(result);
}

static void setting_to_result(struct result *result, const struct workload_estimate *estimate)
{
    const struct workload_spec *spec = &estimate->work->spec;
    const struct estimate_config *config = &estimate->config;
    const struct runtime_host host = words_runtime_host(estimate);
    result_group(result, "setting");
    lengths_to_result(result, spec);
    result_integer(result, "devices", estimate_devices(config));
    result_integer(result, "tensor_parallel", config->devices);
    result_integer(result, "pipeline_parallel", config->stages);
    result_number(result, "divided", estimate->divided, "%");
    result_flag(result, "fused", spec->fusion == PARTITION_FUSED);
    result_text(result, "runtime", runtime_at(spec->runtime)->name);
    result_text(result, "runtime_evidence",
                evidence_name(words_evidence(spec, estimate->hardware, config->precision)));
    result_flag(result, "runtime_is_default", spec->has_default_runtime);
    result_number(result, "host_launch_us", 1e6 * host.launch_s, "µs");
    result_flag(result, "host_launch_is_assumed", host.spread > 0);
    result_flag(result, "keeps_stored", config->keeps_stored);
    result_text(result, "computed_in", precision_name(estimate->used));
    file_precision_to_result(result, &estimate->work->file);
    result_end(result);
}

/* ---- parts of an estimate and of a point ---- */

void estimate_head_to_result(struct result *result, const struct workload_estimate *estimate,
                             const struct tariff *tariff)
{
    result_text(result, "model", estimate->work->spec.model->name);
    result_text(result, "hardware", estimate->hardware->id);
    result_text(result, "hardware_name", estimate->hardware->name);
    result_text(result, "precision", precision_name(estimate->config.precision));
    result_number(result, "batch", estimate->work->batch, "");
    setting_to_result(result, estimate);
    result_number(result, "params", estimate->params, "");
    sums_to_result(result, estimate, &estimate->total);
    each_to_result(result, estimate);
    estimate_cost_to_result(result, estimate, tariff);
    power_to_result(result, estimate, &estimate->total);
    memory_to_result(result, estimate);
    pipeline_to_result(result, estimate);
    shares_to_result(result, &estimate->total);
}

void estimate_limits_to_result(struct result *result, const struct budget *budget,
                               const struct workload_estimate *estimate)
{
    struct budget_check checks[BUDGET_KINDS];
    size_t count = budget_evaluate(budget, estimate, checks);
    if (!count) {
        result_null(result, "budget");
        return;
    }
    result_group(result, "budget");
    result_text(result, "verdict", budget_verdict_name(budget_verdict(budget, estimate)));
    result_list(result, "checks");
    for (size_t i = 0; i < count; i++) {
        const struct budget_check *check = &checks[i];
        const char *unit = budget_unit(check->kind);
        result_group(result, NULL);
        result_text(result, "limit", budget_name(check->kind));
        result_text(result, "unit", unit);
        result_measured(result, "value", check->value, "plus_minus", check->plus_minus, unit);
        result_number(result, "max", check->max, unit);
        result_number(result, "left", check->left, unit);
        result_number(result, "margin", check->margin, "%");
        result_flag(result, "sure", check->is_sure);
        result_text(result, "verdict", budget_verdict_name(check->verdict));
        result_end(result);
    }
    result_end(result);
    result_end(result);
}

void estimate_tail_to_result(struct result *result, const struct workload_estimate *estimate)
{
    const struct estimate_shipped *shipped = &estimate->shipped;
    result_text(result, "confidence", estimate_confidence_name(estimate->confidence));
    result_text(result, "confidence_reason", str_or_null(estimate->confidence_reason));
    notes_to_result(result, &estimate->work->notes);
    result_text(result, "method", "estimated");
    result_text(result, "basis", words_kernels(&estimate->work->spec));
    if (is_known(shipped->max))
        result_numbers(result, "as_shipped_over_estimate",
                       (const double[]){shipped->min, shipped->max}, 2, "");
    else
        result_null(result, "as_shipped_over_estimate");
}

/* ---- the table ---- */

#define POINT_COLUMNS                                                                              \
    {"model", "view.model", 0}, {"hardware", "hardware", 0}, {"precision", "view.precision", 0},   \
        {"batch", "view.batch", 0}, {"phase", "setting.phase", 0},                                 \
        {"prompt_tokens", "setting.prompt_tokens", 0},                                             \
        {"output_tokens", "setting.output_tokens", 0}, {"context", "setting.context", 0},          \
        {"devices", "view.devices", 0}, {"count", "each.count", 0}, {"unit", "each.unit", 0},      \
        {"energy_each_j", "each.energy_j", 0}, {"plus_minus_each_j", "view.plus_minus_each_j", 0}, \
        {"energy_j", "energy_j.total", 0}, {"compute_j", "energy_j.compute", 0},                   \
        {"memory_j", "energy_j.memory", 0}, {"static_j", "energy_j.static", 0},                    \
        {"link_j", "energy_j.link", 0}, {"latency_s", "latency_s", 0},                             \
        {"latency_plus_minus", "latency_plus_minus", 0},                                           \
        {"first_token_s", "view.first_token_s", 0}, {"tpot_s", "view.tpot_s", 0},                  \
        {"tokens_per_s_per_user", "view.tokens_per_s_per_user", 0}, {"per_s", "each.per_s", 0},    \
        {"average_w", "power_w.average", 0}, {"peak_w", "power_w.peak", 0},                        \
        {"params", "params", 0}, {"macs", "macs", 0}, {"flops", "flops", 0},                       \
        {"bytes", "bytes", 0}, {"weights_bytes", "memory_bytes.weights", 0},                       \
        {"activations_peak_bytes", "memory_bytes.activations_peak", 0},                            \
        {"kv_cache_bytes", "memory_bytes.kv_cache", 0},                                            \
        {"total_peak_bytes", "memory_bytes.total_peak", 0},                                        \
        {"capacity_bytes", "memory_bytes.capacity", 0}, {"mfu", "mfu", 0}, {"mbu", "mbu", 0},      \
        {"fits", "view.fits", 0}, {"frontier", "view.frontier", 0},                                \
        {"limits", "budget.verdict", 0}, {"confidence", "confidence", 0},                          \
        {"runtime", "setting.runtime", 0}

#define COST_COLUMN(key) {key, "operating." key, 0}

/* Some columns exist only with prices. */
const struct result_column *estimate_columns(const struct tariff *tariff)
{
    static const struct result_column PLAIN[] = {POINT_COLUMNS, {"missing", "missing", 0}, {0}};
    static const struct result_column PRICED[] = {
        POINT_COLUMNS,
        COST_COLUMN("cost_per_query"),
        COST_COLUMN("cost_per_million_input_tokens"),
        COST_COLUMN("cost_per_million_output_tokens"),
        COST_COLUMN("gco2e_per_query"),
        COST_COLUMN("gco2e_per_million_input_tokens"),
        COST_COLUMN("gco2e_per_million_output_tokens"),
        {"missing", "missing", 0},
        {0},
    };
    return tariff && tariff_given(tariff) ? PRICED : PLAIN;
}

void estimate_row_to_result(struct result *result, const struct grid_point *point)
{
    const struct workload_estimate *estimate = &point->estimate;
    const struct estimate_totals *all = &estimate->total;
    const struct workload_spec *spec = &point->work->spec;
    result_text(result, "model", spec->model->name);
    result_text(result, "precision", words_precision(&estimate->config));
    result_integer(result, "batch", spec->setting.batch);
    result_integer(result, "devices", estimate_devices(&estimate->config));
    if (point->missing[0])
        return;
    struct estimate_interval energy =
        workload_estimate_interval(estimate, all->joules.total, all->joules_plus_minus);
    double tpot_s = workload_estimate_tpot_s(estimate);
    result_number(result, "plus_minus_each_j", energy.plus_minus / point->work->units, "J");
    result_number(result, "first_token_s", workload_estimate_ttft_s(estimate), "s");
    result_number(result, "tpot_s", tpot_s, "s");
    result_number(result, "tokens_per_s_per_user", 1 / tpot_s, "1/s");
    if (is_known(estimate->memory.capacity))
        result_integer(result, "fits", estimate->memory.fits);
    result_integer(result, "frontier", point->on_frontier);
    /* Of the bound alone, for comparing points. */
    result_number(result, "plus_minus_j", all->joules_plus_minus, "J");
    /* Measured models take more than the ± covers. */
    result_flag(result, "is_exceeded_as_shipped", estimate->shipped.above > 0);
}
