/* test: valgrind */
/* The log-mel spectrogram equals that of transformers' WhisperFeatureExtractor (tests/fixtures/make-media). */
#define _GNU_SOURCE
#include <math.h>

#include "core/text.h"
#include "media/audio.h"
#include "port/file.h"
#include "support/unit.h"

#define FOLDER IPW_FIXTURES "/media/"

static struct audio load_sweep(void)
{
    struct audio audio = {0};
    struct error why = {0};
    assert_int_equal(audio_load(FOLDER "sweep.wav", &audio, &why), ERR_OK);
    assert_int_equal(audio.rate, 16000);
    return audio;
}

/* Within 1e-5 of the largest value. */
static void assert_equal_to(const char *path, const struct mel *mel)
{
    struct text expected = {0};
    struct error why = {0};
    size_t count = mel->bins * mel->frames;
    assert_int_equal(file_read(path, FILE_SMALL, &expected, &why), ERR_OK);
    assert_int_equal(expected.length, count * sizeof(float));
    float largest = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, expected.bytes + i * sizeof value, sizeof value);
        largest = fmaxf(largest, fabsf(value));
        most = fmaxf(most, fabsf(mel->values[i] - value));
    }
    assert_true(largest > 1);
    if (!(most <= 1e-5F * largest))
        fail_msg("%s: differs by %g", path, most);
    text_release(&expected);
}

static void a_short_sound_is_padded_as_in_transformers(void **state)
{
    (void)state;
    const struct mel_options options = {16000, 400, 160, 80, 1};
    struct audio audio = load_sweep();
    struct mel mel;
    mel_spectrogram(&audio, &options, &mel);
    assert_int_equal(mel.bins, 80);
    assert_int_equal(mel.frames, 100);
    assert_equal_to(FOLDER "mel_80.f32", &mel);
    mel_release(&mel);
    audio_release(&audio);
}

static void a_long_sound_is_cut_as_in_transformers(void **state)
{
    (void)state;
    const struct mel_options options = {16000, 400, 160, 128, 0.5};
    struct audio audio = load_sweep();
    struct mel mel;
    mel_spectrogram(&audio, &options, &mel);
    assert_equal_to(FOLDER "mel_128.f32", &mel);
    mel_release(&mel);
    audio_release(&audio);
}

/* A tone is in the band around its frequency, for a size with a large prime factor too. */
static void a_tone_is_in_its_band_at_any_size(void **state)
{
    (void)state;
    static const uint32_t SIZES[] = {400, 512, 401, 134};
    struct audio audio = {.rate = 16000, .count = 8000};
    audio.samples = malloc(audio.count * sizeof *audio.samples);
    for (size_t i = 0; i < audio.count; i++)
        audio.samples[i] = (float)sin(2 * M_PI * 2000 * (double)i / 16000);
    /* 2 kHz are 25.08 mel, and a band is 45.245 / 41 mel wide: it is between the centers of these. */
    const size_t below = 21, above = 22;
    for (size_t size = 0; size < COUNT_OF(SIZES); size++) {
        const struct mel_options options = {16000, SIZES[size], 160, 40, 0.5};
        struct mel mel;
        mel_spectrogram(&audio, &options, &mel);
        size_t loudest = 0;
        for (size_t bin = 0; bin < mel.bins; bin++)
            if (mel.values[bin * mel.frames + 20] > mel.values[loudest * mel.frames + 20])
                loudest = bin;
        assert_true(loudest == below || loudest == above);
        mel_release(&mel);
    }
    audio_release(&audio);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_sound_is_padded_as_in_transformers),
        cmocka_unit_test(a_long_sound_is_cut_as_in_transformers),
        cmocka_unit_test(a_tone_is_in_its_band_at_any_size),
    };
    return RUN_TESTS(tests);
}
