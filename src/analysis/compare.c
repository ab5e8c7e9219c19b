/* Comparing runs: queries of two runs are matched by their question, the metrics of record.def are computed as ratios
 * of sums over them, and each difference gets an interval, a p value and a verdict. */
#include "analysis/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "metrics/uncertainty.h"
#include "rundir/run_table.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"

/* A run, and the factors that scale its queries' shares of time so that they add up to the run's own busy_watts and
 * output_tokens_per_s. */
struct terms_run {
    const struct run_table *table;
    double busy_scale, run_scale;
    double device_scale; /* to the run's device time */
};

/* ---- matching queries ---- */

struct entry {
    double index, repeat, question;
    uint32_t row;
};

/* The runs of both sides, those of a first, with their rows of completed queries.  Paired: rows[i] is the same query in
 * all of them, and all completed it.  Otherwise a side's runs are aligned in that way, or each has all of its own.
 * Ordered by position in the dataset, so that repeats of one question are adjacent. */
struct match {
    struct matched_run {
        struct terms_run run;
        struct entry *entries; /* all queries, sorted by key */
        uint32_t *rows;
        size_t count;
    } *runs;
    size_t a_runs, all_runs;
    bool paired;
    bool a_aligned, b_aligned;            /* if not paired */
    size_t same, a_only, b_only, changed; /* over all queries: see struct comparison */
};

static int by_key(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = compare_numbers(a->index, b->index);
    if (!order)
        order = compare_numbers(a->repeat, b->repeat);
    return order ? order : compare_numbers((double)a->row, (double)b->row);
}

static struct entry *entries_of(const struct run_table *table)
{
    struct entry *entries = xmalloc((table->rows + 1) * sizeof *entries);
    for (size_t i = 0; i < table->rows; i++) {
        double index = run_number(table, RUN_INDEX, i), repeat = run_number(table, RUN_REPEAT, i);
        entries[i] = (struct entry){is_known(index) ? index : (double)i, known_or(repeat, 0),
                                    run_number(table, RUN_QUESTION, i), (uint32_t)i};
    }
    qsort(entries, table->rows, sizeof *entries, by_key);
    return entries;
}

/* Compares the keys only: -1, 0, 1. */
static int compare_keys(const struct entry *a, const struct entry *b)
{
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    return a->repeat < b->repeat ? -1 : a->repeat > b->repeat;
}

enum found { NOT_THERE, ANOTHER_QUESTION, THE_SAME };

/* The query with that key in a run; `at` advances, since keys are sorted. */
static enum found find_key(const struct matched_run *in, size_t *at, const struct entry *wanted,
                           uint32_t *row)
{
    while (*at < in->run.table->rows && compare_keys(&in->entries[*at], wanted) < 0)
        ++*at;
    if (*at == in->run.table->rows || compare_keys(&in->entries[*at], wanted) != 0)
        return NOT_THERE;
    const struct entry *entry = &in->entries[(*at)++];
    *row = entry->row;
    return entry->question == wanted->question ? THE_SAME : ANOTHER_QUESTION;
}

/* Rows of the queries that all runs from `first` to `end` have completed.  True if these are at least half of the
 * queries of the shortest run. */
static bool align(struct match *match, size_t first, size_t end, size_t *at)
{
    const struct matched_run *lead = &match->runs[first];
    size_t shortest = lead->run.table->rows, count = 0;
    match->same = match->changed = 0;
    for (size_t r = first; r < end; r++) {
        at[r] = 0;
        if (match->runs[r].run.table->rows < shortest)
            shortest = match->runs[r].run.table->rows;
    }
    for (size_t i = 0; i < lead->run.table->rows; i++) {
        enum found all = THE_SAME;
        bool completed = true;
        for (size_t r = first; r < end && all; r++) {
            uint32_t row = 0;
            enum found found = find_key(&match->runs[r], &at[r], &lead->entries[i], &row);
            all = found < all ? found : all;
            match->runs[r].rows[count] = row;
            completed = completed && found && run_completed(match->runs[r].run.table, row);
        }
        match->same += all == THE_SAME;
        match->changed += all == ANOTHER_QUESTION;
        count += all == THE_SAME && completed;
    }
    for (size_t r = first; r < end; r++)
        match->runs[r].count = count;
    return match->same && 2 * match->same >= shortest;
}

static void take_all(struct matched_run *run)
{
    run->count = 0;
    for (size_t i = 0; i < run->run.table->rows; i++)
        if (run_completed(run->run.table, run->entries[i].row))
            run->rows[run->count++] = run->entries[i].row;
}

static bool align_side(struct match *match, size_t first, size_t end, bool keyed, size_t *at)
{
    bool aligned = keyed && end - first > 1 && align(match, first, end, at);
    for (size_t r = first; !aligned && r < end; r++)
        take_all(&match->runs[r]);
    return aligned;
}

static void match_queries(struct match *match, size_t *at)
{
    const struct run_table *a = match->runs[0].run.table, *b = match->runs[match->a_runs].run.table;
    /* Repetitions of a command have no key to pair them by. */
    bool keyed = run_kind_has_queries(a->kind);
    match->paired = align(match, 0, match->all_runs, at) && keyed;
    match->a_only = a->rows - match->same - match->changed;
    match->b_only = b->rows - match->same - match->changed;
    if (match->paired)
        return;
    size_t same = match->same, changed = match->changed;
    match->a_aligned = align_side(match, 0, match->a_runs, keyed, at);
    match->b_aligned = align_side(match, match->a_runs, match->all_runs, keyed, at);
    match->same = same;
    match->changed = changed;
}

static void match_release(struct match *match)
{
    for (size_t r = 0; match->runs && r < match->all_runs; r++) {
        free(match->runs[r].entries);
        free(match->runs[r].rows);
    }
    free(match->runs);
    *match = (struct match){0};
}

static struct terms_run terms_run_of(const struct run_table *table);

static void match_runs(const struct compare_side *a, const struct compare_side *b,
                       struct match *out)
{
    size_t all = a->count + b->count;
    size_t *at = xcalloc(all, sizeof *at);
    *out = (struct match){
        .runs = xcalloc(all, sizeof *out->runs), .a_runs = a->count, .all_runs = all};
    for (size_t r = 0; r < all; r++) {
        struct matched_run *run = &out->runs[r];
        run->run = terms_run_of(r < a->count ? &a->runs[r] : &b->runs[r - a->count]);
        run->entries = entries_of(run->run.table);
        run->rows = xmalloc((run->run.table->rows + 1) * sizeof *run->rows);
    }
    match_queries(out, at);
    free(at);
}

/* ---- terms of the metrics ---- */

/* Per query, beside the numbers of the table (enum run_number); each may be unknown. */
enum {
    RUN_ONE = RUN_NUMBERS,
    RUN_ITL, /* in seconds */
    RUN_RIGHT,
    RUN_GRADED,
    RUN_BUSY_S,         /* its share of the time in which any query was in flight */
    RUN_WALL_S,         /* its share of the time from the first request to the last end */
    RUN_BITS,           /* -log2 p of its scored tokens */
    RUN_MILLIONS,       /* output tokens in millions */
    RUN_OPERATING_COST, /* cost of its energy and its share of device time */
    RUN_GCO2E,
};

/* One entry per question, summed over its repeats and runs, which are not independent.  A query is included if its
 * contribution is known in all aligned runs. */
struct terms {
    struct side_terms {
        double *entries; /* CONTRAST_SUMS each */
        double *started; /* of each entry, as the following */
        double *numbers; /* of the repetition */
        size_t count, queries;
        double question; /* position of the last one that was added */
    } a, b;
    double (*of_run)[CONTRAST_SUMS]; /* sums over all queries of each run */
    double (*query)[CONTRAST_SUMS];  /* terms of the query being added, per run */
    bool repeats;                    /* an entry has several queries */
};

struct factor {
    int numerator, denominator;
};
#define FACTOR(n, d) {RUN_##n, RUN_##d}

static const struct {
    bool product, exponential;
    struct factor factors[2];
} FORMULAS[] = {
#define METRIC(constant, name, label, unit, better, energy, of)                                    \
    {false, false, {FACTOR of, {RUN_ONE, RUN_ONE}}},
#define PRODUCT(constant, name, label, unit, better, energy, of, times)                            \
    {true, false, {FACTOR of, FACTOR times}},
#define EXPONENTIAL(constant, name, label, unit, better, energy, of)                               \
    {false, true, {FACTOR of, {RUN_ONE, RUN_ONE}}},
#include "rundir/record.def"
};

bool compare_is_priced(enum compare_metric metric)
{
    int of = FORMULAS[metric].factors[0].numerator;
    return of == RUN_OPERATING_COST || of == RUN_GCO2E;
}

static run_columns want(int what)
{
    return what < RUN_NUMBERS ? RUN_WANT(what) : 0;
}

struct run_wanted compare_needs(void)
{
    struct run_wanted wanted = {RUN_WANT(RUN_INDEX) | RUN_WANT(RUN_REPEAT) |
                                    RUN_WANT(RUN_QUESTION) | RUN_WANT(RUN_ITL_MEDIAN) |
                                    RUN_WANT(RUN_COVERAGE) | RUN_WANT(RUN_CONCURRENCY) |
                                    RUN_WANT(RUN_STARTED_AT),
                                RUN_WANT(RUN_SOURCE) | RUN_WANT(RUN_METHOD)};
    for (size_t m = 0; m < COMPARE_METRICS; m++)
        for (size_t i = 0; i < 2; i++)
            wanted.numbers |=
                want(FORMULAS[m].factors[i].numerator) | want(FORMULAS[m].factors[i].denominator);
    return wanted;
}

static bool metric_is_product(enum compare_metric metric)
{
    return FORMULAS[metric].product;
}

/* ---- a query ---- */

/* A query's share of time: with n queries in flight each gets 1/n. */
static double time_share(const struct run_table *table, size_t row)
{
    double concurrency = run_number(table, RUN_CONCURRENCY, row);
    return run_number(table, RUN_LATENCY, row) / (concurrency >= 1 ? concurrency : 1);
}

static double quantity(const struct terms_run *run, int what, size_t row)
{
    const struct run_table *table = run->table;
    int correct = run_verdict(table, row);
    switch (what) {
    case RUN_ONE:
        return 1;
    case RUN_ITL:
        return run_number(table, RUN_ITL_MEDIAN, row) / 1000;
    case RUN_RIGHT:
        return correct < 0 ? UNKNOWN : (double)correct;
    case RUN_GRADED:
        return correct < 0 ? UNKNOWN : 1;
    case RUN_BUSY_S:
        return time_share(table, row) * run->busy_scale;
    case RUN_WALL_S:
        return time_share(table, row) * run->run_scale;
    case RUN_BITS:
        return run_number(table, RUN_NLL, row) / log(2);
    case RUN_MILLIONS:
        return run_number(table, RUN_OUTPUT_TOKENS, row) / 1e6;
    case RUN_OPERATING_COST:
        return tariff_charge(&table->summary.tariff, run_number(table, RUN_JOULES, row), UNKNOWN,
                             time_share(table, row) * run->device_scale)
            .cost;
    case RUN_GCO2E:
        return tariff_emissions(&table->summary.tariff, run_number(table, RUN_JOULES, row));
    default:
        return run_number(table, (enum run_number)what, row);
    }
}

/* Scale such that sum of `what` / (scale x sum of shares) is the run's own figure; 1 if that is unknown. */
static double scale_to(const struct terms_run *run, int what, double figure)
{
    double amount = 0, time = 0;
    for (size_t i = 0; i < run->table->rows; i++) {
        double value = quantity(run, what, i), s = time_share(run->table, i);
        if (!run_completed(run->table, i) || !is_known(value) || !is_known(s))
            continue;
        amount += value;
        time += s;
    }
    return figure > 0 && amount > 0 && time > 0 ? amount / time / figure : 1;
}

/* Scale such that the queries' shares add up to the device time of the run. */
static double device_scale(const struct run_table *table)
{
    double parts = 0, all = summary_device_seconds(&table->summary);
    for (size_t i = 0; i < table->rows; i++)
        if (run_completed(table, i))
            add_known(&parts, time_share(table, i));
    return all > 0 && parts > 0 ? all / parts : 1;
}

static struct terms_run terms_run_of(const struct run_table *table)
{
    struct terms_run run = {table, 1, 1, 1};
    double busy = scale_to(&run, RUN_JOULES, table->summary.busy_watts);
    double whole = scale_to(&run, RUN_OUTPUT_TOKENS, table->summary.output_tokens_per_s);
    return (struct terms_run){table, busy, whole, device_scale(table)};
}

/* ---- accumulating terms ---- */

/* False if the factor is unknown for this query. */
static bool factor_of(const struct terms_run *run, const struct factor *factor, size_t row,
                      double *out)
{
    out[0] = quantity(run, factor->numerator, row);
    out[1] = quantity(run, factor->denominator, row);
    return is_known(out[0]) && is_known(out[1]);
}

/* The terms of the i-th query in the runs from `first` to `end`; a factor that is unknown in one of them is omitted in
 * all.  False if none remains. */
static bool query_terms(const struct match *match, size_t first, size_t end, size_t i,
                        enum compare_metric metric, double (*out)[CONTRAST_SUMS])
{
    bool known = false;
    for (size_t r = first; r < end; r++)
        memset(out[r], 0, sizeof out[r]);
    for (size_t f = 0; f < 1 + (size_t)FORMULAS[metric].product; f++) {
        bool all = true;
        for (size_t r = first; r < end; r++)
            all = factor_of(&match->runs[r].run, &FORMULAS[metric].factors[f],
                            match->runs[r].rows[i], out[r] + 2 * f) &&
                  all;
        for (size_t r = first; !all && r < end; r++)
            out[r][2 * f] = out[r][2 * f + 1] = 0;
        known = known || all;
    }
    return known;
}

/* Adds the result of query_terms to the entry of its question and to the sums of its runs. */
static void add_query(const struct match *match, size_t first, size_t end, size_t i,
                      struct terms *terms, struct side_terms *to)
{
    const struct run_table *table = match->runs[first].run.table;
    double question = run_number(table, RUN_INDEX, match->runs[first].rows[i]);
    bool again = i && to->count && to->question == question && run_kind_has_queries(table->kind);
    double *entry = to->entries + (again ? to->count - 1 : to->count) * CONTRAST_SUMS;
    for (size_t s = 0; s < CONTRAST_SUMS; s++) {
        double sum = 0;
        for (size_t r = first; r < end; r++) {
            sum += terms->query[r][s];
            terms->of_run[r][s] += terms->query[r][s];
        }
        entry[s] = sum + (again ? entry[s] : 0);
    }
    if (!again) {
        to->started[to->count] = run_number(table, RUN_STARTED_AT, match->runs[first].rows[i]);
        to->numbers[to->count] = run_number(table, RUN_REPEAT, match->runs[first].rows[i]);
    }
    to->count += !again;
    to->queries += end - first;
    to->question = question;
    terms->repeats = terms->repeats || again;
}

static void add_pairs(const struct match *match, enum compare_metric metric, struct terms *out)
{
    for (size_t i = 0; i < match->runs[0].count; i++) {
        if (!query_terms(match, 0, match->all_runs, i, metric, out->query))
            continue;
        add_query(match, 0, match->a_runs, i, out, &out->a);
        add_query(match, match->a_runs, match->all_runs, i, out, &out->b);
    }
}

/* For aligned runs, or a single one. */
static void add_all(const struct match *match, size_t first, size_t end, enum compare_metric metric,
                    struct terms *out, struct side_terms *to)
{
    for (size_t i = 0; i < match->runs[first].count; i++)
        if (query_terms(match, first, end, i, metric, out->query))
            add_query(match, first, end, i, out, to);
}

static void add_side(const struct match *match, size_t first, size_t end, bool aligned,
                     enum compare_metric metric, struct terms *out, struct side_terms *to)
{
    if (aligned)
        add_all(match, first, end, metric, out, to);
    for (size_t r = first; !aligned && r < end; r++)
        add_all(match, r, r + 1, metric, out, to);
}

static void terms_release(struct terms *terms)
{
    free(terms->a.entries);
    free(terms->b.entries);
    free(terms->a.started);
    free(terms->b.started);
    free(terms->a.numbers);
    free(terms->b.numbers);
    free(terms->of_run);
    free(terms->query);
    *terms = (struct terms){0};
}

/* Empty, for the runs from `first` to `end`. */
static struct side_terms new_side(const struct match *match, size_t first, size_t end)
{
    size_t count = 1;
    for (size_t r = first; r < end; r++)
        count += match->runs[r].count;
    return (struct side_terms){.entries = xmalloc(count * CONTRAST_SUMS * sizeof(double)),
                               .started = xmalloc(count * sizeof(double)),
                               .numbers = xmalloc(count * sizeof(double))};
}

static void terms_of(const struct match *match, enum compare_metric metric, struct terms *out)
{
    *out = (struct terms){.a = new_side(match, 0, match->a_runs),
                          .b = new_side(match, match->a_runs, match->all_runs),
                          .of_run = xcalloc(match->all_runs, sizeof *out->of_run),
                          .query = xcalloc(match->all_runs, sizeof *out->query)};
    if (match->paired) {
        add_pairs(match, metric, out);
    } else {
        add_side(match, 0, match->a_runs, match->a_aligned, metric, out, &out->a);
        add_side(match, match->a_runs, match->all_runs, match->b_aligned, metric, out, &out->b);
    }
}

/* ---- the comparison ---- */

#define Z_95 1.959963984540054

const struct compare_metric_info COMPARE_METRIC_INFO[COMPARE_METRICS] = {
#define METRIC(constant, name, label, unit, better, energy, of) {name, label, unit, better, energy},
#define PRODUCT(constant, name, label, unit, better, energy, of, times)                            \
    {name, label, unit, better, energy},
#define EXPONENTIAL(constant, name, label, unit, better, energy, of)                               \
    {name, label, unit, better, energy},
#include "rundir/record.def"
};

/* ---- one metric ---- */

static struct compare_plain plain_of(const struct contrast *found)
{
    return (struct compare_plain){found->difference, found->relative, found->p_value, UNKNOWN};
}

/* Discordant pairs only: concordant ones carry no information. */
static double mcnemar(const struct terms *terms)
{
    uint64_t only_a = 0, only_b = 0;
    for (size_t i = 0; i < terms->a.count; i++) {
        bool a = terms->a.entries[i * CONTRAST_SUMS] > 0;
        bool b = terms->b.entries[i * CONTRAST_SUMS] > 0;
        only_a += a && !b;
        only_b += b && !a;
    }
    return sign_test(only_b, only_a);
}

/* Moves both ends away from the value by a further standard deviation. */
static void widen(struct contrast_figure *figure, double sigma)
{
    figure->low = figure->value - hypot(figure->value - figure->low, 1.96 * sigma);
    figure->high = figure->value + hypot(figure->high - figure->value, 1.96 * sigma);
}

struct compare_sensors {
    struct uncertainty a, b, all;
};

/* Share of electricity in the cost of a side's queries: device time has no sensor error. */
static double electricity_share(const struct match *match, size_t first, size_t end)
{
    double electricity = 0, all = 0;
    for (size_t r = first; r < end; r++) {
        const struct matched_run *run = &match->runs[r];
        for (size_t i = 0; i < run->count; i++) {
            double joules = quantity(&run->run, RUN_JOULES, run->rows[i]);
            add_known(&electricity, tariff_electricity(&run->run.table->summary.tariff, joules));
            add_known(&all, quantity(&run->run, RUN_OPERATING_COST, run->rows[i]));
        }
    }
    return all > 0 ? electricity / all : 0;
}

/* The calibration error is the same in every query: it cancels if both sides use the same sensors, and is stated once
 * (comparison.common).  Otherwise it is added to each value and to the difference. */
static void add_calibration(const struct match *match, const struct compare_sensors *sensors,
                            bool is_cost, struct compared *out)
{
    if (sensors->all.sensors != UNCERTAINTY_MIXED)
        return;
    double of_a = known_or(sensors->a.common, 0);
    double of_b = known_or(sensors->b.common, 0);
    of_a *= is_cost ? electricity_share(match, 0, match->a_runs) : 1;
    of_b *= is_cost ? electricity_share(match, match->a_runs, match->all_runs) : 1;
    double a = of_a * out->found.a, b = of_b * out->found.b;
    out->a_plus_minus = hypot(out->found.a_error, a);
    out->b_plus_minus = hypot(out->found.b_error, b);
    widen(&out->found.difference, hypot(a, b));
    widen(&out->found.relative, hypot(of_a, of_b) * fabs(1 + out->found.relative.value));
}

/* If all or none are correct, the sample variance is 0, which understates the uncertainty: uses the standard error of
 * Wilson's interval, of width z^2 / (n + z^2) there, propagated to a product. */
static double wilson_error(const struct side_terms *side, bool product, double error)
{
    double sums[CONTRAST_SUMS] = {0}, questions = 0;
    for (size_t i = 0; i < side->count; i++) {
        for (size_t s = 0; s < CONTRAST_SUMS; s++)
            sums[s] += side->entries[i * CONTRAST_SUMS + s];
        questions += side->entries[i * CONTRAST_SUMS + 1] > 0;
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

/* Tests over questions: with one run per side, or with sums over all runs. */
static void compare_queries(const struct match *match, const struct terms *terms,
                            enum compare_metric metric, uint64_t seed, struct compared *out)
{
    struct contrast_question question = {.a = {terms->a.entries, terms->a.count},
                                         .b = {terms->b.entries, terms->b.count},
                                         .paired = match->paired,
                                         .product = metric_is_product(metric),
                                         .seed = seed};
    contrast(&question, &out->found);
    if (is_of_accuracy(metric)) {
        out->found.a_error = wilson_error(&terms->a, question.product, out->found.a_error);
        out->found.b_error = wilson_error(&terms->b, question.product, out->found.b_error);
    }
    out->plain = plain_of(&out->found);
    if (!is_known(out->found.p_value))
        return;
    out->test = match->paired ? "paired permutation" : "permutation";
    if (metric == COMPARE_ACCURACY && match->paired && !terms->repeats && match->all_runs == 2) {
        out->plain.p_value = out->found.p_value = mcnemar(terms);
        out->test = "McNemar, exact";
    }
}

static void widen_to(struct contrast_figure *figure, const struct contrast_figure *other)
{
    figure->low = fmin(figure->low, other->low);
    figure->high = fmax(figure->high, other->high);
}

/* Two results of `ipw run`: each repetition of the command is a run with one value. */
static bool is_of_commands(const struct match *match)
{
    return match->all_runs == 2 && match->runs[0].run.table->kind == RUN_KIND_RUN &&
           match->runs[1].run.table->kind == RUN_KIND_RUN;
}

/* ---- one metric, of runs ---- */

/* The values of the runs of a, then of b, when each began, and its number among the repeats. */
struct run_values {
    double *values, *started, *numbers;
    size_t a_count, count;
};

static struct run_values new_values(size_t a_count, size_t count)
{
    return (struct run_values){.values = xmalloc((count + 1) * sizeof(double)),
                               .started = xmalloc((count + 1) * sizeof(double)),
                               .numbers = xmalloc((count + 1) * sizeof(double)),
                               .a_count = a_count,
                               .count = count};
}

static void free_values(struct run_values *runs)
{
    free(runs->values);
    free(runs->started);
    free(runs->numbers);
}

static void compare_run_values(struct run_values *runs, struct comparison *comparison,
                               struct compared *out)
{
    size_t a = runs->a_count, b = runs->count - a;
    if (comparison->series.is_interleaved) {
        compare_pairs(&comparison->series, runs->values, runs->numbers, a, runs->count,
                      &out->found);
        out->plain = plain_of(&out->found);
        out->test = is_known(out->found.p_value) ? "paired t" : NULL;
        return;
    }
    contrast_runs(runs->values, a, runs->values + a, b, &out->found);
    out->plain = plain_of(&out->found);
    contrast_allow_trend(runs->values, runs->started, a, runs->values + a, runs->started + a, b,
                         &out->found);
    bool uses_order = out->found.level_weight < 1;
    comparison->has_order = comparison->has_order || uses_order;
    if (is_known(out->found.p_value))
        out->test = uses_order ? "Welch's t with trend" : "Welch's t";
}

/* Of results of `ipw run`. */
static void compare_repetitions(const struct terms *terms, enum compare_metric metric,
                                struct comparison *comparison, struct compared *out)
{
    const struct side_terms *a = &terms->a, *b = &terms->b;
    struct run_values runs = new_values(a->count, a->count + b->count);
    for (size_t i = 0; i < runs.count; i++) {
        const struct side_terms *side = i < a->count ? a : b;
        size_t entry = i < a->count ? i : i - a->count;
        runs.values[i] =
            contrast_statistic(side->entries + entry * CONTRAST_SUMS, metric_is_product(metric));
        runs.started[i] = side->started[entry];
        runs.numbers[i] = side->numbers[entry];
    }
    compare_run_values(&runs, comparison, out);
    free_values(&runs);
}

/* When a run began; runs of other programs record when they ended. */
static double start_of(const struct run_table *table)
{
    double first = UNKNOWN;
    for (size_t i = 0; i < table->rows; i++)
        first = fmin(first, run_number(table, RUN_STARTED_AT, i));
    if (is_known(table->summary.started_at))
        return table->summary.started_at;
    return is_known(first) ? first : table->summary.generated_at;
}

/* Tests over runs, each with one value.  A model that answers identically in every run is no more certain about other
 * questions: accuracy uses the larger p value and the wider interval of both tests. */
static void compare_values(const struct match *match, const struct terms *terms,
                           enum compare_metric metric, struct comparison *comparison,
                           struct compared *out)
{
    struct contrast by_query = out->found;
    const char *query_test = out->test;
    struct run_values runs = new_values(match->a_runs, match->all_runs);
    for (size_t r = 0; r < match->all_runs; r++) {
        runs.values[r] = contrast_statistic(terms->of_run[r], metric_is_product(metric));
        runs.started[r] = start_of(match->runs[r].run.table);
        runs.numbers[r] = known_count(match->runs[r].run.table->summary.repeat_number);
    }
    compare_run_values(&runs, comparison, out);
    free_values(&runs);
    if (!is_of_accuracy(metric) || !is_known(out->found.p_value))
        return;
    by_query.p_value = fmin(1, by_query.p_value / out->found.look);
    widen_to(&out->found.difference, &by_query.difference);
    widen_to(&out->found.relative, &by_query.relative);
    widen_to(&out->plain.difference, &by_query.difference);
    widen_to(&out->plain.relative, &by_query.relative);
    out->plain.p_value = fmax(out->plain.p_value, by_query.p_value);
    out->found.a_error = fmax(out->found.a_error, by_query.a_error);
    out->found.b_error = fmax(out->found.b_error, by_query.b_error);
    if (by_query.p_value > out->found.p_value) {
        out->found.p_value = by_query.p_value;
        out->found.exact = by_query.exact;
        out->test = query_test;
    }
}

/* ---- what the runs at hand do not show ---- */

static bool is_of_time(enum compare_metric metric)
{
    return metric == COMPARE_LATENCY || metric == COMPARE_TTFT || metric == COMPARE_ITL ||
           metric == COMPARE_TOKENS_PER_S;
}

/* A further independent error, whose 95 % half-width this is; both ends are unknown without any. */
static void widen_by(struct contrast_figure *figure, double half)
{
    double below = known_or(figure->value - figure->low, 0);
    double above = known_or(figure->high - figure->value, 0);
    figure->low = figure->value - hypot(below, half);
    figure->high = figure->value + hypot(above, half);
}

/* One run a side: another run of each would differ by the spread between runs. */
static void add_spread(enum compare_metric metric, const struct run_spread *spread,
                       struct compared *out)
{
    struct contrast *found = &out->found;
    bool is_time = is_of_time(metric), is_energy = COMPARE_METRIC_INFO[metric].energy;
    double of_run = is_time ? spread->time : spread->energy;
    double freedom = is_time ? spread->time_freedom : spread->energy_freedom;
    if ((!is_time && !is_energy) || !is_known(found->difference.value))
        return;
    bool has_test = is_known(found->p_value);
    double of_queries = (found->difference.high - found->difference.low) / (2 * Z_95);
    double of_runs = of_run * hypot(found->a, found->b);
    double t = student_quantile(0.05, freedom);
    found->level = (struct contrast_model){found->difference.value,
                                           hypot(known_or(of_queries, 0), of_runs), freedom};
    widen_by(&found->difference, t * of_runs);
    widen_by(&found->relative, t * of_runs / fabs(found->a));
    if (!has_test) /* no scatter is known */
        out->plain.p_value = found->difference.value == 0;
    if (found->difference.value == 0)
        found->level.error = UNKNOWN;
    found->p_value = fmax(found->p_value, contrast_p(found, 0, 0));
    if (!has_test)
        out->test = "spread between runs";
}

/* The difference that conditions may cause, and the p value beyond it. */
static void allow_conditions(enum compare_metric metric, const struct compare_influence *influence,
                             struct compared *inout)
{
    const struct compare_metric_info *info = &COMPARE_METRIC_INFO[metric];
    double low = 0, high = 0, b = fabs(inout->found.b);
    if (info->energy) {
        low = influence->energy_low;
        high = influence->energy_high;
    } else if (is_of_time(metric)) {
        low = influence->time_low;
        high = influence->time_high;
    }
    if (metric == COMPARE_ACTIVE_ENERGY) { /* a baseline that was too high makes it too low */
        low = influence->active_scale * fmin(low, -influence->idle);
        high = influence->active_scale * fmax(high, influence->idle);
    }
    bool is_inverse = info->better == BETTER_HIGHER;
    inout->shift_low = known_or(is_inverse ? -high * b : low * b, 0);
    inout->shift_high = known_or(is_inverse ? -low * b : high * b, 0);
    if (inout->shift_low < 0 || inout->shift_high > 0)
        inout->found.p_value = fmax(inout->found.p_value,
                                    contrast_p(&inout->found, inout->shift_low, inout->shift_high));
}

/* For an exponent: the sign of interval ends is preserved. */
static void exponentiate(struct contrast *found)
{
    const struct contrast_figure of = found->difference;
    found->a = exp(found->a);
    found->b = exp(found->b);
    found->a_error *= found->a;
    found->b_error *= found->b;
    found->relative = (struct contrast_figure){expm1(of.value), expm1(of.low), expm1(of.high)};
    found->difference = (struct contrast_figure){
        found->b - found->a, found->a * found->relative.low, found->a * found->relative.high};
}

/* A comparison in progress. */
struct work {
    struct match match;
    struct compare_sensors sensors;
    const struct compare_options *options;
    struct comparison *out;
};

static void compare_metric(struct work *work, enum compare_metric metric)
{
    struct terms terms;
    struct comparison *comparison = work->out;
    struct compared *out = &comparison->metrics[metric];
    const struct match *match = &work->match;
    bool by_run = match->all_runs > 2;
    terms_of(match, metric, &terms);
    if (is_of_commands(match))
        compare_repetitions(&terms, metric, comparison, out);
    else if (!by_run || is_of_accuracy(metric))
        compare_queries(match, &terms, metric, work->options->seed + metric, out);
    if (by_run)
        compare_values(match, &terms, metric, comparison, out);
    else if (!is_of_commands(match) || terms.a.count + terms.b.count == 2)
        add_spread(metric, &comparison->spread, out);
    if (FORMULAS[metric].exponential)
        exponentiate(&out->found);
    if (!work->options->ignore_conditions)
        allow_conditions(metric, &comparison->influence, out);
    out->a_queries = terms.a.queries;
    out->b_queries = terms.b.queries;
    out->a_plus_minus = out->found.a_error;
    out->b_plus_minus = out->found.b_error;
    if (COMPARE_METRIC_INFO[metric].energy)
        add_calibration(match, &work->sensors,
                        FORMULAS[metric].factors[0].numerator == RUN_OPERATING_COST, out);
    terms_release(&terms);
}

/* ---- two sides ---- */

static struct uncertainty sensors_of(const struct compare_side *side)
{
    struct uncertainty all = {UNKNOWN, UNKNOWN, 0};
    double common = UNKNOWN;
    for (size_t r = 0; r < side->count; r++) {
        struct uncertainty run = uncertainty_of(&side->runs[r]);
        uncertainty_join(&all, &run);
        common = fmax(common, run.common);
    }
    all.common = common;
    return all;
}

void compare_describe(const struct compare_side *side, struct compared_side *out)
{
    const struct run_table *first = &side->runs[0];
    *out = (struct compared_side){
        .directory = first->directory, .runs = side->count, .queries = first->rows};
    chars_copy(out->model, first->model);
    chars_copy(out->hardware, run_hardware(first));
    chars_copy(out->currency, text_or_empty(first->summary.currency));
    out->tariff = first->summary.tariff;
}

static void leave_out(struct compared *out)
{
    contrast_runs(NULL, 0, NULL, 0, &out->found);
    out->plain = plain_of(&out->found);
    out->a_plus_minus = out->b_plus_minus = UNKNOWN;
}

static void compare_metrics(struct work *work)
{
    for (size_t i = 0; i < COMPARE_METRICS; i++) {
        struct compared *compared = &work->out->metrics[i];
        compared->p_holm = UNKNOWN;
        if (!work->options->only || work->options->only >> i & 1)
            compare_metric(work, (enum compare_metric)i);
        else
            leave_out(compared);
    }
}

void compare_sides(const struct compare_side *a, const struct compare_side *b,
                   const struct compare_options *options, const struct run_spread *spread,
                   struct comparison *out)
{
    struct work work = {.sensors = {sensors_of(a), sensors_of(b), {UNKNOWN, UNKNOWN, 0}},
                        .options = options,
                        .out = out};
    struct compare_sensors *sensors = &work.sensors;
    uncertainty_join(&sensors->all, &sensors->a);
    uncertainty_join(&sensors->all, &sensors->b);
    *out = (struct comparison){.kind = a->runs[0].kind, .a_runs = a->count, .spread = *spread};
    compare_describe(b, &out->side);
    compare_series_of(a, b, &out->series);
    compare_influence_of(a, b, &out->influence);
    match_runs(a, b, &work.match);
    out->paired = work.match.paired;
    out->same = work.match.same;
    out->pairs = out->paired ? work.match.runs[0].count : 0;
    out->a_only = work.match.a_only;
    out->b_only = work.match.b_only;
    out->changed = work.match.changed;
    out->common = sensors->all.sensors == UNCERTAINTY_MIXED ? UNKNOWN : sensors->all.common;
    compare_metrics(&work);
    if (!options->only)
        out->quality_count = compare_qualities(a, b, options->seed, out->qualities);
    match_release(&work.match);
    compare_check_conditions(a, b, out);
    compare_warn(a, b, out);
    bool is_ignored = out->conditions == CONDITIONS_DIFFER || out->influence.text[0];
    if (options->ignore_conditions && is_ignored)
        out->conditions = CONDITIONS_IGNORED;
}
