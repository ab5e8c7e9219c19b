/* Records of queries and grades; records_energy.c has those of energies. */
#include "runner/profile/records.h"

#include <stdlib.h>

#include "core/json.h"
#include "metrics/prices.h"
#include "rundir/record.h"
#include "runner/profile/state.h"
#include "stats/online.h"
#include "stats/quantile.h"

static double span_s(nanos from, nanos to)
{
    return from && to ? seconds(to - from) : UNKNOWN;
}

double known_count(int64_t count)
{
    return count >= 0 ? (double)count : UNKNOWN;
}

static int64_t count_or_unknown(int64_t count)
{
    return count >= 0 ? count : INTEGER_UNKNOWN;
}

bool reply_has_phases(const struct completion *reply)
{
    return reply->first_token &&
           (reply->last_token > reply->first_token || reply->output_tokens == 1);
}

/* ---- queries ---- */

/* Inter-token latency, in ms, as a reader of the answer sees it: between chunks. */
static void fill_gaps(const struct arrivals *arrivals, struct record *out)
{
    static const double PS[] = {0.5, 0.9, 0.95, 0.99};
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
    out->itl_median_ms = found[0];
    out->itl_p90_ms = found[1];
    out->itl_p95_ms = found[2];
    out->itl_p99_ms = found[3];
    out->itl_std_ms = online_stddev(&spread);
}

static void fill_reply(const struct completion *reply, struct record *out)
{
    double output = known_count(reply->output_tokens);
    out->model_answer = out->lm_response = text_get(&reply->content);
    if (reply->reasoning.length)
        out->reasoning = text_get(&reply->reasoning);
    out->latency_s = span_s(reply->sent, reply->done);
    out->ttft_s = span_s(reply->sent, reply->first_token);
    out->per_token_ms = 1e3 * ratio(out->latency_s, output);
    out->tokens_per_s = output > 0 ? ratio(output, out->latency_s) : UNKNOWN;
    fill_gaps(&reply->arrivals, out);
    out->input_tokens = count_or_unknown(reply->prompt_tokens);
    out->output_tokens = count_or_unknown(reply->output_tokens);
    if (reply->prompt_tokens >= 0 && reply->output_tokens >= 0)
        out->total_tokens = reply->prompt_tokens + reply->output_tokens;
    out->scored_tokens = count_or_unknown(reply->scored_tokens);
    out->scored_bytes = count_or_unknown(reply->scored_bytes);
    out->negative_log_likelihood = reply->negative_log_likelihood;
    out->http_status = reply->status ? reply->status : INTEGER_UNKNOWN;
    out->finish_reason = str_or_null(reply->finish_reason);
    if (reply_has_phases(reply)) {
        out->prefill_s = span_s(reply->sent, reply->first_token);
        out->decode_s = span_s(reply->first_token, reply->done);
    }
    out->server_load_s = reply->server_load_s;
    out->server_prefill_s = reply->server_prefill_s;
    out->server_decode_s = reply->server_decode_s;
    out->cached_tokens = count_or_unknown(reply->cached_tokens);
    out->reasoning_tokens = count_or_unknown(reply->reasoning_tokens);
    out->pieces = (int64_t)reply->arrivals.count;
    if (reply->count_problem[0])
        out->tokens_note = reply->count_problem;
    else if (reply->output_tokens < 0 && reply->arrivals.count)
        out->tokens_note = "the server sent no usage";
}

static void fill_compute(const struct profile *profile, const struct completion *reply,
                         struct record *out)
{
    struct efficiency_inputs facts = profile->facts;
    struct efficiency figures;
    facts.prompt_tokens = known_count(reply->prompt_tokens);
    facts.output_tokens = known_count(reply->output_tokens);
    efficiency_of(&facts, &figures);
    if (!is_known(figures.flops))
        return;
    out->flops = out->total_flops = figures.flops;
    out->macs = figures.flops / 2;
    out->flops_per_token = figures.flops_per_token;
}

static void fill_cost(const struct profile *profile, const struct completion *reply,
                      struct record *out)
{
    if (!profile->prices)
        return;
    struct token_cost cost =
        prices_tokens(profile->prices, profile->options->model, known_count(reply->prompt_tokens),
                      known_count(reply->cached_tokens), known_count(reply->output_tokens));
    out->input_cost = cost.input;
    out->output_cost = cost.output;
    out->cost = cost.total;
}

static void put_text(struct json *json, const char *key, const char *value)
{
    if (value[0])
        json_string(json, key, value);
}

/* *metadata holds the text that the record points to. */
static void fill_grade(const char *grader, const struct grade *grade, struct text *metadata,
                       struct record *out)
{
    struct json json;
    bool graded = grade->verdict != VERDICT_NULL;
    json_init(&json, metadata, false);
    json_object(&json, NULL);
    json_string(&json, "grader", grader);
    if (is_known(grade->score))
        json_number(&json, "score", grade->score);
    put_text(&json, "label", grade->label);
    put_text(&json, "extracted", grade->extracted);
    put_text(&json, "reason", grade->reason);
    json_integer(&json, "evaluation_attempts", grade->attempts ? grade->attempts : 1);
    if (!graded && grade->attempts) /* the judge failed: the Python IPW's key for it */
        json_bool(&json, "evaluation_failed", true);
    json_object_end(&json);
    out->evaluation = text_get(metadata);
    if (graded)
        out->correct = out->lm_correctness = (int8_t)(grade->verdict == VERDICT_TRUE);
}

static void fill_query(const struct profile *profile, const struct answer *answer,
                       struct record *out)
{
    const struct query *query = answer->query;
    out->problem = query->item.problem;
    out->expected = query->item.answer;
    out->dataset_metadata.text = str_or_null(query->item.metadata);
    out->subject = query->item.subject;
    out->key = query->key;
    out->id = query->item.id;
    out->index = (int64_t)query->index;
    out->repeat = query->repeat;
    out->start = profile->start;
    out->status = answer->err ? "failed" : "completed";
    out->error = str_or_null(answer->why);
    out->attempts = answer->attempts;
    out->paused = (int8_t)answer->paused;
    out->started_at = seconds(profile->zero_wall) + seconds(answer->reply->sent - profile->zero);
    if (query->due)
        out->queue_s = seconds(answer->first_sent - query->due);
}

void records_query(const struct profile *profile, const struct answer *answer, struct text *line)
{
    struct record record;
    struct text metadata = {0};
    record_init(&record);
    fill_query(profile, answer, &record);
    fill_reply(answer->reply, &record);
    fill_compute(profile, answer->reply, &record);
    fill_cost(profile, answer->reply, &record);
    if (answer->grader)
        fill_grade(answer->grader, &answer->grade, &metadata, &record);
    record_line(&record, profile->options->model, "query", answer->query->key, line);
    text_release(&metadata);
}

/* ---- grades ---- */

void records_grade(const struct profile *profile, const char *key, const char *grader,
                   const struct grade *grade, struct text *line)
{
    struct record record;
    struct text metadata = {0};
    record_init(&record);
    fill_grade(grader, grade, &metadata, &record);
    record_line(&record, profile->options->model, "grade", key, line);
    text_release(&metadata);
}

/* ---- spans ---- */

void records_span(const struct profile *profile, enum span_kind kind, const char *key,
                  unsigned attempt, const struct completion *reply, struct text *line)
{
    struct span_line span = {
        .key = key,
        .kind = kind,
        .start = profile->start,
        .attempt = attempt,
        .from_s = seconds(reply->sent - profile->zero),
        .first_token_s = span_s(profile->zero, reply->first_token),
        .to_s = seconds(reply->done - profile->zero),
        .input_tokens = reply->prompt_tokens,
        .output_tokens = reply->output_tokens,
        .pieces_from = reply->first_token ? reply->first_token : reply->sent,
        .pieces = reply->arrivals.times,
        .piece_count = reply->arrivals.count,
    };
    span_to_json(&span, line);
}
