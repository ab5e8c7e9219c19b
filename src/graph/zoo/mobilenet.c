/* Small networks of torchvision, built from depthwise convolutions: MobileNet V2 and V3, EfficientNet, ShuffleNet V2,
 * MNASNet. */
#include <math.h>

#include "core/text.h"
#include "graph/zoo/family.h"

/* ---- MobileNet V2 ---- */

struct v2_stage {
    int expansion;
    int64_t channels;
    int count;
    int32_t stride;
};

static const struct v2_stage V2_STAGES[] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2},
                                            {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2},
                                            {6, 320, 1, 1}};
enum { V2_STAGE_COUNT = COUNT_OF(V2_STAGES) };

static tensor_id inverted_residual_v2(struct build *b, const struct v2_stage *v2_stage,
                                      int32_t stride, tensor_id in)
{
    int64_t in_channels = build_dim(b, in, 1), wide = in_channels * v2_stage->expansion;
    struct build_conv depthwise = zoo_depthwise_conv(wide, 3, stride);
    bool expands = v2_stage->expansion != 1;
    tensor_id x = in;
    if (expands)
        x = zoo_conv_norm(b, "conv.0", x, zoo_same_conv(wide, 1, 1), GRAPH_CLIP);
    x = zoo_conv_norm(b, expands ? "conv.1" : "conv.0", x, depthwise, GRAPH_CLIP);
    x = build_conv(b, expands ? "conv.2" : "conv.1", x, zoo_same_conv(v2_stage->channels, 1, 1));
    x = build_batch_norm(b, expands ? "conv.3" : "conv.2", x);
    bool is_residual = stride == 1 && in_channels == v2_stage->channels;
    return is_residual ? build_binary(b, GRAPH_ADD, "add", in, x) : x;
}

tensor_id zoo_build_mobilenet_v2(struct build *b, const struct graph_options *options)
{
    tensor_id x = zoo_image(b, options);
    int number = 1;
    x = zoo_conv_norm(b, "features.0", x, zoo_same_conv(32, 3, 2), GRAPH_CLIP);
    for (int s = 0; s < V2_STAGE_COUNT; s++)
        for (int i = 0; i < V2_STAGES[s].count; i++) {
            build_scope(b, "features.%d.", number++);
            x = inverted_residual_v2(b, &V2_STAGES[s], i == 0 ? V2_STAGES[s].stride : 1, x);
        }
    build_root(b);
    x = zoo_conv_norm(b, "features.18", x, zoo_same_conv(1280, 1, 1), GRAPH_CLIP);
    return zoo_classifier(b, x, "adaptive_avg_pool2d", "classifier.0", "classifier.1");
}

/* ---- MobileNet V3 ---- */

struct v3_block {
    int32_t kernel;
    int64_t wide, channels;
    bool has_excite;
    enum graph_op activation;
    int32_t stride;
};

struct mobilenet_v3 {
    const char *name;
    int64_t last; /* width of the classifier */
    int count;
    struct v3_block blocks[15];
};

#define RE GRAPH_RELU
#define HS GRAPH_HARD_SWISH
static const struct mobilenet_v3 MOBILENETS_V3[] = {
    {"mobilenet_v3_large",
     1280,
     15,
     {{3, 16, 16, false, RE, 1},
      {3, 64, 24, false, RE, 2},
      {3, 72, 24, false, RE, 1},
      {5, 72, 40, true, RE, 2},
      {5, 120, 40, true, RE, 1},
      {5, 120, 40, true, RE, 1},
      {3, 240, 80, false, HS, 2},
      {3, 200, 80, false, HS, 1},
      {3, 184, 80, false, HS, 1},
      {3, 184, 80, false, HS, 1},
      {3, 480, 112, true, HS, 1},
      {3, 672, 112, true, HS, 1},
      {5, 672, 160, true, HS, 2},
      {5, 960, 160, true, HS, 1},
      {5, 960, 160, true, HS, 1}}},
    {"mobilenet_v3_small",
     1024,
     11,
     {{3, 16, 16, true, RE, 2},
      {3, 72, 24, false, RE, 2},
      {3, 88, 24, false, RE, 1},
      {5, 96, 40, true, HS, 2},
      {5, 240, 40, true, HS, 1},
      {5, 240, 40, true, HS, 1},
      {5, 120, 48, true, HS, 1},
      {5, 144, 48, true, HS, 1},
      {5, 288, 96, true, HS, 2},
      {5, 576, 96, true, HS, 1},
      {5, 576, 96, true, HS, 1}}},
};
#undef RE
#undef HS

static const char *next_block(char *buffer, size_t size, int *number)
{
    str_format(buffer, size, "block.%d", (*number)++);
    return buffer;
}

/* With a dilation, atrous convolution replaces the stride. */
static tensor_id inverted_residual_v3(struct build *b, const struct v3_block *block,
                                      int32_t dilation, tensor_id in)
{
    char scope[16];
    int number = 0;
    int64_t in_channels = build_dim(b, in, 1);
    struct build_conv depthwise = zoo_depthwise_conv(block->wide, block->kernel, block->stride);
    tensor_id x = in;
    if (dilation > 1) {
        depthwise.stride = 1;
        depthwise.dilation = dilation;
        depthwise.pad *= dilation;
    }
    int64_t quarter = block->wide / 4;
    if (block->wide != in_channels)
        x = zoo_conv_norm(b, next_block(scope, sizeof scope, &number), x,
                          zoo_same_conv(block->wide, 1, 1), block->activation);
    x = zoo_conv_norm(b, next_block(scope, sizeof scope, &number), x, depthwise, block->activation);
    if (block->has_excite)
        x = zoo_squeeze_excite(b, next_block(scope, sizeof scope, &number), x,
                               (struct zoo_squeeze_excite){zoo_round_channels((double)quarter),
                                                           GRAPH_RELU, GRAPH_HARD_SIGMOID});
    x = zoo_conv_norm(b, next_block(scope, sizeof scope, &number), x,
                      zoo_same_conv(block->channels, 1, 1), GRAPH_VIEW);
    bool is_residual = block->stride == 1 && in_channels == block->channels;
    return is_residual ? build_binary(b, GRAPH_ADD, "add", x, in) : x;
}

tensor_id zoo_build_mobilenet_v3(struct build *b, const struct graph_options *options)
{
    const struct mobilenet_v3 *net = ZOO_ROW(MOBILENETS_V3, b->graph->name);
    char scope[24];
    tensor_id x = zoo_image(b, options);
    x = zoo_conv_norm(b, "features.0", x, zoo_same_conv(16, 3, 2), GRAPH_HARD_SWISH);
    for (int i = 0; i < net->count; i++) {
        build_scope(b, "features.%d.", i + 1);
        x = inverted_residual_v3(b, &net->blocks[i], 1, x);
    }
    build_root(b);
    chars_format(scope, "features.%d", net->count + 1);
    x = zoo_conv_norm(b, scope, x, zoo_same_conv(6 * build_dim(b, x, 1), 1, 1), GRAPH_HARD_SWISH);
    x = build_global_pool(b, "avgpool", x);
    x = build_flatten(b, "flatten", x);
    x = build_linear(b, "classifier.0", x, net->last, true);
    x = build_op(b, GRAPH_HARD_SWISH, "classifier.1", x);
    x = zoo_dropout(b, "classifier.2", x);
    return build_linear(b, "classifier.3", x, 1000, true);
}

tensor_id zoo_mobilenet_v3_dilated(struct build *build, tensor_id x, tensor_id *early)
{
    enum { EARLY = 3, DILATED = 12 }; /* blocks: the first with 40 channels, and with 160 */
    const struct mobilenet_v3 *net = ZOO_ROW(MOBILENETS_V3, "mobilenet_v3_large");
    build_scope(build, "backbone.");
    x = zoo_conv_norm(build, "0", x, zoo_same_conv(16, 3, 2), GRAPH_HARD_SWISH);
    for (int i = 0; i < net->count; i++) {
        build_scope(build, "backbone.%d.", i + 1);
        x = inverted_residual_v3(build, &net->blocks[i], i >= DILATED ? 2 : 1, x);
        if (i == EARLY)
            *early = x;
    }
    build_scope(build, "backbone.");
    return zoo_conv_norm(build, "16", x, zoo_same_conv(6 * build_dim(build, x, 1), 1, 1),
                         GRAPH_HARD_SWISH);
}

/* ---- EfficientNet: B0 to B7 are one network scaled; V2 begins with fused blocks ---- */

struct mb_stage {
    int expansion; /* 0: end of the list */
    int32_t kernel, stride;
    double channels, count;
    bool is_fused;
};

static const struct mb_stage EFFICIENTNET_V1[] = {
    {1, 3, 1, 16, 1, false},  {6, 3, 2, 24, 2, false},
    {6, 5, 2, 40, 2, false},  {6, 3, 2, 80, 3, false},
    {6, 5, 1, 112, 3, false}, {6, 5, 2, 192, 4, false},
    {6, 3, 1, 320, 1, false}, {0}};
static const struct mb_stage EFFICIENTNET_V2_S[] = {{1, 3, 1, 24, 2, true},
                                                    {4, 3, 2, 48, 4, true},
                                                    {4, 3, 2, 64, 4, true},
                                                    {4, 3, 2, 128, 6, false},
                                                    {6, 3, 1, 160, 9, false},
                                                    {6, 3, 2, 256, 15, false},
                                                    {0}};
static const struct mb_stage EFFICIENTNET_V2_M[] = {
    {1, 3, 1, 24, 3, true},    {4, 3, 2, 48, 5, true},
    {4, 3, 2, 80, 5, true},    {4, 3, 2, 160, 7, false},
    {6, 3, 1, 176, 14, false}, {6, 3, 2, 304, 18, false},
    {6, 3, 1, 512, 5, false},  {0}};
static const struct mb_stage EFFICIENTNET_V2_L[] = {
    {1, 3, 1, 32, 4, true},    {4, 3, 2, 64, 7, true},
    {4, 3, 2, 96, 7, true},    {4, 3, 2, 192, 10, false},
    {6, 3, 1, 224, 19, false}, {6, 3, 2, 384, 25, false},
    {6, 3, 1, 640, 7, false},  {0}};

struct efficientnet {
    const char *name;
    const struct mb_stage *stages;
    double width, depth;
    double first; /* channels of the stem */
    int64_t last; /* channels of the convolution before the classifier; 0: four times its input */
};

static const struct efficientnet EFFICIENTNETS[] = {
    {"efficientnet_b0", EFFICIENTNET_V1, 1.0, 1.0, 32, 0},
    {"efficientnet_b1", EFFICIENTNET_V1, 1.0, 1.1, 32, 0},
    {"efficientnet_b2", EFFICIENTNET_V1, 1.1, 1.2, 32, 0},
    {"efficientnet_b3", EFFICIENTNET_V1, 1.2, 1.4, 32, 0},
    {"efficientnet_b4", EFFICIENTNET_V1, 1.4, 1.8, 32, 0},
    {"efficientnet_b5", EFFICIENTNET_V1, 1.6, 2.2, 32, 0},
    {"efficientnet_b6", EFFICIENTNET_V1, 1.8, 2.6, 32, 0},
    {"efficientnet_b7", EFFICIENTNET_V1, 2.0, 3.1, 32, 0},
    {"efficientnet_v2_s", EFFICIENTNET_V2_S, 1, 1, 24, 1280},
    {"efficientnet_v2_m", EFFICIENTNET_V2_M, 1, 1, 24, 1280},
    {"efficientnet_v2_l", EFFICIENTNET_V2_L, 1, 1, 32, 1280},
};

static tensor_id mbconv(struct build *b, const struct mb_stage *mb_stage, int64_t channels,
                        int32_t stride, tensor_id in)
{
    static const char *const PLACES[] = {"block.0", "block.1", "block.2", "block.3"};
    int64_t in_channels = build_dim(b, in, 1);
    int64_t wide = zoo_round_channels((double)(in_channels * mb_stage->expansion));
    int64_t squeezed = in_channels / 4 > 0 ? in_channels / 4 : 1;
    struct build_conv depthwise = zoo_depthwise_conv(wide, mb_stage->kernel, stride);
    const char *const *scope = PLACES;
    tensor_id x = in;
    if (wide != in_channels)
        x = zoo_conv_norm(b, *scope++, x, zoo_same_conv(wide, 1, 1), GRAPH_SILU);
    x = zoo_conv_norm(b, *scope++, x, depthwise, GRAPH_SILU);
    x = zoo_squeeze_excite(b, *scope++, x,
                           (struct zoo_squeeze_excite){squeezed, GRAPH_SILU, GRAPH_SIGMOID});
    return zoo_conv_norm(b, *scope, x, zoo_same_conv(channels, 1, 1), GRAPH_VIEW);
}

static tensor_id fused_mbconv(struct build *b, const struct mb_stage *mb_stage, int64_t channels,
                              int32_t stride, tensor_id in)
{
    int64_t in_channels = build_dim(b, in, 1);
    int64_t wide = zoo_round_channels((double)(in_channels * mb_stage->expansion));
    if (wide == in_channels)
        return zoo_conv_norm(b, "block.0", in, zoo_same_conv(channels, mb_stage->kernel, stride),
                             GRAPH_SILU);
    tensor_id x =
        zoo_conv_norm(b, "block.0", in, zoo_same_conv(wide, mb_stage->kernel, stride), GRAPH_SILU);
    return zoo_conv_norm(b, "block.1", x, zoo_same_conv(channels, 1, 1), GRAPH_VIEW);
}

static tensor_id mb_block(struct build *b, const struct mb_stage *mb_stage, int64_t channels,
                          int32_t stride, tensor_id in)
{
    tensor_id x = mb_stage->is_fused ? fused_mbconv(b, mb_stage, channels, stride, in)
                                     : mbconv(b, mb_stage, channels, stride, in);
    bool is_residual = stride == 1 && build_dim(b, in, 1) == channels;
    return is_residual ? build_binary(b, GRAPH_ADD, "add", x, in) : x;
}

tensor_id zoo_build_efficientnet(struct build *b, const struct graph_options *options)
{
    const struct efficientnet *net = ZOO_ROW(EFFICIENTNETS, b->graph->name);
    char scope[24];
    int number = 1;
    tensor_id x = zoo_image(b, options);
    x = zoo_conv_norm(b, "features.0", x,
                      zoo_same_conv(zoo_round_channels(net->first * net->width), 3, 2), GRAPH_SILU);
    for (const struct mb_stage *mb_stage = net->stages; mb_stage->expansion; mb_stage++, number++) {
        int64_t channels = zoo_round_channels(mb_stage->channels * net->width);
        int count = (int)ceil(mb_stage->count * net->depth);
        for (int i = 0; i < count; i++) {
            build_scope(b, "features.%d.%d.", number, i);
            x = mb_block(b, mb_stage, channels, i == 0 ? mb_stage->stride : 1, x);
        }
    }
    build_root(b);
    chars_format(scope, "features.%d", number);
    int64_t last = net->last > 0 ? net->last : 4 * build_dim(b, x, 1);
    x = zoo_conv_norm(b, scope, x, zoo_same_conv(last, 1, 1), GRAPH_SILU);
    return zoo_classifier(b, x, "avgpool", "classifier.0", "classifier.1");
}

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

static struct build_conv depthwise_of(struct build *b, tensor_id x, int32_t kernel, int32_t stride)
{
    return zoo_depthwise_conv(build_dim(b, x, 1), kernel, stride);
}

static tensor_id main_branch(struct build *b, tensor_id x, int64_t channels, int32_t stride)
{
    x = zoo_conv_norm_from(b, "branch2", 0, x, zoo_same_conv(channels, 1, 1), GRAPH_RELU);
    x = zoo_conv_norm_from(b, "branch2", 3, x, depthwise_of(b, x, 3, stride), GRAPH_VIEW);
    return zoo_conv_norm_from(b, "branch2", 5, x, zoo_same_conv(channels, 1, 1), GRAPH_RELU);
}

static tensor_id shortcut_branch(struct build *b, tensor_id x, int64_t channels)
{
    x = zoo_conv_norm_from(b, "branch1", 0, x, depthwise_of(b, x, 3, 2), GRAPH_VIEW);
    return zoo_conv_norm_from(b, "branch1", 2, x, zoo_same_conv(channels, 1, 1), GRAPH_RELU);
}

static tensor_id shuffle_unit(struct build *b, tensor_id x, int64_t channels, bool halves)
{
    tensor_id parts[2];
    if (halves) {
        parts[0] = shortcut_branch(b, x, channels / 2);
        parts[1] = main_branch(b, x, channels / 2, 2);
    } else {
        parts[0] = zoo_half_channels(b, "chunk_0", x);
        parts[1] = main_branch(b, zoo_half_channels(b, "chunk_1", x), channels / 2, 1);
    }
    x = build_concat(b, "cat", 1, parts, 2);
    return build_rearrange(
        b, "channel_shuffle", x,
        DIMS(build_dim(b, x, 0), channels, build_dim(b, x, 2), build_dim(b, x, 3)));
}

tensor_id zoo_build_shufflenet(struct build *b, const struct graph_options *options)
{
    static const int UNITS[] = {4, 8, 4};
    const struct shufflenet *net = ZOO_ROW(SHUFFLENETS, b->graph->name);
    tensor_id x = zoo_image(b, options);
    x = zoo_conv_norm_from(b, "conv1", 0, x, zoo_same_conv(24, 3, 2), GRAPH_RELU);
    x = build_pool(b, "maxpool", x,
                   (struct build_pool){GRAPH_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1});
    for (int stage = 0; stage < 3; stage++)
        for (int i = 0; i < UNITS[stage]; i++) {
            build_scope(b, "stage%d.%d.", stage + 2, i);
            x = shuffle_unit(b, x, net->channels[stage], i == 0);
        }
    build_root(b);
    x = zoo_conv_norm_from(b, "conv5", 0, x, zoo_same_conv(net->last, 1, 1), GRAPH_RELU);
    return zoo_classifier(b, x, "mean", NULL, "fc");
}

/* ---- MNASNet ---- */

struct mnasnet {
    const char *name;
    double width;
};

static const struct mnasnet MNASNETS[] = {
    {"mnasnet0_5", 0.5}, {"mnasnet0_75", 0.75}, {"mnasnet1_0", 1.0}, {"mnasnet1_3", 1.3}};

static const struct mnas_stack {
    double channels;
    int32_t kernel, stride;
    int expansion, count;
} MNAS_STACKS[] = {{24, 3, 2, 3, 3}, {40, 5, 2, 3, 3},  {80, 5, 2, 6, 3},
                   {96, 3, 1, 6, 2}, {192, 5, 2, 6, 4}, {320, 3, 1, 6, 1}};

static tensor_id mnas_residual(struct build *b, const struct mnas_stack *mnas_stack,
                               int64_t channels, int32_t stride, tensor_id in)
{
    int64_t in_channels = build_dim(b, in, 1);
    tensor_id x = zoo_conv_norm_from(
        b, "layers", 0, in, zoo_same_conv(in_channels * mnas_stack->expansion, 1, 1), GRAPH_RELU);
    x = zoo_conv_norm_from(b, "layers", 3, x, depthwise_of(b, x, mnas_stack->kernel, stride),
                           GRAPH_RELU);
    x = zoo_conv_norm_from(b, "layers", 6, x, zoo_same_conv(channels, 1, 1), GRAPH_VIEW);
    return in_channels == channels && stride == 1 ? build_binary(b, GRAPH_ADD, "add", x, in) : x;
}

tensor_id zoo_build_mnasnet(struct build *b, const struct graph_options *options)
{
    double width = ((const struct mnasnet *)ZOO_ROW(MNASNETS, b->graph->name))->width;
    tensor_id x = zoo_image(b, options);
    x = zoo_conv_norm_from(b, "layers", 0, x, zoo_same_conv(zoo_round_channels(32 * width), 3, 2),
                           GRAPH_RELU);
    x = zoo_conv_norm_from(b, "layers", 3, x, depthwise_of(b, x, 3, 1), GRAPH_RELU);
    x = zoo_conv_norm_from(b, "layers", 6, x, zoo_same_conv(zoo_round_channels(16 * width), 1, 1),
                           GRAPH_VIEW);
    for (int s = 0; s < 6; s++)
        for (int i = 0; i < MNAS_STACKS[s].count; i++) {
            build_scope(b, "layers.%d.%d.", s + 8, i);
            x = mnas_residual(b, &MNAS_STACKS[s],
                              zoo_round_channels(MNAS_STACKS[s].channels * width),
                              i == 0 ? MNAS_STACKS[s].stride : 1, x);
        }
    build_root(b);
    x = zoo_conv_norm_from(b, "layers", 14, x, zoo_same_conv(1280, 1, 1), GRAPH_RELU);
    return zoo_classifier(b, x, "mean", "classifier.0", "classifier.1");
}
