#!/usr/bin/env python3
# test: real time, asan
"""Untrusted text (models, datasets, servers, paths, firmware) cannot control the terminal in any command: only
printable text, newlines and the program's own colors are printed."""

import json
import os
import pty
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import rundirs  # noqa: E402
from machines import Machine, Modeled  # noqa: E402
from profiling import MODEL, ScenarioHandler, ProfileTest  # noqa: E402
from program import IPW, ipw  # noqa: E402

# Clears the screen, hides text, sets the title, moves up, reverses the direction; CSI in one character; a line of its own.
EVIL = "m\x1b[2J\x1b[8m\x1b]0;pwned\x07\r\x1b[A\x9b31m\u202egpj\u2066\x7f\nenergy 0 J"
NAME = EVIL.replace("/", "")
COLOR = re.compile(r"\x1b\[(0|1|2|31|32|33|36)m")
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Evil(ScenarioHandler):
    def answer_other(self):
        if self.rest == "/v1/models":
            self.document({"object": "list", "data": [{"id": EVIL, "owned_by": EVIL}]})
            return True
        return super().answer_other()

    def scenario_evil(self):
        self.document({"error": {"message": EVIL, "type": EVIL}}, 400)


def strings(value):
    """All strings in a JSON value."""
    if isinstance(value, (dict, list)):
        inner = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        return [text for one in inner for text in strings(one)]
    return [value] if isinstance(value, str) else []


class HostileText(ProfileTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.service.RequestHandlerClass = Evil

    def assert_safe(self, text, *shown):
        found = CONTROL.search(text)
        self.assertIsNone(found, found and text[max(0, found.start() - 60):found.end() + 60])
        self.assertNotIn("\nenergy 0 J", text)  # no injected lines
        for piece in shown:
            self.assertIn(piece, text)

    def show(self, *words, machine=None, code=0, shown=("\\x1b[2J",)):
        """stdout and stderr of a command, through a pipe and on a terminal."""
        machine = machine or self.on
        done = ipw(machine, *words)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assert_safe(done.stdout + done.stderr, *shown)
        ours, theirs = pty.openpty()
        with subprocess.Popen([IPW, *map(str, words)], env={**machine.environment(), "TERM": "xterm"},
                              stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            pieces = []
            try:
                while piece := os.read(ours, 65536):
                    pieces.append(piece)
            except OSError:  # the other side is closed
                pass
        os.close(ours)
        text = b"".join(pieces).decode().replace("\r\n", "\n").replace("\r\x1b[K", "")  # from the progress bar
        self.assert_safe(COLOR.sub("", text), *shown)
        return done

    def questions(self):
        path = self.on.root / f"data {NAME}.jsonl"
        rows = [{"problem": f"question {EVIL} {i}", "answer": EVIL, "subject": EVIL, EVIL: EVIL} for i in range(3)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def words(self, scenario="normal", model=EVIL, *more):
        return ("profile", "--client", "openai", "--client-base-url", self.service.url(scenario), "--model", model,
                "--dataset", self.questions(), "--idle", "0", "--warmup-queries", "0", "--overwrite",
                "--output-dir", self.on.root / f"runs {NAME}", "--name", f"run {NAME}", *more)

    def run_directory(self):
        return next((self.on.root / f"runs {NAME}").glob("*/summary.json")).parent

    def test_profile_and_commands_that_read_its_run(self):
        self.show(*self.words())
        run = self.run_directory()
        summary = json.loads((run / "summary.json").read_text())
        self.assertEqual(summary["model"], EVIL)  # data is unchanged
        for words in (("analyze", run), ("analyze", run, "-v"), ("compare", run, run), ("report", run),
                      ("plot", run, "--format", "svg"), ("list", "runs", run.parent)):
            with self.subTest(words[0]):
                self.show(*words)
        self.show("compare", run, run, "--format", "md", shown=(r"\\x1b\[2J",))
        for words in (("compare", run, run, "--json"), ("analyze", run, "--json")):
            done = self.show(*words, shown=())  # JSON escapes control characters
            self.assertIn(EVIL, strings(json.loads(done.stdout)))

    def test_server_response_with_escapes(self):
        self.show(*self.words("evil", MODEL), code=1)
        self.show("list", "models", "--client", "openai", "--client-base-url", self.service.url())

    def test_csv_data_is_unchanged(self):
        self.show(*self.words())
        run = self.run_directory()
        done = ipw(self.on, "export", run, "--to", "csv", text=False)
        self.assertIn(EVIL.encode(), done.stdout)

    def test_doctor_and_energy_with_a_hostile_cpu(self):
        with Modeled() as machine:
            info = machine.root / "proc/cpuinfo"
            one_line = EVIL.replace("\n", " ")
            info.write_text(re.sub(r"(model name\s*: ).*", lambda m: m[1] + one_line, info.read_text()))
            machine.put("/etc/os-release", f'NAME="{one_line}"\nVERSION_ID="{one_line}"')
            self.show("doctor", machine=machine)
            self.show("energy", "--once", machine=machine, shown=())
            self.show("run", "--", "true", EVIL, machine=machine)

    def test_error_messages(self):
        run = rundirs.write_run(self.on.root / f"made {NAME}", [rundirs.query(i) for i in range(3)])
        for words, code in ((("analyze", run, "--model", EVIL), 1), (("analyze", run, "--analysis", EVIL), 2),
                            (("compare", run, run.parent / EVIL), 1), (("report", run.parent / NAME), 1),
                            (("estimate", "--model", EVIL), 2), ((EVIL,), 2), (("list", EVIL), 2),
                            (("run", "--", "/nowhere/" + EVIL), 127), (("profile", "--" + EVIL), 2),
                            (("profile", "--client", EVIL, "--model", "m"), 2),
                            (("profile", "--client", "null", "--model", "m", "--dataset", f"/nowhere/{NAME}.csv"), 2),
                            (("export", run, "--to", EVIL), 2), (("plot", run, "--plot", EVIL), 2)):
            with self.subTest(words[0]):
                self.show(*words, code=code)


if __name__ == "__main__":
    unittest.main()
