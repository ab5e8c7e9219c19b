/* What the analyses share: columns of completed queries, their spread, and groups of rows.
 * Arrays that are given out are the caller's to free. */
#ifndef IPW_ANALYSIS_COLUMNS_H
#define IPW_ANALYSIS_COLUMNS_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "rundir/run_table.h"

struct repeats;
struct json;

/* A figure of a query: the ratio of two columns, or with RUN_NUMBERS for the second the first alone.  UNKNOWN over
 * nothing, and of a query that failed. */
double row_value(const struct run_table *table, enum run_number numerator,
                 enum run_number denominator, size_t row);

/* Its known values, in the order of the rows; *count tells how many. */
enum err known_values(const struct run_table *table, enum run_number numerator,
                      enum run_number denominator, double **out, size_t *count) MUST_USE;

/* Their spread, {"count", "mean", "std", "min", "p50", "p90", "p95", "p99", "max"}, under `key`; nothing without a
 * value.  The array of the second comes out in another order. */
enum err put_column_spread(struct json *json, const char *key, const struct run_table *table,
                           enum run_number numerator, enum run_number denominator) MUST_USE;
void put_spread(struct json *json, const char *key, double *values, size_t count);

/* An interval as [low, high]; null when it is not known. */
void put_interval(struct json *json, const char *key, double low, double high);

/* Sums over rows of which both are known: of a ratio's numerator and denominator. */
struct ratio_sums {
    size_t rows;
    double numerator, denominator;
};
double ratio_value(const struct ratio_sums *sums); /* UNKNOWN over nothing */

/* Completed rows by a word, or by a length in powers of two (under 16, then 16-31, 32-63 and so on; rows of unknown
 * length in none): each group that has any, with its name.  The first word is "", for not known. */
typedef enum err take_group(void *context, const char *name, const uint32_t *rows, size_t count);
enum err groups_by_word(const struct run_table *table, enum run_word word, take_group *take,
                        void *context) MUST_USE;
enum err groups_by_length(const struct run_table *table, enum run_number length, take_group *take,
                          void *context) MUST_USE;

/* Whose energy the Python IPW's figures are of: "gpu", "soc" or "mixed"; "machine" where neither was
 * measured, and the machine's joules stand in for theirs; NULL where no energy is known. */
const char *energy_basis(const struct run_table *table);
bool is_by_machine(const struct run_table *table);

/* The one word that all completed queries of known energy have, or "mixed"; NULL for none. */
const char *common_word(const struct run_table *table, enum run_word column);

/* "energy is known for none of 12 completed queries": for ERR_NO_DATA. */
enum err lacks(const struct run_table *table, const char *what, struct error *why);

/* ---- queries by question ---- */

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
