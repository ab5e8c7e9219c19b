/* Swin transformers as torchvision has them: attention inside windows of 7 x 7 tokens, which shift from one
 * layer to the next; four tokens become one between stages. */
#include "graph/zoo/family.h"

struct swin {
    const char *name;
    int64_t first; /* features, doubled by each stage */
    int64_t heads;
    int layers[4];
};

static const struct swin SWINS[] = {
    {"swin_t", 96, 3, {2, 2, 6, 2}},
    {"swin_s", 96, 3, {2, 2, 18, 2}},
    {"swin_b", 128, 4, {2, 2, 18, 2}},
};

enum { WINDOW = 7, SEEN = WINDOW * WINDOW, OFFSETS = (2 * WINDOW - 1) * (2 * WINDOW - 1) };

/* The trained table says how much a token heeds another by where it lies; it is spread out once, when a
 * model is loaded. */
static tensor_id heed(struct build *b, int64_t heads)
{
    return build_tensor(b, GRAPH_PARAMETER, "attn.relative_position_bias_table", 2,
                        (int64_t[]){OFFSETS, heads});
}

/* What is only cut up and shifted can be read so where it lies; what is filled up is copied. */
static tensor_id cut(struct build *b, const char *name, tensor_id x, bool is_whole, int rank,
                     const int64_t *dims)
{
    return is_whole ? build_rearrange(b, name, x, rank, dims) : build_move(b, name, x, rank, dims);
}

/* Windows are sequences of their own; the last of a row is filled up. */
static tensor_id attend(struct build *b, tensor_id in, int64_t heads)
{
    int64_t batch = build_dim(b, in, 0), height = build_dim(b, in, 1), width = build_dim(b, in, 2);
    int64_t features = build_dim(b, in, 3);
    int64_t windows = batch * ((height + WINDOW - 1) / WINDOW) * ((width + WINDOW - 1) / WINDOW);
    bool is_whole = height % WINDOW == 0 && width % WINDOW == 0;
    tensor_id x = build_norm(b, GRAPH_LAYER_NORM, "norm1", in, true);
    x = cut(b, "attn.windows", x, is_whole, 3, (int64_t[]){windows, SEEN, features});
    x = build_linear(b, "attn.qkv", x, 3 * features, true);
    struct graph_node node = {.op = GRAPH_ATTENTION,
                              .name = "attn",
                              .as.attention = {.heads = heads,
                                               .heads_kv = heads,
                                               .key_size = features / heads,
                                               .value_size = features / heads,
                                               .tokens = SEEN,
                                               .sequences = windows}};
    tensor_id inputs[] = {x, x, x, heed(b, heads)};
    x = build_node(b, &node, inputs, 4, 3, (int64_t[]){windows, SEEN, features});
    x = build_linear(b, "attn.proj", x, features, true);
    x = cut(b, "attn.image", x, is_whole, 4, (int64_t[]){batch, height, width, features});
    return build_binary(b, GRAPH_ADD, "add", in, x);
}

static tensor_id think(struct build *b, tensor_id in)
{
    int64_t features = build_dim(b, in, 3);
    tensor_id x = build_norm(b, GRAPH_LAYER_NORM, "norm2", in, true);
    x = build_linear(b, "mlp.0", x, 4 * features, true);
    x = build_op(b, GRAPH_GELU, "mlp.1", x);
    x = build_linear(b, "mlp.3", x, features, true);
    return build_binary(b, GRAPH_ADD, "add_1", in, x);
}

static tensor_id merge(struct build *b, tensor_id x)
{
    int64_t features = build_dim(b, x, 3);
    int64_t dims[] = {build_dim(b, x, 0), (build_dim(b, x, 1) + 1) / 2,
                      (build_dim(b, x, 2) + 1) / 2, 4 * features};
    bool is_whole = build_dim(b, x, 1) % 2 == 0 && build_dim(b, x, 2) % 2 == 0;
    x = cut(b, "cat", x, is_whole, 4, dims);
    x = build_norm(b, GRAPH_LAYER_NORM, "norm", x, true);
    return build_linear(b, "reduction", x, 2 * features, false);
}

enum err zoo_build_swin(const char *name, const struct graph_setting *setting, struct graph *out,
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
            build_inside(&b, "features.%d.%d.", 2 * stage + 1, i);
            b.layer = layer++;
            x = think(&b, attend(&b, x, swin->heads << stage));
        }
        b.layer = GRAPH_NONE;
        build_inside(&b, "features.%d.", 2 * stage + 2);
        x = stage < 3 ? merge(&b, x) : x;
    }
    build_inside(&b, "%s", "");
    x = build_norm(&b, GRAPH_LAYER_NORM, "norm", x, true);
    x = build_rearrange(&b, "permute", x, 4,
                        (int64_t[]){build_dim(&b, x, 0), build_dim(&b, x, 3), build_dim(&b, x, 1),
                                    build_dim(&b, x, 2)});
    x = build_flatten(&b, "flatten", build_global_pool(&b, "avgpool", x));
    build_output(&b, build_linear(&b, "head", x, 1000, true));
    return build_end(&b);
}
