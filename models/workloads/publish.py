#!/usr/bin/env python3
"""Takes trained models of vision, speech, text and diffusion into the repository.

    publish.py --trained FOLDER [--out models]

Writes the ONNX files with what belongs to them, the held-out data, reference features, and the files' checksums; every ONNX
file must compute what its network in PyTorch does.  Needs PyTorch, onnx, onnxruntime and NumPy.
"""
import argparse
import csv
import hashlib
import json
from pathlib import Path

import numpy as np
import onnxruntime
import torch

import digits
import scenes
import shape_images
import topics
import whisper_network
from diffusion_network import UNet
from export import export_diffusion, export_speech, export_text, export_vision, torch_text
from scene_networks import YOLO_SIZES, ResNet, VisionTransformer, Yolo
from train_diffusion import centered
from training import load

HERE = Path(__file__).resolve().parent
FOLDERS = ("vision", "speech", "text", "diffusion", "data")
REFERENCES = 500
PROMPTS = 200       # more images than features, as FID needs
TOLERANCE = 2e-4    # of the largest output
HALF_TOLERANCE = 1e-3  # where weights are kept as 16 bits


def run(path, *inputs):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {port.name: np.asarray(value) for port, value in zip(session.get_inputs(), inputs)})


def compare(path, inputs, expected, tolerance=TOLERANCE):
    """Fails unless the outputs are those of the network in PyTorch."""
    with torch.no_grad():
        wanted = expected()
    wanted = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    for found, want in zip(run(path, *inputs), wanted, strict=True):
        difference = np.abs(found - want.numpy()).max() / np.abs(want.numpy()).max()
        print(f"{path.parent.name}/{path.name}: {difference:.1e} of the largest value", flush=True)
        assert found.shape == want.shape and difference < tolerance, path


def check_vision(trained, out):
    torch.manual_seed(1)
    pixels = torch.rand(3, 3, 64, 64)
    for name, network in (("scenes-vit", VisionTransformer()), ("scenes-resnet", ResNet())):
        load(network, trained / f"{name}.npz")
        compare(out / name / "model.onnx", [pixels], lambda network=network: network(pixels))
    for size in YOLO_SIZES:
        network = load(Yolo(size), trained / f"scenes-yolo-{size}.npz")
        tolerance = TOLERANCE if size == "n" else HALF_TOLERANCE
        for sides in ((64, 64), (96, 96), (128, 96)):
            images = torch.rand(1, 3, *sides)
            compare(out / f"scenes-yolo-{size}.onnx", [images], lambda: network(images), tolerance)


def check_speech(trained, out):
    network = load(whisper_network.Whisper(), trained / "digits-whisper.npz").model
    features, tokens = torch.randn(2, 80, 200), torch.tensor([[257, 3, 4, 5, 6]] * 2)
    with torch.no_grad():
        states = network.encoder(features)
        caches = network.decoder.first(tokens, states)[1]
    compare(out / "encoder_model.onnx", [features], lambda: states)
    compare(out / "decoder_model.onnx", [tokens, states], lambda: flat(network.decoder.first(tokens, states)))
    past = [tensor for cache in caches for tensor in cache]
    compare(out / "decoder_with_past_model.onnx", [tokens[:, :1], *past],
            lambda: flat(network.decoder.next(tokens[:, :1], caches)))


def flat(result):
    return [result[0], *(tensor for cache in result[1] for tensor in cache)]


def check_text(trained, out):
    network, words = torch_text(trained)
    tokens, lengths = torch.randint(1, len(words), (5, 11)), torch.tensor([11, 3, 7, 1, 9])
    mask = (torch.arange(11)[None] < lengths[:, None]).long()
    compare(out / "topics-lstm" / "model.onnx", [tokens * mask, mask], lambda: network(tokens * mask, mask))


def check_diffusion(trained, out):
    network = load(UNet(), trained / "shapes-diffusion.npz")
    sample, steps, classes = torch.randn(3, 3, 32, 32), torch.tensor([0, 400, 999]), torch.tensor([0, 7, 10])
    compare(out / "shapes-diffusion" / "unet" / "model.onnx", [sample, steps, classes],
            lambda: network(sample, steps, classes))


def write_data(out, encoder):
    scenes.write(out / "data" / "scenes", 120, scenes.TEST_SEED)
    digits.write(out / "data" / "digits", 40, digits.TEST_SEED)
    with open(out / "data" / "topics.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [["text", "label"], *topics.held_out(200, topics.TEST_SEED)])
    with open(out / "data" / "shapes.csv", "w", newline="", encoding="utf-8") as file:
        rows = [[f"{scenes.CLASSES[index % 10]} seed={index + 1}", scenes.CLASSES[index % 10]]
                for index in range(PROMPTS)]
        csv.writer(file, lineterminator="\n").writerows([["prompt", "label"], *rows])
    images = shape_images.dataset(REFERENCES, shape_images.REFERENCE_SEED, 1)[0]
    with torch.no_grad():
        features = encoder(centered(torch.from_numpy(images))).numpy()
    compare(out / "diffusion" / "shapes-encoder.onnx", [centered(torch.from_numpy(images))],
            lambda: torch.from_numpy(features))
    np.save(out / "diffusion" / "shapes-reference.npy", features.astype(np.float32))


def write_checksums(out):
    """Beside those of the language models, which are named without a folder."""
    path = out / "SHA256SUMS"
    lines = [line for line in path.read_text().splitlines() if "/" not in line] if path.exists() else []
    for folder in FOLDERS:
        for file in sorted((out / folder).rglob("*")):
            if file.is_file():
                lines.append(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(out)}")
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--trained", type=Path, required=True, help="what the trainings wrote")
    parser.add_argument("--out", type=Path, default=HERE.parent)
    options = parser.parse_args()
    trained, out = options.trained, options.out
    torch.manual_seed(1)
    export_vision(trained, out / "vision")
    export_speech(trained, out / "speech" / "digits-whisper")
    export_text(trained, out / "text" / "topics-lstm")
    encoder = export_diffusion(trained, out / "diffusion")
    check_vision(trained, out / "vision")
    check_speech(trained, out / "speech" / "digits-whisper")
    check_text(trained, out / "text")
    check_diffusion(trained, out / "diffusion")
    write_data(out, encoder)
    results = {name: json.loads((trained / f"{name}.json").read_text())
               for name in ("scenes", "digits", "topics", "diffusion")}
    (out / "training.json").write_text(json.dumps(results, indent=1) + "\n")
    write_checksums(out)


if __name__ == "__main__":
    main()
