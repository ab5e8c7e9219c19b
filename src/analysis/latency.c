/* How long answers take: to the first token, between tokens, in all; and how it goes with the length. */
#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/json.h"
#include "core/units.h"

static const struct {
    const char *key;
    enum run_number numerator, denominator; /* RUN_NUMBERS: the column itself */
} ROWS[] = {
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

static enum err put_times(const struct run_table *table, struct json *json)
{
    enum err err = ERR_OK;
    json_object(json, "times");
    for (size_t i = 0; !err && i < sizeof ROWS / sizeof *ROWS; i++)
        err = put_column_spread(json, ROWS[i].key, table, ROWS[i].numerator, ROWS[i].denominator);
    json_object_end(json);
    return err;
}

/* The mean, and of how many queries it is: not every answer came in pieces. */
static void put_mean(struct json *json, const char *key, const char *queries_key,
                     const struct run_table *table, enum run_number column, const uint32_t *rows,
                     size_t count)
{
    struct ratio_sums sums = {0};
    for (size_t i = 0; i < count; i++) {
        double value = run_number(table, column, rows[i]);
        if (is_known(value)) {
            sums.rows++;
            sums.numerator += value;
            sums.denominator++;
        }
    }
    json_number(json, key, ratio_value(&sums));
    json_integer(json, queries_key, (int64_t)sums.rows);
}

/* Groups of queries, and the key of what they have in common. */
struct groups {
    const struct run_table *table;
    struct json *json;
    const char *name;
};

static enum err put_group(void *context, const char *value, const uint32_t *rows, size_t count)
{
    const struct groups *groups = context;
    const struct run_table *table = groups->table;
    struct json *json = groups->json;
    json_object(json, NULL);
    json_string(json, groups->name, value);
    json_integer(json, "queries", (int64_t)count);
    put_mean(json, "latency_s", "latency_s_queries", table, RUN_LATENCY, rows, count);
    put_mean(json, "time_to_first_token_s", "time_to_first_token_s_queries", table, RUN_TTFT, rows,
             count);
    put_mean(json, "itl_median_ms", "itl_median_ms_queries", table, RUN_ITL_MEDIAN, rows, count);
    json_object_end(json);
    return ERR_OK;
}

static enum err put_groups(const struct run_table *table, struct json *json)
{
    struct groups by_input = {table, json, "input_tokens"}, by_subject = {table, json, "subject"};
    json_array(json, "by_input_tokens");
    enum err err = groups_by_length(table, RUN_INPUT_TOKENS, put_group, &by_input);
    json_array_end(json);
    json_array(json, "by_subject");
    if (!err)
        err = groups_by_word(table, RUN_SUBJECT, put_group, &by_subject);
    json_array_end(json);
    return err;
}

static enum err latency_run(struct analysis *analysis, struct error *why)
{
    const struct run_table *table = analysis->table;
    struct json *json = analysis->json;
    if (!table->numbers[RUN_LATENCY] && !table->numbers[RUN_TTFT])
        return lacks(table, "neither latency nor time to first token is", why);
    json_object(json, "summary");
    json_integer(json, "queries", (int64_t)(table->rows - table->failed));
    json_number(json, "output_tokens_per_s", table->summary.output_tokens_per_s);
    json_number(json, "concurrency", integer_number(table->summary.config_concurrency));
    json_object_end(json);
    json_object(json, "data");
    enum err err = put_times(table, json);
    if (!err)
        err = put_groups(table, json);
    json_object_end(json);
    return err;
}

const struct analysis_driver analysis_latency = {
    .name = "latency",
    .summary = "time to first token, inter-token latency, total latency: percentiles, by prompt "
               "length and subject",
    .needs = {RUN_WANT(RUN_LATENCY) | RUN_WANT(RUN_TTFT) | RUN_WANT(RUN_PREFILL_S) |
                  RUN_WANT(RUN_DECODE_S) | RUN_WANT(RUN_ITL_MEDIAN) | RUN_WANT(RUN_ITL_P95) |
                  RUN_WANT(RUN_ITL_P99) | RUN_WANT(RUN_QUEUE) | RUN_WANT(RUN_INPUT_TOKENS) |
                  RUN_WANT(RUN_OUTPUT_TOKENS),
              RUN_WANT(RUN_SUBJECT)},
    .run = latency_run,
};
