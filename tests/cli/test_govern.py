#!/usr/bin/env python3
# test: real time
"""ipw govern with a fake GPU and a simulated server: latency and power follow the clock set in the fake NVML.
Prometheus' client library writes the metrics, and its parser is the oracle."""

import json
import math
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import oracle  # noqa: E402
from machines import ControllableGpu  # noqa: E402
from program import IPW, TIMEOUT_S, ipw, main_parallel  # noqa: E402

oracle.use()
try:
    import prometheus_client
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    prometheus_client = None

FMAX = 1785
RESTORED = (ControllableGpu.FREE, "0 graphics 0 0 memory 0 0 limit 700000")
ITL, TTFT = "vllm:inter_token_latency_seconds", "vllm:time_to_first_token_seconds"


class Endpoint:
    """Serves the result of `text()`; `texts` are all responses so far."""

    def __init__(self, text, port=0):
        self.texts, endpoint = [], self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                body = text(self.path)
                status = 200 if isinstance(body, str) else body
                body = body.encode() if isinstance(body, str) else b"no"
                endpoint.texts.append(body.decode())
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Plant(ControllableGpu):
    """A server whose inter-token latency is `itl_ms` at the highest clock; `share` of it depends on the clock.  It has
    no thread that a busy machine could delay: its work is computed when its metrics are read, and the fake NVML
    computes power from clock and limit."""

    BOUNDS = [0.001 * 1.03 ** i for i in range(200)]
    TOKENS_PER_S = 1000

    def __init__(self, itl_ms=30.0, share=1.0, watts=600.0, has_ttft=False):
        self.itl_ms, self.share, self.load, self.stopped = itl_ms, share, 1.0, False
        super().__init__("value throttle 0 0\nvalue utilisation 0 90\nvalue clock_sm_max 0 1785\nvalue clock_sm 0 1785\n"
                         f"tick 0 0.02\npower 0 clocked 80 {watts} 2.5\n")
        self.registry = prometheus_client.CollectorRegistry()
        self.itl = self.histogram(ITL)
        self.ttft = self.histogram(TTFT) if has_ttft else None
        self.tokens = prometheus_client.Counter("vllm:generation_tokens", "tokens", registry=self.registry)
        self.lock, self.before, self.answers = threading.Lock(), time.monotonic(), []
        self.endpoint = Endpoint(self.text)

    def histogram(self, name):
        return prometheus_client.Histogram(name, "seconds", ["model_name"], buckets=self.BOUNDS, registry=self.registry)

    def text(self, path):
        """`answers` are used first: each is a status, or a function called before the metrics are read."""
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, int):
            return answer
        if answer:
            answer()
        with self.lock:
            self.work()
            return prometheus_client.generate_latest(self.registry).decode() if path == "/metrics" else 404

    def clock(self):
        return int(self.settings().split()[2]) or FMAX

    def latency_s(self):
        x = FMAX / self.clock()
        return self.itl_ms * 1e-3 * self.load * (self.share * x + 1 - self.share)

    def work(self):
        now, latency = time.monotonic(), self.latency_s()
        for k in range(0 if self.stopped else 100):
            self.itl.labels("m").observe(latency * (0.95 + 0.001 * k))
        for k in range(40 if self.ttft else 0):
            self.ttft.labels("m").observe(latency * (9 + 0.1 * k))
        self.tokens.inc(0 if self.stopped else self.TOKENS_PER_S * (now - self.before))
        self.before = now

    def change(self, old, new):
        """Replaces text in the script of the fake NVML."""
        text = (self.root / "nvml.txt").read_text()
        assert old in text
        self.script(text.replace(old, new))

    def close(self):
        self.endpoint.close()
        super().close()


def quantile(older, newer, name, p):
    """Quantile of the increase of a histogram between two texts, like Prometheus' histogram_quantile."""
    def buckets(text):
        return {float(sample.labels["le"]): sample.value for family in text_string_to_metric_families(text)
                for sample in family.samples if sample.name == f"{name}_bucket"}
    before, after = buckets(older), buckets(newer)
    counts = [(le, count - before.get(le, 0)) for le, count in sorted(after.items())]
    rank, below, low = p * counts[-1][1], 0, 0
    for le, count in counts:
        if count >= rank and count > below:
            return low if math.isinf(le) else low + (le - low) * (rank - below) / (count - below)
        below, low = count, le
    return None


@unittest.skipUnless(prometheus_client, "needs prometheus_client")
class GovernTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = Path(folder.name) / "log.jsonl"

    def plant(self, *arguments, **options):
        plant = Plant(*arguments, **options)
        self.addCleanup(plant.close)
        return plant

    def words(self, plant, *options, objective=("--slo-itl-ms", 60)):
        url = ["--metrics-url", plant.endpoint.url] if "--max-power-w" not in objective else []
        return [*map(str, ["govern", *objective, *url, "--interval", 0.25, "--log", self.log, *options])]

    def start(self, plant, *options, stdout=subprocess.DEVNULL, **more):
        process = subprocess.Popen([IPW, *self.words(plant, *options, **more)], env=plant.environment(), text=True,
                                   stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def steps(self, log=None):
        log = log or self.log
        lines = log.read_text().splitlines() if log.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}")]

    def wait_for(self, condition, process=None):
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, self.steps()[-5:])
            if process and process.poll() is not None:
                self.fail(f"ended with {process.returncode}: {process.stderr.read()}")
            time.sleep(0.02)

    def states(self, plant):
        return list((plant.root / "run/ipw").glob("*.state"))

    def lowered(self, plant, *options, **more):
        """Starts a process and waits until it has lowered the clock."""
        process = self.start(plant, *options, **more)
        self.wait_for(lambda: plant.clock() < FMAX, process)
        return process

    def run_json(self, plant, *options, steps=24, **more):
        """Runs it for this many steps, however long they take."""
        process = self.start(plant, "--json", *options, stdout=subprocess.PIPE, **more)
        self.addCleanup(process.stdout.close)
        self.wait_for(lambda: len(self.steps()) >= steps, process)
        process.terminate()
        result = json.loads(process.stdout.read())
        self.assertEqual(process.wait(TIMEOUT_S), 128 + signal.SIGTERM)
        self.assertEqual(result["signal"], signal.SIGTERM)
        self.assertIn(plant.settings(), RESTORED)
        self.assertEqual(self.states(plant), [])
        return result


class ControlLoop(GovernTest):
    def test_settles_below_slo_and_saves_power(self):
        plant = self.plant(itl_ms=30, share=1)
        result = self.run_json(plant)
        steps = self.steps()
        changes = [i for i, step in enumerate(steps) if step["change"]]
        self.assertTrue(changes)
        self.assertLessEqual(changes[-1], 10, steps)
        self.assertEqual(result["violations"], 0)
        # 30 ms at 1785 MHz with a 95th percentile 4 % above: 60 ms would be at 930 MHz.
        self.assertGreaterEqual(steps[-1]["setting"], 930)
        self.assertLessEqual(steps[-1]["setting"], 1065)
        self.assertLess(steps[-1]["itl_ms"], 60)
        self.assertAlmostEqual(steps[-1]["clock_mhz"], steps[-1]["setting"], delta=1)
        power = result["mean_power_w"]
        self.assertLess(power["governed"], 0.7 * power["default"])
        self.assertEqual(result["metrics"], {"ttft": None, "itl": ITL})
        self.assertEqual(result["energy"]["method"], "counter")

    def test_latencies_agree_with_prometheus_parser(self):
        plant = self.plant(itl_ms=20, share=0.3, has_ttft=True)
        ipw(plant, *self.words(plant, "--duration", 4, objective=("--slo-itl-ms", 60, "--slo-ttft-ms", 900)))
        texts, compared = plant.endpoint.texts, 0
        for older, newer, step in zip(texts, texts[1:], self.steps()):
            if step["problem"]:
                break  # the window has grown beyond two consecutive readings
            for key, name in (("itl_ms", ITL), ("ttft_ms", TTFT)):
                self.assertAlmostEqual(step[key], 1e3 * quantile(older, newer, name, 0.95), places=6)
                compared += 1
        self.assertGreater(compared, 8)

    def test_violation_restores_default(self):
        plant = self.plant(itl_ms=30)
        process = self.lowered(plant, "--duration", 60)
        self.wait_for(lambda: plant.clock() < 1200, process)
        plant.load = 1.7
        self.wait_for(lambda: plant.clock() == FMAX, process)
        self.wait_for(lambda: any(step["action"] == "violated" for step in self.steps()), process)
        step = next(step for step in self.steps() if step["action"] == "violated")
        self.assertIsNone(step["setting"])
        self.assertTrue(step["violated"])

    def test_dead_server_restores_default(self):
        plant = self.plant(itl_ms=30)
        process = self.lowered(plant, "--duration", 120)
        port = plant.endpoint.port
        plant.endpoint.close()
        self.wait_for(lambda: plant.clock() == FMAX, process)
        self.wait_for(lambda: self.steps()[-1]["action"] == "stale", process)
        self.assertIn("127.0.0.1", self.steps()[-1]["problem"])
        plant.endpoint = Endpoint(plant.text, port)  # and governing resumes when the server is back
        self.wait_for(lambda: plant.clock() < FMAX, process)

    def test_no_requests_restores_default(self):
        plant = self.plant(itl_ms=30)
        process = self.lowered(plant, "--duration", 60)
        plant.stopped = True
        self.wait_for(lambda: plant.clock() == FMAX, process)
        self.assertEqual(self.steps()[-1]["problem"], "no requests")

    def test_counters_of_restarted_server_start_at_0(self):
        plant = self.plant(itl_ms=30)
        process = self.lowered(plant, "--duration", 60)
        before = len(self.steps())
        with plant.lock:
            plant.itl.clear()
            plant.tokens.reset()
        self.wait_for(lambda: len(self.steps()) > before + 4, process)
        after = self.steps()[before:]
        self.assertFalse(any(step["violated"] for step in after), after)
        self.assertTrue(all(step["tokens_per_s"] is None or step["tokens_per_s"] >= 0 for step in after))

    def test_power_cap_is_met(self):
        plant = self.plant(watts=600)
        result = self.run_json(plant, objective=("--max-power-w", 350))
        steps = self.steps()
        settled = statistics.median(step["power_w"] for step in steps[len(steps) // 2:])
        self.assertLess(settled, 350)
        self.assertGreater(settled, 280)
        self.assertIsNone(steps[-1]["itl_ms"])
        self.assertLess(result["violations"], 5)
        self.assertIsNone(result["metrics"]["itl"])

    def test_sets_power_limits(self):
        plant = self.plant(itl_ms=20, share=0)  # latency does not depend on the clock
        result = self.run_json(plant, "--set", "power-limit", "--lowest", 300)
        steps = self.steps()
        self.assertEqual([step["setting"] for step in steps[10:]], [300] * (len(steps) - 10), steps)
        self.assertEqual(result["violations"], 0)

    def test_stall_is_not_a_cost(self):
        """If a scrape is late, because of the server or the governor, throughput is that of the server or unknown:
        counted as a cost it would restore the default."""
        runs = []
        for late in (1, 3):  # the unit test of the control law has every step
            plant = self.plant(itl_ms=20, share=0)
            plant.answers = [None] * late + [lambda: time.sleep(0.3)]
            self.log = self.log.with_name(f"{late}.jsonl")
            runs.append((late, self.log, self.start(plant, "--set", "power-limit", "--lowest", 300)))
        for late, log, process in runs:
            self.wait_for(lambda: len(self.steps(log)) > late, process)
            process.send_signal(signal.SIGSTOP)
        time.sleep(0.4)
        for _, _, process in runs:
            process.send_signal(signal.SIGCONT)
        for _, log, process in runs:
            self.wait_for(lambda: len(self.steps(log)) >= 25 and self.steps(log)[-1]["setting"] == 300, process)
            process.terminate()
            process.wait(TIMEOUT_S)
            steps = self.steps(log)
            settings = [step["setting"] or 700 for step in steps]  # the default
            self.assertEqual(settings, sorted(settings, reverse=True), steps)
            rates = [step["tokens_per_s"] for step in steps if step["tokens_per_s"] is not None]
            for rate in rates:  # the requested confidence
                self.assertAlmostEqual(rate, Plant.TOKENS_PER_S, delta=0.06 * Plant.TOKENS_PER_S)

    def test_one_missed_scrape_is_tolerated(self):
        plant = self.plant(itl_ms=30)
        process = self.lowered(plant)
        before = len(self.steps())
        plant.answers = [503]
        self.wait_for(lambda: len(self.steps()) > before + 4, process)
        after = [step for i, step in enumerate(self.steps()) if step["setting"] or i > before]
        missed = [i for i, step in enumerate(after) if step["problem"]]
        self.assertEqual(len(missed), 1, after)
        self.assertIn("503", after[missed[0]]["problem"])
        self.assertFalse([step for step in after if step["setting"] is None], after)
        self.assertIsNotNone(after[missed[0] + 1]["itl_ms"])

    def test_power_model_selects_least_energy(self):
        plant = self.plant(itl_ms=10, share=1)  # the SLO allows the lowest clock
        rows = [f"{f},{200 + 400 * (f / 1785) ** 2.5},{10 * 1785 / f}" for f in range(600, 1786, 15)]
        csv = self.log.parent / "clocks.csv"
        csv.write_text("freq_mhz,power_w,time_s\n" + "\n".join(rows) + "\n")
        model = self.log.parent / "model.json"
        done = ipw(None, "power", "fit", "--input", csv, "--gpu", "H200", "-o", model)
        self.assertEqual(done.returncode, 0, done.stderr)
        best = min(range(600, 1786, 15), key=lambda f: (200 + 400 * (f / 1785) ** 2.5) / f)
        self.run_json(plant, "--model", model, "--lowest", 400)
        self.assertAlmostEqual(self.steps()[-1]["setting"], best, delta=90)
        for words, said in ((("--application", "x"), "no application 'x'"), ((), "")):
            if said:
                done = ipw(plant, *self.words(plant, "--model", model, *words))
                self.assertEqual(done.returncode, 2)
                self.assertIn(said, done.stderr)


class Termination(GovernTest):
    def test_signals_restore_default(self):
        plant = self.plant()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.lowered(plant)
            process.send_signal(number)
            self.assertEqual(process.wait(TIMEOUT_S), 128 + number)
            self.assertEqual(plant.settings(), ControllableGpu.FREE)  # before the exit, not by the watchdog
            self.assertEqual(self.states(plant), [])

    def test_watchdog_restores_default_after_crash(self):
        plant = self.plant()
        for number in (signal.SIGKILL, signal.SIGSEGV):
            process = self.lowered(plant)
            process.send_signal(number)
            process.wait(TIMEOUT_S)
            self.wait_for(lambda: plant.settings() == ControllableGpu.FREE and not self.states(plant))

    def test_gpu_that_rejects_settings_later(self):
        plant = self.plant()
        process = self.lowered(plant)
        plant.change("power 0", "fail nvmlDeviceSetGpuLockedClocks 0 4\npower 0")
        self.assertEqual(process.wait(TIMEOUT_S), 1)
        self.assertIn("cannot lock the graphics clock", process.stderr.read())
        self.assertEqual(plant.settings(), ControllableGpu.FREE)

    def test_closed_pipe_ends_it_and_restores_default(self):
        plant = self.plant()
        process = self.lowered(plant, stdout=subprocess.PIPE)
        process.stdout.close()
        self.assertEqual(process.wait(TIMEOUT_S), 0)
        self.assertEqual(plant.settings(), ControllableGpu.FREE)

    def test_second_governor_is_refused(self):
        plant = self.plant()
        self.lowered(plant)
        done = ipw(plant, "govern", "--max-power-w", 300, "--duration", 1)
        self.assertEqual(done.returncode, 1)
        self.assertIn("another process controls GPU-00000000", done.stderr)


class DryRun(GovernTest):
    def test_dry_run_prints_changes_without_setting_them(self):
        plant = self.plant()
        process = self.start(plant, "--dry-run", stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.wait_for(lambda: any(step["decided"] for step in self.steps()), process)
        process.terminate()
        out, err = process.communicate(timeout=TIMEOUT_S)
        self.assertRegex(out, r"lower: would set \d+ MHz")
        self.assertIn("nothing is set", err)
        self.assertFalse((plant.root / "settings").exists())
        self.assertFalse((plant.root / "run/ipw").exists())
        self.assertTrue(all(step["setting"] is None for step in self.steps()))

    def test_fails_without_permission(self):
        plant = self.plant()
        plant.change("power 0", "fail nvmlDeviceResetGpuLockedClocks 0 4\nfail nvmlDeviceSetGpuLockedClocks 0 4\npower 0")
        done = ipw(plant, *self.words(plant, "--duration", 2))
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs root", done.stderr)
        self.assertIn("--dry-run shows what it would do", done.stderr)
        self.assertEqual(self.steps(), [])
        done = ipw(plant, *self.words(plant, "--dry-run", "--duration", 2))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_power_limited_gpu_is_in_use(self):
        plant = self.plant()
        plant.change("throttle 0 0", "throttle 0 4")
        self.run_json(plant, steps=3)


if __name__ == "__main__":
    main_parallel(2)
