/* A result as Markdown: a list of the figures of each group under its heading, and a table of each list. */
#include <stdint.h>

#include "core/result.h"
#include "core/text.h"
#include "report/print/layout.h"
#include "report/print/print.h"

enum { HEADING_MAX = 6 };

static void write_figures(const struct result_item *group, struct text *out)
{
    char label[LAYOUT_CELL_MAX], value[LAYOUT_CELL_MAX];
    const char *before = "\n";
    RESULT_EACH (item, group) {
        if (!layout_is_shown(item) || !item->key)
            continue;
        layout_label(label, item->key);
        layout_value(value, group, item, true);
        text_addf(out, "%s- ", before);
        before = "";
        markdown_add(out, label);
        text_add(out, ": ");
        markdown_add(out, value);
        text_add(out, "\n");
    }
}

static void write_table(const struct result_item *rows, struct text *out)
{
    struct layout layout;
    struct table table;
    layout_columns(rows, &layout);
    layout_rows(rows, SIZE_MAX, &layout, &table);
    text_add(out, "\n");
    table_write_markdown(&table, out);
    table_release(&table);
}

static void write_heading(const char *title, int level, struct text *out)
{
    for (int i = 0; i < level && i < HEADING_MAX; i++)
        text_add(out, "#");
    text_add(out, " ");
    markdown_add(out, title);
    text_add(out, "\n");
}

static void write_label(const struct result_item *item, int level, struct text *out)
{
    char label[LAYOUT_CELL_MAX];
    layout_label(label, item->key);
    text_add(out, "\n");
    write_heading(label, level, out);
}

static void write_groups(const struct result_item *group, int level, struct text *out)
{
    RESULT_EACH (item, group) {
        if (!item->key || !result_first(item) || item->kind == RESULT_ASIDE)
            continue;
        if (layout_is_table(item)) {
            write_label(item, level, out);
            write_table(item, out);
        } else if (item->kind == RESULT_GROUP) {
            write_label(item, level, out);
            write_figures(item, out);
            write_groups(item, level + 1, out);
        }
    }
}

void result_to_section(const struct result *result, const char *title, int level, struct text *out)
{
    write_heading(title, level, out);
    write_figures(result->items, out);
    write_groups(result->items, level + 1, out);
    for (const char *line = NULL; (line = result_line(&result->warnings, line));) {
        text_add(out, "\n**warning**: ");
        markdown_add(out, line);
        text_add(out, "\n");
    }
}

void result_to_markdown(const struct result *result, struct text *out)
{
    result_to_section(result, result->name, 1, out);
}
