/* Resizing with separable filters as Pillow does it: the coefficients of each output position in fixed point, a horizontal
 * pass and then a vertical one, each rounded to 8 bits. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/xalloc.h"
#include "media/image.h"

enum {
    PRECISION = 32 - 8 - 2
}; /* bits of a coefficient behind the point: room for the sum of many */

/* ---- filters ---- */

static double triangle(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

/* Keys' cubic convolution with a = -0.5. */
static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double sinc(double x)
{
    return x == 0 ? 1 : sin(x * M_PI) / (x * M_PI);
}

static double lanczos(double x)
{
    return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

static const struct filter {
    double (*weight)(double x);
    double support;  /* weights are 0 beyond it */
    bool is_widened; /* with the scale of a reduction */
} FILTERS[] = {
    [IMAGE_BILINEAR] = {triangle, 1, true},
    [IMAGE_BICUBIC] = {cubic, 2, true},
    [IMAGE_LANCZOS] = {lanczos, 3, true},
    [IMAGE_LINEAR] = {triangle, 1, false},
};

/* ---- coefficients of one direction ---- */

struct taps {
    size_t width; /* space for each output position */
    int32_t *weights;
    uint32_t *first, *count; /* input positions of each output position */
};

static void taps_release(struct taps *taps)
{
    free(taps->weights);
    free(taps->first);
    free(taps->count);
}

static int32_t to_fixed(double weight)
{
    double scaled = weight * (1 << PRECISION);
    return (int32_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

/* The weights of one output position, whose sum is 1; returns how many. */
static uint32_t fill_weights(const struct filter *filter, double center, double scale,
                             uint32_t first, uint32_t end, int32_t *weights)
{
    double sum = 0;
    for (uint32_t i = first; i < end; i++)
        sum += filter->weight((i - center + 0.5) / scale);
    for (uint32_t i = first; i < end; i++) {
        double weight = filter->weight((i - center + 0.5) / scale);
        weights[i - first] = to_fixed(sum != 0 ? weight / sum : weight);
    }
    return end - first;
}

static void taps_init(struct taps *taps, const struct filter *filter, uint32_t from, uint32_t to)
{
    double step = (double)from / to;
    double scale = filter->is_widened && step > 1 ? step : 1;
    double support = filter->support * scale;
    taps->width = (size_t)ceil(support) * 2 + 1;
    taps->weights = xreallocarray(NULL, (size_t)to * taps->width, sizeof *taps->weights);
    taps->first = xreallocarray(NULL, to, sizeof *taps->first);
    taps->count = xreallocarray(NULL, to, sizeof *taps->count);
    for (uint32_t at = 0; at < to; at++) {
        double center = (at + 0.5) * step;
        double low = center - support + 0.5, high = center + support + 0.5;
        uint32_t first = low < 0 ? 0 : (uint32_t)low;
        uint32_t end = high > from ? from : (uint32_t)high;
        taps->first[at] = first;
        taps->count[at] =
            fill_weights(filter, center, scale, first, end, taps->weights + at * taps->width);
    }
}

/* ---- the two passes ---- */

static uint8_t round_sum(int32_t sum)
{
    int32_t value = sum >> PRECISION;
    if (value < 0)
        return 0;
    return (uint8_t)(value > 255 ? 255 : value);
}

/* One pixel from those at `from`, `stride` bytes apart. */
static void convolve(const uint8_t *from, size_t stride, const int32_t *weights, uint32_t count,
                     uint8_t *to)
{
    int32_t red = 1 << (PRECISION - 1), green = red, blue = red;
    for (uint32_t i = 0; i < count; i++, from += stride) {
        red += from[0] * weights[i];
        green += from[1] * weights[i];
        blue += from[2] * weights[i];
    }
    to[0] = round_sum(red);
    to[1] = round_sum(green);
    to[2] = round_sum(blue);
}

static struct image new_image(uint32_t width, uint32_t height)
{
    struct image image = {.width = width, .height = height};
    image.pixels = xreallocarray(NULL, (size_t)width * height, 3);
    return image;
}

static struct image resize_rows(const struct image *image, const struct filter *filter,
                                uint32_t width)
{
    struct image out = new_image(width, image->height);
    struct taps taps;
    taps_init(&taps, filter, image->width, width);
    uint8_t *to = out.pixels;
    for (uint32_t y = 0; y < image->height; y++) {
        const uint8_t *row = image->pixels + 3 * (size_t)y * image->width;
        for (uint32_t x = 0; x < width; x++, to += 3)
            convolve(row + 3 * (size_t)taps.first[x], 3, taps.weights + x * taps.width,
                     taps.count[x], to);
    }
    taps_release(&taps);
    return out;
}

static struct image resize_columns(const struct image *image, const struct filter *filter,
                                   uint32_t height)
{
    struct image out = new_image(image->width, height);
    struct taps taps;
    size_t stride = 3 * (size_t)image->width;
    taps_init(&taps, filter, image->height, height);
    uint8_t *to = out.pixels;
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < image->width; x++, to += 3)
            convolve(image->pixels + taps.first[y] * stride + 3 * (size_t)x, stride,
                     taps.weights + y * taps.width, taps.count[y], to);
    taps_release(&taps);
    return out;
}

/* The pixel below the center of each; positions are sums, as in Pillow, whose rounding they have. */
static struct image pick_nearest(const struct image *image, uint32_t width, uint32_t height)
{
    struct image out = new_image(width, height);
    double x_step = (double)image->width / width, y_step = (double)image->height / height;
    double from_y = y_step / 2;
    uint8_t *to = out.pixels;
    for (uint32_t y = 0; y < height; y++, from_y += y_step) {
        size_t row = from_y < image->height ? (size_t)from_y : image->height - 1;
        double from_x = x_step / 2;
        for (uint32_t x = 0; x < width; x++, from_x += x_step, to += 3) {
            size_t column = from_x < image->width ? (size_t)from_x : image->width - 1;
            memcpy(to, image->pixels + 3 * (row * image->width + column), 3);
        }
    }
    return out;
}

/* Replaces the image, of whose pixels `owned` may be the owner, by one pass over it. */
static void apply(struct image (*pass)(const struct image *, const struct filter *, uint32_t),
                  enum image_filter filter, uint32_t size, const struct image **image,
                  struct image *owned)
{
    struct image next = pass(*image, &FILTERS[filter], size);
    image_release(owned);
    *owned = next;
    *image = owned;
}

/* The columns first, if they lose more than twice as many pixels as the rows: as in Pillow 13, by comparison of its
 * results; earlier versions always start with the rows. */
static bool starts_with_columns(const struct image *image, uint32_t width, uint32_t height)
{
    int64_t fewer_rows = (int64_t)image->height - height;
    int64_t fewer_columns = (int64_t)image->width - width;
    return fewer_rows > 0 && fewer_rows > 2 * fewer_columns;
}

void image_resize(const struct image *image, uint32_t width, uint32_t height,
                  enum image_filter filter, struct image *out)
{
    *out = (struct image){0};
    if (filter == IMAGE_NEAREST) {
        *out = pick_nearest(image, width, height);
        return;
    }
    if (starts_with_columns(image, width, height))
        apply(resize_columns, filter, height, &image, out);
    if (width != image->width)
        apply(resize_rows, filter, width, &image, out);
    if (height != image->height)
        apply(resize_columns, filter, height, &image, out);
    if (!out->pixels) {
        *out = new_image(width, height);
        memcpy(out->pixels, image->pixels, 3 * (size_t)width * height);
    }
}
