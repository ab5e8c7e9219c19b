/* The time of what a workload prepares outside the measured window: 30 s of sound and a picture of 1920x1080. */
#define _GNU_SOURCE
#include <math.h>

#include "bench/bench.h"
#include "core/clock.h"
#include "core/text.h"
#include "media/audio.h"
#include "media/image.h"

enum { ROUNDS = 11, RATE = 44100, SECONDS = 30, WIDTH = 1920, HEIGHT = 1080 };

static struct audio sound, speech; /* at 44.1 kHz and at 16 kHz */
static struct image picture;
static struct text png;

static void resample(void)
{
    struct audio resampled;
    audio_resample(&sound, 16000, &resampled);
    audio_release(&resampled);
}

static void compute_mel(void)
{
    const struct mel_options options = {16000, 400, 160, 80, SECONDS};
    struct mel mel;
    mel_spectrogram(&speech, &options, &mel);
    mel_release(&mel);
}

static void decode(void)
{
    struct image decoded = {0};
    struct error why;
    if (image_decode(png.bytes, png.length, &decoded, &why))
        abort();
    image_release(&decoded);
}

static void resize(void)
{
    struct image resized;
    image_resize(&picture, 640, 640, IMAGE_BICUBIC, &resized);
    image_release(&resized);
}

static void report(const char *name, void (*work)(void))
{
    double values[ROUNDS];
    work(); /* warm-up */
    for (int round = 0; round < ROUNDS; round++) {
        nanos start = clock_now();
        work();
        values[round] = (double)(clock_now() - start) / 1e6;
    }
    bench_report(name, bench_median(values, ROUNDS), "ms");
}

/* A sweep, and a picture that is neither flat nor noise. */
static void make_inputs(void)
{
    sound = (struct audio){.rate = RATE, .count = (size_t)RATE * SECONDS};
    sound.samples = malloc(sound.count * sizeof *sound.samples);
    for (size_t i = 0; i < sound.count; i++)
        sound.samples[i] = (float)sin(1e-9 * (double)i * (double)i);
    audio_resample(&sound, 16000, &speech);
    picture = (struct image){.width = WIDTH, .height = HEIGHT};
    picture.pixels = malloc((size_t)3 * WIDTH * HEIGHT);
    for (size_t i = 0; i < (size_t)3 * WIDTH * HEIGHT; i++)
        picture.pixels[i] = (uint8_t)(i * i / 7919);
}

int main(void)
{
    struct error why;
    make_inputs();
    report("log-mel spectrogram of 30 s", compute_mel);
    report("30 s from 44.1 to 16 kHz", resample);
    report("1920x1080 to 640x640, bicubic", resize);
    if (image_encode(&picture, &png, &why) == ERR_OK)
        report("decoding a PNG of 1920x1080", decode);
    text_release(&png);
    image_release(&picture);
    audio_release(&sound);
    audio_release(&speech);
    return 0;
}
