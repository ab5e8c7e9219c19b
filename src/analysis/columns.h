/* What the analyses share: columns of completed queries, their spread, and groups of rows.
 * Arrays that are given out are the caller's to free; a struct row_groups is released. */
#ifndef IPW_ANALYSIS_COLUMNS_H
#define IPW_ANALYSIS_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "rundir/run_table.h"

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

#endif
