/* A result as CSV: the list that it marks as its table, or one row per figure. */
#include <string.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/print/layout.h"
#include "report/print/print.h"
#include "report/text/format.h"

/* ---- one row per figure ---- */

/* The first two only for several results. */
static const struct table_column FIGURE_COLUMNS[] = {
    {"source", false}, {"result", false}, {"path", false}, {"value", true},
    {"unit", false},   {"error", true},   {"low", true},   {"high", true},
};
enum { ALL_COLUMNS = COUNT_OF(FIGURE_COLUMNS), BEFORE = 2 };

/* A table of figures, and what is in the columns before each; NULL: without these columns. */
struct figures {
    struct table *table;
    const char *source, *name;
};

static void add_value(struct table *table, const struct result_item *item, double scale)
{
    switch (item ? item->kind : RESULT_NULL) {
    case RESULT_NUMBER:
        if (str_equal(item->unit, UNIT_TIME) && is_known(item->number))
            table_addf(table, "%.6f", item->number);
        else
            table_add_number(table, scale != 0 ? scale * item->number : item->number);
        break;
    case RESULT_COUNT:
        table_addf(table, "%lld", (long long)item->integer);
        break;
    case RESULT_FLAG:
        if (scale != 0)
            table_add_number(table, scale * item->number);
        else
            table_add(table, item->number != 0 ? "true" : "false");
        break;
    case RESULT_TEXT:
    case RESULT_JSON:
        table_add(table, text_or_empty(item->text));
        break;
    default:
        table_add(table, "");
    }
}

static void add_figure(const struct figures *to, const char *path, const struct result_item *item)
{
    struct table *table = to->table;
    if (to->source) {
        table_add(table, to->source);
        table_add(table, to->name);
    }
    table_add(table, path);
    add_value(table, item, 0);
    table_add(table, item->unit);
    table_add_number(table, item->error);
    table_add_number(table, item->low);
    table_add_number(table, item->high);
}

/* Paths as result_find takes them. */
static void add_figures(const struct figures *to, const char *above,
                        const struct result_item *group)
{
    size_t index = 0;
    RESULT_EACH (item, group) {
        char path[512];
        const char *key = item->key;
        if (!result_is_figure(item) || item->kind == RESULT_ASIDE)
            continue;
        if (key)
            chars_format(path, "%s%s%s", above, above[0] ? "." : "", key);
        else
            chars_format(path, "%s.%zu", above, index);
        index++;
        if (item->kind == RESULT_GROUP || item->kind == RESULT_LIST)
            add_figures(to, path, item);
        else
            add_figure(to, path, item);
    }
}

void result_rows_init(struct table *rows)
{
    table_init(rows, FIGURE_COLUMNS, ALL_COLUMNS);
}

void result_rows_add(struct table *rows, const char *source, const char *name,
                     const struct result *result)
{
    add_figures(&(struct figures){rows, source, name}, "", result->items);
}

/* ---- its table ---- */

/* A row, and what the * in the path of the table stands for. */
struct table_row {
    const struct result_item *outer, *row;
};

/* The error or a bound of a figure. */
static double property(const struct result_item *item, const char *name)
{
    if (!item)
        return UNKNOWN;
    if (str_equal(name, "error"))
        return item->error;
    return str_equal(name, "low") ? item->low : item->high;
}

static void add_cell(struct table *table, const struct table_row *row,
                     const struct result_column *column)
{
    const char *key = row->row->key;
    const char *of = strchr(column->path, ':');
    bool is_outer = column->path[0] == '^';
    char path[RESULT_KEY_MAX];
    if (!column->path[0] && key) {
        table_add(table, key);
        return;
    }
    chars_format(path, "%.*s", (int)strcspn(column->path + is_outer, ":"), column->path + is_outer);
    const struct result_item *item = result_at(is_outer ? row->outer : row->row, path);
    if (of)
        table_add_number(table, (column->scale != 0 ? column->scale : 1) * property(item, of + 1));
    else
        add_value(table, item, column->scale);
}

static void add_row(struct table *table, const struct table_row *row,
                    const struct result_column *columns)
{
    for (const struct result_column *column = columns; column->title; column++)
        add_cell(table, row, column);
}

static void add_rows(struct table *table, const struct result_item *outer,
                     const struct result_item *rows, const struct result_column *columns)
{
    RESULT_EACH (row, rows)
        add_row(table, &(struct table_row){outer, row}, columns);
}

/* Those at the path, and for "list.*.rows" those of every item of the list. */
static void add_all_rows(struct table *table, const struct result *result,
                         const struct result_column *columns)
{
    const char *star = strstr(result->rows, ".*.");
    char list[RESULT_KEY_MAX];
    if (!result->rows[0] && result->items->kind != RESULT_LIST) {
        add_row(table, &(struct table_row){NULL, result->items}, columns);
        return;
    }
    if (!star) {
        add_rows(table, NULL, result_find(result, result->rows), columns);
        return;
    }
    chars_format(list, "%.*s", (int)(star - result->rows), result->rows);
    RESULT_EACH (outer, result_find(result, list))
        add_rows(table, outer, result_at(outer, star + strlen(".*.")), columns);
}

static void write_rows(const struct result *result, const struct result_column *columns,
                       struct text *out)
{
    struct table_column titles[TABLE_COLUMNS_MAX];
    struct table table;
    size_t count = 0;
    for (; columns[count].title && count < TABLE_COLUMNS_MAX; count++)
        titles[count] = (struct table_column){columns[count].title, false};
    table_init(&table, titles, count);
    add_all_rows(&table, result, columns);
    table_write_csv(&table, out);
    table_release(&table);
}

/* ---- every figure of its rows ---- */

struct csv_columns {
    struct result_column items[TABLE_COLUMNS_MAX + 1];
    char titles[TABLE_COLUMNS_MAX][RESULT_KEY_MAX], paths[TABLE_COLUMNS_MAX][RESULT_KEY_MAX];
    size_t count;
};

static void add_column(struct csv_columns *columns, const char *path, const char *property)
{
    size_t at = columns->count;
    char title[RESULT_KEY_MAX];
    chars_format(title, "%s%s%s", path, property[0] ? "_" : "", property);
    for (size_t i = 0; i < columns->count; i++)
        if (str_equal(columns->titles[i], title))
            return;
    if (at == TABLE_COLUMNS_MAX)
        return;
    chars_copy(columns->titles[at], title);
    chars_format(columns->paths[at], "%s%s%s", path, property[0] ? ":" : "", property);
    columns->items[at] = (struct result_column){columns->titles[at], columns->paths[at], 0};
    columns->count++;
}

/* The figures that a row has a value for, with their errors and bounds; those of its groups by path. */
static void find_columns(const struct result_item *group, const char *above,
                         struct csv_columns *columns)
{
    RESULT_EACH (cell, group) {
        char path[RESULT_KEY_MAX];
        const char *key = cell->key;
        if (!key)
            continue;
        chars_format(path, "%s%s%s", above, above[0] ? "." : "", key);
        if (cell->kind == RESULT_GROUP)
            find_columns(cell, path, columns);
        if (!layout_is_shown(cell))
            continue;
        add_column(columns, path, "");
        if (is_known(cell->error))
            add_column(columns, path, "error");
        if (is_known(cell->low) && is_known(cell->high)) {
            add_column(columns, path, "low");
            add_column(columns, path, "high");
        }
    }
}

static void write_all_columns(const struct result *result, const struct result_item *rows,
                              struct text *out)
{
    struct csv_columns columns = {.count = 0};
    if (rows->kind == RESULT_GROUP)
        columns.items[columns.count++] = (struct result_column){"key", "", 0};
    RESULT_EACH (row, rows)
        find_columns(row, "", &columns);
    write_rows(result, columns.items, out);
}

void result_to_csv(const struct result *result, struct text *out)
{
    const struct result_item *rows = result->rows ? result_find(result, result->rows) : NULL;
    if (result->rows && result->columns) {
        write_rows(result, result->columns, out);
    } else if (rows) {
        write_all_columns(result, rows, out);
    } else {
        struct table table;
        table_init(&table, FIGURE_COLUMNS + BEFORE, ALL_COLUMNS - BEFORE);
        add_figures(&(struct figures){&table, NULL, NULL}, "", result->items);
        table_write_csv(&table, out);
        table_release(&table);
    }
}
