#include "report/html/queries.h"

#include <stdint.h>
#include <stdlib.h>

#include "rundir/run_table.h"
#include "core/json.h"
#include "core/units.h"
#include "report/html/column.h"
#include "report/html/spans.h"

/* A quantised figure shows four digits; a time of day in a long run needs more. */
enum { FIGURE_BYTES = 2, TIME_BYTES = 3 };

/* ---- which rows ---- */

struct listing {
    const struct run_table *table;
    const struct spans *spans;
    size_t stride, count;
    double *values; /* room for a column */
};

static size_t row_at(const struct listing *listing, size_t place)
{
    return place * listing->stride;
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
           (run_flag(table, RUN_LOW_CONFIDENCE, row) == 1 ? 8 : 0);
}

static void put_flags(struct json *json, const struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        listing->values[i] = flags_of(listing->table, row_at(listing, i));
    column_put(json, "flags", listing->values, listing->count, FIGURE_BYTES);
}

/* Of each listed query its last request: when it began, or on which line it is. */
static void put_place(struct json *json, const struct listing *listing, const char *key, bool lane)
{
    for (size_t i = 0; i < listing->count; i++)
        listing->values[i] = UNKNOWN;
    for (size_t i = 0; i < listing->spans->count; i++) {
        const struct span *span = &listing->spans->items[i];
        if (span->kind == SPAN_REQUEST && span->row != NO_ROW && span->row % listing->stride == 0)
            listing->values[span->row / listing->stride] = lane ? span->lane : span->from;
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
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        put_number(json, listing, NUMBERS[i].key, NUMBERS[i].column);
    put_subject(json, listing);
    put_flags(json, listing);
    put_place(json, listing, "from_s", false);
    put_place(json, listing, "lane", true);
    json_object_end(json);
}

/* ---- what is no query's last request ---- */

enum other_column { OTHER_KIND, OTHER_ROW, OTHER_FROM, OTHER_LENGTH, OTHER_LANE, OTHER_START };

static double other_value(const struct span *span, enum other_column column, size_t stride)
{
    switch (column) {
    case OTHER_KIND:
        return span->kind;
    case OTHER_ROW:
        return span->row == NO_ROW || span->row % stride ? UNKNOWN
                                                         : (double)span->row / (double)stride;
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

/* Those that there are, at most as many as there is room for. */
static void put_others(struct json *json, const struct listing *listing)
{
    static const char *const KEYS[] = {"kind", "row", "from_s", "length_s", "lane", "start"};
    json_object(json, "others");
    json_array(json, "kinds");
    for (size_t i = 0; i < SPAN_KINDS; i++)
        json_string(json, NULL, SPAN_KIND_NAMES[i]);
    json_array_end(json);
    for (unsigned column = OTHER_KIND; column <= OTHER_START; column++) {
        size_t count = 0;
        for (size_t i = 0; i < listing->spans->count && count < listing->count; i++)
            if (listing->spans->items[i].kind != SPAN_REQUEST)
                listing->values[count++] = other_value(&listing->spans->items[i],
                                                       (enum other_column)column, listing->stride);
        if (column == OTHER_KIND)
            json_integer(json, "count", (int64_t)count);
        column_put_even(json, KEYS[column], listing->values, count,
                        column == OTHER_FROM ? TIME_BYTES : FIGURE_BYTES);
    }
    json_object_end(json);
}

size_t queries_stride(const struct run_table *table, size_t most)
{
    size_t stride = 1;
    while (table->rows / stride > most)
        stride++;
    return stride;
}

enum err queries_put(struct json *json, const struct run_table *table, const struct spans *spans,
                     size_t most, struct error *why)
{
    struct listing listing = {
        .table = table, .spans = spans, .stride = queries_stride(table, most)};
    listing.count = (table->rows + listing.stride - 1) / listing.stride;
    listing.values = malloc((listing.count + 1) * sizeof *listing.values);
    if (!listing.values)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    put_columns(json, &listing);
    put_others(json, &listing);
    free(listing.values);
    return ERR_OK;
}
