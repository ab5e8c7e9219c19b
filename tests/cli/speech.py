"""Sounds and their log-mel spectrograms as Whisper's feature extractor computes them, for tests of speech
recognition."""

import wave

import numpy as np

RATE = 16000


def tones(steps, seconds):
    """A sequence of tones with some harmonics and a seeded noise."""
    time = np.arange(int(RATE * seconds)) / RATE
    which = np.minimum((time / seconds * len(steps)).astype(int), len(steps) - 1)
    frequency = np.array(steps, float)[which]
    phase = 2 * np.pi * np.cumsum(frequency) / RATE
    noise = np.random.default_rng(len(steps)).normal(0, 0.01, len(time))
    return sum(np.sin(phase * harmonic) / harmonic for harmonic in (1, 2, 3)) * 0.3 + noise


def as_16_bit(samples):
    """What a file of 16 bits keeps of samples from -1 to 1."""
    return np.clip(np.round(samples * 32767), -32768, 32767).astype(np.int16)


def sounds():
    """By name, as a model sees them: floats at RATE."""
    found = {"low": tones([220, 180], 1.3), "rise": tones([300, 600, 1200, 2400], 2.0),
             "calls": tones([900, 500, 900, 500, 3000], 1.8), "silence": np.zeros(RATE)}
    return {name: (as_16_bit(samples) / 32768.0).astype(np.float32) for name, samples in found.items()}


def write_wav(path, samples, rate=RATE, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.round(np.repeat(samples, channels) * 32768).clip(-32768, 32767).astype("<i2").tobytes())


def mel_filters(bins, fft):
    """Triangles of equal area on Slaney's mel scale: linear up to 1 kHz, logarithmic above."""
    def to_mel(hertz):
        return np.where(hertz < 1000, hertz * 3 / 200, 15 + np.log(np.maximum(hertz, 1) / 1000) * 27 / np.log(6.4))

    def to_hertz(mel):
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp(np.log(6.4) / 27 * (mel - 15)))

    edges = to_hertz(np.linspace(0, to_mel(np.array(RATE / 2)), bins + 2))
    frequencies = np.linspace(0, RATE / 2, fft // 2 + 1)
    rising = (frequencies[None] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - frequencies[None]) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]


def log_mel(samples, bins, seconds, fft=400, hop=160):
    length = int(seconds * RATE)
    padded = np.pad(np.asarray(samples, float)[:length], (0, max(0, length - len(samples))))
    padded = np.pad(padded, fft // 2, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(fft) / fft)
    frames = np.stack([padded[at * hop:at * hop + fft] * window for at in range(length // hop)])
    mel = mel_filters(bins, fft) @ (np.abs(np.fft.rfft(frames)) ** 2).T
    log = np.log10(np.maximum(mel, 1e-10))
    return ((np.maximum(log, log.max() - 8) + 4) / 4).astype(np.float32)
