/* What one request did, and when: what attribution needs of it.  A struct request_trace owns its
 * arrival times; request_trace_release gives them back. */
#ifndef IPW_TRACE_REQUEST_H
#define IPW_TRACE_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "core/units.h"

struct request_trace {
    uint64_t id; /* the caller's */
    nanos from;  /* sent: prefill begins */
    nanos
        first_token; /* prefill ends, decode begins; 0 when no token came (all of it is prefill) */
    nanos to;        /* ended */
    double prompt_tokens; /* UNKNOWN when the service did not say */
    double output_tokens; /* UNKNOWN when the service did not say: pieces are counted instead */
    nanos *arrivals;      /* when pieces of the answer arrived, ascending; owned */
    size_t arrival_count;
};

void request_trace_release(struct request_trace *trace);

/* Tokens processed in [from, to]: of the prompt, laid evenly over the prefill; of the output, laid
 * evenly between arrivals and scaled so that they add up to output_tokens.  UNKNOWN where the request
 * is alive in that time and its tokens of that phase are not known.  A phase that does not reach into
 * the window gives 0. */
double request_prefill_tokens(const struct request_trace *trace, nanos from, nanos to);
double request_decode_tokens(const struct request_trace *trace, nanos from, nanos to);

/* The time that each phase has in [from, to], in s. */
double request_prefill_s(const struct request_trace *trace, nanos from, nanos to);
double request_decode_s(const struct request_trace *trace, nanos from, nanos to);

#endif
