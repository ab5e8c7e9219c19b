#!/usr/bin/env python3
"""Pipeline parallelism in `ipw estimate` against an event simulation: stage times are summed from the kernels of one
device, and layers are divided like vLLM's get_pp_indices."""

import csv
import heapq
import itertools
import json
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from compiler import SOURCE  # noqa: E402
from estimates import EstimateTest  # noqa: E402

MODEL, LAYERS, HIDDEN, VOCABULARY = "llama-3.2-1b", 16, 2048, 128256
BANDWIDTH, LATENCY, IDLE_W, JOULES_PER_BYTE = 100e9, 1e-6, 40, 50e-12  # of the device with round figures
PUBLISHED = list(csv.DictReader((SOURCE / "tests/fixtures/estimate/published_pipeline.csv").open()))


def layers_of(layers, stages):
    """vllm/distributed/utils.py, version 0.32.0."""
    partitions = [layers // stages] * stages
    for i in range(2, layers % stages + 2):
        partitions[-i] += 1
    return partitions


class Simulation:
    """Machine 0 is the scheduler on the host.  Jobs of a round run in order; a job starts its next round when it has
    left the last machine."""

    def __init__(self, jobs, rounds):
        self.jobs, self.rounds, self.ends, self.events, self.ticket = jobs, rounds, [], [], itertools.count()
        machines = len(jobs[0]["busy"])
        self.order = [[(turn, j) for turn in range(rounds) for j in range(len(jobs))] for _ in range(machines)]
        self.waiting = [set() for _ in range(machines)]
        self.busy = [False] * machines
        for j in range(len(jobs)):
            self.arrive(0, 0, (0, j))

    def arrive(self, now, machine, what):
        self.waiting[machine].add(what)
        self.start(now, machine)

    def start(self, now, machine):
        order = self.order[machine]
        if self.busy[machine] or not order or order[0] not in self.waiting[machine]:
            return
        what = order.pop(0)
        self.waiting[machine].remove(what)
        self.busy[machine] = True
        heapq.heappush(self.events, (now + self.jobs[what[1]]["busy"][machine], next(self.ticket), "done", machine, what))

    def run(self):
        while self.events:
            now, _, kind, machine, what = heapq.heappop(self.events)
            if kind == "come":
                self.arrive(now, machine, what)
                continue
            self.busy[machine] = False
            if machine + 1 < len(self.busy):
                sent = now + self.jobs[what[1]]["send"][machine]
                heapq.heappush(self.events, (sent, next(self.ticket), "come", machine + 1, what))
            else:
                self.ends.append(now)
                if what[0] + 1 < self.rounds:
                    self.arrive(now, 0, (what[0] + 1, what[1]))
            self.start(now, machine)
        return self.ends


def once(jobs):
    return Simulation(jobs, 1).run()[-1]


def each_round(jobs, rounds=300):
    ends = Simulation(jobs, rounds).run()
    return (ends[-1] - ends[len(ends) // 2 - 1]) / (rounds // 2)


class Pipeline(EstimateTest):
    def rows(self, batch, words, stages, tensor=1, runtime="ideal", hardware=None):
        """Seconds and active joules of each stage for one micro-batch, from the kernels of devices without a
        pipeline."""
        where = ["--hardware", hardware] if hardware else ["--hardware-file", self.device()]
        report = self.estimate(MODEL, *where, "--precision", "fp16", "--batch", batch, "--tensor-parallel", tensor, "--top", 0,
                               "--runtime", runtime, *words)
        ends = list(itertools.accumulate(layers_of(LAYERS, stages)))
        busy, active, seen = [0] * stages, [0] * stages, False
        for row in report["subgraphs"]:
            seen |= row["layer"] is not None
            stage = next(s for s, end in enumerate(ends) if row["layer"] < end) if row["layer"] is not None else \
                stages - 1 if seen else 0
            busy[stage] += row["latency_s"]
            active[stage] += row["energy_j"] - row["static_j"]
        return busy, active, report

    def job(self, busy, tokens, tensor=1, host=0):
        message = tokens * HIDDEN * 2
        send = LATENCY + message / tensor / (0.8 * BANDWIDTH)
        if tensor > 1:  # the receivers gather their parts by a ring all-gather
            send += (tensor - 1) * (LATENCY + message / tensor / (0.8 * BANDWIDTH))
        return {"busy": [host, *busy], "send": [0] + [send] * len(busy)}

    def ask(self, stages, batch, words, *more, tensor=1):
        return self.estimate(MODEL, "--hardware-file", self.device(), "--precision", "fp16", "--batch", batch,
                             "--tensor-parallel", tensor, "--pipeline-parallel", stages, "--top", 0, *words, *more)

    def check(self, stages, batch, micro, words, tokens, tensor=1):
        decodes = "decode" in words
        sizes = [batch // micro + (i < batch % micro) for i in range(micro)]
        made = {size: self.rows(size, words, stages, tensor) for size in set(sizes)}
        jobs = [self.job(made[size][0], tokens * size, tensor) for size in sizes]
        took = each_round(jobs) if decodes else once(jobs)
        report = self.ask(stages, batch, words, "--micro-batches", micro, tensor=tensor)
        with self.subTest(stages=stages, batch=batch, micro=micro, words=words, tensor=tensor):
            self.assertClose(report["latency_s"], took, 5e-3 if decodes else 1e-6)
            self.assertEqual(report["pipeline"]["micro_batches"], micro)
            self.assertEqual([stage["layers"] for stage in report["pipeline"]["stages"]], layers_of(LAYERS, stages))
            messages = batch * tokens * HIDDEN * 2 * tensor * (stages - 1)
            self.assertClose(report["traffic_bytes"]["link"] - sum(made[size][2]["traffic_bytes"]["link"] for size in sizes),
                             messages, 1e-6)
            active = sum(sum(made[size][1]) for size in sizes) + 2 * messages * JOULES_PER_BYTE
            idle = IDLE_W * stages * tensor * report["latency_s"]
            self.assertClose(report["energy_j"]["static"], idle, 1e-6)
            self.assertClose(report["energy_j"]["total"], active + idle, 1e-6)
            self.assertClose(sum(s["energy_j"] for s in report["pipeline"]["stages"]), report["energy_j"]["total"], 1e-9)
            self.assertClose(sum(row["energy_j"] for row in report["subgraphs"]), report["energy_j"]["total"], 1e-9)
            self.assertClose(sum(row["latency_s"] for row in report["subgraphs"]), report["latency_s"], 1e-9)
            busy = sum(sum(made[size][0]) for size in sizes)
            self.assertClose(report["pipeline"]["bubble"], 1 - busy / (stages * report["latency_s"]), 1e-6)
            self.assertEqual(report["macs"], sum(made[size][2]["macs"] for size in sizes))

    def test_decode_agrees_with_simulation(self):
        words = ["--phase", "decode", "--context", "1000"]
        for stages, batch, micro in ((2, 2, 2), (4, 8, 4), (4, 7, 3), (3, 5, 2), (5, 1, 1), (4, 32, 16), (16, 16, 16)):
            self.check(stages, batch, micro, words, 1)
        self.check(3, 6, 3, words, 1, tensor=2)

    def test_prefill_agrees_with_simulation(self):
        words = ["--phase", "prefill", "--prompt-tokens", "300"]
        for stages, batch, micro in ((2, 2, 2), (4, 8, 4), (4, 7, 3), (7, 9, 5)):
            self.check(stages, batch, micro, words, 300)
        self.check(2, 4, 4, words, 300, tensor=2)

    def test_without_micro_batches_stages_are_sequential(self):
        """The time is that of one device plus the messages."""
        words = ["--phase", "decode", "--context", "100"]
        one = self.estimate(MODEL, "--hardware-file", self.device(), "--precision", "fp16", *words)
        for stages in (2, 4, 8):
            many = self.ask(stages, 1, words)
            self.assertClose(many["latency_s"], one["latency_s"] + (stages - 1) * (LATENCY + HIDDEN * 2 / (0.8 * BANDWIDTH)))
            self.assertGreater(many["pipeline"]["bubble"], 1 - 1 / stages)
            self.assertEqual(many["setting"]["devices"], stages)

    def test_scheduler_overlaps_with_stages(self):
        """vLLM takes 2.2 ms plus 20 us per sequence to schedule while the stages process other micro-batches."""
        words = ["--phase", "decode", "--context", "100"]
        for stages, batch in ((2, 2), (2, 6), (4, 4)):
            micro = min(stages, batch)
            busy, _, _ = self.rows(batch // micro, words, stages, runtime="torch-compile", hardware="h100-sxm")
            host = 2.2e-3 + 20e-6 * batch / micro
            took = each_round([{"busy": [host, *busy], "send": [0] * (stages + 1)}] * micro)
            report = self.on("h100-sxm", MODEL, "--precision", "fp16", "--batch", batch, "--pipeline-parallel", stages, *words,
                             "--runtime", "vllm")
            self.assertClose(report["latency_s"], took, 0.01)  # plus messages over NVLink

    def test_chunked_prefill(self):
        """Chunks attend to earlier ones, so together they do the work of the prompt; each computes its own logits."""
        words = ["--phase", "prefill", "--prompt-tokens", "4000"]
        whole = self.ask(2, 1, words, "--micro-batches", 1)
        for chunks in (2, 4, 5):
            parts = self.ask(2, 1, words, "--micro-batches", chunks)
            self.assertEqual(parts["macs"], whole["macs"] + (chunks - 1) * HIDDEN * VOCABULARY)
            self.assertLess(parts["latency_s"], whole["latency_s"])
            self.assertLess(parts["pipeline"]["bubble"], whole["pipeline"]["bubble"])
            self.assertEqual(parts["memory_bytes"]["kv_cache"], whole["memory_bytes"]["kv_cache"])
        many = self.ask(2, 1, words, "--micro-batches", 20)  # of which five are built
        self.assertClose(many["macs"], whole["macs"] + 19 * HIDDEN * VOCABULARY, 1e-3)
        usual = self.ask(2, 1, ["--phase", "prefill", "--prompt-tokens", "20000"])
        self.assertEqual(usual["pipeline"]["micro_batches"], 3)  # of 8192 at most

    def test_requests_are_sums_of_passes(self):
        words = ["--prompt-tokens", "200", "--output-tokens", "4"]
        report = self.ask(4, 6, words)
        prefill = self.ask(4, 6, ["--phase", "prefill", "--prompt-tokens", "200"])
        steps = [self.ask(4, 6, ["--phase", "decode", "--context", 200 + i]) for i in (1, 2, 3)]
        for key in ("latency_s", "macs"):
            self.assertClose(report[key], prefill[key] + sum(step[key] for step in steps))
        self.assertClose(report["energy_j"]["total"],
                         prefill["energy_j"]["total"] + sum(step["energy_j"]["total"] for step in steps))
        self.assertClose(report["request"]["first_token_s"], prefill["latency_s"])
        self.assertClose(report["request"]["tpot_s"], sum(step["latency_s"] for step in steps) / 3)

    def test_memory_of_stages(self):
        """The head is tied to the embedding: the first and the last stage both hold it."""
        words = ["--phase", "decode", "--context", "1000"]
        one = self.estimate(MODEL, "--hardware-file", self.device(), "--precision", "fp16", "--batch", 8, *words)["memory_bytes"]
        report = self.ask(4, 8, words)
        peaks = [stage["memory_peak_bytes"] for stage in report["pipeline"]["stages"]]
        table = VOCABULARY * HIDDEN * 2
        layer = (one["weights"] - table) / LAYERS
        self.assertClose(peaks[1], 4 * layer + one["kv_cache"] / 4, 0.01)
        self.assertClose(peaks[0], peaks[1] + table, 0.01)
        self.assertClose(peaks[3], peaks[1] + table, 0.01)
        self.assertEqual(report["memory_bytes"]["total_peak"], max(peaks))

    def test_published_speedups(self):
        """llama.cpp prompts on eight devices relative to one, in chunks of 512, of which a single one gains nothing.
        Absolute speeds of that version are two thirds of the estimates; four chunks overlapped less than possible."""
        speeds = {}
        for row in PUBLISHED:
            report = self.on(row["device"], row["model"], "--runtime", row["runtime"], "--precision", row["precision"], "--phase",
                             "prefill", "--prompt-tokens", row["input"], "--pipeline-parallel", row["stages"])
            speeds[row["stages"], row["input"]] = report["each"]["per_s"], float(row["value"])
        for tokens, most in (("512", 1.02), ("1024", 1.02), ("2048", 1.35)):
            estimated, published = (many / one for one, many in zip(speeds["1", tokens], speeds["8", tokens]))
            with self.subTest(tokens=tokens, estimated=estimated, published=published):
                self.assertTrue(0.97 <= estimated / published <= most, estimated / published)

    def test_rejects_invalid_pipelines(self):
        hardware = ["--hardware-file", self.device()]
        for words, code, said in (
                (["--model", MODEL, "--pipeline-parallel", "17"], 1, f"{MODEL}: 17 stages of pipeline parallelism, but 16 layers"),
                (["--model", "resnet18", "--pipeline-parallel", "2"], 2, "divides the layers of a decoder: resnet18 is not one"),
                (["--model", MODEL, "--micro-batches", "2"], 2, "--micro-batches needs --pipeline-parallel"),
                (["--model", MODEL, "--pipeline-parallel", "2", "--serve"], 2, "--serve takes no --pipeline-parallel")):
            self.assertIn(said, self.run_ipw(*words, *hardware, code=code).stderr)
        alone = {key: value for key, value in json.loads(self.device().read_text()).items() if key != "link"}
        (self.root / "alone.json").write_text(json.dumps(alone))
        done = self.run_ipw("--model", MODEL, "--hardware-file", self.root / "alone.json", "--pipeline-parallel", "2", code=1)
        self.assertIn("no link between devices stated", done.stderr)

    def test_text_describes_pipeline(self):
        text = self.run_ipw("--model", MODEL, "--hardware-file", self.device(), "--pipeline-parallel", "3", "--batch", "3").stdout
        self.assertIn("3 devices, 3 stages", text)
        self.assertRegex(text, r"pipeline +3 stages of 5 to 6 layers, 3 micro-batches; bubble [\d.]+ % of the time")


if __name__ == "__main__":
    unittest.main()
