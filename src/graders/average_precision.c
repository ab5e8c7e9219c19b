#include "graders/average_precision.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/jv.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"

enum { RECALLS = 101, SIDES = 4 };

/* ---- reading ---- */

/* Positions beyond this are no pixels, and would lose precision. */
#define POSITION_MAX 1e9

static enum err read_box(const struct jv *value, size_t number, double box[SIDES],
                         struct error *why)
{
    if (!jv_is_array(value) || jv_count(value) != SIDES)
        return err_set(why, ERR_BAD_VALUE, "object %zu: \"box\" is not [x, y, width, height]",
                       number);
    size_t side = 0;
    for (const struct jv *item = jv_first(value); item; item = jv_next(item), side++) {
        box[side] = jv_number(item);
        if (!is_known(box[side]) || fabs(box[side]) > POSITION_MAX)
            return err_set(why, ERR_BAD_VALUE, "object %zu: element %zu of \"box\" is no position",
                           number, side + 1);
    }
    if (!(box[2] >= 0) || !(box[3] >= 0))
        return err_set(why, ERR_BAD_VALUE, "object %zu: the box has a negative size", number);
    return ERR_OK;
}

static enum err read_object(const struct jv *value, bool expected, size_t number,
                            struct detected_object *out, struct error *why)
{
    *out = (struct detected_object){.label = jv_get_text(value, "label"), .score = UNKNOWN};
    if (!out->label || !out->label[0])
        return err_set(why, ERR_BAD_VALUE, "object %zu has no \"label\"", number);
    out->score = jv_number(jv_get(value, "score"));
    if (!expected && !is_known(out->score))
        return err_set(why, ERR_BAD_VALUE, "object %zu: \"score\" is not a number", number);
    out->is_crowd = expected && jv_bool(jv_get(value, "crowd"), false);
    return read_box(jv_get(value, "box"), number, out->box, why);
}

enum err objects_read(const struct jv *list, bool expected, struct object_list *out,
                      struct error *why)
{
    enum err err = ERR_OK;
    *out = (struct object_list){0};
    if (!jv_is_array(list))
        return err_set(why, ERR_BAD_VALUE, "not a JSON array of objects");
    out->items = xcalloc(jv_count(list) + 1, sizeof *out->items);
    for (const struct jv *item = jv_first(list); item && !err; item = jv_next(item)) {
        err = read_object(item, expected, out->count + 1, &out->items[out->count], why);
        out->count++;
    }
    if (err)
        objects_release(out);
    return err;
}

void objects_release(struct object_list *list)
{
    free(list->items);
    *list = (struct object_list){0};
}

/* ---- matched detections ---- */

/* A detection, with a bit for each threshold. */
struct match {
    double score;
    size_t image, order; /* order: of equal scores, as they were added */
    uint16_t is_right;   /* it found an expected object */
    uint16_t is_ignored; /* it is in a crowd */
};

/* All images of a class. */
struct class_of_objects {
    char *label;
    struct match *matches;
    size_t count, capacity;
    bool is_sorted;
    size_t *images; /* of every expected object that is no crowd */
    size_t image_count, image_capacity;
};

struct matched_images {
    struct class_of_objects *classes;
    size_t count, capacity;
    size_t image_count;
};

struct matched_images *matched_images_new(void)
{
    struct matched_images *images = XNEW(images);
    return images;
}

void matched_images_free(struct matched_images *images)
{
    for (size_t i = 0; images && i < images->count; i++) {
        free(images->classes[i].label);
        free(images->classes[i].matches);
        free(images->classes[i].images);
    }
    if (images)
        free(images->classes);
    free(images);
}

size_t matched_images_count(const struct matched_images *images)
{
    return images->image_count;
}

static struct class_of_objects *class_of(struct matched_images *images, const char *label)
{
    for (size_t i = 0; i < images->count; i++)
        if (str_equal(images->classes[i].label, label))
            return &images->classes[i];
    struct class_of_objects *added = XADD(images->classes, images->count, images->capacity);
    *added = (struct class_of_objects){.label = xstrdup(label)};
    return added;
}

/* ---- matching one image ---- */

/* The IoU thresholds are those of NumPy's linspace(0.5, 0.95, 10), to the last bit: objects at a threshold count. */
static double threshold_at(size_t i)
{
    const double first = 0.5, last = 0.95;
    return i + 1 == DETECTION_THRESHOLDS
               ? last
               : (double)i * ((last - first) / (DETECTION_THRESHOLDS - 1)) + first;
}

/* With a crowd, the share of the detection that is inside it. */
static double overlap(const struct detected_object *found, const struct detected_object *expected)
{
    const double *a = found->box, *b = expected->box;
    double width = fmin(a[0] + a[2], b[0] + b[2]) - fmax(a[0], b[0]);
    double height = fmin(a[1] + a[3], b[1] + b[3]) - fmax(a[1], b[1]);
    if (width <= 0 || height <= 0)
        return 0;
    double inside = width * height, area = a[2] * a[3];
    return inside / (expected->is_crowd ? area : area + b[2] * b[3] - inside);
}

/* The objects of one class in one image: expected ones with crowds last, detections by falling score. */
struct scene {
    const struct detected_object **expected, **found;
    size_t expected_count, found_count;
};

/* Stable. */
static void sort_scene(struct scene *scene)
{
    for (size_t i = 1; i < scene->found_count; i++) {
        const struct detected_object *moved = scene->found[i];
        size_t at = i;
        for (; at > 0 && scene->found[at - 1]->score < moved->score; at--)
            scene->found[at] = scene->found[at - 1];
        scene->found[at] = moved;
    }
    for (size_t i = 1; i < scene->expected_count; i++) {
        const struct detected_object *moved = scene->expected[i];
        size_t at = i;
        for (; at > 0 && scene->expected[at - 1]->is_crowd && !moved->is_crowd; at--)
            scene->expected[at] = scene->expected[at - 1];
        scene->expected[at] = moved;
    }
}

/* The expected object of a detection: the one with the largest overlap that is not taken, a crowd only if there is no
 * other; expected_count if there is none. */
static size_t find_expected(const struct scene *scene, const bool *is_taken, size_t detection,
                            double threshold)
{
    size_t best = scene->expected_count;
    double least = fmin(threshold, 1 - 1e-10);
    for (size_t i = 0; i < scene->expected_count; i++) {
        const struct detected_object *expected = scene->expected[i];
        if (is_taken[i] && !expected->is_crowd)
            continue;
        if (best < i && !scene->expected[best]->is_crowd && expected->is_crowd)
            break;
        double share = overlap(scene->found[detection], expected);
        if (share < least)
            continue;
        least = share;
        best = i;
    }
    return best;
}

static void match_scene(const struct scene *scene, struct match *matches)
{
    bool *is_taken = xcalloc(scene->expected_count + 1, sizeof *is_taken);
    for (size_t t = 0; t < DETECTION_THRESHOLDS; t++) {
        memset(is_taken, 0, scene->expected_count * sizeof *is_taken);
        for (size_t i = 0; i < scene->found_count; i++) {
            size_t found = find_expected(scene, is_taken, i, threshold_at(t));
            if (found == scene->expected_count)
                continue;
            is_taken[found] = true;
            *(scene->expected[found]->is_crowd ? &matches[i].is_ignored : &matches[i].is_right) |=
                (uint16_t)(1U << t);
        }
    }
    free(is_taken);
}

static void add_scene(struct matched_images *images, const char *label, struct scene *scene)
{
    struct class_of_objects *class = class_of(images, label);
    struct match matches[DETECTIONS_MAX] = {0};
    sort_scene(scene);
    if (scene->found_count > DETECTIONS_MAX)
        scene->found_count = DETECTIONS_MAX;
    match_scene(scene, matches);
    for (size_t i = 0; i < scene->found_count; i++) {
        matches[i].score = scene->found[i]->score;
        matches[i].image = images->image_count;
        matches[i].order = class->count;
        *XADD(class->matches, class->count, class->capacity) = matches[i];
    }
    class->is_sorted = false;
    for (size_t i = 0; i < scene->expected_count; i++)
        if (!scene->expected[i]->is_crowd)
            *XADD(class->images, class->image_count, class->image_capacity) = images->image_count;
}

/* The objects of a label, in their order. */
static size_t pick(const struct object_list *list, const char *label,
                   const struct detected_object **to)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        if (str_equal(list->items[i].label, label))
            to[count++] = &list->items[i];
    return count;
}

/* Whether an object before this one has its label. */
static bool is_repeated(const struct object_list *list, size_t count, const char *label)
{
    for (size_t i = 0; i < count; i++)
        if (str_equal(list->items[i].label, label))
            return true;
    return false;
}

void matched_images_add(struct matched_images *images, const struct object_list *expected,
                        const struct object_list *found)
{
    const struct object_list *const lists[] = {expected, found};
    struct scene scene;
    scene.expected = xcalloc(expected->count + 1, sizeof *scene.expected);
    scene.found = xcalloc(found->count + 1, sizeof *scene.found);
    for (size_t l = 0; l < COUNT_OF(lists); l++)
        for (size_t i = 0; i < lists[l]->count; i++) {
            const char *label = lists[l]->items[i].label;
            if (is_repeated(lists[l], i, label) ||
                (l && is_repeated(expected, expected->count, label)))
                continue;
            scene.expected_count = pick(expected, label, scene.expected);
            scene.found_count = pick(found, label, scene.found);
            add_scene(images, label, &scene);
        }
    images->image_count++;
    free(scene.expected);
    free(scene.found);
}

/* ---- precision ---- */

static int by_score(const void *left, const void *right)
{
    const struct match *a = left, *b = right;
    int order = compare_numbers(b->score, a->score);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

static double weight_of(const unsigned *weights, size_t image)
{
    return weights ? weights[image] : 1;
}

/* The mean precision at 101 recalls: at each, the highest precision at that recall or a higher one. */
static double precision_of(const struct class_of_objects *class, unsigned threshold,
                           double expected, const unsigned *weights, double *recalls,
                           double *precisions)
{
    double right = 0, wrong = 0, sum = 0, best = 0;
    size_t count = 0;
    for (size_t i = 0; i < class->count; i++) {
        const struct match *match = &class->matches[i];
        double weight = weight_of(weights, match->image);
        if (match->is_ignored >> threshold & 1 || weight == 0)
            continue;
        *(match->is_right >> threshold & 1 ? &right : &wrong) += weight;
        recalls[count] = right / expected;
        precisions[count++] = right / (wrong + right + DBL_EPSILON);
    }
    size_t at = count;
    for (size_t r = RECALLS; r-- > 0;) {
        double recall = r + 1 == RECALLS ? 1 : (double)r * 0.01;
        for (; at > 0 && recalls[at - 1] >= recall; at--)
            best = fmax(best, precisions[at - 1]);
        sum += at < count ? best : 0;
    }
    return sum / RECALLS;
}

static double expected_in(const struct class_of_objects *class, const unsigned *weights)
{
    double sum = 0;
    for (size_t i = 0; i < class->image_count; i++)
        sum += weight_of(weights, class->images[i]);
    return sum;
}

static size_t sort_matches(struct matched_images *images)
{
    size_t most = 0;
    for (size_t i = 0; i < images->count; i++) {
        struct class_of_objects *class = &images->classes[i];
        if (!class->is_sorted && class->count)
            qsort(class->matches, class->count, sizeof *class->matches, by_score);
        class->is_sorted = true;
        most = class->count > most ? class->count : most;
    }
    return most;
}

struct average_precision matched_images_precision(struct matched_images *images,
                                                  const unsigned *weights)
{
    size_t most = sort_matches(images);
    double *recalls = xcalloc(most + 1, sizeof *recalls);
    double *precisions = xcalloc(most + 1, sizeof *precisions);
    double first = 0, all = 0;
    size_t classes = 0;
    for (size_t i = 0; i < images->count; i++) {
        const struct class_of_objects *class = &images->classes[i];
        double expected = expected_in(class, weights);
        if (expected == 0)
            continue;
        classes++;
        for (unsigned t = 0; t < DETECTION_THRESHOLDS; t++) {
            double precision = precision_of(class, t, expected, weights, recalls, precisions);
            first += t ? 0 : precision;
            all += precision;
        }
    }
    free(recalls);
    free(precisions);
    return (struct average_precision){ratio(first, (double)classes),
                                      ratio(all, (double)(classes * DETECTION_THRESHOLDS))};
}
