/* test: valgrind */
/* Sound: WAV files of every layout, damaged ones, and resampled tones against their analytic form. */
#define _GNU_SOURCE
#include "media/audio.h"

#include <math.h>

#include "core/text.h"
#include "support/unit.h"

/* ---- WAV ---- */

static void add_number(struct text *out, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        text_add_bytes(out, (char[]){(char)(value >> (8 * i))}, 1);
}

struct layout {
    unsigned format, channels, bits;
};

/* A file with another chunk between format and data, as most programs write. */
static void add_wav(struct text *out, struct layout layout, const void *data, size_t size)
{
    unsigned frame = layout.channels * layout.bits / 8;
    text_add_bytes(out, "RIFF", 4);
    add_number(out, 4 + 24 + 12 + 8 + size, 4);
    text_add_bytes(out, "WAVEfmt ", 8);
    add_number(out, 16, 4);
    add_number(out, layout.format, 2);
    add_number(out, layout.channels, 2);
    add_number(out, 8000, 4);
    add_number(out, (uint64_t)8000 * frame, 4);
    add_number(out, frame, 2);
    add_number(out, layout.bits, 2);
    text_add_bytes(out, "LIST\3\0\0\0abc\0data", 16);
    add_number(out, size, 4);
    text_add_bytes(out, data, size);
}

static enum err decode(const struct text *bytes, struct audio *out, struct error *why)
{
    *out = (struct audio){0};
    *why = (struct error){0};
    return audio_decode(text_get(bytes), bytes->length, out, why);
}

static void every_layout_is_read(void **state)
{
    (void)state;
    const float floats[] = {-1, 0.5F, 0.25F};
    const double doubles[] = {-1, 0.5, 0.25};
    const int16_t stereo[] = {-32768, -32768, 32767, 1, 0, 16384}; /* means: -1, 0.5, 0.25 */
    const struct {
        struct layout layout;
        const void *data;
        size_t size;
    } CASES[] = {
        {{1, 1, 8}, "\x00\xC0\xA0", 3},
        {{1, 1, 16}, "\x00\x80\x00\x40\x00\x20", 6},
        {{1, 1, 24}, "\x00\x00\x80\x00\x00\x40\x00\x00\x20", 9},
        {{1, 1, 32}, "\x00\x00\x00\x80\x00\x00\x00\x40\x00\x00\x00\x20", 12},
        {{3, 1, 32}, floats, sizeof floats},
        {{3, 1, 64}, doubles, sizeof doubles},
        {{1, 2, 16}, stereo, sizeof stereo},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct text bytes = {0};
        struct audio audio;
        struct error why;
        add_wav(&bytes, CASES[i].layout, CASES[i].data, CASES[i].size);
        assert_int_equal(decode(&bytes, &audio, &why), ERR_OK);
        assert_int_equal(audio.rate, 8000);
        assert_int_equal(audio.count, 3);
        assert_true(fabs(audio_seconds(&audio) - 3 / 8000.0) < 1e-12);
        assert_true(audio.samples[0] == -1 && audio.samples[1] == 0.5F &&
                    audio.samples[2] == 0.25F);
        audio_release(&audio);
        text_release(&bytes);
    }
}

static void assert_refused(const struct text *bytes, enum err expected, const char *reason)
{
    struct audio audio;
    struct error why;
    enum err err = decode(bytes, &audio, &why);
    if (err != expected || !strstr(why.text, reason) || audio.samples)
        fail_msg("expected '%s', got '%s'", reason, err ? why.text : "samples");
}

static void unusable_layouts_are_refused_with_the_reason(void **state)
{
    (void)state;
    const float infinite[] = {0, INFINITY};
    const struct {
        struct layout layout;
        const void *data;
        size_t size;
        enum err err;
        const char *reason;
    } CASES[] = {
        {{0x55, 1, 0}, "abcd", 4, ERR_UNSUPPORTED, "compressed WAV (format 0x0055)"},
        {{1, 1, 12}, "abcd", 4, ERR_UNSUPPORTED, "samples of 12 bits"},
        {{3, 1, 16}, "abcd", 4, ERR_UNSUPPORTED, "samples of 16 bits"},
        {{1, 0, 16}, "abcd", 4, ERR_BAD_VALUE, "0 channels"},
        {{1, 1, 16}, "", 0, ERR_BAD_VALUE, "no samples"},
        {{3, 1, 32}, infinite, 8, ERR_BAD_VALUE, "sample 1 is not a finite number"},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct text bytes = {0};
        add_wav(&bytes, CASES[i].layout, CASES[i].data, CASES[i].size);
        assert_refused(&bytes, CASES[i].err, CASES[i].reason);
        text_release(&bytes);
    }
}

static void damaged_files_are_refused_with_the_reason(void **state)
{
    (void)state;
    struct text bytes = {0};
    int16_t data[100] = {0};
    add_wav(&bytes, (struct layout){1, 1, 16}, data, sizeof data);
    size_t whole = bytes.length, header = whole - sizeof data;
    bytes.length = header + 120;
    assert_refused(&bytes, ERR_BAD_VALUE, "data ends after 120 of 200 bytes");
    bytes.length = header - 10;
    assert_refused(&bytes, ERR_BAD_VALUE, "truncated");
    bytes.length = 36;
    assert_refused(&bytes, ERR_BAD_VALUE, "WAV without data");
    bytes.length = 12;
    assert_refused(&bytes, ERR_BAD_VALUE, "WAV without a format");
    bytes.length = 0;
    assert_refused(&bytes, ERR_BAD_VALUE, "empty file");
    text_clear(&bytes);
    text_add(&bytes, "ID3 an MP3 file");
    assert_refused(&bytes, ERR_UNSUPPORTED, "not a WAV file");
    text_release(&bytes);
    struct audio audio = {0};
    struct error why = {0};
    assert_int_equal(audio_load(IPW_FIXTURES "/media/photo.png", &audio, &why), ERR_UNSUPPORTED);
    assert_non_null(strstr(why.text, "photo.png: not a WAV file"));
}

/* A program that writes to a pipe leaves the largest size. */
static void a_streamed_file_is_read_to_its_end(void **state)
{
    (void)state;
    struct text bytes = {0};
    struct audio audio;
    struct error why;
    int16_t data[10] = {0};
    add_wav(&bytes, (struct layout){1, 1, 16}, data, sizeof data);
    memset(bytes.bytes + bytes.length - sizeof data - 4, 0xFF, 4);
    assert_int_equal(decode(&bytes, &audio, &why), ERR_OK);
    assert_int_equal(audio.count, 10);
    audio_release(&audio);
    text_release(&bytes);
}

/* ---- resampling ---- */

static struct audio tone(uint32_t rate, double hz)
{
    struct audio audio = {.rate = rate, .count = rate / 2};
    audio.samples = malloc(audio.count * sizeof *audio.samples);
    for (size_t i = 0; i < audio.count; i++)
        audio.samples[i] = (float)sin(2 * M_PI * hz * (double)i / rate);
    return audio;
}

/* Level of a tone in phase with the original one, and of the rest, in dB of its amplitude; without the ends. */
static void measure(const struct audio *audio, double hz, double *level_db, double *rest_db)
{
    double product = 0, norm = 0, rest = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = audio->count / 4; i < audio->count * 3 / 4; i++) {
            double reference = sin(2 * M_PI * hz * (double)i / audio->rate);
            double left = audio->samples[i] - product / norm * reference;
            product += pass ? 0 : audio->samples[i] * reference;
            norm += pass ? 0 : reference * reference;
            rest += pass ? left * left : 0;
        }
    *level_db = 20 * log10(fabs(product / norm));
    *rest_db = 10 * log10(rest / norm + 1e-30);
}

static void tones_keep_level_and_phase_without_images(void **state)
{
    (void)state;
    static const uint32_t RATES[][2] = {{44100, 16000}, {48000, 16000}, {8000, 16000},
                                        {11025, 16000}, {16000, 44100}, {16001, 8000}};
    static const double PARTS[] = {0.02, 0.3, 0.6, 0.85}; /* of the lower Nyquist frequency */
    for (size_t i = 0; i < COUNT_OF(RATES); i++)
        for (size_t part = 0; part < (test_is_instrumented() ? 1 : COUNT_OF(PARTS)); part++) {
            uint32_t low = RATES[i][0] < RATES[i][1] ? RATES[i][0] : RATES[i][1];
            double hz = PARTS[part] * low / 2, level_db, rest_db;
            struct audio audio = tone(RATES[i][0], hz), resampled;
            audio_resample(&audio, RATES[i][1], &resampled);
            assert_int_equal(resampled.rate, RATES[i][1]);
            assert_true(fabs(audio_seconds(&resampled) - audio_seconds(&audio)) <
                        1.0 / RATES[i][1]);
            measure(&resampled, hz, &level_db, &rest_db);
            if (!(fabs(level_db) <= 0.1) || !(rest_db <= -60))
                fail_msg("%u to %u, %g Hz: level %g dB, images %g dB", RATES[i][0], RATES[i][1], hz,
                         level_db, rest_db);
            audio_release(&audio);
            audio_release(&resampled);
        }
}

static void frequencies_that_do_not_fit_are_removed(void **state)
{
    (void)state;
    static const double HZ[] = {8100, 9000, 15000, 21000};
    for (size_t i = 0; i < COUNT_OF(HZ); i++) {
        struct audio audio = tone(44100, HZ[i]), resampled;
        double power = 0;
        audio_resample(&audio, 16000, &resampled);
        for (size_t at = resampled.count / 4; at < resampled.count * 3 / 4; at++)
            power += resampled.samples[at] * resampled.samples[at];
        assert_true(10 * log10(power / ((double)resampled.count / 4) + 1e-30) < -60);
        audio_release(&audio);
        audio_release(&resampled);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_is_read),
        cmocka_unit_test(unusable_layouts_are_refused_with_the_reason),
        cmocka_unit_test(damaged_files_are_refused_with_the_reason),
        cmocka_unit_test(a_streamed_file_is_read_to_its_end),
        cmocka_unit_test(tones_keep_level_and_phase_without_images),
        cmocka_unit_test(frequencies_that_do_not_fit_are_removed),
    };
    return RUN_TESTS(tests);
}
