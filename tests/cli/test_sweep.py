#!/usr/bin/env python3
# test: real time, asan
"""`ipw sweep`: every setting once, with the given values, in an order determined by the seed; failures are recorded; a
killed sweep can be resumed."""
import csv
import fcntl
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from machines import FAKE, ControllableGpu, Intel, Nvidia, Ramp  # noqa: E402
from program import IPW, TIMEOUT_S, Terminal, ipw, main_parallel, python, wait_until  # noqa: E402
from rundirs import texts_of  # noqa: E402

SOURCE = Path(os.environ.get("IPW_SOURCE", Path(__file__).parents[2])).resolve()
CLOCKS = Path(os.environ.get("IPW_SHARED", SOURCE.parent / "shared")) / "data/dvfs/supported_clocks.csv"

# Appends its arguments as a line of JSON, after which a test may interrupt it.  Python discards a KeyboardInterrupt that
# is raised in the destructor of a file or while it frees a module's import lock: files are closed explicitly, and nothing
# is imported later.
NOTE = """import json, os, sys, time
with open(sys.argv[1], 'a') as notes: notes.write(json.dumps(sys.argv[2:]) + '\\n')"""


class SweepTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-sweep-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.notes = self.root / "notes"

    def sweep(self, *arguments, command=None, code=0, machine=None, env=None):
        command = command or python(NOTE, self.notes, "{a}")
        done = ipw(machine, "sweep", "--output-dir", self.root / "runs", *arguments, "--", *command, env=env)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def recorded_arguments(self):
        return [json.loads(line) for line in self.notes.read_text().splitlines()]

    def directory(self):
        found = list((self.root / "runs").glob("sweep_*"))
        self.assertEqual(len(found), 1)
        return found[0]

    def attempts(self):
        lines = [json.loads(line) for line in (self.directory() / "records.jsonl").read_text().splitlines()]
        return [line for line in lines if line["kind"] == "point"]


class Points(SweepTest):
    def test_grid_has_every_combination_once(self):
        self.sweep("--knob", "a=1,2,5-9:2", "--knob", "b=x,y", "-q", command=python(NOTE, self.notes, "{a}", "{b}"))
        self.assertEqual(sorted(self.recorded_arguments()), sorted([a, b] for a in "12579" for b in "xy"))

    def test_paired_knobs_vary_together(self):
        self.sweep("--knob", "a=1,2", "--knob", "b=x,y", "--paired", command=python(NOTE, self.notes, "{a}{b}"))
        self.assertEqual(sorted(self.recorded_arguments()), [["1x"], ["2y"]])
        done = self.sweep("--knob", "a=1,2", "--knob", "b=x", "--paired", code=2)
        self.assertIn("a has 2 values and b 1", done.stderr)

    def test_option_after_command_is_rejected(self):
        """`--dry-run` there would be an argument of the command, and the sweep would run."""
        for words in (["true", "{a}", "--dry-run"], ["true", "{a}", "--repeat=3"]):
            done = ipw(None, "sweep", "--output-dir", self.root / "runs", "--knob", "a=1", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{words[-1].split('=')[0]} after 'true'", done.stderr)
        self.assertFalse((self.root / "runs").exists())
        self.sweep("--knob", "a=1", command=python(NOTE, self.notes, "{a}", "--dry-run"))
        self.assertEqual(self.recorded_arguments(), [["1", "--dry-run"]])

    def test_points_directory_is_not_a_run(self):
        self.sweep("--knob", "a=1")
        done = ipw(None, "analyze", self.directory() / "points")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the points of a sweep, which is the directory above", done.stderr)

    def test_rejected_slurm_job_names_the_sweep(self):
        (self.root / "sbatch").write_text("#!/bin/sh\necho 'no such partition' >&2\nexit 1\n")
        (self.root / "sbatch").chmod(0o755)
        done = ipw(None, "sweep", "--output-dir", self.root / "runs", "--knob", "a=1", "--slurm", "--", "true", "{a}",
                   env={"PATH": f"{self.root}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such partition", done.stderr)
        self.assertIn(str(self.directory()), done.stderr)

    def test_plan_in_every_format_has_the_same_attempts(self):
        words = ["--knob", "a=1,2", "--knob", "b=x y,z", "--repeat", 2, "--seed", 3, "--dry-run"]
        command = ["echo", "{a}", "{b}"]
        shown = self.sweep(*words, command=command).stdout.splitlines()[1:-1]
        plan = json.loads(self.sweep(*words, "--json", command=command).stdout)
        by_number = {setting["number"]: setting for setting in plan["settings"]}
        self.assertEqual([f"{round['repeat']} {by_number[number]['setting']}: {by_number[number]['command']}"
                          for round in plan["rounds"] for number in round["settings"]],
                         [" ".join(line.split(None, 1)) for line in shown])
        self.assertEqual([(setting["values"], setting["command"]) for setting in plan["settings"]],
                         [(["1", "x y"], "echo 1 'x y'"), (["1", "z"], "echo 1 z"),
                          (["2", "x y"], "echo 2 'x y'"), (["2", "z"], "echo 2 z")])
        self.assertEqual((plan["attempts"], plan["seed"], plan["sets_gpu"]), (8, 3, False))
        self.assertEqual(len(list(csv.DictReader(self.sweep(*words, "--format", "csv", command=command).stdout.splitlines()))), 4)
        table = self.sweep(*words, "--format", "md", command=command).stdout
        self.assertEqual([" ".join(line.strip("|").split("|")[0:2]).split() for line in table.splitlines()[7:]],
                         [line.split(":")[0].split() for line in shown])
        self.assertFalse((self.root / "runs").exists())

    def test_values_are_passed_to_command_unchanged(self):
        values = ["two words", "it's", '"$(touch oops)"', "*", "{b}", "-x", "a\\b"]
        self.sweep("--knob", "a=" + ",".join(values), command=python(NOTE, self.notes, "<{a}>", "{b} {a", "{}"))
        self.assertEqual(sorted(self.recorded_arguments()), sorted([f"<{value}>", "{b} {a", "{}"] for value in values))

    def test_order_is_determined_by_seed(self):
        shown = [self.sweep("--knob", "a=1-8:1", "--seed", seed, "--dry-run").stdout for seed in (5, 5, 6)]
        self.assertEqual(shown[0], shown[1])
        self.assertNotEqual(shown[0].splitlines()[1:], shown[2].splitlines()[1:])
        self.assertFalse((self.root / "runs").exists())  # nothing was run
        done = self.sweep("--knob", "a=1-8:1", "--seed", 5)
        self.assertEqual([attempt["settings"]["a"] for attempt in self.attempts()],
                         re.findall(r"^  1  a=(\d+):", shown[0], re.M))
        self.assertNotEqual(self.recorded_arguments(), sorted(self.recorded_arguments(), key=lambda words: int(words[0])))
        self.assertIn("seed 5", done.stderr)

    def test_repeats_run_in_rounds(self):
        done = self.sweep("--knob", "a=1,2,3", "--repeat", 2)
        self.assertRegex(done.stderr, r"; 1 left, about \d+ s\n")  # rounded to its precision
        self.assertEqual([attempt["repeat"] for attempt in self.attempts()], [1, 1, 1, 2, 2, 2])

    def expected(self, *words, command=None):
        plan = self.sweep(*words, "--dry-run", command=command).stdout.splitlines()[-1]
        found = re.fullmatch(r"expected time: ([\d.]+) (m?s)(?:, by (.*))?", plan)
        return (float(found[1]) / (1000 if found[2] == "ms" else 1), found[3]) if found else plan

    def test_dry_run_estimates_time_from_earlier_sweep(self):
        command = ["sh", "-c", "sleep 0.{a}"]
        self.assertIn("unknown until the first attempt", self.expected("--knob", "a=1,3", command=command))
        self.sweep("--knob", "a=1,3", command=command)
        took = {attempt["settings"]["a"]: attempt["wall_s"] for attempt in self.attempts()}
        earlier = str(self.directory())
        for values, wanted in (("1", 2 * took["1"]), ("1,3", 2 * sum(took.values())), ("2", sum(took.values()))):
            seconds, source = self.expected("--knob", f"a={values}", "--repeat", 2, command=command)
            self.assertEqual(source, earlier)
            self.assertAlmostEqual(seconds, wanted, delta=0.01 * wanted)
        seconds, _ = self.expected("--knob", "a=1", "--cooldown-s", 5, "--repeat", 2, command=command)
        self.assertAlmostEqual(seconds, 10 + 2 * took["1"], delta=0.1)
        self.assertIn("unknown", self.expected("--knob", "a=1", command=["sh", "-c", "sleep 0.{a}; :"]))
        self.assertIn("unknown", self.expected("--knob", "a=1", "--idle", 1, command=command))

    def test_dry_run_estimates_time_from_runs_and_profiles(self):
        ran = ipw(None, "run", "--json", "--output-dir", self.root / "runs", "-r", 2, "--", "sleep", "0.2")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        took = json.loads(ran.stdout)["wall_s"]["mean"]
        seconds, source = self.expected("--knob", "a=0.2,0.3", command=["sleep", "{a}"])
        self.assertIn("run_", source)
        self.assertAlmostEqual(seconds, 2 * took, delta=0.01)
        self.assertIn("unknown", self.expected("--knob", "a=0.3", command=["sleep", "{a}"]))
        profile = ["--client", "null", "--client-param", "ttft_ms=20", "--model", "m", "--dataset", "builtin"]
        ran = ipw(None, "profile", *profile, "--max-queries", 10, "--idle", 0, "--output-dir", self.root / "runs")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        seconds, source = self.expected("--profile", "--knob", "a=1,2",
                                        command=[*profile, "--max-queries", "20", "--concurrency", "{a}"])
        self.assertIn("profile_", source)
        self.assertGreater(seconds, 2 * 20 * 0.02)

    def test_long_dry_run_can_be_interrupted(self):
        process = subprocess.Popen([IPW, "sweep", "--knob", "a=1-2000:1", "--repeat", "1000", "--dry-run", "--", "true",
                                    "{a}"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        time.sleep(0.3)
        process.terminate()
        self.assertEqual(process.wait(TIMEOUT_S), -signal.SIGTERM)

    def test_list_of_points(self):
        points = self.root / "points.csv"
        points.write_text('a,b\n1,"x, y"\n2,z\n')
        self.sweep("--list", points, command=python(NOTE, self.notes, "{a}", "{b}"))
        self.assertEqual(sorted(self.recorded_arguments()), [["1", "x, y"], ["2", "z"]])
        for text, said in (("", "empty"), ("a\n", "has no settings"), ("a,b\n1,2\n1,2\n", "lines 2 and 3 are the same setting"),
                           ("a,a\n1,2\n", "more than once"), ("a b\n1\n", "not a knob name"), ("a,b\n1\n", "line 2")):
            points.write_text(text)
            self.assertIn(said, self.sweep("--list", points, code=2).stderr)
        self.assertIn("omit --knob", self.sweep("--list", points, "--knob", "a=1", code=2).stderr)
        self.sweep("--list", self.root / "none.csv", code=1)

    def test_rejects_invalid_points(self):
        for words, said in ((["--knob", "a=1"], "no {a}"), (["--knob", "a"], "NAME=VALUES"),
                            (["--knob", "a=1,1"], "more than once"), (["--knob", "a=9-1:1"], "LOW-HIGH:STEP"),
                            (["--knob", "a=1,,2"], "empty"), (["--knob", "a=" + 1024 * "x"], "more than 1023 bytes"),
                            ([], "missing --knob"), (["--knob", "a.b=1"], "letters, digits, - and _"),
                            (["--knob", "a=1", "--knob", "a=2"], "more than once"),
                            (["--knob", "a=1-9999999:1"], "more than"),
                            (["--knob", "a=1", "--probes", 3], "--probes is for --mode probe"),
                            (["--knob", "a=1", "--max-repeats", 3], "--max-repeats needs --until-pct"),
                            (["--knob", "a=1", "--repeat", 5, "--until-pct", 1, "--max-repeats", 2], "less than"),
                            (["--restore", "--knob", "a=1"], "omit --knob"),
                            (["--profile", "--knob", "a=1"], "use --repeat N of the sweep")):
            command = ["--model", "{a}", "--repeat-runs=3"] if "--profile" in words else ["true"]
            self.assertIn(said, self.sweep(*words, command=command, code=2).stderr)
        self.assertEqual(ipw(None, "sweep", "--knob", "a=1").returncode, 2)
        done = self.sweep("--knob", "a=1", command=["true", "{0}", "{b}"], code=2)
        self.assertIn("knob 'a' is not used: the command has no {a}, but {b}\n", done.stderr)

    def test_range_without_step_is_noted(self):
        """It is a value, such as a list of CPUs."""
        for knob, noted in (("a=1-3,x", "--knob a: 1-3 is one value; a range has a step: 1-3:1\n"), ("a=1-3:1", ""),
                            ("a=3-1,a-b,-3,--", "")):
            done = self.sweep("--knob", knob, "--dry-run")
            self.assertEqual(done.stderr, f"ipw sweep: {noted}" if noted else "")
        self.assertEqual(self.sweep("--knob", "a=1-3", "--dry-run", "-q").stderr, "")

    def test_wrong_directories_to_resume(self):
        self.sweep("--knob", "a=1")
        run = next(self.directory().glob("points/*/run_*"))
        for directory, said in ((self.root, f"{self.root}: not a sweep directory"),
                                (self.root / "none", f"{self.root / 'none'}: no such directory"),
                                (run, f"not a sweep, but one run of it: give {self.directory()}\n")):
            done = ipw(None, "sweep", "--resume", directory)
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)


class Results(SweepTest):
    def test_failure_is_recorded_and_sweep_continues(self):
        done = self.sweep("--knob", "a=0,7,0.5", "--json", command=["sh", "-c", "echo here {a}; exit {a}"], code=1)
        codes = {attempt["settings"]["a"]: attempt["exit_code"] for attempt in self.attempts()}
        self.assertEqual((codes["0"], codes["7"]), (0, 7))
        self.assertNotEqual(codes["0.5"], 0)
        result = json.loads(done.stdout)
        self.assertEqual(result["directory"], str(self.directory()))
        self.assertEqual((result["sweep"]["summary"]["attempts"], result["sweep"]["summary"]["failed"]), (3, 2))
        logs = [path.read_text() for path in self.directory().glob("points/*/output.log")]
        self.assertEqual(len([text for text in logs if "here 7" in text]), 1)

    def test_table_agrees_with_runs(self):
        self.sweep("--knob", "a=0.02,0.1", "--repeat", 2, command=["sleep", "{a}"])
        done = ipw(None, "analyze", self.directory(), "--analysis", "sweep", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)[str(self.directory())]["sweep"]
        for setting in result["data"]["settings"]:
            mine = [a for a in self.attempts() if a["settings"] == setting["values"]]
            runs = [json.loads((self.directory() / a["run"] / "summary.json").read_text())["ipw"] for a in mine]
            self.assertEqual(setting["repeats"], 2)
            times = [a["seconds"] for a in mine]
            self.assertAlmostEqual(setting["seconds"], sum(times) / 2)
            self.assertAlmostEqual(setting["seconds_error"], abs(times[0] - times[1]) / 2)
            if runs[0]["energy"]["joules"] is not None:
                joules = sum(run["energy"]["joules"] for run in runs) / 2
                self.assertAlmostEqual(setting["joules"], joules)
                self.assertAlmostEqual(setting["edp"], joules * setting["seconds"])
        # The faster one is determined by the measured times: on a busy machine not always the shorter sleep.
        fastest = min(result["data"]["settings"], key=lambda setting: setting["seconds"])
        best = {row["objective"]: row["setting"] for row in result["data"]["best"]}
        self.assertEqual(best["least time"], f"a={fastest['values']['a']}")
        self.assertTrue((self.directory() / "analysis" / "sweep.json").exists())

    def test_energies_have_method_and_coverage(self):
        """For a sweep measured by a counter, and after repeats that could only be estimated."""
        with Intel(40) as machine:
            machine.put("/proc/stat", f"{FAKE}cpu  {Ramp(100000, 50, width=9)} 0 0 {Ramp(100000, 50, width=9)} 0 0 0 0 0 0")
            self.sweep("--knob", "a=0.3,0.31", command=["sleep", "{a}"], machine=machine)
            summary = json.loads((self.directory() / "summary.json").read_text())["ipw"]["energy"]
            self.assertEqual((summary["method"], summary["note"]), ("counter", None))
            self.assertIn("rapl", summary["source"])
            self.assertGreater(summary["coverage"], 0.5)
            for attempt in self.attempts():
                run = json.loads((self.directory() / attempt["run"] / "summary.json").read_text())["ipw"]["energy"]
                for key in ("method", "source", "coverage"):
                    self.assertEqual(attempt[key], run[key])
            done = ipw(None, "analyze", self.directory())
            self.assertRegex(done.stdout, r"method +source +coverage[\s\S]* counter +rapl")
            self.assertNotIn("different methods", done.stdout)
            shutil.rmtree(machine.root / "sys/class/powercap")
            done = ipw(machine, "sweep", "--resume", self.directory(), "--repeat", 2)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(attempt["method"] for attempt in self.attempts()), ["counter"] * 2 + ["estimated"] * 2)
            summary = json.loads((self.directory() / "summary.json").read_text())["ipw"]["energy"]
            self.assertEqual(summary["method"], "estimated")  # the weakest method
            self.assertIn("different methods", summary["note"])
            self.assertIn("different methods (counter + estimated)", " ".join(done.stdout.split()))
            self.assertRegex(done.stdout, r" counter \+ estimated +rapl:0 package \+ cpu_model power ")

    def test_other_commands_read_sweep(self):
        self.sweep("--knob", "a=0,1", command=["sh", "-c", "exit {a}"], code=1)
        done = ipw(None, "export", self.directory(), "--to", "csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual(sorted((row["a"], row["exit_code"], row["left_out"] == "failed") for row in rows),
                         [("0", "0", False), ("1", "1", True)])
        listed = json.loads(ipw(None, "list", "runs", self.root / "runs", "--json").stdout)["runs"]
        self.assertEqual([(run["kind"], run["queries"], run["failed"]) for run in listed], [("sweep", 2, 1)])
        done = ipw(None, "analyze", self.root / "runs", "--json")  # a folder that contains a sweep
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len([key for key in json.loads(done.stdout) if "/points/" in key]), 1)

    def test_sweeps_in_a_folder_are_analyzed_as_sweeps(self):
        for knob in ("a", "b"):
            self.sweep("--knob", f"{knob}=0.02,0.1", "--repeat", 2, command=["sleep", f"{{{knob}}}"])
        done = ipw(None, "analyze", self.root / "runs")
        self.assertEqual(done.returncode, 0, done.stderr)
        for sweep in (self.root / "runs").glob("sweep_*"):
            self.assertIn(sweep.name, done.stdout)
        self.assertEqual(done.stdout.count("   best\n"), 2, done.stdout)
        self.assertNotIn("cheapest", done.stdout)  # repeats of a setting are not compared with each other
        result = json.loads(ipw(None, "analyze", self.root / "runs", "--json").stdout)
        self.assertEqual(len([key for key in result if "sweep" in result[key]]), 2)
        self.assertNotIn("across", result)

    def test_duplicate_run_is_analyzed_once(self):
        self.sweep("--knob", "a=0,00", command=["sh", "-c", "exit {a}"])
        first, second = sorted(self.directory().glob("points/*/run_*"))
        done = ipw(None, "analyze", first, first, second, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([key for key in json.loads(done.stdout) if key != "across"], [str(first), str(second)])

    def test_points_may_be_profiles(self):
        self.sweep("--profile", "--knob", "a=1,2", command=["--client", "null", "--model", "m", "--dataset", "builtin",
                                                            "--max-queries", "3", "--concurrency", "{a}"])
        self.assertEqual([attempt["exit_code"] for attempt in self.attempts()], [0, 0])
        for attempt in self.attempts():
            summary = json.loads((self.directory() / attempt["run"] / "summary.json").read_text())
            self.assertEqual(str(summary["profiler_config"]["max_concurrency"]), attempt["settings"]["a"])
            self.assertEqual(summary["run_kind"], "profile")

    def test_grader_scores_are_the_quality(self):
        machine = Nvidia("power 0 constant 300")
        self.addCleanup(machine.close)
        data = self.root / "data.jsonl"
        data.write_text(json.dumps({"question": "What did the cat do?", "answer": "the cat sat on the mat"}) + "\n")
        answers = {"the cat sat on the mat": {"rouge_1": 1, "rouge_2": 1, "rouge_l": 1},
                   "the cat sat": {"rouge_1": 2 * 3 / 9, "rouge_2": 2 * 2 / 7, "rouge_l": 2 * 3 / 9}}
        for grader in ("rouge_1", "rouge_2", "rouge_l", "bleu"):
            self.setUp()
            listed = self.root / "points.csv"
            listed.write_text("a\n" + "\n".join(answers) + "\n")
            self.sweep("--profile", "--list", listed, "--repeat", 2, "-q", machine=machine,
                       command=["--client", "null", "--model", "m", "--dataset", data, "--idle", "0", "--grader", grader,
                                "--client-param", "answer={a}"])
            for answer, scores in answers.items():
                done = ipw(None, "optimize", self.directory(), "--quality", "score", "--baseline", f"a={answer}", "--json")
                quality = json.loads(done.stdout)["baseline"]["quality"]
                if grader == "bleu":
                    self.assertEqual(quality > 0.99, answer == "the cat sat on the mat", quality)
                else:
                    self.assertAlmostEqual(quality, scores[grader], places=6)
            done = ipw(None, "optimize", self.directory(), "--quality", "score", "--min-quality", "90", "--json")
            report = json.loads(done.stdout)
            self.assertAlmostEqual(report["baseline"]["quality"], 1, places=6)
            self.assertIn(report["recommended"] and report["recommended"]["setting"], (None, "a=the cat sat on the mat"))

    def test_latency_of_profiles_is_optimized(self):
        machine = Nvidia("power 0 constant 300")
        self.addCleanup(machine.close)
        self.sweep("--profile", "--knob", "a=1,4000", "-q", machine=machine,
                   command=["--client", "null", "--model", "m", "--dataset", "builtin", "--max-queries", "5", "--idle", "0",
                            "--concurrency", "5", "--warmup-queries", "0", "--client-param", "ttft_ms={a}", "--client-param", "tokens=3"])
        for percentile, setting in (("p50", "a=1"), ("mean", "a=1"), ("p99", None)):
            done = ipw(None, "optimize", self.directory(), "--slo-ttft-ms", "3000", "--slo-percentile", percentile,
                       "--baseline", "a=4000", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(done.stdout)["recommended"]
            self.assertEqual(found and found["setting"], setting)
            if found:
                self.assertLess(found["latency_s"]["ttft"]["value"], 3)


class ControlTest(SweepTest):
    # Records the GPU settings while the command runs.
    SEE = python("import os, sys; open(sys.argv[1], 'a').write(open(os.environ['IPW_FAKE_NVML_STATE']).read())")

    def machine(self, *script):
        machine = ControllableGpu(*script)
        self.addCleanup(machine.close)
        return machine

    def recorded_settings(self):
        return sorted(self.notes.read_text().splitlines())


class Control(ControlTest):
    def test_points_have_their_settings_and_gpu_is_restored(self):
        machine = self.machine()
        done = self.sweep("--control", "--knob", "gpu-clock=default,510,1005", "--knob", "power-limit=300",
                          command=[*self.SEE, self.notes], machine=machine)
        self.assertEqual(self.recorded_settings(), [f"0 graphics {mhz} {mhz} memory 0 0 limit 300000" for mhz in (0, 1005, 510)])
        self.assertEqual(machine.settings(), "0 graphics 0 0 memory 0 0 limit 700000")
        self.assertIn("as root", done.stderr)
        self.assertFalse(list((machine.root / "run/ipw").glob("*.state")))
        self.assertEqual([attempt["exit_code"] for attempt in self.attempts()], [0, 0, 0])

    def test_without_permission_measures_only(self):
        for verb, code, said in (("Reset", 4, "needs root"), ("Reset", 3, "not supported"), ("Set", 4, "needs root")):
            with self.subTest(verb=verb, code=code):
                machine = self.machine(f"value throttle 0 0\nfail nvmlDevice{verb}GpuLockedClocks 0 {code}")
                done = self.sweep("--control", "--knob", "gpu-clock=510,1005", "--knob", "a=1,2",
                                  command=python(NOTE, self.notes, "{a}"), machine=machine)
                self.assertIn(said, done.stderr)
                self.assertIn("MEASURING ONLY", done.stderr)
                self.assertEqual(sorted(self.recorded_arguments()), [["1"], ["2"]])
                self.assertEqual({attempt["settings"]["gpu-clock"] for attempt in self.attempts()}, {"default"})
                self.assertEqual(machine.settings(), ControllableGpu.FREE)
                header = json.loads((self.directory() / "records.jsonl").read_text().splitlines()[0])
                self.assertIn(said, header["settings"]["uncontrolled"])
            self.setUp()

    def test_missing_devices_are_rejected(self):
        for words in (["--control", "--knob", "gpu-clock=510"], ["--knob", "a=1"]):
            for devices in ("3", "0,3", "GPU-x"):
                with self.subTest(words=words, devices=devices):
                    done = self.sweep("--devices", devices, *words, command=["true", "{a}"], machine=self.machine(), code=2)
                    self.assertIn("available: 0", done.stderr)
                    self.assertFalse((self.root / "runs").exists())
        done = self.sweep("--devices", 0, "--knob", "a=1", command=["true", "{a}"], machine=self.machine("devices 0"), code=2)
        self.assertIn("no readable GPU", done.stderr)

    def test_gpu_settings_name_the_runs(self):
        self.sweep("--control", "--knob", "gpu-clock=510,1005", command=["sleep", "0.3"], machine=self.machine())
        done = ipw(None, "compare", self.directory())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"baseline: gpu-clock=510\n(.*\n)*? gpu-clock=1005\n")
        runs = sorted(self.directory().glob("points/*/run_*"))
        self.assertRegex(ipw(None, "analyze", *runs).stdout, r"(?m)^   gpu-clock=510 .*\n   gpu-clock=1005 ")
        page = self.root / "page.html"
        self.assertEqual(ipw(None, "report", *runs, "-o", page).returncode, 0)
        self.assertIn("gpu-clock=1005", page.read_text())

    def test_knob_values_do_not_count_as_different_commands(self):
        machine = self.machine("value throttle 0 0\npower 0 constant 300")
        self.sweep("--knob", "a=0.1,0.2", "-q", command=["sleep", "{a}"], machine=machine)
        done = ipw(None, "compare", self.directory())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"baseline: a=0.1\n(.*\n)*? a=0.2\n")
        self.assertNotIn("different command", done.stdout)
        self.assertNotIn("1 of 1 runs", done.stdout)
        runs = sorted(self.directory().glob("points/*/run_*"))
        copies = [self.root / name for name in "xy"]
        for run, copy in zip(runs, copies):
            shutil.copytree(run, copy)
        self.assertIn("different command", ipw(None, "compare", *copies).stdout)

    def test_rejects_uncontrollable_gpu(self):
        for script, words, code, said in (
                ("value throttle 0 2", ["gpu-clock=510"], 1, "already locked"),
                ("value limit_mw 0 500000", ["gpu-clock=510"], 1, "not its default"),
                ("fail nvmlDeviceGetCurrentClocksEventReasons 0 15", ["gpu-clock=510"], 1, "fell off the bus"),
                ("devices 2", ["gpu-clock=510"], 2, "--devices"),
                ("", ["gpu-clock=1000"], 2, "1000 MHz is not a clock of nvml:0 (nearest: 990, 1005)"),
                ("", ["power-limit=800"], 2, "outside of 200 to 700 W"),
                ("", ["gpu-clock=fast"], 2, "expected a graphics clock in MHz, not 'fast'"),
                ("", ["a=1"], 2, "gpu-clock, mem-clock or power-limit"),
                ("", ["gpu-clok=510"], 2, "no knob 'gpu-clok' of the GPU: did you mean gpu-clock?")):
            with self.subTest(said):
                machine = self.machine(script)
                done = self.sweep("--control", "--knob", *words, command=["true", "{a}"], code=code, machine=machine)
                self.assertIn(said, done.stderr)
                self.assertIn(machine.settings(), (ControllableGpu.FREE, "0 graphics 0 0 memory 0 0 limit 700000"))
                self.assertFalse((self.root / "runs").exists())
        done = self.sweep("--knob", "gpu-clock=510", command=["true"], code=2)
        self.assertIn("--control would set it", done.stderr)

    def test_gpu_that_rejects_settings_or_is_lost(self):
        for code, said in ((4, "needs root"), (15, "fell off the bus"), (27, "")):
            with self.subTest(code):
                machine = self.machine(f"value throttle 0 0\nfail nvmlDeviceSetGpuLockedClocks 0 {code} after 2")
                done = self.sweep("--control", "--knob", "gpu-clock=510,1005,1500", command=["true"], machine=machine, code=1)
                self.assertIn(said, done.stderr)
                self.assertIn("cannot lock the graphics clock", done.stderr)
                self.assertEqual(len(self.attempts()), 1)
                self.assertEqual(machine.settings(), ControllableGpu.FREE)
                self.assertFalse(list((machine.root / "run/ipw").glob("*.state")))
                # A sweep started with control does not continue without it.
                machine.script("fail nvmlDeviceResetGpuLockedClocks 0 4")
                done = ipw(machine, "sweep", "--resume", self.directory())
                self.assertEqual((done.returncode, len(self.attempts())), (1, 1), done.stderr)
                machine.script("clocks 0 2619 1785:345:15\nvalue throttle 0 0")
                done = ipw(machine, "sweep", "--resume", self.directory())
                self.assertEqual((done.returncode, len(self.attempts())), (0, 3), done.stderr)
                self.assertEqual(machine.settings(), ControllableGpu.FREE)
                done = ipw(None, "sweep", "--resume", self.directory())  # nothing left to do: shows the result
                self.assertEqual(done.returncode, 0, done.stderr)
            self.setUp()

    def test_failed_restore_is_reported(self):
        machine = self.machine("value throttle 0 0")
        lose = python("import os, sys; open(os.environ['IPW_FAKE_NVML'], 'a').write('fail nvmlDeviceResetGpuLockedClocks 0 15\\n')")
        done = self.sweep("--control", "--knob", "gpu-clock=510", command=lose, machine=machine, code=1)
        self.assertIn("--restore` tries again", done.stderr)
        self.assertEqual(len(list((machine.root / "run/ipw").glob("*.state"))), 1)
        machine.script("value throttle 0 0")
        self.assertEqual(ipw(machine, "sweep", "--restore").returncode, 0)
        self.assertEqual(machine.settings(), ControllableGpu.FREE)

    def test_hanging_driver_is_reported(self):
        machine = self.machine()
        # Only the monitoring thread makes this call; it hangs longer than the timeout.
        hang = python("import os, time; open(os.environ['IPW_FAKE_NVML'], 'a').write('block nvmlDeviceGetMigMode 0 6000\\n'); time.sleep(0.5)")
        done = self.sweep("--control", "--knob", "gpu-clock=510,1005", command=hang, machine=machine, code=1)
        self.assertIn("does not respond", done.stderr)
        self.assertEqual([attempt["flags"] for attempt in self.attempts()], ["gpu_lost"])
        machine.script("value throttle 0 0")
        deadline = time.monotonic() + TIMEOUT_S
        while machine.settings() != ControllableGpu.FREE:  # by the watchdog
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_mig_is_measured_only(self):
        done = self.sweep("--control", "--knob", "gpu-clock=510", command=["true"], machine=self.machine("mig 0 2"))
        self.assertIn("MIG mode", done.stderr)
        self.assertIn("MEASURING ONLY", done.stderr)

    def test_dry_run_changes_nothing(self):
        machine = self.machine()
        done = self.sweep("--control", "--knob", "gpu-clock=510", "--dry-run", command=["true"], machine=machine)
        self.assertIn("needs root", done.stdout)
        self.assertEqual(done.stderr, "")
        self.assertFalse((machine.root / "settings").exists())
        self.assertFalse((machine.root / "run/ipw").exists())

    def test_dry_run_validates_settings_with_gpu(self):
        for script, clock, code, said in (("value throttle 0 0", 601, 2, "601 MHz is not a clock of nvml:0"),
                                          ("value throttle 0 2", 510, 1, "already locked"),
                                          ("mig 0 2", 510, 0, "MIG mode"), ("devices 0", 601, 0, "not possible here")):
            machine = self.machine(script)
            done = self.sweep("--control", "--knob", f"gpu-clock={clock}", "--dry-run", command=["true"], machine=machine,
                              code=code)
            self.assertIn(said, done.stderr)
            self.assertFalse((machine.root / "settings").exists())


class InvalidAttempts(ControlTest):
    """Invalid attempts are repeated."""

    def flags(self):
        return [(attempt["settings"]["gpu-clock"], attempt["flags"]) for attempt in self.attempts()]

    def test_throttled_attempt_is_repeated(self):
        machine = self.machine("value throttle 0 32")
        cooler = "import os, sys, time; time.sleep(0.5); os.replace(sys.argv[1], os.environ['IPW_FAKE_NVML'])"
        text = (machine.root / "nvml.txt").read_text()
        machine.put("/cool", text.replace("throttle 0 32", "throttle 0 0"))
        # The GPU cools down after the first attempt, which is repeated after the second one.
        done = self.sweep("--control", "--knob", "gpu-clock=510,1005", machine=machine,
                          command=["sh", "-c", f"{shlex.join(python(cooler, machine.root / 'cool'))} 2>/dev/null || sleep 0.3"])
        self.assertIn("repeat 1 again: throttled (try 2 of 3); 1 left", done.stderr)
        clocks = [clock for clock, _ in self.flags()]
        self.assertEqual([flag for _, flag in self.flags()], ["throttled", "", ""])
        self.assertEqual(clocks[0], clocks[2])
        self.assertNotEqual(clocks[0], clocks[1])
        done = ipw(None, "analyze", self.directory(), "--analysis", "sweep", "--json")
        result = json.loads(done.stdout)[str(self.directory())]["sweep"]
        self.assertEqual([row["repeats"] for row in result["data"]["settings"]], [1, 1])  # not both of the same setting

    def test_slurm_element_keeps_last_attempt(self):
        machine = self.machine("value throttle 0 32")
        see = f"echo >> {self.root}/tries; cat {self.root}/runs/*/points/*/attempt.json >> {self.root}/seen; sleep 0.5"
        self.sweep("--control", "--knob", "gpu-clock=510", "--reruns", 1, "--slurm", "--slurm-script-only",
                   command=["sh", "-c", see], machine=machine)
        done = ipw(machine, "sweep", "--resume", self.directory(), "--point", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.root / "tries").read_text(), "\n\n")
        self.assertEqual((self.root / "seen").read_text(), "")  # an attempt to be repeated has not ended
        done = ipw(None, "sweep", "--resume", self.directory())
        self.assertEqual(done.returncode, 1, done.stderr)  # no valid attempt
        self.assertEqual(self.flags(), [("510", "throttled")])

    def test_reruns_are_limited(self):
        for number in (0, 1):
            done = self.sweep("--control", "--knob", "gpu-clock=510", "--reruns", number, command=["sleep", "0.5"],
                              machine=self.machine("value throttle 0 32"), code=1)
            self.assertIn("no setting was measured: 1 throttled", done.stdout)
            self.assertEqual(self.flags(), [("510", "throttled")] * (number + 1))
            self.setUp()

    def test_clock_changed_by_others_is_flagged(self):
        machine = self.machine()
        unlock = "import os, sys, time; open(sys.argv[1], 'w').write('0 graphics 0 0 memory 0 0 limit 0'); time.sleep(0.5)"
        self.sweep("--control", "--knob", "gpu-clock=510", "--reruns", 0, machine=machine, code=1,
                   command=python(unlock, machine.root / "settings"))
        self.assertEqual(self.flags(), [("510", "off_target_clock")])

    def test_waits_for_cool_gpu(self):
        machine = self.machine("value temperature 0 80")
        command = python("import os, sys; open(sys.argv[1], 'a').write(open(os.environ['IPW_FAKE_NVML']).read())", self.notes)
        process = subprocess.Popen([IPW, "sweep", "--cooldown-c", "50", "--output-dir", self.root / "runs", "--knob",
                                    "a=1,2", "--", *command, "{a}"], env=machine.environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.assertIn("2 settings", process.stderr.readline())
        self.assertIn("is at 80 °C: waiting until it is at 50 °C, for at most 600 s", process.stderr.readline())
        time.sleep(0.5)
        machine.script("value temperature 0 50")
        self.assertEqual(process.wait(TIMEOUT_S), 0)
        self.assertEqual(self.notes.read_text(), "value temperature 0 50\n" * 2)
        done = self.sweep("--cooldown-c", 50, "--knob", "a=1", machine=self.machine("fail nvmlDeviceGetTemperature 0 3"), code=1)
        self.assertIn("--cooldown-c: the GPU reports no temperature", done.stderr)
        self.setUp()
        done = self.sweep("--cooldown-c", 50, "--knob", "a=1", machine=self.machine("devices 0"), code=1)
        self.assertRegex(done.stderr, "--cooldown-c: .*GPU")

    def test_cold_gpu_is_warmed_up(self):
        # Each run of the command is recorded, and heats the GPU by some degrees.
        heat = ("import os, re, sys; open(sys.argv[1], 'a').write('x'); path = os.environ['IPW_FAKE_NVML']; text = open(path).read();"
                "at = int(re.search(r'temperature 0 (\\d+)', text)[1]);"
                "open(path, 'w').write(f'value temperature 0 {at + int(sys.argv[2])}\\n')")
        for degrees, before, runs, flag in ((8, 30, 3, ""), (0, 30, 2, "not_warmed"), (8, 45, 1, "")):
            self.setUp()
            machine = self.machine(f"value temperature 0 {before}")
            done = self.sweep("--cooldown-c", 50, "--cooldown-min-c", 40, "--knob", "a=1", machine=machine,
                              command=python(heat, self.notes, degrees, "{a}"))
            self.assertEqual(self.notes.read_text(), "x" * runs)
            self.assertEqual([attempt["flags"] for attempt in self.attempts()], [flag])
            self.assertEqual("warming up to 40 °C with unmeasured runs" in done.stderr, runs > 1)
        self.setUp()
        self.sweep("--cooldown-c", 50, "--cooldown-limit-s", 0, "--knob", "a=1", machine=self.machine("value temperature 0 80"))
        self.assertEqual([attempt["flags"] for attempt in self.attempts()], ["not_cooled"])
        for words in (("--cooldown-min-c", 40), ("--cooldown-limit-s", 5), ("--cooldown-c", 40, "--cooldown-min-c", 40)):
            self.assertIn("--cooldown-c", self.sweep("--knob", "a=1", *words, code=2).stderr)

    def test_expected_time_includes_cooldown(self):
        self.sweep("--cooldown-s", 0.3, "--knob", "a=1,2,3", command=["true", "{a}"])
        waits = [attempt["waited_s"] for attempt in self.attempts()]
        self.assertLess(waits[0], 0.3)
        self.assertTrue(all(wait >= 0.3 for wait in waits[1:]), waits)


class Modes(ControlTest):
    def test_dvfs_mode_uses_every_supported_clock(self):
        if not CLOCKS.exists():
            self.skipTest(f"{CLOCKS} does not exist")
        lists = {}
        for row in csv.DictReader(CLOCKS.read_text().splitlines()):
            lists.setdefault(row["gpu"], {}).setdefault(row["mem_mhz"], []).append(row["graphics_mhz"])
        for gpu, used in (("V100", 117), ("A100", 61), ("H100", 86)):
            machine = self.machine()
            machine.script("\n".join(f"clocks 0 {memory} {','.join(clocks)}" for memory, clocks in lists[gpu].items()))
            plan = self.sweep("--control", "--mode", "dvfs", "--dry-run", command=["true"], machine=machine).stdout
            shown = [line.split("gpu-clock=")[1].split(":")[0] for line in plan.splitlines() if "gpu-clock=" in line]
            usable = {mhz for clocks in lists[gpu].values() for mhz in clocks if int(mhz) >= 510}
            self.assertEqual((set(shown), len(shown)), (usable, used))
            plan = self.sweep("--control", "--mode", "dvfs", "--min-clock", 0, "--dry-run", command=["true"], machine=machine)
            self.assertIn(f"{len(set().union(*lists[gpu].values()))} settings", plan.stdout)

    def plan_of_node(self, srun, code=0):
        """The plan of mode dvfs with --slurm, where srun is this script."""
        for name, script in (("srun", srun), ("sbatch", "exit 1"), ("squeue", "exit 1")):
            (self.root / name).write_text(f"#!/bin/sh\n{script}\n")
            (self.root / name).chmod(0o755)
        return self.sweep("--slurm", "--partition", "p", "--control", "--mode", "dvfs", "--min-clock", 1000, "--dry-run",
                          command=["true"], env={"PATH": f"{self.root}:{os.environ['PATH']}"}, machine=self.machine(), code=code)

    def test_clocks_of_a_node_are_those_of_its_own_plan(self):
        run_it = 'while [ "${1#-}" != "$1" ]; do shift; done; exec "$@"'
        local = json.loads(self.sweep("--control", "--mode", "dvfs", "--min-clock", 1000, "--dry-run", "--json",
                                      command=["true"], machine=self.machine()).stdout)
        done = self.plan_of_node(run_it)
        shown = sorted(line.split(None, 1)[1].split(":")[0] for line in done.stdout.splitlines() if "gpu-clock=" in line)
        self.assertEqual(shown, sorted(setting["setting"] for setting in local["settings"]))
        self.assertGreater(len(shown), 1)

    def test_node_without_a_plan_is_an_error(self):
        for printed in ("1  gpu-clock=1785: true", "{}", '{"knobs":[],"settings":7}', ""):
            said = self.plan_of_node(f"echo '{printed}'", code=1).stderr
            self.assertIn("printed no plan of a sweep", said)
        said = self.plan_of_node("""echo '{"uncontrolled":"needs root","knobs":[{"name":"gpu-clock"}],"settings":[]}'""").stderr
        self.assertIn("on the node allocated by Slurm: needs root", said)

    def test_docs_and_help_name_every_knob_and_flag(self):
        """They have one table each in the source."""
        source = Path(os.environ["IPW_SOURCE"])
        docs = " ".join((source / "docs/sweep.md").read_text().split())
        knobs = re.findall(r'(?m)^KNOB\(\w+, "([^"]+)", "[^"]*", "([^"]+)", "([^"]+)"', (source / "src/core/knob.def").read_text())
        flags = re.findall(r'(?m)^ATTEMPT_FLAG\(\w+, "(\w+)"', (source / "src/rundir/attempt_flag.def").read_text())
        shown = ipw(None, "sweep", "--help").stdout
        self.assertTrue(len(knobs) >= 3 and len(flags) >= 6)
        for name, what, unit in knobs:
            self.assertIn(f"`{name}`", docs)
            self.assertIn(f"({unit})", docs)
            self.assertIn(f"{name}: {what} in {unit}", shown)
        for flag in flags:
            self.assertIn(f"`{flag}`", docs)

    def test_knobs_are_known_in_any_spelling(self):
        machine = self.machine()
        done = self.sweep("--control", "--knob", "GPU_clock=510", "--dry-run", "--json", command=["true"], machine=machine)
        plan = json.loads(done.stdout)
        self.assertEqual((plan["sets_gpu"], plan["knobs"]), (True, [{"name": "GPU_clock", "unit": "MHz"}]))

    def test_baseline_mode_sets_nothing(self):
        machine = self.machine()
        self.sweep("--mode", "baseline", command=["true"], machine=machine)
        self.assertEqual([attempt["settings"] for attempt in self.attempts()], [{"gpu-clock": "default"}])
        self.assertFalse((machine.root / "settings").exists())
        self.assertIn("omit --control", self.sweep("--mode", "baseline", "--control", command=["true"], code=2).stderr)

    def test_clock_modes_need_control(self):
        for mode in ("dvfs", "probe"):
            self.assertIn("give --control", self.sweep("--mode", mode, command=["true"], code=2).stderr)
        done = self.sweep("--mode", "dvfs", "--control", command=["true"], machine=self.machine("devices 0"), code=1)
        self.assertIn("MEASURING ONLY", done.stderr)  # nothing at all without energy
        self.assertEqual([attempt["settings"] for attempt in self.attempts()], [{"gpu-clock": "default"}])

    def test_probe_mode_continues_near_optimum(self):
        # The least energy is at the lowest clock, where clocks are added: by factors of 14, more than a stall adds.
        machine = self.machine("value throttle 0 0\npower 0 clocked 1 300 8")
        self.sweep("--mode", "probe", "--probes", 3, "--control", machine=machine, command=["sleep", "0.4"])
        clocks = [int(attempt["settings"]["gpu-clock"]) for attempt in self.attempts()]
        self.assertEqual(sorted(clocks[:3]), [810, 1290, 1785])
        self.assertTrue(1 <= len(clocks[3:]) <= 8, clocks)
        self.assertLess(max(clocks[3:]), 1290)
        self.assertEqual(machine.settings(), ControllableGpu.FREE)


class ControlTermination(SweepTest):
    """However a sweep ends, the GPU is restored."""

    HELD = "0 graphics 510 510 memory 0 0 limit 0"

    def setUp(self):
        super().setUp()
        self.machine = ControllableGpu()
        self.addCleanup(self.machine.close)

    def wait_for_settings(self, wanted):
        deadline = time.monotonic() + TIMEOUT_S
        while self.machine.settings() != wanted or (wanted != self.HELD and self.states()):
            self.assertLess(time.monotonic(), deadline, self.machine.settings())
            time.sleep(0.01)

    def states(self):
        return list((self.machine.root / "run/ipw").glob("*.state"))

    def start(self):
        process = subprocess.Popen([IPW, "sweep", "-q", "--output-dir", self.root / "runs", "--control", "--knob",
                                    "gpu-clock=510", "--", "sleep", str(TIMEOUT_S)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   env=self.machine.environment(), start_new_session=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for_settings(self.HELD)
        return process

    def test_signals_restore_gpu(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process = self.start()
            process.send_signal(number)
            self.assertEqual(process.wait(TIMEOUT_S), 128 + number)
            self.assertEqual(self.machine.settings(), ControllableGpu.FREE)  # before the exit, not by the watchdog
            self.assertEqual(self.states(), [])

    def test_watchdog_restores_gpu_after_crash(self):
        for number in (signal.SIGKILL, signal.SIGQUIT, signal.SIGSEGV):
            process = self.start()
            process.send_signal(number)
            process.wait(TIMEOUT_S)
            self.wait_for_settings(ControllableGpu.FREE)
        process = self.start()
        os.killpg(process.pid, signal.SIGKILL)  # with its process group, like a terminal or batch system
        process.wait(TIMEOUT_S)
        self.wait_for_settings(ControllableGpu.FREE)

    def test_concurrent_sweep_is_refused(self):
        self.start()
        done = self.sweep("--control", "--knob", "gpu-clock=1005", command=["true"], machine=self.machine, code=1)
        self.assertIn("another process controls GPU-00000000", done.stderr)
        self.assertEqual(self.machine.settings(), self.HELD)
        done = ipw(self.machine, "sweep", "--restore")
        self.assertEqual((done.returncode, self.machine.settings()), (0, self.HELD))
        self.assertIn("not restored", done.stderr)

    def test_manual_restore(self):
        process = self.start()
        self.machine.script("fail nvmlDeviceResetGpuLockedClocks 0 4")  # the watchdog fails
        process.kill()
        process.wait(TIMEOUT_S)
        self.assertTrue(self.states())
        self.machine.script("")
        done = ipw(self.machine, "sweep", "--restore")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.wait_for_settings(ControllableGpu.FREE)
        done = ipw(self.machine, "sweep", "--restore")
        self.assertIn("nothing to restore", done.stderr)
        (self.machine.root / "run/ipw/GPU-00000000.state").write_text("damaged")
        done = ipw(self.machine, "sweep", "--restore")
        self.assertEqual(done.returncode, 1)
        self.assertIn("manually (nvidia-smi -rgc", done.stderr)


class JobArrayElements(SweepTest):
    """Settings measured by separate processes, like the elements of a job array, without Slurm."""

    def setUp(self):
        super().setUp()
        self.sweep("--slurm", "--slurm-script-only", "-q", "--knob", "a=1,2")
        self.assertFalse(self.notes.exists())

    def point(self, number, machine=None, code=0):
        done = ipw(machine, "sweep", "--resume", self.directory(), "--point", number)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_setting_is_measured_once_and_collected(self):
        self.point(2)
        self.point(2)
        self.assertEqual((self.recorded_arguments(), self.attempts()), ([["2"]], []))
        done = ipw(None, "sweep", "--resume", self.directory())
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 of 2 settings were not measured", done.stderr)
        self.point(2)
        self.point(1)
        self.assertEqual(ipw(None, "sweep", "--resume", self.directory()).returncode, 0)
        self.assertEqual(sorted(self.recorded_arguments()), [["1"], ["2"]])
        self.assertEqual(sorted(attempt["point"] for attempt in self.attempts()), [1, 2])

    def test_requeued_element_waits_for_its_predecessor(self):
        """It then finds the measurement of the process that it replaces."""
        held = self.directory() / "points" / "p001_r1"
        held.mkdir(parents=True)
        with open(held / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = subprocess.Popen([IPW, "sweep", "--resume", self.directory(), "--point", "1"],
                                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(0.3)
            self.assertFalse(self.notes.exists())
        self.assertEqual(process.wait(TIMEOUT_S), 0)
        self.assertEqual(self.recorded_arguments(), [["1"]])

    def test_settings_of_two_gpus_are_not_comparable(self):
        for number, uuid in ((1, "GPU-aaaa"), (2, "GPU-bbbb")):
            machine = Nvidia(f"devices 1\nuuid 0 {uuid}")
            self.addCleanup(machine.close)
            self.point(number, machine)
        done = ipw(None, "sweep", "--resume", self.directory(), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({attempt["point"]: attempt["gpu_uuids"] for attempt in self.attempts()},
                         {1: "GPU-aaaa", 2: "GPU-bbbb"})
        result = json.loads(done.stdout)["sweep"]
        self.assertIn("2 sets of GPUs", "".join(result["warnings"]))
        self.assertEqual({setting["values"]["a"]: setting["gpu_uuids"] for setting in result["data"]["settings"]},
                         {"1": "GPU-aaaa", "2": "GPU-bbbb"})  # sorted by energy
        runs = sorted(self.directory().glob("points/*/run_*"))
        done = ipw(None, "compare", *runs, "--json")
        self.assertIn("different GPUs", "".join(texts_of(json.loads(done.stdout)["comparisons"][0])))

    def test_rejects_invalid_element_options(self):
        for words, said in ((["--point", 3, "--resume", self.directory()], "the sweep has 2"),
                            (["--point", 1], "needs --resume"), (["--retry-failed"], "needs --resume"),
                            (["--point", 1, "--slurm", "--resume", self.directory()], "omit --slurm"),
                            (["--resume", self.directory(), "--gres", "gpu:1"], "need --slurm"),
                            (["--resume", self.directory(), "--", "true", "{a}"], "cannot be changed")):
            done = ipw(None, "sweep", *words, *(["--", "true"] if "--resume" not in words else []))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)
        done = self.sweep("--slurm", "--slurm-script-only", "--knob", "a=1", command=["x", "--api-key", "sk-123456", "{a}"],
                          code=2)
        self.assertIn("secret", done.stderr)


class Retries(SweepTest):
    def test_failed_attempts_are_repeated(self):
        command = ["sh", "-c", f"echo {{a}} >> {self.root}/made; exit {{a}}"]
        self.sweep("--knob", "a=0,1", command=command, code=1)
        self.assertEqual(ipw(None, "sweep", "--resume", self.directory()).returncode, 1)  # repeats nothing
        self.assertEqual(ipw(None, "sweep", "--resume", self.directory(), "--retry-failed").returncode, 1)
        self.assertEqual(sorted((self.root / "made").read_text().split()), ["0", "1", "1"])
        done = ipw(None, "analyze", self.directory(), "--analysis", "sweep", "--json")
        result = json.loads(done.stdout)[str(self.directory())]["sweep"]
        self.assertEqual((result["summary"]["attempts"], result["summary"]["failed"]), (2, 1))


    def test_dry_run_includes_failed_attempts(self):
        self.sweep("--knob", "a=0,1", command=["sh", "-c", "exit {a}"], code=1)
        journal = (self.directory() / "records.jsonl").read_text()
        for words, count in ((["--retry-failed"], 1), (["--repeat", 3], 4), (["--retry-failed", "--repeat", 3], 5)):
            done = ipw(None, "sweep", "--resume", self.directory(), *words, "--dry-run")
            self.assertIn(f"2 settings, {count} attempt{'s' if count != 1 else ''} to run", done.stdout)
            self.assertEqual(len(done.stdout.splitlines()), count + 2)
        self.assertEqual((self.directory() / "records.jsonl").read_text(), journal)

    def test_resume_adds_repeats(self):
        self.sweep("--knob", "a=1,2")
        for words in (["--repeat", 3], []):
            done = ipw(None, "sweep", "--resume", self.directory(), *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(self.recorded_arguments()), [["1"]] * 3 + [["2"]] * 3)
        self.assertEqual([attempt["repeat"] for attempt in self.attempts()], [1, 1, 2, 2, 3, 3])
        result = json.loads(ipw(None, "analyze", self.directory(), "--json").stdout)[str(self.directory())]["sweep"]
        self.assertEqual([setting["repeats"] for setting in result["data"]["settings"]], [3, 3])
        done = ipw(None, "sweep", "--resume", self.directory(), "--repeat", 3)
        self.assertEqual(done.returncode, 2)
        self.assertIn("already measures each setting 3 times", done.stderr)

    def test_resume_rejects_options_it_would_ignore(self):
        self.sweep("--knob", "a=1", command=["true", "{a}"])
        journal = (self.directory() / "records.jsonl").read_text()
        for option, value in (("seed", 5), ("until-pct", 2), ("max-repeats", 9), ("cooldown-c", 50), ("cooldown-s", 0),
                              ("reruns", 2), ("mode", "custom"), ("list", "x"), ("idle", 1), ("warmup", 1),
                              ("output-dir", "x"), ("devices", 0), ("knob", "a=2"), ("control", None), ("sample-rate", 10)):
            done = ipw(None, "sweep", "--resume", self.directory(), f"--{option}", *([] if value is None else [value]))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"omit --{option}, or", done.stderr)
        self.assertEqual((self.directory() / "records.jsonl").read_text(), journal)

    def test_damaged_number_of_repeats_is_rejected(self):
        self.sweep("--knob", "a=1", command=["true", "{a}"])
        journal = self.directory() / "records.jsonl"
        journal.write_text(journal.read_text().replace('"repeats":1,"max_repeats":1', '"repeats":4000000000,"max_repeats":4000000000'))
        done = ipw(None, "sweep", "--resume", self.directory(), "--dry-run")
        self.assertEqual(done.returncode, 1)
        self.assertIn("header of the sweep cannot be read: repeats: must be a whole number, 0 to 10000", done.stderr)

    def test_damaged_header_is_reported_with_its_key(self):
        self.sweep("--knob", "a=1", command=["true", "{a}"])
        journal = self.directory() / "records.jsonl"
        header = journal.read_text()
        for old, new, message in (('"points":[["1"]]', '"points":[["1","2"]]', "points: a point must be an array of 1 values"),
                                  ('"points":[["1"]]', '"points":[[1]]', "points: values must be text"),
                                  ('"knobs":["a"]', '"knobs":"a"', "knobs: must be an array"),
                                  ('"command":["true"', '"command":[7', "command: must be text"),
                                  ('"control":false', '"control":0', "control: must be true or false"),
                                  ('"until_pct":null', '"until_pct":"x"', "until_pct: must be a finite number")):
            self.assertIn(old, header)
            journal.write_text(header.replace(old, new))
            done = ipw(None, "sweep", "--resume", self.directory(), "--dry-run")
            self.assertEqual(done.returncode, 1, new)
            self.assertIn(f"header of the sweep cannot be read: {message}", done.stderr)


class StubbornCommands(SweepTest):
    """Signals to a sweep reach the command of its current run, as signals to `ipw run` do."""

    # Asks nothing of the shell but to wait; its processes are noted.
    SCRIPT = "trap '' {ignored}; echo $$ >>{pids}; sleep 600 & echo $! >>{pids}; echo >{pids}.started; wait; wait # {{a}}"
    NOTICES = ("press Ctrl-C again to terminate it", "press Ctrl-C again to kill it")
    CASES = (("INT", NOTICES[:1]), ("INT TERM", NOTICES))

    def setUp(self):
        super().setUp()
        self.pids = self.root / "pids"
        self.machine = Intel(50)
        self.addCleanup(self.machine.close)
        self.addCleanup(self.end_commands)

    def end_commands(self):
        for pid in self.running():
            os.kill(pid, signal.SIGKILL)

    def running(self):
        def is_running(pid):
            try:
                return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
            except OSError:
                return False
        pids = self.pids.read_text().split() if self.pids.exists() else []
        return [int(pid) for pid in pids if is_running(pid)]

    def command(self, ignored):
        shutil.rmtree(self.root / "runs", ignore_errors=True)
        Path(f"{self.pids}.started").unlink(missing_ok=True)
        script = self.SCRIPT.format(ignored=ignored, pids=self.pids)
        return [IPW, "sweep", "-q", "--output-dir", self.root / "runs", "--knob", "a=1,2", "--", "sh", "-c", script]

    def wait_for_command(self):
        wait_until(Path(f"{self.pids}.started").exists, "the command")
        self.assertEqual(len(self.running()), 2)

    def check_end(self, code):
        self.assertEqual((code, self.running()), (130, []))
        self.assertEqual(self.attempts(), [])
        runs = list(self.directory().glob("points/*/run_*/summary.json"))
        self.assertEqual(len(runs), 1)
        self.assertGreater(json.loads(runs[0].read_text())["ipw"]["energy"]["joules"], 0)

    def test_signals_of_another_process(self):
        for ignored, notices in self.CASES:
            process = subprocess.Popen(self.command(ignored), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True, env=self.machine.environment())
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.kill)
            self.wait_for_command()
            process.send_signal(signal.SIGINT)
            for notice in notices:
                self.assertEqual(process.stderr.readline(), f"ipw sweep: waiting for the command to end; {notice}\n")
                process.send_signal(signal.SIGINT)
            self.assertIn("--resume", process.stderr.read())
            self.check_end(process.wait(TIMEOUT_S))

    def test_fourth_signal_kills_a_run_that_hangs(self):
        process = subprocess.Popen(self.command("INT TERM"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, env=self.machine.environment())
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        self.wait_for_command()
        run, = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(run), signal.SIGSTOP)
        for words in (f"the command to end; {self.NOTICES[0]}", f"the command to end; {self.NOTICES[1]}",
                      "its run to end; press Ctrl-C again to kill it"):
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.stderr.readline(), f"ipw sweep: waiting for {words}\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(TIMEOUT_S), 130)
        wait_until(lambda: not self.running(), "the end of the command")

    def test_signals_of_a_terminal(self):
        for ignored, notices in self.CASES:
            with Terminal(self.command(ignored), self.machine.environment()) as terminal:
                self.wait_for_command()
                terminal.press_ctrl_c()
                for notice in notices:
                    terminal.wait_for(notice)
                    terminal.press_ctrl_c()
                self.check_end(terminal.wait())


class Kills(SweepTest):
    # The third attempt waits until the test kills the sweep.
    WAIT = NOTE + """
while len(open(sys.argv[1]).readlines()) == 3 and os.path.exists(sys.argv[1] + '.wait'): time.sleep(0.01)"""

    def start(self):
        (self.root / "notes.wait").touch()
        process = subprocess.Popen([IPW, "sweep", "-q", "--output-dir", self.root / "runs", "--knob", "a=1-5:1", "--",
                                    *map(str, python(self.WAIT, self.notes, "{a}"))], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        deadline = time.monotonic() + TIMEOUT_S
        while not self.notes.exists() or len(self.recorded_arguments()) < 3:
            if process.poll() is not None:
                self.skipTest(process.stderr.read())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        return process

    def check_resumed(self, under_way):
        finished = [attempt["settings"]["a"] for attempt in self.attempts()]
        self.assertEqual(len(finished), 2)
        plan = ipw(None, "sweep", "--resume", self.directory(), "--dry-run").stdout
        self.assertRegex(plan, r"3 attempts to run.*(?s:.)*\n  1 +[0-9.]+ m?s +a=\d: (?s:.)*expected time: \d")
        (self.root / "notes.wait").unlink()
        done = ipw(None, "sweep", "--resume", self.directory())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(attempt["settings"]["a"] for attempt in self.attempts()), list("12345"))
        made = [words[0] for words in self.recorded_arguments()]
        for value in "12345":  # only the killed one was repeated
            self.assertEqual(made.count(value), 2 if value == under_way else 1, made)
        self.assertEqual(len(list(self.directory().glob("points/*/run_*"))), 5)

    def test_resumes_after_sigkill(self):
        process = self.start()
        under_way = self.recorded_arguments()[2][0]
        process.kill()
        self.assertEqual(process.wait(TIMEOUT_S), -signal.SIGKILL)
        self.check_resumed(under_way)

    def test_resumes_after_interruption(self):
        process = self.start()
        under_way = self.recorded_arguments()[2][0]
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(TIMEOUT_S), 130)
        self.assertIn("--resume", process.stderr.read())
        self.check_resumed(under_way)

    def test_retried_failures_are_replaced(self):
        command = ["sh", "-c", f"test {{a}} != 2 || test -e {self.root}/mended"]
        self.sweep("--knob", "a=1-3:1", command=command, code=1)
        (self.root / "mended").touch()
        done = ipw(None, "sweep", "--resume", self.directory(), "--retry-failed", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["sweep"]["summary"]["failed"], 0)
        codes = [(attempt["settings"]["a"], attempt["exit_code"] != 0) for attempt in self.attempts()]
        self.assertEqual(sorted(codes), [("1", False), ("2", False), ("2", True), ("3", False)])
        listed = json.loads(ipw(None, "list", "runs", self.root / "runs", "--json").stdout)["runs"]
        self.assertEqual([(run["queries"], run["failed"]) for run in listed], [(3, 0)])

    def test_concurrent_resume_is_refused(self):
        process = self.start()
        done = ipw(None, "sweep", "--resume", self.directory())
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(process.pid), done.stderr)
        os.kill(process.pid, signal.SIGTERM)
        self.assertEqual(process.wait(TIMEOUT_S), 143)


if __name__ == "__main__":
    main_parallel()
