#!/usr/bin/env python3
"""The shipped models: the build creates the documented files, quantized like the reference implementation. $IPW_PYTHON
may name an interpreter that has gguf; without it the comparison is skipped."""

import os
import sys

WANTED = os.environ.get("IPW_PYTHON")
if WANTED and "IPW_AGAIN" not in os.environ:
    os.environ["IPW_AGAIN"] = "1"
    os.execv(WANTED, [WANTED, *sys.argv])

import hashlib
import json
import subprocess
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import TIMEOUT_S  # noqa: E402

try:
    import gguf
    import numpy as np
except ImportError as error:
    gguf, np = None, None
    MISSING = f"{error} (set IPW_PYTHON to an interpreter that has gguf)"

BUILD = Path(os.environ.get("IPW_BUILD", "build")).resolve()
SOURCE = Path(os.environ.get("IPW_SOURCE", Path(__file__).parents[2]))
MODELS = SOURCE / "models"
QUANTIZE = BUILD / "models" / "quantize"
PRECISIONS = ("q8_0", "q4_0")
NAMES = sorted(path.name.removesuffix("-f16.gguf") for path in MODELS.glob("*-f16.gguf"))


def quantize(*arguments):
    return subprocess.run([QUANTIZE, *map(str, arguments)], capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=False)


def problems(*arguments):
    done = subprocess.run([BUILD / "tests" / "tools" / "dump_items", "builtin", *arguments],
                          capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    items = [json.loads(line) for line in done.stdout.splitlines()]
    return [item["problem"] for item in items if "problem" in item]


class Files(unittest.TestCase):
    def test_all_sizes_exist_and_are_small(self):
        self.assertEqual(NAMES, ["ipw-1m", "ipw-6m", "tools-2m"])
        self.assertLess(sum(path.stat().st_size for path in MODELS.glob("*.gguf")), 20e6)

    def test_files_have_listed_checksums(self):
        listed = dict(reversed(line.split()) for line in
                      (MODELS / "SHA256SUMS").read_text().splitlines() if "/" not in line)
        built = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                 for path in (BUILD / "models").glob("*.gguf")}
        self.assertEqual(len(listed), 3 * len(NAMES))
        self.assertEqual(built, listed)

    def test_invalid_models_are_rejected(self):
        with tempfile.TemporaryDirectory() as folder:
            whole = (MODELS / "ipw-1m-f16.gguf").read_bytes()
            for name, content, said in (("empty", b"", "ends too early"),
                                        ("text", b"no model at all", "no GGUF file"),
                                        ("half", whole[:len(whole) // 2], "ends too early"),
                                        ("head", whole[:500], "ends too early")):
                path = Path(folder, name)
                path.write_bytes(content)
                done = quantize("q8_0", path, path.with_suffix(".out"))
                self.assertEqual(done.returncode, 1, name)
                self.assertIn(said, done.stderr)
            self.assertIn("cannot be read", quantize("q8_0", Path(folder, "none"), "x").stderr)
            self.assertEqual(quantize("q5_k", Path(folder, "text"), "x").returncode, 2)


class Questions(unittest.TestCase):
    def setUp(self):
        self.golden = [item["problem"] for item in
                       json.loads((MODELS / "golden.json").read_text())["items"]]

    def test_generated_test_questions_are_unchanged(self):
        self.assertEqual(problems(f"count={len(self.golden)}"), self.golden)

    def test_training_and_test_questions_are_disjoint(self):
        asked = set(problems("split=test", "count=2500"))
        self.assertTrue(asked >= set(self.golden))
        seen = set(problems("split=train", "seed=1", "count=20000"))  # the first seed of prepare.py
        self.assertGreater(len(seen), 10000)
        self.assertFalse(seen & asked)


@unittest.skipUnless(gguf, "" if gguf else MISSING)
class Reference(unittest.TestCase):
    """The package gguf of llama.cpp implements the formats in NumPy."""

    def test_matrices_are_quantized_like_reference(self):
        """Of one model; those of the others have the listed checksums."""
        for name in NAMES[:1]:
            source = gguf.GGUFReader(MODELS / f"{name}-f16.gguf")
            for precision in PRECISIONS:
                with self.subTest(name=name, precision=precision):
                    built = gguf.GGUFReader(BUILD / "models" / f"{name}-{precision}.gguf")
                    self.compare(source, built, gguf.GGMLQuantizationType[precision.upper()])

    def compare(self, source, built, kind):
        self.assertEqual([t.name for t in source.tensors], [t.name for t in built.tensors])
        for before, after in zip(source.tensors, built.tensors):
            self.assertEqual(list(before.shape), list(after.shape), before.name)
            if before.tensor_type == gguf.GGMLQuantizationType.F16:
                expected = gguf.quants.quantize(before.data.astype(np.float32), kind)
                self.assertEqual(after.tensor_type, kind, before.name)
                self.assertEqual(after.data.tobytes(), expected.tobytes(), before.name)
            else:
                self.assertEqual(after.data.tobytes(), before.data.tobytes(), before.name)

    def test_metadata_equals_source_except_precision(self):
        for name in NAMES:
            source = gguf.GGUFReader(MODELS / f"{name}-f16.gguf")
            facts = {key: field.contents() for key, field in source.fields.items()}
            for precision, file_type in (("q8_0", 7), ("q4_0", 2)):
                built = gguf.GGUFReader(BUILD / "models" / f"{name}-{precision}.gguf")
                found = {key: field.contents() for key, field in built.fields.items()}
                self.assertEqual(found, {**facts, "general.file_type": file_type})

    def test_extreme_values_are_quantized_like_reference(self):
        rng = np.random.default_rng(1)
        rows = rng.standard_normal((256, 64)) * np.logspace(-7, 4, 256)[:, None]
        rows[3] = 0
        rows[5, :32] = 2.0 ** -24        # smallest positive half
        rows[7, :] = -rows[7, :].max()   # all equal
        rows[9, 0], rows[9, 1] = 60000, -60000
        rows = rows.astype(np.float16)
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "source.gguf")
            writer = gguf.GGUFWriter(source, "llama")
            writer.add_file_type(1)
            writer.add_tensor("matrix", rows)
            writer.add_tensor("odd", rows[:, :33].copy())  # not a multiple of the block size: stays unquantized
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            for precision in PRECISIONS:
                target = Path(folder, precision)
                done = quantize(precision, source, target)
                self.assertEqual(done.returncode, 0, done.stderr)
                matrix, odd = gguf.GGUFReader(target).tensors
                kind = gguf.GGMLQuantizationType[precision.upper()]
                expected = gguf.quants.quantize(rows.astype(np.float32), kind)
                self.assertEqual(matrix.data.tobytes(), expected.tobytes())
                self.assertEqual(odd.data.tobytes(), rows[:, :33].tobytes())


if __name__ == "__main__":
    unittest.main()
