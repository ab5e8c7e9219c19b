/* YOLOv8 as Ultralytics lays it out: backbone, neck, and a head at three sizes that gives boxes (as
 * distributions over 16 bins a side) and 80 classes.  Not fused: batch norms stand by themselves. */
#include <math.h>

#include "core/text.h"
#include "graph/zoo/family.h"

struct yolo {
    const char *name;
    double depth, width, most; /* most: channels before they are scaled by width */
};

static const struct yolo YOLOS[] = {
    {"yolov8n", 0.33, 0.25, 1024}, {"yolov8s", 0.33, 0.50, 1024}, {"yolov8m", 0.67, 0.75, 768},
    {"yolov8l", 1.00, 1.00, 512},  {"yolov8x", 1.00, 1.25, 512},
};

enum { CLASSES = 80, BINS = 16, SIDES = 4, MOST_REPEATS = 8 };

static int64_t wide(const struct yolo *yolo, double channels)
{
    double scaled = (channels < yolo->most ? channels : yolo->most) * yolo->width;
    return (int64_t)ceil(scaled / 8) * 8;
}

static int deep(const struct yolo *yolo, int count)
{
    int scaled = (int)lrint(count * yolo->depth);
    return scaled > 1 ? scaled : 1;
}

/* ---- modules ---- */

/* Their Conv: convolution, batch norm, SiLU. */
static tensor_id conv(struct build *b, const char *place, tensor_id x, int64_t channels,
                      int32_t kernel, int32_t stride)
{
    char name[48];
    str_format(name, sizeof name, "%sconv", place);
    x = build_conv(b, name, x, zoo_same(channels, kernel, stride));
    str_format(name, sizeof name, "%sbn", place);
    x = build_batch_norm(b, name, x);
    str_format(name, sizeof name, "%sact", place);
    return build_op(b, GRAPH_SILU, name, x);
}

static tensor_id bottleneck(struct build *b, int number, tensor_id in, bool adds)
{
    char place[24];
    int64_t channels = build_dim(b, in, 1);
    str_format(place, sizeof place, "m.%d.cv1.", number);
    tensor_id x = conv(b, place, in, channels, 3, 1);
    str_format(place, sizeof place, "m.%d.cv2.", number);
    x = conv(b, place, x, channels, 3, 1);
    str_format(place, sizeof place, "m.%d.add", number);
    return adds ? build_binary(b, GRAPH_ADD, place, in, x) : x;
}

/* One half of the channels. */
static tensor_id half(struct build *b, const char *name, tensor_id x)
{
    int64_t dims[] = {build_dim(b, x, 0), build_dim(b, x, 1) / 2, build_dim(b, x, 2),
                      build_dim(b, x, 3)};
    return build_rearrange(b, name, x, 4, dims);
}

/* C2f: one half goes through bottlenecks, and every step of it is kept. */
static tensor_id c2f(struct build *b, tensor_id x, int64_t channels, int count, bool adds)
{
    tensor_id parts[2 + MOST_REPEATS];
    x = conv(b, "cv1.", x, channels / 2 * 2, 1, 1);
    parts[0] = half(b, "chunk_0", x);
    parts[1] = half(b, "chunk_1", x);
    for (int i = 0; i < count; i++)
        parts[i + 2] = bottleneck(b, i, parts[i + 1], adds);
    x = build_concat(b, "cat", 1, parts, count + 2);
    return conv(b, "cv2.", x, channels, 1, 1);
}

/* SPPF: three poolings of one another, side by side. */
static tensor_id sppf(struct build *b, tensor_id x, int64_t channels)
{
    static const struct build_pool POOL = {GRAPH_MAX_POOL, .kernel = 5, .stride = 1, .pad = 2};
    tensor_id parts[4];
    parts[0] = conv(b, "cv1.", x, build_dim(b, x, 1) / 2, 1, 1);
    parts[1] = build_pool(b, "m", parts[0], POOL);
    parts[2] = build_pool(b, "m_1", parts[1], POOL);
    parts[3] = build_pool(b, "m_2", parts[2], POOL);
    x = build_concat(b, "cat", 1, parts, 4);
    return conv(b, "cv2.", x, channels, 1, 1);
}

static void at(struct build *b, int number)
{
    build_scope(b, "model.%d.", number);
}

static tensor_id down(struct build *b, int number, tensor_id x, int64_t channels)
{
    at(b, number);
    return conv(b, "", x, channels, 3, 2);
}

static tensor_id stage(struct build *b, int number, tensor_id x, int64_t channels, int count,
                       bool adds)
{
    at(b, number);
    return c2f(b, x, channels, count, adds);
}

static tensor_id doubled(struct build *b, int number, tensor_id x)
{
    int64_t dims[] = {build_dim(b, x, 0), build_dim(b, x, 1), 2 * build_dim(b, x, 2),
                      2 * build_dim(b, x, 3)};
    at(b, number);
    return build_move(b, "upsample", x, 4, dims);
}

static tensor_id beside(struct build *b, int number, tensor_id x, tensor_id other)
{
    at(b, number);
    return build_concat(b, "cat", 1, (tensor_id[]){x, other}, 2);
}

/* ---- the head ---- */

static tensor_id branch(struct build *b, const char *kind, int level, tensor_id x, int64_t channels,
                        int64_t outputs)
{
    char place[24];
    struct build_conv last = {.channels = outputs, .kernel = 1, .has_bias = true};
    str_format(place, sizeof place, "%s.%d.0.", kind, level);
    x = conv(b, place, x, channels, 3, 1);
    str_format(place, sizeof place, "%s.%d.1.", kind, level);
    x = conv(b, place, x, channels, 3, 1);
    str_format(place, sizeof place, "%s.%d.2", kind, level);
    return build_conv(b, place, x, last);
}

/* Distributions over bins into distances, distances from anchors into boxes. */
static tensor_id boxes_of(struct build *b, tensor_id x, int64_t anchors)
{
    int64_t batch = build_dim(b, x, 0);
    x = build_rearrange(b, "box", x, 3, (int64_t[]){batch, SIDES * BINS, anchors});
    x = build_rearrange(b, "dfl.transpose", x, 4, (int64_t[]){batch, BINS, SIDES, anchors});
    x = build_op(b, GRAPH_SOFTMAX, "dfl.softmax", x);
    x = build_conv(b, "dfl.conv", x, (struct build_conv){.channels = 1, .kernel = 1});
    x = build_view(b, "dfl.view", x, 3, (int64_t[]){batch, SIDES, anchors});
    tensor_id points =
        build_tensor(b, GRAPH_CONSTANT, "anchors", 3, (int64_t[]){1, SIDES, anchors});
    tensor_id strides = build_tensor(b, GRAPH_CONSTANT, "strides", 3, (int64_t[]){1, 1, anchors});
    x = build_binary(b, GRAPH_ADD, "dist2bbox", x, points);
    return build_binary(b, GRAPH_MUL, "scale", x, strides);
}

static tensor_id detect(struct build *b, const tensor_id levels[3])
{
    int64_t batch = build_dim(b, levels[0], 0), first = build_dim(b, levels[0], 1);
    int64_t for_box = first / 4 > 64 ? first / 4 : 64;
    int64_t for_class = first > CLASSES ? first : CLASSES;
    int64_t each = SIDES * BINS + CLASSES, anchors = 0;
    tensor_id flat[3];
    at(b, 22);
    for (int i = 0; i < 3; i++) {
        char name[24];
        tensor_id both[] = {branch(b, "cv2", i, levels[i], for_box, SIDES * BINS),
                            branch(b, "cv3", i, levels[i], for_class, CLASSES)};
        int64_t points = build_dim(b, levels[i], 2) * build_dim(b, levels[i], 3);
        str_format(name, sizeof name, "cat_%d", i);
        tensor_id x = build_concat(b, name, 1, both, 2);
        str_format(name, sizeof name, "view_%d", i);
        flat[i] = build_view(b, name, x, 3, (int64_t[]){batch, each, points});
        anchors += points;
    }
    tensor_id all = build_concat(b, "cat", 2, flat, 3);
    tensor_id classes = build_rearrange(b, "cls", all, 3, (int64_t[]){batch, CLASSES, anchors});
    tensor_id parts[] = {boxes_of(b, all, anchors), build_op(b, GRAPH_SIGMOID, "sigmoid", classes)};
    return build_concat(b, "output", 1, parts, 2);
}

/* ---- the whole ---- */

enum err zoo_build_yolo(const char *name, const struct graph_options *setting, struct graph *out,
                        struct error *why)
{
    const struct yolo *yolo = ZOO_ROW(YOLOS, name);
    tensor_id x;
    if (setting->image % 32)
        return err_set(why, ERR_BAD_VALUE, "%s takes images of a multiple of 32 pixels, not %lld",
                       name, (long long)setting->image);
    struct build b = zoo_image(name, setting, 3, out, why, &x);
    x = down(&b, 0, x, wide(yolo, 64));
    x = down(&b, 1, x, wide(yolo, 128));
    x = stage(&b, 2, x, wide(yolo, 128), deep(yolo, 3), true);
    x = down(&b, 3, x, wide(yolo, 256));
    tensor_id at_8 = x = stage(&b, 4, x, wide(yolo, 256), deep(yolo, 6), true);
    x = down(&b, 5, x, wide(yolo, 512));
    tensor_id at_16 = x = stage(&b, 6, x, wide(yolo, 512), deep(yolo, 6), true);
    x = down(&b, 7, x, wide(yolo, 1024));
    x = stage(&b, 8, x, wide(yolo, 1024), deep(yolo, 3), true);
    at(&b, 9);
    tensor_id at_32 = x = sppf(&b, x, wide(yolo, 1024));

    tensor_id levels[3];
    x = beside(&b, 11, doubled(&b, 10, x), at_16);
    tensor_id middle = x = stage(&b, 12, x, wide(yolo, 512), deep(yolo, 3), false);
    x = beside(&b, 14, doubled(&b, 13, x), at_8);
    levels[0] = x = stage(&b, 15, x, wide(yolo, 256), deep(yolo, 3), false);
    x = beside(&b, 17, down(&b, 16, x, wide(yolo, 256)), middle);
    levels[1] = x = stage(&b, 18, x, wide(yolo, 512), deep(yolo, 3), false);
    x = beside(&b, 20, down(&b, 19, x, wide(yolo, 512)), at_32);
    levels[2] = stage(&b, 21, x, wide(yolo, 1024), deep(yolo, 3), false);
    build_output(&b, detect(&b, levels));
    return build_end(&b);
}
