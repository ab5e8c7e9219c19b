/* CLIP score: how well generated images fit their prompts, the cosine between the embedding of the image and that of the
 * text: 100 max(cos, 0), averaged over the items.  (The paper's CLIP-S is 2.5 max(cos, 0), a fortieth of it.) */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/params.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "engine/onnx.h"
#include "graders/answer.h"
#include "graders/clip_tokens.h"
#include "graders/features.h"
#include "graders/image_encoder.h"
#include "graders/item_features.h"
#include "graders/quality.h"

enum { INPUTS_MAX = 2, RANK = 2, CLIP_SIDE = 224 };

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

struct text_encoder {
    struct onnx_session *session;
    struct clip_tokenizer *tokenizer;
    size_t length;   /* of a text, in tokens */
    size_t output;   /* the embedding */
    int64_t *ids;    /* of the text, and 1 for each token before the padding */
    int64_t *values; /* of the inputs, as the model takes them: of its integer type */
};

/* ---- the text encoder ---- */

static bool is_mask(const struct onnx_port *port)
{
    return str_equal(port->name, "attention_mask");
}

static enum err check_inputs(const struct text_encoder *encoder, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(encoder->session);
    bool fits = facts->input_count >= 1 && facts->input_count <= INPUTS_MAX;
    for (size_t i = 0; i < facts->input_count && fits; i++) {
        const struct onnx_port *port = &facts->inputs[i];
        bool has_length =
            port->rank == RANK && (port->shape[1] < 0 || (size_t)port->shape[1] == encoder->length);
        fits = has_length && (port->type == ONNX_INT32 || port->type == ONNX_INT64) &&
               (facts->input_count == 1 || i == 0 || is_mask(port) || is_mask(&facts->inputs[0]));
    }
    return fits ? ERR_OK
                : err_set(why, ERR_USAGE,
                          "%.200s: expected token ids as input (int32 or int64, 1 x %zu), and at "
                          "most their attention_mask",
                          facts->path, encoder->length);
}

static enum err find_output(struct text_encoder *encoder, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(encoder->session);
    int named = onnx_output(encoder->session, "text_embeds");
    encoder->output = named >= 0 ? (size_t)named : 0;
    while (named < 0 && encoder->output < facts->output_count &&
           facts->outputs[encoder->output].rank != RANK)
        encoder->output++;
    return encoder->output < facts->output_count
               ? ERR_OK
               : err_set(why, ERR_USAGE, "%.200s: no output text_embeds, or of two dimensions",
                         facts->path);
}

static void text_encoder_close(struct text_encoder *encoder)
{
    if (!encoder)
        return;
    if (encoder->session)
        onnx_session_close(encoder->session);
    clip_tokenizer_free(encoder->tokenizer);
    free(encoder->ids);
    free(encoder->values);
    free(encoder);
}

/* `tokenizer`: the folder of vocab.json and merges.txt.  ERR_USAGE: the model has other inputs than token ids and their
 * mask. */
static enum err text_encoder_open(const char *path, const char *tokenizer,
                                  struct text_encoder **out, struct error *why)
{
    const struct onnx_options options = {0};
    struct text_encoder *encoder = XNEW(encoder);
    enum err err = clip_tokenizer_load(tokenizer, &encoder->tokenizer, why);
    if (!err) {
        encoder->length = clip_tokenizer_length(encoder->tokenizer);
        encoder->ids = xcalloc(encoder->length, sizeof *encoder->ids);
        encoder->values = xcalloc(INPUTS_MAX * encoder->length, sizeof *encoder->values);
        err = onnx_session_open(path, &options, &encoder->session, why);
    }
    if (!err)
        err = check_inputs(encoder, why);
    if (!err)
        err = find_output(encoder, why);
    if (err) {
        text_encoder_close(encoder);
        encoder = NULL;
    }
    *out = encoder;
    return err;
}

static struct onnx_tensor input_of(struct text_encoder *encoder, size_t which, size_t used)
{
    const struct onnx_port *port = &onnx_session_facts(encoder->session)->inputs[which];
    int64_t *wide = &encoder->values[which * encoder->length];
    int32_t *narrow = (int32_t *)wide;
    for (size_t i = 0; i < encoder->length; i++) {
        int64_t value = is_mask(port) ? i < used : encoder->ids[i];
        if (port->type == ONNX_INT64)
            wide[i] = value;
        else
            narrow[i] = (int32_t)value;
    }
    return onnx_tensor_of(port->type, wide, RANK, (const int64_t[]){1, (int64_t)encoder->length});
}

static enum err add_embedding(const struct onnx_tensor *tensor, struct features *out,
                              struct error *why)
{
    if (tensor->count > FEATURES_WIDTH_MAX)
        return err_set(why, ERR_BAD_VALUE, "the text encoder gives %zu numbers: expected 1 to %d",
                       tensor->count, FEATURES_WIDTH_MAX);
    double *row = xcalloc(tensor->count + 1, sizeof *row);
    for (size_t i = 0; i < tensor->count; i++)
        row[i] = onnx_tensor_at(tensor, i);
    enum err err = features_add(out, row, tensor->count, why);
    free(row);
    return err;
}

/* Appends the embedding of a text as a row: the output text_embeds, else the first with two dimensions. */
static enum err text_encoder_add(struct text_encoder *encoder, const char *text,
                                 struct features *out, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(encoder->session);
    struct onnx_tensor inputs[INPUTS_MAX] = {0};
    struct onnx_tensor *outputs = xcalloc(facts->output_count + 1, sizeof *outputs);
    bool *wanted = xcalloc(facts->output_count + 1, sizeof *wanted);
    size_t used = clip_tokenize(encoder->tokenizer, text, encoder->ids);
    wanted[encoder->output] = true;
    for (size_t i = 0; i < facts->input_count; i++)
        inputs[i] = input_of(encoder, i, used);
    enum err err = onnx_run(encoder->session, inputs, outputs, wanted, NULL, why);
    if (!err)
        err = add_embedding(&outputs[encoder->output], out, why);
    for (size_t i = 0; i < facts->output_count; i++)
        onnx_tensor_release(&outputs[i]);
    free(outputs);
    free(wanted);
    return err;
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
