/* WAV files and resampling.  A resampled value is the sum of the samples around it, weighted by a sinc in a Kaiser window;
 * the weights of all phases are computed before, unless the two rates have so many that they would not fit. */
#define _GNU_SOURCE
#include "media/audio.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"

#define AUDIO_FILE_MAX ((size_t)1 << 31)

void audio_release(struct audio *audio)
{
    free(audio->samples);
    *audio = (struct audio){0};
}

double audio_seconds(const struct audio *audio)
{
    return audio->rate ? (double)audio->count / audio->rate : 0;
}

/* ---- WAV ---- */

enum { WAV_INTEGER = 1, WAV_FLOAT = 3, WAV_EXTENSIBLE = 0xFFFE };
enum { RATE_MAX = 1000000, CHANNELS_MAX = 256 };

/* The chunks of a file that matter. */
struct wav {
    unsigned format, channels, bits;
    uint32_t rate;
    size_t frame; /* bytes of one sample of every channel */
    const uint8_t *data;
    size_t size; /* bytes of data */
};

static uint32_t little_endian(const uint8_t *bytes, size_t size)
{
    uint32_t value = 0;
    while (size > 0)
        value = value << 8 | bytes[--size];
    return value;
}

static enum err check_format(const struct wav *wav, struct error *why)
{
    bool is_integer = wav->format == WAV_INTEGER && wav->bits >= 8 && wav->bits <= 32;
    bool is_float = wav->format == WAV_FLOAT && (wav->bits == 32 || wav->bits == 64);
    if (wav->format != WAV_INTEGER && wav->format != WAV_FLOAT)
        return err_set(why, ERR_UNSUPPORTED,
                       "compressed WAV (format 0x%04x); convert it to 16-bit PCM", wav->format);
    if ((!is_integer && !is_float) || wav->bits % 8)
        return err_set(why, ERR_UNSUPPORTED, "WAV with samples of %u bits", wav->bits);
    if (!wav->channels || wav->channels > CHANNELS_MAX)
        return err_set(why, ERR_BAD_VALUE, "WAV with %u channels", wav->channels);
    if (!wav->rate || wav->rate > RATE_MAX)
        return err_set(why, ERR_BAD_VALUE, "WAV of %" PRIu32 " samples per second", wav->rate);
    if (wav->frame != (size_t)wav->channels * wav->bits / 8)
        return err_set(why, ERR_BAD_VALUE, "WAV with %zu bytes for %u channels of %u bits",
                       wav->frame, wav->channels, wav->bits);
    return ERR_OK;
}

static enum err read_format(const uint8_t *chunk, size_t size, struct wav *out, struct error *why)
{
    enum { SHORT_SIZE = 16, EXTENSIBLE_SIZE = 40, SUBFORMAT = 24 };
    if (size < SHORT_SIZE)
        return err_set(why, ERR_BAD_VALUE, "WAV format chunk of %zu bytes", size);
    out->format = little_endian(chunk, 2);
    out->channels = little_endian(chunk + 2, 2);
    out->rate = little_endian(chunk + 4, 4);
    out->frame = little_endian(chunk + 12, 2);
    out->bits = little_endian(chunk + 14, 2);
    if (out->format == WAV_EXTENSIBLE && size >= EXTENSIBLE_SIZE)
        out->format = little_endian(chunk + SUBFORMAT, 2);
    return check_format(out, why);
}

/* A program that writes to a pipe does not know the size, and leaves the largest one. */
static enum err take_data(const uint8_t *data, size_t size, size_t left, struct wav *out,
                          struct error *why)
{
    if (size >= UINT32_MAX - UINT16_MAX)
        size = left;
    if (size > left)
        return err_set(why, ERR_BAD_VALUE, "data ends after %zu of %zu bytes", left, size);
    out->data = data;
    out->size = size;
    return ERR_OK;
}

static enum err find_chunks(const uint8_t *bytes, size_t length, struct wav *out, struct error *why)
{
    enum { RIFF_HEADER = 12, CHUNK_HEADER = 8 };
    enum err err = ERR_OK;
    if (!length)
        return err_set(why, ERR_BAD_VALUE, "empty file");
    if (length < RIFF_HEADER || memcmp(bytes, "RIFF", 4) != 0 || memcmp(bytes + 8, "WAVE", 4) != 0)
        return err_set(why, ERR_UNSUPPORTED, "not a WAV file");
    for (size_t at = RIFF_HEADER; !err && !out->data && length - at >= CHUNK_HEADER;) {
        const uint8_t *chunk = bytes + at;
        size_t size = little_endian(chunk + 4, 4);
        size_t left = length - at - CHUNK_HEADER;
        if (!memcmp(chunk, "data", 4))
            err = take_data(chunk + CHUNK_HEADER, size, left, out, why);
        else if (size > left)
            err = err_set(why, ERR_BAD_VALUE, "truncated");
        else if (!memcmp(chunk, "fmt ", 4))
            err = read_format(chunk + CHUNK_HEADER, size, out, why);
        at += size < left ? CHUNK_HEADER + size + (size & 1) : CHUNK_HEADER + left;
    }
    if (!err && !out->rate)
        err = err_set(why, ERR_BAD_VALUE, "WAV without a format%s",
                      out->data ? " before its data" : "");
    if (!err && !out->data)
        err = err_set(why, ERR_BAD_VALUE, "WAV without data");
    return err;
}

/* One sample of one channel, -1..1. */
static double read_sample(const uint8_t *at, unsigned format, size_t size)
{
    if (format == WAV_FLOAT && size == sizeof(float)) {
        float value;
        memcpy(&value, at, sizeof value);
        return value;
    }
    if (format == WAV_FLOAT) {
        double value;
        memcpy(&value, at, sizeof value);
        return value;
    }
    if (size == 1)
        return (*at - 128) / 128.0;
    uint32_t aligned = little_endian(at, size) << (32 - 8 * size);
    return (int32_t)aligned / 2147483648.0;
}

static enum err read_samples(const struct wav *wav, struct audio *out, struct error *why)
{
    size_t count = wav->size / wav->frame, size = wav->bits / 8;
    if (!count)
        return err_set(why, ERR_BAD_VALUE, "no samples");
    if (count / wav->rate >= AUDIO_SECONDS_MAX)
        return err_set(why, ERR_BAD_VALUE, "%zu s long; at most %d h are read", count / wav->rate,
                       AUDIO_SECONDS_MAX / 3600);
    *out = (struct audio){.rate = wav->rate, .count = count};
    out->samples = xreallocarray(NULL, count, sizeof *out->samples);
    const uint8_t *at = wav->data;
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (unsigned channel = 0; channel < wav->channels; channel++, at += size)
            sum += read_sample(at, wav->format, size);
        out->samples[i] = (float)(sum / wav->channels);
        if (!isfinite(out->samples[i])) {
            audio_release(out);
            return err_set(why, ERR_BAD_VALUE, "sample %zu is not a finite number", i);
        }
    }
    return ERR_OK;
}

enum err audio_decode(const void *bytes, size_t length, struct audio *out, struct error *why)
{
    struct wav wav = {0};
    enum err err = find_chunks(bytes, length, &wav, why);
    return err ? err : read_samples(&wav, out, why);
}

enum err audio_load(const char *path, struct audio *out, struct error *why)
{
    struct text bytes = {0};
    struct error reason = {0};
    enum err err = file_read(path, AUDIO_FILE_MAX, &bytes, why);
    if (!err) {
        err = audio_decode(text_get(&bytes), bytes.length, out, &reason);
        if (err)
            err = err_set(why, err, "%.200s: %s", plain_text(path).text, reason.text);
    }
    text_release(&bytes);
    return err;
}

/* ---- resampling ---- */

/* The sinc has so many zeros on each side, and is tabulated at so many points between two of them; linear interpolation
 * is then exact to 1e-5.  With this window, the stop band is at -90 dB from the Nyquist frequency of the lower rate on,
 * and the pass band ends at 0.9 of it. */
enum { ZEROS = 48, POINTS = 512 };
static const double KAISER_BETA = 8.96, CUTOFF = 0.945;

/* Rates with more weights than this have them computed for each sample. */
enum { WEIGHTS_MAX = 1 << 21 };

struct resampler {
    const struct audio *from;
    double *kernel;    /* half of the windowed sinc: ZEROS * POINTS + 2 values */
    double scale;      /* zeros of the sinc per input sample */
    uint64_t up, down; /* the rates' ratio in lowest terms: output n is at input n * down / up */
    long reach;        /* input samples on each side */
    size_t taps;
    float *weights; /* `taps` of each phase, or of one */
    bool has_all_phases;
};

/* The modified Bessel function of order 0. */
static double bessel_i0(double x)
{
    double sum = 1, term = 1;
    for (int i = 1; term > sum * 1e-17; i++) {
        term *= (x / 2 / i) * (x / 2 / i);
        sum += term;
    }
    return sum;
}

static double *new_kernel(void)
{
    size_t count = (size_t)ZEROS * POINTS;
    double *kernel = xcalloc(count + 2, sizeof *kernel);
    for (size_t i = 0; i <= count; i++) {
        double x = (double)i / POINTS, edge = x / ZEROS;
        double window = bessel_i0(KAISER_BETA * sqrt(1 - edge * edge)) / bessel_i0(KAISER_BETA);
        kernel[i] = i ? window * sin(M_PI * x) / (M_PI * x) : 1;
    }
    return kernel;
}

/* Weights of the samples -reach + 1 .. reach around a position that is `fraction` after one; their sum is 1. */
static void fill_phase(const struct resampler *resampler, double fraction, float *weights)
{
    double sum = 0;
    for (int pass = 0; pass < 2; pass++) {
        double norm = pass ? 1 / sum : 1;
        for (size_t i = 0; i < resampler->taps; i++) {
            double distance = (double)((long)i + 1 - resampler->reach) - fraction;
            double at = fabs(distance) * resampler->scale * POINTS;
            size_t point = (size_t)at;
            if (point > (size_t)ZEROS * POINTS) {
                weights[i] = 0;
                continue;
            }
            const double *kernel = resampler->kernel + point;
            double value = kernel[0] + (kernel[1] - kernel[0]) * (at - (double)point);
            weights[i] = (float)(value * norm);
            sum += pass ? 0 : value;
        }
    }
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void resampler_init(struct resampler *out, const struct audio *audio, uint32_t rate)
{
    uint64_t divisor = greatest_divisor(audio->rate, rate);
    double ratio = rate < audio->rate ? (double)rate / audio->rate : 1;
    *out = (struct resampler){.from = audio,
                              .kernel = new_kernel(),
                              .scale = ratio * CUTOFF,
                              .up = rate / divisor,
                              .down = audio->rate / divisor};
    out->reach = (long)ceil(ZEROS / out->scale);
    out->taps = 2 * (size_t)out->reach;
    out->has_all_phases = out->up <= WEIGHTS_MAX / out->taps;
    size_t phases = out->has_all_phases ? out->up : 1;
    out->weights = xreallocarray(NULL, phases * out->taps, sizeof *out->weights);
    for (uint64_t phase = 0; out->has_all_phases && phase < out->up; phase++)
        fill_phase(out, (double)phase / (double)out->up, out->weights + phase * out->taps);
}

static const float *phase_weights(const struct resampler *resampler, uint64_t phase)
{
    if (resampler->has_all_phases)
        return resampler->weights + phase * resampler->taps;
    fill_phase(resampler, (double)phase / (double)resampler->up, resampler->weights);
    return resampler->weights;
}

/* Beyond its ends the sound is silent. */
static float resample_at(const struct resampler *resampler, uint64_t index)
{
    long at = (long)(index * resampler->down / resampler->up);
    const float *weights = phase_weights(resampler, index * resampler->down % resampler->up);
    long start = at + 1 - resampler->reach, end = at + 1 + resampler->reach;
    long first = start < 0 ? 0 : start;
    long count = (long)resampler->from->count;
    float sum = 0;
    for (long i = first; i < end && i < count; i++)
        sum += resampler->from->samples[i] * weights[i - start];
    return sum;
}

void audio_resample(const struct audio *audio, uint32_t rate, struct audio *out)
{
    *out = (struct audio){.rate = rate, .count = audio->count};
    if (rate == audio->rate) {
        out->samples = xmemdup(audio->samples, audio->count * sizeof *audio->samples);
        return;
    }
    struct resampler resampler;
    resampler_init(&resampler, audio, rate);
    out->count = (audio->count * resampler.up + resampler.down - 1) / resampler.down;
    out->samples = xreallocarray(NULL, out->count, sizeof *out->samples);
    for (size_t i = 0; i < out->count; i++)
        out->samples[i] = resample_at(&resampler, i);
    free(resampler.kernel);
    free(resampler.weights);
}
