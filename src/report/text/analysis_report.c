#include "report/text/analysis_report.h"

#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/text/format.h"
#include "report/text/table.h"

enum { CELL_MAX = 256, LABEL_WIDTH = 30 };

#define INTERVAL_SUFFIX "_interval_95"
#define ERROR_SUFFIX    "_error"
#define QUERIES_SUFFIX  "_queries"

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), part = strlen(end);
    return length >= part && strcmp(text + length - part, end) == 0;
}

/* ---- numbers ---- */

#define MILLISECONDS "ms"

static const char *unit_of(const char *key)
{
    if (strcmp(key, "accuracy") == 0 || strcmp(key, "coverage") == 0 || ends_with(key, "share"))
        return "%";
    if (str_starts(key, "ipj") || ends_with(key, "_per_joule"))
        return "1/J";
    if (str_starts(key, "ipw") || ends_with(key, "_per_watt"))
        return "1/W";
    if (ends_with(key, "_per_s"))
        return "1/s";
    if (strstr(key, "joules") && !strstr(key, "_of_"))
        return "J";
    if (strstr(key, "watts"))
        return "W";
    if (ends_with(key, "_ms"))
        return MILLISECONDS;
    if (ends_with(key, "_s") || strstr(key, "_s_per_"))
        return "s";
    return "";
}

/* Of a fit "x_vs_y" the slope and the intercept are in the unit of y, the slope per token; of logarithms in none. */
static const char *fit_unit(const char *row, const char *column)
{
    if (strstr(row, "_log") ||
        (!strstr(column, "slope") && !strstr(column, "intercept") && strcmp(column, "avg_y") != 0 &&
         strcmp(column, "residual_std") != 0))
        return "";
    return ends_with(row, "energy") ? "J" : ends_with(row, "power") ? "W" : "s";
}

/* Columns that count or compare have no unit, whatever their row is of. */
static const char *unit_in(const char *row, const char *column)
{
    static const char *const PLAIN[] = {"count",   "queries",  "r2",
                                        "z",       "beyond_z", "beyond_fences",
                                        "p_value", "spearman", "exponent"};
    for (size_t i = 0; i < sizeof PLAIN / sizeof *PLAIN; i++)
        if (strcmp(column, PLAIN[i]) == 0)
            return "";
    const char *own = unit_of(column);
    if (!own[0] && row && strstr(row, "_vs_"))
        return fit_unit(row, column);
    return own[0] || !row ? own : unit_of(row);
}

static void number_text(char *to, double value, double error, const char *unit)
{
    bool is_ms = strcmp(unit, MILLISECONDS) == 0; /* in seconds, with the prefix that fits */
    double scale = is_ms ? 1e-3 : 1;
    format_figure(to, scale * value, scale * error, is_ms ? "s" : unit);
}

/* The member named KEY + suffix beside a figure; NULL without one. */
static const struct jv *beside(const struct jv *object, const char *key, const char *suffix)
{
    char name[128];
    return str_format(name, sizeof name, "%s%s", key, suffix) ? jv_get(object, name) : NULL;
}

/* Energy's intervals tell of other queries alone; ± beside them has the sensors in it. */
static bool has_sensors(const char *key)
{
    return strstr(key, "joule") || str_starts(key, "ipj") || str_starts(key, "ipw");
}

/* With the number of queries that it comes from, where that is recorded. */
static void add_interval(char *to, const struct jv *object, const char *key, const char *unit)
{
    const struct jv *interval = beside(object, key, INTERVAL_SUFFIX);
    double queries = jv_number(beside(object, key, QUERIES_SUFFIX));
    char low[CELL_MAX], high[CELL_MAX], count[32] = "";
    size_t used = strlen(to);
    if (!jv_is_array(interval))
        return;
    number_text(low, jv_number(jv_path(interval, "0")), 0, unit);
    number_text(high, jv_number(jv_path(interval, "1")), 0, unit);
    if (is_known(queries))
        str_format(count, sizeof count, ", n = %.0f", queries);
    str_format(to + used, CELL_MAX - used, "  (95 %%%s: %s to %s%s)",
               has_sensors(key)               ? " CI (sampling error only)"
               : strcmp(key, "accuracy") == 0 ? " CI"
                                              : "",
               low, high, count);
}

/* Of how many queries a figure is, where that is not all of them. */
static void add_count(char *to, const struct jv *object, const char *key)
{
    double known = jv_number(beside(object, key, QUERIES_SUFFIX));
    double all = jv_number(jv_get(object, "queries"));
    size_t used = strlen(to);
    if (known < all)
        str_format(to + used, CELL_MAX - used, " (%.0f of %.0f)", known, all);
}

/* "X_queries" belongs to X beside it; otherwise it is a figure of its own. */
static bool counts_another(const struct jv *object, const char *key)
{
    char name[128];
    size_t length = strlen(key) - strlen(QUERIES_SUFFIX);
    return ends_with(key, QUERIES_SUFFIX) && length < sizeof name &&
           str_format(name, sizeof name, "%.*s", (int)length, key) && jv_get(object, name);
}

static bool is_attribute(const struct jv *object, const char *key)
{
    return ends_with(key, INTERVAL_SUFFIX) || ends_with(key, ERROR_SUFFIX) ||
           counts_another(object, key);
}

static void value_text(char *to, const struct jv *object, const struct jv *value, const char *row,
                       bool interval)
{
    const char *key = jv_key(value);
    const char *unit = unit_in(row, key);
    if (jv_text(value))
        str_copy(to, CELL_MAX, plain_text(jv_text(value)).text);
    else if (jv_is_bool(value))
        str_copy(to, CELL_MAX, jv_bool(value, false) ? "yes" : "no");
    else
        number_text(to, jv_number(value), jv_number(beside(object, key, ERROR_SUFFIX)), unit);
    if (jv_first(object) && !jv_text(value))
        add_count(to, object, key);
    if (interval)
        add_interval(to, object, key, unit);
}

/* Values carry their units, with a prefix that fits: "latency_s" would stand beside "12 ms". */
static void drop_unit(char *key)
{
    char *within = strstr(key, "_s_per_") ? strstr(key, "_s_per_") : strstr(key, "_s_of_");
    if (within)
        memmove(within, within + 2, strlen(within + 2) + 1);
    else if (strcmp(unit_of(key), "s") == 0 || strcmp(unit_of(key), MILLISECONDS) == 0)
        key[strlen(key) - 1 - strlen(unit_of(key))] = '\0';
}

static void label_text(char *to, const char *key)
{
    str_copy(to, CELL_MAX, plain_text(key).text);
    drop_unit(to);
    for (char *at = to; *at; at++)
        if (*at == '_')
            *at = ' ';
}

/* ---- the summary ---- */

static void write_list(const struct jv *object, const char *indent, struct text *out)
{
    char label[CELL_MAX], value[CELL_MAX];
    for (const struct jv *child = jv_first(object); child; child = jv_next(child)) {
        if (jv_is_null(child) || jv_is_object(child) || jv_is_array(child) ||
            is_attribute(object, jv_key(child)))
            continue;
        label_text(label, jv_key(child));
        value_text(value, object, child, NULL, true);
        text_addf(out, "%s%-*s %s\n", indent, LABEL_WIDTH, label, value);
    }
}

/* ---- tables ---- */

static bool is_table(const struct jv *value)
{
    const struct jv *first = jv_first(value);
    if (!jv_is_object(first))
        return false;
    for (const struct jv *row = first; row; row = jv_next(row))
        if (!jv_is_object(row) || jv_is_object(jv_first(row)))
            return false;
    return true;
}

struct columns {
    struct table_column items[TABLE_COLUMNS_MAX];
    const char *keys[TABLE_COLUMNS_MAX];
    char titles[TABLE_COLUMNS_MAX][64];
    size_t count;
};

static bool has_key(const struct columns *columns, const char *key)
{
    for (size_t i = 0; i < columns->count; i++)
        if (strcmp(columns->keys[i], key) == 0)
            return true;
    return false;
}

static void add_column(struct columns *columns, const char *key, bool right)
{
    char title[CELL_MAX];
    size_t at = columns->count;
    if (at == TABLE_COLUMNS_MAX)
        return;
    label_text(title, key);
    str_copy(columns->titles[at], sizeof columns->titles[at], title);
    columns->keys[at] = key;
    columns->items[at] = (struct table_column){columns->titles[at], right};
    columns->count++;
}

/* Every key that some row has a value for; rows may lack some. */
static void find_columns(const struct jv *rows, struct columns *out)
{
    out->count = 0;
    if (jv_is_object(rows))
        add_column(out, "", false);
    for (const struct jv *row = jv_first(rows); row; row = jv_next(row))
        for (const struct jv *cell = jv_first(row); cell; cell = jv_next(cell)) {
            const char *key = jv_key(cell);
            bool shown = !jv_is_null(cell) && !jv_is_object(cell) && !jv_is_array(cell) &&
                         !is_attribute(row, key);
            if (shown && !has_key(out, key))
                add_column(out, key, !jv_text(cell));
        }
}

static void add_row(struct table *table, const struct jv *row, const struct columns *columns)
{
    char cell[CELL_MAX];
    for (size_t i = 0; i < columns->count; i++) {
        const struct jv *value = jv_get(row, columns->keys[i]);
        if (columns->keys[i][0] == '\0') {
            label_text(cell, jv_key(row));
            table_add(table, cell);
        } else if (jv_is_null(value)) {
            table_add(table, "-");
        } else {
            value_text(cell, row, value, jv_key(row), true);
            table_add(table, cell);
        }
    }
}

/* Queries that a row names: "joules: q000012 (z = 8.1), ..." */
static void write_named(const struct jv *rows, const char *indent, struct text *out)
{
    char label[CELL_MAX];
    for (const struct jv *row = jv_first(rows); row; row = jv_next(row)) {
        const struct jv *named = jv_get(row, "queries");
        size_t shown = 0, all = jv_is_array(named) ? jv_count(named) : 0;
        if (!all || !jv_key(row))
            continue;
        label_text(label, jv_key(row));
        text_addf(out, "%s%s:", indent, label);
        for (const struct jv *one = jv_first(named); one; one = jv_next(one))
            text_addf(out, "%s %s (z = %.1f)", shown++ ? "," : "",
                      plain_text(jv_text(jv_get(one, "key"))).text, jv_number(jv_get(one, "z")));
        text_add(out, "\n");
    }
}

static void write_table(const struct jv *rows, bool color, struct text *out)
{
    struct columns columns;
    struct table table;
    find_columns(rows, &columns);
    table_init(&table, columns.items, columns.count);
    for (const struct jv *row = jv_first(rows); row; row = jv_next(row))
        add_row(&table, row, &columns);
    table_print(&table, "     ", color, out);
    write_named(rows, "     ", out);
}

static void write_data(const struct jv *data, bool color, struct text *out)
{
    char label[CELL_MAX];
    for (const struct jv *child = jv_first(data); child; child = jv_next(child)) {
        label_text(label, jv_key(child));
        if (is_table(child)) {
            text_addf(out, "\n   %s\n", label);
            write_table(child, color, out);
        } else if (jv_is_object(child) && jv_first(child)) {
            text_addf(out, "\n   %s\n", label);
            write_list(child, "     ", out);
            write_data(child, color, out);
        }
    }
}

/* An object whose children are rows already, as the outliers', is one table. */
static void write_all_data(const struct jv *data, bool color, struct text *out)
{
    if (is_table(data)) {
        text_add(out, "\n");
        write_table(data, color, out);
    } else {
        write_data(data, color, out);
    }
}

/* ---- in brief: the finding of each analysis ---- */

enum { BRIEF_WIDTH = 78, BRIEF_INDENT = 14, BRIEF_LINES = 2, CHECKS_BRIEF = 3, WARNINGS_BRIEF = 1 };

/* Words from `at` on that fit a line; what follows the blank after them is next. */
static size_t fitting(const char *at, size_t width)
{
    size_t columns = 0, end = 0, i = 0;
    for (; at[i]; i++) {
        if (at[i] == ' ')
            end = i;
        columns += ((unsigned char)at[i] & 0xc0) != 0x80; /* not the rest of a character */
        if (columns > width)
            return end ? end : i;
    }
    return i;
}

/* "   label      words", wrapped and indented; what is longer than BRIEF_LINES ends in "...". */
static void put_brief(struct text *out, const char *label, const char *words)
{
    size_t width = BRIEF_WIDTH - BRIEF_INDENT, lines = 0;
    text_addf(out, "   %-*s", BRIEF_INDENT - 3, label);
    for (const char *at = words; *at && lines < BRIEF_LINES; lines++) {
        bool last = lines + 1 == BRIEF_LINES;
        size_t length = fitting(at, last ? width - 4 : width);
        if (last && strlen(at) <= fitting(at, width))
            length = strlen(at);
        if (lines)
            text_addf(out, "%*s", BRIEF_INDENT, "");
        text_addf(out, "%.*s%s\n", (int)length, at, last && at[length] ? " ..." : "");
        at += length;
        at += *at == ' ';
    }
}

static double figure_at(const struct jv *result, const char *path)
{
    return jv_number(jv_path(result, path));
}

/* ", 12.3 ± 0.4 J per query": nothing of what is unknown. */
static void add_phrase(struct text *to, double value, double error, const char *unit,
                       const char *before, const char *after)
{
    char cell[FORMAT_MAX];
    if (is_known(value))
        text_addf(to, "%s%s%s%s", to->length ? ", " : "", before,
                  format_figure(cell, value, error, unit), after);
}

static void brief_quality(const struct jv *result, struct text *words)
{
    text_addf(words, "%.0f checks good, %.0f warning%s, %.0f unknown",
              figure_at(result, "summary.checks_good"), figure_at(result, "summary.checks_warning"),
              figure_at(result, "summary.checks_warning") == 1 ? "" : "s",
              figure_at(result, "summary.checks_unknown"));
}

/* The checks that warn, each on lines of its own. */
static void put_checks(const struct jv *result, struct text *out)
{
    size_t shown = 0, all = 0;
    for (const struct jv *check = jv_first(jv_path(result, "data.checks")); check;
         check = jv_next(check)) {
        const char *verdict = jv_text(jv_get(check, "verdict"));
        if (!verdict || strcmp(verdict, "warning") != 0)
            continue;
        struct text words = {0};
        text_addf(&words, "%s: %s", plain_text(jv_text(jv_get(check, "check"))).text,
                  plain_text(jv_text(jv_get(check, "detail"))).text);
        if (all++ < CHECKS_BRIEF && ++shown)
            put_brief(out, "", text_get(&words));
        text_release(&words);
    }
    if (all > shown)
        text_addf(out, "%*s%zu more warnings: -v shows them\n", BRIEF_INDENT, "", all - shown);
}

static void brief_efficiency(const struct jv *result, struct text *words)
{
    double joules = figure_at(result, "summary.joules");
    double share = figure_at(result, "summary.joules_error") / joules;
    double query = figure_at(result, "summary.joules_per_query");
    double token = figure_at(result, "summary.joules_per_output_token");
    const char *method = jv_text(jv_path(result, "summary.method"));
    add_phrase(words, query, query * share, "J", "", " per query");
    add_phrase(words, token, token * share, "J", "", " per output token");
    add_phrase(words, joules, joules * share, "J", "", " in all");
    if (method)
        text_addf(words, " (%s)", plain_text(method).text);
}

static void brief_latency(const struct jv *result, struct text *words)
{
    add_phrase(words, figure_at(result, "data.times.latency_s.p50"), UNKNOWN, "s", "median ", "");
    add_phrase(words, figure_at(result, "data.times.latency_s.p95"), UNKNOWN, "s", "p95 ", "");
    add_phrase(words, figure_at(result, "data.times.time_to_first_token_s.p50"), UNKNOWN, "s",
               "median TTFT ", "");
    add_phrase(words, figure_at(result, "summary.output_tokens_per_s"), UNKNOWN, "", "",
               " output tokens/s");
}

static void brief_accuracy(const struct jv *result, struct text *words)
{
    char low[FORMAT_MAX], high[FORMAT_MAX];
    const struct jv *interval = jv_path(result, "summary.accuracy_interval_95");
    add_phrase(words, figure_at(result, "summary.accuracy"), UNKNOWN, "%", "", " correct");
    if (jv_is_array(interval))
        text_addf(words, " (95 %% CI: %s to %s)",
                  format_percent(low, jv_number(jv_path(interval, "0"))),
                  format_percent(high, jv_number(jv_path(interval, "1"))));
    add_phrase(words, figure_at(result, "summary.ipj"), figure_at(result, "summary.ipj_plus_minus"),
               "1/J", "IPJ ", "");
    add_phrase(words, figure_at(result, "summary.ipw"), figure_at(result, "summary.ipw_plus_minus"),
               "1/W", "IPW ", "");
}

static void brief_regression(const struct jv *result, struct text *words)
{
    static const struct {
        const char *path, *unit, *each;
    } FITS[] = {
        {"data.more.output_tokens_vs_energy", "J", " per output token"},
        {"data.more.output_tokens_vs_latency", "s", " per output token"},
        {"data.regressions.input_tokens_vs_ttft", "s", " of TTFT per input token"},
    };
    for (size_t i = 0; i < sizeof FITS / sizeof *FITS; i++) {
        const struct jv *fit = jv_path(result, FITS[i].path);
        add_phrase(words, jv_number(jv_get(fit, "slope")), jv_number(jv_get(fit, "slope_error")),
                   FITS[i].unit, "", FITS[i].each);
        if (is_known(jv_number(jv_get(fit, "slope"))))
            text_addf(words, " (r² %.2f)", jv_number(jv_get(fit, "r2")));
    }
}

static void brief_scaling(const struct jv *result, struct text *words)
{
    const struct jv *plane = jv_path(result, "data.planes.joules");
    const struct jv *law = jv_path(result, "data.power_laws.joules_of_output_tokens");
    add_phrase(words, jv_number(jv_get(plane, "fixed")), jv_number(jv_get(plane, "fixed_error")),
               "J", "fixed ", "");
    add_phrase(words, jv_number(jv_get(plane, "per_input_token")),
               jv_number(jv_get(plane, "per_input_token_error")), "J", "", " per input token");
    add_phrase(words, jv_number(jv_get(plane, "per_output_token")),
               jv_number(jv_get(plane, "per_output_token_error")), "J", "", " per output token");
    if (!words->length)
        add_phrase(words, jv_number(jv_get(law, "exponent")),
                   jv_number(jv_get(law, "exponent_error")), "",
                   "energy grows with output tokens to the power of ", "");
    add_phrase(words, figure_at(result, "summary.runs"), UNKNOWN, "", "", " runs");
}

static void brief_outliers(const struct jv *result, struct text *words)
{
    char label[CELL_MAX];
    for (const struct jv *row = jv_first(jv_get(result, "data")); row; row = jv_next(row)) {
        const struct jv *first = jv_first(jv_get(row, "queries"));
        if (!(jv_number(jv_get(row, "beyond_z")) > 0))
            continue;
        label_text(label, jv_key(row));
        text_addf(words, "%s%s: %.0f", words->length ? "; " : "", label,
                  jv_number(jv_get(row, "beyond_z")));
        if (first)
            text_addf(words, " (%s z = %.1f)", plain_text(jv_text(jv_get(first, "key"))).text,
                      jv_number(jv_get(first, "z")));
    }
    if (!words->length)
        text_addf(words, "none of %.0f queries", figure_at(result, "summary.queries"));
}

static void brief_layers(const struct jv *result, struct text *words)
{
    const char *most = jv_text(jv_path(result, "summary.largest_component"));
    add_phrase(words, figure_at(result, "summary.models"), UNKNOWN, "", "", " models measured");
    add_phrase(words, figure_at(result, "summary.prefill_joules_per_token"),
               figure_at(result, "summary.prefill_joules_per_token_error"), "J", "prefill ",
               " per token");
    add_phrase(words, figure_at(result, "summary.decode_joules_per_token"),
               figure_at(result, "summary.decode_joules_per_token_error"), "J", "decode ",
               " per token");
    if (most)
        add_phrase(words, figure_at(result, "summary.largest_component_share"), UNKNOWN, "%",
                   "largest component ", " of the energy: ");
    if (most)
        text_add(words, plain_text(most).text);
}

static void put_finding(const char *name, const struct jv *result, struct text *out)
{
    static const struct {
        const char *name;
        void (*write)(const struct jv *result, struct text *words);
    } FINDINGS[] = {
        {"quality", brief_quality},   {"efficiency", brief_efficiency}, {"latency", brief_latency},
        {"accuracy", brief_accuracy}, {"regression", brief_regression}, {"scaling", brief_scaling},
        {"outliers", brief_outliers}, {"layers", brief_layers},
    };
    struct text words = {0};
    const char *missing = jv_text(jv_path(result, "summary.not_enough_data"));
    if (missing)
        text_addf(&words, "not enough data: %s", plain_text(missing).text);
    for (size_t i = 0; !missing && i < sizeof FINDINGS / sizeof *FINDINGS; i++)
        if (strcmp(name, FINDINGS[i].name) == 0)
            FINDINGS[i].write(result, &words);
    put_brief(out, name, words.length ? text_get(&words) : "nothing that the data can tell");
    text_release(&words);
}

static void write_brief(const struct jv *result, struct text *out)
{
    const char *name = jv_text(jv_get(result, "analysis"));
    size_t shown = 0, all = jv_count(jv_get(result, "warnings"));
    put_finding(name ? name : "?", result, out);
    put_checks(result, out);
    for (const struct jv *line = jv_first(jv_get(result, "warnings"));
         line && shown < WARNINGS_BRIEF; line = jv_next(line), shown++) {
        struct text words = {0};
        text_addf(&words, "warning: %s", plain_text(jv_text(line)).text);
        put_brief(out, "", text_get(&words));
        text_release(&words);
    }
    if (all > shown)
        text_addf(out, "%*s%zu more warnings: -v shows them\n", BRIEF_INDENT, "", all - shown);
}

void analysis_text(const struct jv *result, bool verbose, bool color, struct text *out)
{
    const char *name = jv_text(jv_get(result, "analysis"));
    const char *missing = jv_text(jv_path(result, "summary.not_enough_data"));
    if (!verbose) {
        write_brief(result, out);
        return;
    }
    text_addf(out, "%s%s%s\n", color ? "\033[1m " : " ", name ? name : "?", color ? "\033[0m" : "");
    if (missing) {
        text_addf(out, "   not enough data: %s\n", plain_text(missing).text);
    } else {
        write_list(jv_get(result, "summary"), "   ", out);
        write_all_data(jv_get(result, "data"), color, out);
    }
    for (const struct jv *line = jv_first(jv_get(result, "warnings")); line; line = jv_next(line))
        text_addf(out, "   warning: %s\n", plain_text(jv_text(line)).text);
    text_add(out, "\n");
}
