/* Views of `ipw estimate calibrate`, the fitted coefficients with their errors, and `ipw estimate validate`,
 * predictions against measurements; as text and Markdown. */

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/print/print.h"
#include "report/text/format.h"
#include "report/text/page.h"
#include "report/text/reports.h"

/* Moves the words to the output. */
static void put_words(struct print_page *page, const char *before, const char *after)
{
    text_add(page->out, before);
    (page->is_markdown ? markdown_add : text_add)(page->out, text_get(&page->words));
    text_add(page->out, after);
    text_clear(&page->words);
}

static void put_line(struct print_page *page)
{
    put_words(page, page->is_markdown ? "- " : "   ", "\n");
}

static void put_title(struct print_page *page)
{
    put_words(page, page->is_markdown ? "### " : " ", "\n\n");
}

#define line(page, ...) (text_addf(&(page)->words, __VA_ARGS__), put_line(page))

/* ---- calibration ---- */

enum { CELL_MAX = 64 };

/* format_si has no prefix above giga. */
static char *rate_text(char *to, double rate, const char *unit)
{
    double times = rate >= 1e12 ? 1e12 : 1e9;
    str_format(to, FORMAT_MAX, "%.4g %c%s", rate / times, times > 1e9 ? 'T' : 'G', unit);
    return to;
}

static void coefficient_name(const struct result_item *row, char to[CELL_MAX])
{
    const char *unit = result_text_at(row, "unit");
    const char *name = result_text_at(row, "name");
    if (str_equal(unit, "J/FLOP"))
        str_format(to, CELL_MAX, "per FLOP, %s", name);
    else if (str_equal(unit, "J/B"))
        str_format(to, CELL_MAX, "per %s", name);
    else
        str_copy(to, CELL_MAX, name);
}

static void add_coefficient(const struct result_item *row, struct table *table)
{
    const struct result_item *figure = result_get(row, "value");
    const struct result_item *attained = result_get(row, "attained");
    bool is_power = str_equal(figure->unit, "W");
    bool is_given = result_flag_at(row, "given");
    double times = is_power ? 1 : 1e12;
    const char *unit = is_power ? "W" : "pJ"; /* no prefix in format_si */
    char cell[CELL_MAX];
    coefficient_name(row, cell);
    table_add(table, cell);
    table_add(table, format_in(cell, times * figure->number,
                               is_given ? UNKNOWN : times * figure->error, unit));
    if (is_given || !result_is_known(figure))
        table_add(table, "");
    else
        table_addf(table, "%.3g to %.3g", times * figure->low, times * figure->high);
    double rows = result_number_at(row, "rows");
    if (rows > 0)
        table_addf(table, "%.0f", rows);
    else
        table_add(table, "");
    table_add(table,
              result_is_known(attained) ? rate_text(cell, attained->number, attained->unit) : "");
    table_add(table, is_given ? "given, not fitted" : "");
}

static void put_coefficients(struct print_page *page)
{
    static const struct table_column COLUMNS[] = {
        {"", false},    {"fitted", true},   {"95 % CI", true},
        {"rows", true}, {"attained", true}, {"", false},
    };
    struct table table = TABLE(COLUMNS);
    RESULT_EACH (row, result_find(page->result, "coefficients"))
        add_coefficient(row, &table);
    page_table(page, &table, "   ");
    text_add(page->out, "\n");
}

static void put_rows(struct print_page *page)
{
    double too_short = page_number(page, "rows.too_short");
    double empty = page_number(page, "rows.without_energy");
    text_addf(&page->words, "%.0f rows", page_number(page, "rows.used"));
    if (too_short > 0)
        text_addf(&page->words, "; %.0f skipped: too short for the sensor", too_short);
    if (empty > 0)
        text_addf(&page->words, "; %.0f skipped: energy unknown", empty);
    put_line(page);
    line(page, "R² %.2f; mean error of power and energy %.1f %%, leave-one-out %.1f %%",
         page_number(page, "r2"), 100 * page_number(page, "mape"),
         100 * page_number(page, "mape_held_out"));
}

static void put_times(struct print_page *page)
{
    const struct result *result = page->result;
    char rate[FORMAT_MAX];
    RESULT_EACH (cache, result_find(result, "caches"))
        line(page, "%s from %.3g MiB in cache",
             rate_text(rate, result_number_at(cache, "bytes_per_s"), "B/s"),
             result_number_at(cache, "bytes") / (1024.0 * 1024.0));
    RESULT_EACH (timings, result_find(result, "view.timings")) {
        const char *runtime = result_text_at(timings, "runtime");
        line(page, "%.0f operations of %s timed on %.0f threads: estimate with --runtime %s",
             result_number_at(timings, "operations"), runtime, result_number_at(timings, "threads"),
             runtime);
    }
}

static void put_overheads(struct print_page *page)
{
    double idle_w = page_number(page, "idle_w");
    double launch_s = page_number(page, "launch_s");
    double dispatch_s = page_number(page, "dispatch_s");
    double graph_s = page_number(page, "graph_launch_s");
    double host_s = page_number(page, "host_launch_s");
    char number[FORMAT_MAX];
    if (is_known(idle_w))
        line(page, "idle power %s (%.0f rows, not part of the fit)", format_si(number, idle_w, "W"),
             page_number(page, "rows.idle"));
    if (is_known(launch_s))
        line(page, "launch overhead %s per kernel (%.0f rows)", format_si(number, launch_s, "s"),
             page_number(page, "view.launch_rows"));
    if (is_known(dispatch_s))
        line(page, "dispatch interval %s", format_si(number, dispatch_s, "s"));
    if (is_known(graph_s))
        line(page, "dispatch interval in a graph %s", format_si(number, graph_s, "s"));
    if (is_known(host_s))
        line(page, "launch of an operator in eager mode %s (--runtime pytorch-eager)",
             format_si(number, host_s, "s"));
}

static void put_calibration(struct print_page *page)
{
    const char *hardware = page_word(page, "hardware");
    const char *method = page_word(page, "method");
    const char *base = page_word(page, "base");
    const char *file = page_word(page, "hardware_file");
    bool has_energy = *method;
    text_addf(&page->words, "%s of %s, %s %s", has_energy ? "energy model" : "times",
              *hardware ? hardware : "an unnamed device", has_energy ? "fitted to" : "measured by",
              page_word(page, "data"));
    put_title(page);
    if (!has_energy)
        line(page, "energy: not measured: %s", page_word(page, "view.no_energy"));
    if (str_equal(method, "estimated"))
        line(page, "ESTIMATED: the energy comes from a model, and so does the fit");
    if (!str_equal(method, "measured"))
        text_add(page->out, "\n");
    put_coefficients(page);
    if (has_energy)
        put_rows(page);
    put_times(page);
    put_overheads(page);
    if (*base)
        line(page, "other figures from %s (%s)", base, page_word(page, "view.base_name"));
    if (*file)
        line(page, "written to %s; use it with --hardware-file %s", file, file);
}

const struct print_views CALIBRATE_VIEWS = {.page = put_calibration, .has_blank_line = true};

/* ---- validation ---- */

enum { ROWS_SHOWN = 60 };

/* Measured, predicted, and their difference: "+12 %". */
static void add_pair(const struct result_item *pair, struct table *table)
{
    static const char *const PATHS[] = {"measured", "predicted"};
    double error = result_number_at(pair, "error");
    for (size_t i = 0; i < 2; i++) {
        const struct result_item *figure = result_get(pair, PATHS[i]);
        char number[FORMAT_MAX];
        table_add(table, format_si(number, figure->number, figure->unit));
    }
    table_add_known(table, error, "%+.0f %%", 100 * error);
}

static void put_measured(struct print_page *page)
{
    static const struct table_column COLUMNS[] = {
        {"row", false},  {"bound by", false}, {"measured", true},  {"predicted", true},
        {"error", true}, {"measured", true},  {"predicted", true}, {"error", true},
    };
    const struct result *result = page->result;
    struct table table = TABLE(COLUMNS);
    size_t count = 0;
    RESULT_EACH (row, result_find(result, "rows")) {
        if (count++ >= ROWS_SHOWN)
            continue;
        table_add(&table, result_text_at(row, "name"));
        table_add(&table, result_text_at(row, "bound"));
        add_pair(result_get(row, "latency_s"), &table);
        add_pair(result_get(row, "energy_j"), &table);
    }
    page_table(page, &table, "   ");
    if (count > ROWS_SHOWN)
        line(page, "and %zu more (--json has them)", count - ROWS_SHOWN);
    text_add(page->out, "\n");
}

static void add_error(const struct result_item *error, struct table *table)
{
    double rows = result_number_at(error, "rows");
    if (rows == 0) {
        table_add(table, "-");
        table_add(table, "-");
        table_add(table, "");
        return;
    }
    table_addf(table, "%.1f %%", 100 * result_number_at(error, "mape"));
    table_addf(table, "%+.1f %%", 100 * result_number_at(error, "bias"));
    table_addf(table, "%.0f", rows);
}

/* A row of each group, and one of all. */
static void put_errors(struct print_page *page, const char *name, const char *groups,
                       const char *all)
{
    const struct table_column columns[] = {
        {name, false},         {"latency MAPE", true}, {"bias", true}, {"rows", true},
        {"energy MAPE", true}, {"bias", true},         {"rows", true},
    };
    const struct result *result = page->result;
    struct table table = TABLE(columns);
    RESULT_EACH (sums, result_find(result, groups)) {
        table_add(&table, sums->key);
        add_error(result_get(sums, "latency"), &table);
        add_error(result_get(sums, "energy"), &table);
    }
    const struct result_item *sums = result_find(result, all);
    table_add(&table, "all");
    add_error(result_get(sums, "latency"), &table);
    add_error(result_get(sums, "energy"), &table);
    page_table(page, &table, "   ");
}

static void put_held_out(struct print_page *page)
{
    line(page, "leave-one-group-out correction by %s:", page_word(page, "held_out.column"));
    text_add(page->out, page->is_markdown ? "\n" : "");
    put_errors(page, page_word(page, "held_out.column"), "held_out.groups", "held_out.all");
    text_add(page->out, page->is_markdown ? "\n" : "");
    line(page, "inside the 95 %% interval of the others: latency %.0f %%, energy %.0f %%",
         100 * page_number(page, "held_out.all.latency.inside_2_sigma"),
         100 * page_number(page, "held_out.all.energy.inside_2_sigma"));
    text_add(page->out, "\n");
}

/* Coverage of the intervals. */
static void put_inside(struct print_page *page, const char *name)
{
    const struct result_item *error = result_at(result_find(page->result, "all"), name);
    double rows = result_number_at(error, "view.ranged");
    if (rows > 0)
        line(page,
             "%s: %.0f %% of %.0f rows within the ± of the estimate, %.0f %% within its 95 %% "
             "interval (twice that)",
             name, 100 * result_number_at(error, "inside_1_sigma"), rows,
             100 * result_number_at(error, "inside_2_sigma"));
}

static void put_host(struct print_page *page)
{
    double rows = page_number(page, "host_assumed");
    double launch_us = page_number(page, "host_launch_us");
    char inferred[128] = "";
    if (is_known(launch_us))
        chars_format(inferred, "; by these rows it is %.2g µs: --host-launch-us %.2g", launch_us,
                     launch_us);
    if (rows > 0)
        line(page, "host launch time of %.0f rows assumed: %.3g µs%s", rows,
             page_number(page, "view.host_assumed_us"), inferred);
}

static const char *verdict_words(const struct print_page *page)
{
    const struct result_item *pass = result_find(page->result, "pass");
    if (!result_is_known(pass))
        return "UNKNOWN, nothing compared";
    return result_value(pass) != 0 ? "PASS" : "FAIL";
}

static void put_validation(struct print_page *page)
{
    double too_short = page_number(page, "too_short_for_energy");
    double other = page_number(page, "left_out");
    double max = page_number(page, "max_mape");
    text_addf(&page->words, "%s against %s", page_word(page, "view.device"),
              page_word(page, "data"));
    put_title(page);
    put_measured(page);
    put_errors(page, "bound by", "regimes", "all");
    text_add(page->out, "\n");
    if (result_find(page->result, "held_out"))
        put_held_out(page);
    put_inside(page, "latency");
    put_inside(page, "energy");
    put_host(page);
    if (too_short > 0)
        line(page, "energy of %.0f rows not compared: under 1 ms, below sensor resolution",
             too_short);
    if (other > 0)
        line(page, "%.0f rows excluded by --where", other);
    if (str_equal(page_word(page, "method"), "estimated"))
        line(page, "the reference energy is ESTIMATED by a model, not measured by a sensor");
    if (is_known(max))
        line(page, "limit %.4g %%: %s", 100 * max, verdict_words(page));
}

const struct print_views VALIDATE_VIEWS = {.page = put_validation, .has_blank_line = true};
