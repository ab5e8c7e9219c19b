#include "metrics/efficiency.h"

#include "core/units.h"

/* a / b, where both are known and there is something to divide by.  A NaN or an infinity in either
 * makes the answer unknown, and so does a quotient too large to write down. */
static double over(double a, double b)
{
    if (!is_known(a) || !is_known(b) || b <= 0)
        return UNKNOWN;
    return is_known(a / b) ? a / b : UNKNOWN;
}

/* A count or an amount that cannot be negative; anything else was not measured. */
static double amount(double value)
{
    return is_known(value) && value >= 0 ? value : UNKNOWN;
}

static double more_than_none(double value)
{
    return is_known(value) && value > 0 ? value : UNKNOWN;
}

double kv_bytes(double layers, double kv_heads, double head_size, double bytes_per_number)
{
    return 2 * more_than_none(layers) * more_than_none(kv_heads) * more_than_none(head_size) *
           more_than_none(bytes_per_number);
}

/* Steps of the decode phase: the first token is the prefill's. */
static double decode_steps(double output_tokens)
{
    return is_known(output_tokens) && output_tokens >= 2 ? output_tokens - 1 : UNKNOWN;
}

double decode_bytes(const struct decode_work *work)
{
    double steps = decode_steps(work->output_tokens);
    /* Step i reads the keys and values of the prompt and of the i tokens written so far. */
    double tokens_read = steps * amount(work->prompt_tokens) + work->output_tokens * steps / 2;
    return steps * more_than_none(work->weight_bytes) +
           more_than_none(work->batch) * amount(work->kv_bytes_per_token) * tokens_read;
}

double efficiency_mfu(double flops, double seconds, const struct device_peak *peak, double devices)
{
    double rate = over(amount(flops), seconds);
    return over(rate, more_than_none(peak->tflops) * 1e12 * more_than_none(devices));
}

double efficiency_mbu(double bytes, double seconds, const struct device_peak *peak, double devices)
{
    double rate = over(amount(bytes), seconds);
    return over(rate, more_than_none(peak->gb_per_s) * 1e9 * more_than_none(devices));
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
        .model = {.total = UNKNOWN, .active = UNKNOWN},
        .peak = {.tflops = UNKNOWN, .gb_per_s = UNKNOWN},
        .devices = UNKNOWN,
        .weight_bytes = UNKNOWN,
        .kv_bytes_per_token = UNKNOWN,
        .batch = UNKNOWN,
    };
}

static void derive_decode(const struct efficiency_inputs *facts, struct efficiency *out)
{
    struct decode_work work = {
        .weight_bytes = facts->weight_bytes,
        .kv_bytes_per_token = facts->kv_bytes_per_token,
        .prompt_tokens = facts->prompt_tokens,
        .output_tokens = facts->output_tokens,
        .batch = facts->batch,
    };
    double bytes = decode_bytes(&work);
    double flops = out->flops_per_token * decode_steps(facts->output_tokens) * facts->batch;
    out->mbu = efficiency_mbu(bytes, facts->decode_seconds, &facts->peak, facts->devices);
    out->arithmetic_intensity = over(flops, bytes);
}

void efficiency_of(const struct efficiency_inputs *facts, struct efficiency *out)
{
    double prompt = amount(facts->prompt_tokens), output = amount(facts->output_tokens);
    double tokens = prompt + output;
    double per_token = model_flops_per_token(&facts->model);
    *out = (struct efficiency){
        .flops_per_token = per_token,
        .flops = per_token * tokens,
        .tokens_per_s = over(more_than_none(output), facts->seconds),
        .ms_per_output_token = 1e3 * over(more_than_none(facts->seconds), output),
        .tokens_per_joule = over(more_than_none(output), facts->joules),
        .joules_per_output_token = over(facts->joules, output),
        .joules_per_token = over(facts->joules, tokens),
        .prefill_joules_per_token = over(facts->prefill_joules, prompt),
        .decode_joules_per_token = over(facts->decode_joules, output),
        .flops_per_joule = over(per_token * tokens, facts->joules),
        .mfu = efficiency_mfu(per_token * tokens, facts->seconds, &facts->peak, facts->devices),
    };
    derive_decode(facts, out);
}
