/* Conclusions in words: a run in one sentence; of several the most accurate and the cheapest, by how much, and whether
 * that is significant; and a table of them. */
#include "report/text/reports.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/across.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/print/print.h"
#include "report/text/format.h"
#include "rundir/summary.h"
#include "stats/pareto.h"

enum { SENTENCE_LINES = 5 };

/* ---- conclusion on one run ---- */

static double figure_of(const struct result *results, size_t count, const char *name,
                        const char *path, double *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct result_item *item =
            strcmp(results[i].name, name) == 0 ? result_find(&results[i], path) : NULL;
        if (item && result_is_known(item)) {
            *error = item->error;
            return item->number;
        }
    }
    return UNKNOWN;
}

static void add_energy(struct text *words, const struct run_figures *run, double joules,
                       double error, const char *each)
{
    char figure[FORMAT_MAX], method[FORMAT_MAX];
    text_addf(words, "%s per %s (%s)", format_with_error(figure, joules, error, "J"), each,
              format_method(method, run->method));
}

void conclusion_of_run(const struct run_figures *run, const char *each,
                       const struct result *results, size_t count, struct text *out)
{
    const struct run_point *point = &run->point;
    char low[FORMAT_MAX], high[FORMAT_MAX], value[FORMAT_MAX];
    struct text words = {0};
    double error = run->uncertainty.common * point->joules_per_query,
           joules = figure_of(results, count, "efficiency", "summary.joules_per_query", &error),
           checks = 0, bad, unused;
    static const char *const CHECKS[] = {"summary.checks_good", "summary.checks_unknown",
                                         "summary.checks_warning"};
    for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS; i++)
        checks += bad = figure_of(results, count, "quality", CHECKS[i], &unused);
    if (!is_known(joules))
        joules = point->joules_per_query;
    text_addf(&words, "%s%s%s: ", plain_text(point->model).text, point->hardware[0] ? " on " : "",
              plain_text(point->hardware).text);
    bool is_empty = point->failed + point->canceled == point->queries;
    if (is_empty)
        text_add(&words, "nothing was completed");
    else if (is_known(point->accuracy))
        text_addf(&words, "%s correct (95 %% CI: %s to %s) at ",
                  format_percent(value, point->accuracy), format_percent(low, run->accuracy_low),
                  format_percent(high, run->accuracy_high));
    if (is_known(joules))
        add_energy(&words, run, joules, error, each);
    else if (!is_empty)
        text_add(&words, "unknown energy");
    if (is_known(run->latency_s))
        text_addf(&words, ", median latency %s", format_si(value, run->latency_s, "s"));
    if (point->failed && point->failed < point->queries)
        text_addf(&words, "; %zu of %zu failed", point->failed, point->queries);
    if (checks > 0)
        text_addf(&words, "; %.0f of %.0f checks warn", bad, checks);
    text_add(&words, ".");
    wrap_words(out, "", 1, SENTENCE_LINES, text_get(&words));
    text_release(&words);
}

/* ---- conclusion on several runs ---- */

enum { NAME_LETTERS = 25, FAILED_LETTERS = 8, RUNS_SHOWN = 6, NO_RUN = -1 };

struct ranking {
    const struct run_figures *runs;
    size_t count;
    const char *each;
    struct run_names names;
    long accurate, cheapest; /* NO_RUN if unknown */
};

static double joules_of(const struct run_figures *run)
{
    return run->point.joules_per_query;
}

/* The best except `other`; for equal accuracies the cheaper one. */
static long most_accurate(const struct ranking *all, long other)
{
    long best = NO_RUN;
    for (size_t i = 0; i < all->count; i++) {
        const struct run_figures *run = &all->runs[i];
        double beats = best < 0 ? -INFINITY : all->runs[best].point.accuracy;
        if ((long)i != other && is_known(run->point.accuracy) &&
            (run->point.accuracy > beats ||
             (run->point.accuracy == beats && joules_of(run) < joules_of(&all->runs[best]))))
            best = (long)i;
    }
    return best;
}

static long least_energy(const struct ranking *all, long other)
{
    long best = NO_RUN;
    for (size_t i = 0; i < all->count; i++)
        if ((long)i != other && is_known(joules_of(&all->runs[i])) &&
            (best < 0 || joules_of(&all->runs[i]) < joules_of(&all->runs[best])))
            best = (long)i;
    return best;
}

/* Newcombe's interval for the difference of two proportions, from their own intervals. */
static const char *accuracy_verdict(const struct run_figures *more, const struct run_figures *less)
{
    double distance = hypot(more->point.accuracy - more->accuracy_low,
                            less->accuracy_high - less->point.accuracy);
    if (!is_known(distance))
        return "";
    return more->point.accuracy - less->point.accuracy > distance ? " (outside the 95 % CI)"
                                                                  : " (inside the 95 % CI)";
}

/* Errors are half-widths of 95 % CI, without the error common to both. */
static bool is_clear(const struct run_figures *more, const struct run_figures *less)
{
    return joules_of(more) - joules_of(less) >
           hypot(more->joules_per_query_error, less->joules_per_query_error);
}

static const char *energy_verdict(const struct run_figures *more, const struct run_figures *less)
{
    if (!is_known(more->joules_per_query_error) || !is_known(less->joules_per_query_error))
        return " (± unknown)";
    return is_clear(more, less) ? " (outside ±)" : " (inside ±)";
}

static void add_less_energy(struct text *words, const struct ranking *all, long cheap, long dear)
{
    double times = joules_of(&all->runs[dear]) / joules_of(&all->runs[cheap]);
    if (times >= 1.5)
        text_addf(words, "%.1f times less", times);
    else
        text_addf(words, "%.1f %% less", 100 * (1 - 1 / times));
    text_addf(words, " than %s%s", plain_text(all->names.names[dear]).text,
              energy_verdict(&all->runs[dear], &all->runs[cheap]));
}

static void add_accurate(struct text *words, const struct ranking *all)
{
    char value[FORMAT_MAX];
    long first = all->accurate, next = most_accurate(all, first);
    const struct run_figures *run = &all->runs[first];
    text_addf(words, "%s: most accurate, %s", plain_text(all->names.names[first]).text,
              format_percent(value, run->point.accuracy));
    double points = next < 0 ? 0 : 100 * (run->point.accuracy - all->runs[next].point.accuracy);
    if (next >= 0 && points < 0.05)
        text_addf(words, ", as is %s", plain_text(all->names.names[next]).text);
    else if (next >= 0)
        text_addf(words, ", %.1f points more than %s%s", points,
                  plain_text(all->names.names[next]).text, accuracy_verdict(run, &all->runs[next]));
    if (all->cheapest >= 0 && is_known(joules_of(run)) && all->cheapest != first)
        text_addf(words, ", %s per %s", format_si(value, joules_of(run), "J"), all->each);
}

static void add_cheapest(struct text *words, const struct ranking *all)
{
    char value[FORMAT_MAX];
    long first = all->cheapest, next = all->accurate >= 0 && all->accurate != first &&
                                               is_known(joules_of(&all->runs[all->accurate]))
                                           ? all->accurate
                                           : least_energy(all, first);
    const struct run_figures *run = &all->runs[first];
    if (first != all->accurate)
        text_addf(words, "%s%s", words->length ? "; " : "",
                  plain_text(all->names.names[first]).text);
    text_addf(words, "%s cheapest, %s per %s", first == all->accurate ? "; and" : ":",
              format_si(value, joules_of(run), "J"), all->each);
    if (next >= 0) {
        text_add(words, ", ");
        add_less_energy(words, all, first, next);
    }
    long other = least_energy(all, first);
    if (other >= 0 && other != next && !is_clear(&all->runs[other], run))
        text_addf(words, ", %s the same within ±", plain_text(all->names.names[other]).text);
    if (first != all->accurate && is_known(run->point.accuracy))
        text_addf(words, ", %s correct", format_percent(value, run->point.accuracy));
}

/* The common uncertainty of all energies is stated once. */
static void add_common(struct text *words, const struct ranking *all,
                       const struct uncertainty *common)
{
    char error[FORMAT_MAX], method[FORMAT_MAX];
    const char *first = all->runs[all->cheapest].method;
    for (size_t i = 0; i < all->count; i++)
        if (is_known(joules_of(&all->runs[i])) && strcmp(all->runs[i].method, first) != 0)
            first = "mixed";
    text_addf(words, " Energies %s",
              strcmp(first, "mixed") == 0 ? "by several methods" : format_method(method, first));
    if (common->sensors == UNCERTAINTY_MIXED)
        text_add(words, ", of different sensors");
    else if (is_known(common->common))
        text_addf(words, ", %s", format_common(error, common->common));
    text_add(words, ".");
}

static void put_sentence(const struct ranking *all, const struct uncertainty *common,
                         struct text *out)
{
    struct text words = {0};
    if (all->accurate >= 0)
        add_accurate(&words, all);
    if (all->cheapest >= 0)
        add_cheapest(&words, all);
    else
        text_addf(&words, "%s", words.length ? "; energy unknown" : "energy and accuracy unknown");
    text_add(&words, ".");
    if (all->cheapest >= 0)
        add_common(&words, all, common);
    wrap_words(out, "", 1, SENTENCE_LINES, text_get(&words));
    text_release(&words);
}

/* Omits the middle if it is longer than its column. */
static void add_name(struct table *table, const char *name, size_t most)
{
    struct plain_text plain = plain_text(name);
    const char *tail = plain.text + strlen(plain.text);
    size_t head = 0, letters = utf8_width(plain.text), half = (most - 1) / 2;
    if (letters <= most) {
        table_add(table, plain.text);
        return;
    }
    for (size_t left = half + 1; left && plain.text[head]; head++)
        left -= !utf8_is_continuation(plain.text[head + 1]);
    for (size_t left = half; left && tail > plain.text; left -= !utf8_is_continuation(*tail))
        tail--;
    table_addf(table, "%.*s…%s", (int)head, plain.text, tail);
}

static void put_runs(const struct ranking *all, const bool *optimal, size_t most, bool color,
                     struct text *out)
{
    enum summary_index energy =
        all->runs->is_command ? SUMMARY_INDEX_joules : SUMMARY_INDEX_joules_per_query;
    const struct table_column columns[] = {{"", false},
                                           {"run", false},
                                           FIGURE_COLUMN(failed),
                                           FIGURE_COLUMN(accuracy),
                                           {SUMMARY_HEADINGS[energy], true},
                                           {record_column(COLUMN_NUMBER, RUN_LATENCY)->label, true},
                                           FIGURE_COLUMN(output_tokens_per_s)};
    struct table table = TABLE(columns);
    char cell[FORMAT_MAX];
    size_t letters = NAME_LETTERS;
    for (size_t i = 0; i < all->count && i < most; i++)
        if (all->runs[i].point.failed)
            letters = NAME_LETTERS - FAILED_LETTERS;
    for (size_t i = 0; i < all->count && i < most; i++) {
        const struct run_figures *run = &all->runs[i];
        table_add(&table, optimal[i] ? "*" : "");
        add_name(&table, all->names.names[i], letters);
        if (run->point.failed)
            table_addf(&table, "%zu", run->point.failed);
        else
            table_add(&table, "");
        table_add(&table, format_percent(cell, run->point.accuracy));
        table_add(&table, format_with_error(cell, joules_of(run),
                                            run->joules_per_query_error / NORMAL_95, "J"));
        table_add(&table, format_si(cell, run->latency_s, "s"));
        table_add_known(&table, run->point.output_tokens_per_s, "%.4g",
                        run->point.output_tokens_per_s);
    }
    table_print(&table, "   ", color, out);
    if (all->count > most)
        text_addf(out, "   %zu more runs: -v shows them\n", all->count - most);
    for (size_t i = 0; i < all->count; i++)
        if (optimal[i]) {
            text_add(out, "   * Pareto-optimal: no other is as accurate for as little energy\n");
            break;
        }
}

enum err conclusion_of_runs(struct run_figures *runs, size_t count, const char *each, bool verbose,
                            bool color, struct text *out)
{
    struct ranking all = {.runs = runs, .count = count, .each = each};
    struct uncertainty common = run_figures_settle(runs, count);
    const struct run_point **points = malloc(count * sizeof *points);
    double *figures = malloc(2 * count * sizeof *figures);
    bool *optimal = calloc(count, sizeof *optimal);
    enum err err = points && figures && optimal ? ERR_OK : ERR_NO_MEMORY;
    for (size_t i = 0; !err && i < count; i++) {
        points[i] = &runs[i].point;
        figures[i] = joules_of(&runs[i]);
        figures[count + i] = runs[i].point.accuracy;
    }
    if (!err)
        err = pareto_mark(figures, figures + count, count, optimal);
    if (!err)
        err = run_names_of(points, count, NAME_LETTERS, &all.names);
    if (!err) {
        all.accurate = most_accurate(&all, NO_RUN);
        all.cheapest = least_energy(&all, NO_RUN);
        put_sentence(&all, &common, out);
        text_add(out, "\n comparison\n\n");
        put_runs(&all, optimal, verbose ? count : RUNS_SHOWN, color, out);
        run_names_release(&all.names);
    }
    free((void *)points);
    free(figures);
    free(optimal);
    return err;
}
