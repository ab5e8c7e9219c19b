/* Rows of the run index where SQLite is missing: an array sorted by id, which each query scans and sorts.  It keeps no
 * other order: ten thousand rows take milliseconds. */
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "rundir/run_index_table.h"

struct array_table {
    struct row_table table;
    struct run_row **rows;
    size_t count, capacity;
    uint64_t writes;
};

static struct array_table *array_table(struct row_table *table)
{
    return (struct array_table *)table;
}

/* ---- writing ---- */

/* The place of a row, or where it belongs. */
static size_t find_place(const struct array_table *table, const char *id, bool *found)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(table->rows[middle]->id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < table->count && str_equal(table->rows[low]->id, id);
    return low;
}

static void move_rows(struct array_table *table, size_t to, size_t from)
{
    memmove(&table->rows[to], &table->rows[from], (table->count - from) * sizeof *table->rows);
    table->count = table->count + to - from;
}

static void change_row(struct array_table *table, struct run_change *change)
{
    bool found;
    size_t place = find_place(table, change->row->id, &found);
    if (found)
        free(table->rows[place]);
    if (change->is_deleted) {
        if (found)
            move_rows(table, place, place + 1);
        return;
    }
    if (!found) {
        XGROW(table->rows, table->count, table->capacity);
        move_rows(table, place + 1, place);
    }
    table->rows[place] = change->row;
    change->row = NULL;
}

static enum err array_write(struct row_table *base, struct run_change *changes, size_t count,
                            struct error *why)
{
    struct array_table *table = array_table(base);
    (void)why;
    for (size_t i = 0; i < count; i++)
        change_row(table, &changes[i]);
    table->writes++;
    return ERR_OK;
}

static enum err array_known(struct row_table *base, run_take_row *take, void *context,
                            struct error *why)
{
    const struct array_table *table = array_table(base);
    (void)why;
    for (size_t i = 0; i < table->count; i++)
        take(context, table->rows[i]);
    return ERR_OK;
}

/* ---- asking ---- */

static bool is_found(const struct run_row *row, const char *search)
{
    for (size_t i = 0; i < RUN_SEARCHED_COUNT; i++) {
        const char *text = run_row_text(row, RUN_SEARCHED[i]);
        if (text && str_contains_nocase(text, search))
            return true;
    }
    return false;
}

static bool is_wanted(const struct run_row *row, const struct run_query *query)
{
    if (query->id ? !str_equal(row->id, query->id) : row->is_attempt && !query->with_attempts)
        return false;
    for (size_t i = 0; i < ROW_COLUMNS; i++) {
        const char *wanted = query->equal[i];
        const char *text = wanted ? run_row_text(row, (enum run_column)i) : NULL;
        if (wanted && (!text || !str_equal(text, wanted)))
            return false;
    }
    return !query->search || is_found(row, query->search);
}

/* A row, and how it is compared: qsort passes no context. */
struct sorted_row {
    const struct run_row *row;
    size_t place;
    bool is_descending;
};

static int compare_sorted(const void *left, const void *right)
{
    const struct sorted_row *a = left, *b = right;
    return run_row_compare(a->row, b->row, a->place, a->is_descending);
}

static enum err array_select(struct row_table *base, const struct run_query *query,
                             run_take_row *take, void *context, struct error *why)
{
    const struct array_table *table = array_table(base);
    size_t place = run_row_place(query->sort), count = 0;
    struct sorted_row *sorted = xcalloc(table->count + 1, sizeof *sorted);
    (void)why;
    for (size_t i = 0; i < table->count; i++) {
        const struct run_row *row = table->rows[i];
        bool is_behind =
            !query->after || run_row_compare(row, query->after, place, query->is_descending) > 0;
        if (is_behind && is_wanted(row, query))
            sorted[count++] = (struct sorted_row){row, place, query->is_descending};
    }
    qsort(sorted, count, sizeof *sorted, compare_sorted);
    for (size_t i = 0; i < count && (!query->limit || i < query->limit); i++)
        take(context, sorted[i].row);
    free(sorted);
    return ERR_OK;
}

static enum err array_count(struct row_table *base, const struct run_query *query, size_t *out,
                            struct error *why)
{
    const struct array_table *table = array_table(base);
    (void)why;
    *out = 0;
    for (size_t i = 0; i < table->count; i++)
        *out += is_wanted(table->rows[i], query);
    return ERR_OK;
}

/* Texts as they are found in order. */
struct distinct {
    enum run_column column;
    const char *last;
    size_t left;
    void (*take)(void *context, const char *text);
    void *context;
};

static void take_distinct(void *context, const struct run_row *row)
{
    struct distinct *distinct = context;
    const char *text = run_row_text(row, distinct->column);
    if (!text || !distinct->left || (distinct->last && str_equal(text, distinct->last)))
        return;
    distinct->take(distinct->context, distinct->last = text);
    distinct->left--;
}

static enum err array_texts(struct row_table *base, enum run_column column, size_t limit,
                            void (*take)(void *context, const char *text), void *context,
                            struct error *why)
{
    struct distinct distinct = {column, NULL, limit, take, context};
    return array_select(base, &(struct run_query){.sort = column}, take_distinct, &distinct, why);
}

static uint64_t array_stamp(struct row_table *base)
{
    return array_table(base)->writes;
}

static void array_close(struct row_table *base)
{
    struct array_table *table = array_table(base);
    for (size_t i = 0; i < table->count; i++)
        free(table->rows[i]);
    free(table->rows);
    free(table);
}

struct row_table *row_table_open_array(void)
{
    static const struct row_table_ops OPS = {
        .known = array_known,
        .write = array_write,
        .select = array_select,
        .count = array_count,
        .texts = array_texts,
        .stamp = array_stamp,
        .close = array_close,
    };
    struct array_table *table = XNEW(table);
    table->table.ops = &OPS;
    return &table->table;
}
