#!/usr/bin/env python3
# test: asan, smoke
"""Golden outputs of every command in every format, over the runs of tests/fixtures: a change of a figure, a key, a
column or their order is seen here.

`tests/cli/test_golden.py --update` writes the files again (with $IPW, $IPW_BUILD and $IPW_FAKES of a build); the
difference belongs in the commit that makes it.  With $IPW_GOLDEN_EXACT, also the last digits must be equal."""

import concurrent.futures
import functools
import json
import os
import re
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from golden import (GOLDEN, KEYS, MASKS, TEXT, UPDATE, RealCpu, RealGpu, Row, VirtualControllableGpu,  # noqa: E402
                    VirtualGpu, VirtualServer, difference)  # noqa: E402
from golden_services import SERVICES, Route  # noqa: E402
from program import ipw  # noqa: E402

RUNS = ("@runs/gpu-concurrent", "@runs/cpu-killed-resumed", "@runs/cpu-judged")
SOURCE = Path(os.environ.get("IPW_SOURCE", Path(__file__).parents[2])).resolve()
BOTH = "@runs/gpu-concurrent @runs/gpu-repeats"
LOGS = "@gpu_logs/results_a100_llama_job_7"
TWO_CLOCKS = ("@measured/clocks/points/p001_r1/run_H200x1_sh_work_sh_0_3_20261118T154457Z "
              "@measured/clocks/points/p002_r1/run_H200x1_sh_work_sh_0_35_20261118T154458Z")
PLOTS = "ttft,latency,energy,power,completion_tokens_kde,energy_distribution,phases"
TINY = "--model @inputs/tiny-llama --hardware h200"
ANALYSES = {"quality": "runs/cpu-judged", "efficiency": "runs/cpu-judged", "latency": "runs/cpu-judged",
            "accuracy": "runs/cpu-judged", "regression": "runs/gpu-repeats", "scaling": "runs/gpu-repeats",
            "outliers": "runs/gpu-repeats", "agent": "measured/agent", "layers": "runs/layers", "sweep": "measured/loads"}
EXPORTS = "jsonl csv prom perfetto otlp-json otlp-metrics"
KINDS = "clients datasets graders workloads studies agents tools analyses plots exports sensors stores findings"
FITTED = f"power fit --input {LOGS} -o model.json"
DATABASE = "--db sqlite://runs.sqlite"
PUSHED = (f"db init {DATABASE}", f"db push {DATABASE} @measured/agent @measured/clocks @measured/loads -q")

TABLE, JSON, CSV, MD = {TEXT: ""}, {"json": "--json"}, {"csv": "--format csv"}, {"md": "--format md"}

# name, command line, {extension: words to add}, options of Row
COMMANDS = [
    # analyze
    *((f"analyze-{Path(run).name}", f"analyze {run}", {**TABLE, **JSON}) for run in RUNS),
    ("analyze-formats", "analyze @runs/cpu-judged --analysis quality,efficiency", {**CSV, **MD}),
    ("analyze-gpu-repeats", "analyze @runs/gpu-repeats --analysis efficiency,quality", {**TABLE, **JSON}),
    ("analyze-verbose", "analyze -v @runs/gpu-concurrent", TABLE),
    ("analyze-agent", "analyze @measured/agent", {**TABLE, **JSON}),
    ("analyze-clocks", "analyze @measured/clocks --analysis sweep,quality", {**TABLE, **JSON}),
    ("analyze-loads", "analyze @measured/loads --analysis sweep,latency", {**TABLE, **JSON}),
    ("analyze-layers", "analyze @runs/layers", {**TABLE, **JSON}),
    ("analyze-several", f"analyze {BOTH} --analysis scaling,accuracy", {**TABLE, **JSON}),
    *((f"analyze-only-{name}", f"analyze -v @{run} --analysis {name}", TABLE) for name, run in ANALYSES.items()),
    ("analyze-not-enough-data", "analyze @runs/cpu-judged --analysis agent,layers,sweep", {**TABLE, **JSON},
     {"code": 1}),
    # compare
    ("compare", f"compare {BOTH}", {**TABLE, **JSON, **CSV, **MD}),
    ("compare-clocks", "compare @measured/clocks", {**TABLE, **JSON, **MD}),
    ("compare-loads", "compare @measured/loads", {**TABLE, **JSON, **MD}),
    # estimate
    ("estimate", f"estimate {TINY}", {**TABLE, **JSON, **CSV, **MD}),
    ("estimate-verbose", f"estimate {TINY} -v --price-per-kwh 0.3 --gco2-per-kwh 400", {**TABLE, **CSV}),
    ("estimate-vision", "estimate --model resnet18 --hardware a100-sxm-80gb", {**TABLE, **CSV, **MD}),
    ("estimate-several", "estimate --model resnet18 --hardware h200,a100-sxm-80gb --batch 1,8 --precision fp16,fp8",
     {**TABLE, **JSON, **CSV, **MD}),
    ("estimate-graph", f"estimate {TINY} --phase prefill", {"dot": "--graph dot", "mermaid": "--graph mermaid"}),
    ("estimate-legacy", "estimate --model resnet18 --hardware-file @hardware/legacy-a100-like.json --model-compat",
     {**TABLE, **JSON}),
    ("estimate-serve", f"estimate {TINY} --serve --requests 200 --request-rate 2,8 --slo-ttft-ms 500",
     {**TABLE, **JSON, **CSV, **MD}),
    ("estimate-trace", f"estimate {TINY} --serve --trace @inputs/requests.csv", {**TABLE, **JSON}),
    ("estimate-calibrate", "estimate calibrate --csv @inputs/windows.csv", {**TABLE, **JSON, **CSV, **MD}),
    ("estimate-validate", "estimate validate --hardware h200 --csv @estimate/h200.csv", {**TABLE, **JSON, **CSV, **MD}),
    # export
    *((f"export-{run}", f"export @{folder}/{run}", {form: f"--to {form}" for form in EXPORTS.split()})
      for folder, run in (("runs", "gpu-concurrent"), ("measured", "agent"))),
    ("export-killed", "export @runs/cpu-killed-resumed", {"csv": "--to csv"}),
    ("export-clocks", "export @measured/clocks", {"jsonl": "--to jsonl", "csv": "--to csv"}),
    ("export-loads", "export @measured/loads", {"csv": "--to csv"}),
    # list
    *((f"list-{kind}", f"list {kind}", {**TABLE, **JSON}) for kind in KINDS.split()),
    ("list-verbose", "list -v", TABLE),
    ("list-device", "list hardware h200", {**TABLE, **JSON, **CSV, **MD}),
    ("list-model", "list models llama-3.2-1b", {**TABLE, **JSON}),
    # optimize and power
    ("optimize-clocks", "optimize @measured/clocks", {**TABLE, **JSON, **CSV, **MD}),
    ("optimize-loads", "optimize @measured/loads --slo-latency-ms 500", {**TABLE, **JSON, **CSV}),
    ("optimize-logs", f"optimize --input {LOGS} --max-slowdown 10", {**TABLE, **JSON, **CSV}),
    ("power-fit", f"power fit --input {LOGS}", {**TABLE, **JSON, **CSV, **MD}),
    ("power-fit-clocks", "power fit @measured/clocks", {**TABLE, **JSON}),
    ("power-validate", f"power validate --input {LOGS} --model roofline,linear", {**TABLE, **JSON, **CSV, **MD}),
]

# The same with what a command writes into files, or needs first.
FILES = [
    Row("analyze-files", "analyze @runs/cpu-judged", "dir", output="cpu-judged/analysis"),
    Row("compare-page", f"compare {TWO_CLOCKS} --format html -o page.html", "html", output="page.html"),
    *(Row(f"report-{name}", f"report @{path} -o page.html", "html", output="page.html")
      for name, path in (("gpu", "runs/gpu-concurrent"), ("layers", "runs/layers/layers-1m.json"),
                         ("agent", "measured/agent"), ("clocks", "measured/clocks"), ("loads", "measured/loads"))),
    Row("estimate-calibrate-file", "estimate calibrate --csv @inputs/windows.csv -o device.json -q", "json",
        output="device.json"),
    Row("export-agent-hf", "export @measured/agent --to hf --output-dir data", "hf", output="data"),
    Row("export-agent-sqlite", "export @measured/agent --to sqlite -o run.db", "sqlite", output="run.db"),
    Row("list-hardware", "list hardware", TEXT),
    Row("list-hardware", "list hardware --json", "json", digest=True),
    Row("list-models", "list models", TEXT),
    Row("list-models", "list models --json", "json", digest=True),
    Row("list-runs", "list runs @runs", TEXT),
    Row("list-runs", "list runs @runs --json", "json"),
    Row("plot", f"plot @runs/cpu-judged --plot {PLOTS} --format svg --output-dir plots", "svg", output="plots"),
    Row("plot", f"plot @runs/cpu-judged --plot {PLOTS} --format svg --output-dir plots", TEXT),
    Row("plot-run", f"plot {TWO_CLOCKS.split()[0]} --format svg --output-dir plots", "svg", output="plots"),
    Row("plot-several", f"plot {BOTH} --plot pareto,concurrency,models --format svg --output-dir plots", "svg",
        output="plots"),
    Row("plot-layers", "plot @runs/layers --format svg --output-dir plots", "svg", output="plots"),
    Row("plot-loads", "plot @measured/loads --format svg --output-dir plots", "svg", output="plots"),
    Row("plot-logs", f"plot --input {LOGS} --format svg --output-dir plots", "svg", output="plots"),
    Row("power-fit-model", FITTED, "json", output="model.json"),
    *(Row("power-predict", f"power predict model.json --freq 600-1400:200 {option}", extension, prepare=(FITTED,))
      for extension, option in ((TEXT, ""), ("json", "--json"), ("csv", "--format csv"), ("md", "--format md"))),
    *(Row("optimize-model", f"optimize model.json --clocks @inputs/clocks.csv {option}", extension, prepare=(FITTED,))
      for extension, option in ((TEXT, ""), ("json", "--json"), ("csv", "--format csv"))),
    Row("db-init", f"db init {DATABASE}", TEXT),
    Row("db-push", f"db push {DATABASE} @measured/agent @measured/clocks", TEXT, prepare=PUSHED[:1]),
    Row("db-pull", f"db pull {DATABASE} agent --output-dir pulled", TEXT, prepare=PUSHED),
    Row("db-prune", f"db prune {DATABASE} --older-than 2100-01-01 --dry-run", TEXT, prepare=PUSHED),
    Row("db-list", f"db list {DATABASE}", TEXT, prepare=PUSHED),
    Row("db-list", f"db list {DATABASE} --json", "json", prepare=PUSHED),
    Row("db-list", f"db list {DATABASE} --format csv", "csv", prepare=PUSHED),
    Row("db-list", f"db list {DATABASE} --format md", "md", prepare=PUSHED),
    Row("db-pull", f"db pull {DATABASE} agent --output-dir pulled", "dir", output="pulled", prepare=PUSHED, digest=True),
]

# Commands that measure.
CLIENT = "--client null --model m --dataset @inputs/sums.jsonl --warmup-queries 0 --output-dir out --name it"
PROFILE = f"profile {CLIENT} --client-param 'ttft_ms=60,tokens_per_s=60,tokens=6,answer=so the final answer is 4'"
AGENT = f"agent {CLIENT} --client-param script=@inputs/script.jsonl,ttft_ms=60,tokens_per_s=60"
SWEEP = "sweep --control --repeat 2 --seed 1 --sample-rate 20 --output-dir out"
CLOCKS = f"{SWEEP} --list @inputs/settings.csv"
GOVERN = "govern --max-power-w 150 --duration 20 --interval 2"
REPORTED = {**TABLE, **JSON}
EVERY = {**REPORTED, **CSV, **MD}
MEASURED = [
    ("run", "run --idle 1 --repeat 3", " -- sleep 1", EVERY, VirtualGpu),
    ("run-cpu", "run --price-per-kwh 0.3 --gco2-per-kwh 400", " -- sleep 2", REPORTED, VirtualServer),
    ("run-against", "run --repeat 4 --against 'sleep 0.9'", " -- sleep 1", EVERY, VirtualGpu),
    ("profile", f"{PROFILE} --idle 1", "", EVERY, VirtualServer),
    ("profile-concurrent", f"{PROFILE} --idle 1 --concurrency 3 --repeat 2", "", REPORTED, VirtualGpu),
    ("agent", AGENT, "", EVERY, VirtualServer),
    ("sweep", SWEEP, " --knob gpu-clock=1785,1110 -- sleep 1", EVERY, VirtualControllableGpu),
    ("sweep-failed", CLOCKS, " -- sleep {s}", {TEXT: "-q"}, VirtualControllableGpu),
    ("sweep-plan", f"{CLOCKS} --dry-run", " -- sleep {s}", EVERY, VirtualControllableGpu),
    ("energy", "energy --count 3", "", {TEXT: "--format table", **JSON, **CSV}, VirtualServer),
    ("energy-once", "energy --once", "", {TEXT: "--format table", **JSON, **CSV, **MD}, VirtualGpu),
    ("govern", GOVERN, "", {TEXT: "--dry-run", "json": "--json -q", "csv": "--format csv -q", "md": "--format md"}, VirtualControllableGpu),
]

DIRECTORIES = [
    Row("run-directory", "run --idle 0.2 --repeat 2 --sample-rate 10 --output-dir out -- sleep 1", "dir", output="out", machine=VirtualGpu),
    Row("profile-directory", f"{PROFILE} -q --sample-rate 10 --idle 0.2", "dir", output="out", machine=VirtualServer),
    Row("agent-directory", f"{AGENT} -q --sample-rate 10 --idle 0", "dir", output="out", machine=VirtualGpu,
        without=("dataset_info.json", "samples.csv")),
    Row("sweep-directory", f"{CLOCKS} -q --repeat 1 -- sleep {{s}}", "dir", output="out",
        machine=VirtualControllableGpu, code=1, without=("samples.csv",)),
    Row("govern-log", f"{GOVERN} --log log.jsonl -q", "jsonl", output="log.jsonl", machine=VirtualControllableGpu),
]

# Paths of `ipw serve`; live figures are in real time.
ROUTES = [
    Route("status", "status", "json"),
    Route("openapi", "openapi.json", "json", digest=True),
    Route("runs", "runs", "json"),
    Route("runs-searched", "runs?q=gpu&sort=energy_j&order=desc&limit=1", "json"),
    Route("current", "current", "json"),
    Route("run", "runs/gpu-concurrent", "json"),
    Route("run-agent", "runs/agent", "json"),
    Route("report", "runs/cpu-judged/report", "json"),
    Route("report-clocks", "runs/clocks/report", "json"),
    Route("page", "runs/clocks/page", "html"),
    Route("records", "runs/gpu-concurrent/records?limit=2", "json"),
    Route("records", "runs/cpu-judged/records.csv", "csv"),
    Route("records", "runs/cpu-judged/records.arrow", "arrow"),
    Route("file", "runs/agent/files/traces.jsonl", "jsonl"),
    Route("compare", "compare?run=gpu-concurrent&run=cpu-judged", "json"),
    Route("pareto", "pareto", "json"),
    Route("sweeps", "sweeps", "json"),
    Route("sweep", "sweeps/loads", "json"),
    Route("live-missing", "live", KEYS),
    Route("live", "live", KEYS, live=True),
    Route("live-history", "live/history", KEYS, live=True),
    Route("sensors", "sensors", KEYS, live=True),
    Route("models", "models", "json", digest=True),
    Route("hardware", "hardware", "json", digest=True),
    Route("estimate", "estimate?model=llama-3.2-1b&hardware=h200&batch=4", KEYS),
]

# Commands that compute while they measure.
LAYERS = ("layers --model ipw-1m-f16 --prompt-tokens 16 --gen 4 --repeat 1 --idle 0.2 --threads 1 --window 0.02 "
          "--granularity component -q")
REAL = [
    Row("doctor", "doctor", TEXT),
    Row("doctor", "doctor --json", "json"),
    Row("doctor", "doctor --format csv", "csv"),
    Row("doctor", "doctor --format md", "md"),
    Row("doctor-gpu", "doctor --json", KEYS, machine=RealGpu),
    Row("load", "load --seconds 0.1 --threads 1", TEXT),
    Row("layers", f"{LAYERS} --json", KEYS, machine=RealCpu, has_llama=True),
    Row("layers-summary", f"{LAYERS} --output-dir out", KEYS, output="out/layers*/summary.json", machine=RealCpu,
        has_llama=True),
    Row("demo", "demo --json --queries 2 --model ipw-1m-f16 --idle 0.1 -q", KEYS, machine=RealCpu, has_llama=True),
]

ROWS = [*(Row(name, f"{words} {option}", extension, **dict(*options)) for name, words, forms, *options in COMMANDS
          for extension, option in forms.items()), *FILES,
        *(Row(name, f"{words} {option}{command}", extension, machine=machine)
          for name, words, command, forms, machine in MEASURED for extension, option in forms.items()), *DIRECTORIES, *ROUTES,
        *SERVICES, *REAL]


@functools.cache
def outputs():
    """What each row writes now, or the exception that it raised."""
    def run(row):
        try:
            return row.run()
        except Exception as failure:  # reported by the row's test
            return failure
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        return dict(zip((row.path for row in ROWS), pool.map(run, ROWS)))


class GoldenTest(unittest.TestCase):
    def check(self, rows):
        for row in rows:
            with self.subTest(row.file):
                now = outputs()[row.path]
                if now is None:
                    self.skipTest("no llama.cpp library")
                if isinstance(now, Exception):
                    raise now
                self.assertTrue(row.path.exists(), f"no {row.path}: run {UPDATE}")
                found = difference(row.path.read_text(encoding="utf-8"), now, row.file)
                if found:
                    self.fail(f"ipw {' '.join(row.words)}\n{found}\nif this is intended: {UPDATE}")


class Figures(GoldenTest):
    """JSON, CSV, Markdown, pages, exports and directories."""

    def test_figures(self):
        self.check([row for row in ROWS if row.extension != TEXT])


class Text(GoldenTest):
    """Tables and messages."""

    def test_text(self):
        self.check([row for row in ROWS if row.extension == TEXT])


# Formats that no row has, and why.
EXCEPTIONS = {
    ("plot", "png"): "the script is that of svg but for its terminal line, and gnuplot draws the picture",
    ("plot", "pdf"): "as png",
    ("proxy", "table"): "measured in real time, since its requests come over the network; its JSON has rows of keys",
    ("proxy", "csv"): "as its table",
    ("proxy", "md"): "as its table",
    ("layers", "table"): "measured in real time, since it computes; its JSON has a row of keys",
    ("layers", "csv"): "as its table",
    ("layers", "md"): "as its table",
    ("demo", "table"): "as layers",
    ("demo", "csv"): "as layers",
    ("demo", "md"): "as layers",
    ("monitor", "table"): "writes nothing but where it listens",
    ("serve", "table"): "writes nothing but where it listens",
    ("report", "table"): "writes a page",
    ("export", "table"): "writes files of other programs",
    ("db", "table"): "only has commands below it",
    ("power", "table"): "only has commands below it",
}
ROUTES_LEFT_OUT = {
    "/api/v1/live/stream": "events of /api/v1/live until the client disconnects",
}
KNOWN_FORMATS = "table|csv|json|md|html|png|svg|pdf"


def command_of(row, commands):
    pair = "-".join(row.words[:2])
    return pair if pair in commands else row.words[0]


def formats_of(command):
    """The formats that the help of a command names."""
    text = ipw(None, *command.split("-"), "--help").stdout
    options = text.partition("options:")[2]
    found = {"table"}
    if re.search(r"^ +--json ", options, re.M):
        found.add("json")
    for line in re.findall(r"^ +--(?:format|graph) .*$", options, re.M):
        found |= set(re.findall(rf"\b(?:{KNOWN_FORMATS}|dot|mermaid)\b", line.partition("  ")[2]))
    return found


def listed(kind):
    return {entry["name"] for entry in json.loads(ipw(None, "list", kind, "--json").stdout)[kind]}


class Completeness(unittest.TestCase):
    """Every command, format, analysis, export, kind of list and path of the API has a row, or a listed reason."""

    def setUp(self):
        pages = (SOURCE / "docs/man").glob("ipw-*.1")
        self.commands = {page.stem.removeprefix("ipw-") for page in pages}
        self.rows = [(command_of(row, self.commands), row) for row in ROWS]

    def words_after(self, command, option):
        """The values that rows give to an option."""
        return {value for name, row in self.rows if name == command
                for before, value in zip(row.words, row.words[1:]) if before == option}

    def test_every_format_of_every_command(self):
        shown = set(re.findall(r"^  (\w+) +", ipw(None, "--help").stdout.partition("commands:")[2].partition(
            "exit status")[0], re.M))
        self.assertEqual(shown, {command for command in self.commands if "-" not in command})
        have = {(command, {TEXT: "table", KEYS: "json"}.get(row.extension, row.extension)) for command, row in self.rows}
        wanted = {(command, form) for command in self.commands for form in formats_of(command)}
        self.assertEqual(wanted - have - set(EXCEPTIONS), set())
        self.assertEqual(set(EXCEPTIONS) & have, set(), "exceptions that have a row")
        self.assertEqual(set(EXCEPTIONS) - wanted, set(), "exceptions for what does not exist")

    def test_every_analysis(self):
        self.assertEqual(listed("analyses") - {name for names in self.words_after("analyze", "--analysis")
                                               for name in names.split(",")}, set())

    def test_every_export(self):
        self.assertEqual(listed("exports") - self.words_after("export", "--to"), set())

    def test_every_kind_of_list(self):
        text = " ".join(ipw(None, "list", "--help").stdout.split())
        kinds = set(re.findall(r"\w+", re.search(r"KIND is (.*?) or all\.", text)[1])) - {"or"}
        self.assertEqual(kinds - self.words_after("list", "list"), set())

    def test_every_path_of_the_api(self):
        paths = re.findall(r'^ROUTE\("([^"]+)"', (SOURCE / "src/serve/routes.def").read_text(), re.M)
        asked = ["/api/v1/" + row.route.partition("?")[0] for row in ROUTES]
        missing = [path for path in paths if not any(re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), each) for each in asked)]
        self.assertEqual(missing, list(ROUTES_LEFT_OUT))


class Table(unittest.TestCase):
    def test_names_are_unique(self):
        self.assertEqual(len({row.path for row in ROWS}), len(ROWS))

    def test_every_golden_file_has_a_row(self):
        kept = {path for path in GOLDEN.rglob("*") if path.is_file()}
        self.assertEqual(kept - {row.path for row in ROWS}, set())

    def test_every_mask_is_needed(self):
        outputs()
        self.assertEqual([mask.name for mask in MASKS if not mask.count], [])


def update():
    for path, text in outputs().items():
        if isinstance(text, Exception):
            print(f"{path.name}: {text}", file=sys.stderr)
        elif text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for path in GOLDEN.rglob("*"):
        if path.is_file() and path not in outputs():
            path.unlink()


if __name__ == "__main__":
    if "--update" in sys.argv:
        update()
    else:
        unittest.main()
