#!/usr/bin/env python3
# test: real time
"""`ipw monitor` scraped by a real Prometheus: targets are up, rates are watts, increases are joules; promtool and the
Python client library accept the metrics."""
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "cli"), str(Path(__file__).resolve().parent)]
from machines import IntelNvidia, Intel, Modeled  # noqa: E402
from monitors import Monitor  # noqa: E402
from program import MachineTest  # noqa: E402
from prometheus import PROMETHEUS, PROMTOOL, Prometheus  # noqa: E402


class PrometheusTest(MachineTest):
    def start(self, kind, *arguments):
        machine = self.machine(kind, *arguments)
        monitor = Monitor(machine)
        self.addCleanup(monitor.close)
        return machine, monitor

    def test_promql_rates_and_increases(self):
        """For two machines, one of which exits."""
        _, both = self.start(IntelNvidia)
        _, single = self.start(Intel, 60)
        prometheus = Prometheus(both=f"127.0.0.1:{both.port}", single=f"127.0.0.1:{single.port}")
        self.addCleanup(prometheus.close)
        # Forty scrapes: an update that is a second late at an edge changes a rate by 2 %.
        prometheus.wait('count_over_time(ipw_node_cpu_joules_total{job="single"}[1m]) >= 40')
        prometheus.wait('count_over_time(ipw_node_gpu_joules_total{job="both",zone="gpu",gpu="1"}[1m]) >= 40')
        watts = prometheus.query('sum by (job, device) (rate(ipw_node_cpu_joules_total[40s]))')
        for labels, true in (({"job": "both", "device": "cpu0"}, 40), ({"job": "both", "device": "cpu1"}, 25),
                             ({"job": "single", "device": "cpu0"}, 60)):
            self.assertAlmostEqual(watts[tuple(sorted(labels.items()))] / true, 1, delta=0.1)
        watts = prometheus.query('sum by (gpu) (rate(ipw_node_gpu_joules_total{zone="gpu"}[40s]))')
        for gpu in ("0", "1"):
            self.assertAlmostEqual(watts[("gpu", gpu),] / 300, 1, delta=0.1)
        # increase() is joules: compared with the counter between the first and the last scrape of the window.
        grown = prometheus.query('max_over_time(ipw_node_cpu_joules_total{job="single"}[1m]) - '
                                 'min_over_time(ipw_node_cpu_joules_total{job="single"}[1m])')
        rise = prometheus.query('increase(ipw_node_cpu_joules_total{job="single"}[1m])')
        self.assertGreaterEqual(min(rise.values()) * 1.02, min(grown.values()))
        self.assertGreater(min(grown.values()), 60 * 30)
        # The machine's total is the sum of its parts.
        ratio = prometheus.query('sum(rate(ipw_node_joules_total{job="both"}[40s])) / (sum(rate('
                                 'ipw_node_cpu_joules_total{job="both"}[40s])) + sum(rate('
                                 'ipw_node_gpu_joules_total{job="both",zone="gpu"}[40s])))')
        self.assertAlmostEqual(ratio[()], 1, delta=0.02)
        self.assertEqual(set(prometheus.query("ipw_sensor_up").values()), {1.0})
        single.end()
        prometheus.wait('up{job="single"} == 0')
        self.assertFalse(prometheus.query('ipw_node_watts{job="single"}'))

    def test_promtool_accepts_metrics(self):
        for kind, arguments in ((IntelNvidia, ()), (Intel, (40, 0)), (Modeled, ())):
            _, monitor = self.start(kind, *arguments)
            text = monitor.wait_updates(8).text  # with attribution
            done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, text=True, capture_output=True)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""), kind)

    def test_client_library_parses_both_formats(self):
        try:
            from prometheus_client import openmetrics, parser
            import prometheus_client.openmetrics.parser  # noqa: F401
        except ImportError:
            self.skipTest("no prometheus_client")
        _, monitor = self.start(IntelNvidia)
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
