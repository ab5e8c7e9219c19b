/* The codecs: PNG by libpng's simplified API and JPEG by TurboJPEG, both opened at run time with declarations of our own.
 * The size is checked from the header, before pixels are allocated.  A JPEG is turned as its EXIF orientation says. */
#include "media/image.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "port/dl.h"
#include "port/file.h"

#define IMAGE_FILE_MAX ((size_t)1 << 28)

void image_release(struct image *image)
{
    free(image->pixels);
    *image = (struct image){0};
}

/* Sizes the image, or says why its file is refused. */
static enum err allocate(struct image *out, uint64_t width, uint64_t height, struct error *why)
{
    if (!width || !height)
        return err_set(why, ERR_BAD_VALUE, "no pixels");
    if (width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX || width * height > IMAGE_PIXELS_MAX)
        return err_set(why, ERR_BAD_VALUE,
                       "%llux%llu pixels, at most %d on a side and %d million in all are read",
                       (unsigned long long)width, (unsigned long long)height, IMAGE_SIDE_MAX,
                       IMAGE_PIXELS_MAX >> 20);
    *out = (struct image){.width = (uint32_t)width, .height = (uint32_t)height};
    out->pixels = xreallocarray(NULL, (size_t)width * height, 3);
    return ERR_OK;
}

/* ---- PNG ---- */

enum { PNG_IMAGE_VERSION = 1, PNG_FORMAT_RGB = 2, PNG_FORMAT_RGBA = 3, PNG_FORMAT_ALPHA = 1 };
enum { PNG_IMAGE_ERROR = 2 };         /* in warning_or_error */
enum { PNG_IMAGE_16BIT_SRGB = 0x04 }; /* 16-bit values are not linear light */

/* png_image of libpng16. */
struct png_file {
    void *opaque;
    uint32_t version, width, height, format, flags, colormap_entries, warning_or_error;
    char message[64];
};

static struct png_functions {
    int (*begin_read)(struct png_file *file, const void *bytes, size_t length);
    int (*finish_read)(struct png_file *file, const void *background, void *pixels, int32_t stride,
                       void *colormap);
    int (*write)(struct png_file *file, void *bytes, size_t *length, int convert_to_8_bit,
                 const void *pixels, int32_t stride, const void *colormap);
    void (*release)(struct png_file *file);
} png;

static enum err png_open(struct error *why)
{
    static const char *const NAMES[] = {"libpng16.so.16", NULL};
    static const struct dl_symbol SYMBOLS[] = {
        {"png_image_begin_read_from_memory", &png.begin_read, true},
        {"png_image_finish_read", &png.finish_read, true},
        {"png_image_write_to_memory", &png.write, true},
        {"png_image_free", &png.release, true},
    };
    static struct dl_library library = {.names = NAMES,
                                        .symbols = SYMBOLS,
                                        .count = COUNT_OF(SYMBOLS),
                                        .absent = "PNG images need libpng, which is not installed: "
                                                  "apt install libpng16-16",
                                        .lock = PTHREAD_MUTEX_INITIALIZER};
    return dl_library_open(&library, why);
}

/* With libpng's message, except for the usual one. */
static enum err png_refuse(struct png_file *file, struct error *why)
{
    char reason[sizeof file->message + 1];
    chars_format(reason, "%.*s", (int)sizeof file->message, file->message);
    png.release(file);
    if (strstr(reason, "beyond end of data") || strstr(reason, "Not enough image data"))
        return err_set(why, ERR_BAD_VALUE, "truncated");
    return err_set(why, ERR_BAD_VALUE, "damaged PNG: %s", plain_text(reason).text);
}

/* Four bytes a pixel to three, in place: transparency blended with black. */
static void drop_alpha(uint8_t *pixels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned alpha = pixels[4 * i + 3];
        for (size_t c = 0; c < 3; c++)
            pixels[3 * i + c] = (uint8_t)((pixels[4 * i + c] * alpha + 127) / 255);
    }
}

static enum err png_decode(const void *bytes, size_t length, struct image *out, struct error *why)
{
    struct png_file file = {.version = PNG_IMAGE_VERSION};
    enum err err = png_open(why);
    if (err)
        return err;
    if (!png.begin_read(&file, bytes, length))
        return png_refuse(&file, why);
    bool has_alpha = file.format & PNG_FORMAT_ALPHA;
    err = allocate(out, file.width, file.height, why);
    if (err) {
        png.release(&file);
        return err;
    }
    size_t count = (size_t)out->width * out->height;
    if (has_alpha)
        out->pixels = xreallocarray(out->pixels, count, 4);
    file.format = has_alpha ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
    file.flags |= PNG_IMAGE_16BIT_SRGB;
    if (!png.finish_read(&file, NULL, out->pixels, 0, NULL)) {
        image_release(out);
        return png_refuse(&file, why);
    }
    png.release(&file);
    if (has_alpha) {
        drop_alpha(out->pixels, count);
        out->pixels = xreallocarray(out->pixels, count, 3);
    }
    return ERR_OK;
}

enum err image_encode(const struct image *image, struct text *out, struct error *why)
{
    struct png_file file = {.version = PNG_IMAGE_VERSION,
                            .width = image->width,
                            .height = image->height,
                            .format = PNG_FORMAT_RGB};
    enum err err = png_open(why);
    if (err)
        return err;
    /* Deflate adds little to what cannot be compressed; libpng refuses to write beyond the space. */
    size_t length = (size_t)image->height * (1 + 3 * (size_t)image->width);
    length += length / 1000 + 4096;
    char *to = text_space(out, length);
    if (!png.write(&file, to, &length, 0, image->pixels, 0, NULL))
        return png_refuse(&file, why);
    text_extend(out, to + length);
    return ERR_OK;
}

/* ---- EXIF: the orientation of a photograph ---- */

/* The bytes of a file, or of a part of one, whose numbers have either order. */
struct tiff {
    const uint8_t *bytes;
    size_t length;
    bool is_big_endian;
};

/* 0 beyond the end. */
static uint32_t tiff_number(const struct tiff *tiff, size_t at, size_t size)
{
    uint32_t value = 0;
    if (at > tiff->length || size > tiff->length - at)
        return 0;
    for (size_t i = 0; i < size; i++) {
        size_t byte = tiff->is_big_endian ? i : size - 1 - i;
        value = value << 8 | tiff->bytes[at + byte];
    }
    return value;
}

/* The tag of the first directory; 1, as stored, if there is none or it is damaged. */
static unsigned tiff_orientation(struct tiff tiff)
{
    enum { TAG = 0x0112, SHORT = 3, ENTRY = 12 };
    tiff.is_big_endian = tiff.length && tiff.bytes[0] == 'M';
    size_t directory = tiff_number(&tiff, 4, 4);
    size_t entries = tiff_number(&tiff, directory, 2);
    for (size_t i = 0; i < entries; i++) {
        size_t at = directory + 2 + i * ENTRY;
        if (tiff_number(&tiff, at, 2) != TAG || tiff_number(&tiff, at + 2, 2) != SHORT)
            continue;
        unsigned value = tiff_number(&tiff, at + 8, 2);
        return value >= 1 && value <= 8 ? value : 1;
    }
    return 1;
}

/* From the segments before the first scan. */
static unsigned jpeg_orientation(const uint8_t *bytes, size_t length)
{
    enum { APP1 = 0xE1, START_OF_SCAN = 0xDA };
    static const char EXIF[6] = "Exif\0";
    size_t at = 2;
    while (at + 4 <= length && bytes[at] == 0xFF && bytes[at + 1] != START_OF_SCAN) {
        size_t size = (size_t)bytes[at + 2] << 8 | bytes[at + 3];
        const uint8_t *body = bytes + at + 4;
        if (size < 2 || size > length - at - 2)
            break;
        size_t left = size - 2;
        if (bytes[at + 1] == APP1 && left > sizeof EXIF && !memcmp(body, EXIF, sizeof EXIF))
            return tiff_orientation((struct tiff){body + sizeof EXIF, left - sizeof EXIF, false});
        at += 2 + size;
    }
    return 1;
}

/* Where the pixel (x, y) of the turned image is in the stored one, of this size. */
static size_t oriented_index(unsigned orientation, uint32_t x, uint32_t y, uint32_t width,
                             uint32_t height)
{
    bool is_transposed = orientation >= 5;
    uint32_t column = is_transposed ? y : x;
    uint32_t row = is_transposed ? x : y;
    if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        column = width - 1 - column;
    if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
        row = height - 1 - row;
    return (size_t)row * width + column;
}

static void orient(struct image *image, unsigned orientation)
{
    if (orientation == 1)
        return;
    bool is_transposed = orientation >= 5;
    struct image turned = {.width = is_transposed ? image->height : image->width,
                           .height = is_transposed ? image->width : image->height};
    turned.pixels = xreallocarray(NULL, (size_t)image->width * image->height, 3);
    uint8_t *to = turned.pixels;
    for (uint32_t y = 0; y < turned.height; y++)
        for (uint32_t x = 0; x < turned.width; x++, to += 3)
            memcpy(to,
                   image->pixels +
                       3 * oriented_index(orientation, x, y, image->width, image->height),
                   3);
    image_release(image);
    *image = turned;
}

/* ---- JPEG ---- */

enum { TJPF_RGB = 0, TJPF_CMYK = 11, TJCS_CMYK = 3, TJCS_YCCK = 4 };
enum { TJFLAG_LIMIT_SCANS = 32768 }; /* against files that take hours */

static struct jpeg_functions {
    void *(*create)(void);
    int (*destroy)(void *decoder);
    int (*header)(void *decoder, const uint8_t *bytes, unsigned long length, int *width,
                  int *height, int *subsampling, int *colorspace);
    int (*decompress)(void *decoder, const uint8_t *bytes, unsigned long length, uint8_t *to,
                      int width, int pitch, int height, int format, int flags);
    char *(*message)(void *decoder);
} jpeg;

static enum err jpeg_open(struct error *why)
{
    static const char *const NAMES[] = {"libturbojpeg.so.0", NULL};
    static const struct dl_symbol SYMBOLS[] = {
        {"tjInitDecompress", &jpeg.create, true},    {"tjDestroy", &jpeg.destroy, true},
        {"tjDecompressHeader3", &jpeg.header, true}, {"tjDecompress2", &jpeg.decompress, true},
        {"tjGetErrorStr2", &jpeg.message, true},
    };
    static struct dl_library library = {
        .names = NAMES,
        .symbols = SYMBOLS,
        .count = COUNT_OF(SYMBOLS),
        .absent = "JPEG images need libjpeg-turbo's TurboJPEG, which is not installed: "
                  "apt install libturbojpeg0",
        .lock = PTHREAD_MUTEX_INITIALIZER};
    return dl_library_open(&library, why);
}

/* What many photographs have, and does not change their pixels. */
static bool is_harmless(const char *message)
{
    static const char *const WARNINGS[] = {"extraneous bytes", "unknown JFIF revision",
                                           "Unknown Adobe color transform"};
    for (size_t i = 0; i < COUNT_OF(WARNINGS); i++)
        if (strstr(message, WARNINGS[i]))
            return true;
    return false;
}

/* The library calls it a warning, and fills with gray, where data is missing or wrong. */
static enum err jpeg_check(void *decoder, int code, const uint8_t *bytes, size_t length,
                           struct error *why)
{
    const char *message = code ? jpeg.message(decoder) : "";
    bool has_end = length >= 2 && bytes[length - 2] == 0xFF && bytes[length - 1] == 0xD9;
    if (!code || is_harmless(message))
        return ERR_OK;
    if (!has_end || str_contains_nocase(message, "premature end"))
        return err_set(why, ERR_BAD_VALUE, "truncated");
    return err_set(why, ERR_BAD_VALUE, "damaged JPEG: %s", plain_text(message).text);
}

/* Of inverted values, as all programs store them, to RGB: three bytes a pixel, in place. */
static void drop_black(uint8_t *pixels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned black = pixels[4 * i + 3];
        for (size_t c = 0; c < 3; c++) {
            unsigned ink = (255U - pixels[4 * i + c]) * black + 128;
            pixels[3 * i + c] = (uint8_t)(black - ((ink + (ink >> 8)) >> 8));
        }
    }
}

static enum err jpeg_read(void *decoder, const uint8_t *bytes, size_t length, struct image *out,
                          struct error *why)
{
    int width = 0, height = 0, subsampling, colorspace = 0;
    int code = jpeg.header(decoder, bytes, length, &width, &height, &subsampling, &colorspace);
    enum err err = jpeg_check(decoder, code, bytes, length, why);
    if (!err && !width)
        err = err_set(why, ERR_BAD_VALUE, "truncated");
    if (!err)
        err = allocate(out, (uint64_t)width, (uint64_t)height, why);
    if (err)
        return err;
    bool is_cmyk = colorspace == TJCS_CMYK || colorspace == TJCS_YCCK;
    size_t count = (size_t)out->width * out->height;
    if (is_cmyk)
        out->pixels = xreallocarray(out->pixels, count, 4);
    code = jpeg.decompress(decoder, bytes, length, out->pixels, width, 0, height,
                           is_cmyk ? TJPF_CMYK : TJPF_RGB, TJFLAG_LIMIT_SCANS);
    err = jpeg_check(decoder, code, bytes, length, why);
    if (err) {
        image_release(out);
        return err;
    }
    if (is_cmyk) {
        drop_black(out->pixels, count);
        out->pixels = xreallocarray(out->pixels, count, 3);
    }
    return ERR_OK;
}

static enum err jpeg_decode(const uint8_t *bytes, size_t length, struct image *out,
                            struct error *why)
{
    enum err err = jpeg_open(why);
    if (err)
        return err;
    void *decoder = xneed(jpeg.create());
    err = jpeg_read(decoder, bytes, length, out, why);
    jpeg.destroy(decoder);
    if (!err)
        orient(out, jpeg_orientation(bytes, length));
    return err;
}

/* ---- any format ---- */

/* By the first bytes. */
static const struct signature {
    const char *bytes;
    size_t at, length;
    const char *name;
    enum { PNG = 1, JPEG } codec; /* 0: recognized, but not supported */
} SIGNATURES[] = {
    {"\x89PNG\r\n\x1A\n", 0, 8, "PNG", PNG},
    {"\xFF\xD8\xFF", 0, 3, "JPEG", JPEG},
    {"GIF8", 0, 4, "GIF", 0},
    {"WEBP", 8, 4, "WebP", 0},
    {"BM", 0, 2, "BMP", 0},
    {"II*\0", 0, 4, "TIFF", 0},
    {"MM\0*", 0, 4, "TIFF", 0},
    {"ftyp", 4, 4, "HEIF or AVIF", 0},
};

static const struct signature *find_signature(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < COUNT_OF(SIGNATURES); i++) {
        const struct signature *signature = &SIGNATURES[i];
        if (length >= signature->at + signature->length &&
            !memcmp(bytes + signature->at, signature->bytes, signature->length))
            return signature;
    }
    return NULL;
}

enum err image_decode(const void *bytes, size_t length, struct image *out, struct error *why)
{
    const struct signature *signature = find_signature(bytes, length);
    if (!length)
        return err_set(why, ERR_BAD_VALUE, "empty file");
    if (!signature)
        return err_set(why, ERR_UNSUPPORTED, "not a PNG or JPEG image");
    if (signature->codec == PNG)
        return png_decode(bytes, length, out, why);
    if (signature->codec == JPEG)
        return jpeg_decode(bytes, length, out, why);
    return err_set(why, ERR_UNSUPPORTED, "%s images are not read; convert it to PNG or JPEG",
                   signature->name);
}

enum err image_load(const char *path, struct image *out, struct error *why)
{
    struct text bytes = {0};
    struct error reason = {0};
    enum err err = file_read(path, IMAGE_FILE_MAX, &bytes, why);
    if (!err) {
        err = image_decode(text_get(&bytes), bytes.length, out, &reason);
        if (err)
            err = err_set(why, err, "%.200s: %s", plain_text(path).text, reason.text);
    }
    text_release(&bytes);
    return err;
}

enum err image_available(struct error *why)
{
    enum err err = png_open(why);
    return err ? err : jpeg_open(why);
}
