/* The printers of results (core/result.h): text, JSON, CSV and Markdown, one module each.  Every command that has
 * --format prints through result_print; nobody else writes the JSON, CSV or Markdown of a result.
 *
 * Nothing is owned here: the caller owns the result and the output. */
#ifndef IPW_REPORT_PRINT_H
#define IPW_REPORT_PRINT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/text.h"

struct json;
struct result;
struct result_item;
struct table;

enum print_format { PRINT_TABLE, PRINT_JSON, PRINT_CSV, PRINT_MARKDOWN };

extern const char *const PRINT_FORMATS[]; /* their names, in this order; ends in NULL */
enum print_format print_format_named(const char *name);

typedef void print_view(const struct result *result, bool color, struct text *out);

/* Text or Markdown, for a view that is written once for both (report/text/page.h). */
struct print_page {
    const struct result *result;
    struct text *out;
    bool color, is_markdown;
    bool is_in_list;   /* the last block of Markdown is an item */
    struct text words; /* of the next line */
};

/* A command's own views of its result, where a generic list of its items would read worse; NULL: the generic one. */
struct print_views {
    print_view *text, *markdown;
    void (*page)(struct print_page *page); /* both of them */
    bool has_blank_line;                   /* after its JSON, as in earlier versions */
};

void result_print(const struct result *result, enum print_format format,
                  const struct print_views *views, bool color, struct text *out);

/* ---- json.c ---- */

/* As a member of an open object or, without a key, by itself.  A stream prints one result per line with a compact
 * writer. */
void result_to_json(const struct result *result, const char *key, struct json *json);

/* Its items as members of an open object. */
void result_members_to_json(const struct result *result, struct json *json);

/* ---- csv.c ---- */

/* The table of the result (result_table); without one, a row of path, value, unit, error, low and high per figure. */
void result_to_csv(const struct result *result, struct text *out);

/* Several results in one CSV: the columns of a result without a table, after its source and its name.
 * The caller writes and releases the table (report/text/format.h). */
void result_rows_init(struct table *rows);
void result_rows_add(struct table *rows, const char *source, const char *name,
                     const struct result *result);

/* ---- markdown.c ---- */

void result_to_markdown(const struct result *result, struct text *out);

/* A section of a longer document, whose heading has this level. */
void result_to_section(const struct result *result, const char *title, int level, struct text *out);

/* ---- text.c ---- */

/* All figures: a list of those of each group, and a table of each list of similar groups. */
void result_to_text(const struct result *result, bool color, struct text *out);

/* An analysis in full: its summary as a list, its data as tables. */
void result_in_full(const struct result *result, bool color, struct text *out);

/* The tables of its data, of at most `rows` rows each. */
void result_tables(const struct result *result, size_t rows, bool color, struct text *out);

/* ---- finding.c ---- */

/* A finding (core/finding.h) of a result: "warning: SUBJECT: TEXT: ACTION [code]". */
void finding_words(const struct result_item *finding, bool has_action, bool color,
                   struct text *out);

/* Those of a list, one per line, and an empty line. */
void findings_text(const struct result_item *findings, bool color, struct text *out);

/* The finding of each of several results, and the warnings of all, within about this many lines. */
void result_findings(const struct result *results, size_t count, size_t lines, struct text *out);

/* The finding in full, then its tables, limited to `rows` rows, then the warnings. */
void result_brief(const struct result *result, size_t rows, bool color, struct text *out);

/* Wraps words after a label and an indent; ends in "..." after `max` lines.  Returns the number of lines. */
size_t wrap_words(struct text *out, const char *label, size_t indent, size_t max,
                  const char *words);

#endif
