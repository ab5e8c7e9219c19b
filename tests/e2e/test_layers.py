#!/usr/bin/env python3
# test: serial
"""`ipw layers` on models with random weights, and machines with known power."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "cli")]
import servers  # noqa: E402
from machines import Machine, Modeled, LoadedIntel  # noqa: E402
from make_gguf import make  # noqa: E402
from program import IPW, TIMEOUT_S, ipw  # noqa: E402
from test_manual import json_keys, marked, section  # noqa: E402

SOURCE = servers.SOURCE
LAYERS = 12
PROMPTS = (32, 384)
# Several threads would wait for each other on a busy machine.
QUICK = ("--prompt-tokens", "16", "--gen", "4", "--repeat", "1", "--idle", "0.2", "--threads", "1")
models = {}


def setUpModule():
    listing = json.loads(ipw(None, "list", "clients", "--json").stdout)
    row = next(row for row in listing["clients"] if row["name"] == "llama")
    if not row["available"]:
        raise servers.Skip(row["missing"])
    folder = tempfile.TemporaryDirectory(prefix="ipw-layers-")
    unittest.addModuleCleanup(folder.cleanup)
    models["folder"] = Path(folder.name)
    models["small"] = models["folder"] / "small.gguf"
    models["deep"] = models["folder"] / "deep.gguf"
    make(models["small"], layers=3, hidden=64, heads=4, context=256)
    models["deeper"] = models["folder"] / "deeper.gguf"
    make(models["deep"], layers=LAYERS, hidden=192, heads=6, quick=1)
    make(models["deeper"], layers=12, hidden=64, heads=4, context=256)


class LayersTest(unittest.TestCase):
    def machine(self, kind, *arguments):
        machine = kind(*arguments)
        self.addCleanup(machine.close)
        return machine

    def layers(self, machine, *arguments, model="small", **options):
        return ipw(machine, "layers", "--model", models[model], *arguments, **options)

    def report(self, machine, *arguments, **options):
        done = self.layers(machine, "--json", *QUICK, *arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)


def components(report, phase=None):
    for layer in report["layers"] + [report["outside"]]:
        for component in layer["components"]:
            if phase in (None, component["phase"]):
                yield component


def shares(setting):
    return {row["name"]: row["share"] for row in setting["components"]}


def run_layers(*options):
    """The output of `ipw layers` on a machine with 10 W idle power and 20 J per CPU second."""
    with LoadedIntel(10, 20) as machine:
        done = ipw(machine, "layers", *options, "-t", 1, "--idle", 0.5, "--window", 0.25, "--granularity", "component",
                   "--json")
    assert done.returncode == 0, done.stderr
    return done.stdout


class DeepModel(LayersTest):
    """One measurement of a deep model on a machine with 10 W idle power and 20 J per CPU second."""

    @classmethod
    def setUpClass(cls):
        cls.file = models["folder"] / "deep.json"
        cls.printed = run_layers("-m", models["deep"], "--prompt-tokens", ",".join(map(str, PROMPTS)),
                                "--gen", 8, "-r", 2, "-o", cls.file)
        cls.one = json.loads(cls.printed)

    def test_file_equals_stdout(self):
        self.assertEqual(self.file.read_text(), self.printed)

    def test_every_layer_has_its_components(self):
        self.assertEqual([layer["index"] for layer in self.one["layers"]], list(range(LAYERS)))
        self.assertEqual(self.one["granularity"], "component")
        wanted = {(name, phase) for phase in ("prefill", "decode") for name in
                  ("norm", "attn_qkv", "attn_scores", "attn_out", "ffn_gate_up", "ffn_down")}
        for layer in self.one["layers"]:
            self.assertEqual({(row["name"], row["phase"]) for row in layer["components"]}, wanted)
        self.assertEqual({row["name"] for row in self.one["outside"]["components"]},
                         {"embedding", "norm", "head"})

    def test_shares_add_up_to_one(self):
        self.assertAlmostEqual(sum(row["share"] for row in components(self.one)), 1, places=6)
        self.assertAlmostEqual(sum(row["share"] for row in self.one["components"]), 1, places=6)
        for row in components(self.one):
            self.assertGreaterEqual(row["energy_j"], 0)
            self.assertGreater(row["time_s"], 0)

    def test_energy_is_conserved(self):
        one = self.one
        self.assertAlmostEqual(sum(row["energy_j"] for row in components(one)),
                               one["components_j"], delta=1e-6 * one["components_j"])
        whole = one["components_j"] + one["idle_j"] + one["unattributed_j"]
        self.assertAlmostEqual(whole / one["energy"]["joules"], 1, places=6)
        measured = sum(setting["energy_j"] for setting in one["settings"])
        self.assertAlmostEqual(measured / one["energy"]["joules"], 1, places=6)

    def test_closure_is_reported(self):
        one = self.one
        above_idle = one["energy"]["joules"] - one["idle_j"]
        self.assertLessEqual(one["closure_pass"], 0.9 <= one["closure"] <= 1.1)
        self.assertAlmostEqual(one["closure"], one["components_j"] / above_idle, places=6)
        self.assertGreater(one["conditions"]["cpu_own_s"], 0)
        self.assertIn(one["method"], ("nnls", "time-share"))
        self.assertEqual(one["energy"]["method"], "counter")
        self.assertIsNotNone(one["null_test"]["pass"])
        self.assertIsNotNone(one["overhead_pct"])
        for row in components(one):
            self.assertIn(row["method"], ("nnls", "time-share"))

    def test_idle_and_busy_power_are_measured(self):
        """10 W idle; with awake or busy threads, 20 J more per CPU second."""
        self.assertAlmostEqual(self.one["idle"]["power_w"], 10, delta=2)
        self.assertGreater(self.one["awake"]["power_w"], 11)
        self.assertLess(self.one["awake"]["power_w"], 33)
        for window in self.one["windows"]:
            if window["updates"] >= 10:
                self.assertLess(window["power_w"], 33)
        for setting in self.one["settings"]:
            self.assertGreaterEqual(setting["windows"], 1)

    def test_energy_follows_operations(self):
        """Feed-forward has three quarters of the operations of a layer."""
        prefill = [row for row in self.one["components"] if row["phase"] == "prefill"]
        whole = sum(row["energy_j"] for row in prefill)
        part = {row["name"]: row["energy_j"] / whole for row in prefill}
        counted = {row["name"]: row["flops_share"] for row in prefill}
        self.assertAlmostEqual(sum(counted.values()), 1, places=6)
        forward = part["ffn_gate_up"] + part["ffn_down"]
        self.assertGreater(forward, 0.3)
        self.assertLess(forward, 0.95)
        self.assertGreater(part["ffn_gate_up"], part["ffn_down"])
        self.assertGreater(forward, part["attn_out"])

    def test_attention_share_grows_with_context(self):
        short, long = [shares(setting)["attn_scores"] for setting in self.one["settings"]
                       if setting["phase"] == "decode"]
        self.assertGreater(long, short)

    def test_layers_take_similar_times(self):
        """All are equal except the last, which processes one token of a prompt."""
        times = sorted(layer["time_s"] for layer in self.one["layers"][:-1])
        self.assertLess(times[-3], 5 * times[2])

    def test_tokens_and_energy_per_token(self):
        for setting in self.one["settings"]:
            self.assertEqual(setting["tokens"],
                             setting["prompt_tokens"] if setting["phase"] == "prefill" else 8)
            self.assertAlmostEqual(setting["energy_per_token_j"],
                                   setting["energy_j"] / setting["tokens"])


    def test_manual_page_documents_every_key(self):
        """The content of energy, devices, conditions and host is documented in ipw-run(1)."""
        own = {**self.one, "energy": None, "devices": None, "host": None, "conditions": None}
        text = (SOURCE / "docs/man/ipw-layers.1").read_text()
        lines = section(text, "JSON REPORT")
        shown = set(marked(lines, "Cm"))
        self.assertEqual((json_keys(own) | {"models"}) - shown, set())
        of_onnx = set(marked(lines[lines.index(".It Cm inputs"):lines.index(".It Cm windows")], "Cm"))
        self.assertEqual(shown - of_onnx - json_keys(own) - {"models"}, set())
        formats = (SOURCE / "docs/formats.md").read_text()
        formats = formats[formats.index("## `ipw layers --json`"):formats.index("## Rows of")]
        named = {word for span in re.findall(r"`([^`]+)`", formats) for word in span.split(".")}
        self.assertEqual(json_keys(own) - named, set())


class ShippedModel(LayersTest):
    """The larger shipped model, by name."""

    @classmethod
    def setUpClass(cls):
        """Repeats up to three times until the program had a CPU to itself: waiting time would be attributed to
        components."""
        for _ in range(3):
            cls.one = json.loads(run_layers("-m", "ipw-6m-f16", "--prompt-tokens", "64,384", "--gen", 4, "-r", 1))
            cls.had_cpu = cls.one["conditions"]["cpu_own_s"] / cls.one["conditions"]["seconds"]
            if cls.had_cpu > 0.8:
                break

    def test_shares_add_up_to_one(self):
        self.assertEqual(len(self.one["layers"]), 8)
        self.assertAlmostEqual(sum(row["share"] for row in components(self.one)), 1, places=6)

    def need_cpu(self):
        if self.had_cpu < 0.8:
            self.skipTest(f"other programs had the CPU: {self.had_cpu:.0%} of the time was left for this one")

    def test_matrix_times_follow_operations(self):
        """A long prompt is compute-bound: feed-forward relative to attention matrices."""
        prefill = {row["name"]: row for row in self.one["components"] if row["phase"] == "prefill"}

        def ratio(key):
            forward = prefill["ffn_gate_up"][key] + prefill["ffn_down"][key]
            return forward / (prefill["attn_qkv"][key] + prefill["attn_out"][key])
        # 3 x 704 columns against 512 and 256.  After the attention of the last layer, llama.cpp only processes the last
        # token: seven feed-forwards, eight of the others.
        self.assertAlmostEqual(ratio("flops_share"), 7 * 3 * 704 / (8 * (512 + 256)), delta=0.03)
        self.need_cpu()
        self.assertGreater(ratio("time_s"), ratio("flops_share") / 2)
        self.assertLess(ratio("time_s"), ratio("flops_share") * 2)

    def test_attention_share_grows_with_context(self):
        # Prompts of at least 64 tokens: for shorter ones llama.cpp uses attention of one row at a time, at some thirty
        # times the cost per pair of tokens (docs/measurements.md).
        self.need_cpu()
        for phase in ("prefill", "decode"):
            short, long = [shares(setting)["attn_scores"] for setting in self.one["settings"]
                           if setting["phase"] == phase]
            self.assertGreater(long, short, phase)


class OtherSetups(LayersTest):
    """Other machines and options."""

    def test_layers_on_a_missing_gpu_are_rejected(self):
        done = ipw(self.machine(LoadedIntel), "layers", "-m", models["small"], "--gpu-layers", 1, *QUICK)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot use a GPU here", done.stderr)

    def test_several_models_are_compared(self):
        machine = self.machine(LoadedIntel)
        both = f"{models['small']},{models['deeper']}"
        done = ipw(machine, "layers", "--model", both, *QUICK, "-o", models["folder"] / "both.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("vs. first", done.stdout)
        for name in ("small.gguf", "deeper.gguf"):
            self.assertIn(f"energy by layer of {name}", done.stdout)
        report = json.loads((models["folder"] / "both.json").read_text())
        self.assertEqual([len(model["layers"]) for model in report["models"]], [3, 12])
        small, deeper = (model["energy"]["joules"] for model in report["models"])
        self.assertGreater(deeper, small)

    def test_without_sensor_times_are_known_and_energy_is_not(self):
        file = models["folder"] / "unknown.json"
        done = self.layers(self.machine(Machine), *QUICK, "--require-energy", "-o", file)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("energy unknown", done.stdout)
        report = json.loads(file.read_text())
        self.assertIsNone(report["energy"]["joules"])
        self.assertTrue(report["energy"]["note"])
        self.assertIsNone(report["method"])
        self.assertIsNone(report["closure"])
        for row in components(report):
            self.assertIsNone(row["energy_j"])
            self.assertGreater(row["time_s"], 0)

    def test_estimate_is_labeled(self):
        report = self.report(self.machine(Modeled), "--sample-rate", "50")
        self.assertEqual(report["method"], "estimated")
        self.assertIn(report["attribution"], ("nnls", "time-share"))
        self.assertEqual({row["method"] for row in components(report)}, {"estimated"})

    def test_windows_too_short_for_sensor_are_rejected(self):
        report = self.report(self.machine(Modeled), "--window", "0.2", "--sample-rate", "10")
        self.assertIsNone(report["energy"]["joules"])
        self.assertIn("fewer than 10 sensor updates", report["energy"]["note"])
        self.assertGreater(sum(setting["refused"] for setting in report["settings"]), 0)

    def test_granularity_layer(self):
        report = self.report(self.machine(LoadedIntel), "--granularity", "layer")
        self.assertEqual(report["granularity"], "layer")
        self.assertEqual({row["name"] for row in components(report)}, {"all"})
        self.assertEqual(len(report["layers"]), 3)
        self.assertAlmostEqual(sum(row["share"] for row in components(report)), 1, places=6)

    def test_idle_energy_is_unknown_without_baseline(self):
        report = self.report(self.machine(LoadedIntel), "--idle", "0")
        self.assertIsNone(report["idle"])
        self.assertIsNone(report["idle_j"])
        whole = report["components_j"] + report["unattributed_j"]
        self.assertAlmostEqual(whole / report["energy"]["joules"], 1, places=6)

    def test_batch_of_sequences(self):
        report = self.report(self.machine(LoadedIntel), "--batch", "2", "--prompt-tokens", "16,48")
        self.assertEqual([setting["tokens"] for setting in report["settings"]], [32, 96, 8, 8])

    def test_prefill_only(self):
        report = self.report(self.machine(LoadedIntel), "--gen", "0")
        self.assertEqual({row["phase"] for row in components(report)}, {"prefill"})

    def test_interruption_keeps_partial_result(self):
        machine = self.machine(LoadedIntel)
        file = models["folder"] / "interrupted.json"
        process = subprocess.Popen(
            [IPW, "layers", "-m", models["small"], "--prompt-tokens", "16", "--gen", "4", "-r", "200",
             "-t", "1", "--idle", "0.1", "-o", file],
            env=machine.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        stat = Path(f"/proc/{process.pid}/stat")
        while int(stat.read_text().rpartition(")")[2].split()[11]) < os.sysconf("SC_CLK_TCK"):  # one second of CPU time
            self.assertIsNone(process.poll())
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        text, errors = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("interrupted: partial", text)
        self.assertTrue(json.loads(file.read_text())["interrupted"])


class BadInput(LayersTest):
    def refused(self, code, words, *arguments, env=None):
        done = ipw(self.machine(Machine), "layers", *arguments, env=env)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(words, done.stderr.splitlines()[-1])
        self.assertEqual(done.stdout, "")

    def test_usage_errors(self):
        small = models["small"]
        for words, arguments in (
                ("missing --model", ()),
                ("empty name", ("--model", f"{small},")),
                ("--prompt-tokens takes lengths", ("-m", small, "--prompt-tokens", "32,x")),
                ("--prompt-tokens takes lengths", ("-m", small, "--prompt-tokens", "0")),
                ("--prompt-tokens takes lengths", ("-m", small, "--prompt-tokens", "")),
                ("16 given more than once", ("-m", small, "--prompt-tokens", "16,16")),
                ("too many lengths (limit 8)", ("-m", small, "--prompt-tokens", "1,2,3,4,5,6,7,8,9")),
                ("--granularity must be one of", ("-m", small, "--granularity", "node")),
                ("did you mean '--prompt-tokens'", ("-m", small, "--prompt-token", "3")),
                ("do not fit into --context 64",
                 ("-m", small, "--prompt-tokens", "60", "--gen", "8", "--context", "64")),
                ("do not fit into its context of 256 tokens", ("-m", small, "--prompt-tokens", "300"))):
            with self.subTest(arguments):
                self.refused(2, words, *arguments)

    def test_bad_model_files(self):
        folder = models["folder"]
        (folder / "noise.gguf").write_bytes(os.urandom(4096))
        (folder / "cut.gguf").write_bytes(models["small"].read_bytes()[:5000])
        for name in ("noise", "cut", "absent"):
            with self.subTest(name):
                self.refused(1, f"{name}.gguf", "-m", folder / f"{name}.gguf")

    def test_missing_library(self):
        self.refused(1, "libllama", "-m", models["small"],
                     env={"IPW_LLAMA_LIB": "/nonexistent/libllama.so"})


if __name__ == "__main__":
    servers.main()
