/* Tables of text: columns as wide as their widest cell, counted in characters as a terminal shows
 * them.  A struct table owns its cells; release it. */
#ifndef IPW_REPORT_TABLE_H
#define IPW_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct text;

enum { TABLE_COLUMNS_MAX = 32 };

struct table_column {
    const char *title;
    bool right; /* numbers stand at the right */
};

struct table {
    const struct table_column *columns; /* not owned */
    size_t width;
    char **cells;
    size_t count, capacity;
    bool failed;
};

void table_init(struct table *table, const struct table_column *columns, size_t width);
void table_release(struct table *table);

/* The next cell, row by row. */
void table_add(struct table *table, const char *cell);
void table_addf(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);

/* Header and rows, each behind `indent`; bold header when colour.  Empty columns are left out. */
void table_write(const struct table *table, const char *indent, bool colour, struct text *out);

/* The same in pieces, for a table that grows on the screen block by block: widths (one a column,
 * zero at first, kept by the caller) only ever grow, so that later blocks stand under earlier
 * ones. */
void table_widen(const struct table *table, size_t *widths);
void table_write_header(const struct table *table, const size_t *widths, const char *indent,
                        bool colour, struct text *out);
void table_write_rows(const struct table *table, const size_t *widths, const char *indent,
                      struct text *out);

/* Columns a terminal needs for UTF-8 text (every character counted as one). */
size_t display_width(const char *string);

#endif
