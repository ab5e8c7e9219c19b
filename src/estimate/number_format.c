/* Quantized models are seldom computed in the precision they are named after.  Integers of 4 bits, and of 8 in most
 * runtimes, are weights alone: kernels convert them and multiply in 16 bits.  fp8 is computed natively where a device has it,
 * but activations between kernels and attention stay in 16 bits. */
#include "estimate/number_format.h"

/* A scale of 16 bits for each 32 weights: q4_0 and q8_0 of llama.cpp, q4f16 of MLC; GPTQ and AWQ have one for 128. */
#define SCALE_BITS 0.5
#define HEAD_BITS  6.5 /* q6_K, of files of llama.cpp; elsewhere the last matrix keeps its 16 bits */

/* Taking a weight out of its word, converting and scaling it, and adding the product up, for a vector: fitted to 4-bit
 * decode on A100 (docs/measurements.md, "Published LLM figures"), where it takes longer than the memory. */
#define WEIGHT_OPS 9.0

enum { BITS_PER_BYTE = 8 };

static bool is_weight_only(enum precision precision, enum runtime_id runtime)
{
    bool is_narrow = precision_is_weight_only(precision);
    return is_narrow || (precision == PRECISION_INT8 &&
                         (runtime == RUNTIME_VLLM || runtime == RUNTIME_LLAMA_CPP ||
                          runtime == RUNTIME_TORCH_COMPILE));
}

struct number_format number_format(enum precision precision, enum runtime_id runtime)
{
    const struct precision_widths half = precision_widths(PRECISION_FP16);
    struct number_format out = {.widths = precision_widths(precision),
                                .head = precision_widths(precision).weight,
                                .products = precision,
                                .attention = precision};
    if (runtime == RUNTIME_IDEAL || out.widths.weight >= half.weight)
        return out;
    out.attention = PRECISION_FP16;
    out.widths.activation = half.activation;
    out.head = runtime == RUNTIME_LLAMA_CPP ? HEAD_BITS / BITS_PER_BYTE : half.weight;
    if (is_weight_only(precision, runtime)) {
        out.products = PRECISION_FP16;
        out.widths.weight += SCALE_BITS / BITS_PER_BYTE;
        out.widths.cache = half.cache;
        out.weight_ops = WEIGHT_OPS;
    }
    out.head = out.head < out.widths.weight ? out.widths.weight : out.head;
    return out;
}
