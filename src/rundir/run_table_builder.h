/* Internal to the loading of a run's table.
 *
 * A run's table while it is filled, a few rows at a time: reserve, give each column its values of the
 * new rows, advance.  A column is allocated with its first known value only.
 * The builder fills the caller's table, which owns the columns; builder_release frees the rest. */
#ifndef IPW_RUNDIR_RUN_TABLE_BUILDER_H
#define IPW_RUNDIR_RUN_TABLE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/slice.h"
#include "rundir/run_table.h"

struct jv;

/* Where a record has a column's values: the paths of record.def, split into names. */
enum { PLACE_NAMES_MOST = 6, PLACES_MOST = 4 };

struct place {
    bool from_top; /* else below the model's metrics */
    size_t count;
    const char *names[PLACE_NAMES_MOST];
    const char *inside; /* a key of the object that the text there holds as JSON; or NULL */
};

struct places {
    char *text;
    size_t count;
    struct place items[PLACES_MOST];
};

/* The value at a place, or NULL.  Of one inside a text: the text. */
const struct jv *place_find(const struct place *place, const struct jv *record,
                            const struct jv *metrics);

struct word_index {
    uint32_t *slots; /* ids plus one; 0 is free */
    size_t size;     /* a power of two */
    size_t capacity; /* of the texts */
    size_t seen;     /* rows that have their word */
};

struct builder {
    struct run_table *table;
    struct run_wanted wanted;
    size_t excerpts; /* at least this many, of as many rows; 0 for none */
    size_t capacity; /* rows */
    size_t filled[RUN_NUMBERS];
    struct word_index index[RUN_WORDS];
    struct places numbers[RUN_NUMBERS], flags[RUN_FLAGS], words[RUN_WORDS];
};

enum err builder_init(struct builder *builder, struct run_table *table, struct run_wanted wanted)
    MUST_USE;
void builder_release(struct builder *builder);

/* Capacity for `more` rows after the table's. */
enum err builder_reserve(struct builder *builder, size_t more) MUST_USE;

/* Values of the rows that follow, which must have capacity. */
enum err builder_numbers(struct builder *builder, enum run_number column, const double *values,
                         size_t count) MUST_USE;
void builder_flags(struct builder *builder, enum run_flag column, const double *values,
                   size_t count);

/* The word of the next row that has none; NULL for not known. */
enum err builder_word(struct builder *builder, enum run_word column, const char *bytes,
                      size_t length) MUST_USE;

/* The same of a value: a number serves as a word. */
enum err builder_word_of(struct builder *builder, enum run_word column, const struct jv *value)
    MUST_USE;

/* The same of what a text holds as JSON, under the first of the column's keys that it has. */
enum err builder_word_inside(struct builder *builder, enum run_word column, const char *bytes,
                             size_t length) MUST_USE;

/* What stands for a text in RUN_QUESTION: two texts with the same one are the same, but for a chance of
 * 1 in 2^53.  UNKNOWN for NULL. */
double builder_fingerprint(const char *bytes, size_t length);

/* Whether the texts of this row are to be kept; then they are, in the order of the rows. */
bool builder_wants_texts(const struct builder *builder, size_t row);
enum { ROW_PROBLEM, ROW_EXPECTED, ROW_ANSWER, ROW_TEXTS };
enum err builder_texts(struct builder *builder, const struct slice texts[static ROW_TEXTS])
    MUST_USE; /* start is NULL for not known */

/* The rows are complete: `count` more. */
void builder_advance(struct builder *builder, size_t count);

/* Once, after the last: columns are as long as the table. */
void builder_finish(struct builder *builder);

/* A number column of the table's length, all unknown; for what is derived. */
double *builder_new_column(const struct run_table *table);

void excerpts_release(struct run_excerpts *excerpts);

/* Adds a model to the table's, unless it is there. */
enum err table_add_model(struct run_table *table, const char *name) MUST_USE;

/* Another line for the user. */
void table_note(struct run_table *table, const char *format, ...) PRINTF_LIKE(2, 3);

/* ---- run_table_arrow.c: rows out of one Arrow file ---- */

/* Adds the models in the file to the table's. */
enum err arrow_models(const char *path, struct run_table *table, struct error *why) MUST_USE;

/* All rows of the model.  ERR_BAD_VALUE names the file and after how many records it broke off. */
enum err arrow_rows(const char *path, const char *model, struct builder *builder, struct error *why)
    MUST_USE;

/* ---- run_table_journal.c: rows out of the journal, for a run that has not ended, or whose Arrow files are missing
 * or older ---- */

/* The table's `model` is the one to take, or NULL for the first record's, which it then becomes. */
enum err journal_rows(const char *path, struct builder *builder, struct error *why) MUST_USE;

#endif
