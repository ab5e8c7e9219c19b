/* Convolutional classifiers of torchvision: VGG, AlexNet, DenseNet, SqueezeNet, GoogLeNet, Inception V3, ConvNeXt. */
#include "core/text.h"
#include "graph/zoo/family.h"

/* ---- VGG and AlexNet ---- */

struct vgg {
    const char *name;
    int convs[5]; /* per stage, before its pooling */
    bool has_norm;
};

static const struct vgg VGGS[] = {
    {"vgg11", {1, 1, 2, 2, 2}, false}, {"vgg11_bn", {1, 1, 2, 2, 2}, true},
    {"vgg13", {2, 2, 2, 2, 2}, false}, {"vgg13_bn", {2, 2, 2, 2, 2}, true},
    {"vgg16", {2, 2, 3, 3, 3}, false}, {"vgg16_bn", {2, 2, 3, 3, 3}, true},
    {"vgg19", {2, 2, 4, 4, 4}, false}, {"vgg19_bn", {2, 2, 4, 4, 4}, true},
};

/* The name of the next module: "features.3". */
static const char *next_feature(char buffer[24], int *number)
{
    str_format(buffer, 24, "features.%d", (*number)++);
    return buffer;
}

static tensor_id vgg_classifier(struct build *b, tensor_id x)
{
    x = zoo_adaptive_pool(b, x, 7);
    x = build_flatten(b, "flatten", x);
    x = build_linear(b, "classifier.0", x, 4096, true);
    x = build_op(b, GRAPH_RELU, "classifier.1", x);
    x = zoo_dropout(b, "classifier.2", x);
    x = build_linear(b, "classifier.3", x, 4096, true);
    x = build_op(b, GRAPH_RELU, "classifier.4", x);
    x = zoo_dropout(b, "classifier.5", x);
    return build_linear(b, "classifier.6", x, 1000, true);
}

tensor_id zoo_build_vgg(struct build *b, const struct graph_options *options)
{
    static const int64_t CHANNELS[] = {64, 128, 256, 512, 512};
    static const struct build_pool POOL = {GRAPH_MAX_POOL, .kernel = 2, .stride = 2};
    const struct vgg *vgg = ZOO_ROW(VGGS, b->graph->name);
    char scope[24];
    int number = 0;
    tensor_id x = zoo_image(b, options);
    for (int stage = 0; stage < 5; stage++) {
        for (int i = 0; i < vgg->convs[stage]; i++) {
            x = build_conv(b, next_feature(scope, &number), x,
                           zoo_biased_conv(CHANNELS[stage], 3, 1));
            if (vgg->has_norm)
                x = build_batch_norm(b, next_feature(scope, &number), x);
            x = build_op(b, GRAPH_RELU, next_feature(scope, &number), x);
        }
        x = build_pool(b, next_feature(scope, &number), x, POOL);
    }
    return vgg_classifier(b, x);
}

tensor_id zoo_build_alexnet(struct build *b, const struct graph_options *options)
{
    static const struct build_pool POOL = {GRAPH_MAX_POOL, .kernel = 3, .stride = 2};
    static const struct {
        struct build_conv conv;
        bool pools;
    } CONVS[] = {
        {{.channels = 64, .kernel = 11, .stride = 4, .pad = 2, .has_bias = true}, true},
        {{.channels = 192, .kernel = 5, .pad = 2, .has_bias = true}, true},
        {{.channels = 384, .kernel = 3, .pad = 1, .has_bias = true}, false},
        {{.channels = 256, .kernel = 3, .pad = 1, .has_bias = true}, false},
        {{.channels = 256, .kernel = 3, .pad = 1, .has_bias = true}, true},
    };
    char scope[24];
    int number = 0;
    tensor_id x = zoo_image(b, options);
    for (size_t i = 0; i < COUNT_OF(CONVS); i++) {
        x = build_conv(b, next_feature(scope, &number), x, CONVS[i].conv);
        x = build_op(b, GRAPH_RELU, next_feature(scope, &number), x);
        if (CONVS[i].pools)
            x = build_pool(b, next_feature(scope, &number), x, POOL);
    }
    x = zoo_adaptive_pool(b, x, 6);
    x = build_flatten(b, "flatten", x);
    x = zoo_dropout(b, "classifier.0", x);
    x = build_linear(b, "classifier.1", x, 4096, true);
    x = build_op(b, GRAPH_RELU, "classifier.2", x);
    x = zoo_dropout(b, "classifier.3", x);
    x = build_linear(b, "classifier.4", x, 4096, true);
    x = build_op(b, GRAPH_RELU, "classifier.5", x);
    return build_linear(b, "classifier.6", x, 1000, true);
}

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

enum { MAX_PARTS = 64 };

/* Each layer concatenates all outputs before it; parts[0] is the input of the block. */
static tensor_id dense_block(struct build *b, const struct densenet *net, int block, tensor_id x)
{
    static const char *const FIRST[] = {"norm1", "relu1", "conv1"};
    static const char *const SECOND[] = {"norm2", "relu2", "conv2"};
    tensor_id parts[MAX_PARTS] = {x};
    int count = 1;
    for (int i = 0; i < net->layers[block]; i++) {
        build_scope(b, "features.denseblock%d.denselayer%d.", block + 1, i + 1);
        x = count > 1 ? build_concat(b, "cat", 1, parts, count) : parts[0];
        x = norm_relu_conv(b, FIRST, x, zoo_same_conv(4 * net->growth, 1, 1));
        parts[count++] = norm_relu_conv(b, SECOND, x, zoo_same_conv(net->growth, 3, 1));
    }
    build_scope(b, "features.denseblock%d.", block + 1);
    return build_concat(b, "cat", 1, parts, count);
}

tensor_id zoo_build_densenet(struct build *b, const struct graph_options *options)
{
    static const char *const TRANSITION[] = {"norm", "relu", "conv"};
    const struct densenet *net = ZOO_ROW(DENSENETS, b->graph->name);
    tensor_id x = zoo_image(b, options);
    build_scope(b, "features.");
    x = build_conv(b, "conv0", x, zoo_same_conv(net->first, 7, 2));
    x = build_batch_norm(b, "norm0", x);
    x = build_op(b, GRAPH_RELU, "relu0", x);
    x = build_pool(b, "pool0", x,
                   (struct build_pool){GRAPH_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1});
    for (int block = 0; block < 4; block++) {
        x = dense_block(b, net, block, x);
        if (block == 3)
            break;
        build_scope(b, "features.transition%d.", block + 1);
        x = norm_relu_conv(b, TRANSITION, x, zoo_same_conv(build_dim(b, x, 1) / 2, 1, 1));
        x = build_pool(b, "pool", x, (struct build_pool){GRAPH_AVG_POOL, .kernel = 2, .stride = 2});
    }
    build_root(b);
    x = build_batch_norm(b, "features.norm5", x);
    x = build_op(b, GRAPH_RELU, "relu", x);
    return zoo_classifier(b, x, "adaptive_avg_pool2d", NULL, "classifier");
}

/* ---- SqueezeNet ---- */

struct squeezenet {
    const char *name;
    struct build_conv first;
    int pools[2]; /* module numbers, besides the first pooling */
    int fires[8]; /* module numbers */
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
    x = build_conv(b, conv, x, zoo_biased_conv(channels, kernel, 1));
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

tensor_id zoo_build_squeezenet(struct build *b, const struct graph_options *options)
{
    static const int64_t SQUEEZED[] = {16, 16, 32, 32, 48, 48, 64, 64};
    static const struct build_pool POOL = {GRAPH_MAX_POOL, .kernel = 3, .stride = 2,
                                           .rounds_up = true};
    const struct squeezenet *net = ZOO_ROW(SQUEEZENETS, b->graph->name);
    tensor_id x = zoo_image(b, options);
    x = build_conv(b, "features.0", x, net->first);
    x = build_op(b, GRAPH_RELU, "features.1", x);
    x = build_pool(b, "features.2", x, POOL);
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < 2; k++)
            if (net->pools[k] == net->fires[i] - 1) {
                build_scope(b, "features.%d.", net->pools[k]);
                x = build_pool(b, "pool", x, POOL);
            }
        build_scope(b, "features.%d.", net->fires[i]);
        x = fire(b, x, SQUEEZED[i]);
    }
    build_root(b);
    x = zoo_dropout(b, "classifier.0", x);
    x = conv_relu(b, "classifier.1", "classifier.2", x, 1000, 1);
    x = build_global_pool(b, "classifier.3", x);
    return build_flatten(b, "flatten", x);
}

/* ---- GoogLeNet and Inception V3 ---- */

/* BasicConv2d: convolution, batch norm, ReLU. */
static tensor_id conv_bn_relu(struct build *b, const char *scope, tensor_id x,
                              struct build_conv how)
{
    static const struct zoo_unit NAMES = {"conv", "bn", "relu"};
    return zoo_unit(b, scope, &NAMES, x, how, GRAPH_RELU);
}

static tensor_id same_conv(struct build *b, const char *scope, tensor_id x, int64_t channels,
                           int32_t kernel)
{
    return conv_bn_relu(b, scope, x, zoo_same_conv(channels, kernel, 1));
}

/* A 3 x 3 convolution without padding. */
static tensor_id valid_conv(struct build *b, const char *scope, tensor_id x, int64_t channels,
                            int32_t stride)
{
    return conv_bn_relu(b, scope, x,
                        (struct build_conv){.channels = channels, .kernel = 3, .stride = stride});
}

/* 1 x n or n x 1, with same padding. */
static tensor_id asymmetric_conv(struct build *b, const char *scope, tensor_id x, int64_t channels,
                                 int32_t height, int32_t width)
{
    return conv_bn_relu(b, scope, x,
                        (struct build_conv){.channels = channels,
                                            .kernel = height,
                                            .pad = height / 2,
                                            .kernel_w = width,
                                            .pad_w = width / 2});
}

/* ---- GoogLeNet ---- */

struct branches {
    const char *name;
    int64_t one, three_before, three, five_before, five, pool_branch;
    int32_t pool_after; /* kernel of the pooling after it; 0: none */
};

static const struct branches MODULES[] = {
    {"inception3a", 64, 96, 128, 16, 32, 32, 0},
    {"inception3b", 128, 128, 192, 32, 96, 64, 3},
    {"inception4a", 192, 96, 208, 16, 48, 64, 0},
    {"inception4b", 160, 112, 224, 24, 64, 64, 0},
    {"inception4c", 128, 128, 256, 24, 64, 64, 0},
    {"inception4d", 112, 144, 288, 32, 64, 64, 0},
    {"inception4e", 256, 160, 320, 32, 128, 128, 2},
    {"inception5a", 256, 160, 320, 32, 128, 128, 0},
    {"inception5b", 384, 192, 384, 48, 128, 128, 0},
};

static tensor_id googlenet_module(struct build *b, const struct branches *m, tensor_id x)
{
    static const struct build_pool POOL = {GRAPH_MAX_POOL, .kernel = 3, .stride = 1, .pad = 1,
                                           .rounds_up = true};
    build_scope(b, "%s.", m->name);
    tensor_id parts[4] = {same_conv(b, "branch1", x, m->one, 1)};
    parts[1] =
        same_conv(b, "branch2.1", same_conv(b, "branch2.0", x, m->three_before, 1), m->three, 3);
    /* 5 x 5 in the paper; 3 x 3 in the published weights. */
    parts[2] =
        same_conv(b, "branch3.1", same_conv(b, "branch3.0", x, m->five_before, 1), m->five, 3);
    parts[3] = same_conv(b, "branch4.1", build_pool(b, "branch4.0", x, POOL), m->pool_branch, 1);
    x = build_concat(b, "cat", 1, parts, 4);
    build_root(b);
    return x;
}

/* Dropout comes before flattening here. */
static tensor_id inception_classifier(struct build *b, tensor_id x)
{
    x = zoo_dropout(b, "dropout", build_global_pool(b, "avgpool", x));
    return build_linear(b, "fc", build_flatten(b, "flatten", x), 1000, true);
}

static tensor_id ceil_pool(struct build *b, const char *name, tensor_id x, int32_t kernel)
{
    return build_pool(
        b, name, x,
        (struct build_pool){GRAPH_MAX_POOL, .kernel = kernel, .stride = 2, .rounds_up = true});
}

tensor_id zoo_build_googlenet(struct build *b, const struct graph_options *options)
{
    tensor_id x = zoo_image(b, options);
    x = conv_bn_relu(b, "conv1", x, zoo_same_conv(64, 7, 2));
    x = ceil_pool(b, "maxpool1", x, 3);
    x = same_conv(b, "conv2", x, 64, 1);
    x = same_conv(b, "conv3", x, 192, 3);
    x = ceil_pool(b, "maxpool2", x, 3);
    for (size_t i = 0; i < COUNT_OF(MODULES); i++) {
        x = googlenet_module(b, &MODULES[i], x);
        if (MODULES[i].pool_after > 0)
            x = ceil_pool(b, MODULES[i].pool_after == 3 ? "maxpool3" : "maxpool4", x,
                          MODULES[i].pool_after);
    }
    return inception_classifier(b, x);
}

/* ---- Inception V3 ---- */

static const struct build_pool HALVE = {GRAPH_MAX_POOL, .kernel = 3, .stride = 2};

static tensor_id pool_branch(struct build *b, tensor_id x, int64_t channels)
{
    static const struct build_pool MEAN = {GRAPH_AVG_POOL, .kernel = 3, .stride = 1, .pad = 1};
    return same_conv(b, "branch_pool", build_pool(b, "avg_pool2d", x, MEAN), channels, 1);
}

static tensor_id module_a(struct build *b, tensor_id x, int64_t channels)
{
    tensor_id parts[4] = {same_conv(b, "branch1x1", x, 64, 1)};
    parts[1] = same_conv(b, "branch5x5_2", same_conv(b, "branch5x5_1", x, 48, 1), 64, 5);
    parts[2] = same_conv(b, "branch3x3dbl_2", same_conv(b, "branch3x3dbl_1", x, 64, 1), 96, 3);
    parts[2] = same_conv(b, "branch3x3dbl_3", parts[2], 96, 3);
    parts[3] = pool_branch(b, x, channels);
    return build_concat(b, "cat", 1, parts, 4);
}

static tensor_id module_b(struct build *b, tensor_id x)
{
    tensor_id parts[3] = {valid_conv(b, "branch3x3", x, 384, 2)};
    parts[1] = same_conv(b, "branch3x3dbl_2", same_conv(b, "branch3x3dbl_1", x, 64, 1), 96, 3);
    parts[1] = valid_conv(b, "branch3x3dbl_3", parts[1], 96, 2);
    parts[2] = build_pool(b, "max_pool2d", x, HALVE);
    return build_concat(b, "cat", 1, parts, 3);
}

static tensor_id module_c(struct build *b, tensor_id x, int64_t width)
{
    tensor_id parts[4] = {same_conv(b, "branch1x1", x, 192, 1)};
    tensor_id y =
        asymmetric_conv(b, "branch7x7_2", same_conv(b, "branch7x7_1", x, width, 1), width, 1, 7);
    parts[1] = asymmetric_conv(b, "branch7x7_3", y, 192, 7, 1);
    y = asymmetric_conv(b, "branch7x7dbl_2", same_conv(b, "branch7x7dbl_1", x, width, 1), width, 7,
                        1);
    y = asymmetric_conv(b, "branch7x7dbl_3", y, width, 1, 7);
    y = asymmetric_conv(b, "branch7x7dbl_4", y, width, 7, 1);
    parts[2] = asymmetric_conv(b, "branch7x7dbl_5", y, 192, 1, 7);
    parts[3] = pool_branch(b, x, 192);
    return build_concat(b, "cat", 1, parts, 4);
}

static tensor_id module_d(struct build *b, tensor_id x)
{
    tensor_id parts[3];
    parts[0] = valid_conv(b, "branch3x3_2", same_conv(b, "branch3x3_1", x, 192, 1), 320, 2);
    tensor_id y =
        asymmetric_conv(b, "branch7x7x3_2", same_conv(b, "branch7x7x3_1", x, 192, 1), 192, 1, 7);
    y = asymmetric_conv(b, "branch7x7x3_3", y, 192, 7, 1);
    parts[1] = valid_conv(b, "branch7x7x3_4", y, 192, 2);
    parts[2] = build_pool(b, "max_pool2d", x, HALVE);
    return build_concat(b, "cat", 1, parts, 3);
}

static tensor_id module_e(struct build *b, tensor_id x)
{
    tensor_id y = same_conv(b, "branch3x3_1", x, 384, 1);
    tensor_id three[] = {asymmetric_conv(b, "branch3x3_2a", y, 384, 1, 3),
                         asymmetric_conv(b, "branch3x3_2b", y, 384, 3, 1)};
    y = same_conv(b, "branch3x3dbl_2", same_conv(b, "branch3x3dbl_1", x, 448, 1), 384, 3);
    tensor_id double3x3[] = {asymmetric_conv(b, "branch3x3dbl_3a", y, 384, 1, 3),
                             asymmetric_conv(b, "branch3x3dbl_3b", y, 384, 3, 1)};
    tensor_id parts[] = {same_conv(b, "branch1x1", x, 320, 1),
                         build_concat(b, "branch3x3", 1, three, 2),
                         build_concat(b, "branch3x3dbl", 1, double3x3, 2), pool_branch(b, x, 192)};
    return build_concat(b, "cat", 1, parts, 4);
}

static tensor_id inception_stem(struct build *b, tensor_id x)
{
    x = valid_conv(b, "Conv2d_1a_3x3", x, 32, 2);
    x = valid_conv(b, "Conv2d_2a_3x3", x, 32, 1);
    x = same_conv(b, "Conv2d_2b_3x3", x, 64, 3);
    x = build_pool(b, "maxpool1", x, HALVE);
    x = same_conv(b, "Conv2d_3b_1x1", x, 80, 1);
    x = valid_conv(b, "Conv2d_4a_3x3", x, 192, 1);
    return build_pool(b, "maxpool2", x, HALVE);
}

/* The auxiliary head is used in training only, but is part of the published count and of the weights. */
static void add_auxiliary_head(struct build *b)
{
    int64_t first = 768 * 128 + 2 * 128;
    int64_t second = 128 * 768 * 25 + 2 * 768;
    int64_t last = 768 * 1000 + 1000;
    build_tensor(b, GRAPH_PARAMETER, "AuxLogits", DIMS(first + second + last));
}

tensor_id zoo_build_inception_v3(struct build *b, const struct graph_options *options)
{
    static const char *const A[] = {"Mixed_5b.", "Mixed_5c.", "Mixed_5d."};
    static const char *const C[] = {"Mixed_6b.", "Mixed_6c.", "Mixed_6d.", "Mixed_6e."};
    static const int64_t WIDTHS[] = {128, 160, 160, 192};
    tensor_id x = zoo_image(b, options);
    x = inception_stem(b, x);
    for (int i = 0; i < 3; i++) {
        build_scope(b, "%s", A[i]);
        x = module_a(b, x, i == 0 ? 32 : 64);
    }
    build_scope(b, "Mixed_6a.");
    x = module_b(b, x);
    for (int i = 0; i < 4; i++) {
        build_scope(b, "%s", C[i]);
        x = module_c(b, x, WIDTHS[i]);
    }
    build_scope(b, "Mixed_7a.");
    x = module_d(b, x);
    build_scope(b, "Mixed_7b.");
    x = module_e(b, x);
    build_scope(b, "Mixed_7c.");
    x = module_e(b, x);
    build_root(b);
    add_auxiliary_head(b);
    return inception_classifier(b, x);
}

/* ---- ConvNeXt ---- */

struct convnext {
    const char *name;
    int blocks[4];
    int64_t first; /* channels, doubled with each stage */
};

static const struct convnext CONVNEXTS[] = {
    {"convnext_tiny", {3, 3, 9, 3}, 96},
    {"convnext_small", {3, 3, 27, 3}, 96},
    {"convnext_base", {3, 3, 27, 3}, 128},
    {"convnext_large", {3, 3, 27, 3}, 192},
};

/* LayerNorm2d normalizes the channels of each pixel: as many operations as a group norm. */
static tensor_id channel_norm(struct build *b, const char *name, tensor_id x)
{
    return build_norm(b, GRAPH_GROUP_NORM, name, x);
}

static tensor_id convnext_block(struct build *b, tensor_id in)
{
    int64_t batch = build_dim(b, in, 0), channels = build_dim(b, in, 1);
    int64_t height = build_dim(b, in, 2), width = build_dim(b, in, 3);
    struct build_conv depthwise = zoo_depthwise_conv(channels, 7, 1);
    depthwise.has_bias = true;
    tensor_id x = build_conv(b, "block.0", in, depthwise);
    x = build_rearrange(b, "block.1", x, DIMS(batch, height, width, channels));
    x = build_norm(b, GRAPH_LAYER_NORM, "block.2", x);
    x = build_linear(b, "block.3", x, 4 * channels, true);
    x = build_op(b, GRAPH_GELU, "block.4", x);
    x = build_linear(b, "block.5", x, channels, true);
    x = build_rearrange(b, "block.6", x, DIMS(batch, channels, height, width));
    tensor_id scale = build_tensor(b, GRAPH_PARAMETER, "layer_scale", DIMS(channels, 1, 1));
    x = build_binary(b, GRAPH_MUL, "mul", x, scale);
    return build_binary(b, GRAPH_ADD, "add", x, in);
}

static struct build_conv patch_conv(int64_t channels, int32_t size)
{
    return (struct build_conv){
        .channels = channels, .kernel = size, .stride = size, .has_bias = true};
}

tensor_id zoo_build_convnext(struct build *b, const struct graph_options *options)
{
    const struct convnext *net = ZOO_ROW(CONVNEXTS, b->graph->name);
    tensor_id x = zoo_image(b, options);
    x = build_conv(b, "features.0.0", x, patch_conv(net->first, 4));
    x = channel_norm(b, "features.0.1", x);
    for (int stage = 0; stage < 4; stage++) {
        if (stage > 0) {
            build_scope(b, "features.%d.", 2 * stage);
            x = channel_norm(b, "0", x);
            x = build_conv(b, "1", x, patch_conv(net->first << stage, 2));
        }
        for (int i = 0; i < net->blocks[stage]; i++) {
            build_scope(b, "features.%d.%d.", 2 * stage + 1, i);
            x = convnext_block(b, x);
        }
    }
    build_root(b);
    x = build_global_pool(b, "avgpool", x);
    x = channel_norm(b, "classifier.0", x);
    x = build_flatten(b, "classifier.1", x);
    return build_linear(b, "classifier.2", x, 1000, true);
}
