/* Conclusions in words: a run in one sentence; of several the most accurate and the cheapest, by how much, and whether
 * that is significant; and a table of them. */
#include "report/text/reports.h"

#include <string.h>

#include "analysis/across.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/print/print.h"
#include "report/text/format.h"
#include "rundir/summary.h"

enum { SENTENCE_LINES = 5 };

/* ---- conclusion on one run ---- */

static double figure_of(const struct result *results, size_t count, const char *name,
                        const char *path, double *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct result_item *item =
            str_equal(results[i].name, name) ? result_find(&results[i], path) : NULL;
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
    char low[FORMAT_MAX], high[FORMAT_MAX], value[FORMAT_MAX], unread[FORMAT_MAX];
    struct text words = {0};
    format_unread(unread, run->unread_share, run->accuracy_at_most);
    double joules = point->joules_per_query;
    double error = run->uncertainty.common * joules;
    double unused;
    double invalid = figure_of(results, count, "quality", "summary.findings_invalid", &unused);
    double warnings = figure_of(results, count, "quality", "summary.findings_warning", &unused);
    (void)figure_of(results, count, "efficiency", "summary.joules_per_query", &error);
    text_addf(&words, "%s%s%s: ", plain_text(point->model).text, point->hardware[0] ? " on " : "",
              plain_text(point->hardware).text);
    bool is_empty = point->failed + point->canceled == point->queries;
    if (is_empty)
        text_add(&words, "nothing was completed");
    else if (is_known(point->accuracy))
        text_addf(&words, "%s correct (95 %% CI: %s to %s%s%s) at ",
                  format_percent(value, point->accuracy), format_percent(low, run->accuracy_low),
                  format_percent(high, run->accuracy_high), unread[0] ? "; " : "", unread);
    if (is_known(joules))
        add_energy(&words, run, joules, error, each);
    else if (!is_empty)
        text_add(&words, "unknown energy");
    if (is_known(run->latency_s))
        text_addf(&words, ", median latency %s", format_si(value, run->latency_s, "s"));
    if (point->failed && point->failed < point->queries)
        text_addf(&words, "; %zu of %zu failed", point->failed, point->queries);
    if (invalid > 0)
        text_addf(&words, "; %.0f finding%s: the figures are invalid", invalid,
                  str_plural(invalid));
    if (warnings > 0)
        text_addf(&words, "; %.0f warning%s", warnings, str_plural(warnings));
    else if (warnings == 0)
        text_add(&words, "; no warnings");
    text_add(&words, ".");
    wrap_words(out, "", 1, SENTENCE_LINES, text_get(&words));
    text_release(&words);
}

/* ---- conclusion on several runs ---- */

enum { NAME_LETTERS = 25, FAILED_LETTERS = 8, RUNS_SHOWN = 6 };

static double joules_of(const struct run_ranking *all, long run)
{
    return all->runs[run].point.joules_per_query;
}

static double accuracy_of(const struct run_ranking *all, long run)
{
    return all->runs[run].point.accuracy;
}

static struct plain_text name_of(const struct run_ranking *all, long run)
{
    return plain_text(all->names.names[run]);
}

static const char *accuracy_verdict(enum difference difference)
{
    static const char *const VERDICTS[] = {
        [DIFFERENCE_UNKNOWN] = "",
        [DIFFERENCE_INSIDE] = " (inside the 95 % CI)",
        [DIFFERENCE_OUTSIDE] = " (outside the 95 % CI)",
    };
    return VERDICTS[difference];
}

static const char *energy_verdict(enum difference difference)
{
    static const char *const VERDICTS[] = {
        [DIFFERENCE_UNKNOWN] = " (± unknown)",
        [DIFFERENCE_INSIDE] = " (inside ±)",
        [DIFFERENCE_OUTSIDE] = " (outside ±)",
    };
    return VERDICTS[difference];
}

static void add_less_energy(struct text *words, const struct run_ranking *all)
{
    double times = joules_of(all, all->dear) / joules_of(all, all->cheapest);
    if (times >= 1.5)
        text_addf(words, ", %.1f times less", times);
    else
        text_addf(words, ", %.1f %% less", 100 * (1 - 1 / times));
    text_addf(words, " than %s%s", name_of(all, all->dear).text, energy_verdict(all->energy));
}

static void add_accurate(struct text *words, const struct run_ranking *all, const char *each)
{
    char value[FORMAT_MAX];
    long first = all->accurate;
    long next = all->runner_up;
    text_addf(words, "%s: most accurate, %s", name_of(all, first).text,
              format_percent(value, accuracy_of(all, first)));
    format_unread(value, all->runs[first].unread_share, all->runs[first].accuracy_at_most);
    if (value[0])
        text_addf(words, " (%s)", value);
    double points = next < 0 ? 0 : 100 * (accuracy_of(all, first) - accuracy_of(all, next));
    if (next >= 0 && points < 0.05)
        text_addf(words, ", as is %s", name_of(all, next).text);
    else if (next >= 0)
        text_addf(words, ", %.1f points more than %s%s", points, name_of(all, next).text,
                  accuracy_verdict(all->accuracy));
    if (all->cheapest >= 0 && is_known(joules_of(all, first)) && all->cheapest != first)
        text_addf(words, ", %s per %s", format_si(value, joules_of(all, first), "J"), each);
}

static void add_cheapest(struct text *words, const struct run_ranking *all, const char *each)
{
    char value[FORMAT_MAX];
    long first = all->cheapest;
    if (first != all->accurate)
        text_addf(words, "%s%s", words->length ? "; " : "", name_of(all, first).text);
    text_addf(words, "%s cheapest, %s per %s", first == all->accurate ? "; and" : ":",
              format_si(value, joules_of(all, first), "J"), each);
    if (all->dear >= 0)
        add_less_energy(words, all);
    if (all->as_cheap >= 0)
        text_addf(words, ", %s the same within ±", name_of(all, all->as_cheap).text);
    if (first != all->accurate && is_known(accuracy_of(all, first)))
        text_addf(words, ", %s correct", format_percent(value, accuracy_of(all, first)));
}

/* The common uncertainty of all energies is stated once. */
static void add_common(struct text *words, const struct run_ranking *all)
{
    char error[FORMAT_MAX], method[FORMAT_MAX];
    text_addf(words, " Energies %s",
              all->method ? format_method(method, all->method) : "by several methods");
    if (all->common.sensors == UNCERTAINTY_MIXED)
        text_add(words, ", of different sensors");
    else if (is_known(all->common.common))
        text_addf(words, ", %s", format_common(error, all->common.common));
    text_add(words, ".");
}

static void put_sentence(const struct run_ranking *all, const char *each, struct text *out)
{
    struct text words = {0};
    if (all->accurate >= 0)
        add_accurate(&words, all, each);
    if (all->cheapest >= 0)
        add_cheapest(&words, all, each);
    else
        text_addf(&words, "%s", words.length ? "; energy unknown" : "energy and accuracy unknown");
    text_add(&words, ".");
    if (all->cheapest >= 0)
        add_common(&words, all);
    wrap_words(out, "", 1, SENTENCE_LINES, text_get(&words));
    text_release(&words);
}

/* Omits the middle if it is longer than its column. */
static void add_name(struct table *table, const char *name, size_t most)
{
    struct plain_text plain = plain_text(name);
    const char *tail = plain.text + strlen(plain.text);
    size_t head = 0;
    size_t letters = utf8_width(plain.text);
    size_t half = (most - 1) / 2;
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

static void put_runs(const struct run_ranking *all, size_t most, bool color, struct text *out)
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
        table_add(&table, all->optimal[i] ? "*" : "");
        add_name(&table, all->names.names[i], letters);
        if (run->point.failed)
            table_addf(&table, "%zu", run->point.failed);
        else
            table_add(&table, "");
        table_add(&table, format_accuracy(cell, run->point.accuracy, run->unread_share,
                                          run->accuracy_at_most));
        table_add(&table, format_with_error(cell, run->point.joules_per_query,
                                            run->joules_per_query_error / NORMAL_95, "J"));
        table_add(&table, format_si(cell, run->latency_s, "s"));
        table_add_known(&table, run->point.output_tokens_per_s, "%.4g",
                        run->point.output_tokens_per_s);
    }
    table_print(&table, "   ", color, out);
    if (all->count > most)
        text_addf(out, "   %zu more runs: -v shows them\n", all->count - most);
    for (size_t i = 0; i < all->count; i++)
        if (all->optimal[i]) {
            text_add(out, "   * Pareto-optimal: no other is as accurate for as little energy\n");
            break;
        }
}

void conclusion_of_runs(struct run_figures *runs, size_t count, const char *each, bool verbose,
                        bool color, struct text *out)
{
    struct run_ranking all;
    run_ranking_of(runs, count, NAME_LETTERS, &all);
    put_sentence(&all, each, out);
    text_add(out, "\n comparison\n\n");
    put_runs(&all, verbose ? count : RUNS_SHOWN, color, out);
    run_ranking_release(&all);
}
