/* Many estimates as one table: text and Markdown with the columns that differ, CSV with all. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "report/text/estimate_report.h"
#include "report/text/estimate_words.h"
#include "report/text/format.h"
#include "report/text/table.h"

/* ---- columns ---- */

enum column {
    FRONTIER,
    HARDWARE,
    FORMAT,
    BATCH,
    PROMPT,
    CONTEXT,
    DEVICES,
    EACH,
    LATENCY,
    RATE,
    POWER,
    MEMORY,
    DOUBT,
    LIMITS,
    CONFIDENCE,
    CELLS
};

/* What differs between the workloads has a column; the rest is in the title. */
struct layout {
    struct grid_differences works;
    bool confidences, devices;
    size_t rows_each; /* of every demand; 0: all */
    char each[WORDS_MAX], rate[WORDS_MAX];
    struct table_column columns[CELLS];
};

/* A confidence that all share is a note below the table, not a column. */
static void compare_points(const struct estimate_grid *points, struct layout *layout)
{
    for (size_t i = 0; i < points->count; i++) {
        const struct workload_estimate *estimate = &points->items[i].estimate;
        layout->devices |= estimate->config.devices > 1;
        layout->confidences |= !points->items[i].missing[0] &&
                               estimate->confidence != points->items[0].estimate.confidence;
    }
}

static void lay_out(const struct points_report *report, struct layout *layout)
{
    const struct estimate_grid *points = report->points;
    const char *unit = words_unit(&points->works[0]);
    const struct table_column columns[CELLS] = {
        [FRONTIER] = {"", false},        [HARDWARE] = {"hardware", false},
        [FORMAT] = {"precision", false}, [BATCH] = {"batch", true},
        [PROMPT] = {"prompt", true},     [CONTEXT] = {"context", true},
        [DEVICES] = {"devices", true},   [EACH] = {layout->each, true},
        [LATENCY] = {"latency", true},   [RATE] = {layout->rate, true},
        [POWER] = {"power", true},       [MEMORY] = {"memory", true},
        [DOUBT] = {"", false},           [LIMITS] = {"limits", false},
        [CONFIDENCE] = {"conf", false},
    };
    *layout = (struct layout){.works = estimate_grid_differences(points)};
    compare_points(points, layout);
    words_each(layout->each, unit);
    str_format(layout->rate, sizeof layout->rate, "%ss/s", unit);
    memcpy(layout->columns, columns, sizeof columns);
    if (!points->works[0].spec.model->has_phases)
        layout->columns[PROMPT].title = "tokens"; /* an encoder reads its input at once */
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

static void fill_cells(const struct points_report *report, const struct layout *layout,
                       const struct grid_point *point, char cells[CELLS][WORDS_MAX])
{
    const struct workload_estimate *estimate = &point->estimate;
    const struct estimate_totals *all = &estimate->total;
    struct workload_demand demand = workload_demand(&point->work->spec);
    double units = estimate->work->units;
    str_copy(cells[FRONTIER], WORDS_MAX, point->on_frontier ? "*" : "");
    str_copy(cells[HARDWARE], WORDS_MAX, report->hardware[point->device].id);
    str_copy(cells[FORMAT], WORDS_MAX,
             estimate->config.keeps_stored ? "stored" : precision_name(estimate->config.precision));
    str_format(cells[BATCH], WORDS_MAX, "%.0f", estimate->work->batch);
    str_format(cells[PROMPT], WORDS_MAX, "%" PRId64, demand.prompt);
    str_format(cells[CONTEXT], WORDS_MAX, "%" PRId64, demand.context);
    str_format(cells[DEVICES], WORDS_MAX, "%d", estimate->config.devices);
    words_joules(cells[EACH], all->joules.total / units, all->joules_plus_minus / units);
    format_si(cells[LATENCY], all->latency_s, "s");
    words_rate(cells[RATE], workload_estimate_units_per_s(estimate));
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

/* Does any exceed device memory (is_known_to), or is that unknown? */
static bool any_doubt(const struct estimate_grid *points, bool is_known_to)
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
            text_addf(out, "%s%s: %s\n", before, report->hardware[point->device].id,
                      point->missing);
    }
}

/* ---- text and Markdown ---- */

/* What all workloads have in common; what differs has a column. */
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

static void put_title(const struct points_report *report, const struct layout *layout, bool color,
                      struct text *out)
{
    const struct workload *work = &report->points->works[0];
    const struct workload_spec *question = &work->spec;
    text_addf(out, "\n %s%s%s: %zu estimate%s", color ? "\033[1m" : "", question->model->name,
              color ? "\033[0m" : "", report->points->able,
              words_plural((double)report->points->able));
    if (!layout->works.batches)
        text_addf(out, ", batch %.0f", work->batch);
    put_lengths(question, layout, out);
    char basis[WORDS_MAX];
    if (report->points->able)
        text_addf(out, "\n   %s", words_basis(basis, &report->points->items[0].estimate.shipped));
    text_add(out, "\n\n");
}

/* Points are Pareto-optimal among those of the same demand. */
static void put_frontier(const struct estimate_grid *points, const struct layout *layout,
                         const char *indent, struct text *out)
{
    char each[WORDS_MAX];
    size_t size = frontier_size(points);
    if (!size)
        return;
    if (layout->works.prompts || layout->works.contexts)
        text_addf(out, "%s* Pareto-optimal in energy and latency for its %s (%zu of %zu)\n", indent,
                  !layout->works.contexts  ? layout->columns[PROMPT].title
                  : !layout->works.prompts ? "context"
                                           : "prompt and context",
                  size, points->able);
    else
        text_addf(out, "%s* Pareto-optimal in energy %s and latency (%zu of %zu)\n", indent,
                  words_each(each, points->works[0].unit), size, points->able);
}

static void put_notes(const struct points_report *report, const struct layout *layout,
                      const char *indent, struct text *out)
{
    put_frontier(report->points, layout, indent, out);
    if (any_doubt(report->points, true))
        text_addf(out, "%s! exceeds device memory\n", indent);
    if (any_doubt(report->points, false))
        text_addf(out, "%s? device memory unknown\n", indent);
    char words[WORDS_MAX];
    if (report->points->able && words_divided(words, &report->points->items[0].estimate))
        text_addf(out, "%sdevices: %s\n", indent, words);
    if (report->points->able && report->points->items[0].estimate.shipped.above > 0)
        text_addf(out, "%s± of the devices' figures alone, for comparing rows\n", indent);
    text_addf(out, "%s~ estimated by models of the devices, not measured\n", indent);
    if (layout->confidences)
        text_addf(out, "%sconf: calibrated, interpolated or theoretical\n", indent);
    else
        text_addf(out, "%sconfidence: %s\n", indent,
                  estimate_confidence_name(report->points->items[0].estimate.confidence));
}

/* The rate adds nothing to the latency if all workloads have as many units. */
static bool is_column(const struct layout *layout, enum column column)
{
    switch (column) {
    case BATCH:
        return layout->works.batches;
    case PROMPT:
        return layout->works.prompts;
    case CONTEXT:
        return layout->works.contexts;
    case DEVICES:
        return layout->devices;
    case RATE:
        return layout->works.units;
    default:
        return true;
    }
}

/* Text omits the columns in which all rows agree; Markdown keeps them, lengths aside, so that tables can be
 * compared.  Returns how many rows were left out. */
static size_t fill_table(const struct points_report *report, const struct layout *layout,
                         bool for_text, struct table *table)
{
    const struct estimate_grid *points = report->points;
    char cells[CELLS][WORDS_MAX];
    size_t left = 0;
    for (size_t i = 0; i < points->count; i++) {
        if (!is_shown(layout, &points->items[i])) {
            left += !points->items[i].missing[0];
            continue;
        }
        fill_cells(report, layout, &points->items[i], cells);
        for (size_t c = 0; c < CELLS; c++)
            if (is_column(layout, (enum column)c))
                table_add(table, cells[c]);
            else if (for_text)
                table_add(table, "");
            else if (c != PROMPT && c != CONTEXT)
                table_add(table, cells[c]);
    }
    return left;
}

/* The columns of the Markdown table; returns how many. */
static size_t markdown_columns(const struct layout *layout, struct table_column *out)
{
    size_t count = 0;
    for (size_t c = 0; c < CELLS; c++)
        if ((c != PROMPT && c != CONTEXT) || is_column(layout, (enum column)c))
            out[count++] = layout->columns[c];
    return count;
}

void points_text(const struct points_report *report, bool color, struct text *out)
{
    struct layout layout;
    struct table table;
    lay_out(report, &layout);
    put_title(report, &layout, color, out);
    table_init(&table, layout.columns, CELLS);
    size_t left = fill_table(report, &layout, true, &table);
    table_print(&table, "   ", color, out);
    if (left)
        text_addf(out, "   and %zu more (--top 0 shows all)\n", left);
    text_add(out, "\n");
    put_missing(report, "   ", out);
    put_notes(report, &layout, "   ", out);
    text_add(out, "\n");
}

void points_markdown(const struct points_report *report, struct text *out)
{
    struct layout layout;
    struct table_column columns[CELLS];
    struct table table;
    lay_out(report, &layout);
    text_addf(out, "### %s\n\n", report->points->works[0].spec.model->name);
    table_init(&table, columns, markdown_columns(&layout, columns));
    fill_table(report, &layout, false, &table);
    table_write_markdown(&table, out);
    table_release(&table);
    text_add(out, "\n");
    put_missing(report, "- ", out);
    put_notes(report, &layout, "\n\\", out);
}

/* ---- CSV ---- */

static const struct table_column CSV_COLUMNS[] = {
    {"model", false},
    {"hardware", false},
    {"precision", false},
    {"batch", false},
    {"phase", false},
    {"prompt_tokens", false},
    {"output_tokens", false},
    {"context", false},
    {"devices", false},
    {"count", false},
    {"unit", false},
    {"energy_each_j", false},
    {"plus_minus_each_j", false},
    {"energy_j", false},
    {"compute_j", false},
    {"memory_j", false},
    {"static_j", false},
    {"link_j", false},
    {"latency_s", false},
    {"latency_plus_minus", false},
    {"per_s", false},
    {"average_w", false},
    {"peak_w", false},
    {"params", false},
    {"macs", false},
    {"flops", false},
    {"bytes", false},
    {"weights_bytes", false},
    {"activations_peak_bytes", false},
    {"kv_cache_bytes", false},
    {"total_peak_bytes", false},
    {"capacity_bytes", false},
    {"mfu", false},
    {"mbu", false},
    {"fits", false},
    {"frontier", false},
    {"limits", false},
    {"confidence", false},
    {"missing", false},
};
enum { CSV_CELLS = sizeof CSV_COLUMNS / sizeof *CSV_COLUMNS };

static void add_outcome(const struct points_report *report, const struct grid_point *point,
                        struct table *table)
{
    const struct workload_estimate *estimate = &point->estimate;
    const struct estimate_totals *all = &estimate->total;
    const struct estimate_memory *memory = &estimate->memory;
    double units = estimate->work->units;
    const double figures[] = {
        all->joules.total / units,
        workload_estimate_plus_minus(estimate, all->joules.total, all->joules_plus_minus) / units,
        all->joules.total,
        all->joules.compute,
        all->joules.memory,
        all->joules.idle,
        all->joules.link,
        all->latency_s,
        workload_estimate_plus_minus(estimate, all->latency_s, all->latency_plus_minus),
        units / all->latency_s,
        all->average_w,
        all->peak_w,
        estimate->params,
        all->macs,
        all->flops,
        all->bytes,
        memory->weights,
        memory->activations_peak,
        memory->kv_cache,
        memory->total_peak,
        memory->capacity,
        all->mfu,
        all->mbu,
        is_known(memory->capacity) ? memory->fits : UNKNOWN,
        point->on_frontier,
    };
    table_add_number(table, units);
    table_add(table, estimate->work->unit);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        table_add_number(table, figures[i]);
    table_add(table, verdict(report, point));
    table_add(table, estimate_confidence_name(estimate->confidence));
}

static double count_or_unknown(int64_t count)
{
    return count > 0 ? (double)count : UNKNOWN;
}

void points_csv(const struct points_report *report, struct text *out)
{
    const struct estimate_grid *points = report->points;
    struct table table = TABLE(CSV_COLUMNS);

    for (size_t i = 0; i < points->count; i++) {
        const struct grid_point *point = &points->items[i];
        const struct estimate_config *config = &point->estimate.config;
        const struct workload_spec *spec = &point->work->spec;
        struct workload_demand demand = workload_demand(spec);
        table_add(&table, points->works[0].spec.model->name);
        table_add(&table, report->hardware[point->device].id);
        table_add(&table, config->keeps_stored ? "stored" : precision_name(config->precision));
        table_add_number(&table, (double)spec->setting.batch);
        table_add(&table, words_phase(spec));
        table_add_number(&table, count_or_unknown(demand.prompt));
        table_add_number(&table, count_or_unknown(spec->is_request ? spec->output_tokens : 0));
        table_add_number(&table, count_or_unknown(demand.context));
        table_add_number(&table, config->devices);
        if (!point->missing[0])
            add_outcome(report, point, &table);
        while (table.count % CSV_CELLS != CSV_CELLS - 1 && !table.failed)
            table_add(&table, "");
        table_add(&table, point->missing);
    }
    table_write_csv(&table, out);
    table_release(&table);
}
