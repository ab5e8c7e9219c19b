#!/usr/bin/env python3
# test: real time
"""Conditions of a measurement: background load, a baseline that was not idle, idle power that changed."""

import json
import os
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import FAKE, Intel, Machine, Nvidia, Ramp, SharedCpus  # noqa: E402
from program import EchoRun, MachineTest, ipw, main_parallel  # noqa: E402
from rundirs import outcomes_of  # noqa: E402


def codes(conditions):
    return {finding["code"]: finding["severity"] for finding in conditions["findings"]}


class Background(MachineTest):
    def measure(self, machine, *options):
        return self.run_json(machine, *options, "--", "sleep", "1")[0]

    def test_busy_loops_count_as_background(self):
        """Runs on the real test host: other processes can only add to the background."""
        file = self.machine(Machine).root / "report.json"
        loops = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(os.cpu_count())]
        try:
            done = ipw(None, "run", "--json", "-o", file, "--", "sleep", "1")
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(file.read_text())
        conditions = report["conditions"]
        self.assertGreater(conditions["background_cpus"], 0.5 * conditions["cpus"], conditions)
        self.assertEqual(codes(conditions)["background_cpu"], "invalid")
        self.assertLess(conditions["cpu_own_s"], 0.5)
        if report["energy"]["method"] == "estimated":  # the power model defines its idle power
            self.assertGreater(conditions["background_joules"], 0.2 * report["energy"]["joules"])
            self.assertLess(conditions["background_joules"], report["energy"]["joules"])

    def test_command_is_not_background(self):
        machine = self.machine(SharedCpus)
        report = self.run_json(machine, "--", "sh", "-c", "i=0; while [ $i -lt 90000 ]; do i=$((i+1)); done")[0]
        conditions = report["conditions"]
        self.assertGreaterEqual(conditions["cpu_own_s"],
                                report["runs"][0]["user_s"] + report["runs"][0]["system_s"])
        self.assertEqual(conditions["background_cpus"], 0)  # the fake /proc/stat does not include it
        self.assertEqual(conditions["findings"], [])

    def test_idle_machine_has_no_findings(self):
        conditions = self.measure(self.machine(SharedCpus), "--idle", "0.3")["conditions"]
        self.assertLess(conditions["background_cpus"], 0.05)
        self.assertEqual(conditions["background_joules"], 0)
        self.assertEqual(conditions["findings"], [])
        self.assertEqual(conditions["idle_tries"], 1)
        self.assertEqual(conditions["cpus"], 2)

    def test_background_share_of_energy(self):
        machine = self.machine(SharedCpus, 1.5)
        report = self.measure(machine)
        conditions = report["conditions"]
        self.assertAlmostEqual(conditions["background_cpus"], 1.5, delta=0.1)
        # The model's power is (0.25 + 0.75 u) of its maximum, of which 0.25 is idle; u is 0.75 here.
        self.assertAlmostEqual(conditions["background_joules"] / report["energy"]["joules"],
                               0.5625 / 0.8125, delta=0.04)
        # Reported in addition to the energy, not subtracted from it.
        self.assertEqual(report["energy"]["joules"], report["runs"][0]["energy_j"])
        text = ipw(machine, "run", "--", "true").stderr
        done = ipw(machine, "run", "--", "sleep", "1")
        lines = done.stderr.splitlines()
        said = next(i for i, line in enumerate(lines) if "other processes used 1." in line)
        self.assertLess(said, next(i for i, line in enumerate(lines) if "coverage" in line), text)
        self.assertRegex(lines[said], r"of 2 CPUs: about (6[6-9]|7[0-2]) % of the energy is theirs \[background_cpu\]$")

    def test_background_cpus_are_capped_at_cpu_count(self):
        conditions = self.measure(self.machine(SharedCpus, 2.5))["conditions"]
        self.assertEqual(conditions["background_cpus"], 2)

    def test_conditions_are_saved_and_checked_by_analyze(self):
        machine = self.machine(SharedCpus, 1.5)
        runs = machine.root / "runs"
        self.measure(machine, "--output-dir", runs)
        run = next(path for path in runs.iterdir() if path.is_dir())
        conditions = json.loads((run / "summary.json").read_text())["ipw"]["conditions"]
        self.assertEqual(codes(conditions), {"background_cpu": "invalid"})
        done = ipw(None, "analyze", run, "--analysis", "quality", "--json")
        checks = outcomes_of(json.loads(done.stdout)[str(run)]["quality"])
        self.assertEqual(checks["background_cpu"][0], "invalid")
        self.assertRegex(checks["background_cpu"][1], r"other processes used 1\.\d+ of 2 CPUs")


class BusyIntel(Intel):
    """Its energy is measured, and other processes use 80 % of its one CPU."""

    def __init__(self, watts=20):
        super().__init__(watts)
        self.put("/proc/stat", f"{FAKE}cpu  {Ramp(100000, 80)} 0 0 {Ramp(100000, 20)} 0 0 0 0 0 0")


class Baseline(MachineTest):
    def refused(self, code, command, *rest):
        """A requested baseline that was not idle is an error with --require-energy, otherwise a finding."""
        machine = self.machine(BusyIntel)
        options = ["--require-energy"] if code else []
        done = ipw(
            machine, command, "--idle", "0.2", *options, "--output-dir", machine.root / "runs", *rest)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn("machine was not idle in 3 attempts", done.stdout + done.stderr)
        self.assertEqual("--idle is required" in done.stderr, code == 3, done.stderr)

    def refused_with_a_model(self, *arguments):
        clients = {row["name"]: row for row in json.loads(ipw(None, "list", "clients", "--json").stdout)["clients"]}
        if not clients["llama"]["available"]:
            self.skipTest(clients["llama"]["missing"])
        self.refused(3, *arguments)

    def test_run_fails_if_required_baseline_was_not_idle(self):
        for code in (3, 0):
            self.refused(code, "run", "--", "sleep", "0.3")
        machine = self.machine(BusyIntel)
        done = ipw(machine, "run", "--require-energy", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        # Said first, also where energy is only estimated: the counter is dead.
        done = ipw(self.machine(BusyIntel, 0), "run", "--idle", "0.2", "--require-energy", "--", "sleep", "0.3")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("--idle is required", done.stderr)

    def test_profile_fails_if_required_baseline_was_not_idle(self):
        for code in (3, 0):
            self.refused(code, "profile", "--client", "null", "--model", "test", "--max-queries", "3",
                         "--warmup-queries", "0", "--client-param", "ttft_ms=100")

    def test_demo_fails_if_required_baseline_was_not_idle(self):
        self.refused_with_a_model("demo", "--model", "ipw-1m-f16", "--queries", "5")

    def test_layers_fails_if_required_baseline_was_not_idle(self):
        self.refused_with_a_model("layers", "--model", "ipw-1m-f16", "--prompt-tokens", "16", "--gen", "4", "-r", "1",
                                  "--max-seconds", "4", "--window", "1", "-t", "1", "--granularity", "layer")

    def test_unverified_idle_power_is_noted(self):
        machine = self.machine(SharedCpus)
        run = EchoRun(machine, "--idle", "0.3")
        machine.set_others(1.5)
        conditions = run.end()["conditions"]
        self.assertIsNotNone(conditions["idle_w"])
        self.assertIsNone(conditions["idle_after_w"])
        self.assertEqual(codes(conditions)["idle_unchecked"], "note")

    def test_baseline_that_was_not_idle_is_rejected(self):
        report, done = self.run_json(self.machine(SharedCpus, 1.5), "--idle", "0.3", "--", "sleep", "0.5")
        self.assertEqual(done.returncode, 0)
        self.assertIsNone(report["idle"])
        self.assertIsNone(report["energy"]["idle_joules"])
        self.assertIsNotNone(report["energy"]["joules"])
        conditions = report["conditions"]
        self.assertEqual(conditions["idle_tries"], 3)
        self.assertAlmostEqual(conditions["idle_cpus"], 1.5, delta=0.2)
        self.assertEqual(codes(conditions)["baseline_refused"], "warning")

    def test_changed_idle_power_is_reported(self):
        machine = self.machine(Intel, 20)
        run = EchoRun(machine, "--idle", "0.3")
        machine.set_power(40)
        report = run.end()
        conditions = report["conditions"]
        self.assertAlmostEqual(conditions["idle_w"] / 20, 1, delta=0.1)
        self.assertGreater(conditions["idle_after_w"], 1.5 * conditions["idle_w"])
        self.assertEqual(codes(conditions), {"idle_changed": "warning"})
        self.assertEqual([d["id"] for d in conditions["devices"]], ["cpu0"])

    def test_constant_idle_power_has_no_finding(self):
        report = self.run_json(self.machine(Intel, 20), "--idle", "0.3", "--", "sleep", "0.3")[0]
        self.assertAlmostEqual(report["conditions"]["idle_after_w"] / 20, 1, delta=0.1)
        self.assertEqual(codes(report["conditions"]), {})


class Gpu(Nvidia):
    """A GPU with processes, as seen by the host.  PID 4242, a trainer, belongs to another user."""

    HOST = "pid:[4026531836]"

    def __init__(self, *processes, namespace=HOST):
        super().__init__("value utilisation * 0\n" + "\n".join(processes))
        self.add_process(4242, 1, "trainer")
        self.link("/proc/self/ns/pid", namespace)

    def link(self, path, target):
        (self.root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, self.root / path.lstrip("/"))

    def add_process(self, pid, parent, name):
        self.put(f"/proc/{pid}/stat", f"{pid} ({name}) S {parent} 1 1 0 -1 4194560 10 20 30 40 5 0 0 0 20 0 1 0 5 6 7")
        self.put(f"/proc/{pid}/comm", name)

    def copy_process(self, pid):
        """Copies a process with its open sockets."""
        for file in ("stat", "comm"):
            self.put(f"/proc/{pid}/{file}", Path(f"/proc/{pid}/{file}").read_text().strip())
        for fd in os.listdir(f"/proc/{pid}/fd"):
            self.link(f"/proc/{pid}/fd/{fd}", os.readlink(f"/proc/{pid}/fd/{fd}"))


class Gpus(MachineTest):
    # Adds itself and its parent to the machine's /proc, and itself to the GPU's processes.
    JOINS = """
for pid in $$ $PPID; do
    mkdir -p $IPW_SYSROOT/proc/$pid
    cat /proc/$pid/stat > $IPW_SYSROOT/proc/$pid/stat
done
(cat $IPW_FAKE_NVML; echo process 0 $$ 3e9 55) > $IPW_SYSROOT/nvml.own
mv $IPW_SYSROOT/nvml.own $IPW_FAKE_NVML
sleep 0.5
"""

    def measure(self, machine, *options, command=JOINS):
        return self.run_json(machine, *options, "--", "sh", "-c", command)[0]["conditions"]

    def test_command_is_not_background(self):
        conditions = self.measure(self.machine(Gpu))
        self.assertEqual((conditions["background_gpu_pct"], conditions["background_gpu_processes"]), (0, 0))
        self.assertEqual((conditions["gpu_processes"], conditions["findings"]), ([], []))

    def test_other_process_is_background(self):
        conditions = self.measure(self.machine(Gpu, "process 0 4242 2e9 40"))
        self.assertAlmostEqual(conditions["background_gpu_pct"], 40, delta=0.01)
        self.assertEqual(conditions["background_gpu_processes"], 1)
        seen, = conditions["gpu_processes"]
        self.assertAlmostEqual(seen.pop("utilization_pct"), 40, delta=0.01)
        self.assertEqual(seen, {"device": "gpu0", "pid": 4242, "name": "trainer", "memory_bytes": 2e9})
        self.assertEqual(codes(conditions), {"background_gpu": "invalid"})
        self.assertEqual(conditions["findings"][0]["text"],
                         "other processes used 40 % of gpu0: trainer (PID 4242, 2 GB)")

    def test_process_that_only_holds_memory_is_listed(self):
        conditions = self.measure(self.machine(Gpu, "devices 2", "process 1 4242 2e9"))
        self.assertEqual((conditions["background_gpu_pct"], conditions["background_gpu_processes"]), (0, 1))
        self.assertEqual(conditions["gpu_processes"][0]["device"], "gpu1")
        self.assertEqual(conditions["findings"], [])

    def test_unreported_utilization_is_unknown(self):
        conditions = self.measure(self.machine(Gpu, "process 0 4242 nan 40",
                                               "fail nvmlDeviceGetProcessUtilization 0 3"))
        self.assertIsNone(conditions["background_gpu_pct"])
        self.assertEqual(conditions["background_gpu_processes"], 1)
        self.assertIsNone(conditions["gpu_processes"][0]["memory_bytes"])
        self.assertIsNone(conditions["gpu_processes"][0]["utilization_pct"])
        self.assertEqual(codes(conditions), {"background_gpu": "note"})

    def test_background_is_unknown_in_a_container(self):
        for machine, why in ((self.machine(Gpu, "process 0 4242 2e9 40", namespace="pid:[4026532281]"), "container"),
                             (self.machine(Gpu, "fail nvmlDeviceGetComputeRunningProcesses_v3 0 3"), "not supported")):
            conditions = self.measure(machine)
            self.assertIsNone(conditions["background_gpu_pct"])
            self.assertIsNone(conditions["background_gpu_processes"])
            self.assertEqual(conditions["gpu_processes"], [])
            self.assertEqual(codes(conditions), {"background_gpu_unknown": "note"})
            self.assertIn(why, conditions["findings"][0]["text"])

    def test_repeats_are_averaged(self):
        """The trainer uses 40 % during the first of two runs only."""
        ends = 'sleep 0.5; test -e $IPW_SYSROOT/second && sed -i "s/ 40$/ 0/" $IPW_FAKE_NVML; touch $IPW_SYSROOT/second'
        report, _ = self.run_json(self.machine(Gpu, "process 0 4242 2e9 40"), "-r", "2", "--", "sh", "-c", ends)
        first, second = (run["wall_s"] for run in report["runs"])
        self.assertAlmostEqual(report["conditions"]["background_gpu_pct"], 40 * first / (first + second), delta=4)

    def test_background_load_makes_energies_incomparable(self):
        machine = self.machine(Gpu, "process 0 4242 2e9 40")
        for name in ("a", "b"):
            self.measure(machine, "--output-dir", machine.root / name)
            machine.script("value utilisation * 0")
        runs = [next(path for path in (machine.root / name).iterdir() if path.is_dir()) for name in ("a", "b")]
        compared = json.loads(ipw(None, "compare", *runs, "--json").stdout)
        self.assertEqual(compared["comparisons"][0]["conditions"], "not comparable")
        done = ipw(None, "analyze", runs[0], "--analysis", "quality", "--json")
        checks = outcomes_of(json.loads(done.stdout)[str(runs[0])]["quality"])
        self.assertEqual(checks["background_gpu"][0], "invalid")


class Servers(MachineTest):
    SERVER = """
import http.server, json, time
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.answer({"data": [{"id": "m"}]})
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        until = time.process_time() + 0.05
        while time.process_time() < until: pass
        self.answer({"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "4"}}],
                     "usage": {"prompt_tokens": 3, "completion_tokens": 1}})
    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Answers)
print(server.server_port, flush=True)
server.serve_forever()
"""

    def profile(self, machine, url, where):
        questions = where / "q.jsonl"
        questions.write_text("".join(json.dumps({"problem": f"2+{n}", "answer": "4"}) + "\n" for n in range(6)))
        done = ipw(machine, "profile", "--client", "openai", "--client-base-url", url, "--model", "m", "--idle", "0",
                   "--warmup-queries", "0", "--param", "stream=false", "--dataset", questions, "--json", "--output-dir",
                   where / "runs")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["conditions"]

    def test_cpu_time_of_local_server_is_not_background(self):
        place = self.machine(SharedCpus).root
        server = subprocess.Popen([sys.executable, "-S", "-c", self.SERVER], stdout=subprocess.PIPE, text=True)
        try:
            url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
            conditions = self.profile(None, url, place)
            self.assertGreater(conditions["cpu_own_s"], 0.25)  # six responses of 50 ms
            self.assertIsNotNone(conditions["background_cpus"])
            self.assertNotIn("background_unknown", codes(conditions))
            # The fake /proc has only its CPU time: the owner is unknown.
            hidden = self.profile(self.machine(SharedCpus, 1), url, self.machine(SharedCpus).root)
            self.assertIsNone(hidden["background_cpus"])
            self.assertIsNone(hidden["background_joules"])
            self.assertEqual(codes(hidden), {"background_unknown": "note"})
        finally:
            server.kill()
            server.communicate()

    def test_gpu_use_of_local_server_is_not_background(self):
        machine = self.machine(Gpu, "process 0 4242 2e9 8")
        server = subprocess.Popen([sys.executable, "-S", "-c", self.SERVER], stdout=subprocess.PIPE, text=True)
        try:
            url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
            machine.script((machine.root / "nvml.txt").read_text() + f"process 0 {server.pid + 1000000} 9e9 70")
            machine.copy_process(server.pid)
            machine.add_process(server.pid + 1000000, server.pid, "worker")
            machine.put("/proc/net/tcp", Path("/proc/net/tcp").read_text().rstrip())
            conditions = self.profile(machine, url, machine.root)
        finally:
            server.kill()
            server.communicate()
        self.assertEqual([process["pid"] for process in conditions["gpu_processes"]], [4242])
        self.assertAlmostEqual(conditions["background_gpu_pct"], 8, delta=0.01)
        self.assertEqual(codes(conditions)["background_gpu"], "warning")


class Dedicated(MachineTest):
    """`ipw agent --require-dedicated-hardware` refuses a machine with other load."""

    def agent(self, machine):
        return ipw(machine, "agent", "--client", "null", "--model", "m", "--max-queries", "1", "--idle", "0", "-q",
                   "--output-dir", machine.root / "runs", "--overwrite", "--require-dedicated-hardware")

    def refused(self, machine, said):
        done = self.agent(machine)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("not dedicated", done.stderr)
        self.assertRegex(done.stderr, said)
        self.assertFalse(list((machine.root / "runs").glob("*/records.jsonl")))

    def test_refuses_busy_cpus(self):
        for others in (0.0, 0.1):  # of two CPUs
            done = self.agent(self.machine(SharedCpus, others))
            self.assertEqual(done.returncode, 0, done.stderr)
        self.refused(self.machine(SharedCpus, 0.5), "other processes used 2[345] % of the CPUs")

    def test_refuses_busy_gpus(self):
        self.assertEqual(self.agent(self.machine(Gpu)).returncode, 0)
        self.refused(self.machine(Gpu, "process 0 4242 2e9"), r"1 other process on a GPU, the first is trainer \(pid 4242\)")
        self.refused(self.machine(Gpu, "value utilisation 0 30"), "gpu0 was busy 30 %")


if __name__ == "__main__":
    main_parallel(3)
