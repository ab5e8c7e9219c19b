/* A result as CSV: the list that it marks as its table, or one row per figure. */
#include "core/result.h"
#include "core/text.h"
#include "report/print/layout.h"
#include "report/print/print.h"
#include "report/text/format.h"

/* ---- one row per figure ---- */

static const struct table_column FIGURE_COLUMNS[] = {
    {"path", false}, {"value", true}, {"unit", false},
    {"error", true}, {"low", true},   {"high", true},
};

static void add_value(struct table *table, const struct result *result,
                      const struct result_item *item, double scale)
{
    switch (item ? item->kind : RESULT_NULL) {
    case RESULT_NUMBER:
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
        table_add(table, item->text ? result_string(result, item) : "");
        break;
    default:
        table_add(table, "");
    }
}

static void add_figure(struct table *table, const struct result *result, const char *path,
                       const struct result_item *item)
{
    table_add(table, path);
    add_value(table, result, item, 0);
    table_add(table, item->unit);
    table_add_number(table, item->error);
    table_add_number(table, item->low);
    table_add_number(table, item->high);
}

/* Paths as result_find takes them. */
static void add_figures(struct table *table, const struct result *result, const char *above,
                        const struct result_item *group)
{
    size_t index = 0;
    RESULT_EACH (item, result, group) {
        char path[512];
        const char *key = result_key(result, item);
        if (!result_is_figure(item) || item->kind == RESULT_ASIDE)
            continue;
        if (key)
            str_format(path, sizeof path, "%s%s%s", above, above[0] ? "." : "", key);
        else
            str_format(path, sizeof path, "%s.%zu", above, index);
        index++;
        if (item->kind == RESULT_GROUP || item->kind == RESULT_LIST)
            add_figures(table, result, path, item);
        else
            add_figure(table, result, path, item);
    }
}

/* ---- its table ---- */

static void add_row(struct table *table, const struct result *result, const struct result_item *row,
                    const struct result_column *columns)
{
    for (; columns->title; columns++)
        add_value(table, result, result_at(result, row, columns->path), columns->scale);
}

static void write_rows(const struct result *result, const struct result_item *rows,
                       const struct result_column *columns, struct text *out)
{
    struct table_column titles[TABLE_COLUMNS_MAX];
    struct table table;
    size_t count = 0;
    for (; columns[count].title && count < TABLE_COLUMNS_MAX; count++)
        titles[count] = (struct table_column){columns[count].title, false};
    table_init(&table, titles, count);
    if (rows == result->items) {
        add_row(&table, result, rows, columns);
    } else {
        RESULT_EACH (row, result, rows)
            add_row(&table, result, row, columns);
    }
    table_write_csv(&table, out);
    table_release(&table);
}

void result_to_csv(const struct result *result, struct text *out)
{
    const struct result_item *rows = result->rows ? result_find(result, result->rows) : NULL;
    if (rows && result->columns) {
        write_rows(result, rows, result->columns, out);
    } else if (rows) {
        struct layout layout;
        struct result_column columns[TABLE_COLUMNS_MAX + 1] = {0};
        layout_columns(result, rows, &layout);
        for (size_t i = 0; i < layout.count; i++)
            columns[i] = (struct result_column){layout.keys[i], layout.keys[i], 0};
        write_rows(result, rows, columns, out);
    } else {
        struct table table = TABLE(FIGURE_COLUMNS);
        add_figures(&table, result, "", result->items);
        table_write_csv(&table, out);
        table_release(&table);
    }
}
