/* EfficientNet B0 to B7 as torchvision has them: one network, made wider and deeper. */
#include <math.h>

#include "core/text.h"
#include "graph/zoo/family.h"

struct efficientnet {
    const char *name;
    double width, depth;
};

static const struct efficientnet EFFICIENTNETS[] = {
    {"efficientnet_b0", 1.0, 1.0}, {"efficientnet_b1", 1.0, 1.1}, {"efficientnet_b2", 1.1, 1.2},
    {"efficientnet_b3", 1.2, 1.4}, {"efficientnet_b4", 1.4, 1.8}, {"efficientnet_b5", 1.6, 2.2},
    {"efficientnet_b6", 1.8, 2.6}, {"efficientnet_b7", 2.0, 3.1},
};

static const struct stage {
    int expansion;
    int32_t kernel, stride;
    double in, out;
    double count;
} STAGES[] = {{1, 3, 1, 32, 16, 1},  {6, 3, 2, 16, 24, 2},  {6, 5, 2, 24, 40, 2},
              {6, 3, 2, 40, 80, 3},  {6, 5, 1, 80, 112, 3}, {6, 5, 2, 112, 192, 4},
              {6, 3, 1, 192, 320, 1}};
enum { STAGE_COUNT = sizeof STAGES / sizeof *STAGES };

static tensor_id mbconv(struct build *b, const struct stage *stage, int64_t channels,
                        int32_t stride, tensor_id in)
{
    static const char *const PLACES[] = {"block.0", "block.1", "block.2", "block.3"};
    int64_t before = build_dim(b, in, 1);
    /* torchvision rounds the width even where it is a multiple of 8 already. */
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
    x = zoo_conv_norm(b, *place, x, zoo_same(channels, 1, 1), GRAPH_VIEW);
    bool is_residual = stride == 1 && before == channels;
    return is_residual ? build_binary(b, GRAPH_ADD, "add", x, in) : x;
}

enum err zoo_build_efficientnet(const char *name, const struct graph_setting *setting,
                                struct graph *out, struct error *why)
{
    const struct efficientnet *net = ZOO_ROW(EFFICIENTNETS, name);
    tensor_id x;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    x = zoo_conv_norm(&b, "features.0", x, zoo_same(zoo_rounded(32 * net->width), 3, 2),
                      GRAPH_SILU);
    for (int s = 0; s < STAGE_COUNT; s++) {
        int64_t channels = zoo_rounded(STAGES[s].out * net->width);
        int count = (int)ceil(STAGES[s].count * net->depth);
        for (int i = 0; i < count; i++) {
            build_inside(&b, "features.%d.%d.", s + 1, i);
            x = mbconv(&b, &STAGES[s], channels, i == 0 ? STAGES[s].stride : 1, x);
        }
    }
    build_inside(&b, "%s", "");
    x = zoo_conv_norm(&b, "features.8", x, zoo_same(4 * build_dim(&b, x, 1), 1, 1), GRAPH_SILU);
    x = build_global_pool(&b, "avgpool", x);
    x = build_flatten(&b, "flatten", x);
    x = zoo_dropout(&b, "classifier.0", x);
    build_output(&b, build_linear(&b, "classifier.1", x, 1000, true));
    return build_end(&b);
}
