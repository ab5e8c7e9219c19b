/* Branches side by side, as torchvision has them: GoogLeNet and Inception V3, with batch norms. */
#include "core/text.h"
#include "graph/zoo/family.h"

/* Their BasicConv2d: convolution, batch norm, ReLU. */
static tensor_id conv(struct build *b, const char *place, tensor_id x, struct build_conv how)
{
    char name[64];
    str_format(name, sizeof name, "%s.conv", place);
    x = build_conv(b, name, x, how);
    str_format(name, sizeof name, "%s.bn", place);
    x = build_batch_norm(b, name, x);
    str_format(name, sizeof name, "%s.relu", place);
    return build_op(b, GRAPH_RELU, name, x);
}

static tensor_id same(struct build *b, const char *place, tensor_id x, int64_t channels,
                      int32_t kernel)
{
    return conv(b, place, x, zoo_same(channels, kernel, 1));
}

/* Without padding. */
static tensor_id inner(struct build *b, const char *place, tensor_id x, int64_t channels,
                       int32_t kernel, int32_t stride)
{
    return conv(b, place, x,
                (struct build_conv){.channels = channels, .kernel = kernel, .stride = stride});
}

/* As high as wide one way, 1 the other; the size stays. */
static tensor_id flat(struct build *b, const char *place, tensor_id x, int64_t channels,
                      int32_t height, int32_t width)
{
    return conv(b, place, x,
                (struct build_conv){.channels = channels,
                                    .kernel = height,
                                    .pad = height / 2,
                                    .kernel_w = width,
                                    .pad_w = width / 2});
}

/* ---- GoogLeNet ---- */

struct branches {
    const char *name;
    int64_t one, three_before, three, five_before, five, pooled;
    int32_t pool_after; /* kernel of the pooling behind it; 0: none */
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

static tensor_id module(struct build *b, const struct branches *m, tensor_id x)
{
    static const struct build_pool POOL = {GRAPH_MAX_POOL, .kernel = 3, .stride = 1, .pad = 1,
                                           .rounds_up = true};
    build_scope(b, "%s.", m->name);
    tensor_id parts[4] = {same(b, "branch1", x, m->one, 1)};
    parts[1] = same(b, "branch2.1", same(b, "branch2.0", x, m->three_before, 1), m->three, 3);
    /* The paper has 5 x 5 here; the weights that all use have 3 x 3. */
    parts[2] = same(b, "branch3.1", same(b, "branch3.0", x, m->five_before, 1), m->five, 3);
    parts[3] = same(b, "branch4.1", build_pool(b, "branch4.0", x, POOL), m->pooled, 1);
    x = build_concat(b, "cat", 1, parts, 4);
    build_scope(b, "%s", "");
    return x;
}

static tensor_id classify(struct build *b, tensor_id x)
{
    x = build_global_pool(b, "avgpool", x);
    x = zoo_dropout(b, "dropout", x);
    x = build_flatten(b, "flatten", x);
    return build_linear(b, "fc", x, 1000, true);
}

static tensor_id pool_up(struct build *b, const char *name, tensor_id x, int32_t kernel)
{
    return build_pool(
        b, name, x,
        (struct build_pool){GRAPH_MAX_POOL, .kernel = kernel, .stride = 2, .rounds_up = true});
}

enum err zoo_build_googlenet(const char *name, const struct graph_options *setting,
                             struct graph *out, struct error *why)
{
    tensor_id x;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    x = conv(&b, "conv1", x, zoo_same(64, 7, 2));
    x = pool_up(&b, "maxpool1", x, 3);
    x = same(&b, "conv2", x, 64, 1);
    x = same(&b, "conv3", x, 192, 3);
    x = pool_up(&b, "maxpool2", x, 3);
    for (size_t i = 0; i < sizeof MODULES / sizeof *MODULES; i++) {
        x = module(&b, &MODULES[i], x);
        if (MODULES[i].pool_after > 0)
            x = pool_up(&b, MODULES[i].pool_after == 3 ? "maxpool3" : "maxpool4", x,
                        MODULES[i].pool_after);
    }
    build_output(&b, classify(&b, x));
    return build_end(&b);
}

/* ---- Inception V3 ---- */

static const struct build_pool HALVE = {GRAPH_MAX_POOL, .kernel = 3, .stride = 2};

static tensor_id pooled(struct build *b, tensor_id x, int64_t channels)
{
    static const struct build_pool MEAN = {GRAPH_AVG_POOL, .kernel = 3, .stride = 1, .pad = 1};
    return same(b, "branch_pool", build_pool(b, "avg_pool2d", x, MEAN), channels, 1);
}

static tensor_id module_a(struct build *b, tensor_id x, int64_t channels)
{
    tensor_id parts[4] = {same(b, "branch1x1", x, 64, 1)};
    parts[1] = same(b, "branch5x5_2", same(b, "branch5x5_1", x, 48, 1), 64, 5);
    parts[2] = same(b, "branch3x3dbl_2", same(b, "branch3x3dbl_1", x, 64, 1), 96, 3);
    parts[2] = same(b, "branch3x3dbl_3", parts[2], 96, 3);
    parts[3] = pooled(b, x, channels);
    return build_concat(b, "cat", 1, parts, 4);
}

static tensor_id module_b(struct build *b, tensor_id x)
{
    tensor_id parts[3] = {inner(b, "branch3x3", x, 384, 3, 2)};
    parts[1] = same(b, "branch3x3dbl_2", same(b, "branch3x3dbl_1", x, 64, 1), 96, 3);
    parts[1] = inner(b, "branch3x3dbl_3", parts[1], 96, 3, 2);
    parts[2] = build_pool(b, "max_pool2d", x, HALVE);
    return build_concat(b, "cat", 1, parts, 3);
}

static tensor_id module_c(struct build *b, tensor_id x, int64_t width)
{
    tensor_id parts[4] = {same(b, "branch1x1", x, 192, 1)};
    tensor_id y = flat(b, "branch7x7_2", same(b, "branch7x7_1", x, width, 1), width, 1, 7);
    parts[1] = flat(b, "branch7x7_3", y, 192, 7, 1);
    y = flat(b, "branch7x7dbl_2", same(b, "branch7x7dbl_1", x, width, 1), width, 7, 1);
    y = flat(b, "branch7x7dbl_3", y, width, 1, 7);
    y = flat(b, "branch7x7dbl_4", y, width, 7, 1);
    parts[2] = flat(b, "branch7x7dbl_5", y, 192, 1, 7);
    parts[3] = pooled(b, x, 192);
    return build_concat(b, "cat", 1, parts, 4);
}

static tensor_id module_d(struct build *b, tensor_id x)
{
    tensor_id parts[3];
    parts[0] = inner(b, "branch3x3_2", same(b, "branch3x3_1", x, 192, 1), 320, 3, 2);
    tensor_id y = flat(b, "branch7x7x3_2", same(b, "branch7x7x3_1", x, 192, 1), 192, 1, 7);
    y = flat(b, "branch7x7x3_3", y, 192, 7, 1);
    parts[1] = inner(b, "branch7x7x3_4", y, 192, 3, 2);
    parts[2] = build_pool(b, "max_pool2d", x, HALVE);
    return build_concat(b, "cat", 1, parts, 3);
}

static tensor_id module_e(struct build *b, tensor_id x)
{
    tensor_id y = same(b, "branch3x3_1", x, 384, 1);
    tensor_id three[] = {flat(b, "branch3x3_2a", y, 384, 1, 3),
                         flat(b, "branch3x3_2b", y, 384, 3, 1)};
    y = same(b, "branch3x3dbl_2", same(b, "branch3x3dbl_1", x, 448, 1), 384, 3);
    tensor_id twice[] = {flat(b, "branch3x3dbl_3a", y, 384, 1, 3),
                         flat(b, "branch3x3dbl_3b", y, 384, 3, 1)};
    tensor_id parts[] = {same(b, "branch1x1", x, 320, 1), build_concat(b, "branch3x3", 1, three, 2),
                         build_concat(b, "branch3x3dbl", 1, twice, 2), pooled(b, x, 192)};
    return build_concat(b, "cat", 1, parts, 4);
}

static tensor_id begin_v3(struct build *b, tensor_id x)
{
    x = inner(b, "Conv2d_1a_3x3", x, 32, 3, 2);
    x = inner(b, "Conv2d_2a_3x3", x, 32, 3, 1);
    x = same(b, "Conv2d_2b_3x3", x, 64, 3);
    x = build_pool(b, "maxpool1", x, HALVE);
    x = same(b, "Conv2d_3b_1x1", x, 80, 1);
    x = inner(b, "Conv2d_4a_3x3", x, 192, 3, 1);
    return build_pool(b, "maxpool2", x, HALVE);
}

/* A second head that only training uses: part of the published count, and of the file. */
static void add_resting_head(struct build *b)
{
    int64_t first = 768 * 128 + 2 * 128, second = 128 * 768 * 25 + 2 * 768,
            last = 768 * 1000 + 1000;
    build_tensor(b, GRAPH_PARAMETER, "AuxLogits", 1, (int64_t[]){first + second + last});
}

enum err zoo_build_inception_v3(const char *name, const struct graph_options *setting,
                                struct graph *out, struct error *why)
{
    static const char *const A[] = {"Mixed_5b.", "Mixed_5c.", "Mixed_5d."};
    static const char *const C[] = {"Mixed_6b.", "Mixed_6c.", "Mixed_6d.", "Mixed_6e."};
    static const int64_t WIDTHS[] = {128, 160, 160, 192};
    tensor_id x;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    x = begin_v3(&b, x);
    for (int i = 0; i < 3; i++) {
        build_scope(&b, "%s", A[i]);
        x = module_a(&b, x, i == 0 ? 32 : 64);
    }
    build_scope(&b, "%s", "Mixed_6a.");
    x = module_b(&b, x);
    for (int i = 0; i < 4; i++) {
        build_scope(&b, "%s", C[i]);
        x = module_c(&b, x, WIDTHS[i]);
    }
    build_scope(&b, "%s", "Mixed_7a.");
    x = module_d(&b, x);
    build_scope(&b, "%s", "Mixed_7b.");
    x = module_e(&b, x);
    build_scope(&b, "%s", "Mixed_7c.");
    x = module_e(&b, x);
    build_scope(&b, "%s", "");
    add_resting_head(&b);
    build_output(&b, classify(&b, x));
    return build_end(&b);
}
