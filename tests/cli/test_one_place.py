#!/usr/bin/env python3
"""A label, a unit and a finding are defined in one place: in a scratch copy of the sources, a change there is seen in
every format, page, plot and in the API, after compiling only the files that read the definition."""

import csv
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from dashboards import Dashboard  # noqa: E402
from program import TIMEOUT_S  # noqa: E402

SOURCE = Path(os.environ.get("IPW_SOURCE", Path(__file__).parents[2])).resolve()
BUILD = Path(os.environ.get("IPW_BUILD", SOURCE / "build")).resolve()
RUNS = ("gpu-concurrent", "gpu-repeats")
LABEL, UNIT = "Energy per answer", "Jy"
CODE, TEXT = "patched_finding", "the run has 14 rows"
DEFINITIONS = ("record.def", "finding.def")
# What a new row changes beyond the files that include the table: sizes of arrays.
SIZES = re.compile(r"\bFINDING_CODES\b")


class Patched:
    """A program from patched sources: objects of the files that were touched, and the archives of the build."""

    def __init__(self, folder):
        self.root, self.ipw = folder / "tree", folder / "ipw"
        shutil.copytree(SOURCE / "src", self.root / "src")
        self.commands = {Path(entry["file"]).resolve().relative_to(SOURCE): entry
                         for entry in json.loads((BUILD / "compile_commands.json").read_text())
                         if Path(entry["file"]).resolve().is_relative_to(SOURCE / "src")}
        self.compiled = {}

    def edit(self, name, *changes):
        path = self.root / "src" / name
        text = path.read_text()
        for old, new in changes:
            assert old in text, f"{name}: {old}"
            text = text.replace(old, new)
        path.write_text(text)

    def touched(self, *edited):
        """Files that use a definition: by its rows, or by the size of an array in a header that they include."""
        texts = {path.relative_to(self.root): path.read_text() for path in self.root.rglob("src/**/*.[ch]")}
        sized = {path for path, text in texts.items() if path.suffix == ".h" and SIZES.search(text)
                 and path.name != "finding.h"}
        names = [f'#include "{path.relative_to("src")}"' for path in sized]
        return [path for path, text in texts.items() if path.suffix == ".c" and path in self.commands and
                (path in edited or SIZES.search(text) or any(name in text for name in names) or
                 re.search(r'#include "\S*(?:record|finding)\.def"', text))]

    def compile(self, path):
        words = shlex.split(self.commands[path]["command"].replace(f"-I{SOURCE}/src", f"-I{self.root}/src"))
        words = ["-O0" if word.startswith("-O") else word for word in words if not word.startswith("-g")]
        target = self.root / path.with_suffix(".o")
        words[words.index("-o") + 1], words[-1] = str(target), str(self.root / path)
        for option in ("-MF", "-MT"):
            if option in words:
                words[words.index(option) + 1] = str(target) + ".d"
        subprocess.run(words, cwd=BUILD, check=True, timeout=TIMEOUT_S)
        self.compiled[path] = target

    def build(self, *edited):
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self.compile, self.touched(*map(Path, edited))))
        last = subprocess.run(["ninja", "-t", "commands", "ipw"], cwd=BUILD, check=True, capture_output=True,
                              text=True).stdout.splitlines()[-1]
        words = shlex.split(last.split("&&")[1])
        words[words.index("-o") + 1] = str(self.ipw)
        objects = [str(target) for path, target in self.compiled.items() if path.parts[1] != "cli"]
        commands = {path.name + ".o": str(target) for path, target in self.compiled.items() if path.parts[1] == "cli"}
        words = [commands.get(Path(word).name, word) for word in words]
        at = next(i for i, word in enumerate(words) if word.endswith(".a"))
        # Before the archives: their own objects of the same name are then not needed.
        subprocess.run([*words[:at], *objects, *words[at:]], cwd=BUILD, check=True, timeout=TIMEOUT_S)


class OnePlace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (BUILD / "build.ninja").exists():
            raise unittest.SkipTest("the build is not one of ninja")
        folder = tempfile.TemporaryDirectory(prefix="ipw-one-place-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name).resolve()
        cls.runs = cls.folder / "runs"
        for name in RUNS:
            shutil.copytree(SOURCE / "tests/fixtures/runs" / name, cls.runs / name)
        cls.patched = Patched(cls.folder)
        cls.patched.edit("rundir/record.def",
                         ('"energy_per_query", "Energy per query", "J"', f'"energy_per_query", "{LABEL}", "{UNIT}"'),
                         ('LABEL("Energy per query", "Per query", "J"', f'LABEL("{LABEL}", "Per answer", "{UNIT}"'))
        definition = cls.patched.root / "src/core/finding.def"
        definition.write_text(definition.read_text() +
                              f'FINDING(PATCHED, "{CODE}", INVALID, "a row of a test", "remove it")\n')
        cls.patched.edit("analysis/quality.c", ("    check_end(checks);\n", '''    if (checks->table->rows > 1)
        finding_raise(&checks->found, FINDING_PATCHED, "the run has %zu rows", checks->table->rows);
    check_end(checks);
'''))
        cls.patched.build("src/analysis/quality.c")

    def ask(self, *words):
        done = subprocess.run([self.patched.ipw, *map(str, words)], cwd=self.runs, capture_output=True, text=True,
                              timeout=TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_only_few_files_are_compiled(self):
        self.assertLess(len(self.patched.compiled), 40, sorted(self.patched.compiled))

    def test_label_and_unit_in_every_format(self):
        metric = json.loads(self.ask("compare", *RUNS, "--json"))["comparisons"][0]["metrics"]["energy_per_query"]
        self.assertEqual((metric["label"], metric["unit"]), (LABEL, UNIT))
        rows = csv.DictReader(io.StringIO(self.ask("compare", *RUNS, "--format", "csv")))
        self.assertEqual([row["unit"] for row in rows if row["metric"] == "energy_per_query"], [UNIT])
        for form in ("table", "md"):
            line = next(line for line in self.ask("compare", *RUNS, "--format", form).splitlines()
                        if re.search(r"energy\\?_per\\?_query\b", line))
            self.assertIn(UNIT, line, form)

    def test_label_in_page_and_plot(self):
        self.ask("compare", *RUNS, "--format", "html", "-o", self.folder / "compared.html")
        page = (self.folder / "compared.html").read_text()
        self.assertIn(LABEL, page)
        self.assertIn(f'"{UNIT}"', page)
        if not shutil.which("gnuplot"):
            self.skipTest("no gnuplot")
        self.ask("plot", *RUNS, "--plot", "pareto", "--format", "svg", "--output-dir", self.folder / "plots")
        drawn = "".join(path.read_text() for path in (self.folder / "plots").rglob("*.svg"))
        self.assertIn(UNIT, drawn)

    def test_finding_in_every_format(self):
        quality = ("analyze", RUNS[0], "--analysis", "quality")
        found = json.loads(self.ask(*quality, "--json"))[RUNS[0]]["quality"]
        self.assertEqual(found["data"]["findings"][0],
                         {"code": CODE, "severity": "invalid", "text": TEXT, "action": "remove it"})
        self.assertEqual(found["summary"]["findings_invalid"], 1)
        self.assertIn(f"invalid: {TEXT} [{CODE}]", self.ask(*quality))
        self.assertIn(f",data.findings.0.code,{CODE},", self.ask(*quality, "--format", "csv"))
        self.assertIn(TEXT, self.ask(*quality, "--format", "md"))
        self.assertIn(CODE, self.ask("list", "findings"))

    def test_finding_in_report(self):
        page = self.folder / "report.html"
        self.ask("report", RUNS[0], "-o", page)
        self.assertIn(CODE, page.read_text())

    def test_both_in_the_api(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            served = Dashboard("--runs", self.runs, "--no-live", scratch=scratch,
                               program=self.patched.ipw)
            self.addCleanup(served.close)
            runs = served.get("runs")["runs"]
            self.assertIn(CODE, [row["code"] for row in served.get(f"runs/{runs[0]['id']}/report")["runs"][0]
                                 ["analyses"]["quality"]["data"]["findings"]])
            compared = served.get("compare?" + "&".join(f"run={run['id']}" for run in runs))
            metric = compared["comparisons"][0]["metrics"]["energy_per_query"]
            self.assertEqual((metric["label"], metric["unit"]), (LABEL, UNIT))


if __name__ == "__main__":
    unittest.main()
