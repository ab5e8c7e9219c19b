/* LPIPS: the perceptual distance of generated images from reference images, by the user's ONNX model of two images; or,
 * from features that were scaled as LPIPS weights them, the sum of their squared differences. */
#include <stdlib.h>

#include "core/params.h"
#include "core/slice.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "graders/answer.h"
#include "graders/fold.h"
#include "graders/image_encoder.h"
#include "graders/item_features.h"
#include "graders/quality.h"

struct lpips {
    char *model, *reference; /* paths; or NULL */
    char *features, *reference_features;
    struct image_input input;
};

static const struct param_spec PARAMS[] = {
    {"model", "FILE.onnx", "distance of two images, each 1 x 3 x height x width"},
    {"reference", "DIR", "reference images: of item i the one with index i, sorted by name"},
    {"features", "FILE", "instead: features of the images, .npy or CSV, row i of item i"},
    {"reference_features", "FILE", "and those of the reference images"},
    PIXELS_PARAM("signed"),
    {"size", "PIXELS", "side of the images for a model that takes any (their own)"},
    {NULL, NULL, NULL},
};

static void lpips_release(void *state)
{
    struct lpips *lpips = state;
    free(lpips->model);
    free(lpips->reference);
    free(lpips->features);
    free(lpips->reference_features);
    *lpips = (struct lpips){0};
}

static enum err lpips_configure(const struct grader_config *config, void *state, struct error *why)
{
    struct lpips *lpips = state;
    struct params_reader read = {config->params, why, ERR_OK};
    lpips->input = (struct image_input){.pixels = PIXELS_SIGNED};
    image_input_read(&read, &lpips->input);
    lpips->model = path_param(&read, "model");
    lpips->reference = path_param(&read, "reference");
    lpips->features = path_param(&read, "features");
    lpips->reference_features = path_param(&read, "reference_features");
    bool is_whole = !lpips->model == !lpips->reference &&
                    !lpips->features == !lpips->reference_features &&
                    !lpips->model != !lpips->features;
    if (!read.err && !is_whole)
        read.err = err_set(why, ERR_USAGE,
                           "grader lpips needs model=FILE.onnx and reference=DIR, or features=FILE "
                           "and reference_features=FILE: `ipw list graders -v`");
    if (read.err)
        lpips_release(state);
    return read.err;
}

/* ---- distances ---- */

/* Sums over the items, and those that have no distance. */
struct distances {
    struct quality_sums sums;
    size_t left_out;
    char reason[160];
};

static void leave_out(struct distances *distances, const struct error *why)
{
    if (!distances->left_out++)
        char_one_line(distances->reason, sizeof distances->reason, slice_of(why->text));
}

static enum err compare_images(struct image_encoder *model, const struct grading *item,
                               const struct image_folder *folder, struct features *out,
                               struct error *why)
{
    if (item->index < 0 || (uint64_t)item->index >= folder->count)
        return err_set(why, ERR_BAD_VALUE, "the reference has %zu images, and none for item %lld",
                       folder->count, (long long)item->index);
    const char *const images[] = {item->answer, folder->paths[item->index]};
    enum err err = image_encoder_add(model, images, out, why);
    if (!err && out->width != 1)
        err = err_set(why, ERR_BAD_VALUE, "the model gives %zu numbers instead of a distance",
                      out->width);
    return err;
}

static enum err measure_images(const struct lpips *lpips, const struct grading *items, size_t count,
                               struct distances *out, struct error *why)
{
    struct image_folder folder;
    struct image_encoder *model = NULL;
    enum err err = image_folder_read(lpips->reference, &folder, why);
    if (!err)
        err = image_encoder_open(lpips->model, &lpips->input, 2, &model, why);
    for (size_t i = 0; i < count && !err; i++) {
        struct features distance = {0};
        struct error cause = {0};
        if (compare_images(model, &items[i], &folder, &distance, &cause))
            leave_out(out, &cause);
        else
            quality_add(&out->sums, items[i].index, distance.values[0], 1);
        features_release(&distance);
    }
    image_encoder_close(model);
    image_folder_release(&folder);
    return err;
}

static enum err measure_features(const struct lpips *lpips, const struct grading *items,
                                 size_t count, struct distances *out, struct error *why)
{
    struct features own = {0}, reference = {0};
    enum err err = features_read(lpips->features, &own, why);
    if (!err)
        err = features_read(lpips->reference_features, &reference, why);
    if (!err && own.width != reference.width)
        err = err_set(why, ERR_BAD_VALUE, "%zu features of an image, and %zu of a reference image",
                      own.width, reference.width);
    size_t rows = own.count < reference.count ? own.count : reference.count;
    for (size_t i = 0; i < count && !err; i++) {
        struct error cause = {0};
        double sum = 0;
        if (items[i].index < 0 || (uint64_t)items[i].index >= rows) {
            err_set(&cause, ERR_BAD_VALUE, "the files have %zu rows, and none for item %lld", rows,
                    (long long)items[i].index);
            leave_out(out, &cause);
            continue;
        }
        size_t at = (size_t)items[i].index * own.width;
        for (size_t k = 0; k < own.width; k++)
            sum += square(own.values[at + k] - reference.values[at + k]);
        quality_add(&out->sums, items[i].index, sum, 1);
    }
    features_release(&own);
    features_release(&reference);
    return err;
}

static enum err lpips_corpus(const void *state, const struct grading *items, size_t count,
                             struct grader_quality out[GRADER_QUALITIES_MAX], size_t *out_count,
                             struct error *why)
{
    const struct lpips *lpips = state;
    struct distances found = {0};
    char note[sizeof out->reason + 64];
    enum err err = lpips->model ? measure_images(lpips, items, count, &found, why)
                                : measure_features(lpips, items, count, &found, why);
    if (err)
        return err;
    quality_ratio(&out[0], "lpips", &found.sums, false, "no image");
    out[0].lower_is_better = true;
    if (found.left_out) {
        chars_format(note, "%zu of %zu left out: %s", found.left_out, count, found.reason);
        char_one_line(out[0].reason, sizeof out[0].reason, slice_of(note));
    }
    *out_count = 1;
    return ERR_OK;
}

static enum err lpips_grade(const void *state, const struct grading *what, struct grade *out,
                            struct error *why)
{
    (void)state, (void)what, (void)why; /* not called: is_of_all */
    grade_null(out, "LPIPS is a metric of all images");
    return ERR_OK;
}

const struct grader_driver grader_lpips = {
    .name = "lpips",
    .summary = "generated images: distance from reference images; needs a model, or features",
    .params = PARAMS,
    .ignores_expected = true,
    .is_of_all = true,
    .state_size = sizeof(struct lpips),
    .configure = lpips_configure,
    .grade = lpips_grade,
    .corpus = lpips_corpus,
    .release = lpips_release,
};
