/* test: valgrind */
/* Resizing equal to Pillow's and OpenCV's (tests/fixtures/make-media), letterboxes, crops, and the conversion to planes
 * and back. */
#include "media/image.h"

#include <math.h>

#include "core/text.h"
#include "port/file.h"
#include "support/unit.h"

#define FOLDER IPW_FIXTURES "/media/"

static void read_fixture(const char *path, struct text *out)
{
    struct error why = {0};
    assert_int_equal(file_read(path, FILE_SMALL, out, &why), ERR_OK);
}

static int difference(const struct image *image, const char *expected)
{
    int most = 0;
    for (size_t i = 0; i < 3 * (size_t)image->width * image->height; i++) {
        int here = abs(image->pixels[i] - (uint8_t)expected[i]);
        most = here > most ? here : most;
    }
    return most;
}

static struct image load_photo(void)
{
    struct image photo = {0};
    struct error why = {0};
    assert_int_equal(image_load(FOLDER "photo.png", &photo, &why), ERR_OK);
    return photo;
}

/* In the order of make-media; OpenCV rounds once, after both passes. */
static void resized_pixels_equal_those_of_pillow_and_opencv(void **state)
{
    (void)state;
    static const uint32_t SIZES[][2] = {{20, 20}, {60, 10}, {10, 29}, {37, 12}, {60, 50},
                                        {30, 40}, {1, 1},   {37, 29}, {30, 10}, {30, 15}};
    static const enum image_filter FILTERS[] = {IMAGE_NEAREST, IMAGE_BILINEAR, IMAGE_BICUBIC,
                                                IMAGE_LANCZOS, IMAGE_LINEAR};
    struct image photo = load_photo();
    struct text expected = {0};
    read_fixture(FOLDER "resized.rgb", &expected);
    size_t at = 0;
    for (size_t filter = 0; filter < COUNT_OF(FILTERS); filter++)
        for (size_t i = 0; i < COUNT_OF(SIZES); i++) {
            struct image resized;
            int most = FILTERS[filter] == IMAGE_LINEAR ? 1 : 0;
            image_resize(&photo, SIZES[i][0], SIZES[i][1], FILTERS[filter], &resized);
            int found = difference(&resized, text_get(&expected) + at);
            if (found > most)
                fail_msg("filter %zu, %ux%u: differs by %d", filter, SIZES[i][0], SIZES[i][1],
                         found);
            at += 3 * (size_t)resized.width * resized.height;
            image_release(&resized);
        }
    assert_int_equal(at, expected.length);
    image_release(&photo);
    text_release(&expected);
}

static void a_letterbox_equals_that_of_ultralytics(void **state)
{
    (void)state;
    struct image photo = load_photo(), boxed;
    struct text expected = {0};
    double scale, left, top;
    read_fixture(FOLDER "letterbox.rgb", &expected);
    image_letterbox(&photo, 64, 114, &boxed, &scale, &left, &top);
    assert_int_equal(boxed.width, 64);
    assert_int_equal(boxed.height, 64);
    assert_true(difference(&boxed, text_get(&expected)) <= 1);
    /* 37x29 becomes 64x50, with 7 rows above it. */
    assert_true(scale == 64.0 / 37 && left == 0 && top == 7);
    image_release(&boxed);
    image_release(&photo);
    text_release(&expected);
}

/* A gray ramp, in which each pixel tells its position. */
static struct image ramp(uint32_t width, uint32_t height)
{
    struct image image = {.width = width, .height = height};
    image.pixels = malloc((size_t)3 * width * height);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            memset(image.pixels + 3 * (y * width + x), (int)(10 * y + x + 1), 3);
    return image;
}

static void the_center_is_cropped_or_padded_with_black(void **state)
{
    (void)state;
    struct image image = ramp(5, 4), cropped;
    image_crop_center(&image, 2, 2, &cropped);
    const uint8_t center[] = {12, 13, 22, 23};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(cropped.pixels[3 * i], center[i]);
    image_release(&cropped);
    image_crop_center(&image, 3, 7, &cropped); /* narrower and higher: two rows before, one after */
    for (size_t x = 0; x < 3; x++) {
        assert_int_equal(cropped.pixels[3 * (3 + x)], 0);
        assert_int_equal(cropped.pixels[3 * (6 + x)], 2 + x);
        assert_int_equal(cropped.pixels[3 * (15 + x)], 32 + x);
        assert_int_equal(cropped.pixels[3 * (18 + x)], 0);
    }
    image_release(&cropped);
    image_release(&image);
}

static void planes_are_normalized_and_converted_back(void **state)
{
    (void)state;
    static const struct image_norm NORM = {1 / 255.0, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
    struct image image = {.width = 2, .height = 1, .pixels = malloc(6)}, back;
    memcpy(image.pixels, (uint8_t[]){0, 128, 255, 10, 20, 30}, 6);
    float planes[6];
    image_to_planes(&image, &NORM, planes);
    const double expected[] = {-0.485 / 0.229,
                               (10 / 255.0 - 0.485) / 0.229,
                               (128 / 255.0 - 0.456) / 0.224,
                               (20 / 255.0 - 0.456) / 0.224,
                               (1 - 0.406) / 0.225,
                               (30 / 255.0 - 0.406) / 0.225};
    for (size_t i = 0; i < 6; i++)
        assert_true(fabs(planes[i] - expected[i]) < 1e-6);
    const float generated[6] = {-1, 1.5F, 0, -0.5F, NAN, 1};
    image_from_planes(generated, 2, 1, -1, 1, &back);
    assert_memory_equal(back.pixels, ((uint8_t[]){0, 128, 0, 255, 64, 255}), 6);
    image_release(&image);
    image_release(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resized_pixels_equal_those_of_pillow_and_opencv),
        cmocka_unit_test(a_letterbox_equals_that_of_ultralytics),
        cmocka_unit_test(the_center_is_cropped_or_padded_with_black),
        cmocka_unit_test(planes_are_normalized_and_converted_back),
    };
    return RUN_TESTS_WITH(image_available, tests);
}
