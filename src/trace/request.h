/* What one request did, and when: what attribution needs of it.  A struct request_trace owns its
 * arrival times; request_trace_release gives them back. */
#ifndef IPW_TRACE_REQUEST_H
#define IPW_TRACE_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "core/units.h"

struct request_trace {
    uint64_t id;   /* unique among the requests of a run */
    void *context; /* the caller's, carried along; may be NULL */
    nanos from;    /* sent: prefill begins */
    nanos
        first_token; /* prefill ends, decode begins; 0 when no token came (all of it is prefill) */
    nanos to;        /* ended */
    double prompt_tokens; /* UNKNOWN when the service did not say */
    double output_tokens; /* UNKNOWN when the service did not say: pieces are counted instead */
    nanos *arrivals;      /* when pieces of the answer arrived, ascending; owned */
    size_t arrival_count;
};

void request_trace_release(struct request_trace *trace);

/* Where its prefill gives way to decode; its end where it has no decode. */
nanos request_phase_change(const struct request_trace *trace);

/* Tokens processed in [from, to].
 *
 * Of the prompt: laid evenly over the prefill.
 *
 * Of the output: the pieces that came with the first token were made by the prefill and take no time
 * of the decode; the ones after them are laid evenly between arrivals, and scaled so that the whole
 * decode has all of output_tokens.  Where nothing arrived after the first token, the output is laid
 * evenly over the decode; where there is no decode (first_token is 0 or the end) and yet an output,
 * evenly over the whole request.  Without output_tokens (UNKNOWN or 0) each piece counts as one.
 *
 * So over adjoining windows they add up to prompt_tokens (where the prefill took any time) and to
 * output_tokens.  UNKNOWN where the phase reaches into the window and its tokens are not known; 0
 * where it does not reach into it.  O(log arrivals). */
double request_prefill_tokens(const struct request_trace *trace, nanos from, nanos to);
double request_decode_tokens(const struct request_trace *trace, nanos from, nanos to);

/* The time that each phase has in [from, to], in s. */
double request_prefill_s(const struct request_trace *trace, nanos from, nanos to);
double request_decode_s(const struct request_trace *trace, nanos from, nanos to);

#endif
