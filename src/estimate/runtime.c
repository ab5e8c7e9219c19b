/* The table of runtimes, and the rules by which one adds kernels to a subgraph. */
#include "estimate/runtime.h"

#include <string.h>

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

const struct runtime *runtime_at(enum runtime_id id)
{
    return &RUNTIMES[id];
}

enum partition_fusion runtime_fusion(enum runtime_id id, const struct hardware *hardware)
{
    bool is_timed = hardware && hardware->timings.count &&
                    !strcmp(hardware->timings.runtime, RUNTIMES[id].name);
    return is_timed ? PARTITION_PLAIN : RUNTIMES[id].fusion;
}

enum err runtime_find(const char *name, enum runtime_id *out, struct error *why)
{
    for (size_t i = 0; i < RUNTIME_COUNT; i++)
        if (!strcmp(RUNTIMES[i].name, name)) {
            *out = (enum runtime_id)i;
            return ERR_OK;
        }
    return err_set(why, ERR_NOT_FOUND,
                   "%.40s is not a runtime: ideal, pytorch-eager, pytorch-graph, torch-compile, "
                   "tensorrt, vllm, llama.cpp, onnxruntime",
                   name);
}

/* ---- rules ---- */

static const struct runtime_rule RULES[] = {
#define LAUNCHES(rules, op, when, class, kernels, elements)                                        \
    {RUNTIME_RULES_##rules, GRAPH_##op, when, KERNEL_##class, kernels, elements},
#include "estimate/runtimes.def"
#undef LAUNCHES
};

/* All of them are of one set today. */
const struct runtime_rule *runtime_rules(const struct runtime *runtime, size_t *count)
{
    *count = runtime->rules == RUNTIME_RULES_NONE ? 0 : sizeof RULES / sizeof *RULES;
    return RULES;
}

bool runtime_rule_applies(const struct runtime_rule *rule, const struct subgraph *subgraph)
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
    case ALWAYS:
    default:
        return true;
    }
}
