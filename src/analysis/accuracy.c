/* Accuracy, and intelligence per joule and per watt: the keys of the Python IPW over graded queries, then ours with
 * their intervals, by subject and by level. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/json.h"
#include "core/units.h"
#include "metrics/intelligence.h"
#include "stats/bootstrap.h"
#include "stats/quantile.h"

/* ---- energy of graded queries ---- */

struct graded_energy {
    double *joules, *watts;
    size_t joules_count, watts_count;
    size_t zero_joules, zero_watts; /* given, and zero or less */
    size_t imputed, derived, measured;
    double imputed_sum;
    size_t energy_right, energy_graded; /* of the queries whose energy is above zero */
    size_t power_right, power_graded;
    double mean_joules, mean_watts; /* UNKNOWN of none */
};

/* What lies under it is no energy or power: the Python IPW's bound. */
#define POSITIVE_LEAST 1e-12

struct query {
    double joules, watts, seconds;
    bool right;
};

static bool is_positive(double value)
{
    return is_known(value) && value > POSITIVE_LEAST;
}

static void add_energy(struct graded_energy *graded, const struct query *query)
{
    if (is_positive(query->joules)) {
        graded->joules[graded->joules_count++] = query->joules;
        graded->energy_graded++;
        graded->energy_right += query->right;
        return;
    }
    if (!is_known(query->joules))
        return;
    graded->zero_joules++;
    if (!is_positive(query->watts) || !is_positive(query->seconds))
        return;
    double joules = query->watts * query->seconds;
    graded->joules[graded->joules_count++] = joules;
    graded->imputed_sum += joules;
    graded->imputed++;
}

static void add_power(struct graded_energy *graded, const struct query *query)
{
    bool derived = is_positive(query->joules) && is_positive(query->seconds);
    if (!derived && !is_positive(query->watts)) {
        graded->zero_watts += is_known(query->watts);
        return;
    }
    graded->watts[graded->watts_count++] = derived ? query->joules / query->seconds : query->watts;
    graded->derived += derived;
    graded->measured += !derived;
    graded->power_graded++;
    graded->power_right += query->right;
}

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / (double)count : UNKNOWN;
}

static enum err graded_energy_of(const struct run_table *table, struct graded_energy *out)
{
    bool machine = is_by_machine(table);
    *out = (struct graded_energy){.joules = malloc((table->rows + 1) * sizeof *out->joules),
                                  .watts = malloc((table->rows + 1) * sizeof *out->watts)};
    if (!out->joules || !out->watts)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < table->rows; i++) {
        int verdict = run_flag(table, RUN_CORRECT, i);
        if (!run_completed(table, i) || verdict < 0)
            continue;
        struct query query = {
            .joules = run_number(table, machine ? RUN_JOULES : RUN_BASIS_JOULES, i),
            .watts = run_number(table, machine ? RUN_WATTS : RUN_BASIS_WATTS, i),
            .seconds = run_number(table, RUN_LATENCY, i),
            .right = verdict == 1,
        };
        add_energy(out, &query);
        add_power(out, &query);
    }
    out->mean_joules = mean_of(out->joules, out->joules_count);
    out->mean_watts = mean_of(out->watts, out->watts_count);
    return ERR_OK;
}

static void graded_energy_release(struct graded_energy *graded)
{
    free(graded->joules);
    free(graded->watts);
    *graded = (struct graded_energy){0};
}

static void put_extremes(struct json *json, double *values, size_t count, double mean)
{
    double min = UNKNOWN, max = UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        min = fmin(min, values[i]);
        max = fmax(max, values[i]);
    }
    json_integer(json, "count", (int64_t)count);
    json_number(json, "avg", mean);
    json_number(json, "median", select_median(values, count));
    json_number(json, "min", min);
    json_number(json, "max", max);
}

static void put_share(struct json *json, size_t right, size_t graded)
{
    json_number(json, "accuracy", graded ? (double)right / (double)graded : UNKNOWN);
}

static void graded_energy_put(struct json *json, struct graded_energy *graded)
{
    json_object(json, "energy");
    put_extremes(json, graded->joules, graded->joules_count, graded->mean_joules);
    json_number(json, "total", graded->mean_joules * (double)graded->joules_count);
    put_share(json, graded->energy_right, graded->energy_graded);
    json_integer(json, "zero_values", (int64_t)graded->zero_joules);
    json_number(json, "imputed_from_power",
                graded->imputed ? graded->imputed_sum / (double)graded->imputed : UNKNOWN);
    json_integer(json, "imputed_count", (int64_t)graded->imputed);
    json_object_end(json);
    json_object(json, "power");
    put_extremes(json, graded->watts, graded->watts_count, graded->mean_watts);
    put_share(json, graded->power_right, graded->power_graded);
    json_integer(json, "zero_values", (int64_t)graded->zero_watts);
    json_integer(json, "derived_power_samples", (int64_t)graded->derived);
    json_integer(json, "power_metric_samples", (int64_t)graded->measured);
    json_object_end(json);
}

/* ---- the analysis ---- */

enum {
    DRAWS = 2000,
    GROUP_DRAWS = 1000,
    GROUPS = 1024,
    GROUPS_FEW = 256,
    SEED = 1,
    SUBJECTS_MOST = 200,
    RECORDS_MOST = 2000 /* whose texts are written */
};

/* ---- intervals ---- */

/* (right / graded) / (joules / queries of known energy) */
static double ipj_of(const double *sums)
{
    return sums[1] > 0 && sums[2] > 0 && sums[3] > 0 ? sums[0] / sums[1] / (sums[2] / sums[3])
                                                     : UNKNOWN;
}

/* 1 / (joules / queries of known energy) */
static double per_joule(const double *sums)
{
    return sums[1] > 0 && sums[0] > 0 ? sums[1] / sums[0] : UNKNOWN;
}

/* What queries add to the sums, and after terms_close, what questions do. */
struct terms {
    double *columns[QUESTION_TERMS];
    uint32_t *rows;
    size_t count;
};

static enum err terms_init(struct terms *terms, size_t most)
{
    *terms = (struct terms){.rows = malloc((most + 1) * sizeof *terms->rows)};
    if (!terms->rows)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < QUESTION_TERMS; i++)
        if (!(terms->columns[i] = malloc((most + 1) * sizeof *terms->columns[i])))
            return ERR_NO_MEMORY;
    return ERR_OK;
}

static void terms_release(struct terms *terms)
{
    for (size_t i = 0; i < QUESTION_TERMS; i++)
        free(terms->columns[i]);
    free(terms->rows);
}

static void terms_add(struct terms *terms, const struct run_table *table, size_t row)
{
    double added[QUESTION_TERMS];
    question_terms_of(table, row, added);
    for (size_t i = 0; i < QUESTION_TERMS; i++)
        terms->columns[i][terms->count] = added[i];
    terms->rows[terms->count++] = (uint32_t)row;
}

static enum err terms_close(struct terms *terms, struct questions *questions,
                            struct repeats *repeats)
{
    terms->count =
        questions_add_up(questions, terms->rows, terms->count, terms->columns, QUESTION_TERMS);
    return question_repeats(questions, terms->columns, terms->count, repeats);
}

/* Where all or none are right, resampling says nothing about the accuracy: its own interval does, joined with
 * what the joules scatter. */
static enum err edge_interval(const struct terms *terms, const struct intelligence *score,
                              struct bootstrap what, struct bootstrap_interval *out)
{
    struct bootstrap_interval inverse;
    what.terms[0] = terms->columns[2];
    what.terms[1] = terms->columns[3];
    what.sums = 2;
    what.figure = per_joule;
    enum err err = bootstrap_interval(&what, &inverse);
    double accuracy = score->accuracy, low = score->accuracy_low, high = score->accuracy_high;
    if (err || !is_known(inverse.low) || !is_known(inverse.high))
        return err;
    out->low = out->figure -
               hypot((accuracy - low) * inverse.figure, accuracy * (inverse.figure - inverse.low));
    out->high = out->figure +
                hypot((high - accuracy) * inverse.figure, high * (inverse.high - inverse.figure));
    out->low = fmax(0, out->low);
    return err;
}

static enum err ipj_interval(const struct terms *terms, const struct intelligence *score,
                             unsigned draws, size_t groups, struct bootstrap_interval *out)
{
    struct bootstrap what = {
        {terms->columns[0], terms->columns[1], terms->columns[2], terms->columns[3]},
        QUESTION_TERMS,
        terms->count,
        ipj_of,
        draws,
        SEED,
        groups};
    enum err err = bootstrap_interval(&what, out);
    if (!err && (score->accuracy == 0 || score->accuracy == 1) && is_known(out->figure))
        err = edge_interval(terms, score, what, out);
    return err;
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

static void put_efficiency(struct json *json, const struct run_table *table, double accuracy,
                           struct graded_energy *graded)
{
    json_object(json, "efficiency");
    json_object(json, table->model);
    json_number(json, "intelligence_per_joule", ratio(accuracy, graded->mean_joules));
    json_number(json, "intelligence_per_watt", ratio(accuracy, graded->mean_watts));
    graded_energy_put(json, graded);
    json_object_end(json);
    json_object_end(json);
}

/* ---- summary ---- */

struct scored {
    struct intelligence_tally tally;
    struct intelligence score;
    struct graded_energy graded;
    struct questions questions;
    struct bootstrap_interval ipj;
    size_t in_vain; /* put to a judge, who came to no verdict */
};

/* To the Python IPW a query that failed is one without a verdict, and "failed" is its grading. */
static void put_python_keys(struct json *json, const struct run_table *table,
                            const struct scored *scored)
{
    const struct intelligence_tally *tally = &scored->tally;
    const struct graded_energy *graded = &scored->graded;
    double accuracy = scored->score.accuracy;
    json_string(json, "model", table->model);
    json_integer(json, "correct", (int64_t)tally->correct);
    json_integer(json, "incorrect", (int64_t)tally->incorrect);
    json_integer(json, "unevaluated", (int64_t)(tally->ungraded + tally->failed - scored->in_vain));
    json_integer(json, "failed", (int64_t)scored->in_vain);
    json_integer(json, "total_scored", (int64_t)(tally->correct + tally->incorrect));
    json_number(json, "accuracy", accuracy);
    json_number(json, "intelligence_per_joule", ratio(accuracy, graded->mean_joules));
    json_number(json, "intelligence_per_watt", ratio(accuracy, graded->mean_watts));
    json_number(json, "avg_per_query_energy_joules", graded->mean_joules);
    json_number(json, "avg_per_query_power_watts", graded->mean_watts);
    json_integer(json, "energy_sample_count", (int64_t)graded->joules_count);
    json_integer(json, "power_sample_count", (int64_t)graded->watts_count);
    json_string(json, "energy_basis", energy_basis(table));
}

static void put_summary(struct json *json, const struct run_table *table,
                        const struct scored *scored)
{
    const struct intelligence *score = &scored->score;
    json_object(json, "summary");
    put_python_keys(json, table, scored);
    json_integer(json, "failed_queries", (int64_t)scored->tally.failed);
    put_interval(json, "accuracy_interval_95", score->accuracy_low, score->accuracy_high);
    json_number(json, "ipj", score->ipj);
    put_interval(json, "ipj_interval_95", scored->ipj.low, scored->ipj.high);
    json_number(json, "ipj_plus_minus", table->summary.ipj_plus_minus);
    json_number(json, "ipj_active", score->ipj_active);
    json_number(json, "ipw", score->ipw);
    put_interval(json, "ipw_interval_95", ratio(score->accuracy_low, score->busy_watts),
                 ratio(score->accuracy_high, score->busy_watts));
    json_number(json, "joules_per_query", score->joules_per_query);
    json_integer(json, "joules_per_query_queries", (int64_t)score->energy_queries);
    json_number(json, "busy_watts", score->busy_watts);
    json_object_end(json);
}

/* ---- records ---- */

static void put_verdict(struct json *json, int verdict)
{
    json_object(json, "evaluation");
    if (verdict >= 0)
        json_bool(json, "is_correct", verdict == 1);
    json_object_end(json);
}

/* The texts that the table has: of a long run some, of a short one all. */
static void put_records(struct json *json, const struct run_table *table)
{
    const struct run_excerpts *excerpts = &table->excerpts;
    json_object(json, "records");
    json_array(json, table->model);
    for (size_t i = 0; i < excerpts->count; i++) {
        const struct run_excerpt *excerpt = &excerpts->items[i];
        json_object(json, NULL);
        json_string(json, "problem", excerpt->problem);
        json_string(json, "reference_answer", excerpt->expected);
        json_string(json, "model_answer", excerpt->answer);
        put_verdict(json, run_flag(table, RUN_CORRECT, i * excerpts->stride));
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

/* ---- groups ---- */

struct groups {
    const struct run_table *table;
    struct json *json;
    struct questions *questions;
    const char *name;
    bool needs_name; /* queries without one are no group */
    size_t count;
};

static enum err put_group(void *context, const char *value, const uint32_t *rows, size_t count)
{
    struct groups *groups = context;
    struct json *json = groups->json;
    struct intelligence_tally tally = {0};
    struct intelligence score;
    struct busy_energy none = {UNKNOWN, UNKNOWN, UNKNOWN};
    struct bootstrap_interval ipj = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    struct terms terms;
    if ((groups->needs_name && !value[0]) || groups->count++ >= SUBJECTS_MOST)
        return ERR_OK;
    enum err err = terms_init(&terms, count);
    for (size_t i = 0; !err && i < count; i++) {
        tally_row(&tally, groups->table, rows[i]);
        terms_add(&terms, groups->table, rows[i]);
    }
    if (!err)
        err = terms_close(&terms, groups->questions, &tally.repeats);
    intelligence_of(&tally, &none, UNKNOWN, &score);
    if (!err)
        err = ipj_interval(&terms, &score, GROUP_DRAWS, GROUPS_FEW, &ipj);
    terms_release(&terms);
    json_object(json, NULL);
    json_string(json, groups->name, value);
    json_integer(json, "queries", (int64_t)count);
    json_integer(json, "correct", (int64_t)tally.correct);
    json_integer(json, "incorrect", (int64_t)tally.incorrect);
    json_number(json, "accuracy", score.accuracy);
    put_interval(json, "accuracy_interval_95", score.accuracy_low, score.accuracy_high);
    json_number(json, "joules_per_query", score.joules_per_query);
    json_integer(json, "joules_per_query_queries", (int64_t)score.energy_queries);
    json_number(json, "ipj", score.ipj);
    put_interval(json, "ipj_interval_95", ipj.low, ipj.high);
    json_object_end(json);
    return err;
}

static enum err put_groups(struct analysis *analysis, struct questions *questions, const char *key,
                           const char *name, enum run_word word)
{
    struct groups groups = {.table = analysis->table,
                            .json = analysis->json,
                            .questions = questions,
                            .name = name,
                            .needs_name = word != RUN_SUBJECT}; /* most datasets have no levels */
    json_array(analysis->json, key);
    enum err err = groups_by_word(analysis->table, word, put_group, &groups);
    json_array_end(analysis->json);
    if (groups.count > SUBJECTS_MOST)
        analysis_warn(analysis, "%zu of %zu values of %s are shown", (size_t)SUBJECTS_MOST,
                      groups.count, name);
    return err;
}

/* ---- all of it ---- */

static enum err put_data(struct analysis *analysis, struct scored *scored)
{
    struct json *json = analysis->json;
    const struct run_table *table = analysis->table;
    json_object(json, "data");
    json_object(json, "per_model");
    json_object(json, table->model);
    put_python_keys(json, table, scored);
    json_object_end(json);
    json_object_end(json);
    put_records(json, table);
    put_efficiency(json, table, scored->score.accuracy, &scored->graded);
    enum err err = put_groups(analysis, &scored->questions, "by_subject", "subject", RUN_SUBJECT);
    if (!err)
        err = put_groups(analysis, &scored->questions, "by_level", "level", RUN_LEVEL);
    json_object_end(json);
    return err;
}

static enum err score_run(const struct run_table *table, struct scored *scored)
{
    /* Energy over time is all that intelligence_of makes of it: a second of the mean power will do. */
    struct busy_energy busy = {table->summary.busy_watts, UNKNOWN, 1};
    for (size_t i = 0; i < table->rows; i++) {
        tally_row(&scored->tally, table, i);
        scored->in_vain += run_completed(table, i) && run_flag(table, RUN_CORRECT, i) < 0 &&
                           strcmp(run_word(table, RUN_GRADING_FAILED, i), "true") == 0;
    }
    struct terms terms;
    enum err err = terms_init(&terms, table->rows);
    for (size_t i = 0; !err && i < table->rows; i++)
        if (run_completed(table, i))
            terms_add(&terms, table, i);
    if (!err)
        err = terms_close(&terms, &scored->questions, &scored->tally.repeats);
    intelligence_of(&scored->tally, &busy, UNKNOWN, &scored->score);
    if (!err)
        err = ipj_interval(&terms, &scored->score, DRAWS, GROUPS, &scored->ipj);
    terms_release(&terms);
    return err;
}

static void warn(struct analysis *analysis, const struct scored *scored)
{
    const struct graded_energy *graded = &scored->graded;
    const struct run_excerpts *excerpts = &analysis->table->excerpts;
    if (scored->tally.ungraded)
        analysis_warn(analysis, "%llu answers are not graded and not part of the accuracy",
                      (unsigned long long)scored->tally.ungraded);
    if (graded->zero_joules)
        analysis_warn(analysis, "%zu energies of 0 or below; %zu were replaced by power x time",
                      graded->zero_joules, graded->imputed);
    if (!graded->joules_count)
        analysis_warn(analysis, "no graded query has a known energy: no figure per joule");
    if (excerpts->stride > 1)
        analysis_warn(analysis, "records: an even selection of %zu of %zu queries", excerpts->count,
                      analysis->table->rows);
}

static enum err accuracy_run(struct analysis *analysis, struct error *why)
{
    const struct run_table *table = analysis->table;
    struct scored scored = {0};
    enum err err = questions_of(table, &scored.questions);
    if (!err)
        err = score_run(table, &scored);
    if (!err && !(scored.tally.correct + scored.tally.incorrect))
        err = err_set(why, ERR_NO_DATA, "none of %zu completed answers is graded",
                      table->rows - table->failed);
    if (!err)
        err = graded_energy_of(table, &scored.graded);
    if (!err) {
        put_summary(analysis->json, table, &scored);
        err = put_data(analysis, &scored);
    }
    if (!err)
        warn(analysis, &scored);
    graded_energy_release(&scored.graded);
    questions_release(&scored.questions);
    return err;
}

const struct analysis_driver analysis_accuracy = {
    .name = "accuracy",
    .summary = "accuracy, intelligence per joule and per watt, by subject and level",
    .needs = {RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_ACTIVE_JOULES) | RUN_WANT(RUN_LATENCY) |
                  RUN_WANT(RUN_WATTS) | RUN_WANT(RUN_BASIS_JOULES) | RUN_WANT(RUN_BASIS_WATTS) |
                  QUESTIONS_NEED,
              RUN_WANT(RUN_SUBJECT) | RUN_WANT(RUN_LEVEL) | RUN_WANT(RUN_BASIS) |
                  RUN_WANT(RUN_GRADING_FAILED)},
    .texts = RECORDS_MOST,
    .run = accuracy_run,
};
