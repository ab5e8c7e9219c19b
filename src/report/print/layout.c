/* What text, Markdown and CSV of a result share: labels, figures as text, and the columns of a table. */
#include "report/print/layout.h"

#include <string.h>

#include "core/clock.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/format.h"

/* ---- figures ---- */

/* With the digits of the interval beside it, if there is one. */
static void put_number(char *to, double value, double error, double low, double high,
                       const char *unit)
{
    bool is_ms = str_equal(unit, "ms"); /* in seconds, with a suitable prefix */
    double scale = is_ms ? 1e-3 : 1;
    format_figure_beside(to, scale * value, scale * error, scale * low, scale * high,
                         is_ms ? "s" : unit);
}

void layout_number(char *to, double value, double error, const char *unit)
{
    if (str_equal(unit, UNIT_TIME)) {
        clock_text(to, from_seconds(value));
        return;
    }
    put_number(to, value, error, UNKNOWN, UNKNOWN, unit);
}

/* Energies also have the uncertainty of their sensors, which a CI does not include: ± of other figures does. */
static bool has_sensors(const char *unit)
{
    return str_equal(unit, "J") || str_equal(unit, "1/J") || str_equal(unit, "1/W");
}

/* With the number of queries, if recorded. */
static void add_interval(char *to, const struct result_item *item, bool in_list)
{
    char low[LAYOUT_CELL_MAX], high[LAYOUT_CELL_MAX], count[32] = "";
    size_t used = strlen(to);
    layout_number(low, item->low, 0, item->unit);
    layout_number(high, item->high, 0, item->unit);
    if (is_known(item->queries))
        chars_format(count, ", n = %.0f", item->queries);
    if (is_known(item->low) && is_known(item->high))
        str_format(to + used, LAYOUT_CELL_MAX - used, "  (95 %% CI%s: %s to %s%s)",
                   in_list && has_sensors(item->unit) ? " (sampling error only)" : "", low, high,
                   count);
}

void layout_value(char *to, const struct result *result, const struct result_item *group,
                  const struct result_item *item, bool in_list)
{
    double all = result_value(result_get(result, group, "queries"));
    if (item->kind == RESULT_TEXT)
        str_copy(to, LAYOUT_CELL_MAX, plain_text(result_string(result, item)).text);
    else if (item->kind == RESULT_FLAG)
        str_copy(to, LAYOUT_CELL_MAX, item->number != 0 ? "yes" : "no");
    else if (is_known(item->high - item->low))
        put_number(to, item->number, item->error, item->low, item->high, item->unit);
    else
        layout_number(to, item->number, item->error, item->unit);
    if (item->queries < all) /* if it does not cover all */
        str_format(to + strlen(to), LAYOUT_CELL_MAX - strlen(to), " (%.0f of %.0f)", item->queries,
                   all);
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

void layout_label(char *to, const char *key)
{
    str_copy(to, LAYOUT_CELL_MAX, plain_text(key).text);
    drop_unit(to);
    for (char *at = to; *at; at++)
        if (*at == '_')
            *at = ' ';
}

/* Whether an item is a figure of its own: an error, an interval or a count belongs to another. */
bool layout_is_shown(const struct result_item *item)
{
    return result_is_figure(item) && result_is_known(item) && item->kind != RESULT_JSON;
}

/* ---- tables ---- */

bool layout_is_table(const struct result *result, const struct result_item *rows)
{
    const struct result_item *first = result_first(result, rows);
    for (const struct result_item *row = first; row; row = result_next(result, rows, row)) {
        const struct result_item *cell = result_first(result, row);
        if (row->kind != RESULT_GROUP || (cell && cell->kind == RESULT_GROUP))
            return false;
    }
    return first != NULL;
}

static void add_column(struct layout *columns, const char *key, bool right)
{
    char title[LAYOUT_CELL_MAX];
    size_t at = columns->count;
    if (at == TABLE_COLUMNS_MAX)
        return;
    layout_label(title, key);
    chars_copy(columns->titles[at], title);
    columns->keys[at] = key;
    columns->items[at] = (struct table_column){columns->titles[at], right};
    columns->count++;
}

/* Every key for which some row has a value; rows may lack some. */
void layout_columns(const struct result *result, const struct result_item *rows, struct layout *out)
{
    out->count = 0;
    if (rows->kind == RESULT_GROUP)
        add_column(out, "", false);
    RESULT_EACH (row, result, rows)
        RESULT_EACH (cell, result, row)
            if (layout_is_shown(cell) &&
                !str_is_listed(result_key(result, cell), out->keys, out->count))
                add_column(out, result_key(result, cell), cell->kind != RESULT_TEXT);
}

static void add_row(struct table *table, const struct result *result, const struct result_item *row,
                    const struct layout *columns)
{
    char cell[LAYOUT_CELL_MAX];
    for (size_t i = 0; i < columns->count; i++) {
        const struct result_item *item = result_get(result, row, columns->keys[i]);
        chars_copy(cell, "-");
        if (columns->keys[i][0] == '\0')
            layout_label(cell, result_key(result, row));
        else if (result_is_known(item))
            layout_value(cell, result, row, item, false);
        table_add(table, cell);
    }
}

size_t layout_rows(const struct result *result, const struct result_item *rows, size_t max,
                   const struct layout *layout, struct table *table)
{
    size_t count = 0;
    table_init(table, layout->items, layout->count);
    RESULT_EACH (row, result, rows)
        if (count++ < max)
            add_row(table, result, row, layout);
    return count;
}
