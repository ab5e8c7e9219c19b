"""Fake machines for the tests of the program: a folder that stands in for / (IPW_SYSROOT)."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
FAKE_NVML = os.path.join(os.environ.get("IPW_FAKES", "build/fakes"), "libfake_nvml.so")
RANGE_UJ = 262143328850
STEP_S = 0.002


class Machine:
    """An empty machine; subclasses put hardware into it.  A context manager that cleans up."""

    worst_s = 0.0  # the longest that it stood still, because who moves it had to wait

    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="ipw-machine-"))

    def put(self, path, text):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
        return file

    def environment(self):
        return {**os.environ, "IPW_SYSROOT": str(self.root)}

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
        self.ticker = None
        if watts:
            self.ticker = subprocess.Popen([FIXTURES / "tick-tree", self.root, str(watts), "0"])
            time.sleep(0.1)

    def close(self):
        if self.ticker:
            self.ticker.kill()
            self.ticker.wait()
        super().close()


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


class Ticking(Machine):
    """A machine that a thread keeps up to date: subclasses say how in advance(elapsed seconds)."""

    def start(self):
        self.began = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        before = self.began
        try:  # hardware does not wait for a busy CPU
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -15)
        except OSError:
            pass
        while not self._stop.wait(STEP_S):
            now = time.monotonic()
            self.advance(now - self.began)
            self.worst_s, before = max(self.worst_s, now - before), now

    def close(self):
        self._stop.set()
        self._thread.join()
        super().close()


class Modelled(Ticking):
    """A machine without any meter, its one CPU busy half of the time: only a model can say what it
    draws."""

    def __init__(self):
        super().__init__()
        self.put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\n")
        self.stat = self.put("/proc/stat", self.line(0))
        self.fd = os.open(self.stat, os.O_RDWR)
        self.start()

    @staticmethod
    def line(elapsed):
        ticks = 100000 + int(elapsed * 50)
        return "".join(f"{cpu} {ticks:09d} 0 0 {ticks:09d} 0 0 0 0 0 0\n" for cpu in ("cpu ", "cpu0"))

    def advance(self, elapsed):
        os.pwrite(self.fd, self.line(elapsed).encode(), 0)

    def close(self):
        super().close()
        os.close(self.fd)


class Shared(Modelled):
    """The same with two CPUs, of which other programs keep `others` busy.  What the programs of the test really use
    is not in it, so that a busy machine changes nothing."""

    def __init__(self, others=0.0):
        self.others, self.busy, self.before = others, 0.0, 0.0
        super().__init__()
        self.put("/proc/cpuinfo", "".join(f"processor\t: {cpu}\nvendor_id\t: GenuineIntel\n\n" for cpu in (0, 1)))

    def line(self, elapsed):
        self.busy += self.others * (elapsed - self.before)
        self.before = elapsed
        busy, idle = 100000 + int(100 * self.busy), 900000 + int(100 * (2 * elapsed - self.busy))
        return f"cpu  {busy:09d} 0 0 {idle:09d} 0 0 0 0 0 0\n"


class Intel(Ticking):
    """An Intel machine with one powercap package zone a value in `watts`, its counter advanced by
    a thread: a zone of 0 W is a dead sensor.  Counts and joules agree exactly."""

    def __init__(self, *watts, start_uj=5_000_000_000):
        super().__init__()
        self.put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
                 "model\t\t: 106\nmodel name\t: Intel(R) Xeon(R) Gold 6330, \"fake\"\n"
                 "flags\t\t: fpu msr constant_tsc\n")
        self.zones = []
        for package, power in enumerate(watts):
            zone = f"/sys/class/powercap/intel-rapl:{package}"
            start = start_uj + 731_000_000 * package
            self.put(f"/sys/devices/system/cpu/cpu{package}/topology/physical_package_id", package)
            self.put(f"/sys/devices/system/cpu/cpu{package}/topology/die_id", 0)
            self.put(f"{zone}/name", f"package-{package}")
            self.put(f"{zone}/max_energy_range_uj", RANGE_UJ)
            file = self.put(f"{zone}/energy_uj", start)
            self.zones.append((os.open(file, os.O_RDWR), start, power))
        self.says = {}  # package -> bytes that its zone shows instead of its count
        self.start()

    def path(self, package=0):
        return self.root / f"sys/class/powercap/intel-rapl:{package}/energy_uj"

    def count(self, package=0):
        """What the zone shows at this moment: the truth that a report is held against."""
        return int(self.path(package).read_text())

    def reset(self, package=0):
        """The counter starts again from 0."""
        fd, _, power = self.zones[package]
        self.zones[package] = (fd, -int(power * (time.monotonic() - self.began) * 1e6), power)

    def advance(self, elapsed):
        for package, (fd, start, power) in enumerate(self.zones):
            # One write of unchanging length: a reader never meets half a number.
            count = (start + int(power * elapsed * 1e6)) % (RANGE_UJ + 1)
            text = self.says.get(package, b"%012d\n" % count)
            os.pwrite(fd, text, 0)
            os.ftruncate(fd, len(text))

    def close(self):
        super().close()
        for fd, _, _ in self.zones:
            os.close(fd)


class Both(Intel):
    """Two packages and two GPUs, one of them restless."""

    def __init__(self):
        super().__init__(40, 25)
        Nvidia.script(self, "devices 2\npower 0 constant 300\npower 1 square 100 500 0.3\n"
                      "tick * 0.02")

    def environment(self):
        return {**super().environment(), **Nvidia.environment(self)}


class Working(Intel):
    """An Intel machine of one package that draws `idle` watts, and `joules` more for every second of a
    CPU that the programs started by this test use: work costs energy, rest does not."""

    def __init__(self, idle=10, joules=20):
        self.idle_w, self.joules, self.spent_s, self.seen = idle, joules, 0.0, {}
        self.parent = os.getpid()
        super().__init__(idle)

    def cpu_seconds(self):
        """Of all our children's threads, also those that have ended since."""
        with open(f"/proc/{self.parent}/task/{self.parent}/children") as file:
            children = file.read().split()
        for pid in children:
            try:
                for task in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                        self.seen[pid, task] = int(file.read().split()[0])
            except OSError:  # it ended meanwhile
                continue
        return sum(self.seen.values()) * 1e-9

    def advance(self, elapsed):
        fd, start, _ = self.zones[0]
        joules = self.idle_w * elapsed + self.joules * self.cpu_seconds()
        os.pwrite(fd, b"%012d\n" % ((start + int(joules * 1e6)) % (RANGE_UJ + 1)), 0)
