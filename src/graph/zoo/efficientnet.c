/* EfficientNet as torchvision has it: B0 to B7 are one network made wider and deeper, V2 begins with
 * convolutions that expand and filter at once. */
#include <math.h>

#include "core/text.h"
#include "graph/zoo/family.h"

struct stage {
    int expansion; /* 0: the end */
    int32_t kernel, stride;
    double channels, count;
    bool is_fused;
};

static const struct stage V1[] = {{1, 3, 1, 16, 1, false},  {6, 3, 2, 24, 2, false},
                                  {6, 5, 2, 40, 2, false},  {6, 3, 2, 80, 3, false},
                                  {6, 5, 1, 112, 3, false}, {6, 5, 2, 192, 4, false},
                                  {6, 3, 1, 320, 1, false}, {0}};
static const struct stage V2_S[] = {{1, 3, 1, 24, 2, true},
                                    {4, 3, 2, 48, 4, true},
                                    {4, 3, 2, 64, 4, true},
                                    {4, 3, 2, 128, 6, false},
                                    {6, 3, 1, 160, 9, false},
                                    {6, 3, 2, 256, 15, false},
                                    {0}};
static const struct stage V2_M[] = {{1, 3, 1, 24, 3, true},    {4, 3, 2, 48, 5, true},
                                    {4, 3, 2, 80, 5, true},    {4, 3, 2, 160, 7, false},
                                    {6, 3, 1, 176, 14, false}, {6, 3, 2, 304, 18, false},
                                    {6, 3, 1, 512, 5, false},  {0}};
static const struct stage V2_L[] = {{1, 3, 1, 32, 4, true},    {4, 3, 2, 64, 7, true},
                                    {4, 3, 2, 96, 7, true},    {4, 3, 2, 192, 10, false},
                                    {6, 3, 1, 224, 19, false}, {6, 3, 2, 384, 25, false},
                                    {6, 3, 1, 640, 7, false},  {0}};

struct efficientnet {
    const char *name;
    const struct stage *stages;
    double width, depth;
    double first; /* channels of the stem */
    int64_t last; /* of the convolution before the classifier; 0: four times what it gets */
};

static const struct efficientnet EFFICIENTNETS[] = {
    {"efficientnet_b0", V1, 1.0, 1.0, 32, 0},    {"efficientnet_b1", V1, 1.0, 1.1, 32, 0},
    {"efficientnet_b2", V1, 1.1, 1.2, 32, 0},    {"efficientnet_b3", V1, 1.2, 1.4, 32, 0},
    {"efficientnet_b4", V1, 1.4, 1.8, 32, 0},    {"efficientnet_b5", V1, 1.6, 2.2, 32, 0},
    {"efficientnet_b6", V1, 1.8, 2.6, 32, 0},    {"efficientnet_b7", V1, 2.0, 3.1, 32, 0},
    {"efficientnet_v2_s", V2_S, 1, 1, 24, 1280}, {"efficientnet_v2_m", V2_M, 1, 1, 24, 1280},
    {"efficientnet_v2_l", V2_L, 1, 1, 32, 1280},
};

static tensor_id mbconv(struct build *b, const struct stage *stage, int64_t channels,
                        int32_t stride, tensor_id in)
{
    static const char *const PLACES[] = {"block.0", "block.1", "block.2", "block.3"};
    int64_t before = build_dim(b, in, 1);
    int64_t wide = zoo_rounded((double)(before * stage->expansion));
    int64_t squeezed = before / 4 > 0 ? before / 4 : 1;
    struct build_conv each = zoo_same(wide, stage->kernel, stride);
    const char *const *place = PLACES;
    tensor_id x = in;
    each.groups = -1;
    if (wide != before)
        x = zoo_conv_norm(b, *place++, x, zoo_same(wide, 1, 1), GRAPH_SILU);
    x = zoo_conv_norm(b, *place++, x, each, GRAPH_SILU);
    x = zoo_excite(b, *place++, x, (struct zoo_excite){squeezed, GRAPH_SILU, GRAPH_SIGMOID});
    return zoo_conv_norm(b, *place, x, zoo_same(channels, 1, 1), GRAPH_VIEW);
}

static tensor_id fused(struct build *b, const struct stage *stage, int64_t channels, int32_t stride,
                       tensor_id in)
{
    int64_t before = build_dim(b, in, 1), wide = zoo_rounded((double)(before * stage->expansion));
    if (wide == before)
        return zoo_conv_norm(b, "block.0", in, zoo_same(channels, stage->kernel, stride),
                             GRAPH_SILU);
    tensor_id x =
        zoo_conv_norm(b, "block.0", in, zoo_same(wide, stage->kernel, stride), GRAPH_SILU);
    return zoo_conv_norm(b, "block.1", x, zoo_same(channels, 1, 1), GRAPH_VIEW);
}

static tensor_id block(struct build *b, const struct stage *stage, int64_t channels, int32_t stride,
                       tensor_id in)
{
    tensor_id x = stage->is_fused ? fused(b, stage, channels, stride, in)
                                  : mbconv(b, stage, channels, stride, in);
    bool is_residual = stride == 1 && build_dim(b, in, 1) == channels;
    return is_residual ? build_binary(b, GRAPH_ADD, "add", x, in) : x;
}

enum err zoo_build_efficientnet(const char *name, const struct graph_options *setting,
                                struct graph *out, struct error *why)
{
    const struct efficientnet *net = ZOO_ROW(EFFICIENTNETS, name);
    tensor_id x;
    char place[24];
    int number = 1;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    x = zoo_conv_norm(&b, "features.0", x, zoo_same(zoo_rounded(net->first * net->width), 3, 2),
                      GRAPH_SILU);
    for (const struct stage *stage = net->stages; stage->expansion; stage++, number++) {
        int64_t channels = zoo_rounded(stage->channels * net->width);
        int count = (int)ceil(stage->count * net->depth);
        for (int i = 0; i < count; i++) {
            build_scope(&b, "features.%d.%d.", number, i);
            x = block(&b, stage, channels, i == 0 ? stage->stride : 1, x);
        }
    }
    build_scope(&b, "%s", "");
    str_format(place, sizeof place, "features.%d", number);
    int64_t last = net->last > 0 ? net->last : 4 * build_dim(&b, x, 1);
    x = zoo_conv_norm(&b, place, x, zoo_same(last, 1, 1), GRAPH_SILU);
    x = build_global_pool(&b, "avgpool", x);
    x = build_flatten(&b, "flatten", x);
    x = zoo_dropout(&b, "classifier.0", x);
    build_output(&b, build_linear(&b, "classifier.1", x, 1000, true));
    return build_end(&b);
}
