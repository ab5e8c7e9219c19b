/* Formatted numbers, by the same rules in every command, page and plot (docs/metrics.md, "How figures are
 * written"): SI prefixes; with an uncertainty two digits of it, and the value to the same place; without one
 * four significant digits; "-" for unknown.  And tables of them.
 * Each number is written into the caller's buffer (FORMAT_MAX bytes are enough), which is returned. */
#ifndef IPW_REPORT_FORMAT_H
#define IPW_REPORT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/units.h"

struct charge;
struct result;
struct result_item;
struct tariff;
struct text;

enum { FORMAT_MAX = 48 };

/* 0.01234, "J" -> "12.34 mJ"; 12345, "J" -> "12.35 kJ"; a value below a thousandth of the smallest prefix is shown as
 * "< 0.001 nJ". */
char *format_si(char *to, double value, const char *unit);

/* A figure as below with two significant digits, for rough estimates: "12 mJ", "5.8 W", "36 /kJ". */
char *format_rough(char *to, double value, const char *unit);

/* Value and standard uncertainty with one prefix, that of the larger: "12.35 ± 0.36 kJ", "0.0 ± 2.3 W".  Without ± if
 * the error is unknown or 0. */
char *format_with_error(char *to, double value, double error, const char *unit);

/* A figure of any unit of record.def: as above, a share in "%", "1/J" and "1/W" by the prefix of the joule or watt
 * ("22 ± 13 /kJ"), "1/s" without one ("411 ± 12 /s"), and a plain number for "". */
char *format_figure(char *to, double value, double error, const char *unit);

/* The same with an interval beside it: the smaller uncertainty decides the digits of the value, so that it is never
 * outside of an interval that is shown with more digits ("205.4 ± 120 /kW" beside 201.1 to 209.8). */
char *format_figure_beside(char *to, double value, double error, double low, double high,
                           const char *unit);

/* A figure in a unit without prefixes: "0.775 ± 0.041 pJ", "989.4 TFLOPS". */
char *format_in(char *to, double value, double error, const char *unit);

/* A p-value: "0.012", "< 0.001"; an upper bound, as at the floor of a permutation test, is rounded up: 0.005 -> "<
 * 0.01". */
char *format_p(char *to, double p, bool is_bound);

/* 0.9934 -> "99.3 %". */
char *format_percent(char *to, double share);
/* "5.0 % unread: at most 93.0 %": what bounds an accuracy; "" if no answer is unread, or their number is unknown. */
char *format_unread(char *to, double unread_share, double accuracy_at_most);

/* "88.0 %", or "88.0 % to 93.0 %" with unread answers: if none or all of them are correct. */
char *format_accuracy(char *to, double accuracy, double unread_share, double accuracy_at_most);

/* How an energy was obtained: "estimated", "measured (counter)", "measured"; for "" "by an unknown method". */
char *format_method(char *to, const char *method);

/* The relative error common to all energies, and what that means: "±60 % common to all, cancels in differences". */
char *format_common(char *to, double share);

/* Bytes with binary prefixes: "1.5 GiB". */
char *format_bytes(char *to, double bytes);

/* Part of a total in one unit: "12.3/139.8 GiB", "-/139.8 GiB"; the part alone if the total is unknown. */
char *format_bytes_of(char *to, double used, double total);

/* 75.2 s, 2 m 05 s, 3 h 02 m. */
char *format_duration(char *to, double seconds);
char *format_about(char *to, double s); /* "about 7 min": with the precision of an estimate */

/* An amount of money without an exponent: "12.35 EUR", "0.000000202 ± 0.000000041"; currency may be "". */
char *format_amount(char *to, double value, double error, const char *currency);

/* The prices used: "at 0.25 EUR/kWh, 2.00 EUR per device hour"; and their scope, "" without electricity. */
void format_tariff(const struct tariff *tariff, const char *currency, struct text *out);
const char *format_scope(const struct tariff *tariff);

/* "1.20 ± 0.10 EUR", "-" if unknown; and "3.40 ± 0.20 gCO2e". */
char *format_cost(char *to, const struct charge *charge, const char *currency);
char *format_emissions(char *to, const struct charge *charge);

/* A line for each GPU: the activity of its units, and the source. */
void format_activities(const struct result_item *conditions, struct text *out);

/* ---- tables ---- */

/* One table in several formats: aligned text for a terminal (column widths in displayed characters), Markdown and CSV.
 * A struct table owns its cells; release it. */

enum { TABLE_COLUMNS_MAX = 64 };

struct table_column {
    const char *title;
    bool right; /* numbers are right-aligned */
};

/* A figure or a text of the run index (rundir/summary.h). */
#define FIGURE_COLUMN(name) {SUMMARY_HEADINGS[SUMMARY_INDEX_##name], true}
#define TEXT_COLUMN(name)   {SUMMARY_HEADINGS[SUMMARY_INDEX_##name], false}

struct table {
    const struct table_column *columns; /* not owned */
    size_t width;
    char **cells;
    size_t count, capacity;
};

/* An empty table with these columns, an array that outlives it. */
#define TABLE(array) ((struct table){.columns = (array), .width = sizeof(array) / sizeof *(array)})
void table_init(struct table *table, const struct table_column *columns, size_t width);
void table_release(struct table *table);

/* Adds the next cell, row by row. */
void table_add(struct table *table, const char *cell);
void table_addf(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);
/* "-" if the value is unknown. */
void table_add_known(struct table *table, double value, const char *format, ...) PRINTF_LIKE(3, 4);
/* A number for CSV: integers with all digits, others with nine; UNKNOWN is empty. */
void table_add_number(struct table *table, double value);

/* Header and rows, each after `indent`; bold header with color.  Empty columns are omitted. */
void table_write(const struct table *table, const char *indent, bool color, struct text *out);

/* The same, and releases the table. */
void table_print(struct table *table, const char *indent, bool color, struct text *out);

/* Markdown, with empty columns; special characters are escaped. */
void table_write_markdown(const struct table *table, struct text *out);
void markdown_add(struct text *out, const char *string);
/* A list of the lines that are not empty, without their indentation. */
void markdown_add_list(struct text *out, const char *lines);

/* A header of titles and the rows. */
void table_write_csv(const struct table *table, struct text *out);

/* The text format in parts, for a table that is printed block by block: widths (one per column, zero at first, kept by
 * the caller) only grow, so that later blocks align with earlier ones. */
void table_widen(const struct table *table, size_t *widths);
void table_write_header(const struct table *table, const size_t *widths, const char *indent,
                        bool color, struct text *out);
void table_write_rows(const struct table *table, const size_t *widths, const char *indent,
                      struct text *out);

#endif
