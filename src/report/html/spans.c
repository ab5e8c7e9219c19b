#include "report/html/spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rundir/run_table.h"
#include "core/grow.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "rundir/journal.h"

const char *const SPAN_KIND_NAMES[SPAN_KINDS] = {
    [SPAN_REQUEST] = "request",
    [SPAN_FAILED_ATTEMPT] = "failed_attempt",
    [SPAN_JUDGE] = "judge",
};

/* ---- from the name of a query to its row ---- */

struct named_row {
    uint32_t index, repeat, row;
};

struct reading {
    const struct run_table *table;
    struct named_row *rows; /* in order */
    struct spans *spans;
};

static int compare_names(const void *left, const void *right)
{
    const struct named_row *a = left, *b = right;
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    return a->repeat < b->repeat ? -1 : a->repeat > b->repeat;
}

static uint32_t whole(double value)
{
    return value >= 0 && value < UINT32_MAX ? (uint32_t)value : 0;
}

static struct named_row *name_rows(const struct run_table *table)
{
    struct named_row *rows = malloc((table->rows + 1) * sizeof *rows);
    for (size_t i = 0; rows && i < table->rows; i++)
        rows[i] = (struct named_row){whole(run_number(table, RUN_INDEX, i)),
                                     whole(run_number(table, RUN_REPEAT, i)), (uint32_t)i};
    if (rows)
        qsort(rows, table->rows, sizeof *rows, compare_names);
    return rows;
}

/* "q000012", "q000012.r1", as run_key writes them. */
static uint32_t row_of(const struct reading *reading, const char *key, double start)
{
    struct named_row wanted = {0};
    char *end;
    if (!key || key[0] != 'q')
        return NO_ROW;
    wanted.index = (uint32_t)strtoul(key + 1, &end, 10);
    if (str_starts(end, ".r"))
        wanted.repeat = (uint32_t)strtoul(end + 2, NULL, 10);
    const struct named_row *found =
        bsearch(&wanted, reading->rows, reading->table->rows, sizeof *reading->rows, compare_names);
    if (!found)
        return NO_ROW;
    double of_row = run_number(reading->table, RUN_START, found->row);
    return is_known(of_row) && of_row != start ? NO_ROW : found->row;
}

/* ---- lines ---- */

static enum err take_line(void *context, const struct jv *line)
{
    struct reading *reading = context;
    struct spans *spans = reading->spans;
    const char *kind = jv_text(jv_get(line, "span"));
    struct span span = {.from = jv_number(jv_get(line, "from_s")),
                        .to = jv_number(jv_get(line, "to_s"))};
    double start = jv_number(jv_get(line, "start"));
    while (kind && span.kind < SPAN_KINDS && strcmp(kind, SPAN_KIND_NAMES[span.kind]) != 0)
        span.kind++;
    if (!kind || span.kind == SPAN_KINDS || !(span.to >= span.from))
        return ERR_OK; /* only what has ended is drawn */
    start = start >= 1 && start < UINT16_MAX ? start : 1;
    span.start = (uint16_t)start;
    span.row = row_of(reading, jv_text(jv_get(line, "key")), start);
    struct span *items = grow(spans->items, &spans->capacity, spans->count, sizeof *items);
    if (!items)
        return ERR_NO_MEMORY;
    spans->items = items;
    items[spans->count++] = span;
    spans->starts = span.start > spans->starts ? span.start : spans->starts;
    return ERR_OK;
}

/* ---- lanes ---- */

static int compare_spans(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

enum { LANES_MOST = 512 };

/* The first line that is free; what finds none is laid over others. */
static void lay_lanes(struct spans *spans)
{
    double free_at[LANES_MOST];
    size_t used = 0;
    unsigned start = 0;
    qsort(spans->items, spans->count, sizeof *spans->items, compare_spans);
    for (size_t i = 0; i < spans->count; i++) {
        struct span *span = &spans->items[i];
        size_t lane = 0;
        if (span->start != start)
            used = 0;
        start = span->start;
        while (lane < used && free_at[lane] > span->from)
            lane++;
        lane = lane < LANES_MOST ? lane : i % LANES_MOST;
        used = lane >= used ? lane + 1 : used;
        free_at[lane] = span->to;
        span->lane = (uint16_t)lane;
    }
}

enum err spans_read(const char *path, const struct run_table *table, struct spans *out,
                    struct error *why)
{
    *out = (struct spans){0};
    struct reading reading = {table, name_rows(table), out};
    if (!reading.rows)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    enum err err = journal_read(path, take_line, &reading, &out->damaged, why);
    free(reading.rows);
    if (err)
        spans_release(out);
    else if (out->count)
        lay_lanes(out);
    return err;
}

void spans_release(struct spans *spans)
{
    free(spans->items);
    *spans = (struct spans){0};
}
