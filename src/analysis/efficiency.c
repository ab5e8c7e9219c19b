/* What a token costs: over the run, by phase, by subject, by length. */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "stats/bootstrap.h"

enum { DRAWS = 2000, SEED = 1, GROUPS = 1024 };

struct ratio_row {
    const char *key, *interval_key, *queries_key;
    enum run_number numerator, denominator;
};
#define RATIO(key, numerator, denominator)                                                         \
    {key, key "_interval_95", key "_queries", numerator, denominator}

/* Sums over sums: the mean over tokens, as docs/metrics.md has it. */
static const struct ratio_row RATIOS[] = {
    RATIO("joules_per_output_token", RUN_JOULES, RUN_OUTPUT_TOKENS),
    RATIO("joules_per_input_token", RUN_JOULES, RUN_INPUT_TOKENS),
    RATIO("prefill_joules_per_input_token", RUN_PREFILL_JOULES, RUN_INPUT_TOKENS),
    RATIO("decode_joules_per_output_token", RUN_DECODE_JOULES, RUN_OUTPUT_TOKENS),
    RATIO("active_joules_per_output_token", RUN_ACTIVE_JOULES, RUN_OUTPUT_TOKENS),
    RATIO("output_tokens_per_joule", RUN_OUTPUT_TOKENS, RUN_JOULES),
};

static double quotient(const double *sums)
{
    return sums[1] > 0 ? sums[0] / sums[1] : UNKNOWN;
}

/* What completed queries of which both are known add; then, what questions do. */
struct ratio_terms {
    double *terms[2];
    uint32_t *rows;
    size_t queries, count;
};

static void release_terms(struct ratio_terms *terms)
{
    free(terms->terms[0]);
    free(terms->terms[1]);
    free(terms->rows);
    terms->terms[0] = terms->terms[1] = NULL;
    terms->rows = NULL;
}

static enum err take_terms(const struct run_table *table, const struct ratio_row *row,
                           struct questions *questions, struct ratio_terms *out)
{
    out->terms[0] = malloc((table->rows + 1) * sizeof **out->terms);
    out->terms[1] = malloc((table->rows + 1) * sizeof **out->terms);
    out->rows = malloc((table->rows + 1) * sizeof *out->rows);
    if (!out->terms[0] || !out->terms[1] || !out->rows) {
        release_terms(out);
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < table->rows; i++) {
        double over = run_number(table, row->numerator, i);
        double under = run_number(table, row->denominator, i);
        if (run_completed(table, i) && is_known(over) && is_known(under)) {
            out->terms[0][out->queries] = over;
            out->terms[1][out->queries] = under;
            out->rows[out->queries++] = (uint32_t)i;
        }
    }
    double *terms[] = {out->terms[0], out->terms[1]};
    out->count = questions_add_up(questions, out->rows, out->queries, terms, 2);
    return ERR_OK;
}

static enum err put_ratio(struct analysis *analysis, const struct ratio_row *row,
                          struct questions *questions)
{
    const struct run_table *table = analysis->table;
    struct json *json = analysis->json;
    size_t completed = table->rows - table->failed;
    struct ratio_terms terms = {0};
    struct bootstrap_interval found = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    enum err err = ERR_OK;
    if (table->numbers[row->numerator] && table->numbers[row->denominator])
        err = take_terms(table, row, questions, &terms);
    if (!err && terms.count) {
        struct bootstrap what = {
            {terms.terms[0], terms.terms[1]}, 2, terms.count, quotient, DRAWS, SEED, GROUPS};
        err = bootstrap_interval(&what, &found);
    }
    release_terms(&terms);
    if (!is_known(found.figure))
        return err;
    json_number(json, row->key, found.figure);
    json_integer(json, row->queries_key, (int64_t)terms.queries);
    put_interval(json, row->interval_key, found.low, found.high);
    if (2 * terms.queries < completed)
        analysis_warn(analysis,
                      "%s is based on %zu of %zu completed queries: unknown for the others",
                      row->key, terms.queries, completed);
    return err;
}

/* ---- groups ---- */

/* Means and ratios of a group: of the queries of which it is known, whose number stands beside it. */
static const struct group_row {
    const char *key, *queries_key;
    enum run_number numerator, denominator; /* RUN_NUMBERS: of a query */
} GROUP_ROWS[] = {
    {"joules_per_query", "joules_per_query_queries", RUN_JOULES, RUN_NUMBERS},
    {"joules_per_output_token", "joules_per_output_token_queries", RUN_JOULES, RUN_OUTPUT_TOKENS},
    {"prefill_joules_per_input_token", "prefill_joules_per_input_token_queries", RUN_PREFILL_JOULES,
     RUN_INPUT_TOKENS},
    {"decode_joules_per_output_token", "decode_joules_per_output_token_queries", RUN_DECODE_JOULES,
     RUN_OUTPUT_TOKENS},
    {"watts", "watts_queries", RUN_WATTS, RUN_NUMBERS},
    {"input_tokens", "input_tokens_queries", RUN_INPUT_TOKENS, RUN_NUMBERS},
    {"output_tokens", "output_tokens_queries", RUN_OUTPUT_TOKENS, RUN_NUMBERS},
};
enum { GROUP_FIGURES = sizeof GROUP_ROWS / sizeof *GROUP_ROWS };

static struct ratio_sums group_sums(const struct run_table *table, const struct group_row *row,
                                    const uint32_t *rows, size_t count)
{
    struct ratio_sums sums = {0};
    for (size_t i = 0; i < count; i++) {
        double over = run_number(table, row->numerator, rows[i]);
        double under =
            row->denominator == RUN_NUMBERS ? 1 : run_number(table, row->denominator, rows[i]);
        if (is_known(over) && is_known(under)) {
            sums.rows++;
            sums.numerator += over;
            sums.denominator += under;
        }
    }
    return sums;
}

/* Groups in which a figure is of fewer than half of the queries; the first of them by name. */
struct poor {
    size_t groups, known, queries;
    char first[80];
};

struct groups {
    struct analysis *analysis;
    const char *name;
    bool needs_name; /* queries without one are no group */
    struct poor poor[GROUP_FIGURES];
};

static enum err put_group(void *context, const char *value, const uint32_t *rows, size_t count)
{
    struct groups *groups = context;
    struct json *json = groups->analysis->json;
    if (groups->needs_name && !value[0])
        return ERR_OK;
    json_object(json, NULL);
    json_string(json, groups->name, value);
    json_integer(json, "queries", (int64_t)count);
    for (size_t i = 0; i < GROUP_FIGURES; i++) {
        struct poor *poor = &groups->poor[i];
        struct ratio_sums sums = group_sums(groups->analysis->table, &GROUP_ROWS[i], rows, count);
        json_number(json, GROUP_ROWS[i].key, ratio_value(&sums));
        json_integer(json, GROUP_ROWS[i].queries_key, (int64_t)sums.rows);
        if (!sums.rows || 2 * sums.rows >= count || poor->groups++)
            continue;
        poor->known = sums.rows;
        poor->queries = count;
        str_copy(poor->first, sizeof poor->first, value);
    }
    json_object_end(json);
    return ERR_OK;
}

static void warn_poor(struct analysis *analysis, const char *name, const struct poor *poor)
{
    for (size_t i = 0; i < GROUP_FIGURES; i++)
        if (poor[i].groups)
            analysis_warn(
                analysis,
                "%s is of fewer than half of the queries in %zu group%s by %s: of %zu of %zu in "
                "'%s'%s",
                GROUP_ROWS[i].key, poor[i].groups, poor[i].groups == 1 ? "" : "s", name,
                poor[i].known, poor[i].queries, poor[i].first,
                poor[i].groups == 1 ? "" : ", to name one");
}

static enum err put_words(struct analysis *analysis, const char *key, const char *name,
                          enum run_word word)
{
    struct groups groups = {analysis, name, word == RUN_LEVEL, {{0}}};
    json_array(analysis->json, key);
    enum err err = groups_by_word(analysis->table, word, put_group, &groups);
    json_array_end(analysis->json);
    if (word == RUN_SUBJECT)
        warn_poor(analysis, name, groups.poor);
    return err;
}

static enum err put_lengths(struct analysis *analysis, const char *key, enum run_number length)
{
    struct groups groups = {analysis, "length", false, {{0}}};
    json_array(analysis->json, key);
    enum err err = groups_by_length(analysis->table, length, put_group, &groups);
    json_array_end(analysis->json);
    return err;
}

static enum err put_groups(struct analysis *analysis)
{
    enum err err = put_words(analysis, "by_subject", "subject", RUN_SUBJECT);
    if (!err && analysis->table->words[RUN_LEVEL].count > 1) /* the first is "", for unknown */
        err = put_words(analysis, "by_level", "level", RUN_LEVEL);
    if (!err)
        err = put_lengths(analysis, "by_output_tokens", RUN_OUTPUT_TOKENS);
    if (!err)
        err = put_lengths(analysis, "by_input_tokens", RUN_INPUT_TOKENS);
    return err;
}

/* ---- all of it ---- */

static enum err put_spreads(const struct run_table *table, struct json *json)
{
    static const struct {
        const char *key;
        enum run_number numerator, denominator;
    } SPREADS[] = {
        {"joules", RUN_JOULES, RUN_NUMBERS},
        {"watts", RUN_WATTS, RUN_NUMBERS},
        {"prefill_joules", RUN_PREFILL_JOULES, RUN_NUMBERS},
        {"decode_joules", RUN_DECODE_JOULES, RUN_NUMBERS},
        {"joules_per_output_token", RUN_JOULES, RUN_OUTPUT_TOKENS},
    };
    enum err err = ERR_OK;
    json_object(json, "of_a_query");
    for (size_t i = 0; !err && i < sizeof SPREADS / sizeof *SPREADS; i++)
        err = put_column_spread(json, SPREADS[i].key, table, SPREADS[i].numerator,
                                SPREADS[i].denominator);
    json_object_end(json);
    return err;
}

struct totals {
    size_t known, covered;
    double joules, calibration, squares, coverage; /* squares: of the statistical parts */
};

/* Sensors that are wrong are so in every query, and that adds up as it is; what is statistical differs from
 * query to query, and its squares add up.  A ± whose parts are unknown is taken as systematic. */
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
        totals.known++;
        totals.joules += joules;
        add_uncertainty(table, i, &totals);
        totals.covered += is_known(coverage);
        totals.coverage += is_known(coverage) ? coverage : 0;
    }
    return totals;
}

static void put_totals(struct json *json, const struct run_table *table,
                       const struct totals *totals)
{
    json_integer(json, "queries", (int64_t)(table->rows - table->failed));
    json_integer(json, "energy_known", (int64_t)totals->known);
    json_number(json, "joules", totals->joules);
    json_number(json, "joules_error", hypot(totals->calibration, sqrt(totals->squares)));
    json_string(json, "method", common_word(table, RUN_METHOD));
    json_string(json, "source", common_word(table, RUN_SOURCE));
    json_number(json, "coverage",
                totals->covered ? totals->coverage / (double)totals->covered : UNKNOWN);
    json_number(json, "joules_per_query", totals->joules / (double)totals->known);
}

static enum err efficiency_run(struct analysis *analysis, struct error *why)
{
    const struct run_table *table = analysis->table;
    struct json *json = analysis->json;
    struct totals totals = totals_of(table);
    if (!totals.known)
        return lacks(table, "the energy is", why);
    json_object(json, "summary");
    put_totals(json, table, &totals);
    struct questions questions;
    enum err err = questions_of(table, &questions);
    for (size_t i = 0; !err && i < sizeof RATIOS / sizeof *RATIOS; i++)
        err = put_ratio(analysis, &RATIOS[i], &questions);
    questions_release(&questions);
    json_object_end(json);
    json_object(json, "data");
    if (!err)
        err = put_spreads(table, json);
    if (!err)
        err = put_groups(analysis);
    json_object_end(json);
    if (totals.known < table->rows - table->failed)
        analysis_warn(analysis, "the energy of %zu of %zu completed queries is unknown",
                      table->rows - table->failed - totals.known, table->rows - table->failed);
    if (!table->ours)
        analysis_warn(analysis,
                      "energies are those of the GPUs or the chip in the queries' windows, "
                      "without their uncertainty: a run of the Python IPW");
    return err;
}

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
    .run = efficiency_run,
};
