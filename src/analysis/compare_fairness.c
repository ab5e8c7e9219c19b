/* Warnings about an unfair comparison of two runs. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/columns.h"
#include "analysis/compare.h"
#include "metrics/intelligence.h"
#include "metrics/uncertainty.h"
#include "rundir/run_table.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "rundir/journal.h"
#include "rundir/sweep.h"

/* A finding of one repeat that is that of another as well is raised once. */
void compare_warn_of(struct comparison *out, enum finding_code code, const char *format, ...)
{
    char text[sizeof((struct finding *)0)->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < out->findings.count; i++)
        if (str_equal(out->findings.items[i].text, text))
            return;
    finding_raise_as(&out->findings, code, finding_row(code)->highest, "%s", text);
}

/* A run of each side, and their names in warnings; warnings that apply to all repeats are reported for the side. */
struct pair {
    const struct run_table *a, *b;
    char of_a[32], of_b[32];
    const char *side_b; /* the other side is the baseline */
};

static void name_run(char *to, size_t size, const char *side, size_t run, size_t count)
{
    if (count > 1)
        str_format(to, size, "run %zu of %s", run + 1, side);
    else
        str_copy(to, size, side);
}

/* ---- what differs ---- */

/* Facts in which two runs should agree. */
static const struct fact {
    struct json_field at;
    bool in_header; /* also recorded by an unfinished run */
    const char *what;
} SAME[] = {
#define FACT(member, type_) {.type = FIELD_##type_, .offset = offsetof(struct summary, member)}
    {FACT(hardware_label, TEXT), true, "hardware"},
    {FACT(gpu_name, TEXT), false, "GPU"},
    {FACT(host_name, TEXT), false, "machine"},
    {FACT(dataset, TEXT), true, "dataset"},
    {FACT(config_dataset_params, JSON), true, "dataset selection"},
    {FACT(config_concurrency, INTEGER), false, "concurrency"},
    {FACT(config_rate, NUMBER), false, "rate"},
    {FACT(config_client, TEXT), true, "client"},
    {FACT(config_workload, TEXT), true, "workload"},
    {FACT(config_client_params, JSON), false, "parameter set"},
    {FACT(config_request_params, JSON), false, "set of request parameters"},
    {FACT(config_system, TEXT), true, "system prompt"},
    {FACT(config_template, TEXT), true, "prompt template"},
    {FACT(answer_format, TEXT), true, "requested answer format"},
    {FACT(config_grader, TEXT), false, "grader"},
    {FACT(config_judge_model, TEXT), false, "judge"},
    {FACT(config_decode_weight, NUMBER), true,
     "decode weight (attribution to overlapping queries)"},
    {FACT(version, TEXT), true, "version of ipw"},
};

/* Formats a fact as text; "" for null. */
static void fact_text(const struct summary *run, const struct fact *fact, char *to, size_t size)
{
    double number = json_field_number(&fact->at, run);
    const struct jv *value = json_field_value(&fact->at, run);
    struct text text = {0};
    str_copy(to, size, text_or_empty(json_field_text(&fact->at, run)));
    if (is_known(number)) {
        str_format(to, size, "%.15g", number);
    } else if (value) {
        jv_print(value, &text);
        str_copy(to, size, text_get(&text));
    }
    text_release(&text);
}

/* Whether a missing value means that there was none: a summary of another program or of an unfinished run may not
 * record it. */
static bool records_fact(const struct run_table *table, const struct fact *fact)
{
    return (table->ours && table->has_summary) || (table->has_header && fact->in_header);
}

bool compare_same_setting(const struct summary *a, const struct summary *b)
{
    static const struct fact MORE[] = {
        {FACT(model, TEXT), false, NULL},
        {FACT(run_kind, TEXT), false, NULL},
        {FACT(command, JSON), false, NULL},
        {FACT(config_max_queries, INTEGER), false, NULL},
        {FACT(config_repeat, INTEGER), false, NULL},
    };
    size_t count = COUNT_OF(SAME), more = COUNT_OF(MORE);
    for (size_t i = 0; i < count + more; i++) {
        const struct fact *fact = i < count ? &SAME[i] : &MORE[i - count];
        char left[512], right[512];
        fact_text(a, fact, left, sizeof left);
        fact_text(b, fact, right, sizeof right);
        if (!str_equal(left, right))
            return false;
    }
    return true;
}

/* The runs' own prices, unless the user gave one for all. */
static void check_tariff(const struct pair *pair, struct comparison *out)
{
    const struct tariff *a = &pair->a->summary.tariff, *b = &pair->b->summary.tariff;
    const struct {
        double a, b;
        const char *option;
    } rows[] = {{a->price_per_kwh, b->price_per_kwh, "price-per-kwh"},
                {a->device_price_per_hour, b->device_price_per_hour, "device-price-per-hour"},
                {a->gco2_per_kwh, b->gco2_per_kwh, "gco2-per-kwh"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (is_known(rows[i].a) && is_known(rows[i].b) && rows[i].a != rows[i].b)
            compare_warn_of(out, FINDING_DIFFERENT_PRICES,
                            "different --%s: %.6g, baseline %.6g; give one for both",
                            rows[i].option, rows[i].b, rows[i].a);
        else if (is_known(rows[i].a) != is_known(rows[i].b))
            compare_warn_of(out, FINDING_DIFFERENT_PRICES,
                            "only %s was saved with --%s: give one for both",
                            is_known(rows[i].a) ? pair->of_a : pair->of_b, rows[i].option);
}

/* "concurrency, client": facts that one of the two does not record. */
struct unrecorded {
    char names[320];
};

static void unrecorded_add(struct unrecorded *unrecorded, const char *name)
{
    size_t length = strlen(unrecorded->names);
    str_format(unrecorded->names + length, sizeof unrecorded->names - length, "%s%s",
               length ? ", " : "", name);
}

static void warn_unrecorded(struct comparison *out, const char *whose,
                            const struct unrecorded *unrecorded)
{
    if (unrecorded->names[0])
        compare_warn_of(out, FINDING_UNRECORDED_SETUP, "%s does not record, and may differ in: %s",
                        whose, unrecorded->names);
}

static void check_same(const struct pair *pair, struct comparison *out)
{
    const struct run_table *a = pair->a, *b = pair->b;
    char left[512], right[512];
    struct unrecorded of_a = {""}, of_b = {""};
    for (size_t i = 0; i < COUNT_OF(SAME); i++) {
        fact_text(&a->summary, &SAME[i], left, sizeof left);
        fact_text(&b->summary, &SAME[i], right, sizeof right);
        bool a_records = left[0] || records_fact(a, &SAME[i]);
        bool b_records = right[0] || records_fact(b, &SAME[i]);
        if (a_records && b_records && !str_equal(left, right))
            compare_warn_of(out, FINDING_DIFFERENT_SETUP, "different %s: %.100s, baseline %.100s",
                            SAME[i].what, right[0] ? right : "none", left[0] ? left : "none");
        if (left[0] && !b_records &&
            b->has_summary) /* an unfinished run records little, and is reported as such */
            unrecorded_add(&of_b, SAME[i].what);
        if (right[0] && !a_records && a->has_summary)
            unrecorded_add(&of_a, SAME[i].what);
    }
    warn_unrecorded(out, "the baseline", &of_a);
    warn_unrecorded(out, pair->side_b, &of_b);
    const char *gpus_a = a->summary.gpu_uuids, *gpus_b = b->summary.gpu_uuids;
    if (gpus_a && gpus_b && !str_equal(gpus_a, gpus_b))
        compare_warn_of(out, FINDING_DIFFERENT_GPUS,
                        "different GPUs, which vary even within one model: %.60s and %.60s", gpus_b,
                        gpus_a);
}

static void check_questions(const struct run_table *a, const struct run_table *b,
                            struct comparison *out)
{
    if (!run_kind_has_requests(a->kind)) /* commands and layers have no questions */
        return;
    if (out->changed)
        compare_warn_of(out, FINDING_DIFFERENT_QUESTIONS,
                        "%zu questions with the same key differ: different datasets", out->changed);
    if (!out->paired)
        compare_warn_of(
            out, FINDING_DIFFERENT_QUESTIONS,
            "the runs have different questions (%zu of %zu and %zu are the same): they are "
            "compared as two samples, and differences may be due to the questions",
            out->same, a->rows, b->rows);
    else if (out->a_only || out->b_only)
        compare_warn_of(
            out, FINDING_DIFFERENT_QUESTIONS,
            "%zu queries of the baseline and %zu of this run have no counterpart and are "
            "excluded",
            out->a_only, out->b_only);
}

/* The accuracy of a side is then only bounded. */
static void check_unread(const struct run_table *table, const char *whose, struct comparison *out)
{
    struct intelligence figures;
    struct findings found = {0};
    answers_of(table, &figures);
    if (intelligence_check(&figures, &found))
        compare_warn_of(out, FINDING_UNREAD_ANSWERS, "%s: %s", whose, found.items[0].text);
    findings_release(&found);
}

static void check_end(const struct run_table *table, const char *whose, struct comparison *out)
{
    if (table->damaged_summary)
        compare_warn_of(out, FINDING_NO_SUMMARY, "summary.json of %s cannot be read and is ignored",
                        whose);
    else if (!table->has_summary)
        compare_warn_of(out, FINDING_NO_SUMMARY, "%s is unfinished: no summary.json", whose);
    else if (table->summary.interrupted == 1)
        compare_warn_of(out, FINDING_INTERRUPTED, "%s was interrupted", whose);
    if (table->canceled)
        compare_warn_of(out, FINDING_CANCELED_QUERIES,
                        "%zu of %zu %s of %s were canceled by their clients and are excluded",
                        table->canceled, table->rows, run_kind_unit(table->kind, true), whose);
    if (table->failed)
        compare_warn_of(
            out, FINDING_FAILED_QUERIES,
            "%zu of %zu %s of %s failed and are excluded, which may bias the comparison",
            table->failed, table->rows, run_kind_unit(table->kind, true), whose);
    if (table->negative)
        compare_warn_of(out, FINDING_NEGATIVE_ENERGY,
                        "%llu energies of %s are negative and count as unknown",
                        (unsigned long long)table->negative, whose);
    if (table->format > JOURNAL_FORMAT)
        compare_warn_of(
            out, FINDING_NEWER_FORMAT,
            "records.jsonl of %s has format %.0f, newer than %d of this version: some data may be "
            "missing",
            whose, table->format, JOURNAL_FORMAT);
    if (table->damaged)
        compare_warn_of(out, FINDING_DAMAGED_LINES,
                        "%llu damaged lines in the journal of %s skipped",
                        (unsigned long long)table->damaged, whose);
}

/* ---- energy ---- */

struct energy_state {
    size_t completed, known, low_confidence;
    double coverage; /* mean over known values */
};

static struct energy_state energy_state(const struct run_table *table)
{
    struct energy_state state = {.coverage = UNKNOWN};
    double sum = 0;
    size_t covered = 0;
    for (size_t i = 0; i < table->rows; i++) {
        if (!run_completed(table, i))
            continue;
        state.completed++;
        state.known += is_known(run_number(table, RUN_JOULES, i));
        state.low_confidence += run_flag(table, RUN_LOW_CONFIDENCE, i) == 1;
        if (is_known(run_number(table, RUN_COVERAGE, i))) {
            sum += run_number(table, RUN_COVERAGE, i);
            covered++;
        }
    }
    if (covered)
        state.coverage = sum / (double)covered;
    return state;
}

static void check_energy_of(const struct run_table *table, const struct energy_state *state,
                            const char *whose, struct comparison *out)
{
    if (!state->known)
        compare_warn_of(out, FINDING_ENERGY_UNKNOWN, "%s has no energy: no sensor measured it",
                        whose);
    else if (state->known < state->completed)
        compare_warn_of(out, FINDING_ENERGY_UNKNOWN, "the energy of %zu of %zu %s of %s is unknown",
                        state->completed - state->known, state->completed,
                        run_kind_unit(table->kind, true), whose);
    if (state->coverage < 0.9)
        compare_warn_of(
            out, FINDING_LOW_COVERAGE,
            "the sensors cover only %.0f %% of the time of the %s in %s: the rest of its energy is "
            "missing",
            100 * state->coverage, run_kind_unit(table->kind, true), whose);
    if (state->low_confidence && state->completed == 1)
        compare_warn_of(out, FINDING_LOW_CONFIDENCE, "%s is shorter than ten updates of a sensor",
                        whose);
    else if (2 * state->low_confidence > state->completed)
        compare_warn_of(out, FINDING_LOW_CONFIDENCE,
                        "%zu of %zu %s of %s are shorter than ten updates of a sensor",
                        state->low_confidence, state->completed, run_kind_unit(table->kind, true),
                        whose);
    if (str_equal(run_energy_method(table), "estimated"))
        compare_warn_of(out, FINDING_ESTIMATED_ENERGY,
                        "the energy of %s is estimated by a model, not measured", whose);
}

static void check_energy(const struct pair *pair, struct comparison *out)
{
    const struct run_table *a = pair->a, *b = pair->b;
    struct energy_state in_a = energy_state(a), in_b = energy_state(b);
    check_energy_of(a, &in_a, "the baseline", out);
    check_energy_of(b, &in_b, pair->side_b, out);
    if (!in_a.known || !in_b.known)
        return;
    if (a->ours != b->ours)
        compare_warn_of(
            out, FINDING_OTHER_PROGRAM,
            "%s was made by another program, which counts other devices: energies are not "
            "comparable",
            a->ours ? pair->side_b : "the baseline");
    if (!str_equal(run_energy_method(a), run_energy_method(b)))
        compare_warn_of(out, FINDING_DIFFERENT_METHOD,
                        "different energy method: '%s', baseline '%s'", run_energy_method(b),
                        run_energy_method(a));
    if (!str_equal(run_energy_source(a), run_energy_source(b)))
        compare_warn_of(out, FINDING_DIFFERENT_SENSORS,
                        "different energy sensors: '%.100s', baseline '%.100s'",
                        run_energy_source(b), run_energy_source(a));
    if (fabs(in_a.coverage - in_b.coverage) > 0.05)
        compare_warn_of(out, FINDING_DIFFERENT_COVERAGE, "coverage %.0f %%, baseline %.0f %%",
                        100 * in_b.coverage, 100 * in_a.coverage);
}

static void check_model(const struct pair *pair, struct comparison *out)
{
    const struct run_table *a = pair->a, *b = pair->b;
    size_t sweep = sweep_of_run(a->directory);
    /* Commands of one sweep differ in its knobs, and both of a series in what alternated: the purpose of the
     * comparison. */
    bool is_knob = a->kind == RUN_KIND_RUN && sweep && sweep_of_run(b->directory) == sweep &&
                   strncmp(a->directory, b->directory, sweep) == 0;
    if (!str_equal(a->model, b->model) && !is_knob && !out->series.is_interleaved)
        compare_warn_of(out, FINDING_DIFFERENT_SETUP, "different %s: '%.100s', baseline '%.100s'",
                        a->kind == RUN_KIND_RUN ? "command" : "model", b->model, a->model);
    if (a->kind != b->kind)
        compare_warn_of(out, FINDING_DIFFERENT_SETUP, "different kind of run: '%s', baseline '%s'",
                        run_kind_name(b->kind), run_kind_name(a->kind));
}

/* Scatter between runs is that of repeats only if nothing else differs between them. */
static void check_repeats(const struct compare_side *side, const char *whose,
                          struct comparison *out)
{
    for (size_t i = 1; i < side->count; i++)
        if (!compare_same_setting(&side->runs[0].summary, &side->runs[i].summary))
            compare_warn_of(out, FINDING_NOT_REPEATS,
                            "the runs of %s are not repeats of one setting: %.200s differs", whose,
                            side->runs[i].directory);
}

void compare_warn(const struct compare_side *a, const struct compare_side *b,
                  struct comparison *out)
{
    size_t count = a->count > b->count ? a->count : b->count;
    if (a->count != b->count && (a->count == 1 || b->count == 1))
        compare_warn_of(
            out, FINDING_UNEQUAL_REPEATS,
            "%zu run%s of the baseline and %zu of this side: differences between runs are unknown",
            a->count, str_plural(a->count), b->count);
    for (size_t i = 0; i < count; i++) {
        size_t in_a = i < a->count ? i : a->count - 1, in_b = i < b->count ? i : b->count - 1;
        struct pair pair = {.a = &a->runs[in_a],
                            .b = &b->runs[in_b],
                            .side_b = b->count > 1 ? "this side" : "this run"};
        name_run(pair.of_a, sizeof pair.of_a, "the baseline", in_a, a->count);
        name_run(pair.of_b, sizeof pair.of_b, pair.side_b, in_b, b->count);
        check_model(&pair, out);
        check_same(&pair, out);
        check_tariff(&pair, out);
        if (i == 0)
            check_questions(pair.a, pair.b, out);
        check_end(pair.a, pair.of_a, out);
        check_end(pair.b, pair.of_b, out);
        check_unread(pair.a, pair.of_a, out);
        check_unread(pair.b, pair.of_b, out);
        check_energy(&pair, out);
    }
    check_repeats(a, "the baseline", out);
    check_repeats(b, "this side", out);
}

/* ---- too few for a verdict ---- */

enum { ENOUGH = 64 }; /* entries per side that suffice for any number of tests */

/* The smallest p that the test can have: of the one arrangement that is as extreme as possible, and its mirror image.
 * Welch's has no such limit, but needs two values per side. */
static double smallest_p(const struct comparison *comparison, size_t a, size_t b)
{
    double p = 1;
    if (comparison->kind == RUN_KIND_RUN) /* one of each: the spread between runs decides */
        return (a > 1) == (b > 1) ? 0 : 1;
    if (comparison->paired)
        return exp2(1 - (double)a);
    for (size_t i = 1; i <= a; i++)
        p *= (double)i / (double)(b + i);
    return a == b ? 2 * p : p;
}

/* Holm's correction multiplies the smallest p by the number of tests. */
void compare_warn_few(struct comparison *comparison, size_t tests)
{
    size_t a = 0, b = 0, needed = 2;
    if (comparison->a_runs > 1 || comparison->side.runs > 1)
        return;
    for (size_t i = 0; i < COMPARE_METRICS; i++) {
        a = comparison->metrics[i].a_queries > a ? comparison->metrics[i].a_queries : a;
        b = comparison->metrics[i].b_queries > b ? comparison->metrics[i].b_queries : b;
    }
    double factor = tests ? (double)tests : 1;
    if (!a || !b || a > ENOUGH || b > ENOUGH ||
        factor * smallest_p(comparison, a, b) < COMPARE_ALPHA)
        return;
    while (needed < ENOUGH && factor * smallest_p(comparison, needed, needed) >= COMPARE_ALPHA)
        needed++;
    const char *units = run_kind_unit(comparison->kind, true);
    if (comparison->kind == RUN_KIND_RUN)
        compare_warn_of(comparison, FINDING_TOO_FEW_FOR_VERDICT,
                        "too few runs for a verdict: at least %zu repeats each (-r %zu)", needed,
                        needed);
    else
        compare_warn_of(comparison, FINDING_TOO_FEW_FOR_VERDICT,
                        "too few %s for a verdict on %zu metrics: at least %zu%s", units, tests,
                        needed, comparison->paired ? "" : " on each side");
}
