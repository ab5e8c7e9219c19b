#include "runner/profile/sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/json.h"
#include "core/units.h"
#include "port/json_read.h"

enum err sums_init(struct sums *sums)
{
    *sums = (struct sums){.judge_joules = UNKNOWN,
                          .gpu_joules = UNKNOWN,
                          .cpu_joules = UNKNOWN,
                          .input_tokens = UNKNOWN,
                          .output_tokens = UNKNOWN,
                          .prefill_joules = UNKNOWN,
                          .decode_joules = UNKNOWN,
                          .cost = UNKNOWN};
    for (unsigned i = 0; i < STARTS_MOST; i++)
        sums->from[i] = sums->to[i] = UNKNOWN;
    return jv_parse("{}", 2, &sums->metadata, NULL);
}

void sums_release(struct sums *sums)
{
    for (unsigned i = 0; i < SUM_COUNT; i++)
        sketch_release(&sums->rows[i]);
    jv_free(sums->metadata);
    free(sums->asked);
    sums->metadata = NULL;
    sums->asked = NULL;
}

/* ---- one record ---- */

static void add_known(double *sum, double value)
{
    if (is_known(value))
        *sum = (is_known(*sum) ? *sum : 0) + value;
}

static void add_time(struct sums *sums, const struct jv *own, double latency_s)
{
    int64_t start;
    double at = jv_number(jv_get(own, "started_at"));
    if (!jv_integer(jv_get(own, "start"), &start) || start < 1 || start > STARTS_MOST ||
        !is_known(at) || !is_known(latency_s))
        return;
    double *from = &sums->from[start - 1], *to = &sums->to[start - 1];
    *from = fmin(is_known(*from) ? *from : at, at);
    *to = fmax(is_known(*to) ? *to : at, at + latency_s);
}

static void add_to_tally(struct sums *sums, const struct jv *metrics, const struct jv *own,
                         bool completed, double latency_s)
{
    const struct jv *verdict = jv_path(metrics, "evaluation.is_correct");
    struct intelligence_query query = {
        .outcome = !completed                 ? OUTCOME_FAILED
                   : !jv_is_bool(verdict)     ? OUTCOME_UNGRADED
                   : jv_bool(verdict, false) ? OUTCOME_CORRECT
                                              : OUTCOME_INCORRECT,
        .joules = jv_number(jv_path(own, "energy.joules")),
        .active_joules = jv_number(jv_path(own, "energy.active_joules")),
        .seconds = latency_s,
        .gpu_joules = jv_number(jv_path(metrics, "energy_metrics.per_query_joules")),
        .gpu_watts = jv_number(jv_path(metrics, "power_metrics.gpu.per_query_watts.avg")),
    };
    intelligence_add(&sums->tally, &query);
}

/* ---- repeats ---- */

static enum err keep_asked(struct sums *sums, const struct jv *metrics, const struct jv *own)
{
    const struct jv *verdict = jv_path(metrics, "evaluation.is_correct");
    double joules = jv_number(jv_path(own, "energy.joules"));
    struct question *asked =
        grow(sums->asked, &sums->asked_capacity, sums->asked_count, sizeof *asked);
    if (!asked)
        return ERR_NO_MEMORY;
    sums->asked = asked;
    asked[sums->asked_count++] = (struct question){
        .index = jv_number(jv_get(own, "index")),
        .right = jv_is_bool(verdict) && jv_bool(verdict, false),
        .graded = jv_is_bool(verdict),
        .joules = is_known(joules) ? joules : 0,
        .known = is_known(joules),
    };
    return ERR_OK;
}

void sums_close(struct sums *sums)
{
    sums->asked_count = questions_merge(sums->asked, sums->asked_count);
    if (sums->asked_count)
        sums->tally.repeats = repeats_of(sums->asked, sums->asked_count);
}

static double failed_attempts(const struct jv *own)
{
    double sum = 0;
    for (const struct jv *one = jv_first(jv_get(own, "failed_attempts")); one; one = jv_next(one)) {
        double joules = jv_number(jv_get(one, "joules"));
        sum += is_known(joules) ? joules : 0;
    }
    return sum;
}

static void add_paid(struct paid *paid, double joules, double tokens)
{
    if (!is_known(joules) || !is_known(tokens))
        return;
    paid->joules += joules;
    paid->tokens += tokens;
}

static void add_energy(struct sums *sums, const struct jv *metrics, const struct jv *own)
{
    double joules = jv_number(jv_path(own, "energy.joules"));
    double input = jv_number(jv_path(metrics, "token_metrics.input"));
    double output = jv_number(jv_path(metrics, "token_metrics.output"));
    double prefill = jv_number(jv_path(metrics, "phase_metrics.prefill_energy_j"));
    double decode = jv_number(jv_path(metrics, "phase_metrics.decode_energy_j"));
    sums->failed_joules += failed_attempts(own);
    add_known(&sums->output_tokens, output);
    add_known(&sums->input_tokens, input);
    add_known(&sums->judge_joules, jv_number(jv_path(own, "judge_energy.joules")));
    add_known(&sums->cost, jv_number(jv_path(metrics, "cost.total_cost_usd")));
    if (!is_known(joules))
        return;
    sums->measured++;
    sums->joules += joules;
    sums->idle_joules += jv_number(jv_path(own, "energy.idle_joules"));
    add_known(&sums->gpu_joules, jv_number(jv_path(metrics, "energy_metrics.per_query_joules")));
    add_known(&sums->cpu_joules,
              jv_number(jv_path(metrics, "energy_metrics.cpu_per_query_joules")));
    add_known(&sums->prefill_joules, prefill);
    add_known(&sums->decode_joules, decode);
    add_paid(&sums->per_output, joules, output);
    add_paid(&sums->per_input, joules, input);
    add_paid(&sums->prefill, prefill, input);
    add_paid(&sums->decode, decode, output);
}

static enum err add_rows(struct sums *sums, const struct jv *metrics, const struct jv *own)
{
    double latency = jv_number(jv_path(metrics, "latency_metrics.total_query_seconds"));
    double joules = jv_number(jv_path(own, "energy.joules"));
    const double values[] = {
        [STATISTIC_ENERGY] = joules,
        [STATISTIC_GPU_ENERGY] = jv_number(jv_path(metrics, "energy_metrics.per_query_joules")),
        [STATISTIC_CPU_ENERGY] = jv_number(jv_path(metrics, "energy_metrics.cpu_per_query_joules")),
        [STATISTIC_SOC_ENERGY] = jv_number(jv_path(metrics, "energy_metrics.soc_per_query_joules")),
        [STATISTIC_POWER] = latency > 0 ? joules / latency : UNKNOWN,
        [STATISTIC_LATENCY] = latency,
        [STATISTIC_TTFT] =
            jv_number(jv_path(metrics, "latency_metrics.time_to_first_token_seconds")),
        [STATISTIC_THROUGHPUT] =
            jv_number(jv_path(metrics, "latency_metrics.throughput_tokens_per_sec")),
        [STATISTIC_INPUT] = jv_number(jv_path(metrics, "token_metrics.input")),
        [STATISTIC_OUTPUT] = jv_number(jv_path(metrics, "token_metrics.output")),
        [STATISTIC_PER_TOKEN] =
            jv_number(jv_path(metrics, "energy_metrics.energy_per_output_token_joules")),
        [STATISTIC_ITL] = 1e-3 * jv_number(jv_path(metrics, "latency_metrics.median_itl_ms")),
        [STATISTIC_PER_WATT] = jv_number(jv_path(metrics, "efficiency.throughput_per_watt")),
        [STATISTIC_PREFILL] = jv_number(jv_path(metrics, "phase_metrics.prefill_energy_j")),
        [STATISTIC_DECODE] = jv_number(jv_path(metrics, "phase_metrics.decode_energy_j")),
        [STATISTIC_COMPANY] = jv_number(jv_get(own, "company")),
        [STATISTIC_QUEUE] = jv_number(jv_get(own, "queue_s")),
    };
    for (unsigned i = 0; i < SUM_COUNT; i++) {
        enum err err = sketch_add(&sums->rows[i], values[i]);
        if (err)
            return err;
    }
    return ERR_OK;
}

/* A key's example tells the column's type: the first value that is not null, but a number with a
 * fraction in place of a whole one. */
static enum err add_metadata(struct sums *sums, const struct jv *metadata)
{
    for (const struct jv *value = jv_first(metadata); value; value = jv_next(value)) {
        const struct jv *known = jv_get(sums->metadata, jv_key(value));
        int64_t whole;
        bool better =
            jv_is_null(known) || (is_known(jv_number(known)) && jv_integer(known, &whole) &&
                                  is_known(jv_number(value)) && !jv_integer(value, &whole));
        if (jv_is_null(value) || !better)
            continue;
        enum err err = jv_put(sums->metadata, jv_key(value), value);
        if (err)
            return err;
    }
    return ERR_OK;
}

enum err sums_add(struct sums *sums, const char *model, const struct jv *record)
{
    const struct jv *metrics = jv_get(jv_get(record, "model_metrics"), model);
    const struct jv *own = jv_get(record, "ipw");
    const char *status = jv_text(jv_get(own, "status"));
    double latency = jv_number(jv_path(metrics, "latency_metrics.total_query_seconds"));
    enum err err = add_metadata(sums, jv_get(record, "dataset_metadata"));
    bool completed = status && strcmp(status, "completed") == 0;
    sums->queries++;
    add_time(sums, own, latency);
    add_to_tally(sums, metrics, own, completed, latency);
    if (!completed) {
        sums->failed++;
        double joules = jv_number(jv_path(own, "energy.joules"));
        sums->failed_joules += failed_attempts(own) + (is_known(joules) ? joules : 0);
        return err;
    }
    sums->completed++;
    add_energy(sums, metrics, own);
    if (!err && sums->repeats)
        err = keep_asked(sums, metrics, own);
    return err ? err : add_rows(sums, metrics, own);
}

/* ---- what follows ---- */

double sums_seconds(const struct sums *sums)
{
    double seconds = UNKNOWN;
    for (unsigned i = 0; i < STARTS_MOST; i++)
        add_known(&seconds, sums->to[i] - sums->from[i]);
    return seconds;
}

void sums_to_json(struct json *json, const char *key, const struct sums *sums)
{
    json_object(json, key);
    for (unsigned i = 0; i < SUM_COUNT; i++) {
        const struct sketch *row = &sums->rows[i];
        if (row->moments.count == 0)
            continue;
        json_object(json, record_statistic((enum record_statistic)i)->statistic_key);
        json_number(json, "avg", online_mean(&row->moments));
        json_number(json, "median", sketch_quantile(row, 0.5));
        json_number(json, "min", online_min(&row->moments));
        json_number(json, "max", online_max(&row->moments));
        json_number(json, "std", online_stddev(&row->moments));
        json_number(json, "p95", sketch_quantile(row, 0.95));
        json_integer(json, "count", (int64_t)row->moments.count);
        json_object_end(json);
    }
    json_object_end(json);
}
