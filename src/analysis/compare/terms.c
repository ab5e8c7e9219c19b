#include "analysis/compare/terms.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/compare/match.h"

struct factor {
    enum quantity_of_query numerator, denominator;
};
#define FACTOR(n, d) {QUERY_##n, QUERY_##d}

static const struct {
    bool product;
    struct factor factors[2];
} FORMULAS[] = {
#define METRIC(constant, name, unit, better, energy, label, of)                                    \
    {false, {FACTOR of, {QUERY_ONE, QUERY_ONE}}},
#define PRODUCT(constant, name, unit, better, energy, label, of, times)                            \
    {true, {FACTOR of, FACTOR times}},
#include "rundir/record.def"
};

bool metric_is_product(enum compare_metric metric)
{
    return FORMULAS[metric].product;
}

/* ---- a query ---- */

/* Its part of the time that it shared with others: n at once have an n-th each. */
static double part_of_time(const struct run_table *table, size_t row)
{
    double company = run_number(table, RUN_COMPANY, row);
    return run_number(table, RUN_LATENCY, row) / (company >= 1 ? company : 1);
}

static double quantity(const struct terms_run *run, enum quantity_of_query what, size_t row)
{
    const struct run_table *table = run->table;
    int correct = run_flag(table, RUN_CORRECT, row);
    switch (what) {
    case QUERY_ONE:
        return 1;
    case QUERY_JOULES:
        return run_number(table, RUN_JOULES, row);
    case QUERY_ACTIVE_JOULES:
        return run_number(table, RUN_ACTIVE_JOULES, row);
    case QUERY_TOKENS:
        return run_number(table, RUN_OUTPUT_TOKENS, row);
    case QUERY_LATENCY:
        return run_number(table, RUN_LATENCY, row);
    case QUERY_TTFT:
        return run_number(table, RUN_TTFT, row);
    case QUERY_ITL:
        return run_number(table, RUN_ITL_MEDIAN, row) / 1000;
    case QUERY_RIGHT:
        return correct < 0 ? UNKNOWN : (double)correct;
    case QUERY_GRADED:
        return correct < 0 ? UNKNOWN : 1;
    case QUERY_BUSY_S:
        return part_of_time(table, row) * run->busy_scale;
    case QUERY_RUN_S:
        return part_of_time(table, row) * run->run_scale;
    }
    return UNKNOWN;
}

/* So that sum of `what` / (scale x sum of parts) is the run's own figure; 1 where that is not known. */
static double scale_to(const struct terms_run *run, enum quantity_of_query what, double figure)
{
    double amount = 0, time = 0;
    for (size_t i = 0; i < run->table->rows; i++) {
        double value = quantity(run, what, i), s = part_of_time(run->table, i);
        if (!run_completed(run->table, i) || !is_known(value) || !is_known(s))
            continue;
        amount += value;
        time += s;
    }
    return figure > 0 && amount > 0 && time > 0 ? amount / time / figure : 1;
}

struct terms_run terms_run_of(const struct run_table *table)
{
    struct terms_run run = {table, 1, 1};
    double busy = scale_to(&run, QUERY_JOULES, run_fact(table, "ipw.busy_watts"));
    double whole = scale_to(&run, QUERY_TOKENS, run_fact(table, "ipw.output_tokens_per_s"));
    return (struct terms_run){table, busy, whole};
}

/* ---- all of them ---- */

/* False where the factor is not known of this query. */
static bool factor_of(const struct terms_run *run, const struct factor *factor, size_t row,
                      double *out)
{
    out[0] = quantity(run, factor->numerator, row);
    out[1] = quantity(run, factor->denominator, row);
    return is_known(out[0]) && is_known(out[1]);
}

static bool is_next_question(const struct run_table *table, const uint32_t *rows, size_t i)
{
    return i == 0 ||
           run_number(table, RUN_INDEX, rows[i]) != run_number(table, RUN_INDEX, rows[i - 1]);
}

/* Where the terms of one side come together. */
struct gathering {
    const struct terms_run *run;
    const uint32_t *rows;
    double *terms;
    size_t count, queries;
    double question; /* the place of the last one that entered */
    bool repeats;
};

/* Adds the query's terms to its question's entry. */
static void enter(struct gathering *to, size_t i, const double *terms)
{
    double question = run_number(to->run->table, RUN_INDEX, to->rows[i]);
    bool again =
        to->count && to->question == question && !is_next_question(to->run->table, to->rows, i);
    double *entry = to->terms + (again ? to->count - 1 : to->count) * CONTRAST_SUMS;
    for (size_t s = 0; s < CONTRAST_SUMS; s++)
        entry[s] = terms[s] + (again ? entry[s] : 0);
    to->count += !again;
    to->queries++;
    to->repeats = to->repeats || again;
    to->question = question;
}

static void gather_pairs(struct gathering *a, struct gathering *b, size_t count,
                         enum compare_metric metric)
{
    for (size_t i = 0; i < count; i++) {
        double in_a[CONTRAST_SUMS] = {0}, in_b[CONTRAST_SUMS] = {0};
        bool known = false;
        for (size_t f = 0; f < 1 + (size_t)FORMULAS[metric].product; f++) {
            const struct factor *factor = &FORMULAS[metric].factors[f];
            if (factor_of(a->run, factor, a->rows[i], in_a + 2 * f) &&
                factor_of(b->run, factor, b->rows[i], in_b + 2 * f))
                known = true;
            else
                in_a[2 * f] = in_a[2 * f + 1] = in_b[2 * f] = in_b[2 * f + 1] = 0;
        }
        if (!known)
            continue;
        enter(a, i, in_a);
        enter(b, i, in_b);
    }
}

static void gather_all(struct gathering *to, size_t count, enum compare_metric metric)
{
    for (size_t i = 0; i < count; i++) {
        double terms[CONTRAST_SUMS] = {0};
        bool known = false;
        for (size_t f = 0; f < 1 + (size_t)FORMULAS[metric].product; f++) {
            if (factor_of(to->run, &FORMULAS[metric].factors[f], to->rows[i], terms + 2 * f))
                known = true;
            else
                terms[2 * f] = terms[2 * f + 1] = 0;
        }
        if (known)
            enter(to, i, terms);
    }
}

enum err terms_of(const struct terms_run *a, const struct terms_run *b, const struct match *match,
                  enum compare_metric metric, struct terms *out)
{
    *out = (struct terms){.a = malloc((match->a_count + 1) * CONTRAST_SUMS * sizeof *out->a),
                          .b = malloc((match->b_count + 1) * CONTRAST_SUMS * sizeof *out->b)};
    if (!out->a || !out->b) {
        terms_release(out);
        return ERR_NO_MEMORY;
    }
    struct gathering in_a = {.run = a, .rows = match->a, .terms = out->a};
    struct gathering in_b = {.run = b, .rows = match->b, .terms = out->b};
    if (match->paired)
        gather_pairs(&in_a, &in_b, match->a_count, metric);
    else {
        gather_all(&in_a, match->a_count, metric);
        gather_all(&in_b, match->b_count, metric);
    }
    out->a_count = in_a.count;
    out->b_count = in_b.count;
    out->a_queries = in_a.queries;
    out->b_queries = in_b.queries;
    out->repeats = in_a.repeats || in_b.repeats;
    return ERR_OK;
}

void terms_release(struct terms *terms)
{
    free(terms->a);
    free(terms->b);
    *terms = (struct terms){0};
}
