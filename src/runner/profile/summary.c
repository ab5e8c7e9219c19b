/* Facts before a run, and its summary.  One pass over the journal's records sums them (sums.h), which together with the
 * energies of all starts gives the summary; a second pass fills the stores. */
#include <math.h>
#include <string.h>

#include "catalog/device_peak.h"
#include "catalog/model.h"
#include "clients/client.h"
#include "core/clock.h"
#include "core/log.h"
#include "metrics/efficiency.h"
#include "metrics/intelligence.h"
#include "metrics/prices.h"
#include "port/json_read.h"
#include "port/proc.h"
#include "port/url.h"
#include "rundir/journal.h"
#include "rundir/run_path.h"
#include "rundir/store.h"
#include "rundir/summary.h"
#include "runner/profile/phases.h"
#include "runner/profile/state.h"
#include "runner/profile/sums.h"
#include "runner/host_report.h"
#include "sampler/sampler.h"
#include "sampler/session.h"
#include "workloads/workload.h"

/* ---- facts about the model and the machine ---- */

static enum err find_model_size(const struct profile_options *options, struct model_size *out,
                                struct error *why)
{
    if (!options->parameters) {
        model_size_find(options->model, out); /* an unknown size is not an error */
        return ERR_OK;
    }
    /* An invalid value is the user's error. */
    return model_size_parse(options->parameters, out, why) ? ERR_USAGE : ERR_OK;
}

/* Peak performance of the GPUs, if they are in the catalog and all of one kind. */
static void find_peak(const struct sensor_findings *findings, struct efficiency_inputs *facts)
{
    const char *name = NULL;
    unsigned count = 0;
    bool equal = true;
    for (size_t i = 0; i < findings->count; i++) {
        const struct sensor_finding *finding = &findings->items[i];
        if (finding->kind != SENSOR_GPU || finding->status != SENSOR_OK)
            continue;
        equal = equal && (!name || str_equal(name, finding->name));
        name = finding->name;
        count++;
    }
    if (name && equal && device_peak_find(name, &facts->peak))
        facts->devices = count;
}

/* From the price file; options override it. */
static enum err find_tariff(struct profile *profile, struct error *why)
{
    const struct profile_options *options = profile->options;
    profile->setup.tariff = (struct tariff)TARIFF_NONE;
    if (options->price_file) {
        proc_end_by_signals();
        enum err err = prices_load(options->price_file, &profile->setup.prices, why);
        proc_defer_signals();
        if (err)
            return err == ERR_BAD_VALUE ? ERR_USAGE : err; /* an invalid file is the user's error */
        profile->setup.tariff = *prices_tariff(profile->setup.prices);
    }
    if (options->tariff)
        tariff_override(&profile->setup.tariff, options->tariff);
    return ERR_OK;
}

enum err profile_find_facts(struct profile *profile, struct error *why)
{
    const struct profile_options *options = profile->options;
    struct efficiency_inputs *facts = &profile->setup.facts;
    *facts = efficiency_inputs_unknown();
    find_peak(&profile->session->findings, facts);
    struct model_size size = {.total = UNKNOWN, .active = UNKNOWN};
    enum err err = find_model_size(options, &size, why);
    if (err)
        return err;
    facts->flops_per_token = model_flops_per_token(&size);
    if (options->weight_bits > 0) {
        facts->weight_bytes = size.active * options->weight_bits / 8;
        facts->kv_bytes_per_token = options->kv_bytes;
    }
    return find_tariff(profile, why);
}

void profile_release_facts(struct profile_setup *setup)
{
    prices_free(setup->prices);
}

/* ---- configuration ---- */

static void fill_config(struct profile *profile, struct summary *out)
{
    const struct profile_options *options = profile->options;
    out->model = out->config_model = options->model;
    out->dataset = out->config_dataset = options->dataset;
    out->dataset_name = profile->setup.dataset_name;
    out->config_task = options->is_perplexity ? "perplexity" : NULL;
    out->config_client = options->client;
    out->config_workload = options->workload ? options->workload->name : NULL;
    out->config_base_url = str_or_null(profile->setup.base_url);
    out->config_dataset_params.value = profile->report.dataset_params =
        resume_params(&options->dataset_params);
    out->config_client_params.value = profile->report.client_params =
        resume_params(&options->client_params);
    out->config_request_params.value = profile->report.request_params =
        resume_params(&options->request_params);
    out->config_output_dir = options->output_dir ? options->output_dir : "runs";
    out->config_concurrency = options->concurrency;
    if (options->max_queries)
        out->config_max_queries = options->max_queries;
    out->config_warmup_queries = options->warmup_queries;
    out->config_repeat = options->repeat;
    out->config_rate = options->rate > 0 ? options->rate : UNKNOWN;
    out->config_seed = (int64_t)options->seed;
    out->config_timeout_s = options->timeout_s > 0 ? options->timeout_s : UNKNOWN;
    out->config_retries = options->retries;
    out->config_idle_s = options->idle_s;
    out->config_system = options->system;
    out->config_template = options->template_text;
    out->answer_format = profile_prompts(options).answer_format;
    out->config_grader = options->grader;
    out->config_decode_weight = options->decode_weight;
    if (options->judge_model) {
        if (options->judge_url)
            url_hide_login(options->judge_url, profile->report.judge_url,
                           sizeof profile->report.judge_url);
        out->config_judge_client = options->judge_client;
        out->config_judge_base_url = str_or_null(profile->report.judge_url);
        out->config_judge_model = options->judge_model;
    }
}

/* ---- figures ---- */

/* The calibration part of the uncertainty, relative to the energy; repetition does not reduce it. */
static double calibration_of(const struct energy *energy)
{
    double squared =
        energy->plus_minus * energy->plus_minus - energy->statistical * energy->statistical;
    return ratio(sqrt(fmax(0, squared)), energy->joules);
}

/* Shown with the findings on the conditions of the measurement. */
static void add_finding(const struct intelligence *score, struct summary_conditions *out)
{
    struct findings all = {0};
    for (size_t i = 0; i < out->finding_count; i++)
        findings_add(&all, &out->findings[i]);
    intelligence_check(score, &all);
    summary_conditions_find(out, &all);
    findings_release(&all);
}

static void score_of(const struct run_energy *total, const struct sums *sums,
                     struct intelligence *out)
{
    intelligence_of(&sums->tally, &total->busy, calibration_of(&total->energy), out);
}

static void fill_intelligence(const struct run_energy *total, const struct sums *sums,
                              struct summary *out)
{
    struct intelligence score;
    score_of(total, sums, &score);
    out->correct = (int64_t)sums->tally.correct;
    out->incorrect = (int64_t)sums->tally.incorrect;
    out->unread = is_known(score.unread) ? (int64_t)score.unread : INTEGER_UNKNOWN;
    out->accuracy_at_most = score.accuracy_at_most;
    out->ungraded = (int64_t)sums->tally.ungraded;
    out->accuracy = score.accuracy;
    out->accuracy_interval = (struct summary_interval){score.accuracy_low, score.accuracy_high};
    out->ipj = score.ipj;
    out->ipj_plus_minus = score.ipj_plus_minus;
    out->ipj_active = score.ipj_active;
    out->ipw = score.ipw;
    out->ipw_plus_minus = score.ipw_plus_minus;
    out->joules_per_query = score.joules_per_query;
    out->active_joules_per_query = score.active_joules_per_query;
    out->busy_watts = score.busy_watts;
    out->upstream_ipj_mean_query = score.upstream_ipj_mean_query;
    out->upstream_ipj_total = score.upstream_ipj_total;
    out->upstream_ipw_mean_query = score.upstream_ipw_mean_query;
    out->upstream_ipw_total = score.upstream_ipw_total;
}

/* Difference of two sums; a negative one is rounding. */
static double difference(double all, double part)
{
    return all - part > 1e-9 * all ? all - part : 0;
}

/* Attempts of an earlier start whose query was sent again: no longer in any record. */
static double superseded_joules(const struct resume *resume, const struct sums *sums)
{
    return difference(resume->spent.requests_joules, sums->earlier_joules);
}

/* Energy of requests whose record or energy line could not be written, or was deleted since. */
static double lost_joules(struct profile *profile, const struct sums *sums)
{
    struct energy *energy = &profile->report.total.energy;
    double lost = difference(profile->settling.spent.busy.joules,
                             sums->joules + sums->failed_joules + sums->canceled_joules -
                                 sums->earlier_joules) +
                  profile->files.resume.spent.lost_joules;
    if (lost > 1e-3 * energy->joules && !energy->note[0])
        chars_format(energy->note, "%.3g J of requests without a record are unattributed", lost);
    return lost;
}

static double known_or_0(double value)
{
    return is_known(value) ? value : 0;
}

static void fill_energy(struct profile *profile, const struct sums *sums, struct summary *out)
{
    const struct run_energy *total = &profile->report.total;
    double lost = lost_joules(profile, sums);
    out->energy = record_energy_of(&total->energy);
    out->energy_known = (int64_t)sums->measured;
    if (sums->measured) {
        out->queries_joules = sums->joules;
        out->queries_idle_joules = sums->idle_joules;
    }
    if (is_known(total->energy.joules))
        out->failed_joules = sums->failed_joules + superseded_joules(&profile->files.resume, sums);
    if (is_known(total->energy.joules) && sums->canceled)
        out->canceled_joules = sums->canceled_joules;
    out->prefill_joules = sums->prefill_joules;
    out->decode_joules = sums->decode_joules;
    out->idle_joules = total->idle_joules;
    out->unattributed_joules = total->unattributed_joules;
    if (lost > 0)
        add_known(&out->unattributed_joules, lost);
    double parts = known_or_0(out->queries_joules) + known_or_0(out->failed_joules) +
                   known_or_0(out->canceled_joules) + known_or_0(out->idle_joules) +
                   known_or_0(out->unattributed_joules);
    out->conservation_error = fabs(parts - total->energy.joules) / total->energy.joules;
    out->judge_joules = sums->judge_joules;
    out->gpu_joules = sums->gpu_joules;
    out->cpu_joules = sums->cpu_joules;
    out->joules_per_output_token = energy_per_of(&sums->per_output);
    out->joules_per_input_token = energy_per_of(&sums->per_input);
    out->prefill_joules_per_input_token = energy_per_of(&sums->prefill);
    out->decode_joules_per_output_token = energy_per_of(&sums->decode);
}

/* What a workload processed: images, seconds of audio, denoising steps. */
static void fill_media(const struct sums *sums, struct summary *out)
{
    out->images = sums->images;
    out->audio_s = sums->audio_s;
    out->denoise_steps = sums->denoise_steps;
    out->images_per_s = ratio(sums->images, sums_seconds(sums));
    out->joules_per_image = energy_per_of(&sums->per_image);
    out->joules_per_audio_s = energy_per_of(&sums->per_audio_s);
    out->joules_per_denoise_step = energy_per_of(&sums->per_step);
    out->real_time_factor = energy_per_of(&sums->seconds_per_audio_s);
}

/* A resumed run keeps the prices of earlier starts. */
static struct tariff earlier_tariff(const struct profile_files *files)
{
    struct summary earlier;
    struct tariff tariff = TARIFF_NONE;
    if (files->resume.starts && summary_load(files->directory, &earlier, NULL) == ERR_OK) {
        tariff = earlier.tariff;
        summary_release(&earlier);
    }
    return tariff;
}

static void fill_work(struct profile *profile, const struct sums *sums, struct summary *out)
{
    const struct efficiency_inputs *facts = &profile->setup.facts;
    const struct summary_statistic *ttft = &out->statistics[STATISTIC_TTFT];
    out->queries = out->total_queries = (int64_t)sums->queries;
    out->completed = (int64_t)sums->completed;
    out->failed = (int64_t)sums->failed;
    out->canceled = (int64_t)sums->canceled;
    out->cut = (int64_t)sums->cut;
    if (sums_reason(sums->failures, profile->report.failure_reason,
                    sizeof profile->report.failure_reason))
        out->failure_reason = profile->report.failure_reason;
    if (sums_reason(sums->token_notes, profile->report.tokens_note,
                    sizeof profile->report.tokens_note))
        out->tokens_note = profile->report.tokens_note;
    if (profile->report.ungraded_reason[0] ||
        sums_reason(sums->ungraded, profile->report.ungraded_reason,
                    sizeof profile->report.ungraded_reason))
        out->ungraded_reason = profile->report.ungraded_reason;
    if (sums_reason(sums->unread, profile->report.unread_reason,
                    sizeof profile->report.unread_reason))
        out->unread_reason = profile->report.unread_reason;
    out->chunks = sums->chunk_count;
    out->joules_per_chunk = energy_per_of(&sums->chunks);
    out->seconds = sums_seconds(sums);
    out->input_tokens = sums->input_tokens;
    out->output_tokens = sums->output_tokens;
    out->output_tokens_per_s = ratio(sums->output_tokens, out->seconds);
    out->ttft_p50_s = ttft->count ? ttft->median : UNKNOWN;
    out->ttft_p95_s = ttft->count ? ttft->p95 : UNKNOWN;
    out->flops_per_token = facts->flops_per_token;
    /* Unless all work was counted, utilization would be too low: it stays unknown. */
    if (out->statistics[STATISTIC_INPUT].count == out->completed &&
        out->statistics[STATISTIC_OUTPUT].count == out->completed)
        out->flops = out->flops_per_token * (sums->input_tokens + sums->output_tokens);
    out->mfu =
        efficiency_mfu(out->flops, profile->report.total.busy_s, &facts->peak, facts->devices);
    out->cost = sums->cost;
    if (profile->setup.prices)
        out->currency = prices_currency(profile->setup.prices);
    else if (is_known(out->cost))
        out->currency = "USD"; /* that of costs which an agent's events report */
    out->tariff = earlier_tariff(&profile->files);
    tariff_override(&out->tariff, &profile->setup.tariff);
}

static void fill_score(const struct sums *sums, struct summary *out)
{
    double count = (double)sums->scores.count;
    if (count > 0)
        out->score = online_mean(&sums->scores);
    if (count > 1)
        out->score_plus_minus = online_stddev(&sums->scores) / sqrt(count);
    double error, bits_error, nats = sums_ratio(&sums->per_token, &error);
    double per_byte = sums_ratio(&sums->per_byte, &bits_error);
    if (!sums->per_token.count)
        return;
    out->perplexity = exp(nats);
    out->perplexity_plus_minus = out->perplexity * error;
    out->bits_per_byte = per_byte / log(2);
    out->bits_per_byte_plus_minus = bits_error / log(2);
    out->scored_tokens = (int64_t)sums->per_token.y;
    out->scored_bytes = (int64_t)sums->per_byte.y;
}

static void fill_unrecorded(const struct profile *profile, struct summary *out)
{
    const struct resume *resume = &profile->files.resume;
    bool was_measured = is_known(profile->report.total.energy.joules);
    out->unrecorded_requests =
        (int64_t)(resume->unrecorded + atomic_load(&profile->shared.unrecorded));
    out->unrecorded_inference = (int64_t)(resume->unknown + atomic_load(&profile->shared.unknown));
    out->unrecorded_inference_joules =
        was_measured ? resume->unknown_joules + profile->settling.unknown_joules : UNKNOWN;
    out->unrecorded_inference_path =
        str_or_null(resume->unknown_path[0] ? resume->unknown_path : profile->shared.unknown_path);
}

static void fill_run(const struct profile *profile, struct summary *out)
{
    struct own_cost own;
    proc_own_cost(&own);
    out->run_kind = run_kind_name(profile_kind(profile->options));
    out->generated_at = seconds(clock_wall());
    out->output_dir = out->directory = profile->files.directory;
    out->version = IPW_VERSION;
    summary_set_repeat(out, &profile->repeat);
    out->client_info.text = text_get(&profile->setup.client_info);
    out->started_at = profile->files.resume.starts ? profile->files.resume.started_at
                                                   : seconds(profile->zero_wall);
    out->starts = profile->start;
    out->interrupted =
        (int8_t)((profile->result->signal && !profile->options->proxy) || profile->shared.err);
    if (profile->options->proxy)
        fill_unrecorded(profile, out);
    out->rows_left_out = (int64_t)profile->shared.supply.bad_rows;
    out->first_row_left_out = str_or_null(profile->shared.supply.first_bad.text);
    out->own_cpu_s = own.cpu_s - profile->cpu_s_before;
    out->own_rss_mb = own.rss_mb;
    out->own_reads = (int64_t)sampler_reads(profile->session->sampler);
}

static void fill_figures(struct profile *profile, const struct sums *sums, struct summary *out)
{
    for (int i = 0; i < RECORD_STATISTICS; i++)
        out->statistics[i] = sums_statistic(sums, (enum record_statistic)i);
    fill_intelligence(&profile->report.total, sums, out);
    fill_energy(profile, sums, out);
    fill_work(profile, sums, out);
    fill_media(sums, out);
    fill_score(sums, out);
}

/* Configuration and machine of the run. */
static void describe_run(struct profile *profile, struct summary *out)
{
    fill_config(profile, out);
    run_summary_host(profile->host, out);
    fill_run(profile, out);
    out->conditions = profile->conditions.figures;
    run_summary_devices(profile->has_idle ? &profile->idle : NULL,
                        profile->settling.has_ledger ? &profile->settling.ledger : NULL, out);
}

/* ---- first pass: sums ---- */

struct summing {
    struct profile *profile;
    struct sums *sums;
};

static enum err sum_record(void *context, const struct jv *tree)
{
    struct summing *summing = context;
    struct record record;
    record_from_json(tree, summing->profile->options->model, &record);
    sums_add(summing->sums, &record);
    return summing->profile->options->agent ? agents_update(summing->profile, &record) : ERR_OK;
}

static enum err sum_records(struct profile *profile, struct journal_index *index, struct sums *sums,
                            struct error *why)
{
    struct summing summing = {profile, sums};
    uint64_t damaged = 0;
    sums->repeats = profile->options->repeat > 1;
    sums->start = profile->start;
    enum err err = journal_index_read(index, sum_record, &summing, &damaged, why);
    if (!err && damaged)
        log_warn("%s: %llu damaged lines skipped", profile->files.journal_path,
                 (unsigned long long)damaged);
    if (profile->report.agent_traces.missing)
        log_warn("%llu queries have no trace: figures of turns and tools are of the others",
                 (unsigned long long)profile->report.agent_traces.missing);
    sums_close(sums);
    return err;
}

/* ---- second pass: stores ---- */

static enum err fill_stores(const struct profile *profile, struct journal_index *index,
                            const struct sums *sums, struct error *why)
{
    const struct store_run run = {profile->files.directory, profile->options->model,
                                  sums->metadata};
    return stores_fill(&run, index, &profile->result->summary, why);
}

/* ---- the summary ---- */

static enum err summarize(struct profile *profile, struct sums *sums, profile_describe *describe,
                          struct error *why)
{
    struct summary *summary = &profile->result->summary;
    struct intelligence score;
    struct journal_index *index;
    enum err err = journal_index_new(&index, profile->files.journal_path, why);
    if (!err && profile->options->agent)
        err = agents_load(profile, why);
    if (!err)
        err = sum_records(profile, index, sums, why);
    if (!err && profile->shared.has_supply) /* not of merged runs: their graders are not known */
        err = profile_find_qualities(profile, index, summary, why);
    if (!err) {
        fill_figures(profile, sums, summary);
        describe(profile, summary);
        score_of(&profile->report.total, sums, &score);
        add_finding(&score, &summary->conditions);
        summary_charge(summary);
    }
    profile->result->has_summary = !err;
    if (!err)
        err = summary_save(profile->files.directory, summary, why);
    if (!err && !profile->options->no_stores)
        err = fill_stores(profile, index, sums, why);
    if (!err && profile->options->agent)
        err = agents_save(profile, why);
    journal_index_free(index);
    return err;
}

enum err profile_summarize_as(struct profile *profile, profile_describe *describe,
                              struct error *why)
{
    struct sums sums;
    profile->report.total = settle_totals(&profile->files.resume, &profile->settling);
    profile->result->energy = profile->report.total.energy;
    sums_init(&sums);
    enum err err = summarize(profile, &sums, describe, why);
    sums_release(&sums);
    return err;
}

enum err profile_summarize(struct profile *profile, struct error *why)
{
    return profile_summarize_as(profile, describe_run, why);
}
