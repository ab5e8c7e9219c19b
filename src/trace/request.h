/* What one request did, and when: the input of attribution.  A struct request_trace owns its arrival
 * times; request_trace_release frees them. */
#ifndef IPW_TRACE_REQUEST_H
#define IPW_TRACE_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "core/units.h"

/* What kind of work it is: of a device's energy above idle, tools get the part that their processes used of the CPUs,
 * inferences the rest; time in which an agent waits gets what is left when neither is there. */
enum request_kind { REQUEST_INFERENCE, REQUEST_TOOL, REQUEST_WAIT };

struct request_trace {
    uint64_t id; /* unique among the requests of a run */
    enum request_kind kind;
    uint64_t
        group; /* of the query: what is in flight of one group shares its part of idle power; 0: of none */
    double cpu_share;  /* of a tool: its processes' part of the CPU time of the machine; UNKNOWN */
    void *context;     /* the caller's, carried along; may be NULL */
    nanos from;        /* sent: prefill begins */
    nanos first_token; /* prefill ends, decode begins; 0 without a token (all of it is prefill) */
    nanos to;          /* ended */
    double prompt_tokens; /* UNKNOWN when the service did not report it */
    double
        output_tokens; /* UNKNOWN when the service did not report it: chunks are counted instead */
    nanos *arrivals;   /* when chunks of the answer arrived, ascending; owned */
    size_t arrival_count;
};

void request_trace_release(struct request_trace *trace);

/* When its prefill ends and its decode begins; its end where it has no decode. */
nanos request_phase_change(const struct request_trace *trace);

/* Tokens processed in [from, to].
 *
 * Prompt tokens are distributed evenly over the prefill.
 *
 * Of the output, the chunks that came with the first token were produced by the prefill and take no
 * time of the decode; the ones after them are distributed evenly between arrivals, and scaled so that
 * the whole decode has all of output_tokens.  Where nothing arrived after the first token, the output
 * is distributed evenly over the decode; where there is no decode (first_token is 0 or the end) and
 * yet an output, evenly over the whole request.  Without output_tokens (UNKNOWN or 0) each chunk counts
 * as one token.
 *
 * So over adjacent windows they add up to prompt_tokens (where the prefill took any time) and to
 * output_tokens.  UNKNOWN where the phase reaches into the window and its tokens are unknown; 0 where
 * it does not reach into it.  O(log arrivals). */
double request_prefill_tokens(const struct request_trace *trace, nanos from, nanos to);
double request_decode_tokens(const struct request_trace *trace, nanos from, nanos to);

#endif
