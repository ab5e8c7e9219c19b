/* Serving a model under load, for `ipw estimate --serve`: latencies, throughput, power and energy per token against
 * load, and the largest load that meets an SLO. */
#include <math.h>

#include "core/energy.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "estimate/serving.h"
#include "estimate/words.h"
#include "report/text/estimate_report.h"
#include "report/text/estimate_words.h"
#include "report/text/format.h"

/* ---- figures ---- */

/* The larger side of a figure's uncertainty, from steps one ± shorter and longer. */
static double plus_minus(const struct serving_report *report, double mid, double fast, double slow)
{
    return is_known(report->relative_s) ? fmax(fabs(slow - mid), fabs(mid - fast)) : UNKNOWN;
}

static const struct {
    const char *title, *key;
    size_t offset; /* in struct serving_spread */
} LATENCIES[] = {
    {"TTFT", "ttft_s", offsetof(struct serving_result, ttft_s)},
    {"TPOT", "tpot_s", offsetof(struct serving_result, tpot_s)},
    {"ITL", "itl_s", offsetof(struct serving_result, itl_s)},
    {"latency", "latency_s", offsetof(struct serving_result, latency_s)},
};
enum { LATENCY_COUNT = sizeof LATENCIES / sizeof *LATENCIES, LATENCIES_SHOWN = 3 };

static const struct serving_spread *spread_at(const struct serving_result *result, size_t latency)
{
    return (const void *)((const char *)result + LATENCIES[latency].offset);
}

static double user_rate(const struct serving_result *result)
{
    return 1 / result->tpot_s.at[0];
}

/* Per million output tokens; devices are charged from the first request to the last token. */
static struct charge charge_of(const struct serving_report *report,
                               const struct serving_result *result)
{
    double million_s = 1e6 / result->tokens_per_s, joules = 1e6 * result->joules_per_token;
    return tariff_charge(report->tariff, joules, report->relative_j * joules,
                         million_s * report->policy->replicas * report->config->devices);
}

/* ---- text ---- */

static void put_line(struct text *out, bool is_markdown, const char *name, const char *words)
{
    if (is_markdown)
        text_addf(out, "- %s: %s\n", name, words);
    else
        text_addf(out, "   %-12s %s\n", name, words);
}

static void put_load(const struct serving_report *report, bool is_markdown, struct text *out)
{
    const struct serving_load *load = report->load;
    char words[2 * WORDS_MAX];
    str_format(words, sizeof words,
               "%zu requests %s%.120s; on average %.0f prompt and %.0f output tokens", load->count,
               report->trace ? "of " : "with Poisson arrivals", report->trace ? report->trace : "",
               load->mean_input, load->mean_output);
    put_line(out, is_markdown, "load", words);
}

static void put_server(const struct serving_report *report, bool is_markdown, struct text *out)
{
    const struct serving_policy *policy = report->policy;
    char words[2 * WORDS_MAX], cache[WORDS_MAX], bytes[FORMAT_MAX];
    if (is_known(policy->kv_tokens))
        str_format(cache, sizeof cache, "KV cache of %.0f tokens (%s%s)", policy->kv_tokens,
                   format_bytes(bytes, policy->kv_tokens * report->kv_bytes),
                   report->config->devices > 1 ? " per device" : "");
    else
        str_format(cache, sizeof cache, "KV cache without a limit");
    str_format(words, sizeof words, "%s: %u sequences and %u tokens per step, %s%s", policy->server,
               policy->max_sequences, policy->max_tokens, cache,
               policy->reserves ? ", reserved on admission" : "");
    put_line(out, is_markdown, "server", words);
    if (policy->replicas > 1) {
        str_format(words, sizeof words, "%u, a request goes to the one with the fewest in flight",
                   policy->replicas);
        put_line(out, is_markdown, "replicas", words);
    }
}

static void relative_words(char words[FORMAT_MAX], double relative)
{
    if (is_known(relative))
        str_format(words, FORMAT_MAX, relative < 0.01 ? "±%.1g %%" : "±%.0f %%", 100 * relative);
    else
        str_copy(words, FORMAT_MAX, "± unknown");
}

static void put_steps(const struct serving_report *report, bool is_markdown, struct text *out)
{
    char words[2 * WORDS_MAX], time[FORMAT_MAX], energy[FORMAT_MAX];
    relative_words(time, report->relative_s);
    relative_words(energy, report->relative_j);
    if (report->measured)
        str_format(words, sizeof words, "times fitted to %.120s, %s; watts estimated, %s",
                   report->measured, time, energy);
    else
        str_format(words, sizeof words, "%s: time %s, energy %s", words_kernels(report->spec), time,
                   energy);
    put_line(out, is_markdown, "steps", words);
}

static void put_head(const struct serving_report *report, bool color, bool is_markdown,
                     struct text *out)
{
    char device[WORDS_MAX], runtime[WORDS_MAX], setting[WORDS_MAX] = "";
    words_device(device, report->hardware);
    words_runtime(runtime, report->spec, report->hardware, report->config->precision);
    words_add(setting, "%s", words_precision(report->config));
    if (report->config->devices > 1)
        words_add(setting, "%d devices", report->config->devices);
    text_addf(out, "%s%s%s on %.100s under load%s, %s: %s\n\n", is_markdown ? "### " : "\n ",
              color ? "\033[1m" : "", report->spec->model->name, device, color ? "\033[0m" : "",
              runtime, setting);
    put_load(report, is_markdown, out);
    put_server(report, is_markdown, out);
    put_steps(report, is_markdown, out);
}

static void print_table(struct table *table, bool color, bool is_markdown, struct text *out)
{
    text_add(out, "\n");
    if (is_markdown)
        table_write_markdown(table, out);
    else
        table_write(table, "   ", color, out);
    table_release(table);
}

static void add_rate(struct table *table, double rate)
{
    table_addf(table, "%.4g", rate);
}

static void put_latencies(const struct serving_report *report, bool color, bool is_markdown,
                          struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"requests/s", true}, {"TTFT p50", true}, {"p95", true}, {"p99", true},
        {"TPOT p50", true},   {"p95", true},      {"p99", true}, {"ITL p50", true},
        {"p95", true},        {"p99", true},      {"", false},
    };
    struct table table = TABLE(COLUMNS);
    for (size_t i = 0; i < report->curve->count; i++) {
        const struct serving_point *point = &report->curve->points[i];
        char cell[WORDS_MAX];
        add_rate(&table, point->rate);
        for (size_t k = 0; k < LATENCIES_SHOWN; k++)
            for (int q = 0; q < SERVING_QUANTILES; q++)
                table_add(&table, format_si(cell, spread_at(&point->mid, k)->at[q], "s"));
        table_add(&table, point->rate > report->curve->capacity ? "exceeds capacity"
                          : !point->meets                       ? "misses the SLO"
                          : point->mid.grows                    ? "queue grows"
                                                                : "");
    }
    print_table(&table, color, is_markdown, out);
}

static void put_throughput(const struct serving_report *report, bool color, bool is_markdown,
                           struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"requests/s", true},
        {"tokens/s per user", true},
        {"tokens/s", true},
        {"± tokens/s", true},
        {"batch", true},
        {"KV cache", true},
        {"preempted", true},
        {"busy", true},
        {"power", true},
        {"energy per token", true},
        {"cost per M tokens", true},
        {"CO2 per M tokens", true},
    };
    struct table table = TABLE(COLUMNS);
    for (size_t i = 0; i < report->curve->count; i++) {
        const struct serving_point *point = &report->curve->points[i];
        const struct serving_result *mid = &point->mid;
        char cell[WORDS_MAX];
        double full = mid->kv_peak_tokens / report->policy->kv_tokens;
        add_rate(&table, point->rate);
        table_add(&table, words_rate(cell, user_rate(mid)));
        table_add(&table, words_rate(cell, mid->tokens_per_s));
        table_add(&table,
                  words_rate(cell, plus_minus(report, mid->tokens_per_s, point->fast.tokens_per_s,
                                              point->slow.tokens_per_s)));
        table_addf(&table, "%.1f", mid->batch);
        table_add(&table, is_known(report->policy->kv_tokens) ? words_share(cell, full) : "");
        table_addf(&table, "%.0f", mid->preemptions);
        table_add(&table, words_share(cell, mid->busy));
        table_add(&table, words_estimated(cell, mid->average_w, UNKNOWN, "W"));
        table_add(&table, words_estimated(cell, mid->joules_per_token,
                                          report->relative_j * mid->joules_per_token, "J"));
        struct charge charge = charge_of(report, mid);
        table_add(&table, is_known(charge.cost) ? format_cost(cell, &charge, "") : "");
        table_add(&table, is_known(charge.gco2e) ? format_emissions(cell, &charge) : "");
    }
    print_table(&table, color, is_markdown, out);
}

static void slo_words(const struct serving_slo *slo, char words[WORDS_MAX])
{
    char cell[FORMAT_MAX];
    const char *name = slo->quantile < 0 ? "mean" : SERVING_QUANTILE_NAME[slo->quantile];
    words[0] = '\0';
    if (is_known(slo->ttft_s))
        words_add(words, "%s TTFT of %s", name, format_si(cell, slo->ttft_s, "s"));
    if (is_known(slo->itl_s))
        words_add(words, "%s ITL of %s", name, format_si(cell, slo->itl_s, "s"));
}

static void put_largest(const struct serving_report *report, struct text *out)
{
    const struct serving_point *largest = &report->curve->largest;
    char slo[WORDS_MAX], each[WORDS_MAX], rate[WORDS_MAX];
    if (!is_known(largest->rate))
        return;
    slo_words(report->slo, slo);
    if (largest->rate == 0) {
        text_addf(out, "\n   No load meets a %s.\n", slo);
        return;
    }
    text_addf(
        out,
        "\n   The largest load that meets a %s%s %.3g requests/s (%s tokens/s, %s per token)\n",
        slo, report->curve->is_limited_by_capacity ? " is limited by capacity, about" : ":",
        largest->rate, words_rate(rate, largest->mid.tokens_per_s),
        words_estimated(each, largest->mid.joules_per_token,
                        report->relative_j * largest->mid.joules_per_token, "J"));
}

static void put_all(const struct serving_report *report, bool color, bool is_markdown,
                    struct text *out)
{
    put_head(report, color, is_markdown, out);
    put_latencies(report, color, is_markdown, out);
    put_throughput(report, color, is_markdown, out);
    put_largest(report, out);
    text_addf(out, "\n%s~ simulated with a model of the device, not measured\n%s",
              is_markdown ? "\\" : "   ", is_markdown ? "" : "\n");
}

void serving_text(const struct serving_report *report, bool color, struct text *out)
{
    put_all(report, color, false, out);
}

void serving_markdown(const struct serving_report *report, struct text *out)
{
    put_all(report, false, true, out);
}

/* ---- JSON ---- */

static void latency_to_json(struct json *json, const struct serving_report *report,
                            const struct serving_point *point, size_t latency)
{
    const struct serving_spread *mid = spread_at(&point->mid, latency);
    const struct serving_spread *fast = spread_at(&point->fast, latency);
    const struct serving_spread *slow = spread_at(&point->slow, latency);
    json_object(json, LATENCIES[latency].key);
    json_number(json, "mean", mid->mean);
    for (int q = 0; q < SERVING_QUANTILES; q++)
        json_number(json, SERVING_QUANTILE_NAME[q], mid->at[q]);
    json_object(json, "plus_minus");
    json_number(json, "mean", plus_minus(report, mid->mean, fast->mean, slow->mean));
    for (int q = 0; q < SERVING_QUANTILES; q++)
        json_number(json, SERVING_QUANTILE_NAME[q],
                    plus_minus(report, mid->at[q], fast->at[q], slow->at[q]));
    json_object_end(json);
    json_object_end(json);
}

static void energy_of_result_to_json(struct json *json, const struct serving_report *report,
                                     const struct serving_result *result)
{
    double relative = report->relative_j;
    json_object(json, "energy_j");
    json_number(json, "total", result->joules);
    json_number(json, "steps", result->step_j);
    json_number(json, "idle", result->idle_j);
    json_number(json, "plus_minus", relative * result->joules);
    json_string(json, "method", "estimated");
    json_object_end(json);
    json_number(json, "energy_per_token_j", result->joules_per_token);
    json_number(json, "energy_per_token_plus_minus", relative * result->joules_per_token);
    struct charge charge = charge_of(report, result);
    json_number(json, "cost_per_million_output_tokens", charge.cost);
    json_number(json, "cost_per_million_output_tokens_plus_minus", charge.cost_plus_minus);
    json_number(json, "gco2e_per_million_output_tokens", charge.gco2e);
    json_number(json, "gco2e_per_million_output_tokens_plus_minus", charge.gco2e_plus_minus);
    json_number(json, "power_w", result->average_w);
    json_number(json, "power_plus_minus", relative * result->average_w);
}

static void point_to_json(struct json *json, const char *key, const struct serving_report *report,
                          const struct serving_point *point)
{
    const struct serving_result *mid = &point->mid;
    json_object(json, key);
    json_number(json, "request_rate", point->rate);
    for (size_t k = 0; k < LATENCY_COUNT; k++)
        latency_to_json(json, report, point, k);
    json_number(json, "duration_s", mid->duration_s);
    json_number(json, "requests_per_s", mid->requests_per_s);
    json_number(json, "tokens_per_s", mid->tokens_per_s);
    json_number(
        json, "tokens_per_s_plus_minus",
        plus_minus(report, mid->tokens_per_s, point->fast.tokens_per_s, point->slow.tokens_per_s));
    json_number(json, "tokens_per_s_per_user", user_rate(mid));
    json_number(json, "input_tokens_per_s", mid->input_tokens_per_s);
    energy_of_result_to_json(json, report, mid);
    json_number(json, "steps", mid->steps);
    json_number(json, "batch", mid->batch);
    json_number(json, "in_flight", mid->in_flight);
    json_number(json, "waiting", mid->waiting);
    json_number(json, "busy", mid->busy);
    json_number(json, "kv_cache_peak_tokens", mid->kv_peak_tokens);
    json_number(json, "preemptions", mid->preemptions);
    json_bool(json, "queue_grows", mid->grows);
    json_bool(json, "meets_slo", point->meets);
    json_object_end(json);
}

static void setting_to_json(struct json *json, const struct serving_report *report)
{
    const struct serving_policy *policy = report->policy;
    json_object(json, "server");
    json_string(json, "policy", policy->server);
    json_integer(json, "replicas", policy->replicas);
    json_integer(json, "max_num_seqs", policy->max_sequences);
    json_integer(json, "max_num_batched_tokens", policy->max_tokens);
    json_integer(json, "block_tokens", policy->block_tokens);
    json_number(json, "kv_cache_tokens", policy->kv_tokens);
    json_number(json, "kv_cache_bytes_per_token", report->kv_bytes);
    json_object_end(json);
    json_object(json, "load");
    json_integer(json, "requests", (int64_t)report->load->count);
    json_string(json, "trace", report->trace);
    if (report->trace)
        json_null(json, "seed");
    else
        json_integer(json, "seed", report->seed);
    json_number(json, "mean_prompt_tokens", report->load->mean_input);
    json_number(json, "mean_output_tokens", report->load->mean_output);
    json_object_end(json);
    json_object(json, "step_times");
    json_string(json, "method", report->measured ? "measured" : "estimated");
    json_string(json, "basis", report->measured ? report->measured : words_kernels(report->spec));
    json_number(json, "time_relative_plus_minus", report->relative_s);
    json_number(json, "energy_relative_plus_minus", report->relative_j);
    json_object_end(json);
}

static void slo_to_json(struct json *json, const struct serving_report *report)
{
    const struct serving_slo *slo = report->slo;
    const struct serving_point *largest = &report->curve->largest;
    if (!is_known(largest->rate)) {
        json_null(json, "slo");
        return;
    }
    json_object(json, "slo");
    json_number(json, "ttft_s", slo->ttft_s);
    json_number(json, "itl_s", slo->itl_s);
    json_string(json, "percentile",
                slo->quantile < 0 ? "mean" : SERVING_QUANTILE_NAME[slo->quantile]);
    json_number(json, "capacity_requests_per_s", report->curve->capacity);
    json_string(json, "limited_by",
                largest->rate == 0                      ? NULL
                : report->curve->is_limited_by_capacity ? "capacity"
                                                        : "slo");
    if (largest->rate > 0)
        point_to_json(json, "largest_load", report, largest);
    else
        json_null(json, "largest_load");
    json_object_end(json);
}

void serving_json(const struct serving_report *report, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_string(&json, "model", report->spec->model->name);
    json_string(&json, "hardware", report->hardware->id);
    json_string(&json, "precision", words_precision(report->config));
    json_integer(&json, "devices", report->config->devices);
    json_string(&json, "method", "estimated");
    setting_to_json(&json, report);
    json_array(&json, "points");
    for (size_t i = 0; i < report->curve->count; i++)
        point_to_json(&json, NULL, report, &report->curve->points[i]);
    json_array_end(&json);
    slo_to_json(&json, report);
    json_object_end(&json);
    text_add(out, "\n");
}

/* ---- CSV ---- */

void serving_csv(const struct serving_report *report, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"request_rate", true},
        {"ttft_p50_s", true},
        {"ttft_p95_s", true},
        {"ttft_p99_s", true},
        {"tpot_p50_s", true},
        {"tpot_p95_s", true},
        {"tpot_p99_s", true},
        {"itl_p50_s", true},
        {"itl_p95_s", true},
        {"itl_p99_s", true},
        {"latency_p50_s", true},
        {"latency_p95_s", true},
        {"latency_p99_s", true},
        {"tokens_per_s", true},
        {"tokens_per_s_per_user", true},
        {"power_w", true},
        {"energy_per_token_j", true},
        {"energy_per_token_plus_minus", true},
        {"batch", true},
        {"preemptions", true},
        {"meets_slo", true},
    };
    struct table table = TABLE(COLUMNS);
    for (size_t i = 0; i < report->curve->count; i++) {
        const struct serving_point *point = &report->curve->points[i];
        const struct serving_result *mid = &point->mid;
        table_add_number(&table, point->rate);
        for (size_t k = 0; k < LATENCY_COUNT; k++)
            for (int q = 0; q < SERVING_QUANTILES; q++)
                table_add_number(&table, spread_at(mid, k)->at[q]);
        table_add_number(&table, mid->tokens_per_s);
        table_add_number(&table, user_rate(mid));
        table_add_number(&table, mid->average_w);
        table_add_number(&table, mid->joules_per_token);
        table_add_number(&table, report->relative_j * mid->joules_per_token);
        table_add_number(&table, mid->batch);
        table_add_number(&table, mid->preemptions);
        table_add_number(&table, point->meets);
    }
    table_write_csv(&table, out);
    table_release(&table);
}
