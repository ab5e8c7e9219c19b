#!/usr/bin/env python3
"""Times passes of ONNX models in ONNX Runtime on this CPU:
    onnx_passes.py THREADS FOLDER
prints "group<TAB>name<TAB>file<TAB>sizes<TAB>seconds" for each model that tools/fetch-model downloads.  The group
`held-out` was not used to fit the efficiencies of src/estimate/cpu_kernel.c; the group `unseen` was first measured
after it had been predicted.  Denormals are flushed to zero: they are 24 and 63 % of the weights of two layers of OCR v6
detection, and otherwise take 64 of its 88 ms.  Seconds are the minimum over rounds of the lower quartile, with the
models interleaved, as in a calibration: other programs only add time. Needs the packages numpy and onnxruntime."""

import sys
import time
from pathlib import Path

import numpy
import onnxruntime

# group, name, file, inputs; an input is its shape and type
MODELS = [
    ("seen", "magika 1", "magika.onnx", {"bytes": ((1, 2048), "i4")}),
    ("seen", "magika 8", "magika.onnx", {"bytes": ((8, 2048), "i4")}),
    ("seen", "OCR v4 detection 320 x 320", "ocr4-detection.onnx", {"x": ((1, 3, 320, 320), "f4")}),
    ("seen", "OCR v4 detection 640 x 640", "ocr4-detection.onnx", {"x": ((1, 3, 640, 640), "f4")}),
    ("seen", "OCR v4 recognition 48 x 320", "ocr4-recognition.onnx", {"x": ((1, 3, 48, 320), "f4")}),
    ("seen", "OCR v4 recognition, batch 4", "ocr4-recognition.onnx", {"x": ((4, 3, 48, 320), "f4")}),
    ("seen", "OCR orientation 48 x 192", "ocr-orientation.onnx", {"x": ((1, 3, 48, 192), "f4")}),
    ("seen", "OCR orientation, batch 6", "ocr-orientation.onnx", {"x": ((6, 3, 48, 192), "f4")}),
    ("seen", "silero-vad", "silero-vad.onnx", {"input": ((1, 576), "f4"), "state": ((2, 1, 128), "f4"), "sr": ((), "i8")}),
    ("held-out", "captcha 64 x 128", "captcha.onnx", {"input1": ((1, 1, 64, 128), "f4")}),
    ("held-out", "captcha, old, 64 x 128", "captcha-old.onnx", {"input1": ((1, 1, 64, 128), "f4")}),
    ("held-out", "captcha detection", "captcha-detection.onnx", {"images": ((1, 3, 416, 416), "f4")}),
    ("held-out", "nudenet 320 x 320", "nudenet.onnx", {"images": ((1, 3, 320, 320), "f4")}),
    ("held-out", "layout 800 x 608", "layout.onnx", {"image": ((1, 3, 800, 608), "f4")}),
    ("held-out", "document orientation", "document-orientation.onnx", {"x": ((1, 3, 224, 224), "f4")}),
    ("held-out", "OCR v6 detection 320 x 320", "ocr6-detection.onnx", {"x": ((1, 3, 320, 320), "f4")}),
    ("held-out", "OCR v6 recognition 48 x 320", "ocr6-recognition.onnx", {"x": ((1, 3, 48, 320), "f4")}),
    ("unseen", "OCR v3 detection 320 x 320", "ocr3-detection.onnx", {"x": ((1, 3, 320, 320), "f4")}),
    ("unseen", "OCR v3 detection 640 x 640", "ocr3-detection.onnx", {"x": ((1, 3, 640, 640), "f4")}),
    ("unseen", "OCR v3 recognition 48 x 320", "ocr3-recognition.onnx", {"x": ((1, 3, 48, 320), "f4")}),
    ("unseen", "speech embedding", "speech-embedding.onnx", {"input_1": ((1, 76, 32, 1), "f4")}),
    ("unseen", "speech embedding, batch 16", "speech-embedding.onnx", {"input_1": ((16, 76, 32, 1), "f4")}),
    ("unseen", "mel spectrogram, 1 s", "melspectrogram.onnx", {"input": ((1, 16000), "f4")}),
    ("unseen", "wake word", "wake-word.onnx", {"onnx::Flatten_0": ((1, 22, 96), "f4")}),
    ("unseen", "basic pitch, 2 s", "basic-pitch.onnx", {"serving_default_input_2:0": ((1, 43844, 1), "f4")}),
    ("unseen", "silero-vad 6", "silero-vad6.onnx",
     {"input": ((1, 576), "f4"), "h": ((1, 1, 128), "f4"), "c": ((1, 1, 128), "f4")}),
    ("unseen", "silero-vad 6, 64 windows", "silero-vad6.onnx",
     {"input": ((64, 576), "f4"), "h": ((1, 1, 128), "f4"), "c": ((1, 1, 128), "f4")}),
]
ROUNDS, ROUND_S, SAMPLES_LEAST = 6, 0.1, 3


def numbers(shape, kind):
    draws = numpy.random.default_rng(1)
    if kind == "f4":
        return draws.random(shape, dtype=numpy.float32)
    return draws.integers(0, 255, shape).astype(kind) if shape else numpy.array(16000, dtype=kind)


def main():
    threads, folder = int(sys.argv[1]), Path(sys.argv[2])
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    subjects = [(row, onnxruntime.InferenceSession(folder / row[2], options, providers=["CPUExecutionProvider"]),
                 {name: numbers(*shape) for name, shape in row[3].items()}, [])
                for row in MODELS if (folder / row[2]).exists()]
    for _ in range(ROUNDS):
        for _, session, inputs, samples in subjects:
            session.run(None, inputs)  # warm-up
            end, took = time.perf_counter() + ROUND_S, []
            while len(took) < SAMPLES_LEAST or time.perf_counter() < end:
                begin = time.perf_counter()
                session.run(None, inputs)
                took.append(time.perf_counter() - begin)
            samples.append(sorted(took)[len(took) // 4])
    for (group, name, file, inputs), session, _, samples in subjects:
        fixed = {given.name for given in session.get_inputs() if all(isinstance(size, int) for size in given.shape)}
        sizes = " ".join(f"{key}={'x'.join(map(str, shape))}" for key, (shape, _) in inputs.items() if key not in fixed)
        print(group, name, folder / file, sizes, min(samples), sep="\t")


main()
