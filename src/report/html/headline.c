/* The top of a run's report: the results of the analyses, and the headline figures with their ±. */
#include "report/print/print.h"
#include "report/html/sections.h"

#include <stddef.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/format.h"
#include "rundir/run_table.h"
#include "rundir/traces.h"

/* ---- results of the analyses ---- */

struct run_wanted results_need(void)
{
    struct run_wanted wanted = {0};
    for (size_t i = 0; ANALYSIS_DRIVERS[i]; i++) {
        wanted.numbers |= ANALYSIS_DRIVERS[i]->needs.numbers;
        wanted.words |= ANALYSIS_DRIVERS[i]->needs.words;
    }
    return wanted;
}

enum err results_of(const struct run_table *table, struct results *out, struct error *why)
{
    const struct params none = {0};
    struct run_table without_texts = *table; /* shown elsewhere on the page */
    const struct analysis_input input = {.table = &without_texts,
                                         .traces = traces_exist(table->directory) ? table->directory
                                                                                  : NULL};
    enum err err = ERR_OK;
    without_texts.excerpts = (struct run_excerpts){0};
    *out = (struct results){0};
    for (size_t i = 0; !err && ANALYSIS_DRIVERS[i] && out->count < RESULTS_MAX; i++) {
        struct result *result = &out->items[out->count];
        const struct analysis_driver *driver = ANALYSIS_DRIVERS[i];
        if (driver->reads_layers || driver->reads_sweep || (driver->reads_traces && !input.traces))
            continue; /* drawn by the page itself, or without data */
        err = analysis_run(driver, &input, &none, result);
        out->count++;
        if (err == ERR_NO_DATA)
            err = ERR_OK; /* the result contains the reason */
        if (err)
            err_set(why, err, "%s", result->why.text);
    }
    if (err)
        results_release(out);
    return err;
}

void results_release(struct results *results)
{
    for (size_t i = 0; i < results->count; i++)
        result_release(&results->items[i]);
    results->count = 0;
}

/* By analysis and path: "efficiency", "summary.joules_per_output_token"; NULL if absent. */
static const struct result_item *item_at(const struct results *results, const char *analysis,
                                         const char *path)
{
    const struct result *result =
        str_find(analysis, results->items, results->count, sizeof *results->items);
    return result ? result_find(result, path) : NULL;
}

static double figure_at(const struct results *results, const char *analysis, const char *path)
{
    return result_value(item_at(results, analysis, path));
}

enum err sweep_put(struct json *json, const char *directory, struct error *why)
{
    struct result result;
    enum err err = analysis_run_sweep(directory, &result);
    if (err && err != ERR_NO_DATA) {
        err_set(why, err, "%s", result.why.text);
    } else {
        err = ERR_OK;
        json_object(json, NULL);
        json_string(json, "name", str_last_part(directory));
        json_string(json, "directory", directory);
        result_to_json(&result, "result", json);
        json_object_end(json);
    }
    result_release(&result);
    return err;
}

void results_put(struct json *json, const struct results *results)
{
    json_object(json, "analyses");
    for (size_t i = 0; i < results->count; i++)
        result_to_json(&results->items[i], results->items[i].name, json);
    json_object_end(json);
}

/* ---- headline figures ---- */

enum { NOTE_MAX = 320 };

struct top {
    struct result *out;
    const struct run_table *table;
    const struct results *results;
};

/* The page shows the label of `figure` (summary_labels_to_json), or of the key for NULL. */
static void put_figure(const struct top *top, const char *key, const char *figure, double value,
                       const char *text, const char *note)
{
    result_group(top->out, NULL);
    result_text(top->out, "key", key);
    result_optional_text(top->out, "figure", figure);
    result_number(top->out, "value", value, "");
    result_text(top->out, "text", is_known(value) ? text : NULL);
    result_text(top->out, "note", note);
    result_end(top->out);
}

/* From the summary, else from an analysis; none of these figures can be negative. */
static double fact_or(const struct top *top, double value, const char *analysis, const char *path)
{
    return value >= 0 ? value : figure_at(top->results, analysis, path);
}

/* Why there is no figure per query. */
static const char *missing_note(const struct top *top, const char *otherwise)
{
    return run_completed_count(top->table) == 0 ? "no query completed" : otherwise;
}

/* The interval of an analysis's figure, and its number of queries. */
static void add_interval(char *note, const struct result_item *item, const char *unit)
{
    char from[FORMAT_MAX], to[FORMAT_MAX], count[32] = "";
    size_t used = strlen(note);
    if (!item || !is_known(item->low) || !is_known(item->high))
        return;
    if (is_known(item->queries))
        chars_format(count, ", n = %.0f", item->queries);
    str_format(note + used, NOTE_MAX - used, "%s95 %% CI (sampling error only): %s to %s%s",
               used ? "; " : "", format_figure(from, item->low, UNKNOWN, unit),
               format_figure(to, item->high, UNKNOWN, unit), count);
}

/* With the digits of that interval. */
static void put_beside(char *text, double value, double error, const struct result_item *item,
                       const char *unit)
{
    format_figure_beside(text, value, error, item ? item->low : UNKNOWN,
                         item ? item->high : UNKNOWN, unit);
}

/* ---- energy ---- */

/* Relative uncertainty of the machine's energy, which its parts share. */
static double relative_error(const struct run_table *table)
{
    const struct record_energy *energy = &table->summary.energy;
    return energy->joules > 0 ? energy->plus_minus / energy->joules : UNKNOWN;
}

static void put_energy(const struct top *top)
{
    char text[FORMAT_MAX], note[NOTE_MAX], covered[FORMAT_MAX];
    const struct record_energy *energy = &top->table->summary.energy;
    double joules = fact_or(top, energy->joules, "efficiency", "summary.joules");
    const char *method = energy->method;
    const char *why = text_or_empty(energy->note);
    if (!method)
        method = common_word(top->table, RUN_METHOD);
    format_percent(covered, energy->coverage);
    if (!is_known(joules))
        chars_format(note, "not measured%s%s", why[0] ? ": " : "", why);
    else if (is_known(energy->coverage))
        chars_format(note, "%s, %s coverage", text_or_empty(method), covered);
    else
        chars_format(note, "sum over queries; %s", method ? method : "method unknown");
    format_with_error(text, joules, energy->plus_minus, "J");
    put_figure(top, "joules", NULL, joules, text, note);
}

static void put_per_query(const struct top *top)
{
    char text[FORMAT_MAX], note[NOTE_MAX];
    double joules = fact_or(top, top->table->summary.joules_per_query, "efficiency",
                            "summary.joules_per_query");
    double known = figure_at(top->results, "efficiency", "summary.energy_known");
    format_with_error(text, joules, joules * relative_error(top->table), "J");
    chars_format(note, "mean of %.0f queries", known);
    put_figure(top, "joules_per_query", NULL, joules, text,
               is_known(known) ? note : missing_note(top, "not measured"));
}

static void put_per_token(const struct top *top)
{
    char text[FORMAT_MAX], note[NOTE_MAX] = "";
    static const char PATH[] = "summary.joules_per_output_token";
    const struct result_item *item = item_at(top->results, "efficiency", PATH);
    double joules = fact_or(top, top->table->summary.joules_per_output_token, "efficiency", PATH);
    put_beside(text, joules, joules * relative_error(top->table), item, "J");
    add_interval(note, item, "J");
    put_figure(top, "joules_per_output_token", NULL, joules, text,
               is_known(joules) ? note : missing_note(top, "not measured"));
}

static void put_watts(const struct top *top)
{
    char text[FORMAT_MAX];
    double known = top->table->summary.busy_watts;
    double watts = fact_or(top, known, "efficiency", "data.of_a_query.watts.mean");
    format_with_error(text, watts, watts * relative_error(top->table), "W");
    bool busy = is_known(known);
    put_figure(top, "busy_watts", busy ? NULL : "watts", watts, text,
               busy ? "while requests were in flight" : "mean energy per query / latency");
}

/* ---- intelligence ---- */

static void put_accuracy(const struct top *top)
{
    char text[FORMAT_MAX], note[NOTE_MAX] = "", from[FORMAT_MAX], to[FORMAT_MAX];
    char unread[FORMAT_MAX];
    const struct results *results = top->results;
    const struct result_item *item = item_at(results, "accuracy", "summary.accuracy");
    format_unread(unread, figure_at(results, "accuracy", "summary.unread_share"),
                  figure_at(results, "accuracy", "summary.accuracy_at_most"));
    double accuracy = fact_or(top, top->table->summary.accuracy, "accuracy", "summary.accuracy");
    format_percent(text, accuracy);
    if (item && is_known(item->low) && is_known(accuracy))
        chars_format(note, "%.0f of %.0f correct; 95 %% CI: %s to %s%s%s",
                     figure_at(results, "accuracy", "summary.correct"),
                     figure_at(results, "accuracy", "summary.total_scored"),
                     format_percent(from, item->low), format_percent(to, item->high),
                     unread[0] ? "; " : "", unread);
    put_figure(top, "accuracy", NULL, accuracy, text,
               note[0] ? note : missing_note(top, "no graded answers"));
}

/* For a scored text only. */
static void put_perplexity(const struct top *top)
{
    char text[FORMAT_MAX], note[NOTE_MAX];
    const struct summary *run = &top->table->summary;
    if (!is_known(run->perplexity))
        return;
    chars_format(note, "per token, over %.0f tokens", integer_number(run->scored_tokens));
    put_figure(top, "perplexity", NULL, run->perplexity,
               format_figure(text, run->perplexity, run->perplexity_plus_minus, ""), note);
    chars_format(note, "over %.0f bytes", integer_number(run->scored_bytes));
    put_figure(top, "bits_per_byte", NULL, run->bits_per_byte,
               format_figure(text, run->bits_per_byte, run->bits_per_byte_plus_minus, ""), note);
}

/* Metrics of all answers, each with its own label. */
static void put_qualities(const struct top *top)
{
    char text[FORMAT_MAX], note[NOTE_MAX];
    const struct summary *run = &top->table->summary;
    for (size_t i = 0; i < run->quality_count; i++) {
        const struct summary_quality *quality = &run->qualities[i];
        chars_format(note, "over %.0f answers%s%s%s", integer_number(quality->count),
                     quality->better == BETTER_LOWER ? "; lower is better" : "",
                     quality->reason[0] ? "; " : "", quality->reason);
        result_group(top->out, NULL);
        result_text(top->out, "key", quality->name);
        result_text(top->out, "label", quality->name);
        result_number(top->out, "value", quality->value, "");
        result_text(top->out, "text",
                    is_known(quality->value)
                        ? format_figure(text, quality->value, quality->plus_minus, "")
                        : NULL);
        result_text(top->out, "note", note);
        result_end(top->out);
    }
}

static void put_intelligence(const struct top *top, const char *key, double known, double error,
                             const char *unit, const char *what)
{
    char text[FORMAT_MAX], path[80], note[NOTE_MAX];
    chars_format(path, "summary.%s", key);
    chars_copy(note, what);
    const struct result_item *item = item_at(top->results, "accuracy", path);
    add_interval(note, item, unit);
    double value = fact_or(top, known, "accuracy", path);
    put_beside(text, value, error, item, unit);
    put_figure(top, key, NULL, value, text, note);
}

/* ---- speed ---- */

static void put_speed(const struct top *top)
{
    char text[FORMAT_MAX], note[NOTE_MAX], p95[FORMAT_MAX];
    double rate = top->table->summary.output_tokens_per_s;
    double at_once = integer_number(top->table->summary.config_concurrency);
    chars_format(text, "%.4g tok/s", rate);
    chars_format(note, "output; up to %.0f concurrent request%s", at_once, str_plural(at_once));
    put_figure(top, "output_tokens_per_s", NULL, rate, text, is_known(at_once) ? note : "output");

    static const struct {
        const char *key, *p50, *p95;
    } TIMES[] = {
        {"time_to_first_token_s", "data.times.time_to_first_token_s.p50",
         "data.times.time_to_first_token_s.p95"},
        {"latency_s", "data.times.latency_s.p50", "data.times.latency_s.p95"},
    };
    for (size_t i = 0; i < COUNT_OF(TIMES); i++) {
        double median = figure_at(top->results, "latency", TIMES[i].p50);
        format_si(text, median, "s");
        format_si(p95, figure_at(top->results, "latency", TIMES[i].p95), "s");
        chars_format(note, "median; 95 %% of queries within %s", p95);
        put_figure(top, TIMES[i].key, NULL, median, text,
                   is_known(median) ? note : missing_note(top, "unknown for all queries"));
    }
}

/* ---- cost ---- */

/* Per query; the note has the figure per million tokens, the prices, and their scope. */
static void put_charge(const struct top *top, const char *key, double value, const char *each,
                       const char *million, const struct tariff *tariff)
{
    struct text note = {0};
    if (million[0])
        text_addf(&note, "%s per million output tokens; ", million);
    format_tariff(tariff, text_or_empty(top->table->summary.currency), &note);
    if (is_known(tariff->gco2_per_kwh))
        text_add(&note, "; location-based, electricity only");
    else if (is_known(tariff->price_per_kwh))
        text_add(&note, "; without cooling (PUE)");
    put_figure(top, key, NULL, value, each, text_get(&note));
    text_release(&note);
}

/* Nothing without prices. */
static void put_operating(const struct top *top)
{
    const struct summary *run = &top->table->summary;
    const struct charge *query = &run->per_query;
    const struct charge *million = &run->per_million_output;
    struct tariff prices = run->tariff;
    struct tariff carbon = TARIFF_NONE;
    const char *currency = text_or_empty(run->currency);
    char each[FORMAT_MAX], tokens[FORMAT_MAX] = "";
    prices.gco2_per_kwh = UNKNOWN;
    carbon.gco2_per_kwh = run->tariff.gco2_per_kwh;
    if (is_known(million->cost))
        format_cost(tokens, million, currency);
    if (tariff_given(&prices))
        put_charge(top, "cost_per_query", query->cost, format_cost(each, query, currency), tokens,
                   &prices);
    if (is_known(million->gco2e))
        format_emissions(tokens, million);
    if (tariff_given(&carbon))
        put_charge(top, "gco2e_per_query", query->gco2e,
                   format_with_error(each, query->gco2e, query->gco2e_plus_minus, "g"),
                   is_known(million->gco2e) ? tokens : "", &carbon);
}

void headline_fill(const struct run_table *table, const struct results *results, struct result *out)
{
    const struct top top = {out, table, results};
    const struct summary *summary = &table->summary;
    result_list(out, "headline");
    put_perplexity(&top);
    put_qualities(&top);
    if (!summary->quality_count || is_known(summary->accuracy))
        put_accuracy(&top);
    put_per_query(&top);
    put_per_token(&top);
    put_intelligence(&top, "ipj", summary->ipj, summary->ipj_plus_minus, "1/J",
                     "accuracy / energy per query");
    put_intelligence(&top, "ipw", summary->ipw, summary->ipw_plus_minus, "1/W",
                     "accuracy / power while busy");
    put_energy(&top);
    put_watts(&top);
    put_speed(&top);
    put_operating(&top);
    result_end(out);
}
