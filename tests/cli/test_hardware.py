#!/usr/bin/env python3
"""The hardware catalog: output of `ipw list hardware`, entries that the build rejects, and comparison with vendors'
figures."""

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import TIMEOUT_S, ipw  # noqa: E402

SOURCE = Path(os.environ.get("IPW_SOURCE", Path(__file__).parents[2]))
BUILD = Path(os.environ.get("IPW_BUILD", SOURCE / "build"))
ALL_FILES = sorted((SOURCE / "data/hardware").glob("*.json"), key=lambda path: path.stem)
LISTS = [path for path in ALL_FILES if "kind" in json.loads(path.read_text())]  # of peaks or power only
FILES = [path for path in ALL_FILES if path not in LISTS]
CHECKER = BUILD / "data/check_catalog"
EVIDENCE = {"measured", "fitted", "published", "derived", "assumed"}
CROSSCHECK = Path(os.environ.get("IPW_SHARED", SOURCE.parent / "shared")) / \
    "data/hardware/hardware-crosscheck.csv"


def figures(value, path=""):
    """Every figure of an entry, with its path."""
    if isinstance(value, dict) and "value" in value:
        yield path, value
    elif isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from figures(inner, f"{path}.{key}")


class Listed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = ipw(None, "list", "hardware")
        cls.done = done
        cls.text = done.stdout

    def test_one_line_per_device(self):
        self.assertEqual((self.done.returncode, self.done.stderr), (0, ""))
        lines = self.text.splitlines()
        self.assertEqual(len(lines), 2 + len(FILES))
        self.assertEqual([line.split()[0] for line in lines[2:]], [path.stem for path in FILES])
        heads = re.split(r"\s{2,}", lines[1].strip())
        self.assertEqual(heads, ["id", "name", "class", "TFLOPS", "dtype", "GB/s", "memory", "limit W",
                                 "idle W", "evidence"])
        h200 = next(line for line in lines if line.startswith("  h200 "))
        self.assertRegex(h200, r"NVIDIA H200 SXM 141GB +gpu +989\.4 +bf16 +4800 +139\.8 GiB +700 ")

    def test_json_equals_files(self):
        done = ipw(None, "list", "hardware", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        listed = json.loads(done.stdout)
        self.assertEqual(list(listed), ["hardware"])
        self.assertEqual(listed["hardware"], [json.loads(path.read_text()) for path in FILES])

    def test_list_all_includes_hardware(self):
        text = ipw(None, "list", "all").stdout
        self.assertIn("hardware: ", text)
        for path in FILES:
            self.assertRegex(text, rf"(?m)(^|\s){re.escape(path.stem)}(\s|$)")
        self.assertEqual(len(json.loads(ipw(None, "list", "--json").stdout)["hardware"]), len(FILES))

    def test_device_details_have_sources(self):
        done = ipw(None, "list", "hardware", "NVIDIA H200")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^h200: NVIDIA H200 SXM 141GB, gpu of NVIDIA, 2024\n")
        self.assertRegex(done.stdout, r"matrix bf16 peak +989\.4 TFLOPS +published +NVIDIA H200")
        self.assertRegex(done.stdout, r"idle +123\.2 ± 5\.0 W +measured ")
        entry = json.loads((SOURCE / "data/hardware/h200.json").read_text())
        for path, figure in figures(entry):
            self.assertIn(figure["source"], done.stdout, path)

    def test_operating_point_of_device(self):
        done = ipw(None, "list", "hardware", "jetson-orin-agx@30W", "l4")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?m)^jetson-orin-agx-64gb@30W: ")
        self.assertRegex(done.stdout, r"limit +30 W +published")
        self.assertRegex(done.stdout, r"(?m)^l4: ")
        listed = json.loads(ipw(None, "list", "hardware", "jetson-orin-agx@30W", "--json").stdout)
        self.assertEqual([row["id"] for row in listed["hardware"]], ["jetson-orin-agx-64gb"])

    def test_misspelled_names_get_suggestions(self):
        for words, hint in ((["h2OO"], "did you mean h200?"), (["h20"], "see `ipw list hardware`"),
                            (["h200", "abacus"], "unknown hardware"), (["jetson-orin-nx@x"], "it has "), (["l4@x"], "no operating points")):
            done = ipw(None, "list", "hardware", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertIn(hint, done.stderr)
        done = ipw(None, "list", "clients", "h200")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'h200'", done.stderr)


class Files(unittest.TestCase):
    """Hardware files of the user whose values have other types than the keys require."""

    def test_values_of_another_type_are_errors(self):
        for content, problem in (
                ([1], "must be an object"),
                ("x", "must be an object"),
                ({"power": [1]}, "power: must be an object"),
                ({"matrix": {"bf16": [1]}}, "matrix.bf16: must be an object"),
                ({"memories": {}}, "memories: must be an array"),
                ({"timings": 7}, "timings: must be an object"),
                ({"id": [1]}, "id: must be one line of text"),
                ({"year": "2024"}, "year: must be a year")):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "x.json"
                whole = content
                if isinstance(content, dict):
                    whole = json.loads((SOURCE / "data/hardware/h200.json").read_text()) | content
                path.write_text(json.dumps(whole))
                done = ipw(None, "estimate", "--model", "llama-3.2-1b", "--hardware-file", path)
                self.assertEqual((done.returncode, done.stdout), (1, ""), (content, done.stderr))
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(f"x.json: {problem}", done.stderr)

    def test_legacy_values_of_another_type_are_errors(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.json"
            path.write_text(json.dumps({"id": "x", "legacy": {"flops": [1]}}))
            done = ipw(None, "estimate", "--model", "llama-3.2-1b", "--model-compat", "--hardware-file", path)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertIn("x.json: legacy.flops: must be an object", done.stderr)


class Entries(unittest.TestCase):
    """The catalog files, read by Python's JSON parser."""

    def test_every_figure_has_evidence_and_source(self):
        self.assertGreaterEqual(len(FILES), 50)
        for path in FILES:
            entry = json.loads(path.read_text())
            self.assertEqual(entry["id"], path.stem)
            for where, figure in figures(entry):
                self.assertIn(figure["evidence"], EVIDENCE, f"{path.name} {where}")
                self.assertGreaterEqual(len(figure["source"]), 5, f"{path.name} {where}")
                self.assertGreater(figure["value"], 0, f"{path.name} {where}")

    def test_rows_of_lists_have_evidence_and_source(self):
        rows = [row for path in LISTS for key in ("devices", "processors")
                for row in json.loads(path.read_text()).get(key, [])]
        self.assertGreaterEqual(len(rows), 300)
        for row in rows:
            self.assertIn(row["evidence"], EVIDENCE, row)
            self.assertGreaterEqual(len(row["source"]), 5, row)
            self.assertTrue(row["match"], row)

    def test_name_patterns_are_unique(self):
        """A device name that matches two rows would get the figures of either."""
        seen = {}
        for path in ALL_FILES:
            entry = json.loads(path.read_text())
            gpus = [entry, *entry.get("devices", [])]
            cpus = [entry.get("processor", {}), *entry.get("processors", [])]
            for kind, parts in (("gpu", gpus), ("cpu", cpus)):
                for pattern in (name.lower() for part in parts for name in part.get("match", [])):
                    self.assertNotIn((kind, pattern), seen, path)
                    seen[kind, pattern] = path

    def test_published_figures_state_whether_source_was_read(self):
        """The title of a vendor document does not show that it was read."""
        for path in FILES:
            for where, figure in figures(json.loads(path.read_text())):
                if figure["evidence"] == "published":
                    self.assertRegex(figure["source"], r"(, read \d{4}-\d\d-\d\d|; from knowledge)$",
                                     f"{path.name} {where}")
        for path in LISTS:
            for row in json.loads(path.read_text()).get("devices", []):
                if row["evidence"] == "published":
                    self.assertRegex(row["source"], r"(, read \d{4}-\d\d-\d\d|; from knowledge)$", row)

    def test_no_energy_is_labeled_published(self):
        """No vendor publishes joules per operation."""
        for path in FILES:
            for where, figure in figures(json.loads(path.read_text())):
                if where.endswith(".energy"):
                    self.assertNotEqual(figure["evidence"], "published", f"{path.name} {where}")

    def test_common_devices_are_in_catalog(self):
        names = set()
        for path in FILES:
            entry = json.loads(path.read_text())
            names |= {entry["id"], *map(str.lower, entry.get("aliases", []))}
        for wanted in """v100 a100 a100-pcie-40gb a100-pcie-80gb a100-sxm-40gb a100-sxm-80gb h100
                h100-pcie h100-sxm h100-nvl h200 b200 l4 l40s t4 rtx-3090 rtx-4090 mi250x mi300x
                jetson-orin-nano jetson-orin-nx jetson-orin-agx tpu-v4 tpu-v5e tpu-v5p
                coral-edge-tpu hailo-8 xeon-8180 xeon-8280 xeon-8380 xeon-8480 xeon-8490h xeon-8592
                xeon-6980p epyc-7742 epyc-7763 epyc-9654 epyc-9754 epyc-9965 i7-12700k altra-q80-30
                altra-max-m128-30 ampereone-192 graviton3 grace apple-m2 apple-m3 apple-m4""".split():
            self.assertIn(wanted, names)


@unittest.skipUnless(CHECKER.exists(), "this build does not check the catalogue")
class Build(unittest.TestCase):
    """How the build handles invalid entries."""

    def check(self, **files):
        with tempfile.TemporaryDirectory(prefix="ipw-hardware-") as folder:
            for name, entry in files.items():
                Path(folder, f"{name}.json").write_text(json.dumps(entry))
            done = subprocess.run([CHECKER, *sorted(Path(folder).iterdir())], capture_output=True,
                                  text=True, timeout=TIMEOUT_S)
        return done.returncode, done.stderr.replace(folder, "")

    def entry(self, name="t4"):
        return json.loads((SOURCE / f"data/hardware/{name}.json").read_text())

    def test_catalog_passes_check(self):
        done = subprocess.run([CHECKER, *FILES], capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_valid_entry_passes_check(self):
        self.assertEqual(self.check(t4=self.entry()), (0, ""))

    def test_invalid_entries_fail(self):
        def energy(entry):  # 20 pJ a FLOP at the peak of fp16: 1.3 kW on a card of 70 W
            entry["matrix"]["fp16"]["energy"]["value"] = 20

        def sparse(entry):
            entry["matrix"]["fp16"]["peak"]["value"] = 260

        def source(entry):
            del entry["power"]["idle"]["source"]

        def idle(entry):
            entry["power"]["idle"]["value"] = 71

        for change, words in ((energy, "above 1.5 x the limit of 70 W"), (sparse, "which is wider"),
                              (source, "power.idle.source: is missing"),
                              (idle, "power.idle: 71 W is not below")):
            entry = self.entry()
            change(entry)
            code, text = self.check(t4=entry)
            self.assertEqual(code, 1, words)
            self.assertIn(words, text)
            self.assertIn("/t4.json", text)

    def test_names_must_be_unique(self):
        code, text = self.check(t5=self.entry())
        self.assertEqual(code, 1)
        self.assertIn("its id is not its name", text)
        code, text = self.check(t4=self.entry(), l4=self.entry("l4") | {"aliases": ["tesla t4"]})
        self.assertEqual(code, 1)
        self.assertIn("alias 'tesla t4' is a name of t4 as well", text)


@unittest.skipUnless(CHECKER.exists(), "this build does not check the catalogue")
class Lists(unittest.TestCase):
    """Files of devices or processors without estimates, and of models."""

    def check(self, name, entry, folder="hardware"):
        with tempfile.TemporaryDirectory(prefix="ipw-catalog-") as root:
            path = Path(root, folder, f"{name}.json")
            path.parent.mkdir()
            path.write_text(entry if isinstance(entry, str) else json.dumps(entry))
            done = subprocess.run([CHECKER, path], capture_output=True, text=True, timeout=TIMEOUT_S)
        return done.returncode, done.stderr.replace(root, "")

    def test_lists_of_the_catalog_pass(self):
        files = [*LISTS, *(SOURCE / "data/models").glob("*.json")]
        done = subprocess.run([CHECKER, *files], capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def peaks(self, **changes):
        row = {"match": ["A B"], "precision": "bf16", "tflops": 1.5, "gb_per_s": 2, "evidence": "published",
               "source": "a \\ \"sheet\"; 3"}
        return {"kind": "peak-only", "id": "peaks-x", "devices": [row | changes]}

    def power(self, **changes):
        row = {"match": ["A 1"], "watts": 65, "cores": 4, "threads": 8, "evidence": "published", "source": "TDP"}
        core = {"implementer": "0x41", "part": "0xd03", "name": "A"}
        return {"kind": "power-only", "id": "power-x", "processors": [row], "cores": [core | changes]}

    def models(self, **changes):
        return {"id": "x", "models": [{"names": ["a"], "billions": 1, "source": "counted"} | changes]}

    def accuracies(self, **changes):
        row = {"benchmark": "imagenet-top-1", "source": "README", "percent": {"o/a": 76.1}}
        return {"id": "x", "accuracies": [row | changes]}

    def test_valid_lists_pass(self):
        self.assertEqual(self.check("peaks-x", self.peaks()), (0, ""))
        self.assertEqual(self.check("power-x", self.power()), (0, ""))
        self.assertEqual(self.check("x", self.models(), "models"), (0, ""))
        self.assertEqual(self.check("x", self.accuracies(note="of v1"), "models"), (0, ""))

    def test_invalid_lists_fail_the_build(self):
        lacking = self.peaks()
        del lacking["devices"][0]["source"]
        for name, entry, words in (
                ("peaks-x", self.peaks(tflop=3), "devices.0.tflop: unknown key: did you mean 'tflops'?"),
                ("peaks-x", self.peaks(tflops="3"), "devices.0.tflops: must be a number above 0"),
                ("peaks-x", self.peaks() | {"id": "peaks-y"}, "its id is not its name"),
                ("peaks-x", self.peaks() | {"kind": "peek-only"}, "devices: unknown key"),
                ("peaks-x", lacking, "devices.0.source: is missing"),
                ("peaks-x", "{", "peaks-x.json: not JSON at byte"),
                ("power-x", self.power(implementer="41"), "cores.0.implementer: must be a hexadecimal number"),
                ("power-x", self.power(watts_per_thread=-1), "cores.0.watts_per_thread: must be a number above 0"),
                ("x", self.models(source=None), "models.0: billions: without a source"),
                ("x", self.models(shape={"summary": "s"}), "models.0.shape.source: is missing"),
                ("x", self.models(names=[]), "models.0.names: "),
                ("x", {"id": "x"}, "models: is missing"),
                ("x", self.accuracies(benchmark="mmlu"), "accuracies.0.benchmark: 'mmlu' is not listed"),
                ("x", self.accuracies(source=None), "accuracies.0.source: "),
                ("x", self.accuracies(percent={}), "accuracies.0.percent: has no models"),
                ("x", self.accuracies(percent={"o/a": 101}), "accuracies.0.percent.o/a: is not between 0 and 100")):
            with self.subTest(words):
                code, text = self.check(name, entry, "hardware" if "-" in name else "models")
                self.assertEqual(code, 1, words)
                self.assertIn(words, text)


def numbers(text):
    return [float(found) for found in re.findall(r"\d+(?:\.\d+)?", text)]


# (device, field) of the vendors' table: (id, path, unit, index of the number in the cell) in the catalog.
MATRIX, VECTOR = "matrix.{}.peak", "vector.{}.peak"
MAIN = "memories.-1."
VENDOR = {
    ("V100 SXM 32GB", "FP64 TFLOPS"): [("v100-sxm2-32gb", VECTOR.format("fp64"), 0)],
    ("V100 SXM 32GB", "FP16 tensor TFLOPS"): [("v100-sxm2-32gb", MATRIX.format("fp16"), 0)],
    ("V100 SXM 32GB", "TDP W"): [("v100-sxm2-32gb", "power.limit", 0)],
    ("A100 SXM4 80GB", "FP64 TFLOPS"): [("a100-sxm-80gb", VECTOR.format("fp64"), 0),
                                        ("a100-sxm-80gb", MATRIX.format("fp64"), 1)],
    ("A100 SXM4 80GB", "FP32 TFLOPS"): [("a100-sxm-80gb", VECTOR.format("fp32"), 0)],
    ("A100 SXM4 80GB", "FP16 dense TFLOPS"): [("a100-sxm-80gb", MATRIX.format("fp16"), 0)],
    ("A100 SXM4 80GB", "bandwidth GB/s"): [("a100-sxm-80gb", MAIN + "bandwidth", 0)],
    ("H100 SXM5 80GB", "FP64 TFLOPS"): [("h100-sxm", VECTOR.format("fp64"), 0),
                                        ("h100-sxm", MATRIX.format("fp64"), 1)],
    ("H100 SXM5 80GB", "FP16/BF16 dense TFLOPS"): [("h100-sxm", MATRIX.format("fp16"), 0),
                                                   ("h100-sxm", MATRIX.format("bf16"), 0)],
    ("H100 SXM5 80GB", "FP8 dense TFLOPS"): [("h100-sxm", MATRIX.format("fp8"), 0)],
    ("H100 SXM5 80GB", "bandwidth GB/s"): [("h100-sxm", MAIN + "bandwidth", 0)],
    ("H100 PCIe 80GB", "FP16 dense TFLOPS"): [("h100-pcie", MATRIX.format("fp16"), 0)],
    ("H200 SXM 141GB", "all"): [("h200", MATRIX.format("fp16"), 0), ("h200", MAIN + "bandwidth", 1),
                                ("h200", "power.limit", 3)],
    ("L4 24GB", "all"): [("l4", VECTOR.format("fp32"), 1), ("l4", MATRIX.format("fp16"), 3),
                         ("l4", MATRIX.format("int8"), 6), ("l4", MAIN + "bandwidth", 8),
                         ("l4", "power.limit", 9)],
    ("T4 16GB", "FP16 TFLOPS"): [("t4", MATRIX.format("fp16"), 0)],
    ("T4 16GB", "INT8 TOPS"): [("t4", MATRIX.format("int8"), 0)],
    ("T4 16GB", "INT4 TOPS"): [("t4", MATRIX.format("int4"), 0)],
    ("Jetson AGX Orin 64GB", "FP32 TFLOPS"): [("jetson-orin-agx-64gb", VECTOR.format("fp32"), 0)],
    ("Jetson AGX Orin 64GB", "INT8 dense TOPS GPU"): [
        ("jetson-orin-agx-64gb", MATRIX.format("int8"), 0)],
    ("Jetson Orin Nano 8GB", "bandwidth GB/s"): [
        ("jetson-orin-nano-8gb", MAIN + "bandwidth", 0),
        ("jetson-orin-nano-super-8gb", MAIN + "bandwidth", 1)],
    ("Jetson Orin Nano 8GB", "INT8 TOPS"): [
        ("jetson-orin-nano-8gb", MATRIX.format("int8"), 0),
        ("jetson-orin-nano-super-8gb", MATRIX.format("int8"), 2)],
    ("TPU v4", "BF16 TFLOPS"): [("tpu-v4", MATRIX.format("bf16"), 0)],
    ("TPU v4", "power W"): [("tpu-v4", "power.idle", 0), ("tpu-v4", "power.limit", 2)],
    ("TPU v5p", "BF16 TFLOPS / BW / HBM"): [("tpu-v5p", MATRIX.format("bf16"), 0),
                                            ("tpu-v5p", MAIN + "bandwidth", 1),
                                            ("tpu-v5p", MAIN + "capacity", 2)],
    ("Xeon 8490H", "FP32 TFLOPS"): [("xeon-8490h", VECTOR.format("fp32"), 0)],
    ("Xeon 8592+", "bandwidth GB/s"): [("xeon-8592", MAIN + "bandwidth", 0)],
    ("Granite Rapids 128c", "bandwidth GB/s"): [("xeon-6980p", MAIN + "bandwidth", 0)],
    ("EPYC 9654", "FP32 TFLOPS"): [("epyc-9654", VECTOR.format("fp32"), 0)],
    ("EPYC 9654", "LLC MB"): [("epyc-9654", "memories.2.capacity", 0)],
    ("AmpereOne 192", "bandwidth GB/s"): [("ampereone-192", MAIN + "bandwidth", 0)],
    ("Altra Max M128-30", "bandwidth GB/s"): [("altra-max-m128-30", MAIN + "bandwidth", 0)],
    ("Apple M4 Max", "bandwidth GB/s"): [("apple-m4-max", MAIN + "bandwidth", 0)],
    ("Coral Edge TPU", "INT8 TOPS / W / SRAM"): [("coral-edge-tpu", MATRIX.format("int8"), 0),
                                                 ("coral-edge-tpu", "power.limit", 1),
                                                 ("coral-edge-tpu", "memories.0.capacity", 2)],
}
LEFT_OUT = {("H100 SXM5 80GB", "idle W"),  # recalled figure of another power state
            ("TPU v3", "BF16 TFLOPS / HBM")}  # not in the catalog


@unittest.skipUnless(CROSSCHECK.exists(), f"no {CROSSCHECK.name} with vendors' values")
class Vendors(unittest.TestCase):
    def value(self, device, path):
        value = json.loads((SOURCE / f"data/hardware/{device}.json").read_text())
        for key in path.split("."):
            value = value[int(key)] if isinstance(value, list) else value[key]
        return value["value"]

    def test_figures_equal_vendors(self):
        with CROSSCHECK.open() as file:
            rows = {(row["device"], row["field"]): row["vendor_value"]
                    for row in csv.DictReader(file)}
        self.assertEqual(set(rows), set(VENDOR) | LEFT_OUT)
        for row, places in VENDOR.items():
            for device, path, which in places:
                vendor = numbers(rows[row])[which]
                # To the digits of the cell: derived figures are rounded there.
                self.assertAlmostEqual(self.value(device, path) / vendor, 1, delta=0.013,
                                       msg=f"{device} {path}: {rows[row]}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
