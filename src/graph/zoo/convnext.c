/* ConvNeXt as torchvision has it: each channel filtered by itself, then a feed-forward of each pixel. */
#include "graph/zoo/family.h"

struct convnext {
    const char *name;
    int blocks[4];
    int64_t first; /* channels, doubled by each stage */
};

static const struct convnext CONVNEXTS[] = {
    {"convnext_tiny", {3, 3, 9, 3}, 96},
    {"convnext_small", {3, 3, 27, 3}, 96},
    {"convnext_base", {3, 3, 27, 3}, 128},
    {"convnext_large", {3, 3, 27, 3}, 192},
};

/* Their LayerNorm2d normalises the channels of each pixel: as many operations as a group norm. */
static tensor_id norm(struct build *b, const char *name, tensor_id x)
{
    return build_norm(b, GRAPH_GROUP_NORM, name, x, true);
}

static tensor_id block(struct build *b, tensor_id in)
{
    int64_t batch = build_dim(b, in, 0), channels = build_dim(b, in, 1);
    int64_t height = build_dim(b, in, 2), width = build_dim(b, in, 3);
    struct build_conv each = zoo_same(channels, 7, 1);
    each.groups = -1;
    each.has_bias = true;
    tensor_id x = build_conv(b, "block.0", in, each);
    x = build_rearrange(b, "block.1", x, 4, (int64_t[]){batch, height, width, channels});
    x = build_norm(b, GRAPH_LAYER_NORM, "block.2", x, true);
    x = build_linear(b, "block.3", x, 4 * channels, true);
    x = build_op(b, GRAPH_GELU, "block.4", x);
    x = build_linear(b, "block.5", x, channels, true);
    x = build_rearrange(b, "block.6", x, 4, (int64_t[]){batch, channels, height, width});
    tensor_id scale =
        build_tensor(b, GRAPH_PARAMETER, "layer_scale", 3, (int64_t[]){channels, 1, 1});
    x = build_binary(b, GRAPH_MUL, "mul", x, scale);
    return build_binary(b, GRAPH_ADD, "add", x, in);
}

static struct build_conv patches(int64_t channels, int32_t size)
{
    return (struct build_conv){
        .channels = channels, .kernel = size, .stride = size, .has_bias = true};
}

enum err zoo_build_convnext(const char *name, const struct graph_options *setting,
                            struct graph *out, struct error *why)
{
    const struct convnext *net = ZOO_ROW(CONVNEXTS, name);
    tensor_id x;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    x = build_conv(&b, "features.0.0", x, patches(net->first, 4));
    x = norm(&b, "features.0.1", x);
    for (int stage = 0; stage < 4; stage++) {
        if (stage > 0) {
            build_scope(&b, "features.%d.", 2 * stage);
            x = norm(&b, "0", x);
            x = build_conv(&b, "1", x, patches(net->first << stage, 2));
        }
        for (int i = 0; i < net->blocks[stage]; i++) {
            build_scope(&b, "features.%d.%d.", 2 * stage + 1, i);
            x = block(&b, x);
        }
    }
    build_scope(&b, "%s", "");
    x = build_global_pool(&b, "avgpool", x);
    x = norm(&b, "classifier.0", x);
    x = build_flatten(&b, "classifier.1", x);
    build_output(&b, build_linear(&b, "classifier.2", x, 1000, true));
    return build_end(&b);
}
