/* spans.jsonl: when each request of a run was sent, when its first token came and when it ended.
 *
 * The runner fills a struct span and appends the line; a reader gets all spans of a run at once, with lanes for
 * drawing them beside one another.
 *
 * Ownership: the spans that were loaded own their array: spans_release. */
#ifndef IPW_RUNDIR_SPANS_H
#define IPW_RUNDIR_SPANS_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"

struct text;

enum span_kind {
    SPAN_REQUEST,        /* a query's last attempt has ended */
    SPAN_FAILED_ATTEMPT, /* one before it */
    SPAN_JUDGE,          /* a judgment */
    SPAN_KINDS
};
const char *span_kind_name(enum span_kind kind); /* as spans.jsonl has it */

/* ---- writing ---- */

/* All times in seconds from the moment at which the start began with its queries. */
struct span_line {
    const char *key; /* of the query */
    enum span_kind kind;
    unsigned start, attempt;             /* from 1 */
    double from_s, first_token_s, to_s;  /* first_token_s UNKNOWN without one */
    int64_t input_tokens, output_tokens; /* below 0: unknown */
    nanos pieces_from;                   /* the first token, or the sending without one */
    const nanos *pieces;                 /* when each piece came, on the same clock */
    size_t piece_count;
};

/* Without its newline. */
void span_to_json(const struct span_line *span, struct text *line);

/* ---- reading ---- */

#define SPAN_NO_QUERY UINT32_MAX

struct span {
    double from, first_token, to; /* first_token may be UNKNOWN */
    uint32_t index, repeat; /* of the query; index SPAN_NO_QUERY where the key is not one of ours */
    uint32_t lane;
    uint16_t start;
    uint8_t kind;
};

struct spans {
    struct span *items; /* by start, then by `from` */
    size_t count, capacity;
    unsigned starts;  /* the largest number of a start */
    uint64_t damaged; /* lines that are no JSON */
};

/* Those that have ended.  ERR_NOT_FOUND without the file. */
enum err spans_load(const char *directory, struct spans *out, struct error *why) MUST_USE;
void spans_release(struct spans *spans);

/* Only SPAN_REQUEST; ERR_NO_DATA without the file, and without a request that has ended. */
enum err spans_load_requests(const char *directory, struct spans *out, struct error *why) MUST_USE;

/* Each in the first lane that is free, the starts beginning anew; returns how many there are.  What finds none of
 * `lanes_max` is laid over others. */
size_t spans_lay_lanes(struct spans *spans, size_t lanes_max);

#endif
