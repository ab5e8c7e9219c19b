/* Decoding, non-maximum suppression and printing of detections. */
#include "workloads/vision.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "workloads/labels.h"

void found_boxes_release(struct found_boxes *boxes)
{
    free(boxes->items);
    *boxes = (struct found_boxes){0};
}

/* ---- decoding ---- */

void found_boxes_add_anchors(struct found_boxes *out, const float *values, size_t classes,
                             size_t anchors, double confidence)
{
    for (size_t i = 0; i < anchors; i++) {
        const float *scores = values + 4 * anchors + i;
        size_t best = 0;
        for (size_t class = 1; class < classes; class ++)
            if (scores[class * anchors] > scores[best * anchors])
                best = class;
        if (!(scores[best * anchors] > confidence))
            continue;
        float x = values[i], y = values[anchors + i];
        float half_width = values[2 * anchors + i] / 2, half_height = values[3 * anchors + i] / 2;
        *XADD(out->items, out->count, out->capacity) = (struct found_box){
            .left = x - half_width,
            .top = y - half_height,
            .right = x + half_width,
            .bottom = y + half_height,
            .score = scores[best * anchors],
            .label = (uint32_t)best,
        };
    }
}

void found_boxes_add_objects(struct found_boxes *out, const float *values, size_t objects,
                             double confidence)
{
    enum { LEFT, TOP, RIGHT, BOTTOM, SCORE, CLASS, VALUES };
    for (size_t i = 0; i < objects; i++) {
        const float *object = values + i * VALUES;
        if (!(object[SCORE] > confidence) || !(object[CLASS] >= 0 && object[CLASS] < 1e6F))
            continue;
        *XADD(out->items, out->count, out->capacity) = (struct found_box){
            .left = object[LEFT],
            .top = object[TOP],
            .right = object[RIGHT],
            .bottom = object[BOTTOM],
            .score = object[SCORE],
            .label = (uint32_t)object[CLASS],
        };
    }
}

/* ---- suppression ---- */

struct ranked {
    struct found_box item;
    size_t index;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    int order = compare_numbers(b->item.score, a->item.score);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static void sort(struct found_boxes *boxes)
{
    struct ranked *ranked = xcalloc(boxes->count, sizeof *ranked);
    for (size_t i = 0; i < boxes->count; i++)
        ranked[i] = (struct ranked){boxes->items[i], i};
    if (boxes->count > 0)
        qsort(ranked, boxes->count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < boxes->count; i++)
        boxes->items[i] = ranked[i].item;
    free(ranked);
}

static double area(const struct found_box *box)
{
    return ((double)box->right - box->left) * ((double)box->bottom - box->top);
}

/* Intersection over union. */
static double overlap(const struct found_box *a, const struct found_box *b)
{
    double width = fmin(a->right, b->right) - fmax(a->left, b->left);
    double height = fmin(a->bottom, b->bottom) - fmax(a->top, b->top);
    if (!(width > 0 && height > 0))
        return 0;
    return width * height / (area(a) + area(b) - width * height);
}

void found_boxes_suppress(struct found_boxes *boxes, double iou, size_t max)
{
    struct found_box *items = boxes->items;
    size_t kept = 0;
    sort(boxes);
    for (size_t i = 0; i < boxes->count && kept < max; i++) {
        bool is_free = true;
        for (size_t k = 0; k < kept && is_free; k++)
            is_free = items[k].label != items[i].label || overlap(&items[k], &items[i]) <= iou;
        if (is_free)
            items[kept++] = items[i];
    }
    boxes->count = kept;
}

void found_boxes_limit(struct found_boxes *boxes, size_t max)
{
    sort(boxes);
    if (boxes->count > max)
        boxes->count = max;
}

/* ---- the answer ---- */

static float in_image(double position, double offset, double scale, uint32_t side)
{
    return (float)fmax(0, fmin(side, (position - offset) / scale));
}

void found_boxes_unletterbox(struct found_boxes *boxes, double scale, double left, double top,
                             uint32_t width, uint32_t height)
{
    for (size_t i = 0; i < boxes->count; i++) {
        struct found_box *box = &boxes->items[i];
        box->left = in_image(box->left, left, scale, width);
        box->right = in_image(box->right, left, scale, width);
        box->top = in_image(box->top, top, scale, height);
        box->bottom = in_image(box->bottom, top, scale, height);
    }
}

/* To a thousandth of a pixel. */
static double pixels(double value)
{
    return round(value * 1000) / 1000;
}

void found_boxes_answer(const struct found_boxes *boxes, const struct labels *labels,
                        struct text *out)
{
    struct json json;
    json_init(&json, out, false);
    json_array(&json, NULL);
    for (size_t i = 0; i < boxes->count; i++) {
        const struct found_box *item = &boxes->items[i];
        const double box[] = {pixels(item->left), pixels(item->top),
                              pixels((double)item->right - item->left),
                              pixels((double)item->bottom - item->top)};
        char score[32];
        chars_format(score, "%.6g", (double)item->score);
        json_object(&json, NULL);
        json_string(&json, "label", labels_text(labels, item->label).text);
        json_raw(&json, "score", score);
        json_numbers(&json, "box", box, COUNT_OF(box));
        json_object_end(&json);
    }
    json_array_end(&json);
}
