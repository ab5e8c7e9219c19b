/* Many estimates as one table, from their result: text with the columns that differ, Markdown with most. */
#include <string.h>

#include "core/energy.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/estimate_report.h"
#include "report/text/estimate_words.h"
#include "report/text/format.h"
#include "report/text/page.h"

/* ---- columns ---- */

enum column {
    FRONTIER,
    HARDWARE,
    FORMAT,
    RUNTIME,
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
    const struct result_item *root, *points, *first;
    struct tariff tariff;
    bool batches, units, prompts, outputs, contexts; /* differ */
    bool confidences, devices, runtimes, costs, emissions, requests;
    bool omitted[CELLS]; /* for lack of room */
    size_t rows_each;    /* rows per demand; 0: all */
    size_t able;         /* points that can run */
    const char *charged; /* the unit of costs, as in keys: "query" */
    char each[WORDS_MAX], rate[WORDS_MAX];
    char cost[WORDS_MAX], grams[WORDS_MAX];
    struct table_column columns[CELLS];
};

/* Why a device cannot run it; "": it can. */
static const char *missing(const struct result_item *point)
{
    return result_text_at(point, "missing");
}

static bool exceeds_memory(const struct result_item *point)
{
    return result_number_at(point, "fits") == 0;
}

/* A confidence common to all is a note below the table, not a column. */
static void compare_points(struct layout *layout)
{
    const struct result_item *first = layout->first;
    RESULT_EACH (point, layout->points) {
        layout->devices |= result_number_at(point, "view.devices") > 1;
        layout->runtimes |= !str_equal(result_text_at(point, "view.runtime"),
                                       result_text_at(first, "view.runtime"));
        layout->confidences |=
            !missing(point)[0] &&
            !str_equal(result_text_at(point, "confidence"), result_text_at(first, "confidence"));
    }
}

/* Per million tokens, or per sample. */
static void name_costs(struct layout *layout, const char *unit)
{
    const char *phase = result_text_at(layout->root, "view.phase");
    bool is_output = str_equal(phase, "request") || str_equal(phase, "decode");
    bool is_token = str_equal(unit, "token");
    layout->tariff = words_tariff(result_at(layout->first, "operating"));
    layout->costs =
        is_known(layout->tariff.price_per_kwh) || is_known(layout->tariff.device_price_per_hour);
    layout->emissions = is_known(layout->tariff.gco2_per_kwh);
    layout->charged = "query";
    if (is_token)
        layout->charged = is_output ? "million_output_tokens" : "million_input_tokens";
    chars_format(layout->cost, "cost/%s", is_token ? "Mtok" : unit);
    chars_format(layout->grams, "CO2e/%s", is_token ? "Mtok" : unit);
}

static void set_columns(struct layout *layout)
{
    const struct table_column columns[CELLS] = {
        [FRONTIER] = {"", false},
        [HARDWARE] = {"hardware", false},
        [FORMAT] = {"precision", false},
        [RUNTIME] = {"runtime", false},
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
    memcpy(layout->columns, columns, sizeof columns);
    if (layout->runtimes || layout->requests)
        layout->columns[FORMAT].title = "dtype"; /* room for more columns */
    if (!result_flag_at(layout->root, "view.has_phases"))
        layout->columns[PROMPT].title = "tokens"; /* an encoder processes its input at once */
}

static void set_layout(const struct result *result, struct layout *layout)
{
    const struct result_item *points = result_find(result, "points");
    const char *unit = result_text_at(result->items, "view.unit");
    *layout = (struct layout){
        .root = result->items,
        .points = points,
        .first = result_first(points),
        .batches = result_flag_at(result->items, "view.differ.batches"),
        .units = result_flag_at(result->items, "view.differ.units"),
        .prompts = result_flag_at(result->items, "view.differ.prompts"),
        .outputs = result_flag_at(result->items, "view.differ.outputs"),
        .contexts = result_flag_at(result->items, "view.differ.contexts"),
        .requests = str_equal(result_text_at(result->items, "view.phase"), "request"),
        .able = (size_t)result_number_at(result->items, "view.able"),
    };
    size_t top = (size_t)result_number_at(result->items, "view.top");
    size_t demands = (size_t)result_number_at(result->items, "view.demands");
    compare_points(layout);
    words_each(layout->each, unit);
    chars_format(layout->rate, "%ss/s", unit);
    name_costs(layout, unit);
    set_columns(layout);
    demands = demands ? demands : 1;
    layout->rows_each = (top + demands - 1) / demands;
}

/* ---- cells ---- */

static const char *short_confidence(const char *name)
{
    static const char *const NAMES[][2] = {
        {"calibrated", "cal"}, {"interpolated", "int"}, {"theoretical", "theo"}};
    const char *const *found = STR_FIND(name, NAMES);
    return found ? found[1] : name;
}

static double charge_at(const struct layout *layout, const struct result_item *point,
                        const char *kind)
{
    char path[96];
    chars_format(path, "operating.%s_per_%s", kind, layout->charged);
    return result_number_at(point, path);
}

/* A length; 0: none. */
static void length_cell(char *cell, double tokens)
{
    str_format(cell, WORDS_MAX, "%.0f", known_or(tokens, 0));
}

static void fill_setting(const struct result_item *point, char cells[CELLS][WORDS_MAX])
{
    str_copy(cells[FRONTIER], WORDS_MAX, result_flag_at(point, "frontier") ? "*" : "");
    str_copy(cells[HARDWARE], WORDS_MAX, result_text_at(point, "hardware"));
    str_copy(cells[FORMAT], WORDS_MAX, result_text_at(point, "view.precision"));
    str_copy(cells[RUNTIME], WORDS_MAX, result_text_at(point, "view.runtime"));
    length_cell(cells[BATCH], result_number_at(point, "batch"));
    length_cell(cells[PROMPT], result_number_at(point, "setting.prompt_tokens"));
    length_cell(cells[CONTEXT], result_number_at(point, "setting.context"));
    length_cell(cells[DEVICES], result_number_at(point, "setting.devices"));
}

static void fill_cells(const struct layout *layout, const struct result_item *point,
                       char cells[CELLS][WORDS_MAX])
{
    double units = result_number_at(point, "each.count");
    double power_w = result_number_at(point, "power_w.average");
    fill_setting(point, cells);
    words_estimated(cells[EACH], result_number_at(point, "energy_j.total") / units,
                    result_number_at(point, "view.plus_minus_j") / units, "J");
    format_si(cells[LATENCY], result_number_at(point, "latency_s"), "s");
    format_rough(cells[TTFT], result_number_at(point, "view.first_token_s"), "s");
    format_rough(cells[TPOT], result_number_at(point, "view.tpot_s"), "s");
    words_rate(cells[USER_RATE], result_number_at(point, "view.tokens_per_s_per_user"));
    words_rate(cells[RATE], result_number_at(point, "each.per_s"));
    format_amount(cells[COST], charge_at(layout, point, "cost"), UNKNOWN, "");
    format_si(cells[EMISSIONS], charge_at(layout, point, "gco2e"), "g");
    if (is_known(power_w))
        str_format(cells[POWER], WORDS_MAX, "~%.0f W", power_w);
    else
        str_copy(cells[POWER], WORDS_MAX, "-");
    format_bytes(cells[MEMORY], result_number_at(point, "memory_bytes.total_peak"));
    str_copy(cells[DOUBT], WORDS_MAX, result_flag_at(point, "view.is_known_to_fit") ? "" : "?");
    if (exceeds_memory(point))
        str_copy(cells[DOUBT], WORDS_MAX, "!");
    str_copy(cells[LIMITS], WORDS_MAX, result_text_at(point, "budget.verdict"));
    str_copy(cells[CONFIDENCE], WORDS_MAX,
             layout->confidences ? short_confidence(result_text_at(point, "confidence")) : "");
}

/* ---- rows of text and Markdown ---- */

static bool is_shown(const struct layout *layout, const struct result_item *point)
{
    return !missing(point)[0] &&
           (!layout->rows_each ||
            result_number_at(point, "view.rank") < (double)layout->rows_each ||
            result_flag_at(point, "frontier"));
}

static size_t frontier_size(const struct layout *layout)
{
    size_t count = 0;
    RESULT_EACH (point, layout->points)
        count += result_flag_at(point, "frontier");
    return count;
}

/* Whether any exceeds device memory (is_known_to), or whether that is unknown. */
static bool any_unfit(const struct layout *layout, bool is_known_to)
{
    RESULT_EACH (point, layout->points)
        if (!missing(point)[0] && !result_flag_at(point, "view.is_known_to_fit") &&
            exceeds_memory(point) == is_known_to)
            return true;
    return false;
}

/* Whether a point before this one, from the first, has its reason and, if that counts, its device. */
static bool is_repeated(const struct layout *layout, const struct result_item *first,
                        const struct result_item *point, bool counts_device)
{
    for (const struct result_item *k = first; k != point; k = result_next(layout->points, k))
        if (str_equal(missing(k), missing(point)) &&
            (!counts_device ||
             result_number_at(k, "view.device") == result_number_at(point, "view.device")))
            return true;
    return false;
}

/* "a100, l4 and 7 more" */
static void put_devices(const struct layout *layout, const struct result_item *first,
                        const struct result_item *reason, struct text *out)
{
    enum { NAMED = 4 };
    size_t count = 0;
    for (const struct result_item *point = reason; point;
         point = result_next(layout->points, point)) {
        if (!str_equal(missing(point), missing(reason)) || is_repeated(layout, first, point, true))
            continue;
        if (count < NAMED)
            text_addf(out, "%s%s", count ? ", " : "", result_text_at(point, "hardware"));
        count++;
    }
    if (count > NAMED)
        text_addf(out, " and %zu more", count - NAMED);
}

/* Each reason once, with its devices.  Points that cannot run are the last ones. */
static void put_missing(const struct layout *layout, const char *before, struct text *out)
{
    const struct result_item *first = layout->first;
    while (first && !missing(first)[0])
        first = result_next(layout->points, first);
    for (const struct result_item *point = first; point;
         point = result_next(layout->points, point)) {
        if (is_repeated(layout, first, point, false))
            continue;
        text_add(out, before);
        put_devices(layout, first, point, out);
        text_addf(out, ": %s\n", missing(point));
    }
}

/* ---- text and Markdown ---- */

/* Parameters common to all workloads; others have a column. */
static void put_lengths(const struct layout *layout, struct text *out)
{
    if (!layout->requests) {
        if (result_flag_at(layout->root, "view.has_phases") &&
            (layout->prompts || layout->contexts))
            text_add(out, str_equal(result_text_at(layout->root, "view.phase"), "decode")
                              ? ", one decode step"
                              : ", prefill");
        return;
    }
    text_add(out, layout->prompts && layout->outputs ? ", requests" : ", requests of ");
    if (!layout->prompts)
        text_addf(out, "%.0f prompt", result_number_at(layout->root, "view.prompt_tokens"));
    if (!layout->prompts && !layout->outputs)
        text_add(out, " and ");
    if (!layout->outputs)
        text_addf(out, "%.0f output", result_number_at(layout->root, "view.output_tokens"));
    text_add(out, layout->prompts && layout->outputs ? "" : " tokens");
}

static const char *demand_word(const struct layout *layout)
{
    if (layout->contexts)
        return layout->prompts ? "prompt and context" : "context";
    return result_flag_at(layout->root, "view.has_phases") ? "prompt" : "input length";
}

/* Said first: no estimate meets the limits, at all or for some demands. */
static void put_unmet(const struct layout *layout, struct text *out)
{
    size_t demands = (size_t)result_number_at(layout->root, "view.demands");
    size_t within = (size_t)result_number_at(layout->root, "view.demands_within_limits");
    if (!result_flag_at(layout->root, "view.has_limits") || within == demands)
        return;
    if (within == 0)
        text_addf(out, "none of %zu estimates meets the limits\n   ", layout->able);
    else
        text_addf(out, "no estimate meets the limits for %zu of %zu %ss\n   ", demands - within,
                  demands, demand_word(layout));
}

/* The conclusion: "lowest: ~19 mJ per sample (h200, fp16, batch 8)", if the rows are alternatives.  Rows within the
 * limits are the first ones. */
static void put_cheapest(const struct layout *layout, struct text *out)
{
    const struct result_item *best = layout->first;
    char words[WORDS_MAX] = "", energy[FORMAT_MAX];
    double joules = result_number_at(best, "each.energy_j");
    words_add(words, "%s", result_text_at(best, "hardware"));
    words_add(words, "%s", result_text_at(best, "view.precision"));
    if (layout->runtimes)
        words_add(words, "%s", result_text_at(best, "view.runtime"));
    words_add(words, "batch %.0f", result_number_at(best, "batch"));
    if (result_number_at(layout->root, "view.demands") == 1 && is_known(joules) &&
        result_flag_at(best, "view.is_known_to_fit"))
        text_addf(out, "lowest%s: ~%s per %s (%s)\n   ",
                  str_equal(result_text_at(best, "budget.verdict"), "PASS") ? " within the limits"
                                                                            : "",
                  format_rough(energy, joules, "J"), result_text_at(best, "each.unit"), words);
}

static void put_title(const struct layout *layout, bool is_markdown, bool color, struct text *out)
{
    const char *file = result_text_at(layout->root, "file_precision");
    text_addf(out, "%s%s%s%s, %s: ", is_markdown ? "### " : "\n ", color ? "\033[1m" : "",
              result_text_at(layout->root, "model"), color ? "\033[0m" : "",
              layout->runtimes ? "usual runtimes" : result_text_at(layout->root, "view.runtime"));
    put_unmet(layout, out);
    put_cheapest(layout, out);
    text_addf(out, "%zu estimate%s", layout->able, str_plural(layout->able));
    if (!layout->batches)
        text_addf(out, ", batch %.0f", result_number_at(layout->root, "view.batch"));
    put_lengths(layout, out);
    if (file[0])
        text_addf(out, "; the file is %s", file);
    text_addf(out, "%s%s\n\n", is_markdown ? "\n\n" : "\n   ",
              layout->runtimes ? "the usual runtime of each device"
                               : result_text_at(layout->root, "view.basis"));
}

/* Points are Pareto-optimal among those with the same demand. */
static void put_frontier(const struct layout *layout, const char *mark, struct text *out)
{
    char each[WORDS_MAX];
    size_t size = frontier_size(layout);
    if (!size)
        return;
    if (layout->prompts || layout->contexts) {
        text_addf(out, "%s* Pareto-optimal in energy and latency for its %s (%zu of %zu)\n", mark,
                  demand_word(layout), size, layout->able);
    } else {
        text_addf(out, "%s* Pareto-optimal in energy %s and latency (%zu of %zu)\n", mark,
                  words_each(each, result_text_at(layout->root, "unit")), size, layout->able);
    }
}

static void put_prices(const struct layout *layout, const char *indent, struct text *out)
{
    const char *scope = format_scope(&layout->tariff);
    if (!layout->costs && !layout->emissions)
        return;
    text_add(out, indent);
    format_tariff(&layout->tariff, "", out);
    text_addf(out, "%s%s\n", scope[0] ? "; " : "", scope);
}

static void put_notes(const struct layout *layout, bool is_markdown, struct text *out)
{
    const char *indent = is_markdown ? "- " : "   ";
    const char *mark = is_markdown ? "- \\" : indent;
    char words[WORDS_MAX];
    put_frontier(layout, mark, out);
    if (any_unfit(layout, true))
        text_addf(out, "%s! exceeds device memory\n", mark);
    if (any_unfit(layout, false))
        text_addf(out, "%s? device memory unknown\n", mark);
    if (words_divided(words, layout->first))
        text_addf(out, "%sdevices: %s\n", indent, words);
    if (result_flag_at(layout->first, "view.is_exceeded_as_shipped"))
        text_addf(out, "%s± of the devices' figures alone, for comparing rows\n", indent);
    if (result_text_at(layout->root, "view.host")[0])
        text_addf(out, "%s%s\n", indent, result_text_at(layout->root, "view.host"));
    RESULT_EACH (note, result_at(layout->root, "notes"))
        text_addf(out, "%s%s\n", indent, result_string(note));
    put_prices(layout, indent, out);
    text_addf(out, "%s~ estimated by models of the devices, not measured\n", mark);
    if (layout->confidences)
        text_addf(out, "%sconf: calibrated, interpolated or theoretical\n", indent);
    else
        text_addf(out, "%sconfidence: %s\n", indent, result_text_at(layout->first, "confidence"));
}

/* ---- the table ---- */

/* The rate is redundant with the latency if all workloads have the same number of units. */
static bool is_column(const struct layout *layout, enum column column)
{
    switch (column) {
    case RUNTIME:
        return layout->runtimes;
    case POWER:
        return !layout->runtimes;
    case BATCH:
        return layout->batches;
    case PROMPT:
        return layout->prompts;
    case CONTEXT:
        return layout->contexts;
    case DEVICES:
        return layout->devices;
    case TTFT:
    case TPOT:
    case USER_RATE:
        return layout->requests;
    case RATE:
        return layout->units;
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
    bool may_be_empty = column == COST || column == EMISSIONS || column == RUNTIME ||
                        column == TTFT || column == TPOT || column == USER_RATE;
    if (layout->omitted[column] || may_be_empty)
        return !layout->omitted[column] && is_column(layout, column);
    return is_column(layout, column) || (is_markdown && column != PROMPT && column != CONTEXT);
}

/* Returns the number of omitted rows.  The table has `columns`, which must outlive it. */
static size_t fill_table(const struct layout *layout, bool is_markdown,
                         struct table_column columns[CELLS], struct table *table)
{
    char cells[CELLS][WORDS_MAX];
    size_t left = 0, width = 0;
    for (size_t c = 0; c < CELLS; c++)
        if (is_shown_in(layout, (enum column)c, is_markdown))
            columns[width++] = layout->columns[c];
    table_init(table, columns, width);
    RESULT_EACH (point, layout->points) {
        if (!is_shown(layout, point)) {
            left += !missing(point)[0];
            continue;
        }
        fill_cells(layout, point, cells);
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
static size_t put_table(struct layout *layout, const struct print_page *page)
{
    enum { WIDTH = 100 };
    bool has_limits = result_flag_at(layout->root, "view.has_limits");
    const enum column less[] = {USER_RATE, POWER, has_limits ? RATE : LATENCY};
    struct table_column columns[CELLS];
    struct table table;
    size_t left = fill_table(layout, page->is_markdown, columns, &table);
    for (size_t i = 0; i < COUNT_OF(less) && layout->requests && !page->is_markdown &&
                       table_width(&table) > WIDTH;
         i++) {
        layout->omitted[less[i]] = true;
        table_release(&table);
        left = fill_table(layout, page->is_markdown, columns, &table);
    }
    page_table(page, &table, "   ");
    return left;
}

static void put_points(struct print_page *page)
{
    struct text *out = page->out;
    bool is_markdown = page->is_markdown;
    const char *indent = is_markdown ? "" : "   ";
    struct layout layout;
    set_layout(page->result, &layout);
    put_title(&layout, is_markdown, page->color, out);
    size_t left = put_table(&layout, page);
    if (left)
        text_addf(out, "%s%sand %zu more (--top 0 shows all)\n", is_markdown ? "\n" : "", indent,
                  left);
    text_add(out, "\n");
    put_missing(&layout, is_markdown ? "- " : indent, out);
    put_notes(&layout, is_markdown, out);
    text_add(out, is_markdown ? "" : "\n");
}

const struct print_views POINTS_VIEWS = {.page = put_points};
