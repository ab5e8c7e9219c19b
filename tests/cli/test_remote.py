#!/usr/bin/env python3
# test: real time, asan
"""`--sensors remote=HOST`: energy of machines with known counters, read through their `ipw monitor`; over slow
networks, with other clocks, and when a monitor exits, restarts or refuses."""

import contextlib
import csv
import http.client
import http.server
import json
import math
import os
import re
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "fakes")]
from inference_server import Server  # noqa: E402
from machines import FAKES, Fixture, Intel, Machine, Modeled, Nvidia  # noqa: E402
from monitors import Monitor  # noqa: E402
from program import (IPW, EchoRun, MachineTest, SANITIZED, TIMEOUT_S, wait_until, device, ipw,  # noqa: E402
                     main_parallel)

def wall(report):
    return report["wall_s"]["mean"]


FRONT = Path(IPW).resolve().parent / "energy-monitor"
SECRET = "a-token-for-the-tests-of-remote"


class NetworkPath(http.server.ThreadingHTTPServer):
    """A network path to a monitor with delays `there` and `back`, to a host whose monotonic clock is ahead by `ahead`
    and drifts by `drift`.  `step` steps that clock."""

    daemon_threads = True

    def __init__(self, monitor, there=0.0, back=0.0, ahead=0.0, drift=0.0):
        self.monitor, self.there, self.back, self.ahead, self.drift = monitor, there, back, ahead, drift
        self.began, self.answered, self.newest = time.monotonic(), [], 0
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]

    def shift(self, ns):
        return int(ns + 1e9 * self.ahead + self.drift * (ns - 1e9 * self.began))

    def unshift(self, ns):
        return int((ns - 1e9 * self.ahead + self.drift * 1e9 * self.began) / (1 + self.drift))

    def wait_answers(self, count):
        """Returns the time of the last of the next `count` answers with new points."""
        end = len(self.answered) + count
        wait_until(lambda: len(self.answered) >= end, "answers of the monitor")
        return self.answered[end - 1]

    def close(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.server
        time.sleep(path.there)
        where, _, since = self.path.partition("?since=")
        if since:
            since = min(path.unshift(int(since)), 2 ** 63 - 1)
            where += f"?since={since}"
        connection = http.client.HTTPConnection("127.0.0.1", path.monitor.port, timeout=TIMEOUT_S)
        try:
            connection.request("GET", where)
            readings = json.loads(connection.getresponse().read())
        except OSError:
            self.close_connection = True
            return
        finally:
            connection.close()
        readings["monotonic_ns"] = path.shift(readings["monotonic_ns"])
        for domain in readings["domains"]:
            for point in domain["points"]:
                point["t_ns"] = path.shift(point["t_ns"])
                point["covered_ns"] = path.shift(point["covered_ns"] + 1e9 * path.began) - int(
                    1e9 * (path.ahead + path.began))
        body = json.dumps(readings).encode()
        time.sleep(path.back)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        times = [point["t_ns"] for domain in readings["domains"] for point in domain["points"]]
        if times:
            path.newest = 1e-9 * max(times)
            path.answered.append(time.monotonic())

    def log_message(self, *_):
        pass


class RemoteTest(MachineTest):
    def setUp(self):
        self.here = self.machine(Machine)  # no sensors on the local machine

    def monitor(self, machine, *options, interval=0.1, **more):
        monitor = Monitor(machine, "--processes", "off", "--interval", interval, *options, **more)
        self.addCleanup(monitor.close)
        monitor.wait_updates(12)  # so that its history is complete
        return monitor

    def network_path(self, *arguments, **options):
        path = NetworkPath(*arguments, **options)
        self.addCleanup(path.close)
        return path

    def echo_run(self, *ends, **options):
        return EchoRun(self.here, "--sensors", ",".join(f"remote=127.0.0.1:{end.port}" for end in ends), **options)

    def refused(self, sensors, *words, command=("run", "--", "true"), **options):
        done = ipw(self.here, command[0], "--sensors", sensors, *command[1:], **options)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        for word in words:
            self.assertIn(word, done.stderr)
        return done

    def pulse(self, machine, *ends, high=200, low=10, length=1.5, edge=lambda: None):
        """A run with a pulse of high power, and `edge` before and after it; returns the report and the true energy,
        which includes the low power at the edges of the run that the test was late to see."""
        machine.set_power(low)
        echo_run = self.echo_run(*ends)
        before, began = machine.count(), time.monotonic()
        edge()
        machine.set_power(high)
        time.sleep(length)
        machine.set_power(low)
        edge()
        after, passed = machine.count(), time.monotonic() - began
        report = echo_run.end()
        return report, (after - before) * 1e-6 + low * (wall(report) - passed)

    @staticmethod
    def set_clock(machine):
        """Gives the machine a wall clock that is ahead by the seconds in a file; returns the file and the environment."""
        step = machine.put("/step", "0")
        preload = machine.environment()["LD_PRELOAD"]
        stepping = {"LD_PRELOAD": f"{preload}:{os.path.abspath(os.path.join(FAKES, 'libfake_wall_clock.so'))}",
                    "IPW_FAKE_STEP": str(step)}
        environment = machine.environment
        machine.environment = lambda: {**environment(), **stepping}
        return step, stepping

    def undisturbed(self, is_good, *arguments, **options):
        """A pulse whose energy `is_good`; repeated, at most five times, where this machine stalled: then updates are
        late or far apart.  Returns the last one."""
        for _ in range(5):
            report, true = self.pulse(*arguments, **options)
            if is_good(report["energy"]):
                break
        return report, true


@unittest.skipIf(SANITIZED, "figures: their code is also that of losses and of gRPC")
class EnergyTest(RemoteTest):
    def test_energy_equals_remote_counter(self):
        machine = self.machine(Intel, 10)
        monitor = self.monitor(machine)
        report, true = self.undisturbed(lambda energy: energy["coverage"] == 1, machine, monitor,
                                        edge=lambda: monitor.wait_updates(4))
        energy = device(report, f"127.0.0.1:{monitor.port}/cpu0")["energy"]
        self.assertAlmostEqual(energy["joules"], true, delta=0.5 + 2 * energy["plus_minus_statistical"])
        self.assertGreater(true, 300)
        self.assertEqual(energy["coverage"], 1)
        self.assertEqual(energy["method"], "counter")
        self.assertEqual(energy["source"], f"remote:127.0.0.1:{monitor.port}/cpu0 package")
        self.assertAlmostEqual(energy["plus_minus"],
                               math.hypot(0.03 * energy["joules"], energy["plus_minus_statistical"]), delta=3)
        self.assertEqual(report["energy"]["joules"], energy["joules"])

    def test_energies_of_hosts_add_up(self):
        machines = [self.machine(Intel, 40, 25), self.machine(Nvidia, "power 0 constant 300\ntick * 0.02\n"
                                                              "value temperature 0 51"), self.machine(Intel, 30)]
        monitors = [self.monitor(machine) for machine in machines]
        echo_run = self.echo_run(*monitors)
        time.sleep(1.5)
        report = echo_run.end()
        ports = [monitor.port for monitor in monitors]
        watts = {f"127.0.0.1:{ports[0]}/cpu0": 40, f"127.0.0.1:{ports[0]}/cpu1": 25, f"127.0.0.1:{ports[1]}/gpu0": 300,
                 f"127.0.0.1:{ports[2]}/cpu0": 30}
        self.assertEqual({d["id"] for d in report["devices"] if d["energy"]}, set(watts))
        for name, power in watts.items():
            energy = device(report, name)["energy"]
            true = power * wall(report) * energy["coverage"]
            self.assertAlmostEqual(energy["joules"], true, delta=0.03 * true + 2 * energy["plus_minus_statistical"])
        self.assertAlmostEqual(report["energy"]["joules"],
                               sum(device(report, name)["energy"]["joules"] for name in watts), places=6)
        done = ipw(self.here, "run", *(word for port in ports for word in ("--sensors", f"remote=127.0.0.1:{port}")),
                   "--json", "--", "true")
        self.assertEqual({d["id"] for d in json.loads(done.stdout)["devices"] if d["energy"]}, set(watts))
        done = ipw(self.here, "run", "--sensors", f"remote=127.0.0.1:{ports[1]}", "--json", "--", "sleep", "0.5")
        self.assertAlmostEqual(json.loads(done.stdout)["devices"][0]["temperature_c"]["mean"], 51, places=6)

    def test_first_example_of_the_manual(self):
        """docs/remote.md as it is written, but for the host's name and ports, the model and the copy of the token."""
        page = (Path(__file__).resolve().parents[2] / "docs/remote.md").read_text()
        block = page.split("```\n")[1].replace("\\\n", "")
        commands = {host: [line[len(host) + 2:] for line in block.splitlines() if line.startswith(f"{host}$ ")]
                    for host in ("gpu-node", "client")}
        folder, machine = self.here.root / "work", self.machine(Nvidia, "power 0 constant 300\ntick * 0.02\n")
        folder.mkdir()
        create, monitor = commands["gpu-node"]
        subprocess.run(create, shell=True, cwd=folder, check=True)
        self.assertRegex(monitor, "^ipw monitor --listen 0.0.0.0:9860 .*--token-file token$")
        options = monitor.replace("token-file token", f"token-file {folder}/token").split()[4:]
        server = Monitor(machine, *options)
        self.addCleanup(server.close)
        wait_until(lambda: RefusalTest.is_ready(server), "readings")
        inference = Server()
        self.addCleanup(inference.server_close)
        self.addCleanup(inference.shutdown)
        copy, *rest = commands["client"]
        self.assertEqual(copy, "scp gpu-node:token .")
        script = "\n".join(rest).replace("http://gpu-node:8000/v1", f"{inference.url()}/v1")
        script = script.replace("gpu-node", f"127.0.0.1:{server.port}").replace("Qwen/Qwen3-8B", "tiny-1b")
        script = re.sub(r"\bipw ", f"{os.path.abspath(IPW)} ", script)
        done = subprocess.run(f"set -e\n{script}", shell=True, cwd=folder, env=self.here.environment(),
                              capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = json.loads(next(folder.glob("runs/*/summary.json")).read_text())
        self.assertGreater(summary["ipw"]["energy"]["joules"], 0)

    def test_rows_wait_for_remote_updates(self):
        """Updates of the monitor arrive after the end of a row."""
        monitor = self.monitor(self.machine(Intel, 40), interval=0.7)
        done = ipw(self.here, "energy", "--sensors", f"remote=127.0.0.1:{monitor.port}", "--count", "3", "--interval",
                   "1", "--format", "csv")
        rows = list(csv.DictReader(done.stdout.splitlines()))
        self.assertEqual(len(rows), 3, done.stderr)
        for row in rows:
            self.assertAlmostEqual(float(row["power_w"]), 40, delta=2)
            self.assertEqual(float(row["coverage"]), 1)

    def test_remote_estimate_is_an_estimate(self):
        monitor = self.monitor(self.machine(Modeled))
        echo_run = self.echo_run(monitor)
        time.sleep(1)
        energy = echo_run.end()["energy"]
        self.assertEqual(energy["method"], "estimated")

    def test_remote_integral_is_an_integral(self):
        monitor = self.monitor(self.machine(Fixture, "jetson"))
        echo_run = self.echo_run(monitor)
        time.sleep(1)
        energy = echo_run.end()["energy"]
        self.assertEqual(energy["method"], "integral")
        self.assertIn(f"remote:127.0.0.1:{monitor.port}/board", energy["source"])


@unittest.skipIf(SANITIZED, "figures: their code is also that of losses and of gRPC")
class ClockTest(RemoteTest):
    def test_remote_clock_with_offset_and_drift(self):
        """The clock is far ahead and drifts like a clock that is being slewed."""
        machine = self.machine(Intel, 10)
        path = self.network_path(self.monitor(machine), ahead=1e5, drift=300e-6)
        report, true = self.undisturbed(lambda energy: energy["coverage"] == 1, machine, path)
        energy = report["energy"]
        self.assertEqual(energy["coverage"], 1)
        self.assertLess(abs(energy["joules"] - true), 3 * energy["plus_minus_statistical"] + 0.001 * true)

    def test_uncertainty_covers_slow_path(self):
        machine = self.machine(Intel, 10)
        monitor = self.monitor(machine)
        for there, back in ((0.2, 0.2), (0.4, 0), (0, 0.4)):
            report, true = self.undisturbed(lambda energy: energy["coverage"] == 1, machine,
                                            self.network_path(monitor, there, back))
            energy = report["energy"]
            with self.subTest(there=there, back=back, true=true, energy=energy):
                self.assertLess(abs(energy["joules"] - true), 2 * energy["plus_minus_statistical"])
                self.assertGreater(energy["plus_minus_statistical"], 0.9 * 0.2 * 190)
                self.assertEqual(energy["coverage"], 1)
        quick, _ = self.undisturbed(lambda energy: energy["plus_minus_statistical"] < 0.2 * 190, machine, monitor)
        self.assertLess(quick["energy"]["plus_minus_statistical"], 0.2 * 190)

    def test_remote_clock_step_leaves_a_gap(self):
        """Like the clock of a host that was suspended."""
        machine = self.machine(Intel, 40)
        path = self.network_path(self.monitor(machine), ahead=1000)
        echo_run = self.echo_run(path)
        path.wait_answers(5)
        before = path.answered[-3]
        path.ahead += 600
        after = path.wait_answers(5)
        path.wait_answers(5)
        report = echo_run.end()
        energy = report["energy"]
        self.assertLess(energy["coverage"], 1)
        self.assertLess((1 - energy["coverage"]) * wall(report), after - before)
        self.assertAlmostEqual(energy["joules"], 40 * wall(report) * energy["coverage"], delta=5)

    def test_wall_clock_steps(self):
        machine = self.machine(Intel, 10)
        step, stepping = self.set_clock(machine)
        monitor = self.monitor(machine)
        for _ in range(5):  # the last update is late where this machine stalls: then not all of the run is covered
            before = monitor.scrape()
            machine.set_power(10)
            starts = time.monotonic()
            echo_run = self.echo_run(monitor, env={key: stepping[key] for key in stepping})
            first, began = machine.count(), time.monotonic()
            for seconds in ("864000", "-864000", "0"):
                step.write_text(seconds)
                monitor.wait_updates(2)
                machine.set_power(100)
                time.sleep(0.5)
                machine.set_power(10)
                monitor.wait_updates(2)
            true, passed = (machine.count() - first) * 1e-6, time.monotonic() - began
            report, took = echo_run.end(), time.monotonic() - starts
            energy = report["energy"]
            if energy["coverage"] == 1:
                break
        self.assertEqual(energy["coverage"], 1)
        at_edges = 10 * (wall(report) - passed)
        self.assertAlmostEqual(energy["joules"], true + at_edges, delta=0.5 + 2 * energy["plus_minus_statistical"])
        self.assertLess(passed, wall(report))
        self.assertLess(wall(report), took)
        after = monitor.wait_updates(3)
        for name in ("ipw_node_cpu_joules_total", "ipw_monitor_updates_total", "ipw_monitor_cpu_seconds_total"):
            self.assertGreater(after.find(name)[0], before.find(name)[0])
        self.assertLess(after.get("ipw_monitor_update_age_seconds"), 60)
        gained = after.get("ipw_node_cpu_joules_total", device="cpu0") - before.get("ipw_node_cpu_joules_total",
                                                                                   device="cpu0")
        self.assertLess(abs(gained - true), 10 * (time.monotonic() - began + 3) + 30)


class LossTest(RemoteTest):
    def test_monitor_restart(self):
        machine = self.machine(Intel, 40)
        monitor = self.monitor(machine)
        echo_run = self.echo_run(monitor)
        monitor.wait_updates(10)
        monitor.close()
        echo_run.wait_for_message("device lost")
        monitor = self.monitor(machine, listen=f"127.0.0.1:{monitor.port}")
        echo_run.wait_for_message("device available again")
        monitor.wait_updates(20)
        report = echo_run.end()
        energy = report["energy"]
        self.assertLess(energy["coverage"], 1)
        self.assertGreater(energy["coverage"], 1.5 / wall(report))
        self.assertAlmostEqual(energy["joules"], 40 * wall(report) * energy["coverage"],
                               delta=0.02 * energy["joules"])
        self.assertIn("not covered", report["devices"][0]["energy"]["note"])

    def test_monitor_exit(self):
        machine = self.machine(Intel, 40)
        monitor = self.monitor(machine)
        path = self.network_path(monitor)
        started = time.monotonic()
        echo_run = self.echo_run(path)
        began = time.monotonic()
        path.wait_answers(15)
        received = path.newest
        monitor.close()
        echo_run.wait_for_message("device lost")
        report = echo_run.end()
        energy = report["energy"]
        self.assertGreater(energy["joules"], 40 * 0.97 * (received - began))
        self.assertAlmostEqual(energy["joules"], 40 * wall(report) * energy["coverage"],
                               delta=0.02 * energy["joules"])
        self.assertLess(energy["coverage"] * wall(report), path.newest - started)

    def test_temporary_network_failure_loses_nothing(self):
        machine = self.machine(Intel, 40)
        path = self.network_path(self.monitor(machine))
        echo_run = self.echo_run(path)
        port = path.port
        path.monitor, monitor = type("Nobody", (), {"port": 1}), path.monitor
        time.sleep(1.5)
        path.monitor = monitor
        path.wait_answers(3)
        energy = echo_run.end()["energy"]
        self.assertEqual(energy["coverage"], 1, port)


class Relay(threading.Thread):
    """A TCP path to a port of this machine.  A new connection takes `delay` seconds until it is forwarded, as on a busy
    machine; `cut` breaks the open ones."""

    def __init__(self, to, delay=0.0):
        super().__init__(daemon=True)
        self.to, self.delay, self.open, self.accepted = int(to), delay, [], 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self.forward, args=(client,), daemon=True).start()

    def forward(self, client):
        time.sleep(self.delay)
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.to)) as server:
            self.open += [client, server]
            back = threading.Thread(target=self.pump, args=(server, client), daemon=True)
            back.start()
            self.pump(client, server)
            back.join()

    @staticmethod
    def pump(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def cut(self):
        for end in self.open:
            with contextlib.suppress(OSError):  # it may have ended already
                end.shutdown(socket.SHUT_RDWR)
        self.open = []

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()


@unittest.skipUnless(FRONT.exists(), "energy-monitor was not built: libgrpc-dev is not installed")
class GrpcTest(RemoteTest):
    """The gRPC service of the Python IPW, here our own implementation, whose messages are tested in
    tests/e2e/test_energy_monitor.py."""

    def serve(self, machine, *options, port=None):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = port or free.getsockname()[1]
        front = subprocess.Popen([FRONT, "--port", str(port), *options], env=machine.environment(),
                                 stderr=subprocess.DEVNULL)
        self.addCleanup(front.wait)
        self.addCleanup(front.kill)
        front.port = f"{port}"
        self.wait_for_energy(port)
        return front

    def wait_for_energy(self, port):
        """Waits for energy, which is available at the second counter reading."""
        wait_until(lambda: all(row["status"] == "ok" for row in self.doctor(port)), "energy over gRPC")

    def doctor(self, port):
        done = ipw(self.here, "doctor", "--json", "--sensors", f"remote=grpc://127.0.0.1:{port}")
        return json.loads(done.stdout)["sensors"]

    def echo_run(self, *ends, **options):
        return EchoRun(self.here, "--sensors", ",".join(f"remote=grpc://127.0.0.1:{end.port}" for end in ends), **options)

    def test_energy_equals_remote_counter(self):
        machine = self.machine(Intel, 10)
        front = self.serve(machine)
        report, true = self.undisturbed(lambda energy: energy["plus_minus_statistical"] < 30 and
                                        energy["coverage"] > 0.8, machine, front, edge=lambda: time.sleep(1))
        self.assertEqual([d["id"] for d in report["devices"]], [f"127.0.0.1:{front.port}/cpu"])  # -1 J for GPUs: none
        energy = report["energy"]
        self.assertGreater(true, 300)
        # On a busy machine the last reading may be late, at 10 W: the pulse is still covered.
        covered = energy["coverage"] * wall(report)
        missing = 10 * (wall(report) - covered)
        self.assertLess(abs(energy["joules"] + missing - true), 2 * energy["plus_minus_statistical"] + 8, (energy, true))
        self.assertLess(energy["plus_minus_statistical"], 0.1 * true)
        self.assertGreater(covered, 1.5)
        self.assertEqual(energy["method"], "counter")

    def test_server_restart(self):
        machine = self.machine(Intel, 40)
        front = self.serve(machine)
        echo_run = self.echo_run(front)
        time.sleep(1.5)
        front.kill()
        front.wait()
        echo_run.wait_for_message("device lost")
        self.serve(machine, port=int(front.port))
        echo_run.wait_for_message("device available again")
        time.sleep(2)
        report = echo_run.end()
        energy = report["energy"]
        self.assertLess(energy["coverage"], 1)
        self.assertAlmostEqual(energy["joules"], 40 * wall(report) * energy["coverage"],
                               delta=0.05 * energy["joules"] + 2.5 * energy["plus_minus_statistical"])

    def test_channels_are_those_of_the_server(self):
        """A card without temperature and utilization: the fields of the protocol are -1."""
        front = self.serve(self.machine(Nvidia, "power * constant 250\ntick * 0.02\nfail nvmlDeviceGetTemperature * 3\n"
                                        "fail nvmlDeviceGetUtilizationRates * 3\ngpm * no\n"))
        wait_until(lambda: "memory_used" in self.doctor(front.port)[0]["measures"], "gauges")
        measures = self.doctor(front.port)[0]["measures"]
        self.assertFalse({"temperature", "utilisation", "memory_utilisation", "tensor_utilisation"} & set(measures), measures)
        self.assertIn("energy", measures)

    def relay(self, *arguments, **options):
        relay = Relay(*arguments, **options)
        self.addCleanup(relay.close)
        return relay

    def test_slow_connection(self):
        """Each connection takes three seconds: it is opened once for a run, not for each reading."""
        relay = self.relay(self.serve(self.machine(Intel, 40)).port, delay=3)
        echo_run = self.echo_run(relay)
        time.sleep(2)
        report = echo_run.end()
        energy = report["energy"]
        self.assertGreater(energy["coverage"] * wall(report), 1)
        self.assertAlmostEqual(energy["joules"], 40 * wall(report) * energy["coverage"],
                               delta=0.05 * energy["joules"] + 2 * energy["plus_minus_statistical"])

    def test_stream_stays_open(self):
        relay = self.relay(self.serve(self.machine(Intel, 40)).port)
        echo_run = self.echo_run(relay)
        before = relay.accepted
        time.sleep(3)
        self.assertLess(relay.accepted - before, 9)  # the stream, and short calls at first for the clock offset
        self.assertGreater(echo_run.end()["energy"]["coverage"], 0.5)

    def test_broken_stream_is_resumed(self):
        relay = self.relay(self.serve(self.machine(Intel, 40)).port)
        echo_run = self.echo_run(relay)
        time.sleep(1)
        relay.cut()
        time.sleep(1.5)
        report = echo_run.end()
        energy = report["energy"]
        self.assertNotIn("lost", echo_run.stderr)
        self.assertGreater(energy["coverage"] * wall(report), 2)
        self.assertAlmostEqual(energy["joules"], 40 * wall(report) * energy["coverage"],
                               delta=0.05 * energy["joules"] + 2 * energy["plus_minus_statistical"])

    def test_steps_of_the_server_clock_leave_gaps(self):
        machine = self.machine(Intel, 40)
        step, _ = self.set_clock(machine)
        echo_run = self.echo_run(self.serve(machine))
        for seconds in ("0", "600", "-7", "0"):
            step.write_text(seconds)
            time.sleep(1)
        report = echo_run.end()
        energy = report["energy"]
        self.assertLess(energy["coverage"], 1)
        self.assertGreater(energy["coverage"], 0.3)
        self.assertAlmostEqual(energy["joules"], 40 * wall(report) * energy["coverage"],
                               delta=0.05 * energy["joules"] + 2 * energy["plus_minus_statistical"])

    def test_reason_of_a_loss(self):
        front = self.serve(self.machine(Intel, 40))
        echo_run = self.echo_run(front)
        time.sleep(0.5)
        front.kill()
        front.wait()
        echo_run.wait_for_message("device lost")
        echo_run.end()
        self.assertIn(f"device lost (cannot reach http://127.0.0.1:{front.port} (Connection refused)", echo_run.stderr)

    def test_silent_server_is_reported(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            where = f"127.0.0.1:{silent.getsockname()[1]}"
            self.refused(f"remote=grpc://{where}", f"{where} sent no reading within 10 s")

    def test_wrong_protocol_is_reported(self):
        monitor = self.monitor(self.machine(Intel, 40))
        self.refused(f"remote=grpc://127.0.0.1:{monitor.port}",
                     f"127.0.0.1:{monitor.port} is an HTTP/1 server, not a gRPC server")
        self.refused("remote=grpc://127.0.0.1:1", "cannot reach http://127.0.0.1:1 (Connection refused)")
        front = self.serve(self.machine(Intel, 40))
        self.refused(f"remote=127.0.0.1:{front.port}", f"127.0.0.1:{front.port}")


class RefusalTest(RemoteTest):
    def test_token_is_required(self):
        file = self.here.put("/token", SECRET)
        monitor = self.monitor_with_token(file)
        where = f"remote=127.0.0.1:{monitor.port}"
        done = self.refused(where, "requires a token", "IPW_MONITOR_TOKEN")
        self.refused(where, "requires a token", env={"IPW_MONITOR_TOKEN": SECRET + "x"})
        for env in ({"IPW_MONITOR_TOKEN": SECRET}, {"IPW_MONITOR_TOKEN_FILE": str(file)}):
            done = ipw(self.here, "doctor", "--json", "--sensors", where, env=env)
            self.assertEqual([row["status"] for row in json.loads(done.stdout)["sensors"]], ["ok"], done.stderr)
            self.assertNotIn(SECRET, done.stdout + done.stderr)
        self.refused(where, "no-such-file", env={"IPW_MONITOR_TOKEN_FILE": "/no-such-file"})
        rows = json.loads(ipw(self.here, "doctor", "--json", "--sensors", where).stdout)["sensors"]
        self.assertEqual([row["status"] for row in rows], ["denied"])

    def test_monitor_must_allow_the_name_of_its_host(self):
        """libcurl resolves names below localhost itself."""
        refusing, allowing = (self.monitor(self.machine(Intel, 40), *options)
                              for options in ((), ("--allow-host", "node.localhost")))
        done = self.refused(f"remote=node.localhost:{refusing.port}", "--allow-host NAME")
        self.assertNotIn("token", done.stderr)
        done = ipw(self.here, "doctor", "--json", "--sensors", f"remote=node.localhost:{allowing.port}")
        self.assertEqual([row["status"] for row in json.loads(done.stdout)["sensors"]], ["ok"], done.stderr)

    def monitor_with_token(self, file):
        monitor = Monitor(self.machine(Intel, 40), "--token-file", file, "--interval", "0.1")
        self.addCleanup(monitor.close)
        wait_until(lambda: self.is_ready(monitor), "readings")
        return monitor

    @staticmethod
    def is_ready(monitor):
        try:
            return monitor.ask("/readyz").status == 200
        except urllib.error.HTTPError:
            return False

    def test_rejects_servers_that_are_no_monitor(self):
        class Other(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200 if self.server.body else 404)
                self.end_headers()
                self.wfile.write(self.server.body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        where = f"remote=127.0.0.1:{server.server_address[1]}"
        for body in (b"", b"<html>", b"{}", b'{"format":"ipw.readings.v1"}', b'{"format":"ipw.readings.v1"'):
            server.body = body
            self.refused(where, "ipw monitor")
        rows = json.loads(ipw(self.here, "doctor", "--json", "--sensors", where).stdout)["sensors"]
        self.assertEqual([row["status"] for row in rows], ["unsupported"])

    def test_rejects_invalid_addresses(self):
        monitor = self.monitor(self.machine(Intel, 40))
        good = f"remote=127.0.0.1:{monitor.port}"
        self.refused("remote=127.0.0.1:1", "127.0.0.1:1", "cannot reach")
        self.refused(f"{good},remote=127.0.0.1:1", "127.0.0.1:1", "cannot reach")  # one of two hosts is unreachable
        self.refused("remote=no-such-host.invalid", "no-such-host.invalid")
        self.refused(f"{good},{good}", "more than once")
        for wrong in ("remote", "remote="):
            self.assertEqual(self.refused(wrong, "remote=HOST[:PORT]").returncode, 2)
        self.assertEqual(self.refused("rapl=3", "rapl takes no argument").returncode, 2)
        self.assertEqual(self.refused("remotely=a", "did you mean 'remote'").returncode, 2)
        self.assertEqual(self.refused("rapl,,nvml", "--sensors").returncode, 2)


if __name__ == "__main__":
    main_parallel(2)
