#!/usr/bin/env python3
"""The program without its optional libraries: it builds, measures, and says what it lacks."""

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

    def test_a_build_without_them_has_the_files_that_were_linked_here(self):
        """So that nothing else needs to be compiled a second time."""
        done = subprocess.run(["cmake", "-S", SOURCE, "-B", self.folder, "-DIPW_PARTS=OFF", "-DIPW_TESTS=OFF"],
                              capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        commands = json.loads((Path(self.folder) / "compile_commands.json").read_text())
        taken = {Path(command["file"]) for command in commands}
        every = set((SOURCE / "src").rglob("*.c")) - set((SOURCE / "src/energy_monitor").iterdir())  # its own program
        none = {path for path in every if path.stem.endswith("_none")}
        self.assertLessEqual(none, taken)
        self.assertLess({"http_none", "json_read_none"}, {path.stem for path in none})
        replaced = {path.with_name(path.name.replace("_none.c", ".c")) for path in none}
        self.assertFalse(replaced & taken)
        for path in every - taken - replaced - {SOURCE / "src/port/url.c"}:  # FILE_PART.c; URLs are http_none.c's, too
            self.assertIn(path.with_name(path.stem.rpartition("_")[0] + ".c"), replaced)

    def test_it_needs_the_c_library_alone(self):
        asked = subprocess.run(["ldd", BARE], capture_output=True, text=True,
                               check=True).stdout
        for library in ("cjson", "curl", "sqlite", "arrow", "protobuf"):
            self.assertNotIn(library, asked)

    def test_it_measures(self):
        done = self.ipw("run", "--json", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("energy", json.loads(done.stdout))

    def test_it_saves_a_run(self):
        """Without an index and without Arrow, in files that a program with them reads."""
        runs = Path(self.folder) / "saved runs"
        done = self.ipw("run", "--output-dir", runs, "-r", "2", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotRegex(done.stderr, "index|SQLite|cJSON|Arrow")  # what it cannot have is no fault of the run
        run, = runs.iterdir()
        self.assertIn(f"ipw run: saved in {run}\n", done.stderr)
        lines = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
        self.assertEqual([line["kind"] for line in lines], ["run", "query", "query"])
        summary = json.loads((run / "summary.json").read_text())
        self.assertEqual((summary["run_kind"], summary["command"], summary["ipw"]["completed"]), ("run", ["true"], 2))
        whole = subprocess.run([BARE.parents[2] / "ipw", "list", "runs", runs, "--json"], capture_output=True, text=True,
                               timeout=TIMEOUT_S)
        self.assertEqual([row["directory"] for row in json.loads(whole.stdout)["runs"]], [run.name], whole.stderr)

    def test_doctor_says_what_is_missing_and_how_to_install_it(self):
        parts = json.loads(self.ipw("doctor", "--json").stdout)["parts"]
        # The others are looked for at run time, whatever the build.
        parts = [part for part in parts if part["name"] not in ("llama.cpp", "gnuplot")]
        self.assertEqual({part["name"] for part in parts},
                         {"cJSON", "libcurl", "libmicrohttpd", "nanoarrow", "SQLite", "ECharts"})
        for part in parts:
            self.assertFalse(part["available"], part)
            self.assertRegex(part["missing"], "install|setup|set-up", part)
        self.assertIn("missing libcurl", self.ipw("doctor").stdout)

    def test_list_says_it_too(self):
        listed = json.loads(self.ipw("list", "--json").stdout)
        missing = {row["name"]: row["missing"] for kind in ("clients", "datasets", "stores")
                   for row in listed[kind] if not row["available"]}
        for name in ("openai", "ollama", "hub", "hf", "arrow", "sqlite"):
            self.assertIn("built without", missing.get(name) or "", name)

    def test_the_catalog_needs_no_reader_of_json(self):
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

    def test_profile_refuses_with_the_reason(self):
        done = self.ipw("profile", "--client", "null", "--model", "m", "--idle", "0",
                        "--output-dir", self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cJSON", done.stderr)


if __name__ == "__main__":
    if not BARE.exists():
        print("skipped: one program without the libraries is enough; the plain configuration has it")
        sys.exit(77)
    unittest.main()
