/* The result of `ipw estimate --serve`: latencies, throughput, power and energy per token against load, and the largest
 * load that meets an SLO. */
#include <math.h>

#include "core/energy.h"
#include "core/result.h"
#include "core/units.h"
#include "estimate/cost.h"
#include "estimate/serving.h"
#include "estimate/words.h"

/* The larger side of a figure's uncertainty, from steps one ± shorter and longer. */
static double plus_minus(const struct serving_outcome *outcome, double mid, double fast,
                         double slow)
{
    if (!is_known(outcome->model->relative_s))
        return UNKNOWN;
    return fmax(fabs(slow - mid), fabs(mid - fast));
}

static void put_spread(struct result *result, const struct serving_spread *spread)
{
    result_number(result, "mean", spread->mean, "s");
    for (int q = 0; q < SERVING_QUANTILES; q++)
        result_number(result, SERVING_QUANTILE_NAME[q], spread->at[q], "s");
}

static void put_latency(struct result *result, const struct serving_outcome *outcome,
                        const char *key, const struct serving_spread *mid,
                        const struct serving_spread *fast, const struct serving_spread *slow)
{
    struct serving_spread error = {.mean = plus_minus(outcome, mid->mean, fast->mean, slow->mean)};
    result_group(result, key);
    put_spread(result, mid);
    result_uncertain(result, "mean", error.mean);
    for (int q = 0; q < SERVING_QUANTILES; q++) {
        error.at[q] = plus_minus(outcome, mid->at[q], fast->at[q], slow->at[q]);
        result_uncertain(result, SERVING_QUANTILE_NAME[q], error.at[q]);
    }
    result_group(result, "plus_minus");
    put_spread(result, &error);
    result_end(result);
    result_end(result);
}

static void put_latencies(struct result *result, const struct serving_outcome *outcome,
                          const struct serving_point *point)
{
    static const struct {
        const char *key;
        size_t offset; /* of a struct serving_spread */
    } LATENCIES[] = {
        {"ttft_s", offsetof(struct serving_result, ttft_s)},
        {"tpot_s", offsetof(struct serving_result, tpot_s)},
        {"itl_s", offsetof(struct serving_result, itl_s)},
        {"latency_s", offsetof(struct serving_result, latency_s)},
    };
    for (size_t i = 0; i < COUNT_OF(LATENCIES); i++) {
        const char *mid = (const char *)&point->mid + LATENCIES[i].offset;
        const char *fast = (const char *)&point->fast + LATENCIES[i].offset;
        const char *slow = (const char *)&point->slow + LATENCIES[i].offset;
        put_latency(result, outcome, LATENCIES[i].key, (const void *)mid, (const void *)fast,
                    (const void *)slow);
    }
}

static void put_throughput(struct result *result, const struct serving_outcome *outcome,
                           const struct serving_point *point)
{
    const struct serving_result *mid = &point->mid;
    double error =
        plus_minus(outcome, mid->tokens_per_s, point->fast.tokens_per_s, point->slow.tokens_per_s);
    result_number(result, "duration_s", mid->duration_s, "s");
    result_number(result, "requests_per_s", mid->requests_per_s, "1/s");
    result_measured(result, "tokens_per_s", mid->tokens_per_s, "tokens_per_s_plus_minus", error,
                    "1/s");
    result_number(result, "tokens_per_s_per_user", 1 / mid->tpot_s.at[0], "1/s");
    result_number(result, "input_tokens_per_s", mid->input_tokens_per_s, "1/s");
}

/* Per million output tokens; devices are charged from the first request to the last token. */
static struct charge charge_of(const struct serving_outcome *outcome,
                               const struct serving_result *mid)
{
    double million_s = 1e6 / mid->tokens_per_s, joules = 1e6 * mid->joules_per_token;
    return tariff_charge(outcome->tariff, joules, outcome->model->relative_j * joules,
                         million_s * outcome->policy->replicas * outcome->config->devices);
}

static void put_energy(struct result *result, const struct serving_outcome *outcome,
                       const struct serving_result *mid)
{
    double relative = outcome->model->relative_j;
    double per_token = relative * mid->joules_per_token, watts = relative * mid->average_w;
    struct charge charge = charge_of(outcome, mid);
    result_group(result, "energy_j");
    result_number(result, "total", mid->joules, "J");
    result_uncertain(result, "total", relative * mid->joules);
    result_number(result, "steps", mid->step_j, "J");
    result_number(result, "idle", mid->idle_j, "J");
    result_number(result, "plus_minus", relative * mid->joules, "J");
    result_text(result, "method", "estimated");
    result_end(result);
    result_measured(result, "energy_per_token_j", mid->joules_per_token,
                    "energy_per_token_plus_minus", per_token, "J");
    charge_to_result(result, "million_output_tokens", &charge);
    result_measured(result, "power_w", mid->average_w, "power_plus_minus", watts, "W");
}

static void put_point(struct result *result, const char *key, const struct serving_outcome *outcome,
                      const struct serving_point *point)
{
    static const struct result_member STATE[] = {
        {"steps", offsetof(struct serving_result, steps), ""},
        {"batch", offsetof(struct serving_result, batch), ""},
        {"in_flight", offsetof(struct serving_result, in_flight), ""},
        {"waiting", offsetof(struct serving_result, waiting), ""},
        {"busy", offsetof(struct serving_result, busy), "%"},
        {"kv_cache_peak_tokens", offsetof(struct serving_result, kv_peak_tokens), ""},
        {"preemptions", offsetof(struct serving_result, preemptions), ""},
        {0},
    };
    result_group(result, key);
    result_number(result, "request_rate", point->rate, "1/s");
    put_latencies(result, outcome, point);
    put_throughput(result, outcome, point);
    put_energy(result, outcome, &point->mid);
    result_members(result, STATE, &point->mid);
    result_flag(result, "queue_grows", point->mid.grows);
    result_flag(result, "meets_slo", point->meets);
    result_end(result);
}

static void put_policy(struct result *result, const struct serving_outcome *outcome)
{
    const struct serving_policy *policy = outcome->policy;
    result_group(result, "server");
    result_text(result, "policy", policy->server);
    result_count(result, "replicas", policy->replicas);
    result_count(result, "max_num_seqs", policy->max_sequences);
    result_count(result, "max_num_batched_tokens", policy->max_tokens);
    result_count(result, "block_tokens", policy->block_tokens);
    result_number(result, "kv_cache_tokens", policy->kv_tokens, "");
    result_number(result, "kv_cache_bytes_per_token", outcome->model->kv_bytes, "B");
    result_end(result);
}

static void put_load(struct result *result, const struct serving_outcome *outcome)
{
    result_group(result, "load");
    result_count(result, "requests", outcome->load->count);
    result_text(result, "trace", outcome->trace);
    if (outcome->trace)
        result_null(result, "seed");
    else
        result_count(result, "seed", outcome->seed);
    result_number(result, "mean_prompt_tokens", outcome->load->mean_input, "");
    result_number(result, "mean_output_tokens", outcome->load->mean_output, "");
    result_end(result);
}

static void put_steps(struct result *result, const struct serving_outcome *outcome)
{
    static const struct result_member ERRORS[] = {
        {"time_relative_plus_minus", offsetof(struct serving_model, relative_s), "%"},
        {"energy_relative_plus_minus", offsetof(struct serving_model, relative_j), "%"},
        {0},
    };
    result_group(result, "step_times");
    result_text(result, "method", outcome->measured ? "measured" : "estimated");
    result_text(result, "basis",
                outcome->measured ? outcome->measured : words_kernels(outcome->spec));
    result_members(result, ERRORS, outcome->model);
    result_end(result);
}

static const char *limit_of(const struct serving_curve *curve)
{
    if (curve->largest.rate == 0)
        return NULL;
    return curve->is_limited_by_capacity ? "capacity" : "slo";
}

static void put_slo(struct result *result, const struct serving_outcome *outcome)
{
    const struct serving_slo *slo = outcome->slo;
    const struct serving_curve *curve = outcome->curve;
    if (!is_known(curve->largest.rate)) {
        result_null(result, "slo");
        return;
    }
    result_group(result, "slo");
    result_number(result, "ttft_s", slo->ttft_s, "s");
    result_number(result, "itl_s", slo->itl_s, "s");
    result_text(result, "percentile",
                slo->quantile < 0 ? "mean" : SERVING_QUANTILE_NAME[slo->quantile]);
    result_number(result, "capacity_requests_per_s", curve->capacity, "1/s");
    result_text(result, "limited_by", limit_of(curve));
    if (curve->largest.rate > 0)
        put_point(result, "largest_load", outcome, &curve->largest);
    else
        result_null(result, "largest_load");
    result_end(result);
}

static void put_aside(struct result *result, const struct serving_outcome *outcome)
{
    char words[ESTIMATE_WORDS_MAX];
    result_aside(result, "view");
    result_text(result, "device", words_device(words, outcome->hardware));
    result_text(result, "device_name", outcome->hardware->name);
    result_text(result, "runtime",
                words_runtime(words, outcome->spec, outcome->hardware, outcome->config->precision));
    result_flag(result, "reserves", outcome->policy->reserves);
    result_number(result, "capacity_requests_per_s", outcome->curve->capacity, "1/s");
    result_end(result);
}

static const struct result_column COLUMNS[] = {
    {"request_rate", "request_rate", 0},
    {"ttft_p50_s", "ttft_s.p50", 0},
    {"ttft_p95_s", "ttft_s.p95", 0},
    {"ttft_p99_s", "ttft_s.p99", 0},
    {"tpot_p50_s", "tpot_s.p50", 0},
    {"tpot_p95_s", "tpot_s.p95", 0},
    {"tpot_p99_s", "tpot_s.p99", 0},
    {"itl_p50_s", "itl_s.p50", 0},
    {"itl_p95_s", "itl_s.p95", 0},
    {"itl_p99_s", "itl_s.p99", 0},
    {"latency_p50_s", "latency_s.p50", 0},
    {"latency_p95_s", "latency_s.p95", 0},
    {"latency_p99_s", "latency_s.p99", 0},
    {"tokens_per_s", "tokens_per_s", 0},
    {"tokens_per_s_per_user", "tokens_per_s_per_user", 0},
    {"power_w", "power_w", 0},
    {"energy_per_token_j", "energy_per_token_j", 0},
    {"energy_per_token_plus_minus", "energy_per_token_plus_minus", 0},
    {"batch", "batch", 0},
    {"preemptions", "preemptions", 0},
    {"meets_slo", "meets_slo", 1},
    {0},
};

void serving_to_result(const struct serving_outcome *outcome, struct result *result)
{
    result_begin(result, "load");
    result_text(result, "model", outcome->spec->model->name);
    result_text(result, "hardware", outcome->hardware->id);
    result_text(result, "precision", words_precision(outcome->config));
    result_integer(result, "devices", outcome->config->devices);
    result_text(result, "method", "estimated");
    put_policy(result, outcome);
    put_load(result, outcome);
    put_steps(result, outcome);
    result_list(result, "points");
    for (size_t i = 0; i < outcome->curve->count; i++)
        put_point(result, NULL, outcome, &outcome->curve->points[i]);
    result_end(result);
    put_slo(result, outcome);
    put_aside(result, outcome);
    result_end(result);
    result_table(result, "points", COLUMNS);
}
