/* What a token costs: over the run, by phase, by subject, by length. */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "analysis/questions.h"
#include "core/json.h"
#include "core/units.h"
#include "stats/resample.h"

enum { DRAWS = 2000, SEED = 1, GROUPS = 1024 };

struct ratio_row {
    const char *key, *interval_key;
    enum run_number numerator, denominator;
};

/* Sums over sums: the mean over tokens, as docs/metrics.md has it. */
static const struct ratio_row RATIOS[] = {
    {"joules_per_output_token", "joules_per_output_token_interval_95", RUN_JOULES,
     RUN_OUTPUT_TOKENS},
    {"joules_per_input_token", "joules_per_input_token_interval_95", RUN_JOULES, RUN_INPUT_TOKENS},
    {"prefill_joules_per_input_token", "prefill_joules_per_input_token_interval_95",
     RUN_PREFILL_JOULES, RUN_INPUT_TOKENS},
    {"decode_joules_per_output_token", "decode_joules_per_output_token_interval_95",
     RUN_DECODE_JOULES, RUN_OUTPUT_TOKENS},
    {"active_joules_per_output_token", "active_joules_per_output_token_interval_95",
     RUN_ACTIVE_JOULES, RUN_OUTPUT_TOKENS},
    {"output_tokens_per_joule", "output_tokens_per_joule_interval_95", RUN_OUTPUT_TOKENS,
     RUN_JOULES},
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

static enum err take_terms(const struct run_table *table, const struct ratio_row *row,
                           struct questions *questions, struct ratio_terms *out)
{
    *out = (struct ratio_terms){{malloc((table->rows + 1) * sizeof **out->terms),
                                 malloc((table->rows + 1) * sizeof **out->terms)},
                                malloc((table->rows + 1) * sizeof *out->rows),
                                0,
                                0};
    if (!out->terms[0] || !out->terms[1] || !out->rows)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < table->rows; i++) {
        double over = run_number(table, row->numerator, i);
        double under = run_number(table, row->denominator, i);
        if (run_completed(table, i) && is_known(over) && is_known(under)) {
            out->terms[0][out->queries] = over;
            out->terms[1][out->queries] = under;
            out->rows[out->queries++] = (uint32_t)i;
        }
    }
    out->count = questions_add_up(questions, out->rows, out->queries, out->terms, 2);
    return ERR_OK;
}

static enum err put_ratio(const struct run_table *table, const struct ratio_row *row,
                          struct questions *questions, struct json *json)
{
    struct ratio_terms terms = {0};
    struct resample_interval found = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    enum err err = ERR_OK;
    if (table->numbers[row->numerator] && table->numbers[row->denominator])
        err = take_terms(table, row, questions, &terms);
    if (!err && terms.count) {
        struct resample what = {
            {terms.terms[0], terms.terms[1]}, 2, terms.count, quotient, DRAWS, SEED, GROUPS};
        err = resample_interval(&what, &found);
    }
    free(terms.terms[0]);
    free(terms.terms[1]);
    free(terms.rows);
    if (!is_known(found.figure))
        return err;
    json_number(json, row->key, found.figure);
    put_interval(json, row->interval_key, found.low, found.high);
    return err;
}

/* ---- groups ---- */

static double group_ratio(const struct run_table *table, enum run_number numerator,
                          enum run_number denominator, const uint32_t *rows, size_t count)
{
    struct ratio_sums sums = {0};
    for (size_t i = 0; i < count; i++) {
        double over = run_number(table, numerator, rows[i]);
        double under = run_number(table, denominator, rows[i]);
        if (is_known(over) && is_known(under)) {
            sums.rows++;
            sums.numerator += over;
            sums.denominator += under;
        }
    }
    return ratio_value(&sums);
}

static double group_mean(const struct run_table *table, enum run_number column,
                         const uint32_t *rows, size_t count)
{
    struct ratio_sums sums = {0};
    for (size_t i = 0; i < count; i++) {
        double value = run_number(table, column, rows[i]);
        if (is_known(value)) {
            sums.rows++;
            sums.numerator += value;
            sums.denominator++;
        }
    }
    return ratio_value(&sums);
}

static void put_group(const struct run_table *table, const char *name, const char *value,
                      const uint32_t *rows, size_t count, struct json *json)
{
    json_object(json, NULL);
    json_string(json, name, value);
    json_integer(json, "queries", (int64_t)count);
    json_number(json, "joules_per_query", group_mean(table, RUN_JOULES, rows, count));
    json_number(json, "joules_per_output_token",
                group_ratio(table, RUN_JOULES, RUN_OUTPUT_TOKENS, rows, count));
    json_number(json, "prefill_joules_per_input_token",
                group_ratio(table, RUN_PREFILL_JOULES, RUN_INPUT_TOKENS, rows, count));
    json_number(json, "decode_joules_per_output_token",
                group_ratio(table, RUN_DECODE_JOULES, RUN_OUTPUT_TOKENS, rows, count));
    json_number(json, "watts", group_mean(table, RUN_WATTS, rows, count));
    json_number(json, "input_tokens", group_mean(table, RUN_INPUT_TOKENS, rows, count));
    json_number(json, "output_tokens", group_mean(table, RUN_OUTPUT_TOKENS, rows, count));
    json_object_end(json);
}

static void put_groups(const struct run_table *table, const char *key, const char *name,
                       const struct row_groups *groups, enum run_word word, struct json *json)
{
    char length[LENGTH_NAME_MAX];
    json_array(json, key);
    for (size_t g = word == RUN_LEVEL; g < groups->count; g++) { /* no level is no group */
        size_t count = groups->from[g + 1] - groups->from[g];
        if (count)
            put_group(table, name,
                      word < RUN_WORDS ? table->words[word].texts[g] : length_name(g, length),
                      groups->order + groups->from[g], count, json);
    }
    json_array_end(json);
}

static enum err put_all_groups(const struct run_table *table, struct json *json)
{
    static const struct {
        const char *key, *name;
        enum run_number length;
    } LENGTHS[] = {{"by_output_tokens", "length", RUN_OUTPUT_TOKENS},
                   {"by_input_tokens", "length", RUN_INPUT_TOKENS}};
    struct row_groups groups;
    enum err err = groups_by_word(table, RUN_SUBJECT, &groups);
    if (!err)
        put_groups(table, "by_subject", "subject", &groups, RUN_SUBJECT, json);
    row_groups_release(&groups);
    if (!err && table->words[RUN_LEVEL].count > 1) { /* the first is "", for unknown */
        err = groups_by_word(table, RUN_LEVEL, &groups);
        if (!err)
            put_groups(table, "by_level", "level", &groups, RUN_LEVEL, json);
        row_groups_release(&groups);
    }
    for (size_t i = 0; !err && i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
        err = groups_by_length(table, LENGTHS[i].length, &groups);
        if (!err)
            put_groups(table, LENGTHS[i].key, LENGTHS[i].name, &groups, RUN_WORDS, json);
        row_groups_release(&groups);
    }
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
    for (size_t i = 0; !err && i < sizeof SPREADS / sizeof *SPREADS; i++) {
        double *values = NULL;
        size_t count;
        err = SPREADS[i].denominator == RUN_NUMBERS
                  ? known_values(table, SPREADS[i].numerator, &values, &count)
                  : known_ratios(table, SPREADS[i].numerator, SPREADS[i].denominator, &values,
                                 &count);
        if (!err)
            put_spread(json, SPREADS[i].key, values, count);
        free(values);
    }
    json_object_end(json);
    return err;
}

struct totals {
    size_t known, covered;
    double joules, calibration, squares, coverage; /* squares: of the statistical parts */
};

/* Sensors that are wrong are so in every query, and that adds up as it is; what is statistical differs from
 * query to query, and its squares add up.  A ± whose parts are not told is taken for the sensors'. */
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
        err = put_ratio(table, &RATIOS[i], &questions, json);
    questions_release(&questions);
    json_object_end(json);
    json_object(json, "data");
    if (!err)
        err = put_spreads(table, json);
    if (!err)
        err = put_all_groups(table, json);
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
    .summary = "joules a token, by phase, subject and length, with 95 % intervals",
    .needs = {RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_WATTS) | RUN_WANT(RUN_ACTIVE_JOULES) |
                  RUN_WANT(RUN_PREFILL_JOULES) | RUN_WANT(RUN_DECODE_JOULES) |
                  RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_OUTPUT_TOKENS) |
                  RUN_WANT(RUN_PLUS_MINUS) | RUN_WANT(RUN_STATISTICAL) | RUN_WANT(RUN_COVERAGE) |
                  QUESTIONS_NEED,
              RUN_WANT(RUN_SUBJECT) | RUN_WANT(RUN_LEVEL) | RUN_WANT(RUN_METHOD) |
                  RUN_WANT(RUN_SOURCE)},
    .run = efficiency_run,
};
