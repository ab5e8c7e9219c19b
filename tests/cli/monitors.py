"""An `ipw monitor` for tests, and a parser of its metrics."""

import re
import signal
import subprocess
import time
import urllib.request

from program import IPW, TIMEOUT_S

LINE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')
ESCAPES = {r"\n": "\n", r"\"": '"', r"\\": "\\"}


class Scrape:
    """Samples by name: a list of (labels, value)."""

    def __init__(self, text):
        self.text, self.samples, self.types = text, {}, {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                assert name not in self.types, f"{name} has two headers"
                self.types[name] = kind
            if line.startswith("#"):
                continue
            name, labels, value = LINE.fullmatch(line).groups()
            found = LABEL.findall(labels or "")
            assert LABEL.sub("", labels or "") == "", line
            pairs = {key: re.sub(r"\\.", lambda e: ESCAPES[e[0]], value) for key, value in found}
            self.samples.setdefault(name, []).append((pairs, float(value)))

    def find(self, name, **labels):
        """Values of the series with these labels."""
        return [value for have, value in self.samples.get(name, []) if labels.items() <= have.items()]

    def get(self, name, **labels):
        found = self.find(name, **labels)
        assert len(found) == 1, (name, labels, found, self.text)
        return found[0]

    def labels(self, name, **labels):
        return [have for have, _ in self.samples.get(name, []) if labels.items() <= have.items()]


class Monitor:
    def __init__(self, machine, *options, listen="127.0.0.1:0"):
        self.process = subprocess.Popen([IPW, "monitor", "--listen", listen, *map(str, options)],
                                        env=machine.environment(), text=True, stderr=subprocess.PIPE)
        line = self.process.stderr.readline()
        while line and not (found := re.search(r"listening on (http://\S+:(\d+))/metrics", line)):
            line = self.process.stderr.readline()
        assert line, "ipw monitor has ended"
        self.url, self.port = f"http://127.0.0.1:{found[2]}", int(found[2])

    def ask(self, path="/metrics", **headers):
        request = urllib.request.Request(self.url + path, headers=headers)
        return urllib.request.urlopen(request, timeout=TIMEOUT_S)

    def scrape(self):
        with self.ask() as answer:
            return Scrape(answer.read().decode())

    def wait(self, condition):
        """Returns the first scrape for which the condition holds."""
        until = time.monotonic() + TIMEOUT_S
        while not condition(scrape := self.scrape()):
            assert time.monotonic() < until, scrape.text
            time.sleep(0.1)
        return scrape

    def wait_updates(self, count=2):
        before = self.scrape().get("ipw_monitor_updates_total")
        return self.wait(lambda now: now.get("ipw_monitor_updates_total") >= before + count)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(TIMEOUT_S)
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()
