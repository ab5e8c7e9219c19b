/* YOLOv8 as in Ultralytics: backbone, neck, and a detection head at three scales that outputs boxes (distributions over
 * 16 bins per side) and 80 classes.  Batch norms are not folded. */
#include <math.h>

#include "core/text.h"
#include "graph/zoo/family.h"

struct yolo {
    const char *name;
    double depth, width, max_channels; /* before scaling by width */
};

static const struct yolo YOLOS[] = {
    {"yolov8n", 0.33, 0.25, 1024}, {"yolov8s", 0.33, 0.50, 1024}, {"yolov8m", 0.67, 0.75, 768},
    {"yolov8l", 1.00, 1.00, 512},  {"yolov8x", 1.00, 1.25, 512},
};

enum { CLASSES = 80, BINS = 16, SIDES = 4, MAX_REPEATS = 8 };

static int64_t scale_width(const struct yolo *yolo, double channels)
{
    double scaled = (channels < yolo->max_channels ? channels : yolo->max_channels) * yolo->width;
    return (int64_t)ceil(scaled / 8) * 8;
}

static int scale_depth(const struct yolo *yolo, int count)
{
    int scaled = (int)lrint(count * yolo->depth);
    return scaled > 1 ? scaled : 1;
}

/* ---- modules ---- */

/* The Conv of Ultralytics: convolution, batch norm, SiLU. */
static tensor_id conv(struct build *b, const char *scope, tensor_id x, int64_t channels,
                      int32_t kernel, int32_t stride)
{
    static const struct zoo_unit NAMES = {"conv", "bn", "act"};
    return zoo_unit(b, scope, &NAMES, x, zoo_same_conv(channels, kernel, stride), GRAPH_SILU);
}

static tensor_id bottleneck(struct build *b, int number, tensor_id in, bool has_shortcut)
{
    char scope[24];
    int64_t channels = build_dim(b, in, 1);
    chars_format(scope, "m.%d.cv1", number);
    tensor_id x = conv(b, scope, in, channels, 3, 1);
    chars_format(scope, "m.%d.cv2", number);
    x = conv(b, scope, x, channels, 3, 1);
    chars_format(scope, "m.%d.add", number);
    return has_shortcut ? build_binary(b, GRAPH_ADD, scope, in, x) : x;
}

/* C2f: one half goes through bottlenecks, whose outputs are all concatenated. */
static tensor_id c2f(struct build *b, tensor_id x, int64_t channels, int count, bool has_shortcut)
{
    tensor_id parts[2 + MAX_REPEATS];
    x = conv(b, "cv1", x, channels / 2 * 2, 1, 1);
    parts[0] = zoo_half_channels(b, "chunk_0", x);
    parts[1] = zoo_half_channels(b, "chunk_1", x);
    for (int i = 0; i < count; i++)
        parts[i + 2] = bottleneck(b, i, parts[i + 1], has_shortcut);
    x = build_concat(b, "cat", 1, parts, count + 2);
    return conv(b, "cv2", x, channels, 1, 1);
}

/* SPPF: three poolings in series, concatenated. */
static tensor_id sppf(struct build *b, tensor_id x, int64_t channels)
{
    static const struct build_pool POOL = {GRAPH_MAX_POOL, .kernel = 5, .stride = 1, .pad = 2};
    tensor_id parts[4];
    parts[0] = conv(b, "cv1", x, build_dim(b, x, 1) / 2, 1, 1);
    parts[1] = build_pool(b, "m", parts[0], POOL);
    parts[2] = build_pool(b, "m_1", parts[1], POOL);
    parts[3] = build_pool(b, "m_2", parts[2], POOL);
    x = build_concat(b, "cat", 1, parts, 4);
    return conv(b, "cv2", x, channels, 1, 1);
}

static void enter_module(struct build *b, int number)
{
    build_scope(b, "model.%d.", number);
}

static tensor_id downsample(struct build *b, int number, tensor_id x, int64_t channels)
{
    enter_module(b, number);
    return conv(b, "", x, channels, 3, 2);
}

static tensor_id stage(struct build *b, int number, tensor_id x, int64_t channels, int count,
                       bool has_shortcut)
{
    enter_module(b, number);
    return c2f(b, x, channels, count, has_shortcut);
}

static tensor_id upsample(struct build *b, int number, tensor_id x)
{
    enter_module(b, number);
    return build_move(b, "upsample", x,
                      DIMS(build_dim(b, x, 0), build_dim(b, x, 1), 2 * build_dim(b, x, 2),
                           2 * build_dim(b, x, 3)));
}

static tensor_id concat(struct build *b, int number, tensor_id x, tensor_id other)
{
    enter_module(b, number);
    return build_concat(b, "cat", 1, (tensor_id[]){x, other}, 2);
}

/* ---- the head ---- */

static tensor_id branch(struct build *b, const char *kind, int level, tensor_id x, int64_t channels,
                        int64_t outputs)
{
    char scope[24];
    struct build_conv last = {.channels = outputs, .kernel = 1, .has_bias = true};
    chars_format(scope, "%s.%d.0", kind, level);
    x = conv(b, scope, x, channels, 3, 1);
    chars_format(scope, "%s.%d.1", kind, level);
    x = conv(b, scope, x, channels, 3, 1);
    chars_format(scope, "%s.%d.2", kind, level);
    return build_conv(b, scope, x, last);
}

/* Distributions over bins to distances, distances from anchors to boxes. */
static tensor_id boxes_of(struct build *b, tensor_id x, int64_t anchors)
{
    int64_t batch = build_dim(b, x, 0);
    x = build_rearrange(b, "box", x, DIMS(batch, SIDES * BINS, anchors));
    x = build_rearrange(b, "dfl.transpose", x, DIMS(batch, BINS, SIDES, anchors));
    x = build_op(b, GRAPH_SOFTMAX, "dfl.softmax", x);
    x = build_conv(b, "dfl.conv", x, (struct build_conv){.channels = 1, .kernel = 1});
    x = build_view(b, "dfl.view", x, DIMS(batch, SIDES, anchors));
    tensor_id points = build_tensor(b, GRAPH_CONSTANT, "anchors", DIMS(1, SIDES, anchors));
    tensor_id strides = build_tensor(b, GRAPH_CONSTANT, "strides", DIMS(1, 1, anchors));
    x = build_binary(b, GRAPH_ADD, "dist2bbox", x, points);
    return build_binary(b, GRAPH_MUL, "scale", x, strides);
}

static tensor_id detect(struct build *b, const tensor_id levels[3])
{
    int64_t batch = build_dim(b, levels[0], 0), first = build_dim(b, levels[0], 1);
    int64_t for_box = first / 4 > 64 ? first / 4 : 64;
    int64_t for_class = first > CLASSES ? first : CLASSES;
    int64_t depthwise = SIDES * BINS + CLASSES, anchors = 0;
    tensor_id flat[3];
    enter_module(b, 22);
    for (int i = 0; i < 3; i++) {
        char name[24];
        tensor_id both[] = {branch(b, "cv2", i, levels[i], for_box, SIDES * BINS),
                            branch(b, "cv3", i, levels[i], for_class, CLASSES)};
        int64_t points = build_dim(b, levels[i], 2) * build_dim(b, levels[i], 3);
        chars_format(name, "cat_%d", i);
        tensor_id x = build_concat(b, name, 1, both, 2);
        chars_format(name, "view_%d", i);
        flat[i] = build_view(b, name, x, DIMS(batch, depthwise, points));
        anchors += points;
    }
    tensor_id all = build_concat(b, "cat", 2, flat, 3);
    tensor_id classes = build_rearrange(b, "cls", all, DIMS(batch, CLASSES, anchors));
    tensor_id parts[] = {boxes_of(b, all, anchors), build_op(b, GRAPH_SIGMOID, "sigmoid", classes)};
    return build_concat(b, "output", 1, parts, 2);
}

/* ---- the model ---- */

tensor_id zoo_build_yolo(struct build *b, const struct graph_options *options)
{
    const struct yolo *yolo = ZOO_ROW(YOLOS, b->graph->name);
    zoo_check_multiple(b, options->image, 32);
    tensor_id x = zoo_image(b, options);
    x = downsample(b, 0, x, scale_width(yolo, 64));
    x = downsample(b, 1, x, scale_width(yolo, 128));
    x = stage(b, 2, x, scale_width(yolo, 128), scale_depth(yolo, 3), true);
    x = downsample(b, 3, x, scale_width(yolo, 256));
    tensor_id at_8 = x = stage(b, 4, x, scale_width(yolo, 256), scale_depth(yolo, 6), true);
    x = downsample(b, 5, x, scale_width(yolo, 512));
    tensor_id at_16 = x = stage(b, 6, x, scale_width(yolo, 512), scale_depth(yolo, 6), true);
    x = downsample(b, 7, x, scale_width(yolo, 1024));
    x = stage(b, 8, x, scale_width(yolo, 1024), scale_depth(yolo, 3), true);
    enter_module(b, 9);
    tensor_id at_32 = x = sppf(b, x, scale_width(yolo, 1024));

    tensor_id levels[3];
    x = concat(b, 11, upsample(b, 10, x), at_16);
    tensor_id middle = x = stage(b, 12, x, scale_width(yolo, 512), scale_depth(yolo, 3), false);
    x = concat(b, 14, upsample(b, 13, x), at_8);
    levels[0] = x = stage(b, 15, x, scale_width(yolo, 256), scale_depth(yolo, 3), false);
    x = concat(b, 17, downsample(b, 16, x, scale_width(yolo, 256)), middle);
    levels[1] = x = stage(b, 18, x, scale_width(yolo, 512), scale_depth(yolo, 3), false);
    x = concat(b, 20, downsample(b, 19, x, scale_width(yolo, 512)), at_32);
    levels[2] = stage(b, 21, x, scale_width(yolo, 1024), scale_depth(yolo, 3), false);
    return detect(b, levels);
}
