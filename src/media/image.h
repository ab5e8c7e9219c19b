/* Images: decoding of PNG and JPEG with libpng and libjpeg-turbo, which are opened at run time, encoding of PNG, and the
 * transformations before inference, equal to Pillow's.  The caller owns every struct image: zero-initialize,
 * image_release. */
#ifndef IPW_MEDIA_IMAGE_H
#define IPW_MEDIA_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct text;

enum { IMAGE_SIDE_MAX = 32768, IMAGE_PIXELS_MAX = 1 << 28 };

/* 8-bit RGB, interleaved, row by row. */
struct image {
    uint32_t width, height;
    uint8_t *pixels;
};
void image_release(struct image *image);

/* A PNG or JPEG by its first bytes, converted to RGB; transparency is blended with black, and a JPEG turned by its EXIF
 * orientation.  ERR_BAD_VALUE names what is wrong with a damaged file ("truncated"), ERR_UNSUPPORTED another format, or
 * how to install the library. */
enum err image_decode(const void *bytes, size_t length, struct image *out, struct error *why)
    MUST_USE;
/* Reads and decodes a file; the path is in *why. */
enum err image_load(const char *path, struct image *out, struct error *why) MUST_USE;
/* As a PNG. */
enum err image_encode(const struct image *image, struct text *out, struct error *why) MUST_USE;

/* Whether both libraries can be opened; ERR_UNSUPPORTED says how to install the missing one. */
enum err image_available(struct error *why) MUST_USE;

/* Separable filters with support scaled for reduction ("antialias"), as in Pillow: rounded to 8 bits after each pass.
 * IMAGE_LINEAR is bilinear without antialiasing, as OpenCV's INTER_LINEAR: equal to it within one level. */
enum image_filter { IMAGE_NEAREST, IMAGE_BILINEAR, IMAGE_BICUBIC, IMAGE_LANCZOS, IMAGE_LINEAR };
void image_resize(const struct image *image, uint32_t width, uint32_t height,
                  enum image_filter filter, struct image *out);
/* The centered rectangle, padded with black where the image is smaller; the offset of a crop is rounded down, as in
 * transformers. */
void image_crop_center(const struct image *image, uint32_t width, uint32_t height,
                       struct image *out);
/* Resized by IMAGE_LINEAR to fit into a square with its proportions, on a gray of `fill` (114 for YOLO), as ultralytics
 * does; *scale and the offsets convert a position of the square to one of the image: (x - left) / scale. */
void image_letterbox(const struct image *image, uint32_t side, uint8_t fill, struct image *out,
                     double *scale, double *left, double *top);

/* Planes of (value * rescale - mean[c]) / std[c], as models take them: 3 x height x width floats at `to`. */
struct image_norm {
    double rescale; /* 1/255 */
    double mean[3], std[3];
};
void image_to_planes(const struct image *image, const struct image_norm *norm, float *to);
/* The inverse for generated images: planes in low..high, clamped and rounded. */
void image_from_planes(const float *planes, uint32_t width, uint32_t height, double low,
                       double high, struct image *out);

#endif
