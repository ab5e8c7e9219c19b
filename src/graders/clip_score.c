/* CLIP score: how well generated images fit their prompts, the cosine between the embedding of the image and that of the
 * text: 100 max(cos, 0), averaged over the items.  (The paper's CLIP-S is 2.5 max(cos, 0), a fortieth of it.) */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/params.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "graders/answer.h"
#include "graders/item_features.h"
#include "graders/quality.h"
#include "graders/text_encoder.h"

enum { CLIP_SIDE = 224 };

struct clip_score {
    char *encoder, *features; /* paths; or NULL, as the following */
    char *text_encoder, *tokenizer, *text_features;
    struct image_input input;
};

static const struct param_spec PARAMS[] = {
    {"encoder", "FILE.onnx", "CLIP's image encoder: 1 x 3 x height x width to an embedding"},
    {"features", "FILE", "instead: embeddings of the images, .npy or CSV, row i of item i"},
    {"text_encoder", "FILE.onnx", "CLIP's text encoder: token ids to an embedding"},
    {"tokenizer", "DIR", "its vocab.json and merges.txt (the text encoder's folder)"},
    {"text_features", "FILE", "instead: embeddings of the prompts, row i of item i"},
    PIXELS_PARAM("clip"),
    {"size", "PIXELS", "side of the images for an encoder that takes any (224)"},
    {NULL, NULL, NULL},
};

static void clip_score_release(void *state)
{
    struct clip_score *clip = state;
    free(clip->encoder);
    free(clip->features);
    free(clip->text_encoder);
    free(clip->tokenizer);
    free(clip->text_features);
    *clip = (struct clip_score){0};
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
}

static enum err clip_score_configure(const struct grader_config *config, void *state,
                                     struct error *why)
{
    struct clip_score *clip = state;
    struct params_reader read = {config->params, why, ERR_OK};
    clip->input =
        (struct image_input){.pixels = PIXELS_CLIP, .side = CLIP_SIDE, .is_cropped = true};
    image_input_read(&read, &clip->input);
    clip->encoder = path_param(&read, "encoder");
    clip->features = path_param(&read, "features");
    clip->text_encoder = path_param(&read, "text_encoder");
    clip->tokenizer = path_param(&read, "tokenizer");
    clip->text_features = path_param(&read, "text_features");
    if (clip->text_encoder && !clip->tokenizer)
        clip->tokenizer = folder_of(clip->text_encoder);
    bool is_whole =
        !clip->encoder != !clip->features && !clip->text_encoder != !clip->text_features;
    if (!read.err && !is_whole)
        read.err = err_set(why, ERR_USAGE,
                           "grader clip_score needs text_encoder=FILE.onnx or text_features=FILE, "
                           "and encoder=FILE.onnx or features=FILE: `ipw list graders -v`");
    if (read.err)
        clip_score_release(state);
    return read.err;
}

static double cosine(const double *a, const double *b, size_t width)
{
    double product = 0, a_square = 0, b_square = 0;
    for (size_t i = 0; i < width; i++) {
        product += a[i] * b[i];
        a_square += a[i] * a[i];
        b_square += b[i] * b[i];
    }
    return ratio(product, sqrt(a_square) * sqrt(b_square));
}

/* ---- texts ---- */

/* Embeddings of the texts of items; `rows` is what files have: one for each item of the dataset. */
struct texts {
    struct features rows;
    bool is_of_items; /* row i is of the item in place i of the answers */
};

static enum err encode_texts(const struct clip_score *clip, const struct grading *items,
                             size_t count, struct features *out, struct error *why)
{
    struct text_encoder *encoder;
    enum err err = text_encoder_open(clip->text_encoder, clip->tokenizer, &encoder, why);
    for (size_t i = 0; i < count && !err; i++)
        err = text_encoder_add(encoder, text_or_empty(items[i].problem), out, why);
    text_encoder_close(encoder);
    return err;
}

static enum err read_texts(const struct clip_score *clip, const struct grading *items, size_t count,
                           struct texts *out, struct error *why)
{
    *out = (struct texts){.is_of_items = clip->text_encoder != NULL};
    return out->is_of_items ? encode_texts(clip, items, count, &out->rows, why)
                            : features_read(clip->text_features, &out->rows, why);
}

/* NULL: there is none. */
static const double *text_row(const struct texts *texts, size_t place, int64_t index)
{
    int64_t row = texts->is_of_items ? (int64_t)place : index;
    bool is_known = row >= 0 && (uint64_t)row < texts->rows.count;
    return is_known ? &texts->rows.values[(size_t)row * texts->rows.width] : NULL;
}

/* ---- the score ---- */

static void put_score(const struct grading *items, const struct item_features *images,
                      const struct texts *texts, struct grader_quality *out)
{
    struct quality_sums sums = {0};
    size_t without = 0, width = texts->rows.width;
    for (size_t i = 0; i < images->rows.count; i++) {
        size_t place = images->items[i];
        const double *text = text_row(texts, place, items[place].index);
        double found = text ? cosine(&images->rows.values[i * width], text, width) : UNKNOWN;
        without += !is_known(found);
        if (is_known(found))
            quality_add(&sums, items[place].index, 100 * fmax(found, 0), 1);
    }
    quality_ratio(out, "clip_score", &sums, false, "");
    if (without)
        quality_unknown(out, "clip_score",
                        "%zu of %zu items have no embedding of their text, or one of length 0",
                        without, images->rows.count);
    else if (!images->rows.count && !images->left_out)
        quality_unknown(out, "clip_score", "no image");
}

static enum err clip_score_corpus(const void *state, const struct grading *items, size_t count,
                                  struct grader_quality out[GRADER_QUALITIES_MAX],
                                  size_t *out_count, struct error *why)
{
    const struct clip_score *clip = state;
    const struct item_source source = {clip->encoder, clip->features, clip->input};
    struct item_features images = {0};
    struct texts texts;
    enum err err = read_texts(clip, items, count, &texts, why);
    if (!err)
        err = item_features_read(&source, items, count, &images, why);
    if (!err && images.rows.count && images.rows.width != texts.rows.width)
        err =
            err_set(why, ERR_BAD_VALUE, "embeddings of %zu numbers of images, and of %zu of texts",
                    images.rows.width, texts.rows.width);
    if (!err) {
        put_score(items, &images, &texts, &out[0]);
        item_features_note(&images, &out[0]);
        *out_count = 1;
    }
    item_features_release(&images);
    features_release(&texts.rows);
    return err;
}

static enum err clip_score_grade(const void *state, const struct grading *what, struct grade *out,
                                 struct error *why)
{
    (void)state, (void)what, (void)why; /* not called: is_of_all */
    grade_null(out, "the CLIP score is a metric of all images");
    return ERR_OK;
}

const struct grader_driver grader_clip_score = {
    .name = "clip_score",
    .summary = "generated images: how they fit their prompts; needs CLIP's encoders, or embeddings",
    .params = PARAMS,
    .ignores_expected = true,
    .is_of_all = true,
    .state_size = sizeof(struct clip_score),
    .configure = clip_score_configure,
    .grade = clip_score_grade,
    .corpus = clip_score_corpus,
    .release = clip_score_release,
};
