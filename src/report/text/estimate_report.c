/* One estimate, as text or Markdown, from its result: summary, phases, energy breakdown, bottlenecks, top consumers,
 * limits and recommendations. */
#include "report/text/estimate_report.h"

#include <math.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/page.h"
#include "report/text/estimate_words.h"
#include "report/text/format.h"

enum { BAR = 32, UNKNOWN_SHOWN = 8 };

static void put_table(const struct print_page *page, struct table *table)
{
    text_add(page->out, "\n");
    page_table(page, table, "   ");
    text_add(page->out, page->is_markdown ? "\n" : "");
}

/* ---- phases of a request ---- */

/* Of a phase, or of the whole request.  Its ± is that of the bound. */
static void phase_row(const struct print_page *page, struct table *table, const char *name,
                      const struct result_item *phase, double tokens)
{
    char cell[WORDS_MAX];
    double batch = page_number(page, "batch");
    double made = tokens * batch;
    double joules = result_number_at(phase, "energy_j.total");
    double latency_s = result_number_at(phase, "latency_s");
    table_add(table, name);
    table_addf(table, "%.0f", tokens);
    table_add(table, format_si(cell, latency_s, "s"));
    table_add(table, words_rate(cell, made / latency_s));
    table_add(table, words_estimated(cell, joules / batch, UNKNOWN, "J"));
    table_add(table, words_estimated(cell, joules / made,
                                     result_number_at(phase, "view.plus_minus_j") / made, "J"));
    table_add(table,
              words_estimated(cell, result_number_at(phase, "power_w.average"), UNKNOWN, "W"));
    table_add(table, words_share(cell, result_number_at(phase, "mfu")));
    table_add(table, words_share(cell, result_number_at(phase, "mbu")));
}

static void put_phases(const struct print_page *page)
{
    static const struct table_column COLUMNS[] = {
        {"phase", false},   {"tokens", true}, {"latency", true},
        {"tokens/s", true}, {"energy", true}, {"per token", true},
        {"power", true},    {"MFU", true},    {"MBU", true},
    };
    struct table table = TABLE(COLUMNS);
    RESULT_EACH (phase, result_find(page->result, "request.phases"))
        phase_row(page, &table, result_text_at(phase, "phase"), phase,
                  result_number_at(phase, "tokens"));
    phase_row(page, &table, "request", page->result->items,
              page_number(page, "setting.output_tokens"));
    put_table(page, &table);
}

/* ---- energy breakdown ---- */

static void bar_cell(struct table *table, double share)
{
    static const char *const PARTS[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    long eighths = lround(8 * BAR * (share > 0 ? share : 0));
    struct text bar = {0};
    for (long i = 0; i < eighths / 8; i++)
        text_add(&bar, "█");
    text_add(&bar, PARTS[eighths % 8]);
    table_add(table, text_get(&bar));
    text_release(&bar);
}

static void put_breakdown(const struct print_page *page)
{
    static const struct table_column COLUMNS[] = {
        {"energy breakdown", false}, {"", false}, {"energy", true}, {"share", true}};
    static const char *const PARTS[] = {"compute", "memory", "link", "static", "total"};
    const struct result_item *energy = result_find(page->result, "energy_j");
    double total = page_number(page, "energy_j.total");
    char cell[WORDS_MAX];
    struct table table = TABLE(COLUMNS);
    for (size_t i = 0; i < COUNT_OF(PARTS); i++) {
        double joules = result_number_at(energy, PARTS[i]);
        if (joules <= 0) /* not if unknown */
            continue;
        table_add(&table, PARTS[i]);
        bar_cell(&table, i < 4 ? joules / total : 0);
        table_add(&table, words_estimated(cell, joules, UNKNOWN, "J"));
        table_add(&table, words_share(cell, joules / total));
    }
    put_table(page, &table);
}

/* ---- bottlenecks ---- */

/* "3 compute, 20 memory, 31 launch"; returns their sum. */
static double words_bounds(const struct print_page *page, char *to)
{
    double sum = 0;
    to[0] = '\0';
    RESULT_EACH (count, result_find(page->result, "bound_counts")) {
        sum += result_value(count);
        if (result_value(count) > 0)
            words_add(to, "%.0f %s", result_value(count), count->key);
    }
    return sum;
}

static void put_limits(const struct print_page *page)
{
    char bounds[WORDS_MAX], mfu[WORDS_MAX], mbu[WORDS_MAX], wide[64];
    double count = words_bounds(page, bounds);
    double levels = page_number(page, "concurrency.levels");
    double wide_levels = page_number(page, "concurrency.wide_levels");
    page_heading(page, "bottlenecks");
    page_item(page, "%.0f subgraph%s, bound by: %s", count, str_plural(count), bounds);
    page_item(page, "MFU %s of peak compute, MBU %s of memory bandwidth",
              words_share(mfu, page_number(page, "mfu")),
              words_share(mbu, page_number(page, "mbu")));
    chars_format(wide, "%.0f of them with up to %.0f", wide_levels,
                 page_number(page, "concurrency.max_width"));
    page_item(page, "%.0f sequential level%s, %s concurrent subgraphs", levels, str_plural(levels),
              wide_levels > 0 ? wide : "none with");
    page_item(page, "parallelism %.2f, by level %.2f, with batching %.4g",
              page_number(page, "concurrency.parallelism"),
              page_number(page, "concurrency.stage_parallelism"),
              page_number(page, "concurrency.batch_parallelism"));
}

/* ---- top consumers ---- */

static void consumer_row(const struct print_page *page, struct table *table,
                         const struct result_item *row)
{
    char cell[WORDS_MAX];
    double joules = result_number_at(row, "energy_j");
    double count = result_number_at(row, "subgraphs");
    table_add(table, result_text_at(row, "name"));
    if (count > 1)
        table_addf(table, "x %.0f", count);
    else
        table_add(table, "");
    table_add(table, result_text_at(row, "ops"));
    table_add(table, page_is_request(page) ? result_text_at(row, "phase") : "");
    table_add(table, words_estimated(cell, joules, UNKNOWN, "J"));
    table_add(table, words_share(cell, joules / page_number(page, "energy_j.total")));
    table_add(table, format_si(cell, result_number_at(row, "latency_s"), "s"));
    table_add(table, result_text_at(row, "bound"));
}

static void put_consumers(const struct print_page *page)
{
    static const struct table_column COLUMNS[] = {
        {"top consumers", false}, {"", true},      {"operations", false}, {"phase", false},
        {"energy", true},         {"share", true}, {"latency", true},     {"bound", false},
    };
    struct table table = TABLE(COLUMNS);
    double top = page_number(page, "view.top");
    size_t count = 0, shown = 0;
    RESULT_EACH (row, result_find(page->result, "view.consumers")) {
        if (top == 0 || (double)shown < top) {
            consumer_row(page, &table, row);
            shown++;
        }
        count++;
    }
    put_table(page, &table);
    if (shown < count)
        text_addf(page->out, "%sand %zu more (--top 0 shows them)\n",
                  page->is_markdown ? "" : "   ", count - shown);
}

static void put_unknown(const struct print_page *page)
{
    double nodes = page_number(page, "view.unknown_nodes");
    struct text words = {0};
    size_t shown = 0;
    if (!(nodes > 0))
        return;
    text_addf(&words, "%.0f unknown operator%s, counted as data movement only:", nodes,
              str_plural(nodes));
    RESULT_EACH (name, result_find(page->result, "unknown_ops"))
        if (shown++ < UNKNOWN_SHOWN)
            text_addf(&words, "%s %s", shown > 1 ? "," : "", result_string(name));
    text_add(page->out, "\n");
    page_item(page, "%s", text_get(&words));
    text_release(&words);
}

/* ---- limits ---- */

static char *limit_value(char *to, const char *unit, double value)
{
    if (str_equal(unit, "B")) /* in 10^9 bytes, like the limit */
        str_format(to, FORMAT_MAX, "%.4g GB", value / 1e9);
    else
        format_si(to, value, unit);
    return to;
}

/* "latency  0.41 ms, limit 5 ms: 92 % under". */
static char *check_words(char *to, const struct print_page *page, const struct result_item *check)
{
    const char *limit = result_text_at(check, "limit");
    const char *unit = result_text_at(check, "unit");
    char value[FORMAT_MAX], max[FORMAT_MAX], beyond[FORMAT_MAX], each[WORDS_MAX], of[64] = "";
    double margin = result_number_at(check, "margin");
    bool is_energy = str_equal(limit, "energy");
    bool is_power = str_equal(limit, "power");
    limit_value(value, unit, result_number_at(check, "value"));
    limit_value(max, unit, result_number_at(check, "max"));
    if (is_energy)
        chars_format(of, " %.60s", words_each(each, page_word(page, "view.energy_limit_unit")));
    if (str_equal(limit, "fit"))
        str_format(to, WORDS_MAX, "%-7s  %s, capacity %s: exceeds device memory by %s", limit,
                   value, max, limit_value(beyond, unit, -result_number_at(check, "left")));
    else if (str_equal(result_text_at(check, "verdict"), "UNKNOWN"))
        str_format(to, WORDS_MAX, "%s unknown", limit);
    else
        str_format(to, WORDS_MAX, "%-7s  %s%s%s, limit %s: %.*f %% %s%s", limit,
                   is_energy || is_power ? "~" : "", value, of, max, fabs(margin) < 0.1 ? 2 : 0,
                   fabs(100 * margin), margin < 0 ? "over" : "under",
                   result_flag_at(check, "sure") ? "" : ", within the ±");
    return to;
}

static void put_checks(const struct print_page *page)
{
    const struct result_item *checks = result_find(page->result, "budget.checks");
    char words[WORDS_MAX];
    if (checks)
        page_heading(page, "limits");
    RESULT_EACH (check, checks) {
        const char *verdict = result_text_at(check, "verdict");
        page_item(page, "%s%-7s%s  %s",
                  page_style(page, str_equal(verdict, "PASS") ? PAGE_GREEN : PAGE_RED), verdict,
                  page_style(page, PAGE_PLAIN), check_words(words, page, check));
    }
}

/* ---- recommendations ---- */

/* "54 ± 6 %", "-12 ± 6 %" where energy increases, "-". */
static char *saving_words(char *to, double saving, double plus_minus)
{
    if (!is_known(saving))
        str_copy(to, WORDS_MAX, "-");
    else
        str_format(to, WORDS_MAX, "%.0f ± %.0f %%", round(100 * saving) + 0.0, /* no "-0" */
                   fmax(1, 100 * plus_minus));
    return to;
}

static void proposal_row(struct table *table, const struct result_item *row)
{
    char cell[WORDS_MAX];
    table_add(table, result_text_at(row, "options"));
    table_add(table, saving_words(cell, result_number_at(row, "saving"),
                                  result_number_at(row, "saving_plus_minus")));
    table_add(table, words_estimated(cell, result_number_at(row, "energy_j"), UNKNOWN, "J"));
    table_add(table, format_si(cell, result_number_at(row, "latency_s"), "s"));
    table_add(table, words_rate(cell, result_number_at(row, "per_s")));
    table_add(table, format_bytes(cell, result_number_at(row, "memory_bytes")));
    table_add(table, result_text_at(row, "limits"));
}

static void put_no_proposal(const struct print_page *page)
{
    text_add(page->out, "\n");
    if (!page_flag(page, "view.meets_limits"))
        page_item(page, "No change that fits meets the limits, or comes closer with less energy.");
    else if (!is_known(page_number(page, "energy_j.total")))
        page_item(page, "No recommendations: figures that the energy depends on are unknown.");
    else
        page_item(page, "No change that fits saves %.0f %%%s.",
                  100 * page_number(page, "view.least_saving"),
                  page_number(page, "recommendations_unsure") > 0 ? " and more than its uncertainty"
                                                                  : "");
}

/* What applies to all of them, then their side effects. */
static void put_proposal_notes(const struct print_page *page, const struct result_item *list)
{
    double unsure = page_number(page, "recommendations_unsure");
    text_addf(page->out, "%seach change alone", page->is_markdown ? "" : "   ");
    if (unsure > 0)
        text_addf(page->out, "; %.0f more change%s less than %s uncertainty", unsure,
                  unsure == 1 ? " saves" : "s save", unsure == 1 ? "its" : "their");
    text_add(page->out, "\n");
    RESULT_EACH (row, list) {
        const char *note = result_text_at(row, "note");
        if (note[0])
            page_item(page, "%s: %s", result_text_at(row, "options"), note);
    }
}

static void put_proposals(const struct print_page *page)
{
    const struct result_item *list = result_find(page->result, "recommendations");
    char each[WORDS_MAX], rate[WORDS_MAX];
    const char *unit = page_word(page, "view.unit");
    const struct table_column columns[] = {
        {page_flag(page, "view.meets_limits") ? "to save energy" : "to meet the limits", false},
        {"saves", true},
        {words_each(each, unit), true},
        {"latency", true},
        {rate, true},
        {"memory", true},
        {"limits", false},
    };
    chars_format(rate, "%ss/s", unit);
    struct table table = TABLE(columns);
    if (!result_first(list)) {
        put_no_proposal(page);
        return;
    }
    RESULT_EACH (row, list)
        proposal_row(&table, row);
    put_table(page, &table);
    put_proposal_notes(page, list);
}

/* ---- figures of the device ---- */

static void figure_cell(struct table *table, double value, const char *unit)
{
    char cell[FORMAT_MAX];
    if (!is_known(value))
        table_add(table, "-");
    else if (!unit[0])
        table_addf(table, "%.3g", value);
    else if (value > 0 && value < 1e-9) /* J/FLOP: below the prefixes of format_si */
        table_addf(table, "%.3g p%s", value * 1e12, unit);
    else
        table_add(table, format_si(cell, value, unit));
}

static void put_figures(const struct print_page *page)
{
    static const struct table_column COLUMNS[] = {
        {"device figure", false}, {"value", true}, {"evidence", false}, {"source", false}};
    const struct result *result = page->result;
    struct table table = TABLE(COLUMNS);
    RESULT_EACH (row, result_find(result, "hardware_figures")) {
        const char *format = result_text_at(row, "format");
        const char *evidence = result_text_at(row, "evidence");
        table_addf(&table, "%s%s%s", result_text_at(row, "name"), format[0] ? " " : "", format);
        figure_cell(&table, result_number_at(row, "value"), result_text_at(row, "unit"));
        table_add(&table, evidence[0] ? evidence : "unknown");
        table_add(&table, result_text_at(row, "source"));
    }
    put_table(page, &table);
}

/* ---- all of it ---- */

static void put_estimate(struct print_page *page)
{
    estimate_summary(page);
    if (page_is_request(page))
        put_phases(page);
    put_breakdown(page);
    put_limits(page);
    put_consumers(page);
    put_unknown(page);
    put_checks(page);
    put_proposals(page);
    if (page_flag(page, "view.in_full"))
        put_figures(page);
    text_addf(page->out, "\n%s~ estimated by a model of the device, not measured\n%s",
              page->is_markdown ? "\\" : "   ", page->is_markdown ? "" : "\n");
}

const struct print_views ESTIMATE_VIEWS = {.page = put_estimate};
