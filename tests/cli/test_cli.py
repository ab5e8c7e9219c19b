#!/usr/bin/env python3
# test: real time
"""Behavior common to all commands: help, misspelled names, exit codes, colors."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Intel, Machine  # noqa: E402
from program import IPW, MachineTest, SANITIZED, ipw  # noqa: E402

# A valid value by its name in the help text; a new kind of value needs a line here.
VALUES = {"ADDRESS:PORT": "127.0.0.1:1", "LABEL=NAME": "key-0a1b2c3d=me", "MIB": "8",
          "N": "2", "S": "0.5", "HZ": "10", "LIST": "rapl", "FILE": "/dev/null", "NAME": "json",
          "URL": "http://127.0.0.1:1/v1", "K=V": "key=value", "R": "0.5", "W": "2", "TEXT": "a b",
          "DIR": "/tmp", "N[,ACTIVE]": "30B,3B", "WORD": "auto", "NAMES": "latency",
          "BOUND": "latency > +5%", "FORMAT": "csv", "METRIC": "latency", "PATH": "/tmp/x",
          "FILE|NAME": "resnet18", "ID": "h200", "FORMATS": "fp32,fp16", "BATCHES": "1..8", "NUMBERS": "1..8",
          "PHASE": "decode", "SIZE": "224x224", "NAME=N": "batch=8", "MS": "5", "J": "5", "N|P%": "5%", "GB": "8",
          "LANGUAGE": "dot", "OURS=THEIRS": "freq_mhz=f", "COLUMN=VALUE": "gpu=A100", "OBJECTIVE": "ed2p", "TASK": "answer", "WHICH": "lower", "PCTL": "p99", "RULE": "minimax",
          "WORKLOAD": "llama", "PERCENT": "5", "US": "5", "SECONDS": "5", "WATTS": "5", "C": "80", "COLUMNS": "batch",
          "COLUMN": "accuracy", "SETTING": "8", "KNOB": "clock",
          "NAME=VALUES": "threads=1,2", "P": "5", "SWEEP": "/tmp", "MODE": "custom", "MHZ": "510", "PROBES": "3",
          "K": "2", "G": "400", "LIMIT": "30", "OPTION": "qos=high", "I/N": "1/2", "T.K=V": "tool.key=value",
          "COMMAND": "cat", "COMMAND_B": "cat", "OPTION=VALUE": "model=m", "KB": "8", "N|off": "9", "FD": "3", "SIZE": "224", "RATES": "1,2", "SERVER": "vllm",
          "PATTERN": "/jobs/*"}

NULL = ["profile", "--client", "null", "--model", "m"]


def commands():
    text = ipw(None, "--help").stdout
    return re.findall(r"^  (\w[\w-]*) ", text.split("commands:\n")[1].split("\n\n")[0], re.M)


def options(command):
    """(letter or None, name, value or None) of every option in the help of a command."""
    text = ipw(None, command, "--help").stdout.split("\noptions:\n")[1]
    return [(letter or None, name, value or None) for letter, name, value in
            re.findall(r"^  (?:-(\w), |    )--([\w-]+)(?: ([A-Z]\S*))?  +\S", text, re.M)]


class Help(unittest.TestCase):
    def test_help_of_program(self):
        for word in ("--help", "-h", "help"):
            done = ipw(None, word)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("usage: ipw COMMAND", done.stdout)
        self.assertLessEqual({"doctor", "energy", "run"}, set(commands()))
        done = ipw(None)
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: ipw COMMAND", done.stdout)

    def test_help_of_every_command(self):
        for command in commands():
            for word in ("--help", "-h"):
                done = ipw(None, command, word)
                self.assertEqual((done.returncode, done.stderr), (0, ""), command)
                self.assertIn(f"ipw {command} - ", done.stdout)
                self.assertIn(f"usage: ipw {command}", done.stdout)
                for line in done.stdout.splitlines():
                    self.assertLessEqual(len(line), 100, line)

    def test_every_option_is_accepted(self):
        """In each spelling: the first spellings of all options of a command at once, then the second ones, and so on."""
        for command in commands():
            listed = options(command)
            self.assertIn(("h", "help", None), listed)
            shown, given_as = ipw(None, command, "--help").stdout, []
            for letter, name, value in listed:
                given = VALUES[value] if value else None
                spellings = [[f"--{name}", given] if given else [f"--{name}"]]
                if given:
                    spellings.append([f"--{name}={given}"])
                if letter:
                    spellings.append([f"-{letter}", given] if given else [f"-{letter}"])
                    if given:
                        spellings.append([f"-{letter}{given}"])
                if name != "help":
                    given_as.append(spellings)
            for number in range(max(map(len, given_as), default=0))[-1 if SANITIZED else 0:]:
                together = [word for spellings in given_as for word in spellings[min(number, len(spellings) - 1)]]
                done = ipw(None, command, *together, "--help")
                self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", shown), (command, together))
            self.assertEqual(ipw(None, command, "-h").stdout, shown)

    def test_missing_option_value_is_reported(self):
        for command in commands():
            taking = [(name, value) for _, name, value in options(command) if value]
            for name, value in taking[-1:] if SANITIZED else taking:
                done = ipw(None, command, f"--{name}")
                self.assertEqual(done.returncode, 2)
                self.assertIn(f"missing argument: --{name} {value}", done.stderr)


class Names(unittest.TestCase):
    def test_version(self):
        for word in ("--version", "-V", "version"):
            done = ipw(None, word)
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, r"^ipw \d+\.\d+\.\d+\n$")

    def test_misspelled_names_get_suggestions(self):
        for words, hint in ((["docter"], "did you mean 'doctor'"), (["rnu"], "did you mean 'run'"),
                            (["xyzzy"], "see `ipw --help`"), (["--versio"], "unknown option '--versio'"),
                            (["doctor", "--jsn"], "did you mean '--json'"),
                            (["run", "--wait"], "did you mean '--wait-all'"),
                            (["run", "--xyzzyxyzzy"], "see --help"),
                            (["doctor", "-x"], "unknown option '-x'"),
                            (["energy", "--format", "jsno"], "did you mean 'json'"),
                            (["doctor", "--sensors", "nvm"], "did you mean 'nvml'"),
                            (["list", "client"], "did you mean 'clients'"),
                            (["profile", "--client", "opnai", "--model", "m"], "'openai'"),
                            ([*NULL, "--dataset", "gsm8"], "did you mean 'gsm8k'"),
                            ([*NULL, "--grader", "exct"], "did you mean 'exact'"),
                            ([*NULL, "--grader", "exact", "--grader-param", "cas=keep"], "'case'"),
                            ([*NULL, "--grader", "judge", "--eval-model", "j", "--eval-client",
                              "ollma"], "'ollama'"),
                            ([*NULL, "--client-param", "tokns=1"], "did you mean 'tokens'"),
                            ([*NULL, "--parameters", "8X"], "write 8.03B"),
                            ([*NULL, "--param", "temperature"], "--param takes KEY=VALUE, not 'temperature'"),
                            # Names used by other tools, and former names.
                            ([*NULL, "--base-url", "http://h"], "use --client-base-url URL"),
                            ([*NULL, "--max-tokens=9"], "'--max-tokens': use --param max_tokens=N"),
                            ([*NULL, "-n", "9"], "'-n': use --max-queries N"),
                            ([*NULL, "--rate", "9"], "use --request-rate for arrivals per second, --sample-rate"),
                            ([*NULL, "--name", "a/b"], "--name a/b"),
                            ([*NULL, "--max-queries", "0"], "--max-queries must be between 1"),
                            (["estimate", "--devices", "2"], "use --tensor-parallel N"),
                            (["estimate", "--max-energy-mj", "2"], "use --max-energy-j J"),
                            (["list", "plots", "--client", "openai"], "for `ipw list models`"),
                            (["help", "rnu"], "did you mean 'run'")):
            done = ipw(None, *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(hint, done.stderr)
            self.assertTrue(done.stderr.startswith("ipw"), done.stderr)

    def test_sample_rate_option_has_one_name(self):
        """Commands that called it --rate still accept that, but do not list it."""
        for command in ("agent", "demo", "doctor", "energy", "layers", "profile", "proxy", "run", "sweep"):
            listed = ipw(None, command, "--help").stdout
            self.assertIn("--sample-rate HZ", listed, command)
            self.assertNotIn(" --rate", listed, command)
        for command in ("doctor", "energy", "run", "sweep"):
            for name in ("--rate", "--sample-rate"):
                done = ipw(None, command, name, "5000")
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("--sample-rate must be between 0.01 and 1000, not 5000", done.stderr)

    def test_list_runs_without_runs_folder(self):
        with tempfile.TemporaryDirectory(prefix="ipw-empty-") as folder:
            done = subprocess.run([os.path.abspath(IPW), "list", "runs"], cwd=folder, text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no directory 'runs' here: measure with `ipw profile`", done.stderr)

    def test_help_of_help(self):
        for words in (["help", "help"], ["help", "--help"], ["--help", "-h"]):
            self.assertEqual(ipw(None, *words).stdout, ipw(None, "--help").stdout)

    def test_help_of_a_command(self):
        for words in (["run"], ["profile"], ["estimate", "calibrate"]):
            done = ipw(None, "help", *words)
            self.assertEqual(done.stdout, ipw(None, *words, "--help").stdout)
            self.assertTrue(done.stdout.startswith(f"ipw {' '.join(words)} - "), done.stdout)

    def test_list_without_kind_is_a_summary(self):
        text = ipw(None, "list").stdout
        self.assertLess(len(text.splitlines()), 25)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        everything = json.loads(ipw(None, "list", "all", "--json").stdout)
        for kind in ("clients", "datasets", "graders", "plots", "exports"):
            for row in everything[kind]:
                self.assertRegex(text, rf"\b{row['name']}\b")
        self.assertRegex(text, rf"models +{len(everything['models'])}\n")

    def test_shipped_models_are_listed_and_marked(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("tiny-q8_0.gguf", "tiny-f16.gguf", "notes.txt"):
                Path(folder, name).write_bytes(b"GGUF")
            env = {"IPW_MODELS": folder}
            text = ipw(None, "list", "models", env=env).stdout
            self.assertRegex(text, rf"(?m)^  tiny-f16 +shipped: {re.escape(folder)}/tiny-f16\.gguf$")
            self.assertNotIn("notes", text)
            rows = json.loads(ipw(None, "list", "models", "--json", env=env).stdout)["shipped"]
            self.assertEqual([(row["name"], row["available"]) for row in rows], [("tiny-f16", True), ("tiny-q8_0", True)])
            self.assertIn("tiny-f16 tiny-q8_0", ipw(None, "list", env=env).stdout)
            self.assertIn("shipped: ", ipw(None, "list", "models", "tiny-f16", env=env).stdout)
            self.assertEqual(ipw(None, "list", "models", "notes", env=env).returncode, 2)
        shipped = json.loads(ipw(None, "list", "models", "--json").stdout)["shipped"]
        self.assertIn("ipw-1m-f16", [row["name"] for row in shipped])

    def test_list_accepts_names_of_python_ipw(self):
        self.assertEqual(ipw(None, "list", "visualizations").stdout, ipw(None, "list", "plots").stdout)

    def test_summaries_of_lists_are_aligned(self):
        text = ipw(None, "list", "plots").stdout.splitlines()[1:]
        rows = json.loads(ipw(None, "list", "plots", "--json").stdout)["plots"]
        places = {line.index(row["summary"]) for row in rows for line in text
                  if line.split()[0] == row["name"]}
        self.assertEqual(len(places), 1, text)

    def test_list_kind_before_or_after_options(self):
        first, last = ipw(None, "list", "clients", "-v"), ipw(None, "list", "-v", "clients")
        self.assertEqual((first.returncode, first.stdout), (last.returncode, last.stdout))
        self.assertIn("ttft_ms=MS", first.stdout)
        self.assertNotIn("graders", first.stdout)


class Output(MachineTest):
    def test_full_disk_fails(self):
        for words in (["--help"], ["--version"], ["run", "--help"]):
            with open("/dev/full", "w") as full:
                done = ipw(None, *words, stdout=full, stderr=subprocess.PIPE, capture_output=False)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn("No space left", done.stderr)

    def test_closed_pipe_is_not_an_error(self):
        """As of `| head`, which has seen enough."""
        runs = Path(__file__).parent.parent / "fixtures" / "runs"
        run = Path(self.enterContext(tempfile.TemporaryDirectory())) / "run"  # analyze writes into it
        shutil.copytree(sorted(path for path in runs.iterdir() if (path / "records.jsonl").exists())[0], run)
        for words in (["--help"], ["--version"], ["run", "--help"], ["list", "plots"], ["analyze", run],
                      ["export", run, "--to", "csv"], ["export", run, "--to", "jsonl", "-o", "-"]):
            reader, writer = os.pipe()
            os.close(reader)
            done = ipw(None, *words, stdout=writer, stderr=subprocess.PIPE, capture_output=False)
            os.close(writer)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)

    def on_a_terminal(self, machine, *arguments, **env):
        ours, theirs = pty.openpty()
        base = {k: v for k, v in machine.environment().items() if k not in ("NO_COLOR", "TERM")}
        process = subprocess.Popen([IPW, *arguments], env={**base, "TERM": "xterm", **env},
                                   stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
        os.close(theirs)
        text = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            text += piece
        os.close(ours)
        self.assertEqual(process.wait(), 0, text)
        return text.decode()

    def test_colors_on_terminal_unless_disabled(self):
        machine = self.machine(Intel, 40)
        self.assertIn("\033[", self.on_a_terminal(machine, "run", "--", "true"))
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\033[", self.on_a_terminal(machine, "run", "--", "true", **env))
        self.assertIn("\033[", self.on_a_terminal(machine, "run", "--", "true", NO_COLOR=""))
        self.assertIn("\033[32mok", self.on_a_terminal(machine, "doctor"))
        self.assertNotIn("\033[", self.on_a_terminal(machine, "doctor", NO_COLOR="1"))

    def test_progress_on_a_terminal(self):
        machine = self.machine(Intel, 40)
        words = ("run", "-r", "2", "--warmup", "1", "--idle", "0.1")
        text = self.on_a_terminal(machine, *words, "--", "true")
        for line in ("measuring idle power", "warm-up 1 of 1", "run 2 of 2"):
            self.assertIn(line, text)
        self.assertNotIn("warm-up", self.on_a_terminal(machine, *words, "-q", "--", "true"))

    def test_ipw_log_accepts_any_level(self):
        machine = self.machine(Machine)
        for level in ("error", "warning", "note", "debug", "nonsense"):
            done = ipw(machine, "run", "--", "true", env={"IPW_LOG": level})
            self.assertEqual(done.returncode, 0)

    def test_load_command(self):
        done = ipw(None, "load", "--seconds", "0.1", "--threads", "1")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^\d+\.\d+ billion multiply-adds\n$")


if __name__ == "__main__":
    unittest.main()
