#!/usr/bin/env python3
"""ipw estimate over contexts and prompts: every combination equals its single estimate, counts by hand, cost of longer
contexts, Pareto frontiers and limits per context, columns, plots, bad input."""

import csv
import io
import itertools
import json
import re
import shutil
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from compiler import SOURCE  # noqa: E402
from estimates import GPU, ROUND, EstimateTest, figure  # noqa: E402

LLAMA = "llama-3.2-1b"
GGUF = SOURCE / "models" / "ipw-6m-f16.gguf"
# From its config.json: layers, hidden size, heads, KV heads, head size, feed-forward size, vocabulary.
LAYERS, FEATURES, HEADS, HEADS_KV, HEAD, FORWARD, WORDS = 16, 2048, 32, 8, 64, 8192, 128256
TRAINED = 131072


def matrices():
    """MACs of one token with the matrices of all layers."""
    attention = 2 * FEATURES * HEADS * HEAD + 2 * FEATURES * HEADS_KV * HEAD
    return LAYERS * (attention + 3 * FEATURES * FORWARD)


def cache_bytes(tokens):
    """Bytes of a KV cache with two bytes per element."""
    return LAYERS * 2 * HEADS_KV * HEAD * 2 * tokens


class SweepTest(EstimateTest):
    def points(self, *arguments, hardware=GPU, model=LLAMA, code=0):
        return self.on(hardware, model, *arguments, code=code)["points"]

    def steps(self, *arguments, **more):
        return self.points("--phase", "decode", *arguments, **more)

    def by_context(self, points):
        groups = {}
        for point in points:
            groups.setdefault(point["setting"]["context"], []).append(point)
        return groups


class Counts(SweepTest):
    CONTEXTS = (1, 512, 2048, 8192, TRAINED)

    def test_decode_step_computed_by_hand(self):
        points = self.steps("--context", ",".join(map(str, self.CONTEXTS)), "--batch", "1,3",
                            "--precision", "fp16")
        self.assertEqual(len(points), 2 * len(self.CONTEXTS))
        for point in points:
            context, batch = point["setting"]["context"], point["batch"]
            attention = LAYERS * 2 * HEADS * HEAD * context
            self.assertEqual(point["macs"], batch * (matrices() + FEATURES * WORDS + attention))
            self.assertEqual(point["memory_bytes"]["kv_cache"], batch * cache_bytes(context))
            self.assertEqual(point["traffic_bytes"]["kv_read"], batch * cache_bytes(context))
            self.assertEqual(point["traffic_bytes"]["kv_written"], batch * cache_bytes(1))

    def test_prefill_computed_by_hand(self):
        """Each token attends to itself and those before it; logits are computed for the last one only."""
        for point in self.points("--phase", "prefill", "--prompt-tokens", "1,2,512,1000", "--batch", "2"):
            prompt = point["setting"]["prompt_tokens"]
            attention = LAYERS * 2 * HEADS * HEAD * prompt * (prompt + 1) // 2
            self.assertEqual(point["macs"], 2 * (prompt * matrices() + FEATURES * WORDS + attention))
            self.assertEqual(point["memory_bytes"]["kv_cache"], 2 * cache_bytes(prompt))

    def test_energy_computed_by_hand(self):
        """1 pJ per operation, 50 pJ per byte, 40 W idle: at every context."""
        points = self.estimate(LLAMA, "--hardware-file", self.device(), "--phase", "decode", "--context",
                               "512..8192x4")["points"]
        self.assertEqual([p["setting"]["context"] for p in points], [512, 2048, 8192])
        for point in points:
            total = point["flops"] * 1e-12 + point["bytes"] * 50e-12 + 40 * point["latency_s"]
            self.assertClose(point["each"]["energy_j"], total)

    def test_longer_context_costs_more(self):
        for hardware, batch in itertools.product((GPU, "l4", "xeon-8490h"), (1, 16)):
            points = self.steps("--context", "1,64..65536x4", "--batch", str(batch), hardware=hardware)
            points.sort(key=lambda p: p["setting"]["context"])
            self.assertEqual(len(points), 7)
            for key in (lambda p: p["each"]["energy_j"], lambda p: p["flops"], lambda p: p["bytes"],
                        lambda p: p["memory_bytes"]["total_peak"], lambda p: -p["each"]["per_s"]):
                values = [key(p) for p in points]
                self.assertTrue(all(a < b for a, b in zip(values, values[1:])), values)

    def test_saving_of_batch_shrinks_with_context(self):
        """A batch shares weights but not KV caches."""
        points = {(p["setting"]["context"], p["batch"]): p["each"]["energy_j"]
                  for p in self.steps("--context", "512,65536", "--batch", "1,16")}
        saved = [points[c, 1] / points[c, 16] for c in (512, 65536)]
        self.assertGreater(saved[0], 2 * saved[1])
        self.assertGreater(saved[1], 1)


class Combinations(SweepTest):
    SAME = ("setting", "macs", "flops", "bytes", "traffic_bytes", "latency_s", "latency_plus_minus",
            "energy_j", "each", "power_w", "memory_bytes", "fits", "largest_batch", "mfu", "mbu",
            "utilisation", "efficiency", "wasted_j", "bound_counts", "confidence", "confidence_reason")

    def check(self, points, alone, count):
        self.assertEqual(len(points), count)
        for point in points:
            one = alone(point)
            one["memory_bytes"]["timeline"] = None  # of a single estimate
            for key in self.SAME:
                self.assertEqual(point[key], one[key], key)

    def test_decode_steps_equal_single_estimates(self):
        self.check(self.steps("--context", "100,3000", "--batch", "1,8", "--precision", "fp16,int8"),
                   lambda p: self.on(GPU, LLAMA, "--phase", "decode", "--context", p["setting"]["context"],
                                     "--batch", int(p["batch"]), "--precision", p["precision"]), 8)

    def test_requests_equal_single_estimates(self):
        points = self.points("--prompt-tokens", "10,200", "--context", "300,900", "--batch", "1,4")
        self.check(points, lambda p: self.on(
            GPU, LLAMA, "--prompt-tokens", p["setting"]["prompt_tokens"], "--context",
            p["setting"]["context"], "--batch", int(p["batch"])), 8)
        for point in points:
            setting = point["setting"]
            self.assertEqual(setting["phase"], "request")
            self.assertEqual(setting["prompt_tokens"] + setting["output_tokens"], setting["context"])

    def test_prompts_equal_single_estimates(self):
        for model, more in ((LLAMA, ["--phase", "prefill"]), (LLAMA, ["--phase", "decode"]), (LLAMA, []),
                            ("bert-base-uncased", []), (GGUF, [])):
            lengths = {}
            for prompt in (16, 100):
                one = self.on(GPU, model, "--prompt-tokens", prompt, *more)
                lengths[json.dumps(one["setting"])] = one
            self.check(self.points("--prompt-tokens", "16,100", *more, model=model),
                       lambda p, lengths=lengths: lengths[json.dumps(p["setting"])], 2)

    def test_every_point_states_its_setting(self):
        for more in (["--phase", "decode"], []):
            for point in self.points("--context", "600,700", "--batch", "1,2", *more):
                self.assertIn(point["setting"]["context"], (600, 700))
                self.assertIn(point["setting"]["phase"], ("decode", "request"))
                self.assertIn(point["batch"], (1, 2))
                self.assertEqual((point["precision"], point["hardware"]), ("fp16", GPU))
                each = point["each"]
                for value in (each["energy_j"], each["plus_minus"], each["per_s"], point["mfu"],
                              point["mbu"], point["memory_bytes"]["kv_cache"]):
                    self.assertGreater(value, 0)

    def test_unsupported_device_is_reported_at_every_context(self):
        points = self.steps("--context", "100,200", "--tensor-parallel", "2", hardware=f"{GPU},xeon-8490h")
        self.assertEqual([(p["hardware"], p["setting"]["context"]) for p in points if p["missing"]],
                         [("xeon-8490h", 100), ("xeon-8490h", 200)])
        self.assertEqual([bool(p["missing"]) for p in points], [False, False, True, True])


class Requirements(SweepTest):
    """A context is a requirement; batch, precision and device are choices."""

    def test_pareto_frontiers_and_order(self):
        points = self.steps("--context", "8192,512", "--batch", "1,8,64", "--precision", "fp16,int8",
                            hardware=f"{GPU},l4,h200")
        self.assertEqual(len(points), 36)
        contexts = [p["setting"]["context"] for p in points]
        self.assertEqual(contexts, sorted(contexts))
        for group in self.by_context(points).values():
            figures = [(p["each"]["energy_j"], p["latency_s"]) for p in group]
            self.assertEqual(figures, sorted(figures))

            def is_dominated(mine, figures=figures):
                return any(e <= mine[0] and t <= mine[1] and (e, t) != mine for e, t in figures)
            self.assertEqual([p["frontier"] for p in group], [not is_dominated(f) for f in figures])

    def test_limit_must_be_met_at_every_context(self):
        costs = {c: group[0]["each"]["energy_j"] for c, group in
                 self.by_context(self.steps("--context", "512,65536", "--batch", "1")).items()}
        between = str(sum(costs.values()) / 2)
        for limit, code in ((str(2 * costs[65536]), 0), (between, 1), (str(0.5 * costs[512]), 1)):
            points = self.steps("--context", "512,65536", "--max-energy-j", limit, code=code)
            for point in points:
                held = costs[point["setting"]["context"]] <= float(limit)
                self.assertEqual(point["budget"]["verdict"], "PASS" if held else "FAIL")

    def test_one_choice_per_context_must_meet_the_limit(self):
        """A batch of 1 exceeds the limit at both contexts, a batch of 16 at neither."""
        groups = self.by_context(self.steps("--context", "512,2048", "--batch", "1,16"))
        dearest = max(min(p["each"]["energy_j"] for p in group) for group in groups.values())
        points = self.steps("--context", "512,2048", "--batch", "1,16", "--max-energy-j",
                            str(1.1 * dearest))
        self.assertEqual({(p["batch"], p["budget"]["verdict"]) for p in points},
                         {(1, "FAIL"), (16, "PASS")})

    def test_shorter_context_is_not_recommended(self):
        report = self.on("l4", LLAMA, "--phase", "decode", "--context", "16384")
        self.assertTrue(report["recommendations"])
        for proposal in report["recommendations"]:
            self.assertNotRegex(proposal["options"], "--context|--prompt|--output")
            self.assertIn(proposal["kind"], ("batch", "precision", "hardware", "point", "devices", "fusion"))
        larger = [p for p in report["recommendations"] if p["kind"] == "batch"]
        self.assertTrue(larger)  # batch is a choice

    def test_some_rows_of_every_context_are_shown(self):
        text = self.run_ipw("--model", LLAMA, "--compare", "--phase", "decode", "--context", "512,2048,8192",
                            "--top", "6").stdout
        shown = re.findall(r"^ +\*? +\S+ +(?:fp16|bf16|fp32|int8) +(\d+) ", text, re.M)
        for context in ("512", "2048", "8192"):
            self.assertGreaterEqual(shown.count(context), 2)
        self.assertRegex(text, r"and \d+ more")


class Formats(SweepTest):
    def head(self, *arguments):
        text = self.run_ipw("--model", LLAMA, "--hardware", GPU, *arguments).stdout
        return text, next(line for line in text.splitlines() if "hardware" in line).split()

    def test_columns_for_settings_that_differ(self):
        for words, there in ((["--phase", "decode", "--context", "100,200"], {"context"}),
                             (["--prompt-tokens", "100,200"], {"prompt"}),
                             (["--context", "600,700"], {"context"}),
                             (["--phase", "decode", "--prompt-tokens", "100,200"], {"context"}),
                             (["--prompt-tokens", "100,200", "--context", "600"], {"prompt"}),
                             (["--prompt-tokens", "100,200", "--context", "600,700"], {"prompt", "context"}),
                             (["--phase", "decode", "--context", "9", "--batch", "1,2"], {"batch"}),
                             (["--phase", "decode", "--context", "8,9", "--batch", "1,2"],
                              {"batch", "context"})):
            for form in ("table", "md"):
                text, head = self.head(*words, "--format", form)
                always = {"batch"} if form == "md" else set()
                self.assertEqual({"batch", "prompt", "context"} & set(head), there | always, text)
                self.assertTrue(all(len(line) <= 100 for line in text.splitlines()) or form == "md", text)

    def test_csv_has_every_length(self):
        text = self.run_ipw("--model", LLAMA, "--hardware", f"{GPU},xeon-8490h", "--prompt-tokens", "100,200",
                            "--context", "300,400", "--tensor-parallel", "2", "--format", "csv").stdout
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(rows), 8)
        found = {(r["hardware"], r["phase"], r["prompt_tokens"], r["output_tokens"], r["context"])
                 for r in rows}
        self.assertEqual(found, {(h, "request", str(p), str(c - p), str(c)) for h in (GPU, "xeon-8490h")
                                 for p in (100, 200) for c in (300, 400)})
        for row in rows:
            self.assertNotIn(None, row)
            self.assertEqual(bool(row["missing"]), row["hardware"] != GPU)
        step = self.run_ipw("--model", LLAMA, "--hardware", GPU, "--phase", "decode", "--context", "77",
                            "--format", "csv").stdout
        row = next(csv.DictReader(io.StringIO(step)))
        self.assertEqual([row[k] for k in ("phase", "prompt_tokens", "output_tokens", "context")],
                         ["decode", "", "", "77"])

    def test_title_states_common_settings(self):
        for words, said in ((["--context", "600,700"], "requests of 512 prompt tokens"),
                            (["--prompt-tokens", "9,10"], "requests of 128 output tokens"),
                            (["--phase", "decode", "--context", "8,9"], "batch 1, one decode step"),
                            (["--phase", "prefill", "--prompt-tokens", "8,9"], "batch 1, prefill")):
            self.assertIn(said, self.head(*words)[0])


class Plots(SweepTest):
    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not here")
    def test_plot_of_energy_against_context(self):
        for words, there in ((["--phase", "decode", "--context", "512..8192x2", "--batch", "1,8"],
                              ("context (tokens)", "batch 1", "batch 8", "energy per output token",
                               ">2048<", "decode")),
                             (["--phase", "decode", "--context", "512,600"], ("one standard deviation", "batch 1")),
                             (["--prompt-tokens", "100,150", "--precision", "fp16,int8"],
                              ("prompt (tokens)", "fp16", "int8", "request")),
                             (["--prompt-tokens", "100,150", "--context", "600,700"],
                              ("context (tokens)", "prompt 100", "prompt 150"))):
            picture = self.root / "a.svg"
            self.run_ipw("--model", LLAMA, "--hardware", GPU, *words, "--plot", picture)
            drawn = picture.read_text()
            for word in (*there, "not measured"):
                self.assertIn(word, drawn)

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not here")
    def test_nothing_that_fits_is_not_plotted(self):
        small = self.device(memories=[{**ROUND["memories"][0], "capacity": figure(1, "mib")}])
        done = self.run_ipw("--model", LLAMA, "--hardware-file", small, "--phase", "decode", "--context",
                            "100,200", "--plot", self.root / "a.svg", code=1)
        self.assertIn("nothing fits", done.stderr)


class Refusals(SweepTest):
    def test_rejects_invalid_lengths(self):
        step = ["--model", LLAMA, "--hardware", GPU, "--phase", "decode"]
        for option in ("--context", "--prompt-tokens"):
            for word in ("0", "-1", "many", "1.5", "1e3", "", "512,", ",512", "512,,1024", "9..5", "1..8x1",
                         "1..", "100000001", "99999999999999999999"):
                with self.subTest(option=option, word=word):
                    self.assertIn(f"{option} takes numbers from 1 to", self.refused(*step, option, word))
        for words, hint in (([*step, "--context", "1..5000"], "more than 4096"),
                            ([*step, "--context", "1..100", "--batch", "1..64"],
                             "6400 combinations of --batch, --prompt-tokens and --context: at most 4096"),
                            (["--model", "resnet18", "--hardware", GPU, "--context", "512,1024"], "no phases"),
                            (["--model", "resnet18", "--hardware", GPU, "--prompt-tokens", "8,9"],
                             "takes no --prompt-tokens"),
                            ([*step[:4], "--prompt-tokens", "600,500", "--context", "550,700"],
                             "--context 550 is not above the prompt of 600 tokens"),
                            ([*step[:4], "--context", "600,700", "--output-tokens", "5"], "one of them"),
                            (["--model", LLAMA, "--graph", "dot", "--phase", "decode", "--context", "8,9"],
                             "--graph shows one workload")):
            with self.subTest(words=words):
                self.assertIn(hint, self.refused(*words))

    def test_rejects_context_beyond_position_table(self):
        """The last output token is not read again, so it needs no position."""
        for words, length in ((["--phase", "decode", "--context", "8,1025"], 1025),
                              (["--context", "900,2000"], 1999)):
            done = self.run_ipw("--model", "gpt2", "--hardware", GPU, *words, code=1)
            self.assertEqual(done.stdout, "")
            self.assertEqual(done.stderr, f"ipw estimate: gpt2 has 1024 positions, too few for {length} tokens\n")

    def test_warns_of_context_beyond_training(self):
        """One warning with the model's limit; the estimate is still made."""
        config = self.root / "config.json"
        config.write_text(json.dumps({
            "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100,
            "max_position_embeddings": 333}))
        for model, trained in ((LLAMA, TRAINED), (config, 333), (GGUF, 512)):
            for words in (["--phase", "decode", "--context", f"{trained},{trained + 1}"],
                          ["--context", f"100,{trained + 1}", "--prompt-tokens", "50"],
                          ["--phase", "prefill", "--prompt-tokens", f"100,{trained + 1}"]):
                done = self.run_ipw("--model", model, "--hardware", GPU, *words)
                self.assertEqual(done.stderr.count("\n"), 1)
                self.assertIn(f"{trained + 1} tokens exceed the {trained} that", done.stderr)
                self.assertIn("2 estimates", done.stdout)
            done = self.run_ipw("--model", model, "--hardware", GPU, "--phase", "decode", "--context", trained)
            self.assertEqual(done.stderr, "")

    def test_graph_has_requested_batch(self):
        shapes = [self.run_ipw("--model", "resnet18", "--graph", "dot", *more).stdout
                  for more in ([], ["--batch", "7"])]
        self.assertIn("1x3x224x224", shapes[0])
        self.assertIn("7x3x224x224", shapes[1])


if __name__ == "__main__":
    unittest.main()
