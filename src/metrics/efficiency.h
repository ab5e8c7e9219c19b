/* Efficiency of a measured query: work, utilization of the hardware, energy per token, the energy-delay product;
 * docs/metrics.md has the definitions.  Pure functions; the caller owns every struct.
 *
 * Unknown in, unknown out: a figure whose inputs are not all known, or that would divide by zero, is
 * UNKNOWN and never 0. */
#ifndef IPW_METRICS_EFFICIENCY_H
#define IPW_METRICS_EFFICIENCY_H

#include <math.h>

#include "catalog/device_peak.h"
#include "core/units.h"

/* Inputs of one query; unknown ones are UNKNOWN. */
struct efficiency_inputs {
    double prompt_tokens, output_tokens;
    double seconds;                       /* from request to completion */
    double decode_seconds;                /* from first token to completion */
    double joules;                        /* attributed to the query, idle power included */
    double prefill_joules, decode_joules; /* the parts of it */
    double flops_per_token;               /* 2 x active parameters of the model */
    struct device_peak peak;              /* per device */
    double devices;                       /* accelerators that the model ran on */
    double weight_bytes;       /* read in one decode step: the model's, or its active experts' */
    double kv_bytes_per_token; /* KV cache of one token, all layers */
    double batch;              /* sequences in one decode step; 1: the request ran alone */
};

struct efficiency {
    double flops_per_token, flops;   /* as given; x (prompt + output tokens) */
    double tokens_per_joule;         /* output tokens; the same as tokens/s per watt */
    double joules_per_output_token;  /* all joules of the query over its output tokens */
    double joules_per_token;         /* all joules over prompt and output tokens */
    double prefill_joules_per_token; /* over prompt tokens */
    double decode_joules_per_token;  /* over output tokens */
    double flops_per_joule;          /* the same as FLOP/s per watt */
    double mfu;                      /* model FLOPs utilization over the whole query */
    double mbu;                      /* memory bandwidth utilization of the decode phase */
    double arithmetic_intensity;     /* FLOPs per byte in the decode phase */
};

/* Inputs that are all UNKNOWN, for the caller to fill in. */
struct efficiency_inputs efficiency_inputs_unknown(void);

void efficiency_of(const struct efficiency_inputs *inputs, struct efficiency *out);

/* Model FLOPs utilization: a share of the peak of all devices, 0..1.  It may exceed 1 when the work ran in a
 * narrower precision than the peak is given for. */
double efficiency_mfu(double flops, double seconds, const struct device_peak *peak, double devices);

/* The energy-delay product E T^n, which a choice of clock, batch or power limit minimizes: n = 0 is energy, 1 EDP,
 * 2 ED2P.  UNKNOWN unless both are above 0. */
static inline double energy_delay_product(double joules, double delay_s, double exponent)
{
    return joules > 0 && delay_s > 0 && is_known(joules) && is_known(delay_s)
               ? joules * pow(delay_s, exponent)
               : UNKNOWN;
}

#endif
