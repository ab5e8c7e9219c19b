/* Records of queries, grades and energies. */
#include "runner/profile/records.h"

#include <stdlib.h>

#include "attribute/share.h"
#include "core/json.h"
#include "core/xalloc.h"
#include "metrics/prices.h"
#include "rundir/record.h"
#include "runner/profile/phases.h"
#include "runner/profile/state.h"
#include "sensors/sensor.h"
#include "stats/descriptive.h"

static double span_s(nanos from, nanos to)
{
    return from && to ? seconds(to - from) : UNKNOWN;
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

/* Inter-token latency in ms, as seen by the client: between chunks. */
static void fill_gaps(const struct arrivals *arrivals, struct record *out)
{
    static const double PS[] = {0.5, 0.9, 0.95, 0.99};
    if (arrivals->count < 2)
        return;
    size_t count = arrivals->count - 1;
    double *gaps = xcalloc(count, sizeof *gaps);
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
    out->images = reply->images;
    out->audio_s = reply->audio_s;
    out->denoise_steps = reply->denoise_steps;
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

static void fill_compute(struct efficiency_inputs facts, const struct completion *reply,
                         struct record *out)
{
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

static void fill_agent_cost(const struct span_cost *cost, struct record *out)
{
    out->input_cost = cost->input;
    out->output_cost = cost->output;
    out->tool_cost = cost->tool;
    out->cost = cost->total;
}

static void fill_cost(const struct profile *profile, const struct completion *reply,
                      struct record *out)
{
    if (!profile->setup.prices)
        return;
    struct token_cost cost = prices_tokens(
        profile->setup.prices, profile->options->model, known_count(reply->prompt_tokens),
        known_count(reply->cached_tokens), known_count(reply->output_tokens));
    out->input_cost = cost.input;
    out->output_cost = cost.output;
    out->cost = cost.total;
}

/* *text holds the string that the record points to. */
static void fill_grade(const struct graded_by *by, const struct grade *grade, struct text *text,
                       struct record *out)
{
    bool has_verdict = grade->verdict != VERDICT_NULL;
    bool is_unread = grade->verdict == VERDICT_UNREAD || (by->judge && !has_verdict);
    struct evaluation evaluation = {.score = grade->score,
                                    .attempts = grade->attempts,
                                    .is_undecided = !has_verdict && grade->attempts};
    chars_copy(evaluation.grader, by->grader);
    chars_copy(evaluation.judge, by->judge ? by->judge : "");
    chars_copy(evaluation.label, grade->label);
    chars_copy(evaluation.extracted, grade->extracted);
    chars_copy(evaluation.reason, grade->reason);
    record_put_evaluation(out, &evaluation, text);
    record_put_verdict(out, has_verdict ? grade->verdict == VERDICT_TRUE : -1, is_unread);
}

static void fill_query(const struct profile *profile, const struct answer *answer,
                       struct record *out)
{
    const struct query *query = answer->query;
    out->problem = query->item.problem;
    out->expected = query->item.answer;
    out->dataset_metadata = (struct json_any){answer->metadata, query->item.metadata};
    out->subject = query->item.subject;
    out->key = query->key;
    out->id = query->item.id;
    out->index = (int64_t)query->index;
    out->repeat = query->repeat;
    out->start = profile->start;
    out->status = answer->canceled ? "canceled" : answer->err ? "failed" : "completed";
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
    fill_compute(profile->setup.facts, answer->reply, &record);
    if (profile->options->agent)
        fill_agent_cost(&answer->cost, &record);
    else
        fill_cost(profile, answer->reply, &record);
    if (answer->grader)
        fill_grade(&(struct graded_by){answer->grader, NULL}, &answer->grade, &metadata, &record);
    record_line(&record, profile->options->model, "query", answer->query->key, line);
    text_release(&metadata);
}

/* ---- grades ---- */

void records_grade(const char *model, const char *key, const struct graded_by *by,
                   const struct grade *grade, struct text *line)
{
    struct record record;
    struct text metadata = {0};
    record_init(&record);
    fill_grade(by, grade, &metadata, &record);
    record_line(&record, model, "grade", key, line);
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

/* ---- energy ---- */

/* Records of energies.  Shares are per device; a record has them by kind of device: GPUs, CPUs with their memory, and
 * boards whose single meter covers all.  A kind without a figure is unknown, not 0. */

/* ---- devices by kind ---- */

/* Devices of one kind. */
struct device_sum {
    double joules;            /* of the request */
    double window_joules;     /* of the whole devices in its window */
    struct value_stats watts; /* of the whole devices; for several devices only the mean is known */
};

struct device_sums {
    struct device_sum gpu, cpu, soc;
    double window_joules;                                       /* of all counted devices */
    struct value_stats gpu_memory, host_memory, temperature;    /* B, B, C */
    double gpu_memory_total;                                    /* B */
    double utilization, memory_utilization, tensor_utilization; /* %, mean over the GPUs */
};

static const struct value_stats NO_STATS = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};

/* The means of several devices add up; their extremes and medians occur at different times. */
static void add_stats(struct value_stats *sum, const struct value_stats *part)
{
    if (!is_known(part->avg))
        return;
    if (!is_known(sum->avg)) {
        *sum = *part;
        return;
    }
    *sum = (struct value_stats){sum->avg + part->avg, UNKNOWN, UNKNOWN, UNKNOWN};
}

static void add_share(struct device_sum *kind, const struct device_share *share)
{
    add_known(&kind->joules, share->energy.joules);
    add_known(&kind->window_joules, share->window_joules);
    add_stats(&kind->watts, &share->watts);
}

static void average(double *mean, unsigned *count, double value)
{
    if (!is_known(value))
        return;
    *mean = *count ? (*mean * *count + value) / (*count + 1) : value;
    (*count)++;
}

/* CPU figures are summed only if they are part of the total: a package and its cores measure the same energy. */
static void add_device(const struct device_share *share, struct device_sums *out)
{
    enum sensor_kind kind = share->device->sensor->kind;
    bool counted = share->device->has_energy && share->counted;
    if (counted)
        add_known(&out->window_joules, share->window_joules);
    if (kind == SENSOR_GPU && share->device->has_energy)
        add_share(&out->gpu, share);
    else if (counted && kind == SENSOR_BOARD)
        add_share(&out->soc, share);
    else if (counted)
        add_share(&out->cpu, share);
}

static void add_gauges(const struct device_share *share, struct device_sums *out,
                       unsigned counts[4])
{
    const struct value_stats *gauges = share->gauges;
    enum sensor_kind kind = share->device->sensor->kind;
    if (kind == SENSOR_HOST)
        add_stats(&out->host_memory, &gauges[QTY_MEMORY_USED]);
    if (kind != SENSOR_GPU)
        return;
    add_stats(&out->gpu_memory, &gauges[QTY_MEMORY_USED]);
    add_known(&out->gpu_memory_total, gauges[QTY_MEMORY_TOTAL].avg);
    average(&out->utilization, &counts[0], gauges[QTY_UTILIZATION].avg);
    average(&out->memory_utilization, &counts[1], gauges[QTY_MEMORY_UTILIZATION].avg);
    average(&out->tensor_utilization, &counts[2], gauges[QTY_TENSOR_UTILIZATION].avg);
    if (!is_known(gauges[QTY_TEMPERATURE].avg))
        return;
    double mean = out->temperature.avg;
    average(&mean, &counts[3], gauges[QTY_TEMPERATURE].avg);
    out->temperature = counts[3] == 1 ? gauges[QTY_TEMPERATURE] : NO_STATS;
    out->temperature.avg = mean;
}

static void sum_devices(const struct share *share, struct device_sums *out)
{
    const struct device_sum nothing = {UNKNOWN, UNKNOWN, NO_STATS};
    unsigned counts[4] = {0};
    *out = (struct device_sums){
        .gpu = nothing,
        .cpu = nothing,
        .soc = nothing,
        .window_joules = UNKNOWN,
        .gpu_memory = NO_STATS,
        .host_memory = NO_STATS,
        .temperature = NO_STATS,
        .gpu_memory_total = UNKNOWN,
        .utilization = UNKNOWN,
        .memory_utilization = UNKNOWN,
        .tensor_utilization = UNKNOWN,
    };
    for (size_t i = 0; i < share->count; i++) {
        add_device(&share->devices[i], out);
        add_gauges(&share->devices[i], out, counts);
    }
}

/* The kind of device that represents the total; NULL if nothing is known. */
static const char *basis_of(const struct device_sums *sums)
{
    if (is_known(sums->gpu.joules))
        return "gpu";
    if (is_known(sums->soc.joules))
        return "soc";
    return is_known(sums->cpu.joules) ? "cpu" : NULL;
}

/* ---- a request ---- */

static struct record_stats stats_of(const struct value_stats *stats, double scale)
{
    if (!is_known(stats->avg))
        return (struct record_stats){UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    return (struct record_stats){stats->avg * scale, stats->max * scale, stats->median * scale,
                                 stats->min * scale};
}

static struct efficiency efficiency_in(struct efficiency_inputs facts,
                                       const struct pending *pending, const struct share *share)
{
    struct efficiency figures;
    facts.prompt_tokens = pending->input_tokens;
    facts.output_tokens = pending->output_tokens;
    facts.seconds = pending->seconds;
    facts.decode_seconds = pending->decode_s;
    facts.joules = share->total.joules;
    facts.prefill_joules = share->prefill_joules;
    facts.decode_joules = share->decode_joules;
    facts.batch = share->concurrency;
    efficiency_of(&facts, &figures);
    return figures;
}

/* A request's power is its energy over its duration; its variation is known only while it had the device
 * exclusively. */
static void fill_power(const struct device_sum *kind, double query_s, struct record_stats *own,
                       struct record_stats *window)
{
    if (!is_known(kind->joules))
        return;
    if (kind->joules >= 0.999 * kind->window_joules)
        *own = (struct record_stats){UNKNOWN, kind->watts.max, kind->watts.median, kind->watts.min};
    own->avg = ratio(kind->joules, query_s);
    if (!is_known(own->avg))
        *own = stats_of(&NO_STATS, 1);
    *window = stats_of(&kind->watts, 1);
}

static void fill_devices(const struct device_sums *sums, double query_s, struct record *out)
{
    const double mb = 1.0 / (1 << 20);
    const double gb = 1e-9;
    out->gpu_joules = sums->gpu.joules;
    out->gpu_window_joules = sums->gpu.window_joules;
    out->cpu_joules = sums->cpu.joules;
    out->cpu_window_joules = sums->cpu.window_joules;
    out->soc_joules = sums->soc.joules;
    out->soc_window_joules = sums->soc.window_joules;
    out->energy_basis = out->power_basis = basis_of(sums);
    fill_power(&sums->gpu, query_s, &out->gpu_watts, &out->gpu_window_watts);
    fill_power(&sums->cpu, query_s, &out->cpu_watts, &out->cpu_window_watts);
    fill_power(&sums->soc, query_s, &out->soc_watts, &out->soc_window_watts);
    out->host_memory_mb = stats_of(&sums->host_memory, mb);
    out->gpu_memory_mb = stats_of(&sums->gpu_memory, mb);
    out->temperature_c = stats_of(&sums->temperature, 1);
    out->utilization_pct = sums->utilization;
    out->memory_utilization_pct = sums->memory_utilization;
    out->tensor_utilization_pct = sums->tensor_utilization;
    out->gpu_memory_used_gb = sums->gpu_memory.avg * gb;
    out->gpu_memory_total_gb = sums->gpu_memory_total * gb;
    out->window_joules = sums->window_joules;
}

static void fill_efficiency(const struct efficiency *figures, struct record *out)
{
    out->joules_per_output_token = figures->joules_per_output_token;
    out->joules_per_token = figures->joules_per_token;
    out->prefill_joules_per_token = figures->prefill_joules_per_token;
    out->decode_joules_per_token = figures->decode_joules_per_token;
    out->mfu = figures->mfu;
    out->mbu = figures->mbu;
    out->arithmetic_intensity = figures->arithmetic_intensity;
    out->tokens_per_joule = figures->tokens_per_joule;
    out->flops_per_joule = figures->flops_per_joule;
    /* A rate per power: the same number, under the key that older readers expect. */
    out->flops_per_watt = figures->flops_per_joule;
}

static void fill_shares(const struct share *share, bool phases, struct text *text,
                        struct record *out)
{
    struct json list;
    json_init(&list, text, false);
    json_array(&list, NULL);
    for (const struct device_share *at = share->devices; at < share->devices + share->count; at++)
        if (at->device->has_energy)
            record_device_to_json(&list,
                                  &(struct record_device){at->device->id, at->counted, &at->energy,
                                                          phases ? at->prefill_joules : UNKNOWN,
                                                          phases ? at->decode_joules : UNKNOWN,
                                                          at->window_joules});
    json_array_end(&list);
    out->devices = text_get(text);
}

/* *text holds a string that the record points to. */
static void fill_energy(const struct efficiency_inputs *facts, const struct pending *pending,
                        const struct share *given, struct text *text, struct record *out)
{
    struct device_sums sums;
    struct share share = *given;
    bool phases = is_known(pending->prefill_s);
    if (!phases) { /* attribution treated it all as prefill */
        share.prefill_joules = share.decode_joules = UNKNOWN;
        share.prefill.plus_minus = share.decode.plus_minus = UNKNOWN;
    }
    struct efficiency figures = efficiency_in(*facts, pending, &share);
    sum_devices(&share, &sums);
    fill_devices(&sums, pending->seconds, out);
    fill_efficiency(&figures, out);
    out->prefill_joules = share.prefill_joules;
    out->decode_joules = share.decode_joules;
    out->prefill_ms = 1e3 * pending->prefill_s;
    out->decode_ms = 1e3 * pending->decode_s;
    out->prefill_watts = ratio(share.prefill_joules, pending->prefill_s);
    out->decode_watts = ratio(share.decode_joules, pending->decode_s);
    out->energy = record_energy_of(&given->total);
    out->prefill_plus_minus = share.prefill.plus_minus;
    out->decode_plus_minus = share.decode.plus_minus;
    out->concurrency = share.concurrency;
    out->alone_s = share.alone_s;
    fill_shares(&share, phases, text, out);
}

void records_energy(const struct profile *profile, const struct pending *pending,
                    const struct share *share, struct text *line)
{
    struct record record;
    struct text text = {0};
    record_init(&record);
    if (pending->last)
        fill_energy(&profile->setup.facts, pending, share, &text, &record);
    else /* it was retried: its energy belongs to the query, but is stored separately */
        record_put_failed_attempt(&record, pending->attempt, &share->total, &text);
    record_line(&record, profile->options->model, pending->is_written ? "reattributed" : "energy",
                pending->key, line);
    text_release(&text);
}

/* ---- a judge ---- */

/* This judgment plus earlier ones without a verdict. */
static struct energy all_judgments(const struct judgment *judgment, const struct energy *own)
{
    struct energy energy = *own;
    energy_add(&energy, &judgment->earlier);
    if (own->method == METHOD_NONE && judgment->earlier.method != METHOD_NONE)
        chars_copy(energy.note, "of earlier judgments only: the energy of the last one is unknown");
    return energy;
}

void records_judge_energy(const char *model, const struct judgment *judgment,
                          const struct share *share, struct text *line)
{
    struct record record;
    struct device_sums sums;
    struct energy energy = all_judgments(judgment, &share->total);
    sum_devices(share, &sums);
    record_init(&record);
    record.judge_gpu_joules = judgment->earlier_gpu_joules;
    record.judge_cpu_joules = judgment->earlier_cpu_joules;
    add_known(&record.judge_gpu_joules, sums.gpu.joules);
    add_known(&record.judge_cpu_joules, sums.cpu.joules);
    record.task_gpu_joules = judgment->gpu_joules + record.judge_gpu_joules;
    record.task_cpu_joules = judgment->cpu_joules + record.judge_cpu_joules;
    record.judge_energy = record_energy_of(&energy);
    record_line(&record, model, "energy", judgment->key, line);
}

void records_no_energy(const char *key, bool judge, const char *why, struct text *line)
{
    struct record record;
    struct energy unknown = energy_unknown(why);
    record_init(&record);
    *(judge ? &record.judge_energy : &record.energy) = record_energy_of(&unknown);
    record_line(&record, NULL, "energy", key, line);
}
