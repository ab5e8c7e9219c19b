#!/usr/bin/env python3
# test: real time
"""Without memory a command ends with one line, and leaves behind what SIGTERM would: a journal that can be continued, a
GPU with its own clocks, and no process."""
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from types import SimpleNamespace

from dashboards import Dashboard
from machines import ControllableGpu
from monitors import Monitor
from program import IPW, TIMEOUT_S
from proxies import ProxyTest, send_document, until

SERVER = f"{sys.executable} {Path(__file__).parent.parent / 'fakes' / 'mcp_server.py'}"
FRONT = Path(IPW).resolve().parent / "energy-monitor"
FAKE = os.path.join(os.environ["IPW_FAKES"], "libfake_failing_malloc.so")
MESSAGE = r"ipw: out of memory: cannot allocate \d+ bytes\n"


class Shortage:
    """Takes all memory away from one process."""

    def __init__(self, test):
        self.file = tempfile.NamedTemporaryFile()
        test.addCleanup(self.file.close)
        self.write(0)
        self.environment = {"LD_PRELOAD": FAKE, "IPW_FAIL_MALLOC": self.file.name}

    def write(self, process):
        os.pwrite(self.file.fileno(), struct.pack("=i", process), 0)

    def begin(self, process):
        self.write(process.pid)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def children_of(pid):
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
    return [int(pid) for pid in listed.split()]


def descendants_of(pid):
    return [found for child in children_of(pid) for found in (child, *descendants_of(child))]


def records_of(run):
    lines = run.read_text().splitlines() if run.exists() else []
    return [record for record in map(json.loads, lines) if record["kind"] == "query"]


class OutOfMemory(ProxyTest):
    def setUp(self):
        super().setUp()
        self.shortage = Shortage(self)

    def assert_ended(self, process, stderr):
        self.assertEqual(process.returncode, 1, stderr)
        self.assertRegex(stderr, MESSAGE)
        self.assertEqual(stderr.count("out of memory"), 1, stderr)

    def test_proxy_keeps_answered_requests_and_resumes(self):
        upstream = self.upstream(send_document)
        proxy = self.proxy(upstream, env=self.shortage.environment)
        for _ in range(20):
            self.assertEqual(proxy.ask()[0], "HTTP/1.1 200 OK")
        until(lambda: len(proxy.records()) == 20)
        self.shortage.begin(proxy.process)
        with proxy.connect() as connection:
            connection.sendall(b"GET /ipw/requests HTTP/1.1\r\nHost: localhost\r\n\r\n")
            stderr = proxy.process.communicate(timeout=TIMEOUT_S)[1]
        self.assert_ended(proxy.process, stderr)
        self.assertEqual(len(proxy.records()), 20)
        resumed = self.proxy(upstream, "--resume")
        self.assertEqual(resumed.ask()[0], "HTTP/1.1 200 OK")
        self.assertEqual(resumed.end(), 0, resumed.stderr)
        self.assertEqual(len(resumed.records()), 21)
        summary = json.loads((self.root / "runs/run/summary.json").read_text())
        self.assertEqual(summary["ipw"]["queries"], 21)

    def test_serve_ends_the_run_that_it_started(self):
        token = self.root / "token"
        token.write_text("s" * 32)
        upstream = self.upstream(lambda *_: time.sleep(TIMEOUT_S))
        (self.root / "runs").mkdir()
        served = Dashboard("--runs", self.root / "runs", "--no-live", "--allow-runs", "--token-file", token,
                           env=self.shortage.environment)
        self.addCleanup(served.close)
        headers = {"Authorization": "Bearer " + "s" * 32, "Content_Type": "application/json"}
        started = served.ask("/api/v1/runs", "POST", json.dumps(
            {"client": "openai", "model": "m", "base_url": upstream.url + "/v1", "max_queries": 5}), **headers)
        self.assertEqual(started.status, 202, started.body)
        until(lambda: upstream.requests)
        runs = children_of(served.process.pid)
        self.assertTrue(runs)
        self.shortage.begin(served.process)
        try:
            served.ask("/api/v1/runs", **headers)
        except OSError:
            pass  # the connection ends with the server
        self.assert_ended(served.process, served.process.communicate(timeout=TIMEOUT_S)[1])
        until(lambda: not any(map(is_running, runs)))

    def start(self, *arguments, machine=None, is_ready=None):
        process = subprocess.Popen([IPW, *arguments], cwd=self.root, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True,
                                   env={**(machine.environment() if machine else os.environ), **self.shortage.environment,
                                        "TMPDIR": str(self.root)})
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        until(is_ready or (self.root / "ready").exists)
        self.family = descendants_of(process.pid)
        self.shortage.begin(process)
        return process

    def test_sweep_restores_clocks(self):
        machine = ControllableGpu()
        self.addCleanup(machine.close)
        process = self.start("sweep", "-q", "--output-dir", "runs", "--control", "--knob", "gpu-clock=510", "--", "sh", "-c",
                             "touch ready; until [ -e go ]; do sleep 0.01; done", machine=machine)
        self.assertNotEqual(machine.settings(), ControllableGpu.FREE)
        (self.root / "go").touch()  # to store the point, it needs memory
        self.assert_ended(process, process.communicate(timeout=TIMEOUT_S)[1])
        until(lambda: machine.settings() == ControllableGpu.FREE)

    def test_run_ends_its_command(self):
        process = self.start("run", "--", "sh", "-c", "echo $$ > child; touch ready; exec sleep 300")
        child = int((self.root / "child").read_text())
        self.assert_ended(process, process.communicate(timeout=TIMEOUT_S)[1])  # its sampler needs memory
        until(lambda: not is_running(child))

    def start_agent(self, client, *options):
        (self.root / "questions.jsonl").write_text(json.dumps({"problem": "p", "answer": "a"}) + "\n")
        process = self.start("agent", "-q", *client, "--model", "m", "--dataset", "questions.jsonl", "--idle", "0", "--warmup-queries", "0",
                             "--output-dir", "runs", *options, is_ready=lambda: any(self.root.glob("ipw-agent-*/q000000/ready")))
        self.assertGreaterEqual(len(self.family), 2)  # a supervisor, and the program
        self.assert_ended(process, process.communicate(timeout=TIMEOUT_S)[1])  # to show progress, it needs memory
        until(lambda: not any(map(is_running, self.family)))
        self.assertEqual(list(self.root.glob("ipw-agent-*")), [])  # the workspaces

    def calls_shell(self, command):
        tool = {"type": "function", "function": {"name": "shell", "arguments": json.dumps({"command": command})}}
        (self.root / "script.jsonl").write_text(json.dumps({"content": "", "tool_calls": [tool]}) + "\n")
        return "--client", "null", "--client-param", "script=script.jsonl"

    def test_agent_ends_tools(self):
        self.start_agent(self.calls_shell("touch ready; sleep 300 & wait"), "--tools", "shell", "--tool-timeout", "600")

    def test_agent_ends_tool_servers(self):
        self.start_agent(self.calls_shell("touch ready; sleep 300"), "--tools", "shell", "--tool-timeout", "600",
                         "--mcp", SERVER)
        self.assertGreaterEqual(len(self.family), 4)

    def test_agent_ends_programs(self):
        upstream = self.upstream(send_document)
        self.start_agent(("--client", "openai", "--client-base-url", upstream.url + "/v1"),
                         "--exec", "touch {workspace}/ready; sleep 300 & wait")

    def test_profile_keeps_answered_queries_and_resumes(self):
        # The first request asks what the service can do; three queries are answered, the fourth is in flight.
        asked, held, release = [], threading.Event(), threading.Event()

        def answer(connection, line, *_):
            asked.append(line)
            if sum("POST" in each for each in asked) > 4 and not release.is_set():
                held.set()
                release.wait(TIMEOUT_S)
            send_document(connection)

        upstream = self.upstream(answer)
        self.addCleanup(release.set)
        options = ("profile", "-q", "--client", "openai", "--client-base-url", upstream.url + "/v1", "--model", "m",
                   "--dataset", "builtin", "--max-queries", "5", "--idle", "0", "--warmup-queries", "0", "--output-dir",
                   "runs", "--name", "run")
        records = self.root / "runs/run/records.jsonl"
        process = self.start(*options, is_ready=held.is_set)
        self.assert_ended(process, process.communicate(timeout=TIMEOUT_S)[1])
        self.assertEqual(len(records_of(records)), 3)
        release.set()
        resumed = subprocess.run([IPW, *options, "--resume"], cwd=self.root, stdin=subprocess.DEVNULL, capture_output=True,
                                 text=True)
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertEqual(json.loads((self.root / "runs/run/summary.json").read_text())["ipw"]["completed"], 5)

    def test_monitor_ends_with_one_line(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        grpc = ["--grpc", f"127.0.0.1:{port}"] if FRONT.exists() else []  # starts energy-monitor
        monitor = Monitor(SimpleNamespace(environment=lambda: {**os.environ, **self.shortage.environment}), *grpc)
        self.addCleanup(monitor.close)
        self.family = descendants_of(monitor.process.pid)
        self.assertEqual(len(self.family), len(grpc) // 2)
        self.shortage.begin(monitor.process)
        try:
            monitor.scrape()
        except OSError:
            pass  # the connection ends with the monitor
        self.assert_ended(monitor.process, monitor.process.communicate(timeout=TIMEOUT_S)[1])
        until(lambda: not any(map(is_running, self.family)))

    def test_govern_restores_clocks(self):
        machine = ControllableGpu("value throttle 0 0\nvalue utilisation 0 90\nvalue clock_sm_max 0 1785\n"
                                  "value clock_sm 0 1785\ntick 0 0.02\npower 0 clocked 80 600 2.5\n")
        self.addCleanup(machine.close)
        process = self.start("govern", "--max-power-w", "300", "--interval", "0.25", "--log", "log.jsonl", machine=machine,
                             is_ready=lambda: machine.settings().split()[2] != "0")
        self.assert_ended(process, process.communicate(timeout=TIMEOUT_S)[1])
        until(lambda: machine.settings().split()[2] == "0")


if __name__ == "__main__":
    unittest.main(verbosity=2)
