/* Crops, letterboxes, and the conversion from pixels to the planes of a model's input and back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/xalloc.h"
#include "media/image.h"

/* Of one gray. */
static struct image new_canvas(uint32_t width, uint32_t height, uint8_t fill)
{
    struct image image = {.width = width, .height = height};
    size_t size = 3 * (size_t)width * height;
    image.pixels = xmalloc(size);
    memset(image.pixels, fill, size);
    return image;
}

/* Copies what of the image, whose corner is at (left, top) of the canvas, lies within it. */
static void paste(const struct image *image, int64_t left, int64_t top, struct image *canvas)
{
    int64_t first = left < 0 ? 0 : left;
    int64_t end = left + image->width < canvas->width ? left + image->width : canvas->width;
    for (int64_t y = 0; y < canvas->height && end > first; y++) {
        int64_t row = y - top;
        if (row >= 0 && row < image->height)
            memcpy(canvas->pixels + 3 * (y * canvas->width + first),
                   image->pixels + 3 * (row * image->width + first - left),
                   3 * (size_t)(end - first));
    }
}

/* Half of an odd difference is rounded so that the smaller part is cut at the start. */
static int64_t centered(uint32_t outer, uint32_t inner)
{
    int64_t difference = (int64_t)outer - inner;
    return difference >= 0 ? (difference + 1) / 2 : difference / 2;
}

void image_crop_center(const struct image *image, uint32_t width, uint32_t height,
                       struct image *out)
{
    *out = new_canvas(width, height, 0);
    paste(image, centered(width, image->width), centered(height, image->height), out);
}

/* The longer side fits exactly; bilinear without antialiasing, and the rounding of the size and offsets, as in ultralytics. */
void image_letterbox(const struct image *image, uint32_t side, uint8_t fill, struct image *out,
                     double *scale, double *left, double *top)
{
    double by_width = (double)side / image->width, by_height = (double)side / image->height;
    *scale = by_width < by_height ? by_width : by_height;
    double width = fmax(1, nearbyint(image->width * *scale));
    double height = fmax(1, nearbyint(image->height * *scale));
    *left = nearbyint((side - width) / 2 - 0.1);
    *top = nearbyint((side - height) / 2 - 0.1);
    struct image scaled = {0};
    image_resize(image, (uint32_t)width, (uint32_t)height, IMAGE_LINEAR, &scaled);
    *out = new_canvas(side, side, fill);
    paste(&scaled, (int64_t)*left, (int64_t)*top, out);
    image_release(&scaled);
}

void image_to_planes(const struct image *image, const struct image_norm *norm, float *to)
{
    size_t count = (size_t)image->width * image->height;
    for (size_t c = 0; c < 3; c++) {
        float values[256];
        for (size_t i = 0; i < COUNT_OF(values); i++)
            values[i] = (float)(((double)i * norm->rescale - norm->mean[c]) / norm->std[c]);
        const uint8_t *from = image->pixels + c;
        for (size_t i = 0; i < count; i++, from += 3)
            *to++ = values[*from];
    }
}

/* NaN is black. */
static uint8_t to_byte(double value)
{
    if (!(value > 0))
        return 0;
    return value >= 1 ? 255 : (uint8_t)nearbyint(value * 255);
}

void image_from_planes(const float *planes, uint32_t width, uint32_t height, double low,
                       double high, struct image *out)
{
    *out = new_canvas(width, height, 0);
    size_t count = (size_t)width * height;
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < count; i++)
            out->pixels[3 * i + c] = to_byte((planes[c * count + i] - low) / (high - low));
}
