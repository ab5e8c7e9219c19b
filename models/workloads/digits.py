#!/usr/bin/env python3
"""Spoken digits from a formant synthesizer: one to four words, many voices, with noise, 16 kHz.

    digits.py --out models/data/digits --count 40 --seed 2      WAV files (16 bits, mono) and labels.csv

A word is a sequence of phonemes, each with targets of three formants, voicing and noise, between which all values move
smoothly.  The voiced part is a sum of harmonics weighted by the formants' resonances, the noise is filtered by spectrum.
A voice has a pitch, a length of the vocal tract, a speed and a breathiness.  Written files have more noise than the training,
so that some words are misheard.  Needs NumPy.
"""
import argparse
import csv
import wave
from multiprocessing import Pool
from pathlib import Path

import numpy as np

RATE = 16000
FRAME = 80                 # samples: 5 ms
SECONDS_MOST = 1.95
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TEST_SEED, TRAIN_SEED = 2, 1
NOISE, TEST_NOISE = (2, 30), (-10, 12)  # range of how many dB the noise is below the speech
TAKES = 2                  # of each word and voice

# Phonemes: milliseconds, three formants in Hz, voicing, noise, center and width of the noise in Hz.
VOWEL = {"iy": (270, 2290, 3010), "ih": (390, 1990, 2550), "eh": (530, 1840, 2480), "ah": (640, 1190, 2390),
         "ao": (570, 840, 2410), "uw": (300, 870, 2240), "ow": (480, 900, 2350), "ey": (450, 2050, 2600),
         "aa": (730, 1090, 2440), "ay": (420, 2000, 2550), "schwa": (500, 1400, 2400)}
CONSONANT = {"r": (70, (330, 1200, 1600), 0.7, 0.0, 0, 0), "w": (60, (300, 650, 2200), 0.6, 0.0, 0, 0),
             "n": (75, (260, 1500, 2500), 0.35, 0.0, 0, 0), "z": (90, (280, 1700, 2500), 0.25, 0.35, 6000, 1500),
             "s": (110, (280, 1700, 2500), 0.0, 0.6, 6200, 1300), "f": (90, (300, 1100, 2300), 0.0, 0.28, 5000, 4000),
             "v": (60, (280, 1100, 2300), 0.3, 0.12, 4500, 4000), "th": (85, (300, 1400, 2500), 0.0, 0.2, 5500, 3500),
             "k": (25, (300, 1900, 2600), 0.0, 0.5, 2300, 900), "t": (25, (300, 1800, 2600), 0.0, 0.55, 4800, 2000),
             "stop": (55, (300, 1700, 2500), 0.0, 0.0, 0, 0)}
SPELLED = {"zero": "z iy:90 r ow:130", "one": "w ah:120 n", "two": "stop t uw:160", "three": "th r iy:160",
           "four": "f ao:150 r", "five": "f aa:110 ay:80 v", "six": "s ih:90 stop k s",
           "seven": "s eh:90 v schwa:55 n", "eight": "ey:130 stop t", "nine": "n aa:110 ay:80 n"}


def phonemes(word):
    """(milliseconds, formants, voicing, noise, center, width) of each."""
    for part in SPELLED[word].split():
        name, _, length = part.partition(":")
        if length:
            yield int(length), VOWEL[name], 1.0, 0.0, 3000, 3000
        else:
            yield CONSONANT[name]


class Voice:
    def __init__(self, random):
        self.pitch = np.exp(random.uniform(np.log(85), np.log(250)))
        self.tract = np.clip(0.82 + 0.0012 * self.pitch + random.normal(0, 0.04), 0.8, 1.25)
        self.speed = random.uniform(0.8, 1.25)
        self.breath = random.uniform(0, 0.03)
        self.tilt = random.uniform(0.8, 1.4)     # of the source's spectrum: amplitude ~ 1 / harmonic^tilt
        self.formants = random.normal(1, 0.04, 3)


def tracks(word, voice, random):
    """Values per frame: formants, voicing, noise, its center and width."""
    rows = []
    for length, formants, voicing, noise, center, width in phonemes(word):
        frames = max(2, round(length * random.uniform(0.8, 1.25) / voice.speed / 5))
        shifted = np.asarray(formants) * voice.tract * voice.formants * random.normal(1, 0.03, 3)
        rows += [[*shifted, voicing * random.uniform(0.8, 1.2), noise * random.uniform(0.6, 1.4), center,
                  width]] * frames
    values = np.asarray(rows, float)
    smoothing = np.hanning(9)[1:-1] / np.hanning(9).sum()
    padded = np.pad(values, ((3, 3), (0, 0)), "edge")
    smooth = np.stack([np.convolve(column, smoothing, "valid") for column in padded.T], 1)
    edge = np.minimum(1, (np.arange(len(smooth)) + 1) / 4)
    smooth[:, 3:5] *= np.minimum(edge, edge[::-1])[:, None]
    smooth[:, 5:] = values[:, 5:]
    return smooth


def resonance(frequency, formants):
    """Gain of three resonators at frequencies (frames, harmonics)."""
    gain = np.ones_like(frequency)
    for index, bandwidth in enumerate((70, 100, 150)):
        f = formants[:, index:index + 1]
        gain *= f * f / np.sqrt((f * f - frequency ** 2) ** 2 + (bandwidth * frequency) ** 2)
    return gain


def voiced(values, voice, random):
    """A sum of harmonics whose amplitudes follow the formants."""
    frames = len(values)
    fall = np.linspace(random.uniform(1.0, 1.12), random.uniform(0.85, 1.0), frames)
    pitch = voice.pitch * fall * (1 + 0.01 * np.sin(np.arange(frames) / 4 + random.uniform(0, 6)))
    count = int(5000 / pitch.max())
    harmonic = np.arange(1, count + 1)
    amplitude = (resonance(pitch[:, None] * harmonic, values[:, :3]) / harmonic ** voice.tilt
                 * values[:, 3:4]).astype(np.float32)
    at = np.arange(frames * FRAME) / FRAME
    phase = np.cumsum(np.interp(at, np.arange(frames), pitch)) * (2 * np.pi / RATE)
    low = np.minimum(at.astype(int), frames - 1)
    high, part = np.minimum(low + 1, frames - 1), (at % 1).astype(np.float32)[:, None]
    mixed = amplitude[low] * (1 - part) + amplitude[high] * part
    wave_of = np.sin(np.outer(phase, harmonic).astype(np.float32) + random.uniform(0, 2 * np.pi, count).astype(np.float32))
    return (mixed * wave_of).sum(1)


def noise_of(values, voice, random):
    """White noise, filtered frame by frame: windows of 10 ms that overlap by half."""
    frames, size = len(values), 2 * FRAME
    out = np.zeros(frames * FRAME + size)
    frequency = np.fft.rfftfreq(size, 1 / RATE)
    spectra = np.fft.rfft(random.normal(0, 1, (frames, size)), axis=1)
    center, width = values[:, 5:6] * voice.tract ** 0.5, np.maximum(values[:, 6:7], 1)
    shape = np.exp(-0.5 * ((frequency - center) / width) ** 2) * values[:, 4:5] + voice.breath * values[:, 3:4]
    parts = np.fft.irfft(spectra * shape, size, axis=1) * np.hanning(size)
    for index, part in enumerate(parts):
        out[index * FRAME:index * FRAME + size] += part
    return out[:frames * FRAME]


def speak(word, voice, random):
    values = tracks(word, voice, random)
    tone = voiced(values, voice, random)
    return (tone / (abs(tone).max() + 1e-9) + 0.8 * noise_of(values, voice, random)).astype(np.float32)


def background(random, count):
    """White, pink or brown noise, or hum."""
    white = random.normal(0, 1, count)
    kind = random.integers(4)
    if kind == 0:
        return white
    if kind == 3:
        at, base = np.arange(count) / RATE, random.uniform(50, 120)
        return sum(np.sin(2 * np.pi * base * k * at + random.uniform(0, 6)) / k for k in range(1, 8)) + 0.2 * white
    frequency = np.fft.rfftfreq(count, 1 / RATE)
    spectrum = np.fft.rfft(white) / np.maximum(frequency, 50) ** (0.5 * kind)
    made = np.fft.irfft(spectrum, count)
    return made / made.std()


def utterance(clips, noise, random):
    """One to four words of a voice: samples in -1 to 1, and the transcript."""
    while True:
        words = random.integers(len(WORDS), size=random.integers(1, 5))
        parts = [np.zeros(int(RATE * random.uniform(0.02, 0.1)), np.float32)]
        for word in words:
            parts += [clips[word][random.integers(TAKES)] * random.uniform(0.7, 1),
                      np.zeros(int(RATE * random.uniform(0, 0.08)), np.float32)]
        samples = np.concatenate(parts)
        if len(samples) <= SECONDS_MOST * RATE:
            break
    ratio = 10 ** (-random.uniform(*noise) / 20)
    samples = samples + ratio * samples.std() * background(random, len(samples))
    samples *= random.uniform(0.2, 0.9) / abs(samples).max()
    return samples.astype(np.float32), " ".join(WORDS[word] for word in words)


def of_voice(key):
    """Some utterances of one voice as 16-bit integers."""
    seed, voice_index, count, noise = key
    random = np.random.default_rng((seed, voice_index))
    voice = Voice(random)
    clips = [[speak(word, voice, random) for _ in range(TAKES)] for word in WORDS]
    made = [utterance(clips, noise, random) for _ in range(count)]
    return [(np.round(samples * 32767).astype(np.int16), text) for samples, text in made]


def dataset(voices, each, seed, workers, noise=NOISE):
    """(samples, transcript) of `voices` speakers with `each` utterances."""
    with Pool(workers) as pool:
        made = pool.map(of_voice, [(seed, index, each, noise) for index in range(voices)], chunksize=4)
    return [item for some in made for item in some]


def write(folder, count, seed):
    folder.mkdir(parents=True, exist_ok=True)
    labels = []
    for index, (samples, text) in enumerate(dataset(count, 1, seed, 1, TEST_NOISE)):
        name = f"digits-{index:02d}.wav"
        with wave.open(str(folder / name), "wb") as file:
            file.setparams((1, 2, RATE, len(samples), "NONE", ""))
            file.writeframes(samples.astype("<i2").tobytes())
        labels.append([name, text])
    with open(folder / "labels.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([["file", "label"], *labels])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=TEST_SEED)
    options = parser.parse_args()
    write(options.out, options.count, options.seed)


if __name__ == "__main__":
    main()
