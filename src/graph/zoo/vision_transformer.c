/* Vision transformers of torchvision: ViT; Swin, with attention in windows of 7 x 7 tokens (8 x 8 in version 2) that
 * shift from layer to layer; MaxViT, with MBConv blocks and attention in windows and grids. */
#include "graph/transformers.h"
#include "graph/zoo/family.h"

/* ---- ViT ---- */

struct vit_row {
    const char *name;
    struct transformer_vit sizes;
};

#define VIT(patch, layers, hidden, heads, intermediate)                                            \
    {224, patch, 3, {hidden, heads, intermediate, layers, GRAPH_GELU}, 1000, true, false, false}
static const struct vit_row VITS[] = {
    {"vit_b_16", VIT(16, 12, 768, 12, 3072)},  {"vit_b_32", VIT(32, 12, 768, 12, 3072)},
    {"vit_l_16", VIT(16, 24, 1024, 16, 4096)}, {"vit_l_32", VIT(32, 24, 1024, 16, 4096)},
    {"vit_h_14", VIT(14, 32, 1280, 16, 5120)},
};
#undef VIT

tensor_id zoo_build_vit(struct build *b, const struct graph_options *options)
{
    const struct vit_row *row = ZOO_ROW(VITS, b->graph->name);
    return transformer_vit(b, &row->sizes, options);
}

/* ---- Swin ---- */

struct swin {
    const char *name;
    int64_t first; /* features, doubled by each stage */
    int64_t heads;
    int layers[4];
    int64_t window;
    bool is_v2; /* version 2: cosine attention, computed position bias, post-norm */
};

static const struct swin SWINS[] = {
    {"swin_t", 96, 3, {2, 2, 6, 2}, 7, false},    {"swin_s", 96, 3, {2, 2, 18, 2}, 7, false},
    {"swin_b", 128, 4, {2, 2, 18, 2}, 7, false},  {"swin_v2_t", 96, 3, {2, 2, 6, 2}, 8, true},
    {"swin_v2_s", 96, 3, {2, 2, 18, 2}, 8, true}, {"swin_v2_b", 128, 4, {2, 2, 18, 2}, 8, true},
};

static int64_t relative_positions(const struct swin *swin)
{
    return (2 * swin->window - 1) * (2 * swin->window - 1);
}

/* A trained table of biases by relative position, expanded once when the model is loaded. */
static tensor_id position_bias(struct build *b, const struct swin *swin, int64_t heads)
{
    return build_tensor(b, GRAPH_PARAMETER, "attn.relative_position_bias_table",
                        DIMS(relative_positions(swin), heads));
}

/* An MLP over relative coordinates instead of the table. */
static tensor_id position_bias_v2(struct build *b, const struct swin *swin, int64_t heads)
{
    int64_t tokens = swin->window * swin->window;
    tensor_id x = build_tensor(b, GRAPH_BUFFER, "attn.relative_coords_table",
                               DIMS(relative_positions(swin), 2));
    x = build_op(b, GRAPH_RELU, "attn.cpb_mlp.1", build_linear(b, "attn.cpb_mlp.0", x, 512, true));
    x = build_linear(b, "attn.cpb_mlp.2", x, heads, false);
    x = build_move(b, "attn.relative_position_bias", x, DIMS(heads, tokens, tokens));
    return build_op(b, GRAPH_SIGMOID, "attn.sigmoid", x);
}

/* Cosine attention: Q and K are normalized. */
static tensor_id normalized_qk(struct build *b, tensor_id qkv, int64_t features)
{
    struct graph_node node = {.op = GRAPH_RMS_NORM, .name = "attn.normalize"};
    tensor_id x = build_rearrange(b, "attn.qk", qkv,
                                  DIMS(build_dim(b, qkv, 0), build_dim(b, qkv, 1), 2 * features));
    return build_like(b, &node, &x, 1, x);
}

/* A partition into complete windows is read in place; one that needs padding is copied. */
static tensor_id partition(struct build *b, const char *name, tensor_id x, bool is_exact, int rank,
                           const int64_t *dims)
{
    return is_exact ? build_rearrange(b, name, x, rank, dims) : build_move(b, name, x, rank, dims);
}

static tensor_id window_scores(struct build *b, const struct swin *swin, tensor_id qkv,
                               int64_t heads)
{
    int64_t windows = build_dim(b, qkv, 0), tokens = build_dim(b, qkv, 1);
    int64_t features = build_dim(b, qkv, 2) / 3;
    struct graph_node node = {.op = GRAPH_ATTENTION,
                              .name = "attn",
                              .as.attention = build_heads(b, qkv, heads, features)};
    int64_t dims[] = {windows, tokens, features};
    if (!swin->is_v2) {
        tensor_id inputs[] = {qkv, qkv, qkv, position_bias(b, swin, heads)};
        return build_node(b, &node, inputs, 4, 3, dims);
    }
    tensor_id qk = normalized_qk(b, qkv, features);
    tensor_id values = build_rearrange(b, "attn.v", qkv, 3, dims);
    tensor_id scale = build_tensor(b, GRAPH_PARAMETER, "attn.logit_scale", DIMS(heads, 1, 1));
    tensor_id inputs[] = {qk, qk, values, position_bias_v2(b, swin, heads), scale};
    return build_node(b, &node, inputs, 5, 3, dims);
}

/* Each window is a sequence; the last one of a row is padded. */
static tensor_id windowed_attention(struct build *b, const struct swin *swin, tensor_id in,
                                    int64_t heads)
{
    int64_t batch = build_dim(b, in, 0), height = build_dim(b, in, 1), width = build_dim(b, in, 2);
    int64_t features = build_dim(b, in, 3), side = swin->window;
    int64_t windows = batch * ((height + side - 1) / side) * ((width + side - 1) / side);
    bool is_exact = height % side == 0 && width % side == 0;
    tensor_id x = swin->is_v2 ? in : build_norm(b, GRAPH_LAYER_NORM, "norm1", in);
    x = partition(b, "attn.windows", x, is_exact, DIMS(windows, side * side, features));
    x = build_linear(b, "attn.qkv", x, 3 * features, true);
    x = window_scores(b, swin, x, heads);
    x = build_linear(b, "attn.proj", x, features, true);
    x = partition(b, "attn.image", x, is_exact, DIMS(batch, height, width, features));
    if (swin->is_v2)
        x = build_norm(b, GRAPH_LAYER_NORM, "norm1", x);
    return build_binary(b, GRAPH_ADD, "add", in, x);
}

static tensor_id swin_mlp(struct build *b, const struct swin *swin, tensor_id in)
{
    int64_t features = build_dim(b, in, 3);
    tensor_id x = swin->is_v2 ? in : build_norm(b, GRAPH_LAYER_NORM, "norm2", in);
    x = build_linear(b, "mlp.0", x, 4 * features, true);
    x = build_op(b, GRAPH_GELU, "mlp.1", x);
    x = build_linear(b, "mlp.3", x, features, true);
    if (swin->is_v2)
        x = build_norm(b, GRAPH_LAYER_NORM, "norm2", x);
    return build_binary(b, GRAPH_ADD, "add_1", in, x);
}

static tensor_id patch_merging(struct build *b, const struct swin *swin, tensor_id x)
{
    int64_t features = build_dim(b, x, 3);
    bool is_exact = build_dim(b, x, 1) % 2 == 0 && build_dim(b, x, 2) % 2 == 0;
    x = partition(b, "cat", x, is_exact,
                  DIMS(build_dim(b, x, 0), (build_dim(b, x, 1) + 1) / 2,
                       (build_dim(b, x, 2) + 1) / 2, 4 * features));
    if (!swin->is_v2)
        x = build_norm(b, GRAPH_LAYER_NORM, "norm", x);
    x = build_linear(b, "reduction", x, 2 * features, false);
    return swin->is_v2 ? build_norm(b, GRAPH_LAYER_NORM, "norm", x) : x;
}

tensor_id zoo_build_swin(struct build *b, const struct graph_options *options)
{
    static const struct build_conv PATCHES = {.kernel = 4, .stride = 4, .has_bias = true};
    const struct swin *swin = ZOO_ROW(SWINS, b->graph->name);
    struct build_conv patches = PATCHES;
    int32_t layer = 0;
    tensor_id x = zoo_image(b, options);
    patches.channels = swin->first;
    x = build_conv(b, "features.0.0", x, patches);
    x = build_rearrange(
        b, "features.0.1", x,
        DIMS(build_dim(b, x, 0), build_dim(b, x, 2), build_dim(b, x, 3), swin->first));
    x = build_norm(b, GRAPH_LAYER_NORM, "features.0.2", x);
    for (int stage = 0; stage < 4; stage++) {
        for (int i = 0; i < swin->layers[stage]; i++) {
            build_scope(b, "features.%d.%d.", 2 * stage + 1, i);
            b->layer = layer++;
            x = swin_mlp(b, swin, windowed_attention(b, swin, x, swin->heads << stage));
        }
        b->layer = GRAPH_NONE;
        build_scope(b, "features.%d.", 2 * stage + 2);
        x = stage < 3 ? patch_merging(b, swin, x) : x;
    }
    build_root(b);
    x = build_norm(b, GRAPH_LAYER_NORM, "norm", x);
    x = build_rearrange(
        b, "permute", x,
        DIMS(build_dim(b, x, 0), build_dim(b, x, 3), build_dim(b, x, 1), build_dim(b, x, 2)));
    return zoo_classifier(b, x, "avgpool", NULL, "head");
}

/* ---- MaxViT ---- */

enum {
    MAXVIT_WINDOW = 7,
    MAXVIT_TOKENS = MAXVIT_WINDOW * MAXVIT_WINDOW,
    MAXVIT_POSITIONS = (2 * MAXVIT_WINDOW - 1) * (2 * MAXVIT_WINDOW - 1)
};
enum { MAXVIT_HEAD_SIZE = 32, MAXVIT_STAGES = 4 };

static const struct {
    int64_t channels;
    int layers;
} MAXVIT[MAXVIT_STAGES] = {{64, 2}, {128, 2}, {256, 5}, {512, 2}};

static tensor_id mbconv(struct build *b, tensor_id in, int64_t channels, int32_t stride)
{
    struct build_conv depthwise = zoo_depthwise_conv(4 * channels, 3, stride);
    struct build_conv last = {.channels = channels, .kernel = 1, .has_bias = true};
    tensor_id shortcut = in;
    if (stride != 1)
        shortcut = build_pool(
            b, "proj.0", in,
            (struct build_pool){GRAPH_AVG_POOL, .kernel = 3, .stride = stride, .pad = 1});
    if (stride != 1 || build_dim(b, in, 1) != channels)
        shortcut = build_conv(b, "proj.1", shortcut, last);
    tensor_id x = build_batch_norm(b, "layers.pre_norm", in);
    x = zoo_conv_norm(b, "layers.conv_a", x, zoo_same_conv(4 * channels, 1, 1), GRAPH_GELU);
    x = zoo_conv_norm(b, "layers.conv_b", x, depthwise, GRAPH_GELU);
    x = zoo_squeeze_excite(b, "layers.squeeze_excitation", x,
                           (struct zoo_squeeze_excite){channels / 4, GRAPH_SILU, GRAPH_SIGMOID});
    x = build_conv(b, "layers.conv_c", x, last);
    return build_binary(b, GRAPH_ADD, "add", shortcut, x);
}

/* Window and grid attention have the same cost: they differ in which pixels are grouped. */

static tensor_id maxvit_attention(struct build *b, tensor_id in)
{
    int64_t windows = build_dim(b, in, 0), channels = build_dim(b, in, 2);
    tensor_id x = build_norm(b, GRAPH_LAYER_NORM, "attn_layer.0", in);
    x = build_linear(b, "attn_layer.1.to_qkv", x, 3 * channels, true);
    tensor_id table = build_tensor(b, GRAPH_PARAMETER, "attn_layer.1.relative_position_bias_table",
                                   DIMS(MAXVIT_POSITIONS, channels / MAXVIT_HEAD_SIZE));
    struct graph_node node = {.op = GRAPH_ATTENTION,
                              .name = "attn_layer.1",
                              .as.attention =
                                  build_heads(b, x, channels / MAXVIT_HEAD_SIZE, channels)};
    tensor_id inputs[] = {x, x, x, table};
    x = build_node(b, &node, inputs, 4, DIMS(windows, MAXVIT_TOKENS, channels));
    x = build_linear(b, "attn_layer.1.merge", x, channels, true);
    return build_binary(b, GRAPH_ADD, "add", in, x);
}

static tensor_id maxvit_mlp(struct build *b, tensor_id in)
{
    int64_t channels = build_dim(b, in, 2);
    tensor_id x = build_norm(b, GRAPH_LAYER_NORM, "mlp_layer.0", in);
    x = build_linear(b, "mlp_layer.1", x, 4 * channels, true);
    x = build_op(b, GRAPH_GELU, "mlp_layer.2", x);
    x = build_linear(b, "mlp_layer.3", x, channels, true);
    return build_binary(b, GRAPH_ADD, "add_1", in, x);
}

static tensor_id partition_attention(struct build *b, tensor_id in)
{
    int64_t batch = build_dim(b, in, 0), channels = build_dim(b, in, 1);
    int64_t height = build_dim(b, in, 2), width = build_dim(b, in, 3);
    if (height % MAXVIT_WINDOW || width % MAXVIT_WINDOW)
        return build_fail(
            b, "partition",
            "cannot be partitioned into windows: the image size must be a multiple of 224");
    int64_t windows = batch * (height / MAXVIT_WINDOW) * (width / MAXVIT_WINDOW);
    tensor_id x = build_rearrange(b, "partition", in, DIMS(windows, MAXVIT_TOKENS, channels));
    x = maxvit_mlp(b, maxvit_attention(b, x));
    return build_rearrange(b, "departition", x, DIMS(batch, channels, height, width));
}

static tensor_id maxvit_stem(struct build *b, tensor_id x)
{
    x = zoo_conv_norm(b, "stem.0", x, zoo_same_conv(64, 3, 2), GRAPH_GELU);
    return build_conv(b, "stem.1.0", x, zoo_biased_conv(64, 3, 1));
}

static tensor_id maxvit_classifier(struct build *b, tensor_id x)
{
    int64_t channels = build_dim(b, x, 1);
    x = build_flatten(b, "classifier.1", build_global_pool(b, "classifier.0", x));
    x = build_norm(b, GRAPH_LAYER_NORM, "classifier.2", x);
    x = build_linear(b, "classifier.3", x, channels, true);
    x = build_op(b, GRAPH_TANH, "classifier.4", x);
    return build_linear(b, "classifier.5", x, 1000, false);
}

tensor_id zoo_build_maxvit(struct build *b, const struct graph_options *options)
{
    tensor_id x = zoo_image(b, options);
    int32_t layer = 0;
    x = maxvit_stem(b, x);
    for (int stage = 0; stage < MAXVIT_STAGES; stage++)
        for (int i = 0; i < MAXVIT[stage].layers; i++) {
            b->layer = layer++;
            build_scope(b, "blocks.%d.layers.%d.layers.MBconv.", stage, i);
            x = mbconv(b, x, MAXVIT[stage].channels, i == 0 ? 2 : 1);
            build_scope(b, "blocks.%d.layers.%d.layers.window_attention.", stage, i);
            x = partition_attention(b, x);
            build_scope(b, "blocks.%d.layers.%d.layers.grid_attention.", stage, i);
            x = partition_attention(b, x);
        }
    b->layer = GRAPH_NONE;
    build_root(b);
    return maxvit_classifier(b, x);
}
