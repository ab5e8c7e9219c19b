/* The feed: rows of any source, shuffled, limited and mapped to items.  A driver that maps rows only has to
 * read them.
 *
 * The holder of a struct row_source owns its state and closes it.  row_feed_open takes ownership of the
 * source, also when it fails; row_feed_close frees everything. */
#ifndef IPW_DATASETS_ROW_FEED_H
#define IPW_DATASETS_ROW_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/params.h"

struct dataset;
struct item;
struct jv;

/* ---- from a row to an item (row_mapping.c): which field is which, how the prompt is assembled, which rows are wanted.
 * A struct row_mapping owns its copy of the parameters: row_mapping_init, row_mapping_release ---- */

/* The parameters of every driver that maps rows, for its list of param_spec. */
#define ROW_MAPPING_PARAMS                                                                         \
    {"problem", "FIELD", "the prompt (problem|question|prompt|input|instruction)"},                \
        {"answer", "FIELD",                                                                        \
         "the expected answer (answer|target|output|expected|reference_answer)"},                  \
        {"subject", "FIELD", "the subject (subject|category|topic|domain|level)"},                 \
        {"id", "FIELD",                                                                            \
         "the item id (id|uuid|question_id|unique_id|task_id), else the row number"},              \
        {"grader", "FIELD", "the field that names the grader of the row"},                         \
        {"metadata", "FIELD", "an object, or JSON text, that is the metadata (all other fields)"}, \
        {"template", "TEXT", "the prompt from several fields: {question}\\n{choices}"},            \
        {"choices", "FIELD", "a list of options, or FIELD|FIELD; shown as lettered lines"},        \
        {"answer_is", "KIND", "with choices: letter, index (from 0), text or any (any)"},          \
        {"shuffle_choices", "SEED", "random order of the choices of each row"},                    \
        {"answer_after", "MARK", "the answer follows the last occurrence of this marker: ####"},   \
        {"require", "FIELDS", "skip rows in which one of FIELD|FIELD is empty"},                   \
        {"without", "FIELDS", "skip rows in which one of FIELD|FIELD is not empty"}

/* How a dataset gives the correct option.  ANSWER_ANY: any of these, if it is unambiguous. */
enum answer_kind { ANSWER_LETTER, ANSWER_INDEX, ANSWER_TEXT, ANSWER_ANY };

struct row_mapping {
    struct params params;                                              /* owns the strings below */
    const char *problem, *answer, *subject, *id, *grader, *metadata;   /* names of fields */
    const char *template, *choices, *answer_after, *require, *without; /* NULL: not given */
    enum answer_kind answer_is;
    bool shuffle_choices;
    uint64_t seed;
};

enum err row_mapping_init(struct row_mapping *out, const struct params *params, struct error *why)
    MUST_USE;
void row_mapping_release(struct row_mapping *mapping);

/* Whether a row has the fields.  ERR_BAD_VALUE names the missing one, and the existing ones. */
enum err row_mapping_check(const struct row_mapping *mapping, const struct jv *row,
                           struct error *why) MUST_USE;

/* Whether rows may be skipped. */
bool row_mapping_filters(const struct row_mapping *mapping);

/* Fills a zeroed item from a row.  *wanted is false for a row that the parameters exclude; the item is
 * then empty. */
enum err row_mapping_apply(const struct row_mapping *mapping, const struct jv *row, uint64_t number,
                           struct item *out, bool *wanted, struct error *why) MUST_USE;

/* ---- the feed (row_feed.c) ---- */

/* A source of rows, each one JSON value of valid UTF-8, implemented by a driver. */
struct row_source {
    /* The next row, which the caller frees, and its number; NULL at the end.  ERR_BAD_VALUE, without a row, concerns
     * this row alone, and the next call continues after it; any other error ends the source. */
    enum err (*next)(void *state, struct jv **row, uint64_t *number, struct error *why);

    /* Skips that many rows.  NULL: they are read and dropped. */
    enum err (*skip)(void *state, uint64_t rows, struct error *why);

    void (*close)(void *state);
    void *state;
    const char *unit; /* unit of the number: "line", "row" */
    int64_t count;    /* number of rows; -1 if unknown before the end */
};

#define ROW_ORDER_PARAMS                                                                           \
    {"shuffle", "SEED", "random order of the rows with this seed; offset applies after it"},       \
        {"offset", "ROWS", "skip that many rows at the start (0)"},                                \
        {"limit", "ITEMS", "at most that many items (all)"},                                       \
        {"skip_bad", "BOOL", "skip invalid rows with a warning (false)"}
#define ROW_FEED_PARAMS ROW_MAPPING_PARAMS, ROW_ORDER_PARAMS

/* Reads the first rows: an empty source, one without a valid row, and one without the fields are errors.
 * `where` is the file name for messages.  Sets out->state, count, and the grader of a dataset with
 * choices. */
enum err row_feed_open(const struct params *params, struct row_source source, const char *where,
                       struct dataset *out, struct error *why) MUST_USE;

/* For a driver that reads the file of its parameter path=. */
struct row_file {
    const char *placeholder; /* placeholder in messages: "FILE" */
    size_t state_size;       /* size of the state, zeroed before open; close frees its contents */
    enum err (*open)(const struct dataset *dataset, const struct params *params, const char *path,
                     void *state, struct error *why);
    struct row_source source; /* without its state */
};
enum err row_feed_open_file(const struct params *params, const struct row_file *file,
                            struct dataset *out, struct error *why) MUST_USE;

/* `next` and `close` for such a driver. */
enum err row_feed_next(struct dataset *dataset, struct item *out, bool *end, struct error *why);
void row_feed_close(struct dataset *dataset);

#endif
