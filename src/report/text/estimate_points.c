/* Many estimates as one table: text and Markdown with the columns that differ, CSV with all; and the subgraphs of one
 * as CSV. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "report/text/estimate_report.h"
#include "report/text/estimate_words.h"
#include "report/text/format.h"

/* ---- columns ---- */

enum column {
    FRONTIER,
    HARDWARE,
    FORMAT,
    RUNTIME_CELL,
    BATCH,
    PROMPT,
    CONTEXT,
    DEVICES,
    EACH,
    LATENCY,
    TTFT,
    TPOT,
    USER_RATE,
    RATE,
    COST,
    EMISSIONS,
    POWER,
    MEMORY,
    DOUBT,
    LIMITS,
    CONFIDENCE,
    CELLS
};

/* Parameters that differ between workloads have a column; common values are in the title. */
struct layout {
    struct grid_differences works;
    bool confidences, devices, runtimes, costs, emissions, requests;
    bool omitted[CELLS]; /* for lack of room */
    size_t rows_each;    /* rows per demand; 0: all */
    char each[WORDS_MAX], rate[WORDS_MAX];
    char cost[WORDS_MAX], grams[WORDS_MAX];
    struct table_column columns[CELLS];
};

/* A confidence common to all is a note below the table, not a column. */
static void compare_points(const struct estimate_grid *points, struct layout *layout)
{
    for (size_t i = 0; i < points->count; i++) {
        const struct workload_estimate *estimate = &points->items[i].estimate;
        layout->devices |= estimate_devices(&estimate->config) > 1;
        layout->runtimes |=
            points->items[i].work->spec.runtime != points->items[0].work->spec.runtime;
        layout->confidences |= !points->items[i].missing[0] &&
                               estimate->confidence != points->items[0].estimate.confidence;
    }
}

static void name_costs(const struct points_report *report, struct layout *layout, const char *unit)
{
    const struct tariff *tariff = report->tariff;
    layout->costs =
        tariff && (is_known(tariff->price_per_kwh) || is_known(tariff->device_price_per_hour));
    layout->emissions = tariff && is_known(tariff->gco2_per_kwh);
    str_format(layout->cost, sizeof layout->cost, "cost/%s", unit);
    str_format(layout->grams, sizeof layout->grams, "CO2e/%s", unit);
}

static void set_layout(const struct points_report *report, struct layout *layout)
{
    const struct estimate_grid *points = report->points;
    const char *unit = words_unit(&points->works[0]);
    const struct table_column columns[CELLS] = {
        [FRONTIER] = {"", false},
        [HARDWARE] = {"hardware", false},
        [FORMAT] = {"precision", false},
        [RUNTIME_CELL] = {"runtime", false},
        [BATCH] = {"batch", true},
        [PROMPT] = {"prompt", true},
        [CONTEXT] = {"context", true},
        [DEVICES] = {"devices", true},
        [EACH] = {layout->each, true},
        [LATENCY] = {"latency", true},
        [TTFT] = {"TTFT", true},
        [TPOT] = {"TPOT", true},
        [USER_RATE] = {"tok/s/user", true},
        [RATE] = {layout->rate, true},
        [COST] = {layout->cost, true},
        [EMISSIONS] = {layout->grams, true},
        [POWER] = {"power", true},
        [MEMORY] = {"memory", true},
        [DOUBT] = {"", false},
        [LIMITS] = {"limits", false},
        [CONFIDENCE] = {"conf", false},
    };
    *layout = (struct layout){.works = estimate_grid_differences(points)};
    layout->requests = points->works[0].spec.is_request;
    compare_points(points, layout);
    words_each(layout->each, unit);
    str_format(layout->rate, sizeof layout->rate, "%ss/s", unit);
    name_costs(report, layout, strcmp(unit, "token") == 0 ? "Mtok" : unit);
    memcpy(layout->columns, columns, sizeof columns);
    if (layout->runtimes || layout->requests)
        layout->columns[FORMAT].title = "dtype"; /* room for more columns */
    if (!points->works[0].spec.model->has_phases)
        layout->columns[PROMPT].title = "tokens"; /* an encoder processes its input at once */
    size_t demands = points->demand_count ? points->demand_count : 1;
    layout->rows_each = (report->top + demands - 1) / demands;
}

/* ---- cells ---- */

static const char *verdict(const struct points_report *report, const struct grid_point *point)
{
    if (!budget_has_any(report->budget))
        return "";
    return budget_verdict_name(budget_verdict(report->budget, &point->estimate));
}

static const char *const SHORT_CONFIDENCE[] = {[CONFIDENCE_CALIBRATED] = "cal",
                                               [CONFIDENCE_INTERPOLATED] = "int",
                                               [CONFIDENCE_THEORETICAL] = "theo"};

/* Per million tokens, or per sample. */
static void fill_costs(const struct points_report *report, const struct workload_estimate *estimate,
                       char cells[CELLS][WORDS_MAX])
{
    struct charge charge = CHARGE_UNKNOWN;
    double units = estimate->work->units;
    if (report->tariff)
        charge = estimate_charge(estimate, &estimate->total, report->tariff,
                                 strcmp(words_unit(estimate->work), "token") ? units : units / 1e6);
    format_amount(cells[COST], charge.cost, UNKNOWN, "");
    format_si(cells[EMISSIONS], charge.gco2e, "g");
}

static void fill_cells(const struct points_report *report, const struct layout *layout,
                       const struct grid_point *point, char cells[CELLS][WORDS_MAX])
{
    const struct workload_estimate *estimate = &point->estimate;
    const struct estimate_totals *all = &estimate->total;
    struct workload_demand demand = workload_demand(&point->work->spec);
    double units = estimate->work->units;
    str_copy(cells[FRONTIER], WORDS_MAX, point->on_frontier ? "*" : "");
    str_copy(cells[HARDWARE], WORDS_MAX, point->estimate.hardware->id);
    str_copy(cells[FORMAT], WORDS_MAX, words_precision(&estimate->config));
    str_copy(cells[RUNTIME_CELL], WORDS_MAX, runtime_at(estimate->config.runtime)->name);
    str_format(cells[BATCH], WORDS_MAX, "%.0f", estimate->work->batch);
    str_format(cells[PROMPT], WORDS_MAX, "%" PRId64, demand.prompt);
    str_format(cells[CONTEXT], WORDS_MAX, "%" PRId64, demand.context);
    str_format(cells[DEVICES], WORDS_MAX, "%d", estimate_devices(&estimate->config));
    words_estimated(cells[EACH], all->joules.total / units, all->joules_plus_minus / units, "J");
    format_si(cells[LATENCY], all->latency_s, "s");
    format_rough(cells[TTFT], workload_estimate_ttft_s(estimate), "s");
    format_rough(cells[TPOT], workload_estimate_tpot_s(estimate), "s");
    words_rate(cells[USER_RATE], 1 / workload_estimate_tpot_s(estimate));
    words_rate(cells[RATE], workload_estimate_units_per_s(estimate));
    fill_costs(report, estimate, cells);
    if (is_known(all->average_w))
        str_format(cells[POWER], WORDS_MAX, "~%.0f W", all->average_w);
    else
        str_copy(cells[POWER], WORDS_MAX, "-");
    format_bytes(cells[MEMORY], estimate->memory.total_peak);
    str_copy(cells[DOUBT], WORDS_MAX,
             !estimate->memory.fits              ? "!"
             : !workload_estimate_fits(estimate) ? "?"
                                                 : "");
    str_copy(cells[LIMITS], WORDS_MAX, verdict(report, point));
    str_copy(cells[CONFIDENCE], WORDS_MAX,
             layout->confidences ? SHORT_CONFIDENCE[estimate->confidence] : "");
}

/* ---- rows of text and Markdown ---- */

static bool is_shown(const struct layout *layout, const struct grid_point *point)
{
    return !point->missing[0] &&
           (!layout->rows_each || point->rank < layout->rows_each || point->on_frontier);
}

static size_t frontier_size(const struct estimate_grid *points)
{
    size_t count = 0;
    for (size_t i = 0; i < points->count; i++)
        count += points->items[i].on_frontier;
    return count;
}

/* Whether any exceeds device memory (is_known_to), or whether that is unknown. */
static bool any_unfit(const struct estimate_grid *points, bool is_known_to)
{
    for (size_t i = 0; i < points->count; i++) {
        const struct workload_estimate *estimate = &points->items[i].estimate;
        if (!points->items[i].missing[0] && !workload_estimate_fits(estimate) &&
            estimate->memory.fits != is_known_to)
            return true;
    }
    return false;
}

/* Each reason once per device. */
static void put_missing(const struct points_report *report, const char *before, struct text *out)
{
    const struct estimate_grid *points = report->points;
    for (size_t i = 0; i < points->count; i++) {
        const struct grid_point *point = &points->items[i];
        bool is_new = point->missing[0];
        for (size_t k = 0; is_new && k < i; k++)
            is_new = points->items[k].device != point->device ||
                     strcmp(points->items[k].missing, point->missing) != 0;
        if (is_new)
            text_addf(out, "%s%s: %s\n", before, point->estimate.hardware->id, point->missing);
    }
}

/* ---- text and Markdown ---- */

/* Parameters common to all workloads; others have a column. */
static void put_lengths(const struct workload_spec *question, const struct layout *layout,
                        struct text *out)
{
    bool decodes = question->setting.phase == GRAPH_DECODE;
    if (!question->is_request) {
        if (question->model->has_phases && (layout->works.prompts || layout->works.contexts))
            text_add(out, decodes ? ", one decode step" : ", prefill");
        return;
    }
    text_add(out, layout->works.prompts && layout->works.outputs ? ", requests" : ", requests of ");
    if (!layout->works.prompts)
        text_addf(out, "%" PRId64 " prompt", question->setting.tokens);
    if (!layout->works.prompts && !layout->works.outputs)
        text_add(out, " and ");
    if (!layout->works.outputs)
        text_addf(out, "%" PRId64 " output", question->output_tokens);
    text_add(out, layout->works.prompts && layout->works.outputs ? "" : " tokens");
}

/* The conclusion: "~19 mJ per sample at least: h200, fp16, batch 8", if the rows are alternatives. */
static void put_cheapest(const struct points_report *report, const struct layout *layout,
                         struct text *out)
{
    const struct grid_point *best = &report->points->items[0];
    char words[WORDS_MAX] = "", energy[FORMAT_MAX];
    double joules = workload_estimate_joules_per_unit(&best->estimate);
    words_add(words, "%s", best->estimate.hardware->id);
    words_add(words, "%s", words_precision(&best->estimate.config));
    if (layout->runtimes)
        words_add(words, "%s", runtime_at(best->estimate.config.runtime)->name);
    words_add(words, "batch %.0f", best->work->batch);
    if (report->points->demand_count == 1 && is_known(joules) &&
        workload_estimate_fits(&best->estimate))
        text_addf(out, "~%s per %s at least: %s\n   ", format_rough(energy, joules, "J"),
                  best->work->unit, words);
}

static void put_title(const struct points_report *report, const struct layout *layout,
                      bool is_markdown, bool color, struct text *out)
{
    const struct workload *work = &report->points->works[0];
    const struct workload_spec *question = &work->spec;
    const struct workload_estimate *first = &report->points->items[0].estimate;
    char basis[WORDS_MAX];
    text_addf(out, "%s%s%s%s, %s: ", is_markdown ? "### " : "\n ", color ? "\033[1m" : "",
              question->model->name, color ? "\033[0m" : "",
              layout->runtimes
                  ? "usual runtimes"
                  : words_runtime(basis, question, first->hardware, first->config.precision));
    put_cheapest(report, layout, out);
    text_addf(out, "%zu estimate%s", report->points->able,
              words_plural((double)report->points->able));
    if (!layout->works.batches)
        text_addf(out, ", batch %.0f", work->batch);
    put_lengths(question, layout, out);
    if (work->file.is_known)
        text_addf(out, "; the file is %s", precision_name(work->file.products));
    text_addf(out, "%s%s\n\n", is_markdown ? "\n\n" : "\n   ",
              layout->runtimes ? "the usual runtime of each device" : words_basis(basis, first));
}

/* Points are Pareto-optimal among those with the same demand. */
static void put_frontier(const struct estimate_grid *points, const struct layout *layout,
                         const char *mark, struct text *out)
{
    char each[WORDS_MAX];
    bool has_phases = points->works[0].spec.model->has_phases;
    size_t size = frontier_size(points);
    if (!size)
        return;
    if (layout->works.prompts || layout->works.contexts)
        text_addf(out, "%s* Pareto-optimal in energy and latency for its %s (%zu of %zu)\n", mark,
                  !layout->works.contexts  ? has_phases ? "prompt" : "input length"
                  : !layout->works.prompts ? "context"
                                           : "prompt and context",
                  size, points->able);
    else
        text_addf(out, "%s* Pareto-optimal in energy %s and latency (%zu of %zu)\n", mark,
                  words_each(each, points->works[0].unit), size, points->able);
}

/* One host launches all of them. */
static void put_host(const struct estimate_grid *points, const char *indent, struct text *out)
{
    char words[WORDS_MAX];
    for (size_t i = 0; i < points->able; i++)
        if (words_host(words, &points->items[i].estimate)) {
            text_addf(out, "%s%s\n", indent, words);
            return;
        }
}

static void put_notes(const struct points_report *report, const struct layout *layout,
                      bool is_markdown, struct text *out)
{
    const char *indent = is_markdown ? "- " : "   ", *mark = is_markdown ? "- \\" : indent;
    put_frontier(report->points, layout, mark, out);
    if (any_unfit(report->points, true))
        text_addf(out, "%s! exceeds device memory\n", mark);
    if (any_unfit(report->points, false))
        text_addf(out, "%s? device memory unknown\n", mark);
    char words[WORDS_MAX];
    if (report->points->able && words_divided(words, &report->points->items[0].estimate))
        text_addf(out, "%sdevices: %s\n", indent, words);
    if (report->points->able && report->points->items[0].estimate.shipped.above > 0)
        text_addf(out, "%s± of the devices' figures alone, for comparing rows\n", indent);
    put_host(report->points, indent, out);
    for (size_t i = 0; i < report->points->works[0].notes.count; i++)
        text_addf(out, "%s%s\n", indent, report->points->works[0].notes.text[i]);
    if (layout->costs || layout->emissions) {
        text_add(out, indent);
        format_tariff(report->tariff, "", out);
        text_addf(out, "%s%s\n", format_scope(report->tariff)[0] ? "; " : "",
                  format_scope(report->tariff));
    }
    text_addf(out, "%s~ estimated by models of the devices, not measured\n", mark);
    if (layout->confidences)
        text_addf(out, "%sconf: calibrated, interpolated or theoretical\n", indent);
    else
        text_addf(out, "%sconfidence: %s\n", indent,
                  estimate_confidence_name(report->points->items[0].estimate.confidence));
}

/* The rate is redundant with the latency if all workloads have the same number of units. */
static bool is_column(const struct layout *layout, enum column column)
{
    switch (column) {
    case RUNTIME_CELL:
        return layout->runtimes;
    case POWER:
        return !layout->runtimes;
    case BATCH:
        return layout->works.batches;
    case PROMPT:
        return layout->works.prompts;
    case CONTEXT:
        return layout->works.contexts;
    case DEVICES:
        return layout->devices;
    case TTFT:
    case TPOT:
    case USER_RATE:
        return layout->requests;
    case RATE:
        return layout->works.units;
    case COST:
        return layout->costs;
    case EMISSIONS:
        return layout->emissions;
    default:
        return true;
    }
}

/* Text omits columns with the same value in all rows; Markdown keeps them, except lengths, so that tables can be
 * compared. */
static bool is_shown_in(const struct layout *layout, enum column column, bool is_markdown)
{
    bool may_be_empty = column == COST || column == EMISSIONS || column == RUNTIME_CELL ||
                        column == TTFT || column == TPOT || column == USER_RATE;
    if (layout->omitted[column] || may_be_empty)
        return !layout->omitted[column] && is_column(layout, column);
    return is_column(layout, column) || (is_markdown && column != PROMPT && column != CONTEXT);
}

/* Returns the number of omitted rows.  The table has `columns`, which must outlive it. */
static size_t fill_table(const struct points_report *report, const struct layout *layout,
                         bool is_markdown, struct table_column columns[CELLS], struct table *table)
{
    const struct estimate_grid *points = report->points;
    char cells[CELLS][WORDS_MAX];
    size_t left = 0, width = 0;
    for (size_t c = 0; c < CELLS; c++)
        if (is_shown_in(layout, (enum column)c, is_markdown))
            columns[width++] = layout->columns[c];
    table_init(table, columns, width);
    for (size_t i = 0; i < points->count; i++) {
        if (!is_shown(layout, &points->items[i])) {
            left += !points->items[i].missing[0];
            continue;
        }
        fill_cells(report, layout, &points->items[i], cells);
        for (size_t c = 0; c < CELLS; c++)
            if (is_shown_in(layout, (enum column)c, is_markdown))
                table_add(table, cells[c]);
    }
    return left;
}

static size_t table_width(const struct table *table)
{
    enum { INDENT = 3, GAP = 2 };
    size_t widths[CELLS] = {0}, sum = INDENT;
    table_widen(table, widths);
    for (size_t c = 0; c < table->width; c++)
        sum += widths[c] ? widths[c] + GAP : 0;
    return sum - GAP;
}

/* A table of text that is too wide for a terminal lacks what other columns or other formats have: the reciprocal of
 * TPOT, power, and the latency that TTFT and TPOT add up to or, with limits, the tokens over that latency. */
static size_t put_table(const struct points_report *report, struct layout *layout, bool is_markdown,
                        bool color, struct text *out)
{
    enum { WIDTH = 100 };
    bool has_limits = budget_has_any(report->budget);
    const enum column less[] = {USER_RATE, POWER, has_limits ? RATE : LATENCY};
    struct table_column columns[CELLS];
    struct table table;
    size_t left = fill_table(report, layout, is_markdown, columns, &table);
    for (size_t i = 0; i < sizeof less / sizeof *less && layout->requests && !is_markdown &&
                       table_width(&table) > WIDTH;
         i++) {
        layout->omitted[less[i]] = true;
        table_release(&table);
        left = fill_table(report, layout, is_markdown, columns, &table);
    }
    if (is_markdown)
        table_write_markdown(&table, out);
    else
        table_write(&table, "   ", color, out);
    table_release(&table);
    return left;
}

static void put_points(const struct points_report *report, bool is_markdown, bool color,
                       struct text *out)
{
    const char *indent = is_markdown ? "" : "   ";
    struct layout layout;
    set_layout(report, &layout);
    put_title(report, &layout, is_markdown, color, out);
    size_t left = put_table(report, &layout, is_markdown, color, out);
    if (left)
        text_addf(out, "%s%sand %zu more (--top 0 shows all)\n", is_markdown ? "\n" : "", indent,
                  left);
    text_add(out, "\n");
    put_missing(report, is_markdown ? "- " : indent, out);
    put_notes(report, &layout, is_markdown, out);
    text_add(out, is_markdown ? "" : "\n");
}

void points_text(const struct points_report *report, bool color, struct text *out)
{
    put_points(report, false, color, out);
}

void points_markdown(const struct points_report *report, struct text *out)
{
    put_points(report, true, false, out);
}

/* ---- CSV ---- */

/* A number, or with `word` a text. */
struct csv_cell {
    const char *name, *word;
    double number;
};

enum { CSV_MAX = 64 };

static double count_or_unknown(int64_t count)
{
    return count > 0 ? (double)count : UNKNOWN;
}

/* Columns that exist only with prices. */
static size_t cost_cells(const struct points_report *report,
                         const struct workload_estimate *estimate, struct csv_cell *out)
{
    struct estimate_cost cost = {CHARGE_UNKNOWN, CHARGE_UNKNOWN, CHARGE_UNKNOWN};
    if (!report->tariff || !tariff_given(report->tariff))
        return 0;
    if (estimate->work) /* else it is missing */
        estimate_cost_of(estimate, report->tariff, &cost);
    const struct csv_cell cells[] = {
        {"cost_per_query", NULL, cost.per_query.cost},
        {"cost_per_million_input_tokens", NULL, cost.per_million_input.cost},
        {"cost_per_million_output_tokens", NULL, cost.per_million_output.cost},
        {"gco2e_per_query", NULL, cost.per_query.gco2e},
        {"gco2e_per_million_input_tokens", NULL, cost.per_million_input.gco2e},
        {"gco2e_per_million_output_tokens", NULL, cost.per_million_output.gco2e},
    };
    memcpy(out, cells, sizeof cells);
    return sizeof cells / sizeof *cells;
}

/* All columns of a point; those after the number of devices are empty if it is missing. */
static size_t csv_cells(const struct points_report *report, const struct grid_point *point,
                        struct csv_cell out[CSV_MAX])
{
    const struct workload_estimate *estimate = &point->estimate;
    const struct estimate_config *config = &estimate->config;
    const struct estimate_totals *all = &estimate->total;
    const struct estimate_memory *memory = &estimate->memory;
    const struct workload_spec *spec = &point->work->spec;
    struct workload_demand demand = workload_demand(spec);
    double units = point->work->units;
    double ttft_s = point->missing[0] ? UNKNOWN : workload_estimate_ttft_s(estimate);
    double tpot_s = point->missing[0] ? UNKNOWN : workload_estimate_tpot_s(estimate);
    struct estimate_interval energy =
        workload_estimate_interval(estimate, all->joules.total, all->joules_plus_minus);
    struct estimate_interval latency =
        workload_estimate_interval(estimate, all->latency_s, all->latency_plus_minus);
    const struct csv_cell cells[] = {
        {"model", spec->model->name, 0},
        {"hardware", point->estimate.hardware->id, 0},
        {"precision", words_precision(config), 0},
        {"batch", NULL, (double)spec->setting.batch},
        {"phase", words_phase(spec), 0},
        {"prompt_tokens", NULL, count_or_unknown(demand.prompt)},
        {"output_tokens", NULL, count_or_unknown(spec->is_request ? spec->output_tokens : 0)},
        {"context", NULL, count_or_unknown(demand.context)},
        {"devices", NULL, estimate_devices(config)},
        {"count", NULL, units},
        {"unit", point->work->unit, 0},
        {"energy_each_j", NULL, all->joules.total / units},
        {"plus_minus_each_j", NULL, energy.plus_minus / units},
        {"energy_j", NULL, all->joules.total},
        {"compute_j", NULL, all->joules.compute},
        {"memory_j", NULL, all->joules.memory},
        {"static_j", NULL, all->joules.idle},
        {"link_j", NULL, all->joules.link},
        {"latency_s", NULL, all->latency_s},
        {"latency_plus_minus", NULL, latency.plus_minus},
        {"first_token_s", NULL, ttft_s},
        {"tpot_s", NULL, tpot_s},
        {"tokens_per_s_per_user", NULL, 1 / tpot_s},
        {"per_s", NULL, units / all->latency_s},
        {"average_w", NULL, all->average_w},
        {"peak_w", NULL, all->peak_w},
        {"params", NULL, estimate->params},
        {"macs", NULL, all->macs},
        {"flops", NULL, all->flops},
        {"bytes", NULL, all->bytes},
        {"weights_bytes", NULL, memory->weights},
        {"activations_peak_bytes", NULL, memory->activations_peak},
        {"kv_cache_bytes", NULL, memory->kv_cache},
        {"total_peak_bytes", NULL, memory->total_peak},
        {"capacity_bytes", NULL, memory->capacity},
        {"mfu", NULL, all->mfu},
        {"mbu", NULL, all->mbu},
        {"fits", NULL, is_known(memory->capacity) ? (double)memory->fits : UNKNOWN},
        {"frontier", NULL, point->on_frontier},
        {"limits", point->missing[0] ? "" : verdict(report, point), 0},
        {"confidence", estimate_confidence_name(estimate->confidence), 0},
        {"runtime", runtime_at(spec->runtime)->name, 0},
        {"missing", point->missing, 0},
    };
    size_t count = sizeof cells / sizeof *cells - 1, costs;
    memcpy(out, cells, count * sizeof *cells);
    costs = cost_cells(report, estimate, out + count);
    out[count + costs] = cells[count];
    return count + costs + 1;
}

void points_csv(const struct points_report *report, struct text *out)
{
    const struct estimate_grid *points = report->points;
    struct csv_cell cells[CSV_MAX];
    struct table_column columns[CSV_MAX];
    size_t count = csv_cells(report, &points->items[0], cells), known = 0;
    struct table table;
    for (size_t c = 0; c < count; c++) {
        columns[c] = (struct table_column){cells[c].name, false};
        known += known == c && strcmp(cells[c].name, "count") != 0;
    }
    table_init(&table, columns, count);
    for (size_t i = 0; i < points->count; i++) {
        csv_cells(report, &points->items[i], cells);
        for (size_t c = 0; c < count; c++)
            if (points->items[i].missing[0] && c >= known && c + 1 < count)
                table_add(&table, "");
            else if (cells[c].word)
                table_add(&table, cells[c].word);
            else
                table_add_number(&table, cells[c].number);
    }
    table_write_csv(&table, out);
    table_release(&table);
}

/* ---- CSV of subgraphs ---- */

void estimate_csv(const struct estimate_report *report, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"name", false},     {"ops", false},         {"phase", false},    {"layer", false},
        {"level", false},    {"flops", false},       {"bytes", false},    {"latency_s", false},
        {"energy_j", false}, {"compute_j", false},   {"memory_j", false}, {"static_j", false},
        {"link_j", false},   {"utilisation", false}, {"bound", false},
    };
    bool has_phases = report->estimate->work->spec.model->has_phases;
    struct table table = TABLE(COLUMNS);

    for (size_t i = 0; i < report->row_count; i++) {
        const struct subgraph_total *row = &report->rows[i];
        const struct subgraph *subgraph = row->subgraph;
        const double figures[] = {subgraph->layer == GRAPH_NONE ? UNKNOWN : (double)subgraph->layer,
                                  subgraph->level,
                                  row->flops,
                                  row->bytes,
                                  row->latency_s,
                                  row->joules.total,
                                  row->joules.compute,
                                  row->joules.memory,
                                  row->joules.idle,
                                  row->joules.link,
                                  row->utilization};
        table_add(&table, subgraph->name);
        table_add(&table, subgraph->pattern);
        table_add(&table, !has_phases                  ? "whole"
                          : row->phase == GRAPH_DECODE ? "decode"
                                                       : "prefill");
        for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
            table_add_number(&table, figures[k]);
        table_add(&table, estimate_bound_name(row->bound));
    }
    table_write_csv(&table, out);
    table_release(&table);
}
