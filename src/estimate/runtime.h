/* Runtimes: what runs a model on a device, and so which kernels exist beside those of its operators.  runtimes.def has
 * them all.  Pure functions over constants. */
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

/* What a host takes to launch a small operator in eager mode.  The times of runtimes.def are those of a host that takes
 * RUNTIME_HOST_UNIT_S.  One of which nothing is known is assumed to be the middle of nine that were measured: the geometric
 * mean, and the standard deviation of their logarithms (docs/measurements.md). */
#define RUNTIME_HOST_UNIT_S    9.2e-6
#define RUNTIME_HOST_ASSUMED_S 10.5e-6
#define RUNTIME_HOST_SPREAD    0.28

struct runtime {
    const char *name; /* what --runtime takes */
    enum partition_fusion fusion;
    enum runtime_rules rules;
    double host_s; /* of the host, for each operator; the device works meanwhile */
    bool
        has_all_logits; /* a prompt's logits are computed for each of its tokens, not for the last */
    bool has_tf32_conv; /* convolutions in fp32 are computed in tf32 where the device has it */
    double error;       /* relative, beside those of the device's figures */
    enum evidence evidence;
    const char *about;
};
const struct runtime *runtime_at(enum runtime_id id);
/* On a device whose operations were timed, each of them counts; hardware may be NULL. */
enum partition_fusion runtime_fusion(enum runtime_id id, const struct hardware *hardware);

struct runtime_host {
    double launch_s; /* UNKNOWN: the runtime's own, if it needs a host */
    double spread;   /* of its logarithm; 0: it was given */
};
/* As given, else as the hardware file states it, else assumed. */
struct runtime_host runtime_host(enum runtime_id id, const struct hardware *hardware,
                                 double given_s);

/* How a runtime of LLMs goes from one step to the next. */
struct runtime_steps {
    double host_s;       /* of the host between two steps; the device waits */
    double sequence_s;   /* the same, for each sequence of the batch */
    double operator_s;   /* of the host, for each operator; the device works meanwhile */
    bool reads_per_head; /* the KV cache, once for each query head */
};
const struct runtime_steps *runtime_steps(enum runtime_id id);

/* ERR_NOT_FOUND lists them. */
enum err runtime_find(const char *name, enum runtime_id *out, struct error *why) MUST_USE;
/* The same of words that rows of measurements use too: "graph", "eager", "torch.compile"; false: none of them. */
bool runtime_of_word(const char *word, enum runtime_id *out);

/* What people run a model with on a device where they say nothing: by its file, its kind, and the device. */
enum runtime_id runtime_default(const struct model *model, const struct hardware *hardware);

/* How the times of a runtime on a device are known: those of kernels that were measured on another are derived. */
enum evidence runtime_evidence(enum runtime_id id, const struct hardware *hardware);

/* Kernels that some operators launch beside their own. */
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
    double kernels, elements; /* read and written by all of them, for each element of the result */
    double host;              /* of the host for all of them, in operators */
};
const struct runtime_rule *runtime_rules(const struct runtime *runtime, size_t *count);
/* What the host takes for an operator, over host_s. */
double runtime_host_operators(const struct runtime *runtime, enum graph_op op);
bool runtime_rule_applies(const struct runtime_rule *rule, const struct subgraph *subgraph,
                          enum precision precision);

/* ---- precisions ---- */

/* What a runtime makes of a precision: how wide the numbers are that its kernels move, and in which precision they compute
 * (docs/estimate.md, "What quantized formats compute in"). */
struct number_format {
    struct precision_widths widths;
    double head; /* bytes of a weight of the last matrix, which is quantized less or not at all */
    enum precision products;  /* of matrices */
    enum precision attention; /* of Q, K and V */
    double weight_ops; /* of the vector units to dequantize a weight; 0: computed as stored */
};

/* RUNTIME_IDEAL: the precision as it is. */
struct number_format number_format(enum precision precision, enum runtime_id runtime);

#endif
