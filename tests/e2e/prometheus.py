"""A real Prometheus for tests: Debian's package, unpacked by `make test`."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from program import TIMEOUT_S

SOURCE = Path(__file__).resolve().parents[2]


def find_program(name):
    unpacked = SOURCE / ".test-env/prometheus/usr/bin" / name
    return str(unpacked) if unpacked.exists() else shutil.which(name)


PROMETHEUS, PROMTOOL = find_program("prometheus"), find_program("promtool")


class Prometheus:
    """Runs PromQL queries.  Without `files` (texts by name, including prometheus.yml) it scrapes the targets every
    second."""

    def __init__(self, files=None, **targets):
        self.scratch = tempfile.TemporaryDirectory(prefix="ipw-prometheus-")
        root = Path(self.scratch.name)
        jobs = "".join(f"  - job_name: {name}\n    static_configs: [{{targets: ['{target}']}}]\n"
                       for name, target in targets.items())
        for name, text in (files or {"prometheus.yml": f"global: {{scrape_interval: 1s}}\nscrape_configs:\n{jobs}"}).items():
            (root / name).write_text(text)
        self.log = open(root / "log", "w+")
        self.process = subprocess.Popen(
            [PROMETHEUS, f"--config.file={root}/prometheus.yml", f"--storage.tsdb.path={root}/data",
             "--web.listen-address=127.0.0.1:0"], stdout=self.log, stderr=self.log)
        self.url = f"http://127.0.0.1:{self.port()}"

    def port(self):
        """The port of its listening socket, which its log does not show with port 0."""
        until = time.monotonic() + TIMEOUT_S
        while time.monotonic() < until:
            assert self.process.poll() is None, Path(self.log.name).read_text()
            inodes = set()
            for file in Path(f"/proc/{self.process.pid}/fd").iterdir():
                try:
                    inodes |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(file)))
                except OSError:
                    continue
            for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[9] in inodes:
                    return int(fields[1].split(":")[1], 16)
            time.sleep(0.1)
        raise AssertionError("Prometheus does not listen")

    def query(self, expression):
        """Values by labels, each as a sorted tuple."""
        url = f"{self.url}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
                result = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 503:  # not ready yet
                return {}
            raise AssertionError(f"{expression}: {error.read().decode()}") from error
        return {tuple(sorted(row["metric"].items())): float(row["value"][1]) for row in result["data"]["result"]}

    def wait(self, expression):
        """Waits for values of the expression."""
        until = time.monotonic() + TIMEOUT_S
        while not (found := self.query(expression)):
            assert time.monotonic() < until, expression
            time.sleep(0.3)
        return found

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(TIMEOUT_S)
        self.log.close()
        self.scratch.cleanup()
