/* MaxViT as torchvision has it: inverted residuals, then attention inside of windows and over a grid of
 * pixels that lie far from each other. */
#include "graph/zoo/family.h"

enum { WINDOW = 7, SEEN = WINDOW * WINDOW, OFFSETS = (2 * WINDOW - 1) * (2 * WINDOW - 1) };
enum { HEAD_SIZE = 32, STAGES = 4 };

static const struct {
    int64_t channels;
    int layers;
} STAGE[STAGES] = {{64, 2}, {128, 2}, {256, 5}, {512, 2}};

/* ---- convolutions ---- */

static tensor_id inverted(struct build *b, tensor_id in, int64_t channels, int32_t stride)
{
    struct build_conv each = zoo_same(4 * channels, 3, stride);
    struct build_conv last = {.channels = channels, .kernel = 1, .has_bias = true};
    tensor_id shortcut = in;
    each.groups = -1;
    if (stride != 1)
        shortcut = build_pool(
            b, "proj.0", in,
            (struct build_pool){GRAPH_AVG_POOL, .kernel = 3, .stride = stride, .pad = 1});
    if (stride != 1 || build_dim(b, in, 1) != channels)
        shortcut = build_conv(b, "proj.1", shortcut, last);
    tensor_id x = build_batch_norm(b, "layers.pre_norm", in);
    x = zoo_conv_norm(b, "layers.conv_a", x, zoo_same(4 * channels, 1, 1), GRAPH_GELU);
    x = zoo_conv_norm(b, "layers.conv_b", x, each, GRAPH_GELU);
    x = zoo_excite(b, "layers.squeeze_excitation", x,
                   (struct zoo_excite){channels / 4, GRAPH_SILU, GRAPH_SIGMOID});
    x = build_conv(b, "layers.conv_c", x, last);
    return build_binary(b, GRAPH_ADD, "add", shortcut, x);
}

/* ---- attention: of windows and of grids alike, they differ in which pixels lie together ---- */

static tensor_id attend(struct build *b, tensor_id in)
{
    int64_t parts = build_dim(b, in, 0), channels = build_dim(b, in, 2);
    tensor_id x = build_norm(b, GRAPH_LAYER_NORM, "attn_layer.0", in, true);
    x = build_linear(b, "attn_layer.1.to_qkv", x, 3 * channels, true);
    tensor_id table = build_tensor(b, GRAPH_PARAMETER, "attn_layer.1.relative_position_bias_table",
                                   2, (int64_t[]){OFFSETS, channels / HEAD_SIZE});
    struct graph_node node = {.op = GRAPH_ATTENTION,
                              .name = "attn_layer.1",
                              .as.attention = {.heads = channels / HEAD_SIZE,
                                               .heads_kv = channels / HEAD_SIZE,
                                               .key_size = HEAD_SIZE,
                                               .value_size = HEAD_SIZE,
                                               .tokens = SEEN,
                                               .sequences = parts}};
    tensor_id inputs[] = {x, x, x, table};
    x = build_node(b, &node, inputs, 4, 3, (int64_t[]){parts, SEEN, channels});
    x = build_linear(b, "attn_layer.1.merge", x, channels, true);
    return build_binary(b, GRAPH_ADD, "add", in, x);
}

static tensor_id think(struct build *b, tensor_id in)
{
    int64_t channels = build_dim(b, in, 2);
    tensor_id x = build_norm(b, GRAPH_LAYER_NORM, "mlp_layer.0", in, true);
    x = build_linear(b, "mlp_layer.1", x, 4 * channels, true);
    x = build_op(b, GRAPH_GELU, "mlp_layer.2", x);
    x = build_linear(b, "mlp_layer.3", x, channels, true);
    return build_binary(b, GRAPH_ADD, "add_1", in, x);
}

static tensor_id look_around(struct build *b, tensor_id in)
{
    int64_t batch = build_dim(b, in, 0), channels = build_dim(b, in, 1);
    int64_t height = build_dim(b, in, 2), width = build_dim(b, in, 3);
    if (height % WINDOW || width % WINDOW)
        return build_fail(b, "partition", "has no whole windows: give an image of 224, 448, ...");
    int64_t parts = batch * (height / WINDOW) * (width / WINDOW);
    tensor_id x = build_rearrange(b, "partition", in, 3, (int64_t[]){parts, SEEN, channels});
    x = think(b, attend(b, x));
    return build_rearrange(b, "departition", x, 4, (int64_t[]){batch, channels, height, width});
}

/* ---- the whole ---- */

static tensor_id begin(struct build *b, tensor_id x)
{
    struct build_conv second = zoo_same(64, 3, 1);
    second.has_bias = true;
    x = zoo_conv_norm(b, "stem.0", x, zoo_same(64, 3, 2), GRAPH_GELU);
    return build_conv(b, "stem.1.0", x, second);
}

static tensor_id classify(struct build *b, tensor_id x)
{
    int64_t channels = build_dim(b, x, 1);
    x = build_flatten(b, "classifier.1", build_global_pool(b, "classifier.0", x));
    x = build_norm(b, GRAPH_LAYER_NORM, "classifier.2", x, true);
    x = build_linear(b, "classifier.3", x, channels, true);
    x = build_op(b, GRAPH_TANH, "classifier.4", x);
    return build_linear(b, "classifier.5", x, 1000, false);
}

enum err zoo_build_maxvit(const char *name, const struct graph_options *setting, struct graph *out,
                          struct error *why)
{
    tensor_id x;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    int32_t layer = 0;
    x = begin(&b, x);
    for (int stage = 0; stage < STAGES; stage++)
        for (int i = 0; i < STAGE[stage].layers; i++) {
            b.layer = layer++;
            build_scope(&b, "blocks.%d.layers.%d.layers.MBconv.", stage, i);
            x = inverted(&b, x, STAGE[stage].channels, i == 0 ? 2 : 1);
            build_scope(&b, "blocks.%d.layers.%d.layers.window_attention.", stage, i);
            x = look_around(&b, x);
            build_scope(&b, "blocks.%d.layers.%d.layers.grid_attention.", stage, i);
            x = look_around(&b, x);
        }
    b.layer = GRAPH_NONE;
    build_scope(&b, "%s", "");
    build_output(&b, classify(&b, x));
    return build_end(&b);
}
