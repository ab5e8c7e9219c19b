/* Mamba: each layer mixes tokens with a short convolution and a selective scan, whose state stays in memory between
 * passes.  Nothing grows with the context. */
#include "graph/blocks.h"
#include "graph/transformers.h"

struct pass {
    struct build *b;
    const struct transformer_mamba *mamba;
    int64_t batch, tokens;
    bool is_decode;
};

static void write_state(struct pass *pass, const char *name, tensor_id x, int64_t columns)
{
    struct graph_node node = {.op = GRAPH_CACHE_WRITE, .name = name};
    tensor_id state =
        build_node(pass->b, &node, &x, 1, DIMS(pass->batch, pass->mamba->inner, columns));
    if (state >= 0)
        pass->b->graph->tensors[state].role = GRAPH_CACHE;
}

static tensor_id read_state(struct pass *pass, const char *name, int64_t columns)
{
    if (!pass->is_decode)
        return GRAPH_NONE;
    return build_tensor(pass->b, GRAPH_CACHE, name, DIMS(pass->batch, pass->mamba->inner, columns));
}

/* Each device has some of the features that the matrix reads: its result is a partial sum. */
static tensor_id row_parallel(struct build *b, tensor_id x)
{
    if (x >= 0)
        b->graph->nodes[b->graph->tensors[x].producer].split = GRAPH_SPLIT_ROWS;
    return x;
}

/* A causal depthwise convolution. */
static tensor_id convolve(struct pass *pass, tensor_id x)
{
    struct build *b = pass->b;
    const struct transformer_mamba *mamba = pass->mamba;
    int64_t kernel = mamba->kernel;
    struct build_conv conv = {.channels = mamba->inner,
                              .kernel = (int32_t)kernel,
                              .groups = -1,
                              .has_bias = !mamba->has_no_conv_bias};
    tensor_id state = read_state(pass, "conv_state", kernel);
    struct graph_node window = {.op = GRAPH_MOVE, .name = "conv_window", .label = "concat"};
    x = build_node(b, &window, (tensor_id[]){x, state}, state >= 0 ? 2 : 1,
                   DIMS(pass->batch, mamba->inner, pass->tokens + kernel - 1));
    write_state(pass, "conv_state.new", x, kernel);
    x = build_op(b, GRAPH_SILU, "act", build_conv(b, "conv1d", x, conv));
    return build_rearrange(b, "conv.transpose", x, DIMS(pass->batch, pass->tokens, mamba->inner));
}

/* The time step and the two matrices of the state depend on the token. */
static tensor_id scan(struct pass *pass, tensor_id x)
{
    struct build *b = pass->b;
    const struct transformer_mamba *mamba = pass->mamba;
    int64_t dims[] = {pass->batch, pass->tokens, mamba->rank};
    int64_t columns = mamba->rank + 2 * mamba->state;
    tensor_id selected = row_parallel(b, build_linear(b, "x_proj", x, columns, false));
    tensor_id step = build_rearrange(b, "time_step", selected, 3, dims);
    step = build_linear(b, "dt_proj", step, mamba->inner, true);
    step = build_op(b, GRAPH_UNARY, "softplus", step);
    dims[2] = 2 * mamba->state;
    tensor_id matrices = build_rearrange(b, "b_and_c", selected, 3, dims);
    tensor_id decay = build_tensor(b, GRAPH_PARAMETER, "A_log", DIMS(mamba->inner, mamba->state));
    tensor_id skip = build_tensor(b, GRAPH_PARAMETER, "D", 1, &mamba->inner);
    tensor_id state = read_state(pass, "ssm_state", mamba->state);
    struct graph_node node = {.op = GRAPH_SCAN, .name = "selective_scan"};
    node.as.recurrent =
        (struct graph_recurrent){.steps = 1, .hidden = mamba->state, .directions = 1};
    dims[2] = mamba->inner;
    x = build_node(b, &node, (tensor_id[]){x, step, matrices, decay, skip, state},
                   state >= 0 ? 6 : 5, 3, dims);
    write_state(pass, "ssm_state.new", x, mamba->state);
    return x;
}

static tensor_id add_layer(struct pass *pass, tensor_id stream)
{
    struct build *b = pass->b;
    const struct transformer_mamba *mamba = pass->mamba;
    tensor_id x = block_norm_of(b, &(struct block){.is_rms_norm = true}, "norm", stream);
    tensor_id both = build_linear(b, "mixer.in_proj", x, 2 * mamba->inner, mamba->has_bias);
    tensor_id gate =
        build_rearrange(b, "mixer.gate", both, DIMS(pass->batch, pass->tokens, mamba->inner));
    x = build_rearrange(b, "mixer.features", both, DIMS(pass->batch, mamba->inner, pass->tokens));
    x = scan(pass, convolve(pass, x));
    gate = build_op(b, GRAPH_SILU, "mixer.gate_act", gate);
    x = build_binary(b, GRAPH_MUL, "mixer.gated", x, gate);
    x = row_parallel(b, build_linear(b, "mixer.out_proj", x, mamba->hidden, mamba->has_bias));
    return build_binary(b, GRAPH_ADD, "add", stream, x);
}

tensor_id transformer_mamba(struct build *b, const struct transformer_mamba *mamba,
                            const struct graph_options *options)
{
    bool is_decode = options->phase == GRAPH_DECODE;
    struct pass pass = {b, mamba, options->batch, is_decode ? 1 : options->tokens, is_decode};
    tensor_id ids = block_text_input(b, pass.batch, pass.tokens);
    b->component = DECODER_EMBEDDING;
    tensor_id table = build_tensor(b, GRAPH_PARAMETER, "backbone.embeddings.weight",
                                   DIMS(mamba->vocabulary, mamba->hidden));
    tensor_id x = build_embedding_with(b, "backbone.embeddings", ids, table);
    b->component = DECODER_COMPONENT_COUNT;
    for (int i = 0; i < mamba->layers; i++) {
        build_scope(b, "backbone.layers.%d.", i);
        b->layer = i;
        x = add_layer(&pass, x);
    }
    build_root(b);
    b->layer = GRAPH_NONE;
    x = block_norm_of(b, &(struct block){.is_rms_norm = true}, "backbone.norm_f", x);
    if (mamba->has_no_head)
        return x;
    if (mamba->has_own_head)
        table = build_tensor(b, GRAPH_PARAMETER, "lm_head.weight",
                             DIMS(mamba->vocabulary, mamba->hidden));
    return block_last_logits(b, "lm_head", x, table);
}
