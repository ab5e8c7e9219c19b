/* Quality of the figures of a run.  Each check examines one aspect (coverage, failures, trend over the run, throttling
 * ...) and returns good, warning or unknown, with details. */
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/quantity.h"
#include "core/text.h"
#include "core/units.h"
#include "rundir/run_table.h"
#include "rundir/samples.h"
#include "stats/correlation.h"
#include "stats/descriptive.h"
#include "stats/fit.h"

/* ---- checks ---- */

enum check_verdict { CHECK_GOOD, CHECK_WARNING, CHECK_UNKNOWN };

struct checks {
    const struct run_table *table;
    struct result *result; /* with an open list of checks */
};

/* Warnings are also added below the finding. */
PRINTF_LIKE(4, 5)
static void check_put(struct checks *checks, const char *check, enum check_verdict verdict,
                      const char *format, ...)
{
    static const char *const NAMES[] = {"good", "warning", "unknown"};
    char detail[320], count[32];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    result_group(checks->result, NULL);
    result_text(checks->result, "check", check);
    result_text(checks->result, "verdict", NAMES[verdict]);
    result_text(checks->result, "detail", detail);
    result_end(checks->result);
    str_format(count, sizeof count, "summary.checks_%s", NAMES[verdict]);
    result_count_one(checks->result, count);
    if (verdict == CHECK_WARNING)
        result_note(checks->result, "%s: %s", check, detail);
}

/* ---- trend over the run ---- */

enum { TREND_MAX = 100000, TREND_MIN = 10, COLD_MIN = 10 };

/* A trend is reported when it is significant at the 1 % level and large enough to matter. */
#define P_MAX      0.01
#define Z_MAX      3.5
#define MAD_TO_STD 1.4826022185056018

static const struct trend_row {
    const char *check, *what;
    enum run_number numerator, denominator; /* RUN_NUMBERS: the column itself */
    double share, amount;                   /* threshold: relative to the median, or in the unit */
} TRENDS[] = {
    {"temperature_drift", "temperature", RUN_TEMPERATURE, RUN_NUMBERS, INFINITY, 5},
    {"energy_drift", "energy per output token", RUN_JOULES, RUN_OUTPUT_TOKENS, 0.05, INFINITY},
    {"power_drift", "mean power", RUN_WATTS, RUN_NUMBERS, 0.05, INFINITY},
    {"speed_drift", "time per output token", RUN_LATENCY, RUN_OUTPUT_TOKENS, 0.05, INFINITY},
};

static void report_trend(struct checks *checks, const struct trend_row *row, double change,
                         double middle, double p)
{
    char size[64];
    bool matters = fabs(change) > row->amount || fabs(change) > row->share * fabs(middle);
    bool drifts = p < P_MAX && matters;
    if (isfinite(row->share))
        str_format(size, sizeof size, "%+.1f %% of its median", 100 * change / fabs(middle));
    else
        str_format(size, sizeof size, "%+.1f %s", change,
                   column_unit(row->numerator, row->denominator));
    check_put(checks, row->check, drifts ? CHECK_WARNING : CHECK_GOOD,
              "the %s changes by %s over the run (p = %.2g)", row->what, size, p);
}

static enum err check_trend(struct checks *checks, const struct trend_row *row)
{
    const struct run_table *table = checks->table;
    size_t step = table->rows / TREND_MAX + 1, max = table->rows / step + 1, count = 0;
    double *order = malloc(max * sizeof *order), *values = malloc(max * sizeof *values);
    struct theil_sen line = {0};
    struct correlation trend = {0, UNKNOWN, UNKNOWN};
    enum err err = order && values ? ERR_OK : ERR_NO_MEMORY;
    for (size_t i = 0; !err && i < table->rows; i += step) {
        values[count] = row_value(table, row->numerator, row->denominator, i);
        order[count] = (double)i;
        count += is_known(values[count]);
    }
    if (!err && count >= TREND_MIN) {
        double length = order[count - 1] - order[0];
        err = kendall(order, values, count, &trend);
        if (!err)
            err = theil_sen(order, values, count, &line);
        if (!err && is_known(trend.p_value))
            report_trend(checks, row, line.slope * length, select_median(values, count),
                         trend.p_value);
        else if (!err)
            check_put(checks, row->check, CHECK_GOOD, "the %s is constant", row->what);
    } else if (!err) {
        check_put(checks, row->check, CHECK_UNKNOWN, "the %s is known for %zu %s; a trend needs %d",
                  row->what, count, units_of(checks->table, true), TREND_MIN);
    }
    free(order);
    free(values);
    return err;
}

static enum err check_trends(struct checks *checks)
{
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < sizeof TRENDS / sizeof *TRENDS; i++)
        err = check_trend(checks, &TRENDS[i]);
    return err;
}

/* ---- cold starts ---- */

/* The first completed query; rows are in the order of completion. */
static size_t first_of(const struct run_table *table)
{
    size_t row = 0;
    while (row < table->rows &&
           !(run_completed(table, row) && is_known(run_number(table, RUN_TTFT, row))))
        row++;
    return row;
}

static enum err check_cold_start(struct checks *checks)
{
    const struct run_table *table = checks->table;
    double *values = NULL;
    size_t count, first = first_of(table);
    enum err err = known_values(table, RUN_TTFT, RUN_NUMBERS, &values, &count);
    if (!err && (count < COLD_MIN || first == table->rows)) {
        check_put(checks, "cold_start", CHECK_UNKNOWN,
                  "the time to first token is known for %zu %s; a comparison needs %d", count,
                  units_of(checks->table, true), COLD_MIN);
    } else if (!err) {
        double value = run_number(table, RUN_TTFT, first), middle = select_median(values, count);
        for (size_t i = 0; i < count; i++)
            values[i] = fabs(values[i] - middle);
        double spread = MAD_TO_STD * select_median(values, count);
        bool cold = value > middle + Z_MAX * spread && value > 1.5 * middle;
        check_put(checks, "cold_start", cold ? CHECK_WARNING : CHECK_GOOD,
                  "TTFT of the first query %.3g s, median %.3g s%s", value, middle,
                  cold ? ": increase --warmup-queries" : "");
    }
    free(values);
    return err;
}

/* ---- throttling ---- */

/* Reading more would take longer than all other analyses: larger files are sampled. */
#define BYTES_MAX (UINT64_C(64) << 20)

struct scan {
    size_t files, samples, throttled; /* throttled: some cause was reported */
    unsigned causes;
    bool in_part;
};

static enum err take_sample(void *context, const struct sample *sample)
{
    struct scan *scan = context;
    unsigned causes =
        sample->value >= 0 && sample->value <= UINT32_MAX ? (unsigned)sample->value : 0;
    scan->samples++;
    scan->throttled += causes != 0;
    scan->causes |= causes;
    return ERR_OK;
}

/* Files that cannot be read are ignored. */
static struct scan scan_throttling(const char *directory)
{
    const struct samples_query query = {.quantity = quantity_name(QTY_THROTTLE),
                                        .bytes_max = BYTES_MAX};
    struct scan scan = {0};
    for (unsigned start = 1, last = samples_starts(directory); start <= last; start++) {
        struct samples_found found;
        enum err err = samples_read(directory, start, &query, take_sample, &scan, &found, NULL);
        scan.files += err != ERR_NOT_FOUND;
        scan.in_part = scan.in_part || found.in_part;
    }
    return scan;
}

static void name_causes(unsigned causes, char *to, size_t size)
{
    static const struct {
        unsigned bit;
        const char *name;
    } NAMES[] = {{THROTTLE_POWER, "power"},     {THROTTLE_THERMAL, "thermal"},
                 {THROTTLE_BRAKE, "brake"},     {THROTTLE_LIMIT, "a setting"},
                 {THROTTLE_SYNC, "other GPUs"}, {THROTTLE_OTHER, "other"}};
    size_t length = 0;
    to[0] = '\0';
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (causes & NAMES[i].bit &&
            str_join(to + length, size - length, length ? ", " : "", NAMES[i].name, ""))
            length = strlen(to);
}

static enum err check_throttling(struct checks *checks)
{
    struct scan scan = scan_throttling(checks->table->directory);
    char causes[128];
    const char *picked = scan.in_part ? ", evenly spaced" : "";
    name_causes(scan.causes, causes, sizeof causes);
    if (scan.throttled)
        check_put(
            checks, "throttling", CHECK_WARNING, "clocks throttled in %.1f %% of %zu samples%s: %s",
            100.0 * (double)scan.throttled / (double)scan.samples, scan.samples, picked, causes);
    else if (scan.samples)
        check_put(checks, "throttling", CHECK_GOOD, "none in %zu samples%s", scan.samples, picked);
    else
        check_put(checks, "throttling", CHECK_UNKNOWN,
                  scan.files ? "no device reports it" : "no samples");
    return ERR_OK;
}

/* ---- the analysis ---- */

#define COVERAGE_MIN     0.9
#define RESIDUAL_MAX     0.05
#define CONSERVATION_MAX 1e-6

/* Maximum number of listed errors. */
enum { REASONS_MAX = 50 };

/* ---- completion ---- */

static void check_end(struct checks *checks)
{
    const struct run_table *table = checks->table;
    bool interrupted = table->summary.interrupted == 1;
    if (!table->has_summary)
        check_put(checks, "finished", CHECK_WARNING,
                  "no summary: the run is still running or was killed");
    else
        check_put(checks, "finished", interrupted ? CHECK_WARNING : CHECK_GOOD, "%s",
                  interrupted ? "interrupted: --resume continues it" : "complete");
    check_put(checks, "failed_queries", table->failed ? CHECK_WARNING : CHECK_GOOD, "%zu of %zu",
              table->failed, table->rows);
    if (table->canceled)
        check_put(checks, "canceled_queries", CHECK_GOOD, "%zu of %zu canceled by their clients",
                  table->canceled, table->rows);
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
                  "%zu answers reached the token limit", cut);
    else
        check_put(checks, "cut_answers", CHECK_UNKNOWN, "finish reasons are unknown");
    if (table->has_summary && table->summary.tokens_note)
        check_put(checks, "token_counts", CHECK_WARNING, "unknown for some queries: %s",
                  table->summary.tokens_note);
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
                  "%llu of %zu %s have a negative energy, which counts as unknown",
                  (unsigned long long)table->negative, table->rows, units_of(checks->table, true));
    size_t paused = 0;
    for (size_t i = 0; i < table->rows; i++)
        paused += run_flag(table, RUN_PAUSED, i) == 1;
    if (paused)
        check_put(checks, "paused", CHECK_WARNING,
                  "%zu of %zu %s include time in which ipw was stopped or the machine suspended",
                  paused, table->rows, units_of(checks->table, true));
    if (table->damaged)
        check_put(checks, "damaged_lines", CHECK_WARNING, "%llu lines of the journal",
                  (unsigned long long)table->damaged);
}

/* ---- energy ---- */

struct energy_counts {
    size_t completed, known, estimated, low_coverage, low_confidence;
    double coverage_min;
};

static struct energy_counts count_energy(const struct run_table *table)
{
    struct energy_counts counts = {.coverage_min = INFINITY};
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
        counts.low_coverage += is_known(coverage) && coverage < COVERAGE_MIN;
        counts.coverage_min = fmin(counts.coverage_min, is_known(coverage) ? coverage : INFINITY);
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
              "%zu of %zu %s have a coverage below 90 %%; minimum %.1f %%", counts->low_coverage,
              counts->known, units_of(checks->table, true),
              isfinite(counts->coverage_min) ? 100 * counts->coverage_min : 0);
    check_put(checks, "low_confidence", counts->low_confidence ? CHECK_WARNING : CHECK_GOOD,
              "%zu of %zu %s are shorter than ten updates of their sensor", counts->low_confidence,
              counts->known, units_of(checks->table, true));
}

static enum err check_uncertainty(struct checks *checks)
{
    double *values = NULL;
    size_t count;
    enum err err = known_values(checks->table, RUN_PLUS_MINUS, RUN_JOULES, &values, &count);
    double middle = err ? UNKNOWN : select_median(values, count);
    if (is_known(middle))
        check_put(checks, "uncertainty", middle > 0.1 ? CHECK_WARNING : CHECK_GOOD,
                  "median uncertainty of the energy ± %.*f %%", middle < 0.0995 ? 1 : 0,
                  100 * middle);
    free(values);
    return err;
}

static enum err check_energy(struct checks *checks, const struct energy_counts *counts)
{
    if (!counts->completed) {
        check_put(checks, "energy", CHECK_UNKNOWN, "no %s was completed",
                  units_of(checks->table, false));
        return ERR_OK;
    }
    if (!counts->known) {
        check_put(checks, "energy", CHECK_WARNING,
                  "unknown for all %zu completed %s: see ipw doctor", counts->completed,
                  units_of(checks->table, true));
        return ERR_OK;
    }
    check_put(checks, "energy", counts->known < counts->completed ? CHECK_WARNING : CHECK_GOOD,
              "known for %zu of %zu completed %s", counts->known, counts->completed,
              units_of(checks->table, true));
    if (!checks->table->ours) {
        check_put(checks, "evidence", CHECK_UNKNOWN,
                  "a run of the Python IPW: its energies carry no coverage, method or uncertainty");
        return ERR_OK;
    }
    check_evidence(checks, counts);
    return check_uncertainty(checks);
}

/* ---- the machine ---- */

static void check_device(struct checks *checks, const struct summary_device *device)
{
    const char *id = device->id ? device->id : "?", *note = device->energy.note;
    if (!is_known(device->energy.joules))
        check_put(checks, "device", CHECK_WARNING, "%s has no energy: %.200s", id,
                  note ? note : "unknown reason");
    if (is_known(device->residual))
        check_put(checks, "cross_check",
                  fabs(device->residual) > RESIDUAL_MAX ? CHECK_WARNING : CHECK_GOOD,
                  "%s: a second channel differs by %+.1f %%", id, 100 * device->residual);
}

/* From the parts as written: earlier versions compared two sums of the same sampler, which are equal by
 * construction. */
static double conservation_error(const struct summary *summary)
{
    const double parts[] = {summary->queries_joules, summary->failed_joules,
                            summary->canceled_joules, summary->idle_joules,
                            summary->unattributed_joules};
    double all = summary->energy.joules, sum = UNKNOWN;
    if (!is_known(summary->conservation_error) || !(all > 0))
        return UNKNOWN;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        add_known(&sum, parts[i]);
    return fabs(sum - all) / all;
}

/* Energy of requests without a record: a full disk, a kill, a deleted line. */
#define UNATTRIBUTED_MAX 0.1

static void check_unattributed(struct checks *checks)
{
    const struct summary *summary = &checks->table->summary;
    double share = ratio(summary->unattributed_joules, summary->energy.joules);
    if (summary->energy_known < summary->completed && share > UNATTRIBUTED_MAX)
        check_put(checks, "unattributed", CHECK_WARNING,
                  "%.3g J, %.0f %% of the energy, are not attributed to any query: the energies of "
                  "%lld queries are missing",
                  summary->unattributed_joules, 100 * share,
                  (long long)(summary->completed - summary->energy_known));
}

/* NULL if not found. */
static const struct summary_finding *find_code(const struct run_table *table, const char *code)
{
    const struct summary_conditions *conditions = &table->summary.conditions;
    for (size_t i = 0; i < conditions->finding_count; i++)
        if (strcmp(conditions->findings[i].code, code) == 0)
            return &conditions->findings[i];
    return NULL;
}

static void check_background(struct checks *checks)
{
    const struct summary_conditions *conditions = &checks->table->summary.conditions;
    const struct summary_finding *unknown = find_code(checks->table, "background_unknown"),
                                 *found = find_code(checks->table, "background_cpu");
    if (found)
        check_put(checks, "background_load", CHECK_WARNING, "%s", found->text);
    else if (unknown)
        check_put(checks, "background_load", CHECK_UNKNOWN, "%s", unknown->text);
    else if (is_known(conditions->background_cpus))
        check_put(checks, "background_load", CHECK_GOOD, "other processes used %.2g of %lld CPUs",
                  conditions->background_cpus, (long long)conditions->cpus);
}

/* Skipped without a GPU. */
static void check_background_gpu(struct checks *checks)
{
    const struct summary_conditions *conditions = &checks->table->summary.conditions;
    const struct summary_finding *unknown = find_code(checks->table, "background_gpu_unknown"),
                                 *found = find_code(checks->table, "background_gpu");
    if (found || unknown)
        check_put(checks, "background_gpu",
                  found && found->severity > FINDING_NOTE ? CHECK_WARNING : CHECK_UNKNOWN, "%s",
                  found ? found->text : unknown->text);
    else if (is_known(conditions->background_gpu_pct))
        check_put(checks, "background_gpu", CHECK_GOOD, "other processes used %.2g %% of a GPU",
                  conditions->background_gpu_pct);
}

/* Of ipw proxy. */
static void check_unrecorded(struct checks *checks)
{
    const struct summary_finding *found = find_code(checks->table, "unrecorded_inference");
    if (found)
        check_put(checks, "unrecorded_inference",
                  found->severity > FINDING_NOTE ? CHECK_WARNING : CHECK_GOOD, "%s", found->text);
    else if (checks->table->summary.unrecorded_inference == 0)
        check_put(checks, "unrecorded_inference", CHECK_GOOD,
                  "all inference requests were recorded");
}

static void check_idle(struct checks *checks)
{
    const struct run_table *table = checks->table;
    const struct summary_finding *refused = find_code(table, "baseline_refused"),
                                 *changed = find_code(table, "idle_changed");
    bool measured = table->summary.idle.known;
    const char *text = measured ? "measured" : "not measured: idle and active energy are unknown";
    if (refused || changed)
        text = refused ? refused->text : changed->text;
    check_put(checks, "idle_baseline", measured && !changed ? CHECK_GOOD : CHECK_WARNING, "%s",
              text);
}

static void check_machine(struct checks *checks)
{
    const struct run_table *table = checks->table;
    double missing = conservation_error(&table->summary);
    for (size_t i = 0; i < table->summary.device_count; i++)
        check_device(checks, &table->summary.devices[i]);
    if (is_known(missing))
        check_put(checks, "conservation", missing > CONSERVATION_MAX ? CHECK_WARNING : CHECK_GOOD,
                  "the parts differ from the machine's energy by %.2g %%", 100 * missing);
    check_unattributed(checks);
    check_unrecorded(checks);
    if (table->ours && table->has_summary)
        check_idle(checks);
    check_background(checks);
    check_background_gpu(checks);
}

/* ---- failures ---- */

static enum err put_failures(struct result *result, const struct run_table *table)
{
    const struct run_words *words = &table->words[RUN_ERROR];
    size_t *counts = calloc(words->count + 1, sizeof *counts), shown = 0;
    if (!counts)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < table->rows; i++)
        counts[run_word_id(table, RUN_ERROR, i)] += run_flag(table, RUN_FAILED, i) == 1;
    result_list(result, "failures");
    for (uint32_t id = 0; id < words->count && shown < REASONS_MAX; id++) {
        if (!counts[id])
            continue;
        shown++;
        result_group(result, NULL);
        result_text(result, "error", words->texts[id]);
        result_count(result, "queries", counts[id]);
        result_end(result);
    }
    result_end(result);
    free(counts);
    return ERR_OK;
}

/* ---- the complete analysis ---- */

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
    struct result *result = analysis->result;
    struct checks checks = {table, result};
    struct energy_counts counts = count_energy(table);
    result_group(result, "summary");
    result_count(result, "queries", table->rows);
    result_count(result, "failed", table->failed);
    result_count(result, "canceled", table->canceled);
    result_count(result, "energy_known", counts.known);
    result_text(result, "records", table->source == RUN_FROM_ARROW ? "arrow" : "journal");
    result_text(result, "model", table->model);
    result_text(result, "hardware", run_hardware(table));
    result_count(result, "checks_good", 0);
    result_count(result, "checks_warning", 0);
    result_count(result, "checks_unknown", 0);
    result_end(result);
    result_group(result, "data");
    result_list(result, "checks");
    enum err err = put_checks(&checks, &counts);
    result_end(result);
    if (!err)
        err = put_failures(result, table);
    result_end(result);
    for (size_t i = 0; i < table->note_count; i++)
        result_warn(result, "%s", table->notes[i].text);
    return err;
}

static const struct result_phrase FINDING[] = {
    {"checks: ", "summary.checks_good", " good"},
    {", ", "summary.checks_warning", " with a warning"},
    {", ", "summary.checks_unknown", " unknown"},
    {0},
};

const struct analysis_driver analysis_quality = {
    .name = "quality",
    .summary = "quality of the figures: coverage, method, failures, drift, throttling, cold starts",
    .needs = {RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_PLUS_MINUS) | RUN_WANT(RUN_COVERAGE) |
                  RUN_WANT(RUN_WATTS) | RUN_WANT(RUN_LATENCY) | RUN_WANT(RUN_TTFT) |
                  RUN_WANT(RUN_OUTPUT_TOKENS) | RUN_WANT(RUN_TEMPERATURE) | RUN_WANT(RUN_ATTEMPTS),
              RUN_WANT(RUN_METHOD) | RUN_WANT(RUN_ERROR) | RUN_WANT(RUN_FINISH)},
    .accepts_failed = true,
    .finding = FINDING,
    .run = quality_run,
};
