/* Object detection annotations in COCO's JSON format.  The file of a large dataset has hundreds of megabytes, mostly
 * outlines that are not used here: the top level is scanned, and one element of a list parsed at a time. */
#include "datasets/coco.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/jv.h"
#include "core/slice.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"

#define COCO_FILE_MAX ((size_t)1 << 30)

void coco_release(struct coco *coco)
{
    for (size_t i = 0; i < coco->image_count; i++)
        free(coco->images[i].file_name);
    for (size_t i = 0; i < coco->category_count; i++)
        free(coco->categories[i].name);
    free(coco->images);
    free(coco->categories);
    free(coco->boxes);
    *coco = (struct coco){0};
}

/* ---- elements of the lists ---- */

static enum err take_image(struct coco *coco, const struct jv *value, struct error *why)
{
    struct coco_image image = {0};
    const char *name = jv_get_text(value, "file_name");
    if (!name || !jv_integer(jv_get(value, "id"), &image.id))
        return err_set(why, ERR_BAD_VALUE, "needs an integer id, and file_name");
    image.file_name = xstrdup(name);
    *XADD(coco->images, coco->image_count, coco->image_capacity) = image;
    return ERR_OK;
}

static enum err take_category(struct coco *coco, const struct jv *value, struct error *why)
{
    struct coco_category category = {0};
    const char *name = jv_get_text(value, "name");
    if (!name || !jv_integer(jv_get(value, "id"), &category.id))
        return err_set(why, ERR_BAD_VALUE, "needs an integer id, and name");
    category.name = xstrdup(name);
    *XADD(coco->categories, coco->category_count, coco->category_capacity) = category;
    return ERR_OK;
}

/* Known numbers, and a size that is not negative. */
static bool is_place(const double place[4])
{
    return isfinite(place[0]) && isfinite(place[1]) && place[2] >= 0 && place[3] >= 0;
}

/* iscrowd is 0, 1 or a truth value. */
static enum err take_box(struct coco *coco, const struct jv *value, struct error *why)
{
    struct coco_box box = {.order = coco->box_count};
    const struct jv *crowd = jv_get(value, "iscrowd");
    if (!jv_integer(jv_get(value, "image_id"), &box.image) ||
        !jv_integer(jv_get(value, "category_id"), &box.category))
        return err_set(why, ERR_BAD_VALUE, "needs the integers image_id and category_id");
    if (!jv_numbers(jv_get(value, "bbox"), box.place, COUNT_OF(box.place)) || !is_place(box.place))
        return err_set(why, ERR_BAD_VALUE, "needs bbox: [x, y, width, height] in pixels");
    box.is_crowd = jv_bool(crowd, jv_number(crowd) > 0);
    *XADD(coco->boxes, coco->box_count, coco->box_capacity) = box;
    return ERR_OK;
}

static const struct list {
    const char *key;
    enum err (*take)(struct coco *coco, const struct jv *value, struct error *why);
} LISTS[] = {{"images", take_image}, {"categories", take_category}, {"annotations", take_box}};

/* ---- scanning the file ---- */

struct scan {
    const char *start, *at, *end;
};

/* The next byte that is no white space, '\0' at the end. */
static char peek(struct scan *scan)
{
    while (scan->at < scan->end && slice_is_space(*scan->at))
        scan->at++;
    return scan->at < scan->end ? *scan->at : '\0';
}

static bool accept(struct scan *scan, char c)
{
    bool is_next = peek(scan) == c && scan->at < scan->end;
    scan->at += is_next;
    return is_next;
}

static enum err not_json(const struct scan *scan, struct error *why)
{
    return err_set(why, ERR_BAD_VALUE, "not JSON at byte %zu", (size_t)(scan->at - scan->start));
}

/* One value as text. */
static enum err take_value(struct scan *scan, struct slice *out, struct error *why)
{
    char first = peek(scan);
    const char *after = first ? json_skip_value(scan->at, scan->end) : NULL;
    if (!after || after == scan->at)
        return not_json(scan, why);
    *out = slice_between(scan->at, after);
    scan->at = after;
    return ERR_OK;
}

static enum err take_element(struct coco *coco, const struct list *list, struct slice text,
                             size_t index, struct error *why)
{
    struct jv *value = NULL;
    struct error reason = {0};
    enum err err = jv_parse(text.start, text.length, &value, &reason);
    if (!err)
        err = list->take(coco, value, &reason);
    jv_free(value);
    return err ? err_set(why, err, "%s[%zu]: %s", list->key, index, reason.text) : ERR_OK;
}

static enum err take_list(struct coco *coco, const struct list *list, struct scan *scan,
                          struct error *why)
{
    if (!accept(scan, '['))
        return err_set(why, ERR_BAD_VALUE, "%s is not a list", list->key);
    enum err err = ERR_OK;
    bool ended = accept(scan, ']');
    for (size_t i = 0; !err && !ended; i++) {
        struct slice text;
        err = take_value(scan, &text, why);
        if (!err)
            err = take_element(coco, list, text, i, why);
        if (err)
            break;
        ended = accept(scan, ']');
        if (!ended && !accept(scan, ','))
            err = not_json(scan, why);
    }
    return err;
}

static const struct list *find_list(struct slice key)
{
    for (size_t i = 0; i < COUNT_OF(LISTS); i++)
        if (key.length == strlen(LISTS[i].key) + 2 &&
            !memcmp(key.start + 1, LISTS[i].key, key.length - 2))
            return &LISTS[i];
    return NULL;
}

static enum err take_member(struct coco *coco, struct scan *scan, unsigned *found,
                            struct error *why)
{
    struct slice key, other;
    if (peek(scan) != '"')
        return not_json(scan, why);
    enum err err = take_value(scan, &key, why);
    if (err)
        return err;
    const struct list *list = find_list(key);
    if (!accept(scan, ':'))
        return not_json(scan, why);
    if (!list)
        return take_value(scan, &other, why);
    *found |= 1U << (list - LISTS);
    return take_list(coco, list, scan, why);
}

static enum err take_file(struct coco *coco, struct scan *scan, struct error *why)
{
    unsigned found = 0;
    if (!accept(scan, '{'))
        return not_json(scan, why);
    bool ended = accept(scan, '}');
    while (!ended) {
        enum err err = take_member(coco, scan, &found, why);
        if (err)
            return err;
        ended = accept(scan, '}');
        if (!ended && !accept(scan, ','))
            return not_json(scan, why);
    }
    if (peek(scan) != '\0' || scan->at < scan->end)
        return not_json(scan, why);
    for (size_t i = 0; i < COUNT_OF(LISTS); i++)
        if (!(found & 1U << i))
            return err_set(why, ERR_BAD_VALUE, "no member '%s': not COCO annotations",
                           LISTS[i].key);
    return ERR_OK;
}

/* ---- the index ---- */

static int compare_images(const void *left, const void *right)
{
    const struct coco_image *a = left, *b = right;
    return strcmp(a->file_name, b->file_name);
}

static int compare_integers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_categories(const void *left, const void *right)
{
    const struct coco_category *a = left, *b = right;
    return compare_integers(a->id, b->id);
}

static int compare_boxes(const void *left, const void *right)
{
    const struct coco_box *a = left, *b = right;
    int order = compare_integers(a->image, b->image);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

static const char *category_name(const struct coco *coco, int64_t id)
{
    struct coco_category wanted = {.id = id};
    const struct coco_category *found =
        coco->category_count ? bsearch(&wanted, coco->categories, coco->category_count,
                                       sizeof wanted, compare_categories)
                             : NULL;
    return found ? found->name : NULL;
}

static void sort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    if (count)
        qsort(items, count, size, compare);
}

static enum err build_index(struct coco *coco, struct error *why)
{
    sort(coco->categories, coco->category_count, sizeof *coco->categories, compare_categories);
    for (size_t i = 0; i < coco->box_count; i++)
        if (!category_name(coco, coco->boxes[i].category))
            return err_set(why, ERR_BAD_VALUE, "annotations[%zu]: no category has the id %" PRId64,
                           i, coco->boxes[i].category);
    sort(coco->images, coco->image_count, sizeof *coco->images, compare_images);
    sort(coco->boxes, coco->box_count, sizeof *coco->boxes, compare_boxes);
    return ERR_OK;
}

enum err coco_read(const char *path, struct coco *out, struct error *why)
{
    struct text bytes = {0};
    struct error reason = {0};
    *out = (struct coco){0};
    enum err err = file_read(path, COCO_FILE_MAX, &bytes, why);
    if (!err) {
        const char *start = text_get(&bytes);
        struct scan scan = {start, start, start + bytes.length};
        err = take_file(out, &scan, &reason);
        if (!err)
            err = build_index(out, &reason);
        if (err)
            err = err_set(why, err, "%.150s: %s", plain_text(path).text, reason.text);
    }
    text_release(&bytes);
    if (err)
        coco_release(out);
    return err;
}

/* ---- answers ---- */

/* The first box of an image, or where it would be. */
static size_t first_box(const struct coco *coco, int64_t image)
{
    size_t low = 0, high = coco->box_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (coco->boxes[middle].image < image)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool coco_answer(const struct coco *coco, const char *file_name, struct text *out)
{
    struct coco_image wanted = {.file_name = (char *)file_name};
    const struct coco_image *image =
        coco->image_count
            ? bsearch(&wanted, coco->images, coco->image_count, sizeof wanted, compare_images)
            : NULL;
    struct json json;
    if (!image)
        return false;
    json_init(&json, out, false);
    json_array(&json, NULL);
    for (size_t i = first_box(coco, image->id);
         i < coco->box_count && coco->boxes[i].image == image->id; i++) {
        const struct coco_box *box = &coco->boxes[i];
        json_object(&json, NULL);
        json_string(&json, "label", category_name(coco, box->category));
        json_numbers(&json, "box", box->place, COUNT_OF(box->place));
        if (box->is_crowd)
            json_bool(&json, "crowd", true);
        json_object_end(&json);
    }
    json_array_end(&json);
    return true;
}
