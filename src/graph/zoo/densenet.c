/* DenseNet, where each layer reads all before it, and SqueezeNet; as torchvision has them. */
#include "graph/zoo/family.h"

/* ---- DenseNet ---- */

struct densenet {
    const char *name;
    int64_t growth, first;
    int layers[4];
};

static const struct densenet DENSENETS[] = {
    {"densenet121", 32, 64, {6, 12, 24, 16}},
    {"densenet161", 48, 96, {6, 12, 36, 24}},
    {"densenet169", 32, 64, {6, 12, 32, 32}},
    {"densenet201", 32, 64, {6, 12, 48, 32}},
};

static tensor_id norm_relu_conv(struct build *b, const char *const names[3], tensor_id x,
                                struct build_conv conv)
{
    x = build_batch_norm(b, names[0], x);
    x = build_op(b, GRAPH_RELU, names[1], x);
    return build_conv(b, names[2], x, conv);
}

enum { MOST_PARTS = 64 };

/* Each layer joins everything so far, as the module does: parts[0] is what came into the block. */
static tensor_id dense_block(struct build *b, const struct densenet *net, int block, tensor_id x)
{
    static const char *const FIRST[] = {"norm1", "relu1", "conv1"};
    static const char *const SECOND[] = {"norm2", "relu2", "conv2"};
    tensor_id parts[MOST_PARTS] = {x};
    int count = 1;
    for (int i = 0; i < net->layers[block]; i++) {
        build_scope(b, "features.denseblock%d.denselayer%d.", block + 1, i + 1);
        x = count > 1 ? build_concat(b, "cat", 1, parts, count) : parts[0];
        x = norm_relu_conv(b, FIRST, x, zoo_same(4 * net->growth, 1, 1));
        parts[count++] = norm_relu_conv(b, SECOND, x, zoo_same(net->growth, 3, 1));
    }
    build_scope(b, "features.denseblock%d.", block + 1);
    return build_concat(b, "cat", 1, parts, count);
}

enum err zoo_build_densenet(const char *name, const struct graph_options *setting,
                            struct graph *out, struct error *why)
{
    static const char *const TRANSITION[] = {"norm", "relu", "conv"};
    const struct densenet *net = ZOO_ROW(DENSENETS, name);
    tensor_id x;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    build_scope(&b, "%s", "features.");
    x = build_conv(&b, "conv0", x, zoo_same(net->first, 7, 2));
    x = build_batch_norm(&b, "norm0", x);
    x = build_op(&b, GRAPH_RELU, "relu0", x);
    x = build_pool(&b, "pool0", x,
                   (struct build_pool){GRAPH_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1});
    for (int block = 0; block < 4; block++) {
        x = dense_block(&b, net, block, x);
        if (block == 3)
            break;
        build_scope(&b, "features.transition%d.", block + 1);
        x = norm_relu_conv(&b, TRANSITION, x, zoo_same(build_dim(&b, x, 1) / 2, 1, 1));
        x = build_pool(&b, "pool", x,
                       (struct build_pool){GRAPH_AVG_POOL, .kernel = 2, .stride = 2});
    }
    build_scope(&b, "%s", "");
    x = build_batch_norm(&b, "features.norm5", x);
    x = build_op(&b, GRAPH_RELU, "relu", x);
    x = build_global_pool(&b, "adaptive_avg_pool2d", x);
    x = build_flatten(&b, "flatten", x);
    build_output(&b, build_linear(&b, "classifier", x, 1000, true));
    return build_end(&b);
}

/* ---- SqueezeNet ---- */

struct squeezenet {
    const char *name;
    struct build_conv first;
    int pools[2]; /* before the modules of these numbers, beside the first pooling */
    int fires[8]; /* the number of each fire module */
};

static const struct squeezenet SQUEEZENETS[] = {
    {"squeezenet1_0",
     {.channels = 96, .kernel = 7, .stride = 2, .has_bias = true},
     {6, 11},
     {3, 4, 5, 7, 8, 9, 10, 12}},
    {"squeezenet1_1",
     {.channels = 64, .kernel = 3, .stride = 2, .has_bias = true},
     {5, 8},
     {3, 4, 6, 7, 9, 10, 11, 12}},
};

static tensor_id conv_relu(struct build *b, const char *conv, const char *relu, tensor_id x,
                           int64_t channels, int32_t kernel)
{
    struct build_conv how = zoo_same(channels, kernel, 1);
    how.has_bias = true;
    x = build_conv(b, conv, x, how);
    return build_op(b, GRAPH_RELU, relu, x);
}

static tensor_id fire(struct build *b, tensor_id x, int64_t squeezed)
{
    x = conv_relu(b, "squeeze", "squeeze_activation", x, squeezed, 1);
    tensor_id wide[] = {
        conv_relu(b, "expand1x1", "expand1x1_activation", x, 4 * squeezed, 1),
        conv_relu(b, "expand3x3", "expand3x3_activation", x, 4 * squeezed, 3),
    };
    return build_concat(b, "cat", 1, wide, 2);
}

enum err zoo_build_squeezenet(const char *name, const struct graph_options *setting,
                              struct graph *out, struct error *why)
{
    static const int64_t SQUEEZED[] = {16, 16, 32, 32, 48, 48, 64, 64};
    static const struct build_pool POOL = {GRAPH_MAX_POOL, .kernel = 3, .stride = 2,
                                           .rounds_up = true};
    const struct squeezenet *net = ZOO_ROW(SQUEEZENETS, name);
    tensor_id x;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    x = build_conv(&b, "features.0", x, net->first);
    x = build_op(&b, GRAPH_RELU, "features.1", x);
    x = build_pool(&b, "features.2", x, POOL);
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < 2; k++)
            if (net->pools[k] == net->fires[i] - 1) {
                build_scope(&b, "features.%d.", net->pools[k]);
                x = build_pool(&b, "pool", x, POOL);
            }
        build_scope(&b, "features.%d.", net->fires[i]);
        x = fire(&b, x, SQUEEZED[i]);
    }
    build_scope(&b, "%s", "");
    x = zoo_dropout(&b, "classifier.0", x);
    x = conv_relu(&b, "classifier.1", "classifier.2", x, 1000, 1);
    x = build_global_pool(&b, "classifier.3", x);
    build_output(&b, build_flatten(&b, "flatten", x));
    return build_end(&b);
}
