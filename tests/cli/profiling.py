"""Running ipw profile against the fake inference server, and reading its run directory."""

import csv
import json
import re
import subprocess
import sys
import threading
import time
from bisect import bisect_right
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "fakes"))
from inference_server import PIECES, TEXT, Handler, Server  # noqa: E402,F401
from machines import Machine  # noqa: E402
from program import IPW, TIMEOUT_S, MachineTest, ipw  # noqa: E402

MODEL = "tiny-1b"
TOKENS = len(PIECES)
SCENARIO = re.compile(r"\[(\w+)(?::([^\]]*))?\]")


class ScenarioHandler(Handler):
    """More scenarios, which depend on the question.

    mixed       each question names its own scenario: "What is it? [status:code=500]"; otherwise normal; together=N waits
                until N requests are in flight
    say         text=TEXT: this answer, in one chunk
    flaky       fails=N, by=SCENARIO: a question is answered N times with an error, or by that scenario, then as normal
    embedding   an embedding of one element for /embeddings, otherwise as normal
    toolless    rejects tools, like a server without tool support; otherwise as normal
    judge       TRUE if the given answer equals the reference answer, FALSE otherwise
    """

    def question(self):
        messages = self.asked.get("messages") or [{"content": self.asked.get("prompt", "")}]
        return messages[-1]["content"]

    def answer(self):
        asking = self.command == "POST"
        if asking:
            self.server.enter()
        try:
            super().answer()
        finally:
            if asking:
                self.server.leave()

    do_GET = do_POST = answer

    def scenario_mixed(self):
        found = SCENARIO.search(self.question())
        if found:
            self.scenario = found[1]
            more = (pair.partition("=")[::2] for pair in (found[2] or "").split(",") if pair)
            self.options = {**self.options, **dict(more)}
            getattr(self, "scenario_" + self.scenario)()
        else:
            self.server.wait_for_in_flight(int(self.options.get("together", 1)))
            self.stream()

    def scenario_say(self):
        self.stream([self.options["text"]])

    def scenario_flaky(self):
        asked = self.question().startswith("question")  # not the client's health check
        if asked and self.server.times(self.question()) <= int(self.options.get("fails", 1)):
            getattr(self, "scenario_" + self.options.get("by", "status"))()
        else:
            self.stream()

    def scenario_embedding(self):
        if self.rest.endswith("/embeddings"):
            self.document({"data": [{"index": 0, "embedding": [0.5]}], "usage": {"prompt_tokens": 4, "total_tokens": 4}})
        else:
            self.stream()

    def scenario_toolless(self):
        if self.asked.get("tools"):
            self.document({"error": {"message": "this model does not support tools"}}, 400)
        else:
            self.stream()

    def scenario_judge(self):
        parts = re.findall(r"=== begin [^=]*===\n(.*?)\n=== end", self.question(), re.DOTALL)
        self.stream(["TRUE" if parts[1] == parts[2] else "FALSE"])


class Service(Server):
    """The fake server, which also counts concurrent requests and how often each question was received."""

    def __init__(self):
        super().__init__()
        self.RequestHandlerClass = ScenarioHandler
        self.now = self.most = 0

    def enter(self):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def leave(self):
        with self.lock:
            self.now -= 1

    def wait_for_in_flight(self, count):
        """Waits until this many requests are in flight, or two seconds: the last ones may have no others."""
        end = time.monotonic() + 2
        while self.now < count and time.monotonic() < end:
            time.sleep(0.005)

    def bodies(self, scenario=None):
        """Request bodies in order; of one scenario only, if given."""
        with self.lock:
            asked = [r for r in self.requests if r["method"] == "POST"]
        return [json.loads(r["body"]) for r in asked
                if scenario is None or r["path"].split("/")[1].partition(":")[0] == scenario]

    def questions(self, scenario=None):
        return [body["messages"][-1]["content"] for body in self.bodies(scenario)]

    def times(self, question):
        return self.questions().count(question)


def merge_record(into, more):
    """Merges later lines of a query into its record, as rundir/journal.h does."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge_record(into[key], value)
        else:
            into[key] = value
    return into


class Run:
    """A run directory, read without ipw."""

    def __init__(self, path):
        self.path = Path(path)

    def lines(self, name="records.jsonl"):
        return [json.loads(line) for line in (self.path / name).read_text().split("\n")[:-1]]

    def records(self):
        """Records by key: the last query line of each, merged with the other lines of its start and of later starts,
        which may precede it."""
        start, queries, others = 0, {}, []
        for line in self.lines():
            start += line["kind"] == "run"
            if line["kind"] == "query":
                queries.pop(line["key"], None)  # ordered by the last one
                queries[line["key"]] = start, line
            elif "key" in line:
                others.append((start, line))
        found = {key: line for key, (_, line) in queries.items()}
        for start, line in others:
            if line["key"] in queries and start >= queries[line["key"]][0]:
                merge_record(found[line["key"]], {k: v for k, v in line.items() if k != "kind"})
        return found

    def summary(self):
        return json.loads((self.path / "summary.json").read_text())

    def metrics(self, key):
        return self.records()[key]["model_metrics"][MODEL]

    def answers(self):
        """The model's answers by key."""
        return {key: r["model_answers"][MODEL] for key, r in self.records().items()}

    def verdicts(self):
        return {key: r["model_metrics"][MODEL].get("evaluation", {}).get("is_correct")
                for key, r in self.records().items()}


class EnergySums:
    """The running sums of samples.csv: joules between two times."""

    def __init__(self, path):
        self.points = {}  # device -> channel -> [(t, sum)]
        whole = Path(path).read_text(encoding="utf-8").rpartition("\n")[0]  # a kill may truncate the last line
        for row in csv.DictReader(whole.split("\n")):
            if row["quantity"] == "energy" or row["channel"] == "power.samples":
                channels = self.points.setdefault(row["device"], {})
                points = channels.setdefault(row["quantity"], [])
                points.append((float(row["t_s"]), float(row["sum"])))

    def between(self, device, begin, end):
        return self.until(device, end) - self.until(device, begin)

    def until(self, device, t):
        """By the energy counter; if that is read rarely, its joules between two reads are distributed by the power
        samples."""
        counter = self.points[device]["energy"]
        course = self.points[device].get("power")
        (t0, s0), (t1, s1) = self.around(counter, t)
        if not course:
            return s0 + (s1 - s0) * (t - t0) / (t1 - t0)
        begin, now, end = (self.at(course, moment) for moment in (t0, t, t1))
        return s0 + (s1 - s0) * (now - begin) / (end - begin)

    @staticmethod
    def around(points, t):
        place = min(max(bisect_right(points, (t, 0)), 1), len(points) - 1)
        return points[place - 1], points[place]

    @classmethod
    def at(cls, points, t):
        (t0, s0), (t1, s1) = cls.around(points, t)
        return s0 + (s1 - s0) * (t - t0) / (t1 - t0)


class ProfileTest(MachineTest):
    """One server per class; a machine without sensors and an output directory per test."""

    @classmethod
    def setUpClass(cls):
        cls.service = Service()
        cls.addClassCleanup(cls.service.server_close)
        cls.addClassCleanup(cls.service.shutdown)

    def setUp(self):
        self.on = self.machine(Machine)
        self.out = self.on.root / "out"
        with self.service.lock:
            self.service.requests.clear()
            self.service.most = 0

    def dataset(self, *rows, name="questions"):
        """Writes a dataset file; a text is a problem that is its own answer."""
        rows = [row if isinstance(row, dict) else {"problem": row, "answer": row} for row in rows]
        return self.on.put(f"/{name}.jsonl", "\n".join(json.dumps(row) for row in rows))

    def numbered(self, count):
        return self.dataset(*(f"question {n}" for n in range(count)))

    def arguments(self, *more, scenario="normal", dataset=None, machine=None):
        """Arguments of a quick run; `more` overrides them."""
        where = dataset if isinstance(dataset, str) else str(dataset or self.numbered(4))
        return ["profile", "--client", "openai", "--model", MODEL, "--idle", "0", "--warmup-queries",
                "0", "--retries", "0", "--max-failed", "100%", "--output-dir", self.out, "--client-base-url",
                self.service.url(scenario), "--dataset", where, *more]

    def profile(self, *more, code=0, machine=None, env=None, timeout=TIMEOUT_S, **options):
        """Runs to completion; returns the report (None without one) and sets self.done."""
        arguments = self.arguments("--json", *more, **options)
        self.done = ipw(machine or self.on, *arguments, env=env, timeout=timeout)
        self.assertEqual(self.done.returncode, code, self.done.stderr)
        report = json.loads(self.done.stdout) if self.done.stdout else None
        self.run = Run(report["output_dir"]) if report else None
        return report

    def start(self, *more, machine=None, env=None, **options):
        """Starts in the background; killed at the end of the test."""
        process = subprocess.Popen([IPW, *map(str, self.arguments("--json", *more, **options))],
                                   env={**(machine or self.on).environment(), **(env or {})},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.stop, process)
        return process

    @staticmethod
    def stop(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def until(self, holds, what, timeout_s=40):
        """Waits for a condition; the machine may be slow."""
        deadline = time.monotonic() + timeout_s
        while not holds():
            self.assertLess(time.monotonic(), deadline, f"timeout while waiting for {what}")
            time.sleep(0.005)

    def directory(self):
        """The one run directory below the output directory."""
        found = [path for path in self.out.iterdir() if path.is_dir()]
        self.assertEqual(len(found), 1, found)
        return found[0]

    def assertErrorMessage(self, *words, lines=1):
        """stderr has exactly this many lines, with these words."""
        self.assertEqual(self.done.stderr.count("\n"), lines, self.done.stderr)
        self.assertTrue(self.done.stderr.startswith("ipw profile: "), self.done.stderr)
        for word in words:
            self.assertIn(word, self.done.stderr)


def in_thread(action):
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread
