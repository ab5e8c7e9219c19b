#!/usr/bin/env python3
# test: real time
"""`ipw sweep --slurm` and `ipw profile --slurm` on a real one-node Slurm: submitted settings are measured once and
collected; failed and requeued elements and killed daemons neither lose nor duplicate measurements."""
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from machines import IntelNvidia, ControllableGpu  # noqa: E402
from monitors import Monitor  # noqa: E402
from program import IPW, TIMEOUT_S, main_parallel, python  # noqa: E402
from slurm import Slurm, wait_until  # noqa: E402

# Appends its last argument to a file in one write; then waits while a file with that suffix exists.
NOTE = """
import os, sys, time
with open(sys.argv[1], 'ab', 0) as file: file.write((sys.argv[2] + '\\n').encode())
while os.path.exists(sys.argv[1] + '.' + sys.argv[2]): time.sleep(0.02)
"""
cluster = None


def setUpModule():
    global cluster
    cluster = Slurm()


def tearDownModule():
    cluster.stop()


class SlurmTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-on-slurm-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.notes = self.root / "notes"
        self.notes.touch()

    def ipw(self, *words, code=0):
        done = subprocess.run([IPW, *map(str, words)], env=cluster.environment, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr + self.logs())
        return done

    def start(self, *words):
        return subprocess.Popen([IPW, *map(str, words)], env=cluster.environment, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end(self, process, code=0):
        out, said = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, code, out + said + self.logs())
        return said

    def logs(self):
        return "".join(path.read_text() for path in self.root.glob("runs/*/slurm/*.log"))

    def sweep(self, *options, command=None):
        return ["sweep", "--output-dir", self.root / "runs", "--slurm", "--partition", "debug", *options, "--",
                *(command or python(NOTE, self.notes, "{a}"))]

    def directory(self):
        found = list((self.root / "runs").glob("sweep_*"))
        self.assertEqual(len(found), 1)
        return found[0]

    def lines(self, kind):
        lines = [json.loads(line) for line in (self.directory() / "records.jsonl").read_text().splitlines()]
        return [line for line in lines if line["kind"] == kind]

    def jobs(self):
        """Number of each job array, and its settings by index."""
        files = [path.read_text().split() for path in sorted(self.directory().glob("slurm/*.job"))]
        return [{"job": words[0], "points": [int(word) for word in words[1:]]} for words in files]

    def recorded_values(self):
        return self.notes.read_text().split()

    def hold(self, value):
        """Makes the command of this setting wait until the file is deleted."""
        (self.root / f"notes.{value}").touch()
        return self.root / f"notes.{value}"

    def wait_for(self, value):
        wait_until(lambda: value in self.recorded_values(), f"setting {value}; {self.logs()}")


class Sweeps(SlurmTest):
    def test_every_setting_is_measured_once(self):
        done = self.ipw(*self.sweep("--knob", "a=1-6:1", "--repeat", 2, "--json", "--array-limit", 3, "--gres", "gpu:1",
                                    "--time", 5, "--nodes", 1, "--account", "lab", "--sbatch", "comment=ipw"))
        self.assertEqual(sorted(self.recorded_values()), sorted(list("123456") * 2))
        self.assertEqual(sorted((point["settings"]["a"], point["repeat"]) for point in self.lines("point")),
                         sorted((a, repeat) for a in "123456" for repeat in (1, 2)))
        result = json.loads(done.stdout)["sweep"]
        self.assertEqual((result["summary"]["settings"], result["summary"]["complete"]), (6, True))
        self.assertEqual(len(self.jobs()), 1)

    def test_only_failed_element_is_resubmitted(self):
        fails = self.root / "fails"
        fails.touch()
        command = ["sh", "-c", 'echo {a} >> "$1"; test {a} != 2 || test ! -e "$2"', "-", self.notes, fails]
        self.ipw(*self.sweep("--knob", "a=1,2,3", command=command), code=1)
        self.assertEqual({point["settings"]["a"]: point["exit_code"] for point in self.lines("point")},
                         {"1": 0, "2": 1, "3": 0})
        fails.unlink()
        self.ipw("sweep", "--resume", self.directory(), code=1)  # nothing left to do
        self.assertEqual(len(self.recorded_values()), 3)
        self.ipw("sweep", "--resume", self.directory(), "--slurm", "--retry-failed")
        self.assertEqual(sorted(self.recorded_values()), ["1", "2", "2", "3"])
        self.assertEqual([len(job["points"]) for job in self.jobs()], [3, 1])
        done = self.ipw("analyze", self.directory(), "--analysis", "sweep", "--json")
        summary = json.loads(done.stdout)[str(self.directory())]["sweep"]["summary"]
        self.assertEqual((summary["settings"], summary["attempts"], summary["failed"]), (3, 3, 0))

    def test_canceled_element_is_resubmitted(self):
        held = self.hold("2")
        process = self.start(*self.sweep("--knob", "a=1,2,3"))
        self.wait_for("2")
        job = self.jobs()[0]
        cluster.ask("scancel", f"{job['job']}_{self.index(job, '2')}")
        said = self.end(process, code=1)
        self.assertIn("1 of 3 settings were not measured", said)
        held.unlink()
        self.ipw("sweep", "--resume", self.directory(), "--slurm")
        self.assertEqual(sorted(self.recorded_values()), ["1", "2", "2", "3"])
        self.assertEqual(sorted(point["settings"]["a"] for point in self.lines("point")), ["1", "2", "3"])

    def index(self, job, value):
        """Array index of the element that measures this value of a=1,2,3 ..., which are points 1, 2, 3 ..."""
        return job["points"].index(int(value))

    def test_requeued_element_measures_once(self):
        held = self.hold("2")
        process = self.start(*self.sweep("--knob", "a=1,2"))
        self.wait_for("1")
        self.wait_for("2")
        job = self.jobs()[0]
        wait_until(lambda: len(self.lines("point")) == 1, "the result of the first")
        # One has ended: it runs again and finds its result.  The other is killed, and measured by its second run.
        for value in "12":
            cluster.ask("scontrol", "requeue", f"{job['job']}_{self.index(job, value)}")
        wait_until(lambda: self.recorded_values().count("2") == 2, "the requeued element")
        held.unlink()
        self.end(process)
        wait_until(lambda: not cluster.states(job["job"]), "the end of the job")
        self.assertEqual(sorted(self.recorded_values()), ["1", "2", "2"])
        self.assertEqual(sorted(point["settings"]["a"] for point in self.lines("point")), ["1", "2"])
        self.assertEqual(len(list(self.directory().glob("points/*/run_*"))), 2)

    def test_node_daemon_is_killed(self):
        held = self.hold("1")
        process = self.start(*self.sweep("--knob", "a=1,2,3", "--array-limit", 1))
        self.wait_for("1")
        cluster.kill("slurmd")
        held.unlink()  # the element ends while the daemon is down
        wait_until(lambda: any(point["settings"]["a"] == "1" for point in self.lines("point")), "its result")
        cluster.start("slurmd", "-D", "-N", cluster.host)
        self.end(process)
        self.assertEqual(sorted(self.recorded_values()), ["1", "2", "3"])
        self.assertEqual(sorted(point["settings"]["a"] for point in self.lines("point")), ["1", "2", "3"])

    def test_controller_is_restarted(self):
        held = self.hold("1")
        process = self.start(*self.sweep("--knob", "a=1,2"))
        self.wait_for("1")
        cluster.stop_daemon("slurmctld")  # a kill would lose its unsaved state
        for line in process.stderr:
            if "Slurm does not respond" in line:
                break
        cluster.start("slurmctld", "-D")
        held.unlink()
        self.end(process)
        self.assertEqual(sorted(self.recorded_values()), ["1", "2"])
        self.assertEqual(sorted(point["settings"]["a"] for point in self.lines("point")), ["1", "2"])

    def test_job_continues_after_interruption(self):
        held = self.hold("1")
        process = self.start(*self.sweep("--knob", "a=1,2"))
        self.wait_for("1")
        process.send_signal(signal.SIGINT)
        self.assertIn("--resume", self.end(process, code=130))
        done = self.start("sweep", "--resume", self.directory(), "--slurm")
        held.unlink()
        self.end(done)
        self.assertEqual(len(self.jobs()), 1)  # nothing was resubmitted
        self.assertEqual(sorted(self.recorded_values()), ["1", "2"])

    def test_script_for_manual_submission(self):
        done = self.ipw(*self.sweep("--knob", "a=it's,2 $(x)", "--slurm-script-only", "--sbatch", "exclusive"))
        script = done.stdout.strip()
        self.assertEqual(subprocess.run(["bash", "-n", script]).returncode, 0)
        tested = subprocess.run(["sbatch", "--test-only", script], env=cluster.environment, text=True,
                                capture_output=True)
        self.assertEqual(tested.returncode, 0, tested.stderr)
        self.assertEqual(self.recorded_values(), [])
        cluster.ask("sbatch", "--wait", script)
        self.ipw("sweep", "--resume", self.directory())
        self.assertEqual(sorted(point["settings"]["a"] for point in self.lines("point")), ["2 $(x)", "it's"])
        self.assertEqual(sorted(self.notes.read_text().splitlines()), ["2 $(x)", "it's"])

    def controlled(self, script):
        """Gives the node a controllable GPU."""
        machine = ControllableGpu(script)
        self.addCleanup(machine.close)
        kept = cluster.environment
        cluster.environment = {**machine.environment(), **{name: kept[name] for name in ("PATH", "SLURM_CONF")}}
        self.addCleanup(setattr, cluster, "environment", kept)
        return machine

    def clocks(self):
        return [int(point["settings"]["gpu-clock"]) for point in self.lines("point")]

    def test_dvfs_mode_uses_clocks_of_node(self):
        machine = self.controlled("value throttle 0 0")
        self.ipw(*self.sweep("--control", "--mode", "dvfs", "--min-clock", 1740, "--array-limit", 1, "--gres", "gpu:1", "--time", 5,
                             command=["sh", "-c", 'cat "$1" >> "$2"', "-", machine.root / "settings", self.notes]))
        self.assertEqual(sorted(self.clocks()), [1740, 1755, 1770, 1785])
        held = [line.split()[2:4] for line in self.notes.read_text().splitlines()]
        self.assertEqual(sorted(held), [[str(mhz)] * 2 for mhz in (1740, 1755, 1770, 1785)])
        self.assertEqual(machine.settings(), ControllableGpu.FREE)
        self.assertEqual(len(self.jobs()), 1)

    def test_probe_mode_continues_near_optimum(self):
        # The least energy is at the lowest clock, where clocks are added: by factors of 14, more than a stall adds.
        machine = self.controlled("value throttle 0 0\npower 0 clocked 1 300 8")
        self.ipw(*self.sweep("--control", "--mode", "probe", "--probes", 3, "--array-limit", 1,
                             command=["sleep", "0.4"]))
        clocks = self.clocks()
        self.assertEqual(sorted(clocks[:3]), [810, 1290, 1785])
        self.assertTrue(1 <= len(clocks[3:]) <= 8, clocks)
        self.assertLess(max(clocks[3:]), 1290)
        self.assertEqual(len(self.lines("added")), len(clocks) - 3)
        self.assertEqual([len(job["points"]) for job in self.jobs()], [3] + [1] * (len(clocks) - 3))
        self.assertEqual((machine.settings(), len(self.lines("end"))), (ControllableGpu.FREE, 1))
        self.ipw("sweep", "--resume", self.directory(), "--slurm")  # nothing left
        self.assertEqual(self.clocks(), clocks)

    def test_node_without_controllable_gpu(self):
        self.controlled("devices 0")
        said = self.ipw(*self.sweep("--control", "--mode", "dvfs", command=["true"]), code=1).stderr
        self.assertRegex(said, "not possible: on the node allocated by Slurm: .*GPU")
        self.assertIn("MEASURING ONLY", said)
        self.assertEqual([point["settings"] for point in self.lines("point")], [{"gpu-clock": "default"}])

    def test_rejects_invalid_options(self):
        self.assertIn("--knob gpu-clock", self.ipw(*self.sweep("--control", "--mode", "dvfs", "--slurm-script-only"), code=2).stderr)
        for words, said, code in ((["--partition", "none"], "invalid partition", 1), (["--gres", "a b"], "--gres", 2),
                                  *((["--sbatch", word], "--sbatch", 2)
                                    for word in ("array=1", "arr=1", "--a=1", "o=/tmp/x", "outp=/tmp/x", "chd=/"))):
            self.assertIn(said, self.ipw(*self.sweep("--knob", "a=1", *words), code=code).stderr)
        done = subprocess.run([IPW, *map(str, self.sweep("--knob", "a=1"))], env={**os.environ, "PATH": "/nonexistent"},
                              text=True, capture_output=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("sbatch", done.stderr)
        self.assertIn("--slurm", self.ipw("sweep", "--knob", "a=1", "--gres", "gpu:1", "--", "echo", "{a}", code=2).stderr)
        self.assertEqual(self.recorded_values(), [])


class Profiles(SlurmTest):
    def profile(self, *options):
        return ["profile", "--client", "null", "--client-param", "ttft_ms=5", "--model", "m", "--dataset", "builtin",
                "--idle", "0.05", "--warmup-queries", "1", "--output-dir", self.root / "runs", "--slurm", "--partition",
                "debug", "--name", "x", *options]

    def test_shards_are_merged(self):
        done = self.ipw(*self.profile("--shards", 3, "--max-queries", 10, "--json"))
        merge_record = json.loads(done.stdout)
        parts = [json.loads((path / "summary.json").read_text())["ipw"]
                 for path in sorted((self.root / "runs" / "x_shards").glob("x_shard*"))]
        self.assertEqual([part["queries"] for part in parts], [4, 3, 3])
        self.assertEqual((merge_record["queries"], merge_record["completed"]), (10, 10))
        self.assertEqual(merge_record["output_dir"], str(self.root / "runs" / "x"))
        joules = sum(part["energy"]["joules"] for part in parts)
        self.assertAlmostEqual(merge_record["energy"]["joules"], joules, delta=1e-9 * joules)
        keys = [line.split(",")[1] for line in self.ipw("export", self.root / "runs" / "x", "--to", "csv").stdout.splitlines()]
        self.assertEqual(keys[1:], [f"q{i:06}" for i in range(10)])
        self.assertIn("--resume continues it", self.ipw(*self.profile("--shards", 3), code=2).stderr)

    def test_failed_shard_is_resubmitted(self):
        process = self.start(*self.profile("--shards", 2, "--max-queries", 8, "--client-param", "tokens=3",
                                           "--client-param", "tokens_per_s=1", "--array-limit", 2))
        running = self.root / "runs" / "x_shards" / "x_shard2of2" / "records.jsonl"
        wait_until(lambda: running.exists() and '"query"' in running.read_text(), f"a query; {self.logs()}")
        job = next((self.root / "runs" / "x_shards" / "slurm").glob("*.job")).read_text().split()
        cluster.ask("scancel", "--signal=KILL", "--full", job[0])
        self.assertIn("2 of 2 shards did not finish", self.end(process, code=1))
        self.ipw(*self.profile("--shards", 2, "--max-queries", 8, "--resume"))
        merge_record = json.loads((self.root / "runs" / "x" / "summary.json").read_text())["ipw"]
        self.assertEqual((merge_record["queries"], merge_record["completed"], merge_record["starts"]), (8, 8, 4))


class Accounting(SlurmTest):
    """Prolog and epilog of examples/slurm, run by slurmd."""

    def setUp(self):
        super().setUp()
        machine = IntelNvidia()
        self.addCleanup(machine.close)
        self.monitor = Monitor(machine, "--interval", "0.2")
        self.addCleanup(self.monitor.close)
        self.log = self.root / "jobs.jsonl"
        for name in ("prolog", "epilog"):
            script = Path(os.environ["IPW_SOURCE"]) / "examples" / "slurm" / f"ipw-{name}.sh"
            cluster.run_around_jobs(name, f"export IPW_METRICS_URL={self.monitor.url}/metrics "
                                          f"IPW_SLURM_STATE={self.root}/state IPW_SLURM_LOG={self.log}\nexec {script}")

    def joules(self):
        return sum(self.monitor.scrape().find("ipw_node_joules_total"))

    def written(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def submit(self, value):
        command = " ".join(map(shlex.quote, python(NOTE, self.notes, value)))
        job = cluster.ask("sbatch", "--parsable", "--output", f"{self.root}/{value}.log", "--wrap", command)
        self.assertTrue(job)
        return job

    def test_energy_of_a_job(self):
        self.monitor.wait_updates(2)
        hold, before = self.hold("x"), self.joules()
        job = self.submit("x")
        self.wait_for("x")
        start = self.joules()
        wait_until(lambda: self.joules() > start + 100, "100 J")
        end = self.joules()
        hold.unlink()
        wait_until(self.written, "the epilog")
        line, = self.written()
        self.assertEqual((line["job_id"], line["node"]), (job, socket.gethostname()))
        self.assertGreaterEqual(line["node_joules"], end - start - 0.01)
        self.assertLessEqual(line["node_joules"], self.joules() - before + 0.01)
        wait_until(lambda: not list((self.root / "state").iterdir()), "the end of the epilog")

    def test_concurrent_jobs_have_one_line_each(self):
        holds = [self.hold("y"), self.hold("z")]
        jobs = [self.submit("y"), self.submit("z")]
        for value, hold in zip("yz", holds):
            self.wait_for(value)
            hold.unlink()
        wait_until(lambda: len(self.written()) == 2, "both epilogs")
        self.assertEqual(sorted(line["job_id"] for line in self.written()), sorted(jobs))
        self.assertTrue(all(line["node_joules"] >= 0 for line in self.written()))

    def test_job_runs_without_monitor(self):
        self.monitor.close()
        job = self.submit("w")
        wait_until(lambda: cluster.ask("scontrol", "show", "job", job).find("JobState=COMPLETED") > 0, "the job")
        self.assertEqual((self.recorded_values(), self.written()), (["w"], []))


if __name__ == "__main__":
    main_parallel()  # each with its own Slurm
