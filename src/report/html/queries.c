/* Every query of a run as quantized columns, for the table of queries and the requests of the timeline, with excerpts
 * of some.  Of an agent's queries, the most expensive ones with their spans,
 * for the icicle view: as many as fit on a page. */
#include "report/html/sections.h"

#include <stdint.h>
#include <stdlib.h>

#include "core/json.h"
#include "core/json_bind.h"
#include "core/json_field.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "core/text.h"
#include "rundir/run_table.h"
#include "rundir/spans.h"
#include "rundir/traces.h"

/* ---- columns of queries ---- */

/* A quantized figure shows four digits; a time in a long run needs more. */
enum { FIGURE_BYTES = 2, TIME_BYTES = 3 };

/* ---- selecting rows ---- */

struct listing {
    const struct run_table *table;
    const struct spans *spans;
    uint32_t *rows; /* for each span the row of its query, or NO_ROW */
    size_t stride, count;
    double *values; /* buffer with the capacity of a column */
};

static size_t row_at(const struct listing *listing, size_t place)
{
    return place * listing->stride;
}

/* ---- from index and repeat of a span to the row of its query ---- */

#define NO_ROW UINT32_MAX

struct named_row {
    uint32_t index, repeat, row;
};

static int compare_names(const void *left, const void *right)
{
    const struct named_row *a = left, *b = right;
    int order = compare_numbers(a->index, b->index);
    return order ? order : compare_numbers(a->repeat, b->repeat);
}

static uint32_t as_index(double value)
{
    return value >= 0 && value < UINT32_MAX ? (uint32_t)value : 0;
}

static struct named_row *name_rows(const struct run_table *table)
{
    struct named_row *names = xmalloc((table->rows + 1) * sizeof *names);
    for (size_t i = 0; i < table->rows; i++)
        names[i] = (struct named_row){as_index(run_number(table, RUN_INDEX, i)),
                                      as_index(run_number(table, RUN_REPEAT, i)), (uint32_t)i};
    qsort(names, table->rows, sizeof *names, compare_names);
    return names;
}

/* A query repeated by a later start has its row from there. */
static uint32_t row_of(const struct run_table *table, const struct named_row *names,
                       const struct span *span)
{
    struct named_row wanted = {span->index, span->repeat, 0};
    const struct named_row *found =
        span->index == SPAN_NO_QUERY
            ? NULL
            : bsearch(&wanted, names, table->rows, sizeof *names, compare_names);
    if (!found)
        return NO_ROW;
    double start = run_number(table, RUN_START, found->row);
    return is_known(start) && start != span->start ? NO_ROW : found->row;
}

static void find_rows(struct listing *listing)
{
    const struct spans *spans = listing->spans;
    struct named_row *names = name_rows(listing->table);
    listing->rows = xmalloc((spans->count + 1) * sizeof *listing->rows);
    for (size_t i = 0; i < spans->count; i++)
        listing->rows[i] = row_of(listing->table, names, &spans->items[i]);
    free(names);
}

/* ---- columns ---- */

static void put_number(struct json *json, const struct listing *listing, const char *key,
                       enum run_number column)
{
    for (size_t i = 0; i < listing->count; i++)
        listing->values[i] = run_number(listing->table, column, row_at(listing, i));
    column_put(json, key, listing->values, listing->count, FIGURE_BYTES);
}

static void put_subject(struct json *json, const struct listing *listing)
{
    const struct run_words *words = &listing->table->words[RUN_SUBJECT];
    json_array(json, "subjects");
    for (uint32_t i = 0; i < words->count; i++)
        json_string(json, NULL, words->texts[i]);
    json_array_end(json);
    for (size_t i = 0; i < listing->count; i++)
        listing->values[i] = run_word_id(listing->table, RUN_SUBJECT, row_at(listing, i));
    column_put(json, "subject", listing->values, listing->count, FIGURE_BYTES);
}

static double flags_of(const struct run_table *table, size_t row)
{
    int right = run_flag(table, RUN_CORRECT, row);
    return (right == 1 ? 1 : 0) + (right == 0 ? 2 : 0) +
           (run_flag(table, RUN_FAILED, row) == 1 ? 4 : 0) +
           (run_flag(table, RUN_LOW_CONFIDENCE, row) == 1 ? 8 : 0) +
           (run_flag(table, RUN_CANCELED, row) == 1 ? 16 : 0) +
           (run_flag(table, RUN_UNREAD, row) == 1 ? 32 : 0);
}

static void put_flags(struct json *json, const struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        listing->values[i] = flags_of(listing->table, row_at(listing, i));
    column_put(json, "flags", listing->values, listing->count, FIGURE_BYTES);
}

/* For each listed query its last request: its start, or its lane. */
static void put_place(struct json *json, const struct listing *listing, const char *key, bool lane)
{
    for (size_t i = 0; i < listing->count; i++)
        listing->values[i] = UNKNOWN;
    for (size_t i = 0; i < listing->spans->count; i++) {
        const struct span *span = &listing->spans->items[i];
        uint32_t row = listing->rows[i];
        if (span->kind == SPAN_REQUEST && row != NO_ROW && row % listing->stride == 0)
            listing->values[row / listing->stride] = lane ? span->lane : span->from;
    }
    column_put_even(json, key, listing->values, listing->count, TIME_BYTES);
}

static void put_columns(struct json *json, const struct listing *listing)
{
    static const struct {
        const char *key;
        enum run_number column;
    } NUMBERS[] = {
        {"index", RUN_INDEX},
        {"repeat", RUN_REPEAT},
        {"start", RUN_START},
        {"joules", RUN_JOULES},
        {"plus_minus", RUN_PLUS_MINUS},
        {"latency_s", RUN_LATENCY},
        {"ttft_s", RUN_TTFT},
        {"input_tokens", RUN_INPUT_TOKENS},
        {"output_tokens", RUN_OUTPUT_TOKENS},
    };
    json_object(json, "queries");
    json_integer(json, "rows", (int64_t)listing->table->rows);
    json_integer(json, "listed", (int64_t)listing->count);
    for (size_t i = 0; i < COUNT_OF(NUMBERS); i++)
        put_number(json, listing, NUMBERS[i].key, NUMBERS[i].column);
    put_subject(json, listing);
    put_flags(json, listing);
    put_place(json, listing, "from_s", false);
    put_place(json, listing, "lane", true);
    json_object_end(json);
}

/* ---- requests other than a query's last ---- */

enum other_column { OTHER_KIND, OTHER_ROW, OTHER_FROM, OTHER_LENGTH, OTHER_LANE, OTHER_START };

static double other_value(const struct listing *listing, size_t i, enum other_column column)
{
    const struct span *span = &listing->spans->items[i];
    uint32_t row = listing->rows[i];
    switch (column) {
    case OTHER_KIND:
        return span->kind;
    case OTHER_ROW:
        return row == NO_ROW || row % listing->stride ? UNKNOWN
                                                      : (double)row / (double)listing->stride;
    case OTHER_FROM:
        return span->from;
    case OTHER_LENGTH:
        return span->to - span->from;
    case OTHER_LANE:
        return span->lane;
    case OTHER_START:
        return span->start;
    }
    return UNKNOWN;
}

/* As many as fit into the column. */
static void put_others(struct json *json, const struct listing *listing)
{
    static const char *const KEYS[] = {"kind", "row", "from_s", "length_s", "lane", "start"};
    json_object(json, "others");
    json_array(json, "kinds");
    for (size_t i = 0; i < SPAN_KINDS; i++)
        json_string(json, NULL, span_kind_name((enum span_kind)i));
    json_array_end(json);
    for (unsigned column = OTHER_KIND; column <= OTHER_START; column++) {
        size_t count = 0;
        for (size_t i = 0; i < listing->spans->count && count < listing->count; i++)
            if (listing->spans->items[i].kind != SPAN_REQUEST)
                listing->values[count++] = other_value(listing, i, (enum other_column)column);
        if (column == OTHER_KIND)
            json_integer(json, "count", (int64_t)count);
        column_put_even(json, KEYS[column], listing->values, count,
                        column == OTHER_FROM ? TIME_BYTES : FIGURE_BYTES);
    }
    json_object_end(json);
}

/* Stride of the listed queries. */
static size_t queries_stride(const struct run_table *table, size_t max)
{
    size_t stride = 1;
    while (table->rows / stride > max)
        stride++;
    return stride;
}

void queries_put(struct json *json, const struct run_table *table, const struct spans *spans,
                 size_t max)
{
    struct listing listing = {.table = table, .spans = spans, .stride = queries_stride(table, max)};
    listing.count = (table->rows + listing.stride - 1) / listing.stride;
    listing.values = xmalloc((listing.count + 1) * sizeof *listing.values);
    find_rows(&listing);
    put_columns(json, &listing);
    put_others(json, &listing);
    free(listing.rows);
    free(listing.values);
}

/* ---- excerpts ---- */

static const struct json_field EXCERPT_FIELDS[] = {
    BIND_STRING(run_excerpt, problem, "problem"),
    BIND_STRING(run_excerpt, expected, "expected"),
    BIND_STRING(run_excerpt, answer, "answer"),
    {0},
};

void excerpts_put(struct json *json, const struct run_table *table, size_t max_listed)
{
    const struct run_excerpts *excerpts = &table->excerpts;
    size_t stride = queries_stride(table, max_listed);
    json_array(json, "excerpts");
    for (size_t i = 0; i < excerpts->count; i++) {
        const struct run_excerpt *excerpt = &excerpts->items[i];
        size_t row = i * excerpts->stride;
        if (row % stride || (!excerpt->problem && !excerpt->answer))
            continue;
        json_object(json, NULL);
        json_integer(json, "at", (int64_t)(row / stride));
        json_fields_write(json, EXCERPT_FIELDS, excerpt);
        json_object_end(json);
    }
    json_array_end(json);
}

/* ---- queries of an agent ---- */

/* A span takes about 150 bytes of the page. */
enum { QUERIES_MAX = 100, SPANS_MAX = 10000, QUERY_SPANS_MAX = 2000 };

static double cost_of(const struct query_trace *trace)
{
    return known_or(trace->ipw.energy_joules, -1);
}

static int by_cost(const void *a, const void *b)
{
    const struct query_trace *x = *(const struct query_trace *const *)a;
    const struct query_trace *y = *(const struct query_trace *const *)b;
    double left = cost_of(x);
    double right = cost_of(y);
    return left != right ? (left < right) - (left > right) : (x > y) - (x < y);
}

/* When a field is on the page. */
enum when { ALWAYS, IF_KNOWN, OF_A_GAP };

struct page_field {
    struct json_field at;
    enum when when;
};

#define SPAN_FIELD(type, member, when) {BIND_##type(span_trace, member, #member), when}
static const struct page_field SPAN_FIELDS[] = {
    SPAN_FIELD(TEXT, type, ALWAYS),
    SPAN_FIELD(TEXT, name, IF_KNOWN),
    SPAN_FIELD(NUMBER, parent, IF_KNOWN),
    SPAN_FIELD(NUMBER, turn, IF_KNOWN),
    SPAN_FIELD(NUMBER, from_s, ALWAYS),
    SPAN_FIELD(NUMBER, to_s, ALWAYS),
    SPAN_FIELD(NUMBER, joules, IF_KNOWN),
    SPAN_FIELD(NUMBER, plus_minus, IF_KNOWN),
    SPAN_FIELD(NUMBER, idle_joules, IF_KNOWN),
    SPAN_FIELD(NUMBER, own_joules, OF_A_GAP),
    SPAN_FIELD(NUMBER, own_plus_minus, OF_A_GAP),
    SPAN_FIELD(NUMBER, gpu_joules, IF_KNOWN),
    SPAN_FIELD(NUMBER, cpu_joules, IF_KNOWN),
    SPAN_FIELD(NUMBER, input_tokens, IF_KNOWN),
    SPAN_FIELD(NUMBER, output_tokens, IF_KNOWN),
    SPAN_FIELD(TEXT, error, IF_KNOWN),
    {{0}, ALWAYS},
};

#define QUERY_FIELD(key, type, member) {BIND_##type(query_trace, member, key), IF_KNOWN}
static const struct page_field QUERY_FIELDS[] = {
    QUERY_FIELD("joules", NUMBER, ipw.energy_joules),
    QUERY_FIELD("plus_minus", NUMBER, ipw.plus_minus),
    QUERY_FIELD("seconds", NUMBER, total_wall_clock_s),
    QUERY_FIELD("turns", NUMBER, num_turns),
    QUERY_FIELD("tool_calls", NUMBER, total_tool_calls),
    QUERY_FIELD("problems", TEXT, ipw.event_problems),
    {{0}, ALWAYS},
};

/* has_gaps: an agent or a turn, whose own energy is that of its gaps. */
static void put_fields(struct json *json, const struct page_field *field, const void *object,
                       bool has_gaps)
{
    struct json_field_writer writer = {.json = json};
    for (; field->at.path; field++) {
        bool is_shown = field->when == ALWAYS || json_field_is_known(&field->at, object);
        if (is_shown && (field->when != OF_A_GAP || has_gaps))
            json_field_write(&writer, &field->at, object);
    }
    json_field_writer_end(&writer);
}

static void put_span(struct json *json, const struct span_trace *span)
{
    bool has_gaps = str_equal(span->type, "agent") || str_equal(span->type, "turn");
    json_object(json, NULL);
    put_fields(json, SPAN_FIELDS, span, has_gaps);
    json_object_end(json);
}

static void put_query(struct json *json, const struct query_trace *trace)
{
    size_t listed = trace->span_count < QUERY_SPANS_MAX ? trace->span_count : QUERY_SPANS_MAX;
    json_object(json, NULL);
    json_string(json, "key", trace->ipw.key ? trace->ipw.key : trace->query_id);
    put_fields(json, QUERY_FIELDS, trace, false);
    json_integer(json, "left_out", (int64_t)(trace->span_count - listed));
    json_array(json, "spans");
    for (size_t i = 0; i < listed; i++)
        put_span(json, &trace->spans[i]);
    json_array_end(json);
    json_object_end(json);
}

static void put_queries(struct json *json, const struct traces *traces)
{
    const struct query_trace **order = xcalloc(traces->count + 1, sizeof *order);
    size_t count = 0, spans = 0;
    for (size_t i = 0; i < traces->count; i++)
        if (traces->items[i].span_count)
            order[count++] = &traces->items[i];
    if (count)
        qsort((void *)order, count, sizeof *order, by_cost);
    json_array(json, "queries");
    for (size_t i = 0; i < count && i < QUERIES_MAX && spans < SPANS_MAX; i++) {
        put_query(json, order[i]);
        spans += order[i]->span_count;
    }
    json_array_end(json);
    free((void *)order);
}

enum err agent_put(struct json *json, const char *directory, struct error *why)
{
    struct traces traces;
    if (!traces_exist(directory)) {
        json_null(json, "agent");
        return ERR_OK;
    }
    enum err err = traces_load(directory, &traces, why);
    if (err)
        return err;
    json_object(json, "agent");
    json_integer(json, "count", (int64_t)traces.count);
    put_queries(json, &traces);
    json_object_end(json);
    traces_release(&traces);
    return err;
}
