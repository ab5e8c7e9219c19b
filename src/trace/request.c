#include "trace/request.h"

#include <stdlib.h>

void request_trace_release(struct request_trace *trace)
{
    free(trace->arrivals);
    trace->arrivals = NULL;
    trace->arrival_count = 0;
}

nanos request_phase_change(const struct request_trace *trace)
{
    if (trace->first_token == 0)
        return trace->to;
    return min_nanos(max_nanos(trace->first_token, trace->from), trace->to);
}

static nanos overlap(nanos a_from, nanos a_to, nanos b_from, nanos b_to)
{
    return max_nanos(0, min_nanos(a_to, b_to) - max_nanos(a_from, b_from));
}

double request_prefill_tokens(const struct request_trace *trace, nanos from, nanos to)
{
    nanos end = request_phase_change(trace);
    nanos inside = overlap(trace->from, end, from, to);
    if (inside == 0)
        return 0;
    if (!is_known(trace->prompt_tokens) || trace->prompt_tokens < 0)
        return UNKNOWN;
    return trace->prompt_tokens * ((double)inside / (double)(end - trace->from));
}

/* ---- the output, distributed over time ---- */

/* Number of arrivals not later than t. */
static size_t arrived(const struct request_trace *trace, nanos t)
{
    size_t low = 0, high = trace->arrival_count;
    if (high && trace->arrivals[high - 1] <= t)
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (trace->arrivals[middle] <= t)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Chunks produced up to t: those that have arrived, plus a fraction of the next ones, linear in time since the last
 * arrival.  Chunks that arrive together were produced together. */
static double chunks_produced(const struct request_trace *trace, nanos begin, nanos t)
{
    size_t before = arrived(trace, t);
    if (before == trace->arrival_count)
        return (double)before;
    nanos next = trace->arrivals[before];
    nanos last = before ? max_nanos(begin, trace->arrivals[before - 1]) : begin;
    size_t with_next = before + 1;
    if (with_next < trace->arrival_count && trace->arrivals[with_next] == next)
        with_next = arrived(trace, next);
    if (next <= last || t <= last)
        return (double)before;
    double part = (double)(t - last) / (double)(next - last);
    return (double)before + (double)(with_next - before) * part;
}

/* The number of output tokens; UNKNOWN without a count from the service and without chunks. */
static double output_of(const struct request_trace *trace)
{
    if (is_known(trace->output_tokens) && trace->output_tokens > 0)
        return trace->output_tokens;
    return trace->arrival_count ? (double)trace->arrival_count : UNKNOWN;
}

double request_decode_tokens(const struct request_trace *trace, nanos from, nanos to)
{
    nanos begin = request_phase_change(trace), end = trace->to;
    double output = output_of(trace);
    bool has_decode = begin < end;
    if (!has_decode) {
        if (!is_known(output))
            return 0;
        begin = trace->from; /* one chunk: produced at any time in the request */
    }
    from = max_nanos(from, begin);
    to = min_nanos(to, end);
    if (to <= from)
        return 0;
    if (!is_known(output))
        return UNKNOWN;
    double at_begin = chunks_produced(trace, begin, begin);
    double at_end = chunks_produced(trace, begin, end);
    if (!has_decode || at_end <= at_begin)
        return output * ((double)(to - from) / (double)(end - begin));
    double made = chunks_produced(trace, begin, to) - chunks_produced(trace, begin, from);
    return output * fmax(0, made) / (at_end - at_begin);
}

/* Chunks per nanosecond at a time in the decode, at the slope of chunks_produced. */
static double chunk_rate(const struct request_trace *trace, nanos begin, nanos at, nanos *until)
{
    size_t before = arrived(trace, at);
    if (before == trace->arrival_count)
        return 0;
    nanos next = trace->arrivals[before];
    nanos last = before ? max_nanos(begin, trace->arrivals[before - 1]) : begin;
    *until = min_nanos(*until, next);
    return (double)(arrived(trace, next) - before) / (double)(next - last);
}

static double decode_rate(const struct request_trace *trace, nanos at, nanos *until)
{
    nanos begin = request_phase_change(trace), end = trace->to;
    double output = output_of(trace);
    if (begin >= end)
        return is_known(output) ? output / (double)(end - trace->from) : 0;
    if (at < begin)
        return 0;
    if (!is_known(output))
        return UNKNOWN;
    double at_begin = chunks_produced(trace, begin, begin);
    double at_end = chunks_produced(trace, begin, end);
    if (at_end <= at_begin)
        return output / (double)(end - begin);
    return output * chunk_rate(trace, begin, at, until) / (at_end - at_begin);
}

nanos request_rates(const struct request_trace *trace, nanos at, struct token_rates *out)
{
    nanos change = request_phase_change(trace);
    nanos until = at < change ? change : trace->to;
    bool is_prefill = at < change, has_prompt = is_known(trace->prompt_tokens);
    *out = (struct token_rates){0};
    if (is_prefill && has_prompt && trace->prompt_tokens >= 0)
        out->prefill = trace->prompt_tokens / (double)(change - trace->from);
    else if (is_prefill)
        out->prefill = UNKNOWN;
    out->decode = decode_rate(trace, at, &until);
    return until;
}
