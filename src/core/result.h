/* The result of a command: figures with their unit, error, interval and number of queries, in groups and lists, with
 * notes and warnings.  A command fills one, in the order of its JSON; the text, the Markdown, the CSV, the JSON (whose
 * keys are those of the items) and the page are printed from it (report/print/print.h), so that a figure is computed
 * and named once.
 *
 * Ownership: a struct result owns everything in it, and copies strings; units, phrases and columns are constants.
 * Zero-initialize it, result_release when done. */
#ifndef IPW_CORE_RESULT_H
#define IPW_CORE_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/err.h"
#include "core/text.h"

struct json;

enum result_kind {
    RESULT_GROUP, /* items with keys */
    RESULT_LIST,  /* items without */
    RESULT_NUMBER,
    RESULT_COUNT, /* an integer */
    RESULT_TEXT,
    RESULT_FLAG,
    RESULT_NULL,  /* a group, list or flag that is unknown */
    RESULT_JSON,  /* text that is compact JSON already: what a file or a server said */
    RESULT_ASIDE, /* items with keys for the columns of a table and a command's own views alone */
    /* JSON keys of a figure's properties: "KEY_error", "KEY_interval_95" and "KEY_queries" beside it. */
    RESULT_ERROR,
    RESULT_INTERVAL,
    RESULT_QUERIES,
};

struct result_item {
    enum result_kind kind;
    const char *key; /* NULL: none */
    char *text;      /* NULL: none */
    double number;   /* a flag is 0 or 1 */
    int64_t integer; /* of a count: a double would round a seed */
    /* Its uncertainty, interval of 95 % and number of queries; UNKNOWN. */
    double error, low, high, queries;
    const char *unit; /* as in record.def; "" for none */
    size_t length;    /* in items: itself, and all those in it, which follow */
};

/* The finding as phrases: each an item with text around it, omitted if unknown or 0. */
struct result_phrase {
    const char *before, *path, *after;
};

/* A column of the table of a result: its title, and where in a row its value is.  "" is the key of a row that has one,
 * "^name" an item of what the * in the path of the table stands for, and "joules:error", ":low" or ":high" a property of
 * a figure.  Its unit may differ from that of the item: percent of a share. */
struct result_column {
    const char *title, *path;
    double scale; /* of a number; 0 is 1.  A flag with a scale is a number: 1 or 0 times it */
};

/* The unit of a moment, seconds since 1970: nine digits would round it to seconds, and people read a date. */
#define UNIT_TIME "s since 1970"

enum { RESULT_KEY_MAX = 160 };

struct result {
    const char *name;                    /* of the analysis or command */
    const struct result_phrase *finding; /* the last has no path; NULL: none */
    enum err err;                        /* ERR_NO_DATA: `why` is what is missing */
    struct error why;
    struct result_item *items; /* each before its children; the first contains all others */
    size_t count, capacity;
    struct text notes, warnings; /* consecutive NUL-terminated strings: result_line */
    struct arena strings;
    size_t *open, depth, open_capacity;
    const char *rows;                    /* path of the list that is its table; NULL: none */
    const struct result_column *columns; /* of that table; the last has no title; NULL: all */
};

void result_release(struct result *result);

/* ---- adding ---- */

/* The outermost group, which result_end closes as any other. */
void result_begin(struct result *result, const char *name);
/* An outermost list, for JSON that is an array; its table has the path "". */
void result_begin_list(struct result *result, const char *name);

/* A key is NULL in a list. */
void result_group(struct result *result, const char *key);
void result_list(struct result *result, const char *key);
/* A group that JSON and the generic formats omit: what the columns of a CSV or a command's own text and Markdown need
 * besides the documented keys. */
void result_aside(struct result *result, const char *key);
void result_end(struct result *result);

void result_number(struct result *result, const char *key, double value, const char *unit);
void result_count(struct result *result, const char *key, size_t count);
void result_integer(struct result *result, const char *key, int64_t value);
void result_text(struct result *result, const char *key, const char *text); /* NULL: unknown */
void result_flag(struct result *result, const char *key, bool value);
void result_null(struct result *result, const char *key);
void result_json(struct result *result, const char *key, const char *json); /* NULL: null */
void result_numbers(struct result *result, const char *key, const double *values, size_t count,
                    const char *unit);

/* Omitted if unknown. */
void result_optional_number(struct result *result, const char *key, double value, const char *unit);
void result_optional_text(struct result *result, const char *key, const char *text);

/* Figures of a struct that are doubles, with their units, by a table that ends in a row without a key. */
struct result_member {
    const char *key;
    size_t offset; /* of the member in its struct */
    const char *unit;
};
void result_members(struct result *result, const struct result_member *members, const void *object);

/* Makes a JSON writer that adds to the open group what is written: for structs whose members a function writes, such as
 * energy_to_json.  Units follow from keys ("power_w", "coverage", or "mean" in "power_w"); "plus_minus" is the error of the number
 * before it, "X_plus_minus" that of X. */
void result_writer(struct result *result, struct json *json);

/* Hides secrets (core/secret.h) in all texts. */
void result_hide_secrets(struct result *result);

void result_count_one(struct result *result, const char *path); /* increments a count */

/* For the figure with this key in the open group. */
void result_error(struct result *result, const char *key, double error);
void result_interval(struct result *result, const char *key, double low, double high);
void result_queries(struct result *result, const char *key, size_t count);
/* Sets its error or interval where JSON has none under its name. */
void result_uncertain(struct result *result, const char *key, double error);
void result_between(struct result *result, const char *key, double low, double high);

/* A figure, and its ± as a figure of its own with that key. */
void result_measured(struct result *result, const char *key, double value, const char *error_key,
                     double error, const char *unit);

/* A figure and its standard error. */
void result_figure(struct result *result, const char *key, double value, double error,
                   const char *unit);

/* Marks the list at this path as the table of the result: its CSV; "": the result itself, which is an outermost list, or
 * the only row and needs columns.  columns: NULL for every figure of a row, with its error and bounds.  With "*" as in "runs.*.metrics" and
 * columns, the rows of all of them. */
void result_table(struct result *result, const char *path, const struct result_column *columns);

/* Notes below the finding, the most severe first, with their severity; and warnings. */
#define result_note(result, ...) result_add_line(&(result)->notes, __VA_ARGS__)
#define result_warn(result, ...) result_add_line(&(result)->warnings, __VA_ARGS__)
void result_add_line(struct text *lines, const char *format, ...) PRINTF_LIKE(2, 3);

/* ---- reading: NULL is a missing item, whose values are unknown ----
 *
 * An item is read by itself; result->items is the outermost group. */

/* Finds an item by its path, from the outermost group or from an item: "summary.joules", "points.0.energy_j.total" with
 * an index in a list; "" is the item itself. */
const struct result_item *result_find(const struct result *result, const char *path);
const struct result_item *result_at(const struct result_item *from, const char *path);
/* The item with this key in a group. */
const struct result_item *result_get(const struct result_item *group, const char *key);
const struct result_item *result_first(const struct result_item *of);
const struct result_item *result_next(const struct result_item *of, const struct result_item *item);
size_t result_length(const struct result_item *of);

/* `of` is evaluated once. */
#define RESULT_EACH(item, of)                                                                      \
    for (const struct result_item *item##_in = (of), *item = result_first(item##_in); item;        \
         item = result_next(item##_in, item))

bool result_is_known(const struct result_item *item);  /* false for groups and lists */
bool result_is_figure(const struct result_item *item); /* not a property of another */
const char *result_string(const struct result_item *item);
double result_value(const struct result_item *item); /* UNKNOWN unless a number, count or flag */

/* The values at a path from an item; "" and false if unknown. */
double result_number_at(const struct result_item *from, const char *path);
const char *result_text_at(const struct result_item *from, const char *path);
bool result_flag_at(const struct result_item *from, const char *path);

/* The line after `line` of notes or warnings, the first for NULL; NULL after the last. */
const char *result_line(const struct text *lines, const char *line);

#endif
