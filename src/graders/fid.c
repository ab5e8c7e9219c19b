/* The Fréchet distance of the features of generated images from those of reference images (FID).  Each set is taken as a
 * normal distribution, of which a covariance of full rank needs more images than features: with fewer the distance is too
 * large, and refused unless that is allowed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/params.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "graders/answer.h"
#include "graders/image_encoder.h"
#include "graders/item_features.h"
#include "graders/quality.h"
#include "port/file.h"
#include "stats/eigen.h"

enum { FID_SIDE = 299, BIAS_WIDTH_MAX = 512 };

struct fid {
    char *encoder, *features, *reference, *mean, *covariance; /* paths; or NULL */
    struct image_input input;
    bool allows_few;
};

static const struct param_spec PARAMS[] = {
    {"encoder", "FILE.onnx", "encoder of images: 1 x 3 x height x width to features"},
    {"features", "FILE", "instead: features of the generated images, .npy or CSV, row i of item i"},
    {"reference", "FILE|DIR", "features of the reference images, or a folder of these"},
    {"reference_mean", "FILE", "instead: the mean of their features"},
    {"reference_cov", "FILE", "and their covariance"},
    PIXELS_PARAM("signed"),
    {"size", "PIXELS", "side of the images for an encoder that takes any (299)"},
    {"few", "RULE", "refuse or allow fewer images than features (refuse)"},
    {NULL, NULL, NULL},
};

static void fid_release(void *state)
{
    struct fid *fid = state;
    free(fid->encoder);
    free(fid->features);
    free(fid->reference);
    free(fid->mean);
    free(fid->covariance);
    *fid = (struct fid){0};
}

static enum err check_sources(const struct fid *fid, struct error *why)
{
    if (!fid->encoder == !fid->features)
        return err_set(
            why, ERR_USAGE,
            "grader fid needs encoder=FILE.onnx or features=FILE: `ipw list graders -v`");
    if (!fid->mean != !fid->covariance || !fid->mean == !fid->reference)
        return err_set(why, ERR_USAGE,
                       "grader fid needs reference=FILE|DIR, or reference_mean=FILE and "
                       "reference_cov=FILE");
    if (fid->reference && file_is_directory(fid->reference) && !fid->encoder)
        return err_set(why, ERR_USAGE,
                       "grader fid: reference=DIR is encoded, and needs encoder=FILE.onnx");
    return ERR_OK;
}

static enum err fid_configure(const struct grader_config *config, void *state, struct error *why)
{
    static const char *const RULES[] = {"refuse", "allow", NULL};
    struct fid *fid = state;
    struct params_reader read = {config->params, why, ERR_OK};
    fid->input = (struct image_input){.pixels = PIXELS_SIGNED, .side = FID_SIDE};
    image_input_read(&read, &fid->input);
    fid->allows_few = params_word(&read, "few", RULES, 0) == 1;
    fid->encoder = path_param(&read, "encoder");
    fid->features = path_param(&read, "features");
    fid->reference = path_param(&read, "reference");
    fid->mean = path_param(&read, "reference_mean");
    fid->covariance = path_param(&read, "reference_cov");
    enum err err = read.err ? read.err : check_sources(fid, why);
    if (err)
        fid_release(state);
    return err;
}

/* ---- distributions ---- */

/* Mean and covariance of rows, or as given; count is 0 if it is unknown. */
struct moments {
    double *mean, *covariance;
    size_t width, count;
};

static void moments_release(struct moments *moments)
{
    free(moments->mean);
    free(moments->covariance);
}

static void moments_of(const double *rows, size_t count, size_t width, struct moments *out)
{
    *out = (struct moments){xcalloc(width, sizeof(double)), xcalloc(width * width, sizeof(double)),
                            width, count};
    covariance_of(rows, count, width, out->mean, out->covariance);
}

static enum err read_moments(const struct fid *fid, struct moments *out, struct error *why)
{
    struct features mean, covariance = {0};
    enum err err = features_read(fid->mean, &mean, why);
    if (!err)
        err = features_read(fid->covariance, &covariance, why);
    if (!err &&
        (mean.count != 1 || covariance.width != mean.width || covariance.count != covariance.width))
        err = err_set(why, ERR_BAD_VALUE,
                      "reference_mean has %zu x %zu numbers, reference_cov %zu x %zu: expected 1 x "
                      "N and N x N",
                      mean.count, mean.width, covariance.count, covariance.width);
    if (err) {
        features_release(&mean);
        features_release(&covariance);
        return err;
    }
    *out = (struct moments){mean.values, covariance.values, mean.width, 0};
    return ERR_OK;
}

static enum err encode_folder(const struct fid *fid, struct features *out, struct error *why)
{
    struct image_folder folder;
    struct image_encoder *encoder = NULL;
    *out = (struct features){0};
    enum err err = image_folder_read(fid->reference, &folder, why);
    if (!err)
        err = image_encoder_open(fid->encoder, &fid->input, 1, &encoder, why);
    for (size_t i = 0; i < folder.count && !err; i++)
        err = image_encoder_add(encoder, (const char *const *)&folder.paths[i], out, why);
    image_encoder_close(encoder);
    image_folder_release(&folder);
    return err;
}

static enum err read_reference(const struct fid *fid, struct moments *out, struct error *why)
{
    struct features rows;
    *out = (struct moments){0};
    if (fid->mean)
        return read_moments(fid, out, why);
    enum err err = file_is_directory(fid->reference) ? encode_folder(fid, &rows, why)
                                                     : features_read(fid->reference, &rows, why);
    if (!err && rows.count < 2)
        err = err_set(why, ERR_BAD_VALUE, "%s: one reference image: FID needs two or more",
                      fid->reference);
    if (!err)
        moments_of(rows.values, rows.count, rows.width, out);
    features_release(&rows);
    return err;
}

/* ---- the distance ---- */

static enum err distance_of(const struct moments *a, const struct moments *b, double *distance,
                            double *transport)
{
    const struct normal_distribution from = {a->mean, a->covariance};
    const struct normal_distribution to = {b->mean, b->covariance};
    return frechet_distance(&from, &to, a->width, distance, transport);
}

/* How much a row changes the distance: the derivative with respect to its weight, up to a constant. */
static double influence_of(const double *row, const struct moments *a, const struct moments *b,
                           const double *transport, double *centered)
{
    double sum = 0;
    for (size_t i = 0; i < a->width; i++)
        centered[i] = row[i] - a->mean[i];
    for (size_t i = 0; i < a->width; i++) {
        double moved = 0;
        for (size_t k = 0; k < a->width; k++)
            moved += transport[i * a->width + k] * centered[k];
        sum += centered[i] * (centered[i] - moved) + 2 * (a->mean[i] - b->mean[i]) * centered[i];
    }
    return sum;
}

/* The standard error over the generated images, by the delta method; those of one question are summed. */
static double uncertainty_of(const struct item_features *found, const struct grading *items,
                             const struct moments *a, const struct moments *b,
                             const double *transport)
{
    double *influences = xcalloc(a->count, sizeof *influences);
    double *centered = xcalloc(a->width, sizeof *centered);
    struct quality_sums sums = {0};
    struct grader_quality mean;
    for (size_t i = 0; i < a->count; i++)
        influences[i] = influence_of(&found->rows.values[i * a->width], a, b, transport, centered);
    for (size_t i = 0; i < a->count; i++)
        quality_add(&sums, items[found->items[i]].index, influences[i], 1);
    quality_ratio(&mean, "", &sums, false, "");
    free(influences);
    free(centered);
    return mean.plus_minus;
}

/* How much too large it is, if its error falls with 1 / images: the distance of half the images, minus that of all.  Every
 * second image: datasets have their classes in order. */
static double bias_of(const struct item_features *found, const struct moments *b, double distance)
{
    size_t half = found->rows.count / 2, width = b->width;
    double sum = 0, *rows = xcalloc(half * width + 1, sizeof *rows);
    for (size_t part = 0; part < 2 && half > 1 && width <= BIAS_WIDTH_MAX; part++) {
        struct moments moments;
        double of_half = UNKNOWN;
        for (size_t i = 0; i < half; i++)
            memcpy(&rows[i * width], &found->rows.values[(2 * i + part) * width],
                   width * sizeof *rows);
        moments_of(rows, half, width, &moments);
        if (distance_of(&moments, b, &of_half, NULL))
            of_half = UNKNOWN;
        moments_release(&moments);
        sum += of_half / 2;
    }
    free(rows);
    return sum > distance ? sum - distance : UNKNOWN;
}

/* Fewer images than features: the reason, which is also a note on a distance that is allowed. */
static void refuse_few(const struct fid *fid, const struct item_features *found,
                       const struct moments *a, const struct moments *b, double distance,
                       struct grader_quality *out)
{
    char bias[64] = "", reason[sizeof out->reason];
    double excess = bias_of(found, b, distance);
    bool is_reference = a->count > a->width;
    if (is_known(excess))
        chars_format(bias, " by about %.3g", excess);
    chars_format(reason, "%zu %s images for %zu features: FID is too large%s; %s",
                 is_reference ? b->count : a->count, is_reference ? "reference" : "generated",
                 a->width, bias, fid->allows_few ? "allowed by few=allow" : "few=allow shows it");
    if (!fid->allows_few) {
        quality_unknown(out, "fid", "%s", reason);
        return;
    }
    out->value = distance;
    chars_copy(out->reason, reason);
}

/* Enough images for a covariance of full rank, but FID falls with more: noted where that is more than the uncertainty, or
 * may be. */
static void note_bias(const struct item_features *found, const struct moments *own,
                      const struct moments *reference, struct grader_quality *out)
{
    enum { FEW = 10 };
    double excess = bias_of(found, reference, out->value);
    if (excess > out->plus_minus)
        chars_format(out->reason, "too large by about %.3g: %zu images for %zu features", excess,
                     own->count, own->width);
    else if (own->width > BIAS_WIDTH_MAX && own->count < FEW * own->width)
        chars_format(out->reason, "somewhat too large: %zu images for %zu features", own->count,
                     own->width);
}

static void put_distance(const struct fid *fid, const struct grading *items,
                         const struct item_features *found, const struct moments *reference,
                         struct grader_quality *out)
{
    struct moments own;
    double distance = UNKNOWN;
    moments_of(found->rows.values, found->rows.count, found->rows.width, &own);
    size_t width = own.width;
    bool is_few = own.count <= width || (reference->count && reference->count <= width);
    double *transport = is_few ? NULL : xcalloc(width * width, sizeof *transport);
    if (distance_of(&own, reference, &distance, transport)) {
        quality_unknown(out, "fid", "the eigenvalues of the covariances do not converge");
    } else if (is_few) {
        refuse_few(fid, found, &own, reference, distance, out);
    } else {
        out->value = fmax(0, distance); /* rounding */
        out->plus_minus = uncertainty_of(found, items, &own, reference, transport);
        note_bias(found, &own, reference, out);
    }
    free(transport);
    moments_release(&own);
}

static void put_fid(const struct fid *fid, const struct grading *items,
                    const struct item_features *found, const struct moments *reference,
                    struct grader_quality *out)
{
    quality_unknown(out, "fid", "%s", "");
    if (found->rows.count < 2 && !found->left_out)
        quality_unknown(out, "fid", "%zu images: FID needs two or more", found->rows.count);
    else if (found->rows.count >= 2 && found->rows.width != reference->width)
        quality_unknown(out, "fid", "%zu features of an image, and %zu of a reference image",
                        found->rows.width, reference->width);
    else if (found->rows.count >= 2)
        put_distance(fid, items, found, reference, out);
    item_features_note(found, out);
    out->count = found->rows.count;
    out->lower_is_better = true;
}

static enum err fid_corpus(const void *state, const struct grading *items, size_t count,
                           struct grader_quality out[GRADER_QUALITIES_MAX], size_t *out_count,
                           struct error *why)
{
    const struct fid *fid = state;
    const struct item_source source = {fid->encoder, fid->features, fid->input};
    struct item_features found = {0};
    struct moments reference;
    enum err err = read_reference(fid, &reference, why);
    if (!err)
        err = item_features_read(&source, items, count, &found, why);
    if (!err) {
        put_fid(fid, items, &found, &reference, &out[0]);
        *out_count = 1;
    }
    item_features_release(&found);
    moments_release(&reference);
    return err;
}

static enum err fid_grade(const void *state, const struct grading *what, struct grade *out,
                          struct error *why)
{
    (void)state, (void)what, (void)why; /* not called: is_of_all */
    grade_null(out, "FID is a metric of all images");
    return ERR_OK;
}

const struct grader_driver grader_fid = {
    .name = "fid",
    .summary = "generated images: Fréchet distance from a reference; needs an encoder, or features",
    .params = PARAMS,
    .ignores_expected = true,
    .is_of_all = true,
    .state_size = sizeof(struct fid),
    .configure = fid_configure,
    .grade = fid_grade,
    .corpus = fid_corpus,
    .release = fid_release,
};
