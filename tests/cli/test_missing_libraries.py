#!/usr/bin/env python3
"""The program on a machine without the libraries that it opens at run time: it measures, saves runs, and says what is
missing and how to install it.  An empty file of a library's name, found first, hides the library."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import IPW  # noqa: E402

SOURCE = Path(os.environ.get("IPW_SOURCE", Path(__file__).parents[2])).resolve()
TIMEOUT_S = float(os.environ.get("IPW_TEST_TIMEOUT_S", 170))
HIDDEN = {"libcurl": ("libcurl.so.4", "libcurl-gnutls.so.4"), "SQLite": ("libsqlite3.so.0",),
          "libpng and libjpeg-turbo": ("libpng16.so.16", "libturbojpeg.so.0")}
OTHERS = ("libpq.so.5", "libxgboost.so.0", "libxgboost.so")


class Missing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="ipw-missing-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        hidden = cls.folder / "hidden"
        hidden.mkdir()
        for name in (*(name for names in HIDDEN.values() for name in names), *OTHERS):
            (hidden / name).touch()
        cls.environment = {**os.environ, "LD_LIBRARY_PATH": str(hidden)}

    def ipw(self, *arguments):
        return subprocess.run([IPW, *map(str, arguments)], capture_output=True, text=True, timeout=TIMEOUT_S,
                              stdin=subprocess.DEVNULL, env=self.environment)

    def test_links_no_library_that_a_machine_may_lack(self):
        asked = subprocess.run(["ldd", IPW], capture_output=True, text=True, check=True).stdout
        for library in ("curl", "ssl", "sqlite", "arrow", "protobuf", "libpq", "xgboost", "png", "jpeg"):
            self.assertNotIn(library, asked)

    def test_run_measures(self):
        done = self.ipw("run", "--json", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("energy", json.loads(done.stdout))

    def test_run_is_saved_without_an_index(self):
        runs = self.folder / "saved runs"
        done = self.ipw("run", "--output-dir", runs, "-r", "2", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotRegex(done.stderr, "index|SQLite")  # missing libraries are not a failure of the run
        run, = runs.iterdir()
        self.assertIn(f"ipw run: saved in {run}\n", done.stderr)
        summary = json.loads((run / "summary.json").read_text())
        self.assertEqual((summary["run_kind"], summary["command"], summary["ipw"]["completed"]), ("run", ["true"], 2))
        listed = self.ipw("list", "runs", runs, "--json")
        self.assertEqual([row["directory"] for row in json.loads(listed.stdout)["runs"]], [run.name], listed.stderr)

    def test_doctor_says_what_is_missing_and_how_to_install_it(self):
        parts = {part["name"]: part for part in json.loads(self.ipw("doctor", "--json").stdout)["parts"]}
        for name in HIDDEN:
            self.assertFalse(parts[name]["available"], name)
            self.assertIn("apt install", parts[name]["missing"])
        for name in ("cJSON", "nanoarrow", "ECharts"):  # part of the program
            self.assertTrue(parts[name]["available"], name)
        self.assertIn("missing libcurl", self.ipw("doctor").stdout)

    def test_list_says_what_is_missing(self):
        listed = json.loads(self.ipw("list", "--json").stdout)
        missing = {row["name"]: row["missing"] for kind in ("clients", "datasets", "stores", "exports")
                   for row in listed[kind] if not row["available"]}
        for name in ("openai", "ollama", "hub", "sqlite"):
            self.assertIn("apt install", missing.get(name) or "", name)

    def test_commands_that_need_one_fail_with_the_reason(self):
        run = SOURCE / "tests/fixtures/runs/gpu-repeats"
        for words, reason in (
                (("profile", "--client", "openai", "--client-base-url", "http://127.0.0.1:9", "--model", "m", "--idle", "0",
                  "--output-dir", self.folder), "libcurl"),
                (("proxy", "--upstream", "http://127.0.0.1:9", "--output-dir", self.folder), "apt install"),
                (("export", run, "--to", "sqlite", "-o", self.folder / "x.sqlite"), "SQLite"),
                (("db", "init", "--db", f"sqlite://{self.folder}/x.sqlite"), "SQLite"),
                (("db", "init", "--db", "postgresql://127.0.0.1:9/x"), "libpq")):
            with self.subTest(words[0], words=words):
                done = self.ipw(*words)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(reason, done.stderr)
                self.assertIn("apt install", done.stderr)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
