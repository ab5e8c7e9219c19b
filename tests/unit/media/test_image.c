/* test: valgrind */
/* Images: what other programs decode from PNG and JPEG files (tests/fixtures/make-media), damaged and oversized ones,
 * encoding, and the conversion to planes and back. */
#include "media/image.h"

#include <math.h>

#include "core/text.h"
#include "port/file.h"
#include "support/unit.h"

#define FOLDER IPW_FIXTURES "/media/"

static void read_fixture(const char *name, struct text *out)
{
    char path[256];
    struct error why = {0};
    assert_true(chars_format(path, FOLDER "%s", name));
    assert_int_equal(file_read(path, FILE_SMALL, out, &why), ERR_OK);
}

static enum err decode(const struct text *bytes, struct image *out, struct error *why)
{
    *out = (struct image){0};
    *why = (struct error){0};
    return image_decode(text_get(bytes), bytes->length, out, why);
}

/* The largest difference of any value. */
static int difference(const struct image *image, const char *expected)
{
    int most = 0;
    for (size_t i = 0; i < 3 * (size_t)image->width * image->height; i++) {
        int here = abs(image->pixels[i] - (uint8_t)expected[i]);
        most = here > most ? here : most;
    }
    return most;
}

static void every_layout_is_converted_to_rgb(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t width, height;
        int most; /* difference: the versions of a JPEG decoder may round differently */
    } CASES[] = {
        {"gray_2", 11, 9, 0},     {"gray_16", 11, 9, 0},       {"gray_alpha", 11, 9, 0},
        {"rgb_16", 11, 9, 0},     {"rgba", 11, 9, 0},          {"palette", 11, 9, 0},
        {"interlaced", 11, 9, 0}, {"palette_alpha", 11, 9, 0}, {"plain", 37, 29, 1},
        {"gray", 37, 29, 1},      {"progressive", 37, 29, 1},  {"cmyk", 37, 29, 1},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct text expected = {0};
        struct image image = {0};
        struct error why = {0};
        char path[256], name[64];
        chars_format(name, "%s.rgb", CASES[i].name);
        read_fixture(name, &expected);
        chars_format(path, FOLDER "%s.%s", CASES[i].name, CASES[i].width == 11 ? "png" : "jpg");
        enum err err = image_load(path, &image, &why);
        if (err || image.width != CASES[i].width || image.height != CASES[i].height ||
            difference(&image, text_get(&expected)) > CASES[i].most)
            fail_msg("%s: %s", path, err ? why.text : "other pixels");
        image_release(&image);
        text_release(&expected);
    }
}

/* The orientation is the only SHORT with the tag 0x0112, in Pillow's big-endian or little-endian form. */
static size_t find_orientation(const struct text *jpeg)
{
    for (size_t i = 0; i + 10 < jpeg->length; i++)
        if (!memcmp(jpeg->bytes + i, "\x01\x12\0\x03\0\0\0\x01", 8))
            return i + 9;
    fail_msg("no orientation in the fixture");
    return 0;
}

static void photographs_are_turned_by_their_orientation(void **state)
{
    (void)state;
    struct text jpeg = {0}, expected = {0};
    read_fixture("oriented.jpg", &jpeg);
    read_fixture("oriented.rgb", &expected);
    size_t at = find_orientation(&jpeg), size = (size_t)16 * 8 * 3;
    for (unsigned orientation = 1; orientation <= 8; orientation++) {
        struct image image;
        struct error why;
        jpeg.bytes[at] = (char)orientation;
        assert_int_equal(decode(&jpeg, &image, &why), ERR_OK);
        assert_int_equal(image.width, orientation < 5 ? 16 : 8);
        assert_true(difference(&image, text_get(&expected) + (orientation - 1) * size) <= 1);
        image_release(&image);
    }
    jpeg.bytes[at] = 9; /* unknown: as stored */
    struct image image;
    struct error why;
    assert_int_equal(decode(&jpeg, &image, &why), ERR_OK);
    assert_true(difference(&image, text_get(&expected)) <= 1);
    image_release(&image);
    text_release(&jpeg);
    text_release(&expected);
}

static void assert_refused(const struct text *bytes, enum err expected, const char *reason)
{
    struct image image;
    struct error why;
    enum err err = decode(bytes, &image, &why);
    if (err != expected || !strstr(why.text, reason) || image.pixels)
        fail_msg("expected '%s', got '%s'", reason, err ? why.text : "an image");
}

static void damaged_files_are_refused_with_the_reason(void **state)
{
    (void)state;
    static const char *const FILES[] = {"photo.png", "plain.jpg", "progressive.jpg"};
    for (size_t i = 0; i < COUNT_OF(FILES); i++) {
        struct text whole = {0};
        read_fixture(FILES[i], &whole);
        for (size_t eighth = 1; eighth < 8; eighth++) {
            struct text part = whole;
            part.length = whole.length * eighth / 8;
            assert_refused(&part, ERR_BAD_VALUE, "truncated");
        }
        text_release(&whole);
    }
    struct text png = {0};
    read_fixture("photo.png", &png);
    memset(png.bytes + png.length / 2, 0, 64);
    assert_refused(&png, ERR_BAD_VALUE, "damaged PNG: ");
    text_release(&png);
}

/* Bytes between two segments, which some cameras write, are no damage. */
static void extra_bytes_between_segments_are_skipped(void **state)
{
    (void)state;
    struct text jpeg = {0}, padded = {0}, expected = {0};
    struct image image;
    struct error why;
    read_fixture("plain.jpg", &jpeg);
    read_fixture("plain.rgb", &expected);
    size_t header = 2 + 2 + 16; /* start, and the JFIF segment */
    text_add_bytes(&padded, jpeg.bytes, header);
    text_add_bytes(&padded, "\0\0\0\0", 4);
    text_add_bytes(&padded, jpeg.bytes + header, jpeg.length - header);
    assert_int_equal(decode(&padded, &image, &why), ERR_OK);
    assert_true(difference(&image, text_get(&expected)) <= 1);
    image_release(&image);
    memset(padded.bytes + padded.length - 100, 0xFF, 90);
    assert_refused(&padded, ERR_BAD_VALUE, "damaged JPEG: ");
    text_release(&jpeg);
    text_release(&padded);
    text_release(&expected);
}

static void other_files_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        enum err err;
        const char *reason;
    } CASES[] = {
        {"", 0, ERR_BAD_VALUE, "empty file"},
        {"hello, world", 12, ERR_UNSUPPORTED, "not a PNG or JPEG image"},
        {"GIF89a......", 12, ERR_UNSUPPORTED, "GIF images are not read; convert it"},
        {"RIFF....WEBPVP8 ", 16, ERR_UNSUPPORTED, "WebP"},
        {"BM..........", 12, ERR_UNSUPPORTED, "BMP"},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct text bytes = {0};
        text_add_bytes(&bytes, CASES[i].bytes, CASES[i].length);
        assert_refused(&bytes, CASES[i].err, CASES[i].reason);
        text_release(&bytes);
    }
    struct image image = {0};
    struct error why = {0};
    assert_int_equal(image_load(FOLDER "missing.png", &image, &why), ERR_NOT_FOUND);
    assert_non_null(strstr(why.text, "missing.png"));
    assert_int_equal(image_load(FOLDER "sweep.wav", &image, &why), ERR_UNSUPPORTED);
    assert_non_null(strstr(why.text, "sweep.wav: not a PNG or JPEG image"));
}

/* A few bytes can claim gigabytes: the header decides, before memory is allocated. */
static void oversized_images_are_refused_from_their_header(void **state)
{
    (void)state;
    struct text png = {0};
    /* Made by make-media's chunk(): its checksum belongs to the size. */
    static const char HEADER[] =
        "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x75\x30\0\0\x75\x30\x08\x02\0\0\0"
        "\xe9\x45\x6f\xed";
    text_add_bytes(&png, HEADER, sizeof HEADER - 1);
    text_add_bytes(&png, "\0\0\0\x01IDATx\0\0\0\0", 13);
    assert_refused(&png, ERR_BAD_VALUE, "30000x30000 pixels, at most");
    text_release(&png);
}

static void an_encoded_image_is_the_same_when_decoded(void **state)
{
    (void)state;
    struct image image = {.width = 301, .height = 200}, again;
    struct text png = {0};
    struct error why = {0};
    uint32_t random = 1;
    image.pixels = malloc((size_t)301 * 200 * 3);
    for (size_t i = 0; i < (size_t)301 * 200 * 3; i++) {
        random = random * 1664525 + 1013904223;
        image.pixels[i] = (uint8_t)(random >> 24); /* noise: deflate cannot make it smaller */
    }
    assert_int_equal(image_encode(&image, &png, &why), ERR_OK);
    assert_int_equal(decode(&png, &again, &why), ERR_OK);
    assert_int_equal(again.width, 301);
    assert_memory_equal(again.pixels, image.pixels, (size_t)301 * 200 * 3);
    image_release(&image);
    image_release(&again);
    text_release(&png);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_is_converted_to_rgb),
        cmocka_unit_test(photographs_are_turned_by_their_orientation),
        cmocka_unit_test(damaged_files_are_refused_with_the_reason),
        cmocka_unit_test(extra_bytes_between_segments_are_skipped),
        cmocka_unit_test(other_files_are_named),
        cmocka_unit_test(oversized_images_are_refused_from_their_header),
        cmocka_unit_test(an_encoded_image_is_the_same_when_decoded),
    };
    return RUN_TESTS_WITH(image_available, tests);
}
