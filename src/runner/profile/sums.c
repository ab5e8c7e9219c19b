#include "runner/profile/sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"

void sums_init(struct sums *sums)
{
    *sums = (struct sums){.judge_joules = UNKNOWN,
                          .gpu_joules = UNKNOWN,
                          .cpu_joules = UNKNOWN,
                          .input_tokens = UNKNOWN,
                          .output_tokens = UNKNOWN,
                          .chunk_count = UNKNOWN,
                          .images = UNKNOWN,
                          .audio_s = UNKNOWN,
                          .denoise_steps = UNKNOWN,
                          .prefill_joules = UNKNOWN,
                          .decode_joules = UNKNOWN,
                          .cost = UNKNOWN};
    sums->metadata = jv_new_object();
    jv_index_init(&sums->metadata_keys, sums->metadata);
}

void sums_release(struct sums *sums)
{
    for (unsigned i = 0; i < RECORD_STATISTICS; i++)
        sketch_release(&sums->rows[i]);
    jv_index_release(&sums->metadata_keys);
    jv_free(sums->metadata);
    free(sums->asked);
    free(sums->starts);
    sums->metadata = NULL;
    sums->asked = NULL;
    sums->starts = NULL;
}

/* ---- one record ---- */

/* A larger start number is invalid. */
enum { STARTS_MAX = 1000000 };

static void add_time(struct sums *sums, const struct record *record)
{
    double at = record->started_at;
    if (record->start < 1 || record->start > STARTS_MAX || !is_known(at) ||
        !is_known(record->latency_s))
        return;
    while (sums->start_count < (size_t)record->start) {
        *XADD(sums->starts, sums->start_count, sums->start_capacity) =
            (struct start_time){UNKNOWN, UNKNOWN};
    }
    struct start_time *start = &sums->starts[record->start - 1];
    start->from = fmin(is_known(start->from) ? start->from : at, at);
    start->to = fmax(is_known(start->to) ? start->to : at, at + record->latency_s);
}

/* When the table is full, further texts are counted together: the most frequent ones appear early. */
static void add_reason(struct reason *reasons, const char *text)
{
    for (size_t i = 0; text && *text && i < SUMS_REASONS_MAX; i++) {
        if (!reasons[i].count)
            chars_copy(reasons[i].text, text);
        if (strncmp(reasons[i].text, text, sizeof reasons[i].text - 1) != 0)
            continue;
        reasons[i].count++;
        return;
    }
}

bool sums_reason(const struct reason *reasons, char *to, size_t size)
{
    const struct reason *best = reasons;
    for (size_t i = 1; i < SUMS_REASONS_MAX; i++)
        if (reasons[i].count > best->count)
            best = &reasons[i];
    if (best->count > 1 && reasons[1].count)
        str_format(to, size, "%llu times: %s", (unsigned long long)best->count, best->text);
    else if (best->count && reasons[1].count)
        str_format(to, size, "for example: %s", best->text);
    else if (best->count)
        str_copy(to, size, best->text);
    return best->count > 0;
}

static void add_to_tally(struct sums *sums, const struct record *record, bool completed)
{
    struct intelligence_query query = {
        .outcome = query_outcome_of(completed, record->correct, grading_is_unread(record->grading)),
        .hides_unread = completed && record->evaluation && !record->grading,
        .joules = record->energy.joules,
        .active_joules = record->energy.active_joules,
        .seconds = record->latency_s,
        .gpu_joules = record->gpu_joules,
        .gpu_watts = record->gpu_watts.avg,
    };
    intelligence_add(&sums->tally, &query);
}

/* Grader results besides the verdict: a score, and why a completed query has no grade, with how to fix it. */
static void add_evaluation(struct sums *sums, const struct record *record)
{
    struct evaluation evaluation;
    bool expected = record->expected && record->expected[0];
    record_evaluation(record, &evaluation);
    if (is_known(evaluation.score))
        online_add(&sums->scores, evaluation.score);
    if (record->correct >= 0 || is_known(record->negative_log_likelihood))
        return;
    if (grading_is_unread(record->grading) == 1) {
        add_reason(sums->unread, evaluation.reason);
        return;
    }
    const char *reason = "the dataset has no expected answers";
    if (evaluation.reason[0])
        reason = evaluation.reason;
    else if (expected)
        reason = "the expected answers are long texts: pass --grader f1, rouge_l or judge";
    add_reason(sums->ungraded, reason);
}

/* What a workload processes instead of tokens. */
static void add_media(struct sums *sums, const struct record *record)
{
    add_known(&sums->images, record->images);
    add_known(&sums->audio_s, record->audio_s);
    add_known(&sums->denoise_steps, record->denoise_steps);
    energy_per_add(&sums->per_image, record->energy.joules, record->images);
    energy_per_add(&sums->per_audio_s, record->energy.joules, record->audio_s);
    energy_per_add(&sums->per_step, record->energy.joules, record->denoise_steps);
    energy_per_add(&sums->seconds_per_audio_s, record->latency_s, record->audio_s);
}

static void add_energy(struct sums *sums, const struct record *record)
{
    double joules = record->energy.joules;
    double input = integer_number(record->input_tokens);
    double output = integer_number(record->output_tokens);
    sums->failed_joules += record_failed_joules(record);
    add_known(&sums->output_tokens, output);
    add_known(&sums->input_tokens, input);
    add_known(&sums->chunk_count, integer_number(record->pieces));
    add_known(&sums->judge_joules, record->judge_energy.joules);
    add_known(&sums->cost, record->cost);
    if (!is_known(joules))
        return;
    sums->measured++;
    sums->joules += joules;
    sums->idle_joules += record->energy.idle_joules;
    add_known(&sums->gpu_joules, record->gpu_joules);
    add_known(&sums->cpu_joules, record->cpu_joules);
    add_known(&sums->prefill_joules, record->prefill_joules);
    add_known(&sums->decode_joules, record->decode_joules);
    energy_per_add(&sums->per_output, joules, output);
    energy_per_add(&sums->chunks, joules, integer_number(record->pieces));
    energy_per_add(&sums->per_input, joules, input);
    energy_per_add(&sums->prefill, record->prefill_joules, input);
    energy_per_add(&sums->decode, record->decode_joules, output);
}

static void add_to_ratio(struct window_sums *sums, double x, double y)
{
    if (!is_known(x) || !(y > 0))
        return;
    sums->x += x;
    sums->y += y;
    sums->xx += x * x;
    sums->xy += x * y;
    sums->yy += y * y;
    sums->count++;
}

static double mean_power(const struct record *record)
{
    return record->latency_s > 0 ? record->energy.joules / record->latency_s : UNKNOWN;
}

/* Each statistic is a field of the record, except power. */
static void add_statistics(struct sums *sums, const struct record *record)
{
    for (int i = 0; i < RECORD_STATISTICS; i++) {
        const struct record_field *field = record_statistic((enum record_statistic)i);
        double value = i == STATISTIC_POWER
                           ? mean_power(record)
                           : field->statistic_scale * json_field_number(&field->at, record);
        sketch_add(&sums->rows[i], value);
    }
}

/* The example value of a key determines the type of its column: the first value that is not null, but a fraction is
 * preferred to an integer. */
static void add_metadata(struct sums *sums, const struct jv *metadata)
{
    JV_EACH (value, jv_first_member(metadata)) {
        const struct jv *known = jv_index_get(&sums->metadata_keys, jv_key(value));
        int64_t whole;
        bool better =
            jv_is_null(known) || (is_known(jv_number(known)) && jv_integer(known, &whole) &&
                                  is_known(jv_number(value)) && !jv_integer(value, &whole));
        if (!jv_is_null(value) && better)
            jv_index_put(&sums->metadata_keys, sums->metadata, jv_key(value), value);
    }
}

/* ---- repeats ---- */

static void add_asked(struct sums *sums, const struct record *record)
{
    double joules = record->energy.joules;
    bool is_unread = grading_is_unread(record->grading) == 1;
    *XADD(sums->asked, sums->asked_count, sums->asked_capacity) = (struct question){
        .index = integer_number(record->index),
        .right = record->correct == 1,
        .graded = record->correct >= 0 || is_unread,
        .joules = is_known(joules) ? joules : 0,
        .known = is_known(joules),
    };
}

void sums_close(struct sums *sums)
{
    sums->asked_count = questions_merge(sums->asked, sums->asked_count);
    if (sums->asked_count)
        sums->tally.repeats = repeats_of(sums->asked, sums->asked_count);
}

static void add_earlier(struct sums *sums, const struct record *record)
{
    double joules = record->energy.joules;
    if (record->start < sums->start)
        sums->earlier_joules += record_failed_joules(record) + (is_known(joules) ? joules : 0);
}

void sums_add(struct sums *sums, const struct record *record)
{
    add_metadata(sums, record->dataset_metadata.value);
    add_earlier(sums, record);
    bool completed = record->status && str_equal(record->status, "completed");
    sums->queries++;
    add_time(sums, record);
    if (record->status && str_equal(record->status, "canceled")) {
        sums->canceled++;
        sums->canceled_joules += is_known(record->energy.joules) ? record->energy.joules : 0;
        return;
    }
    add_to_tally(sums, record, completed);
    if (!completed) {
        sums->failed++;
        add_reason(sums->failures, record->error);
        double joules = record->energy.joules;
        sums->failed_joules += record_failed_joules(record) + (is_known(joules) ? joules : 0);
        return;
    }
    sums->completed++;
    sums->cut += record->finish_reason && str_equal(record->finish_reason, "length");
    add_reason(sums->token_notes, record->tokens_note);
    add_to_ratio(&sums->per_token, record->negative_log_likelihood,
                 integer_number(record->scored_tokens));
    add_to_ratio(&sums->per_byte, record->negative_log_likelihood,
                 integer_number(record->scored_bytes));
    add_evaluation(sums, record);
    add_energy(sums, record);
    add_media(sums, record);
    if (sums->repeats)
        add_asked(sums, record);
    add_statistics(sums, record);
}

/* ---- results ---- */

double sums_ratio(const struct window_sums *sums, double *error)
{
    double value = ratio(sums->x, sums->y);
    double count = (double)sums->count;
    /* Sum of squared residuals x - value y; rounding may make it negative. */
    double squares = sums->xx - 2 * value * sums->xy + value * value * sums->yy;
    *error = sums->count < 2 ? UNKNOWN : sqrt(fmax(0, squares) * count / (count - 1)) / sums->y;
    return sums->count ? value : UNKNOWN;
}

double sums_seconds(const struct sums *sums)
{
    double seconds = UNKNOWN;
    for (size_t i = 0; i < sums->start_count; i++)
        add_known(&seconds, sums->starts[i].to - sums->starts[i].from);
    return seconds;
}

struct summary_statistic sums_statistic(const struct sums *sums, enum record_statistic which)
{
    const struct sketch *row = &sums->rows[which];
    if (row->moments.count == 0)
        return (struct summary_statistic){0};
    return (struct summary_statistic){
        .avg = online_mean(&row->moments),
        .median = sketch_quantile(row, 0.5),
        .min = online_min(&row->moments),
        .max = online_max(&row->moments),
        .std = online_stddev(&row->moments),
        .p95 = sketch_quantile(row, 0.95),
        .count = (int64_t)row->moments.count,
    };
}
