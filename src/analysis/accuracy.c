/* Accuracy, and intelligence per joule and per watt: the keys of the Python IPW over graded queries, then our figures
 * with their intervals, by subject and by level. */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "core/text.h"
#include "metrics/intelligence.h"
#include "stats/bootstrap.h"
#include "stats/descriptive.h"

/* ---- energy of graded queries ---- */

struct graded_energy {
    double *joules, *watts;
    size_t joules_count, watts_count;
    size_t zero_joules, zero_watts; /* reported as zero or negative */
    size_t imputed, derived, measured;
    double imputed_sum;
    size_t energy_right, energy_graded; /* among the queries with positive energy */
    size_t power_right, power_graded;
    double mean_joules, mean_watts; /* UNKNOWN for none */
};

/* Smaller values count as missing: the threshold of the Python IPW. */
#define POSITIVE_MIN 1e-12

struct query {
    double joules, watts, seconds;
    bool right;
};

static bool is_positive(double value)
{
    return is_known(value) && value > POSITIVE_MIN;
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

static void graded_energy_of(const struct run_table *table, struct graded_energy *out)
{
    bool machine = uses_machine_energy(table);
    *out = (struct graded_energy){.joules = xmalloc((table->rows + 1) * sizeof *out->joules),
                                  .watts = xmalloc((table->rows + 1) * sizeof *out->watts)};
    for (size_t i = 0; i < table->rows; i++) {
        int verdict = run_verdict(table, i);
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
}

static void graded_energy_release(struct graded_energy *graded)
{
    free(graded->joules);
    free(graded->watts);
    *graded = (struct graded_energy){0};
}

static void put_extremes(struct result *result, double *values, size_t count, double mean,
                         const char *unit)
{
    double min = UNKNOWN, max = UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        min = fmin(min, values[i]);
        max = fmax(max, values[i]);
    }
    result_count(result, "count", count);
    result_number(result, "avg", mean, unit);
    result_number(result, "median", select_median(values, count), unit);
    result_number(result, "min", min, unit);
    result_number(result, "max", max, unit);
}

static void put_share(struct result *result, size_t right, size_t graded)
{
    result_number(result, "accuracy", graded ? (double)right / (double)graded : UNKNOWN, "%");
}

static void graded_energy_put(struct result *result, struct graded_energy *graded)
{
    result_group(result, "energy");
    put_extremes(result, graded->joules, graded->joules_count, graded->mean_joules, "J");
    result_number(result, "total", graded->mean_joules * (double)graded->joules_count, "J");
    put_share(result, graded->energy_right, graded->energy_graded);
    result_count(result, "zero_values", graded->zero_joules);
    result_number(result, "imputed_from_power",
                  graded->imputed ? graded->imputed_sum / (double)graded->imputed : UNKNOWN, "J");
    result_count(result, "imputed_count", graded->imputed);
    result_end(result);
    result_group(result, "power");
    put_extremes(result, graded->watts, graded->watts_count, graded->mean_watts, "W");
    put_share(result, graded->power_right, graded->power_graded);
    result_count(result, "zero_values", graded->zero_watts);
    result_count(result, "derived_power_samples", graded->derived);
    result_count(result, "power_metric_samples", graded->measured);
    result_end(result);
}

/* ---- the analysis ---- */

enum {
    DRAWS = 2000,
    GROUP_DRAWS = 1000,
    GROUPS = 1024,
    GROUPS_FEW = 256,
    SEED = 1,
    SUBJECTS_MAX = 200,
    RECORDS_MAX = 2000 /* with their texts */
};

/* ---- intervals ---- */

/* (correct / graded) / (joules / queries with known energy) */
static double ipj_of(const double *sums)
{
    return sums[1] > 0 && sums[2] > 0 && sums[3] > 0 ? sums[0] / sums[1] / (sums[2] / sums[3])
                                                     : UNKNOWN;
}

/* 1 / (joules / queries with known energy) */
static double per_joule(const double *sums)
{
    return sums[1] > 0 && sums[0] > 0 ? sums[1] / sums[0] : UNKNOWN;
}

/* Contributions of a completed query: correct, graded, joules, known energy. */
enum { CORRECT, GRADED, JOULES, KNOWN_ENERGY, TERMS };

static void add_terms(struct question_terms *terms, const struct run_table *table, size_t row)
{
    int verdict = run_verdict(table, row);
    double joules = run_number(table, RUN_JOULES, row);
    const double added[TERMS] = {verdict == 1, verdict >= 0, known_or(joules, 0), is_known(joules)};
    question_terms_add(terms, row, added);
}

/* Uncertainties if questions were repeated; none otherwise. */
static void close_terms(struct question_terms *terms, struct questions *questions,
                        struct repeats *out)
{
    *out = (struct repeats){0};
    question_terms_close(terms, questions);
    if (!questions->repeats || !terms->count)
        return;
    struct question *all = xmalloc(terms->count * sizeof *all);
    double *const *columns = terms->columns;
    for (size_t i = 0; i < terms->count; i++)
        all[i] = (struct question){(double)i, columns[CORRECT][i], columns[GRADED][i],
                                   columns[JOULES][i], columns[KNOWN_ENERGY][i]};
    *out = repeats_of(all, terms->count);
    free(all);
}

/* If all or none are correct, resampling cannot give the uncertainty of the accuracy: Wilson's interval is combined
 * with the scatter of the joules. */
static void edge_interval(const struct question_terms *terms, const struct intelligence *score,
                          struct bootstrap what, struct bootstrap_interval *out)
{
    struct bootstrap_interval inverse;
    what.terms[0] = terms->columns[JOULES];
    what.terms[1] = terms->columns[KNOWN_ENERGY];
    what.sums = 2;
    what.figure = per_joule;
    bootstrap_interval(&what, &inverse);
    double accuracy = score->accuracy;
    double low = score->accuracy_low;
    double high = score->accuracy_high;
    if (!is_known(inverse.low) || !is_known(inverse.high))
        return;
    out->low = out->figure -
               hypot((accuracy - low) * inverse.figure, accuracy * (inverse.figure - inverse.low));
    out->high = out->figure +
                hypot((high - accuracy) * inverse.figure, high * (inverse.high - inverse.figure));
    out->low = fmax(0, out->low);
}

static void ipj_interval(const struct question_terms *terms, const struct intelligence *score,
                         unsigned draws, size_t groups, struct bootstrap_interval *out)
{
    struct bootstrap what = {
        {terms->columns[0], terms->columns[1], terms->columns[2], terms->columns[3]},
        TERMS,
        terms->count,
        ipj_of,
        draws,
        SEED,
        groups};
    bootstrap_interval(&what, out);
    if ((score->accuracy == 0 || score->accuracy == 1) && is_known(out->figure))
        edge_interval(terms, score, what, out);
}

static void put_efficiency(struct result *result, const struct run_table *table, double accuracy,
                           struct graded_energy *graded)
{
    result_group(result, "efficiency");
    result_group(result, table->model);
    result_number(result, "intelligence_per_joule", ratio(accuracy, graded->mean_joules), "1/J");
    result_number(result, "intelligence_per_watt", ratio(accuracy, graded->mean_watts), "1/W");
    graded_energy_put(result, graded);
    result_end(result);
    result_end(result);
}

/* ---- summary ---- */

struct scored {
    struct intelligence_tally tally;
    struct intelligence score;
    struct graded_energy graded;
    struct questions questions;
    struct bootstrap_interval ipj;
    size_t undecided; /* graded by a judge without a verdict */
};

/* The Python IPW counts a failed query as one without a verdict, and "failed" as its grading. */
static void put_python_keys(struct result *result, const struct run_table *table,
                            const struct scored *scored)
{
    const struct intelligence_tally *tally = &scored->tally;
    const struct graded_energy *graded = &scored->graded;
    double accuracy = scored->score.accuracy;
    result_text(result, "model", table->model);
    result_count(result, "correct", tally->correct);
    result_count(result, "incorrect", tally->incorrect);
    result_count(result, "unevaluated", tally->ungraded + tally->failed - scored->undecided);
    result_count(result, "failed", scored->undecided);
    result_count(result, "total_scored", scored->score.graded);
    result_number(result, "accuracy", accuracy, "%");
    result_number(result, "intelligence_per_joule", ratio(accuracy, graded->mean_joules), "1/J");
    result_number(result, "intelligence_per_watt", ratio(accuracy, graded->mean_watts), "1/W");
    result_number(result, "avg_per_query_energy_joules", graded->mean_joules, "J");
    result_number(result, "avg_per_query_power_watts", graded->mean_watts, "W");
    result_count(result, "energy_sample_count", graded->joules_count);
    result_count(result, "power_sample_count", graded->watts_count);
    result_text(result, "energy_basis", energy_basis(table));
}

/* Unknown, not 0, in a run of a version that did not distinguish them. */
static void put_unread(struct result *result, const struct intelligence *score)
{
    result_number(result, "unread", score->unread, "");
    result_number(result, "unread_share", score->unread_share, "%");
    result_number(result, "accuracy_at_most", score->accuracy_at_most, "%");
}

/* Metrics of all answers; absent without one. */
static void put_qualities(struct result *result, const struct summary *summary)
{
    if (!summary->quality_count)
        return;
    result_list(result, "quality");
    for (size_t i = 0; i < summary->quality_count; i++) {
        const struct summary_quality *quality = &summary->qualities[i];
        result_group(result, NULL);
        result_text(result, "name", quality->name);
        result_figure(result, "value", quality->value, quality->plus_minus, "");
        result_integer(result, "count", quality->count);
        result_text(result, "better", better_name((int)quality->better));
        result_optional_text(result, "reason", str_or_null(quality->reason));
        result_end(result);
    }
    result_end(result);
}

static void put_summary(struct result *result, const struct run_table *table,
                        const struct scored *scored)
{
    const struct intelligence *score = &scored->score;
    result_group(result, "summary");
    put_python_keys(result, table, scored);
    put_unread(result, score);
    result_count(result, "failed_queries", scored->tally.failed);
    result_interval(result, "accuracy", score->accuracy_low, score->accuracy_high);
    result_number(result, "ipj", score->ipj, "1/J");
    result_interval(result, "ipj", scored->ipj.low, scored->ipj.high);
    result_queries(result, "ipj", score->energy_queries);
    result_number(result, "ipj_plus_minus", table->summary.ipj_plus_minus, "1/J");
    result_uncertain(result, "ipj", table->summary.ipj_plus_minus);
    result_number(result, "ipj_active", score->ipj_active, "1/J");
    result_number(result, "ipw", score->ipw, "1/W");
    result_interval(result, "ipw", ratio(score->accuracy_low, score->busy_watts),
                    ratio(score->accuracy_high, score->busy_watts));
    result_queries(result, "ipw", score->graded);
    result_uncertain(result, "ipw", table->summary.ipw_plus_minus);
    put_qualities(result, &table->summary);
    result_number(result, "joules_per_query", score->joules_per_query, "J");
    result_queries(result, "joules_per_query", score->energy_queries);
    result_number(result, "busy_watts", score->busy_watts, "W");
    result_end(result);
}

/* ---- records ---- */

static void put_verdict(struct result *result, const struct run_table *table, size_t row)
{
    int verdict = run_flag(table, RUN_CORRECT, row);
    result_group(result, "evaluation");
    if (verdict >= 0)
        result_flag(result, "is_correct", verdict == 1);
    if (run_flag(table, RUN_UNREAD, row) == 1)
        result_text(result, "status", run_word(table, RUN_GRADING, row));
    result_end(result);
}

/* The texts in the table: all of a short run, a sample of a long one. */
static void put_records(struct result *result, const struct run_table *table)
{
    const struct run_excerpts *excerpts = &table->excerpts;
    result_group(result, "records");
    result_list(result, table->model);
    for (size_t i = 0; i < excerpts->count; i++) {
        const struct run_excerpt *excerpt = &excerpts->items[i];
        result_group(result, NULL);
        result_text(result, "problem", excerpt->problem);
        result_text(result, "reference_answer", excerpt->expected);
        result_text(result, "model_answer", excerpt->answer);
        put_verdict(result, table, i * excerpts->stride);
        result_end(result);
    }
    result_end(result);
    result_end(result);
}

/* ---- groups ---- */

struct groups {
    const struct run_table *table;
    struct result *result;
    struct questions *questions;
    const char *name;
    bool needs_name; /* queries without one form no group */
    size_t count;
};

static void put_group(void *context, const char *value, const uint32_t *rows, size_t count)
{
    struct groups *groups = context;
    struct result *result = groups->result;
    struct intelligence_tally tally = {0};
    struct intelligence score;
    struct busy_energy none = {UNKNOWN, UNKNOWN, UNKNOWN};
    struct bootstrap_interval ipj = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    struct question_terms terms;
    if ((groups->needs_name && !value[0]) || groups->count++ >= SUBJECTS_MAX)
        return;
    question_terms_init(&terms, count, TERMS);
    for (size_t i = 0; i < count; i++) {
        tally_row(&tally, groups->table, rows[i]);
        add_terms(&terms, groups->table, rows[i]);
    }
    close_terms(&terms, groups->questions, &tally.repeats);
    intelligence_of(&tally, &none, UNKNOWN, &score);
    ipj_interval(&terms, &score, GROUP_DRAWS, GROUPS_FEW, &ipj);
    question_terms_release(&terms);
    result_group(result, NULL);
    result_text(result, groups->name, value);
    result_count(result, "queries", count);
    result_count(result, "correct", tally.correct);
    result_count(result, "incorrect", tally.incorrect);
    result_number(result, "unread", score.unread, "");
    result_number(result, "accuracy", score.accuracy, "%");
    result_interval(result, "accuracy", score.accuracy_low, score.accuracy_high);
    result_number(result, "joules_per_query", score.joules_per_query, "J");
    result_queries(result, "joules_per_query", score.energy_queries);
    result_number(result, "ipj", score.ipj, "1/J");
    result_interval(result, "ipj", ipj.low, ipj.high);
    result_queries(result, "ipj", score.energy_queries);
    result_end(result);
}

static void put_groups(struct analysis *analysis, struct questions *questions, const char *key,
                       const char *name, enum run_word word)
{
    struct groups groups = {.table = analysis->table,
                            .result = analysis->result,
                            .questions = questions,
                            .name = name,
                            .needs_name = word != RUN_SUBJECT}; /* most datasets have no levels */
    result_list(analysis->result, key);
    groups_by_word(analysis->table, word, put_group, &groups);
    result_end(analysis->result);
    if (groups.count > SUBJECTS_MAX)
        result_warn(analysis->result, "%zu of %zu values of %s are shown", (size_t)SUBJECTS_MAX,
                    groups.count, name);
}

/* ---- the complete analysis ---- */

static void put_data(struct analysis *analysis, struct scored *scored)
{
    struct result *result = analysis->result;
    const struct run_table *table = analysis->table;
    result_group(result, "data");
    result_group(result, "per_model");
    result_group(result, table->model);
    put_python_keys(result, table, scored);
    result_end(result);
    result_end(result);
    put_records(result, table);
    put_efficiency(result, table, scored->score.accuracy, &scored->graded);
    put_groups(analysis, &scored->questions, "by_subject", "subject", RUN_SUBJECT);
    put_groups(analysis, &scored->questions, "by_level", "level", RUN_LEVEL);
    result_end(result);
}

static void score_run(const struct run_table *table, struct scored *scored)
{
    /* intelligence_of only uses energy over time: one second at the mean power is equivalent. */
    struct busy_energy busy = {table->summary.busy_watts, UNKNOWN, 1};
    for (size_t i = 0; i < table->rows; i++) {
        if (run_flag(table, RUN_CANCELED, i) != 1)
            tally_row(&scored->tally, table, i);
        scored->undecided += run_completed(table, i) && run_verdict(table, i) < 0 &&
                             str_equal(run_word(table, RUN_GRADING_FAILED, i), "true");
    }
    struct question_terms terms;
    question_terms_init(&terms, table->rows, TERMS);
    for (size_t i = 0; i < table->rows; i++)
        if (run_completed(table, i))
            add_terms(&terms, table, i);
    close_terms(&terms, &scored->questions, &scored->tally.repeats);
    intelligence_of(&scored->tally, &busy, UNKNOWN, &scored->score);
    ipj_interval(&terms, &scored->score, DRAWS, GROUPS, &scored->ipj);
    question_terms_release(&terms);
}

static void warn(struct analysis *analysis, const struct scored *scored)
{
    const struct graded_energy *graded = &scored->graded;
    const struct run_excerpts *excerpts = &analysis->table->excerpts;
    char unread[320];
    if (scored->tally.ungraded)
        result_warn(analysis->result, "%llu answers are not graded and not part of the accuracy",
                    (unsigned long long)scored->tally.ungraded);
    intelligence_unread(&scored->score, unread, sizeof unread);
    if (unread[0])
        result_warn(analysis->result, "%s", unread);
    if (graded->zero_joules)
        result_warn(analysis->result,
                    "%zu energies are 0 or negative; %zu were replaced by power x time",
                    graded->zero_joules, graded->imputed);
    if (!graded->joules_count)
        result_warn(analysis->result, "no graded query has a known energy: no figure per joule");
    if (excerpts->stride > 1)
        result_warn(analysis->result, "records: %zu of %zu queries, evenly spaced", excerpts->count,
                    analysis->table->rows);
}

/* Where no answer has a verdict of its own. */
static void put_qualities_alone(struct result *result, const struct summary *summary)
{
    result_group(result, "summary");
    put_qualities(result, summary);
    result_end(result);
}

static enum err accuracy_run(struct analysis *analysis, struct error *why)
{
    const struct run_table *table = analysis->table;
    struct scored scored = {0};
    enum err err = require_requests(table, why);
    if (!err) {
        questions_of(table, &scored.questions);
        score_run(table, &scored);
    }
    bool is_graded = !err && scored.score.graded;
    if (!err && !is_graded && table->summary.quality_count)
        put_qualities_alone(analysis->result, &table->summary);
    else if (!err && !is_graded)
        err = err_set(why, ERR_NO_DATA, "none of %zu completed answers is graded",
                      run_completed_count(table));
    if (is_graded) {
        graded_energy_of(table, &scored.graded);
        put_summary(analysis->result, table, &scored);
        put_data(analysis, &scored);
        warn(analysis, &scored);
    }
    graded_energy_release(&scored.graded);
    questions_release(&scored.questions);
    return err;
}

static const struct result_phrase FINDING[] = {
    {"", "summary.accuracy", " correct"},
    {", IPJ ", "summary.ipj", ""},
    {", IPW ", "summary.ipw", ""},
    {0},
};

const struct analysis_driver analysis_accuracy = {
    .name = "accuracy",
    .summary = "accuracy, intelligence per joule and per watt, by subject and level",
    .needs = {RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_ACTIVE_JOULES) | RUN_WANT(RUN_LATENCY) |
                  RUN_WANT(RUN_WATTS) | RUN_WANT(RUN_BASIS_JOULES) | RUN_WANT(RUN_BASIS_WATTS) |
                  QUESTIONS_NEED,
              RUN_WANT(RUN_SUBJECT) | RUN_WANT(RUN_LEVEL) | RUN_WANT(RUN_BASIS) |
                  RUN_WANT(RUN_GRADING_FAILED)},
    .texts = RECORDS_MAX,
    .finding = FINDING,
    .run = accuracy_run,
};
