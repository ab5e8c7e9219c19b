/* Internal to the loading of a run's table.
 *
 * Builds a run's table a few rows at a time: reserve, add the values of the new rows to each column, advance.  A column
 * is allocated with its first known value. The builder fills the caller's table, which owns the columns;
 * builder_release frees everything else. */
#ifndef IPW_RUNDIR_RUN_TABLE_BUILDER_H
#define IPW_RUNDIR_RUN_TABLE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/slice.h"
#include "rundir/run_table.h"

struct jv;

/* Locations of a column's values in a record: the paths of record.def, split into names. */
enum { PATH_NAMES_MAX = 6, PATHS_MAX = 4 };

struct field_path {
    bool from_top; /* otherwise below the model's metrics */
    size_t count;
    const char *names[PATH_NAMES_MAX];
    const char *inside; /* a key of the JSON object in the text there; or NULL */
};

struct field_paths {
    char *text;
    size_t count;
    struct field_path items[PATHS_MAX];
};

/* The value at a path, or NULL.  For one inside a text: the text. */
const struct jv *field_path_find(const struct field_path *field, const struct jv *record,
                                 const struct jv *metrics);

struct word_index {
    uint32_t *slots; /* ids plus one; 0 is free */
    size_t size;     /* a power of two */
    size_t capacity; /* of the texts */
    size_t seen;     /* rows that have a word already */
};

struct builder {
    struct run_table *table;
    struct run_wanted wanted;
    size_t excerpts; /* at least this many, if there are as many rows; 0: none */
    size_t capacity; /* rows */
    size_t filled[RUN_NUMBERS];
    struct word_index index[RUN_WORDS];
    struct field_paths numbers[RUN_NUMBERS], flags[RUN_FLAGS], words[RUN_WORDS];
};

void builder_init(struct builder *builder, struct run_table *table, struct run_wanted wanted);
void builder_release(struct builder *builder);

/* Reserves capacity for `more` rows. */
void builder_reserve(struct builder *builder, size_t more);

/* Values of the following rows, which must be reserved. */
void builder_numbers(struct builder *builder, enum run_number column, const double *values,
                     size_t count);
void builder_flags(struct builder *builder, enum run_flag column, const double *values,
                   size_t count);

/* The word of the next row without one; NULL: unknown. */
void builder_word(struct builder *builder, enum run_word column, const char *bytes, size_t length);

/* The same for a JSON value: a number may be used as a word. */
void builder_word_of(struct builder *builder, enum run_word column, const struct jv *value);

/* The same for JSON in a text, with the first of the column's keys that it has. */
void builder_word_inside(struct builder *builder, enum run_word column, const char *bytes,
                         size_t length);

/* Fingerprint of a text for RUN_QUESTION: equal for equal texts, and with a probability of 1 in 2^53 for different
 * ones. UNKNOWN for NULL. */
double builder_fingerprint(const char *bytes, size_t length);

/* Whether the texts of this row are kept; they are then added, in the order of the rows. */
bool builder_wants_texts(const struct builder *builder, size_t row);
enum { ROW_PROBLEM, ROW_EXPECTED, ROW_ANSWER, ROW_TEXTS };
void builder_texts(struct builder *builder,
                   const struct slice texts[static ROW_TEXTS]); /* start is NULL: unknown */

/* Completes `count` rows. */
void builder_advance(struct builder *builder, size_t count);

/* Call once at the end: all columns then have the table's length. */
void builder_finish(struct builder *builder);

/* A number column of the table's length, all unknown; for derived columns. */
double *builder_new_column(const struct run_table *table);

void excerpts_release(struct run_excerpts *excerpts);

/* Adds a model to the table's list, unless it is in it. */
void table_add_model(struct run_table *table, const char *name);

/* Adds a note for the user. */
void table_note(struct run_table *table, const char *format, ...) PRINTF_LIKE(2, 3);

/* ---- run_table_arrow.c: rows from one Arrow file ---- */

/* Adds the models in the file to the table's list. */
enum err arrow_models(const char *path, struct run_table *table, struct error *why) MUST_USE;

/* Adds all rows of the model.  ERR_BAD_VALUE names the file and the number of records read before the error. */
enum err arrow_rows(const char *path, const char *model, struct builder *builder, struct error *why)
    MUST_USE;

/* ---- run_table_journal.c: rows from the journal, for a run that has not ended, or whose Arrow files are missing or
 * older ---- */

/* The table's `model` is the one to load; if NULL, it is set to the first record's. */
enum err journal_rows(const char *path, struct builder *builder, struct error *why) MUST_USE;

#endif
