#include "runner/profile/summary.h"

#include <math.h>
#include <string.h>

#include "clients/client.h"
#include "core/clock.h"
#include "core/energy.h"
#include "core/json.h"
#include "core/text.h"
#include "metrics/efficiency.h"
#include "metrics/intelligence.h"
#include "metrics/prices.h"
#include "runner/profile/context.h"
#include "runner/profile/finish.h"
#include "runner/profile/sums.h"

static double ratio(double a, double b)
{
    return is_known(a) && b > 0 ? a / b : UNKNOWN;
}

static const char *or_null(const char *text)
{
    return text && text[0] ? text : NULL;
}

/* ---- the machine ---- */

static void put_gpu(struct json *json, const struct profile_context *context)
{
    const char *name = context->host->gpu;
    bool amd = strncmp(name, "AMD", 3) == 0;
    if (!name[0]) {
        json_null(json, "gpu_info");
        return;
    }
    json_object(json, "gpu_info");
    json_string(json, "name", name);
    json_string(json, "vendor", amd ? "AMD" : "NVIDIA");
    json_integer(json, "device_id", 0);
    json_string(json, "device_type", "GPU");
    json_string(json, "backend", amd ? "AMDSMI" : "NVML");
    json_object_end(json);
}

static void put_system(struct json *json, const struct profile_context *context)
{
    const struct host_info *info = &context->host->info;
    json_object(json, "system_info");
    json_string(json, "os_name", or_null(info->os_name));
    json_string(json, "os_version", or_null(info->os_version));
    json_string(json, "kernel_version", or_null(info->kernel));
    json_string(json, "host_name", or_null(info->host_name));
    json_number(json, "cpu_count", info->cpu_count ? (double)info->cpu_count : UNKNOWN);
    json_string(json, "cpu_brand", or_null(info->cpu_brand));
    json_object_end(json);
}

void summary_constants(const struct profile_context *context, struct text *out)
{
    struct json json;
    json_init(&json, out, false);
    json_object(&json, NULL);
    json_object(&json, "model_metrics");
    json_object(&json, context->options->model);
    put_gpu(&json, context);
    put_system(&json, context);
    json_object_end(&json);
    json_object_end(&json);
    json_object_end(&json);
}

/* ---- figures ---- */

/* The share of the sensors' calibration in the ±: the part that repeating does not shrink. */
static double calibration_of(const struct energy *energy)
{
    double squared =
        energy->plus_minus * energy->plus_minus - energy->statistical * energy->statistical;
    return ratio(sqrt(fmax(0, squared)), energy->joules);
}

static struct intelligence intelligence_in(const struct finish_facts *facts,
                                           const struct sums *sums)
{
    struct intelligence figures;
    intelligence_of(&sums->tally, &facts->busy, calibration_of(&facts->energy), &figures);
    return figures;
}

static void put_contract(struct json *json, const struct finish_facts *facts,
                         const struct sums *sums)
{
    struct intelligence score = intelligence_in(facts, sums);
    const struct sketch *ttft = &sums->rows[SUM_TTFT];
    json_string(json, "output_dir", facts->directory);
    json_integer(json, "queries", (int64_t)sums->queries);
    json_integer(json, "completed", (int64_t)sums->completed);
    json_integer(json, "failed", (int64_t)sums->failed);
    json_number(json, "accuracy", score.accuracy);
    energy_to_json(json, "energy", &facts->energy);
    json_number(json, "joules_per_output_token",
                ratio(sums->per_output.joules, sums->per_output.tokens));
    json_number(json, "output_tokens_per_s", ratio(sums->output_tokens, sums_seconds(sums)));
    json_number(json, "ipj", score.ipj);
    json_number(json, "ipw", score.ipw);
    json_object(json, "time_to_first_token_s");
    json_number(json, "p50", sketch_quantile(ttft, 0.5));
    json_number(json, "p95", sketch_quantile(ttft, 0.95));
    json_object_end(json);
    json_number(json, "conservation_error", facts->conservation_error);
}

/* Tries that failed in an earlier start and were made again since: no record has them any more. */
static double superseded(const struct finish_facts *facts, const struct sums *sums)
{
    double recorded = sums->joules + sums->failed_joules;
    double rest = facts->requests_joules - recorded;
    return rest > 1e-9 * recorded ? rest : 0; /* less is rounding */
}

static void put_where_it_went(struct json *json, const struct finish_facts *facts,
                              const struct sums *sums)
{
    double queries = sums->measured ? sums->joules : UNKNOWN;
    double failed = sums->failed_joules + superseded(facts, sums);
    json_object(json, "joules");
    json_number(json, "queries", queries);
    json_number(json, "queries_idle_share", sums->measured ? sums->idle_joules : UNKNOWN);
    json_number(json, "prefill", sums->prefill_joules);
    json_number(json, "decode", sums->decode_joules);
    json_number(json, "failed", is_known(facts->energy.joules) ? failed : UNKNOWN);
    json_number(json, "idle", facts->idle_joules);
    json_number(json, "unattributed", facts->unattributed_joules);
    json_number(json, "judge", sums->judge_joules);
    json_number(json, "gpu", sums->gpu_joules);
    json_number(json, "cpu", sums->cpu_joules);
    json_object_end(json);
}

static void put_prices(struct json *json, const struct profile_context *context,
                       const struct finish_facts *facts)
{
    const struct prices *prices = context->prices;
    json_string(json, "currency", prices ? prices_currency(prices) : NULL);
    json_number(json, "electricity_cost",
                prices ? prices_electricity(prices, facts->energy.joules) : UNKNOWN);
}

static void put_more(struct json *json, const struct profile_context *context,
                     const struct finish_facts *facts, const struct sums *sums)
{
    struct intelligence score = intelligence_in(facts, sums);
    put_where_it_went(json, facts, sums);
    json_number(json, "joules_per_input_token",
                ratio(sums->per_input.joules, sums->per_input.tokens));
    json_number(json, "prefill_joules_per_input_token",
                ratio(sums->prefill.joules, sums->prefill.tokens));
    json_number(json, "decode_joules_per_output_token",
                ratio(sums->decode.joules, sums->decode.tokens));
    json_number(json, "upstream_ipj_mean_query", score.upstream_ipj_mean_query);
    json_number(json, "upstream_ipj_total", score.upstream_ipj_total);
    json_number(json, "upstream_ipw_mean_query", score.upstream_ipw_mean_query);
    json_number(json, "upstream_ipw_total", score.upstream_ipw_total);
    json_array(json, "accuracy_interval_95");
    json_number(json, NULL, score.accuracy_low);
    json_number(json, NULL, score.accuracy_high);
    json_array_end(json);
    json_number(json, "ipj_plus_minus", score.ipj_plus_minus);
    json_number(json, "ipj_active", score.ipj_active);
    json_number(json, "ipw_plus_minus", score.ipw_plus_minus);
    json_number(json, "joules_per_query", score.joules_per_query);
    json_number(json, "active_joules_per_query", score.active_joules_per_query);
    json_number(json, "busy_watts", score.busy_watts);
    json_integer(json, "correct", (int64_t)sums->tally.correct);
    json_integer(json, "incorrect", (int64_t)sums->tally.incorrect);
    json_integer(json, "ungraded", (int64_t)sums->tally.ungraded);
    json_integer(json, "energy_known", (int64_t)sums->measured);
    json_number(json, "seconds", sums_seconds(sums));
    json_number(json, "input_tokens", sums->input_tokens);
    json_number(json, "output_tokens", sums->output_tokens);
    json_number(json, "cost", sums->cost);
    put_prices(json, context, facts);
    double flops_per_token = model_flops_per_token(&context->facts.model);
    /* Work that was not counted would make the hardware look idle: unknown instead. */
    bool all_counted = sums->rows[SUM_INPUT].moments.count == sums->completed &&
                       sums->rows[SUM_OUTPUT].moments.count == sums->completed;
    double flops =
        all_counted ? flops_per_token * (sums->input_tokens + sums->output_tokens) : UNKNOWN;
    json_number(json, "flops_per_token", flops_per_token);
    json_number(json, "flops", flops);
    json_number(json, "mfu",
                efficiency_mfu(flops, facts->busy_s, &context->facts.peak, context->facts.devices));
    sums_to_json(json, "statistics", sums);
}

void summary_report(const struct profile_context *context, const struct finish_facts *facts,
                    const struct sums *sums, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    put_contract(&json, facts, sums);
    json_bool(&json, "interrupted", facts->interrupted);
    put_more(&json, context, facts, sums);
    json_object_end(&json);
    text_add(out, "\n");
}

/* ---- summary.json ---- */

static void put_params(struct json *json, const char *key, const struct params *params)
{
    json_object(json, key);
    for (size_t i = 0; i < params->count; i++) {
        const struct param *item = &params->items[i];
        /* A header may hold a key: nothing that is kept may tell it. */
        json_string(json, item->key, str_starts(item->key, "header.") ? "(not kept)" : item->value);
    }
    json_object_end(json);
}

static void put_config(struct json *json, const struct profile_context *context,
                       const struct finish_facts *facts)
{
    const struct profile_options *options = context->options;
    char judge_url[512] = "";
    json_object(json, "profiler_config");
    json_string(json, "dataset_id", options->dataset);
    json_string(json, "client_id", options->client);
    json_string(json, "client_base_url", or_null(facts->base_url));
    put_params(json, "dataset_params", &options->dataset_params);
    put_params(json, "client_params", &options->client_params);
    json_string(json, "model", options->model);
    json_string(json, "output_dir", options->output_dir ? options->output_dir : "runs");
    json_integer(json, "max_concurrency", options->concurrency);
    if (options->max_queries)
        json_integer(json, "max_queries", options->max_queries);
    else
        json_null(json, "max_queries");
    put_params(json, "additional_parameters", &options->request_params);
    json_integer(json, "warmup_queries", options->warmup_queries);
    json_integer(json, "repeat", options->repeat);
    json_number(json, "rate", options->rate > 0 ? options->rate : UNKNOWN);
    json_integer(json, "seed", (int64_t)options->seed);
    json_number(json, "timeout_s", options->timeout_s > 0 ? options->timeout_s : UNKNOWN);
    json_integer(json, "retries", options->retries);
    json_number(json, "idle_s", options->idle_s);
    json_string(json, "system", options->system);
    json_string(json, "template", options->template_text);
    json_string(json, "grader", options->grader);
    json_number(json, "decode_weight", options->decode_weight);
    json_string(json, "judge_client", options->judge_model ? options->judge_client : NULL);
    if (options->judge_model && options->judge_url)
        client_url_redact(options->judge_url, judge_url, sizeof judge_url);
    json_string(json, "judge_base_url", or_null(judge_url));
    json_string(json, "judge_model", options->judge_model);
    json_object_end(json);
}

static void put_idle(struct json *json, const struct baseline *idle)
{
    if (!idle) {
        json_null(json, "idle");
        return;
    }
    json_object(json, "idle");
    json_number(json, "seconds", idle->seconds);
    json_array(json, "devices");
    for (size_t i = 0; i < idle->count; i++) {
        json_object(json, NULL);
        json_string(json, "id", idle->rows[i].device);
        json_number(json, "power_w", idle->rows[i].watts);
        json_number(json, "plus_minus", idle->rows[i].sigma);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

static void put_devices(struct json *json, const struct ledger *ledger)
{
    json_array(json, "devices");
    for (size_t i = 0; ledger && i < ledger->count; i++) {
        const struct ledger_device *device = &ledger->devices[i];
        if (!device->has_energy)
            continue;
        json_object(json, NULL);
        json_string(json, "id", device->id);
        json_bool(json, "in_total", device->counted);
        energy_to_json(json, "energy", &device->energy);
        json_number(json, "power_mean_w", device->power_mean);
        json_number(json, "power_max_w", device->power_max);
        json_number(json, "cross_check_residual", device->residual);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_ours(struct json *json, const struct profile_context *context,
                     const struct finish_facts *facts, const struct sums *sums)
{
    json_object(json, "ipw");
    put_contract(json, facts, sums);
    put_more(json, context, facts, sums);
    put_idle(json, facts->idle);
    put_devices(json, facts->ledger);
    json_number(json, "started_at", facts->started_at);
    json_integer(json, "starts", facts->starts);
    json_bool(json, "interrupted", facts->interrupted);
    json_integer(json, "rows_left_out", (int64_t)facts->bad_rows);
    json_string(json, "first_row_left_out", or_null(facts->first_bad));
    json_object(json, "own");
    json_number(json, "cpu_s", facts->own.cpu_s);
    json_number(json, "rss_mb", facts->own.rss_mb);
    json_integer(json, "reads", (int64_t)facts->reads);
    json_object_end(json);
    json_object_end(json);
}

void summary_write(const struct profile_context *context, const struct finish_facts *facts,
                   const struct sums *sums, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_string(&json, "model", context->options->model);
    put_config(&json, context, facts);
    json_string(&json, "dataset", context->options->dataset);
    json_string(&json, "dataset_name", facts->dataset_name);
    json_string(&json, "hardware_label", context->host->label);
    json_number(&json, "generated_at", seconds(clock_wall()));
    json_integer(&json, "total_queries", (int64_t)sums->queries);
    put_system(&json, context);
    put_gpu(&json, context);
    json_string(&json, "output_dir", facts->directory);
    json_object(&json, "versions");
    json_string(&json, "ipw", IPW_VERSION);
    json_null(&json, "python");
    json_object_end(&json);
    if (facts->client_info)
        json_raw(&json, "client_info", facts->client_info);
    else
        json_null(&json, "client_info");
    put_ours(&json, context, facts, sums);
    json_object_end(&json);
    text_add(out, "\n");
}
