/* MobileNet V2 and V3 as torchvision has them: expand, filter each channel by itself, squeeze. */
#include "core/text.h"
#include "graph/zoo/family.h"

/* ---- V2 ---- */

struct stage {
    int expansion;
    int64_t channels;
    int count;
    int32_t stride;
};

static const struct stage STAGES[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                      {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
enum { STAGE_COUNT = sizeof STAGES / sizeof *STAGES };

static tensor_id inverted(struct build *b, const struct stage *stage, int32_t stride, tensor_id in)
{
    int64_t before = build_dim(b, in, 1), wide = before * stage->expansion;
    struct build_conv each = zoo_same(wide, 3, stride);
    bool expands = stage->expansion != 1;
    tensor_id x = in;
    each.groups = -1;
    if (expands)
        x = zoo_conv_norm(b, "conv.0", x, zoo_same(wide, 1, 1), GRAPH_CLIP);
    x = zoo_conv_norm(b, expands ? "conv.1" : "conv.0", x, each, GRAPH_CLIP);
    x = build_conv(b, expands ? "conv.2" : "conv.1", x, zoo_same(stage->channels, 1, 1));
    x = build_batch_norm(b, expands ? "conv.3" : "conv.2", x);
    bool is_residual = stride == 1 && before == stage->channels;
    return is_residual ? build_binary(b, GRAPH_ADD, "add", in, x) : x;
}

enum err zoo_build_mobilenet_v2(const char *name, const struct graph_options *setting,
                                struct graph *out, struct error *why)
{
    tensor_id x;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    int number = 1;
    x = zoo_conv_norm(&b, "features.0", x, zoo_same(32, 3, 2), GRAPH_CLIP);
    for (int s = 0; s < STAGE_COUNT; s++)
        for (int i = 0; i < STAGES[s].count; i++) {
            build_scope(&b, "features.%d.", number++);
            x = inverted(&b, &STAGES[s], i == 0 ? STAGES[s].stride : 1, x);
        }
    build_scope(&b, "%s", "");
    x = zoo_conv_norm(&b, "features.18", x, zoo_same(1280, 1, 1), GRAPH_CLIP);
    x = build_global_pool(&b, "adaptive_avg_pool2d", x);
    x = build_flatten(&b, "flatten", x);
    x = zoo_dropout(&b, "classifier.0", x);
    build_output(&b, build_linear(&b, "classifier.1", x, 1000, true));
    return build_end(&b);
}

/* ---- V3 ---- */

struct block3 {
    int32_t kernel;
    int64_t wide, channels;
    bool has_excite;
    enum graph_op activation;
    int32_t stride;
};

struct mobilenet3 {
    const char *name;
    int64_t last; /* width of the classifier */
    int count;
    struct block3 blocks[15];
};

#define RE GRAPH_RELU
#define HS GRAPH_HARD_SWISH
static const struct mobilenet3 MOBILENETS3[] = {
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

static const char *numbered(char *room, size_t size, int *number)
{
    str_format(room, size, "block.%d", (*number)++);
    return room;
}

/* Where filters are spread, they skip what the stride would. */
static tensor_id inverted3(struct build *b, const struct block3 *block, int32_t dilation,
                           tensor_id in)
{
    char place[16];
    int number = 0;
    int64_t before = build_dim(b, in, 1);
    struct build_conv each = zoo_same(block->wide, block->kernel, block->stride);
    tensor_id x = in;
    each.groups = -1;
    if (dilation > 1) {
        each.stride = 1;
        each.dilation = dilation;
        each.pad *= dilation;
    }
    int64_t quarter = block->wide / 4;
    if (block->wide != before)
        x = zoo_conv_norm(b, numbered(place, sizeof place, &number), x, zoo_same(block->wide, 1, 1),
                          block->activation);
    x = zoo_conv_norm(b, numbered(place, sizeof place, &number), x, each, block->activation);
    if (block->has_excite)
        x = zoo_excite(
            b, numbered(place, sizeof place, &number), x,
            (struct zoo_excite){zoo_rounded((double)quarter), GRAPH_RELU, GRAPH_HARD_SIGMOID});
    x = zoo_conv_norm(b, numbered(place, sizeof place, &number), x, zoo_same(block->channels, 1, 1),
                      GRAPH_VIEW);
    bool is_residual = block->stride == 1 && before == block->channels;
    return is_residual ? build_binary(b, GRAPH_ADD, "add", x, in) : x;
}

enum err zoo_build_mobilenet_v3(const char *name, const struct graph_options *setting,
                                struct graph *out, struct error *why)
{
    const struct mobilenet3 *net = ZOO_ROW(MOBILENETS3, name);
    tensor_id x;
    char place[24];
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    x = zoo_conv_norm(&b, "features.0", x, zoo_same(16, 3, 2), GRAPH_HARD_SWISH);
    for (int i = 0; i < net->count; i++) {
        build_scope(&b, "features.%d.", i + 1);
        x = inverted3(&b, &net->blocks[i], 1, x);
    }
    build_scope(&b, "%s", "");
    str_format(place, sizeof place, "features.%d", net->count + 1);
    x = zoo_conv_norm(&b, place, x, zoo_same(6 * build_dim(&b, x, 1), 1, 1), GRAPH_HARD_SWISH);
    x = build_global_pool(&b, "avgpool", x);
    x = build_flatten(&b, "flatten", x);
    x = build_linear(&b, "classifier.0", x, net->last, true);
    x = build_op(&b, GRAPH_HARD_SWISH, "classifier.1", x);
    x = zoo_dropout(&b, "classifier.2", x);
    build_output(&b, build_linear(&b, "classifier.3", x, 1000, true));
    return build_end(&b);
}

tensor_id zoo_mobilenet_v3_spread(struct build *build, tensor_id x, tensor_id *early)
{
    enum { EARLY = 3, SPREAD = 12 }; /* blocks: the first of 40 channels, and of 160 */
    const struct mobilenet3 *net = ZOO_ROW(MOBILENETS3, "mobilenet_v3_large");
    build_scope(build, "%s", "backbone.");
    x = zoo_conv_norm(build, "0", x, zoo_same(16, 3, 2), GRAPH_HARD_SWISH);
    for (int i = 0; i < net->count; i++) {
        build_scope(build, "backbone.%d.", i + 1);
        x = inverted3(build, &net->blocks[i], i >= SPREAD ? 2 : 1, x);
        if (i == EARLY)
            *early = x;
    }
    build_scope(build, "%s", "backbone.");
    return zoo_conv_norm(build, "16", x, zoo_same(6 * build_dim(build, x, 1), 1, 1),
                         GRAPH_HARD_SWISH);
}
