#include "runner/profile/record.h"

#include <stdlib.h>

#include "core/json.h"
#include "core/text.h"
#include "metrics/prices.h"
#include "runner/profile/state.h"
#include "runner/profile/supply.h"
#include "stats/online.h"
#include "stats/quantile.h"

static void put_known(struct json *json, const char *key, double value)
{
    if (is_known(value))
        json_number(json, key, value);
}

static void put_text(struct json *json, const char *key, const char *value)
{
    if (value && value[0])
        json_string(json, key, value);
}

static void put_count(struct json *json, const char *key, int64_t value)
{
    if (value >= 0)
        json_integer(json, key, value);
}

static double span_s(nanos from, nanos to)
{
    return from && to ? seconds(to - from) : UNKNOWN;
}

static double ratio(double a, double b)
{
    return is_known(a) && b > 0 ? a / b : UNKNOWN;
}

static double known_count(int64_t count)
{
    return count >= 0 ? (double)count : UNKNOWN;
}

/* ---- the query ---- */

bool reply_has_phases(const struct completion *reply)
{
    return reply->first_token &&
           (reply->last_token > reply->first_token || reply->output_tokens == 1);
}

/* Between pieces, in ms: what a reader of the answer sees. */
static void put_gaps(struct json *json, const struct arrivals *arrivals)
{
    static const double PS[] = {0.5, 0.9, 0.95, 0.99};
    static const char *const KEYS[] = {"median_itl_ms", "p90_itl_ms", "p95_itl_ms", "p99_itl_ms"};
    if (arrivals->count < 2)
        return;
    size_t count = arrivals->count - 1;
    double *gaps = malloc(count * sizeof *gaps);
    if (!gaps)
        return;
    struct online spread = {0};
    double found[4];
    for (size_t i = 0; i < count; i++) {
        gaps[i] = 1e3 * seconds(arrivals->times[i + 1] - arrivals->times[i]);
        online_add(&spread, gaps[i]);
    }
    quantiles(gaps, count, PS, 4, found);
    free(gaps);
    for (unsigned i = 0; i < 4; i++)
        put_known(json, KEYS[i], found[i]);
    put_known(json, "itl_std_ms", online_stddev(&spread));
}

static void put_latency(struct json *json, const struct completion *reply)
{
    double total_s = span_s(reply->sent, reply->done);
    double output = known_count(reply->output_tokens);
    json_object(json, "latency_metrics");
    put_known(json, "per_token_ms", 1e3 * ratio(total_s, output));
    put_known(json, "throughput_tokens_per_sec", output > 0 ? ratio(output, total_s) : UNKNOWN);
    put_known(json, "time_to_first_token_seconds", span_s(reply->sent, reply->first_token));
    put_known(json, "total_query_seconds", total_s);
    put_gaps(json, &reply->arrivals);
    json_object_end(json);
}

static void put_tokens(struct json *json, const struct completion *reply)
{
    json_object(json, "token_metrics");
    put_count(json, "input", reply->prompt_tokens);
    put_count(json, "output", reply->output_tokens);
    if (reply->prompt_tokens >= 0 && reply->output_tokens >= 0)
        json_integer(json, "total", reply->prompt_tokens + reply->output_tokens);
    json_object_end(json);
}

static void put_compute(struct json *json, const struct profile *profile,
                        const struct completion *reply)
{
    struct efficiency_inputs facts = profile->facts;
    struct efficiency figures;
    facts.prompt_tokens = known_count(reply->prompt_tokens);
    facts.output_tokens = known_count(reply->output_tokens);
    efficiency_of(&facts, &figures);
    if (!is_known(figures.flops))
        return;
    json_object(json, "compute_metrics");
    json_number(json, "flops_per_request", figures.flops);
    json_number(json, "macs_per_request", figures.flops / 2);
    json_number(json, "total_flops", figures.flops);
    json_number(json, "flops_per_token", figures.flops_per_token);
    json_object_end(json);
}

static void put_cost(struct json *json, const struct profile *profile,
                     const struct completion *reply)
{
    if (!profile->prices)
        return;
    struct token_cost cost =
        prices_tokens(profile->prices, profile->options->model, known_count(reply->prompt_tokens),
                      known_count(reply->cached_tokens), known_count(reply->output_tokens));
    if (!is_known(cost.input) && !is_known(cost.output))
        return;
    json_object(json, "cost");
    put_known(json, "input_cost_usd", cost.input);
    put_known(json, "output_cost_usd", cost.output);
    put_known(json, "total_cost_usd", cost.total);
    json_object_end(json);
}

static void put_evaluation(struct json *json, const char *grader, const struct grade *grade)
{
    struct text text = {0};
    struct json metadata;
    bool graded = grade->verdict != VERDICT_NULL;
    json_init(&metadata, &text, false);
    json_object(&metadata, NULL);
    json_string(&metadata, "grader", grader);
    put_known(&metadata, "score", grade->score);
    put_text(&metadata, "label", grade->label);
    put_text(&metadata, "extracted", grade->extracted);
    put_text(&metadata, "reason", grade->reason);
    json_integer(&metadata, "evaluation_attempts", grade->attempts ? grade->attempts : 1);
    if (!graded && grade->attempts) /* a judge was asked in vain: the Python IPW's word for it */
        json_bool(&metadata, "evaluation_failed", true);
    json_object_end(&metadata);
    if (graded)
        json_bool(json, "lm_correctness", grade->verdict == VERDICT_TRUE);
    json_object(json, "evaluation");
    if (graded)
        json_bool(json, "is_correct", grade->verdict == VERDICT_TRUE);
    json_string(json, "metadata", text_get(&text));
    json_object_end(json);
    text_release(&text);
}

static void open_metrics(struct json *json, const struct profile *profile)
{
    json_object(json, "model_metrics");
    json_object(json, profile->options->model);
}

static void close_metrics(struct json *json)
{
    json_object_end(json);
    json_object_end(json);
}

static void begin_line(struct json *json, struct text *line, const char *kind, const char *key)
{
    text_clear(line);
    json_init(json, line, false);
    json_object(json, NULL);
    json_string(json, "kind", kind);
    json_string(json, "key", key);
}

static void put_own(struct json *json, const struct profile *profile,
                    const struct answered *outcome)
{
    const struct completion *reply = outcome->reply;
    const struct query *query = outcome->query;
    json_object(json, "ipw");
    json_string(json, "key", query->key);
    json_string(json, "id", query->item.id);
    json_integer(json, "index", (int64_t)query->index);
    json_integer(json, "repeat", query->repeat);
    json_integer(json, "start", profile->start);
    json_string(json, "status", outcome->err ? "failed" : "completed");
    put_text(json, "error", outcome->why);
    if (reply->status)
        json_integer(json, "http_status", reply->status);
    json_integer(json, "attempts", outcome->attempts);
    put_text(json, "finish_reason", reply->finish_reason);
    json_number(json, "started_at",
                seconds(profile->zero_wall) + seconds(reply->sent - profile->zero));
    if (query->due)
        json_number(json, "queue_s", seconds(outcome->first_sent - query->due));
    if (reply_has_phases(reply)) {
        put_known(json, "prefill_s", span_s(reply->sent, reply->first_token));
        put_known(json, "decode_s", span_s(reply->first_token, reply->done));
    }
    put_known(json, "server_load_s", reply->server_load_s);
    put_known(json, "server_prefill_s", reply->server_prefill_s);
    put_known(json, "server_decode_s", reply->server_decode_s);
    put_count(json, "prompt_cached_tokens", reply->cached_tokens);
    put_count(json, "reasoning_tokens", reply->reasoning_tokens);
    json_integer(json, "pieces", (int64_t)reply->arrivals.count);
    json_object_end(json);
}

void record_query(const struct profile *profile, const struct answered *outcome, struct text *line)
{
    const struct query *query = outcome->query;
    const struct completion *reply = outcome->reply;
    struct json json;
    begin_line(&json, line, "query", query->key);
    json_string(&json, "problem", query->item.problem);
    json_string(&json, "answer", query->item.answer);
    if (query->item.metadata[0])
        json_raw(&json, "dataset_metadata", query->item.metadata);
    json_string(&json, "subject", query->item.subject);
    json_object(&json, "model_answers");
    json_string(&json, profile->options->model, text_get(&reply->content));
    json_object_end(&json);
    open_metrics(&json, profile);
    put_compute(&json, profile, reply);
    put_latency(&json, reply);
    put_tokens(&json, reply);
    put_cost(&json, profile, reply);
    json_string(&json, "lm_response", text_get(&reply->content));
    if (outcome->grader)
        put_evaluation(&json, outcome->grader, &outcome->grade);
    close_metrics(&json);
    put_own(&json, profile, outcome);
    if (reply->reasoning.length)
        json_string(&json, "reasoning", text_get(&reply->reasoning));
    json_object_end(&json);
}

/* ---- spans ---- */

static const char *const SPAN_NAMES[SPAN_COUNT] = {
    [SPAN_REQUEST] = "request",
    [SPAN_FAILED_ATTEMPT] = "failed_attempt",
    [SPAN_JUDGE] = "judge",
};

void record_span(const struct profile *profile, enum span_kind kind, const char *key,
                 unsigned attempt, const struct completion *reply, struct text *line)
{
    struct json json;
    text_clear(line);
    json_init(&json, line, false);
    json_object(&json, NULL);
    json_string(&json, "key", key);
    json_integer(&json, "start", profile->start);
    json_string(&json, "span", SPAN_NAMES[kind]);
    json_integer(&json, "attempt", attempt);
    json_number(&json, "from_s", seconds(reply->sent - profile->zero));
    if (reply->first_token)
        json_number(&json, "first_token_s", seconds(reply->first_token - profile->zero));
    json_number(&json, "to_s", seconds(reply->done - profile->zero));
    put_count(&json, "input_tokens", reply->prompt_tokens);
    put_count(&json, "output_tokens", reply->output_tokens);
    /* Each piece after the one before, in whole microseconds: half the size of full times. */
    json_array(&json, "piece_gaps_us");
    nanos before = reply->first_token ? reply->first_token : reply->sent;
    for (size_t i = 0; i < reply->arrivals.count; i++) {
        json_integer(&json, NULL, (reply->arrivals.times[i] - before) / NS_PER_US);
        before += (reply->arrivals.times[i] - before) / NS_PER_US * NS_PER_US;
    }
    json_array_end(&json);
    json_object_end(&json);
}

/* ---- the judge ---- */

void record_grade(const struct profile *profile, const char *key, const char *grader,
                  const struct grade *grade, struct text *line)
{
    struct json json;
    begin_line(&json, line, "grade", key);
    open_metrics(&json, profile);
    put_evaluation(&json, grader, grade);
    close_metrics(&json);
    json_object_end(&json);
}
