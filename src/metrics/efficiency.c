#include "metrics/efficiency.h"

#include "core/units.h"

/* Counts and amounts cannot be negative: a negative value was not measured. */
static double non_negative(double value)
{
    return is_known(value) && value >= 0 ? value : UNKNOWN;
}

static double positive(double value)
{
    return is_known(value) && value > 0 ? value : UNKNOWN;
}

/* The first output token comes from the prefill; UNKNOWN when no decode step was made. */
static double decode_steps(double output_tokens)
{
    return is_known(output_tokens) && output_tokens >= 2 ? output_tokens - 1 : UNKNOWN;
}

/* Bytes that the decode phase must read: every step reads the weights once and, for each sequence of the
 * batch, the KV cache of the prompt and of the tokens written so far. */
static double decode_bytes(const struct efficiency_inputs *in)
{
    double steps = decode_steps(in->output_tokens);
    double tokens_read = steps * non_negative(in->prompt_tokens) + in->output_tokens * steps / 2;
    return steps * positive(in->weight_bytes) +
           positive(in->batch) * non_negative(in->kv_bytes_per_token) * tokens_read;
}

double efficiency_mfu(double flops, double seconds, const struct device_peak *peak, double devices)
{
    double rate = ratio(non_negative(flops), seconds);
    return ratio(rate, positive(peak->tflops) * 1e12 * positive(devices));
}

static double mbu(double bytes, double seconds, const struct device_peak *peak, double devices)
{
    double rate = ratio(non_negative(bytes), seconds);
    return ratio(rate, positive(peak->gb_per_s) * 1e9 * positive(devices));
}

struct efficiency_inputs efficiency_inputs_unknown(void)
{
    return (struct efficiency_inputs){
        .prompt_tokens = UNKNOWN,
        .output_tokens = UNKNOWN,
        .seconds = UNKNOWN,
        .decode_seconds = UNKNOWN,
        .joules = UNKNOWN,
        .prefill_joules = UNKNOWN,
        .decode_joules = UNKNOWN,
        .flops_per_token = UNKNOWN,
        .peak = {.tflops = UNKNOWN, .gb_per_s = UNKNOWN},
        .devices = UNKNOWN,
        .weight_bytes = UNKNOWN,
        .kv_bytes_per_token = UNKNOWN,
        .batch = UNKNOWN,
    };
}

void efficiency_of(const struct efficiency_inputs *in, struct efficiency *out)
{
    double prompt = non_negative(in->prompt_tokens), output = non_negative(in->output_tokens);
    double tokens = prompt + output;
    double flops_per_token = positive(in->flops_per_token);
    double flops = flops_per_token * tokens;
    double decode_flops = flops_per_token * decode_steps(in->output_tokens) * in->batch;
    double bytes = decode_bytes(in);
    *out = (struct efficiency){
        .flops_per_token = flops_per_token,
        .flops = flops,
        .tokens_per_joule = ratio(positive(output), in->joules),
        .joules_per_output_token = ratio(in->joules, output),
        .joules_per_token = ratio(in->joules, tokens),
        .prefill_joules_per_token = ratio(in->prefill_joules, prompt),
        .decode_joules_per_token = ratio(in->decode_joules, output),
        .flops_per_joule = ratio(flops, in->joules),
        .mfu = efficiency_mfu(flops, in->seconds, &in->peak, in->devices),
        .mbu = mbu(bytes, in->decode_seconds, &in->peak, in->devices),
        .arithmetic_intensity = ratio(decode_flops, bytes),
    };
}
