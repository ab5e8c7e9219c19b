/* Values and groups of a run's table, for analyses and plots: known values of a column, ratios, spreads, groups by
 * subject or length, and queries grouped by question, whose repeats are not independent. */
#include "analysis/columns.h"

#include <math.h>
#include <stdlib.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "metrics/repeats.h"
#include "stats/quantile.h"

enum { LENGTH_FIRST = 16, LENGTHS_MOST = 40, LENGTH_NAME_MAX = 48 };

double row_value(const struct run_table *table, enum run_number numerator,
                 enum run_number denominator, size_t row)
{
    if (!run_completed(table, row))
        return UNKNOWN;
    double over = run_number(table, numerator, row);
    return denominator == RUN_NUMBERS ? over : ratio(over, run_number(table, denominator, row));
}

enum err known_values(const struct run_table *table, enum run_number numerator,
                      enum run_number denominator, double **out, size_t *count)
{
    *count = 0;
    *out = malloc((table->rows + 1) * sizeof **out);
    if (!*out)
        return ERR_NO_MEMORY;
    for (size_t i = 0; table->numbers[numerator] && i < table->rows; i++) {
        (*out)[*count] = row_value(table, numerator, denominator, i);
        *count += is_known((*out)[*count]);
    }
    return ERR_OK;
}

struct extent {
    double mean, std, min, max;
};

/* In two passes over values that are all known: half the time of a division for each. */
static struct extent extent_of(const double *values, size_t count)
{
    struct extent extent = {0, 0, values[0], values[0]};
    for (size_t i = 0; i < count; i++) {
        extent.mean += values[i];
        extent.min = values[i] < extent.min ? values[i] : extent.min;
        extent.max = values[i] > extent.max ? values[i] : extent.max;
    }
    extent.mean /= (double)count;
    for (size_t i = 0; i < count; i++)
        extent.std += (values[i] - extent.mean) * (values[i] - extent.mean);
    extent.std = count > 1 ? sqrt(extent.std / (double)(count - 1)) : UNKNOWN;
    return extent;
}

void put_spread(struct json *json, const char *key, double *values, size_t count)
{
    enum { QUANTILES = 4 };
    static const char *const KEYS[QUANTILES] = {"p50", "p90", "p95", "p99"};
    static const double PS[QUANTILES] = {0.5, 0.9, 0.95, 0.99};
    double found[QUANTILES];
    if (!count)
        return;
    struct extent extent = extent_of(values, count);
    select_quantiles(values, count, PS, QUANTILES, found);
    json_object(json, key);
    json_integer(json, "count", (int64_t)count);
    json_number(json, "mean", extent.mean);
    json_number(json, "std", extent.std);
    json_number(json, "min", extent.min);
    for (size_t i = 0; i < QUANTILES; i++)
        json_number(json, KEYS[i], found[i]);
    json_number(json, "max", extent.max);
    json_object_end(json);
}

enum err put_column_spread(struct json *json, const char *key, const struct run_table *table,
                           enum run_number numerator, enum run_number denominator)
{
    double *values;
    size_t count;
    enum err err = known_values(table, numerator, denominator, &values, &count);
    if (!err)
        put_spread(json, key, values, count);
    free(values);
    return err;
}

void put_interval(struct json *json, const char *key, double low, double high)
{
    if (!is_known(low) || !is_known(high)) {
        json_null(json, key);
        return;
    }
    json_array(json, key);
    json_number(json, NULL, low);
    json_number(json, NULL, high);
    json_array_end(json);
}

double ratio_value(const struct ratio_sums *sums)
{
    return sums->rows && sums->denominator > 0 ? sums->numerator / sums->denominator : UNKNOWN;
}

/* ---- groups ---- */

/* The group of a row, `count` for none, and the name of a group; `to` is a buffer for it. */
struct grouping {
    size_t (*of)(const struct run_table *table, int column, size_t row);
    const char *(*name)(const struct run_table *table, int column, size_t group, char *to);
    int column;
    size_t count;
};

/* Counting sort: rows keep their order within a group.  Group g has rows order[from[g]] .. order[from[g + 1] - 1]. */
static void sort_rows(const struct run_table *table, const struct grouping *by, uint32_t *order,
                      size_t *from)
{
    for (size_t i = 0; i < table->rows; i++) {
        size_t group = run_completed(table, i) ? by->of(table, by->column, i) : by->count;
        if (group < by->count)
            from[group + 2]++; /* one too far: filling moves each start to the next */
    }
    for (size_t g = 2; g < by->count + 2; g++)
        from[g] += from[g - 1];
    for (size_t i = 0; i < table->rows; i++) {
        size_t group = run_completed(table, i) ? by->of(table, by->column, i) : by->count;
        if (group < by->count)
            order[from[group + 1]++] = (uint32_t)i;
    }
}

static enum err give_groups(const struct run_table *table, const struct grouping *by,
                            take_group *take, void *context)
{
    uint32_t *order = malloc((table->rows + 1) * sizeof *order);
    size_t *from = calloc(by->count + 2, sizeof *from);
    char made[LENGTH_NAME_MAX];
    enum err err = order && from ? ERR_OK : ERR_NO_MEMORY;
    if (!err)
        sort_rows(table, by, order, from);
    for (size_t g = 0; !err && g < by->count; g++)
        if (from[g + 1] > from[g])
            err = take(context, by->name(table, by->column, g, made), order + from[g],
                       from[g + 1] - from[g]);
    free(order);
    free(from);
    return err;
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

enum err groups_by_word(const struct run_table *table, enum run_word word, take_group *take,
                        void *context)
{
    const struct grouping by = {word_group, word_name, (int)word, table->words[word].count};
    return give_groups(table, &by, take, context);
}

static size_t length_group(const struct run_table *table, int column, size_t row)
{
    double length = run_number(table, (enum run_number)column, row);
    if (!(length >= 0))
        return LENGTHS_MOST;
    if (length < LENGTH_FIRST)
        return 0;
    int exponent = ilogb(length / LENGTH_FIRST) + 1;
    return exponent < LENGTHS_MOST ? (size_t)exponent : LENGTHS_MOST - 1;
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

enum err groups_by_length(const struct run_table *table, enum run_number length, take_group *take,
                          void *context)
{
    const struct grouping by = {length_group, length_name, (int)length, LENGTHS_MOST};
    return give_groups(table, &by, take, context);
}

bool is_by_machine(const struct run_table *table)
{
    return !table->numbers[RUN_BASIS_JOULES] && !table->numbers[RUN_BASIS_WATTS] &&
           table->numbers[RUN_JOULES];
}

const char *energy_basis(const struct run_table *table)
{
    if (is_by_machine(table))
        return "machine";
    if (!table->numbers[RUN_BASIS_JOULES] && !table->numbers[RUN_BASIS_WATTS])
        return NULL;
    return !table->uses_board ? "gpu" : table->uses_gpu ? "mixed" : "soc";
}

const char *common_word(const struct run_table *table, enum run_word column)
{
    const char *found = NULL;
    for (size_t i = 0; i < table->rows; i++) {
        const char *word = run_word(table, column, i);
        if (!run_completed(table, i) || !is_known(run_number(table, RUN_JOULES, i)) || !word[0])
            continue;
        if (found && found != word) /* words are kept once */
            return "mixed";
        found = word;
    }
    return found;
}

enum err lacks(const struct run_table *table, const char *what, struct error *why)
{
    size_t completed = table->rows - table->failed;
    if (!completed)
        return err_set(why, ERR_NO_DATA, "all %zu queries failed", table->rows);
    return err_set(why, ERR_NO_DATA, "%s known for none of %zu completed quer%s", what, completed,
                   completed == 1 ? "y" : "ies");
}

/* ---- queries by question ---- */

struct entry {
    double index;
    uint32_t row;
};

static int by_index(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static bool has_repeats(const struct run_table *table)
{
    for (size_t i = 0; table->numbers[RUN_REPEAT] && i < table->rows; i++)
        if (table->numbers[RUN_REPEAT][i] > 0)
            return true;
    return false;
}

/* A query whose place is not known is a question of its own, below all others. */
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

enum err questions_of(const struct run_table *table, struct questions *out)
{
    *out = (struct questions){.repeats = has_repeats(table)};
    if (!out->repeats)
        return ERR_OK;
    struct entry *entries = malloc(table->rows * sizeof *entries);
    out->of = malloc(table->rows * sizeof *out->of);
    out->place = calloc(table->rows, sizeof *out->place);
    enum err err = entries && out->of && out->place ? ERR_OK : ERR_NO_MEMORY;
    if (!err)
        number_rows(table, entries, out->of);
    free(entries);
    if (err)
        questions_release(out);
    return err;
}

void questions_release(struct questions *questions)
{
    free(questions->of);
    free(questions->place);
    *questions = (struct questions){0};
}

size_t questions_add_up(struct questions *questions, const uint32_t *rows, size_t count,
                        double *const *columns, size_t column_count)
{
    size_t kept = 0;
    if (!questions->repeats)
        return count;
    for (size_t i = 0; i < count; i++) {
        uint32_t *place = &questions->place[questions->of[rows[i]]];
        bool again = *place != 0;
        if (!again)
            *place = (uint32_t)++kept;
        for (size_t c = 0; c < column_count; c++)
            columns[c][*place - 1] = columns[c][i] + (again ? columns[c][*place - 1] : 0);
    }
    for (size_t i = 0; i < count; i++)
        questions->place[questions->of[rows[i]]] = 0;
    return kept;
}

void question_terms_of(const struct run_table *table, size_t row, double *terms)
{
    int verdict = run_flag(table, RUN_CORRECT, row);
    double joules = run_number(table, RUN_JOULES, row);
    terms[0] = verdict == 1;
    terms[1] = verdict >= 0;
    terms[2] = is_known(joules) ? joules : 0;
    terms[3] = is_known(joules);
}

enum err question_repeats(const struct questions *questions, double *const *columns, size_t count,
                          struct repeats *out)
{
    *out = (struct repeats){0};
    if (!questions->repeats || !count)
        return ERR_OK;
    struct question *all = malloc(count * sizeof *all);
    if (!all)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        all[i] = (struct question){(double)i, columns[0][i], columns[1][i], columns[2][i],
                                   columns[3][i]};
    *out = repeats_of(all, count);
    free(all);
    return ERR_OK;
}
