/* Mamba-2: one matrix gives the gate, the features, the matrices of the state and the time step of each head.  A prompt
 * is computed in chunks, as products of matrices, and a single token as an update of the state. */
#include "graph/mamba2.h"

#include "graph/blocks.h"
#include "graph/transformers.h"

static int64_t mixed_channels(const struct mamba2_mixer *mixer)
{
    return mixer->inner + 2 * mixer->groups * mixer->state;
}

uint64_t mamba2_mixer_parameters(const struct mamba2_mixer *mixer)
{
    int64_t channels = mixed_channels(mixer), in = mixer->inner + channels + mixer->heads;
    int64_t biases = (mixer->has_bias ? in : 0) + (mixer->has_output_bias ? mixer->hidden : 0) +
                     (mixer->has_no_conv_bias ? 0 : channels);
    int64_t norm = mixer->has_norm ? mixer->inner : 0;
    return (uint64_t)(mixer->hidden * in + channels * mixer->kernel + 3 * mixer->heads +
                      mixer->inner * mixer->hidden + norm + biases);
}

/* ---- the state ---- */

static tensor_id read_state(struct build *b, const struct mamba2_pass *pass, const char *name,
                            int64_t rows, int64_t columns)
{
    if (!pass->is_decode)
        return GRAPH_NONE;
    return build_tensor(b, GRAPH_CACHE, name, DIMS(pass->batch, rows, columns));
}

static void write_state(struct build *b, const struct mamba2_pass *pass, const char *name,
                        tensor_id x, int64_t rows, int64_t columns)
{
    struct graph_node node = {.op = GRAPH_CACHE_WRITE, .name = name};
    tensor_id state = build_node(b, &node, &x, 1, DIMS(pass->batch, rows, columns));
    if (state >= 0)
        b->graph->tensors[state].role = GRAPH_CACHE;
}

/* ---- the mixer ---- */

/* A causal depthwise convolution over features and matrices. */
static tensor_id convolve(struct build *b, const struct mamba2_mixer *mixer,
                          const struct mamba2_pass *pass, tensor_id x)
{
    int64_t channels = mixed_channels(mixer), kernel = mixer->kernel;
    struct build_conv conv = {.channels = channels,
                              .kernel = (int32_t)kernel,
                              .groups = -1,
                              .has_bias = !mixer->has_no_conv_bias};
    tensor_id state = read_state(b, pass, "conv_state", channels, kernel);
    struct graph_node window = {.op = GRAPH_MOVE, .name = "mixer.window", .label = "concat"};
    x = build_node(b, &window, (tensor_id[]){x, state}, state >= 0 ? 2 : 1,
                   DIMS(pass->batch, channels, pass->tokens + kernel - 1));
    write_state(b, pass, "conv_state.new", x, channels, kernel);
    x = build_op(b, GRAPH_SILU, "mixer.act", build_conv(b, "mixer.conv1d", x, conv));
    return build_rearrange(b, "mixer.transpose", x, DIMS(pass->batch, pass->tokens, channels));
}

static tensor_id time_step(struct build *b, const struct mamba2_mixer *mixer,
                           const struct mamba2_pass *pass, tensor_id both)
{
    tensor_id bias = build_tensor(b, GRAPH_PARAMETER, "mixer.dt_bias", DIMS(mixer->heads));
    tensor_id x =
        build_rearrange(b, "mixer.dt", both, DIMS(pass->batch, pass->tokens, mixer->heads));
    x = build_binary(b, GRAPH_ADD, "mixer.dt_add", x, bias);
    return build_op(b, GRAPH_UNARY, "mixer.softplus", x);
}

static tensor_id scan(struct build *b, const struct mamba2_mixer *mixer,
                      const struct mamba2_pass *pass, tensor_id mixed, tensor_id step)
{
    int64_t dims[] = {pass->batch, pass->tokens, mixer->inner};
    int64_t chunk = pass->tokens < mixer->chunk ? pass->tokens : mixer->chunk;
    tensor_id features = build_rearrange(b, "mixer.features", mixed, 3, dims);
    tensor_id matrices =
        build_rearrange(b, "mixer.b_and_c", mixed,
                        DIMS(pass->batch, pass->tokens, 2 * mixer->groups * mixer->state));
    tensor_id decay = build_tensor(b, GRAPH_PARAMETER, "mixer.A_log", DIMS(mixer->heads));
    tensor_id skip = build_tensor(b, GRAPH_PARAMETER, "mixer.D", DIMS(mixer->heads));
    tensor_id state = read_state(b, pass, "ssm_state", mixer->inner, mixer->state);
    struct graph_node node = {.op = GRAPH_SCAN, .name = "mixer.scan"};
    node.as.recurrent = (struct graph_recurrent){
        .steps = 1, .hidden = mixer->state, .directions = 1, .chunk = pass->is_decode ? 0 : chunk};
    tensor_id x = build_node(b, &node, (tensor_id[]){features, step, matrices, decay, skip, state},
                             state >= 0 ? 6 : 5, 3, dims);
    write_state(b, pass, "ssm_state.new", x, mixer->inner, mixer->state);
    return x;
}

tensor_id mamba2_mixer(struct build *b, const struct mamba2_mixer *mixer,
                       const struct mamba2_pass *pass, tensor_id x)
{
    int64_t channels = mixed_channels(mixer);
    tensor_id both = build_linear(b, "mixer.in_proj", x, mixer->inner + channels + mixer->heads,
                                  mixer->has_bias);
    tensor_id gate =
        build_rearrange(b, "mixer.gate", both, DIMS(pass->batch, pass->tokens, mixer->inner));
    tensor_id mixed =
        build_rearrange(b, "mixer.mixed", both, DIMS(pass->batch, channels, pass->tokens));
    tensor_id step = time_step(b, mixer, pass, both);
    x = scan(b, mixer, pass, convolve(b, mixer, pass, mixed), step);
    gate = build_op(b, GRAPH_SILU, "mixer.gate_act", gate);
    x = build_binary(b, GRAPH_MUL, "mixer.gated", x, gate);
    if (mixer->has_norm)
        x = block_norm_of(b, &(struct block){.is_rms_norm = true}, "mixer.norm", x);
    x = build_linear(b, "mixer.out_proj", x, mixer->hidden, mixer->has_output_bias);
    if (x >= 0) /* each device has some of the features: a partial sum */
        b->graph->nodes[b->graph->tensors[x].producer].split = GRAPH_SPLIT_ROWS;
    return x;
}

/* ---- the model ---- */

tensor_id transformer_mamba2(struct build *b, const struct transformer_mamba2 *mamba,
                             const struct graph_options *options)
{
    const struct block norms = {.is_rms_norm = true};
    bool is_decode = options->phase == GRAPH_DECODE;
    struct mamba2_pass pass = {options->batch, is_decode ? 1 : options->tokens, is_decode};
    int64_t dims[] = {mamba->vocabulary, mamba->mixer.hidden};
    tensor_id ids = block_text_input(b, pass.batch, pass.tokens);
    b->component = DECODER_EMBEDDING;
    tensor_id table = build_tensor(b, GRAPH_PARAMETER, "backbone.embeddings.weight", 2, dims);
    tensor_id x = build_embedding_with(b, "backbone.embeddings", ids, table);
    b->component = DECODER_COMPONENT_COUNT;
    for (int i = 0; i < mamba->layers; i++) {
        build_scope(b, "backbone.layers.%d.", i);
        b->layer = i;
        tensor_id mixed =
            mamba2_mixer(b, &mamba->mixer, &pass, block_norm_of(b, &norms, "norm", x));
        x = build_binary(b, GRAPH_ADD, "add", x, mixed);
    }
    build_root(b);
    b->layer = GRAPH_NONE;
    x = block_norm_of(b, &norms, "backbone.norm_f", x);
    if (mamba->has_no_head)
        return x;
    if (mamba->has_own_head)
        table = build_tensor(b, GRAPH_PARAMETER, "lm_head.weight", 2, dims);
    return block_last_logits(b, "lm_head", x, table);
}
