/* Facts, energy breakdown and distributions of a run, for its page. */
#include "analysis/columns.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "stats/descriptive.h"

/* ---- facts ---- */

void run_facts_fill(const struct run_table *table, uint64_t damaged_spans, struct result *out)
{
    char damaged[160];
    result_text(out, "directory", table->directory);
    result_text(out, "model", table->model);
    result_text(out, "hardware", run_hardware(table));
    result_text(out, "dataset", text_or_empty(table->summary.dataset_name));
    result_count(out, "rows", table->rows);
    result_count(out, "failed", table->failed);
    result_count(out, "canceled", table->canceled);
    result_flag(out, "ours", table->ours);
    result_list(out, "notes");
    for (size_t i = 0; i < table->note_count; i++)
        result_text(out, NULL, table->notes[i].text);
    if (!table->has_summary && !table->damaged_summary)
        result_text(out, NULL, "no summary.json: the run is unfinished or still running");
    chars_format(damaged, "%llu damaged lines of spans.jsonl skipped",
                 (unsigned long long)damaged_spans);
    if (damaged_spans)
        result_text(out, NULL, damaged);
    result_end(out);
}

/* ---- energy breakdown ---- */

enum { PREFILL, DECODE, OTHER, FAILED, CANCELED, IDLE, UNATTRIBUTED, PARTS };

static const struct {
    const char *key, *label;
} PART_NAMES[PARTS] = {
    [PREFILL] = {"prefill", "Prefill"},
    [DECODE] = {"decode", "Decode"},
    [OTHER] = {"queries", "Queries, phase unknown"},
    [FAILED] = {"failed", "Failed queries"},
    [CANCELED] = {"canceled", "Canceled requests"},
    [IDLE] = {"idle", "Idle between queries"},
    [UNATTRIBUTED] = {"unattributed", "Unattributed"},
};

/* Smaller parts are rounding errors. */
#define SHARE_MIN 1e-6

void run_shares_fill(const struct run_table *table, struct result *out)
{
    const struct summary *summary = &table->summary;
    double total = 0, queries = summary->queries_joules;
    double parts[PARTS] = {
        [PREFILL] = summary->prefill_joules, [DECODE] = summary->decode_joules,
        [FAILED] = summary->failed_joules,   [CANCELED] = summary->canceled_joules,
        [IDLE] = summary->idle_joules,       [UNATTRIBUTED] = summary->unattributed_joules};
    for (size_t i = 0; i < PARTS; i++)
        parts[i] = parts[i] > 0 ? parts[i] : 0;
    /* An answer received in one piece has no phases. */
    parts[OTHER] = fmax(0, queries - parts[PREFILL] - parts[DECODE]);
    for (size_t i = 0; i < PARTS; i++)
        total += parts[i];
    result_list(out, "shares");
    for (size_t i = 0; is_known(queries) && i < PARTS; i++) {
        if (!(parts[i] > SHARE_MIN * total))
            continue;
        result_group(out, NULL);
        result_text(out, "key", PART_NAMES[i].key);
        result_text(out, "label", PART_NAMES[i].label);
        result_number(out, "joules", parts[i], "J");
        result_number(out, "share", parts[i] / total, "%");
        result_end(out);
    }
    result_end(out);
}

/* ---- distributions ---- */

enum { BINS_MIN = 8, BINS_MAX = 48 };

struct bins {
    double low, step;
    bool log, integer;
    size_t count;
    uint64_t counts[BINS_MAX + 2]; /* one more for integers; the last: overflow */
};

/* Values over several orders of magnitude are binned logarithmically; a few outliers do not compress the others into
 * one bin. */
static struct bins choose_bins(double *values, size_t count)
{
    static const double PS[] = {0, 0.005, 0.25, 0.75, 0.995, 1};
    double q[6];
    struct bins bins = {0};
    select_quantiles(values, count, PS, 6, q);
    double high = q[5] > q[4] + 0.5 * (q[4] - q[1]) ? q[4] : q[5];
    bins.log = q[0] > 0 && high / q[0] > 50;
    bins.low = q[0];
    double range = bins.log ? log(high / q[0]) : high - q[0];
    double middle = bins.log ? log(q[3] / q[2]) : q[3] - q[2];
    /* Freedman-Diaconis rule. */
    double width = 2 * middle / cbrt((double)count);
    double wanted = width > 0 ? ceil(range / width) : sqrt((double)count);
    bins.count = (size_t)fmin(fmax(wanted, BINS_MIN), BINS_MAX);
    bins.step = range / (double)bins.count;
    if (range <= 0) { /* all equal: one bar, centered at the value */
        bins.count = 1;
        bins.step = q[0] != 0 ? 0.1 * fabs(q[0]) : 1;
        bins.low = q[0] - bins.step / 2;
    }
    return bins;
}

/* Integers of a small range have one bin each, centered at the number. */
static void fit_integers(struct bins *bins, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (values[i] != floor(values[i]))
            return;
    double range = bins->step * (double)bins->count;
    if (bins->log || (range < 1 && bins->count > 1))
        return;
    double min = bins->count > 1 ? bins->low : values[0];
    range = bins->count > 1 ? range : 0;
    bins->integer = true;
    bins->step = bins->count > 1 ? ceil(bins->step) : 1;
    bins->count = (size_t)(range / bins->step) + 1;
    bins->low = min - 0.5;
}

static void count_values(struct bins *bins, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double place = bins->log ? log(values[i] / bins->low) : values[i] - bins->low;
        double bin = floor(place / bins->step + 1e-9);
        /* The largest value belongs to the last bin. */
        if (place <= bins->step * (double)bins->count * (1 + 1e-9))
            bin = fmin(bin, (double)bins->count - 1);
        bins->counts[(size_t)fmin(fmax(bin, 0), (double)bins->count)]++;
    }
}

static void put_distribution(struct result *out, const struct ratio_row *row, double *values,
                             size_t count)
{
    struct bins bins = choose_bins(values, count);
    fit_integers(&bins, values, count);
    count_values(&bins, values, count);
    bool is_beyond = bins.counts[bins.count] > 0;
    result_group(out, NULL);
    result_text(out, "key", row->key);
    result_number(out, "low", bins.low, "");
    result_number(out, "step", bins.step, "");
    result_flag(out, "log", bins.log);
    result_flag(out, "whole", bins.integer);
    result_list(out, "counts");
    for (size_t i = 0; i < bins.count + is_beyond; i++)
        result_count(out, NULL, bins.counts[i]);
    result_end(out);
    result_flag(out, "beyond", is_beyond);
    struct spread spread = spread_of(values, count);
    result_group(out, "spread");
    result_count(out, "count", count);
    for (size_t i = 0; i < SPREAD_FIGURES; i++)
        result_number(out, SPREAD_KEYS[i], spread.figures[i], "");
    result_end(out);
    result_end(out);
}

void run_distributions_fill(const struct run_table *table, struct result *out)
{
    static const struct ratio_row ROWS[] = {
        {"joules", RUN_JOULES, RUN_NUMBERS},
        {"joules_per_output_token", RUN_JOULES, RUN_OUTPUT_TOKENS},
        {"latency_s", RUN_LATENCY, RUN_NUMBERS},
        {"time_to_first_token_s", RUN_TTFT, RUN_NUMBERS},
        {"output_tokens", RUN_OUTPUT_TOKENS, RUN_NUMBERS},
        {"input_tokens", RUN_INPUT_TOKENS, RUN_NUMBERS},
    };
    result_list(out, "distributions");
    for (size_t i = 0; i < COUNT_OF(ROWS); i++) {
        double *values = NULL;
        size_t count = 0;
        known_values(table, ROWS[i].numerator, ROWS[i].denominator, &values, &count);
        if (count)
            put_distribution(out, &ROWS[i], values, count);
        free(values);
    }
    result_end(out);
}
