#!/usr/bin/env python3
# test: real time
"""The gRPC telemetry service, read by Python's gRPC client with the field numbers of the Python IPW."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))
from machines import IntelNvidia, Intel, Machine, Nvidia  # noqa: E402
from program import EchoRun  # noqa: E402

try:
    import grpc
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError as missing:
    grpc, why = None, f"{missing}: `tools/setup test` installs it"

IPW = Path(os.environ.get("IPW", "build/ipw")).resolve()
FRONT = IPW.parent / "energy-monitor"
TIMEOUT_S = 60

# Fields of the Python IPW: name, number, type.
READING = [("power_watts", 1, "double"), ("energy_joules", 2, "double"), ("temperature_celsius", 3, "double"),
           ("gpu_memory_usage_mb", 4, "double"), ("cpu_memory_usage_mb", 5, "double"), ("platform", 6, "string"),
           ("timestamp_nanos", 7, "int64"), ("system_info", 8, "SystemInfo"), ("gpu_info", 9, "GpuInfo"),
           ("cpu_power_watts", 10, "double"), ("cpu_energy_joules", 11, "double"), ("ane_power_watts", 12, "double"),
           ("ane_energy_joules", 13, "double"), ("gpu_compute_utilization_pct", 14, "double"),
           ("gpu_memory_bandwidth_utilization_pct", 15, "double"), ("gpu_tensor_core_utilization_pct", 16, "double"),
           ("gpu_memory_total_mb", 17, "double")]
SYSTEM = [("os_name", 1, "string"), ("os_version", 2, "string"), ("kernel_version", 3, "string"),
          ("host_name", 4, "string"), ("cpu_count", 5, "uint32"), ("cpu_brand", 6, "string")]
GPU = [("name", 1, "string"), ("vendor", 2, "string"), ("device_id", 3, "uint64"), ("device_type", 4, "string"),
       ("backend", 5, "string")]
HEALTH = [("healthy", 1, "bool"), ("platform", 2, "string")]


def messages():
    """Message classes, defined independently of the program."""
    file = descriptor_pb2.FileDescriptorProto(name="energy_test.proto", package="energy", syntax="proto3")
    for name, fields in (("SystemInfo", SYSTEM), ("GpuInfo", GPU), ("HealthResponse", HEALTH),
                         ("TelemetryReading", READING)):
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            added = message.field.add(name=field, number=number, label=1)
            if kind[0].isupper():
                added.type, added.type_name = 11, f".energy.{kind}"
            else:
                added.type = {"double": 1, "int64": 3, "uint64": 4, "bool": 8, "string": 9, "uint32": 13}[kind]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"energy.{name}"))
            for name in ("HealthResponse", "TelemetryReading")}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@unittest.skipUnless(grpc, None if grpc else why)
@unittest.skipUnless(FRONT.exists(), "energy-monitor was not built: libgrpc-dev is not installed")
class Service(unittest.TestCase):
    def setUp(self):
        self.kinds = messages()

    def machine(self, kind, *arguments):
        machine = kind(*arguments)
        self.addCleanup(machine.close)
        return machine

    def start(self, machine, *command):
        process = subprocess.Popen(command, env=machine.environment(), stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def serve(self, machine, *options):
        """Starts energy-monitor on a machine; returns it and a channel."""
        port = free_port()
        process = self.start(machine, FRONT, "--port", str(port), "--collection-interval-ms", "50", *options)
        return process, self.channel(port)

    def channel(self, port):
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.addCleanup(channel.close)
        grpc.channel_ready_future(channel).result(TIMEOUT_S)
        return channel

    def health(self, channel):
        return channel.unary_unary("/energy.EnergyMonitor/Health",
                                   response_deserializer=self.kinds["HealthResponse"].FromString)(b"", timeout=TIMEOUT_S)

    def stream(self, channel):
        call = channel.unary_stream("/energy.EnergyMonitor/StreamTelemetry",
                                    response_deserializer=self.kinds["TelemetryReading"].FromString)(b"")
        self.addCleanup(call.cancel)
        return call

    def until(self, readings, wanted):
        """Returns the first reading for which the condition holds."""
        deadline = time.monotonic() + TIMEOUT_S
        for reading in readings:
            if wanted(reading):
                return reading
            self.assertLess(time.monotonic(), deadline, reading)

    def test_energy_of_gpus_and_cpus(self):
        machine = self.machine(IntelNvidia)  # packages of 40 and 25 W, GPUs of 300 W and 100 to 500 W
        before = machine.count(0) + machine.count(1)
        _, channel = self.serve(machine)
        last = self.until(self.stream(channel), lambda r: r.cpu_energy_joules > 130 and r.energy_joules > 1000)
        drawn = (machine.count(0) + machine.count(1) - before) / 1e6
        self.assertLessEqual(last.cpu_energy_joules, drawn)
        self.assertAlmostEqual(last.cpu_power_watts, 65, delta=65 * 0.1)
        self.assertTrue(400 * 0.9 < last.power_watts < 800 * 1.1, last.power_watts)
        self.assertEqual(last.platform, "nvidia")
        self.assertEqual((last.gpu_info.vendor, last.gpu_info.backend, last.gpu_info.device_type),
                         ("NVIDIA", "NVML", "GPU"))
        self.assertRegex(last.gpu_info.name, " x2$")
        self.assertEqual((last.ane_power_watts, last.ane_energy_joules), (-1, -1))
        self.assertEqual(last.system_info.cpu_count, 1)
        self.assertIn("Xeon", last.system_info.cpu_brand)
        self.assertTrue(self.health(channel).healthy)

    def test_unknown_values_are_minus_one(self):
        _, channel = self.serve(self.machine(Intel, 50))
        readings = self.stream(channel)
        reading = self.until(readings, lambda r: r.cpu_power_watts > 0)
        unknown = {name: getattr(reading, name) for name, _, kind in READING
                   if kind == "double" and not name.startswith("cpu_")}
        self.assertEqual(set(unknown.values()), {-1}, unknown)
        self.assertEqual(reading.platform, "rapl")

    def test_machine_without_sensors_is_unhealthy(self):
        machine = self.machine(Machine)
        _, channel = self.serve(machine)
        reading = next(iter(self.stream(channel)))
        self.assertEqual((reading.platform, reading.power_watts, reading.energy_joules), ("null", -1, -1))
        health = self.health(channel)
        self.assertEqual((health.healthy, health.platform), (False, "null"))

    def test_unknown_methods_are_unimplemented(self):
        _, channel = self.serve(self.machine(Intel, 50))
        with self.assertRaises(grpc.RpcError) as failed:
            channel.unary_unary("/energy.EnergyMonitor/Other")(b"", timeout=TIMEOUT_S)
        self.assertEqual(failed.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_thousand_concurrent_streams(self):
        process, channel = self.serve(self.machine(Intel, 50))
        streams = [self.stream(channel) for _ in range(1000)]
        times = [[next(stream).timestamp_nanos for _ in range(2)] for stream in streams]
        self.assertTrue(all(first < second for first, second in times))
        for stream in streams[::2]:
            stream.cancel()
        self.assertGreater(next(streams[1]).timestamp_nanos, times[1][1])
        process.terminate()
        self.assertEqual(process.wait(TIMEOUT_S), 0)
        with self.assertRaises(grpc.RpcError) as ended:
            for _ in streams[1]:
                pass
        self.assertIn(ended.exception.code(), (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED))

    def record(self, machine, seconds):
        """(time, joules) of the readings of that many seconds, from the first with an energy; the time 0 of the fake GPU,
        and its number of calls of each function."""
        log = machine.root / "calls"
        environment = machine.environment
        machine.environment = lambda: {**environment(), "IPW_FAKE_NVML_CALLS": str(log)}
        process, channel = self.serve(machine)
        seen = []

        def is_enough(reading):
            if reading.energy_joules >= 0:
                seen.append((reading.timestamp_nanos * 1e-9, reading.energy_joules))
            return seen and seen[-1][0] > seen[0][0] + seconds

        self.until(self.stream(channel), is_enough)
        process.terminate()
        process.wait(TIMEOUT_S)
        calls = dict(line.split() for line in log.read_text().splitlines())
        self.assertEqual([joules for _, joules in seen], sorted(joules for _, joules in seen))
        return seen, float(calls["zero"]), calls

    @staticmethod
    def windows(readings, length):
        """Pairs of readings at least that far apart: the Python IPW's energy of a window is their difference."""
        for before in readings:
            after = next((r for r in readings if r[0] >= before[0] + length), None)
            if after:
                yield before, after

    def test_short_windows_have_their_energy(self):
        """At constant power, although the counter changes every 0.1 s and is read every half minute."""
        readings, _, calls = self.record(self.machine(Nvidia, "power * constant 250\ntick * 0.1\n"), 5)
        windows = list(self.windows(readings, 0.3))
        self.assertGreater(len(windows), 30)
        for before, after in windows:
            joules = 250 * (after[0] - before[0])
            self.assertAlmostEqual(after[1] - before[1], joules, delta=0.02 * joules)
        # The call that takes milliseconds of CPU is made a few times at first, not for every reading.
        self.assertLess(int(calls["nvmlDeviceGetTotalEnergyConsumption"]), 30 + len(readings) / 5)

    def test_windows_of_changing_power(self):
        """A window is exact but for the time at its edges that was not measured yet, and nothing of that adds up."""
        period, low, high = 0.7, 100, 500
        readings, zero, _ = self.record(
            self.machine(Nvidia, f"power * square {low} {high} {period}\ntick * 0.1\n"), 6)

        def true(t):
            whole, rest = divmod(t - zero, period)
            return whole * period * (low + high) / 2 + high * min(rest, period / 2) + low * max(0, rest - period / 2)

        for length in (0.3, 4):
            errors = sorted(abs(after[1] - before[1] - (true(after[0]) - true(before[0])))
                            for before, after in self.windows(readings, length))
            self.assertLess(errors[len(errors) // 2], 0.05 * (high - low), length)

    def test_energy_does_not_fall_when_a_gpu_is_lost(self):
        healthy = "devices 2\npower * constant 300\ntick * 0.02\n"
        machine = self.machine(Nvidia, healthy)
        _, channel = self.serve(machine)
        seen = []
        readings = self.stream(channel)
        self.until(readings, lambda r: r.energy_joules > 1500 and abs(r.power_watts - 600) < 60)
        machine.script(healthy + "fail * 0 15\n")

        def is_one_card(reading):
            seen.append(reading.energy_joules)
            return 0 < reading.power_watts < 330

        last = self.until(readings, is_one_card)
        self.until(readings, lambda r: seen.append(r.energy_joules) or r.energy_joules > last.energy_joules + 300)
        self.assertEqual(seen, sorted(seen))

    def test_killed_monitor_process_is_restarted(self):
        process, channel = self.serve(self.machine(Intel, 50))
        readings = self.stream(channel)
        next(readings)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        threads = [p.read_text().split() for p in Path(f"/proc/{process.pid}/task").glob("*/children")]
        monitor = int((children or [c for found in threads for c in found])[0])
        os.kill(monitor, signal.SIGKILL)
        killed = time.time_ns()
        again = self.until(readings, lambda r: r.timestamp_nanos > killed + 1e9 and r.cpu_power_watts > 0)
        self.assertGreaterEqual(again.cpu_energy_joules, 0)

    def test_ipw_monitor_starts_and_restarts_grpc_service(self):
        machine, port, web = self.machine(Intel, 50), free_port(), free_port()
        monitor = self.start(machine, IPW, "monitor", "--interval", "0.1", "--listen", f"127.0.0.1:{web}",
                             "--grpc", f"127.0.0.1:{port}")
        channel = self.channel(port)
        self.until(self.stream(channel), lambda r: r.cpu_power_watts > 0)
        front = [int(c) for p in Path(f"/proc/{monitor.pid}/task").glob("*/children") for c in p.read_text().split()]
        self.assertEqual(len(front), 1)
        os.kill(front[0], signal.SIGKILL)
        deadline = time.monotonic() + TIMEOUT_S
        while True:  # a client that retries finds the next one; one that waits for its channel may do so in vain
            try:
                self.assertTrue(self.health(channel).platform)
                break
            except grpc.RpcError:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.2)
        again = [int(c) for p in Path(f"/proc/{monitor.pid}/task").glob("*/children") for c in p.read_text().split()]
        self.assertNotEqual(again, front)
        monitor.terminate()
        self.assertEqual(monitor.wait(TIMEOUT_S), 0)
        self.assertFalse(Path(f"/proc/{again[0]}").exists())

    def test_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            machine = self.machine(Intel, 50)
            done = subprocess.run([FRONT, "--port", str(taken.getsockname()[1])], env=machine.environment(),
                                  capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot listen", done.stderr)

    def test_rejects_invalid_options(self):
        for options, word in ((["--port", "0"], "not a number in range"), (["--collection-interval-ms", "x"], "range"),
                              (["more"], "unexpected argument"), (["--no-such"], "no-such")):
            with self.subTest(options=options):
                done = subprocess.run([FRONT, *options], capture_output=True, text=True, timeout=TIMEOUT_S)
                self.assertEqual(done.returncode, 2)
                self.assertIn(word, done.stderr)

    def test_rejects_non_loopback_addresses(self):
        machine = self.machine(Intel, 50)
        done = subprocess.run([IPW, "monitor", "--listen", "none", "--grpc", "0.0.0.0:50053"], capture_output=True,
                              text=True, env=machine.environment(), timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--no-token", done.stderr)


class OldReadings:
    """An energy-monitor of another implementation, 40 W.  Its first `old` messages have the energy of when it started:
    they say when they were made, not when the counter was read."""

    def __init__(self, old):
        self.left, self.began, self.kinds = old, time.monotonic(), messages()
        self.server = grpc.server(ThreadPoolExecutor(8))
        handler = grpc.unary_stream_rpc_method_handler(self.stream, response_serializer=lambda m: m.SerializeToString())
        self.server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("energy.EnergyMonitor", {"StreamTelemetry": handler})])
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def stream(self, _, context):
        while context.is_active():
            self.left -= 1
            passed = time.monotonic() - self.began if self.left < 0 else 0
            yield self.kinds["TelemetryReading"](timestamp_nanos=time.time_ns(), cpu_energy_joules=400 + 40 * passed,
                                                 cpu_power_watts=40, energy_joules=-1, power_watts=-1)
            time.sleep(0.05)


@unittest.skipUnless(grpc, None if grpc else why)
class Client(unittest.TestCase):
    def test_energy_before_the_first_reading_is_not_counted(self):
        there, here = OldReadings(old=40), Machine()
        self.addCleanup(here.close)
        self.addCleanup(there.server.stop, 0)
        time.sleep(3)
        run = EchoRun(here, "--sensors", f"remote=grpc://127.0.0.1:{there.port}")
        deadline = time.monotonic() + TIMEOUT_S
        while there.left >= 0:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        time.sleep(2)
        report = run.end()
        energy, wall = report["energy"], report["wall_s"]["mean"]
        self.assertGreater(energy["coverage"] * wall, 1)
        self.assertAlmostEqual(energy["joules"], 40 * wall * energy["coverage"],
                               delta=0.05 * energy["joules"] + 2 * energy["plus_minus_statistical"])


    def reason(self, port, **environment):
        with Machine() as here:
            done = subprocess.run([IPW, "run", "--sensors", f"remote=grpc://127.0.0.1:{port}", "--", "true"],
                                  env={**here.environment(), **environment}, capture_output=True, text=True,
                                  timeout=TIMEOUT_S)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def server(self, **methods):
        """A gRPC server, and how to add a port to it."""
        server = grpc.server(ThreadPoolExecutor(8))
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("energy.EnergyMonitor", {
            name: grpc.unary_stream_rpc_method_handler(method) for name, method in methods.items()})])
        self.addCleanup(server.stop, 0)
        return server

    def test_other_services_are_reported(self):
        server = self.server()
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.assertIn(f"127.0.0.1:{port} is a gRPC server without this service (UNIMPLEMENTED)", self.reason(port))

    def test_status_of_the_server_is_reported(self):
        server = self.server(StreamTelemetry=lambda _, context: context.abort(grpc.StatusCode.INTERNAL, "no such GPU"))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.assertIn(f"127.0.0.1:{port} ended the call: INTERNAL: no such GPU", self.reason(port))

    @unittest.skipUnless(shutil.which("openssl"), "openssl, which makes certificates, is not installed")
    def test_tls_is_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = Path(folder) / "key", Path(folder) / "certificate"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                            "-nodes", "-keyout", key, "-out", certificate, "-days", "30", "-subj", "/CN=localhost"],
                           check=True, capture_output=True)
            server = self.server()
            port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials(
                [(key.read_bytes(), certificate.read_bytes())]))
            server.start()
            self.assertIn(f"127.0.0.1:{port} requires TLS", self.reason(port))


if __name__ == "__main__":
    unittest.main(verbosity=2)
