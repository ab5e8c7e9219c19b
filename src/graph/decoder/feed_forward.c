/* The feed-forward of one layer: dense, of experts, or both. */
#include <math.h>

#include "graph/decoder/making.h"
#include "graph/decoder/weigh.h"

/* One way through: up, perhaps a gate, down. */
struct way {
    enum decoder_tensor gate, up, down;
};

static const struct way DENSE = {DECODER_TENSOR_FFN_GATE, DECODER_TENSOR_FFN_UP,
                                 DECODER_TENSOR_FFN_DOWN};
static const struct way SHARED = {DECODER_TENSOR_FFN_GATE_SHEXP, DECODER_TENSOR_FFN_UP_SHEXP,
                                  DECODER_TENSOR_FFN_DOWN_SHEXP};
static const struct way EXPERTS = {DECODER_TENSOR_FFN_GATE_EXPS, DECODER_TENSOR_FFN_UP_EXPS,
                                   DECODER_TENSOR_FFN_DOWN_EXPS};

static enum graph_op activation(const struct making *making)
{
    return making->decoder->activation == DECODER_SILU ? GRAPH_SILU : GRAPH_GELU;
}

/* ---- every token through the same matrices ---- */

static tensor_id activate(struct making *making, tensor_id gate, tensor_id up)
{
    struct build *build = &making->build;
    build->component = DECODER_FFN_GATE_UP;
    tensor_id active = build_op(build, activation(making), "activation", gate >= 0 ? gate : up);
    return gate >= 0 ? build_binary(build, GRAPH_MUL, "gated", active, up) : active;
}

static tensor_id through(struct making *making, const struct way *way, tensor_id x)
{
    tensor_id gate = GRAPH_NONE, up = making_linear(making, way->up, x);
    if (making_has(making, way->gate)) {
        gate = making_linear(making, way->gate, x);
    } else if (making->layer->is_fused && way == &DENSE) {
        int64_t width = (int64_t)making->layer->feed_forward;
        gate = making_slice(making, "gate", up, width);
        up = making_slice(making, "up", up, width);
    }
    return making_linear(making, way->down, activate(making, gate, up));
}

/* ---- experts ---- */

/* How many of all a pass wakes: a token its own, several tokens more, as if each chose by chance. */
static double share_woken(const struct making *making)
{
    double all = (double)making->decoder->experts, used = (double)making->decoder->experts_used;
    double tokens = (double)making->tokens * (double)making->sequences;
    return 1 - pow(1 - used / all, tokens);
}

static tensor_id of_experts(struct making *making, enum decoder_tensor tensor, tensor_id x)
{
    struct graph_node node = {.op = GRAPH_LINEAR,
                              .name = decoder_tensor_name(tensor),
                              .weight_share = share_woken(making)};
    int64_t dims[] = {making->sequences, making->tokens, (int64_t)making->decoder->experts_used,
                      (int64_t)making->weights[tensor].rows};
    tensor_id weight = making_weight(making, tensor);
    making->build.component = decoder_tensor_component(tensor);
    return build_node(&making->build, &node, (tensor_id[]){x, weight}, 2, 4, dims);
}

/* How much each of the chosen experts counts: (sequences, tokens, experts used). */
static tensor_id route(struct making *making, tensor_id x)
{
    struct build *build = &making->build;
    tensor_id logits = making_linear(making, DECODER_TENSOR_FFN_GATE_INP, x);
    tensor_id shares = build_op(build, GRAPH_SOFTMAX, "router", logits);
    struct graph_node node = {.op = GRAPH_MOVE, .name = "chosen", .label = "top_k"};
    int64_t dims[] = {making->sequences, making->tokens, (int64_t)making->decoder->experts_used};
    return build_node(build, &node, &shares, 1, 3, dims);
}

static tensor_id through_experts(struct making *making, tensor_id x)
{
    struct build *build = &making->build;
    tensor_id chosen = route(making, x);
    tensor_id gate =
        making_has(making, EXPERTS.gate) ? of_experts(making, EXPERTS.gate, x) : GRAPH_NONE;
    tensor_id up = of_experts(making, EXPERTS.up, x);
    tensor_id answers = of_experts(making, EXPERTS.down, activate(making, gate, up));
    struct graph_node weighted = {.op = GRAPH_MUL, .name = "weighted"};
    struct graph_node sum = {.op = GRAPH_REDUCE, .name = "experts_sum"};
    int64_t dims[] = {making->sequences, making->tokens, (int64_t)making->decoder->experts_used,
                      build_dim(build, answers, 3)};
    tensor_id scaled = build_node(build, &weighted, (tensor_id[]){answers, chosen}, 2, 4, dims);
    dims[2] = dims[3];
    return build_node(build, &sum, &scaled, 1, 3, dims);
}

/* Experts that every token shares; a gate of their own weighs their answer. */
static tensor_id through_shared(struct making *making, tensor_id x)
{
    struct build *build = &making->build;
    tensor_id answer = through(making, &SHARED, x);
    if (!making_has(making, DECODER_TENSOR_FFN_GATE_INP_SHEXP))
        return answer;
    tensor_id weight = making_linear(making, DECODER_TENSOR_FFN_GATE_INP_SHEXP, x);
    build->component = DECODER_FFN_DOWN;
    weight = build_op(build, GRAPH_SIGMOID, "shared_gate", weight);
    return build_binary(build, GRAPH_MUL, "shared_weighted", answer, weight);
}

tensor_id making_feed_forward(struct making *making, tensor_id x)
{
    struct build *build = &making->build;
    tensor_id dense = GRAPH_NONE, experts = GRAPH_NONE;
    if (making_has(making, DENSE.down))
        dense = through(making, &DENSE, x);
    else if (making_has(making, SHARED.down))
        dense = through_shared(making, x);
    if (making_has(making, EXPERTS.down))
        experts = through_experts(making, x);
    if (dense < 0 || experts < 0)
        return dense >= 0 ? dense : experts;
    build->component = DECODER_FFN_DOWN;
    return build_binary(build, GRAPH_ADD, "experts_add", experts, dense);
}
