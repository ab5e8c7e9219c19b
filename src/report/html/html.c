/* The report of runs as one HTML page: the template filled with style, scripts and data.  The data are one JSON object:
 * every sweep, every run with its sections (sections.h), the layers of each model, and the comparison. */
#include "core/xalloc.h"
#include "report/print/print.h"
#include "report/html/html.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/across.h"
#include "analysis/columns.h"
#include "analysis/compare_set.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/result.h"
#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"
#include "report/html/sections.h"
#include "report/text/compare_report.h"
#include "report/text/format.h"
#include "report/text/reports.h"
#include "rundir/layers_result.h"
#include "rundir/run_table.h"
#include "rundir/spans.h"
#include "rundir/sweep.h"

/* ---- comparison ---- */

/* A larger table of verdicts would be unreadable. */
enum { SIDES_COMPARED = 8 };

static enum err compare_all(const struct compare_groups *groups, const char *model,
                            struct result *out, struct error *why)
{
    struct compare_set set;
    const struct compare_options options = {.model = model};
    if (groups->count > SIDES_COMPARED)
        return err_set(
            why, ERR_NO_DATA,
            "more than %d settings are not compared here: use `ipw compare BASELINE RUN`",
            SIDES_COMPARED);
    enum err err = compare_set_load(groups, &options, &set, why);
    if (!err) {
        compare_result(&(struct compare_report){.groups = groups, .set = &set}, out);
        compare_set_release(&set);
    }
    return err;
}

/* The output of `ipw compare --json`. */
static void put_compared(struct json *json, const struct result *comparison)
{
    struct text text = {0};
    result_print(comparison, PRINT_JSON, &COMPARE_VIEWS, false, &text);
    json_raw(json, "comparison", text_get(&text));
    text_release(&text);
}

static void comparison_put(struct json *json, const struct compare_groups *groups,
                           const char *model)
{
    struct result comparison = {0};
    struct error why = {0};
    if (!compare_all(groups, model, &comparison, &why)) {
        put_compared(json, &comparison);
    } else {
        result_begin(&comparison, "comparison");
        result_text(&comparison, "missing", why.text);
        result_end(&comparison);
        result_to_json(&comparison, "comparison", json);
    }
    result_release(&comparison);
}

/* ---- one run ---- */

/* Of 100000 queries on a page, at least 250 have their texts: about 400 kB. */
enum { LISTED_BY_TEXT = 400, LANES_MAX = 512 };

/* Prints the members of a result, and releases it. */
static void put_filled(struct json *json, struct result *filled)
{
    result_end(filled);
    result_members_to_json(filled, json);
    result_release(filled);
}

static void put_facts(struct json *json, const struct run_table *table, const char *page,
                      const struct spans *spans)
{
    struct result facts = {0};
    result_begin(&facts, "facts");
    run_facts_fill(table, spans->damaged, &facts);
    command_fill(table, &facts);
    files_fill(table->directory, page, &facts);
    put_filled(json, &facts);
    jv_to_json(table->has_summary ? table->summary.tree : NULL, "summary", json);
}

static void put_headline(struct json *json, const struct run_table *table,
                         const struct results *results)
{
    struct result top = {0};
    result_begin(&top, "headline");
    headline_fill(table, results, &top);
    predicted_fill(table->directory, &top);
    run_shares_fill(table, &top);
    put_filled(json, &top);
}

static void put_distributions(struct json *json, const struct run_table *table)
{
    struct result distributions = {0};
    result_begin(&distributions, "distributions");
    run_distributions_fill(table, &distributions);
    put_filled(json, &distributions);
}

static enum err put_all(struct json *json, const struct run_table *table, const char *page,
                        size_t max_listed, const struct results *results, const struct spans *spans,
                        struct error *why)
{
    json_object(json, NULL);
    put_facts(json, table, page, spans);
    put_headline(json, table, results);
    results_put(json, results);
    put_distributions(json, table);
    timeline_put(json, table, spans);
    enum err err = agent_put(json, table->directory, why);
    if (!err)
        queries_put(json, table, spans, max_listed);
    excerpts_put(json, table, max_listed);
    json_object_end(json);
    return err;
}

static enum err run_put(struct json *json, const char *directory, const struct html_report *report,
                        size_t max_listed, struct run_figures *figures, struct error *why)
{
    struct run_wanted wanted = results_need();
    struct run_table table;
    struct results results = {0};
    struct spans spans = {0};
    wanted.numbers |= RUN_FIGURES_NEEDS;
    wanted.numbers |= QUERIES_NEED;
    wanted.numbers |= DISTRIBUTIONS_NEED;
    wanted.words |= RUN_WANT(RUN_SUBJECT) | RUN_FIGURES_WORDS;
    enum err err = run_table_load_texts(directory, report->model, wanted,
                                        max_listed / LISTED_BY_TEXT, &table, why);
    if (err)
        return err;
    if (report->tariff) {
        tariff_override(&table.summary.tariff, report->tariff);
        summary_charge(&table.summary);
    }
    err = spans_load(directory, &spans, why);
    if (err == ERR_NOT_FOUND)
        err = ERR_OK; /* a run of the Python IPW has none */
    spans_assign_lanes(&spans, LANES_MAX);
    if (!err)
        err = results_of(&table, &results, why);
    if (!err)
        err = put_all(json, &table, report->page, max_listed, &results, &spans, why);
    if (!err)
        run_figures_of(&table, figures);
    results_release(&results);
    spans_release(&spans);
    run_table_release(&table);
    return err;
}

/* ---- the page ---- */

static void add_escaped(struct text *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            text_add(out, "&amp;");
            break;
        case '<':
            text_add(out, "&lt;");
            break;
        case '>':
            text_add(out, "&gt;");
            break;
        case '"':
            text_add(out, "&quot;");
            break;
        default:
            text_add_bytes(out, text, 1);
        }
    }
}

/* JSON inside a script element: nothing may end the element or begin a comment, and no line separator may break a line.
 * All of these occur only in strings, where JSON can escape them. */
static void add_data(struct text *out, const struct text *data)
{
    const char *at = text_get(data);
    const char *end = at + data->length;
    while (at < end) {
        size_t plain = strcspn(at, "<>&\xE2");
        text_add_bytes(out, at, plain);
        at += plain;
        if (at >= end)
            break;
        if (strncmp(at, "\xE2\x80\xA8", 3) == 0 || strncmp(at, "\xE2\x80\xA9", 3) == 0) {
            text_add(out, at[2] == '\xA8' ? "\\u2028" : "\\u2029");
            at += 3;
        } else if (*at == '\xE2') {
            text_add_bytes(out, at++, 1);
        } else {
            text_addf(out, "\\u%04x", (unsigned)*at++);
        }
    }
}

static bool is(const char *mark, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(mark, name, length) == 0;
}

/* Expands a placeholder of the template: {{title}}, {{data}}, or a file. */
static void add_part(struct text *out, const char *mark, size_t length, const char *title,
                     const struct text *data)
{
    struct asset asset = asset_find(mark, length);
    if (asset.bytes)
        text_add_bytes(out, asset.bytes, asset.length);
    else if (is(mark, length, "title"))
        add_escaped(out, title);
    else if (is(mark, length, "data"))
        add_data(out, data);
}

bool html_file(const char *name, const char **bytes, size_t *length)
{
    const char *mark = name;
    if (str_equal(name, "report.css"))
        mark = "style";
    else if (str_equal(name, "echarts.min.js"))
        mark = "echarts";
    struct asset asset = asset_find(mark, strlen(mark));
    *bytes = asset.bytes;
    *length = asset.length;
    return asset.bytes;
}

void html_page(const char *title, const struct text *data, struct text *out)
{
    const char *at = asset_template().bytes, *mark;
    while ((mark = strstr(at, "{{"))) {
        const char *end = strstr(mark, "}}");
        if (!end)
            break;
        text_add_bytes(out, at, (size_t)(mark - at));
        add_part(out, mark + 2, (size_t)(end - mark - 2), title, data);
        at = end + 2;
    }
    text_add(out, at);
}

/* ---- the report ---- */

/* Maximum number of queries in a file of 5 MB, including ECharts; of more, a subset is listed. */
enum { LISTED_MAX = 100000 };

/* ---- inputs ---- */

static bool is_left_out(const struct html_report *report, size_t input)
{
    return report->left_out && report->left_out[input].text[0];
}

const char *html_first_run(const struct html_report *report)
{
    for (size_t i = 0; i < report->count; i++)
        if (file_is_directory(report->inputs[i]) && !is_left_out(report, i))
            return report->inputs[i];
    return NULL;
}

/* ---- runs ---- */

/* State of a report. */
struct report_state {
    const struct html_report *report;
    struct json json;
    struct run_figures *figures;
    const char **directories; /* of the runs; borrowed */
    size_t runs, sweeps;
    struct compare_groups groups;
    char title[HTML_TITLE_MAX];
};

/* A run directory: neither a layers file nor a sweep. */
static bool is_run(const char *input)
{
    return !file_is_regular(input) && !sweep_is(input);
}

static enum err put_sweeps(struct report_state *state, struct error *why)
{
    const struct html_report *report = state->report;
    enum err err = ERR_OK;
    json_array(&state->json, "sweeps");
    for (size_t i = 0; !err && i < report->count; i++) {
        if (file_is_regular(report->inputs[i]) || !sweep_is(report->inputs[i]))
            continue;
        err = sweep_put(&state->json, report->inputs[i], why);
        if (!state->sweeps++)
            chars_format(state->title, "Sweep %.300s", str_last_part(report->inputs[i]));
    }
    json_array_end(&state->json);
    return err;
}

/* Adds a run or, if there are others, skips one that cannot be read. */
static enum err put_run(struct report_state *state, size_t input, size_t listed, struct error *why)
{
    const struct html_report *report = state->report;
    struct json before = state->json;
    size_t length = before.out->length;
    enum err err = run_put(&state->json, report->inputs[input], report, listed,
                           &state->figures[state->runs], why);
    if (!err)
        state->directories[state->runs++] = report->inputs[input];
    if (!err || !report->left_out)
        return err;
    state->json = before;
    before.out->length = length;
    report->left_out[input] = *why;
    return ERR_OK;
}

static void put_left_out(struct report_state *state)
{
    const struct html_report *report = state->report;
    json_array(&state->json, "left_out");
    for (size_t i = 0; i < report->count; i++)
        if (is_left_out(report, i))
            json_string(&state->json, NULL, report->left_out[i].text);
    json_array_end(&state->json);
}

static enum err put_runs(struct report_state *state, struct error *why)
{
    const struct html_report *report = state->report;
    size_t count = 0;
    enum err err = ERR_OK;
    for (size_t i = 0; i < report->count; i++)
        count += is_run(report->inputs[i]);
    size_t listed = count ? LISTED_MAX / count : 0; /* per run */
    json_array(&state->json, "runs");
    for (size_t i = 0; !err && i < report->count; i++) {
        if (is_run(report->inputs[i]))
            err = put_run(state, i, listed, why);
    }
    json_array_end(&state->json);
    put_left_out(state);
    /* No run was readable: returns the last reason instead of a page. */
    return !err && count && !state->runs && !state->sweeps ? ERR_NOT_FOUND : err;
}

static void put_comparison(struct report_state *state)
{
    const struct html_report *report = state->report;
    if (report->comparison)
        put_compared(&state->json, report->comparison);
    else
        comparison_put(&state->json, &state->groups, report->model);
}

/* The conclusion on several settings, in the words of `ipw analyze`. */
static void put_answer(struct report_state *state, const struct compare_groups *groups,
                       const struct run_settings *settings)
{
    struct run_ranking ranking;
    struct text words = {0};
    char common[FORMAT_MAX] = "", spread[64];
    if (settings->count > 1) {
        const char *each = state->figures->is_command ? "run" : "query";
        run_ranking_of(settings, groups, state->report->model, 0, &ranking);
        conclusion_of_ranking(&ranking, each, &words);
        run_ranking_release(&ranking);
    }
    if (settings->common.common > 0)
        format_common(common, settings->common.common);
    json_string(&state->json, "answer", words.length ? text_get(&words) : NULL);
    json_string(&state->json, "common_text", common);
    json_string(&state->json, "spread_text", run_spread_note(state->figures, state->runs, spread));
    text_release(&words);
}

/* The settings of the page: those of the comparison; repeats of a single setting are one as well. */
static void put_settings(struct report_state *state)
{
    struct compare_groups one = {
        .directories = state->directories, .runs = &state->runs, .count = 1};
    const struct compare_groups *groups = state->report->groups;
    if (!groups) {
        compare_groups_find(state->directories, state->runs, &state->groups);
        groups = state->groups.one_setting ? &one : &state->groups;
    }
    struct result settings = {0};
    struct run_settings all;
    run_settings_of(groups, state->figures, state->runs, &all);
    run_settings_result(&all, state->figures, state->runs, &settings);
    result_members_to_json(&settings, &state->json);
    put_answer(state, groups, &all);
    const char *family = result_text_at(&settings, NULL, "family");
    if (state->runs > 1)
        chars_format(state->title, "%zu runs%s%s", state->runs, family[0] ? " of " : "", family);
    run_settings_release(&all);
    result_release(&settings);
}

static enum err put_across(struct report_state *state, struct error *why)
{
    struct result across = {0};
    struct run_point *points = xmalloc((state->runs + 1) * sizeof *points);
    for (size_t i = 0; i < state->runs; i++)
        points[i] = state->figures[i].point;
    enum err err = ERR_OK;
    put_settings(state);
    if (state->runs > 1) {
        if (!(err = across_run(points, state->runs, &across)))
            result_to_json(&across, "across", &state->json);
        else
            err_set(why, err, "%s", across.why.text);
        if (!err)
            put_comparison(state);
    } else {
        json_null(&state->json, "across");
        json_null(&state->json, "comparison");
    }
    result_release(&across);
    free(points);
    return err;
}

/* ---- layers ---- */

/* From files, and from runs that have layers*.json next to their records. */
static enum err put_all_layers(struct report_state *state, struct error *why)
{
    struct layers_results layers = {0};
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < state->report->count; i++)
        if (!is_left_out(state->report, i))
            err = layers_results_load(state->report->inputs[i], &layers, why);
    json_array(&state->json, "layers");
    for (size_t i = 0; !err && i < layers.count; i++) {
        json_object(&state->json, NULL);
        layers_result_to_json(&layers.models[i], &state->json);
        json_object_end(&state->json);
    }
    json_array_end(&state->json);
    layers_results_release(&layers);
    return err;
}

/* ---- data of the page ---- */

static void title_of(struct report_state *state)
{
    const struct run_point *first = &state->figures[0].point;
    if (state->runs == 0 && state->sweeps == 0)
        chars_copy(state->title, "Energy by layer");
    else if (state->runs == 1)
        chars_format(state->title, "%s on %s", first->model,
                     first->hardware[0] ? first->hardware : "unknown hardware");
}

static enum err write_data(struct report_state *state, struct text *out, struct error *why)
{
    char when[CLOCK_TEXT_MAX];
    json_init(&state->json, out, false);
    json_object(&state->json, NULL);
    json_string(&state->json, "version", IPW_VERSION);
    json_string(&state->json, "made_at", clock_text(when, clock_wall()));
    summary_labels_to_json(&state->json);
    enum err err = put_sweeps(state, why);
    if (!err)
        err = put_runs(state, why);
    if (!err)
        err = put_across(state, why);
    if (!err)
        err = put_all_layers(state, why);
    title_of(state);
    json_string(&state->json, "title", state->title);
    json_object_end(&state->json);
    return err;
}

enum err html_data(const struct html_report *report, char *title, size_t size, struct text *out,
                   struct error *why)
{
    struct report_state state = {.report = report};
    state.figures = xcalloc(report->count + 1, sizeof *state.figures);
    state.directories = xcalloc(report->count + 1, sizeof *state.directories);
    enum err err = write_data(&state, out, why);
    str_copy(title, size, state.title);
    compare_groups_release(&state.groups);
    free(state.figures);
    free((void *)state.directories);
    return err;
}

enum err html_write(const struct html_report *report, struct text *out, struct error *why)
{
    struct text data = {0};
    char title[HTML_TITLE_MAX];
    enum err err = html_data(report, title, sizeof title, &data, why);
    if (!err)
        html_page(title, &data, out);
    text_release(&data);
    return err;
}
