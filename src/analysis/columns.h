/* What the analyses share: columns of completed queries, their spread, and groups of rows.
 * Arrays that are given out are the caller's to free; a struct row_groups is released. */
#ifndef IPW_ANALYSIS_COLUMNS_H
#define IPW_ANALYSIS_COLUMNS_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "rundir/run_table.h"

struct repeats;
struct json;

/* numerator / denominator of a row; UNKNOWN over nothing. */
double row_ratio(const struct run_table *table, enum run_number numerator,
                 enum run_number denominator, size_t row);

/* Known values of completed queries, in the order of the rows; *count tells how many. */
enum err known_values(const struct run_table *table, enum run_number column, double **out,
                      size_t *count) MUST_USE;
/* The same of the ratio of two columns. */
enum err known_ratios(const struct run_table *table, enum run_number numerator,
                      enum run_number denominator, double **out, size_t *count) MUST_USE;

/* {"count", "mean", "std", "min", "p50", "p90", "p95", "p99", "max"} under `key`; the array comes out in
 * another order.  Nothing is written, and false returned, without a value. */
bool put_spread(struct json *json, const char *key, double *values, size_t count);

/* An interval as [low, high]; null when it is not known. */
void put_interval(struct json *json, const char *key, double low, double high);

/* Sums over rows of which both are known: of a ratio's numerator and denominator. */
struct ratio_sums {
    size_t rows;
    double numerator, denominator;
};
double ratio_value(const struct ratio_sums *sums); /* UNKNOWN over nothing */

/* Completed rows by a word or by a length: group g has rows order[from[g]] .. order[from[g + 1] - 1]. */
struct row_groups {
    uint32_t *order;
    size_t *from; /* count + 1 of them */
    size_t count;
};
enum err groups_by_word(const struct run_table *table, enum run_word word, struct row_groups *out)
    MUST_USE;

/* By powers of two: group 0 is under 16, then 16-31, 32-63 and so on; rows of unknown length in none. */
enum err groups_by_length(const struct run_table *table, enum run_number length,
                          struct row_groups *out) MUST_USE;
enum { LENGTH_NAME_MAX = 48 };
char *length_name(size_t group, char *to);
void row_groups_release(struct row_groups *groups);

/* Whose energy the Python IPW's figures are of: "gpu", "soc" or "mixed"; "machine" where neither was
 * measured, and the machine's joules stand in for theirs; NULL where no energy is known. */
const char *energy_basis(const struct run_table *table);
bool is_by_machine(const struct run_table *table);

/* The one word that all completed queries of known energy have, or "mixed"; NULL for none. */
const char *common_word(const struct run_table *table, enum run_word column);

/* "energy is of none of 12 completed queries known": for ERR_NO_DATA. */
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
