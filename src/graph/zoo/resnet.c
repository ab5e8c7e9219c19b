/* Residual networks as torchvision has them (stride in the 3 x 3 convolution), ResNeXt and the wide ones
 * too; and those that say what each pixel is, which spread their filters instead of shrinking the image. */
#include <string.h>

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
    {"resnext101_64x4d", true, {3, 4, 23, 3}, 64, 4},
    {"wide_resnet50_2", true, {3, 4, 6, 3}, 1, 128},
    {"wide_resnet101_2", true, {3, 4, 23, 3}, 1, 128},
};

/* How a block goes over the image. */
struct step {
    int32_t stride, dilation;
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
                            int64_t planes, struct step step)
{
    int64_t width = planes * resnet->group_width / 64 * resnet->groups;
    struct build_conv wide = zoo_same(width, 3, step.stride);
    wide.groups = resnet->groups;
    wide.dilation = wide.pad = step.dilation;
    tensor_id x = conv_bn(b, 1, in, zoo_same(width, 1, 1));
    x = build_op(b, GRAPH_RELU, "relu", x);
    x = conv_bn(b, 2, x, wide);
    x = build_op(b, GRAPH_RELU, "relu_1", x);
    x = conv_bn(b, 3, x, zoo_same(4 * planes, 1, 1));
    return join(b, "relu_2", x, in, 4 * planes, step.stride);
}

static tensor_id begin(struct build *b, tensor_id x)
{
    x = conv_bn(b, 1, x, zoo_same(64, 7, 2));
    x = build_op(b, GRAPH_RELU, "relu", x);
    return build_pool(b, "maxpool", x,
                      (struct build_pool){GRAPH_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1});
}

enum err zoo_build_resnet(const char *name, const struct graph_options *setting, struct graph *out,
                          struct error *why)
{
    const struct resnet *resnet = ZOO_ROW(RESNETS, name);
    tensor_id x;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    x = begin(&b, x);
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < resnet->blocks[stage]; i++) {
            int64_t planes = INT64_C(64) << stage;
            int32_t stride = stage > 0 && i == 0 ? 2 : 1;
            build_scope(&b, "layer%d.%d.", stage + 1, i);
            x = resnet->has_bottleneck ? bottleneck(&b, resnet, x, planes, (struct step){stride, 1})
                                       : basic(&b, x, planes, stride);
        }
    build_scope(&b, "%s", "");
    x = build_global_pool(&b, "avgpool", x);
    x = build_flatten(&b, "flatten", x);
    build_output(&b, build_linear(&b, "fc", x, 1000, true));
    return build_end(&b);
}

/* ---- what each pixel is: FCN and DeepLab V3 ---- */

enum { PIXEL_CLASSES = 21 };

/* The last two stages keep the size: what a stride would skip, filters skip instead. */
static struct step dilated(int stage, int block)
{
    static const int32_t FIRST[] = {1, 1, 1, 2}, LATER[] = {1, 1, 2, 4};
    return (struct step){stage == 1 && block == 0 ? 2 : 1, block ? LATER[stage] : FIRST[stage]};
}

static tensor_id sized(struct build *b, const char *name, tensor_id x, int64_t height,
                       int64_t width)
{
    return build_move(b, name, x, 4,
                      (int64_t[]){build_dim(b, x, 0), build_dim(b, x, 1), height, width});
}

static tensor_id fcn_head(struct build *b, tensor_id x)
{
    struct build_conv last = {.channels = PIXEL_CLASSES, .kernel = 1, .has_bias = true};
    x = zoo_conv_norm(b, "", x, zoo_same(build_dim(b, x, 1) / 4, 3, 1), GRAPH_RELU);
    x = zoo_dropout(b, "3", x);
    return build_conv(b, "4", x, last);
}

/* Filters spread by 12, 24 and 36 pixels, and the mean of all. */
static tensor_id deeplab_head(struct build *b, tensor_id x)
{
    static const char *const PLACES[] = {"0.convs.1", "0.convs.2", "0.convs.3"};
    struct build_conv last = {.channels = PIXEL_CLASSES, .kernel = 1, .has_bias = true};
    int64_t height = build_dim(b, x, 2), width = build_dim(b, x, 3);
    tensor_id parts[5] = {zoo_conv_norm(b, "0.convs.0", x, zoo_same(256, 1, 1), GRAPH_RELU)};
    for (int i = 0; i < 3; i++) {
        struct build_conv conv = zoo_same(256, 3, 1);
        conv.dilation = conv.pad = 12 * (i + 1);
        parts[i + 1] = zoo_conv_norm(b, PLACES[i], x, conv, GRAPH_RELU);
    }
    tensor_id mean = build_global_pool(b, "0.convs.4.pool", x);
    mean = zoo_conv_norm(b, "0.convs.4", mean, zoo_same(256, 1, 1), GRAPH_RELU);
    parts[4] = sized(b, "0.convs.4.interpolate", mean, height, width);
    x = build_concat(b, "0.cat", 1, parts, 5);
    x = zoo_conv_norm(b, "0.project", x, zoo_same(256, 1, 1), GRAPH_RELU);
    x = zoo_dropout(b, "0.project.3", x);
    x = build_conv(b, "1", x, zoo_same(256, 3, 1));
    x = build_op(b, GRAPH_RELU, "3", build_batch_norm(b, "2", x));
    return build_conv(b, "4", x, last);
}

static tensor_id resnet_spread(struct build *b, const struct resnet *resnet, tensor_id x,
                               tensor_id *third)
{
    build_scope(b, "%s", "backbone.");
    x = begin(b, x);
    for (int stage = 0; stage < 4; stage++) {
        for (int i = 0; i < resnet->blocks[stage]; i++) {
            build_scope(b, "backbone.layer%d.%d.", stage + 1, i);
            x = bottleneck(b, resnet, x, INT64_C(64) << stage, dilated(stage, i));
        }
        *third = stage == 2 ? x : *third;
    }
    return x;
}

/* They give a second answer from an earlier stage, which the published counts include. */
enum err zoo_build_segmentation(const char *name, const struct graph_options *setting,
                                struct graph *out, struct error *why)
{
    bool is_deeplab = !strncmp(name, "deeplab", 7), is_deep = strstr(name, "101");
    const struct resnet *resnet = ZOO_ROW(RESNETS, is_deep ? "resnet101" : "resnet50");
    tensor_id x, early = GRAPH_NONE;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    x = strstr(name, "mobilenet") ? zoo_mobilenet_v3_spread(&b, x, &early)
                                  : resnet_spread(&b, resnet, x, &early);
    build_scope(&b, "%s", "classifier.");
    x = is_deeplab ? deeplab_head(&b, x) : fcn_head(&b, x);
    build_output(&b, sized(&b, "interpolate", x, setting->image, setting->image));
    build_scope(&b, "%s", "aux_classifier.");
    x = fcn_head(&b, early);
    build_output(&b, sized(&b, "interpolate", x, setting->image, setting->image));
    return build_end(&b);
}

/* ---- LR-ASPP: what is far off scales what is near, with few channels ---- */

enum err zoo_build_lraspp(const char *name, const struct graph_options *setting, struct graph *out,
                          struct error *why)
{
    struct build_conv last = {.channels = PIXEL_CLASSES, .kernel = 1, .has_bias = true};
    tensor_id x, early = GRAPH_NONE;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    x = zoo_mobilenet_v3_spread(&b, x, &early);
    build_scope(&b, "%s", "classifier.");
    tensor_id scale = build_global_pool(&b, "scale.0", x);
    scale = build_conv(&b, "scale.1", scale, zoo_same(128, 1, 1));
    scale = build_op(&b, GRAPH_SIGMOID, "scale.2", scale);
    x = zoo_conv_norm(&b, "cbr", x, zoo_same(128, 1, 1), GRAPH_RELU);
    x = build_binary(&b, GRAPH_MUL, "mul", x, scale);
    x = sized(&b, "interpolate", x, build_dim(&b, early, 2), build_dim(&b, early, 3));
    x = build_conv(&b, "high_classifier", x, last);
    x = build_binary(&b, GRAPH_ADD, "add", build_conv(&b, "low_classifier", early, last), x);
    build_scope(&b, "%s", "");
    build_output(&b, sized(&b, "interpolate", x, setting->image, setting->image));
    return build_end(&b);
}
