#include "rundir/spans.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/json_read.h"
#include "rundir/journal.h"
#include "rundir/run_path.h"

static const char *const NAMES[SPAN_KINDS] = {
    [SPAN_REQUEST] = "request",
    [SPAN_FAILED_ATTEMPT] = "failed_attempt",
    [SPAN_JUDGE] = "judge",
};

const char *span_kind_name(enum span_kind kind)
{
    return NAMES[kind];
}

/* ---- writing ---- */

void span_to_json(const struct span_line *span, struct text *line)
{
    struct json json;
    text_clear(line);
    json_init(&json, line, false);
    json_object(&json, NULL);
    json_string(&json, "key", span->key);
    json_integer(&json, "start", span->start);
    json_string(&json, "span", NAMES[span->kind]);
    json_integer(&json, "attempt", span->attempt);
    json_number(&json, "from_s", span->from_s);
    json_optional_number(&json, "first_token_s", span->first_token_s);
    json_number(&json, "to_s", span->to_s);
    if (span->input_tokens >= 0)
        json_integer(&json, "input_tokens", span->input_tokens);
    if (span->output_tokens >= 0)
        json_integer(&json, "output_tokens", span->output_tokens);
    /* Differences between chunks in whole microseconds: half the size of full times. */
    json_array(&json, "piece_gaps_us");
    nanos before = span->pieces_from;
    for (size_t i = 0; i < span->piece_count; i++) {
        int64_t gap = (span->pieces[i] - before) / NS_PER_US;
        json_integer(&json, NULL, gap);
        before += gap * NS_PER_US;
    }
    json_array_end(&json);
    json_object_end(&json);
}

/* ---- reading ---- */

static void read_key(const char *key, struct span *span)
{
    uint64_t index;
    unsigned repeat;
    bool is_query = query_key_parse(key, &index, &repeat) && index < SPAN_NO_QUERY;
    span->index = is_query ? (uint32_t)index : SPAN_NO_QUERY;
    span->repeat = is_query ? repeat : 0;
}

static enum err take_line(void *context, const struct jv *line)
{
    struct spans *spans = context;
    double start = jv_get_number(line, "start");
    const char *const *kind = STR_FIND(jv_get_text(line, "span"), NAMES);
    struct span span = {.from = jv_get_number(line, "from_s"),
                        .first_token = jv_get_number(line, "first_token_s"),
                        .to = jv_get_number(line, "to_s"),
                        .start = start >= 1 && start < UINT16_MAX ? (uint16_t)start : 1};
    if (!kind || !(span.to >= span.from))
        return ERR_OK; /* it has not ended */
    span.kind = (uint8_t)(kind - NAMES);
    read_key(jv_get_text(line, "key"), &span);
    *XADD(spans->items, spans->count, spans->capacity) = span;
    spans->starts = span.start > spans->starts ? span.start : spans->starts;
    return ERR_OK;
}

static int compare_spans(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

enum err spans_load(const char *directory, struct spans *out, struct error *why)
{
    char *path = run_path_file(directory, RUN_FILE_SPANS);
    *out = (struct spans){0};
    enum err err = journal_read(path, take_line, out, &out->damaged, why);
    free(path);
    if (err)
        spans_release(out);
    else if (out->count)
        qsort(out->items, out->count, sizeof *out->items, compare_spans);
    return err;
}

void spans_release(struct spans *spans)
{
    free(spans->items);
    *spans = (struct spans){0};
}

enum err spans_load_requests(const char *directory, struct spans *out, struct error *why)
{
    enum err err = spans_load(directory, out, why);
    size_t kept = 0;
    if (err == ERR_NOT_FOUND)
        return err_set(why, ERR_NO_DATA, "the run has no spans");
    for (size_t i = 0; i < out->count; i++)
        if (out->items[i].kind == SPAN_REQUEST)
            out->items[kept++] = out->items[i];
    out->count = kept;
    if (!err && !kept) {
        spans_release(out);
        err = err_set(why, ERR_NO_DATA, "the run has no request that ended");
    }
    return err;
}

size_t spans_assign_lanes(struct spans *spans, size_t lanes_max)
{
    double *free_at = xmalloc((lanes_max + 1) * sizeof *free_at);
    size_t used = 0, max = 0;
    unsigned start = 0;
    for (size_t i = 0; lanes_max && i < spans->count; i++) {
        struct span *span = &spans->items[i];
        size_t lane = 0;
        if (span->start != start)
            used = 0;
        start = span->start;
        while (lane < used && free_at[lane] > span->from)
            lane++;
        lane = lane < lanes_max ? lane : i % lanes_max;
        used = lane >= used ? lane + 1 : used;
        max = used > max ? used : max;
        free_at[lane] = span->to;
        span->lane = (uint32_t)lane;
    }
    free(free_at);
    return max;
}
