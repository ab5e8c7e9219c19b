/* RegNet as torchvision has it: bottlenecks that keep their width, in groups of channels; Y's are excited. */
#include "graph/zoo/family.h"

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

/* Excitation is squeezed to a quarter of what the block gets, not of what it has. */
static tensor_id block(struct build *b, const struct regnet *regnet, tensor_id in, int64_t width,
                       int32_t stride)
{
    int64_t before = build_dim(b, in, 1);
    struct build_conv grouped = zoo_same(width, 3, stride);
    grouped.groups = width > regnet->group_width ? width / regnet->group_width : 1;
    tensor_id shortcut = in;
    if (before != width || stride != 1)
        shortcut = zoo_conv_norm(b, "proj", in, zoo_same(width, 1, stride), GRAPH_VIEW);
    tensor_id x = zoo_conv_norm(b, "f.a", in, zoo_same(width, 1, 1), GRAPH_RELU);
    x = zoo_conv_norm(b, "f.b", x, grouped, GRAPH_RELU);
    if (regnet->has_excite)
        x = zoo_excite(b, "f.se", x,
                       (struct zoo_excite){(before + 2) / 4, GRAPH_RELU, GRAPH_SIGMOID});
    x = zoo_conv_norm(b, "f.c", x, zoo_same(width, 1, 1), GRAPH_VIEW);
    x = build_binary(b, GRAPH_ADD, "add", shortcut, x);
    return build_op(b, GRAPH_RELU, "activation", x);
}

enum err zoo_build_regnet(const char *name, const struct graph_options *setting, struct graph *out,
                          struct error *why)
{
    const struct regnet *regnet = ZOO_ROW(REGNETS, name);
    tensor_id x;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    x = zoo_conv_norm(&b, "stem", x, zoo_same(32, 3, 2), GRAPH_RELU);
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < regnet->blocks[stage]; i++) {
            build_scope(&b, "trunk_output.block%d.block%d-%d.", stage + 1, stage + 1, i);
            x = block(&b, regnet, x, regnet->widths[stage], i == 0 ? 2 : 1);
        }
    build_scope(&b, "%s", "");
    x = build_flatten(&b, "flatten", build_global_pool(&b, "avgpool", x));
    build_output(&b, build_linear(&b, "fc", x, 1000, true));
    return build_end(&b);
}
