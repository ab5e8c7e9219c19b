/* Conclusions in words: a run in one sentence; of several the most accurate and the cheapest, by how much, and whether
 * that is significant; and a table of them. */
#include "report/text/reports.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/compare_set.h"
#include "analysis/quality_axis.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
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

static double joules_of(const struct run_ranking *all, long setting)
{
    return all->settings->means[setting].point.joules_per_query;
}

static double accuracy_of(const struct run_ranking *all, long setting)
{
    return all->settings->means[setting].point.accuracy;
}

/* As it is: sentences for a terminal are made plain as a whole. */
static const char *name_of(const struct run_ranking *all, long setting)
{
    return all->names.names[setting];
}

/* Two digits of an estimate: "~31 mJ". */
static const char *joules_text(char *to, const struct run_ranking *all, long setting)
{
    char rough[FORMAT_MAX];
    if (!str_equal(all->settings->means[setting].method, "estimated"))
        return format_si(to, joules_of(all, setting), "J");
    str_format(to, FORMAT_MAX, "~%s", format_rough(rough, joules_of(all, setting), "J"));
    return to;
}

/* What compare says of the difference, unless it has a verdict: "in this run (one run a side: not decided)". */
static void add_caveat(struct text *words, const struct run_ranking *all,
                       const struct standing *standing, long setting)
{
    const char *caveat = standing->of[setting].caveat;
    const char *where = all->settings->sizes[setting] > 1 ? "these runs" : "this run";
    if (caveat[0])
        text_addf(words, " in %s (%s)", where, caveat);
}

/* ", 4.0 times less than b" */
static void add_less_energy(struct text *words, const struct run_ranking *all, long dear)
{
    double times = joules_of(all, dear) / joules_of(all, all->energy.best);
    if (times >= 1.5)
        text_addf(words, ", %.1f times less", times);
    else
        text_addf(words, ", %.1f %% less", 100 * (1 - 1 / times));
    text_addf(words, " than %s", name_of(all, dear));
    add_caveat(words, all, &all->energy, dear);
}

/* Settings that the test does not distinguish from the cheapest, other than the one that was named. */
static void add_peers(struct text *words, const struct run_ranking *all, long named)
{
    const char *before = ", not distinguishable from ";
    for (size_t i = 0; i < all->settings->count; i++) {
        if (!all->energy.of[i].is_peer || (long)i == named)
            continue;
        text_addf(words, "%s%s", before, name_of(all, (long)i));
        before = ", ";
    }
}

static void add_accurate(struct text *words, const struct run_ranking *all, const char *each)
{
    char value[FORMAT_MAX];
    long first = all->accuracy.best, next = all->accuracy.next, cheapest = all->energy.best;
    const struct run_figures *best = &all->settings->means[first];
    text_addf(words, "%s: most accurate, %s", name_of(all, first),
              format_percent(value, accuracy_of(all, first)));
    format_unread(value, best->unread_share, best->accuracy_at_most);
    if (value[0])
        text_addf(words, " (%s)", value);
    double points = next < 0 ? 0 : 100 * (accuracy_of(all, first) - accuracy_of(all, next));
    if (next >= 0 && points < 0.05) {
        text_addf(words, ", as is %s", name_of(all, next));
    } else if (next >= 0) {
        text_addf(words, ", %.1f points more than %s", points, name_of(all, next));
        add_caveat(words, all, &all->accuracy, next);
    }
    if (cheapest >= 0 && is_known(joules_of(all, first)) && cheapest != first)
        text_addf(words, ", %s per %s", joules_text(value, all, first), each);
}

static void add_cheapest(struct text *words, const struct run_ranking *all, const char *each)
{
    char value[FORMAT_MAX];
    long first = all->energy.best, accurate = all->accuracy.best, dear = all->energy.next;
    if (accurate >= 0 && accurate != first && is_known(joules_of(all, accurate)))
        dear = accurate;
    if (first != accurate)
        text_addf(words, "%s%s", words->length ? "; " : "", name_of(all, first));
    text_addf(words, "%s cheapest, %s per %s", first == accurate ? "; and" : ":",
              joules_text(value, all, first), each);
    if (dear >= 0)
        add_less_energy(words, all, dear);
    add_peers(words, all, dear);
    if (first != accurate && is_known(accuracy_of(all, first)))
        text_addf(words, ", %s correct", format_percent(value, accuracy_of(all, first)));
}

/* The common uncertainty of all energies is stated once. */
static void add_common(struct text *words, const struct run_ranking *all)
{
    const struct uncertainty *common = &all->settings->common;
    char error[FORMAT_MAX], method[FORMAT_MAX];
    text_addf(words, " Energies %s",
              all->method ? format_method(method, all->method) : "by several methods");
    if (common->sensors == UNCERTAINTY_MIXED)
        text_add(words, ", of different sensors");
    else if (is_known(common->common))
        text_addf(words, ", %s", format_common(error, common->common));
    text_add(words, ".");
}

void conclusion_of_ranking(const struct run_ranking *all, const char *each, struct text *out)
{
    if (all->datasets > 1) {
        text_addf(
            out,
            "Not ranked: the runs are of %zu datasets, and answers to different questions are "
            "no alternatives.",
            all->datasets);
        return;
    }
    if (all->accuracy.best >= 0)
        add_accurate(out, all, each);
    if (all->energy.best >= 0)
        add_cheapest(out, all, each);
    else
        text_addf(out, "%s", out->length ? "; energy unknown" : "energy and accuracy unknown");
    text_add(out, ".");
}

static void put_sentence(const struct run_ranking *all, const char *each, struct text *out)
{
    struct text words = {0}, plain = {0};
    conclusion_of_ranking(all, each, &words);
    if (all->energy.best >= 0)
        add_common(&words, all);
    text_add_plain(&plain, text_get(&words));
    wrap_words(out, "", 1, SENTENCE_LINES, text_get(&plain));
    text_release(&plain);
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

/* One row of the table: a setting, with the number of its runs. */
static void add_setting(struct table *table, const struct run_ranking *all,
                        const struct quality_axis *axis, size_t i, size_t letters)
{
    const struct run_figures *run = &all->settings->means[i];
    size_t runs = all->settings->sizes[i];
    char cell[FORMAT_MAX], name[RUN_NAME_MAX + 32];
    chars_copy(name, all->names.names[i]);
    if (runs > 1)
        chars_format(name, "%s (%zu runs)", all->names.names[i], runs);
    table_add(table, all->optimal[i] ? "*" : "");
    add_name(table, name, letters);
    if (run->point.failed)
        table_addf(table, "%zu", run->point.failed);
    else
        table_add(table, "");
    if (axis->name[0])
        table_add(table, format_figure(cell, quality_axis_value(axis, &run->point),
                                       run->point.quality.plus_minus, ""));
    else
        table_add(table, format_accuracy(cell, run->point.accuracy, run->unread_share,
                                         run->accuracy_at_most));
    table_add(table, format_with_error(cell, run->point.joules_per_query,
                                       run->joules_per_query_error / NORMAL_95, "J"));
    table_add(table, format_si(cell, run->latency_s, "s"));
    table_add_known(table, run->point.output_tokens_per_s, "%.4g", run->point.output_tokens_per_s);
}

static void put_settings(const struct run_ranking *all, size_t most, bool color, struct text *out)
{
    const struct run_settings *settings = all->settings;
    enum summary_index energy =
        settings->means->is_command ? SUMMARY_INDEX_joules : SUMMARY_INDEX_joules_per_query;
    struct quality_axis axis;
    quality_axis_of(settings->means, settings->count, &axis);
    const struct table_column quality = axis.name[0] ? (struct table_column){axis.name, true}
                                                     : (struct table_column)FIGURE_COLUMN(accuracy);
    const struct table_column columns[] = {{"", false},
                                           {"run", false},
                                           FIGURE_COLUMN(failed),
                                           quality,
                                           {SUMMARY_HEADINGS[energy], true},
                                           {record_column(COLUMN_NUMBER, RUN_LATENCY)->label, true},
                                           FIGURE_COLUMN(output_tokens_per_s)};
    struct table table = TABLE(columns);
    size_t letters = NAME_LETTERS;
    for (size_t i = 0; i < settings->count && i < most; i++)
        if (settings->means[i].point.failed)
            letters = NAME_LETTERS - FAILED_LETTERS;
    for (size_t i = 0; i < settings->count && i < most; i++)
        add_setting(&table, all, &axis, i, letters);
    table_print(&table, "   ", color, out);
    if (settings->count > most)
        text_addf(out, "   %zu more runs: -v shows them\n", settings->count - most);
    for (size_t i = 0; i < settings->count; i++)
        if (all->optimal[i]) {
            text_addf(out, "   * Pareto-optimal: no other%s is as %s for as little energy\n",
                      all->datasets > 1 ? " of its dataset" : "",
                      axis.name[0] ? "good" : "accurate");
            break;
        }
}

/* Settings of runs, and how they rank. */
struct ranked {
    const char **directories;
    struct compare_groups groups;
    struct run_settings settings;
    struct run_ranking all;
};

static void rank_runs(struct run_figures *runs, size_t count, const char *model, struct ranked *out)
{
    *out = (struct ranked){.directories = xcalloc(count + 1, sizeof *out->directories)};
    for (size_t i = 0; i < count; i++)
        out->directories[i] = runs[i].point.directory;
    compare_groups_find(out->directories, count, &out->groups);
    run_settings_of(&out->groups, runs, count, &out->settings);
    run_ranking_of(&out->settings, &out->groups, model, NAME_LETTERS, &out->all);
}

static void ranked_release(struct ranked *ranked)
{
    run_ranking_release(&ranked->all);
    run_settings_release(&ranked->settings);
    compare_groups_release(&ranked->groups);
    free((void *)ranked->directories);
}

void conclusion_of_runs(struct run_figures *runs, size_t count, const char *model, const char *each,
                        bool verbose, bool color, struct text *out)
{
    struct ranked ranked;
    char spread[64];
    rank_runs(runs, count, model, &ranked);
    put_sentence(&ranked.all, each, out);
    run_spread_note(ranked.settings.means, ranked.settings.count, spread);
    text_addf(out, "\n comparison%s%s\n\n", spread[0] ? "; ±" : "", spread[0] ? spread + 1 : "");
    put_settings(&ranked.all, verbose ? count : RUNS_SHOWN, color, out);
    ranked_release(&ranked);
}

/* ---- conclusion on models ---- */

/* The models' own names instead of what differs between them. */
static void name_by_models(struct run_ranking *all)
{
    for (size_t i = 0; i < all->settings->count; i++) {
        const char *name = str_last_part(all->settings->means[i].point.model);
        size_t length = strlen(name);
        if (str_ends(name, ".gguf"))
            length -= strlen(".gguf");
        chars_format(all->names.names[i], "%.*s", (int)length, name);
    }
}

void conclusion_of_models(const char *const *directories, size_t count, struct text *out)
{
    const struct run_wanted wanted = {RUN_FIGURES_NEEDS, RUN_FIGURES_WORDS};
    struct run_figures *runs = xcalloc(count + 1, sizeof *runs);
    size_t loaded = 0;
    for (size_t i = 0; i < count; i++) {
        struct run_table table;
        if (run_table_load(directories[i], NULL, wanted, &table, NULL))
            continue;
        run_figures_of(&table, &runs[loaded++]);
        run_table_release(&table);
    }
    if (loaded > 1) {
        struct ranked ranked;
        rank_runs(runs, loaded, NULL, &ranked);
        name_by_models(&ranked.all);
        conclusion_of_ranking(&ranked.all, "query", out);
        ranked_release(&ranked);
    }
    free(runs);
}
