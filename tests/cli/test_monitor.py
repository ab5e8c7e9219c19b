#!/usr/bin/env python3
# test: real time, asan
"""Command-line tests of `ipw monitor` on machines with known readings: metrics, lost and reopened sensors, attribution
of energy, and behavior as a server."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import unittest
import urllib.error
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import IntelNvidia, Intel, Nvidia  # noqa: E402
from monitors import Monitor, Scrape  # noqa: E402
from program import MachineTest, TIMEOUT_S, ipw, main_parallel, python  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]
UUID = "GPU-0000000{0}-1111-2222-3333-444444444444"
PARTITIONED = ("power 0 constant 300\ntick * 0.02\nmig 0 3\nmig_instance 0 0 2 50 2g.35gb\n"
               "mig_instance 0 1 1 10 1g.18gb\nmig_instance 0 2 1 nan 1g.18gb\n")
CONTAINER = "0123456789abcdef" * 4


class MonitorTest(MachineTest):
    def monitor(self, machine, *options, **more):
        monitor = Monitor(machine, *options, **more)
        self.addCleanup(monitor.close)
        return monitor


class SeriesTest(MonitorTest):
    def test_energy_equals_counter(self):
        machine = self.machine(Intel, 40, 25)
        monitor = self.monitor(machine, "--processes", "off")

        def standing():
            for package in (0, 1):
                machine.set_power(0, package)
            scrape = monitor.wait_updates(3)
            counts = [machine.count(package) for package in (0, 1)]
            for package, watts in enumerate((40, 25)):
                machine.set_power(watts, package)
            return counts, [scrape.get("ipw_node_cpu_joules_total", device=f"cpu{i}") for i in (0, 1)], scrape

        monitor.wait_updates(2)
        counts, joules, _ = standing()
        monitor.wait_updates(2)
        later_counts, later_joules, scrape = standing()
        for package in (0, 1):
            self.assertAlmostEqual((later_counts[package] - counts[package]) * 1e-6,
                                   later_joules[package] - joules[package], places=3)
        self.assertGreater(later_joules[0] - joules[0], 40)
        self.assertAlmostEqual(scrape.get("ipw_node_joules_total", method="counter"), sum(later_joules), delta=70)
        self.assertEqual(scrape.labels("ipw_node_cpu_joules_total", device="cpu1"),
                         [{"zone": "package", "device": "cpu1", "sensor": "rapl:1", "method": "counter"}])

    def test_all_gpu_metrics(self):
        machine = self.machine(Nvidia, "devices 2\npower 0 constant 300\npower 1 constant 100\ntick * 0.02\n"
                               "value throttle 0 4\nvalue temperature 1 51\nvalue clock_sm 0 1500\n"
                               "value memory_used 0 3e9\nname 1 NVIDIA \"quoted\\back\"")
        monitor = self.monitor(machine)

        def settled(now):  # power is corrected by the first counter readings; activities need two readings
            return (now.find("ipw_gpu_sm_active_ratio", gpu="0") and now.find("ipw_gpu_temperature_celsius", gpu="1")
                    and all(abs(found - watts) <= 0.5 for zone, watts in (("gpu", 300), ("gpu_memory", 60))
                            for found in now.find("ipw_node_gpu_watts", gpu="0", zone=zone) or [0]))

        first, began = monitor.wait(settled), time.monotonic()
        for name, value in (("utilization_ratio", 0.5), ("memory_utilization_ratio", 0.2), ("clock_hertz", 1500e6),
                            ("memory_clock_hertz", 3201e6), ("memory_used_bytes", 3e9), ("memory_total_bytes", 150e9),
                            ("temperature_celsius", 45), ("power_limit_watts", 700), ("sm_active_ratio", 0.6),
                            ("sm_occupancy_ratio", 0.4), ("dram_active_ratio", 0.25), ("fp64_active_ratio", 0),
                            ("fp32_active_ratio", 0.12), ("fp16_active_ratio", 0.06),
                            ("tensor_utilization_ratio", 0.3)):
            self.assertAlmostEqual(first.get(f"ipw_gpu_{name}", gpu="0"), value, places=9, msg=name)
        self.assertEqual(first.get("ipw_gpu_temperature_celsius", gpu="1"), 51)
        self.assertEqual({have["reason"]: first.get("ipw_gpu_throttled", **have)
                          for have in first.labels("ipw_gpu_throttled", gpu="0")},
                         {"power": 1, "thermal": 0, "brake": 0, "limit": 0, "sync": 0, "other": 0})
        labels = first.labels("ipw_node_gpu_joules_total", gpu="1", zone="gpu")[0]
        self.assertEqual(labels, {"gpu": "1", "UUID": UUID.format(1), "pci_bus_id": labels["pci_bus_id"],
                                  "device": "nvidia1", "model_name": 'NVIDIA "quoted\\back"', "zone": "gpu",
                                  "method": "counter"})
        self.assertEqual(first.get("ipw_energy_counted", gpu="0", zone="gpu"), 1)
        self.assertEqual(first.get("ipw_energy_counted", gpu="0", zone="gpu_memory"), 0)
        later = monitor.wait_updates(8)
        passed = time.monotonic() - began
        grown = [later.get("ipw_node_gpu_joules_total", gpu=gpu, zone="gpu") -
                 first.get("ipw_node_gpu_joules_total", gpu=gpu, zone="gpu") for gpu in ("0", "1")]
        for watts, joules in zip((300, 100), grown):  # readings may be some seconds old
            self.assertAlmostEqual(joules, watts * passed, delta=watts * 4)

    def test_mig_instances(self):
        """Shared by slices and SM activity; idle power, and that of instances without activity, is unattributed."""
        monitor = self.monitor(self.machine(Nvidia, PARTITIONED))
        gpu = {"gpu": "0", "UUID": UUID.format(0)}
        name = "ipw_node_gpu_instance_joules_total"

        def grown(after, name, **labels):
            return after.get(name, **labels) - first.get(name, **labels)

        first = monitor.wait(lambda now: now.find("ipw_gpu_sm_active_ratio", GPU_I_ID="2"))
        first = monitor.wait_updates(3)
        last = monitor.wait(lambda now: grown(now, name, GPU_I_ID="1") > 200)
        joules = grown(last, "ipw_node_gpu_joules_total", gpu="0", zone="gpu")
        self.assertAlmostEqual(grown(last, name, GPU_I_ID="1"), joules * 2 / 7 * 0.5, delta=0.01 * joules)
        self.assertAlmostEqual(grown(last, name, GPU_I_ID="1") / grown(last, name, GPU_I_ID="2"), 10, places=6)
        self.assertEqual(grown(last, name, GPU_I_ID="3"), 0)
        self.assertAlmostEqual(sum(last.find(name)) + last.get("ipw_node_gpu_instance_unattributed_joules_total", **gpu),
                               last.get("ipw_node_gpu_joules_total", gpu="0", zone="gpu"), delta=0.01 * joules)
        self.assertEqual(last.labels(name, GPU_I_ID="1"), [{"GPU_I_ID": "1", "GPU_I_PROFILE": "2g.35gb", **gpu}])
        self.assertEqual(last.get("ipw_gpu_sm_active_ratio", GPU_I_ID="1", gpu="0", device="nvidia0"), 0.5)
        self.assertEqual(last.find("ipw_gpu_sm_active_ratio", GPU_I_ID="3"), [])
        self.assertEqual(last.get("ipw_gpu_memory_total_bytes", GPU_I_ID="2"), 18 << 30)
        self.assertEqual(last.get("ipw_node_joules_total", method="counter"),
                         last.get("ipw_node_gpu_joules_total", gpu="0", zone="gpu"))

    def test_power_replaces_dead_counter(self):
        machine = self.machine(Nvidia, "power 0 constant 300\nvalue energy_mj 0 5000")
        monitor = self.monitor(machine)
        labels = {"gpu": "0", "zone": "gpu", "method": "integral"}
        first = monitor.wait(lambda now: now.find("ipw_node_gpu_joules_total", **labels))
        self.assertAlmostEqual(first.get("ipw_node_gpu_watts", **labels), 300, delta=0.5)
        monitor.wait(lambda now: now.get("ipw_node_gpu_joules_total", **labels) >
                     first.get("ipw_node_gpu_joules_total", **labels) + 600)

    def test_dead_sensor_has_no_metrics(self):
        machine = self.machine(Intel, 40, 0)
        monitor = self.monitor(machine)
        scrape = monitor.wait_updates(3)
        for name in ("ipw_node_cpu_joules_total", "ipw_node_cpu_watts", "ipw_energy_counted"):
            self.assertEqual(len(scrape.find(name, device="cpu0")), 1)
            self.assertEqual(scrape.find(name, device="cpu1"), [], name)
        self.assertEqual(scrape.get("ipw_energy_up", device="cpu1"), 0)
        self.assertEqual(scrape.get("ipw_sensor_up", sensor="rapl:1"), 0)
        self.assertEqual(scrape.labels("ipw_sensor_info", sensor="rapl:1")[0]["status"], "dead")
        self.assertEqual(scrape.get("ipw_sensor_up", sensor="rapl:0"), 1)

    def test_dead_counter_is_read_rarely_until_it_recovers(self):
        machine = self.machine(Intel, 40, 0)
        monitor = self.monitor(machine, "--interval", "0.1", "--processes", "off")
        reads = lambda scrape: [scrape.get("ipw_sensor_reads_total", sensor=f"rapl:{i}") for i in (0, 1)]
        monitor.wait_updates(70)
        before = reads(monitor.scrape())
        after = reads(monitor.wait_updates(30))
        self.assertLess(after[1] - before[1], (after[0] - before[0]) / 3)
        machine.set_power(25, 1)
        alive = monitor.wait(lambda now: now.find("ipw_node_cpu_watts", device="cpu1"))
        before = reads(alive)
        after = reads(monitor.wait_updates(30))
        self.assertGreater(after[1] - before[1], (after[0] - before[0]) / 2)

    def test_metrics_are_documented(self):
        page = (SOURCE / "docs/monitor.md").read_text()
        documented = set(re.findall(r"^\| `(ipw_\w+)", page, re.M))
        families = re.findall(r'^FAMILY\(\w+, (\w+), "(\w+)"', (SOURCE / "src/monitor/families.def").read_text(), re.M)
        defined = {name + ("_total" if kind == "COUNTER" else "") for kind, name in families}
        self.assertEqual(documented, defined)
        self.assertFalse([name for name in defined if name.startswith("ipw_run_")])
        # Activities need two readings, so the first scrapes may lack some families.
        scrape = self.monitor(self.machine(IntelNvidia)).wait(lambda now: len(now.types) > 40)
        self.assertLessEqual(set(scrape.types), defined)


class LossTest(MonitorTest):
    def test_lost_gpu_recovers(self):
        healthy = "devices 2\npower * constant 300\ntick * 0.02\n"
        machine = self.machine(Nvidia, healthy)
        monitor = self.monitor(machine)
        before = monitor.wait_updates(3)
        machine.script(healthy + "fail * 0 15\n")
        lost = monitor.wait(lambda now: now.find("ipw_energy_up", gpu="0", zone="gpu") == [0.0])
        for name in ("ipw_node_gpu_joules_total", "ipw_node_gpu_watts", "ipw_gpu_temperature_celsius"):
            self.assertEqual(lost.find(name, gpu="0"), [], name)
            self.assertTrue(lost.find(name, gpu="1"), name)
        self.assertEqual(lost.get("ipw_sensor_up", sensor="nvml:0"), 0)
        self.assertEqual(lost.labels("ipw_sensor_info", sensor="nvml:0")[0]["status"], "lost")
        self.assertEqual(lost.get("ipw_sensor_losses_total", sensor="nvml:0"), 1)
        lost = monitor.wait_updates(2)
        machine.script(healthy)
        back = monitor.wait(lambda now: now.find("ipw_node_gpu_watts", gpu="0", zone="gpu"))
        for name in ("ipw_node_gpu_joules_total",):
            self.assertGreaterEqual(back.get(name, gpu="0", zone="gpu"), before.get(name, gpu="0", zone="gpu"))
        self.assertGreaterEqual(back.get("ipw_node_joules_total"), lost.get("ipw_node_joules_total"))
        # The time without readings is not included; that of the other GPU is.
        self.assertLess(back.get("ipw_node_gpu_joules_total", gpu="0", zone="gpu") + 300,
                        back.get("ipw_node_gpu_joules_total", gpu="1", zone="gpu"))

    def test_total_does_not_fall_when_only_gpu_is_lost(self):
        """Prometheus would treat a decrease as a counter reset and add the total again."""
        healthy = "devices 1\npower * constant 300\ntick * 0.02\n"
        machine = self.machine(Nvidia, healthy)
        monitor = self.monitor(machine)
        before = monitor.wait(lambda now: now.find("ipw_node_watts", method="counter"))
        machine.script(healthy + "fail * 0 15\n")
        monitor.wait(lambda now: now.find("ipw_energy_up", gpu="0", zone="gpu") == [0.0])
        lost = monitor.wait(lambda now: not now.find("ipw_node_watts", method="counter"))
        self.assertGreaterEqual(lost.get("ipw_node_joules_total", method="counter"),
                                before.get("ipw_node_joules_total", method="counter"))

    def test_reload_keeps_counters_and_finds_devices(self):
        script = "power * constant 300\ntick * 0.02\n"
        machine = self.machine(Nvidia, "devices 1\n" + script)
        monitor = self.monitor(machine)
        before = monitor.wait_updates(3)
        self.assertEqual(len(before.find("ipw_sensor_up")), 1)
        machine.script("devices 2\n" + script)
        for reloads in (1, 2):
            monitor.process.send_signal(signal.SIGHUP)
            monitor.wait(lambda now: now.get("ipw_monitor_reloads_total") >= reloads)
            after = monitor.wait_updates(3)
            for name, samples in before.samples.items():
                for labels, value in samples if name.endswith("_total") else ():
                    self.assertGreaterEqual(after.get(name, **labels), value, name)
            self.assertGreater(after.get("ipw_node_gpu_joules_total", gpu="0", zone="gpu"),
                               before.get("ipw_node_gpu_joules_total", gpu="0", zone="gpu") + 300)
            before = after
        self.assertEqual(after.get("ipw_sensor_up", sensor="nvml:1"), 1)
        self.assertEqual(monitor.end(), 0)


BURN = """
import sys, time
share, began = float(sys.argv[1]), time.monotonic()
print(flush=True)
while True:
    while time.process_time() > share * (time.monotonic() - began): time.sleep(0.01)
    for _ in range(20000): pass
"""


class AttributionTest(MonitorTest):
    def conserved(self, scrape, device, **labels):
        parts = {part: scrape.get(f"ipw_node_{device}_{part}_joules_total", **labels)
                 for part in ("active", "idle", "unattributed")}
        for kind in ("process", "cgroup"):
            given = sum(scrape.find(f"ipw_{kind}_{device}_joules_total", **labels)) + \
                scrape.get(f"ipw_{kind}_other_{device}_joules_total", **labels)
            self.assertAlmostEqual(given + parts["unattributed"], parts["active"], delta=1e-6 * parts["active"] + 1e-9)
        return parts

    def test_active_energy_is_shared_by_cpu_time(self):
        machine = self.machine(Intel, 40)
        (machine.root / "proc/stat").symlink_to("/proc/stat")
        monitor = self.monitor(machine)
        processes = []
        for share in (0.2, 0.4):
            process = subprocess.Popen(python(BURN, share), stdout=subprocess.PIPE)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            process.stdout.readline()
            (machine.root / f"proc/{process.pid}").symlink_to(f"/proc/{process.pid}")
            process.stdout.close()
            processes.append(process)

        def ticks(process):
            fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])

        until = time.monotonic() + TIMEOUT_S
        while min(map(ticks, processes)) < 100:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.2)
        for process in processes:
            process.send_signal(signal.SIGSTOP)

        def attributed(scrape):
            return sum(scrape.find("ipw_node_cpu_active_joules_total") + scrape.find("ipw_node_cpu_idle_joules_total"))

        for _ in range(2):  # rounds that start after they were stopped
            seen = attributed(monitor.scrape())
            scrape = monitor.wait(lambda now: attributed(now) > seen)
        joules = [scrape.get("ipw_process_cpu_joules_total", pid=str(process.pid)) for process in processes]
        true = [ticks(process) for process in processes]
        self.assertAlmostEqual(joules[1] / joules[0], true[1] / true[0], delta=0.05 * true[1] / true[0])
        parts = self.conserved(scrape, "cpu")
        self.assertLessEqual(parts["active"] + parts["idle"], scrape.get("ipw_node_cpu_joules_total") * (1 + 1e-9))
        self.assertEqual(scrape.labels("ipw_process_cpu_joules_total", pid=str(processes[0].pid))[0]["comm"],
                         Path(f"/proc/{processes[0].pid}/comm").read_text().strip())
        self.assertEqual(scrape.get("ipw_attribution_info", of="cpu", method="counter", by="cpu_time"), 1)
        for process in processes:  # a process that ended is counted with the others
            process.kill()
            process.wait()
        for process in processes:
            (machine.root / f"proc/{process.pid}").unlink()
        scrape = monitor.wait(lambda now: not now.find("ipw_process_cpu_joules_total"))
        self.assertGreaterEqual(scrape.get("ipw_process_other_cpu_joules_total"), sum(joules) * 0.999999)
        self.conserved(scrape, "cpu")

    def test_names_cannot_control_a_terminal(self):
        """Every user of the machine can name a process."""
        machine = self.machine(Nvidia, "tick * 0.02\npower 0 constant 100\nname 0 \x1b[2JGPU\nvalue utilisation 0 80\n"
                               "process 0 4242 1e9 60\n")
        machine.put("/proc/4242/comm", "\x1b[31m\x07\u202e\t\"\\")
        machine.put("/proc/4242/cgroup", "0::/docker/\x1b]0;x")
        machine.put("/proc/4242/stat", "4242 (x) S 1 " + "0 " * 60)
        scrape = self.monitor(machine, "--interval", "0.2").wait(lambda now: now.labels("ipw_process_gpu_joules_total"))
        self.assertEqual(re.findall("[^\n -~]", scrape.text), [])
        self.assertEqual(scrape.labels("ipw_process_gpu_joules_total")[0]["comm"], r"\x1b[31m\x07\u202e\t" + '"\\')
        self.assertEqual(scrape.labels("ipw_cgroup_gpu_joules_total")[0]["cgroup"], r"/docker/\x1b]0;x")

    def test_active_gpu_energy_is_shared_by_utilization(self):
        script = "tick * 0.02\npower 0 steps {0}\nvalue utilisation 0 {1}\n"
        machine = self.machine(Nvidia, script.format("0:100", 0))
        for pid, name in ((4242, "trainer"), (4243, "server")):
            machine.put(f"/proc/{pid}/comm", name)
            machine.put(f"/proc/{pid}/cgroup", f"0::/docker/{CONTAINER}" if pid == 4242 else "0::/system.slice")
            machine.put(f"/proc/{pid}/stat", f"{pid} ({name}) S 1 " + "0 " * 60)
        began = time.monotonic()
        monitor = self.monitor(machine)
        gpu = {"gpu": "0", "UUID": UUID.format(0)}
        idle = monitor.wait(lambda now: now.find("ipw_node_gpu_idle_joules_total", **gpu) > [400])
        self.assertEqual(idle.find("ipw_process_gpu_joules_total"), [])
        # Power rises in a round that still has no utilization: idle power is not that of this round.  It rises later
        # than now: a script that changes the past would make the samples of power contradict the counter.
        power = f"0:100 {time.monotonic() - began + 1}:300"
        machine.script(script.format(power, 0))
        idle = monitor.wait(lambda now: now.get("ipw_node_gpu_watts", gpu="0", zone="gpu") > 290)
        monitor.wait(lambda now: now.get("ipw_node_gpu_idle_joules_total", **gpu) >
                     idle.get("ipw_node_gpu_idle_joules_total", **gpu))
        machine.script(script.format(power, 80) + "process 0 4242 1e9 60\nprocess 0 4243 1e9 20\n")
        # The first round with processes has them only in a part of its time.
        first = monitor.wait(lambda now: len(now.find("ipw_process_gpu_joules_total")) == 2)
        last = monitor.wait(lambda now: now.get("ipw_process_gpu_joules_total", pid="4243") >
                            first.get("ipw_process_gpu_joules_total", pid="4243"))

        def grown(name, **labels):
            return last.get(name, **labels) - first.get(name, **labels)

        trainer = grown("ipw_process_gpu_joules_total", pid="4242", comm="trainer", **gpu)
        server = grown("ipw_process_gpu_joules_total", pid="4243", comm="server", **gpu)
        self.assertAlmostEqual(trainer / server, 3, delta=0.03)
        active = grown("ipw_node_gpu_active_joules_total", **gpu)
        self.assertAlmostEqual(active / grown("ipw_node_gpu_idle_joules_total", **gpu), 2, delta=0.2)
        self.assertAlmostEqual(trainer + server, active, delta=1e-6 * active)
        self.assertEqual(grown("ipw_node_gpu_unattributed_joules_total", **gpu), 0)
        self.assertEqual(last.labels("ipw_cgroup_gpu_joules_total", cgroup=f"/docker/{CONTAINER}"),
                         [{"cgroup": f"/docker/{CONTAINER}", "container_id": CONTAINER, **gpu}])
        parts = self.conserved(last, "gpu", **gpu)
        self.assertLessEqual(parts["active"] + parts["idle"],
                             last.get("ipw_node_gpu_joules_total", gpu="0", zone="gpu") * (1 + 1e-9))

    def test_idle_energy_is_that_of_the_time_with_readings(self):
        """A monitor that is stopped continues with old readings: their energy is not that of the time until now."""
        monitor = self.monitor(self.machine(Nvidia, "tick * 0.02\npower 0 constant 100\nvalue utilisation 0 0\n"))
        gpu = {"gpu": "0", "UUID": UUID.format(0)}
        first = monitor.wait(lambda now: now.find("ipw_node_gpu_idle_joules_total", **gpu) > [0])
        for _ in range(5):  # most rounds are due while it is stopped
            monitor.process.send_signal(signal.SIGSTOP)
            time.sleep(3)
            monitor.process.send_signal(signal.SIGCONT)
            last = monitor.wait_updates(1)

        def grown(name):
            return last.get(name, **gpu) - first.get(name, **gpu)

        self.assertGreater(grown("ipw_node_gpu_idle_joules_total"), 400)
        self.assertLess(grown("ipw_node_gpu_active_joules_total"), 0.03 * grown("ipw_node_gpu_idle_joules_total"))

    def test_attribution_can_be_disabled(self):
        scrape = self.monitor(self.machine(IntelNvidia), "--processes", "off").wait_updates(1)
        self.assertFalse([name for name in scrape.types if re.search("process|cgroup|attribut|idle", name)])


class ServerTest(MonitorTest):
    def status(self, monitor, path, **headers):
        try:
            with monitor.ask(path, **headers) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def test_http_pages(self):
        monitor = self.monitor(self.machine(Intel, 40))
        self.assertEqual(self.status(monitor, "/healthz"), (200, "ok\n"))
        monitor.wait(lambda now: now.get("ipw_sensor_up"))
        self.assertEqual(self.status(monitor, "/readyz"), (200, "ready\n"))
        self.assertEqual(self.status(monitor, "/nothing")[0], 404)
        status, page = self.status(monitor, "/")
        self.assertEqual(status, 200)
        self.assertIn('href="/metrics"', page)
        with monitor.ask() as answer:
            self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        self.assertEqual(monitor.end(signal.SIGINT), 130)

    def test_openmetrics_on_request(self):
        monitor = self.monitor(self.machine(IntelNvidia))
        for accept, is_open in (("application/openmetrics-text; version=1.0.0", True),
                                ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5", True),
                                ("text/plain;version=0.0.4, application/openmetrics-text;q=0.2", False),
                                ("application/openmetrics-text;q=0", False), ("*/*", False)):
            with monitor.ask(Accept=accept) as answer:
                text, kind = answer.read().decode(), answer.headers["Content-Type"]
            self.assertEqual(kind.startswith("application/openmetrics-text; version=1.0.0"), is_open, accept)
            self.assertEqual(text.endswith("\n# EOF\n"), is_open, accept)
            if is_open:
                self.assertIn("# TYPE ipw_node_gpu_joules counter\n# UNIT ipw_node_gpu_joules joules\n"
                              "ipw_node_gpu_joules_total{", text)
                self.assertTrue(Scrape(text).find("ipw_node_gpu_joules_total"))

    def test_no_sensor_is_not_ready(self):
        monitor = self.monitor(self.machine(Intel))
        self.assertEqual(self.status(monitor, "/readyz"), (503, "not ready: no sensor has current readings\n"))
        self.assertEqual(self.status(monitor, "/healthz")[0], 200)
        self.assertEqual(monitor.scrape().find("ipw_node_joules_total"), [])

    def test_token_is_required(self):
        machine = self.machine(Intel, 40)
        token = machine.put("/token", "correct-horse")
        monitor = self.monitor(machine, "--token-file", token, listen="0.0.0.0:0")
        for path in ("/metrics", "/", "/nothing"):
            self.assertEqual(self.status(monitor, path)[0], 401)
        self.assertEqual(self.status(monitor, "/metrics", Authorization="Bearer correct-hors")[0], 401)
        self.assertEqual(self.status(monitor, "/metrics", Authorization="Bearer correct-horse")[0], 200)
        self.assertEqual(self.status(monitor, "/healthz")[0], 200)

    def test_other_addresses_need_a_token(self):
        machine = self.machine(Intel, 40)
        done = ipw(machine, "monitor", "--listen", "0.0.0.0:0")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--token-file", done.stderr)
        monitor = self.monitor(machine, "--no-token", listen="0.0.0.0:0")
        self.assertEqual(self.status(monitor, "/metrics")[0], 200)

    def test_rejects_invalid_options(self):
        machine = self.machine(Intel, 40)
        empty, short = machine.put("/empty", ""), machine.put("/short", "abc")
        for options, complaint in ((["--processes", "many"], "--processes many"), (["--listen", "127.0.0.1:x"], "--listen"),
                                   (["--listen", "127.0.0.1:99999"], "'99999' is not a port (0 to 65535); expected PORT"),
                                   (["--listen", "nonsense"], "'nonsense', which is not an address of this machine"),
                                   (["--listen", "nonsense:1"], "expected PORT, ADDRESS or ADDRESS:PORT, such as"),
                                   (["--listen", "192.0.2.1:0"], "not one of its interfaces"),
                                   (["--sensors", "nvlm"], "nvml"),
                                   (["--token-file", empty], "no token"), (["--token-file", short], "too short"),
                                   (["--token-file", empty, "--no-token"], "mutually exclusive"), (["--interval", "0"], "--interval"),
                                   (["--telemetry-fd", "77"], "not an open descriptor"), (["--token", "x"], "--token-file")):
            done = ipw(machine, "monitor", *options)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(complaint, done.stderr)
        done = ipw(machine, "monitor", "--token-file", machine.root / "none")
        self.assertEqual(done.returncode, 1)

    def test_port_in_use(self):
        machine = self.machine(Intel, 40)
        monitor = self.monitor(machine)
        done = ipw(machine, "monitor", "--listen", monitor.port)
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(monitor.port), done.stderr)

    def test_scrapes_read_no_sensor_and_slow_clients_block_no_other(self):
        monitor = self.monitor(self.machine(IntelNvidia))
        before = monitor.wait_updates(2)
        slow = [socket.create_connection(("127.0.0.1", monitor.port), timeout=TIMEOUT_S) for _ in range(100)]
        self.addCleanup(lambda: [connection.close() for connection in slow])
        for i, connection in enumerate(slow):  # half a request; a request whose response is not read
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + b"\r\n" * (i % 2))
        with socket.create_connection(("127.0.0.1", monitor.port), timeout=TIMEOUT_S) as connection, \
                connection.makefile("rb") as stream:
            for _ in range(1000):
                connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                length = 0
                while (line := stream.readline().strip()):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                self.assertEqual(len(stream.read(length)), length)
        after = monitor.scrape()
        scrapes = after.get("ipw_monitor_scrapes_total") - before.get("ipw_monitor_scrapes_total")
        self.assertGreaterEqual(scrapes, 1050)
        updates = after.get("ipw_monitor_updates_total") - before.get("ipw_monitor_updates_total")
        reads = sum(after.find("ipw_sensor_reads_total")) - sum(before.find("ipw_sensor_reads_total"))
        self.assertLess(reads, 40 * (updates + 2))  # two GPUs and two packages, independent of scrapes
        self.assertEqual(monitor.end(), 0)


if __name__ == "__main__":
    main_parallel()
