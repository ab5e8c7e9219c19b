#!/usr/bin/env python3
"""The program without its optional libraries: it builds, measures, and reports what is missing."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
SOURCE = Path(os.environ.get("IPW_SOURCE", Path(__file__).parents[2])).resolve()
BARE = Path(os.environ.get("IPW_BUILD", "build")) / "tests/tools/ipw_bare"
TIMEOUT_S = float(os.environ.get("IPW_TEST_TIMEOUT_S", 170))


class Bare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="ipw-bare-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name

    def ipw(self, *arguments):
        return subprocess.run([BARE, *map(str, arguments)], capture_output=True,
                              text=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL)

    def test_build_without_parts_uses_the_linked_sources(self):
        """Verifies that the program linked for these tests equals a build with -DIPW_PARTS=OFF."""
        done = subprocess.run(["cmake", "-S", SOURCE, "-B", self.folder, "-DIPW_PARTS=OFF", "-DIPW_TESTS=OFF"],
                              capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        commands = json.loads((Path(self.folder) / "compile_commands.json").read_text())
        taken = {Path(command["file"]) for command in commands}
        # the program itself
        every = set((SOURCE / "src").rglob("*.c")) - set((SOURCE / "src/energy_monitor").iterdir())
        none = {path for path in every if path.stem.endswith("_none")}
        self.assertLessEqual(none, taken)
        self.assertLess({"http_none", "jv_none"}, {path.stem for path in none})
        replaced = {path.with_name(path.name.replace("_none.c", ".c")) for path in none}
        self.assertFalse(replaced & taken)
        # FILE_PART.c; http_none.c also has the URLs
        for path in every - taken - replaced - {SOURCE / "src/port/url.c"}:
            self.assertIn(path.with_name(path.stem.rpartition("_")[0] + ".c"), replaced)

    def test_links_no_optional_library(self):
        asked = subprocess.run(["ldd", BARE], capture_output=True, text=True,
                               check=True).stdout
        for library in ("cjson", "curl", "sqlite", "arrow", "protobuf"):
            self.assertNotIn(library, asked)

    def test_run_measures(self):
        done = self.ipw("run", "--json", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("energy", json.loads(done.stdout))

    def test_run_is_saved(self):
        """Without index and Arrow files, but readable by the full program."""
        runs = Path(self.folder) / "saved runs"
        done = self.ipw("run", "--output-dir", runs, "-r", "2", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotRegex(done.stderr, "index|SQLite|cJSON|Arrow")  # missing libraries are not a failure of the run
        run, = runs.iterdir()
        self.assertIn(f"ipw run: saved in {run}\n", done.stderr)
        lines = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
        self.assertEqual([line["kind"] for line in lines], ["run", "query", "query"])
        summary = json.loads((run / "summary.json").read_text())
        self.assertEqual((summary["run_kind"], summary["command"], summary["ipw"]["completed"]), ("run", ["true"], 2))
        whole = subprocess.run([BARE.parents[2] / "ipw", "list", "runs", runs, "--json"], capture_output=True, text=True,
                               timeout=TIMEOUT_S)
        self.assertEqual([row["directory"] for row in json.loads(whole.stdout)["runs"]], [run.name], whole.stderr)

    def test_doctor_reports_missing_parts_and_how_to_install_them(self):
        parts = json.loads(self.ipw("doctor", "--json").stdout)["parts"]
        # The others are found at run time, independent of the build.
        parts = [part for part in parts if part["name"] not in ("llama.cpp", "gnuplot")]
        self.assertEqual({part["name"] for part in parts},
                         {"cJSON", "libcurl", "nanoarrow", "SQLite", "ECharts"})
        for part in parts:
            self.assertFalse(part["available"], part)
            self.assertRegex(part["missing"], "install|setup|set-up", part)
        self.assertIn("missing libcurl", self.ipw("doctor").stdout)

    def test_list_reports_missing_parts(self):
        listed = json.loads(self.ipw("list", "--json").stdout)
        missing = {row["name"]: row["missing"] for kind in ("clients", "datasets", "stores")
                   for row in listed[kind] if not row["available"]}
        for name in ("openai", "ollama", "hub", "hf", "arrow", "sqlite"):
            self.assertIn("built without", missing.get(name) or "", name)

    def test_hardware_catalog_needs_no_json_parser(self):
        done = self.ipw("list", "hardware")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?m)^  h200 .* 989\.4 ")
        self.assertIn("h200", [row["id"] for row in json.loads(
            self.ipw("list", "hardware", "--json").stdout)["hardware"]])
        done = self.ipw("estimate", "--model", "llama-3.1-8b", "--hardware", "h200", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(json.loads(done.stdout)["energy_j"]["total"], 0)
        entry = SOURCE / "data/hardware/h200.json"
        done = self.ipw("estimate", "--model", "llama-3.1-8b", "--hardware-file", entry)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("built without cJSON", done.stderr)

    def test_profile_fails_with_reason(self):
        done = self.ipw("profile", "--client", "null", "--model", "m", "--idle", "0",
                        "--output-dir", self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cJSON", done.stderr)


if __name__ == "__main__":
    if not BARE.exists():
        print("skipped: one program without the libraries is enough; the plain configuration has it")
        sys.exit(77)
    unittest.main()
