#!/usr/bin/env python3
# test: real time, asan
"""`ipw monitor --otlp` on machines with known counters: messages parsed with OpenTelemetry's definitions; receivers
that are slow, fail, refuse or are unreachable; and steps of the wall clock."""

import http.server
import json
import os
import sys
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import oracle  # noqa: E402

oracle.use()
from machines import FAKES, IntelNvidia, Fixture, Intel  # noqa: E402
from monitors import Monitor  # noqa: E402
from program import MachineTest, TIMEOUT_S, wait_until, ipw, main_parallel  # noqa: E402

try:
    from google.protobuf import json_format
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
except ImportError:
    json_format = None

CUMULATIVE = 2


class Receiver(http.server.ThreadingHTTPServer):
    """Receives batches; responds with `status` after `answer_s`."""

    daemon_threads = True

    def __init__(self, port=0):
        self.status, self.answer_s, self.headers, self.asked, self.batches = 200, 0, {}, [], []
        self.is_gone = False
        super().__init__(("127.0.0.1", port), Handler)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.is_gone = True  # open connections too
        self.shutdown()
        self.server_close()

    def points(self, name):
        """(batch, attributes, point) of a metric."""
        for batch in self.batches:
            for metric in batch.resource_metrics[0].scope_metrics[0].metrics:
                if metric.name == name:
                    for point in getattr(metric, metric.WhichOneof("data")).data_points:
                        yield metric, {a.key: a.value.string_value for a in point.attributes}, point

    def series(self, name, **attributes):
        return [point for _, have, point in self.points(name) if attributes.items() <= have.items()]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        receiver, body = self.server, self.rfile.read(int(self.headers["Content-Length"]))
        if receiver.is_gone:
            self.close_connection = True
            return
        receiver.asked.append((time.monotonic(), self.path, dict(self.headers)))
        if receiver.status == 200:
            receiver.batches.append(json_format.Parse(body, ExportMetricsServiceRequest()))
        time.sleep(receiver.answer_s)
        self.send_response(receiver.status)
        for name, value in receiver.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "2")
        self.end_headers()
        try:
            self.wfile.write(b"{}")
        except OSError:
            pass  # the client has given up

    def log_message(self, *_):
        pass


@unittest.skipUnless(json_format, "opentelemetry-proto is not here (IPW_PYTHON names an interpreter that has it)")
class PushTest(MachineTest):
    def start(self, machine, *options, env=None, interval=0.2, receiver=None, path=""):
        receiver = receiver or self.receiver()
        plain = machine.environment
        if env:
            machine.environment = lambda: {**plain(), **env}
        monitor = Monitor(machine, "--interval", "0.1", "--processes", "off", "--otlp",
                          f"http://127.0.0.1:{receiver.port}{path}", "--otlp-interval", interval, *options)
        self.addCleanup(monitor.close)
        return monitor, receiver

    def receiver(self, port=0):
        receiver = Receiver(port)
        self.addCleanup(receiver.close)
        return receiver

    def settle(self, receiver, count):
        count += len(receiver.batches)
        wait_until(lambda: len(receiver.batches) >= count, "batches")

    def test_energy_and_power_metrics(self):
        machine = self.machine(Intel, 40)
        monitor, receiver = self.start(machine)
        self.settle(receiver, 12)
        begun, end = [receiver.series("hw.energy", **{"hw.id": "cpu0"})[i] for i in (0, -1)]
        self.assertEqual({point.start_time_unix_nano for point in receiver.series("hw.energy")},
                         {begun.start_time_unix_nano})
        passed = 1e-9 * (end.time_unix_nano - begun.time_unix_nano)
        self.assertAlmostEqual(end.as_double - begun.as_double, 40 * passed, delta=0.02 * 40 * passed + 0.5)
        self.assertLess(abs(1e-9 * end.time_unix_nano - time.time()), 60)
        self.assertLessEqual(begun.start_time_unix_nano, begun.time_unix_nano)
        self.assertLess(begun.start_time_unix_nano, end.time_unix_nano)
        self.assertAlmostEqual(receiver.series("hw.power", **{"hw.id": "cpu0"})[-1].as_double, 40, delta=1)
        metric, attributes, _ = list(receiver.points("hw.energy"))[-1]
        self.assertEqual((metric.unit, metric.sum.aggregation_temporality, metric.sum.is_monotonic),
                         ("J", CUMULATIVE, True))
        self.assertEqual({key: attributes[key] for key in ("hw.type", "ipw.method", "ipw.scope", "ipw.source")},
                         {"hw.type": "cpu", "ipw.method": "counter", "ipw.scope": "package",
                          "ipw.source": "rapl:0 package"})
        resource = {a.key: a.value.string_value for a in receiver.batches[-1].resource_metrics[0].resource.attributes}
        self.assertEqual(resource["service.name"], "ipw")
        with monitor.ask("/api/v1/readings") as answer:
            self.assertEqual(resource["service.instance.id"], json.load(answer)["instance"])
        self.assertEqual(receiver.asked[-1][1], "/v1/metrics")
        self.assertEqual(receiver.asked[-1][2]["Content-Type"], "application/json")
        # A push is counted after its response, that is, after the receiver has the batch.
        wait_until(lambda: monitor.scrape().get("ipw_monitor_otlp_pushes_total") >= 12, "the count of pushes")
        scrape = monitor.scrape()
        self.assertEqual(scrape.get("ipw_monitor_otlp_failures_total"), 0)

    def test_gpu_and_gpu_memory_metrics(self):
        monitor, receiver = self.start(self.machine(IntelNvidia))
        wait_until(lambda: receiver.series("hw.temperature", **{"hw.type": "gpu"})
                        and receiver.series("hw.energy", **{"hw.id": "gpu0/gpu_memory"}), "figures of a GPU")
        part = next(have for _, have, _ in receiver.points("hw.energy") if have["hw.id"] == "gpu0/gpu_memory")
        self.assertEqual((part["hw.parent"], part["hw.type"]), ("gpu0", "memory"))
        self.assertEqual(receiver.series("hw.gpu.utilization", **{"hw.id": "gpu0"})[-1].as_double, 0.5)
        self.assertEqual(receiver.series("hw.gpu.memory.limit", **{"hw.id": "gpu0"})[-1].as_double, 150e9)
        self.assertGreater(receiver.series("process.cpu.time")[-1].as_double, 0)
        ids = [(metric.name, have.get("hw.id"), have.get("ipw.channel"), point.time_unix_nano, id(metric))
               for metric, have, point in receiver.points("hw.power")]
        self.assertEqual(len(ids), len(set(ids)))

    def test_board_energy_is_host_energy(self):
        monitor, receiver = self.start(self.machine(Fixture, "jetson"))
        wait_until(lambda: receiver.series("hw.host.energy"), "energy of the board")
        self.assertFalse(receiver.series("hw.energy", **{"ipw.scope": "board"}))

    def test_unknown_energy_is_absent(self):
        monitor, receiver = self.start(self.machine(Intel, 40, 0))
        wait_until(lambda: len(receiver.series("hw.energy", **{"hw.id": "cpu0"})) > 3, "energy")
        self.assertFalse(receiver.series("hw.energy", **{"hw.id": "cpu1"}))

    def test_headers_from_environment(self):
        env = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20c2VjcmV0OnNlY3JldA==,x-team=one"}
        monitor, receiver = self.start(self.machine(Intel, 40), env=env, path="/v1/metrics")
        self.settle(receiver, 1)
        self.assertEqual(receiver.asked[0][2]["authorization"], "Basic c2VjcmV0OnNlY3JldA==")
        self.assertEqual(receiver.asked[0][2]["x-team"], "one")
        self.assertEqual(receiver.asked[0][1], "/v1/metrics")

    def test_unreachable_receiver_loses_no_energy(self):
        machine, receiver = self.machine(Intel, 40), self.receiver()
        monitor, _ = self.start(machine, receiver=receiver)
        wait_until(lambda: receiver.series("hw.energy"), "energy")
        port, before = receiver.port, receiver.series("hw.energy")[0]
        receiver.close()
        monitor.wait(lambda now: now.get("ipw_monitor_otlp_failures_total") >= 2)
        updates = monitor.wait_updates(5)  # sampling is not delayed
        self.assertLess(updates.get("ipw_monitor_update_age_seconds"), 5)
        receiver = self.receiver(port)
        self.settle(receiver, 8)
        after = receiver.series("hw.energy")[-1]
        self.assertEqual(before.start_time_unix_nano, after.start_time_unix_nano)
        passed = 1e-9 * (after.time_unix_nano - before.time_unix_nano)
        self.assertAlmostEqual(after.as_double - before.as_double, 40 * passed, delta=0.03 * 40 * passed)

    def test_receiver_that_rejects_or_is_busy(self):
        receiver = self.receiver()
        receiver.status = 400
        monitor, _ = self.start(self.machine(Intel, 40), receiver=receiver)
        monitor.wait(lambda now: now.get("ipw_monitor_otlp_dropped_total") >= 3)  # dropped without retry
        receiver.status, receiver.headers, count = 503, {"Retry-After": "2"}, len(receiver.asked)
        wait_until(lambda: len(receiver.asked) >= count + 3, "repeats")
        pauses = [b[0] - a[0] for a, b in zip(receiver.asked[count:], receiver.asked[count + 1:])]
        self.assertGreater(pauses[-1], 1.9)
        receiver.status = 200
        self.settle(receiver, 3)

    def test_slow_receiver_does_not_delay_sampling(self):
        receiver = self.receiver()
        receiver.answer_s = 5
        monitor, _ = self.start(self.machine(Intel, 40), receiver=receiver)
        wait_until(lambda: receiver.asked, "a batch")
        before, began = monitor.scrape().get("ipw_monitor_updates_total"), time.monotonic()
        after = monitor.wait_updates(10).get("ipw_monitor_updates_total")
        self.assertGreaterEqual(after - before, 10)
        self.assertLess(len(receiver.asked), 2 + (time.monotonic() - began) / 5)

    def test_wall_clock_steps(self):
        machine = self.machine(Intel, 40)
        step = machine.put("/step", "0")
        preload = f"{machine.environment()['LD_PRELOAD']}:{os.path.abspath(FAKES)}/libfake_wall_clock.so"
        monitor, receiver = self.start(machine, env={"LD_PRELOAD": preload, "IPW_FAKE_STEP": str(step)})
        self.settle(receiver, 5)
        for seconds in ("864000", "-864000"):
            step.write_text(seconds)
            self.settle(receiver, 8)
        points, total, last = receiver.series("hw.energy", **{"hw.id": "cpu0"}), 0, None
        for point in points:  # as a receiver sums: another start time is a new stream, from 0
            self.assertLessEqual(point.start_time_unix_nano, point.time_unix_nano)
            same = last and last.start_time_unix_nano == point.start_time_unix_nano
            total += point.as_double - (last.as_double if same else 0)
            if same:
                self.assertGreaterEqual(point.as_double, last.as_double)
                self.assertGreaterEqual(point.time_unix_nano, last.time_unix_nano)
            last = point
        self.assertEqual(len({point.start_time_unix_nano for point in points}), 3)
        self.assertLess(abs(1e-9 * last.time_unix_nano - (time.time() - 864000)), 60)
        self.assertAlmostEqual(total, monitor.scrape().get("ipw_node_cpu_joules_total", device="cpu0"),
                               delta=40 * 2)

    def test_hanging_receiver_does_not_delay_exit(self):
        receiver = self.receiver()
        receiver.answer_s = 2 * TIMEOUT_S
        monitor, _ = self.start(self.machine(Intel, 40), receiver=receiver)
        wait_until(lambda: receiver.asked, "a batch")
        self.assertEqual(monitor.end(), 0)

    def test_rejects_invalid_addresses(self):
        for wrong in ("ftp://127.0.0.1", "http://"):
            done = ipw(self.machine(Intel, 40), "monitor", "--listen", "127.0.0.1:0", "--otlp", wrong)
            self.assertEqual(done.returncode, 2, done.stderr)


if __name__ == "__main__":
    main_parallel(3)
