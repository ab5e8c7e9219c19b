/* Timeline of one request: the input of attribution.  A struct request_trace owns its arrival times;
 * request_trace_release frees them. */
#ifndef IPW_TRACE_REQUEST_H
#define IPW_TRACE_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "core/units.h"

/* Kind of work: of a device's energy above idle, tools get their processes' share of the CPU time, inferences the
 * remainder; waiting gets what is left if there is neither. */
enum request_kind { REQUEST_INFERENCE, REQUEST_TOOL, REQUEST_WAIT };

struct request_trace {
    uint64_t id; /* unique among the requests of a run */
    enum request_kind kind;
    uint64_t group; /* of the query: requests of one group share one part of idle power; 0: none */
    double cpu_share;  /* of a tool: its processes' share of the machine's CPU time; UNKNOWN */
    void *context;     /* of the caller; may be NULL */
    nanos from;        /* sent: prefill begins */
    nanos first_token; /* prefill ends, decode begins; 0 without a token (all of it is prefill) */
    nanos to;          /* ended */
    double prompt_tokens; /* UNKNOWN when the service did not report it */
    double output_tokens; /* UNKNOWN if the service did not report it: chunks are counted instead */
    nanos *arrivals;      /* when chunks of the answer arrived, ascending; owned */
    size_t arrival_count;
};

void request_trace_release(struct request_trace *trace);

/* End of prefill and start of decode; the end of the request without decode. */
nanos request_phase_change(const struct request_trace *trace);

/* Tokens processed in [from, to].
 *
 * Prompt tokens are distributed evenly over the prefill.
 *
 * The output chunks that arrived with the first token were produced by the prefill and take no decode time; later ones
 * are distributed evenly between arrivals, and scaled so that the whole decode adds up to output_tokens.  If nothing
 * arrived after the first token, the output is distributed evenly over the decode; without a decode (first_token is 0
 * or the end) evenly over the whole request.  Without output_tokens (UNKNOWN or 0) each chunk counts as one token.
 *
 * So over adjacent windows they add up to prompt_tokens (if the prefill took any time) and to output_tokens.  UNKNOWN
 * if the phase overlaps the window and its tokens are unknown; 0 without overlap.  O(log arrivals). */
double request_prefill_tokens(const struct request_trace *trace, nanos from, nanos to);
double request_decode_tokens(const struct request_trace *trace, nanos from, nanos to);

/* Tokens per nanosecond. */
struct token_rates {
    double prefill, decode; /* UNKNOWN where the tokens are */
};

/* The rates at a time within the request.  Both hold up to the time returned, the end of the phase or the next arrival:
 * multiplied by the length of a window before that time, they are the tokens of the functions above. */
nanos request_rates(const struct request_trace *trace, nanos at, struct token_rates *out);

#endif
