/* One table, several formats: aligned text for a terminal (columns as wide as their widest cell, counted in
 * characters as a terminal shows them), Markdown and CSV.  A struct table owns its cells; release it. */
#ifndef IPW_REPORT_TABLE_H
#define IPW_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct text;

enum { TABLE_COLUMNS_MAX = 48 };

struct table_column {
    const char *title;
    bool right; /* numbers are right-aligned */
};

struct table {
    const struct table_column *columns; /* not owned */
    size_t width;
    char **cells;
    size_t count, capacity;
    bool failed;
};

/* An empty one of these columns, an array that outlives it. */
#define TABLE(array) ((struct table){.columns = (array), .width = sizeof(array) / sizeof *(array)})
void table_init(struct table *table, const struct table_column *columns, size_t width);
void table_release(struct table *table);

/* The next cell, row by row. */
void table_add(struct table *table, const char *cell);
void table_addf(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);
/* "-" where the value is unknown. */
void table_add_known(struct table *table, double value, const char *format, ...) PRINTF_LIKE(3, 4);
/* A number for CSV: integers with all their digits, others with nine; UNKNOWN is empty. */
void table_add_number(struct table *table, double value);

/* Header and rows, each behind `indent`; bold header when color.  Empty columns are omitted. */
void table_write(const struct table *table, const char *indent, bool color, struct text *out);

/* The same, and releases the table. */
void table_print(struct table *table, const char *indent, bool color, struct text *out);

/* Markdown, with empty columns; special characters are escaped. */
void table_write_markdown(const struct table *table, struct text *out);
void markdown_add(struct text *out, const char *string);

/* A header of titles and the rows. */
void table_write_csv(const struct table *table, struct text *out);

/* The text format in pieces, for a table that grows on the screen block by block: widths (one per column,
 * zero at first, kept by the caller) only ever grow, so that later blocks align with earlier ones. */
void table_widen(const struct table *table, size_t *widths);
void table_write_header(const struct table *table, const size_t *widths, const char *indent,
                        bool color, struct text *out);
void table_write_rows(const struct table *table, const size_t *widths, const char *indent,
                      struct text *out);

#endif
