/* The user's ONNX models over images: an encoder, whose output are the features of an image, or a distance of two images.
 * The caller owns an encoder: image_encoder_close. */
#ifndef IPW_GRADERS_IMAGE_ENCODER_H
#define IPW_GRADERS_IMAGE_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct features;
struct params_reader;

/* The values that a model takes for the 8 bits of a channel. */
enum image_pixels { PIXELS_SIGNED, PIXELS_UNIT, PIXELS_IMAGENET, PIXELS_CLIP };

/* How a model takes images. */
struct image_input {
    int pixels;      /* enum image_pixels */
    uint32_t side;   /* for a model that takes any size; 0: the image's own */
    bool is_cropped; /* resized by its shorter side and cropped, not stretched */
};
/* The parameters "pixels" and "size"; those not given leave *input unchanged. */
void image_input_read(struct params_reader *read, struct image_input *input);
#define PIXELS_PARAM(usual)                                                                        \
    {"pixels", "RANGE",                                                                            \
     "values of the images: signed (-1 to 1), unit (0 to 1), imagenet, clip (" usual ")"}

struct image_encoder;
/* `images`: how many it takes: 1, or 2 to compare.  ERR_USAGE: the model has other inputs. */
enum err image_encoder_open(const char *path, const struct image_input *input, size_t images,
                            struct image_encoder **out, struct error *why) MUST_USE;
void image_encoder_close(struct image_encoder *encoder); /* NULL is ignored */

/* Runs the model on as many images as it takes, and appends the output image_embeds, else its first, as a
 * row.  ERR_BAD_VALUE names the image
 * that cannot be read. */
enum err image_encoder_add(struct image_encoder *encoder, const char *const *images,
                           struct features *out, struct error *why) MUST_USE;

#endif
