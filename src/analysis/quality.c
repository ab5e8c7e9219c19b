/* What the figures of a run are worth: what is missing, estimated, uncertain, drifting or cold. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "analysis/quality/checks.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "stats/quantile.h"

#define COVERAGE_LEAST    0.9
#define RESIDUAL_MOST     0.05
#define CONSERVATION_MOST 1e-6

/* Of different errors that are listed: thousands tell no more. */
enum { REASONS_MOST = 50 };

/* ---- how it ended ---- */

static void check_end(struct checks *checks)
{
    const struct run_table *table = checks->table;
    bool interrupted = jv_bool(jv_path(table->summary, "ipw.interrupted"), false);
    if (!table->summary)
        check_put(checks, "finished", CHECK_WARNING,
                  "there is no summary: the run goes on, or was killed");
    else
        check_put(checks, "finished", interrupted ? CHECK_WARNING : CHECK_GOOD, "%s",
                  interrupted ? "a signal ended the run: --resume continues it" : "to its end");
    check_put(checks, "failed_queries", table->failed ? CHECK_WARNING : CHECK_GOOD, "%zu of %zu",
              table->failed, table->rows);
}

static size_t count_word(const struct run_table *table, enum run_word column, const char *word)
{
    size_t count = 0;
    for (size_t i = 0; i < table->rows; i++)
        count += run_completed(table, i) && strcmp(run_word(table, column, i), word) == 0;
    return count;
}

static void check_answers(struct checks *checks)
{
    const struct run_table *table = checks->table;
    size_t cut = count_word(table, RUN_FINISH, "length"), again = 0;
    if (table->words[RUN_FINISH].count > 1)
        check_put(checks, "cut_answers", cut ? CHECK_WARNING : CHECK_GOOD,
                  "%zu answers ended at the limit of tokens", cut);
    else
        check_put(checks, "cut_answers", CHECK_UNKNOWN, "why answers ended is not known");
    for (size_t i = 0; i < table->rows; i++)
        again += run_number(table, RUN_ATTEMPTS, i) > 1;
    if (again)
        check_put(checks, "retries", CHECK_WARNING, "%zu queries took more than one attempt",
                  again);
    if (table->not_finite)
        check_put(checks, "not_finite", CHECK_WARNING, "%llu values were NaN or infinite",
                  (unsigned long long)table->not_finite);
    if (table->negative)
        check_put(checks, "negative_energy", CHECK_WARNING,
                  "%llu of %zu queries have an energy below 0, which counts as unknown",
                  (unsigned long long)table->negative, table->rows);
    if (table->damaged)
        check_put(checks, "damaged_lines", CHECK_WARNING, "%llu lines of the journal",
                  (unsigned long long)table->damaged);
}

/* ---- energy ---- */

struct energy_counts {
    size_t completed, known, estimated, low_coverage, low_confidence;
    double coverage_least;
};

static struct energy_counts count_energy(const struct run_table *table)
{
    struct energy_counts counts = {.coverage_least = INFINITY};
    for (size_t i = 0; i < table->rows; i++) {
        if (!run_completed(table, i))
            continue;
        double coverage = run_number(table, RUN_COVERAGE, i);
        counts.completed++;
        if (!is_known(run_number(table, RUN_JOULES, i)))
            continue;
        counts.known++;
        counts.estimated += strcmp(run_word(table, RUN_METHOD, i), "estimated") == 0;
        counts.low_confidence += run_flag(table, RUN_LOW_CONFIDENCE, i) == 1;
        counts.low_coverage += is_known(coverage) && coverage < COVERAGE_LEAST;
        counts.coverage_least =
            fmin(counts.coverage_least, is_known(coverage) ? coverage : INFINITY);
    }
    return counts;
}

static void check_evidence(struct checks *checks, const struct energy_counts *counts)
{
    check_put(checks, "method", counts->estimated ? CHECK_WARNING : CHECK_GOOD,
              counts->estimated ? "%zu of %zu energies are estimated, not measured"
                                : "%zu of %zu energies are estimated",
              counts->estimated, counts->known);
    check_put(checks, "coverage", counts->low_coverage ? CHECK_WARNING : CHECK_GOOD,
              "%zu of %zu queries are covered by less than 90 %%; the least is %.1f %%",
              counts->low_coverage, counts->known,
              isfinite(counts->coverage_least) ? 100 * counts->coverage_least : 0);
    check_put(checks, "low_confidence", counts->low_confidence ? CHECK_WARNING : CHECK_GOOD,
              "%zu of %zu queries are shorter than ten updates of their sensor",
              counts->low_confidence, counts->known);
}

static enum err check_uncertainty(struct checks *checks)
{
    double *values = NULL;
    size_t count;
    enum err err = known_ratios(checks->table, RUN_PLUS_MINUS, RUN_JOULES, &values, &count);
    double middle = err ? UNKNOWN : select_median(values, count);
    if (is_known(middle))
        check_put(checks, "uncertainty", middle > 0.1 ? CHECK_WARNING : CHECK_GOOD,
                  "the median energy is known to ± %.2g %%", 100 * middle);
    free(values);
    return err;
}

static enum err check_energy(struct checks *checks, const struct energy_counts *counts)
{
    if (!counts->completed) {
        check_put(checks, "energy", CHECK_UNKNOWN,
                  "no query was completed: there is none to have one");
        return ERR_OK;
    }
    if (!counts->known) {
        check_put(checks, "energy", CHECK_WARNING,
                  "unknown of all %zu completed queries: see ipw doctor", counts->completed);
        return ERR_OK;
    }
    check_put(checks, "energy", counts->known < counts->completed ? CHECK_WARNING : CHECK_GOOD,
              "known of %zu of %zu completed queries", counts->known, counts->completed);
    if (!checks->table->ours) {
        check_put(checks, "evidence", CHECK_UNKNOWN,
                  "a run of the Python IPW: its energies carry no coverage, method or uncertainty");
        return ERR_OK;
    }
    check_evidence(checks, counts);
    return check_uncertainty(checks);
}

/* ---- the machine ---- */

static void check_device(struct checks *checks, const struct jv *device)
{
    const char *id = jv_text(jv_get(device, "id")), *note = jv_text(jv_path(device, "energy.note"));
    double residual = jv_number(jv_get(device, "cross_check_residual"));
    if (!is_known(jv_number(jv_path(device, "energy.joules"))))
        check_put(checks, "device", CHECK_WARNING, "%s gave no energy: %.200s", id ? id : "?",
                  note ? note : "no reason is known");
    if (is_known(residual))
        check_put(checks, "cross_check",
                  fabs(residual) > RESIDUAL_MOST ? CHECK_WARNING : CHECK_GOOD,
                  "%s: a second channel differs by %+.1f %%", id ? id : "?", 100 * residual);
}

static void check_machine(struct checks *checks)
{
    const struct run_table *table = checks->table;
    const struct jv *devices = jv_path(table->summary, "ipw.devices");
    double missing = run_fact(table, "ipw.conservation_error");
    for (const struct jv *device = jv_first(devices); device; device = jv_next(device))
        check_device(checks, device);
    if (is_known(missing))
        check_put(checks, "conservation", missing > CONSERVATION_MOST ? CHECK_WARNING : CHECK_GOOD,
                  "the parts miss the machine's energy by %.2g %%", 100 * missing);
    if (table->ours && table->summary) {
        bool measured = jv_is_object(jv_path(table->summary, "ipw.idle"));
        check_put(checks, "idle_baseline", measured ? CHECK_GOOD : CHECK_WARNING, "%s",
                  measured ? "measured" : "not measured: what is idle and what active is unknown");
    }
}

/* ---- failures ---- */

static enum err put_failures(struct json *json, const struct run_table *table)
{
    const struct run_words *words = &table->words[RUN_ERROR];
    size_t *counts = calloc(words->count + 1, sizeof *counts), shown = 0;
    if (!counts)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < table->rows; i++)
        counts[run_word_id(table, RUN_ERROR, i)] += !run_completed(table, i);
    json_array(json, "failures");
    for (uint32_t id = 0; id < words->count && shown < REASONS_MOST; id++) {
        if (!counts[id])
            continue;
        shown++;
        json_object(json, NULL);
        json_string(json, "error", words->texts[id]);
        json_integer(json, "queries", (int64_t)counts[id]);
        json_object_end(json);
    }
    json_array_end(json);
    free(counts);
    return ERR_OK;
}

/* ---- all of it ---- */

static enum err put_checks(struct checks *checks, const struct energy_counts *counts)
{
    check_end(checks);
    check_answers(checks);
    enum err err = check_energy(checks, counts);
    check_machine(checks);
    if (!err)
        err = check_throttling(checks);
    if (!err)
        err = check_trends(checks);
    if (!err)
        err = check_cold_start(checks);
    return err;
}

static enum err quality_run(struct analysis *analysis, struct error *why)
{
    (void)why;
    const struct run_table *table = analysis->table;
    struct text list = {0};
    struct json inner;
    struct checks checks = {.json = &inner, .table = table};
    struct energy_counts counts = count_energy(table);
    json_init(&inner, &list, false);
    json_array(&inner, NULL);
    enum err err = put_checks(&checks, &counts);
    json_array_end(&inner);
    json_object(analysis->json, "summary");
    json_integer(analysis->json, "queries", (int64_t)table->rows);
    json_integer(analysis->json, "failed", (int64_t)table->failed);
    json_integer(analysis->json, "energy_known", (int64_t)counts.known);
    json_string(analysis->json, "records", table->source == RUN_FROM_ARROW ? "arrow" : "journal");
    json_string(analysis->json, "model", table->model);
    json_string(analysis->json, "hardware", run_fact_text(table, "hardware_label"));
    json_integer(analysis->json, "checks_good", (int64_t)checks.counts[CHECK_GOOD]);
    json_integer(analysis->json, "checks_warning", (int64_t)checks.counts[CHECK_WARNING]);
    json_integer(analysis->json, "checks_unknown", (int64_t)checks.counts[CHECK_UNKNOWN]);
    json_object_end(analysis->json);
    json_object(analysis->json, "data");
    json_raw(analysis->json, "checks",
             text_get(&list)); /* the counts above had to be known first */
    if (!err)
        err = put_failures(analysis->json, table);
    json_object_end(analysis->json);
    for (size_t i = 0; i < table->note_count; i++)
        analysis_warn(analysis, "%s", table->notes[i].text);
    if (list.failed)
        err = ERR_NO_MEMORY;
    text_release(&list);
    return err;
}

const struct analysis_driver analysis_quality = {
    .name = "quality",
    .summary =
        "what the figures are worth: coverage, method, failures, drift, throttling, cold starts",
    .needs = {RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_PLUS_MINUS) | RUN_WANT(RUN_COVERAGE) |
                  RUN_WANT(RUN_WATTS) | RUN_WANT(RUN_LATENCY) | RUN_WANT(RUN_TTFT) |
                  RUN_WANT(RUN_OUTPUT_TOKENS) | RUN_WANT(RUN_TEMPERATURE) | RUN_WANT(RUN_ATTEMPTS),
              RUN_WANT(RUN_METHOD) | RUN_WANT(RUN_ERROR) | RUN_WANT(RUN_FINISH)},
    .of_failures_too = true,
    .run = quality_run,
};
