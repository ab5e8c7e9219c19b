#!/usr/bin/env python3
"""ipw analyze, plot and report of results of `ipw layers -o`: a file, and layers*.json in a directory with or without a
run."""

import json
import math
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from plots import run_directory  # noqa: E402
from program import NAN, ipw  # noqa: E402


LENGTHS = (32, 128, 512)
CALIBRATION = 0.03


def measured(model="a/tiny-q4.gguf", parameters=1e8, bits=4.5, scale=1.0, label="H100", **more):
    """A result of one model; prefill joules per token grow with the prompt length to the power of 0.25."""
    settings = []
    for n in LENGTHS:
        for phase, tokens, joules in (("prefill", n, scale * 0.01 * n ** 1.25),
                                      ("decode", 16, scale * 16 * 0.2)):
            settings.append({"phase": phase, "prompt_tokens": n, "tokens": tokens, "time_s": joules / 50,
                             "tokens_per_s": tokens * 50 / joules, "energy_j": joules,
                             "plus_minus": 0.05 * joules})
    parts = {("prefill", "qkv"): 3.0, ("prefill", "ffn"): 5.0, ("decode", "qkv"): 1.0,
             ("decode", "ffn"): 2.0}
    total = sum(parts.values())
    components = [{"name": name, "phase": phase, "time_s": joules / 60, "energy_j": joules,
                   "plus_minus": math.hypot(0.1, CALIBRATION * joules), "share": joules / total,
                   "energy_per_token_j": joules / 100, "method": "nnls", "power_w": 60.0, "group": 0,
                   "joules_per_gflop": 0.5, "joules_per_gb": None}
                  for (phase, name), joules in parts.items()]
    return {"model": model, "parameters": parameters, "bits_per_weight": bits, "layer_count": 2,
            "method": "nnls", "attribution": "nnls", "granularity": "component", "rounds": 3,
            "interrupted": False, "overhead_pct": 1.0, "closure": 0.99, "closure_pass": True,
            "null_test": {"difference_pct": 0.4, "plus_minus": 0.5, "pass": True},
            "energy": {"joules": 13.0, "plus_minus": math.hypot(0.1, CALIBRATION * 13),
                       "plus_minus_statistical": 0.1, "method": "counter"},
            "components_j": total, "idle_j": 2.0, "components": components, "settings": settings,
            "layers": [], "windows": [], "host": {"hardware_label": label}, **more}


class LayersTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-analyze-layers-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)

    def put(self, name, value):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    def analyze(self, *words, code=0):
        self.done = ipw(None, "analyze", *words)
        self.assertEqual(self.done.returncode, code, self.done.stdout + self.done.stderr)
        return self.done.stdout

    def read(self, *words, code=0):
        return json.loads(self.analyze(*words, "--json", code=code))


class Figures(LayersTest):
    def test_component_shares_and_errors(self):
        path = self.put("some.json", measured())
        got = self.read(path)[str(path)]
        self.assertEqual(list(got), ["layers"])
        rows = {(row["phase"], row["component"]): row for row in got["layers"]["data"]["components"]}
        self.assertEqual(len(rows), 4)
        self.assertAlmostEqual(sum(row["share"] for row in rows.values()), 1, places=12)
        row = rows["prefill", "ffn"]
        self.assertAlmostEqual(row["joules_error"], math.hypot(0.1, CALIBRATION * 5), places=12)
        # The calibration error is common to all parts, so the error of a share only has the scatter.
        share = 5 / 11
        self.assertAlmostEqual(row["share"], share, places=12)
        self.assertAlmostEqual(row["share_error"],
                               math.sqrt((1 - share) ** 2 * 0.01 + share ** 2 * 3 * 0.01) / 11, places=9)
        self.assertAlmostEqual(row["joules_per_token_error"], row["joules_error"] / 100, places=12)
        self.assertIsNone(row["joules_per_gb"])
        summary = got["layers"]["summary"]
        self.assertEqual((summary["largest_component"], summary["largest_component_phase"]),
                         ("ffn", "prefill"))

    def test_energy_against_prompt_length(self):
        path = self.put("some.json", measured())
        got = self.read(path)[str(path)]["layers"]
        rows = [row for row in got["data"]["by_prompt_tokens"] if row["phase"] == "prefill"]
        self.assertEqual([row["prompt_tokens"] for row in rows], list(LENGTHS))
        for row in rows:
            self.assertAlmostEqual(row["joules_per_token"], 0.01 * row["prompt_tokens"] ** 0.25, places=12)
            self.assertAlmostEqual(row["watts"], 50, places=9)
        laws = {law["phase"]: law for law in got["data"]["joules_per_token_of_prompt_tokens"]}
        self.assertAlmostEqual(laws["prefill"]["exponent"], 0.25, places=9)
        self.assertAlmostEqual(laws["decode"]["exponent"], 0, places=9)
        tokens = sum(LENGTHS)
        joules = sum(0.01 * n ** 1.25 for n in LENGTHS)
        self.assertAlmostEqual(got["summary"]["prefill_joules_per_token"], joules / tokens, places=12)
        self.assertAlmostEqual(got["summary"]["prefill_joules_per_token_error"], 0.05 * joules / tokens,
                               places=12)

    def test_finding_states_number_of_models(self):
        said = self.analyze(self.put("one.json", measured()))
        self.assertIn("models: 1, prefill", said)
        self.assertNotIn("1 models", said)

    def test_across_models_and_precisions(self):
        models = [measured(f"q{bits}.gguf", 1e8, bits, bits / 4) for bits in (4, 8, 16)]
        path = self.put("family.json", {"models": models, "host": {"hardware_label": "H100"}})
        got = self.read(path)[str(path)]["layers"]
        self.assertEqual([row["model"] for row in got["data"]["models"]],
                         ["q4.gguf", "q8.gguf", "q16.gguf"])
        laws = got["data"]["against"]
        self.assertEqual(set(laws), {"prefill_joules_per_token_of_bits_per_weight",
                                     "decode_joules_per_token_of_bits_per_weight"})  # model sizes are equal
        self.assertAlmostEqual(laws["decode_joules_per_token_of_bits_per_weight"]["exponent"], 1, places=9)
        self.assertEqual(got["warnings"], [])

    def test_several_layers_files(self):
        paths = [self.put("a.json", measured("a.gguf", 1e8)),
                 self.put("b.json", measured("b.gguf", 2e8, scale=2, label="A100"))]
        got = self.read(*paths)
        self.assertEqual(list(got), [str(paths[0]), str(paths[1]), "across_layers"])
        across = got["across_layers"]
        law = across["data"]["against"]["prefill_joules_per_token_of_parameters"]
        self.assertAlmostEqual(law["exponent"], 1, places=9)
        self.assertTrue(any("different machines" in w for w in across["warnings"]))
        self.assertIn("\n comparison\n", self.analyze(*paths))

    def test_failed_checks_are_reported(self):
        for more, words in (
                ({"closure": 0.8, "closure_pass": False}, "add up to 80 %"),
                ({"null_test": {"difference_pct": 9.0, "plus_minus": 1.0, "pass": False}}, "9.0 ± 1.0 %"),
                ({"interrupted": True}, "interrupted"), ({"overhead_pct": 7.5}, "7.5 %"),
                ({"method": "estimated"}, "estimated"), ({"attribution": "time-share"}, "by time")):
            path = self.put("some.json", measured(**more))
            warnings = self.read(path)[str(path)]["layers"]["warnings"]
            self.assertEqual(len(warnings), 1, warnings)
            self.assertIn(words, warnings[0])
            self.assertIn(f"warning: {warnings[0]}", self.analyze(path, "-v"))
            self.assertIn(words, " ".join(self.analyze(path).split()))

    def test_layers_without_energy(self):
        nothing = measured(energy={"joules": None})
        path = self.put("none.json", nothing)
        got = self.read(path, code=1)[str(path)]["layers"]
        self.assertIn("the energy of no layer is known", got["summary"]["not_enough_data"])
        path = self.put("one.json", {"models": [nothing, measured()]})
        got = self.read(path)[str(path)]["layers"]
        self.assertEqual((got["summary"]["models"], got["summary"]["energy_known"]), (2, 1))
        self.assertIn("energy unknown", got["warnings"][0])

    def test_missing_fields_leave_valid_result(self):
        """The result is complete, whichever field a file lacks."""
        whole = measured()
        for key in list(whole):
            if key in ("layers", "components"):
                continue
            path = self.put("less.json", {k: v for k, v in whole.items() if k != key})
            self.read(path, code=1 if key == "energy" else 0)
        bare = {"layers": [], "components": [{}, {"name": "x", "energy_j": 1}], "energy": {"joules": 1},
                "settings": [{}, {"phase": "prefill", "energy_j": 1}]}
        text = self.analyze(self.put("bare.json", bare), "-v")
        self.assertNotRegex(text, NAN)


class Locations(LayersTest):
    def test_layers_in_run_directory(self):
        run = run_directory(self.root / "run", [{}] * 12)
        without = self.read(run)[str(run)]
        self.assertNotIn("layers", without)
        self.put("run/layers.json", measured())
        got = self.read(run)[str(run)]
        self.assertEqual(list(got), [*without, "layers"])
        self.assertEqual(json.loads((run / "analysis/layers.json").read_text()), got["layers"])
        self.assertEqual(self.read(run)[str(run)], got)  # its own output is not read as input

    def test_selected_analysis_reports_missing_input(self):
        run = run_directory(self.root / "run", [{}] * 4)
        got = self.read(run, "--analysis", "layers", code=1)[str(run)]["layers"]
        self.assertIn("ipw layers -o", got["summary"]["not_enough_data"])
        path = self.put("some.json", measured())
        got = self.read(path, "--analysis", "latency,layers")[str(path)]
        self.assertIn("run directory", got["latency"]["summary"]["not_enough_data"])

    def test_directory_with_layers_only(self):
        for name in ("layers.json", "layers-q8.json"):
            self.put(f"[odd] dir*/{name}", measured(name))
        path = self.root / "[odd] dir*"
        self.assertEqual(self.read(path)[str(path)]["layers"]["summary"]["models"], 2)
        self.assertTrue((path / "analysis/layers.json").exists())
        done = ipw(None, "report", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not a run directory", done.stderr)

    def test_analyzing_a_file_writes_nothing(self):
        path = self.put("some.json", measured())
        self.analyze(path)
        self.assertEqual([p.name for p in self.root.iterdir()], ["some.json"])

    def test_damaged_layers_file(self):
        for content, words in (("{", "not JSON"), ("{}", "has no layers"), ('{"models": [1]}', "no layers")):
            path = self.put("some.json", content)
            self.assertEqual(self.analyze(path, code=1), "")
            self.assertEqual(self.done.stderr.count("\n"), 1, self.done.stderr)
            self.assertIn(words, self.done.stderr)
            self.assertIn("some.json", self.done.stderr)
        run = run_directory(self.root / "run", [{}] * 4)
        self.put("run/layers.json", "{")
        self.assertIn("latency", self.analyze(run, code=1))  # the run is still analyzed
        self.assertIn("layers.json", self.done.stderr)

    def test_plots_and_report(self):
        run = run_directory(self.root / "run", [{}] * 5)
        self.put("run/layers.json", measured())
        listed = json.loads(ipw(None, "list", "plots", "--json").stdout)["plots"]
        if all(row["available"] for row in listed):
            done = ipw(None, "plot", run, "--plot", "components,energy")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(done.stdout.split()),
                             [f"{run}/plots/energy.png", f"{run}/plots/layers/components.png"])
        done = ipw(None, "report", run)
        if "ECharts" not in done.stderr:
            self.assertEqual(done.returncode, 0, done.stderr)
            page = (run / "report.html").read_text()
            self.assertIn('"layers":[{"model":"a/tiny-q4.gguf"', page)


if __name__ == "__main__":
    unittest.main()
