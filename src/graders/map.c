/* Object detection: mean average precision as COCO defines it (average_precision.h).  The answer is a JSON array of {"label",
 * "score", "box"}, the expected one the same without scores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/jv.h"
#include "core/random.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "graders/answer.h"
#include "graders/average_precision.h"
#include "graders/quality.h"
#include "stats/descriptive.h"

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

static struct matched_images *read_all(const struct grading *items, size_t count,
                                       struct questions *questions)
{
    struct matched_images *matched = matched_images_new();
    int64_t last = -1;
    questions->of_image = xcalloc(count + 1, sizeof *questions->of_image);
    questions->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct image_objects image;
        if (read_image(&items[i], &image, NULL))
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
                          double plus_minus, size_t images)
{
    quality_unknown(out, name, "%s", is_known(value) ? "" : "no image has an expected object");
    out->value = value;
    out->plus_minus = plus_minus;
    out->count = images;
}

static enum err map_corpus(const void *state, const struct grading *items, size_t count,
                           struct grader_quality out[GRADER_QUALITIES_MAX], size_t *out_count,
                           struct error *why)
{
    struct questions questions;
    struct matched_images *matched = read_all(items, count, &questions);
    struct average_precision found = matched_images_precision(matched, NULL);
    struct average_precision scatter = scatter_of(matched, &questions);
    size_t images = matched_images_count(matched);
    (void)state, (void)why;
    put_precision(&out[0], "map_50", found.at_50, scatter.at_50, images);
    put_precision(&out[1], "map_50_95", found.at_50_95, scatter.at_50_95, images);
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
