/* Shared by the analyses: columns of completed queries, their spread, and groups of rows.  Returned arrays are freed by
 * the caller. */
#ifndef IPW_ANALYSIS_COLUMNS_H
#define IPW_ANALYSIS_COLUMNS_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "rundir/run_table.h"

struct intelligence;
struct intelligence_tally;
struct repeats;
struct result;

/* A per-query figure: the ratio of two columns, or the first alone with RUN_NUMBERS for the second.  UNKNOWN where
 * the divisor is 0 or unknown, and for a failed query. */
double row_value(const struct run_table *table, enum run_number numerator,
                 enum run_number denominator, size_t row);

/* Its known values, in the order of the rows, and their number. */
void known_values(const struct run_table *table, enum run_number numerator,
                  enum run_number denominator, double **out, size_t *count);

/* Unit from record.def: "J" for joules and for joules per token, "1/s" for tokens per second. */
const char *column_unit(enum run_number numerator, enum run_number denominator);

/* Spread of the values; UNKNOWN without values.  The values are reordered. */
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

/* Their spreads, as the group `key` of a result; ratios without values are skipped. */
void ratio_spreads(struct result *result, const char *key, const struct run_table *table,
                   const struct ratio_row *rows, size_t count);

/* Sums of a ratio's numerator and denominator, over rows in which both are known. */
struct ratio_sums {
    size_t rows;
    double numerator, denominator;
};

/* Sums over some rows, added to a result as a figure with its number of queries. */
struct ratio_sums ratio_sums_put(struct result *result, const struct run_table *table,
                                 const struct ratio_row *row, const uint32_t *rows, size_t count);

/* Groups completed rows by a word, or by a length in powers of two (under 16, then 16-31, 32-63 and so on; rows of
 * unknown length are skipped), and calls back for each non-empty group with its name.  The first word is "", for
 * unknown. */
typedef void take_group(void *context, const char *name, const uint32_t *rows, size_t count);
void groups_by_word(const struct run_table *table, enum run_word word, take_group *take,
                    void *context);
void groups_by_length(const struct run_table *table, enum run_number length, take_group *take,
                      void *context);

/* The domain of the Python IPW's energies: "gpu", "soc" or "mixed"; "machine" if neither was measured and the machine's
 * joules are used instead; NULL if no energy is known. */
const char *energy_basis(const struct run_table *table);
bool uses_machine_energy(const struct run_table *table);

/* The word common to all completed queries of known energy, or "mixed"; NULL for none. */
const char *common_word(const struct run_table *table, enum run_word column);

/* "query" or "queries", "run" or "runs": what its records are. */
const char *units_of(const struct run_table *table, bool several);

/* Adds the query of a row; columns that are not loaded are unknown. */
void tally_row(struct intelligence_tally *tally, const struct run_table *table, size_t row);
/* The figures of all answers of a run; without energies, if those are not loaded. */
void answers_of(const struct run_table *table, struct intelligence *out);

/* ERR_NO_DATA unless the records are requests to a model. */
enum err require_requests(const struct run_table *table, struct error *why) MUST_USE;

/* "energy is known for none of 12 completed queries": for ERR_NO_DATA. */
enum err no_data_error(const struct run_table *table, const char *what, struct error *why);

/* ---- queries by question ---- */

/* The columns that the table must have. */
#define QUESTIONS_NEED (RUN_WANT(RUN_INDEX) | RUN_WANT(RUN_REPEAT))

struct questions {
    bool repeats;          /* some question was asked more than once; otherwise the rest is unset */
    uint32_t *question_of; /* question number of each row, from 0 */
    uint32_t *place;       /* scratch: position of a question among those being added up, from 1 */
};

void questions_of(const struct run_table *table, struct questions *out);
void questions_release(struct questions *questions);

/* Contributions of queries to some sums; once closed, those of questions: the queries of a question are merged into one
 * entry, at the position of the first. */
enum { QUESTION_TERMS_MAX = 4 };
struct question_terms {
    double *columns[QUESTION_TERMS_MAX]; /* `width` of them */
    uint32_t *rows;
    size_t width, queries, count; /* queries added; entries */
};

void question_terms_init(struct question_terms *terms, size_t capacity, size_t width);
void question_terms_add(struct question_terms *terms, size_t row, const double *added);
void question_terms_close(struct question_terms *terms, struct questions *questions);
void question_terms_clear(struct question_terms *terms); /* for reuse */
void question_terms_release(struct question_terms *terms);

/* ---- the page of a run: run_page.c ---- */

/* What the page of a run shows besides the analyses.  Each function adds to the open group of a result of the caller. */

/* "directory", "model", "hardware", "dataset", "rows", "failed", "canceled", "ours", "notes": [...]. */
void run_facts_fill(const struct run_table *table, uint64_t damaged_spans, struct result *out);

/* "shares": [{"key", "label", "joules", "share"}], a partition of the energy; empty if the summary lacks it. */
void run_shares_fill(const struct run_table *table, struct result *out);

/* The columns that run_distributions_fill needs. */
#define DISTRIBUTIONS_NEED                                                                         \
    (RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_OUTPUT_TOKENS) | RUN_WANT(RUN_INPUT_TOKENS) |             \
     RUN_WANT(RUN_LATENCY) | RUN_WANT(RUN_TTFT) | RUN_WANT(RUN_WATTS))

/* "distributions": [{"key", "low", "step", "log", "whole", "counts": [...], "beyond", "spread": {"count", "mean",
 * "std", "min", "p50", ... "max"}}] of completed queries.  Bin i begins at low + i x step, or at low x exp(i x step)
 * where `log`; the last one holds all that lies beyond. */
void run_distributions_fill(const struct run_table *table, struct result *out);

#endif
