/* Comparison of several runs: the figures of each, power laws in what differs between them, and the figures with errors
 * for plots and reports. */
#include "analysis/across.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "catalog/model.h"
#include "catalog/precision.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "metrics/efficiency.h"
#include "metrics/energy_per.h"
#include "metrics/intelligence.h"
#include "rundir/sweep.h"
#include "stats/descriptive.h"
#include "stats/fit.h"

enum { RUNS_MAX = 1024 };

/* ---- one run ---- */

static void add_sums(const struct run_table *table, struct run_point *out)
{
    struct energy_per per_token = {0}, per_query = {0}, watts = {0};
    size_t right = 0, graded = 0;
    for (size_t i = 0; i < table->rows; i++) {
        double joules = run_number(table, RUN_JOULES, i);
        double s = run_number(table, RUN_LATENCY, i);
        double tokens = run_number(table, RUN_OUTPUT_TOKENS, i);
        if (!run_completed(table, i))
            continue;
        graded += run_verdict(table, i) >= 0;
        right += run_verdict(table, i) == 1;
        energy_per_add(&per_query, joules, 1);
        energy_per_add(&per_token, joules, tokens);
        energy_per_add(&watts, joules, s);
    }
    out->joules_per_query = energy_per_of(&per_query);
    out->joules_per_output_token = energy_per_of(&per_token);
    out->watts = energy_per_of(&watts);
    out->accuracy = graded ? (double)right / (double)graded : UNKNOWN;
    out->ipj = out->joules_per_query > 0 ? out->accuracy / out->joules_per_query : UNKNOWN;
}

void run_point_of(const struct run_table *table, struct run_point *out)
{
    struct model_size size;
    *out = (struct run_point){.directory = table->directory,
                              .queries = table->rows,
                              .failed = table->failed,
                              .canceled = table->canceled};
    chars_copy(out->model, table->model);
    sweep_setting_of_run(table->directory, out->setting, sizeof out->setting);
    out->sweep = sweep_of_run(table->directory);
    chars_copy(out->hardware, run_hardware(table));
    chars_copy(out->dataset, text_or_empty(table->summary.dataset_name));
    out->concurrency = integer_number(table->summary.config_concurrency);
    out->parameters = model_size_find(table->model, &size) ? size.total : UNKNOWN;
    out->bits = bits_in_name(table->model);
    out->output_tokens_per_s = table->summary.output_tokens_per_s;
    const struct summary_quality *quality = summary_quality_first(&table->summary);
    if (quality)
        out->quality = *quality;
    double busy = table->summary.busy_watts;
    add_sums(table, out);
    if (busy >= 0)
        out->watts = busy;
}

/* ---- several runs ---- */

static void put_run(struct result *result, const struct run_point *point)
{
    result_group(result, NULL);
    result_text(result, "directory", point->directory);
    result_text(result, "model", point->model);
    result_text(result, "hardware", point->hardware);
    result_text(result, "dataset", point->dataset);
    result_count(result, "queries", point->queries);
    result_count(result, "failed", point->failed);
    result_count(result, "canceled", point->canceled);
    result_number(result, "concurrency", point->concurrency, "");
    result_number(result, "parameters", point->parameters, "");
    result_number(result, "weight_bits", point->bits, "");
    result_number(result, "joules_per_query", point->joules_per_query, "J");
    result_number(result, "joules_per_output_token", point->joules_per_output_token, "J");
    result_number(result, "output_tokens_per_s", point->output_tokens_per_s, "1/s");
    result_number(result, "watts", point->watts, "W");
    result_number(result, "accuracy", point->accuracy, "%");
    result_number(result, "ipj", point->ipj, "1/J");
    if (point->quality.name[0])
        result_figure(result, point->quality.name, point->quality.value, point->quality.plus_minus,
                      "");
    result_end(result);
}

/* The independent variable of a power law.  Runs that differ in another of these form separate groups. */
enum axis { OF_CONCURRENCY, OF_PARAMETERS, OF_BITS };

/* Equal except for the axis.  If the size of a model is unknown, models are distinguished by name. */
static bool is_peer(const struct run_point *a, const struct run_point *b, enum axis axis)
{
    bool sized = is_known(a->parameters) && is_known(b->parameters);
    char of_a[MODEL_NAME_MAX], of_b[MODEL_NAME_MAX];
    if (axis != OF_CONCURRENCY && !is_same_number(a->concurrency, b->concurrency))
        return false;
    if (axis != OF_BITS && !is_same_number(a->bits, b->bits))
        return false;
    if (axis == OF_PARAMETERS)
        return true;
    model_name_normalize(a->model, of_a, sizeof of_a);
    model_name_normalize(b->model, of_b, sizeof of_b);
    return sized ? a->parameters == b->parameters : str_equal(of_a, of_b);
}

/* Logarithms relative to the mean of their group. */
struct logs {
    double x[RUNS_MAX], y[RUNS_MAX];
    size_t count, groups;
};

static double field(const struct run_point *point, size_t offset)
{
    double value;
    memcpy(&value, (const char *)point + offset, sizeof value);
    return value;
}

/* A group of runs that differ only in the axis; one with constant x is skipped. */
static void add_group(struct logs *logs, const double *x, const double *y, size_t count)
{
    double x_mean = 0, y_mean = 0, x_min = INFINITY, x_max = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        x_mean += x[i] / (double)count;
        y_mean += y[i] / (double)count;
        x_min = fmin(x_min, x[i]);
        x_max = fmax(x_max, x[i]);
    }
    if (count < 2 || x_min == x_max)
        return;
    for (size_t i = 0; i < count; i++) {
        logs->x[logs->count] = x[i] - x_mean;
        logs->y[logs->count++] = y[i] - y_mean;
    }
    logs->groups++;
}

static void collect_logs(const struct run_point *points, size_t count, enum axis axis, size_t x_at,
                         size_t y_at, struct logs *logs)
{
    bool taken[RUNS_MAX] = {false};
    double x[RUNS_MAX], y[RUNS_MAX];
    for (size_t i = 0; i < count; i++) {
        size_t like = 0;
        for (size_t j = i; j < count; j++) {
            double over = field(&points[j], x_at);
            double value = field(&points[j], y_at);
            if (taken[j] || !(over > 0) || !(value > 0) || !is_peer(&points[i], &points[j], axis))
                continue;
            taken[j] = true;
            x[like] = log(over);
            y[like++] = log(value);
        }
        add_group(logs, x, y, like);
    }
}

/* y ~ x^exponent: a common exponent, and an intercept for each group of runs that differ only in x. */
static void put_law(struct result *result, const char *key, const struct run_point *points,
                    size_t count, enum axis axis, size_t x_at, size_t y_at)
{
    struct logs logs = {.count = 0};
    struct linear_fit fit;
    collect_logs(points, count, axis, x_at, y_at, &logs);
    if (!linear_fit(logs.x, logs.y, logs.count, &fit))
        return;
    /* Degrees of freedom: an intercept per group and a slope. */
    double left = (double)logs.count - (double)logs.groups - 1;
    double scale = left > 0 ? sqrt((double)(fit.count - 2) / left) : UNKNOWN;
    result_group(result, key);
    result_count(result, "count", fit.count);
    result_count(result, "groups", logs.groups);
    result_figure(result, "exponent", fit.slope, fit.slope_error * scale, "");
    result_number(result, "r2", fit.r2, "");
    result_end(result);
}

static void put_laws(struct result *result, const struct run_point *points, size_t count)
{
#define AT(name) offsetof(struct run_point, name)
    static const struct {
        const char *key;
        enum axis axis;
        size_t x, y;
    } LAWS[] = {
        {"joules_per_output_token_of_concurrency", OF_CONCURRENCY, AT(concurrency),
         AT(joules_per_output_token)},
        {"output_tokens_per_s_of_concurrency", OF_CONCURRENCY, AT(concurrency),
         AT(output_tokens_per_s)},
        {"joules_per_output_token_of_parameters", OF_PARAMETERS, AT(parameters),
         AT(joules_per_output_token)},
        {"output_tokens_per_s_of_parameters", OF_PARAMETERS, AT(parameters),
         AT(output_tokens_per_s)},
        {"joules_per_output_token_of_weight_bits", OF_BITS, AT(bits), AT(joules_per_output_token)},
        {"output_tokens_per_s_of_weight_bits", OF_BITS, AT(bits), AT(output_tokens_per_s)},
    };
#undef AT
    result_group(result, "against");
    for (size_t i = 0; i < COUNT_OF(LAWS); i++)
        put_law(result, LAWS[i].key, points, count, LAWS[i].axis, LAWS[i].x, LAWS[i].y);
    result_end(result);
}

/* Number of distinct known texts. */
static size_t count_distinct(const struct run_point *points, size_t count, size_t at)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const char *text = (const char *)&points[i] + at;
        bool before = text[0] == '\0';
        for (size_t j = 0; j < i && !before; j++)
            before = str_equal((const char *)&points[j] + at, text);
        found += !before;
    }
    return found;
}

static void warn(struct result *result, const struct run_point *points, size_t count)
{
    static const struct {
        const char *what;
        size_t at;
    } SAME[] = {{"machines", offsetof(struct run_point, hardware)},
                {"datasets", offsetof(struct run_point, dataset)}};
    for (size_t i = 0; i < COUNT_OF(SAME); i++) {
        size_t kinds = count_distinct(points, count, SAME[i].at);
        if (kinds > 1)
            result_warn(result,
                        "the runs are of %zu different %s, which may explain their differences",
                        kinds, SAME[i].what);
    }
}

enum err across_run(const struct run_point *points, size_t count, struct result *out)
{
#define EXPONENT(of) "data.against.joules_per_output_token_of_" of ".exponent"
    static const struct result_phrase FINDING[] = {
        {", energy per output token ~ concurrency^", EXPONENT("concurrency"), ""},
        {", energy per output token ~ parameters^", EXPONENT("parameters"), ""},
        {", energy per output token ~ bits per weight^", EXPONENT("weight_bits"), ""},
        {0},
    };
#undef EXPONENT
    analysis_begin(out, "scaling", FINDING);
    if (count < 2)
        return err_set(&out->why, ERR_NO_DATA, "a comparison needs two runs");
    if (count > RUNS_MAX)
        return err_set(&out->why, ERR_BAD_VALUE, "too many runs (limit %d)", RUNS_MAX);
    result_group(out, "summary");
    result_count(out, "runs", count);
    result_end(out);
    result_group(out, "data");
    result_list(out, "runs");
    for (size_t i = 0; i < count; i++)
        put_run(out, &points[i]);
    result_end(out);
    put_laws(out, points, count);
    result_end(out);
    warn(out, points, count);
    analysis_end(out);
    return ERR_OK;
}

/* ---- figures with errors ---- */

/* ---- standard errors, over questions ---- */

enum { NUMERATOR, DENOMINATOR, TERMS };

struct scatter {
    const struct run_table *table;
    struct questions questions;
    struct question_terms terms;
    double joules, seconds; /* means per query */
};

/* Contributions of a query to a figure's numerator and denominator. */
typedef void terms_fn(const struct scatter *scatter, size_t row, double *terms);

static void terms_of_query(const struct scatter *scatter, size_t row, double *terms)
{
    terms[NUMERATOR] = run_number(scatter->table, RUN_JOULES, row);
    terms[DENOMINATOR] = 1;
}

static void terms_of_token(const struct scatter *scatter, size_t row, double *terms)
{
    terms[NUMERATOR] = run_number(scatter->table, RUN_JOULES, row);
    terms[DENOMINATOR] = run_number(scatter->table, RUN_OUTPUT_TOKENS, row);
}

static void terms_of_time(const struct scatter *scatter, size_t row, double *terms)
{
    terms[NUMERATOR] = run_number(scatter->table, RUN_LATENCY, row);
    terms[DENOMINATOR] = 1;
}

/* Delta method for the product of two means: joules and seconds are correlated, so their errors do not add
 * independently. */
static void terms_of_delay(const struct scatter *scatter, size_t row, double *terms)
{
    terms[NUMERATOR] = run_number(scatter->table, RUN_JOULES, row) * scatter->seconds +
                       run_number(scatter->table, RUN_LATENCY, row) * scatter->joules;
    terms[DENOMINATOR] = 1;
}

static void terms_of_squared_delay(const struct scatter *scatter, size_t row, double *terms)
{
    terms[NUMERATOR] =
        run_number(scatter->table, RUN_JOULES, row) * scatter->seconds * scatter->seconds +
        2 * run_number(scatter->table, RUN_LATENCY, row) * scatter->joules * scatter->seconds;
    terms[DENOMINATOR] = 1;
}

/* Standard error of a ratio of sums, from the residual of each question. */
static double error_of(struct scatter *scatter, terms_fn *terms_of)
{
    const struct run_table *table = scatter->table;
    struct online beyond = {0}, under = {0};
    struct question_terms *all = &scatter->terms;
    double sums[TERMS] = {0}, terms[TERMS];
    question_terms_clear(all);
    for (size_t i = 0; i < table->rows; i++) {
        terms_of(scatter, i, terms);
        if (!run_completed(table, i) || !is_known(terms[NUMERATOR]) ||
            !is_known(terms[DENOMINATOR]))
            continue;
        question_terms_add(all, i, terms);
        sums[NUMERATOR] += terms[NUMERATOR];
        sums[DENOMINATOR] += terms[DENOMINATOR];
    }
    question_terms_close(all, &scatter->questions);
    for (size_t i = 0; i < all->count; i++) {
        online_add(&beyond, all->columns[NUMERATOR][i] -
                                sums[NUMERATOR] / sums[DENOMINATOR] * all->columns[DENOMINATOR][i]);
        online_add(&under, all->columns[DENOMINATOR][i]);
    }
    return online_standard_error(&beyond) / online_mean(&under);
}

static void scatter_init(struct scatter *scatter, const struct run_table *table)
{
    *scatter = (struct scatter){.table = table};
    question_terms_init(&scatter->terms, table->rows, TERMS);
    questions_of(table, &scatter->questions);
}

static void scatter_release(struct scatter *scatter)
{
    question_terms_release(&scatter->terms);
    questions_release(&scatter->questions);
}

/* ---- energy and time ---- */

static void put_errors(struct scatter *scatter, struct run_figures *out)
{
    struct online seconds = {0};
    for (size_t i = 0; i < scatter->table->rows; i++)
        if (run_completed(scatter->table, i))
            online_add(&seconds, run_number(scatter->table, RUN_LATENCY, i));
    scatter->seconds = out->seconds_per_query = online_mean(&seconds);
    scatter->joules = out->point.joules_per_query;
    out->edp = energy_delay_product(scatter->joules, scatter->seconds, 1);
    out->ed2p = energy_delay_product(scatter->joules, scatter->seconds, 2);
    out->is_command = scatter->table->kind == RUN_KIND_RUN;
    out->joules_per_query_error = NORMAL_95 * error_of(scatter, terms_of_query);
    out->joules_per_output_token_error = NORMAL_95 * error_of(scatter, terms_of_token);
    out->seconds_per_query_error = NORMAL_95 * error_of(scatter, terms_of_time);
    out->edp_error = NORMAL_95 * error_of(scatter, terms_of_delay);
    out->ed2p_error = NORMAL_95 * error_of(scatter, terms_of_squared_delay);
}

static void add_sensor_error(const struct run_figures *run, const struct uncertainty *all,
                             double value, double *error)
{
    *error = NORMAL_95 * uncertainty_among(value, *error / NORMAL_95, &run->uncertainty, all);
}

/* Another run of the same configuration would differ by as much. */
static void add_spread(double *error, double value, double spread)
{
    *error = hypot(*error, NORMAL_95 * spread * value);
}

/* Repetitions of a command are runs, whose spread is in the errors already. */
static bool has_spread(const struct run_figures *run)
{
    return run->is_command && run->point.queries > 1;
}

const char *run_spread_note(const struct run_figures *runs, size_t count, char to[static 64])
{
    size_t without = 0, assumed = 0;
    for (size_t i = 0; i < count; i++) {
        without += !has_spread(&runs[i]);
        assumed += !has_spread(&runs[i]) && !runs[i].spread.runs;
    }
    to[0] = '\0';
    if (assumed)
        str_format(to, 64, ", with %.0f %% between runs (assumed)", 100 * SPREAD_ASSUMED);
    else if (without)
        str_copy(to, 64, ", with the spread between runs");
    return to;
}

static void add_spreads(struct run_figures *run)
{
    double energy = run->spread.energy, time = run->spread.time;
    if (has_spread(run))
        return;
    add_spread(&run->joules_per_query_error, run->point.joules_per_query, energy);
    add_spread(&run->joules_per_output_token_error, run->point.joules_per_output_token, energy);
    add_spread(&run->seconds_per_query_error, run->seconds_per_query, time);
    add_spread(&run->edp_error, run->edp, hypot(energy, time));
    add_spread(&run->ed2p_error, run->ed2p, hypot(energy, 2 * time));
}

struct uncertainty run_figures_settle(struct run_figures *runs, size_t count)
{
    struct uncertainty all = {UNKNOWN, UNKNOWN, 0};
    for (size_t i = 0; i < count; i++)
        uncertainty_join(&all, &runs[i].uncertainty);
    for (size_t i = 0; i < count; i++) {
        struct run_figures *run = &runs[i];
        if (count > 1)
            add_spreads(run);
        add_sensor_error(run, &all, run->point.joules_per_query, &run->joules_per_query_error);
        add_sensor_error(run, &all, run->point.joules_per_output_token,
                         &run->joules_per_output_token_error);
        add_sensor_error(run, &all, run->edp, &run->edp_error);
        add_sensor_error(run, &all, run->ed2p, &run->ed2p_error);
    }
    return all;
}

/* ---- accuracy ---- */

static void put_accuracy(struct scatter *scatter, struct run_figures *out)
{
    const struct run_table *table = scatter->table;
    struct intelligence_tally tally = {0};
    struct intelligence figures;
    struct question *asked = xmalloc((table->rows + 1) * sizeof *asked);
    size_t count = 0;
    for (size_t i = 0; i < table->rows; i++) {
        int correct = run_verdict(table, i);
        if (!run_completed(table, i) || correct < 0)
            continue;
        tally_row(&tally, table, i);
        asked[count++] = (struct question){run_number(table, RUN_INDEX, i), correct, 1, 0, 0};
    }
    if (scatter->questions.repeats)
        tally.repeats = repeats_of(asked, questions_merge(asked, count));
    free(asked);
    intelligence_of(&tally, &(struct busy_energy){UNKNOWN, UNKNOWN, UNKNOWN}, UNKNOWN, &figures);
    out->accuracy_low = figures.accuracy_low;
    out->accuracy_high = figures.accuracy_high;
    out->accuracy_at_most = figures.accuracy_at_most;
    out->unread_share = figures.unread_share;
}

static double median_of(const struct run_table *table, enum run_number column)
{
    double *values;
    size_t count;
    known_values(table, column, RUN_NUMBERS, &values, &count);
    double median = select_median(values, count);
    free(values);
    return median;
}

void run_figures_of(const struct run_table *table, struct run_figures *out)
{
    struct scatter scatter;
    struct online prompts = {0};
    *out = (struct run_figures){0};
    run_point_of(table, &out->point);
    chars_copy(out->method, run_energy_method(table));
    out->uncertainty = uncertainty_of(table);
    run_spread_of(table, table, &out->spread);
    for (size_t i = 0; i < table->rows; i++)
        if (run_completed(table, i))
            online_add(&prompts, run_number(table, RUN_INPUT_TOKENS, i));
    out->prompt_tokens = online_mean(&prompts);
    scatter_init(&scatter, table);
    put_errors(&scatter, out);
    put_accuracy(&scatter, out);
    scatter_release(&scatter);
    out->ttft_s = median_of(table, RUN_TTFT);
    out->latency_s = median_of(table, RUN_LATENCY);
}
