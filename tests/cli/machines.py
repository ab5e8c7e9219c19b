"""Fake machines for tests: a folder used as the root file system (IPW_SYSROOT).

Counters that run are computed when the program reads them (fakes/counters.c), so stalls of the test host do not affect
them."""

import contextlib
import fcntl
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
FAKES = os.environ.get("IPW_FAKES", "build/fakes")
FAKE_NVML = os.path.join(FAKES, "libfake_nvml.so")
FAKE_COUNTERS = os.path.join(FAKES, "libfake_counters.so")
RANGE_UJ = 262143328850
STEP_S = 0.002
FAKE = "~fake:"  # prefix of a file whose counts are computed when it is read


class Machine:
    """An empty machine; subclasses add hardware.  A context manager that cleans up."""

    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="ipw-machine-"))

    def put(self, path, text):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
        return file

    def overwrite(self, path, text):
        """Replaces the content of a file that the program has open, in one write, so that a reader never sees it
        empty."""
        fd = os.open(self.root / path.lstrip("/"), os.O_RDWR)
        os.pwrite(fd, text, 0)
        os.ftruncate(fd, len(text))
        os.close(fd)

    @contextlib.contextmanager
    def locked(self, path):
        """Blocks reads of the counts of this file: otherwise a count by the old parameters could follow a lower one by
        the new."""
        fd = os.open(self.root / path.lstrip("/"), os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            os.close(fd)

    def environment(self):
        return {**os.environ, "IPW_SYSROOT": str(self.root), "LD_PRELOAD": os.path.abspath(FAKE_COUNTERS)}

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Fixture(Machine):
    """A machine of tests/fixtures, by make-tree ("intel2", "none" ...) or make-board.  With watts, tick-tree makes its
    counters run."""

    BOARDS = ("jetson", "jetson-agx", "grace")

    def __init__(self, name, watts=None):
        super().__init__()
        maker = "make-board" if name in self.BOARDS else "make-tree"
        subprocess.run([FIXTURES / maker, name, self.root], check=True)
        if watts:
            subprocess.run([sys.executable, "-S", FIXTURES / "tick-tree", self.root, str(watts)], check=True)


class Nvidia(Machine):
    """A machine with the GPUs described by a script of the fake NVML library, and no other sensor."""

    def __init__(self, script):
        super().__init__()
        self.put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
                 "model\t\t: 106\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu")
        self.script(script)

    def script(self, text):
        """Replaces the script atomically, by a rename."""
        self.put("/nvml.new", text)
        os.rename(self.root / "nvml.new", self.root / "nvml.txt")

    def environment(self):
        visible = {k: v for k, v in Machine.environment(self).items() if k != "CUDA_VISIBLE_DEVICES"}
        return {**visible, "IPW_NVML": FAKE_NVML,
                "IPW_FAKE_NVML": str(self.root / "nvml.txt")}


class ControllableGpu(Nvidia):
    """A GPU whose clock and power settings persist between processes; `settings` returns the current ones."""

    FREE = "0 graphics 0 0 memory 0 0 limit 0"

    def __init__(self, script="value throttle 0 0"):
        super().__init__("clocks 0 2619 1785:345:15\nvalue clock_memory_max 0 2619\n" + script)
        (self.root / "run").mkdir()

    def environment(self):
        return {**super().environment(), "IPW_FAKE_NVML_STATE": str(self.root / "settings")}

    def settings(self):
        file = self.root / "settings"
        return file.read_text().strip() if file.exists() else self.FREE


class Ramp:
    """A counter that grows at a constant rate, as computed by fakes/counters.c."""

    def __init__(self, start, rate, tick=0.0, modulus=0, width=1, cpu=0.0):
        self.start, self.rate, self.tick, self.modulus, self.width, self.cpu = start, rate, tick, modulus, width, cpu
        self.began = time.monotonic()

    def step(self, at):
        """The time of the last update before then."""
        return self.began + self.tick * math.floor((at - self.began) / self.tick) if self.tick else at

    def count(self, at):
        count = self.start + int(self.rate * (self.step(at) - self.began))
        return count % self.modulus if self.modulus else count

    def now(self):
        return self.count(time.monotonic())

    def set_rate(self, rate, at=None):
        """Changes the rate from now on, or from `at`.  Count and start use the same time, so that nothing is lost in
        between."""
        at = time.monotonic() if at is None else at
        self.start, self.began, self.rate = self.count(at), self.step(at), rate

    def __str__(self):
        law = (f"{{{self.start} {self.rate!r} {self.began!r} {self.tick!r} {self.modulus} {self.width} {self.cpu!r}")
        return law.ljust(150) + "}"  # fixed length, so that a reader never sees part of an old one


class Modeled(Machine):
    """A machine without a power sensor whose one CPU is 50 % busy: its power can only be estimated by a model."""

    def __init__(self):
        super().__init__()
        self.put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\n")
        ticks = Ramp(100000, 50, width=9)
        self.put("/proc/stat", FAKE + "".join(f"{cpu} {ticks} 0 0 {ticks} 0 0 0 0 0 0\n" for cpu in ("cpu ", "cpu0")))


class SharedCpus(Machine):
    """A machine without a power sensor whose two CPUs are partly used by other processes (`others`, in CPUs).  The real
    CPU use of the test's processes is not included, so load on the test host has no effect."""

    def __init__(self, others=0.0):
        super().__init__()
        self.put("/proc/cpuinfo", "".join(f"processor\t: {cpu}\nvendor_id\t: GenuineIntel\n\n" for cpu in (0, 1)))
        self.busy, self.rest = Ramp(100000, 100 * others, width=9), Ramp(900000, 100 * (2 - others), width=9)
        self.rest.began = self.busy.began
        self.put("/proc/stat", self.line())

    def line(self):
        return f"{FAKE}cpu  {self.busy} 0 0 {self.rest} 0 0 0 0 0 0"

    def set_others(self, others):
        with self.locked("/proc/stat"):
            now = time.monotonic()
            self.busy.set_rate(100 * others, now)
            self.rest.set_rate(100 * (2 - others), now)
            self.overwrite("/proc/stat", f"{self.line()}\n".encode())


class Intel(Machine):
    """An Intel machine with one powercap package zone per value in `watts`: a zone of 0 W is a dead sensor.  Counts are
    exact.  `cpu` adds joules per CPU second used by the program, so that work costs energy and idling does not."""

    def __init__(self, *watts, start_uj=5_000_000_000, cpu=0.0):
        super().__init__()
        self.put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
                 "model\t\t: 106\nmodel name\t: Intel(R) Xeon(R) Gold 6330, \"fake\"\n"
                 "flags\t\t: fpu msr constant_tsc\n")
        self.zones = []
        for package, power in enumerate(watts):
            zone = f"/sys/class/powercap/intel-rapl:{package}"
            self.put(f"/sys/devices/system/cpu/cpu{package}/topology/physical_package_id", package)
            self.put(f"/sys/devices/system/cpu/cpu{package}/topology/die_id", 0)
            self.put(f"{zone}/name", f"package-{package}")
            self.put(f"{zone}/max_energy_range_uj", RANGE_UJ)
            self.put(f"{zone}/energy_uj", start_uj)
            self.zones.append(Ramp(start_uj + 731_000_000 * package, 1e6 * power, STEP_S, RANGE_UJ + 1, 12, 1e6 * cpu))
            self.show(package)

    @staticmethod
    def zone(package=0):
        return f"sys/class/powercap/intel-rapl:{package}/energy_uj"

    def path(self, package=0):
        return self.root / self.zone(package)

    def count(self, package=0):
        """The current count of the zone: the ground truth for reports."""
        return self.zones[package].now()

    def show(self, package, text=None):
        """Makes the zone read as this text instead of its count."""
        text = f"{FAKE}{self.zones[package]}\n".encode() if text is None else text
        self.overwrite(self.zone(package), text)

    def reset(self, package=0):
        """Resets the counter to 0."""
        with self.locked(self.zone(package)):
            zone = self.zones[package]
            zone.start, zone.began = 0, time.monotonic()
            self.show(package)

    def set_power(self, watts, package=0):
        """Sets the power from now on."""
        with self.locked(self.zone(package)):
            self.zones[package].set_rate(1e6 * watts)
            self.show(package)


class IntelNvidia(Intel):
    """Two CPU packages and two GPUs, one of them with a square wave of power."""

    def __init__(self):
        super().__init__(40, 25)
        Nvidia.script(self, "devices 2\npower 0 constant 300\npower 1 square 100 500 0.3\n"
                      "tick * 0.02")

    def environment(self):
        return {**super().environment(), **Nvidia.environment(self)}


class LoadedIntel(Intel):
    """An Intel machine with one package that draws `idle` watts, plus `joules` per CPU second used by the program."""

    def __init__(self, idle=10, joules=20):
        super().__init__(idle, cpu=joules)
