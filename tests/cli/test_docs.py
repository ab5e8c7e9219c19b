#!/usr/bin/env python3
# test: real time
"""Documentation is consistent: paths and make targets exist, the examples of docs/estimate.md are current, the example
driver of docs/adding-a-sensor.md compiles, passes its test and the conformance suite, docs/formats.md and
docs/metrics.md have all keys of a run, and docs/interrupts.md all waits."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from compiler import BUILD, SOURCE, build  # noqa: E402
from program import TIMEOUT_S, ipw  # noqa: E402

DOCUMENTS = [*sorted((SOURCE / "docs").glob("*.md")),
             *filter(Path.exists, (SOURCE / "README.md", SOURCE / "CONTRIBUTING.md"))]
# Without files of a build or a demo.
TOP = {path.name for path in SOURCE.iterdir() if not re.match("build|runs$", path.name)}
# Further libraries that the archives need.
LIBRARIES = re.findall(r"^CJSON_LIBRARY:\w+=(/\S+)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
LAYERS = {path.name for path in (SOURCE / "src").iterdir()}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


# ---- paths and targets in documents ----

def fences(text, language):
    return [body for kind, body in FENCE.findall(text) if kind == language]


def created(text):
    """Files shown in the document itself: code blocks that start with /* path: ... */."""
    return {found.group(1) for body in fences(text, "c")
            if (found := re.match(r"/\* ([\w./-]+): ", body))}


def exists(name, folder):
    """A path of the repository, from its top, from the document, or (port/fs.h) from src/.
    <name> stands for any name, and there must be one."""
    pattern = re.sub(r"<\w+>", "*", name).rstrip("/")
    bases = [SOURCE, folder, *([SOURCE / "src"] if pattern.split("/")[0] in LAYERS else [])]
    return any(any(base.glob(pattern)) for base in bases if ".." not in pattern) or \
        (folder / name).exists()


def named_paths(text):
    """Code spans that look like paths of the repository, and link targets."""
    prose = FENCE.sub("", text)
    for span in re.findall(r"`([^`\n]+)`", prose):
        for word in re.split(r"[\s,;'\"]+", span):
            word = re.sub(r":\d+$", "", word.strip("().:"))  # without a line
            first = word.split("/")[0]
            if "://" in word or word.startswith(("/", "-", "$", "~")):
                continue
            if "/" in word and (first in TOP or first in LAYERS):
                yield word
            elif re.fullmatch(r"[A-Z][\w-]+\.(?:md|txt)|Makefile|LICENSE", word):
                yield word
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if not re.match(r"\w+:|#", target):
            yield target.split("#")[0]


def path_problems(text, folder):
    shown = created(text)
    return [f"{name} does not exist" for name in named_paths(text)
            if name not in shown and not exists(name, folder)]


def target_problems(text, makefile):
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    named = re.findall(r"`make ([a-z-]+)`|^(?:\$ )?make ([a-z-]+)", text, re.M)
    return [f"make {name} is no target" for name in map("".join, named) if name not in targets]


class Names(unittest.TestCase):
    def test_paths_exist(self):
        for path in DOCUMENTS:
            self.assertEqual(path_problems(path.read_text(), path.parent), [], path.name)

    def test_make_targets_exist(self):
        makefile = (SOURCE / "Makefile").read_text()
        for path in DOCUMENTS:
            self.assertEqual(target_problems(path.read_text(), makefile), [], path.name)

    def test_checks_detect_faults(self):
        docs = SOURCE / "docs"
        for good in ("`src/core/err.h`", "`port/fs.h`", "`tests/unit/<folder>/test_<what>.c`",
                     "[x](reading-order.md)", "`IPW=1 tests/cli/test_docs.py`",
                     "`/sys/class/nothing`", "`make test`",
                     "```c\n/* src/sensors/acme.c: an example */\n```\n`src/sensors/acme.c`"):
            self.assertEqual(path_problems(good, docs), [], good)
        for bad in ("`src/core/nothing.h`", "`port/nothing.h`",
                    "`tests/unit/<folder>/best_<what>.c`", "[x](nothing.md)",
                    "`run tests/cli/nothing`", "`src/sensors/acme.c`", "`NOTHING.md`"):
            self.assertEqual(len(path_problems(bad, docs)), 1, bad)
        self.assertEqual(len(target_problems("`make nothing` `make test`", "test: x\n")), 1)

    def test_examples_of_estimate_are_current(self):
        """Estimates do not depend on the machine."""
        pages = fences((SOURCE / "docs/estimate.md").read_text(), "")
        shown = "".join(body for body in pages if body.startswith("$ ipw estimate "))
        commands = re.findall(r"^\$ ipw (estimate .*?[^\\])\n(\n.*?)\s*(?=^\$ |\Z)", shown, re.M | re.S)
        self.assertEqual(len(commands), 2)
        for command, output in commands:
            done = ipw(None, *command.replace("\\\n", " ").split())
            self.assertEqual(done.stdout.strip("\n"), output.strip("\n"), command)

    def test_reading_order_is_short(self):
        text = (SOURCE / "docs/reading-order.md").read_text()
        self.assertLessEqual(len(text.splitlines()), 120)
        self.assertEqual(sum(map(int, re.findall(r"^\| (\d+) \|", text, re.M))), 60)


# ---- where numbers come from ----

PLACE = re.compile(r"`([\w/.]+):(\d+)` `(\w+)`")


def definition_lines(name, lines):
    """Lines that begin the definition of a function or a struct, or a row of a table."""
    definition = re.compile(rf"(?!return\b|typedef\b)(?:[a-zA-Z][\w \t*]*[ *])?{name}\(|(?:struct|enum) {name} {{")
    return [number for number, line in enumerate(lines, 1) if definition.match(line) and not line.endswith(";")] or \
        [number for number, line in enumerate(lines, 1) if re.match(rf"\s*\w+\(\W*{name}\b", line)]


def place_problems(text):
    """Places, `file:line` and a name, where the name is not defined."""
    problems = []
    for path, number, name in PLACE.findall(text):
        lines = (SOURCE / path).read_text().splitlines() if (SOURCE / path).is_file() else []
        found = definition_lines(name, lines)
        if int(number) not in found:
            problems.append(f"{path}:{number}: {name} is defined in line {', '.join(map(str, found)) or 'none'}")
    return problems


class Places(unittest.TestCase):
    PAGE = SOURCE / "docs/reading-order.md"

    def test_numbers_come_from_where_the_page_says(self):
        questions = self.PAGE.read_text().partition("## Where does this number come from?")[2]
        rows = re.findall(r"^\| .*\? \| .* \|$", questions, re.M)
        self.assertGreaterEqual(len(rows), 10)
        self.assertEqual([row for row in rows if not PLACE.search(row)], [])
        self.assertEqual(place_problems(questions), [], "correct the lines, or run tests/cli/test_docs.py --update")

    def test_check_detects_faults(self):
        lines = (SOURCE / "src/core/units.h").read_text().splitlines()
        number = next(number for number, line in enumerate(lines, 1) if " is_known(" in line)
        self.assertEqual(place_problems(f"`src/core/units.h:{number}` `is_known`"), [])
        for bad in (f"`src/core/units.h:{number + 1}` `is_known`", f"`src/core/units.h:{number}` `is_unknown`",
                    f"`src/core/nothing.h:{number}` `is_known`"):
            self.assertEqual(len(place_problems(bad)), 1, bad)


def update_places():
    """Corrects line numbers whose name is defined once in the file."""
    def place(found):
        path, _, name = found.groups()
        lines = definition_lines(name, (SOURCE / path).read_text().splitlines())
        return f"`{path}:{lines[0]}` `{name}`" if len(lines) == 1 else found.group()

    Places.PAGE.write_text(PLACE.sub(place, Places.PAGE.read_text()))


# ---- waits ----

WAITS = re.compile(r"\b(p?poll|epoll_wait|thread_wait|thread_sleep|nanosleep|pthread_cond_wait|waitpid|wait4|sigwaitinfo|"
                   r"sigtimedwait|proc_poll_signal|http_perform|http_fetch|multi_poll|PQconnectdbParams|PQexec\w*|"
                   r"PQgetResult|getaddrinfo|sqlite3_busy_\w+|run_rows_wait|subprocess_run|proc_filter|child_wait|"
                   r"proc_await_orphans|flock|deadline_wait|fgets)\(")


def waiting_files():
    return {str(path.relative_to(SOURCE / "src")) for path in (SOURCE / "src").rglob("*.c") if WAITS.search(path.read_text())}


def wait_problems(text, waiting):
    """What the table of waits lacks: a file that waits, a row's test, or the test itself."""
    named = set(re.findall(r"`([\w/]+\.c)`", text))
    problems = sorted(waiting - named)
    for row in re.findall(r"^\| (?!wait \||---)(.*) \|$", text, re.M):
        wait, *_, tests = row.split(" | ")
        found, script = 0, None
        for word in re.findall(r"`([\w/.]+)`", tests):
            if "/" in word:
                script = (SOURCE / word).read_text() if (SOURCE / word).exists() else ""
            elif re.search(rf"\b(def|void) {word}\(", script or ""):
                found += 1
            else:
                problems.append(f"{wait}: no test {word}")
        if not found:
            problems.append(f"{wait}: no test")
    return problems


class Waits(unittest.TestCase):
    PAGE = (SOURCE / "docs/interrupts.md").read_text()

    def test_every_wait_has_a_test(self):
        self.assertGreater(len(re.findall(r"^\| ", self.PAGE, re.M)), 30)
        self.assertEqual(wait_problems(self.PAGE, waiting_files()), [])

    def test_checks_detect_faults(self):
        self.assertIn("port/http.c", waiting_files())
        self.assertEqual(len(wait_problems(self.PAGE, {*waiting_files(), "core/text.c"})), 1)
        row = "| x | `port/file.c` | 1 s | ends | {} |\n"
        good = "`tests/cli/test_docs.py` `test_every_wait_has_a_test`"
        self.assertEqual(wait_problems(row.format(good), set()), [])
        for bad in ("", "`tests/cli/test_docs.py`", "`tests/cli/nothing.py` `test_every_wait_has_a_test`",
                    f"{good}, `test_nothing`"):
            self.assertNotEqual(wait_problems(row.format(bad), set()), [], bad)


# ---- the keys of a run ----

def part(text, begin, end):
    return text[text.index(begin):text.index(end)]


def spans_of(text):
    """Names in code spans: `a`, `b.c` and `.d` give a, b, c and d."""
    return {name for span in re.findall(r"`([\w.]+)`", text) for name in span.split(".")}


def undocumented(keys, text):
    return sorted(set(keys) - spans_of(text))


def key_cells(text):
    """The last cells of table rows whose last column is `key`."""
    inside, cells = False, []
    for line in text.splitlines():
        row = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        inside = bool(row) and (inside or row[-1] == "key")
        if inside and row[-1] != "key":
            cells.append(row[-1])
    return "\n".join(cells)


def all_keys(value):
    if isinstance(value, list):
        return set().union(*map(all_keys, value))
    return set(value).union(*map(all_keys, value.values())) if isinstance(value, dict) else set()


def record_paths():
    """The paths of a record's fields: src/rundir/record.def."""
    text = (SOURCE / "src/rundir/record.def").read_text()
    return re.findall(r'^(?:FIELD|PART|STATS|EXTRA)\([^"]*"([^"]+)"', text, re.M)


class Keys(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-docs-")
        cls.addClassCleanup(scratch.cleanup)
        done = ipw(None, "profile", "--client", "null", "--model", "m", "--max-queries", "3",
                   "--warmup-queries", "0", "--idle", "0.1", "--request-rate", "100", "--json", "-q",
                   "--output-dir", scratch.name)
        if "JSON" in done.stderr and done.returncode == 1:
            raise unittest.SkipTest(done.stderr)
        assert done.returncode == 0, done.stderr
        cls.report = json.loads(done.stdout)
        cls.folder = Path(cls.report["output_dir"])
        cls.summary = json.loads((cls.folder / "summary.json").read_text())
        cls.formats = (SOURCE / "docs/formats.md").read_text()
        cls.paths = record_paths()
        cls.columns = {name for path in cls.paths for name in path.strip("/").split(".")}

    def lines(self, name):
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def test_keys_of_summary_are_documented(self):
        text = part(self.formats, "### summary.json", "### The run catalog")
        self.assertEqual(undocumented(self.summary, text), [])
        self.assertEqual(undocumented(self.summary["ipw"], text), [])
        self.assertEqual(undocumented(self.summary["ipw"]["joules"], text), [])
        self.assertEqual(set(self.report) - set(self.summary["ipw"]), set())
        table = part(text, "| key of `ipw`", "### `ipw profile --json`")
        down_to = table[:table.index("| `idle` |")]
        keys = set(self.report) - {"interrupted"}
        self.assertEqual(undocumented(keys, down_to), [])

    def test_keys_of_journal_and_spans_are_documented(self):
        text = part(self.formats, "### records.jsonl", "### spans.jsonl")
        for line in self.lines("records.jsonl"):
            if line["kind"] in ("run", "end"):
                self.assertEqual(undocumented(line, text), [], line["kind"])
        text = part(self.formats, "### spans.jsonl", "### The columns of a record")
        self.assertEqual(undocumented(self.lines("spans.jsonl")[0], text), [])

    def test_keys_of_record_are_documented(self):
        text = part(self.formats, "### The columns of a record", "### summary.json")
        own = {path.split(".")[1] for path in self.paths if path.startswith("/ipw.")}
        self.assertLess(20, len(own))
        self.assertEqual(undocumented(own, text), [])
        for line in self.lines("records.jsonl"):
            if line["kind"] == "query":
                self.assertEqual(undocumented(line["ipw"], text), [])

    def test_record_tables_agree_with_definition(self):
        done = subprocess.run([SOURCE / "tools/record-table"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(re.findall("^\\| `", done.stdout, re.M)), len(self.paths))
        self.assertIn(done.stdout, self.formats, "tools/record-table --write updates docs/formats.md")

    def test_keys_of_analyses_are_documented(self):
        text = part(self.formats, "### `ipw analyze`", "### The run catalog")
        done = ipw(None, "analyze", self.folder, f"{self.folder}/", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads(done.stdout)
        keys = set().union(*map(all_keys, (*results.pop("across").values(), *results.values())))
        rows = {key for key in keys if "_of_" in key or "_vs_" in key}  # pairs are shown by example
        spread = set(re.findall(r'"(\w+)"', part(text, "SPREAD is", "| analysis |")))
        known = spread | {"m"}  # the model
        shown = " ".join(f"`{key}`" for key in known | rows)
        self.assertEqual([key for key in undocumented(keys, text + shown)
                          if not key.endswith(("_interval_95", "_error"))
                          and not (key.endswith("_queries") and key.removesuffix("_queries") in keys)], [])

    def test_documented_metrics_exist(self):
        named = spans_of(key_cells((SOURCE / "docs/metrics.md").read_text()))
        self.assertLess(30, len(named))
        there = self.columns | all_keys(self.summary) | {"ipw"}
        self.assertEqual({name for name in named if name} - there, set())

    def test_metrics_of_compare_are_documented(self):
        text = (SOURCE / "src/rundir/record.def").read_text()
        names = set(re.findall(r'^(?:METRIC|PRODUCT|EXPONENTIAL)\(\w+, "(\w+)"', text, re.M))
        self.assertLess(10, len(names))
        self.assertEqual(undocumented(names, (SOURCE / "docs/metrics.md").read_text()), [])
        text = ipw(None, "compare", "--help").stdout
        self.assertEqual(names - set(re.findall(r"\w+", text[text.index("metrics: "):])), set())

    def test_checks_detect_faults(self):
        self.assertEqual(undocumented({"a": 1, "b": 2, "c": 3}, "`a` and `x.b`, but not c"), ["c"])
        table = "| figure | key |\n|---|---|\n| x | `a.b` |\n\n| y |\n|---|\n| `z` |\n"
        self.assertEqual(spans_of(key_cells(table)), {"a", "b"})
        self.assertEqual(all_keys({"a": [{"b": {"c": None}}]}), {"a", "b", "c"})


# ---- the worked example ----

class WorkedExample(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-docs-")
        cls.addClassCleanup(scratch.cleanup)
        cls.root = Path(scratch.name)
        driver, test, lines = fences((SOURCE / "docs/adding-a-sensor.md").read_text(), "c")
        cls.driver = cls.write("acme.c", driver)
        cls.test = cls.write("test_acme.c", test)
        # A source tree with the additional line, and the conformance suite with the device's files.
        listing = (SOURCE / "src/sensors/sensors.def").read_text()
        cls.write("src/sensors/sensors.def", listing + "SENSOR(acme)\n")
        suite = (SOURCE / "tests/conform/test_sensors.c").read_text()
        assert suite.count("    build_powercap();\n}") == 1
        cls.suite = cls.write("test_sensors.c", suite.replace(
            "    build_powercap();\n}", f"    build_powercap();\n{lines}}}"))

    @classmethod
    def write(cls, name, text):
        path = cls.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def build_and_run(self, driver, test):
        """Builds and runs a test with the driver in the registry, like a build with its line in sensors.def."""
        program = self.root / "program"
        build("-O0", f"-iquote{self.root}/src", f"-I{SOURCE}/src", f"-I{SOURCE}/tests", test, driver,
              SOURCE / "src/sensors/registry.c", "-Wl,--start-group",
              BUILD / "tests/libtest_support.a", *sorted(BUILD.glob("libipw_*.a")),
              "-Wl,--end-group", "-lcmocka", *LIBRARIES, "-lm", "-ldl", "-lpthread", "-o", program)
        return subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT_S)

    def test_example_driver_passes_its_test(self):
        done = self.build_and_run(self.driver, self.test)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_example_driver_conforms(self):
        done = self.build_and_run(self.driver, self.suite)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_conformance_suite_detects_faults(self):
        text = self.driver.read_text()
        for fault in ("    energy->watts_max = 20000;\n", "    energy->joules_per_count = 1e-6;\n"):
            self.assertIn(fault, text)
            broken = self.write("broken.c", text.replace(fault, ""))
            done = self.build_and_run(broken, self.suite)
            self.assertNotEqual(done.returncode, 0, fault)
            self.assertIn("acme: failed", done.stderr)


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update_places()
    else:
        unittest.main(verbosity=2)
