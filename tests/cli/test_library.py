#!/usr/bin/env python3
# test: serial
"""libipw: the example in C and C++, and the ABI from Python."""
import ctypes
import math
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BUILD = os.environ["IPW_BUILD"]
SOURCE = os.environ["IPW_SOURCE"]
LIBRARY = os.path.join(BUILD, "libipw.so")


class Result(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("seconds", ctypes.c_double), ("joules", ctypes.c_double),
                ("plus_minus", ctypes.c_double), ("coverage", ctypes.c_double), ("watts", ctypes.c_double),
                ("method", ctypes.c_int), ("low_confidence", ctypes.c_int), ("updates", ctypes.c_ulong),
                ("source", ctypes.c_char * 320), ("note", ctypes.c_char * 160)]


class Machine:
    """A two-socket machine whose counters advance at a known power."""

    def __init__(self, name, watts=None):
        self.root = tempfile.mkdtemp(prefix="ipw-lib-")
        fixtures = os.path.join(SOURCE, "tests", "fixtures")
        subprocess.run([os.path.join(fixtures, "make-tree"), name, self.root], check=True)
        if watts:
            subprocess.run([sys.executable, "-S", os.path.join(fixtures, "tick-tree"), self.root, str(watts)], check=True)

    def close(self):
        shutil.rmtree(self.root)


class Example(unittest.TestCase):
    def run_example(self, program, machine):
        env = dict(os.environ, IPW_SYSROOT=machine.root)
        done = subprocess.run([program], env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_nested_regions_add_up(self):
        machine = Machine("intel2", 100)
        self.addCleanup(machine.close)
        out = self.run_example(os.path.join(BUILD, "examples", "example_regions"), machine)
        joules = {m[1]: float(m[2]) for m in re.finditer(r"^(\S+)\s+[\d.]+ s, ([\d.]+) J", out, re.M)}
        self.assertEqual(set(joules), {"request", "request/prefill", "request/decode"}, out)
        # The two inner regions are consecutive, with almost no gap.
        parts = joules["request/prefill"] + joules["request/decode"]
        self.assertAlmostEqual(parts / joules["request"], 1, delta=0.02, msg=out)

    def test_energy_is_unknown_without_sensor(self):
        machine = Machine("none")
        self.addCleanup(machine.close)
        out = self.run_example(os.path.join(BUILD, "examples", "example_regions"), machine)
        self.assertEqual(out.count("energy unknown"), 3, out)
        self.assertNotIn(" J ", out)

    def test_example_compiles_as_cpp(self):
        compiler = shutil.which("g++") or shutil.which("clang++")
        if not compiler:
            self.skipTest("no C++ compiler")
        machine = Machine("intel2", 100)
        self.addCleanup(machine.close)
        program = os.path.join(machine.root, "regions-cpp")
        subprocess.run([compiler, "-x", "c++", "-Wall", "-Wextra", "-Werror",
                        os.path.join(SOURCE, "examples", "regions.c"), "-I" + os.path.join(SOURCE, "include"),
                        "-L" + BUILD, "-lipw", "-lm", "-Wl,-rpath," + BUILD, "-o", program], check=True)
        self.assertIn(" J +- ", self.run_example(program, machine))


class PlainAbi(unittest.TestCase):
    def open(self, machine):
        os.environ["IPW_SYSROOT"] = machine.root
        self.addCleanup(os.environ.pop, "IPW_SYSROOT")
        self.addCleanup(machine.close)
        lib = ctypes.CDLL(LIBRARY)
        lib.ipw_open.restype = ctypes.c_void_p
        for name in ("ipw_device_id", "ipw_region_path", "ipw_status_text"):
            getattr(lib, name).restype = ctypes.c_char_p
        status = ctypes.c_int(99)
        session = ctypes.c_void_p(lib.ipw_open(None, ctypes.byref(status)))
        self.assertEqual(status.value, 0)
        self.addCleanup(lib.ipw_close, session)
        return lib, session

    def read(self, lib, session, region, device=None):
        result = Result(size=ctypes.sizeof(Result))
        if device:
            status = lib.ipw_read_device(session, region, device, ctypes.byref(result))
        else:
            status = lib.ipw_read(session, region, ctypes.byref(result))
        return status, result

    def test_devices_sum_to_the_total(self):
        lib, session = self.open(Machine("intel2", 120))
        region = lib.ipw_begin(session, b"work")
        time.sleep(0.4)
        self.assertEqual(lib.ipw_end(session, region), 0)
        status, total = self.read(lib, session, region)
        self.assertEqual(status, 0)
        self.assertEqual(total.method, 1)
        self.assertGreater(total.joules, 0)
        self.assertGreater(total.plus_minus, 0)
        self.assertGreater(total.coverage, 0.6)  # the fake counter may be late on a busy machine
        devices = [lib.ipw_device_id(session, i) for i in range(lib.ipw_device_count(session))]
        self.assertEqual(sorted(devices), [b"cpu0", b"cpu1", b"dram0", b"dram1"])
        time.sleep(0.5)  # later information on the counters does not change earlier readings
        parts = [self.read(lib, session, region, d)[1].joules for d in devices]
        self.assertAlmostEqual(sum(parts), total.joules, delta=1e-6 * total.joules)

    def test_memory_of_open_regions_is_linear(self):
        def resident_mb():
            return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        lib, session = self.open(Machine("none"))
        before = resident_mb()
        for count in range(8000):
            self.assertEqual(lib.ipw_begin(session, b"token"), count)
        self.assertLess(resident_mb() - before, 20)
        self.assertEqual(lib.ipw_region_path(session, 2), b"token/token/token")
        self.assertEqual(lib.ipw_end(session, 7999), 0)

    def test_energy_of_short_regions_under_square_wave(self):
        """The second GPU of the fake has the same power and a counter without steps: the ground truth."""
        machine = Machine("none")
        script = os.path.join(machine.root, "nvml.txt")
        with open(script, "w") as file:
            file.write("devices 2\npower * square 100 500 0.03\ntick 1 0.000001\n")
        fake_path = os.path.join(BUILD, "fakes", "libfake_nvml.so")
        for name, value in (("IPW_NVML", fake_path), ("IPW_FAKE_NVML", script)):
            os.environ[name] = value
            self.addCleanup(os.environ.pop, name)
        lib, session = self.open(machine)
        fake, card, millijoules = ctypes.CDLL(fake_path), ctypes.c_void_p(), ctypes.c_ulonglong()
        self.assertEqual(fake.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(card)), 0)

        def truth():
            self.assertEqual(fake.nvmlDeviceGetTotalEnergyConsumption(card, ctypes.byref(millijoules)), 0)
            return millijoules.value / 1e3

        def around(action):
            before = truth()
            result = action()
            return result, before, truth()
        regions, draw, end = [], random.Random(3), time.monotonic() + 100
        # Until enough regions were on time: on a busy machine, sleeps are longer and counters are read late.
        while len(regions) < 60 or (sum(on_time for *_, on_time in regions) < 30 and time.monotonic() < end):
            time.sleep(0.06 * draw.random())
            region, *begin = around(lambda: lib.ipw_begin(session, b"x"))
            began = time.monotonic()
            time.sleep(0.1)
            on_time = time.monotonic() - began < 0.105
            _, *ends = around(lambda: lib.ipw_end(session, region))
            regions.append((region, ends[0] - begin[1], ends[1] - begin[0], on_time))
        within, widths = [0, 0], []
        for region, least, most, on_time in regions:
            status, result = self.read(lib, session, region, b"gpu0")
            self.assertEqual((status, result.method), (0, 1))
            error = max(least - result.joules, result.joules - most, 0)
            within[0] += error <= result.plus_minus
            within[1] += error <= 2 * result.plus_minus
            if on_time:
                widths.append(result.plus_minus / result.joules)
        self.assertGreaterEqual(within[0], 0.6 * len(regions))
        self.assertGreaterEqual(within[1], 0.9 * len(regions))
        # About 0.075 for every region, more only if the counter was read late.
        if len(widths) < 10:
            self.skipTest(f"only {len(widths)} of {len(regions)} sleeps were on time: how tight the figures are is unknown")
        self.assertLess(statistics.median(widths), 0.12)
        self.assertLessEqual(sum(width > 0.2 for width in widths), 1)

    def test_usage_errors_are_rejected(self):
        lib, session = self.open(Machine("intel2", 100))
        self.assertLess(lib.ipw_end(session, 7), 0)
        self.assertLess(self.read(lib, session, 7)[0], 0)
        region = lib.ipw_begin(session, b"open")
        status, _ = self.read(lib, session, region)
        self.assertEqual(status, -3)
        self.assertIn(b"not ended", lib.ipw_status_text(status))
        self.assertEqual(lib.ipw_end(session, region), 0)
        self.assertLess(lib.ipw_end(session, region), 0)
        self.assertLess(self.read(lib, session, region, b"gpu9")[0], 0)
        self.assertLess(lib.ipw_begin(session, None), 0)

    def test_forked_child_neither_hangs_nor_measures(self):
        lib, session = self.open(Machine("intel2", 100))
        region = lib.ipw_begin(session, b"work")
        child = os.fork()
        if child == 0:
            answers = (lib.ipw_begin(session, b"mine"), lib.ipw_end(session, region))
            lib.ipw_close(session)
            os._exit(0 if answers == (-4, -4) else 1)
        for _ in range(200):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(0.05)
        else:
            os.kill(child, 9)
            os.waitpid(child, 0)
            self.fail("the child hangs")
        self.assertEqual(status, 0)
        self.assertEqual(lib.ipw_end(session, region), 0)

    def test_library_threads_block_signals(self):
        self.open(Machine("intel2", 100))
        own = str(threading.get_native_id())
        masks = {task: re.search(r"SigBlk:\s*(\w+)", open(f"/proc/self/task/{task}/status").read())[1]
                 for task in os.listdir("/proc/self/task")
                 if open(f"/proc/self/task/{task}/comm").read().startswith("ipw-") and task != own}
        self.assertGreaterEqual(len(masks), 2)
        for mask in masks.values():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM):
                self.assertTrue(int(mask, 16) >> (number - 1) & 1, masks)

    def test_options_need_size_field(self):
        class Options(ctypes.Structure):
            _fields_ = [("size", ctypes.c_size_t), ("devices", ctypes.c_char_p), ("sensors", ctypes.c_char_p),
                        ("rate_hz", ctypes.c_double)]
        lib, _ = self.open(Machine("intel2", 100))
        status = ctypes.c_int(99)
        self.assertIsNone(lib.ipw_open(ctypes.byref(Options()), ctypes.byref(status)))
        self.assertEqual(status.value, -2)
        for sensors, expected in ((b"rapl", 4), (b"cpu_model", 0)):
            asked = Options(size=ctypes.sizeof(Options), sensors=sensors)
            session = ctypes.c_void_p(lib.ipw_open(ctypes.byref(asked), ctypes.byref(status)))
            self.assertEqual((status.value, lib.ipw_device_count(session)), (0, expected))
            lib.ipw_close(session)

    def test_unknown_is_nan(self):
        lib, session = self.open(Machine("none"))
        region = lib.ipw_begin(session, b"work")
        lib.ipw_end(session, region)
        status, total = self.read(lib, session, region)
        self.assertEqual(status, 0)
        self.assertEqual(total.method, 0)
        self.assertTrue(math.isnan(total.joules))
        self.assertTrue(total.note)

    @unittest.skipUnless(shutil.which("readelf"), "no readelf")
    def test_readme_lists_linked_libraries(self):
        with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
            readme = " ".join(file.read().split())
        listed = re.findall(r"`(lib\w+)`", re.search(r"`build/libipw\.so`\. Both link (.*?)\.", readme)[1])
        loader = {"ld-linux-x86-64", "ld-linux-aarch64", "libpthread", "libdl"}  # parts of libc
        for name in ("libipw.so", "ipw"):
            table = subprocess.run(["readelf", "-d", os.path.join(BUILD, name)], capture_output=True, text=True,
                                   check=True).stdout
            linked = set(re.findall(r"\(NEEDED\).*\[([^.\]]+)", table)) - loader
            self.assertEqual(linked, set(listed), name)

    def test_only_public_symbols_are_exported(self):
        out = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], check=True, capture_output=True, text=True).stdout
        names = {line.split()[-1] for line in out.splitlines()}
        strays = {n for n in names if not n.startswith("ipw_")}
        self.assertEqual(strays, set())


class LackOfMemory(unittest.TestCase):
    """The library is in another program's process, and returns a status where ipw would end."""

    def test_each_allocation_may_fail(self):
        for name, nvml in (("intel2", None), ("amd", None), ("none", "devices 2\n")):
            with self.subTest(machine=name):
                machine = Machine(name)
                self.addCleanup(machine.close)
                fakes = os.environ["IPW_FAKES"]
                preloaded = [os.path.join(fakes, f"libfake_{fake}.so") for fake in ("failing_malloc", "fast_clock")]
                env = {**os.environ, "IPW_SYSROOT": machine.root, "IPW_FAKE_SPEED": "30",
                       "LD_PRELOAD": " ".join(preloaded)}
                if nvml:
                    script = os.path.join(machine.root, "nvml.txt")
                    with open(script, "w") as file:
                        file.write(nvml)
                    env |= {"IPW_NVML": os.path.join(fakes, "libfake_nvml.so"), "IPW_FAKE_NVML": script}
                done = subprocess.run([os.path.join(BUILD, "tests", "tools", "library_alloc")], env=env,
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                failed, reported = map(int, re.findall(r"\d+", done.stdout))
                self.assertGreater(failed, 20)
                self.assertGreater(reported, failed / 3)

    def test_no_function_of_it_ends_the_program(self):
        out = subprocess.run(["nm", LIBRARY], check=True, capture_output=True, text=True).stdout
        self.assertIn("memory_resize", out)
        self.assertNotIn("xmalloc", out)


if __name__ == "__main__":
    counters = os.path.join(os.environ["IPW_FAKES"], "libfake_counters.so")
    if os.environ.get("LD_PRELOAD") != counters:  # the library reads its sensors in this process
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "LD_PRELOAD": counters})
    unittest.main(verbosity=2)
