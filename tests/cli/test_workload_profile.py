#!/usr/bin/env python3
# test: real time, asan
"""`ipw profile --workload` from folder to report: damaged files, what the energy of a query consists of, batches, units,
mistakes on the command line, interruption, sweeps and comparisons, with small models of random weights."""

import csv
import ctypes
import io
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
import oracle

oracle.use()
try:
    import numpy as np
    import onnx
    import workload_models as models
    from PIL import Image
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has it)")
    sys.exit(77)
from machines import LoadedIntel, Machine
from profiling import Run
from program import IPW, SANITIZED, MachineTest, ipw, wait_until

CLASSES = ["cat", "dog", "bird"]


def write_images(folder, sizes, seed=3):
    """Noise, whose PNG is not compressed: name -> label."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    labels = {}
    for number, (width, height) in enumerate(sizes):
        name = f"image{number:03}.{'jpg' if number % 2 else 'png'}"
        Image.fromarray(random.integers(0, 256, (height, width, 3), np.uint8)).save(folder / name)
        labels[name] = CLASSES[number % len(CLASSES)]
    return labels


def write_labels(folder, labels):
    (folder / "labels.csv").write_text("file,label\n" + "".join(f"{name},{label}\n" for name, label in labels.items()))


def answers_of(run):
    """By key."""
    return {key: json.loads(next(iter(record["model_answers"].values()))) for key, record in run.records().items()
            if record["ipw"]["status"] == "completed"}


def latency_of(record):
    [metrics] = record["model_metrics"].values()
    return metrics["latency_metrics"]["total_query_seconds"]


class Opens:
    """Counts how often a file is opened meanwhile.  Closing is watched, too, since equal events in a row are one."""

    CLOSE, OPEN, EVENT = 0x10, 0x20, struct.Struct("iIII")

    def __init__(self, path):
        self.path = str(path).encode()

    def __enter__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK)
        assert self.fd >= 0 and libc.inotify_add_watch(self.fd, self.path, self.OPEN | self.CLOSE) >= 0, ctypes.get_errno()
        return self

    def __exit__(self, *_):
        events = self.EVENT.iter_unpack(os.read(self.fd, 1 << 16))
        self.count = sum(mask & self.OPEN != 0 for _, mask, _, _ in events)
        os.close(self.fd)


class WorkloadProfile(MachineTest):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = Path(holder.name)
        names = {"names": CLASSES}
        cls.vit = models.classifier(cls.folder / "vit.onnx", 32, len(CLASSES), metadata=names)
        cls.yolo = models.detector(cls.folder / "yolo.onnx", None, CLASSES, metadata={"imgsz": [64, 64]})
        cls.images = cls.folder / "images"
        cls.labels = write_images(cls.images, [(48 + n, 50) for n in range(8)])
        write_labels(cls.images, cls.labels)

    def setUp(self):
        self.on = self.machine(LoadedIntel)
        self.out = self.on.root / "out"

    def arguments(self, workload, model, images, *more):
        dataset = ["images", "--dataset-param", f"path={images}"] if images.is_dir() else [images]
        return ["profile", "--workload", workload, "--model", model, "--dataset", *dataset, "--idle", "0", "--output-dir", self.out, "--client-param", "threads=1", *more]

    def profile(self, workload, model, images, *more, code=0, machine=None):
        self.done = ipw(machine or self.on, *self.arguments(workload, model, images, "--json", *more))
        self.assertEqual(self.done.returncode, code, self.done.stderr)
        report = json.loads(self.done.stdout)
        self.run_dir = Run(report["output_dir"])
        return report

    def refused(self, *words, code, arguments):
        """One line, before anything is written."""
        done = ipw(self.on, *arguments)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse(list(self.out.glob("*")), done.stderr)

    def query_joules(self):
        return {key: record["ipw"]["energy"]["joules"] for key, record in self.run_dir.records().items()
                if record["ipw"]["status"] == "completed"}

    def assertConserved(self, report):
        """Shares of the machine's energy are its whole, and those of queries their sum; units divide them."""
        parts = report["joules"]
        whole = sum(parts[name] or 0 for name in ("queries", "failed", "idle", "unattributed"))
        self.assertAlmostEqual(whole / report["energy"]["joules"], 1, delta=1e-3)
        joules = self.query_joules()
        self.assertAlmostEqual(sum(joules.values()) / parts["queries"], 1, delta=1e-3)
        self.assertEqual(report["images"], len(joules))
        self.assertAlmostEqual(report["joules_per_image"] * report["images"] / parts["queries"], 1, delta=1e-3)

    def damaged(self):
        """A folder whose first files, all of the warm-up, cannot be read."""
        folder = self.on.root / "damaged"
        labels = write_images(folder, [(40, 40)] * 4)
        png = (folder / "image000.png").read_bytes()
        for name, content in (("a0.png", png[:len(png) // 2]), ("a1.jpg", b"\xff\xd8\xff garbage"), ("a2.png", b"text"),
                              ("a3.png", b"")):
            (folder / name).write_bytes(content)
            labels[name] = "cat"
        write_labels(folder, dict(sorted(labels.items())))
        return folder

    def test_damaged_files_fail_alone(self):
        folder = self.damaged()
        report = self.profile("vit", self.vit, folder, "--max-failed", "100%")
        self.assertEqual((report["queries"], report["completed"], report["failed"]), (8, 4, 4))
        self.assertConserved(report)
        records = self.run_dir.records()
        failed = {key: record["ipw"] for key, record in records.items() if record["ipw"]["status"] == "failed"}
        for (name, word), entry in zip((("a0.png", "truncated"), ("a1.jpg", "truncated"), ("a2.png", "not a PNG or JPEG"),
                                        ("a3.png", "empty")), failed.values(), strict=True):
            self.assertIn(f"{folder / name}: ", entry["error"])
            self.assertIn(word, entry["error"])
            self.assertIsNone(entry["energy"]["joules"])
        top = {entry["name"]: entry for entry in report["quality"]}["top_1"]
        self.assertEqual(top["count"], 4)
        answers = answers_of(self.run_dir)
        right = sum(answers[key][0]["label"] == record["answer"]
                    for key, record in records.items() if key not in failed)
        self.assertAlmostEqual(top["value"], right / 4)
        self.assertIn("damaged/a0.png: truncated", report["failure_reason"])
        done = ipw(self.on, *self.arguments("vit", self.vit, folder, "--name", "strict"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("4 of 8 queries failed", done.stderr)

    def test_a_folder_without_one_good_file(self):
        folder = self.damaged()
        for file in folder.glob("image*"):
            file.unlink()
        done = ipw(self.on, *self.arguments("vit", self.vit, folder))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("no warm-up query was answered", done.stderr)
        self.assertIn(str(folder), done.stderr)

    def test_decoding_is_in_the_energy_of_the_run_but_of_no_query(self):
        """On a machine whose energy is the CPU time of the program."""
        on = self.machine(LoadedIntel, idle=0)
        folder = on.root / "large"
        write_images(folder, [(1400, 1400)] * 4)
        report = self.profile("vit", self.vit, folder, machine=on)
        self.assertLess(report["joules"]["queries"], 0.2 * report["energy"]["joules"])
        self.assertGreater(report["joules"]["unattributed"], 0.5 * report["energy"]["joules"])
        latencies = [latency_of(record)
                     for record in self.run_dir.records().values()]
        self.assertLess(sum(latencies), 0.2 * report["seconds"])
        self.assertEqual(len(latencies), 4)  # and none of a warm-up

    def test_a_batch_has_one_window_and_equal_shares(self):
        alone = self.profile("yolo", self.yolo, self.images, "--param", "size=512,confidence=0.9", "--name", "alone")
        answers = answers_of(self.run_dir)
        self.assertConserved(alone)
        together = self.profile("yolo", self.yolo, self.images, "--param", "size=512,confidence=0.9", "--name", "together",
                                "--client-param", "batch=4,batch_delay_ms=20000", "--warmup-queries", "0")
        self.assertConserved(together)
        for key, answer in answers_of(self.run_dir).items():
            self.assertEqual([entry["label"] for entry in answers[key]], [entry["label"] for entry in answer])
        shares = Counter(round(joules, 9) for joules in self.query_joules().values())
        self.assertEqual(sorted(shares.values()), [4, 4], shares)
        times = Counter(round(latency_of(record), 9)
                        for record in self.run_dir.records().values())
        self.assertEqual(sorted(times.values()), [4, 4], times)
        self.assertConserved(self.profile("vit", self.vit, self.images, "-c", "3", "--name", "apart"))

    def test_the_model_is_loaded_once(self):
        """By the preparation, the warm-up and all workers together."""
        with Opens(self.vit) as opens:
            self.profile("vit", self.vit, self.images, "-c", "2")
        self.assertEqual(opens.count, 1)

    def test_unknown_is_null(self):
        report = self.profile("vit", self.vit, self.images, machine=self.machine(Machine))
        self.assertUnknown(report["energy"])
        for member in ("joules_per_image", "audio_s", "joules_per_audio_s", "real_time_factor", "denoise_steps",
                       "joules_per_denoise_step", "input_tokens", "output_tokens", "joules_per_output_token"):
            self.assertIsNone(report[member], member)
        self.assertEqual((report["images"], report["completed"]), (8, 8))
        self.assertNotIn("token", ipw(self.on, "analyze", self.run_dir.path).stdout.replace("token counts", ""))

    def test_mistakes_are_one_line(self):
        empty = self.on.root / "empty"
        empty.mkdir()
        two = models.classifier(self.on.root / "two.onnx", 32, len(CLASSES))
        (self.on.root / "two.labels.txt").write_text("cat\ndog\n")
        newer = onnx.load(self.vit)
        newer.opset_import[0].version = 99
        onnx.save(newer, self.on.root / "newer.onnx")
        eight = models.classifier(self.on.root / "eight.onnx", 32, len(CLASSES), batch=8)
        nothing = models.constant_output(self.on.root / "nan.onnx", [[0.5, np.nan, 0.1]])
        text = models.text_classifier(self.on.root / "text/model.onnx", 4, 2).parent
        (text / "vocab.txt").write_text("[PAD]\n[UNK]\nthe\nrain\n")
        texts = self.on.put("/texts.jsonl", json.dumps({"problem": "the rain", "answer": "0"}))
        for words, code, (workload, model, images, *more) in (
                (("vti", "did you mean 'vit'"), 2, ("vti", self.vit, self.images)),
                (("absent.onnx",), 2, ("vit", self.folder / "absent.onnx", self.images)),
                ((str(empty), "model.onnx"), 2, ("vit", empty, self.images)),
                ((str(empty), "PNG or JPEG"), 1, ("vit", self.vit, empty)),
                (("two.onnx", "3 classes", "2 labels"), 1, ("vit", two, self.images)),
                (("newer.onnx", "opset", "IPW_ONNXRUNTIME_LIB"), 1, ("vit", self.on.root / "newer.onnx", self.images)),
                (("eight.onnx", "fixed at 8"), 1, ("vit", eight, self.images, "--client-param", "batch=4")),
                (("nan.onnx", "NaN"), 1, ("vit", nothing, self.images)),
                (("directory", "encoder_model.onnx"), 2, ("whisper", self.vit, self.images)),
                (("model_index.json",), 2, ("diffusion", self.vit, texts)),
                (("siz", "did you mean 'size'"), 2, ("yolo", self.yolo, self.images, "--param", "siz=64")),
                (("--client-param batch=4",), 2, ("vit", self.vit, self.images, "--param", "batch=4")),
                (("--param size=64",), 2, ("yolo", self.yolo, self.images, "--client-param", "size=64")),
                (("one query at a time",), 2, ("lstm", text, texts, "--client-param", "batch=2")),
                (("--system", "an image file"), 2, ("vit", self.vit, self.images, "--system", "Be brief.")),
                (("--client-base-url",), 2, ("vit", self.vit, self.images, "--client-base-url", "http://localhost:1")),
                (("size=33", "32 x 32 only"), 2, ("vit", self.vit, self.images, "--param", "size=33")),
                (("dataset images has files", "a text"), 2, ("lstm", text, self.images)),
                (("client onnx",), 2, ("vit", self.vit, self.images, "--client", "openai"))):
            with self.subTest(words=words):
                self.refused(*words, code=code, arguments=self.arguments(workload, model, images, *more))
        self.refused("--model", "follows --", code=2, arguments=["sweep", "--workload", "yolo", "--model", self.yolo])
        listed = ipw(None, "list", "workloads", "-v").stdout
        for word in ("--param: least score of a detection", "--client-param: queries in flight", "--client-param: threads"):
            self.assertIn(word, listed)

    def test_resume_after_an_interruption(self):
        many = self.on.root / "many"
        many.mkdir()
        for number in range(60):
            (many / f"{number:02}.png").symlink_to(self.images / "image000.png")
        arguments = self.arguments("yolo", self.yolo, many, "--param", "size=1024", "--name", "run", "--json")
        process = subprocess.Popen([IPW, *map(str, arguments)], env=self.on.environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        records = self.out / "run/records.jsonl"
        wait_until(lambda: records.exists() and records.read_text().count('"kind":"query"') > 5, "the first records")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()
        self.assertEqual(process.returncode, 130, errors)
        first = json.loads(output)
        self.assertTrue(5 < first["completed"] < 60, first["completed"])
        report = self.profile("yolo", self.yolo, many, "--param", "size=1024", "--name", "run", "--resume")
        self.assertEqual((report["completed"], report["images"], report["failed"]), (60, 60, 0))
        self.assertEqual(len(self.run_dir.records()), 60)
        self.assertConserved(report)

    def annotated(self):
        """Boxes in each image; the model's detections at random."""
        boxes = self.on.root / "boxes.json"
        names = sorted(self.labels)
        models.write_json(boxes, images=[{"id": n, "file_name": name} for n, name in enumerate(names)],
                          categories=[{"id": n, "name": name} for n, name in enumerate(CLASSES)],
                          annotations=[{"id": n, "image_id": n, "category_id": n % 3, "bbox": [0, 0, 48, 50], "area": 2400,
                                        "iscrowd": 0} for n in range(len(names))])
        return ["--dataset", "images", "--dataset-param", f"path={self.images},annotations={boxes}", "--idle", "0",
                "--model", self.yolo, "--param", "confidence=0.001"]

    def test_sweep_of_sizes_with_its_quality(self):
        sweep = ["sweep", "--workload", "yolo", "--knob", "size=64,100", "--output-dir", self.out, "--json", "--",
                 *self.annotated()]
        done = ipw(self.on, *sweep)
        self.assertEqual(done.returncode, 1, done.stderr)  # the stride is 8
        self.assertIn("failed with exit status 2: ipw profile: ", done.stderr)
        self.assertIn("size=100: expected a multiple of the model's stride, 8", done.stderr)
        [path] = self.out.glob("sweep_*")
        rows = list(csv.DictReader(io.StringIO(ipw(None, "export", path, "--to", "csv").stdout)))
        self.assertEqual(sorted(row["size"] for row in rows), ["100", "64"])
        done = ipw(None, "optimize", path, "--quality", "map_50", "--min-quality", "95", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = ipw(None, "optimize", path, "--quality", "wer", "--min-quality", "95")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertIn("map_50", done.stderr)

    @unittest.skipIf(SANITIZED, "the commands that draw are tested elsewhere")
    def test_a_study_ends_with_its_page_and_plot(self):
        done = ipw(self.on, "sweep", "--preset", "yolo-sizes", "--knob", f"model={self.yolo}", "--knob",
                   "size=64,128", "--output-dir", self.out, "--", *self.annotated()[:-4])
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn("yolo-sizes: which size", done.stderr)
        self.assertIn("report.html", done.stdout)
        [path] = self.out.glob("sweep_*")
        self.assertTrue((path / "report.html").exists())

    def test_a_grader_of_other_answers(self):
        report = self.profile("vit", self.vit, self.images, "--grader", "map")
        for entry in report["quality"]:
            self.assertIsNone(entry["value"])
            self.assertIn("the expected answer", entry["reason"])
        self.assertEqual(report["ungraded"], 8)

    @unittest.skipIf(SANITIZED, "other paths than those of a profile are tested without")
    def test_pairs_and_files_of_runs(self):
        arguments = ["profile", "--workload", "yolo", *self.annotated(), "--output-dir", self.out, "--json", "--against",
                     "param.size=128", "--repeat-runs", "2"]
        done = ipw(self.on, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        [compared] = json.loads(done.stdout)["comparisons"]
        names = {name for name, metric in compared["metrics"].items() if metric["baseline"]["value"] is not None}
        self.assertLessEqual({"energy_per_image", "map_50", "map_50_95"}, names)
        self.assertFalse(any("token" in name for name in names), names)
        [run, *_] = sorted(self.out.glob("*_b_r1"))
        rows = list(csv.DictReader(io.StringIO(ipw(None, "export", run, "--to", "csv").stdout)))
        self.assertEqual([row["images"] for row in rows], ["1"] * 8)
        self.assertEqual({row["output_tokens"] for row in rows}, {""})
        self.assertEqual(ipw(None, "report", run).returncode, 0)


if __name__ == "__main__":
    unittest.main()
