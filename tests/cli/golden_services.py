"""Golden outputs of the commands that serve: the responses of `ipw serve`, `monitor` and `proxy`."""

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "fakes"))
from golden import KEYS, RealGpu, Row, file_text, key_text, list_digest, series_text
from inference_server import Server
from machines import FIXTURES
from monitors import Monitor
from program import IPW, TIMEOUT_S
from proxies import Proxy, until


class Route(Row):
    """The response of `ipw serve` to a path below /api/v1/, over a folder of runs."""

    def __init__(self, name, path, extension, live=False, **options):
        super().__init__(f"serve-{name}", f"serve --runs runs {'' if live else '--no-live'}", extension,
                         machine=RealGpu if live else None, **options)
        self.route = path

    def text(self, root, environment):
        (root / "runs").mkdir()
        for run in ("runs/gpu-concurrent", "runs/cpu-judged", "measured/agent", "measured/clocks", "measured/loads"):
            self.copy(FIXTURES / run, root / "runs")
        return self.ask(root, environment)

    def ask(self, root, environment):
        server = subprocess.Popen([os.path.abspath(IPW), *self.words, "--listen", "127.0.0.1:0"], cwd=root, text=True,
                                  env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            line = server.stderr.readline()
            address = re.search(r"http://\S+:\d+/", line)
            assert address, line + server.stderr.read()
            for route in ("runs", self.route):  # the status counts the runs after they were read
                with urllib.request.urlopen(f"{address[0]}api/v1/{route}", timeout=TIMEOUT_S) as answer:
                    body = answer.read()
            return self.response_text(body, root)
        finally:
            server.kill()
            server.communicate()

    def response_text(self, body, root):
        if self.extension == "arrow":
            (root / "body.arrow").write_bytes(body)
            return file_text(root / "body.arrow")
        text = body.decode()
        if self.extension == KEYS:
            return key_text(text)
        return list_digest(text) if self.digest else text


class Surroundings:
    """The environment of a row, in place of a machine."""

    def __init__(self, environment):
        self.environment = lambda: environment


class MonitorPath(Row):
    """The response of `ipw monitor`: of metrics the series, of a document the keys."""

    def __init__(self, name, path):
        super().__init__(f"monitor-{name}", "monitor --processes off --interval 0.2", KEYS, machine=RealGpu)
        self.route = path

    def text(self, root, environment):
        monitor = Monitor(Surroundings(environment), *self.words[1:])
        try:
            monitor.wait(lambda scrape: scrape.find("ipw_node_gpu_watts"))
            with monitor.ask(self.route) as answer:
                text = answer.read().decode()
            return series_text(text) if self.route == "/metrics" else key_text(text)
        finally:
            monitor.close()


class ProxyOutput(Row):
    """The report of `ipw proxy` after two requests, a file of its run, or a response of its own."""

    def __init__(self, name, read):
        super().__init__(f"proxy-{name}", "proxy --json", KEYS, machine=RealGpu)
        self.read = read

    def text(self, root, environment):
        server = Server()
        proxy = Proxy(server.url(), root, *self.words[1:], machine=Surroundings(environment))
        try:
            for _ in range(2):
                proxy.ask(body=b'{"model": "tiny-1b", "messages": [{"role": "user", "content": "Hi"}]}')
            until(lambda: len(proxy.recent()) == 2 and all("joules" in str(each) for each in proxy.recent()))
            before = {path: proxy.get(path) for path in ("/ipw/requests", "/ipw/metrics")}
            assert proxy.end() == 0, proxy.stderr
            return self.read(proxy, before)
        finally:
            proxy.close()
            server.shutdown()
            server.server_close()


def run_file(name):
    return lambda proxy, before: key_text((proxy.root / "runs/run" / name).read_text())


SERVICES = [
    MonitorPath("metrics", "/metrics"),
    MonitorPath("readings", "/api/v1/readings"),
    ProxyOutput("report", lambda proxy, before: key_text(proxy.stdout)),
    ProxyOutput("records", run_file("records.jsonl")),
    ProxyOutput("summary", run_file("summary.json")),
    ProxyOutput("requests", lambda proxy, before: key_text(before["/ipw/requests"])),
    ProxyOutput("metrics", lambda proxy, before: series_text(before["/ipw/metrics"])),
]
