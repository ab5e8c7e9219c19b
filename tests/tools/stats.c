/* stats: one JSON object per line on standard input, {"ask": "linear", "x": [...], "y": [...],
 * ...}; the result of src/stats, one object per line on standard output. For tests that compare it
 * with others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "stats/bootstrap.h"
#include "stats/contrast.h"
#include "stats/correlation.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"
#include "stats/eigen.h"
#include "stats/fit.h"

struct series {
    double *values;
    size_t count;
};

static struct series series_of(const struct jv *asked, const char *key)
{
    const struct jv *list = jv_get(asked, key);
    struct series out = {calloc(jv_count(list) + 1, sizeof(double)), 0};
    if (!out.values)
        exit(1);
    for (const struct jv *child = jv_first(list); child; child = jv_next(child))
        out.values[out.count++] = jv_number(child);
    return out;
}

static void write_linear(const struct jv *asked, struct series x, struct series y,
                         struct json *json)
{
    static const char *const LOGS[] = {"", "x", "both"};
    struct linear_fit fit;
    const char *wanted = jv_text(jv_get(asked, "logs"));
    enum linear_logs logs = LINEAR_PLAIN;
    for (int i = 0; wanted && i < 3; i++)
        if (strcmp(wanted, LOGS[i]) == 0)
            logs = (enum linear_logs)i;
    json_bool(json, "done", linear_fit_logs(x.values, y.values, x.count, logs, &fit));
    json_integer(json, "count", (int64_t)fit.count);
    json_number(json, "slope", fit.slope);
    json_number(json, "intercept", fit.intercept);
    json_number(json, "r2", fit.r2);
    json_number(json, "slope_error", fit.slope_error);
    json_number(json, "intercept_error", fit.intercept_error);
    json_number(json, "slope_low", fit.slope_low);
    json_number(json, "intercept_high", fit.intercept_high);
    json_number(json, "p_value", fit.p_value);
}

static void write_theil_sen(struct series x, struct series y, struct json *json)
{
    struct theil_sen line;
    theil_sen(x.values, y.values, x.count, &line);
    json_bool(json, "sampled", line.sampled);
    json_number(json, "slope", line.slope);
    json_number(json, "intercept", line.intercept);
}

static void write_correlation(const char *ask, struct series x, struct series y, struct json *json)
{
    struct correlation found = {0, UNKNOWN, UNKNOWN};
    (strcmp(ask, "spearman") == 0 ? spearman : kendall)(x.values, y.values, x.count, &found);
    json_number(json, "value", found.value);
    json_number(json, "p_value", found.p_value);
}

static void write_kde(struct series x, struct series at, struct json *json)
{
    struct series density = {calloc(at.count + 1, sizeof(double)), at.count};
    if (!density.values)
        exit(1);
    json_bool(json, "done", kde(x.values, x.count, at.values, at.count, density.values) == ERR_OK);
    json_array(json, "density");
    for (size_t i = 0; i < density.count; i++)
        json_number(json, NULL, density.values[i]);
    json_array_end(json);
    free(density.values);
}

/* The contrast of two means: sums of the values and of ones. */
static void write_contrast(bool paired, struct series x, struct series y, struct json *json)
{
    struct contrast found;
    double *terms = calloc((x.count + y.count) * CONTRAST_SUMS + 1, sizeof *terms);
    if (!terms)
        exit(1);
    for (size_t i = 0; i < x.count + y.count; i++) {
        terms[i * CONTRAST_SUMS] = i < x.count ? x.values[i] : y.values[i - x.count];
        terms[i * CONTRAST_SUMS + 1] = 1;
    }
    struct contrast_question question = {
        .a = {terms, x.count},
        .b = {terms + x.count * CONTRAST_SUMS, y.count},
        .paired = paired,
        .seed = 7,
    };
    contrast(&question, &found);
    json_bool(json, "exact", found.exact);
    json_number(json, "difference", found.difference.value);
    json_number(json, "p_value", found.p_value);
    free(terms);
}

static void write_runs(struct series x, struct series y, struct json *json)
{
    struct contrast found;
    contrast_runs(x.values, x.count, y.values, y.count, &found);
    json_number(json, "difference", found.difference.value);
    json_number(json, "low", found.difference.low);
    json_number(json, "high", found.difference.high);
    json_number(json, "relative_low", found.relative.low);
    json_number(json, "relative_high", found.relative.high);
    json_number(json, "a_error", found.a_error);
    json_number(json, "p_value", found.p_value);
    json_number(json, "freedom", found.freedom);
}

static double ratio_of(const double *sums)
{
    return sums[1] != 0 ? sums[0] / sums[1] : UNKNOWN;
}

static void write_bootstrap(const struct jv *asked, struct series x, struct series y,
                            struct json *json)
{
    struct bootstrap what = {{x.values, y.values}, 2, x.count, ratio_of, 0, 0, 0};
    struct bootstrap_interval found;
    what.draws = (unsigned)jv_number(jv_get(asked, "draws"));
    what.seed = (uint64_t)jv_number(jv_get(asked, "seed"));
    bootstrap_interval(&what, &found);
    json_number(json, "figure", found.figure);
    json_number(json, "low", found.low);
    json_number(json, "high", found.high);
    json_number(json, "error", found.error);
}

static void write_distribution(const char *ask, const struct jv *asked, struct json *json)
{
    double p = jv_number(jv_get(asked, "p")), freedom = jv_number(jv_get(asked, "freedom"));
    double value = strcmp(ask, "student_two_sided") == 0 ? student_two_sided(p, freedom)
                                                         : student_quantile(p, freedom);
    json_number(json, "value", value);
}

static void write_sorted(struct series x, const struct jv *asked, struct json *json)
{
    double p = jv_number(jv_get(asked, "p")), found;
    select_quantiles(x.values, x.count, &p, 1, &found);
    json_number(json, "quantile", found);
    sort_ascending(x.values, x.count);
    json_array(json, "sorted");
    for (size_t i = 0; i < x.count; i++)
        json_number(json, NULL, x.values[i]);
    json_array_end(json);
}

static double *new_numbers(size_t count)
{
    double *numbers = calloc(count + 1, sizeof *numbers);
    if (!numbers)
        exit(1);
    return numbers;
}

static void write_numbers(struct json *json, const char *key, const double *numbers, size_t count)
{
    json_array(json, key);
    for (size_t i = 0; i < count; i++)
        json_number(json, NULL, numbers[i]);
    json_array_end(json);
}

/* Of a symmetric matrix, by rows. */
static void write_eigen(struct series x, size_t size, struct json *json)
{
    double *values = new_numbers(size), *vectors = new_numbers(size * size);
    double *root = new_numbers(size * size);
    bool is_done = !eigen_symmetric(x.values, size, values, vectors) &&
                   !eigen_square_root(x.values, size, root);
    json_bool(json, "done", is_done);
    write_numbers(json, "values", values, size);
    write_numbers(json, "vectors", vectors, size * size);
    write_numbers(json, "root", root, size * size);
    free(values);
    free(vectors);
    free(root);
}

/* Of the rows of two tables. */
static void write_frechet(struct series x, struct series y, size_t size, struct json *json)
{
    double *means = new_numbers(2 * size), *covariances = new_numbers(2 * size * size);
    double *transport = new_numbers(size * size), distance = UNKNOWN;
    covariance_of(x.values, x.count / size, size, means, covariances);
    covariance_of(y.values, y.count / size, size, means + size, covariances + size * size);
    const struct normal_distribution a = {means, covariances};
    const struct normal_distribution b = {means + size, covariances + size * size};
    json_bool(json, "done", !frechet_distance(&a, &b, size, &distance, transport));
    json_number(json, "value", distance);
    write_numbers(json, "transport", transport, size * size);
    free(means);
    free(covariances);
    free(transport);
}

static void write_answer(const struct jv *asked, struct json *json)
{
    const char *ask = jv_text(jv_get(asked, "ask")) ? jv_text(jv_get(asked, "ask")) : "";
    struct series x = series_of(asked, "x"), y = series_of(asked, "y");
    json_object(json, NULL);
    if (strcmp(ask, "linear") == 0)
        write_linear(asked, x, y, json);
    else if (strcmp(ask, "theil_sen") == 0)
        write_theil_sen(x, y, json);
    else if (strcmp(ask, "spearman") == 0 || strcmp(ask, "kendall") == 0)
        write_correlation(ask, x, y, json);
    else if (strcmp(ask, "kde") == 0)
        write_kde(x, y, json);
    else if (strcmp(ask, "paired") == 0 || strcmp(ask, "unpaired") == 0)
        write_contrast(strcmp(ask, "paired") == 0, x, y, json);
    else if (strcmp(ask, "runs") == 0)
        write_runs(x, y, json);
    else if (strcmp(ask, "bootstrap") == 0)
        write_bootstrap(asked, x, y, json);
    else if (strcmp(ask, "eigen") == 0)
        write_eigen(x, (size_t)jv_number(jv_get(asked, "size")), json);
    else if (strcmp(ask, "frechet") == 0)
        write_frechet(x, y, (size_t)jv_number(jv_get(asked, "size")), json);
    else if (strcmp(ask, "sorted") == 0)
        write_sorted(x, asked, json);
    else
        write_distribution(ask, asked, json);
    json_object_end(json);
    free(x.values);
    free(y.values);
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    while ((length = getline(&line, &capacity, stdin)) > 0) {
        struct jv *asked;
        struct text out = {0};
        struct json json;
        struct error why = {0};
        if (jv_parse(line, (size_t)length, &asked, &why)) {
            fprintf(stderr, "stats: %s\n", why.text);
            free(line);
            return 1;
        }
        json_init(&json, &out, false);
        write_answer(asked, &json);
        puts(text_get(&out));
        text_release(&out);
        jv_free(asked);
    }
    free(line);
    return 0;
}
