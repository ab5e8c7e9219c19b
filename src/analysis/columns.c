/* Values and groups of a run's table, for analyses and plots: known values of a column, ratios, spreads, groups by
 * subject or length, and queries grouped by question, whose repeats are not independent. */
#include "analysis/columns.h"

#include <math.h>
#include <stdlib.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "metrics/intelligence.h"
#include "rundir/record.h"
#include "stats/descriptive.h"

enum { LENGTH_FIRST = 16, LENGTHS_MAX = 40, LENGTH_NAME_MAX = 48 };

double row_value(const struct run_table *table, enum run_number numerator,
                 enum run_number denominator, size_t row)
{
    if (!run_completed(table, row))
        return UNKNOWN;
    double over = run_number(table, numerator, row);
    return denominator == RUN_NUMBERS ? over : ratio(over, run_number(table, denominator, row));
}

void known_values(const struct run_table *table, enum run_number numerator,
                  enum run_number denominator, double **out, size_t *count)
{
    *count = 0;
    *out = xmalloc((table->rows + 1) * sizeof **out);
    for (size_t i = 0; table->numbers[numerator] && i < table->rows; i++) {
        (*out)[*count] = row_value(table, numerator, denominator, i);
        *count += is_known((*out)[*count]);
    }
}

/* Two passes over known values: twice as fast as one pass with a division each. */
static void add_extent(const double *values, size_t count, struct spread *out)
{
    double mean = 0, squares = 0, min = values[0], max = values[0];
    for (size_t i = 0; i < count; i++) {
        mean += values[i];
        min = values[i] < min ? values[i] : min;
        max = values[i] > max ? values[i] : max;
    }
    mean /= (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    out->figures[SPREAD_MEAN] = mean;
    out->figures[SPREAD_STD] = count > 1 ? sqrt(squares / (double)(count - 1)) : UNKNOWN;
    out->figures[SPREAD_MIN] = min;
    out->figures[SPREAD_MAX] = max;
}

const char *const SPREAD_KEYS[SPREAD_FIGURES] = {"mean", "std", "min", "p50",
                                                 "p90",  "p95", "p99", "max"};

struct spread spread_of(double *values, size_t count)
{
    static const double PS[] = {0.5, 0.9, 0.95, 0.99};
    struct spread spread = {.count = count};
    for (size_t i = 0; i < SPREAD_FIGURES; i++)
        spread.figures[i] = UNKNOWN;
    if (count) {
        add_extent(values, count, &spread);
        select_quantiles(values, count, PS, COUNT_OF(PS), &spread.figures[SPREAD_P50]);
    }
    return spread;
}

static void put_spread(struct result *result, const struct run_table *table,
                       const struct ratio_row *row)
{
    double *values;
    size_t count;
    known_values(table, row->numerator, row->denominator, &values, &count);
    struct spread spread = spread_of(values, count);
    free(values);
    if (!spread.count)
        return;
    result_group(result, row->key);
    result_count(result, "count", spread.count);
    for (size_t i = 0; i < SPREAD_FIGURES; i++)
        result_number(result, SPREAD_KEYS[i], spread.figures[i],
                      column_unit(row->numerator, row->denominator));
    result_end(result);
}

void ratio_spreads(struct result *result, const char *key, const struct run_table *table,
                   const struct ratio_row *rows, size_t count)
{
    result_group(result, key);
    for (size_t i = 0; i < count; i++)
        put_spread(result, table, &rows[i]);
    result_end(result);
}

const char *column_unit(enum run_number numerator, enum run_number denominator)
{
    const char *unit = record_column(COLUMN_NUMBER, numerator)->unit;
    if (unit[0] || denominator == RUN_NUMBERS)
        return unit;
    const char *per = record_column(COLUMN_NUMBER, denominator)->unit;
    if (str_equal(per, "s"))
        return "1/s";
    return str_equal(per, "J") ? "1/J" : "";
}

static double ratio_value(const struct ratio_sums *sums)
{
    return sums->rows && sums->denominator > 0 ? sums->numerator / sums->denominator : UNKNOWN;
}

struct ratio_sums ratio_sums_put(struct result *result, const struct run_table *table,
                                 const struct ratio_row *row, const uint32_t *rows, size_t count)
{
    struct ratio_sums sums = {0};
    for (size_t i = 0; i < count; i++) {
        double over = run_number(table, row->numerator, rows[i]);
        double under =
            row->denominator == RUN_NUMBERS ? 1 : run_number(table, row->denominator, rows[i]);
        if (is_known(over) && is_known(under)) {
            sums.rows++;
            sums.numerator += over;
            sums.denominator += under;
        }
    }
    result_number(result, row->key, ratio_value(&sums),
                  column_unit(row->numerator, row->denominator));
    result_queries(result, row->key, sums.rows);
    return sums;
}

/* ---- groups ---- */

/* The group of a row, `count` for none, and the name of a group; `to` is a buffer for it. */
struct grouping {
    size_t (*group_of)(const struct run_table *table, int column, size_t row);
    const char *(*name)(const struct run_table *table, int column, size_t group, char *to);
    int column;
    size_t count;
};

/* Counting sort: rows keep their order within a group.  Group g has rows order[from[g]] .. order[from[g + 1] - 1]. */
static void sort_rows(const struct run_table *table, const struct grouping *by, uint32_t *order,
                      size_t *from)
{
    for (size_t i = 0; i < table->rows; i++) {
        size_t group = run_completed(table, i) ? by->group_of(table, by->column, i) : by->count;
        if (group < by->count)
            from[group + 2]++; /* one entry later: filling advances each start to the next */
    }
    for (size_t g = 2; g < by->count + 2; g++)
        from[g] += from[g - 1];
    for (size_t i = 0; i < table->rows; i++) {
        size_t group = run_completed(table, i) ? by->group_of(table, by->column, i) : by->count;
        if (group < by->count)
            order[from[group + 1]++] = (uint32_t)i;
    }
}

static void call_for_groups(const struct run_table *table, const struct grouping *by,
                            take_group *take, void *context)
{
    uint32_t *order = xmalloc((table->rows + 1) * sizeof *order);
    size_t *from = xcalloc(by->count + 2, sizeof *from);
    char made[LENGTH_NAME_MAX];
    sort_rows(table, by, order, from);
    for (size_t g = 0; g < by->count; g++)
        if (from[g + 1] > from[g])
            take(context, by->name(table, by->column, g, made), order + from[g],
                 from[g + 1] - from[g]);
    free(order);
    free(from);
}

static size_t word_group(const struct run_table *table, int column, size_t row)
{
    return run_word_id(table, (enum run_word)column, row);
}

static const char *word_name(const struct run_table *table, int column, size_t group, char *to)
{
    (void)to;
    return table->words[column].texts[group];
}

void groups_by_word(const struct run_table *table, enum run_word word, take_group *take,
                    void *context)
{
    const struct grouping by = {word_group, word_name, (int)word, table->words[word].count};
    call_for_groups(table, &by, take, context);
}

static size_t length_group(const struct run_table *table, int column, size_t row)
{
    double length = run_number(table, (enum run_number)column, row);
    if (!(length >= 0))
        return LENGTHS_MAX;
    if (length < LENGTH_FIRST)
        return 0;
    int exponent = ilogb(length / LENGTH_FIRST) + 1;
    return exponent < LENGTHS_MAX ? (size_t)exponent : LENGTHS_MAX - 1;
}

static const char *length_name(const struct run_table *table, int column, size_t group, char *to)
{
    (void)table, (void)column;
    if (group == 0)
        str_format(to, LENGTH_NAME_MAX, "under %d", LENGTH_FIRST);
    else
        str_format(to, LENGTH_NAME_MAX, "%.0f to %.0f", ldexp(LENGTH_FIRST, (int)group - 1),
                   ldexp(LENGTH_FIRST, (int)group) - 1);
    return to;
}

void groups_by_length(const struct run_table *table, enum run_number length, take_group *take,
                      void *context)
{
    const struct grouping by = {length_group, length_name, (int)length, LENGTHS_MAX};
    call_for_groups(table, &by, take, context);
}

bool uses_machine_energy(const struct run_table *table)
{
    return !table->numbers[RUN_BASIS_JOULES] && !table->numbers[RUN_BASIS_WATTS] &&
           table->numbers[RUN_JOULES];
}

const char *energy_basis(const struct run_table *table)
{
    if (uses_machine_energy(table))
        return "machine";
    if (!table->numbers[RUN_BASIS_JOULES] && !table->numbers[RUN_BASIS_WATTS])
        return NULL;
    if (!table->uses_board)
        return "gpu";
    return table->uses_gpu ? "mixed" : "soc";
}

const char *common_word(const struct run_table *table, enum run_word column)
{
    const char *found = NULL;
    for (size_t i = 0; i < table->rows; i++) {
        const char *word = run_word(table, column, i);
        if (!run_completed(table, i) || !is_known(run_number(table, RUN_JOULES, i)) || !word[0])
            continue;
        if (found && found != word) /* words are interned */
            return "mixed";
        found = word;
    }
    return found;
}

const char *units_of(const struct run_table *table, bool several)
{
    return run_kind_unit(table->kind, several);
}

enum err require_requests(const struct run_table *table, struct error *why)
{
    if (run_kind_has_requests(table->kind))
        return ERR_OK;
    return err_set(why, ERR_NO_DATA, "needs requests to a model: the records of `ipw %s` are %s",
                   run_kind_name(table->kind), units_of(table, true));
}

enum err no_data_error(const struct run_table *table, const char *what, struct error *why)
{
    size_t completed = run_completed_count(table);
    if (!completed)
        return err_set(why, ERR_NO_DATA, "all %zu %s failed", table->rows, units_of(table, true));
    return err_set(why, ERR_NO_DATA, "%s known for none of %zu completed %s", what, completed,
                   units_of(table, completed != 1));
}

/* ---- queries by question ---- */

struct entry {
    double index;
    uint32_t row;
};

static int by_index(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = compare_numbers(a->index, b->index);
    return order ? order : compare_numbers((double)a->row, (double)b->row);
}

static bool has_repeats(const struct run_table *table)
{
    for (size_t i = 0; table->numbers[RUN_REPEAT] && i < table->rows; i++)
        if (table->numbers[RUN_REPEAT][i] > 0)
            return true;
    return false;
}

/* A query of unknown index is a question of its own, before all others. */
static void number_rows(const struct run_table *table, struct entry *entries, uint32_t *of)
{
    uint32_t count = 0;
    for (size_t i = 0; i < table->rows; i++) {
        double index = run_number(table, RUN_INDEX, i);
        entries[i] = (struct entry){is_known(index) ? index : -1 - (double)i, (uint32_t)i};
    }
    qsort(entries, table->rows, sizeof *entries, by_index);
    for (size_t i = 0; i < table->rows; i++) {
        count += i && entries[i].index != entries[i - 1].index;
        of[entries[i].row] = count;
    }
}

void questions_of(const struct run_table *table, struct questions *out)
{
    *out = (struct questions){.repeats = has_repeats(table)};
    if (!out->repeats)
        return;
    struct entry *entries = xmalloc(table->rows * sizeof *entries);
    out->question_of = xmalloc(table->rows * sizeof *out->question_of);
    out->place = xcalloc(table->rows, sizeof *out->place);
    number_rows(table, entries, out->question_of);
    free(entries);
}

void questions_release(struct questions *questions)
{
    free(questions->question_of);
    free(questions->place);
    *questions = (struct questions){0};
}

void question_terms_init(struct question_terms *terms, size_t capacity, size_t width)
{
    *terms = (struct question_terms){.rows = xmalloc((capacity + 1) * sizeof *terms->rows),
                                     .width = width};
    bool has_all = terms->rows != NULL;
    for (size_t i = 0; i < width; i++) {
        terms->columns[i] = xmalloc((capacity + 1) * sizeof **terms->columns);
        has_all = has_all && terms->columns[i];
    }
}

void question_terms_add(struct question_terms *terms, size_t row, const double *added)
{
    for (size_t i = 0; i < terms->width; i++)
        terms->columns[i][terms->count] = added[i];
    terms->rows[terms->count] = (uint32_t)row;
    terms->queries = ++terms->count;
}

void question_terms_close(struct question_terms *terms, struct questions *questions)
{
    size_t kept = 0;
    for (size_t i = 0; questions->repeats && i < terms->queries; i++) {
        uint32_t *place = &questions->place[questions->question_of[terms->rows[i]]];
        bool again = *place != 0;
        if (!again)
            *place = (uint32_t)++kept;
        for (size_t c = 0; c < terms->width; c++)
            terms->columns[c][*place - 1] =
                terms->columns[c][i] + (again ? terms->columns[c][*place - 1] : 0);
    }
    for (size_t i = 0; questions->repeats && i < terms->queries; i++)
        questions->place[questions->question_of[terms->rows[i]]] = 0;
    terms->count = questions->repeats ? kept : terms->queries;
}

void question_terms_clear(struct question_terms *terms)
{
    terms->queries = terms->count = 0;
}

void question_terms_release(struct question_terms *terms)
{
    for (size_t i = 0; i < terms->width; i++)
        free(terms->columns[i]);
    free(terms->rows);
    *terms = (struct question_terms){0};
}

/* ---- answers ---- */

void tally_row(struct intelligence_tally *tally, const struct run_table *table, size_t row)
{
    bool completed = run_completed(table, row);
    int correct = run_flag(table, RUN_CORRECT, row), unread = run_flag(table, RUN_UNREAD, row);
    struct intelligence_query query = {
        .outcome = query_outcome_of(completed, correct, unread),
        .hides_unread = completed && correct >= 0 && unread < 0,
        .joules = run_number(table, RUN_JOULES, row),
        .active_joules = run_number(table, RUN_ACTIVE_JOULES, row),
        .seconds = run_number(table, RUN_LATENCY, row),
        .gpu_joules = run_number(table, RUN_BASIS_JOULES, row),
        .gpu_watts = run_number(table, RUN_BASIS_WATTS, row),
    };
    intelligence_add(tally, &query);
}

void answers_of(const struct run_table *table, struct intelligence *out)
{
    struct intelligence_tally tally = {0};
    for (size_t i = 0; i < table->rows; i++)
        if (run_flag(table, RUN_CANCELED, i) != 1)
            tally_row(&tally, table, i);
    intelligence_of(&tally, &(struct busy_energy){UNKNOWN, UNKNOWN, UNKNOWN}, UNKNOWN, out);
}
