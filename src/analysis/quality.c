/* Quality of the figures of a run.  Each check looks for one finding (core/finding.def), in coverage, failures, trend
 * over the run, clock limits ...: it raises the finding, or reports that all is good, or that it cannot tell.  What was
 * found about the machine during the measurement is in the summary (attribute/conditions.c), and shown as it is. */
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/finding.h"
#include "core/quantity.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "metrics/intelligence.h"
#include "rundir/run_table.h"
#include "rundir/samples.h"
#include "stats/correlation.h"
#include "stats/descriptive.h"
#include "stats/fit.h"

/* ---- checks ---- */

struct checks {
    const struct run_table *table;
    struct result *result; /* with an open list of checks */
    struct findings found;
};

PRINTF_LIKE(4, 0)
static void put_check(struct checks *checks, enum finding_code code, const char *verdict,
                      const char *format, va_list arguments)
{
    char detail[320], count[32];
    vsnprintf(detail, sizeof detail, format, arguments);
    result_group(checks->result, NULL);
    result_text(checks->result, "check", finding_row(code)->code);
    result_text(checks->result, "verdict", verdict);
    result_text(checks->result, "detail", detail);
    result_end(checks->result);
    chars_format(count, "summary.checks_%s", verdict);
    result_count_one(checks->result, count);
}

PRINTF_LIKE(3, 4)
static void check_good(struct checks *checks, enum finding_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_check(checks, code, "good", format, arguments);
    va_end(arguments);
}

PRINTF_LIKE(3, 4)
static void check_unknown(struct checks *checks, enum finding_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_check(checks, code, "unknown", format, arguments);
    va_end(arguments);
}

/* ---- trend over the run ---- */

enum { TREND_MAX = 100000, TREND_MIN = 10, COLD_MIN = 10 };

/* A trend is reported when it is significant at the 1 % level and large enough to matter. */
#define P_MAX      0.01
#define Z_MAX      3.5
#define MAD_TO_STD 1.4826022185056018

static const struct trend_row {
    enum finding_code code;
    const char *what;
    enum run_number numerator, denominator; /* RUN_NUMBERS: the column itself */
    double share, amount;                   /* threshold: relative to the median, or in the unit */
} TRENDS[] = {
    {FINDING_TEMPERATURE_DRIFT, "temperature", RUN_TEMPERATURE, RUN_NUMBERS, INFINITY, 5},
    {FINDING_ENERGY_DRIFT, "energy per output token", RUN_JOULES, RUN_OUTPUT_TOKENS, 0.05,
     INFINITY},
    {FINDING_POWER_DRIFT, "mean power", RUN_WATTS, RUN_NUMBERS, 0.05, INFINITY},
    {FINDING_SPEED_DRIFT, "time per output token", RUN_LATENCY, RUN_OUTPUT_TOKENS, 0.05, INFINITY},
};

static void report_trend(struct checks *checks, const struct trend_row *row, double change,
                         double middle, double p)
{
    char size[64], change_text[160];
    bool matters = fabs(change) > row->amount || fabs(change) > row->share * fabs(middle);
    bool drifts = p < P_MAX && matters;
    if (isfinite(row->share))
        chars_format(size, "%+.1f %% of its median", 100 * change / fabs(middle));
    else
        chars_format(size, "%+.1f %s", change, column_unit(row->numerator, row->denominator));
    chars_format(change_text, "the %s changes by %s over the run (p = %.2g)", row->what, size, p);
    if (drifts)
        finding_raise(&checks->found, row->code, "%s", change_text);
    else
        check_good(checks, row->code, "%s", change_text);
}

static void check_trend(struct checks *checks, const struct trend_row *row)
{
    const struct run_table *table = checks->table;
    size_t step = table->rows / TREND_MAX + 1, max = table->rows / step + 1, count = 0;
    double *order = xcalloc(max, sizeof *order), *values = xcalloc(max, sizeof *values);
    struct theil_sen line = {0};
    struct correlation trend = {0, UNKNOWN, UNKNOWN};
    for (size_t i = 0; i < table->rows; i += step) {
        values[count] = row_value(table, row->numerator, row->denominator, i);
        order[count] = (double)i;
        count += is_known(values[count]);
    }
    if (count >= TREND_MIN) {
        double length = order[count - 1] - order[0];
        kendall(order, values, count, &trend);
        theil_sen(order, values, count, &line);
        if (is_known(trend.p_value))
            report_trend(checks, row, line.slope * length, select_median(values, count),
                         trend.p_value);
        else
            check_good(checks, row->code, "the %s is constant", row->what);
    } else {
        check_unknown(checks, row->code, "the %s is known for %zu %s; a trend needs %d", row->what,
                      count, units_of(checks->table, true), TREND_MIN);
    }
    free(order);
    free(values);
}

static void check_trends(struct checks *checks)
{
    for (size_t i = 0; i < COUNT_OF(TRENDS); i++)
        check_trend(checks, &TRENDS[i]);
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

static void check_cold_start(struct checks *checks)
{
    const struct run_table *table = checks->table;
    double *values = NULL;
    size_t count, first = first_of(table);
    known_values(table, RUN_TTFT, RUN_NUMBERS, &values, &count);
    if (count < COLD_MIN || first == table->rows) {
        check_unknown(checks, FINDING_COLD_START,
                      "the time to first token is known for %zu %s; a comparison needs %d", count,
                      units_of(checks->table, true), COLD_MIN);
    } else {
        double value = run_number(table, RUN_TTFT, first), middle = select_median(values, count);
        for (size_t i = 0; i < count; i++)
            values[i] = fabs(values[i] - middle);
        double spread = MAD_TO_STD * select_median(values, count);
        bool cold = value > middle + Z_MAX * spread && value > 1.5 * middle;
        if (cold)
            finding_raise(&checks->found, FINDING_COLD_START,
                          "TTFT of the first query %.3g s, median %.3g s: increase "
                          "--warmup-queries",
                          value, middle);
        else
            check_good(checks, FINDING_COLD_START, "TTFT of the first query %.3g s, median %.3g s",
                       value, middle);
    }
    free(values);
}

/* ---- clock limits ---- */

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
    for (size_t i = 0; i < COUNT_OF(NAMES); i++)
        if (causes & NAMES[i].bit &&
            str_join(to + length, size - length, length ? ", " : "", NAMES[i].name, ""))
            length = strlen(to);
}

static void check_clocks(struct checks *checks)
{
    struct scan scan = scan_throttling(checks->table->directory);
    char causes[128];
    const char *picked = scan.in_part ? ", evenly spaced" : "";
    name_causes(scan.causes, causes, sizeof causes);
    if (scan.throttled)
        finding_raise(&checks->found, FINDING_CLOCKS_LIMITED,
                      "clocks limited in %.1f %% of %zu samples%s: %s",
                      100.0 * (double)scan.throttled / (double)scan.samples, scan.samples, picked,
                      causes);
    else if (scan.samples)
        check_good(checks, FINDING_CLOCKS_LIMITED, "in none of %zu samples%s", scan.samples,
                   picked);
    else
        check_unknown(checks, FINDING_CLOCKS_LIMITED,
                      scan.files ? "no device reports it" : "no samples");
}

/* ---- the analysis ---- */

#define COVERAGE_MIN     0.9
#define UNCERTAINTY_MAX  0.1
#define RESIDUAL_MAX     0.05
#define CONSERVATION_MAX 1e-6

/* Maximum number of listed errors. */
enum { REASONS_MAX = 50 };

/* ---- completion ---- */

static void check_end(struct checks *checks)
{
    const struct run_table *table = checks->table;
    if (!table->has_summary)
        finding_raise(&checks->found, FINDING_NO_SUMMARY,
                      "no summary: the run is still running or was killed");
    else if (table->summary.interrupted == 1)
        finding_raise(&checks->found, FINDING_INTERRUPTED, "interrupted: --resume continues it");
    else
        check_good(checks, FINDING_INTERRUPTED, "complete");
    if (table->failed)
        finding_raise(&checks->found, FINDING_FAILED_QUERIES, "%zu of %zu %s failed", table->failed,
                      table->rows, units_of(table, true));
    else
        check_good(checks, FINDING_FAILED_QUERIES, "0 of %zu", table->rows);
    if (table->canceled)
        finding_raise(&checks->found, FINDING_CANCELED_QUERIES,
                      "%zu of %zu %s canceled by their clients", table->canceled, table->rows,
                      units_of(table, true));
}

static size_t count_word(const struct run_table *table, enum run_word column, const char *word)
{
    size_t count = 0;
    for (size_t i = 0; i < table->rows; i++)
        count += run_completed(table, i) && str_equal(run_word(table, column, i), word);
    return count;
}

/* Nothing for a run without graded answers. */
static void check_unread(struct checks *checks)
{
    struct intelligence figures;
    answers_of(checks->table, &figures);
    if (!figures.graded || intelligence_check(&figures, &checks->found))
        return;
    if (is_known(figures.unread))
        check_good(checks, FINDING_UNREAD_ANSWERS,
                   "the grader could not read %.0f of %llu graded answers", figures.unread,
                   (unsigned long long)figures.graded);
    else
        check_unknown(checks, FINDING_UNREAD_ANSWERS,
                      "the records do not say whether the grader could read the answers");
}

static void check_answers(struct checks *checks)
{
    const struct run_table *table = checks->table;
    size_t cut = count_word(table, RUN_FINISH, "length"), again = 0;
    if (table->words[RUN_FINISH].count <= 1)
        check_unknown(checks, FINDING_CUT_ANSWERS, "finish reasons are unknown");
    else if (cut)
        finding_raise(&checks->found, FINDING_CUT_ANSWERS, "%zu answers reached the token limit",
                      cut);
    else
        check_good(checks, FINDING_CUT_ANSWERS, "0 answers reached the token limit");
    if (table->has_summary && table->summary.tokens_note)
        finding_raise(&checks->found, FINDING_TOKEN_COUNTS,
                      "token counts are unknown for some queries: %s", table->summary.tokens_note);
    for (size_t i = 0; i < table->rows; i++)
        again += run_number(table, RUN_ATTEMPTS, i) > 1;
    if (again)
        finding_raise(&checks->found, FINDING_RETRIES, "%zu queries took more than one attempt",
                      again);
    if (table->not_finite)
        finding_raise(&checks->found, FINDING_NOT_FINITE, "%llu values were NaN or infinite",
                      (unsigned long long)table->not_finite);
    if (table->negative)
        finding_raise(&checks->found, FINDING_NEGATIVE_ENERGY,
                      "%llu of %zu %s have a negative energy, which counts as unknown",
                      (unsigned long long)table->negative, table->rows,
                      units_of(checks->table, true));
    size_t paused = 0;
    for (size_t i = 0; i < table->rows; i++)
        paused += run_flag(table, RUN_PAUSED, i) == 1;
    if (paused)
        finding_raise(
            &checks->found, FINDING_PAUSED,
            "%zu of %zu %s include time in which ipw was stopped or the machine suspended", paused,
            table->rows, units_of(checks->table, true));
    if (table->damaged)
        finding_raise(&checks->found, FINDING_DAMAGED_LINES,
                      "%llu lines of the journal are damaged", (unsigned long long)table->damaged);
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
        counts.estimated += str_equal(run_word(table, RUN_METHOD, i), "estimated");
        counts.low_confidence += run_flag(table, RUN_LOW_CONFIDENCE, i) == 1;
        counts.low_coverage += is_known(coverage) && coverage < COVERAGE_MIN;
        counts.coverage_min = fmin(counts.coverage_min, known_or(coverage, INFINITY));
    }
    return counts;
}

static void check_evidence(struct checks *checks, const struct energy_counts *counts)
{
    const char *units = units_of(checks->table, true);
    double least = isfinite(counts->coverage_min) ? 100 * counts->coverage_min : 0;
    if (counts->estimated)
        finding_raise(&checks->found, FINDING_ESTIMATED_ENERGY,
                      "%zu of %zu energies are estimated, not measured", counts->estimated,
                      counts->known);
    else
        check_good(checks, FINDING_ESTIMATED_ENERGY, "0 of %zu energies are estimated",
                   counts->known);
    if (counts->low_coverage)
        finding_raise(&checks->found, FINDING_LOW_COVERAGE,
                      "%zu of %zu %s have a coverage below 90 %%; minimum %.1f %%",
                      counts->low_coverage, counts->known, units, least);
    else
        check_good(checks, FINDING_LOW_COVERAGE,
                   "0 of %zu %s have a coverage below 90 %%; minimum %.1f %%", counts->known, units,
                   least);
    if (counts->low_confidence)
        finding_raise(&checks->found, FINDING_LOW_CONFIDENCE,
                      "%zu of %zu %s are shorter than ten updates of their sensor",
                      counts->low_confidence, counts->known, units);
    else
        check_good(checks, FINDING_LOW_CONFIDENCE,
                   "0 of %zu %s are shorter than ten updates of their sensor", counts->known,
                   units);
}

static void check_uncertainty(struct checks *checks)
{
    double *values = NULL;
    size_t count;
    known_values(checks->table, RUN_PLUS_MINUS, RUN_JOULES, &values, &count);
    double middle = select_median(values, count);
    if (middle > UNCERTAINTY_MAX)
        finding_raise(&checks->found, FINDING_HIGH_UNCERTAINTY,
                      "median uncertainty of the energy ± %.0f %%", 100 * middle);
    else if (is_known(middle))
        check_good(checks, FINDING_HIGH_UNCERTAINTY, "median uncertainty of the energy ± %.*f %%",
                   middle < 0.0995 ? 1 : 0, 100 * middle);
    free(values);
}

static void check_energy(struct checks *checks, const struct energy_counts *counts)
{
    const char *units = units_of(checks->table, true);
    if (!counts->completed) {
        check_unknown(checks, FINDING_ENERGY_UNKNOWN, "no %s was completed",
                      units_of(checks->table, false));
        return;
    }
    if (!counts->known) {
        finding_raise(&checks->found, FINDING_ENERGY_UNKNOWN,
                      "energy unknown for all %zu completed %s: see ipw doctor", counts->completed,
                      units);
        return;
    }
    if (counts->known < counts->completed)
        finding_raise(&checks->found, FINDING_ENERGY_UNKNOWN,
                      "energy known for %zu of %zu completed %s", counts->known, counts->completed,
                      units);
    else
        check_good(checks, FINDING_ENERGY_UNKNOWN, "known for %zu of %zu completed %s",
                   counts->known, counts->completed, units);
    if (!checks->table->ours) {
        finding_raise(
            &checks->found, FINDING_OTHER_PROGRAM,
            "a run of the Python IPW: its energies carry no coverage, method or uncertainty");
        return;
    }
    check_evidence(checks, counts);
    check_uncertainty(checks);
}

/* ---- the machine ---- */

static void check_device(struct checks *checks, const struct summary_device *device)
{
    const char *id = device->id ? device->id : "?", *note = device->energy.note;
    if (!is_known(device->energy.joules))
        finding_raise(&checks->found, FINDING_DEVICE_UNMEASURED, "%s has no energy: %.200s", id,
                      note ? note : "unknown reason");
    if (fabs(device->residual) > RESIDUAL_MAX)
        finding_raise(&checks->found, FINDING_CHANNELS_DISAGREE,
                      "%s: a second channel differs by %+.1f %%", id, 100 * device->residual);
    else if (is_known(device->residual))
        check_good(checks, FINDING_CHANNELS_DISAGREE, "%s: a second channel differs by %+.1f %%",
                   id, 100 * device->residual);
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
    for (size_t i = 0; i < COUNT_OF(parts); i++)
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
        finding_raise(
            &checks->found, FINDING_UNATTRIBUTED_ENERGY,
            "%.3g J, %.0f %% of the energy, are not attributed to any query: the energies of "
            "%lld queries are missing",
            summary->unattributed_joules, 100 * share,
            (long long)(summary->completed - summary->energy_known));
}

/* What was found during the measurement, and figures of what was looked for and not found. */
static void check_conditions(struct checks *checks)
{
    const struct summary *summary = &checks->table->summary;
    const struct summary_conditions *conditions = &summary->conditions;
    const struct finding *findings = conditions->findings;
    size_t count = conditions->finding_count;
    for (size_t i = 0; i < count; i++)
        if (!finding_is(&findings[i], FINDING_UNREAD_ANSWERS)) /* checked in the records */
            findings_add(&checks->found, &findings[i]);
    if (is_known(conditions->background_cpus) &&
        !finding_of(findings, count, FINDING_BACKGROUND_CPU))
        check_good(checks, FINDING_BACKGROUND_CPU, "other processes used %.2g of %lld CPUs",
                   conditions->background_cpus, (long long)conditions->cpus);
    if (is_known(conditions->background_gpu_pct) &&
        !finding_of(findings, count, FINDING_BACKGROUND_GPU))
        check_good(checks, FINDING_BACKGROUND_GPU, "other processes used %.2g %% of a GPU",
                   conditions->background_gpu_pct);
    if (summary->unrecorded_inference == 0) /* of ipw proxy */
        check_good(checks, FINDING_UNRECORDED_INFERENCE, "all inference requests were recorded");
    if (!checks->table->ours || !checks->table->has_summary)
        return;
    if (summary->idle.known)
        check_good(checks, FINDING_NO_BASELINE, "idle power was measured");
    else if (!finding_of(findings, count, FINDING_BASELINE_REFUSED))
        finding_raise(&checks->found, FINDING_NO_BASELINE,
                      "idle power not measured: idle and active energy are unknown");
}

static void check_machine(struct checks *checks)
{
    const struct summary *summary = &checks->table->summary;
    double missing = 100 * conservation_error(summary);
    for (size_t i = 0; i < summary->device_count; i++)
        check_device(checks, &summary->devices[i]);
    if (missing > 100 * CONSERVATION_MAX)
        finding_raise(&checks->found, FINDING_NOT_CONSERVED,
                      "the parts differ from the machine's energy by %.2g %%", missing);
    else if (is_known(missing))
        check_good(checks, FINDING_NOT_CONSERVED,
                   "the parts differ from the machine's energy by %.2g %%", missing);
    check_unattributed(checks);
    check_conditions(checks);
}

/* ---- failures ---- */

static void put_failures(struct result *result, const struct run_table *table)
{
    const struct run_words *words = &table->words[RUN_ERROR];
    size_t *counts = xcalloc(words->count + 1, sizeof *counts), shown = 0;
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
}

/* ---- the complete analysis ---- */

static void put_checks(struct checks *checks, const struct energy_counts *counts)
{
    check_end(checks);
    check_unread(checks);
    check_answers(checks);
    check_energy(checks, counts);
    check_machine(checks);
    check_clocks(checks);
    check_trends(checks);
    check_cold_start(checks);
}

/* Those that matter are also notes of the result, below its phrases. */
static void put_findings(struct findings *found, struct result *result)
{
    findings_order(found->items, found->count);
    findings_to_result(found, "findings", result);
    for (size_t i = 0; i < found->count; i++) {
        const struct finding *finding = &found->items[i];
        const char *severity = finding_severity_name(finding->severity);
        char count[32];
        chars_format(count, "summary.findings_%s", severity);
        result_count_one(result, count);
        if (finding->severity > FINDING_NOTE)
            result_note(result, "%s: %s [%s]", severity, finding->text, finding->code);
    }
}

static enum err quality_run(struct analysis *analysis, struct error *why)
{
    (void)why;
    const struct run_table *table = analysis->table;
    struct result *result = analysis->result;
    struct checks checks = {.table = table, .result = result};
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
    result_count(result, "checks_unknown", 0);
    result_count(result, "findings_invalid", 0);
    result_count(result, "findings_warning", 0);
    result_count(result, "findings_note", 0);
    result_end(result);
    result_group(result, "data");
    result_list(result, "checks");
    put_checks(&checks, &counts);
    result_end(result);
    put_findings(&checks.found, result);
    put_failures(result, table);
    result_end(result);
    findings_release(&checks.found);
    for (size_t i = 0; i < table->note_count; i++)
        result_warn(result, "%s", table->notes[i].text);
    return ERR_OK;
}

static const struct result_phrase FINDING[] = {
    {"checks: ", "summary.checks_good", " good"},
    {", ", "summary.checks_unknown", " unknown"},
    {", ", "summary.findings_invalid", " invalid"},
    {", ", "summary.findings_warning", " with a warning"},
    {", ", "summary.findings_note", " with a note"},
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
