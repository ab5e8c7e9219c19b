/* Object detection: mean average precision as COCO defines it.  The answer is a JSON array of {"label", "score", "box"},
 * the expected one the same without scores.
 *
 * Detections are matched with expected objects of their image and class, best score first, at ten thresholds of the
 * intersection over union (IoU); the precision is interpolated at 101 recalls, and averaged over classes.  Of each image
 * and class, the 100 detections with the highest scores count.  An expected crowd is neither found nor missed, and
 * whatever is inside it is no error. */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/jv.h"
#include "core/random.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "graders/answer.h"
#include "graders/quality.h"
#include "stats/descriptive.h"

enum { DETECTION_THRESHOLDS = 10, DETECTIONS_MAX = 100 };

struct detected_object {
    const char *label; /* in the JSON value it was read from */
    double box[4];     /* left, top, width, height */
    double score;      /* of a detection */
    bool is_crowd;     /* of an expected object */
};

struct object_list {
    struct detected_object *items;
    size_t count;
};

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

static void objects_release(struct object_list *list)
{
    free(list->items);
    *list = (struct object_list){0};
}

/* [{"label": "circle", "box": [x, y, w, h], "score": 0.9}, ...]; without scores `expected`, with "crowd".  ERR_BAD_VALUE
 * says which object is wrong, and how.  objects_release frees the list. */
static enum err objects_read(const struct jv *list, bool expected, struct object_list *out,
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

static struct matched_images *matched_images_new(void)
{
    struct matched_images *images = XNEW(images);
    return images;
}

static void matched_images_free(struct matched_images *images)
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

static size_t matched_images_count(const struct matched_images *images)
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

static void matched_images_add(struct matched_images *images, const struct object_list *expected,
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

struct average_precision {
    double at_50, at_50_95;
};

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

/* Precision averaged over classes, at IoU 0.5 (map_50) and over all thresholds (map_50_95); UNKNOWN without an expected
 * object.  weights: how often each image counts; NULL: once. */
static struct average_precision matched_images_precision(struct matched_images *images,
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

/* ---- answers ---- */

enum { DRAWS = 200, SEED = 7 };

/* One image; the lists point into the trees. */
struct image_objects {
    struct jv *expected_tree, *found_tree;
    struct object_list expected, found;
};

static void image_objects_release(struct image_objects *image)
{
    objects_release(&image->expected);
    objects_release(&image->found);
    jv_free(image->expected_tree);
    jv_free(image->found_tree);
}

static enum err read_list(const char *json, bool expected, struct jv **tree,
                          struct object_list *out, struct error *why)
{
    const char *which = expected ? "the expected answer" : "the answer";
    struct error damage = {0};
    enum err err = answer_json(json, which, tree, why);
    if (!err && objects_read(*tree, expected, out, &damage))
        err = err_set(why, ERR_BAD_VALUE, "%s: %s", which, damage.text);
    return err;
}

/* An empty answer has no detections. */
static enum err read_image(const struct grading *what, struct image_objects *out, struct error *why)
{
    *out = (struct image_objects){0};
    enum err err = read_list(what->expected, true, &out->expected_tree, &out->expected, why);
    if (!err && what->answer[0])
        err = read_list(what->answer, false, &out->found_tree, &out->found, why);
    if (err)
        image_objects_release(out);
    return err;
}

/* ---- one image ---- */

static void grade_image(const struct image_objects *image, struct grade *out)
{
    struct matched_images *matched = matched_images_new();
    matched_images_add(matched, &image->expected, &image->found);
    double precision = matched_images_precision(matched, NULL).at_50;
    matched_images_free(matched);
    if (!is_known(precision)) { /* no object is expected */
        precision = image->found.count ? 0 : 1;
        out->score = precision;
        if (precision < 1)
            grade_false(out, "%zu detections where no object is expected", image->found.count);
        else
            grade_true(out);
        return;
    }
    out->score = precision;
    if (precision > 1 - 1e-9)
        grade_true(out);
    else
        grade_false(out, "average precision %.3g at IoU 0.5", precision);
}

static enum err map_grade(const void *state, const struct grading *what, struct grade *out,
                          struct error *why)
{
    struct image_objects image;
    struct error damage = {0};
    (void)state, (void)why;
    if (read_image(what, &image, &damage)) {
        grade_null(out, "%s", damage.text);
        return ERR_OK;
    }
    char words[64];
    chars_format(words, "%zu detections", image.found.count);
    grade_extracted(out, slice_of(words));
    grade_image(&image, out);
    image_objects_release(&image);
    return ERR_OK;
}

/* ---- all images ---- */

/* Images of one question are drawn together: images[i] is of question questions[i], from 0. */
struct questions {
    size_t *of_image;
    size_t count;
};

/* Standard deviation over images drawn with replacement. */
static struct average_precision scatter_of(struct matched_images *matched,
                                           const struct questions *questions)
{
    size_t images = matched_images_count(matched);
    unsigned *drawn = xcalloc(questions->count + 1, sizeof *drawn);
    unsigned *weights = xcalloc(images + 1, sizeof *weights);
    struct random random = random_seeded(SEED);
    struct online at_50 = {0}, at_50_95 = {0};
    for (unsigned draw = 0; draw < DRAWS && questions->count > 1; draw++) {
        memset(drawn, 0, questions->count * sizeof *drawn);
        for (size_t i = 0; i < questions->count; i++)
            drawn[random_index(&random, questions->count)]++;
        for (size_t i = 0; i < images; i++)
            weights[i] = drawn[questions->of_image[i]];
        struct average_precision precision = matched_images_precision(matched, weights);
        online_add(&at_50, precision.at_50);
        online_add(&at_50_95, precision.at_50_95);
    }
    free(drawn);
    free(weights);
    return (struct average_precision){online_stddev(&at_50), online_stddev(&at_50_95)};
}

/* reason: of the first answer that cannot be read. */
static struct matched_images *read_all(const struct grading *items, size_t count,
                                       struct questions *questions, struct error *reason)
{
    struct matched_images *matched = matched_images_new();
    int64_t last = -1;
    questions->of_image = xcalloc(count + 1, sizeof *questions->of_image);
    questions->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct image_objects image;
        if (read_image(&items[i], &image, reason->text[0] ? NULL : reason))
            continue;
        questions->count += !questions->count || items[i].index != last;
        last = items[i].index;
        questions->of_image[matched_images_count(matched)] = questions->count - 1;
        matched_images_add(matched, &image.expected, &image.found);
        image_objects_release(&image);
    }
    return matched;
}

static void put_precision(struct grader_quality *out, const char *name, double value,
                          double plus_minus, size_t images, const struct error *reason)
{
    const char *none = reason->text[0] ? reason->text : "no image";
    const char *why = images ? "no image has an expected object" : none;
    quality_unknown(out, name, "%s", is_known(value) ? "" : why);
    out->value = value;
    out->plus_minus = plus_minus;
    out->count = images;
}

static enum err map_corpus(const void *state, const struct grading *items, size_t count,
                           struct grader_quality out[GRADER_QUALITIES_MAX], size_t *out_count,
                           struct error *why)
{
    struct questions questions;
    struct error reason = {0};
    struct matched_images *matched = read_all(items, count, &questions, &reason);
    struct average_precision found = matched_images_precision(matched, NULL);
    struct average_precision scatter = scatter_of(matched, &questions);
    size_t images = matched_images_count(matched);
    (void)state, (void)why;
    put_precision(&out[0], "map_50", found.at_50, scatter.at_50, images, &reason);
    put_precision(&out[1], "map_50_95", found.at_50_95, scatter.at_50_95, images, &reason);
    *out_count = 2;
    matched_images_free(matched);
    free(questions.of_image);
    return ERR_OK;
}

/* ---- draws of images ---- */

struct drawn_images {
    struct matched_images *matched;
    size_t *item_of; /* of each image: damaged answers have none */
    unsigned *weights;
};

static void *map_resample_open(const void *state, const struct grading *items, size_t count)
{
    struct drawn_images *drawn = XNEW(drawn);
    (void)state;
    drawn->matched = matched_images_new();
    drawn->item_of = xcalloc(count + 1, sizeof *drawn->item_of);
    drawn->weights = xcalloc(count + 1, sizeof *drawn->weights);
    for (size_t i = 0; i < count; i++) {
        struct image_objects image;
        if (read_image(&items[i], &image, NULL))
            continue;
        drawn->item_of[matched_images_count(drawn->matched)] = i;
        matched_images_add(drawn->matched, &image.expected, &image.found);
        image_objects_release(&image);
    }
    return drawn;
}

static void map_resample(void *opened, const unsigned *weights, double values[GRADER_QUALITIES_MAX])
{
    struct drawn_images *drawn = opened;
    for (size_t i = 0; i < matched_images_count(drawn->matched); i++)
        drawn->weights[i] = weights[drawn->item_of[i]];
    struct average_precision found = matched_images_precision(drawn->matched, drawn->weights);
    values[0] = found.at_50;
    values[1] = found.at_50_95;
}

static void map_resample_close(void *opened)
{
    struct drawn_images *drawn = opened;
    matched_images_free(drawn->matched);
    free(drawn->item_of);
    free(drawn->weights);
    free(drawn);
}

const struct grader_driver grader_map = {
    .name = "map",
    .summary = "detection: average precision as COCO defines it (map_50, map_50_95)",
    .has_score = true,
    .grade = map_grade,
    .corpus = map_corpus,
    .resample_open = map_resample_open,
    .resample = map_resample,
    .resample_close = map_resample_close,
};
