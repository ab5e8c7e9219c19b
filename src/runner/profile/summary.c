/* The end of a run.  One pass over the journal's records sums them up (sums.h), which with the energies of all
 * starts makes summary.json and the object for scripts; a second pass fills the stores. */
#include <math.h>
#include <string.h>

#include "clients/client.h"
#include "core/clock.h"
#include "core/energy.h"
#include "core/json.h"
#include "core/log.h"
#include "metrics/efficiency.h"
#include "metrics/intelligence.h"
#include "metrics/prices.h"
#include "port/json_read.h"
#include "port/proc.h"
#include "rundir/journal.h"
#include "rundir/run_dir.h"
#include "rundir/store.h"
#include "rundir/summary.h"
#include "runner/profile/state.h"
#include "runner/profile/sums.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

/* All that the summary is made of. */
struct facts {
    const struct profile *profile;
    struct sums sums;        /* of the records */
    struct run_energy total; /* all starts */
    double conservation_error;
    struct own_cost own; /* what ipw itself spent */
    unsigned long reads;
};

static double ratio(double a, double b)
{
    return is_known(a) && b > 0 ? a / b : UNKNOWN;
}

static const char *or_null(const char *text)
{
    return text && text[0] ? text : NULL;
}

/* ---- the machine ---- */

static void put_gpu(struct json *json, const struct profile *profile)
{
    const char *name = profile->host->gpu;
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

static void put_system(struct json *json, const struct profile *profile)
{
    const struct host_info *info = &profile->host->info;
    json_object(json, "system_info");
    json_string(json, "os_name", or_null(info->os_name));
    json_string(json, "os_version", or_null(info->os_version));
    json_string(json, "kernel_version", or_null(info->kernel));
    json_string(json, "host_name", or_null(info->host_name));
    json_number(json, "cpu_count", info->cpu_count ? (double)info->cpu_count : UNKNOWN);
    json_string(json, "cpu_brand", or_null(info->cpu_brand));
    json_object_end(json);
}

/* What every record says of the machine: merged into each by the stores, so that the journal need not carry it in
 * every line. */
static void put_constants(const struct profile *profile, struct text *out)
{
    struct json json;
    json_init(&json, out, false);
    json_object(&json, NULL);
    json_object(&json, "model_metrics");
    json_object(&json, profile->options->model);
    put_gpu(&json, profile);
    put_system(&json, profile);
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

static struct intelligence intelligence_in(const struct facts *facts)
{
    struct intelligence figures;
    intelligence_of(&facts->sums.tally, &facts->total.busy, calibration_of(&facts->total.energy),
                    &figures);
    return figures;
}

static void put_contract(struct json *json, const struct facts *facts)
{
    struct intelligence score = intelligence_in(facts);
    const struct sketch *ttft = &facts->sums.rows[STATISTIC_TTFT];
    json_string(json, "output_dir", facts->profile->directory);
    json_integer(json, "queries", (int64_t)facts->sums.queries);
    json_integer(json, "completed", (int64_t)facts->sums.completed);
    json_integer(json, "failed", (int64_t)facts->sums.failed);
    json_number(json, "accuracy", score.accuracy);
    energy_to_json(json, "energy", &facts->total.energy);
    json_number(json, "joules_per_output_token",
                ratio(facts->sums.per_output.joules, facts->sums.per_output.tokens));
    json_number(json, "output_tokens_per_s",
                ratio(facts->sums.output_tokens, sums_seconds(&facts->sums)));
    json_number(json, "ipj", score.ipj);
    json_number(json, "ipw", score.ipw);
    json_object(json, "time_to_first_token_s");
    json_number(json, "p50", sketch_quantile(ttft, 0.5));
    json_number(json, "p95", sketch_quantile(ttft, 0.95));
    json_object_end(json);
    json_number(json, "conservation_error", facts->conservation_error);
}

/* Tries that failed in an earlier start and were made again since: no record has them any more. */
static double superseded(const struct facts *facts)
{
    double recorded = facts->sums.joules + facts->sums.failed_joules;
    double rest = facts->total.requests_joules - recorded;
    return rest > 1e-9 * recorded ? rest : 0; /* less is rounding */
}

static void put_where_it_went(struct json *json, const struct facts *facts)
{
    double queries = facts->sums.measured ? facts->sums.joules : UNKNOWN;
    double failed = facts->sums.failed_joules + superseded(facts);
    json_object(json, "joules");
    json_number(json, "queries", queries);
    json_number(json, "queries_idle_share",
                facts->sums.measured ? facts->sums.idle_joules : UNKNOWN);
    json_number(json, "prefill", facts->sums.prefill_joules);
    json_number(json, "decode", facts->sums.decode_joules);
    json_number(json, "failed", is_known(facts->total.energy.joules) ? failed : UNKNOWN);
    json_number(json, "idle", facts->total.idle_joules);
    json_number(json, "unattributed", facts->total.unattributed_joules);
    json_number(json, "judge", facts->sums.judge_joules);
    json_number(json, "gpu", facts->sums.gpu_joules);
    json_number(json, "cpu", facts->sums.cpu_joules);
    json_object_end(json);
}

static void put_prices(struct json *json, const struct facts *facts)
{
    const struct prices *prices = facts->profile->prices;
    json_string(json, "currency", prices ? prices_currency(prices) : NULL);
    json_number(json, "electricity_cost",
                prices ? prices_electricity(prices, facts->total.energy.joules) : UNKNOWN);
}

static void put_more(struct json *json, const struct facts *facts)
{
    struct intelligence score = intelligence_in(facts);
    put_where_it_went(json, facts);
    json_number(json, "joules_per_input_token",
                ratio(facts->sums.per_input.joules, facts->sums.per_input.tokens));
    json_number(json, "prefill_joules_per_input_token",
                ratio(facts->sums.prefill.joules, facts->sums.prefill.tokens));
    json_number(json, "decode_joules_per_output_token",
                ratio(facts->sums.decode.joules, facts->sums.decode.tokens));
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
    json_integer(json, "correct", (int64_t)facts->sums.tally.correct);
    json_integer(json, "incorrect", (int64_t)facts->sums.tally.incorrect);
    json_integer(json, "ungraded", (int64_t)facts->sums.tally.ungraded);
    json_integer(json, "energy_known", (int64_t)facts->sums.measured);
    json_number(json, "seconds", sums_seconds(&facts->sums));
    json_number(json, "input_tokens", facts->sums.input_tokens);
    json_number(json, "output_tokens", facts->sums.output_tokens);
    json_number(json, "cost", facts->sums.cost);
    put_prices(json, facts);
    double flops_per_token = model_flops_per_token(&facts->profile->facts.model);
    /* Work that was not counted would make the hardware look idle: unknown instead. */
    bool all_counted = facts->sums.rows[STATISTIC_INPUT].moments.count == facts->sums.completed &&
                       facts->sums.rows[STATISTIC_OUTPUT].moments.count == facts->sums.completed;
    double flops = all_counted
                       ? flops_per_token * (facts->sums.input_tokens + facts->sums.output_tokens)
                       : UNKNOWN;
    json_number(json, "flops_per_token", flops_per_token);
    json_number(json, "flops", flops);
    json_number(json, "mfu",
                efficiency_mfu(flops, facts->total.busy_s, &facts->profile->facts.peak,
                               facts->profile->facts.devices));
    sums_to_json(json, "statistics", &facts->sums);
}

/* The contract for scripts (`ipw profile --json`). */
static void write_report(const struct facts *facts, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    put_contract(&json, facts);
    json_bool(&json, "interrupted", facts->profile->result->signal != 0);
    put_more(&json, facts);
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

static void put_config(struct json *json, const struct facts *facts)
{
    const struct profile_options *options = facts->profile->options;
    char judge_url[512] = "";
    json_object(json, "profiler_config");
    json_string(json, "dataset_id", options->dataset);
    json_string(json, "client_id", options->client);
    json_string(json, "client_base_url", or_null(facts->profile->base_url));
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

static void put_ours(struct json *json, const struct facts *facts)
{
    json_object(json, "ipw");
    put_contract(json, facts);
    put_more(json, facts);
    put_idle(json, facts->profile->has_idle ? &facts->profile->idle : NULL);
    put_devices(json, facts->profile->has_ledger ? &facts->profile->ledger : NULL);
    json_number(json, "started_at",
                facts->profile->resume.starts ? facts->profile->resume.started_at
                                              : seconds(facts->profile->zero_wall));
    json_integer(json, "starts", facts->profile->start);
    json_bool(json, "interrupted", facts->profile->result->signal != 0);
    json_integer(json, "rows_left_out", (int64_t)facts->profile->supply.bad_rows);
    json_string(json, "first_row_left_out", or_null(facts->profile->supply.first_bad.text));
    json_object(json, "own");
    json_number(json, "cpu_s", facts->own.cpu_s);
    json_number(json, "rss_mb", facts->own.rss_mb);
    json_integer(json, "reads", (int64_t)facts->reads);
    json_object_end(json);
    json_object_end(json);
}

static void write_summary(const struct facts *facts, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_string(&json, "model", facts->profile->options->model);
    put_config(&json, facts);
    json_string(&json, "dataset", facts->profile->options->dataset);
    json_string(&json, "dataset_name", facts->profile->supply.dataset.name);
    json_string(&json, "hardware_label", facts->profile->host->label);
    json_number(&json, "generated_at", seconds(clock_wall()));
    json_integer(&json, "total_queries", (int64_t)facts->sums.queries);
    put_system(&json, facts->profile);
    put_gpu(&json, facts->profile);
    json_string(&json, "output_dir", facts->profile->directory);
    json_object(&json, "versions");
    json_string(&json, "ipw", IPW_VERSION);
    json_null(&json, "python");
    json_object_end(&json);
    json_raw(&json, "client_info", text_get(&facts->profile->client_info));
    put_ours(&json, facts);
    json_object_end(&json);
    text_add(out, "\n");
}

/* ---- first pass: sums ---- */

static enum err take_for_sums(void *context, const struct jv *record)
{
    struct facts *facts = context;
    return sums_add(&facts->sums, facts->profile->options->model, record);
}

static enum err sum_records(struct facts *facts, struct journal_index *index, struct error *why)
{
    uint64_t damaged = 0;
    facts->sums.repeats = facts->profile->options->repeat > 1;
    enum err err = journal_index_give(index, take_for_sums, facts, &damaged, why);
    if (!err && damaged)
        log_warn("%s: %llu damaged lines skipped", facts->profile->journal_path,
                 (unsigned long long)damaged);
    sums_close(&facts->sums);
    return err;
}

/* ---- second pass: stores ---- */

enum { STORES_MAX = 8 };

struct storing {
    struct store stores[STORES_MAX];
    size_t count;
    struct jv *constants;
    struct error why;
};

static void close_stores(struct storing *storing)
{
    for (size_t i = 0; i < storing->count; i++)
        store_close(&storing->stores[i]);
    jv_free(storing->constants);
}

/* A store that this build lacks is skipped with a warning. */
static enum err open_stores(const struct facts *facts, struct storing *storing)
{
    const struct profile *profile = facts->profile;
    struct store_run run = {profile->directory, profile->options->model, facts->sums.metadata};
    struct text constants = {0};
    put_constants(profile, &constants);
    enum err err =
        jv_parse(text_get(&constants), constants.length, &storing->constants, &storing->why);
    text_release(&constants);
    for (size_t i = 0; !err && STORE_DRIVERS[i] && storing->count < STORES_MAX; i++) {
        err = store_open(STORE_DRIVERS[i], &run, &storing->stores[storing->count], &storing->why);
        if (err == ERR_UNSUPPORTED) {
            log_warn("%s is not written: %s", STORE_DRIVERS[i]->name, storing->why.text);
            err = ERR_OK;
        } else if (!err) {
            storing->count++;
        }
    }
    return err;
}

static enum err take_for_stores(void *context, const struct jv *record)
{
    struct storing *storing = context;
    enum err err = jv_merge((struct jv *)record, storing->constants);
    for (size_t i = 0; !err && i < storing->count; i++)
        err = storing->stores[i].driver->put(&storing->stores[i], record, &storing->why);
    return err;
}

static enum err finish_stores(struct storing *storing, const struct text *summary)
{
    struct jv *tree;
    struct summary value;
    enum err err = jv_parse(text_get(summary), summary->length, &tree, &storing->why);
    if (!err)
        err = summary_from_json(tree, &value, &storing->why);
    if (err)
        return err;
    for (size_t i = 0; !err && i < storing->count; i++)
        err = storing->stores[i].driver->finish(&storing->stores[i], &value, &storing->why);
    summary_release(&value);
    return err;
}

static enum err fill_stores(const struct facts *facts, struct journal_index *index,
                            struct error *why)
{
    struct storing storing = {0};
    uint64_t damaged;
    enum err err = open_stores(facts, &storing);
    if (!err)
        err = journal_index_give(index, take_for_stores, &storing, &damaged, &storing.why);
    if (!err)
        err = finish_stores(&storing, &facts->profile->result->summary);
    if (err)
        err_set(why, err, "%s", storing.why.text[0] ? storing.why.text : err_text(err));
    close_stores(&storing);
    return err;
}

/* ---- all of it ---- */

static void fill_result(const struct facts *facts, struct profile_result *result)
{
    const struct sums *sums = &facts->sums;
    result->queries = sums->queries;
    result->completed = sums->completed;
    result->failed = sums->failed;
    result->correct = sums->tally.correct;
    result->incorrect = sums->tally.incorrect;
    result->ungraded = sums->tally.ungraded;
    result->energy = facts->total.energy;
}

static enum err summarize(struct facts *facts, struct profile_result *result, struct error *why)
{
    const struct profile *profile = facts->profile;
    struct journal_index *index;
    enum err err = journal_index_new(&index, profile->journal_path, 0, why);
    if (!err)
        err = sum_records(facts, index, why);
    if (!err) {
        fill_result(facts, result);
        write_report(facts, &result->report);
        write_summary(facts, &result->summary);
        if (result->report.failed || result->summary.failed)
            err = err_set(why, ERR_NO_MEMORY, "out of memory");
    }
    if (!err)
        err = run_dir_put(profile->directory, "summary.json", &result->summary, why);
    if (!err && !profile->options->no_stores)
        err = fill_stores(facts, index, why);
    journal_index_free(index);
    return err;
}

enum err profile_summarize(struct profile *profile, struct error *why)
{
    struct facts facts = {
        .profile = profile,
        .reads = sampler_reads(profile->session->sampler),
    };
    facts.total = settle_totals(profile, &facts.conservation_error);
    proc_own_cost(&facts.own);
    facts.own.cpu_s -= profile->cpu_s_before;
    enum err err = sums_init(&facts.sums);
    if (err)
        return err_set(why, err, "%s", err_text(err));
    err = summarize(&facts, profile->result, why);
    sums_release(&facts.sums);
    return err;
}
