/* Sound: WAV files and the log-mel spectrogram of Whisper.  The caller owns the structs: zero-initialize, *_release. */
#ifndef IPW_MEDIA_AUDIO_H
#define IPW_MEDIA_AUDIO_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum { AUDIO_SECONDS_MAX = 4 * 3600 };

/* One channel, -1..1. */
struct audio {
    uint32_t rate; /* samples per second */
    size_t count;
    float *samples;
};
void audio_release(struct audio *audio);
double audio_seconds(const struct audio *audio);

/* RIFF WAVE of 8, 16, 24 or 32-bit integers or 32 or 64-bit floats, with any number of channels, which are averaged.
 * ERR_BAD_VALUE names what is wrong: "data ends after 1200 of 16000 bytes"; ERR_UNSUPPORTED a compressed one. */
enum err audio_decode(const void *bytes, size_t length, struct audio *out, struct error *why)
    MUST_USE;
enum err audio_load(const char *path, struct audio *out, struct error *why) MUST_USE;
/* Band-limited resampling (windowed sinc). */
void audio_resample(const struct audio *audio, uint32_t rate, struct audio *out);

/* Parameters of WhisperFeatureExtractor (preprocessor_config.json). */
struct mel_options {
    uint32_t rate;  /* 16000 */
    uint32_t fft;   /* n_fft: 400 */
    uint32_t hop;   /* hop_length: 160 */
    uint32_t bins;  /* feature_size: 80 or 128 */
    double chunk_s; /* chunk_length: 30; padded with silence or cut */
};

/* bins x frames, row by row: log10 of the mel powers, limited to 8 below the maximum, (x + 4) / 4. */
struct mel {
    size_t bins, frames;
    float *values;
};
void mel_release(struct mel *mel);
/* `audio` has options->rate. */
void mel_spectrogram(const struct audio *audio, const struct mel_options *options, struct mel *out);

#endif
