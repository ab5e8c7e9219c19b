/* The layout that the text, the Markdown and the CSV of a result share: labels, figures as text, columns of a table.
 * Nothing is owned here: a layout points into its result. */
#ifndef IPW_REPORT_PRINT_LAYOUT_H
#define IPW_REPORT_PRINT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "report/text/format.h"

struct result;
struct result_item;

enum { LAYOUT_CELL_MAX = 256 };

/* Each writes into a buffer of LAYOUT_CELL_MAX bytes. */
void layout_label(char *to, const char *key); /* "energy_per_token_j" -> "energy per token j" */
void layout_number(char *to, double value, double error, const char *unit);
/* A figure with its ±, its interval and how many queries it covers.  in_list: beside its label, not in a table. */
void layout_value(char *to, const struct result_item *group, const struct result_item *item,
                  bool in_list);

/* Whether it is a figure of its own and known: an error, an interval or a count of queries belongs to another.  Raw
 * JSON is not for people. */
bool layout_is_shown(const struct result_item *item);

/* Whether its items are groups of figures: the rows of a table. */
bool layout_is_table(const struct result_item *rows);

struct layout {
    struct table_column items[TABLE_COLUMNS_MAX];
    const char *keys[TABLE_COLUMNS_MAX]; /* "": the key of the row */
    char titles[TABLE_COLUMNS_MAX][64];
    size_t count;
};

/* Every key for which some row has a value; rows may lack some. */
void layout_columns(const struct result_item *rows, struct layout *out);

/* Fills a table, which points to the layout, with at most `max` rows; returns how many there are. */
size_t layout_rows(const struct result_item *rows, size_t max, const struct layout *layout,
                   struct table *table);

#endif
