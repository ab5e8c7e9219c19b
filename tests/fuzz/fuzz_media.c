/* WAV files, and the EXIF data of a JPEG; the rest of images is read by their libraries. */
#include "fuzz/fuzz.h"

#include <math.h>

#include "media/audio.h"
#include "media/image.h"
#include "port/file.h"

#define PHOTOGRAPH IPW_FIXTURES "/media/plain.jpg"

static void read_sound(const char *bytes, size_t length)
{
    struct audio audio = {0};
    struct error why = {0};
    enum err err = audio_decode(bytes, length, &audio, &why);
    fuzz_check_error(err, &why);
    fuzz_check(!err == (audio.count > 0));
    for (size_t i = 0; i < audio.count; i++)
        fuzz_check(isfinite(audio.samples[i]));
    if (!err)
        fuzz_check(audio.rate > 0 && audio_seconds(&audio) > 0);
    audio_release(&audio);
}

/* A photograph with these bytes as its EXIF data, which cannot damage it. */
static void read_exif(const char *bytes, size_t length)
{
    enum { START = 2, SEGMENT_MAX = 65000 };
    static struct text photograph;
    struct text jpeg = {0};
    struct image image = {0};
    struct error why = {0};
    length = length < SEGMENT_MAX ? length : SEGMENT_MAX;
    if (!photograph.length)
        fuzz_check(!file_read(PHOTOGRAPH, FILE_SMALL, &photograph, &why));
    size_t size = 2 + 6 + length;
    text_add_bytes(&jpeg, photograph.bytes, START);
    text_add_bytes(&jpeg, (char[]){'\xFF', '\xE1', (char)(size >> 8), (char)size}, 4);
    text_add_bytes(&jpeg, "Exif\0", 6);
    text_add_bytes(&jpeg, bytes, length);
    text_add_bytes(&jpeg, photograph.bytes + START, photograph.length - START);
    enum err err = image_decode(jpeg.bytes, jpeg.length, &image, &why);
    fuzz_check(!err || err == ERR_UNSUPPORTED);
    fuzz_check(err || image.width * image.height == 37 * 29);
    image_release(&image);
    text_release(&jpeg);
}

static void run(const char *bytes, size_t length)
{
    unsigned kind = fuzz_choose(&bytes, &length, 2);
    (kind ? read_exif : read_sound)(bytes, length);
}

static void seeds(void)
{
    static const char FLOATS[] =
        "RIFF\x34\0\0\0WAVEfmt \x10\0\0\0\3\0\1\0\x40\x1F\0\0\0\x7D\0\0\4\0\x20\0"
        "fact\4\0\0\0\2\0\0\0data\x08\0\0\0\0\0\x80\x3F\0\0\0\xBF";
    static const char EXTENSIBLE[] =
        "RIFF\x40\0\0\0WAVEfmt \x28\0\0\0\xFE\xFF\2\0\x40\x1F\0\0\0\x7D\0\0\4\0\x10\0\x16\0\x10\0"
        "\3\0\0\0\1\0\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71"
        "data\4\0\0\0\1\2\3\4";
    fuzz_seed_file(0, IPW_FIXTURES "/media/sweep.wav", 200);
    fuzz_seed_bytes(0, FLOATS, sizeof FLOATS - 1);
    fuzz_seed_bytes(0, EXTENSIBLE, sizeof EXTENSIBLE - 1);
    fuzz_seed_bytes(1, "II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0", 26);
    fuzz_seed_bytes(1, "MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\x08\0\0\0\0\0\0", 26);
}

static const char *const WORDS[] = {"RIFF", "WAVE", "fmt ", "data", "\x12\x01\x03", NULL};

const struct fuzz_target fuzz_media = {.run = run, .seeds = seeds, .words = WORDS};
