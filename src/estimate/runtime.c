/* The table of runtimes, the rules by which a runtime adds kernels to a subgraph, and its number formats. */
#include "estimate/runtime.h"

#include <string.h>

#include "core/text.h"

static const struct runtime RUNTIMES[RUNTIME_COUNT] = {
#define RUNTIME(constant, word, fused, rule, host_us, tf32, off, known, text)                      \
    [RUNTIME_##constant] = {.name = word,                                                          \
                            .fusion = PARTITION_##fused,                                           \
                            .rules = RUNTIME_RULES_##rule,                                         \
                            .has_all_logits = RUNTIME_RULES_##rule == RUNTIME_RULES_PYTORCH,       \
                            .host_s = (host_us) * 1e-6,                                            \
                            .error = off,                                                          \
                            .has_tf32_conv = tf32,                                                 \
                            .evidence = EVIDENCE_##known,                                          \
                            .about = text},
#include "estimate/runtimes.def"
#undef RUNTIME
};

static const struct runtime_steps ALL_STEPS[RUNTIME_COUNT] = {
#define STEPS(constant, host_us, sequence_us, operator_us, per_head)                               \
    [RUNTIME_##constant] = {(host_us) * 1e-6, (sequence_us) * 1e-6, (operator_us) * 1e-6, per_head},
#include "estimate/runtimes.def"
#undef STEPS
};

const struct runtime_steps *runtime_steps(enum runtime_id id)
{
    return &ALL_STEPS[id];
}

const struct runtime *runtime_at(enum runtime_id id)
{
    return &RUNTIMES[id];
}

struct runtime_host runtime_host(enum runtime_id id, const struct hardware *hardware,
                                 double given_s)
{
    double stated_s = given_s > 0 ? given_s : hardware->host_launch_s.value;
    if (!(RUNTIMES[id].host_s > 0))
        return (struct runtime_host){UNKNOWN, 0};
    if (is_known(stated_s) || id != RUNTIME_PYTORCH_EAGER)
        return (struct runtime_host){stated_s, 0};
    return (struct runtime_host){RUNTIME_HOST_ASSUMED_S, RUNTIME_HOST_SPREAD};
}

static bool is_timed(enum runtime_id id, const struct hardware *hardware)
{
    return hardware && hardware_timings(hardware, RUNTIMES[id].name);
}

enum partition_fusion runtime_fusion(enum runtime_id id, const struct hardware *hardware)
{
    bool is_onnx = id == RUNTIME_ONNXRUNTIME && hardware && hardware->class == HARDWARE_CPU;
    return is_onnx || is_timed(id, hardware) ? PARTITION_PLAIN : RUNTIMES[id].fusion;
}

enum err runtime_find(const char *name, enum runtime_id *out, struct error *why)
{
    for (size_t i = 0; i < RUNTIME_COUNT; i++)
        if (str_equal(RUNTIMES[i].name, name)) {
            *out = (enum runtime_id)i;
            return ERR_OK;
        }
    return err_set(why, ERR_NOT_FOUND,
                   "%.40s is not a runtime: ideal, pytorch-eager, pytorch-graph, torch-compile, "
                   "tensorrt, tensorrt-0.7, vllm, llama.cpp, onnxruntime",
                   name);
}

bool runtime_of_word(const char *word, enum runtime_id *out)
{
    static const struct {
        const char *word;
        enum runtime_id id;
    } WORDS[] = {{"graph", RUNTIME_PYTORCH_GRAPH},
                 {"eager", RUNTIME_PYTORCH_EAGER},
                 {"torch.compile", RUNTIME_TORCH_COMPILE}};
    for (size_t i = 0; i < COUNT_OF(WORDS); i++)
        if (str_equal(WORDS[i].word, word)) {
            *out = WORDS[i].id;
            return true;
        }
    return runtime_find(word, out, NULL) == ERR_OK;
}

/* ---- defaults ---- */

static const struct row {
    const char *reader, *id;
    enum hardware_class class;
    enum runtime_id decoders, others;
} DEFAULTS[] = {
#define DEFAULT(reader, class, id, decoders, others)                                               \
    {reader, id, HARDWARE_##class, RUNTIME_##decoders, RUNTIME_##others},
#include "estimate/runtimes.def"
#undef DEFAULT
};

enum runtime_id runtime_default(const struct model *model, const struct hardware *hardware)
{
    for (size_t i = 0; i < COUNT_OF(DEFAULTS); i++) {
        const struct row *row = &DEFAULTS[i];
        bool is_file = !*row->reader || str_equal(row->reader, model->reader->name);
        if (is_file && row->class == hardware->class && str_starts(hardware->id, row->id))
            return model->has_phases ? row->decoders : row->others;
    }
    return RUNTIME_IDEAL;
}

bool runtime_is_of_text(enum runtime_id id)
{
    return id == RUNTIME_VLLM || id == RUNTIME_LLAMA_CPP || id == RUNTIME_TENSORRT_07;
}

enum err runtime_check_device(enum runtime_id id, const struct hardware *hardware,
                              struct error *why)
{
    bool is_apple = str_equal(hardware->vendor, "Apple"),
         is_amd = str_equal(hardware->vendor, "AMD");
    bool needs_cuda = id == RUNTIME_PYTORCH_GRAPH || id == RUNTIME_TORCH_COMPILE;
    bool is_tensorrt = id == RUNTIME_TENSORRT || id == RUNTIME_TENSORRT_07;
    if (is_tensorrt && (is_apple || is_amd))
        return err_set(why, ERR_BAD_VALUE, "%s: %s runs on NVIDIA GPUs only", hardware->id,
                       RUNTIMES[id].name);
    if (is_apple && (needs_cuda || id == RUNTIME_VLLM))
        return err_set(why, ERR_BAD_VALUE, "%s: %s captures CUDA graphs, which it does not have",
                       hardware->id, RUNTIMES[id].name);
    return ERR_OK;
}

/* PyTorch has an 8-bit product, but no framework computes a model with it operator by operator. */
enum err runtime_check_precision(enum runtime_id id, enum precision precision, struct error *why)
{
    bool is_pytorch = RUNTIMES[id].rules == RUNTIME_RULES_PYTORCH;
    if (!is_pytorch || precision != PRECISION_INT8)
        return ERR_OK;
    return err_set(why, ERR_BAD_VALUE,
                   "%s has no %s kernels; --runtime tensorrt, onnxruntime and torch-compile "
                   "have them, and vllm and llama.cpp for language models",
                   RUNTIMES[id].name, precision_name(precision));
}

enum evidence runtime_evidence(enum runtime_id id, const struct runtime_use *use)
{
    enum evidence evidence = RUNTIMES[id].evidence;
    bool is_wide = precision_widths(use->precision).weight >= 2; /* measured: fp32, 16 bits */
    if (is_timed(id, use->hardware))
        return EVIDENCE_MEASURED;
    if (evidence == EVIDENCE_MEASURED)
        return is_wide && is_known(use->hardware->kernels.value) ? evidence : EVIDENCE_DERIVED;
    if (evidence != EVIDENCE_PUBLISHED)
        return evidence;
    if (!use->is_decoder || use->hardware->class != HARDWARE_GPU) /* STEPS are for LLMs on GPUs */
        return EVIDENCE_ASSUMED;
    return use->precision == PRECISION_FP32 ? EVIDENCE_DERIVED : evidence;
}

/* ---- rules ---- */

static const struct runtime_rule RULES[] = {
#define LAUNCHES(rules, op, when, class, kernels, elements, host)                                  \
    {RUNTIME_RULES_##rules, GRAPH_##op, when, KERNEL_##class, kernels, elements, host},
#include "estimate/runtimes.def"
#undef LAUNCHES
};

const struct runtime_rule *runtime_rules(const struct runtime *runtime, size_t *count)
{
    *count = runtime->rules == RUNTIME_RULES_NONE ? 0 : COUNT_OF(RULES);
    return RULES;
}

double runtime_host_operators(const struct runtime *runtime, enum graph_op op)
{
    static const double OF_KIND[GRAPH_KIND_UNKNOWN + 1] = {
#define HOST(kind, operators) [GRAPH_KIND_##kind] = operators,
#include "estimate/runtimes.def"
#undef HOST
    };
    static const double OF_OP[GRAPH_OP_COUNT] = {
#define HOST_OF(op, operators) [GRAPH_##op] = operators,
#include "estimate/runtimes.def"
#undef HOST_OF
    };
    double stated = OF_OP[op] > 0 ? OF_OP[op] : OF_KIND[graph_op_kind(op)];
    return runtime->rules == RUNTIME_RULES_PYTORCH && stated > 0 ? stated : 1;
}

bool runtime_rule_applies(const struct runtime_rule *rule, const struct subgraph *subgraph,
                          enum precision precision)
{
    if (rule->op != subgraph->op)
        return false;
    switch (rule->when) {
    case HAS_BIAS:
        return subgraph->shape.has_bias;
    case IN_DECODER:
        return subgraph->shape.is_causal;
    case DECODES:
        return subgraph->shape.is_causal && subgraph->shape.tokens == 1;
    case IN_WINDOWS:
        return subgraph->shape.has_windows;
    case OF_EXPERTS:
        return subgraph->shape.experts > 0;
    case CLAMPED:
        return subgraph->shape.is_clamped && precision == PRECISION_FP16;
    case ALWAYS:
    default:
        return true;
    }
}

/* ---- precisions ---- */

/* Quantized models are seldom computed in the precision they are named after.  4-bit integers, and 8-bit integers in
 * most runtimes, are weight-only: kernels dequantize them and multiply in 16 bits.  fp8 and fp4 are computed natively if
 * the device supports them, but activations between kernels and attention stay in 16 bits. */

/* A 16-bit scale per 32 weights: q4_0 and q8_0 of llama.cpp, q4f16 of MLC; GPTQ and AWQ have one per 128. */
#define SCALE_BITS 0.5
#define HEAD_BITS  6.5 /* q6_K, of llama.cpp's files; elsewhere the last matrix keeps 16 bits */

/* Operations to unpack, convert and scale a weight and accumulate the product, for a vector: fitted to 4-bit decode on
 * A100 (docs/measurements.md, "Published LLM figures"), where this takes longer than the memory. */
#define WEIGHT_OPS 9.0

enum { BITS_PER_BYTE = 8 };

/* NVFP4: 4-bit weights and activations with an 8-bit scale per 16 of them, as many bits as in SCALE_BITS. */
static bool has_native_fp4(enum precision precision, enum runtime_id runtime,
                           const struct hardware *hardware)
{
    return precision == PRECISION_FP4 && runtime != RUNTIME_LLAMA_CPP &&
           runtime != RUNTIME_ONNXRUNTIME && is_known(hardware->matrix_flops[PRECISION_FP4].value);
}

static bool is_weight_only(enum precision precision, enum runtime_id runtime)
{
    bool is_narrow = precision_is_weight_only(precision);
    return is_narrow || (precision == PRECISION_INT8 &&
                         (runtime == RUNTIME_VLLM || runtime == RUNTIME_LLAMA_CPP ||
                          runtime == RUNTIME_TORCH_COMPILE));
}

/* The CPU provider of ONNX Runtime has kernels for fp32 and for integers: it converts other floats when it loads a model. */
static enum precision on_cpu(enum precision precision, enum runtime_id runtime)
{
    bool is_float = precision == PRECISION_FP16 || precision == PRECISION_BF16 ||
                    precision == PRECISION_FP8 || precision == PRECISION_TF32;
    return runtime == RUNTIME_ONNXRUNTIME && is_float ? PRECISION_FP32 : precision;
}

struct number_format number_format(enum precision precision, enum runtime_id runtime,
                                   const struct hardware *hardware)
{
    if (hardware->class != HARDWARE_GPU) { /* kernels of runtimes are those of GPUs */
        precision = hardware->class == HARDWARE_CPU ? on_cpu(precision, runtime) : precision;
        runtime = RUNTIME_IDEAL;
    }
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
    if (has_native_fp4(precision, runtime, hardware)) {
        out.widths.weight += SCALE_BITS / BITS_PER_BYTE;
        out.widths.cache = precision_widths(PRECISION_FP8).cache;
        out.weight_ops = WEIGHT_OPS; /* kernels for few rows unpack weights */
        out.is_native = true;
    } else if (is_weight_only(precision, runtime)) {
        out.products = PRECISION_FP16;
        out.widths.weight += SCALE_BITS / BITS_PER_BYTE;
        out.widths.cache = half.cache;
        out.weight_ops = WEIGHT_OPS;
    }
    out.head = out.head < out.widths.weight ? out.widths.weight : out.head;
    return out;
}
