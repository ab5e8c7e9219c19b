/* Swin transformers as torchvision has them: attention inside windows of 7 x 7 tokens (8 x 8 in version 2), which
 * shift from one layer to the next; four tokens become one between stages.  Version 2 compares directions
 * of queries and keys, computes how they heed each other's places, and norms what is added. */
#include "graph/zoo/family.h"

struct swin {
    const char *name;
    int64_t first; /* features, doubled by each stage */
    int64_t heads;
    int layers[4];
    int64_t window;
    bool is_second; /* version 2 */
};

static const struct swin SWINS[] = {
    {"swin_t", 96, 3, {2, 2, 6, 2}, 7, false},    {"swin_s", 96, 3, {2, 2, 18, 2}, 7, false},
    {"swin_b", 128, 4, {2, 2, 18, 2}, 7, false},  {"swin_v2_t", 96, 3, {2, 2, 6, 2}, 8, true},
    {"swin_v2_s", 96, 3, {2, 2, 18, 2}, 8, true}, {"swin_v2_b", 128, 4, {2, 2, 18, 2}, 8, true},
};

static int64_t offsets_of(const struct swin *swin)
{
    return (2 * swin->window - 1) * (2 * swin->window - 1);
}

/* The trained table says how much a token heeds another by where it lies; it is spread out once, when a
 * model is loaded. */
static tensor_id heed(struct build *b, const struct swin *swin, int64_t heads)
{
    return build_tensor(b, GRAPH_PARAMETER, "attn.relative_position_bias_table", 2,
                        (int64_t[]){offsets_of(swin), heads});
}

/* A small network of distances instead of the table. */
static tensor_id heed_second(struct build *b, const struct swin *swin, int64_t heads)
{
    int64_t seen = swin->window * swin->window;
    tensor_id x = build_tensor(b, GRAPH_BUFFER, "attn.relative_coords_table", 2,
                               (int64_t[]){offsets_of(swin), 2});
    x = build_op(b, GRAPH_RELU, "attn.cpb_mlp.1", build_linear(b, "attn.cpb_mlp.0", x, 512, true));
    x = build_linear(b, "attn.cpb_mlp.2", x, heads, false);
    x = build_move(b, "attn.relative_position_bias", x, 3, (int64_t[]){heads, seen, seen});
    return build_op(b, GRAPH_SIGMOID, "attn.sigmoid", x);
}

/* Queries and keys of length 1. */
static tensor_id directions(struct build *b, tensor_id qkv, int64_t features)
{
    struct graph_node node = {.op = GRAPH_RMS_NORM, .name = "attn.normalize"};
    int64_t dims[] = {build_dim(b, qkv, 0), build_dim(b, qkv, 1), 2 * features};
    tensor_id x = build_rearrange(b, "attn.qk", qkv, 3, dims);
    return build_node(b, &node, &x, 1, 3, dims);
}

/* What is only cut up and shifted can be read so where it lies; what is filled up is copied. */
static tensor_id cut(struct build *b, const char *name, tensor_id x, bool is_whole, int rank,
                     const int64_t *dims)
{
    return is_whole ? build_rearrange(b, name, x, rank, dims) : build_move(b, name, x, rank, dims);
}

static tensor_id look(struct build *b, const struct swin *swin, tensor_id qkv, int64_t heads)
{
    int64_t windows = build_dim(b, qkv, 0), seen = build_dim(b, qkv, 1);
    int64_t features = build_dim(b, qkv, 2) / 3;
    struct graph_node node = {.op = GRAPH_ATTENTION,
                              .name = "attn",
                              .as.attention = {.heads = heads,
                                               .heads_kv = heads,
                                               .key_size = features / heads,
                                               .value_size = features / heads,
                                               .tokens = seen,
                                               .sequences = windows}};
    int64_t dims[] = {windows, seen, features};
    if (!swin->is_second) {
        tensor_id inputs[] = {qkv, qkv, qkv, heed(b, swin, heads)};
        return build_node(b, &node, inputs, 4, 3, dims);
    }
    tensor_id qk = directions(b, qkv, features);
    tensor_id values = build_rearrange(b, "attn.v", qkv, 3, dims);
    tensor_id scale =
        build_tensor(b, GRAPH_PARAMETER, "attn.logit_scale", 3, (int64_t[]){heads, 1, 1});
    tensor_id inputs[] = {qk, qk, values, heed_second(b, swin, heads), scale};
    return build_node(b, &node, inputs, 5, 3, dims);
}

/* Windows are sequences of their own; the last of a row is filled up. */
static tensor_id attend(struct build *b, const struct swin *swin, tensor_id in, int64_t heads)
{
    int64_t batch = build_dim(b, in, 0), height = build_dim(b, in, 1), width = build_dim(b, in, 2);
    int64_t features = build_dim(b, in, 3), side = swin->window;
    int64_t windows = batch * ((height + side - 1) / side) * ((width + side - 1) / side);
    bool is_whole = height % side == 0 && width % side == 0;
    tensor_id x = swin->is_second ? in : build_norm(b, GRAPH_LAYER_NORM, "norm1", in, true);
    x = cut(b, "attn.windows", x, is_whole, 3, (int64_t[]){windows, side * side, features});
    x = build_linear(b, "attn.qkv", x, 3 * features, true);
    x = look(b, swin, x, heads);
    x = build_linear(b, "attn.proj", x, features, true);
    x = cut(b, "attn.image", x, is_whole, 4, (int64_t[]){batch, height, width, features});
    if (swin->is_second)
        x = build_norm(b, GRAPH_LAYER_NORM, "norm1", x, true);
    return build_binary(b, GRAPH_ADD, "add", in, x);
}

static tensor_id think(struct build *b, const struct swin *swin, tensor_id in)
{
    int64_t features = build_dim(b, in, 3);
    tensor_id x = swin->is_second ? in : build_norm(b, GRAPH_LAYER_NORM, "norm2", in, true);
    x = build_linear(b, "mlp.0", x, 4 * features, true);
    x = build_op(b, GRAPH_GELU, "mlp.1", x);
    x = build_linear(b, "mlp.3", x, features, true);
    if (swin->is_second)
        x = build_norm(b, GRAPH_LAYER_NORM, "norm2", x, true);
    return build_binary(b, GRAPH_ADD, "add_1", in, x);
}

static tensor_id merge(struct build *b, const struct swin *swin, tensor_id x)
{
    int64_t features = build_dim(b, x, 3);
    int64_t dims[] = {build_dim(b, x, 0), (build_dim(b, x, 1) + 1) / 2,
                      (build_dim(b, x, 2) + 1) / 2, 4 * features};
    bool is_whole = build_dim(b, x, 1) % 2 == 0 && build_dim(b, x, 2) % 2 == 0;
    x = cut(b, "cat", x, is_whole, 4, dims);
    if (!swin->is_second)
        x = build_norm(b, GRAPH_LAYER_NORM, "norm", x, true);
    x = build_linear(b, "reduction", x, 2 * features, false);
    return swin->is_second ? build_norm(b, GRAPH_LAYER_NORM, "norm", x, true) : x;
}

enum err zoo_build_swin(const char *name, const struct graph_options *setting, struct graph *out,
                        struct error *why)
{
    static const struct build_conv PATCHES = {.kernel = 4, .stride = 4, .has_bias = true};
    const struct swin *swin = ZOO_ROW(SWINS, name);
    struct build_conv patches = PATCHES;
    tensor_id x;
    int32_t layer = 0;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    patches.channels = swin->first;
    x = build_conv(&b, "features.0.0", x, patches);
    x = build_rearrange(
        &b, "features.0.1", x, 4,
        (int64_t[]){build_dim(&b, x, 0), build_dim(&b, x, 2), build_dim(&b, x, 3), swin->first});
    x = build_norm(&b, GRAPH_LAYER_NORM, "features.0.2", x, true);
    for (int stage = 0; stage < 4; stage++) {
        for (int i = 0; i < swin->layers[stage]; i++) {
            build_scope(&b, "features.%d.%d.", 2 * stage + 1, i);
            b.layer = layer++;
            x = think(&b, swin, attend(&b, swin, x, swin->heads << stage));
        }
        b.layer = GRAPH_NONE;
        build_scope(&b, "features.%d.", 2 * stage + 2);
        x = stage < 3 ? merge(&b, swin, x) : x;
    }
    build_scope(&b, "%s", "");
    x = build_norm(&b, GRAPH_LAYER_NORM, "norm", x, true);
    x = build_rearrange(&b, "permute", x, 4,
                        (int64_t[]){build_dim(&b, x, 0), build_dim(&b, x, 3), build_dim(&b, x, 1),
                                    build_dim(&b, x, 2)});
    x = build_flatten(&b, "flatten", build_global_pool(&b, "avgpool", x));
    build_output(&b, build_linear(&b, "head", x, 1000, true));
    return build_end(&b);
}
