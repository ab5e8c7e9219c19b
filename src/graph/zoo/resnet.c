/* Residual networks as torchvision has them (stride in the 3 x 3 convolution), ResNeXt and the wide ones
 * too. */
#include "graph/zoo/family.h"

struct resnet {
    const char *name;
    bool has_bottleneck; /* 1 x 1, 3 x 3, 1 x 1, four times as wide at the end */
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
    {"wide_resnet50_2", true, {3, 4, 6, 3}, 1, 128},
    {"wide_resnet101_2", true, {3, 4, 23, 3}, 1, 128},
};

static tensor_id conv_bn(struct build *b, int number, tensor_id x, struct build_conv conv)
{
    static const char *const CONVS[] = {"conv1", "conv2", "conv3"};
    static const char *const NORMS[] = {"bn1", "bn2", "bn3"};
    x = build_conv(b, CONVS[number - 1], x, conv);
    return build_batch_norm(b, NORMS[number - 1], x);
}

static tensor_id join(struct build *b, const char *relu, tensor_id x, tensor_id shortcut,
                      int64_t channels, int32_t stride)
{
    if (stride != 1 || build_dim(b, shortcut, 1) != channels)
        shortcut =
            zoo_conv_norm(b, "downsample", shortcut, zoo_same(channels, 1, stride), GRAPH_VIEW);
    x = build_binary(b, GRAPH_ADD, "add", x, shortcut);
    return build_op(b, GRAPH_RELU, relu, x);
}

static tensor_id basic(struct build *b, tensor_id in, int64_t planes, int32_t stride)
{
    tensor_id x = conv_bn(b, 1, in, zoo_same(planes, 3, stride));
    x = build_op(b, GRAPH_RELU, "relu", x);
    x = conv_bn(b, 2, x, zoo_same(planes, 3, 1));
    return join(b, "relu_1", x, in, planes, stride);
}

static tensor_id bottleneck(struct build *b, const struct resnet *resnet, tensor_id in,
                            int64_t planes, int32_t stride)
{
    int64_t width = planes * resnet->group_width / 64 * resnet->groups;
    struct build_conv wide = zoo_same(width, 3, stride);
    wide.groups = resnet->groups;
    tensor_id x = conv_bn(b, 1, in, zoo_same(width, 1, 1));
    x = build_op(b, GRAPH_RELU, "relu", x);
    x = conv_bn(b, 2, x, wide);
    x = build_op(b, GRAPH_RELU, "relu_1", x);
    x = conv_bn(b, 3, x, zoo_same(4 * planes, 1, 1));
    return join(b, "relu_2", x, in, 4 * planes, stride);
}

enum err zoo_build_resnet(const char *name, const struct graph_setting *setting, struct graph *out,
                          struct error *why)
{
    const struct resnet *resnet = ZOO_ROW(RESNETS, name);
    tensor_id x;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    x = conv_bn(&b, 1, x, zoo_same(64, 7, 2));
    x = build_op(&b, GRAPH_RELU, "relu", x);
    x = build_pool(&b, "maxpool", x,
                   (struct build_pool){GRAPH_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1});
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < resnet->blocks[stage]; i++) {
            int64_t planes = INT64_C(64) << stage;
            int32_t stride = stage > 0 && i == 0 ? 2 : 1;
            build_inside(&b, "layer%d.%d.", stage + 1, i);
            x = resnet->has_bottleneck ? bottleneck(&b, resnet, x, planes, stride)
                                       : basic(&b, x, planes, stride);
        }
    build_inside(&b, "%s", "");
    x = build_global_pool(&b, "avgpool", x);
    x = build_flatten(&b, "flatten", x);
    build_output(&b, build_linear(&b, "fc", x, 1000, true));
    return build_end(&b);
}
