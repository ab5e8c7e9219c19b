/* Two more small networks as torchvision has them: ShuffleNet V2 and MNASNet. */
#include "core/text.h"
#include "graph/zoo/family.h"

/* ---- ShuffleNet V2 ---- */

struct shufflenet {
    const char *name;
    int64_t channels[3], last;
};

static const struct shufflenet SHUFFLENETS[] = {
    {"shufflenet_v2_x0_5", {48, 96, 192}, 1024},
    {"shufflenet_v2_x1_0", {116, 232, 464}, 1024},
    {"shufflenet_v2_x1_5", {176, 352, 704}, 1024},
    {"shufflenet_v2_x2_0", {244, 488, 976}, 2048},
};

/* Modules BRANCH.FIRST and on: convolution, batch norm, and an activation where it is one. */
static tensor_id conv_bn(struct build *b, const char *branch, int first, tensor_id x,
                         struct build_conv conv, enum graph_op activation)
{
    char name[32];
    str_format(name, sizeof name, "%s.%d", branch, first);
    x = build_conv(b, name, x, conv);
    str_format(name, sizeof name, "%s.%d", branch, first + 1);
    x = build_batch_norm(b, name, x);
    str_format(name, sizeof name, "%s.%d", branch, first + 2);
    return activation == GRAPH_VIEW ? x : build_op(b, activation, name, x);
}

static struct build_conv each_channel(struct build *b, tensor_id x, int32_t kernel, int32_t stride)
{
    struct build_conv conv = zoo_same(build_dim(b, x, 1), kernel, stride);
    conv.groups = -1;
    return conv;
}

static tensor_id right(struct build *b, tensor_id x, int64_t channels, int32_t stride)
{
    x = conv_bn(b, "branch2", 0, x, zoo_same(channels, 1, 1), GRAPH_RELU);
    x = conv_bn(b, "branch2", 3, x, each_channel(b, x, 3, stride), GRAPH_VIEW);
    return conv_bn(b, "branch2", 5, x, zoo_same(channels, 1, 1), GRAPH_RELU);
}

static tensor_id left(struct build *b, tensor_id x, int64_t channels)
{
    x = conv_bn(b, "branch1", 0, x, each_channel(b, x, 3, 2), GRAPH_VIEW);
    return conv_bn(b, "branch1", 2, x, zoo_same(channels, 1, 1), GRAPH_RELU);
}

static tensor_id half(struct build *b, const char *name, tensor_id x)
{
    int64_t dims[] = {build_dim(b, x, 0), build_dim(b, x, 1) / 2, build_dim(b, x, 2),
                      build_dim(b, x, 3)};
    return build_rearrange(b, name, x, 4, dims);
}

static tensor_id unit(struct build *b, tensor_id x, int64_t channels, bool halves)
{
    tensor_id parts[2];
    if (halves) {
        parts[0] = left(b, x, channels / 2);
        parts[1] = right(b, x, channels / 2, 2);
    } else {
        parts[0] = half(b, "chunk_0", x);
        parts[1] = right(b, half(b, "chunk_1", x), channels / 2, 1);
    }
    x = build_concat(b, "cat", 1, parts, 2);
    int64_t dims[] = {build_dim(b, x, 0), channels, build_dim(b, x, 2), build_dim(b, x, 3)};
    return build_rearrange(b, "channel_shuffle", x, 4, dims);
}

enum err zoo_build_shufflenet(const char *name, const struct graph_options *setting,
                              struct graph *out, struct error *why)
{
    static const int UNITS[] = {4, 8, 4};
    const struct shufflenet *net = ZOO_ROW(SHUFFLENETS, name);
    tensor_id x;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    x = conv_bn(&b, "conv1", 0, x, zoo_same(24, 3, 2), GRAPH_RELU);
    x = build_pool(&b, "maxpool", x,
                   (struct build_pool){GRAPH_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1});
    for (int stage = 0; stage < 3; stage++)
        for (int i = 0; i < UNITS[stage]; i++) {
            build_scope(&b, "stage%d.%d.", stage + 2, i);
            x = unit(&b, x, net->channels[stage], i == 0);
        }
    build_scope(&b, "%s", "");
    x = conv_bn(&b, "conv5", 0, x, zoo_same(net->last, 1, 1), GRAPH_RELU);
    x = build_global_pool(&b, "mean", x);
    x = build_flatten(&b, "flatten", x);
    build_output(&b, build_linear(&b, "fc", x, 1000, true));
    return build_end(&b);
}

/* ---- MNASNet ---- */

struct mnasnet {
    const char *name;
    double width;
};

static const struct mnasnet MNASNETS[] = {
    {"mnasnet0_5", 0.5}, {"mnasnet0_75", 0.75}, {"mnasnet1_0", 1.0}, {"mnasnet1_3", 1.3}};

static const struct stack {
    double channels;
    int32_t kernel, stride;
    int expansion, count;
} STACKS[] = {{24, 3, 2, 3, 3}, {40, 5, 2, 3, 3},  {80, 5, 2, 6, 3},
              {96, 3, 1, 6, 2}, {192, 5, 2, 6, 4}, {320, 3, 1, 6, 1}};

static tensor_id inverted(struct build *b, const struct stack *stack, int64_t channels,
                          int32_t stride, tensor_id in)
{
    int64_t before = build_dim(b, in, 1);
    tensor_id x =
        conv_bn(b, "layers", 0, in, zoo_same(before * stack->expansion, 1, 1), GRAPH_RELU);
    x = conv_bn(b, "layers", 3, x, each_channel(b, x, stack->kernel, stride), GRAPH_RELU);
    x = conv_bn(b, "layers", 6, x, zoo_same(channels, 1, 1), GRAPH_VIEW);
    return before == channels && stride == 1 ? build_binary(b, GRAPH_ADD, "add", x, in) : x;
}

enum err zoo_build_mnasnet(const char *name, const struct graph_options *setting, struct graph *out,
                           struct error *why)
{
    double width = ((const struct mnasnet *)ZOO_ROW(MNASNETS, name))->width;
    tensor_id x;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    x = conv_bn(&b, "layers", 0, x, zoo_same(zoo_rounded(32 * width), 3, 2), GRAPH_RELU);
    x = conv_bn(&b, "layers", 3, x, each_channel(&b, x, 3, 1), GRAPH_RELU);
    x = conv_bn(&b, "layers", 6, x, zoo_same(zoo_rounded(16 * width), 1, 1), GRAPH_VIEW);
    for (int s = 0; s < 6; s++)
        for (int i = 0; i < STACKS[s].count; i++) {
            build_scope(&b, "layers.%d.%d.", s + 8, i);
            x = inverted(&b, &STACKS[s], zoo_rounded(STACKS[s].channels * width),
                         i == 0 ? STACKS[s].stride : 1, x);
        }
    build_scope(&b, "%s", "");
    x = conv_bn(&b, "layers", 14, x, zoo_same(1280, 1, 1), GRAPH_RELU);
    x = build_global_pool(&b, "mean", x);
    x = build_flatten(&b, "flatten", x);
    x = zoo_dropout(&b, "classifier.0", x);
    build_output(&b, build_linear(&b, "classifier.1", x, 1000, true));
    return build_end(&b);
}
