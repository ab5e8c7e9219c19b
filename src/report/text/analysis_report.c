#include "report/text/analysis_report.h"

#include <math.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/text/format.h"
#include "report/text/table.h"

enum { ROWS_BRIEF = 24, NAMED_BRIEF = 5, CELL_MAX = 256, LABEL_WIDTH = 30 };

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

/* What only a closer look needs. */
static bool is_detail(const char *key)
{
    static const char *const DETAILS[] = {"p_value",
                                          "residual_std",
                                          "theil_sen_intercept",
                                          "avg_y",
                                          "fence_low",
                                          "fence_high",
                                          "failed",
                                          "dataset",
                                          "robust_std",
                                          "joules_per_gflop",
                                          "joules_per_gb",
                                          "idle_joules"};
    for (size_t i = 0; i < sizeof DETAILS / sizeof *DETAILS; i++)
        if (strcmp(key, DETAILS[i]) == 0)
            return true;
    return false;
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

/* Whose figures they are needs no column where all are of one. */
static bool is_same_model(const struct jv *rows, const char *key)
{
    const char *first = jv_text(jv_get(jv_first(rows), key));
    if (strcmp(key, "model") != 0 || !first || jv_count(rows) < 2)
        return false;
    for (const struct jv *row = jv_first(rows); row; row = jv_next(row))
        if (!jv_text(jv_get(row, key)) || strcmp(jv_text(jv_get(row, key)), first) != 0)
            return false;
    return true;
}

/* Every key that some row has a value for; rows may lack some. */
static void find_columns(const struct jv *rows, bool verbose, struct columns *out)
{
    out->count = 0;
    if (jv_is_object(rows))
        add_column(out, "", false);
    for (const struct jv *row = jv_first(rows); row; row = jv_next(row))
        for (const struct jv *cell = jv_first(row); cell; cell = jv_next(cell)) {
            const char *key = jv_key(cell);
            bool shown = !jv_is_null(cell) && !jv_is_object(cell) && !jv_is_array(cell) &&
                         !is_attribute(row, key) &&
                         (verbose || (!is_detail(key) && !is_same_model(rows, key)));
            if (shown && !has_key(out, key))
                add_column(out, key, !jv_text(cell));
        }
}

static void add_row(struct table *table, const struct jv *row, const struct columns *columns,
                    bool verbose)
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
            value_text(cell, row, value, jv_key(row), verbose);
            table_add(table, cell);
        }
    }
}

/* Queries that a row names: "joules: q000012 (z = 8.1), ..." */
static void write_named(const struct jv *rows, bool verbose, const char *indent, struct text *out)
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
            if (verbose || shown < NAMED_BRIEF)
                text_addf(out, "%s %s (z = %.1f)", shown++ ? "," : "",
                          plain_text(jv_text(jv_get(one, "key"))).text,
                          jv_number(jv_get(one, "z")));
        text_add(out, all > shown ? " ...\n" : "\n");
    }
}

static void write_table(const struct jv *rows, bool verbose, bool color, struct text *out)
{
    struct columns columns;
    struct table table;
    size_t shown = 0, all = jv_count(rows);
    find_columns(rows, verbose, &columns);
    table_init(&table, columns.items, columns.count);
    for (const struct jv *row = jv_first(rows); row; row = jv_next(row))
        if (verbose || shown++ < ROWS_BRIEF)
            add_row(&table, row, &columns, verbose);
    table_print(&table, "     ", color, out);
    if (!verbose && all > ROWS_BRIEF)
        text_addf(out, "     ... %zu more: -v shows them\n", all - ROWS_BRIEF);
    write_named(rows, verbose, "     ", out);
}

static void write_data(const struct jv *data, bool verbose, bool color, struct text *out)
{
    char label[CELL_MAX];
    for (const struct jv *child = jv_first(data); child; child = jv_next(child)) {
        label_text(label, jv_key(child));
        if (is_table(child)) {
            text_addf(out, "\n   %s\n", label);
            write_table(child, verbose, color, out);
        } else if (verbose && jv_is_object(child) && jv_first(child)) {
            text_addf(out, "\n   %s\n", label);
            write_list(child, "     ", out);
            write_data(child, verbose, color, out);
        }
    }
}

/* An object whose children are rows already, as the outliers', is one table. */
static void write_all_data(const struct jv *data, bool verbose, bool color, struct text *out)
{
    if (is_table(data)) {
        text_add(out, "\n");
        write_table(data, verbose, color, out);
    } else {
        write_data(data, verbose, color, out);
    }
}

void analysis_text(const struct jv *result, bool verbose, bool color, struct text *out)
{
    const char *name = jv_text(jv_get(result, "analysis"));
    const char *missing = jv_text(jv_path(result, "summary.not_enough_data"));
    text_addf(out, "%s%s%s\n", color ? "\033[1m " : " ", name ? name : "?", color ? "\033[0m" : "");
    if (missing) {
        text_addf(out, "   not enough data: %s\n", plain_text(missing).text);
    } else {
        write_list(jv_get(result, "summary"), "   ", out);
        write_all_data(jv_get(result, "data"), verbose, color, out);
    }
    for (const struct jv *line = jv_first(jv_get(result, "warnings")); line; line = jv_next(line))
        text_addf(out, "   warning: %s\n", plain_text(jv_text(line)).text);
    text_add(out, "\n");
}
