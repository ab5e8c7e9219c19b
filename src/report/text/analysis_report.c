/* Results of analyses as text: the finding of each, or all figures. */
#include "report/text/reports.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "analysis/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/format.h"

enum { CELL_MAX = 256, LABEL_WIDTH = 30 };

/* ---- figures ---- */

static void number_text(char *to, double value, double error, const char *unit)
{
    bool is_ms = strcmp(unit, "ms") == 0; /* in seconds, with a suitable prefix */
    double scale = is_ms ? 1e-3 : 1;
    format_figure(to, scale * value, scale * error, is_ms ? "s" : unit);
}

/* Energies also have the uncertainty of their sensors, which a CI does not include: ± of other figures does. */
static bool has_sensors(const char *unit)
{
    return strcmp(unit, "J") == 0 || strcmp(unit, "1/J") == 0 || strcmp(unit, "1/W") == 0;
}

/* With the number of queries, if recorded. */
static void add_interval(char *to, const struct result_item *item, bool in_list)
{
    char low[CELL_MAX], high[CELL_MAX], count[32] = "";
    size_t used = strlen(to);
    number_text(low, item->low, 0, item->unit);
    number_text(high, item->high, 0, item->unit);
    if (is_known(item->queries))
        str_format(count, sizeof count, ", n = %.0f", item->queries);
    if (is_known(item->low) && is_known(item->high))
        str_format(to + used, CELL_MAX - used, "  (95 %% CI%s: %s to %s%s)",
                   in_list && has_sensors(item->unit) ? " (sampling error only)" : "", low, high,
                   count);
}

static void value_text(char *to, const struct result *result, const struct result_item *group,
                       const struct result_item *item, bool in_list)
{
    double all = result_value(result_get(result, group, "queries"));
    if (item->kind == RESULT_TEXT)
        str_copy(to, CELL_MAX, plain_text(result_string(result, item)).text);
    else if (item->kind == RESULT_FLAG)
        str_copy(to, CELL_MAX, item->number != 0 ? "yes" : "no");
    else
        number_text(to, item->number, item->error, item->unit);
    if (item->queries < all) /* if it does not cover all */
        str_format(to + strlen(to), CELL_MAX - strlen(to), " (%.0f of %.0f)", item->queries, all);
    add_interval(to, item, in_list);
}

/* Values have units with a suitable prefix: "latency_s" would contradict "12 ms". */
static void drop_unit(char *key)
{
    char *within = strstr(key, "_s_per_") ? strstr(key, "_s_per_") : strstr(key, "_s_of_");
    if (within)
        memmove(within, within + 2, strlen(within + 2) + 1);
    else if (str_ends(key, "_ms"))
        key[strlen(key) - 3] = '\0';
    else if (str_ends(key, "_s") && !str_ends(key, "_per_s"))
        key[strlen(key) - 2] = '\0';
}

static void label_text(char *to, const char *key)
{
    str_copy(to, CELL_MAX, plain_text(key).text);
    drop_unit(to);
    for (char *at = to; *at; at++)
        if (*at == '_')
            *at = ' ';
}

/* Whether an item is a figure of its own: an error, an interval or a count belongs to another. */
static bool is_shown(const struct result_item *item)
{
    return item->kind < RESULT_ERROR && result_is_known(item);
}

/* ---- the summary ---- */

static void write_list(const struct result *result, const struct result_item *group,
                       const char *indent, struct text *out)
{
    char label[CELL_MAX], value[CELL_MAX];
    RESULT_EACH (item, result, group) {
        if (!is_shown(item) || !result_key(result, item))
            continue;
        label_text(label, result_key(result, item));
        value_text(value, result, group, item, true);
        text_addf(out, "%s%-*s %s\n", indent, LABEL_WIDTH, label, value);
    }
}

/* ---- tables ---- */

static bool is_table(const struct result *result, const struct result_item *rows)
{
    const struct result_item *first = result_first(result, rows);
    for (const struct result_item *row = first; row; row = result_next(result, rows, row)) {
        const struct result_item *cell = result_first(result, row);
        if (row->kind != RESULT_GROUP || (cell && cell->kind == RESULT_GROUP))
            return false;
    }
    return first != NULL;
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

/* Every key for which some row has a value; rows may lack some. */
static void find_columns(const struct result *result, const struct result_item *rows,
                         struct columns *out)
{
    out->count = 0;
    if (rows->kind == RESULT_GROUP)
        add_column(out, "", false);
    RESULT_EACH (row, result, rows)
        RESULT_EACH (cell, result, row)
            if (is_shown(cell) && !has_key(out, result_key(result, cell)))
                add_column(out, result_key(result, cell), cell->kind != RESULT_TEXT);
}

static void add_row(struct table *table, const struct result *result, const struct result_item *row,
                    const struct columns *columns)
{
    char cell[CELL_MAX];
    for (size_t i = 0; i < columns->count; i++) {
        const struct result_item *item = result_get(result, row, columns->keys[i]);
        str_copy(cell, sizeof cell, "-");
        if (columns->keys[i][0] == '\0')
            label_text(cell, result_key(result, row));
        else if (result_is_known(item))
            value_text(cell, result, row, item, false);
        table_add(table, cell);
    }
}

/* Queries named in a row: "joules: q000012 (z = 8.1), ..." */
static void write_named(const struct result *result, const struct result_item *rows,
                        const char *indent, struct text *out)
{
    char label[CELL_MAX];
    RESULT_EACH (row, result, rows) {
        const struct result_item *named = result_get(result, row, "queries");
        const struct result_item *one = result_first(result, named);
        if (!one || !result_key(result, row))
            continue;
        label_text(label, result_key(result, row));
        text_addf(out, "%s%s:", indent, label);
        for (const char *comma = ""; one; one = result_next(result, named, one), comma = ",")
            text_addf(out, "%s %s (z = %.1f)", comma,
                      plain_text(result_string(result, result_get(result, one, "key"))).text,
                      result_value(result_get(result, one, "z")));
        text_add(out, "\n");
    }
}

/* Only the first rows if there are more than `max`. */
static void write_table(const struct result *result, const struct result_item *rows, size_t max,
                        bool color, struct text *out)
{
    struct columns columns;
    struct table table;
    size_t count = 0;
    find_columns(result, rows, &columns);
    table_init(&table, columns.items, columns.count);
    RESULT_EACH (row, result, rows)
        if (count++ < max)
            add_row(&table, result, row, &columns);
    table_print(&table, "     ", color, out);
    if (count > max)
        text_addf(out, "     ... %zu more: --json has all\n", count - max);
    write_named(result, rows, "     ", out);
}

static void write_data(const struct result *result, const struct result_item *data, size_t max,
                       bool color, struct text *out)
{
    char label[CELL_MAX];
    RESULT_EACH (child, result, data) {
        if (!result_key(result, child) || !result_first(result, child))
            continue;
        label_text(label, result_key(result, child));
        if (is_table(result, child)) {
            text_addf(out, "\n   %s\n", label);
            write_table(result, child, max, color, out);
        } else if (child->kind == RESULT_GROUP) {
            text_addf(out, "\n   %s\n", label);
            write_list(result, child, "     ", out);
            write_data(result, child, max, color, out);
        }
    }
}

/* A group whose items are already rows, such as the outliers, is one table. */
static void write_all_data(const struct result *result, size_t max, bool color, struct text *out)
{
    const struct result_item *data = result_find(result, "data");
    if (is_table(result, data)) {
        text_add(out, "\n");
        write_table(result, data, max, color, out);
    } else {
        write_data(result, data, max, color, out);
    }
}

/* ---- in brief: the finding ---- */

enum { WIDTH = 78, LABEL_INDENT = 14, FINDING_LINES = 2 };

/* Length of the words from `at` that fit on a line. */
static size_t fitting(const char *at, size_t width)
{
    size_t columns = 0, end = 0, i = 0;
    for (; at[i]; i++) {
        if (at[i] == ' ')
            end = i;
        columns += !utf8_is_continuation(at[i]);
        if (columns > width)
            return end ? end : i;
    }
    return i;
}

size_t analysis_wrap(struct text *out, const char *label, size_t indent, size_t max,
                     const char *words)
{
    size_t width = WIDTH - indent, lines = 0;
    text_addf(out, "%-*s", (int)indent, label);
    for (const char *at = words; *at && lines < max; lines++) {
        bool last = lines + 1 == max;
        size_t length = fitting(at, last ? width - 4 : width);
        if (last && strlen(at) <= fitting(at, width))
            length = strlen(at);
        if (lines)
            text_addf(out, "%*s", (int)indent, "");
        text_addf(out, "%.*s%s\n", (int)length, at, last && at[length] ? " ..." : "");
        at += length;
        at += *at == ' ';
    }
    return lines;
}

/* "86.7 % correct (95 % CI: 75.8 % to 93.1 %)": a share has no ±. */
static void add_phrase(const struct result *result, const struct result_phrase *phrase,
                       struct text *out)
{
    const struct result_item *item = result_find(result, phrase->path);
    char figure[CELL_MAX], high[CELL_MAX];
    if (!result_is_known(item) || (item->kind == RESULT_COUNT && item->number == 0))
        return;
    if (item->kind == RESULT_TEXT)
        str_copy(figure, sizeof figure, plain_text(result_string(result, item)).text);
    else if (item->kind == RESULT_NUMBER && !item->unit[0] && !is_known(item->error))
        str_format(figure, sizeof figure, "%.*f", fabs(item->number) < 10 ? 2 : 0, item->number);
    else
        number_text(figure, item->number, item->error, item->unit);
    text_addf(out, "%s%s%s", phrase->before + (out->length ? 0 : strspn(phrase->before, ", ")),
              figure, phrase->after);
    if (is_known(item->low) && is_known(item->high) && strcmp(item->unit, "%") == 0) {
        number_text(figure, item->low, UNKNOWN, item->unit);
        number_text(high, item->high, UNKNOWN, item->unit);
        text_addf(out, " (95 %% CI: %s to %s)", figure, high);
    }
}

static size_t put_finding(const struct result *result, struct text *out)
{
    struct text words = {0};
    char label[32];
    if (result->err == ERR_NO_DATA)
        text_addf(&words, "not enough data: %s", result->why.text);
    for (const struct result_phrase *phrase = result->finding; phrase && phrase->path; phrase++)
        add_phrase(result, phrase, &words);
    str_format(label, sizeof label, "   %s", result->name);
    size_t lines = analysis_wrap(out, label, LABEL_INDENT, FINDING_LINES,
                                 words.length ? text_get(&words) : "none");
    text_release(&words);
    return lines;
}

/* Notes and warnings of all results, each once. */
static size_t gather_warnings(const struct result *results, size_t count, struct text *out)
{
    size_t found = 0;
    for (size_t i = 0; i < 2 * count; i++) {
        const struct result *result = &results[i % count];
        const struct text *lines = i < count ? &result->notes : &result->warnings;
        for (const char *line = NULL; (line = result_line(lines, line));) {
            const char *before = NULL;
            while ((before = result_line(out, before)) && strcmp(before, line) != 0)
                continue;
            if (!before && ++found)
                result_add_line(out, "%s", line);
        }
    }
    return found;
}

/* As many as fit into `lines` lines, and the number of further ones. */
static void put_warnings(const struct result *results, size_t count, size_t lines, struct text *out)
{
    struct text all = {0};
    size_t left = gather_warnings(results, count, &all), used = 0;
    for (const char *line = NULL; (line = result_line(&all, line)); left--) {
        struct text words = {0};
        bool fits = used + FINDING_LINES + (left > 1) <= lines;
        text_addf(&words, "warning: %s", plain_text(line).text);
        if (fits)
            used += analysis_wrap(out, "", LABEL_INDENT, FINDING_LINES, text_get(&words));
        text_release(&words);
        if (!fits)
            break;
    }
    if (left)
        text_addf(out, "%*s%zu more warning%s: -v shows %s\n", LABEL_INDENT, "", left,
                  left == 1 ? "" : "s", left == 1 ? "it" : "them");
    text_release(&all);
}

void analysis_findings(const struct result *results, size_t count, size_t lines, struct text *out)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        used += put_finding(&results[i], out);
    put_warnings(results, count, lines > used ? lines - used : 0, out);
}

void analysis_brief(const struct result *result, size_t rows, bool color, struct text *out)
{
    struct text words = {0};
    if (result->err == ERR_NO_DATA)
        text_addf(&words, "not enough data: %s", result->why.text);
    for (const struct result_phrase *phrase = result->finding; phrase && phrase->path; phrase++)
        add_phrase(result, phrase, &words);
    analysis_wrap(out, "", 1, 4, text_get(&words));
    if (!result->err)
        write_all_data(result, rows, color, out);
    put_warnings(result, 1, FINDING_LINES, out);
    text_release(&words);
}

void analysis_text(const struct result *result, bool color, struct text *out)
{
    text_addf(out, "%s%s%s\n", color ? "\033[1m " : " ", result->name, color ? "\033[0m" : "");
    if (result->err == ERR_NO_DATA) {
        text_addf(out, "   not enough data: %s\n", result->why.text);
    } else {
        write_list(result, result_find(result, "summary"), "   ", out);
        write_all_data(result, SIZE_MAX, color, out);
    }
    for (const char *line = NULL; (line = result_line(&result->warnings, line));)
        text_addf(out, "   warning: %s\n", plain_text(line).text);
    text_add(out, "\n");
}
