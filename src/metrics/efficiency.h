/* Figures that follow from measured ones: work, use of the hardware, energy for a token.  Pure; the
 * caller owns every struct.  docs/metrics.md has the definitions.
 *
 * Unknown in, unknown out: a figure whose inputs are not all known, or that would divide by nothing,
 * is UNKNOWN and never 0. */
#ifndef IPW_METRICS_EFFICIENCY_H
#define IPW_METRICS_EFFICIENCY_H

#include "catalog/device_peak.h"
#include "catalog/model.h"

/* The decode phase of sequences that are decoded together, as far as memory is concerned. */
struct decode_work {
    double weight_bytes;       /* read in one step: the whole model's, or its active experts' */
    double kv_bytes_per_token; /* keys and values of one token, all layers; see kv_bytes */
    double prompt_tokens;      /* of one sequence */
    double output_tokens;      /* of one sequence; the first of them comes out of the prefill */
    double batch;              /* sequences in one step; 1 when a request ran alone */
};

/* 2 x layers x kv_heads x head_size x bytes of a number. */
double kv_bytes(double layers, double kv_heads, double head_size, double bytes_per_number);

/* Bytes that decoding must read: (n - 1) x weights + batch x kv x ((n - 1) x prompt + n (n - 1) / 2)
 * for n output tokens.  UNKNOWN for fewer than two: no step was made. */
double decode_bytes(const struct decode_work *work);

/* Shares of what the devices could have done, 0..1: over peaks of one device and their number.  MFU
 * may pass 1 where the work ran in a narrower format than the peak is given for. */
double efficiency_mfu(double flops, double seconds, const struct device_peak *peak, double devices);
double efficiency_mbu(double bytes, double seconds, const struct device_peak *peak, double devices);

/* What is known of one query; UNKNOWN where it is not. */
struct efficiency_inputs {
    double prompt_tokens, output_tokens;
    double seconds;        /* from the request to its end */
    double decode_seconds; /* from the first token to the end */
    double joules;         /* the query's share of the counted devices, idle included */
    double prefill_joules, decode_joules; /* of these */
    struct model_size model;
    struct device_peak peak;                        /* of one device */
    double devices;                                 /* accelerators that the model ran on */
    double weight_bytes, kv_bytes_per_token, batch; /* as in struct decode_work */
};

struct efficiency {
    double flops_per_token, flops;    /* 2 x active parameters; x (prompt + output tokens) */
    double tokens_per_s;              /* output tokens over the whole query */
    double ms_per_output_token;       /* the same, the other way up */
    double tokens_per_joule;          /* output tokens a second for each watt is the same figure */
    double joules_per_output_token;   /* all of the query's joules */
    double joules_per_token;          /* the same over prompt and output tokens */
    double prefill_joules_per_token;  /* over prompt tokens */
    double decode_joules_per_token;   /* over output tokens */
    double flops_per_joule;           /* FLOPS for each watt is the same figure */
    double mfu;                       /* over the whole query */
    double mbu, arithmetic_intensity; /* of the decode phase; FLOPs for each byte */
};

/* Facts with everything unknown, to fill in what there is. */
struct efficiency_inputs efficiency_inputs_unknown(void);

void efficiency_of(const struct efficiency_inputs *facts, struct efficiency *out);

#endif
