#!/usr/bin/env python3
# test: real time
"""Soak tests of `ipw monitor`: six simulated hours, and hours with faults, in seconds by a faster clock
(fakes/fast_clock.c).  Memory and file descriptors must not grow."""

import os
import random
import shutil
import signal
import socket
import sys
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import FAKES, IntelNvidia, Intel, Ramp  # noqa: E402
from monitors import Monitor, Scrape  # noqa: E402
from program import MachineTest, TIMEOUT_S, main_parallel  # noqa: E402

WARM_UP, UPDATES = 1800, 5400
SCRAPES = 24000


def fast(machine, speed):
    """The machine with a clock that is this much faster."""
    environment = machine.environment()
    environment["LD_PRELOAD"] += ":" + os.path.abspath(os.path.join(FAKES, "libfake_fast_clock.so"))
    environment["IPW_FAKE_SPEED"] = str(speed)
    machine.environment = lambda: environment
    return machine


class SoakTest(MachineTest):
    def monitor(self, *arguments):
        monitor = Monitor(*arguments)
        self.addCleanup(monitor.close)
        threading.Thread(target=monitor.process.stderr.read, daemon=True).start()  # warnings of lost sensors
        return monitor

    def ask(self, monitor):
        """A scrape, repeated if needed: timeouts are short with a fast clock."""
        until = time.monotonic() + TIMEOUT_S
        while time.monotonic() < until:
            try:
                with socket.create_connection(("127.0.0.1", monitor.port), timeout=TIMEOUT_S) as connection:
                    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
                head, _, body = answer.partition(b"\r\n\r\n")
                if head.startswith(b"HTTP/1.1 200") and b"ipw_monitor_reloads_total " in body:
                    return body.decode()
            except OSError:
                pass
        self.fail("no scrape")

    def scrape(self, monitor):
        return Scrape(self.ask(monitor))

    def size(self, monitor):
        """Resident bytes and number of file descriptors."""
        folder = Path(f"/proc/{monitor.process.pid}")
        pages = int((folder / "statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(folder / "fd"))

    def assert_flat(self, before, after, growth):
        memory, descriptors = after
        self.assertLess(memory, before[0] + growth)
        self.assertLessEqual(descriptors, before[1] + 2)  # of scrapes in progress

    def churn(self, machine, stop, first, every):
        """Simulates processes that start and exit, each in its own cgroup, and CPU time."""
        busy, rest = Ramp(100000, 150, width=9), Ramp(900000, 50, width=9)
        machine.put("/proc/stat", f"~fake:cpu  {busy} 0 0 {rest} 0 0 0 0 0 0")
        dice, alive, pid = random.Random(first), [], first
        while not stop.wait(every):
            pid += 1
            machine.put(f"/proc/{pid}/comm", f"worker{pid % 7}")
            machine.put(f"/proc/{pid}/cgroup", f"0::/jobs/{pid}")
            machine.put(f"/proc/{pid}/stat", f"{pid} (worker) S 1 " + "0 " * 9 + f"{dice.randrange(1, 500)} 3 "
                        + "0 " * 6 + f"{pid} " + "0 " * 30)
            alive.append(pid)
            while len(alive) > 60:
                shutil.rmtree(machine.root / f"proc/{alive.pop(dice.randrange(len(alive)))}", ignore_errors=True)

    def start_churn(self, machine, first, every):
        stop = threading.Event()
        thread = threading.Thread(target=self.churn, args=(machine, stop, first, every))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(stop.set)

    def wait_updates(self, monitor, count):
        until = time.monotonic() + TIMEOUT_S
        while self.scrape(monitor).get("ipw_monitor_updates_total") < count:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.2)

    def fresh(self, monitor):
        """A scrape without stale values: a delay of a tenth of a second is eight minutes here."""
        until = time.monotonic() + TIMEOUT_S
        while True:
            scrape = self.scrape(monitor)
            if set(scrape.find("ipw_energy_up")) == {1} and scrape.find("ipw_node_cpu_joules_total"):
                return scrape
            self.assertLess(time.monotonic(), until, scrape.text)
            time.sleep(0.05)

    def test_hours_with_process_churn(self):
        """Processes start and exit continuously, at 40 W."""
        speed, interval = 5000, 3
        machine = fast(self.machine(Intel, 40), speed)
        self.start_churn(machine, 1000, 0.006)
        monitor, began = self.monitor(machine, "--interval", interval, "--processes", 20), time.monotonic()
        self.wait_updates(monitor, WARM_UP)
        before, size = self.fresh(monitor), self.size(monitor)
        self.wait_updates(monitor, before.get("ipw_monitor_updates_total") + UPDATES)
        after = self.fresh(monitor)
        passed = (after.get("ipw_monitor_updates_total") - before.get("ipw_monitor_updates_total")) * interval
        self.assert_flat(size, self.size(monitor), 384 << 10)  # bytes: 73 in each update
        self.assertLessEqual(len(after.find("ipw_process_cpu_joules_total")), 20)
        self.assertLessEqual(len(after.find("ipw_cgroup_cpu_joules_total")), 20)
        for name, samples in before.samples.items():
            for labels, value in samples if name.endswith("_total") and not name.startswith(("ipw_proc", "ipw_cgr")) else ():
                self.assertGreaterEqual(after.get(name, **labels), value, name)
        # An estimate is also there while the counter had no reading for long: a quarter of a second here.
        joules, start = [scrape.get("ipw_node_cpu_joules_total", method="counter") for scrape in (after, before)]
        joules -= start
        # While it is stopped for longer than the counter takes to wrap (two hours here, more than a second there),
        # energy is lost; none is ever made.
        self.assertGreater(joules, 40 * passed * 0.5)
        self.assertLess(joules, 40 * speed * (time.monotonic() - began))
        self.assertEqual(monitor.end(), 0)

    def test_scrapes_with_lost_gpu_reloads_and_churn(self):
        """Scrapes of two GPUs and two packages, with slow clients, while a GPU is lost and recovers, sensors are
        reopened, and processes start and exit.  Memory rises and falls with each reload, and settles after some."""
        machine = fast(self.machine(IntelNvidia), 50)
        self.start_churn(machine, 50000, 0.02)
        monitor = self.monitor(machine, "--interval", 1, "--processes", 10)
        slow = [socket.create_connection(("127.0.0.1", monitor.port), timeout=TIMEOUT_S) for _ in range(50)]
        script, sizes = (machine.root / "nvml.txt").read_text(), ([], [])
        for number in range(SCRAPES):
            self.ask(monitor)
            if number % 1000 == 100:
                lost = "fail * 1 15\n" if number % 2000 == 100 else ""
                pids = "".join(f"process 0 {50000 + number + i} 1e9 {i}\n" for i in range(8))
                machine.put("/nvml.new", script + lost + pids)
                os.rename(machine.root / "nvml.new", machine.root / "nvml.txt")
            if number % 1000 == 600:
                monitor.process.send_signal(signal.SIGHUP)
            if number % 100 == 0 and slow:
                slow.pop().sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n")  # and is closed
            if number >= SCRAPES / 3 and number % 20 == 0:
                sizes[number >= SCRAPES * 2 / 3].append(self.size(monitor))
        after = self.scrape(monitor)
        self.assertGreaterEqual(after.get("ipw_monitor_scrapes_total"), SCRAPES)
        self.assertGreater(after.get("ipw_monitor_reloads_total"), 1)
        self.assertGreater(after.get("ipw_sensor_losses_total", sensor="nvml:1"), 0)
        # Minima, because a reload has two open sessions, on a busy machine most of the time.
        self.assert_flat(*(tuple(map(min, zip(*part))) for part in sizes), 768 << 10)  # bytes: 98 in each scrape
        self.assertEqual(monitor.end(), 0)


if __name__ == "__main__":
    main_parallel()
