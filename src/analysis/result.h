/* The typed result of an analysis: figures with their unit, error, interval and number of queries, in groups and lists;
 * notes and warnings.  A driver adds them in order.  The text view, the page and the JSON (whose keys are those of the
 * items) derive from it.
 *
 * Ownership: a struct result owns everything in it, and copies strings; units and phrases are constants.
 * Zero-initialize it, result_release when done.  `failed`: out of memory. */
#ifndef IPW_ANALYSIS_RESULT_H
#define IPW_ANALYSIS_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/text.h"

struct json;

enum result_kind {
    RESULT_GROUP, /* items with keys */
    RESULT_LIST,  /* items without */
    RESULT_NUMBER,
    RESULT_COUNT,
    RESULT_TEXT,
    RESULT_FLAG,
    /* JSON keys of a figure's properties: "KEY_error", "KEY_interval_95" and "KEY_queries" beside it. */
    RESULT_ERROR,
    RESULT_INTERVAL,
    RESULT_QUERIES,
};

struct result_item {
    enum result_kind kind;
    size_t key, text; /* offsets in the strings; 0: none */
    double number;    /* a flag is 0 or 1 */
    double error, low, high,
        queries;      /* its uncertainty, interval of 95 %, number of queries; UNKNOWN */
    const char *unit; /* as in record.def; "" for none */
    size_t end;       /* index after its last item */
};

/* The finding as phrases: each an item with text around it, omitted if unknown or 0. */
struct result_phrase {
    const char *before, *path, *after;
};

enum { RESULT_DEPTH = 8 };

struct result {
    const char *name;                    /* name of the analysis */
    const struct result_phrase *finding; /* the last has no path; NULL: none */
    enum err err;                        /* ERR_NO_DATA: `why` is what is missing */
    struct error why;
    struct result_item *items; /* each before its children; the first contains all others */
    size_t count, capacity;
    struct text notes, warnings; /* consecutive NUL-terminated strings: result_line */
    struct text strings;
    size_t open[RESULT_DEPTH], depth;
    bool failed;
};

void result_release(struct result *result);

/* ---- adding ---- */

/* A key is NULL in a list. */
void result_group(struct result *result, const char *key);
void result_list(struct result *result, const char *key);
void result_end(struct result *result);

void result_number(struct result *result, const char *key, double value, const char *unit);
void result_count(struct result *result, const char *key, size_t count);
void result_text(struct result *result, const char *key, const char *text); /* NULL: unknown */
void result_flag(struct result *result, const char *key, bool value);

void result_count_one(struct result *result, const char *path); /* increments a count */

/* For the figure with this key in the open group. */
void result_error(struct result *result, const char *key, double error);
void result_interval(struct result *result, const char *key, double low, double high);
void result_queries(struct result *result, const char *key, size_t count);
/* Sets its error where JSON has none under its name. */
void result_uncertain(struct result *result, const char *key, double error);

/* A figure and its standard error. */
void result_figure(struct result *result, const char *key, double value, double error,
                   const char *unit);

/* Notes below the finding, the most severe first; and warnings. */
#define result_note(result, ...) result_add_line(&(result)->notes, __VA_ARGS__)
#define result_warn(result, ...) result_add_line(&(result)->warnings, __VA_ARGS__)
void result_add_line(struct text *lines, const char *format, ...) PRINTF_LIKE(2, 3);

/* ---- reading: NULL is a missing item, whose values are unknown ---- */

/* Finds an item by its path ("summary.joules", "data.joules.queries.0.z" with an index), or by its key in a group. */
const struct result_item *result_find(const struct result *result, const char *path);
const struct result_item *result_get(const struct result *result, const struct result_item *group,
                                     const char *key);
const struct result_item *result_first(const struct result *result, const struct result_item *of);
const struct result_item *result_next(const struct result *result, const struct result_item *of,
                                      const struct result_item *item);

#define RESULT_EACH(item, result, of)                                                              \
    for (const struct result_item *item = result_first(result, of); item;                          \
         item = result_next(result, of, item))

bool result_is_known(const struct result_item *item); /* false for groups and lists */
const char *result_key(const struct result *result, const struct result_item *item);
const char *result_string(const struct result *result, const struct result_item *item);
double result_value(const struct result_item *item); /* UNKNOWN unless a number or count */
double result_value_at(const struct result *result, const char *path);

/* The line after `line` of notes or warnings, the first for NULL; NULL after the last. */
const char *result_line(const struct text *lines, const char *line);

/* {"analysis", "summary", "data", "warnings"} */
void result_to_json(const struct result *result, const char *key, struct json *json);

#endif
