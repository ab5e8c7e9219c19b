#!/usr/bin/env python3
# test: serial
"""ipw profile on fake machines with known power: energies add up and can be recomputed."""

import json
import signal
import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import IntelNvidia, Intel, Modeled, Nvidia  # noqa: E402
from profiling import MODEL, TOKENS, ProfileTest, EnergySums  # noqa: E402
from program import main_parallel  # noqa: E402

CARRIES = ("joules", "plus_minus", "method", "source", "coverage")


def joules_of(record):
    """Joules of a query, including failed attempts."""
    own = record["ipw"]
    return own["energy"]["joules"] + sum(
        attempt["joules"] for attempt in own.get("failed_attempts", {}).values())


class Conservation(ProfileTest):
    """No energy is lost or counted twice."""

    def check(self, report):
        records = self.run.records()
        total = report["energy"]["joules"]
        queries = sum(joules_of(r) for r in records.values())
        # Without a baseline idle energy is unknown: it is all unattributed.
        parts = queries + (report["joules"]["idle"] or 0) + report["joules"]["unattributed"]
        self.assertAlmostEqual(parts / total, 1, delta=1e-3)
        self.assertLess(report["conservation_error"], 1e-3)
        good = sum(r["ipw"]["energy"]["joules"] for r in records.values()
                   if r["ipw"]["status"] == "completed")
        self.assertAlmostEqual(report["joules"]["queries"] / good, 1, places=6)
        self.assertAlmostEqual(report["joules"]["failed"], queries - good, places=6)
        self.assertAlmostEqual(self.run.summary()["ipw"]["energy"]["joules"], total)
        return records

    def test_eight_concurrent_requests_on_four_devices(self):
        machine = self.machine(IntelNvidia)
        report = self.profile("--concurrency", 8, "--idle", 0.5, machine=machine,
                              scenario="normal:gap_ms=40", dataset=self.numbered(40))
        records = self.check(report)
        self.assertEqual(report["energy"]["method"], "counter")
        devices = {d["id"]: d for d in self.run.summary()["ipw"]["devices"]}
        counted = {name for name, d in devices.items() if d["in_total"]}
        self.assertEqual(len(counted), 4, devices)
        self.assertAlmostEqual(sum(devices[name]["energy"]["joules"] for name in counted)
                               / report["energy"]["joules"], 1, places=6)
        shares = dict.fromkeys(devices, 0)
        for record in records.values():
            own = json.loads(record["ipw"]["devices"])
            for share in own:
                self.assertEqual(share["in_total"], share["id"] in counted)
                for key in CARRIES:
                    self.assertIsNotNone(share[key], share)
                self.assertEqual(share["method"], "counter")
                shares[share["id"]] += share["joules"]
            self.assertAlmostEqual(sum(s["joules"] for s in own if s["in_total"])
                                   / record["ipw"]["energy"]["joules"], 1, places=6)
            self.assertGreater(record["ipw"]["concurrency"], 1)
        for name in counted:
            self.assertLessEqual(shares[name], devices[name]["energy"]["joules"] * 1.001)
            self.assertGreater(shares[name], 0.5 * devices[name]["energy"]["joules"])
        gpu = sum(r["model_metrics"][MODEL]["energy_metrics"]["per_query_joules"]
                  for r in records.values())
        cpu = sum(r["model_metrics"][MODEL]["energy_metrics"]["cpu_per_query_joules"]
                  for r in records.values())
        self.assertAlmostEqual((gpu + cpu) / report["joules"]["queries"], 1, places=6)
        self.assertAlmostEqual(report["joules"]["gpu"] / gpu, 1, places=6)
        watts = {40, 25}
        means = sorted(devices[name]["power_mean_w"] for name in counted)
        for expected, mean in zip(sorted(watts), means):
            self.assertAlmostEqual(mean / expected, 1, delta=0.05)

    def test_failed_attempts_are_accounted(self):
        machine = self.machine(Intel, 50)
        report = self.profile("--concurrency", 2, "--retries", 1, machine=machine,
                              scenario="flaky:fails=1,code=503,retry_after=0,head_ms=100")
        records = self.check(report)
        for record in records.values():
            self.assertEqual(set(record["ipw"]["failed_attempts"]), {"1"})
        self.assertGreater(report["joules"]["failed"], 0)
        report = self.profile("--overwrite", machine=machine, scenario="mixed:head_ms=100",
                              dataset=self.dataset("a", "b [status:code=500]", "c"))
        records = self.check(report)
        failed = records["q000001"]["ipw"]["energy"]["joules"]
        self.assertAlmostEqual(report["joules"]["failed"], failed, places=9)
        self.assertGreater(failed, 50 * 0.09)

    def test_aborted_requests_are_unattributed(self):
        machine = self.machine(Intel, 50)
        process = self.start(machine=machine, scenario="mixed", dataset=self.dataset("question [hang]"))
        self.until(lambda: any("hang" in q for q in self.service.questions()), "the query")
        time.sleep(0.5)  # a measurable energy
        for number in (signal.SIGINT, signal.SIGTERM):  # two equal pending signals would merge
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        report = json.loads(out)
        self.assertEqual(report["queries"], 0)
        self.assertGreater(report["energy"]["joules"], 10)
        self.assertAlmostEqual(report["joules"]["unattributed"] / report["energy"]["joules"], 1,
                               delta=1e-3)

    def test_pauses_between_arrivals_are_idle(self):
        machine = self.machine(Intel, 50)
        report = self.profile("--request-rate", 4, "--seed", 3, "--idle", 0.5, machine=machine,
                              dataset=self.numbered(6))
        self.check(report)
        self.assertPauses(report, "idle")
        report = self.profile("--request-rate", 4, "--overwrite", machine=machine, dataset=self.numbered(6))
        self.check(report)
        self.assertIsNone(report["joules"]["idle"])
        self.assertPauses(report, "unattributed")

    def assertPauses(self, report, part):
        """This part of the energy is 50 W times the time without a request: most of it, unless the machine is slow."""
        spans = sorted((span["from_s"], span["to_s"]) for span in self.run.lines("spans.jsonl") if span["span"] == "request")
        busy = reached = 0
        for begin, end in spans:
            busy += max(0, end - max(begin, reached))
            reached = max(reached, end)
        whole = report["energy"]["joules"]
        self.assertGreater(report["joules"][part], 0)
        self.assertAlmostEqual(report["joules"][part], whole - 50 * busy, delta=0.03 * whole)


class Figures(ProfileTest):
    def test_energies_have_error_method_and_coverage(self):
        machine = self.machine(Intel, 50)
        report = self.profile("--idle", 0.5, "--grader", "contains", machine=machine,
                              scenario="normal:gap_ms=60", dataset=self.dataset(
                                  {"problem": "a", "answer": "bye"}, {"problem": "b", "answer": "?"},
                                  {"problem": "c", "answer": "Hello"}))
        records = self.run.records().values()
        for energy in [report["energy"], *(r["ipw"]["energy"] for r in records)]:
            for key in (*CARRIES, "idle_joules", "active_joules"):
                self.assertIsNotNone(energy[key], energy)
            self.assertGreater(energy["plus_minus"], 0)
            self.assertEqual(energy["method"], "counter")
            self.assertGreater(energy["coverage"], 0.99)
            self.assertAlmostEqual(energy["idle_joules"] + energy["active_joules"],
                                   energy["joules"], places=6)
            # The machine has constant power: all of it is idle energy.
            self.assertAlmostEqual(energy["idle_joules"] / energy["joules"], 1, delta=0.1)
        for record in records:
            seconds = record["model_metrics"][MODEL]["latency_metrics"]["total_query_seconds"]
            self.assertAlmostEqual(record["ipw"]["energy"]["joules"] / (50 * seconds), 1, delta=0.1)
        joules = sum(r["ipw"]["energy"]["joules"] for r in records)
        self.assertAlmostEqual(report["joules_per_output_token"], joules / (3 * TOKENS))
        self.assertAlmostEqual(report["accuracy"], 2 / 3)
        self.assertAlmostEqual(report["ipj"], report["accuracy"] / (joules / 3))
        self.assertAlmostEqual(report["busy_watts"] / 50, 1, delta=0.05)
        self.assertAlmostEqual(report["ipw"], report["accuracy"] / report["busy_watts"])
        prefill = sum(r["model_metrics"][MODEL]["phase_metrics"]["prefill_energy_j"] for r in records)
        decode = sum(r["model_metrics"][MODEL]["phase_metrics"]["decode_energy_j"] for r in records)
        self.assertAlmostEqual((prefill + decode) / joules, 1, places=6)
        idle = self.run.summary()["ipw"]["idle"]
        self.assertAlmostEqual(sum(d["power_w"] for d in idle["devices"]) / 50, 1, delta=0.05)

    def test_require_energy_rejects_estimates(self):
        modeled = self.machine(Modeled)
        report = self.profile("--require-energy", machine=modeled, scenario="normal:gap_ms=20", code=3)
        self.assertEqual(report["energy"]["method"], "estimated")
        self.assertEqual(report["completed"], 4)
        self.profile("--overwrite", "--require-energy", code=3)  # no sensor at all
        self.profile("--overwrite", "--require-energy", machine=self.machine(Intel, 50),
                     scenario="normal:gap_ms=20")

    def test_energies_can_be_recomputed_from_samples(self):
        machine = self.machine(IntelNvidia)
        self.profile(machine=machine, scenario="normal:gap_ms=60", dataset=self.numbered(6))
        sums = EnergySums(self.run.path / "samples.csv")
        records = self.run.records()
        checked = 0
        for span in self.run.lines("spans.jsonl"):
            if span["span"] != "request":
                continue
            record = records[span["key"]]
            if record["ipw"]["energy"]["coverage"] < 0.99:
                continue  # readings may be late on a busy machine
            window, off, checked = 0, 0.01, checked + 1
            for share in json.loads(record["ipw"]["devices"]):
                if not share["in_total"]:
                    continue
                joules = sums.between(share["id"], span["from_s"], span["to_s"])
                # If the counter was read late, use the stated uncertainty.
                uncertain = share["plus_minus"] / share["window_joules"]
                self.assertAlmostEqual(joules / share["window_joules"], 1, delta=max(0.02, uncertain), msg=share)
                off = max(off, uncertain)
                window += joules
            self.assertAlmostEqual(window / record["ipw"]["window_joules"], 1, delta=off)
            # It ran alone.
            self.assertAlmostEqual(window / record["ipw"]["energy"]["joules"], 1, delta=0.01)
        self.assertGreater(checked, 1)

    def test_mfu_and_mbu_of_known_gpu(self):
        machine = self.machine(Nvidia, "name 0 NVIDIA H200\npower 0 constant 300\ntick 0 0.02")
        size = ("--parameters", "8e9")
        for more, known in (((), {"mfu"}), (("--weight-bits", 16),
                                            {"mfu", "mbu", "arithmetic_intensity"})):
            self.profile(*size, *more, "--overwrite", "--max-queries", 2, machine=machine,
                         scenario="normal:gap_ms=30")
            metrics = self.run.metrics("q000001")
            derived = metrics["hardware_utilization"]["derived"]
            self.assertEqual(set(derived), known)
            seconds = metrics["latency_metrics"]["total_query_seconds"]
            flops = metrics["compute_metrics"]["flops_per_request"] / seconds
            self.assertAlmostEqual(derived["mfu"] / (flops / 989.4e12), 1, places=6)
        decode = self.run.records()["q000001"]["ipw"]["decode_s"]
        moved = (TOKENS - 1) * 8e9 * 2 / decode
        self.assertAlmostEqual(derived["mbu"] / (moved / 4800e9), 1, places=6)
        self.assertEqual(self.run.summary()["gpu_info"]["name"], "NVIDIA H200 x1")
        self.assertEqual(metrics["energy_metrics"]["basis"], "gpu")

    def test_judge_energy_is_separate(self):
        machine = self.machine(Intel, 50)
        rows = self.dataset({"problem": "a [say:text=yes]", "answer": "yes"},
                            {"problem": "b [say:text=no]", "answer": "yes"})
        judge = ("--grader", "judge", "--eval-model", "tiny-3b-chat", "--eval-base-url",
                 self.service.url("judge:head_ms=200"))
        started = time.monotonic()
        report = self.profile(*judge, machine=machine, scenario="mixed:head_ms=100", dataset=rows)
        judging = min(r["received"] for r in self.service.requests if r["path"].startswith("/judge"))
        self.assertEqual(report["accuracy"], 0.5)
        records = self.run.records().values()
        judged = [r["ipw"]["judge_energy"]["joules"] for r in records]
        for joules in judged:
            self.assertGreater(joules, 50 * 0.15)
        self.assertAlmostEqual(report["joules"]["judge"], sum(judged), places=9)
        queries = sum(r["ipw"]["energy"]["joules"] for r in records)
        self.assertAlmostEqual(report["joules"]["queries"], queries, places=9)
        self.assertLess(report["energy"]["joules"], 50 * (judging - started))
        for record in records:
            metrics = record["model_metrics"][MODEL]["energy_metrics"]
            self.assertAlmostEqual(metrics["total_task_cpu_joules"],
                                   metrics["cpu_per_query_joules"] + metrics["judge_cpu_joules"])

    def test_energies_of_starts_add_up(self):
        machine = self.machine(Intel, 50)
        first = self.profile("--max-queries", 2, "--idle", 0.3, machine=machine,
                             scenario="normal:gap_ms=40")
        both = self.profile("--resume", "--idle", 0.3, machine=machine, scenario="normal:gap_ms=40")
        ends = [line for line in self.run.lines() if line["kind"] == "end"]
        self.assertEqual(len(ends), 2)
        self.assertAlmostEqual(ends[0]["energy"]["joules"], first["energy"]["joules"])
        self.assertAlmostEqual(both["energy"]["joules"],
                               sum(end["energy"]["joules"] for end in ends))
        self.assertAlmostEqual(both["joules"]["queries"], sum(
            r["ipw"]["energy"]["joules"] for r in self.run.records().values()))
        parts = both["joules"]["queries"] + both["joules"]["idle"] + both["joules"]["unattributed"]
        self.assertAlmostEqual(parts / both["energy"]["joules"], 1, delta=1e-3)

    def test_unobserved_phases_are_unknown(self):
        report = self.profile(machine=self.machine(Intel, 50), scenario="whole:head_ms=60")
        for key in ("prefill", "decode"):
            self.assertIsNone(report["joules"][key])
        for key in ("prefill_joules_per_input_token", "decode_joules_per_output_token"):
            self.assertIsNone(report[key])
        self.assertGreater(report["joules_per_output_token"], 0)
        self.assertNotIn("phase_metrics", self.run.metrics("q000000"))

    def test_joules_per_token_cover_queries_with_known_tokens(self):
        machine = self.machine(Intel, 50)
        self.profile(machine=machine, scenario="mixed:gap_ms=30", dataset=self.dataset(
            "first", "second [no_usage]", "third"))
        report = self.run.summary()["ipw"]
        phases = [self.run.metrics(key)["phase_metrics"] for key in ("q000000", "q000002")]
        for phase, figure, tokens in (("prefill", "prefill_joules_per_input_token", 2 * 11),
                                      ("decode", "decode_joules_per_output_token", 2 * TOKENS)):
            joules = sum(one[f"{phase}_energy_j"] for one in phases)
            self.assertAlmostEqual(report[figure], joules / tokens)

    def test_parts_equal_total_when_a_sensor_dies(self):
        """After the first settling, so before and after the next.  The runs are in parallel: they mostly wait."""
        runs, questions = [], self.numbered(72)
        for delay in (0.05, 0.35, 0.65):
            machine, place = self.machine(Intel, 40, 25), self.out / str(delay)
            runs.append((delay, machine, place, self.start(
                "--output-dir", place, "--request-rate", 12, machine=machine, scenario="normal:gap_ms=100",
                dataset=questions)))
        for delay, machine, place, _ in runs:
            self.until(lambda place=place: any(b'"kind":"energy"' in path.read_bytes()
                                               for path in place.glob("*/records.jsonl")), "energy")
            threading.Timer(delay, machine.show, (1, b"")).start()
        for *_, process in runs:
            out, err = process.communicate(timeout=60)
            report = json.loads(out)
            self.assertLess(report["energy"]["coverage"], 0.99, err)
            self.assertIn("cpu1 (rapl:1) was not measured", report["energy"]["note"])
            self.assertAlmostEqual(report["joules"]["cpu"] / report["joules"]["queries"], 1,
                                   places=6)
            self.assertAddsUp(report)

    def assertAddsUp(self, report):
        joules = report["joules"]
        parts = sum(joules[part] or 0 for part in ("queries", "failed", "idle", "unattributed"))
        self.assertAlmostEqual(parts / report["energy"]["joules"], 1, delta=1e-6)
        self.assertLess(report["conservation_error"], 1e-6)

    def test_failed_attempt_of_earlier_start_is_accounted(self):
        machine = self.machine(Intel, 50)
        first = self.profile(machine=machine, scenario="flaky:code=500,head_ms=60", code=1)
        self.assertGreater(first["joules"]["failed"], 0)
        both = self.profile("--resume", machine=machine, scenario="normal:head_ms=60")
        self.assertEqual((both["completed"], both["failed"]), (4, 0))
        self.assertAlmostEqual(both["joules"]["failed"], first["joules"]["failed"])
        self.assertAddsUp(both)

    def test_queries_of_killed_start_are_in_total(self):
        machine = self.machine(Intel, 50)
        options = {"machine": machine, "scenario": "normal:gap_ms=40", "dataset": self.numbered(12)}
        process = self.start("--parameters", "1B", **options)
        self.until(lambda: any(b'"kind":"energy"' in path.read_bytes()
                               for path in self.out.glob("*/records.jsonl")), "energy")
        process.kill()
        process.communicate(timeout=60)
        report = self.profile("--resume", "--parameters", "1B", **options)
        self.assertEqual(report["completed"], 12)
        self.assertGreater(report["energy"]["joules"], report["joules"]["queries"])
        self.assertAddsUp(report)

    def test_retried_judge_adds_to_its_energy(self):
        machine = self.machine(Intel, 50)
        judge = ("--grader", "judge", "--eval-model", "tiny-3b-chat", "--max-queries", 2)

        def spent(scenario, *more):
            report = self.profile(*judge, "--eval-base-url", self.service.url(scenario), *more,
                                  machine=machine, scenario="normal:gap_ms=20")
            records = self.run.records()
            energies = {key: record["ipw"]["judge_energy"] for key, record in records.items()}
            self.assertAlmostEqual(report["joules"]["judge"],
                                   sum(energy["joules"] for energy in energies.values()))
            for key in records:
                metrics = self.run.metrics(key)["energy_metrics"]
                self.assertAlmostEqual(metrics["judge_cpu_joules"], energies[key]["joules"])
                self.assertAlmostEqual(metrics["total_task_cpu_joules"], energies[key]["joules"]
                                       + metrics["cpu_per_query_joules"])
            return energies
        first = spent("die:after=headers,first_ms=80")
        both = spent("judge:first_ms=80", "--resume")
        for key, energy in first.items():
            for one in (energy["joules"], both[key]["joules"] - energy["joules"]):
                self.assertGreater(one, 0.08 * 50 * 0.8)
            self.assertGreater(both[key]["plus_minus"], energy["plus_minus"])

    def test_energy_of_interrupted_streams_is_accounted(self):
        rows = self.dataset("question 0", "question 1 [interrupted:first_ms=80,pieces=2]", "question 2")
        report = self.profile(machine=self.machine(Intel, 50), scenario="mixed:gap_ms=20", dataset=rows)
        self.assertEqual((report["completed"], report["failed"]), (2, 1))
        self.assertGreater(report["joules"]["failed"], 0.08 * 50 * 0.8)
        self.assertAlmostEqual(report["joules_per_query"], report["joules"]["queries"] / 2)
        self.assertAddsUp(report)

    def test_start_without_requests_adds_no_energy(self):
        machine = self.machine(Intel, 50)
        first = self.profile("--idle", 0.3, machine=machine, scenario="normal:gap_ms=40")
        for _ in range(2):
            again = self.profile("--resume", "--idle", 0.3, machine=machine)
            for key in ("energy", "joules", "busy_watts", "conservation_error"):
                self.assertEqual(again[key], first[key], key)

    def test_start_without_measurement_is_reported(self):
        self.profile("--max-queries", 2, machine=self.machine(Intel, 0), scenario="normal:gap_ms=40")
        both = self.profile("--resume", machine=self.machine(Intel, 50), scenario="normal:gap_ms=40")
        self.assertEqual((both["completed"], both["energy_known"]), (4, 2))
        self.assertIn("1 of the starts measured nothing", both["energy"]["note"])
        self.assertAddsUp(both)

    def test_electricity_cost(self):
        machine = self.machine(Intel, 50)
        prices = self.on.put("/prices.json", '{"currency": "EUR", "electricity_per_kwh": 0.36}')
        report = self.profile("--prices", prices, machine=machine, scenario="normal:gap_ms=20")
        self.assertAlmostEqual(report["electricity_cost"] / (report["energy"]["joules"] * 1e-7), 1)


if __name__ == "__main__":
    main_parallel(jobs=2)
