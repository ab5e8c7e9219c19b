/* Results as text: all figures, as lists and tables. */
#include <stdint.h>

#include "core/result.h"
#include "core/text.h"
#include "report/print/layout.h"
#include "report/print/print.h"

enum { LABEL_WIDTH = 30 };

static void write_list(const struct result_item *group, const char *indent, struct text *out)
{
    char label[LAYOUT_CELL_MAX], value[LAYOUT_CELL_MAX];
    RESULT_EACH (item, group) {
        if (!layout_is_shown(item) || !item->key)
            continue;
        layout_label(label, item->key);
        layout_value(value, group, item, true);
        text_addf(out, "%s%-*s %s\n", indent, LABEL_WIDTH, label, value);
    }
}

/* ---- tables ---- */

/* Queries named in a row: "joules: q000012 (z = 8.1), ..." */
static void write_named(const struct result_item *rows, const char *indent, struct text *out)
{
    char label[LAYOUT_CELL_MAX];
    RESULT_EACH (row, rows) {
        const struct result_item *named = result_get(row, "queries");
        const struct result_item *one = result_first(named);
        if (!one || !row->key)
            continue;
        layout_label(label, row->key);
        text_addf(out, "%s%s:", indent, label);
        for (const char *comma = ""; one; one = result_next(named, one), comma = ",")
            text_addf(out, "%s %s (z = %.1f)", comma,
                      plain_text(result_string(result_get(one, "key"))).text,
                      result_value(result_get(one, "z")));
        text_add(out, "\n");
    }
}

/* Only the first rows if there are more than `max`. */
static void write_table(const struct result_item *rows, size_t max, bool color, struct text *out)
{
    struct layout layout;
    struct table table;
    layout_columns(rows, &layout);
    size_t count = layout_rows(rows, max, &layout, &table);
    table_print(&table, "     ", color, out);
    if (count > max)
        text_addf(out, "     ... %zu more: --json has all\n", count - max);
    write_named(rows, "     ", out);
}

static void write_data(const struct result_item *data, size_t max, bool color, struct text *out)
{
    char label[LAYOUT_CELL_MAX];
    RESULT_EACH (child, data) {
        if (!child->key || !result_first(child) || child->kind == RESULT_ASIDE)
            continue;
        layout_label(label, child->key);
        if (layout_is_table(child)) {
            text_addf(out, "\n   %s\n", label);
            write_table(child, max, color, out);
        } else if (child->kind == RESULT_GROUP) {
            text_addf(out, "\n   %s\n", label);
            write_list(child, "     ", out);
            write_data(child, max, color, out);
        }
    }
}

/* A group whose items are already rows, such as the outliers, is one table. */
void result_tables(const struct result *result, size_t max, bool color, struct text *out)
{
    const struct result_item *data = result_find(result, "data");
    if (layout_is_table(data)) {
        text_add(out, "\n");
        write_table(data, max, color, out);
    } else {
        write_data(data, max, color, out);
    }
}

void result_in_full(const struct result *result, bool color, struct text *out)
{
    text_addf(out, "%s%s%s\n", color ? "\033[1m " : " ", result->name, color ? "\033[0m" : "");
    if (result->err == ERR_NO_DATA) {
        text_addf(out, "   not enough data: %s\n", result->why.text);
    } else {
        write_list(result_find(result, "summary"), "   ", out);
        result_tables(result, SIZE_MAX, color, out);
    }
    for (const char *line = NULL; (line = result_line(&result->warnings, line));)
        text_addf(out, "   warning: %s\n", plain_text(line).text);
    text_add(out, "\n");
}

void result_to_text(const struct result *result, bool color, struct text *out)
{
    write_list(result->items, "", out);
    write_data(result->items, SIZE_MAX, color, out);
    for (const char *line = NULL; (line = result_line(&result->warnings, line));)
        text_addf(out, "warning: %s\n", plain_text(line).text);
}
