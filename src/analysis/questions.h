/* Which queries asked the same question: the rounds of --repeat.  Chance is that of questions, and their
 * repeats are added up before anything is drawn.
 * questions_of gives what questions_release takes back. */
#ifndef IPW_ANALYSIS_QUESTIONS_H
#define IPW_ANALYSIS_QUESTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rundir/run_table.h"
#include "metrics/repeats.h"

/* The columns that the table must have. */
#define QUESTIONS_NEED (RUN_WANT(RUN_INDEX) | RUN_WANT(RUN_REPEAT))

struct questions {
    bool repeats;    /* some was asked more than once; else there is nothing below */
    uint32_t *of;    /* of each row, from 0 */
    uint32_t *place; /* room: where a question stands among those that are added up, from 1 */
};

enum err questions_of(const struct run_table *table, struct questions *out) MUST_USE;
void questions_release(struct questions *questions);

/* What rows add to sums, columns[c][i] of rows[i]: entries of one question become one, in the place of
 * the first.  Returns how many are left. */
size_t questions_add_up(struct questions *questions, const uint32_t *rows, size_t count,
                        double *const *columns, size_t column_count);

/* Of completed rows that were not added up yet: right, graded, joules, of known energy. */
enum { QUESTION_TERMS = 4 };
void question_terms_of(const struct run_table *table, size_t row, double *terms);

/* Uncertainties where questions were repeated, of columns that were added up; none otherwise. */
enum err question_repeats(const struct questions *questions, double *const *columns, size_t count,
                          struct repeats *out) MUST_USE;

#endif
