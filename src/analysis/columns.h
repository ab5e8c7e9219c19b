/* What the analyses share: columns of completed queries, their spread, and groups of rows.
 * Arrays that are given out are the caller's to free. */
#ifndef IPW_ANALYSIS_COLUMNS_H
#define IPW_ANALYSIS_COLUMNS_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "rundir/run_table.h"

struct repeats;
struct result;

/* A per-query figure: the ratio of two columns, or the first alone with RUN_NUMBERS for the second.  UNKNOWN where
 * the divisor is 0 or unknown, and for a failed query. */
double row_value(const struct run_table *table, enum run_number numerator,
                 enum run_number denominator, size_t row);

/* Its known values, in the order of the rows; *count tells how many. */
enum err known_values(const struct run_table *table, enum run_number numerator,
                      enum run_number denominator, double **out, size_t *count) MUST_USE;

/* Their unit, of record.def: "J" of joules and of joules per token, "1/s" of tokens per second. */
const char *column_unit(enum run_number numerator, enum run_number denominator);

/* Their spread; of no value nothing is known.  The values come out in another order. */
enum {
    SPREAD_MEAN,
    SPREAD_STD,
    SPREAD_MIN,
    SPREAD_P50,
    SPREAD_P90,
    SPREAD_P95,
    SPREAD_P99,
    SPREAD_MAX,
    SPREAD_FIGURES
};
extern const char *const SPREAD_KEYS[SPREAD_FIGURES];
struct spread {
    size_t count;
    double figures[SPREAD_FIGURES];
};
struct spread spread_of(double *values, size_t count);

/* A figure of queries and its key in a result. */
struct ratio_row {
    const char *key;
    enum run_number numerator, denominator; /* RUN_NUMBERS: per query */
};

/* Their spreads, as the group `key` of a result; nothing of one without a value. */
enum err ratio_spreads(struct result *result, const char *key, const struct run_table *table,
                       const struct ratio_row *rows, size_t count) MUST_USE;

/* Sums over rows of which both are known: of a ratio's numerator and denominator. */
struct ratio_sums {
    size_t rows;
    double numerator, denominator;
};
double ratio_value(const struct ratio_sums *sums); /* UNKNOWN over nothing */

/* Those of some rows, as a figure of a result with its number of queries. */
struct ratio_sums ratio_sums_put(struct result *result, const struct run_table *table,
                                 const struct ratio_row *row, const uint32_t *rows, size_t count);

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

/* What queries add to some sums; once closed, what questions do: the queries of one are one entry, in the place of the
 * first. */
enum { QUESTION_TERMS_MAX = 4 };
struct question_terms {
    double *columns[QUESTION_TERMS_MAX]; /* `width` of them */
    uint32_t *rows;
    size_t width, queries, count; /* queries that were added; entries */
};

enum err question_terms_init(struct question_terms *terms, size_t most, size_t width) MUST_USE;
void question_terms_add(struct question_terms *terms, size_t row, const double *added);
void question_terms_close(struct question_terms *terms, struct questions *questions);
void question_terms_clear(struct question_terms *terms); /* to add others */
void question_terms_release(struct question_terms *terms);

#endif
