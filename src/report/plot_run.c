#include <math.h>
#include <stdlib.h>

#include "analysis/columns.h"
#include "core/units.h"
#include "estimate/intelligence.h"
#include "report/plot.h"
#include "stats/online.h"
#include "stats/select.h"

/* Half of a 95 % interval, of a standard error. */
#define HALF_WIDTH 1.96

/* What the sensors themselves may be off, in every query alike. */
static double calibration(const struct run_table *table)
{
    double share = run_fact(table, "ipw.energy.plus_minus") / run_fact(table, "ipw.energy.joules");
    return is_known(share) ? share : 0;
}

static double whole_error(double statistical, double value, double sensors)
{
    return HALF_WIDTH * hypot(statistical, sensors * value);
}

/* Of the ratio of two sums: by the spread of what each query adds beyond its due. */
static double token_error(const struct run_table *table, double ratio)
{
    struct online beyond = {0}, tokens = {0};
    for (size_t i = 0; i < table->rows; i++) {
        double joules = run_number(table, RUN_JOULES, i);
        double count = run_number(table, RUN_OUTPUT_TOKENS, i);
        if (!run_completed(table, i) || !is_known(joules) || !is_known(count))
            continue;
        online_add(&beyond, joules - ratio * count);
        online_add(&tokens, count);
    }
    return online_standard_error(&beyond) / online_mean(&tokens);
}

/* The product of two means is off by what each query's share of it is, of both: joules and seconds grow
 * together, so their errors are not apart. */
static void put_delay(const struct run_table *table, double sensors, struct plot_run *out)
{
    struct online seconds = {0}, product = {0};
    double joules_mean = out->point.joules_per_query;
    for (size_t i = 0; i < table->rows; i++)
        if (run_completed(table, i))
            online_add(&seconds, run_number(table, RUN_LATENCY, i));
    out->seconds_per_query = online_mean(&seconds);
    out->seconds_per_query_error = HALF_WIDTH * online_standard_error(&seconds);
    for (size_t i = 0; i < table->rows; i++)
        if (run_completed(table, i))
            online_add(&product, run_number(table, RUN_JOULES, i) * out->seconds_per_query +
                                     run_number(table, RUN_LATENCY, i) * joules_mean);
    out->edp = joules_mean * out->seconds_per_query;
    out->edp_error = whole_error(online_standard_error(&product), out->edp, sensors);
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

static enum outcome outcome_of(const struct run_table *table, size_t row)
{
    int correct = run_flag(table, RUN_CORRECT, row);
    return !run_completed(table, row) ? OUTCOME_FAILED
           : correct < 0              ? OUTCOME_UNGRADED
           : correct                  ? OUTCOME_CORRECT
                                      : OUTCOME_INCORRECT;
}

enum err plot_run_of(const struct run_table *table, struct plot_run *out)
{
    struct intelligence_tally tally = {0};
    struct intelligence figures;
    struct online prompts = {0};
    double sensors = calibration(table);
    *out = (struct plot_run){0};
    run_point_of(table, &out->point);
    for (size_t i = 0; i < table->rows; i++) {
        intelligence_add(&tally, &(struct intelligence_query){
                                     outcome_of(table, i), run_number(table, RUN_JOULES, i),
                                     run_number(table, RUN_ACTIVE_JOULES, i),
                                     run_number(table, RUN_LATENCY, i), UNKNOWN, UNKNOWN});
        if (run_completed(table, i))
            online_add(&prompts, run_number(table, RUN_INPUT_TOKENS, i));
    }
    intelligence_of(&tally, &(struct busy_energy){UNKNOWN, UNKNOWN, UNKNOWN}, UNKNOWN, &figures);
    out->accuracy_low = figures.accuracy_low;
    out->accuracy_high = figures.accuracy_high;
    out->prompt_tokens = online_mean(&prompts);
    out->joules_per_query_error =
        whole_error(online_standard_error(&tally.joules), out->point.joules_per_query, sensors);
    out->joules_per_output_token_error =
        whole_error(token_error(table, out->point.joules_per_output_token),
                    out->point.joules_per_output_token, sensors);
    put_delay(table, sensors, out);
    enum err err = median_of(table, RUN_TTFT, &out->ttft_s);
    return err ? err : median_of(table, RUN_LATENCY, &out->latency_s);
}
