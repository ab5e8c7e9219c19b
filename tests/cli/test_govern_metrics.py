#!/usr/bin/env python3
# test: real time, asan
"""ipw govern --dry-run: supported metrics of servers, and unexpected responses."""

import json
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from machines import ControllableGpu  # noqa: E402
from program import wait_until, ipw, main_parallel  # noqa: E402
from test_govern import ITL, TTFT, Endpoint  # noqa: E402


class Servers(unittest.TestCase):
    """Names and types of metrics, and responses of servers."""

    def setUp(self):
        self.machine = ControllableGpu("value throttle 0 0\npower 0 constant 200")
        self.addCleanup(self.machine.close)

    def govern(self, answer, *options):
        endpoint = Endpoint(answer)
        self.addCleanup(endpoint.close)
        log = self.machine.root / f"log-{endpoint.port}"
        done = ipw(self.machine, "govern", "--dry-run", "--metrics-url", endpoint.url, "--interval", 0.3, "--duration",
                   1.4, "--log", log, *options)
        steps = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return done, steps

    def growing(self, *lines):
        """A response whose {n} increases by one per reading."""
        reading = iter(range(1, 1000))
        return lambda _: "\n".join(lines).replace("{n}", "%d" % next(reading)) + "\n"

    def test_metric_names_of_servers(self):
        histogram = ('{name}_bucket{{le="0.01"}} 0', '{name}_bucket{{le="0.05"}} {n}00',
                     '{name}_bucket{{le="+Inf"}} {n}00', "{name}_sum {n}", "{name}_count {n}00")
        for option, key, names in (
                ("--slo-itl-ms", "itl_ms", (ITL, "vllm:time_per_output_token_seconds",
                                            "sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds",
                                            "tgi_request_mean_time_per_token_duration")),
                ("--slo-ttft-ms", "ttft_ms", (TTFT, "sglang:time_to_first_token_seconds"))):
            def one(name, option=option):
                lines = [line.replace("{name}", name).replace("{{", "{").replace("}}", "}") for line in histogram]
                return self.govern(self.growing(*lines), option, 80)
            for name, (done, steps) in zip(names, ThreadPoolExecutor().map(one, names)):
                with self.subTest(name):
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(name, done.stderr)
                    self.assertNotIn("no bucket bound between", done.stderr)  # 80 ms is above all of them
                    self.assertAlmostEqual(steps[0][key], 48, places=6)  # 0.95 of the way from 10 to 50

    def test_mean_latency_from_llama_cpp_counters(self):
        """And a rate, unless a reading is so late on a busy machine that its time is unknown: then it is repeated."""
        def has_rate():
            done, steps = self.govern(self.growing("llamacpp:tokens_predicted_total {n}00",
                                                   "llamacpp:tokens_predicted_seconds_total {n}.5"), "--slo-itl-ms", 80)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertAlmostEqual(steps[0]["itl_ms"], 10)
            self.assertTrue(steps[0]["itl_is_mean"])
            return any((step["tokens_per_s"] or 0) > 100 for step in steps)
        wait_until(has_rate, "a rate of tokens, 100 of which come between two readings")

    def test_summary_metrics(self):
        name = "tgi_request_mean_time_per_token_duration"
        done, steps = self.govern(self.growing(f'{name}{{quantile="0.5"}} 0.02', f'{name}{{quantile="0.95"}} 0.03',
                                               f"{name}_sum {{n}}", f"{name}_count {{n}}00"), "--slo-itl-ms", 80)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(steps[0]["itl_ms"], 30)

    def test_wide_buckets_around_the_slo_are_reported(self):
        lines = [f'{ITL}_bucket{{le="{le}"}} {{n}}00' for le in ("0.025", "0.05", "+Inf")]
        done, _ = self.govern(self.growing(*lines, f"{ITL}_sum {{n}}", f"{ITL}_count {{n}}00"), "--slo-itl-ms", 50, "-q")
        self.assertIn(f"{ITL} has no bucket bound between 25 and 50 ms", done.stderr)

    def test_an_slo_above_the_last_bound_is_reported(self):
        lines = [f'{ITL}_bucket{{le="{le}"}} {{n}}00' for le in ("0.05", "0.1", "+Inf")]
        lines += [f"{ITL}_sum {{n}}", f"{ITL}_count {{n}}00"]
        told = f"{ITL} has no bucket bound above 100 ms"
        self.assertIn(told, self.govern(self.growing(*lines), "--slo-itl-ms", 500, "-q")[0].stderr)
        self.assertNotIn(told, self.govern(self.growing(*lines), "--slo-itl-ms", 100, "-q")[0].stderr)

    def test_beyond_the_last_bucket_is_a_violation(self):
        done, steps = self.govern(self.growing(f'{ITL}_bucket{{le="0.05"}} 0', f'{ITL}_bucket{{le="+Inf"}} {{n}}00',
                                               f"{ITL}_sum {{n}}", f"{ITL}_count {{n}}00"), "--slo-itl-ms", 80)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(steps[0]["violated"])

    def test_series_that_appears_with_first_request(self):
        texts = iter(["vllm:num_requests_running 0\n"] * 2 + [
            f'{ITL}_bucket{{le="0.05"}} {n}00\n{ITL}_bucket{{le="+Inf"}} {n}00\n{ITL}_sum 1\n{ITL}_count {n}00\n'
            for n in range(1, 50)])
        done, steps = self.govern(lambda _: next(texts), "--slo-itl-ms", 80)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIsNone(steps[0]["itl_ms"])
        self.assertAlmostEqual(steps[1]["itl_ms"], 47.5)

    def test_missing_metric_is_named_once_requests_arrive(self):
        histogram = (f'{TTFT}_bucket{{le="0.05"}} {{n}}00', f'{TTFT}_bucket{{le="+Inf"}} {{n}}00', f"{TTFT}_sum {{n}}",
                     f"{TTFT}_count {{n}}00")
        done, steps = self.govern(self.growing(*histogram), "--slo-itl-ms", 80)
        self.assertEqual({step["problem"] for step in steps},
                         {"requests were served, but there is no metric of inter-token latency yet"},
                         done.stderr)
        self.assertIn("no metric of inter-token latency yet", done.stdout)
        _, steps = self.govern(lambda _: "\n".join(histogram).replace("{n}", "7") + "\n", "--slo-itl-ms", 80)
        self.assertEqual({step["problem"] for step in steps}, {"no requests"})

    def test_waits_for_more_observations(self):
        done, steps = self.govern(self.growing(f'{ITL}_bucket{{le="0.05"}} {{n}}', f'{ITL}_bucket{{le="+Inf"}} {{n}}',
                                               f"{ITL}_sum {{n}}", f"{ITL}_count {{n}}"), "--slo-itl-ms", 80)
        self.assertEqual({step["problem"] for step in steps}, {"too few requests yet"}, done.stderr)

    def test_rejects_responses_without_metrics(self):
        for answer, said in ((lambda _: 404, "HTTP status 404"), (lambda _: "<html>\n<p>no\n", "Prometheus' text format"),
                             (lambda _: "", "no known metric of inter-token latency"),
                             (lambda _: "go_goroutines 5\n", "no known metric of inter-token latency")):
            with self.subTest(said):
                done, steps = self.govern(answer, "--slo-itl-ms", 80)
                self.assertEqual((done.returncode, steps), (1, []), done.stderr)
                self.assertIn(said, done.stderr)

    def test_rejects_invalid_options(self):
        url = ["--metrics-url", "http://127.0.0.1:9"]
        for words, code, said in (
                ([], 2, "missing objective"), (["--slo-itl-ms", 50], 2, "--metrics-url"),
                (["--max-power-w", 100, *url], 2, "needs --slo-ttft-ms or --slo-itl-ms"),
                (["--slo-itl-ms", -1, *url], 2, "--slo-itl-ms"), (["--slo-itl-ms", "x", *url], 2, "--slo-itl-ms"),
                (["--slo-itl-ms", 50, *url], 1, "127.0.0.1"),
                (["--slo-itl-ms", 50, "--metrics-url", "ftp://x"], 2, "http"),
                (["--max-power-w", 300, "--lowest", 5000], 2, "above the highest setting"),
                (["--max-power-w", 300, "--model", "/none", "--set", "power-limit"], 2, "--model is for clocks"),
                (["--max-power-w", 300, "--set", "power-limit"], 2, "nvidia-smi -pl 300"),
                (["--max-power-w", 300, "--application", "a"], 2, "needs --model"),
                (["--max-power-w", 300, "--model", "/none"], 1, "/none"),
                (["--max-power-w", 300, "--devices", "7"], 1, "7"),
                (["--max-power-w", 300, "--log", "/none/log"], 1, "/none/log"),
                (["--max-power-w", 300, "--set", "memory"], 2, "--set"), (["word"], 2, "word")):
            with self.subTest(words):
                done = ipw(self.machine, "govern", "--dry-run", "--duration", 0.5, *words)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    main_parallel()
