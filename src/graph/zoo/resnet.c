/* Residual networks of torchvision (stride in the 3 x 3 convolution): ResNet, ResNeXt, Wide ResNet, RegNet; and semantic
 * segmentation, which uses atrous convolution instead of downsampling: FCN, DeepLab V3, LR-ASPP. */
#include <string.h>

#include "graph/zoo/family.h"

struct resnet {
    const char *name;
    bool has_bottleneck; /* 1 x 1, 3 x 3, 1 x 1 with four times the width */
    int blocks[4];
    int64_t groups, group_width;
};

static const struct resnet RESNETS[] = {
    {"resnet18", false, {2, 2, 2, 2}, 1, 64},
    {"resnet34", false, {3, 4, 6, 3}, 1, 64},
    {"resnet50", true, {3, 4, 6, 3}, 1, 64},
    {"resnet101", true, {3, 4, 23, 3}, 1, 64},
    {"resnet152", true, {3, 8, 36, 3}, 1, 64},
    {"resnext50_32x4d", true, {3, 4, 6, 3}, 32, 4},
    {"resnext101_32x8d", true, {3, 4, 23, 3}, 32, 8},
    {"resnext101_64x4d", true, {3, 4, 23, 3}, 64, 4},
    {"wide_resnet50_2", true, {3, 4, 6, 3}, 1, 128},
    {"wide_resnet101_2", true, {3, 4, 23, 3}, 1, 128},
};

struct block_step {
    int32_t stride, dilation;
};

static const struct zoo_unit UNIT_1 = {"conv1", "bn1", "relu"}, UNIT_2 = {"conv2", "bn2", "relu_1"},
                             UNIT_3 = {"conv3", "bn3", NULL};

static tensor_id residual(struct build *b, const char *relu, tensor_id x, tensor_id shortcut,
                          int64_t channels, int32_t stride)
{
    if (stride != 1 || build_dim(b, shortcut, 1) != channels)
        shortcut = zoo_conv_norm(b, "downsample", shortcut, zoo_same_conv(channels, 1, stride),
                                 GRAPH_VIEW);
    x = build_binary(b, GRAPH_ADD, "add", x, shortcut);
    return build_op(b, GRAPH_RELU, relu, x);
}

static tensor_id basic(struct build *b, tensor_id in, int64_t planes, int32_t stride)
{
    tensor_id x = zoo_unit(b, "", &UNIT_1, in, zoo_same_conv(planes, 3, stride), GRAPH_RELU);
    x = zoo_unit(b, "", &UNIT_2, x, zoo_same_conv(planes, 3, 1), GRAPH_VIEW);
    return residual(b, "relu_1", x, in, planes, stride);
}

static tensor_id bottleneck(struct build *b, const struct resnet *resnet, tensor_id in,
                            int64_t planes, struct block_step block_step)
{
    int64_t width = planes * resnet->group_width / 64 * resnet->groups;
    struct build_conv wide = zoo_same_conv(width, 3, block_step.stride);
    wide.groups = resnet->groups;
    wide.dilation = wide.pad = block_step.dilation;
    tensor_id x = zoo_unit(b, "", &UNIT_1, in, zoo_same_conv(width, 1, 1), GRAPH_RELU);
    x = zoo_unit(b, "", &UNIT_2, x, wide, GRAPH_RELU);
    x = zoo_unit(b, "", &UNIT_3, x, zoo_same_conv(4 * planes, 1, 1), GRAPH_VIEW);
    return residual(b, "relu_2", x, in, 4 * planes, block_step.stride);
}

static tensor_id resnet_stem(struct build *b, tensor_id x)
{
    x = zoo_unit(b, "", &UNIT_1, x, zoo_same_conv(64, 7, 2), GRAPH_RELU);
    return build_pool(b, "maxpool", x,
                      (struct build_pool){GRAPH_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1});
}

tensor_id zoo_build_resnet(struct build *b, const struct graph_options *options)
{
    const struct resnet *resnet = ZOO_ROW(RESNETS, b->graph->name);
    tensor_id x = zoo_image(b, options);
    x = resnet_stem(b, x);
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < resnet->blocks[stage]; i++) {
            int64_t planes = INT64_C(64) << stage;
            int32_t stride = stage > 0 && i == 0 ? 2 : 1;
            build_scope(b, "layer%d.%d.", stage + 1, i);
            x = resnet->has_bottleneck
                    ? bottleneck(b, resnet, x, planes, (struct block_step){stride, 1})
                    : basic(b, x, planes, stride);
        }
    return zoo_classifier(b, x, "avgpool", NULL, "fc");
}

/* ---- semantic segmentation: FCN and DeepLab V3 ---- */

enum { SEGMENTATION_CLASSES = 21 };

/* The last two stages use atrous convolution instead of a stride. */
static struct block_step dilated(int stage, int block)
{
    static const int32_t FIRST[] = {1, 1, 1, 2}, LATER[] = {1, 1, 2, 4};
    return (struct block_step){stage == 1 && block == 0 ? 2 : 1,
                               block ? LATER[stage] : FIRST[stage]};
}

static tensor_id interpolate(struct build *b, const char *name, tensor_id x, int64_t height,
                             int64_t width)
{
    return build_move(b, name, x, DIMS(build_dim(b, x, 0), build_dim(b, x, 1), height, width));
}

static tensor_id fcn_head(struct build *b, tensor_id x)
{
    struct build_conv last = {.channels = SEGMENTATION_CLASSES, .kernel = 1, .has_bias = true};
    x = zoo_conv_norm(b, "", x, zoo_same_conv(build_dim(b, x, 1) / 4, 3, 1), GRAPH_RELU);
    x = zoo_dropout(b, "3", x);
    return build_conv(b, "4", x, last);
}

/* Atrous spatial pyramid pooling: dilations of 12, 24 and 36, and the global mean. */
static tensor_id deeplab_head(struct build *b, tensor_id x)
{
    static const char *const PLACES[] = {"0.convs.1", "0.convs.2", "0.convs.3"};
    struct build_conv last = {.channels = SEGMENTATION_CLASSES, .kernel = 1, .has_bias = true};
    int64_t height = build_dim(b, x, 2), width = build_dim(b, x, 3);
    tensor_id parts[5] = {zoo_conv_norm(b, "0.convs.0", x, zoo_same_conv(256, 1, 1), GRAPH_RELU)};
    for (int i = 0; i < 3; i++) {
        struct build_conv conv = zoo_same_conv(256, 3, 1);
        conv.dilation = conv.pad = 12 * (i + 1);
        parts[i + 1] = zoo_conv_norm(b, PLACES[i], x, conv, GRAPH_RELU);
    }
    tensor_id mean = build_global_pool(b, "0.convs.4.pool", x);
    mean = zoo_conv_norm(b, "0.convs.4", mean, zoo_same_conv(256, 1, 1), GRAPH_RELU);
    parts[4] = interpolate(b, "0.convs.4.interpolate", mean, height, width);
    x = build_concat(b, "0.cat", 1, parts, 5);
    x = zoo_conv_norm(b, "0.project", x, zoo_same_conv(256, 1, 1), GRAPH_RELU);
    x = zoo_dropout(b, "0.project.3", x);
    x = build_conv(b, "1", x, zoo_same_conv(256, 3, 1));
    x = build_op(b, GRAPH_RELU, "3", build_batch_norm(b, "2", x));
    return build_conv(b, "4", x, last);
}

static tensor_id dilated_resnet(struct build *b, const struct resnet *resnet, tensor_id x,
                                tensor_id *third)
{
    build_scope(b, "backbone.");
    x = resnet_stem(b, x);
    for (int stage = 0; stage < 4; stage++) {
        for (int i = 0; i < resnet->blocks[stage]; i++) {
            build_scope(b, "backbone.layer%d.%d.", stage + 1, i);
            x = bottleneck(b, resnet, x, INT64_C(64) << stage, dilated(stage, i));
        }
        *third = stage == 2 ? x : *third;
    }
    return x;
}

/* Includes the auxiliary classifier on an earlier stage, as the published counts do. */
tensor_id zoo_build_segmentation(struct build *b, const struct graph_options *options)
{
    const char *name = b->graph->name;
    bool is_deeplab = !strncmp(name, "deeplab", 7), is_deep = strstr(name, "101");
    const struct resnet *resnet = ZOO_ROW(RESNETS, is_deep ? "resnet101" : "resnet50");
    tensor_id x = zoo_image(b, options), early = GRAPH_NONE;
    x = strstr(name, "mobilenet") ? zoo_mobilenet_v3_dilated(b, x, &early)
                                  : dilated_resnet(b, resnet, x, &early);
    build_scope(b, "classifier.");
    x = is_deeplab ? deeplab_head(b, x) : fcn_head(b, x);
    build_output(b, interpolate(b, "interpolate", x, options->image, options->image));
    build_scope(b, "aux_classifier.");
    x = fcn_head(b, early);
    return interpolate(b, "interpolate", x, options->image, options->image);
}

/* ---- semantic segmentation: LR-ASPP ---- */

tensor_id zoo_build_lraspp(struct build *b, const struct graph_options *options)
{
    struct build_conv last = {.channels = SEGMENTATION_CLASSES, .kernel = 1, .has_bias = true};
    tensor_id early = GRAPH_NONE, x = zoo_mobilenet_v3_dilated(b, zoo_image(b, options), &early);
    build_scope(b, "classifier.");
    tensor_id scale = build_global_pool(b, "scale.0", x);
    scale = build_conv(b, "scale.1", scale, zoo_same_conv(128, 1, 1));
    scale = build_op(b, GRAPH_SIGMOID, "scale.2", scale);
    x = zoo_conv_norm(b, "cbr", x, zoo_same_conv(128, 1, 1), GRAPH_RELU);
    x = build_binary(b, GRAPH_MUL, "mul", x, scale);
    x = interpolate(b, "interpolate", x, build_dim(b, early, 2), build_dim(b, early, 3));
    x = build_conv(b, "high_classifier", x, last);
    x = build_binary(b, GRAPH_ADD, "add", build_conv(b, "low_classifier", early, last), x);
    build_root(b);
    return interpolate(b, "interpolate", x, options->image, options->image);
}

/* ---- RegNet ---- */

struct regnet {
    const char *name;
    bool has_excite;
    int64_t group_width; /* a narrower stage is one group */
    int64_t widths[4];
    int blocks[4];
};

static const struct regnet REGNETS[] = {
    {"regnet_x_400mf", false, 16, {32, 64, 160, 400}, {1, 2, 7, 12}},
    {"regnet_x_800mf", false, 16, {64, 128, 288, 672}, {1, 3, 7, 5}},
    {"regnet_x_1_6gf", false, 24, {72, 168, 408, 912}, {2, 4, 10, 2}},
    {"regnet_x_3_2gf", false, 48, {96, 192, 432, 1008}, {2, 6, 15, 2}},
    {"regnet_x_8gf", false, 120, {80, 240, 720, 1920}, {2, 5, 15, 1}},
    {"regnet_x_16gf", false, 128, {256, 512, 896, 2048}, {2, 6, 13, 1}},
    {"regnet_x_32gf", false, 168, {336, 672, 1344, 2520}, {2, 7, 13, 1}},
    {"regnet_y_400mf", true, 8, {48, 104, 208, 440}, {1, 3, 6, 6}},
    {"regnet_y_800mf", true, 16, {64, 144, 320, 784}, {1, 3, 8, 2}},
    {"regnet_y_1_6gf", true, 24, {48, 120, 336, 888}, {2, 6, 17, 2}},
    {"regnet_y_3_2gf", true, 24, {72, 216, 576, 1512}, {2, 5, 13, 1}},
    {"regnet_y_8gf", true, 56, {224, 448, 896, 2016}, {2, 4, 10, 1}},
    {"regnet_y_16gf", true, 112, {224, 448, 1232, 3024}, {2, 4, 11, 1}},
    {"regnet_y_32gf", true, 232, {232, 696, 1392, 3712}, {2, 5, 12, 1}},
    {"regnet_y_128gf", true, 264, {528, 1056, 2904, 7392}, {2, 7, 17, 1}},
};

/* Squeeze-and-excitation has a quarter of the channels of the block's input, not of its own. */
static tensor_id regnet_block(struct build *b, const struct regnet *regnet, tensor_id in,
                              int64_t width, int32_t stride)
{
    int64_t in_channels = build_dim(b, in, 1);
    struct build_conv grouped = zoo_same_conv(width, 3, stride);
    grouped.groups = width > regnet->group_width ? width / regnet->group_width : 1;
    tensor_id shortcut = in;
    if (in_channels != width || stride != 1)
        shortcut = zoo_conv_norm(b, "proj", in, zoo_same_conv(width, 1, stride), GRAPH_VIEW);
    tensor_id x = zoo_conv_norm(b, "f.a", in, zoo_same_conv(width, 1, 1), GRAPH_RELU);
    x = zoo_conv_norm(b, "f.b", x, grouped, GRAPH_RELU);
    if (regnet->has_excite)
        x = zoo_squeeze_excite(
            b, "f.se", x,
            (struct zoo_squeeze_excite){(in_channels + 2) / 4, GRAPH_RELU, GRAPH_SIGMOID});
    x = zoo_conv_norm(b, "f.c", x, zoo_same_conv(width, 1, 1), GRAPH_VIEW);
    x = build_binary(b, GRAPH_ADD, "add", shortcut, x);
    return build_op(b, GRAPH_RELU, "activation", x);
}

tensor_id zoo_build_regnet(struct build *b, const struct graph_options *options)
{
    const struct regnet *regnet = ZOO_ROW(REGNETS, b->graph->name);
    tensor_id x = zoo_image(b, options);
    x = zoo_conv_norm(b, "stem", x, zoo_same_conv(32, 3, 2), GRAPH_RELU);
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < regnet->blocks[stage]; i++) {
            build_scope(b, "trunk_output.block%d.block%d-%d.", stage + 1, stage + 1, i);
            x = regnet_block(b, regnet, x, regnet->widths[stage], i == 0 ? 2 : 1);
        }
    return zoo_classifier(b, x, "avgpool", NULL, "fc");
}
