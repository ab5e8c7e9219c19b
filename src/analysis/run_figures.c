#include <math.h>
#include <stdlib.h>

#include "analysis/columns.h"
#include "analysis/questions.h"
#include "analysis/run_figures.h"
#include "core/units.h"
#include "metrics/intelligence.h"
#include "stats/online.h"
#include "stats/quantile.h"

/* What bars are long: 95 % of a normal distribution lie within so many standard uncertainties. */
#define HALF_WIDTH 1.96

/* What the sensors themselves may be off, in every query alike. */
static double calibration(const struct run_table *table)
{
    double share = run_calibration(table);
    return is_known(share) ? share : 0;
}

static double whole_error(double statistical, double value, double sensors)
{
    return HALF_WIDTH * hypot(statistical, sensors * value);
}

/* ---- standard errors, over questions ---- */

enum { OVER, UNDER, TERMS };

struct scatter {
    const struct run_table *table;
    struct questions questions;
    double *terms[TERMS]; /* room, one a row */
    uint32_t *rows;
    double joules, seconds; /* means of a query */
};

/* What a query adds to a figure's numerator and denominator. */
typedef void terms_fn(const struct scatter *scatter, size_t row, double *terms);

static void terms_of_query(const struct scatter *scatter, size_t row, double *terms)
{
    terms[OVER] = run_number(scatter->table, RUN_JOULES, row);
    terms[UNDER] = 1;
}

static void terms_of_token(const struct scatter *scatter, size_t row, double *terms)
{
    terms[OVER] = run_number(scatter->table, RUN_JOULES, row);
    terms[UNDER] = run_number(scatter->table, RUN_OUTPUT_TOKENS, row);
}

static void terms_of_time(const struct scatter *scatter, size_t row, double *terms)
{
    terms[OVER] = run_number(scatter->table, RUN_LATENCY, row);
    terms[UNDER] = 1;
}

/* The product of two means is off by what each query's share of it is, of both: joules and seconds grow
 * together, so their errors are not apart. */
static void terms_of_delay(const struct scatter *scatter, size_t row, double *terms)
{
    terms[OVER] = run_number(scatter->table, RUN_JOULES, row) * scatter->seconds +
                  run_number(scatter->table, RUN_LATENCY, row) * scatter->joules;
    terms[UNDER] = 1;
}

/* Of the ratio of two sums: by the spread of what each question adds beyond its due. */
static double error_of(struct scatter *scatter, terms_fn *terms_of)
{
    const struct run_table *table = scatter->table;
    struct online beyond = {0}, under = {0};
    double sums[TERMS] = {0}, terms[TERMS];
    size_t count = 0;
    for (size_t i = 0; i < table->rows; i++) {
        terms_of(scatter, i, terms);
        if (!run_completed(table, i) || !is_known(terms[OVER]) || !is_known(terms[UNDER]))
            continue;
        for (size_t t = 0; t < TERMS; t++) {
            scatter->terms[t][count] = terms[t];
            sums[t] += terms[t];
        }
        scatter->rows[count++] = (uint32_t)i;
    }
    count = questions_add_up(&scatter->questions, scatter->rows, count, scatter->terms, TERMS);
    for (size_t i = 0; i < count; i++) {
        online_add(&beyond,
                   scatter->terms[OVER][i] - sums[OVER] / sums[UNDER] * scatter->terms[UNDER][i]);
        online_add(&under, scatter->terms[UNDER][i]);
    }
    return online_standard_error(&beyond) / online_mean(&under);
}

static enum err scatter_init(struct scatter *scatter, const struct run_table *table)
{
    size_t room = table->rows + 1;
    *scatter = (struct scatter){
        .table = table,
        .terms = {malloc(room * sizeof(double)), malloc(room * sizeof(double))},
        .rows = malloc(room * sizeof *scatter->rows),
    };
    if (!scatter->terms[OVER] || !scatter->terms[UNDER] || !scatter->rows)
        return ERR_NO_MEMORY;
    return questions_of(table, &scatter->questions);
}

static void scatter_release(struct scatter *scatter)
{
    free(scatter->terms[OVER]);
    free(scatter->terms[UNDER]);
    free(scatter->rows);
    questions_release(&scatter->questions);
}

/* ---- energy and time ---- */

static void put_errors(struct scatter *scatter, double sensors, struct run_figures *out)
{
    struct online seconds = {0};
    for (size_t i = 0; i < scatter->table->rows; i++)
        if (run_completed(scatter->table, i))
            online_add(&seconds, run_number(scatter->table, RUN_LATENCY, i));
    scatter->seconds = out->seconds_per_query = online_mean(&seconds);
    scatter->joules = out->point.joules_per_query;
    out->edp = scatter->joules * scatter->seconds;
    out->joules_per_query_error =
        whole_error(error_of(scatter, terms_of_query), out->point.joules_per_query, sensors);
    out->joules_per_output_token_error =
        whole_error(error_of(scatter, terms_of_token), out->point.joules_per_output_token, sensors);
    out->seconds_per_query_error = HALF_WIDTH * error_of(scatter, terms_of_time);
    out->edp_error = whole_error(error_of(scatter, terms_of_delay), out->edp, sensors);
}

/* ---- accuracy ---- */

static enum err put_accuracy(struct scatter *scatter, struct run_figures *out)
{
    const struct run_table *table = scatter->table;
    struct intelligence_tally tally = {0};
    struct intelligence figures;
    struct question *asked = malloc((table->rows + 1) * sizeof *asked);
    size_t count = 0;
    if (!asked)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < table->rows; i++) {
        int correct = run_flag(table, RUN_CORRECT, i);
        if (!run_completed(table, i) || correct < 0)
            continue;
        tally.correct += correct == 1;
        tally.incorrect += correct == 0;
        asked[count++] = (struct question){run_number(table, RUN_INDEX, i), correct, 1, 0, 0};
    }
    if (scatter->questions.repeats)
        tally.repeats = repeats_of(asked, questions_merge(asked, count));
    free(asked);
    intelligence_of(&tally, &(struct busy_energy){UNKNOWN, UNKNOWN, UNKNOWN}, UNKNOWN, &figures);
    out->accuracy_low = figures.accuracy_low;
    out->accuracy_high = figures.accuracy_high;
    return ERR_OK;
}

static enum err median_of(const struct run_table *table, enum run_number column, double *out)
{
    double *values;
    size_t count;
    enum err err = known_values(table, column, &values, &count);
    if (err)
        return err;
    *out = select_median(values, count);
    free(values);
    return ERR_OK;
}

enum err run_figures_of(const struct run_table *table, struct run_figures *out)
{
    struct scatter scatter;
    struct online prompts = {0};
    *out = (struct run_figures){0};
    run_point_of(table, &out->point);
    for (size_t i = 0; i < table->rows; i++)
        if (run_completed(table, i))
            online_add(&prompts, run_number(table, RUN_INPUT_TOKENS, i));
    out->prompt_tokens = online_mean(&prompts);
    enum err err = scatter_init(&scatter, table);
    if (!err) {
        put_errors(&scatter, calibration(table), out);
        err = put_accuracy(&scatter, out);
    }
    scatter_release(&scatter);
    if (!err)
        err = median_of(table, RUN_TTFT, &out->ttft_s);
    return err ? err : median_of(table, RUN_LATENCY, &out->latency_s);
}
