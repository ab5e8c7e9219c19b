/* What makes a comparison of two runs unfair, and whether the same sensors measured them. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/compare.h"
#include "rundir/run_table.h"
#include "core/text.h"
#include "port/json_read.h"
#include "rundir/journal.h"

static void warn(struct comparison *out, const char *format, ...) PRINTF_LIKE(2, 3);
static void warn(struct comparison *out, const char *format, ...)
{
    va_list arguments;
    if (out->warning_count == COMPARE_WARNINGS_MOST)
        return;
    va_start(arguments, format);
    vsnprintf(out->warnings[out->warning_count++].text, sizeof out->warnings->text, format,
              arguments);
    va_end(arguments);
}

/* ---- what the runs say of themselves ---- */

/* The word of all queries that have one; "several" when they differ, "" when none has one. */
static const char *common_word(const struct run_table *table, enum run_word word)
{
    const char *found = "";
    for (uint32_t id = 1; id < table->words[word].count; id++)
        found = found[0] ? "several" : table->words[word].texts[id];
    return found;
}

static const char *evidence(const struct run_table *table, const char *place, enum run_word word)
{
    const char *told = run_fact_text(table, place);
    return told[0] ? told : common_word(table, word);
}

static const char *source_of(const struct run_table *table)
{
    return evidence(table, "ipw.energy.source", RUN_SOURCE);
}

static const char *method_of(const struct run_table *table)
{
    return evidence(table, "ipw.energy.method", RUN_METHOD);
}

bool compare_same_sensors(const struct run_table *a, const struct run_table *b)
{
    static const char *const PLACES[] = {"hardware_label", "system_info.host_name",
                                         "gpu_info.name"};
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++)
        if (strcmp(run_fact_text(a, PLACES[i]), run_fact_text(b, PLACES[i])) != 0)
            return false;
    return strcmp(source_of(a), source_of(b)) == 0 && strcmp(method_of(a), method_of(b)) == 0;
}

/* ---- what differs ---- */

/* A fact as text, whatever its kind; "" for null.  An unfinished run has it in its journal's beginning.
 * False where it is not told: a key that a summary of ours lacks is none, one that another program's or
 * an unfinished run's lacks is not known. */
static bool fact_text(const struct run_table *table, const char *in_summary,
                      const char *in_beginning, char *to, size_t size)
{
    const struct jv *value = table->summary    ? jv_path(table->summary, in_summary)
                             : in_beginning[0] ? jv_path(table->begun, in_beginning)
                                               : NULL; /* an empty path is the whole line */
    struct text text = {0};
    to[0] = '\0';
    if (jv_text(value))
        str_copy(to, size, jv_text(value));
    else if (!jv_is_null(value) && !jv_print(value, &text))
        str_copy(to, size, text_get(&text));
    text_release(&text);
    return value != NULL || (table->ours && table->summary);
}

/* "concurrency, client": what one of two does not tell. */
struct untold {
    char names[320];
};

static void untold_add(struct untold *untold, const char *name)
{
    size_t length = strlen(untold->names);
    str_format(untold->names + length, sizeof untold->names - length, "%s%s", length ? ", " : "",
               name);
}

static void warn_untold(struct comparison *out, const char *whose, const struct untold *untold)
{
    if (untold->names[0])
        warn(out, "%s does not record, and may differ in: %s", whose, untold->names);
}

static void check_same(const struct run_table *a, const struct run_table *b, struct comparison *out)
{
    static const struct {
        const char *place, *beginning, *what;
    } SAME[] = {
        {"hardware_label", "hardware_label", "hardware"},
        {"gpu_info.name", "", "GPU"},
        {"system_info.host_name", "", "machine"},
        {"dataset", "settings.dataset", "dataset"},
        {"profiler_config.dataset_params", "settings.dataset_params", "dataset selection"},
        {"profiler_config.max_concurrency", "", "concurrency"},
        {"profiler_config.rate", "", "rate"},
        {"profiler_config.client_id", "settings.client", "client"},
        {"profiler_config.client_params", "", "parameter set"},
        {"profiler_config.system", "settings.system", "system prompt"},
        {"profiler_config.template", "settings.template", "prompt template"},
        {"profiler_config.grader", "", "grader"},
        {"profiler_config.judge_model", "", "judge"},
        {"profiler_config.decode_weight", "measuring.decode_weight",
         "decode weight (attribution to overlapping queries),"},
        {"versions.ipw", "ipw", "version of ipw"},
    };
    char left[512], right[512];
    struct untold of_a = {""}, of_b = {""};
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) {
        bool a_tells = fact_text(a, SAME[i].place, SAME[i].beginning, left, sizeof left);
        bool b_tells = fact_text(b, SAME[i].place, SAME[i].beginning, right, sizeof right);
        if (a_tells && b_tells && strcmp(left, right) != 0)
            warn(out, "another %s: %.100s against %.100s of the baseline", SAME[i].what,
                 right[0] ? right : "none", left[0] ? left : "none");
        if (left[0] && !b_tells &&
            b->summary) /* an unfinished run records little, and is reported as such */
            untold_add(&of_b, SAME[i].what);
        if (right[0] && !a_tells && a->summary)
            untold_add(&of_a, SAME[i].what);
    }
    warn_untold(out, "the baseline", &of_a);
    warn_untold(out, "this run", &of_b);
}

static void check_questions(const struct run_table *a, const struct run_table *b,
                            struct comparison *out)
{
    if (a->kind == RUN_KIND_RUN) /* repetitions of two commands, which have no questions */
        return;
    if (out->changed)
        warn(out, "%zu questions with the same key differ: different datasets", out->changed);
    if (!out->paired)
        warn(out,
             "the runs asked different questions (%zu of %zu and %zu are the same): they are "
             "compared "
             "as two sets, and what differs may be due to the questions",
             out->same, a->rows, b->rows);
    else if (out->a_only || out->b_only)
        warn(out,
             "%zu queries of the baseline and %zu of this run have no counterpart and are "
             "left out",
             out->a_only, out->b_only);
}

static void check_end(const struct run_table *table, const char *whose, struct comparison *out)
{
    const struct jv *interrupted = jv_path(table->summary, "ipw.interrupted");
    if (table->damaged_summary)
        warn(out, "summary.json of %s cannot be read and is ignored", whose);
    else if (!table->summary)
        warn(out, "%s is unfinished: no summary.json", whose);
    else if (jv_bool(interrupted, false))
        warn(out, "%s was interrupted", whose);
    if (table->failed)
        warn(out, "%zu of %zu %s of %s failed and are left out; what failed may be what is hard",
             table->failed, table->rows, run_kind_unit(table->kind, true), whose);
    if (table->negative)
        warn(out, "%llu energies of %s are negative and count as unknown",
             (unsigned long long)table->negative, whose);
    if (run_fact(table, "format") > JOURNAL_FORMAT)
        warn(out,
             "records.jsonl of %s is of format %.0f, and this version knows %d: some of it may be "
             "missing",
             whose, run_fact(table, "format"), JOURNAL_FORMAT);
    if (table->damaged)
        warn(out, "%llu damaged lines in the journal of %s skipped",
             (unsigned long long)table->damaged, whose);
}

/* ---- energy ---- */

struct energy_state {
    size_t completed, known, low_confidence;
    double coverage; /* mean, of known */
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
        warn(out, "%s has no energy: no sensor measured it", whose);
    else if (state->known < state->completed)
        warn(out, "the energy of %zu of %zu %s of %s is unknown", state->completed - state->known,
             state->completed, run_kind_unit(table->kind, true), whose);
    if (state->coverage < 0.9)
        warn(out,
             "the sensors cover only %.0f %% of the queries' time in %s: its energies lack the "
             "rest",
             100 * state->coverage, whose);
    if (2 * state->low_confidence > state->completed)
        warn(out, "%zu of %zu %s of %s are shorter than ten updates of a sensor",
             state->low_confidence, state->completed, run_kind_unit(table->kind, true), whose);
    if (strcmp(method_of(table), "estimated") == 0)
        warn(out, "the energy of %s is estimated by a model, not measured", whose);
}

static void check_energy(const struct run_table *a, const struct run_table *b,
                         struct comparison *out)
{
    struct energy_state in_a = energy_state(a), in_b = energy_state(b);
    check_energy_of(a, &in_a, "the baseline", out);
    check_energy_of(b, &in_b, "this run", out);
    if (!in_a.known || !in_b.known)
        return;
    if (a->ours != b->ours)
        warn(out,
             "%s was made by another program, which counts other devices: energies do not mean "
             "the same",
             a->ours ? "this run" : "the baseline");
    if (strcmp(method_of(a), method_of(b)) != 0)
        warn(out, "energy by another method: '%s' against '%s' of the baseline", method_of(b),
             method_of(a));
    if (strcmp(source_of(a), source_of(b)) != 0)
        warn(out, "energy by other sensors: '%.100s' against '%.100s' of the baseline",
             source_of(b), source_of(a));
    if (fabs(in_a.coverage - in_b.coverage) > 0.05)
        warn(out, "coverage %.0f %%, %.0f %% in the baseline", 100 * in_b.coverage,
             100 * in_a.coverage);
}

void compare_warn(const struct run_table *a, const struct run_table *b, struct comparison *out)
{
    if (strcmp(a->model, b->model) != 0)
        warn(out, "another %s: '%.100s' against '%.100s' of the baseline",
             a->kind == RUN_KIND_RUN ? "command" : "model", b->model, a->model);
    if (a->kind != b->kind)
        warn(out, "another kind of run: '%s' against '%s' of the baseline", run_kind_name(b->kind),
             run_kind_name(a->kind));
    check_same(a, b, out);
    check_questions(a, b, out);
    check_end(a, "the baseline", out);
    check_end(b, "this run", out);
    check_energy(a, b, out);
}
