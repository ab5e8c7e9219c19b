#!/usr/bin/env python3
# test: real time, asan
"""ipw-reader: root-only counters, read by an ordinary user."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Intel  # noqa: E402

IPW = Path(os.environ.get("IPW", "build/ipw")).resolve()
READER = IPW.parent / "ipw-reader"
TIMEOUT_S = 60
NOBODY = 65534
ENERGY = "/sys/class/powercap/intel-rapl:0/energy_uj"


@unittest.skipUnless(os.geteuid() == 0, "only root can start it for another user")
class Reader(unittest.TestCase):
    def setUp(self):
        self.machine = Intel(50)
        self.addCleanup(self.machine.close)
        os.chmod(self.machine.root, 0o755)
        for zone in (self.machine.root / "sys/class/powercap").iterdir():
            os.chmod(zone / "energy_uj", 0o400)
        self.socket = self.machine.root / "reader.sock"
        self.ipw = shutil.copy(IPW, self.machine.root / "ipw")  # where any user may execute it

    def start(self, *options):
        reader = subprocess.Popen([READER, "--socket", self.socket, "--root", self.machine.root, *options],
                                  env=self.machine.environment(), stderr=subprocess.PIPE, text=True)
        self.addCleanup(reader.stderr.close)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        self.assertIn("1 counters", reader.stderr.readline())  # it listens and has dropped its privileges
        return reader

    def as_user(self, *arguments, group=NOBODY):
        environment = {**self.machine.environment(), "IPW_READER": str(self.socket), "HOME": str(self.machine.root)}
        return subprocess.run([self.ipw, *arguments], env=environment, text=True, capture_output=True,
                              timeout=TIMEOUT_S, user=NOBODY, group=group, extra_groups=[], cwd="/")

    def rapl(self, **user):
        """The row of `ipw doctor` for the counter."""
        found = json.loads(self.as_user("doctor", "--json", **user).stdout)["sensors"]
        return next(sensor for sensor in found if sensor["id"].startswith("rapl"))

    def connect(self):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(client.close)
        client.settimeout(TIMEOUT_S)
        client.connect(str(self.socket))
        return client

    def ask(self, client, request):
        client.send(request)
        return client.recv(100)

    def test_group_member_can_measure(self):
        denied = self.rapl()
        self.assertEqual(denied["status"], "denied")
        self.assertIn("ipw-reader --group", denied["fix"])
        self.start("--group", "nogroup")
        self.assertEqual(self.rapl()["status"], "ok")
        before = self.machine.count()
        done = self.as_user("run", "--json", "--", "sleep", "1")
        most = (self.machine.count() - before) / 1e6
        self.assertEqual(done.returncode, 0, done.stderr)
        energy = json.loads(done.stdout)["energy"]
        self.assertEqual((energy["method"], energy["source"]), ("counter", "rapl:0 package"))
        self.assertGreater(energy["joules"], 0)
        self.assertLessEqual(energy["joules"] - energy["plus_minus"], most)

    def test_other_users_are_denied(self):
        self.start("--group", "nogroup")
        self.assertEqual(self.rapl(group=1)["status"], "denied")

    def test_without_group_only_root_can_read(self):
        self.start()
        self.assertEqual(self.rapl()["status"], "denied")
        self.assertRegex(self.ask(self.connect(), ENERGY.encode()), rb"^\d+\n$")  # this test runs as root

    def test_drops_privileges(self):
        reader = self.start("--group", "nogroup")
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{reader.pid}/status").read_text().splitlines()
                      if ":\t" in line)
        for capabilities in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            self.assertEqual(int(status[capabilities], 16), 0, capabilities)
        self.assertEqual(status["Uid"].split(), [str(NOBODY)] * 4)
        self.assertEqual(status["Gid"].split(), [str(NOBODY)] * 4)
        self.assertEqual(status["Groups"].split(), [])
        self.assertEqual(status["NoNewPrivs"].strip(), "1")

    def test_reads_only_energy_counters(self):
        self.machine.put("/secret", "123")
        self.machine.show(0, b"root:x:0:0:\n")
        self.start()
        for path in (b"/etc/shadow", b"/secret", b"", b"\0", ENERGY.encode() + b"/../name", b"x" * 300):
            with self.subTest(path=path):
                client = self.connect()
                try:
                    self.assertEqual(self.ask(client, path or b"\n"), b"")
                except (ConnectionResetError, BrokenPipeError):
                    pass  # also closed
        self.assertEqual(self.ask(self.connect(), ENERGY.encode()), b"E5\n")  # only digits are sent

    def test_interval_limits_counter_reads(self):
        self.start("--interval-ms", "60000")
        client = self.connect()
        first = self.ask(client, ENERGY.encode())
        counted = self.machine.count()
        deadline = time.monotonic() + TIMEOUT_S
        while self.machine.count() == counted and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(self.ask(client, b"r"), first)
        self.assertEqual(self.ask(self.connect(), ENERGY.encode()), first)

    def test_ends_by_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            reader = self.start()
            self.connect()
            reader.send_signal(number)
            self.assertEqual(reader.wait(TIMEOUT_S), -number)

    def test_reader_that_exits_is_a_lost_sensor(self):
        """Its energy is unknown from then on, not 0; the command continues."""
        reader = self.start("--group", "nogroup")
        environment = {**self.machine.environment(), "IPW_READER": str(self.socket)}
        running = subprocess.Popen([self.ipw, "run", "--json", "--", "cat"], env=environment, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
        time.sleep(1)
        os.kill(reader.pid, signal.SIGKILL)
        time.sleep(1)
        out, errors = running.communicate("", timeout=TIMEOUT_S)
        self.assertEqual(running.returncode, 0, errors)
        energy = json.loads(out)["energy"]
        self.assertTrue(energy["joules"] is None or energy["coverage"] < 1, energy)


class Usage(unittest.TestCase):
    def run_reader(self, *options):
        return subprocess.run([READER, *options], capture_output=True, text=True, timeout=TIMEOUT_S)

    def test_usage_errors(self):
        for options, word in ((("--interval-ms", "0"), "1 to 60000"), (("--interval-ms", "1x"), "1 to 60000"),
                              (("--group", "no such"), "no such group"), (("more",), "unexpected argument"),
                              (("--root", "/nonexistent"), "no energy counter")):
            with self.subTest(options=options):
                done = self.run_reader(*options)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(word, done.stderr)
        self.assertIn("--group", self.run_reader("--help").stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
