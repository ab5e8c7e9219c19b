/* Latency: time to first token (TTFT), inter-token latency (ITL), and the complete request; and how each depends on
 * length. */
#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/units.h"

static const struct ratio_row ROWS[] = {
    {"latency_s", RUN_LATENCY, RUN_NUMBERS},
    {"time_to_first_token_s", RUN_TTFT, RUN_NUMBERS},
    {"prefill_s", RUN_PREFILL_S, RUN_NUMBERS},
    {"decode_s", RUN_DECODE_S, RUN_NUMBERS},
    {"itl_median_ms", RUN_ITL_MEDIAN, RUN_NUMBERS},
    {"itl_p95_ms", RUN_ITL_P95, RUN_NUMBERS},
    {"itl_p99_ms", RUN_ITL_P99, RUN_NUMBERS},
    {"queue_s", RUN_QUEUE, RUN_NUMBERS},
    {"output_tokens_per_s", RUN_OUTPUT_TOKENS, RUN_LATENCY},
};

/* Columns whose mean is computed per group. */
static const struct ratio_row MEANS[] = {
    {"latency_s", RUN_LATENCY, RUN_NUMBERS},
    {"time_to_first_token_s", RUN_TTFT, RUN_NUMBERS},
    {"itl_median_ms", RUN_ITL_MEDIAN, RUN_NUMBERS},
};

/* Groups of queries, and the key of what they have in common. */
struct groups {
    const struct run_table *table;
    struct result *result;
    const char *name;
};

static void put_group(void *context, const char *value, const uint32_t *rows, size_t count)
{
    const struct groups *groups = context;
    const struct run_table *table = groups->table;
    struct result *result = groups->result;
    result_group(result, NULL);
    result_text(result, groups->name, value);
    result_count(result, "queries", count);
    for (size_t i = 0; i < COUNT_OF(MEANS); i++)
        ratio_sums_put(result, table, &MEANS[i], rows, count);
    result_end(result);
}

static void put_groups(const struct run_table *table, struct result *result)
{
    struct groups by_input = {table, result, "input_tokens"},
                  by_subject = {table, result, "subject"};
    result_list(result, "by_input_tokens");
    groups_by_length(table, RUN_INPUT_TOKENS, put_group, &by_input);
    result_end(result);
    result_list(result, "by_subject");
    groups_by_word(table, RUN_SUBJECT, put_group, &by_subject);
    result_end(result);
}

static enum err latency_run(struct analysis *analysis, struct error *why)
{
    const struct run_table *table = analysis->table;
    struct result *result = analysis->result;
    if (!table->numbers[RUN_LATENCY] && !table->numbers[RUN_TTFT])
        return no_data_error(table, "neither latency nor time to first token is", why);
    result_group(result, "summary");
    result_count(result, "queries", run_completed_count(table));
    result_number(result, "output_tokens_per_s", table->summary.output_tokens_per_s, "1/s");
    result_number(result, "concurrency", integer_number(table->summary.config_concurrency), "");
    result_end(result);
    result_group(result, "data");
    ratio_spreads(result, "times", table, ROWS, COUNT_OF(ROWS));
    put_groups(table, result);
    result_end(result);
    return ERR_OK;
}

static const struct result_phrase FINDING[] = {
    {"median ", "data.times.latency_s.p50", ""},
    {", p95 ", "data.times.latency_s.p95", ""},
    {", median TTFT ", "data.times.time_to_first_token_s.p50", ""},
    {", output tokens ", "summary.output_tokens_per_s", ""},
    {0},
};

const struct analysis_driver analysis_latency = {
    .name = "latency",
    .summary = "time to first token, inter-token latency, total latency: percentiles, by prompt "
               "length and subject",
    .needs = {RUN_WANT(RUN_LATENCY) | RUN_WANT(RUN_TTFT) | RUN_WANT(RUN_PREFILL_S) |
                  RUN_WANT(RUN_DECODE_S) | RUN_WANT(RUN_ITL_MEDIAN) | RUN_WANT(RUN_ITL_P95) |
                  RUN_WANT(RUN_ITL_P99) | RUN_WANT(RUN_QUEUE) | RUN_WANT(RUN_INPUT_TOKENS) |
                  RUN_WANT(RUN_OUTPUT_TOKENS),
              RUN_WANT(RUN_SUBJECT)},
    .finding = FINDING,
    .run = latency_run,
};
