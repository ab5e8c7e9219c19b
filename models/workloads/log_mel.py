"""The log-mel spectrogram of Whisper with NumPy."""
import numpy as np

RATE, FFT, HOP, BINS, CHUNK_S = 16000, 400, 160, 80, 2


def mel_filters():
    """Triangles of equal area on Slaney's scale: linear to 1000 Hz, then logarithmic; (bins, FFT / 2 + 1)."""
    def hertz(mel):
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))
    top = 15 + 27 * np.log(RATE / 2 / 1000) / np.log(6.4)
    corners = hertz(np.linspace(0, top, BINS + 2))
    frequency = np.linspace(0, RATE / 2, FFT // 2 + 1)
    widths = np.diff(corners)[:, None]
    rising = (frequency - corners[:-2, None]) / widths[:-1]
    falling = (corners[2:, None] - frequency) / widths[1:]
    area = 2 / (corners[2:] - corners[:-2])
    return (np.maximum(0, np.minimum(rising, falling)) * area[:, None]).astype(np.float32)


def log_mel(samples):
    """Of one recording: (bins, frames) for CHUNK_S seconds, padded with silence; samples in -1 to 1."""
    padded = np.zeros(CHUNK_S * RATE)
    padded[:len(samples)] = samples
    padded = np.pad(padded, FFT // 2, "reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, FFT)[::HOP][:-1]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FFT) / FFT)
    power = np.abs(np.fft.rfft(frames * window, axis=1)) ** 2
    values = np.log10(np.maximum(mel_filters() @ power.T, 1e-10))
    return ((np.maximum(values, values.max() - 8) + 4) / 4).astype(np.float32)
