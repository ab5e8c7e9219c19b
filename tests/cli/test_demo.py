#!/usr/bin/env python3
# test: serial
"""ipw demo: the shipped models compared, and its output without an inference engine."""

import json
import re
import struct
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Intel, Machine, Modeled  # noqa: E402
from program import MachineTest, ipw, main_parallel  # noqa: E402

QUERIES = 30
FAMILY = [f"ipw-{size}-{kind}" for size in ("1m", "6m") for kind in ("f16", "q4_0", "q8_0")]


def dominates(a, b):
    """True if a is at least as accurate as b with no more energy, and better in one of the two."""
    better = a["accuracy"] > b["accuracy"] or a["joules_per_query"] < b["joules_per_query"]
    return (better and a["accuracy"] >= b["accuracy"]
            and a["joules_per_query"] <= b["joules_per_query"])


def per_query(runs, model):
    """Mean joules of a model's queries, from the records."""
    records = next(runs.glob(f"profile_*_{model.replace('-', '_')}_*")) / "records.jsonl"
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    joules = [line["model_metrics"][model]["energy_metrics"]["cpu_per_query_joules"]
              for line in lines if line["kind"] == "energy"]
    return sum(joules) / len(joules)


class DemoTest(MachineTest):
    def demo(self, machine, *options, **more):
        runs = machine.root / "runs"
        return ipw(machine, "demo", "--idle", "0.3", "--output-dir", runs, *options, **more)

    def family(self, machine, *options):
        done = self.demo(machine, "--json", "--queries", QUERIES, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["models"], done


class Family(DemoTest):
    @classmethod
    def setUpClass(cls):
        done = ipw(None, "list", "clients", "--json")
        client = next(c for c in json.loads(done.stdout)["clients"] if c["name"] == "llama")
        if not client["available"]:
            raise unittest.SkipTest(f"no model can run here: {client['missing']}")

    def test_measured_family(self):
        some = ["ipw-1m-f16", "ipw-1m-q4_0", "ipw-6m-q8_0"]
        models, done = self.family(self.machine(Intel, 40, 25), "--model", ",".join(some))
        self.assertEqual(sorted(model["model"] for model in models), some)
        for model in models:
            self.assertIsNone(model["error"])
            self.assertEqual(model["completed"], QUERIES)
            self.assertGreater(model["accuracy"], 0.5, model)  # guessing is far below
            self.assertLess(model["accuracy"], 1, model)
            low, high = model["accuracy_interval_95"]
            self.assertTrue(low < model["accuracy"] < high)
            self.assertEqual(model["energy"]["method"], "counter")
            self.assertGreater(model["joules_per_query"], 0)
            self.assertGreater(model["joules_per_query_plus_minus"], 0)
            self.assertGreater(model["ipj"], 0)
            self.assertEqual(model["on_frontier"],
                             not any(dominates(other, model) for other in models))
            summary = json.loads((Path(model["output_dir"]) / "summary.json").read_text())
            self.assertEqual(summary["ipw"]["accuracy"], model["accuracy"])
        self.assertTrue(any(model["on_frontier"] for model in models))
        self.assertIn("Pareto-optimal", done.stderr)
        self.assertNotIn("~", done.stderr)

    def test_estimated_energy_is_labeled(self):
        machine = self.machine(Modeled)
        models, done = self.family(machine, "--model", "ipw-1m-f16,ipw-1m-q8_0")
        self.assertEqual([model["energy"]["method"] for model in models], ["estimated"] * 2)
        self.assertEqual(done.stderr.count("estimated from CPU utilization, not measured"), 1)
        done = self.demo(machine, "--queries", 5, "--model", "ipw-1m-f16", "--require-energy")
        self.assertEqual(done.returncode, 3)
        self.assertIn("~", done.stdout)

    def test_conclusion_comes_first_in_80_columns(self):
        machine = self.machine(Modeled)
        done = self.demo(machine, "--queries", 12, "--workload", "text")
        self.assertEqual(done.returncode, 0, done.stderr)
        models = [json.loads(path.read_text()) for path in (machine.root / "runs").glob("*/summary.json")]
        # Two precisions of one size may be equally accurate: the energy of the queries decides, not that of the run,
        # which includes pauses between queries.
        each = {model["model"]: per_query(machine.root / "runs", model["model"]) for model in models}
        best = max(models, key=lambda m: (m["ipw"]["accuracy"], -each[m["model"]]))
        least = min(models, key=lambda m: each[m["model"]])
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].startswith(f" {best['model']}: most accurate"), done.stdout)
        self.assertIn(f" {least['model']}: cheapest" if least is not best else "; and cheapest",
                      " ".join(" ".join(lines[:4]).split()))
        lines = lines[:lines.index(next(line for line in lines if "ipw estimate" in line))]
        table = [line for line in lines if re.match(r" [ *] (model|ipw-[16]m-)", line)]
        self.assertEqual(len(table), 7, done.stdout)
        self.assertRegex(table[0], r"J/query +J/token +IPJ +IPW +tok/s$")
        # Paths may be longer.
        self.assertLessEqual(max(len(line) for line in lines if "/ipw-" not in line), 80, done.stdout)
        for line in table[1:]:
            of = json.loads((machine.root / "runs").glob(f"*{line[3:].split()[0].replace('-', '_')}_*/summary.json").__next__()
                            .read_text())["ipw"]["joules_per_output_token"]
            shown = re.search(r"J +~?([\d.]+) ([munµ]?)J", line)
            scale = {"": 1, "m": 1e-3, "µ": 1e-6, "u": 1e-6, "n": 1e-9}[shown.group(2)]
            # two significant digits
            self.assertAlmostEqual(float(shown.group(1)) * scale / of, 1, delta=0.06, msg=line)
        # The names are accepted by --model.
        self.assertEqual(sorted(line[3:].split()[0] for line in table[1:]), FAMILY)
        self.assertEqual(done.stdout.count("estimated from CPU utilization"), 1)
        self.assertLessEqual(done.stderr.count("estimated by a model"), 1)

    def test_printed_paths_exist(self):
        done = self.demo(self.machine(Modeled), "--queries", 5, "--model",
                         "ipw-1m-f16,ipw-1m-q8_0")
        self.assertEqual(done.returncode, 0, done.stderr)
        paths = [Path(line.strip()) for line in done.stdout.splitlines()
                 if line.strip().startswith("/") and " " not in line.strip()]
        self.assertGreaterEqual(len(paths), 2)
        for path in paths:
            self.assertTrue(path.exists(), path)
        if "no page" not in done.stderr:
            self.assertIn("report.html", [path.name for path in paths])

    def test_energy_is_unknown_without_sensor(self):
        models, done = self.family(self.machine(Machine), "--model", "ipw-1m-f16")
        self.assertIsNone(models[0]["joules_per_query"])
        self.assertIsNone(models[0]["ipw"])
        self.assertFalse(models[0]["on_frontier"])
        self.assertGreater(models[0]["accuracy"], 0.5)
        self.assertIn("energy   unknown", done.stderr)

    def test_answers_are_reproducible(self):
        machine = self.machine(Machine)
        answers = []
        for _ in range(2):
            models, _ = self.family(machine, "--model", "ipw-1m-q4_0")
            records = Path(models[0]["output_dir"]) / "records.jsonl"
            lines = [json.loads(line) for line in records.read_text().splitlines()]
            answers.append([line["model_answers"] for line in lines if line["kind"] == "query"])
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(len(answers[0]), QUERIES)

    def test_failing_model_does_not_stop_others(self):
        machine = self.machine(Machine)
        broken = machine.put("/broken.gguf", "GGUF and nothing more")
        models, done = self.family(machine, "--model", f"{broken},ipw-1m-f16")
        self.assertIn("broken.gguf", models[0]["error"])
        self.assertIsNone(models[0]["accuracy"])
        self.assertEqual(models[1]["completed"], QUERIES)
        self.assertIn("failed", done.stderr)

    def test_too_many_failed_queries_fail(self):
        """With the end-of-sequence token set to the digit 2, answers that start with it are empty."""
        machine = self.machine(Machine)
        key = b"tokenizer.ggml.eos_token_id" + struct.pack("<I", 4)
        model = (Path(__file__).parents[2] / "models/ipw-1m-f16.gguf").read_bytes()
        at = model.index(key) + len(key)
        mute = machine.root / "mute.gguf"
        mute.write_bytes(model[:at] + struct.pack("<I", 21) + model[at + 4:])
        done = self.demo(machine, "--model", f"ipw-1m-f16,{mute}", "--queries", QUERIES, "-q")
        self.assertEqual(done.returncode, 1, done.stderr)
        found = re.search(rf"mute.gguf: (\d+) of {QUERIES} queries failed, more than --max-failed 5% allows", done.stderr)
        self.assertTrue(found, done.stderr)
        done = self.demo(machine, "--model", mute, "--queries", QUERIES, "-q", "--max-failed", found[1])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.demo(machine, "--max-failed", "101%").returncode, 2)

    def test_rejects_unknown_models(self):
        machine = self.machine(Machine)
        done = self.demo(machine, "--model", "ipw-1m-f61")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ipw-1m-f16", done.stderr)  # the closest name
        self.assertEqual(self.demo(machine, "--model", ",").returncode, 2)
        self.assertEqual(self.demo(machine, "--queries", "0").returncode, 2)


class Workloads(DemoTest):
    def test_models_of_a_workload_are_compared_with_each_other(self):
        machine = self.machine(Intel, 40, 25)
        done = self.demo(machine, "--json", "--queries", 40, "--workload", "resnet,vit,yolo")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        models = {model["model"]: model for model in result["models"]}
        self.assertEqual(set(models), {"scenes-resnet", "scenes-vit", "scenes-yolo-n", "scenes-yolo-s", "scenes-yolo-m"})
        for name, model in models.items():
            self.assertIsNone(model["error"], name)
            self.assertEqual((model["unit"], model["completed"]), ("image", 40))
            self.assertGreater(model["joules_per_unit"], 0)
            self.assertGreater(model["quality"]["value"], 0.5, name)  # guessing is at 0.1
            self.assertEqual(model["quality"]["name"], "map_50" if "yolo" in name else "top_1")
            self.assertGreater(model["predicted"]["joules_per_unit"], 0, name)
        self.assertTrue(result["predicted_on"])
        # A frontier of each data set: classifiers and detectors are no alternatives.
        for names in (["scenes-resnet", "scenes-vit"], [name for name in models if "yolo" in name]):
            self.assertTrue(any(models[name]["on_frontier"] for name in names), names)

    def test_table_names_quality_unit_and_estimate(self):
        done = self.demo(self.machine(Modeled), "--queries", 3, "--workload", "lstm,whisper")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"topics-lstm +lstm +\S.* top_1 .* query\b")
        self.assertRegex(done.stdout, r"digits-whisper +whisper +\S.* wer .* second of audio\b")
        self.assertIn("the same work as `ipw estimate` has it", done.stdout)
        self.assertLessEqual(max(len(line) for line in done.stdout.splitlines() if "/" not in line), 80)

    def test_unknown_workloads_are_refused(self):
        done = self.demo(self.machine(Machine), "--workload", "yollo")
        self.assertEqual(done.returncode, 2)
        self.assertIn("yolo", done.stderr)


class WithoutEngine(DemoTest):
    def test_runs_what_is_left_without_one_engine(self):
        done = self.demo(self.machine(Modeled), "--queries", 3, "--workload", "text,lstm", env={"IPW_LLAMA_LIB": "/nowhere"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ipw demo: no text: ", done.stderr)
        self.assertIn("topics-lstm", done.stdout)

    def test_shows_sensors_without_engine(self):
        done = self.demo(self.machine(Modeled), env={"IPW_LLAMA_LIB": "/nowhere", "IPW_ONNXRUNTIME_LIB": "/nowhere"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no model can run here", done.stderr)
        self.assertIn("$ ipw doctor", done.stdout)
        self.assertIn("energy of", done.stderr)


if __name__ == "__main__":
    main_parallel(jobs=2)
