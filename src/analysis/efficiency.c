/* Energy per token: over the run, by phase, by subject, by length. */
#include <math.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/text.h"
#include "core/units.h"
#include "metrics/energy_per.h"
#include "stats/bootstrap.h"

enum { DRAWS = 2000, SEED = 1, GROUPS = 1024 };

/* Ratios of sums: means over tokens, as in docs/metrics.md. */
static const struct ratio_row RATIOS[] = {
    {"joules_per_output_token", RUN_JOULES, RUN_OUTPUT_TOKENS},
    {"joules_per_input_token", RUN_JOULES, RUN_INPUT_TOKENS},
    {"prefill_joules_per_input_token", RUN_PREFILL_JOULES, RUN_INPUT_TOKENS},
    {"decode_joules_per_output_token", RUN_DECODE_JOULES, RUN_OUTPUT_TOKENS},
    {"active_joules_per_output_token", RUN_ACTIVE_JOULES, RUN_OUTPUT_TOKENS},
    {"output_tokens_per_joule", RUN_OUTPUT_TOKENS, RUN_JOULES},
};

static double quotient(const double *sums)
{
    return sums[1] > 0 ? sums[0] / sums[1] : UNKNOWN;
}

/* For completed queries in which both are known. */
static void take_terms(const struct run_table *table, const struct ratio_row *row,
                       struct questions *questions, struct question_terms *out)
{
    question_terms_init(out, table->rows, 2);
    for (size_t i = 0; i < table->rows; i++) {
        const double added[] = {run_number(table, row->numerator, i),
                                run_number(table, row->denominator, i)};
        if (run_completed(table, i) && is_known(added[0]) && is_known(added[1]))
            question_terms_add(out, i, added);
    }
    question_terms_close(out, questions);
}

static void put_ratio(struct analysis *analysis, const struct ratio_row *row,
                      struct questions *questions)
{
    const struct run_table *table = analysis->table;
    struct result *result = analysis->result;
    size_t completed = run_completed_count(table);
    struct question_terms terms = {0};
    struct bootstrap_interval found = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    if (table->numbers[row->numerator] && table->numbers[row->denominator])
        take_terms(table, row, questions, &terms);
    if (terms.count) {
        struct bootstrap what = {
            {terms.columns[0], terms.columns[1]}, 2, terms.count, quotient, DRAWS, SEED, GROUPS};
        bootstrap_interval(&what, &found);
    }
    size_t queries = terms.queries;
    question_terms_release(&terms);
    if (!is_known(found.figure))
        return;
    result_number(result, row->key, found.figure, column_unit(row->numerator, row->denominator));
    result_queries(result, row->key, queries);
    result_interval(result, row->key, found.low, found.high);
    if (2 * queries < completed)
        result_warn(analysis->result,
                    "%s is based on %zu of %zu completed %s: unknown for the others", row->key,
                    queries, completed, units_of(table, true));
}

/* ---- groups ---- */

/* Means and ratios of a group, over the queries in which they are known; their number is added. */
static const struct ratio_row GROUP_ROWS[] = {
    {"joules_per_query", RUN_JOULES, RUN_NUMBERS},
    {"joules_per_output_token", RUN_JOULES, RUN_OUTPUT_TOKENS},
    {"prefill_joules_per_input_token", RUN_PREFILL_JOULES, RUN_INPUT_TOKENS},
    {"decode_joules_per_output_token", RUN_DECODE_JOULES, RUN_OUTPUT_TOKENS},
    {"watts", RUN_WATTS, RUN_NUMBERS},
    {"input_tokens", RUN_INPUT_TOKENS, RUN_NUMBERS},
    {"output_tokens", RUN_OUTPUT_TOKENS, RUN_NUMBERS},
};
enum { GROUP_FIGURES = COUNT_OF(GROUP_ROWS) };

/* Groups in which a figure is known for fewer than half of the queries; the first of them by name. */
struct rare {
    size_t groups, known, queries;
    char first[80];
};

struct groups {
    struct analysis *analysis;
    const char *name;
    bool needs_name; /* queries without one form no group */
    struct rare rare[GROUP_FIGURES];
};

static void put_group(void *context, const char *value, const uint32_t *rows, size_t count)
{
    struct groups *groups = context;
    struct result *result = groups->analysis->result;
    if (groups->needs_name && !value[0])
        return;
    result_group(result, NULL);
    result_text(result, groups->name, value);
    result_count(result, "queries", count);
    for (size_t i = 0; i < GROUP_FIGURES; i++) {
        struct rare *rare = &groups->rare[i];
        const struct ratio_row *row = &GROUP_ROWS[i];
        struct ratio_sums sums = ratio_sums_put(result, groups->analysis->table, row, rows, count);
        if (!sums.rows || 2 * sums.rows >= count || rare->groups++)
            continue;
        rare->known = sums.rows;
        rare->queries = count;
        chars_copy(rare->first, value);
    }
    result_end(result);
}

static void warn_of_unknown(struct analysis *analysis, const char *name, const struct rare *rare)
{
    for (size_t i = 0; i < GROUP_FIGURES; i++)
        if (rare[i].groups)
            result_warn(analysis->result,
                        "%s is known for fewer than half of the queries in %zu group%s by %s: for "
                        "%zu of %zu in '%s'%s",
                        GROUP_ROWS[i].key, rare[i].groups, rare[i].groups == 1 ? "" : "s", name,
                        rare[i].known, rare[i].queries, rare[i].first,
                        rare[i].groups == 1 ? "" : ", for example");
}

static void put_words(struct analysis *analysis, const char *key, const char *name,
                      enum run_word word)
{
    struct groups groups = {analysis, name, word == RUN_LEVEL, {{0}}};
    result_list(analysis->result, key);
    groups_by_word(analysis->table, word, put_group, &groups);
    result_end(analysis->result);
    if (word == RUN_SUBJECT)
        warn_of_unknown(analysis, name, groups.rare);
}

static void put_lengths(struct analysis *analysis, const char *key, enum run_number length)
{
    struct groups groups = {analysis, "length", false, {{0}}};
    result_list(analysis->result, key);
    groups_by_length(analysis->table, length, put_group, &groups);
    result_end(analysis->result);
}

static void put_groups(struct analysis *analysis)
{
    put_words(analysis, "by_subject", "subject", RUN_SUBJECT);
    if (analysis->table->words[RUN_LEVEL].count > 1) /* the first is "", for unknown */
        put_words(analysis, "by_level", "level", RUN_LEVEL);
    put_lengths(analysis, "by_output_tokens", RUN_OUTPUT_TOKENS);
    put_lengths(analysis, "by_input_tokens", RUN_INPUT_TOKENS);
}

/* ---- the complete analysis ---- */

/* Per query. */
static const struct ratio_row SPREADS[] = {
    {"joules", RUN_JOULES, RUN_NUMBERS},
    {"watts", RUN_WATTS, RUN_NUMBERS},
    {"prefill_joules", RUN_PREFILL_JOULES, RUN_NUMBERS},
    {"decode_joules", RUN_DECODE_JOULES, RUN_NUMBERS},
    {"joules_per_output_token", RUN_JOULES, RUN_OUTPUT_TOKENS},
};

struct totals {
    struct energy_per query;
    size_t covered;
    double calibration, squares, coverage; /* squares: of the statistical parts */
};

/* Systematic errors are the same in every query and add linearly; statistical ones are independent, and their squares
 * add.  A ± whose parts are unknown is treated as systematic. */
static void add_uncertainty(const struct run_table *table, size_t row, struct totals *totals)
{
    double all = run_number(table, RUN_PLUS_MINUS, row);
    double statistical = run_number(table, RUN_STATISTICAL, row);
    if (!is_known(statistical))
        statistical = 0;
    totals->squares += statistical * statistical;
    double rest = all * all - statistical * statistical;
    totals->calibration += is_known(rest) ? sqrt(fmax(0, rest)) : UNKNOWN;
}

static struct totals totals_of(const struct run_table *table)
{
    struct totals totals = {0};
    for (size_t i = 0; i < table->rows; i++) {
        double joules = run_number(table, RUN_JOULES, i);
        double coverage = run_number(table, RUN_COVERAGE, i);
        if (!run_completed(table, i) || !is_known(joules))
            continue;
        energy_per_add(&totals.query, joules, 1);
        add_uncertainty(table, i, &totals);
        totals.covered += is_known(coverage);
        totals.coverage += known_or(coverage, 0);
    }
    return totals;
}

static double totals_error(const struct totals *totals)
{
    return hypot(totals->calibration, sqrt(totals->squares));
}

static void put_totals(struct result *result, const struct run_table *table,
                       const struct totals *totals)
{
    result_text(result, "unit", units_of(table, false));
    result_count(result, "queries", run_completed_count(table));
    result_count(result, "energy_known", totals->query.queries);
    result_figure(result, "joules", totals->query.joules, totals_error(totals), "J");
    result_text(result, "method", common_word(table, RUN_METHOD));
    result_text(result, "source", common_word(table, RUN_SOURCE));
    result_number(result, "coverage",
                  totals->covered ? totals->coverage / (double)totals->covered : UNKNOWN, "%");
    result_number(result, "joules_per_query", energy_per_of(&totals->query), "J");
    result_uncertain(result, "joules_per_query",
                     totals_error(totals) / (double)totals->query.queries);
}

static enum err efficiency_run(struct analysis *analysis, struct error *why)
{
    const struct run_table *table = analysis->table;
    struct result *result = analysis->result;
    struct totals totals = totals_of(table);
    if (!totals.query.queries)
        return no_data_error(table, "the energy is", why);
    result_group(result, "summary");
    put_totals(result, table, &totals);
    struct questions questions;
    questions_of(table, &questions);
    for (size_t i = 0; i < COUNT_OF(RATIOS); i++)
        put_ratio(analysis, &RATIOS[i], &questions);
    questions_release(&questions);
    /* Parts of the run's energy have its relative uncertainty. */
    result_uncertain(result, "joules_per_output_token",
                     result_number_at(result->items, "summary.joules_per_output_token") *
                         totals_error(&totals) / totals.query.joules);
    result_end(result);
    result_group(result, "data");
    ratio_spreads(result, "of_a_query", table, SPREADS, COUNT_OF(SPREADS));
    put_groups(analysis);
    result_end(result);
    if (totals.query.queries < run_completed_count(table))
        result_warn(analysis->result, "the energy of %zu of %zu completed %s is unknown",
                    run_completed_count(table) - totals.query.queries, run_completed_count(table),
                    units_of(table, true));
    if (!table->ours)
        result_warn(analysis->result,
                    "energies are those of the GPUs or the chip in the queries' windows, "
                    "without their uncertainty: a run of the Python IPW");
    return ERR_OK;
}

static const struct result_phrase FINDING[] = {
    {"", "summary.joules_per_query", ""},
    {" per ", "summary.unit", ""},
    {", ", "summary.joules_per_output_token", " per output token"},
    {", ", "summary.joules", " in total"},
    {" (", "summary.method", ")"},
    {0},
};

const struct analysis_driver analysis_efficiency = {
    .name = "efficiency",
    .summary = "energy per token, by phase, subject and length, with 95 % intervals",
    .needs = {RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_WATTS) | RUN_WANT(RUN_ACTIVE_JOULES) |
                  RUN_WANT(RUN_PREFILL_JOULES) | RUN_WANT(RUN_DECODE_JOULES) |
                  RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_OUTPUT_TOKENS) |
                  RUN_WANT(RUN_PLUS_MINUS) | RUN_WANT(RUN_STATISTICAL) | RUN_WANT(RUN_COVERAGE) |
                  QUESTIONS_NEED,
              RUN_WANT(RUN_SUBJECT) | RUN_WANT(RUN_LEVEL) | RUN_WANT(RUN_METHOD) |
                  RUN_WANT(RUN_SOURCE)},
    .finding = FINDING,
    .run = efficiency_run,
};
