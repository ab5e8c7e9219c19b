/* A run's table while it is filled, a few rows at a time: reserve, give each column its values of the
 * new rows, advance.  A column takes room with its first known value only.
 * The builder fills the caller's table, which owns the columns; builder_release gives back the rest. */
#ifndef IPW_RUNDIR_RUN_TABLE_BUILDER_H
#define IPW_RUNDIR_RUN_TABLE_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "rundir/run_table.h"
#include "rundir/run_table_places.h"

struct jv;

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

/* Room for `more` rows after the table's. */
enum err builder_reserve(struct builder *builder, size_t more) MUST_USE;

/* Values of the rows that follow, which must have room. */
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
struct row_texts {
    const char *problem, *expected, *answer; /* NULL for not known; need not end in NUL */
    size_t problem_length, expected_length, answer_length;
};
enum err builder_texts(struct builder *builder, const struct row_texts *texts) MUST_USE;

/* The rows are complete: `count` more. */
void builder_advance(struct builder *builder, size_t count);

/* Once, after the last: columns are as long as the table. */
void builder_finish(struct builder *builder);

/* A number column of the table's length, all unknown; for what is derived. */
double *builder_new_column(const struct run_table *table);

void excerpts_release(struct run_excerpts *excerpts);

/* Another line for the user. */
void table_note(struct run_table *table, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
