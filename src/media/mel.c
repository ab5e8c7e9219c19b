/* The log-mel spectrogram of Whisper: frames in a periodic Hann window, their power spectra by a mixed-radix FFT, and
 * triangles of equal area on Slaney's mel scale.  A frame is real: two are transformed at once, as the real and the
 * imaginary part of one. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/xalloc.h"
#include "media/audio.h"

void mel_release(struct mel *mel)
{
    free(mel->values);
    *mel = (struct mel){0};
}

/* ---- FFT ---- */

struct complex {
    double re, im;
};

struct fft {
    size_t size;
    struct complex *roots; /* exp(-2 pi i k / size) */
    struct complex *work;
};

static void fft_init(struct fft *fft, size_t size)
{
    fft->size = size;
    fft->roots = xreallocarray(NULL, size, sizeof *fft->roots);
    fft->work = xreallocarray(NULL, size, sizeof *fft->work);
    for (size_t i = 0; i < size; i++) {
        double angle = -2 * M_PI * (double)i / (double)size;
        fft->roots[i] = (struct complex){cos(angle), sin(angle)};
    }
}

static void fft_release(struct fft *fft)
{
    free(fft->roots);
    free(fft->work);
}

static inline struct complex product(struct complex a, struct complex b)
{
    return (struct complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static inline struct complex sum(struct complex a, struct complex b)
{
    return (struct complex){a.re + b.re, a.im + b.im};
}

static inline struct complex difference(struct complex a, struct complex b)
{
    return (struct complex){a.re - b.re, a.im - b.im};
}

static size_t next_radix(size_t size)
{
    if (size % 4 == 0)
        return 4;
    size_t radix = 2;
    while (size % radix)
        radix++;
    return radix;
}

/* One stage of the self-sorting (Stockham) algorithm: `stride` interleaved transforms of `size` points, of which `radix`
 * parts are combined. */
struct stage {
    size_t size, stride, radix;
};

static void combine_four(const struct fft *fft, struct stage stage, const struct complex *from,
                         struct complex *to)
{
    size_t part = stage.size / 4;
    for (size_t p = 0; p < part; p++) {
        const struct complex *roots = fft->roots;
        struct complex w1 = roots[p * stage.stride], w2 = roots[2 * p * stage.stride];
        struct complex w3 = roots[3 * p * stage.stride];
        for (size_t q = 0; q < stage.stride; q++) {
            const struct complex *in = from + q + stage.stride * p;
            struct complex *out = to + q + stage.stride * 4 * p;
            size_t step = stage.stride * part;
            struct complex even = sum(in[0], in[2 * step]), odd = sum(in[step], in[3 * step]);
            struct complex low = difference(in[0], in[2 * step]);
            struct complex high = difference(in[step], in[3 * step]);
            struct complex turned = {high.im, -high.re}; /* times -i */
            out[0] = sum(even, odd);
            out[stage.stride] = product(sum(low, turned), w1);
            out[2 * stage.stride] = product(difference(even, odd), w2);
            out[3 * stage.stride] = product(difference(low, turned), w3);
        }
    }
}

/* One value of a transform of `radix` values, `step` apart: that of frequency k. */
static inline struct complex transform_part(const struct fft *fft, size_t radix, size_t k,
                                            const struct complex *in, size_t step)
{
    size_t turn = fft->size / radix, at = 0;
    struct complex total = in[0];
    for (size_t i = 1; i < radix; i++) {
        at = at + k < radix ? at + k : at + k - radix;
        total = sum(total, product(in[step * i], fft->roots[at * turn]));
    }
    return total;
}

static void combine(const struct fft *fft, struct stage stage, const struct complex *from,
                    struct complex *to)
{
    size_t part = stage.size / stage.radix, step = stage.stride * part;
    for (size_t p = 0; p < part; p++)
        for (size_t k = 0; k < stage.radix; k++) {
            struct complex twiddle = fft->roots[p * k * stage.stride];
            const struct complex *in = from + stage.stride * p;
            struct complex *out = to + stage.stride * (stage.radix * p + k);
            for (size_t q = 0; q < stage.stride; q++)
                out[q] = product(transform_part(fft, stage.radix, k, in + q, step), twiddle);
        }
}

/* In place. */
static void fft_run(const struct fft *fft, struct complex *values)
{
    struct complex *from = values, *to = fft->work;
    struct stage stage = {.size = fft->size, .stride = 1};
    while (stage.size > 1) {
        stage.radix = next_radix(stage.size);
        (stage.radix == 4 ? combine_four : combine)(fft, stage, from, to);
        stage.size /= stage.radix;
        stage.stride *= stage.radix;
        struct complex *done = to;
        to = from;
        from = done;
    }
    if (from != values)
        memcpy(values, from, fft->size * sizeof *values);
}

/* ---- mel filters ---- */

/* Slaney's scale: linear up to 1 kHz, then logarithmic. */
static const double LINEAR_HZ = 200.0 / 3, LINEAR_END_HZ = 1000, LOG_STEP = 27;

static double to_mel(double hz)
{
    if (hz < LINEAR_END_HZ)
        return hz / LINEAR_HZ;
    return LINEAR_END_HZ / LINEAR_HZ + log(hz / LINEAR_END_HZ) * LOG_STEP / log(6.4);
}

static double to_hz(double mel)
{
    double linear_end = LINEAR_END_HZ / LINEAR_HZ;
    if (mel < linear_end)
        return mel * LINEAR_HZ;
    return LINEAR_END_HZ * exp((mel - linear_end) * log(6.4) / LOG_STEP);
}

/* Triangles over the frequencies of the spectrum, each with its first and last one. */
struct filters {
    size_t bins, frequencies;
    double *weights;
    size_t *first, *end;
};

static void filters_release(struct filters *filters)
{
    free(filters->weights);
    free(filters->first);
    free(filters->end);
}

/* Of area 1, in Hz. */
static double triangle(double hz, double low, double center, double high)
{
    double weight = fmin((hz - low) / (center - low), (high - hz) / (high - center));
    return fmax(weight, 0) * 2 / (high - low);
}

/* From 0 to 8 kHz, Whisper's range at every size. */
static void filters_init(struct filters *out, const struct mel_options *options)
{
    const double highest = fmin(8000, options->rate / 2.0);
    *out = (struct filters){.bins = options->bins, .frequencies = options->fft / 2 + 1};
    out->weights = xcalloc(out->bins * out->frequencies, sizeof *out->weights);
    out->first = xcalloc(out->bins, sizeof *out->first);
    out->end = xcalloc(out->bins, sizeof *out->end);
    double step = to_mel(highest) / (double)(out->bins + 1);
    for (size_t bin = 0; bin < out->bins; bin++) {
        double low = to_hz(step * (double)bin), center = to_hz(step * (double)(bin + 1));
        double high = to_hz(step * (double)(bin + 2));
        for (size_t i = 0; i < out->frequencies; i++) {
            double hz = (double)i * options->rate / options->fft;
            double weight = triangle(hz, low, center, high);
            out->weights[bin * out->frequencies + i] = weight;
            if (weight > 0 && !out->end[bin])
                out->first[bin] = i;
            if (weight > 0)
                out->end[bin] = i + 1;
        }
    }
}

/* ---- frames ---- */

struct frames {
    const struct audio *audio;
    long length; /* samples, with the silence that pads them */
    size_t hop;
    double *window;
    struct fft fft;
};

/* Silence after the end; before the start and after the padded end, the sound reflected. */
static double sample_at(const struct frames *frames, long at)
{
    if (at < 0)
        at = -at;
    if (at >= frames->length)
        at = 2 * (frames->length - 1) - at;
    return at >= 0 && (size_t)at < frames->audio->count ? frames->audio->samples[at] : 0;
}

static void fill_frames(const struct frames *frames, size_t index, struct complex *to)
{
    long start = (long)(index * frames->hop) - (long)frames->fft.size / 2;
    for (size_t i = 0; i < frames->fft.size; i++, start++)
        to[i] = (struct complex){sample_at(frames, start) * frames->window[i],
                                 sample_at(frames, start + (long)frames->hop) * frames->window[i]};
}

/* The powers of two frames from the transform of the first plus i times the second. */
static void split_powers(const struct complex *values, size_t size, double *first, double *second)
{
    for (size_t i = 0; i <= size / 2; i++) {
        struct complex a = values[i], b = values[i ? size - i : 0];
        double even_re = (a.re + b.re) / 2, even_im = (a.im - b.im) / 2;
        double odd_re = (a.im + b.im) / 2, odd_im = (b.re - a.re) / 2;
        first[i] = even_re * even_re + even_im * even_im;
        second[i] = odd_re * odd_re + odd_im * odd_im;
    }
}

static void add_frame(const struct filters *filters, const double *powers, size_t frame,
                      struct mel *out)
{
    const double floor = 1e-10;
    for (size_t bin = 0; bin < filters->bins; bin++) {
        const double *weights = filters->weights + bin * filters->frequencies;
        double power = 0;
        for (size_t i = filters->first[bin]; i < filters->end[bin]; i++)
            power += weights[i] * powers[i];
        out->values[bin * out->frames + frame] = (float)log10(fmax(power, floor));
    }
}

/* To 8 (80 dB) below the maximum. */
static void limit_range(struct mel *mel)
{
    size_t count = mel->bins * mel->frames;
    float maximum = count ? mel->values[0] : 0;
    for (size_t i = 0; i < count; i++)
        maximum = fmaxf(maximum, mel->values[i]);
    for (size_t i = 0; i < count; i++)
        mel->values[i] = (fmaxf(mel->values[i], maximum - 8) + 4) / 4;
}

static void frames_init(struct frames *out, const struct audio *audio,
                        const struct mel_options *options)
{
    *out = (struct frames){.audio = audio,
                           .length = (long)(options->chunk_s * options->rate),
                           .hop = options->hop,
                           .window = xreallocarray(NULL, options->fft, sizeof *out->window)};
    for (size_t i = 0; i < options->fft; i++)
        out->window[i] = 0.5 - 0.5 * cos(2 * M_PI * (double)i / options->fft);
    fft_init(&out->fft, options->fft);
}

/* A last frame centered at the end of the chunk is left out. */
void mel_spectrogram(const struct audio *audio, const struct mel_options *options, struct mel *out)
{
    struct frames frames;
    struct filters filters;
    frames_init(&frames, audio, options);
    filters_init(&filters, options);
    *out = (struct mel){.bins = options->bins, .frames = (size_t)frames.length / options->hop};
    out->values = xcalloc(out->bins * out->frames, sizeof *out->values);
    struct complex *values = xcalloc(options->fft, sizeof *values);
    double *first = xcalloc(2 * filters.frequencies, sizeof *first);
    double *second = first + filters.frequencies;
    for (size_t frame = 0; frame < out->frames; frame += 2) {
        fill_frames(&frames, frame, values);
        fft_run(&frames.fft, values);
        split_powers(values, options->fft, first, second);
        add_frame(&filters, first, frame, out);
        if (frame + 1 < out->frames)
            add_frame(&filters, second, frame + 1, out);
    }
    limit_range(out);
    free(values);
    free(first);
    free(frames.window);
    fft_release(&frames.fft);
    filters_release(&filters);
}
