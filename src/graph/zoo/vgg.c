/* Plain stacks of convolutions, as torchvision has them: VGG with and without batch norm, AlexNet. */
#include "core/text.h"
#include "graph/zoo/family.h"

struct vgg {
    const char *name;
    int convs[5]; /* of each stage, before its pooling */
    bool has_norm;
};

static const struct vgg VGGS[] = {
    {"vgg11", {1, 1, 2, 2, 2}, false}, {"vgg11_bn", {1, 1, 2, 2, 2}, true},
    {"vgg13", {2, 2, 2, 2, 2}, false}, {"vgg13_bn", {2, 2, 2, 2, 2}, true},
    {"vgg16", {2, 2, 3, 3, 3}, false}, {"vgg16_bn", {2, 2, 3, 3, 3}, true},
    {"vgg19", {2, 2, 4, 4, 4}, false}, {"vgg19_bn", {2, 2, 4, 4, 4}, true},
};

/* The name of the next module of `features`. */
static const char *next(char room[24], int *number)
{
    str_format(room, 24, "features.%d", (*number)++);
    return room;
}

static tensor_id classify(struct build *b, tensor_id x)
{
    x = zoo_adaptive_pool(b, "avgpool", x, 7);
    x = build_flatten(b, "flatten", x);
    x = build_linear(b, "classifier.0", x, 4096, true);
    x = build_op(b, GRAPH_RELU, "classifier.1", x);
    x = zoo_dropout(b, "classifier.2", x);
    x = build_linear(b, "classifier.3", x, 4096, true);
    x = build_op(b, GRAPH_RELU, "classifier.4", x);
    x = zoo_dropout(b, "classifier.5", x);
    return build_linear(b, "classifier.6", x, 1000, true);
}

enum err zoo_build_vgg(const char *name, const struct graph_options *setting, struct graph *out,
                       struct error *why)
{
    static const int64_t CHANNELS[] = {64, 128, 256, 512, 512};
    static const struct build_pool POOL = {GRAPH_MAX_POOL, .kernel = 2, .stride = 2};
    const struct vgg *vgg = ZOO_ROW(VGGS, name);
    tensor_id x;
    char place[24];
    int number = 0;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    for (int stage = 0; stage < 5; stage++) {
        for (int i = 0; i < vgg->convs[stage]; i++) {
            struct build_conv conv = zoo_same(CHANNELS[stage], 3, 1);
            conv.has_bias = true;
            x = build_conv(&b, next(place, &number), x, conv);
            if (vgg->has_norm)
                x = build_batch_norm(&b, next(place, &number), x);
            x = build_op(&b, GRAPH_RELU, next(place, &number), x);
        }
        x = build_pool(&b, next(place, &number), x, POOL);
    }
    build_output(&b, classify(&b, x));
    return build_end(&b);
}

enum err zoo_build_alexnet(const char *name, const struct graph_options *setting, struct graph *out,
                           struct error *why)
{
    static const struct build_pool POOL = {GRAPH_MAX_POOL, .kernel = 3, .stride = 2};
    static const struct {
        struct build_conv conv;
        bool pools;
    } CONVS[] = {
        {{.channels = 64, .kernel = 11, .stride = 4, .pad = 2, .has_bias = true}, true},
        {{.channels = 192, .kernel = 5, .pad = 2, .has_bias = true}, true},
        {{.channels = 384, .kernel = 3, .pad = 1, .has_bias = true}, false},
        {{.channels = 256, .kernel = 3, .pad = 1, .has_bias = true}, false},
        {{.channels = 256, .kernel = 3, .pad = 1, .has_bias = true}, true},
    };
    tensor_id x;
    char place[24];
    int number = 0;
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    for (size_t i = 0; i < sizeof CONVS / sizeof *CONVS; i++) {
        x = build_conv(&b, next(place, &number), x, CONVS[i].conv);
        x = build_op(&b, GRAPH_RELU, next(place, &number), x);
        if (CONVS[i].pools)
            x = build_pool(&b, next(place, &number), x, POOL);
    }
    x = zoo_adaptive_pool(&b, "avgpool", x, 6);
    x = build_flatten(&b, "flatten", x);
    x = zoo_dropout(&b, "classifier.0", x);
    x = build_linear(&b, "classifier.1", x, 4096, true);
    x = build_op(&b, GRAPH_RELU, "classifier.2", x);
    x = zoo_dropout(&b, "classifier.3", x);
    x = build_linear(&b, "classifier.4", x, 4096, true);
    x = build_op(&b, GRAPH_RELU, "classifier.5", x);
    build_output(&b, build_linear(&b, "classifier.6", x, 1000, true));
    return build_end(&b);
}
