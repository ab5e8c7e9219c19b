/* Comparing runs: queries of two runs are matched by their question, the metrics of record.def are taken as ratios of
 * sums over them, and each difference gets an interval, a p-value and a verdict. */
#include "analysis/compare.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/registry.h"
#include "core/text.h"
#include "core/units.h"
#include "metrics/uncertainty.h"
#include "rundir/run_table.h"

/* ---- matching queries ---- */

/* Rows of completed queries.  Paired: a[i] and b[i] are the same query, completed by both.  Else all of
 * each.  By their place in the dataset, so that repeats of one question stand together. */
struct match {
    bool paired;
    uint32_t *a, *b;
    size_t a_count, b_count;
    size_t same, a_only, b_only, changed; /* of all queries: see struct comparison */
};

struct entry {
    double index, repeat, question;
    uint32_t row;
};

static int by_key(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    if (a->repeat != b->repeat)
        return a->repeat < b->repeat ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static struct entry *entries_of(const struct run_table *table)
{
    struct entry *entries = malloc((table->rows + 1) * sizeof *entries);
    for (size_t i = 0; entries && i < table->rows; i++) {
        double index = run_number(table, RUN_INDEX, i), repeat = run_number(table, RUN_REPEAT, i);
        entries[i] =
            (struct entry){is_known(index) ? index : (double)i, is_known(repeat) ? repeat : 0,
                           run_number(table, RUN_QUESTION, i), (uint32_t)i};
    }
    if (entries)
        qsort(entries, table->rows, sizeof *entries, by_key);
    return entries;
}

/* -1, 0, 1 as the keys compare, whatever the rows. */
static int compare_keys(const struct entry *a, const struct entry *b)
{
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    return a->repeat < b->repeat ? -1 : a->repeat > b->repeat;
}

static void pair_up(const struct run_table *a, const struct entry *in_a, const struct run_table *b,
                    const struct entry *in_b, struct match *out)
{
    size_t i = 0, j = 0;
    while (i < a->rows && j < b->rows) {
        int order = compare_keys(&in_a[i], &in_b[j]);
        if (order == 0 && in_a[i].question == in_b[j].question) {
            out->same++;
            if (run_completed(a, in_a[i].row) && run_completed(b, in_b[j].row)) {
                out->a[out->a_count++] = in_a[i].row;
                out->b[out->b_count++] = in_b[j].row;
            }
        } else if (order == 0)
            out->changed++;
        i += order <= 0;
        j += order >= 0;
    }
    out->a_only = a->rows - out->same - out->changed;
    out->b_only = b->rows - out->same - out->changed;
}

static size_t take_all(const struct run_table *table, const struct entry *entries, uint32_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < table->rows; i++)
        if (run_completed(table, entries[i].row))
            out[count++] = entries[i].row;
    return count;
}

static void match_release(struct match *match)
{
    free(match->a);
    free(match->b);
    *match = (struct match){0};
}

static enum err match_runs(const struct run_table *a, const struct run_table *b, struct match *out)
{
    struct entry *in_a = entries_of(a), *in_b = entries_of(b);
    *out = (struct match){.a = malloc((a->rows + 1) * sizeof *out->a),
                          .b = malloc((b->rows + 1) * sizeof *out->b)};
    enum err err = in_a && in_b && out->a && out->b ? ERR_OK : ERR_NO_MEMORY;
    if (!err) {
        pair_up(a, in_a, b, in_b, out);
        /* Repetitions of a command have nothing in common that would pair them. */
        out->paired = a->kind == RUN_KIND_PROFILE && out->same &&
                      2 * out->same >= (a->rows < b->rows ? a->rows : b->rows);
        if (!out->paired) {
            out->a_count = take_all(a, in_a, out->a);
            out->b_count = take_all(b, in_b, out->b);
        }
    }
    free(in_a);
    free(in_b);
    if (err)
        match_release(out);
    return err;
}

/* ---- terms of the metrics ---- */

/* Of a query; each is known or not. */
enum quantity_of_query {
    QUERY_ONE,
    QUERY_JOULES,
    QUERY_ACTIVE_JOULES,
    QUERY_TOKENS,
    QUERY_LATENCY,
    QUERY_TTFT,
    QUERY_ITL,
    QUERY_RIGHT,
    QUERY_GRADED,
    QUERY_BUSY_S, /* its part of the time in which any query was under way */
    QUERY_RUN_S,  /* its part of the time from the first sending to the last end */
};

/* A run, and by what its queries' parts of its time are scaled, so that all together make the run's own
 * busy_watts and output_tokens_per_s. */
struct terms_run {
    const struct run_table *table;
    double busy_scale, run_scale;
};

/* One entry a question, its repeats added up: they are not independent.  A query enters where its part is
 * known, when paired in both runs. */
struct terms {
    double *a, *b; /* CONTRAST_SUMS each */
    size_t a_count, b_count;
    size_t a_queries, b_queries;
    bool repeats; /* an entry has several queries */
};

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

static bool metric_is_product(enum compare_metric metric)
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

static struct terms_run terms_run_of(const struct run_table *table)
{
    struct terms_run run = {table, 1, 1};
    double busy = scale_to(&run, QUERY_JOULES, table->summary.busy_watts);
    double whole = scale_to(&run, QUERY_TOKENS, table->summary.output_tokens_per_s);
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
    return i == 0 || table->kind != RUN_KIND_PROFILE /* independent repetitions */ ||
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

static void terms_release(struct terms *terms)
{
    free(terms->a);
    free(terms->b);
    *terms = (struct terms){0};
}

static enum err terms_of(const struct terms_run *a, const struct terms_run *b,
                         const struct match *match, enum compare_metric metric, struct terms *out)
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

/* ---- the comparison ---- */

#define Z_95 1.959963984540054

const struct compare_metric_info COMPARE_METRIC_INFO[COMPARE_METRICS] = {
#define METRIC(constant, name, unit, better, energy, label, of) {name, unit, label, better, energy},
#define PRODUCT(constant, name, unit, better, energy, label, of, times)                            \
    {name, unit, label, better, energy},
#include "rundir/record.def"
};

const char *compare_verdict_text(enum compare_verdict verdict)
{
    static const char *const TEXTS[VERDICTS] = {
        "not known", "no evidence", "better", "worse", "higher", "lower", "not comparable"};
    return TEXTS[verdict];
}

/* ---- one metric ---- */

/* Right by one of the two and not by the other: the rest says nothing about which is better. */
static double mcnemar(const struct terms *terms)
{
    uint64_t only_a = 0, only_b = 0;
    for (size_t i = 0; i < terms->a_count; i++) {
        bool a = terms->a[i * CONTRAST_SUMS] > 0, b = terms->b[i * CONTRAST_SUMS] > 0;
        only_a += a && !b;
        only_b += b && !a;
    }
    return sign_test(only_b, only_a);
}

/* Both ends moved away from the value by a further standard deviation. */
static void widen(struct contrast_figure *figure, double sigma)
{
    figure->low = figure->value - hypot(figure->value - figure->low, 1.96 * sigma);
    figure->high = figure->value + hypot(figure->high - figure->value, 1.96 * sigma);
}

/* Sensors that are wrong in every query alike: in each value, and where they are not the same ones also in
 * the difference. */
static void add_calibration(double a_calibration, double b_calibration, bool same,
                            struct compared *out)
{
    double a = is_known(a_calibration) ? a_calibration * out->found.a : 0;
    double b = is_known(b_calibration) ? b_calibration * out->found.b : 0;
    out->a_plus_minus = hypot(out->found.a_error, a);
    out->b_plus_minus = hypot(out->found.b_error, b);
    if (same)
        return;
    double both = hypot(is_known(a_calibration) ? a_calibration : 0,
                        is_known(b_calibration) ? b_calibration : 0);
    widen(&out->found.difference, hypot(a, b));
    widen(&out->found.relative, both * fabs(1 + out->found.relative.value));
}

/* All or none right do not scatter, and are no surer for that: the standard error of Wilson's interval,
 * which is z^2 / (n + z^2) wide there, and of a product, what it makes of the second factor. */
static double edge_error(const double *terms, size_t count, bool product, double error)
{
    double sums[CONTRAST_SUMS] = {0}, questions = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t s = 0; s < CONTRAST_SUMS; s++)
            sums[s] += terms[i * CONTRAST_SUMS + s];
        questions += terms[i * CONTRAST_SUMS + 1] > 0;
    }
    if (!is_known(error) || (sums[0] != 0 && sums[0] != sums[1]))
        return error;
    double of_accuracy = Z_95 / (2 * (questions + Z_95 * Z_95));
    return hypot(error, of_accuracy * (product ? sums[2] / sums[3] : 1));
}

static bool is_of_accuracy(enum compare_metric metric)
{
    return metric == COMPARE_ACCURACY || metric == COMPARE_IPJ || metric == COMPARE_IPW;
}

static enum err compare_metric(const struct terms_run *a, const struct terms_run *b,
                               const struct match *match, enum compare_metric metric, uint64_t seed,
                               struct compared *out)
{
    struct terms terms;
    enum err err = terms_of(a, b, match, metric, &terms);
    if (err)
        return err;
    struct contrast_question question = {.a = {terms.a, terms.a_count},
                                         .b = {terms.b, terms.b_count},
                                         .paired = match->paired,
                                         .product = metric_is_product(metric),
                                         .seed = seed};
    err = contrast(&question, &out->found);
    if (!err && is_of_accuracy(metric)) {
        out->found.a_error =
            edge_error(terms.a, terms.a_count, question.product, out->found.a_error);
        out->found.b_error =
            edge_error(terms.b, terms.b_count, question.product, out->found.b_error);
    }
    out->a_queries = terms.a_queries;
    out->b_queries = terms.b_queries;
    out->a_plus_minus = out->found.a_error;
    out->b_plus_minus = out->found.b_error;
    if (is_known(out->found.p_value)) {
        out->test = match->paired ? "paired permutation" : "permutation";
        if (metric == COMPARE_ACCURACY && match->paired && !terms.repeats) {
            out->found.p_value = mcnemar(&terms);
            out->test = "McNemar, exact";
        }
    }
    if (!err && COMPARE_METRIC_INFO[metric].energy) {
        struct uncertainty of_a = uncertainty_of(a->table), of_b = uncertainty_of(b->table);
        add_calibration(of_a.common, of_b.common, of_a.sensors == of_b.sensors, out);
    }
    terms_release(&terms);
    return err;
}

/* ---- two runs ---- */

enum err compare_runs(const struct run_table *a, const struct run_table *b, uint64_t seed,
                      struct comparison *out, struct error *why)
{
    struct terms_run in_a = terms_run_of(a), in_b = terms_run_of(b);
    struct match match;
    *out = (struct comparison){0};
    str_copy(out->directory, sizeof out->directory, b->directory);
    out->kind = a->kind;
    str_copy(out->model, sizeof out->model, b->model);
    str_copy(out->hardware, sizeof out->hardware, run_hardware(b));
    enum err err = match_runs(a, b, &match);
    if (err)
        return err_explain(why, err);
    out->paired = match.paired;
    out->same = match.same;
    out->pairs = match.paired ? match.a_count : 0;
    out->a_only = match.a_only;
    out->b_only = match.b_only;
    out->changed = match.changed;
    for (size_t i = 0; !err && i < COMPARE_METRICS; i++) {
        out->metrics[i].p_holm = UNKNOWN;
        err = compare_metric(&in_a, &in_b, &match, (enum compare_metric)i, seed + i,
                             &out->metrics[i]);
    }
    match_release(&match);
    if (err)
        return err_explain(why, err);
    compare_warn(a, b, out);
    return ERR_OK;
}

/* ---- all of them ---- */

static enum compare_verdict verdict_of(const struct compared *compared, enum compare_better better)
{
    const struct contrast_figure *difference = &compared->found.difference;
    if (!is_known(compared->p_holm))
        return VERDICT_UNKNOWN;
    bool apart = difference->low > 0 || difference->high < 0;
    if (!(compared->p_holm < COMPARE_ALPHA) || !apart)
        return VERDICT_NO_EVIDENCE;
    bool higher = difference->value > 0;
    if (better == BETTER_NEITHER)
        return higher ? VERDICT_HIGHER : VERDICT_LOWER;
    return higher == (better == BETTER_HIGHER) ? VERDICT_BETTER : VERDICT_WORSE;
}

static bool is_blocked(const struct comparison *comparison, enum compare_metric metric)
{
    return comparison->conditions == CONDITIONS_DIFFER && COMPARE_METRIC_INFO[metric].energy;
}

enum err compare_judge(struct comparison *all, size_t count, struct error *why)
{
    double *p_values = malloc((count * COMPARE_METRICS + 1) * sizeof *p_values);
    if (!p_values)
        return err_no_memory(why);
    for (size_t i = 0; i < count * COMPARE_METRICS; i++)
        p_values[i] = all[i / COMPARE_METRICS].metrics[i % COMPARE_METRICS].found.p_value;
    holm_adjust(p_values, count * COMPARE_METRICS);
    for (size_t i = 0; i < count * COMPARE_METRICS; i++) {
        struct compared *compared = &all[i / COMPARE_METRICS].metrics[i % COMPARE_METRICS];
        compared->p_holm = p_values[i];
        compared->verdict = verdict_of(compared, COMPARE_METRIC_INFO[i % COMPARE_METRICS].better);
        if (compared->verdict != VERDICT_UNKNOWN &&
            is_blocked(&all[i / COMPARE_METRICS], (enum compare_metric)(i % COMPARE_METRICS)))
            compared->verdict = VERDICT_NOT_COMPARABLE;
    }
    free(p_values);
    return ERR_OK;
}

/* ---- bounds ---- */

static enum err unknown_metric(const char *name, struct error *why)
{
    const char *names[COMPARE_METRICS];
    struct text all = {0};
    for (size_t i = 0; i < COMPARE_METRICS; i++) {
        names[i] = COMPARE_METRIC_INFO[i].name;
        text_addf(&all, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = nearest_name(name, names, COMPARE_METRICS);
    enum err err =
        near ? err_set(why, ERR_USAGE, "unknown metric '%s': did you mean '%s'?", name, near)
             : err_set(why, ERR_USAGE, "unknown metric '%s': use one of %s", name, text_get(&all));
    text_release(&all);
    return err;
}

static const char *skip_spaces(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

static enum err parse_bound(const char *at, struct compare_check *out)
{
    char number[64];
    size_t length = strlen(at);
    while (length && isspace((unsigned char)at[length - 1]))
        length--;
    out->relative = length && at[length - 1] == '%';
    length -= out->relative;
    if (length >= sizeof number)
        return ERR_BAD_VALUE;
    memcpy(number, at, length);
    number[length] = '\0';
    enum err err = parse_double(number, &out->bound);
    if (out->relative)
        out->bound /= 100;
    return err;
}

enum err compare_check_parse(const char *text, struct compare_check *out, struct error *why)
{
    char name[64];
    const char *at = skip_spaces(text);
    size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    *out = (struct compare_check){.metric = COMPARE_METRICS};
    const char *sign = skip_spaces(at + length);
    if (!str_copy(out->text, sizeof out->text, text) || !length || length >= sizeof name ||
        (*sign != '>' && *sign != '<'))
        return err_set(why, ERR_USAGE,
                       "'%.100s' is not a bound: write METRIC > BOUND or METRIC < BOUND, as in "
                       "'energy_per_output_token > +5%%'",
                       text);
    memcpy(name, at, length);
    name[length] = '\0';
    for (size_t i = 0; i < COMPARE_METRICS; i++)
        if (strcmp(COMPARE_METRIC_INFO[i].name, name) == 0)
            out->metric = (enum compare_metric)i;
    if (out->metric == COMPARE_METRICS)
        return unknown_metric(name, why);
    out->above = *sign == '>';
    out->or_equal = sign[1] == '=';
    if (parse_bound(sign + 1 + out->or_equal, out))
        return err_set(
            why, ERR_USAGE,
            "'%.100s' has no number for a bound: +5%% is a share of the baseline, 0.5 is "
            "in the metric's unit",
            text);
    return ERR_OK;
}

enum compare_outcome compare_check_judge(const struct compare_check *check,
                                         const struct comparison *comparison, bool confident)
{
    const struct contrast *found = &comparison->metrics[check->metric].found;
    const struct contrast_figure *figure = check->relative ? &found->relative : &found->difference;
    double value = confident ? check->above ? figure->low : figure->high : figure->value;
    if (check->relative && found->a == 0 && found->b == 0)
        value = 0; /* a relative difference of 0 and 0 is undefined, but nothing differs */
    else if (!is_known(figure->value))
        return CHECK_UNKNOWN;
    if (is_blocked(comparison, check->metric))
        return CHECK_NOT_COMPARABLE;
    if (!is_known(value))
        return CHECK_HOLDS; /* too few queries to be sure of anything */
    if (value == check->bound)
        return check->or_equal ? CHECK_FAILS : CHECK_HOLDS;
    return (value > check->bound) == check->above ? CHECK_FAILS : CHECK_HOLDS;
}
