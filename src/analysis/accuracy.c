/* How often answers are right, and what that costs: the Python IPW's figures under its keys, ours
 * (docs/metrics.md) with intervals, by subject and by level. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "estimate/intelligence.h"
#include "stats/resample.h"
#include "stats/select.h"

enum {
    DRAWS = 2000,
    GROUP_DRAWS = 1000,
    GROUPS = 1024,
    GROUPS_FEW = 256,
    SEED = 1,
    SUBJECTS_MOST = 200
};

/* What lies under it is no energy or power: the Python IPW's bound. */
#define POSITIVE_LEAST 1e-12

static bool is_positive(double value)
{
    return is_known(value) && value > POSITIVE_LEAST;
}

/* ---- intervals ---- */

/* (right / graded) / (joules / queries of known energy) */
static double ipj_of(const double *sums)
{
    return sums[1] > 0 && sums[2] > 0 && sums[3] > 0 ? sums[0] / sums[1] / (sums[2] / sums[3])
                                                     : UNKNOWN;
}

struct terms {
    double *columns[4]; /* right, graded, joules, of known energy */
    size_t count;
};

static enum err terms_init(struct terms *terms, size_t most)
{
    *terms = (struct terms){0};
    for (size_t i = 0; i < 4; i++)
        if (!(terms->columns[i] = malloc((most + 1) * sizeof *terms->columns[i])))
            return ERR_NO_MEMORY;
    return ERR_OK;
}

static void terms_release(struct terms *terms)
{
    for (size_t i = 0; i < 4; i++)
        free(terms->columns[i]);
}

static void terms_add(struct terms *terms, const struct run_table *table, size_t row)
{
    int verdict = run_flag(table, RUN_CORRECT, row);
    double joules = run_number(table, RUN_JOULES, row);
    terms->columns[0][terms->count] = verdict == 1;
    terms->columns[1][terms->count] = verdict >= 0;
    terms->columns[2][terms->count] = is_known(joules) ? joules : 0;
    terms->columns[3][terms->count++] = is_known(joules);
}

static enum err ipj_interval(const struct terms *terms, unsigned draws, size_t groups,
                             struct resample_interval *out)
{
    struct resample what = {
        {terms->columns[0], terms->columns[1], terms->columns[2], terms->columns[3]},
        4,
        terms->count,
        ipj_of,
        draws,
        SEED,
        groups};
    return resample_interval(&what, out);
}

/* ---- tallies ---- */

static void tally_row(struct intelligence_tally *tally, const struct run_table *table, size_t row)
{
    int verdict = run_flag(table, RUN_CORRECT, row);
    struct intelligence_query query = {
        .outcome = !run_completed(table, row) ? OUTCOME_FAILED
                   : verdict < 0              ? OUTCOME_UNGRADED
                   : verdict                  ? OUTCOME_CORRECT
                                              : OUTCOME_INCORRECT,
        .joules = run_number(table, RUN_JOULES, row),
        .active_joules = run_number(table, RUN_ACTIVE_JOULES, row),
        .seconds = run_number(table, RUN_LATENCY, row),
        .gpu_joules = run_number(table, RUN_BASIS_JOULES, row),
        .gpu_watts = run_number(table, RUN_BASIS_WATTS, row),
    };
    intelligence_add(tally, &query);
}

/* ---- the Python IPW's energy and power ---- */

struct upstream {
    double *joules, *watts;
    size_t joules_count, watts_count;
    size_t zero_joules, zero_watts, imputed, derived, measured;
};

static void upstream_add(struct upstream *up, const struct run_table *table, size_t row,
                         enum run_number energy, enum run_number power)
{
    double joules = run_number(table, energy, row), watts = run_number(table, power, row);
    double s = run_number(table, RUN_LATENCY, row);
    up->zero_joules += is_known(joules) && !is_positive(joules);
    up->zero_watts += is_known(watts) && !is_positive(watts);
    if (is_positive(joules)) {
        up->joules[up->joules_count++] = joules;
    } else if (is_positive(watts) && is_positive(s)) {
        up->joules[up->joules_count++] = watts * s;
        up->imputed++;
    }
    if (is_positive(joules) && is_positive(s)) {
        up->watts[up->watts_count++] = joules / s;
        up->derived++;
    } else if (is_positive(watts)) {
        up->watts[up->watts_count++] = watts;
        up->measured++;
    }
}

static enum err upstream_of(const struct run_table *table, struct upstream *out)
{
    bool machine = is_by_machine(table);
    *out = (struct upstream){.joules = malloc((table->rows + 1) * sizeof *out->joules),
                             .watts = malloc((table->rows + 1) * sizeof *out->watts)};
    if (!out->joules || !out->watts)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < table->rows; i++)
        if (run_completed(table, i))
            upstream_add(out, table, i, machine ? RUN_JOULES : RUN_BASIS_JOULES,
                         machine ? RUN_WATTS : RUN_BASIS_WATTS);
    return ERR_OK;
}

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / (double)count : UNKNOWN;
}

static double quotient(double over, double under)
{
    return is_known(over) && is_positive(under) ? over / under : UNKNOWN;
}

static void put_extremes(struct json *json, double *values, size_t count, bool total)
{
    double mean = mean_of(values, count), min = UNKNOWN, max = UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        min = fmin(min, values[i]);
        max = fmax(max, values[i]);
    }
    json_integer(json, "count", (int64_t)count);
    json_number(json, "avg", mean);
    json_number(json, "median", select_median(values, count));
    json_number(json, "min", min);
    json_number(json, "max", max);
    if (total)
        json_number(json, "total", mean * (double)count);
}

static void put_efficiency(struct json *json, const struct run_table *table, double accuracy,
                           struct upstream *up)
{
    double joules = mean_of(up->joules, up->joules_count);
    double watts = mean_of(up->watts, up->watts_count);
    json_object(json, "efficiency");
    json_object(json, table->model);
    json_number(json, "intelligence_per_joule", quotient(accuracy, joules));
    json_number(json, "intelligence_per_watt", quotient(accuracy, watts));
    json_object(json, "energy");
    put_extremes(json, up->joules, up->joules_count, true);
    json_number(json, "accuracy", accuracy);
    json_integer(json, "zero_values", (int64_t)up->zero_joules);
    json_bool(json, "imputed_from_power", up->imputed > 0);
    json_integer(json, "imputed_count", (int64_t)up->imputed);
    json_object_end(json);
    json_object(json, "power");
    put_extremes(json, up->watts, up->watts_count, false);
    json_number(json, "accuracy", accuracy);
    json_integer(json, "zero_values", (int64_t)up->zero_watts);
    json_integer(json, "derived_power_samples", (int64_t)up->derived);
    json_integer(json, "power_metric_samples", (int64_t)up->measured);
    json_object_end(json);
    json_object_end(json);
    json_object_end(json);
}

/* ---- summary ---- */

static void put_counts(struct json *json, const struct intelligence_tally *tally,
                       const struct intelligence *score)
{
    json_integer(json, "correct", (int64_t)tally->correct);
    json_integer(json, "incorrect", (int64_t)tally->incorrect);
    json_integer(json, "unevaluated", (int64_t)tally->ungraded);
    json_integer(json, "failed", (int64_t)tally->failed);
    json_integer(json, "total_scored", (int64_t)(tally->correct + tally->incorrect));
    json_number(json, "accuracy", score->accuracy);
    put_interval(json, "accuracy_interval_95", score->accuracy_low, score->accuracy_high);
}

static enum err put_summary(struct json *json, const struct run_table *table,
                            const struct intelligence_tally *tally,
                            const struct intelligence *score, const struct upstream *up)
{
    struct terms terms;
    struct resample_interval ipj = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    double joules = mean_of(up->joules, up->joules_count);
    double watts = mean_of(up->watts, up->watts_count);
    enum err err = terms_init(&terms, table->rows);
    for (size_t i = 0; !err && i < table->rows; i++)
        if (run_completed(table, i))
            terms_add(&terms, table, i);
    if (!err)
        err = ipj_interval(&terms, DRAWS, GROUPS, &ipj);
    terms_release(&terms);
    json_object(json, "summary");
    json_string(json, "model", table->model);
    put_counts(json, tally, score);
    json_number(json, "intelligence_per_joule", quotient(score->accuracy, joules));
    json_number(json, "intelligence_per_watt", quotient(score->accuracy, watts));
    json_number(json, "avg_per_query_energy_joules", joules);
    json_number(json, "avg_per_query_power_watts", watts);
    json_integer(json, "energy_sample_count", (int64_t)up->joules_count);
    json_integer(json, "power_sample_count", (int64_t)up->watts_count);
    json_string(json, "energy_basis", energy_basis(table));
    json_number(json, "ipj", score->ipj);
    put_interval(json, "ipj_interval_95", ipj.low, ipj.high);
    json_number(json, "ipj_plus_minus", run_fact(table, "ipw.ipj_plus_minus"));
    json_number(json, "ipj_active", score->ipj_active);
    json_number(json, "ipw", score->ipw);
    put_interval(json, "ipw_interval_95", quotient(score->accuracy_low, score->busy_watts),
                 quotient(score->accuracy_high, score->busy_watts));
    json_number(json, "joules_per_query", score->joules_per_query);
    json_number(json, "busy_watts", score->busy_watts);
    json_object_end(json);
    return err;
}

/* ---- groups ---- */

static enum err put_group(struct json *json, const char *name, const char *value,
                          const struct run_table *table, const uint32_t *rows, size_t count)
{
    struct intelligence_tally tally = {0};
    struct intelligence score;
    struct busy_energy none = {UNKNOWN, UNKNOWN, UNKNOWN};
    struct resample_interval ipj = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    struct terms terms;
    enum err err = terms_init(&terms, count);
    for (size_t i = 0; !err && i < count; i++) {
        tally_row(&tally, table, rows[i]);
        terms_add(&terms, table, rows[i]);
    }
    if (!err)
        err = ipj_interval(&terms, GROUP_DRAWS, GROUPS_FEW, &ipj);
    terms_release(&terms);
    intelligence_of(&tally, &none, UNKNOWN, &score);
    json_object(json, NULL);
    json_string(json, name, value);
    json_integer(json, "queries", (int64_t)count);
    json_integer(json, "correct", (int64_t)tally.correct);
    json_integer(json, "incorrect", (int64_t)tally.incorrect);
    json_number(json, "accuracy", score.accuracy);
    put_interval(json, "accuracy_interval_95", score.accuracy_low, score.accuracy_high);
    json_number(json, "joules_per_query", score.joules_per_query);
    json_number(json, "ipj", score.ipj);
    put_interval(json, "ipj_interval_95", ipj.low, ipj.high);
    json_object_end(json);
    return err;
}

static enum err put_groups(struct analysis *analysis, const char *key, const char *name,
                           enum run_word word)
{
    const struct run_table *table = analysis->table;
    struct row_groups groups;
    size_t shown = 0;
    enum err err = groups_by_word(table, word, &groups);
    json_array(analysis->json, key);
    for (size_t g = 0; !err && g < groups.count; g++) {
        size_t count = groups.from[g + 1] - groups.from[g];
        bool unknown = g == 0 && word != RUN_SUBJECT; /* most datasets have no levels */
        if (count && !unknown && shown++ < SUBJECTS_MOST)
            err = put_group(analysis->json, name, table->words[word].texts[g], table,
                            groups.order + groups.from[g], count);
    }
    json_array_end(analysis->json);
    if (shown > SUBJECTS_MOST)
        analysis_warn(analysis, "%zu of %zu values of %s are shown", (size_t)SUBJECTS_MOST, shown,
                      name);
    row_groups_release(&groups);
    return err;
}

/* ---- all of it ---- */

static enum err put_data(struct analysis *analysis, const struct intelligence_tally *tally,
                         const struct intelligence *score, struct upstream *up)
{
    struct json *json = analysis->json;
    json_object(json, "data");
    json_object(json, "per_model");
    json_object(json, analysis->table->model);
    put_counts(json, tally, score);
    json_object_end(json);
    json_object_end(json);
    put_efficiency(json, analysis->table, score->accuracy, up);
    enum err err = put_groups(analysis, "by_subject", "subject", RUN_SUBJECT);
    if (!err)
        err = put_groups(analysis, "by_level", "level", RUN_LEVEL);
    json_object_end(json);
    return err;
}

static enum err accuracy_run(struct analysis *analysis, struct error *why)
{
    const struct run_table *table = analysis->table;
    struct intelligence_tally tally = {0};
    struct intelligence score;
    /* Energy over time is all that intelligence_of makes of it: a second of the mean power will do. */
    struct busy_energy busy = {run_fact(table, "ipw.busy_watts"), UNKNOWN, 1};
    for (size_t i = 0; i < table->rows; i++)
        tally_row(&tally, table, i);
    if (!(tally.correct + tally.incorrect))
        return err_set(why, ERR_NO_DATA, "none of %zu completed answers is graded",
                       table->rows - table->failed);
    intelligence_of(&tally, &busy, UNKNOWN, &score);
    struct upstream up;
    enum err err = upstream_of(table, &up);
    if (!err)
        err = put_summary(analysis->json, table, &tally, &score, &up);
    if (!err)
        err = put_data(analysis, &tally, &score, &up);
    if (!err && tally.ungraded)
        analysis_warn(analysis, "%llu answers are not graded and are not in the accuracy",
                      (unsigned long long)tally.ungraded);
    if (!err && up.zero_joules)
        analysis_warn(analysis, "%zu energies of 0 or below; %zu were replaced by power x time",
                      up.zero_joules, up.imputed);
    if (!err && !up.joules_count)
        analysis_warn(analysis, "no query's energy is known: no figure per joule");
    free(up.joules);
    free(up.watts);
    return err;
}

const struct analysis_driver analysis_accuracy = {
    .name = "accuracy",
    .summary = "right answers, intelligence per joule and per watt, by subject and level",
    .needs = {RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_ACTIVE_JOULES) | RUN_WANT(RUN_LATENCY) |
                  RUN_WANT(RUN_WATTS) | RUN_WANT(RUN_BASIS_JOULES) | RUN_WANT(RUN_BASIS_WATTS),
              RUN_WANT(RUN_SUBJECT) | RUN_WANT(RUN_LEVEL) | RUN_WANT(RUN_BASIS)},
    .run = accuracy_run,
};
