#include "report/text/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/grow.h"
#include "core/text.h"
#include "core/units.h"
#include "core/utf8.h"

void table_init(struct table *table, const struct table_column *columns, size_t width)
{
    *table = (struct table){.columns = columns, .width = width};
}

void table_release(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct table){0};
}

void table_add(struct table *table, const char *cell)
{
    char **cells = grow(table->cells, &table->capacity, table->count, sizeof *cells);
    if (cells)
        table->cells = cells;
    char *copy = cells ? strdup(cell) : NULL;
    if (!copy) {
        table->failed = true;
        return;
    }
    table->cells[table->count++] = copy;
}

void table_add_number(struct table *table, double value)
{
    static const double EXACT_MAX =
        9007199254740992.; /* above 2^53 not every integer is a double */
    char cell[40] = "";
    if (is_known(value))
        str_format(cell, sizeof cell,
                   fabs(value) < EXACT_MAX && value == trunc(value) ? "%.0f" : "%.9g", value);
    table_add(table, cell);
}

static void PRINTF_LIKE(2, 0) add_formatted(struct table *table, const char *format, va_list args)
{
    char cell[256];
    vsnprintf(cell, sizeof cell, format, args);
    table_add(table, cell);
}

void table_addf(struct table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_formatted(table, format, args);
    va_end(args);
}

void table_add_known(struct table *table, double value, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (is_known(value))
        add_formatted(table, format, args);
    else
        table_add(table, "-");
    va_end(args);
}

size_t display_width(const char *string)
{
    size_t width = 0;
    for (; *string; string++)
        width += !utf8_is_continuation(*string); /* continuation bytes take no column */
    return width;
}

/* Of a cell as it is shown: it may hold anything, and CSV keeps it as it is. */
static size_t cell_width(const char *cell)
{
    size_t width = 0;
    for (size_t left = strlen(cell), taken; left; cell += taken, left -= taken) {
        char shown[PLAIN_MAX + 1];
        shown[plain_character(cell, left, shown, &taken)] = '\0';
        width += display_width(shown);
    }
    return width;
}

/* Width of a column, 0 when there are rows and none has anything in it. */
static size_t column_width(const struct table *table, size_t column)
{
    size_t widest = 0;
    for (size_t i = column; i < table->count; i += table->width) {
        size_t width = cell_width(table->cells[i]);
        if (width > widest)
            widest = width;
    }
    size_t title = display_width(table->columns[column].title);
    return widest == 0 && table->count ? 0 : widest > title ? widest : title;
}

static void pad(struct text *out, size_t spaces)
{
    while (spaces-- > 0)
        text_add(out, " ");
}

static void write_row(const struct table *table, const size_t *widths, const char *const *cells,
                      const char *indent, struct text *out)
{
    size_t owed = 0; /* spaces that only a further cell makes visible */
    text_add(out, indent);
    for (size_t c = 0; c < table->width; c++) {
        if (widths[c] == 0)
            continue;
        size_t space = widths[c] - cell_width(cells[c]);
        if (!cells[c][0]) {
            owed += 2 + space;
            continue;
        }
        pad(out, owed + (table->columns[c].right ? space : 0));
        text_add_plain(out, cells[c]);
        owed = 2 + (table->columns[c].right ? 0 : space);
    }
    text_add(out, "\n");
}

static bool is_usable(const struct table *table, struct text *out)
{
    bool usable = !table->failed && table->width <= TABLE_COLUMNS_MAX;
    out->failed = out->failed || !usable;
    return usable;
}

void table_widen(const struct table *table, size_t *widths)
{
    for (size_t c = 0; c < table->width; c++) {
        size_t width = column_width(table, c);
        if (width > widths[c])
            widths[c] = width;
    }
}

void table_write_header(const struct table *table, const size_t *widths, const char *indent,
                        bool color, struct text *out)
{
    const char *titles[TABLE_COLUMNS_MAX];
    if (!is_usable(table, out))
        return;
    for (size_t c = 0; c < table->width; c++)
        titles[c] = table->columns[c].title;
    text_add(out, color ? "\033[1m" : "");
    write_row(table, widths, titles, indent, out);
    text_add(out, color ? "\033[0m" : "");
}

void table_write_rows(const struct table *table, const size_t *widths, const char *indent,
                      struct text *out)
{
    if (!is_usable(table, out))
        return;
    for (size_t i = 0; i + table->width <= table->count; i += table->width)
        write_row(table, widths, (const char *const *)&table->cells[i], indent, out);
}

void table_write(const struct table *table, const char *indent, bool color, struct text *out)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    if (!is_usable(table, out))
        return;
    table_widen(table, widths);
    table_write_header(table, widths, indent, color, out);
    table_write_rows(table, widths, indent, out);
}

void table_print(struct table *table, const char *indent, bool color, struct text *out)
{
    table_write(table, indent, color, out);
    table_release(table);
}

/* ---- Markdown ---- */

/* What would end a cell, or begin markup, is escaped. */
void markdown_add(struct text *out, const char *string)
{
    for (size_t left = strlen(string), taken; left; string += taken, left -= taken) {
        char shown[PLAIN_MAX];
        size_t length = plain_character(string, left, shown, &taken);
        if (strchr("|\\`*_<>[]", shown[0]))
            text_add(out, "\\");
        text_add_bytes(out, shown, length);
    }
}

void table_write_markdown(const struct table *table, struct text *out)
{
    if (!is_usable(table, out))
        return;
    for (size_t c = 0; c < table->width; c++)
        text_addf(out, "| %s ", table->columns[c].title);
    text_add(out, "|\n");
    for (size_t c = 0; c < table->width; c++)
        text_addf(out, "|%s", table->columns[c].right ? "---:" : "---");
    text_add(out, "|\n");
    for (size_t i = 0; i + table->width <= table->count; i += table->width) {
        for (size_t c = 0; c < table->width; c++) {
            text_add(out, "| ");
            markdown_add(out, table->cells[i + c]);
            text_add(out, " ");
        }
        text_add(out, "|\n");
    }
}

/* ---- CSV ---- */

void table_write_csv(const struct table *table, struct text *out)
{
    if (!is_usable(table, out))
        return;
    for (size_t c = 0; c < table->width; c++)
        text_addf(out, "%s%s", c ? "," : "", table->columns[c].title);
    text_add(out, "\n");
    for (size_t i = 0; i + table->width <= table->count; i += table->width) {
        for (size_t c = 0; c < table->width; c++) {
            text_add(out, c ? "," : "");
            csv_add_text(out, table->cells[i + c]);
        }
        text_add(out, "\n");
    }
}
