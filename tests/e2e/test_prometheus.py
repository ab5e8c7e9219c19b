#!/usr/bin/env python3
"""`ipw monitor` scraped by a real Prometheus: targets are up, rates are watts, increases are joules; and promtool and the
official Python client have nothing to complain about."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from machines import Both, Intel, Modelled  # noqa: E402
from monitors import Monitor  # noqa: E402
from program import MachineTest, PATIENCE_S  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]


def find_program(name):
    unpacked = SOURCE / ".test-env/prometheus/usr/bin" / name
    return str(unpacked) if unpacked.exists() else shutil.which(name)


PROMETHEUS, PROMTOOL = find_program("prometheus"), find_program("promtool")


class Prometheus:
    """Scrapes the targets every second and answers PromQL."""

    def __init__(self, **targets):
        self.scratch = tempfile.TemporaryDirectory(prefix="ipw-prometheus-")
        root = Path(self.scratch.name)
        jobs = "".join(f"  - job_name: {name}\n    static_configs: [{{targets: ['{target}']}}]\n"
                       for name, target in targets.items())
        (root / "prometheus.yml").write_text(f"global: {{scrape_interval: 1s}}\nscrape_configs:\n{jobs}")
        self.log = open(root / "log", "w+")
        self.process = subprocess.Popen(
            [PROMETHEUS, f"--config.file={root}/prometheus.yml", f"--storage.tsdb.path={root}/data",
             "--web.listen-address=127.0.0.1:0"], stdout=self.log, stderr=self.log)
        self.url = f"http://127.0.0.1:{self.port()}"

    def port(self):
        """The port that it listens on, by its socket: with port 0 its log has none."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            assert self.process.poll() is None, Path(self.log.name).read_text()
            inodes = set()
            for file in Path(f"/proc/{self.process.pid}/fd").iterdir():
                try:
                    inodes |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(file)))
                except OSError:
                    continue
            for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[9] in inodes:
                    return int(fields[1].split(":")[1], 16)
            time.sleep(0.1)
        raise AssertionError("Prometheus does not listen")

    def query(self, expression):
        """Values by their labels, as one sorted tuple each."""
        url = f"{self.url}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                result = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 503:  # not ready yet
                return {}
            raise AssertionError(f"{expression}: {error.read().decode()}") from error
        return {tuple(sorted(row["metric"].items())): float(row["value"][1]) for row in result["data"]["result"]}

    def wait(self, expression):
        """Its values, when there are any."""
        until = time.monotonic() + PATIENCE_S
        while not (found := self.query(expression)):
            assert time.monotonic() < until, expression
            time.sleep(0.3)
        return found

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)
        self.log.close()
        self.scratch.cleanup()


class PrometheusTest(MachineTest):
    def start(self, kind, *arguments):
        machine = self.machine(kind, *arguments)
        monitor = Monitor(machine)
        self.addCleanup(monitor.close)
        return machine, monitor

    def test_promql(self):
        """Of two machines, one of which ends."""
        _, both = self.start(Both)
        _, single = self.start(Intel, 60)
        prometheus = Prometheus(both=f"127.0.0.1:{both.port}", single=f"127.0.0.1:{single.port}")
        self.addCleanup(prometheus.close)
        # Twenty scrapes, so that what is at the edges does not matter.
        prometheus.wait('count_over_time(ipw_node_cpu_joules_total{job="single"}[1m]) >= 20')
        prometheus.wait('count_over_time(ipw_node_gpu_joules_total{job="both",zone="gpu",gpu="1"}[1m]) >= 20')
        watts = prometheus.query('sum by (job, device) (rate(ipw_node_cpu_joules_total[15s]))')
        for labels, true in (({"job": "both", "device": "cpu0"}, 40), ({"job": "both", "device": "cpu1"}, 25),
                             ({"job": "single", "device": "cpu0"}, 60)):
            self.assertAlmostEqual(watts[tuple(sorted(labels.items()))] / true, 1, delta=0.1)
        watts = prometheus.query('sum by (gpu) (rate(ipw_node_gpu_joules_total{zone="gpu"}[15s]))')
        for gpu in ("0", "1"):
            self.assertAlmostEqual(watts[("gpu", gpu),] / 300, 1, delta=0.1)
        # increase() is joules: by the counter itself, between the first and the last scrape in the window.
        grown = prometheus.query('max_over_time(ipw_node_cpu_joules_total{job="single"}[1m]) - '
                                 'min_over_time(ipw_node_cpu_joules_total{job="single"}[1m])')
        rise = prometheus.query('increase(ipw_node_cpu_joules_total{job="single"}[1m])')
        self.assertGreaterEqual(min(rise.values()) * 1.02, min(grown.values()))
        self.assertGreater(min(grown.values()), 60 * 15)
        # The machine's own sum is that of its parts.
        ratio = prometheus.query('sum(rate(ipw_node_joules_total{job="both"}[15s])) / (sum(rate('
                                 'ipw_node_cpu_joules_total{job="both"}[15s])) + sum(rate('
                                 'ipw_node_gpu_joules_total{job="both",zone="gpu"}[15s])))')
        self.assertAlmostEqual(ratio[()], 1, delta=0.02)
        self.assertEqual(set(prometheus.query("ipw_sensor_up").values()), {1.0})
        single.end()
        prometheus.wait('up{job="single"} == 0')
        self.assertFalse(prometheus.query('ipw_node_watts{job="single"}'))

    def test_promtool_accepts_it(self):
        for kind, arguments in ((Both, ()), (Intel, (40, 0)), (Modelled, ())):
            _, monitor = self.start(kind, *arguments)
            text = monitor.wait_updates(8).text  # with attribution
            done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, text=True, capture_output=True)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""), kind)

    def test_the_official_client_reads_both_formats(self):
        try:
            from prometheus_client import openmetrics, parser
            import prometheus_client.openmetrics.parser  # noqa: F401
        except ImportError:
            self.skipTest("no prometheus_client")
        _, monitor = self.start(Both)
        monitor.wait_updates(2)
        plain = monitor.scrape().text
        with monitor.ask(Accept="application/openmetrics-text") as answer:
            opened = answer.read().decode()

        def names(families):
            return {(sample.name, tuple(sorted(sample.labels.items()))) for family in families for sample in family.samples}

        ours = names(parser.text_string_to_metric_families(plain))
        self.assertGreater(len(ours), 100)
        self.assertEqual(ours, names(openmetrics.parser.text_string_to_metric_families(opened)))


if __name__ == "__main__":
    if not PROMETHEUS or not PROMTOOL:
        print("skipped: no Prometheus here; `make test` unpacks Debian's")
        sys.exit(77)
    unittest.main()
