/* spans.jsonl: when each request of a run was sent, when its first token arrived and when it ended.
 *
 * The runner fills a struct span and appends the line; a reader loads all spans of a run, with lanes for drawing
 * overlapping ones.
 *
 * Ownership: loaded spans own their array: spans_release. */
#ifndef IPW_RUNDIR_SPANS_H
#define IPW_RUNDIR_SPANS_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"

struct text;

enum span_kind {
    SPAN_REQUEST,        /* the last attempt of a query */
    SPAN_FAILED_ATTEMPT, /* an earlier attempt */
    SPAN_JUDGE,          /* a judgment */
    SPAN_KINDS
};
const char *span_kind_name(enum span_kind kind); /* name in spans.jsonl */

/* ---- writing ---- */

/* All times in seconds since the start's queries began. */
struct span_line {
    const char *key; /* of the query */
    enum span_kind kind;
    unsigned start, attempt;             /* from 1 */
    double from_s, first_token_s, to_s;  /* first_token_s: or UNKNOWN */
    int64_t input_tokens, output_tokens; /* negative: unknown */
    nanos pieces_from;                   /* the first token, or the sending time if there is none */
    const nanos *pieces;                 /* arrival times of the chunks, on the same clock */
    size_t piece_count;
};

/* Without its newline. */
void span_to_json(const struct span_line *span, struct text *line);

/* ---- reading ---- */

#define SPAN_NO_QUERY UINT32_MAX

struct span {
    double from, first_token, to; /* first_token may be UNKNOWN */
    uint32_t index, repeat;       /* of the query; index SPAN_NO_QUERY: not a key of ours */
    uint32_t lane;
    uint16_t start;
    uint8_t kind;
};

struct spans {
    struct span *items; /* by start, then by `from` */
    size_t count, capacity;
    unsigned starts;  /* the highest start number */
    uint64_t damaged; /* lines that are not JSON */
};

/* Spans that have ended.  ERR_NOT_FOUND: no such file. */
enum err spans_load(const char *directory, struct spans *out, struct error *why) MUST_USE;
void spans_release(struct spans *spans);

/* Only SPAN_REQUEST; ERR_NO_DATA: no file, or no request that has ended. */
enum err spans_load_requests(const char *directory, struct spans *out, struct error *why) MUST_USE;

/* Assigns each span to the first free lane, per start; returns the number of lanes.  If more than `lanes_max` are
 * needed, spans overlap. */
size_t spans_assign_lanes(struct spans *spans, size_t lanes_max);

#endif
