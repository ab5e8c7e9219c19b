/* Inference runtimes, and the kernels they launch in addition to those of the operators.  runtimes.def lists them.
 * Pure functions over constants. */
#ifndef IPW_ESTIMATE_RUNTIME_H
#define IPW_ESTIMATE_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#include "catalog/hardware.h"
#include "catalog/precision.h"
#include "core/err.h"
#include "estimate/partition.h"
#include "graph/reader.h"

enum runtime_id {
#define RUNTIME(constant, name, fusion, rules, host, tf32, error, evidence, about)                 \
    RUNTIME_##constant,
#include "estimate/runtimes.def"
#undef RUNTIME
    RUNTIME_COUNT
};

enum runtime_rules { RUNTIME_RULES_NONE, RUNTIME_RULES_PYTORCH, RUNTIME_RULES_LLAMA_CPP };

/* Host time to launch a small operator in eager mode.  The times of runtimes.def are those of a host that takes
 * RUNTIME_HOST_UNIT_S.  For an unknown host it is the time with the smallest expected relative error, by nine that were
 * measured without a profiler: exp(mean - variance) of the logarithms.  The spread is half of the distance to the upper
 * end of the 95 % prediction interval for a tenth, as a logarithm (docs/measurements.md). */
#define RUNTIME_HOST_UNIT_S    9.2e-6
#define RUNTIME_HOST_ASSUMED_S 8.13e-6
#define RUNTIME_HOST_SPREAD    0.26

struct runtime {
    const char *name; /* value of --runtime */
    enum partition_fusion fusion;
    enum runtime_rules rules;
    double host_s;       /* host time per operator, overlapping with the device */
    bool has_all_logits; /* logits of all tokens of a prompt are computed, not only of the last */
    bool has_tf32_conv;  /* convolutions in fp32 use tf32 if supported */
    double error;        /* relative, in addition to those of the device's figures */
    enum evidence evidence;
    const char *about;
};
const struct runtime *runtime_at(enum runtime_id id);
/* Each timed operation counts separately on a device with timings; hardware may be NULL. */
enum partition_fusion runtime_fusion(enum runtime_id id, const struct hardware *hardware);

struct runtime_host {
    double launch_s; /* UNKNOWN: the runtime's own, if it needs a host */
    double spread;   /* standard deviation of its logarithm; 0: given */
};
/* The host time as given, else from the hardware file, else assumed. */
struct runtime_host runtime_host(enum runtime_id id, const struct hardware *hardware,
                                 double given_s);

/* Overhead of an LLM runtime between steps. */
struct runtime_steps {
    double host_s;       /* host time between two steps, during which the device waits */
    double sequence_s;   /* the same, per sequence of the batch */
    double operator_s;   /* host time per operator, overlapping with the device */
    bool reads_per_head; /* the KV cache is read once per query head */
};
const struct runtime_steps *runtime_steps(enum runtime_id id);

/* ERR_NOT_FOUND lists the names. */
enum err runtime_find(const char *name, enum runtime_id *out, struct error *why) MUST_USE;
/* The same for the names used in measurements: "graph", "eager", "torch.compile"; false: unknown. */
bool runtime_of_word(const char *word, enum runtime_id *out);

/* The default runtime of a model on a device: by its file, its kind, and the device. */
enum runtime_id runtime_default(const struct model *model, const struct hardware *hardware);

/* ERR_BAD_VALUE says why it cannot exist there: TensorRT on another vendor's device, a CUDA graph on Apple's. */
enum err runtime_check_device(enum runtime_id id, const struct hardware *hardware,
                              struct error *why) MUST_USE;
/* ERR_BAD_VALUE says which runtimes have kernels of that precision: PyTorch's eager mode has none in int8. */
enum err runtime_check_precision(enum runtime_id id, enum precision precision, struct error *why)
    MUST_USE;
/* LLM servers and llama.cpp, which run no images. */
bool runtime_is_of_text(enum runtime_id id);

/* How the times of a runtime on a device are known, for a kind of model in a precision: those of kernels that were
 * measured on another device, or of a precision that was not measured, are derived. */
struct runtime_use {
    const struct hardware *hardware;
    bool is_decoder;
    enum precision precision;
};
enum evidence runtime_evidence(enum runtime_id id, const struct runtime_use *use);

/* Kernels that some operators launch in addition to their own. */
struct runtime_rule {
    enum runtime_rules rules;
    enum graph_op op;
    enum runtime_when {
        ALWAYS,
        HAS_BIAS,
        IN_DECODER,
        DECODES,
        IN_WINDOWS,
        OF_EXPERTS,
        CLAMPED, /* in fp16, see struct graph_node */
    } when;
    enum kernel_class class;
    double kernels, elements; /* read and written by all of them, per element of the result */
    double host;              /* host time of all of them, in operators */
};
const struct runtime_rule *runtime_rules(const struct runtime *runtime, size_t *count);
/* Host time of an operator, relative to host_s. */
double runtime_host_operators(const struct runtime *runtime, enum graph_op op);
bool runtime_rule_applies(const struct runtime_rule *rule, const struct subgraph *subgraph,
                          enum precision precision);

/* ---- precisions ---- */

/* Number format of a runtime for a precision: the width of stored numbers and the compute precision (docs/estimate.md,
 * "What quantized formats compute in"). */
struct number_format {
    struct precision_widths widths;
    double head; /* bytes per weight of the last matrix, which is quantized less or not at all */
    enum precision products;  /* for products of matrices */
    enum precision attention; /* for Q, K and V */
    double weight_ops;        /* vector operations to dequantize a weight; 0: computed as stored */
    bool is_native; /* matrix units take such weights: they are dequantized for few rows */
};

/* RUNTIME_IDEAL: the precision itself. */
struct number_format number_format(enum precision precision, enum runtime_id runtime,
                                   const struct hardware *hardware);

#endif
