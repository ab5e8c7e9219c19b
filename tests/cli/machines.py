"""Fake machines for the tests of the program: a folder that stands in for / (IPW_SYSROOT).

What moves by itself is worked out when the program reads it (fakes/counters.c): no stall of the computer that tests
holds it up."""

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
FAKE = "~fake:"  # the mark of a file whose counts are worked out when it is read


class Machine:
    """An empty machine; subclasses put hardware into it.  A context manager that cleans up."""

    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="ipw-machine-"))

    def put(self, path, text):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
        return file

    def overwrite(self, path, text):
        """Of a file that the program has open: by one write, so that a reader never meets it empty."""
        fd = os.open(self.root / path.lstrip("/"), os.O_RDWR)
        os.pwrite(fd, text, 0)
        os.ftruncate(fd, len(text))
        os.close(fd)

    @contextlib.contextmanager
    def holding(self, path):
        """No count of that file is read meanwhile: else one by the old law could be after a lower one by the new."""
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
    """A machine of tests/fixtures: make-tree's ("intel2", "none" ...) or make-board's.  With watts,
    tick-tree lets its counters run."""

    BOARDS = ("jetson", "jetson-agx", "grace")

    def __init__(self, name, watts=None):
        super().__init__()
        maker = "make-board" if name in self.BOARDS else "make-tree"
        subprocess.run([FIXTURES / maker, name, self.root], check=True)
        if watts:
            subprocess.run([sys.executable, "-S", FIXTURES / "tick-tree", self.root, str(watts)], check=True)


class Nvidia(Machine):
    """A machine with the GPUs that a script of the fake NVML library describes, and no other
    sensor."""

    def __init__(self, script):
        super().__init__()
        self.put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
                 "model\t\t: 106\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu")
        self.script(script)

    def script(self, text):
        """Replaces the script: by a rename, so that no call reads half of it."""
        self.put("/nvml.new", text)
        os.rename(self.root / "nvml.new", self.root / "nvml.txt")

    def environment(self):
        visible = {k: v for k, v in Machine.environment(self).items() if k != "CUDA_VISIBLE_DEVICES"}
        return {**visible, "IPW_NVML": FAKE_NVML,
                "IPW_FAKE_NVML": str(self.root / "nvml.txt")}


class Controlled(Nvidia):
    """A GPU whose settings outlive processes; `settings` are what is set now."""

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
    """A count that grows at a rate, as fakes/counters.c works it out."""

    def __init__(self, start, rate, tick=0.0, modulus=0, width=1, cpu=0.0):
        self.start, self.rate, self.tick, self.modulus, self.width, self.cpu = start, rate, tick, modulus, width, cpu
        self.began = time.monotonic()

    def step(self, at):
        """When it changed last before then."""
        return self.began + self.tick * math.floor((at - self.began) / self.tick) if self.tick else at

    def count(self, at):
        count = self.start + int(self.rate * (self.step(at) - self.began))
        return count % self.modulus if self.modulus else count

    def now(self):
        return self.count(time.monotonic())

    def turn(self, rate, at=None):
        """From now on, or from that time, at another rate.  One time is taken for both the count that it goes on from
        and its beginning, so that nothing is lost between them."""
        at = time.monotonic() if at is None else at
        self.start, self.began, self.rate = self.count(at), self.step(at), rate

    def __str__(self):
        law = (f"{{{self.start} {self.rate!r} {self.began!r} {self.tick!r} {self.modulus} {self.width} {self.cpu!r}")
        return law.ljust(150) + "}"  # of one length: a reader never meets half of an old one


class Modeled(Machine):
    """A machine without any meter, its one CPU busy half of the time: only a model can say what it
    draws."""

    def __init__(self):
        super().__init__()
        self.put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\n")
        ticks = Ramp(100000, 50, width=9)
        self.put("/proc/stat", FAKE + "".join(f"{cpu} {ticks} 0 0 {ticks} 0 0 0 0 0 0\n" for cpu in ("cpu ", "cpu0")))


class Shared(Machine):
    """The same with two CPUs, of which other programs keep `others` busy.  What the programs of the test really use
    is not in it, so that a busy machine changes nothing."""

    def __init__(self, others=0.0):
        super().__init__()
        self.put("/proc/cpuinfo", "".join(f"processor\t: {cpu}\nvendor_id\t: GenuineIntel\n\n" for cpu in (0, 1)))
        self.busy, self.rest = Ramp(100000, 100 * others, width=9), Ramp(900000, 100 * (2 - others), width=9)
        self.rest.began = self.busy.began
        self.put("/proc/stat", self.line())

    def line(self):
        return f"{FAKE}cpu  {self.busy} 0 0 {self.rest} 0 0 0 0 0 0"

    def turn(self, others):
        with self.holding("/proc/stat"):
            now = time.monotonic()
            self.busy.turn(100 * others, now)
            self.rest.turn(100 * (2 - others), now)
            self.overwrite("/proc/stat", f"{self.line()}\n".encode())


class Intel(Machine):
    """An Intel machine with one powercap package zone a value in `watts`: a zone of 0 W is a dead
    sensor.  Counts and joules agree exactly.  `cpu` is joules for each second of a CPU that the program uses, beside
    them: work costs energy, rest does not."""

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
            self.say(package)

    @staticmethod
    def zone(package=0):
        return f"sys/class/powercap/intel-rapl:{package}/energy_uj"

    def path(self, package=0):
        return self.root / self.zone(package)

    def count(self, package=0):
        """What the zone shows at this moment: the truth that a report is held against."""
        return self.zones[package].now()

    def say(self, package, text=None):
        """What its zone shows, instead of its count."""
        text = f"{FAKE}{self.zones[package]}\n".encode() if text is None else text
        self.overwrite(self.zone(package), text)

    def reset(self, package=0):
        """The counter starts again from 0."""
        with self.holding(self.zone(package)):
            zone = self.zones[package]
            zone.start, zone.began = 0, time.monotonic()
            self.say(package)

    def turn(self, watts, package=0):
        """From now on it draws as many."""
        with self.holding(self.zone(package)):
            self.zones[package].turn(1e6 * watts)
            self.say(package)


class Both(Intel):
    """Two packages and two GPUs, one of them restless."""

    def __init__(self):
        super().__init__(40, 25)
        Nvidia.script(self, "devices 2\npower 0 constant 300\npower 1 square 100 500 0.3\n"
                      "tick * 0.02")

    def environment(self):
        return {**super().environment(), **Nvidia.environment(self)}


class Working(Intel):
    """An Intel machine of one package that draws `idle` watts, and `joules` more for every second of a CPU that the
    program uses."""

    def __init__(self, idle=10, joules=20):
        super().__init__(idle, cpu=joules)
