#!/usr/bin/env python3
"""ipw estimate --serve: figures against an independent simulation that records each token, conservation of energy,
loads and SLOs, formats, plots, bad input."""

import json
import random
import re
import shutil
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from compiler import SOURCE  # noqa: E402
from estimates import EstimateTest, figure  # noqa: E402
from program import ipw  # noqa: E402

LLAMA = "llama-3.2-1b"
KV_BYTES = 16 * 2 * 8 * 64 * 2  # per token: layers, K and V, KV heads, head size, bytes
IDLE_W = 40
FIXED, PER_PROMPT, PER_PAIR, PER_SEQUENCE, PER_CONTEXT = 4e-3, 2e-5, 1e-8, 3e-5, 1e-7


def seconds(prompt_tokens, pairs, sequences, context):
    return (FIXED + PER_PROMPT * prompt_tokens + PER_PAIR * pairs + PER_SEQUENCE * sequences
            + PER_CONTEXT * context)


def quantile(values, p):
    values = sorted(values)
    at = p * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


class Job:
    def __init__(self, arrival, prompt, output):
        self.arrival, self.prompt, self.output = arrival, prompt, output
        self.times, self.cached, self.blocks = [], 0, 0

    def missing(self):
        return self.prompt + len(self.times) - self.cached


class Server:
    """The oracle: one replica that records the time of every token."""

    def __init__(self, jobs, sequences, tokens, blocks, block, reserves):
        self.jobs, self.most, self.tokens, self.block = jobs, sequences, tokens, block
        self.reserves, self.free = reserves, blocks
        self.preempted = self.busy = self.now = 0
        self.waiting, self.running = [], []

    def fits(self, job, tokens):
        if self.reserves:
            tokens = job.prompt + job.output
        needed = -(-tokens // self.block) - job.blocks
        if needed > self.free:
            return False
        if needed > 0:
            self.free -= needed
            job.blocks += needed
        return True

    def drop(self):
        job = self.running.pop()
        self.free += job.blocks
        job.blocks = job.cached = 0
        self.waiting.insert(0, job)
        self.preempted += 1

    def choose(self):
        left, chosen, before, at = self.tokens, [], self.preempted, 0
        while at < len(self.running):
            job = self.running[at]
            count = min(job.missing(), left)
            if count:
                while job in self.running and not self.fits(job, job.cached + count):
                    self.drop()
                if job not in self.running:
                    break
                chosen.append((job, count))
                left -= count
            at += 1
        while (self.preempted == before and self.waiting and left
               and len(self.running) < self.most):
            job = self.waiting[0]
            count = min(job.missing(), left)
            if not self.fits(job, count):
                break
            self.running.append(self.waiting.pop(0))
            chosen.append((job, count))
            left -= count
        return chosen

    def step(self):
        chosen = self.choose()
        decodes = [job for job, count in chosen if count == 1 and job.times and job.cached]
        prompts = [(job, count) for job, count in chosen if job not in decodes]
        took = seconds(sum(count for _, count in prompts),
                       sum(count * (count + 2 * job.cached) for job, count in prompts),
                       len(decodes), sum(job.cached + 1 for job in decodes))
        self.now += took
        self.busy += took
        for job, count in chosen:
            job.cached += count
            if not job.missing():
                job.times.append(self.now)
            if len(job.times) == job.output:
                self.running.remove(job)
                self.free += job.blocks

    def run(self):
        coming = list(self.jobs)
        while coming or self.waiting or self.running:
            if not self.waiting and not self.running:
                self.now = max(self.now, coming[0].arrival)
            while coming and coming[0].arrival <= self.now:
                self.waiting.append(coming.pop(0))
            self.step()
        return self


class ServeTest(EstimateTest):
    def trace(self, count, rate, prompt=(20, 400), output=(1, 150), seed=3):
        draw, now, jobs = random.Random(seed), 0.0, []
        for _ in range(count):
            jobs.append(Job(now, draw.randint(*prompt), draw.randint(*output)))
            now += draw.expovariate(rate)
        path = self.root / "trace.csv"
        path.write_text("arrival_s,input_tokens,output_tokens\n" + "".join(
            f"{job.arrival!r},{job.prompt},{job.output}\n" for job in jobs))
        return path, jobs

    def step_times(self):
        rows = [(p, s, c) for p in (0, 100, 500, 2000) for s in (0, 4, 16) for c in (100, 800) if p + s]
        path = self.root / "steps.csv"
        path.write_text("prompt_tokens,sequences,context,seconds\n" + "".join(
            f"{p},{s},{c},{seconds(p, p * p, s, s * c)!r}\n" for p, s, c in rows))
        return path

    def serve(self, *arguments, model=LLAMA, code=0):
        return self.on("h100-sxm", model, "--serve", *arguments, code=code)

    def check_spread(self, spread, values, relative=1e-6):
        self.assertAlmostEqual(spread["mean"], sum(values) / len(values), delta=relative * spread["mean"])
        for name, p in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
            wanted = quantile(values, p)
            self.assertAlmostEqual(spread[name], wanted, delta=relative * wanted, msg=name)


class OracleTest(ServeTest):
    def compare(self, sequences, tokens, kv_tokens, server):
        path, jobs = self.trace(400, 6)
        report = self.estimate(
            LLAMA, "--hardware-file", self.device(), "--serve", "--trace", path, "--server", server,
            "--step-times", self.step_times(), "--max-num-seqs", sequences,
            "--max-num-batched-tokens", tokens, "--kv-cache-gb", repr((kv_tokens + 0.5) * KV_BYTES / 1e9))
        block = {"vllm": 16, "tensorrt-llm": 32, "llama.cpp": 1}[server]
        oracle = Server(jobs, sequences, tokens, kv_tokens // block, block, server != "vllm").run()
        point = report["points"][0]
        self.assertEqual(report["server"]["policy"], server)
        self.assertEqual(report["server"]["kv_cache_tokens"], kv_tokens)
        self.assertEqual(point["preemptions"], oracle.preempted)
        self.check_spread(point["ttft_s"], [job.times[0] - job.arrival for job in jobs])
        self.check_spread(point["latency_s"], [job.times[-1] - job.arrival for job in jobs])
        self.check_spread(point["tpot_s"], [(job.times[-1] - job.times[0]) / (job.output - 1)
                                            for job in jobs if job.output > 1])
        gaps = [b - a for job in jobs for a, b in zip(job.times, job.times[1:])]
        self.check_spread(point["itl_s"], gaps, relative=2e-3)  # histogram buckets
        self.assertAlmostEqual(point["duration_s"], oracle.now, delta=1e-6 * oracle.now)
        tokens_made = sum(job.output for job in jobs)
        self.assertAlmostEqual(point["tokens_per_s"], tokens_made / oracle.now, delta=1e-3)
        energy = point["energy_j"]
        self.assertAlmostEqual(energy["idle"], IDLE_W * (oracle.now - oracle.busy), delta=1e-4)
        self.assertAlmostEqual(energy["total"], energy["steps"] + energy["idle"], delta=1e-6)
        self.assertAlmostEqual(point["energy_per_token_j"] * tokens_made, energy["total"], delta=1e-6)
        self.assertAlmostEqual(point["power_w"], energy["total"] / oracle.now, delta=1e-4)
        self.assertGreater(energy["plus_minus"], 0)
        return point

    def test_preemption_agrees_with_simulation(self):
        self.assertGreater(self.compare(24, 256, 1600, "vllm")["preemptions"], 20)

    def test_chunked_prefill_agrees_with_simulation(self):
        self.compare(64, 70, 100000, "vllm")

    def test_tensorrt_llm_reservations_agree_with_simulation(self):
        """Requests wait until their whole KV cache is free, where vLLM preempts."""
        self.assertEqual(self.compare(24, 256, 1600, "tensorrt-llm")["preemptions"], 0)

    def test_llama_cpp_slots_agree_with_simulation(self):
        self.assertEqual(self.compare(4, 2048, 700, "llama.cpp")["preemptions"], 0)


class LoadTest(ServeTest):
    def test_largest_load_is_the_highest_that_meets_slo(self):
        slo = ("--slo-ttft-ms", "100", "--slo-itl-ms", "12")
        report = self.serve("--request-rate", "1", *slo)
        rate = report["slo"]["largest_load"]["request_rate"]
        self.assertEqual((report["slo"]["percentile"], report["slo"]["limited_by"]), ("p95", "slo"))
        for factor, meets in ((1, True), (1.05, False)):
            point = self.serve("--request-rate", repr(factor * rate), *slo,
                               code=None)["points"][0]
            self.assertEqual(point["meets_slo"], meets)
            self.assertEqual(point["ttft_s"]["p95"] <= 0.1 and point["itl_s"]["p95"] <= 0.012, meets)

    def test_largest_load_never_exceeds_throughput(self):
        for replicas, *slo in ((1, "--slo-itl-ms", "300"), (8, "--slo-ttft-ms", "500")):
            ask = ("--replicas", replicas, "--runtime", "vllm")
            flood, = self.serve("--request-rate", "1e6", *ask)["points"]  # saturated
            report = self.serve("--request-rate", f"5,{3 * flood['requests_per_s']}", *ask, *slo)
            largest = report["slo"]["largest_load"]
            self.assertLessEqual(largest["request_rate"], 1.05 * flood["requests_per_s"])
            # while the last requests are served
            self.assertLessEqual(largest["request_rate"], 1.2 * largest["requests_per_s"])
            self.assertGreater(largest["request_rate"], 0.8 * flood["requests_per_s"])
            self.assertFalse(largest["queue_grows"])
            self.assertEqual(report["slo"]["limited_by"], "capacity")
            self.assertEqual([point["meets_slo"] for point in report["points"]], [True, False])
        text = self.run_ipw("--model", LLAMA, "--hardware", "h100-sxm", "--serve", "--request-rate", "5,1e4",
                            "--slo-itl-ms", "300").stdout
        self.assertRegex(text, r"300.0 ms is limited by capacity, about [0-9.]+ requests/s")
        self.assertIn("exceeds capacity", text)

    def test_no_load_meets_slo(self):
        done = self.run_ipw("--model", LLAMA, "--hardware", "h100-sxm", "--serve", "--requests", "50",
                            "--request-rate", "1", "--slo-ttft-ms", "0.01", code=1)
        self.assertIn("No load meets a p95 TTFT of 10.00 µs.", done.stdout)
        self.assertIn("misses the SLO", done.stdout)

    def test_replicas_share_the_load(self):
        one = self.serve("--request-rate", "200", "--requests", "600")["points"][0]
        four = self.serve("--request-rate", "200", "--requests", "600", "--replicas", "4")["points"][0]
        self.assertLess(four["ttft_s"]["p95"], one["ttft_s"]["p95"])
        self.assertGreater(four["energy_per_token_j"], one["energy_per_token_j"])

    def test_results_depend_on_the_seed_only(self):
        ask = ("--request-rate", "5", "--requests", "100", "--prompt-tokens", "100..500",
               "--output-tokens", "10..50")
        first, again = (self.serve(*ask, "--seed", "4") for _ in range(2))
        self.assertEqual(first, again)
        self.assertNotEqual(first["points"], self.serve(*ask, "--seed", "5")["points"])
        self.assertAlmostEqual(first["load"]["mean_prompt_tokens"], 300, delta=40)

    def test_default_lengths_fit_the_context(self):
        report = self.on("epyc-9654", SOURCE / "models" / "ipw-6m-f16.gguf", "--serve", "--requests", "50")
        load = report["load"]
        self.assertLessEqual(load["mean_prompt_tokens"] + load["mean_output_tokens"], 512)
        self.assertEqual(report["server"]["policy"], "llama.cpp")
        self.assertEqual(len(report["points"]), 8)

    def test_batch_limits_are_those_of_vllm(self):
        """By device memory, as for the API server of vLLM 0.32.0 (vllm/engine/arg_utils.py)."""
        for hardware, sequences, tokens in (("l4", 256, 2048), ("a100-sxm-80gb", 256, 2048), ("h100-sxm", 1024, 8192),
                                            ("h200", 1024, 8192), ("b200", 1024, 16384), ("mi300x", 1024, 16384)):
            server = self.estimate("gpt2", "--hardware", hardware, "--runtime", "vllm", "--serve", "--requests", "5",
                                   "--request-rate", "1")["server"]
            self.assertEqual((server["max_num_seqs"], server["max_num_batched_tokens"]), (sequences, tokens), hardware)

    def test_default_server_is_that_of_the_runtime(self):
        for runtime, server, sequences, tokens in (("tensorrt", "tensorrt-llm", 2048, 8192), ("vllm", "vllm", 1024, 8192),
                                                   ("tensorrt-0.7", "vllm", 1024, 8192), ("llama.cpp", "llama.cpp", 4, 2048)):
            report = self.estimate("gpt2", "--hardware", "h100-sxm", "--runtime", runtime, "--serve", "--requests", "5",
                                   "--request-rate", "1")["server"]
            self.assertEqual((report["policy"], report["max_num_seqs"], report["max_num_batched_tokens"]),
                             (server, sequences, tokens), runtime)

    def test_trace_is_rescaled_to_rate(self):
        path, jobs = self.trace(200, 8)
        own = self.serve("--trace", path)["points"][0]
        span = jobs[-1].arrival
        self.assertAlmostEqual(own["request_rate"], 199 / span, delta=1e-6)
        halved = self.serve("--trace", path, "--request-rate", own["request_rate"] / 2)["points"][0]
        self.assertGreater(halved["duration_s"], 1.9 * span)
        self.assertEqual(self.serve("--trace", path)["load"]["mean_output_tokens"],
                         sum(job.output for job in jobs) / 200)

    def test_cost_and_emissions_per_token(self):
        point = self.serve("--request-rate", "20", "--requests", "300", "--replicas", "2", "--price-per-kwh", "0.3",
                           "--gco2-per-kwh", "400", "--device-price-per-hour", "3")["points"][0]
        kwh = point["energy_per_token_j"] * 1e6 / 3.6e6
        hours = 2 * 1e6 / point["tokens_per_s"] / 3600
        self.assertAlmostEqual(point["cost_per_million_output_tokens"], 0.3 * kwh + 3 * hours, delta=1e-6)
        self.assertAlmostEqual(point["gco2e_per_million_output_tokens"], 400 * kwh, delta=1e-5)
        self.assertIsNone(self.serve("--request-rate", "1", "--requests", "9")["points"][0]
                          ["cost_per_million_output_tokens"])

    def test_single_request_equals_plain_estimate(self):
        """For a decoder, and for models with an audio or prompt encoder, which runs once per request."""
        t5 = self.root / "config.json"
        t5.write_text(json.dumps({
            "model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 512, "d_ff": 2048, "d_kv": 64,
            "num_heads": 8, "num_layers": 6, "vocab_size": 32128, "relative_attention_num_buckets": 32}))
        for model in (LLAMA, "whisper-large-v3", "whisper-tiny", t5):
            for runtime in ("vllm", "ideal") if model == LLAMA else ("vllm",):
                ask = ("--runtime", runtime, "--prompt-tokens", "16", "--output-tokens", "64")
                plain = self.on("h100-sxm", model, *ask)
                served, = self.serve("--requests", "1", "--request-rate", "1", *ask, model=model)["points"]
                for here, there in ((served["ttft_s"]["mean"], plain["request"]["first_token_s"]),
                                    (served["tpot_s"]["mean"], plain["request"]["tpot_s"]),
                                    (served["energy_j"]["steps"], plain["energy_j"]["total"])):
                    self.assertClose(here, there, 0.01)

    def test_every_request_is_encoded(self):
        """Audio of fixed length: energy grows with the number of requests, not with their prompts."""
        def joules(count, prompt):
            return self.serve("--requests", count, "--request-rate", "1e6", "--prompt-tokens", prompt, "--output-tokens",
                              "1", model="whisper-large-v3")["points"][0]["energy_j"]["steps"]
        different = joules(24, "4..64")
        self.assertClose(different / joules(24, "34"), 1, 0.1)
        self.assertClose(joules(48, "4..64") / different, 2, 0.1)

    def test_default_kv_cache_share_is_documented(self):
        stated = {float(re.search(r"of (0\.\d+) of its memory", text).group(1)) for text in (
            re.sub(r"\s+", " ", ipw(None, "estimate", "--help").stdout),
            (SOURCE / "docs" / "man" / "ipw-estimate.1").read_text())}
        share, = stated
        server = self.estimate("gpt2", "--hardware-file", self.device(), "--serve", "--requests", "5", "--request-rate",
                               "1", "--max-num-batched-tokens", "64", "--max-num-seqs", "8")["server"]
        cache = server["kv_cache_tokens"] * server["kv_cache_bytes_per_token"]
        weights = 124.4e6 * 2  # GPT-2 in fp16; activations of 64 tokens take some MB
        self.assertAlmostEqual((cache + weights) / (16 * 2**30), share, delta=0.005)

    def test_given_kv_cache_is_limited_by_known_memory(self):
        ask = ("--serve", "--requests", "5", "--request-rate", "1", "--kv-cache-gb")
        done = self.run_ipw("--model", LLAMA, "--hardware", "h100-sxm", *ask, "500", code=2)
        left = float(re.search(r"--kv-cache-gb 500 exceeds the (\S+) GB that .* leave", done.stderr).group(1))
        self.assertAlmostEqual(left, 85.9 - 2 * 1.24, delta=5)  # 80 GiB minus 1.24 G weights; activations take some GB
        self.assertEqual(self.serve(*ask[1:], left - 0.1)["server"]["kv_cache_tokens"], (left - 0.1) * 1e9 // KV_BYTES)
        self.run_ipw("--model", LLAMA, "--hardware", "h100-sxm", *ask, left + 0.1, code=2)
        memory = {"name": "RAM", "bandwidth": figure(1000, "gb_per_s"), "energy": figure(50, "pj")}
        server = self.estimate(LLAMA, "--hardware-file", self.device(memories=[memory]), *ask, "500")["server"]
        self.assertEqual(server["kv_cache_tokens"], 500e9 // KV_BYTES)

    def test_title_states_runtime(self):
        for runtime in ("vllm", "ideal", "llama.cpp"):
            plain, served = (self.run_ipw("--model", LLAMA, "--hardware", "h100-sxm", "--runtime", runtime, *more)
                             .stdout.splitlines()[1] for more in ((), ("--serve", "--requests", "5")))
            named = re.search(r", ([^,:]+): ", plain).group(1)
            self.assertIn(runtime, named)
            self.assertIn(f" under load, {named}: ", served)

    def test_few_measured_steps_have_an_unknown_plus_minus(self):
        """Rows of the same step: the fit is the constant c that minimizes the sum of (c / s - 1)^2, c = sum 1/s / sum
        1/s^2.  With as many rows as terms (5), the error is unknown."""
        took = [0.0100, 0.0104, 0.0097, 0.0101, 0.0106, 0.0095, 0.0102, 0.0099]
        c = sum(1 / s for s in took) / sum(1 / s**2 for s in took)
        path = self.root / "steps.csv"
        ask = ("--serve", "--requests", "5", "--request-rate", "1", "--step-times", path)
        for count in (8, 5, 4):
            path.write_text("prompt_tokens,sequences,context,seconds\n" + "".join(f"0,1,0,{s}\n" for s in took[:count]))
            report, text = self.serve(*ask[1:]), self.run_ipw("--model", LLAMA, "--hardware", "h100-sxm", *ask).stdout
            stated, ttft = report["step_times"]["time_relative_plus_minus"], report["points"][0]["ttft_s"]
            if count == 8:
                self.assertAlmostEqual(stated, (sum((c / s - 1)**2 for s in took) / (8 - 5))**0.5, delta=1e-9)
                self.assertGreater(ttft["plus_minus"]["mean"], 0)
            else:
                self.assertEqual((stated, set(ttft["plus_minus"].values())), (None, {None}))
                self.assertIn("± unknown", text)
            self.assertNotIn("±0 %", text)

    def test_unknown_energy_stays_unknown(self):
        device = self.device(power={"limit": figure(200, "w")})
        point = self.estimate(LLAMA, "--hardware-file", device, "--serve", "--request-rate", "1",
                              "--requests", "20")["points"][0]
        self.assertIsNone(point["energy_per_token_j"])
        self.assertIsNone(point["power_w"])
        self.assertGreater(point["ttft_s"]["p50"], 0)

    @unittest.skipUnless(shutil.which("gnuplot"), "needs gnuplot")
    def test_plot_of_energy_by_load(self):
        path = self.root / "load.svg"
        self.run_ipw("--model", LLAMA, "--hardware", "h100-sxm", "--serve", "--requests", "50", "--plot", path)
        self.assertIn("energy per token by load", path.read_text())

    def test_plain_request_has_ttft_and_tpot(self):
        request = self.on("h100-sxm", LLAMA, "--output-tokens", "11")["request"]
        decode = request["latency_s"] - request["first_token_s"]
        self.assertAlmostEqual(request["tpot_s"], decode / 10, delta=1e-9)
        self.assertAlmostEqual(request["tokens_per_s_per_user"], 10 / decode, delta=1e-6)
        text = self.run_ipw("--model", LLAMA, "--hardware", "h100-sxm").stdout
        self.assertRegex(text, r"per user +TTFT .* ± .*, TPOT .* ± .* tokens/s")


class BadInputTest(ServeTest):
    def refused(self, words, *arguments, model=LLAMA, hardware="h100-sxm"):
        done = self.run_ipw("--model", model, "--hardware", hardware, *map(str, arguments), code=2)
        self.assertIn(words, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_rejects_invalid_rates(self):
        for rate in ("0", "-1", "1,", "5:1:1", "x"):
            self.refused("requests per second above 0", "--serve", f"--request-rate={rate}")

    def test_rejects_options_without_effect(self):
        self.refused("--request-rate needs --serve", "--request-rate", "1")
        self.refused("--slo-ttft-ms needs --serve", "--slo-ttft-ms", "1")
        self.refused("--serve takes no --batch", "--serve", "--batch", "4")
        self.refused("--serve takes no --phase", "--serve", "--phase", "decode")
        self.refused("--slo-percentile needs", "--serve", "--slo-percentile", "p99")
        self.refused("no --max option", "--serve", "--max-power-w", "5")
        self.refused("one device and precision", "--serve", "--precision", "fp16,int8")
        self.refused("autoregressive decoders", "--serve", model="resnet50")
        self.refused("use --prompt-tokens", "--input-tokens", "4")
        self.refused("whole number from 1", "--output-tokens", "4..5")

    def test_rejects_invalid_lengths(self):
        self.refused("131100 tokens exceeds the context of 131072 tokens of llama-3.2-1b", "--serve",
                     "--prompt-tokens", "131000", "--output-tokens", "100")
        self.refused("takes one length (512) or a range", "--serve", "--prompt-tokens", "100,200")
        self.refused("above --max-num-batched-tokens", "--serve", "--max-num-seqs", "64",
                     "--max-num-batched-tokens", "32")

    def test_rejects_without_memory_for_kv_cache(self):
        self.refused("no memory is left for the KV cache", "--serve", model="llama-3.1-70b")
        self.refused("exceeds the KV cache, which holds", "--serve", "--kv-cache-gb", "0.001")

    def test_rejects_invalid_traces(self):
        path = self.root / "bad.csv"
        for text, words in (("", "empty"), ("arrival_s,input_tokens\n1,2\n", "missing column output_tokens"),
                            ("arrival_s,input_tokens,output_tokens\n", "no requests"),
                            ("arrival_s,input_tokens,output_tokens\n2,5,5\n1,5,5\n", "before the previous row"),
                            ("arrival_s,input_tokens,output_tokens\n2,0,5\n", "must be an integer, 1"),
                            ("arrival_s,input_tokens,output_tokens\n2,1.5,5\n", "must be an integer, 1"),
                            ("arrival_s,input_tokens,output_tokens\n2,5,\n", "must be an integer, 1"),
                            ("arrival_s,input_tokens,output_tokens\nx,5,5\n", "must be a number")):
            path.write_text(text)
            done = self.run_ipw("--model", LLAMA, "--hardware", "h100-sxm", "--serve", "--trace", path, code=1)
            self.assertIn(words, done.stderr)
        path.write_text("arrival_s,input_tokens,output_tokens\n2,5,5\n2,5,5\n")
        self.refused("arrive at the same time", "--serve", "--trace", path)
        self.refused("omit", "--serve", "--trace", path, "--prompt-tokens", "5")

    def test_rejects_invalid_step_times(self):
        path = self.root / "steps.csv"
        path.write_text("prompt_tokens,sequences,context,seconds\n1,0,0,0\n1,1,1,1\n2,1,1,1\n")
        for words in ("must be above 0", "at least 3 rows"):
            done = self.run_ipw("--model", LLAMA, "--hardware", "h100-sxm", "--serve", "--step-times", path, code=1)
            self.assertIn(words, done.stderr)
            path.write_text("prompt_tokens,sequences,context,seconds\n1,0,0,1\n")


if __name__ == "__main__":
    unittest.main()
